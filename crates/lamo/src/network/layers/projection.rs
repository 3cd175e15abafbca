//! The projection of Geo-FNO (Li et al. 2023): a cloud becomes an image by a Fourier transform at its points, and back.
//!
//! ξ = φ(x) are learned coordinates of the points. With θₖₗ = 2π(k ξ₁ + l ξ₂),
//!
//! F(k, l) = Σₙ hₙ e^{−iθₖₗ(n)},  image = irfft2(R F),  U = R′ rfft2(image′),  outₙ = Re Σ V(k, l) e^{iθₖₗ(n)},
//!
//! for −m ≤ k < m and 0 ≤ l < m, without a factor 1/N. The frequencies l < 0 of the way back are the conjugates of those
//! with −1 − k in place of −k, as in the authors' code, so that V(k, l) = U(k, l) + U(k − 1, l) for l > 0, −m ≤ k ≤ m.

use super::{Linear, SpectralConvolution, analyse_image, synthesise_image};
use crate::network::Scope;
use lamo_tensor::{Graph, Tensor};
use std::f64::consts::{PI, TAU};

/// The learned coordinates φ.
///
/// ξ = x + x ∘ u(x): a network of the position, its angle and its distance from a point near the origin, and sines of them.
struct Coordinates<'g> {
    /// Width over 4.
    frequencies: usize,
    lift: Linear<'g>,
    join: Linear<'g>,
    hidden: [Linear<'g>; 3],
    leave: Linear<'g>,
}

impl<'g> Coordinates<'g> {
    /// The place that angles and distances are measured from.
    const CENTRE: f64 = 1e-4;
    /// Inputs of the map `fc_code`, which the library declares and never uses.
    const CODE: usize = 42;

    fn new(scope: &Scope<'_, 'g>, width: usize) -> Self {
        let scope = scope.enter("iphi");
        let map = |name: &str, inputs: usize, outputs: usize| Linear::new(&scope.enter(name), inputs, outputs);
        let lift = map("fc0", 4, width);
        let _ = map("fc_code", Self::CODE, width);
        Coordinates {
            frequencies: width / 4,
            lift,
            join: map("fc_no_code", 3 * width, 4 * width),
            hidden: ["fc1", "fc2", "fc3"].map(|name| map(name, 4 * width, 4 * width)),
            leave: map("fc4", 4 * width, 2),
        }
    }

    /// x `[batch, points, 2]` → ξ `[batch, points, 2]`
    fn forward(&self, x: Tensor<'g>) -> Tensor<'g> {
        let [batch, points, _] = x.dims();
        let [along, across] = (x - Self::CENTRE).split(2, [1, 1]);
        let (angle, radius) = (across.arctangent(along), (along.square() + across.square()).sqrt());
        let features = Tensor::concatenate(&[x, angle, radius], 2); // d, [batch, points, 4]
        // The powers of two are exact; π is a number of the graph, which a double evaluation does not round.
        let powers: Vec<f32> = (0..self.frequencies).map(|k| 2_f32.powi(k as i32)).collect();
        let phases = features.reshape([batch, points, 4, 1]) * x.graph().constant(&powers, [self.frequencies]) * PI;
        let phases = phases.reshape([batch, points, 4 * self.frequencies]);
        let joined = Tensor::concatenate(&[self.lift.forward(features), phases.sin(), phases.cos()], 2);
        let hidden = self.hidden.iter().fold(self.join.forward(joined), |z, map| map.forward(z).tanh());
        x + x * self.leave.forward(hidden)
    }
}

/// The way from a cloud to an image and back.
pub struct Projection<'g> {
    /// m
    modes: usize,
    /// Rows and columns of the image.
    extents: [usize; 2],
    /// R
    entering: SpectralConvolution<'g>,
    /// R′
    leaving: SpectralConvolution<'g>,
    coordinates: Coordinates<'g>,
}

/// cos θ and sin θ at the points of a cloud: `[batch, points, 2 (2m + 1) m]`.
#[derive(Clone, Copy)]
pub struct Waves<'g>(Tensor<'g>);

