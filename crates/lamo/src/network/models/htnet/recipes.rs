//! Recipes of HT-Net: the authors' sizes and training, small sizes, a user's data, and sizes for tests.

use super::config::Config;
use crate::network::models::{OwnData, Settings};
use crate::task::Task;
use lamo_geometry::Grid;

/// The authors' sizes and rate for Darcy and Navier–Stokes; on other planes those for Darcy with our extension. The loss with slopes
/// stands for their H1 loss on Darcy.
pub(super) fn recipe(benchmark: &str) -> Option<&'static str> {
    Some(match benchmark {
        "darcy" => {
            "# HT-Net on darcy: the authors' sizes and rate; patches of six points make 80 × 80 tokens.
             model.settings = { width = 64, patch = 6, patch_padding = 0, coordinates = false, zero_border = true, stochastic_depth = 0.1 }
             train = { batch = 8, rate = 0.0008, optimiser = \"adam\", weight_decay = 1e-4, clip = 0.0 }"
        }
        "navier-stokes" => {
            "# HT-Net on navier-stokes: the authors' sizes and rate.
             model.settings = { width = 18, coordinates = false, stochastic_depth = 0.1 }
             train = { batch = 20, rate = 0.0008, optimiser = \"adam\", weight_decay = 1e-4 }"
        }
        "plasticity" => {
            "# HT-Net on plasticity: the authors' sizes for darcy on a padded plane, with coordinates and time; recipe as for LaMO.
             model.settings = { width = 64, coordinates = true }
             data.scrambled = false"
        }
        "airfoil" => {
            "# HT-Net on airfoil: the authors' sizes for darcy on a padded plane, with coordinates; recipe as for LaMO.
             model.settings = { width = 64, coordinates = true }"
        }
        "pipe" => {
            "# HT-Net on pipe: the authors' sizes for darcy on a padded plane, with coordinates; recipe as for LaMO.
             model.settings = { width = 64, coordinates = true }"
        }
        _ => return None,
    })
}

/// Sizes that train in minutes on two cores.
pub(super) fn quick(benchmark: &str) -> Option<&'static str> {
    Some(match benchmark {
        "darcy" => {
            "model.settings = { width = 12, patch = 3, patch_padding = 1, windows = [4, 4], depths = [1, 1], heads = [1, 1], \
             modes = 8, layers = 3, hidden = 32, stochastic_depth = 0.0 }"
        }
        "navier-stokes" => {
            "model.settings = { width = 12, windows = [4, 4], depths = [1, 1], heads = [1, 1], modes = 6, layers = 3, hidden = 32, \
             stochastic_depth = 0.0 }"
        }
        "plasticity" | "airfoil" | "pipe" => {
            "model.settings = { width = 12, windows = [4, 4], depths = [1, 1], heads = [1, 1], modes = 6, layers = 3, hidden = 32 }"
        }
        "own" => {
            "model.settings = { width = 12, windows = [4, 4], depths = [1, 1], heads = [1, 1], layers = 3, hidden = 32 }"
        }
        _ => return None,
    })
}

/// As many modes as usual, fewer on a small plane. The two levels of the preset `quick` make the smallest planes.
pub(super) fn own(data: &OwnData) -> Settings {
    let usual = Config::default();
    let smallest = Config { windows: vec![4, 4], ..Config::default() };
    let modes = data.grid.as_ref().and_then(Grid::plane).map(|grid| usual.modes.min(smallest.most_modes(grid)));
    modes.map(|modes| ("modes".to_owned(), toml::Value::from(modes as i64))).into_iter().collect()
}

pub(super) fn tiny(_task: &Task) -> Settings {
    toml::toml! {
        width = 8
        patch = 3
        patch_padding = 1
        coordinates = true
        windows = [2, 2]
        depths = [1, 1]
        heads = [1, 2]
        modes = 2
        layers = 2
        hidden = 16
        padding = 0
        stochastic_depth = 0.1
    }
}
