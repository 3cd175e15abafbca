//! Piecewise cubic profiles on evenly spaced knots with given heights and slopes (cubic Hermite elements).

/// Heights over x; outside the end knots the profile is horizontal.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    first: f64,
    spacing: f64,
    heights: Vec<f64>,
    /// Factors of 1, t, t², t³ between a knot and the next one; t runs from 0 to 1.
    cubics: Vec<[f64; 4]>,
}

/// Cells of a [`Floor`] between two knots.
const CELLS: usize = 64;
/// By how much the bounds of a [`Floor`] are lower because heights and bounds are rounded, relative to the spacing.
const ROUNDING: f64 = 1e-9;

/// Lower bounds of the heights of a profile, cell by cell. They cost one product, where a height costs two divisions.
#[derive(Clone, Debug, PartialEq)]
pub struct Floor {
    first: f64,
    per_length: f64,
    heights: Vec<f64>,
}

impl Floor {
    /// A number that is at most the height at `x`.
    #[inline]
    pub fn below(&self, x: f64) -> f64 {
        let cell = ((x - self.first) * self.per_length).max(0.0) as usize;
        self.heights[cell.min(self.heights.len() - 1)]
    }
}

impl Profile {
    /// The profile with `heights` and `slopes` at `first + k · spacing`; panics with fewer than two knots, or when the
    /// numbers of heights and slopes differ.
    pub fn new(first: f64, spacing: f64, heights: Vec<f64>, slopes: &[f64]) -> Self {
        let knots = heights.len();
        assert!(knots >= 2, "a profile needs two knots, not {knots}");
        assert!(knots == slopes.len(), "a profile with {knots} heights cannot have {} slopes", slopes.len());
        let cubic = |knot: usize| {
            let [low, high] = [heights[knot], heights[knot + 1]];
            let [start, end] = [slopes[knot] * spacing, slopes[knot + 1] * spacing];
            [low, start, 3.0 * (high - low) - 2.0 * start - end, start + end - 2.0 * (high - low)]
        };
        let cubics = (0..knots - 1).map(cubic).collect();
        Self { first, spacing, heights, cubics }
    }

    /// Height and slope at `x`.
    #[inline]
    pub fn at(&self, x: f64) -> (f64, f64) {
        let (last, position) = (self.heights.len() - 1, (x - self.first) / self.spacing); // in units of the spacing
        if position <= 0.0 {
            return (self.heights[0], 0.0);
        }
        if position >= last as f64 {
            return (self.heights[last], 0.0);
        }
        let knot = (position as usize).min(last - 1);
        let (t, [constant, linear, square, cubic]) = (position - knot as f64, self.cubics[knot]);
        let height = constant + t * (linear + t * (square + t * cubic));
        let slope = (linear + t * (2.0 * square + t * 3.0 * cubic)) / self.spacing;
        (height, slope)
    }

    /// The height of the lowest point.
    pub fn lowest(&self) -> f64 {
        let knots = self.heights.iter().copied().fold(f64::INFINITY, f64::min);
        (0..self.heights.len() - 1).fold(knots, |lowest, knot| {
            let [constant, linear, square, cubic] = self.cubics[knot];
            // The slope of the cubic is zero at t = −linear / (square ± root); this form has no cancellation at a minimum.
            let root = (square * square - 3.0 * linear * cubic).sqrt();
            let t = -linear / (square + root);
            let height = constant + t * (linear + t * (square + t * cubic));
            if (0.0..=1.0).contains(&t) { lowest.min(height) } else { lowest }
        })
    }

    /// Greatest |second derivative| between the end knots.
    pub fn bend(&self) -> f64 {
        let ends = (0..self.heights.len() - 1).flat_map(|knot| {
            let [_, _, square, cubic] = self.cubics[knot];
            [2.0 * square, 2.0 * square + 6.0 * cubic] // it is linear in between
        });
        ends.map(f64::abs).fold(0.0, f64::max) / (self.spacing * self.spacing)
    }

    /// Lower bounds of the heights, by the cell in which a point lies.
    pub fn floor(&self) -> Floor {
        let cells = CELLS * self.cubics.len();
        let (width, last) = (self.spacing / CELLS as f64, self.spacing * self.cubics.len() as f64);
        let height = |from_first: f64| self.at(self.first + from_first.clamp(0.0, last)).0;
        let cell = |index: usize| {
            // Wider than the cell, so that rounding cannot put a point beside it.
            let (from, to) = ((index as f64 - 0.01) * width, (index as f64 + 1.01) * width);
            height(from).min(height(to)) - 0.125 * self.bend() * (to - from) * (to - from) - ROUNDING * self.spacing
        };
        Floor { first: self.first, per_length: 1.0 / width, heights: (0..cells).map(cell).collect() }
    }

