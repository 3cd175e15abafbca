//! A mesh in memory: points in space, cells that join them, and named arrays on points, on cells and on the whole.
//!
//! The cells are those of VTK: `kinds[i]` is the type of cell `i`, and `connectivity[offsets[i]..offsets[i + 1]]` are its
//! points. Images and structured grids keep their few numbers; their points and cells are made when asked for.

use super::kinds::{self, HEXAHEDRON, LINE, POLYHEDRON, QUAD, VERTEX};
use super::numbers::Numbers;
use crate::error::{Kind, Refusal, require};
use crate::files::memory;
use std::borrow::Cow;
use std::io;

/// Numbers with a name, one group of `components` per point or cell.
#[derive(Clone, Debug, PartialEq)]
pub struct DataArray {
    /// Its name.
    pub name: String,
    /// Numbers per point or cell.
    pub components: usize,
    /// `[points or cells, components]`
    pub values: Numbers,
}

/// Cells by type, offsets and connectivity.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cells {
    /// The VTK type of each cell.
    pub kinds: Vec<u8>,
    /// Where the points of each cell begin, and the end of the last one: one number more than there are cells.
    pub offsets: Vec<usize>,
    /// The points of all cells.
    pub connectivity: Vec<u32>,
    /// Faces of the polyhedra; `None` without polyhedra.
    pub faces: Option<Faces>,
}

/// Faces of polyhedra: of each cell the number of faces, then of each face the number of its points and the points.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Faces {
    /// Where the faces of each cell begin in `stream`, and the end of the last one. A cell of another type has none.
    pub offsets: Vec<usize>,
    /// Numbers of faces, numbers of points, points.
    pub stream: Vec<u32>,
}

/// Where the points are and how cells join them.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// Points anywhere, joined by any cells.
    Unstructured {
        /// `[points, 3]`
        points: Numbers,
        /// The cells.
        cells: Cells,
    },
    /// Points anywhere, joined by lines, polygons and strips: the surface files of VTK. The cells are in the order of these
    /// files: vertices, lines, polygons, strips.
    Surface {
        /// `[points, 3]`
        points: Numbers,
        /// The cells.
        cells: Cells,
    },
    /// A lattice of equal boxes; the first axis is the fastest.
    Image {
        /// Points along each axis.
        dimensions: [usize; 3],
        /// The first point.
        origin: [f64; 3],
        /// Distance of points along each axis.
        spacing: [f64; 3],
        /// Rows of the matrix that turns the axes; its columns are their directions.
        direction: [[f64; 3]; 3],
    },
    /// A lattice of boxes of different sizes.
    Rectilinear {
        /// The coordinates along each axis.
        coordinates: [Numbers; 3],
    },
    /// A lattice of points anywhere.
    Structured {
        /// Points along each axis; the first is the fastest.
        dimensions: [usize; 3],
        /// `[points, 3]`
        points: Numbers,
    },
}

/// A mesh with its arrays.
#[derive(Clone, Debug)]
pub struct Mesh {
    /// Points and cells.
    pub shape: Shape,
    /// Arrays on the points.
    pub point_data: Vec<DataArray>,
    /// Arrays on the cells.
    pub cell_data: Vec<DataArray>,
    /// Arrays that belong to neither, of any length.
    pub field_data: Vec<DataArray>,
    /// The first point of each piece after the first, where the mesh was read from several pieces: points of two pieces at one place
    /// are one point of the body.
    pub seams: Vec<u32>,
}

impl PartialEq for Mesh {
    /// Whether points, cells and arrays are equal; a mesh that is written as one piece is the mesh that was read from several.
    fn eq(&self, other: &Mesh) -> bool {
        let Mesh { shape, point_data, cell_data, field_data, seams: _ } = self;
        (shape, point_data, cell_data, field_data)
            == (&other.shape, &other.point_data, &other.cell_data, &other.field_data)
    }
}

