//! Your own data: trained on, predicted with, evaluated, moved.

use crate::evaluate::values;
use crate::support::{Folder, TINY, contains, ok, wave, wave_npy, write_npy};
use crate::train::lines;
use lamo::run::Trained;
use lamo::task::TimeMode;
use std::fs;

#[test]
fn your_own_data_set_trains_and_predicts_and_may_move() {
    let folder = Folder::new("own");
    folder.ok(&["data", "make", "darcy", "--samples=6", "--resolution=8", "--out=mine"]);
    // No benchmark has this problem, so the data set counts as your own.
    let manifest = folder.text("mine/dataset.toml").replace("problem = \"darcy\"", "problem = \"ours\"");
    folder.write("mine/dataset.toml", manifest);
    let text = folder.ok(&["train", "mine", TINY, "--set=train.epochs=1", "--set=train.batch=2"]);
    contains(&text, &["run: runs/ours-lamo-1"]);
    let text = folder.ok(&["predict", "runs/ours-lamo-1", "--input=mine/permeability.npy", "--output=out.npz"]);
    contains(&text, &["pressure [6, 8, 8] of 6 samples"]);
    folder.ok(&["train", "mine", "--model=fno", "--set=train.epochs=1", "--set=model.settings.width=4"]);
    contains(&folder.ok(&["export-weights", "runs/ours-lamo-1", "--out=o.safetensors"]), &["o.safetensors: lamo, "]);
    contains(&folder.fails(&["train", "mine", "--data", "mine"]), &["mine", "--data mine"]);
    contains(&folder.fails(&["train", "mine", "--set=train.batch=100000", TINY]), &["train.batch", "at most"]);

    // The path of the data in a file is relative to the file; the run finds the data from any folder.
    fs::create_dir(folder.at("sub")).unwrap();
    folder.write("sub/e.toml", "[data]\nfolder = \"../mine\"\n[train]\nepochs = 1\nbatch = 2\n");
    folder.ok(&["train", "sub/e.toml", TINY, "--out", "runs/file"]);
    ok(&folder.command(&["evaluate", "../runs/file"]).current_dir(folder.at("sub")).output().unwrap());

    // A run finds data that have moved, from any folder.
    fs::rename(folder.at("mine"), folder.at("moved")).unwrap();
    contains(&folder.fails(&["train", "--resume", "runs/ours-lamo-1"]), &["mine", "--data"]);
    folder.ok(&["train", "--resume", "runs/ours-lamo-1", "--data", "moved"]);
    ok(&folder.command(&["evaluate", "../runs/ours-lamo-1"]).current_dir(folder.at("moved")).output().unwrap());
    folder.write("moved/pressure.npy", "damaged");
    contains(&folder.fails(&["train", "--resume", "runs/ours-lamo-1"]), &["pressure.npy"]);
}

/// Imports the input `a` and the output `u`, a time series with the times in `t.npy`.
fn import_series(folder: &Folder, out: &str) {
    let arrays = ["--input=a=a.npy", "--output=u=u.npy", "--time=t.npy", "--raw=a", "--grid=4x5"];
    let split = ["--ordered", "--train=4", "--test=2"];
    folder.ok(&[&["data", "import", "--out", out], &arrays[..], &split].concat());
}

/// Trains a small model that predicts each time by itself.
const BY_TIME: &[&str] = &[
    "--model=transolver",
    "--set=model.settings={ width = 16, depth = 1, slice_heads = 2, tokens = 4 }",
    "--set=train={ loss = \"relative-l2-of-times\", epochs = 1 }",
];

