//! Folders of mesh files: their cells are kept and drawn, training takes some points of each, and predictions come in pieces.

use crate::support::{Folder, contains};
use std::fmt::Write as _;

const TINY: &str = "--set=model.settings={ width = 16, depth = 2, slice_heads = 2, tokens = 4, states = 4, mlp_ratio = 1, head_width = 8, groups = 1 }";

/// A sheet of `side` × `side` points as triangles, flat or bent, with a field on it, as a VTK file.
fn sheet(folder: &Folder, name: &str, side: usize, bend: f64) {
    let (mut points, mut values, mut cells) = (String::new(), String::new(), String::new());
    let count = side * side;
    for point in 0..count {
        let [x, y] = [point % side, point / side].map(|at| at as f64 / (side - 1) as f64);
        writeln!(points, "{x} {y} {}", bend * (3.0 * x).sin() * y).unwrap();
        writeln!(values, "{}", 1.0 + bend * x + x * y).unwrap();
    }
    for row in 1..side {
        for column in 1..side {
            let last = row * side + column;
            let [first, beside, below] = [last - side - 1, last - side, last - 1];
            writeln!(cells, "3 {first} {beside} {last}\n3 {first} {last} {below}").unwrap();
        }
    }
    let triangles = 2 * (side - 1) * (side - 1);
    let types = "5\n".repeat(triangles);
    folder.write(
        &format!("{name}.vtk"),
        format!(
            "# vtk DataFile Version 3.0\nsheet\nASCII\nDATASET UNSTRUCTURED_GRID\nPOINTS {count} double\n{points}CELLS {triangles} {}\n\
             {cells}CELL_TYPES {triangles}\n{types}POINT_DATA {count}\nSCALARS p double 1\nLOOKUP_TABLE default\n{values}",
            4 * triangles
        ),
    );
}

/// The layouts of the first card of a report.
fn layouts(page: &str) -> serde_json::Value {
    let (_, rest) = page.split_once("<script type=\"application/json\">").unwrap();
    let values: serde_json::Value = serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap();
    values["layouts"].clone()
}

#[test]
fn cells_are_kept_counted_and_drawn() {
    let folder = Folder::new("cells");
    for case in 0..6 {
        sheet(&folder, &format!("flat_{case}"), 5 + case % 3, 0.0);
        sheet(&folder, &format!("bent_{case}"), 6, 0.2 + 0.1 * case as f64);
    }
    let import = |files: &str, out: &str| {
        folder.ok(&["data", "import", files, "--output=p", "--test=2", &format!("--out={out}")]);
    };
    let train = |set: &str, out: &str, points: &str| {
        let recipe = ["--set=train.epochs=2", "--set=train.batch=2", points, out];
        folder.ok(&[&["train", set, TINY][..], &recipe].concat());
    };
    import("flat_*.vtk", "flat");
    contains(&folder.ok(&["data", "check", "flat"]), &["308 cells, drawn as 308 triangles\n"]);
    train("flat", "--out=run", "--set=train.points=20");
    let drawn = layouts(&folder.text("run/report.html"));
    assert!(drawn.as_array().unwrap().iter().all(|layout| layout["kind"] == "triangles"), "{drawn}");
    assert_eq!(drawn[0]["positions"].as_array().map(Vec::len), Some(2));
    assert!(!folder.text("run/report.html").contains("Drag a surface"));
    import("bent_*.vtk", "bent");
    let checked = folder.ok_json(&["data", "check", "bent", "--json"]);
    assert_eq!((&checked["cells"]["cells"], &checked["cells"]["triangles"]), (&300.into(), &50.into()));
    assert_eq!(checked["cells"]["common"], true);
    train("bent", "--out=surface", "--set=train.points=0");
    let page = folder.text("surface/report.html");
    let drawn = layouts(&page);
    assert_eq!(drawn[0]["positions"].as_array().map(Vec::len), Some(3), "{drawn}");
    contains(&page, &["Drag a surface to turn it", "class=\"view solid\"", "z upwards, shaded"]);
    assert!(folder.is_png("surface/pictures/best.png"));
    // Predictions in pieces are those of all points.
    for (output, memory) in [("whole.npy", &[][..]), ("pieces.npy", &["--memory=1MB"]), ("out.vtk", &["--memory=1GB"])]
    {
        let output = format!("--output={output}");
        folder.ok(&[&["predict", "surface", "--input=bent_3.vtk", &output][..], memory].concat());
    }
    let values = |name: &str| {
        folder.read(name)[128..].chunks(4).map(|b| f32::from_le_bytes(b.try_into().unwrap())).collect::<Vec<_>>()
    };
    let near = |(one, other): (&f32, &f32)| (one - other).abs() < 1e-4;
    let (whole, pieces) = (values("whole.npy"), values("pieces.npy"));
    assert!(whole.len() == 36 && pieces.len() == 36 && whole.iter().zip(&pieces).all(near), "{whole:?} {pieces:?}");
    contains(&String::from_utf8_lossy(&folder.read("out.vtk")), &["p_predicted", "p_error"]);
    let refusal = folder.fails(&["predict", "surface", "--input=bent_3.vtk", "--memory=2kB"]);
    contains(&refusal, &["--memory: expected at least", "found 2.0 kB"]);
}

