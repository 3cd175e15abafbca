//! Beam: patch test, order of accuracy, theory of beams, equilibrium, numbers of points.

use lamo_physics::body::{Body, Ranges};
use lamo_physics::hexahedron::{Lattice, dot, points, side_points};
use lamo_physics::problems::beam::{ROW, clamped};
use lamo_physics::random_field::stream;
use lamo_physics::solid::{Material, Solid, traction, von_mises};

use super::{norm, problem, relative_error, say, small, stated_order};

const STEEL: Material = Material { modulus: 2.0, ratio: 0.3 };
const RANGES: Ranges = Ranges { length: 1.0, half: [0.15, 0.3], taper: 0.4, waist: 0.3, bend: 1.0, twist: 1.0 };

/// A bent, twisted body with a waist.
fn body() -> Body {
    Body::draw(&RANGES, &mut stream(4, 2))
}

/// Patch test: with a uniform strain prescribed on part of the border and its traction on the rest, the strain is uniform
/// inside, to rounding.
#[test]
fn a_uniform_strain_is_exact_on_curved_cells() {
    let lattice = Lattice { cells: [3, 2, 2] };
    let positions = lattice.mapped(|place| body().position(place));
    let solid = Solid { lattice, positions: &positions, material: STEEL };
    let gradient = [[0.1, -0.2, 0.05], [0.3, 0.02, -0.1], [0.0, 0.15, -0.04]];
    let uniform = |position: [f64; 3]| gradient.map(|row| dot(row, position));
    let wanted: Vec<[f64; 3]> = positions.iter().map(|&position| uniform(position)).collect();
    let stress = STEEL.stress(gradient);
    let mut load = vec![[0.0; 3]; positions.len()];
    let pulled: Vec<_> = [lattice.sides(0, true), lattice.sides(1, false), lattice.sides(2, true)].concat();
    solid.add_traction(&mut load, &pulled, |_, normal| traction(stress, normal));
    let solved =
        solid.solve(&load, |node| (lattice.place(node)[0] == 0 || other_face(lattice, node)).then(|| wanted[node]));
    let solved = solved.unwrap();
    let error = relative_error(solved.displacement.as_flattened(), wanted.as_flattened());
    let worst = solid
        .stresses(&solved.displacement)
        .iter()
        .flat_map(|found| (0..6).map(|part| (found[part] - stress[part]).abs()).collect::<Vec<_>>())
        .fold(0.0, f64::max);
    say(&format!("beam, patch test: displacement {error:.1e}, stress {worst:.1e}, imbalance {:.1e}", solved.imbalance));
    assert!(error < 1e-12 && worst < 1e-12, "{error:e} {worst:e}"); // 1e-16 times a condition number of about 1e3
}

/// Nodes on the faces b = 0 and a = 1.
fn other_face(lattice: Lattice, node: usize) -> bool {
    let ([_, a, b], extents) = (lattice.place(node), lattice.extents());
    b == 0 || a == extents[1] - 1
}

/// u = Σ a sin(k · x): −div σ = Σ ((λ + μ) (a · k) k + μ |k|² a) sin(k · x).
const WAVES: [([f64; 3], [f64; 3]); 2] = [([1.0, 0.3, -0.5], [2.0, 1.0, 1.5]), ([-0.4, 0.8, 0.6], [-1.0, 2.5, 1.0])];

