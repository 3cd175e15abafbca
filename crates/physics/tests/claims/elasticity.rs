//! Elasticity: exact solutions, order of accuracy, equilibrium, then numbers published by others.

use lamo_physics::finite_element::{POINTS, quadratic};
use lamo_physics::mesh::{Mesh, Point};
use lamo_physics::plate::{Law, Plate, pull, von_mises};
use lamo_physics::problems::elasticity::{Side, on_side, sides, unit_cell, void};
use lamo_physics::problems::{Problem, SpatialOrder, find};

use super::relative_error;

const RUBBER: Law = Law::MooneyRivlin { first: 0.3, second: 0.05 };
const STEEL: Law = Law::Linear { modulus: 2.0, ratio: 0.3 };
/// An uneven void: θ of one draw.
const UNEVEN: [[f64; 2]; 5] = [[7.0, -12.0], [20.0, 4.0], [-9.0, 15.0], [11.0, 3.0], [-18.0, 9.0]];

fn problem(changes: &[&str]) -> Box<dyn Problem> {
    find("elasticity").unwrap().problem(changes).unwrap()
}

fn ring(around: usize, layers: usize) -> Mesh {
    Mesh { rows: around, columns: layers, ring: true }
}

fn on_border(mesh: Mesh, node: usize) -> bool {
    node % mesh.node_columns() == mesh.node_columns() - 1
}

/// Patch test: an even deformation held at the whole border, void included, is even inside, at any strain.
#[test]
fn an_even_deformation_is_exact_on_bent_cells() {
    let mesh = ring(12, 2);
    let nodes = unit_cell(mesh, |angle| void(&UNEVEN, angle));
    let points = mesh.quadrature(&nodes).unwrap();
    let even = |[x, y]: [f64; 2]| [0.02 * x - 0.1 * y, 0.07 * x + 0.3 * y];
    let held = |node: usize| on_border(mesh, node) || node.is_multiple_of(mesh.node_columns());
    let plate = Plate::new(mesh, |node| [held(node); 2]).unwrap();
    for law in [STEEL, RUBBER] {
        let wanted: Vec<_> = nodes.iter().map(|&node| even(node)).collect();
        let off = |node: usize| wanted[node].map(|value| value + 0.01 * (node as f64).sin());
        let start = (0..nodes.len()).map(|node| if held(node) { wanted[node] } else { off(node) }).collect();
        let found = plate.solve(&law, &points, &vec![[0.0; 2]; nodes.len()], start).unwrap();
        let error = relative_error(found.as_flattened(), wanted.as_flattened());
        assert!(error < 1e-10, "{law:?}: {error:e}"); // the balance of forces asked for, 1e-11, times a few cells
        let stresses = plate.stresses(&law, &points, &found);
        let first = stresses[0][0];
        for stress in stresses.as_flattened() {
            assert!((0..3).all(|part| (stress[part] - first[part]).abs() < 1e-10), "{law:?}: {stress:?} {first:?}");
        }
    }
}

/// u in an endless plate with a hole of radius a at the origin, pulled by 1 along x (Kirsch 1898).
fn kirsch([x, y]: [f64; 2], hole: f64, modulus: f64, ratio: f64) -> [f64; 2] {
    let (radius, angle) = (x.hypot(y), y.atan2(x));
    let (shear, kappa) = (0.5 * modulus / (1.0 + ratio), (3.0 - ratio) / (1.0 + ratio));
    let (sine, cosine) = (2.0 * angle).sin_cos();
    let (far, near) = (radius / hole, hole / radius);
    let unit = hole / (8.0 * shear);
    let outward = far * (kappa - 1.0 + 2.0 * cosine) + 2.0 * near * (1.0 + (kappa + 1.0) * cosine);
    let along = -2.0 * far + 2.0 * near * (1.0 - kappa) - 2.0 * near.powi(3);
    let [outward, along] = [unit * (outward - 2.0 * near.powi(3) * cosine), unit * along * sine];
    [outward * angle.cos() - along * angle.sin(), outward * angle.sin() + along * angle.cos()]
}

