//! The card of a test sample on the page: scalars, an animation of each time series, maps, and the values behind them.

use super::Picture;
use super::curves::curves;
use super::html::{base64, escape};
use super::pictures::Shared;
use super::scene::{Number, Output};
use super::values::{BUDGET, times_of, values};
use crate::plot::{Layout, Map, PAPER, Scale, ends, share_colours};
use crate::text::{percent, short};
use anyhow::Result;
use std::fmt::Write;

/// Maps of meshes and clouds on a page that are drawn at twice their size.
const FINE_MAPS: usize = 40;

/// How much of the page a card may take.
#[derive(Clone, Copy)]
pub(super) struct Room {
    /// Bytes of the values.
    budget: usize,
    /// Pixels of the maps of meshes and clouds for each pixel of their size.
    fine: usize,
}

impl Room {
    /// The room of each of several cards. With very many maps on the page, each is coarser.
    pub(super) fn of(pictures: &[Picture]) -> Room {
        let maps = pictures.iter().flat_map(|picture| picture.figure.rows.iter().flatten());
        let drawn = maps.filter(|map| map.layout.positions().is_some()).count();
        Room { budget: BUDGET / pictures.len().max(1), fine: if drawn > FINE_MAPS { 1 } else { 2 } }
    }
}

/// The card of a sample.
pub(super) fn sample(picture: &Picture, shared: &Shared, room: Room) -> Result<String> {
    let Picture { rank, sample, error, scene, figure } = picture;
    let mut out = format!(
        "<article class=\"sample\"><header><h3>{}</h3><span>sample {sample} · relative L2 {}</span></header>",
        escape(rank),
        percent(*error)
    );
    let _ = write!(out, "<p class=\"notes\">{}</p>", escape(&figure.notes.join(" · ")));
    out += &numbers(&scene.numbers);
    let first = scene.given.len();
    // The animation stands between what is given and what is asked for.
    let is_output = |row: &Vec<Map>| row.iter().any(|map| map.source.is_some_and(|[field, ..]| field >= first));
    let given = figure.rows.iter().position(is_output).unwrap_or(figure.rows.len());
    let columns = columns(figure.rows.iter().flatten());
    for (index, row) in figure.rows.iter().enumerate() {
        if index == given {
            out += &players(picture, shared);
        }
        let shares = share_colours(row);
        let _ = write!(out, "<div class=\"maps\" style=\"--columns:{columns}\">");
        for map in row {
            let outputs = map.source.and_then(|[field, ..]| scene.outputs.get(field.checked_sub(first)?));
            let source = map.source.map(|[field, time, set]| {
                let known = outputs.map(|output| times_of(output.times.len(), &output.drawn_times()));
                [field, known.and_then(|times| times.iter().position(|&known| known == time)).unwrap_or(time), set]
            });
            out += &drawn(map, room.fine, source, !shares && map.has_bar())?;
        }
        if shares {
            let _ =
                write!(out, "<div class=\"all\">{}</div>", colours(&row[0].scale, ends(row, |end| short(end.into()))));
        }
        out += "</div>";
    }
    // A `<` could end the element.
    let values = values(scene, shared, room.budget).to_string().replace('<', "\\u003c");
    let _ = write!(out, "<script type=\"application/json\">{values}</script>");
    Ok(out + "</article>\n")
}

/// Scalars as numbers: those given, and truth, prediction and difference of those asked for.
fn numbers(numbers: &[Number]) -> String {
    let number = |Number { name, values }: &Number| {
        let text = |value: f32| escape(&short(value.into()));
        let value = match values[..] {
            [truth, prediction] => {
                let difference = text(prediction - truth);
                format!("{} <small>predicted {}, difference {difference}</small>", text(truth), text(prediction))
            }
            _ => values.iter().map(|value| text(*value)).collect::<Vec<_>>().join(", "),
        };
        format!("<div><dt>{}</dt><dd>{value}</dd></div>", escape(name))
    };
    match numbers {
        [] => String::new(),
        _ => format!("<dl class=\"numbers\">{}</dl>", numbers.iter().map(number).collect::<String>()),
    }
}

/// An animation of all time series with the same times.
fn players(Picture { sample, scene, .. }: &Picture, shared: &Shared) -> String {
    let is_moving = |(_, output): &(usize, &Output)| output.times.len() > 1;
    let moving: Vec<(usize, &Output)> = scene.outputs.iter().enumerate().filter(is_moving).collect();
    let groups = moving.chunk_by(|(_, one), (_, other)| one.times == other.times);
    let one = |outputs: &[(usize, &Output)]| {
        let field =
            |&(index, _): &(usize, &Output)| (scene.given.len() + index, &scene.outputs[index], shared.outputs[index]);
        player(*sample, &outputs.iter().map(field).collect::<Vec<_>>(), shared)
    };
    groups.map(one).collect()
}

