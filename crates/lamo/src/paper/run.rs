//! Runs the cells that are missing, one after the other or some side by side, and stops inside a time budget.
//!
//! Each cell has a run folder of its own, named by its key. A cell whose folder has an experiment is resumed from its checkpoint,
//! one whose receipt is there is skipped; so the same command continues after a kill at any moment, and anywhere the run folders
//! or the receipts are. Data sets are made once in the cache and shared.

use super::effort::Length;
use super::plan::plan;
use super::plan::{self, Job};
use super::tables::{BENCHMARKS, BOTH};
use super::{Artifact, Insight, Options, Results, View, insight};
use crate::error::{Error, Kind, Refusal};
use crate::files::atomic;
use crate::inference::evaluate::RECEIPT;
use crate::run;
use crate::workflow::{self, EvaluateRequest, Event, ResumeRequest, Session};
use lamo_tensor::{Device, DeviceError, DeviceErrorKind};
use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Part of the budget that is kept for the last checkpoint, and its bounds in seconds.
const RESERVE: f64 = 0.05;
const LEAST_RESERVE: f64 = 1.0;
const MOST_RESERVE: f64 = 15.0;

/// What to run, and where.
#[derive(Clone, Debug)]
pub struct RunRequest {
    /// The artifacts whose cells are wanted.
    pub artifacts: Vec<Artifact>,
    /// The grid that they belong to.
    pub options: Options,
    /// The folder of run folders.
    pub runs: PathBuf,
    /// A folder that gets a copy of each receipt, such as `results/paper`.
    pub receipts: Option<PathBuf>,
    /// Folders whose receipts count as done, beside the two above.
    pub known: Vec<PathBuf>,
    /// Time after which the job stops; without it, it ends with the last cell.
    pub budget: Option<Duration>,
    /// Where to compute.
    pub device: Device,
    /// Time between checkpoints.
    pub saving: Duration,
    /// Cells that run side by side; small ones leave much of a GPU idle.
    pub together: NonZeroUsize,
}

/// How a cell ended.
#[derive(Debug)]
pub enum Outcome {
    /// It is trained and evaluated; its mean relative L2 error.
    Finished(f64),
    /// It was stopped and resumes with the next call.
    Stopped,
    /// The GPU has no room for it beside the others; it runs when fewer do.
    Crowded,
    /// It failed; the other cells go on.
    Failed(Error),
}

impl Outcome {
    /// What is wrong with the device, if that is why it failed.
    fn trouble(&self) -> Option<DeviceErrorKind> {
        match self {
            Outcome::Failed(error) => error.downcast_ref::<DeviceError>().map(DeviceError::kind),
            _ => None,
        }
    }
}

/// What a listener hears between the events of the trainings.
#[derive(Debug)]
pub enum Report<'a> {
    /// The plan.
    Plan {
        /// All cells.
        jobs: &'a [Job],
    },
    /// A cell begins.
    Begin {
        /// The cell.
        job: &'a Job,
        /// Its number among the cells, counted from 1 in the order they finish.
        number: usize,
        /// All cells.
        count: usize,
    },
    /// A thing that the user should know about a cell.
    Warning {
        /// The cell.
        job: &'a Job,
        /// A sentence.
        text: &'a str,
    },
    /// A cell has ended.
    End {
        /// The cell.
        job: &'a Job,
        /// How.
        outcome: &'a Outcome,
        /// Seconds since it began.
        seconds: f64,
    },
}

/// Cancels a session at a time, unless dropped before.
struct Alarm(Arc<AtomicBool>);

