//! A folder of mesh files becomes a data set, is learned, and predictions are meshes with the original cells.

use crate::support::Folder;
use lamo::data::dataset::{Dataset, Outcome, Rule};
use lamo::data::formats;
use lamo::data::import::{MeshCases, Own, Recorded, Sizes, points_of_files};
use lamo::data::mesh::{self, DataArray, Mesh, Numbers, Options, Shape, UNTURNED};
use lamo::inference::Source;
use lamo::workflow::{PredictRequest, Session, TrainRequest, predict_meshes, train};
use lamo_geometry::Grid;
use lamo_tensor::Device;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// A flat mesh of squares with side 1: `p` at the points, `region` at the cells, which is 1 where x is greater than 1.
fn case(width: usize, height: usize, slope: f64) -> Mesh {
    let image = Shape::Image {
        dimensions: [width, height, 1],
        origin: [0.0, 0.0, 2.0],
        spacing: [1.0; 3],
        direction: UNTURNED,
    };
    let (positions, cells) = (image.positions().unwrap(), image.cells().unwrap().into_owned());
    let pressure = positions.chunks(3).map(|place| 1.0 + slope * place[0] + place[1]).collect();
    let region = (0..cells.len()).map(|cell| i32::from(cell % (width - 1) > 0)).collect();
    let mut mesh = Mesh::new(Shape::Unstructured { points: Numbers::F64(positions), cells });
    mesh.point_data.push(DataArray::new("Mean p", 1, pressure));
    mesh.cell_data.push(DataArray { name: "region".into(), components: 1, values: Numbers::I32(region) });
    mesh
}

const SIZES: [[usize; 2]; 8] = [[4, 4], [5, 4], [3, 3], [6, 5], [4, 3], [5, 5], [3, 4], [4, 5]];

fn slope(case: usize) -> f64 {
    0.1 * case as f64
}

/// Files of cases, and a table of numbers in another order.
fn cases(folder: &Folder, sizes: &[[usize; 2]], ending: &str) -> MeshCases {
    let mut table = String::new();
    let mut files = Vec::new();
    for (number, &[width, height]) in sizes.iter().enumerate() {
        let path = folder.at(&format!("case_{number}.{ending}"));
        mesh::write(&path, &case(width, height, slope(number)), &Options::default()).unwrap();
        table = format!("case_{number}.{ending},{},7\n{table}", slope(number));
        files.push(path);
    }
    std::fs::write(folder.at("cases.csv"), format!("file,Slope,other\n{table}")).unwrap();
    MeshCases {
        files,
        inputs: vec!["region".into()],
        outputs: vec!["Mean p".into()],
        derived: vec!["distance".into()],
        scalars: Some(folder.at("cases.csv")),
        at_centres: false,
        lattices: false,
    }
}

fn imported(cases: &MeshCases, target: &Path) -> Dataset {
    let (fields, _) = cases.fields().unwrap();
    let sizes = points_of_files(&fields).unwrap();
    let points = sizes.iter().copied().max().unwrap();
    let ragged = if sizes.iter().all(|&size| size == points) { Vec::new() } else { sizes };
    let own = Own {
        name: "flow".into(),
        grid: Grid::Cloud { points },
        ragged,
        stride: 1,
        split: Some(Rule::Ends { train: cases.files.len() - 2, test: 2 }),
        fields,
        times: None,
        windows: None,
        sizes: Sizes::default(),
    };
    let outcome = own.import().unwrap().write(target, &|_| ControlFlow::Continue(())).unwrap();
    assert!(matches!(outcome, Outcome::Made(_)), "{outcome:?}");
    Dataset::open(target).unwrap()
}

#[test]
fn arrays_of_points_and_cells_scalars_and_derived_inputs_become_fields() {
    let folder = Folder::new("mesh-cases");
    for ending in ["vtu", "vtk"] {
        let cases = cases(&folder, &SIZES, ending);
        let set = imported(&cases, &folder.at(ending));
        let names: Vec<_> = set.manifest().fields.iter().map(|field| field.name.as_str()).collect();
        assert_eq!(names, ["positions", "region", "mean_p", "distance", "slope", "other"]);
        for (number, &[width, height]) in SIZES.iter().enumerate() {
            let positions = set.gather("positions", &[number]).unwrap(); // z is 2 everywhere and left out
            assert_eq!(positions.len(), 2 * width * height);
            let pressure = set.gather("mean_p", &[number]).unwrap();
            let region = set.gather("region", &[number]).unwrap();
            let distance = set.gather("distance", &[number]).unwrap();
            for (point, place) in positions.chunks(2).enumerate() {
                let [x, y] = [f64::from(place[0]), f64::from(place[1])];
                assert_eq!(pressure[point], (1.0 + slope(number) * x + y) as f32);
                let beside = if x == 0.0 {
                    0.0
                } else if x == 1.0 {
                    0.5
                } else {
                    1.0
                }; // the mean of the cells
                assert_eq!(region[point], beside, "{x} {y}");
                let [right, top] = [(width - 1) as f64 - x, (height - 1) as f64 - y];
                assert_eq!(f64::from(distance[point]), x.min(y).min(right).min(top), "{x} {y}");
            }
            assert_eq!(set.gather("slope", &[number]).unwrap(), [slope(number) as f32]);
        }
    }
}

