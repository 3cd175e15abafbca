//! The axes of charts: a range with ticks at round numbers.

/// The scaling of an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Scaling {
    Linear,
    /// Values of zero and below are not drawn.
    Logarithmic,
}

/// The range of an axis, with its ticks at round numbers.
#[derive(Debug, PartialEq)]
pub(crate) struct Axis {
    least: f64,
    most: f64,
    scaling: Scaling,
    pub(crate) ticks: Vec<f64>,
}

impl Axis {
    /// About five steps of 1, 2 or 5 times a power of ten; of at least 1 with `integers`.
    pub(crate) fn linear([least, most]: [f64; 2], integers: bool) -> Axis {
        let (least, most) = if most > least { (least, most) } else { (least - 0.5, least + 0.5) };
        let rough = (most - least) / 5.0;
        let power = 10f64.powf(rough.log10().floor());
        let step = power * [1.0, 2.0, 5.0].into_iter().find(|unit| unit * power >= rough * 0.999).unwrap_or(10.0);
        let step = if integers { step.max(1.0) } else { step };
        let first = (least / step - 1e-9).ceil() as i64;
        let last = (most / step + 1e-9).floor() as i64;
        Axis { least, most, scaling: Scaling::Linear, ticks: (first..=last).map(|k| k as f64 * step).collect() }
    }

    /// Ends that are given, without ticks.
    pub(crate) fn between([least, most]: [f64; 2], scaling: Scaling) -> Axis {
        let (least, most) = if most > least { (least, most) } else { (least - 0.5, least + 0.5) };
        Axis { least, most, scaling, ticks: Vec::new() }
    }

    /// The ends are 1, 2 or 5 times a power of ten. The ticks are all such numbers, or powers of ten if these are too many.
    pub(crate) fn logarithmic([least, most]: [f64; 2]) -> Axis {
        let powers = (least.log10().floor() as i32 - 1)..=(most.log10().ceil() as i32 + 1);
        let fine: Vec<f64> = powers.flat_map(|power| [1.0, 2.0, 5.0].map(|unit| unit * 10f64.powi(power))).collect();
        let below = fine.iter().copied().filter(|tick| *tick <= least * 1.000_001).fold(f64::MIN_POSITIVE, f64::max);
        let above = fine.iter().copied().filter(|tick| *tick >= most * 0.999_999).fold(f64::MAX, f64::min);
        let inside: Vec<f64> = fine.into_iter().filter(|tick| (below..=above).contains(tick)).collect();
        let decades = (above / below).log10();
        let stride = ((decades / 6.0).ceil() as i32).max(1);
        let whole = |tick: &f64| {
            let power = tick.log10();
            (power - power.round()).abs() < 1e-9 && power.round() as i32 % stride == 0
        };
        let ticks = if decades <= 2.05 { inside } else { inside.into_iter().filter(whole).collect() };
        Axis { least: below, most: above, scaling: Scaling::Logarithmic, ticks }
    }

    /// Its lower end.
    pub(crate) fn least(&self) -> f64 {
        self.least
    }

    /// Its upper end.
    pub(crate) fn most(&self) -> f64 {
        self.most
    }

    /// The position of a value on the axis: 0 at its lower end, 1 at its upper end.
    pub(crate) fn share(&self, value: f64) -> f64 {
        match self.scaling {
            Scaling::Linear => (value - self.least) / (self.most - self.least),
            Scaling::Logarithmic => (value / self.least).ln() / (self.most / self.least).ln(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_numbers_inside_the_range() {
        assert_eq!(Axis::linear([0.0, 23.0], false).ticks, [0.0, 5.0, 10.0, 15.0, 20.0]);
        assert_eq!(Axis::linear([3.0, 3.0], false).ticks.len(), 5, "2.6 to 3.4");
        assert_eq!(Axis::linear([1.0, 3.0], true).ticks, [1.0, 2.0, 3.0], "there is no epoch 1.5");
        assert_eq!(Axis::linear([0.0, 1.04], true).ticks, [0.0, 1.0]);
        assert_eq!(Axis::linear([1.0, 1.0], true).ticks, [1.0]);
        let narrow = Axis::logarithmic([0.013, 0.4]);
        assert_eq!((narrow.least, narrow.most), (0.01, 0.5));
        assert_eq!(narrow.ticks.len(), 6, "{:?}", narrow.ticks);
        let wide = Axis::logarithmic([3e-9, 0.9]);
        assert!(wide.ticks.len() <= 7 && wide.ticks.iter().all(|tick| (tick.log10() % 1.0).abs() < 1e-9), "{wide:?}");
        assert_eq!((narrow.share(0.01), narrow.share(0.5)), (0.0, 1.0));
    }
}
