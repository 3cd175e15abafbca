//! What `lamo data` claims: interruptions lose nothing and change nothing, pictures are pictures, complaints are one
//! sentence.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

/// Long enough to be caught in the middle: marks are written every 256 samples or every second.
const LONG: &[&str] = &["make", "darcy", "--samples", "800", "--resolution", "48", "--seed", "4", "--threads", "1"];

/// An empty folder of this test alone, gone when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Folder {
        let path = std::env::temp_dir().join(format!("lamo-data-{test}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn command(arguments: &[&str], out: Option<&Path>) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lamo"));
    command.arg("data").args(arguments);
    if let Some(out) = out {
        command.arg("--out").arg(out);
    }
    command
}

fn make(arguments: &[&str], out: &Path) -> Output {
    command(arguments, Some(out)).output().unwrap()
}

fn check(dataset: &Path) -> Output {
    command(&["check", dataset.to_str().unwrap()], None).output().unwrap()
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

/// Every file of a folder with its bytes.
fn bytes(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    entries.map(|entry| (entry.file_name().into_string().unwrap(), fs::read(entry.path()).unwrap())).collect()
}

/// A long job under way, some of its samples marked as done.
fn caught(out: &Path) -> Child {
    let mut child = command(LONG, Some(out)).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let progress = PathBuf::from(format!("{}.partial/progress", out.display()));
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
fn a_job_killed_or_stopped_in_the_middle_resumes_to_the_same_bytes() {
    let folder = Folder::new("resume");
    let (whole, killed, stopped) = (folder.at("whole"), folder.at("killed"), folder.at("stopped"));
    said(&make(LONG, &whole));

    let mut child = caught(&killed);
    child.kill().unwrap();
    assert!(!child.wait().unwrap().success() && !killed.exists());
    let begun = complaint(&check(&killed));
    assert!(begun.ends_with("killed.partial, repeat the command that made it"), "{begun}");
    let other = [LONG, &["--set", "high=9"]].concat();
    let refusal = complaint(&make(&other, &killed));
    assert!(refusal.contains("killed.partial holds an unfinished data set: expected parameter high 9.0, found 12.0"));
    said(&make(LONG, &killed));
    assert_eq!(bytes(&whole), bytes(&killed));

    let child = caught(&stopped);
    Command::new("kill").arg("-INT").arg(child.id().to_string()).status().unwrap();
    let sentence = complaint(&child.wait_with_output().unwrap());
    assert!(sentence.starts_with("lamo: stopped with ") && sentence.ends_with("run the same command again to go on"));
    assert!(said(&make(LONG, &stopped)).contains("800 samples of permeability 48x48 and pressure 48x48"));
    assert_eq!(bytes(&whole), bytes(&stopped));
    assert!(said(&make(LONG, &stopped)).trim_end().ends_with("already there"));
}

#[test]
fn equal_jobs_at_once_make_the_set_once_and_all_have_it() {
    let folder = Folder::new("at-once");
    let set = folder.at("set");
    let job = || command(&["make", "darcy", "--samples", "40", "--resolution", "32", "--threads", "1"], Some(&set));
    // A job waits a few seconds for the one at work, then says so: on a slow machine it has to be asked again.
    let patient = || {
        for _ in 0..100 {
            let output = job().output().unwrap();
            let in_use = String::from_utf8_lossy(&output.stderr).contains("another process is making this data set");
            if output.status.success() || !in_use {
                return said(&output);
            }
        }
        panic!("the set is not there after 100 attempts");
    };
    let told: Vec<String> = std::thread::scope(|scope| {
        let jobs: Vec<_> = (0..3).map(|_| scope.spawn(patient)).collect();
        jobs.into_iter().map(|job| job.join().unwrap()).collect()
    });
    assert_eq!(told.iter().filter(|words| words.contains("made in")).count(), 1, "{told:?}");
    assert_eq!(told.iter().filter(|words| words.contains("already there")).count(), 2, "{told:?}");
    assert_eq!(bytes(&set).len(), 3, "nothing is left of the others");
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1, "nor beside the set");
}

#[test]
fn check_prints_every_field_and_draws_a_picture_beside_the_folder() {
    let folder = Folder::new("check");
    let set = folder.at("ns");
    let small = ["--set", "resolution=16", "--set", "stride=1", "--set", "frames=3", "--set", "viscosity=1e-3"];
    said(&make(&[&["make", "navier-stokes", "--samples", "2", "--set", "interval=0.1"][..], &small].concat(), &set));
    let report = said(&check(&set));
    for part in ["navier-stokes: 2 samples, seed 0", "viscosity=0.001", "[3, 16, 16]", "verified", "ns-check.png"] {
        assert!(report.contains(part), "{part}: {report}");
    }
    assert!(fs::read(folder.at("ns-check.png")).unwrap().starts_with(b"\x89PNG"));
}

#[test]
fn check_draws_a_body_where_it_has_moved_to() {
    let folder = Folder::new("moving");
    let set = folder.at("block");
    said(&make(&["make", "plasticity", "--samples", "2", "--resolution", "2", "--set", "frames=3"], &set));
    let report = said(&check(&set));
    for part in ["die                input    [21] ", "deformation        output   [3, 21, 7, 4]", "block-check.png"] {
        assert!(report.contains(part), "{part}: {report}");
    }
    assert!(fs::read(folder.at("block-check.png")).unwrap().starts_with(b"\x89PNG"));
}

#[test]
fn check_draws_clouds_and_bent_meshes_where_their_points_lie() {
    let folder = Folder::new("places");
    for (problem, setting, shape) in [("elasticity", "around=12", "[324, 2]"), ("pipe", "resolution=4", "[9, 9, 2]")] {
        let set = folder.at(problem);
        said(&make(&["make", problem, "--samples", "2", "--set", setting], &set));
        let report = said(&check(&set));
        assert!(report.contains(&format!("positions          position {shape}")), "{report}");
        assert!(fs::read(folder.at(&format!("{problem}-check.png"))).unwrap().starts_with(b"\x89PNG"));
    }
}

#[test]
fn check_finds_changed_bytes_lost_bytes_and_values_that_are_no_numbers() {
    let folder = Folder::new("damage");
    let set = folder.at("set");
    said(&make(&["make", "darcy", "--samples", "2", "--resolution", "8"], &set));
    let path = set.join("pressure.npy");
    let whole = fs::read(&path).unwrap();
    let mut bent = whole.clone();
    bent[128..132].copy_from_slice(&f32::NAN.to_le_bytes());
    fs::write(&path, &bent).unwrap();
    let sentence = complaint(&check(&set));
    let hashes: Vec<&str> = sentence.split(&[' ', ',', ';']).filter(|word| word.len() == 64).collect();
    assert!(sentence.contains("pressure.npy: expected SHA-256") && hashes.len() == 2, "{sentence}");

    let manifest = fs::read_to_string(set.join("dataset.toml")).unwrap();
    fs::write(set.join("dataset.toml"), manifest.replace(hashes[0], hashes[1])).unwrap();
    let sentence = complaint(&check(&set));
    assert!(sentence.contains("expected finite values only, found NaN or infinity in 1 of `pressure`"), "{sentence}");

    fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    let sentence = complaint(&check(&set));
    assert!(sentence.contains("pressure.npy: expected 640 bytes, found 639"), "{sentence}");

    fs::write(&path, &whole).unwrap();
    fs::write(set.join("dataset.toml"), manifest.replace("rows = 8", "rows = 9")).unwrap();
    let sentence = complaint(&check(&set));
    assert!(sentence.contains("`permeability`: expected the shape [frames?, 9, 8, channels?]"), "{sentence}");
}

#[test]
fn what_cannot_be_made_is_said_in_one_sentence_and_leaves_nothing_behind() {
    let folder = Folder::new("refusals");
    for (arguments, sentence) in [
        (&["make", "darcy", "--samples", "0"][..], "lamo: samples: expected 1 to 1000000000, found 0"),
        (
            &["make", "darcy", "--samples", "1", "--set", "high"],
            "lamo: darcy: expected a setting of the form key=value, found `high`",
        ),
        (
            &["make", "darcy", "--samples", "1", "--resolution", "1"],
            "lamo: darcy: parameter `resolution` expects a whole number from 4 to 4096, found `1`",
        ),
    ] {
        assert_eq!(complaint(&make(arguments, &folder.at("set"))), sentence);
    }
    let unknown = complaint(&make(&["make", "darcies", "--samples", "1"], &folder.at("set")));
    assert!(unknown.starts_with("lamo: unknown problem `darcies`: expected one of darcy, navier-stokes"), "{unknown}");
    let unknown = complaint(&make(&["make", "darcy", "--samples", "1", "--set", "heigh=1"], &folder.at("set")));
    assert!(unknown.starts_with("lamo: darcy: unknown parameter `heigh`, expected one of resolution, "), "{unknown}");
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 0);
    fs::write(folder.at("file"), "text").unwrap();
    let sentence = complaint(&make(&["make", "darcy", "--samples", "1"], &folder.at("file/set")));
    assert!(
        sentence.contains("cannot be written: ") && sentence.ends_with("choose a folder you may write to"),
        "{sentence}"
    );
    assert_eq!(command(&["make", "darcy", "--samples", "1"], None).output().unwrap().status.code(), Some(2));
}

