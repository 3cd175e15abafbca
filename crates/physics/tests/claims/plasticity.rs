//! Plasticity: exact states of stress, order of accuracy, energy balance, published blocks.

use std::f64::consts::PI;

use lamo_physics::die;
use lamo_physics::explicit::{Block, Motion};
use lamo_physics::hermite::Profile;
use lamo_physics::parameters::Settings;
use lamo_physics::plane_stress::Metal;
use lamo_physics::plate::von_mises;
use lamo_physics::problems::find;
use lamo_physics::problems::plasticity::{Forging, Plasticity, ROW};

use super::public_dies::PUBLIC_DIES;
use super::{mean_and_deviation, problem, range, relative_error, say, stated_order};

const STEEL: Metal = Metal { young: 200e3, poisson: 0.3, yield_stress: 70.0, density: 7.85e-9 };

fn plasticity(changes: &[&str]) -> Plasticity {
    Plasticity::new(Settings::new(ROW.name, ROW.parameters, changes).unwrap()).unwrap()
}

/// A die with these heights of the inner knots above the lowest knot; its lowest point is 0.1 mm above the block.
fn shaped(inner: [f64; 7]) -> Profile {
    let profile = die::profile(-49.65, 50.0, 7.5, inner);
    let lowest = profile.lowest();
    profile.raised(15.0 - lowest)
}

/// A die with a main point left of the centre and a smaller point right of it.
fn two_points() -> Profile {
    shaped([5.0, 0.0, 4.5, 6.5, 4.0, 2.5, 6.0])
}

/// A block under a die that has moved down by `drop` mm.
fn pressed(changes: &[&str], profile: Profile, drop: f64) -> Forging {
    let mut forging = plasticity(changes).forging(profile);
    forging.press(drop).unwrap();
    forging
}

/// The von Mises stress at each Gauss point.
fn von_mises_stresses(block: &Block) -> impl Iterator<Item = f64> {
    let [xx, yy, xy] = block.stress();
    (0..xx.len()).map(move |element| von_mises([xx[element], yy[element], xy[element]]))
}

/// A bar of 10 × 2 mm that is stretched at a constant rate from t = 0 on.
struct Bar {
    block: Block,
}

impl Bar {
    const LENGTH: f64 = 10.0;
    /// Strain per second.
    const RATE: f64 = 100.0;

    /// The bar at t = 0; `contraction` is the ratio of lateral to axial strain rate.
    fn new(contraction: f64) -> Self {
        let mut block = Block::new(STEEL, [10, 2], [0.0, -1.0], [Self::LENGTH, 2.0]);
        block.velocity[0] = block.positions[0].iter().map(|x| Self::RATE * x).collect();
        block.velocity[1] = block.positions[1].iter().map(|y| -contraction * Self::RATE * y).collect();
        Self { block }
    }

    /// Stretches the bar until its axial strain is `strain`.
    fn stretch(&mut self, strain: f64) {
        let [width, height] = self.block.nodes();
        let pull = |motion: &mut Motion<'_>| {
            for row in 0..height {
                motion.set_velocity(row * width, 0, 0.0);
                motion.set_velocity(row * width + width - 1, 0, Self::RATE * Self::LENGTH);
            }
        };
        self.block.advance(strain / Self::RATE, &pull).unwrap();
    }
}

/// Strain and mean axial stress of a bar that is stretched to each of the `strains`.
fn tensile_test(strains: &[f64]) -> Vec<[f64; 2]> {
    let mut bar = Bar::new(STEEL.poisson);
    let state = |&strain: &f64| {
        bar.stretch(strain);
        let (width, stress) = (bar.block.nodes()[0], &bar.block.stress()[0]);
        [bar.block.positions[0][width - 1] / Bar::LENGTH - 1.0, stress.iter().sum::<f64>() / stress.len() as f64]
    };
    strains.iter().map(state).collect()
}

