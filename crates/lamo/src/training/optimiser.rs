//! AdamW with a global-norm clip, as operators of the training program (Loshchilov & Hutter 2019, in PyTorch's form):
//!
//! g ← g · min(1, clip / (‖g‖ + 10⁻⁶)),  θ ← θ (1 − η λ),
//! m ← m + (1 − β₁)(g − m),  v ← β₂ v + (1 − β₂) g²,  θ ← θ − η/(1 − β₁ᵗ) · m / (√v/√(1 − β₂ᵗ) + ε).
//!
//! Adam with its coupled decay has g ← g + λ θ after the clip in place of θ ← θ (1 − η λ).
//!
//! Everything acts on the parameter vector θ at once, so an update is one pass over memory. Parameters that the loss
//! does not depend on stay unchanged: no decay, no moments. [`Optimiser`] adds what a recipe may ask for: [`Muon`] for
//! matrices, and an average of the parameters.

use crate::training::average::Average;
use crate::training::muon::Muon;
use crate::training::schedule::Pace;
use lamo_tensor::{DeviceError, Graph, Program, Section, Tensor};
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
        Optimiser { adamw: *self, muon: None, average: None }.minimise(graph, loss);
    }

    /// Updates the sections `used` of θ by the clipped gradient; returns their new values.
    fn update<'g>(&self, slope: &Slope<'g>, used: &[Range<usize>]) -> Vec<(Range<usize>, Tensor<'g>)> {
        let graph = slope.theta.graph();
        let [keep, inertia, size, correction] = slope.controls;
        let update = |range: &Range<usize>| {
            let part = |tensor: Tensor<'g>| tensor.slice(0, range.start, range.end);
            let (p, m, v, g) = (part(slope.theta), part(slope.mean), part(slope.square), slope.clipped(range));
            let g = if self.coupled { g + p * self.weight_decay } else { g };
            let new_m = m + inertia * (g - m);
            let new_v = v * self.beta2 + g * g * (1.0 - self.beta2);
            let step = size * new_m / (new_v.sqrt() / correction + self.epsilon);
            let new_p = p * keep - step;
            graph.assign(p, new_p);
            graph.assign(m, new_m);
            graph.assign(v, new_v);
            (range.clone(), new_p)
        };
        used.iter().map(update).collect()
    }

    /// Tells the program the pace of its next step; `step` counts from 0.
    pub fn pace(&self, program: &mut Program, step: usize, pace: Pace) -> Result<(), DeviceError> {
        if !program.has_input(CONTROLS) {
            return Ok(()); // all parameters are Muon's
        }
        let t = (step + 1) as f64;
        let keep = if self.coupled { 1.0 } else { 1.0 - pace.rate * self.weight_decay };
        let size = pace.rate / (1.0 - pace.beta1.powf(t));
        let correction = (1.0 - self.beta2.powf(t)).sqrt();
        let controls = [keep, 1.0 - pace.beta1, size, correction];
        program.try_write(CONTROLS, &controls.map(|value| value as f32))
    }
}

/// θ, its gradient and the moments of the gradient in a training program.
pub(super) struct Slope<'g> {
    pub(super) theta: Tensor<'g>,
    gradient: Tensor<'g>,
    /// min(1, clip / ‖g‖), where the recipe clips.
    scale: Option<Tensor<'g>>,
    pub(super) mean: Tensor<'g>,
    square: Tensor<'g>,
    /// 1 − η λ, 1 − β₁, η / (1 − β₁ᵗ), √(1 − β₂ᵗ)
    controls: [Tensor<'g>; 4],
}

impl<'g> Slope<'g> {
    fn of(graph: &'g Graph, loss: Tensor<'g>, clip: Option<f64>) -> Slope<'g> {
        let theta = graph.parameters();
        let gradient = graph.gradient(loss, &[theta])[0].expect("the loss depends on no parameter");
        let length = theta.shape().count();
        let (mean, square) = (graph.state(MEAN, [length]), graph.state(SQUARE, [length]));
        let controls = graph.input(CONTROLS, [4]).split(0, [1; 4]);
        let norm = gradient.square().sum_all().sqrt();
        graph.output(GRADIENT_NORM, norm);
        let scale = clip.map(|clip| (clip / (norm + 1e-6)).minimum(graph.fill(1.0, [])));
        Slope { theta, gradient, scale, mean, square, controls }
    }

    /// The clipped gradient of some parameters.
    pub(super) fn clipped(&self, range: &Range<usize>) -> Tensor<'g> {
        let part = self.gradient.slice(0, range.start, range.end);
        self.scale.map_or(part, |scale| part * scale)
    }
}

/// What a recipe asks for: AdamW, with Muon for matrices and an average of the parameters where it wants them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Optimiser {
    /// For all parameters, or all but matrices.
    pub adamw: AdamW,
    /// For matrices.
    pub muon: Option<Muon>,
    /// The running average of the parameters.
    pub average: Option<Average>,
}

impl Optimiser {
    /// Adds the gradient of `loss` and the update of all its parameters to the program.
    pub fn minimise<'g>(&self, graph: &'g Graph, loss: Tensor<'g>) {
        let slope = Slope::of(graph, loss, self.adamw.clip);
        let mut sections = graph.sections_behind(loss);
        sections.sort_by_key(|section| section.start);
        let mut new = Vec::new();
        if let Some(muon) = &self.muon {
            let matrices: Vec<_> = sections.iter().filter_map(|section| muon.matrix(section)).collect();
            sections.retain(|section| muon.matrix(section).is_none());
            new.extend(muon.update(&slope, &matrices));
        }
        new.extend(self.adamw.update(&slope, &ranges(&sections)));
        if let Some(average) = &self.average {
            average.follow(graph, slope.theta.shape().count(), &new);
        }
    }

    /// Tells the program the pace of its next step; `step` counts from 0.
    pub fn pace(&self, program: &mut Program, step: usize, pace: Pace) -> Result<(), DeviceError> {
        if let Some(muon) = &self.muon {
            muon.pace(program, pace.rate, self.adamw.weight_decay)?;
        }
        if let Some(average) = &self.average {
            average.pace(program, step)?;
        }
        self.adamw.pace(program, step, pace)
    }
}

/// Neighbouring sections, merged.
fn ranges(sections: &[Section]) -> Vec<Range<usize>> {
    let mut merged: Vec<Range<usize>> = Vec::new();
    for section in sections {
        match merged.last_mut() {
            Some(last) if last.end == section.range().start => last.end = section.range().end,
            _ => merged.push(section.range()),
        }
    }
    merged
}
