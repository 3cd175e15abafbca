//! A run resumed from any checkpoint ends with the same bits; failures are one sentence.

use crate::support::{Folder, essence, experiment, train_to};
use lamo::Kind;
use lamo::data::Samples;
use lamo::experiment::Experiment;
use lamo::run::{self, Checkpoint, Environment, Run, Trained};
use lamo::training::{Broken, Divergence, Outcome, Trainer};
use lamo_geometry::Grid;
use lamo_tensor::Device;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

/// Seven samples of a wave and its shifted square, on a small plane.
fn samples() -> Samples {
    let field = |change: fn(f32) -> f32| (0..7 * 30).map(|i| change((0.37 * i as f32).sin())).collect::<Vec<f32>>();
    Samples::new(Grid::Plane { rows: 6, columns: 5 }, 1, field(|v| v), 1, field(|v| 1.5 + v * v)).unwrap()
}

/// Four steps an epoch: the last batch has one sample.
fn small(changes: &[&str]) -> Experiment {
    let base = [
        "model.settings={ width = 16, depth = 1, mlp_ratio = 1, states = 4 }",
        "train={ epochs = 3, batch = 2, rate = 3e-3 }",
    ];
    experiment(&[&base, changes].concat())
}

fn trainer(experiment: &Experiment) -> Trainer {
    let samples = samples();
    let task = experiment.task(&samples).unwrap();
    Trainer::new(experiment, &task, &samples, &samples.clone().first(3), Device::Cpu).unwrap()
}

fn create(folder: &Path, experiment: &Experiment) -> Run {
    Run::create(folder, experiment, &Environment::here(Device::Cpu, 1, None)).unwrap()
}

/// Where and how a training broke.
fn diverged(result: Result<Outcome, lamo::Error>) -> Divergence {
    let error = result.expect_err("the training breaks");
    assert_eq!(error.kind(), Kind::Diverged);
    error.downcast_ref::<Divergence>().unwrap_or_else(|| panic!("{error}")).clone()
}

#[test]
fn a_run_interrupted_after_any_step_ends_with_the_same_bits() {
    for (recipe, changes) in RECIPES.iter().enumerate() {
        interrupt(&format!("resume-{recipe}"), &small(changes));
    }
}

/// The default, and each way to train that keeps states of its own.
const RECIPES: [&[&str]; 4] = [
    &[],
    &["train.optimiser=muon"],
    &["train.average=0.9"],
    &["train.optimiser=muon", "train.matrix_rate=2.0", "train.average=0.5", "train.symmetries=true"],
];

fn interrupt(name: &str, experiment: &Experiment) {
    let folder = Folder::new(name);
    let whole = folder.at("whole");
    train_to(&mut trainer(experiment), Some(&create(&whole, experiment)), usize::MAX);
    let expected = essence(&whole);
    assert_eq!((expected.0.trained.step, expected.1.len()), (12, 3));
    for stop in [1, 3, 4, 7, 11] {
        let path = folder.at(&format!("stopped-{stop}"));
        train_to(&mut trainer(experiment), Some(&create(&path, experiment)), stop);
        let (run, again, begun) = Run::open(&path).unwrap();
        assert_eq!(again, *experiment);
        let begun = begun.unwrap();
        assert_eq!(begun.trained.step, stop);
        let mut resumed = trainer(&again);
        resumed.restore(&begun).unwrap();
        train_to(&mut resumed, Some(&run), usize::MAX);
        assert!(essence(&path) == expected, "{name} stopped after step {stop}");
        let best = |folder: &Path| Trained::open(&run::checkpoint_path(folder, run::BEST)).unwrap();
        assert_eq!(best(&path).operator, best(&whole).operator);
    }
}

#[test]
fn a_run_without_its_last_checkpoint_is_resumed_from_the_best_and_without_any_from_the_start() {
    let (folder, experiment) = (Folder::new("without"), small(&[]));
    let path = folder.at("run");
    train_to(&mut trainer(&experiment), Some(&create(&path, &experiment)), usize::MAX);
    let expected = essence(&path);
    let best = Checkpoint::read(&run::checkpoint_path(&path, run::BEST)).unwrap().trained.step;
    std::fs::remove_file(run::checkpoint_path(&path, run::LAST)).unwrap();
    std::fs::remove_file(path.join(run::HISTORY)).unwrap();
    for (first, lose) in [(best, true), (0, false)] {
        let (run, again, begun) = Run::open(&path).unwrap();
        let mut resumed = trainer(&again);
        if let Some(begun) = begun {
            resumed.restore(&begun).unwrap();
        }
        assert_eq!(resumed.step(), first);
        train_to(&mut resumed, Some(&run), usize::MAX);
        assert!(essence(&path).0 == expected.0, "from step {first}");
        if lose {
            std::fs::remove_dir_all(path.join(run::CHECKPOINTS)).unwrap();
        }
    }
    assert!(essence(&path) == expected);
}

