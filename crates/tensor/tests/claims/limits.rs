//! Limits: sizes that no machine has are refused before they wrap, and building and compiling can be stopped.

use crate::support::panics_with;
use lamo_tensor::{
    ConvolutionOptions, Device, DeviceError, DeviceErrorKind, Graph, Precision, Program, ScanInput, Shape, ShapeError,
    Span, Tensor, attempt,
};
use std::cell::Cell;

/// The operator is built for its refusal.
fn ignore(_: Tensor<'_>) {}

#[test]
fn a_shape_whose_count_would_wrap_to_4_is_refused() {
    const DIMS: [usize; 3] = [111_620, 429_509_837, 384_773];
    assert_eq!(DIMS.iter().fold(1, |count: usize, &extent| count.wrapping_mul(extent)), 4);
    panics_with("a tensor of shape [111620, 429509837, 384773] has more elements than any memory", || {
        let graph = Graph::new();
        graph.output("y", graph.input("x", DIMS).flip(2).square());
    });
    assert_eq!(Shape::try_new(DIMS), Err(ShapeError::TooLarge(DIMS.to_vec())));
    let error = attempt(|| false, || Graph::new().input("x", DIMS).shape()).unwrap_err();
    assert_eq!(error.kind(), DeviceErrorKind::TooLarge);
    assert!(error.to_string().contains("use smaller sizes"), "{error}");
}

#[test]
fn every_operator_whose_result_would_wrap_refuses_it() {
    const LONG: usize = 1 << 40;
    type Action = fn(&Graph);
    let actions: [(&str, Action); 11] = [
        ("broadcast", |g| ignore(g.input("a", [LONG, 1]) + g.input("b", [LONG]))),
        ("broadcast_to", |g| ignore(g.input("a", [1]).broadcast_to([LONG, LONG]))),
        ("fill", |g| ignore(g.fill(1.0, [LONG, LONG]))),
        ("select", |g| ignore(g.input("a", [LONG, 1]).select(g.input("b", [LONG]), g.input("c", [1])))),
        ("matmul", |g| ignore(g.input("a", [LONG, 1]).matmul(g.input("b", [1, LONG])))),
        ("pad", |g| ignore(g.input("a", [2]).pad(0, usize::MAX, usize::MAX))),
        ("embed", |g| ignore(g.input("a", [2]).embed(&[Span::all(2)], [usize::MAX]))),
        ("scatter_add", |g| ignore(g.input("a", [2, LONG]).scatter_add(0, g.index_table(&[0, 1]), LONG))),
        ("convolve", |g| {
            let options = ConvolutionOptions { padding: [[1 << 63; 2], [0; 2]], ..ConvolutionOptions::default() };
            g.input("a", [1, 3, 3, 1]).convolve(g.input("b", [1, 1, 3, 3]), options);
        }),
        ("concatenate", |g| {
            let half = g.input("a", [1 << 58]);
            Tensor::concatenate(&[half, half, half], 0);
        }),
        ("parameters", |g| {
            (0..3).for_each(|number| ignore(g.parameter(&format!("weight {number}"), [1 << 58])));
        }),
    ];
    for (name, action) in actions {
        let error = attempt(|| false, || action(&Graph::new())).expect_err(name);
        assert_eq!(error.kind(), DeviceErrorKind::TooLarge, "{name}: {error}");
    }
}

#[test]
fn a_kernel_whose_work_would_wrap_is_refused_when_it_is_compiled() {
    let graph = Graph::new();
    let [left, right] = [graph.input("a", [1]), graph.input("b", [1])];
    let product = left.broadcast_to([1 << 29, 1 << 29]).matmul(right.broadcast_to([1 << 29, 1 << 29]));
    graph.output("y", product.sum_all());
    let error = Program::compile_on(&graph, Device::Cpu, Precision::F32).err().unwrap();
    assert_eq!(error.kind(), DeviceErrorKind::TooLarge, "{error}");
    // Sixteen buffers of 2^58 elements are more than addresses can count.
    let graph = Graph::new();
    for number in 0..16 {
        graph.input(&number.to_string(), [1 << 58]);
    }
    let error = Program::compile_on(&graph, Device::Cpu, Precision::F32).err().unwrap();
    assert_eq!(error.kind(), DeviceErrorKind::OutOfMemory, "{error}");
    assert!(error.to_string().contains("more memory than can be addressed"), "{error}");
}

#[test]
fn a_loop_over_more_elements_than_it_can_be_divided_into_is_an_error() {
    // The sum of a constant needs no memory for its operand, but a list of the parts that threads take.
    let graph = Graph::new();
    graph.output("y", (graph.input("x", [1]).broadcast_to([1 << 55])).sin().sum_all());
    let error = Program::compile_on(&graph, Device::Cpu, Precision::F32).err().unwrap();
    assert_eq!(error.kind(), DeviceErrorKind::OutOfMemory, "{error}");
}

#[test]
fn operands_of_another_graph_are_refused() {
    fn on(action: for<'g> fn(&'g Graph, &'g Graph)) {
        panics_with("belong", move || action(&Graph::new(), &Graph::new()));
    }
    on(|g, h| ignore(Tensor::concatenate(&[g.input("a", [2]), h.input("b", [2])], 0)));
    on(|g, h| ignore(g.input("a", [2]).gather(0, h.index_table(&[0]))));
    on(|g, h| ignore(g.input("a", [2]).select(g.fill(1.0, []), h.fill(1.0, []))));
    on(|g, h| {
        g.gradient(g.input("a", []), &[h.input("b", [])]);
    });
    on(|g, h| {
        let (gain, group) = (h.input("gain", [1, 2, 1]), g.input("group", [1, 2, 1, 1]));
        let signal = g.input("signal", [1, 2, 1, 1]);
        ScanInput { signal, log_decay: gain, gain, write: group, read: group, initial: None }.scan(&[vec![0, 1]]);
    });
}

/// A step with products, norms, a gradient and a state.
fn step(depth: usize) -> Result<Program, DeviceError> {
    let graph = Graph::new();
    let mut x = graph.input("x", [4, 8]);
    for layer in 0..depth {
        let weight = graph.parameter(&format!("weight {layer}"), [8, 8]);
        x = x + x.matmul(weight).gelu().softmax();
    }
    let theta = graph.parameters();
    let gradient = graph.gradient(x.square().sum_all(), &[theta])[0].unwrap();
    graph.assign(theta, theta - gradient * 0.1);
    graph.output("y", Tensor::concatenate(&[x, x.sin()], 0));
    Program::compile_on(&graph, Device::Cpu, Precision::F32)
}

#[test]
fn building_and_compiling_can_be_stopped_whenever_they_ask() {
    let questions = Cell::new(0);
    let stop_after = |most: usize| {
        questions.set(0);
        let asked = || questions.replace(questions.get() + 1) >= most;
        attempt(asked, || step(8)).and_then(|program| program)
    };
    assert!(stop_after(usize::MAX).is_ok());
    let all = questions.get();
    assert!(all > 50, "building and compiling asked {all} times");
    for most in 0..all {
        let error = stop_after(most).err().expect("it was stopped");
        assert_eq!(error.kind(), DeviceErrorKind::Interrupted);
        assert_eq!(questions.get(), most + 1, "it went on after it was stopped");
    }
    assert!(stop_after(all).is_ok());
}

#[test]
fn a_long_chain_of_operators_does_not_exhaust_the_stack() {
    let chain = if cfg!(miri) { 600 } else { 20_000 };
    let graph = Graph::new();
    let x = graph.input("x", [2, 3]);
    let mut maps = x;
    let mut views = x;
    let mut negated = x;
    for _ in 0..chain {
        maps = (maps + 1.0) * 0.5;
        views = views.flip(0).swap(0, 1).flip(1).swap(0, 1);
        negated = -negated;
    }
    graph.output("maps", maps.swap(0, 1));
    graph.output("views", Tensor::concatenate(&[views, views.sin()], 0));
    graph.output("sum", negated.sum(&[0, 1]));
    let mut program = Program::compile(&graph);
    program.write("x", &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    program.run();
    assert_eq!(program.read("sum"), [21.0]);
    assert_eq!(program.read("views")[..6], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert!(program.read("maps").iter().all(|value| (value - 1.0).abs() < 1e-6));
}

#[test]
fn a_graph_that_grows_without_end_is_refused() {
    let error = attempt(|| false, || step(usize::MAX)).err().expect("it is too large");
    assert_eq!(error.kind(), DeviceErrorKind::TooLarge);
    assert!(error.to_string().ends_with("operators; use fewer layers or steps"), "{error}");
}
