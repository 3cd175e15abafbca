//! One dimension: the Fourier operator and LaMO's patches on lines.

use lamo::experiment::{EXPERIMENTS, Experiment, Request};
use lamo::network::models::{Settings, find};
use lamo::network::{Input, Mode, Parameters};
use lamo::task::Task;
use lamo::training::loss::relative_l2_sum;
use lamo::training::optimiser::AdamW;
use lamo::training::schedule::Schedule;
use lamo_geometry::Grid;
use lamo_tensor::reference::{self, Bindings};
use lamo_tensor::{Graph, Map, PARAMETERS, Program};
use std::collections::HashMap;
use std::f64::consts::TAU;

/// Allowed errors relative to the largest element, as for the models of the authors.
const OUTPUT: f64 = 2e-5;
const GRADIENT: f64 = 3e-4;
/// In f64 only the constants are rounded, to 24 bits.
const REFERENCE: f64 = 1e-6;

fn line(points: usize) -> Task {
    Task::plain(Grid::Line { points }, 1, 1, 1)
}

fn settings(text: &str) -> Settings {
    text.parse().unwrap()
}

fn wave(count: usize, pace: f64) -> Vec<f64> {
    (0..count).map(|i| (0.4 + pace * i as f64).sin()).collect()
}

fn floats(values: &[f64]) -> Vec<f32> {
    values.iter().map(|&value| value as f32).collect()
}

fn doubles(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&value| f64::from(value)).collect()
}

fn check(what: &str, found: &[f64], expected: &[f64], allowed: f64) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let largest = expected.iter().fold(0.0, |largest: f64, value| largest.max(value.abs()));
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() <= allowed * largest, "{what}: {found} and {expected}");
    }
}

/// Two layers of width 3 for one sample, by sums straight from the definition.
struct Definition {
    parameters: HashMap<String, Vec<f64>>,
    points: usize,
    modes: usize,
}

const WIDTH: usize = 3;

impl Definition {
    fn linear(&self, name: &str, x: &[f64]) -> Vec<f64> {
        let [weight, bias] = ["weight", "bias"].map(|part| &self.parameters[&format!("{name}.{part}")]);
        let inputs = weight.len() / bias.len();
        let dot = |x: &[f64], row: &[f64]| x.iter().zip(row).map(|(a, b)| a * b).sum::<f64>();
        let each = |x| weight.chunks_exact(inputs).zip(bias).map(move |(row, bias)| dot(x, row) + bias);
        x.chunks_exact(inputs).flat_map(each).collect()
    }

    /// `[points, 2]` → `[points, 1]`
    fn solution(&self, channels: &[f64]) -> Vec<f64> {
        let gelu = |x: Vec<f64>| x.into_iter().map(|x| Map::Gelu.evaluate(x, 0.0, 0.0)).collect::<Vec<_>>();
        let add = |a: Vec<f64>, b: Vec<f64>| a.iter().zip(b).map(|(a, b)| a + b).collect::<Vec<_>>();
        let lifted = gelu(self.linear("preprocess.linear_pre.0", channels));
        let mut v = self.linear("preprocess.linear_post", &lifted);
        v.resize(self.points.next_multiple_of(16) * WIDTH, 0.0);
        v = gelu(add(self.convolution("conv0", &v), self.linear("w0", &v)));
        v = add(self.convolution("conv1", &v), self.linear("w1", &v));
        v.truncate(self.points * WIDTH);
        self.linear("fc2", &gelu(self.linear("fc1", &v)))
    }

