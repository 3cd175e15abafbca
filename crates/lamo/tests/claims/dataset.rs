//! Data sets: the same bytes on any threads and after any interruption; damage is found; complaints are one sentence.

use crate::fixture::open;
use crate::support::Folder;
use lamo::data::Recipe;
use lamo::data::dataset::{Batches, Dataset, Outcome, Progress, Rule};
use lamo::task::Normaliser;
use lamo_geometry::Grid;
use lamo_physics::parameters::Settings;
use lamo_physics::problems::{self, Field, FieldKind, Problem, Role, Sample, SpatialOrder};
use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

const SAMPLES: usize = 9;

fn recipe(problem: &str, seed: u64) -> Recipe {
    Recipe::named(problem, problems::find(problem).unwrap().small, seed, SAMPLES).unwrap()
}

fn darcy(changes: &[&str], seed: u64, samples: usize) -> Recipe {
    Recipe::named("darcy", &[&["resolution=12"], changes].concat(), seed, samples).unwrap()
}

fn proceed(_: Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn made(recipe: &Recipe, target: &Path, threads: usize) -> Dataset {
    match recipe.make(target, threads, &proceed).unwrap() {
        Outcome::Made(dataset) => dataset,
        other => panic!("expected a new data set, found {other:?}"),
    }
}

fn stopped_after(recipe: &Recipe, target: &Path, count: usize) -> Progress {
    let stop = |progress: Progress| if progress.made < count { proceed(progress) } else { ControlFlow::Break(()) };
    match recipe.make(target, 1, &stop).unwrap() {
        Outcome::Stopped(progress) => progress,
        other => panic!("expected a stop, found {other:?}"),
    }
}

/// Every file of a folder with its bytes.
fn bytes(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect()
}

fn complaint<T: std::fmt::Debug>(result: Result<T, impl std::error::Error>) -> String {
    let sentence = result.unwrap_err().to_string();
    assert_eq!(sentence.lines().count(), 1, "one sentence: {sentence}");
    sentence
}

#[test]
fn one_and_two_threads_make_the_same_bytes_and_read_back_what_the_solver_said() {
    let folder = Folder::new("threads");
    for row in problems::PROBLEMS {
        let (one, two) = (folder.at(&format!("{}-1", row.name)), folder.at(&format!("{}-2", row.name)));
        let dataset = made(&recipe(row.name, 3), &one, 1);
        made(&recipe(row.name, 3), &two, 2);
        assert_eq!(bytes(&one), bytes(&two), "{}", row.name);
        dataset.verify().unwrap();
        let expected = row.problem(row.small).unwrap().sample(3, 5).unwrap();
        for field in &expected.fields {
            let rounded: Vec<f32> = field.values.iter().map(|&value| value as f32).collect();
            assert_eq!(dataset.read(field.name, 5..6).unwrap(), rounded, "{} {}", row.name, field.name);
            let pair = dataset.gather(field.name, &[5, 0]).unwrap();
            assert_eq!(pair[..rounded.len()], rounded);
            assert_eq!(pair[rounded.len()..], dataset.read(field.name, 0..1).unwrap());
        }
    }
}

#[test]
fn a_set_resumed_after_a_stop_and_after_a_kill_is_the_same_bytes_as_one_made_in_one_go() {
    let folder = Folder::new("resume");
    let recipe = recipe("darcy", 7);
    let (whole, pieces, partial) = (folder.at("whole"), folder.at("pieces"), folder.at("pieces.partial"));
    made(&recipe, &whole, 1);
    assert_eq!(stopped_after(&recipe, &pieces, 4), Progress { complete: 4, made: 4, samples: SAMPLES });
    assert!(!pieces.exists() && partial.exists(), "an unfinished set does not bear its name");
    assert_eq!(fs::read(partial.join("progress")).unwrap(), b"111100000");
    // killed after a sample was marked lost, with another one half written: neither mark nor bytes may be believed
    let mut array = fs::read(partial.join("pressure.npy")).unwrap();
    array.iter_mut().rev().take(100).for_each(|byte| *byte = 0xff);
    fs::write(partial.join("pressure.npy"), array).unwrap();
    fs::write(partial.join("progress"), b"101100000").unwrap();
    assert_eq!(stopped_after(&recipe, &pieces, 1).complete, 4);
    made(&recipe, &pieces, 2);
    assert_eq!(bytes(&whole), bytes(&pieces));
    assert_eq!(bytes(&whole).keys().collect::<Vec<_>>(), ["dataset.toml", "permeability.npy", "pressure.npy"]);
    assert!(!partial.exists());
}

#[test]
fn a_set_killed_just_before_it_gets_its_name_or_right_at_the_start_is_completed() {
    let folder = Folder::new("moments");
    let recipe = darcy(&[], 0, 3);
    let (whole, other) = (folder.at("whole"), folder.at("other"));
    made(&recipe, &whole, 1);
    let expected = bytes(&whole);
    fs::rename(&whole, folder.at("whole.partial")).unwrap();
    made(&recipe, &whole, 1);
    assert_eq!(bytes(&whole), expected);
    fs::create_dir_all(folder.at("other.partial")).unwrap();
    fs::write(folder.at("other.partial/.recipe.toml.0f-3.partial"), "format =").unwrap();
    fs::create_dir_all(&other).unwrap(); // an empty folder may be taken
    made(&recipe, &other, 1);
    assert_eq!(bytes(&other), expected);
}

#[test]
fn the_same_recipe_finds_its_set_there_and_another_one_is_refused() {
    let folder = Folder::new("again");
    let target = folder.at("set");
    stopped_after(&darcy(&[], 0, 5), &target, 2);
    let refusal = |recipe: &Recipe| complaint(recipe.make(&target, 1, &proceed));
    let advice = "repeat the earlier command, or choose another folder, or remove this one";
    let partial = folder.at("set.partial").display().to_string();
    assert_eq!(
        refusal(&darcy(&[], 0, 6)),
        format!("{partial} holds an unfinished data set: expected samples 6, found 5; {advice}")
    );
    let lamo = made(&darcy(&[], 0, 5), &target, 1).manifest().lamo.clone();
    assert!(matches!(darcy(&[], 0, 5).make(&target, 1, &proceed), Ok(Outcome::AlreadyThere(_))));
    let manifest = fs::read_to_string(target.join("dataset.toml")).unwrap();
    let other_version = manifest.replace(&format!("lamo = {lamo:?}"), "lamo = \"0.0.1\"");
    assert_ne!(manifest, other_version);
    fs::write(target.join("dataset.toml"), other_version).unwrap();
    assert!(matches!(darcy(&[], 0, 5).make(&target, 1, &proceed), Ok(Outcome::AlreadyThere(_))));
    let name = target.display();
    for (recipe, difference) in [
        (darcy(&[], 1, 5), "seed 1, found 0"),
        (darcy(&["high=10"], 0, 5), "parameter high 10.0, found 12.0"),
        (recipe("navier-stokes", 0), "problem navier-stokes, found darcy"),
    ] {
        let expected = format!("{name} holds another data set: expected {difference}; {advice}");
        assert_eq!(refusal(&recipe), expected);
    }
}

#[test]
fn two_processes_do_not_work_on_one_folder() {
    let folder = Folder::new("lock");
    let target = folder.at("set");
    let sentence = std::sync::Mutex::new(String::new());
    let second = |_| {
        *sentence.lock().unwrap() = complaint(darcy(&[], 0, 2).make(&target, 1, &proceed));
        ControlFlow::Break(())
    };
    darcy(&[], 0, 2).make(&target, 1, &second).unwrap();
    let expected = format!(
        "{}: another process is making this data set; wait for it or stop it",
        folder.at("set.partial").display()
    );
    assert_eq!(*sentence.lock().unwrap(), expected);
}

#[test]
fn occupied_and_unwritable_targets_are_refused() {
    let folder = Folder::new("targets");
    let refusal = |target: &Path| complaint(darcy(&[], 0, 2).make(target, 1, &proceed));
    let (file, full) = (folder.at("file"), folder.at("full"));
    fs::write(&file, "text").unwrap();
    fs::create_dir_all(&full).unwrap();
    fs::write(full.join("notes"), "text").unwrap();
    let expected = |path: &Path, found: &str| {
        format!("{}: expected a free name for the data set, found {found}; choose another folder", path.display())
    };
    assert_eq!(refusal(&file), expected(&file, "a file"));
    assert_eq!(refusal(&full), expected(&full, "a folder that holds `notes`"));
    fs::rename(&full, folder.at("set.partial")).unwrap();
    assert_eq!(refusal(&folder.at("set")), expected(&folder.at("set.partial"), "a folder that holds `notes`"));
    let inside = refusal(&file.join("set"));
    assert!(inside.contains("file/set.partial: cannot be written: ") && inside.ends_with("may write to"), "{inside}");
}

#[test]
fn damage_is_found_and_named() {
    let folder = Folder::new("damage");
    let target = folder.at("set");
    made(&darcy(&[], 0, 3), &target, 1);
    let path = target.join("pressure.npy");
    let (manifest, whole) = (fs::read_to_string(target.join("dataset.toml")).unwrap(), fs::read(&path).unwrap());
    let advice = "restore the file or make the data set again";
    let refusal = || complaint(Dataset::open(&target));
    let mut bent = whole.clone();
    bent[1000] ^= 1;
    fs::write(&path, &bent).unwrap();
    let sentence = complaint(Dataset::open(&target).unwrap().verify());
    assert!(sentence.starts_with(&format!("{}: expected SHA-256 ", path.display())), "{sentence}");
    assert!(sentence.ends_with(advice), "{sentence}");
    fs::write(&path, &whole[..whole.len() - 5]).unwrap();
    let (expected, found) = (whole.len(), whole.len() - 5);
    assert_eq!(refusal(), format!("{}: expected {expected} bytes, found {found}; {advice}", path.display()));
    bent = whole.clone();
    bent[20] = b'!';
    fs::write(&path, &bent).unwrap();
    assert!(refusal().contains("pressure.npy: expected a NumPy array <f4 in C order of 3 samples of [12, 12]"));
    fs::remove_file(&path).unwrap();
    assert!(refusal().contains("pressure.npy: cannot be read: "), "{}", refusal());
    fs::write(&path, &whole).unwrap();
    for (from, to, sentence) in [
        ("format = 1", "format = 2", "expected format = 1, found 2"),
        ("seed = 0", "seeds = 0", "line 5: unknown field `seeds`"),
        ("seed = 0", "seed = ", "line 5: "),
        ("dtype = \"<f4\"", "dtype = \"<f8\"", "field `permeability`: expected dtype <f4, found `<f8`"),
        ("file = \"pressure.npy\"", "file = \"../pressure.npy\"", "expected the name of a file in the folder"),
        ("samples = 3", "samples = 4000000000000000000", "more than any file can hold"),
        ("samples = 3", "samples = 4", "found the header {'descr': '<f4', 'fortran_order': False, 'shape': (3, "),
        ("test = 1", "test = 2", "split: expected at most 3 samples in all, found 2 to train and 2 to test on"),
    ] {
        assert!(manifest.contains(from), "{manifest}");
        fs::write(target.join("dataset.toml"), manifest.replace(from, to)).unwrap();
        assert!(refusal().contains(sentence), "{to}: {}", refusal());
    }
    let nothing = complaint(Dataset::open(&folder.at("none")));
    assert!(nothing.ends_with("none: not a data set, expected a folder with dataset.toml, found nothing"), "{nothing}");
}

#[test]
fn fields_and_samples_that_are_not_there_are_named() {
    let folder = Folder::new("fields");
    let dataset = made(&darcy(&[], 0, 3), &folder.at("set"), 1);
    let name = folder.at("set").display().to_string();
    assert_eq!(
        complaint(dataset.read("speed", 0..1)),
        format!("{name}: no field `speed`, expected one of permeability, pressure")
    );
    assert_eq!(complaint(dataset.read("pressure", 2..4)), format!("{name}: expected samples below 3, found 3"));
    assert_eq!(complaint(dataset.gather("pressure", &[0, 7])), format!("{name}: expected samples below 3, found 7"));
    let last = usize::MAX;
    assert_eq!(
        complaint(dataset.gather("pressure", &[last])),
        format!("{name}: expected samples below 3, found {last}")
    );
    assert!(complaint(dataset.read("pressure", 1..last)).contains("expected samples below 3, found "));
    assert_eq!(dataset.read("pressure", last..last).unwrap(), [0.0; 0]);
    assert_eq!(complaint(Recipe::named("darcy", &[""; 0], 0, 0)), "samples: expected 1 to 1000000000, found 0");
    assert!(
        complaint(Recipe::named("darcies", &[""; 0], 0, 1))
            .starts_with("unknown problem `darcies`: expected one of darcy, navier-stokes")
    );
    assert!(
        complaint(Recipe::named("darcy", &["resolutoin=4"], 0, 1)).starts_with("darcy: unknown parameter `resolutoin`")
    );
    assert!(
        complaint(Recipe::named("darcy", &[""; 0], u64::MAX, 1))
            .starts_with("seed: expected at most 9223372036854775807")
    );
}

/// A solver that fails: NaN in sample 2, no answer at all in sample 5.
#[derive(Debug)]
struct Broken(Settings);

impl Problem for Broken {
    fn name(&self) -> &'static str {
        "broken"
    }

    fn settings(&self) -> &Settings {
        &self.0
    }

    fn grid(&self) -> Grid {
        Grid::Plane { rows: 2, columns: 3 }
    }

    fn fields(&self) -> Vec<FieldKind> {
        vec![FieldKind { name: "heat", unit: "K", role: Role::Output, shape: vec![2, 3] }]
    }

    fn spatial_order(&self) -> SpatialOrder {
        SpatialOrder::Spectral
    }

    fn sample(&self, seed: u64, index: u64) -> Result<Sample, lamo_physics::Error> {
        let mut values = vec![1.0; 6];
        match (seed, index) {
            (0, 2) => values[4] = f64::NAN,
            (1, 2) => values[4] = 1e300,
            (_, 5) => return Err(lamo_physics::Error::StepTooSmall { time: 0.5, expected: 1e-9, found: 1e-10 }),
            _ => {}
        }
        Ok(Sample {
            fields: vec![Field { name: "heat", shape: vec![2, 3], values }],
            draws: 1 + usize::from(index == 2),
        })
    }
}

