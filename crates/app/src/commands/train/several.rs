//! Several trainings in one command: of models (`--model lamo,fno`), of seeds (`--seeds 0,1,2`), or interrupted ones
//! (`--resume A --resume B`). They run side by side on a GPU and one after the other on a CPU.

use super::Train;
use super::pace::Pace;
use super::view::{is_due, time_left};
use crate::commands::{evaluate, quoted, say, warn};
use crate::failure;
use crate::text::{duration, error as in_words};
use anyhow::Result;
use lamo::data::dataset::Dataset;
use lamo::error::{Refusal, counted};
use lamo::run::{environment, experiment};
use lamo::workflow::{self, Cancel, Event, ResumeRequest, Session, TrainRequest};
use lamo::{Error, Kind};
use lamo_tensor::{Device, DeviceError, DeviceErrorKind};
use serde_json::{Map, Value, json};
use std::collections::HashSet;
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// One of the trainings.
struct Part {
    model: Option<String>,
    seed: Option<u64>,
    task: Task,
}

enum Task {
    Start(TrainRequest),
    Resume(ResumeRequest),
}

/// What became of one of them.
struct Ended {
    folder: PathBuf,
    /// The headline error on the test samples, if the training finished.
    error: Option<f64>,
}

pub(super) fn run(options: &Train, session: &Session<'_>, saving: Duration) -> Result<()> {
    // All trainings of a command usually have the same data; they are told once.
    let told: Mutex<HashSet<PathBuf>> = Mutex::default();
    let is_new =
        |dataset: &Dataset| told.lock().unwrap_or_else(PoisonError::into_inner).insert(dataset.folder().to_owned());
    let listener = |event: Event<'_>| match &event {
        Event::Data { dataset, .. } if !is_new(dataset) => {}
        _ => (session.listener)(event),
    };
    let session = &Session { listener: &listener, ..session.clone() };
    let mut parts = parts(options, saving)?;
    parts.iter().try_for_each(Part::check)?;
    fix_lengths(&mut parts, options.json, session)?;
    let most = if on_gpu(options, &parts) { options.together.map_or(parts.len(), NonZeroUsize::get) } else { 1 };
    let together = most.min(parts.len());
    let one = |part: &Part, together: usize| match session.cancel.is_cancelled() {
        true => Err(Refusal::said("stopped before its first step").of(Kind::Cancelled).into()),
        false => part.train((options.json, together), session),
    };
    let mut ends = side_by_side(&parts, together, |part| one(part, together));
    let crowded = |end: &Result<Ended>| together > 1 && end.as_ref().is_err_and(is_full);
    for (part, end) in parts.iter().zip(&mut ends).filter(|(_, end)| crowded(end)) {
        // What has no room beside the others may have room alone. A run folder that was begun is not begun again.
        let again = one(part, 1);
        if !again.as_ref().is_err_and(|reason| failure::kind(reason) == Kind::Conflict) {
            *end = again;
        }
    }
    finish(options.json, &parts, ends)
}

/// Every model with every seed, or every run that is resumed.
fn parts(options: &Train, saving: Duration) -> Result<Vec<Part>> {
    require_different("--model", "models", &options.model)?;
    require_different("--seeds", "seeds", &options.seeds)?;
    let runs: Vec<String> = options.resume.iter().map(|run| run.display().to_string()).collect();
    require_different("--resume", "runs", &runs)?;
    if !options.resume.is_empty() {
        let resumed = |run: &PathBuf| Task::Resume(options.resumed(run, saving));
        return Ok(options.resume.iter().map(|run| Part { model: None, seed: None, task: resumed(run) }).collect());
    }
    let named = |several: bool, model: &String| if several { Some(model.clone()) } else { None };
    let mut models: Vec<_> = options.model.iter().map(|model| named(options.model.len() > 1, model)).collect();
    let mut seeds: Vec<_> = options.seeds.iter().copied().map(Some).collect();
    // One model, or one seed, is that of the request.
    models.resize(models.len().max(1), None);
    seeds.resize(seeds.len().max(1), None);
    let pairs = models.iter().flat_map(|model| seeds.iter().map(move |seed| (model.clone(), *seed)));
    Ok(pairs.map(|(model, seed)| part(options.request(saving), model, seed)).collect())
}

