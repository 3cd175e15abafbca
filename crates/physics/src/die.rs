//! A rigid frictionless die that presses on the top nodes of a block.

use crate::pchip::Profile;

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
