//! What a program needs comes from `lamo` alone, and the README shows a program that compiles.

use crate::rooms::workspace;
use lamo::geometry::Grid;
use lamo::tensor::{Graph, Precision, Tensor};
use lamo::{Preset, Request, Samples};
use std::fs;

#[test]
fn the_program_of_the_readme_is_an_example_that_states_its_size_and_shows_progress() {
    let [readme, example] = ["README.md", "crates/lamo/examples/benchmark.rs"]
        .map(|path| fs::read_to_string(workspace().join(path)).unwrap());
    let shown = readme.split("```rust\n").nth(1).and_then(|rest| rest.split("```").next()).unwrap();
    assert_eq!(shown, &example[example.find("use lamo::").unwrap()..], "README and example differ");
    assert!(shown.contains("Preset::Quick") && shown.contains("Event::Epoch"), "{shown}");
}

#[test]
fn the_core_the_grids_and_the_solvers_are_reached_through_one_crate() {
    let graph = Graph::new();
    let one: Tensor<'_> = graph.constant(&[2.0], [1]);
    assert_eq!(one.dims(), [1]);
    #[cfg(feature = "solvers")]
    assert!(lamo::physics::problems::PROBLEMS.iter().any(|problem| problem.name == "darcy"));
    let quick = Request { preset: Some(Preset::Quick), ..Request::default() }.resolve().unwrap();
    assert!(quick.train.epochs < Request::default().resolve().unwrap().train.epochs);
    assert_eq!(quick.precision, Precision::Tf32);
}

/// Positions, inputs and targets of a cloud, with sizes that differ from each other.
fn cloud(count: usize, [positions, inputs, targets]: [usize; 3]) -> Result<Samples, String> {
    let values = |length: usize| (0..length).map(|value| 1.0 + value as f32).collect::<Vec<f32>>();
    let samples = Samples::cloud(count, (2, values(positions)), (3, values(inputs)), (1, values(targets)));
    samples.map_err(|refusal| refusal.to_string())
}

#[test]
fn a_cloud_is_made_in_one_call_with_points_for_all_samples_or_for_each() {
    let shared = cloud(4, [5 * 2, 4 * 5 * 3, 4 * 5]).unwrap();
    assert_eq!((shared.grid, shared.count, shared.share_positions()), (Grid::Cloud { points: 5 }, 4, true));
    let own = cloud(4, [4 * 5 * 2, 4 * 5 * 3, 4 * 5]).unwrap();
    assert_eq!((own.grid, own.share_positions()), (shared.grid, false));
    assert_eq!(own.positions_of(3), &own.positions[3 * 10..]);
    let unknown = cloud(4, [5 * 2, 4 * 5 * 3, 0]).unwrap();
    assert_eq!((unknown.grid, unknown.count), (shared.grid, 4), "inputs count the points where targets are unknown");
    let shapes = Samples::cloud(2, (2, vec![0.0; 2 * 7 * 2]), (0, Vec::new()), (1, Vec::new())).unwrap();
    assert_eq!(shapes.grid, Grid::Cloud { points: 7 }, "positions count them where there is nothing else");
    assert_eq!(cloud(1, [2, 3, 1]).unwrap().grid, Grid::Cloud { points: 1 });
}

#[test]
fn a_cloud_whose_arrays_do_not_fit_is_refused_by_the_array_and_the_number_of_its_values() {
    let told = |count, sizes| cloud(count, sizes).unwrap_err();
    assert_eq!(told(4, [10, 60, 19]), "targets: expected 4 values for each point of 4 samples, found 19 values");
    assert_eq!(told(4, [10, 59, 20]), "inputs: expected 4 samples of 5 points of 3 functions, 60 values, found 59");
    let points = "5 points of 2 coordinates, once or for each of 4 samples";
    assert_eq!(told(4, [12, 60, 20]), format!("positions: expected {points}, found 12 values"));
    let least = "at least one sample, one coordinate and one output";
    assert_eq!(told(0, [10, 60, 20]), format!("cloud: expected {least}, found 0 samples, 2 and 1"));
    assert_eq!(told(1, [0, 0, 0]), "positions: expected 2 values for each point of 1 sample, found 0 values");
}
