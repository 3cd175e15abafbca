//! HT-Net (Liu, Xu, Zhang 2022; `HANO` of May 2023): attention without softmax in windows of a hierarchy of planes, then Fourier
//! layers. With t₀ = LN(patches · a) and E channels,
//!
//! down: t ← t + W(LN t), t ← t + mlp(LN t), a_L = t, t = R LN(the four cells of each square);  up: a_{L−1} += S a_L;
//! decode: v ← σ(K v + C v) with K of [`SpectralConvolution`] and a 3 × 3 convolution C, u = Q v.
//!
//! With a single Fourier layer, v ← σ(K v + C v) and u = Q (K v + C v) have the same K and C.
//!
//! The authors' code is for squares, sees no coordinates and has one output. Other planes are ours: zeros below and right make
//! the levels fit and are cut off at the end, coordinates and a time can be further inputs, and there may be several outputs.
//! In training, up to a tenth of the branches are left out at random (stochastic depth).

mod config;
mod recipes;

pub use config::Config;
use config::{Extents, infer, translate};

use super::{GridKind, Row, Settings, Support, read};
use crate::error::Refusal;
use crate::network::layers::{
    ImageConvolution, LayerNorm, Mlp, PlaneConvolution, PlaneOptions, SpectralConvolution, WindowLevels,
};
use crate::network::{Initial, Input, Mode, Model, Scope, Style};
use crate::task::Task;
use lamo_tensor::Tensor;

fn build<'g>(scope: &Scope<'_, 'g>, task: &Task, settings: &Settings) -> Result<Box<dyn Model<'g> + 'g>, Refusal> {
    let config: Config = read("htnet", settings)?;
    let grid = task.grid.plane().expect("htnet supports planes only");
    config.check(task, grid)?;
    let scope = scope.with_style(Style::Small);
    let extents = config.extents(grid);
    let encoder = scope.enter("encoder");
    let coordinates = if config.coordinates { task.space } else { 0 };
    let inputs = task.input_channels() + coordinates + usize::from(task.time.is_input());
    Ok(Box::new(HtNet {
        extents,
        coordinates: config.coordinates,
        patches: PlaneConvolution::new(
            &encoder.enter("proj"),
            [inputs, config.width],
            config.patch,
            PlaneOptions { padding: config.patch_padding, stride: config.stride },
        ),
        norm: LayerNorm::new(&encoder.enter("norm"), config.width),
        levels: WindowLevels::new(&scope.enter("attn"), &config.levels(), extents.tokens),
        decoder: Decoder::new(&scope.enter("decoder"), task, &config),
        scale: config.pointwise_scale.then(|| {
            let state = |name: &str, value| scope.enter("y_norm").state(name, grid, Initial::Constant(value)).value();
            [state("mean", 0.0), state("std", 1.0)]
        }),
        border: config.zero_border.then(|| border_values(task)),
    }))
}

/// Zero in physical units, as the model's outputs are normalised.
fn border_values(task: &Task) -> Vec<f32> {
    match &task.normalisers.outputs {
        Some(normaliser) => {
            let mut zeros = vec![0.0; task.output_channels()];
            normaliser.encode(&mut zeros);
            zeros
        }
        None => vec![0.0; task.output_channels()],
    }
}

/// The model.
struct HtNet<'g> {
    extents: Extents,
    coordinates: bool,
    patches: PlaneConvolution<'g>,
    norm: LayerNorm<'g>,
    levels: WindowLevels<'g>,
    decoder: Decoder<'g>,
    /// Mean and deviation at each point.
    scale: Option<[Tensor<'g>; 2]>,
    /// Values of the outputs on the border.
    border: Option<Vec<f32>>,
}

impl<'g> Model<'g> for HtNet<'g> {
    fn forward(&self, input: &Input<'g>, mode: Mode) -> Tensor<'g> {
        let image = self.image(input);
        let [batch, ..] = image.dims::<4>();
        let fine = self.levels.forward(self.norm.forward(self.patches.forward(image)), mode);
        let [rows, columns] = self.extents.grid;
        let mut out = self.decoder.forward(fine, self.extents.grid); // [batch, rows, columns, outputs]
        if let Some([mean, deviation]) = self.scale {
            let at = |values: Tensor<'g>| values.reshape([rows, columns, 1]);
            out = out * (at(deviation) + 1e-5) + at(mean);
        }
        if let Some(values) = &self.border {
            out = with_border(out, values);
        }
        let [.., outputs] = out.dims::<4>();
        out.reshape([batch, rows * columns, outputs])
    }
}

