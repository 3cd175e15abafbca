//! `lamo evaluate`: the error of a run on its test samples, with a report and a receipt; and the check of a receipt.

use super::progress::Meter;
use super::{make_folder, quoted, say, start_threads, warn, write_file};
use crate::report::{PAGE, Report, costs, data_name, in_unit, label_errors, outputs};
use crate::text::{error, percent, short};
use anyhow::Result;
use clap::Args;
use lamo::Kind;
use lamo::data::dataset::MANIFEST;
use lamo::error::{Refusal, counted};
use lamo::inference::Series;
use lamo::inference::evaluate::{Evaluation, OutputErrors, RECEIPT, Receipt};
use lamo::run;
use lamo::workflow::{self, Cancel, EvaluateRequest, Evaluated, Event, Session, VerifyRequest};
use lamo_tensor::Device;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// `lamo evaluate`
#[derive(Args)]
pub(crate) struct Evaluate {
    /// Run folder, checkpoint file, name of a pretrained model, or a model folder made by lamo import, which needs --data.
    #[arg(required_unless_present = "verify")]
    run: Option<PathBuf>,
    /// Evaluate on the test samples of this data set instead of the run's own. Where it holds the run's own data, which have
    /// moved, the split of the run is kept.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Predict each sample under every symmetry of the problem and take the mean. It takes as many times longer as there
    /// are symmetries, and helps models that were trained with train.symmetries.
    #[arg(long, conflicts_with = "verify")]
    symmetries: bool,
    /// Where to compute: cpu, cuda, cuda:1.
    #[arg(long, value_name = "D", default_value = "cpu")]
    device: Device,
    /// Number of threads; one per core unless given.
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Folder for the receipt, the report and the pictures. The default is the run folder; with --data or a checkpoint
    /// file nothing is written unless --out is given.
    #[arg(long, value_name = "DIR", conflicts_with = "verify")]
    out: Option<PathBuf>,
    /// Compute the numbers of a receipt again and compare; fail if they differ.
    #[arg(long, value_name = "RECEIPT")]
    verify: Option<PathBuf>,
    /// Print the receipt as JSON on standard output.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(options: &Evaluate) -> Result<()> {
    let threads = start_threads(options.threads)?;
    if let Some(path) = &options.verify {
        return verify(options, path, threads);
    }
    let path = options.run.clone().unwrap_or_default(); // clap requires it without --verify
    let own = path.is_dir() && options.data.is_none();
    let folder = options.out.clone().or_else(|| own.then(|| path.clone()));
    if let Some(out) = &options.out
        && !(own && out.canonicalize().ok() == path.canonicalize().ok())
    {
        refuse_occupied(out)?;
    }
    let Evaluate { symmetries, device, .. } = *options;
    let request = EvaluateRequest { run: path, data: options.data.clone(), symmetries, device };
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
        None => say("no report was written; --out DIR writes the receipt, the report and the pictures"),
    }
}

/// Refuses to write a report into another run, into a folder of checkpoints or into a data set.
pub(crate) fn refuse_occupied(out: &Path) -> Result<(), Refusal> {
    match [run::EXPERIMENT, run::LAST, MANIFEST].into_iter().find(|name| out.join(name).is_file()) {
        Some(found) => {
            Err(Refusal::new(format!("--out {}", out.display()), "a folder of its own", format!("{found} in it"))
                .advise("choose another folder")
                .of(Kind::Conflict))
        }
        None => Ok(()),
    }
}

/// Runs a job with a progress line for data that are made again; a script gets no such line.
pub(crate) fn with_meter<T>(script: bool, threads: usize, job: impl FnOnce(&Session<'_>) -> Result<T>) -> Result<T> {
    let meter: Mutex<Option<Meter>> = Mutex::new(None);
    let meter = || meter.lock().unwrap_or_else(PoisonError::into_inner);
    let listener = |event: Event<'_>| match event {
        Event::Making { problem, progress } if !script => {
            meter().get_or_insert_with(|| Meter::of_samples(&format!("making {problem}"))).show(progress);
        }
        Event::Warning(warning) => warn(&format!("warning: {warning}")),
        _ => {}
    };
    let done = job(&Session { listener: &listener, cancel: Cancel::new(), threads });
    if let Some(meter) = meter().take() {
        meter.clear();
    }
    done
}

