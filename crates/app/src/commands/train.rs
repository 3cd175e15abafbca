//! `lamo train`: data, training, checkpoints; a Ctrl-C that loses nothing.

mod view;

use crate::commands::progress::{Meter, duration};
use crate::commands::stop::stop_on_request;
use crate::commands::{evaluate, quoted, say};
use crate::report::{PAGE, count, error, percent};
use anyhow::{Context, Result, bail};
use clap::Args;
use lamo::case::Case;
use lamo::checkpoint::Checkpoint;
use lamo::dataset::{Dataset, FieldEntry, MANIFEST, Manifest, Outcome, Progress, RoleEntry};
use lamo::evaluate::RECEIPT;
use lamo::experiment::{self, Experiment, OWN, Preset, Request};
use lamo::field::Field;
use lamo::run::{self, Environment, Provenance, Run};
use lamo::samples::{self, Material};
use lamo::train::{self, Trainer};
use lamo::trained::Trained;
use lamo::{benchmarks, cache};
use lamo_tensor::{Device, Graph, Program};
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use view::View;

/// The folder of runs without a name of their own.
const RUNS: &str = "runs";

/// `lamo train`
#[derive(Args)]
pub(crate) struct Train {
    /// A benchmark, a shipped experiment, an experiment file, or a folder with one's own data set.
    #[arg(required_unless_present = "resume", conflicts_with = "resume")]
    what: Option<String>,
    /// Which model.
    #[arg(long, value_name = "M", conflicts_with = "resume")]
    model: Option<String>,
    /// How large: quick takes minutes on two cores, paper is the recipe of the authors' code (what the paper tabulates
    /// otherwise is an experiment NAME-paper, see lamo list); a benchmark on a CPU is quick unless this says otherwise.
    #[arg(long, value_parser = ["quick", "paper"], conflicts_with = "resume")]
    preset: Option<String>,
    /// A data set to train on instead of making one; with --resume, where the run's data are now.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Where to compute: cpu, cuda, cuda:1; cpu unless given, or where the run began.
    #[arg(long, value_name = "D")]
    device: Option<Device>,
    /// Precision of products on a card: f32, tf32 or bf16.
    #[arg(long, value_name = "P", conflicts_with = "resume")]
    precision: Option<String>,
    /// Seed of the first parameters and of the order of samples.
    #[arg(long, value_name = "S", conflicts_with = "resume")]
    seed: Option<u64>,
    /// Any key of the experiment; may be repeated, the last word counts.
    #[arg(long, value_name = "KEY=VALUE", conflicts_with = "resume")]
    set: Vec<String>,
    /// Run folder to make; runs/BENCHMARK-MODEL-N unless given.
    #[arg(long, value_name = "RUN", conflicts_with = "resume")]
    out: Option<PathBuf>,
    /// Go on with an interrupted run.
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
    let threads =
        options.threads.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from);
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().context("starting threads")?;
    let saving = Duration::try_from_secs_f64(options.save_every).context("--save-every")?;
    if let Some(folder) = &options.resume {
        let (run, mut experiment, begun) = Run::open(folder)?;
        if let Some(data) = &options.data {
            let folder = std::path::absolute(data)?;
            if folder.to_str().is_none() {
                bail!(
                    "--data {}: expected a path of Unicode letters, which a run can note; move the data",
                    folder.display()
                );
            }
            experiment.data.folder = Some(folder);
        }
        let device = match options.device {
            Some(device) => device,
            None => run::environment(folder)?.device.parse()?,
        };
        let job = Job { options, device, threads, saving, stop: stop_on_request("the step and saving")? };
        return job.resume(&run, &experiment, begun.as_ref());
    }
    let experiment = resolve(options)?;
    if options.print_config {
        return say(experiment.text().trim_end());
    }
    let device = options.device.unwrap_or_default();
    Job { options, device, threads, saving, stop: stop_on_request("the step and saving")? }.begin(&experiment)
}

