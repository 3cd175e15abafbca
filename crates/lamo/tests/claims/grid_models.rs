//! The grid models of the Neural-Solver-Library: trained as its scripts say, and a sentence where a grid is too small.

use crate::support::{experiment, train_to};
use lamo::data::Samples;
use lamo::experiment::Optimiser::{self, Adam, Adamw};
use lamo::experiment::Pacing::{self, CosineByEpoch, Onecycle, StepByEpoch};
use lamo::experiment::{Experiment, Loss};
use lamo::network::models::{self, Settings};
use lamo::task::Task;
use lamo::training::Trainer;
use lamo_geometry::Grid;
use lamo_tensor::Device;

/// Batch, rate, weight decay, clip, schedule and optimiser of a script.
type Script = (usize, f64, f64, f64, Pacing, Optimiser);

/// One line of a script: the models whose script it is, the benchmark, and its numbers.
type Line = (&'static [&'static str], &'static str, Script);

/// The scripts of `scripts/StandardBench` at db942b7; ResNet has none and takes those of U-Net.
const SCRIPTS: &[Line] = &[
    (&["unet", "resnet", "ufno"], "elasticity", (1, 1e-3, 1e-5, 0.0, CosineByEpoch, Adamw)),
    (&["ffno"], "elasticity", (1, 1e-3, 1e-5, 0.1, CosineByEpoch, Adamw)),
    (&["uno", "lsm"], "elasticity", (4, 1e-3, 1e-5, 0.0, Onecycle, Adamw)),
    (&["unet", "resnet"], "navier-stokes", (2, 1e-3, 1e-5, 0.0, Onecycle, Adamw)),
    (&["ufno", "lsm"], "navier-stokes", (20, 5e-4, 1e-4, 0.0, StepByEpoch, Adamw)),
    (&["uno"], "navier-stokes", (16, 1e-3, 1e-5, 0.0, StepByEpoch, Adam)),
    (&["ffno"], "navier-stokes", (20, 2.5e-3, 1e-4, 0.1, StepByEpoch, Adamw)),
    (&["unet", "resnet", "ufno", "uno"], "darcy", (4, 1e-3, 1e-5, 0.0, Onecycle, Adamw)),
    (&["ffno"], "darcy", (4, 1e-3, 1e-5, 0.1, Onecycle, Adamw)),
    (&["lsm"], "darcy", (20, 5e-4, 1e-4, 0.0, StepByEpoch, Adam)),
    (&["unet", "resnet", "ufno", "uno"], "plasticity", (8, 1e-3, 1e-5, 0.0, Onecycle, Adamw)),
    (&["ffno"], "plasticity", (8, 1e-3, 1e-5, 0.1, Onecycle, Adamw)),
    (&["lsm"], "plasticity", (4, 1e-3, 1e-5, 0.0, Onecycle, Adamw)),
    (&["unet", "resnet", "lsm"], "airfoil", (4, 1e-3, 1e-5, 0.0, Onecycle, Adamw)),
    (&["ufno", "uno", "ffno"], "airfoil", (20, 1e-3, 1e-4, 0.0, StepByEpoch, Adamw)),
    (&["unet", "resnet", "ufno", "uno", "lsm"], "pipe", (4, 1e-3, 1e-5, 0.0, Onecycle, Adamw)),
    (&["ffno"], "pipe", (4, 1e-3, 1e-5, 0.1, Onecycle, Adamw)),
];

#[test]
fn every_grid_model_is_trained_as_its_script_says() {
    let lines =
        SCRIPTS.iter().flat_map(|(models, benchmark, script)| models.iter().map(move |m| (m, benchmark, script)));
    let mut seen = 0;
    for (model, benchmark, &script) in lines {
        let name = format!("{benchmark}-{model}");
        let experiment = Experiment::shipped(&name).unwrap();
        let train = &experiment.train;
        let found = (train.batch, train.rate, train.weight_decay, train.clip, train.schedule, train.optimiser);
        assert_eq!(found, script, "{name}");
        assert_eq!(train.epochs, 500, "{name}");
        let alone = *benchmark == "navier-stokes" && ["ufno", "uno", "lsm"].contains(model);
        assert_eq!(train.teacher_forcing, !alone, "{name}");
        if *benchmark == "darcy" {
            assert_eq!(train.loss == Loss::RelativeL2WithGradient, *model != "lsm", "{name}");
        }
        assert!(!experiment.data.scrambled, "{name}: positions belong to their points");
        seen += 1;
    }
    assert_eq!(seen, 36, "six models on six benchmarks");
}

