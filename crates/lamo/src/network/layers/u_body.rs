//! The body of a U-Net (Ronneberger et al. 2015), as in Neural-Solver-Library: five levels of double convolutions,
//!
//! x₁ = D(x),  xₗ₊₁ = D(pool xₗ),  y₅ = x₅,  yₗ = D[xₗ | twice yₗ₊₁],  out = W y₁ + b,
//!
//! with widths C, 2C, 4C, 8C, 8C on the way down and 4C, 2C, C, C on the way up. Fields are `[batch, rows, columns, channels]`, in a
//! volume `[batch, rows, columns, layers, channels]`.

use super::{Convolution, GridNorm, GridNormKind, Pointwise, largest_of_neighbours, relu, twice_the_points};
use crate::network::{Mode, Scope};
use lamo_tensor::Tensor;

/// Levels of a body; each but the first halves the extents.
pub const LEVELS: usize = 5;

/// What the extents of an image must be a multiple of.
pub const COARSEST: usize = 1 << (LEVELS - 1);

/// D: twice convolution, norm and max(0, x).
pub struct DoubleConvolution<'g> {
    layers: [(Convolution<'g>, GridNorm<'g>); 2],
}

impl<'g> DoubleConvolution<'g> {
    /// `double_conv` inside `scope`: `inputs` → `middle` → `outputs` channels on a grid of `axes` axes.
    pub fn new(scope: &Scope<'_, 'g>, axes: usize, widths: [usize; 3], norm: GridNormKind) -> Self {
        let (scope, [inputs, middle, outputs]) = (scope.enter("double_conv"), widths);
        let layer = |names: [&str; 2], inputs: usize, outputs: usize| {
            let convolution = Convolution::new(&scope.enter(names[0]), axes, [inputs, outputs]);
            (convolution, GridNorm::new(&scope.enter(names[1]), outputs, norm))
        };
        DoubleConvolution { layers: [layer(["0", "1"], inputs, middle), layer(["3", "4"], middle, outputs)] }
    }

    /// `[batch, …, inputs]` → `[batch, …, outputs]`
    pub fn forward(&self, image: Tensor<'g>, mode: Mode) -> Tensor<'g> {
        let step = |image, (convolution, norm): &(Convolution<'g>, GridNorm<'g>)| {
            relu(norm.forward(convolution.forward(image), mode))
        };
        self.layers.iter().fold(image, step)
    }
}

/// The body.
pub struct UBody<'g> {
    axes: usize,
    /// D of x₁ to x₅.
    down: [DoubleConvolution<'g>; LEVELS],
    /// D of y₄ to y₁.
    up: [DoubleConvolution<'g>; LEVELS - 1],
    leave: Pointwise<'g>,
}

impl<'g> UBody<'g> {
    /// Channels of x₁ to x₅.
    pub fn down_widths(width: usize) -> [usize; LEVELS] {
        [1, 2, 4, 8, 8].map(|factor| factor * width)
    }

    /// Channels of y₁ to y₅.
    pub fn up_widths(width: usize) -> [usize; LEVELS] {
        [1, 1, 2, 4, 8].map(|factor| factor * width)
    }

    /// `inc`, `down1`–`down4`, `up1`–`up4` and `outc` inside `scope`, on a grid of `axes` axes.
    pub fn new(scope: &Scope<'_, 'g>, axes: usize, width: usize, norm: GridNormKind) -> Self {
        let (down, up) = (Self::down_widths(width), Self::up_widths(width));
        let down = std::array::from_fn(|level| match level {
            0 => DoubleConvolution::new(&scope.enter("inc"), axes, [width; 3], norm),
            _ => {
                let scope = scope.enter(&format!("down{level}")).enter("maxpool_conv").enter("1");
                DoubleConvolution::new(&scope, axes, [down[level - 1], down[level], down[level]], norm)
            }
        });
        let up = std::array::from_fn(|step| {
            let (level, scope) = (LEVELS - 2 - step, scope.enter(&format!("up{}", step + 1)).enter("conv"));
            let inputs = 2 * Self::down_widths(width)[level];
            DoubleConvolution::new(&scope, axes, [inputs, inputs / 2, up[level]], norm)
        });
        let leave = Pointwise::new(&scope.enter("outc").enter("conv"), axes, width, width);
        UBody { axes, down, up, leave }
    }

    /// x₁ to x₅ of an image whose extents [`COARSEST`] divides; `after` maps each of them, by its level from 0, before it is
    /// used.
    pub fn descend(
        &self,
        image: Tensor<'g>,
        mode: Mode,
        after: impl Fn(usize, Tensor<'g>) -> Tensor<'g>,
    ) -> [Tensor<'g>; LEVELS] {
        let mut field = image;
        std::array::from_fn(|level| {
            let source = if level == 0 { field } else { largest_of_neighbours(field, self.axes) };
            field = after(level, self.down[level].forward(source, mode));
            field
        })
    }

    /// The image from x₁ to x₅; `after` maps y₄ to y₁, by their levels from 0, before they are used.
    pub fn ascend(
        &self,
        fields: [Tensor<'g>; LEVELS],
        mode: Mode,
        after: impl Fn(usize, Tensor<'g>) -> Tensor<'g>,
    ) -> Tensor<'g> {
        let mut field = fields[LEVELS - 1];
        let channels = field.shape().rank() - 1;
        for (step, up) in self.up.iter().enumerate() {
            let level = LEVELS - 2 - step;
            let joined = Tensor::concatenate(&[fields[level], twice_the_points(field, self.axes)], channels);
            field = after(level, up.forward(joined, mode));
        }
        self.leave.forward(field)
    }

    /// `[batch, …, width]` → `[batch, …, width]`
    pub fn forward(&self, image: Tensor<'g>, mode: Mode) -> Tensor<'g> {
        let same = |_: usize, field: Tensor<'g>| field;
        self.ascend(self.descend(image, mode, same), mode, same)
    }
}
