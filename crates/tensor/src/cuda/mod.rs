//! The CUDA backend: a plan becomes generated and hand-written kernels and cuBLASLt products over one allocation, and the
//! whole run one CUDA graph. Every sum has a fixed order; atomics count, they never add values.

mod card;
mod compiler;
mod generate;
mod kernel;
mod library;
mod lower;
mod products;
mod streams;

use crate::compile::explain::describe;
use crate::compile::plan::{Plan, Role, Step};
use crate::device::Unavailable;
use crate::ops::Precision;
use card::{Card, Event, Memory, Modules, Streams};
use kernel::{Argument, Family, Kernel};
use library::{Address, EARLY, Handle, Launch};
use lower::{Action, Lowering};
use products::Prepared;
use std::cell::OnceCell;
use std::collections::VecDeque;
use std::ffi::c_void;
use std::sync::Arc;
use streams::Turn;

pub(crate) use card::card_name;
pub use card::{CudaDevice, CudaReport, report};

/// Streams of a recorded run: what does not need each other runs side by side.
const STREAMS: usize = 4;
/// Steps for which memory rests before others get it: the chain of kernels waits for no reader, for 4 % more memory.
pub(crate) const SLACK: usize = 4;
/// Counters that the kernels of a stream share.
const COUNTERS: usize = 1 << 16;
/// Bytes that cuBLASLt may use for a product.
const WORKSPACE: usize = 32 << 20;

/// Something to put on the stream.
enum Work {
    Kernel { function: Handle, grid: [u32; 3], block: u32, shared: u32, arguments: Vec<Address> },
    Clear { address: Address, length: usize },
    Product(Prepared),
}

/// A step of the plan, or what is left of it when others may go on.
struct Piece {
    step: usize,
    work: Vec<Work>,
    turn: Turn,
}

/// Room on the card for a copy of one buffer.
pub(crate) struct Aside {
    memory: Memory,
    card: Arc<Card>,
}

impl Aside {
    pub(crate) fn read(&self) -> Vec<f32> {
        let mut values = vec![0.0; self.memory.bytes / 4];
        self.card.make_current();
        sound(self.card.read(self.memory.address, &mut values));
        values
    }
}

/// A plan ready to run.
pub(crate) struct Cuda {
    plan: Plan,
    pieces: Vec<Piece>,
    arena: Memory,
    scratch: Memory,
    /// Where each stream's scratch memory begins, which is cuBLASLt's workspace too.
    scratches: [Address; STREAMS],
    _modules: Modules,
    graph: Option<Handle>,
    /// What was read since the last run.
    mirrors: Vec<OnceCell<Box<[f32]>>>,
    _tables: Memory,
    card: Arc<Card>,
}

// SAFETY: the handles belong to the card's primary context, which every call makes current first.
unsafe impl Send for Cuda {}

impl Drop for Cuda {
    fn drop(&mut self) {
        self.card.make_current();
        let _ = self.card.synchronise();
        if let Some(graph) = self.graph.take() {
            // SAFETY: instantiated once, destroyed once.
            unsafe { (self.card.driver.executable_destroy)(graph) };
        }
        self.pieces.clear();
    }
}

