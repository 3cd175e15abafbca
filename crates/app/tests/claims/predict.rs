//! `lamo predict`: inputs by file, by variable and by field; models from runs and from `lamo import`.

use crate::support::{Folder, TINY, contains, wave, wave_npy, write_npy};
use crate::weights::{DESCRIPTION, weights};
use lamo::data::formats::{self, Named};

/// A folder with a run that maps the fields `a` and `b` on 6 × 4 points to `u`.
fn two_inputs(test: &str) -> Folder {
    let folder = Folder::new(test);
    for (name, shape) in [("a.npy", &[8, 6, 4][..]), ("b.npy", &[8]), ("u.npy", &[8, 6, 4])] {
        wave_npy(&folder.at(name), shape);
    }
    let arrays = ["--input=a=a.npy", "--input=b=b.npy", "--output=u=u.npy", "--grid=6x4", "--out=set"];
    folder.ok(&[&["data", "import"], &arrays[..]].concat());
    folder.ok(&["train", "set", TINY, "--set=train.epochs=1", "--threads=1", "--out=run"]);
    folder
}

/// The prediction in a file, and its shape.
fn prediction(folder: &Folder, name: &str) -> (Vec<usize>, Vec<f32>) {
    let array = formats::read(folder.at(name), None).unwrap();
    (array.shape, array.values.into_f32())
}

#[test]
fn inputs_are_found_by_field_and_by_variable() {
    let folder = two_inputs("inputs");
    let first = |count: usize| wave().take(count).collect::<Vec<f32>>();
    let [a, b] = [("a", vec![2, 6, 4], 48), ("b", vec![2], 2)].map(|(name, shape, count)| Named {
        name: name.into(),
        shape,
        values: first(count),
    });
    let [x, y] = [(&a, "x"), (&b, "y")].map(|(array, name)| Named { name: name.into(), ..array.clone() });
    formats::write(&folder.at("fields.npz"), &[a, b]).unwrap();
    formats::write(&folder.at("renamed.npz"), &[x, y]).unwrap();
    write_npy(&folder.at("a.npy"), &[2, 6, 4], wave());
    write_npy(&folder.at("b.npy"), &[2], wave());
    let predict = |inputs: &[&str], output: &str| {
        let inputs: Vec<_> = inputs.iter().flat_map(|input| ["--input", input]).collect();
        contains(&folder.ok(&[&["predict", "run", "--output", output], &inputs[..]].concat()), &["u [2, 6, 4]"]);
        prediction(&folder, output)
    };
    let expected = predict(&["fields.npz"], "by-name.npy");
    assert_eq!(expected.0, [2, 6, 4]);
    assert!(expected.1.iter().all(|value| value.is_finite()));
    for (inputs, output) in [
        (&["a=a.npy", "b=b.npy"][..], "by-field.npy"),
        (&["a=renamed.npz:x", "b=renamed.npz:y"], "by-variable.npy"),
        (&["b=renamed.npz:y", "fields.npz:a"], "mixed.npy"),
    ] {
        assert_eq!(predict(inputs, output), expected, "{inputs:?}");
    }
    let fails = |inputs: &[&str]| folder.fails(&[&["predict", "run", "--output=no.npy"], inputs].concat());
    contains(&fails(&["--input=renamed.npz"]), &["renamed.npz", "`a`", "FILE:VARIABLE"]);
    contains(&fails(&["--input=c=a.npy"]), &["--input", "a, b", "c"]);
    contains(&fails(&["--input=a=renamed.npz:z", "--input=b=b.npy"]), &["renamed.npz", "z"]);
    for option in ["--derive=sdf=nothing.stl", "--scalars=nothing.csv", "--on=cells"] {
        contains(&fails(&["--input=fields.npz", option]), &["expected mesh files", "found arrays", "leave it out"]);
    }
    assert!(!folder.at("no.npy").exists());
}

