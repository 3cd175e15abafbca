//! Kernels that treat points one by one run block by block: same numbers, less memory, the same bits on any number of threads.

use crate::support::{bind, compare, random, values};
use lamo_tensor::reference::Bindings;
use lamo_tensor::{Graph, Options, Program, Tensor};

/// A block of a transformer with linear attention: norms, heads, products by points, sums over the points of each sample and over all,
/// and the step of a training.
fn transformer<'g>(graph: &'g Graph, [batch, points, width, heads]: [usize; 4]) -> Bindings<'static> {
    let channels = width / heads;
    let x = graph.input("x", [batch, points, width]);
    let weight = |name: &str, rows: usize, columns: usize| graph.parameter(name, [rows, columns]);
    let split = |x: Tensor<'g>| x.reshape([batch, points, heads, channels]).permute(&[0, 2, 1, 3]);
    let scale = graph.parameter("scale", [width]);
    let shift = graph.parameter("shift", [width]);
    let layer = |x: Tensor<'g>, name: &str| {
        let normal = x.layer_norm(scale, shift, 1e-5);
        let [query, key, value] = ["query", "key", "value"]
            .map(|part| split(normal.matmul(weight(&format!("{name} {part}"), width, width).transpose())));
        let (query, key) = (query.softmax(), key.softmax());
        let mixed =
            query.matmul(key.transpose().matmul(value)) * (1.0 / points as f64) / (query * key.sum(&[2])).sum(&[3]);
        let joined = (mixed + query).permute(&[0, 2, 1, 3]).reshape([batch, points, width]);
        let x = x + joined.matmul(weight(&format!("{name} join"), width, width));
        let hidden = (x.matmul(weight(&format!("{name} up"), 2 * width, width).transpose()) + 0.1).gelu();
        x + hidden.matmul(weight(&format!("{name} down"), width, 2 * width).transpose()) - x.max(&[1]).detach() * 0.01
    };
    let y = layer(layer(x, "first"), "second");
    graph.output("y", y);
    let loss = (y * y).sum(&[1, 2]).sqrt().sum_all();
    graph.output("loss", loss);
    let theta = graph.parameters();
    let gradient = graph.gradient(loss, &[theta])[0].unwrap();
    graph.output("gradient", gradient);
    graph.output("input gradient", graph.gradient(loss, &[x])[0].unwrap());
    graph.assign(theta, theta - gradient * 0.01);
    let mut random = random(3);
    let parameters = 2 * (4 * width * width + 4 * width * width) + 2 * width;
    Bindings::from([
        ("x", values(batch * points * width, -1.0, 1.0, &mut random)),
        ("parameters", values(parameters, -0.4, 0.4, &mut random)),
    ])
}

fn program(sizes: [usize; 4], block: usize) -> Program {
    let graph = Graph::new();
    let bindings = transformer(&graph, sizes);
    let mut program = Program::compile_with(&graph, Options { block, ..Options::default() });
    bind(&mut program, &bindings);
    program
}

/// Samples, points, width, heads; the elements of a block.
const CASES: [([usize; 4], usize); 6] = [
    ([1, 64, 8, 2], 32),
    ([3, 45, 8, 2], 64),  // the last block of each sample has fewer points
    ([2, 67, 32, 2], 16), // one point
    ([6, 67, 32, 2], 900),
    ([4, 33, 16, 1], 128),
    ([5, 17, 64, 4], 512),
];

#[test]
fn a_transformer_in_blocks_equals_the_reference_in_values_and_gradients() {
    for (sizes, block) in CASES {
        let graph = Graph::new();
        let bindings = transformer(&graph, sizes);
        compare(&format!("{sizes:?}"), &graph, &bindings, 20_000);
        let mut found = program(sizes, block);
        let mut plain = program(sizes, 0);
        let text = found.explain();
        assert!(text.contains("kernels by blocks of"), "{sizes:?} with {block}: no blocks in\n{text}");
        assert!(!plain.explain().contains("kernels by blocks of"));
        for step in 0..3 {
            found.run();
            plain.run();
            for name in ["y", "loss", "gradient", "input gradient", "parameters"] {
                let expected = plain.read(name);
                let largest = expected.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
                for (found, expected) in found.read(name).iter().zip(expected) {
                    let error = (found - expected).abs() / largest;
                    assert!(error < 2e-4, "{sizes:?} with {block}, step {step}: {name} is off by {error:.1e}");
                }
            }
        }
    }
}

#[test]
fn a_forward_pass_of_a_transformer_is_a_group_for_each_sum_over_points() {
    let graph = Graph::new();
    transformer(&graph, [2, 64, 16, 2]);
    let forward = Graph::new();
    let x = forward.input("x", [2, 64, 16]);
    let weight = forward.parameter("weight", [16, 16]);
    let y = (x.matmul(weight).gelu() + x).softmax().matmul(weight);
    forward.output("y", y);
    let program = Program::compile_with(&forward, Options { block: 64, ..Options::default() });
    assert_eq!(program.kernels(), 1, "{}", program.explain());
}

#[test]
fn what_lives_inside_a_block_takes_no_memory() {
    let wide = |block: usize| {
        let graph = Graph::new();
        let x = graph.input("x", [4096, 32]);
        let up = graph.parameter("up", [32, 256]);
        let down = graph.parameter("down", [256, 32]);
        let mut y = x;
        for _ in 0..4 {
            y = y + y.matmul(up).gelu().matmul(down);
        }
        graph.output("y", y);
        Program::compile_with(&graph, Options { block, ..Options::default() }).bytes()
    };
    let hidden = 4096 * 256 * 4;
    let (blocks, plain) = (wide(4096), wide(0));
    assert!(blocks + hidden < plain, "{blocks} bytes with blocks, {plain} without; one hidden layer has {hidden}");
}

#[test]
fn blocks_have_the_same_bits_on_any_number_of_threads() {
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        let mut program = program([3, 201, 16, 2], 256);
        pool.install(|| (0..3).for_each(|_| program.run()));
        ["y", "gradient", "parameters"].map(|name| program.read(name).iter().map(|v| v.to_bits()).collect::<Vec<_>>())
    };
    let one = run(1);
    for threads in [1, 2, 3, 16] {
        assert!(run(threads) == one, "the bits of {threads} threads differ from those of one");
    }
}

#[test]
fn the_kernel_that_breaks_inside_a_block_is_named() {
    let graph = Graph::new();
    let x = graph.input("x", [512, 8]);
    let weight = graph.parameter("weight", [8, 8]);
    let y = x.matmul(weight);
    graph.output("y", y);
    graph.output("logarithm", y.log());
    graph.output("z", y.sin().matmul(weight));
    let mut program = Program::compile_with(&graph, Options { block: 64, ..Options::default() });
    assert!(program.explain().contains("kernels by blocks of"), "{}", program.explain());
    program.write("x", &[-1.0; 512 * 8]);
    program.write("parameters", &[0.5; 64]);
    let culprit = program.run_checked().unwrap().expect("the logarithm of a negative number is no number");
    assert!(culprit.arithmetic.contains("Log"), "{culprit}");
}