/// The experiment that was asked for.
fn resolve(options: &Train) -> Result<Experiment> {
    let what = options.what.as_deref().unwrap_or_default();
    let path = Path::new(what);
    let (mut folder, mut text, mut film) = (options.data.clone(), None, false);
    let mut request = Request { model: options.model.as_deref(), ..Request::default() };
    let mut named = what.to_owned();
    if path.join(MANIFEST).is_file() {
        if let Some(other) = folder {
            bail!("{what} is a data set, and so is --data {}; name one", other.display());
        }
        folder = Some(path.to_owned());
        let manifest = Dataset::open(path)?.manifest().clone();
        request.grid = Some(manifest.grid.into());
        film = is_film(&manifest);
        named = if benchmarks::find(&manifest.problem).is_ok() { manifest.problem } else { OWN.to_owned() };
    } else if let Ok(shipped) = experiment::shipped_text(what) {
        if options.preset.as_deref() == Some("quick") {
            bail!(
                "{what} is the published recipe; for a quick one say lamo train BENCHMARK --model MODEL --preset quick"
            );
        }
        text = Some(shipped.to_owned());
    } else if path.is_file() {
        text = Some(
            std::fs::read_to_string(path).with_context(|| format!("{what}: cannot be read as an experiment file"))?,
        );
    } else if benchmarks::find(what).is_err() {
        let known: Vec<_> = benchmarks::BENCHMARKS.iter().map(|row| row.name).collect();
        let meant = experiment::nearest(what).map(|name| format!("; did you mean {name}?")).unwrap_or_default();
        bail!(
            "{what}: expected a benchmark ({}), a shipped experiment (see lamo list), an experiment file or a data set, \
             found none of these{meant}",
            known.join(", ")
        );
    }
    match &text {
        Some(text) => request.file = Some((what, text)),
        None => request.benchmark = Some(&named),
    }
    request.preset = match options.preset.as_deref() {
        Some("quick") => Some(Preset::Quick),
        Some(_) => Some(Preset::Paper),
        None if text.is_none() && options.device.unwrap_or_default() == Device::Cpu => Some(Preset::Quick),
        None => None,
    };
    let mut changes = Vec::new();
    if let Some(folder) = folder {
        let folder = std::path::absolute(&folder).unwrap_or(folder);
        changes.push(format!("data.folder={}", toml::Value::String(folder.display().to_string())));
        changes.extend(["data.train=0".to_owned(), "data.test=0".to_owned()]);
    }
    if film && named == OWN {
        changes.push("train.loss=relative-l2-of-frames".to_owned());
    }
    changes.extend(options.seed.map(|seed| format!("seed={seed}")));
    changes.extend(options.precision.as_ref().map(|precision| format!("precision={precision}")));
    changes.extend(options.set.iter().cloned());
    let mut experiment = Request { changes: &changes, ..request }.resolve()?;
    // A file names data as it sees them, and the run must find them from anywhere.
    let here = options.set.iter().any(|change| change.trim_start().starts_with("data.folder"));
    let base = path.parent().filter(|_| path.is_file() && !here).unwrap_or(Path::new(""));
    if let Some(folder) = &mut experiment.data.folder {
        *folder = std::path::absolute(base.join(&*folder))?;
    }
    Ok(experiment)
}

/// Whether there is nothing to learn from but the beginning of a film.
fn is_film(manifest: &Manifest) -> bool {
    let of = |role| manifest.fields.iter().filter(move |field| field.role == role);
    let moves = |entry: &FieldEntry| {
        let field = Field::on(manifest.grid.into(), &entry.name, &entry.unit, &entry.shape);
        field.is_ok_and(|field| field.frames.is_some())
    };
    of(RoleEntry::Input).count() == 0
        && of(RoleEntry::Position).all(|field| field.common)
        && of(RoleEntry::Output).all(moves)
}

/// One training from the command line.
struct Job<'a> {
    options: &'a Train,
    device: Device,
    threads: usize,
    saving: Duration,
    stop: Arc<AtomicBool>,
}

