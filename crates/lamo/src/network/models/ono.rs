//! ONO (Xiao et al., ICML 2024), as in the Neural-Solver-Library: one stream makes features, the other is moved by the kernel
//! that they span,
//!
//! x ← x + A(LN₁ x);  x ← x + mlp(LN₂ x);  f ← mlp2(LN₃(f + K(x) f)),  K of [`OrthogonalKernel`].
//!
//! A is Nyström, efficient or linear attention. There is no residual around mlp2; in the last block it is a linear map to the
//! outputs. The running covariances are states of the model. The library leaves them out of a fresh weights file, so here they
//! may be missing.

use super::{Authored, Hints, Inferred, OwnData, Row, Settings, Shapes, Support, Translated, Variant};
use super::{check_unified, read};
use crate::error::{Refusal, require};
use crate::network::layers::embedding::{Table, lattice_points};
use crate::network::layers::{EfficientAttention, LayerNorm, LinearAttention, LinearScale, NystromAttention};
use crate::network::layers::{FILTER, ITERATIONS, LIBRARY_MLP, Lifting, LiftingShape, Linear, Mlp, OrthogonalKernel};
use crate::network::{Activation, Input, Mode, Model, Scope, Style};
use crate::task::Task;
use lamo_geometry::Grid;
use lamo_tensor::Tensor;
use serde::{Deserialize, Serialize};

/// How the points of the feature stream see each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Attention {
    /// Through landmarks.
    Nystrom,
    /// Keys softmaxed over the points.
    Efficient,
    /// That of the Galerkin Transformer.
    Linear,
}

/// All settings; the defaults are the authors'.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// C, channels of both streams.
    pub width: usize,
    /// Number of blocks.
    pub depth: usize,
    /// Heads of the attention.
    pub heads: usize,
    /// Hidden channels of an MLP over the width.
    pub mlp_ratio: usize,
    /// Orthonormal features of a block.
    pub basis: usize,
    /// What mixes the points of the feature stream.
    pub attention: Attention,
    /// Landmarks of Nyström attention.
    pub landmarks: usize,
    /// The activation of the lifting and of a block's MLP.
    pub activation: Activation,
    /// Side of the lattice whose distances replace the positions; 0 keeps the positions.
    pub unified_positions: usize,
    /// Gives the positions a second time, as input functions, as some scripts of the library do.
    pub positions_twice: bool,
    /// First values of the linear maps; small is the library's.
    pub initial: Style,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            width: 128,
            depth: 8,
            heads: 8,
            mlp_ratio: 1,
            basis: 8,
            attention: Attention::Nystrom,
            landmarks: 256,
            activation: Activation::Gelu,
            unified_positions: 0,
            positions_twice: false,
            initial: Style::Small,
        }
    }
}

/// Features at most: a block of a GPU factors a matrix of so many rows.
const MOST_FEATURES: usize = 64;
/// Landmarks at most; a larger matrix of them costs more than attention without landmarks.
const MOST_LANDMARKS: usize = 4096;

impl Config {
    fn check(&self, task: &Task) -> Result<(), Refusal> {
        let Config { width, depth, heads, mlp_ratio, basis, landmarks, .. } = *self;
        let sizes = [("width", width), ("depth", depth), ("heads", heads), ("mlp_ratio", mlp_ratio)];
        for (name, value) in sizes.into_iter().chain([("basis", basis), ("landmarks", landmarks)]) {
            require(value > 0, || format!("model ono: {name} must be at least 1, found 0"))?;
        }
        require(width.is_multiple_of(heads), || {
            format!("model ono: width {width} does not divide into {heads} heads")
        })?;
        require(basis <= MOST_FEATURES, || format!("model ono: basis is at most {MOST_FEATURES}, found {basis}"))?;
        require(landmarks <= MOST_LANDMARKS, || {
            format!("model ono: landmarks are at most {MOST_LANDMARKS}, found {landmarks}")
        })?;
        require(!task.time.is_input() || width >= 2, || {
            format!("model ono: a time needs a width of at least 2, found {width}")
        })?;
        check_unified("ono", self.unified_positions, task)
    }
}

