//! The Fourier Neural Operator against Neural-Solver-Library, and against its definition where the library fails.

use crate::support::experiment;
use lamo::data::Samples;
use lamo::network::models::{Settings, find};
use lamo::network::{Input, Mode, Parameters};
use lamo::task::Task;
use lamo::training::Trainer;
use lamo::training::loss::relative_l2_sum;
use lamo_geometry::Grid;
use lamo_tensor::reference::{self, Bindings};
use lamo_tensor::{Device, Graph, Map, PARAMETERS, Program};
use safetensors::{Dtype, SafeTensors};
use std::collections::HashMap;
use std::f64::consts::TAU;
use std::path::PathBuf;

/// Allowed errors relative to the largest element, as the fixtures state them.
const OUTPUT: f64 = 2e-5;
const LOSS: f64 = 1e-5;
const GRADIENT: f64 = 3e-4;
/// A gradient that is zero in theory is rounding in practice.
const NOISE: f64 = 1e-7;
/// In f64 only the constants are rounded, to 24 bits.
const REFERENCE: f64 = 1e-7;

/// All tensors of a file of the model's fixture, in f64.
fn tensors(file: &str) -> HashMap<String, Vec<f64>> {
    let path =
        PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("../../fixtures/baselines/fno2d").join(file);
    let bytes = std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let file = SafeTensors::deserialize(&bytes).unwrap();
    file.iter()
        .map(|(key, view)| {
            let data = view.data();
            let single = |bytes: &[u8]| f64::from(f32::from_le_bytes(bytes.try_into().unwrap()));
            let double = |bytes: &[u8]| f64::from_le_bytes(bytes.try_into().unwrap());
            let values = match view.dtype() {
                Dtype::F32 => data.chunks_exact(4).map(single).collect(),
                Dtype::F64 => data.chunks_exact(8).map(double).collect(),
                other => panic!("{key} has type {other:?}"),
            };
            (key.to_owned(), values)
        })
        .collect()
}

fn floats(values: &[f64]) -> Vec<f32> {
    values.iter().map(|&value| value as f32).collect()
}

fn doubles(values: &[f32]) -> Vec<f64> {
    values.iter().map(|&value| f64::from(value)).collect()
}

/// max|found − expected| ≤ relative · max|expected| + absolute, and everything finite.
fn check(what: &str, found: &[f64], expected: &[f64], relative: f64, absolute: f64) {
    assert_eq!(found.len(), expected.len(), "{what} has {} elements", expected.len());
    let largest = expected.iter().fold(0.0, |largest: f64, value| largest.max(value.abs()));
    let errors = found.iter().zip(expected).map(|(a, b)| (a - b).abs());
    let error = errors.fold(0.0, |worst: f64, error| if error.is_nan() { f64::NAN } else { worst.max(error) });
    let allowed = relative * largest + absolute;
    assert!(error <= allowed, "{what} is off by {error:.2e}, allowed {allowed:.2e}");
}

fn plane(rows: usize, columns: usize) -> Task {
    Task::plain(Grid::Plane { rows, columns }, 2, 1, 1)
}

fn settings(text: &str) -> Settings {
    text.parse().unwrap()
}

#[test]
fn the_fourier_operator_equals_the_library_with_all_gradients() {
    let (weights, io) = (tensors("params.safetensors"), tensors("io.safetensors"));
    let task = plane(9, 11);
    let graph = Graph::new();
    let parameters = Parameters::new(&graph);
    let model = find("fno").unwrap().build(&parameters, &task, &settings("width = 8\nmodes = 4")).unwrap();
    let input = Input::declare(&graph, &task, 2);
    let output = model.forward(&input, Mode::Training);
    let loss = relative_l2_sum(output, graph.input("target", [2, 99, 1]));
    let leaves = [input.positions, input.functions.expect("the task has one"), graph.parameters()];
    let gradients = graph.gradient(loss, &leaves);
    for (name, value) in [("output", output), ("loss", loss)] {
        graph.output(name, value);
    }
    for (name, gradient) in ["grad.in.x", "grad.in.fx", "gradient"].iter().zip(gradients) {
        graph.output(name, gradient.expect("used"));
    }

    let mut program = Program::compile(&graph);
    assert_eq!(weights.len(), graph.sections().len(), "as many parameters as the library has");
    for section in graph.sections() {
        program.write_parameter(&section.name, &floats(&weights[&section.name]));
    }
    let inputs = [("positions", "in.x"), ("functions", "in.fx"), ("target", "target")];
    inputs.iter().for_each(|(name, key)| program.write(name, &floats(&io[*key])));
    program.run();
    check("the output", &doubles(program.read("output")), &io["out_f64"], OUTPUT, 0.0);
    check("the loss", &doubles(program.read("loss")), &io["loss_f64"], LOSS, 0.0);
    for key in ["grad.in.x", "grad.in.fx"] {
        check(key, &doubles(program.read(key)), &io[key], GRADIENT, NOISE);
    }
    for section in graph.sections() {
        let key = format!("grad.param.{}", section.name);
        check(&key, &doubles(&program.read("gradient")[section.range()]), &io[&key], GRADIENT, NOISE);
    }

    let mut bindings: Bindings<'_> = inputs.iter().map(|(name, key)| (*name, io[*key].clone())).collect();
    bindings.insert(PARAMETERS, doubles(program.read(PARAMETERS)));
    let exact = reference::evaluate(&graph, &bindings, &[output, loss]);
    check("the output in f64", &exact[0].values, &io["out_f64"], REFERENCE, 0.0);
    check("the loss in f64", &exact[1].values, &io["loss_f64"], REFERENCE, 0.0);
}

