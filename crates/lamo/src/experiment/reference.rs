//! The reference of every key: meaning, unit, default, and which presets set it. `lamo train --keys` prints it, and
//! `docs/keys.md` is the same text.

use super::benchmarks::BENCHMARKS;
use super::request::{DEFAULTS, OWN_KEYS};
use super::{Loss, OWN, TimeRole, best, keys};
use crate::network::models::{MODELS, Row};
use std::fmt::Write;
use toml::{Table, Value};

/// A key with its unit and its meaning; `–` where it has no unit.
type Entry = (&'static str, &'static str, &'static str);

/// Every key but the settings of models and problems, in the order of the text.
const KEYS: &[Entry] = &[
    ("benchmark", "–", "The benchmark, or `own` for your own data."),
    (
        "preset",
        "–",
        "The size: `quick` takes minutes on two cores, `paper` is the published recipe, `best` our own, where one was chosen.",
    ),
    ("seed", "–", "Seed of the first parameters and of the order of the samples."),
    (
        "precision",
        "–",
        "Precision of products, convolutions and scans in a training on a GPU: `f32`, `tf32` or `bf16`. Predictions, and everything on a CPU, are computed in f32.",
    ),
    ("model.name", "–", "The model; `lamo list` names them all."),
    ("data.folder", "–", "A data set to use instead of making one."),
    ("data.problem", "–", "The problem whose solver makes the samples; empty for your own data."),
    ("data.seed", "–", "Seed of the samples that a solver makes, and of the draw of the validation samples."),
    (
        "data.train",
        "samples",
        "Samples to train on, the first of the data set, validation samples included; 0 takes the split of the data set.",
    ),
    (
        "data.test",
        "samples",
        "Samples to test on, from `data.first_test` on, or the last of the data set; 0 takes the split of the data set.",
    ),
    (
        "data.first_test",
        "samples",
        "Number of the first test sample; 0 takes the last samples. A change of `data.train` on a benchmark sets it, so that the test samples stay the same.",
    ),
    (
        "data.validation",
        "samples",
        "Training samples that are not trained on, drawn with `data.seed`. Their error after each epoch chooses the best checkpoint, which `evaluate` and `predict` then use; the test samples are evaluated once, at the end. 0: there are none, the test error is computed after each epoch, and the last checkpoint is used. Your own data get a tenth of their training samples, from 40 on, unless you set it.",
    ),
    (
        "data.gap",
        "windows",
        "For windows of time series: those that begin so near to a validation window share snapshots with it and are dropped. The validation windows are then whole series, drawn with `data.seed`, and the last windows of one. 0 draws samples one by one. Chosen for imports with `--window`, unless you set it.",
    ),
    ("data.inputs", "–", "Input fields; an empty list takes the inputs of the data set."),
    ("data.outputs", "–", "Output fields; an empty list takes the outputs of the data set."),
    (
        "data.scrambled",
        "–",
        "Counts the lattice of positions along the wrong axis, as the authors' Plasticity loader does.",
    ),
    (
        "data.normalise",
        "–",
        "What is shifted and scaled to mean 0 and deviation 1, channel by channel, fitted to the training samples: `positions`, `inputs`, `outputs`.",
    ),
    ("data.time", "–", "The role of time."),
    ("data.past", "snapshots", "Past snapshots that a roll-out is given."),
    (
        "data.change",
        "–",
        "The model of a roll-out predicts the change from the last snapshot, scaled by the deviation of the changes, instead of the next snapshot. Your own time series do unless you set it.",
    ),
    (
        "data.trend",
        "–",
        "The model learns the difference to the best linear function of positions and inputs at each point, scaled by its deviation. For outputs that are mostly such a function, such as deformed positions.",
    ),
    (
        "train.epochs",
        "epochs",
        "Passes over the training samples. On your own data, and with `--minutes`, they are chosen unless they are set.",
    ),
    (
        "train.batch",
        "samples",
        "Samples per optimiser step; at most those to train on, and a quarter of them on your own data unless it is set.",
    ),
    ("train.rate", "–", "Largest learning rate."),
    (
        "train.schedule",
        "–",
        "How the rate changes: `onecycle` (up over 30 % of the steps, then down to nearly 0), `cosine-by-epoch` (half a cosine to 0), `step-by-epoch` (halved after every 100 epochs) or `constant`.",
    ),
    (
        "train.optimiser",
        "–",
        "`adamw`; `adam`, which adds λ times the parameters to the gradient; or `muon`: the weights of linear maps take orthogonal steps (Newton and Schulz's iteration on their momentum), all other parameters those of AdamW.",
    ),
    (
        "train.matrix_rate",
        "–",
        "With `muon`, the rate of matrices relative to `train.rate`. At 1, steps of matrices have the size of AdamW's.",
    ),
    (
        "train.matrix_convolutions",
        "–",
        "With `muon`, the weights of dense convolutions take orthogonal steps, too, each as a matrix from inputs and taps to outputs.",
    ),
    (
        "train.average",
        "–",
        "Decay of a running average of the parameters, such as 0.999; 0 keeps none. The average is then the model: it is tested, saved and evaluated. In the first steps the decay is smaller, (1 + step) / (10 + step).",
    ),
    ("train.weight_decay", "–", "λ. Each step of AdamW multiplies the parameters by 1 − rate · λ."),
    ("train.clip", "–", "Largest norm of the gradient of a batch; 0 does not clip."),
    (
        "train.loss",
        "–",
        "What is minimised, a sum over the samples of a batch. `lamo train FOLDER` takes `relative-l2-of-frames` for a time series and `mse` for numbers of whole samples unless it is set.",
    ),
    (
        "train.teacher_forcing",
        "–",
        "Shows a roll-out the true snapshots in training. `false` continues its own predictions, and the gradient runs through all of them.",
    ),
    (
        "train.rollout",
        "snapshots",
        "Snapshots that a roll-out continues by its own predictions in training, through which the gradient runs, before it is shown the true ones again; 1 always shows the true ones. A step costs the same.",
    ),
    (
        "train.noise",
        "–",
        "Deviation of the normal noise that is added to the snapshots a roll-out is given in training, in normalised units; 0 adds none.",
    ),
    (
        "train.points",
        "points",
        "Points of each sample that a step draws at random, on clouds; 0 takes all, and so does a number that is not below those of a sample. The draw depends on seed and step alone. Tests, evaluations and predictions have all points.",
    ),
    (
        "train.evaluate",
        "epochs",
        "Epochs between two errors on the validation samples, or on the test samples without them; the last epoch is always tested.",
    ),
    (
        "train.patience",
        "epochs",
        "Ends the training when the validation error has not improved for so many epochs; 0 never does. It needs validation samples. The rate of `onecycle` is still high in the middle of the training, so `constant` suits it better.",
    ),
    (
        "train.symmetries",
        "–",
        "Shows each sample of a benchmark under a random symmetry that its problem declares (docs/problems.md), drawn anew each time. Your own data take reflections of the line, or reflections and rotations of the plane or volume, one for each batch, and must be symmetric: scalar fields without a preferred direction.",
    ),
    (
        "train.balanced",
        "–",
        "Divides the error of each output by its deviation over the training samples, so that outputs with small units are learned too. `mse` and `l1` always do.",
    ),
];

/// Settings of models: a name, or `model.name` where a model means something else by it.
const SETTINGS: &[Entry] = &[
    ("latent", "–", "What the latent tokens are: `patches` of a line, plane or volume, or `slices` of any points."),
    ("patch", "points", "Side of a patch, a square or a cube; its length on a line."),
    (
        "padded",
        "points",
        "Extents of the plane after zero padding below and right; 0 is the next multiple of the patch. A line has one row, a volume \
         three extents.",
    ),
    (
        "lattice",
        "points",
        "Extents of the lattice of the training, to which fields on other grids are interpolated and from which they come back; 0 \
         where the model works on the grid of its data.",
    ),
    (
        "initial",
        "–",
        "First weights: `small` as the authors draw them, or `fan-in`, which learns on lines and small clouds, too.",
    ),
    ("tokens", "–", "Number of slices, per head."),
    ("heads", "–", "Heads of the attention."),
    ("gnot.mlp_ratio", "–", "Hidden channels of experts and gates over the width."),
    ("experts", "–", "Experts after each attention; the position of a point sets their shares."),
    (
        "extents",
        "points",
        "Extents of the box on which the points of a cloud lie, the last axis fastest; zeros take the axes of a line, plane or volume.",
    ),
    ("oformer.width", "channels", "Channels of the points in the encoder, and of each of its heads."),
    ("oformer.depth", "–", "Layers of the encoder."),
    ("oformer.heads", "–", "Heads of the encoder's attention."),
    ("oformer.latent", "channels", "Channels of the points in the decoder, and of each head of the cross attention."),
    ("cross_heads", "–", "Heads of the cross attention from the points asked for to those given."),
    ("frequency", "–", "Deviation of the fixed random frequencies by which the decoder sees a position."),
    (
        "oformer.resolution",
        "points",
        "Points per side, by which the angles of the rotations grow; 0 is the square root of the number of points. With `steps` it \
         is 64.",
    ),
    (
        "steps",
        "–",
        "Steps of the latent recurrence, which give the outputs one after another; 0 is the decoder of steady tasks, or one step for \
         each time where a time is an input.",
    ),
    ("propagators", "–", "Maps of one latent step."),
    (
        "dropout",
        "–",
        "Share of the values that are left out at random after each attention and in each MLP of the encoder, in training.",
    ),
    ("embedding_dropout", "–", "Share of the values that are left out at random behind the embedding, in training."),
    ("swin.depth", "–", "Number of pairs of blocks; the second of a pair has its windows shifted."),
    ("window", "points", "Side of a window of attention; the plane is padded with zeros to a multiple of it."),
    ("htnet.width", "channels", "Channels of the finest level; each coarser one has twice as many."),
    ("htnet.patch", "points", "Side of the overlapping squares that become tokens."),
    ("stride", "points", "Points from one token to the next; at most `patch`."),
    ("patch_padding", "points", "Zeros around the plane before it is cut into squares."),
    ("windows", "tokens", "Side of the windows of each level, the finest first."),
    ("depths", "–", "Blocks of each level."),
    ("htnet.heads", "–", "Heads of each level."),
    ("layers", "–", "Number of Fourier layers."),
    ("hidden", "channels", "Hidden channels of the last map."),
    ("padding", "points", "Zeros below and right of the plane in the Fourier layers."),
    ("coordinates", "–", "Whether the coordinates are inputs beside the functions."),
    (
        "stochastic_depth",
        "–",
        "Share of the samples for which a branch of the last block is left out in training; it grows from 0 at the first block.",
    ),
    ("zero_border", "–", "Sets the outputs to 0, in physical units, on the border of the plane."),
    (
        "pointwise_scale",
        "–",
        "Shifts and scales the outputs point by point with tensors of the authors' weights file, which training leaves as they are.",
    ),
    ("slice_heads", "–", "Heads of the slice maps."),
    ("encoder", "–", "Whose slice maps a block uses: its `own`, or those `shared` by all blocks."),
    ("decoder", "–", "How slices become points again: by the encoder's weights (`tied`) or by its `own`."),
    ("residual", "–", "Adds γ times the mixed tokens to the tokens, with a number γ of each block that begins at 0."),
    (
        "spectral_modes",
        "–",
        "Frequencies along each axis of a line, plane or volume by which half of the channels are mixed; 0 leaves all channels to the tokens.",
    ),
    (
        "mlp",
        "–",
        "What stands between the maps of a block's MLP: `gelu`, which is the `activation`, or `swiglu`, which multiplies the hidden channels by the SiLU of as many gates.",
    ),
    (
        "mixer",
        "–",
        "What mixes the tokens: `cross` along rows and columns of a plane, or along a line; `hydra` or `mamba2` along the slices.",
    ),
    (
        "directions",
        "–",
        "Directions of the scans: 1, 2, or 4: rows and columns of patches, or of slices that fill a square; 6: rows, columns and layers \
         of patches of a volume.",
    ),
    ("scan_heads", "–", "Scan heads in each direction of the mixer `cross`; 0 is one for each 16 channels."),
    ("width", "channels", "Channels of points and tokens."),
    ("depth", "–", "Number of blocks."),
    ("mlp_ratio", "–", "Hidden channels of a block's MLP over its width."),
    ("states", "–", "Size of the state of a scan."),
    ("expand", "–", "Inner channels of the mixer over its width."),
    ("head_width", "channels", "Channels of a scan head (hydra, mamba2)."),
    ("groups", "–", "Groups of heads that share their input and output maps (hydra, mamba2)."),
    ("convolution", "tokens", "Width of the mixer's convolution."),
    (
        "discretisation",
        "–",
        "How the continuous system becomes a recurrence: one `euler` step, or the exact zero-order hold `zoh`.",
    ),
    (
        "unified_positions",
        "points",
        "Side of the lattice whose distances replace the positions; 0 keeps the positions.",
    ),
    (
        "activation",
        "–",
        "Between the maps of the lifting's MLP, and of the blocks' where the library has it there: `gelu`, `tanh`, `sigmoid`, `relu`, `softplus`, `elu` or `silu`.",
    ),
    ("modes", "–", "Frequencies along each axis."),
    (
        "fno.padded",
        "points",
        "Extents after zero padding, three of a volume; 0 is the padding of the library. A trained model keeps the length of its waves on other grids.",
    ),
    (
        "line_padding",
        "points",
        "A line whose `padded` is 0 is padded with zeros to a multiple of this. 1 pads nothing, as the library does: the ends of the line are then neighbours.",
    ),
    (
        "overlap",
        "–",
        "Whether `modes` may be more than half of the rows after padding, as in the library. Rows of positive frequencies then have the weights of negative ones, which belong to this grid alone.",
    ),
    ("fno.width", "channels", "Channels of the hidden fields."),
    (
        "norm",
        "–",
        "The norm after each convolution: `batch`, `instance`, or `auto`, which is `batch` for steady tasks and `instance` for others.",
    ),
    ("coordinate_width", "channels", "Width of the network of the learned coordinates of a cloud."),
    (
        "positions_twice",
        "–",
        "Gives the positions a second time, as input functions, as some scripts of the library do.",
    ),
    ("heads", "–", "Heads of the attention."),
    ("bases", "–", "Sines, and cosines, that each latent token passes through."),
    ("lsm.tokens", "–", "Latent tokens of each head and patch."),
    ("ffno.width", "channels", "Channels of the hidden fields."),
    ("fno.lattice", "points", "Rows and columns of the image that a cloud is projected to."),
    ("ffno.lattice", "points", "Rows and columns of the image that a cloud is projected to."),
    ("resnet.width", "channels", "Channels of the hidden fields."),
    ("resnet.lattice", "points", "Rows and columns of the image that a cloud is projected to."),
    ("unet.width", "channels", "Channels of the finest level."),
    ("unet.lattice", "points", "Rows and columns of the image that a cloud is projected to."),
    ("lsm.width", "channels", "Channels of the finest level."),
    ("lsm.lattice", "points", "Rows and columns of the image that a cloud is projected to."),
    ("ufno.width", "channels", "Channels of the finest level."),
    ("ufno.lattice", "points", "Rows and columns of the image that a cloud is projected to."),
    ("uno.width", "channels", "Channels of the finest level."),
    ("uno.lattice", "points", "Rows and columns of the image that a cloud is projected to."),
    (
        "unet.padded",
        "points",
        "Extents of the grid after zero padding; 0 is the next multiple of 16. A line is padded to the second.",
    ),
    (
        "lsm.padded",
        "points",
        "Extents of the grid after zero padding; 0 is the next multiple of 16. A line is padded to the second.",
    ),
    (
        "ufno.padded",
        "points",
        "Extents of the grid after zero padding; 0 is the next multiple of 16. A line is padded to the second.",
    ),
    (
        "uno.padded",
        "points",
        "Extents of the grid after zero padding; 0 is the next multiple of 16. A line is padded to the second.",
    ),
    (
        "ffno.padded",
        "points",
        "Extents after zero padding; 0 is the next multiple of 16, on a line its points. A trained model keeps the length of its waves on other grids.",
    ),
    ("ffno.depth", "–", "Number of layers."),
    ("mwt.width", "channels", "Hidden channels of the lifting and of the head."),
    ("mwt.depth", "–", "Number of layers."),
    ("mwt.lattice", "points", "Rows and columns of the image that a cloud is projected to, a power of two."),
    ("mwt.modes", "–", "Frequencies along each axis of the projection of a cloud."),
    ("polynomials", "–", "Legendre polynomials along each axis; the image has their square as channels."),
    ("wavelet_modes", "–", "Frequencies along each axis that a level of the wavelets mixes."),
    ("fno.depth", "–", "Number of Fourier layers."),
    ("ono.width", "channels", "Channels of the features and of the field."),
    ("ono.heads", "–", "Heads of the attention."),
    ("ono.basis", "–", "Orthonormal features of a block, 64 at most."),
    (
        "ono.attention",
        "–",
        "What mixes the points of the features: `nystrom` through landmarks, `efficient` (keys softmaxed over points) or `linear`.",
    ),
    ("ono.landmarks", "–", "Landmarks of Nyström attention."),
    ("deeponet.width", "channels", "Terms of the sum, and hidden channels of branch and trunk."),
    ("deeponet.depth", "–", "Linear maps of the branch and of the trunk."),
];

/// The whole reference, as Markdown.
pub fn reference() -> String {
    let mut out = String::from(
        "# Keys of an experiment\n\n\
         Every key can be set in an experiment file and with `--set KEY=VALUE`; `lamo train WHAT --print-config` prints the values that \
         an experiment has. `lamo train --keys` prints this page.\n",
    );
    let defaults = keys::parse("defaults", DEFAULTS).unwrap_or_default();
    let layers = layers();
    for (title, prefix) in [("Experiment", ""), ("Data", "data."), ("Training", "train.")] {
        let _ = write!(out, "\n## {title}\n\n");
        let belongs = |key: &str| match prefix {
            "" => !key.starts_with("data.") && !key.starts_with("train."),
            prefix => key.starts_with(prefix),
        };
        for (key, unit, meaning) in KEYS.iter().filter(|(key, ..)| belongs(key)) {
            let default = value(&defaults, key).map_or_else(|| "none".to_owned(), |value| shown(&value));
            entry(&mut out, key, (unit, meaning), &default, &presets(&layers, key));
            out += &choices(key);
        }
    }
    for row in MODELS {
        let _ = write!(out, "\n## Settings of the model {}\n\n", row.name);
        let layers = model_layers(row);
        for (name, default) in row.defaults() {
            let key = format!("model.settings.{name}");
            entry(&mut out, &key, about(row.name, &name), &shown(&default), &presets(&layers, &key));
        }
    }
    problems(&mut out, &layers);
    out
}

/// One key: its meaning in a line, then unit, default and presets.
fn entry(out: &mut String, key: &str, (unit, meaning): (&str, &str), default: &str, presets: &str) {
    let unit = if unit == "–" { String::new() } else { format!("Unit: {unit}. ") };
    let _ = writeln!(out, "- `{key}`: {meaning}\n  {unit}Default: {default}.{presets}");
}

/// The values of keys that have a list of them.
fn choices(key: &str) -> String {
    let list: Vec<(&str, &str)> = match key {
        "train.loss" => Loss::ALL.iter().map(|loss| (loss.name(), loss.summary())).collect(),
        "data.time" => {
            let all = [TimeRole::Auto, TimeRole::Steady, TimeRole::RollOut, TimeRole::ByTime];
            all.iter().map(|role| (role.name(), role.summary())).collect()
        }
        _ => Vec::new(),
    };
    list.iter().map(|(name, summary)| format!("  - `{name}`: {summary}.\n")).collect()
}

/// Unit and meaning of a setting of a model; both are empty for an unknown one.
fn about(model: &str, setting: &str) -> (&'static str, &'static str) {
    let own = format!("{model}.{setting}");
    let find = |name: &str| SETTINGS.iter().find(|(known, ..)| *known == name);
    find(&own).or_else(|| find(setting)).map_or(("–", ""), |(_, unit, meaning)| (*unit, *meaning))
}

/// The value of a dotted key.
fn value(table: &Table, key: &str) -> Option<Value> {
    let mut path = key.split('.');
    let first = table.get(path.next()?)?.clone();
    path.try_fold(first, |value, name| value.as_table()?.get(name).cloned())
}

fn shown(value: &Value) -> String {
    let text = value.to_string();
    if text == "\"\"" { "empty".to_owned() } else { format!("`{}`", text.trim_matches('"')) }
}

/// A preset or a recipe with the keys that it sets.
type Layer = (String, Table);

/// The benchmarks, your own data, and the recipes of all models.
fn layers() -> Vec<Layer> {
    let mut layers = Vec::new();
    for (name, mut shared) in shared_keys() {
        shared.remove(best::TABLE); // a part of the model's
        let quick = shared.remove("quick");
        layers.push((name.to_owned(), shared));
        if let Some(Value::Table(quick)) = quick {
            layers.push((format!("{name} quick"), quick));
        }
    }
    layers.extend(MODELS.iter().flat_map(model_layers));
    layers
}

/// The files of the benchmarks and of your own data.
fn shared_keys() -> impl Iterator<Item = (&'static str, Table)> {
    let texts = BENCHMARKS.iter().map(|row| (row.name, row.keys)).chain([(OWN, OWN_KEYS)]);
    texts.map(|(name, text)| (name, keys::parse(name, text).unwrap_or_default()))
}

/// The recipes and sizes of one model.
fn model_layers(row: &Row) -> Vec<Layer> {
    let parsed = |name: String, text: &str| {
        let table = keys::parse(&name, text).unwrap_or_default();
        (name, table)
    };
    let names = || BENCHMARKS.iter().map(|row| row.name).chain([OWN]);
    let recipe = |name: &str| (row.recipe)(name).map(|text| parsed(format!("{name}-{}", row.name), text));
    let quick = |name: &str| (row.quick)(name).map(|text| parsed(format!("{name}-{} quick", row.name), text));
    let variants = row.variants.iter();
    let variants = variants.map(|other| parsed(format!("{}-{}-{}", other.benchmark, row.name, other.name), other.text));
    let best = shared_keys().filter_map(|(name, mut shared)| {
        let keys = best::layer(name, row.name, shared.remove(best::TABLE)).ok()?;
        Some((format!("{name}-{} best", row.name), keys))
    });
    names().filter_map(recipe).chain(variants).chain(names().filter_map(quick)).chain(best).collect()
}

/// Which layers set a key, those with the same value together: ` Set to 500 by a, b; to 40 by c.`
fn presets(layers: &[Layer], key: &str) -> String {
    let mut groups: Vec<(String, Vec<&str>)> = Vec::new();
    for (name, table) in layers {
        let Some(value) = value(table, key).map(|value| shown(&value)) else { continue };
        match groups.iter_mut().find(|(known, _)| *known == value) {
            Some((_, names)) => names.push(name),
            None => groups.push((value, vec![name])),
        }
    }
    let groups: Vec<_> = groups.iter().map(|(value, names)| format!("to {value} by {}", names.join(", "))).collect();
    if groups.is_empty() { String::new() } else { format!(" Set {}.", groups.join("; ")) }
}

/// `data.settings` of each problem.
#[cfg(feature = "solvers")]
fn problems(out: &mut String, layers: &[Layer]) {
    for problem in lamo_physics::problems::PROBLEMS {
        let _ = write!(out, "\n## Settings of the problem {}\n\n", problem.name);
        let settings = super::request::problem_settings(problem.name).unwrap_or_default();
        let own: Vec<Layer> =
            layers.iter().filter(|(name, _)| name.split(' ').next() == Some(problem.name)).cloned().collect();
        for parameter in problem.parameters {
            let key = format!("data.settings.{}", parameter.name);
            let unit = if parameter.unit == "1" { "–" } else { parameter.unit };
            let default = value(&settings, &key).map_or_else(String::new, |value| shown(&value));
            let meaning = sentence(parameter.meaning);
            entry(out, &key, (unit, &meaning), &default, &presets(&own, &key));
        }
    }
}

/// Without solvers, the parameters of problems are unknown.
#[cfg(not(feature = "solvers"))]
fn problems(_: &mut String, _: &[Layer]) {}

/// Begins with a capital letter and ends with a full stop.
#[cfg(feature = "solvers")]
fn sentence(text: &str) -> String {
    let mut letters = text.trim_end_matches('.').chars();
    let first: String = letters.next().map(|first| first.to_uppercase().collect()).unwrap_or_default();
    format!("{first}{}.", letters.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_has_a_row_and_every_row_is_a_key() {
        let mut known = keys::flatten(&keys::parse("defaults", DEFAULTS).unwrap());
        known.retain(|key| key != "data.settings");
        known.push("data.folder".into());
        let mut rows: Vec<String> = KEYS.iter().map(|(key, ..)| (*key).to_owned()).collect();
        known.sort();
        rows.sort();
        assert_eq!(rows, known);
    }

    #[test]
    fn every_setting_of_every_model_has_a_meaning() {
        for row in MODELS {
            for (name, _) in row.defaults() {
                let (_, meaning) = about(row.name, &name);
                assert!(meaning.ends_with('.'), "SETTINGS lacks {name} of model {}: say what it means", row.name);
            }
        }
    }

    #[test]
    fn presets_with_the_same_value_stand_together() {
        let layer = |name: &str, text: &str| (name.to_owned(), text.parse::<Table>().unwrap());
        let layers = [layer("a", "x.y = 1"), layer("b", "x.y = 2"), layer("c", "x.y = 1"), layer("d", "z = 1")];
        assert_eq!(presets(&layers, "x.y"), " Set to `1` by a, c; to `2` by b.");
        assert_eq!(presets(&layers, "x.z"), "");
    }
}