/// A structured file of `columns` × `rows` points with a field on the points and one on the cells.
fn lattice(folder: &Folder, name: &str, [columns, rows]: [usize; 2], phase: f64) {
    let count = columns * rows;
    let at = |point: usize| [point % columns, point / columns].map(|side| side as f64 / columns as f64);
    let value = |point: usize| at(point)[0].sin() * phase + at(point)[1];
    let points: String = (0..count).map(|point| format!("{} {} 0\n", at(point)[0], at(point)[1])).collect();
    let values: String = (0..count).map(|point| format!("{}\n", value(point))).collect();
    let cells: String = (0..(columns - 1) * (rows - 1)).map(|cell| format!("{}\n", phase + cell as f64)).collect();
    folder.write(
        &format!("{name}.vtk"),
        format!(
            "# vtk DataFile Version 3.0\nlattice\nASCII\nDATASET STRUCTURED_GRID\nDIMENSIONS {columns} {rows} 1\nPOINTS {count} double\n\
             {points}POINT_DATA {count}\nSCALARS p double 1\nLOOKUP_TABLE default\n{values}SCALARS a double 1\nLOOKUP_TABLE default\n{values}\
             CELL_DATA {}\nSCALARS q double 1\nLOOKUP_TABLE default\n{cells}",
            (columns - 1) * (rows - 1)
        ),
    );
}

#[test]
fn a_structured_grid_is_a_plane_and_another_one_is_predicted_with_a_warning() {
    let folder = Folder::new("structured");
    (0..6).for_each(|case| lattice(&folder, &format!("case_{case}"), [6, 4], 1.0 + case as f64));
    lattice(&folder, "finer", [12, 8], 2.5);
    contains(
        &folder.ok(&["data", "import", "case_*.vtk", "--input=a", "--output=p", "--test=2", "--out=plane"]),
        &["p: 4 rows, 6 columns in each of 6 files"],
    );
    let tiny = "--set=model.settings={ width = 8, depth = 1, slice_heads = 2, tokens = 4 }";
    folder.ok(&[
        "train",
        "plane",
        "--model=transolver",
        tiny,
        "--set=train.epochs=1",
        "--set=train.batch=2",
        "--out=run",
    ]);
    let same = folder.run(&["predict", "run", "--input=case_5.vtk", "--output=same.vtk"]);
    assert_eq!((same.status.success(), String::from_utf8_lossy(&same.stderr).as_ref()), (true, ""));
    let finer = folder.run(&["predict", "run", "--input=finer.vtk", "--output=finer_out.vtk"]);
    let told = String::from_utf8_lossy(&finer.stderr).into_owned();
    assert!(finer.status.success(), "{told}");
    contains(
        &told,
        &["warning: the model was trained on a plane of 4 x 6 points and predicts on a plane of 8 x 12 points"],
    );
    contains(&String::from_utf8_lossy(&folder.read("finer_out.vtk")), &["p_predicted", "p_error"]);
    // An evaluation on another grid says so in its receipt.
    (0..4).for_each(|case| lattice(&folder, &format!("fine_{case}"), [12, 8], 0.5 + case as f64));
    folder.ok(&["data", "import", "fine_*.vtk", "--input=a", "--output=p", "--train=0", "--test=4", "--out=fine"]);
    let receipt = folder.ok_json(&["evaluate", "run", "--data=fine", "--json"]);
    assert_eq!(receipt["trained_on"], "plane of 4 x 6 points");
    assert!(folder.ok_json(&["evaluate", "run", "--json"]).get("trained_on").is_none());
}

#[test]
fn cells_that_are_points_are_filled_and_points_in_space_turn() {
    let folder = Folder::new("filled");
    (0..6).for_each(|case| lattice(&folder, &format!("case_{case}"), [6, 4 + case % 2], 1.0 + case as f64));
    folder.ok(&["data", "import", "case_*.vtk", "--on=cells", "--input=a", "--output=q", "--test=2", "--out=cells"]);
    contains(&folder.ok(&["data", "check", "cells"]), &["105 cells, drawn as 210 triangles"]);
    let recipe = ["--set=train.epochs=1", "--set=train.batch=2"];
    folder.ok(&[&["train", "cells", TINY, "--out=run"][..], &recipe].concat());
    let drawn = layouts(&folder.text("run/report.html"));
    let sample = if drawn[0]["points"] == 15 { 15 } else { 20 };
    assert_eq!(
        (drawn[0]["kind"].as_str(), drawn[0]["count"].as_u64()),
        (Some("triangles"), Some(4 * sample)),
        "{drawn}"
    );
    // Two tables of points in space, without cells.
    for case in 0..4 {
        let row = |point: usize| {
            let turn = point as f64 + case as f64;
            format!("{},{},{},{}\n", turn.cos(), turn.sin(), 0.1 * turn, turn.cos() + 2.0)
        };
        let rows: String = (0..20 + case).map(row).collect();
        folder.write(&format!("cloud_{case}.csv"), format!("x [m],y [m],z [m],p (Pa)\n{rows}"));
    }
    let positions = "--positions=cloud_*.csv:x [m],y [m],z [m]";
    let output = "--output=p=cloud_*.csv:p (Pa)";
    folder.ok(&["data", "import", "--grid=cloud", positions, output, "--test=1", "--out=cloud"]);
    folder.ok(&["data", "check", "cloud"]);
    assert!(folder.is_png("cloud-check.png"));
    folder.ok(&[&["train", "cloud", TINY, "--out=space"][..], &recipe].concat());
    let page = folder.text("space/report.html");
    contains(&page, &["class=\"view solid\"", "z upwards, darker at the back"]);
    assert_eq!(layouts(&page)[0]["triangles"], "");
}
