//! The shell of the grid models of Neural-Solver-Library: lifted points become an image, and the image of the body becomes
//! points again.
//!
//! A field is `[batch, rows, columns, channels]`, as convolutions read it, in a volume `[batch, rows, columns, layers, channels]`; a
//! line is a plane of one row. A grid is padded with zeros behind its last point along each axis, and cropped to its size afterwards.
//! A cloud is projected to a plane.

use super::mask::real_only;
use super::{Lifting, LiftingShape, Projection};
use crate::network::{Activation, Input, Scope};
use crate::task::Task;
use lamo_geometry::Grid;
use lamo_tensor::Tensor;

/// Sizes of a shell.
#[derive(Clone, Copy, Debug)]
pub struct ShellShape {
    /// Hidden channels of the lifting, twice those of the time.
    pub hidden: usize,
    /// Channels of the lifted features and of the image.
    pub width: usize,
    /// The activation of the lifting.
    pub activation: Activation,
    /// Side of the lattice of unified positions, 0 for plain positions.
    pub unified_positions: usize,
    /// Gives the positions a second time, as input functions, as some scripts of the library do.
    pub positions_twice: bool,
    /// Extents of the image as those of a box: a plane has one row before its own two axes, a line two.
    pub image: [usize; 3],
    /// Frequencies of the projection of a cloud, along each axis.
    pub modes: usize,
    /// Width of the learned coordinates of a cloud.
    pub coordinate_width: usize,
}

/// From points to the image and back.
pub struct Shell<'g> {
    grid: Grid,
    image: [usize; 3],
    lifting: Lifting<'g>,
    /// For clouds.
    projection: Option<Projection<'g>>,
}

impl<'g> Shell<'g> {
    /// `preprocess`, `time_fc` and, for a cloud, the projection inside `scope`.
    pub fn new(scope: &Scope<'_, 'g>, task: &Task, shape: ShellShape) -> Self {
        let ShellShape {
            hidden,
            width,
            activation,
            unified_positions,
            positions_twice,
            image,
            modes,
            coordinate_width,
        } = shape;
        let time_hidden = hidden / 2;
        let lifted =
            LiftingShape { hidden, time_hidden, unified_positions, positions_twice, ..LiftingShape::usual(width) };
        let lifting = Lifting::new(&scope.with_activation(activation), task, lifted);
        let projection = matches!(task.grid, Grid::Cloud { .. })
            .then(|| Projection::new(scope, width, modes, [image[1], image[2]], coordinate_width));
        Shell { grid: task.grid, image, lifting, projection }
    }

    /// `[batch, points, width]` of the image that `body` returns, which has the extents of the image it is given.
    pub fn forward(&self, input: &Input<'g>, body: impl FnOnce(Tensor<'g>) -> Tensor<'g>) -> Tensor<'g> {
        let features = self.lifting.forward(input);
        let ([batch, points, width], [rows, columns, layers]) = (features.dims(), self.image);
        if let Some(projection) = &self.projection {
            let waves = projection.waves(input.positions);
            let real = real_only(features, input.mask);
            return projection.leave(waves, body(projection.enter(waves, real)));
        }
        if let Grid::Volume { rows: high, columns: wide, layers: deep } = self.grid {
            let image = features.reshape([batch, high, wide, deep, width]);
            let image = image.pad(1, 0, rows - high).pad(2, 0, columns - wide).pad(3, 0, layers - deep);
            let cropped = body(image).slice(1, 0, high).slice(2, 0, wide).slice(3, 0, deep);
            return cropped.reshape([batch, points, width]);
        }
        let [height, length] = plane(self.grid);
        let image =
            features.reshape([batch, height, length, width]).pad(1, 0, columns - height).pad(2, 0, layers - length);
        body(image).slice(1, 0, height).slice(2, 0, length).reshape([batch, points, width])
    }
}

/// Rows and columns of a grid without layers; a line and a cloud are one row.
fn plane(grid: Grid) -> [usize; 2] {
    match grid {
        Grid::Plane { rows, columns } => [rows, columns],
        Grid::Line { points } | Grid::Cloud { points } => [1, points],
        Grid::Volume { .. } => unreachable!("a volume has layers"),
    }
}
