//! The functions beside the past snapshots of a roll-out: fields that stay, and fields that drive it.
//!
//! A field drives a roll-out if it has a snapshot for each of the series, such as a force that changes in time. The step that
//! predicts snapshot `past + k` is shown its snapshots `k … k + past`: those of the window, and the one of the time it predicts.
//! A sample that is continued for several steps holds all of them. So it has more functions at a point than the model is shown:
//! the past snapshots of the outputs, then each field, snapshot after snapshot.

use super::normaliser::Normaliser;
use super::{Field, Task};
use crate::error::Refusal;
use lamo_geometry::Grid;
use lamo_tensor::{Graph, Tensor};
use std::ops::Range;

/// Input of a program that moves its window: the snapshots of the driving fields that enter it, `[batch, points, driving]`.
pub(crate) const DRIVING: &str = "driving";

/// A field beside the past snapshots of a sample.
#[derive(Clone, Copy, Debug)]
struct Part {
    width: usize,
    snapshots: usize,
    drives: bool,
}

/// Which functions of a sample are shown at a step.
#[derive(Clone, Debug)]
pub(crate) struct Beside {
    past: usize,
    /// Functions of the past snapshots.
    window: usize,
    parts: Vec<Part>,
}

impl Beside {
    /// The parts, and where each begins among the functions of a sample.
    fn placed(&self) -> impl Iterator<Item = (Part, usize)> {
        self.parts.iter().scan(self.window, |first, part| {
            let start = *first;
            *first += part.snapshots * part.width;
            Some((*part, start))
        })
    }

    /// The functions that a step is shown; the past snapshots are those at the start.
    fn shown(&self, step: usize) -> Vec<Range<usize>> {
        let of = |(part, start): (Part, usize)| match part.drives {
            true => start + step * part.width..start + (step + self.past + 1) * part.width,
            false => start..start + part.snapshots * part.width,
        };
        std::iter::once(0..self.window).chain(self.placed().map(of)).collect()
    }

    /// The functions that enter the window after a step; the last ones again where the sample ends.
    fn entering(&self, step: usize) -> Vec<Range<usize>> {
        let of = |(part, start): (Part, usize)| {
            let snapshot = (step + self.past + 1).min(part.snapshots - 1);
            start + snapshot * part.width..start + (snapshot + 1) * part.width
        };
        self.placed().filter(|(part, _)| part.drives).map(of).collect()
    }

    /// For each function of a sample, the one that the model is shown in its place: all snapshots of a field have one normaliser.
    fn normalised_as(&self) -> Vec<usize> {
        let mut all: Vec<usize> = (0..self.window).collect();
        let mut first = self.window;
        for part in &self.parts {
            let shown = if part.drives { self.past + 1 } else { part.snapshots };
            let functions = 0..part.snapshots * part.width;
            all.extend(functions.map(|function| first + function % (shown * part.width)));
            first += shown * part.width;
        }
        all
    }
}

impl Task {
    /// What is beside the past snapshots of a sample that is continued for so many steps.
    fn beside(&self, steps: usize) -> Beside {
        let past = self.time.past();
        let part = |field: &Field| {
            let drives = self.is_driven_by(field);
            Part { width: field.width(), snapshots: if drives { past + steps } else { field.length() }, drives }
        };
        let window = past * if past > 0 { self.output_channels() } else { 0 };
        Beside { past, window, parts: self.inputs.iter().map(part).collect() }
    }

    /// Whether a field drives the roll-out of this task.
    pub(crate) fn is_driven_by(&self, field: &Field) -> bool {
        let past = self.time.past();
        self.driven && past > 0 && field.snapshots == Some(past + self.time.count())
    }

    /// Functions of one snapshot of the driving fields.
    pub(crate) fn driving(&self) -> usize {
        self.inputs.iter().filter(|field| self.is_driven_by(field)).map(Field::width).sum()
    }

