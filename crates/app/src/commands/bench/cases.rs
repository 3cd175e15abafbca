//! The cases, one row each. `benches/torch_cpu.py` computes the same on the same numbers.

use lamo::network::Parameters;
use lamo::network::layers::{Discretisation, LayerNorm, Mlp, Selection, Ss2d};
use lamo::training::loss::relative_l2_sum;
use lamo::training::optimiser::AdamW;
use lamo::training::schedule::Pace;
use lamo_tensor::{ConvolutionOptions, Graph, Program, ScanInput, Shape, Tensor};

/// A benchmark.
pub(super) struct Case {
    pub(super) name: &'static str,
    sizes: &'static [(&'static str, usize)],
    pub(super) build: fn() -> Running,
    /// Floating-point operations, a multiply-add as two; 0 for cases that memory limits.
    pub(super) gflop: f64,
    /// Data that must be read or written at least once.
    pub(super) megabytes: f64,
    /// Largest difference between the checks of both sides that rounding can explain.
    pub(super) tolerance: f64,
    pub(super) measures_memory: bool,
}

impl Case {
    pub(super) fn sizes(&self) -> serde_json::Value {
        self.sizes.iter().map(|&(name, size)| (name.to_owned(), serde_json::Value::from(size))).collect()
    }
}

/// A compiled case.
pub(super) struct Running {
    program: Program,
    check: Check,
}

