//! Shipped experiments are the published ones: every value as the authors' scripts set it.
//!
//! Read from the scripts of M3RG-IITD/LaMO at c434a63 and the classes they build, not from our files. The parameter
//! counts of [`crate::experiments`] hold the sizes a second time.

use lamo::experiment::benchmarks::BENCHMARKS;
use lamo::experiment::{Experiment, Loss, Normalised, Pacing, Request};
use lamo::network::layers::Discretisation;
use lamo::network::models::lamo::{Config, Decoder, Encoder, Latent, Mixer};
use lamo::network::models::{self, MODELS};
use lamo::training::optimiser::AdamW;
use lamo::training::schedule::Pace;
use lamo_geometry::Grid;
use lamo_tensor::{Graph, Program};

/// One column of the authors' table of recipes. For all of them: 500 epochs, a test after each, samples seen from one side.
struct Recipe {
    name: &'static str,
    grid: Grid,
    /// Functions given beside the positions, functions asked for, and whether a time is given.
    maps: (usize, usize, bool),
    given: &'static [&'static str],
    asked: &'static str,
    /// Samples to train on, and to test on.
    samples: [usize; 2],
    normalise: &'static [Normalised],
    loss: Loss,
    batch: usize,
    /// Batches of an epoch.
    batches: usize,
    rate: f64,
    weight_decay: f64,
    /// 0: the gradient is not clipped.
    clip: f64,
    schedule: Pacing,
}

const fn plane(rows: usize, columns: usize) -> Grid {
    Grid::Plane { rows, columns }
}

const RECIPES: [Recipe; 6] = [
    Recipe {
        name: "darcy-lamo",
        grid: plane(85, 85),
        maps: (1, 1, false),
        given: &["permeability"],
        asked: "pressure",
        samples: [1000, 200],
        normalise: &[Normalised::Inputs, Normalised::Outputs],
        loss: Loss::RelativeL2WithGradient,
        batch: 4,
        batches: 250,
        rate: 5e-4,
        weight_decay: 1e-5,
        clip: 0.1,
        schedule: Pacing::Onecycle,
    },
    Recipe {
        name: "navier-stokes-lamo",
        grid: plane(64, 64),
        maps: (10, 1, false),
        given: &[],
        asked: "vorticity",
        samples: [1000, 200],
        normalise: &[],
        loss: Loss::RelativeL2OfFrames,
        batch: 2,
        batches: 500,
        rate: 5e-4,
        weight_decay: 0.05, // written into the script, whatever its flag says
        clip: 0.0,
        schedule: Pacing::Onecycle,
    },
    Recipe {
        name: "elasticity-lamo",
        grid: Grid::Cloud { points: 972 },
        maps: (0, 1, false),
        given: &[],
        asked: "stress",
        samples: [1000, 200],
        normalise: &[Normalised::Outputs],
        loss: Loss::RelativeL2,
        batch: 1,
        batches: 1000,
        rate: 1e-3,
        weight_decay: 1e-5,
        clip: 0.1,
        schedule: Pacing::CosineByEpoch,
    },
    Recipe {
        name: "plasticity-lamo",
        grid: plane(101, 31),
        maps: (1, 4, true),
        given: &["die"],
        asked: "deformation",
        samples: [900, 80],
        normalise: &[Normalised::Inputs],
        loss: Loss::RelativeL2OfTimes,
        batch: 8,
        batches: 113,
        rate: 1e-3,
        weight_decay: 1e-5,
        clip: 0.1,
        schedule: Pacing::Onecycle,
    },
    Recipe {
        name: "airfoil-lamo",
        grid: plane(221, 51),
        maps: (0, 1, false),
        given: &[],
        asked: "mach",
        samples: [1000, 200],
        normalise: &[],
        loss: Loss::RelativeL2,
        batch: 4,
        batches: 250,
        rate: 1e-3,
        weight_decay: 1e-5,
        clip: 0.1,
        schedule: Pacing::Onecycle,
    },
    Recipe {
        name: "pipe-lamo",
        grid: plane(129, 129),
        maps: (0, 1, false),
        given: &[],
        asked: "velocity_x",
        samples: [1000, 200],
        normalise: &[Normalised::Positions, Normalised::Outputs],
        loss: Loss::RelativeL2,
        batch: 8,
        batches: 125,
        rate: 1e-3,
        weight_decay: 1e-5,
        clip: 0.1,
        schedule: Pacing::Onecycle,
    },
];

