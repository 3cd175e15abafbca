//! AdamW with a global-norm clip, as operators of the training program (Loshchilov & Hutter 2019, in PyTorch's form):
//!
//! g ← g · min(1, clip / (‖g‖ + 10⁻⁶)),  θ ← θ (1 − η λ),
//! m ← m + (1 − β₁)(g − m),  v ← β₂ v + (1 − β₂) g²,  θ ← θ − η/(1 − β₁ᵗ) · m / (√v/√(1 − β₂ᵗ) + ε).
//!
//! Adam with its coupled decay has g ← g + λ θ after the clip in place of θ ← θ (1 − η λ).
//!
//! Everything acts on the parameter vector θ at once, so an update is one pass over memory. Parameters that the loss
//! does not depend on stay unchanged: no decay, no moments.

use crate::training::schedule::Pace;
use lamo_tensor::{DeviceError, Graph, Program, Tensor};
use std::ops::Range;

/// AdamW's constants.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamW {
    /// β₂, the decay of the running mean of squares.
    pub beta2: f64,
    /// ε.
    pub epsilon: f64,
    /// λ; applies to every parameter, norms and biases included.
    pub weight_decay: f64,
    /// Largest norm of the whole gradient.
    pub clip: Option<f64>,
    /// Adds the decay to the gradient, as Adam does.
    pub coupled: bool,
}

impl Default for AdamW {
    fn default() -> Self {
        AdamW { beta2: 0.999, epsilon: 1e-8, weight_decay: 1e-5, clip: Some(0.1), coupled: false }
    }
}

/// State: running mean m of the gradient.
pub const MEAN: &str = "adamw.mean";
/// State: running mean v of its square.
pub const SQUARE: &str = "adamw.square";
/// Input: the factors that [`AdamW::pace`] computes for the step.
const CONTROLS: &str = "adamw.controls";
/// Output: ‖g‖ before clipping.
pub const GRADIENT_NORM: &str = "gradient norm";

impl AdamW {
    /// Adds the gradient of `loss` and the update of all its parameters to the program.
    pub fn minimise<'g>(&self, graph: &'g Graph, loss: Tensor<'g>) {
        let theta = graph.parameters();
        let gradient = graph.gradient(loss, &[theta])[0].expect("the loss depends on no parameter");
        let used = ranges(graph, loss);
        self.update(graph, theta, gradient, &used);
    }

    /// Updates the sections `used` of θ by `gradient`.
    fn update<'g>(&self, graph: &'g Graph, theta: Tensor<'g>, gradient: Tensor<'g>, used: &[Range<usize>]) {
        let length = theta.shape().count();
        let (mean, square) = (graph.state(MEAN, [length]), graph.state(SQUARE, [length]));
        let controls = graph.input(CONTROLS, [4]);
        let [keep, inertia, size, correction] = controls.split(0, [1; 4]);
        let norm = gradient.square().sum_all().sqrt();
        graph.output(GRADIENT_NORM, norm);
        let scale = self.clip.map(|clip| (clip / (norm + 1e-6)).minimum(graph.fill(1.0, [])));
        for range in used {
            let part = |tensor: Tensor<'g>| tensor.slice(0, range.start, range.end);
            let g = scale.map_or(part(gradient), |scale| part(gradient) * scale);
            let (p, m, v) = (part(theta), part(mean), part(square));
            let g = if self.coupled { g + p * self.weight_decay } else { g };
            let new_m = m + inertia * (g - m);
            let new_v = v * self.beta2 + g * g * (1.0 - self.beta2);
            let step = size * new_m / (new_v.sqrt() / correction + self.epsilon);
            graph.assign(p, p * keep - step);
            graph.assign(m, new_m);
            graph.assign(v, new_v);
        }
    }

    /// Tells the program the pace of its next step; `step` counts from 0.
    pub fn pace(&self, program: &mut Program, step: usize, pace: Pace) -> Result<(), DeviceError> {
        let t = (step + 1) as f64;
        let keep = if self.coupled { 1.0 } else { 1.0 - pace.rate * self.weight_decay };
        let size = pace.rate / (1.0 - pace.beta1.powf(t));
        let correction = (1.0 - self.beta2.powf(t)).sqrt();
        let controls = [keep, 1.0 - pace.beta1, size, correction];
        program.try_write(CONTROLS, &controls.map(|value| value as f32))
    }
}

/// Neighbouring used sections, merged.
fn ranges(graph: &Graph, loss: Tensor<'_>) -> Vec<Range<usize>> {
    let mut merged: Vec<Range<usize>> = Vec::new();
    let mut sections = graph.sections_behind(loss);
    sections.sort_by_key(|section| section.start);
    for section in sections {
        match merged.last_mut() {
            Some(last) if last.end == section.range().start => last.end = section.range().end,
            _ => merged.push(section.range()),
        }
    }
    merged
}