    /// irfft(R · rfft(v)) with all frequencies written out: l − period is the conjugate of l.
    fn convolution(&self, name: &str, v: &[f64]) -> Vec<f64> {
        let (period, weight) = (v.len() / WIDTH, &self.parameters[&format!("{name}.weights1")]);
        let turn = |l: usize, n: usize| (TAU * (l * n % period) as f64 / period as f64).sin_cos();
        let mut result = vec![0.0; v.len()];
        for (l, output) in (0..self.modes * WIDTH).map(|place| (place / WIDTH, place % WIDTH)) {
            let mut mixed = (0.0, 0.0);
            for input in 0..WIDTH {
                let mut sum = (0.0, 0.0);
                for n in 0..period {
                    let (sin, cos) = turn(l, n);
                    sum = (sum.0 + v[n * WIDTH + input] * cos, sum.1 - v[n * WIDTH + input] * sin);
                }
                let at = 2 * ((input * WIDTH + output) * self.modes + l);
                let (re, im) = (weight[at], weight[at + 1]);
                mixed = (mixed.0 + sum.0 * re - sum.1 * im, mixed.1 + sum.0 * im + sum.1 * re);
            }
            let own_conjugate = l == 0 || 2 * l == period;
            for n in 0..period {
                let (sin, cos) = turn(l, n);
                // A frequency that is its own conjugate is real in a real field, so its imaginary part is dropped.
                let value = if own_conjugate { mixed.0 * cos } else { 2.0 * (mixed.0 * cos - mixed.1 * sin) };
                result[n * WIDTH + output] += value / period as f64;
            }
        }
        result
    }
}

#[test]
fn the_fourier_operator_on_a_line_equals_its_definition_also_where_it_is_padded_and_up_to_the_highest_frequency() {
    for (points, modes) in [(16, 9), (13, 4), (20, 17), (33, 5), (1, 1)] {
        let task = line(points);
        let graph = Graph::new();
        let parameters = Parameters::new(&graph);
        let chosen = settings(&format!("width = {WIDTH}\nmodes = {modes}\ndepth = 2"));
        let model = find("fno").unwrap().build(&parameters, &task, &chosen).unwrap();
        let output = model.forward(&Input::declare(&graph, &task, 2), Mode::Inference);
        graph.output("output", output);
        let mut program = Program::compile(&graph);
        parameters.initialise(&mut program, 1);
        // The first values of the weights are at most 1/9, which would hide the convolution.
        let theta: Vec<f32> = program.read(PARAMETERS).iter().map(|value| 2.0 * value).collect();
        program.write(PARAMETERS, &theta);
        let (positions, functions) = (wave(2 * points, 0.37), wave(2 * points, 1.13));
        program.write("positions", &floats(&positions));
        program.write("functions", &floats(&functions));
        program.run();

        let names = graph.sections();
        let named = names.iter().map(|section| (section.name.clone(), doubles(&theta[section.range()])));
        let definition = Definition { parameters: named.collect(), points, modes };
        let sample = |sample: usize| {
            let point = |p: usize| [positions[sample * points + p], functions[sample * points + p]];
            definition.solution(&(0..points).flat_map(point).collect::<Vec<_>>())
        };
        let expected = [sample(0), sample(1)].concat();
        let what = format!("a line of {points} points with {modes} modes");
        check(&what, &doubles(program.read("output")), &expected, OUTPUT);
        let bindings =
            Bindings::from([("positions", positions), ("functions", functions), (PARAMETERS, doubles(&theta))]);
        let exact = &reference::evaluate(&graph, &bindings, &[output])[0].values;
        check(&format!("{what} in f64"), exact, &expected, REFERENCE);
    }
}