impl Cuda {
    pub(crate) fn new(plan: Plan, device: usize, precision: Precision) -> Result<Cuda, Unavailable> {
        let card = Card::open(device)?;
        card.make_current();
        let Lowered { actions, heads, tables } = lower(&plan, precision, card.architecture, card.shared);
        let kernels: Vec<&Kernel> = actions.iter().flat_map(|step| kernels_of(step)).collect();
        fits(&kernels, &card.name, card.shared)?;
        let modules = Modules::compile(&card, &kernels)?;
        let arena = Memory::zeros(&card, plan.arena.max(1))?;
        let buffer = |id: usize, offset: isize| {
            (arena.address as i64 + 4 * (plan.buffers[id].offset as i64 + offset as i64)) as Address
        };
        let mut prepared = VecDeque::new();
        let has_tail = |step: usize| matches!(plan.steps[step], Step::Loop(_)) && actions[step].len() > 1;
        let has_head = |step: usize| heads[step] > 0;
        let mut turns = VecDeque::from(streams::order(&streams::touched(&plan, has_tail, has_head), STREAMS));
        let mut pieces = Vec::with_capacity(turns.len());
        for (step, list) in actions.iter().enumerate() {
            let cut = match heads[step] {
                0 if has_tail(step) => 1,
                0 => list.len(),
                head => head,
            };
            for part in [&list[..cut], &list[cut..]].into_iter().take(if cut < list.len() { 2 } else { 1 }) {
                pieces.push((step, part, turns.pop_front().expect("as many turns as pieces")));
            }
        }
        // Each stream has counters, and as much scratch memory as its kernels and products need; a step of two pieces has
        // scratch memory of its own, but for those with heads, which share one.
        let mut needed = [0; STREAMS];
        let mut own: Vec<Option<usize>> = (0..actions.len()).map(|step| has_head(step).then_some(0)).collect();
        let shared = |step: usize| kernels_of(&actions[step]).map(|kernel| kernel.scratch).max().unwrap_or(0);
        let mut owned = (0..actions.len()).filter(|&step| has_head(step)).map(shared).max().unwrap_or(0);
        owned = owned.next_multiple_of(64);
        for (step, part, turn) in &pieces {
            for action in *part {
                let floats = match action {
                    Action::Launch(kernel) if has_tail(*step) || has_head(*step) => {
                        if own[*step].is_none() {
                            own[*step] = Some(owned);
                            owned += kernel.scratch.next_multiple_of(64);
                        }
                        0
                    }
                    Action::Launch(kernel) => kernel.scratch,
                    Action::Clear { .. } => 0,
                    Action::Product(product) => {
                        let product = Prepared::new(&card, product, precision, &buffer, WORKSPACE)?;
                        let bytes = product.workspace();
                        prepared.push_back(product);
                        bytes.div_ceil(4)
                    }
                };
                needed[turn.stream] = floats.max(needed[turn.stream]);
            }
        }
        let needed = needed.map(|floats| COUNTERS + floats.next_multiple_of(64));
        let scratch = Memory::zeros(&card, owned + needed.iter().sum::<usize>())?;
        let mut end = scratch.address + 4 * owned as Address;
        let counters = needed.map(|floats| {
            let start = end;
            end += 4 * floats as Address;
            start
        });
        let scratches = counters.map(|start| start + 4 * COUNTERS as Address);
        let flat: Vec<u32> = tables.iter().flat_map(|table| table.iter().copied()).collect();
        let table_memory = Memory::zeros(&card, flat.len().max(1))?;
        card.write(table_memory.address, &flat)?;
        let starts: Vec<usize> =
            tables.iter().scan(0, |start, table| Some(std::mem::replace(start, *start + table.len()))).collect();
        let resolve = |argument: &Argument, step: usize, stream: usize| match argument {
            Argument::Buffer { buffer: id, offset } => buffer(*id, *offset),
            Argument::Scratch(offset) => {
                let start = own[step].map_or(scratches[stream], |floats| scratch.address + 4 * floats as Address);
                start + 4 * *offset as Address
            }
            Argument::Counters => counters[stream],
            Argument::Table(position) => table_memory.address + 4 * starts[*position] as Address,
        };
        let mut ready = Vec::with_capacity(pieces.len());
        for (step, part, turn) in pieces {
            let mut work = Vec::with_capacity(part.len());
            for action in part {
                work.push(match action {
                    Action::Launch(kernel) => Work::Kernel {
                        function: modules.function(kernel),
                        grid: kernel.grid,
                        block: kernel.block,
                        shared: kernel.shared,
                        arguments: kernel.arguments.iter().map(|a| resolve(a, step, turn.stream)).collect(),
                    },
                    Action::Clear { buffer: id, length } => Work::Clear { address: buffer(*id, 0), length: *length },
                    Action::Product(_) => Work::Product(prepared.pop_front().expect("prepared above, in this order")),
                });
            }
            ready.push(Piece { step, work, turn });
        }
        let mirrors = plan.buffers.iter().map(|_| OnceCell::new()).collect();
        let mut cuda = Cuda {
            plan,
            pieces: ready,
            arena,
            scratch,
            scratches,
            _modules: modules,
            graph: None,
            mirrors,
            _tables: table_memory,
            card,
        };
        for id in 0..cuda.plan.buffers.len() {
            if let Role::Constant(bits) = cuda.plan.buffers[id].role.clone() {
                cuda.card.write(cuda.address(id), &bits)?;
            }
        }
        cuda.graph = Some(cuda.capture()?);
        Ok(cuda)
    }

