//! What `lamo train` and `lamo predict` claim: a run killed at any moment ends with the same bits, a Ctrl-C loses
//! nothing, complaints are one sentence.

use lamo::data::formats::Named;
use lamo::inference::predictor::Trained;
use lamo::run;
use lamo::run::checkpoint::Checkpoint;
use lamo::task::task::Course;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// A training of a second or two on one thread.
const SMALL: &[&str] = &[
    "train",
    "darcy",
    "--threads=1",
    "--set=data.settings.resolution=8",
    "--set=data.train=5",
    "--set=data.test=2",
    "--set=model.settings={ width = 16, depth = 1, mlp_ratio = 1, states = 4 }",
    "--set=train={ epochs = 300, batch = 2, evaluate = 10 }",
];

/// An empty folder of this test alone, gone when dropped; its data sets are made in it.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("lamo-train-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lamo"));
        command.args(arguments).env("LAMO_CACHE", self.at("cache")).current_dir(&self.0);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn said(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The one sentence of a failed job.
fn complaint(output: &Output) -> String {
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(1), "a failed job exits with 1: {output:?}");
    assert_eq!(text.lines().count(), 1, "one sentence: {text}");
    text.trim_end().to_owned()
}

/// What must not depend on interruptions: everything but seconds and paths.
fn essence(folder: &Path) -> (Checkpoint, Vec<(usize, u64, Option<u64>)>) {
    let mut last = Checkpoint::read(&run::checkpoint(folder, run::LAST)).unwrap();
    (last.trained.seconds, last.trained.paused) = (0.0, 0.0);
    last.trained.path.clear();
    let lines = run::history(folder).unwrap();
    (last, lines.iter().map(|line| (line.epoch, line.train.to_bits(), line.test.map(f64::to_bits))).collect())
}