/// Greatest stress along the free edge of the void: E times the stretch of its sides, for nothing presses on it.
fn edge_stress(mesh: Mesh, nodes: &[[f64; 2]], displacement: &[[f64; 2]], modulus: f64) -> f64 {
    let cell = |row: usize| {
        let side = [0, 1, 2].map(|node| mesh.node(2 * row + node, 0));
        let stretch = |(_, slopes): ([f64; 3], [f64; 3])| {
            let along = |field: &[[f64; 2]], axis: usize| (0..3).map(|k| slopes[k] * field[side[k]][axis]).sum::<f64>();
            let tangent = [0, 1].map(|axis| along(nodes, axis));
            let change: f64 = (0..2).map(|axis| tangent[axis] * along(displacement, axis)).sum();
            change / (tangent[0].powi(2) + tangent[1].powi(2))
        };
        [-1.0, 0.0, 1.0].map(|place| modulus * stretch(quadratic(place))).into_iter().fold(f64::MIN, f64::max)
    };
    (0..mesh.rows).map(cell).fold(f64::MIN, f64::max)
}

/// The endless plate seen through a unit square whose border follows the exact solution.
#[test]
fn the_plate_with_a_hole_converges_with_the_stated_order_to_threefold_stress() {
    let (hole, modulus, ratio) = (0.25, 2.0, 0.3);
    let solve = |around: usize| {
        let mesh = ring(around, around / 8);
        let nodes = unit_cell(mesh, |_| hole);
        let exact: Vec<_> = nodes.iter().map(|[x, y]| kirsch([x - 0.5, y - 0.5], hole, modulus, ratio)).collect();
        let plate = Plate::new(mesh, |node| [on_border(mesh, node); 2]).unwrap();
        let start = (0..nodes.len()).map(|node| if on_border(mesh, node) { exact[node] } else { [0.0; 2] }).collect();
        let points = mesh.quadrature(&nodes).unwrap();
        let found = plate.solve(&STEEL, &points, &vec![[0.0; 2]; nodes.len()], start).unwrap();
        let stress = edge_stress(mesh, &nodes, &found, modulus);
        (relative_error(found.as_flattened(), exact.as_flattened()), stress)
    };
    let [(_, _), (coarse, _), (fine, stress)] = [16, 32, 64].map(solve);
    let observed = (coarse / fine).log2();
    let SpatialOrder::Algebraic(stated) = problem(&[]).spatial_order() else { panic!("finite elements") };
    assert!(observed > stated - 0.1, "observed order {observed:.3}, errors {coarse:e} and {fine:e}");
    assert!((stress - 3.0).abs() < 0.01, "stress at the hole {stress:.4}");
}

/// The unit cell of the problem, clamped below and pulled above.
struct Pulled {
    mesh: Mesh,
    nodes: Vec<[f64; 2]>,
    points: Vec<[Point; POINTS]>,
    plate: Plate,
    displacement: Vec<[f64; 2]>,
}

fn pulled(mesh: Mesh, nodes: Vec<[f64; 2]>, law: &Law) -> Pulled {
    let points = mesh.quadrature(&nodes).unwrap();
    let plate = Plate::new(mesh, |node| [on_side(mesh, node, Side::Bottom); 2]).unwrap();
    let mut load = vec![[0.0; 2]; nodes.len()];
    sides(mesh, Side::Top).for_each(|side| pull(&mut load, &nodes, side, |_| [0.0, 100.0]));
    let displacement = plate.solve(law, &points, &load, vec![[0.0; 2]; nodes.len()]).unwrap();
    Pulled { mesh, nodes, points, plate, displacement }
}

#[test]
fn the_clamp_holds_what_the_traction_pulls() {
    for law in [Law::Linear { modulus: 1e6, ratio: 0.5 }, Law::MooneyRivlin { first: 1.863e5, second: 9.79e3 }] {
        let mesh = ring(36, 3);
        let cell = pulled(mesh, unit_cell(mesh, |angle| void(&UNEVEN, angle)), &law);
        let forces = cell.plate.forces(&law, &cell.points, &cell.displacement);
        let held: Vec<usize> = (0..mesh.nodes()).filter(|&node| on_side(mesh, node, Side::Bottom)).collect();
        let total = |axis: usize| held.iter().map(|&node| forces[node][axis]).sum::<f64>();
        // The balance asked for, 1e-11, of forces that add up to a few hundred.
        assert!((total(1) + 100.0).abs() < 1e-7 && total(0).abs() < 1e-7, "{law:?}: {} {}", total(0), total(1));
    }
}