/// Points at most of a lattice without arrays.
const MOST_WITHOUT_DATA: usize = 1 << 24;

/// The matrix that leaves the axes of an image where they are.
pub const UNTURNED: [[f64; 3]; 3] = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];

impl Cells {
    /// No cells yet.
    pub fn new() -> Cells {
        Cells { offsets: vec![0], ..Cells::default() }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.kinds.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty()
    }

    /// The points of one cell.
    pub fn points(&self, cell: usize) -> &[u32] {
        &self.connectivity[self.offsets[cell]..self.offsets[cell + 1]]
    }

    /// Adds a cell.
    pub fn push(&mut self, kind: u8, points: impl IntoIterator<Item = u32>) {
        self.kinds.push(kind);
        self.connectivity.extend(points);
        self.offsets.push(self.connectivity.len());
    }

    /// The faces of a polyhedron, each with its points; none of other cells.
    pub fn faces(&self, cell: usize) -> Vec<&[u32]> {
        let Some(faces) = &self.faces else { return Vec::new() };
        let stream = &faces.stream[faces.offsets[cell]..faces.offsets[cell + 1]];
        let mut found = Vec::new();
        let mut rest = stream.get(1..).unwrap_or_default();
        while let Some((&count, after)) = rest.split_first() {
            let (points, after) = after.split_at((count as usize).min(after.len()));
            found.push(points);
            rest = after;
        }
        found
    }

    /// Refuses cells that do not fit themselves or the points.
    pub fn check(&self, points: usize) -> Result<(), Refusal> {
        require(self.offsets.len() == self.len() + 1, || {
            Refusal::new("cells", format!("{} offsets", self.len() + 1), self.offsets.len().to_string())
        })?;
        let ends = self.offsets.first() == Some(&0) && self.offsets.last() == Some(&self.connectivity.len());
        require(ends && self.offsets.is_sorted(), || {
            let end = self.offsets.last().copied().unwrap_or(0);
            let expected = format!("offsets that rise to {}, the length of the connectivity", self.connectivity.len());
            Refusal::new("cells", expected, format!("a last offset of {end}, or offsets that fall"))
        })?;
        if let Some(&wrong) = self.connectivity.iter().find(|&&point| point as usize >= points) {
            return Err(Refusal::new("cells", format!("points below {points}"), format!("point {wrong}")));
        }
        for cell in 0..self.len() {
            let (kind, count) = (self.kinds[cell], self.points(cell).len());
            if let Some(expected) = kinds::points(kind).filter(|&expected| expected != count) {
                let name = kinds::name(kind);
                let expected = format!("{expected} points of a {name}");
                return Err(Refusal::new(format!("cell {cell}"), expected, count.to_string()));
            }
        }
        self.check_faces(points)
    }

    fn check_faces(&self, points: usize) -> Result<(), Refusal> {
        let polyhedra = self.kinds.iter().filter(|&&kind| kind == POLYHEDRON).count();
        let Some(faces) = &self.faces else {
            return require(polyhedra == 0, || Refusal::new("polyhedra", "their faces", "none"));
        };
        let ends = faces.offsets.len() == self.len() + 1 && faces.offsets.first() == Some(&0);
        let sorted = faces.offsets.is_sorted() && faces.offsets.last() == Some(&faces.stream.len());
        require(ends && sorted, || {
            Refusal::new("polyhedra", "offsets of faces that rise to the end of the faces", "offsets that do not")
        })?;
        for cell in 0..self.len() {
            let stream = &faces.stream[faces.offsets[cell]..faces.offsets[cell + 1]];
            require(stream.is_empty() == (self.kinds[cell] != POLYHEDRON), || {
                let name = kinds::name(self.kinds[cell]);
                Refusal::new(
                    format!("cell {cell}"),
                    "faces of each polyhedron and of no other cell",
                    format!("a {name}"),
                )
            })?;
            check_stream(stream, points).map_err(|refusal| refusal.within(format!("cell {cell}")))?;
        }
        Ok(())
    }
}

