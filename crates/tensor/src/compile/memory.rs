//! Memory: one arena for all buffers. Temporaries that are not alive at the same time share space.

use super::explain::summary;
use super::place::Placed;
use super::plan::{Buffer, Plan, Role, Step};
use crate::device::{DeviceError, DeviceErrorKind};
use crate::limits::poll;

/// Buffers start at multiples of this many elements: a cache line, and the widest vector.
const ALIGNMENT: usize = 16;
/// Largest product of the extents of a step. With 32-bit addresses a limit as far below the largest number would refuse the
/// products of usual models.
const MOST_WORK: usize = 1 << if usize::BITS == 64 { 56 } else { 28 };

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
fn end(offset: usize, length: usize) -> Result<usize, DeviceError> {
    let end = offset.checked_add(length).and_then(|end| end.checked_next_multiple_of(ALIGNMENT));
    end.filter(|&end| end <= isize::MAX as usize / size_of::<f32>())
        .ok_or_else(|| crate::memory::refused(usize::MAX, "the program"))
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
fn pack_temporaries(
    buffers: &mut [Buffer],
    lives: &[Option<(usize, usize)>],
    start: usize,
) -> Result<usize, DeviceError> {
    let mut order: Vec<usize> =
        (0..buffers.len()).filter(|&id| buffers[id].role == Role::Temporary && lives[id].is_some()).collect();
    order.sort_by_key(|&id| std::cmp::Reverse(buffers[id].length));
    let mut packed: Vec<usize> = Vec::new();
    let mut last = start;
    for id in order {
        poll()?;
        let life = lives[id].expect("filtered above");
        let mut taken: Vec<(usize, usize)> = packed
            .iter()
            .filter(|&&other| lives[other].is_some_and(|other| other.0 <= life.1 && life.0 <= other.1))
            .map(|&other| (buffers[other].offset, buffers[other].offset + buffers[other].length))
            .collect();
        taken.sort_unstable();
        let mut offset = start;
        for (from, to) in taken {
            // Does not wrap: an arena has at most isize::MAX / 4 elements, a shape at most isize::MAX / 16.
            if from >= offset + buffers[id].length {
                break;
            }
            offset = offset.max(to.next_multiple_of(ALIGNMENT));
        }
        buffers[id].offset = offset;
        last = last.max(end(offset, buffers[id].length)?);
        packed.push(id);
    }
    Ok(last)
}