impl Alarm {
    fn set(at: Instant, session: &Session<'_>) -> Alarm {
        let (over, cancel) = (Arc::new(AtomicBool::new(false)), session.cancel.clone());
        let seen = Arc::clone(&over);
        std::thread::spawn(move || {
            while !seen.load(Ordering::Relaxed) {
                let left = at.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    cancel.cancel();
                    break;
                }
                std::thread::sleep(left.min(Duration::from_millis(200)));
            }
        });
        Alarm(over)
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Receives reports, possibly from several threads at once.
pub type Reporter<'a> = &'a (dyn Fn(Report<'_>) + Sync);

/// Runs what is missing; the jobs with what is done at the end.
pub fn run(request: &RunRequest, session: &Session<'_>, report: Reporter<'_>) -> Result<Vec<Job>, Error> {
    let deadline = request.budget.map(|budget| {
        let reserve = (RESERVE * budget.as_secs_f64()).clamp(LEAST_RESERVE, MOST_RESERVE);
        Instant::now() + budget.saturating_sub(Duration::from_secs_f64(reserve))
    });
    let _alarm = deadline.map(|at| Alarm::set(at, session));
    let mut folders = vec![request.runs.clone()];
    folders.extend(request.receipts.iter().chain(&request.known).cloned());
    let mut jobs = plan(&request.artifacts, &Results::gather(&folders), request.device)?;
    let main = main_cells(&request.options)?;
    for job in jobs.iter_mut().filter(|job| job.done && main.contains(&job.cell.key)) {
        // A run that was evaluated without its view or its insight, as by an earlier version, gets them now.
        let drawn = insight::BENCHMARKS.iter().any(|(benchmark, _)| *benchmark == job.cell.cell.benchmark);
        let missing =
            View::find(&folders, &job.cell).is_none() || drawn && Insight::find(&folders, &job.cell).is_none();
        job.done = !(missing && job.cell.folder(&request.runs).join(run::EXPERIMENT).is_file());
    }
    report(Report::Plan { jobs: &jobs });
    let table = Table { jobs: Mutex::new(jobs), full_disk: Mutex::new(None) };
    let work = || table.work(request, &main, deadline, session, report);
    if request.together.get() == 1 {
        work();
    } else {
        std::thread::scope(|scope| {
            for _ in 0..request.together.get() {
                scope.spawn(work);
            }
        });
    }
    match table.full_disk.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok(table.jobs.into_inner().unwrap_or_else(PoisonError::into_inner)),
    }
}

/// The jobs that workers take from.
struct Table {
    jobs: Mutex<Vec<Job>>,
    /// The error of a worker that found no space left; the others stop, too.
    full_disk: Mutex<Option<Error>>,
}

impl Table {
    fn jobs(&self) -> MutexGuard<'_, Vec<Job>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes jobs until none is left, or the session is cancelled.
    fn work(
        &self,
        request: &RunRequest,
        main: &HashSet<String>,
        deadline: Option<Instant>,
        session: &Session<'_>,
        report: Reporter<'_>,
    ) {
        while !session.cancel.is_cancelled() {
            let left = deadline.map(|at| at.saturating_duration_since(Instant::now()).as_secs_f64());
            let (place, job, number, count, beside) = {
                let mut jobs = self.jobs();
                let Some(place) = plan::next(&jobs, left) else { break };
                let beside = jobs.iter().any(|job| job.running);
                jobs[place].running = true;
                let begun = jobs.iter().filter(|job| job.done || job.running).count();
                (place, jobs[place].clone(), begun, jobs.len(), beside)
            };
            report(Report::Begin { job: &job, number, count });
            let started = Instant::now();
            let listener = |event: Event<'_>| match event {
                Event::Warning(text) => report(Report::Warning { job: &job, text }),
                _ => (session.listener)(event),
            };
            let own = Session { listener: &listener, ..session.clone() };
            let run = || cell(&job, request, main.contains(&job.cell.key), &own);
            let mut outcome = catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
                Outcome::Failed(Refusal::said("ended by an error of lamo itself").of(Kind::Internal).into())
            });
            let trouble = outcome.trouble();
            let mut others =
                self.jobs().iter().enumerate().filter(|(other, job)| *other != place && job.running).count();
            others += usize::from(beside);
            if trouble == Some(DeviceErrorKind::OutOfMemory) && others > 0 {
                outcome = Outcome::Crowded;
            }
            report(Report::End { job: &job, outcome: &outcome, seconds: started.elapsed().as_secs_f64() });
            let mut jobs = self.jobs();
            jobs[place].running = false;
            match outcome {
                Outcome::Finished(_) => jobs[place].done = true,
                Outcome::Stopped | Outcome::Crowded => break, // one worker fewer
                Outcome::Failed(error) if error.kind() == Kind::OutOfSpace => {
                    *self.full_disk.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    session.cancel.cancel();
                }
                Outcome::Failed(_) => jobs[place].failed = true, // not again in this call
            }
            if matches!(trouble, Some(DeviceErrorKind::IllegalAccess | DeviceErrorKind::Lost)) {
                break; // nothing runs on this GPU any more
            }
        }
    }
}

