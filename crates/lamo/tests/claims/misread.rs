//! Arrays that could be taken for something else: the import records what they are, or refuses them with a sentence.

use crate::support::{Folder, experiment, save};
use crate::trajectories::{LINE, cut, field, own, refusal, written};
use lamo::data::dataset::{Dataset, Role};
use lamo::data::formats;
use lamo::data::import::{ArrayName, Own};
use lamo::experiment::ExperimentData;
use lamo::task::Spread;
use lamo_geometry::Grid;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

/// An npy file whose n-th number is n.
fn counting(folder: &Folder, name: &str, shape: &[usize]) -> Vec<Vec<ArrayName>> {
    vec![vec![save(folder, name, shape, (0..shape.iter().product()).map(|place: usize| place as f64))]]
}

#[test]
fn a_series_of_as_many_snapshots_as_points_stays_a_series() {
    let folder = Folder::new("as-many");
    let plane = Grid::Plane { rows: 3, columns: 3 };
    let volume = Grid::Volume { rows: 2, columns: 2, layers: 2 };
    for (number, (grid, axes, shape)) in [
        (LINE, "ntp", &[5, 4, 4][..]),
        (LINE, "", &[5, 4, 4, 1]),
        (plane, "ntxy", &[5, 3, 3, 3]),
        (volume, "ntxyz", &[5, 2, 2, 2, 2]),
    ]
    .into_iter()
    .enumerate()
    {
        let fields = vec![field("u", Role::Output, axes, counting(&folder, &format!("{number}.npy"), shape))];
        let dataset = written(&own(grid, fields), &folder.at(&format!("set{number}")));
        let found = dataset.on_grid("u").unwrap();
        assert_eq!((found.spread, found.snapshots, found.width()), (Spread::Points, Some(shape[1]), 1), "{shape:?}");
        assert_eq!(Dataset::open(&folder.at(&format!("set{number}"))).unwrap().on_grid("u").unwrap(), found);
    }
    // Windows of W + H snapshots on as many points, up to the samples of an experiment.
    let fields = vec![field("u", Role::Output, "tp", counting(&folder, "windows.npy", &[20, 4]))];
    let dataset = written(&cut(3, 1, 1, fields), &folder.at("windows"));
    let read = ExperimentData::read(&experiment(&["data={ train = 0, test = 0 }"]), &dataset).unwrap();
    assert_eq!((read.outputs[0].snapshots, read.outputs[0].width()), (Some(4), 1));
    // As many channels as points need no letters.
    let fields = vec![field("u", Role::Output, "npc", counting(&folder, "channels.npy", &[5, 4, 4]))];
    let dataset = written(&own(LINE, fields), &folder.at("channels"));
    assert_eq!(dataset.field("u").unwrap().axes, None);
    assert_eq!(dataset.on_grid("u").unwrap().channels, Some(4));
}

#[test]
fn as_many_numbers_for_each_sample_as_points_or_rows_stay_numbers() {
    let folder = Folder::new("as-many-numbers");
    let plane = Grid::Plane { rows: 3, columns: 2 };
    for (number, (grid, count)) in [(LINE, 4), (plane, 3), (plane, 6)].into_iter().enumerate() {
        let shape: Vec<usize> = [5].into_iter().chain(grid.shape()).collect();
        let fields = vec![
            field("a", Role::Input, "nc", counting(&folder, "a.npy", &[5, count])),
            field("u", Role::Output, "", counting(&folder, "u.npy", &shape)),
        ];
        let dataset = written(&own(grid, fields), &folder.at(&format!("set{number}")));
        let found = dataset.on_grid("a").unwrap();
        assert_eq!((found.spread, found.channels), (Spread::Sample, Some(count)), "{grid}");
    }
}

fn arrays(name: &str) -> PathBuf {
    Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("../lamo/tests/arrays").join(name)
}