#[test]
fn centres_of_cells_are_points_and_equal_cases_are_an_equal_cloud() {
    let folder = Folder::new("mesh-centres");
    let cases = MeshCases { at_centres: true, ..cases(&folder, &[[4, 3]; 4], "vtu") };
    let set = imported(&cases, &folder.at("set"));
    assert_eq!((set.manifest().grid, set.manifest().ragged.is_some()), (Grid::Cloud { points: 6 }, false));
    assert_eq!(set.gather("positions", &[1]).unwrap()[..4], [0.5, 0.5, 1.5, 0.5]);
    assert_eq!(set.gather("region", &[1]).unwrap(), [0.0, 1.0, 1.0, 0.0, 1.0, 1.0]);
    assert_eq!(set.gather("distance", &[1]).unwrap(), [0.5; 6]);
    assert_eq!(set.gather("mean_p", &[0]).unwrap()[..3], [1.5, 1.5, 1.5]);
}

/// A tiny run on a data set.
fn trained(folder: &Folder, set: &str) -> PathBuf {
    let changes = [
        "model.settings={ width = 16, depth = 1, tokens = 4, slice_heads = 2, states = 4, mlp_ratio = 1, initial = \"fan-in\" }",
        "train={ epochs = 2, batch = 2 }",
    ];
    let asked = TrainRequest {
        changes: changes.map(str::to_owned).to_vec(),
        out: Some(folder.at(&format!("{set}-run"))),
        ..TrainRequest::new(folder.at(set).to_str().unwrap())
    };
    train(&asked, &Session::default()).unwrap().folder
}

fn request(model: &Path, inputs: &[PathBuf], output: PathBuf) -> PredictRequest {
    PredictRequest {
        model: model.to_owned(),
        inputs: inputs.iter().map(|path| Source::parse(path.to_str().unwrap())).collect(),
        output,
        snapshots: None,
        symmetries: false,
        memory: None,
        device: Device::Cpu,
    }
}

#[test]
fn predictions_are_written_on_the_original_cells_with_their_errors() {
    let folder = Folder::new("mesh-predict");
    let cases = cases(&folder, &SIZES, "vtu");
    imported(&cases, &folder.at("set"));
    let run = trained(&folder, "set");
    let both = predict_meshes(&request(&run, &cases.files[6..], folder.at("out_*.vtu")), &cases).unwrap();
    assert_eq!(both.files, [folder.at("out_case_6.vtu"), folder.at("out_case_7.vtu")]);
    let alone = folder.at("alone.vtk");
    predict_meshes(&request(&run, &cases.files[7..], alone.clone()), &cases).unwrap();
    let (input, made, single) =
        (mesh::read(&cases.files[7]).unwrap(), mesh::read(&both.files[1]).unwrap(), mesh::read(&alone).unwrap());
    assert_eq!((&made.shape, &made.cell_data), (&input.shape, &input.cell_data));
    let named = |mesh: &Mesh, name: &str| {
        let array = mesh.point_data.iter().find(|array| array.name == name);
        array.unwrap_or_else(|| panic!("no {name}")).values.to_f64().unwrap()
    };
    let [truth, found, error] = ["Mean p", "Mean p_predicted", "Mean p_error"].map(|name| named(&made, name));
    for point in 0..truth.len() {
        assert_eq!(error[point], f64::from((found[point] - truth[point]) as f32), "{point}");
    }
    let other = named(&single, "Mean p_predicted"); // batches of other sizes add up in another order
    assert!(found.iter().zip(other).all(|(one, other)| (one - other).abs() < 1e-4));
    // Arrays instead of a mesh; and what is missing has a sentence.
    predict_meshes(&request(&run, &cases.files[7..], folder.at("out.npz")), &cases).unwrap();
    assert_eq!(formats::describe(folder.at("out.npz"), Some("mean_p")).unwrap().shape, [20]);
    let bare = MeshCases { scalars: None, ..cases.clone() };
    let told = predict_meshes(&request(&run, &cases.files[7..], folder.at("x.vtu")), &bare).unwrap_err().to_string();
    assert!(told.contains("case_7.vtu: expected an array `slope`, found Mean p, region; name a table"), "{told}");
    let told = predict_meshes(&request(&run, &cases.files, folder.at("x.vtu")), &cases).unwrap_err().to_string();
    assert!(told.contains("'out/*.vtu'"), "{told}");
}

