//! What a result is measured by: validation samples, each output in its unit, predictors that learn nothing; and the keys.

use crate::support::{Folder, TINY, contains, wave, write_npy};
use serde_json::Value;

/// 60 samples on 5 x 4 points: an input, a pressure in Pa and a displacement in mm.
fn import(folder: &Folder) {
    write_npy(&folder.at("a.npy"), &[60, 5, 4], wave());
    write_npy(&folder.at("p.npy"), &[60, 5, 4], wave().map(|value| 1e5 * (2.0 + value)));
    write_npy(&folder.at("w.npy"), &[60, 5, 4], wave().map(|value| 0.01 + 1e-3 * (9.0 * value).sin()));
    let fields = ["--input=a=a.npy", "--output=p=p.npy", "--output=w=w.npy", "--unit=p=Pa", "--unit=w=mm"];
    folder.ok(&[&["data", "import", "--grid=5x4", "--train=50", "--test=10", "--out=plate"], &fields[..]].concat());
}

#[test]
fn a_result_has_each_output_in_its_unit_and_the_predictors_that_learn_nothing() {
    let folder = Folder::new("measures");
    import(&folder);
    let said =
        folder.ok(&["train", "plate", TINY, "--set=train={ epochs = 2, batch = 9 }", "--out=run", "--threads=1"]);
    let words = [
        "validation 0.",
        "plate: mean over the outputs of their relative L2 error on the test samples",
        "the best on the validation samples; saved in run",
        "  outputs    p ",
        " Pa, R² ",
        "             w ",
        " mm, R² ",
        "  trivial    mean of the training outputs ",
        ", nearest training sample ",
    ];
    contains(&said, &words);
    assert!(!said.contains("  test 0."), "the test samples are evaluated once: {said}");
    let said = folder.ok(&["evaluate", "run"]);
    contains(&said, &["plate, lamo: mean over the outputs", "MAE", "RMSE", "max error", "H1", "energy spectrum"]);
    contains(&said, &["samples    all outputs as one: mean ", "trivial    mean of the training outputs"]);
    let page = folder.text("run/report.html");
    contains(
        &page,
        &["validation error", "Predictors that learn nothing", "mean absolute error", "(Pa)", "(mm)", "R²"],
    );
    contains(&page, &["mean over 2 outputs", "median, outputs as one", "The best predictor that learns nothing"]);

    let evaluation = &folder.json("run/receipt.json")["evaluation"];
    let error = |place: usize| evaluation["outputs"][place]["relative_l2"].as_f64().unwrap();
    assert_eq!(evaluation["mean_of_outputs"].as_f64().unwrap(), (error(0) + error(1)) / 2.0);
    assert!(evaluation["relative_l2"].is_f64() && evaluation["trivial"]["mean"].is_f64());
    contains(&folder.ok(&["evaluate", "--verify", "run/receipt.json"]), &["verified bit for bit"]);
    contains(&folder.ok(&["compare", "run", "run"]), &["error: mean over the outputs of their relative L2 error"]);
}

#[test]
fn scripts_get_the_same_numbers_and_hear_of_an_early_end() {
    let folder = Folder::new("measures-json");
    import(&folder);
    let still = "--set=train={ epochs = 40, batch = 45, rate = 1e-30, schedule = \"constant\", patience = 2 }";
    let said = folder.ok(&["train", "plate", TINY, still, "--out=run", "--threads=1", "--json"]);
    let lines: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of = |event: &str| -> Vec<&Value> { lines.iter().filter(|line| line["event"] == event).collect() };
    assert_eq!(of("epoch").len(), 3, "one epoch that improves and two that do not");
    assert!(of("epoch").iter().all(|line| line["validation"].is_f64() && line["test"].is_null()), "{said}");
    assert_eq!((&of("early")[0]["epoch"], &of("early")[0]["best"]), (&Value::from(3), &Value::from(1)));
    let end = of("end")[0];
    assert_eq!((&end["best_epoch"], &end["epoch"]), (&Value::from(1), &Value::from(3)));
    assert_eq!(end["outputs"][1]["unit"], "mm");
    assert!(end["trivial"]["nearest"].is_f64() && end["relative_l2"].is_f64(), "{end}");
    let worse = of("warning").iter().any(|line| line["message"].as_str().unwrap().contains("learns nothing"));
    assert!(worse, "a model that was not trained is not better than the mean: {said}");
    contains(&folder.ok(&["train", "--resume", "run"]), &["ended early after 3 epochs"]);
}

#[test]
fn on_a_bent_mesh_there_is_no_h1_and_the_page_says_so() {
    let folder = Folder::new("bent");
    import(&folder);
    let place = |k: usize| [(k % 4) as f32, (k / 4) as f32 + 0.1 * ((k % 4) * (k % 4)) as f32];
    write_npy(&folder.at("xy.npy"), &[5, 4, 2], (0..20).flat_map(place));
    let fields = ["--positions=xy.npy", "--input=a=a.npy", "--output=p=p.npy", "--grid=5x4", "--train=50", "--test=10"];
    folder.ok(&[&["data", "import", "--out=mesh"], &fields[..]].concat());
    let said = folder.ok(&["train", "mesh", TINY, "--set=train={ epochs = 1, batch = 9 }", "--out=run", "--threads=1"]);
    assert!(said.contains("R²") && !said.contains("H1"), "{said}");
    contains(&folder.text("run/report.html"), &["The points are not equally spaced, so there is no H1 error"]);
    let refused = folder.fails(&["train", "mesh", TINY, "--set=train.loss=h1", "--out=none"]);
    contains(&refused, &["train.loss = h1", "equally spaced", "use relative-l2"]);
}

#[test]
fn the_keys_are_printed_without_anything_else() {
    let folder = Folder::new("keys");
    let said = folder.ok(&["train", "--keys"]);
    contains(
        &said,
        &["# Keys of an experiment", "`train.patience`", "Unit: epochs. Default: `100`.", "`relative-l2-per-channel`"],
    );
    assert_eq!(folder.run(&["train", "darcy", "--keys"]).status.code(), Some(2));
    assert_eq!(folder.run(&["train"]).status.code(), Some(2));
    assert!(folder.names().is_empty(), "nothing is written");
}
