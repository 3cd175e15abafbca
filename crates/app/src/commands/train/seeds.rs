//! `lamo train --seeds 0,1,2`: one training per seed, side by side on a GPU and one after the other on a CPU, and the mean of
//! their errors with its deviation.

use super::Train;
use super::view::{is_due, time_left};
use crate::commands::{evaluate, quoted, say, warn};
use crate::failure;
use crate::text::{duration, error};
use anyhow::Result;
use lamo::error::{Refusal, counted};
use lamo::workflow::{self, Cancel, Event, Session, TrainRequest};
use lamo::{Error, Kind};
use lamo_tensor::{Device, DeviceError, DeviceErrorKind};
use serde_json::{Value, json};
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// What became of one seed.
struct Ended {
    seed: u64,
    folder: PathBuf,
    seconds: f64,
    /// The headline error on the test samples, if the training finished.
    error: Option<f64>,
}

pub(super) fn run(options: &Train, session: &Session<'_>, saving: Duration) -> Result<()> {
    let seeds = &options.seeds;
    let mut sorted = seeds.clone();
    sorted.sort_unstable();
    if let Some(pair) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Refusal::new("--seeds", "different seeds", format!("{} twice", pair[0])).into());
    }
    let one = |seed: u64, together: usize| match session.cancel.is_cancelled() {
        true => Err(Refusal::said("stopped before its first step").of(Kind::Cancelled).into()),
        false => train(options, (seed, together), session, saving),
    };
    let ends: Vec<Result<Ended>> = if options.device.unwrap_or_default() == Device::Cpu {
        seeds.iter().map(|&seed| one(seed, 1)).collect()
    } else {
        let mut ends: Vec<Result<Ended>> = std::thread::scope(|scope| {
            let threads: Vec<_> = seeds.iter().map(|&seed| scope.spawn(move || one(seed, seeds.len()))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(broken()))).collect()
        });
        let crowded = |end: &Result<Ended>| seeds.len() > 1 && end.as_ref().is_err_and(is_full);
        for (&seed, end) in seeds.iter().zip(&mut ends).filter(|(_, end)| crowded(end)) {
            // What has no room beside the others may have room alone. A run folder that was begun is not begun again.
            let again = one(seed, 1);
            if !again.as_ref().is_err_and(|reason| failure::kind(reason) == Kind::Conflict) {
                *end = again;
            }
        }
        ends
    };
    finish(options, ends)
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

/// Trains with one seed, beside as many others as share the device, and evaluates the run.
fn train(options: &Train, (seed, together): (u64, usize), session: &Session<'_>, saving: Duration) -> Result<Ended> {
    let mut request = TrainRequest { together, ..options.request(saving) };
    request.changes.push(format!("seed={seed}"));
    request.out = request.out.map(|out| {
        let mut name = out.file_name().map(OsString::from).unwrap_or_default();
        name.push(format!("-{seed}"));
        out.with_file_name(name)
    });
    let log = Log { seed, json: options.json, state: Mutex::new(None) };
    let listener = |event: Event<'_>| match event {
        Event::Making { .. } | Event::Data { .. } => (session.listener)(event), // made once for all
        _ => log.show(event),
    };
    let session = Session { listener: &listener, cancel: session.cancel.clone(), threads: session.threads };
    let run = workflow::train(&request, &session)?;
    // What is trained is evaluated, also after Ctrl-C.
    let calm = Session { cancel: Cancel::new(), ..session };
    let error = match run.finished {
        true => Some(evaluate::after_training(&run.folder, run.device, &calm)?.evaluation.headline()),
        false => None,
    };
    Ok(Ended { seed, folder: run.folder, seconds: run.seconds, error })
}

/// Prints a line per seed and the mean. An error of one seed is told after the others.
fn finish(options: &Train, ends: Vec<Result<Ended>>) -> Result<()> {
    let (mut errors, mut failure) = (Vec::new(), None);
    for (seed, end) in options.seeds.iter().zip(ends) {
        match end {
            Err(reason) if failure.is_some() => warn(&format!("seed {seed}: {reason}")), // the first ends the command
            Err(reason) => failure = Some(reason.context(format!("seed {seed}"))),
            Ok(Ended { seed, folder, seconds, error: found }) => {
                let path = folder.display().to_string();
                let event = json!({ "event": "end", "seed": seed, "folder": path, "test": found, "seconds": seconds });
                match found {
                    Some(found) => {
                        errors.push(found);
                        print(
                            options.json,
                            &format!("seed {seed}: {}, {}, {path}", error(found), duration(seconds)),
                            &event,
                        )?;
                    }
                    None => {
                        let advice = format!("resume with: lamo train --resume {}", quoted(&folder));
                        print(options.json, &format!("seed {seed}: stopped and saved; {advice}"), &event)?;
                        let stopped = Refusal::about(format!("seed {seed}"), "stopped and saved")
                            .advise(advice)
                            .of(Kind::Cancelled);
                        failure.get_or_insert(Error::from(stopped).into());
                    }
                }
            }
        }
    }
    if errors.len() > 1 {
        let (mean, deviation) = moments(&errors);
        print(
            options.json,
            &format!("mean of {}: {} ± {}", counted(errors.len(), "seed"), error(mean), error(deviation)),
            &json!({ "event": "mean", "seeds": errors.len(), "mean": mean, "deviation": deviation }),
        )?;
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

/// The events of one training as lines that name its seed.
struct Log {
    seed: u64,
    json: bool,
    /// The epoch of the last line, when the first step was taken, and which one it was.
    state: Mutex<Option<(usize, Instant, usize)>>,
}

impl Log {
    /// Prints an event. The training continues if the line cannot be written.
    fn show(&self, event: Event<'_>) {
        let seed = self.seed;
        match event {
            Event::Run { folder, .. } => {
                let folder = folder.display().to_string();
                self.say(&format!("run: {folder}"), json!({ "event": "run", "folder": folder }));
            }
            Event::Progress(progress) => {
                let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
                let (logged, started, first) = *state.get_or_insert((0, Instant::now(), progress.step));
                let Some(line) = progress.finished else { return };
                if !self.json && !is_due((logged > 0).then_some(logged), line, progress.epochs) {
                    return;
                }
                *state = Some((line.epoch, started, first));
                let rate = progress.step.saturating_sub(first) as f64 / started.elapsed().as_secs_f64().max(1e-9);
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
            Event::Warning(warning) => warn(&format!("seed {seed}: {warning}")),
            _ => {}
        }
    }

    fn say(&self, text: &str, mut object: Value) {
        object["seed"] = self.seed.into();
        let _ = print(self.json, &format!("seed {}: {text}", self.seed), &object);
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