#[test]
fn times_and_raw_fields_of_an_import_reach_the_model() {
    let folder = Folder::new("times");
    wave_npy(&folder.at("a.npy"), &[6, 4, 5]);
    wave_npy(&folder.at("u.npy"), &[6, 3, 4, 5]);
    let times = |times: [f32; 3]| write_npy(&folder.at("t.npy"), &[3], times.into_iter());
    times([1.0, 2.0, 5.0]);
    import_series(&folder, "set");
    folder.ok(&[&["train", "set", "--out=run"], BY_TIME].concat());
    let task = Trained::open(&folder.at("run")).unwrap().operator.task;
    assert_eq!([0, 1, 2].map(|time| task.time.fraction(time)), [0.0, 0.25, 1.0]);
    let [inputs, outputs] = [task.normalisers.inputs, task.normalisers.outputs].map(Option::unwrap);
    assert_eq!((inputs.mean, inputs.deviation), (vec![0.0], vec![1.0]), "`a` is raw");
    assert!((outputs.mean[0] - 1.5).abs() < 0.2 && outputs.deviation[0] < 0.9, "{outputs:?}");

    times([1.0, 3.0, 5.0]);
    import_series(&folder, "even");
    contains(&folder.fails(&["evaluate", "run", "--data", "even"]), &["even", "2", "3"]);
    times([2.0, 3.0, 6.0]);
    import_series(&folder, "later");
    contains(&folder.fails(&["evaluate", "run", "--data", "later"]), &["later", "1", "2"]);

    let zero = |(index, value)| if index / 20 == 3 { 0.0 } else { value }; // snapshot 0 of sample 1
    write_npy(&folder.at("u.npy"), &[6, 3, 4, 5], wave().enumerate().map(zero));
    import_series(&folder, "zero");
    contains(&folder.fails(&[&["train", "zero", "--out=none"], BY_TIME].concat()), &["0 of sample 1"]);
}

#[test]
fn outputs_without_inputs_are_a_time_series_that_is_continued() {
    let folder = Folder::new("series");
    let import = |shape: &[usize], out: &str| {
        wave_npy(&folder.at("u.npy"), shape);
        folder.ok(&["data", "import", "--output=u=u.npy", "--grid=4x5", "--train=4", "--test=2", "--out", out]);
    };
    import(&[6, 3, 4, 5], "series");
    folder.ok(&["train", "series", TINY, "--set=train.epochs=1", "--out=run"]);
    let time = Trained::open(&folder.at("run")).unwrap().operator.task.time;
    assert_eq!((time.mode(), time.count()), (TimeMode::RollOut { past: 1 }, 2));
    let steady =
        folder.fails(&["train", "series", TINY, "--set=data.time=steady", "--set=train.loss=mse", "--out=none"]);
    contains(&steady, &["input"]);
    folder.ok(&["train", "series", TINY, "--set=train={ epochs = 1, loss = \"mse\" }", "--out=mse"]);
    let mse = Trained::open(&folder.at("mse")).unwrap().operator.task;
    assert!(mse.time.mode().is_roll_out() && mse.normalisers.change.is_some(), "the loss is another");
    contains(&folder.ok(&["evaluate", "mse"]), &["persistence "]);
    import(&[6, 4, 5, 3], "channels");
    contains(&folder.fails(&["train", "channels", TINY, "--out=none"]), &["input"]);
}

#[test]
fn a_time_series_is_learned_by_its_changes_and_predictions_are_made_of_them() {
    let folder = Folder::new("changes");
    // Every snapshot is the one before plus nearly 1, so a model that knows only the mean change is good.
    let value = |place: usize| {
        let (time, point, sample) = (place / 20 % 4, place % 20, place / 80);
        (time + point + sample) as f32 + 0.01 * (time * point % 7) as f32
    };
    write_npy(&folder.at("u.npy"), &[6, 4, 4, 5], (0..6 * 80).map(value));
    folder.ok(&["data", "import", "--output=u=u.npy", "--grid=4x5", "--train=4", "--test=2", "--out=set"]);
    let train = |out: &str, more: &[&str]| {
        folder.ok(&[&["train", "set", TINY, "--set=train.epochs=2", "--threads=1", "--out", out], more].concat())
    };
    let error = |run: &str| folder.ok_json(&["evaluate", run, "--json"])["evaluation"]["relative_l2"].as_f64();
    train("run", &[]);
    train("next", &["--set=data.change=false"]);
    let [run, next] = ["run", "next"].map(|run| Trained::open(&folder.at(run)).unwrap().operator.task.normalisers);
    let mean = run.change.unwrap().mean[0];
    assert!((mean - 1.0).abs() < 0.02 && next.change.is_none(), "{mean}");
    let text = fs::read_to_string(folder.at("run/experiment.toml")).unwrap();
    contains(&text, &["change = true"]);
    let [changes, snapshots] = ["run", "next"].map(|run| error(run).unwrap());
    assert!(changes < 0.1 && snapshots > 10.0 * changes, "{changes} and {snapshots}");
    // A run of an earlier version, whose record has no such key, predicts the next snapshot.
    let text = fs::read_to_string(folder.at("next/experiment.toml")).unwrap();
    fs::write(folder.at("next/experiment.toml"), text.replace("change = false\n", "")).unwrap();
    assert_eq!(error("next"), Some(snapshots));
    folder.ok(&["train", "set", "--init=next", "--set=train.epochs=1", "--out=more"]);
    let more = Trained::open(&folder.at("more")).unwrap().operator.task.normalisers;
    assert_eq!(more.change, None, "the source has learned the next snapshot");
    folder.ok(&["train", "set", "--init=run", "--set=train.epochs=1", "--out=again"]);
    assert!(Trained::open(&folder.at("again")).unwrap().operator.task.normalisers.change.is_some());
    let refused = ["train", "darcy", "--preset=quick", "--set=data.change=true", "--out=none"];
    contains(&folder.fails(&refused), &["data.change", "roll-out"]);
}