    pub(crate) fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Bytes on the card.
    pub(crate) fn bytes(&self) -> usize {
        self.arena.bytes + self.scratch.bytes
    }

    /// Kernels, products and fills of one run.
    pub(crate) fn launches(&self) -> usize {
        self.pieces.iter().map(|piece| piece.work.len()).sum()
    }

    fn address(&self, buffer: usize) -> Address {
        self.arena.address + 4 * self.plan.buffers[buffer].offset as Address
    }

    pub(crate) fn values(&self, buffer: usize) -> &[f32] {
        self.mirrors[buffer].get_or_init(|| {
            let mut values = vec![0.0; self.plan.buffers[buffer].length].into_boxed_slice();
            self.card.make_current();
            sound(self.card.read(self.address(buffer), &mut values));
            values
        })
    }

    pub(crate) fn write(&mut self, buffer: usize, values: &[f32]) {
        self.card.make_current();
        sound(self.card.write(self.address(buffer), values));
        self.mirrors[buffer].take();
    }

    pub(crate) fn write_part(&mut self, buffer: usize, start: usize, values: &[f32]) {
        self.card.make_current();
        sound(self.card.write(self.address(buffer) + 4 * start as Address, values));
        self.mirrors[buffer].take();
    }

    pub(crate) fn write_rows(&mut self, buffer: usize, rows: &[u32]) {
        self.check_rows(buffer, rows);
        self.card.make_current();
        sound(self.card.write(self.address(buffer), rows));
        self.mirrors[buffer].take();
    }

    /// Room for a copy of a buffer.
    pub(crate) fn aside(&self, buffer: usize) -> Result<Aside, Unavailable> {
        self.card.make_current();
        let memory = Memory::zeros(&self.card, self.plan.buffers[buffer].length)?;
        Ok(Aside { memory, card: self.card.clone() })
    }

    pub(crate) fn set_aside(&self, buffer: usize, to: &mut Aside) {
        let bytes = self.same_size(buffer, to);
        self.card.make_current();
        sound(self.card.copy(to.memory.address, self.address(buffer), bytes));
    }

    pub(crate) fn put_back(&mut self, buffer: usize, from: &Aside) {
        let bytes = self.same_size(buffer, from);
        self.card.make_current();
        sound(self.card.copy(self.address(buffer), from.memory.address, bytes));
        self.mirrors[buffer].take();
    }

