//! The tables of the page, and the cost of a run.

use super::html::escape;
use super::names::{in_unit, unit};
use crate::text::{duration, error, memory, percent, short, whole};
use lamo::error::counted;
use lamo::inference::evaluate::border::Border;
use lamo::inference::evaluate::distribution::{Distribution, SHARES};
use lamo::inference::evaluate::spectrum::Spectrum;
use lamo::inference::evaluate::{Evaluation, OutputErrors, Receipt, Trivial};

/// Number of worst samples listed.
const WORST: usize = 6;

/// All tables. The first `past` snapshots of a time series are input; `outputs` are the names of the outputs.
pub(super) fn tables(evaluation: &Evaluation, past: usize, outputs: &[String]) -> String {
    let mut out = output_errors(&evaluation.outputs);
    out += &trivial(evaluation);
    out += &samples(&evaluation.distribution);
    out += &evaluation.spectrum.as_ref().map_or_else(String::new, wavelengths);
    out += &evaluation.border.as_ref().map_or_else(String::new, border);
    if !evaluation.snapshots.is_empty() {
        out += &snapshots(evaluation, past);
    }
    if !evaluation.channels.is_empty() {
        let row = |(name, error): (&String, &f64)| vec![name.clone(), percent(*error)];
        out += &table("Channels", &outputs.iter().zip(&evaluation.channels).map(row).collect::<Vec<_>>(), "");
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

/// The errors of each output, relative and in its unit; nothing for receipts of earlier versions.
fn output_errors(outputs: &[OutputErrors]) -> String {
    if outputs.is_empty() {
        return String::new();
    }
    let head = [String::new()].into_iter().chain(outputs.iter().map(|output| output.name.replace('_', " ")));
    let mut rows = vec![head.collect::<Vec<_>>()];
    let mut row = |name: &str, value: &dyn Fn(&OutputErrors) -> Option<String>| {
        if outputs.iter().any(|output| value(output).is_some()) {
            let values = outputs.iter().map(|output| value(output).unwrap_or_else(|| "–".to_owned()));
            rows.push([name.to_owned()].into_iter().chain(values).collect());
        }
    };
    let physical = |value: f64, output: &OutputErrors| Some(error(value) + &in_unit(&output.unit));
    row("relative L2", &|output| output.relative_l2.map(percent));
    row("mean absolute error", &|output| physical(output.mae, output));
    row("root mean square error", &|output| physical(output.rmse, output));
    row("largest error", &|output| physical(output.max, output));
    row("R²", &|output| output.r2.map(error));
    row("relative H1", &|output| output.h1.map(percent));
    row("energy spectrum", &|output| output.spectrum.map(percent));
    let note = "All points and times of all test samples. H1 counts value and gradient; “energy spectrum” compares the energies \
                of the wave numbers, without the mean.";
    table("Outputs", &rows, note)
}

/// The model beside predictors that learn nothing; nothing where none could be made.
fn trivial(evaluation: &Evaluation) -> String {
    let named = evaluation.trivial.as_ref().map(Trivial::named).unwrap_or_default();
    if named.is_empty() {
        return String::new();
    }
    let mut rows = vec![vec!["this model".to_owned(), percent(evaluation.headline())]];
    rows.extend(named.into_iter().map(|(name, error)| vec![name.to_owned(), percent(error)]));
    table("Predictors that learn nothing", &rows, "A model that is not better than these has learned nothing of use.")
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
    let moving: Vec<&OutputErrors> = evaluation.outputs.iter().filter(|output| !output.over_time.is_empty()).collect();
    let mut head = vec![String::new(), "relative L2".to_owned()];
    head.extend(moving.iter().map(|output| format!("RMSE of {}{}", output.name.replace('_', " "), unit(&output.unit))));
    let filled = |mut row: Vec<String>| {
        row.resize(head.len(), String::new());
        row
    };
    let mut rows = vec![
        head.clone(),
        filled(vec!["whole time series".into(), percent(evaluation.relative_l2)]),
        filled(vec!["mean over snapshots".into(), percent(evaluation.mean_snapshot())]),
    ];
    for (snapshot, relative) in evaluation.snapshots.iter().enumerate() {
        let mut row = vec![format!("snapshot {}", past + snapshot + 1), percent(*relative)];
        row.extend(
            moving.iter().map(|output| output.over_time.get(snapshot).map_or_else(String::new, |rmse| error(*rmse))),
        );
        rows.push(row);
    }
    let note = match past {
        0 => String::new(),
        1 => "The first snapshot is input.".to_owned(),
        _ => format!("The first {past} snapshots are input."),
    };
    table("Error over time", &rows, &note)
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
