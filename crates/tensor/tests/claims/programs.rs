//! Programs as users see them: states, assignments, in-place updates, snapshots, errors.

use crate::support::panics_with;
use lamo_tensor::{Device, DeviceErrorKind, Graph, Options, PARAMETERS, Precision, Program, Snapshot, Tensor};

#[test]
fn a_wrong_shape_is_refused_with_a_sentence_that_names_the_shapes_and_the_operation() {
    let on = |expected: &'static str, action: fn(&Graph)| panics_with(expected, move || action(&Graph::new()));
    on("Add: shapes [2, 3] and [4] do not broadcast", |g| {
        let _ = g.input("a", [2, 3]) + g.input("b", [4]);
    });
    on("matmul: inner extents of [2, 3] and [4, 5] differ", |g| {
        g.input("a", [2, 3]).matmul(g.input("b", [4, 5]));
    });
    on("matmul: batches of [2, 3, 4] and [3, 4, 5] differ", |g| {
        g.input("a", [2, 3, 4]).matmul(g.input("b", [3, 4, 5]));
    });
    on("reshape: [2, 3] has 6 elements, [4] 4", |g| {
        g.input("a", [2, 3]).reshape([4]);
    });
    on("slice: 1..5 of axis 1 does not fit shape [2, 3]", |g| {
        g.input("a", [2, 3]).slice(1, 1, 5);
    });
    on("permute: [0, 0] is no permutation of the 2 axes of [2, 3]", |g| {
        g.input("a", [2, 3]).permute(&[0, 0]);
    });
    on("concatenate along axis 0: shapes [2, 3] and [2, 4] differ elsewhere", |g| {
        Tensor::concatenate(&[g.input("a", [2, 3]), g.input("b", [2, 4])], 0);
    });
    on("convolve: 1 groups do not match input [1, 4, 4, 3] and weight [2, 5, 3, 3]", |g| {
        g.input("a", [1, 4, 4, 3]).convolve(g.input("b", [2, 5, 3, 3]), Default::default());
    });
    on("gradient: a loss has one element, found shape [2]", |g| {
        let a = g.input("a", [2]);
        g.gradient(a, &[a]);
    });
    on("a: an input or state of this name exists already", |g| {
        g.input("a", [2]);
        g.state("a", [2]);
    });
    on("extents of at least 1, got [2, 0]", |g| {
        g.input("a", [2, 0]);
    });
    on("expected 2 axes, found shape [2, 3, 4]", |g| {
        let [_, _] = g.input("a", [2, 3, 4]).dims();
    });
}

#[test]
fn values_of_the_wrong_length_and_unknown_names_are_refused() {
    let make = || {
        let graph = Graph::new();
        graph.output("y", graph.input("x", [3]) * 2.0);
        Program::compile(&graph)
    };
    panics_with("x holds 3 values, got 2", move || make().write("x", &[1.0, 2.0]));
    panics_with("no input, state or output \"z\"; it has [\"x\", \"y\"]", move || make().write("z", &[1.0]));
    panics_with("y is written by the program alone", move || make().write("y", &[1.0; 3]));
}

#[test]
fn an_index_beyond_the_axis_is_refused_when_the_program_runs() {
    panics_with("index 1 names row 7 of an axis with 4 rows", || {
        let graph = Graph::new();
        graph.output("y", graph.input("x", [4, 2]).gather(0, graph.index_input("rows", 2)));
        let mut program = Program::compile(&graph);
        program.write_index("rows", &[3, 7]);
        program.run();
    });
}

#[test]
fn reads_see_the_state_before_the_run_and_the_next_run_sees_it_after() {
    for fuse in [true, false] {
        let graph = Graph::new();
        let count = graph.state("count", [3]);
        let x = graph.input("x", [3]);
        graph.output("before", count * 1.0);
        graph.output("flipped", count.flip(0));
        graph.assign(count, count + x);
        let mut program = Program::compile_with(&graph, Options { fuse, ..Options::default() });
        program.write("x", &[1.0, 2.0, 3.0]);
        program.run();
        assert_eq!(program.read("before"), [0.0, 0.0, 0.0]);
        program.run();
        assert_eq!(program.read("before"), [1.0, 2.0, 3.0]);
        assert_eq!(program.read("flipped"), [3.0, 2.0, 1.0]);
        assert_eq!(program.read("count"), [2.0, 4.0, 6.0]);
    }
}

#[test]
fn a_state_that_is_updated_from_a_flipped_view_of_itself_is_not_overwritten_too_early() {
    for fuse in [true, false] {
        let graph = Graph::new();
        let state = graph.state("state", [5000]);
        graph.assign(state, state.flip(0) + 1.0);
        let mut program = Program::compile_with(&graph, Options { fuse, ..Options::default() });
        let start: Vec<f32> = (0..5000).map(|i| i as f32).collect();
        program.write("state", &start);
        program.run();
        let expected: Vec<f32> = (0..5000).rev().map(|i| i as f32 + 1.0).collect();
        assert_eq!(program.read("state"), expected);
    }
}