    /// Bytes of a buffer, which has to be as long as its copy and on the same card.
    fn same_size(&self, buffer: usize, aside: &Aside) -> usize {
        assert!(Arc::ptr_eq(&self.card, &aside.card), "the copy is on another card");
        let bytes = 4 * self.plan.buffers[buffer].length;
        assert_eq!(bytes, aside.memory.bytes, "the copy is of a buffer of another length");
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
            assert!(beyond.is_none(), "row {beyond:?} is beyond the {extent} rows of the gathered axis");
        }
    }

    pub(crate) fn run(&mut self) {
        self.card.make_current();
        let graph = self.graph.expect("captured when the program was made");
        // SAFETY: the graph's memory lives as long as self.
        sound(
            self.card.check(unsafe { (self.card.driver.graph_launch)(graph, self.card.stream) }, "running the program"),
        );
        self.forget();
    }

    /// Waits until everything asked for is done.
    pub(crate) fn synchronise(&self) {
        self.card.make_current();
        sound(self.card.synchronise());
    }

    fn forget(&mut self) {
        for mirror in &mut self.mirrors {
            mirror.take();
        }
    }

    /// Records one run into a graph.
    fn capture(&self) -> Result<Handle, Unavailable> {
        let card = &self.card;
        let driver = &card.driver;
        let streams = Streams::new(card)?;
        let first = streams.handle(0);
        // SAFETY: the streams are ours; both handles are checked.
        unsafe {
            card.check((driver.begin_capture)(first, 2), "recording the program")?; // 2: relaxed
            let recorded = self.record(&streams);
            let (mut graph, mut executable): (Handle, Handle) = (std::ptr::null_mut(), std::ptr::null_mut());
            let ended = card.check((driver.end_capture)(first, &raw mut graph), "recording the program");
            recorded?;
            ended?;
            let made = card.check((driver.graph_instantiate)(&raw mut executable, graph, 0), "preparing the program");
            (driver.graph_destroy)(graph);
            made?;
            Ok(executable)
        }
    }

    /// Puts every step on its stream, after the steps it waits for.
    fn record(&self, streams: &Streams) -> Result<(), Unavailable> {
        let mut events: Vec<Option<Event>> = (0..self.pieces.len()).map(|_| None).collect();
        let first = streams.handle(0);
        let begin = Event::record(&self.card, first)?;
        for stream in 1..STREAMS {
            begin.hold(streams.handle(stream))?;
        }
        // Whether the last thing on a stream is a kernel, which can let the next one in early.
        let mut behind_kernel = [false; STREAMS];
        for (position, Piece { work, turn, .. }) in self.pieces.iter().enumerate() {
            let stream = streams.handle(turn.stream);
            for &earlier in &turn.waits {
                events[earlier].as_ref().expect("recorded because somebody waits for it").hold(stream)?;
            }
            if !turn.waits.is_empty() {
                behind_kernel[turn.stream] = false;
            }
            for work in work {
                let early =
                    matches!(work, Work::Kernel { .. }) && behind_kernel[turn.stream] && self.card.starts_early();
                self.submit(work, stream, turn.stream, early)?;
                behind_kernel[turn.stream] = !matches!(work, Work::Clear { .. });
            }
            if turn.awaited {
                events[position] = Some(Event::record(&self.card, stream)?);
            }
        }
        for stream in 1..STREAMS {
            Event::record(&self.card, streams.handle(stream))?.hold(first)?;
        }
        Ok(())
    }

    /// `early`: before what is ahead on the stream is done; the kernel waits for that itself.
    fn submit(&self, work: &Work, stream: Handle, number: usize, early: bool) -> Result<(), Unavailable> {
        let driver = &self.card.driver;
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
                self.card.check(status, "starting a kernel")
            }
            Work::Clear { address, length } => {
                // SAFETY: the buffer lies inside the arena.
                self.card.check(unsafe { (driver.fill)(*address, 0, *length, stream) }, "clearing memory")
            }
            Work::Product(product) => product.submit(&self.card, self.scratches[number], stream),
        }
    }

    /// Fails with the first kernel whose result is not finite, and one such value.
    pub(crate) fn run_checked(&mut self) -> Result<(), (usize, f32)> {
        self.card.make_current();
        for position in 0..self.plan.steps.len() {
            for Piece { work, turn, .. } in self.pieces.iter().filter(|piece| piece.step == position) {
                work.iter().for_each(|work| sound(self.submit(work, self.card.stream, turn.stream, false)));
            }
            self.forget();
            let (_, written) = self.plan.steps[position].buffers();
            for buffer in written {
                if let Some(&value) = self.values(buffer).iter().find(|value| !value.is_finite()) {
                    return Err((position, value));
                }
            }
        }
        Ok(())
    }

    /// Seconds of each kernel, best of some runs in place; the program runs several times over.
    pub(crate) fn profile(&mut self) -> Vec<(String, f64)> {
        const RUNS: usize = 5;
        self.card.make_current();
        let card = self.card.clone();
        let mut found = Vec::new();
        let mut before = None;
        for Piece { step, work: list, turn } in &self.pieces {
            let second = before.replace(*step) == Some(*step);
            let is_tail = second && matches!(self.plan.steps[*step], Step::Loop(_));
            let mut best = vec![f64::INFINITY; list.len()];
            for _ in 0..RUNS {
                for (work, best) in list.iter().zip(&mut best) {
                    let seconds = card.time(|| sound(self.submit(work, card.stream, turn.stream, false)));
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
                    Work::Product(_) => "cublas",
                };
                found.push((format!("{how:6} {name}"), seconds));
            }
        }
        self.forget();
        found
    }
}

