//! `lamo paper run`: the trainings that are missing, one line per cell.

use super::{Choice, budget, rough, sums};
use crate::commands::progress::Meter;
use crate::commands::stop::stop_on_signal;
use crate::commands::{say, start_threads, warn};
use crate::text::{duration, error};
use anyhow::Result;
use clap::Args;
use lamo::Kind;
use lamo::error::{Refusal, counted};
use lamo::paper::{self, Job, Outcome, Report, Results, RunRequest};
use lamo::workflow::{Event, Session};
use serde_json::json;
use std::num::NonZeroUsize;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// A cell that takes more seconds is announced.
const LONG: f64 = 30.0;

/// `lamo paper run`
#[derive(Args)]
pub(crate) struct Run {
    /// Tables and figures, as T1 or F2; all unless given.
    artifacts: Vec<String>,
    #[command(flatten)]
    pub(super) grid: Choice,
    /// Stop cleanly inside this time: 90s, 25m, 1h30m. The same command continues.
    #[arg(long, value_name = "TIME")]
    budget: Option<String>,
    /// Seconds between checkpoints.
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0)]
    save_every: f64,
    /// Trainings that run side by side on a GPU. Small ones leave most of it idle; times in their receipts are then those of a
    /// shared GPU.
    #[arg(long, value_name = "K", default_value = "1")]
    together: NonZeroUsize,
    /// Number of threads; one per core unless given.
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
}

pub(super) fn run(options: &Run) -> Result<()> {
    let threads = start_threads(options.threads)?;
    let choice = &options.grid;
    let saving = Duration::try_from_secs_f64(options.save_every)
        .map_err(|_| Refusal::new("--save-every", "seconds from 0 on", options.save_every.to_string()))?;
    let effort = choice.effort(&Results::gather(&choice.folders()))?;
    let request = RunRequest {
        artifacts: choice.artifacts(&options.artifacts, effort)?,
        options: choice.options(effort),
        runs: choice.runs.clone(),
        receipts: Some(choice.receipts.clone()),
        known: choice.known.clone(),
        budget: options.budget.as_deref().map(budget).transpose()?,
        device: choice.device,
        saving,
        together: options.together,
    };
    let console = Console { json: choice.json, meter: Mutex::new(None) };
    let listener = |event: Event<'_>| console.hear(event);
    let session = Session { listener: &listener, cancel: stop_on_signal("the step and the checkpoint")?, threads };
    if !choice.json {
        say(&format!("grid {}, on {}", effort.name(), choice.device))?;
    }
    let jobs = paper::run(&request, &session, &|report| console.report(&report))?;
    console.end(&jobs)
}

/// Prints what happens.
struct Console {
    json: bool,
    meter: Mutex<Option<Meter>>,
}

impl Console {
    /// Shows the making of data; the other events of a training are not shown.
    fn hear(&self, event: Event<'_>) {
        match event {
            Event::Making { problem, progress } => {
                let mut meter = self.meter.lock().unwrap_or_else(PoisonError::into_inner);
                let meter = meter.get_or_insert_with(|| Meter::of_samples(&format!("making {problem}")));
                if !self.json {
                    meter.show(progress);
                }
            }
            Event::Data { dataset, made_in: Some(time) } => {
                self.clear();
                let (samples, problem) = (dataset.samples(), &dataset.manifest().problem);
                let time = time.as_secs_f64();
                self.say(
                    &format!("data: {} of {problem}, made in {}", counted(samples, "sample"), duration(time)),
                    &json!({ "event": "data", "problem": problem, "samples": samples, "seconds": time }),
                );
            }
            _ => {}
        }
    }

    fn clear(&self) {
        let meter = self.meter.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(meter) = meter.filter(|_| !self.json) {
            meter.clear();
        }
    }

    fn report(&self, report: &Report<'_>) {
        match report {
            Report::Plan { jobs } => {
                let (cells, done, seconds) = sums(jobs.iter());
                self.say(
                    &format!("{}, {done} done; the rest takes about {}", counted(cells, "cell"), rough(seconds)),
                    &json!({ "event": "plan", "cells": cells, "done": done, "seconds": seconds }),
                );
            }
            Report::Begin { job, number, count } => {
                let (name, about) = (job.cell.name(), rough(job.seconds));
                let event =
                    json!({ "event": "begin", "name": name, "number": number, "cells": count, "seconds": job.seconds });
                if self.json || job.seconds >= LONG {
                    self.say(&format!("{number} of {count}: {name}, about {about}"), &event);
                }
            }
            Report::Warning { job, text } => {
                self.clear();
                let name = job.cell.name();
                match self.json {
                    true => self.say("", &json!({ "event": "warning", "name": name, "message": text })),
                    false => warn(&format!("warning: {name}: {text}")),
                }
            }
            Report::End { job, outcome, seconds } => {
                self.clear();
                self.ended(job, outcome, *seconds);
            }
        }
    }

    fn ended(&self, job: &Job, outcome: &Outcome, seconds: f64) {
        let (name, epochs, artifacts) = (job.cell.name(), job.cell.experiment.train.epochs, job.artifacts.join(" "));
        let what = format!("{name}  {artifacts}");
        let event = |outcome: &str, value: serde_json::Value| {
            json!({ "event": "cell", "name": name, "artifacts": job.artifacts, "outcome": outcome, "seconds": seconds,
                    "epochs": epochs, "value": value })
        };
        match outcome {
            Outcome::Finished(found) => self.say(
                &format!("{}  {what}: {} after {}", error(*found), counted(epochs, "epoch"), duration(seconds)),
                &event("finished", json!(found)),
            ),
            Outcome::Crowded => self.say(
                &format!("waits  {what}: the GPU has no room for it beside the others"),
                &event("crowded", json!(null)),
            ),
            Outcome::Stopped => self.say(&format!("stopped  {what}"), &event("stopped", json!(null))),
            Outcome::Failed(reason) => {
                warn(&format!("failed  {what}: {reason}"));
                if self.json {
                    self.say("", &event("failed", json!(reason.to_string())));
                }
            }
        }
    }

    /// A job does not fail because a line cannot be written.
    fn say(&self, text: &str, value: &serde_json::Value) {
        let _ = if self.json { say(&value.to_string()) } else { say(text) };
    }

    fn end(&self, jobs: &[Job]) -> Result<()> {
        let (cells, done, seconds) = sums(jobs.iter());
        self.say(
            &match cells == done {
                true => format!("all {} are done; lamo paper show draws them", counted(cells, "cell")),
                false => format!(
                    "{done} of {} are done; the same command runs the rest in about {}",
                    counted(cells, "cell"),
                    rough(seconds)
                ),
            },
            &json!({ "event": "end", "cells": cells, "done": done }),
        );
        let failed = jobs.iter().filter(|job| job.failed).count();
        match failed {
            0 => Ok(()),
            _ => Err(Refusal::said(format!("{} failed", counted(failed, "cell"))).of(Kind::Failed).into()),
        }
    }
}
