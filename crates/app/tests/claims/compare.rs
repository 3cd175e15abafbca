//! `lamo compare`: runs in a table and a picture, and whether their errors can be compared.

use crate::evaluate::{train, trained};
use crate::support::{Folder, TINY, contains};

#[test]
fn runs_are_compared_in_a_table_and_a_picture() {
    let folder = trained("compare");
    train(&folder, "transolver");
    let text = folder.ok(&["compare", "lamo", "transolver"]);
    let starts: Vec<_> = text.lines().map(|line| line.split_whitespace().next().unwrap()).collect();
    assert_eq!(starts, ["run", "lamo", "transolver", "trained", "picture:"], "{text}");
    contains(&text, &["trained differently: train.optimiser muon, adamw"]);
    assert!(!text.contains("train.matrix_rate") && !text.contains("train.epochs"), "{text}");
    assert!(folder.is_png("compare.png"));
    let report = folder.ok_json(&["compare", "lamo", "transolver", "--json"]);
    assert_eq!((report["same_test"].as_bool(), report["runs"].as_array().unwrap().len()), (Some(true), 2));
    let run = &report["runs"][0];
    assert!(run["step_bytes"].as_u64().unwrap() > 4 * run["parameters"].as_u64().unwrap());
}

#[test]
fn a_training_that_ended_early_is_shown_with_all_its_epochs_and_what_it_was_asked_for() {
    let folder = Folder::new("early");
    folder.make_darcy("0", "set");
    let train = |out: &str, more: &[&str]| {
        let data =
            ["--data=set", "--set=data.train=6", "--set=data.test=4", "--set=data.validation=2", "--threads=1", TINY];
        folder.ok(&[&["train", "darcy", "--out", out], &data[..], more].concat());
    };
    // A rate of nothing improves nothing, so that the first epoch is the best and three more are waited for.
    train("early", &["--set=train.epochs=9", "--set=train.patience=3", "--set=train.rate=1e-30"]);
    train("full", &["--set=train.epochs=4", "--set=train.rate=1e-30"]);
    train("onwards", &["--set=train.epochs=4", "--set=train.rate=1e-30", "--init=full"]);
    let report = folder.ok_json(&["compare", "early", "full", "--json"]);
    let epochs = |run: usize| ["epochs", "evaluated_epoch"].map(|key| report["runs"][run][key].as_u64().unwrap());
    assert_eq!((epochs(0), epochs(1)), ([4, 1], [4, 1]));
    contains(&folder.ok(&["compare", "early", "full"]), &["4, best 1", "train.epochs 9, 4"]);
    let text = folder.ok(&["compare", "full", "onwards"]);
    contains(&text, &["--init none, "]);
    assert!(!text.contains("train.epochs"), "{text}");
}

#[test]
fn runs_that_differ_in_their_training_samples_have_the_same_test() {
    let folder = Folder::new("same-test");
    folder.make_darcy("0", "set");
    let train = |out: &str, train: &str, test: &str| {
        let data = ["--data=set", "--set", train, "--set", test, "--set=train.epochs=1", "--threads=1", TINY];
        folder.ok(&[&["train", "darcy", "--out", out], &data[..]].concat());
    };
    train("many", "data.train=8", "data.test=4");
    train("few", "data.train=4", "data.test=4");
    train("other", "data.train=4", "data.test=3");
    let compare = |other: &str| folder.ok_json(&["compare", "many", other, "--json"]);
    assert_eq!(compare("few")["same_test"], true);
    assert_eq!(compare("few")["differences"][0]["key"], "train.batch", "four samples are at most a batch of four");
    let alike = folder.ok_json(&["compare", "few", "other", "--json"]);
    assert_eq!(alike["differences"], serde_json::json!([]));
    assert_eq!(compare("other")["same_test"], false);
    let splits = ["many", "few"].map(|run| folder.json(&format!("{run}/receipt.json"))["hashes"]["split"].clone());
    assert_ne!(splits[0], splits[1], "the training samples differ");
}

#[test]
fn runs_with_different_test_samples_are_not_drawn_together_and_only_png_is_written() {
    let folder = trained("different");
    folder.make_darcy("5", "other");
    folder.ok(&["evaluate", "lamo", "--data", "other", "--out", "evaluated"]);
    let text = folder.ok(&["compare", "lamo", "evaluated"]);
    contains(&text, &["their errors cannot be compared, so no picture is drawn"]);
    assert!(!text.contains("picture:") && !folder.at("compare.png").exists(), "{text}");
    assert_eq!(folder.ok_json(&["compare", "lamo", "evaluated", "--json"])["same_test"], false);
    assert!(!folder.at("compare.png").exists());
    let sentence = folder.fails(&["compare", "nowhere", "--out", "x.jpg"]);
    assert_eq!(sentence, "x.jpg: expected a file name that ends in .png, found .jpg");
    assert!(!folder.at("x.jpg").exists());
}
