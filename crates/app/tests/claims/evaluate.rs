//! `lamo evaluate`: a page that needs no other file, a receipt that can be verified.

use crate::support::{Folder, contains, copy, wave_npy};
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

/// A training of a second on one thread.
const SMALL: &[&str] = &[
    "--threads=1",
    "--set=data.settings.resolution=12",
    "--set=data.train=6",
    "--set=data.test=5",
    "--set=data.first_test=6",
    "--set=train.epochs=3",
    "--set=train.batch=2",
];

/// Trains and evaluates a model on Darcy flow.
pub(crate) fn train(folder: &Folder, model: &str) {
    folder.ok(&[&["train", "darcy", "--model", model, "--out", model], SMALL].concat());
}

/// A folder with a copy of the run `lamo`, which all tests share.
pub(crate) fn trained(test: &str) -> Folder {
    static SHARED: OnceLock<Folder> = OnceLock::new();
    let shared = SHARED.get_or_init(|| {
        // Statics are never dropped, so this folder lies in the target folder.
        let folder = Folder::at_path(Path::new(env!("CARGO_TARGET_TMPDIR")).join("evaluate"));
        train(&folder, "lamo");
        folder
    });
    let folder = Folder::new(test);
    copy(&shared.0, &folder.0);
    folder
}

#[test]
fn the_page_of_a_run_needs_no_network_and_no_file() {
    let folder = trained("page");
    let page = folder.text("lamo/report.html");
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    let foreign = ["http:", "https:", "<link", "@import", "url(", "<script src", "import(", "fetch(", "XMLHttpRequest"];
    for foreign in foreign {
        assert!(!page.contains(foreign), "{foreign}");
    }
    assert!(page.split("src=\"").skip(1).all(|rest| rest.starts_with("data:image/png;base64,")));
    contains(&page, &["<svg", "test error", "learned to map permeability to pressure from 6 training samples"]);
    contains(
        &page,
        &["· cpu</p>", "<th>trained on</th><td><code>cpu</code>", "<th>evaluated on</th><td><code>cpu</code>"],
    );
    assert_eq!(page.matches("<div").count(), page.matches("</div>").count());
    let ranks = ["Best", "25th percentile", "Median", "75th percentile", "Worst"];
    assert_eq!(page.matches("<article").count(), ranks.len());
    for rank in ranks {
        contains(&page, &[&format!("<h3>{rank}</h3>")]);
        assert!(folder.is_png(&format!("lamo/pictures/{}.png", rank.to_lowercase().replace(' ', "-"))), "{rank}");
    }
}

/// The values behind the maps of each sample of a page.
pub(crate) fn values(page: &str) -> Vec<Value> {
    let blocks = page.split("<script type=\"application/json\">").skip(1);
    blocks.map(|rest| serde_json::from_str(rest.split("</script>").next().unwrap()).unwrap()).collect()
}

#[test]
fn every_map_of_a_page_can_be_read_off_the_values_of_its_sample() {
    let page = trained("values").text("lamo/report.html");
    let samples: Vec<&str> = page.split("<article").skip(1).collect();
    for (card, values) in samples.iter().zip(values(&page)) {
        let maps: Vec<&str> = card.split("<div class=\"map\" ").skip(1).collect();
        assert_eq!(maps.len(), 4, "permeability, truth, prediction, error");
        for map in maps {
            let number = |name: &str| -> usize {
                map.split(&format!("{name}=\"")).nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
            };
            let field = &values["fields"][number("data-field")];
            assert!(number("data-time") < field["times"].as_array().unwrap().len());
            let set = &field["sets"][0];
            let layout = &values["layouts"][set["layout"].as_u64().unwrap() as usize];
            assert_eq!((&layout["kind"], &layout["plane"]), (&"grid".into(), &serde_json::json!([12, 12])));
            assert_eq!(
                set["values"]["codes"].as_str().unwrap().len(),
                12 * 12 * 2 * 4 / 3,
                "16 bits per value, in base64"
            );
        }
    }
    assert_eq!(values(&page).len(), 5);
    assert!(page.len() < 400_000, "{} bytes", page.len());
}

#[test]
fn the_receipt_has_the_test_error_of_the_training_and_every_sample() {
    let folder = trained("receipt");
    let receipt = folder.json("lamo/receipt.json");
    let history = folder.text("lamo/history.jsonl");
    let last: Value = serde_json::from_str(history.lines().last().unwrap()).unwrap();
    let [metric, test] = [&receipt["evaluation"]["relative_l2"], &last["test"]].map(|value| value.as_f64().unwrap());
    assert!((metric - test).abs() <= 1e-6 * test, "{metric} is a sum in f64, {test} a sum in f32");
    let samples = receipt["evaluation"]["cases"].as_array().unwrap();
    let samples: Vec<_> = samples.iter().map(|sample| sample["sample"].as_u64().unwrap()).collect();
    assert_eq!(samples, [6, 7, 8, 9, 10]);
    let printed = folder.ok_json(&["evaluate", "lamo", "--json"]);
    assert_eq!(printed["evaluation"], receipt["evaluation"], "the same bits on any number of threads");
    assert_eq!(printed["hashes"], receipt["hashes"]);
}

