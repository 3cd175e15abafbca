//! `lamo explain`: hidden matrices are the mixers, influences are derivatives.

use lamo::inference::explain::{ASKED, by_matrices, derivatives, evaluated, matrix};
use lamo::inference::parity;
use lamo::network::layers::{Attention, Discretisation, Hydra, Mamba2, Selection, Ss2d, TokenMixer};
use lamo::network::models::MODELS;
use lamo::network::{Input, Mode, Parameters, Scope};
use lamo::task::Task;
use lamo_geometry::Grid;
use lamo_tensor::reference::{self, Bindings};
use lamo_tensor::{Graph, MODEL_STATES, PARAMETERS, Tensor};
use std::convert::Infallible;
use std::path::Path;

const WIDTH: usize = 16;
const TOKENS: usize = 16;

/// Numbers without a pattern, in (−1, 1).
fn wave(count: usize, pace: f64) -> Vec<f64> {
    (0..count).map(|i| (pace * i as f64 + (0.37 * i as f64).sin()).sin()).collect()
}

fn selection(directions: usize, discretisation: Discretisation) -> Selection {
    Selection {
        states: 3,
        expand: 2,
        head_width: 8,
        groups: 2,
        convolution: 3,
        directions,
        scan_heads: 0,
        discretisation,
    }
}

/// A mixer by its name on 16 tokens.
fn mix<'g>(name: &str, scope: &Scope<'_, 'g>, chosen: Selection, tokens: Tensor<'g>) -> Tensor<'g> {
    match name {
        "hydra" => Hydra::new(scope, WIDTH, chosen).forward(tokens),
        "mamba2" => Mamba2::new(scope, WIDTH, chosen).forward(tokens),
        "cross" => Ss2d::new(scope, WIDTH, chosen).forward(tokens, 2, 8),
        "line" => Ss2d::on_line(scope, WIDTH, chosen).forward(tokens, 1, TOKENS),
        _ => Attention::new(scope, 4, WIDTH / 4).mix(tokens),
    }
}

fn bindings(graph: &Graph) -> Bindings<'static> {
    let count = graph.sections().iter().map(|section| section.shape.count()).sum();
    // All parameters differ from zero, the learned first state of Hydra, too.
    let theta = wave(count, 0.71).iter().map(|value| 0.6 * value).collect();
    Bindings::from([("u", wave(2 * TOKENS * WIDTH, 1.3)), (PARAMETERS, theta)])
}

/// Everything that a mixer can be: its name, its directions, its discretisation.
fn variants() -> Vec<(&'static str, Selection)> {
    let mut all = Vec::new();
    for discretisation in [Discretisation::Euler, Discretisation::Zoh] {
        for directions in [1, 2, 4] {
            let chosen = selection(directions, discretisation);
            all.extend(["hydra", "mamba2", "cross"].map(|name| (name, chosen)));
            if directions < 4 {
                all.push(("line", chosen));
            }
        }
    }
    all.push(("attention", selection(1, Discretisation::Euler)));
    all
}

/// max|one − other| / max|other|
fn distance(one: &[f64], other: &[f64]) -> f64 {
    let most = |values: &mut dyn Iterator<Item = f64>| {
        values.fold(0.0, |most: f64, value| if value.is_nan() { f64::INFINITY } else { most.max(value.abs()) })
    };
    most(&mut one.iter().zip(other).map(|(one, other)| one - other)) / most(&mut other.iter().copied())
}

#[test]
fn the_matrices_in_place_of_the_scans_give_the_outputs_of_every_mixer() {
    for (name, chosen) in variants() {
        let graph = Graph::new();
        let parameters = Parameters::new(&graph);
        let tokens = graph.input("u", [2, TOKENS, WIDTH]);
        let result = mix(name, &parameters.root(), chosen, tokens);
        let bindings = bindings(&graph);
        let expected = &reference::evaluate(&graph, &bindings, &[result])[0].values;
        let build = |found: &[f64]| distance(found, expected);
        let found = by_matrices(&bindings, |graph, parameters| {
            let tokens = graph.input("u", [2, TOKENS, WIDTH]);
            Ok::<_, Infallible>(mix(name, &parameters.root(), chosen, tokens))
        });
        let off = build(&found.unwrap().expect("a mixer shows its mixing"));
        assert!(off < 1e-12, "{name} with {chosen:?} is off by {off:.1e}");
    }
}

#[test]
fn the_matrices_give_the_outputs_of_the_authors_mixers_and_models() {
    let folder = std::env::var("CARGO_MANIFEST_DIR").unwrap() + "/../../fixtures";
    let fixtures = parity::find(Path::new(&folder)).unwrap();
    let mut seen = Vec::new();
    for path in &fixtures {
        let name = parity::name(path);
        let mixes = ["mixer_", "regular_grid", "irregular_", "structured_", "transolver"];
        if !mixes.iter().any(|part| name.contains(part)) || name.contains("slice_deslice") {
            continue;
        }
        let outcome = parity::check(path).unwrap();
        let matrices = outcome.measures.iter().find(|measure| measure.subject == "matrices");
        let measure = matrices.unwrap_or_else(|| panic!("{name} is not compared by its matrices"));
        assert!(measure.error <= measure.allowed, "{name}: {measure:?}");
        seen.push(name);
    }
    for part in ["mixer_hydra", "mixer_bimamba2", "mixer_ss2d", "regular_grid", "transolver"] {
        assert!(seen.iter().any(|name| name.contains(part)), "{part} is not among {seen:?}");
    }
}

