//! GNOT (Hao et al. 2023), as `GNOT` of the Neural-Solver-Library: points x attend to what was observed at them, and three
//! experts with gates by position follow each attention. With e = P_x(x) and z = P_z([x | a]) + placeholder + time, a block is
//!
//! u = e + A(LN₁ e, LN₂ z);  u ← u + LN₃ Σₘ gₘ Eₘ(u);  u ← u + A′(LN₄ u, LN₄ u);  u ← u + LN₅ Σₘ gₘ E′ₘ(u);  z ← u,
//!
//! with A of [`LinearAttention`] in its L1 scale and g = softmax(gate(x)). The stream starts from e again in each block, and
//! z only carries what is attended to. The authors' code has it the other way round.

use super::{Authored, Hints, Inferred, OwnData, Row, Settings, Shapes, Support, Translated};
use super::{check_heads, check_positive, check_unified, read};
use crate::error::Refusal;
use crate::network::layers::embedding::{Table, lattice_points, unified_positions};
use crate::network::layers::{
    LIBRARY_MLP, LayerNorm, Lifting, LiftingShape, Linear, LinearAttention, LinearScale, Mlp,
};
use crate::network::{Activation, Input, Mode, Model, Scope, Style};
use crate::task::Task;
use lamo_geometry::Grid;
use lamo_tensor::Tensor;
use serde::{Deserialize, Serialize};

/// All settings; the defaults are the library's usual ones.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// C, channels of the points.
    pub width: usize,
    /// Number of blocks.
    pub depth: usize,
    /// Heads of the attentions.
    pub heads: usize,
    /// Hidden channels of experts and gates over the width.
    pub mlp_ratio: usize,
    /// Experts after each attention.
    pub experts: usize,
    /// The activation of the liftings, the experts and the gates.
    pub activation: Activation,
    /// Side of the lattice whose distances replace the positions; 0 keeps the positions. The gates keep them always.
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
            mlp_ratio: 2,
            experts: 3,
            activation: Activation::Gelu,
            unified_positions: 0,
            positions_twice: false,
            initial: Style::Small,
        }
    }
}

fn build<'g>(scope: &Scope<'_, 'g>, task: &Task, settings: &Settings) -> Result<Box<dyn Model<'g> + 'g>, Refusal> {
    let config: Config = read("gnot", settings)?;
    let Config { width, depth, heads, mlp_ratio, experts, unified_positions, positions_twice, initial, .. } = config;
    let sizes = [("depth", depth), ("heads", heads), ("mlp_ratio", mlp_ratio), ("experts", experts), ("width", width)];
    check_positive("gnot", &sizes)?;
    check_heads("gnot", width, heads, task)?;
    check_unified("gnot", unified_positions, task)?;
    let scope = scope.with_style(initial).with_activation(config.activation);
    let positions = match unified_positions {
        0 => task.space,
        side => lattice_points(task.grid, task.space, side),
    };
    let lifted = LiftingShape {
        unified_positions,
        table: Table::Single,
        positions_twice,
        placeholder: true,
        ..LiftingShape::usual(width)
    };
    Ok(Box::new(Gnot {
        grid: task.grid,
        side: unified_positions,
        places: Mlp::named(&scope.enter("preprocess_x"), LIBRARY_MLP, [positions, 2 * width, width]),
        observed: Lifting::named(&scope, "preprocess_z", task, lifted),
        blocks: (0..depth)
            .map(|number| Block::new(&scope.enter("blocks").enter(&number.to_string()), task.space, &config))
            .collect(),
        project: Mlp::new(&scope, [width, 2 * width, task.output_channels()]),
    }))
}

/// The model.
struct Gnot<'g> {
    grid: Grid,
    side: usize,
    /// P_x
    places: Mlp<'g>,
    /// P_z with placeholder and time
    observed: Lifting<'g>,
    blocks: Vec<Block<'g>>,
    project: Mlp<'g>,
}

impl<'g> Model<'g> for Gnot<'g> {
    fn forward(&self, input: &Input<'g>, _mode: Mode) -> Tensor<'g> {
        let places = match self.side {
            0 => input.positions,
            side => unified_positions(input.positions, self.grid, side, Table::Single),
        };
        let (places, observed) = (self.places.forward(places), self.observed.forward(input));
        let features = self.blocks.iter().fold(observed, |z, block| block.forward(places, z, input));
        self.project.forward(features)
    }
}

