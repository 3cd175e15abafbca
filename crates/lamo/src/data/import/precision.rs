//! What single precision loses: a data set stores 24 bits of each number, so near 5,432,876 m it tells 0.5 m apart.
//!
//! ```text
//! rounding of a channel ≤ min(largest rounding of the file, 2⁻²⁴ · largest |value|),  compared with max - min of a sample
//! ```

use super::column::Column;
use crate::data::dataset::FieldEntry;

/// Part of the range of a sample that rounding may take without a word.
const UNNOTICED: f64 = 1e-3;
/// Half of the distance of two numbers in single precision, in parts of the larger one.
const HALF_STEP: f64 = 1.0 / (1_u64 << 24) as f64;

/// What is seen of one channel.
#[derive(Clone, Copy)]
struct Channel {
    largest: f32,
    /// Largest range of the values of one sample.
    range: f32,
    low: f32,
    high: f32,
}

/// What is seen of one field while it is imported.
pub(super) struct Precision {
    rounding: f64,
    channels: Vec<Channel>,
}

impl Precision {
    pub(super) fn of(column: &Column) -> Precision {
        let unseen = Channel { largest: 0.0, range: 0.0, low: f32::INFINITY, high: f32::NEG_INFINITY };
        Precision { rounding: 0.0, channels: vec![unseen; column.channels().max(1)] }
    }

    /// Takes samples of `count` values each, the channel as their last axis, whose numbers were rounded by `rounding` at most.
    pub(super) fn see(&mut self, values: &[f32], count: usize, rounding: f64) {
        if rounding == 0.0 {
            return; // the file has single precision itself, or numbers that fit
        }
        self.rounding = self.rounding.max(rounding);
        let width = self.channels.len();
        for sample in values.chunks(count.max(1)) {
            for (place, channel) in self.channels.iter_mut().enumerate() {
                let (mut low, mut high) = (f32::INFINITY, f32::NEG_INFINITY);
                for &value in sample.iter().skip(place).step_by(width) {
                    (low, high) = (low.min(value), high.max(value));
                }
                channel.range = channel.range.max(high - low);
                channel.largest = channel.largest.max(high.abs()).max(low.abs());
                (channel.low, channel.high) = (channel.low.min(low), channel.high.max(high));
            }
        }
    }

    /// A sentence where rounding takes a part of the range that a model would miss.
    pub(super) fn warning(&self, field: &FieldEntry) -> Option<String> {
        let one_value = field.shape.iter().product::<usize>() <= self.channels.len();
        let lost = |channel: &Channel| {
            // One value has no range: that of all samples stands in its place.
            let range = f64::from(if one_value { channel.high - channel.low } else { channel.range });
            let rounding = self.rounding.min(HALF_STEP * f64::from(channel.largest));
            (rounding > UNNOTICED * range && range > 0.0).then_some((rounding, range))
        };
        let worst = self.channels.iter().filter_map(lost).max_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)));
        let (rounding, range) = worst?;
        let (name, part) = (&field.name, 100.0 * rounding / range);
        Some(format!(
            "field `{name}`: single precision rounds its values by up to {rounding:.2e}, {part:.1} % of their range; subtract a \
             constant from them, or use another unit"
        ))
    }
}