#[test]
fn a_failed_solution_is_named_with_its_sample_and_the_other_samples_are_saved() {
    let folder = Folder::new("solver");
    let broken = |seed| {
        let settings = Settings::new::<&str>("broken", &[], &[]).unwrap();
        Recipe::new(Box::new(Broken(settings)), 1, seed, 6).unwrap()
    };
    let refusal = |seed: u64| complaint(broken(seed).make(&folder.at(&seed.to_string()), 1, &proceed));
    let sentence = |seed: u64, found: &str| {
        format!(
            "broken: sample 2 of seed {seed} has {found} at [1, 1] of `heat`, expected finite float32 values; \
             change the parameters or the seed"
        )
    };
    assert_eq!(refusal(0), sentence(0, "NaN"));
    assert!(refusal(1).starts_with("broken: sample 2 of seed 1 has 1000000000000"));
    assert_eq!(fs::read(folder.at("0.partial/progress")).unwrap(), b"110000");
    assert_eq!(
        refusal(2),
        "broken: sample 5 of seed 2 cannot be computed, time stepping at t = 0.5: expected steps above 1e-9, the error \
         control asks for 1e-10; change the parameters or the seed"
    );
}

#[test]
fn draws_without_a_solution_are_counted_also_when_the_making_was_interrupted() {
    let folder = Folder::new("redrawn");
    let broken = || {
        let settings = Settings::new::<&str>("broken", &[], &[]).unwrap();
        Recipe::new(Box::new(Broken(settings)), 1, 2, 4).unwrap()
    };
    let target = folder.at("set");
    let stop = |progress: Progress| if progress.made == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) };
    assert!(matches!(broken().make(&target, 1, &stop), Ok(Outcome::Stopped(_))));
    assert_eq!(fs::read(folder.at("set.partial/progress")).unwrap(), b"1120");
    let Ok(Outcome::Made(dataset)) = broken().make(&target, 1, &proceed) else { panic!("the rest can be made") };
    assert_eq!(dataset.manifest().redrawn, 1);
}