#[test]
fn the_signed_distance_to_a_closed_surface_is_an_array_and_an_open_one_is_refused() {
    let folder = Folder::new("mesh-sdf");
    let facet = |corners: [[i32; 3]; 3]| {
        let lines: Vec<String> = corners.iter().map(|[x, y, z]| format!("vertex {x} {y} {z}")).collect();
        format!("facet normal 0 0 0\nouter loop\n{}\nendloop\nendfacet\n", lines.join("\n"))
    };
    let [a, b, c, d] = [[0, 0, 0], [9, 0, 0], [0, 9, 0], [0, 0, 9]];
    let closed = [[a, c, b], [a, b, d], [b, c, d], [c, a, d]].map(facet);
    std::fs::write(folder.at("body.stl"), format!("solid body\n{}endsolid body\n", closed.concat())).unwrap();
    std::fs::write(folder.at("open.stl"), format!("solid body\n{}endsolid body\n", closed[1..].concat())).unwrap();
    let path = folder.at("case.vtu");
    mesh::write(&path, &case(3, 3, 0.0), &Options::default()).unwrap();
    let name = |kind: &str, file: &str| format!("{kind}={}", folder.at(file).display());
    let found = formats::read(&path, Some(&name("sdf", "body.stl"))).unwrap().values.into_f64();
    // Points at z = 2 of the corner x, y, z > 0, x + y + z < 9; distance to the slanted side is (9 - x - y - z) / √3.
    for (point, distance) in found.iter().enumerate() {
        let [x, y] = [(point % 3) as f64, (point / 3) as f64];
        let inside = x.min(y).min(2.0).min((7.0 - x - y) / 3.0_f64.sqrt());
        assert!((distance + inside).abs() < 1e-14, "{x} {y}: {distance} and {inside}");
    }
    let turned = [[a, b, c], [a, d, b], [b, d, c], [c, d, a]].map(facet); // the normals look inside
    std::fs::write(folder.at("turned.stl"), format!("solid body\n{}endsolid body\n", turned.concat())).unwrap();
    assert_eq!(formats::read(&path, Some(&name("sdf", "turned.stl"))).unwrap().values.into_f64(), found);
    let told = formats::read(&path, Some(&name("sdf", "open.stl"))).unwrap_err().to_string();
    assert!(told.contains("open.stl: expected a closed surface, found 3 edges"), "{told}");
    let plain = formats::read(&path, Some(&name("distance", "open.stl"))).unwrap().values.into_f64();
    assert_eq!(plain[4], 1.0);
    let told = formats::read(&path, Some(&name("sdf", "none.stl"))).unwrap_err().to_string();
    assert!(told.contains("none.stl") && told.lines().count() == 1, "{told}");
}

/// The squares of a case as triangles from their first corners.
fn squares(width: usize, height: usize) -> Vec<[u32; 3]> {
    let corners = |cell: usize| {
        let first = cell / (width - 1) * width + cell % (width - 1);
        [first, first + 1, first + width + 1, first + width].map(|point| point as u32)
    };
    let halves = |[a, b, c, d]: [u32; 4]| [[a, b, c], [a, c, d]];
    (0..(width - 1) * (height - 1)).flat_map(|cell| halves(corners(cell))).collect()
}

