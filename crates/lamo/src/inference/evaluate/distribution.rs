//! Distribution of the errors of many samples: mean, deviation, quantiles.

use super::mean;
use serde::{Deserialize, Serialize};

/// Shares of the samples below each of the [`Distribution::quantiles`].
pub const SHARES: [f64; 7] = [0.0, 0.05, 0.25, 0.5, 0.75, 0.95, 1.0];

/// Summary of many values.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Distribution {
    /// Number of values.
    pub count: usize,
    /// Mean of the values.
    pub mean: f64,
    /// Unbiased standard deviation; zero for a single value.
    pub deviation: f64,
    /// Quantiles at [`SHARES`], from the least value to the largest.
    pub quantiles: [f64; SHARES.len()],
}

impl Distribution {
    /// Distribution of the values; panics when there are no values.
    pub fn of(values: &[f64]) -> Distribution {
        let middle = mean(values);
        let squares: f64 = values.iter().map(|value| (value - middle).powi(2)).sum();
        let deviation = if values.len() < 2 { 0.0 } else { (squares / (values.len() - 1) as f64).sqrt() };
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let quantiles = SHARES.map(|share| quantile(&sorted, share));
        Distribution { count: values.len(), mean: middle, deviation, quantiles }
    }

    /// Median: half of the samples have a smaller error.
    pub fn median(&self) -> f64 {
        self.quantiles[SHARES.len() / 2]
    }

    /// Error of the best sample.
    pub fn least(&self) -> f64 {
        self.quantiles[0]
    }

    /// Error of the worst sample.
    pub fn most(&self) -> f64 {
        self.quantiles[SHARES.len() - 1]
    }
}

/// Quantile by linear interpolation; the first sorted value is at 0, the last at 1 (type 7 of Hyndman and Fan 1996).
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = share * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[place.floor() as usize], sorted[place.ceil() as usize]);
    if below == above { below } else { below + place.fract() * (above - below) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_quantiles_of_a_straight_line_lie_on_it() {
        let values: Vec<f64> = (0..=100).rev().map(f64::from).collect();
        let found = Distribution::of(&values);
        assert_eq!(found.quantiles, [0.0, 5.0, 25.0, 50.0, 75.0, 95.0, 100.0]);
        assert_eq!((found.mean, found.median(), found.least(), found.most()), (50.0, 50.0, 0.0, 100.0));
        assert!((found.deviation - 858.5f64.sqrt()).abs() < 1e-12); // n (n + 1) / 12 for 0..n-1 with n = 101
    }

    #[test]
    fn between_two_values_a_quantile_is_their_weighted_mean() {
        assert_eq!(quantile(&[1.0, 3.0], 0.25), 1.5);
        assert_eq!(Distribution::of(&[7.0]).quantiles, [7.0; 7]);
        assert_eq!(Distribution::of(&[7.0]).deviation, 0.0);
    }

    #[test]
    fn an_infinite_error_stays_infinite_and_spoils_no_quantile_below_it() {
        let found = Distribution::of(&[1.0, f64::INFINITY, 1.0, 1.0, 1.0]);
        assert_eq!((found.median(), found.most()), (1.0, f64::INFINITY));
    }
}
