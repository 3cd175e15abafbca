//! Same inputs, same bits.

use crate::support::{random, values};
use lamo_tensor::{ConvolutionOptions, Graph, Program, ScanInput};

/// A program with every kind of kernel, large enough for many tasks.
fn program() -> Program {
    let graph = Graph::new();
    let (batch, rows, columns, width, states) = (2, 16, 20, 48, 16);
    let tokens = rows * columns;
    let x = graph.input("x", [batch, tokens, width]);
    let weight = graph.parameter("weight", [width, width]);
    let kernel = graph.parameter("kernel", [width, 1, 3, 3]);
    let dense = graph.parameter("dense", [width, width, 3, 3]);
    let scale = graph.parameter("scale", [width]);
    let shift = graph.parameter("shift", [width]);
    let project = graph.parameter("project", [width, 2 * states + 2]);
    let image = x.layer_norm(scale, shift, 1e-5).matmul(weight).reshape([batch, rows, columns, width]);
    let around = |groups| ConvolutionOptions { groups, padding: [[1, 1]; 2], ..ConvolutionOptions::default() };
    let mixed = image.convolve(kernel, around(width)).gelu().convolve(dense, around(1)) * 0.1;
    let signal = mixed.reshape([batch, tokens, 2, width / 2]);
    let [step, write, read] = mixed.reshape([batch, tokens, width]).matmul(project).split(2, [2, states, states]);
    let gain = step.softplus();
    let input = ScanInput {
        signal,
        log_decay: -gain,
        gain,
        write: write.reshape([batch, tokens, 1, states]),
        read: read.reshape([batch, tokens, 1, states]),
        initial: None,
    };
    let (y, _) = input.scan(&[(0..tokens as u32).rev().collect()]);
    let loss = (y.reshape([batch, tokens, width]).softmax() * x).sum_all();
    graph.output("loss", loss);
    let theta = graph.parameters();
    let gradient = graph.gradient(loss, &[theta])[0].unwrap();
    graph.output("gradient", gradient);
    graph.assign(theta, theta - gradient * 0.01);
    let mut program = Program::compile(&graph);
    let single = |values: Vec<f64>| values.iter().map(|&value| value as f32).collect::<Vec<_>>();
    let mut random = random(5);
    let parameters: usize = program.read("parameters").len();
    program.write("parameters", &single(values(parameters, -0.2, 0.2, &mut random)));
    program.write("x", &single(values(batch * tokens * width, -1.0, 1.0, &mut random)));
    program
}

fn bits(program: &Program) -> Vec<u32> {
    let names = ["loss", "gradient", "parameters"];
    names.iter().flat_map(|name| program.read(name).iter().map(|value| value.to_bits())).collect()
}

#[test]
fn results_have_the_same_bits_on_1_2_and_16_threads_and_from_run_to_run() {
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let mut program = program();
        pool.install(|| (0..3).for_each(|_| program.run()));
        bits(&program)
    };
    let one = run(1);
    assert!(one.iter().all(|&bits| f32::from_bits(bits).is_finite()));
    for threads in [1, 2, 3, 16] {
        assert!(run(threads) == one, "the bits of {threads} threads differ from those of one");
    }
}
