//! Meshes in several pieces are one body: where two pieces meet there is no boundary. A mesh file is one time.

use crate::support::Folder;
use lamo::data::formats;
use lamo::data::import::MeshCases;
use lamo::data::mesh::{self, DataArray, Encoding, Mesh, Numbers, Options, Shape, UNTURNED};
use lamo_geometry::Grid;

/// Cubes, or squares where there is one layer, from x = `from` on.
fn lattice(from: usize, dimensions: [usize; 3]) -> Mesh {
    let origin = [from as f64, 0.0, 0.0];
    let image = Shape::Image { dimensions, origin, spacing: [1.0; 3], direction: UNTURNED };
    let (positions, cells) = (image.positions().unwrap(), image.cells().unwrap().into_owned());
    Mesh::new(Shape::Unstructured { points: Numbers::F64(positions), cells })
}

/// Writes meshes as a file each and a pvtu file that names them, and as one vtu file of several pieces.
fn write(folder: &Folder, meshes: &[Mesh]) {
    let options = Options { encoding: Encoding::Ascii, packed: false, ..Options::default() };
    let (mut named, mut pieces) = (String::new(), String::new());
    for (number, mesh) in meshes.iter().enumerate() {
        let name = format!("piece_{number}.vtu");
        mesh::write(&folder.at(&name), mesh, &options).unwrap();
        named += &format!("<Piece Source=\"{name}\"/>");
        let text = std::fs::read_to_string(folder.at(&name)).unwrap();
        let (start, end) = (text.find("<Piece").unwrap(), text.find("</Piece>").unwrap() + "</Piece>".len());
        pieces += &text[start..end];
    }
    let file = |kind: &str, inner: &str| {
        format!("<VTKFile type=\"{kind}\" version=\"1.0\"><{kind}>{inner}</{kind}></VTKFile>")
    };
    std::fs::write(folder.at("case.pvtu"), file("PUnstructuredGrid", &named)).unwrap();
    std::fs::write(folder.at("case.vtu"), file("UnstructuredGrid", &pieces)).unwrap();
}

#[test]
fn the_distance_to_the_boundary_does_not_see_where_pieces_meet() {
    for layers in [4, 1] {
        let folder = Folder::new(&format!("mesh-pieces-{layers}"));
        write(&folder, &[lattice(0, [4, 5, layers]), lattice(3, [5, 5, layers])]);
        for name in ["case.pvtu", "case.vtu"] {
            let read = |array: &str| formats::read(folder.at(name), Some(array)).unwrap().values.into_f64();
            for (place, distance) in read("points").chunks_exact(3).zip(read("distance")) {
                let side = |axis: usize, length: f64| place[axis].min(length - place[axis]);
                let flat = side(0, 7.0).min(side(1, 4.0));
                let exact = if layers == 1 { flat } else { flat.min(side(2, 3.0)) };
                assert_eq!(distance, exact, "{name}, {layers} layers, {place:?}");
            }
        }
    }
    // Two bodies in one piece that touch without common points are apart: a crack has two sides.
    let folder = Folder::new("mesh-crack");
    let [one, other] = [lattice(0, [3, 5, 1]), lattice(2, [3, 5, 1])];
    write(&folder, &[one, other]);
    let mut cracked = mesh::read(&folder.at("case.vtu")).unwrap();
    assert_eq!(cracked.seams, [15]);
    cracked.seams.clear();
    mesh::write(&folder.at("cracked.vtu"), &cracked, &Options::default()).unwrap();
    let distances = formats::read(folder.at("cracked.vtu"), Some("distance")).unwrap().values.into_f64();
    assert_eq!(distances[2 * 3 + 2], 0.0, "a point of the crack");
}

#[test]
fn pieces_with_ghost_cells_are_refused() {
    let folder = Folder::new("mesh-ghosts");
    let marked = |mark: i32| {
        let mut mesh = lattice(0, [3, 3, 1]);
        let values = Numbers::I32(vec![0, 0, mark, 0]);
        mesh.cell_data.push(DataArray { name: "vtkGhostType".into(), components: 1, values });
        mesh
    };
    write(&folder, &[marked(0), marked(0)]);
    mesh::read(&folder.at("case.pvtu")).unwrap();
    write(&folder, &[marked(0), marked(1)]);
    for name in ["case.pvtu", "case.vtu"] {
        let told = mesh::read(&folder.at(name)).unwrap_err().to_string();
        assert!(
            told.contains("expected pieces that do not overlap, found 1 cell whose vtkGhostType is not 0"),
            "{told}"
        );
    }
    mesh::read(&folder.at("piece_1.vtu")).unwrap();
}

