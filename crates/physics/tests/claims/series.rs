//! Time series on circles and tori: exact solutions, order in time, convergence in space, invariants.

use std::f64::consts::TAU;

use lamo_physics::periodic::Domain;
use lamo_physics::problems::Sample;
use rustfft::num_complex::Complex;

use super::{problem, relative_error, say};

/// The output field of a sample with these settings, and its input.
fn solved(name: &str, changes: &[&str]) -> Sample {
    problem(name, changes).sample(1, 0).unwrap()
}

/// The last snapshot of the first output, whose field has `fields` inputs before it.
fn last(sample: &Sample, fields: usize) -> Vec<f64> {
    let (field, count) = (&sample.fields[fields], sample.fields[0].values.len());
    field.values[field.values.len() - count..].to_vec()
}

/// u = Σ A exp(−ν κ² t) sin(κ (x − c t) + φ), read off the Fourier coefficients of the first state by a plain sum.
#[test]
fn advection_and_diffusion_are_exact_on_circle_and_torus() {
    let (time, speed, viscosity) = (0.3, 0.4, 1e-3);
    for (side, dimensions) in [(48, 1), (36, 2)] {
        let [side_change, dimension_change] = [format!("resolution={side}"), format!("dimensions={dimensions}")];
        let sample = solved("advection-diffusion", &[&side_change, &dimension_change, "frames=3", "stride=1"]);
        let start = &sample.fields[0].values;
        let most = 9_i32; // the first state has wave numbers up to 8
        let columns = if dimensions == 2 { side } else { 1 };
        let mut wanted = vec![0.0; start.len()];
        let seconds = if dimensions == 2 { -most..=most } else { 0..=0 };
        for (kx, ky) in (-most..=most).flat_map(|kx| seconds.clone().map(move |ky| (f64::from(kx), f64::from(ky)))) {
            let phase = |point: usize| {
                TAU * (kx * (point / columns) as f64 + ky * (point % columns) as f64) / f64::from(side as u32)
            };
            let (mut real, mut imaginary) = (0.0, 0.0);
            for (point, value) in start.iter().enumerate() {
                real += value * phase(point).cos() / start.len() as f64;
                imaginary -= value * phase(point).sin() / start.len() as f64;
            }
            let decay = (-viscosity * TAU * TAU * (kx * kx + ky * ky) * time).exp();
            let moved = speed * TAU * (kx + ky) * time;
            for (point, sum) in wanted.iter_mut().enumerate() {
                let angle = phase(point) - moved;
                *sum += decay * (real * angle.cos() - imaginary * angle.sin());
            }
        }
        let error = relative_error(&last(&sample, 1), &wanted);
        say(&format!("advection-diffusion in {dimensions} dimensions: {error:.1e}"));
        assert!(error < 1e-12, "{error:e}");
    }
}

/// The formula of Cole and Hopf: u = −2ν φ_x / φ, φ = ∫ G(x − y, t) exp(−∫ u₀ / 2ν) dy, by trapezoidal sums, which
/// converge faster than any power for periodic functions.
#[test]
fn burgers_equation_agrees_with_the_formula_of_cole_and_hopf() {
    let (viscosity, time, points) = (0.02, 0.15, 192);
    let changes = ["resolution=192", "stride=1", "frames=1", "interval=0.15", "steps=300", "viscosity=0.02", "waves=2"];
    let sample = solved("burgers", &changes);
    let start = &sample.fields[0].values;
    // The potential of u₀, which has mean zero, from its Fourier series.
    let potential: Vec<f64> = {
        let mut sum = vec![0.0; points];
        for k in 1..10 {
            let wave = TAU * f64::from(k);
            let (mut cosine, mut sine) = (0.0, 0.0);
            for (point, value) in start.iter().enumerate() {
                let angle = wave * point as f64 / points as f64;
                cosine += 2.0 * value * angle.cos() / points as f64;
                sine += 2.0 * value * angle.sin() / points as f64;
            }
            for (point, sum) in sum.iter_mut().enumerate() {
                let angle = wave * point as f64 / points as f64;
                *sum += (cosine * angle.sin() - sine * angle.cos()) / wave;
            }
        }
        sum
    };
    let weight: Vec<f64> = potential.iter().map(|value| (-value / (2.0 * viscosity)).exp()).collect();
    let spread = 4.0 * viscosity * time;
    let wanted: Vec<f64> = (0..points)
        .map(|point| {
            let x = point as f64 / points as f64;
            let (mut above, mut below) = (0.0, 0.0);
            for image in -3..=3 {
                for (other, weight) in weight.iter().enumerate() {
                    let away = x - other as f64 / points as f64 - f64::from(image);
                    let kernel = (-away * away / spread).exp() * weight;
                    above += away / time * kernel;
                    below += kernel;
                }
            }
            above / below
        })
        .collect();
    let error = relative_error(&last(&sample, 1), &wanted);
    say(&format!("burgers against Cole and Hopf: {error:.1e}"));
    assert!(error < 1e-9, "{error:e}");
}