    /// Functions at each point of a sample that is continued for so many steps.
    pub fn given_channels(&self, steps: usize) -> usize {
        self.input_channels() + self.driving() * (steps.max(1) - 1)
    }

    /// How many steps a sample with so many functions can be continued; any number without a driving field.
    pub(crate) fn steps_of(&self, functions: usize) -> usize {
        match self.driving() {
            0 => usize::MAX,
            driving => functions.saturating_sub(self.input_channels()) / driving + 1,
        }
    }

    /// Lets the fields with a snapshot for each of the series drive the roll-out. If inputs are normalised, all snapshots of such a
    /// field get one normaliser, fitted to the inputs `[..., functions]` of the training samples.
    pub(crate) fn drive(&mut self, inputs: &[f32], functions: usize, normalised: bool) -> Result<(), Refusal> {
        self.driven = self.time.mode().is_roll_out();
        self.driven = self.driving() > 0;
        let Some(fitted) = self.normalisers.inputs.take_if(|_| self.driven) else { return Ok(()) };
        let beside = self.beside(self.time.count());
        let mut shared = fitted.part(0..beside.window);
        for (part, start) in beside.placed() {
            let range = start..start + part.snapshots * part.width;
            shared = shared.and(match (part.drives, normalised) {
                (true, true) => {
                    let values = inputs.chunks_exact(functions).flat_map(|point| &point[range.clone()]);
                    let values: Vec<f32> = values.copied().collect();
                    Normaliser::fit_given(&values, part.width)?.repeat(beside.past + 1)
                }
                (true, false) => fitted.part(start..start + (beside.past + 1) * part.width),
                (false, _) => fitted.part(range),
            });
        }
        self.normalisers.inputs = Some(shared);
        Ok(())
    }

    /// Refuses a normaliser that differs between the snapshots of a driving field: a snapshot has several places in the window.
    pub(super) fn check_driven(&self) -> Result<(), Refusal> {
        let Some(Normaliser { mean, deviation }) = &self.normalisers.inputs else { return Ok(()) };
        let differs = |(part, start): &(Part, usize)| {
            let (width, end) = (part.width, start + part.snapshots * part.width);
            let odd = |values: &[f32]| (start + width..end).any(|place| values[place] != values[place - width]);
            part.drives && (odd(mean) || odd(deviation))
        };
        // One step is shown the functions that the normaliser has.
        let odd = self.beside(1).placed().position(|placed| differs(&placed));
        odd.map_or(Ok(()), |place| {
            let thing = format!("normaliser of `{}`, which drives the roll-out", self.inputs[place].name);
            Err(Refusal::new(thing, "the same mean and deviation for all snapshots", "different ones"))
        })
    }

    /// The normaliser of all functions of a sample, of which the model is shown some at a step.
    pub(super) fn normaliser_of(&self, functions: usize) -> Option<Normaliser> {
        let shown = self.normalisers.inputs.as_ref()?;
        if functions == self.input_channels() {
            return Some(shown.clone());
        }
        let places = self.beside(self.steps_of(functions)).normalised_as();
        let of = |values: &[f32]| places.iter().map(|&place| values[place]).collect();
        Some(Normaliser { mean: of(&shown.mean), deviation: of(&shown.deviation) })
    }

    /// `[..., shown]` at a step out of `[..., functions]`, on the host; the past snapshots stay.
    pub(crate) fn shown(&self, given: &[f32], functions: usize, step: usize) -> Vec<f32> {
        match self.driving() {
            0 => given.to_vec(),
            _ => self.chosen(given, functions, |beside| beside.shown(step)),
        }
    }

    /// `[..., driving]` that enters the window after a step out of `[..., functions]`, on the host.
    pub(crate) fn entering(&self, given: &[f32], functions: usize, step: usize) -> Vec<f32> {
        self.chosen(given, functions, |beside| beside.entering(step))
    }

