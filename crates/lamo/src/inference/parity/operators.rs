//! Operator fixtures: mixers, the scan, the loss, the optimiser and schedules, each on its own.

use super::{
    Arguments, Comparison, DOUBLE, Error, GRADIENT_OF_PARAMETERS, LOSS, OUTPUT, STEP, compare_gradients, double,
    output_pullback, single,
};
use crate::data::state_dict;
use crate::network::layers::{Discretisation, Hydra, Mamba2, Selection, Ss2d};
use crate::network::{Parameters, Scope};
use crate::training::loss::{relative_l2_mean, relative_l2_sum};
use crate::training::optimiser::AdamW;
use crate::training::schedule::{Pace, Schedule};
use lamo_tensor::reference;
use lamo_tensor::{Graph, PARAMETERS, ScanInput, Tensor};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// A mixer's output, and the pullback of `dout` to its input and parameters.
pub(super) fn check_mixer(path: &Path, settings: &Value, io: &mut Comparison) -> Result<bool, Error> {
    let (kind, arguments) =
        (settings["kind"].as_str().unwrap_or_default(), Arguments { path, table: &settings["args"] });
    let graph = Graph::new();
    let parameters = Parameters::new(&graph);
    let u = io.input(&graph, "in.u")?;
    let Some(y) = mix(kind, &arguments, &parameters.root(), u)? else { return Ok(false) };
    graph.output("out", y);
    let wanted = [(GRADIENT_OF_PARAMETERS.to_owned(), graph.parameters()), ("grad.in.u".to_owned(), u)];
    output_pullback((y, io.input(&graph, "dout")?), &wanted);
    let mut bindings = io.bindings(["in.u", "dout"])?;
    let mut weights = vec![0.0; graph.parameters().shape().count()];
    for section in graph.sections() {
        let values = io.doubles(&format!("param.{}", section.name), section.shape.count())?;
        weights[section.range()].copy_from_slice(values);
    }
    bindings.insert(PARAMETERS, weights);
    let program = io.run(&graph, &bindings)?;
    io.compare("output", "out_f64", &double(program.read("out")), OUTPUT)?;
    compare_gradients(&program, &wanted, &[], io)?;
    io.compare("double", "out_f64", &reference::evaluate(&graph, &bindings, &[y])[0].values, DOUBLE)?;
    Ok(true)
}

/// The mixer of a kind applied to `u`, in the shape of `u`; what is not given takes the class's default.
fn mix<'g>(
    kind: &str,
    arguments: &Arguments<'_>,
    scope: &Scope<'_, 'g>,
    u: Tensor<'g>,
) -> Result<Option<Tensor<'g>>, state_dict::Error> {
    let selection = Selection {
        states: arguments.number("d_state")?,
        expand: arguments.number(if kind == "ss2d" { "ssm_ratio" } else { "expand" })?,
        head_width: arguments.number_or("headdim", 64)?,
        groups: arguments.number_or("ngroups", if kind == "hydra" { 2 } else { 1 })?,
        convolution: arguments.number_or("d_conv", 3)?,
        directions: if kind == "ss2d" { 4 } else { 2 },
        discretisation: Discretisation::Euler,
    };
    let (shape, width) = (u.shape(), arguments.number("d_model")?);
    let mixed = match (kind, shape.dims()) {
        ("ss2d", &[batch, rows, columns, _]) => {
            let tokens = u.reshape([batch, rows * columns, width]);
            Ss2d::new(scope, width, selection).forward(tokens, rows, columns)
        }
        ("hydra", [_, _, _]) => Hydra::new(scope, width, selection).forward(u),
        ("bimamba2", [_, _, _]) => Mamba2::new(scope, width, selection).forward(u),
        _ => return Ok(None),
    };
    Ok(Some(mixed.reshape(shape)))
}

/// The recurrence alone: y, the last state, and the pullback of `dout` to everything that goes in.
pub(super) fn check_scan(settings: &Value, io: &mut Comparison) -> Result<bool, Error> {
    let graph = Graph::new();
    let mut leaves = BTreeMap::new();
    for key in ["x", "dt", "A", "B", "C", "D", "dt_bias", "initial_states"] {
        if ["x", "dt", "A", "B", "C"].contains(&key) || io.tensors.contains_key(key) {
            leaves.insert(key, io.input(&graph, key)?);
        }
    }
    let (y, state) = scan(&leaves, settings["softplus"] == true);
    graph.output("y_f64", y);
    graph.output("final_state_f64", state);
    let wanted: Vec<_> = leaves.iter().map(|(key, leaf)| (format!("grad.{key}_f64"), *leaf)).collect();
    output_pullback((y, io.input(&graph, "dout")?), &wanted);
    let bindings = io.bindings(leaves.keys().copied().chain(["dout"]))?;
    let program = io.run(&graph, &bindings)?;
    for (key, exact) in ["y_f64", "final_state_f64"].iter().zip(reference::evaluate(&graph, &bindings, &[y, state])) {
        io.compare("output", key, &double(program.read(key)), OUTPUT)?;
        io.compare("double", key, &exact.values, DOUBLE)?;
    }
    compare_gradients(&program, &wanted, &[], io)?;
    Ok(true)
}