/// A soliton keeps its shape and moves with its speed: the solver is started from it through its parts.
#[test]
fn a_soliton_of_kdv_travels_unchanged() {
    use lamo_physics::exponential::Exponential;
    use lamo_physics::parameters::Settings;
    use lamo_physics::problems::kdv::{EQUATION, ROW};
    let (extent, speed, time) = (64.0, 1.0, 8.0);
    let shape = |x: f64| {
        let away = (x + 0.5 * extent).rem_euclid(extent) - 0.5 * extent;
        3.0 * speed / (0.5 * f64::sqrt(speed) * away).cosh().powi(2)
    };
    let settings = Settings::new(ROW.name, ROW.parameters, &["extent=64"]).unwrap();
    let travelled = |points: usize, steps: usize| {
        let domain = Domain::new(1, points);
        let right_side = (EQUATION.right_side)(&settings, &domain);
        let mut state = domain.spectrum(&domain.sampled(|[x, _]| shape(extent * (x - 0.5))));
        Exponential::new(&right_side.symbol(), time / steps as f64).advance(right_side.as_ref(), &mut state, steps);
        let wanted = domain.sampled(|[x, _]| shape(extent * (x - 0.5) - speed * time));
        relative_error(&domain.values(&state), &wanted)
    };
    let (coarse, fine) = (travelled(256, 250), travelled(256, 500));
    let order = (coarse / fine).log2();
    let spectral = [64, 96, 128].map(|points| travelled(points, 2000));
    say(&format!(
        "kdv, soliton: {coarse:.1e}, {fine:.1e} with 250 and 500 steps, order {order:.2}; 64, 96, 128 points {spectral:?}"
    ));
    assert!((order - 4.0).abs() < 0.2, "{order}");
    assert!(spectral[1] < spectral[0] / 10.0 && spectral[2] < spectral[1] / 10.0, "{spectral:?}");
}

#[test]
fn kdv_keeps_mass_and_momentum_and_burgers_loses_energy() {
    let sample = solved("kdv", &["resolution=256", "stride=1", "frames=4", "interval=2.0", "steps=200"]);
    let sums = |values: &[f64], power: i32| values.iter().map(|value| value.powi(power)).sum::<f64>();
    let start = &sample.fields[0].values;
    let size = start.iter().map(|value| value.abs()).sum::<f64>();
    for snapshot in sample.fields[1].values.chunks(start.len()) {
        let mass = (sums(snapshot, 1) - sums(start, 1)).abs() / size;
        let momentum = (sums(snapshot, 2) / sums(start, 2) - 1.0).abs();
        assert!(mass < 1e-13 && momentum < 1e-7, "mass {mass:e}, momentum {momentum:e}");
    }
    let sample = solved("burgers", &["resolution=256", "stride=1", "frames=6"]);
    let energies: Vec<f64> = sample.fields[1].values.chunks(256).map(|snapshot| sums(snapshot, 2)).collect();
    assert!(energies.windows(2).all(|pair| pair[1] < pair[0]), "{energies:?}");
}

