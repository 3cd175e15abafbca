//! A whole training step is one program, and it learns.

use lamo::network::Parameters;
use lamo::network::layers::{Discretisation, LayerNorm, Linear, Mlp, Selection, Ss2d};
use lamo::training::loss::relative_l2_sum;
use lamo::training::optimiser::AdamW;
use lamo::training::schedule::Schedule;
use lamo_tensor::{Graph, Program};

/// A grid block between two linear maps, trained to turn one field into another.
fn training_program(graph: &Graph, seed: u64) -> (Program, AdamW) {
    let (batch, rows, columns, width) = (2, 6, 5, 32);
    let parameters = Parameters::new(graph);
    let scope = parameters.root();
    let field = graph.input("field", [batch, rows * columns, 1]);
    let target = graph.input("target", [batch, rows * columns, 1]);
    let mut tokens = Linear::new(&scope.enter("lift"), 1, width).forward(field);
    let selection = Selection {
        states: 16,
        expand: 2,
        head_width: 32,
        groups: 1,
        convolution: 3,
        directions: 4,
        scan_heads: 0,
        discretisation: Discretisation::Euler,
    };
    let mixer = Ss2d::new(&scope.enter("mixer"), 2, width, selection);
    tokens = tokens + mixer.forward(LayerNorm::new(&scope.enter("norm1"), width).forward(tokens), [1, rows, columns]);
    let mlp = Mlp::new(&scope.enter("mlp"), [width, 2 * width, width]);
    tokens = tokens + mlp.forward(LayerNorm::new(&scope.enter("norm2"), width).forward(tokens));
    let prediction = Linear::new(&scope.enter("project"), width, 1).forward(tokens);
    let loss = relative_l2_sum(prediction, target);
    graph.output("loss", loss);
    let adamw = AdamW::default();
    adamw.minimise(graph, loss);
    let mut program = Program::compile(graph);
    parameters.initialise(&mut program, seed);
    let field: Vec<f32> = (0..batch * rows * columns).map(|i| (0.9 * i as f32).sin()).collect();
    let target: Vec<f32> = (0..batch * rows * columns).map(|i| 1.0 + (0.31 * i as f32).cos()).collect();
    program.write("field", &field);
    program.write("target", &target);
    (program, adamw)
}

#[test]
fn a_grid_block_overfits_one_batch_in_one_program_per_step() {
    let graph = Graph::new();
    let (mut program, adamw) = training_program(&graph, 7);
    let schedule = Schedule::OneCycle { peak: 3e-3, steps: 200 };
    let mut losses = Vec::new();
    for step in 0..200 {
        adamw.pace(&mut program, step, schedule.at(step)).unwrap();
        program.run();
        losses.push(program.read("loss")[0]);
    }
    assert!(losses[0] > 0.5, "the loss starts at {}", losses[0]);
    assert!(losses[199] < 0.05, "the loss stops at {}", losses[199]);
}

#[test]
fn the_same_seed_gives_the_same_bits_and_another_seed_others() {
    let run = |seed: u64| {
        let graph = Graph::new();
        let (mut program, adamw) = training_program(&graph, seed);
        for step in 0..3 {
            adamw.pace(&mut program, step, Schedule::Constant { rate: 1e-3 }.at(step)).unwrap();
            program.run();
        }
        program.read("loss")[0].to_bits()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}