#[test]
fn packed_numbers_of_netcdf_are_unpacked_and_missing_ones_are_not_numbers() {
    let file = arrays("hdf5/netcdf.h5");
    let read = |name: &str| formats::read(&file, Some(name)).unwrap().values.into_f64();
    let close = |found: &[f64], expected: &[f64]| {
        let pairs = || found.iter().zip(expected);
        assert!(found.len() == expected.len(), "{found:?}");
        let equal = |(one, other): (&f64, &f64)| (one - other).abs() < 1e-12 || one.is_nan() && other.is_nan();
        assert!(pairs().all(equal), "{found:?}");
    };
    close(&read("t"), &[273.15, 274.15, 272.15, 275.15, f64::NAN, 273.22]);
    close(&read("h"), &[1.0, f64::NAN, 2.5, f64::NAN, 3.0, 4.0]);
    close(&read("scalar"), &[6.0]);
    let signed = formats::read(&file, Some("bytes")).unwrap_err().to_string();
    assert!(signed.contains("_Unsigned"), "{signed}");
    // A missing value ends an import with its place.
    let folder = Folder::new("missing");
    let name = ArrayName { path: file.clone(), variable: Some("h".into()) };
    let own = own(Grid::Line { points: 3 }, vec![field("h", Role::Output, "np", vec![vec![name]])]);
    let told = own.import().unwrap().write(&folder.at("set"), &|_| ControlFlow::Continue(())).unwrap_err().to_string();
    assert!(told.contains("sample 0 has NaN at [1] of `h`"), "{told}");
}

#[test]
fn series_of_other_lengths_in_another_field_are_refused_because_their_windows_do_not_belong_together() {
    let folder = Folder::new("lengths");
    let series = |name: &str, snapshots: usize| counting(&folder, name, &[snapshots, 4]);
    let both = |forcing: Vec<Vec<ArrayName>>, flow: Vec<Vec<ArrayName>>| {
        cut(3, 1, 5, vec![field("f", Role::Input, "tp", forcing), field("u", Role::Output, "tp", flow)])
    };
    // 21 and 20 snapshots have 4 windows each, one step apart.
    let told = refusal(&both(series("f.npy", 21), series("u.npy", 20)));
    assert!(
        told.contains("u.npy: expected 21 snapshots in series 0, as ") && told.contains("found 20 snapshots"),
        "{told}"
    );
    let two = |name: &str, lengths: [usize; 2]| {
        let files = lengths.iter().enumerate();
        files.flat_map(|(place, length)| series(&format!("{name}{place}.npy"), *length)).collect::<Vec<_>>()
    };
    let told = refusal(&both(two("f", [12, 14]), two("u", [14, 12])));
    assert!(told.contains("expected 12 snapshots in series 0"), "{told}");
    both(two("f", [12, 14]), two("u", [12, 14])).import().unwrap();
    // Components side by side.
    let side = vec![[series("a.npy", 21), series("b.npy", 20)].concat().concat()];
    let told = refusal(&cut(3, 1, 5, vec![field("u", Role::Output, "tp", side)]));
    assert!(told.contains("b.npy: expected 21 snapshots, as ") && told.contains("found 20"), "{told}");
}

#[test]
fn the_header_of_a_table_that_counts_its_columns_is_no_sample() {
    let folder = Folder::new("counted-columns");
    std::fs::write(folder.at("u.csv"), "0,1,2,3\n0.5,1.5,2.5,3.5\n4.5,5.5,6.5,7.5\n").unwrap();
    let array = formats::read(folder.at("u.csv"), None).unwrap();
    assert_eq!((array.shape, array.values.into_f64()[0]), (vec![2, 4], 0.5));
    assert_eq!(formats::read(folder.at("u.csv"), Some("3")).unwrap().values.into_f64(), [3.5, 7.5]);
    // One table has decimal points or decimal commas.
    std::fs::write(folder.at("both.csv"), "a;b\n1,234;2\n2;2.5\n").unwrap();
    let told = formats::read(folder.at("both.csv"), Some("a")).unwrap_err().to_string();
    assert!(
        told.contains("expected decimal points, or decimal commas, found `1,234` in line 2 and `2.5` in line 3"),
        "{told}"
    );
}

#[test]
fn a_field_with_the_name_of_another_file_of_a_data_set_is_refused() {
    let folder = Folder::new("taken");
    for name in ["offsets", "triangles", "triangle-offsets", "triangle-corners"] {
        let told = refusal(&own(LINE, vec![field(name, Role::Output, "np", counting(&folder, "u.npy", &[5, 4]))]));
        assert!(told.contains("expected another name") && told.contains(&format!("found `{name}`")), "{told}");
    }
    own(LINE, vec![field("offset", Role::Output, "np", counting(&folder, "u.npy", &[5, 4]))]).import().unwrap();
}

