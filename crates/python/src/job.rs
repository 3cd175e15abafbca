//! Jobs that take a while: a thread computes, the caller's thread passes events on to Python and listens for Ctrl-C.
//!
//! The interpreter lock is free while the job computes. Ctrl-C asks the job to stop, and the job saves its work first; a second
//! Ctrl-C does not wait for that.

use crate::errors;
use lamo::{Cancel, Error, Event, Session};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use serde_json::{Value, json};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// Time between two looks for Ctrl-C.
const PAUSE: Duration = Duration::from_millis(50);
/// Time between two reports of the same progress.
const BETWEEN_REPORTS: Duration = Duration::from_millis(100);
/// Bytes of the stack of a job, as the main thread of a program has.
const STACK: usize = 8 << 20;

/// The process that started to compute; 0 before.
static OWNER: AtomicU32 = AtomicU32::new(0);

/// Refuses to compute in a process that was forked from one that computed: the threads of its parent do not exist there, and it would
/// wait for them for ever.
pub(crate) fn claim_process() -> PyResult<()> {
    let own = std::process::id();
    match OWNER.compare_exchange(0, own, Ordering::Relaxed, Ordering::Relaxed) {
        Err(owner) if owner != own => Err(PyRuntimeError::new_err(
            "this process was forked from one in which lamo had computed, and has none of its threads; start processes with \
             multiprocessing.get_context('spawn')",
        )),
        _ => Ok(()),
    }
}

/// How a job ended, and what interrupted it: KeyboardInterrupt, or an exception of the listener.
pub(crate) struct Ended<T> {
    pub(crate) outcome: Result<T, Error>,
    pub(crate) interruption: Option<PyErr>,
}

impl<T> Ended<T> {
    /// The result of a job that leaves nothing behind when it is interrupted.
    pub(crate) fn or_raise(self, py: Python<'_>) -> PyResult<T> {
        match (self.outcome, self.interruption) {
            // The sentence of a cancelled job says what was saved.
            (Err(error), None) => Err(errors::raised(py, &error)),
            (Err(error), Some(raised)) if by_keyboard(py, &raised) => Err(errors::raised(py, &error)),
            (_, Some(raised)) => Err(raised),
            (Ok(result), None) => Ok(result),
        }
    }
}

/// Whether an exception is Ctrl-C.
pub(crate) fn by_keyboard(py: Python<'_>, raised: &PyErr) -> bool {
    raised.is_instance_of::<pyo3::exceptions::PyKeyboardInterrupt>(py)
}

/// Runs a job; `listener` is called with each event as a text of JSON.
pub(crate) fn run<T: Send + 'static>(
    py: Python<'_>,
    listener: Option<Py<PyAny>>,
    job: impl FnOnce(&Session<'_>) -> Result<T, Error> + Send + 'static,
) -> PyResult<Ended<T>> {
    claim_process()?;
    let cancel = Cancel::new();
    let (sender, events) = mpsc::channel::<String>();
    let asked = cancel.clone();
    let work = move || {
        let reporter = Reporter { sender, last: Mutex::new(None) };
        let tell = |event: Event<'_>| reporter.tell(&event);
        job(&Session { listener: &tell, cancel: asked, ..Session::default() })
    };
    let thread = std::thread::Builder::new().name("lamo".to_owned()).stack_size(STACK).spawn(work)?;
    let interruption = py.detach(move || attend(&events, listener.as_ref(), &cancel))?;
    let outcome = py.detach(|| thread.join()).map_err(|panic| errors::broken(py, &*panic))?;
    Ok(Ended { outcome, interruption })
}

/// Passes events on until the job ends. Ctrl-C, or an exception of the listener, cancels the job and is returned; a second Ctrl-C is an error: the
/// thread then saves its work by itself.
fn attend(events: &Receiver<String>, listener: Option<&Py<PyAny>>, cancel: &Cancel) -> Result<Option<PyErr>, PyErr> {
    let mut interruption: Option<PyErr> = None;
    loop {
        let event = match events.recv_timeout(PAUSE) {
            Ok(event) => Some(event),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return Ok(interruption),
        };
        let attended = Python::attach(|py| {
            py.check_signals()?;
            match (listener, event) {
                (Some(listener), Some(event)) if interruption.is_none() => listener.call1(py, (event,)).map(drop),
                _ => Ok(()),
            }
        });
        if let Err(raised) = attended {
            if interruption.is_some() {
                return Err(raised);
            }
            cancel.cancel();
            interruption = Some(raised);
        }
    }
}

/// Sends events to the thread that talks with Python.
struct Reporter {
    sender: Sender<String>,
    /// When progress was sent last.
    last: Mutex<Option<Instant>>,
}

impl Reporter {
    fn tell(&self, event: &Event<'_>) {
        let Some((object, frequent)) = described(event) else { return };
        if frequent {
            let Ok(mut last) = self.last.lock() else { return };
            if last.is_some_and(|last| last.elapsed() < BETWEEN_REPORTS) {
                return;
            }
            *last = Some(Instant::now());
        }
        let _ = self.sender.send(object.to_string()); // a listener that has gone needs no events
    }
}

/// An event in the words of `lamo train --json`, and whether many of its kind come.
fn described(event: &Event<'_>) -> Option<(Value, bool)> {
    Some(match event {
        Event::Making { problem, progress } => {
            let (complete, samples) = (progress.complete, progress.samples);
            (
                json!({ "event": "making", "problem": problem, "complete": complete, "samples": samples }),
                complete < samples,
            )
        }
        Event::Importing(transfer) => {
            (json!({ "event": "importing", "done": transfer.done, "total": transfer.total }), true)
        }
        Event::Data { dataset, .. } => {
            let folder = dataset.folder().display().to_string();
            (json!({ "event": "data", "folder": folder, "samples": dataset.samples() }), false)
        }
        Event::Model { name, parameters, steps, batch, .. } => {
            let object = json!({
                "event": "model", "model": name, "parameters": parameters, "steps": steps, "batch": batch
            });
            (object, false)
        }
        Event::Init { origin, error } => {
            let path = origin.path.display().to_string();
            (json!({ "event": "init", "path": path, "error": error }), false)
        }
        Event::Run { folder, step, steps, .. } => {
            let folder = folder.display().to_string();
            (json!({ "event": "run", "folder": folder, "step": step, "steps": steps }), false)
        }
        Event::Progress(progress) if progress.finished.is_none() => {
            let object = json!({
                "event": "progress", "step": progress.step, "steps": progress.steps, "epoch": progress.epoch,
                "epochs": progress.epochs, "train": progress.train, "rate": progress.rate, "seconds": progress.seconds,
            });
            (object, true)
        }
        Event::Epoch(line) => {
            let mut object = json!(line);
            object["event"] = json!("epoch");
            (object, false)
        }
        Event::Checkpoint { step } => (json!({ "event": "checkpoint", "step": step }), false),
        Event::Note(text) => (json!({ "event": "note", "message": text }), false),
        Event::Warning(text) => (json!({ "event": "warning", "message": text }), false),
        _ => return None,
    })
}
