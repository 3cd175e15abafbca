//! Every row of the registry of models keeps what it promises.

use lamo::experiment::{EXPERIMENTS, Preset, Request};
use lamo::network::models::{MODELS, Row};
use lamo::network::{Input, Mode, Parameters};
use lamo::task::Task;
use lamo::training::loss::relative_l2_sum;
use lamo::training::optimiser::AdamW;
use lamo::training::schedule::Schedule;
use lamo_geometry::Grid;
use lamo_tensor::{Graph, Program};
use std::collections::BTreeSet;

/// Small tasks on every kind of grid, with and without functions given, with and without a time.
fn tasks() -> Vec<Task> {
    let grids = [
        (Grid::Line { points: 9 }, 1),
        (Grid::Plane { rows: 7, columns: 5 }, 2),
        (Grid::Plane { rows: 16, columns: 4 }, 3),
        (Grid::Volume { rows: 3, columns: 5, layers: 4 }, 3),
        (Grid::Cloud { points: 11 }, 2),
        (Grid::Cloud { points: 8 }, 3),
    ];
    let plain = grids.map(|(grid, space)| [0, 2].map(|functions| Task::plain(grid, space, functions, 2)));
    plain.into_iter().flatten().flat_map(|task| [task.clone(), task.by_time(3)]).collect()
}

fn wave(count: usize, pace: f32) -> Vec<f32> {
    (0..count).map(|i| (pace * i as f32).sin()).collect()
}

/// Writes some numbers to every input of a model's program.
fn write(program: &mut Program, task: &Task, batch: usize) {
    let points = batch * task.grid.points();
    // Distinct points: a model that sees nothing else of a point must be able to tell them apart.
    let count = task.grid.points();
    let place =
        |i: usize| ((i % (count * task.space)) / task.space * (1 + 4 * (i % task.space)) % count) as f32 / count as f32;
    program.write("positions", &(0..points * task.space).map(place).collect::<Vec<f32>>());
    if task.input_channels() > 0 {
        program.write("functions", &wave(points * task.input_channels(), 1.3));
    }
    if task.time.is_input() {
        program.write("time", &wave(batch, 0.4));
    }
}

#[test]
fn every_model_builds_in_its_tiny_size_on_every_task_that_it_supports() {
    for (row, task) in MODELS.iter().flat_map(|row| tasks().into_iter().map(move |task| (row, task))) {
        if !row.supports.allows(&task) {
            continue;
        }
        let about = format!("{} on {:?}, {:?}, {} inputs", row.name, task.grid, task.time, task.input_channels());
        let graph = Graph::new();
        let parameters = Parameters::new(&graph);
        let built = row.build(&parameters, &task, &(row.tiny)(&task));
        let model = built.unwrap_or_else(|refusal| panic!("{about}: {refusal}"));
        let out = model.forward(&Input::declare(&graph, &task, 2), Mode::Training);
        assert_eq!(out.shape().dims(), [2, task.grid.points(), 2], "{about}");
        graph.output("out", out);
        graph.output("gradient", graph.gradient(out.square().sum_all(), &[graph.parameters()])[0].unwrap());
        let mut program = Program::compile(&graph);
        parameters.initialise(&mut program, 2);
        write(&mut program, &task, 2);
        program.run();
        let finite = |name: &str| program.read(name).iter().all(|value| value.is_finite());
        assert!(finite("out") && finite("gradient"), "{about}");
        assert!(program.read("gradient").iter().any(|&slope| slope != 0.0), "{about}: the gradient is 0");
    }
}

#[test]
fn a_task_that_a_model_does_not_support_is_refused_with_the_models_that_do() {
    for (row, task) in MODELS.iter().flat_map(|row| tasks().into_iter().map(move |task| (row, task))) {
        if row.supports.allows(&task) {
            continue;
        }
        let refusal = row.parameter_count(&task, &row.defaults()).unwrap_err().to_string();
        assert!(refusal.starts_with(&format!("model {}: expected ", row.name)), "{refusal}");
        for able in MODELS.iter().filter(|row| row.supports.allows(&task)) {
            assert!(refusal.contains(able.name) && !refusal.contains('\n'), "{} is missing: {refusal}", able.name);
        }
    }
}

/// From both presets, with the settings that follow from the data.
#[test]
fn every_model_builds_on_data_of_your_own_that_it_supports() {
    for (row, task) in MODELS.iter().flat_map(|row| tasks().into_iter().map(move |task| (row, task))) {
        if !row.supports.allows(&task) {
            continue;
        }
        let changes: Vec<String> =
            if task.time.is_input() { vec!["train.loss=relative-l2-of-times".into()] } else { Vec::new() };
        for preset in [Preset::Quick, Preset::Paper] {
            let request = Request {
                model: Some(row.name),
                preset: Some(preset),
                grid: Some(task.grid),
                changes: &changes,
                ..Request::default()
            };
            let settings = request.resolve().unwrap().model.settings;
            let built = row.parameter_count(&task, &settings);
            assert!(built.is_ok(), "{} on {:?}, {:?}, {preset:?}: {built:?}", row.name, task.grid, task.time);
        }
    }
}

