//! Batch norm and instance norm equal their definitions in f64, gradients and running statistics too.

use lamo::network::layers::{BatchNorm, InstanceNorm};
use lamo::network::{Mode, Parameters};
use lamo_tensor::{Graph, MODEL_STATES, Program, Tensor};

const EPSILON: f64 = 1e-5;
/// `[batch, rows, columns, width]`
const SHAPE: [usize; 4] = [3, 4, 5, 2];
const WIDTH: usize = 2;

/// Numbers far from mean 0, where a variance as a difference of squares would lose its digits.
fn field(shift: f64) -> Vec<f64> {
    let count = SHAPE.iter().product();
    (0..count)
        .map(|i: usize| f64::from((50.0 + shift + (1.7 * i as f64).sin() + 0.3 * (i % WIDTH) as f64) as f32))
        .collect()
}

fn cotangent() -> Vec<f64> {
    (0..SHAPE.iter().product()).map(|i: usize| f64::from((0.9 * i as f32).cos())).collect()
}

const WEIGHT: [f64; WIDTH] = [1.25, -0.75];
const BIAS: [f64; WIDTH] = [0.5, 2.0];

/// Biased mean and variance of the elements of one channel, and how many there are.
fn moments(values: &[f64], chosen: impl Fn(usize) -> bool, channel: usize) -> [f64; 3] {
    let own: Vec<f64> = (0..values.len()).filter(|&i| i % WIDTH == channel && chosen(i)).map(|i| values[i]).collect();
    let count = own.len() as f64;
    let mean = own.iter().sum::<f64>() / count;
    [mean, own.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count, count]
}

/// The norm by its definition; elements `i` and `j` share their statistics where `group` is equal. Samples without weight do not
/// count in them.
fn defined(values: &[f64], weights: &[f64; 3], group: impl Fn(usize) -> usize) -> Vec<f64> {
    let sample = |i: usize| i / (values.len() / SHAPE[0]);
    let each = (0..values.len()).map(|i| {
        let chosen = |j: usize| group(j) == group(i) && weights[sample(j)] > 0.0;
        let [mean, variance, _] = moments(values, chosen, i % WIDTH);
        (values[i] - mean) / (variance + EPSILON).sqrt() * WEIGHT[i % WIDTH] + BIAS[i % WIDTH]
    });
    each.collect()
}

fn close(found: &[f32], expected: &[f64], tolerance: f64, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let largest = expected.iter().fold(1e-30, |largest: f64, value| largest.max(value.abs()));
    for (found, expected) in found.iter().zip(expected) {
        let error = (f64::from(*found) - expected).abs() / largest;
        assert!(error <= tolerance, "{what}: {found} instead of {expected}, relative error {error:e}");
    }
}

fn single(values: &[f64]) -> Vec<f32> {
    values.iter().map(|&value| value as f32).collect()
}

/// Compiles a norm with the output `out` and the gradient `slope` of ⟨out, cotangent⟩ with respect to x.
fn compile<'g>(graph: &'g Graph, norm: impl Fn(Tensor<'g>) -> Tensor<'g>) -> Program {
    let [x, cotangent] = ["x", "cotangent"].map(|name| graph.input(name, SHAPE));
    let out = norm(x);
    graph.output("out", out);
    graph.output("slope", graph.pullback(&[(out, cotangent)], &[x])[0].unwrap());
    let mut program = Program::compile(graph);
    program.write_parameter("weight", &single(&WEIGHT));
    program.write_parameter("bias", &single(&BIAS));
    program.write("cotangent", &single(&self::cotangent()));
    program
}