/// Refuses a stream of faces whose counts lead beyond its end, or whose points do not exist.
fn check_stream(stream: &[u32], points: usize) -> Result<(), Refusal> {
    let Some((&faces, mut rest)) = stream.split_first() else { return Ok(()) };
    let mut found = 0;
    while let Some((&count, after)) = rest.split_first() {
        let (face, after) = after.split_at_checked(count as usize).ok_or_else(|| {
            Refusal::new("faces", format!("{count} points of face {found}"), format!("{} numbers left", after.len()))
        })?;
        if let Some(wrong) = face.iter().find(|&&point| point as usize >= points) {
            return Err(Refusal::new("faces", format!("points below {points}"), format!("point {wrong}")));
        }
        (rest, found) = (after, found + 1);
    }
    require(found == faces, || Refusal::new("faces", format!("{faces} faces"), found.to_string()))
}

impl Shape {
    /// How many points there are.
    pub fn point_count(&self) -> usize {
        match self {
            Shape::Unstructured { points, .. } | Shape::Surface { points, .. } | Shape::Structured { points, .. } => {
                points.len() / 3
            }
            Shape::Image { dimensions, .. } => dimensions.iter().product(),
            Shape::Rectilinear { coordinates } => coordinates.iter().map(Numbers::len).product(),
        }
    }

    /// Points along each axis of a lattice.
    pub fn dimensions(&self) -> Option<[usize; 3]> {
        match self {
            Shape::Unstructured { .. } | Shape::Surface { .. } => None,
            Shape::Image { dimensions, .. } | Shape::Structured { dimensions, .. } => Some(*dimensions),
            Shape::Rectilinear { coordinates } => {
                let [x, y, z] = coordinates;
                Some([x.len(), y.len(), z.len()])
            }
        }
    }

    /// How many cells there are.
    pub fn cell_count(&self) -> usize {
        match self {
            Shape::Unstructured { cells, .. } | Shape::Surface { cells, .. } => cells.len(),
            lattice => lattice.dimensions().map_or(0, lattice_cells),
        }
    }

    /// `[points, 3]`
    pub fn positions(&self) -> io::Result<Vec<f64>> {
        let [width, height, _] = self.dimensions().unwrap_or([1; 3]);
        match self {
            Shape::Unstructured { points, .. } | Shape::Surface { points, .. } | Shape::Structured { points, .. } => {
                points.to_f64()
            }
            Shape::Image { origin, spacing, direction, .. } => {
                let mut positions = memory::reserve(3 * self.point_count())?;
                for point in 0..self.point_count() {
                    let index = [point % width, point / width % height, point / width / height];
                    let along = [0, 1, 2].map(|axis| index[axis] as f64 * spacing[axis]);
                    for axis in 0..3 {
                        let turned: f64 = (0..3).map(|other| direction[axis][other] * along[other]).sum();
                        positions.push(origin[axis] + turned);
                    }
                }
                Ok(positions)
            }
            Shape::Rectilinear { coordinates: [x, y, z] } => {
                let mut positions = memory::reserve(3 * self.point_count())?;
                for point in 0..self.point_count() {
                    let (column, row, layer) = (point % width, point / width % height, point / width / height);
                    positions.extend([x.at(column), y.at(row), z.at(layer)]);
                }
                Ok(positions)
            }
        }
    }

    /// The cells; those of a lattice are lines, quads or hexahedra.
    pub fn cells(&self) -> io::Result<Cow<'_, Cells>> {
        match self {
            Shape::Unstructured { cells, .. } | Shape::Surface { cells, .. } => Ok(Cow::Borrowed(cells)),
            lattice => lattice_mesh(lattice.dimensions().unwrap_or([0; 3])).map(Cow::Owned),
        }
    }
}