#[test]
fn cells_are_kept_as_triangles_and_those_of_equal_meshes_once() {
    let folder = Folder::new("mesh-cells");
    let set = imported(&cases(&folder, &SIZES, "vtu"), &folder.at("ragged"));
    for (number, &[width, height]) in SIZES.iter().enumerate() {
        assert_eq!(set.triangles_of(number).unwrap(), squares(width, height), "sample {number}");
    }
    let kept = set.manifest().triangles.clone().unwrap();
    let count: usize = SIZES.iter().map(|[width, height]| (width - 1) * (height - 1)).sum();
    assert_eq!((kept.cells, kept.count, kept.common), (count as u64, 2 * count, false));
    set.verify().unwrap();
    let equal = imported(&cases(&folder, &[[5, 4]; 6], "vtu"), &folder.at("equal"));
    let kept = equal.manifest().triangles.clone().unwrap();
    assert_eq!((kept.cells, kept.count, kept.common), (6 * 12, 24, true));
    assert!((0..6).all(|sample| equal.triangles_of(sample).unwrap() == squares(5, 4)));
    equal.verify().unwrap();
    let mut centres = cases(&folder, &SIZES, "vtu");
    centres.at_centres = true;
    let centres = imported(&centres, &folder.at("centres"));
    for (number, &[width, height]) in SIZES.iter().enumerate() {
        let (triangles, corners) = (centres.triangles_of(number).unwrap(), centres.corners_of(number).unwrap());
        let expected = squares(width, height);
        assert_eq!(triangles.len(), expected.len());
        assert!(triangles.iter().enumerate().all(|(place, cell)| *cell == [place as u32 / 2; 3]), "{triangles:?}");
        let places = expected.as_flattened().iter().flat_map(|&point| [point as usize % width, point as usize / width]);
        assert!(corners.iter().copied().eq(places.map(|side| side as f32)), "corners of sample {number}");
    }
    centres.verify().unwrap();
    assert!(set.corners_of(0).unwrap().is_empty(), "corners that are points are not stored");
    let path = folder.at("centres").join("triangle-corners.npy");
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[200] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    assert!(centres.verify().unwrap_err().to_string().contains("triangle-corners.npy"));
    std::fs::write(&path, &bytes[..150]).unwrap();
    assert!(Dataset::open(&folder.at("centres")).unwrap_err().to_string().contains("triangle-corners.npy"));
}

#[test]
fn the_head_of_a_column_has_a_name_and_a_unit() {
    let folder = Folder::new("mesh-units");
    let mut cases = cases(&folder, &SIZES, "vtu");
    let table = std::fs::read_to_string(folder.at("cases.csv")).unwrap();
    std::fs::write(folder.at("cases.csv"), table.replace("Slope,other", " Angle of attack [deg], Mach (-)")).unwrap();
    cases.derived.clear();
    let set = imported(&cases, &folder.at("set"));
    let names: Vec<_> = set.manifest().fields.iter().map(|field| (field.name.as_str(), field.unit.as_str())).collect();
    assert_eq!(names[3..], [("angle_of_attack", "deg"), ("mach", "1")]);
    // A prediction takes a column in the unit of the training, or without a unit.
    let recorded = Recorded::of(set.manifest());
    let read = |head: &str| {
        std::fs::write(folder.at("cases.csv"), table.replace("Slope,other", head)).unwrap();
        read_as(&cases, &cases.files[1], "angle_of_attack", &recorded).map(|(_, values)| values)
    };
    assert_eq!(read("Angle of attack [deg],Mach").unwrap(), [slope(1)]);
    assert_eq!(read("Angle of attack,Mach").unwrap(), [slope(1)]);
    let told = read("Angle of attack [rad],Mach").unwrap_err().to_string();
    assert!(told.contains("`angle_of_attack`: expected the unit deg of the training, found rad; convert"), "{told}");
}

#[test]
fn a_mesh_that_leaves_the_plane_of_the_training_is_refused() {
    let folder = Folder::new("mesh-tilted");
    let mut tilted = case(4, 3, 0.1);
    let Shape::Unstructured { points: Numbers::F64(positions), .. } = &mut tilted.shape else { unreachable!() };
    positions.chunks_mut(3).for_each(|place| place[2] += 0.2 * place[0]);
    mesh::write(&folder.at("tilted.vtu"), &tilted, &Options::default()).unwrap();
    mesh::write(&folder.at("flat.vtu"), &case(4, 3, 0.1), &Options::default()).unwrap();
    let positions = |file: &str| {
        read_as(&MeshCases::default(), &folder.at(file), "positions", &Recorded::default()).map(|(name, _)| name)
    };
    assert_eq!(positions("flat.vtu").unwrap(), "points-xy");
    let told = positions("tilted.vtu").unwrap_err().to_string();
    assert!(told.contains("tilted.vtu: its points: expected the same z at all points"), "{told}");
    assert!(told.contains("found z from 2 to 2.6; turn"), "{told}");
}

