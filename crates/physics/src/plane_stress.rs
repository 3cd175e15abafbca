//! Elastic, perfectly plastic metal in plane stress: von Mises yield, associated flow (Simo and Hughes 1998, 3.4).
//!
//! With p = σxx + σyy, d = σxx − σyy and τ = σxy the squared von Mises stress is p²/4 + 3d²/4 + 3τ². A trial stress
//! outside the yield surface returns to it along the flow direction: p ← p / (1 + αλ), (d, τ) ← (d, τ) / (1 + λ), with
//! α = (1 + ν) / 3(1 − ν) and the multiplier λ for which the von Mises stress equals the yield stress.

use crate::lanes::Lanes;

/// A metal, in one consistent set of units (here mm, s, tonne, MPa).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Metal {
    /// E
    pub young: f64,
    /// ν
    pub poisson: f64,
    /// σ_Y
    pub yield_stress: f64,
    /// ρ
    pub density: f64,
}

/// Cauchy stress (σxx, σyy, σxy), one value per lane.
pub(crate) type Stress<const COUNT: usize> = [Lanes<COUNT>; 3];

impl Metal {
    /// E / (1 − ν²): stiffness in one direction when the other direction is fixed.
    pub fn plate_modulus(&self) -> f64 {
        self.young / (1.0 - self.poisson * self.poisson)
    }

    /// G
    pub fn shear_modulus(&self) -> f64 {
        0.5 * self.young / (1.0 + self.poisson)
    }

    /// Speed of a plane compression wave in a plate: √(E / ρ (1 − ν²)).
    pub fn wave_speed(&self) -> f64 {
        (self.plate_modulus() / self.density).sqrt()
    }

    /// The stress after the strain increments (xx, yy, xy), and the strain increment across the thickness. The shear
    /// strain is the tensor component.
    #[inline(always)]
    pub(crate) fn update_stress<const COUNT: usize>(
        &self,
        [xx, yy, xy]: Stress<COUNT>,
        [strain_xx, strain_yy, strain_xy]: Stress<COUNT>,
    ) -> (Stress<COUNT>, Lanes<COUNT>) {
        let twice_shear = 2.0 * self.shear_modulus();
        let before = xx + yy;
        let p = before + (strain_xx + strain_yy) * (self.young / (1.0 - self.poisson));
        let d = xx - yy + (strain_xx - strain_yy) * twice_shear;
        let t = xy + strain_xy * twice_shear;
        let (multiplier, shrink_p, shrink_d) = self.return_to_yield_surface(p * p * 0.25, d * d * 0.75 + t * t * 3.0);
        let (p, d, t) = (p * shrink_p, d * shrink_d, t * shrink_d);
        // elastic part −ν Δp / E; plastic flow preserves the volume; λ is 2G times the plastic multiplier
        let thickness = (before - p) * (self.poisson / self.young) - multiplier * p * (1.0 / (3.0 * twice_shear));
        ([(p + d) * 0.5, (p - d) * 0.5, t], thickness)
    }