#[test]
fn a_gmsh_file_with_two_time_steps_of_one_array_is_refused() {
    let folder = Folder::new("gmsh-steps");
    let mesh = "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n3\n1 0 0 0\n2 1 0 0\n3 0 1 0\n$EndNodes\n\
                $Elements\n1\n1 2 2 0 1 1 2 3\n$EndElements\n";
    let data = |name: &str, step: usize, scale: f64| {
        let values: String = (1..4).map(|node| format!("{node} {}\n", scale * f64::from(node))).collect();
        format!("$NodeData\n1\n\"{name}\"\n1\n{}\n3\n{step}\n1\n3\n{values}$EndNodeData\n", 0.1 * step as f64)
    };
    std::fs::write(folder.at("one.msh"), mesh.to_owned() + &data("u", 0, 1.0) + &data("v", 0, 2.0)).unwrap();
    assert_eq!(mesh::read(&folder.at("one.msh")).unwrap().point_data.len(), 2);
    std::fs::write(folder.at("two.msh"), mesh.to_owned() + &data("u", 0, 1.0) + &data("u", 1, 2.0)).unwrap();
    let told = mesh::read(&folder.at("two.msh")).unwrap_err().to_string();
    assert!(told.contains("data `u`: expected values of one time") && told.contains(".pvd"), "{told}");
}

#[test]
fn a_curve_of_one_point_is_refused_without_a_panic() {
    let folder = Folder::new("mesh-short-curve");
    let array = |name: &str, kind: &str, values: &str| {
        format!("<DataArray type=\"{kind}\" Name=\"{name}\" format=\"ascii\">{values}</DataArray>")
    };
    let cells = array("connectivity", "Int32", "0") + &array("offsets", "Int32", "1") + &array("types", "UInt8", "68");
    let points = "<DataArray type=\"Float64\" NumberOfComponents=\"3\" format=\"ascii\">0 0 0 1 0 0</DataArray>";
    let piece = format!(
        "<Piece NumberOfPoints=\"2\" NumberOfCells=\"1\"><Points>{points}</Points><Cells>{cells}</Cells></Piece>"
    );
    let grid = format!("<UnstructuredGrid>{piece}</UnstructuredGrid>");
    std::fs::write(folder.at("curve.vtu"), format!("<VTKFile type=\"UnstructuredGrid\">{grid}</VTKFile>")).unwrap();
    mesh::write(&folder.at("plane.vtu"), &lattice(0, [3, 3, 1]), &Options::default()).unwrap();
    let name = format!("distance={}", folder.at("curve.vtu").display());
    let told = formats::read(folder.at("plane.vtu"), Some(&name)).unwrap_err().to_string();
    assert!(told.contains("curve.vtu") && told.lines().count() == 1, "{told}");
}

#[test]
fn a_prediction_does_not_choose_between_two_arrays_of_one_name_in_small_letters() {
    let folder = Folder::new("mesh-letters");
    let mut mesh = lattice(0, [3, 3, 1]);
    mesh.point_data.push(DataArray::new("T", 1, vec![1.0; 9]));
    let found = |mesh: &Mesh| {
        mesh::write(&folder.at("case.vtu"), mesh, &Options::default()).unwrap();
        MeshCases::default().arrays(&folder.at("case.vtu"), &["t".into()], (2, Grid::Cloud { points: 9 }))
    };
    assert_eq!(found(&mesh).unwrap()[0].1.variable.as_deref(), Some("T"));
    mesh.cell_data.push(DataArray::new("t", 1, vec![2.0; 4]));
    let told = found(&mesh).unwrap_err().to_string();
    assert!(told.contains("field `t`: expected one array with this name in small letters, found T and t"), "{told}");
}