/// Errors of displacement and stress against the sum of waves; the face s = 1 carries its exact traction.
fn manufactured(refinement: usize) -> [f64; 2] {
    let lattice = Lattice { cells: [3, 2, 2].map(|cells| cells * refinement) };
    let positions = lattice.mapped(|place| body().position(place));
    let solid = Solid { lattice, positions: &positions, material: STEEL };
    let (lame, shear) = (STEEL.lame(), STEEL.shear());
    let sum = |term: &dyn Fn([f64; 3], [f64; 3]) -> [f64; 3]| {
        WAVES.iter().fold([0.0; 3], |sum, &(a, k)| {
            let one = term(a, k);
            std::array::from_fn(|axis| sum[axis] + one[axis])
        })
    };
    let exact = |x: [f64; 3]| sum(&|a, k| a.map(|part| part * dot(k, x).sin()));
    let force = |x: [f64; 3]| {
        sum(&|a, k| {
            let along = (lame + shear) * dot(a, k);
            std::array::from_fn(|axis| (along * k[axis] + shear * dot(k, k) * a[axis]) * dot(k, x).sin())
        })
    };
    let stress = |x: [f64; 3]| {
        let mut gradient = [[0.0; 3]; 3];
        for (a, k) in WAVES {
            for i in 0..3 {
                (0..3).for_each(|j| gradient[i][j] += a[i] * k[j] * dot(k, x).cos());
            }
        }
        STEEL.stress(gradient)
    };
    let mut load = vec![[0.0; 3]; positions.len()];
    solid.add_body_force(&mut load, force).unwrap();
    solid.add_traction(&mut load, &lattice.sides(0, true), |x, normal| traction(stress(x), normal));
    let held = |node: usize| {
        let [s, a, b] = lattice.place(node);
        let [_, width, height] = lattice.extents();
        let free_end = s == lattice.extents()[0] - 1 && a > 0 && a < width - 1 && b > 0 && b < height - 1;
        (lattice.on_border(node) && !free_end).then(|| exact(positions[node]))
    };
    let solved = solid.solve(&load, held).unwrap();
    // The displacement between the nodes: at the Gauss points.
    let (mut miss, mut size) = (0.0, 0.0);
    for (cell, nodes) in lattice.cell_nodes().iter().enumerate() {
        for point in points(cell, &nodes.map(|node| positions[node])).unwrap() {
            let wanted = exact(point.position);
            for (axis, wanted) in wanted.into_iter().enumerate() {
                let found: f64 =
                    nodes.iter().zip(point.values).map(|(&n, value)| value * solved.displacement[n][axis]).sum();
                miss += point.volume * (found - wanted).powi(2);
                size += point.volume * wanted.powi(2);
            }
        }
    }
    let found: Vec<f64> = solid.stresses(&solved.displacement).into_iter().flatten().collect();
    let wanted: Vec<f64> = positions.iter().flat_map(|&x| stress(x)).collect();
    [(miss / size).sqrt(), relative_error(&found, &wanted)]
}

#[test]
fn a_smooth_displacement_converges_with_the_stated_order_and_its_stress_with_one_less() {
    let [coarse, fine] = [1, 2].map(manufactured);
    let order = |part: usize| (coarse[part] / fine[part]).log2();
    say(&format!("beam: displacement {:.2e}, {:.2e}, order {:.2}", coarse[0], fine[0], order(0)));
    say(&format!("beam: stress at nodes {:.2e}, {:.2e}, order {:.2}", coarse[1], fine[1], order(1)));
    let stated = stated_order(problem("beam", &[]).as_ref());
    assert!(order(0) > stated - 0.2, "displacement {:.2}", order(0));
    assert!(order(1) > stated - 1.2, "stress {:.2}", order(1));
}

/// Deflection F L³ / (3 E I) + F L / (κ G A), κ = 5/6 (Timoshenko), of a slender bar without transverse contraction.
#[test]
fn a_slender_bar_deflects_as_the_theory_of_beams_says() {
    let (length, [width, height]) = (1f64, [0.05f64, 0.04]);
    let material = Material { modulus: 1000.0, ratio: 0.0 };
    let theory = {
        let (area, inertia) = (4.0 * width * height, 2.0 * width * (2.0 * height).powi(3) / 12.0);
        length.powi(3) / (3.0 * material.modulus * inertia) + length * 6.0 / (5.0 * material.shear() * area)
    };
    let deflection = |along: usize| {
        let lattice = Lattice { cells: [along, 1, 1] };
        let positions = lattice.mapped(|place| Body::straight(length, [width, height]).position(place));
        let solved = clamped(lattice, &positions, material, [0.0, 0.0, 1.0]).unwrap();
        solved.displacement[lattice.node([2 * along, 1, 1])][2] / theory
    };
    let found = [4, 8, 16].map(deflection);
    say(&format!("beam: deflection over theory with 4, 8, 16 cells: {found:.5?}"));
    assert!((found[2] - 1.0).abs() < 0.005, "{found:?}");
    assert!((found[2] - found[1]).abs() < (found[1] - found[0]).abs(), "{found:?} does not converge");
}

