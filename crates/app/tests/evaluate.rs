//! What `lamo evaluate` and `lamo compare` claim: a page that needs nothing else, a receipt that cannot be forged,
//! complaints of one sentence.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// A training of a second on one thread.
const SMALL: &[&str] = &[
    "--threads=1",
    "--set=data.settings.resolution=12",
    "--set=data.train=6",
    "--set=data.test=5",
    "--set=train.epochs=3",
    "--set=train.batch=2",
];

/// An empty folder of this test alone, gone when dropped; its data sets are made in it.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Folder {
        Folder::fresh(std::env::temp_dir().join(format!("lamo-evaluate-{test}-{}", std::process::id())))
    }

    fn fresh(path: PathBuf) -> Folder {
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn at(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn lamo(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_lamo"));
        command.args(arguments).env("LAMO_CACHE", self.at("cache")).current_dir(&self.0).output().unwrap()
    }

    /// A trained run of a model; training ends with an evaluation.
    fn train(&self, model: &str) -> PathBuf {
        said(&self.lamo(&[&["train", "darcy", "--model", model, "--out", model], SMALL].concat()));
        self.at(model)
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
    assert_eq!(output.status.code(), Some(1), "a failed job exits with 1: {text}");
    assert_eq!(text.lines().count(), 1, "one sentence: {text}");
    text
}

/// A copy of one training that all tests share.
fn trained(test: &str) -> (Folder, PathBuf) {
    static SHARED: OnceLock<Folder> = OnceLock::new();
    let shared = SHARED.get_or_init(|| {
        let folder = Folder::fresh(Path::new(env!("CARGO_TARGET_TMPDIR")).join("evaluate")); // statics are not dropped
        folder.train("lamo");
        folder
    });
    let folder = Folder::new(test);
    copy(&shared.0, &folder.0);
    let run = folder.at("lamo");
    (folder, run)
}

fn copy(from: &Path, to: &Path) {
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

fn text(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}

fn json(path: &Path) -> serde_json::Value {
    serde_json::from_str(&text(path)).unwrap()
}

#[test]
fn the_page_of_a_run_opens_without_network_files_or_scripts() {
    let (_folder, run) = trained("page");
    let page = text(&run.join("report.html"));
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    for foreign in ["http:", "https:", "<script", "<link", "@import", "url("] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    assert!(page.split("src=\"").skip(1).all(|rest| rest.starts_with("data:image/png;base64,")));
    assert_eq!(page.matches("<article").count(), 5, "best, quarters, median, worst");
    assert!(
        page.contains("<svg")
            && page.contains("test error")
            && page.contains("learned to map permeability to pressure")
    );
    assert_eq!(page.matches("<div").count(), page.matches("</div>").count());
    for name in ["best", "first-quarter", "median", "third-quarter", "worst"] {
        let picture = fs::read(run.join(format!("pictures/{name}.png"))).unwrap();
        assert!(picture.starts_with(b"\x89PNG"), "{name}");
    }
}

#[test]
fn the_receipt_holds_the_error_of_the_training_and_every_sample() {
    let (folder, run) = trained("receipt");
    let receipt = json(&run.join("receipt.json"));
    let last = text(&run.join("history.jsonl")).lines().last().map(str::to_owned).unwrap();
    let trained: serde_json::Value = serde_json::from_str(&last).unwrap();
    let [metric, test] = [&receipt["evaluation"]["relative_l2"], &trained["test"]].map(|value| value.as_f64().unwrap());
    assert!((metric - test).abs() <= 1e-6 * test, "{metric} in f64 and {test}, which the training sums in f32");
    let cases = receipt["evaluation"]["cases"].as_array().unwrap();
    let samples: Vec<_> = cases.iter().map(|case| case["sample"].as_u64().unwrap()).collect();
    assert_eq!(samples, [6, 7, 8, 9, 10]);
    let printed: serde_json::Value =
        serde_json::from_str(&said(&folder.lamo(&["evaluate", "lamo", "--json"]))).unwrap();
    assert_eq!(printed["evaluation"], receipt["evaluation"], "the same bits on any number of threads");
    assert_eq!(printed["hashes"], receipt["hashes"]);
}

#[test]
fn a_true_receipt_is_verified_and_a_forged_one_is_named() {
    let (folder, run) = trained("verify");
    let words = said(&folder.lamo(&["evaluate", "--verify", "lamo/receipt.json"]));
    assert!(words.contains("verified bit for bit"), "{words}");
    let path = run.join("receipt.json");
    let honest = text(&path);
    let forge = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut receipt: serde_json::Value = serde_json::from_str(&honest).unwrap();
        change(&mut receipt);
        fs::write(&path, receipt.to_string()).unwrap();
        complaint(&folder.lamo(&["evaluate", "--verify", "lamo/receipt.json"]))
    };
    let better = |receipt: &mut serde_json::Value| receipt["evaluation"]["relative_l2"] = 0.001.into();
    assert!(forge(&better).contains("expected every number of the receipt bit for bit, mean relative L2 1e-3"));
    let smaller = |receipt: &mut serde_json::Value| receipt["costs"]["parameters"] = 7.into();
    assert!(forge(&smaller).contains(", 7 parameters, "));
    let weights = |receipt: &mut serde_json::Value| receipt["hashes"]["weights"] = "0".into();
    assert!(forge(&weights).contains("expected weights of SHA-256 0, found"));
    let future = |receipt: &mut serde_json::Value| receipt["format"] = 9.into();
    assert!(forge(&future).contains("expected a receipt of format 1, found 9"));
    fs::write(&path, &honest[..honest.len() / 2]).unwrap();
    let cut = complaint(&folder.lamo(&["evaluate", "--verify", "lamo/receipt.json"]));
    assert!(cut.contains("lamo/receipt.json: is no receipt of lamo"), "{cut}");
    assert!(
        complaint(&folder.lamo(&["evaluate", "--verify", "nothing.json"])).contains("nothing.json: cannot be read")
    );
}

#[test]
fn a_verification_reads_every_byte_of_the_data() {
    let (folder, _run) = trained("bytes");
    let set = fs::read_dir(folder.at("cache")).unwrap().next().unwrap().unwrap().path();
    let path = set.join("pressure.npy");
    let mut bytes = fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&path, bytes).unwrap();
    let words = complaint(&folder.lamo(&["evaluate", "--verify", "lamo/receipt.json"]));
    assert!(words.contains("pressure.npy: expected SHA-256"), "{words}");
}

#[test]
fn other_data_are_judged_by_their_own_test_samples_and_change_no_run() {
    let (folder, run) = trained("other");
    let make = ["data", "make", "darcy", "--samples=12", "--seed=5", "--set=resolution=12", "--out=other"];
    said(&folder.lamo(&make));
    let before = text(&run.join("receipt.json"));
    let words = said(&folder.lamo(&["evaluate", "lamo", "--data", "other"]));
    assert!(words.contains("on 2 test samples") && words.contains("report: none, nothing was written"), "{words}");
    assert_eq!(text(&run.join("receipt.json")), before);
    said(&folder.lamo(&["evaluate", "lamo", "--data", "other", "--out", "judged"]));
    assert!(folder.at("judged/report.html").is_file() && folder.at("judged/receipt.json").is_file());
    assert_eq!(json(&folder.at("judged/receipt.json"))["data_seed"], 5);
    let verify = ["evaluate", "--verify", "judged/receipt.json"];
    let words = complaint(&folder.lamo(&verify));
    assert!(words.contains("say lamo evaluate RUN --verify judged/receipt.json"), "{words}");
    let words = complaint(&folder.lamo(&[&verify[..], &["lamo"]].concat()));
    assert!(words.contains("if it was made with --data, give it again"), "{words}");
    said(&folder.lamo(&[&verify[..], &["lamo", "--data", "other"]].concat()));
}

#[test]
fn data_that_were_changed_under_a_run_are_not_taken_for_its_own() {
    let (folder, _run) = trained("changed");
    let make = |seed: &str| {
        let _ = fs::remove_dir_all(folder.at("set"));
        said(&folder.lamo(&["data", "make", "darcy", "--samples=12", seed, "--set=resolution=12", "--out=set"]));
    };
    make("--seed=5");
    said(&folder.lamo(&["train", "set", "--threads=1", "--set=train.epochs=1", "--out=run"]));
    let before = text(&folder.at("run/receipt.json"));
    make("--seed=6");
    let words = complaint(&folder.lamo(&["evaluate", "run"]));
    assert!(words.contains("expected the data the run began with, found others"), "{words}");
    let words = complaint(&folder.lamo(&["evaluate", "lamo", "--data", "set", "--out", "run"]));
    assert!(words.contains("--out run: expected a folder of its own, found a run"), "{words}");
    assert_eq!(text(&folder.at("run/receipt.json")), before);
}

#[test]
fn other_data_are_known_by_the_names_of_their_fields() {
    let folder = Folder::new("names");
    for (name, shape) in [("a.npy", &[12, 6, 4][..]), ("b.npy", &[12]), ("u.npy", &[12, 6, 4])] {
        array(&folder.at(name), shape);
    }
    let import = |inputs: [&str; 2], out: &str| {
        let [first, second] = inputs;
        let job = ["data", "import", "--input", first, "--input", second, "--output", "u=u.npy", "--grid=6x4"];
        said(&folder.lamo(&[&job[..], &["--train=9", "--test=3", "--out", out]].concat()));
    };
    import(["a=a.npy", "b=b.npy"], "set");
    import(["b=b.npy", "a=a.npy"], "turned");
    import(["c=a.npy", "b=b.npy"], "named");
    said(&folder.lamo(&["train", "set", "--model=fno", "--out=run", "--threads=1", "--set=train.epochs=1"]));
    let error = |data: &str| {
        let receipt = said(&folder.lamo(&["evaluate", "run", "--data", data, "--json"]));
        serde_json::from_str::<serde_json::Value>(&receipt).unwrap()["evaluation"]["relative_l2"].as_f64().unwrap()
    };
    assert_eq!(error("turned").to_bits(), error("set").to_bits());
    let words = complaint(&folder.lamo(&["evaluate", "run", "--data", "named"]));
    assert!(words.contains("`a`"), "{words}");
}

#[test]
fn the_page_tells_the_command_that_computes_its_numbers_again() {
    let (folder, run) = trained("repeat");
    said(&folder.lamo(&["evaluate", "lamo"]));
    said(&folder.lamo(&["data", "make", "darcy", "--samples=12", "--seed=5", "--set=resolution=12", "--out=other"]));
    said(&folder.lamo(&["evaluate", "lamo/checkpoints/best.safetensors", "--data", "other", "--out", "judged"]));
    for page in [run.join("report.html"), folder.at("judged/report.html")] {
        let page = text(&page);
        let command = page.split("<code>lamo ").nth(1).and_then(|rest| rest.split("</code>").next()).unwrap();
        let words = said(&folder.lamo(&command.split(' ').collect::<Vec<_>>()));
        assert!(words.contains("verified bit for bit"), "{command}: {words}");
    }
}

#[test]
fn nothing_is_written_over_the_checkpoints_of_a_run() {
    let (folder, run) = trained("spare");
    let best = run.join("checkpoints/best.safetensors");
    let before = fs::read(&best).unwrap();
    array(&folder.at("a.npy"), &[12, 12]);
    for job in [&["export-weights", "lamo", "--out"][..], &["predict", "lamo", "--input=a.npy", "--output"]] {
        for place in ["best", "last", "new"] {
            let output = format!("lamo/checkpoints/{place}.safetensors");
            let words = complaint(&folder.lamo(&[job, &[&output]].concat()));
            assert!(words.contains("expected a file that is not the model's own"), "{words}");
        }
        said(&folder.lamo(&[job, &["free.safetensors"]].concat()));
    }
    assert_eq!(fs::read(&best).unwrap(), before);
}

#[test]
fn runs_stand_side_by_side_in_a_table_and_a_picture() {
    let (folder, _run) = trained("compare");
    folder.train("transolver");
    let words = said(&folder.lamo(&["compare", "lamo", "transolver"]));
    let lines: Vec<&str> = words.lines().collect();
    assert!(
        lines[0].starts_with("run") && lines[1].starts_with("lamo") && lines[2].starts_with("transolver"),
        "{words}"
    );
    assert_eq!(lines.len(), 4, "{words}");
    assert!(fs::read(folder.at("compare.png")).unwrap().starts_with(b"\x89PNG"));
    let all: serde_json::Value =
        serde_json::from_str(&said(&folder.lamo(&["compare", "lamo", "transolver", "--json"]))).unwrap();
    assert_eq!((all["same_test"].as_bool(), all["runs"].as_array().unwrap().len()), (Some(true), 2));
    assert!(all["runs"][0]["step_bytes"].as_u64().unwrap() > 4 * all["runs"][0]["parameters"].as_u64().unwrap());
}

#[test]
fn a_comparison_across_test_sets_says_so_and_only_png_is_written() {
    let (folder, _run) = trained("apart");
    said(&folder.lamo(&["data", "make", "darcy", "--samples=12", "--seed=5", "--set=resolution=12", "--out=other"]));
    said(&folder.lamo(&["evaluate", "lamo", "--data", "other", "--out", "judged"]));
    let words = said(&folder.lamo(&["compare", "lamo", "judged"]));
    assert!(words.contains("their errors do not compare"), "{words}");
    let words = complaint(&folder.lamo(&["compare", "nowhere", "--out", "x.jpg"]));
    assert!(words.contains("x.jpg: expected a name that ends in .png, found .jpg"), "{words}");
    assert!(!folder.at("x.jpg").exists());
}

/// An npy file of a wave.
fn array(path: &Path, shape: &[usize]) {
    let axes: Vec<_> = shape.iter().map(ToString::to_string).collect();
    let text = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({},), }}\n", axes.join(", "));
    let mut bytes = [b"\x93NUMPY\x01\x00", &(text.len() as u16).to_le_bytes()[..], text.as_bytes()].concat();
    let wave = |place: usize| (1.5 + (0.7 * place as f32).sin()).to_le_bytes();
    bytes.extend((0..shape.iter().product()).flat_map(wave));
    fs::write(path, bytes).unwrap();
}