impl Job<'_> {
    fn begin(&self, experiment: &Experiment) -> Result<()> {
        self.check_ahead(experiment)?;
        let dataset = self.dataset(experiment)?;
        let trainer = self.compile(experiment, &dataset)?;
        let folder = self.options.out.clone().map_or_else(|| claim_name(experiment, &dataset), Ok)?;
        let run = Run::create(&folder, experiment, &self.environment(experiment, &dataset)?)?;
        self.train(&run, experiment, trainer)
    }

    fn resume(&self, run: &Run, experiment: &Experiment, begun: Option<&Checkpoint>) -> Result<()> {
        still_there(experiment)?;
        let dataset = self.dataset(experiment)?;
        let (now, then) = (self.environment(experiment, &dataset)?, run::environment(run.folder())?);
        if !now.sees_the_same(&then) {
            let folder = dataset.folder().display();
            bail!("{folder}: expected the data the run began with, found others; give the right ones with --data DIR");
        }
        let mut trainer = self.compile(experiment, &dataset)?;
        if let Some(begun) = begun {
            trainer.restore(begun)?;
        }
        run.record(&now)?;
        if self.options.data.is_some() {
            run.move_data(experiment)?;
        }
        self.train(run, experiment, trainer)
    }

    /// What would fail only after the data are made: the run's folder, the model, the device.
    fn check_ahead(&self, experiment: &Experiment) -> Result<()> {
        if let Some(folder) = &self.options.out {
            run::free(folder)?;
        }
        run::writable(self.options.out.as_deref().unwrap_or(Path::new(RUNS)))?;
        cache::check_ahead(experiment)?;
        let graph = Graph::new();
        graph.output("one", graph.fill(1.0, [1]));
        Program::compile_on(&graph, self.device, experiment.precision)?;
        Ok(())
    }

    /// Opens the data, or makes them with a progress line.
    fn dataset(&self, experiment: &Experiment) -> Result<Dataset> {
        let meter = Meter::new(&format!("making {}", experiment.data.problem));
        let started = Instant::now();
        let outcome = cache::dataset(&experiment.data, self.threads, &|progress| {
            match self.options.json {
                true => meter.report(progress),
                false => meter.show(progress),
            }
            if self.stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        meter.clear();
        let (dataset, how) = match outcome? {
            Outcome::Made(dataset) => (dataset, format!("made in {}", duration(started.elapsed()))),
            Outcome::AlreadyThere(dataset) => {
                dataset.verify()?; // the run will name these hashes
                (dataset, "already there".to_owned())
            }
            Outcome::Stopped(Progress { complete, samples, .. }) => {
                let samples = count(samples, "sample");
                bail!("stopped with {complete} of {samples} saved; run the same command again to go on")
            }
        };
        self.tell(
            &format!("data: {}, {}, {how}", dataset.folder().display(), count(dataset.samples(), "sample")),
            &serde_json::json!({ "event": "data", "folder": dataset.folder().display().to_string(), "samples": dataset.samples() }),
        )?;
        Ok(dataset)
    }

    fn environment(&self, experiment: &Experiment, dataset: &Dataset) -> Result<Environment> {
        let split = samples::split(&experiment.data, dataset)?;
        Ok(Environment::here(self.device, self.threads, Some(Provenance::of(dataset, &split))))
    }

    fn compile(&self, experiment: &Experiment, dataset: &Dataset) -> Result<Trainer> {
        let material = Material::read(experiment, dataset)?;
        let started = Instant::now();
        let case = Case::new(experiment, &material)?;
        let trainer = Trainer::new(experiment, &case, &material.train, &material.test, self.device)?;
        let (parameters, steps) = (trainer.parameters(), trainer.steps());
        let model = &experiment.model.name;
        self.tell(
            &format!(
                "model: {model}, {parameters} parameters, {} of batch {}, compiled in {}",
                count(steps, "step"),
                experiment.train.batch,
                duration(started.elapsed())
            ),
            &serde_json::json!({ "event": "model", "model": model, "parameters": parameters, "steps": steps }),
        )?;
        Ok(trainer)
    }

    fn train(&self, run: &Run, experiment: &Experiment, mut trainer: Trainer) -> Result<()> {
        let folder = run.folder().display().to_string();
        let (step, steps) = (trainer.step(), trainer.steps());
        let from = self.options.resume.as_ref().map(|_| format!(", from step {step} of {steps}")).unwrap_or_default();
        self.tell(
            &format!("run: {folder}{from}"),
            &serde_json::json!({ "event": "run", "folder": folder, "step": step }),
        )?;
        let mut view = View::new(self.options.json, run::history(run.folder()).unwrap_or_default());
        let outcome = trainer.run(Some(run), self.saving, &mut |progress| {
            view.show(&progress);
            if self.stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        view.clear();
        match outcome? {
            train::Outcome::Finished => self.finish(run, experiment),
            train::Outcome::Stopped => {
                let (step, steps) = (trainer.step(), trainer.steps());
                if self.options.json {
                    say(&serde_json::json!({ "event": "stopped", "folder": folder, "step": step, "steps": steps })
                        .to_string())?;
                }
                bail!(
                    "stopped and saved at step {step} of {steps}; go on with: lamo train --resume {}",
                    quoted(run.folder())
                )
            }
        }
    }

    /// The last words.
    fn finish(&self, run: &Run, experiment: &Experiment) -> Result<()> {
        let history = run::history(run.folder())?;
        let Trained { epoch, seconds, .. } = Trained::open(run.folder())?;
        let folder = run.folder().display();
        let name = run::environment(run.folder())?.data.map_or(experiment.benchmark.clone(), |data| data.problem);
        let time = duration(Duration::from_secs_f64(seconds));
        let judged = evaluate::after_training(run.folder(), self.device, self.threads)?; // though nobody may be reading
        // An epoch that was made the last one afterwards had no test.
        let test = history.last().and_then(|line| line.test).unwrap_or(judged);
        self.tell(
            &format!(
                "{name}: mean relative L2 error on the test samples {} ({}) after {}, {time}; saved in {folder}",
                error(test), percent(test), count(epoch, "epoch")
            ),
            &serde_json::json!({ "event": "end", "folder": folder.to_string(), "epoch": epoch, "test": test, "seconds": seconds }),
        )?;
        let (page, text) = (run.folder().join(PAGE), |path: &Path| path.display().to_string());
        self.tell(
            &format!("report: {}", page.display()),
            &serde_json::json!({ "event": "report", "page": text(&page), "receipt": text(&run.folder().join(RECEIPT)) }),
        )
    }

    /// A line for people or for scripts.
    fn tell(&self, line: &str, json: &serde_json::Value) -> Result<()> {
        say(&if self.options.json { json.to_string() } else { line.to_owned() })
    }
}

/// Refuses a run whose data have gone from where they were.
pub(crate) fn still_there(experiment: &Experiment) -> Result<()> {
    match &experiment.data.folder {
        Some(folder) if !folder.exists() => {
            bail!(
                "{}: expected the data of the run, found nothing; say where they are with --data DIR",
                folder.display()
            )
        }
        _ => Ok(()),
    }
}

/// Makes `runs/BENCHMARK-MODEL-N`, the first that is free; of two processes each gets its own.
fn claim_name(experiment: &Experiment, dataset: &Dataset) -> Result<PathBuf> {
    let benchmark = if experiment.benchmark == OWN { &dataset.manifest().problem } else { &experiment.benchmark };
    let name = format!("{benchmark}-{}", experiment.model.name).replace(['/', '\\'], "-");
    let folder = |number: usize| Path::new(RUNS).join(format!("{name}-{number}"));
    std::fs::create_dir_all(RUNS).with_context(|| format!("{RUNS}: cannot be made"))?;
    let mut number = 1;
    loop {
        match std::fs::create_dir(folder(number)) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
            made => {
                return made
                    .with_context(|| format!("{}: cannot be made", folder(number).display()))
                    .map(|()| folder(number));
            }
        }
    }
}
