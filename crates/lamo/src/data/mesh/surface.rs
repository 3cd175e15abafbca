//! The surface of a mesh: the faces that one volume cell has, the polygons of surface cells, and the edges of a flat mesh.

use super::kinds;
use super::mesh::{Cells, Mesh, short};
use crate::error::Refusal;
use crate::files::memory;
use std::collections::HashMap;

/// Where a mesh ends.
#[derive(Clone, Debug, PartialEq)]
pub struct Boundary {
    /// Three points each; an edge is a triangle whose last two corners are one point.
    pub triangles: Vec<[u32; 3]>,
    /// The cell of each triangle; empty for edges.
    pub owners: Vec<u32>,
    /// 2 for faces and polygons, 1 for edges.
    pub dimension: usize,
}

/// The boundary of volume cells where there are any; else the surface cells, or with `edges` their boundary.
pub fn boundary(cells: &Cells, edges: bool) -> Result<Boundary, Refusal> {
    ends(cells, edges, |polygons| polygons)
}

/// The same for a mesh with these cells: where its pieces meet there is no boundary.
pub fn boundary_of(mesh: &Mesh, cells: &Cells, edges: bool) -> Result<Boundary, Refusal> {
    if mesh.seams.is_empty() {
        return boundary(cells, edges);
    }
    let welded = welded(&mesh.shape.positions().map_err(|reason| short(&reason))?);
    ends(cells, edges, |polygons| off_seams(polygons, &welded, &mesh.seams))
}

/// Of each point the first point with the same coordinates.
fn welded(positions: &[f64]) -> Vec<u32> {
    let mut first: HashMap<[u64; 3], u32> = HashMap::new();
    let places = positions.chunks_exact(3).zip(0..);
    // 0.0 is added because -0.0 is the same place as 0.0.
    places.map(|(at, point)| *first.entry([0, 1, 2].map(|axis| (at[axis] + 0.0).to_bits())).or_insert(point)).collect()
}

/// Polygons without those that two pieces have at one place. Two of one piece stay: a crack has two sides.
fn off_seams(polygons: Vec<Polygon>, welded: &[u32], seams: &[u32]) -> Vec<Polygon> {
    let key = |polygon: &[u32]| {
        let mut places: Vec<u32> = polygon.iter().map(|&point| welded[point as usize]).collect();
        places.sort_unstable();
        places
    };
    let piece = |polygon: &[u32]| polygon.first().map_or(0, |point| seams.partition_point(|first| first <= point));
    let mut owners: HashMap<Vec<u32>, (usize, bool)> = HashMap::new();
    for (_, polygon) in &polygons {
        let (owner, several) = owners.entry(key(polygon)).or_insert((piece(polygon), false));
        *several |= *owner != piece(polygon);
    }
    polygons.into_iter().filter(|(_, polygon)| !owners[&key(polygon)].1).collect()
}

/// The boundary; `outer` leaves out what lies between two pieces.
fn ends(cells: &Cells, edges: bool, outer: impl Fn(Vec<Polygon>) -> Vec<Polygon>) -> Result<Boundary, Refusal> {
    let has = |dimension| cells.kinds.iter().any(|&kind| kinds::dimension(kind) == Some(dimension));
    if has(3) {
        return Ok(fan(&outer(faces_of_one_cell(cells)?)));
    }
    let polygons = polygons(cells)?;
    if !edges {
        return Ok(fan(&polygons));
    }
    let mut uses: HashMap<[u32; 2], (u32, [u32; 2])> = HashMap::new();
    for (_, polygon) in &polygons {
        for place in 0..polygon.len() {
            let edge = [polygon[place], polygon[(place + 1) % polygon.len()]];
            let key = [edge[0].min(edge[1]), edge[0].max(edge[1])];
            uses.entry(key).or_insert((0, edge)).0 += 1;
        }
    }
    let single = uses.into_values().filter(|(count, _)| *count == 1).map(|(_, edge)| (0, edge.to_vec()));
    let mut single = outer(single.collect());
    single.sort_unstable(); // the order of a hash map changes from run to run
    let triangles = single.into_iter().map(|(_, edge)| [edge[0], edge[1], edge[1]]).collect();
    Ok(Boundary { triangles, owners: Vec::new(), dimension: 1 })
}

