//! Statistics of a field: range, mean, deviation, and how many values are NaN or infinite.

use super::{BLOCK, Dataset, Error};
use crate::task::Moments;

/// Statistics of all values of one field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Statistics {
    /// Smallest finite value.
    pub least: f32,
    /// Largest finite value.
    pub most: f32,
    /// Mean of the finite values.
    pub mean: f64,
    /// Unbiased standard deviation of the finite values.
    pub deviation: f64,
    /// How many values are NaN.
    pub missing: usize,
    /// How many values are infinite.
    pub infinite: usize,
}

impl Dataset {
    /// Statistics of `field`; a few samples are in memory at a time.
    pub fn statistics(&self, field: &str) -> Result<Statistics, Error> {
        let entry = self.field(field)?;
        let (count, rows) = (entry.shape.iter().product::<usize>(), if entry.common { 1 } else { self.samples() });
        let few = (BLOCK / count.max(1)).max(1);
        let mut moments = Moments::default();
        let (mut least, mut most, mut missing, mut infinite) = (f32::INFINITY, f32::NEG_INFINITY, 0, 0);
        for first in (0..rows).step_by(few) {
            let values = self.read(field, first..(first + few).min(rows))?;
            let finite = values.iter().copied().filter(|value| value.is_finite());
            missing += values.iter().filter(|value| value.is_nan()).count();
            infinite += values.iter().filter(|value| value.is_infinite()).count();
            least = finite.clone().fold(least, f32::min);
            most = finite.clone().fold(most, f32::max);
            moments = moments.and(Moments::of(finite.map(f64::from)));
        }
        Ok(Statistics { least, most, mean: moments.mean(), deviation: moments.deviation(), missing, infinite })
    }
}