/// How a result becomes one number that both sides can compare.
enum Check {
    /// The weighted sum of all elements of an output.
    Weighted(&'static str),
    /// The first element of an output.
    First(&'static str),
}

impl Running {
    pub(super) fn run(&mut self) {
        self.program.run();
    }

    pub(super) fn profile(&mut self) -> Vec<(String, f64)> {
        self.program.profile()
    }

    /// One number for the result.
    pub(super) fn check(&self) -> f64 {
        match self.check {
            Check::First(name) => f64::from(self.program.read(name)[0]),
            Check::Weighted(name) => {
                let values = self.program.read(name);
                let weighted = |(i, &value): (usize, &f32)| f64::from(value) * (0.11 * i as f64).cos();
                values.iter().enumerate().map(weighted).sum::<f64>() / (values.len() as f64).sqrt()
            }
        }
    }
}

const MAIN_ROWS: usize = 7744; // 4 samples of 44 × 44 tokens

/// Every case.
pub(super) const CASES: &[Case] = &[
    Case {
        name: "matmul",
        sizes: &[("m", 512), ("n", 512), ("k", 512)],
        build: || matmul(512, 512, 512),
        gflop: 2e-9 * (512 * 512 * 512) as f64,
        megabytes: 3.0 * 4e-6 * (512 * 512) as f64,
        tolerance: 1e-4,
        measures_memory: false,
    },
    Case {
        name: "matmul",
        sizes: &[("m", MAIN_ROWS), ("n", 528), ("k", 128)],
        build: || matmul(MAIN_ROWS, 528, 128),
        gflop: 2e-9 * (MAIN_ROWS * 528 * 128) as f64,
        megabytes: 4e-6 * (MAIN_ROWS * (528 + 128) + 528 * 128) as f64,
        tolerance: 1e-4,
        measures_memory: false,
    },
    Case {
        name: "maps",
        sizes: &[("rows", MAIN_ROWS), ("columns", 256)],
        build: || maps(MAIN_ROWS, 256),
        gflop: 0.0,
        megabytes: 3.0 * 4e-6 * (MAIN_ROWS * 256) as f64,
        tolerance: 1e-5,
        measures_memory: false,
    },
    Case {
        name: "softmax",
        sizes: &[("rows", 30976), ("columns", 64)],
        build: || softmax(30976, 64),
        gflop: 0.0,
        megabytes: 3.0 * 4e-6 * (30976 * 64) as f64,
        tolerance: 1e-5,
        measures_memory: false,
    },
    Case {
        name: "layer_norm",
        sizes: &[("rows", MAIN_ROWS), ("columns", 128)],
        build: || layer_norm(MAIN_ROWS, 128),
        gflop: 0.0,
        megabytes: 3.0 * 4e-6 * (MAIN_ROWS * 128) as f64,
        tolerance: 1e-5,
        measures_memory: false,
    },
    Case {
        name: "depthwise",
        sizes: &[("batch", 4), ("rows", 44), ("columns", 44), ("channels", 128)],
        build: || convolution(4, 44, 44, 128, 128, 128, 1.0),
        gflop: 2e-9 * (3 * 9 * MAIN_ROWS * 128) as f64,
        megabytes: 4.0 * 4e-6 * (MAIN_ROWS * 128) as f64,
        tolerance: 1e-4,
        measures_memory: false,
    },
    Case {
        name: "dense",
        sizes: &[("batch", 4), ("rows", 64), ("columns", 64), ("in_channels", 128), ("out_channels", 128)],
        build: || convolution(4, 64, 64, 128, 128, 1, 0.1),
        gflop: 2e-9 * (3 * 9 * 4 * 64 * 64 * 128 * 128_usize) as f64,
        megabytes: 4.0 * 4e-6 * (4 * 64 * 64 * 128) as f64,
        tolerance: 1e-4,
        measures_memory: false,
    },
    Case {
        name: "scan",
        sizes: &[("batch", 4), ("tokens", 1936), ("heads", 16), ("channels", 32), ("groups", 4), ("states", 64)],
        build: scan,
        gflop: 1e-9 * (19 * 4 * 1936 * 16 * 32 * 64_usize) as f64,
        megabytes: 4e-6 * (4 * 1936 * (4 * 16 * 32 + 6 * 4 * 64)) as f64,
        tolerance: 1e-4,
        measures_memory: false,
    },
    Case {
        name: "scan_by_hand",
        sizes: &[("batch", 4), ("tokens", 1936), ("heads", 16), ("channels", 32), ("groups", 4), ("states", 64)],
        build: scan,
        gflop: 1e-9 * (19 * 4 * 1936 * 16 * 32 * 64_usize) as f64,
        megabytes: 4e-6 * (4 * 1936 * (4 * 16 * 32 + 6 * 4 * 64)) as f64,
        tolerance: 1e-4,
        measures_memory: false,
    },
    Case {
        name: "step",
        sizes: &[
            ("batch", 4),
            ("rows", 44),
            ("columns", 44),
            ("width", 64),
            ("inner", 128),
            ("states", 64),
            ("heads", 4),
            ("layers", 2),
            ("mlp", 4),
        ],
        build: step,
        gflop: STEP_GFLOP,
        megabytes: 0.0,
        tolerance: 1e-3,
        measures_memory: true,
    },
];

/// Two layers, each with the products in, selection, out, fc1 and fc2 three times (forward and both gradients) and the scan.
const STEP_GFLOP: f64 = 2.0
    * 1e-9
    * MAIN_ROWS as f64
    * (3.0 * 2.0 * (64.0 * 256.0 + 128.0 * 528.0 + 128.0 * 64.0 + 2.0 * 64.0 * 256.0) + 19.0 * 4.0 * 128.0 * 64.0);

/// The values of the PyTorch script: offset + scale · sin(1 + 0.37 i + seed).
fn fill(seed: f64, count: usize, offset: f64, scale: f64) -> Vec<f32> {
    (0..count).map(|i| (offset + scale * (1.0 + 0.37 * i as f64 + seed).sin()) as f32).collect()
}

/// A graph with inputs whose values are known.
struct Filled<'g> {
    graph: &'g Graph,
    values: std::cell::RefCell<Vec<(String, Vec<f32>)>>,
}

impl<'g> Filled<'g> {
    fn new(graph: &'g Graph) -> Self {
        Filled { graph, values: Default::default() }
    }

    fn input(&self, seed: usize, shape: impl Into<Shape>, offset: f64, scale: f64) -> Tensor<'g> {
        let (name, shape) = (format!("input {seed}"), shape.into());
        self.values.borrow_mut().push((name.clone(), fill(seed as f64, shape.count(), offset, scale)));
        self.graph.input(&name, shape)
    }

