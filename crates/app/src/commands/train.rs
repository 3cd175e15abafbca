//! `lamo train`: the arguments in, events out as text or lines of JSON.

mod view;

use crate::commands::progress::{Meter, duration};
use crate::commands::stop::stop_on_request;
use crate::commands::{evaluate, quoted, say, start_threads};
use crate::report::{PAGE, count, error, percent};
use anyhow::{Context, Result, bail};
use clap::Args;
use lamo::experiment::Preset;
use lamo::inference::evaluate::RECEIPT;
use lamo::workflow::{self, Event, ResumeRequest, Session, TrainRequest, TrainedRun};
use lamo_tensor::Device;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;
use view::View;

/// `lamo train`
#[derive(Args)]
pub(crate) struct Train {
    /// A benchmark, a shipped experiment, an experiment file, or the folder of your own data set.
    #[arg(required_unless_present = "resume", conflicts_with = "resume")]
    what: Option<String>,
    /// Which model.
    #[arg(long, value_name = "M", conflicts_with = "resume")]
    model: Option<String>,
    /// How large: quick takes minutes on two cores, paper is the recipe of the authors' code (what the paper tabulates
    /// otherwise is an experiment NAME-paper, see lamo list). A benchmark on a CPU is quick unless this says otherwise.
    #[arg(long, value_parser = ["quick", "paper"], conflicts_with = "resume")]
    preset: Option<String>,
    /// A data set to train on instead of making one; with --resume, where the run's data are now.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Where to compute: cpu, cuda, cuda:1. The default is cpu, or where a resumed run began.
    #[arg(long, value_name = "D")]
    device: Option<Device>,
    /// Precision of products on a GPU: f32, tf32 or bf16.
    #[arg(long, value_name = "P", conflicts_with = "resume")]
    precision: Option<String>,
    /// Seed of the first parameters and of the order of samples.
    #[arg(long, value_name = "S", conflicts_with = "resume")]
    seed: Option<u64>,
    /// Any key of the experiment; may be repeated, the last one wins.
    #[arg(long, value_name = "KEY=VALUE", conflicts_with = "resume")]
    set: Vec<String>,
    /// Run folder to make; runs/BENCHMARK-MODEL-N unless given.
    #[arg(long, value_name = "RUN", conflicts_with = "resume")]
    out: Option<PathBuf>,
    /// Resume an interrupted run.
    #[arg(long, value_name = "RUN")]
    resume: Option<PathBuf>,
    /// Seconds between checkpoints.
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0)]
    save_every: f64,
    /// Threads; all cores unless given.
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Lines of JSON on standard output.
    #[arg(long)]
    json: bool,
    /// Print the experiment with every key and stop.
    #[arg(long, conflicts_with = "resume")]
    print_config: bool,
}

pub(crate) fn run(options: &Train) -> Result<()> {
    let threads = start_threads(options.threads)?;
    let saving = Duration::try_from_secs_f64(options.save_every).context("--save-every")?;
    let console = Console::new(options.json, options.resume.is_some());
    let request = options.request(saving);
    if options.print_config {
        return say(request.experiment()?.text().trim_end());
    }
    let listener = |event: Event<'_>| console.show(event);
    let session = Session { listener: &listener, cancel: stop_on_request("the step and saving")?, threads };
    let trained = match &options.resume {
        Some(run) => {
            let (run, data, device) = (run.clone(), options.data.clone(), options.device);
            workflow::resume(&ResumeRequest { run, data, device, saving }, &session)
        }
        None => workflow::train(&request, &session),
    };
    console.clear();
    console.finish(&trained?, threads)
}

impl Train {
    fn request(&self, saving: Duration) -> TrainRequest {
        let preset = self.preset.as_deref().map(|preset| match preset {
            "quick" => Preset::Quick,
            _ => Preset::Paper,
        });
        let mut changes: Vec<String> = Vec::new();
        changes.extend(self.seed.map(|seed| format!("seed={seed}")));
        changes.extend(self.precision.as_ref().map(|precision| format!("precision={precision}")));
        changes.extend(self.set.iter().cloned());
        TrainRequest {
            model: self.model.clone(),
            preset,
            data: self.data.clone(),
            device: self.device.unwrap_or_default(),
            changes,
            out: self.out.clone(),
            saving,
            ..TrainRequest::new(self.what.clone().unwrap_or_default())
        }
    }
}

