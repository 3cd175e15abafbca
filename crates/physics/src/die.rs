//! A rigid frictionless die that comes down on the top nodes of a block.

use crate::pchip::Profile;

/// A profile that moves downwards at a constant speed.
#[derive(Clone, Debug, PartialEq)]
pub struct Die {
    /// Where it stands at t = 0.
    pub profile: Profile,
    /// mm / s
    pub speed: f64,
}

impl Die {
    /// Height of the die above (x, y) at `time`; below zero the point is inside.
    pub fn gap(&self, [x, y]: [f64; 2], time: f64) -> f64 {
        self.profile.at(x).0 - self.speed * time - y
    }

    /// The nearest point on the profile for one that is inside the die, none for one outside.
    ///
    /// Newton steps along the normal: the depth within one time step is far below the radius of curvature.
    pub(crate) fn pushed_out(&self, [x, y]: [f64; 2], time: f64) -> Option<[f64; 2]> {
        const STEPS: usize = 3;
        if self.gap([x, y], time) >= 0.0 {
            return None;
        }
        let drop = self.speed * time;
        let mut along = x;
        for _ in 0..STEPS {
            let (height, slope) = self.profile.at(along);
            // foot of the perpendicular on the tangent at `along`
            along += ((x - along) + slope * (y - (height - drop))) / (1.0 + slope * slope);
        }
        Some([along, self.profile.at(along).0 - drop])
    }
}