#[test]
fn a_wrong_matrix_is_seen() {
    let graph = Graph::new();
    let parameters = Parameters::new(&graph);
    let probe = parameters.probe(false);
    let tokens = graph.input("u", [2, TOKENS, WIDTH]);
    mix("hydra", &parameters.root(), selection(2, Discretisation::Euler), tokens);
    let mut layers = evaluated(&graph, &bindings(&graph), &probe.layers());
    let mixing = &mut layers[0].mixings[0];
    let all: Vec<usize> = (0..TOKENS).collect();
    let [off, first_state] = matrix::residual(mixing, 1, &all);
    assert!(off < 1e-13 && first_state > 0.01, "off by {off:.1e}, first state {first_state}");
    let lamo::network::probe::Kernel::Scans { scans, .. } = &mut mixing.kernel else { panic!("Hydra scans") };
    scans[1].shifted = false;
    assert!(matrix::residual(mixing, 1, &all)[0] > 0.01, "a scan that is not shifted is another matrix");
}

#[test]
fn without_a_probe_the_graph_is_the_same() {
    let nodes = |probed: bool| {
        let graph = Graph::new();
        let parameters = Parameters::new(&graph);
        let probe = probed.then(|| parameters.probe(false));
        let tokens = graph.input("u", [2, TOKENS, WIDTH]);
        let result = mix("cross", &parameters.root(), selection(4, Discretisation::Euler), tokens);
        drop(probe);
        let bindings = bindings(&graph);
        reference::evaluate(&graph, &bindings, &[result])[0].values.clone()
    };
    assert_eq!(nodes(false), nodes(true), "a probe changes no bit");
}

/// One task for each kind of input: functions on a plane, positions of a cloud, a time.
fn tasks() -> [Task; 3] {
    let cloud = Task::plain(Grid::Cloud { points: 11 }, 2, 0, 2);
    [Task::plain(Grid::Plane { rows: 8, columns: 6 }, 2, 2, 1), cloud.clone(), cloud.by_time(3)]
}

#[test]
fn the_influence_on_an_output_is_its_finite_difference_for_every_model() {
    let mut seen = 0;
    for (row, task) in MODELS.iter().flat_map(|row| tasks().map(|task| (row, task))) {
        if !row.supports.allows(&task) {
            continue;
        }
        let graph = Graph::new();
        let parameters = Parameters::new(&graph);
        let input = Input::declare(&graph, &task, 1);
        let Ok(model) = row.build(&parameters, &task, &(row.tiny)(&task)) else { continue };
        let prediction = model.forward(&input, Mode::Inference);
        let found = derivatives(&graph, prediction, &input);
        let (points, outputs) = (task.grid.points(), task.output_channels());
        let mut asked = vec![0.0; points * outputs];
        asked[4 * outputs] = 1.0;
        let theta = parameters.draw(5).iter().map(|value| f64::from(*value)).collect();
        let states = parameters.draw_states(5).iter().map(|value| f64::from(*value)).collect();
        let positions = (0..points * task.space).map(|i| 0.5 + 0.5 * (1.9 * i as f64).sin()).collect();
        let mut bindings =
            Bindings::from([(PARAMETERS, theta), (MODEL_STATES, states), (ASKED, asked), ("positions", positions)]);
        bindings.insert("functions", wave(points * task.input_channels(), 1.3));
        bindings.insert("time", vec![0.4]);
        let (name, slope) = match found.functions {
            Some(slope) => ("functions", slope),
            None => ("positions", found.positions),
        };
        let slopes = reference::evaluate(&graph, &bindings, &[slope])[0].values.clone();
        let output = |values: Vec<f64>| {
            let mut moved = bindings.clone();
            moved.insert(name, values);
            reference::evaluate(&graph, &moved, &[prediction])[0].values[4 * outputs]
        };
        let most = slopes.iter().fold(0.0, |most: f64, slope| most.max(slope.abs()));
        for place in [0, slopes.len() / 2, slopes.len() - 1] {
            let difference = |step: f64| {
                let at = |sign: f64| {
                    let mut values = bindings[name].clone();
                    values[place] += sign * step;
                    output(values)
                };
                (at(1.0) - at(-1.0)) / (2.0 * step)
            };
            // Steps of 10⁻⁵ leave 10⁻¹⁰ of curvature and 10⁻¹¹ of rounding. Where a kink of ReLU lies inside, a smaller step, with
            // 10⁻⁸ of rounding at last, does not reach it.
            let off = [1e-5, 1e-6, 1e-7, 1e-8].map(|step| (difference(step) - slopes[place]).abs());
            let least = off.iter().copied().fold(f64::INFINITY, f64::min);
            assert!(least < 1e-6 * (most + 1e-3), "{}: {name} {place}: {} is off by {off:?}", row.name, slopes[place]);
        }
        seen += 1;
    }
    assert!(seen >= 2 * MODELS.len(), "{seen} pairs of model and task are too few");
}
