//! The tables of the page, and what a run cost.

use super::text::{count, duration, escape, held, percent, short, whole};
use lamo::inference::evaluate::border::Border;
use lamo::inference::evaluate::distribution::{Distribution, SHARES};
use lamo::inference::evaluate::spectrum::Spectrum;
use lamo::inference::evaluate::{Evaluation, Receipt};

/// Samples listed among the worst.
const WORST: usize = 6;

/// All tables: `past` frames of a film were given, `outputs` are the names of what was asked for.
pub(super) fn tables(evaluation: &Evaluation, past: usize, outputs: &[String]) -> String {
    let mut out = samples(&evaluation.distribution);
    out += &evaluation.spectrum.as_ref().map_or_else(String::new, wavelengths);
    out += &evaluation.border.as_ref().map_or_else(String::new, border);
    if !evaluation.frames.is_empty() {
        out += &frames(evaluation, past);
    }
    if !evaluation.channels.is_empty() {
        let row = |(name, error): (&String, &f64)| vec![name.clone(), percent(*error)];
        out += &table("Outputs", &outputs.iter().zip(&evaluation.channels).map(row).collect::<Vec<_>>(), "");
    }
    let worst = evaluation.worst(WORST);
    let row = |case: &lamo::inference::evaluate::Case| vec![format!("sample {}", case.sample), percent(case.error)];
    out + &table("Worst samples", &worst.iter().map(row).collect::<Vec<_>>(), "")
}

/// Rows of cells, the first cell of each a heading.
fn table(title: &str, rows: &[Vec<String>], note: &str) -> String {
    let row = |cells: &Vec<String>| {
        let cell = |(place, cell): (usize, &String)| match place {
            0 => format!("<th>{}</th>", escape(cell)),
            _ => format!("<td>{}</td>", escape(cell)),
        };
        format!("<tr>{}</tr>", cells.iter().enumerate().map(cell).collect::<String>())
    };
    let rows: String = rows.iter().map(row).collect();
    let note = if note.is_empty() { String::new() } else { format!("<p>{note}</p>") };
    format!("<section class=\"table\"><h3>{title}</h3><table>{rows}</table>{note}</section>")
}

fn samples(spread: &Distribution) -> String {
    let mut rows =
        vec![vec!["mean".into(), percent(spread.mean)], vec!["standard deviation".into(), percent(spread.deviation)]];
    for (share, error) in SHARES.iter().zip(spread.quantiles) {
        let name = match share {
            0.0 => "best".to_owned(),
            0.5 => "median".to_owned(),
            1.0 => "worst".to_owned(),
            share => format!("{} % are better", short(100.0 * share)),
        };
        rows.push(vec![name, percent(error)]);
    }
    table("Samples", &rows, &format!("{}.", count(spread.count, "test sample")))
}

fn wavelengths(spectrum: &Spectrum) -> String {
    let mut rows = vec![["waves", "error", "own band", "share"].map(str::to_owned).to_vec()];
    for band in spectrum.bands().into_iter().filter(|band| !band.waves.is_empty()) {
        let waves = format!("{} {}–{}", band.name, band.waves.start, band.waves.end - 1);
        let share = format!("{} %", short(100.0 * band.share));
        rows.push(vec![waves, percent(band.error), percent(band.relative), share]);
    }
    let note = "Waves per side; error against the whole truth, against the truth of its own band, and its share of the \
                squared error.";
    table("Wavelengths", &rows, note)
}

fn border(border: &Border) -> String {
    let rows = [
        vec![format!("border, {}", count(border.points, "point")), percent(border.border)],
        vec!["inside".into(), percent(border.inside)],
    ];
    table("Border and inside", &rows, "Root mean square error in units of the truth's.")
}

fn frames(evaluation: &Evaluation, past: usize) -> String {
    let mut rows = vec![
        vec!["whole film".into(), percent(evaluation.relative_l2)],
        vec!["mean of the frames".into(), percent(evaluation.mean_frame())],
    ];
    let frames = evaluation.frames.iter().enumerate();
    rows.extend(frames.map(|(frame, error)| vec![format!("frame {}", past + frame + 1), percent(*error)]));
    let note = if past > 0 { format!("{} given.", count(past, "frame")) } else { String::new() };
    table("Frames", &rows, &note)
}

/// What the run took, in a line.
pub(crate) fn costs(receipt: &Receipt) -> String {
    let costs = &receipt.costs;
    let changed: Vec<_> = receipt.changed.iter().map(ToString::to_string).collect();
    let changed =
        if changed.is_empty() { String::new() } else { format!("; recipe changed after step {}", changed.join(", ")) };
    format!(
        "{} parameters, {} per step of {}, memory of a step {}{changed}",
        whole(costs.parameters),
        duration(costs.step_seconds()),
        count(costs.batch, "sample"),
        held(costs.step_bytes)
    )
}
