//! `lamo data make`: an interruption loses nothing and changes nothing; a refusal is one sentence.

use crate::support::{Folder, contains, ok, sentence};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

/// Long enough to be interrupted: progress is recorded every 256 samples or every second.
const LONG: &[&str] =
    &["data", "make", "darcy", "--samples=800", "--resolution=48", "--seed=4", "--threads=1", "--out"];

/// Every file of a folder with its bytes.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect()
}

/// Starts the long job, and waits until some of its samples are complete.
fn start_long(folder: &Folder, out: &str) -> Child {
    let mut child = folder.command(&[LONG, &[out]].concat()).spawn().unwrap();
    let progress = folder.at(&format!("{out}.partial/progress"));
    for _ in 0..60_000 {
        if fs::read(&progress).is_ok_and(|marks| marks.contains(&b'1')) {
            return child;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    child.kill().and_then(|()| child.wait()).unwrap();
    panic!("no sample after a minute");
}

#[test]
fn a_killed_or_stopped_job_continues_to_the_same_bytes() {
    let folder = Folder::new("continue");
    let make = |out: &str| folder.ok(&[LONG, &[out]].concat());
    make("whole");
    let whole = files(&folder.at("whole"));

    let mut child = start_long(&folder, "killed");
    child.kill().unwrap();
    assert!(!child.wait().unwrap().success() && !folder.at("killed").exists());
    contains(&folder.fails(&["data", "check", "killed"]), &["killed", ".partial"]);
    let other = folder.fails(&[LONG, &["killed", "--set", "high=9"]].concat());
    contains(&other, &["killed.partial", "high", "9", "12"]);
    make("killed");
    assert_eq!(files(&folder.at("killed")), whole);

    let child = start_long(&folder, "stopped");
    Command::new("kill").arg("-INT").arg(child.id().to_string()).status().unwrap();
    let stopped = sentence(&child.wait_with_output().unwrap());
    assert!(stopped.starts_with("stopped with ") && stopped.contains("of 800 samples saved in stopped.partial"));
    assert!(stopped.ends_with("; run the same command again to continue"), "{stopped}");
    contains(&make("stopped"), &["800 samples of permeability 48x48 and pressure 48x48"]);
    assert_eq!(files(&folder.at("stopped")), whole);
    assert!(make("stopped").trim_end().ends_with("already there"));
}

#[test]
fn equal_jobs_at_the_same_time_make_the_data_set_once() {
    let folder = Folder::new("at-once");
    let job = ["data", "make", "darcy", "--samples=40", "--resolution=32", "--threads=1", "--out=set"];
    // A job waits a few seconds for the one that is running, then fails: on a slow machine it must be repeated.
    let patient = || {
        for _ in 0..100 {
            let output = folder.run(&job);
            let in_use = String::from_utf8_lossy(&output.stderr).contains("another process");
            if output.status.success() || !in_use {
                return ok(&output);
            }
        }
        panic!("the data set does not exist after 100 attempts");
    };
    let lines: Vec<String> = std::thread::scope(|scope| {
        let jobs: Vec<_> = (0..3).map(|_| scope.spawn(patient)).collect();
        jobs.into_iter().map(|job| job.join().unwrap()).collect()
    });
    assert_eq!(lines.iter().filter(|line| line.contains("made in")).count(), 1, "{lines:?}");
    assert_eq!(lines.iter().filter(|line| line.contains("already there")).count(), 2, "{lines:?}");
    assert_eq!(files(&folder.at("set")).len(), 3, "a temporary file is left");
    assert_eq!(folder.names(), ["set"], "a temporary folder is left");
}

#[test]
fn a_data_set_that_cannot_be_made_gives_one_sentence_and_leaves_no_file() {
    let folder = Folder::new("make-refused");
    let make = |arguments: &[&str]| folder.fails(&[&["data", "make"], arguments, &["--out", "set"]].concat());
    contains(&make(&["darcy", "--samples=0"]), &["samples", "found 0"]);
    contains(&make(&["darcy", "--samples=1", "--set", "high"]), &["key=value", "`high`"]);
    contains(&make(&["darcy", "--samples=1", "--resolution=1"]), &["darcy", "resolution", "4 to 4096", "`1`"]);
    contains(&make(&["darcies", "--samples=1"]), &["darcies", "darcy, navier-stokes"]);
    contains(&make(&["darcy", "--samples=1", "--set", "heigh=1"]), &["darcy", "heigh", "resolution, "]);
    assert!(folder.names().is_empty());
    folder.write("file", "text");
    contains(
        &folder.fails(&["data", "make", "darcy", "--samples=1", "--out=file/set"]),
        &["file", "cannot be written"],
    );
    assert_eq!(folder.run(&["data", "make", "darcy", "--samples=1"]).status.code(), Some(2));
}