fn refusal(model: &str, task: &Task, settings: &str) -> String {
    let settings: Settings = settings.parse().unwrap();
    models::find(model).unwrap().parameter_count(task, &settings).expect_err(model).to_string()
}

#[test]
fn a_grid_that_is_too_small_is_refused_with_what_to_set() {
    let plane = Task::plain(Grid::Plane { rows: 9, columns: 12 }, 2, 1, 1);
    let cloud = Task::plain(Grid::Cloud { points: 40 }, 2, 0, 1).by_time(3);
    for model in ["unet", "ufno", "uno", "lsm"] {
        let sentence = refusal(model, &plane.clone().by_time(3), "modes = 3");
        assert!(sentence.contains("more than one pixel") && sentence.contains("set padded = [32, 32]"), "{sentence}");
        let sentence = refusal(model, &cloud, "modes = 3\nlattice = [16, 16]");
        assert!(sentence.contains("set lattice = [32, 32]"), "{sentence}");
        let sentence = refusal(model, &plane, "padded = [40, 32]");
        assert!(sentence.contains("multiples of 16") && sentence.contains("set padded = [0, 0]"), "{sentence}");
        // One pixel is enough for the norm of a batch.
        let settings: Settings = "modes = 3".parse().unwrap();
        assert!(models::find(model).unwrap().parameter_count(&plane, &settings).is_ok(), "{model}");
    }
    for model in ["ufno", "ffno"] {
        let sentence = refusal(model, &plane, "modes = 12");
        assert!(sentence.contains("at most 9 modes") && sentence.contains("set modes = 9"), "{sentence}");
    }
    for model in ["unet", "resnet", "ffno", "ufno", "uno", "lsm"] {
        let sentence = refusal(model, &cloud, "lattice = [32, 16]\nmodes = 12");
        assert!(sentence.contains("set modes = 9"), "{sentence}");
    }
}

/// The coarsest level of a padded grid of 16 × 16 points is one pixel. A batch of one sample has no deviation there; the last
/// batch of an epoch may have one, and predictions need none.
#[test]
fn a_batch_too_small_for_a_norm_is_refused_before_the_training_and_predictions_take_one_sample() {
    let grid = Grid::Plane { rows: 9, columns: 12 };
    let field = |pace: f32| (0..3 * 108).map(|i| (pace * i as f32).sin()).collect::<Vec<f32>>();
    let samples = Samples::new(grid, 1, field(0.37), 1, field(0.21)).unwrap();
    for model in ["unet", "ufno", "uno", "lsm"] {
        let trainer = |batch: usize, samples: &Samples| {
            let (model, train) = (format!("model.name={model}"), format!("train={{ epochs = 2, batch = {batch} }}"));
            let experiment =
                experiment(&[&model, "model.settings={ width = 8, modes = 3, padded = [16, 16] }", &train]);
            let task = experiment.task(samples).unwrap();
            Trainer::new(&experiment, &task, samples, &samples.clone().first(1), Device::Cpu)
        };
        let refusal = |batch: usize, samples: &Samples| trainer(batch, samples).err().expect(model).to_string();
        let sentence = refusal(1, &samples);
        assert!(
            sentence.starts_with("train.batch: expected at least 2") && sentence.ends_with("found 1"),
            "{sentence}"
        );
        let sentence = refusal(2, &samples.clone().first(1));
        assert!(sentence.starts_with("training samples: expected at least 2"), "{sentence}");
        let mut trainer = trainer(2, &samples).unwrap();
        let losses = train_to(&mut trainer, None, usize::MAX);
        assert!(losses.len() == 2 && losses.iter().all(|loss| loss.is_finite()), "{model}: {losses:?}");
        let found = trainer.trained().unwrap().operator.predict(&samples.clone().first(1), Device::Cpu).unwrap();
        assert!(found.iter().all(|value| value.is_finite()), "{model}");
    }
}
