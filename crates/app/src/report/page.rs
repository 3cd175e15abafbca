//! The page itself: one HTML file with its style, charts and pictures inside; it needs no network and no script.

use super::tables::tables;
use super::text::{base64, count, duration, escape, percent, short, whole};
use super::{Content, Picture, charts, names};
use crate::plot::{Map, PAPER, ends, share_colours};
use anyhow::Result;
use lamo::inference::evaluate::Receipt;
use lamo_geometry::Grid;
use std::fmt::Write;

const STYLE: &str = include_str!("page.css");

impl Content<'_> {
    /// The whole file.
    pub(super) fn page(&self) -> Result<String> {
        let (title, receipt) = (escape(&self.title()), self.receipt);
        let mut page = format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
             <title>{title}: {} mean error</title>\n<style>{STYLE}</style></head>\n<body><main>\n",
            percent(receipt.evaluation.relative_l2)
        );
        let _ = writeln!(
            page,
            "<p class=\"over\">lamo {} · {} · seed {}</p><h1>{title}</h1><p class=\"lead\">{}</p>",
            escape(&receipt.lamo),
            escape(&receipt.model),
            receipt.seed,
            escape(&self.sentence())
        );
        page += &facts(receipt);
        page += "<h2>What it predicts</h2><p class=\"under\">Test samples it never saw, from the best to the worst. Truth \
                 and prediction share the truth's colours; the error has its own.</p>\n";
        for picture in self.pictures {
            page += &sample(picture)?;
        }
        page += &self.training();
        page += &self.quality();
        page += &self.provenance();
        page += "</main></body></html>\n";
        Ok(page)
    }

    /// How the training went; nothing where no history is known.
    fn training(&self) -> String {
        let drawn = charts::training(self.history);
        if drawn.is_empty() {
            return drawn;
        }
        format!(
            "<h2>How it learned</h2><p class=\"under\">The training loss as it was minimised, the mean relative L2 error on the \
             test samples, and the learning rate.</p><div class=\"charts\">{drawn}</div>\n"
        )
    }

    /// Where the error sits.
    fn quality(&self) -> String {
        let (evaluation, task) = (&self.receipt.evaluation, &self.report.trained.operator.task);
        let past = task.time.past();
        let mut drawn = charts::histogram(evaluation) + &charts::frames(&evaluation.frames, past);
        drawn += &evaluation.spectrum.as_ref().map_or_else(String::new, charts::waves);
        let missing = match self.report.samples.grid {
            Grid::Cloud { .. } => {
                " A cloud of points has neither waves per side nor a border, so the error is not divided by them."
            }
            Grid::Line { .. } => " By wavelength the error is divided on planes only.",
            Grid::Plane { .. } => "",
        };
        format!(
            "<h2>Where the error is</h2><p class=\"under\">Relative L2 is ‖prediction − truth‖ / ‖truth‖, taken over the whole \
             sample; the mean over the test samples is the number that papers report.{missing}</p>\
             <div class=\"charts\">{drawn}</div><div class=\"tables\">{}</div>\n",
            tables(evaluation, past, &names::outputs(task))
        )
    }

    /// How to repeat the numbers: configuration, data, machine.
    fn provenance(&self) -> String {
        let Receipt { machine, hashes, costs, .. } = self.receipt;
        let mut rows = vec![
            ("device".to_owned(), format!("{}, {}, {}", machine.device, machine.vectors, machine.system)),
            ("precision".into(), machine.precision.clone()),
            ("threads".into(), machine.threads.to_string()),
            ("lamo".into(), self.receipt.lamo.clone()),
            ("seed, seed of the data".into(), format!("{}, {}", self.receipt.seed, self.receipt.data_seed)),
            ("optimiser steps".into(), format!("{} of {}", whole(costs.steps), count(costs.batch, "sample"))),
            ("weights".into(), hashes.weights.clone()),
            ("experiment".into(), hashes.experiment.clone()),
            ("split".into(), hashes.split.clone()),
        ];
        rows.extend(self.receipt.commit.iter().map(|commit| ("commit".to_owned(), commit.clone())));
        rows.extend(hashes.data.iter().map(|(field, hash)| (format!("data, {field}"), hash.clone())));
        let row = |(name, value): &(String, String)| {
            format!("<tr><th>{}</th><td><code>{}</code></td></tr>", escape(name), escape(value))
        };
        format!(
            "<h2>How to repeat it</h2><p class=\"under\">The experiment below is complete; <code>receipt.json</code> holds \
             the numbers of this page, and <code>{}</code> computes them again.</p>\
             <details><summary>Experiment</summary><pre>{}</pre></details>\
             <details><summary>Machine, seeds and SHA-256 of what went in</summary><table class=\"wide\">{}</table></details>\n",
            escape(self.report.repeat),
            escape(self.experiment.trim_end()),
            rows.iter().map(row).collect::<String>()
        )
    }
}

