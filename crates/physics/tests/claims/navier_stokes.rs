//! Navier-Stokes: exact solution, order of accuracy, conserved quantities, a slow reference for the advection term.

#![allow(clippy::print_stdout)] // the tests print their measurements

use std::collections::HashMap;
use std::f64::consts::TAU;

use lamo_physics::problems::SpatialOrder;
use lamo_physics::problems::navier_stokes::Flow;
use lamo_physics::random_field::{Covariance, stream};
use lamo_physics::stepping::{Semilinear, Trajectory};
use rustfft::num_complex::Complex;

use super::{problem, relative_error};

/// A forced flow and a random initial state.
fn turbulent(points: usize, viscosity: f64) -> (Flow, Vec<Complex<f64>>) {
    let mut flow = Flow::new(points, viscosity);
    flow.force(0.1);
    let field = Covariance { alpha: 2.5, tau: 7.0 }.periodic(points, &mut stream(4, 2));
    let start = flow.torus.spectrum(&field);
    (flow, start)
}

/// Values of `function` at the points of the unit torus.
fn on_torus(points: usize, function: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    let at = |index: usize| index as f64 / points as f64;
    (0..points * points).map(|point| function(at(point / points), at(point % points))).collect()
}

/// Advection vanishes for cos 2πmx cos 2πmy, and viscosity damps it by exp(−2 (2πm)² ν t).
#[test]
fn taylor_green_vortices_decay_exactly() {
    for (points, waves) in [(16, 1.0), (33, 2.0), (64, 3.0)] {
        let (viscosity, time) = (0.01, 0.5);
        let vortices = |x: f64, y: f64| (TAU * waves * x).cos() * (TAU * waves * y).cos();
        let flow = Flow::new(points, viscosity);
        let start = flow.torus.spectrum(&on_torus(points, vortices));
        let mut trajectory = Trajectory::new(flow, start);
        trajectory.advance(time, 1e-3).unwrap();
        let decay = (-2.0 * (TAU * waves).powi(2) * viscosity * time).exp();
        let found = trajectory.system.torus.values(&trajectory.state);
        let error = relative_error(&found, &on_torus(points, |x, y| decay * vortices(x, y)));
        println!("{points} points: {error:.1e}");
        assert!(error < 1e-13, "{points} points, {waves} waves: {error:e}"); // a few hundred roundings of 1e-16 each
    }
}

/// (−u·∇ω)^(k) = −Σ_{p+q=k} û(p)·(2πi q) ω̂(q): the definition, mode by mode.
#[test]
fn advection_equals_the_sum_over_all_pairs_of_modes() {
    for points in [8, 13, 16] {
        let (mut flow, _) = turbulent(points, 0.0);
        let field = Covariance { alpha: 2.5, tau: 7.0 }.periodic(points, &mut stream(6, 1));
        let half = flow.torus.spectrum(&field);
        let mut spectrum = HashMap::new();
        for ((kx, ky), &value) in flow.torus.half_wave_numbers().zip(&half) {
            spectrum.insert((kx, ky), value);
            spectrum.insert((-kx, -ky), value.conj());
        }
        let mut rate = half.clone();
        flow.nonlinear(&half, &mut rate);
        let mut wanted = flow.forcing().to_vec();
        for ((kx, ky), value) in flow.torus.half_wave_numbers().zip(&mut wanted) {
            for (&(px, py), &advecting) in spectrum.iter().filter(|(p, _)| **p != (0, 0)) {
                let (qx, qy) = (kx - px, ky - py);
                if let Some(&advected) = spectrum.get(&(qx, qy)) {
                    let cross = (py * qx - px * qy) as f64 / (px * px + py * py) as f64;
                    *value += advecting * advected * cross; // û = 2πi (py, −px) ω̂ / (2π|p|)²
                }
            }
        }
        let worst = rate.iter().zip(&wanted).map(|(a, b)| (a - b).norm()).fold(0.0, f64::max);
        println!("{points} points: within {worst:.1e}");
        assert!(worst < 1e-14, "{points} points: {worst:e}");
    }
}

#[test]
fn the_forcing_is_the_published_pattern() {
    let (flow, _) = turbulent(24, 0.0);
    let wanted = on_torus(24, |x, y| 0.1 * ((TAU * (x + y)).sin() + (TAU * (x + y)).cos()));
    assert!(relative_error(&flow.torus.values(flow.forcing()), &wanted) < 1e-14);
}

