//! Models: maps from functions on a grid to functions on the same grid. The registry has one row per model; a row
//! enrols a model in `lamo list`, `lamo train`, `lamo bench`, parity, and every claim that loops over the registry.
//!
//! To add a model:
//!
//! 1. Write `network/models/NAME.rs` with a `Config` (its settings, with defaults; unknown keys refused), a function that
//!    builds the model from a task and the settings, and at its end `pub(super) const ROW: Row`. The fields of [`Row`] say
//!    what else belongs there: the paper, the supported tasks, recipes for benchmarks, sizes for the preset `quick` and for
//!    tests, and the translation of the authors' classes if there are fixtures. A model without recipes has `|_| None`.
//! 2. Add `pub mod NAME;` below.
//! 3. Add `NAME::ROW` to [`MODELS`].
//!
//! No other file changes. `network/models/transolver.rs` is a short example.

mod authors;
pub mod deeponet;
pub mod factformer;
pub mod ffno;
pub mod fno;
mod frame;
pub mod galerkin;
pub mod gnot;
pub mod htnet;
pub mod lamo;
pub mod lsm;
pub mod mwt;
pub mod oformer;
pub mod ono;
pub mod resnet;
mod row;
mod shapes;
pub mod swin;
pub mod transolver;
pub mod ufno;
pub mod unet;
pub mod uno;

pub use authors::{Arguments, Authored, Translated, Translation};
pub use frame::{GridConfig, Norm};
pub use row::{Embedding, GridKind, OwnData, Row, Support, Variant};
pub use shapes::{Hints, Inferred, Shapes};

use crate::error::{Kind, Refusal, require};
use crate::task::Task;
use lamo_geometry::Grid;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A model's configuration as data. It has the keys of the model's `Config`; unknown keys are refused.
pub type Settings = toml::Table;

/// Every model.
pub const MODELS: &[Row] = &[
    lamo::ROW,
    transolver::ROW,
    fno::ROW,
    deeponet::ROW,
    ffno::ROW,
    resnet::ROW,
    unet::ROW,
    lsm::ROW,
    ufno::ROW,
    uno::ROW,
    mwt::ROW,
    galerkin::ROW,
    gnot::ROW,
    factformer::ROW,
    oformer::ROW,
    swin::ROW,
    htnet::ROW,
    ono::ROW,
];

/// A configuration as data.
fn settings<C: Serialize>(config: &C) -> Settings {
    Settings::try_from(config).expect("a configuration is a table of plain values")
}

/// The default settings of a configuration type, as data.
fn defaults<C: Default + Serialize>() -> Settings {
    settings(&C::default())
}

/// The largest whole number that a setting may have. Products of a few settings and of the sizes of a task then fit into 64
/// bits, so that no size wraps around.
const LARGEST_SETTING: i64 = 1 << 16;

/// Refuses a whole number above [`LARGEST_SETTING`], in a list too.
fn check_sizes(model: &str, settings: &Settings) -> Result<(), Refusal> {
    for (key, value) in settings {
        let list = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
        let large = list.iter().filter_map(toml::Value::as_integer).find(|number| *number > LARGEST_SETTING);
        require(large.is_none(), || {
            Refusal::new(
                format!("model {model}: setting {key}"),
                format!("at most {LARGEST_SETTING}"),
                large.unwrap_or_default().to_string(),
            )
        })?;
    }
    Ok(())
}

/// Settings that a model no longer has because they lowered the error on no benchmark, and the values that left them off. Runs and
/// models of earlier versions state them.
pub(crate) const RETIRED: [(&str, &str, &str); 2] =
    [("lamo", "position_convolution", "false"), ("lamo", "queries", "\"fixed\"")];

/// Refuses a setting that the model no longer has; [`Choice`] leaves out those that are off.
fn check_retired(model: &str, settings: &Settings) -> Result<(), Refusal> {
    let retired = RETIRED.iter().find(|(of, key, _)| *of == model && settings.contains_key(*key));
    retired.map_or(Ok(()), |(_, key, _)| {
        Err(Refusal::said(format!("model {model}: setting {key}: this version no longer has it"))
            .advise("use the version of lamo that trained the model"))
    })
}

