//! A drag for each sample: imported, trained on, reported as a number in its unit, predicted as one value per sample.

use crate::support::{Folder, TINY, contains, wave, wave_npy, write_npy};
use lamo::data::formats;

#[test]
fn a_number_for_each_sample_is_imported_trained_reported_and_predicted() {
    let folder = Folder::new("drag");
    wave_npy(&folder.at("a.npy"), &[12, 6, 5]);
    let drag = |sample: usize| wave().skip(30 * sample).take(30).sum::<f32>() / 10.0;
    write_npy(&folder.at("drag.npy"), &[12], (0..12).map(drag));
    let import = ["data", "import", "--input=a=a.npy", "--output=drag=drag.npy", "--unit=drag=N", "--grid=6x5"];
    let text = folder.ok(&[&import[..], &["--train=9", "--test=3", "--out=car"]].concat());
    contains(&text, &["drag: 12 samples, a number for each sample (axes n, found by the shape"]);
    contains(&folder.ok(&["data", "check", "car"]), &["drag"]);
    let text = folder.ok(&["train", "car", TINY, "--set=train.epochs=3", "--out=run"]);
    contains(&text, &["drag ", "MAE", " N"]);
    assert!(!text.contains("H1") && !text.contains("energy spectrum"), "{text}");
    let page = folder.text("run/report.html");
    contains(&page, &["<dt>drag (N)</dt>", "<small>predicted ", ", difference ", "learned to map a to drag"]);
    contains(&page, &["Numbers of whole samples have no wave numbers, no border and no H1 error."]);
    assert!(!page.contains("drag, truth") && page.contains("a, input"), "the drag is a number, not a picture");
    let text = folder.ok(&["predict", "run", "--input=a.npy", "--output=out.npy"]);
    contains(&text, &["drag [12] of 12 samples"]);
    let found = formats::read(folder.at("out.npy"), None).unwrap();
    assert_eq!(found.shape, [12]);
    folder.ok(&["evaluate", "--verify", "run/receipt.json"]);
}
