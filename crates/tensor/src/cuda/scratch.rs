//! Scratch memory: partial sums, packed weights and the workspaces of products live for one step of the plan. They lie in the
//! arena, where it has no buffer alive at that step, and go beyond its end only where they do not fit.

use super::SLACK;
use crate::compile::memory::{self, Life, meet};
use crate::compile::plan::{Plan, Role};
use crate::device::DeviceError;
use crate::limits::poll_at;
use std::cmp::Reverse;
use std::ops::Range;

/// Scratch memory starts at multiples of this many floats: 256 bytes, as cuBLASLt and wide loads want it.
const ALIGNMENT: usize = 64;
/// Steps that should pass before the memory of a step with a tail is used again: the tail may run late.
const WINDOW: usize = 16;

/// The pieces of a step, each with a turn of its own on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pieces {
    One,
    /// The gradient of a scan: a head that does not need the cotangent, and the rest.
    HeadFirst,
    /// A loop: a second kernel adds up what the first has left.
    TailLast,
}

/// What a step needs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Need {
    pub(crate) pieces: Pieces,
    /// Floats of scratch memory.
    pub(crate) floats: usize,
}

/// Where the scratch memory of each step is.
pub(crate) struct Scratch {
    /// In elements of the arena; `None` for a step that needs none.
    pub(crate) own: Vec<Option<Range<usize>>>,
    /// Elements of the arena with all scratch memory.
    pub(crate) arena: usize,
}

/// Elements of the arena, and the steps during which they are used.
type Tenancy = (Life, Range<usize>);

impl Scratch {
    /// Scratch memory keeps its place for some steps, so that few kernels wait for it, unless the arena has to grow for that.
    /// Heads may run long before their step, so they share a place that nothing else uses.
    pub(crate) fn plan(plan: &Plan, needs: &[Need]) -> Result<Scratch, DeviceError> {
        let temporaries: Vec<Tenancy> = memory::lives(&plan.buffers, &plan.steps, SLACK)
            .into_iter()
            .zip(&plan.buffers)
            .filter(|(_, buffer)| buffer.role == Role::Temporary)
            .filter_map(|(life, buffer)| Some((life?, buffer.range())))
            .collect();
        let placeable = |(_, need): &(usize, &Need)| match need.pieces {
            Pieces::One => need.floats > 0,
            Pieces::TailLast => true, // an empty place would not order the two pieces
            Pieces::HeadFirst => false,
        };
        let steps: Vec<usize> = needs.iter().enumerate().filter(placeable).map(|(step, _)| step).collect();
        let short: Vec<Life> = (0..needs.len()).map(|step| (step, step)).collect();
        let long = lengthened(&short, &steps, needs, &temporaries);
        let (tight, roomy) =
            (place(plan, needs, &steps, &short, &temporaries), place(plan, needs, &steps, &long, &temporaries));
        let (tight, roomy) = (tight?, roomy?);
        let Scratch { mut own, mut arena } = if roomy.arena / 101 <= tight.arena / 100 { roomy } else { tight };
        let heads = || (0..needs.len()).filter(|&step| needs[step].pieces == Pieces::HeadFirst);
        if let Some(length) = heads().map(|step| needs[step].length()).max() {
            let from = arena.next_multiple_of(ALIGNMENT);
            arena = memory::end(from, length)?;
            heads().for_each(|step| own[step] = Some(from..from + length));
        }
        Ok(Scratch { own, arena })
    }
}

impl Need {
    /// Elements to reserve; what no arena can hold is refused when it is placed.
    fn length(&self) -> usize {
        self.floats.clamp(1, isize::MAX as usize / 4)
    }
}

/// Lives that last as many steps longer as there is room for.
fn lengthened(short: &[Life], steps: &[usize], needs: &[Need], temporaries: &[Tenancy]) -> Vec<Life> {
    let mut alive = vec![0_usize; needs.len()];
    for ((first, last), range) in temporaries {
        alive[*first..=*last].iter_mut().for_each(|sum| *sum += range.len());
    }
    let mut lives = short.to_vec();
    let mut tenants: Vec<(&mut Life, usize, usize)> = Vec::with_capacity(steps.len());
    for (step, life) in lives.iter_mut().enumerate().filter(|(step, _)| steps.binary_search(step).is_ok()) {
        let slack = if needs[step].pieces == Pieces::TailLast { WINDOW } else { SLACK };
        tenants.push((life, needs[step].length(), slack));
    }
    memory::lengthen(&mut tenants, alive);
    lives
}

