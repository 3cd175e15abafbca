//! Mesh files: what VTK and meshio write is read equal, what lamo writes they read equal, and damage ends in a sentence.

use crate::support::Folder;
use lamo::data::mesh::{self, ByteOrder, Cells, DataArray, Encoding, Mesh, Numbers, Options, Shape};
use std::path::{Path, PathBuf};
use std::process::Command;

fn tests() -> PathBuf {
    Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("tests/mesh")
}

/// Every way in which a VTK file is written.
fn variants() -> Vec<(String, Options)> {
    let mut all = Vec::new();
    for encoding in [Encoding::Ascii, Encoding::Base64, Encoding::AppendedRaw, Encoding::AppendedBase64] {
        for packed in [false, true] {
            for long_sizes in [false, true] {
                for order in [ByteOrder::Little, ByteOrder::Big] {
                    let options = Options { encoding, packed, long_sizes, order };
                    all.push((format!("{encoding:?}-{packed}-{long_sizes}-{order:?}"), options));
                }
            }
        }
    }
    all
}

/// The ending of the XML file that keeps the shape of a mesh.
fn own_ending(shape: &Shape) -> &'static str {
    match shape {
        Shape::Unstructured { .. } => "vtu",
        Shape::Surface { .. } => "vtp",
        Shape::Image { .. } => "vti",
        Shape::Rectilinear { .. } => "vtr",
        Shape::Structured { .. } => "vts",
    }
}

/// Python with meshio and pyvista: `LAMO_PYTHON`, or the first python3.
fn python() -> Option<String> {
    let python = std::env::var("LAMO_PYTHON").unwrap_or_else(|_| "python3".into());
    let found = Command::new(&python).args(["-c", "import meshio, pyvista"]).output();
    found.is_ok_and(|output| output.status.success()).then_some(python)
}

fn run(python: &str, job: &str, folder: &Path) -> String {
    let output = Command::new(python).arg(tests().join("outside.py")).arg(job).arg(folder).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{job}: {}", told.lines().last().unwrap_or_default());
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[test]
#[allow(clippy::print_stdout)] // it says why it did not run, and how much it compared
fn vtk_and_meshio_read_what_lamo_made_of_their_files_as_the_same_mesh() {
    let Some(python) = python() else {
        return println!("skipped: set LAMO_PYTHON to a Python that has meshio and pyvista");
    };
    let folder = Folder::new("outside");
    run(&python, "write", folder.path());
    std::fs::create_dir(folder.at("made")).unwrap();
    for path in files(folder.path()) {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let read = mesh::read(&path).unwrap_or_else(|error| panic!("{error}"));
        let made = |variant: &str, ending: &str| folder.at(&format!("made/{name}.{variant}.{ending}"));
        mesh::write(&made("default", "vtu"), &read, &Options::default()).unwrap();
        mesh::write(&made("default", "vtk"), &read, &Options::default()).unwrap();
        mesh::write(&made("text", "vtk"), &read, &Options { encoding: Encoding::Ascii, ..Options::default() }).unwrap();
        if name.contains("_ascii.vt") {
            for (variant, options) in variants() {
                mesh::write(&made(&variant, own_ending(&read.shape)), &read, &options).unwrap();
            }
        }
    }
    println!("{}", run(&python, "compare", folder.path()));
}

/// The files of a folder, sorted.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut paths: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.is_file());
    paths.sort();
    paths
}

/// The mesh that all small files named `cells` hold.
fn cells() -> Mesh {
    let points = vec![0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 1.0, 1.5];
    let mut cells = Cells::new();
    cells.push(10, [0, 1, 2, 3]);
    cells.push(5, [1, 2, 4]);
    dressed(Shape::Unstructured { points: Numbers::F64(points), cells })
}

fn dressed(shape: Shape) -> Mesh {
    let mut mesh = Mesh::new(shape);
    let (points, cells) = (mesh.point_count(), mesh.cell_count());
    let quarters = (0..points).map(|point| point as f32 / 4.0).collect();
    mesh.point_data.push(DataArray { name: "p".into(), components: 1, values: Numbers::F32(quarters) });
    mesh.point_data.push(DataArray::new("U", 3, (0..3 * points).map(|number| number as f64 - 0.1).collect()));
    let regions = (0..cells as i32).map(|cell| cell - 1).collect();
    mesh.cell_data.push(DataArray { name: "region".into(), components: 1, values: Numbers::I32(regions) });
    mesh.field_data.push(DataArray::new("TimeValue", 1, vec![0.25]));
    mesh
}

