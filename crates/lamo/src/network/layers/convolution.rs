//! Convolutions over neighbours along each axis, with zeros around the image, and max(0, x).

use super::convolve_volume;
use crate::network::{Initial, Scope};
use lamo_tensor::{ConvolutionOptions, Tensor};

/// A convolution without a bias: 3 taps along each axis.
pub struct Convolution<'g> {
    /// `[outputs, inputs, 3, 3]`, on a line `[outputs, inputs, 3]`, in a volume `[outputs, inputs, 3, 3, 3]`
    weight: Tensor<'g>,
}

impl<'g> Convolution<'g> {
    /// `inputs` channels to `outputs` on a grid of `axes` axes.
    pub fn new(scope: &Scope<'_, 'g>, axes: usize, [inputs, outputs]: [usize; 2]) -> Self {
        let initial = Initial::fan_in(inputs * 3_usize.pow(axes as u32));
        Convolution { weight: scope.parameter("weight", [vec![outputs, inputs], vec![3; axes]].concat(), initial) }
    }

    /// `[batch, rows, columns, inputs]` → `[batch, rows, columns, outputs]`, in a volume with layers behind the columns
    pub fn forward(&self, image: Tensor<'g>) -> Tensor<'g> {
        let shape = self.weight.shape();
        if shape.rank() == 5 {
            return convolve_volume(image, self.weight, 1);
        }
        let (line, [outputs, inputs]) = (shape.rank() == 3, [shape.dims()[0], shape.dims()[1]]);
        let (kernel, around) = if line { ([1, 3], [0, 0]) } else { ([3, 3], [1, 1]) };
        let weight = self.weight.reshape([outputs, inputs, kernel[0], kernel[1]]);
        image.convolve(weight, ConvolutionOptions { padding: [around, [1, 1]], ..ConvolutionOptions::default() })
    }
}

/// How the taps of a [`PlaneConvolution`] lie on the plane.
#[derive(Clone, Copy, Debug)]
pub struct PlaneOptions {
    /// Zeros around the plane.
    pub padding: usize,
    /// Points from one output to the next.
    pub stride: usize,
}

/// A convolution over a plane with a bias.
pub struct PlaneConvolution<'g> {
    /// `[outputs, inputs, side, side]`
    weight: Tensor<'g>,
    /// `[outputs]`
    bias: Tensor<'g>,
    options: PlaneOptions,
}

impl<'g> PlaneConvolution<'g> {
    /// `inputs` channels to `outputs` by `side` × `side` taps.
    pub fn new(scope: &Scope<'_, 'g>, [inputs, outputs]: [usize; 2], side: usize, options: PlaneOptions) -> Self {
        let initial = Initial::fan_in(inputs * side * side);
        let weight = scope.parameter("weight", [outputs, inputs, side, side], initial);
        PlaneConvolution { weight, bias: scope.parameter("bias", [outputs], initial), options }
    }

    /// `[batch, rows, columns, inputs]` → `[batch, rows, columns, outputs]`, with a stride fewer rows and columns
    pub fn forward(&self, image: Tensor<'g>) -> Tensor<'g> {
        let PlaneOptions { padding, stride } = self.options;
        let options = ConvolutionOptions { padding: [[padding; 2]; 2], stride: [stride; 2], groups: 1 };
        image.convolve(self.weight, options) + self.bias
    }
}