#[test]
fn an_output_is_learned_in_whatever_unit_it_comes() {
    let losses = |unit: f32, balanced: &str| {
        let outputs = samples().targets.iter().flat_map(|&value| [unit * value, (3.0 * value).cos()]).collect();
        let samples = Samples::new(samples().grid, 1, samples().inputs, 2, outputs).unwrap();
        let experiment = small(&[balanced]);
        let task = experiment.task(&samples).unwrap();
        train_to(&mut Trainer::new(&experiment, &task, &samples, &samples, Device::Cpu).unwrap(), None, usize::MAX)
    };
    let apart = |balanced: &str| {
        let pairs = losses(1.0, balanced).into_iter().zip(losses(1e5, balanced));
        pairs.map(|(one, large)| (one - large).abs() / one).fold(0.0, f64::max)
    };
    let (balanced, alike) = (apart("train.balanced=true"), apart("train.balanced=false"));
    assert!(balanced < 1e-3 && alike > 0.05, "losses differ by {balanced} and {alike}");
}

#[test]
fn a_run_notes_what_a_step_holds_beside_the_samples() {
    let (experiment, all) = (small(&[]), samples());
    let held = |samples: &Samples| {
        let task = experiment.task(samples).unwrap();
        let trained = Trainer::new(&experiment, &task, samples, samples, Device::Cpu).unwrap().trained().unwrap();
        (trained.step_bytes.unwrap(), trained.operator.parameters.len())
    };
    let (bytes, parameters) = held(&all);
    assert!(bytes > 4 * 4 * parameters, "parameters, gradient and two moments of {parameters} take more than {bytes}");
    let fewer = held(&all.first(3)).0;
    assert!(bytes.abs_diff(fewer) < 512, "{bytes} with seven samples, {fewer} with three"); // ends of rows
}

#[test]
fn the_best_state_has_the_seconds_of_its_own_tests_and_not_of_later_ones() {
    let (folder, experiment) = (Folder::new("paused"), small(&["train.rate=1e-30", "train.epochs=60"]));
    let path = folder.at("run");
    let run = create(&path, &experiment);
    trainer(&experiment).run(Some(&run), Duration::MAX, &mut |_| ControlFlow::Continue(())).unwrap();
    let best = Checkpoint::read(&run::checkpoint_path(&path, run::BEST)).unwrap().trained;
    assert_eq!(best.epoch, 1, "nothing is learned, so no later error is less");
    assert!(best.paused > 0.0 && best.paused < best.seconds, "{} of {} seconds", best.paused, best.seconds);
}

#[test]
fn epochs_after_the_last_checkpoint_are_forgotten_before_they_are_trained_again() {
    let (folder, experiment) = (Folder::new("rewind"), small(&[]));
    let path = folder.at("run");
    let mut first = trainer(&experiment);
    train_to(&mut first, Some(&create(&path, &experiment)), 5);
    // The process dies after writing the second epoch's line, before any checkpoint.
    let line = r#"{"epoch":2,"step":8,"train":9.0,"test":9.0,"rate":1.0,"seconds":1.0}"#;
    let text = std::fs::read_to_string(path.join(run::HISTORY)).unwrap() + line + "\n{\"epoch\":3,\"st";
    std::fs::write(path.join(run::HISTORY), text).unwrap();
    let (run, _, begun) = Run::open(&path).unwrap();
    let mut resumed = trainer(&experiment);
    resumed.restore(&begun.unwrap()).unwrap();
    train_to(&mut resumed, Some(&run), usize::MAX);
    let lines = run::history(&path).unwrap();
    assert_eq!(lines.iter().map(|line| line.epoch).collect::<Vec<_>>(), [1, 2, 3]);
    assert!(lines[1].train < 2.0);
}

