//! `lamo train`: arguments in, events out as text or as lines of JSON.

mod pace;
mod several;
mod view;

use crate::commands::progress::Meter;
use crate::commands::stop::stop_on_signal;
use crate::commands::{evaluate, quoted, say, start_threads};
use crate::report::PAGE;
use crate::text::{duration, error, percent};
use anyhow::Result;
use clap::Args;
use lamo::Kind;
use lamo::error::{Refusal, counted};
use lamo::experiment::{self, Preset};
use lamo::inference::evaluate::RECEIPT;
use lamo::workflow::{self, Cancel, Event, ResumeRequest, Session, TrainRequest, TrainedRun};
use lamo_tensor::Device;
use serde_json::{Value, json};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use view::View;

/// `lamo train`
#[derive(Args)]
pub(crate) struct Train {
    /// A benchmark, a shipped experiment, an experiment file, or the folder of your own data set.
    #[arg(required_unless_present_any = ["resume", "keys"], conflicts_with_all = ["resume", "keys"])]
    what: Option<String>,
    /// The model; lamo list names them all. Several, as lamo,transolver, are trained side by side on a GPU and one after the other
    /// on a CPU; with --out, the folders are RUN-M.
    #[arg(long, value_name = "M,M", value_delimiter = ',', conflicts_with = "resume")]
    model: Vec<String>,
    /// Start from a run, a checkpoint or a model folder: fine-tuning. Without --model, its model and settings are used; every
    /// tensor whose name and shape agree is taken.
    #[arg(long, value_name = "RUN|MODEL", conflicts_with = "resume")]
    init: Option<PathBuf>,
    /// The size of the experiment. quick takes minutes on two cores; paper is the recipe of the authors' code; best is our
    /// own recipe for a benchmark, where one was chosen by validation error. The default is quick on a CPU and paper on a GPU; an experiment has its own size. Where the paper states other values than the
    /// code, these are an experiment NAME-paper (see lamo list).
    #[arg(long, value_parser = ["quick", "paper", "best"], conflicts_with = "resume")]
    preset: Option<String>,
    /// A data set to train on instead of making one; with --resume, the new path of the run's data. As many samples as the
    /// benchmark has are split as it says, others as the data set says.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Where to compute: cpu, cuda, cuda:1. The default is cpu; a resumed run continues on the device it started on.
    #[arg(long, value_name = "D")]
    device: Option<Device>,
    /// Precision of products on a GPU: f32, tf32 or bf16.
    #[arg(long, value_name = "P", conflicts_with = "resume")]
    precision: Option<String>,
    /// Seed of the initial parameters and of the order of the samples.
    #[arg(long, value_name = "S", conflicts_with = "resume")]
    seed: Option<u64>,
    /// Train once with each of these seeds, side by side on a GPU, and print the mean of the errors; with --out, the folders are
    /// RUN-SEED.
    #[arg(long, value_name = "S,S", value_delimiter = ',', conflicts_with_all = ["seed", "resume", "print_config"])]
    seeds: Vec<u64>,
    /// How many trainings of several run at the same time on a GPU; all of them unless given.
    #[arg(long, value_name = "K")]
    together: Option<NonZeroUsize>,
    /// Set any key of the experiment; may be repeated, the last one wins.
    #[arg(long, value_name = "KEY=VALUE", conflicts_with = "resume")]
    set: Vec<String>,
    /// Minutes that the training may take on this machine. A few steps are timed, and the number of epochs follows; the run
    /// records it, so that a resumed run does not depend on the clock. Of several trainings, each gets the epochs that it would have alone.
    #[arg(long, value_name = "M", conflicts_with_all = ["resume", "print_config"])]
    minutes: Option<f64>,
    /// Run folder to make; runs/BENCHMARK-MODEL-N unless given.
    #[arg(long, value_name = "RUN", conflicts_with = "resume")]
    out: Option<PathBuf>,
    /// Resume an interrupted run; repeated, several of them side by side on a GPU.
    #[arg(long, value_name = "RUN")]
    resume: Vec<PathBuf>,
    /// Seconds between checkpoints.
    #[arg(long, value_name = "SECONDS", default_value_t = 60.0)]
    save_every: f64,
    /// Number of threads; one per core unless given.
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Print one JSON object per line on standard output.
    #[arg(long)]
    pub(crate) json: bool,
    /// Print every key of an experiment with its meaning, unit, default and the presets that set it, and stop.
    #[arg(long, conflicts_with = "resume")]
    keys: bool,
    /// Print the experiment with every key, and stop.
    #[arg(long, conflicts_with = "resume")]
    print_config: bool,
}

