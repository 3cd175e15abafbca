//! Packed variables of netCDF-4, as the CF conventions (8.1 and 2.5.1) store them in the attributes of an HDF5 dataset:
//!
//! ```text
//! value = stored · scale_factor + add_offset;  no value (NaN) where stored is `_FillValue` or `missing_value`
//! ```

use super::array::{Real, decode};
use super::hdf5::element;
use hdf5_reader::Dataset;

/// How the numbers of a dataset become values.
pub(super) struct Packing {
    scale: f64,
    offset: f64,
    /// Stored numbers that mean that there is no value.
    missing: Vec<f64>,
}

impl Packing {
    /// The packing that the attributes of a dataset describe; `None` where its numbers are its values.
    pub(super) fn of(dataset: &Dataset) -> Option<Packing> {
        let attributes = dataset.attributes();
        let numbers = |name: &str| -> Vec<f64> {
            let Some(attribute) = attributes.iter().find(|attribute| attribute.name == name) else { return Vec::new() };
            let Ok((kind, big_endian)) = element(&attribute.datatype) else { return Vec::new() };
            let mut numbers = Vec::new();
            let whole = attribute.raw_data.len() / kind.bytes() * kind.bytes();
            decode::<f64>(kind, big_endian, &attribute.raw_data[..whole], &mut numbers);
            numbers
        };
        let first = |name: &str, default: f64| numbers(name).first().copied().unwrap_or(default);
        let missing = [numbers("_FillValue"), numbers("missing_value")].concat();
        let packing = Packing { scale: first("scale_factor", 1.0), offset: first("add_offset", 0.0), missing };
        (packing.unpacks() || !packing.missing.is_empty()).then_some(packing)
    }

    /// Whether values differ from the stored numbers.
    pub(super) fn unpacks(&self) -> bool {
        (self.scale, self.offset) != (1.0, 0.0)
    }

    /// Turns stored numbers into values. A missing value is compared in the precision of the numbers.
    pub(super) fn unpack<T: Real>(&self, numbers: &mut [T]) {
        let missing: Vec<f64> = self.missing.iter().map(|&value| T::nearest(value).wide()).collect();
        for number in numbers {
            let stored = number.wide();
            if missing.contains(&stored) {
                *number = T::nearest(f64::NAN);
            } else if self.unpacks() {
                *number = T::nearest(stored * self.scale + self.offset);
            }
        }
    }
}
