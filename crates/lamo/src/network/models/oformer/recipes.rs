//! Recipes of OFormer: the authors' sizes and training, small sizes, and sizes for tests.

use crate::network::models::Settings;
use crate::task::Task;

/// The authors' sizes for Darcy and Navier–Stokes; the other benchmarks have those for Darcy, and Plasticity those for
/// Navier–Stokes.
pub(super) fn recipe(benchmark: &str) -> Option<&'static str> {
    Some(match benchmark {
        "darcy" => {
            "# OFormer on darcy: the authors' sizes, rate and dropout, with one optimiser.
             model.settings = { width = 96, depth = 6, heads = 4, latent = 256, dropout = 0.03, embedding_dropout = 0.05 }
             train = { batch = 8, rate = 0.0008, optimiser = \"adam\", weight_decay = 1e-4, clip = 0.0 }"
        }
        "navier-stokes" => {
            "# OFormer on navier-stokes: the authors' sizes and rate, one latent step from the last ten snapshots to the next.
             model.settings = { width = 96, depth = 5, heads = 1, latent = 384, steps = 1, propagators = 1, frequency = 8.0 }
             train = { rate = 0.0005, weight_decay = 1e-4, clip = 2.0 }"
        }
        "plasticity" => {
            "# OFormer on plasticity: the authors' sizes for navier-stokes, a latent step for each time; recipe as for LaMO.
             model.settings = { width = 96, depth = 5, heads = 1, latent = 384, propagators = 1, frequency = 8.0 }
             data.scrambled = false"
        }
        "elasticity" => {
            "# OFormer on elasticity: the authors' sizes for darcy, recipe as for LaMO.
             model.settings = { width = 96, depth = 6, heads = 4, latent = 256 }"
        }
        "airfoil" => {
            "# OFormer on airfoil: the authors' sizes for darcy, recipe as for LaMO.
             model.settings = { width = 96, depth = 6, heads = 4, latent = 256 }"
        }
        "pipe" => {
            "# OFormer on pipe: the authors' sizes for darcy, recipe as for LaMO.
             model.settings = { width = 96, depth = 6, heads = 4, latent = 256 }"
        }
        _ => return None,
    })
}

/// Sizes that train in minutes on two cores.
pub(super) fn quick(benchmark: &str) -> Option<&'static str> {
    Some(match benchmark {
        "darcy" => {
            "model.settings = { width = 32, depth = 3, heads = 1, latent = 32, cross_heads = 2, dropout = 0.0, \
             embedding_dropout = 0.0 }"
        }
        "elasticity" | "airfoil" | "pipe" | "own" => {
            "model.settings = { width = 32, depth = 3, heads = 1, latent = 32, cross_heads = 2 }"
        }
        "navier-stokes" | "plasticity" => {
            "model.settings = { width = 32, depth = 3, heads = 1, latent = 64, cross_heads = 2 }"
        }
        _ => return None,
    })
}

pub(super) fn tiny(_task: &Task) -> Settings {
    toml::toml! {
        width = 12
        depth = 1
        heads = 1
        latent = 16
        cross_heads = 1
        dropout = 0.1
        embedding_dropout = 0.1
    }
}
