//! The training program shows each sample as [`Symmetry::apply`](crate::experiment::Symmetry::apply) transforms it.

use super::super::resident::{self, Resident, SAMPLES, Stored};
use super::*;
use crate::data::dataset::Outcome;
use crate::data::{Recipe, Samples};
use crate::experiment::{Experiment, ExperimentData, Preset, Request, Symmetry};
use crate::files::scratch::Folder;
use crate::task::Normaliser;
use lamo_physics::problems::{PROBLEMS, Row};
use std::ops::ControlFlow;

/// A benchmark on a coarse grid, with its samples.
fn small(name: &str, folder: &Folder, more: &[&str]) -> (Experiment, ExperimentData) {
    let row = lamo_physics::problems::find(name).unwrap();
    let settings = row.small.iter().map(|setting| format!("data.settings.{setting}"));
    let normalise = r#"data.normalise=["positions", "inputs", "outputs"]"#;
    let keys = ["data.train=4", "data.test=1", "data.first_test=4", "train.symmetries=true", normalise];
    let mut changes: Vec<String> = settings.chain(keys.iter().chain(more).map(ToString::to_string)).collect();
    if name == "navier-stokes" {
        changes.push("data.past=2".to_owned());
    }
    let request =
        Request { benchmark: Some(name), preset: Some(Preset::Quick), changes: &changes, ..Request::default() };
    let experiment = request.resolve().unwrap();
    let settings = experiment.data.settings.iter().map(|(key, value)| format!("{key}={value}"));
    let settings: Vec<String> = settings.map(|setting| setting.replace('"', "")).collect();
    let recipe = Recipe::named(name, &settings, 1, 5).unwrap();
    let Outcome::Made(dataset) = recipe.make(&folder.at(name), 1, &|_| ControlFlow::Continue(())).unwrap() else {
        panic!("{name}: the data are new")
    };
    let data = ExperimentData::read(&experiment, &dataset).unwrap();
    (experiment, data)
}

/// The batch of samples 2, 0 and 1 that a training program sees under `chosen`, in physical units, as samples.
fn shown(task: &Task, train: &Samples, turning: &Turning, chosen: &[usize]) -> [Vec<f32>; 3] {
    let graph = Graph::new();
    let resident = Resident::declare(&graph, &Stored::whole(train), chosen.len(), Some(turning));
    graph.output("positions", resident.positions);
    let functions = resident.functions(train.functions);
    functions.inspect(|functions| graph.output("functions", *functions));
    graph.output("targets", resident.targets());
    let mut program = Program::compile(&graph);
    resident::fill(&mut program, task, &Stored::whole(train), train.functions > 0).unwrap();
    program.try_write_index(SAMPLES, &[2, 0, 1]).unwrap();
    turning.write(&mut program, chosen).unwrap();
    program.try_run().unwrap();
    let decoded = |name: &str, normaliser: &Option<Normaliser>| {
        let mut values = program.read(name).to_vec();
        normaliser.iter().for_each(|normaliser| normaliser.decode(&mut values));
        values
    };
    let inputs = functions.map_or_else(Vec::new, |_| decoded("functions", &task.normalisers.inputs));
    [decoded("positions", &task.normalisers.positions), inputs, decoded("targets", &None)]
}

fn near(name: &str, found: &[f32], wanted: &[f32]) {
    assert_eq!(found.len(), wanted.len(), "{name}");
    let size = wanted.iter().fold(1e-6_f32, |size, value| size.max(value.abs()));
    let gap = found.iter().zip(wanted).map(|(one, two)| (one - two).abs()).fold(0.0, f32::max);
    assert!(gap <= 1e-6 * size, "{name}: {gap} of {size}"); // normalising rounds four times by 6e-8
}