/// Central differences of ⟨out, cotangent⟩ in f64; their own error is about 1e-9.
fn slopes(values: &[f64], of: impl Fn(&[f64]) -> Vec<f64>) -> Vec<f64> {
    let step = 1e-4;
    let cotangent = cotangent();
    let product = |values: &[f64]| of(values).iter().zip(&cotangent).map(|(out, weight)| out * weight).sum::<f64>();
    let each = (0..values.len()).map(|i| {
        let [above, below] = [step, -step].map(|step| {
            let mut moved = values.to_vec();
            moved[i] += step;
            product(&moved)
        });
        (above - below) / (2.0 * step)
    });
    each.collect()
}

/// Values of about 50 have a rounding error of 2e-6, which the norm divides by a deviation of about 0.7.
const OUTPUT: f64 = 1e-5;
/// A gradient is a difference of numbers of its own size; the deviations it is made of have the error of the outputs.
const SLOPE: f64 = 5e-5;

#[test]
fn batch_norm_in_training_is_its_definition_and_moves_its_running_statistics() {
    for weights in [[1.0; 3], [1.0, 1.0, 0.0]] {
        let graph = Graph::new();
        let parameters = Parameters::new(&graph);
        let norm = BatchNorm::new(&parameters.root(), WIDTH);
        if weights != [1.0; 3] {
            parameters.weigh_samples(graph.input("weights", [3]));
        }
        let mut program = compile(&graph, |x| {
            let out = norm.forward(x, Mode::Training);
            parameters.store_states();
            out
        });
        let names: Vec<String> = program.state_sections().iter().map(|section| section.name.clone()).collect();
        assert_eq!(names, ["running_mean", "running_var", "num_batches_tracked"]);
        program.write(MODEL_STATES, &parameters.draw_states(0));
        if weights != [1.0; 3] {
            program.write("weights", &single(&weights));
        }
        let mut running = [[0.0; WIDTH], [1.0; WIDTH]];
        for (step, shift) in [0.0, 3.0].into_iter().enumerate() {
            let values = field(shift);
            program.write("x", &single(&values));
            program.run();
            let of = |values: &[f64]| defined(values, &weights, |_| 0);
            close(program.read("out"), &of(&values), OUTPUT, "output");
            close(program.read("slope"), &slopes(&values, of), SLOPE, "gradient");
            for channel in 0..WIDTH {
                let chosen = |i: usize| weights[i / (values.len() / 3)] > 0.0;
                let [mean, variance, count] = moments(&values, chosen, channel);
                for (running, new) in running.iter_mut().zip([mean, variance * count / (count - 1.0)]) {
                    running[channel] = 0.9 * running[channel] + 0.1 * new;
                }
            }
            let states = program.read(MODEL_STATES);
            close(&states[..WIDTH], &running[0], 1e-6, "running mean");
            close(&states[WIDTH..2 * WIDTH], &running[1], 1e-5, "running variance");
            assert_eq!(states[2 * WIDTH], (step + 1) as f32);
        }
    }
}

#[test]
fn batch_norm_in_inference_uses_its_running_statistics_and_keeps_them() {
    let graph = Graph::new();
    let parameters = Parameters::new(&graph);
    let norm = BatchNorm::new(&parameters.root(), WIDTH);
    let mut program = compile(&graph, |x| {
        let out = norm.forward(x, Mode::Inference);
        parameters.store_states();
        out
    });
    let states = [49.0, 51.0, 0.5, 2.0, 7.0];
    program.write(MODEL_STATES, &single(&states));
    let values = field(0.0);
    program.write("x", &single(&values));
    program.run();
    let factor = |channel: usize| WEIGHT[channel] / (states[WIDTH + channel] + EPSILON).sqrt();
    let expected: Vec<f64> =
        values.iter().enumerate().map(|(i, x)| (x - states[i % WIDTH]) * factor(i % WIDTH) + BIAS[i % WIDTH]).collect();
    close(program.read("out"), &expected, OUTPUT, "output");
    let slopes: Vec<f64> = cotangent().iter().enumerate().map(|(i, slope)| slope * factor(i % WIDTH)).collect();
    close(program.read("slope"), &slopes, SLOPE, "gradient");
    assert_eq!(program.read(MODEL_STATES), single(&states));
}