    /// Whether `x` is between the end knots.
    pub fn spans(&self, x: f64) -> bool {
        (self.first..=self.first + self.spacing * (self.heights.len() - 1) as f64).contains(&x)
    }

    /// The same profile, `distance` higher.
    #[must_use]
    pub fn raised(mut self, distance: f64) -> Self {
        self.heights.iter_mut().for_each(|height| *height += distance);
        self.cubics.iter_mut().for_each(|cubic| cubic[0] += distance);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Profile {
        Profile::new(-1.0, 0.5, vec![2.0, 0.0, 1.0, 1.0, 5.0], &[-3.0, -1.0, 0.5, -4.0, 2.0])
    }

    #[test]
    fn a_profile_has_the_heights_and_slopes_of_its_knots() {
        for (knot, wanted) in [(2.0, -3.0), (0.0, -1.0), (1.0, 0.5), (1.0, -4.0), (5.0, 2.0)].into_iter().enumerate() {
            // just inside the ends, where the profile is horizontal outside
            let inside = [1e-12, 0.0, 0.0, 0.0, -1e-12][knot];
            let found = example().at(-1.0 + 0.5 * knot as f64 + inside);
            assert!((found.0 - wanted.0).abs() < 1e-10 && (found.1 - wanted.1).abs() < 1e-10, "knot {knot}: {found:?}");
        }
        assert_eq!((example().at(-3.0), example().at(1.5)), ((2.0, 0.0), (5.0, 0.0)));
    }

    #[test]
    fn the_slope_is_the_derivative_of_the_height() {
        for x in [-0.8, -0.1, 0.4, 0.7] {
            let difference = (example().at(x + 1e-6).0 - example().at(x - 1e-6).0) / 2e-6;
            assert!((difference - example().at(x).1).abs() < 1e-8, "at {x}");
        }
    }

    #[test]
    fn the_floor_is_below_the_profile_and_near_to_it() {
        let (profile, floor) = (example(), example().floor());
        for step in -600..=600 {
            let x = f64::from(step) * 2.5e-3; // from −1.5 to 1.5, the ends and all knots among them
            let distance = profile.at(x).0 - floor.below(x);
            assert!(distance > 0.0 && distance < 0.2, "{distance} at {x}");
        }
        assert!(floor.below(f64::NAN).is_finite() && floor.below(f64::INFINITY) < 5.0);
    }

    #[test]
    fn the_bend_bounds_all_second_differences() {
        let (profile, step) = (example(), 1e-4);
        let second = |x: f64| (profile.at(x - step).0 - 2.0 * profile.at(x).0 + profile.at(x + step).0) / (step * step);
        // between two knots; across a knot the second derivative jumps
        let inside = |knot: i32| (1..99).map(move |part| -1.0 + 0.5 * (f64::from(knot) + 0.01 * f64::from(part)));
        let greatest = (0..4).flat_map(inside).map(|x| second(x).abs()).fold(0.0, f64::max);
        let bend = profile.bend();
        assert!(greatest <= bend + 1e-6 && greatest > 0.9 * bend, "bend {bend}, differences up to {greatest}");
        assert!(profile.spans(-1.0) && profile.spans(1.0) && !profile.spans(-1.01) && !profile.spans(1.01));
    }

    #[test]
    fn the_lowest_point_is_below_all_samples_and_moves_with_the_profile() {
        let sampled =
            (0..=20_000).map(|step| example().at(-1.0 + 1e-4 * f64::from(step)).0).fold(f64::INFINITY, f64::min);
        let lowest = example().lowest();
        // a sample is at most half a spacing of 1e-4 away from the lowest point; the curvature is below 100
        assert!(lowest <= sampled && sampled - lowest < 100.0 * 0.5 * 0.5e-4f64.powi(2), "{lowest}, sampled {sampled}");
        assert!((example().raised(3.0).lowest() - lowest - 3.0).abs() < 1e-14);
        assert_eq!(Profile::new(0.0, 1.0, vec![4.0; 3], &[0.0; 3]).lowest(), 4.0);
    }
}
