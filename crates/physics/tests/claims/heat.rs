//! Heat: exact solutions, order in space and time, conservation, decay.

use lamo_physics::body::{Body, Ranges};
use lamo_physics::conduction::Conduction;
use lamo_physics::hexahedron::{Lattice, dot};
use lamo_physics::problems::heat::{ROW, Smooth};
use lamo_physics::random_field::stream;

use super::{norm, problem, range, relative_error, say, small, stated_order};

const RANGES: Ranges = Ranges { length: 1.0, half: [0.2, 0.35], taper: 0.4, waist: 0.3, bend: 0.8, twist: 1.0 };
const EXCHANGE: f64 = 0.7;
const WAVE: [f64; 3] = [2.0, -1.5, 1.0];

fn positions(lattice: Lattice) -> Vec<[f64; 3]> {
    let body = Body::draw(&RANGES, &mut stream(3, 1));
    lattice.mapped(|place| body.position(place))
}

/// k = 1 + x/2
fn conductivity(x: [f64; 3]) -> f64 {
    1.0 + 0.5 * x[0]
}

/// u = cos(ω t) sin(k · x) + 1/2, ω = 3
fn exact(x: [f64; 3], time: f64) -> f64 {
    (3.0 * time).cos() * dot(WAVE, x).sin() + 0.5
}

/// Errors at t = 0.2 of `steps` steps on a lattice, against the manufactured solution.
fn manufactured(cells: [usize; 3], steps: usize) -> f64 {
    let lattice = Lattice { cells };
    let positions = positions(lattice);
    let conduction = Conduction::new(lattice, positions.clone(), conductivity, EXCHANGE).unwrap();
    let load = |time: f64| {
        let (cosine, rate) = ((3.0 * time).cos(), -3.0 * (3.0 * time).sin());
        // u_t − ∇·(k ∇u), with ∇k = (1/2, 0, 0)
        let source = |x: [f64; 3]| {
            let phase = dot(WAVE, x);
            let laplacian = -dot(WAVE, WAVE) * cosine * phase.sin();
            rate * phase.sin() - conductivity(x) * laplacian - 0.5 * WAVE[0] * cosine * phase.cos()
        };
        // k ∂u/∂n + h u
        let flux = |x: [f64; 3], normal: [f64; 3]| {
            conductivity(x) * dot(WAVE, normal) * cosine * dot(WAVE, x).cos() + EXCHANGE * exact(x, time)
        };
        conduction.load(source, Some(&flux))
    };
    let start = positions.iter().map(|&x| exact(x, 0.0)).collect();
    let end = conduction.advance(start, [0.0, 0.2], [1, steps], load).unwrap().pop().unwrap();
    let wanted: Vec<f64> = positions.iter().map(|&x| exact(x, 0.2)).collect();
    relative_error(&end, &wanted)
}

#[test]
fn a_smooth_temperature_converges_with_the_stated_order_in_space() {
    let [coarse, fine] = [manufactured([2, 1, 1], 64), manufactured([4, 2, 2], 64)];
    let order = (coarse / fine).log2();
    say(&format!("heat in space: {coarse:.2e}, {fine:.2e}, order {order:.2}"));
    assert!(order > stated_order(problem("heat", &[]).as_ref()) - 0.2, "{order:.2}");
}

/// Fine in space, so that the error in time is seen: the difference to a much finer step.
#[test]
fn steps_converge_with_order_two_in_time() {
    let lattice = Lattice { cells: [2, 1, 1] };
    let positions = positions(lattice);
    let conduction = Conduction::new(lattice, positions.clone(), conductivity, EXCHANGE).unwrap();
    let start: Vec<f64> = positions.iter().map(|&x| exact(x, 0.0)).collect();
    let after = |steps: usize| {
        let load = |time: f64| conduction.load(|x| (5.0 * time).cos() * x[1], None);
        conduction.advance(start.clone(), [0.0, 0.4], [1, steps], load).unwrap().pop().unwrap()
    };
    let truth = after(512);
    let errors = [8, 16, 32].map(|steps| relative_error(&after(steps), &truth));
    let order = (errors[1] / errors[2]).log2();
    say(&format!("heat in time: {errors:?}, order {order:.2}"));
    assert!((order - 2.0).abs() < 0.1, "{errors:?}");
}

/// L-stable: a step a thousand times longer than the decay of a rough field leaves nothing of it and does not swing.
#[test]
fn rough_fields_are_damped_in_one_long_step() {
    let lattice = Lattice { cells: [2, 2, 2] };
    let positions = positions(lattice);
    let conduction = Conduction::new(lattice, positions.clone(), |_| 1.0, 1.0).unwrap();
    let rough: Vec<f64> = (0..positions.len()).map(|node| if node % 2 == 0 { 1.0 } else { -1.0 }).collect();
    let end = conduction.advance(rough.clone(), [0.0, 1e3], [1, 1], |_| Ok(vec![0.0; rough.len()])).unwrap();
    assert!(norm(&end[0]) < 1e-2 * norm(&rough), "{}", norm(&end[0]));
}

#[test]
fn an_insulated_body_keeps_its_heat_to_rounding_and_gains_what_the_source_gives() {
    let lattice = Lattice { cells: [3, 2, 1] };
    let positions = positions(lattice);
    let smooth = Smooth::draw(0.3, &mut stream(1, 1));
    let conduction = Conduction::new(lattice, positions.clone(), |x| smooth.at(x).exp(), 0.0).unwrap();
    let start: Vec<f64> = positions.iter().map(|&x| 1.0 + smooth.at(x)).collect();
    let (heat, load) = (conduction.heat(&start), conduction.load(|x| 3.0 + x[0], None).unwrap());
    for (gain, load) in [(0.0, vec![0.0; load.len()]), (0.1 * load.iter().sum::<f64>(), load)] {
        let end = conduction.advance(start.clone(), [0.0, 0.1], [1, 20], |_| Ok(load.clone())).unwrap();
        let error = (conduction.heat(&end[0]) - heat - gain).abs() / heat;
        say(&format!("heat, insulated, gain {gain:.3}: {error:.1e} of the heat"));
        // 40 solves; each loses 1e-16 times the condition of M + α A, which is about 2000 here.
        assert!(error < 8e-12, "{error:e}");
    }
}

#[test]
fn without_sources_the_temperature_decays_and_stays_between_its_extremes() {
    let problem = small(&ROW, &["source=0".into(), "frames=4".into(), "interval=0.1".into(), "steps=20".into()]);
    let sample = problem.sample(2, 0).unwrap();
    let values = |name: &str| sample.field(name).unwrap().values.clone();
    let (start, series) = (values("initial_temperature"), values("temperature"));
    let sizes: Vec<f64> = series.chunks(start.len()).map(norm).collect();
    assert!(sizes.windows(2).all(|pair| pair[1] < pair[0]) && sizes[0] < norm(&start), "{sizes:?}");
    let ([low, high], [least, most]) = (range(start.iter().copied()), range(series.iter().copied()));
    assert!(least > low.min(0.0) && most < high.max(0.0), "{least} {most} beyond {low} {high}");
}

#[test]
fn the_random_field_has_unit_variance() {
    let values: Vec<f64> =
        (0..4000).map(|index| Smooth::draw(0.3, &mut stream(5, index)).at([0.1, 0.2, 0.3])).collect();
    let variance = values.iter().map(|value| value * value).sum::<f64>() / 4000.0;
    assert!((variance - 1.0).abs() < 4.0 * (2.0 / 4000f64).sqrt(), "{variance}"); // four standard errors
}