#[test]
fn a_stretched_bar_is_elastic_with_youngs_modulus_and_then_has_the_yield_stress() {
    for [strain, stress] in tensile_test(&[1e-4, 2e-4, 3e-4]) {
        let wanted = STEEL.young * strain.ln_1p();
        // 1e-3: the initial lateral velocity is linear; it differs from the logarithmic one by ν ε ε̇
        assert!((stress / wanted - 1.0).abs() < 1e-3, "strain {strain:e}: stress {stress}, wanted {wanted}");
    }
    for [strain, stress] in tensile_test(&[1e-3, 2e-3, 4e-3]) {
        // at yield ν jumps to 1/2; the lateral velocity changes by (1/2 − ν) ε̇ · 1 mm = 20 mm/s, a wave of ρ c v = 0.8
        // MPa
        assert!((stress - 70.0).abs() < 0.8, "strain {strain:e}: stress {stress}");
    }
}

/// Plastic flow preserves the volume: a bar that is stretched far contracts equally in the plane and across it.
#[test]
fn a_stretched_bar_preserves_its_volume() {
    let mut bar = Bar::new(0.5);
    bar.stretch(0.05);
    let block = bar.block;
    let [width, height] = block.nodes();
    let thickness = block.thickness().iter().sum::<f64>() / block.thickness().len() as f64;
    let tall = block.positions[1][width * (height - 1) + width / 2] - block.positions[1][width / 2];
    let volume = 1.05 * (tall / 2.0) * thickness;
    // the elastic strain (1 − 2ν) σ / E = 1.4e-4 increases the volume
    assert!((volume - 1.0).abs() < 3e-4, "volume {volume}, thickness {thickness}, height {tall}");
    assert!((thickness - 1.05f64.powf(-0.5)).abs() < 2e-3, "thickness {thickness}");
}

/// In a strip without lateral motion, a jump of the velocity travels at √(E / ρ(1 − ν²)).
#[test]
fn waves_travel_at_the_speed_of_sound() {
    let (length, columns, push) = (100.0, 200, 100.0); // 100 mm/s gives 4 MPa, which is elastic
    let mut strip = Block::new(STEEL, [columns, 1], [0.0, 0.0], [length, 0.5]);
    let nodes = 2 * (columns + 1);
    let mut front = |time: f64| {
        strip
            .advance(time, &|motion: &mut Motion<'_>| {
                (0..nodes).for_each(|node| motion.set_velocity(node, 1, 0.0));
                [0, columns + 1].into_iter().for_each(|node| motion.set_velocity(node, 0, push));
            })
            .unwrap();
        strip.velocity[0][..=columns].iter().rposition(|&v| v > 0.5 * push).unwrap() as f64 * length / columns as f64
    };
    let speed = STEEL.wave_speed();
    let (early, late) = (front(20.0 / speed), front(80.0 / speed));
    assert!((late - early - 60.0).abs() <= 1.0, "front from {early} to {late} mm"); // half an element at each end
}

/// A standing wave in a strip without lateral motion: after a quarter of a period, a velocity v sin(πx/L) has become
/// the displacement v T / 2π sin(πx/L).
#[test]
fn elastic_vibrations_converge_with_the_stated_order() {
    let error = |columns: usize| {
        let mut strip = Block::new(STEEL, [columns, 1], [0.0, 0.0], [20.0, 20.0 / columns as f64]);
        let start: Vec<f64> = strip.positions[0].iter().map(|x| 10.0 * (PI * x / 20.0).sin()).collect();
        strip.velocity[0].clone_from(&start);
        let rest = strip.positions[0].clone();
        let nodes = 2 * (columns + 1);
        let quarter = 0.5 * 20.0 / STEEL.wave_speed();
        strip
            .advance(quarter, &|motion: &mut Motion<'_>| {
                (0..nodes).for_each(|node| motion.set_velocity(node, 1, 0.0));
                [0, columns, columns + 1, nodes - 1].into_iter().for_each(|node| motion.set_velocity(node, 0, 0.0));
            })
            .unwrap();
        let found: Vec<f64> = strip.positions[0].iter().zip(&rest).map(|(x, start)| x - start).collect();
        let wanted: Vec<f64> = start.iter().map(|v| v * 2.0 * quarter / PI).collect();
        relative_error(&found, &wanted)
    };
    let observed = (error(16) / error(32)).log2();
    let stated = stated_order(&plasticity(&[]));
    assert!((observed - stated).abs() < 0.15, "observed order {observed:.3}");
}