/// Largest first, each at the lowest position that nothing alive at the same time occupies.
fn place(
    plan: &Plan,
    needs: &[Need],
    steps: &[usize],
    lives: &[Life],
    temporaries: &[Tenancy],
) -> Result<Scratch, DeviceError> {
    let kept = plan.buffers.iter().filter(|buffer| buffer.role != Role::Temporary);
    let start = kept.map(|buffer| buffer.range().end).max().unwrap_or(0);
    let mut order = steps.to_vec();
    order.sort_by_key(|&step| Reverse(needs[step].length()));
    let mut own: Vec<Option<Range<usize>>> = vec![None; needs.len()];
    let mut placed: Vec<Tenancy> = Vec::with_capacity(order.len());
    let mut arena = plan.arena;
    for (position, step) in order.into_iter().enumerate() {
        poll_at(position)?;
        let length = needs[step].length();
        let alive = temporaries.iter().chain(&placed).filter(|(other, _)| meet(*other, lives[step]));
        let taken = alive.map(|(_, range)| range.clone()).collect();
        let from = memory::lowest_gap(start, length, ALIGNMENT, taken);
        arena = arena.max(memory::end(from, length)?);
        placed.push((lives[step], from..from + length));
        own[step] = Some(from..from + length);
    }
    Ok(Scratch { own, arena })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::{self, Options};
    use crate::cuda::TRAITS;
    use crate::graph::Graph;

    /// A chain of products whose results are all needed again at its end, so that the arena is full in the middle and has room
    /// before and after.
    fn plan() -> Plan {
        let graph = Graph::new();
        let mut field = graph.input("x", [64, 64]);
        let weight = graph.parameter("weight", [64, 64]);
        for _ in 0..40 {
            field = field.matmul(weight).sin();
        }
        let theta = graph.parameters();
        graph.output("gradient", graph.gradient(field.square().sum_all(), &[theta])[0].unwrap());
        compile::compile(&graph, Options::default(), TRAITS).unwrap()
    }

    fn one(floats: usize) -> Need {
        Need { pieces: Pieces::One, floats }
    }

    #[test]
    fn scratch_memory_lies_where_no_buffer_is_alive() {
        let plan = plan();
        let needs: Vec<Need> = (0..plan.steps.len()).map(|step| one(step % 7 * 1000)).collect();
        let scratch = Scratch::plan(&plan, &needs).unwrap();
        let lives = memory::lives(&plan.buffers, &plan.steps, 0);
        let apart = |one: &Range<usize>, two: &Range<usize>| one.end <= two.start || two.end <= one.start;
        for (step, range) in scratch.own.iter().enumerate() {
            assert_eq!(range.as_ref().map_or(0, Range::len), needs[step].floats);
            let Some(range) = range else { continue };
            assert!(range.start % ALIGNMENT == 0 && range.end <= scratch.arena);
            for (buffer, life) in plan.buffers.iter().zip(&lives) {
                let alive = buffer.role != Role::Temporary || life.is_some_and(|life| meet(life, (step, step)));
                assert!(!alive || apart(range, &buffer.range()), "step {step} shares memory with {:?}", buffer.name);
            }
        }
    }

    #[test]
    fn scratch_memory_where_the_arena_has_room_makes_it_no_larger() {
        let plan = plan();
        let mut needs = vec![one(0); plan.steps.len()];
        needs[1] = one(10_000);
        let scratch = Scratch::plan(&plan, &needs).unwrap();
        assert_eq!(scratch.arena, plan.arena);
        let none = Scratch::plan(&plan, &vec![one(0); plan.steps.len()]).unwrap();
        assert!(none.own.iter().all(Option::is_none) && none.arena == plan.arena);
    }

    #[test]
    fn neighbours_have_places_of_their_own_where_the_arena_has_room() {
        let plan = plan();
        let mut needs = vec![one(0); plan.steps.len()];
        (0..4).for_each(|step| needs[step] = one(1000));
        let scratch = Scratch::plan(&plan, &needs).unwrap();
        let mut places: Vec<Range<usize>> = scratch.own.iter().flatten().cloned().collect();
        places.sort_by_key(|range| range.start);
        assert_eq!((places.len(), scratch.arena), (4, plan.arena));
        assert!(places.windows(2).all(|pair| pair[0].end <= pair[1].start), "{places:?}");
    }

    #[test]
    fn the_arena_grows_by_the_largest_scratch_memory_at_most() {
        let plan = plan();
        let needs = vec![one(50_000); plan.steps.len()];
        let scratch = Scratch::plan(&plan, &needs).unwrap();
        assert!(scratch.arena <= plan.arena + 50_000 + ALIGNMENT, "{} after {}", scratch.arena, plan.arena);
    }

    #[test]
    fn heads_share_one_place_behind_all_others_and_an_empty_tail_has_a_place_that_orders_its_pieces() {
        let plan = plan();
        let mut needs = vec![one(100); plan.steps.len()];
        (needs[3], needs[9]) =
            (Need { pieces: Pieces::HeadFirst, floats: 70 }, Need { pieces: Pieces::HeadFirst, floats: 5000 });
        needs[5] = Need { pieces: Pieces::TailLast, floats: 0 };
        let Scratch { own, arena } = Scratch::plan(&plan, &needs).unwrap();
        let head = own[3].clone().unwrap();
        assert_eq!((own[9].as_ref(), head.len()), (Some(&head), 5000));
        assert!(head.start >= plan.arena && head.end <= arena);
        assert!(
            own.iter()
                .enumerate()
                .all(|(step, range)| [3, 9].contains(&step)
                    || range.as_ref().is_some_and(|range| range.end <= head.start))
        );
        assert_eq!(own[5].as_ref().map(Range::len), Some(1));
    }

    #[test]
    fn scratch_memory_that_no_machine_has_is_refused() {
        let plan = plan();
        let mut needs = vec![one(0); plan.steps.len()];
        needs[0] = one(usize::MAX);
        assert!(Scratch::plan(&plan, &needs).is_err());
    }
}