#[test]
fn a_batch_is_shown_as_the_symmetries_transform_its_samples_in_physical_units() {
    let folder = Folder::new("turned");
    let has_symmetries = |row: &&Row| row.symmetries(row.small).unwrap().len() > 1;
    for row in PROBLEMS.iter().filter(has_symmetries) {
        let (experiment, data) = small(row.name, &folder, &[]);
        let task = data.task(&experiment).unwrap();
        let group = Symmetries::of(&experiment, &task, "train.symmetries").unwrap();
        let turning = Turning::new(group.clone(), &task);
        let chosen = [group.order() - 1, 0, group.order() / 2];
        let [positions, inputs, targets] = shown(&task, &data.train, &turning, &chosen);
        for ((&element, sample), place) in chosen.iter().zip([2, 0, 1]).zip(0..) {
            let part = |values: &[f32]| values[values.len() / 3 * place..values.len() / 3 * (place + 1)].to_vec();
            let wanted = group.elements[element].apply(&task, &data.train);
            near(row.name, &part(&positions), wanted.positions_of(sample));
            near(row.name, &part(&inputs), if wanted.functions > 0 { wanted.input_of(sample) } else { &[] });
            near(row.name, &part(&targets), wanted.target_of(sample));
            let undone = group.elements[element].undo(&wanted.targets);
            near(row.name, &undone, &data.train.targets);
        }
        let moved = group.elements[group.order() - 1].apply(&task, &data.train);
        assert!(moved.targets != data.train.targets, "{}: the symmetry changes nothing", row.name);
    }
}

/// A quarter turn of vectors on a square: rows become columns, and the components change places.
#[test]
fn channels_that_change_places_are_shown_so() {
    let folder = Folder::new("exchanged");
    let (experiment, data) = small("plasticity", &folder, &[]);
    let task = data.task(&experiment).unwrap();
    let group = Symmetries::of(&experiment, &task, "train.symmetries").unwrap();
    let mut odd: Symmetry = group.elements[1].clone();
    odd.outputs.0.swap(0, 3);
    odd.outputs.0.swap(1, 2);
    let elements = vec![group.elements[0].clone(), odd.clone()];
    let turning = Turning::new(Symmetries { elements, of_samples: true, grid: task.grid }, &task);
    let [_, _, targets] = shown(&task, &data.train, &turning, &[1, 0, 1]);
    let third = targets.len() / 3;
    near("first", &targets[..third], odd.apply(&task, &data.train).target_of(2));
    near("second", &targets[third..2 * third], data.train.target_of(0));
    near("third", &targets[2 * third..], odd.apply(&task, &data.train).target_of(1));
}

#[test]
fn each_sample_of_a_batch_has_a_symmetry_of_its_own_that_depends_on_seed_and_step() {
    let folder = Folder::new("drawn");
    let (experiment, data) = small("navier-stokes", &folder, &[]);
    let task = data.task(&experiment).unwrap();
    let turning = Turning::new(Symmetries::of(&experiment, &task, "train.symmetries").unwrap(), &task);
    assert_eq!(turning.group.order(), 64); // 4 · 16 on the small lattice
    let drawn: Vec<usize> = (0..400).flat_map(|step| turning.draw(4, 7, step)).collect();
    assert_eq!(turning.draw(4, 7, 3), &drawn[12..16]);
    assert_ne!(turning.draw(4, 8, 3), &drawn[12..16]);
    let seen: std::collections::HashSet<usize> = drawn.into_iter().collect();
    assert_eq!(seen.len(), 64, "1600 draws show each of them, but for one case in 10⁹");
}

#[test]
fn a_problem_without_symmetries_and_another_grid_are_refused() {
    let folder = Folder::new("refused");
    let (experiment, data) = small("pipe", &folder, &[]);
    let task = data.task(&experiment).unwrap();
    let mut public = experiment.clone();
    public.data.settings.insert("canonical".into(), true.into());
    let told = Symmetries::of(&public, &task, "train.symmetries").unwrap_err().to_string();
    assert!(
        told.contains(
            "train.symmetries: expected a problem with symmetries, found pipe, which has none with these settings"
        ),
        "{told}"
    );
    let mut finer = experiment;
    finer.data.settings.insert("resolution".into(), 7.into());
    let told = Symmetries::of(&finer, &task, "train.symmetries").unwrap_err().to_string();
    assert!(told.contains("the 225 points of pipe"), "{told}");
}
