//! DeepONet (Lu et al. 2021, Eq. 2; the class and sizes of Geo-FNO's Elasticity script): a branch for the input function f and
//! a trunk for the query point y,
//!
//! u(y) = Σₖ bₖ(f) tₖ(y) + β,  b = W_L σ(… σ(W₁ f)),  t = σ(V_L σ(… σ(V₁ y))),  σ = ReLU.
//!
//! The branch sees the whole input function as one vector (the coordinates of all points where no function is given), so
//! its size fixes the number and the order of the points. A time is one more coordinate of y. Each output has a branch and a
//! trunk of its own.

use super::{Authored, Hints, Inferred, Row, Settings, Shapes, Support, Translated, read};
use crate::error::{Refusal, require};
use crate::network::layers::{Linear, relu};
use crate::network::{Activation, Initial, Input, Mode, Model, Scope};
use crate::task::Task;
use lamo_tensor::Tensor;
use serde::{Deserialize, Serialize};

/// All settings; the defaults are Geo-FNO's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// p, terms of the sum and hidden channels of branch and trunk.
    pub width: usize,
    /// L, linear maps of branch and of trunk.
    pub depth: usize,
}

impl Default for Config {
    fn default() -> Self {
        Config { width: 256, depth: 5 }
    }
}

fn build<'g>(scope: &Scope<'_, 'g>, task: &Task, settings: &Settings) -> Result<Box<dyn Model<'g> + 'g>, Refusal> {
    let Config { width, depth } = read("deeponet", settings)?;
    for (name, value) in [("width", width), ("depth", depth)] {
        require(value > 0, || Refusal::new(format!("model deeponet: {name}"), "at least 1", "0"))?;
    }
    let given = if task.input_channels() > 0 { task.input_channels() } else { task.space };
    let sizes = [task.grid.points() * given, task.space + usize::from(task.time.is_input())];
    let net = |output: usize| Net::new(&scope.enter("nets").enter(&output.to_string()), sizes, width, depth);
    Ok(Box::new(DeepONet { nets: (0..task.output_channels()).map(net).collect() }))
}

struct DeepONet<'g> {
    /// One for each output.
    nets: Vec<Net<'g>>,
}

impl<'g> Model<'g> for DeepONet<'g> {
    fn forward(&self, input: &Input<'g>, _mode: Mode) -> Tensor<'g> {
        let [batch, points, _] = input.positions.dims();
        let given = input.functions.unwrap_or(input.positions);
        let [_, _, channels] = given.dims();
        let given = given.reshape([batch, points * channels]);
        let query = match input.time {
            Some(time) => {
                let time = time.reshape([batch, 1, 1]).broadcast_to([batch, points, 1]);
                Tensor::concatenate(&[input.positions, time], 2)
            }
            None => input.positions,
        };
        let outputs: Vec<Tensor<'g>> = self.nets.iter().map(|net| net.forward(given, query)).collect();
        if let [only] = outputs[..] { only } else { Tensor::concatenate(&outputs, 2) }
    }
}

/// Branch, trunk and bias of one output.
struct Net<'g> {
    branch: Vec<Linear<'g>>,
    trunk: Vec<Linear<'g>>,
    /// `[1]` β
    bias: Tensor<'g>,
}

impl<'g> Net<'g> {
    fn new(scope: &Scope<'_, 'g>, [given, query]: [usize; 2], width: usize, depth: usize) -> Self {
        let maps = |name: &str, inputs: usize| -> Vec<Linear<'g>> {
            let size = |layer: usize| if layer == 1 { inputs } else { width };
            let scope = |layer: usize| scope.enter("modus").enter(&format!("{name}{layer}"));
            (1..=depth).map(|layer| Linear::new(&scope(layer), size(layer), width)).collect()
        };
        Net {
            branch: maps("BrLinM", given),
            trunk: maps("TrLinM", query),
            bias: scope.enter("params").parameter("bias", [1], Initial::Constant(0.0)),
        }
    }

    /// `[batch, points · channels]` and `[batch, points, coordinates]` → `[batch, points, 1]`
    fn forward(&self, given: Tensor<'g>, query: Tensor<'g>) -> Tensor<'g> {
        let last = self.branch.len() - 1;
        let branch = self.branch.iter().enumerate().fold(given, |features, (layer, map)| {
            let mapped = map.forward(features);
            if layer == last { mapped } else { relu(mapped) }
        });
        let trunk = self.trunk.iter().fold(query, |features, map| relu(map.forward(features)));
        let [batch, width] = branch.dims();
        trunk.matmul(branch.reshape([batch, width, 1])) + self.bias
    }
}

