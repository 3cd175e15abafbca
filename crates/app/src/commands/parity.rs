//! `lamo parity`: fixtures of the authors' code against ours, one line each.

use super::say;
use anyhow::{Result, bail};
use clap::Args;
use lamo::inference::parity::{self, Measure, Outcome};
use lamo_tensor::{Device, Precision};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// `lamo parity`
#[derive(Args)]
pub(crate) struct Parity {
    /// Model fixture folders, operator fixtures (.json), or folders that hold any of them.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Where to compute.
    #[arg(long, default_value = "cpu")]
    device: Device,
    /// What products, convolutions and scans round to on a card: f32, tf32 or bf16, which leaves scans in tf32.
    #[arg(long, default_value = "f32")]
    precision: Precision,
    /// One JSON object on standard output.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Pass,
    Fail,
    /// Nothing was compared.
    Skip,
    /// The fixture itself cannot be used.
    Broken,
}

#[derive(Serialize)]
struct Row {
    fixture: String,
    verdict: Verdict,
    measures: Vec<Measure>,
    /// Why a fixture was skipped or is broken.
    reason: Option<String>,
}

#[derive(Serialize)]
struct Report {
    device: String,
    passed: bool,
    fixtures: Vec<Row>,
}

pub(crate) fn run(options: &Parity) -> Result<()> {
    let mut rows = Vec::new();
    for path in &options.paths {
        let (fixtures, missing) = match parity::find(path) {
            Ok(fixtures) => (fixtures, None),
            Err(error) => (Vec::new(), Some(broken(path, &error))),
        };
        let checked = fixtures.iter().map(|fixture| {
            parity::check_on(fixture, options.device, options.precision)
                .map_or_else(|error| broken(fixture, &error), row)
        });
        for row in checked.chain(missing) {
            if !options.json {
                say(&line(&row))?;
            }
            rows.push(row);
        }
    }
    let complaint = complaint(&rows);
    if options.json {
        say(&serde_json::to_string_pretty(&Report {
            device: options.device.to_string(),
            passed: complaint.is_none(),
            fixtures: rows,
        })?)?;
    }
    complaint.map_or(Ok(()), |sentence| bail!(sentence))
}

fn row(outcome: Outcome) -> Row {
    let verdict = match (outcome.passed(), &outcome.skipped) {
        (_, Some(_)) => Verdict::Skip,
        (true, None) => Verdict::Pass,
        (false, None) => Verdict::Fail,
    };
    Row { fixture: outcome.fixture, verdict, measures: outcome.measures, reason: outcome.skipped }
}

fn broken(fixture: &Path, error: &parity::Error) -> Row {
    Row {
        fixture: parity::name(fixture),
        verdict: Verdict::Broken,
        measures: Vec::new(),
        reason: Some(error.to_string()),
    }
}

fn line(row: &Row) -> String {
    let mut words = vec![format!("{:28}", row.fixture)];
    words.extend(row.measures.iter().map(describe));
    words.push(match (row.verdict, row.reason.as_deref().unwrap_or_default()) {
        (Verdict::Pass, _) => "pass".to_owned(),
        (Verdict::Fail, _) => "FAIL".to_owned(),
        (Verdict::Skip, reason) => format!("skip: {reason}"),
        (Verdict::Broken, reason) => format!("FAIL: {reason}"),
    });
    words.join("  ")
}

/// `gradient 2.0e-6 (in_project_x.bias)`
fn describe(measure: &Measure) -> String {
    let Measure { subject, tensor, error, allowed } = measure;
    let beyond = if error <= allowed { String::new() } else { format!(" > {allowed:.0e}") };
    let name = tensor.trim_start_matches("grad.").trim_start_matches("param.");
    let place = if *subject == "gradient" { format!(" ({name})") } else { String::new() };
    format!("{subject} {error:.1e}{beyond}{place}")
}

/// One sentence about what did not pass, if anything.
fn complaint(rows: &[Row]) -> Option<String> {
    let failed: Vec<_> = rows.iter().filter(|row| matches!(row.verdict, Verdict::Fail | Verdict::Broken)).collect();
    match failed.as_slice() {
        [] => None,
        [Row { reason: Some(reason), .. }] => Some(reason.clone()),
        _ => {
            let names: Vec<_> = failed.iter().map(|row| row.fixture.as_str()).collect();
            Some(format!("{} of {} fixtures fail: {}", failed.len(), rows.len(), names.join(", ")))
        }
    }
}
