//! The cell types of VTK: name, number of points, dimension, and the corners of their faces.
//!
//! Types and the order of corners are those of the VTK file formats. Cells of higher order begin with the corners of the
//! linear cell; what is drawn or measured uses these corners.

pub(super) const VERTEX: u8 = 1;
pub(super) const POLY_VERTEX: u8 = 2;
pub(super) const LINE: u8 = 3;
pub(super) const POLY_LINE: u8 = 4;
pub(super) const TRIANGLE: u8 = 5;
pub(super) const STRIP: u8 = 6;
pub(super) const POLYGON: u8 = 7;
pub(super) const PIXEL: u8 = 8;
pub(super) const QUAD: u8 = 9;
pub(super) const TETRAHEDRON: u8 = 10;
pub(super) const VOXEL: u8 = 11;
pub(super) const HEXAHEDRON: u8 = 12;
pub(super) const WEDGE: u8 = 13;
pub(super) const PYRAMID: u8 = 14;
pub(super) const POLYHEDRON: u8 = 42;

/// One row of the table.
struct Row {
    kind: u8,
    name: &'static str,
    /// `None` where cells of the type differ.
    points: Option<usize>,
    dimension: usize,
    /// The linear cell with the same corners.
    linear: u8,
}

const fn row(kind: u8, name: &'static str, points: Option<usize>, dimension: usize, linear: u8) -> Row {
    Row { kind, name, points, dimension, linear }
}

const ROWS: &[Row] = &[
    row(0, "empty cell", Some(0), 0, 0),
    row(VERTEX, "vertex", Some(1), 0, VERTEX),
    row(POLY_VERTEX, "poly vertex", None, 0, POLY_VERTEX),
    row(LINE, "line", Some(2), 1, LINE),
    row(POLY_LINE, "poly line", None, 1, POLY_LINE),
    row(TRIANGLE, "triangle", Some(3), 2, TRIANGLE),
    row(STRIP, "triangle strip", None, 2, STRIP),
    row(POLYGON, "polygon", None, 2, POLYGON),
    row(PIXEL, "pixel", Some(4), 2, PIXEL),
    row(QUAD, "quad", Some(4), 2, QUAD),
    row(TETRAHEDRON, "tetrahedron", Some(4), 3, TETRAHEDRON),
    row(VOXEL, "voxel", Some(8), 3, VOXEL),
    row(HEXAHEDRON, "hexahedron", Some(8), 3, HEXAHEDRON),
    row(WEDGE, "wedge", Some(6), 3, WEDGE),
    row(PYRAMID, "pyramid", Some(5), 3, PYRAMID),
    row(15, "pentagonal prism", Some(10), 3, 15),
    row(16, "hexagonal prism", Some(12), 3, 16),
    row(21, "quadratic edge", Some(3), 1, LINE),
    row(22, "quadratic triangle", Some(6), 2, TRIANGLE),
    row(23, "quadratic quad", Some(8), 2, QUAD),
    row(24, "quadratic tetrahedron", Some(10), 3, TETRAHEDRON),
    row(25, "quadratic hexahedron", Some(20), 3, HEXAHEDRON),
    row(26, "quadratic wedge", Some(15), 3, WEDGE),
    row(27, "quadratic pyramid", Some(13), 3, PYRAMID),
    row(28, "biquadratic quad", Some(9), 2, QUAD),
    row(29, "triquadratic hexahedron", Some(27), 3, HEXAHEDRON),
    row(30, "quadratic linear quad", Some(6), 2, QUAD),
    row(31, "quadratic linear wedge", Some(12), 3, WEDGE),
    row(32, "biquadratic quadratic wedge", Some(18), 3, WEDGE),
    row(33, "biquadratic quadratic hexahedron", Some(24), 3, HEXAHEDRON),
    row(34, "biquadratic triangle", Some(7), 2, TRIANGLE),
    row(35, "cubic line", Some(4), 1, LINE),
    row(36, "quadratic polygon", None, 2, 36),
    row(37, "triquadratic pyramid", Some(19), 3, PYRAMID),
    row(POLYHEDRON, "polyhedron", None, 3, POLYHEDRON),
    row(68, "Lagrange curve", None, 1, LINE),
    row(69, "Lagrange triangle", None, 2, TRIANGLE),
    row(70, "Lagrange quad", None, 2, QUAD),
    row(71, "Lagrange tetrahedron", None, 3, TETRAHEDRON),
    row(72, "Lagrange hexahedron", None, 3, HEXAHEDRON),
    row(73, "Lagrange wedge", None, 3, WEDGE),
    row(74, "Lagrange pyramid", None, 3, PYRAMID),
];

