//! Levers of LaMO: off, the model is the one it was before there were any; on, each is its equation, differentiates, learns and
//! is stored.

use crate::support::{Folder, essence, experiment, train_to};
use lamo::data::Samples;
use lamo::experiment::Experiment;
use lamo::network::models::{self, Settings};
use lamo::network::{Input, Mode, Parameters};
use lamo::run::model_folder::ModelFolder;
use lamo::run::{self, Environment, Run};
use lamo::task::Task;
use lamo::training::Trainer;
use lamo::training::loss::relative_l2_sum;
use lamo::training::optimiser::AdamW;
use lamo::training::schedule::Schedule;
use lamo_geometry::Grid;
use lamo_tensor::reference::{self, Bindings};
use lamo_tensor::{Device, Graph, PARAMETERS, Program};
use std::collections::BTreeMap;

/// Numbers without a pattern.
fn numbers(count: usize, pace: f64) -> Vec<f64> {
    (0..count).map(|n| 0.7 * (0.4 + pace * n as f64).sin()).collect()
}

/// Values of all inputs of a model.
fn inputs(task: &Task, batch: usize) -> Vec<(&'static str, Vec<f64>)> {
    let points = batch * task.grid.points();
    let mut all = vec![("positions", numbers(points * task.space, 0.37))];
    if task.input_channels() > 0 {
        all.push(("functions", numbers(points * task.input_channels(), 1.3)));
    }
    if task.time.is_input() {
        all.push(("time", numbers(batch, 0.9)));
    }
    all
}

fn line() -> Task {
    Task::plain(Grid::Line { points: 9 }, 1, 1, 2)
}

fn plane() -> Task {
    Task::plain(Grid::Plane { rows: 6, columns: 5 }, 2, 1, 2)
}

fn cloud() -> Task {
    Task::plain(Grid::Cloud { points: 11 }, 2, 0, 2)
}

/// The tiny settings of a task with others over them.
fn settings(task: &Task, changes: &str) -> Settings {
    let mut settings = (models::find("lamo").unwrap().tiny)(task);
    settings.extend(changes.parse::<Settings>().unwrap());
    settings
}

const SLICES: &str = "latent = \"slices\"\nmixer = \"hydra\"\ndirections = 2";
const SHARED: &str = "encoder = \"shared\"";
const MAMBA: &str = "latent = \"slices\"\nmixer = \"mamba2\"\ndirections = 2\ndecoder = \"own\"";