#[test]
fn equal_steps_converge_with_order_four_in_time() {
    let after = |steps: usize| {
        let (flow, start) = turbulent(32, 1e-3);
        let mut trajectory = Trajectory::new(flow, start);
        trajectory.advance_fixed(2.0 / steps as f64, steps);
        trajectory.system.torus.values(&trajectory.state)
    };
    let reference = after(512);
    let error = |steps: usize| relative_error(&after(steps), &reference);
    let (coarse, fine) = (error(32), error(64));
    let observed = (coarse / fine).log2();
    println!("order in time {observed:.2}");
    assert!((observed - 4.0).abs() < 0.1, "observed order {observed:.3} from {coarse:e} to {fine:e}");
}

#[test]
fn smooth_flows_converge_faster_than_any_power_in_space() {
    let coarsest = 12;
    let after = |points: usize| {
        let mut flow = Flow::new(points, 5e-3);
        flow.force(0.1);
        let start = flow.torus.spectrum(&on_torus(points, |x, y| {
            3.0 * (TAU * x).sin() * (TAU * y).cos() + 2.0 * (TAU * (x + 2.0 * y)).cos()
        }));
        let mut trajectory = Trajectory::new(flow, start);
        trajectory.advance(0.5, 1e-9).unwrap();
        let (field, stride) = (trajectory.system.torus.values(&trajectory.state), points / coarsest);
        let at = |point: usize| field[stride * (point / coarsest) * points + stride * (point % coarsest)];
        (0..coarsest * coarsest).map(at).collect::<Vec<f64>>()
    };
    let reference = after(96);
    let [first, second, third] = [12, 24, 48].map(|points| relative_error(&after(points), &reference));
    let (early, late) = ((first / second).log2(), (second / third).log2());
    println!("{first:.1e}, {second:.1e}, {third:.1e}: orders {early:.1}, {late:.1}");
    assert!(late > early && late > 8.0, "observed orders {early:.1}, then {late:.1}");
    assert_eq!(problem("navier-stokes", &["resolution=16"]).spatial_order(), SpatialOrder::Spectral);
}

/// ⟨ω, u·∇ω⟩ = ⟨ψ, u·∇ω⟩ = 0 holds for the truncated system as well, because its products have no aliases.
#[test]
fn advection_conserves_energy_enstrophy_and_the_mean() {
    let (_, start) = turbulent(48, 0.0);
    let mut flow = Flow::new(48, 0.0);
    let mut rate = start.clone();
    flow.nonlinear(&start, &mut rate);
    let size = (flow.mean_product(&rate, &rate) * flow.mean_product(&start, &start)).sqrt();
    for (name, dual) in [("enstrophy", start.clone()), ("energy", flow.stream_function(&start))] {
        let change = flow.mean_product(&rate, &dual);
        assert!(change.abs() < 1e-14 * size, "{name} changes by {change:e}");
    }
    assert_eq!(rate[0], Complex::default());
}

/// The relative errors of the budgets of energy E = ⟨ψ, ω⟩ / 2 and enstrophy Z = ⟨ω, ω⟩ / 2 over one unit of time, and
/// λ.
///
/// The budgets are dE/dt = ⟨f, ψ⟩ − ν ⟨ω, ω⟩ and dZ/dt = ⟨f, ω⟩ − ν ⟨ω, −Δω⟩, integrated by Simpson's rule over `steps`
/// steps. λ = 3 √⟨ψ, ω⟩ √(⟨ω, −Δω⟩ / ⟨ω, ω⟩) is the rate at which three standard deviations of the velocity advect the
/// vorticity across its own scale.
fn budget_errors(steps: usize) -> ([f64; 2], f64) {
    let (viscosity, step) = (1e-3, 1.0 / steps as f64);
    let (flow, start) = turbulent(32, viscosity);
    let eigenvalues: Vec<f64> =
        flow.torus.half_wave_numbers().map(|(kx, ky)| TAU * TAU * (kx * kx + ky * ky) as f64).collect();
    let contents = |flow: &Flow, vorticity: &Vec<_>| {
        [&flow.stream_function(vorticity), vorticity].map(|dual| 0.5 * flow.mean_product(dual, vorticity))
    };
    let first = contents(&flow, &start);
    let curvature: Vec<_> = start.iter().zip(&eigenvalues).map(|(value, factor)| value * factor).collect();
    let scale = flow.mean_product(&start, &curvature) / flow.mean_product(&start, &start);
    let sweeping = 3.0 * (2.0 * first[0] * scale).sqrt();
    let mut trajectory = Trajectory::new(flow, start);
    let mut gained = [0.0; 2];
    for instant in 0..=steps {
        let (flow, vorticity) = (&trajectory.system, &trajectory.state);
        let curvature: Vec<_> = vorticity.iter().zip(&eigenvalues).map(|(value, factor)| value * factor).collect();
        let simpson = if instant == 0 || instant == steps { 1.0 } else { 2.0 + 2.0 * (instant % 2) as f64 };
        let duals = [(&flow.stream_function(vorticity), vorticity), (vorticity, &curvature)];
        for (gain, (dual, loss)) in gained.iter_mut().zip(duals) {
            let rate = flow.mean_product(flow.forcing(), dual) - viscosity * flow.mean_product(vorticity, loss);
            *gain += simpson * step / 3.0 * rate;
        }
        if instant < steps {
            trajectory.advance_fixed(step, 1);
        }
    }
    let last = contents(&trajectory.system, &trajectory.state);
    ([0, 1].map(|which| ((last[which] - first[which] - gained[which]) / first[which]).abs()), sweeping)
}

