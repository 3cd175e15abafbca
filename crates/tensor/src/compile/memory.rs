//! Memory: one arena for all buffers. Temporaries that are not alive at the same time share space.

use super::explain::summary;
use super::place::Placed;
use super::plan::{Buffer, Plan, Role, Step};
use crate::device::{DeviceError, DeviceErrorKind};
use crate::limits::poll;
use std::ops::Range;

/// Buffers start at multiples of this many elements: a cache line, and the widest vector.
pub(crate) const ALIGNMENT: usize = 16;
/// Largest product of the extents of a step. With 32-bit addresses a limit as far below the largest number would refuse the
/// products of usual models.
const MOST_WORK: usize = 1 << if usize::BITS == 64 { 56 } else { 28 };

/// Percent of the largest sum of temporaries up to which memory waits before it is used again. The rest is room for packing.
const ROOM: usize = 95;

pub(crate) fn plan(placed: Placed, steps: Vec<Step>, slack: usize) -> Result<Plan, DeviceError> {
    check_work(&steps)?;
    let mut buffers = placed.buffers;
    let lives = lives(&buffers, &steps, slack);
    let mut arena = 0;
    for (buffer, _) in buffers.iter_mut().zip(&lives).filter(|(buffer, _)| buffer.role != Role::Temporary) {
        buffer.offset = arena;
        arena = end(arena, buffer.length)?;
    }
    let arena = pack_temporaries(&mut buffers, &lives, arena)?;
    Ok(Plan { buffers, steps, arena })
}

/// Backends multiply the extents of a step to divide its work and to find the size of its scratch memory. No such product
/// wraps if that of all extents is far below the largest number. A kernel at this limit would run for days.
fn check_work(steps: &[Step]) -> Result<(), DeviceError> {
    match steps.iter().find(|step| step.work() > MOST_WORK) {
        None => Ok(()),
        Some(step) => {
            let sentence = format!("the program has a kernel larger than any machine can run: {}", summary(step));
            Err(DeviceError::new(DeviceErrorKind::TooLarge, format!("{sentence}; use smaller sizes")))
        }
    }
}

/// The first aligned position after a buffer. Bytes are counted in `isize`, so a larger arena is refused here.
pub(crate) fn end(offset: usize, length: usize) -> Result<usize, DeviceError> {
    let end = offset.checked_add(length).and_then(|end| end.checked_next_multiple_of(ALIGNMENT));
    end.filter(|&end| end <= isize::MAX as usize / size_of::<f32>())
        .ok_or_else(|| crate::memory::refused(usize::MAX, "the program"))
}

/// The steps during which memory belongs to one buffer.
pub(crate) type Life = (usize, usize);

/// Whether two lives have a step in common.
pub(crate) fn meet(one: Life, two: Life) -> bool {
    one.0 <= two.1 && two.0 <= one.1
}

/// First step that uses a buffer, and the last step before its memory may be used for another buffer: up to `slack` steps after
/// its last use, but not where the temporaries would then come near the largest sum that the program needs anyway.
pub(crate) fn lives(buffers: &[Buffer], steps: &[Step], slack: usize) -> Vec<Option<Life>> {
    let mut lives: Vec<Option<Life>> = vec![None; buffers.len()];
    for (time, step) in steps.iter().enumerate() {
        let (read, written) = step.buffers();
        for buffer in read.into_iter().chain(written) {
            lives[buffer].get_or_insert((time, time)).1 = time;
        }
    }
    let mut temporaries: Vec<(&mut Life, usize, usize)> = lives
        .iter_mut()
        .zip(buffers)
        .filter(|(_, buffer)| buffer.role == Role::Temporary)
        .filter_map(|(life, buffer)| Some((life.as_mut()?, buffer.length, slack)))
        .collect();
    lengthen(&mut temporaries, vec![0; steps.len()]);
    lives
}

/// Lengthens lives, each of a length in elements, by up to so many steps, where the sum of all that is alive stays below [`ROOM`]
/// percent of its largest value. `alive`: elements of others that are alive at each step.
pub(crate) fn lengthen(tenants: &mut [(&mut Life, usize, usize)], mut alive: Vec<usize>) {
    for (life, length, _) in tenants.iter() {
        alive[life.0..=life.1].iter_mut().for_each(|sum| *sum = sum.saturating_add(*length));
    }
    let most = alive.iter().copied().max().unwrap_or(0) / 100 * ROOM;
    for round in 0..tenants.iter().map(|(.., slack)| *slack).max().unwrap_or(0) {
        for (life, length, _) in tenants.iter_mut().filter(|(.., slack)| round < *slack) {
            let Some(sum) = alive.get_mut(life.1 + 1) else { continue };
            if sum.saturating_add(*length) <= most {
                (*sum, life.1) = (*sum + *length, life.1 + 1);
            }
        }
    }
}

/// The lowest multiple of `alignment` from `start` on where `length` elements lie in none of the ranges `taken`.
pub(crate) fn lowest_gap(start: usize, length: usize, alignment: usize, mut taken: Vec<Range<usize>>) -> usize {
    taken.sort_unstable_by_key(|range| (range.start, range.end));
    let mut offset = start.next_multiple_of(alignment);
    for range in taken {
        // Does not wrap: an arena has at most isize::MAX / 4 elements, a shape at most isize::MAX / 16.
        if range.start >= offset + length {
            break;
        }
        offset = offset.max(range.end.next_multiple_of(alignment));
    }
    offset
}

/// Largest first, each at the lowest offset that no buffer alive at the same time occupies.
fn pack_temporaries(buffers: &mut [Buffer], lives: &[Option<Life>], start: usize) -> Result<usize, DeviceError> {
    let mut order: Vec<usize> =
        (0..buffers.len()).filter(|&id| buffers[id].role == Role::Temporary && lives[id].is_some()).collect();
    order.sort_by_key(|&id| std::cmp::Reverse(buffers[id].length));
    let mut packed: Vec<usize> = Vec::new();
    let mut last = start;
    for id in order {
        poll()?;
        let life = lives[id].expect("filtered above");
        let taken = packed
            .iter()
            .filter(|&&other| lives[other].is_some_and(|other| meet(other, life)))
            .map(|&other| buffers[other].range())
            .collect();
        buffers[id].offset = lowest_gap(start, buffers[id].length, ALIGNMENT, taken);
        last = last.max(end(buffers[id].offset, buffers[id].length)?);
        packed.push(id);
    }
    Ok(last)
}
