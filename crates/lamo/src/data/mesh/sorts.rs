//! The cells of surface files: vertices, lines, polygons and strips, each sort in a list of its own.

use super::kinds::{self, LINE, PIXEL, POLY_LINE, POLY_VERTEX, POLYGON, QUAD, STRIP, TRIANGLE, VERTEX};
use super::mesh::Cells;
use crate::error::{Refusal, require};

/// The sorts by their names in XML, in the order in which the data of cells stand.
pub(super) const SORTS: [&str; 4] = ["Verts", "Lines", "Polys", "Strips"];

/// The type of a cell of a surface file by its sort and its number of points.
pub(super) fn surface_kind(sort: &str, points: usize) -> u8 {
    match (sort, points) {
        ("Verts", 1) => VERTEX,
        ("Verts", _) => POLY_VERTEX,
        ("Lines", 2) => LINE,
        ("Lines", _) => POLY_LINE,
        ("Strips", _) => STRIP,
        (_, 3) => TRIANGLE,
        (_, 4) => QUAD,
        _ => POLYGON,
    }
}

/// Cells by the sorts of a surface file, and of each of its cells the number in the mesh.
pub(super) fn sorted(cells: &Cells) -> Result<([Cells; 4], Vec<usize>), Refusal> {
    let mut sorts = [0; 4].map(|_| Cells::new());
    let mut numbers: [Vec<usize>; 4] = Default::default();
    for cell in 0..cells.len() {
        let kind = cells.kinds[cell];
        let sort = match kind {
            VERTEX | POLY_VERTEX => 0,
            LINE | POLY_LINE => 1,
            TRIANGLE | POLYGON | QUAD | PIXEL => 2,
            STRIP => 3,
            _ => 4,
        };
        require(sort < 4, || {
            let (expected, found) = ("points, lines, polygons and strips", kinds::name(kind));
            Refusal::new(format!("cell {cell}"), expected, format!("a {found}"))
                .advise("write .vtu, which holds any cells")
        })?;
        let points = cells.points(cell);
        match kind {
            PIXEL => sorts[sort].push(QUAD, [0, 1, 3, 2].map(|place: usize| points[place])),
            _ => sorts[sort].push(kind, points.iter().copied()),
        }
        numbers[sort].push(cell);
    }
    Ok((sorts, numbers.concat()))
}
