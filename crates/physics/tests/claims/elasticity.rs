//! Elasticity: exact solutions, order of accuracy, equilibrium, published numbers.

#![allow(clippy::print_stdout)] // a test prints its measurement

use lamo_physics::finite_element::{POINTS, quadratic};
use lamo_physics::mesh::{Mesh, Point};
use lamo_physics::plate::{Law, Plate, add_traction, von_mises};
use lamo_physics::problems::elasticity::{Side, edges, on_side, unit_cell, void};
use lamo_physics::problems::{Problem, find};

use super::{relative_error, stated_order};

const RUBBER: Law = Law::MooneyRivlin { first: 0.3, second: 0.05 };
const STEEL: Law = Law::Linear { modulus: 2.0, ratio: 0.3 };
/// θ of an irregular void.
const IRREGULAR: [[f64; 2]; 5] = [[7.0, -12.0], [20.0, 4.0], [-9.0, 15.0], [11.0, 3.0], [-18.0, 9.0]];

fn problem(changes: &[&str]) -> Box<dyn Problem> {
    super::problem("elasticity", changes)
}

fn ring(around: usize, layers: usize) -> Mesh {
    Mesh { rows: around, columns: layers, ring: true }
}

fn on_border(mesh: Mesh, node: usize) -> bool {
    node % mesh.node_columns() == mesh.node_columns() - 1
}

#[test]
fn triangles_between_the_gauss_points_cover_the_plate_once() {
    let problem = problem(&["around=12", "layers=2"]);
    let sample = problem.sample(1, 0).unwrap();
    let positions: Vec<&[f64]> = sample.fields[0].values.chunks(2).collect();
    let triangles = problem.triangles(1, 0);
    assert_eq!(triangles.len(), 2 * 36 * 5);
    let area = |corners: &[u32; 3]| {
        let [a, b, c] = corners.map(|corner| positions[corner as usize]);
        ((b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])) / 2.0
    };
    let areas: Vec<f64> = triangles.iter().map(area).collect();
    assert!(areas.iter().all(|area| area * areas[0] > 0.0), "all turn the same way");
    let covered = areas.iter().sum::<f64>().abs();
    assert!(
        (0.5..1.0).contains(&covered),
        "{covered} of the unit square, less the void and half a distance at the edges"
    );
    let mut used: Vec<u32> = triangles.as_flattened().to_vec();
    used.sort_unstable();
    used.dedup();
    assert_eq!(used.len(), positions.len());
}

/// Patch test: a uniform deformation that is prescribed at the border and at the void is uniform inside, at any strain.
#[test]
fn a_uniform_deformation_is_exact_on_curved_cells() {
    let mesh = ring(12, 2);
    let nodes = unit_cell(mesh, |angle| void(&IRREGULAR, angle));
    let points = mesh.quadrature(&nodes).unwrap();
    let uniform = |[x, y]: [f64; 2]| [0.02 * x - 0.1 * y, 0.07 * x + 0.3 * y];
    let prescribed = |node: usize| on_border(mesh, node) || node.is_multiple_of(mesh.node_columns());
    let plate = Plate::new(mesh, |node| [prescribed(node); 2]).unwrap();
    for law in [STEEL, RUBBER] {
        let wanted: Vec<_> = nodes.iter().map(|&node| uniform(node)).collect();
        let guess = |node: usize| wanted[node].map(|value| value + 0.01 * (node as f64).sin());
        let start = (0..nodes.len()).map(|node| if prescribed(node) { wanted[node] } else { guess(node) }).collect();
        let found = plate.solve(&law, &points, &vec![[0.0; 2]; nodes.len()], start).unwrap();
        let error = relative_error(found.as_flattened(), wanted.as_flattened());
        assert!(error < 1e-10, "{law:?}: {error:e}"); // the tolerance of the solver, 1e-11, times a few cells
        let stresses = plate.stresses(&law, &points, &found);
        let first = stresses[0][0];
        for stress in stresses.as_flattened() {
            assert!((0..3).all(|part| (stress[part] - first[part]).abs() < 1e-10), "{law:?}: {stress:?} {first:?}");
        }
    }
}

