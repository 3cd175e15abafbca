//! `lamo train`: a run killed at any moment ends with the same bits, Ctrl-C loses nothing, a refusal is one sentence.

use crate::support::{Folder, TINY, contains, ok, sentence, wave_npy};
use lamo::run;
use lamo::run::Checkpoint;
use serde_json::Value;
use std::path::Path;
use std::process::Child;
use std::time::{Duration, Instant};

/// A training of a second or two on one thread.
const SMALL: &[&str] = &[
    "train",
    "darcy",
    "--threads=1",
    "--set=data.settings.resolution=8",
    "--set=data.train=5",
    "--set=data.test=2",
    "--set=data.first_test=5",
    TINY,
    "--set=train={ epochs = 300, batch = 2, evaluate = 10 }",
];

/// Everything that must not depend on interruptions: all but seconds and paths.
fn essence(folder: &Path) -> (Checkpoint, Vec<(usize, u64, Option<u64>)>) {
    let mut last = Checkpoint::read(&run::checkpoint_path(folder, run::LAST)).unwrap();
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

/// The lines of JSON of a job.
pub(crate) fn lines(output: &str) -> Vec<Value> {
    output.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn a_run_killed_at_any_moment_ends_with_the_same_bits() {
    let folder = Folder::new("killed");
    folder.ok(&[SMALL, &["--out", "whole"]].concat());
    let expected = essence(&folder.at("whole"));
    assert_eq!((expected.0.trained.step, expected.1.len()), (900, 300));

    let killed = folder.at("killed");
    let mut child = folder.command(&[SMALL, &["--out", "killed", "--save-every=0.02"]].concat()).spawn().unwrap();
    wait_for(&killed.join(run::EXPERIMENT), &mut child);
    let mut steps = Vec::new();
    for pause in [0, 180, 70, 330, 20, 250, 120] {
        std::thread::sleep(Duration::from_millis(pause));
        child.kill().unwrap(); // SIGKILL cannot be handled
        child.wait().unwrap();
        let last = run::checkpoint_path(&killed, run::LAST);
        steps.push(if last.exists() { Checkpoint::read(&last).unwrap().trained.step } else { 0 });
        child = folder.command(&["train", "--resume", "killed", "--threads=1", "--save-every=0.02"]).spawn().unwrap();
    }
    ok(&child.wait_with_output().unwrap());
    assert!(steps.is_sorted(), "every attempt continues the one before: {steps:?}");
    assert!(essence(&killed) == expected, "killed at steps {steps:?}");
    contains(&folder.ok(&["train", "--resume", "killed"]), &["after 300 epochs"]);
}

#[test]
fn a_run_resumes_on_its_device_unless_another_is_given() {
    let folder = Folder::new("device");
    folder.ok(&[SMALL, &["--set=train.epochs=1", "--out", "run"]].concat());
    let environment = folder.text("run/environment.json");
    contains(&environment, &["\"device\": \"cpu\""]);
    let mut moved: Value = serde_json::from_str(&environment).unwrap();
    moved["device"] = "cuda:99".into();
    moved.as_object_mut().unwrap().remove("sha256"); // as a record of 0.1
    folder.write("run/environment.json", moved.to_string());
    contains(&folder.fails(&["train", "--resume", "run"]), &["cuda"]); // there is no such GPU, or no CUDA at all
    folder.ok(&["train", "--resume", "run", "--device", "cpu"]);
}

#[test]
fn a_log_of_hundreds_of_epochs_has_about_forty_lines_and_json_has_them_all() {
    let folder = Folder::new("log");
    let text = folder.ok(&[SMALL, &["--out=text"]].concat());
    let epochs: Vec<&str> = text.lines().filter(|line| line.starts_with("epoch ")).collect();
    assert!((20..=42).contains(&epochs.len()), "{text}");
    contains(epochs[0], &["epoch 1/300", "train"]);
    contains(epochs[epochs.len() - 1], &["epoch 300/300", "test"]);
    let lines = lines(&folder.ok(&[SMALL, &["--out=json", "--json"]].concat()));
    assert_eq!(lines.iter().filter(|line| line["event"] == "epoch").count(), 300);
}

#[test]
fn the_end_of_a_run_has_a_test_error_even_if_its_last_epoch_has_none() {
    let folder = Folder::new("last");
    folder.ok(&[SMALL, &["--set=train.epochs=1", "--out", "run"]].concat());
    // A run that was stopped between two tests leaves such a history.
    let mut line = folder.json("run/history.jsonl");
    let test = line.as_object_mut().unwrap().remove("test").unwrap().as_f64().unwrap();
    folder.write("run/history.jsonl", format!("{line}\n"));
    let lines = lines(&folder.ok(&["train", "--resume", "run", "--json"]));
    let end = lines.iter().find(|line| line["event"] == "end").unwrap()["test"].as_f64();
    assert!(end.is_some_and(|end| (end - test).abs() < 1e-6 * test), "{end:?} instead of {test}");
}

#[test]
#[cfg(unix)]
fn a_stopped_run_is_saved_and_says_how_to_resume_it() {
    let folder = Folder::new("stopped");
    let long = ["--save-every=1000", "--set=train.epochs=100000", "--json", "--out=run"];
    let mut child = folder.command(&[SMALL, &long].concat()).spawn().unwrap();
    wait_for(&folder.at("run").join(run::EXPERIMENT), &mut child);
    contains(&folder.fails(&["train", "--resume", "run"]), &["run", "another process"]);
    std::thread::sleep(Duration::from_millis(300));
    for _ in 0..2 {
        // `timeout` signals the process and its group; both signals are one request.
        std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    }
    let output = child.wait_with_output().unwrap();
    let step = Checkpoint::read(&run::checkpoint_path(&folder.at("run"), run::LAST)).unwrap().trained.step;
    let expected = format!("stopped and saved at step {step} of 300000; resume with: lamo train --resume run");
    assert_eq!(sentence(&output), expected);
    let lines = lines(&String::from_utf8(output.stdout).unwrap());
    let [.., stopped, error] = lines.as_slice() else { panic!("{lines:?}") };
    assert_eq!((&stopped["event"], &stopped["step"]), (&"stopped".into(), &step.into()));
    assert_eq!((&error["event"], &error["kind"]), (&"error".into(), &"cancelled".into()));
}

#[test]
fn scripts_read_lines_of_json_and_every_key_is_printed() {
    let folder = Folder::new("json");
    let lines = lines(&folder.ok(&[SMALL, &["--set=train.epochs=2", "--json"]].concat()));
    let events: Vec<_> = lines.iter().map(|line| line["event"].as_str().unwrap()).collect();
    assert_eq!(events, ["data", "model", "run", "epoch", "epoch", "warning", "end", "report"]);
    assert_eq!(lines[2]["folder"], "runs/darcy-lamo-1");
    assert!(lines[5]["message"].as_str().unwrap().contains("not better than a predictor that learns nothing"));
    assert!(lines[6]["test"].as_f64().unwrap() > 0.0);
    let printed = folder.ok(&[SMALL, &["--print-config"]].concat());
    folder.write("mine.toml", &printed);
    assert_eq!(folder.ok(&["train", "mine.toml", "--print-config"]), printed, "a printed experiment is a file");
    let environment = folder.json("runs/darcy-lamo-1/environment.json");
    assert_eq!(environment["threads"], 1);
    assert_eq!(environment["data"]["fields"]["pressure"].as_str().unwrap().len(), 64);
}

#[test]
fn wrong_requests_give_one_sentence_and_leave_no_file() {
    let folder = Folder::new("refused");
    for (arguments, words) in [
        (&["dracy"][..], &["dracy", "a benchmark (darcy, navier-stokes"][..]),
        (&["darci"], &["darci", "did you mean darcy?"]),
        (&["darcy-lamo", "--model=fno"], &["model.name", "lamo", "fno"]),
        (&["darcy", "--model=vnet"], &["vnet"]),
        (&["darcy", "--set=train.epoch=3"], &["train.epoch", "did you mean train.epochs?"]),
        (&["darcy", "--set=epochs"], &["key=value"]),
        (&["darcy", "--precision=f8"], &["f8", "f32, tf32"]),
        (&["darcy", "--data=nowhere"], &["nowhere"]),
        (&["darcy", "--set=model=fno"], &["model", "table"]),
        (&["darcy", "--set=benchmark=pipe"], &["benchmark", "pipe", "darcy"]),
        (&["darcy", "--model=fno", "--set=model.name=lamo"], &["model.name", "lamo", "fno"]),
        (&["darcy-lamo", "--preset=quick"], &["darcy-lamo", "published recipe"]),
        (&["darcy", "--set=data.train=9000000000000"], &["data.train", "1000000000"]),
        (&["darcy", "--set=model.settings.width=63"], &["model lamo", "126", "4 scan heads"]),
        (&["darcy", "--set=data.settings.high=-1"], &["high"]),
        (&["darcy", "--save-every=-1"], &["--save-every", "found -1"]),
        (&["--resume=nowhere"], &["nowhere", "experiment.toml"]),
    ] {
        contains(&folder.fails(&[&["train"], arguments].concat()), words);
    }
    let usage = folder.run(&["train", "darcy", "--device", "gpu"]);
    assert_eq!(usage.status.code(), Some(2), "wrong usage exits with 2: {usage:?}");
    assert!(folder.names().is_empty(), "{:?}", folder.names());
}

#[test]
fn with_data_the_name_of_a_benchmark_is_the_benchmark_also_where_a_folder_has_it() {
    let folder = Folder::new("named-as-benchmark");
    folder.ok(&["data", "make", "darcy", "--samples=6", "--set=resolution=8", "--out=darcy"]);
    let config = folder.ok(&["train", "darcy", "--data=darcy", "--preset=paper", "--print-config"]);
    contains(&config, &["benchmark = \"darcy\"", "/darcy\""]);
    folder.ok(&["data", "make", "darcy", "--samples=6", "--set=resolution=8", "--out=mine"]);
    contains(&folder.fails(&["train", "mine", "--data=darcy"]), &["mine is a data set, and so is --data darcy"]);
}

#[test]
fn as_many_samples_as_the_benchmark_has_are_split_as_it_says() {
    let folder = Folder::new("split-of-benchmark");
    for (samples, split) in [("900", ["train = 800", "test = 100"]), ("90", ["train = 0", "test = 0"])] {
        folder.ok(&["data", "make", "elasticity", &format!("--samples={samples}"), &format!("--out=d{samples}")]);
        let data = format!("--data=d{samples}");
        let config = folder.ok(&["train", "elasticity", &data, "--preset=quick", "--print-config"]);
        contains(&config, &split);
    }
}

#[test]
fn times_that_are_predicted_at_once_are_measured_and_compared_as_a_time_series() {
    let folder = Folder::new("at-once");
    let small = [
        "--set=data.settings={ resolution = 2, frames = 4 }",
        "--set=data.train=4",
        "--set=data.test=2",
        "--set=data.first_test=4",
    ];
    let short = ["train", "plasticity", "--preset=quick", "--set=train.epochs=1", "--threads=1"];
    let by_time = ["--set=data.time=by-time", "--set=train.loss=relative-l2-of-times", "--out=one-by-one"];
    let scrambled = ["--set=data.scrambled=true", "--set=data.trend=false", "--out=scrambled"];
    folder.ok(&[&short[..], &small, &["--out=at-once"]].concat());
    folder.ok(&[&short[..], &small, &by_time].concat());
    folder.ok(&[&short[..], &small, &scrambled].concat());
    for run in ["at-once", "one-by-one", "scrambled"] {
        let receipt = folder.json(&format!("{run}/receipt.json"));
        let count = |key: &str| receipt["evaluation"][key].as_array().map(Vec::len);
        assert_eq!((count("frames"), count("channels")), (Some(4), Some(4)), "{run}");
    }
    contains(&folder.ok(&["evaluate", "at-once"]), &["snapshots", "u_x"]);
    contains(&folder.ok(&["compare", "at-once", "one-by-one", "scrambled"]), &["picture: "]);
}

#[test]
fn runs_that_start_at_the_same_time_get_different_names() {
    let folder = Folder::new("names");
    let short = [SMALL, &["--set=train.epochs=1"]].concat();
    folder.ok(&short);
    let jobs: Vec<Child> = (0..3).map(|_| folder.command(&short).spawn().unwrap()).collect();
    jobs.into_iter().for_each(|job| drop(ok(&job.wait_with_output().unwrap())));
    assert!((1..=4).all(|number| folder.at(&format!("runs/darcy-lamo-{number}/receipt.json")).exists()));
}

#[test]
fn a_run_folder_that_exists_is_refused_before_data_are_made() {
    let folder = Folder::new("taken");
    std::fs::create_dir_all(folder.at("taken")).unwrap();
    folder.write("taken/file", "text");
    contains(&folder.fails(&[SMALL, &["--out=taken"]].concat()), &["taken"]);
    assert_eq!(folder.names(), ["taken"]);
}

#[test]
fn several_seeds_give_the_runs_of_each_seed_and_their_mean() {
    let folder = Folder::new("seeds");
    let small = [SMALL, &["--set=train.epochs=20"]].concat();
    let text = folder.ok(&[&small[..], &["--seeds=3,5", "--out", "many"]].concat());
    contains(&text, &["seed 3: run: many-3", "seed 5: epoch 20/20", "mean of 2 seeds: ", " ± "]);
    folder.ok(&[&small[..], &["--seed=5", "--out", "one"]].concat());
    assert_eq!(essence(&folder.at("many-5")).1, essence(&folder.at("one")).1);
    assert!(folder.at("many-3/receipt.json").is_file() && folder.at("many-5/report.html").is_file());
    let events = lines(&folder.ok(&[&small[..], &["--seeds=3,5", "--json"]].concat()));
    let mean = events.iter().find(|event| event["event"] == "mean").unwrap();
    let ends: Vec<f64> =
        events.iter().filter(|event| event["event"] == "end").map(|event| event["test"].as_f64().unwrap()).collect();
    assert_eq!((ends.len(), mean["seeds"].as_u64()), (2, Some(2)));
    assert!((mean["mean"].as_f64().unwrap() - 0.5 * (ends[0] + ends[1])).abs() < 1e-12);
    contains(
        &folder.fails(&[&small[..], &["--seeds=3,3"]].concat()),
        &["--seeds: expected different seeds, found 3 twice"],
    );
}

#[test]
fn several_models_give_the_runs_of_each_model_alone() {
    let folder = Folder::new("models");
    let small: Vec<&str> = SMALL.iter().copied().filter(|argument| *argument != TINY).collect();
    let short = ["--set=train.epochs=3", "--set=train.evaluate=3"];
    let both = [&small[..], &short, &["--model=unet,deeponet", "--out", "both"]].concat();
    let text = folder.ok(&both);
    assert_eq!(text.matches("data: ").count(), 1, "{text}");
    contains(
        &text,
        &["unet: run: both-unet", "deeponet: epoch 3/3", "compare with: lamo compare both-unet both-deeponet"],
    );
    folder.ok(&[&small[..], &short, &["--model=deeponet", "--out", "one"]].concat());
    assert_eq!(essence(&folder.at("both-deeponet")).1, essence(&folder.at("one")).1);
    folder.ok(&["compare", "both-unet", "both-deeponet"]);

    let square = [&small[..], &short, &["--model=unet,deeponet", "--seeds=1,2", "--json"]].concat();
    let events = lines(&folder.ok(&square));
    let of = |name: &'static str| events.iter().filter(move |event| event["event"] == name);
    let ends: Vec<_> = of("end").map(|end| (end["model"].as_str().unwrap(), end["seed"].as_u64().unwrap())).collect();
    assert_eq!(ends, [("unet", 1), ("unet", 2), ("deeponet", 1), ("deeponet", 2)]);
    let means: Vec<_> = of("mean").map(|mean| mean["model"].as_str().unwrap()).collect();
    assert_eq!(means, ["unet", "deeponet"]);

    let refused = |more: &[&str]| folder.fails(&[&small[..], more].concat());
    contains(&refused(&["--model=fno,fno"]), &["--model: expected different models, found fno twice"]);
    contains(
        &refused(&["--model=fno,unet", "--print-config"]),
        &["--print-config: expected one model, found fno,unet"],
    );
    contains(&refused(&["--model=fno,nonsense"]), &["nonsense"]);
}

#[test]
fn a_run_folder_and_a_file_of_arrays_in_place_of_an_experiment_are_told_with_what_to_do() {
    let folder = Folder::new("not-an-experiment");
    wave_npy(&folder.at("a.npy"), &[8, 10]);
    contains(&folder.fails(&["train", "a.npy"]), &["a.npy: expected a text file", "lamo data import"]);
    folder.ok(&[SMALL, &["--set=train.epochs=1", "--out=run"]].concat());
    contains(&folder.fails(&["train", "run"]), &["found the folder of a run", "lamo train --resume run", "--init run"]);
}

#[test]
fn a_model_that_does_not_take_the_data_is_told_before_the_others_train() {
    let folder = Folder::new("unfit-model");
    for name in ["a.npy", "u.npy"] {
        wave_npy(&folder.at(name), &[8, 10]);
    }
    folder.ok(&["data", "import", "--input=a=a.npy", "--output=u=u.npy", "--grid=line:10", "--out=set"]);
    let told = folder.fails(&["train", "set", "--model=fno,swin", "--set=train.epochs=1", "--out=run"]);
    contains(&told, &["model swin: expected a plane, found a line"]);
    assert!(!folder.at("run-fno").exists() && !folder.at("run-swin").exists());
}

#[test]
fn of_several_trainings_each_gets_the_epochs_of_its_minutes_alone() {
    let folder = Folder::new("several-minutes");
    let small: Vec<&str> =
        SMALL.iter().copied().filter(|argument| *argument != TINY && !argument.starts_with("--set=train=")).collect();
    let timed = [
        "--set=train.batch=2",
        "--set=train.evaluate=1000",
        "--model=unet,deeponet",
        "--minutes=0.02",
        "--out",
        "timed",
    ];
    let text = folder.ok(&[&small[..], &timed].concat());
    contains(&text, &["unet: ", " alone", "deeponet: "]);
    for model in ["unet", "deeponet"] {
        let line = text.lines().find(|line| line.starts_with(model) && line.ends_with(" alone")).unwrap();
        let epochs: usize = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        assert_eq!(run::history(&folder.at(&format!("timed-{model}"))).unwrap().len(), epochs, "{line}");
    }
    folder.ok(&[&small[..], &timed[..2], &["--model=deeponet", "--minutes=0.02", "--seeds=1,2", "--out=s"]].concat());
    let [first, second] = ["s-1", "s-2"].map(|run| run::history(&folder.at(run)).unwrap().len());
    assert_eq!(first, second, "both seeds have the epochs that were timed once");
}

#[test]
fn several_interrupted_runs_are_resumed_by_one_command() {
    let folder = Folder::new("resumed-together");
    let small = [SMALL, &["--set=train.epochs=40"]].concat();
    for name in ["a", "b"] {
        folder.ok(&[&small[..], &["--out", name]].concat());
    }
    let expected = essence(&folder.at("a"));
    for name in ["a", "b"] {
        // As if both had been stopped before their first step.
        std::fs::remove_dir_all(folder.at(name).join("checkpoints")).unwrap();
        std::fs::remove_file(folder.at(name).join("history.jsonl")).unwrap();
    }
    let text = folder.ok(&["train", "--resume", "a", "--resume", "b", "--threads=1"]);
    contains(&text, &["a: epoch 40/40", "b: epoch 40/40", "compare with: lamo compare a b"]);
    assert_eq!((essence(&folder.at("a")).1, essence(&folder.at("b")).1), (expected.1.clone(), expected.1));
    contains(
        &folder.fails(&["train", "--resume=a", "--resume=a"]),
        &["--resume: expected different runs, found a twice"],
    );
    contains(&folder.fails(&["train", "--resume=a", "--resume=nowhere"]), &["nowhere", "experiment.toml"]);
}

#[test]
fn data_of_a_benchmark_with_other_settings_than_its_recipe_are_told() {
    let folder = Folder::new("other-settings");
    let make = ["data", "make", "elasticity", "--samples=6", "--threads=1"];
    folder.ok(&[&make[..], &["--set=around=12", "--set=traction=50", "--out=other"]].concat());
    folder.ok(&[&make[..], &["--out=same"]].concat());
    let train = |data: &str, preset: &str| {
        let sizes = ["--set=data.train=4", "--set=data.test=2", "--set=data.first_test=4", "--set=train.epochs=1"];
        let model = ["train", "elasticity", "--model=deeponet", "--threads=1", "--data", data, "--preset", preset];
        let run = folder.run(&[&model[..], &sizes].concat());
        ok(&run);
        String::from_utf8(run.stderr).unwrap() + &String::from_utf8(run.stdout).unwrap()
    };
    let told = train("other", "paper");
    contains(
        &told,
        &["other was made with", "around=12", "traction=50.0", "traction=100.0", "lamo data make elasticity --set"],
    );
    for (data, preset) in [("same", "paper"), ("other", "quick")] {
        let told = train(data, preset);
        assert!(!told.contains("was made with"), "{data} {preset}: {told}");
    }
}
