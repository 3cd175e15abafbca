//! Lowering: from the instructions of a loop to code over strips. A register gets a strip, or is read from memory where it
//! is; a product is computed by the addition or sum that reads it.

use super::{Access, Code, LONGEST_ROW, Location, LoopKernel};
use crate::compile::blocks::Moves;
use crate::compile::plan::{Instruction, Level, Loop, Operand, Place};
use crate::ops::{Map, Reduction};

pub(super) struct Lowering<'a, F> {
    kernel: &'a mut LoopKernel,
    base: F,
    locations: Vec<Location>,
    levels: Vec<Level>,
    /// Last instruction that reads a register.
    last_use: Vec<usize>,
    free: Vec<usize>,
    free_rows: Vec<usize>,
    /// Buffers that the loop reads: a store into one of them runs after all other code of the strip.
    read: Vec<usize>,
    products: Products,
}

/// Products that their only reader computes itself, so that they need no strip.
struct Products {
    /// Factors of the product that an instruction reads, and the position of that operand.
    factors: Vec<Option<(usize, [Operand; 2])>>,
    /// Products that need no code of their own.
    absorbed: Vec<bool>,
}

impl Products {
    fn find(body: &Loop) -> Products {
        let count = body.instructions.len();
        let mut products = Products { factors: vec![None; count], absorbed: vec![false; count] };
        for (time, instruction) in body.instructions.iter().enumerate() {
            let Instruction::Map { map: Map::Multiply, operands, to } = instruction else { continue };
            let reads =
                |reader: &Instruction| operands_of(reader).iter().filter(|&&o| o == Operand::Register(*to)).count();
            let readers: Vec<usize> = (0..count).filter(|&at| reads(&body.instructions[at]) > 0).collect();
            let [reader] = readers[..] else { continue };
            let once = reads(&body.instructions[reader]) == 1 && products.factors[reader].is_none();
            if body.levels[*to] == Level::Element && once && absorbs(body, &body.instructions[reader]) {
                let position =
                    operands_of(&body.instructions[reader]).iter().position(|&o| o == Operand::Register(*to));
                products.factors[reader] = Some((position.expect("it reads the product"), [operands[0], operands[1]]));
                products.absorbed[time] = true;
            }
        }
        products
    }
}

/// Whether an instruction can multiply on its own.
fn absorbs(body: &Loop, reader: &Instruction) -> bool {
    match reader {
        Instruction::Map { map: Map::Add | Map::Subtract, .. } => true,
        Instruction::ReduceRow { kind: Reduction::Sum, .. } => true,
        Instruction::Accumulate { across, .. } => {
            body.across[*across].kind == Reduction::Sum && !body.across[*across].whole_rows
        }
        _ => false,
    }
}

fn operands_of(instruction: &Instruction) -> Vec<Operand> {
    match instruction {
        Instruction::Map { map, operands, .. } => operands[..map.arity()].to_vec(),
        Instruction::ReduceRow { operand, .. }
        | Instruction::Store { operand, .. }
        | Instruction::Accumulate { operand, .. } => vec![*operand],
        Instruction::Load { .. } => Vec::new(),
    }
}

impl<'a, F: Fn(&Place) -> (*mut f32, Moves)> Lowering<'a, F> {
    pub(super) fn new(kernel: &'a mut LoopKernel, body: &Loop, base: F) -> Self {
        let loaded = |instruction: &Instruction| match instruction {
            Instruction::Load { from, .. } => Some(from.buffer),
            _ => None,
        };
        let read: Vec<usize> = body.instructions.iter().filter_map(loaded).collect();
        let products = Products::find(body);
        let mut last_use = vec![0; body.levels.len()];
        for (time, instruction) in body.instructions.iter().enumerate().filter(|(time, _)| !products.absorbed[*time]) {
            let late = matches!(instruction, Instruction::Store { to, .. } if read.contains(&to.buffer));
            let mut operands = operands_of(instruction);
            operands.extend(products.factors[time].iter().flat_map(|(_, factors)| factors));
            for operand in operands {
                if let Operand::Register(register) = operand {
                    last_use[register] = if late { usize::MAX } else { time.max(last_use[register]) };
                }
            }
        }
        let locations = vec![Location::Number(0.0); body.levels.len()];
        let levels = body.levels.clone();
        Lowering { kernel, base, locations, levels, last_use, free: Vec::new(), free_rows: Vec::new(), read, products }
    }

    fn access(&mut self, place: &Place) -> usize {
        let last = place.layout.dims.len() - 1;
        let outer = place.layout.strides[..last].to_vec();
        let axes = &self.kernel.row_axes;
        let mut uniform = Some(0);
        // Rows have one stride if each axis continues where the next inner axis ends.
        let moving: Vec<(usize, isize)> =
            axes.iter().copied().zip(outer.iter().copied()).filter(|&(extent, _)| extent != 1).collect();
        if let Some(&(_, innermost)) = moving.last() {
            let even = moving.windows(2).all(|pair| pair[0].1 == pair[1].1 * pair[1].0 as isize);
            uniform = even.then_some(innermost);
        }
        let inner = place.layout.strides[last];
        let (pointer, moves) = (self.base)(place);
        self.kernel.accesses.push(Access { pointer, outer, uniform, inner, moves });
        self.kernel.accesses.len() - 1
    }

    /// Whether strips of this access are contiguous in memory.
    fn is_flat(&self, access: usize) -> bool {
        let Access { uniform, inner, .. } = &self.kernel.accesses[access];
        let columns = self.kernel.columns;
        let rows: usize = self.kernel.row_axes.iter().product();
        let one_row = rows == 1 || columns > LONGEST_ROW || self.kernel.strip_rows == 1;
        (*inner == 1 || columns == 1) && (one_row || *uniform == Some(columns as isize))
    }