/// An npy file whose n-th number is n.
fn array(path: &Path, shape: &[usize]) {
    let axes: Vec<_> = shape.iter().map(ToString::to_string).collect();
    let text = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({},), }}\n", axes.join(", "));
    let mut bytes = [b"\x93NUMPY\x01\x00", &(text.len() as u16).to_le_bytes()[..], text.as_bytes()].concat();
    bytes.extend((0..shape.iter().product()).flat_map(|place: usize| (place as f32).to_le_bytes()));
    fs::write(path, bytes).unwrap();
}

#[test]
fn arrays_of_your_own_become_a_data_set_that_check_verifies() {
    let folder = Folder::new("own");
    for (name, shape) in [("a.npy", &[10, 6, 4][..]), ("u.npy", &[6, 4, 3, 10]), ("t.npy", &[3])] {
        array(&folder.at(name), shape);
    }
    let given = |flag: &str, name: &str| format!("{flag}{}", folder.at(name).display());
    let (a, u, t) = (given("a=", "a.npy"), given("u=", "u.npy"), given("", "t.npy"));
    let arguments = ["import", "--input", &a, "--output", &u, "--axes", "u=xytn", "--time", &t, "--grid", "6x4"];
    let split = ["--train", "7", "--test", "2", "--unit", "u=m/s", "--raw", "a"];
    let set = folder.at("flow");
    let report = said(&make(&[&arguments[..], &split].concat(), &set));
    assert!(
        report.contains("flow: flow, 10 samples of a 6x4 and u 3x6x4, first 7 to train, last 2 to test"),
        "{report}"
    );
    let again = said(&make(&[&arguments[..], &split].concat(), &set));
    assert!(again.trim_end().ends_with("already there"), "{again}");
    let report = said(&check(&set));
    for part in ["flow: 10 samples, imported from a.npy, u.npy", "[3, 6, 4]", "m/s", "verified", "flow-check.png"] {
        assert!(report.contains(part), "{part}: {report}");
    }
    let json = said(&command(&["check", set.to_str().unwrap(), "--json"], None).output().unwrap());
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["fields"][1]["shape"], serde_json::json!([3, 6, 4]));
    assert_eq!(
        (&json["fields"][0]["normalise"], &json["fields"][1]["normalise"]),
        (&"none".into(), &"channels".into())
    );
    assert_eq!((&json["split"]["train"], &json["sources"][0]["file"]), (&7.into(), &"a.npy".into()));
    assert_eq!((&json["times"], &json["picture"]), (&serde_json::json!([0.0, 1.0, 2.0]), &serde_json::Value::Null));
    let corrected = complaint(&make(&[&arguments[..], &split[..6]].concat(), &set));
    assert!(corrected.contains("expected normalisation of `a` channels, found none"), "{corrected}");
    let other = complaint(&make(&[&arguments[..], &["--train", "6", "--test", "2"]].concat(), &set));
    assert!(other.contains("expected split first 6 to train, last 2 to test, found first 7"), "{other}");
}

