//! How much an input at one place changes the output at another: ∂y_p/∂x_n, by the pullback of the model's own graph.

use crate::network::Input;
use lamo_tensor::{Graph, Tensor};

/// The program's input that chooses the asked output: 1 there, 0 elsewhere.
pub const ASKED: &str = "asked";

/// Derivatives of the asked output.
pub struct Derivatives<'g> {
    /// `[batch, points, outputs]`, 1 at the asked output
    pub asked: Tensor<'g>,
    /// `[batch, points, space]` with respect to the positions
    pub positions: Tensor<'g>,
    /// `[batch, points, functions]` with respect to the input functions
    pub functions: Option<Tensor<'g>>,
}

/// The derivatives of Σ asked ∘ prediction with respect to the inputs as the model sees them. A zero stands where the prediction
/// does not depend on an input.
pub fn derivatives<'g>(graph: &'g Graph, prediction: Tensor<'g>, input: &Input<'g>) -> Derivatives<'g> {
    let asked = graph.input(ASKED, prediction.shape());
    let wanted: Vec<Tensor<'g>> = std::iter::once(input.positions).chain(input.functions).collect();
    let found = graph.pullback(&[(prediction, asked)], &wanted);
    let mut found =
        found.iter().zip(&wanted).map(|(found, wanted)| found.unwrap_or_else(|| graph.fill(0.0, wanted.shape())));
    let positions = found.next().unwrap_or(input.positions);
    Derivatives { asked, positions, functions: found.next() }
}

/// The influence of all points on one output.
#[derive(Clone, Debug)]
pub struct Influence {
    /// The asked point.
    pub point: usize,
    /// The asked output channel.
    pub channel: usize,
    /// `functions`, or `positions` where the model is given nothing else.
    pub of: &'static str,
    /// Channels of the input.
    pub channels: usize,
    /// `[points, channels]` derivatives in physical units
    pub derivative: Vec<f32>,
    /// `[points]` length of the derivative over the channels, each in units of its deviation in the training samples
    pub strength: Vec<f32>,
}

impl Influence {
    /// From derivatives `[points, channels]` with respect to normalised inputs, and the deviation of each channel.
    pub(super) fn new(
        [point, channel]: [usize; 2],
        of: &'static str,
        normalised: &[f32],
        deviation: &[f32],
        channels: usize,
    ) -> Influence {
        let strength = normalised.chunks_exact(channels).map(|own| own.iter().map(|d| d * d).sum::<f32>().sqrt());
        let unit = |channel: usize| deviation.get(channel.min(deviation.len().max(1) - 1)).copied().unwrap_or(1.0);
        let derivative = normalised.iter().enumerate().map(|(place, slope)| slope / unit(place % channels));
        Influence { point, channel, of, channels, derivative: derivative.collect(), strength: strength.collect() }
    }
}