    /// λ and the factors of p and of (d, τ), from `a` = p²/4 and `b` = 3d²/4 + 3τ² of the trial stress.
    ///
    /// Newton's method acts on 1 / von Mises stress, which is nearly linear in λ. For a trial stress of 1.5 times the
    /// yield stress, three steps leave an error of 1e-9; the common factor at the end removes it.
    #[inline(always)]
    fn return_to_yield_surface<const COUNT: usize>(
        &self,
        a: Lanes<COUNT>,
        b: Lanes<COUNT>,
    ) -> (Lanes<COUNT>, Lanes<COUNT>, Lanes<COUNT>) {
        const STEPS: usize = 3;
        let one = Lanes::splat(1.0);
        let trial = a + b;
        let limit = self.yield_stress * self.yield_stress;
        if !trial.0.iter().any(|&value| value > limit) {
            return (Lanes::splat(0.0), one, one);
        }
        let alpha = (1.0 + self.poisson) / (3.0 * (1.0 - self.poisson));
        let (mut multiplier, mut shrink_p, mut shrink_d, mut square) = (Lanes::splat(0.0), one, one, trial);
        for _ in 0..STEPS {
            let mises = square.sqrt();
            let [a_now, b_now] = [a * shrink_p * shrink_p, b * shrink_d * shrink_d];
            let slope = (a_now * shrink_p * alpha + b_now * shrink_d) * self.yield_stress;
            let step = (mises - self.yield_stress) * square * slope.recip();
            multiplier = multiplier + step;
            let (grow_p, grow_d) = (multiplier * alpha + 1.0, multiplier + 1.0);
            let both = (grow_p * grow_d).recip(); // one division for the two
            (shrink_p, shrink_d) = (both * grow_d, both * grow_p);
            square = a * shrink_p * shrink_p + b * shrink_d * shrink_d;
        }
        let correction = square.sqrt().recip() * self.yield_stress;
        let where_plastic = |plastic: Lanes<COUNT>, elastic: f64| {
            plastic.zip(trial, |value, trial| if trial > limit { value } else { elastic })
        };
        (
            where_plastic(multiplier, 0.0),
            where_plastic(shrink_p * correction, 1.0),
            where_plastic(shrink_d * correction, 1.0),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plate::von_mises;

    const STEEL: Metal = Metal { young: 200e3, poisson: 0.3, yield_stress: 70.0, density: 7.85e-9 };

    /// The stress after a strain increment, and the strain across the thickness, in one lane.
    fn updated(stress: [f64; 3], strain: [f64; 3]) -> ([f64; 3], f64) {
        let (stress, thickness) = STEEL.update_stress(stress.map(Lanes::<1>::splat), strain.map(Lanes::splat));
        (stress.map(|part| part.0[0]), thickness.0[0])
    }

    /// Trial stresses in all directions, of 1 to 1.5 times the yield stress.
    fn trial_stresses() -> impl Iterator<Item = [f64; 3]> {
        (0..400).map(|k| {
            let (angle, tilt, size) = (f64::from(k), f64::from(k % 7) - 3.0, 1.0 + 0.5 * f64::from(k % 11) / 10.0);
            let stress = [angle.cos(), angle.sin(), 0.3 * tilt];
            let scale = 70.0 * size / von_mises(stress);
            stress.map(|part| part * scale)
        })
    }

    #[test]
    fn elastic_strain_obeys_the_law_of_hooke() {
        let (stress, thickness) = updated([0.0; 3], [1e-4, -3e-5, 2e-5]);
        let wanted = [200e3 / 0.91 * (1e-4 - 0.9e-5), 200e3 / 0.91 * (0.3e-4 - 3e-5), 2e5 / 1.3 * 2e-5];
        for (found, wanted) in stress.iter().zip(wanted) {
            assert!((found - wanted).abs() < 1e-12, "found {found}, wanted {wanted}");
        }
        assert!((thickness + 0.3 / 200e3 * (wanted[0] + wanted[1])).abs() < 1e-18, "thickness strain {thickness:e}");
    }

    #[test]
    fn a_trial_stress_outside_the_yield_surface_returns_to_it() {
        for trial in trial_stresses() {
            let (stress, _) = updated(trial, [0.0; 3]);
            let error = von_mises(stress) - 70.0;
            assert!(error.abs() < 1e-12, "from {trial:?}: von Mises stress off by {error:e}");
        }
    }

    /// The plastic strain, Hooke⁻¹ (trial − stress), is λ ∂f/∂σ with the same λ ≥ 0 for all components.
    #[test]
    fn the_stress_returns_along_the_normal_of_the_yield_surface() {
        for trial in trial_stresses() {
            let (stress, thickness) = updated(trial, [0.0; 3]);
            let back: [f64; 3] = std::array::from_fn(|part| trial[part] - stress[part]);
            let strain = [back[0] - 0.3 * back[1], back[1] - 0.3 * back[0], 1.3 * back[2]].map(|part| part / 200e3);
            let flow = [2.0 * stress[0] - stress[1], 2.0 * stress[1] - stress[0], 3.0 * stress[2]];
            let norm = |v: [f64; 3]| v.iter().map(|part| part * part).sum::<f64>().sqrt();
            let rate = norm(strain) / norm(flow);
            let error = norm(std::array::from_fn(|part| strain[part] - rate * flow[part])) / norm(strain).max(1e-12);
            assert!(error < 1e-7, "from {trial:?}: {error:e} off the normal"); // the error of three Newton steps
            // plastic strain preserves the volume
            let elastic = 0.3 / 200e3 * (back[0] + back[1]);
            let error = (thickness - elastic + strain[0] + strain[1]).abs();
            assert!(error < 1e-7 * norm(strain).max(1e-9), "from {trial:?}: thickness off by {error:e}");
        }
    }
}