#[test]
fn the_error_of_a_renamed_output_is_that_against_the_array_of_the_training() {
    let folder = Folder::new("mesh-renamed");
    let cases = cases(&folder, &SIZES, "vtu");
    let cases = MeshCases { outputs: vec!["region_p=Mean p".into()], ..cases };
    for file in &cases.files {
        let mut mesh = mesh::read(file).unwrap();
        let count = mesh.point_count();
        mesh.point_data.push(DataArray::new("region_p", 1, vec![100.0; count]));
        mesh::write(file, &mesh, &Options::default()).unwrap();
    }
    imported(&cases, &folder.at("set"));
    let run = trained(&folder, "set");
    predict_meshes(&request(&run, &cases.files[7..], folder.at("out.vtu")), &cases).unwrap();
    let made = mesh::read(&folder.at("out.vtu")).unwrap();
    let named = |name: &str| {
        let array = made.point_data.iter().find(|array| array.name == name);
        array.unwrap_or_else(|| panic!("no {name}")).values.to_f64().unwrap()
    };
    let [truth, found, error] = ["Mean p", "region_p_predicted", "region_p_error"].map(named);
    for point in 0..truth.len() {
        assert_eq!(error[point], f64::from((found[point] - truth[point]) as f32), "{point}");
    }
    // An array of the mesh beside the mesh: one file, one name for the output.
    let mut asked = request(&run, &cases.files[7..], folder.at("again.vtu"));
    asked.inputs.push(Source::parse(&format!("region={}:region", cases.files[7].display())));
    predict_meshes(&asked, &cases).unwrap();
}

#[test]
fn every_file_that_an_import_reads_is_among_its_sources() {
    let folder = Folder::new("mesh-sources");
    let mut cases = cases(&folder, &SIZES, "vtu");
    mesh::write(&folder.at("body.vtu"), &case(9, 9, 0.0), &Options::default()).unwrap();
    cases.derived.push(format!("distance={}", folder.at("body.vtu").display()));
    cases.derived.remove(0);
    let set = imported(&cases, &folder.at("set"));
    let sources = &set.manifest().sources;
    assert_eq!(sources.len(), SIZES.len() + 2);
    for name in ["case_0.vtu", "case_7.vtu", "body.vtu", "cases.csv"] {
        let entry = sources.iter().find(|source| source.file == name).unwrap_or_else(|| panic!("{name}"));
        assert_eq!(entry.bytes, std::fs::metadata(folder.at(name)).unwrap().len(), "{name}");
    }
    let hashes: std::collections::HashSet<_> = sources.iter().map(|source| &source.sha256).collect();
    assert!(hashes.len() == sources.len() && hashes.iter().all(|hash| hash.len() == 64));
    // Another table is another data set.
    let table = std::fs::read_to_string(folder.at("cases.csv")).unwrap();
    std::fs::write(folder.at("cases.csv"), table.replace(",7\n", ",8\n")).unwrap();
    let (fields, _) = cases.fields().unwrap();
    let own = Own {
        name: "flow".into(),
        grid: set.manifest().grid,
        ragged: points_of_files(&fields).unwrap(),
        stride: 1,
        split: Some(Rule::Ends { train: cases.files.len() - 2, test: 2 }),
        fields,
        times: None,
        windows: None,
        sizes: Sizes::default(),
    };
    let told = own.import().unwrap().write(&folder.at("set"), &|_| ControlFlow::Continue(())).unwrap_err();
    assert!(told.to_string().contains("cases.csv"), "{told}");
}