/// The authors sum in float32: a few roundings of the largest value, which encoding divides by the smallest deviation.
#[test]
fn the_normaliser_is_that_of_the_authors() {
    let fixture = open("unit_transformer");
    for (channels, size) in [(2, "3"), (1, "2")] {
        let key = |name: &str| format!("{name}{size}");
        let mut values = fixture.floats(&key("x"));
        let normaliser = Normaliser::fit(&values, channels).unwrap();
        let largest = values.iter().fold(0.0, |largest: f32, value| largest.max(value.abs()));
        let smallest = normaliser.deviation.iter().fold(f32::INFINITY, |smallest, &value| smallest.min(value));
        let rounding = 4.0 * f64::from(f32::EPSILON);
        let (plain, encoded) = (rounding * f64::from(largest), rounding * f64::from(largest / smallest));
        fixture.check(&key("mean"), &normaliser.mean, 0.0, plain);
        fixture.check(&key("std"), &normaliser.deviation, 0.0, plain);
        normaliser.encode(&mut values);
        fixture.check(&key("enc"), &values, 0.0, encoded);
        normaliser.decode(&mut values);
        if fixture.has(&key("dec")) {
            fixture.check(&key("dec"), &values, 0.0, plain);
        }
    }
}

#[test]
fn a_field_is_normalised_by_its_training_split_alone() {
    let folder = Folder::new("normaliser");
    let dataset = made(&darcy(&[], 0, 12), &folder.at("set"), 2);
    let split = dataset.split().unwrap();
    assert_eq!((split.train.len(), &split.test[..]), (10, &[10, 11][..]));
    let train = dataset.gather("pressure", &split.train).unwrap();
    let fitted = dataset.normaliser("pressure", &split.train).unwrap().unwrap();
    assert_eq!(fitted, Normaliser::fit(&train, 1).unwrap());
    assert_ne!(fitted, Normaliser::fit(&dataset.read("pressure", 0..12).unwrap(), 1).unwrap());
    let statistics = dataset.statistics("permeability").unwrap();
    assert_eq!((statistics.least, statistics.most, statistics.missing, statistics.infinite), (3.0, 12.0, 0, 0));
    assert_eq!(
        complaint(Normaliser::fit(&[1.0], 1)),
        "normaliser: expected at least two values per channel to take the deviation of, found 1"
    );
    for (values, channels) in [(3, 2), (3, 0), (0, 0)] {
        assert_eq!(
            complaint(Normaliser::fit(&vec![1.0; values], channels)),
            format!(
                "normaliser: expected at least one channel, and a value of each at every point, found {values} values \
                 of {channels} channels"
            )
        );
    }
}

