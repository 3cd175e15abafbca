//! The CUDA backend: a plan becomes generated and hand-written kernels and cuBLASLt products over one allocation, and the
//! whole run becomes one CUDA graph. Every sum has a fixed order: atomics are used to count, never to add values.

mod compiler;
mod generate;
mod gpu;
mod kernel;
mod library;
mod lower;
mod modules;
mod places;
mod products;
mod record;
mod report;
mod scratch;
mod status;
mod streams;
#[cfg(test)]
mod tests;

use crate::compile::DeviceTraits;
use crate::compile::plan::{Plan, Role, Step};
use crate::device::{DeviceError, DeviceErrorKind};
use crate::limits::{poll, poll_at};
use crate::memory::zeros;
use crate::ops::Precision;
use gpu::{Gpu, Memory};
use kernel::{Family, Kernel};
use library::{Address, Handle};
use lower::{Action, Lowering};
use modules::Modules;
use places::{Places, Tables, needs, prepare};
use products::Prepared;
use scratch::{Pieces, Scratch};
use std::cell::OnceCell;
use std::collections::VecDeque;
use std::sync::Arc;
use streams::Turn;

pub(crate) use gpu::gpu_name;
pub use report::{CudaDevice, CudaReport, report};

/// Streams of a recorded run: parts that do not need each other run side by side.
const STREAMS: usize = 4;
/// Steps that pass before freed memory is used again: later kernels then seldom wait for its readers, for 4 % more memory.
pub(crate) const SLACK: usize = 4;
/// A block of 256 threads holds a row of up to 32 elements per thread.
pub(crate) const TRAITS: DeviceTraits = DeviceTraits { slack: SLACK, longest_row: 8192, remake: true, blocks: false };
/// Counters that the kernels of a stream share.
const COUNTERS: usize = 1 << 16;
/// Bytes that cuBLASLt may use for a product.
const WORKSPACE: usize = 32 << 20;

/// One entry of a stream.
enum Work {
    Kernel { function: Handle, grid: [u32; 3], block: u32, shared: u32, arguments: Vec<Address> },
    Clear { address: Address, length: usize },
    Product { product: Prepared, workspace: Address },
}

/// A step of the plan, or one of the two parts of a step that [`streams::touched`] divides.
struct Piece {
    step: usize,
    work: Vec<Work>,
    turn: Turn,
}

/// A copy of one buffer in memory of its own on the GPU.
pub(crate) struct BufferCopy {
    memory: Memory,
    gpu: Arc<Gpu>,
}

impl BufferCopy {
    pub(crate) fn read(&self) -> Result<Vec<f32>, DeviceError> {
        self.gpu.enter()?;
        let mut values = zeros(self.memory.bytes / 4, "a copy of a snapshot")?;
        self.gpu.read(self.memory.address, &mut values)?;
        Ok(values)
    }
}

/// A plan ready to run.
pub(crate) struct Cuda {
    plan: Plan,
    pieces: Vec<Piece>,
    /// The buffers of the plan and the scratch memory of its steps.
    arena: Memory,
    counters: Memory,
    _modules: Modules,
    graph: Option<Handle>,
    /// Values that the caller read since the last run.
    mirrors: Vec<OnceCell<Box<[f32]>>>,
    _tables: Memory,
    gpu: Arc<Gpu>,
}

// SAFETY: the handles belong to the primary context of the GPU, which every call makes current first.
unsafe impl Send for Cuda {}

impl Drop for Cuda {
    fn drop(&mut self) {
        if self.gpu.enter_to_free()
            && self.gpu.synchronise().is_ok()
            && let Some(graph) = self.graph.take()
        {
            // SAFETY: instantiated once, destroyed once.
            unsafe { (self.gpu.driver.executable_destroy)(graph) };
        }
        self.pieces.clear();
    }
}

