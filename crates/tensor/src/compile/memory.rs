//! Memory: one arena for all buffers. Temporaries that are not alive at the same time share space.

use super::place::Placed;
use super::plan::{Buffer, Plan, Role, Step};

/// Buffers start at multiples of this many elements: a cache line, and the widest vector.
const ALIGNMENT: usize = 16;

pub(crate) fn plan(placed: Placed, steps: Vec<Step>, slack: usize) -> Plan {
    let mut buffers = placed.buffers;
    let lives = lives(&buffers, &steps, slack);
    let mut arena = 0;
    for (buffer, _) in buffers.iter_mut().zip(&lives).filter(|(buffer, _)| buffer.role != Role::Temporary) {
        buffer.offset = arena;
        arena += buffer.length.next_multiple_of(ALIGNMENT);
    }
    let arena = pack_temporaries(&mut buffers, &lives, arena);
    Plan { buffers, steps, arena }
}

/// First step that uses a buffer, and the last step before its memory may be used for another buffer.
fn lives(buffers: &[Buffer], steps: &[Step], slack: usize) -> Vec<Option<(usize, usize)>> {
    let mut lives: Vec<Option<(usize, usize)>> = vec![None; buffers.len()];
    for (time, step) in steps.iter().enumerate() {
        let (read, written) = step.buffers();
        for buffer in read.into_iter().chain(written) {
            let life = lives[buffer].get_or_insert((time, time));
            life.1 = time + slack;
        }
    }
    lives
}

/// Largest first, each at the lowest offset that no buffer alive at the same time occupies.
fn pack_temporaries(buffers: &mut [Buffer], lives: &[Option<(usize, usize)>], start: usize) -> usize {
    let mut order: Vec<usize> =
        (0..buffers.len()).filter(|&id| buffers[id].role == Role::Temporary && lives[id].is_some()).collect();
    order.sort_by_key(|&id| std::cmp::Reverse(buffers[id].length));
    let mut packed: Vec<usize> = Vec::new();
    let mut end = start;
    for id in order {
        let life = lives[id].expect("filtered above");
        let mut taken: Vec<(usize, usize)> = packed
            .iter()
            .filter(|&&other| lives[other].is_some_and(|other| other.0 <= life.1 && life.0 <= other.1))
            .map(|&other| (buffers[other].offset, buffers[other].offset + buffers[other].length))
            .collect();
        taken.sort_unstable();
        let mut offset = start;
        for (from, to) in taken {
            if from >= offset + buffers[id].length {
                break;
            }
            offset = offset.max(to.next_multiple_of(ALIGNMENT));
        }
        buffers[id].offset = offset;
        end = end.max((offset + buffers[id].length).next_multiple_of(ALIGNMENT));
        packed.push(id);
    }
    end
}