#[test]
fn lamo_is_trained_by_the_authors_recipe_on_every_benchmark() {
    for recipe in &RECIPES {
        let Recipe { name, batch, batches, rate, weight_decay, clip, schedule, loss, .. } = *recipe;
        let train = Experiment::shipped(name).unwrap().train;
        assert_eq!((train.epochs, train.batch), (500, batch), "{name}: epochs and batch");
        assert_eq!(recipe.samples[0].div_ceil(train.batch), batches, "{name}: batches of an epoch");
        assert_eq!(train.rate, rate, "{name}: rate");
        assert_eq!(train.weight_decay, weight_decay, "{name}: weight decay");
        assert_eq!(train.clip, clip, "{name}: clip");
        assert_eq!((train.schedule, train.loss), (schedule, loss), "{name}: schedule and loss");
        let plain = (train.evaluate, train.symmetries, train.balanced);
        assert_eq!(plain, (1, false, false), "{name}: a test per epoch, samples and outputs as they are");
    }
}

#[test]
fn lamo_sees_the_data_of_the_authors_scripts_on_every_benchmark() {
    for recipe in &RECIPES {
        let name = recipe.name;
        let experiment = Experiment::shipped(name).unwrap();
        let data = &experiment.data;
        assert_eq!([data.train, data.test], recipe.samples, "{name}: samples");
        assert_eq!(data.normalise, recipe.normalise, "{name}: what is normalised");
        assert_eq!(data.inputs, recipe.given, "{name}: what is given");
        assert_eq!(data.outputs, [recipe.asked], "{name}: what is asked for");
        assert_eq!(data.scrambled, name == "plasticity-lamo", "{name}: positions that belong to other points");
        let task = experiment.benchmark().unwrap().task();
        let maps = (task.input_channels(), task.output_channels(), task.time.is_input());
        assert_eq!((task.grid, task.space, maps), (recipe.grid, 2, recipe.maps), "{name}: what is mapped");
    }
    for (name, key, expected) in [
        ("darcy-lamo", "resolution", 421.0),
        ("darcy-lamo", "stride", 5.0),
        ("darcy-lamo", "high", 12.0),
        ("darcy-lamo", "low", 3.0),
        ("navier-stokes-lamo", "viscosity", 1e-5),
        ("navier-stokes-lamo", "frames", 20.0),
    ] {
        let value = &Experiment::shipped(name).unwrap().data.settings[key];
        let found = value.as_float().or(value.as_integer().map(|whole| whole as f64));
        assert_eq!(found, Some(expected), "{name}: {key}");
    }
    assert_eq!(Experiment::shipped("navier-stokes-lamo").unwrap().data.past, 10);
}

/// What the five classes have in common.
fn common() -> Config {
    Config {
        depth: 8,
        decoder: Decoder::Tied,
        convolution: 3,
        discretisation: Discretisation::Euler,
        unified_positions: 0,
        ..Config::default()
    }
}

/// Latent tokens of the regular grid: patches of 2 × 2, scanned along rows and columns both ways.
fn patches(width: usize, padded: [usize; 2]) -> Config {
    let (states, expand, mlp_ratio) = (64, 2, 4);
    let (latent, mixer) = (Latent::Patches, Mixer::Cross);
    Config {
        latent,
        mixer,
        directions: 4,
        patch: 2,
        padded: padded.to_vec(),
        width,
        states,
        expand,
        mlp_ratio,
        ..common()
    }
}

/// 64 slices in eight heads of 128 channels.
fn slices(encoder: Encoder, mixer: Mixer, mlp_ratio: usize) -> Config {
    let (head_width, groups) = if mixer == Mixer::Hydra { (64, 2) } else { (32, 1) };
    Config {
        latent: Latent::Slices,
        encoder,
        mixer,
        directions: 2,
        width: 128,
        tokens: 64,
        slice_heads: 8,
        states: 64,
        expand: 2,
        mlp_ratio,
        head_width,
        groups,
        ..common()
    }
}