impl Cuda {
    pub(crate) fn new(plan: Plan, device: usize, precision: Precision) -> Result<Cuda, DeviceError> {
        let gpu = Gpu::open(device)?;
        gpu.enter()?;
        gpu.has(plan.arena)?; // compiling kernels takes longer
        let Lowered { actions, heads, tables } = lower(&plan, precision, gpu.architecture, gpu.shared)?;
        let kernels: Vec<&Kernel> = actions.iter().flat_map(|step| kernels_of(step)).collect();
        fits(&kernels, &gpu.name, gpu.shared)?;
        let modules = Modules::compile(&gpu, &kernels)?;
        let mut products = prepare(&gpu, &plan, &actions)?;
        let needs = needs(&plan, &actions, &heads, &products);
        let Scratch { own, arena } = Scratch::plan(&plan, &needs)?;
        let mut turns = VecDeque::from(streams::order(&streams::touched(&plan, &needs, &own), STREAMS));
        poll()?;
        let arena = Memory::zeros(&gpu, arena.max(1))?;
        let counters = Memory::zeros(&gpu, STREAMS * COUNTERS)?;
        let tables = Tables::new(&gpu, &tables)?;
        let places =
            Places { plan: &plan, arena: arena.address, own: &own, counters: counters.address, tables: &tables };
        let mut pieces = Vec::with_capacity(turns.len());
        for (step, list) in actions.iter().enumerate() {
            let cut = match needs[step].pieces {
                Pieces::One => list.len(),
                Pieces::HeadFirst => heads[step],
                Pieces::TailLast => 1,
            };
            for part in [&list[..cut], &list[cut..]].into_iter().take(if cut < list.len() { 2 } else { 1 }) {
                let turn = turns.pop_front().expect("as many turns as pieces");
                let stream = turn.stream;
                let work =
                    part.iter().map(|action| places.work(action, step, stream, &modules, &mut products)).collect();
                pieces.push(Piece { step, work, turn });
            }
        }
        let mirrors = plan.buffers.iter().map(|_| OnceCell::new()).collect();
        let mut cuda = Cuda {
            plan,
            pieces,
            arena,
            counters,
            _modules: modules,
            graph: None,
            mirrors,
            _tables: tables.memory,
            gpu,
        };
        for id in 0..cuda.plan.buffers.len() {
            if let Role::Constant(bits) = cuda.plan.buffers[id].role.clone() {
                cuda.gpu.write(cuda.address(id), &bits)?;
            }
        }
        cuda.graph = Some(cuda.capture()?);
        Ok(cuda)
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Bytes on the GPU.
    pub(crate) fn bytes(&self) -> usize {
        self.arena.bytes + self.counters.bytes
    }

    /// Kernels, products and fills of one run.
    pub(crate) fn launches(&self) -> usize {
        self.pieces.iter().map(|piece| piece.work.len()).sum()
    }

    fn address(&self, buffer: usize) -> Address {
        self.arena.address + 4 * self.plan.buffers[buffer].offset as Address
    }

    pub(crate) fn values(&self, buffer: usize) -> Result<&[f32], DeviceError> {
        self.gpu.usable()?;
        let mirror = &self.mirrors[buffer];
        if let Some(values) = mirror.get() {
            return Ok(values);
        }
        self.gpu.enter()?;
        let mut values = zeros(self.plan.buffers[buffer].length, "reading from the GPU")?.into_boxed_slice();
        self.gpu.read(self.address(buffer), &mut values)?;
        Ok(mirror.get_or_init(|| values))
    }

    pub(crate) fn write<T: Copy>(&mut self, buffer: usize, values: &[T]) -> Result<(), DeviceError> {
        self.write_part(buffer, 0, values)
    }

    pub(crate) fn write_part<T: Copy>(&mut self, buffer: usize, start: usize, values: &[T]) -> Result<(), DeviceError> {
        self.gpu.enter()?;
        self.gpu.write(self.address(buffer) + 4 * start as Address, values)?;
        self.mirrors[buffer].take();
        Ok(())
    }

    pub(crate) fn write_rows(&mut self, buffer: usize, rows: &[u32]) -> Result<(), DeviceError> {
        self.check_rows(buffer, rows);
        self.write(buffer, rows)
    }

    /// Memory for a copy of a buffer, zero at first.
    pub(crate) fn new_copy(&self, buffer: usize) -> Result<BufferCopy, DeviceError> {
        self.gpu.enter()?;
        let memory = Memory::zeros(&self.gpu, self.plan.buffers[buffer].length)?;
        Ok(BufferCopy { memory, gpu: self.gpu.clone() })
    }

    pub(crate) fn copy_out(&self, buffer: usize, to: &mut BufferCopy) -> Result<(), DeviceError> {
        let bytes = self.same_size(buffer, to);
        self.gpu.enter()?;
        self.gpu.copy(to.memory.address, self.address(buffer), bytes)
    }

    pub(crate) fn copy_in(&mut self, buffer: usize, from: &BufferCopy) -> Result<(), DeviceError> {
        let bytes = self.same_size(buffer, from);
        self.gpu.enter()?;
        self.gpu.copy(self.address(buffer), from.memory.address, bytes)?;
        self.mirrors[buffer].take();
        Ok(())
    }

    /// Bytes of a buffer, which must be as long as its copy and on the same GPU.
    fn same_size(&self, buffer: usize, copy: &BufferCopy) -> usize {
        assert!(
            Arc::ptr_eq(&self.gpu, &copy.gpu),
            "the copy is on {}, the program on {}",
            copy.gpu.name,
            self.gpu.name
        );
        let bytes = 4 * self.plan.buffers[buffer].length;
        assert_eq!(bytes, copy.memory.bytes, "the buffer and its copy have different lengths in bytes");
        bytes
    }

    fn check_rows(&self, buffer: usize, rows: &[u32]) {
        for step in &self.plan.steps {
            let (Step::Gather { axis, from: wide, index, .. } | Step::ScatterAdd { axis, to: wide, index, .. }) = step
            else {
                continue;
            };
            let extent = wide.layout.dims[*axis];
            let beyond = rows.iter().find(|&&row| row as usize >= extent).filter(|_| *index == buffer);
            if let Some(row) = beyond {
                panic!("row {row} is beyond the {extent} rows of the gathered axis");
            }
        }
    }

    /// Puts one run on the stream. It does not wait: a failure of the run may show at the next call that waits.
    pub(crate) fn run(&mut self) -> Result<(), DeviceError> {
        self.gpu.enter()?;
        let graph = self.graph.expect("captured when the program was made");
        // SAFETY: the graph's memory lives as long as self.
        let status = unsafe { (self.gpu.driver.graph_launch)(graph, self.gpu.stream) };
        self.forget();
        self.gpu.check(status, "running the program")
    }

    /// Waits until all runs and copies are done.
    pub(crate) fn synchronise(&self) -> Result<(), DeviceError> {
        self.gpu.enter()?;
        self.gpu.synchronise()
    }

    fn forget(&mut self) {
        for mirror in &mut self.mirrors {
            mirror.take();
        }
    }
}

/// The steps of a plan as actions on the GPU.
struct Lowered {
    /// The entries of each step on its stream.
    actions: Vec<Vec<Action>>,
    /// How many actions of each step may start early, see [`Lowering::head`].
    heads: Vec<usize>,
    /// The tables that they read.
    tables: Vec<Arc<[u32]>>,
}

fn lower(plan: &Plan, precision: Precision, architecture: u32, shared: usize) -> Result<Lowered, DeviceError> {
    let (tables, actions) = (Vec::new(), Vec::new());
    let mut lowering = Lowering { plan, precision, architecture, shared, tables, actions, head: 0 };
    let (mut actions, mut heads) = (Vec::with_capacity(plan.steps.len()), Vec::with_capacity(plan.steps.len()));
    for (position, step) in plan.steps.iter().enumerate() {
        poll_at(position)?;
        lowering.step(step);
        actions.push(std::mem::take(&mut lowering.actions));
        heads.push(std::mem::take(&mut lowering.head));
    }
    Ok(Lowered { actions, heads, tables: lowering.tables })
}

/// Fails if a kernel needs more blocks than a grid can have, or more shared memory than the GPU has.
fn fits(kernels: &[&Kernel], gpu: &str, shared: usize) -> Result<(), DeviceError> {
    if kernels.iter().any(|kernel| kernel.grid[0] > i32::MAX as u32) {
        let sentence = "the program has a kernel of more than 2^31 blocks, which no GPU can start; use smaller sizes";
        return Err(DeviceError::new(DeviceErrorKind::TooLarge, sentence));
    }
    let needs =
        |kernel: &Kernel| kernel.shared as usize + if kernel.family == Family::Scan { lower::SCAN_DECLARES } else { 0 };
    let largest = kernels.iter().max_by_key(|kernel| needs(kernel)).filter(|kernel| needs(kernel) > shared);
    let Some(kernel) = largest else { return Ok(()) };
    Err(DeviceError::unavailable(format!(
        "{gpu} gives a block {} KB of shared memory, a {} of these sizes needs {} KB; use fewer states or narrower heads",
        shared / 1024,
        format!("{:?}", kernel.family).to_lowercase(),
        needs(kernel).div_ceil(1024)
    )))
}

fn kernels_of(step: &[Action]) -> impl Iterator<Item = &Kernel> {
    step.iter().filter_map(|action| if let Action::Launch(kernel) = action { Some(kernel) } else { None })
}

/// Compiles the kernels of a plan into the cache, for an architecture that this machine need not have. Returns bytes of
/// code.
pub(crate) fn compile_kernels(plan: &Plan, precision: Precision, architecture: u32) -> Result<usize, DeviceError> {
    // Kilobytes by compute capability, from NVIDIA's CUDA C++ programming guide.
    let shared = match architecture {
        80 | 87 => 163,
        86 | 89 | 120 | 121 => 99,
        _ => 227,
    } * 1024;
    let Lowered { actions, .. } = lower(plan, precision, architecture, shared)?;
    let kernels: Vec<&Kernel> = actions.iter().flat_map(|step| kernels_of(step)).collect();
    fits(&kernels, "a GPU of this architecture", shared)?;
    Ok(modules::machine_codes(&kernels, architecture)?.iter().map(|(code, _)| code.len()).sum())
}
