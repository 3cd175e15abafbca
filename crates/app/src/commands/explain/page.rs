//! The page of an explanation: one file that needs no network.

use super::drawings::{self, HEADS, SLICES};
use super::files::ArrayFile;
use super::{moment, remark, subject};
use crate::plot::{Drawing, Ink};
use crate::report::escape;
use crate::text::{percent, short};
use lamo::inference::explain::{Domain, Explained};
use lamo::workflow::ExplainedSample;
use lamo_geometry::Grid;
use std::fmt::Write;

const STYLE: &str = include_str!("../paper/page.css");

/// A heading, a picture and what it shows.
fn section(page: &mut String, title: &str, drawing: Option<&Drawing>, caption: &str) {
    let _ = write!(page, "<section><h2>{}</h2>", escape(title));
    if let Some(drawing) = drawing {
        let _ = write!(page, "<figure>{}</figure>", drawing.element(title));
    }
    let _ = writeln!(page, "<p class=\"caption\">{}</p></section>", escape(caption));
}

/// A table of words and numbers.
fn table(page: &mut String, class: &str, head: &[&str], rows: &[Vec<String>]) {
    let _ = write!(page, "<div class=\"wide\"><table class=\"{class}\"><thead><tr>");
    head.iter().for_each(|word| *page += &format!("<th>{}</th>", escape(word)));
    *page += "</tr></thead><tbody>";
    for row in rows {
        *page += "<tr>";
        for (place, word) in row.iter().enumerate() {
            let tag = if place == 0 { "th" } else { "td" };
            let _ = write!(page, "<{tag}>{}</{tag}>", escape(word));
        }
        *page += "</tr>";
    }
    *page += "</tbody></table></div>";
}

/// The text of the page.
pub(super) fn page(explained: &ExplainedSample, sample: usize, arrays: &[ArrayFile]) -> String {
    let title = subject(explained, sample);
    let mut page = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\"><title>{0}</title>\n\
         <style>{1}{2}{STYLE}.half figure{{max-width:26rem}}details{{margin:.4rem 0}}</style></head>\n<body><main>\n<h1>{0}</h1>\n",
        escape(&title),
        Ink::variables(),
        Ink::dark_classes(),
    );
    let layers = &explained.explanation.layers;
    let _ = write!(page, "<p>Relative error of the sample: <b>{}</b>.", percent(explained.evaluation.relative_l2));
    let moment = moment(explained);
    if !moment.is_empty() {
        let _ = write!(page, " Fields, matrices and influences are those {}.", escape(&moment));
    }
    remark(layers).iter().for_each(|remark| page += &format!(" {}", escape(remark)));
    page += "</p>\n";
    fields(&mut page, explained);
    if !layers.is_empty() {
        matrices(&mut page, layers);
        tokens(&mut page, explained);
    }
    errors(&mut page, explained);
    files(&mut page, arrays);
    page + "</main></body></html>\n"
}

fn fields(page: &mut String, explained: &ExplainedSample) {
    let influence = &explained.explanation.influence;
    let of = if influence.of == "positions" { "positions of the points" } else { "input fields" };
    let layer = match explained.samples.grid {
        Grid::Volume { layers, .. } => format!(" Maps show layer {} of {layers}.", influence.point % layers),
        _ => String::new(),
    };
    let caption = format!(
        "Output channel {} of the sample. The ring is the asked point {}. Influence: the length of the derivative of the output at the \
         asked point with respect to the {of} at each point, as the power of ten relative to the largest. Inputs count in deviations of the training \
         samples where the experiment normalises them.{layer}",
        influence.channel, influence.point
    );
    section(
        page,
        "The sample, and what the output at one point depends on",
        Some(&drawings::sample(explained)),
        &caption,
    );
}

