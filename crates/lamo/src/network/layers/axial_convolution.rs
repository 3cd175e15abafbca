//! Σ_d F_d⁻¹(R_d · F_d v): a spectral convolution along each axis d of a grid by itself, with the lowest frequencies
//! 0 ≤ k < modes (Tran et al. 2023, Eq. 8). The grid is one period of the waves.

use super::LineConvolution;
use crate::network::{Initial, Scope};
use lamo_tensor::Tensor;

/// The sum over the axes of a line, a plane or a volume.
pub struct AxialConvolution<'g> {
    /// Along each axis of a box that the grid has.
    along: [Option<LineConvolution<'g>>; 3],
}

impl<'g> AxialConvolution<'g> {
    /// `rows` on a plane and `columns`, in a volume also `layers`, each `[width, width, modes, re and im]`, inside `scope`. A line is
    /// a plane of one row, a plane a box `[1, rows, columns]`.
    pub fn new(scope: &Scope<'_, 'g>, extents: [usize; 3], width: usize, modes: usize) -> Self {
        let initial = Initial::fan_in(width);
        let weight = |name| LineConvolution::of(scope.parameter(name, [width, width, modes, 2], initial));
        let along = match extents {
            [1, 1, _] => [None, None, Some(weight("columns"))],
            [1, _, _] => [None, Some(weight("rows")), Some(weight("columns"))],
            _ => [Some(weight("rows")), Some(weight("columns")), Some(weight("layers"))],
        };
        AxialConvolution { along }
    }

    /// With a convolution along each axis of a volume.
    pub fn of_volume(along: [LineConvolution<'g>; 3]) -> Self {
        AxialConvolution { along: along.map(Some) }
    }

    /// `[batch, …extents, width]` → the same
    pub fn forward(&self, field: Tensor<'g>) -> Tensor<'g> {
        let [batch, rows, columns, layers, width] = field.dims();
        let extents = [rows, columns, layers];
        let along = |axis: usize, line: &LineConvolution<'g>| {
            let before = batch * extents[..axis].iter().product::<usize>();
            let lanes: usize = extents[axis + 1..].iter().product();
            line.forward_across(field.reshape([before, extents[axis], lanes, width])).reshape(field.shape())
        };
        let parts = self.along.iter().enumerate().rev().filter_map(|(axis, line)| Some(along(axis, line.as_ref()?)));
        parts.reduce(|sum, part| sum + part).expect("a grid has an axis")
    }

    /// Most frequencies that a grid carries along each of its axes.
    pub fn most_modes(extents: [usize; 3]) -> usize {
        extents.iter().filter(|&&extent| extent > 1).map(|extent| extent / 2 + 1).min().unwrap_or(1)
    }
}