/// y and the last state of `mamba_ssm`'s scan; Δ is raw.
fn scan<'g>(leaves: &BTreeMap<&str, Tensor<'g>>, softplus: bool) -> (Tensor<'g>, Tensor<'g>) {
    let signal = leaves["x"];
    let shifted = leaves.get("dt_bias").map_or(leaves["dt"], |&bias| leaves["dt"] + bias);
    let step = if softplus { shifted.softplus() } else { shifted };
    let scan = ScanInput {
        signal,
        log_decay: step * leaves["A"],
        gain: step,
        write: leaves["B"],
        read: leaves["C"],
        initial: leaves.get("initial_states").copied(),
    };
    let (y, state) = scan.scan(&[(0..signal.shape().dims()[1] as u32).collect()]);
    let Some(&skip) = leaves.get("D") else { return (y, state) };
    let per_head = skip.shape().rank() == 1;
    (y + signal * if per_head { skip.reshape([skip.shape().count(), 1]) } else { skip }, state)
}

pub(super) fn check_loss(io: &mut Comparison) -> Result<bool, Error> {
    let graph = Graph::new();
    let (x, y) = (io.input(&graph, "x")?, io.input(&graph, "y")?);
    let loss = relative_l2_sum(x, y);
    graph.output("loss_sum", loss);
    graph.output("loss_mean", relative_l2_mean(x, y));
    let wanted = [("grad.x".to_owned(), x)];
    output_pullback((loss, graph.fill(1.0, loss.shape())), &wanted);
    let program = io.run(&graph, &io.bindings(["x", "y"])?)?;
    for key in ["loss_sum", "loss_mean"] {
        io.compare("loss", key, &double(program.read(key)), LOSS)?;
    }
    compare_gradients(&program, &wanted, &[], io)?;
    Ok(true)
}

/// Training steps with the fixture's gradients: the loss ⟨θ, g⟩ has exactly these.
pub(super) fn check_optimiser(path: &Path, settings: &Value, io: &mut Comparison) -> Result<bool, Error> {
    let setting = |key: &str| {
        let missing = || state_dict::Error::malformed(path, format!("gives no number {key}"));
        settings[key].as_f64().ok_or_else(missing)
    };
    let clip = settings["clip"].as_f64();
    let adamw = AdamW { beta2: setting("beta2")?, epsilon: setting("eps")?, weight_decay: setting("wd")?, clip };
    let graph = Graph::new();
    let parameter = |name: &str| {
        let dims = &io.tensor(&format!("p0.{name}"))?.0;
        Ok::<_, state_dict::Error>(graph.parameter(name, dims))
    };
    let (a, _, b) = (parameter("a")?, parameter("never")?, parameter("b")?);
    let gradients = [graph.input("ga", a.shape()), graph.input("gb", b.shape())];
    adamw.minimise(&graph, (a * gradients[0]).sum_all() + (b * gradients[1]).sum_all());
    let mut program = io.compile(&graph)?;
    for section in graph.sections() {
        let values = io.doubles(&format!("p0.{}", section.name), section.shape.count())?;
        program.write_parameter(&section.name, &single(values));
    }
    for (step, (rate, beta1)) in io.tensor("lr")?.1.clone().into_iter().zip(io.tensor("beta1")?.1.clone()).enumerate() {
        adamw.pace(&mut program, step, Pace { rate, beta1 })?;
        for (name, tensor) in ["a", "b"].iter().zip(gradients) {
            let values = single(io.doubles(&format!("g{}.{name}", step + 1), tensor.shape().count())?);
            program.write(&format!("g{name}"), &values);
        }
        program.run();
        for section in graph.sections() {
            let found = double(program.read_parameter(&section.name));
            io.compare("parameters", &format!("p{}.{}", step + 1, section.name), &found, STEP)?;
        }
    }
    Ok(true)
}

pub(super) fn check_schedule(path: &Path, settings: &Value, io: &mut Comparison) -> Result<bool, Error> {
    let steps = Arguments { path, table: settings }.number("total_steps")?;
    let reason = || state_dict::Error::malformed(path, "gives no number max_lr");
    let peak = settings["max_lr"].as_f64().ok_or_else(reason)?;
    let schedule = match settings["kind"].as_str() {
        Some("onecycle") => Schedule::OneCycle { peak, steps },
        Some("cosine") => Schedule::Cosine { peak, steps },
        _ => return Ok(false),
    };
    let paces: Vec<Pace> = io.tensor("step")?.1.iter().map(|&step| schedule.at(step as usize)).collect();
    let (rates, inertias): (Vec<_>, Vec<_>) = paces.iter().map(|pace| (pace.rate, pace.beta1)).unzip();
    io.compare("schedule", "lr", &rates, DOUBLE)?;
    io.compare("schedule", "beta1", &inertias, DOUBLE)?;
    Ok(true)
}