/// The numbers at the top.
fn facts(receipt: &Receipt) -> String {
    let Receipt { evaluation, costs, .. } = receipt;
    let facts = [
        ("mean relative L2".to_owned(), percent(evaluation.relative_l2)),
        ("median".into(), percent(evaluation.distribution.median())),
        ("worst".into(), percent(evaluation.distribution.most())),
        ("parameters".into(), whole(costs.parameters)),
        (format!("training, {}", count(receipt.epoch, "epoch")), duration(costs.training_seconds)),
        ("one prediction".into(), duration(costs.prediction_seconds / evaluation.distribution.count as f64)),
    ];
    let fact = |(place, (name, value)): (usize, &(String, String))| {
        let class = if place == 0 { " class=\"main\"" } else { "" };
        format!("<div{class}><dt>{name}</dt><dd>{value}</dd></div>")
    };
    format!("<dl class=\"facts\">{}</dl>\n", facts.iter().enumerate().map(fact).collect::<String>())
}

/// One sample with its maps.
fn sample(picture: &Picture) -> Result<String> {
    let mut out = format!(
        "<article class=\"sample\"><header><h3>{}</h3><span>sample {} · relative L2 {}</span></header>",
        escape(&picture.name),
        picture.sample,
        percent(picture.error)
    );
    let _ = write!(out, "<p class=\"notes\">{}</p>", escape(&picture.figure.notes.join(" · ")));
    for row in &picture.figure.rows {
        let shared = share_colours(row);
        let _ = write!(out, "<div class=\"maps\" style=\"--columns:{}\">", columns(row));
        for map in row {
            out += &drawn(map, !shared && map.has_bar())?;
        }
        if shared {
            let _ = write!(out, "<div class=\"all\">{}</div>", colours(row));
        }
        out += "</div>";
    }
    Ok(out + "</article>\n")
}

/// Long and flat maps stand two by two.
fn columns(row: &[Map]) -> usize {
    let flat = row.iter().any(|map| map.size()[0] > 3 * map.size()[1]);
    if flat && row.len() == 4 && !share_colours(row) { 2 } else { row.len().max(4) }
}

fn drawn(map: &Map, bar: bool) -> Result<String> {
    let (name, last) = map.title.rsplit_once(", ").unwrap_or(("", &map.title));
    let last = last.replace(' ', "\u{a0}"); // `frame 1/10 (mm)` stays on one line
    let title = if name.is_empty() { map.title.clone() } else { format!("{name}, {last}") };
    let title = escape(&title.replace(" - ", " − "));
    let picture = base64(&map.picture().png(Some(PAPER))?);
    let [width, height] = map.size();
    let bar = if bar { colours(std::slice::from_ref(map)) } else { String::new() };
    Ok(format!(
        "<div class=\"map\"><p title=\"{title}\">{title}</p>\
         <img alt=\"{title}\" width=\"{width}\" height=\"{height}\" src=\"data:image/png;base64,{picture}\">{bar}</div>"
    ))
}

/// The colour bar of maps that share it, with the numbers at its ends.
fn colours(maps: &[Map]) -> String {
    let stops = maps.iter().take(1).flat_map(|map| map.scale.stops());
    let stops: Vec<_> = stops.map(|[red, green, blue]| format!("#{red:02x}{green:02x}{blue:02x}")).collect();
    let [least, most] = ends(maps, |end| short(end.into())).map(|end| escape(&end));
    format!(
        "<div class=\"colours\" style=\"background:linear-gradient(90deg,{})\"></div>\
         <div class=\"ends\"><span>{least}</span><span>{most}</span></div>",
        stops.join(",")
    )
}