    fn compile(self, check: Check) -> Running {
        let mut program = Program::compile(self.graph);
        for (name, values) in self.values.into_inner() {
            program.write(&name, &values);
        }
        Running { program, check }
    }
}

fn matmul(m: usize, n: usize, k: usize) -> Running {
    let graph = Graph::new();
    let filled = Filled::new(&graph);
    graph.output("result", filled.input(1, [m, k], 0.0, 1.0).matmul(filled.input(2, [k, n], 0.0, 1.0)));
    filled.compile(Check::Weighted("result"))
}

fn maps(rows: usize, columns: usize) -> Running {
    let graph = Graph::new();
    let filled = Filled::new(&graph);
    let [x, y] = [1, 2].map(|seed| filled.input(seed, [rows, columns], 0.0, 1.0));
    let bias = filled.input(3, [columns], 0.0, 1.0);
    graph.output("result", (x + bias).gelu() * y + x.tanh() * 0.5 - y.sigmoid());
    filled.compile(Check::Weighted("result"))
}

/// Adds the gradients of `inputs` to the outputs; the first is the result.
fn pull_back<'g>(graph: &'g Graph, output: Tensor<'g>, cotangent: Tensor<'g>, inputs: &[Tensor<'g>]) {
    graph.output("output", output);
    for (position, gradient) in graph.pullback(&[(output, cotangent)], inputs).into_iter().enumerate() {
        let name = if position == 0 { "result".to_owned() } else { format!("gradient {position}") };
        graph.output(&name, gradient.expect("the output depends on every input"));
    }
}

fn softmax(rows: usize, columns: usize) -> Running {
    let graph = Graph::new();
    let filled = Filled::new(&graph);
    let x = filled.input(1, [rows, columns], 0.0, 3.0);
    pull_back(&graph, x.softmax(), filled.input(2, [rows, columns], 0.0, 1.0), &[x]);
    filled.compile(Check::Weighted("result"))
}

fn layer_norm(rows: usize, columns: usize) -> Running {
    let graph = Graph::new();
    let filled = Filled::new(&graph);
    let x = filled.input(1, [rows, columns], 0.0, 1.0);
    let [weight, bias] = [2, 3].map(|seed| filled.input(seed, [columns], 0.0, 1.0));
    let y = x.layer_norm(weight, bias, 1e-5);
    pull_back(&graph, y, filled.input(4, [rows, columns], 0.0, 1.0), &[x, weight, bias]);
    filled.compile(Check::Weighted("result"))
}

fn convolution(
    batch: usize,
    rows: usize,
    columns: usize,
    from: usize,
    to: usize,
    groups: usize,
    scale: f64,
) -> Running {
    let graph = Graph::new();
    let filled = Filled::new(&graph);
    let x = filled.input(1, [batch, rows, columns, from], 0.0, 1.0);
    let weight = filled.input(2, [to, from / groups, 3, 3], 0.0, scale);
    let options = ConvolutionOptions { groups, padding: [[1, 1]; 2], ..ConvolutionOptions::default() };
    let y = x.convolve(weight, options);
    pull_back(&graph, y, filled.input(3, [batch, rows, columns, to], 0.0, 1.0), &[x, weight]);
    filled.compile(Check::Weighted("result"))
}

fn scan() -> Running {
    let (batch, tokens, heads, channels, groups, states) = (4, 1936, 16, 32, 4, 64);
    let graph = Graph::new();
    let filled = Filled::new(&graph);
    let signal = filled.input(1, [batch, tokens, heads, channels], 0.0, 1.0);
    let gain = filled.input(2, [batch, tokens, heads], 0.05, 0.04);
    let decay = filled.input(3, [heads], 0.0, 1.0);
    let [write, read] = [4, 5].map(|seed| filled.input(seed, [batch, tokens, groups, states], 0.0, 0.5));
    let rate = -1.0 - decay.abs() * 0.5; // A
    let input = ScanInput { signal, log_decay: gain * rate, gain, write, read, initial: None };
    let (y, _) = input.scan(&[(0..tokens as u32).collect()]);
    let cotangent = filled.input(6, [batch, tokens, heads, channels], 0.0, 1.0);
    pull_back(&graph, y, cotangent, &[signal, gain, decay, write, read]);
    filled.compile(Check::Weighted("result"))
}

