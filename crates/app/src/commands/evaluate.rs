//! `lamo evaluate`: how good is a run, where is it wrong, and is its receipt true?

use super::progress::Meter;
use super::{quoted, say, start_threads};
use crate::report::{PAGE, Report, costs, count, data_name, error, outputs, percent, replace, short};
use anyhow::{Context, Result, bail};
use clap::Args;
use lamo::data::dataset::MANIFEST;
use lamo::inference::evaluate::{RECEIPT, Receipt};
use lamo::run;
use lamo::workflow::{self, Cancel, EvaluateRequest, Evaluated, Event, Session};
use lamo_tensor::Device;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// `lamo evaluate`
#[derive(Args)]
pub(crate) struct Evaluate {
    /// Run folder, or a checkpoint file.
    #[arg(required_unless_present = "verify")]
    run: Option<PathBuf>,
    /// Another data set than the run's own, evaluated on its own test samples.
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
    let threads = start_threads(options.threads)?;
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
    let request = EvaluateRequest { run: path.clone(), data: options.data.clone(), device: options.device };
    let evaluated = with_meter(options.json, threads, |session| Ok(workflow::evaluate(&request, session)?))?;
    if let Some(folder) = &folder {
        write(&evaluated, &request, folder)?;
    }
    if options.json {
        return say(evaluated.receipt.text().trim_end());
    }
    say(&table(&evaluated))?;
    match folder {
        Some(folder) => say(&format!("report: {}", folder.join(PAGE).display())),
        None => say("report: none, nothing was written; --out DIR keeps receipt, report and pictures"),
    }
}

/// Runs a job with a progress line for data that are made again, which scripts do not get.
fn with_meter<T>(script: bool, threads: usize, job: impl FnOnce(&Session<'_>) -> Result<T>) -> Result<T> {
    let meter: Mutex<Option<Meter>> = Mutex::new(None);
    let meter = || meter.lock().unwrap_or_else(PoisonError::into_inner);
    let listener = |event: Event<'_>| {
        if let (Event::Making { problem, progress }, false) = (event, script) {
            meter().get_or_insert_with(|| Meter::new(&format!("making {problem}"))).show(progress);
        }
    };
    let done = job(&Session { listener: &listener, cancel: Cancel::new(), threads });
    if let Some(meter) = meter().take() {
        meter.clear();
    }
    done
}

/// Evaluates a run that has just ended, on its own data, and writes receipt, report and pictures into its folder: the mean
/// relative L2.
pub(crate) fn after_training(folder: &Path, device: Device, threads: usize) -> Result<f64> {
    let request = EvaluateRequest { run: folder.to_owned(), data: None, device };
    let evaluated = workflow::evaluate(&request, &Session { threads, ..Session::default() })?;
    write(&evaluated, &request, folder)?;
    Ok(evaluated.receipt.evaluation.relative_l2)
}

fn verify(options: &Evaluate, path: &Path, threads: usize) -> Result<()> {
    let verified = with_meter(options.json, threads, |session| {
        Ok(workflow::verify(path, options.run.as_deref(), options.data.clone(), options.device, session)?)
    })?;
    let error = verified.relative_l2;
    let how = match verified.tolerance {
        0.0 => "bit for bit".to_owned(),
        tolerance => format!("within {}, as it was made by another version or kind of machine", short(tolerance)),
    };
    if options.json {
        return say(&serde_json::json!({ "verified": true, "relative_l2": error, "how": how }).to_string());
    }
    say(&format!("{}: verified {how}: data, split, experiment, weights and mean relative L2 {error}", path.display()))
}

/// The command that computes the numbers of the receipt in `folder` again.
fn repeat(request: &EvaluateRequest, folder: &Path) -> String {
    let run = if folder == request.run { String::new() } else { format!(" {}", quoted(&request.run)) };
    let data = request.data.as_ref().map(|data| format!(" --data {}", quoted(data))).unwrap_or_default();
    format!("lamo evaluate{run}{data} --verify {}", quoted(&folder.join(RECEIPT)))
}

/// Writes receipt, report and pictures.
fn write(evaluated: &Evaluated, request: &EvaluateRequest, folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("{}: cannot be made", folder.display()))?;
    let report = Report {
        trained: &evaluated.trained,
        samples: &evaluated.test,
        prediction: &evaluated.prediction,
        manifest: evaluated.dataset.manifest(),
        learned: evaluated.train_samples,
        history: &evaluated.history,
        receipt: &evaluated.receipt,
        repeat: &repeat(request, folder),
    };
    report.write(folder)?;
    replace(&folder.join(RECEIPT), evaluated.receipt.text().as_bytes())
}

/// What people read on a terminal.
fn table(evaluated: &Evaluated) -> String {
    let Evaluated { trained, dataset, receipt, .. } = evaluated;
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
        let names = outputs(&trained.operator.task);
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
