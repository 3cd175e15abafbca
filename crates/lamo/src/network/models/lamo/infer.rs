//! LaMO's settings from the shapes of a state dict.

use super::{Config, Encoder, Latent, Mixer};
use crate::error::{Refusal, require};
use crate::network::layers::{LIBRARY_MLP, Middle};
use crate::network::models;
use crate::network::models::shapes::{Hints, Inferred, Shapes, ratio};
use lamo_geometry::Grid;

/// A setting that no shape depends on.
const DISCRETISATION: &str = "discretisation";

/// What is known about the model; `None` for the state dict of another one.
pub(super) fn infer(shapes: &Shapes, hints: &Hints) -> Option<Result<Inferred, Refusal>> {
    let found = if shapes.has("patch_embed1.WE") {
        patches(shapes, hints)
    } else if shapes.has("blocks.0.Attn.hydra.in_proj.weight") {
        slices(shapes, hints)
    } else {
        return None;
    };
    Some(found.map(|mut inferred| {
        if !hints.settings.contains_key(DISCRETISATION) {
            let sentence =
                format!("a scan takes Euler steps, as in the authors' code (model.settings.{DISCRETISATION})");
            inferred.assumed.push(sentence);
        }
        inferred
    }))
}

fn slices(shapes: &Shapes, hints: &Hints) -> Result<Inferred, Refusal> {
    let (stack, mut inferred) = shapes.stack(hints)?;
    let block = block(shapes, "blocks.0", LIBRARY_MLP, stack.width)?;
    let mixed = mixer(shapes, "blocks.0.Attn.hydra", &block, hints, &mut inferred.assumed)?;
    let config = Config {
        latent: Latent::Slices,
        tokens: stack.tokens,
        slice_heads: stack.heads,
        encoder: if stack.shared { Encoder::Shared } else { Encoder::Own },
        decoder: stack.decoder,
        depth: stack.depth,
        mlp_ratio: stack.mlp_ratio,
        unified_positions: stack.unified_positions,
        ..mixed
    };
    Ok(Inferred { settings: models::settings(&config), ..inferred })
}

fn patches(shapes: &Shapes, hints: &Hints) -> Result<Inferred, Refusal> {
    let width = shapes.extent("patch_embed1.WE", 0)?;
    let [high, patch] = [shapes.extent("patch_embed1.WE", 2)?, shapes.extent("patch_embed1.WE", 3)?];
    let is_volume = shapes.rank("patch_embed1.WE")? == 5;
    let mut assumed = Vec::new();
    let block = block(shapes, "block1.0", super::PATCH_MLP, width)?;
    let mixed = mixer(shapes, "block1.0.hydra", &block, hints, &mut assumed)?;
    let grid = match high == patch {
        true if is_volume => hints.volume()?,
        true => hints.plane()?,
        false => hints.line()?,
    };
    let config = Config {
        latent: Latent::Patches,
        patch,
        padded: padded(shapes.extent("pos_embed1", 1)?, grid, patch, hints)?,
        depth: shapes.count("block1.", 0),
        mlp_ratio: ratio("mlp_ratio", shapes.extent("block1.0.mlp.fc2.weight", 1)?, width)?,
        ..mixed
    };
    let (space, inputs) = (shapes.extent("placeholder", 0)?, shapes.extent("patch_embed1.WE", 1)?);
    let functions = inputs.checked_sub(space).ok_or_else(|| {
        Refusal::new("patch_embed1.WE", format!("at least {space} inputs, as placeholder has"), inputs.to_string())
    })?;
    let outputs = shapes.extent("depatch_embed1.WE", 1)?;
    Ok(Inferred { settings: models::settings(&config), grid, space, functions, outputs, time: false, assumed })
}

/// Extents after zero padding with which the grid has as many patches as the weights; 0 where they are the next multiples.
fn padded(count: usize, grid: Grid, patch: usize, hints: &Hints) -> Result<Vec<usize>, Refusal> {
    if hints.settings.contains_key("padded") || hints.settings.contains_key("lattice") {
        return Ok(vec![0, 0]); // the settings of the user win
    }
    let ([rows, columns], sizes) = match grid {
        Grid::Plane { rows, columns } => ([rows, columns], [patch; 2]),
        Grid::Line { points } | Grid::Cloud { points } => ([1, points], [1, patch]),
        Grid::Volume { rows, columns, layers } => {
            let found = [rows, columns, layers].iter().map(|extent| extent.div_ceil(patch)).product::<usize>();
            require(found == count, || {
                let sentence = format!("the {count} patches of the weights are not the {found} of a {grid}");
                Refusal::said(sentence).advise("say it with --set model.settings.padded=[N, N, N]")
            })?;
            return Ok(vec![0, 0]);
        }
    };
    let least = [rows.div_ceil(sizes[0]), columns.div_ceil(sizes[1])];
    if least[0].checked_mul(least[1]) == Some(count) {
        return Ok(vec![0, 0]);
    }
    let fits = |down: &usize| count.is_multiple_of(*down) && count / down >= least[1];
    let most = if matches!(grid, Grid::Plane { .. }) { count } else { 1 };
    let found: Vec<[usize; 2]> = (least[0].max(1)..=most)
        .filter(fits)
        .map(|down| [if most > 1 { down * sizes[0] } else { 0 }, count / down * sizes[1]])
        .collect();
    match found[..] {
        [only] => Ok(only.to_vec()),
        [] => {
            Err(Refusal::new("task.grid", format!("a grid of at most {count} patches of {patch}"), format!("a {grid}")))
        }
        _ => Err(Refusal::said(format!("the {count} patches of the weights cover a {grid} with several paddings"))
            .advise(format!("say it with --set model.settings.padded={:?}, or another of {found:?}", found[0]))),
    }
}