/// A void of 1 % of the width sees an endless plate under the stress that the solid plate has at its centre, so its
/// edge reaches 3 σ_yy − σ_xx (Kirsch 1898): 3.078 times the traction, since the clamp hinders contraction.
/// The border adds about 20 r² (seen from r = 0.01, 0.02, 0.04), the mesh less.
#[test]
fn a_small_void_concentrates_the_stress_threefold() {
    let law = Law::Linear { modulus: 1e6, ratio: 0.5 };
    let solid = Mesh { rows: 21, columns: 21, ring: false };
    let nodes = solid.place(|row, column| [row as f64 / 42.0, column as f64 / 42.0]);
    let plate = Plate::new(solid, |node| [node.is_multiple_of(43); 2]).unwrap();
    let mut load = vec![[0.0; 2]; nodes.len()];
    for row in 0..21 {
        pull(&mut load, &nodes, [0, 1, 2].map(|node| solid.node(2 * row + node, 42)), |_| [0.0, 100.0]);
    }
    let points = solid.quadrature(&nodes).unwrap();
    let found = plate.solve(&law, &points, &load, vec![[0.0; 2]; nodes.len()]).unwrap();
    let [x, y, _] = plate.stresses(&law, &points, &found)[10 * 21 + 10][4]; // the middle of the middle cell

    let (mesh, hole) = (ring(128, 40), 0.01_f64);
    let (even, columns) = (unit_cell(mesh, |_| hole), mesh.node_columns());
    let nodes = mesh.place(|row, column| {
        let (inner, outer) = (even[row * columns], even[(row + 1) * columns - 1]);
        let share = column as f64 / (columns - 1) as f64;
        let graded = hole * ((0.5 / hole).powf(share) - 1.0) / (0.5 - hole); // even in the logarithm of r
        [0, 1].map(|axis| (1.0 - graded) * inner[axis] + graded * outer[axis])
    });
    let cell = pulled(mesh, nodes, &law);
    let edge = edge_stress(cell.mesh, &cell.nodes, &cell.displacement, 1e6);
    assert!((edge / (3.0 * y - x) - 1.0).abs() < 0.0015, "edge {edge:.3}, centre {x:.3} and {y:.3}");
    assert!((edge - 307.8).abs() < 1.0, "edge {edge:.3}");
}

/// Cook's membrane in plane stress, E = 1, ν = 1/3, load 1: the middle of the loaded side rises by 23.96.
#[test]
fn the_membrane_of_cook_bends_as_published() {
    let mesh = Mesh { rows: 16, columns: 16, ring: false };
    let nodes = mesh.place(|row, column| {
        let (x, share) = (48.0 * row as f64 / 32.0, column as f64 / 32.0);
        let (low, high) = (44.0 * x / 48.0, 44.0 + 16.0 * x / 48.0);
        [x, low + share * (high - low)]
    });
    let law = Law::Linear { modulus: 1.0, ratio: 1.0 / 3.0 };
    let plate = Plate::new(mesh, |node| [node < mesh.node_columns(); 2]).unwrap();
    let mut load = vec![[0.0; 2]; nodes.len()];
    for cell in 0..mesh.columns {
        let side = [0, 1, 2].map(|node| mesh.node(2 * mesh.rows, 2 * cell + node));
        pull(&mut load, &nodes, side, |_| [0.0, 1.0 / 16.0]);
    }
    let points = mesh.quadrature(&nodes).unwrap();
    let found = plate.solve(&law, &points, &load, vec![[0.0; 2]; nodes.len()]).unwrap();
    let rise = found[mesh.node(32, 16)][1];
    assert!((rise - 23.96).abs() < 0.02, "tip {rise:.4}");
}

