//! The best linear function of what is known at a point, y ≈ W [1, x, a], so that a model learns only the rest.
//!
//! Where outputs are mostly such a function, as the deformed positions of a mesh are, a network would spend its training on it.
//! W is the least-squares fit over all training samples, points and times, in f64; x, a and y are normalised. The rest is
//! scaled to deviation 1 for the model.

use super::normaliser::Moments;
use crate::error::{Refusal, require};
use lamo_tensor::Tensor;
use serde::{Deserialize, Serialize};

/// Share of the mean square of a feature that is added to the diagonal: features that depend on others get no large weights.
const RIDGE: f64 = 1e-10;
/// Least deviation of the rest, as a share of the outputs': where outputs are linear, rounding is all that is left.
const ROUNDING: f32 = 1e-6;

/// A linear function of positions and functions at the same point, and the deviation of the outputs from it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trend {
    /// `[1 + space + functions][outputs]`, the constant first.
    pub weights: Vec<Vec<f32>>,
    /// `[outputs]` deviation of the rest.
    pub deviation: Vec<f32>,
}

/// Samples as a trend sees them: normalised, `[count, points, ...]`.
#[derive(Clone, Copy)]
pub(crate) struct Seen<'a> {
    /// `[count, points, space]`, or `[points, space]` for all samples.
    pub(crate) positions: (&'a [f32], usize),
    /// `[count, points, functions]`
    pub(crate) inputs: (&'a [f32], usize),
    /// `[count, times, points, outputs]`
    pub(crate) targets: (&'a [f32], usize),
    pub(crate) points: usize,
    pub(crate) times: usize,
}

impl Seen<'_> {
    /// Calls `visit` with the features `[1, x, a]` and the outputs of every sample, time and point.
    fn each(&self, mut visit: impl FnMut(&[f64], &[f32])) {
        let Seen { positions: (positions, space), inputs: (inputs, functions), targets: (targets, outputs), .. } =
            *self;
        let mut features = vec![1.0; 1 + space + functions];
        for (row, target) in targets.chunks_exact(outputs).enumerate() {
            let (point, sample) = (row % self.points, row / (self.points * self.times));
            let known = sample * self.points + point;
            let place = if positions.len() > self.points * space { known } else { point };
            let values = positions[place * space..][..space].iter().chain(&inputs[known * functions..][..functions]);
            features[1..].iter_mut().zip(values).for_each(|(feature, &value)| *feature = f64::from(value));
            visit(&features, target);
        }
    }
}

/// Calls `visit` with the features and the outputs of all parts of a training set.
fn each(seen: &[Seen<'_>], mut visit: impl FnMut(&[f64], &[f32])) {
    seen.iter().for_each(|part| part.each(&mut visit));
}

impl Trend {
    /// The least-squares fit over all parts, each with samples of one size.
    pub(crate) fn fit(seen: &[Seen<'_>]) -> Trend {
        let (count, outputs) =
            seen.first().map_or((1, 0), |seen| (1 + seen.positions.1 + seen.inputs.1, seen.targets.1));
        let mut squares = vec![vec![0.0; count + outputs]; count]; // [Φᵀ Φ | Φᵀ Y]
        each(seen, |features, target| {
            for (row, &feature) in squares.iter_mut().zip(features) {
                let values = features.iter().copied().chain(target.iter().map(|&value| f64::from(value)));
                row.iter_mut().zip(values).for_each(|(sum, value)| *sum += feature * value);
            }
        });
        for (index, row) in squares.iter_mut().enumerate() {
            row[index] += RIDGE * row[index].max(f64::MIN_POSITIVE);
        }
        let weights = solved(squares);
        let mut rest = vec![Moments::default(); outputs];
        let mut all = rest.clone();
        each(seen, |features, target| {
            for (output, &value) in target.iter().enumerate() {
                let value = f64::from(value);
                let linear: f64 = features.iter().zip(&weights).map(|(feature, row)| feature * row[output]).sum();
                rest[output] = rest[output].and(Moments::of([value - linear].into_iter()));
                all[output] = all[output].and(Moments::of([value].into_iter()));
            }
        });
        let deviations =
            rest.iter().zip(&all).map(|(rest, all)| (rest.deviation() as f32).max(ROUNDING * all.unit() as f32));
        let deviation = deviations.collect();
        let weights = weights.iter().map(|row| row.iter().map(|&weight| weight as f32).collect()).collect();
        Trend { weights, deviation }
    }

    /// The outputs: the linear function of `channels` `[batch, points, space + functions]` plus the scaled `result` of the model.
    pub(crate) fn and<'g>(&self, channels: Tensor<'g>, result: Tensor<'g>) -> Tensor<'g> {
        let [batch, points, features] = channels.dims();
        let outputs = self.deviation.len();
        let constant = |values: &[f32], shape: &[usize]| result.graph().constant(values, shape.to_vec());
        let slopes = constant(&self.weights[1..].concat(), &[features, outputs]);
        // In tf32 the trend would be off by more than what the model learns.
        let linear =
            channels.reshape([batch * points, features]).matmul_in_f32(slopes).reshape([batch, points, outputs]);
        linear + constant(&self.weights[0], &[outputs]) + result * constant(&self.deviation, &[outputs])
    }

    /// Refuses a trend that does not fit its task, or has numbers that no fit gives.
    pub(crate) fn check(&self, features: usize, outputs: usize) -> Result<(), Refusal> {
        let sizes = self.weights.len() == 1 + features && self.weights.iter().all(|row| row.len() == outputs);
        require(sizes && self.deviation.len() == outputs, || {
            let found = format!("{} rows, {} deviations", self.weights.len(), self.deviation.len());
            Refusal::new("trend", format!("{} rows of {outputs} weights, and as many deviations", 1 + features), found)
        })?;
        let finite = self.weights.iter().flatten().all(|weight| weight.is_finite());
        require(finite && self.deviation.iter().all(|&deviation| deviation.is_finite() && deviation > 0.0), || {
            Refusal::new("trend", "finite weights and positive deviations", "others")
        })
    }

    /// Whether two fits differ at most by rounding.
    pub(crate) fn is_near(&self, other: &Trend) -> bool {
        let numbers =
            |trend: &Trend| trend.weights.iter().flatten().chain(&trend.deviation).copied().collect::<Vec<_>>();
        let (ours, theirs) = (numbers(self), numbers(other));
        ours.len() == theirs.len()
            && ours.iter().zip(&theirs).all(|(one, two)| (one - two).abs() <= 1e-3 * one.abs().max(1.0))
    }
}

/// The solution of A W = B from rows `[A | B]`, A symmetric and positive definite: elimination, without exchanging rows.
fn solved(mut rows: Vec<Vec<f64>>) -> Vec<Vec<f64>> {
    let count = rows.len();
    for pivot in 0..count {
        let scale = rows[pivot][pivot].recip();
        rows[pivot].iter_mut().for_each(|value| *value *= scale);
        let pivoted = rows[pivot].clone();
        for (_, row) in rows.iter_mut().enumerate().filter(|(index, _)| *index != pivot) {
            let factor = row[pivot];
            row.iter_mut().zip(&pivoted).for_each(|(value, above)| *value -= factor * above);
        }
    }
    rows.into_iter().map(|row| row[count..].to_vec()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use lamo_tensor::{Graph, Program};

    /// Two samples of three points at two times: y₁ = 2 − x + 3a exactly, y₂ = x² of the first time.
    fn seen() -> ([f32; 3], [f32; 6], Vec<f32>) {
        let (positions, inputs) = ([-1.0, 0.5, 2.0], [1.0, -2.0, 0.0, 4.0, 1.0, 1.5]);
        let mut targets = Vec::new();
        for sample in 0..2 {
            for time in 0..2 {
                for point in 0..3 {
                    let (x, a) = (positions[point], inputs[3 * sample + point]);
                    targets.extend([2.0 - x + 3.0 * a, if time == 0 { x * x } else { 0.0 }]);
                }
            }
        }
        (positions, inputs, targets)
    }

    #[test]
    fn a_linear_output_is_found_exactly_and_the_rest_of_another_is_uncorrelated_with_all_features() {
        let (positions, inputs, targets) = seen();
        let seen =
            Seen { positions: (&positions, 1), inputs: (&inputs, 1), targets: (&targets, 2), points: 3, times: 2 };
        let trend = Trend::fit(&[seen]);
        trend.check(2, 2).unwrap();
        for (row, expected) in trend.weights.iter().zip([2.0, -1.0, 3.0]) {
            assert!((row[0] - expected).abs() < 1e-5, "{trend:?}");
        }
        let mut products = [0.0; 3];
        seen.each(|features, target| {
            let linear: f64 = features.iter().zip(&trend.weights).map(|(f, row)| f * f64::from(row[1])).sum();
            let rest = f64::from(target[1]) - linear;
            products.iter_mut().zip(features).for_each(|(product, feature)| *product += rest * feature);
        });
        assert!(products.iter().all(|product| product.abs() < 1e-4), "{products:?}");
        assert!(trend.deviation[0] < 1e-5 && trend.deviation[1] > 0.5, "{trend:?}");
    }

    #[test]
    fn a_constant_feature_does_not_break_the_fit() {
        let targets = [1.0, 2.0, 3.0, 4.0];
        let seen = Seen {
            positions: (&[0.0, 1.0], 1),
            inputs: (&[5.0, 5.0, 5.0, 5.0], 1),
            targets: (&targets, 1),
            points: 2,
            times: 1,
        };
        Trend::fit(&[seen]).check(2, 1).unwrap();
    }

    #[test]
    fn the_result_of_a_model_is_scaled_and_added_to_the_trend() {
        let trend = Trend { weights: vec![vec![1.0], vec![2.0], vec![-1.0]], deviation: vec![0.5] };
        let graph = Graph::new();
        let (channels, result) = (graph.input("channels", [1, 2, 2]), graph.input("result", [1, 2, 1]));
        graph.output("found", trend.and(channels, result));
        let mut program = Program::compile(&graph);
        program.write("channels", &[1.0, 0.0, 0.0, 3.0]);
        program.write("result", &[4.0, -2.0]);
        program.run();
        assert_eq!(program.read("found"), [5.0, -3.0]);
    }

    #[test]
    fn a_trend_of_other_sizes_or_with_bad_numbers_is_refused() {
        let trend = Trend { weights: vec![vec![1.0], vec![2.0]], deviation: vec![0.5] };
        trend.check(1, 1).unwrap();
        assert!(trend.check(2, 1).unwrap_err().to_string().contains("trend"));
        assert!(Trend { deviation: vec![0.0], ..trend.clone() }.check(1, 1).is_err());
        assert!(Trend { weights: vec![vec![f32::NAN], vec![2.0]], ..trend }.check(1, 1).is_err());
    }
}