#[test]
fn a_loss_that_is_not_finite_names_step_and_kernel_and_keeps_the_last_good_checkpoint() {
    let (folder, experiment) = (Folder::new("broken"), small(&["train.rate=1e30", "train.schedule=constant"]));
    let path = folder.at("run");
    let run = create(&path, &experiment);
    let mut broken = trainer(&experiment);
    let mut steps = 0;
    let result = broken.run(Some(&run), Duration::ZERO, &mut |progress| {
        steps = progress.step;
        ControlFlow::Continue(())
    });
    let divergence = diverged(result);
    assert_eq!((divergence.step, divergence.good), (steps + 1, steps));
    let sentence = divergence.to_string();
    assert!(sentence.contains(&format!("at step {}", divergence.step)), "{sentence}");
    assert!(sentence.contains("first in ") && sentence.contains("smaller train.rate"), "{sentence}");
    let last = Checkpoint::read(&run::checkpoint_path(&path, run::LAST)).unwrap();
    assert_eq!(last.trained.step, steps);
    assert!(last.trained.operator.parameters.iter().all(|value| value.is_finite()));
    assert_eq!(broken.trained().unwrap().operator, last.trained.operator, "the trainer is back at its last good state");
}

#[test]
fn a_late_look_at_the_loss_still_finds_the_step_that_broke() {
    let experiment = small(&["train.rate=1e30", "train.schedule=constant"]);
    let often = diverged(trainer(&experiment).run(None, Duration::ZERO, &mut |_| ControlFlow::Continue(())));
    let seldom = diverged(trainer(&experiment).run(None, Duration::MAX, &mut |_| ControlFlow::Continue(())));
    assert_eq!((often.step, often.culprit), (seldom.step, seldom.culprit));
}

