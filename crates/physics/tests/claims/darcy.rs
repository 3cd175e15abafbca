//! Darcy flow: exact solution, order of accuracy, conserved quantity.

#![allow(clippy::print_stdout)] // the tests print their measurements

use std::f64::consts::PI;

use lamo_physics::Error;
use lamo_physics::problems::Problem;
use lamo_physics::problems::darcy::{Canonical, Volumes, divided};

use super::{relative_error, stated_order};

/// Values of `function` at the centres of `cells` × `cells` squares.
fn at_centres(cells: usize, function: impl Fn(f64, f64) -> f64) -> Vec<f64> {
    let centre = |index: usize| (index as f64 + 0.5) / cells as f64;
    (0..cells * cells).map(|cell| function(centre(cell / cells), centre(cell % cells))).collect()
}

fn problem(changes: &[&str]) -> Box<dyn Problem> {
    super::problem("darcy", changes)
}

type Solve = fn(usize, &[f64], &[f64]) -> Result<Vec<f64>, Error>;
const SCHEMES: [(&str, Solve); 2] = [
    ("canonical=false", |cells, permeability, forcing| Volumes::new(cells)?.solve(permeability, forcing)),
    ("canonical=true", |points, permeability, forcing| Canonical::new(points)?.solve(permeability, forcing)),
];

/// a = 2 + sin(2x + 3y), u = sin πx sin 2πy, f = −a Δu − ∇a·∇u
#[test]
fn smooth_solutions_converge_with_the_stated_order() {
    let permeability = |x: f64, y: f64| 2.0 + (2.0 * x + 3.0 * y).sin();
    let pressure = |x: f64, y: f64| (PI * x).sin() * (2.0 * PI * y).sin();
    let forcing = |x: f64, y: f64| {
        let slope = (2.0 * x + 3.0 * y).cos(); // ∇a = (2, 3) · slope
        let pressure_x = PI * (PI * x).cos() * (2.0 * PI * y).sin();
        let pressure_y = 2.0 * PI * (PI * x).sin() * (2.0 * PI * y).cos();
        5.0 * PI * PI * permeability(x, y) * pressure(x, y) - slope * (2.0 * pressure_x + 3.0 * pressure_y)
    };
    for (setting, solve) in SCHEMES {
        let error = |cells: usize| {
            let found = solve(cells, &at_centres(cells, permeability), &at_centres(cells, forcing)).unwrap();
            relative_error(&found, &at_centres(cells, pressure))
        };
        let observed = (error(40) / error(80)).log2();
        let stated = stated_order(problem(&["resolution=8", setting]).as_ref());
        println!("{setting}: order {observed:.2}");
        assert!((observed - stated).abs() < 0.1, "{setting}: observed order {observed:.3}");
    }
}

/// Without forcing, the flux q through the layers is constant and u = −q ∫ dx / a. The scheme is exact because it adds
/// the resistances of the half cells.
#[test]
fn flow_across_layers_is_exact() {
    let cells = 40;
    let layer = |x: f64| if (0.2..0.45).contains(&x) { 12.0 } else { 3.0 };
    let permeability = at_centres(cells, |x, _| layer(x));
    let drop = |x: f64| (x.min(0.2) + (x - 0.45).max(0.0)) / 3.0 + (x.clamp(0.2, 0.45) - 0.2) / 12.0;
    let wanted = at_centres(cells, |x, _| drop(x));
    let volumes = Volumes::new(cells).unwrap();
    // A wall value g acts as a source 2a g in the cell at the wall; the side walls have the exact solution.
    let volume = (cells as f64).powi(-2);
    let mut forcing = vec![0.0; cells * cells];
    for index in 0..cells {
        forcing[(cells - 1) * cells + index] += 2.0 * permeability[(cells - 1) * cells + index] * drop(1.0) / volume;
        for side in [index * cells, index * cells + cells - 1] {
            forcing[side] += 2.0 * permeability[side] * wanted[side] / volume;
        }
    }
    let found = volumes.solve(&permeability, &forcing).unwrap();
    let error = relative_error(&found, &wanted);
    // Round-off times the condition number 4 · contrast · cells².
    let bound = f64::EPSILON * 4.0 * 6.0 * (cells * cells) as f64;
    assert!(error < bound, "relative error {error:e}, round-off allows {bound:e}");
}