impl<'g> HtNet<'g> {
    /// `[batch, padded rows, padded columns, inputs]`
    fn image(&self, input: &Input<'g>) -> Tensor<'g> {
        let [batch, points, _] = input.positions.dims();
        let coordinates = self.coordinates.then_some(input.positions);
        let time = input.time.map(|time| time.reshape([batch, 1, 1]).broadcast_to([batch, points, 1]));
        let channels: Vec<_> = [coordinates, input.functions, time].into_iter().flatten().collect();
        let channels = Tensor::concatenate(&channels, 2);
        let ([_, _, count], Extents { grid, padded, .. }) = (channels.dims(), self.extents);
        let image = channels.reshape([batch, grid[0], grid[1], count]);
        image.pad(1, 0, padded[0] - grid[0]).pad(2, 0, padded[1] - grid[1])
    }
}

/// `[batch, rows, columns, outputs]` with given values on the outermost points.
fn with_border<'g>(image: Tensor<'g>, values: &[f32]) -> Tensor<'g> {
    let ([_, rows, columns, outputs], graph) = (image.dims(), image.graph());
    let inside = |place: usize, extent: usize| place > 0 && place + 1 < extent;
    let inner = |point: usize| f32::from(inside(point / columns, rows) && inside(point % columns, columns));
    let mask: Vec<f32> = (0..rows * columns).map(inner).collect();
    graph.constant(&mask, [rows, columns, 1]).select(image, graph.constant(values, [outputs]))
}

/// K v + C v
type FourierLayer<'g> = (ImageConvolution<'g>, PlaneConvolution<'g>);

fn applied<'g>((far, near): &FourierLayer<'g>, image: Tensor<'g>) -> Tensor<'g> {
    far.forward(image) + near.forward(image)
}

/// Fourier layers and the last map.
struct Decoder<'g> {
    padding: usize,
    layers: Vec<FourierLayer<'g>>,
    mlp: Mlp<'g>,
}

impl<'g> Decoder<'g> {
    fn new(scope: &Scope<'_, 'g>, task: &Task, config: &Config) -> Self {
        let Config { width, modes, layers, hidden, padding, .. } = *config;
        let (channels, count) = (width as f64, modes as f64);
        let gain = (2.0 * channels / 16.0).sqrt() / (channels * channels);
        let bound = gain * (6.0 / (2.0 * channels * 2.0 * count * count)).sqrt();
        let spectral = |layer: usize| {
            let scope = scope.enter("Spectral_Conv_List").enter(&layer.to_string());
            let uniform = Initial::Uniform { low: -bound, high: bound };
            let weight = |name: &str| scope.parameter(name, [width, width, modes, modes, 2], uniform);
            ImageConvolution::Plane(SpectralConvolution::of(["fourier_weight1", "fourier_weight2"].map(weight)))
        };
        let spectral: Vec<_> = (0..layers).map(spectral).collect();
        let near = PlaneOptions { padding: 1, stride: 1 };
        let near = |layer: usize| {
            PlaneConvolution::new(&scope.enter("Conv2d_list").enter(&layer.to_string()), [width; 2], 3, near)
        };
        let layers = spectral.into_iter().zip((0..layers).map(near)).collect();
        let mlp = Mlp::named(&scope.enter("mlp.net"), ["0", "3"], [width, hidden, task.output_channels()]);
        Decoder { padding, layers, mlp }
    }

    /// `[batch, token rows, token columns, width]` → `[batch, rows, columns, outputs]`
    fn forward(&self, image: Tensor<'g>, [rows, columns]: [usize; 2]) -> Tensor<'g> {
        let image = image.pad(1, 0, self.padding).pad(2, 0, self.padding);
        let last = self.layers.len() - 1;
        // The authors' code has a first and a last layer in any case: a single one is both.
        let inner = self.layers[..last.max(1)].iter().fold(image, |image, layer| applied(layer, image).gelu());
        let image = applied(&self.layers[last], inner);
        self.mlp.forward(image.slice(1, 0, rows).slice(2, 0, columns))
    }
}

pub(super) const ROW: Row = Row {
    name: "htnet",
    summary: "HT-Net (2022): attention in windows of a hierarchy of planes, then Fourier layers",
    paper: "Liu, Xu, Zhang: HT-Net: Hierarchical Transformer based Operator Learning Model for Multiscale PDEs, 2022, \
            arXiv:2210.10890",
    supports: Support { grids: &[GridKind::Plane], time: true },
    ragged: false,
    build,
    defaults: super::defaults::<Config>,
    moved: |_, _| None,
    embedding: |_, _| None,
    recipe: recipes::recipe,
    variants: &[],
    quick: recipes::quick,
    own: recipes::own,
    tiny: recipes::tiny,
    infer,
    translate: &[("htnet", translate)],
};