/// The number of a parameter in the PyTorch script, its offset and its scale.
fn block_parameter(name: &str, width: usize, inner: usize, hidden: usize) -> (usize, f64, f64) {
    let root = |size: usize| 1.0 / (size as f64).sqrt();
    match name {
        "norm1.weight" => (1, 1.0, 0.1),
        "norm1.bias" => (2, 0.0, 0.1),
        "mixer.in_proj.weight" => (3, 0.0, root(width)),
        "mixer.conv2d.1.weight" => (4, 0.0, 1.0 / 3.0),
        "mixer.conv2d.1.bias" => (5, 0.0, 0.1),
        "mixer.x_proj_weight" => (6, 0.0, root(inner)),
        "mixer.dt_projs_bias" => (7, 0.0, 0.1),
        "mixer.A_logs" => (8, 0.0, 0.1),
        "mixer.Ds" => (9, 1.0, 0.1),
        "mixer.out_norm.weight" => (10, 1.0, 0.1),
        "mixer.out_norm.bias" => (11, 0.0, 0.1),
        "mixer.out_proj.weight" => (12, 0.0, root(inner)),
        "norm2.weight" => (13, 1.0, 0.1),
        "norm2.bias" => (14, 0.0, 0.1),
        "mlp.fc1.weight" => (15, 0.0, root(width)),
        "mlp.fc1.bias" => (16, 0.0, 0.1),
        "mlp.fc2.weight" => (17, 0.0, root(hidden)),
        "mlp.fc2.bias" => (18, 0.0, 0.1),
        other => unreachable!("a block has no parameter {other}"),
    }
}

fn step() -> Running {
    let (batch, rows, columns, width, expand, states, layers, mlp) = (4, 44, 44, 64, 2, 64, 2, 4);
    let graph = Graph::new();
    let filled = Filled::new(&graph);
    let shape = [batch, rows * columns, width];
    let mut tokens = filled.input(1, shape, 0.0, 1.0);
    let target = filled.input(2, shape, 0.0, 1.0);
    let parameters = Parameters::new(&graph);
    let selection = Selection {
        states,
        expand,
        head_width: 32,
        groups: 4,
        convolution: 3,
        directions: 4,
        scan_heads: 0,
        discretisation: Discretisation::Euler,
    };
    for layer in 1..=layers {
        let scope = parameters.root().enter(&layer.to_string());
        let norm = LayerNorm::new(&scope.enter("norm1"), width);
        let mixer = Ss2d::new(&scope.enter("mixer"), 2, width, selection);
        tokens = tokens + mixer.forward(norm.forward(tokens), [1, rows, columns]);
        let norm = LayerNorm::new(&scope.enter("norm2"), width);
        tokens = tokens + Mlp::new(&scope.enter("mlp"), [width, mlp * width, width]).forward(norm.forward(tokens));
    }
    let loss = relative_l2_sum(tokens, target);
    graph.output("loss", loss);
    let adamw = AdamW::default();
    adamw.minimise(&graph, loss);
    let mut running = filled.compile(Check::First("loss"));
    for section in running.program.sections().to_vec() {
        let (layer, name) = section.name.split_once('.').expect("every parameter belongs to a layer");
        let layer: usize = layer.parse().expect("layers are numbered");
        let (position, offset, scale) = block_parameter(name, width, expand * width, mlp * width);
        let values = fill((100 * layer + position) as f64, section.shape.count(), offset, scale);
        running.program.write_parameter(&section.name, &values);
    }
    adamw.pace(&mut running.program, 0, Pace { rate: 5e-4, beta1: 0.95 }).expect("a CPU writes its inputs");
    running
}