/// A cell and the points of a polygon of it.
type Polygon = (u32, Vec<u32>);

fn polygons(cells: &Cells) -> Result<Vec<Polygon>, Refusal> {
    let mut found = memory::reserve(cells.len()).map_err(|reason| short(&reason))?;
    for cell in 0..cells.len() {
        let points = cells.points(cell);
        let corners = kinds::polygons(cells.kinds[cell], points.len());
        let polygon = |corners: Vec<usize>| (cell as u32, corners.into_iter().map(|corner| points[corner]).collect());
        found.extend(corners.into_iter().map(polygon));
    }
    Ok(found)
}

/// Faces that a single cell has, in the order of the cells.
fn faces_of_one_cell(cells: &Cells) -> Result<Vec<Polygon>, Refusal> {
    let mut faces: Vec<Polygon> = Vec::new();
    let mut seen: HashMap<Vec<u32>, usize> = HashMap::new();
    let mut shared: Vec<bool> = Vec::new();
    for cell in 0..cells.len() {
        let points = cells.points(cell);
        let own = match cells.kinds[cell] {
            kinds::POLYHEDRON => cells.faces(cell).into_iter().map(<[u32]>::to_vec).collect(),
            kind => {
                let corner = |&corner: &usize| points.get(corner).copied().unwrap_or(0);
                kinds::faces(kind).iter().map(|face| face.iter().map(corner).collect()).collect::<Vec<Vec<u32>>>()
            }
        };
        for face in own {
            let mut key = face.clone();
            key.sort_unstable();
            match seen.get(&key) {
                Some(&other) => shared[other] = true,
                None => {
                    seen.insert(key, faces.len());
                    faces.push((cell as u32, face));
                    shared.push(false);
                }
            }
        }
    }
    Ok(faces.into_iter().zip(shared).filter(|(_, shared)| !shared).map(|(face, _)| face).collect())
}

/// Triangles from the first corner of each polygon.
fn fan(polygons: &[Polygon]) -> Boundary {
    let (mut triangles, mut owners) = (Vec::new(), Vec::new());
    for (cell, polygon) in polygons {
        let first = polygon.first().copied().unwrap_or(0);
        triangles.extend(polygon.windows(2).skip(1).map(|pair| [first, pair[0], pair[1]]));
        owners.resize(triangles.len(), *cell);
    }
    Boundary { triangles, owners, dimension: 2 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::mesh::{Shape, UNTURNED};

    fn lattice(dimensions: [usize; 3]) -> Cells {
        let shape = Shape::Image { dimensions, origin: [0.0; 3], spacing: [1.0; 3], direction: UNTURNED };
        shape.cells().unwrap().into_owned()
    }

    #[test]
    fn the_surface_of_a_box_has_the_squares_of_its_sides() {
        let found = boundary(&lattice([4, 3, 5]), false).unwrap();
        assert_eq!(found.triangles.len(), 2 * 2 * (3 * 2 + 3 * 4 + 2 * 4));
        assert_eq!(found.dimension, 2);
    }

    #[test]
    fn a_flat_mesh_ends_at_its_edges() {
        let cells = lattice([4, 3, 1]);
        assert_eq!(boundary(&cells, false).unwrap().triangles.len(), 2 * 6);
        let edges = boundary(&cells, true).unwrap();
        assert_eq!((edges.triangles.len(), edges.dimension), (2 * (3 + 2), 1));
        assert!(edges.triangles.iter().all(|[_, to, same]| to == same));
    }
}
