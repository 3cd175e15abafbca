//! `data.trend`: the model adds to the best linear function of positions and inputs, in training, testing and prediction alike.

use crate::support::{Folder, experiment, train_to};
use lamo::data::Samples;
use lamo::experiment::Request;
use lamo::run::{self, Environment, Operator, Run};
use lamo::training::Trainer;
use lamo_geometry::Grid;
use lamo_tensor::Device;

const PLANE: Grid = Grid::Plane { rows: 6, columns: 5 };
const TINY: &str = "model.settings={ width = 16, depth = 1, mlp_ratio = 1, states = 4 }";

/// y = 30 + 20 x₁ − 5 a plus a wave of height 0.1 that depends on the sample.
fn deformed() -> Samples {
    let inputs: Vec<f32> = (0..8 * 30).map(|place| (0.7 * place as f32).sin()).collect();
    let mut samples = Samples::new(PLANE, 1, inputs, 1, vec![1.0; 8 * 30]).unwrap();
    for sample in 0..8 {
        for point in 0..30 {
            let (x, a) = (samples.positions[2 * point], samples.inputs[30 * sample + point]);
            let wave = 0.1 * (3.0 * x + sample as f32).sin();
            samples.targets[30 * sample + point] = 30.0 + 20.0 * x - 5.0 * a + wave;
        }
    }
    samples
}

fn trained(trend: bool, samples: &Samples) -> (Operator, f64) {
    let trend = format!("data.trend={trend}");
    let experiment = experiment(&[TINY, &trend, "train={ epochs = 40, batch = 2 }"]);
    let task = experiment.task(samples).unwrap();
    task.check().unwrap();
    assert_eq!(task.normalisers.trend.is_some(), experiment.data.trend);
    let mut trainer = Trainer::new(&experiment, &task, samples, samples, Device::Cpu).unwrap();
    let losses = train_to(&mut trainer, None, usize::MAX);
    (trainer.trained().unwrap().operator, losses[39])
}

/// Mean relative error in L2.
fn error(found: &[f32], samples: &Samples) -> f64 {
    let norm = |values: &mut dyn Iterator<Item = f64>| values.map(|value| value * value).sum::<f64>().sqrt();
    let errors = found.chunks_exact(30).zip(samples.targets.chunks_exact(30)).map(|(found, target)| {
        let miss = &mut found.iter().zip(target).map(|(found, target)| f64::from(found - target));
        norm(miss) / norm(&mut target.iter().map(|&value| f64::from(value)))
    });
    errors.sum::<f64>() / samples.count as f64
}

#[test]
fn a_model_with_a_trend_starts_from_the_linear_function_and_predicts_as_it_was_trained() {
    let samples = deformed();
    let [(with, loss), (without, _)] = [true, false].map(|trend| trained(trend, &samples));
    let [near, far] =
        [&with, &without].map(|operator| error(&operator.predict(&samples, Device::Cpu).unwrap(), &samples));
    // The wave is a fourth of a percent of the outputs.
    assert!(near < 0.005 && loss < 0.01, "{near}, trained to {loss}");
    assert!(far > 10.0 * near, "without the trend {far}");
}

#[test]
fn a_run_with_a_trend_is_opened_and_resumed_to_the_bit() {
    let (folder, samples) = (Folder::new("trend"), deformed());
    let experiment = experiment(&[TINY, "data.trend=true", "train={ epochs = 2, batch = 2 }"]);
    let task = experiment.task(&samples).unwrap();
    let trainer = || Trainer::new(&experiment, &task, &samples, &samples, Device::Cpu).unwrap();
    let make =
        |name: &str| Run::create(&folder.at(name), &experiment, &Environment::here(Device::Cpu, 1, None)).unwrap();
    train_to(&mut trainer(), Some(&make("whole")), usize::MAX);
    train_to(&mut trainer(), Some(&make("cut")), 3);
    let (run, _, begun) = Run::open(&folder.at("cut")).unwrap();
    let mut resumed = trainer();
    resumed.restore(&begun.unwrap()).unwrap();
    train_to(&mut resumed, Some(&run), usize::MAX);
    let [one, two] = ["whole", "cut"].map(|name| {
        let checkpoint = run::Checkpoint::read(&run::checkpoint_path(&folder.at(name), run::LAST)).unwrap();
        assert_eq!(checkpoint.trained.operator.task, task);
        checkpoint.trained.operator.predict(&samples, Device::Cpu).unwrap()
    });
    assert_eq!(one, two);
}

#[test]
fn a_roll_out_has_changes_and_no_trend() {
    let changes = ["data.trend=true".to_owned(), "data.time=roll-out".to_owned()];
    let refused = Request { changes: &changes, ..Request::default() }.resolve().unwrap_err().to_string();
    assert!(refused.contains("data.trend") && refused.contains("data.change"), "{refused}");
}