#[test]
fn several_files_are_samples_in_one_output_or_in_an_output_each() {
    let folder = two_inputs("files");
    let values: Vec<f32> = wave().take(100).collect();
    for (place, case) in ["1", "2", "10"].into_iter().enumerate() {
        let a = Named { name: "a".into(), shape: vec![6, 4], values: values[30 * place..][..24].to_vec() };
        let b = Named { name: "b".into(), shape: vec![], values: vec![values[place]] };
        formats::write(&folder.at(&format!("case_{case}.npz")), &[a, b]).unwrap();
    }
    let predict = |arguments: &[&str]| folder.ok(&[&["predict", "run"], arguments].concat());
    contains(&predict(&["--input=case_*.npz", "--output=all.npy"]), &["all.npy: u [3, 6, 4] of 3 samples"]);
    let (shape, all) = prediction(&folder, "all.npy");
    assert_eq!(shape, [3, 6, 4]);
    contains(&predict(&["--input=case_*.npz", "--output=u_*.npy"]), &["u_*.npy (3 files): u [3, 6, 4] of 3 samples"]);
    for (place, case) in ["1", "2", "10"].into_iter().enumerate() {
        let one = prediction(&folder, &format!("u_case_{case}.npy"));
        assert_eq!(one, (vec![6, 4], all[24 * place..][..24].to_vec()), "case {case}");
    }
    predict(&["--input=a=case_*.npz:a", "--input=b=case_*.npz:b", "--output=named.npy"]);
    assert_eq!(prediction(&folder, "named.npy").1, all);
    let fails = |arguments: &[&str]| folder.fails(&[&["predict", "run", "--output=no.npy"], arguments].concat());
    contains(&fails(&["--input=a=case_*.npz:a", "--input=b=case_1.npz:b"]), &["`b`", "3 samples as in `a`"]);
    contains(&fails(&["--input=none_*.npz"]), &["none_*.npz: expected files that fit the pattern, found none"]);
    wave_npy(&folder.at("case_3.npy"), &[5, 4]);
    contains(&fails(&["--input=a=case_*.np?:a", "--input=b=case_1.npz:b"]), &["case_3.npy"]);
    assert!(!folder.at("no.npy").exists());
}

#[test]
fn a_single_input_may_be_any_variable_of_a_file() {
    let folder = Folder::new("variable");
    folder.make_darcy("0", "set");
    folder.ok(&["train", "set", TINY, "--set=train.epochs=1", "--threads=1", "--out=run"]);
    folder.ok(&["predict", "run", "--input=set/permeability.npy", "--output=expected.npy"]);
    let array = formats::read(folder.at("set/permeability.npy"), None).unwrap();
    let array = Named { name: "k".into(), shape: array.shape, values: array.values.into_f32() };
    let noise = Named { name: "noise".into(), shape: vec![3], values: vec![0.0; 3] };
    formats::write(&folder.at("two.npz"), &[noise, array]).unwrap();
    folder.ok(&["predict", "run", "--input=two.npz:k", "--output=found.npy"]);
    assert_eq!(prediction(&folder, "found.npy"), prediction(&folder, "expected.npy"));
}

#[test]
fn a_model_folder_made_by_import_predicts() {
    let folder = Folder::new("imported");
    folder.write("weights.safetensors", weights());
    folder.write("config.toml", DESCRIPTION);
    folder.ok(&["import", "weights.safetensors", "--config=config.toml", "--out=model"]);
    wave_npy(&folder.at("positions.npy"), &[3, 37, 2]);
    let text = folder.ok(&["predict", "model", "--input=positions=positions.npy", "--output=fields.npz"]);
    contains(&text, &["fields.npz: outputs [3, 37, 2] of 3 samples in "]);
    let (shape, three) = prediction(&folder, "fields.npz");
    assert_eq!(shape, [3, 37, 2]);
    assert!(three.iter().all(|value| value.is_finite()));
    wave_npy(&folder.at("one.npy"), &[37, 2]);
    folder.ok(&["predict", "model", "--input=one.npy", "--output=one-field.npy"]);
    let (shape, one) = prediction(&folder, "one-field.npy");
    assert_eq!(shape, [37, 2]);
    let difference = one.iter().zip(&three).map(|(one, three)| (one - three).abs()).fold(0.0, f32::max);
    assert!(difference < 1e-5, "a sample does not depend on the rest of its batch, found {difference:e}");
    contains(&folder.fails(&["evaluate", "model"]), &["model"]);
}

#[test]
fn a_prediction_that_cannot_be_made_gives_one_sentence() {
    let folder = two_inputs("predict-refused");
    let predict = |arguments: &[&str]| folder.fails(&[&["predict"], arguments].concat());
    let inputs = ["--input=a=a.npy", "--input=b=b.npy"];
    contains(&predict(&[&["nowhere", "--output=o.npy"], &inputs[..]].concat()), &["nowhere"]);
    contains(&predict(&[&["run", "--output=./a.npy"], &inputs[..]].concat()), &["--output", "--input"]);
    contains(&predict(&[&["run", "--output=o.npy", "--frames=3"], &inputs[..]].concat()), &["3"]);
    contains(&predict(&[&["run", "--output=o.npy", "--frames=0"], &inputs[..]].concat()), &["--frames", "found 0"]);
    wave_npy(&folder.at("b.npy"), &[3]);
    contains(&predict(&[&["run", "--output=o.npy"], &inputs[..]].concat()), &["`b`", "8 samples", "[3]"]);
    assert!(!folder.at("o.npy").exists());
}
