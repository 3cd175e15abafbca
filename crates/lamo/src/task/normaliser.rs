//! (v − μ) / σ per channel: mean, and unbiased deviation + 1e-8, over samples and points (the authors' UnitTransformer).
//!
//! Fitted on the training split only, in f64; applied in f32 like the authors' tensors.

use crate::error::{Refusal, require};
use lamo_tensor::Tensor;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// Keeps constant channels from dividing by zero.
const EPSILON: f64 = 1e-8;
/// Below this deviation ε is left out: it would be larger than fields with a small unit, such as a permeability in m².
const SMALL: f64 = 100.0 * EPSILON;
/// A deviation below this share of the mean is rounding: the channel is constant.
const ROUNDING: f64 = 1e-6;

/// Count, mean and sum of squared deviations of one channel, gathered block by block (Chan, Golub and LeVeque 1979).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Moments {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Moments {
    /// Moments of a few values.
    pub fn of(values: impl Iterator<Item = f64> + Clone) -> Moments {
        let (count, sum) = values.clone().fold((0.0, 0.0), |(count, sum), value| (count + 1.0, sum + value));
        if count == 0.0 {
            return Moments::default();
        }
        let mean = sum / count;
        Moments { count, mean, squares: values.map(|value| (value - mean).powi(2)).sum() }
    }

    /// Moments of both sets together.
    pub fn and(self, other: Moments) -> Moments {
        let count = self.count + other.count;
        if count == 0.0 {
            return self;
        }
        let (gap, share) = (other.mean - self.mean, other.count / count);
        let squares = self.squares + other.squares + gap * gap * self.count * share;
        Moments { count, mean: self.mean + gap * share, squares }
    }

    /// μ
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// σ, unbiased; zero for fewer than two values.
    pub fn deviation(&self) -> f64 {
        if self.count < 2.0 { 0.0 } else { (self.squares / (self.count - 1.0)).sqrt() }
    }

    /// Whether all values are equal up to rounding.
    fn is_constant(&self) -> bool {
        self.deviation() <= ROUNDING * self.mean.abs()
    }

    /// Unit of errors: σ, the absolute value of a constant channel, or 1 for a channel of zeros.
    pub(crate) fn unit(&self) -> f64 {
        match (self.is_constant(), self.mean.abs()) {
            (false, _) => self.deviation(),
            (true, 0.0) => 1.0,
            (true, size) => size,
        }
    }

    /// Divisor of outputs: σ + ε as in the authors' code, or σ where it is small.
    fn scale(&self) -> f64 {
        let deviation = self.deviation();
        if deviation < SMALL && !self.is_constant() { deviation } else { deviation + EPSILON }
    }

    /// Divisor of inputs: [`Moments::scale`], or the unit for a constant, whose later changes 1/ε would magnify.
    fn scale_of_given(&self) -> f64 {
        if self.is_constant() { self.unit() } else { self.scale() }
    }
}

/// Shift and scale of each channel.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Normaliser {
    /// `[channels]` μ
    pub mean: Vec<f32>,
    /// `[channels]` σ + 1e-8, or σ where it is small
    pub deviation: Vec<f32>,
}

impl Normaliser {
    /// Normaliser of outputs from `[..., channels]` values of the training split.
    pub fn fit(values: &[f32], channels: usize) -> Result<Normaliser, Refusal> {
        Normaliser::from_moments(&moments(values, channels)?, Moments::scale)
    }

    /// Normaliser of inputs from `[..., channels]` values of the training split.
    pub fn fit_given(values: &[f32], channels: usize) -> Result<Normaliser, Refusal> {
        Normaliser::from_moments(&moments(values, channels)?, Moments::scale_of_given)
    }

    /// Normaliser of outputs from the moments of each channel.
    pub(crate) fn of_moments(channels: &[Moments]) -> Result<Normaliser, Refusal> {
        Normaliser::from_moments(channels, Moments::scale)
    }

    /// Leaves `channels` channels as they are.
    pub(crate) fn identity(channels: usize) -> Normaliser {
        Normaliser { mean: vec![0.0; channels], deviation: vec![1.0; channels] }
    }

    /// The channels of both, these first.
    pub(crate) fn and(mut self, other: Normaliser) -> Normaliser {
        self.mean.extend(other.mean);
        self.deviation.extend(other.deviation);
        self
    }

    /// Some of the channels.
    pub(crate) fn part(&self, channels: Range<usize>) -> Normaliser {
        Normaliser { mean: self.mean[channels.clone()].to_vec(), deviation: self.deviation[channels].to_vec() }
    }

    /// The channels repeated `times` times.
    pub(crate) fn repeat(&self, times: usize) -> Normaliser {
        Normaliser { mean: self.mean.repeat(times), deviation: self.deviation.repeat(times) }
    }