    /// `[..., functions]` of samples that are continued for so many steps out of the functions of one step, `[..., shown]`: the last
    /// snapshots of the driving fields stay.
    pub(crate) fn held(&self, shown: &[f32], steps: usize) -> Vec<f32> {
        self.chosen(shown, self.input_channels(), |beside| {
            let of = |(part, start): (Part, usize)| {
                let end = start + part.snapshots * part.width;
                let last = std::iter::repeat_n(end - part.width..end, if part.drives { steps - 1 } else { 0 });
                std::iter::once(start..end).chain(last)
            };
            std::iter::once(0..beside.window).chain(beside.placed().flat_map(of)).collect()
        })
    }

    fn chosen(&self, given: &[f32], functions: usize, which: impl Fn(&Beside) -> Vec<Range<usize>>) -> Vec<f32> {
        let ranges = which(&self.beside(self.steps_of(functions)));
        given
            .chunks_exact(functions)
            .flat_map(|point| ranges.iter().flat_map(|range| &point[range.clone()]))
            .copied()
            .collect()
    }

    /// The functions behind the past snapshots that a step is shown, out of those of the training samples
    /// `[batch, points, functions]`; `None` where no field drives the roll-out.
    pub(crate) fn beside_at<'g>(&self, given: Tensor<'g>, step: usize) -> Option<Tensor<'g>> {
        let ranges = || self.beside(self.time.count()).shown(step);
        (self.driving() > 0).then(|| side_by_side(given, ranges().into_iter().skip(1)))
    }

    /// What enters the windows of the training samples after a step, `[batch, points, driving]`.
    pub(crate) fn entering_at<'g>(&self, given: Tensor<'g>, step: usize) -> Tensor<'g> {
        side_by_side(given, self.beside(self.time.count()).entering(step).into_iter())
    }

    /// The input of a program that moves its window for what enters it; `None` where no field drives the roll-out.
    pub(crate) fn declare_driving<'g>(&self, graph: &'g Graph, batch: usize, grid: Grid) -> Option<Tensor<'g>> {
        let driving = self.driving();
        (driving > 0).then(|| graph.input(DRIVING, [batch, grid.points(), driving]))
    }

    /// The window after one more snapshot, `[batch, points, shown]`: the snapshot that was found and those that enter from the
    /// driving fields, `[batch, points, driving]`, take the place of the oldest ones.
    pub(crate) fn moved<'g>(&self, window: Tensor<'g>, found: Tensor<'g>, entering: Option<Tensor<'g>>) -> Tensor<'g> {
        let follow = |others: Tensor<'g>| {
            let Some(entering) = entering else { return others };
            let (mut parts, mut first, mut new) = (Vec::new(), 0, 0);
            for part in self.beside(1).parts {
                let end = first + part.snapshots * part.width;
                if part.drives {
                    parts.push(others.slice(2, first + part.width, end));
                    parts.push(entering.slice(2, new, new + part.width));
                    new += part.width;
                } else {
                    parts.push(others.slice(2, first, end));
                }
                first = end;
            }
            Tensor::concatenate(&parts, 2)
        };
        self.time.moved(window, found, follow)
    }

    /// Moves the window of a program by one snapshot, see [`Task::moved`].
    pub(crate) fn advance<'g>(&self, window: Tensor<'g>, found: Tensor<'g>, entering: Option<Tensor<'g>>) {
        window.graph().assign(window, self.moved(window, found, entering));
    }
}

/// Some functions of `[batch, points, functions]`.
fn side_by_side<'g>(given: Tensor<'g>, ranges: impl Iterator<Item = Range<usize>>) -> Tensor<'g> {
    let parts: Vec<Tensor<'g>> = ranges.map(|range| given.slice(2, range.start, range.end)).collect();
    if let [only] = parts[..] { only } else { Tensor::concatenate(&parts, 2) }
}

#[cfg(test)]
mod tests;