/// Along one direction in the space of all parameters; the step balances the third derivative and rounding.
#[test]
fn the_gradients_of_models_on_lines_equal_finite_differences_in_f64_and_the_cpu_equals_them() {
    const STEP: f64 = 1e-5;
    for (name, chosen) in [
        ("fno", "width = 4\nmodes = 7\ndepth = 2"),
        ("lamo", "width = 16\nstates = 4\ndepth = 1\ndirections = 2\npatch = 3"),
        ("lamo", "width = 16\nstates = 4\ndepth = 1\ndirections = 1\npatch = 1"),
    ] {
        let task = line(13);
        let graph = Graph::new();
        let parameters = Parameters::new(&graph);
        let model = find(name).unwrap().build(&parameters, &task, &settings(chosen)).unwrap();
        let output = model.forward(&Input::declare(&graph, &task, 2), Mode::Training);
        let loss = relative_l2_sum(output, graph.input("target", [2, 13, 1]));
        let gradient = graph.gradient(loss, &[graph.parameters()])[0].unwrap();
        graph.output("gradient", gradient);
        let mut program = Program::compile(&graph);
        parameters.initialise(&mut program, 3);
        let inputs = [("positions", 0.37), ("functions", 1.13), ("target", 0.71)];
        inputs.iter().for_each(|(input, pace)| program.write(input, &floats(&wave(26, *pace))));
        program.run();

        let theta = doubles(program.read(PARAMETERS));
        let direction = wave(theta.len(), 2.3);
        let at = |step: f64| -> Bindings<'_> {
            let moved = theta.iter().zip(&direction).map(|(value, slope)| value + step * slope).collect();
            let mut bindings: Bindings<'_> = Bindings::from([(PARAMETERS, moved)]);
            bindings.extend(inputs.iter().map(|(input, pace)| (*input, doubles(&floats(&wave(26, *pace))))));
            bindings
        };
        let loss_at = |step: f64| reference::evaluate(&graph, &at(step), &[loss])[0].values[0];
        let exact = reference::evaluate(&graph, &at(0.0), &[gradient])[0].values.clone();
        let along: f64 = exact.iter().zip(&direction).map(|(slope, direction)| slope * direction).sum();
        let difference = (loss_at(STEP) - loss_at(-STEP)) / (2.0 * STEP);
        assert!((along - difference).abs() < 1e-6 * along.abs().max(1.0), "{name}: {along} and {difference}");
        check(&format!("{name}: gradient on the CPU"), &doubles(program.read("gradient")), &exact, GRADIENT);
    }
}

/// The output of LaMO for one sample with the parameters that `values` gives by name and number of elements.
fn patches(task: &Task, chosen: &str, channels: &[f64], values: &dyn Fn(&str, usize) -> Vec<f64>) -> Vec<f64> {
    let graph = Graph::new();
    let model = find("lamo").unwrap().build(&Parameters::new(&graph), task, &settings(chosen)).unwrap();
    let out = model.forward(&Input::declare(&graph, task, 1), Mode::Inference);
    let mut theta = vec![0.0; graph.parameters().shape().count()];
    for section in graph.sections() {
        theta[section.range()].copy_from_slice(&values(&section.name, section.shape.count()));
    }
    let (points, space) = (task.grid.points(), task.space);
    let rows = channels.chunks_exact(channels.len() / points);
    let positions = rows.clone().flat_map(|row| row[..space].to_vec()).collect();
    let functions = rows.flat_map(|row| row[space..].to_vec()).collect();
    let bindings = Bindings::from([(PARAMETERS, theta), ("positions", positions), ("functions", functions)]);
    reference::evaluate(&graph, &bindings, &[out])[0].values.clone()
}

/// Values that depend on the name alone, for any number of elements.
fn drawn(name: &str, count: usize) -> Vec<f64> {
    let phase: u32 = name.bytes().map(u32::from).sum();
    (0..count).map(|n| 0.5 * (f64::from(phase) + 12.9898 * n as f64).sin()).collect()
}

const SMALL: &str = "width = 16\nstates = 4\ndepth = 2\nmlp_ratio = 1\ndirections = 2\n";

#[test]
fn lamo_on_a_line_is_lamo_on_a_plane_of_one_row_whose_kernels_keep_their_middle_row() {
    let plane = Task::plain(Grid::Plane { rows: 1, columns: 9 }, 1, 1, 1);
    let (chosen, channels) = (format!("{SMALL}patch = 1"), wave(18, 0.9));
    let found = patches(&line(9), &chosen, &channels, &drawn);
    let expected = patches(&plane, &chosen, &channels, &|name, count| {
        if !name.contains("conv2d.1.weight") {
            return drawn(name, count);
        }
        let kernels = drawn(name, count / 3); // [inner, 1, 1, 3] of the line
        kernels.chunks_exact(3).flat_map(|row| [vec![7.0; 3], row.to_vec(), vec![-5.0; 3]].concat()).collect()
    });
    check("a plane of one row", &found, &expected, 1e-12);
}