pub(crate) fn run(options: &Train) -> Result<()> {
    if options.keys {
        return say(experiment::reference().trim_end());
    }
    let threads = start_threads(options.threads)?;
    let saving = Duration::try_from_secs_f64(options.save_every)
        .map_err(|_| Refusal::new("--save-every", "seconds from 0 on", options.save_every.to_string()))?;
    let console = Console::new(options.json, !options.resume.is_empty());
    let several = options.model.len() > 1 || !options.seeds.is_empty() || options.resume.len() > 1;
    if options.print_config {
        if several {
            return Err(Refusal::new("--print-config", "one model", options.model.join(",")).into());
        }
        return say(options.request(saving).experiment()?.text().trim_end());
    }
    let listener = |event: Event<'_>| console.show(event);
    let session = Session { listener: &listener, cancel: stop_on_signal("the step and the checkpoint")?, threads };
    if several {
        return several::run(options, &session, saving);
    }
    let trained = match options.resume.first() {
        Some(run) => workflow::resume(&options.resumed(run, saving), &session),
        None => workflow::train(&options.request(saving), &session),
    };
    console.clear();
    console.finish(&trained?, threads)
}

impl Train {
    fn resumed(&self, run: &Path, saving: Duration) -> ResumeRequest {
        ResumeRequest { run: run.to_owned(), data: self.data.clone(), device: self.device, saving, together: 1 }
    }

