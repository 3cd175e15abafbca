//! Spectral convolutions of images `[batch, rows, columns, width]` or, in a volume, `[batch, rows, columns, layers, width]`, the layout of the
//! other convolutions.
//!
//! On a plane the transforms along rows and columns are products with the image where it lies; only the few frequencies are moved to the
//! front, where [`SpectralConvolution`] mixes them.

use super::spectral::{frequencies, images, inverse_sums, waves};
use super::{LineConvolution, SpectralConvolution, VolumeConvolution};
use crate::network::Scope;
use lamo_tensor::Tensor;

/// F⁻¹(R · F v) on an image, which is one period of the waves.
pub enum ImageConvolution<'g> {
    /// On a single row.
    Line(LineConvolution<'g>),
    /// On rows and columns.
    Plane(SpectralConvolution<'g>),
    /// On rows, columns and layers.
    Volume(VolumeConvolution<'g>),
}

impl<'g> ImageConvolution<'g> {
    /// `inputs` and `outputs` channels on a grid of `axes` axes; 0 ≤ l < modes along the last axis, −modes ≤ k < modes along the others.
    pub fn new(scope: &Scope<'_, 'g>, axes: usize, widths: [usize; 2], modes: usize) -> Self {
        match axes {
            1 => ImageConvolution::Line(LineConvolution::new(scope, widths, modes)),
            3 => ImageConvolution::Volume(VolumeConvolution::new(scope, widths, [modes; 3])),
            _ => ImageConvolution::Plane(SpectralConvolution::new(scope, widths, [modes; 2])),
        }
    }

    /// `[batch, rows, columns, inputs]` → `[batch, rows, columns, outputs]`, in a volume with layers behind the columns
    pub fn forward(&self, image: Tensor<'g>) -> Tensor<'g> {
        match self {
            ImageConvolution::Line(line) => {
                let [batch, _, columns, width] = image.dims();
                let mixed = line.forward_across(image.reshape([batch, columns, 1, width]));
                let [_, _, _, outputs] = mixed.dims();
                mixed.reshape([batch, 1, columns, outputs])
            }
            ImageConvolution::Plane(plane) => {
                let [_, rows, columns, _] = image.dims();
                let spectrum = plane.mix(analyse_image(image, plane.modes()), rows);
                synthesise_image(spectrum, [rows, columns])
            }
            ImageConvolution::Volume(volume) => {
                let [_, rows, columns, layers, _] = image.dims();
                let extents = [rows, columns, layers];
                volume.forward_padded(image.permute(&[1, 2, 3, 0, 4]), extents, extents).permute(&[3, 0, 1, 2, 4])
            }
        }
    }
}

/// [`analyse`](super::analyse) of an image: `[batch, rows, columns, width]` → `[k, l, 2 batch, width]`.
pub fn analyse_image<'g>(image: Tensor<'g>, [row_modes, modes]: [usize; 2]) -> Tensor<'g> {
    let ([batch, rows, columns, width], graph) = (image.dims(), image.graph());
    let along_rows = 2 * (row_modes + 1);
    let row_waves = waves(graph, row_modes + 1, rows, rows, |_| 1.0).broadcast_to([batch, along_rows, rows]);
    let sums = row_waves.matmul(image.reshape([batch, rows, columns * width]));
    let waves = waves(graph, modes, columns, columns, |_| 1.0).broadcast_to([batch * along_rows, 2 * modes, columns]);
    let sums = waves.matmul(sums.reshape([batch * along_rows, columns, width]));
    frequencies(sums.reshape([batch, along_rows, 2 * modes, width]).permute(&[1, 2, 0, 3]))
}

/// [`synthesise`](super::synthesise) of an image: `[k, l, 2 batch, width]` → `[batch, rows, columns, width]`.
pub fn synthesise_image<'g>(spectrum: Tensor<'g>, [rows, columns]: [usize; 2]) -> Tensor<'g> {
    let ([frequencies, modes, parts, width], graph) = (spectrum.dims(), spectrum.graph());
    let (row_modes, batch) = (frequencies / 2, parts / 2);
    let along_rows = 2 * (row_modes + 1);
    let sums = inverse_sums(spectrum).permute(&[2, 0, 1, 3]).reshape([batch * along_rows, 2 * modes, width]);
    let waves_back = waves(graph, modes, columns, columns, |l| images(l, columns) / columns as f64).transpose();
    let sums = waves_back.broadcast_to([batch * along_rows, columns, 2 * modes]).matmul(sums);
    let row_waves = waves(graph, row_modes + 1, rows, rows, |_| 1.0 / rows as f64).transpose();
    let row_waves = row_waves.broadcast_to([batch, rows, along_rows]);
    row_waves.matmul(sums.reshape([batch, along_rows, columns * width])).reshape([batch, rows, columns, width])
}

#[cfg(test)]
mod tests {
    use super::super::{analyse, synthesise};
    use super::*;
    use lamo_tensor::Graph;
    use lamo_tensor::reference::{self, Bindings};

    /// The same sums in another order.
    #[test]
    fn the_transforms_of_an_image_are_those_of_a_field_with_the_batch_inside() {
        let graph = Graph::new();
        let image = graph.input("image", [3, 6, 5, 2]);
        let (modes, extents) = ([2, 3], [6, 5]);
        let spectrum = analyse(image.permute(&[1, 2, 0, 3]), modes, extents);
        let field = synthesise(spectrum, extents, extents).permute(&[2, 0, 1, 3]);
        let values: Vec<f64> = (0..180).map(|n| (1.0 + 12.9898 * f64::from(n)).sin()).collect();
        let pairs = [(analyse_image(image, modes), spectrum), (synthesise_image(spectrum, extents), field)];
        for (found, expected) in pairs {
            let bindings = Bindings::from([("image", values.clone())]);
            let [found, expected] =
                [found, expected].map(|y| reference::evaluate(&graph, &bindings, &[y])[0].values.clone());
            assert!(found.iter().zip(&expected).all(|(found, expected)| (found - expected).abs() < 1e-12));
        }
    }
}
