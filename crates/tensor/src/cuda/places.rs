//! From the actions of a plan to entries of streams: what each step needs, and the addresses of everything that it uses.

use super::gpu::{Gpu, Memory};
use super::kernel::Argument;
use super::library::Address;
use super::lower::Action;
use super::modules::Modules;
use super::products::Prepared;
use super::scratch::{Need, Pieces};
use super::{COUNTERS, WORKSPACE, Work, kernels_of};
use crate::compile::plan::{Plan, Step};
use crate::device::DeviceError;
use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

/// Bytes from the start of the arena to an element of a buffer.
fn bytes_to(plan: &Plan, buffer: usize, offset: isize) -> Address {
    4 * (plan.buffers[buffer].offset as i64 + offset as i64) as Address
}

/// Tables of row numbers, one after the other on the GPU.
pub(super) struct Tables {
    pub(super) memory: Memory,
    starts: Vec<usize>,
}

impl Tables {
    pub(super) fn new(gpu: &Arc<Gpu>, tables: &[Arc<[u32]>]) -> Result<Tables, DeviceError> {
        let flat: Vec<u32> = tables.iter().flat_map(|table| table.iter().copied()).collect();
        let memory = Memory::zeros(gpu, flat.len().max(1))?;
        gpu.write(memory.address, &flat)?;
        let starts = tables.iter().scan(0, |start, table| Some(std::mem::replace(start, *start + table.len())));
        Ok(Tables { memory, starts: starts.collect() })
    }
}

/// Where everything is that the entries of a stream use.
pub(super) struct Places<'a> {
    pub(super) plan: &'a Plan,
    pub(super) arena: Address,
    /// The scratch memory of each step, in elements of the arena.
    pub(super) own: &'a [Option<Range<usize>>],
    pub(super) counters: Address,
    pub(super) tables: &'a Tables,
}

impl Places<'_> {
    fn scratch(&self, step: usize) -> Address {
        self.arena + 4 * self.own[step].as_ref().map_or(0, |own| own.start) as Address
    }

    fn resolve(&self, argument: &Argument, step: usize, stream: usize) -> Address {
        match argument {
            Argument::Buffer { buffer, offset } => self.arena + bytes_to(self.plan, *buffer, *offset),
            Argument::Scratch(offset) => self.scratch(step) + 4 * *offset as Address,
            Argument::Counters => self.counters + 4 * (stream * COUNTERS) as Address,
            Argument::Table(position) => self.tables.memory.address + 4 * self.tables.starts[*position] as Address,
        }
    }

    /// An action of a step as an entry of a stream. The products are taken in the order of [`prepare`].
    pub(super) fn work(
        &self,
        action: &Action,
        step: usize,
        stream: usize,
        modules: &Modules,
        products: &mut VecDeque<(usize, Prepared)>,
    ) -> Work {
        match action {
            Action::Launch(kernel) => Work::Kernel {
                function: modules.function(kernel),
                grid: kernel.grid,
                block: kernel.block,
                shared: kernel.shared,
                arguments: kernel.arguments.iter().map(|argument| self.resolve(argument, step, stream)).collect(),
            },
            Action::Clear { buffer, length } => {
                Work::Clear { address: self.arena + bytes_to(self.plan, *buffer, 0), length: *length }
            }
            Action::Product(_) => Work::Product {
                product: products.pop_front().expect("prepared in this order").1,
                workspace: self.scratch(step),
            },
        }
    }
}

/// The products of all steps in order, each with its step.
pub(super) fn prepare(
    gpu: &Arc<Gpu>,
    plan: &Plan,
    actions: &[Vec<Action>],
) -> Result<VecDeque<(usize, Prepared)>, DeviceError> {
    let mut products = VecDeque::new();
    for (step, action) in actions.iter().enumerate().flat_map(|(step, list)| list.iter().map(move |a| (step, a))) {
        if let Action::Product(product) = action {
            let offset = |buffer: usize, offset: isize| bytes_to(plan, buffer, offset);
            products.push_back((step, Prepared::new(gpu, product, &offset, WORKSPACE)?));
        }
    }
    Ok(products)
}

/// What each step needs: its pieces, and as much scratch memory as its largest kernel or product.
pub(super) fn needs<'a>(
    plan: &Plan,
    actions: &[Vec<Action>],
    heads: &[usize],
    products: impl IntoIterator<Item = &'a (usize, Prepared)>,
) -> Vec<Need> {
    let need = |(step, list): (usize, &Vec<Action>)| Need {
        pieces: match heads[step] {
            0 if matches!(plan.steps[step], Step::Loop(_)) && list.len() > 1 => Pieces::TailLast,
            0 => Pieces::One,
            _ => Pieces::HeadFirst,
        },
        floats: kernels_of(list).map(|kernel| kernel.scratch).max().unwrap_or(0),
    };
    let mut needs: Vec<Need> = actions.iter().enumerate().map(need).collect();
    for (step, product) in products {
        needs[*step].floats = needs[*step].floats.max(product.workspace().div_ceil(4));
    }
    needs
}
