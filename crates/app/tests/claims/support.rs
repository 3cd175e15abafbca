//! Temporary folders, running the command, and arrays in files.

use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Settings of a model that trains and predicts in milliseconds.
pub(crate) const TINY: &str = "--set=model.settings={ width = 16, depth = 1, mlp_ratio = 1, states = 4 }";

/// An empty folder for one test, removed when dropped. Commands run in it and keep their data sets in it.
pub(crate) struct Folder(pub(crate) PathBuf);

impl Folder {
    pub(crate) fn new(test: &str) -> Folder {
        Folder::at_path(std::env::temp_dir().join(format!("lamo-{test}-{}", std::process::id())))
    }

    pub(crate) fn at_path(path: PathBuf) -> Folder {
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    /// The path of a file in the folder.
    pub(crate) fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.at(name), bytes).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.at(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    pub(crate) fn text(&self, name: &str) -> String {
        String::from_utf8(self.read(name)).unwrap()
    }

    /// A file of JSON.
    pub(crate) fn json(&self, name: &str) -> Value {
        serde_json::from_slice(&self.read(name)).unwrap()
    }

    pub(crate) fn is_png(&self, name: &str) -> bool {
        self.read(name).starts_with(b"\x89PNG")
    }

    /// The names of the files in the folder, sorted.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.0).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lamo"));
        command.args(arguments).env("LAMO_CACHE", self.at("cache")).current_dir(&self.0);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Standard output of a job that succeeds.
    pub(crate) fn ok(&self, arguments: &[&str]) -> String {
        ok(&self.run(arguments))
    }

    /// Standard output of a job that succeeds, as JSON.
    pub(crate) fn ok_json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.ok(arguments)).unwrap()
    }

    /// The sentence of a job that fails.
    pub(crate) fn fails(&self, arguments: &[&str]) -> String {
        sentence(&self.run(arguments))
    }

    /// A small data set of Darcy flow on 12 × 12 points: 10 training samples and 2 test samples.
    pub(crate) fn make_darcy(&self, seed: &str, out: &str) {
        self.ok(&["data", "make", "darcy", "--samples=12", "--resolution=12", "--seed", seed, "--out", out]);
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Standard output of a job that succeeds.
pub(crate) fn ok(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The sentence of a job that fails: exit code 1 and one line on standard error.
pub(crate) fn sentence(output: &Output) -> String {
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(1), "a failed job exits with 1: {output:?}");
    assert_eq!(text.lines().count(), 1, "a failure is one sentence: {text}");
    text.strip_prefix("lamo: ").unwrap_or_else(|| panic!("{text}")).trim_end().to_owned()
}

/// Checks that a text contains some words.
pub(crate) fn contains(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "{word:?} is not in: {text}");
    }
}

/// Writes an npy file of float32 values.
pub(crate) fn write_npy(path: &Path, shape: &[usize], values: impl Iterator<Item = f32>) {
    let axes: String = shape.iter().map(|extent| format!("{extent},")).collect();
    let text = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({axes}), }}\n");
    let mut bytes = [b"\x93NUMPY\x01\x00", &(text.len() as u16).to_le_bytes()[..], text.as_bytes()].concat();
    bytes.extend(values.take(shape.iter().product()).flat_map(f32::to_le_bytes));
    fs::write(path, bytes).unwrap();
}

/// Writes an npy file of a wave between 0.5 and 2.5.
pub(crate) fn wave_npy(path: &Path, shape: &[usize]) {
    write_npy(path, shape, wave());
}

pub(crate) fn wave() -> impl Iterator<Item = f32> {
    (0..).map(|index| 1.5 + (0.7 * index as f32).sin())
}

/// Copies a folder with all that is in it.
pub(crate) fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}