#[test]
fn a_time_series_is_drawn_with_its_unit_and_is_not_taken_for_a_deformation() {
    let folder = Folder::new("drawn");
    wave_npy(&folder.at("a.npy"), &[8, 6, 4]);
    wave_npy(&folder.at("u.npy"), &[8, 3, 6, 4, 4]);
    let arrays = ["--input=a=a.npy", "--output=u=u.npy", "--grid=6x4", "--unit=u=m/s", "--train=7", "--test=1"];
    folder.ok(&[&["data", "import", "--out=flow"], &arrays[..]].concat());
    let text = folder.ok(&[&["train", "flow", "--out=run", "--threads=1"], BY_TIME].concat());
    contains(&text, &["after 1 epoch,"]);
    contains(&folder.ok(&["evaluate", "run"]), &["flow, ", "on 1 test sample\n", "snapshots", "u 4 "]);
    let page = folder.text("run/report.html");
    contains(
        &page,
        &[
            "6 rows, 4 columns, row 0 on top and column 0 at the left, as imshow draws them · 3 of 4 outputs are drawn",
            "<div class=\"player\" hidden>",
            "<input type=\"range\" min=\"0\" max=\"2\"",
            "(m/s)",
            "snapshot\u{a0}3/3",
            "u 4",
            "to u at 3 times",
        ],
    );
    assert!(!page.contains("displacement"), "a field of another name is no deformation");
}

#[test]
fn the_page_of_a_line_overlays_truth_and_prediction_at_times_spread_over_the_whole_series() {
    let folder = Folder::new("line");
    wave_npy(&folder.at("a.npy"), &[8, 10]);
    wave_npy(&folder.at("nu.npy"), &[8]);
    wave_npy(&folder.at("u.npy"), &[8, 17, 10]);
    write_npy(&folder.at("t.npy"), &[17], (0..17).map(|time| time as f32 / 16.0));
    let arrays = ["--input=a=a.npy", "--input=nu=nu.npy", "--output=u=u.npy", "--time=t.npy", "--grid=line:10"];
    folder.ok(&[&["data", "import", "--out=set", "--train=7", "--test=1"], &arrays[..]].concat());
    let model = &BY_TIME[..2];
    folder.ok(&[&["train", "set", "--out=run", "--threads=1", "--set=train.epochs=1"], model].concat());
    let page = folder.text("run/report.html");
    let titles = ["0", "0.3125", "0.625", "1"].map(|time| format!("<p title=\"u, t\u{a0}=\u{a0}{time}\">"));
    contains(&page, &titles.each_ref().map(String::as_str));
    contains(
        &page,
        &["truth blue, prediction orange", "<dt>nu, input</dt><dd>", "max=\"16\"", "data-plot=", "data-range="],
    );
    let card = page.split("</article>").next().unwrap();
    let curves: Vec<usize> =
        card.split("<svg class=\"curves\"").skip(1).map(|svg| svg.matches("<polyline").count()).collect();
    assert_eq!(curves, [1, 2, 1, 2, 2, 2, 2, 1, 1, 1, 1], "input, animation, four times, and their errors");
    assert_eq!(values(&page)[0]["fields"][1]["times"][16], "t = 1");
}

#[test]
fn the_fields_of_other_data_are_matched_by_name() {
    let folder = Folder::new("fields");
    for (name, shape) in [("a.npy", &[12, 6, 4][..]), ("b.npy", &[12]), ("u.npy", &[12, 6, 4])] {
        wave_npy(&folder.at(name), shape);
    }
    let import = |inputs: [&str; 2], out: &str| {
        let [first, second] = inputs;
        let job = ["data", "import", "--input", first, "--input", second, "--output=u=u.npy", "--grid=6x4"];
        folder.ok(&[&job[..], &["--train=9", "--test=3", "--out", out]].concat());
    };
    import(["a=a.npy", "b=b.npy"], "set");
    import(["b=b.npy", "a=a.npy"], "swapped");
    import(["c=a.npy", "b=b.npy"], "renamed");
    folder.ok(&["train", "set", "--model=fno", "--out=run", "--threads=1", "--set=train.epochs=1"]);
    let error = |data: &str| {
        let receipt = folder.ok_json(&["evaluate", "run", "--data", data, "--json"]);
        receipt["evaluation"]["relative_l2"].as_f64().unwrap().to_bits()
    };
    assert_eq!(error("swapped"), error("set"));
    contains(&folder.fails(&["evaluate", "run", "--data", "renamed"]), &["`a`"]);
}

