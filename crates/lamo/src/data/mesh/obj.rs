//! Wavefront OBJ: points, and polygons and lines between them. Textures, normals and materials are left out.

use super::input::{Opened, shortened};
use super::kinds::{LINE, POLY_LINE, POLYGON, QUAD, TRIANGLE, VERTEX};
use super::mesh::{Cells, DataArray, Mesh, Shape, short};
use super::numbers::Numbers;
use super::sorts::sorted;
use crate::error::{Refusal, require};

/// Words that lines of the format begin with.
const WORDS: &[&str] = &["v", "vt", "vn", "vp", "f", "l", "p", "o", "g", "s", "mtllib", "usemtl"];

/// The first lines that are not comments begin with words of the format.
pub(super) fn sniff(start: &[u8], _size: u64) -> bool {
    let text = String::from_utf8_lossy(start);
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    let mut words = lines.filter_map(|line| line.split_whitespace().next()).take(3).peekable();
    words.peek().is_some() && words.all(|word| WORDS.contains(&word))
}

pub(super) fn read(opened: &Opened) -> Result<Mesh, Refusal> {
    let mut input = opened.whole()?;
    let mut points: Vec<f64> = Vec::new();
    let mut cells = Cells::new();
    let (mut groups, mut group): (Vec<i32>, i32) = (Vec::new(), 0);
    let mut names: Vec<String> = vec![String::new()];
    loop {
        let number = input.line;
        let Some(line) = input.rest_of_line()? else { break };
        let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
        let at = |expected: &str, found: &str| {
            Refusal::new(format!("line {number}"), expected, format!("`{}`", shortened(found)))
        };
        let kind = words.next().unwrap_or_default();
        match kind {
            "v" => {
                let numbers: Option<Vec<f64>> = words.take(3).map(|word| word.parse().ok()).collect();
                points.extend(
                    numbers.filter(|numbers| numbers.len() == 3).ok_or_else(|| at("three coordinates", &line))?,
                );
            }
            "f" | "l" | "p" => {
                let known = points.len() / 3;
                let corners: Option<Vec<u32>> = words.map(|word| corner(word, known)).collect();
                let corners = corners.ok_or_else(|| at(&format!("points from 1 to {known}"), &line))?;
                let kinds = match (kind, corners.len()) {
                    ("f", 3) => TRIANGLE,
                    ("f", 4) => QUAD,
                    ("f", 5..) => POLYGON,
                    ("l", 2) => LINE,
                    ("l", 3..) => POLY_LINE,
                    ("p", 1) => VERTEX,
                    _ => return Err(at("enough points", &line)),
                };
                cells.push(kinds, corners);
                groups.push(group);
            }
            "o" | "g" => {
                let name = words.collect::<Vec<_>>().join(" ");
                let known = names.iter().position(|other| *other == name);
                group = known.unwrap_or(names.len()) as i32;
                if known.is_none() {
                    names.push(name);
                }
            }
            "" => {}
            other => require(line.trim_start().starts_with(other) && !other.contains('\0'), || at("text", &line))?,
        }
    }
    let (sorts, order) = sorted(&cells)?;
    let mut all = Cells::new();
    for sort in &sorts {
        (0..sort.len()).for_each(|cell| all.push(sort.kinds[cell], sort.points(cell).iter().copied()));
    }
    let mut mesh = Mesh::new(Shape::Surface { points: Numbers::F64(points), cells: all });
    if groups.iter().any(|&other| Some(&other) != groups.first()) {
        let values = Numbers::I32(groups).select(1, &order).map_err(|reason| short(&reason))?;
        mesh.cell_data.push(DataArray { name: "group".into(), components: 1, values });
    }
    Ok(mesh)
}

/// The point of `7`, `7/1/2` or `-1`, the last point so far.
fn corner(word: &str, known: usize) -> Option<u32> {
    let number: i64 = word.split('/').next()?.parse().ok()?;
    let point = if number < 0 { number + known as i64 } else { number - 1 };
    (point >= 0 && point < known as i64).then_some(point as u32)
}