fn part(mut request: TrainRequest, model: Option<String>, seed: Option<u64>) -> Part {
    let ends = model.iter().cloned().chain(seed.map(|seed| seed.to_string()));
    request.out = request.out.map(|out| {
        let mut name = out.file_name().map(OsString::from).unwrap_or_default();
        ends.for_each(|end| name.push(format!("-{end}")));
        out.with_file_name(name)
    });
    request.model = model.clone().or(request.model);
    request.changes.extend(seed.map(|seed| format!("seed={seed}")));
    Part { model, seed, task: Task::Start(request) }
}

fn require_different<T: Ord + ToString>(option: &str, what: &str, values: &[T]) -> Result<(), Refusal> {
    let mut sorted: Vec<&T> = values.iter().collect();
    sorted.sort_unstable();
    match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(Refusal::new(option, format!("different {what}"), format!("{} twice", pair[0].to_string()))),
        None => Ok(()),
    }
}

/// Epochs instead of minutes, timed before the first training begins; all seeds of a model have the same.
fn fix_lengths(parts: &mut [Part], json: bool, session: &Session<'_>) -> Result<()> {
    let mut fixed: Vec<(Option<String>, TrainRequest)> = Vec::new();
    for part in parts {
        let log = part.log(json);
        let Part { model, task: Task::Start(request), .. } = part else { continue };
        if request.minutes.is_none() {
            continue;
        }
        if let Some((_, first)) = fixed.iter().find(|(other, _)| other == model) {
            // The first seed of the model has as many changes of its own, and those of its length behind them.
            let length = first.changes[request.changes.len()..].to_vec();
            (request.minutes, request.preset) = (None, first.preset);
            request.changes.extend(length);
            continue;
        }
        let listener = |event: Event<'_>| log.pass(event, session);
        let own = Session { listener: &listener, ..session.clone() };
        let timed = workflow::in_minutes(request, &own);
        *request = timed.map_err(|reason| anyhow::Error::from(reason).context(log.name.clone()))?;
        fixed.push((model.clone(), request.clone()));
    }
    Ok(())
}

/// Whether all of them run on a GPU. A run that cannot be read is refused when its turn comes.
fn on_gpu(options: &Train, parts: &[Part]) -> bool {
    let recorded = |run: &Path| environment(run).ok().and_then(|before| before.device.parse().ok());
    let device = |part: &Part| match &part.task {
        Task::Start(request) => Some(request.device),
        Task::Resume(request) => options.device.or_else(|| recorded(&request.run)),
    };
    parts.iter().all(|part| device(part).is_some_and(|device| device != Device::Cpu))
}

/// Does the work of all parts, `together` at a time; what became of them, in their order.
fn side_by_side(parts: &[Part], together: usize, work: impl Fn(&Part) -> Result<Ended> + Sync) -> Vec<Result<Ended>> {
    let next = AtomicUsize::new(0);
    let ends: Vec<Mutex<Result<Ended>>> = parts.iter().map(|_| Mutex::new(Err(broken()))).collect();
    let take = || loop {
        let place = next.fetch_add(1, Ordering::Relaxed);
        let Some(part) = parts.get(place) else { break };
        let end = catch_unwind(AssertUnwindSafe(|| work(part))).unwrap_or_else(|_| Err(broken()));
        *ends[place].lock().unwrap_or_else(PoisonError::into_inner) = end;
    };
    std::thread::scope(|scope| {
        (1..together).for_each(|_| drop(scope.spawn(take)));
        take();
    });
    ends.into_iter().map(|end| end.into_inner().unwrap_or_else(PoisonError::into_inner)).collect()
}

/// The error of a training that panicked; the panic itself is told on standard error.
fn broken() -> anyhow::Error {
    Refusal::said("ended by an error of lamo itself").of(Kind::Internal).into()
}