#[test]
fn times_that_do_not_grow_and_a_cloud_without_positions_are_refused_by_the_import() {
    let folder = Folder::new("backwards");
    for (name, shape) in [("a.npy", &[8, 10][..]), ("v.npy", &[8, 10]), ("u.npy", &[8, 3, 10])] {
        wave_npy(&folder.at(name), shape);
    }
    for (times, found) in [([0.0, -1.0, -2.0], "-1 after 0"), ([1.0, 1.0, 2.0], "1 after 1")] {
        write_npy(&folder.at("t.npy"), &[3], times.into_iter());
        let told = folder.fails(&["data", "import", "--output=u=u.npy", "--time=t.npy", "--grid=line:10", "--out=set"]);
        contains(&told, &["t.npy", "each later than the one before", found]);
    }
    let told = folder.fails(&["data", "import", "--input=a=a.npy", "--output=v=v.npy", "--grid=cloud:10", "--out=set"]);
    contains(&told, &["a cloud: expected the positions of its points, found none", "--positions"]);
    assert!(!folder.at("set").exists());
}

#[test]
fn an_input_with_the_snapshots_of_the_series_drives_its_roll_out_and_one_with_others_is_told() {
    let folder = Folder::new("forcing");
    for (name, snapshots) in [("f.npy", 4), ("u.npy", 4), ("other.npy", 3)] {
        wave_npy(&folder.at(name), &[8, snapshots, 10]);
    }
    let warned = |set: &str, arrays: &[&str]| {
        folder.ok(&[&["data", "import", "--output=u=u.npy", "--grid=line:10", "--out", set], arrays].concat());
        let run = format!("run-{set}");
        let roll_out = ["--set=train.loss=relative-l2-of-frames", "--set=train.epochs=1", "--threads=1", "--json"];
        let events = lines(&folder.ok(&[&["train", set, "--out", &run], &roll_out[..]].concat()));
        let warnings = events.into_iter().filter(|event| event["event"] == "warning");
        warnings.map(|event| event["message"].as_str().unwrap().to_owned()).find(|text| text.contains("roll-out"))
    };
    assert_eq!(warned("driven", &["--input=f=f.npy", "--window=1", "--horizon=3"]), None);
    let told = warned("whole", &["--input=f=other.npy"]).unwrap();
    contains(&told, &["the input `f` has 3 snapshots and the series 4", "3 steps", "with 4 snapshots"]);

    wave_npy(&folder.at("start.npy"), &[1, 10]);
    wave_npy(&folder.at("long.npy"), &[6, 10]);
    let given = ["predict", "run-driven", "--input=u=start.npy", "--input=f=long.npy", "--output=next.npy"];
    contains(&folder.ok(&given), &["u [5, 10]"]);
    contains(&folder.fails(&[&given[..], &["--frames=6"]].concat()), &["at most 5", "`f` with 7 snapshots"]);
}

#[test]
fn a_number_of_each_sample_may_be_a_file_without_axes() {
    let folder = Folder::new("numbers-by-file");
    for sample in 0..8 {
        wave_npy(&folder.at(&format!("a_{sample}.npy")), &[10]);
        write_npy(&folder.at(&format!("u_{sample}.npy")), &[10], (0..10).map(|point| (sample * point + 1) as f32));
        write_npy(&folder.at(&format!("q_{sample}.npy")), &[], std::iter::once(sample as f32));
    }
    let arrays = ["--input=a=a_*.npy", "--input=q=q_*.npy", "--output=u=u_*.npy", "--grid=line:10", "--out=set"];
    contains(&folder.ok(&[&["data", "import"], &arrays[..]].concat()), &["8 samples"]);
    let report = folder.ok_json(&["data", "check", "set", "--json"]);
    let number = report["fields"].as_array().unwrap().iter().find(|field| field["name"] == "q").unwrap();
    assert_eq!(number["shape"], serde_json::json!([]));
}