/// u in an infinite plate with a hole at the origin, under unit tension along x (Kirsch 1898).
fn kirsch([x, y]: [f64; 2], hole: f64, modulus: f64, ratio: f64) -> [f64; 2] {
    let (radius, angle) = (x.hypot(y), y.atan2(x));
    let (shear, kappa) = (0.5 * modulus / (1.0 + ratio), (3.0 - ratio) / (1.0 + ratio));
    let (sine, cosine) = (2.0 * angle).sin_cos();
    let (far, near) = (radius / hole, hole / radius);
    let unit = hole / (8.0 * shear);
    let radial = far * (kappa - 1.0 + 2.0 * cosine) + 2.0 * near * (1.0 + (kappa + 1.0) * cosine);
    let tangential = -2.0 * far + 2.0 * near * (1.0 - kappa) - 2.0 * near.powi(3);
    let [radial, tangential] = [unit * (radial - 2.0 * near.powi(3) * cosine), unit * tangential * sine];
    [radial * angle.cos() - tangential * angle.sin(), radial * angle.sin() + tangential * angle.cos()]
}

/// Greatest stress along the edge of the void. The edge is free, so its stress is E times its strain.
fn edge_stress(mesh: Mesh, nodes: &[[f64; 2]], displacement: &[[f64; 2]], modulus: f64) -> f64 {
    let cell = |row: usize| {
        let edge = [0, 1, 2].map(|node| mesh.node(2 * row + node, 0));
        let strain = |(_, slopes): ([f64; 3], [f64; 3])| {
            let along = |field: &[[f64; 2]], axis: usize| (0..3).map(|k| slopes[k] * field[edge[k]][axis]).sum::<f64>();
            let tangent = [0, 1].map(|axis| along(nodes, axis));
            let change: f64 = (0..2).map(|axis| tangent[axis] * along(displacement, axis)).sum();
            change / (tangent[0].powi(2) + tangent[1].powi(2))
        };
        [-1.0, 0.0, 1.0].map(|coordinate| modulus * strain(quadratic(coordinate))).into_iter().fold(f64::MIN, f64::max)
    };
    (0..mesh.rows).map(cell).fold(f64::MIN, f64::max)
}

/// A unit square cut out of the infinite plate; the exact solution is prescribed at its border.
#[test]
fn the_plate_with_a_hole_converges_with_the_stated_order_to_three_times_the_stress() {
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
    let [(coarse, _), (fine, stress)] = [32, 64].map(solve);
    let observed = (coarse / fine).log2();
    let stated = stated_order(problem(&[]).as_ref());
    println!("order {observed:.2}, stress at the hole {stress:.4}");
    assert!(observed > stated - 0.1, "observed order {observed:.3}, errors {coarse:e} and {fine:e}");
    assert!((stress - 3.0).abs() < 0.01, "stress at the hole {stress:.4}");
}

/// The solved unit cell of the problem, clamped at the bottom and pulled at the top.
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
    edges(mesh, Side::Top).for_each(|edge| add_traction(&mut load, &nodes, edge, |_| [0.0, 100.0]));
    let displacement = plate.solve(law, &points, &load, vec![[0.0; 2]; nodes.len()]).unwrap();
    Pulled { mesh, nodes, points, plate, displacement }
}

#[test]
fn the_reaction_of_the_clamp_balances_the_traction() {
    for law in [Law::Linear { modulus: 1e6, ratio: 0.5 }, Law::MooneyRivlin { first: 1.863e5, second: 9.79e3 }] {
        let mesh = ring(36, 3);
        let cell = pulled(mesh, unit_cell(mesh, |angle| void(&IRREGULAR, angle)), &law);
        let forces = cell.plate.forces(&law, &cell.points, &cell.displacement);
        let clamped: Vec<usize> = (0..mesh.nodes()).filter(|&node| on_side(mesh, node, Side::Bottom)).collect();
        let total = |axis: usize| clamped.iter().map(|&node| forces[node][axis]).sum::<f64>();
        // The tolerance of the solver, 1e-11, times forces that add up to a few hundred.
        assert!((total(1) + 100.0).abs() < 1e-7 && total(0).abs() < 1e-7, "{law:?}: {} {}", total(0), total(1));
    }
}

