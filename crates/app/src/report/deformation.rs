//! A body that deforms: drawn where its points have moved to.

use super::names::unit;
use super::scene::{Output, SampleView, State};
use crate::plot::{Layout, Skin};
use lamo_geometry::Grid;
use std::rc::Rc;

impl SampleView<'_> {
    /// The deformed body at all times, coloured by the length of the displacement, and the distance of each point from its
    /// true position.
    pub(super) fn deformation(&self) -> Output {
        let truth = self.samples.target_of(self.index);
        let triangles = if self.drawn.corners.is_empty() { self.drawn.triangles.clone() } else { Vec::new() };
        let skin = Rc::new(Skin { triangles, ..Skin::default() });
        let deformed = |values: &[f32], time: usize| {
            let [x, y, right, up] = [0, 1, 2, 3].map(|channel| self.channel(values, time, channel));
            let positions: Vec<[f32; 2]> = x.into_iter().zip(y).map(|(x, y)| [x, y]).collect();
            let layout = match self.samples.grid {
                Grid::Plane { rows, columns } => Layout::Mesh([rows, columns], positions),
                _ if !skin.triangles.is_empty() => Layout::Triangles(positions, skin.clone()),
                Grid::Line { .. } | Grid::Volume { .. } | Grid::Cloud { .. } => Layout::Cloud(positions, Vec::new()),
            };
            let values = right.iter().zip(&up).map(|(right, up)| right.hypot(*up)).collect();
            State { layout: Rc::new(layout), values }
        };
        let states =
            |values: &[f32]| (0..self.samples.times).map(|time| deformed(values, time)).collect::<Vec<State>>();
        let (truth, prediction) = (states(truth), states(self.prediction));
        let distance = |(truth, prediction): (&State, &State)| {
            let [true_positions, positions] =
                [truth, prediction].map(|state| state.layout.positions().unwrap_or_default());
            let apart = |(one, other): (&[f32; 2], &[f32; 2])| (one[0] - other[0]).hypot(one[1] - other[1]);
            let values = true_positions.iter().zip(positions).map(apart).collect();
            State { layout: truth.layout.clone(), values }
        };
        Output {
            group: 1,
            axes: None,
            name: "displacement".into(),
            unit: unit(&self.task.outputs[0].unit),
            times: (0..self.samples.times).map(|time| self.snapshot_name(self.past() + time)).collect(),
            past: Vec::new(),
            error: truth.iter().zip(&prediction).map(distance).collect(),
            truth,
            prediction,
            is_distance: true,
        }
    }
}