/// Width, levers and kind of MLP of a block; all other settings have their defaults.
fn block(shapes: &Shapes, scope: &str, maps: [&str; 2], width: usize) -> Result<Config, Refusal> {
    let name = |part: &str| format!("{scope}.{part}");
    let [first, last] = maps.map(|map| name(&format!("mlp.{map}.weight")));
    let (made, used, waves) = (shapes.extent(&first, 0)?, shapes.extent(&last, 1)?, name("spectral.columns"));
    Ok(Config {
        width,
        mlp: if made == 2 * used { Middle::Swiglu } else { Middle::Activation },
        residual: shapes.has(&name("gamma")),
        spectral_modes: if shapes.has(&waves) { shapes.extent(&waves, 2)? } else { 0 },
        ..Config::default()
    })
}

/// The mixer of a block; all other settings are those given.
fn mixer(
    shapes: &Shapes,
    scope: &str,
    usual: &Config,
    hints: &Hints,
    assumed: &mut Vec<String>,
) -> Result<Config, Refusal> {
    let extent = |name: &str, axis: usize| shapes.extent(&format!("{scope}.{name}"), axis);
    let has = |name: &str| shapes.has(&format!("{scope}.{name}"));
    let rest = |whole: usize, part: usize| {
        whole.checked_sub(part).ok_or_else(|| {
            Refusal::new(format!("tensors of {scope}"), format!("at least {part} channels"), whole.to_string())
        })
    };
    let width = usual.mixed_width();
    if has("x_proj_weight") {
        let (heads, selectors) = (extent("A_logs", 1)?, extent("x_proj_weight", 1)?);
        return Ok(Config {
            mixer: Mixer::Cross,
            directions: extent("x_proj_weight", 0)?,
            scan_heads: if heads == usual.selection().cross_heads(width) { 0 } else { heads },
            states: ratio("states", rest(selectors, heads)?, 2)?,
            expand: ratio("expand", extent("out_norm.weight", 0)?, width)?,
            convolution: extent(if has("conv3d.1.weight") { "conv3d.1.weight" } else { "conv2d.1.weight" }, 3)?,
            ..usual.clone()
        });
    }
    let (inner, heads, mixed) = (extent("norm.weight", 0)?, extent("A_log", 0)?, extent("conv1d.weight", 0)?);
    let selected = rest(mixed, inner)?; // B and C of all groups, and of all directions
    let base = Config {
        expand: ratio("expand", inner, width)?,
        head_width: ratio("head_width", inner, heads)?,
        convolution: extent("conv1d.weight", 2)?,
        ..usual.clone()
    };
    if has("fc_D.weight") {
        let (states, projected) = (extent("init_states", 2)?, extent("in_proj.weight", 0)?);
        let directions = ratio("directions", rest(rest(projected, mixed)?, inner)?, heads)?;
        let groups = ratio("groups", selected, 2 * states * directions)?;
        return Ok(Config { mixer: Mixer::Hydra, directions, states, groups, ..base });
    }
    let directions = match [has("conv1d_b.weight"), has("conv1d_d.weight")] {
        [_, true] => 4,
        [true, false] => 2,
        [false, false] => 1,
    };
    let product = ratio("states", selected, 2)?;
    let groups = match (hints.setting("groups"), hints.setting("states")) {
        (Some(groups), _) => groups,
        (None, Some(states)) => ratio("groups", product, states)?,
        (None, None) => {
            assumed.push("the heads of a mixer form one group (model.settings.groups)".to_owned());
            1
        }
    };
    require(groups > 0, || Refusal::new("model.settings.groups", "at least 1", "0"))?;
    Ok(Config { mixer: Mixer::Mamba2, directions, states: ratio("states", product, groups)?, groups, ..base })
}