#[test]
fn damaged_triangles_are_refused_in_a_sentence() {
    let folder = Folder::new("mesh-damage");
    let target = folder.at("set");
    imported(&cases(&folder, &SIZES, "vtu"), &target);
    let paths = ["triangles.npy", "triangle-offsets.npy", "dataset.toml"].map(|name| target.join(name));
    let sound = paths.each_ref().map(|path| std::fs::read(path).unwrap());
    let refused = |place: usize, change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = sound[place].clone();
        change(&mut bytes);
        std::fs::write(&paths[place], bytes).unwrap();
        let read = |set: Dataset| (0..set.samples()).try_for_each(|sample| set.triangles_of(sample).map(|_| ()));
        let told = Dataset::open(&target).and_then(read).unwrap_err().to_string();
        std::fs::write(&paths[place], &sound[place]).unwrap();
        assert!(!told.contains('\n'), "{told}");
        told
    };
    let number = |bytes: &mut Vec<u8>, at: usize, value: &[u8]| bytes[128 + at..][..value.len()].copy_from_slice(value);
    let far = refused(0, &|bytes| number(bytes, 4, &16_i32.to_le_bytes()));
    assert!(far.contains("triangle 0: expected points 0 to 15 of sample 0, found 16;"), "{far}");
    let negative = refused(0, &|bytes| number(bytes, 4, &(-1_i32).to_le_bytes()));
    assert!(negative.contains("of sample 0, found -1;"), "{negative}");
    let cut = refused(0, &|bytes| bytes.truncate(300));
    assert!(cut.contains("triangles.npy"), "{cut}");
    let falling = refused(1, &|bytes| number(bytes, 16, &1_i64.to_le_bytes()));
    assert!(falling.contains("expected offsets that grow") && falling.contains("found 1 as offset 2"), "{falling}");
    let beyond = refused(1, &|bytes| number(bytes, 64, &i64::MAX.to_le_bytes()));
    assert!(beyond.contains("expected offsets that end with the"), "{beyond}");
    let text = |change: fn(String) -> String| {
        move |bytes: &mut Vec<u8>| *bytes = change(String::from_utf8(bytes.clone()).unwrap()).into_bytes()
    };
    let count = |text: String| {
        let line = text.lines().find(|line| line.starts_with("count = ")).unwrap().to_owned();
        text.replace(&line, "count = 9000000000000000000")
    };
    let huge = refused(2, &text(count));
    assert!(huge.contains("a number of triangles that a file can hold"), "{huge}");
    let outside = refused(2, &text(|text| text.replace("\"triangles.npy\"", "\"../triangles.npy\"")));
    assert!(outside.contains("different files in the folder"), "{outside}");
    // A data set of an earlier version has no cells.
    let manifest = String::from_utf8(sound[2].clone()).unwrap();
    let (before, rest) = manifest.split_once("[triangles]").unwrap();
    let (_, after) = rest.split_once("\n[").unwrap();
    std::fs::write(&paths[2], format!("{before}[{after}")).unwrap();
    let old = Dataset::open(&target).unwrap();
    assert!(old.triangles_of(0).unwrap().is_empty());
    old.verify().unwrap();
}

/// Files with an array `array` on the points beside those of [`case`]; its values are 7.
fn cases_with(folder: &Folder, array: &str) -> MeshCases {
    let files = (0..4).map(|number| {
        let mut mesh = case(4, 3, slope(number));
        mesh.point_data.push(DataArray::new(array, 1, vec![7.0; 12]));
        let path = folder.at(&format!("{array}_{number}.vtu"));
        mesh::write(&path, &mesh, &Options::default()).unwrap();
        path
    });
    MeshCases { files: files.collect(), outputs: vec!["Mean p".into()], ..MeshCases::default() }
}

/// The array that a field is read from, and its values.
fn read_as(
    cases: &MeshCases,
    file: &Path,
    field: &str,
    recorded: &Recorded,
) -> Result<(String, Vec<f64>), lamo::Error> {
    let points = (2, Grid::Cloud { points: 12 });
    let (_, array, _) = cases.arrays_as_recorded(file, &[field.to_owned()], points, recorded)?.remove(0);
    let name = array.variable.unwrap();
    Ok((name.clone(), formats::read(file, Some(&name)).unwrap().values.into_f64()))
}

#[test]
fn a_field_is_read_from_the_array_that_the_import_read_it_from() {
    let folder = Folder::new("mesh-recorded");
    for (array, input, field, variable) in [
        ("Distance", "Distance", "distance", "Distance"),
        ("distance", "distance", "distance", "stored/distance"),
        ("normals", "wind=normals", "wind", "stored/normals"),
        ("reg", "distance=reg", "distance", "reg"),
        ("reg", "zone=reg", "zone", "reg"),
    ] {
        let cases = MeshCases { inputs: vec![input.into()], ..cases_with(&folder, array) };
        let set = imported(&cases, &folder.at(&format!("{array}-{field}")));
        assert_eq!(set.gather(field, &[1]).unwrap(), [7.0; 12], "{input}");
        let recorded = Recorded::of(set.manifest());
        let found = read_as(&MeshCases::default(), &cases.files[0], field, &recorded).unwrap();
        assert_eq!(found, (variable.to_owned(), vec![7.0; 12]), "{input}");
        // A mesh without the array is refused and nothing is derived in its place.
        let bare = folder.at("bare.vtu");
        mesh::write(&bare, &case(4, 3, 0.0), &Options::default()).unwrap();
        let told = read_as(&MeshCases::default(), &bare, field, &recorded).unwrap_err().to_string();
        let expected = format!("bare.vtu: expected an array `{array}`, found Mean p, region; field `{field}` of");
        assert!(told.contains(&expected), "{told}");
        let derive = MeshCases { derived: vec!["distance".into()], ..MeshCases::default() };
        if field == "distance" {
            let told = read_as(&derive, &cases.files[0], field, &recorded).unwrap_err().to_string();
            assert!(told.contains(&format!("field `distance`: expected the array `{array}` of the file")), "{told}");
        }
    }
}

