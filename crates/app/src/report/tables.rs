//! The tables of the page, and the cost of a run.

use super::html::escape;
use crate::text::{duration, memory, percent, short, whole};
use lamo::error::counted;
use lamo::inference::evaluate::border::Border;
use lamo::inference::evaluate::distribution::{Distribution, SHARES};
use lamo::inference::evaluate::spectrum::Spectrum;
use lamo::inference::evaluate::{Evaluation, Receipt};

/// Number of worst samples listed.
const WORST: usize = 6;

/// All tables. The first `past` snapshots of a time series are input; `outputs` are the names of the outputs.
pub(super) fn tables(evaluation: &Evaluation, past: usize, outputs: &[String]) -> String {
    let mut out = samples(&evaluation.distribution);
    out += &evaluation.spectrum.as_ref().map_or_else(String::new, wavelengths);
    out += &evaluation.border.as_ref().map_or_else(String::new, border);
    if !evaluation.snapshots.is_empty() {
        out += &snapshots(evaluation, past);
    }
    if !evaluation.channels.is_empty() {
        let row = |(name, error): (&String, &f64)| vec![name.clone(), percent(*error)];
        out += &table("Outputs", &outputs.iter().zip(&evaluation.channels).map(row).collect::<Vec<_>>(), "");
    }
    let worst = evaluation.worst(WORST);
    let rows: Vec<_> =
        worst.iter().map(|sample| vec![format!("sample {}", sample.sample), percent(sample.error)]).collect();
    out + &table("Worst samples", &rows, "")
}

/// Rows of cells; the first cell of each row is a heading.
fn table(title: &str, rows: &[Vec<String>], note: &str) -> String {
    let row = |cells: &Vec<String>| {
        let cell = |(column, cell): (usize, &String)| match column {
            0 => format!("<th>{}</th>", escape(cell)),
            _ => format!("<td>{}</td>", escape(cell)),
        };
        format!("<tr>{}</tr>", cells.iter().enumerate().map(cell).collect::<String>())
    };
    let rows: String = rows.iter().map(row).collect();
    let note = if note.is_empty() { String::new() } else { format!("<p>{note}</p>") };
    format!("<section class=\"table\"><h3>{title}</h3><table>{rows}</table>{note}</section>")
}

fn samples(errors: &Distribution) -> String {
    let mut rows =
        vec![vec!["mean".into(), percent(errors.mean)], vec!["standard deviation".into(), percent(errors.deviation)]];
    for (share, error) in SHARES.iter().zip(errors.quantiles) {
        let name = match share {
            0.0 => "best".to_owned(),
            0.5 => "median".to_owned(),
            1.0 => "worst".to_owned(),
            share => format!("{}th percentile", short(100.0 * share)),
        };
        rows.push(vec![name, percent(error)]);
    }
    table("Test samples", &rows, &format!("{}.", counted(errors.count, "test sample")))
}

fn wavelengths(spectrum: &Spectrum) -> String {
    let mut rows = vec![["waves per side", "error", "in band", "share"].map(str::to_owned).to_vec()];
    for band in spectrum.bands().into_iter().filter(|band| !band.waves.is_empty()) {
        let waves = format!("{} {}–{}", band.name, band.waves.start, band.waves.end - 1);
        let share = format!("{} %", short(100.0 * band.share));
        rows.push(vec![waves, percent(band.error), percent(band.relative), share]);
    }
    let note = "“Error” is relative to the whole truth, “in band” to the truth of the same band; “share” is the share of the \
                squared error.";
    table("Wavelengths", &rows, note)
}

fn border(border: &Border) -> String {
    let rows = [
        vec![format!("border, {}", counted(border.points, "point")), percent(border.border)],
        vec!["inside".into(), percent(border.inside)],
    ];
    table("Border and inside", &rows, "Root mean square error, relative to the root mean square of the truth.")
}

fn snapshots(evaluation: &Evaluation, past: usize) -> String {
    let mut rows = vec![
        vec!["whole time series".into(), percent(evaluation.relative_l2)],
        vec!["mean over snapshots".into(), percent(evaluation.mean_snapshot())],
    ];
    let errors = evaluation.snapshots.iter().enumerate();
    rows.extend(errors.map(|(snapshot, error)| vec![format!("snapshot {}", past + snapshot + 1), percent(*error)]));
    let note = match past {
        0 => String::new(),
        1 => "The first snapshot is input.".to_owned(),
        _ => format!("The first {past} snapshots are input."),
    };
    table("Snapshots", &rows, &note)
}

/// The cost of the run in one line.
pub(crate) fn costs(receipt: &Receipt) -> String {
    let costs = &receipt.costs;
    let changed: Vec<_> = receipt.changed.iter().map(ToString::to_string).collect();
    let changed =
        if changed.is_empty() { String::new() } else { format!("; recipe changed after step {}", changed.join(", ")) };
    format!(
        "{} parameters, {} per step of {}, memory per step {}{changed}",
        whole(costs.parameters),
        duration(costs.step_seconds()),
        counted(costs.batch, "sample"),
        memory(costs.step_bytes)
    )
}