#[test]
fn a_receipt_is_verified_and_a_changed_one_is_refused() {
    let folder = trained("verify");
    let verify = ["evaluate", "--verify", "lamo/receipt.json"];
    contains(&folder.ok(&verify), &["verified bit for bit"]);
    assert_eq!(folder.ok_json(&[&verify[..], &["--json"]].concat())["verified"], true);
    let honest = folder.text("lamo/receipt.json");
    let forge = |change: &dyn Fn(&mut Value)| {
        let mut receipt: Value = serde_json::from_str(&honest).unwrap();
        change(&mut receipt);
        folder.write("lamo/receipt.json", receipt.to_string());
        folder.fails(&verify)
    };
    contains(&forge(&|receipt| receipt["evaluation"]["relative_l2"] = 0.001.into()), &["mean relative L2 1e-3"]);
    contains(&forge(&|receipt| receipt["costs"]["parameters"] = 7.into()), &[" 7 parameters"]);
    contains(&forge(&|receipt| receipt["hashes"]["weights"] = "0".into()), &["weights", "SHA-256 0"]);
    contains(&forge(&|receipt| receipt["format"] = 9.into()), &["format 1", "9"]);
    folder.write("lamo/receipt.json", &honest[..honest.len() / 2]);
    contains(&folder.fails(&verify), &["lamo/receipt.json", "receipt"]);
    contains(&folder.fails(&["evaluate", "--verify", "nothing.json"]), &["nothing.json: cannot be read"]);
}

#[test]
fn a_verification_reads_every_byte_of_the_data() {
    let folder = trained("bytes");
    let set = fs::read_dir(folder.at("cache")).unwrap().next().unwrap().unwrap().path();
    let path = set.join("pressure.npy");
    let mut bytes = fs::read(&path).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&path, bytes).unwrap();
    contains(&folder.fails(&["evaluate", "--verify", "lamo/receipt.json"]), &["pressure.npy", "SHA-256"]);
}

#[test]
fn an_evaluation_on_other_data_uses_their_test_samples_and_leaves_the_run_unchanged() {
    let folder = trained("other");
    folder.make_darcy("5", "other");
    let before = folder.text("lamo/receipt.json");
    let text = folder.ok(&["evaluate", "lamo", "--data", "other"]);
    contains(&text, &["on 2 test samples", "no report was written; --out DIR"]);
    assert_eq!(folder.text("lamo/receipt.json"), before);
    folder.ok(&["evaluate", "lamo", "--data", "other", "--out", "evaluated"]);
    assert!(folder.at("evaluated/report.html").is_file());
    assert_eq!(folder.json("evaluated/receipt.json")["data_seed"], 5);
    let verify = ["evaluate", "--verify", "evaluated/receipt.json"];
    contains(&folder.fails(&verify), &["lamo evaluate RUN --verify evaluated/receipt.json"]);
    contains(&folder.fails(&[&verify[..], &["lamo"]].concat()), &["--data"]);
    folder.ok(&[&verify[..], &["lamo", "--data", "other"]].concat());
}

#[test]
fn data_that_changed_since_the_training_are_refused() {
    let folder = trained("changed");
    folder.make_darcy("5", "set");
    folder.ok(&["train", "set", "--threads=1", "--set=train.epochs=1", "--out=run"]);
    let before = folder.text("run/receipt.json");
    fs::remove_dir_all(folder.at("set")).unwrap();
    folder.make_darcy("6", "set");
    contains(&folder.fails(&["evaluate", "run"]), &["set", "--data"]);
    let occupied = folder.fails(&["evaluate", "lamo", "--data", "set", "--out", "run"]);
    assert_eq!(occupied, "--out run: expected a folder of its own, found experiment.toml in it; choose another folder");
    assert_eq!(folder.text("run/receipt.json"), before);
}

#[test]
fn the_page_has_the_command_that_computes_its_numbers_again() {
    let folder = trained("repeat");
    folder.ok(&["evaluate", "lamo"]);
    folder.make_darcy("5", "other");
    folder.ok(&["evaluate", "lamo/checkpoints/best.safetensors", "--data", "other", "--out", "evaluated"]);
    for page in ["lamo/report.html", "evaluated/report.html"] {
        let page = folder.text(page);
        let command = page.split("<code>lamo ").nth(1).and_then(|rest| rest.split("</code>").next()).unwrap();
        contains(&folder.ok(&command.split(' ').collect::<Vec<_>>()), &["verified bit for bit"]);
    }
}

#[test]
fn no_command_overwrites_the_checkpoints_of_a_run() {
    let folder = trained("checkpoints");
    let before = folder.read("lamo/checkpoints/best.safetensors");
    wave_npy(&folder.at("a.npy"), &[12, 12]);
    for job in [&["export-weights", "lamo", "--out"][..], &["predict", "lamo", "--input=a.npy", "--output"]] {
        for name in ["best", "last", "new"] {
            let output = format!("lamo/checkpoints/{name}.safetensors");
            contains(&folder.fails(&[job, &[&output]].concat()), &[&output]);
        }
        folder.ok(&[job, &["free.safetensors"]].concat());
    }
    assert_eq!(folder.read("lamo/checkpoints/best.safetensors"), before);
}

#[test]
fn a_folder_that_is_no_run_is_refused() {
    let folder = trained("no-run");
    fs::create_dir(folder.at("empty")).unwrap();
    contains(&folder.fails(&["evaluate", "empty"]), &["empty", "run folder"]);
    contains(&folder.fails(&["evaluate", "nowhere"]), &["nowhere"]);
    fs::remove_file(folder.at("lamo/receipt.json")).unwrap();
    contains(&folder.fails(&["compare", "lamo"]), &["receipt.json", "lamo evaluate lamo"]);
    assert_eq!(folder.run(&["evaluate"]).status.code(), Some(2), "wrong usage exits with 2");
}
