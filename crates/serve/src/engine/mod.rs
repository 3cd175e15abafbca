//! The engine of a model: a queue of requests, and a thread that takes what has queued and computes it at a time.
//!
//! While a batch is computed, other requests queue; the next batch takes those whose points are the same. A batch that fails
//! is computed again request by request, so that one bad request does not fail the others. A panic fails the request that
//! caused it: its programs may be half changed, so they are dropped, and the next request compiles them anew.

mod batch;
mod programs;
#[cfg(test)]
mod tests;

pub(crate) use programs::Programs;

use crate::failure::Failure;
use crate::metrics::ModelMetrics;
use axum::http::StatusCode;
use lamo::error::Refusal;
use lamo::{Error, Kind, Samples};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Computes predictions on the thread of an engine.
pub(crate) trait Compute {
    /// Compiles what requests will need first.
    fn warm_up(&mut self) -> Result<(), Error>;

    /// `[count, times, points, outputs]` of requests one after another, each as if it were computed by itself; ends early with an
    /// error of kind `Cancelled` once `wanted` returns false.
    fn predict(&mut self, requests: &[&Samples], symmetric: bool, wanted: &dyn Fn() -> bool)
    -> Result<Vec<f32>, Error>;
}

/// Makes a [`Compute`]; called again after a panic.
pub(crate) type Make = Box<dyn Fn() -> Box<dyn Compute> + Send + Sync>;

/// A prediction.
#[derive(Debug)]
pub(crate) struct Answer {
    /// `[count, times, points, outputs]`
    pub(crate) values: Vec<f32>,
    /// Samples that were computed at a time, those of other requests included.
    pub(crate) batch: usize,
    /// How long that took.
    pub(crate) elapsed: Duration,
}

/// A request in the queue.
struct Job {
    samples: Arc<Samples>,
    symmetric: bool,
    /// It failed together with other requests and is computed by itself.
    alone: bool,
    deadline: Instant,
    reply: oneshot::Sender<Result<Answer, Failure>>,
}

impl Job {
    fn is_wanted(&self) -> bool {
        !self.reply.is_closed() && Instant::now() < self.deadline
    }

    /// Points of all its samples at all times.
    fn points(&self) -> usize {
        let Samples { count, times, grid, .. } = *self.samples;
        count.saturating_mul(times).saturating_mul(grid.points())
    }

    fn fits(&self, other: &Job) -> bool {
        let alike = self.symmetric == other.symmetric && batch::alike(&self.samples, &other.samples);
        alike && !self.alone && !other.alone
    }
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    stopping: bool,
}

struct Shared {
    queue: Mutex<Queue>,
    wake: Condvar,
    /// Samples of a batch at most; a request with more is a batch of its own.
    batch: usize,
    /// Points of all samples of a batch at all their times at most; a request with more is a batch of its own.
    points: usize,
    make: Make,
    metrics: ModelMetrics,
    ready: AtomicBool,
}

/// The queue and the thread of a model.
pub(crate) struct Engine {
    shared: Arc<Shared>,
}

impl Engine {
    /// Starts the thread; it warms up before it takes requests.
    pub(crate) fn start(
        name: &str,
        (batch, points): (usize, usize),
        metrics: ModelMetrics,
        make: Make,
    ) -> Result<Engine, Error> {
        let (queue, wake, ready) = (Mutex::default(), Condvar::new(), AtomicBool::new(false));
        let shared = Arc::new(Shared { queue, wake, batch, points, make, metrics, ready });
        let own = Arc::clone(&shared);
        let thread = thread::Builder::new().name(format!("model {name}")).spawn(move || work(&own));
        thread.map_err(|reason| {
            Refusal::said(format!("the thread of model {name} cannot be started: {reason}")).of(Kind::Internal)
        })?;
        Ok(Engine { shared })
    }

    /// Whether its programs are compiled and it takes requests.
    pub(crate) fn is_ready(&self) -> bool {
        self.shared.ready.load(Ordering::Acquire) && !self.shared.lock().stopping
    }

    /// Predicts, together with what other requests ask for at the same time.
    pub(crate) async fn predict(
        &self,
        samples: Samples,
        symmetric: bool,
        deadline: Instant,
    ) -> Result<Answer, Failure> {
        let (reply, answer) = oneshot::channel();
        self.shared.push(Job { samples: Arc::new(samples), symmetric, alone: false, deadline, reply })?;
        match tokio::time::timeout_at(deadline.into(), answer).await {
            Ok(Ok(answer)) if answer.is_ok() || Instant::now() < deadline => answer,
            Ok(Err(_)) if Instant::now() < deadline => Err(lost()),
            // The queue may drop a late request, or its computation end, before the timer here, which counts milliseconds, is due.
            Ok(_) | Err(_) => Err(Failure::new(
                StatusCode::GATEWAY_TIMEOUT,
                "the prediction was not ready within the time limit of a request; send fewer samples, or raise --timeout",
            )),
        }
    }