    fn request(&self, saving: Duration) -> TrainRequest {
        let preset = self.preset.as_deref().map(|preset| match preset {
            "quick" => Preset::Quick,
            "best" => Preset::Best,
            _ => Preset::Paper,
        });
        let mut changes: Vec<String> = Vec::new();
        changes.extend(self.seed.map(|seed| format!("seed={seed}")));
        changes.extend(self.precision.as_ref().map(|precision| format!("precision={precision}")));
        changes.extend(self.set.iter().cloned());
        TrainRequest {
            model: self.model.first().cloned(),
            init: self.init.clone(),
            preset,
            data: self.data.clone(),
            device: self.device.unwrap_or_default(),
            changes,
            out: self.out.clone(),
            saving,
            minutes: self.minutes,
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

    fn meter(&self) -> MutexGuard<'_, Option<Meter>> {
        self.meter.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn view(&self) -> MutexGuard<'_, View> {
        self.view.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Prints an event. The training continues if the line cannot be written.
    fn show(&self, event: Event<'_>) {
        let _ = match event {
            Event::Making { problem, progress } => {
                let mut meter = self.meter();
                let meter = meter.get_or_insert_with(|| Meter::of_samples(&format!("making {problem}")));
                if self.json {
                    meter.report(progress);
                } else {
                    meter.show(progress);
                }
                Ok(())
            }
            Event::Data { dataset, made_in } => {
                self.clear_meter();
                let (folder, samples) = (dataset.folder().display().to_string(), dataset.samples());
                let how = made_in
                    .map_or("already there".to_owned(), |time| format!("made in {}", duration(time.as_secs_f64())));
                self.say(
                    &format!("data: {folder}, {}, {how}", counted(samples, "sample")),
                    &json!({ "event": "data", "folder": folder, "samples": samples }),
                )
            }
            Event::Model { name, parameters, steps, batch, compiled_in } => self.say(
                &format!(
                    "model: {name}, {parameters} parameters, {} of batch {batch}, compiled in {}",
                    counted(steps, "step"),
                    duration(compiled_in.as_secs_f64())
                ),
                &json!({ "event": "model", "model": name, "parameters": parameters, "steps": steps }),
            ),
            Event::Init { origin, error: before } => {
                let (path, transfer) = (origin.path.display().to_string(), &origin.transfer);
                self.say(
                    &format!("init: {path}: {transfer}; error before the first step {}", error(before)),
                    &json!({ "event": "init", "path": path, "sha256": origin.sha256, "transfer": transfer, "error": before }),
                )
            }
            Event::Run { folder, step, steps, history } => {
                *self.view() = View::new(self.json, history.to_vec());
                let from = if self.resumed { format!(", from step {step} of {steps}") } else { String::new() };
                let folder = folder.display().to_string();
                self.say(&format!("run: {folder}{from}"), &json!({ "event": "run", "folder": folder, "step": step }))
            }
            Event::Progress(progress) => {
                self.view().show(&progress);
                Ok(())
            }
            Event::Note(note) => self.say(note, &json!({ "event": "note", "message": note })),
            Event::Warning(warning) => {
                self.clear();
                self.say(&format!("warning: {warning}"), &json!({ "event": "warning", "message": warning }))
            }
            _ => Ok(()),
        };
    }

    fn clear_meter(&self) {
        if let Some(meter) = self.meter().take() {
            meter.clear();
        }
    }

    /// Ends the lines that are redrawn in place.
    fn clear(&self) {
        self.clear_meter();
        self.view().clear();
    }

    /// Prints text for a person, or an object for a script.
    fn say(&self, text: &str, object: &Value) -> Result<()> {
        say(&if self.json { object.to_string() } else { text.to_owned() })
    }

    /// Evaluates a finished run. A stopped run is an error that says how to resume it.
    fn finish(&self, run: &TrainedRun, threads: usize) -> Result<()> {
        let TrainedRun { folder, data, device, finished, step, steps, epoch, seconds, history, .. } = run;
        let text = |path: &Path| path.display().to_string();
        if !finished {
            if self.json {
                say(&json!({ "event": "stopped", "folder": text(folder), "step": step, "steps": steps }).to_string())?;
            }
            let advice = format!("resume with: lamo train --resume {}", quoted(folder));
            let refusal = Refusal::said(format!("stopped and saved at step {step} of {steps}")).advise(advice);
            return Err(refusal.of(Kind::Cancelled).into());
        }
        if run.ended_early() {
            let patience = counted(run.experiment.train.patience, "epoch");
            let (best, last) = (run.best.map_or(0, |best| best.epoch), counted(*epoch, "epoch"));
            self.say(
                &format!("ended early after {last}: the validation error has not improved for {patience}"),
                &json!({ "event": "early", "epoch": epoch, "best": best, "patience": run.experiment.train.patience }),
            )?;
        }
        let listener = |event: Event<'_>| self.show(event);
        let session = Session { listener: &listener, cancel: Cancel::new(), threads };
        let receipt = evaluate::after_training(folder, *device, &session)?;
        let evaluation = &receipt.evaluation;
        let test = evaluation.headline(); // that of the receipt, in float32 also after a training in tf32
        let chosen = match history.last().is_some_and(|line| line.validation.is_some()) {
            true => format!(", by the checkpoint of epoch {}, the best on the validation samples", receipt.epoch),
            false => String::new(),
        };
        self.say(
            &format!(
                "{data}: {} on the test samples {} ({}) after {}, {}{chosen}; saved in {}",
                evaluation.headline_name(),
                error(test),
                percent(test),
                counted(*epoch, "epoch"),
                duration(*seconds),
                folder.display()
            ),
            &json!({
                "event": "end", "folder": text(folder), "epoch": epoch, "test": test, "seconds": seconds,
                "metric": evaluation.headline_name(), "best_epoch": receipt.epoch, "relative_l2": evaluation.relative_l2,
                "outputs": evaluation.outputs, "trivial": evaluation.trivial,
            }),
        )?;
        if !self.json {
            for (name, values) in evaluate::beside(evaluation) {
                say(&format!("  {name:10} {values}"))?;
            }
        }
        let page = folder.join(PAGE);
        self.say(
            &format!("report: {}", page.display()),
            &json!({ "event": "report", "page": text(&page), "receipt": text(&folder.join(RECEIPT)) }),
        )
    }
}
