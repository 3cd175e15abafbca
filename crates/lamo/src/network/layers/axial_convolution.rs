//! Σ_d F_d⁻¹(R_d · F_d v): a spectral convolution along each axis d of a grid by itself, with the lowest frequencies
//! 0 ≤ k < modes (Tran et al. 2023, Eq. 8). The grid is one period of the waves.

use super::LineConvolution;
use crate::network::{Initial, Scope};
use lamo_tensor::Tensor;

/// The sum over the axes of a line or a plane.
pub struct AxialConvolution<'g> {
    /// Along the rows' index, which a line does not have.
    down: Option<LineConvolution<'g>>,
    along: LineConvolution<'g>,
}

impl<'g> AxialConvolution<'g> {
    /// `rows` on a plane and `columns`, each `[width, width, modes, re and im]`, inside `scope`. A line is a plane of one row.
    pub fn new(scope: &Scope<'_, 'g>, [rows, _]: [usize; 2], width: usize, modes: usize) -> Self {
        let initial = Initial::fan_in(width);
        let weight = |name| LineConvolution::of(scope.parameter(name, [width, width, modes, 2], initial));
        AxialConvolution { down: (rows > 1).then(|| weight("rows")), along: weight("columns") }
    }

    /// `[batch, rows, columns, width]` → the same
    pub fn forward(&self, field: Tensor<'g>) -> Tensor<'g> {
        let [batch, rows, columns, width] = field.dims();
        let by_row = field.reshape([batch * rows, columns, 1, width]);
        let along = self.along.forward_across(by_row).reshape(field.shape());
        self.down.as_ref().map_or(along, |down| along + down.forward_across(field))
    }

    /// Most frequencies that a grid carries along each of its axes.
    pub fn most_modes(extents: [usize; 2]) -> usize {
        extents.iter().filter(|&&extent| extent > 1).map(|extent| extent / 2 + 1).min().unwrap_or(1)
    }
}
