//! Settings beyond reason: every whole number of every model and of the recipe, as powers of two and their neighbours, in 8 GB
//! of memory. A job ends well, or with one sentence that names the key or the memory; it never panics, aborts or hangs.

use crate::support::Folder;
use lamo::network::models::MODELS;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// Kilobytes that a job may take, its address space included.
const LIMIT: usize = 8_000_000;
/// A job that works for so long is asked to stop.
const PATIENCE: Duration = Duration::from_secs(20);
/// Time to stop in, on a busy machine.
const GRACE: Duration = Duration::from_secs(60);

/// The command inside the limit of memory. A job that still works after a while is asked to stop, and must stop.
fn limited(folder: &Folder, arguments: &[&str]) -> Result<Output, String> {
    let script = format!("ulimit -v {LIMIT}; exec \"$0\" \"$@\"");
    let mut command = Command::new("sh");
    command.arg("-c").arg(script).arg(env!("CARGO_BIN_EXE_lamo")).args(arguments);
    command.env("LAMO_CACHE", folder.at("cache")).current_dir(&folder.0);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let (begun, mut asked) = (Instant::now(), false);
    while child.try_wait().unwrap().is_none() {
        if begun.elapsed() > PATIENCE && !asked {
            asked = Command::new("kill").args(["-TERM", &child.id().to_string()]).status().unwrap().success();
        }
        if begun.elapsed() > PATIENCE + GRACE {
            child.kill().unwrap();
            return Err("does not stop".to_owned());
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    child.wait_with_output().map_err(|error| error.to_string())
}

/// Why the outcome of a job is not acceptable, if it is not.
fn complaint(outcome: Result<Output, String>, key: &str) -> Option<String> {
    let output = match outcome {
        Ok(output) => output,
        Err(reason) => return Some(reason),
    };
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let name = key.rsplit('.').next().unwrap_or(key);
    let words = [name, &name.replace('_', " "), "memory", "operators", "interrupted", "stopped"];
    match output.status.code() {
        Some(0) => None,
        Some(1) if text.lines().count() == 1 && words.iter().any(|word| text.contains(word)) => None,
        code => Some(format!("exit {code:?}: {}", text.lines().next().unwrap_or_default())),
    }
}

/// Whole numbers of a model and of the recipe, and how many of them to try.
fn attack(values: &[u64]) {
    let folder = Folder::new(&format!("extremes-{}", values.len()));
    folder.ok(&["data", "make", "darcy", "--samples=6", "--resolution=24", "--out=set"]);
    let mut broken = Vec::new();
    let mut attempt = |model: &str, key: &str, value: u64| {
        let model = format!("--model={model}");
        let (change, out) = (format!("--set={key}={value}"), format!("--out=run-{key}-{value}"));
        let arguments = ["train", "set", &model, "--set=train.batch=2", "--set=train.epochs=1", &change, &out];
        if let Some(reason) = complaint(limited(&folder, &arguments), key) {
            broken.push(format!("{model} {key}={value}: {reason}"));
        }
    };
    for row in MODELS {
        let defaults = row.defaults();
        for (key, _) in defaults.iter().filter(|(_, value)| value.is_integer()) {
            values.iter().for_each(|&value| attempt(row.name, &format!("model.settings.{key}"), value));
        }
    }
    let keys = ["train.epochs", "train.batch", "train.evaluate", "seed", "data.train", "data.test", "data.first_test"];
    for key in keys.into_iter().chain(["data.past"]) {
        values.iter().for_each(|&value| attempt("fno", key, value));
    }
    assert!(broken.is_empty(), "{} of the settings: {broken:#?}", broken.len());
}

#[test]
fn a_few_extreme_settings_end_well_or_in_a_sentence() {
    attack(&[65_536, (1 << 32) + 1, 1 << 62]);
}

/// Hours are not needed, but many minutes: `cargo test -p lamo-app -- --ignored every_extreme`.
#[test]
#[ignore = "takes long"]
fn every_extreme_setting_ends_well_or_in_a_sentence() {
    let values: Vec<u64> = (0..63).flat_map(|power| [(1 << power) - 1, 1 << power, (1 << power) + 1]).collect();
    attack(&values);
}