/// FNV-1a of the names and shapes of all parameters.
fn digest(graph: &Graph) -> u64 {
    let text: String = graph.sections().iter().map(|section| format!("{} {}\n", section.name, section.shape)).collect();
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

/// Operations of the graph, digest of the parameters, and Σ y² of first values in f64, as they were before the levers.
#[test]
fn without_levers_the_model_has_the_operations_parameters_and_values_it_had_before_them() {
    for (task, changes, operations, parameters, sum) in [
        (line(), "", 236, 0x4b74_3745_d425_00ce_u64, 585.269_401_733_593_6),
        (plane(), "depth = 2", 383, 0x8f33_ac19_f4d7_87f5, 2_577.586_568_734_492_6),
        (plane(), SLICES, 301, 0x039b_c672_d77b_a499, 0.058_167_390_779_153_1),
        (plane().by_time(3), MAMBA, 388, 0xb07b_06e0_5700_ea80, 1.742_608_534_648_547_1),
        (cloud(), SHARED, 294, 0x8208_7d89_1343_f3d1, 0.153_615_214_085_231_4),
    ] {
        let graph = Graph::new();
        let declared = Parameters::new(&graph);
        let model = models::find("lamo").unwrap().build(&declared, &task, &settings(&task, changes)).unwrap();
        let out = model.forward(&Input::declare(&graph, &task, 2), Mode::Training);
        let found = (graph.len(), digest(&graph));
        let mut bindings: Bindings<'_> = inputs(&task, 2).into_iter().collect();
        bindings.insert(PARAMETERS, declared.draw(2).into_iter().map(f64::from).collect());
        let values = &reference::evaluate(&graph, &bindings, &[out])[0].values;
        let found_sum: f64 = values.iter().map(|value| value * value).sum();
        let about = format!("{:?} {changes}", task.grid);
        assert_eq!(found, (operations, parameters), "{about}");
        assert!((found_sum / sum - 1.0).abs() < 1e-12, "{about}: {found_sum:?} instead of {sum:?}");
    }
}

/// Every lever by itself where it can be, and all of them together.
fn levers() -> Vec<(Task, String)> {
    let of = |task: fn() -> Task, parts: &[&str]| (task(), parts.join("\n"));
    vec![
        of(plane, &["residual = true"]),
        of(plane, &[SLICES, "residual = true"]),
        of(cloud, &[SHARED, "residual = true"]),
        of(plane, &["spectral_modes = 2"]),
        of(line, &["spectral_modes = 2"]),
        of(plane, &[SLICES, "spectral_modes = 2"]),
        of(line, &[SLICES, "spectral_modes = 4"]),
        of(plane, &["mlp = \"swiglu\""]),
        of(cloud, &["mlp = \"swiglu\""]),
        of(cloud, &["decoder = \"own\""]),
        of(plane, &[SLICES, SHARED, ALL, "decoder = \"own\""]),
        of(plane, &[ALL]),
    ]
}

/// All levers that slices and patches have.
const ALL: &str = "residual = true\nspectral_modes = 2\nmlp = \"swiglu\"\ndepth = 2";

fn singles(values: &[f64]) -> Vec<f32> {
    values.iter().map(|&value| value as f32).collect()
}

/// Parameters with nothing at 0, so that a gain that begins there has an effect.
fn moved(values: &[f32]) -> Vec<f64> {
    values.iter().enumerate().map(|(i, &value)| f64::from(value + 0.1 * (1.7 * i as f32).sin())).collect()
}

/// Against a central difference in f64, of step 10⁻⁵: its error is 10⁻¹⁰ of the third derivative, and the rounding 10⁻¹¹.
/// Then the CPU in f32 against the f64 reference, at the tolerances of parity.
#[test]
fn every_lever_has_the_gradient_of_its_values_and_the_cpu_computes_both() {
    for (task, changes) in levers() {
        let about = format!("{:?} {changes}", task.grid);
        let graph = Graph::new();
        let declared = Parameters::new(&graph);
        let model = models::find("lamo").unwrap().build(&declared, &task, &settings(&task, &changes)).unwrap();
        let out = model.forward(&Input::declare(&graph, &task, 2), Mode::Training);
        let weights = graph.constant(&singles(&numbers(out.shape().count(), 0.61)), out.shape());
        let total = (out * weights).sum_all();
        let gradient = graph.gradient(total, &[graph.parameters()])[0].unwrap();
        let theta = moved(&declared.draw(2));
        let direction = numbers(theta.len(), 2.3);
        let at = |step: f64, wanted: &[lamo_tensor::Tensor<'_>]| {
            let mut bindings: Bindings<'_> = inputs(&task, 2).into_iter().collect();
            // The inputs and parameters of a program are f32.
            bindings
                .values_mut()
                .for_each(|values| values.iter_mut().for_each(|value| *value = f64::from(*value as f32)));
            let single = theta.iter().map(|&value| f64::from(value as f32));
            bindings.insert(PARAMETERS, single.zip(&direction).map(|(value, slope)| value + step * slope).collect());
            let arrays = reference::evaluate(&graph, &bindings, wanted);
            arrays.into_iter().map(|array| array.values).collect::<Vec<_>>()
        };
        let step = 1e-5;
        let slope = (at(step, &[total])[0][0] - at(-step, &[total])[0][0]) / (2.0 * step);
        let exact = at(0.0, &[out, gradient]);
        let expected: f64 = exact[1].iter().zip(&direction).map(|(gradient, slope)| gradient * slope).sum();
        assert!((slope / expected - 1.0).abs() < 1e-6, "{about}: slope {slope}, gradient {expected}");
        graph.output("out", out);
        graph.output("gradient", gradient);
        let mut program = Program::compile(&graph);
        program.write(PARAMETERS, &singles(&theta));
        inputs(&task, 2).iter().for_each(|(name, values)| program.write(name, &singles(values)));
        program.run();
        for (name, exact, tolerance) in [("out", &exact[0], 2e-5), ("gradient", &exact[1], 3e-4)] {
            let largest = exact.iter().fold(0.0, |largest: f64, value| largest.max(value.abs()));
            for (found, exact) in program.read(name).iter().zip(exact) {
                let error = (f64::from(*found) - exact).abs();
                assert!(error <= tolerance * largest, "{about}: {name} {found} instead of {exact}, largest {largest}");
            }
        }
    }
}

/// 0.05 at most was seen.
#[test]
fn every_lever_can_overfit_one_batch() {
    for (task, changes) in levers() {
        let graph = Graph::new();
        let declared = Parameters::new(&graph);
        let mut settings = settings(&task, &changes);
        settings.insert("initial".into(), "fan-in".into());
        let model = models::find("lamo").unwrap().build(&declared, &task, &settings).unwrap();
        let out = model.forward(&Input::declare(&graph, &task, 2), Mode::Training);
        let loss = relative_l2_sum(out, graph.input("target", out.shape()));
        graph.output("loss", loss * 0.5);
        let adamw = AdamW::default();
        adamw.minimise(&graph, loss);
        let mut program = Program::compile(&graph);
        declared.initialise(&mut program, 7);
        inputs(&task, 2).iter().for_each(|(name, values)| program.write(name, &singles(values)));
        let count = 2 * task.grid.points() * task.output_channels();
        program.write("target", &(0..count).map(|i| 1.0 + (0.31 * i as f32).cos()).collect::<Vec<_>>());
        let schedule = Schedule::OneCycle { peak: 1e-2, steps: 1000 };
        for step in 0..1000 {
            adamw.pace(&mut program, step, schedule.at(step)).unwrap();
            program.run();
        }
        let loss = program.read("loss")[0];
        assert!(loss < 0.15, "{:?} {changes} stops at {loss}", task.grid);
    }
}

/// y of a model with some parameters, in f64.
fn outputs(task: &Task, changes: &str, set: impl Fn(&str, usize, f64) -> f64) -> Vec<f64> {
    let graph = Graph::new();
    let declared = Parameters::new(&graph);
    let model = models::find("lamo").unwrap().build(&declared, task, &settings(task, changes)).unwrap();
    let out = model.forward(&Input::declare(&graph, task, 2), Mode::Training);
    let mut theta = vec![0.0; graph.parameters().shape().count()];
    for section in graph.sections() {
        let own = numbers(section.shape.count(), 0.1 * section.name.bytes().map(f64::from).sum::<f64>());
        let values = own.iter().enumerate().map(|(index, &value)| set(&section.name, index, value));
        theta[section.range()].iter_mut().zip(values).for_each(|(place, value)| *place = value);
    }
    let mut bindings: Bindings<'_> = inputs(task, 2).into_iter().collect();
    bindings.insert(PARAMETERS, theta);
    reference::evaluate(&graph, &bindings, &[out])[0].values.clone()
}

#[test]
fn a_gain_of_zero_leaves_the_tokens_unmixed_and_a_gain_of_one_on_patches_is_the_plain_model() {
    let gained = |gain: f64, shift: f64| {
        move |name: &str, _: usize, value: f64| match name {
            name if name.ends_with("gamma") => gain,
            name if name.contains("hydra") => value + shift,
            _ => value,
        }
    };
    for (task, changes) in [(plane(), ""), (plane(), SLICES), (cloud(), SHARED)] {
        let on = format!("{changes}\nresidual = true");
        assert_eq!(outputs(&task, &on, gained(0.0, 0.0)), outputs(&task, &on, gained(0.0, 0.1)), "{changes}");
        assert_ne!(outputs(&task, &on, gained(0.5, 0.0)), outputs(&task, &on, gained(0.5, 0.1)), "{changes}");
    }
    let plain = outputs(&plane(), "", gained(1.0, 0.0));
    assert_eq!(outputs(&plane(), "residual = true", gained(1.0, 0.0)), plain);
}

/// Models of earlier versions state levers that were retired.
#[test]
fn a_retired_lever_that_is_off_changes_nothing() {
    let off = "position_convolution = false\nqueries = \"fixed\"";
    let experiment = Experiment::shipped("darcy-lamo").unwrap();
    let text = experiment.text().replace("[model.settings]\n", &format!("[model.settings]\n{off}\n"));
    let earlier = Experiment::recorded("experiment.toml", &text).unwrap();
    assert_eq!(earlier, experiment);
    let told = Experiment::parse("mine.toml", &text).unwrap_err().to_string(); // which is not a record
    assert!(told.contains("unknown key model.settings.position_convolution"), "{told}");
}

/// A run with all levers on slices, interrupted and resumed; its weights tell the settings again.
#[test]
fn a_model_with_levers_is_stored_resumed_and_told_by_its_weights() {
    let folder = Folder::new("levers");
    let grid = Grid::Plane { rows: 6, columns: 5 };
    let field = |change: fn(f32) -> f32| (0..5 * 30).map(|i| change((0.37 * i as f32).sin())).collect::<Vec<f32>>();
    let samples = Samples::new(grid, 1, field(|v| v), 1, field(|v| 1.5 + v * v)).unwrap();
    for (name, levers) in [
        ("slices", format!("{SLICES}\n{ALL}")),
        ("shared", format!("{SLICES}\n{SHARED}\nresidual = true\ndecoder = \"own\"")),
        ("patches", ALL.to_owned()),
    ] {
        let settings = settings(&plane(), &levers);
        let keys: Vec<String> = settings.iter().map(|(key, value)| format!("model.settings.{key}={value}")).collect();
        let mut changes: Vec<&str> = keys.iter().map(String::as_str).collect();
        changes.extend(["train={ epochs = 2, batch = 2, rate = 3e-3 }"]);
        let experiment = experiment(&changes);
        let task = experiment.task(&samples).unwrap();
        let trainer = || Trainer::new(&experiment, &task, &samples, &samples.clone().first(2), Device::Cpu).unwrap();
        let create =
            |path: &std::path::Path| Run::create(path, &experiment, &Environment::here(Device::Cpu, 1, None)).unwrap();
        let [whole, stopped] = ["whole", "stopped"].map(|end| folder.at(&format!("{name}-{end}")));
        train_to(&mut trainer(), Some(&create(&whole)), usize::MAX);
        train_to(&mut trainer(), Some(&create(&stopped)), 2);
        let (run, _, begun) = Run::open(&stopped).unwrap();
        let mut resumed = trainer();
        resumed.restore(&begun.unwrap()).unwrap();
        train_to(&mut resumed, Some(&run), usize::MAX);
        assert!(essence(&stopped) == essence(&whole), "{name}");
        let operator = run::Trained::open(&whole).unwrap().operator;
        let weights = folder.at(&format!("{name}.safetensors"));
        operator.write_weights(&weights, &BTreeMap::new()).unwrap();
        let (told, _) = ModelFolder::infer(&weights, &["task.grid=6x5".into()]).unwrap();
        let mut expected = models::find("lamo").unwrap().defaults();
        expected.extend(operator.model.settings.clone());
        let mut found = told.operator.model.settings;
        for key in ["initial", "head_width", "groups", "tokens", "slice_heads"] {
            // Patches have no slices, and the mixer `cross` no such heads; first values leave no trace.
            if name == "patches" || key == "initial" {
                found.insert(key.into(), expected[key].clone());
            }
        }
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn a_lever_that_a_task_cannot_have_is_refused_in_a_sentence() {
    let row = models::find("lamo").unwrap();
    for (task, changes, words) in [
        (cloud(), "spectral_modes = 2", ["spectral half", "cloud", "spectral_modes = 0"]),
        (plane(), "spectral_modes = 3", ["3 × 3", "at most 2", "spectral_modes = 3"]),
        (
            plane(),
            "position_convolution = true",
            ["position_convolution", "no longer", "the version of lamo that trained the model"],
        ),
        (line(), &format!("{SLICES}\nspectral_modes = 6"), ["1 × 9", "at most 5", "found"]),
        (line(), &format!("{SLICES}\nspectral_modes = 2\nslice_heads = 16"), ["width 8", "16 slice heads", "divide"]),
    ] {
        let sentence = row.parameter_count(&task, &settings(&task, changes)).unwrap_err().to_string();
        assert!(words.iter().all(|word| sentence.contains(word)) && !sentence.contains('\n'), "{changes}: {sentence}");
    }
}
