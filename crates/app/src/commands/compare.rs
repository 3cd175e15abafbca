//! `lamo compare`: several runs in a table and in a picture.

use super::{require_extension, say, write_file};
use crate::plot::{Canvas, FAINT, INK, PAPER, Rgb, text_width};
use crate::text::{duration, memory, percent, whole};
use anyhow::Result;
use clap::Args;
use lamo::workflow::{self, Comparison, Entry};
use std::path::PathBuf;

const DIFFERENT_TESTS: &str = "the runs were evaluated on different test samples; their errors cannot be compared";

/// Colours of the bars.
const BEST: Rgb = [0x25, 0x63, 0xa8];
const OTHER: Rgb = [0xb4, 0xc4, 0xd8];

/// Pixels of the picture.
const MARGIN: usize = 24;
const COLUMN: usize = 210;
const ROW: usize = 34;
const GAP: usize = 24;

/// `lamo compare`
#[derive(Args)]
pub(crate) struct Compare {
    /// Run folders that were evaluated, or receipts.
    #[arg(required = true)]
    runs: Vec<PathBuf>,
    /// PNG file for the picture.
    #[arg(long, value_name = "PNG", default_value = "compare.png")]
    out: PathBuf,
    /// Print one JSON object on standard output.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(options: &Compare) -> Result<()> {
    require_extension(&options.out, "png")?;
    let comparison = workflow::compare(&options.runs)?;
    if comparison.same_test {
        write_file(&options.out, &draw(&comparison).png(None)?)?;
    }
    if options.json {
        return say(&serde_json::to_string_pretty(&comparison)?);
    }
    say(&table(&comparison))?;
    if comparison.runs.iter().any(|run| run.error != run.relative_l2) {
        say(&format!("error: {}", comparison.metric))?;
    }
    if !comparison.differences.is_empty() {
        let differences = comparison.differences.iter();
        let told: Vec<String> =
            differences.map(|difference| format!("{} {}", difference.key, difference.values.join(", "))).collect();
        say(&format!("trained differently: {}", told.join("; ")))?;
    }
    match comparison.same_test {
        true => say(&format!("picture: {}", options.out.display())),
        false => say(&format!("{DIFFERENT_TESTS}, so no picture is drawn")),
    }
}

/// What a column shows of a run: the length of its bar, and its text.
type Show = fn(&Entry) -> (f64, String);

const COLUMNS: [(&str, Show); 4] = [
    ("error", |run| (run.error, percent(run.error))),
    ("parameters", |run| (run.parameters as f64, whole(run.parameters))),
    ("training step", |run| (run.step_seconds, duration(run.step_seconds))),
    ("memory per step", |run| (run.step_bytes.map_or(f64::NAN, |bytes| bytes as f64), memory(run.step_bytes))),
];

