//! A random body in space: a bent, twisted and tapered bar with a waist, between a square and a round cross-section.
//!
//! The unit cube is mapped by (s, a, b) → c(s) + p e₁(s) + q e₂(s). The centre line c is an arc that starts at the
//! origin along x. The frame e₁, e₂ follows the arc without turning about it (parallel transport) and is turned by the
//! twist. With A = 2a − 1, B = 2b − 1 and the size w(s),
//!   p = w half₁ A √(1 − r B²/2),  q = w half₂ B √(1 − r A²/2):
//! r = 0 is a rectangle, r = 1 would be an ellipse. w(s) = (1 − taper s) (1 − waist exp(−((s − place) / 0.15)²)).

use rand::Rng;

use crate::random_field::uniform;

/// Width of the waist, as a part of the length.
const WAIST_WIDTH: f64 = 0.15;

/// The numbers that make a body.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Body {
    /// Length of the centre line.
    pub length: f64,
    /// Half of the width and of the height of the cross-section at s = 0.
    pub half: [f64; 2],
    /// How much smaller the end is than the beginning.
    pub taper: f64,
    /// Depth of the waist, and where it is along s.
    pub waist: [f64; 2],
    /// Angle of the arc, and the direction in which it bends, an angle from y to z.
    pub bend: [f64; 2],
    /// Angle by which the end is turned about the centre line.
    pub twist: f64,
    /// r, from 0 to below 1.
    pub rounding: f64,
}

/// The largest values of the random numbers of a body.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranges {
    /// Length.
    pub length: f64,
    /// Least and greatest half width and half height.
    pub half: [f64; 2],
    /// Taper.
    pub taper: f64,
    /// Depth of the waist.
    pub waist: f64,
    /// Angle of the arc.
    pub bend: f64,
    /// Twist, to both sides.
    pub twist: f64,
}

impl Body {
    /// A straight bar of a rectangular cross-section.
    pub fn straight(length: f64, half: [f64; 2]) -> Self {
        Self { length, half, taper: 0.0, waist: [0.0, 0.5], bend: [0.0; 2], twist: 0.0, rounding: 0.0 }
    }

    /// A random body, all numbers uniform.
    pub fn draw(ranges: &Ranges, random: &mut impl Rng) -> Self {
        let mut between = |low: f64, high: f64| low + (high - low) * uniform(random);
        let [least, most] = ranges.half;
        Self {
            length: ranges.length,
            half: [between(least, most), between(least, most)],
            taper: between(0.0, ranges.taper),
            waist: [between(0.0, ranges.waist), between(0.3, 0.7)],
            bend: [between(0.0, ranges.bend), between(0.0, std::f64::consts::TAU)],
            twist: between(-ranges.twist, ranges.twist),
            rounding: between(0.0, 0.8),
        }
    }

    /// Where the point (s, a, b) of the unit cube lies.
    pub fn position(&self, [s, a, b]: [f64; 3]) -> [f64; 3] {
        let [angle, direction] = self.bend;
        let (along, aside) = if angle.abs() < 1e-8 {
            (s, 0.0) // (1 − cos θ s) / θ = θ s²/2, below the rounding of s
        } else {
            ((angle * s).sin() / angle, (1.0 - (angle * s).cos()) / angle)
        };
        let (sine, cosine) = (angle * s).sin_cos();
        let bending = [0.0, direction.cos(), direction.sin()]; // d
        let fixed = [0.0, -direction.sin(), direction.cos()]; // e_x × d, normal to the plane of the arc
        let normal = [-sine, cosine * bending[1], cosine * bending[2]];
        let (p, q) = self.in_section(s, a, b);
        // Components along the normal and the fixed direction of p e₁ + q e₂.
        let (inward, beside) = (p * direction.cos() + q * direction.sin(), q * direction.cos() - p * direction.sin());
        let centre = [self.length * along, self.length * aside * bending[1], self.length * aside * bending[2]];
        std::array::from_fn(|axis| centre[axis] + inward * normal[axis] + beside * fixed[axis])
    }

    /// p and q after the twist.
    fn in_section(&self, s: f64, a: f64, b: f64) -> (f64, f64) {
        let [depth, place] = self.waist;
        let waist = 1.0 - depth * (-((s - place) / WAIST_WIDTH).powi(2)).exp();
        let size = (1.0 - self.taper * s) * waist;
        let (a, b) = (2.0 * a - 1.0, 2.0 * b - 1.0);
        let p = size * self.half[0] * a * (1.0 - 0.5 * self.rounding * b * b).sqrt();
        let q = size * self.half[1] * b * (1.0 - 0.5 * self.rounding * a * a).sqrt();
        let (sine, cosine) = (self.twist * s).sin_cos();
        (p * cosine - q * sine, p * sine + q * cosine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hexahedron::{Lattice, dot, points};
    use crate::random_field::stream;

    const RANGES: Ranges = Ranges { length: 1.0, half: [0.08, 0.14], taper: 0.4, waist: 0.3, bend: 1.2, twist: 1.0 };

    #[test]
    fn the_centre_line_is_an_arc_of_the_given_length_with_sections_at_right_angles() {
        let body = Body::draw(&RANGES, &mut stream(1, 0));
        let at = |s: f64| body.position([s, 0.5, 0.5]);
        let pieces = 2000;
        let length: f64 = (0..pieces)
            .map(|k| {
                let [one, two] = [k, k + 1].map(|k| at(f64::from(k) / f64::from(pieces)));
                let step: [f64; 3] = std::array::from_fn(|axis| two[axis] - one[axis]);
                dot(step, step).sqrt()
            })
            .sum();
        assert!((length - body.length).abs() < 1e-6, "{length}");
        assert_eq!(at(0.0), [0.0; 3]);
        for s in [0.1, 0.5, 0.9] {
            let (before, after, aside) = (at(s - 1e-5), at(s + 1e-5), body.position([s, 0.9, 0.2]));
            let tangent: [f64; 3] = std::array::from_fn(|axis| (after[axis] - before[axis]) / 2e-5);
            let across: [f64; 3] = std::array::from_fn(|axis| aside[axis] - at(s)[axis]);
            assert!(dot(tangent, across).abs() < 1e-9, "{}", dot(tangent, across));
        }
    }

    #[test]
    fn no_drawn_body_is_folded() {
        let lattice = Lattice { cells: [4, 2, 2] };
        for index in 0..200 {
            let body = Body::draw(&RANGES, &mut stream(2, index));
            let positions = lattice.mapped(|place| body.position(place));
            for (cell, nodes) in lattice.cell_nodes().iter().enumerate() {
                points(cell, &nodes.map(|node| positions[node])).unwrap_or_else(|error| panic!("{body:?}: {error}"));
            }
        }
    }
}
