//! What single precision loses: a data set stores 24 bits of each number, so near 5,432,876 m it tells 0.5 m apart.
//!
//! ```text
//! rounding of a channel ≤ min(rounding of the field, 2⁻²⁴ · largest |value|),  compared with max - min of a sample
//! ```

use super::column::Column;
use crate::data::dataset::FieldEntry;
use crate::data::formats::Rounding;

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
    rounding: Rounding,
    channels: Vec<Channel>,
}

impl Precision {
    pub(super) fn of(column: &Column) -> Precision {
        let unseen = Channel { largest: 0.0, range: 0.0, low: f32::INFINITY, high: f32::NEG_INFINITY };
        Precision { rounding: Rounding::default(), channels: vec![unseen; column.channels().max(1)] }
    }

    /// Takes samples of `count` values each, the channel as their last axis, whose numbers were rounded so.
    pub(super) fn see(&mut self, values: &[f32], count: usize, rounding: Rounding) {
        if rounding == Rounding::default() {
            return; // the file has single precision itself
        }
        self.rounding = self.rounding.and(rounding);
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
        if self.rounding.largest() <= 0.0 {
            return None; // no value was rounded
        }
        let one_value = field.shape.iter().product::<usize>() <= self.channels.len();
        let several = self.channels.len() > 1;
        let lost = |channel: &Channel| {
            // One value, and values that are equal in each sample, have the range of all samples.
            let of_all = one_value || channel.range <= 0.0;
            let range = f64::from(if of_all { channel.high - channel.low } else { channel.range });
            let rounding = self.rounding.largest().min(HALF_STEP * f64::from(channel.largest));
            // Of several channels a constant one may have no part in the rounding.
            (rounding > UNNOTICED * range && !(several && range <= 0.0)).then_some((rounding, range))
        };
        let worst = self.channels.iter().filter_map(lost).max_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)));
        let (rounding, range) = worst?;
        let name = &field.name;
        let found = if range > 0.0 {
            format!("by up to {rounding:.2e}, {:.1} % of their range", 100.0 * rounding / range)
        } else {
            "to one number".to_owned()
        };
        let advice = "subtract a constant from them, or use another unit";
        Some(format!("field `{name}`: single precision rounds its values {found}; {advice}"))
    }
}
