//! Not-a-knot cubic splines on uniform knots, with extrapolation, as in MATLAB's `interp2(…, 'spline')`.
//!
//! Second derivatives m solve m₋ + 4m + m₊ = 6 (y₋ − 2y + y₊) in units of the spacing; the not-a-knot condition
//! m₀ − 2m₁ + m₂ = 0 makes the first equation 6 m₁ = 6 (y₀ − 2y₁ + y₂), and the last equation mirrors it.

/// Interpolation from one set of uniform knots to fixed targets.
#[derive(Clone, Debug)]
pub struct Spline {
    knots: usize,
    /// Pivots of the tridiagonal elimination.
    pivots: Vec<f64>,
    /// For each target: its interval, and its position within that interval in units of the spacing.
    targets: Vec<(usize, f64)>,
}

impl Spline {
    /// Interpolates from `knots` values at `first + i · spacing` to `targets`; panics with fewer than four knots.
    pub fn new(knots: usize, first: f64, spacing: f64, targets: impl IntoIterator<Item = f64>) -> Self {
        assert!(knots >= 4, "a not-a-knot spline needs four knots, not {knots}");
        let mut pivots = vec![4.0];
        for row in 1..knots - 4 {
            pivots.push(4.0 - 1.0 / pivots[row - 1]);
        }
        let locate = |target: f64| {
            let position = (target - first) / spacing;
            let interval = position.floor().clamp(0.0, (knots - 2) as f64);
            (interval as usize, position - interval)
        };
        Self { knots, pivots, targets: targets.into_iter().map(locate).collect() }
    }

    /// Values at the targets.
    pub fn line(&self, values: &[f64]) -> Vec<f64> {
        let curvature = self.curvature(values);
        let at = |&(interval, right): &(usize, f64)| {
            let left = 1.0 - right;
            left * values[interval]
                + right * values[interval + 1]
                + ((left.powi(3) - left) * curvature[interval] + (right.powi(3) - right) * curvature[interval + 1])
                    / 6.0
        };
        self.targets.iter().map(at).collect()
    }

    /// `[targets, targets]` values from `[knots, knots]` values: interpolation along both axes.
    pub fn plane(&self, values: &[f64]) -> Vec<f64> {
        let along_rows = self.lines_transposed(values); // [targets, knots]
        self.lines_transposed(&along_rows)
    }

    /// Interpolates each row and writes it as a column; a second call restores the order of the axes.
    fn lines_transposed(&self, values: &[f64]) -> Vec<f64> {
        let lines = values.len() / self.knots;
        let mut transposed = vec![0.0; lines * self.targets.len()];
        for (line, row) in values.chunks_exact(self.knots).enumerate() {
            for (target, value) in self.line(row).into_iter().enumerate() {
                transposed[target * lines + line] = value;
            }
        }
        transposed
    }

    /// Second derivatives at the knots, times spacing².
    fn curvature(&self, values: &[f64]) -> Vec<f64> {
        let last = self.knots - 1;
        let difference = |knot: usize| values[knot - 1] - 2.0 * values[knot] + values[knot + 1];
        let mut curvature: Vec<f64> = vec![0.0; self.knots];
        (curvature[1], curvature[last - 1]) = (difference(1), difference(last - 1));
        for knot in 2..last - 1 {
            let eliminated = if knot == 2 { curvature[1] } else { curvature[knot - 1] / self.pivots[knot - 3] };
            curvature[knot] = 6.0 * difference(knot) - eliminated;
        }
        for knot in (2..last - 1).rev() {
            curvature[knot] = (curvature[knot] - curvature[knot + 1]) / self.pivots[knot - 2];
        }
        curvature[0] = 2.0 * curvature[1] - curvature[2];
        curvature[last] = 2.0 * curvature[last - 1] - curvature[last - 2];
        curvature
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cubics_are_reproduced_between_and_outside_the_knots() {
        let cubic = |x: f64| 1.0 - 2.0 * x + 3.0 * x * x - 4.0 * x.powi(3);
        for knots in [4, 5, 6, 9, 30] {
            let spacing = 1.0 / knots as f64;
            let values: Vec<f64> = (0..knots).map(|i| cubic((i as f64 + 0.5) * spacing)).collect();
            let targets: Vec<f64> = (0..=20).map(|i| i as f64 / 20.0).collect();
            let found = Spline::new(knots, 0.5 * spacing, spacing, targets.iter().copied()).line(&values);
            for (x, value) in targets.iter().zip(found) {
                let error = (value - cubic(*x)).abs();
                assert!(error < 1e-12, "{knots} knots, x = {x}: error {error:e}");
            }
        }
    }

    #[test]
    fn smooth_functions_converge_with_order_four() {
        let error = |knots: usize| {
            let spacing = 1.0 / (knots - 1) as f64;
            let values: Vec<f64> = (0..knots).map(|i| (3.0 * i as f64 * spacing).sin()).collect();
            let targets: Vec<f64> = (0..500).map(|i| i as f64 / 499.0).collect();
            let found = Spline::new(knots, 0.0, spacing, targets.iter().copied()).line(&values);
            let square: f64 = targets.iter().zip(found).map(|(x, y)| (y - (3.0 * x).sin()).powi(2)).sum();
            square.sqrt()
        };
        let observed = (error(65) / error(129)).log2();
        assert!((observed - 4.0).abs() < 0.1, "observed order {observed:.3}");
    }

    #[test]
    fn interpolation_in_a_plane_preserves_the_order_of_the_axes() {
        let knots = 6;
        let plane: Vec<f64> = (0..36).map(|index| (index / knots) as f64 + 10.0 * (index % knots) as f64).collect();
        let found = Spline::new(knots, 0.0, 1.0, [1.5, 4.0]).plane(&plane);
        for (value, expected) in found.iter().zip([16.5, 41.5, 19.0, 44.0]) {
            assert!((value - expected).abs() < 1e-13, "found {value}, expected {expected}");
        }
    }
}
