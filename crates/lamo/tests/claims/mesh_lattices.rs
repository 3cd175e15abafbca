//! Images and structured grids of one size are lines, planes and volumes; those of different sizes are clouds.

use crate::support::Folder;
use lamo::data::dataset::{Dataset, Rule};
use lamo::data::formats::{self, Named};
use lamo::data::import::{MeshCases, Own, Recorded, Sizes, points_of_files};
use lamo::data::mesh::{self, DataArray, Mesh, Numbers, Options, Shape, UNTURNED};
use lamo::inference::Source;
use lamo::task::{Field, Task, Time};
use lamo::workflow::{PredictRequest, Session, TrainRequest, predict_meshes, predicted_mesh, train};
use lamo_geometry::Grid;
use lamo_tensor::Device;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// What is known at a place: another number everywhere.
fn value(place: &[f64], case: usize) -> f64 {
    place[0] + 10.0 * place[1] + 100.0 * place[2] + case as f64
}

/// A lattice with `T` and `U` at its points, `q` at its cells.
fn lattice(dimensions: [usize; 3], case: usize, curved: bool) -> Mesh {
    let image = Shape::Image { dimensions, origin: [1.0, 0.0, 0.0], spacing: [1.0, 0.5, 2.0], direction: UNTURNED };
    let positions = image.positions().unwrap();
    let cells = image.cells().unwrap().len();
    let moved = positions.chunks(3).flat_map(|place| [place[0], place[1] + 0.1 * case as f64 * place[0], place[2]]);
    let shape = match curved {
        true => Shape::Structured { dimensions, points: Numbers::F64(moved.collect()) },
        false => image,
    };
    let mut mesh = Mesh::new(shape);
    let temperature: Vec<f64> = positions.chunks(3).map(|place| value(place, case)).collect();
    mesh.point_data.push(DataArray::new("U", 2, temperature.iter().flat_map(|value| [*value, -value]).collect()));
    mesh.point_data.push(DataArray::new("T", 1, temperature));
    mesh.cell_data.push(DataArray::new("q", 1, (0..cells).map(|cell| (cell + case) as f64).collect()));
    mesh
}

fn cases(folder: &Folder, sizes: &[[usize; 3]], ending: &str) -> MeshCases {
    let file = |(case, size): (usize, &[usize; 3])| -> PathBuf {
        let path = folder.at(&format!("case_{case}.{ending}"));
        mesh::write(&path, &lattice(*size, case, ending == "vts"), &Options::default()).unwrap();
        path
    };
    MeshCases {
        files: sizes.iter().enumerate().map(file).collect(),
        inputs: vec!["U".into()],
        outputs: vec!["T".into()],
        lattices: true,
        ..MeshCases::default()
    }
}

fn imported(cases: &MeshCases, target: &Path) -> Dataset {
    let (fields, grid) = cases.fields().unwrap();
    let sizes = points_of_files(&fields).unwrap();
    let own = Own {
        name: "lattices".into(),
        grid: grid.unwrap_or_else(|| Grid::Cloud { points: sizes.iter().copied().max().unwrap() }),
        ragged: if grid.is_some() { Vec::new() } else { sizes },
        stride: 1,
        split: Some(Rule::Ends { train: cases.files.len() - 2, test: 2 }),
        fields,
        times: None,
        windows: None,
        sizes: Sizes::default(),
    };
    own.import().unwrap().write(target, &|_| ControlFlow::Continue(())).unwrap();
    Dataset::open(target).unwrap()
}

/// Compares each value with its position, which is moved in curved lattices.
fn check(set: &Dataset, case: usize, space: usize, shear: f64) {
    let [positions, values, vectors] = ["positions", "t", "u"].map(|name| set.gather(name, &[case]).unwrap());
    let scale = |point: usize, axis: usize| f64::from(positions[point * space + axis]);
    for (point, &found) in values.iter().enumerate() {
        let mut place = [1.0, 0.0, 0.0];
        (0..space).for_each(|axis| place[axis] = scale(point, axis));
        place[1] -= shear * case as f64 * place[0];
        assert!((f64::from(found) - value(&place, case)).abs() < 1e-4, "case {case}, point {point}: {found}");
        assert_eq!(vectors[2 * point..][..2], [found, -found]);
    }
}