fn find(kind: u8) -> Option<&'static Row> {
    ROWS.iter().find(|row| row.kind == kind)
}

/// `hexahedron`
pub fn name(kind: u8) -> String {
    find(kind).map_or_else(|| format!("cell of type {kind}"), |row| row.name.to_owned())
}

/// The number of points of each cell of a type; `None` where cells differ or the type is not known.
pub fn points(kind: u8) -> Option<usize> {
    find(kind)?.points
}

/// 0 for points, 1 for lines, 2 for surfaces, 3 for volumes; `None` for types that are not known.
pub fn dimension(kind: u8) -> Option<usize> {
    find(kind).map(|row| row.dimension)
}

/// The faces of a volume cell by the numbers of its corners, the outside to their right hand; none for other cells.
pub(super) fn faces(kind: u8) -> &'static [&'static [usize]] {
    match find(kind).map_or(0, |row| row.linear) {
        TETRAHEDRON => &[&[0, 1, 3], &[1, 2, 3], &[2, 0, 3], &[0, 2, 1]],
        VOXEL => &[&[0, 2, 3, 1], &[4, 5, 7, 6], &[0, 1, 5, 4], &[2, 6, 7, 3], &[0, 4, 6, 2], &[1, 3, 7, 5]],
        HEXAHEDRON => &[&[0, 3, 2, 1], &[4, 5, 6, 7], &[0, 1, 5, 4], &[3, 7, 6, 2], &[0, 4, 7, 3], &[1, 2, 6, 5]],
        WEDGE => &[&[0, 1, 2], &[3, 5, 4], &[0, 3, 4, 1], &[1, 4, 5, 2], &[2, 5, 3, 0]],
        PYRAMID => &[&[0, 3, 2, 1], &[0, 1, 4], &[1, 2, 4], &[2, 3, 4], &[3, 0, 4]],
        15 => &[
            &[0, 4, 3, 2, 1],
            &[5, 6, 7, 8, 9],
            &[0, 1, 6, 5],
            &[1, 2, 7, 6],
            &[2, 3, 8, 7],
            &[3, 4, 9, 8],
            &[4, 0, 5, 9],
        ],
        16 => &[
            &[0, 5, 4, 3, 2, 1],
            &[6, 7, 8, 9, 10, 11],
            &[0, 1, 7, 6],
            &[1, 2, 8, 7],
            &[2, 3, 9, 8],
            &[3, 4, 10, 9],
            &[4, 5, 11, 10],
            &[5, 0, 6, 11],
        ],
        _ => &[],
    }
}

/// The polygons of a surface cell by the numbers of its corners, in the order of its points; none for other cells.
pub(super) fn polygons(kind: u8, points: usize) -> Vec<Vec<usize>> {
    match find(kind).map_or(0, |row| row.linear) {
        TRIANGLE if points >= 3 => vec![vec![0, 1, 2]],
        QUAD if points >= 4 => vec![vec![0, 1, 2, 3]],
        PIXEL if points >= 4 => vec![vec![0, 1, 3, 2]],
        POLYGON if points >= 3 => vec![(0..points).collect()],
        36 if points >= 6 => vec![(0..points / 2).collect()],
        STRIP => {
            let turned = |first: usize| if first.is_multiple_of(2) { [0, 1, 2] } else { [1, 0, 2] };
            (0..points.saturating_sub(2)).map(|first| turned(first).map(|step| first + step).to_vec()).collect()
        }
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_faces_of_a_volume_cell_close_and_turn_the_same_way() {
        for row in ROWS.iter().filter(|row| row.dimension == 3 && row.kind == row.linear && row.kind != POLYHEDRON) {
            let mut edges: Vec<[usize; 2]> = Vec::new();
            for face in faces(row.kind) {
                edges.extend((0..face.len()).map(|place| [face[place], face[(place + 1) % face.len()]]));
            }
            for &[one, other] in &edges {
                assert_eq!(edges.iter().filter(|&&edge| edge == [one, other]).count(), 1, "{}", row.name);
                assert!(edges.contains(&[other, one]), "{}: {one} {other}", row.name);
            }
            assert_eq!(edges.iter().flatten().max().map(|&last| last + 1), row.points, "{}", row.name);
        }
    }
}