#[test]
fn patches_of_two_points_are_points_with_twice_the_channels() {
    let pairs = Task::plain(Grid::Line { points: 5 }, 2, 2, 2);
    let channels = wave(20, 0.9); // [10 points, position and function]
    let of_pairs = channels.chunks_exact(4).flat_map(|pair| [pair[0], pair[2], pair[1], pair[3]]).collect::<Vec<_>>();
    let found = patches(&line(10), &format!("{SMALL}patch = 2"), &channels, &drawn);
    let expected = patches(&pairs, &format!("{SMALL}patch = 1"), &of_pairs, &drawn);
    check("points with twice the channels", &found, &expected, 1e-12);
    // An odd line ends in a zero that the model sees and the output does not have.
    let odd = patches(&line(9), &format!("{SMALL}patch = 2"), &channels[..18], &drawn);
    let padded = [&channels[..18], &[0.0, 0.0]].concat();
    let even = patches(&line(10), &format!("{SMALL}patch = 2"), &padded, &drawn);
    check("a line of odd length", &odd, &even[..9], 1e-12);
}

/// A wave that ends at the last point stays the same wave: half the distance between points, twice the points.
#[test]
fn the_padding_of_the_fourier_operator_keeps_its_length_on_another_grid() {
    let grid = |points: usize| Grid::Line { points };
    let plane = |rows: usize, columns: usize| Grid::Plane { rows, columns };
    let volume = |side: usize| Grid::Volume { rows: side, columns: side, layers: side };
    for (from, to, expected) in [
        (grid(50), grid(99), vec![0, 128]), // 64 steps of 1/49 are 128 of 1/98
        (grid(50), grid(50), vec![0, 64]),
        (grid(32), grid(100), vec![0, 100]), // no zeros, so the line is one period
        (grid(30), grid(16), vec![0, 17]),   // 32 steps of 1/29 are 16.6 of 1/15
        (grid(1), grid(5), vec![0, 0]),
        (plane(85, 16), plane(141, 31), vec![160, 31]),
        (volume(17), volume(33), vec![64, 64, 64]), // 32 steps of 1/16 are 64 of 1/32
    ] {
        let moved = find("fno").unwrap().moved(&Settings::new(), [from, to]).unwrap();
        let padded: Vec<_> = moved["padded"].as_array().unwrap().iter().map(|n| n.as_integer().unwrap()).collect();
        assert_eq!(padded, expected, "{from} to {to}");
    }
}

#[test]
fn settings_that_do_not_fit_a_line_are_refused_with_a_sentence() {
    let refusal = |model: &str, task: &Task, text: &str| {
        let built = find(model).unwrap().parameter_count(task, &settings(text));
        built.err().unwrap_or_else(|| panic!("{model}, {text:?} is accepted")).to_string()
    };
    for (model, text, expected) in [
        ("fno", "", "model fno: a padded line of 16 points carries at most 9 modes, found 12; set modes = 9"),
        (
            "fno",
            "line_padding = 1",
            "model fno: a padded line of 9 points carries at most 5 modes, found 12; set modes = 5",
        ),
        ("fno", "line_padding = 0", "model fno: line_padding: expected at least 1, found 0"),
        ("fno", "modes = 2\npadded = [0, 8]", "model fno: padded = [8] must cover [9] points; set padded = [0, 0]"),
        ("lamo", "", "model lamo: a line is scanned in 1 or 2 directions, found 4; set directions = 2"),
        (
            "lamo",
            "directions = 2\npadded = [0, 8]",
            "model lamo: padded = [1, 8] must cover 1 × 9 in patches of 2; set padded = [0, 0]",
        ),
        (
            "lamo",
            "directions = 2\npadded = [2, 10]",
            "model lamo: padded = [2, 10] must cover 1 × 9 in patches of 2; set padded = [0, 0]",
        ),
    ] {
        assert_eq!(refusal(model, &line(9), text), expected);
    }
    let cloud = Task::plain(Grid::Cloud { points: 9 }, 1, 1, 1);
    assert!(
        refusal("lamo", &cloud, "")
            .starts_with("model lamo: patches need a line, a plane or a volume; on clouds use latent")
    );
}