#[test]
fn a_field_made_with_another_file_is_not_made_without_one() {
    let folder = Folder::new("mesh-wall");
    mesh::write(&folder.at("wall.vtu"), &case(9, 9, 0.0), &Options::default()).unwrap();
    let with_file = |kind: &str| vec![format!("{kind}={}", folder.at("wall.vtu").display())];
    let made = MeshCases { derived: with_file("distance"), ..cases_with(&folder, "other") };
    let recorded = Recorded::of(imported(&made, &folder.at("set")).manifest());
    let asked = |derived: &[String]| {
        let cases = MeshCases { derived: derived.to_vec(), ..MeshCases::default() };
        read_as(&cases, &made.files[0], "distance", &recorded)
    };
    for (derived, found) in [(vec![], "the mesh alone"), (vec!["distance".to_owned()], "`distance` to derive")] {
        let told = asked(&derived).unwrap_err().to_string();
        let expected =
            "field `distance`: expected its distance to another file, as in the training, which had wall.vtu";
        assert_eq!(told, format!("{expected}, found {found}; give --derive distance=FILE"));
    }
    assert!(asked(&with_file("distance")).unwrap().0.starts_with("distance="));
    let own = MeshCases { derived: vec!["distance".into()], ..cases_with(&folder, "other") };
    let recorded = Recorded::of(imported(&own, &folder.at("own")).manifest());
    assert_eq!(read_as(&MeshCases::default(), &own.files[0], "distance", &recorded).unwrap().0, "distance");
    let file = MeshCases { derived: with_file("distance"), ..MeshCases::default() };
    let told = read_as(&file, &own.files[0], "distance", &recorded).unwrap_err().to_string();
    assert!(told.ends_with("give --derive distance"), "{told}");
}

#[test]
fn an_array_called_distance_does_not_take_the_place_of_the_derived_distance() {
    let folder = Folder::new("mesh-clash");
    let stored = cases_with(&folder, "distance");
    let derived = [0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0];
    // The first file has no such array; the others have.
    mesh::write(&stored.files[0], &case(4, 3, 0.0), &Options::default()).unwrap();
    let cases = MeshCases { derived: vec!["distance".into()], ..stored };
    let set = imported(&cases, &folder.at("set"));
    assert!((0..4).all(|sample| set.gather("distance", &[sample]).unwrap() == derived.map(|value| value as f32)));
    // A prediction derives it, too; without --derive and without a record it takes the array of the file.
    let found =
        |cases: &MeshCases| read_as(cases, &cases_with(&folder, "distance").files[1], "distance", &Recorded::default());
    assert_eq!(found(&cases).unwrap().1, derived);
    assert_eq!(found(&MeshCases::default()).unwrap().1, [7.0; 12]);
    let centres = MeshCases { at_centres: true, ..cases.clone() };
    assert_eq!(found(&centres).unwrap().1, [0.5; 6]);
    assert_eq!(found(&MeshCases { derived: Vec::new(), ..centres }).unwrap().1, [7.0; 6]);
    let named = MeshCases { inputs: vec!["distance=Mean p".into()], ..MeshCases::default() };
    assert_eq!(found(&named).unwrap().0, "Mean p");
}