#[test]
fn a_rotating_block_has_no_stress() {
    let turns = 0.25;
    let mut block = Block::new(STEEL, [4, 3], [-2.0, -1.5], [4.0, 3.0]);
    let spin = 1e3; // the centrifugal stress ρ (ω r)² is 0.05 MPa
    let [x, y] = block.positions.clone();
    block.velocity = [y.iter().map(|y| -spin * y).collect(), x.iter().map(|x| spin * x).collect()];
    block.advance(turns * 2.0 * PI / spin, &|_: &mut Motion<'_>| {}).unwrap();
    let highest = von_mises_stresses(&block).fold(0.0, f64::max);
    assert!(highest < 0.1, "von Mises stress {highest} MPa");
    for (node, (x, y)) in x.iter().zip(&y).enumerate() {
        let [found_x, found_y] = [0, 1].map(|axis| block.positions[axis][node]);
        assert!((found_x + y).abs() < 0.02 && (found_y - x).abs() < 0.02, "node {node} at {found_x}, {found_y}");
    }
}

#[test]
fn the_stress_stays_within_the_yield_surface_and_the_energies_add_up_to_the_work_of_the_die() {
    let forging = pressed(&["resolution=4"], two_points(), 5.7);
    let highest = von_mises_stresses(&forging.block).fold(0.0, f64::max);
    assert!((highest - 70.0).abs() < 1e-11, "highest von Mises stress {highest}");
    let (energy, kinetic) = (forging.block.energy, forging.block.kinetic());
    let [missing, motion, impact] = [energy.missing(kinetic), kinetic, energy.impact].map(|part| part / energy.work);
    assert!(missing.abs() < 1e-4, "{missing:.1e} of the work is missing");
    assert!((0.0..0.02).contains(&motion), "{motion:.3} of the work is kinetic energy");
    // A point that an edge pushes leaves the die faster than the die moves, which counts as a negative loss.
    assert!(impact.abs() < 0.01, "{impact:.4} of the work is lost in impacts");
}

#[test]
fn the_bottom_slides_and_all_nodes_stay_outside_the_die() {
    let mut forging = plasticity(&["resolution=3"]).forging(two_points());
    let [width, height] = forging.block.nodes();
    for snapshot in 1..20 {
        forging.press(0.3 * f64::from(snapshot)).unwrap();
        let [x, y] = &forging.block.positions;
        assert!(y[..width].iter().all(|&y| y == -0.1), "snapshot {snapshot}: the bottom has moved vertically");
        let gap = |node: usize, share: f64| {
            let point = [x, y].map(|axis| (1.0 - share) * axis[node] + share * axis[(node + 1).min(axis.len() - 1)]);
            forging.die.gap(point, forging.block.time)
        };
        let top = width * (height - 1)..width * height;
        let nodes = top.clone().map(|node| gap(node, 0.0)).fold(f64::INFINITY, f64::min);
        let edges = top.map(|node| gap(node, 0.5)).fold(f64::INFINITY, f64::min);
        assert!(nodes > -1e-12, "snapshot {snapshot}: a node is {nodes:e} mm inside the die"); // round-off
        // edges are pushed out once per step, in which the die moves 6e-4 mm
        assert!(edges > -6e-4, "snapshot {snapshot}: an edge is {edges:e} mm inside the die");
        assert!(nodes.min(edges) < 6e-4, "snapshot {snapshot}: the die is {nodes} mm above the block");
    }
    let [left, right] = [forging.block.positions[0][0] + 49.65, forging.block.positions[0][width - 1] - 0.35];
    assert!(left < -0.3 && right > 0.3, "the bottom moves by {left} and {right} mm");
}

/// The mirrored profile has the mirrored heights and the negative slopes.
#[test]
fn a_mirrored_die_gives_the_mirrored_block() {
    let (heights, slopes) = (vec![22.0, 15.0, 20.0, 18.0, 22.0], [-0.5, 0.1, 0.4, -0.6, 1.0]);
    let backwards = |values: &[f64], sign: f64| values.iter().rev().map(|value| sign * value).collect::<Vec<_>>();
    let profile = Profile::new(-49.65, 12.5, heights.clone(), &slopes);
    let mirrored = Profile::new(-49.65, 12.5, backwards(&heights, 1.0), &backwards(&slopes, -1.0));
    let [block, mirror] = [profile, mirrored].map(|profile| pressed(&["resolution=2"], profile, 1.5).block);
    let width = block.nodes()[0];
    for (node, x) in block.positions[0].iter().enumerate() {
        let opposite = node / width * width + width - 1 - node % width;
        let difference = (x + mirror.positions[0][opposite] + 49.3).abs();
        assert!(difference < 1e-6, "node {node}: {difference:e} mm"); // plastic flow amplifies round-off
    }
}

/// Displacements in mm at the 11 × 4 nodes of the mesh with `resolution` 1, without the mean along x, and that mean,
/// after the die has moved down by each of the `drops`.
fn deformations(resolution: usize, profile: &Profile, drops: &[f64]) -> Vec<(Vec<f64>, f64)> {
    let mut forging = plasticity(&[&format!("resolution={resolution}")]).forging(profile.clone());
    let rest = forging.block.positions.clone();
    let width = 10 * resolution + 1;
    let at = |&drop: &f64| {
        forging.press(drop).unwrap();
        let shared = (0..4 * 11).map(|node| node / 11 * resolution * width + node % 11 * resolution);
        let moved: Vec<[f64; 2]> =
            shared.map(|node| [0, 1].map(|axis| forging.block.positions[axis][node] - rest[axis][node])).collect();
        let slide = moved.iter().map(|moved| moved[0]).sum::<f64>() / moved.len() as f64;
        (moved.into_iter().flat_map(|[x, y]| [x - slide, y]).collect(), slide)
    };
    drops.iter().map(at).collect()
}

/// The block is free to slide as a whole, and this motion converges last; the claim is about the deformation.
#[test]
fn the_deformation_converges_on_finer_meshes() {
    let [coarse, middle, fine] =
        [1, 2, 4].map(|resolution| deformations(resolution, &two_points(), &[5.7]).remove(0).0);
    let [first, second] = [relative_error(&coarse, &fine), relative_error(&middle, &fine)];
    assert!(second < 0.6 * first, "{first:.3}, then {second:.3}");
}

/// Left and right edge of the block under die 100 of the public file in the last snapshot.
const PUBLISHED_EDGES: [f64; 2] = [-50.92, 1.82];

/// The profile of die 100 with its own slopes, read off a published picture.
fn die_100() -> Profile {
    let profile = PUBLIC_DIES[0].profile(-49.65);
    let lowest = profile.lowest();
    profile.raised(15.0 - lowest)
}

#[test]
fn the_published_die_gives_the_published_edges_of_the_block() {
    let block = pressed(&["resolution=4"], die_100(), 5.7).block;
    let found = range(block.positions[0].iter().copied());
    for (found, published) in found.iter().zip(PUBLISHED_EDGES) {
        // the picture is accurate to 0.1 mm, and the mesh is 2.5 times as coarse as the published one
        assert!((found - published).abs() < 0.5, "edge at {found:.2}, published {published:.2}");
    }
}

/// Edges of 16 blocks in a published picture: mean and spread of the left and of the right edge.
const GALLERY_EDGES: [[f64; 2]; 2] = [[-51.58, 1.00], [1.95, 1.08]];

/// The left and the right edge of the blocks of several samples, and the length of their bottoms, in the last snapshot.
fn edges(resolution: &str, samples: u64) -> [Vec<f64>; 3] {
    let problem = problem("plasticity", &[resolution]);
    let columns = problem.grid().shape()[1];
    let mut found = [vec![], vec![], vec![]];
    for index in 0..samples {
        let sample = problem.sample(0, index).unwrap();
        let values = &sample.fields[1].values;
        let last = &values[19 * values.len() / 20..];
        let [left, right] = range(last.iter().copied().step_by(4));
        let bottom = range(last.chunks(4 * columns).map(|column| column[4 * (columns - 1)]));
        [left, right, bottom[1] - bottom[0]].into_iter().zip(&mut found).for_each(|(value, list)| list.push(value));
    }
    found
}

#[test]
fn the_mean_edges_of_several_blocks_agree_with_published_ones() {
    let [left, right, _] = edges("resolution=2", 6);
    for (found, [mean, spread]) in [left, right].iter().zip(GALLERY_EDGES) {
        let (found, _) = mean_and_deviation(found);
        assert!((found - mean).abs() < spread, "mean edge {found:.2}, published {mean} with spread {spread}");
    }
}

/// Prints the rows of the table in docs/problems.md that need the published mesh or several samples.
#[test]
#[ignore = "two dies on two meshes and twelve samples take minutes in a release build"]
fn the_table_of_blocks() {
    let resolution: usize = std::env::var("RESOLUTION").map_or(5, |text| text.parse().unwrap());
    let setting = format!("resolution={resolution}");
    for (name, values) in ["left", "right", "bottom"].iter().zip(edges(&setting, 12)) {
        let (mean, deviation) = mean_and_deviation(&values);
        say(&format!("{name}, 12 samples, {setting}: {mean:.2} ± {deviation:.2} mm"));
    }
    for (name, profile) in [("100", die_100()), ("0", shaped(PUBLIC_DIES[1].inner()))] {
        let drops = [0.6, 1.5, 3.0, 5.7];
        let [coarse, fine] = [1, 2].map(|factor| deformations(factor * resolution, &profile, &drops));
        for ((drop, (coarse, before)), (fine, after)) in drops.iter().zip(coarse).zip(fine) {
            let whole =
                |part: &[f64], slide: f64| part.chunks(2).flat_map(|p| [p[0] + slide, p[1]]).collect::<Vec<_>>();
            let with_slide = relative_error(&whole(&coarse, before), &whole(&fine, after));
            let error = relative_error(&coarse, &fine);
            say(&format!(
                "die {name} at {drop} mm, {setting} against its double: {with_slide:.3}, without the slide {error:.3}; \
                 slides {before:.3} and {after:.3} mm"
            ));
        }
    }
    let block = pressed(&[&setting], die_100(), 5.7).block;
    let (energy, kinetic, steps) = (block.energy, block.kinetic(), block.steps);
    let [missing, kinetic] = [energy.missing(kinetic), kinetic].map(|part| part / energy.work);
    let found = range(block.positions[0].iter().copied());
    say(&format!("die 100, {setting}: edges {found:.2?}, {steps} steps, missing {missing:.1e}, kinetic {kinetic:.4}"));
}

/// Prints how far the displacement of a few samples moves with the time steps and with mass scaling.
#[test]
#[ignore = "three samples with six settings take minutes"]
fn the_table_of_time_steps_and_mass() {
    let displacement = |index: u64, change: &str| {
        let sample = problem("plasticity", &["resolution=5", change]).sample(0, index).unwrap();
        let values = sample.fields[1].values.chunks(4).flat_map(|node| [node[2], node[3]]);
        values.collect::<Vec<f64>>()
    };
    let percent = |value: f64| format!("{:.1} %", 100.0 * value);
    for index in [0, 1, 2] {
        let short = displacement(index, "step=0.1");
        for change in ["step=0.95", "step=0.5", "step=0.25"] {
            let error = relative_error(&displacement(index, change), &short);
            say(&format!("sample {index}, {change} against step=0.1: {}", percent(error)));
        }
        let usual = displacement(index, "mass_scaling=1");
        let last = |values: &[f64]| values[19 * values.len() / 20..].to_vec();
        for change in ["mass_scaling=25", "mass_scaling=4"] {
            let error = relative_error(&last(&displacement(index, change)), &last(&usual));
            say(&format!("sample {index}, {change} against 1, last snapshot: {}", percent(error)));
        }
    }
}

/// Prints how far the block moves when the knots of a die do: what a model can learn ends where this does not shrink with
/// the change of the die.
#[test]
#[ignore = "two dies, each with six others beside it, take minutes in a release build"]
fn the_table_of_neighbouring_dies() {
    let resolution: usize = std::env::var("RESOLUTION").map_or(5, |text| text.parse().unwrap());
    let setting = format!("resolution={resolution}");
    let whole = |inner: [f64; 7]| {
        let block = pressed(&[&setting], shaped(inner), 5.7).block;
        let [x, y] = block.positions;
        x.into_iter().chain(y).collect::<Vec<f64>>()
    };
    for public in &PUBLIC_DIES[1..3] {
        let (name, inner) = (public.sample, public.inner());
        let usual = whole(inner);
        for change in [1e-6, 1e-4, 1e-3, 1e-2, 1e-1, 3e-1] {
            // every second knot up and the others down; the lowest one stays
            let side = |knot: usize| if knot.is_multiple_of(2) { change } else { -change };
            let moved = std::array::from_fn(|knot| inner[knot] + if inner[knot] > 0.0 { side(knot) } else { 0.0 });
            let error = relative_error(&whole(moved), &usual);
            say(&format!("die {name}, {setting}, knots moved by {change:e} mm: positions at 5.7 mm by {error:.1e}"));
        }
    }
}

#[test]
fn samples_are_stored_as_in_the_public_file() {
    let problem = problem("plasticity", &["resolution=2", "frames=8"]);
    let (rows, columns) = (21, 7);
    for index in 0..3 {
        let sample = problem.sample(3, index).unwrap();
        let [die, deformation] = ["die", "deformation"].map(|name| sample.field(name).unwrap());
        assert_eq!((die.shape.clone(), deformation.shape.clone()), (vec![rows], vec![8, rows, columns, 4]));
        let at =
            |snapshot: usize, i: usize, j: usize| &deformation.values[((snapshot * rows + i) * columns + j) * 4..][..4];
        for snapshot in 0..8 {
            for (i, j) in (0..rows * columns).map(|node| (node / columns, node % columns)) {
                let rest = [0.35 - 2.5 * i as f64, 14.9 - 2.5 * j as f64];
                let [x, y, u_x, u_y] = at(snapshot, i, j) else { panic!("four channels") };
                assert!((x - u_x - rest[0]).abs() < 1e-12 && (y - u_y - rest[1]).abs() < 1e-12, "node {i}, {j}");
                assert!(snapshot > 0 || (*u_x, *u_y) == (0.0, 0.0), "snapshot 0 is deformed");
                assert!(j + 1 < columns || *u_y == 0.0, "the bottom has moved vertically");
            }
        }
        // the lowest point is at 15, both ends have the same height, and the die runs in the opposite direction of the mesh
        let lowest = (0..rows).min_by(|&a, &b| die.values[a].total_cmp(&die.values[b])).unwrap();
        let ends = [die.values[0], die.values[rows - 1]];
        assert!((15.0..16.0).contains(&die.values[lowest]) && ends[0] == ends[1] && (22.5..24.0).contains(&ends[0]));
        let deepest = (0..rows).min_by(|&a, &b| at(7, a, 0)[3].total_cmp(&at(7, b, 0)[3])).unwrap();
        assert!((rows - 1 - lowest).abs_diff(deepest) <= 1, "die lowest at {lowest}, block at {deepest}");
    }
}

#[test]
fn a_crushed_block_is_an_error_that_names_the_time_and_allows_another_draw() {
    let flat = Profile::new(-49.65, 50.0, vec![15.0; 2], &[0.0; 2]);
    let mut forging = plasticity(&["resolution=2"]).forging(flat);
    let error = forging.press(15.2).unwrap_err();
    let message = error.to_string();
    assert!(error.is_distorted() && message.contains("at t = ") && message.contains("expected"), "{message}");
}

#[test]
fn settings_outside_the_physical_range_are_refused() {
    let message = |changes: &[&str]| find("plasticity").unwrap().problem(changes).unwrap_err().to_string();
    assert_eq!(
        message(&["yield_stress=3000"]),
        "plasticity: parameter `yield_stress` expects a number from 1 to 2000, found `3000`"
    );
    assert_eq!(
        message(&["mass_scaling=100"]),
        "plasticity: parameter `speed` expects at most 2.986, at which mass_scaling * density * speed^2 is a tenth \
         of the yield stress, found `3`"
    );
    assert_eq!(
        message(&["hourglass=0.05"]),
        "plasticity: parameter `hourglass` was removed: the elements are fully integrated and have no hourglass modes"
    );
    assert!(message(&["amplitude=-1"]).contains("`amplitude` expects a number from 0 to 30, found `-1`"));
}

#[test]
fn a_flat_die_compresses_the_block_uniformly() {
    let sample = problem("plasticity", &["resolution=1", "amplitude=0"]).sample(0, 0).unwrap();
    let deformation = &sample.fields[1].values;
    let last = &deformation[19 * deformation.len() / 20..];
    let top: Vec<f64> = last.chunks(4 * 4).map(|column| column[1]).collect();
    assert!(top.iter().all(|y| (y - 9.3).abs() < 1e-9), "top at {top:?}");
    // the die is 5.6 mm lower; length and thickness grow equally, by the square root of (14.9 + 0.1) / 9.4
    let [left, right] = range(last.iter().copied().step_by(4));
    let wanted = 50.0 * (15.0f64 / 9.4).sqrt();
    assert!(((right - left) / wanted - 1.0).abs() < 0.02, "length {}, wanted {wanted}", right - left);
}
