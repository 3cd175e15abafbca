//! Ways to train beyond the authors' recipes: orthogonal steps of matrices, an average of the parameters, noise on the past.
//! Each is off by default; `runs.rs` resumes them to the bit.

use crate::rollout::{recipe, waves};
use crate::support::{Folder, experiment, train_to};
use lamo::data::Samples;
use lamo::experiment::Experiment;
use lamo::training::average::AVERAGE;
use lamo::training::muon::{COEFFICIENTS, ITERATIONS, Muon, orthogonal};
use lamo::training::optimiser::{AdamW, Optimiser};
use lamo::training::schedule::Pace;
use lamo::training::{StepProgram, Trainer};
use lamo_geometry::Grid;
use lamo_tensor::{Device, Graph, PARAMETERS, Program};

/// Seven samples of a wave and its shifted square.
fn samples() -> Samples {
    let field = |change: fn(f32) -> f32| (0..7 * 30).map(|i| change((0.37 * i as f32).sin())).collect::<Vec<f32>>();
    Samples::new(Grid::Plane { rows: 6, columns: 5 }, 1, field(|v| v), 1, field(|v| 1.5 + v * v)).unwrap()
}

fn small(changes: &[&str]) -> Experiment {
    let base = [
        "model.settings={ width = 16, depth = 1, mlp_ratio = 1, states = 4 }",
        "train={ epochs = 3, batch = 2, rate = 3e-3 }",
    ];
    experiment(&[&base, changes].concat())
}

/// `[rows, columns]` in f64.
type Matrix = Vec<Vec<f64>>;

fn product(one: &Matrix, two: &Matrix) -> Matrix {
    let entry = |row: &Vec<f64>, column: usize| row.iter().zip(two).map(|(value, other)| value * other[column]).sum();
    one.iter().map(|row| (0..two[0].len()).map(|column| entry(row, column)).collect()).collect()
}

fn transposed(matrix: &Matrix) -> Matrix {
    (0..matrix[0].len()).map(|column| matrix.iter().map(|row| row[column]).collect()).collect()
}

/// 1 − 2 v vᵀ / vᵀv: orthogonal, with nothing to decompose.
fn reflection(size: usize, phase: f64) -> Matrix {
    let v: Vec<f64> = (0..size).map(|k| 1.0 + (phase + 1.7 * k as f64).sin()).collect();
    let square: f64 = v.iter().map(|value| value * value).sum();
    (0..size)
        .map(|row| (0..size).map(|k| f64::from(u8::from(row == k)) - 2.0 * v[row] * v[k] / square).collect())
        .collect()
}

fn flat(matrix: &Matrix) -> Vec<f32> {
    matrix.iter().flatten().map(|value| *value as f32).collect()
}

fn gap(found: &[f32], wanted: &Matrix) -> f64 {
    let wanted = wanted.iter().flatten();
    found.iter().zip(wanted).map(|(found, wanted)| (f64::from(*found) - wanted).abs()).fold(0.0, f64::max)
}