/// Reads a model's own configuration; unknown keys, wrong types and numbers beyond all sizes are refused.
pub(crate) fn read<C: DeserializeOwned>(model: &str, settings: &Settings) -> Result<C, Refusal> {
    check_sizes(model, settings)?;
    check_retired(model, settings)?;
    settings.clone().try_into::<C>().map_err(|error| {
        let defaults = find(model).map(Row::defaults).unwrap_or_default();
        let wrong = |(key, value): &(&String, &toml::Value)| {
            let mut one = defaults.clone();
            one.insert((*key).clone(), (*value).clone());
            one.try_into::<C>().is_err()
        };
        let key = settings.iter().find(wrong).map(|(key, _)| format!(" setting {key}:")).unwrap_or_default();
        Refusal::said(format!("model {model}:{key} {}", error.message()))
    })
}

/// Refuses sizes of 0.
pub(crate) fn check_positive(model: &str, sizes: &[(&str, usize)]) -> Result<(), Refusal> {
    match sizes.iter().find(|(_, size)| *size == 0) {
        Some((name, _)) => Err(Refusal::new(format!("model {model}: {name}"), "at least 1", "0")),
        None => Ok(()),
    }
}

/// Refuses a rate at which nothing is kept.
pub(crate) fn check_rate(model: &str, name: &str, rate: f64) -> Result<(), Refusal> {
    require((0.0..1.0).contains(&rate), || {
        Refusal::new(format!("model {model}: {name}"), "a rate from 0 to below 1", rate.to_string())
    })
}

/// Refuses heads that do not divide the width, and a width without room for the embedding of a time.
pub(crate) fn check_heads(model: &str, width: usize, heads: usize, task: &Task) -> Result<(), Refusal> {
    require(width.is_multiple_of(heads), || {
        format!("model {model}: width {width} does not divide into {heads} heads")
    })?;
    require(!task.time.is_input() || width > 1, || {
        format!("model {model}: a time needs a width of at least 2, found {width}")
    })
}

/// Side of a window of attention at most; the bias has a number for each pair of its points.
const MOST_WINDOW: usize = 32;

/// Refuses windows that are too large for a table of all pairs of their points.
fn check_window(model: &str, side: usize) -> Result<(), Refusal> {
    require(side <= MOST_WINDOW, || {
        let expected = format!("at most {MOST_WINDOW} points a side");
        Refusal::new(format!("model {model}: window"), expected, side.to_string())
    })
}

/// The smallest extent into which squares of both sides fit.
fn least_common_multiple(one: usize, other: usize) -> usize {
    let (mut divisor, mut rest) = (one, other);
    while rest > 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    (one / divisor).saturating_mul(other)
}

/// Side of the lattice of unified positions at most; every point gets the square of it as features.
const MOST_SIDE: usize = 256;

/// The same in a volume, whose points get the cube of it.
const MOST_SIDE_IN_VOLUMES: usize = 40;

/// Refuses distances to a lattice of too many points, and those of clouds that do not lie in a plane; 0 is always allowed.
pub(crate) fn check_unified(model: &str, side: usize, task: &Task) -> Result<(), Refusal> {
    let most = if let Grid::Volume { .. } = task.grid { MOST_SIDE_IN_VOLUMES } else { MOST_SIDE };
    require(side != 1 && side <= most, || {
        format!("model {model}: a lattice of unified positions has 2 to {most} points a side, found {side}")
    })?;
    let placed = !matches!(task.grid, Grid::Cloud { .. }) || task.space == 2;
    require(side == 0 || placed, || {
        let space = task.space;
        format!(
            "model {model}: unified positions of a cloud need 2 coordinates, found {space}; set unified_positions = 0"
        )
    })
}

/// The row of a model by name.
pub fn find(name: &str) -> Result<&'static Row, Refusal> {
    MODELS.iter().find(|row| row.name == name).ok_or_else(|| {
        let known: Vec<_> = MODELS.iter().map(|row| row.name).collect();
        Refusal::said(format!("model {name:?} does not exist; there are {}", known.join(", "))).of(Kind::Missing)
    })
}

/// A model with its settings: the `[model]` table of an experiment and the `model.toml` of a model folder.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(from = "Stated")]
pub struct Choice {
    /// A name from [`MODELS`].
    pub name: String,
    /// Its settings; missing keys take their defaults.
    pub settings: Settings,
}

/// A model as a file states it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Stated {
    name: String,
    #[serde(default)]
    settings: Settings,
}

impl From<Stated> for Choice {
    fn from(Stated { name, mut settings }: Stated) -> Self {
        settings.retain(|key, value| !RETIRED.contains(&(name.as_str(), key, &value.to_string())));
        Choice { name, settings }
    }
}
