//! `lamo results`: receipts become rows, gaps stay visible, and each row says how to repeat it.

use crate::support::{Folder, TINY, contains, ok};
use serde_json::{Value, json};

/// A receipt of a run on two test samples.
fn receipt(folder: &Folder) -> Value {
    folder.make_darcy("0", "set");
    folder.ok(&["train", "darcy", "--data=set", "--set=train.epochs=1", "--threads=1", TINY, "--out", "run"]);
    folder.json("run/receipt.json")
}

#[test]
fn a_receipt_states_the_preset_and_what_differs_from_it() {
    let folder = Folder::new("receipt-changes");
    let receipt = receipt(&folder);
    assert_eq!(receipt["preset"], "quick");
    let changes: Vec<&str> =
        receipt["changes"].as_array().unwrap().iter().map(|change| change.as_str().unwrap()).collect();
    contains(&changes.join(" "), &["train.epochs=1", "model.settings.width=16"]);
    assert!(
        !changes.iter().any(|change| change.starts_with("data.folder") || change.starts_with("seed")),
        "{changes:?}"
    );
    // With the changes the preset is the same experiment again.
    let sets: Vec<String> = changes.iter().map(|change| format!("--set={change}")).collect();
    let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
    folder.ok(&[&["train", "darcy", "--preset=quick", "--data=set", "--threads=1", "--out=again"], &sets[..]].concat());
    let again = folder.json("again/receipt.json");
    assert_eq!(again["hashes"]["experiment"], receipt["hashes"]["experiment"]);
    assert_eq!(again["evaluation"], receipt["evaluation"]);
}

/// Receipts that are added or removed change the page.
#[test]
fn the_page_of_results_is_what_the_command_prints_of_the_receipts() {
    let folder = Folder::new("results-page");
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let printed = ok(&folder.command(&["results"]).current_dir(&root).output().unwrap());
    let page = std::fs::read_to_string(root.join("docs/results.md")).unwrap();
    let same = printed == page.replace("](../results/", "](results/");
    assert!(same, "write the page again: lamo results results --out docs/results.md");
}

#[test]
fn seeds_become_a_mean_and_a_deviation_and_gaps_are_shown() {
    let folder = Folder::new("results");
    let made = receipt(&folder);
    std::fs::create_dir(folder.at("results")).unwrap();
    let write = |name: &str, change: &dyn Fn(&mut Value)| {
        let mut receipt = made.clone();
        (receipt["preset"], receipt["changes"]) = (json!("paper"), json!([]));
        change(&mut receipt);
        folder.write(&format!("results/{name}"), receipt.to_string());
    };
    for (seed, error) in [(0, 0.004), (1, 0.005), (2, 0.006)] {
        write(&format!("darcy-{seed}.json"), &|receipt| {
            (receipt["seed"], receipt["evaluation"]["relative_l2"]) = (json!(seed), json!(error));
        });
    }
    write("symmetric.json", &|receipt| receipt["changes"] = json!(["train.symmetries=true", "train.evaluate=20"]));
    let best = [
        "model.settings.mlp=swiglu",
        "train.epochs=300",
        "train.evaluate=50",
        "train.matrix_rate=4.0",
        "train.optimiser=muon",
        "train.symmetries=true",
    ];
    write("best.json", &|receipt| receipt["changes"] = json!(best));
    write("earlier.json", &|receipt| {
        (receipt["preset"], receipt["seed"]) = (json!("best"), json!(1));
        receipt["changes"] = json!(["train.symmetries=true"]); // which the preset did not change yet
    });
    write("quick.json", &|receipt| receipt["preset"] = json!("quick"));
    write("own.json", &|receipt| receipt["benchmark"] = json!("own"));
    // A receipt of an earlier version, by its name.
    write("pipe-transolver.json", &|receipt| {
        (receipt["benchmark"], receipt["model"]) = (json!("pipe"), json!("transolver"));
        receipt.as_object_mut().unwrap().remove("preset");
    });
    folder.write("results/bench.json", "{}");
    let page = folder.ok(&["results"]);
    let rows: Vec<&str> = page.lines().filter(|line| line.starts_with("| ")).collect();
    assert_eq!(rows.len(), 1 + 6 * 3 + 1, "{page}");
    contains(rows[1], &["| darcy | lamo | authors' recipe | 0.00500 ± 0.00100 (3 seeds) | 0.0039 | 1 epoch,"]);
    contains(rows[1], &["[darcy-0.json](results/darcy-0.json), [darcy-1.json]", "| cpu |"]);
    contains(rows[2], &["| darcy | lamo | best | ", "(2 seeds)", "best.json", "earlier.json"]);
    contains(rows[5], &["| navier-stokes | lamo | authors' recipe | – | 0.0460 | – | – | – | – |"]);
    contains(rows[4], &["authors' recipe, `train.symmetries=true` |", "symmetric.json"]);
    let pipe = rows.iter().find(|row| row.contains("pipe-transolver.json")).unwrap();
    contains(pipe, &["| pipe | transolver | authors' recipe | ", "| 0.0046 |"]);
    contains(&page, &["- `darcy-2.json`: `lamo train darcy --model lamo --preset paper --seed 2`"]);
    contains(&page, &["`lamo train darcy --model lamo --preset paper --set train.symmetries=true`"]);
    assert!(!page.contains("quick.json") && !page.contains("own.json") && !page.contains("bench.json"), "{page}");
    std::fs::create_dir(folder.at("docs")).unwrap();
    contains(&folder.ok(&["results", "results", "--out=docs/results.md"]), &["docs/results.md", "4 of 19 rows"]);
    contains(&folder.text("docs/results.md"), &["(../results/darcy-0.json)"]);
    contains(&folder.fails(&["results", "nowhere"]), &["nowhere"]);
}