/// Steps that Transolver needs to half the error of the best map from each point to itself, which is 1: the task is a shift
/// by a quarter of a line, the samples have mean zero.
fn steps_to_learn_a_shift(initial: &str) -> usize {
    const POINTS: usize = 16;
    const SAMPLES: usize = 24;
    let task = line(POINTS);
    let graph = Graph::new();
    let parameters = Parameters::new(&graph);
    let sizes = format!("width = 16\ndepth = 2\nslice_heads = 2\ntokens = 8\ninitial = \"{initial}\"");
    let model = find("transolver").unwrap().build(&parameters, &task, &settings(&sizes)).unwrap();
    let out = model.forward(&Input::declare(&graph, &task, SAMPLES), Mode::Training);
    let loss = relative_l2_sum(out, graph.input("target", out.shape()));
    graph.output("loss", loss * (1.0 / SAMPLES as f64));
    let adamw = AdamW::default();
    adamw.minimise(&graph, loss);
    let mut program = Program::compile(&graph);
    parameters.initialise(&mut program, 7);
    let sample = |sample: usize, shift: usize| {
        let (phase, waves) = (2.4 * sample as f64, (1 + sample % 3) as f64);
        move |point: usize| (TAU * waves * (point + shift) as f64 / POINTS as f64 + phase).sin()
    };
    let fields = |shift: usize| (0..SAMPLES).flat_map(|n| (0..POINTS).map(sample(n, shift))).collect::<Vec<f64>>();
    let place = |n: usize| (n % POINTS) as f64 / POINTS as f64 * 3.4 - 1.7;
    program.write("positions", &floats(&(0..SAMPLES * POINTS).map(place).collect::<Vec<_>>()));
    program.write("functions", &floats(&fields(0)));
    program.write("target", &floats(&fields(POINTS / 4)));
    for step in 0..MOST_STEPS {
        adamw.pace(&mut program, step, Schedule::Constant { rate: 2e-3 }.at(step)).unwrap();
        program.run();
        if program.read("loss")[0] < 0.5 {
            return step;
        }
    }
    MOST_STEPS
}

const MOST_STEPS: usize = 1100;

/// The small weights of the authors are the plateau of slice models on lines and small clouds.
#[test]
fn slices_learn_what_lies_between_points_sooner_from_weights_of_the_usual_size_than_from_small_ones() {
    let [usual, small] = ["fan-in", "small"].map(steps_to_learn_a_shift);
    assert!(3 * usual < small, "{usual} steps from weights of the usual size, {small} from small ones");
}

#[test]
fn own_data_get_the_model_and_the_first_weights_that_learn_on_their_grid() {
    let resolved = |model: Option<&str>, grid: Option<Grid>, changes: &[String]| {
        Request { model, grid, changes, ..Request::default() }.resolve().unwrap()
    };
    let (line, plane) = (Grid::Line { points: 16 }, Grid::Plane { rows: 8, columns: 8 });
    let cloud = Grid::Cloud { points: 16 };
    for (grid, expected) in [(Some(line), "fno"), (Some(plane), "lamo"), (Some(cloud), "lamo"), (None, "lamo")] {
        assert_eq!(resolved(None, grid, &[]).model.name, expected, "{grid:?}");
    }
    assert_eq!(resolved(Some("lamo"), Some(line), &[]).model.name, "lamo", "a model that is named is used");
    let file = ["model.name=deeponet".to_owned()];
    assert_eq!(resolved(None, Some(line), &file).model.name, "deeponet", "a file names the model too");

    let initial = |model: &str, grid: Option<Grid>, changes: &[String]| {
        resolved(Some(model), grid, changes).model.settings["initial"].as_str().unwrap().to_owned()
    };
    for (model, grid) in [("transolver", line), ("transolver", cloud), ("lamo", line), ("lamo", cloud)] {
        assert_eq!(initial(model, Some(grid), &[]), "fan-in", "{model} on a {grid}");
        assert_eq!(initial(model, Some(grid), &["model.settings.initial=small".to_owned()]), "small");
    }
    // The record of a run of an earlier version names no grid here, and has no key `initial`.
    for loss in ["relative-l2", "relative-l2-of-times"] {
        let changes = [format!("train.loss={loss}")];
        assert_eq!([initial("lamo", None, &changes), initial("transolver", None, &changes)], ["small", "small"]);
    }
    for shipped in EXPERIMENTS.iter() {
        let settings = Experiment::shipped(&shipped.name).unwrap().model.settings;
        let found = settings.get("initial").map(|value| value.as_str().unwrap());
        assert!(found.is_none_or(|initial| initial == "small"), "{} starts as its authors say", shipped.name);
    }
}