enum Mixer<'g> {
    Nystrom(NystromAttention<'g>),
    Efficient(EfficientAttention<'g>),
    Linear(LinearAttention<'g>),
}

impl<'g> Mixer<'g> {
    fn new(scope: &Scope<'_, 'g>, config: &Config) -> Self {
        let Config { width, heads, landmarks, .. } = *config;
        match config.attention {
            Attention::Nystrom => Mixer::Nystrom(NystromAttention::new(scope, landmarks, heads, width)),
            Attention::Efficient => Mixer::Efficient(EfficientAttention::new(scope, heads, width)),
            Attention::Linear => Mixer::Linear(LinearAttention::new(scope, LinearScale::Galerkin, heads, width)),
        }
    }

    fn forward(&self, features: Tensor<'g>) -> Tensor<'g> {
        match self {
            Mixer::Nystrom(attention) => attention.forward(features),
            Mixer::Efficient(attention) => attention.forward(features),
            Mixer::Linear(attention) => attention.forward(features, features),
        }
    }
}

/// The map at the end of a block.
enum Head<'g> {
    Inner(Mlp<'g>),
    Last(Linear<'g>),
}

struct Block<'g> {
    mixer_norm: LayerNorm<'g>,
    mixer: Mixer<'g>,
    mlp_norm: LayerNorm<'g>,
    mlp: Mlp<'g>,
    kernel: OrthogonalKernel<'g>,
    norm: LayerNorm<'g>,
    head: Head<'g>,
}

impl<'g> Block<'g> {
    fn new(scope: &Scope<'_, 'g>, config: &Config, outputs: Option<usize>) -> Self {
        let Config { width, mlp_ratio, basis, .. } = *config;
        let mlp = |name: &str| Mlp::named(&scope.enter(name), LIBRARY_MLP, [width, mlp_ratio * width, width]);
        let norm = |name: &str| LayerNorm::new(&scope.enter(name), width);
        Block {
            mixer_norm: norm("ln_1"),
            mixer: Mixer::new(&scope.enter("Attn"), config),
            mlp_norm: norm("ln_2"),
            mlp: mlp("mlp"),
            kernel: OrthogonalKernel::new(scope, width, basis),
            norm: norm("ln_3"),
            head: match outputs {
                Some(outputs) => Head::Last(Linear::new(&scope.enter("mlp2"), width, outputs)),
                None => Head::Inner(mlp("mlp2")),
            },
        }
    }

    /// Features and field, `[batch, points, width]` each.
    fn forward(&self, [features, field]: [Tensor<'g>; 2], mode: Mode) -> [Tensor<'g>; 2] {
        let features = features + self.mixer.forward(self.mixer_norm.forward(features));
        let features = features + self.mlp.forward(self.mlp_norm.forward(features));
        let field = self.norm.forward(self.kernel.forward(field, features, mode));
        let field = match &self.head {
            Head::Inner(mlp) => mlp.forward(field),
            Head::Last(linear) => linear.forward(field),
        };
        [features, field]
    }
}

struct Ono<'g> {
    features: Mlp<'g>,
    field: Lifting<'g>,
    blocks: Vec<Block<'g>>,
}

fn build<'g>(scope: &Scope<'_, 'g>, task: &Task, settings: &Settings) -> Result<Box<dyn Model<'g> + 'g>, Refusal> {
    let config: Config = read("ono", settings)?;
    config.check(task)?;
    let scope = scope.with_style(config.initial).with_activation(config.activation);
    let Config { width, depth, unified_positions: side, positions_twice, .. } = config;
    let positions = if side == 0 { task.space } else { lattice_points(task.grid, task.space, side) };
    let inputs = positions + task.input_channels() + if positions_twice { task.space } else { 0 };
    let lifted = LiftingShape {
        unified_positions: side,
        table: Table::Single,
        positions_twice,
        placeholder: true,
        ..LiftingShape::usual(width)
    };
    let block = |number: usize| {
        let outputs = (number + 1 == depth).then(|| task.output_channels());
        Block::new(&scope.enter("blocks").enter(&number.to_string()), &config, outputs)
    };
    Ok(Box::new(Ono {
        features: Mlp::named(&scope.enter("preprocess_x"), LIBRARY_MLP, [inputs, 2 * width, width]),
        field: Lifting::named(&scope, "preprocess_z", task, lifted),
        blocks: (0..depth).map(block).collect(),
    }))
}

impl<'g> Model<'g> for Ono<'g> {
    fn forward(&self, input: &Input<'g>, mode: Mode) -> Tensor<'g> {
        let features = self.features.forward(self.field.channels(input));
        let streams = [features, self.field.forward(input)];
        let [_, field] = self.blocks.iter().fold(streams, |streams, block| block.forward(streams, mode));
        field
    }
}

/// Sizes and training of the library's scripts; those of the authors where the library has none.
fn recipe(benchmark: &str) -> Option<&'static str> {
    Some(match benchmark {
        "darcy" => {
            "# ONO on darcy: sizes and training of the Neural-Solver-Library.
             model.settings = { width = 128, depth = 10, heads = 8, mlp_ratio = 2, basis = 32, attention = \"nystrom\" }
             train = { rate = 0.001 }"
        }
        "navier-stokes" => {
            "# ONO on navier-stokes: sizes and training of the Neural-Solver-Library.
             model.settings = { width = 128, depth = 8, heads = 8, mlp_ratio = 1, basis = 16, attention = \"efficient\" }
             train = { batch = 8, rate = 0.001, weight_decay = 1e-5, clip = 0.1, teacher_forcing = false }"
        }
        "elasticity" => {
            "# ONO on elasticity: sizes and training of its authors; the library has no script.
             model.settings = { width = 128, depth = 8, heads = 8, mlp_ratio = 1, basis = 8, attention = \"nystrom\" }
             train = { batch = 8, schedule = \"onecycle\" }"
        }
        "plasticity" => {
            "# ONO on plasticity: sizes and training of the Neural-Solver-Library.
             model.settings = { width = 32, depth = 8, heads = 8, mlp_ratio = 1, basis = 8, attention = \"nystrom\" }
             train = { batch = 4, clip = 0.0 }
             data.scrambled = false"
        }
        "airfoil" => {
            "# ONO on airfoil: sizes and training of its authors; the library has no script.
             model.settings = { width = 128, depth = 6, heads = 8, mlp_ratio = 1, basis = 8, attention = \"nystrom\" }"
        }
        "pipe" => {
            "# ONO on pipe: sizes and training of the Neural-Solver-Library.
             model.settings = { width = 128, depth = 8, heads = 8, mlp_ratio = 2, basis = 8, attention = \"nystrom\", positions_twice = true }
             train = { batch = 4 }"
        }
        _ => return None,
    })
}

const VARIANTS: &[Variant] = &[Variant {
    benchmark: "plasticity",
    name: "authors",
    text: "# ONO on plasticity: sizes and training of its authors.
           model.settings = { width = 128, attention = \"efficient\" }
           train = { batch = 8, clip = 0.1 }",
}];

/// Sizes that train in minutes on two cores, from weights of the usual size: small ones learn little in the first hundred steps.
fn quick(benchmark: &str) -> Option<&'static str> {
    Some(match benchmark {
        "darcy" | "navier-stokes" => {
            "model.settings = { width = 32, depth = 3, heads = 4, mlp_ratio = 1, basis = 8, attention = \"efficient\", initial = \"fan-in\" }"
        }
        "elasticity" => {
            "model.settings = { width = 64, depth = 4, heads = 4, mlp_ratio = 1, basis = 8, attention = \"efficient\", initial = \"fan-in\" }"
        }
        "plasticity" | "airfoil" | "pipe" => {
            "model.settings = { width = 32, depth = 2, heads = 4, mlp_ratio = 1, basis = 8, attention = \"efficient\", initial = \"fan-in\" }"
        }
        "own" => {
            "model.settings = { width = 32, depth = 4, heads = 4, mlp_ratio = 1, basis = 8, attention = \"efficient\", initial = \"fan-in\" }"
        }
        _ => return None,
    })
}

fn tiny(_task: &Task) -> Settings {
    toml::toml! {
        width = 16
        depth = 2
        heads = 2
        mlp_ratio = 1
        basis = 3
        landmarks = 4
    }
}

/// Heads that the shapes of attention without landmarks do not tell; the scripts have 8.
const USUAL_HEADS: usize = 8;

fn infer(shapes: &Shapes, hints: &Hints) -> Option<Result<Inferred, Refusal>> {
    let inferred = || {
        let mut assumed = Vec::new();
        let (width, depth) = (shapes.extent("placeholder", 0)?, shapes.count("blocks.", 0));
        let attention = match () {
            () if shapes.has("blocks.0.Attn.to_qkv.weight") => Attention::Nystrom,
            () if shapes.has("blocks.0.Attn.to_q.weight") => Attention::Efficient,
            () => Attention::Linear,
        };
        let heads = match (attention, hints.setting("heads")) {
            (Attention::Nystrom, _) => shapes.extent("blocks.0.Attn.res_conv.weight", 0)?,
            (_, Some(heads)) => heads,
            _ => {
                assumed.push(format!("the attention has {USUAL_HEADS} heads (model.settings.heads)"));
                USUAL_HEADS
            }
        };
        if attention == Attention::Nystrom && hints.setting("landmarks").is_none() {
            assumed.push("the attention has 256 landmarks (model.settings.landmarks)".to_owned());
        }
        let grid = hints.grid.unwrap_or_else(|| {
            assumed.push("the points are a cloud of any size (task.grid)".to_owned());
            Grid::Cloud { points: 1 }
        });
        let unified_positions = hints.setting("unified_positions").unwrap_or(0);
        let lattice = hints.lattice(unified_positions, grid);
        let inputs = shapes.extent("preprocess_z.linear_pre.0.weight", 1)?;
        let [space, functions] = hints.split(inputs, lattice, grid, &mut assumed)?;
        let hidden = shapes.extent("blocks.0.mlp.linear_pre.0.weight", 0)?;
        let config = Config {
            width,
            depth,
            heads,
            mlp_ratio: super::shapes::ratio("mlp_ratio", hidden, width)?,
            basis: shapes.extent("blocks.0.mu", 0)?,
            attention,
            landmarks: hints.setting("landmarks").unwrap_or(Config::default().landmarks),
            unified_positions,
            ..Config::default()
        };
        let outputs = shapes.extent(&format!("blocks.{}.mlp2.weight", depth.saturating_sub(1)), 0)?;
        let time = shapes.has("time_fc.0.weight");
        Ok(Inferred { settings: super::settings(&config), grid, space, functions, outputs, time, assumed })
    };
    shapes.has("blocks.0.mu").then(inferred)
}

fn translate(authored: &Authored<'_>) -> Result<Translated, Refusal> {
    let model = authored.table("model");
    let attention = match model.0["attn_type"].as_str() {
        Some("nystrom") | None => Attention::Nystrom,
        Some("selfAttention") => Attention::Efficient,
        Some("linear") => Attention::Linear,
        Some(other) => return Err(Refusal::said(format!("gives attn_type as {other}, which ONO does not have"))),
    };
    let nystrom = authored.table("nystrom");
    let fixed = [("pinv_iterations", ITERATIONS), ("residual_conv_kernel", FILTER)];
    for (key, expected) in fixed.into_iter().filter(|(key, _)| !nystrom.0[key].is_null()) {
        let found = nystrom.number(key)?;
        require(found == expected, || Refusal::new(key, expected.to_string(), found.to_string()))?;
    }
    let landmarks = match nystrom.0["num_landmarks"].is_null() {
        true => Config::default().landmarks,
        false => nystrom.number("num_landmarks")?,
    };
    let config = Config {
        width: model.number("n_hidden")?,
        depth: model.number("n_layers")?,
        heads: model.number("n_heads")?,
        mlp_ratio: model.number("mlp_ratio")?,
        basis: model.number("psi_dim")?,
        attention,
        landmarks,
        activation: model.activation()?,
        unified_positions: model.unified_positions()?,
        ..Config::default()
    };
    let task = model.task(authored.library_grid()?, "out_dim")?;
    let single_stage = config.unified_positions > 0 || task.time.is_input();
    Ok(Translated { settings: super::settings(&config), task, single_stage })
}

pub(super) const ROW: Row = Row {
    name: "ono",
    summary: "ONO (ICML 2024): kernels spanned by orthonormal features of the points",
    paper: "Xiao, Hao, Lin, Deng, Su: Improved Operator Learning by Orthogonal Attention, ICML 2024, arXiv:2310.12487",
    supports: Support::EVERYTHING,
    ragged: false,
    build,
    defaults: super::defaults::<Config>,
    moved: |settings, _| Some(settings.clone()),
    embedding: |_, _| None,
    recipe,
    variants: VARIANTS,
    quick,
    own: OwnData::slice_settings,
    tiny,
    infer,
    translate: &[("ono", translate)],
};