/// Outputs with the same times as an animation; the script shows it.
fn player(sample: usize, fields: &[(usize, &Output, [Scale; 2])], shared: &Shared) -> String {
    let Some((_, first, _)) = fields.first() else { return String::new() };
    let last = times_of(first.times.len(), &first.drawn_times()).len() - 1;
    let mut out = format!(
        "<div class=\"player\" hidden><div class=\"controls\"><button type=\"button\" aria-label=\"Play sample {sample}\">Play\
         </button><input type=\"range\" min=\"0\" max=\"{last}\" value=\"0\" step=\"1\" aria-label=\"Snapshot of sample {sample}\">\
         <output></output></div>"
    );
    for (field, output, scales) in fields {
        let maps = output.first_maps(*scales, shared);
        let _ = write!(out, "<div class=\"maps\" style=\"--columns:{}\">", columns(&maps).min(3));
        for (set, map) in maps.iter().enumerate() {
            let title = title(map);
            let view = if map.layout.is_curve() {
                curves(map)
            } else {
                let [width, height] = map.size();
                let smooth = if map.layout.positions().is_some() { " class=\"smooth\"" } else { "" };
                format!(
                    "<canvas{smooth} width=\"{width}\" height=\"{height}\" role=\"img\" aria-label=\"{title}\"></canvas>"
                )
            };
            let all = [&output.truth, &output.prediction, &output.error][set.min(2)];
            let all = all.iter().flat_map(|state| &state.values).copied();
            let bar = if map.has_bar() {
                colours(&map.scale, map.scale.ends(all, |end| short(end.into())))
            } else {
                String::new()
            };
            let _ = write!(
                out,
                "<div class=\"map\" data-field=\"{field}\" data-set=\"{set}\"><p>{title}</p><div class=\"{}\">{view}</div>{bar}</div>",
                class(map)
            );
        }
        out += "</div>";
    }
    out + "</div>"
}

/// The columns of all rows of a card, so that all maps have one size: few if the maps are long and flat.
fn columns<'a>(maps: impl IntoIterator<Item = &'a Map>) -> usize {
    let flat = |map: &Map| !map.layout.is_curve() && map.size()[0] > 3 * map.size()[1];
    if maps.into_iter().any(flat) { 2 } else { 4 }
}

/// The title of a map as HTML; `snapshot 1/10 (mm)` stays on one line.
fn title(map: &Map) -> String {
    let (name, last) = map.title.rsplit_once(", ").unwrap_or(("", &map.title));
    let last = last.replace(' ', "\u{a0}");
    let title = if name.is_empty() { map.title.clone() } else { format!("{name}, {last}") };
    escape(&title.replace(" - ", " − "))
}

/// The class of the picture of a map; surfaces in space can be turned.
fn class(map: &Map) -> &'static str {
    if map.layout.is_solid() { "view solid" } else { "view" }
}

/// A map under its title, with a colour bar if `bar`. `source` is its field, its time and its set among the values of the card.
fn drawn(map: &Map, fine: usize, source: Option<[usize; 3]>, bar: bool) -> Result<String> {
    let title = title(map);
    let view = if map.layout.is_curve() {
        curves(map)
    } else {
        let picture = base64(&map.picture(fine).png(Some(PAPER))?);
        let [width, height] = map.size();
        let class = if matches!(map.layout, Layout::Grid(_)) { " class=\"plane\"" } else { "" };
        format!(
            "<img{class} alt=\"{title}\" width=\"{width}\" height=\"{height}\" src=\"data:image/png;base64,{picture}\">"
        )
    };
    let alone = std::slice::from_ref(map);
    let bar = if bar { colours(&map.scale, ends(alone, |end| short(end.into()))) } else { String::new() };
    let source = source.map_or_else(String::new, |[field, time, set]| {
        format!(" data-field=\"{field}\" data-time=\"{time}\" data-set=\"{set}\"")
    });
    Ok(format!(
        "<div class=\"map\"{source}><p title=\"{title}\">{title}</p><div class=\"{}\">{view}</div>{bar}</div>",
        class(map)
    ))
}

/// A colour bar with the numbers at its ends.
fn colours(scale: &Scale, ends: [String; 2]) -> String {
    let stops: Vec<_> = scale.stops().map(|[red, green, blue]| format!("#{red:02x}{green:02x}{blue:02x}")).collect();
    let [least, most] = ends.map(|end| escape(&end));
    format!(
        "<div class=\"colours\" style=\"background:linear-gradient(90deg,{})\"></div>\
         <div class=\"ends\"><span>{least}</span><span>{most}</span></div>",
        stops.join(",")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_are_written_with_truth_prediction_and_difference() {
        let number = |name: &str, values: &[f32]| Number { name: name.into(), values: values.to_vec() };
        let html = numbers(&[number("Re, input", &[1000.0]), number("drag <1>", &[0.5, 0.75])]);
        assert!(html.contains("<dt>Re, input</dt><dd>1000</dd>"), "{html}");
        assert!(
            html.contains("<dt>drag &lt;1&gt;</dt><dd>0.5 <small>predicted 0.75, difference 0.25</small>"),
            "{html}"
        );
        assert_eq!(numbers(&[]), "");
    }
}