/// A void of 1 % of the width behaves as in an infinite plate under the stress that the solid plate has at its centre.
/// The stress at its edge is 3 σ_yy − σ_xx (Kirsch 1898), which is 3.078 times the traction because the clamp hinders
/// contraction. The finite size of the square adds about 20 r² (measured with r = 0.01, 0.02, 0.04); the error of the
/// mesh is smaller.
#[test]
fn a_small_void_has_three_times_the_stress_at_its_edge() {
    let law = Law::Linear { modulus: 1e6, ratio: 0.5 };
    let solid = Mesh { rows: 21, columns: 21, ring: false };
    let nodes = solid.nodal_vectors(|row, column| [row as f64 / 42.0, column as f64 / 42.0]);
    let plate = Plate::new(solid, |node| [node.is_multiple_of(43); 2]).unwrap();
    let mut load = vec![[0.0; 2]; nodes.len()];
    for row in 0..21 {
        add_traction(&mut load, &nodes, [0, 1, 2].map(|node| solid.node(2 * row + node, 42)), |_| [0.0, 100.0]);
    }
    let points = solid.quadrature(&nodes).unwrap();
    let found = plate.solve(&law, &points, &load, vec![[0.0; 2]; nodes.len()]).unwrap();
    let [x, y, _] = plate.stresses(&law, &points, &found)[10 * 21 + 10][4]; // the centre of the central cell

    let (mesh, hole) = (ring(128, 40), 0.01_f64);
    let (uniform, columns) = (unit_cell(mesh, |_| hole), mesh.node_columns());
    let nodes = mesh.nodal_vectors(|row, column| {
        let (inner, outer) = (uniform[row * columns], uniform[(row + 1) * columns - 1]);
        let fraction = column as f64 / (columns - 1) as f64;
        let graded = hole * ((0.5 / hole).powf(fraction) - 1.0) / (0.5 - hole); // uniform in log r
        [0, 1].map(|axis| (1.0 - graded) * inner[axis] + graded * outer[axis])
    });
    let cell = pulled(mesh, nodes, &law);
    let edge = edge_stress(cell.mesh, &cell.nodes, &cell.displacement, 1e6);
    println!("stress at the edge {edge:.2}, from the solid plate {:.2}", 3.0 * y - x);
    assert!((edge / (3.0 * y - x) - 1.0).abs() < 0.0015, "edge {edge:.3}, centre {x:.3} and {y:.3}");
    assert!((edge - 307.8).abs() < 1.0, "edge {edge:.3}");
}

/// Cook's membrane in plane stress, E = 1, ν = 1/3, load 1: the middle of the loaded side rises by 23.96.
#[test]
fn cooks_membrane_has_the_published_deflection() {
    let mesh = Mesh { rows: 16, columns: 16, ring: false };
    let nodes = mesh.nodal_vectors(|row, column| {
        let (x, height) = (48.0 * row as f64 / 32.0, column as f64 / 32.0);
        let (low, high) = (44.0 * x / 48.0, 44.0 + 16.0 * x / 48.0);
        [x, low + height * (high - low)]
    });
    let law = Law::Linear { modulus: 1.0, ratio: 1.0 / 3.0 };
    let plate = Plate::new(mesh, |node| [node < mesh.node_columns(); 2]).unwrap();
    let mut load = vec![[0.0; 2]; nodes.len()];
    for cell in 0..mesh.columns {
        let edge = [0, 1, 2].map(|node| mesh.node(2 * mesh.rows, 2 * cell + node));
        add_traction(&mut load, &nodes, edge, |_| [0.0, 1.0 / 16.0]);
    }
    let points = mesh.quadrature(&nodes).unwrap();
    let found = plate.solve(&law, &points, &load, vec![[0.0; 2]; nodes.len()]).unwrap();
    let rise = found[mesh.node(32, 16)][1];
    println!("deflection {rise:.3}");
    assert!((rise - 23.96).abs() < 0.02, "deflection {rise:.4}");
}

/// The relative difference of the laws is of the order of the greatest strain, which is the greatest stress divided by the
/// modulus 6 (C₁ + C₂).
#[test]
fn at_the_default_traction_the_hyperelastic_law_agrees_with_the_linear_law_up_to_the_strain() {
    let (linear, rubber) = (problem(&[]), problem(&["law=hyperelastic"]));
    let (mut above, mut most) = (0, 0.0f64);
    for index in 0..50 {
        let [linear, rubber] = [&linear, &rubber].map(|problem| problem.sample(0, index).unwrap());
        assert_eq!(linear.fields[0], rubber.fields[0]);
        let difference = relative_error(&rubber.fields[1].values, &linear.fields[1].values);
        let strain = linear.fields[1].values.iter().copied().fold(0.0, f64::max) / (6.0 * (1.863e5 + 9.79e3));
        assert!((1e-6..2.0 * strain).contains(&difference), "sample {index}: {difference:e}, strain {strain:e}");
        above += usize::from(difference > 1e-3);
        most = most.max(difference);
    }
    println!("hyperelastic against linear: at most {most:.1e}, above 1e-3 in {above} of 50 samples");
}