#[test]
fn patches_of_a_plane_of_your_own_grow_with_it_in_the_preset_quick() {
    let patch = |rows, columns, preset| {
        let grid = Some(Grid::Plane { rows, columns });
        let request = Request { model: Some("lamo"), preset: Some(preset), grid, ..Request::default() };
        request.resolve().unwrap().model.settings["patch"].as_integer().unwrap()
    };
    for (rows, columns, expected) in [(7, 5, 2), (32, 32, 2), (33, 32, 4), (64, 64, 4), (85, 85, 8), (500, 700, 8)] {
        assert_eq!(patch(rows, columns, Preset::Quick), expected, "{rows} × {columns}");
    }
    assert_eq!(patch(85, 85, Preset::Paper), 2, "longer trainings are more accurate with small patches");
}

#[test]
fn a_volume_of_your_own_has_some_hundred_patches_and_six_directions_and_few_modes() {
    let settings = |model, side, preset| {
        let grid = Some(Grid::Volume { rows: side, columns: side, layers: side });
        let request = Request { model: Some(model), preset: Some(preset), grid, ..Request::default() };
        request.resolve().unwrap().model.settings
    };
    for (side, patch) in [(8, 2), (16, 2), (17, 4), (32, 4), (33, 8), (64, 8)] {
        let found = settings("lamo", side, Preset::Quick);
        assert_eq!([&found["patch"], &found["directions"]].map(toml::Value::as_integer), [Some(patch), Some(6)]);
        assert!(side.div_ceil(patch as usize).pow(3) <= 512, "{side}³");
    }
    for (preset, expected) in [(Preset::Quick, [6, 24]), (Preset::Paper, [8, 32])] {
        let found = settings("fno", 32, preset);
        assert_eq!(["modes", "width"].map(|key| found[key].as_integer().unwrap()), expected, "{preset:?}");
    }
}

/// The loss of a model in its tiny size on two samples of one task, after a number of steps.
fn overfitted(row: &Row, task: &Task, steps: usize) -> f32 {
    let graph = Graph::new();
    let parameters = Parameters::new(&graph);
    let model = row.build(&parameters, task, &(row.tiny)(task)).unwrap();
    let out = model.forward(&Input::declare(&graph, task, 2), Mode::Training);
    let loss = relative_l2_sum(out, graph.input("target", out.shape()));
    graph.output("loss", loss * 0.5);
    let adamw = AdamW::default();
    adamw.minimise(&graph, loss);
    let mut program = Program::compile(&graph);
    parameters.initialise(&mut program, 7);
    write(&mut program, task, 2);
    let count = 2 * task.grid.points() * task.output_channels();
    let target: Vec<f32> = (0..count).map(|i| 1.0 + (0.31 * i as f32).cos()).collect();
    program.write("target", &target);
    let schedule = Schedule::OneCycle { peak: 5e-3, steps }; // at 1e-2, one seed in ten needs more steps on clouds
    for step in 0..steps {
        adamw.pace(&mut program, step, schedule.at(step)).unwrap();
        program.run();
    }
    program.read("loss")[0]
}

/// In 1000 steps most models do, and all in 2000, with 0.005 or less except FactFormer's 0.09 in a volume.
#[test]
fn every_model_can_overfit_one_batch_on_every_kind_of_grid() {
    for (grid, space) in [
        (Grid::Line { points: 12 }, 1),
        (Grid::Plane { rows: 4, columns: 3 }, 2),
        (Grid::Volume { rows: 2, columns: 3, layers: 2 }, 3),
        (Grid::Cloud { points: 12 }, 2),
    ] {
        let task = Task::plain(grid, space, 2, 1);
        for row in MODELS.iter().filter(|row| row.supports.allows(&task)) {
            let is_low = |&steps: &usize| overfitted(row, &task, steps) < 0.15;
            assert!([1000, 2000].iter().any(is_low), "{} does not learn two samples on {grid:?}", row.name);
        }
    }
}

#[test]
fn no_two_models_classes_or_experiments_have_the_same_name() {
    let classes = MODELS.iter().flat_map(|row| row.translate.iter().map(|(class, _)| *class));
    let names = MODELS.iter().map(|row| row.name);
    let experiments = EXPERIMENTS.iter().map(|shipped| shipped.name.as_str());
    for names in [classes.collect::<Vec<_>>(), names.collect(), experiments.collect()] {
        let distinct: BTreeSet<_> = names.iter().collect();
        assert_eq!(distinct.len(), names.len(), "{names:?}");
    }
}

/// What `lamo list` shows.
#[test]
fn every_experiment_says_in_its_first_line_what_it_is() {
    for shipped in EXPERIMENTS.iter() {
        assert!(shipped.text.starts_with(&format!("# {}\n", shipped.summary)), "{}: {}", shipped.name, shipped.text);
        assert!(!shipped.summary.is_empty() && shipped.summary.ends_with('.'), "{}: {}", shipped.name, shipped.summary);
    }
}