#[test]
fn lattices_of_one_size_are_lines_planes_and_volumes_with_their_values_in_place() {
    let folder = Folder::new("lattices");
    let grids = [
        ([4, 3, 5], "vti", Grid::Volume { rows: 4, columns: 3, layers: 5 }),
        ([4, 3, 1], "vti", Grid::Plane { rows: 3, columns: 4 }),
        ([6, 1, 1], "vti", Grid::Line { points: 6 }),
        ([4, 3, 1], "vts", Grid::Plane { rows: 3, columns: 4 }),
    ];
    for (number, (size, ending, grid)) in grids.into_iter().enumerate() {
        let cases = cases(&folder, &[size; 4], ending);
        let set = imported(&cases, &folder.at(&format!("set_{number}")));
        assert_eq!(set.manifest().grid, grid);
        let common = set.manifest().fields[0].common;
        assert_eq!(common, ending == "vti", "the points of images are stored once");
        let shear = if ending == "vts" { 0.1 } else { 0.0 };
        let space = grid.shape().len();
        (0..4).for_each(|case| check(&set, case, space, shear));
        set.verify().unwrap();
    }
    let at_centres = MeshCases {
        at_centres: true,
        inputs: vec!["q".into()],
        outputs: vec!["T".into()],
        ..cases(&folder, &[[4, 3, 5]; 4], "vti")
    };
    let set = imported(&at_centres, &folder.at("centres"));
    assert_eq!(set.manifest().grid, Grid::Volume { rows: 3, columns: 2, layers: 4 });
    let found = set.gather("q", &[1]).unwrap();
    assert_eq!(found[..5], [1.0, 7.0, 13.0, 19.0, 4.0], "layers are the fastest axis, rows the slowest");
}

#[test]
fn lattices_of_different_sizes_and_those_that_are_asked_for_as_clouds_are_clouds() {
    let folder = Folder::new("lattice-clouds");
    let ragged = cases(&folder, &[[4, 3, 1], [5, 3, 1], [4, 3, 1], [3, 3, 1]], "vti");
    let set = imported(&ragged, &folder.at("ragged"));
    assert_eq!((set.manifest().grid, set.manifest().ragged.is_some()), (Grid::Cloud { points: 15 }, true));
    assert!(!set.triangles_of(0).unwrap().is_empty());
    let cloud = MeshCases { lattices: false, ..cases(&folder, &[[4, 3, 1]; 4], "vti") };
    assert_eq!(cloud.fields().unwrap().1, None);
}