/// Cells of a lattice: axes with one point do not count.
fn lattice_cells(dimensions: [usize; 3]) -> usize {
    let empty = dimensions.contains(&0);
    if empty { 0 } else { dimensions.iter().map(|&count| (count - 1).max(1)).product() }
}

fn lattice_mesh(dimensions: [usize; 3]) -> io::Result<Cells> {
    let count = lattice_cells(dimensions);
    let axes: Vec<usize> = (0..3).filter(|&axis| dimensions[axis] > 1).collect();
    let strides = [1, dimensions[0], dimensions[0] * dimensions[1]];
    let (kind, corners): (u8, &[[usize; 3]]) = match axes.len() {
        0 => (VERTEX, &[[0; 3]]),
        1 => (LINE, &[[0, 0, 0], [1, 0, 0]]),
        2 => (QUAD, &[[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]]),
        _ => (HEXAHEDRON, &HEXAHEDRON_CORNERS),
    };
    let mut cells = Cells {
        kinds: memory::filled(kind, count)?,
        offsets: memory::reserve(count + 1)?,
        connectivity: memory::reserve(count * corners.len())?,
        faces: None,
    };
    cells.offsets.extend((0..=count).map(|cell| cell * corners.len()));
    let [width, height, _] = dimensions.map(|count| count.saturating_sub(1).max(1));
    for cell in 0..count {
        let index = [cell % width, cell / width % height, cell / width / height];
        let first: usize = (0..3).map(|axis| index[axis] * strides[axis]).sum();
        let step =
            |corner: &[usize; 3]| axes.iter().zip(corner).map(|(&axis, step)| step * strides[axis]).sum::<usize>();
        cells.connectivity.extend(corners.iter().map(|corner| (first + step(corner)) as u32));
    }
    Ok(cells)
}

/// VTK's order of the corners of a hexahedron.
const HEXAHEDRON_CORNERS: [[usize; 3]; 8] =
    [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1], [1, 1, 1], [0, 1, 1]];

impl Mesh {
    /// A mesh without arrays.
    pub fn new(shape: Shape) -> Mesh {
        Mesh { shape, point_data: Vec::new(), cell_data: Vec::new(), field_data: Vec::new(), seams: Vec::new() }
    }

    /// How many points there are.
    pub fn point_count(&self) -> usize {
        self.shape.point_count()
    }

    /// How many cells there are.
    pub fn cell_count(&self) -> usize {
        self.shape.cell_count()
    }

    /// Refuses a mesh whose parts do not fit each other.
    pub fn check(&self) -> Result<(), Refusal> {
        if let Some(dimensions) = self.shape.dimensions() {
            let product =
                dimensions.iter().try_fold(1_u32, |product, &count| product.checked_mul(count.try_into().ok()?));
            require(product.is_some(), || {
                Refusal::new("dimensions", "fewer than 2³² points", format!("{dimensions:?}"))
            })?;
        }
        let (points, cells) = (self.point_count(), self.cell_count());
        require(u32::try_from(points).is_ok(), || Refusal::new("points", "fewer than 2³²", points.to_string()))?;
        match &self.shape {
            Shape::Unstructured { points: values, cells } | Shape::Surface { points: values, cells } => {
                require(values.len().is_multiple_of(3), || whole_points(values))?;
                cells.check(points)?;
            }
            Shape::Structured { dimensions, points: values } => {
                let expected = dimensions.iter().try_fold(3_usize, |product, &count| product.checked_mul(count));
                require(Some(values.len()) == expected, || {
                    Refusal::new("points", format!("{dimensions:?} of 3 numbers"), format!("{} numbers", values.len()))
                })?;
            }
            Shape::Image { .. } | Shape::Rectilinear { .. } => {
                // A few bytes may promise a lattice of any size; numbers on its points or cells are in the file.
                let empty = self.point_data.is_empty() && self.cell_data.is_empty();
                require(!empty || points <= MOST_WITHOUT_DATA, || {
                    let expected = format!("arrays on a lattice of more than {MOST_WITHOUT_DATA} points");
                    Refusal::new("lattice", expected, format!("none on {points} points"))
                })?;
            }
        }
        for (arrays, count, what) in [(&self.point_data, points, "points"), (&self.cell_data, cells, "cells")] {
            for array in arrays {
                let (name, values, components) = (array.name.escape_debug(), array.values.len(), array.components);
                require(components > 0 && Some(values) == count.checked_mul(components), || {
                    let expected = format!("{components} x {count} numbers, as there are {count} {what}");
                    Refusal::new(format!("array `{name}`"), expected, values.to_string())
                })?;
            }
        }
        Ok(())
    }
}