#[test]
fn passes_of_one_step_move_the_running_statistics_one_after_the_other() {
    let graph = Graph::new();
    let parameters = Parameters::new(&graph);
    let norm = BatchNorm::new(&parameters.root(), WIDTH);
    for name in ["first", "second"] {
        graph.output(&format!("out of {name}"), norm.forward(graph.input(name, SHAPE), Mode::Training));
    }
    parameters.store_states();
    let mut program = Program::compile(&graph);
    parameters.initialise(&mut program, 0);
    let fields = [field(0.0), field(3.0)];
    ["first", "second"].iter().zip(&fields).for_each(|(name, values)| program.write(name, &single(values)));
    program.run();
    let [first, second] = [0, 1].map(|pass| moments(&fields[pass], |_| true, 0)[0]);
    close(&program.read(MODEL_STATES)[..1], &[0.9 * 0.1 * first + 0.1 * second], 1e-6, "running mean");
    assert_eq!(program.read(MODEL_STATES)[2 * WIDTH], 2.0);
}

#[test]
fn instance_norm_is_its_definition() {
    let graph = Graph::new();
    let parameters = Parameters::new(&graph);
    let norm = InstanceNorm::new(&parameters.root(), WIDTH);
    let mut program = compile(&graph, |x| norm.forward(x));
    assert!(!parameters.has_states());
    let values = field(0.0);
    program.write("x", &single(&values));
    program.run();
    let of = |values: &[f64]| defined(values, &[1.0; 3], |i| i / (values.len() / 3));
    close(program.read("out"), &of(&values), OUTPUT, "output");
    close(program.read("slope"), &slopes(&values, of), SLOPE, "gradient");
}

/// A sample of one pixel asks for batches of two; in a batch of which one sample counts, the running statistics stay.
#[test]
fn a_lone_value_asks_for_a_larger_batch_and_keeps_the_running_statistics() {
    let graph = Graph::new();
    let parameters = Parameters::new(&graph);
    let norm = BatchNorm::new(&parameters.root(), WIDTH);
    assert_eq!(parameters.least_batch(), 1);
    norm.forward(graph.input("fields", SHAPE), Mode::Training);
    assert_eq!(parameters.least_batch(), 1, "a field of several points has a variance");
    norm.forward(graph.input("other", [2, 1, 1, WIDTH]), Mode::Inference);
    assert_eq!(parameters.least_batch(), 1, "predictions use running statistics");
    let graph = Graph::new();
    let parameters = Parameters::new(&graph);
    let norm = BatchNorm::new(&parameters.root(), WIDTH);
    parameters.weigh_samples(graph.input("weights", [2]));
    graph.output("out", norm.forward(graph.input("x", [2, 1, 1, WIDTH]), Mode::Training));
    parameters.store_states();
    assert_eq!(parameters.least_batch(), 2);
    let mut program = Program::compile(&graph);
    parameters.initialise(&mut program, 0);
    program.write("x", &[3.0, 5.0, 7.0, 5.5]);
    for (weights, mean, variance) in [([1.0, 0.0], [0.0; 2], [1.0; 2]), ([1.0; 2], [0.5, 0.525], [1.7, 0.9125])] {
        program.write("weights", &weights);
        program.run();
        close(&program.read(MODEL_STATES)[..WIDTH], &mean, 1e-6, "running mean");
        close(&program.read(MODEL_STATES)[WIDTH..2 * WIDTH], &variance, 1e-6, "running variance");
        assert!(program.read("out").iter().all(|value| value.is_finite()));
    }
}

#[test]
#[should_panic(expected = "has one point, and no variance")]
fn a_field_of_one_point_is_refused() {
    let graph = Graph::new();
    let norm = InstanceNorm::new(&Parameters::new(&graph).root(), WIDTH);
    norm.forward(graph.input("x", [3, 1, 1, WIDTH]));
}