#[test]
fn flags_that_do_not_fit_are_said_in_one_sentence() {
    let folder = Folder::new("flags");
    array(&folder.at("u.npy"), &[5, 6, 4]);
    let output = format!("u={}", folder.at("u.npy").display());
    let own =
        |more: &[&str]| complaint(&make(&[&["import", "--output", output.as_str()], more].concat(), &folder.at("set")));
    assert!(
        own(&["--grid", "6by4"]).contains("--grid: expected ROWSxCOLUMNS, line:POINTS or cloud:POINTS, found `6by4`")
    );
    assert!(own(&["--grid", "cloud"]).contains("where there are no --positions to count"));
    assert!(own(&["--grid", "4x6"]).contains("over a grid of [4, 6], found shape [5, 6, 4]"));
    assert!(own(&["--grid", "6x4", "--axes", "v=nxy"]).contains("--axes: expected one of u, found `v`"));
    assert!(own(&["--grid", "6x4", "--input", "a"]).contains("expected NAME=ARRAY"));
    assert!(own(&["--grid", "6x4", "--train", "9"]).contains("at most 5 samples in all, found 9 to train"));
    let absent = folder.at("absent");
    let absent = complaint(&make(&["import", absent.to_str().unwrap(), "--as", "darcy"], &folder.at("set")));
    assert!(absent.contains("absent: expected a file of darcy or a folder with its files, found nothing"), "{absent}");
    let unknown = complaint(&make(&["import", folder.0.to_str().unwrap(), "--as", "darcies"], &folder.at("set")));
    assert!(unknown.contains("benchmark: expected one of darcy, navier-stokes"), "{unknown}");
    let missing = complaint(&make(&["import", folder.0.to_str().unwrap(), "--as", "pipe"], &folder.at("set")));
    assert!(missing.contains("pipe: expected the file Pipe_X too, found none of that name in "), "{missing}");
    assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1, "nothing is left behind");
    for usage in
        [&["import"][..], &["import", "x.mat"], &["import", "--as", "darcy"], &["import", "--output", "u=u.npy"]]
    {
        assert_eq!(make(usage, &folder.at("set")).status.code(), Some(2), "{usage:?}");
    }
}

