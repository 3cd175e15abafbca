//! Lists of mesh files of several times are time series; flat meshes have distances to curves; a folder means its mesh files.

use crate::support::Folder;
use lamo::data::dataset::{Dataset, Rule};
use lamo::data::formats;
use lamo::data::import::{ArrayName, MeshCases, Own, Sizes, Windows, points_of_files};
use lamo::data::mesh::{self, DataArray, Mesh, Numbers, Options, Shape, UNTURNED};
use lamo::inference::Source;
use lamo::workflow::{PredictRequest, Session, TrainRequest, predict_meshes, train};
use lamo_geometry::Grid;
use lamo_tensor::Device;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// What is known at x and y at a time of a case.
fn value(place: &[f64], time: usize, case: usize) -> f64 {
    (place[0] - 0.25 * time as f64).sin() + 0.5 * place[1] + case as f64
}

/// Squares in the plane z = 0 with `p` at the points.
fn plane(width: usize, time: usize, case: usize) -> Mesh {
    let (dimensions, origin) = ([width, 3, 1], [0.0; 3]);
    let image = Shape::Image { dimensions, origin, spacing: [0.5; 3], direction: UNTURNED };
    let (positions, cells) = (image.positions().unwrap(), image.cells().unwrap().into_owned());
    let values = positions.chunks(3).map(|place| value(place, time, case)).collect();
    let mut mesh = Mesh::new(Shape::Unstructured { points: Numbers::F64(positions), cells });
    mesh.point_data.push(DataArray::new("p", 1, values));
    mesh
}

/// A pvd file with a mesh of `width` points for each time.
fn list(folder: &Folder, case: usize, widths: &[usize]) -> PathBuf {
    for (time, &width) in widths.iter().enumerate() {
        let path = folder.at(&format!("case_{case}_{time}.vtu"));
        mesh::write(&path, &plane(width, time, case), &Options::default()).unwrap();
    }
    list_of(folder, case, widths.len())
}

/// A pvd file of meshes that are there; the list begins with the last time.
fn list_of(folder: &Folder, case: usize, times: usize) -> PathBuf {
    let mut text = "<VTKFile type=\"Collection\" version=\"0.1\"><Collection>\n".to_owned();
    for time in (0..times).rev() {
        text += &format!("<DataSet timestep=\"{}\" file=\"case_{case}_{time}.vtu\"/>\n", 0.25 * time as f64);
    }
    let path = folder.at(&format!("case_{case}.pvd"));
    fs::write(&path, text + "</Collection></VTKFile>\n").unwrap();
    path
}

fn imported(files: &[PathBuf], windows: Option<Windows>, target: &Path) -> Dataset {
    let cases = MeshCases { files: files.to_vec(), outputs: vec!["p".into()], ..MeshCases::default() };
    let (fields, _) = cases.fields().unwrap();
    let sizes = points_of_files(&fields).unwrap();
    let own = Own {
        name: "flow".into(),
        grid: Grid::Cloud { points: sizes.iter().copied().max().unwrap() },
        ragged: sizes,
        stride: 1,
        split: windows.is_none().then_some(Rule::Ends { train: files.len() - 1, test: 1 }),
        fields,
        times: Some(ArrayName { path: files[0].clone(), variable: Some("times".into()) }),
        windows,
        sizes: Sizes::default(),
    };
    own.import().unwrap().write(target, &|_| ControlFlow::Continue(())).unwrap();
    Dataset::open(target).unwrap()
}

/// `[times, points]` of a case.
fn expected(width: usize, times: std::ops::Range<usize>, case: usize) -> Vec<f32> {
    let places = plane(width, 0, 0).shape.positions().unwrap();
    times
        .flat_map(|time| places.chunks(3).map(move |place| value(place, time, case) as f32).collect::<Vec<_>>())
        .collect()
}

