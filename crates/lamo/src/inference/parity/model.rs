//! Model fixtures: the authors' class in our words, then output, loss and gradients.

use super::{
    Arguments, Comparison, DOUBLE, DOUBLE_WITH_SINGLE_STAGE, Error, GRADIENT_OF_PARAMETERS, LOSS, OUTPUT,
    compare_gradients, double, output_pullback, read_json,
};
use crate::data::state_dict;
use crate::network::models::{self, Choice};
use crate::network::{Input, Mode, Parameters};
use crate::task::Task;
use crate::training::loss::relative_l2_sum;
use lamo_geometry::Grid;
use lamo_tensor::reference::{self, Bindings};
use lamo_tensor::{Graph, PARAMETERS};
use serde::Deserialize;
use serde_json::{Value, json};
use std::path::Path;

impl Arguments<'_> {
    fn unified_positions(&self) -> Result<usize, state_dict::Error> {
        if self.number("unified_pos")? == 1 { self.number("ref") } else { Ok(0) }
    }

    fn plane(&self, rows: &str, columns: &str) -> Result<Grid, state_dict::Error> {
        Ok(Grid::Plane { rows: self.number(rows)?, columns: self.number(columns)? })
    }
}

/// `config.json`: the authors' class and its arguments.
#[derive(Deserialize)]
struct Config {
    variant: String,
    model: Value,
    #[serde(default)]
    mixer: Value,
    #[serde(default)]
    no_grad_params: Vec<String>,
}

const VARIANTS: &str = "regular_grid, structured_shared, structured_unshared, irregular_shared, irregular_unshared, \
                        transolver_structured, transolver_irregular and fno2d";

/// The authors' class and arguments in our words.
fn translate(path: &Path, config: &Config, io: &Comparison) -> Result<(Choice, Task, usize), state_dict::Error> {
    let model = Arguments { path, table: &config.model };
    let mixer = Arguments { path, table: &config.mixer };
    let (name, settings) = match config.variant.as_str() {
        "regular_grid" => ("lamo", patches(&model, &mixer)?),
        "structured_shared" | "irregular_shared" => ("lamo", slices(&model, &mixer, "shared")?),
        "structured_unshared" | "irregular_unshared" => ("lamo", slices(&model, &mixer, "own")?),
        "transolver_structured" | "transolver_irregular" => ("transolver", slice_maps(&model)?),
        "fno2d" => ("fno", json!({"width": model.number("n_hidden")?, "modes": model.number("modes")?, "depth": 4})),
        other => {
            let reason = format!("names the variant {other:?}; parity knows {VARIANTS}");
            return Err(state_dict::Error::malformed(path, reason));
        }
    };
    let settings = toml::Table::try_from(settings);
    let settings = settings.map_err(|error| state_dict::Error::malformed(path, format!("cannot be read: {error}")))?;
    let [batch, points, _] = io.tensor("in.x")?.0[..] else {
        return Err(state_dict::Error::malformed(&io.path, "holds in.x without the axes batch, points and space"));
    };
    let (grid, outputs) = match config.variant.as_str() {
        "regular_grid" => (model.plane("H_img", "W_img")?, "out_chans"),
        "fno2d" => {
            let shape = &config.model["shapelist"];
            let table = &json!({"rows": shape[0], "columns": shape[1]});
            (Arguments { path, table }.plane("rows", "columns")?, "out_dim")
        }
        irregular if irregular.contains("irregular") => (Grid::Cloud { points }, "out_dim"),
        _ => (model.plane("H", "W")?, "out_dim"),
    };
    let task = Task::plain(grid, model.number("space_dim")?, model.number("fun_dim")?, model.number(outputs)?);
    let timed = config.model["Time_Input"].as_bool().unwrap_or(false);
    let task = if timed { task.by_time(1) } else { task };
    if [batch, grid.points(), task.space, task.output_channels()].contains(&0) {
        return Err(state_dict::Error::malformed(path, "describes a task without samples, points, space or outputs"));
    }
    Ok((Choice { name: name.to_owned(), settings }, task, batch))
}

