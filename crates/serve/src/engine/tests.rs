//! Claims about queue, batches and panics, with a computation that can be slow, fail and panic.

use super::*;
use crate::metrics::Metrics;
use lamo::Grid;
use std::sync::atomic::AtomicUsize;

/// Adds one to each value. A value of 13 panics, one of 7 is an error, one of 5 takes a while.
struct Fake {
    batches: Arc<Mutex<Vec<usize>>>,
}

impl Compute for Fake {
    fn warm_up(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn predict(
        &mut self,
        requests: &[&Samples],
        _symmetric: bool,
        _wanted: &dyn Fn() -> bool,
    ) -> Result<Vec<f32>, Error> {
        let values: Vec<f32> = requests.iter().flat_map(|samples| &samples.inputs).copied().collect();
        self.batches.lock().unwrap().push(requests.iter().map(|samples| samples.count).sum());
        assert!(!values.contains(&13.0), "the number 13");
        if values.contains(&7.0) {
            return Err(Refusal::new("a value", "not 7", "7").into());
        }
        if values.contains(&5.0) {
            thread::sleep(Duration::from_millis(300));
        }
        Ok(values.iter().map(|value| value + 1.0).collect())
    }
}

/// Points of a batch at most.
const POINTS: usize = 16;

struct Bench {
    engine: Arc<Engine>,
    batches: Arc<Mutex<Vec<usize>>>,
    starts: Arc<AtomicUsize>,
    runtime: tokio::runtime::Runtime,
}

fn bench(batch: usize) -> Bench {
    bench_with(batch, 0)
}

/// The first so many starts of the model panic.
fn bench_with(batch: usize, broken: usize) -> Bench {
    let (batches, starts) = (Arc::<Mutex<Vec<usize>>>::default(), Arc::<AtomicUsize>::default());
    let (own, count) = (Arc::clone(&batches), Arc::clone(&starts));
    let make = Box::new(move || -> Box<dyn Compute> {
        assert!(count.fetch_add(1, Ordering::SeqCst) >= broken, "the start");
        Box::new(Fake { batches: Arc::clone(&own) })
    });
    let engine = Arc::new(Engine::start("fake", (batch, POINTS), Metrics::new().of_model("fake", "1"), make).unwrap());
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    Bench { engine, batches, starts, runtime }
}

fn samples(value: f32, points: usize) -> Samples {
    Samples::cloud(1, (1, vec![0.5; points]), (1, vec![value; points]), (1, Vec::new())).unwrap()
}

impl Bench {
    /// Sends a request each for some values, in their order, and waits for all answers.
    fn ask(&self, values: &[f32], seconds: f64) -> Vec<Result<f32, u16>> {
        let deadline = Instant::now() + Duration::from_secs_f64(seconds);
        let asked: Vec<_> = values
            .iter()
            .map(|&value| {
                let engine = Arc::clone(&self.engine);
                let task = self.runtime.spawn(async move { engine.predict(samples(value, 2), false, deadline).await });
                thread::sleep(Duration::from_millis(20)); // they queue in this order
                task
            })
            .collect();
        type Task = tokio::task::JoinHandle<Result<Answer, Failure>>;
        let answer = |task: Task| match self.runtime.block_on(task) {
            Ok(Ok(Answer { values, .. })) => Ok(values[0]),
            Ok(Err(failure)) => Err(failure.status.as_u16()),
            Err(_) => Err(0),
        };
        asked.into_iter().map(answer).collect()
    }
}

#[test]
fn what_queues_while_a_batch_is_computed_is_the_next_batch() {
    let bench = bench(3);
    assert_eq!(bench.ask(&[5.0, 1.0, 2.0, 3.0, 4.0], 10.0), [Ok(6.0), Ok(2.0), Ok(3.0), Ok(4.0), Ok(5.0)]);
    assert_eq!(*bench.batches.lock().unwrap(), [1, 3, 1]);
}

#[test]
fn a_panic_fails_its_own_request_alone_and_the_model_is_started_anew() {
    let bench = bench(4);
    assert_eq!(bench.ask(&[5.0, 1.0, 13.0, 2.0], 10.0), [Ok(6.0), Ok(2.0), Err(500), Ok(3.0)]);
    assert_eq!(bench.ask(&[1.0], 10.0), [Ok(2.0)]);
    // At the start, after the batch, and after the request by itself.
    assert_eq!(bench.starts.load(Ordering::SeqCst), 3);
    assert!(bench.engine.is_ready());
}

#[test]
fn a_model_whose_start_panics_answers_each_request_with_500_until_it_starts() {
    let bench = bench_with(1, 3);
    // One start at the warm-up, one for each request.
    assert_eq!(bench.ask(&[1.0, 2.0, 3.0], 10.0), [Err(500), Err(500), Ok(4.0)]);
    assert_eq!(bench.starts.load(Ordering::SeqCst), 4);
    assert!(bench.engine.is_ready());
}

#[test]
fn a_panic_is_told_in_a_sentence() {
    let bench = bench(1);
    let deadline = Instant::now() + Duration::from_secs(10);
    let failure = bench.runtime.block_on(bench.engine.predict(samples(13.0, 2), false, deadline)).unwrap_err();
    assert!(failure.sentence.contains("was not answered") && failure.status == 500, "{failure:?}");
}

#[test]
fn an_error_fails_its_own_request_alone() {
    let bench = bench(4);
    assert_eq!(bench.ask(&[5.0, 1.0, 7.0, 2.0], 10.0), [Ok(6.0), Ok(2.0), Err(400), Ok(3.0)]);
    assert_eq!(bench.starts.load(Ordering::SeqCst), 1);
}

#[test]
fn a_request_that_waits_too_long_gets_504_and_is_not_computed() {
    let bench = bench(1);
    assert_eq!(bench.ask(&[5.0, 1.0], 0.1), [Err(504), Err(504)]);
    assert_eq!(bench.ask(&[2.0], 10.0), [Ok(3.0)]);
    assert_eq!(bench.batches.lock().unwrap().len(), 2); // 5, which had begun, and 2
}

#[test]
fn samples_of_other_sizes_are_a_batch_of_their_own() {
    let bench = bench(8);
    let deadline = Instant::now() + Duration::from_secs(10);
    let engine = Arc::clone(&bench.engine);
    let first = bench.runtime.spawn(async move { engine.predict(samples(5.0, 2), false, deadline).await });
    thread::sleep(Duration::from_millis(50));
    let others: Vec<_> = [2, 3, 2]
        .map(|points| {
            let engine = Arc::clone(&bench.engine);
            let task = bench.runtime.spawn(async move { engine.predict(samples(1.0, points), false, deadline).await });
            thread::sleep(Duration::from_millis(20));
            task
        })
        .into_iter()
        .map(|task| bench.runtime.block_on(task).unwrap().unwrap().values.len())
        .collect();
    bench.runtime.block_on(first).unwrap().unwrap();
    assert_eq!((others, bench.batches.lock().unwrap().clone()), (vec![2, 3, 2], vec![1, 2, 1]));
}

#[test]
fn a_batch_has_no_more_points_than_a_request_may_have() {
    let bench = bench(8);
    let deadline = Instant::now() + Duration::from_secs(10);
    let ask = |value: f32, points: usize| {
        let engine = Arc::clone(&bench.engine);
        let task = bench.runtime.spawn(async move { engine.predict(samples(value, points), false, deadline).await });
        thread::sleep(Duration::from_millis(20));
        task
    };
    let asked = [ask(5.0, 1), ask(1.0, POINTS / 2), ask(2.0, POINTS / 2), ask(3.0, POINTS / 2)];
    asked.into_iter().for_each(|task| drop(bench.runtime.block_on(task).unwrap().unwrap()));
    assert_eq!(*bench.batches.lock().unwrap(), [1, 2, 1]);
}

/// Whether the timer or the queue sees first that it is late: 504, not an error of the server.
#[test]
fn every_request_that_is_late_gets_504() {
    let bench = bench(1);
    let late = |number: u64| {
        let (engine, time) = (Arc::clone(&bench.engine), Duration::from_micros(20 * number));
        bench.runtime.spawn(async move { engine.predict(samples(5.0, 1), false, Instant::now() + time).await })
    };
    let asked: Vec<_> = (0..200).map(late).collect();
    for task in asked {
        let failure = bench.runtime.block_on(task).unwrap().unwrap_err();
        assert_eq!(failure.status.as_u16(), 504, "{failure:?}");
    }
}

#[test]
fn a_request_that_waited_too_long_leaves_the_queue_when_another_comes() {
    let bench = bench(1);
    let ask = |value: f32, milliseconds: u64| {
        let (engine, deadline) = (Arc::clone(&bench.engine), Instant::now() + Duration::from_millis(milliseconds));
        let task = bench.runtime.spawn(async move { engine.predict(samples(value, 1), false, deadline).await });
        thread::sleep(Duration::from_millis(40));
        task
    };
    let (running, _late, _later) = (ask(5.0, 10_000), ask(1.0, 10), ask(2.0, 10));
    let waiting = ask(3.0, 10_000);
    assert_eq!(bench.engine.shared.lock().jobs.len(), 1, "the samples of the other two are free");
    assert_eq!(bench.runtime.block_on(running).unwrap().unwrap().values, [6.0]);
    assert_eq!(bench.runtime.block_on(waiting).unwrap().unwrap().values, [4.0]);
}

#[test]
fn a_stop_computes_what_waits_and_refuses_what_comes() {
    let bench = bench(1);
    let deadline = Instant::now() + Duration::from_secs(10);
    let ask = |value: f32| {
        let engine = Arc::clone(&bench.engine);
        let task = bench.runtime.spawn(async move { engine.predict(samples(value, 1), false, deadline).await });
        thread::sleep(Duration::from_millis(30));
        task
    };
    let (running, waiting) = (ask(5.0), ask(1.0));
    bench.engine.stop();
    let refused = bench.runtime.block_on(ask(2.0)).unwrap().unwrap_err();
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(bench.runtime.block_on(running).unwrap().unwrap().values, [6.0]);
    assert_eq!(bench.runtime.block_on(waiting).unwrap().unwrap().values, [2.0]);
}

#[test]
fn samples_that_share_their_points_are_joined_without_copies_of_them() {
    let with = |positions: Vec<f32>, value: f32| {
        Samples::on_points(Grid::Cloud { points: 2 }, (1, positions), (1, vec![value; 2]), (1, vec![1.0; 2])).unwrap()
    };
    let (one, two, other) = (with(vec![0.0, 1.0], 1.0), with(vec![0.0, 1.0], 2.0), with(vec![0.5, 1.0], 3.0));
    let same = batch::joined(&[&one, &two]);
    assert_eq!((same.count, &same.positions, &same.inputs), (2, &vec![0.0, 1.0], &vec![1.0, 1.0, 2.0, 2.0]));
    let differ = batch::joined(&[&one, &other]);
    assert_eq!((differ.count, &differ.positions), (2, &vec![0.0, 1.0, 0.5, 1.0]));
    assert!(batch::alike(&one, &other) && !batch::alike(&one, &samples(1.0, 3)));
}