fn small(name: &str) -> Mesh {
    mesh::read(&tests().join("files").join(name)).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn small_files_hold_the_mesh_that_was_written_in_every_variant() {
    let expected = cells();
    for name in [
        "cells_ascii.vtu",
        "cells_base64.vtu",
        "cells_base64_zlib.vtu",
        "cells_encoded.vtu",
        "cells_raw_zlib_be.vtu",
        "cells_raw_lz4.vtu",
        "cells_42.vtk",
        "cells_51.vtk",
    ] {
        assert_eq!(small(name), expected, "{name}");
    }
    let pieces = small("cells_pieces.vtu"); // the same mesh twice
    assert_eq!((pieces.point_count(), pieces.cell_count()), (10, 4));
    assert_eq!(pieces.shape.cells().unwrap().points(3), [6, 7, 9]);
    assert_eq!(pieces.cell_data[0].values, Numbers::I32(vec![-1, 0, -1, 0]));
    assert_eq!(small("meshio.vtu").shape, expected.shape);
}

#[test]
fn gmsh_files_have_nodes_elements_and_marks_in_every_version() {
    for version in ["2.2", "4.0", "4.1"] {
        for form in ["ascii", "binary"] {
            let found = small(&format!("cells_{version}_{form}.msh"));
            assert_eq!(found.shape, cells().shape, "{version} {form}");
            let physical = found.cell_data.iter().find(|array| array.name == "gmsh:physical").unwrap();
            assert_eq!([0, 1].map(|cell| physical.values.at(cell)), [7.0, 8.0], "{version} {form}");
        }
    }
}

#[test]
fn lattices_and_surfaces_are_the_same_in_every_file() {
    let surfaces = ["surface_ascii.vtp", "surface_raw_zlib_be.vtp", "surface_42.vtk", "surface_51.vtk"].map(small);
    let cells = surfaces[0].shape.cells().unwrap().into_owned();
    assert_eq!((cells.kinds.clone(), cells.connectivity.clone()), (vec![5, 5], vec![0, 2, 1, 1, 2, 4]));
    for other in &surfaces[1..] {
        assert_eq!(*other, surfaces[0]);
    }
    assert_eq!(small("surface.obj").shape.cells().unwrap().into_owned(), cells);
    for name in ["surface_ascii.stl", "surface_binary.stl"] {
        let solid = small(name);
        assert_eq!((solid.point_count(), solid.cell_count()), (4, 2), "{name}: corners that are equal are one point");
    }
    let positions = small("rectilinear_ascii.vtr").shape.positions().unwrap();
    assert_eq!(positions[3..], [1.0, 0.0, 1.0, 2.0, 0.0, 1.0, 0.0, 0.5, 1.0, 1.0, 0.5, 1.0, 2.0, 0.5, 1.0]);
    for kind in ["image", "rectilinear", "structured"] {
        let ending = if kind == "image" {
            "vti"
        } else if kind == "rectilinear" {
            "vtr"
        } else {
            "vts"
        };
        let first = small(&format!("{kind}_ascii.{ending}"));
        assert_eq!(first, dressed(first.shape.clone()), "{kind}");
        assert_eq!(first.shape.positions().unwrap(), positions, "{kind}");
        for name in [format!("{kind}_raw_zlib_be.{ending}"), format!("{kind}_42.vtk"), format!("{kind}_51.vtk")] {
            assert_eq!(small(&name), first, "{name}");
        }
    }
}

#[test]
fn what_is_written_is_read_again_as_the_same_mesh() {
    let folder = Folder::in_memory("meshes");
    for path in files(&tests().join("files")) {
        let read = mesh::read(&path).unwrap();
        for (variant, options) in variants() {
            for ending in [own_ending(&read.shape), "vtu", "vtk"] {
                let copy = folder.at(&format!("copy.{ending}"));
                mesh::write(&copy, &read, &options).unwrap();
                let back = mesh::read(&copy).unwrap_or_else(|error| panic!("{error}"));
                let name = path.file_name().unwrap().display();
                assert_eq!(back.point_data, read.point_data, "{name} {variant} {ending}");
                let cells = [&back, &read].map(|mesh| mesh.shape.cells().unwrap().into_owned());
                assert_eq!(cells[0].faces, cells[1].faces, "{name} {variant} {ending}");
                if ending == "vtk" && cells[0].faces.is_some() {
                    continue; // an older file has the faces of a polyhedron only, not the order of its corners
                }
                assert_eq!(cells[0], cells[1], "{name} {variant} {ending}");
                assert!(ending == "vtu" || back == read, "{name} {variant} {ending}");
            }
        }
    }
    let mut odd = cells();
    odd.point_data[0].name = "a <b> & \"c\" %20 Δ".into();
    odd.point_data[1].values = Numbers::F64((0..15).map(|n| [f64::INFINITY, -0.0, 1e-320][n % 3]).collect());
    for (variant, options) in variants() {
        for ending in ["vtu", "vtk"] {
            mesh::write(&folder.at(&format!("odd.{ending}")), &odd, &options).unwrap();
            assert_eq!(mesh::read(&folder.at(&format!("odd.{ending}"))).unwrap(), odd, "{variant} {ending}");
        }
    }
}

/// A mesh file that lies, and words of the sentence about it.
const LIES: &[(&str, &str, &str)] = &[
    (
        "points.vtk",
        "# vtk DataFile Version 4.2\n\nASCII\nDATASET POLYDATA\nPOINTS 99999999999999 float\n0 0 0\n",
        "POINTS",
    ),
    (
        "cells.vtk",
        "# vtk DataFile Version 4.2\n\nASCII\nDATASET UNSTRUCTURED_GRID\nPOINTS 1 float\n0 0 0\nCELLS 1 2\n9 0\n",
        "cell 0",
    ),
    ("cut.vtk", "# vtk DataFile Version 4.2\n\nBINARY\nDATASET POLYDATA\nPOINTS 2 float\n0123", "POINTS"),
    (
        "far.vtk",
        "# vtk DataFile Version 4.2\n\nASCII\nDATASET UNSTRUCTURED_GRID\nPOINTS 1 float\n0 0 0\nCELLS 1 2\n1 7\nCELL_TYPES 1\n1\n",
        "point 7",
    ),
    (
        "extent.vti",
        "<VTKFile type=\"ImageData\"><ImageData WholeExtent=\"0 99999 0 99999 0 99999\"/></VTKFile>",
        "extent",
    ),
    (
        "huge.vti",
        "<VTKFile type=\"ImageData\"><ImageData WholeExtent=\"0 999 0 999 0 999\"><Piece Extent=\"0 999 0 999 0 999\"><PointData><DataArray Name=\"p\" type=\"Float32\" format=\"ascii\">1 2</DataArray></PointData></Piece></ImageData></VTKFile>",
        "`p`",
    ),
    (
        "deep.vtu",
        "<VTKFile><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a>",
        "inside",
    ),
    ("open.vtu", "<VTKFile type=\"UnstructuredGrid\"><UnstructuredGrid>", "end of the file"),
    ("kind.vtu", "<VTKFile type=\"PUnstructuredGrid\"/>", "PUnstructuredGrid"),
    (
        "packer.vtu",
        "<VTKFile type=\"UnstructuredGrid\" compressor=\"vtkLZMADataCompressor\"/>",
        "vtkLZMADataCompressor",
    ),
    (
        "few.vtu",
        "<VTKFile type=\"UnstructuredGrid\"><UnstructuredGrid><Piece NumberOfPoints=\"9\" NumberOfCells=\"0\"/></UnstructuredGrid></VTKFile>",
        "Points",
    ),
    (
        "bomb.vtu",
        "<VTKFile type=\"UnstructuredGrid\" compressor=\"vtkZLibDataCompressor\"><UnstructuredGrid><Piece NumberOfPoints=\"4\" NumberOfCells=\"0\"><Points><DataArray NumberOfComponents=\"3\" type=\"Float32\" format=\"binary\">AQAAAAAAAPAAAAAACAAAAA==eJwDAAAAAAE=</DataArray></Points></Piece></UnstructuredGrid></VTKFile>",
        "promise",
    ),
    (
        "blocks.vtu",
        "<VTKFile type=\"UnstructuredGrid\" compressor=\"vtkZLibDataCompressor\"><UnstructuredGrid><Piece NumberOfPoints=\"4\" NumberOfCells=\"0\"><Points><DataArray NumberOfComponents=\"3\" type=\"Float32\" format=\"binary\">/////wAAAPAAAAAACAAAAA==</DataArray></Points></Piece></UnstructuredGrid></VTKFile>",
        "bytes",
    ),
    ("nodes.msh", "$MeshFormat\n4.1 0 8\n$EndMeshFormat\n$Nodes\n1 1 1 1\n0 1 0 888888888888\n", "$Nodes"),
    (
        "node.msh",
        "$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n1\n1 0 0 0\n$EndNodes\n$Elements\n1\n1 15 0 2\n$EndElements\n",
        "node 2",
    ),
    ("version.msh", "$MeshFormat\n1.0 0 8\n$EndMeshFormat\n", "version"),
    (
        "corner.stl",
        "solid x\nfacet normal 0 0 0\nouter loop\nvertex 0 0 nan\nvertex 1 0 0\nvertex 0 1 0\nendloop\nendfacet\nendsolid\n",
        "triangle 0",
    ),
    ("cut.stl", "solid x\nfacet normal 0 0 0\nouter loop\nvertex 0 0 0\n", "endsolid"),
    ("index.obj", "v 0 0 0\nf 1 2 3\n", "line 2"),
    (
        "vast.vti",
        "<VTKFile type=\"ImageData\"><ImageData WholeExtent=\"0 999 0 999 0 999\"/></VTKFile>",
        "1000000000 points",
    ),
    ("text.vtu", "hello", "format"),
];

#[test]
fn files_that_lie_are_refused_in_one_sentence_that_names_file_and_part() {
    let folder = Folder::in_memory("lies");
    for (name, text, part) in LIES {
        std::fs::write(folder.at(name), text).unwrap();
        let told = mesh::read(&folder.at(name)).unwrap_err().to_string();
        assert!(told.contains(name) && told.contains(part) && told.lines().count() == 1, "{name}: {told}");
    }
    let told = mesh::read(&folder.at("none.vtu")).unwrap_err().to_string();
    assert!(told.ends_with("none.vtu: expected a file, found nothing; check the path"), "{told}");
}

/// A file of blocks that names these files.
fn blocks(names: &[&str]) -> String {
    let named: String = names.iter().map(|name| format!("<DataSet index=\"0\" file=\"{name}\"/>")).collect();
    format!(
        "<VTKFile type=\"vtkMultiBlockDataSet\"><vtkMultiBlockDataSet><Block>{named}</Block></vtkMultiBlockDataSet></VTKFile>"
    )
}

#[test]
fn the_files_that_a_file_names_are_one_mesh_and_each_may_be_named_once() {
    let folder = Folder::in_memory("parts");
    std::fs::create_dir(folder.at("inner")).unwrap();
    let mut other = small("image_ascii.vti");
    other.point_data.remove(1); // has no U
    mesh::write(&folder.at("inner/cells.vtu"), &cells(), &Options::default()).unwrap();
    mesh::write(&folder.at("image.vti"), &other, &Options::default()).unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.at(name), text).unwrap();
    write("both.vtm", &blocks(&["inner/cells.vtu", "image.vti"]));
    let both = mesh::read(&folder.at("both.vtm")).unwrap();
    assert_eq!((both.point_count(), both.cell_count()), (5 + 6, 2 + 2));
    let arrays: Vec<_> = both.point_data.iter().chain(&both.cell_data).map(|array| array.name.as_str()).collect();
    assert_eq!(arrays, ["p", "region", "block"], "an array that a part lacks is left out");
    assert_eq!((0..4).map(|cell| both.cell_data[1].values.at(cell)).collect::<Vec<_>>(), [0.0, 0.0, 1.0, 1.0]);
    assert_eq!(
        both.shape.cells().unwrap().points(2),
        [5, 6, 9, 8],
        "points of the second part follow those of the first"
    );
    write(
        "list.pvd",
        "<VTKFile type=\"Collection\"><Collection><DataSet timestep=\"1\" file=\"both.vtm\"/></Collection></VTKFile>",
    );
    assert_eq!(mesh::read(&folder.at("list.pvd")).unwrap(), both);
    write("itself.vtm", &blocks(&["itself.vtm"]));
    write("one.vtm", &blocks(&["other.vtm"]));
    write("other.vtm", &blocks(&["one.vtm"]));
    write("twice.vtm", &blocks(&["image.vti", "image.vti"]));
    write("none.vtm", &blocks(&[]));
    write("lost.vtm", &blocks(&["lost.vtu"]));
    write(
        "times.pvd",
        "<VTKFile type=\"Collection\"><Collection><DataSet timestep=\"1\" file=\"image.vti\"/><DataSet timestep=\"soon\" file=\"image.vti\"/></Collection></VTKFile>",
    );
    write("ghosts.pvtu", "<VTKFile type=\"PUnstructuredGrid\"><PUnstructuredGrid GhostLevel=\"2\"/></VTKFile>");
    (0..20).for_each(|level| write(&format!("deep_{level}.vtm"), &blocks(&[&format!("deep_{}.vtm", level + 1)])));
    let refused = [
        ("deep_0.vtm", "at most 8 files that name each other"),
        ("itself.vtm", "named twice"),
        ("one.vtm", "named twice"),
        ("twice.vtm", "named twice"),
        ("none.vtm", "expected names of files"),
        ("lost.vtm", "lost.vtu: expected a file"),
        ("times.pvd", "expected a number"),
        ("ghosts.pvtu", "without ghost cells"),
    ];
    for (name, part) in refused {
        let told = mesh::read(&folder.at(name)).unwrap_err().to_string();
        assert!(told.contains(name) && told.contains(part) && told.lines().count() == 1, "{name}: {told}");
    }
}