/// Where the library cannot be asked: it crops to nothing when one axis alone is padded. The other planes reach the
/// highest frequency along columns, along rows, and neither.
#[test]
fn the_fourier_operator_equals_its_definition_also_where_one_axis_is_padded_and_up_to_the_highest_frequency() {
    for (rows, columns, modes) in [(13, 16, 4), (16, 7, 3), (32, 16, 9), (16, 32, 8), (5, 19, 1)] {
        let task = plane(rows, columns);
        let graph = Graph::new();
        let parameters = Parameters::new(&graph);
        let chosen = settings(&format!("width = 3\nmodes = {modes}\ndepth = 2"));
        let model = find("fno").unwrap().build(&parameters, &task, &chosen).unwrap();
        graph.output("output", model.forward(&Input::declare(&graph, &task, 2), Mode::Inference));
        let mut program = Program::compile(&graph);
        parameters.initialise(&mut program, 1);
        // The first values of the weights are at most 1/9, which would hide the convolution.
        let theta: Vec<f32> = program.read(PARAMETERS).iter().map(|value| 2.0 * value).collect();
        program.write(PARAMETERS, &theta);
        let points = rows * columns;
        let wave = |length: usize, pace: f64| (0..length).map(|i| (pace * i as f64).sin()).collect::<Vec<_>>();
        let (positions, functions) = (wave(2 * points * 2, 0.37), wave(2 * points, 1.13));
        program.write("positions", &floats(&positions));
        program.write("functions", &floats(&functions));
        program.run();
        let definition = Definition { program: &program, extents: [rows, columns], modes, width: 3 };
        let expected: Vec<f64> = (0..2)
            .flat_map(|sample| {
                let point = |p: usize| {
                    let first = 2 * (sample * points + p);
                    [positions[first], positions[first + 1], functions[sample * points + p]]
                };
                definition.solution(&(0..points).flat_map(point).collect::<Vec<_>>())
            })
            .collect();
        let what = format!("a plane of {rows} × {columns} with {modes} modes");
        check(&what, &doubles(program.read("output")), &expected, OUTPUT, 0.0);
    }
}

/// Two layers for one sample, by sums straight from the definition.
struct Definition<'a> {
    program: &'a Program,
    extents: [usize; 2],
    modes: usize,
    width: usize,
}

