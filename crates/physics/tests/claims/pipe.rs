//! Pipe flow: exact solution, orders of accuracy, conserved quantity, published numbers.

#![allow(clippy::print_stdout)] // the tests print their measurements

use lamo_physics::finite_element::{POINTS, bilinear, biquadratic, gauss, quadratic};
use lamo_physics::mesh::{Mesh, Point};
use lamo_physics::problems::Problem;
use lamo_physics::problems::pipe::{centreline, is_prescribed, positions, start};
use lamo_physics::taylor_hood::{Flow, Outlet, TaylorHood};

use super::{relative_error, stated_order};

/// Heights and slopes of a pipe with strong bends.
const KNOTS: [[f64; 2]; 5] = [[0.0, 1.9], [0.9, -1.5], [-0.8, 0.4], [0.7, 1.8], [-0.2, -1.0]];

fn problem(changes: &[&str]) -> Box<dyn Problem> {
    super::problem("pipe", changes)
}

fn square(cells: usize) -> Mesh {
    Mesh { rows: cells, columns: cells, ring: false }
}

/// Nodes, Gauss points and flow of a pipe with the centreline `centre`.
fn solved(
    mesh: Mesh,
    viscosity: f64,
    outlet: Outlet,
    centre: impl Fn(f64) -> f64,
) -> (Vec<[f64; 2]>, Vec<[Point; POINTS]>, Flow) {
    let nodes = positions(mesh, centre);
    let points = mesh.quadrature(&nodes).unwrap();
    let system = TaylorHood::new(mesh, |node| is_prescribed(mesh, node), outlet).unwrap();
    let flow = system.solve(viscosity, &nodes, |_| [0.0; 2], start(mesh)).unwrap();
    (nodes, points, flow)
}

/// Poiseuille: the cells represent u_x = t (1 − t) and p = 2ν (10 − x) exactly, and p is zero at the outlet.
#[test]
fn a_straight_pipe_is_solved_exactly_with_both_outlets() {
    let (mesh, viscosity) = (Mesh { rows: 5, columns: 4, ring: false }, 0.005);
    for outlet in [Outlet::DoNothing, Outlet::Free] {
        let (nodes, _, flow) = solved(mesh, viscosity, outlet, |_| 0.0);
        for (node, [along, across]) in nodes.iter().zip(&flow.velocity) {
            let wanted = (node[1] + 0.5) * (0.5 - node[1]);
            let error = (along - wanted).abs().max(across.abs());
            assert!(error < 1e-13, "{outlet:?}, {node:?}: {along} {across}, wanted {wanted}");
        }
        for (node, pressure) in nodes.iter().zip(mesh.at_nodes(&flow.pressure)) {
            let wanted = 2.0 * viscosity * (10.0 - node[0]);
            assert!((pressure - wanted).abs() < 1e-13, "{outlet:?}, {node:?}: {pressure}, wanted {wanted}");
        }
    }
}

/// The mean flux over each row of cells is exact: ∇·u = 0 holds for the test function that falls from 1 to 0 across the
/// row; it is zero at the last vertex, so this includes the free outlet. With do-nothing, the flux through a single
/// section converges with the order of the velocity.
#[test]
fn the_flux_through_every_section_is_one_sixth() {
    let values = gauss().map(|(point, _)| biquadratic(point).values);
    let worst = |rows: usize, outlet: Outlet| {
        let mesh = Mesh { rows, columns: rows / 4, ring: false };
        let (_, points, flow) = solved(mesh, 0.005, outlet, |x| centreline(&KNOTS, x));
        for row in 0..rows {
            let cell = |cell: usize| -> f64 {
                let velocity = mesh.cell_nodes(cell).map(|node| flow.velocity[node][0]);
                let at = |point: usize| (0..9).map(|node| values[point][node] * velocity[node]).sum::<f64>();
                (0..POINTS).map(|point| points[cell][point].area * at(point)).sum()
            };
            let volume: f64 = (0..mesh.columns).map(|column| cell(row * mesh.columns + column)).sum();
            let flux = volume * rows as f64 / 10.0;
            // The tolerance of the solver is 1e-11.
            assert!((flux - 1.0 / 6.0).abs() < 1e-9, "{outlet:?}, row {row}: flux {flux:.12}");
        }
        let section = |row: usize| {
            let at = |column: usize| flow.velocity[mesh.node(row, column)][0];
            // Simpson's rule is exact.
            let cell = |cell: usize| (at(2 * cell) + 4.0 * at(2 * cell + 1) + at(2 * cell + 2)) / 6.0;
            ((0..mesh.columns).map(cell).sum::<f64>() / mesh.columns as f64 - 1.0 / 6.0).abs()
        };
        (0..mesh.node_rows()).map(section).fold(0.0, f64::max)
    };
    let [coarse, fine] = [32, 64].map(|rows| worst(rows, Outlet::DoNothing));
    let observed = (coarse / fine).log2();
    assert!(observed > 2.5 && fine < 2e-3, "worst section {coarse:e}, refined {fine:e}, order {observed:.2}");
    println!("worst section {coarse:.1e}, refined {fine:.1e}; free outlet {:.1e}", worst(64, Outlet::Free));
}

