//! A rigid frictionless die that presses on the top nodes of a block, and the prior of its profile.
//!
//! The prior was identified from pictures of 16 dies of the public file. Nine knots are 6.25 mm apart, and the profile is
//! a cubic between them. Both end knots are 7.5 mm above the lowest knot. The seven inner knots are uniform from 1.5 to
//! 7.5 mm, and the lowest of them is then moved to 0. The slopes are not random: those of the public dies are an affine
//! function of the heights of the inner knots. `RISES` is this function, fitted to the 16 dies. Their profiles then agree
//! with the pictures within 0.04 mm rms, and within 0.06 mm for a die that was not used in the fit. `docs/problems.md`
//! compares more numbers.

use rand::Rng;

use crate::hermite::Profile;

/// Knots of a profile, ends included.
pub const KNOTS: usize = 9;
/// Knots between the ends.
pub const INNER_KNOTS: usize = KNOTS - 2;
/// Height of the inner knots above the lowest one, at least, relative to the height of the ends.
const LEAST: f64 = 0.2;
/// Height of the ends to which the first column of `RISES` belongs, in mm.
const PUBLIC_AMPLITUDE: f64 = 7.5;
/// Slope times spacing at each knot: a constant, and the factors of the heights of the inner knots above the lowest one.
const RISES: [[f64; INNER_KNOTS + 1]; KNOTS] = [
    [-3.477, 2.660, -1.321, 0.454, -0.257, 0.099, -0.048, -0.034],
    [-5.178, -0.322, 0.914, -0.229, 0.078, -0.022, 0.003, -0.005],
    [2.105, -0.952, 0.317, 0.615, -0.183, 0.057, -0.017, 0.003],
    [-0.601, 0.286, -0.873, -0.114, 0.980, -0.282, 0.072, -0.015],
    [-0.054, -0.052, 0.165, -0.675, -0.113, 0.827, -0.202, 0.053],
    [0.522, 0.019, -0.067, 0.216, -0.881, 0.147, 0.713, -0.189],
    [-2.124, -0.006, 0.014, -0.059, 0.252, -0.830, -0.027, 0.793],
    [6.773, 0.008, -0.008, 0.039, -0.111, 0.317, -1.020, 0.363],
    [0.199, 0.008, 0.033, -0.051, 0.184, -0.472, 1.160, -2.290],
];

/// The profile whose end knots have the height `amplitude` and whose inner knots have the heights `inner`. The
/// first knot is at x = `first`, and the last one is `length` farther.
pub fn profile(first: f64, length: f64, amplitude: f64, inner: [f64; INNER_KNOTS]) -> Profile {
    let spacing = length / (KNOTS - 1) as f64;
    let mut heights = vec![amplitude; KNOTS];
    heights[1..KNOTS - 1].copy_from_slice(&inner);
    let slopes = RISES.map(|[constant, factors @ ..]| {
        let rise: f64 = factors.iter().zip(&inner).map(|(factor, height)| factor * height).sum();
        (constant * amplitude / PUBLIC_AMPLITUDE + rise) / spacing
    });
    Profile::new(first, spacing, heights, &slopes)
}

/// Draws the heights of the inner knots. The lowest one is 0.
pub fn draw(amplitude: f64, random: &mut impl Rng) -> [f64; INNER_KNOTS] {
    let mut uniform = || (random.next_u64() >> 11) as f64 * (-53f64).exp2();
    let mut inner = [0.0; INNER_KNOTS].map(|_| amplitude * (LEAST + (1.0 - LEAST) * uniform()));
    let lowest = (0..INNER_KNOTS).fold(0, |lowest, knot| if inner[knot] < inner[lowest] { knot } else { lowest });
    inner[lowest] = 0.0;
    inner
}

/// A profile that moves downwards at a constant speed.
#[derive(Clone, Debug, PartialEq)]
pub struct Die {
    /// The profile at t = 0.
    pub profile: Profile,
    /// Downward speed, mm / s
    pub speed: f64,
}

impl Die {
    /// Height of the die above the point (x, y) at `time`; it is negative when the point is inside the die.
    pub fn gap(&self, [x, y]: [f64; 2], time: f64) -> f64 {
        self.profile.at(x).0 - self.speed * time - y
    }

    /// The point of the profile nearest to a point inside the die; `None` for a point outside.
    ///
    /// Three Newton steps find it: the depth reached in one time step is far smaller than the radius of curvature.
    pub(crate) fn projection(&self, [x, y]: [f64; 2], time: f64) -> Option<[f64; 2]> {
        const STEPS: usize = 3;
        if self.gap([x, y], time) >= 0.0 {
            return None;
        }
        let drop = self.speed * time;
        let mut foot = x;
        for _ in 0..STEPS {
            let (height, slope) = self.profile.at(foot);
            // foot of the perpendicular from (x, y) on the tangent
            foot += ((x - foot) + slope * (y - (height - drop))) / (1.0 + slope * slope);
        }
        Some([foot, self.profile.at(foot).0 - drop])
    }
}