struct Block<'g> {
    /// LN₁ to LN₅
    norms: [LayerNorm<'g>; 5],
    own: LinearAttention<'g>,
    cross: LinearAttention<'g>,
    first: Vec<Mlp<'g>>,
    second: Vec<Mlp<'g>>,
    gate: [Linear<'g>; 3],
    activation: Activation,
}

impl<'g> Block<'g> {
    fn new(scope: &Scope<'_, 'g>, space: usize, config: &Config) -> Self {
        let Config { width, heads, mlp_ratio, experts, .. } = *config;
        let hidden = mlp_ratio * width;
        let attention = |name: &str| LinearAttention::new(&scope.enter(name), LinearScale::L1, heads, width);
        let mixture = |name: &str| -> Vec<Mlp<'g>> {
            let expert = |number: usize| scope.enter(name).enter(&number.to_string());
            (0..experts).map(|number| Mlp::named(&expert(number), ["0", "2"], [width, hidden, width])).collect()
        };
        let gate = |layer: &str, inputs, outputs| Linear::new(&scope.enter("gatenet").enter(layer), inputs, outputs);
        Block {
            norms: ["ln1", "ln2", "ln3", "ln4", "ln5"].map(|name| LayerNorm::new(&scope.enter(name), width)),
            own: attention("selfattn"),
            cross: attention("crossattn"),
            first: mixture("moe_mlp1"),
            second: mixture("moe_mlp2"),
            gate: [gate("0", space, hidden), gate("2", hidden, hidden), gate("4", hidden, experts)],
            activation: config.activation,
        }
    }

    /// e and z, `[batch, points, width]` each, with positions and mask of the input → the next z
    fn forward(&self, places: Tensor<'g>, observed: Tensor<'g>, input: &Input<'g>) -> Tensor<'g> {
        let (positions, mask) = (input.positions, input.mask);
        let [norm1, norm2, norm3, norm4, norm5] = &self.norms;
        let [first, second, last] = &self.gate;
        let hidden = self.activation.apply(first.forward(positions));
        let hidden = self.activation.apply(second.forward(hidden));
        let gates = last.forward(hidden).lean_softmax(); // [batch, points, experts]
        let u = places + self.cross.forward_masked(norm1.forward(places), norm2.forward(observed), mask);
        let u = u + norm3.forward(mixture(&self.first, gates, u));
        let normed = norm4.forward(u);
        let u = u + self.own.forward_masked(normed, normed, mask);
        u + norm5.forward(mixture(&self.second, gates, u))
    }
}

/// Σₘ gₘ Eₘ(u) at each point.
fn mixture<'g>(experts: &[Mlp<'g>], gates: Tensor<'g>, features: Tensor<'g>) -> Tensor<'g> {
    let parts = experts.iter().enumerate().map(|(m, expert)| gates.slice(2, m, m + 1) * expert.forward(features));
    parts.reduce(|sum, part| sum + part).expect("there is an expert")
}

/// Sizes and training of the library's scripts.
fn recipe(benchmark: &str) -> Option<&'static str> {
    Some(match benchmark {
        "darcy" => {
            "# GNOT on darcy: sizes and training of the Neural-Solver-Library.
             model.settings = { width = 128, depth = 3, heads = 8, mlp_ratio = 2 }
             train = { rate = 0.001, weight_decay = 5e-5, clip = 0.0, loss = \"relative-l2\" }"
        }
        "navier-stokes" => {
            "# GNOT on navier-stokes: sizes and training of the Neural-Solver-Library.
             model.settings = { width = 128, depth = 3, heads = 8, mlp_ratio = 2 }
             train = { batch = 4, rate = 0.001, weight_decay = 5e-5 }"
        }
        "elasticity" => {
            "# GNOT on elasticity: sizes and training of the Neural-Solver-Library.
             model.settings = { width = 128, depth = 8, heads = 8, mlp_ratio = 2 }
             train = { clip = 0.0 }"
        }
        "plasticity" => {
            "# GNOT on plasticity: sizes and training of the Neural-Solver-Library.
             model.settings = { width = 128, depth = 8, heads = 8, mlp_ratio = 1 }
             train = { clip = 0.0 }
             data.scrambled = false"
        }
        "airfoil" => {
            "# GNOT on airfoil: sizes and training of the Neural-Solver-Library.
             model.settings = { width = 128, depth = 8, heads = 8, mlp_ratio = 1 }
             train = { clip = 0.0 }"
        }
        "pipe" => {
            "# GNOT on pipe: sizes and training of the Neural-Solver-Library.
             model.settings = { width = 128, depth = 8, heads = 8, mlp_ratio = 2, positions_twice = true }
             train = { batch = 4, clip = 0.0 }"
        }
        _ => return None,
    })
}