/// Trains or resumes a cell, evaluates it and writes its receipt.
fn cell(job: &Job, request: &RunRequest, viewed: bool, session: &Session<'_>) -> Outcome {
    match finish(job, request, viewed, session) {
        Ok(Some(error)) => Outcome::Finished(error),
        Ok(None) => Outcome::Stopped,
        Err(error) if error.kind() == Kind::Cancelled => Outcome::Stopped,
        Err(error) => Outcome::Failed(error),
    }
}

/// The keys of the runs of Table 1 whose fields are drawn and whose predictions are timed.
fn main_cells(options: &Options) -> Result<HashSet<String>, Error> {
    let pairs = BENCHMARKS.iter().flat_map(|(benchmark, _, _)| BOTH.map(|model| (*benchmark, model)));
    let key = |(benchmark, model)| options.cell(benchmark, model, Length::Main).resolve().map(|cell| cell.key);
    pairs.map(key).collect()
}

fn finish(job: &Job, request: &RunRequest, viewed: bool, session: &Session<'_>) -> Result<Option<f64>, Error> {
    let folder = job.cell.folder(&request.runs);
    let RunRequest { device, saving, .. } = *request;
    let trained = if folder.join(run::EXPERIMENT).is_file() {
        let resume = ResumeRequest {
            run: folder.clone(),
            data: None,
            device: Some(device),
            saving,
            together: request.together.get(),
        };
        workflow::resume(&resume, session)?
    } else {
        std::fs::create_dir_all(&request.runs).map_err(|reason| Error::writing(&request.runs, reason))?;
        let train = job.cell.cell.request(device, Some(folder.clone()));
        let together = request.together.get();
        workflow::train(&workflow::TrainRequest { saving, together, ..train }, session)?
    };
    if !trained.finished {
        return Ok(None);
    }
    let evaluated =
        workflow::evaluate(&EvaluateRequest { run: folder.clone(), data: None, device, symmetries: false }, session)?;
    let text = evaluated.receipt.text();
    let view = if viewed { Some(View::of(&job.cell, &evaluated, device, request.together.get() == 1)?) } else { None };
    let drawn = viewed && insight::BENCHMARKS.iter().any(|(benchmark, _)| *benchmark == job.cell.cell.benchmark);
    let insight = if drawn { Some(Insight::of(&job.cell, &evaluated, device)?) } else { None };
    view.iter().try_for_each(|view| view.write(&folder, &job.cell))?;
    insight.iter().try_for_each(|insight| insight.write(&folder, &job.cell))?;
    if let Some(receipts) = &request.receipts {
        std::fs::create_dir_all(receipts).map_err(|reason| Error::writing(receipts, reason))?;
        view.iter().try_for_each(|view| view.write(receipts, &job.cell))?;
        insight.iter().try_for_each(|insight| insight.write(receipts, &job.cell))?;
        write(&receipts.join(format!("{}.json", job.cell.name())), &text)?;
    }
    write(&folder.join(RECEIPT), &text)?; // last: with it the cell is done
    Ok(Some(evaluated.receipt.evaluation.relative_l2))
}

fn write(path: &Path, text: &str) -> Result<(), Error> {
    atomic::replace(path, text.as_bytes()).map_err(|reason| Error::writing(path, reason))
}