/// Whether the memory of the GPU was full.
fn is_full(error: &anyhow::Error) -> bool {
    let device = error.downcast_ref::<Error>().and_then(Error::downcast_ref::<DeviceError>);
    device.is_some_and(|device| device.kind() == DeviceErrorKind::OutOfMemory)
}

impl Part {
    /// What its lines begin with.
    fn name(&self) -> String {
        let seed = self.seed.map(|seed| format!("seed {seed}"));
        match &self.task {
            Task::Resume(request) => request.run.display().to_string(),
            Task::Start(_) => self.model.iter().cloned().chain(seed).collect::<Vec<_>>().join(", "),
        }
    }

    /// The same for scripts.
    fn keys(&self) -> Map<String, Value> {
        let model = self.model.as_ref().map(|model| ("model".to_owned(), json!(model)));
        let seed = self.seed.map(|seed| ("seed".to_owned(), json!(seed)));
        let run = match &self.task {
            Task::Resume(request) => Some(("resume".to_owned(), json!(request.run.display().to_string()))),
            Task::Start(_) => None,
        };
        model.into_iter().chain(seed).chain(run).collect()
    }

    fn log(&self, json: bool) -> Log {
        Log { name: self.name(), keys: self.keys(), json, state: Mutex::default() }
    }

    /// Refuses what is wrong before the first training begins.
    fn check(&self) -> Result<(), Error> {
        match &self.task {
            Task::Start(request) => request.experiment().map(drop),
            Task::Resume(request) => experiment(&request.run).map(drop),
        }
    }

    /// Trains beside as many others as share the device, and evaluates the run.
    fn train(&self, (json, together): (bool, usize), session: &Session<'_>) -> Result<Ended> {
        let log = self.log(json);
        let listener = |event: Event<'_>| log.pass(event, session);
        let session = Session { listener: &listener, cancel: session.cancel.clone(), threads: session.threads };
        let run = match &self.task {
            Task::Start(request) => workflow::train(&TrainRequest { together, ..request.clone() }, &session),
            Task::Resume(request) => workflow::resume(&ResumeRequest { together, ..request.clone() }, &session),
        }?;
        // What is trained is evaluated, also after Ctrl-C.
        let calm = Session { cancel: Cancel::new(), ..session };
        let error = match run.finished {
            true => Some(evaluate::after_training(&run.folder, run.device, &calm)?.evaluation.headline()),
            false => None,
        };
        let (path, time) = (run.folder.display().to_string(), duration(run.seconds));
        let text = match error {
            Some(found) => format!("{}, {time}, {path}", in_words(found)),
            None => format!("stopped and saved; {}", advice(&run.folder)),
        };
        log.say(&text, json!({ "event": "end", "folder": path, "test": error, "seconds": run.seconds }));
        Ok(Ended { folder: run.folder, error })
    }
}

fn advice(folder: &Path) -> String {
    format!("resume with: lamo train --resume {}", quoted(folder))
}

/// Prints the mean of the seeds of every model, and how to compare models. An error of one training is told after the others.
fn finish(json: bool, parts: &[Part], ends: Vec<Result<Ended>>) -> Result<()> {
    let (mut done, mut failure) = (Vec::new(), None);
    for (part, end) in parts.iter().zip(ends) {
        let name = part.name();
        match end {
            Err(reason) if failure.is_some() => warn(&format!("{name}: {reason}")), // the first ends the command
            Err(reason) => failure = Some(reason.context(name)),
            Ok(Ended { folder, error: Some(error) }) => done.push((part, folder, error)),
            Ok(Ended { folder, error: None }) => {
                let stopped = Refusal::about(name, "stopped and saved").advise(advice(&folder)).of(Kind::Cancelled);
                failure.get_or_insert(Error::from(stopped).into());
            }
        }
    }
    for group in
        done.chunk_by(|a, b| a.0.model == b.0.model).filter(|group| group.len() > 1 && group[0].0.seed.is_some())
    {
        let errors: Vec<f64> = group.iter().map(|(_, _, error)| *error).collect();
        let (mean, deviation) = moments(&errors);
        let model = group[0].0.model.as_ref();
        let name = model.map_or(String::new(), |model| format!("{model}: "));
        let text =
            format!("{name}mean of {}: {} ± {}", counted(errors.len(), "seed"), in_words(mean), in_words(deviation));
        let mut event = json!({ "event": "mean", "seeds": errors.len(), "mean": mean, "deviation": deviation });
        if let Some(model) = model {
            event["model"] = json!(model);
        }
        print(json, &text, &event)?;
    }
    if !json && done.len() > 1 && done.iter().any(|(part, _, _)| part.seed.is_none()) {
        let folders: Vec<String> = done.iter().map(|(_, folder, _)| quoted(folder)).collect();
        say(&format!("compare with: lamo compare {}", folders.join(" ")))?;
    }
    failure.map_or(Ok(()), Err)
}