#[test]
fn lamo_has_the_sizes_of_the_class_that_the_script_builds() {
    for (name, expected, tokens) in [
        ("darcy-lamo", patches(64, [88, 88]), 1936),
        ("navier-stokes-lamo", patches(256, [0, 0]), 1024),
        ("elasticity-lamo", slices(Encoder::Shared, Mixer::Hydra, 1), 64),
        ("plasticity-lamo", slices(Encoder::Own, Mixer::Mamba2, 1), 64),
        ("airfoil-lamo", Config { states: 1, expand: 1, ..slices(Encoder::Shared, Mixer::Hydra, 1) }, 64),
        ("pipe-lamo", slices(Encoder::Own, Mixer::Mamba2, 2), 64),
    ] {
        let experiment = Experiment::shipped(name).unwrap();
        let config: Config = experiment.model.settings.clone().try_into().unwrap();
        assert_eq!(config, expected, "{name}");
        let count = match (config.latent, experiment.benchmark().unwrap().task().grid) {
            (Latent::Patches, Grid::Plane { rows, columns }) => {
                let side = |extent: usize, padded: usize| extent.max(padded).div_ceil(config.patch);
                side(rows, config.padded[0]) * side(columns, config.padded[1])
            }
            _ => config.tokens,
        };
        assert_eq!(count, tokens, "{name}: tokens");
    }
}

/// Where the paper's text and the authors' code disagree, both ship; these are the paper's words.
#[test]
fn a_paper_variant_differs_from_the_code_by_what_the_paper_says_and_nothing_else() {
    let variants = [
        ("navier-stokes-lamo-paper", "navier-stokes-lamo", &["model.settings.width=128"][..]),
        ("elasticity-lamo-paper", "elasticity-lamo", &["train.schedule=onecycle", "model.settings.slice_heads=4"]),
        ("airfoil-lamo-paper", "airfoil-lamo", &["model.settings.states=64", "model.settings.expand=2"]),
        ("pipe-lamo-paper", "pipe-lamo", &["train.batch=4", "model.settings.slice_heads=4"]),
    ];
    assert_eq!(variants.len(), models::find("lamo").unwrap().variants.len(), "a variant is missing above");
    for (name, base, changes) in variants {
        let changes: Vec<String> = changes.iter().map(ToString::to_string).collect();
        let file = Some((base, lamo::experiment::shipped_text(base).unwrap()));
        let expected = Request { file, changes: &changes, ..Request::default() }.resolve().unwrap();
        assert_eq!(Experiment::shipped(name).unwrap(), expected, "{name}");
    }
}

/// The benchmarks compare models, so the recipes agree. Parameter counts fix the sizes of the other models.
#[test]
fn every_model_is_trained_on_the_same_data_by_the_same_recipe_but_for_what_its_row_says() {
    for (row, benchmark) in MODELS.iter().flat_map(|row| BENCHMARKS.iter().map(move |benchmark| (row, benchmark.name)))
    {
        let Some(text) = (row.recipe)(benchmark) else { continue };
        let recipe: toml::Table = text.parse().unwrap();
        let own = |table: &str| recipe.get(table).and_then(|keys| keys.as_table()).cloned().unwrap_or_default();
        let all = ["train", "data"].map(|table| own(table).into_iter().map(move |(key, value)| (table, key, value)));
        let changes = all.into_iter().flatten().map(|(table, key, value)| format!("{table}.{key}={value}"));
        let changes: Vec<String> = changes.collect();
        let plain = Request { benchmark: Some(benchmark), ..Request::default() };
        let lamo = Request { model: Some("lamo"), changes: &changes, ..plain }.resolve().unwrap();
        let other = Request { model: Some(row.name), ..plain }.resolve().unwrap();
        assert_eq!((&other.data, &other.train), (&lamo.data, &lamo.train), "{} on {benchmark}", row.name);
        assert_eq!((other.seed, other.precision), (lamo.seed, lamo.precision), "{} on {benchmark}", row.name);
    }
}

/// θ (1 − ηλ) with ηλ ≤ 2⁻²⁵ is θ in float32, here as in PyTorch. Only the recipe of Navier–Stokes decays.
#[test]
fn a_weight_decay_of_a_hundred_thousandth_rounds_away_at_the_published_rates() {
    for Recipe { name, rate, weight_decay, .. } in RECIPES {
        let graph = Graph::new();
        let weights = graph.parameter("weights", [1000]);
        let adamw = AdamW { weight_decay, clip: None, ..AdamW::default() };
        adamw.minimise(&graph, (weights * graph.input("gradient", [1000])).sum_all());
        let mut program = Program::compile(&graph);
        let before: Vec<f32> = (1..=1000).map(|i| (0.37 * i as f32).sin()).collect();
        program.write_parameter("weights", &before);
        program.write("gradient", &[0.0; 1000]);
        adamw.pace(&mut program, 0, Pace { rate, beta1: 0.9 }).unwrap();
        program.run();
        let kept = program.read_parameter("weights") == before;
        assert_eq!(kept, name != "navier-stokes-lamo", "{name}: η = {rate}, λ = {weight_decay}");
    }
}
