//! `lamo evaluate`: how good is a run, where is it wrong, and is its receipt true?

use super::progress::Meter;
use super::train::still_there;
use super::{quoted, say};
use crate::report::{PAGE, Report, costs, count, data_name, error, outputs, percent, replace, short};
use anyhow::{Context, Result, bail};
use clap::Args;
use lamo::cache;
use lamo::case::Course;
use lamo::dataset::{Dataset, MANIFEST, Outcome};
use lamo::evaluate::{Evaluation, RECEIPT, Receipt};
use lamo::field::Field;
use lamo::run::{self, Environment, Provenance};
use lamo::samples::{self, Samples};
use lamo::trained::Trained;
use lamo_tensor::Device;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// `lamo evaluate`
#[derive(Args)]
pub(crate) struct Evaluate {
    /// Run folder, or a checkpoint file.
    #[arg(required_unless_present = "verify")]
    run: Option<PathBuf>,
    /// Another data set than the run's own, judged by its own test samples.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Where to compute: cpu, cuda, cuda:1.
    #[arg(long, value_name = "D", default_value = "cpu")]
    device: Device,
    /// Threads; all cores unless given.
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Folder for receipt, report and pictures; the run folder unless --data or a checkpoint file is given.
    #[arg(long, value_name = "DIR", conflicts_with = "verify")]
    out: Option<PathBuf>,
    /// Compute the numbers of a receipt again and compare; fails with a sentence where they differ.
    #[arg(long, value_name = "RECEIPT")]
    verify: Option<PathBuf>,
    /// The receipt as JSON on standard output.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(options: &Evaluate) -> Result<()> {
    let threads =
        options.threads.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from);
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global().context("starting threads")?;
    if let Some(path) = &options.verify {
        return verify(options, path, threads);
    }
    let Some(path) = &options.run else { bail!("a run folder is needed") };
    let own = path.is_dir() && options.data.is_none();
    let folder = options.out.clone().or_else(|| own.then(|| path.clone()));
    if let Some(out) = options.out.as_ref().filter(|out| !(own && out.canonicalize().ok() == path.canonicalize().ok()))
        && [run::EXPERIMENT, run::LAST, MANIFEST].iter().any(|name| out.join(name).is_file())
    {
        bail!(
            "--out {}: expected a folder of its own, found a run, its checkpoints or data; choose another",
            out.display()
        );
    }
    let judged = Judged::of(path, options.data.as_deref(), options.device, threads, options.json)?;
    if let Some(folder) = &folder {
        judged.write(folder)?;
    }
    if options.json {
        return say(judged.receipt.text().trim_end());
    }
    say(&table(&judged))?;
    match folder {
        Some(folder) => say(&format!("report: {}", folder.join(PAGE).display())),
        None => say("report: none, nothing was written; --out DIR keeps receipt, report and pictures"),
    }
}

/// Judges a run that has just ended, on its own data: the mean relative L2; the receipt, the report and the pictures lie in
/// its folder.
pub(crate) fn after_training(folder: &Path, device: Device, threads: usize) -> Result<f64> {
    let judged = Judged::of(folder, None, device, threads, true)?;
    judged.write(folder)?;
    Ok(judged.receipt.evaluation.relative_l2)
}

fn verify(options: &Evaluate, path: &Path, threads: usize) -> Result<()> {
    let receipt = Receipt::read(path)?;
    let beside = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let run = options.run.as_deref().unwrap_or(beside);
    if options.run.is_none() && !run.join(run::EXPERIMENT).is_file() {
        let path = path.display();
        bail!(
            "{path}: expected a receipt inside its run folder, found it elsewhere; say lamo evaluate RUN --verify {path}"
        );
    }
    let judged = Judged::of(run, options.data.as_deref(), options.device, threads, options.json)?;
    if let Some(difference) = receipt.difference(&judged.receipt) {
        let hint = if options.data.is_none() { " (if it was made with --data, give it again)" } else { "" };
        bail!(
            "{}: {difference}; the receipt is not of this run and data{hint}, or something has changed",
            path.display()
        );
    }
    let error = judged.receipt.evaluation.relative_l2;
    let how = match receipt.tolerance(&judged.receipt.machine) {
        0.0 => "bit for bit".to_owned(),
        tolerance => format!("within {} on another kind of machine", short(tolerance)),
    };
    if options.json {
        return say(&serde_json::json!({ "verified": true, "relative_l2": error, "how": how }).to_string());
    }
    say(&format!("{}: verified {how}: data, split, experiment, weights and mean relative L2 {error}", path.display()))
}

/// A run with its predictions.
struct Judged {
    trained: Trained,
    dataset: Dataset,
    test: Samples,
    /// Samples that the run learned from, where it is known.
    learned: Option<usize>,
    prediction: Vec<f32>,
    receipt: Receipt,
    run: PathBuf,
    /// Data other than the run's own.
    data: Option<PathBuf>,
}

