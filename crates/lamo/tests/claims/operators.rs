//! Scans, norms, maps and the grid mixer against the authors' code, at the tolerances the fixtures state.

use crate::fixture::{Fixture, open};
use lamo::layers::{Parameters, Ss2d, cross_orders};
use lamo_tensor::reference::{self, Bindings};
use lamo_tensor::{Graph, Map, Program, ScanInput, Tensor};

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
fn scans_equal_the_recurrence_of_mamba_with_all_gradients_also_for_extreme_steps() {
    for name in ["a_hydra_like", "b_ss2d_like", "c_mamba2_like", "d_state1", "e_len1", "f_extreme_dt"] {
        check_scan(&open(&format!("ssd_scan_{name}")));
    }
}

fn check_scan(fixture: &Fixture) {
    let graph = Graph::new();
    let mut keys: Vec<&str> = vec!["x", "dt", "A", "B", "C"];
    keys.extend(["dt_bias", "initial_states", "D"].iter().filter(|key| fixture.has(key)));
    let leaves: Vec<_> = keys.iter().map(|key| input(&graph, fixture, key)).collect();
    let get = |key: &str| keys.iter().position(|known| *known == key).map(|position| leaves[position]);
    let must = |key: &str| get(key).expect("listed above");
    let (x, raw) = (must("x"), must("dt"));
    let [batch, tokens, heads, channels] = x.dims();
    let shifted = get("dt_bias").map_or(raw, |bias| raw + bias);
    let step = if fixture.settings["softplus"].as_bool().unwrap() { shifted.softplus() } else { shifted };
    let scan = ScanInput {
        signal: x,
        log_decay: step * must("A"),
        gain: step,
        write: must("B"),
        read: must("C"),
        initial: get("initial_states"),
    };
    let (mut y, state) = scan.scan(&[(0..tokens as u32).collect()]);
    if let Some(skip) = get("D") {
        let per_channel = fixture.settings["D"] == "hp";
        y = y + x * if per_channel { skip } else { skip.reshape([heads, 1]) };
    }
    assert_eq!(y.shape().dims(), [batch, tokens, heads, channels]);
    graph.output("y", y);
    graph.output("final_state", state);
    let cotangent = input(&graph, fixture, "dout");
    let gradients: Vec<_> =
        graph.pullback(&[(y, cotangent)], &leaves).into_iter().map(|gradient| gradient.expect("used")).collect();
    for (key, gradient) in keys.iter().zip(&gradients) {
        graph.output(&format!("grad.{key}"), *gradient);
    }

    let all: Vec<&str> = keys.iter().copied().chain(["dout"]).collect();
    let program = run(&graph, fixture, &all);
    fixture.check("y_f64", program.read("y"), OUTPUT, NOISE);
    fixture.check("final_state_f64", program.read("final_state"), OUTPUT, NOISE);
    for key in &keys {
        let gradient = format!("grad.{key}");
        fixture.check(&format!("{gradient}_f64"), program.read(&gradient), GRADIENT, NOISE);
    }

    let bindings: Bindings<'_> = all.iter().map(|&key| (key, fixture.values(key).to_vec())).collect();
    let exact = reference::evaluate(&graph, &bindings, &[y, state]);
    fixture.check_doubles("y_f64", &exact[0].values, 1e-12, 0.0);
    fixture.check_doubles("final_state_f64", &exact[1].values, 1e-12, 0.0);
    for (key, found) in keys.iter().zip(reference::evaluate(&graph, &bindings, &gradients)) {
        fixture.check_doubles(&format!("grad.{key}_f64"), &found.values, 1e-11, 1e-15);
    }
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

#[test]
fn the_grid_mixer_equals_the_authors_with_all_gradients() {
    for name in ["mixer_ss2d_a", "mixer_ss2d_b"] {
        let fixture = open(name);
        let setting = |key: &str| fixture.settings["args"][key].as_f64().unwrap() as usize;
        let [batch, rows, columns, width] = *fixture.dims("in.u") else { panic!("{name}: in.u has four axes") };
        let graph = Graph::new();
        let parameters = Parameters::new(&graph);
        let mixer = Ss2d::new(&parameters.root(), width, setting("ssm_ratio"), setting("d_state"));
        let u = input(&graph, &fixture, "in.u");
        let y = mixer.forward(u.reshape([batch, rows * columns, width]), rows, columns);
        let y = y.reshape([batch, rows, columns, width]);
        graph.output("y", y);
        let theta = graph.parameters();
        let gradients = graph.pullback(&[(y, input(&graph, &fixture, "dout"))], &[u, theta]);
        graph.output("grad.in.u", gradients[0].expect("used"));
        graph.output("gradient", gradients[1].expect("used"));
        let mut program = Program::compile(&graph);
        for section in graph.sections() {
            program.write_parameter(&section.name, &fixture.floats(&format!("param.{}", section.name)));
        }
        for key in ["in.u", "dout"] {
            program.write(key, &fixture.floats(key));
        }
        program.run();
        fixture.check("out_f64", program.read("y"), OUTPUT, 0.0);
        fixture.check("grad.in.u", program.read("grad.in.u"), GRADIENT, NOISE);
        for section in graph.sections() {
            let found = &program.read("gradient")[section.range()];
            fixture.check(&format!("grad.param.{}", section.name), found, GRADIENT, NOISE);
        }
        let named = fixture.keys().filter(|key| key.starts_with("param.")).count();
        assert_eq!(named, graph.sections().len(), "{name}: as many parameters as the authors have");
    }
}