#[test]
fn splits_take_each_sample_once_and_their_hash_tells_them_apart() {
    let ends = Rule::Ends { train: 3, test: 2 }.split(7).unwrap();
    assert_eq!((&ends.train[..], &ends.test[..]), (&[0, 1, 2][..], &[5, 6][..]));
    let random = |seed| Rule::Random { train: 60, test: 40, seed }.split(100).unwrap();
    let mut all = [random(1).train, random(1).test].concat();
    all.sort_unstable();
    assert_eq!(all, (0..100).collect::<Vec<_>>());
    assert_eq!(random(1).hash(), random(1).hash());
    assert_ne!(random(1).hash(), random(2).hash());
    let listed = Rule::Indices { train: vec![0, 1, 2], test: vec![5, 6] }.split(7).unwrap();
    assert_eq!(listed.hash(), ends.hash());
    let refusal = |train: &[usize], test: &[usize]| {
        complaint(Rule::Indices { train: train.to_vec(), test: test.to_vec() }.split(3))
    };
    assert_eq!(refusal(&[0, 1], &[1]), "split: expected each sample at most once, found sample 1 twice");
    assert_eq!(refusal(&[0], &[3]), "split: expected samples below 3, found sample 3");
    assert_eq!(Rule::default_for(1200), Rule::Ends { train: 1000, test: 200 });
}

#[test]
fn batches_visit_every_sample_once_an_epoch_in_an_order_of_seed_and_epoch() {
    let samples: Vec<usize> = (100..123).collect();
    let order = |seed, epoch| Batches::shuffled(&samples, 4, seed, epoch);
    let batches = order(5, 0);
    let sizes: Vec<_> = batches.iter().map(<[usize]>::len).collect();
    assert_eq!((sizes, batches.count()), (vec![4, 4, 4, 4, 4, 3], 6));
    let mut all = batches.order().to_vec();
    all.sort_unstable();
    assert_eq!(all, samples);
    assert_eq!(batches, order(5, 0));
    assert!(batches != order(5, 1) && batches != order(6, 0));
    assert_eq!(Batches::in_order(&samples, 4).order(), samples);
}