fn matrices(page: &mut String, layers: &[Explained]) {
    let caption = "Hidden matrices: the mixer computes y = M x + r with a matrix M that depends on the tokens. Shown is |M| over \
                   its row sums, mean over the heads, on one scale that ends at the 99.5th percentile off the diagonal; attention is so already.";
    section(page, "Hidden matrices by layer", Some(&drawings::matrices(layers)), caption);
    let word = |value: Option<f64>| value.map_or("–".to_owned(), short);
    let row = |(number, layer): (usize, &Explained)| {
        let spread = match &layer.domain {
            Some(Domain::Slices { spread, .. }) => short(*spread),
            _ => "–".to_owned(),
        };
        vec![
            format!("{} ({})", number + 1, layer.mixer),
            layer.tokens.to_string(),
            layer.heads.len().to_string(),
            short(layer.entropy),
            percent(layer.heaviest),
            word(layer.cosine[0]),
            word(layer.cosine[1]),
            spread,
            short(layer.first_state),
            short(layer.residual),
        ]
    };
    let head = [
        "layer",
        "tokens",
        "heads",
        "entropy",
        "three columns",
        "cosine before",
        "after",
        "slices/point",
        "‖r‖/‖y‖",
        "residual",
    ];
    table(page, "", &head, &layers.iter().enumerate().map(row).collect::<Vec<_>>());
    section(
        page,
        "Tokens and matrices by layer",
        Some(&drawings::by_layer(layers)),
        "Cosine: the mean over all pairs of tokens. Row entropy: 0 where each token takes from one token, 1 where it takes from all \
         alike. Three columns: the share of the three heaviest columns. Slices/point: among how many slices a point is divided. r is what a \
         learned first state adds. Residual: ‖Mx + r − y‖/‖y‖, what the matrices leave unexplained, which is rounding.",
    );
    for (number, layer) in layers.iter().enumerate() {
        let open = if number == 0 { " open" } else { "" };
        let title = format!("Signed matrices of layer {}", number + 1);
        let some = if layer.heads.len() > HEADS {
            format!(", the first {HEADS} of {} heads", layer.heads.len())
        } else {
            String::new()
        };
        let _ = writeln!(
            page,
            "<details{open}><summary>{title}{some}</summary><figure>{}</figure></details>",
            drawings::heads(layer).element(&title)
        );
    }
}

fn tokens(page: &mut String, explained: &ExplainedSample) {
    let Some(drawing) = drawings::tokens(explained) else { return };
    let soft = matches!(
        explained.explanation.layers.first().and_then(|layer| layer.domain.as_ref()),
        Some(Domain::Slices { .. })
    );
    let caption = match soft {
        true => {
            "The slice of the first head with the largest weight at each point. Slices are numbered from left to right by their \
                 centres."
        }
        false => {
            "What the token of the asked point (ring) takes from each patch: its row of |M| over the row sum, mean over the heads."
        }
    };
    section(page, if soft { "Where the slices live" } else { "What one patch sees" }, Some(&drawing), caption);
    if let Some((layer, drawing)) = drawings::slices(explained) {
        let title = format!("The {SLICES} heaviest slices of layer {layer}, first head");
        section(page, &title, Some(&drawing), "The weight of each point in the slice.");
    }
}

fn errors(page: &mut String, explained: &ExplainedSample) {
    if let Some(spectrum) = &explained.evaluation.spectrum {
        let bands = spectrum.bands().into_iter().filter(|band| !band.waves.is_empty()).map(|band| {
            format!(
                "{} waves ({} to {}): {} of the squared error",
                band.name,
                band.waves.start,
                band.waves.end - 1,
                percent(band.share)
            )
        });
        *page += "<div class=\"half\">";
        section(
            page,
            "Error by wavelength",
            Some(&drawings::waves(spectrum)),
            &format!("{}.", bands.collect::<Vec<_>>().join("; ")),
        );
        *page += "</div>";
    }
    let mut caption =
        "Error: root mean square over the points of the region, over that of the truth at all points.".to_owned();
    if let Some(border) = &explained.evaluation.border {
        let _ =
            write!(caption, " Outermost points: {}; inner points: {}.", percent(border.border), percent(border.inside));
    }
    section(page, "Error and influence by region", Some(&drawings::regions(explained)), &caption);
    let row = |region: &lamo::workflow::Region| {
        let [error, share, influence] = [region.error, region.share, region.influence].map(percent);
        vec![region.name.clone(), region.points.to_string(), error, share, influence]
    };
    let rows: Vec<Vec<String>> = explained.regions.iter().map(row).collect();
    table(page, "", &["region", "points", "relative error", "share of error", "share of influence"], &rows);
}

fn files(page: &mut String, arrays: &[ArrayFile]) {
    *page += "<section><h2>Arrays beside this page</h2>";
    let row = |file: &ArrayFile| {
        let shape: Vec<String> = file.shape.iter().map(ToString::to_string).collect();
        vec![file.name.clone(), shape.join(" × "), file.holds.clone()]
    };
    table(page, "words", &["file", "shape", "holds"], &arrays.iter().map(row).collect::<Vec<_>>());
    *page += "<p class=\"caption\">explain.json has the numbers of this page.</p></section>\n";
}
