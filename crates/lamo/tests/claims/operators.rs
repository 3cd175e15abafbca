//! Norms, maps and scan orders against PyTorch and the authors' code, at the tolerances the fixtures state.

use crate::fixture::{Fixture, open};
use lamo::network::layers::cross_orders;
use lamo_tensor::{Graph, Map, Program, Tensor};

/// Allowed error of outputs and gradients, relative to the largest element.
const OUTPUT: f64 = 2e-5;
const GRADIENT: f64 = 3e-4;
/// A gradient that is zero in theory is rounding in practice.
const NOISE: f64 = 1e-7;

fn input<'g>(graph: &'g Graph, fixture: &Fixture, key: &str) -> Tensor<'g> {
    graph.input(key, fixture.dims(key))
}

fn run(graph: &Graph, fixture: &Fixture, keys: &[&str]) -> Program {
    let mut program = Program::compile(graph);
    for key in keys {
        program.write(key, &fixture.floats(key));
    }
    program.run();
    program
}

#[test]
fn gated_rms_norms_equal_the_authors_in_both_orders_and_in_groups() {
    let fixture = open("rmsnorm_gated");
    for (variant, norm_first, group) in
        [("nbg1_g24", true, 24), ("nbg1_g8", true, 8), ("nbg0_g24", false, 24), ("nbg0_g8", false, 8)]
    {
        let graph = Graph::new();
        let [x, z, weight] = ["x", "z", "weight"].map(|key| input(&graph, &fixture, key));
        let [batch, tokens, width] = x.dims();
        let in_groups = [batch, tokens, width / group, group];
        let gated = if norm_first { x } else { x * z.silu() };
        let normed = gated.reshape(in_groups).rms_norm(weight.reshape([width / group, group]), 1e-5);
        let normed = normed.reshape([batch, tokens, width]);
        let y = if norm_first { normed * z.silu() } else { normed };
        graph.output("y", y);
        let gradients = graph.pullback(&[(y, input(&graph, &fixture, "dout"))], &[x, z, weight]);
        for (key, gradient) in ["x", "z", "weight"].iter().zip(gradients) {
            graph.output(&format!("grad.{key}"), gradient.expect("used"));
        }
        let program = run(&graph, &fixture, &["x", "z", "weight", "dout"]);
        fixture.check(&format!("{variant}.y"), program.read("y"), OUTPUT, 0.0);
        for key in ["x", "z", "weight"] {
            let name = format!("grad.{key}");
            fixture.check(&format!("{variant}.{name}"), program.read(&name), GRADIENT, NOISE);
        }
    }
}

#[test]
fn gelu_silu_and_softplus_equal_pytorch_with_their_gradients() {
    let fixture = open("elementwise");
    for (name, function) in [("gelu", Map::Gelu), ("silu", Map::Silu), ("softplus", Map::Softplus)] {
        let graph = Graph::new();
        let x = input(&graph, &fixture, "x");
        let y = x.map(function);
        graph.output("y", y);
        graph.output("gradient", graph.gradient(y.sum_all(), &[x])[0].expect("used"));
        let program = run(&graph, &fixture, &["x"]);
        fixture.check(name, program.read("y"), OUTPUT, 0.0);
        fixture.check(&format!("grad.{name}"), program.read("gradient"), GRADIENT, 0.0);
    }
}

#[test]
fn norms_equal_pytorch_also_where_the_variance_is_tiny() {
    let fixture = open("elementwise");
    for kind in ["unit", "tiny_var"] {
        let key = |name: &str| format!("ln_{kind}.{name}");
        let graph = Graph::new();
        let [x, weight, bias, cotangent] =
            ["x", "weight", "bias", "dout"].map(|name| input(&graph, &fixture, &key(name)));
        let z_key = format!("rms_{kind}.z");
        let z = input(&graph, &fixture, &z_key);
        let y = x.layer_norm(weight, bias, 1e-5);
        let rms = x.rms_norm(graph.fill(1.0, [12]), 1e-5) * z.silu();
        graph.output("ln", y);
        graph.output("rms", rms);
        let norm_gradients = graph.pullback(&[(y, cotangent)], &[x, weight, bias]);
        let rms_gradients = graph.pullback(&[(rms, cotangent)], &[x, z]);
        for (name, gradient) in ["ln x", "ln weight", "ln bias"].iter().zip(norm_gradients) {
            graph.output(name, gradient.expect("used"));
        }
        for (name, gradient) in ["rms x", "rms z"].iter().zip(rms_gradients) {
            graph.output(name, gradient.expect("used"));
        }
        let keys = [key("x"), key("weight"), key("bias"), key("dout"), z_key];
        let program = run(&graph, &fixture, &keys.each_ref().map(String::as_str));
        fixture.check(&key("y"), program.read("ln"), OUTPUT, 0.0);
        fixture.check(&format!("rms_{kind}.y"), program.read("rms"), OUTPUT, 0.0);
        for name in ["x", "weight", "bias"] {
            fixture.check(&key(&format!("grad.{name}")), program.read(&format!("ln {name}")), GRADIENT, NOISE);
        }
        for name in ["x", "z"] {
            fixture.check(&format!("rms_{kind}.grad.{name}"), program.read(&format!("rms {name}")), GRADIENT, NOISE);
        }
    }
}

#[test]
fn the_four_scan_orders_are_those_of_the_authors() {
    let fixture = open("cross_scan");
    for (rows, columns) in [(5, 7), (4, 4), (1, 6), (6, 1)] {
        let flat: Vec<f64> = cross_orders(rows, columns).concat().iter().map(|&token| f64::from(token)).collect();
        fixture.check_doubles(&format!("scan_src_{rows}x{columns}"), &flat, 0.0, 0.0);
    }
}