/// Newton and Schulz keep singular vectors and map each singular value s / ‖s‖ by the polynomial, five times.
#[test]
fn an_orthogonal_step_has_the_singular_vectors_of_the_momentum_and_singular_values_near_1() {
    let polynomial = |s: f64| COEFFICIENTS[0] * s + COEFFICIENTS[1] * s.powi(3) + COEFFICIENTS[2] * s.powi(5);
    for (rows, columns) in [(4, 4), (3, 6), (6, 3)] {
        let values: Vec<f64> = (0..rows.min(columns)).map(|k| [3.0, 1.0, 0.5, 0.3][k]).collect();
        let norm = values.iter().map(|value| value * value).sum::<f64>().sqrt();
        let of = |values: &[f64]| {
            let diagonal: Matrix =
                (0..rows).map(|row| (0..columns).map(|k| if row == k { values[row] } else { 0.0 }).collect()).collect();
            product(&product(&reflection(rows, 0.3), &diagonal), &transposed(&reflection(columns, 1.1)))
        };
        let mapped: Vec<f64> =
            values.iter().map(|value| (0..ITERATIONS).fold(value / norm, |s, _| polynomial(s))).collect();
        assert!(mapped.iter().all(|value| (0.65..1.25).contains(value)), "{mapped:?}");
        let graph = Graph::new();
        graph.output("out", orthogonal(graph.input("in", [2, rows, columns])));
        let mut program = Program::compile(&graph);
        let other: Vec<f64> = values.iter().rev().map(|value| 100.0 * value).collect();
        program.write("in", &[flat(&of(&values)), flat(&of(&other))].concat());
        program.run();
        let (first, second) = program.read("out").split_at(rows * columns);
        let reversed: Vec<f64> = mapped.iter().rev().copied().collect();
        for (found, wanted) in [(first, of(&mapped)), (second, of(&reversed))] {
            assert!(gap(found, &wanted) < 1e-5, "{rows} x {columns}: {}", gap(found, &wanted));
        }
        // Orthogonal up to the spread of the singular values: X Xᵀ of the short side is near 1.
        let x: Matrix = first.chunks_exact(columns).map(|row| row.iter().map(|v| f64::from(*v)).collect()).collect();
        let x = if rows > columns { transposed(&x) } else { x };
        let gram = product(&x, &transposed(&x));
        for (row, values) in gram.iter().enumerate() {
            let off: f64 = values.iter().enumerate().filter(|(k, _)| *k != row).map(|(_, value)| value.abs()).sum();
            assert!((0.4..1.6).contains(&values[row]) && off < 0.6, "{gram:?}");
        }
    }
}

/// Two steps on a parameter `layer.weight` of some shape, whose loss is linear.
fn stepped(shape: &[usize], convolutions: bool) -> Vec<f32> {
    let optimiser = Optimiser {
        adamw: AdamW { clip: None, ..AdamW::default() },
        muon: Some(Muon { momentum: 0.95, rate: 1.0, convolutions }),
        average: None,
    };
    let graph = Graph::new();
    let count = shape.iter().product::<usize>();
    let slope = graph.input("slope", [count]);
    let weight = graph.parameter("layer.weight", shape).reshape([count]);
    optimiser.minimise(&graph, (weight * slope).sum_all());
    let mut program = Program::compile(&graph);
    program.write_parameter("layer.weight", &vec![0.5; count]);
    for step in 0..2 {
        program.write("slope", &(0..count).map(|k| (0.7 * k as f32 + step as f32).sin()).collect::<Vec<_>>());
        optimiser.pace(&mut program, step, Pace { rate: 0.01, beta1: 0.9 }).unwrap();
        program.run();
    }
    program.read_parameter("layer.weight").to_vec()
}

#[test]
fn muon_steps_a_dense_convolution_as_the_matrix_of_its_inputs_and_taps_where_it_is_asked_to() {
    for shape in [&[4, 3, 2, 2][..], &[4, 3, 2, 1, 2], &[4, 12, 1]] {
        assert_eq!(stepped(shape, true), stepped(&[4, 12], true), "{shape:?}");
        assert_ne!(stepped(shape, false), stepped(&[4, 12], false), "{shape:?} is AdamW's unless it is asked for");
    }
    assert_eq!(stepped(&[4, 1, 3, 3], true), stepped(&[4, 1, 3, 3], false), "a depthwise convolution is no matrix");
}