/// Errors against a solution with many more steps, and against one with more points.
#[test]
fn chaotic_and_reacting_equations_converge_with_order_four_in_time_and_spectrally_in_space() {
    /// Name, inputs before the output, settings, steps and points.
    type Case = (&'static str, usize, &'static [&'static str], usize, [usize; 3]);
    const CASES: [Case; 3] = [
        ("kuramoto-sivashinsky", 1, &["spin_up=0", "frames=1", "interval=8.0"], 800, [64, 96, 256]),
        ("gray-scott", 2, &["extent=0.5", "spin_up=0", "frames=1", "interval=100.0", "spots=3"], 50, [24, 36, 72]),
        ("shallow-water", 3, &["frames=1", "interval=0.2", "viscosity=0.004"], 20, [16, 24, 48]),
    ];
    for (name, fields, base, coarse, points) in CASES {
        let at = |points: usize, steps: usize| {
            let mut changes: Vec<String> = base.iter().map(|&change| change.to_owned()).collect();
            changes.extend([format!("resolution={points}"), "stride=1".to_owned(), format!("steps={steps}")]);
            problem(name, &changes.iter().map(String::as_str).collect::<Vec<_>>())
        };
        let stored = |points: usize, steps: usize| at(points, steps).sample(1, 0).unwrap();
        let ends = [1, 2, 4].map(|times| last(&stored(points[2], times * coarse), fields));
        let errors = [0, 1].map(|place| relative_error(&ends[place], &ends[place + 1]));
        let moved = relative_error(&ends[0], &stored(points[2], coarse).fields[0].values);
        assert!(moved > 0.05, "{name}: the state changes by {moved} only");
        let order = (errors[0] / errors[1]).log2();
        let spatial = points.map(|points| {
            let fine = at(points, 2 * coarse).refined().unwrap().unwrap().sample(1, 0).unwrap();
            relative_error(&last(&stored(points, 2 * coarse), fields), &last(&fine, fields))
        });
        say(&format!("{name}: {errors:?}, order {order:.2} in time; {points:?} points {spatial:?}"));
        assert!((order - 4.0).abs() < 0.3, "{name}: {order}");
        // The order grows with the points: faster than any power.
        let observed = |place: usize| {
            let finer = points[place + 1] as f64 / points[place] as f64;
            (spatial[place] / spatial[place + 1]).ln() / finer.ln()
        };
        assert!(observed(1) > observed(0) && observed(1) > 6.0, "{name}: {spatial:?}");
    }
}

/// d/dt ½⟨u²⟩ = ⟨u_x²⟩ − ⟨u_xx²⟩: what long waves gain and short waves lose, by Simpson's rule over many snapshots.
#[test]
fn the_energy_of_kuramoto_and_sivashinsky_changes_by_what_its_waves_gain_and_lose() {
    let (points, interval, extent) = (192, 0.05, 64.0);
    let changes = ["resolution=192", "stride=1", "frames=80", "interval=0.05", "steps=1", "spin_up=1000"];
    let sample = solved("kuramoto-sivashinsky", &changes);
    let domain = Domain::new(1, points);
    let snapshots = sample.fields.iter().flat_map(|field| field.values.chunks(points));
    let (mut energies, mut gains) = (Vec::new(), Vec::new());
    for snapshot in snapshots {
        let half = domain.spectrum(snapshot);
        let scaled = |power: i32| -> Vec<Complex<f64>> {
            let wave = |k: usize| (TAU * k as f64 / extent).powi(power);
            half.iter().enumerate().map(|(k, value)| value * wave(k)).collect()
        };
        let size = |half: &[Complex<f64>]| domain.mean_product(half, half);
        energies.push(0.5 * size(&half));
        gains.push(size(&scaled(1)) - size(&scaled(2)));
    }
    let weight = |place: usize| if place == 0 || place == 80 { 1.0 } else { 2.0 + 2.0 * (place % 2) as f64 };
    let gained: f64 = gains.iter().enumerate().map(|(place, gain)| weight(place) * gain * interval / 3.0).sum();
    let turned: f64 = gains.iter().map(|gain| gain.abs() * interval).sum();
    let error = (energies[80] - energies[0] - gained).abs() / turned;
    say(&format!("kuramoto-sivashinsky: energy {:.4} to {:.4}, budget within {error:.1e}", energies[0], energies[80]));
    assert!(error < 1e-5 && turned > 0.1, "{error:e} of {turned}"); // Simpson's rule: 0.05⁴ times a fourth derivative
}

/// A small standing wave h = 1 + ε cos κx cos ωt exp(−νκ²t), ω² = g κ²: the difference is of the second order in ε.
#[test]
fn small_waves_on_shallow_water_have_their_frequency_and_decay() {
    use lamo_physics::exponential::Exponential;
    use lamo_physics::parameters::Settings;
    use lamo_physics::problems::shallow_water::{EQUATION, ROW};
    let (gravity, viscosity, time, wave) = (2.0f64, 1e-3, 0.7, TAU * 2.0);
    let settings = Settings::new(ROW.name, ROW.parameters, &["gravity=2", "viscosity=1e-3"]).unwrap();
    let domain = Domain::new(2, 16);
    let right_side = (EQUATION.right_side)(&settings, &domain);
    let error = |height: f64| {
        let start = domain.spectrum(&domain.sampled(|[x, _]| 1.0 + height * (wave * x).cos()));
        let mut state = [start, vec![Complex::default(); 2 * domain.half_length()]].concat();
        Exponential::new(&right_side.symbol(), time / 200.0).advance(right_side.as_ref(), &mut state, 200);
        let decay = (-viscosity * wave * wave * time).exp();
        let wanted = domain.sampled(|[x, _]| height * (wave * x).cos() * (gravity.sqrt() * wave * time).cos() * decay);
        let found: Vec<f64> = domain.values(&state[..domain.half_length()]).iter().map(|value| value - 1.0).collect();
        relative_error(&found, &wanted)
    };
    let (large, little) = (error(1e-4), error(1e-5));
    say(&format!("shallow water, standing wave: {large:.1e} at 1e-4, {little:.1e} at 1e-5"));
    assert!(little < 1e-4 && (large / little - 10.0).abs() < 1.0, "{large:e} {little:e}");
}

#[test]
fn shallow_water_keeps_its_mass_to_rounding() {
    let sample = solved("shallow-water", &["resolution=32", "stride=1", "frames=4", "steps=8"]);
    let start = &sample.fields[0].values;
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    for snapshot in sample.fields[3].values.chunks(start.len()) {
        assert!((mean(snapshot) - mean(start)).abs() < 1e-14, "{} {}", mean(snapshot), mean(start));
    }
}

/// Without diffusion and with even concentrations, the reaction is two ordinary equations: classical Runge-Kutta steps.
#[test]
fn an_even_reaction_of_gray_and_scott_follows_its_ordinary_equations() {
    use lamo_physics::exponential::Exponential;
    use lamo_physics::parameters::Settings;
    use lamo_physics::problems::gray_scott::{EQUATION, ROW};
    let settings = Settings::new(ROW.name, ROW.parameters, &["feed=0.03", "kill=0.05"]).unwrap();
    let domain = Domain::new(2, 8);
    let right_side = (EQUATION.right_side)(&settings, &domain);
    let mut state = vec![Complex::default(); 2 * domain.half_length()];
    (state[0], state[domain.half_length()]) = (Complex::new(0.6, 0.0), Complex::new(0.3, 0.0));
    Exponential::new(&right_side.symbol(), 0.1).advance(right_side.as_ref(), &mut state, 200);
    let rate = |[u, v]: [f64; 2]| [-u * v * v + 0.03 * (1.0 - u), u * v * v - 0.08 * v];
    let (mut wanted, step) = ([0.6, 0.3], 0.02);
    for _ in 0..1000 {
        let moved = |by: f64, rate: [f64; 2]| [wanted[0] + by * rate[0], wanted[1] + by * rate[1]];
        let first = rate(wanted);
        let second = rate(moved(0.5 * step, first));
        let third = rate(moved(0.5 * step, second));
        let fourth = rate(moved(step, third));
        let sum = |k: usize| first[k] + 2.0 * (second[k] + third[k]) + fourth[k];
        wanted = [wanted[0] + step / 6.0 * sum(0), wanted[1] + step / 6.0 * sum(1)];
    }
    let found = [state[0].re, state[domain.half_length()].re];
    say(&format!("gray-scott, even: {found:?}, wanted {wanted:?}"));
    assert!((0..2).all(|k| (found[k] - wanted[k]).abs() < 1e-8), "{found:?} {wanted:?}");
}

/// d/dt of energy and enstrophy: −2ν ⟨ω²⟩ and −2ν ⟨|∇ω|²⟩ without forcing, by Simpson's rule over snapshots.
#[test]
fn decaying_turbulence_loses_energy_and_enstrophy_by_viscosity_alone() {
    let (points, interval, viscosity) = (64, 0.01, 0.01);
    let changes =
        ["resolution=64", "stride=1", "frames=40", "interval=0.01", "viscosity=0.01", "tolerance=1e-7", "peak=3"];
    let sample = solved("turbulence", &changes);
    let domain = Domain::new(2, points);
    let waves = domain.wave_numbers();
    let snapshots = sample.fields.iter().flat_map(|field| field.values.chunks(points * points));
    // Means of |κ|^power ω², on a torus of side 2π.
    let budgets: Vec<[f64; 3]> = snapshots
        .map(|snapshot| {
            let half = domain.spectrum(snapshot);
            [-2, 0, 2].map(|power: i32| {
                let scaled = half.iter().zip(&waves).map(|(value, [x, y])| match x * x + y * y {
                    0.0 => Complex::default(),
                    square => value * square.powi(power / 2).sqrt(),
                });
                let scaled: Vec<_> = scaled.collect();
                domain.mean_product(&scaled, &scaled)
            })
        })
        .collect();
    let weight = |place: usize| if place == 0 || place == 40 { 1.0 } else { 2.0 + 2.0 * (place % 2) as f64 };
    for (name, held, lost) in [("energy", 0, 1), ("enstrophy", 1, 2)] {
        let loss: f64 =
            budgets.iter().enumerate().map(|(place, budget)| weight(place) * budget[lost] * interval / 3.0).sum();
        let change = budgets[40][held] - budgets[0][held] + 2.0 * viscosity * loss;
        let error = change.abs() / (2.0 * viscosity * loss);
        say(&format!(
            "turbulence: {name} {:.4} to {:.4}, budget within {error:.1e}",
            budgets[0][held], budgets[40][held]
        ));
        assert!(error < 1e-5, "{name}: {error:e}");
    }
}

/// Laminar Kolmogorov flow: ω = −n cos(n y) / (ν n² + μ) stays as it is at a viscosity above the critical one.
#[test]
fn viscous_kolmogorov_flow_ends_in_its_laminar_state() {
    // The integrating factor holds a steady state up to (step · decay)⁴ / 2880, so snapshots are close.
    let changes = [
        "resolution=32",
        "stride=1",
        "frames=300",
        "interval=0.05",
        "viscosity=0.5",
        "friction=0.5",
        "spin_up=0",
        "waves=2",
    ];
    let sample = solved("kolmogorov", &changes);
    let wanted: Vec<f64> = (0..32 * 32)
        .map(|point| {
            let y = TAU * (point % 32) as f64 / 32.0;
            -2.0 * (2.0 * y).cos() / (0.5 * 4.0 + 0.5)
        })
        .collect();
    let error = relative_error(&last(&sample, 1), &wanted);
    say(&format!("kolmogorov, laminar: {error:.1e}"));
    assert!(error < 1e-5, "{error:e}"); // the first state, of size 3, has decayed by exp(−15)
}
