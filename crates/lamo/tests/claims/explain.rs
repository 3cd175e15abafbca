//! `lamo explain`: hidden matrices are the mixers, influences are derivatives.

use lamo::data::Samples;
use lamo::inference::explain::{ASKED, by_matrices, cosine, derivatives, evaluated, matrix, summarise};
use lamo::inference::parity;
use lamo::network::layers::{Attention, Discretisation, Hydra, Mamba2, Selection, Ss2d, TokenMixer};
use lamo::network::models::{Choice, MODELS, find};
use lamo::network::{Input, Mode, ModelStates, Parameters, Scope};
use lamo::run::Operator;
use lamo::task::{Normaliser, Task};
use lamo_geometry::Grid;
use lamo_tensor::reference::{self, Array, Bindings};
use lamo_tensor::{Device, Graph, MODEL_STATES, PARAMETERS, Precision, Tensor};
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
        "cross" => Ss2d::new(scope, 2, WIDTH, chosen).forward(tokens, [1, 2, 8]),
        "line" => Ss2d::new(scope, 1, WIDTH, chosen).forward(tokens, [1, 1, TOKENS]),
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

#[test]
fn an_explanation_has_the_prediction_and_its_derivatives_in_physical_units() {
    let grid = Grid::Plane { rows: 8, columns: 6 };
    let mut task = Task::plain(grid, 2, 1, 1);
    task.normalisers.inputs = Some(Normaliser { mean: vec![40.0], deviation: vec![5.0] });
    task.normalisers.outputs = Some(Normaliser { mean: vec![-3.0], deviation: vec![200.0] });
    for name in ["lamo", "transolver", "fno"] {
        let row = find(name).unwrap();
        let settings = (row.tiny)(&task);
        let graph = Graph::new();
        let parameters = Parameters::new(&graph);
        row.build(&parameters, &task, &settings).unwrap();
        let operator = Operator {
            model: Choice { name: name.to_owned(), settings },
            task: task.clone(),
            precision: Precision::F32,
            batch: 1,
            sections: graph.sections(),
            parameters: parameters.draw(3),
            states: ModelStates::default(),
        };
        let inputs: Vec<f32> = wave(2 * 48, 1.1).iter().map(|value| 40.0 + 5.0 * *value as f32).collect();
        let samples = Samples::new(grid, 1, inputs, 1, vec![1.0; 2 * 48]).unwrap();
        let found = operator.explainer(Device::Cpu, grid, true).unwrap().explain(&samples, 1, [20, 0]).unwrap();
        assert_eq!(found.layers.is_empty(), name == "fno", "{name}");
        assert!(found.layers.iter().all(|layer| layer.residual < 1e-5), "{name}");
        let predicted = operator.predict(&samples, Device::Cpu).unwrap();
        for (one, other) in found.prediction.iter().zip(&predicted[48..]) {
            assert!((one - other).abs() < 1e-5 * 200.0, "{name}: {one} against {other}");
        }
        let slopes = &found.influence.derivative;
        let most = slopes.iter().fold(0.0, |most: f32, slope| most.max(slope.abs()));
        let strongest = (0..48).max_by(|one, other| slopes[*one].abs().total_cmp(&slopes[*other].abs())).unwrap();
        for point in [strongest, 20] {
            let at = |step: f32| {
                let mut moved = samples.clone();
                moved.inputs[48 + point] += step;
                operator.predict(&moved, Device::Cpu).unwrap()[48 + 20]
            };
            // Large steps leave curvature, small ones rounding in f32; a wrong unit would be off by a factor of 5 or 200.
            let off = [0.05, 0.5, 2.0].map(|step| ((at(step) - at(-step)) / (2.0 * step) - slopes[point]).abs());
            let least = off.iter().copied().fold(f32::INFINITY, f32::min);
            assert!(least < 1e-2 * most, "{name}, point {point}: {} is off by {off:?}", slopes[point]);
        }
    }
}

#[test]
fn matrices_of_many_tokens_are_pooled_and_some_of_their_rows_are_computed() {
    let (rows, columns) = (42, 50);
    let graph = Graph::new();
    let parameters = Parameters::new(&graph);
    let probe = parameters.probe(false);
    let tokens = graph.input("u", [1, rows * columns, 4]);
    let chosen = Selection { states: 1, expand: 1, scan_heads: 1, ..selection(2, Discretisation::Euler) };
    Ss2d::new(&parameters.root(), 2, 4, chosen).forward(tokens, [1, rows, columns]);
    let count = graph.sections().iter().map(|section| section.shape.count()).sum();
    let bindings = Bindings::from([("u", wave(rows * columns * 4, 1.3)), (PARAMETERS, wave(count, 0.7))]);
    let layers = evaluated(&graph, &bindings, &probe.layers());
    let found = &summarise(&layers, Grid::Plane { rows, columns }, 64)[0];
    assert_eq!((found.tokens, found.shares.side, found.heads[0].directions.len()), (2100, 64, 2));
    assert!(found.rows < 1000 && found.residual < 1e-12, "{} rows, off by {}", found.rows, found.residual);
    for row in found.shares.values.chunks_exact(64) {
        assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-5, "a pooled row sums to 1");
    }
}

#[test]
fn the_cosine_of_tokens_is_the_mean_over_all_pairs() {
    let (count, width) = (7, 5);
    let tokens = Array { shape: [2, count, width].into(), values: wave(2 * count * width, 0.9) };
    let own = &tokens.values[count * width..];
    let dot = |i: usize, j: usize| (0..width).map(|c| own[i * width + c] * own[j * width + c]).sum::<f64>();
    let pairs: Vec<f64> = (0..count)
        .flat_map(|i| (0..i).map(move |j| (i, j)))
        .map(|(i, j)| dot(i, j) / (dot(i, i) * dot(j, j)).sqrt())
        .collect();
    let expected = pairs.iter().sum::<f64>() / pairs.len() as f64;
    assert!((cosine(&tokens, 1).unwrap() - expected).abs() < 1e-14);
    assert_eq!(cosine(&Array { shape: [1, 1, 2].into(), values: vec![1.0, 2.0] }, 0), None, "one token has no pair");
}
