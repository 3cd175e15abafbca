//! Where the buffers of a C program lie: buffers whose values are not needed at the same time share the workspace.

use super::kernel::Kernel;

/// What a buffer is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Place {
    /// An array of the caller, by its number among the inputs.
    Input(usize),
    /// An array of the caller, by its number among the outputs.
    Output(usize),
    /// Weights from this element on.
    Weights(usize),
    /// The workspace from this element on.
    Work(usize),
}

/// A buffer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Buffer {
    pub(crate) length: usize,
    pub(crate) place: Place,
}

/// Buffers start at multiples of this many floats.
const ALIGNMENT: usize = 16;

/// Gives every buffer of the workspace its place; the floats of the workspace.
pub(crate) fn plan(buffers: &mut [Buffer], kernels: &[Kernel]) -> usize {
    let mut lives: Vec<Option<(usize, usize)>> = vec![None; buffers.len()];
    for (step, kernel) in kernels.iter().enumerate() {
        for view in kernel.reads().into_iter().chain(kernel.writes()) {
            let life = lives[view.buffer].get_or_insert((step, step));
            life.1 = step;
        }
    }
    let mut order: Vec<usize> = (0..buffers.len()).filter(|&id| matches!(buffers[id].place, Place::Work(_))).collect();
    order.sort_by_key(|&id| std::cmp::Reverse(buffers[id].length));
    let mut placed: Vec<(usize, usize, (usize, usize))> = Vec::new(); // start, end, life
    let mut total = 0;
    for id in order {
        let Some(life) = lives[id] else { continue };
        let length = buffers[id].length.next_multiple_of(ALIGNMENT);
        let mut taken: Vec<(usize, usize)> = placed
            .iter()
            .filter(|(_, _, other)| other.0 <= life.1 && life.0 <= other.1)
            .map(|(start, end, _)| (*start, *end))
            .collect();
        taken.sort_unstable();
        let mut start = 0;
        for (first, end) in taken {
            if start + length <= first {
                break;
            }
            start = start.max(end);
        }
        buffers[id].place = Place::Work(start);
        placed.push((start, start + length, life));
        total = total.max(start + length);
    }
    total
}

#[cfg(test)]
mod tests {
    use super::super::kernel::Expression;
    use super::super::view::View;
    use super::*;

    fn copy(from: usize, to: usize) -> Kernel {
        let view = |buffer| View::whole(buffer, &[100]);
        Kernel::Loop { out: view(to), expression: Expression::Load(0), operands: vec![view(from)] }
    }

    #[test]
    fn a_chain_of_buffers_needs_two_places_and_none_overlaps_what_it_is_made_of() {
        let mut buffers: Vec<Buffer> = (0..6).map(|_| Buffer { length: 100, place: Place::Work(0) }).collect();
        let kernels: Vec<Kernel> = (0..5).map(|step| copy(step, step + 1)).collect();
        assert_eq!(plan(&mut buffers, &kernels), 2 * 112);
        for step in 0..5 {
            assert_ne!(buffers[step].place, buffers[step + 1].place);
        }
    }
}