/// The test of an epoch takes longer than the time between two calls of the watcher, so that it is stopped in the middle.
#[test]
fn a_training_stopped_in_the_middle_of_a_test_ends_with_the_same_bits() {
    let (folder, experiment) = (Folder::new("mid-test"), small(&["train.epochs=2"]));
    let field = |change: fn(f32) -> f32| (0..6000 * 30).map(|i| change((0.37 * i as f32).sin())).collect::<Vec<f32>>();
    let many = Samples::new(Grid::Plane { rows: 6, columns: 5 }, 1, field(|v| v), 1, field(|v| 1.5 + v * v)).unwrap();
    let long = || {
        let samples = samples();
        Trainer::new(&experiment, &experiment.task(&samples).unwrap(), &samples, &many, Device::Cpu).unwrap()
    };
    let whole = folder.at("whole");
    train_to(&mut long(), Some(&create(&whole, &experiment)), usize::MAX);
    for stop in [4, 8] {
        let path = folder.at(&format!("stopped-{stop}"));
        let outcome = long().run(Some(&create(&path, &experiment)), Duration::MAX, &mut |progress| {
            let testing = progress.finished.is_none() && progress.step == stop;
            if testing { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_eq!(outcome.unwrap(), Outcome::Stopped);
        assert_eq!(run::history(&path).unwrap().len(), stop / 4 - 1, "the epoch is not yet tested");
        let (run, _, begun) = Run::open(&path).unwrap();
        let mut trainer = long();
        trainer.restore(&begun.unwrap()).unwrap();
        train_to(&mut trainer, Some(&run), usize::MAX);
        assert_eq!(essence(&path), essence(&whole));
    }
}

#[test]
fn a_damaged_or_missing_file_is_one_sentence() {
    let (folder, experiment) = (Folder::new("damaged"), small(&["train.epochs=1"]));
    let path = folder.at("run");
    train_to(&mut trainer(&experiment), Some(&create(&path, &experiment)), usize::MAX);
    let last = run::checkpoint_path(&path, run::LAST);
    let sound = std::fs::read(&last).unwrap();
    let complaint = |bytes: &[u8]| {
        std::fs::write(&last, bytes).unwrap();
        let complaint = Trained::open(&path).unwrap_err().to_string();
        assert!(!complaint.contains('\n') && complaint.contains("last.safetensors"), "{complaint}");
        complaint
    };
    let mut flipped = sound.clone();
    *flipped.last_mut().unwrap() ^= 1;
    assert!(complaint(&flipped).contains("is damaged: expected a file with SHA-256"));
    assert!(complaint(&sound[..sound.len() - 7]).contains("cut short"));
    let told = complaint(b"");
    assert!(told.contains("not a safetensors file"), "{told}");
    std::fs::remove_file(&last).unwrap();
    assert!(Trained::open(&path).unwrap().path.ends_with(run::BEST));
    std::fs::remove_file(run::checkpoint_path(&path, run::BEST)).unwrap();
    let told = Trained::open(&path).map(|_| ()).unwrap_err().to_string();
    assert!(told.contains("found none"), "{told}");
    assert!(Trained::open(&folder.at("nowhere")).unwrap_err().to_string().contains("nowhere"));
    let told = Run::open(&folder.at("nowhere")).unwrap_err().to_string();
    assert!(told.contains("expected a run folder with experiment.toml, found no folder"), "{told}");
    std::fs::write(path.join(run::EXPERIMENT), "benchmark = \"own\"\n[train]\nepoch = 3\n").unwrap();
    let told = Run::open(&path).unwrap_err().to_string();
    assert!(told.contains("unknown key train.epoch; did you mean train.epochs?"), "{told}");
}

#[test]
fn a_damaged_last_checkpoint_beside_a_whole_best_one_names_it_and_its_epoch() {
    let (folder, experiment) = (Folder::new("beside"), small(&[]));
    let path = folder.at("run");
    train_to(&mut trainer(&experiment), Some(&create(&path, &experiment)), usize::MAX);
    let (last, best) = (run::checkpoint_path(&path, run::LAST), run::checkpoint_path(&path, run::BEST));
    let epoch = Checkpoint::read(&best).unwrap().trained.epoch;
    let sound = std::fs::read(&last).unwrap();
    std::fs::write(&last, &sound[..sound.len() - 7]).unwrap();
    for error in [Trained::open(&path).unwrap_err(), Run::open(&path).unwrap_err()] {
        assert_eq!(error.kind(), Checkpoint::read(&last).unwrap_err().kind());
        let told = error.to_string();
        assert!(told.contains("last.safetensors") && told.contains("cut short"), "{told}");
        assert!(told.contains(&format!("{} of epoch {epoch}", best.display())) && !told.contains('\n'), "{told}");
    }
    assert_eq!(Trained::open(&best).unwrap().epoch, epoch, "it can be used as the error says");
    std::fs::remove_file(&last).unwrap();
    assert_eq!(Run::open(&path).unwrap().2.unwrap().trained.epoch, epoch, "or resumed from");
}

#[test]
fn two_processes_do_not_share_a_run_and_a_full_folder_is_not_overwritten() {
    let (folder, experiment) = (Folder::new("lock"), small(&[]));
    let path = folder.at("run");
    let run = create(&path, &experiment);
    let told = Run::open(&path).unwrap_err().to_string();
    assert!(told.ends_with("another process is training in this run folder; wait for it or stop it"), "{told}");
    drop(run);
    assert!(Run::open(&path).is_ok());
    let again = Run::create(&path, &experiment, &Environment::here(Device::Cpu, 1, None)).unwrap_err().to_string();
    assert!(again.contains("expected a new or empty folder for the run") && again.contains("--resume"), "{again}");
    let path = folder.at("named");
    train_to(&mut trainer(&experiment), Some(&create(&path, &experiment)), 1);
    std::fs::remove_file(path.join(run::EXPERIMENT)).unwrap();
    assert!(run::free(&path).is_err(), "its checkpoints are worth something");
}

#[test]
fn data_that_do_not_fit_are_refused() {
    let grid = Grid::Plane { rows: 6, columns: 5 };
    let told = Samples::new(grid, 1, vec![0.0; 59], 1, vec![1.0; 60]).unwrap_err().to_string();
    assert_eq!(told, "inputs: expected 2 samples of 30 points of 1 functions, 60 values, found 59");
    let told = Samples::new(grid, 1, vec![0.0; 30], 1, vec![f32::NAN; 30]).unwrap_err().to_string();
    assert!(told.contains("targets: expected finite numbers"), "{told}");
    let told = Samples::new(Grid::Cloud { points: 3 }, 0, vec![], 1, vec![1.0; 3]).unwrap_err().to_string();
    assert!(told.contains("positions: ") && told.contains("cloud"), "{told}");
    let told = Samples::new(grid, 1, vec![0.0; 60], 1, [[1.0; 30], [0.0; 30]].concat()).unwrap_err().to_string();
    assert!(told.contains("not zero everywhere") && told.contains("found sample 1"), "{told}");
    for (size, found) in [(1e-20, "5.5e-20"), (1e25, "5.5e25")] {
        let told = Samples::new(grid, 1, vec![0.0; 30], 1, vec![size; 30]).unwrap_err().to_string();
        assert!(told.contains(&format!("found {found} in sample 0; give them in another unit")), "{told}");
    }
    let same = Samples::new(grid, 1, vec![0.0; 60], 1, vec![3.0; 60]).unwrap();
    let told = experiment(&[]).task(&same).unwrap_err().to_string();
    assert!(told.contains("found the same at all points; there is nothing to learn"), "{told}");
    let series = experiment(&["train.loss=relative-l2-of-frames"]);
    let samples = Samples::new(grid, 1, vec![0.0; 30], 2, vec![1.0; 60]).unwrap();
    let told = series.task(&samples).unwrap_err().to_string();
    assert!(told.contains("expected inputs of at least one snapshot of 2 functions, found 1"), "{told}");
    let cloud = experiment(&["train.loss=relative-l2-with-gradient"]);
    let line = Samples::new(Grid::Line { points: 30 }, 1, vec![0.0; 60], 1, vec![1.0; 60]).unwrap();
    let told = cloud.task(&line).unwrap_err().to_string();
    assert!(told.contains("expected one output on a plane"), "{told}");
}

#[test]
fn a_training_that_breaks_in_its_first_step_leaves_a_checkpoint_and_a_readable_history() {
    let (folder, experiment) = (Folder::new("first"), small(&["train.rate=1e38", "train.weight_decay=1"]));
    let path = folder.at("run");
    let result =
        trainer(&experiment).run(Some(&create(&path, &experiment)), Duration::MAX, &mut |_| ControlFlow::Continue(()));
    let divergence = diverged(result);
    assert_eq!((divergence.epoch, divergence.good), (1, 0));
    assert_eq!(Trained::open(&path).unwrap().step, 0);
    assert_eq!(run::history(&path).unwrap(), []);
}

#[test]
fn a_best_state_that_a_divergence_undoes_is_not_saved() {
    let changes = ["train={ batch = 7, epochs = 9, rate = 1e30 }", "train.schedule=constant"];
    let (folder, experiment) = (Folder::new("undone"), small(&changes));
    let path = folder.at("run");
    let result =
        trainer(&experiment).run(Some(&create(&path, &experiment)), Duration::MAX, &mut |_| ControlFlow::Continue(()));
    diverged(result);
    let last = Checkpoint::read(&run::checkpoint_path(&path, run::LAST)).unwrap();
    assert_eq!((last.trained.step, last.best), (0, None));
    assert!(!run::checkpoint_path(&path, run::BEST).exists());
}

#[test]
fn a_run_whose_experiment_was_changed_is_not_resumed_unless_its_steps_mean_the_same() {
    let (folder, experiment) = (Folder::new("changed"), small(&[]));
    let path = folder.at("run");
    train_to(&mut trainer(&experiment), Some(&create(&path, &experiment)), 5);
    let text = std::fs::read_to_string(path.join(run::EXPERIMENT)).unwrap();
    for (key, from, to) in [
        ("benchmark", "benchmark = \"own\"", "benchmark = \"pipe\""),
        ("train.batch", "batch = 2", "batch = 3"),
        ("seed", "seed = 0", "seed = 1"),
        ("model", "depth = 1", "depth = 2"),
    ] {
        assert!(text.contains(from), "{from} is not in {text}");
        std::fs::write(path.join(run::EXPERIMENT), text.replacen(from, to, 1)).unwrap();
        let told = Run::open(&path).unwrap_err().to_string();
        assert!(told.contains(&format!("{key} differs from ")) && told.contains(run::LAST), "{told}");
    }
    std::fs::write(path.join(run::EXPERIMENT), text.replacen("rate = 0.003", "rate = 0.001", 1)).unwrap();
    let (run, again, begun) = Run::open(&path).unwrap();
    assert_eq!(again.train.rate, 0.001, "the advice after a divergence");
    let mut resumed = trainer(&again);
    resumed.restore(&begun.unwrap()).unwrap();
    train_to(&mut resumed, Some(&run), 9);
    drop(run);
    assert_eq!(Trained::open(&path).unwrap().changed, [5], "the run says that its recipe was another once");
    std::fs::write(path.join(run::EXPERIMENT), text.replacen("epochs = 3", "epochs = 1", 1)).unwrap();
    let told = Run::open(&path).unwrap_err().to_string();
    assert!(told.contains("train.epochs: expected at least the 2 that are done, found 1"), "{told}");
    std::fs::write(path.join(run::EXPERIMENT), text.replacen("epochs = 3", "epochs = 2", 1)).unwrap();
    let (_, again, begun) = Run::open(&path).unwrap();
    let told = trainer(&again).restore(&begun.unwrap()).unwrap_err().to_string();
    assert!(told.contains("train.epochs: expected at least the 3 that are done or under way, found 2"), "{told}");
}

#[test]
fn a_checkpoint_of_other_data_is_not_resumed() {
    let experiment = small(&[]);
    let begun = trainer(&experiment).checkpoint().unwrap();
    let mut other = samples();
    other.targets.iter_mut().for_each(|value| *value *= 2.0);
    let task = experiment.task(&other).unwrap();
    let mut trainer = Trainer::new(&experiment, &task, &other, &other, Device::Cpu).unwrap();
    let told = trainer.restore(&begun).unwrap_err().to_string();
    assert!(told.contains("the checkpoint belongs to other data than these; start a new run"), "{told}");
    let cloud = Samples { grid: Grid::Cloud { points: 30 }, ..other };
    let told = Trainer::new(&experiment, &task, &cloud, &samples(), Device::Cpu).err().unwrap().to_string();
    assert_eq!(
        told,
        "training samples: expected a plane of 6 x 5 points and 1 time, found a cloud of 30 points and 1 time"
    );
}

#[test]
fn a_test_error_that_is_not_finite_ends_the_run() {
    let (folder, experiment) = (Folder::new("test-error"), small(&["train={ epochs = 1, batch = 7, rate = 1e30 }"]));
    let path = folder.at("run");
    let result =
        trainer(&experiment).run(Some(&create(&path, &experiment)), Duration::MAX, &mut |_| ControlFlow::Continue(()));
    let divergence = diverged(result);
    assert_eq!((divergence.broken, divergence.step, divergence.good), (Broken::Test, 1, 0));
    assert!(run::history(&path).unwrap().is_empty() && Trained::open(&path).unwrap().step == 0);
}

#[test]
fn a_parameter_that_is_not_finite_is_not_called_a_loss() {
    let (loss, advice) = (0.5, "try this".to_owned());
    let divergence = Divergence { broken: Broken::Parameter, step: 7, epoch: 2, loss, culprit: None, good: 4, advice };
    assert!(divergence.to_string().starts_with("a parameter is not finite at step 7 in epoch 2"));
    assert!(divergence.to_string().ends_with("the checkpoint of step 4 is saved; try this"));
    assert!(
        Divergence { broken: Broken::Loss, loss: 1e9, ..divergence }
            .to_string()
            .starts_with("the loss grew to 1.000e9")
    );
}

#[test]
fn batches_seen_from_all_sides_change_nothing_where_every_side_looks_the_same() {
    let plane = Grid::Plane { rows: 6, columns: 6 };
    // Values that depend on the distance from the middle alone, or on the place.
    let field = |round: bool, scale: f32| -> Vec<f32> {
        let value = |sample: usize, row: f32, column: f32| {
            let distance = (row - 2.5).powi(2) + (column - 2.5).powi(2);
            1.5 + (scale * if round { distance } else { row + 7.0 * column } + sample as f32).sin()
        };
        (0..5 * 36).map(|i| value(i / 36, (i / 6 % 6) as f32, (i % 6) as f32)).collect()
    };
    let losses = |round: bool, symmetries: &str| {
        let samples = Samples::new(plane, 1, field(round, 0.1), 1, field(round, 0.07)).unwrap();
        let experiment = small(&[symmetries]);
        let task = experiment.task(&samples).unwrap();
        let mut trainer = Trainer::new(&experiment, &task, &samples, &samples, Device::Cpu).unwrap();
        train_to(&mut trainer, None, usize::MAX)
    };
    let (none, all) = ("train.symmetries=false", "train.symmetries=true");
    assert_eq!(losses(true, none), losses(true, all));
    assert_ne!(losses(false, none), losses(false, all));
    assert_eq!(losses(false, all), losses(false, all), "the side is a function of seed and step");
    let (cloud, experiment) = (Grid::Cloud { points: 30 }, experiment(&[all]));
    let samples = Samples { grid: cloud, ..samples() };
    let task = experiment.task(&samples).unwrap();
    let told = Trainer::new(&experiment, &task, &samples, &samples, Device::Cpu).err().unwrap().to_string();
    assert!(told.contains("train.symmetries: expected fields of one value at every point of a lattice"), "{told}");
}