/// A parallel file that names these pieces.
fn pieces(names: &[&str]) -> String {
    let named: String = names.iter().map(|name| format!("<Piece Source=\"{name}\"/>")).collect();
    format!(
        "<VTKFile type=\"PUnstructuredGrid\"><PUnstructuredGrid GhostLevel=\"0\">{named}</PUnstructuredGrid></VTKFile>"
    )
}

#[test]
fn blocks_are_numbered_by_their_place_in_the_outermost_list_empty_ones_included() {
    let folder = Folder::in_memory("block-numbers");
    for name in ["a.vtu", "b.vtu", "c.vtu"] {
        mesh::write(&folder.at(name), &cells(), &Options::default()).unwrap();
    }
    let write = |name: &str, text: &str| std::fs::write(folder.at(name), text).unwrap();
    let nothing = "<Piece NumberOfPoints=\"0\" NumberOfCells=\"0\"/>";
    write(
        "empty.vtu",
        &format!("<VTKFile type=\"UnstructuredGrid\"><UnstructuredGrid>{nothing}</UnstructuredGrid></VTKFile>"),
    );
    let found = |name: &str| -> Vec<f64> {
        let mesh = mesh::read(&folder.at(name)).unwrap();
        let block = mesh.cell_data.iter().find(|array| array.name == "block").unwrap();
        (0..mesh.cell_count()).map(|cell| block.values.at(cell)).collect()
    };
    write("ranks.pvtu", &pieces(&["empty.vtu", "a.vtu", "b.vtu"]));
    assert_eq!(found("ranks.pvtu"), [1.0, 1.0, 2.0, 2.0]);
    write("one.pvtu", &pieces(&["empty.vtu", "a.vtu"]));
    assert_eq!(found("one.pvtu"), [1.0, 1.0]);
    write("case.vtm", &blocks(&["ranks.pvtu", "c.vtu"]));
    assert_eq!(
        found("case.vtm"),
        [0.0, 0.0, 0.0, 0.0, 1.0, 1.0],
        "the numbers of the ranks are not those of the blocks"
    );
    write("holes.vtm", &blocks(&["a.vtu", "c.vtu"]).replace("<Block>", "<Block><DataSet index=\"0\"/>"));
    assert_eq!(found("holes.vtm"), [1.0, 1.0, 2.0, 2.0]);
}
