//! Piecewise cubic Hermite profiles that never overshoot their knots (Fritsch and Butland 1984), on uniform knots.
//!
//! The slope at an inner knot is the harmonic mean of the slopes of its two chords, and zero where these have opposite
//! signs. The slope at an end knot is the three-point formula, limited to preserve the shape. `pchip` of MATLAB and
//! SciPy uses the same slopes.

/// Heights over x; outside the end knots the profile is horizontal.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    first: f64,
    spacing: f64,
    heights: Vec<f64>,
    slopes: Vec<f64>,
}

impl Profile {
    /// The profile with `heights` at `first + k · spacing`; panics with fewer than three knots.
    pub fn new(first: f64, spacing: f64, heights: Vec<f64>) -> Self {
        let knots = heights.len();
        assert!(knots >= 3, "a profile needs three knots, not {knots}");
        let chords: Vec<f64> = heights.windows(2).map(|pair| (pair[1] - pair[0]) / spacing).collect();
        let mut slopes = vec![end_slope(chords[0], chords[1])];
        slopes.extend(chords.windows(2).map(|pair| harmonic_mean(pair[0], pair[1])));
        slopes.push(end_slope(chords[knots - 2], chords[knots - 3]));
        Self { first, spacing, heights, slopes }
    }

    /// Height and slope at `x`.
    pub fn at(&self, x: f64) -> (f64, f64) {
        let (last, position) = (self.heights.len() - 1, (x - self.first) / self.spacing); // in units of the spacing
        if position <= 0.0 {
            return (self.heights[0], 0.0);
        }
        if position >= last as f64 {
            return (self.heights[last], 0.0);
        }
        let knot = (position as usize).min(last - 1);
        let t = position - knot as f64;
        let [low, high] = [self.heights[knot], self.heights[knot + 1]];
        let [start, end] = [self.slopes[knot] * self.spacing, self.slopes[knot + 1] * self.spacing];
        let cubic = start + end - 2.0 * (high - low);
        let square = 3.0 * (high - low) - 2.0 * start - end;
        let height = low + t * (start + t * (square + t * cubic));
        let slope = (start + t * (2.0 * square + t * 3.0 * cubic)) / self.spacing;
        (height, slope)
    }
}

fn harmonic_mean(left: f64, right: f64) -> f64 {
    if left * right > 0.0 { 2.0 * left * right / (left + right) } else { 0.0 }
}

/// Slope of the parabola through three points; zero if its sign differs from that of the chord, and at most three times
/// the chord where the two chords have opposite signs.
fn end_slope(near: f64, far: f64) -> f64 {
    let slope = 1.5 * near - 0.5 * far;
    if slope * near <= 0.0 {
        0.0
    } else if near * far <= 0.0 && slope.abs() > 3.0 * near.abs() {
        3.0 * near
    } else {
        slope
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `scipy.interpolate.PchipInterpolator([0, 2, 4, 6, 8], [3, 1, 4, 4, 9])` at 0.5, 1.7, 3, 5, 6.4 and 7.9.
    #[test]
    fn values_equal_those_of_scipy() {
        let profile = Profile::new(0.0, 2.0, vec![3.0, 1.0, 4.0, 4.0, 9.0]);
        let table = [(0.5, 2.0546875), (1.7, 1.0354375), (3.0, 2.5), (5.0, 4.0), (6.4, 4.28), (7.9, 8.6253125)];
        for (x, wanted) in table {
            let found = profile.at(x).0;
            assert!((found - wanted).abs() < 1e-14, "at {x}: found {found}, wanted {wanted}");
        }
    }

    #[test]
    fn a_profile_stays_within_the_range_of_its_knots() {
        let heights = vec![0.0, 7.5, 7.4, 0.1, 3.0, 3.1, 0.0, 7.5];
        let profile = Profile::new(-1.0, 0.3, heights);
        for step in 0..=1000 {
            let (height, _) = profile.at(-1.2 + 2.5 * f64::from(step) / 1000.0);
            assert!((-1e-14..=7.5 + 1e-14).contains(&height), "height {height}");
        }
    }

    #[test]
    fn the_slope_is_the_derivative_of_the_height_and_the_profile_is_horizontal_outside_its_knots() {
        let profile = Profile::new(0.0, 1.0, vec![2.0, 0.0, 1.0, 5.0]);
        for x in [0.2, 0.9, 1.4, 2.7] {
            let difference = (profile.at(x + 1e-6).0 - profile.at(x - 1e-6).0) / 2e-6;
            assert!((difference - profile.at(x).1).abs() < 1e-8, "at {x}");
        }
        assert_eq!((profile.at(-3.0), profile.at(3.5)), ((2.0, 0.0), (5.0, 0.0)));
    }
}
