//! Assignments: every read of a run sees the states as they were before it, and no element is assigned twice. Values that a
//! gradient compares are computed once.

use crate::support::{bind, compare, panics_with};
use lamo_tensor::reference::{self, Bindings};
use lamo_tensor::{Device, Graph, Options, Precision, Program, ScanInput};

/// Values that are not powers of two, so that wrong ones show.
fn values(count: usize, pace: f64) -> Vec<f64> {
    (0..count).map(|i| f64::from((pace * i as f64 + 0.3).sin() as f32)).collect()
}

/// Runs a graph twice, fused and unfused and on `LAMO_TEST_DEVICE`, and compares its states with the reference.
fn states_follow_the_reference(name: &str, build: impl Fn(&Graph), bindings: &Bindings<'_>) {
    let graph = Graph::new();
    build(&graph);
    let once = reference::run(&graph, bindings).1;
    let expected = reference::run(&graph, &once).1;
    let compiled =
        |fuse| (format!("fuse {fuse}"), Program::compile_with(&graph, Options { fuse, ..Options::default() }));
    let mut programs = Vec::from([true, false].map(compiled));
    if let Ok(device) = std::env::var("LAMO_TEST_DEVICE") {
        let device: Device = device.parse().unwrap();
        programs.push((device.to_string(), Program::compile_on(&graph, device, Precision::F32).unwrap()));
    }
    for (how, mut program) in programs {
        bind(&mut program, bindings);
        program.run();
        program.run();
        for state in program.states() {
            let found = program.read(&state).iter().map(|&value| f64::from(value));
            let worst =
                found.zip(&expected[state.as_str()]).map(|(one, other)| (one - other).abs()).fold(0.0, f64::max);
            assert!(worst < 1e-5, "{name} ({how}): {state} is off by {worst}\n{}", program.explain());
        }
    }
}

#[test]
fn states_that_take_each_others_values_see_them_as_they_were_before_the_run() {
    let halves = |graph: &Graph| {
        let state = graph.state("s", [80]);
        let (first, second) = (state.slice(0, 0, 40), state.slice(0, 40, 80));
        graph.assign(first, second);
        graph.assign(second, first);
    };
    states_follow_the_reference("halves", halves, &Bindings::from([("s", values(80, 0.7))]));
    let leapfrog = |graph: &Graph| {
        let (now, before) = (graph.state("now", [50]), graph.state("before", [50]));
        graph.assign(before, now);
        graph.assign(now, now * 2.0 - before);
    };
    let start = Bindings::from([("now", values(50, 0.7)), ("before", values(50, 1.9))]);
    states_follow_the_reference("leapfrog", leapfrog, &start);
    let exchange = |graph: &Graph| {
        let (one, other) = (graph.state("one", [50]), graph.state("other", [50]));
        graph.output("difference", one - other);
        graph.assign(one, other);
        graph.assign(other, one);
    };
    states_follow_the_reference(
        "exchange",
        exchange,
        &Bindings::from([("one", values(50, 0.7)), ("other", values(50, 1.9))]),
    );
    let used_after = |graph: &Graph| {
        let (x, state) = (graph.input("x", [50]), graph.state("s", [50]));
        graph.assign(state, x * 2.0);
        graph.assign(graph.state("sum", [50]), x + state);
    };
    let start = Bindings::from([("x", values(50, 0.7)), ("s", values(50, 1.9)), ("sum", vec![0.0; 50])]);
    states_follow_the_reference("used after", used_after, &start);
}

#[test]
fn the_gradient_of_a_largest_value_finds_it_however_the_loops_round() {
    for seed in 0..4 {
        let graph = Graph::new();
        let x = graph.input("x", [64, 40]);
        let square = x * x;
        let loss = (square + x).max(&[0]).sum_all() + square.exp().sum_all();
        graph.output("loss", loss);
        graph.output("gradient", graph.gradient(loss, &[x])[0].unwrap());
        compare("max", &graph, &Bindings::from([("x", values(64 * 40, 0.7 + f64::from(seed)))]), 1 << 14);
    }
}

#[test]
fn what_cannot_be_assigned_or_derived_is_refused() {
    let on = |expected: &'static str, action: fn(&Graph)| panics_with(expected, move || action(&Graph::new()));
    on("assign: a part of a state must be a range of its only axis", |graph| {
        graph.assign(graph.state("s", [4, 4]).slice(0, 1, 3), graph.input("x", [2, 4]));
    });
    on("assign: a part of a state must be a range of its only axis", |graph| {
        graph.assign(graph.state("s", [4]).flip(0), graph.input("x", [4]));
    });
    on("assign: a part of a state is assigned twice", |graph| {
        let (state, x) = (graph.state("s", [4]), graph.input("x", [3]));
        graph.assign(state.slice(0, 0, 3), x);
        graph.assign(state.slice(0, 1, 4), x);
    });
    on("output s: an input or state has this name", |graph| graph.output("s", graph.state("s", [1]) * 2.0));
    on("s: an output of this name exists already", |graph| {
        graph.output("s", graph.input("x", [1]) * 2.0);
        graph.state("s", [1]);
    });
    on("gradient: a scan or a membership has no second derivatives", |graph| {
        let signal = graph.input("x", [1, 4, 1, 2]);
        let (per_head, per_group) = (graph.fill(-0.5, [1, 4, 1]), graph.fill(0.5, [1, 4, 1, 3]));
        let (log_decay, gain) = (per_head, per_head);
        let input = ScanInput { signal, log_decay, gain, write: per_group, read: per_group, initial: None };
        let y = input.scan(&[vec![0, 1, 2, 3]]).0;
        let slope = graph.gradient(y.square().sum_all(), &[signal])[0].unwrap();
        graph.gradient(slope.square().sum_all(), &[signal]);
    });
}