/// u = curl of sin(2x + 0.3) sin 3y, p = cos(x + 2y), in a curved unit square with u prescribed on the whole border.
#[test]
fn smooth_flows_converge_with_order_three_in_velocity_and_two_in_pressure() {
    let viscosity = 0.1;
    let velocity = |[x, y]: [f64; 2]| {
        let (first, second) = (2.0 * x + 0.3, 3.0 * y);
        [3.0 * first.sin() * second.cos(), -2.0 * first.cos() * second.sin()]
    };
    let pressure = |[x, y]: [f64; 2]| (x + 2.0 * y).cos();
    let force = |[x, y]: [f64; 2]| {
        let (first, second, phase) = (2.0 * x + 0.3, 3.0 * y, (x + 2.0 * y).sin());
        let [u, v] = velocity([x, y]);
        let (strain, rotation) = (6.0 * first.cos() * second.cos(), first.sin() * second.sin());
        let inertia = [u * strain - 9.0 * v * rotation, 4.0 * u * rotation - v * strain];
        [inertia[0] + 13.0 * viscosity * u - phase, inertia[1] + 13.0 * viscosity * v - 2.0 * phase]
    };
    let errors = |cells: usize| {
        let mesh = square(cells);
        let side = 2.0 * cells as f64;
        let nodes = mesh.nodal_vectors(|row, column| {
            let (x, y) = (row as f64 / side, column as f64 / side);
            [x + 0.05 * (4.0 * y).sin(), y + 0.1 * (3.0 * x).sin()]
        });
        let points = mesh.quadrature(&nodes).unwrap();
        let border = |node: usize| is_prescribed(mesh, node) || node >= mesh.node(2 * cells, 0);
        let system = TaylorHood::new(mesh, border, Outlet::Closed).unwrap();
        let prescribed = |node: usize| if border(node) { velocity(nodes[node]) } else { [0.0; 2] };
        let start =
            Flow { velocity: (0..mesh.nodes()).map(prescribed).collect(), pressure: vec![0.0; mesh.vertices()] };
        let flow = system.solve(viscosity, &nodes, force, start).unwrap();
        // P is determined up to a constant; the mean below corrects it.
        let shift = pressure(nodes[0]) - flow.pressure[0];
        let (mut velocity_error, mut pressure_error, mut mean, mut area) = (0.0, 0.0, 0.0, 0.0);
        for (cell, (point, (reference, _))) in points
            .iter()
            .enumerate()
            .flat_map(|(cell, points)| points.iter().zip(gauss()).map(move |both| (cell, both)))
        {
            let (values, corners) = (biquadratic(reference).values, bilinear(reference).values);
            let local = mesh.cell_nodes(cell).map(|node| flow.velocity[node]);
            let found = [0, 1].map(|axis| (0..9).map(|node| values[node] * local[node][axis]).sum::<f64>());
            let wanted = velocity(point.position);
            velocity_error += point.area * ((found[0] - wanted[0]).powi(2) + (found[1] - wanted[1]).powi(2));
            let vertices = mesh.cell_vertices(cell);
            let level: f64 = (0..4).map(|vertex| corners[vertex] * flow.pressure[vertices[vertex]]).sum();
            let difference = level + shift - pressure(point.position);
            (mean, area) = (mean + point.area * difference, area + point.area);
            pressure_error += point.area * difference * difference;
        }
        [velocity_error.sqrt(), (pressure_error - mean * mean / area).sqrt()]
    };
    let (coarse, fine) = (errors(10), errors(20));
    let stated = stated_order(problem(&["resolution=4"]).as_ref());
    for (part, wanted) in [stated, stated - 1.0].into_iter().enumerate() {
        let observed = (coarse[part] / fine[part]).log2();
        println!("part {part}: order {observed:.2}");
        assert!((observed - wanted).abs() < 0.15, "part {part}: observed order {observed:.3}, {coarse:?} {fine:?}");
    }
}

