//! Limits: how large a graph may grow, and how building and compiling one is stopped.
//!
//! Operators return tensors, not results, so that formulas stay readable. A graph that outgrows its limits, or whose
//! caller wants to stop, is therefore left by unwinding, and [`attempt`] turns that into an error.

use crate::device::{DeviceError, DeviceErrorKind};
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Most operators of a graph. A training step of the largest model here has some ten thousand; an operator takes about
/// 800 bytes while its graph is built.
pub(crate) const MOST_OPERATORS: usize = 1 << 20;
/// Operators that are added between two questions whether to stop.
const BETWEEN_QUESTIONS: usize = 64;

type Question = dyn Fn() -> bool;

thread_local! {
    /// The questions of all attempts that this thread is in, outermost first.
    static QUESTIONS: RefCell<Vec<*const Question>> = const { RefCell::new(Vec::new()) };
}

/// The payload of the unwinding that [`attempt`] catches.
struct Refusal(DeviceError);

/// Takes the question of an attempt away, however the attempt ends.
struct Asked;

impl Drop for Asked {
    fn drop(&mut self) {
        QUESTIONS.with_borrow_mut(Vec::pop);
    }
}

/// Runs `work`, which builds graphs and compiles them on this thread, and ends it early with an error:
///
/// - of kind [`DeviceErrorKind::Interrupted`] when `interrupted` returns true; it is asked often and should be cheap,
/// - of kind [`DeviceErrorKind::TooLarge`] when a shape has more elements than memory can have, or when a graph has more than
///   about a million operators. Outside of an attempt both are panics.
///
/// While [`Program::compile_on`](crate::Program::compile_on) works, it asks too and returns the error itself.
///
/// Other panics pass through. What `work` changed by reference may be half changed when it ends early.
///
/// ```
/// use lamo_tensor::{DeviceErrorKind, Graph, Program, attempt};
/// let build = |depth: usize| {
///     let graph = Graph::new();
///     let mut x = graph.input("x", [3]);
///     for _ in 0..depth {
///         x = x.sin();
///     }
///     graph.output("y", x);
///     Program::compile(&graph)
/// };
/// assert!(attempt(|| false, || build(10)).is_ok());
/// assert_eq!(attempt(|| false, || build(usize::MAX)).err().unwrap().kind(), DeviceErrorKind::TooLarge);
/// assert_eq!(attempt(|| true, || build(1000)).err().unwrap().kind(), DeviceErrorKind::Interrupted);
/// ```
pub fn attempt<T>(interrupted: impl Fn() -> bool, work: impl FnOnce() -> T) -> Result<T, DeviceError> {
    let question: *const (dyn Fn() -> bool + '_) = &raw const interrupted;
    // SAFETY: only the lifetime changes. `Asked` takes the pointer away before `interrupted` ends.
    let question = unsafe { std::mem::transmute::<*const (dyn Fn() -> bool + '_), *const Question>(question) };
    QUESTIONS.with_borrow_mut(|questions| questions.push(question));
    let asked = Asked;
    let done = catch_unwind(AssertUnwindSafe(work));
    drop(asked);
    done.or_else(|payload| match payload.downcast::<Refusal>() {
        Ok(refusal) => Err(refusal.0),
        Err(payload) => resume_unwind(payload),
    })
}

/// Fails if the caller of an attempt wants to stop.
pub(crate) fn poll() -> Result<(), DeviceError> {
    let count = QUESTIONS.with_borrow(Vec::len);
    for position in 0..count {
        let question = QUESTIONS.with_borrow(|questions| questions[position]);
        // SAFETY: the attempt that this pointer comes from has not ended; see `attempt`.
        if unsafe { (*question)() } {
            return Err(DeviceError::new(DeviceErrorKind::Interrupted, "compiling was interrupted"));
        }
    }
    Ok(())
}

/// [`poll`] for position 0, 64, 128, … of a long loop.
pub(crate) fn poll_at(position: usize) -> Result<(), DeviceError> {
    if position.is_multiple_of(BETWEEN_QUESTIONS) { poll() } else { Ok(()) }
}

/// Ends the attempt that this thread is in, or else panics with the sentence.
pub(crate) fn refuse(error: DeviceError) -> ! {
    if QUESTIONS.with_borrow(Vec::is_empty) {
        panic!("{error}");
    }
    resume_unwind(Box::new(Refusal(error)))
}

/// Ends the attempt if its caller wants to stop, or if a graph has no room for one more operator.
pub(crate) fn one_more_operator(count: usize) {
    if count >= MOST_OPERATORS {
        let sentence = format!("the program has more than {MOST_OPERATORS} operators; use fewer layers or steps");
        refuse(DeviceError::new(DeviceErrorKind::TooLarge, sentence));
    }
    if let Err(error) = poll_at(count) {
        refuse(error);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn an_attempt_inside_another_one_asks_both_and_leaves_the_outer_one_in_place() {
        let stop = Cell::new(false);
        let outer = attempt(
            || stop.get(),
            || {
                assert_eq!(attempt(|| false, poll), Ok(Ok(())));
                assert_eq!(attempt(|| true, poll).unwrap().unwrap_err().kind(), DeviceErrorKind::Interrupted);
                assert_eq!(poll(), Ok(()));
                stop.set(true);
                attempt(|| false, poll)
            },
        );
        assert_eq!(outer.unwrap().unwrap().unwrap_err().kind(), DeviceErrorKind::Interrupted);
        assert_eq!(poll(), Ok(()));
    }

    #[test]
    fn a_panic_of_another_kind_passes_through_an_attempt() {
        let panic = catch_unwind(|| attempt(|| true, || panic!("a bug"))).unwrap_err();
        assert_eq!(panic.downcast_ref::<&str>(), Some(&"a bug"));
        assert_eq!(poll(), Ok(()));
    }
}