#[test]
fn a_row_has_one_receipt_of_each_seed_on_the_same_test_samples() {
    let folder = Folder::new("results-rows");
    let made = receipt(&folder);
    std::fs::create_dir(folder.at("results")).unwrap();
    let write = |name: &str, seed: usize, change: &dyn Fn(&mut Value)| {
        let mut receipt = made.clone();
        (receipt["preset"], receipt["changes"], receipt["seed"]) = (json!("paper"), json!([]), json!(seed));
        receipt["hashes"]["weights"] = json!(name);
        change(&mut receipt);
        folder.write(&format!("results/{name}.json"), receipt.to_string());
    };
    write("a-0", 0, &|receipt| {
        receipt["trained_with"] = json!({ "device": "cuda", "card": "a GPU" });
        receipt["costs"]["together"] = json!(3);
    });
    write("a-1", 1, &|receipt| receipt["machine"]["precision"] = json!("tf32"));
    write("b-again", 0, &|receipt| receipt["hashes"]["weights"] = json!("a-0"));
    write("c-repeated", 0, &|_| {});
    write("d-symmetric", 0, &|receipt| {
        (receipt["symmetries"], receipt["machine"]["precision"]) = (json!(8), json!("tf32"));
    });
    write("e-coarser", 1, &|receipt| receipt["trained_on"] = json!("plane of 4 x 4 points"));
    write("f-elsewhere", 2, &|receipt| receipt["hashes"]["test"] = json!("other samples"));
    let page = folder.ok(&["results"]);
    let row = |name: &str| page.lines().find(|line| line.starts_with("| ") && line.contains(name)).unwrap_or("none");
    contains(row("a-0.json"), &["(2 seeds, 1 in tf32)", "a-1.json", " beside 2 others |", "| a GPU |"]);
    assert!(!page.contains("b-again.json"), "the same run again: {page}");
    assert!(!row("c-repeated.json").contains("seeds"), "{page}");
    contains(row("d-symmetric.json"), &["authors' recipe, mean over 8 symmetries |", " (tf32) |"]);
    contains(row("e-coarser.json"), &["authors' recipe, trained on a plane of 4 x 4 points |"]);
    contains(row("f-elsewhere.json"), &["other test samples than above"]);
    contains(&page, &["- `a-0.json`: `lamo train darcy --model lamo --preset paper --device cuda`"]);
}