    /// v σ + μ on a tensor `[..., channels]`.
    pub(crate) fn decoded<'g>(&self, values: Tensor<'g>) -> Tensor<'g> {
        if let ([mean], [deviation]) = (self.mean.as_slice(), self.deviation.as_slice()) {
            return values * f64::from(*deviation) + f64::from(*mean);
        }
        let channel = |numbers: &[f32]| values.graph().constant(numbers, [numbers.len()]);
        values * channel(&self.deviation) + channel(&self.mean)
    }

    fn from_moments(channels: &[Moments], scale: fn(&Moments) -> f64) -> Result<Normaliser, Refusal> {
        for channel in channels {
            if channel.count < 2.0 {
                let expected = "at least two values per channel to take the deviation of";
                return Err(Refusal::new("normaliser", expected, channel.count.to_string()));
            }
            if !(channel.mean.is_finite() && channel.squares.is_finite()) {
                return Err(Refusal::new("normaliser", "finite values", format!("mean {}", channel.mean)));
            }
        }
        let mean = channels.iter().map(|channel| channel.mean as f32).collect();
        let deviation = channels.iter().map(|channel| scale(channel) as f32).collect();
        Ok(Normaliser { mean, deviation })
    }

    /// Refuses another number of channels, and numbers that no fit gives.
    pub(crate) fn check(&self, channels: usize) -> Result<(), Refusal> {
        let Normaliser { mean, deviation } = self;
        require(mean.len() == channels && deviation.len() == channels, || {
            let found = format!("{} means and {} deviations", mean.len(), deviation.len());
            Refusal::new("", format!("{channels} channels"), found)
        })?;
        let mut pairs = mean.iter().zip(deviation);
        let wrong = pairs.find(|(mean, deviation)| !(mean.is_finite() && deviation.is_finite() && **deviation > 0.0));
        wrong.map_or(Ok(()), |(mean, deviation)| {
            let expected = "a finite mean and a deviation above 0";
            Err(Refusal::new("", expected, format!("{mean} and {deviation}")))
        })
    }

    /// v ← (v − μ) / σ on `[..., channels]` values; panics when they do not come in whole points.
    pub fn encode(&self, values: &mut [f32]) {
        self.each(values, |value, mean, deviation| (value - mean) / deviation);
    }

    /// v ← v σ + μ on `[..., channels]` values; panics when they do not come in whole points.
    pub fn decode(&self, values: &mut [f32]) {
        self.each(values, |value, mean, deviation| value * deviation + mean);
    }

    fn each(&self, values: &mut [f32], change: impl Fn(f32, f32, f32) -> f32) {
        let channels = self.mean.len();
        assert!(
            channels > 0 && channels == self.deviation.len() && values.len().is_multiple_of(channels),
            "{} values are not points of {channels} channels with {} deviations",
            values.len(),
            self.deviation.len()
        );
        for point in values.chunks_mut(channels) {
            for ((value, &mean), &deviation) in point.iter_mut().zip(&self.mean).zip(&self.deviation) {
                *value = change(*value, mean, deviation);
            }
        }
    }
}

/// Moments of each channel of `[..., channels]` values.
pub(crate) fn moments(values: &[f32], channels: usize) -> Result<Vec<Moments>, Refusal> {
    if channels == 0 || !values.len().is_multiple_of(channels) {
        let expected = "at least one channel, and a value of each at every point";
        return Err(Refusal::new("normaliser", expected, format!("{} values of {channels} channels", values.len())));
    }
    let channel = |first| Moments::of(values.iter().skip(first).step_by(channels).map(|&value| f64::from(value)));
    Ok((0..channels).map(channel).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_small_by_its_unit_is_seen_as_well_as_in_another() {
        let wave: Vec<f32> = (0..64).map(|k| 1.5 + (0.7 * k as f32).sin()).collect();
        let encoded = |unit: f32| {
            let mut values: Vec<f32> = wave.iter().map(|value| value * unit).collect();
            Normaliser::fit(&values, 1).unwrap().encode(&mut values);
            values
        };
        for (small, one) in encoded(1e-12).iter().zip(encoded(1.0)) {
            assert!((small - one).abs() < 1e-5, "{small} and {one}");
        }
    }

    #[test]
    fn constants_stay_finite_however_they_round() {
        for constant in [0.0, 0.1, 1e-9, 12345.678] {
            let mut values = [constant; 1000];
            Normaliser::fit(&values, 1).unwrap().encode(&mut values);
            assert!(values.iter().all(|value| value.abs() < 1e6), "{constant} becomes {}", values[0]);
        }
    }

    #[test]
    fn another_value_of_what_never_changed_is_not_magnified() {
        for constant in [0.0, 7.0, 3e10, 1e-9] {
            let normaliser = Normaliser::fit_given(&[constant; 1000], 1).unwrap();
            let mut other = [constant, 1.01 * constant];
            normaliser.encode(&mut other);
            assert!(other[0].abs() < 1e-6 && other[1].abs() < 0.011, "{constant}: {other:?}");
        }
    }

    #[test]
    fn moments_of_parts_are_moments_of_the_whole() {
        let values = |range: Range<i32>| range.map(|k| 1e6 + f64::from(k * k % 17));
        let (parts, whole) = (Moments::of(values(0..10)).and(Moments::of(values(10..64))), Moments::of(values(0..64)));
        assert!((parts.mean() - whole.mean()).abs() < 1e-9, "{} and {}", parts.mean(), whole.mean());
        assert!((parts.deviation() - whole.deviation()).abs() < 1e-9 * whole.deviation());
    }
}