    /// Takes no more requests; those that wait are computed.
    pub(crate) fn stop(&self) {
        self.shared.lock().stopping = true;
        self.shared.wake.notify_all();
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.stop();
    }
}

fn lost() -> Failure {
    Failure::internal(
        "the computation of this request broke off by an error of the server, and the request was not answered; the next request starts the model anew",
    )
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner) // the queue is whole between any two statements
    }

    fn push(&self, job: Job) -> Result<(), Failure> {
        let mut queue = self.lock();
        if queue.stopping {
            return Err(Failure::unavailable("the server is stopping"));
        }
        queue.jobs.retain(Job::is_wanted); // their samples take memory
        queue.jobs.push_back(job);
        self.metrics.waiting(queue.jobs.len());
        self.wake.notify_one();
        Ok(())
    }

    /// The next batch; `None` when the engine stops and nothing waits.
    fn take(&self) -> Option<Vec<Job>> {
        let mut queue = self.lock();
        loop {
            queue.jobs.retain(Job::is_wanted);
            if let Some(first) = queue.jobs.pop_front() {
                let jobs = self.gather(first, &mut queue.jobs);
                self.metrics.waiting(queue.jobs.len());
                return Some(jobs);
            }
            self.metrics.waiting(0);
            if queue.stopping {
                return None;
            }
            queue = self.wake.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// The first request with those that fit to it, in their order.
    fn gather(&self, first: Job, waiting: &mut VecDeque<Job>) -> Vec<Job> {
        let (mut total, mut points) = (first.samples.count, first.points());
        let mut jobs = vec![first];
        let mut place = 0;
        while total < self.batch && place < waiting.len() {
            let job = &waiting[place];
            let within = total + job.samples.count <= self.batch && points.saturating_add(job.points()) <= self.points;
            if within && jobs[0].fits(job) {
                total += job.samples.count;
                points += job.points();
                jobs.extend(waiting.remove(place));
            } else {
                place += 1;
            }
        }
        jobs
    }
}

/// The requests that are computed now.
struct Running<'a> {
    shared: &'a Shared,
    jobs: Vec<Job>,
}

impl Drop for Running<'_> {
    /// After a panic, several requests are tried again one by one, and one alone is answered with the failure.
    fn drop(&mut self) {
        let jobs = std::mem::take(&mut self.jobs);
        let several = jobs.len() > 1;
        let mut queue = self.shared.lock();
        for job in jobs.into_iter().rev() {
            if several {
                queue.jobs.push_front(Job { alone: true, ..job });
            } else {
                let _ = job.reply.send(Err(lost())); // the client may be gone
            }
        }
    }
}

fn work(shared: &Shared) {
    let mut compute = None;
    // A model that cannot warm up answers each request with the reason.
    let warm = guarded(shared, &mut compute, |compute| compute.warm_up().is_ok());
    shared.ready.store(warm == Some(true), Ordering::Release);
    while let Some(jobs) = shared.take() {
        let mut running = Running { shared, jobs };
        guarded(shared, &mut compute, |compute| answer(&mut running, compute));
    }
}

/// What a task returns; `None` if it panics.
fn guarded<T>(
    shared: &Shared,
    compute: &mut Option<Box<dyn Compute>>,
    task: impl FnOnce(&mut dyn Compute) -> T,
) -> Option<T> {
    let made = AssertUnwindSafe(|| task(compute.get_or_insert_with(&shared.make).as_mut()));
    let done = catch_unwind(made);
    if done.is_err() {
        shared.metrics.failed();
        let broken = compute.take();
        let _ = catch_unwind(AssertUnwindSafe(|| drop(broken))); // what broke may also fail to end
    }
    done.ok()
}

fn answer(running: &mut Running, compute: &mut dyn Compute) {
    let shared = running.shared;
    let started = Instant::now();
    let requests: Vec<&Samples> = running.jobs.iter().map(|job| job.samples.as_ref()).collect();
    let (batch, points) = (requests.iter().map(|samples| samples.count).sum(), requests[0].grid.points());
    let wanted = || running.jobs.iter().any(Job::is_wanted);
    let found = compute.predict(&requests, running.jobs[0].symmetric, &wanted);
    let elapsed = started.elapsed();
    match found {
        Ok(values) => {
            shared.ready.store(true, Ordering::Release);
            shared.metrics.computed(batch, batch * points, elapsed);
            let each = values.len() / batch.max(1);
            let mut rest = &values[..];
            for job in running.jobs.drain(..) {
                let (own, after) = rest.split_at(job.samples.count * each);
                rest = after;
                let _ = job.reply.send(Ok(Answer { values: own.to_vec(), batch, elapsed })); // the client may be gone
            }
        }
        Err(error) if running.jobs.len() == 1 => {
            if error.kind() != Kind::BadInput {
                shared.metrics.failed();
            }
            let failure = Failure::of(&error);
            running.jobs.drain(..).for_each(|job| drop(job.reply.send(Err(failure.clone()))));
        }
        // Which request fails is not known: `Running` puts each back by itself.
        Err(_) => {}
    }
}