/// A matrix, a bias and a table of two axes that is no weight, for three steps, against the formulas in f64.
#[test]
fn muon_steps_along_the_orthogonal_momentum_and_leaves_the_rest_to_adamw() {
    let muon = Muon { momentum: 0.95, rate: 2.0, convolutions: false };
    let adamw = AdamW { weight_decay: 0.1, clip: None, ..AdamW::default() };
    let slopes = |step: usize| -> Matrix {
        (0..2).map(|row| (0..3).map(|k| (1.0 + step as f64 + 0.7 * (3 * row + k) as f64).sin()).collect()).collect()
    };
    let run = |optimiser: Optimiser| {
        let graph = Graph::new();
        let weight = graph.parameter("layer.weight", [2, 3]);
        let table = graph.parameter("layer.table", [2, 3]);
        let slope = graph.input("slope", [2, 3]);
        optimiser.minimise(&graph, ((weight + table) * slope).sum_all());
        let mut program = Program::compile(&graph);
        program.write_parameter("layer.weight", &[0.5; 6]);
        program.write_parameter("layer.table", &[0.5; 6]);
        for step in 0..3 {
            program.write("slope", &flat(&slopes(step)));
            optimiser.pace(&mut program, step, Pace { rate: 0.01, beta1: 0.9 }).unwrap();
            program.run();
        }
        ["layer.weight", "layer.table"].map(|name| program.read_parameter(name).to_vec())
    };
    let [weight, table] = run(Optimiser { adamw, muon: Some(muon), average: None });
    let [_, alone] = run(Optimiser { adamw, muon: None, average: None });
    assert_eq!(table, alone, "a parameter that is no weight of a linear map is AdamW's");
    let (mut theta, mut momentum): (Matrix, Matrix) = (vec![vec![0.5; 3]; 2], vec![vec![0.0; 3]; 2]);
    for step in 0..3 {
        let slope = slopes(step);
        let blend = |one: &Matrix, two: &Matrix, share: f64| -> Matrix {
            let rows = one.iter().zip(two);
            rows.map(|(one, two)| one.iter().zip(two).map(|(a, b)| a + share * (b - a)).collect()).collect()
        };
        momentum = blend(&momentum, &slope, 0.05);
        let mut x = blend(&slope, &momentum, 0.95);
        let norm = x.iter().flatten().map(|value| value * value).sum::<f64>().sqrt();
        x.iter_mut().flatten().for_each(|value| *value /= norm);
        for _ in 0..ITERATIONS {
            let gram = product(&x, &transposed(&x));
            let square = product(&gram, &gram);
            let [a, b, c] = COEFFICIENTS;
            let sum: Matrix = (0..2).map(|i| (0..2).map(|k| b * gram[i][k] + c * square[i][k]).collect()).collect();
            let turned = product(&sum, &x);
            x = (0..2).map(|i| (0..3).map(|k| a * x[i][k] + turned[i][k]).collect()).collect();
        }
        let (rate, decay) = (2.0 * 0.01, 0.1);
        for (theta, x) in theta.iter_mut().flatten().zip(x.iter().flatten()) {
            *theta = *theta * (1.0 - rate * decay) - rate * 0.2 * 3_f64.sqrt() * x;
        }
    }
    assert!(gap(&weight, &theta) < 1e-5, "{weight:?} and {theta:?}");
}

#[test]
fn the_average_follows_the_parameters_by_its_recursion_and_changes_no_step() {
    let (samples, averaged) = (samples(), small(&["train.average=0.8"]));
    let task = averaged.task(&samples).unwrap();
    let mut step = StepProgram::new(&averaged, &task, &samples, Device::Cpu).unwrap();
    let mut plain = StepProgram::new(&small(&[]), &task, &samples, Device::Cpu).unwrap();
    let mut expected: Vec<f64> = step.program().read(PARAMETERS).iter().map(|value| f64::from(*value)).collect();
    assert_eq!(step.program().read(AVERAGE), plain.program().read(PARAMETERS), "it begins as the parameters");
    for number in 0..40 {
        step.run(number).unwrap();
        plain.run(number).unwrap();
        let t = (number + 1) as f64;
        let decay = ((1.0 + t) / (10.0 + t)).min(0.8); // 0.18, 0.25, … and 0.8 from step 35 on
        let theta = step.program().read(PARAMETERS).to_vec();
        assert_eq!(theta, plain.program().read(PARAMETERS), "step {number}");
        for (average, theta) in expected.iter_mut().zip(theta) {
            *average = decay * *average + (1.0 - decay) * f64::from(theta);
        }
    }
    let found = step.program().read(AVERAGE).iter().zip(&expected);
    let gap =
        found.map(|(found, wanted)| (f64::from(*found) - wanted).abs() / (1.0 + wanted.abs())).fold(0.0, f64::max);
    assert!(gap < 40.0 * f64::from(f32::EPSILON), "{gap:e}"); // a rounding per step
}

