//! Elastic, perfectly plastic metal in plane stress: von Mises yield, associated flow (Simo and Hughes 1998, 3.4).
//!
//! With p = σxx + σyy, d = σxx − σyy and τ = σxy the squared von Mises stress is p²/4 + 3d²/4 + 3τ². A trial stress
//! outside the yield surface returns to it along the flow direction: p ← p / (1 + αλ), (d, τ) ← (d, τ) / (1 + λ), with
//! α = (1 + ν) / 3(1 − ν) and the multiplier λ for which the von Mises stress equals the yield stress.

use pulp::Simd;

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
pub(crate) type Stress<S> = [Lanes<S>; 3];

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
    pub(crate) fn update_stress<S: Simd>(
        &self,
        [xx, yy, xy]: Stress<S>,
        [strain_xx, strain_yy, strain_xy]: Stress<S>,
    ) -> (Stress<S>, Lanes<S>) {
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
    /// With A = a/σ_Y², B = b/σ_Y² and δ = A + B − 1 the condition is A/(1 + αλ)² + B/(1 + λ)² = 1. Its expansion in λ,
    /// solved for λ, starts with δ / 2(αA + B). Four terms leave a relative error of about δ⁴ / 20; where δ is large,
    /// Newton's method improves it. The common factor at the end makes the stress equal to the yield stress.
    #[inline(always)]
    fn return_to_yield_surface<S: Simd>(&self, a: Lanes<S>, b: Lanes<S>) -> (Lanes<S>, Lanes<S>, Lanes<S>) {
        let per_limit = 1.0 / (self.yield_stress * self.yield_stress);
        let (a, b) = (a * per_limit, b * per_limit);
        let excess = a + b - 1.0;
        let [zero, one] = [excess * 0.0, excess * 0.0 + 1.0];
        let greatest = excess.greatest();
        if greatest <= 0.0 {
            return (zero, one, one);
        }
        let alpha = (1.0 + self.poisson) / (3.0 * (1.0 - self.poisson));
        let [first, second, third, fourth] = [1, 2, 3, 4].map(|power| alpha.powi(power));
        let per_first = (a * first + b).recip();
        let start = excess * per_first * 0.5;
        let (second, third) = ((a * second + b) * per_first * 1.5, (a * third + b) * per_first * 2.0);
        let fourth = (a * fourth + b) * per_first * 2.5;
        let cube = second * second * 2.0 - third;
        let last = second * (second * second - third) * 5.0 + fourth;
        let mut multiplier = start + start * start * (second + start * (cube + start * last));
        if greatest > LARGE_EXCESS {
            let mut refined = multiplier;
            for _ in 0..STEPS {
                refined = newton(refined, a, b, alpha);
            }
            multiplier = refined.where_above(excess, LARGE_EXCESS, multiplier);
        }
        let (shrink_p, shrink_d) = shrinks(multiplier, alpha);
        let rest = a * shrink_p * shrink_p + b * shrink_d * shrink_d - 1.0;
        let correction = rest * (rest * (rest * -0.3125 + 0.375) - 0.5) + 1.0; // 1 / √(1 + rest)
        (
            multiplier.where_above(excess, 0.0, zero),
            (shrink_p * correction).where_above(excess, 0.0, one),
            (shrink_d * correction).where_above(excess, 0.0, one),
        )
    }
}

/// δ from which Newton's method refines λ.
const LARGE_EXCESS: f64 = 0.02;
/// Newton steps.
const STEPS: usize = 2;

/// 1 / (1 + αλ) and 1 / (1 + λ), with one division.
#[inline(always)]
fn shrinks<S: Simd>(multiplier: Lanes<S>, alpha: f64) -> (Lanes<S>, Lanes<S>) {
    let (grow_p, grow_d) = (multiplier * alpha + 1.0, multiplier + 1.0);
    let both = (grow_p * grow_d).recip();
    (both * grow_d, both * grow_p)
}

/// A step of Newton's method for 1 / √(A/(1 + αλ)² + B/(1 + λ)²) = 1, which is nearly linear in λ.
#[inline(always)]
fn newton<S: Simd>(multiplier: Lanes<S>, a: Lanes<S>, b: Lanes<S>, alpha: f64) -> Lanes<S> {
    let (shrink_p, shrink_d) = shrinks(multiplier, alpha);
    let [a_now, b_now] = [a * shrink_p * shrink_p, b * shrink_d * shrink_d];
    let square = a_now + b_now;
    let slope = a_now * shrink_p * alpha + b_now * shrink_d;
    multiplier + (square.sqrt() - 1.0) * square * slope.recip()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plate::von_mises;
    use pulp::Scalar;

    const STEEL: Metal = Metal { young: 200e3, poisson: 0.3, yield_stress: 70.0, density: 7.85e-9 };

    /// The stress after a strain increment, and the strain across the thickness, in one lane.
    fn updated(stress: [f64; 3], strain: [f64; 3]) -> ([f64; 3], f64) {
        let lane = |value| Lanes::splat(Scalar::new(), value);
        let (stress, thickness) = STEEL.update_stress(stress.map(lane), strain.map(lane));
        (stress.map(Lanes::sum), thickness.sum())
    }

    /// Trial stresses in all directions, of 1 to 1.5 times the yield stress; half of them are very near to it.
    fn trial_stresses() -> impl Iterator<Item = [f64; 3]> {
        (0..400).map(|k| {
            let (angle, tilt, excess) = (f64::from(k), f64::from(k % 7) - 3.0, f64::from(k % 11) / 10.0);
            let size = 1.0 + excess * if k % 2 == 0 { 0.5 } else { 0.0099 };
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
            // rounding of a stress of 70 MPa is a strain of 1e-19
            let error = norm(std::array::from_fn(|part| strain[part] - rate * flow[part])) / norm(strain).max(1e-11);
            assert!(error < 1e-7, "from {trial:?}: {error:e} off the normal"); // the error of the series and of Newton
            // plastic strain preserves the volume
            let elastic = 0.3 / 200e3 * (back[0] + back[1]);
            let error = (thickness - elastic + strain[0] + strain[1]).abs();
            assert!(error < 1e-7 * norm(strain).max(1e-9), "from {trial:?}: thickness off by {error:e}");
        }
    }
}