#[test]
fn a_run_predicts_from_the_arrays_and_files_that_its_data_were_made_of() {
    let folder = Folder::new("mesh-run-recorded");
    let predicted = |run: &Path, inputs: &[&str], cases: &MeshCases| {
        let inputs = inputs.iter().map(|text| Source::parse(text)).collect();
        let asked = PredictRequest { inputs, ..request(run, &[], folder.at("out.npz")) };
        predict_meshes(&asked, cases).map(|found| found.arrays[0].values.clone())
    };
    let (bare, derive) = (MeshCases::default(), MeshCases { derived: vec!["distance".into()], ..MeshCases::default() });
    let cases = MeshCases { inputs: vec!["distance=reg".into()], ..cases_with(&folder, "reg") };
    imported(&cases, &folder.at("renamed"));
    let run = trained(&folder, "renamed");
    let file = cases.files[3].to_str().unwrap();
    let array = format!("distance={file}:reg");
    let given = [format!("positions={file}:points-xy"), array.clone()].map(|text| Source::parse(&text)).to_vec();
    let expected = lamo::workflow::predict(&PredictRequest { inputs: given, ..request(&run, &[], folder.at("o.npz")) });
    let expected = expected.unwrap().arrays[0].values.clone();
    assert_eq!(predicted(&run, &[file], &bare).unwrap(), expected);
    assert!(predicted(&run, &[file], &derive).unwrap_err().to_string().contains("expected the array `reg`"));
    // Without the data, the name of the field decides, or the array that is named.
    std::fs::rename(folder.at("renamed"), folder.at("moved")).unwrap();
    assert_ne!(predicted(&run, &[file], &bare).unwrap(), expected, "the distance to the boundary");
    assert_eq!(predicted(&run, &[file, &array], &bare).unwrap(), expected);
    let other = format!("distance={}:reg", cases.files[2].display());
    let told = predicted(&run, &[file, &other], &bare).unwrap_err().to_string();
    assert!(
        told.contains("--input: expected mesh files, and FIELD=FILE:ARRAY") && told.contains("reg_2.vtu"),
        "{told}"
    );
    // A distance to a wall is not replaced by that to the boundary of the mesh.
    mesh::write(&folder.at("wall.vtu"), &case(9, 9, 0.0), &Options::default()).unwrap();
    let wall = MeshCases { derived: vec![format!("distance={}", folder.at("wall.vtu").display())], ..bare.clone() };
    imported(&MeshCases { derived: wall.derived.clone(), ..cases_with(&folder, "reg") }, &folder.at("wall"));
    let run = trained(&folder, "wall");
    for cases in [&bare, &derive] {
        assert!(predicted(&run, &[file], cases).unwrap_err().to_string().ends_with("give --derive distance=FILE"));
    }
    predicted(&run, &[file], &wall).unwrap();
}

#[test]
fn a_table_of_scalars_has_semicolons_and_decimal_commas_as_any_other_table() {
    let folder = Folder::new("mesh-decimals");
    let cases = MeshCases { derived: Vec::new(), ..cases(&folder, &SIZES, "vtu") };
    let table = std::fs::read_to_string(folder.at("cases.csv")).unwrap().replace(".vtu", "");
    let slopes = |target: &str, table: String| {
        std::fs::write(folder.at("cases.csv"), table).unwrap();
        imported(&cases, &folder.at(target)).gather("slope", &[0, 1, 2, 3, 4, 5, 6, 7]).unwrap()
    };
    let expected: Vec<f32> = (0..8).map(|case| slope(case) as f32).collect();
    assert_eq!(slopes("commas", table.clone()), expected);
    assert_eq!(slopes("semicolons", table.replace(',', ";").replace('.', ",")), expected);
    assert_eq!(slopes("points", table.replace(',', ";")), expected);
    assert_eq!(slopes("tabs", table.replace(',', "\t")), expected);
    assert_eq!(slopes("spaces", table.replace(',', " ")), expected);
    let (head, rows) = table.split_once('\n').unwrap();
    let last = rows.lines().last().unwrap();
    let middle = rows.trim_end().rsplit_once('\n').unwrap().0;
    assert_eq!(slopes("comments", format!("# eight cases\n% of ours\n{head}\n{middle}\n# the last\n{last}")), expected);
    assert_eq!(slopes("commented", format!("# eight cases\n# {head}\n{rows}")), expected);
    assert_eq!(slopes("ends", table.trim_end().replace('\n', ",\n") + ","), expected);
    std::fs::write(folder.at("cases.csv"), [head.as_bytes(), b"\n\xe4,1,2\n"].concat()).unwrap();
    let told = cases.fields().unwrap_err().to_string();
    assert!(told.contains("cases.csv: expected text in UTF-8, found bytes of another encoding; save it as"), "{told}");
    std::fs::write(folder.at("cases.csv"), table.replace('.', ",")).unwrap();
    let told = cases.fields().unwrap_err().to_string();
    assert!(told.contains("cases.csv: line 2: expected 3 cells, as its first line names, found 4; separate"), "{told}");
    let mixed = table.replace(',', ";").replacen('.', ",", 1);
    std::fs::write(folder.at("cases.csv"), mixed).unwrap();
    let told = cases.fields().unwrap_err().to_string();
    assert!(
        told.contains("cases.csv: expected decimal points, or decimal commas, found `0,") && !told.contains("\n"),
        "{told}"
    );
}