impl<'g> Projection<'g> {
    /// `fftproject_in`, `fftproject_out` and `iphi` inside `scope`; the hidden channels of φ are a multiple of
    /// `coordinate_width`, which 4 divides.
    pub fn new(
        scope: &Scope<'_, 'g>,
        width: usize,
        modes: usize,
        extents: [usize; 2],
        coordinate_width: usize,
    ) -> Self {
        let weights = |name: &str| SpectralConvolution::new(&scope.enter(name), [width; 2], [modes; 2]);
        Projection {
            modes,
            extents,
            entering: weights("fftproject_in"),
            leaving: weights("fftproject_out"),
            coordinates: Coordinates::new(scope, coordinate_width),
        }
    }

    /// e^{iθ} at the points x `[batch, points, 2]`.
    pub fn waves(&self, positions: Tensor<'g>) -> Waves<'g> {
        let ([batch, points, _], modes) = (positions.dims(), self.modes);
        let [first, second] = self.coordinates.forward(positions).split(2, [1, 1]);
        let numbers = |values: Vec<f32>, shape: [usize; 2]| positions.graph().constant(&values, shape);
        let rows = numbers((0..=2 * modes).map(|k| k as f32 - modes as f32).collect(), [2 * modes + 1, 1]);
        let columns = numbers((0..modes).map(|l| l as f32).collect(), [1, modes]);
        let turns = first.reshape([batch, points, 1, 1]) * rows + second.reshape([batch, points, 1, 1]) * columns;
        let phases = (turns * TAU).reshape([batch, points, (2 * modes + 1) * modes]);
        Waves(Tensor::concatenate(&[phases.cos(), phases.sin()], 2))
    }

    /// `[batch, points, width]` → `[batch, rows, columns, width]`
    pub fn enter(&self, Waves(waves): Waves<'g>, features: Tensor<'g>) -> Tensor<'g> {
        let ([batch, _, width], modes) = (features.dims(), self.modes);
        let sums = waves.swap(1, 2).matmul(features).reshape([batch, 2, 2 * modes + 1, modes, width]);
        let sums = sums.permute(&[2, 3, 1, 0, 4]) * signs(features.graph()); // [k, l, re and im, batch, width]
        let halves = [sums.slice(0, modes, 2 * modes), sums.slice(0, 0, modes)]; // k ≥ 0, then k < 0
        let spectrum = Tensor::concatenate(&halves, 0).reshape([2 * modes, modes, 2 * batch, width]);
        synthesise_image(self.entering.mix(spectrum, self.extents[0]), self.extents)
    }

    /// `[batch, rows, columns, width]` → `[batch, points, width]`
    pub fn leave(&self, Waves(waves): Waves<'g>, image: Tensor<'g>) -> Tensor<'g> {
        let ([batch, _, _, width], modes) = (image.dims(), self.modes);
        let spectrum = analyse_image(image, [modes; 2]);
        // Both halves keep all their rows here, also where the rows of the image are fewer.
        let [from_zero, below] = self.leaving.mix(spectrum, usize::MAX).split(0, [modes; 2]);
        let sorted = Tensor::concatenate(&[below, from_zero], 0); // U, −m ≤ k < m
        let inner: Vec<f32> = (0..modes).map(|l| f32::from(l > 0)).collect();
        let inner = image.graph().constant(&inner, [modes, 1, 1]);
        let sums = sorted.pad(0, 0, 1) + sorted.pad(0, 1, 0) * inner; // V, −m ≤ k ≤ m
        let sums = sums.reshape([2 * modes + 1, modes, 2, batch, width]) * signs(image.graph());
        let sums = sums.permute(&[3, 2, 0, 1, 4]).reshape([batch, 2 * (2 * modes + 1) * modes, width]);
        waves.matmul(sums) // Re V cos θ − Im V sin θ
    }
}

/// 1 for cosines and −1 for sines, `[re and im, batch, width]`.
fn signs(graph: &Graph) -> Tensor<'_> {
    graph.constant(&[1.0, -1.0], [2, 1, 1])
}
