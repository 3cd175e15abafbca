//! Model fixtures: translates the authors' class, then compares output, loss, gradients and states, and the output in
//! evaluation where the fixture has one.

use super::states::{compare_evaluation, compare_states};
use super::{
    Comparison, DOUBLE, DOUBLE_WITH_SINGLE_STAGE, Error, GRADIENT, GRADIENT_OF_PARAMETERS, LOSS, OUTPUT, Tolerance,
    compare_gradients, double, output_pullback, read_json,
};
use crate::data::state_dict;
use crate::error::Refusal;
use crate::inference::explain::by_matrices;
use crate::network::models::{Authored, MODELS, Row, Translated};
use crate::network::{Input, Layout, Mode, Parameters};
use crate::task::Task;
use crate::training::loss::relative_l2_sum;
use lamo_geometry::Grid;
use lamo_tensor::reference::{self, Bindings};
use lamo_tensor::{Graph, MODEL_STATES, PARAMETERS, Tensor};
use serde::Deserialize;
use serde_json::Value;
use std::path::Path;

/// `config.json`: the authors' class and its arguments.
#[derive(Deserialize)]
struct Config {
    variant: String,
    #[serde(default)]
    no_grad_params: Vec<String>,
    #[serde(flatten)]
    tables: Value,
}

/// The registry row of the authors' class, the translated class, and the number of samples.
fn translate(
    path: &Path,
    config: &Config,
    io: &Comparison,
) -> Result<(&'static Row, Translated, usize), state_dict::Error> {
    let malformed = |reason: String| state_dict::Error::malformed(path, reason);
    let classes = || MODELS.iter().flat_map(|row| row.translate.iter().map(move |translation| (row, translation)));
    let (row, (_, translate)) = classes().find(|(_, (class, _))| *class == config.variant).ok_or_else(|| {
        let known: Vec<_> = classes().map(|(_, (class, _))| *class).collect();
        malformed(format!("names the variant {:?}; parity knows {}", config.variant, known.join(", ")))
    })?;
    let given = if io.tensors.contains_key("in.x") { "in.x" } else { "in.fx" };
    let [batch, points, _] = io.tensor(given)?.0[..] else {
        return Err(state_dict::Error::malformed(
            &io.path,
            format!("holds {given} without three axes, points in the middle"),
        ));
    };
    let translated =
        translate(&Authored { tables: &config.tables, points }).map_err(|refusal| malformed(refusal.to_string()))?;
    let Task { grid, space, .. } = translated.task;
    if [batch, grid.points(), space, translated.task.output_channels()].contains(&0) {
        return Err(malformed("describes a task without samples, points, space or outputs".to_owned()));
    }
    Ok((row, translated, batch))
}

/// What rounding in float32 may change in the output and in a gradient of a model. U-FNO and U-NO amplify it most; U-Net and LSM
/// do so in the gradients of a cloud, which passes through its projection.
fn tolerances(model: &str, grid: Grid) -> [Tolerance; 2] {
    let (output, gradient) = (Tolerance::of_output(5e-5), Tolerance::of_gradient(1e-3));
    match (model, grid) {
        ("ufno" | "uno", _) => [output, gradient],
        ("unet" | "lsm", Grid::Cloud { .. }) => [OUTPUT, gradient],
        _ => [OUTPUT, GRADIENT],
    }
}

/// What rounding in float64 may change in an output: deep stacks of convolutions and norms amplify it.
fn double_tolerance(model: &str) -> Tolerance {
    match model {
        "unet" | "resnet" | "swin" | "deeponet" | "mwt" | "ufno" | "uno" | "ffno" | "lsm" => {
            Tolerance::of_output(1e-11)
        }
        _ => DOUBLE,
    }
}

/// Inputs of a model's program and their tensors in the fixture.
const LEAVES: [(&str, &str); 3] = [("positions", "in.x"), ("functions", "in.fx"), ("time", "in.T")];