/// Shows the events of a training to a person or a script.
struct Console {
    json: bool,
    resumed: bool,
    meter: Mutex<Option<Meter>>,
    view: Mutex<View>,
}

impl Console {
    fn new(json: bool, resumed: bool) -> Console {
        Console { json, resumed, meter: Mutex::new(None), view: Mutex::new(View::new(json, Vec::new())) }
    }

    /// A reader that has gone away is no reason to stop a training: failures to print are ignored.
    fn show(&self, event: Event<'_>) {
        let view = || self.view.lock().unwrap_or_else(PoisonError::into_inner);
        match event {
            Event::Making { problem, progress } => {
                let mut meter = self.meter.lock().unwrap_or_else(PoisonError::into_inner);
                let meter = meter.get_or_insert_with(|| Meter::new(&format!("making {problem}")));
                if self.json { meter.report(progress) } else { meter.show(progress) }
            }
            Event::Data { dataset, made_in } => {
                self.clear_meter();
                let (folder, samples) = (dataset.folder().display().to_string(), dataset.samples());
                let how = made_in.map_or("already there".to_owned(), |time| format!("made in {}", duration(time)));
                self.line(
                    &format!("data: {folder}, {}, {how}", count(samples, "sample")),
                    &json!({ "event": "data", "folder": folder, "samples": samples }),
                );
            }
            Event::Model { name, parameters, steps, batch, compiled_in } => self.line(
                &format!(
                    "model: {name}, {parameters} parameters, {} of batch {batch}, compiled in {}",
                    count(steps, "step"),
                    duration(compiled_in)
                ),
                &json!({ "event": "model", "model": name, "parameters": parameters, "steps": steps }),
            ),
            Event::Run { folder, step, steps, history } => {
                let from = if self.resumed { format!(", from step {step} of {steps}") } else { String::new() };
                let folder = folder.display().to_string();
                self.line(&format!("run: {folder}{from}"), &json!({ "event": "run", "folder": folder, "step": step }));
                *view() = View::new(self.json, history.to_vec());
            }
            Event::Progress(progress) => view().show(&progress),
            Event::Warning(warning) => {
                self.line(&format!("warning: {warning}"), &json!({ "event": "warning", "message": warning }));
            }
            _ => {}
        }
    }

    fn clear_meter(&self) {
        if let Some(meter) = self.meter.lock().unwrap_or_else(PoisonError::into_inner).take() {
            meter.clear();
        }
    }

    /// Ends the lines that are redrawn in place.
    fn clear(&self) {
        self.clear_meter();
        self.view.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    fn line(&self, line: &str, json: &Value) {
        let _ = self.tell(line, json);
    }

    fn tell(&self, line: &str, json: &Value) -> Result<()> {
        say(&if self.json { json.to_string() } else { line.to_owned() })
    }

    /// Evaluates a run that has ended; says how a stopped one is resumed.
    fn finish(&self, run: &TrainedRun, threads: usize) -> Result<()> {
        let TrainedRun { folder, data, device, finished, step, steps, epoch, seconds, history, .. } = run;
        let place = folder.display().to_string();
        if !finished {
            if self.json {
                say(&json!({ "event": "stopped", "folder": place, "step": step, "steps": steps }).to_string())?;
            }
            bail!("stopped and saved at step {step} of {steps}; resume with: lamo train --resume {}", quoted(folder));
        }
        let evaluated = evaluate::after_training(folder, *device, threads)?;
        // An epoch that was made the last one afterwards had no test.
        let test = history.last().and_then(|line| line.test).unwrap_or(evaluated);
        let time = duration(Duration::from_secs_f64(*seconds));
        self.tell(
            &format!(
                "{data}: mean relative L2 error on the test samples {} ({}) after {}, {time}; saved in {place}",
                error(test),
                percent(test),
                count(*epoch, "epoch")
            ),
            &json!({ "event": "end", "folder": place, "epoch": epoch, "test": test, "seconds": seconds }),
        )?;
        let (page, text) = (folder.join(PAGE), |path: &Path| path.display().to_string());
        self.tell(
            &format!("report: {}", page.display()),
            &json!({ "event": "report", "page": text(&page), "receipt": text(&folder.join(RECEIPT)) }),
        )
    }
}