#[test]
fn a_comma_in_the_name_of_a_file_is_part_of_it_and_elsewhere_joins_channels() {
    let folder = Folder::new("comma");
    let path = |name: &str| folder.at(name).display().to_string();
    for name in ["u,v.npy", "w.npy"] {
        array(&folder.at(name), &[5, 6, 4]);
    }
    let import = |arrays: String, out: &str| {
        said(&make(&["import", "--output", &format!("u={arrays}"), "--grid", "6x4"], &folder.at(out)))
    };
    assert!(import(path("u,v.npy"), "whole").contains("5 samples of u 6x4, "));
    assert!(import(format!("{0},{0}", path("w.npy")), "joined").contains("5 samples of u 6x4x2, "));
}

#[test]
fn one_sample_is_singular() {
    let folder = Folder::new("one");
    array(&folder.at("u.npy"), &[1, 6, 4]);
    let output = format!("u={}", folder.at("u.npy").display());
    let own =
        |more: &[&str]| make(&[&["import", "--output", &output, "--grid", "6x4"], more].concat(), &folder.at("set"));
    assert!(complaint(&own(&["--train", "2", "--test", "0"])).contains("expected at most 1 sample in all"));
    assert!(said(&own(&["--train", "0", "--test", "1"])).contains("1 sample of u 6x4, first 0 to train"));
}

#[test]
fn numbers_too_large_for_a_deviation_have_none() {
    let folder = Folder::new("large");
    let text = "{'descr': '<f8', 'fortran_order': False, 'shape': (2,), }\n";
    let mut bytes = [b"\x93NUMPY\x01\x00", &(text.len() as u16).to_le_bytes()[..], text.as_bytes()].concat();
    bytes.extend([1e308, -1e308].iter().flat_map(|value: &f64| value.to_le_bytes()));
    fs::write(folder.at("large.npy"), bytes).unwrap();
    let report = said(&check(&folder.at("large.npy")));
    let line = report.lines().find(|line| line.starts_with("(unnamed)")).unwrap();
    assert!(line.contains(" - ") && !line.contains("NaN") && line.trim_end().ends_with('0'), "{report}");
}

#[test]
fn check_lists_the_arrays_of_a_file_and_draws_them() {
    let folder = Folder::new("file");
    let path = folder.at("film.npy");
    array(&path, &[5, 3, 16, 8]);
    let report = said(&check(&path));
    for part in ["film.npy: 1 array", "(unnamed)", "float32", "[5, 3, 16, 8]", "1.9190e3", "film.npy-check.png"] {
        assert!(report.contains(part), "{part}: {report}");
    }
    assert!(fs::read(folder.at("film.npy-check.png")).unwrap().starts_with(b"\x89PNG"));
    let json = said(&command(&["check", path.to_str().unwrap(), "--json"], None).output().unwrap());
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&json["arrays"][0]["least"], &json["arrays"][0]["most"]), (&0.0.into(), &1919.0.into()));
    assert_eq!(json["arrays"][0]["type"], "float32");
    fs::write(&path, "text").unwrap();
    assert!(
        complaint(&check(&path)).contains("film.npy: expected an npy, npz, MAT v5 or v7.3, HDF5 or safetensors file")
    );
}