fn wait_for(path: &Path, child: &mut Child) {
    let start = Instant::now();
    while !path.exists() {
        assert!(start.elapsed() < Duration::from_secs(120), "no {} after two minutes", path.display());
        if let Some(status) = child.try_wait().unwrap() {
            panic!("ended with {status} before {}", path.display());
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_run_killed_at_any_moment_ends_with_the_same_bits() {
    let folder = Folder::new("killed");
    let whole = folder.at("whole");
    said(&folder.run(&[SMALL, &["--out", "whole"]].concat()));
    let expected = essence(&whole);
    assert_eq!((expected.0.trained.step, expected.1.len()), (900, 300));

    let killed = folder.at("killed");
    let mut child = folder.command(&[SMALL, &["--out", "killed", "--save-every=0.02"]].concat()).spawn().unwrap();
    wait_for(&killed.join(run::EXPERIMENT), &mut child);
    let mut steps = Vec::new();
    for pause in [0, 180, 70, 330, 20, 250, 120] {
        std::thread::sleep(Duration::from_millis(pause));
        child.kill().unwrap(); // SIGKILL: no time for last words
        child.wait().unwrap();
        let last = run::checkpoint(&killed, run::LAST);
        steps.push(if last.exists() { Checkpoint::read(&last).unwrap().trained.step } else { 0 });
        child = folder.command(&["train", "--resume", "killed", "--threads=1", "--save-every=0.02"]).spawn().unwrap();
    }
    said(&child.wait_with_output().unwrap());
    assert!(steps.is_sorted(), "every attempt goes on from the one before: {steps:?}");
    assert!(essence(&killed) == expected, "killed at steps {steps:?}");
    let again = complaint_free(&folder.run(&["train", "--resume", "killed"]));
    assert!(again.contains("after 300 epochs"), "a finished run has nothing left to do: {again}");
}

fn complaint_free(output: &Output) -> String {
    assert!(output.stderr.is_empty(), "{output:?}");
    said(output)
}

#[test]
fn a_run_goes_on_where_it_began_unless_told_otherwise() {
    let folder = Folder::new("device");
    complaint_free(&folder.run(&[SMALL, &["--set=train.epochs=1", "--out", "run"]].concat()));
    let path = folder.at("run").join(run::ENVIRONMENT);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains("\"device\": \"cpu\""), "{text}");
    fs::write(&path, text.replace("\"cpu\"", "\"cuda:99\"")).unwrap();
    let told = complaint(&folder.run(&["train", "--resume", "run"]));
    assert!(told.contains("cuda"), "{told}"); // there is no such card, or no CUDA at all
    said(&folder.run(&["train", "--resume", "run", "--device", "cpu"]));
}

#[test]
fn an_epoch_that_is_made_the_last_one_afterwards_has_its_error_told() {
    let folder = Folder::new("last");
    said(&folder.run(&[SMALL, &["--set=train.epochs=1", "--out", "run"]].concat()));
    // As a run that was stopped between two tests leaves it.
    let path = folder.at("run").join(run::HISTORY);
    let mut line: serde_json::Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let test = line.as_object_mut().unwrap().remove("test").unwrap().as_f64().unwrap();
    fs::write(&path, format!("{line}\n")).unwrap();
    let told = said(&folder.run(&["train", "--resume", "run", "--json"]));
    let mut lines = told.lines().map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
    let end = lines.find(|line| line["event"] == "end").unwrap()["test"].as_f64();
    assert!(end.is_some_and(|end| (end - test).abs() < 1e-6 * test), "{end:?} instead of {test}");
}

#[test]
#[cfg(unix)]
fn a_polite_stop_saves_and_says_how_to_go_on() {
    let folder = Folder::new("stopped");
    let long = [SMALL, &["--save-every=1000", "--set=train.epochs=100000", "--out", "run"]].concat();
    let mut child = folder.command(&long).spawn().unwrap();
    wait_for(&folder.at("run").join(run::EXPERIMENT), &mut child);
    let other = complaint(&folder.run(&["train", "--resume", "run"]));
    assert!(other.contains("another process is training in this run folder"), "{other}");
    std::thread::sleep(Duration::from_millis(300));
    for _ in 0..2 {
        // `timeout` signals the process and its group: both are one request
        Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    }
    let told = complaint(&child.wait_with_output().unwrap());
    assert!(told.contains("stopped and saved at step") && told.ends_with("lamo train --resume run"), "{told}");
    let last = Checkpoint::read(&run::checkpoint(&folder.at("run"), run::LAST)).unwrap();
    assert!(told.contains(&format!("at step {} of", last.trained.step)), "{told}");
}

#[test]
fn scripts_read_lines_of_json_and_every_key_is_printed() {
    let folder = Folder::new("json");
    let short = [SMALL, &["--set=train.epochs=2", "--json"]].concat();
    let lines: Vec<serde_json::Value> =
        said(&folder.run(&short)).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let events: Vec<_> = lines.iter().map(|line| line["event"].as_str().unwrap()).collect();
    assert_eq!(events, ["data", "model", "run", "epoch", "epoch", "end", "report"]);
    assert_eq!(lines[2]["folder"], "runs/darcy-lamo-1");
    assert!(lines[5]["test"].as_f64().unwrap() > 0.0);
    let printed = said(&folder.run(&[SMALL, &["--print-config"]].concat()));
    fs::write(folder.at("mine.toml"), &printed).unwrap();
    assert_eq!(said(&folder.run(&["train", "mine.toml", "--print-config"])), printed, "a printed experiment is a file");
    let environment: serde_json::Value =
        serde_json::from_slice(&fs::read(folder.at("runs/darcy-lamo-1/environment.json")).unwrap()).unwrap();
    assert_eq!(environment["threads"], 1);
    assert_eq!(environment["data"]["fields"]["pressure"].as_str().unwrap().len(), 64);
}

#[test]
fn wrong_requests_are_refused_in_one_sentence_and_leave_nothing_behind() {
    let folder = Folder::new("refused");
    for (arguments, sentence) in [
        (&["train", "dracy"][..], "dracy: expected a benchmark (darcy, navier-stokes"),
        (&["train", "darci"], "found none of these; did you mean darcy?"),
        (
            &["train", "darcy-lamo", "--model=fno"],
            "expected one model.name, found lamo here and fno beside it; leave one",
        ),
        (&["evaluate", "nowhere"], "nowhere: expected a run folder or a checkpoint file, found nothing"),
        (&["train", "darcy", "--model", "unet"], "model \"unet\" does not exist"),
        (&["train", "darcy", "--set", "train.epoch=3"], "unknown key train.epoch; did you mean train.epochs?"),
        (&["train", "darcy", "--set", "epochs"], "expected key=value"),
        (&["train", "darcy", "--precision", "f8"], "precision \"f8\" does not exist; there are f32, tf32 and bf16"),
        (&["train", "darcy", "--data", "nowhere"], "nowhere: not a data set"),
        (&["train", "darcy", "--set", "model=fno"], "model is a table, expected a value for one of its keys: name, "),
        (&["train", "darcy", "--set", "benchmark=pipe"], "expected one benchmark, found pipe here and darcy beside it"),
        (
            &["train", "darcy", "--model", "fno", "--set", "model.name=lamo"],
            "expected one model.name, found lamo here and fno beside",
        ),
        (&["train", "darcy-lamo", "--preset", "quick"], "darcy-lamo is the published recipe; for a quick one say"),
        (&["train", "darcy", "--set", "data.train=9000000000000"], "samples: expected 1 to 1000000000, found"),
        (
            &["train", "darcy", "--set", "model.settings.width=63"],
            "model lamo: 126 inner channels do not divide into the 4 heads",
        ),
        (&["train", "darcy", "--set", "data.settings.high=-1"], "high"),
        (&["train", "--resume", "nowhere"], "nowhere: expected a run folder with experiment.toml, found no folder"),
        (&["predict", "nowhere", "--input", "a.npy", "--output", "b.npy"], "nowhere"),
    ] {
        let told = complaint(&folder.run(arguments));
        assert!(told.contains(sentence), "{arguments:?}: {told}");
    }
    let odd = folder.run(&["train", "darcy", "--device", "gpu"]);
    assert_eq!(odd.status.code(), Some(2), "wrong usage exits with 2: {odd:?}");
    assert!(!folder.at("runs").exists() && !folder.at("cache").exists());
}

#[test]
fn trainings_that_begin_at_once_take_names_of_their_own() {
    let folder = Folder::new("names");
    let short = [SMALL, &["--set=train.epochs=1"]].concat();
    said(&folder.run(&short));
    let jobs: Vec<Child> = (0..3).map(|_| folder.command(&short).spawn().unwrap()).collect();
    jobs.into_iter().for_each(|job| drop(said(&job.wait_with_output().unwrap())));
    assert!((1..=4).all(|number| folder.at(&format!("runs/darcy-lamo-{number}/receipt.json")).exists()));
}

#[test]
fn times_and_raw_fields_of_an_import_reach_the_model() {
    let folder = Folder::new("films");
    let wave = |count: usize| (0..count).map(|index| 2.0 + (0.7 * index as f32).sin()).collect::<Vec<f32>>();
    let write = |name: &str, shape: &[usize], values: &[f32]| {
        let array = Named { name: "values".into(), shape: shape.to_vec(), values: values.to_vec() };
        lamo::data::formats::write(&folder.at(name), &[array]).unwrap();
    };
    write("a.npy", &[6, 4, 5], &wave(120));
    write("u.npy", &[6, 3, 4, 5], &wave(360));
    write("t.npy", &[3], &[1.0, 2.0, 5.0]);
    let import = |out: &str| {
        let names = ["--input", "a=a.npy", "--output", "u=u.npy", "--time", "t.npy", "--raw", "a", "--grid", "4x5"];
        said(&folder.run(&[&["data", "import"], &names[..], &["--train=4", "--test=2", "--out", out]].concat()));
    };
    let train = |data: &str| {
        let tiny = "--set=model.settings={ width = 16, depth = 1, slice_heads = 2, tokens = 4 }";
        let loss = "--set=train={ loss = \"relative-l2-of-times\", epochs = 1 }";
        folder.run(&["train", data, "--model=transolver", tiny, loss, "--out", "run"])
    };
    import("films");
    said(&train("films"));
    let case = Trained::open(&folder.at("run")).unwrap().case;
    assert_eq!(case.times, [0.0, 0.25, 1.0]);
    let [inputs, outputs] = [case.normalisers.inputs, case.normalisers.outputs].map(Option::unwrap);
    assert_eq!((inputs.mean, inputs.deviation), (vec![0.0], vec![1.0]));
    assert!((outputs.mean[0] - 2.0).abs() < 0.2 && outputs.deviation[0] < 0.9, "{outputs:?}");
    write("t.npy", &[3], &[1.0, 3.0, 5.0]);
    import("even");
    let told = complaint(&folder.run(&["evaluate", "run", "--data", "even"]));
    assert!(told.contains("expected frame 1 at 2, as the model learned, found it at 3"), "{told}");
    write("t.npy", &[3], &[2.0, 3.0, 6.0]);
    import("later");
    let told = complaint(&folder.run(&["evaluate", "run", "--data", "later"]));
    assert!(told.contains("expected frame 0 at 1, as the model learned, found it at 2"), "{told}");
    // Without inputs there is only the film to go on from.
    let film = ["data", "import", "--output", "u=u.npy", "--grid=4x5", "--train=4", "--test=2", "--out", "film"];
    said(&folder.run(&film));
    let small = "--set=model.settings={ width = 16, depth = 1, mlp_ratio = 1, states = 4 }";
    said(&folder.run(&["train", "film", small, "--set=train.epochs=1", "--out", "next"]));
    assert_eq!(Trained::open(&folder.at("next")).unwrap().case.course, Course::Frames { past: 1, frames: 2 });
    let told = complaint(&folder.run(&["train", "film", small, "--set=train.loss=relative-l2", "--out", "none"]));
    assert!(told.contains("expected inputs, or points that differ between samples, found neither"), "{told}");
    let channels =
        ["data", "import", "--output", "u=c.npy", "--grid=4x5", "--train=4", "--test=2", "--out", "channels"];
    write("c.npy", &[6, 4, 5, 3], &wave(360));
    said(&folder.run(&channels));
    let told = complaint(&folder.run(&["train", "channels", small, "--out", "none"]));
    assert!(told.contains("found neither; name an input"), "channels are no frames: {told}");
    let still: Vec<f32> =
        wave(360).iter().enumerate().map(|(i, value)| if i / 20 == 3 { 0.0 } else { *value }).collect();
    write("u.npy", &[6, 3, 4, 5], &still);
    import("still");
    fs::remove_dir_all(folder.at("run")).unwrap();
    let told = complaint(&train("still"));
    assert!(told.contains("found frame 0 of sample 1; leave it out"), "{told}");
}

#[test]
fn a_data_set_of_ones_own_trains_and_predicts() {
    let folder = Folder::new("own");
    said(&folder.run(&["data", "make", "darcy", "--samples", "6", "--resolution", "8", "--out", "mine"]));
    // As if the fields had come from elsewhere: no benchmark has this problem.
    let manifest = fs::read_to_string(folder.at("mine/dataset.toml")).unwrap();
    fs::write(folder.at("mine/dataset.toml"), manifest.replace("problem = \"darcy\"", "problem = \"ours\"")).unwrap();
    let tiny = "--set=model.settings={ width = 16, depth = 1, mlp_ratio = 1, states = 4 }";
    let told = said(&folder.run(&["train", "mine", tiny, "--set=train.epochs=1", "--set=train.batch=2"]));
    assert!(told.contains("run: runs/ours-lamo-1"), "{told}");
    let told =
        said(&folder.run(&["predict", "runs/ours-lamo-1", "--input", "mine/permeability.npy", "--output", "out.npz"]));
    assert!(told.contains("pressure [6, 8, 8] of 6 samples"), "{told}");
    said(&folder.run(&["train", "mine", "--model=fno", "--set=train.epochs=1", "--set=model.settings.width=4"]));
    let itself =
        ["predict", "runs/ours-lamo-1", "--input", "mine/permeability.npy", "--output", "./mine/permeability.npy"];
    assert!(complaint(&folder.run(&itself)).contains("expected another file than --input, found the same"));
    // A file names its data as it sees them; the run finds them from anywhere.
    fs::create_dir(folder.at("sub")).unwrap();
    fs::write(folder.at("sub/e.toml"), "[data]\nfolder = \"../mine\"\n[train]\nepochs = 1\nbatch = 2\n").unwrap();
    said(&folder.run(&["train", "sub/e.toml", tiny, "--out", "runs/file"]));
    said(&folder.command(&["evaluate", "../runs/file"]).current_dir(folder.at("sub")).output().unwrap());
    let told = complaint(&folder.run(&["train", "mine", "--data", "mine"]));
    assert!(told.contains("mine is a data set, and so is --data mine; name one"), "{told}");
    let taken = [SMALL, &["--out", "runs/ours-lamo-1"]].concat();
    let told = complaint(&folder.run(&taken));
    assert!(told.contains("expected a free name for the run"), "{told}");
    assert!(!folder.at("cache").exists(), "no data are made for a run that has no place");
    let huge = [&["train", "mine", "--set=train.batch=100000000000"], &[tiny][..]].concat();
    let told = complaint(&folder.run(&huge));
    assert!(told.contains("GiB of memory, more than the system gives"), "{told}");
    let told = said(&folder.run(&["export-weights", "runs/ours-lamo-1", "--out", "ours.safetensors"]));
    assert!(told.contains("ours.safetensors: lamo, "), "{told}");
    let frames = ["predict", "runs/ours-lamo-1", "--input", "mine/permeability.npy", "--output", "o.npy", "--frames=3"];
    let told = complaint(&folder.run(&frames));
    assert!(told.contains("the model continues no film, it cannot predict 3 frames"), "{told}");
    // Data that have moved are found again, from anywhere.
    fs::rename(folder.at("mine"), folder.at("moved")).unwrap();
    complaint(&folder.run(&["train", "--resume", "runs/ours-lamo-1"]));
    said(&folder.run(&["train", "--resume", "runs/ours-lamo-1", "--data", "moved"]));
    said(&folder.command(&["evaluate", "../runs/ours-lamo-1"]).current_dir(folder.at("moved")).output().unwrap());
    fs::write(folder.at("moved/pressure.npy"), b"damaged").unwrap();
    let told = complaint(&folder.run(&["train", "--resume", "runs/ours-lamo-1"]));
    assert!(told.contains("pressure.npy"), "{told}");
}
