//! A model in memory predicts what the library predicts from files, and refuses what is no model and no input.

use super::{CELLS, SIDE, darcy, npy, permeabilities};
use lamo::data::formats::ArrayFile;
use lamo::{Device, PredictRequest, Source, predict};
use lamo_wasm::Model;

#[test]
fn a_prediction_of_bytes_is_the_file_that_the_library_writes() {
    let folder = tempfile::tempdir().unwrap();
    let [model, input, output] = ["darcy.safetensors", "a.npy", "u.npy"].map(|name| folder.path().join(name));
    let given = npy(&[SIDE, SIDE], permeabilities(1, SIDE));
    std::fs::write(&model, darcy()).unwrap();
    std::fs::write(&input, &given).unwrap();
    let inputs = vec![Source::parse(input.to_str().unwrap())];
    let (output, device) = (output.clone(), Device::Cpu);
    let request = PredictRequest { model, inputs, output, snapshots: None, symmetries: false, memory: None, device };
    predict(&request).unwrap();
    assert!(Model::open(darcy()).unwrap().predict(given).unwrap() == std::fs::read(&request.output).unwrap());
}

#[test]
fn several_samples_are_predicted_one_by_one() {
    let (samples, values) = (3, permeabilities(3, SIDE));
    let mut model = Model::open(darcy()).unwrap();
    let answer = model.predict(npy(&[samples, SIDE, SIDE], values.clone())).unwrap();
    let found = ArrayFile::in_memory("answer", answer).unwrap();
    assert_eq!(found.describe(None).unwrap().shape, [samples, SIDE, SIDE]);
    let found = found.read(None).unwrap().values.into_f32();
    for (sample, found) in values.chunks(SIDE * SIDE).zip(found.chunks(SIDE * SIDE)) {
        let alone = model.predict(npy(&[SIDE, SIDE], sample.to_vec())).unwrap();
        assert!(ArrayFile::in_memory("one", alone).unwrap().read(None).unwrap().values.into_f32() == found);
    }
}

#[test]
fn one_sample_predicts_the_same_whichever_sizes_came_before() {
    let one = npy(&[SIDE, SIDE], permeabilities(1, SIDE));
    let first = Model::open(darcy()).unwrap().predict(one.clone()).unwrap();
    let mut model = Model::open(darcy()).unwrap();
    model.predict(npy(&[43, 43], permeabilities(1, 43))).unwrap(); // a grid of its own: fields are interpolated
    assert!(model.predict(one.clone()).unwrap() == first && model.predict(one).unwrap() == first);
}

#[test]
fn the_card_says_what_the_model_maps() {
    let card: serde_json::Value = serde_json::from_str(&Model::open(darcy()).unwrap().card()).unwrap();
    assert_eq!(card["grid"], serde_json::json!({ "kind": "plane", "rows": SIDE, "columns": SIDE }));
    assert_eq!((&card["name"], &card["problem"], &card["model"]), (&"darcy".into(), &"darcy".into(), &"lamo".into()));
    let only = |key: &str| card[key].as_array().is_some_and(|fields| fields.len() == 1 && fields[0]["channels"] == 1);
    assert!(only("inputs") && only("outputs") && card["snapshots"].is_null(), "{card}");
    assert!(card["trained_on"].as_str().unwrap().starts_with("Trained for "), "{card}");
}

#[test]
fn the_solver_gives_the_pressure_of_a_uniform_square_and_half_of_it_in_twice_the_permeability() {
    // −a Δu = 1 on the unit square: u = 0.0736713533 / a in the middle (Timoshenko and Goodier, torsion of a square bar).
    let mut model = Model::open(darcy()).unwrap();
    for permeability in [3.0, 6.0] {
        let answer = model.solve(npy(&[CELLS, CELLS], vec![permeability; CELLS * CELLS])).unwrap();
        let found = ArrayFile::in_memory("answer", answer).unwrap();
        assert_eq!(found.describe(None).unwrap().shape, [SIDE, SIDE]);
        let middle = found.read(None).unwrap().values.into_f32()[SIDE * SIDE / 2];
        let exact = 0.073_671_35 / permeability;
        // Second order: (π / 420)² / 12 ≈ 5e-6 of the first wave, which is nearly all of it.
        assert!((middle - exact).abs() < 1e-5 * exact, "{middle} {exact}");
    }
}

#[test]
fn the_solver_refuses_other_sizes_and_permeabilities_that_are_not_positive() {
    let mut model = Model::open(darcy()).unwrap();
    let cells = |value: f32| npy(&[CELLS, CELLS], vec![value; CELLS * CELLS]);
    for (bytes, said) in [
        (npy(&[SIDE, SIDE], vec![3.0; SIDE * SIDE]), "421 x 421"),
        (cells(0.0), "above 0"),
        (cells(f32::NAN), "above 0"),
    ] {
        let told = model.solve(bytes).err().unwrap().to_string();
        assert!(told.contains(said) && told.starts_with("the inputs"), "{told}");
    }
}

#[test]
fn bytes_that_are_no_model_are_refused_in_a_sentence() {
    let mut damaged = darcy();
    let middle = damaged.len() / 2;
    damaged[middle] ^= 1;
    for bytes in [Vec::new(), b"<!doctype html>".to_vec(), darcy()[..100_000].to_vec(), damaged] {
        let told = Model::open(bytes).err().unwrap().to_string();
        assert!(told.starts_with("the model"), "{told}");
    }
}

#[test]
fn inputs_that_the_model_cannot_take_are_refused_in_a_sentence_and_the_model_lives() {
    let mut model = Model::open(darcy()).unwrap();
    let refused = [Vec::new(), b"no array".to_vec(), npy(&[7], vec![1.0; 7]), npy(&[0, SIDE, SIDE], Vec::new())];
    for bytes in refused {
        let told = model.predict(bytes).err().unwrap().to_string();
        assert!(told.contains("the inputs") || told.contains("array"), "{told}");
    }
    assert!(model.predict(npy(&[SIDE, SIDE], permeabilities(1, SIDE))).is_ok());
}
