//! `lamo explain`: a page that needs no other file, arrays and numbers that agree, and a sentence for what cannot be explained.

use crate::evaluate::{train, trained};
use crate::support::{Folder, contains};
use serde_json::Value;

/// The shape and the values of an npy file of f32.
fn npy(folder: &Folder, name: &str) -> (Vec<usize>, Vec<f32>) {
    let bytes = folder.read(name);
    let head = usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    let text = String::from_utf8(bytes[10..10 + head].to_vec()).unwrap();
    let axes = text.split_once("'shape': (").unwrap().1.split_once(')').unwrap().0;
    let shape = axes.split(',').filter_map(|axis| axis.trim().parse().ok()).collect();
    let values = bytes[10 + head..].chunks_exact(4).map(|value| f32::from_le_bytes(value.try_into().unwrap()));
    (shape, values.collect())
}

#[test]
fn the_page_needs_no_network_and_the_arrays_are_what_they_say() {
    let folder = trained("explain");
    contains(&folder.ok(&["explain", "lamo", "--sample=2"]), &["test sample 2 (number 8", "layer 1", "explain.html"]);
    let page = folder.text("lamo/explain/explain.html");
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    for foreign in ["src=\"http", "href=\"http", "url(http", "<script", ">NaN", "NaN "] {
        assert!(!page.contains(foreign), "{foreign}");
    }
    assert_eq!(page.matches("<section").count(), page.matches("</section>").count());
    contains(&page, &["Hidden matrices by layer", "What one patch sees", "Error by wavelength", "influence by region"]);
    let told: Value = folder.ok_json(&["explain", "lamo", "--sample=2", "--json", "--out=elsewhere", "--point=7"]);
    assert_eq!((&told["influence"]["point"], &told["number"]), (&7.into(), &8.into()));
    for file in told["arrays"].as_array().unwrap() {
        let (shape, values) = npy(&folder, &format!("elsewhere/{}", file["file"].as_str().unwrap()));
        let stated: Vec<usize> =
            file["shape"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap() as usize).collect();
        assert_eq!((shape.iter().product::<usize>(), &shape), (values.len(), &stated), "{file}");
        assert!(values.iter().all(|value| value.is_finite()), "{file}");
    }
    for (number, layer) in told["layers"].as_array().unwrap().iter().enumerate() {
        assert!(layer["residual"].as_f64().unwrap() < 1e-5, "{layer}");
        let ([side, _], shares) = npy_square(&folder, &format!("elsewhere/layer-{}-shares.npy", number + 1));
        for row in shares.chunks_exact(side) {
            assert!((row.iter().sum::<f32>() - 1.0).abs() < 1e-4, "the shares of a row sum to 1");
        }
    }
    let shares = |key: &str| -> f64 {
        let regions = told["regions"].as_array().unwrap();
        regions.iter().map(|region| region[key].as_f64().unwrap()).sum()
    };
    for key in ["share_of_error", "share_of_influence"] {
        assert!((shares(key) - 1.0).abs() < 1e-6, "{key} sums to {}", shares(key));
    }
}

fn npy_square(folder: &Folder, name: &str) -> ([usize; 2], Vec<f32>) {
    let (shape, values) = npy(folder, name);
    (shape.try_into().unwrap(), values)
}

#[test]
fn slices_attention_and_models_without_tokens_are_explained() {
    let folder = Folder::new("explain-models");
    train(&folder, "transolver");
    train(&folder, "resnet");
    contains(&folder.ok(&["explain", "transolver"]), &["attention of", "cosine of tokens"]);
    contains(&folder.text("transolver/explain/explain.html"), &["Where the slices live", "heaviest slices of layer"]);
    let ([_, slices, points], weights) = {
        let (shape, values) = npy(&folder, "transolver/explain/layer-1-slices.npy");
        (<[usize; 3]>::try_from(shape).unwrap(), values)
    };
    for point in 0..points {
        let sum: f32 = (0..slices).map(|slice| weights[slice * points + point]).sum();
        assert!((sum - 1.0).abs() < 1e-4, "the slices share point {point}: {sum}");
    }
    contains(&folder.ok(&["explain", "resnet"]), &["does not mix tokens", "influence  on the output"]);
    contains(&folder.text("resnet/explain/explain.html"), &["does not mix tokens", "Error by wavelength"]);
}

#[test]
fn what_cannot_be_explained_is_a_sentence() {
    let folder = trained("explain-refused");
    for (arguments, sentence) in [
        (&["explain", "nowhere"][..], "nowhere: expected a run folder or a checkpoint file, found nothing"),
        (&["explain", "lamo", "--sample=99"], "--sample: expected one of the test samples 0 to 4, found 99"),
        (&["explain", "lamo", "--point=144"], "--point: expected a number from 0 to 143, found 144"),
        (&["explain", "lamo", "--channel=1"], "--channel: expected a number from 0 to 0, found 1"),
        (&["explain", "lamo", "--out=lamo"], "--out lamo: expected a folder of its own"),
        (&["explain", "pipe"], "no pretrained model of pipe"),
    ] {
        contains(&folder.fails(arguments), &[sentence]);
    }
    assert!(!folder.at("explain").exists() && !folder.at("lamo/explain").exists(), "nothing is written");
}