/// The sizes of Geo-FNO everywhere; the branch sees all input values of a sample.
fn recipe(benchmark: &str) -> Option<&'static str> {
    match benchmark {
        "darcy" | "navier-stokes" | "elasticity" | "plasticity" | "airfoil" | "pipe" => Some(
            "# DeepONet: width and depth of Geo-FNO's script, one branch and trunk per output, recipe as for LaMO.
             model.settings = { width = 256, depth = 5 }",
        ),
        _ => None,
    }
}

fn quick(_benchmark: &str) -> Option<&'static str> {
    Some("model.settings = { width = 64, depth = 4 }")
}

fn tiny(_task: &Task) -> Settings {
    toml::toml! {
        width = 32
        depth = 3
    }
}

/// The branch has points × channels inputs and the trunk coordinates + time, so that grid and coordinates must be known.
fn infer(shapes: &Shapes, hints: &Hints) -> Option<Result<Inferred, Refusal>> {
    const BRANCH: &str = "nets.0.modus.BrLinM1.weight";
    let inferred = || {
        let (given, query) = (shapes.extent(BRANCH, 1)?, shapes.extent("nets.0.modus.TrLinM1.weight", 1)?);
        let config = Config { width: shapes.extent(BRANCH, 0)?, depth: shapes.count("nets.0.modus.BrLinM", 1) };
        let grid = hints.points()?;
        let untold = |what: &str, advice: &str| {
            Refusal::said(format!("the shapes of the tensors do not tell {what}")).advise(advice)
        };
        let space = hints.space.filter(|space| [query, query - 1].contains(space));
        let space = space.ok_or_else(|| {
            let what = format!("whether a time is among the {query} inputs of the trunk");
            untold(&what, &format!("say it with --set task.space={query}, or {} with a time", query - 1))
        })?;
        let channels = super::shapes::ratio("points", given, grid.points())?;
        let functions = hints.functions.or((channels != space).then_some(channels)).ok_or_else(|| {
            let what = format!("whether the branch has the {space} coordinates or {space} functions");
            untold(&what, &format!("say it with --set task.functions=0 or {space}"))
        })?;
        let (settings, outputs, time) = (super::settings(&config), shapes.count("nets.", 0), query > space);
        Ok(Inferred { settings, grid, space, functions, outputs, time, assumed: Vec::new() })
    };
    shapes.has(BRANCH).then(inferred)
}

fn translate(authored: &Authored<'_>) -> Result<Translated, Refusal> {
    let model = authored.table("model");
    let config = Config { width: model.number("n_hidden")?, depth: model.number("n_layers")? };
    require(model.activation()? == Activation::Gelu, || Refusal::said("gives an act, and the class has ReLUs only"))?;
    let task = model.task(authored.library_grid()?, "out_dim")?;
    Ok(Translated { settings: super::settings(&config), task, single_stage: false })
}

pub(super) const ROW: Row = Row {
    name: "deeponet",
    summary: "DeepONet (2021): inner products of a branch for the input and a trunk for the point",
    paper: "Lu, Jin, Pang, Zhang, Karniadakis: Learning nonlinear operators via DeepONet based on the universal approximation \
            theorem of operators, Nature Machine Intelligence 2021",
    supports: Support::EVERYTHING,
    ragged: false,
    build,
    defaults: super::defaults::<Config>,
    moved: |_, _| None,
    embedding: |_, _| None,
    recipe,
    variants: &[],
    quick,
    own: |_| Settings::new(),
    tiny,
    infer,
    translate: &[("deeponet", translate)],
};
