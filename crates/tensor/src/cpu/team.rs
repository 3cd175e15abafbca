//! A team: the threads of the pool stay awake from the first kernel of a program to its last, so that each kernel starts on all of
//! them at once. A thread that sleeps takes tens of microseconds to wake, as long as a small kernel takes.
//!
//! The thread that runs the program leads: it posts the tasks of one kernel after the other. The others take tasks where there are
//! some, and spin where there are none.

use rayon::prelude::*;
use std::any::Any;
use std::cell::{Cell, UnsafeCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// Turns of a thread that waits before it offers its core to others: tens of microseconds.
const SPINS: u32 = 1 << 10;
/// A kernel with more tasks than this for each thread has several of them taken at once.
const PIECES: usize = 64;

thread_local! {
    static SEAT: Cell<Seat> = const { Cell::new(Seat::Outside) };
}

/// What this thread does now.
#[derive(Clone, Copy)]
enum Seat {
    /// It runs no program of a team; tasks are those of the pool.
    Outside,
    /// It runs a program, between two kernels.
    Leads(*const Leader<'static>),
    /// It runs a task; tasks of a task run one after the other.
    Inside,
}

/// Sets the seat of this thread, and the seat before when dropped.
struct Seated(Seat);

impl Seated {
    fn on(seat: Seat) -> Self {
        Seated(SEAT.replace(seat))
    }
}

impl Drop for Seated {
    fn drop(&mut self) {
        SEAT.set(self.0);
    }
}

/// A value with cache lines of its own: threads that wait for one value do not slow those that write another.
#[derive(Default)]
#[repr(align(128))]
struct Apart<T>(T);

/// The tasks of a kernel.
#[derive(Clone, Copy)]
struct Job {
    task: *const (dyn Fn(usize) + Sync),
    count: usize,
    /// Tasks that a thread takes at once, and how many such pieces there are.
    piece: usize,
    pieces: usize,
}

#[derive(Default)]
struct Team {
    job: Apart<UnsafeCell<Option<Job>>>,
    /// Pieces that are left to take.
    left: Apart<AtomicUsize>,
    finished: Apart<AtomicUsize>,
    /// Whether the program is at its end.
    over: Apart<AtomicBool>,
    /// Threads that serve.
    present: AtomicUsize,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

// SAFETY: the leader writes the job only while all pieces are taken and finished; only a thread with a piece reads it.
unsafe impl Sync for Team {}

impl Team {
    /// Runs all tasks of a kernel, on this thread and on those that serve.
    fn post(&self, count: usize, threads: usize, task: &(dyn Fn(usize) + Sync)) {
        let piece = count.div_ceil(PIECES * threads);
        let pieces = count.div_ceil(piece);
        // SAFETY: of the pointer, only its lifetime changes; this function returns after the last use of the job. The pieces of the job
        // before are finished, and no other thread reads a job of which it has no piece.
        unsafe {
            let task: *const (dyn Fn(usize) + Sync + 'static) = std::mem::transmute(std::ptr::from_ref(task));
            *self.job.0.get() = Some(Job { task, count, piece, pieces });
        }
        self.finished.0.store(0, Ordering::Relaxed);
        self.left.0.store(pieces, Ordering::Release);
        while self.take_piece() {}
        wait_until(|| self.finished.0.load(Ordering::Acquire) == pieces);
        let panic = self.panic.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }

    /// Runs a piece, if there is one.
    fn take_piece(&self) -> bool {
        let taken = self.left.0.fetch_update(Ordering::Acquire, Ordering::Relaxed, |left| left.checked_sub(1));
        let Ok(left) = taken else { return false };
        // SAFETY: the job stays until this piece is finished.
        let Some(job) = (unsafe { *self.job.0.get() }) else { return false };
        let first = (job.pieces - left) * job.piece;
        let run = || {
            // SAFETY: the leader keeps the task until all pieces are finished.
            let task = unsafe { &*job.task };
            (first..(first + job.piece).min(job.count)).for_each(task);
        };
        if let Err(panic) = catch_unwind(AssertUnwindSafe(run)) {
            *self.panic.lock().unwrap_or_else(PoisonError::into_inner) = Some(panic);
        }
        self.finished.0.fetch_add(1, Ordering::Release);
        true
    }

    /// Takes pieces until the program is at its end.
    fn serve(&self) {
        self.present.fetch_add(1, Ordering::Relaxed);
        let seated = Seated::on(Seat::Inside);
        let over = || self.over.0.load(Ordering::Acquire);
        while !over() {
            if self.take_piece() {
                continue;
            }
            wait_until(|| self.left.0.load(Ordering::Relaxed) > 0 || over());
        }
        drop(seated);
        self.present.fetch_sub(1, Ordering::Release);
    }
}

/// Spins, and lets other threads run where that takes long.
fn wait_until(mut done: impl FnMut() -> bool) {
    let mut turns = 0;
    while !done() {
        if turns < SPINS {
            turns += 1;
            std::hint::spin_loop();
        } else {
            std::thread::yield_now();
        }
    }
}

/// The thread that runs the program.
struct Leader<'a> {
    team: &'a Team,
    threads: usize,
    /// Asks the other threads of the pool to serve. The first kernel with several tasks does so.
    call: &'a dyn Fn(),
    called: Cell<bool>,
}

impl Drop for Leader<'_> {
    /// Sends the threads back to the pool.
    fn drop(&mut self) {
        self.team.over.0.store(true, Ordering::Release);
        // Else this thread would wait in the pool, where it may be given long work of others.
        wait_until(|| self.team.present.load(Ordering::Acquire) == 0);
    }
}

/// Runs a program on a thread of the pool, with the others at hand from kernel to kernel.
pub(crate) fn lead<R: Send>(program: impl FnOnce() -> R + Send) -> R {
    let team = Team::default();
    rayon::scope(|scope| {
        let threads = rayon::current_num_threads();
        if threads == 1 || !matches!(SEAT.get(), Seat::Outside) {
            return program();
        }
        let call = || (1..threads).for_each(|_| scope.spawn(|_| team.serve()));
        let leader = Leader { team: &team, threads, call: &call, called: Cell::new(false) };
        let _seated = Seated::on(Seat::Leads((&raw const leader).cast()));
        program()
    })
}

/// Runs tasks in parallel; a single task runs on this thread.
pub(crate) fn for_each_task(count: usize, task: impl Fn(usize) + Sync + Send) {
    match SEAT.get() {
        _ if count == 1 => task(0),
        _ if count == 0 => {}
        Seat::Outside => (0..count).into_par_iter().for_each(task),
        Seat::Inside => (0..count).for_each(task),
        Seat::Leads(leader) => {
            // SAFETY: the leader leaves this seat before it ends.
            let leader = unsafe { &*leader };
            if !leader.called.replace(true) {
                (leader.call)();
            }
            let _seated = Seated::on(Seat::Inside);
            leader.team.post(count, leader.threads, &task);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU32;

    fn on(threads: usize, run: impl FnOnce() + Send) {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
        pool.install(run);
    }

    #[test]
    fn each_task_of_each_kernel_runs_once_and_after_those_of_the_kernel_before() {
        for threads in [1, 2, 3, 5] {
            on(threads, || {
                lead(|| {
                    let runs: Vec<AtomicU32> = (0..1000).map(|_| AtomicU32::new(0)).collect();
                    for kernel in 0..300 {
                        let count = [1, 2, 3, 64, 1000][kernel as usize % 5];
                        runs.iter().for_each(|run| run.store(kernel, Ordering::Relaxed));
                        for_each_task(count, |task| {
                            assert_eq!(runs[task].fetch_add(1, Ordering::Relaxed), kernel);
                        });
                        let wrong = |(task, run): (usize, &AtomicU32)| {
                            run.load(Ordering::Relaxed) != kernel + u32::from(task < count)
                        };
                        assert!(!runs.iter().enumerate().any(wrong), "{threads} threads, kernel {kernel}");
                    }
                });
            });
        }
    }

    #[test]
    fn the_threads_serve_several_programs_at_once_and_one_after_the_other() {
        on(3, || {
            let sum = AtomicUsize::new(0);
            (0..40).into_par_iter().for_each(|_| {
                lead(|| {
                    (0..20).for_each(|_| {
                        for_each_task(7, |task| {
                            sum.fetch_add(task, Ordering::Relaxed);
                        });
                    });
                });
            });
            assert_eq!(sum.into_inner(), 40 * 20 * 21);
        });
    }

    #[test]
    fn tasks_of_a_task_and_programs_of_a_task_run_on_its_thread() {
        on(2, || {
            let sum = AtomicUsize::new(0);
            let add = |task| {
                sum.fetch_add(task, Ordering::Relaxed);
            };
            lead(|| for_each_task(4, |_| lead(|| for_each_task(5, |_| for_each_task(3, add)))));
            assert_eq!(sum.into_inner(), 4 * 5 * 3);
        });
    }

    #[test]
    fn a_panic_in_a_task_ends_the_program_and_leaves_the_pool_in_order() {
        on(2, || {
            for bad in [0, 99] {
                let panics = || lead(|| for_each_task(100, |task| assert_ne!(task, bad, "a bad task")));
                assert!(catch_unwind(panics).is_err());
                let sum = AtomicUsize::new(0);
                lead(|| {
                    for_each_task(100, |task| {
                        sum.fetch_add(task, Ordering::Relaxed);
                    });
                });
                assert_eq!(sum.into_inner(), 4950);
            }
        });
    }
}