/// Evaluates a run that has just ended, on its own data, and writes the receipt, the report and the pictures into its
/// folder; the receipt. Only warnings are reported.
pub(crate) fn after_training(folder: &Path, device: Device, session: &Session<'_>) -> Result<Receipt> {
    let request = EvaluateRequest { run: folder.to_owned(), data: None, symmetries: false, device };
    let listener = |event: Event<'_>| {
        if let Event::Warning(_) = event {
            (session.listener)(event);
        }
    };
    let evaluated = workflow::evaluate(&request, &Session { listener: &listener, ..session.clone() })?;
    write(&evaluated, &request, folder)?;
    Ok(evaluated.receipt)
}

/// What stands beside the headline: the errors of each output in its unit, and the errors of predictors that learn nothing;
/// a name and its values per row.
pub(crate) fn beside(evaluation: &Evaluation) -> Vec<(&'static str, String)> {
    let mut rows: Vec<(&'static str, String)> = Vec::new();
    for output in &evaluation.outputs {
        rows.push((if rows.is_empty() { "outputs" } else { "" }, measured(output)));
    }
    if let Some(trivial) = &evaluation.trivial {
        let named = trivial.named();
        let named: Vec<_> = named.iter().map(|(name, error)| format!("{name} {}", percent(*error))).collect();
        let none = || "cannot be computed without the training samples of the run".to_owned();
        rows.push(("trivial", if named.is_empty() { none() } else { named.join(", ") }));
    }
    rows
}

/// The errors of an output in one line.
fn measured(output: &OutputErrors) -> String {
    let relative = output.relative_l2.map_or("no relative error, as it is zero".to_owned(), percent);
    let mut parts = vec![format!("{} {relative}", output.name.replace('_', " "))];
    let numbers = [("MAE", output.mae), ("RMSE", output.rmse), ("max error", output.max)];
    parts.push(numbers.map(|(name, value)| format!("{name} {}", error(value))).join(", ") + &in_unit(&output.unit));
    parts.extend(output.r2.map(|r2| format!("R² {}", error(r2))));
    parts.extend(output.h1.map(|h1| format!("H1 {}", percent(h1))));
    parts.extend(output.spectrum.map(|spectrum| format!("energy spectrum {}", percent(spectrum))));
    parts.join(", ")
}

fn verify(options: &Evaluate, path: &Path, threads: usize) -> Result<()> {
    let verified = with_meter(options.json, threads, |session| {
        let (receipt, device) = (path.to_owned(), options.device);
        let request = VerifyRequest { receipt, run: options.run.clone(), data: options.data.clone(), device };
        Ok(workflow::verify(&request, session)?)
    })?;
    let error = verified.relative_l2;
    let how = match verified.tolerance {
        0.0 => "bit for bit".to_owned(),
        tolerance => format!("within {}, as another version or kind of machine made it", short(tolerance)),
    };
    if options.json {
        return say(&json!({ "verified": true, "relative_l2": error, "how": how }).to_string());
    }
    say(&format!("{}: verified {how}: data, split, experiment, weights, mean relative L2 {error}", path.display()))
}

/// The command that computes the numbers of the receipt in `folder` again.
fn repeat(request: &EvaluateRequest, folder: &Path) -> String {
    let run = if folder == request.run { String::new() } else { format!(" {}", quoted(&request.run)) };
    let data = request.data.as_ref().map(|data| format!(" --data {}", quoted(data))).unwrap_or_default();
    format!("lamo evaluate{run}{data} --verify {}", quoted(&folder.join(RECEIPT)))
}

/// Writes the receipt, the report and the pictures.
pub(crate) fn write(evaluated: &Evaluated, request: &EvaluateRequest, folder: &Path) -> Result<()> {
    make_folder(folder)?;
    let (task, test) = (&evaluated.trained.operator.task, &evaluated.test);
    let series = Series::of(task, test);
    let in_snapshots = series.as_ref().map(|series| series.values(&evaluated.prediction));
    let (task, samples) = series.as_ref().map_or((task, test), |series| (&series.task, &series.samples));
    let report = Report {
        trained: &evaluated.trained,
        task,
        samples,
        prediction: in_snapshots.as_deref().unwrap_or(&evaluated.prediction),
        manifest: evaluated.dataset.manifest(),
        dataset: &evaluated.dataset,
        train_samples: evaluated.train_samples,
        history: &evaluated.history,
        receipt: &evaluated.receipt,
        repeat: &repeat(request, folder),
    };
    report.write(folder)?;
    Ok(write_file(&folder.join(RECEIPT), evaluated.receipt.text().as_bytes())?)
}

/// The result as a person reads it on a terminal.
fn table(evaluated: &Evaluated) -> String {
    let Evaluated { trained, dataset, receipt, .. } = evaluated;
    let evaluation = &receipt.evaluation;
    let title = format!(
        "{}, {}: {} {} ({}) on {}",
        data_name(&trained.experiment, dataset.manifest()),
        receipt.model,
        evaluation.headline_name(),
        error(evaluation.headline()),
        percent(evaluation.headline()),
        counted(evaluation.distribution.count, "test sample")
    );
    let mut lines = vec![title];
    if let Some(count) = receipt.symmetries {
        lines.push(format!("  {:10} each prediction is the mean over {count}", "symmetries"));
    }
    let rows = rows(evaluation, &outputs(&trained.operator.task));
    lines.extend(rows.into_iter().map(|(name, values)| format!("  {name:10} {values}")));
    let labels = label_errors(dataset.manifest());
    if !labels.is_empty() {
        lines.push(format!("  {:10} {labels}", "labels"));
    }
    lines.push(format!("  {:10} {}", "costs", costs(receipt)));
    lines.join("\n")
}

/// What was measured, a name and its values per row.
fn rows(evaluation: &Evaluation, outputs: &[String]) -> Vec<(&'static str, String)> {
    let [best, p5, p25, median, p75, p95, worst] = evaluation.distribution.quantiles.map(percent);
    let samples =
        format!("best {best}, 5th percentile {p5}, 25th {p25}, median {median}, 75th {p75}, 95th {p95}, worst {worst}");
    let mut rows = beside(evaluation);
    let samples = match evaluation.mean_of_outputs {
        Some(_) => format!("all outputs as one: mean {}, {samples}", percent(evaluation.relative_l2)),
        None => samples,
    };
    rows.push(("samples", samples));
    let list = |values: &[f64]| values.iter().map(|value| percent(*value)).collect::<Vec<_>>().join(", ");
    if !evaluation.snapshots.is_empty() {
        let values = format!("{}; their mean {}", list(&evaluation.snapshots), percent(evaluation.mean_snapshot()));
        rows.push(("snapshots", values));
    }
    if !evaluation.channels.is_empty() {
        let each = outputs.iter().zip(&evaluation.channels).map(|(name, error)| format!("{name} {}", percent(*error)));
        rows.push(("channels", each.collect::<Vec<_>>().join(", ")));
    }
    if let Some(spectrum) = &evaluation.spectrum {
        let bands = spectrum.bands();
        let band = bands.iter().filter(|band| !band.waves.is_empty()).map(|band| {
            let last = band.waves.end - 1;
            format!("{} ({} to {last} waves) {}", band.name, band.waves.start, percent(band.error))
        });
        rows.push(("waves", band.collect::<Vec<_>>().join(", ")));
    }
    if let Some(border) = &evaluation.border {
        rows.push(("border", format!("{}, inside {}", percent(border.border), percent(border.inside))));
    }
    let worst = evaluation.worst(5);
    let worst = worst.iter().map(|sample| format!("sample {} {}", sample.sample, percent(sample.error)));
    rows.push(("worst", worst.collect::<Vec<_>>().join(", ")));
    rows
}
