//! Perceptually uniform colour maps: a sequential one (viridis), and a diverging one for signed fields.

/// Red, green, blue.
pub(crate) type Rgb = [u8; 3];

pub(crate) const PAPER: Rgb = [255, 255, 255];
pub(crate) const INK: Rgb = [40, 44, 52];
pub(crate) const FAINT: Rgb = [120, 124, 132];
/// The colour of values that are not finite; it differs from all colours of the maps.
const MISSING: Rgb = [255, 0, 255];

/// Viridis (Smith and van der Walt 2015, public domain) at ten evenly spaced values. The error of linear interpolation in
/// sRGB between them is not visible.
const VIRIDIS: &[u32] =
    &[0x440154, 0x482878, 0x3e4a89, 0x31688e, 0x26828e, 0x1f9e89, 0x35b779, 0x6dcd59, 0xb4de2c, 0xfde725];
/// Cool to warm through grey (after Moreland 2009). Zero is in the middle, and lightness falls evenly from there.
const COOL_WARM: &[u32] = &[0x3b4cc0, 0x5d7ce6, 0x82a6fb, 0xaac7fd, 0xdddddd, 0xf5c1a9, 0xf4987a, 0xdd5f4b, 0xb40426];
/// A single grey.
const PLAIN: &[u32] = &[0x787c84, 0x787c84];
/// Steps of a scale: with those of a few more things a map has at most 256 colours, which makes its file small.
const STEPS: f32 = 250.0;
/// A field is signed if the smaller of its two extremes reaches this fraction of the larger one.
const SIGNED: f32 = 0.2;

/// The colours of the values of a field.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Scale {
    pub(crate) least: f32,
    pub(crate) most: f32,
    table: &'static [u32],
}

impl Scale {
    /// From the smallest finite value to the largest; symmetric around zero for a signed field.
    pub(crate) fn of(values: impl Iterator<Item = f32>) -> Scale {
        let range = |(least, most): (f32, f32), value: f32| (least.min(value), most.max(value));
        let (least, most) = values.filter(|value| value.is_finite()).fold((f32::INFINITY, f32::NEG_INFINITY), range);
        let larger = most.max(-least);
        match least <= most {
            true if most.min(-least) > SIGNED * larger => Scale { least: -larger, most: larger, table: COOL_WARM },
            true => Scale { least, most, table: VIRIDIS },
            false => Scale { least: 0.0, most: 0.0, table: VIRIDIS },
        }
    }

    /// Symmetric around zero, for errors.
    pub(crate) fn signed(values: impl Iterator<Item = f32>) -> Scale {
        let larger = values.filter(|value| value.is_finite()).fold(0.0, |larger: f32, value| larger.max(value.abs()));
        Scale { least: -larger, most: larger, table: COOL_WARM }
    }

    /// One colour, for a mesh without values.
    pub(crate) fn plain() -> Scale {
        Scale { least: 0.0, most: 0.0, table: PLAIN }
    }

    /// Whether there is only one colour.
    pub(crate) fn is_plain(&self) -> bool {
        std::ptr::eq(self.table, PLAIN)
    }

    /// Evenly spaced colours of the map, the smallest value first.
    pub(crate) fn stops(&self) -> impl Iterator<Item = Rgb> {
        self.table.iter().map(|&colour| parts(colour))
    }

    /// The numbers at both ends. If values lie outside the range by more than a hundredth of it, their extreme is there too:
    /// `0.28 < 0.32` at the lower end, `1.27 < 1.34` at the upper end.
    pub(crate) fn ends(&self, values: impl Iterator<Item = f32>, number: impl Fn(f32) -> String) -> [String; 2] {
        let range = |(least, most): (f32, f32), value: f32| (least.min(value), most.max(value));
        let (lowest, highest) = values.filter(|value| value.is_finite()).fold((self.least, self.most), range);
        let margin = 0.01 * (self.most - self.least);
        let outside = [self.least - lowest > margin, highest - self.most > margin];
        let [lowest, least, most, highest] = [lowest, self.least, self.most, highest].map(number);
        [
            if outside[0] { format!("{lowest} < {least}") } else { least },
            if outside[1] { format!("{most} < {highest}") } else { most },
        ]
    }

    pub(crate) fn colour(&self, value: f32) -> Rgb {
        if !value.is_finite() {
            return MISSING;
        }
        let width = self.most - self.least;
        let share = if width > 0.0 { ((value - self.least) / width).clamp(0.0, 1.0) } else { 0.5 };
        let share = (share * STEPS).round() / STEPS;
        let position = share * (self.table.len() - 1) as f32;
        let first = (position as usize).min(self.table.len() - 2);
        let (from, to) = (parts(self.table[first]), parts(self.table[first + 1]));
        std::array::from_fn(|channel| {
            let (from, to) = (f32::from(from[channel]), f32::from(to[channel]));
            (from + (position - first as f32) * (to - from)).round() as u8
        })
    }
}

fn parts(colour: u32) -> Rgb {
    let [_, red, green, blue] = colour.to_be_bytes();
    [red, green, blue]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_zero_and_missing_values_have_their_colours() {
        let positive = Scale::of([0.0, 2.0, f32::NAN].into_iter());
        assert_eq!([positive.colour(0.0), positive.colour(2.0)], [[0x44, 0x01, 0x54], [0xfd, 0xe7, 0x25]]);
        let signed = Scale::of([-1.0, 2.0].into_iter());
        assert_eq!((signed.least, signed.most, signed.colour(0.0)), (-2.0, 2.0, [0xdd; 3]));
        assert_eq!(positive.colour(f32::NAN), MISSING);
        let error = Scale::signed([0.5, 2.0].into_iter());
        assert_eq!((error.least, error.most, error.stops().nth(4)), (-2.0, 2.0, Some(error.colour(0.0))));
        assert_eq!(Scale::of([5.0].into_iter()).colour(5.0), Scale::of([7.0].into_iter()).colour(7.0));
    }

    #[test]
    fn values_outside_the_range_are_noted_at_the_ends() {
        let (scale, word) = (Scale::of([1.0, 3.0].into_iter()), |value: f32| value.to_string());
        assert_eq!(scale.ends([1.0, 2.0, f32::NAN].into_iter(), word), ["1", "3"]);
        assert_eq!(scale.ends([0.99, 3.01].into_iter(), word), ["1", "3"]);
        assert_eq!(scale.ends([-4.0, 3.5].into_iter(), word), ["-4 < 1", "3 < 3.5"]);
    }

    #[test]
    fn lightness_never_falls_along_viridis() {
        let scale = Scale::of([0.0, 1.0].into_iter());
        let light = |share: f32| {
            let [red, green, blue] = scale.colour(share).map(f32::from);
            0.2126 * red + 0.7152 * green + 0.0722 * blue
        };
        assert!((0..100).all(|k| light((k + 1) as f32 / 100.0) >= light(k as f32 / 100.0)));
    }
}