#[test]
fn linear_stress_is_proportional_to_the_traction_and_independent_of_the_modulus() {
    let [once, twice] =
        [&[][..], &["traction=-200", "first_constant=7"]].map(|changes| problem(changes).sample(1, 0).unwrap());
    let wanted: Vec<f64> = once.fields[1].values.iter().map(|stress| 2.0 * stress).collect();
    let error = relative_error(&twice.fields[1].values, &wanted);
    assert!(error < 1e-10, "{error:e}");
    assert!(problem(&["traction=0"]).sample(1, 0).unwrap().fields[1].values.iter().all(|&stress| stress == 0.0));
}

/// r lies between 0.2 and 0.4; without roughness it is 0.3.
#[test]
fn the_radius_of_the_void_is_within_its_bounds_and_all_points_are_outside_the_void() {
    let circle = [[0.0; 2]; 5];
    assert!((0..8).all(|k| (void(&circle, f64::from(k)) - 0.3).abs() < 1e-15));
    let extreme = IRREGULAR.map(|pair| pair.map(|value| 100.0 * value));
    assert!((0..100).all(|k| (0.2..=0.4).contains(&void(&extreme, 0.1 * f64::from(k)))));
    for index in 0..20 {
        let sample = problem(&[]).sample(0, index).unwrap();
        assert_eq!(sample.fields[0].shape, [972, 2]);
        for position in sample.fields[0].values.as_chunks::<2>().0 {
            assert!(position.iter().all(|x| (0.0..1.0).contains(x)), "{position:?}");
            let radius = (position[0] - 0.5).hypot(position[1] - 0.5);
            assert!(radius > 0.195, "{position:?}"); // the edges of cells lie slightly inside the circle r = 0.2
        }
    }
}

/// The 2000 samples of the public file have means of about 150 to 260 and maxima of about 450 to 1440 (omni_hc).
#[test]
fn stresses_have_the_published_statistics() {
    let problem = problem(&[]);
    let (mut means, mut greatest) = (Vec::new(), Vec::new());
    for index in 0..300 {
        let sample = problem.sample(0, index).unwrap();
        let stress = &sample.fields[1].values;
        let mean = stress.iter().sum::<f64>() / stress.len() as f64;
        let most = stress.iter().copied().fold(0.0, f64::max);
        assert!((150.0..260.0).contains(&mean), "sample {index}: mean {mean:.1}");
        assert!((450.0..1440.0).contains(&most), "sample {index}: greatest {most:.1}");
        means.push(mean);
        greatest.push(most);
    }
    for (name, mut values) in [("mean", means), ("greatest", greatest)] {
        values.sort_by(f64::total_cmp);
        println!("{name} stress: least {:.0}, median {:.0}, greatest {:.0}", values[0], values[150], values[299]);
    }
}

#[test]
fn the_von_mises_stress_of_tension_and_of_shear_is_exact() {
    assert_eq!(von_mises([3.0, 0.0, 0.0]), 3.0);
    assert_eq!(von_mises([2.0, 2.0, 0.0]), 2.0);
    assert!((von_mises([0.0, 0.0, 1.0]) - 3f64.sqrt()).abs() < 1e-15);
}

#[test]
fn a_mesh_without_nodes_at_the_corners_an_unknown_law_and_an_extreme_load_are_refused() {
    let message = find("elasticity").unwrap().problem(&["around=6"]).unwrap_err().to_string();
    assert_eq!(message, "elasticity: parameter `around` expects a multiple of 4, found `6`");
    let message = find("elasticity").unwrap().problem(&["law=plastic"]).unwrap_err().to_string();
    assert_eq!(message, "elasticity: parameter `law` expects linear or hyperelastic, found `plastic`");
    let extreme = problem(&["law=hyperelastic", "traction=-1e9", "around=12"]).sample(0, 0).unwrap_err().to_string();
    assert!(extreme.starts_with("plane stress: expected"), "{extreme}");
}
