//! How a weights file stores its numbers: in 32 bits, or rounded to 16.
//!
//! float16 has 11 significant bits and numbers up to 65504; bfloat16 has 8 and the range of float32.

/// Bits of a stored number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Storage {
    /// As it was trained.
    #[default]
    F32,
    /// Rounded to the nearest float16, ties to even.
    F16,
    /// Rounded to the nearest bfloat16, ties to even.
    Bf16,
}

impl Storage {
    /// Name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Storage::F32 => "f32",
            Storage::F16 => "f16",
            Storage::Bf16 => "bf16",
        }
    }

    /// Name in a safetensors file.
    pub(crate) fn element(self) -> &'static str {
        match self {
            Storage::F32 => "F32",
            Storage::F16 => "F16",
            Storage::Bf16 => "BF16",
        }
    }

    /// Adds the bytes of the values; returns a finite value that the storage cannot hold, if there is one.
    pub(crate) fn append(self, values: &[f32], bytes: &mut Vec<u8>) -> Result<(), f32> {
        for &value in values {
            let (bits, infinite) = match self {
                Storage::F32 => {
                    bytes.extend(value.to_le_bytes());
                    continue;
                }
                Storage::F16 => (half(value), 0x7c00),
                Storage::Bf16 => (brain(value), 0x7f80),
            };
            if value.is_finite() && bits & 0x7fff >= infinite {
                return Err(value);
            }
            bytes.extend(bits.to_le_bytes());
        }
        Ok(())
    }
}

/// The nearest float16.
fn half(value: f32) -> u16 {
    let bits = value.to_bits();
    let (sign, magnitude) = ((bits >> 16 & 0x8000) as u16, bits & 0x7fff_ffff);
    let (exponent, fraction) = ((magnitude >> 23) as i32 - 127, magnitude & 0x7f_ffff);
    sign | match exponent {
        128 => 0x7c00 | if fraction == 0 { 0 } else { 0x200 },
        16.. => 0x7c00,
        -14.. => rounded(((exponent + 15) as u32) << 23 | fraction, 13), // a carry runs into the exponent
        -25.. => rounded(fraction | 0x80_0000, (-1 - exponent) as u32),  // below 2⁻¹⁴ in steps of 2⁻²⁴
        _ => 0,
    }
}

/// The nearest bfloat16.
fn brain(value: f32) -> u16 {
    match value.is_nan() {
        true => (value.to_bits() >> 16) as u16 | 0x40,
        false => rounded(value.to_bits(), 16),
    }
}

/// bits / 2^shift, rounded to the nearest, ties to even.
fn rounded(bits: u32, shift: u32) -> u16 {
    let (whole, rest, middle) = (bits >> shift, bits & ((1 << shift) - 1), 1 << (shift - 1));
    (whole + u32::from(rest > middle || (rest == middle && whole & 1 == 1))) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::formats::{ElementKind, decode};

    fn read(bits: u16, kind: ElementKind) -> f32 {
        let mut values = Vec::<f64>::new();
        decode(kind, false, &bits.to_le_bytes(), &mut values);
        values[0] as f32
    }

    /// Each number of 16 bits is itself; between two neighbours the nearer one is taken, and the even one in the middle.
    #[test]
    fn every_number_of_16_bits_and_every_middle_is_rounded_to_the_nearest() {
        let cases = [
            (ElementKind::F16, half as fn(f32) -> u16, 0x7c00_u16),
            (ElementKind::Bf16, brain as fn(f32) -> u16, 0x7f80),
        ];
        for (kind, round, infinite) in cases {
            for bits in 0..infinite {
                for sign in [0, 0x8000] {
                    let value = read(bits | sign, kind);
                    assert_eq!(round(value), bits | sign, "{kind} {value}");
                }
                if bits + 1 == infinite {
                    continue;
                }
                let [low, high] = [bits, bits + 1].map(|bits| f64::from(read(bits, kind)));
                let middle = ((low + high) / 2.0) as f32;
                if f64::from(middle) != (low + high) / 2.0 {
                    continue; // subnormal beyond float32
                }
                assert_eq!(round(middle), if bits % 2 == 0 { bits } else { bits + 1 }, "{kind} {middle}");
                assert_eq!([round(middle.next_down()), round(middle.next_up())], [bits, bits + 1], "{kind} {middle}");
            }
            assert!(read(round(f32::NAN), kind).is_nan() && read(round(f32::NEG_INFINITY), kind) == f32::NEG_INFINITY);
        }
        assert_eq!(Storage::F16.append(&[1.0, -7e4], &mut Vec::new()), Err(-7e4));
        assert_eq!(Storage::Bf16.append(&[-7e4], &mut Vec::new()), Ok(()));
    }
}