/// u = (y², x²) and a linear p in a sheared square: the cells represent both, and the outlet carries the traction of
/// this flow. Newton's method returns to it from a start that is 1 % off.
#[test]
fn a_free_outlet_carries_the_traction_of_the_exact_flow() {
    let (mesh, viscosity, slope) = (Mesh { rows: 4, columns: 3, ring: false }, 0.1, [0.7, -0.4]);
    let nodes = mesh.nodal_vectors(|row, column| {
        let (x, y) = (row as f64 / 8.0, column as f64 / 6.0);
        [x + 0.2 * y, y + 0.3 * x]
    });
    let last = nodes[nodes.len() - 1];
    let velocity = |[x, y]: [f64; 2]| [y * y, x * x];
    let pressure = |[x, y]: [f64; 2]| slope[0] * (x - last[0]) + slope[1] * (y - last[1]);
    let force =
        |[x, y]: [f64; 2]| [2.0 * x * x * y - 2.0 * viscosity + slope[0], 2.0 * y * y * x - 2.0 * viscosity + slope[1]];
    let prescribed = |node: usize| is_prescribed(mesh, node);
    let guess = |node: usize| velocity(nodes[node]).map(|value| if prescribed(node) { value } else { 1.01 * value });
    let start = Flow { velocity: (0..mesh.nodes()).map(guess).collect(), pressure: vec![0.0; mesh.vertices()] };
    let system = TaylorHood::new(mesh, prescribed, Outlet::Free).unwrap();
    let flow = system.solve(viscosity, &nodes, force, start).unwrap();
    let wanted: Vec<[f64; 2]> = nodes.iter().map(|&node| velocity(node)).collect();
    let wanted_pressure: Vec<f64> = nodes.iter().map(|&node| pressure(node)).collect();
    let errors = [
        relative_error(flow.velocity.as_flattened(), wanted.as_flattened()),
        relative_error(&mesh.at_nodes(&flow.pressure), &wanted_pressure),
    ];
    // The tolerance of the solver is 1e-11.
    assert!(errors.iter().all(|&error| error < 1e-9), "{errors:?}");
}

/// Ghia, Ghia and Shin 1982, tables I and II at Re = 100: u_x on the vertical and u_y on the horizontal centreline.
const GHIA_U: [[f64; 2]; 15] = [
    [0.0547, -0.03717],
    [0.0625, -0.04192],
    [0.0703, -0.04775],
    [0.1016, -0.06434],
    [0.1719, -0.10150],
    [0.2813, -0.15662],
    [0.4531, -0.21090],
    [0.5, -0.20581],
    [0.6172, -0.13641],
    [0.7344, 0.00332],
    [0.8516, 0.23151],
    [0.9531, 0.68717],
    [0.9609, 0.73722],
    [0.9688, 0.78871],
    [0.9766, 0.84123],
];
const GHIA_V: [[f64; 2]; 15] = [
    [0.0625, 0.09233],
    [0.0703, 0.10091],
    [0.0781, 0.10890],
    [0.0938, 0.12317],
    [0.1563, 0.16077],
    [0.2266, 0.17507],
    [0.2344, 0.17527],
    [0.5, 0.05454],
    [0.8047, -0.24533],
    [0.8594, -0.22445],
    [0.9063, -0.16914],
    [0.9453, -0.10313],
    [0.9531, -0.08864],
    [0.9609, -0.07391],
    [0.9688, -0.05906],
];

