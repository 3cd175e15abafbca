//! Elastic, perfectly plastic metal in plane stress: von Mises yield surface, associated flow (Simo and Hughes 1998, 3.4).
//!
//! With p = σxx + σyy, d = σxx − σyy and τ = σxy the squared von Mises stress is p²/4 + 3d²/4 + 3τ². Beyond yield the
//! trial stress returns along the flow: p ← p / (1 + αλ), (d, τ) ← (d, τ) / (1 + λ), with α = (1 + ν) / 3(1 − ν) and the
//! multiplier λ that brings the von Mises stress back to the yield stress.

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

/// Cauchy stress (σxx, σyy, σxy), a number per lane.
pub(crate) type Stress<const COUNT: usize> = [Lanes<COUNT>; 3];

impl Metal {
    /// E / (1 − ν²): stiffness against stretching one way with the other held.
    pub fn plate_modulus(&self) -> f64 {
        self.young / (1.0 - self.poisson * self.poisson)
    }

    /// G
    pub fn shear_modulus(&self) -> f64 {
        0.5 * self.young / (1.0 + self.poisson)
    }

    /// Speed of a plane compression wave in a plate.
    pub fn wave_speed(&self) -> f64 {
        (self.plate_modulus() / self.density).sqrt()
    }

    /// Stress after the strain increments (xx, yy, xy), shear as tensor component, and the strain through the thickness.
    #[inline(always)]
    pub(crate) fn strained<const COUNT: usize>(
        &self,
        [xx, yy, xy]: Stress<COUNT>,
        [strain_xx, strain_yy, strain_xy]: Stress<COUNT>,
    ) -> (Stress<COUNT>, Lanes<COUNT>) {
        let twice_shear = 2.0 * self.shear_modulus();
        let before = xx + yy;
        let p = before + (strain_xx + strain_yy) * (self.young / (1.0 - self.poisson));
        let d = xx - yy + (strain_xx - strain_yy) * twice_shear;
        let t = xy + strain_xy * twice_shear;
        let (multiplier, shrink_p, shrink_d) = self.returned(p * p * 0.25, d * d * 0.75 + t * t * 3.0);
        let (p, d, t) = (p * shrink_p, d * shrink_d, t * shrink_d);
        // elastic part −ν Δp / E; the plastic part keeps the volume, and λ stands for 2G times the plastic multiplier
        let thickness = (before - p) * (self.poisson / self.young) - multiplier * p * (1.0 / (3.0 * twice_shear));
        ([(p + d) * 0.5, (p - d) * 0.5, t], thickness)
    }

    /// λ and the factors of p and (d, τ), from p²/4 and 3d²/4 + 3τ² of the trial stress.
    ///
    /// Newton's method on 1 / von Mises, which is nearly a straight line in λ: three steps leave 1e-9 after an overshoot
    /// of a half, and the common factor at the end removes the rest.
    #[inline(always)]
    fn returned<const COUNT: usize>(
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
            let fall = (a_now * shrink_p * alpha + b_now * shrink_d) * self.yield_stress;
            let step = (mises - self.yield_stress) * square * fall.recip();
            multiplier = multiplier + step;
            shrink_p = (multiplier * alpha + 1.0).recip();
            shrink_d = (multiplier + 1.0).recip();
            square = a * shrink_p * shrink_p + b * shrink_d * shrink_d;
        }
        let exact = square.sqrt().recip() * self.yield_stress;
        let yields = |plastic: Lanes<COUNT>, elastic: f64| {
            plastic.zip(trial, |value, trial| if trial > limit { value } else { elastic })
        };
        (yields(multiplier, 0.0), yields(shrink_p * exact, 1.0), yields(shrink_d * exact, 1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STEEL: Metal = Metal { young: 200e3, poisson: 0.3, yield_stress: 70.0, density: 7.85e-9 };

    fn strained(stress: [f64; 3], strain: [f64; 3]) -> ([f64; 3], f64) {
        let (stress, thickness) = STEEL.strained(stress.map(Lanes::<1>::splat), strain.map(Lanes::splat));
        (stress.map(|part| part.0[0]), thickness.0[0])
    }

    fn mises([xx, yy, xy]: [f64; 3]) -> f64 {
        (xx * xx - xx * yy + yy * yy + 3.0 * xy * xy).sqrt()
    }

    /// Trial stresses all round the yield surface, up to one and a half times the yield stress.
    fn overshoots() -> impl Iterator<Item = [f64; 3]> {
        (0..400).map(|k| {
            let (angle, tilt, size) = (f64::from(k), f64::from(k % 7) - 3.0, 1.0 + 0.5 * f64::from(k % 11) / 10.0);
            let stress = [angle.cos(), angle.sin(), 0.3 * tilt];
            let scale = 70.0 * size / mises(stress);
            stress.map(|part| part * scale)
        })
    }

    #[test]
    fn elastic_strain_follows_hooke() {
        let (stress, thickness) = strained([0.0; 3], [1e-4, -3e-5, 2e-5]);
        let wanted = [200e3 / 0.91 * (1e-4 - 0.9e-5), 200e3 / 0.91 * (0.3e-4 - 3e-5), 2e5 / 1.3 * 2e-5];
        for (found, wanted) in stress.iter().zip(wanted) {
            assert!((found - wanted).abs() < 1e-12, "found {found}, wanted {wanted}");
        }
        assert!((thickness + 0.3 / 200e3 * (wanted[0] + wanted[1])).abs() < 1e-18, "thickness strain {thickness:e}");
    }

    #[test]
    fn beyond_yield_the_stress_ends_on_the_yield_surface() {
        for trial in overshoots() {
            let (stress, _) = strained(trial, [0.0; 3]);
            let error = mises(stress) - 70.0;
            assert!(error.abs() < 1e-12, "from {trial:?}: von Mises stress off by {error:e}");
        }
    }

    /// The way back, Hooke⁻¹ (trial − stress), is λ ∂f/∂σ with one λ ≥ 0 for pressure, difference and shear alike.
    #[test]
    fn the_stress_returns_along_the_normal_of_the_yield_surface() {
        for trial in overshoots() {
            let (stress, thickness) = strained(trial, [0.0; 3]);
            let back: [f64; 3] = std::array::from_fn(|part| trial[part] - stress[part]);
            let strain = [back[0] - 0.3 * back[1], back[1] - 0.3 * back[0], 1.3 * back[2]].map(|part| part / 200e3);
            let flow = [2.0 * stress[0] - stress[1], 2.0 * stress[1] - stress[0], 3.0 * stress[2]];
            let norm = |v: [f64; 3]| v.iter().map(|part| part * part).sum::<f64>().sqrt();
            let rate = norm(strain) / norm(flow);
            let error = norm(std::array::from_fn(|part| strain[part] - rate * flow[part])) / norm(strain).max(1e-12);
            assert!(error < 1e-7, "from {trial:?}: {error:e} beside the normal"); // what three Newton steps leave
            // plastic strain keeps the volume
            let elastic = 0.3 / 200e3 * (back[0] + back[1]);
            let error = (thickness - elastic + strain[0] + strain[1]).abs();
            assert!(error < 1e-7 * norm(strain).max(1e-9), "from {trial:?}: thickness off by {error:e}");
        }
    }
}