#[test]
fn a_film_of_ones_own_is_named_with_its_unit_and_times_and_is_no_deformed_body() {
    let folder = Folder::new("film");
    for (name, shape) in [("a.npy", &[8, 6, 4][..]), ("u.npy", &[8, 3, 6, 4, 4])] {
        array(&folder.at(name), shape);
    }
    let import = ["data", "import", "--input", "a=a.npy", "--output", "u=u.npy", "--grid", "6x4", "--unit", "u=m/s"];
    said(&folder.lamo(&[&import[..], &["--train", "7", "--test", "1", "--out", "flow"]].concat()));
    let train = ["train", "flow", "--model=transolver", "--out=run", "--threads=1", "--set=train.epochs=1"];
    let words = said(&folder.lamo(&[&train[..], &["--set=train.loss=relative-l2-of-times"]].concat()));
    assert!(words.contains("after 1 epoch,"), "{words}");
    let words = said(&folder.lamo(&["evaluate", "run"]));
    assert!(words.contains("flow, ") && words.contains("on 1 test sample\n") && words.contains("u 4 "), "{words}");
    let page = text(&folder.at("run/report.html"));
    assert!(!page.contains("displacement") && !page.contains("distance"), "four outputs alone are no deformation");
    for part in ["6 rows to the right, 4 columns up · 3 of 4 outputs are drawn", "(m/s)", "frame\u{a0}3/3", "u 4"] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn what_is_no_run_is_named_in_a_sentence() {
    let (folder, run) = trained("bad");
    fs::create_dir(folder.at("empty")).unwrap();
    let words = complaint(&folder.lamo(&["evaluate", "empty"]));
    assert!(words.contains("empty: expected a run folder"), "{words}");
    assert!(complaint(&folder.lamo(&["evaluate", "nowhere"])).contains("nowhere"));
    fs::remove_file(run.join("receipt.json")).unwrap();
    let words = complaint(&folder.lamo(&["compare", "lamo"]));
    assert!(
        words.contains("expected an evaluated run with receipt.json, found none; run `lamo evaluate lamo` first"),
        "{words}"
    );
    assert_eq!(folder.lamo(&["evaluate"]).status.code(), Some(2), "wrong usage exits with 2");
}
