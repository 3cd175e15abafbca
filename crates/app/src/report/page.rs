//! The page itself: one HTML file with its style, charts and pictures inside; it needs no network and no script.

use super::svg::{Chart, Scaling, Series, Shape};
use super::text::{base64, bytes, duration, escape, percent, short, whole};
use super::{Content, Picture};
use crate::plot::{Map, PAPER, Scale, share_colours};
use anyhow::Result;
use lamo::evaluate::distribution::SHARES;
use lamo::evaluate::{Evaluation, Receipt};
use lamo::run::Line;
use std::fmt::Write;

const STYLE: &str = include_str!("page.css");
/// Samples listed among the worst.
const WORST: usize = 6;
/// Bars of the histogram.
const BARS: usize = 24;

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
                 and prediction share their colours; the error has its own.</p>\n";
        for picture in self.pictures {
            page += &sample(picture)?;
        }
        page += &training(self.history);
        page += &quality(&receipt.evaluation);
        page += &self.provenance();
        page += "</main></body></html>\n";
        Ok(page)
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
            ("optimiser steps".into(), format!("{} of {} samples", whole(costs.steps), costs.batch)),
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
             the numbers of this page, and <code>lamo evaluate --verify receipt.json</code> computes them again.</p>\
             <details><summary>Experiment</summary><pre>{}</pre></details>\
             <details><summary>Machine, seeds and SHA-256 of what went in</summary><table class=\"wide\">{}</table></details>\n",
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
        (format!("training, {} epochs", receipt.epoch), duration(costs.training_seconds)),
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
    for row in &picture.figure.rows {
        let shared = share_colours(row);
        let _ = write!(out, "<div class=\"maps\" style=\"--columns:{}\">", columns(row));
        for map in row {
            out += &drawn(map, !shared && !map.scale.is_plain())?;
        }
        if shared {
            let _ = write!(out, "<div class=\"all\">{}</div>", colours(&row[0].scale));
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
    let title = escape(&map.title.replace(" - ", " − "));
    let picture = base64(&map.picture().png(Some(PAPER))?);
    let [width, height] = map.size();
    let bar = if bar { colours(&map.scale) } else { String::new() };
    Ok(format!(
        "<div class=\"map\"><p title=\"{title}\">{title}</p>\
         <img alt=\"{title}\" width=\"{width}\" height=\"{height}\" src=\"data:image/png;base64,{picture}\">{bar}</div>"
    ))
}

/// A colour bar with the numbers at its ends.
fn colours(scale: &Scale) -> String {
    let stops: Vec<_> = scale.stops().map(|[red, green, blue]| format!("#{red:02x}{green:02x}{blue:02x}")).collect();
    format!(
        "<div class=\"colours\" style=\"background:linear-gradient(90deg,{})\"></div>\
         <div class=\"ends\"><span>{}</span><span>{}</span></div>",
        stops.join(","),
        short(scale.least.into()),
        short(scale.most.into())
    )
}

/// How the training went; nothing where no history is known.
fn training(history: &[Line]) -> String {
    if history.is_empty() {
        return String::new();
    }
    let points = |value: &dyn Fn(&Line) -> Option<f64>| -> Vec<(f64, f64)> {
        history.iter().filter_map(|line| Some((line.epoch as f64, value(line)?))).collect()
    };
    let line = |name, points| Series { name, shape: Shape::Line, points };
    let losses = Chart {
        title: "Error".into(),
        across: "epoch",
        scaling: Scaling::Logarithmic,
        percent: false,
        series: vec![
            line("training loss", points(&|line| Some(line.train))),
            line("test error", points(&|line| line.test)),
        ],
        mark: None,
    };
    let rate = Chart {
        title: "Learning rate".into(),
        across: "epoch",
        scaling: Scaling::Linear,
        percent: false,
        series: vec![line("rate", points(&|line| Some(line.rate)))],
        mark: None,
    };
    format!(
        "<h2>How it learned</h2><p class=\"under\">The training loss as it was minimised, the mean relative L2 error on the \
         test samples, and the learning rate.</p><div class=\"charts\">{}{}</div>\n",
        losses.draw(),
        rate.draw()
    )
}

/// Where the error sits.
fn quality(evaluation: &Evaluation) -> String {
    let mut charts = histogram(evaluation);
    if !evaluation.frames.is_empty() {
        let frames = evaluation.frames.iter().enumerate().map(|(frame, error)| ((frame + 1) as f64, *error));
        let chart = Chart {
            title: "Error of each frame".into(),
            across: "frame",
            scaling: Scaling::Linear,
            percent: true,
            series: vec![Series { name: "error", shape: Shape::Bars, points: frames.collect() }],
            mark: None,
        };
        charts += &chart.draw();
    }
    if let Some(spectrum) = &evaluation.spectrum {
        let rings = |energies: &[f64]| -> Vec<(f64, f64)> {
            energies.iter().enumerate().map(|(wave, energy)| (wave as f64, energy.sqrt())).collect()
        };
        let line = |name, points| Series { name, shape: Shape::Line, points };
        let chart = Chart {
            title: "By wave number".into(),
            across: "waves per side",
            scaling: Scaling::Logarithmic,
            percent: false,
            series: vec![line("error", rings(&spectrum.error)), line("truth", rings(&spectrum.truth))],
            mark: None,
        };
        charts += &chart.draw();
    }
    format!(
        "<h2>Where the error is</h2><p class=\"under\">Relative L2 is ‖prediction − truth‖ / ‖truth‖, taken over the whole \
         sample; the mean over the test samples is the number that papers report.</p>\
         <div class=\"charts\">{charts}</div><div class=\"tables\">{}</div>\n",
        tables(evaluation)
    )
}

fn histogram(evaluation: &Evaluation) -> String {
    let [least, most] = [evaluation.distribution.least(), evaluation.distribution.most()];
    let width = (most - least) / BARS as f64;
    if !(width.is_finite() && width > 0.0) {
        return String::new();
    }
    let mut counts = [0.0; BARS];
    for case in &evaluation.cases {
        counts[(((case.error - least) / width) as usize).min(BARS - 1)] += 1.0;
    }
    let bar = |(place, count): (usize, &f64)| (100.0 * (least + (place as f64 + 0.5) * width), *count);
    Chart {
        title: "Errors of the samples".into(),
        across: "relative L2 in percent",
        scaling: Scaling::Linear,
        percent: false,
        series: vec![Series {
            name: "samples",
            shape: Shape::Bars,
            points: counts.iter().enumerate().map(bar).collect(),
        }],
        mark: Some((100.0 * evaluation.relative_l2, format!("mean {}", percent(evaluation.relative_l2)))),
    }
    .draw()
}

fn tables(evaluation: &Evaluation) -> String {
    let rows = |rows: Vec<Vec<String>>| -> String {
        let row = |cells: &Vec<String>| {
            let cells = cells.iter().enumerate();
            let cell = |(place, cell): (usize, &String)| match place {
                0 => format!("<th>{}</th>", escape(cell)),
                _ => format!("<td>{}</td>", escape(cell)),
            };
            format!("<tr>{}</tr>", cells.map(cell).collect::<String>())
        };
        rows.iter().map(row).collect()
    };
    let table = |title: &str, cells: Vec<Vec<String>>, note: &str| {
        let note = if note.is_empty() { String::new() } else { format!("<p>{note}</p>") };
        format!("<section class=\"table\"><h3>{title}</h3><table>{}</table>{note}</section>", rows(cells))
    };
    let words = |cells: &[&str]| -> Vec<String> { cells.iter().map(|&cell| cell.to_owned()).collect() };
    let spread = &evaluation.distribution;
    let mut cells =
        vec![vec!["mean".into(), percent(spread.mean)], vec!["standard deviation".into(), percent(spread.deviation)]];
    for (share, error) in SHARES.iter().zip(spread.quantiles) {
        let name = match share {
            0.0 => "best".to_owned(),
            0.5 => "median".to_owned(),
            1.0 => "worst".to_owned(),
            share => format!("{} % are better", short(100.0 * share)),
        };
        cells.push(vec![name, percent(error)]);
    }
    let mut out = table("Samples", cells, &format!("{} test samples.", whole(spread.count)));
    if let Some(spectrum) = &evaluation.spectrum {
        let mut cells = vec![words(&["waves", "error", "own band", "share"])];
        for band in spectrum.bands().into_iter().filter(|band| !band.waves.is_empty()) {
            let waves = format!("{} {}–{}", band.name, band.waves.start, band.waves.end - 1);
            cells.push(vec![waves, percent(band.error), percent(band.relative), percent(band.share)]);
        }
        let note = "Waves per side; error against the whole truth, against the truth of its own band, and its share of the \
                    squared error.";
        out += &table("Wavelengths", cells, note);
    }
    if let Some(border) = &evaluation.border {
        let cells = vec![
            vec![format!("border, {} points", whole(border.points)), percent(border.border)],
            vec!["inside".into(), percent(border.inside)],
        ];
        out += &table("Border and inside", cells, "Root mean square error in units of the truth's.");
    }
    if !evaluation.frames.is_empty() {
        let mut cells: Vec<_> = (evaluation.frames.iter().enumerate())
            .map(|(frame, error)| vec![format!("frame {}", frame + 1), percent(*error)])
            .collect();
        cells.insert(0, vec!["whole film".into(), percent(evaluation.relative_l2)]);
        cells.insert(1, vec!["mean of the frames".into(), percent(evaluation.mean_frame())]);
        out += &table("Frames", cells, "");
    }
    if !evaluation.channels.is_empty() {
        let channel = |(channel, error): (usize, &f64)| vec![format!("output {}", channel + 1), percent(*error)];
        out += &table("Outputs", evaluation.channels.iter().enumerate().map(channel).collect(), "");
    }
    let worst = evaluation.worst(WORST);
    let cells = worst.iter().map(|case| vec![format!("sample {}", case.sample), percent(case.error)]).collect();
    out + &table("Worst samples", cells, "")
}

/// What the run took, in a line.
pub(crate) fn costs(receipt: &Receipt) -> String {
    let costs = &receipt.costs;
    let changed: Vec<_> = receipt.changed.iter().map(ToString::to_string).collect();
    let changed =
        if changed.is_empty() { String::new() } else { format!("; recipe changed after step {}", changed.join(", ")) };
    format!(
        "{} parameters, {} per step of {} samples, {} planned for a step{changed}",
        whole(costs.parameters),
        duration(costs.step_seconds()),
        costs.batch,
        bytes(costs.step_bytes)
    )
}