#[test]
fn the_average_is_the_model_that_is_tested_saved_and_continued_from() {
    let (samples, averaged) = (samples(), small(&["train.average=0.9"]));
    let task = averaged.task(&samples).unwrap();
    let trainer = |experiment: &Experiment| Trainer::new(experiment, &task, &samples, &samples, Device::Cpu).unwrap();
    let (mut with, mut without) = (trainer(&averaged), trainer(&small(&[])));
    assert_eq!(train_to(&mut with, None, usize::MAX), train_to(&mut without, None, usize::MAX), "the same steps");
    let (model, last) = (with.trained().unwrap().operator, without.trained().unwrap().operator);
    assert_ne!(model.parameters, last.parameters);
    let errors = samples.errors(&model.predict(&samples, Device::Cpu).unwrap());
    let (expected, found) = (errors.iter().sum::<f64>() / errors.len() as f64, with.test_error().unwrap());
    assert!((found / expected - 1.0).abs() < 1e-5, "{found} is tested, the average has {expected}");
    // A checkpoint without an average begins one; a checkpoint with one goes on from θ where it is no longer wanted.
    let mut begun = trainer(&averaged);
    begun.restore(&without.checkpoint().unwrap()).unwrap();
    assert_eq!(begun.trained().unwrap().operator.parameters, last.parameters);
    let mut ended = trainer(&small(&[]));
    ended.restore(&with.checkpoint().unwrap()).unwrap();
    assert_eq!(ended.trained().unwrap().operator.parameters, last.parameters);
}

#[test]
fn noise_on_the_past_depends_on_seed_and_step_and_its_effect_on_its_size() {
    let folder = Folder::new("noise");
    let selection = waves(&folder, 5);
    let task = selection.task(&recipe(&[])).unwrap();
    let losses = |changes: &[&str]| {
        let experiment = recipe(changes);
        let mut step = StepProgram::new(&experiment, &task, &selection.train, Device::Cpu).unwrap();
        let theta = step.program().read(PARAMETERS).to_vec();
        let run = |number: usize| {
            step.program().write(PARAMETERS, &theta);
            step.program().write("train.total", &[0.0]);
            step.run(number).unwrap();
            step.program().read("train.total")[0]
        };
        [0, 1, 0].map(run)
    };
    for more in ["train.rollout=1", "train.rollout=2", "train.teacher_forcing=false"] {
        let (none, little, much) =
            (losses(&[more]), losses(&["train.noise=1e-6", more]), losses(&["train.noise=0.3", more]));
        assert!(much[0] == much[2] && little[0] == little[2], "the same step has the same noise");
        // A model that has learned nothing hardly looks at its inputs.
        assert!((little[0] / none[0] - 1.0).abs() < 1e-6, "{more}: {little:?} and {none:?}");
        assert!((much[0] / none[0] - 1.0).abs() > 1e-5, "{more}: {much:?} and {none:?}");
        assert_ne!(losses(&["train.noise=0.3", more, "seed=1"])[0], much[0]);
    }
}

#[test]
fn what_only_a_roll_out_has_is_refused_elsewhere() {
    for (changes, told) in [
        (&["train.noise=0.1"][..], "unless data.time = roll-out"),
        (&["train.rollout=2"], "unless data.time = roll-out"),
        (&["train.average=1.0"], "train.average: expected a number from 0 to less than 1"),
        (&["train.matrix_rate=0.0"], "train.matrix_rate: expected a number above 0"),
        (&["data.time=roll-out", "train.rollout=2", "train.teacher_forcing=false"], "which rolls out all"),
    ] {
        let changes: Vec<String> = changes.iter().map(ToString::to_string).collect();
        let request = lamo::Request { changes: &changes, ..lamo::Request::default() };
        let refusal = request.resolve().unwrap_err().to_string();
        assert!(refusal.contains(told), "{refusal}");
    }
}