/// The unit source in the unit square leaves through the walls.
#[test]
fn the_flux_through_the_walls_equals_the_area() {
    for index in 0..3 {
        let cells = 101;
        let sample = problem(&["resolution=101"]).sample(11, index).unwrap();
        let [permeability, pressure] = ["permeability", "pressure"].map(|name| &sample.field(name).unwrap().values);
        let faces = Volumes::new(cells).unwrap().conductances(permeability);
        let outflow: f64 = (0..cells)
            .map(|index| {
                let last = cells * (cells - 1) + index;
                let (left, right) = (index * cells, index * cells + cells - 1);
                faces.between_rows[index] * pressure[index]
                    + faces.between_rows[cells * cells + index] * pressure[last]
                    + faces.between_columns[index * (cells + 1)] * pressure[left]
                    + faces.between_columns[index * (cells + 1) + cells] * pressure[right]
            })
            .sum();
        println!("flux through the walls: 1 {:+.1e}", outflow - 1.0);
        // Residuals are about ε · 8 · 12 · max u ≈ 2e-16 each; the bound allows 10201 of them with the same sign.
        assert!((outflow - 1.0).abs() < 4e-12, "sample {index}: outflow {outflow:.15}");
    }
}

/// The reference is a solve with each cell of the same two-valued medium divided into four.
#[test]
fn finite_volumes_are_closer_to_a_refined_solution_than_the_canonical_recipe() {
    let cells = 64;
    let fine = Volumes::new(2 * cells).unwrap();
    for index in 0..3 {
        let sample = problem(&["resolution=64"]).sample(5, index).unwrap();
        let permeability = &sample.fields[0].values;
        let wanted = divided(&fine, permeability, 1.0).unwrap();
        let [volumes, canonical] = SCHEMES
            .map(|(_, solve)| relative_error(&solve(cells, permeability, &vec![1.0; cells * cells]).unwrap(), &wanted));
        println!("sample {index}: {volumes:.1e}, canonical {canonical:.1e} from the refined solution");
        assert!(volumes < canonical, "sample {index}: {volumes:e} against {canonical:e}");
    }
}

/// A constant medium: the corner of four parts has the value of the exact solution up to the fourth power of the
/// spacing, and the error of the scheme.
#[test]
fn the_centre_of_a_divided_cell_has_the_value_of_a_series_solution() {
    // u = Σ 16 sin(mπx) sin(nπy) / (π⁴ mn (m² + n²)) over odd m and n solves −Δu = 1.
    let series = |x: f64, y: f64| {
        let odd = || (0..200).map(|k| f64::from(2 * k + 1));
        let term = |m: f64, n: f64| (m * PI * x).sin() * (n * PI * y).sin() / (m * n * (m * m + n * n));
        odd().flat_map(|m| odd().map(move |n| (m, n))).map(|(m, n)| term(m, n)).sum::<f64>() * 16.0 / PI.powi(4)
    };
    let error = |cells: usize| {
        let found = divided(&Volumes::new(2 * cells).unwrap(), &vec![1.0; cells * cells], 1.0).unwrap();
        relative_error(&found, &at_centres(cells, series))
    };
    let (coarse, fine) = (error(8), error(16));
    println!("divided cells: error {coarse:.1e}, then {fine:.1e}");
    assert!((coarse / fine).log2() > 1.8, "errors {coarse:e} and {fine:e}"); // the order of the scheme, 2
}

#[test]
fn swapping_the_axes_of_the_medium_swaps_the_axes_of_the_solution() {
    let cells = 30;
    let transpose = |plane: &[f64]| -> Vec<f64> {
        (0..cells * cells).map(|cell| plane[cell % cells * cells + cell / cells]).collect()
    };
    let permeability = at_centres(cells, |x, y| if x * x + 0.3 * y < 0.5 { 12.0 } else { 3.0 });
    let forcing = vec![1.0; cells * cells];
    for (setting, solve) in SCHEMES {
        let original = solve(cells, &permeability, &forcing).unwrap();
        let swapped = solve(cells, &transpose(&permeability), &forcing).unwrap();
        let error = relative_error(&transpose(&swapped), &original);
        println!("{setting}: axes swapped within {error:.1e}");
        assert!(error < 1e-11, "{setting}: {error:e}"); // round-off times a condition number below 4 · 4 · 30²
    }
}

#[test]
fn pressure_scales_with_the_forcing_and_inversely_with_the_permeability() {
    let base = problem(&["resolution=20"]).sample(0, 0).unwrap();
    let scaled = problem(&["resolution=20", "high=24", "low=6", "forcing=-10"]).sample(0, 0).unwrap();
    let wanted: Vec<f64> = base.fields[1].values.iter().map(|value| -5.0 * value).collect();
    assert!(relative_error(&scaled.fields[1].values, &wanted) < 1e-12);
    let unforced = problem(&["resolution=20", "forcing=0", "canonical=true"]).sample(0, 0).unwrap();
    assert!(unforced.fields[1].values.iter().all(|&value| value == 0.0));
}

#[test]
fn a_contrast_of_a_million_is_solved_and_a_contrast_of_1e600_is_refused() {
    problem(&["resolution=40", "high=1e6", "low=1"]).sample(0, 0).unwrap();
    let message = problem(&["resolution=40", "high=1e300", "low=1e-300"]).sample(0, 0).unwrap_err().to_string();
    assert!(message.starts_with("five-point system: expected"), "{message}");
}