#[test]
fn one_array_with_two_orders_of_its_axes_is_read_in_both() {
    let folder = Folder::new("two-orders");
    let plane = Grid::Plane { rows: 3, columns: 3 };
    let array = counting(&folder, "u.npy", &[5, 3, 3]);
    let fields = vec![field("a", Role::Input, "nyx", array.clone()), field("u", Role::Output, "nxy", array)];
    let dataset = written(&own(plane, fields), &folder.at("set"));
    assert_eq!(dataset.read("u", 0..1).unwrap(), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
    assert_eq!(dataset.read("a", 0..1).unwrap(), [0.0, 3.0, 6.0, 1.0, 4.0, 7.0, 2.0, 5.0, 8.0]);
}

#[test]
fn the_place_of_a_missing_number_is_that_in_its_own_sample() {
    let folder = Folder::new("own-place");
    let (mut positions, mut series) = (Vec::new(), Vec::new());
    for (case, points) in [3, 2].into_iter().enumerate() {
        let places = (0..points).map(|place| place as f64);
        positions.push(vec![save(&folder, &format!("x{case}.npy"), &[points, 1], places)]);
        let values = (0..2 * points).map(|place| if case == 1 && place == 2 { f64::NAN } else { 1.0 });
        series.push(vec![save(&folder, &format!("u{case}.npy"), &[2, points], values)]);
    }
    let fields = vec![field("positions", Role::Position, "pc", positions), field("u", Role::Output, "tp", series)];
    let own = Own { ragged: vec![3, 2], ..own(Grid::Cloud { points: 3 }, fields) };
    let told = own.import().unwrap().write(&folder.at("set"), &|_| ControlFlow::Continue(())).unwrap_err().to_string();
    assert!(told.contains("u1.npy: sample 0 has NaN at [1, 0] of `u`"), "{told}");
}

#[test]
fn a_table_whose_first_name_begins_with_solid_is_a_table() {
    let folder = Folder::new("solid");
    std::fs::write(folder.at("alloy.csv"), "solid_fraction,u\n0.5,1\n0.25,2\n").unwrap();
    assert_eq!(formats::read(folder.at("alloy.csv"), Some("u")).unwrap().values.into_f64(), [1.0, 2.0]);
}

#[test]
fn fields_whose_digits_single_precision_loses_are_named_in_a_warning() {
    let folder = Folder::new("digits");
    let warnings = |name: &str, shape: &[usize], axes: &str, value: &dyn Fn(usize) -> f64| -> Vec<String> {
        let count: usize = shape.iter().product();
        let array = save(&folder, "u.npy", shape, (0..count).map(value));
        let own = own(LINE, vec![field("u", Role::Output, axes, vec![vec![array]])]);
        let said = Mutex::new(Vec::new());
        let warn = |text: &str| said.lock().unwrap().push(text.to_owned());
        own.import().unwrap().write_and_warn(&folder.at(name), &|_| ControlFlow::Continue(()), &warn).unwrap();
        said.into_inner().unwrap()
    };
    // 2⁻²⁴ · 101325 Pa = 0.006 Pa of a range of 0.03 Pa.
    let told = warnings("pressure", &[5, 4], "np", &|place| 101_325.0 + 0.01 * place as f64 % 0.04);
    assert!(
        told.len() == 1 && told[0].starts_with("field `u`: single precision rounds its values by up to"),
        "{told:?}"
    );
    assert!(told[0].contains("% of their range; subtract a constant"), "{told:?}");
    assert!(warnings("waves", &[5, 4], "np", &|place| (0.7 * place as f64).sin()).is_empty());
    assert!(warnings("offset", &[5, 4], "np", &|place| 100.0 + (0.7 * place as f64).sin()).is_empty());
    // Each channel has its own range and its own rounding.
    let channels =
        |place: usize| if place.is_multiple_of(2) { 1e5 + 1e3 * place as f64 / 3.0 } else { 1e-6 * place as f64 };
    assert!(warnings("channels", &[5, 4, 2], "npc", &channels).is_empty());
    let channels =
        |place: usize| if place.is_multiple_of(2) { place as f64 } else { 5_432_876.51 + 0.1 * place as f64 };
    assert_eq!(warnings("utm", &[5, 4, 2], "npc", &channels).len(), 1);
    // The range of a number for each sample is that of all samples.
    assert_eq!(warnings("numbers", &[5], "n", &|place| 5e6 + 1.1 * place as f64).len(), 1);
    let told = warnings("equal", &[5], "n", &|place| 5e6 + 0.01 * place as f64);
    assert!(told.len() == 1 && told[0].contains("rounds its values to one number"), "{told:?}");
    let uniform = |place: usize| 0.1 + 0.1 * (place / 4) as f64; // equal values in each sample
    assert!(warnings("uniform", &[5, 4], "np", &uniform).is_empty());
    assert!(warnings("constant", &[5], "n", &|_| 0.1).is_empty());
    assert!(warnings("plain", &[5], "n", &|place| 0.1 * place as f64).is_empty());
}