#[test]
fn a_list_of_several_times_is_a_time_series_in_the_order_of_its_times() {
    let folder = Folder::new("mesh-series");
    let widths = [4, 5, 6];
    let files: Vec<PathBuf> = (0..3).map(|case| list(&folder, case, &[widths[case]; 6])).collect();
    let times = formats::read(&files[0], Some("times")).unwrap();
    assert_eq!(times.values.into_f64(), [0.0, 0.25, 0.5, 0.75, 1.0, 1.25]);
    let names: Vec<_> = (0..6).map(|time| format!("{{\"name\": \"case_2_{time}.vtu\", \"time\": {time}}}")).collect();
    let json = format!("{{ \"file-series-version\": \"1.0\", \"files\": [{}] }}", names.join(", "));
    fs::write(folder.at("case.vtu.series"), json).unwrap();
    let [one, other] = [&folder.at("case.vtu.series"), &files[2]].map(|file| formats::read(file, Some("p")).unwrap());
    assert_eq!(one, other, "a series of ParaView is the list of the same files");
    let whole = imported(&files, None, &folder.at("whole"));
    let cut = imported(&files, Some(Windows { window: 2, horizon: 2, step: 1 }), &folder.at("cut"));
    assert_eq!((whole.manifest().samples, cut.manifest().samples), (3, 9));
    assert_eq!(whole.manifest().times, [0.0, 0.25, 0.5, 0.75, 1.0, 1.25]);
    for (case, width) in widths.into_iter().enumerate() {
        assert_eq!(cut.triangles_of(3 * case + 2).unwrap(), whole.triangles_of(case).unwrap());
        assert_eq!(whole.triangles_of(case).unwrap().len(), 4 * (width - 1));
        assert_eq!(whole.gather("p", &[case]).unwrap(), expected(width, 0..6, case));
        for window in 0..3 {
            let values = cut.gather("p", &[3 * case + window]).unwrap();
            assert_eq!(values, expected(width, window..window + 4, case), "case {case}, window {window}");
        }
    }
    let sources: Vec<_> = whole.manifest().sources.iter().map(|source| source.file.as_str()).collect();
    assert!(sources.contains(&"case_1_3.vtu"), "{sources:?}");
}

#[test]
fn times_with_other_points_and_lists_beside_single_files_are_refused() {
    let folder = Folder::new("mesh-series-refused");
    let uneven = list(&folder, 0, &[4, 4, 5]);
    let told = formats::read(&uneven, Some("p")).unwrap_err().to_string();
    assert!(told.contains("time number 2: expected 12 numbers of `p` at each time, found 15"), "{told}");
    let moved = list(&folder, 2, &[4, 4]);
    let shape = plane(4, 1, 2).shape;
    let (mut positions, cells) = (shape.positions().unwrap(), shape.cells().unwrap().into_owned());
    positions[0] += 0.125;
    let mut mesh = Mesh { shape: Shape::Unstructured { points: Numbers::F64(positions), cells }, ..plane(4, 1, 2) };
    mesh::write(&folder.at("case_2_1.vtu"), &mesh, &Options::default()).unwrap();
    let told = formats::read(&moved, Some("p")).unwrap_err().to_string();
    assert!(told.contains("time number 1: expected the points and cells of the first time"), "{told}");
    mesh.shape = shape;
    mesh::write(&folder.at("case_2_1.vtu"), &mesh, &Options::default()).unwrap();
    assert!(formats::read(&moved, Some("p")).is_ok());
    let even = list(&folder, 1, &[4, 4]);
    let files = vec![even, folder.at("case_1_0.vtu")];
    let told = MeshCases { files, outputs: vec!["p".into()], ..MeshCases::default() }.fields().unwrap_err().to_string();
    assert!(told.contains("expected a list of several times, as the first file, found a file of one time"), "{told}");
}

#[test]
fn series_with_other_steps_and_numbers_that_change_in_time_are_refused() {
    let folder = Folder::new("mesh-series-steps");
    let files: Vec<PathBuf> = (0..2).map(|case| list(&folder, case, &[4; 4])).collect();
    let cases = |inputs: &[&str], files: &[PathBuf]| MeshCases {
        files: files.to_vec(),
        inputs: inputs.iter().map(ToString::to_string).collect(),
        outputs: vec!["p".into()],
        ..MeshCases::default()
    };
    let longer = list(&folder, 2, &[4; 6]);
    cases(&[], &[files[0].clone(), longer]).fields().unwrap();
    let text = fs::read_to_string(&files[1]).unwrap();
    let late = text.replace("\"0\"", "\"7\"").replace("\"0.25\"", "\"7.25\"").replace("\"0.5\"", "\"7.5\"");
    fs::write(&files[1], late.replace("\"0.75\"", "\"7.75\"")).unwrap();
    cases(&[], &files).fields().unwrap(); // a series may begin at any time
    fs::write(&files[1], text.replace("\"0.25\"", "\"0.4\"")).unwrap();
    let told = cases(&[], &files).fields().unwrap_err().to_string();
    assert!(
        told.contains("case_1.pvd") && told.contains("time number 1: expected 0.25 after the first time"),
        "{told}"
    );
    assert!(told.contains("found 0.4"), "{told}");

    for (name, numbers) in [("Re", [100.0; 3]), ("TimeValue", [0.0, 0.25, 0.5])] {
        for (time, number) in numbers.into_iter().enumerate() {
            let mut mesh = plane(4, time, 3);
            mesh.field_data.push(DataArray::new(name, 1, vec![number]));
            mesh::write(&folder.at(&format!("case_3_{time}.vtu")), &mesh, &Options::default()).unwrap();
        }
        let whole = list_of(&folder, 3, 3);
        let read = formats::read(&whole, Some(&format!("field/{name}")));
        match name {
            "Re" => assert_eq!(read.unwrap().values.into_f64(), [100.0]),
            _ => {
                let told = read.unwrap_err().to_string();
                assert!(
                    told.contains("time number 1: expected `field/TimeValue` as at the first time, [0.0]"),
                    "{told}"
                );
            }
        }
    }
}

