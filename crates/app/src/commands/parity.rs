//! `lamo parity`: compares our models with fixtures of the authors' code, one line each.

use super::say;
use crate::failure::InReport;
use anyhow::Result;
use clap::Args;
use lamo::Kind;
use lamo::error::Refusal;
use lamo::inference::parity::{self, Measure, Outcome};
use lamo_tensor::{Device, Precision};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// `lamo parity`
#[derive(Args)]
pub(crate) struct Parity {
    /// Folders of model fixtures, operator fixtures (.json), or folders that hold such fixtures.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Where to compute: cpu, cuda, cuda:1.
    #[arg(long, value_name = "D", default_value = "cpu")]
    device: Device,
    /// Precision of products, convolutions and scans on a GPU: f32, tf32 or bf16. With bf16, scans compute in tf32.
    #[arg(long, value_name = "P", default_value = "f32")]
    precision: Precision,
    /// Print one JSON object on standard output.
    #[arg(long)]
    pub(crate) json: bool,
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
    let failure = failure(&rows);
    if options.json {
        let (device, passed) = (options.device.to_string(), failure.is_none());
        say(&serde_json::to_string_pretty(&Report { device, passed, fixtures: rows })?)?;
    }
    failure.map_or(Ok(()), |failure| Err(InReport(failure.into()).into()))
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
    let mut parts = vec![format!("{:28}", row.fixture)];
    parts.extend(row.measures.iter().map(describe));
    parts.push(match (row.verdict, row.reason.as_deref().unwrap_or_default()) {
        (Verdict::Pass, _) => "pass".to_owned(),
        (Verdict::Fail, _) => "FAIL".to_owned(),
        (Verdict::Skip, reason) => format!("skip: {reason}"),
        (Verdict::Broken, reason) => format!("FAIL: {reason}"),
    });
    parts.join("  ")
}

/// `gradient 2.0e-6 (in_project_x.bias)`
fn describe(measure: &Measure) -> String {
    let Measure { subject, tensor, error, allowed } = measure;
    let excess = if error <= allowed { String::new() } else { format!(" > {allowed:.0e}") };
    let name = tensor.trim_start_matches("grad.").trim_start_matches("param.");
    let name = if *subject == "gradient" { format!(" ({name})") } else { String::new() };
    format!("{subject} {error:.1e}{excess}{name}")
}

/// The error for fixtures that did not pass, if there are any.
fn failure(rows: &[Row]) -> Option<Refusal> {
    let failed: Vec<_> = rows.iter().filter(|row| matches!(row.verdict, Verdict::Fail | Verdict::Broken)).collect();
    let sentence = match failed.as_slice() {
        [] => return None,
        [Row { reason: Some(reason), .. }] => reason.clone(),
        _ => {
            let names: Vec<_> = failed.iter().map(|row| row.fixture.as_str()).collect();
            format!("{} of {} fixtures fail: {}", failed.len(), rows.len(), names.join(", "))
        }
    };
    Some(Refusal::said(sentence).of(Kind::Failed))
}