fn table(comparison: &Comparison) -> String {
    let mut rows = vec![
        ["run", "model", "error", "median", "worst", "parameters", "epochs", "training", "step", "memory"]
            .map(str::to_owned),
    ];
    rows.extend(comparison.runs.iter().map(|run| {
        [
            run.run.clone(),
            comparison.label(run),
            percent(run.error),
            percent(run.median),
            percent(run.worst),
            whole(run.parameters),
            epochs(run),
            duration(run.training_seconds),
            duration(run.step_seconds),
            memory(run.step_bytes),
        ]
    }));
    let widths: [usize; 10] =
        std::array::from_fn(|column| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0));
    let line = |row: &[String; 10]| {
        let cells = row.iter().zip(widths).enumerate().map(|(column, (cell, width))| match column {
            0 | 1 => format!("{cell:width$}"),
            _ => format!("{cell:>width$}"),
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// All epochs, and the evaluated one where it is not the last.
fn epochs(run: &Entry) -> String {
    match run.evaluated_epoch == run.epochs {
        true => run.epochs.to_string(),
        false => format!("{}, best {}", run.epochs, run.evaluated_epoch),
    }
}

/// A row of bars per run. Shorter bars are better, and the shortest of each column is darker. If the runs have different
/// test samples, errors have no bars and no bar is darker.
pub(crate) fn draw(comparison: &Comparison) -> Canvas {
    let Comparison { same_test, runs, .. } = comparison;
    let label = |run: &Entry| format!("{} ({})", run.run, comparison.label(run));
    let names = runs.iter().map(|run| text_width(&label(run))).max().unwrap_or(0);
    let head = if *same_test { MARGIN } else { MARGIN + ROW };
    let (left, top) = (MARGIN + names + GAP, head + ROW);
    let mut canvas =
        Canvas::new(left + COLUMNS.len() * (COLUMN + GAP) - GAP + MARGIN, top + runs.len() * ROW + MARGIN, PAPER);
    if !same_test {
        canvas.text([MARGIN, MARGIN], DIFFERENT_TESTS, INK);
    }
    for (row, run) in runs.iter().enumerate() {
        canvas.text([MARGIN, top + row * ROW], &label(run), INK);
    }
    for (column, (title, show)) in COLUMNS.iter().enumerate() {
        let x = left + column * (COLUMN + GAP);
        canvas.text([x, head], title, FAINT);
        let most = runs.iter().map(|run| show(run).0).filter(|value| value.is_finite()).fold(0.0, f64::max);
        let least = runs.iter().map(|run| show(run).0).fold(f64::INFINITY, f64::min);
        for (row, run) in runs.iter().enumerate() {
            let (value, text) = show(run);
            let share = if most > 0.0 { (value / most).clamp(0.0, 1.0) } else { 0.0 };
            let y = top + row * ROW;
            canvas.text([x, y], &text, INK);
            if *same_test || column > 0 {
                let colour = if value == least && *same_test { BEST } else { OTHER };
                canvas.fill([x, y + 20], [((COLUMN as f64 * share) as usize).max(2), 6], colour);
            }
        }
    }
    canvas
}

#[cfg(test)]
mod tests {
    use super::*;

    fn comparison(same_test: bool, data: [&str; 2]) -> Comparison {
        let entry = |(data, error): (&str, f64)| Entry {
            run: data.into(),
            benchmark: data.into(),
            data: data.into(),
            model: "fno".into(),
            device: "cpu".into(),
            relative_l2: error,
            error,
            median: error,
            worst: error,
            parameters: 7,
            epochs: 1,
            evaluated_epoch: 1,
            training_seconds: 1.0,
            step_seconds: 0.1,
            step_bytes: Some(64),
        };
        Comparison {
            same_test,
            metric: "mean relative L2 error",
            runs: data.into_iter().zip([0.00368, 0.00375]).map(entry).collect(),
            differences: Vec::new(),
        }
    }

    #[test]
    fn runs_with_different_test_samples_have_no_best_run_and_name_their_data() {
        let best = |comparison: &Comparison| {
            let canvas = draw(comparison);
            (0..1000).flat_map(|x| (0..100).map(move |y| (x, y))).filter(|&(x, y)| canvas.at(x, y) == BEST).count()
        };
        let (same, different) = (comparison(true, ["darcy", "darcy"]), comparison(false, ["darcy", "pipe"]));
        assert!(best(&same) > 0 && best(&different) == 0);
        assert!(table(&different).contains("fno on pipe") && !table(&same).contains("fno on"), "{}", table(&different));
        assert!(!table(&comparison(true, ["mine", "moved"])).contains("fno on"), "a moved data set has two names");
    }

    #[test]
    fn memory_that_was_not_recorded_is_unknown_and_never_the_best() {
        let mut comparison = comparison(true, ["darcy", "darcy"]);
        comparison.runs[0].step_bytes = None;
        let table = table(&comparison);
        assert!(table.lines().nth(1).is_some_and(|line| line.ends_with("unknown")), "{table}");
        let canvas = draw(&comparison);
        let left = MARGIN + text_width("darcy (fno)") + GAP + 3 * (COLUMN + GAP);
        let best_in = |row: usize| canvas.at(left, MARGIN + ROW * (row + 1) + 22) == BEST;
        assert_eq!([best_in(0), best_in(1)], [false, true]);
    }

    #[test]
    fn close_errors_differ_in_the_table() {
        let table = table(&comparison(true, ["darcy", "darcy"]));
        assert!(table.contains("0.3680 %") && table.contains("0.3750 %"), "{table}");
    }
}
