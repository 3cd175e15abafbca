//! Regular grids of three axes from the arrays to the pictures.

use crate::support::{Folder, contains, wave_npy};

fn imported(test: &str) -> Folder {
    let folder = Folder::new(test);
    wave_npy(&folder.at("a.npy"), &[8, 6, 5, 4]);
    wave_npy(&folder.at("u.npy"), &[8, 6, 5, 4, 2]);
    let arrays = ["--input=a=a.npy", "--output=u=u.npy", "--grid=6x5x4", "--ordered", "--train=6", "--test=2"];
    let text = folder.ok(&[&["data", "import", "--out=box"], &arrays[..]].concat());
    contains(
        &text,
        &["a: 8 samples, 6 rows, 5 columns, 4 layers (axes nxyz", "5 columns, 4 layers, 2 channels (axes nxyzc"],
    );
    folder
}

const SHORT: [&str; 2] = ["--set=train.epochs=1", "--set=train.batch=2"];

#[test]
fn a_volume_is_imported_checked_trained_evaluated_explained_and_predicted() {
    let folder = imported("volume");
    contains(&folder.ok(&["data", "check", "box"]), &["[6, 5, 4, 2]", "picture: box-check.png"]);
    let lamo = "--set=model.settings={ width = 16, depth = 1, states = 4 }";
    let fno = "--set=model.settings={ width = 4, depth = 1, modes = 2 }";
    for (model, settings) in [("lamo", lamo), ("fno", fno), ("transolver", "--set=model.settings.depth=1")] {
        let out = format!("runs/{model}");
        let train = ["train", "box", "--model", model, settings, "--out", &out];
        contains(&folder.ok(&[&train, &SHORT[..]].concat()), &["H1", "energy spectrum"]);
        let report = folder.text(&format!("{out}/report.html"));
        contains(&report, &["cuts through the middle of 6 x 5 x 4 points", "u 1, row 3, truth", "a, layer 2, input"]);
        folder.ok(&["evaluate", &out]);
        let text = folder.ok(&["predict", &out, "--input=a.npy", "--output=out.npz"]);
        contains(&text, &["u [8, 6, 5, 4, 2] of 8 samples"]);
        folder.ok(&["explain", &out, "--sample=1"]);
    }
    // Another volume; LaMO interpolates to the lattice of its training.
    wave_npy(&folder.at("finer.npy"), &[2, 11, 5, 7]);
    for model in ["lamo", "fno", "transolver"] {
        let text = folder.ok(&["predict", &format!("runs/{model}"), "--input=finer.npy", "--output=finer.npz"]);
        contains(&text, &["u [2, 11, 5, 7, 2] of 2 samples"]);
    }
}

#[test]
fn weights_of_a_volume_tell_their_model_and_start_a_training_on_a_finer_one() {
    let folder = imported("volume-weights");
    let settings = "--set=model.settings={ width = 16, depth = 1, states = 4 }";
    folder.ok(&[&["train", "box", settings, "--out=runs/lamo"], &SHORT[..]].concat());
    folder.ok(&["export-weights", "runs/lamo", "--out=w.safetensors"]);
    let asked = folder.fails(&["import", "w.safetensors", "--out=model"]);
    contains(&asked, &["the rows, columns and layers of the volume", "task.grid=ROWSxCOLUMNSxLAYERS"]);
    folder.ok(&["import", "w.safetensors", "--set=task.grid=6x5x4", "--out=model"]);
    contains(&folder.ok(&["predict", "model", "--input=a.npy", "--output=o.npz"]), &["outputs [8, 6, 5, 4, 2]"]);

    wave_npy(&folder.at("fa.npy"), &[4, 11, 9, 7]);
    wave_npy(&folder.at("fu.npy"), &[4, 11, 9, 7, 2]);
    let arrays = ["--input=a=fa.npy", "--output=u=fu.npy", "--grid=11x9x7", "--ordered", "--train=3", "--test=1"];
    folder.ok(&[&["data", "import", "--out=fine"], &arrays[..]].concat());
    let start = ["train", "fine", "--init=runs/lamo", "--set=train.epochs=1"];
    contains(&folder.ok(&start), &["28 of 28 tensors taken, 6719 of 6719 parameters; error before"]);
    contains(
        &folder.ok(&[&start[..], &["--set=model.settings.lattice=[0,0]"]].concat()),
        &["interpolated: pos_embed1"],
    );
}

#[test]
fn what_does_not_fit_a_volume_is_said_in_a_sentence() {
    let folder = imported("volume-refused");
    contains(
        &folder.fails(&["train", "box", "--model=resnet"]),
        &["model resnet: expected a plane or a flat cloud, found a volume of shape [6, 5, 4]; use lamo, "],
    );
    let import = ["data", "import", "--out=other", "--input=a=a.npy", "--output=u=u.npy"];
    let fails = |grid: &str| folder.fails(&[&import[..], &[grid]].concat());
    contains(&fails("--grid=6x5x3"), &["over a grid of [6, 5, 3], found shape [8, 6, 5, 4]"]);
    contains(&fails("--grid=6x5x4x1"), &["expected ROWSxCOLUMNS, ROWSxCOLUMNSxLAYERS, line:POINTS or cloud:POINTS"]);
    contains(&folder.fails(&[&import[..], &["--grid=6x5x4", "--axes=u=nxyc1"]].concat()), &["x, y and z"]);
}