#[test]
fn two_states_can_swap_their_values() {
    for fuse in [true, false] {
        let graph = Graph::new();
        let (first, second) = (graph.state("first", [4]), graph.state("second", [4]));
        graph.assign(first, second);
        graph.assign(second, first);
        let mut program = Program::compile_with(&graph, Options { fuse, ..Options::default() });
        program.write("first", &[1.0; 4]);
        program.write("second", &[2.0; 4]);
        program.run();
        assert_eq!((program.read("first"), program.read("second")), (&[2.0; 4][..], &[1.0; 4][..]));
    }
}

#[test]
fn a_part_of_a_state_can_be_assigned() {
    let graph = Graph::new();
    let state = graph.state("state", [6]);
    let middle = state.slice(0, 2, 4);
    graph.assign(middle, middle * 10.0);
    let mut program = Program::compile(&graph);
    program.write("state", &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    program.run();
    assert_eq!(program.read("state"), [1.0, 2.0, 30.0, 40.0, 5.0, 6.0]);
}

#[test]
fn one_value_can_be_an_output_twice_and_an_input_can_be_an_output() {
    let graph = Graph::new();
    let x = graph.input("x", [2]);
    graph.output("same", x);
    graph.output("first", x.exp());
    graph.output("second", x.exp());
    graph.output("constant", graph.fill(3.0, [2, 2]));
    let mut program = Program::compile(&graph);
    program.write("x", &[0.0, 0.0]);
    program.run();
    assert_eq!(program.read("same"), [0.0, 0.0]);
    assert_eq!(program.read("first"), program.read("second"));
    assert_eq!(program.read("constant"), [3.0; 4]);
}

#[test]
fn the_gradient_of_an_unused_parameter_is_zero_and_that_of_a_shared_one_adds_up() {
    let graph = Graph::new();
    let shared = graph.parameter("shared", [2]);
    graph.parameter("unused", [3]);
    let last = graph.parameter("last", [1]);
    let loss = (shared * shared + shared * last).sum_all();
    let gradient = graph.gradient(loss, &[graph.parameters()])[0].unwrap();
    graph.output("gradient", gradient);
    let mut program = Program::compile(&graph);
    program.write("parameters", &[1.0, 2.0, 9.0, 9.0, 9.0, 5.0]);
    program.run();
    assert_eq!(program.read("gradient"), [7.0, 9.0, 0.0, 0.0, 0.0, 3.0]);
    assert_eq!(program.read_parameter("last"), [5.0]);
}

#[test]
fn a_kernel_that_makes_a_number_that_is_not_finite_is_named() {
    let graph = Graph::new();
    let x = graph.input("x", [2]);
    graph.output("y", x.log() * 2.0);
    let mut program = Program::compile(&graph);
    program.write("x", &[1.0, -1.0]);
    let culprit = program.run_checked().unwrap().unwrap();
    assert!(culprit.value.is_nan() && culprit.arithmetic.contains("Log"), "{culprit}");
    assert_eq!((culprit.kernel, &culprit.parameters, culprit.description.as_str()), (0, &None, "loop [2]"));
    let (sentence, summary) = (culprit.to_string(), culprit.summary());
    assert_eq!(summary, "kernel 0 made NaN: loop [2]");
    assert_eq!(sentence, format!("{summary}:{}", culprit.arithmetic));
}

#[test]
fn the_parameters_next_to_a_number_that_is_not_finite_are_named() {
    let graph = Graph::new();
    let (x, scale) = (graph.input("x", [2]), graph.parameter("block.scale", [2]));
    graph.output("y", (x * scale).log());
    graph.output("z", (x.sum_all() - 2.0).sqrt());
    let mut program = Program::compile(&graph);
    program.write("x", &[1.0, 2.0]);
    program.write_parameter("block.scale", &[1.0, -1.0]);
    let culprit = program.run_checked().unwrap().unwrap();
    assert_eq!(culprit.parameters.as_deref(), Some("with block.scale"), "{culprit}");
    assert!(culprit.to_string().contains("with block.scale made NaN"), "{culprit}");
    program.write_parameter("block.scale", &[1.0, 1.0]);
    assert_eq!(program.run_checked(), Ok(None));
}

#[test]
fn a_norm_with_its_gate_and_residual_is_one_kernel_and_so_is_its_gradient_with_the_sums_over_rows() {
    let graph = Graph::new();
    let x = graph.input("x", [4, 10, 32]);
    let weight = graph.parameter("weight", [32]);
    let bias = graph.parameter("bias", [32]);
    let y = x + x.layer_norm(weight, bias, 1e-5) * x.silu();
    graph.output("y", y);
    assert_eq!(Program::compile(&graph).kernels(), 1, "{}", Program::compile(&graph).explain());
    let gradients = graph.pullback(&[(y, graph.input("dy", [4, 10, 32]))], &[x, graph.parameters()]);
    graph.output("dx", gradients[0].unwrap());
    graph.output("dp", gradients[1].unwrap());
    let program = Program::compile(&graph);
    assert!(program.kernels() <= 3, "{}", program.explain());
}

#[test]
fn two_reshapes_of_a_turned_value_share_one_copy_of_it() {
    let graph = Graph::new();
    let turned = graph.input("x", [2, 3, 4]).permute(&[1, 0, 2]);
    graph.output("heads", turned.reshape([3, 8]).matmul(graph.parameter("one", [8, 5])));
    graph.output("all", turned.reshape([1, 24]).matmul(graph.parameter("other", [24, 2])));
    let program = Program::compile(&graph);
    assert_eq!(program.kernels(), 3, "{}", program.explain());
    assert_eq!(program.explain().matches("=r0").count(), 1, "{}", program.explain());
}

/// Written at once, they would take their memory from the beginning on: on a GPU a step of LaMO took 14 % longer.
#[test]
fn the_zeros_before_shifted_rows_are_written_one_by_one() {
    let graph = Graph::new();
    let mut rows = graph.input("x", [6, 32]);
    let weight = graph.parameter("weight", [32, 32]);
    for _ in 0..3 {
        rows = Tensor::concatenate(&[graph.fill(0.0, [1, 32]), rows.slice(0, 0, 5)], 0).matmul(weight);
    }
    graph.output("y", rows);
    let program = Program::compile(&graph);
    let text = program.explain();
    let zeros = |line: &&str| line.matches("=0").count() > 0;
    assert_eq!(text.lines().filter(zeros).count(), 3, "{text}");
}

fn test_device() -> Device {
    std::env::var("LAMO_TEST_DEVICE").map_or(Device::Cpu, |device| device.parse().unwrap())
}

#[test]
fn a_snapshot_survives_the_runs_that_follow_and_restores_the_states_that_a_program_has() {
    let program = |factor: f64, names: &[&str]| {
        let graph = Graph::new();
        for &name in names {
            let count = graph.state(name, [3]);
            graph.assign(count, count * factor + 1.0);
        }
        Program::compile_on(&graph, test_device(), Precision::F32).unwrap()
    };
    let (mut first, mut second) = (program(1.0, &["count", "other"]), program(2.0, &["count"]));
    let mut snapshot = Snapshot::new(&first, &["count", "other"]).unwrap();
    assert_eq!(snapshot.read("count"), Ok(vec![0.0; 3]));
    first.write("count", &[1.0, 2.0, 3.0]);
    first.run();
    snapshot.capture(&first).unwrap();
    first.run();
    assert_eq!(snapshot.read("count"), Ok(vec![2.0, 3.0, 4.0]));
    assert_eq!(snapshot.read("other"), Ok(vec![1.0; 3]));
    assert_eq!((first.read("count"), first.read("other")), (&[3.0, 4.0, 5.0][..], &[2.0; 3][..]));
    assert_eq!(second.read("count"), [0.0; 3]);
    snapshot.restore(&mut second).unwrap();
    assert_eq!(second.read("count"), [2.0, 3.0, 4.0]);
    second.run();
    assert_eq!(second.read("count"), [5.0, 7.0, 9.0]);
    snapshot.restore(&mut first).unwrap();
    assert_eq!((first.read("count"), first.read("other")), (&[2.0, 3.0, 4.0][..], &[1.0; 3][..]));
}

#[test]
fn a_snapshot_of_something_that_is_no_state_is_refused() {
    panics_with("the program has no state \"x\"; it has [\"count\"]", || {
        let graph = Graph::new();
        let count = graph.state("count", [3]);
        graph.assign(count, count + graph.input("x", [3]));
        let _ = Snapshot::new(&Program::compile(&graph), &["x"]);
    });
}

#[test]
fn the_states_of_a_program_are_listed_by_name_and_the_parameters_are_among_them() {
    let graph = Graph::new();
    let (weight, x) = (graph.parameter("weight", [2]), graph.input("x", [2]));
    for name in ["second", "average"] {
        let state = graph.state(name, [2]);
        graph.assign(state, state + weight * x);
    }
    graph.output("y", weight * 2.0);
    assert_eq!(Program::compile(&graph).states(), ["average", PARAMETERS, "second"]);
}

#[test]
fn the_methods_that_return_errors_do_the_same_as_those_that_panic() {
    let graph = Graph::new();
    graph.output("y", graph.input("x", [4, 2]).gather(0, graph.index_input("rows", 1)));
    let mut program = Program::compile_on(&graph, test_device(), Precision::F32).unwrap();
    program.try_write("x", &[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]).unwrap();
    program.try_write_index("rows", &[2]).unwrap();
    program.try_run().unwrap();
    program.try_synchronise().unwrap();
    assert_eq!(program.try_read("y"), Ok(&[4.0, 5.0][..]));
    assert_eq!(program.try_read("y").unwrap(), program.read("y"));
}

#[test]
fn parameters_and_profiles_have_methods_that_return_errors_too() {
    let graph = Graph::new();
    graph.output("y", graph.parameter("weight", [2]) + graph.parameter("bias", [2]));
    let mut program = Program::compile_on(&graph, test_device(), Precision::F32).unwrap();
    program.try_write_parameter("weight", &[1.0, 2.0]).unwrap();
    program.write_parameter("bias", &[10.0, 20.0]);
    assert_eq!(program.try_read_parameter("bias"), Ok(&[10.0, 20.0][..]));
    assert_eq!(program.read_parameter("weight"), [1.0, 2.0]);
    assert_eq!(program.try_profile().unwrap().len(), program.profile().len());
    assert_eq!(program.read("y"), [11.0, 22.0]);
}

#[test]
fn sums_that_their_tasks_own_stay_inside_their_memory() {
    // One task per row; no task needs scratch memory, and none may point beyond it. Miri sees a pointer that does.
    let graph = Graph::new();
    graph.output("y", graph.input("x", [40, 2, 4]).sum(&[1]));
    let mut program = Program::compile(&graph);
    program.write("x", &(0..320).map(|i| i as f32).collect::<Vec<_>>());
    program.run();
    let expected: Vec<f32> = (0..160).map(|i| (2 * (i / 4 * 8 + i % 4) + 4) as f32).collect();
    assert_eq!(program.read("y"), expected);
}

#[test]
fn a_program_that_is_larger_than_memory_is_out_of_memory() {
    let graph = Graph::new();
    graph.output("y", graph.input("x", [1 << 30, 1 << 20]) * 2.0);
    let error = Program::compile_on(&graph, Device::Cpu, Precision::F32).err().unwrap();
    assert_eq!(error.kind(), DeviceErrorKind::OutOfMemory);
    // The sentence says what the program needs and, where the system tells, what there is.
    let sentence = error.to_string();
    assert!(sentence.starts_with("the program needs 8388608.00 GiB of memory, "), "{sentence}");
    assert!(sentence.ends_with("; use a smaller batch or model"), "{sentence}");
    if cfg!(all(target_os = "linux", not(miri))) {
        assert!(sentence.contains(" GiB free;") || sentence.contains("(ulimit -v) leaves"), "{sentence}");
    }
}

#[test]
fn a_gpu_that_does_not_exist_is_unavailable() {
    let graph = Graph::new();
    graph.output("y", graph.input("x", [2]) * 2.0);
    let error = Program::compile_on(&graph, Device::Cuda(99), Precision::F32).err().unwrap();
    assert_eq!(error.kind(), DeviceErrorKind::Unavailable, "{error}");
    assert_eq!(Device::Cuda(99).gpu_name(), None);
}

/// max(0, x) and a softmax whose results are kept for a product do not keep their operands for the gradient as well.
#[test]
fn a_result_that_is_kept_serves_the_gradient_in_place_of_its_operand() {
    let bytes = |map: for<'g> fn(Tensor<'g>) -> Tensor<'g>| {
        let graph = Graph::new();
        let weights: Vec<_> = (0..6).map(|layer| graph.parameter(&format!("weight {layer}"), [64, 64])).collect();
        let mut features = graph.input("x", [1000, 64]);
        for weight in weights {
            features = map(features.matmul(weight) * 0.5);
        }
        let theta = graph.parameters();
        graph.output("gradient", graph.gradient(features.sum_all(), &[theta])[0].unwrap());
        Program::compile(&graph).bytes()
    };
    fn lean(x: Tensor<'_>) -> Tensor<'_> {
        x.lean_softmax()
    }
    fn plain(x: Tensor<'_>) -> Tensor<'_> {
        x.softmax()
    }
    let layer = 4 * 1000 * 64;
    let kept = |map| (bytes(map) as f64 / f64::from(layer)).round();
    let (greater, lean, plain) = (kept(|x| x.graph().fill(0.0, [1]).maximum(x)), kept(lean), kept(plain));
    assert!(greater <= 10.0 && lean <= 10.0 && plain >= 13.0, "{greater}, {lean} and {plain} layers are kept");
}