/// Marchi, Suero and Araki 2009: the same quantities, extrapolated from 1024² volumes, at k/16, k = 1 … 15.
const MARCHI_U: [f64; 15] = [
    -0.041974991,
    -0.077125399,
    -0.109816214,
    -0.141930064,
    -0.172712391,
    -0.198470859,
    -0.212962392,
    -0.209149142,
    -0.182080595,
    -0.131256301,
    -0.060245594,
    0.027874448,
    0.140425325,
    0.310557090,
    0.597466694,
];
const MARCHI_V: [f64; 15] = [
    0.094807616,
    0.149243000,
    0.174342933,
    0.179243328,
    0.169132064,
    0.145730201,
    0.108775865,
    0.057536559,
    -0.007748504,
    -0.084066715,
    -0.163010143,
    -0.227827313,
    -0.253768577,
    -0.218690812,
    -0.123318170,
];

/// The value at `position`, from 0 to 1, of a piecewise quadratic function with these values at evenly spaced nodes.
fn interpolated(line: &[f64], position: f64) -> f64 {
    let cells = (line.len() - 1) / 2;
    let cell = ((position * cells as f64) as usize).min(cells - 1);
    let (values, _) = quadratic(2.0 * (position * cells as f64 - cell as f64) - 1.0);
    (0..3).map(|node| values[node] * line[2 * cell + node]).sum()
}

/// The tables of Ghia differ by up to 0.01 from the finer ones of Marchi; our error is less than a hundredth of that.
#[test]
fn the_flow_in_a_driven_cavity_agrees_with_ghia_and_marchi() {
    let (cells, mesh) = (32, square(32));
    let nodes = mesh.nodal_vectors(|row, column| [row as f64 / 64.0, column as f64 / 64.0]);
    let border = |node: usize| is_prescribed(mesh, node) || node >= mesh.node(2 * cells, 0);
    let system = TaylorHood::new(mesh, border, Outlet::Closed).unwrap();
    let lid = |row: usize, column: usize| [f64::from(column == 2 * cells && row > 0 && row < 2 * cells), 0.0];
    let start = Flow { velocity: mesh.nodal_vectors(lid), pressure: vec![0.0; mesh.vertices()] };
    let flow = system.solve(0.01, &nodes, |_| [0.0; 2], start).unwrap();
    let vertical: Vec<f64> = (0..65).map(|column| flow.velocity[mesh.node(cells, column)][0]).collect();
    let horizontal: Vec<f64> = (0..65).map(|row| flow.velocity[mesh.node(row, cells)][1]).collect();
    let worst = |line: &[f64], table: &[[f64; 2]]| {
        table.iter().map(|&[position, wanted]| (interpolated(line, position) - wanted).abs()).fold(0.0, f64::max)
    };
    let at_sixteenths = |table: &[f64; 15]| -> Vec<[f64; 2]> {
        table.iter().zip(1..).map(|(&value, k)| [f64::from(k) / 16.0, value]).collect()
    };
    let ghia = worst(&vertical, &GHIA_U).max(worst(&horizontal, &GHIA_V));
    let marchi = worst(&vertical, &at_sixteenths(&MARCHI_U)).max(worst(&horizontal, &at_sixteenths(&MARCHI_V)));
    println!("Ghia {ghia:.1e}, Marchi {marchi:.1e}");
    assert!(ghia < 0.01, "Ghia: {ghia:.5}");
    assert!(marchi < 1e-4, "Marchi: {marchi:.6}");
}

#[test]
fn a_mirrored_pipe_has_the_mirrored_flow() {
    let mesh = square(16);
    let (_, _, original) = solved(mesh, 0.005, Outlet::DoNothing, |x| centreline(&KNOTS, x));
    let (_, _, mirrored) = solved(mesh, 0.005, Outlet::DoNothing, |x| -centreline(&KNOTS, x));
    let mirrored_back = mesh.nodal_vectors(|row, column| {
        let [along, across] = mirrored.velocity[mesh.node(row, mesh.node_columns() - 1 - column)];
        [along, -across]
    });
    let error = relative_error(mirrored_back.as_flattened(), original.velocity.as_flattened());
    assert!(error < 1e-8, "{error:e}"); // two solves with a tolerance of 1e-11 each
}

