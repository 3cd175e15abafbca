//! Random values, and comparison with the f64 reference.

use lamo_tensor::reference::{self, Bindings};
use lamo_tensor::{Device, Graph, Options, Precision, Program, Shape, Tensor};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

pub(crate) fn panics_with(expected: &str, action: impl FnOnce() + std::panic::UnwindSafe) {
    let message = std::panic::catch_unwind(action).expect_err(&format!("expected a refusal: {expected}"));
    let text = message.downcast_ref::<String>().cloned();
    let text = text.or_else(|| message.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap();
    assert!(text.contains(expected), "the refusal reads {text:?}, expected {expected:?}");
}

pub(crate) type Random = ChaCha8Rng;

pub(crate) fn random(seed: u64) -> Random {
    Random::seed_from_u64(seed)
}

/// Odd multiples of 1/1024. f32 holds them exactly, so that both evaluators start from the same numbers, and they are farther
/// from the kinks of clamp, maximum and select than a finite difference reaches.
pub(crate) fn values(count: usize, low: f64, high: f64, random: &mut Random) -> Vec<f64> {
    (0..count).map(|_| ((random.random_range(low..high) * 512.0).floor() * 2.0 + 1.0) / 1024.0).collect()
}

type Build = dyn for<'g> Fn(&[Tensor<'g>]) -> Tensor<'g>;

/// An operator to test: how it is built, from which operands, and how many roundings an element of the result has.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) operands: Vec<(Shape, f64, f64)>,
    pub(crate) build: Box<Build>,
    pub(crate) roundings: usize,
}

pub(crate) fn case(
    name: impl Into<String>,
    operands: &[(&[usize], f64, f64)],
    roundings: usize,
    build: impl for<'g> Fn(&[Tensor<'g>]) -> Tensor<'g> + 'static,
) -> Case {
    let operands = operands.iter().map(|(dims, low, high)| (Shape::from(dims), *low, *high)).collect();
    Case { name: name.into(), operands, build: Box::new(build), roundings }
}

const NAMES: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];

impl Case {
    pub(crate) fn inputs<'g>(&self, graph: &'g Graph) -> Vec<Tensor<'g>> {
        self.operands.iter().zip(NAMES).map(|((shape, ..), name)| graph.input(name, shape.clone())).collect()
    }

    /// Elements of all operands.
    pub(crate) fn elements(&self) -> usize {
        self.operands.iter().map(|(shape, ..)| shape.count()).sum()
    }

    pub(crate) fn bindings(&self, random: &mut Random) -> Bindings<'static> {
        self.operands
            .iter()
            .zip(NAMES)
            .map(|((shape, low, high), name)| (name, values(shape.count(), *low, *high, random)))
            .collect()
    }

    /// A scalar that gives every element a different weight.
    fn loss<'g>(&self, graph: &'g Graph, result: Tensor<'g>) -> Tensor<'g> {
        let shape = result.shape();
        let weights: Vec<f32> = (0..shape.count()).map(|i| (0.7 * i as f32 + 0.3).sin()).collect();
        (result * graph.constant(&weights, shape)).sum_all()
    }

    /// Adds outputs for the value and the gradients of all operands.
    fn deliver(&self, graph: &Graph) {
        let inputs = self.inputs(graph);
        let result = (self.build)(&inputs);
        graph.output("result", result);
        let gradients = graph.gradient(self.loss(graph, result), &inputs);
        for (name, gradient) in NAMES.iter().zip(&gradients) {
            if let Some(gradient) = gradient {
                graph.output(&format!("gradient {name}"), *gradient);
            }
        }
    }

    /// Value and gradients on the CPU, fused and unfused, equal the reference.
    pub(crate) fn equals_reference(&self, seed: u64) {
        let graph = Graph::new();
        self.deliver(&graph);
        let bindings = self.bindings(&mut random(seed));
        compare(&self.name, &graph, &bindings, self.roundings);
    }

    /// Compiles the kernels, without a GPU; returns the bytes of code.
    #[cfg(feature = "cuda")]
    pub(crate) fn compile_kernels(&self, precision: Precision) -> usize {
        let graph = Graph::new();
        self.deliver(&graph);
        Program::compile_kernels(&graph, precision, 90).unwrap_or_else(|error| panic!("{}: {error}", self.name))
    }

    /// Value and gradients on `device` in each precision differ from the reference by at most its share of the norm, and two runs
    /// have the same bits.
    pub(crate) fn is_near_reference(&self, seed: u64, device: Device, shares: &[(Precision, f64)]) {
        let graph = Graph::new();
        self.deliver(&graph);
        let bindings = self.bindings(&mut random(seed));
        let (outputs, _) = reference::run(&graph, &bindings);
        for &(precision, share) in shares {
            let mut program =
                Program::compile_on(&graph, device, precision).unwrap_or_else(|error| panic!("{}: {error}", self.name));
            bind(&mut program, &bindings);
            program.run();
            for (output, expected) in &outputs {
                let found = program.read(output);
                let difference =
                    found.iter().zip(&expected.values).map(|(a, b)| (f64::from(*a) - b).powi(2)).sum::<f64>();
                let norm = expected.values.iter().map(|value| value * value).sum::<f64>();
                let error = (difference / norm).sqrt();
                assert!(error <= share, "{} in {precision}: {output} is off by {error:.1e} of its norm", self.name);
            }
            let first: Vec<Vec<f32>> = outputs.keys().map(|output| program.read(output).to_vec()).collect();
            program.run();
            for (output, first) in outputs.keys().zip(first) {
                assert!(
                    program.read(output) == first,
                    "{} in {precision}: {output} changes from run to run",
                    self.name
                );
            }
        }
    }

    /// Gradients in f64 equal central differences of the value in f64.
    pub(crate) fn gradient_equals_differences(&self, seed: u64) {
        let graph = Graph::new();
        let inputs = self.inputs(&graph);
        let loss = self.loss(&graph, (self.build)(&inputs));
        let gradients = graph.gradient(loss, &inputs);
        let mut bindings = self.bindings(&mut random(seed));
        let wanted: Vec<Tensor<'_>> = gradients.iter().copied().flatten().collect();
        let mut exact = reference::evaluate(&graph, &bindings, &wanted).into_iter();
        for (position, gradient) in gradients.iter().enumerate() {
            let name = NAMES[position];
            let slope = match gradient {
                Some(_) => exact.next().unwrap().values,
                None => vec![0.0; bindings[name].len()],
            };
            let largest = slope.iter().fold(1e-3, |largest: f64, value| largest.max(value.abs()));
            for element in 0..slope.len() {
                let mut at = |shift: f64| {
                    let old = bindings[name][element];
                    bindings.get_mut(name).unwrap()[element] = old + shift;
                    let value = reference::evaluate(&graph, &bindings, &[loss])[0].values[0];
                    bindings.get_mut(name).unwrap()[element] = old;
                    value
                };
                // Fourth order: the error of the difference is about step⁴ = 1e-16, its rounding 1e-16/step = 1e-12.
                let step = 1e-4;
                let difference = (8.0 * (at(step) - at(-step)) - (at(2.0 * step) - at(-2.0 * step))) / (12.0 * step);
                let error = (difference - slope[element]).abs();
                assert!(
                    error <= 1e-8 * largest,
                    "{}: ∂/∂{name}[{element}] is {}, differences give {difference}",
                    self.name,
                    slope[element]
                );
            }
        }
    }
}