pub(super) fn check_model(folder: &Path, io: &mut Comparison) -> Result<(), Error> {
    let path = folder.join("config.json");
    let config: Config = read_json(&path)?;
    let (row, Translated { settings, task, single_stage }, batch) = translate(&path, &config, io)?;
    let graph = Graph::new();
    let input = Input::declare(&graph, &task, batch);
    let parameters = Parameters::new(&graph);
    let refused = |refusal| Error::Model { path: path.clone(), refusal };
    let model = row.build(&parameters, &task, &settings).map_err(refused)?;
    let layout = Layout::declared(&graph, &parameters);
    let (weights, states) = state_dict::Contents::read(&folder.join("params.safetensors"))?.model(&layout)?;

    let queries = queries(&graph, io)?;
    let out = match queries {
        None => model.forward(&input, Mode::Training),
        Some(queries) => model.forward_at(&input, queries, Mode::Training).ok_or_else(|| {
            refused(Refusal::said(format!("model {} has outputs at the points of its inputs only", row.name)))
        })?,
    };
    let out = in_order(out, io)?;
    parameters.store_states();
    let target = graph.input("target", out.shape());
    let loss = relative_l2_sum(out, target);
    graph.output("out", out);
    graph.output("loss", loss);
    let mut wanted = vec![(GRADIENT_OF_PARAMETERS.to_owned(), graph.parameters())];
    let leaves = [("grad.in.x", Some(input.positions)), ("grad.in.fx", input.functions), ("grad.in.xq", queries)];
    for (key, leaf) in leaves {
        wanted.extend(leaf.filter(|_| io.tensors.contains_key(key)).map(|leaf| (key.to_owned(), leaf)));
    }
    output_pullback((loss, graph.fill(1.0, loss.shape())), &wanted);
    let mut bindings = bound(io, &input, (&weights, &states))?;
    if let Some(queries) = queries {
        bindings.insert(QUERIES, io.doubles("in.xq", queries.shape().count())?.to_vec());
    }
    bindings.insert("target", io.doubles("target", target.shape().count())?.to_vec());
    let program = io.run(&graph, &bindings)?;
    let [output, gradient] = tolerances(row.name, task.grid);
    io.compare("output", "out_f64", &double(program.read("out")), output)?;
    io.compare("loss", "loss", &double(program.read("loss")), LOSS)?;
    compare_gradients(&program, &wanted, &config.no_grad_params, gradient, io)?;
    compare_states(&program, io)?;
    let tolerance = if single_stage { DOUBLE_WITH_SINGLE_STAGE } else { double_tolerance(row.name) };
    let exact = &reference::evaluate(&graph, &bindings, &[out])[0];
    io.compare("double", "out_f64", &exact.values, tolerance)?;
    let matrices = by_matrices(&bindings, |graph, parameters| {
        let input = Input::declare(graph, &task, batch);
        let model = row.build(parameters, &task, &settings).map_err(refused)?;
        Ok::<_, Error>(in_order(model.forward(&input, Mode::Inference), io)?)
    })?;
    if let Some(found) = matrices {
        io.compare("matrices", "out_f64", &found, tolerance)?;
    }
    let values = (&weights[..], &states[..]);
    if io.tensors.contains_key("out_train_f64") {
        let graph = Graph::new();
        let input = Input::declare(&graph, &task, batch);
        let parameters = Parameters::new(&graph);
        let model = row.build(&parameters, &task, &settings).map_err(refused)?;
        parameters.give_factors(dropped(&graph, io, batch)?);
        let out = in_order(model.forward(&input, Mode::Training), io)?;
        graph.output("out", out);
        let program = io.run(&graph, &bound(io, &input, values)?)?;
        io.compare("training output", "out_train_f64", &double(program.read("out")), output)?;
    }
    if io.tensors.contains_key("out_eval_f64") {
        let graph = Graph::new();
        let input = Input::declare(&graph, &task, batch);
        let model = row.build(&Parameters::new(&graph), &task, &settings).map_err(refused)?;
        let out = model.forward(&input, Mode::Inference);
        compare_evaluation(out, bound(io, &input, values)?, [output, tolerance], io)?;
    }
    Ok(())
}

/// Factors of stochastic depth that the authors' code drew, `[batch]` for each branch in the order of the blocks.
fn dropped<'g>(graph: &'g Graph, io: &Comparison, batch: usize) -> Result<Vec<Tensor<'g>>, state_dict::Error> {
    let numbers = |key: &str| key.split('.').filter_map(|part| part.parse().ok()).collect::<Vec<usize>>();
    let mut keys: Vec<&str> =
        io.tensors.keys().map(String::as_str).filter(|key| key.starts_with("droppath.")).collect();
    keys.sort_by_key(|key| numbers(key));
    let mut factors = Vec::new();
    for key in keys {
        let branches = io.doubles(key, 2 * batch)?.chunks_exact(batch);
        factors.extend(branches.map(|branch| graph.constant_numbers(branch, [batch])));
    }
    Ok(factors)
}

/// Values of the inputs and of the model's tensors.
fn bound<'a>(
    io: &Comparison,
    input: &Input<'_>,
    (weights, states): (&[f32], &[f32]),
) -> Result<Bindings<'a>, state_dict::Error> {
    let mut bindings = Bindings::from([(PARAMETERS, double(weights))]);
    if !states.is_empty() {
        bindings.insert(MODEL_STATES, double(states));
    }
    for ((name, key), tensor) in LEAVES.iter().zip([Some(input.positions), input.functions, input.time]) {
        let Some(tensor) = tensor else { continue };
        let count = tensor.shape().count();
        // A class that sees no coordinates has none in its fixture.
        let blind = *key == "in.x" && !io.tensors.contains_key(*key);
        bindings.insert(name, if blind { vec![0.0; count] } else { io.doubles(key, count)?.to_vec() });
    }
    Ok(bindings)
}

/// Input of the program that holds the positions that are asked for, where they are not those of the inputs.
const QUERIES: &str = "queries";

fn queries<'g>(graph: &'g Graph, io: &Comparison) -> Result<Option<Tensor<'g>>, state_dict::Error> {
    let Some((dims, _)) = io.tensors.get("in.xq") else { return Ok(None) };
    let filled = dims.len() == 3 && !dims.contains(&0);
    let malformed = || state_dict::Error::malformed(&io.path, format!("holds in.xq with shape {dims:?}"));
    if filled { Ok(Some(graph.input(QUERIES, dims))) } else { Err(malformed()) }
}

/// `[batch, points, outputs]` with its axes in the order of the fixture. It may have the points last, or one row for each
/// sample, output after output, as LaMO's class for regular grids returns them.
fn in_order<'g>(out: Tensor<'g>, io: &Comparison) -> Result<Tensor<'g>, state_dict::Error> {
    let ([batch, points, outputs], target) = (out.dims(), &io.tensor("target")?.0);
    let is_last = points != outputs && *target == [batch, outputs, points];
    let is_flat = outputs > 1 && *target == [batch, outputs * points];
    Ok(match (is_last, is_flat) {
        (true, _) => out.swap(1, 2),
        (_, true) => out.swap(1, 2).reshape([batch, outputs * points]),
        _ => out,
    })
}
