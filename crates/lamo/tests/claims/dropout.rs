//! Dropout and stochastic depth: the same on resume, absent from predictions, and off at rate 0.

use crate::support::{Folder, essence, experiment, train_to};
use lamo::data::Samples;
use lamo::experiment::Experiment;
use lamo::network::layers::{Dropout, Dropped};
use lamo::network::{Mode, Parameters, models};
use lamo::run::{Environment, Run};
use lamo::training::Trainer;
use lamo_geometry::Grid;
use lamo_tensor::{Device, Graph, Program, Random};
use std::path::Path;

const GRID: Grid = Grid::Plane { rows: 8, columns: 8 };

/// Models that drop values, with their smallest settings and the names of their rates.
const CASES: [(&str, &str, &[&str]); 2] = [
    ("oformer", "width = 12, depth = 2, heads = 2, latent = 16, cross_heads = 1", &["dropout", "embedding_dropout"]),
    (
        "htnet",
        "width = 8, windows = [2, 2], depths = [1, 1], heads = [1, 2], modes = 2, layers = 2, hidden = 8, padding = 0",
        &["stochastic_depth"],
    ),
];

/// Four steps an epoch, the last batch has one sample.
fn small((model, sizes, rates): (&str, &str, &[&str]), rate: f64) -> Experiment {
    let rates: Vec<String> = rates.iter().map(|name| format!("{name} = {rate}")).collect();
    let (name, settings) =
        (format!("model.name={model}"), format!("model.settings={{ {sizes}, {} }}", rates.join(", ")));
    experiment(&[&name, &settings, "train={ epochs = 3, batch = 2, rate = 3e-3 }"])
}

fn samples() -> Samples {
    let field = |change: fn(f32) -> f32| (0..7 * 64).map(|i| change((0.37 * i as f32).sin())).collect::<Vec<f32>>();
    Samples::new(GRID, 1, field(|v| v), 1, field(|v| 1.5 + v * v)).unwrap()
}

fn trainer(experiment: &Experiment) -> Trainer {
    let samples = samples();
    let task = experiment.task(&samples).unwrap();
    Trainer::new(experiment, &task, &samples, &samples.clone().first(3), Device::Cpu).unwrap()
}

fn create(folder: &Path, experiment: &Experiment) -> Run {
    Run::create(folder, experiment, &Environment::here(Device::Cpu, 1, None)).unwrap()
}

#[test]
fn a_run_with_dropout_that_is_interrupted_after_any_step_ends_with_the_same_bits() {
    for case in CASES {
        let (folder, experiment) = (Folder::new(&format!("resume-dropout-{}", case.0)), small(case, 0.3));
        let whole = folder.at("whole");
        train_to(&mut trainer(&experiment), Some(&create(&whole, &experiment)), usize::MAX);
        let expected = essence(&whole);
        for stop in [1, 3, 4, 11] {
            let path = folder.at(&format!("stopped-{stop}"));
            train_to(&mut trainer(&experiment), Some(&create(&path, &experiment)), stop);
            let (run, again, begun) = Run::open(&path).unwrap();
            let mut resumed = trainer(&again);
            resumed.restore(&begun.unwrap()).unwrap();
            train_to(&mut resumed, Some(&run), usize::MAX);
            assert!(essence(&path) == expected, "{} stopped after step {stop}", case.0);
        }
    }
}

#[test]
fn dropout_changes_the_training_and_no_prediction() {
    for case in CASES {
        let parameters = |experiment: &Experiment| {
            let mut trainer = trainer(experiment);
            train_to(&mut trainer, None, 6);
            trainer.trained().unwrap().operator
        };
        let (with, without) = (small(case, 0.3), small(case, 0.0));
        let trained = parameters(&with);
        assert!(trained.parameters == parameters(&with).parameters, "{}: the seed decides", case.0);
        assert!(trained.parameters != parameters(&without).parameters, "{}: dropout trains differently", case.0);
        let other = parameters(&Experiment { seed: with.seed + 1, ..with.clone() });
        assert!(trained.parameters != other.parameters, "{}", case.0);
        let mut plain = trained.clone();
        plain.model = without.model.clone();
        let predict = |operator: &lamo::run::Operator| operator.predict(&samples(), Device::Cpu).unwrap();
        assert!(predict(&trained) == predict(&plain), "{}: predictions do not depend on the rate", case.0);
    }
}

/// Whole samples: all elements of a sample share their factor, which has the mean 1.
#[test]
fn stochastic_depth_drops_whole_samples_in_training_only() {
    let graph = Graph::new();
    let parameters = Parameters::new(&graph);
    let depth = Dropout::new(&parameters.root(), 0.25, Dropped::Samples);
    let x = graph.fill(1.0, [4000, 3, 2]);
    assert!(depth.forward(x, Mode::Training).is_same(&x), "without random numbers nothing is dropped");
    let random = Random::new(&graph, "random");
    parameters.draw_from(&random);
    assert!(depth.forward(x, Mode::Inference).is_same(&x) && !random.is_used());
    graph.output("y", depth.forward(x, Mode::Training));
    let mut program = Program::compile(&graph);
    program.write("random", &[1.0, 2.0, 3.0, 4.0]);
    program.run();
    let found = program.read("y");
    assert!(found.chunks_exact(6).all(|sample| sample.iter().all(|&value| value == sample[0])));
    let kept = found.chunks_exact(6).filter(|sample| sample[0] != 0.0).count() as f64;
    let deviation = (4000.0 * 0.25 * 0.75_f64).sqrt();
    assert!((kept - 3000.0).abs() < 5.0 * deviation, "{kept} of 4000 samples are kept");
}

#[test]
fn a_rate_at_which_nothing_is_kept_is_refused() {
    for case in CASES {
        for rate in [1.0, -0.1, f64::NAN] {
            let task = lamo::task::Task::plain(GRID, 2, 1, 1);
            let (name, _, rates) = case;
            let mut settings = models::find(name).unwrap().defaults();
            settings.insert(rates[0].to_owned(), toml::Value::from(rate));
            let refusal = models::find(name).unwrap().parameter_count(&task, &settings).unwrap_err().to_string();
            assert!(refusal.contains(&format!("{}: expected a rate from 0 to below 1", rates[0])), "{refusal}");
        }
    }
}