/// What the steps of a plan become.
struct Lowered {
    /// What each step puts on the stream.
    actions: Vec<Vec<Action>>,
    /// How many of them may go first, see [`Lowering::head`].
    heads: Vec<usize>,
    /// The tables they read.
    tables: Vec<Arc<[u32]>>,
}

fn lower(plan: &Plan, precision: Precision, architecture: u32, shared: usize) -> Lowered {
    let (tables, actions) = (Vec::new(), Vec::new());
    let mut lowering = Lowering { plan, precision, architecture, shared, tables, actions, head: 0 };
    let (mut actions, mut heads) = (Vec::with_capacity(plan.steps.len()), Vec::with_capacity(plan.steps.len()));
    for step in &plan.steps {
        lowering.step(step);
        actions.push(std::mem::take(&mut lowering.actions));
        heads.push(std::mem::take(&mut lowering.head));
    }
    Lowered { actions, heads, tables: lowering.tables }
}

/// Refuses kernels that need more shared memory than a card has.
fn fits(kernels: &[&Kernel], card: &str, shared: usize) -> Result<(), Unavailable> {
    let needs =
        |kernel: &Kernel| kernel.shared as usize + if kernel.family == Family::Scan { lower::SCAN_DECLARES } else { 0 };
    let largest = kernels.iter().max_by_key(|kernel| needs(kernel)).filter(|kernel| needs(kernel) > shared);
    let Some(kernel) = largest else { return Ok(()) };
    Err(Unavailable(format!(
        "{card} gives a block {} KB of shared memory, a {} of these sizes needs {} KB; use fewer states or narrower heads",
        shared / 1024,
        format!("{:?}", kernel.family).to_lowercase(),
        needs(kernel).div_ceil(1024)
    )))
}

fn kernels_of(step: &[Action]) -> impl Iterator<Item = &Kernel> {
    step.iter().filter_map(|action| if let Action::Launch(kernel) = action { Some(kernel) } else { None })
}

/// Compiles the kernels of a plan into the cache, for an architecture that need not be here. Returns bytes of code.
pub(crate) fn compile_kernels(plan: &Plan, precision: Precision, architecture: u32) -> Result<usize, Unavailable> {
    // What NVIDIA's guide states for each compute capability.
    let shared = match architecture {
        80 | 87 => 163,
        86 | 89 | 120 | 121 => 99,
        _ => 227,
    } * 1024;
    let Lowered { actions, .. } = lower(plan, precision, architecture, shared);
    let kernels: Vec<&Kernel> = actions.iter().flat_map(|step| kernels_of(step)).collect();
    fits(&kernels, "such a card", shared)?;
    Ok(card::machine_codes(&kernels, architecture)?.iter().map(|(code, _)| code.len()).sum())
}

/// A card that fails in the middle of work cannot be helped by the program it runs.
fn sound<T>(result: Result<T, Unavailable>) -> T {
    result.unwrap_or_else(|error| panic!("{error}"))
}