#[test]
fn the_continuation_of_a_list_is_written_on_its_points_without_an_error() {
    let folder = Folder::new("mesh-series-predicted");
    let files: Vec<PathBuf> = (0..3).map(|case| list(&folder, case, &[4 + case; 6])).collect();
    imported(&files, Some(Windows { window: 2, horizon: 2, step: 1 }), &folder.at("data"));
    let changes = [
        "model.settings={ width = 16, depth = 1, tokens = 4, slice_heads = 2, states = 4, mlp_ratio = 1, initial = \"fan-in\" }",
        "train.epochs=1",
        "train.batch=2",
    ];
    let asked = TrainRequest {
        changes: changes.map(str::to_owned).to_vec(),
        out: Some(folder.at("run")),
        ..TrainRequest::new(folder.at("data").to_str().unwrap())
    };
    let request = PredictRequest {
        model: train(&asked, &Session::default()).unwrap().folder,
        inputs: vec![Source::parse(files[1].to_str().unwrap())],
        output: folder.at("out.vtu"),
        snapshots: None,
        symmetries: false,
        memory: None,
        device: Device::Cpu,
    };
    predict_meshes(&request, &MeshCases::default()).unwrap();
    let mesh = mesh::read(&folder.at("out.vtu")).unwrap();
    let names: Vec<_> = mesh.point_data.iter().map(|array| array.name.as_str()).collect();
    assert_eq!(names, ["p_predicted_0", "p_predicted_1"]);
    assert_eq!((mesh.point_count(), mesh.cell_count()), (15, 8));
}

#[test]
fn points_of_a_flat_mesh_have_a_signed_distance_to_an_outline() {
    let folder = Folder::new("mesh-outline");
    let path = folder.at("plane.vtu");
    mesh::write(&path, &plane(5, 0, 0), &Options::default()).unwrap(); // x from 0 to 2, y from 0 to 1
    fs::write(folder.at("box.dat"), "A BOX\n 1.5 0.25\n 1.5 2.0\n 0.25 2.0\n 0.25 0.25\n").unwrap();
    let name = format!("sdf={}", folder.at("box.dat").display());
    let found = formats::read(&path, Some(&name)).unwrap().values.into_f64();
    let places = plane(5, 0, 0).shape.positions().unwrap();
    for (place, found) in places.chunks(3).zip(found) {
        let [x, y] = [(place[0] - 0.875).abs() - 0.625, (place[1] - 1.125).abs() - 0.875];
        let outside = x.max(0.0).hypot(y.max(0.0));
        let exact = if outside > 0.0 { outside } else { x.max(y) };
        assert!((found - exact).abs() < 1e-15, "{place:?}: {found} and {exact}");
    }
}

#[test]
fn a_folder_means_its_mesh_files_of_one_kind() {
    let folder = Folder::new("mesh-folder");
    for number in [10, 2] {
        mesh::write(&folder.at(&format!("case_{number}.vtu")), &plane(4, 0, 0), &Options::default()).unwrap();
    }
    fs::write(folder.at("notes.txt"), "notes").unwrap();
    let expand = || MeshCases::expand(&[folder.path().to_owned()]);
    assert_eq!(expand().unwrap(), [folder.at("case_2.vtu"), folder.at("case_10.vtu")]);
    fs::write(folder.at("body.stl"), "solid\nendsolid\n").unwrap();
    let told = expand().unwrap_err().to_string();
    assert!(told.contains("expected mesh files of one kind in this folder, found stl, vtu"), "{told}");
}