/// Simpson's rule and the time stepping both have order 4. For motion at the rate λ the error of one step of RK4 is
/// (λh)⁵ / 120, so it is λ (λh)⁴ / 120 in a unit of time, and twice that for quadratic quantities. The error of
/// Simpson's rule, (2λh)⁴ / 180 of the change, is of the same size or smaller.
#[test]
fn energy_and_enstrophy_budgets_close_with_order_four() {
    let ((coarse, _), (fine, sweeping)) = (budget_errors(32), budget_errors(64));
    let allowed = 2.0 * sweeping * (sweeping / 64.0).powi(4) / 120.0;
    for (name, which) in [("energy", 0), ("enstrophy", 1)] {
        let observed = (coarse[which] / fine[which]).log2();
        assert!(
            fine[which] < allowed && observed > 3.5,
            "{name}: error {:e}, allowed {allowed:e}, order {observed:.2}",
            fine[which]
        );
    }
}

#[test]
fn mean_vorticity_is_constant_to_the_last_bit() {
    let (flow, mut start) = turbulent(32, 1e-3);
    start[0] = Complex::new(0.3, 0.0);
    let mut trajectory = Trajectory::new(flow, start);
    trajectory.advance(1.0, 1e-4).unwrap();
    assert_eq!(trajectory.state[0], Complex::new(0.3, 0.0));
}

#[test]
fn the_time_error_stays_below_tolerance_times_time() {
    let vorticity = |tolerance: f64| {
        let tolerance = format!("tolerance={tolerance}");
        let changes = ["resolution=48", "stride=1", "viscosity=1e-3", "frames=3", &tolerance];
        problem("navier-stokes", &changes).sample(0, 0).unwrap().fields.remove(1).values
    };
    let reference = vorticity(1e-9);
    for tolerance in [1e-3, 1e-4, 1e-5] {
        let error = relative_error(&vorticity(tolerance), &reference);
        println!("tolerance {tolerance:.0e}: error {error:.1e}");
        assert!(error < 3.0 * tolerance, "tolerance {tolerance:e}: error {error:e}");
    }
}

/// `cargo test -p lamo-physics --release --test claims -- --ignored --nocapture errors_at_the_defaults`
#[test]
#[ignore = "a minute; prints measurements"]
fn errors_at_the_defaults_in_time_and_of_the_initial_field_are_printed() {
    let last = |tolerance: &str| {
        let vorticity = problem("navier-stokes", &[tolerance]).sample(0, 0).unwrap().fields.remove(1).values;
        vorticity[19 * 64 * 64..].to_vec()
    };
    let error = relative_error(&last("tolerance=1e-4"), &last("tolerance=1e-6"));
    println!("time error of the last snapshot: {error:.1e}");
    for index in 0..3 {
        let field = Covariance { alpha: 2.5, tau: 7.0 }.periodic(256, &mut stream(0, index));
        let torus = Flow::new(256, 0.0).torus;
        let removed = relative_error(&torus.values(&torus.spectrum(&field)), &field);
        println!("removed from the initial field of sample {index}: {:.2} %", 100.0 * removed);
    }
}