/// Runs a graph fused and unfused and compares every output with the reference. Each of the `roundings` of an element may
/// contribute one unit in the last place of the largest magnitude.
pub(crate) fn compare(name: &str, graph: &Graph, bindings: &Bindings<'_>, roundings: usize) {
    let (outputs, _) = reference::run(graph, bindings);
    // Blocks of few elements: in small graphs the usual ones would be none.
    let ways = [(true, 0), (true, 1), (true, 24), (false, 0)].map(|(fuse, block)| Options { fuse, block });
    let mut programs: Vec<(String, Program)> =
        ways.map(|options| (format!("{options:?}"), Program::compile_with(graph, options))).into();
    // `LAMO_TEST_DEVICE=cuda` compares a GPU too.
    if let Ok(device) = std::env::var("LAMO_TEST_DEVICE") {
        let device: Device = device.parse().unwrap();
        let program =
            Program::compile_on(graph, device, Precision::F32).unwrap_or_else(|error| panic!("{name}: {error}"));
        programs.push((device.to_string(), program));
    }
    for (how, mut program) in programs {
        bind(&mut program, bindings);
        program.run();
        for (output, expected) in &outputs {
            let found = program.read(output);
            let largest = expected.values.iter().fold(0.0, |largest: f64, value| largest.max(value.abs()));
            let tolerance = (roundings as f64 * largest).max(1.0) * f64::from(f32::EPSILON);
            for (element, (&found, &expected)) in found.iter().zip(&expected.values).enumerate() {
                let error = (f64::from(found) - expected).abs();
                let agree = error <= tolerance || (found.is_nan() && expected.is_nan()) || f64::from(found) == expected;
                assert!(
                    agree,
                    "{name} ({how}): {output}[{element}] is {found}, reference {expected}; \
                     error {error:.1e} above {tolerance:.1e}\n{}",
                    program.explain()
                );
            }
        }
    }
}

pub(crate) fn bind(program: &mut Program, bindings: &Bindings<'_>) {
    for (name, values) in bindings {
        if name.starts_with("rows") {
            let rows: Vec<u32> = values.iter().map(|&row| row as u32).collect();
            program.write_index(name, &rows);
        } else {
            let values: Vec<f32> = values.iter().map(|&value| value as f32).collect();
            program.write(name, &values);
        }
    }
}