/// The mean, and the standard deviation of a sample.
fn moments(errors: &[f64]) -> (f64, f64) {
    let count = errors.len() as f64;
    let mean = errors.iter().sum::<f64>() / count;
    let square = errors.iter().map(|error| (error - mean).powi(2)).sum::<f64>();
    (mean, (square / (count - 1.0).max(1.0)).sqrt())
}

/// The events of one training as lines that begin with its name.
struct Log {
    name: String,
    keys: Map<String, Value>,
    json: bool,
    /// The epoch of the last line, and the pace.
    state: Mutex<(Option<usize>, Pace)>,
}

impl Log {
    /// Prints an event; data are made once for all trainings, and the session shows them.
    fn pass(&self, event: Event<'_>, session: &Session<'_>) {
        match event {
            Event::Making { .. } | Event::Data { .. } => (session.listener)(event),
            _ => self.show(event),
        }
    }

    /// Prints an event. The training continues if the line cannot be written.
    fn show(&self, event: Event<'_>) {
        match event {
            Event::Run { folder, step, steps, .. } => {
                let folder = folder.display().to_string();
                let from = if step > 0 { format!(", from step {step} of {steps}") } else { String::new() };
                self.say(&format!("run: {folder}{from}"), json!({ "event": "run", "folder": folder, "step": step }));
            }
            Event::Progress(progress) => {
                let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                let (logged, pace) = &mut *state;
                let rate = pace.steps_per_second(progress.step);
                let Some(line) = progress.finished else { return };
                if !self.json && !is_due(*logged, line, progress.epochs) {
                    return;
                }
                *logged = Some(line.epoch);
                let samples = if line.validation.is_some() { "validation" } else { "test" };
                let tested = line.error().map_or(String::new(), |found| format!("  {samples} {found:.4}"));
                let left = time_left(&progress, rate);
                let text = format!("epoch {}/{}  train {:.4}{tested}  {left}", line.epoch, progress.epochs, line.train);
                let mut object = json!(line);
                object["event"] = "epoch".into();
                self.say(&text, object);
            }
            Event::Note(note) => self.say(note, json!({ "event": "note", "message": note })),
            Event::Warning(warning) if self.json => {
                self.say("", json!({ "event": "warning", "message": warning }));
            }
            Event::Warning(warning) => warn(&format!("{}: {warning}", self.name)),
            _ => {}
        }
    }

    fn say(&self, text: &str, mut object: Value) {
        if let Some(object) = object.as_object_mut() {
            object.extend(self.keys.clone());
        }
        let _ = print(self.json, &format!("{}: {text}", self.name), &object);
    }
}

fn print(json: bool, text: &str, object: &Value) -> Result<()> {
    say(&if json { object.to_string() } else { text.to_owned() })
}

#[cfg(test)]
mod tests {
    use super::moments;

    #[test]
    fn the_deviation_is_that_of_a_sample() {
        let (mean, deviation) = moments(&[1.0, 2.0, 3.0]);
        assert!((mean - 2.0).abs() < 1e-15 && (deviation - 1.0).abs() < 1e-15);
        assert_eq!(moments(&[4.0]), (4.0, 0.0));
    }
}