#[test]
fn predictions_of_a_volume_are_written_on_the_lattice_in_the_order_of_the_file() {
    let folder = Folder::new("lattice-predict");
    let cases = cases(&folder, &[[4, 3, 5]; 6], "vti");
    let set = folder.at("set");
    imported(&cases, &set);
    let changes =
        ["model.settings={ width = 8, depth = 1, slice_heads = 2, tokens = 4 }", "train={ epochs = 1, batch = 2 }"];
    let asked = TrainRequest {
        model: Some("transolver".into()),
        changes: changes.map(str::to_owned).to_vec(),
        out: Some(folder.at("run")),
        ..TrainRequest::new(set.to_str().unwrap())
    };
    let run = train(&asked, &Session::default()).unwrap().folder;
    let request = |input: &Path, output: &str| PredictRequest {
        model: run.clone(),
        inputs: vec![Source::parse(input.to_str().unwrap())],
        output: folder.at(output),
        snapshots: None,
        symmetries: false,
        memory: None,
        device: Device::Cpu,
    };
    let found = predict_meshes(&request(&cases.files[5], "out.vti"), &cases).unwrap();
    assert_eq!(found.note_on_grid, None);
    predict_meshes(&request(&cases.files[5], "out.npz"), &cases).unwrap();
    let array = formats::read(folder.at("out.npz"), Some("t")).unwrap();
    assert_eq!(array.shape, [4, 3, 5]);
    let array = array.values.into_f64();
    let made = mesh::read(&folder.at("out.vti")).unwrap();
    let written = made.point_data.iter().find(|array| array.name == "T_predicted").unwrap();
    for (x, y, z) in (0..4).flat_map(|x| (0..3).flat_map(move |y| (0..5).map(move |z| (x, y, z)))) {
        assert_eq!(written.values.at((z * 3 + y) * 4 + x), array[(x * 3 + y) * 5 + z], "{x} {y} {z}");
    }
    // Another lattice is noted, and a mesh without one is refused.
    mesh::write(&folder.at("finer.vti"), &lattice([8, 6, 5], 0, false), &Options::default()).unwrap();
    let finer = predict_meshes(&request(&folder.at("finer.vti"), "finer_out.vti"), &cases).unwrap();
    let note = finer.note_on_grid.unwrap();
    assert!(
        note.contains("trained on a volume of 4 x 3 x 5 points and predicts on a volume of 8 x 6 x 5 points"),
        "{note}"
    );
    mesh::write(&folder.at("cells.vtu"), &lattice([4, 3, 5], 0, false), &Options::default()).unwrap();
    let told = predict_meshes(&request(&folder.at("cells.vtu"), "x.vtu"), &cases).unwrap_err().to_string();
    assert!(told.contains("cells.vtu: points: expected an image or a structured grid"), "{told}");
    let flat = folder.at("flat.vti");
    mesh::write(&flat, &lattice([4, 3, 1], 0, false), &Options::default()).unwrap();
    let told = predict_meshes(&request(&flat, "x.vti"), &cases).unwrap_err().to_string();
    assert!(told.contains("found a lattice with 2 axes"), "{told}");
}

#[test]
fn as_many_times_as_rows_and_columns_are_times() {
    let folder = Folder::new("lattice-times");
    let path = folder.at("case.vti");
    mesh::write(&path, &lattice([3, 3, 1], 0, false), &Options::default()).unwrap();
    let values: Vec<f32> = (0..27_u8).map(f32::from).collect();
    let series = |grid: Grid, shape: &[usize], path: &Path| {
        let mut task = Task::plain(grid, 2, 1, 1);
        task.outputs = vec![Field { snapshots: Some(5), ..Field::plain("u", 1) }];
        task.time = Time::RollOut { past: 2, snapshots: 3, clock: Vec::new() };
        let length = shape.iter().product();
        let array = Named { name: "u".into(), shape: shape.to_vec(), values: values[..length].to_vec() };
        let made = predicted_mesh(&task, path, &[array], (false, &Recorded::default())).unwrap();
        let new = made.point_data.into_iter().filter(|array| array.name.starts_with("u_predicted"));
        new.map(|array| (array.name, array.components, array.values.to_f64().unwrap())).collect::<Vec<_>>()
    };
    let expected = |points: usize| -> Vec<(String, usize, Vec<f64>)> {
        let snapshot = |number: usize| (0..points).map(|point| (number * points + point) as f64).collect();
        (0..3).map(|number| (format!("u_predicted_{number}"), 1, snapshot(number))).collect()
    };
    assert_eq!(series(Grid::Plane { rows: 3, columns: 3 }, &[3, 3, 3], &path), expected(9));
    // A line of three points has no lattice of several axes, and as many snapshots as points.
    let line = folder.at("line.vti");
    mesh::write(&line, &lattice([3, 1, 1], 0, false), &Options::default()).unwrap();
    assert_eq!(series(Grid::Cloud { points: 3 }, &[3, 3], &line), expected(3));
}