impl Judged {
    /// Data that are gone are made again, with a progress line that scripts do not get.
    fn of(path: &Path, data: Option<&Path>, device: Device, threads: usize, script: bool) -> Result<Judged> {
        let trained = Trained::open(path)?;
        let mut experiment = trained.experiment.clone();
        if path.is_dir() {
            experiment.data.folder = run::experiment(path)?.data.folder;
        }
        if let Some(folder) = data {
            experiment.data.folder = Some(folder.to_owned());
            (experiment.data.train, experiment.data.test) = (0, 0);
            let names = |fields: &[Field]| fields.iter().map(|field| field.name.clone()).collect::<Vec<_>>();
            experiment.data.outputs = names(&trained.case.outputs);
            if !matches!(trained.case.course, Course::Frames { .. }) {
                experiment.data.inputs = names(&trained.case.inputs);
            }
        }
        if data.is_none() {
            still_there(&experiment)?;
        }
        let meter = Meter::new(&format!("making {}", experiment.data.problem));
        let made = cache::dataset(&experiment.data, threads, &|progress| {
            if !script {
                meter.show(progress);
            }
            ControlFlow::Continue(())
        });
        meter.clear();
        let (Outcome::Made(dataset) | Outcome::AlreadyThere(dataset)) = made? else {
            bail!("stopped while making data")
        };
        dataset.verify()?; // the receipt will name its hashes
        let split = samples::split(&experiment.data, &dataset)?;
        let environment = Environment::here(device, threads, Some(Provenance::of(&dataset, &split)));
        if data.is_none()
            && path.join(run::ENVIRONMENT).is_file()
            && !environment.sees_the_same(&run::environment(path)?)
        {
            bail!(
                "{}: expected the data the run began with, found others; to judge it by these say --data DIR",
                dataset.folder().display()
            );
        }
        let test = samples::test(&experiment, &dataset)?;
        if let Some(folder) = data {
            let times = &dataset.manifest().times;
            trained.case.check_times(test.times, times).with_context(|| folder.display().to_string())?;
        }
        let started = Instant::now();
        let prediction = trained.predict(&test, device)?;
        let seconds = started.elapsed().as_secs_f64();
        let evaluation = Evaluation::of(&test, &split.test, &prediction);
        if !evaluation.relative_l2.is_finite() {
            bail!("{}: its predictions are no finite numbers; train again with a smaller train.rate", path.display());
        }
        let receipt = Receipt::new(&trained, &dataset, &split, &environment, evaluation, seconds)?;
        let stated = trained.experiment.data.train;
        let learned = if data.is_none() { Some(split.train.len()) } else { (stated > 0).then_some(stated) };
        Ok(Judged {
            trained,
            dataset,
            test,
            learned,
            prediction,
            receipt,
            run: path.to_owned(),
            data: data.map(Path::to_owned),
        })
    }

    /// The command that computes the numbers of the receipt in `folder` again.
    fn repeat(&self, folder: &Path) -> String {
        let run = if folder == self.run { String::new() } else { format!(" {}", quoted(&self.run)) };
        let data = self.data.as_ref().map(|data| format!(" --data {}", quoted(data))).unwrap_or_default();
        format!("lamo evaluate{run}{data} --verify {}", quoted(&folder.join(RECEIPT)))
    }

    fn write(&self, folder: &Path) -> Result<()> {
        std::fs::create_dir_all(folder).with_context(|| format!("{}: cannot be made", folder.display()))?;
        let history = if self.run.is_dir() { run::history(&self.run)? } else { Vec::new() };
        let report = Report {
            trained: &self.trained,
            samples: &self.test,
            prediction: &self.prediction,
            manifest: self.dataset.manifest(),
            learned: self.learned,
            history: &history,
            receipt: &self.receipt,
            repeat: &self.repeat(folder),
        };
        report.write(folder)?;
        replace(&folder.join(RECEIPT), self.receipt.text().as_bytes())
    }
}

/// What people read on a terminal.
fn table(judged: &Judged) -> String {
    let Judged { trained, dataset, receipt, .. } = judged;
    let Receipt { evaluation, .. } = receipt;
    let spread = &evaluation.distribution;
    let mut lines = vec![format!(
        "{}, {}: mean relative L2 error {} ({}) on {}",
        data_name(&trained.experiment, dataset.manifest()),
        receipt.model,
        error(evaluation.relative_l2),
        percent(evaluation.relative_l2),
        count(spread.count, "test sample")
    )];
    let [least, fifth, first, median, third, most_but_few, most] = spread.quantiles.map(percent);
    lines.push(format!("  samples  best {least}, 5 % {fifth}, 25 % {first}, median {median}, 75 % {third}, 95 % {most_but_few}, worst {most}"));
    let list = |values: &[f64]| values.iter().map(|value| percent(*value)).collect::<Vec<_>>().join(", ");
    if !evaluation.frames.is_empty() {
        lines.push(format!("  frames   {}; their mean {}", list(&evaluation.frames), percent(evaluation.mean_frame())));
    }
    if !evaluation.channels.is_empty() {
        let names = outputs(&trained.case);
        let each = names.iter().zip(&evaluation.channels).map(|(name, error)| format!("{name} {}", percent(*error)));
        lines.push(format!("  outputs  {}", each.collect::<Vec<_>>().join(", ")));
    }
    if let Some(spectrum) = &evaluation.spectrum {
        let bands = spectrum.bands();
        let band = bands.iter().filter(|band| !band.waves.is_empty()).map(|band| {
            let last = band.waves.end - 1;
            format!("{} ({} to {last} waves) {}", band.name, band.waves.start, percent(band.error))
        });
        lines.push(format!("  waves    {}", band.collect::<Vec<_>>().join(", ")));
    }
    if let Some(border) = &evaluation.border {
        lines.push(format!("  border   {}, inside {}", percent(border.border), percent(border.inside)));
    }
    let worst = evaluation.worst(5);
    let worst: Vec<_> = worst.iter().map(|case| format!("sample {} {}", case.sample, percent(case.error))).collect();
    lines.push(format!("  worst    {}", worst.join(", ")));
    lines.push(format!("  costs    {}", costs(receipt)));
    lines.join("\n")
}