impl Definition<'_> {
    fn parameter(&self, name: &str) -> Vec<f64> {
        doubles(self.program.read_parameter(name))
    }

    fn linear(&self, name: &str, x: &[f64]) -> Vec<f64> {
        let (weight, bias) = (self.parameter(&format!("{name}.weight")), self.parameter(&format!("{name}.bias")));
        let inputs = weight.len() / bias.len();
        let dot = |x: &[f64], row: &[f64]| x.iter().zip(row).map(|(a, b)| a * b).sum::<f64>();
        let each = |x| weight.chunks_exact(inputs).zip(&bias).map(move |(row, bias)| dot(x, row) + bias);
        x.chunks_exact(inputs).flat_map(each).collect()
    }

    /// `[points, 3]` → `[points, 1]`
    fn solution(&self, channels: &[f64]) -> Vec<f64> {
        let gelu = |x: Vec<f64>| x.into_iter().map(|x| Map::Gelu.evaluate(x, 0.0, 0.0)).collect::<Vec<_>>();
        let add = |a: Vec<f64>, b: Vec<f64>| a.iter().zip(b).map(|(a, b)| a + b).collect::<Vec<_>>();
        let ([rows, columns], width) = (self.extents, self.width);
        let [padded_rows, padded] = self.extents.map(|extent| extent.next_multiple_of(16));
        let lifted = gelu(self.linear("preprocess.linear_pre.0", channels));
        let settled = self.linear("preprocess.linear_post", &lifted);
        let mut v = vec![0.0; padded_rows * padded * width];
        for (row, values) in settled.chunks_exact(columns * width).enumerate() {
            v[row * padded * width..][..columns * width].copy_from_slice(values);
        }
        v = gelu(add(self.convolution("conv0", &v), self.linear("w0", &v)));
        v = add(self.convolution("conv1", &v), self.linear("w1", &v));
        let cropped: Vec<f64> =
            v.chunks_exact(padded * width).take(rows).flat_map(|row| row[..columns * width].to_vec()).collect();
        self.linear("fc2", &gelu(self.linear("fc1", &cropped)))
    }

    /// irfft2(R · rfft2(v)); a complex number is (re, im).
    fn convolution(&self, name: &str, v: &[f64]) -> Vec<f64> {
        let (width, modes) = (self.width, self.modes);
        let [rows, columns] = self.extents.map(|extent| extent.next_multiple_of(16));
        let weights = ["weights1", "weights2"].map(|part| self.parameter(&format!("{name}.{part}")));
        let times = |(a, b): (f64, f64), (c, d): (f64, f64)| (a * c - b * d, a * d + b * c);
        let turn = |part: usize, whole: usize| {
            let (sin, cos) = (TAU * (part % whole) as f64 / whole as f64).sin_cos();
            (cos, sin)
        };
        let mut halfway = vec![(0.0, 0.0); rows * modes * width]; // after the inverse along rows
        for (half, i, l) in (0..2 * modes * modes).map(|m| (m / (modes * modes), m / modes % modes, m % modes)) {
            let k = if half == 0 { i } else { rows - modes + i };
            let mut mixed = vec![(0.0, 0.0); width];
            for input in 0..width {
                let mut mode = (0.0, 0.0);
                for (r, c) in (0..rows * columns).map(|point| (point / columns, point % columns)) {
                    let (cos, sin) = times(turn(k * r, rows), turn(l * c, columns));
                    let value = v[(r * columns + c) * width + input];
                    mode = (mode.0 + value * cos, mode.1 - value * sin);
                }
                for (output, mixed) in mixed.iter_mut().enumerate() {
                    let at = 2 * (((input * width + output) * modes + i) * modes + l);
                    let (re, im) = times(mode, (weights[half][at], weights[half][at + 1]));
                    *mixed = (mixed.0 + re, mixed.1 + im);
                }
            }
            for (r, output) in (0..rows * width).map(|place| (place / width, place % width)) {
                let (re, im) = times(mixed[output], turn(k * r, rows));
                let place = &mut halfway[(r * modes + l) * width + output];
                *place = (place.0 + re / rows as f64, place.1 + im / rows as f64);
            }
        }
        // The real inverse along columns: frequency columns − l is the conjugate of l; its own conjugate is real.
        let mut x = vec![0.0; v.len()];
        for (place, x) in x.iter_mut().enumerate() {
            let (r, c, output) = (place / (columns * width), place / width % columns, place % width);
            for l in 0..columns {
                let (source, sign) = if 2 * l > columns { (columns - l, -1.0) } else { (l, 1.0) };
                if source < modes {
                    let (re, im) = halfway[(r * modes + source) * width + output];
                    let im = if source == 0 || 2 * source == columns { 0.0 } else { sign * im };
                    *x += times((re, im), turn(l * c, columns)).0 / columns as f64;
                }
            }
        }
        x
    }
}

#[test]
fn the_fourier_weights_start_between_zero_and_one_over_inputs_times_outputs() {
    let graph = Graph::new();
    let parameters = Parameters::new(&graph);
    let task = plane(16, 16);
    let model = find("fno").unwrap().build(&parameters, &task, &settings("width = 8\nmodes = 4")).unwrap();
    graph.output("output", model.forward(&Input::declare(&graph, &task, 2), Mode::Inference));
    let mut program = Program::compile(&graph);
    parameters.initialise(&mut program, 7);
    for name in ["conv0.weights1", "conv3.weights2"] {
        let values = doubles(program.read_parameter(name));
        assert!(values.iter().all(|value| (0.0..1.0 / 64.0).contains(value)), "{name}");
        let mean = values.iter().sum::<f64>() / values.len() as f64 * 64.0;
        // 2048 uniform numbers: their mean has deviation 1/√(12 · 2048) = 0.0064.
        assert!((mean - 0.5).abs() < 0.03, "{name}: mean {mean} of the range");
    }
    assert!(program.read_parameter("w0.weight").iter().any(|&value| value < 0.0), "w0 is spread about zero");
}