/// Tension of a bar whose sides can contract: σ = F / A away from the clamp.
#[test]
fn a_pulled_bar_has_the_stress_force_over_area_far_from_the_clamp() {
    let lattice = Lattice { cells: [12, 2, 2] };
    let positions = lattice.mapped(|place| Body::straight(1.0, [0.05, 0.05]).position(place));
    let solved = clamped(lattice, &positions, STEEL, [0.01, 0.0, 0.0]).unwrap();
    let stress = Solid { lattice, positions: &positions, material: STEEL }.stresses(&solved.displacement);
    for node in (0..lattice.nodes()).filter(|&node| positions[node][0] > 0.6) {
        assert!((von_mises(stress[node]) - 1.0).abs() < 1e-3, "{:?}", stress[node]);
    }
}

/// The solver's imbalance says that the free nodes are in equilibrium; the clamp then carries the force at the end.
#[test]
fn samples_are_in_equilibrium_and_stand_still_at_the_clamp() {
    let problem = small(&ROW, &[]);
    let sample = problem.sample(1, 3).unwrap();
    let values = |name: &str| &sample.field(name).unwrap().values;
    let (moved, distance) = (values("displacement"), values("distance"));
    for (vector, &distance) in moved.as_chunks::<3>().0.iter().zip(distance) {
        assert_eq!(distance == 0.0, norm(vector) == 0.0, "{distance} {vector:?}");
    }
    let force = norm(values("force"));
    assert!((0.5..=1.0).contains(&force), "{force}");
}

#[test]
fn samples_have_the_points_that_were_promised_and_equally_many_unless_varied() {
    let problem = problem("beam", &["along=4", "across=2"]);
    let mut sizes = Vec::new();
    for index in 0..6 {
        let sample = problem.sample(3, index).unwrap();
        let points = sample.field("stress").unwrap().values.len();
        assert_eq!(Some(points), problem.points_of(3, index));
        sizes.push(points);
    }
    sizes.sort_unstable();
    sizes.dedup();
    assert!(sizes.len() > 2 && sizes.iter().all(|&points| points <= problem.grid().points()), "{sizes:?}");
    let fixed = super::problem("beam", &["along=2", "across=1", "varied=false"]);
    assert_eq!((fixed.points_of(0, 0), fixed.grid().points()), (None, 45));
    assert_eq!(fixed.sample(0, 1).unwrap().fields[0].shape, [45, 3]);
}

/// The mean position of the end face moves along with the force on average: the work of the force is positive.
#[test]
fn the_force_does_positive_work() {
    let problem = small(&ROW, &[]);
    for index in 0..3 {
        let sample = problem.sample(0, index).unwrap();
        let values = |name: &str| &sample.field(name).unwrap().values;
        let force: [f64; 3] = values("force")[..].try_into().unwrap();
        let end = values("distance").iter().copied().fold(0.0, f64::max);
        let pairs = values("displacement").as_chunks::<3>().0.iter().zip(values("distance"));
        let work: f64 = pairs.filter(|(_, distance)| **distance == end).map(|(moved, _)| dot(*moved, force)).sum();
        assert!(work > 0.0, "{work}");
    }
    let body = Body::straight(1.0, [0.5, 0.5]);
    let lattice = Lattice { cells: [1, 1, 1] };
    let positions = lattice.mapped(|place| body.position(place));
    let area: f64 =
        lattice.sides(0, true).iter().flat_map(|s| side_points(&s.map(|n| positions[n]))).map(|p| p.area()).sum();
    assert!((area - 1.0).abs() < 1e-14);
}

#[test]
fn the_surface_of_a_body_is_closed_and_has_the_nodes_of_its_faces() {
    for name in ["beam", "heat"] {
        let problem = problem(name, &["along=3", "across=2"]);
        for index in 0..4 {
            let points = problem.points_of(7, index).unwrap();
            let triangles = problem.triangles(7, index);
            assert!(triangles.as_flattened().iter().all(|&point| (point as usize) < points), "{name}");
            let mut edges: Vec<[u32; 2]> = Vec::new();
            for [a, b, c] in triangles {
                edges.extend([[a, b], [b, c], [c, a]].map(|[from, to]| [from.min(to), from.max(to)]));
            }
            edges.sort_unstable();
            let closed = edges.chunk_by(|one, other| one == other).all(|same| same.len() == 2);
            assert!(closed, "{name} {index}: every edge has two triangles");
        }
    }
}