fn patches(model: &Arguments<'_>, mixer: &Arguments<'_>) -> Result<Value, state_dict::Error> {
    Ok(json!({
        "latent": "patches", "mixer": "cross", "directions": 4,
        "patch": model.number("patch_sizes")?, "padded": [model.number("H")?, model.number("W")?],
        "width": model.number("embed_dims")?, "depth": model.number("depths")?,
        "mlp_ratio": model.number("mlp_ratios")?,
        "states": mixer.number("d_state")?, "expand": mixer.number("ssm_ratio")?,
    }))
}

/// What slices of LaMO and of Transolver have in common.
fn slice_maps(model: &Arguments<'_>) -> Result<Value, state_dict::Error> {
    Ok(json!({
        "width": model.number("n_hidden")?, "depth": model.number("n_layers")?,
        "mlp_ratio": model.number("mlp_ratio")?, "tokens": model.number("slice_num")?,
        "slice_heads": model.number("n_head")?, "unified_positions": model.unified_positions()?,
    }))
}

fn slices(model: &Arguments<'_>, mixer: &Arguments<'_>, encoder: &str) -> Result<Value, state_dict::Error> {
    let mut settings = slice_maps(model)?;
    let kind = if mixer.table["kind"] == "bimamba2" { json!("mamba2") } else { mixer.table["kind"].clone() };
    let own = [
        ("latent", json!("slices")),
        ("encoder", json!(encoder)),
        ("mixer", kind),
        ("directions", json!(2)),
        ("states", json!(mixer.number("d_state")?)),
        ("expand", json!(mixer.number("expand")?)),
        ("head_width", json!(mixer.number("headdim")?)),
        ("groups", json!(mixer.number("ngroups")?)),
        ("convolution", json!(mixer.number("d_conv")?)),
    ];
    for (key, value) in own {
        settings[key] = value;
    }
    Ok(settings)
}

/// Inputs of a model's program and their tensors in the fixture.
const LEAVES: [(&str, &str); 4] =
    [("positions", "in.x"), ("functions", "in.fx"), ("time", "in.T"), ("target", "target")];

pub(super) fn check_model(folder: &Path, io: &mut Comparison) -> Result<(), Error> {
    let path = folder.join("config.json");
    let config: Config = read_json(&path)?;
    let (choice, task, batch) = translate(&path, &config, io)?;
    let graph = Graph::new();
    let input = Input::declare(&graph, &task, batch);
    let parameters = Parameters::new(&graph);
    let built = models::find(&choice.name).and_then(|row| row.build(&parameters, &task, &choice.settings));
    let model = built.map_err(|refusal| Error::Model { path: path.clone(), refusal })?;
    let weights = state_dict::read(&folder.join("params.safetensors"), &graph.sections())?;

    let out = model.forward(&input, Mode::Training);
    let target = graph.input("target", out.shape());
    let loss = relative_l2_sum(out, target);
    graph.output("out", out);
    graph.output("loss", loss);
    let mut wanted = vec![(GRADIENT_OF_PARAMETERS.to_owned(), graph.parameters())];
    for (key, leaf) in [("grad.in.x", Some(input.positions)), ("grad.in.fx", input.functions)] {
        wanted.extend(leaf.filter(|_| io.tensors.contains_key(key)).map(|leaf| (key.to_owned(), leaf)));
    }
    output_pullback((loss, graph.fill(1.0, loss.shape())), &wanted);
    let mut bindings = Bindings::from([(PARAMETERS, double(&weights))]);
    let leaves = [Some(input.positions), input.functions, input.time, Some(target)];
    for ((name, key), tensor) in LEAVES.iter().zip(leaves) {
        if let Some(tensor) = tensor {
            bindings.insert(name, io.doubles(key, tensor.shape().count())?.to_vec());
        }
    }
    let program = io.run(&graph, &bindings)?;
    io.compare("output", "out_f64", &double(program.read("out")), OUTPUT)?;
    io.compare("loss", "loss", &double(program.read("loss")), LOSS)?;
    compare_gradients(&program, &wanted, &config.no_grad_params, io)?;
    let single_stage = config.variant == "fno2d" || config.model["unified_pos"] == 1;
    let tolerance = if single_stage { DOUBLE_WITH_SINGLE_STAGE } else { DOUBLE };
    let exact = &reference::evaluate(&graph, &bindings, &[out])[0];
    Ok(io.compare("double", "out_f64", &exact.values, tolerance)?)
}