/// In the 2310 samples of the public file, u_x in the first row of nodes above the lower wall has the mean 7.66e-3, the
/// deviation 3.43e-3, the maximum 2.91e-2 and the minimum −2.84e-3; its mean at the inlet is 0.1653646 (omni_hc).
#[test]
fn velocities_have_the_published_statistics() {
    let cells = 32;
    let problem = problem(&["resolution=32"]);
    let mut first_row = Vec::new();
    for index in 0..16 {
        let sample = problem.sample(0, index).unwrap();
        let along = &sample.field("velocity_x").unwrap().values;
        // Nodes are 1/64 apart here and 1/128 apart in the public file.
        first_row.extend(along.chunks(2 * cells + 1).map(|line| interpolated(line, 1.0 / 128.0)));
        let inlet: f64 =
            (0..129).map(|k| interpolated(&along[..2 * cells + 1], f64::from(k) / 128.0)).sum::<f64>() / 129.0;
        assert!((inlet - 0.1653646).abs() < 1e-7, "inlet {inlet:.8}");
    }
    let count = first_row.len() as f64;
    let mean = first_row.iter().sum::<f64>() / count;
    let deviation = (first_row.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt();
    let (least, most) = first_row.iter().fold((0.0_f64, 0.0_f64), |(a, b), &value| (a.min(value), b.max(value)));
    println!("mean {mean:.3e}, deviation {deviation:.3e}, from {least:.2e} to {most:.2e}");
    // The means of single samples have a deviation of 5.3e-4 (over 150 samples), so the mean of 16 has a standard error
    // of 1.3e-4; the bound is three standard errors.
    assert!((mean - 7.66495e-3).abs() < 4e-4, "mean {mean:e}");
    assert!((deviation / 3.426e-3 - 1.0).abs() < 0.1, "deviation {deviation:e}");
    assert!((2.0e-2..3.2e-2).contains(&most) && (-3.0e-3..0.0).contains(&least), "from {least:e} to {most:e}");
}

#[test]
fn the_centreline_has_the_heights_and_slopes_of_its_knots() {
    for (knot, [height, slope]) in KNOTS.into_iter().enumerate() {
        let x = 2.5 * knot as f64;
        assert!((centreline(&KNOTS, x) - height).abs() < 1e-14);
        let step = if knot == 4 { -1e-7 } else { 1e-7 };
        let found = (centreline(&KNOTS, x + step) - height) / step * 2.5;
        assert!((found - slope).abs() < 1e-5, "knot {knot}: slope {found}");
    }
}

/// Both flows satisfy the same equations to the tolerance of the solver; which one is found depends on the start alone.
#[test]
fn the_flow_with_a_free_outlet_is_not_unique() {
    let mesh = square(12);
    let system = |outlet| TaylorHood::new(mesh, |node| is_prescribed(mesh, node), outlet).unwrap();
    let sample = problem(&["resolution=12", "canonical=true"]).sample(0, 8).unwrap();
    let nodes: Vec<[f64; 2]> =
        sample.field("positions").unwrap().values.chunks_exact(2).map(|point| [point[0], point[1]]).collect();
    let found = |outlet, guess| system(outlet).solve(0.005, &nodes, |_| [0.0; 2], guess).unwrap();
    let along = |flow: &Flow| flow.velocity.iter().map(|velocity| velocity[0]).collect::<Vec<_>>();
    let from_rest = found(Outlet::Free, start(mesh));
    let label = &sample.field("velocity_x").unwrap().values;
    assert_eq!(&along(&from_rest), label, "the label is the flow that is found from rest");
    let do_nothing = found(Outlet::DoNothing, start(mesh));
    let other = found(Outlet::Free, do_nothing);
    let apart = relative_error(&along(&other), label);
    println!("free outlet: two solutions, {apart:.3} apart");
    assert!(apart > 0.05, "{apart}");
    // Newton's method stays at a solution.
    for solution in [from_rest, other] {
        let again = found(Outlet::Free, solution.clone());
        let moved = relative_error(&along(&again), &along(&solution));
        assert!(moved < 1e-8, "{moved:e}");
    }
}

#[test]
fn a_flow_that_does_not_converge_is_an_error() {
    let message = problem(&["resolution=4", "viscosity=1e-9"]).sample(0, 0).unwrap_err().to_string();
    assert!(
        message.starts_with("steady flow: expected a relative imbalance of forces of at most 1e-11, found "),
        "{message}"
    );
}