#[test]
fn settings_that_make_no_fourier_operator_are_refused_with_a_sentence() {
    let refusal = |task: &Task, text: &str| {
        let graph = Graph::new();
        let built = find("fno").unwrap().build(&Parameters::new(&graph), task, &settings(text));
        built.err().unwrap_or_else(|| panic!("{text:?} is accepted")).to_string()
    };
    let small = plane(9, 11);
    for (text, expected) in [
        ("", "model fno: a padded plane of 16 × 16 points carries at most 9 modes, found 12; set modes = 9"),
        ("modes = 0", "model fno: width, modes and depth are at least 1, found 64, 0 and 4"),
        ("depth = 0", "model fno: width, modes and depth are at least 1, found 64, 12 and 0"),
        (
            "modes = 4\nunified_positions = 1",
            "model fno: a lattice of unified positions has 2 to 256 points a side, found 1",
        ),
    ] {
        assert_eq!(refusal(&small, text), expected);
    }
    assert!(refusal(&small, "widht = 8").contains("widht"), "an unknown key is named");
    let sentence = refusal(&Task::plain(Grid::Cloud { points: 99 }, 3, 1, 1), "");
    let expected = "model fno: expected a line, a plane, a volume or a flat cloud, found a cloud of shape [99] of points with 3 coordinates";
    assert!(sentence.starts_with(expected), "{sentence}");
    let sentence = refusal(&small.by_time(1), "modes = 4\nwidth = 1");
    assert_eq!(sentence, "model fno: a time needs a width of at least 2, found 1");
    assert!(refusal(&plane(64, 16), "modes = 10").contains("at most 9 modes"), "columns limit the modes too");
}

/// On another grid other rows share a weight.
#[test]
fn weights_of_rows_that_frequencies_share_stay_on_their_grid() {
    let (row, plane) = (find("fno").unwrap(), |rows| Grid::Plane { rows, columns: 32 });
    assert!(row.moved(&settings("modes = 9"), [plane(16), plane(16)]).is_some());
    assert_eq!(row.moved(&settings("modes = 9"), [plane(16), plane(32)]), None);
    let moved = row.moved(&settings("modes = 8"), [plane(16), plane(12)]).unwrap();
    let task = Task::plain(plane(12), 2, 1, 1);
    let refused = row.parameter_count(&task, &moved).unwrap_err().to_string();
    assert_eq!(refused, "model fno: a padded plane of 12 × 32 points carries at most 6 modes, found 8; set modes = 6");
}

#[test]
fn a_trained_operator_on_too_coarse_a_grid_names_a_grid_that_it_can_predict_on() {
    let line = |points| Grid::Line { points };
    let plane = |rows, columns| Grid::Plane { rows, columns };
    for (from, to, finer) in [
        (line(32), line(8), "a line of 22 points"),
        (plane(32, 48), plane(8, 30), "a plane of 24 x 30 points"),
        // 50 points are padded to 64: 17 points have as many zeros as give 21 points, 18 points 22.
        (line(50), line(9), "a line of 18 points"),
    ] {
        let values = |grid: Grid| (0..2 * grid.points()).map(|place| 1.0 + (0.7 * place as f32).sin()).collect();
        let samples = |grid| Samples::new(grid, 1, values(grid), 1, values(grid)).unwrap();
        let experiment = experiment(&["model.name=fno", "model.settings={ width = 4, depth = 1 }", "train.batch=1"]);
        let task = experiment.task(&samples(from)).unwrap();
        let trainer = Trainer::new(&experiment, &task, &samples(from), &samples(from), Device::Cpu).unwrap();
        let operator = trainer.trained().unwrap().operator;
        let told = operator.predict(&samples(to), Device::Cpu).unwrap_err().to_string();
        let advice = format!("; give fields on {finer} or more, or train a model for this grid: set modes = ");
        assert!(told.contains("modes, found 12") && told.contains(&advice), "{told}");
    }
}