fn whole_points(values: &Numbers) -> Refusal {
    Refusal::new("points", "three coordinates of each", format!("{} numbers", values.len()))
}

/// Memory that the machine does not have, as a refusal.
pub(super) fn short(reason: &io::Error) -> Refusal {
    Refusal::said(reason.to_string()).of(Kind::of_io(reason))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(dimensions: [usize; 3]) -> Shape {
        Shape::Image { dimensions, origin: [1.0, 2.0, 3.0], spacing: [0.5, 1.0, 2.0], direction: UNTURNED }
    }

    #[test]
    fn a_lattice_has_the_points_and_cells_of_its_dimensions() {
        for (dimensions, kind, count) in [
            ([3, 4, 5], HEXAHEDRON, 24),
            ([3, 1, 5], QUAD, 8),
            ([1, 7, 1], LINE, 6),
            ([1, 1, 1], VERTEX, 1),
            ([0, 3, 3], LINE, 0),
        ] {
            let shape = image(dimensions);
            let cells = shape.cells().unwrap();
            assert_eq!((cells.len(), shape.cell_count()), (count, count), "{dimensions:?}");
            assert!(count == 0 || cells.kinds[0] == kind, "{dimensions:?}");
            cells.check(shape.point_count()).unwrap();
            assert_eq!(shape.positions().unwrap().len(), 3 * dimensions.iter().product::<usize>());
        }
        let shape = image([3, 1, 5]);
        let (positions, cells) = (shape.positions().unwrap(), shape.cells().unwrap());
        let corner = |point: u32| positions[3 * point as usize..][..3].to_vec();
        let quad: Vec<_> = cells.points(3).iter().map(|&point| corner(point)).collect();
        assert_eq!(quad, [[1.5, 2.0, 5.0], [2.0, 2.0, 5.0], [2.0, 2.0, 7.0], [1.5, 2.0, 7.0]]);
    }

    #[test]
    fn a_mesh_that_does_not_fit_itself_is_refused_in_one_sentence() {
        let mut cells = Cells::new();
        cells.push(kinds::TRIANGLE, [0, 1, 2]);
        let points = Numbers::F64(vec![0.0; 9]);
        let mut mesh = Mesh::new(Shape::Unstructured { points: points.clone(), cells });
        mesh.check().unwrap();
        mesh.cell_data.push(DataArray { name: "p".into(), components: 2, values: Numbers::F32(vec![0.0; 3]) });
        let told = mesh.check().unwrap_err().to_string();
        assert_eq!(told, "array `p`: expected 2 x 1 numbers, as there are 1 cells, found 3");
        let refused = |kind, list: &[u32]| {
            let mut cells = Cells::new();
            cells.push(kind, list.iter().copied());
            Mesh::new(Shape::Unstructured { points: points.clone(), cells }).check().unwrap_err().to_string()
        };
        assert_eq!(refused(kinds::TRIANGLE, &[0, 1, 3]), "cells: expected points below 3, found point 3");
        assert_eq!(refused(QUAD, &[0, 1, 2]), "cell 0: expected 4 points of a quad, found 3");
        assert_eq!(refused(POLYHEDRON, &[0, 1, 2]), "polyhedra: expected their faces, found none");
    }
}