/// Sizes that train in minutes on two cores, and weights that learn from the first epochs on.
fn quick(benchmark: &str) -> Option<&'static str> {
    Some(match benchmark {
        "darcy" | "navier-stokes" | "plasticity" | "airfoil" | "pipe" => {
            "model.settings = { width = 32, depth = 2, heads = 4, mlp_ratio = 1, initial = \"fan-in\" }"
        }
        "elasticity" => "model.settings = { width = 48, depth = 2, heads = 4, mlp_ratio = 1, initial = \"fan-in\" }",
        "own" => "model.settings = { width = 32, depth = 3, heads = 4, mlp_ratio = 1 }",
        _ => return None,
    })
}

fn tiny(_task: &Task) -> Settings {
    toml::toml! {
        width = 16
        depth = 1
        heads = 2
        mlp_ratio = 1
    }
}

fn infer(shapes: &Shapes, hints: &Hints) -> Option<Result<Inferred, Refusal>> {
    const GATE: &str = "blocks.0.gatenet.0.weight";
    let inferred = || {
        let (width, mut assumed) = (shapes.extent("placeholder", 0)?, Vec::new());
        let grid = hints.any_grid(&mut assumed);
        let (space, unified_positions) = (shapes.extent(GATE, 1)?, hints.setting("unified_positions").unwrap_or(0));
        let places = shapes.extent("preprocess_x.linear_pre.0.weight", 1)?;
        let functions = shapes.extent("preprocess_z.linear_pre.0.weight", 1)?.saturating_sub(places);
        let config = Config {
            width,
            depth: shapes.count("blocks.", 0),
            heads: hints.heads(&mut assumed),
            mlp_ratio: super::shapes::ratio("mlp_ratio", shapes.extent(GATE, 0)?, width)?,
            experts: shapes.count("blocks.0.moe_mlp1.", 0),
            unified_positions,
            ..Config::default()
        };
        let (outputs, time) = (shapes.extent("fc2.weight", 0)?, shapes.has("time_fc.0.weight"));
        Ok(Inferred { settings: super::settings(&config), grid, space, functions, outputs, time, assumed })
    };
    shapes.has(GATE).then(inferred)
}

fn translate(authored: &Authored<'_>) -> Result<Translated, Refusal> {
    let model = authored.table("model");
    let config = Config {
        width: model.number("n_hidden")?,
        depth: model.number("n_layers")?,
        heads: model.number("n_heads")?,
        mlp_ratio: model.number("mlp_ratio")?,
        experts: model.number_or("n_experts", Config::default().experts)?,
        activation: model.activation()?,
        unified_positions: model.unified_positions()?,
        ..Config::default()
    };
    let task = model.task(authored.library_grid()?, "out_dim")?;
    let single_stage = config.unified_positions > 0 || task.time.is_input();
    Ok(Translated { settings: super::settings(&config), task, single_stage })
}

pub(super) const ROW: Row = Row {
    name: "gnot",
    summary: "GNOT (ICML 2023): linear attention to the observations, experts gated by position",
    paper: "Hao et al.: GNOT: A General Neural Operator Transformer for Operator Learning, ICML 2023, arXiv:2302.14376",
    supports: Support::EVERYTHING,
    ragged: true,
    build,
    defaults: super::defaults::<Config>,
    moved: |settings, _| Some(settings.clone()),
    embedding: |_, _| None,
    recipe,
    variants: &[],
    quick,
    own: OwnData::slice_settings,
    tiny,
    infer,
    translate: &[("gnot", translate)],
};