/// Strains are about 100 / 1.2e6 times the concentration: the laws differ by that order.
#[test]
fn at_this_traction_the_hyperelastic_law_is_linear() {
    for index in 0..3 {
        let linear = problem(&[]).sample(3, index).unwrap();
        let rubber = problem(&["law=hyperelastic"]).sample(3, index).unwrap();
        assert_eq!(linear.fields[0], rubber.fields[0]);
        let difference = relative_error(&rubber.fields[1].values, &linear.fields[1].values);
        assert!((1e-6..1e-3).contains(&difference), "sample {index}: {difference:e}");
    }
}

#[test]
fn linear_stress_follows_the_traction_and_ignores_the_modulus() {
    let [once, twice] =
        [&[][..], &["traction=-200", "first_constant=7"]].map(|changes| problem(changes).sample(1, 0).unwrap());
    let wanted: Vec<f64> = once.fields[1].values.iter().map(|stress| 2.0 * stress).collect();
    let error = relative_error(&twice.fields[1].values, &wanted);
    assert!(error < 1e-10, "{error:e}");
    assert!(problem(&["traction=0"]).sample(1, 0).unwrap().fields[1].values.iter().all(|&stress| stress == 0.0));
}

/// r lies between 0.2 and 0.4; without roughness it is their mean.
#[test]
fn the_void_keeps_its_bounds_and_the_points_keep_out_of_it() {
    let flat = [[0.0; 2]; 5];
    assert!((0..8).all(|k| (void(&flat, f64::from(k)) - 0.3).abs() < 1e-15));
    let wild = UNEVEN.map(|pair| pair.map(|value| 100.0 * value));
    assert!((0..100).all(|k| (0.2..=0.4).contains(&void(&wild, 0.1 * f64::from(k)))));
    for index in 0..20 {
        let sample = problem(&[]).sample(0, index).unwrap();
        assert_eq!(sample.fields[0].shape, [972, 2]);
        for place in sample.fields[0].values.as_chunks::<2>().0 {
            assert!(place.iter().all(|x| (0.0..1.0).contains(x)), "{place:?}");
            assert!((place[0] - 0.5).hypot(place[1] - 0.5) > 0.195, "{place:?}"); // chords cut the arc by a little
        }
    }
}

/// The public file: per-sample means of about 150 to 260, maxima of about 450 to 1440, over 2000 samples (omni_hc).
#[test]
fn stresses_have_the_published_statistics() {
    let problem = problem(&[]);
    for index in 0..60 {
        let sample = problem.sample(0, index).unwrap();
        let stress = &sample.fields[1].values;
        let mean = stress.iter().sum::<f64>() / stress.len() as f64;
        let most = stress.iter().copied().fold(0.0, f64::max);
        assert!((150.0..260.0).contains(&mean), "sample {index}: mean {mean:.1}");
        assert!((450.0..1440.0).contains(&most), "sample {index}: greatest {most:.1}");
    }
}

#[test]
fn von_mises_knows_tension_and_shear() {
    assert_eq!(von_mises([3.0, 0.0, 0.0]), 3.0);
    assert_eq!(von_mises([2.0, 2.0, 0.0]), 2.0);
    assert!((von_mises([0.0, 0.0, 1.0]) - 3f64.sqrt()).abs() < 1e-15);
}

#[test]
fn a_ring_that_misses_the_corners_and_a_load_beyond_the_law_are_refused() {
    let message = find("elasticity").unwrap().problem(&["around=6"]).unwrap_err().to_string();
    assert_eq!(message, "elasticity: parameter `around` expects a multiple of 4, found `6`");
    let message = find("elasticity").unwrap().problem(&["law=plastic"]).unwrap_err().to_string();
    assert_eq!(message, "elasticity: parameter `law` expects linear or hyperelastic, found `plastic`");
    let absurd = problem(&["law=hyperelastic", "traction=-1e9", "around=12"]).sample(0, 0).unwrap_err().to_string();
    assert!(absurd.starts_with("plane stress: expected"), "{absurd}");
}
