//! `lamo results`: the receipts of a folder as one page of Markdown.

use super::{say, write_file};
use crate::text::{duration, memory};
use anyhow::Result;
use clap::Args;
use lamo::error::counted;
use lamo::inference::evaluate::{Receipt, TrainingDevice};
use lamo::workflow::{self, ResultRow};
use std::fmt::Write;
use std::path::{Component, Path, PathBuf};

const GAP: &str = "–";

/// `lamo results`
#[derive(Args)]
pub(crate) struct Results {
    /// Folder of receipts. Those of your own data and of the preset quick are left out.
    #[arg(default_value = "results")]
    folder: PathBuf,
    /// Write the page to this file instead of printing it. Its links lead to the folder.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(crate) fn run(options: &Results) -> Result<()> {
    let rows = workflow::results(&options.folder)?;
    let (above, text) = match &options.out {
        Some(out) => (out.parent().unwrap_or(Path::new("")), "written"),
        None => (Path::new(""), "printed"),
    };
    let page = page(&rows, &link(above, &options.folder));
    match &options.out {
        Some(out) => {
            write_file(out, page.as_bytes())?;
            let filled = rows.iter().filter(|row| !row.sources.is_empty()).count();
            say(&format!("{}: {text}, {filled} of {} rows have receipts", out.display(), rows.len()))
        }
        None => say(page.trim_end()),
    }
}

/// The way from one folder to another below the same place, with slashes.
fn link(from: &Path, to: &Path) -> String {
    let parts = |path: &Path| -> Vec<String> {
        let normal = path.components().filter(|part| !matches!(part, Component::CurDir));
        normal.map(|part| part.as_os_str().to_string_lossy().into_owned()).collect()
    };
    let whole = |path: &Path| match from.is_absolute() == to.is_absolute() {
        true => path.to_owned(),
        false => {
            std::path::absolute(if path == Path::new("") { Path::new(".") } else { path }).unwrap_or(path.to_owned())
        }
    };
    let (from, to) = (parts(&whole(from)), parts(&whole(to)));
    let same = from.iter().zip(&to).take_while(|(one, other)| one == other).count();
    let up = from[same..].iter().map(|_| "..");
    up.chain(to[same..].iter().map(String::as_str)).collect::<Vec<_>>().join("/")
}

fn page(rows: &[ResultRow], folder: &str) -> String {
    let mut out = String::from(
        "# Results\n\n\
         Mean relative L2 error over the test samples: of our runs, on data of our solvers, and as the paper states it, on the public \
         files. A row with several seeds has their mean and standard deviation; time and memory are those of its first seed; \
         a training beside others took longer than it takes alone. The \
         predictions are computed in float32; tf32 is named where an earlier version computed so. Each row names its receipts, and \
         the list below has the command that repeats it. A dash is a gap: no receipt is there yet.\n\n\
         `lamo results results --out docs/results.md` writes this page; `lamo evaluate RUN --verify RECEIPT` computes the numbers \
         of a receipt again.\n\n\
         | benchmark | model | recipe | error | published | training | memory per step | device | receipts |\n\
         |---|---|---|---|---|---|---|---|---|\n",
    );
    for row in rows {
        let first = row.sources.first().map(|source| &source.receipt);
        let shown = |text: Option<String>| text.unwrap_or_else(|| GAP.to_owned());
        let cells = [
            row.benchmark.to_owned(),
            row.model.to_owned(),
            recipe(row),
            error(row),
            shown(row.published.map(|error| format!("{error:.4}"))),
            shown(first.map(training)),
            shown(first.map(|receipt| memory(receipt.costs.step_bytes))),
            shown(first.map(|receipt| {
                let TrainingDevice { device, gpu } = receipt.training_device();
                gpu.unwrap_or(device)
            })),
            receipts(row, folder),
        ];
        let _ = writeln!(out, "| {} |", cells.join(" | "));
    }
    out += "\n## Commands\n\n";
    for row in rows.iter().filter(|row| !row.sources.is_empty()) {
        for source in &row.sources {
            let _ = writeln!(out, "- `{}`: `{}`", source.file, row.command(source.receipt.seed));
        }
    }
    out
}

/// `authors' recipe`, `best`, and what differs from them.
fn recipe(row: &ResultRow) -> String {
    let preset = if row.preset == "paper" { "authors' recipe" } else { row.preset.as_str() };
    let changes = row.changes.iter().map(|change| format!(", `{change}`"));
    let evaluated = row.evaluated.iter().map(|words| format!(", {words}"));
    let other = if row.same_test { "" } else { ", other test samples than above" };
    format!("{preset}{}{other}", changes.chain(evaluated).collect::<String>())
}

/// `0.00375`, `0.00375 (tf32)`, or `0.00471 ± 0.00012 (3 seeds, 1 in tf32)`.
fn error(row: &ResultRow) -> String {
    let rounded = row.sources.iter().filter(|source| source.receipt.machine.precision == "tf32").count();
    match (row.mean(), row.deviation()) {
        (Some(mean), Some(deviation)) => {
            let rounded = if rounded > 0 { format!(", {rounded} in tf32") } else { String::new() };
            format!("{mean:.5} ± {deviation:.5} ({} seeds{rounded})", row.sources.len())
        }
        (Some(mean), None) => format!("{mean:.5}{}", if rounded > 0 { " (tf32)" } else { "" }),
        _ => GAP.to_owned(),
    }
}

/// `500 epochs, 12 min`, or `500 epochs, 22 min beside 2 others`.
fn training(receipt: &Receipt) -> String {
    let others = receipt.costs.together.map_or(0, |together| together.saturating_sub(1));
    let beside = if others > 0 { format!(" beside {}", counted(others, "other")) } else { String::new() };
    format!("{}, {}{beside}", counted(receipt.epoch, "epoch"), duration(receipt.costs.training_seconds))
}

fn receipts(row: &ResultRow, folder: &str) -> String {
    let linked = |file: &str| match folder {
        "" => format!("[{file}]({file})"),
        folder => format!("[{file}]({folder}/{file})"),
    };
    let links: Vec<_> = row.sources.iter().map(|source| linked(&source.file)).collect();
    if links.is_empty() { GAP.to_owned() } else { links.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_leads_from_the_page_to_the_receipts() {
        let cases =
            [("docs", "results", "../results"), ("", "results", "results"), ("a/b", "a/c", "../c"), ("a", "a", "")];
        for (from, to, expected) in cases {
            assert_eq!(link(from.as_ref(), to.as_ref()), expected, "{from} to {to}");
        }
        let here = std::env::current_dir().unwrap();
        assert_eq!(link("".as_ref(), &here.join("results")), "results", "a folder that is given from the root");
        assert_eq!(link(&here.join("docs"), "results".as_ref()), "../results");
    }
}
