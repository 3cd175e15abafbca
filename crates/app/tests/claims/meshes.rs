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
