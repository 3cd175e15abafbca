//! One run on the GPU: the parts of the plan on their streams, recorded once into a CUDA graph; or one after the other, to
//! look at each result or to time it.

use super::gpu::{Event, Streams, recording};
use super::library::{EARLY, Handle, Launch};
use super::{Cuda, Piece, STREAMS, Work};
use crate::compile::explain::describe;
use crate::compile::plan::{Role, Step};
use crate::device::DeviceError;
use std::ffi::{c_int, c_void};

/// The driver's status of a recording that was broken.
const INVALIDATED: c_int = 901;
/// How often a broken recording is made again.
pub(super) const ATTEMPTS: usize = 8;

impl Cuda {
    /// Records one run into a graph. Recorded again if a call of another thread, or the loading of a kernel, broke the recording.
    pub(super) fn capture(&self) -> Result<Handle, DeviceError> {
        let _alone = recording();
        let gpu = &self.gpu;
        let driver = &gpu.driver;
        for attempt in 1.. {
            let streams = Streams::new(gpu)?;
            let first = streams.handle(0);
            // SAFETY: the streams are ours; both handles are checked.
            unsafe {
                gpu.check((driver.begin_capture)(first, 2), "recording the program")?; // 2: relaxed
                let recorded = self.record(&streams);
                let (mut graph, mut executable): (Handle, Handle) = (std::ptr::null_mut(), std::ptr::null_mut());
                let ended = (driver.end_capture)(first, &raw mut graph);
                if ended == INVALIDATED && attempt < ATTEMPTS {
                    continue;
                }
                if recorded.is_err() && !graph.is_null() {
                    (driver.graph_destroy)(graph);
                }
                recorded?;
                gpu.check(ended, "recording the program")?;
                let made = (driver.graph_instantiate)(&raw mut executable, graph, 0);
                (driver.graph_destroy)(graph);
                gpu.check(made, "preparing the program")?;
                return Ok(executable);
            }
        }
        unreachable!("the last attempt returns")
    }

    /// Puts every step on its stream, after the steps it waits for.
    fn record(&self, streams: &Streams) -> Result<(), DeviceError> {
        let mut events: Vec<Option<Event>> = (0..self.pieces.len()).map(|_| None).collect();
        let first = streams.handle(0);
        let begin = Event::record(&self.gpu, first)?;
        for stream in 1..STREAMS {
            begin.hold(streams.handle(stream))?;
        }
        // Whether the last entry of a stream is a kernel, so that the next kernel can be loaded early.
        let mut behind_kernel = [false; STREAMS];
        for (position, Piece { work, turn, .. }) in self.pieces.iter().enumerate() {
            let stream = streams.handle(turn.stream);
            for &earlier in &turn.waits {
                events[earlier].as_ref().expect("recorded because a later piece waits for it").hold(stream)?;
            }
            if !turn.waits.is_empty() {
                behind_kernel[turn.stream] = false;
            }
            for work in work {
                let early =
                    matches!(work, Work::Kernel { .. }) && behind_kernel[turn.stream] && self.gpu.starts_early();
                self.submit(work, stream, early)?;
                behind_kernel[turn.stream] = !matches!(work, Work::Clear { .. });
            }
            if turn.awaited {
                events[position] = Some(Event::record(&self.gpu, stream)?);
            }
        }
        for stream in 1..STREAMS {
            Event::record(&self.gpu, streams.handle(stream))?.hold(first)?;
        }
        Ok(())
    }

    /// `early`: the kernel is loaded before the entry ahead of it is done, and waits for that itself.
    fn submit(&self, work: &Work, stream: Handle, early: bool) -> Result<(), DeviceError> {
        let driver = &self.gpu.driver;
        match work {
            Work::Kernel { function, grid, block, shared, arguments } => {
                let mut pointers: Vec<*mut c_void> =
                    arguments.iter().map(|address| std::ptr::from_ref(address).cast_mut().cast()).collect();
                let launch = Launch {
                    grid: *grid,
                    block: [*block, 1, 1],
                    shared: *shared,
                    stream,
                    attributes: &raw const EARLY,
                    count: u32::from(early),
                };
                // SAFETY: the arguments are those the kernel was generated with.
                let status = unsafe {
                    (driver.launch)(&raw const launch, *function, pointers.as_mut_ptr(), std::ptr::null_mut())
                };
                self.gpu.check(status, "starting a kernel")
            }
            Work::Clear { address, length } => {
                // SAFETY: the buffer lies inside the arena.
                self.gpu.check(unsafe { (driver.fill)(*address, 0, *length, stream) }, "clearing memory")
            }
            Work::Product { product, workspace } => product.submit(&self.gpu, self.arena.address, *workspace, stream),
        }
    }

    /// The first step whose result is not finite, and one such value. A temporary is cleared before the first step that writes it:
    /// the step may write a part only, and the scratch memory of earlier steps may have lain in the rest.
    pub(crate) fn run_checked(&mut self) -> Result<Option<(usize, f32)>, DeviceError> {
        self.gpu.enter()?;
        let mut begun = vec![false; self.plan.buffers.len()];
        for position in 0..self.plan.steps.len() {
            let (_, written) = self.plan.steps[position].buffers();
            for &id in written.iter().filter(|&&id| self.plan.buffers[id].role == Role::Temporary) {
                if !std::mem::replace(&mut begun[id], true) {
                    let clear = Work::Clear { address: self.address(id), length: self.plan.buffers[id].length };
                    self.submit(&clear, self.gpu.stream, false)?;
                }
            }
            for Piece { work, .. } in self.pieces.iter().filter(|piece| piece.step == position) {
                work.iter().try_for_each(|work| self.submit(work, self.gpu.stream, false))?;
            }
            self.forget();
            for buffer in written {
                if let Some(&value) = self.values(buffer)?.iter().find(|value| !value.is_finite()) {
                    return Ok(Some((position, value)));
                }
            }
        }
        Ok(None)
    }

    /// Seconds of each kernel, the best of some runs; the program runs several times.
    pub(crate) fn profile(&mut self) -> Result<Vec<(String, f64)>, DeviceError> {
        const RUNS: usize = 5;
        self.gpu.enter()?;
        let gpu = self.gpu.clone();
        let mut found = Vec::new();
        let mut before = None;
        for Piece { step, work: list, .. } in &self.pieces {
            let second = before.replace(*step) == Some(*step);
            let is_tail = second && matches!(self.plan.steps[*step], Step::Loop(_));
            let mut best = vec![f64::INFINITY; list.len()];
            for _ in 0..RUNS {
                for (work, best) in list.iter().zip(&mut best) {
                    let seconds = gpu.time(|| self.submit(work, gpu.stream, false))?;
                    *best = best.min(seconds);
                }
            }
            for (part, seconds) in best.into_iter().enumerate() {
                let name = describe(&self.plan.steps[*step]);
                let name = if is_tail { format!("sums of {name}") } else { name };
                let name = if list.len() > 1 { format!("{name} [{} of {}]", part + 1, list.len()) } else { name };
                let how = match &list[part] {
                    Work::Kernel { .. } => "kernel",
                    Work::Clear { .. } => "fill",
                    Work::Product { .. } => "cublas",
                };
                found.push((format!("{how:6} {name}"), seconds));
            }
        }
        self.forget();
        Ok(found)
    }
}