    fn take_strip(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.kernel.strips += 1;
            self.kernel.strips - 1
        })
    }

    fn take_rows(&mut self) -> usize {
        self.free_rows.pop().unwrap_or_else(|| {
            self.kernel.row_strips += 1;
            self.kernel.row_strips - 1
        })
    }

    fn location(&self, operand: &Operand) -> Location {
        match operand {
            Operand::Register(register) => self.locations[*register],
            Operand::Number(number) => Location::Number(*number),
        }
    }

    fn locate<const COUNT: usize>(&self, operands: [Operand; COUNT]) -> [Location; COUNT] {
        operands.map(|operand| self.location(&operand))
    }

    pub(super) fn lower(mut self, body: &Loop) {
        let absorbed = self.products.absorbed.clone();
        let mut stored_directly = vec![false; body.instructions.len()];
        let mut permanent = vec![false; body.levels.len()];
        // A store into memory that the loop also reads runs last, after the strip was read.
        let mut late = Vec::new();
        for (time, instruction) in body.instructions.iter().enumerate().filter(|(time, _)| !absorbed[*time]) {
            let factors = self.products.factors[time].map(|(position, factors)| (position, self.locate(factors)));
            match instruction {
                Instruction::Load { from, to } => permanent[*to] = self.load(from, *to),
                Instruction::Map { map, operands, to } => {
                    let operands = self.locate(*operands);
                    let target = match self.levels[*to] {
                        Level::Row => Location::Rows(self.take_rows()),
                        Level::Element => match self.direct_store(body, *to) {
                            Some((store, access)) => {
                                stored_directly[store] = true;
                                Location::Memory(access)
                            }
                            None => Location::Strip(self.take_strip()),
                        },
                    };
                    self.locations[*to] = target;
                    self.kernel.code.push(match factors {
                        None => Code::Map { map: *map, operands, to: target },
                        Some((position, [a, b])) => {
                            let signs = match (map, position) {
                                (Map::Subtract, 0) => [1.0, -1.0],
                                (Map::Subtract, _) => [-1.0, 1.0],
                                _ => [1.0, 1.0],
                            };
                            Code::MultiplyAdd { operands: [a, b, operands[1 - position]], signs, to: target }
                        }
                    });
                }
                Instruction::ReduceRow { kind, operand, to } => {
                    let operand = self.location(operand);
                    let rows = self.take_rows();
                    self.locations[*to] = Location::Rows(rows);
                    self.kernel.code.push(match factors {
                        None => Code::ReduceRows { kind: *kind, operand, to: rows },
                        Some((_, factors)) => Code::DotRows { factors, to: rows },
                    });
                }
                Instruction::Store { operand, to } => {
                    if !stored_directly[time] {
                        let access = self.access(to);
                        let store = Code::Store { operand: self.location(operand), access };
                        if self.read.contains(&to.buffer) { late.push(store) } else { self.kernel.code.push(store) }
                    }
                }
                Instruction::Accumulate { operand, across } => {
                    self.kernel.code.push(match factors {
                        None => Code::Accumulate { operand: self.location(operand), across: *across },
                        Some((_, factors)) => Code::AccumulateProduct { factors, across: *across },
                    });
                }
            }
            for register in (0..body.levels.len()).filter(|&r| self.last_use[r] == time && !permanent[r]) {
                match self.locations[register] {
                    Location::Strip(strip) if !self.free.contains(&strip) => self.free.push(strip),
                    Location::Rows(rows) if !self.free_rows.contains(&rows) => self.free_rows.push(rows),
                    _ => {}
                }
            }
        }
        self.kernel.code.append(&mut late);
    }

    /// Loads a register; returns whether its strip is the same for the whole task.
    fn load(&mut self, from: &Place, to: usize) -> bool {
        let access = self.access(from);
        if self.levels[to] == Level::Row {
            let rows = self.take_rows();
            self.locations[to] = Location::Rows(rows);
            self.kernel.code.push(Code::LoadRows { access, to: rows });
            return false;
        }
        // What is stored at the end of a strip is read before: another such store may overwrite its memory.
        let is_stored_late = self.last_use[to] == usize::MAX;
        if self.is_flat(access) && !is_stored_late {
            self.locations[to] = Location::Memory(access);
            return true;
        }
        let same_for_all_rows = self.kernel.accesses[access].uniform == Some(0);
        let strip = if same_for_all_rows {
            self.kernel.strips += 1; // not shared: it must last for the whole task
            self.kernel.strips - 1
        } else {
            self.take_strip()
        };
        self.locations[to] = Location::Strip(strip);
        let code = Code::Load { access, to: strip };
        if same_for_all_rows {
            self.kernel.once.push(code);
        } else {
            self.kernel.code.push(code);
        }
        same_for_all_rows
    }

    /// The store of a register that a map can write directly: contiguous, into memory that the loop does not read.
    fn direct_store(&mut self, body: &Loop, register: usize) -> Option<(usize, usize)> {
        for (time, instruction) in body.instructions.iter().enumerate() {
            if let Instruction::Store { operand: Operand::Register(from), to } = instruction
                && *from == register
                && !self.read.contains(&to.buffer)
            {
                let access = self.access(to);
                if self.is_flat(access) {
                    return Some((time, access));
                }
                self.kernel.accesses.pop();
            }
        }
        None
    }
}
