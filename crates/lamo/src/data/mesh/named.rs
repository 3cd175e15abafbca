//! The arrays of a mesh by name, as imports and predictions ask for them.
//!
//! ```text
//! points, points-xy, points-x    coordinates; all three, the first two, the first
//! p                              an array on the points; an array on the cells comes averaged to the points
//! cells/p                        an array on the cells, at the cells
//! field/mach                     an array of the whole
//! distance                       distance to the boundary of the mesh: to its faces, or of a flat mesh to its edges
//! normals                        normals of a surface at its points
//! stored/distance                the array that the file holds, where its name is that of a derived one; `distance` is this array, too
//! derived/distance               the distance to the boundary, also where the file holds an array `distance`
//! distance=wall.stl, sdf=body.stl   distance to another surface, of a flat mesh also to a curve; negative inside a closed one
//! scalar=cases.csv:alpha         the number in column `alpha` and the row of this file, whose name is in the first column
//! centres/...                    any of these at the centres of the cells: `centres/points`, `centres/p`, `centres/sdf=body.stl`
//! lattice/...                    any of these of an image or a structured grid with an axis for each axis of the lattice, the last
//!                                axis of VTK first: `lattice/p`, `lattice/centres/p`; axes of one point are left out
//! ```

use super::curve::Curve;
use super::mesh::{DataArray, Mesh, short};
use super::scalars::scalar;
pub(in crate::data) use super::scalars::scalar_names;
use super::surface::{Boundary, boundary_of};
use super::{centres, to_points};
use crate::data::formats::ElementKind;
use crate::error::{Refusal, require};
use crate::files;
use lamo_geometry::Surface;
use std::borrow::Cow;
use std::path::Path;

/// The prefix of arrays at the centres of the cells.
pub const CENTRES: &str = "centres/";
/// The prefix of arrays with the axes of a lattice.
pub const LATTICE: &str = "lattice/";

/// The prefix of arrays of the whole.
pub(in crate::data) const WHOLE: &str = "field/";

/// Arrays that are derived from a mesh alone.
pub(in crate::data) const DERIVED: [&str; 2] = ["distance", "normals"];
/// The prefix of arrays that are derived, also where the file holds one of that name.
pub(in crate::data) const DERIVED_PREFIX: &str = "derived/";
/// The prefix of arrays that the file holds, where their names are those of [`DERIVED`].
pub(in crate::data) const STORED: &str = "stored/";

/// Points, or cells, along the axes of a lattice, the last axis of VTK first; axes of one point are left out. `None` where the mesh
/// is no lattice.
pub fn extents(mesh: &Mesh, at_centres: bool) -> Option<Vec<usize>> {
    let dimensions = mesh.shape.dimensions()?;
    let axes = dimensions.into_iter().rev().filter(|&points| points != 1);
    Some(axes.map(|points| if at_centres { points.saturating_sub(1) } else { points }).collect())
}

/// An array without its numbers.
pub(in crate::data) struct Listed {
    pub(in crate::data) name: String,
    pub(in crate::data) shape: Vec<usize>,
    pub(in crate::data) kind: ElementKind,
    /// It is found by its name and left out of lists.
    pub(in crate::data) hidden: bool,
}

/// `[count]` or `[count, components]`
fn shape(count: usize, components: usize) -> Vec<usize> {
    if components == 1 { vec![count] } else { vec![count, components] }
}

/// Coordinates by name, and how many of them.
const COORDINATES: [(&str, usize); 3] = [("points", 3), ("points-xy", 2), ("points-x", 1)];

/// The arrays that a mesh has without another file.
pub(in crate::data) fn listed(mesh: &Mesh) -> Vec<Listed> {
    let (points, cells) = (mesh.point_count(), mesh.cell_count());
    let mut all: Vec<Listed> = Vec::new();
    let mut add = |name: String, shape: Vec<usize>, kind: ElementKind, hidden: bool| {
        if all.iter().all(|other| other.name != name) {
            all.push(Listed { name, shape, kind, hidden });
        }
    };
    for (name, axes) in COORDINATES {
        add(name.into(), vec![points, axes], ElementKind::F64, axes != 3);
    }
    for array in &mesh.point_data {
        add(array.name.clone(), shape(points, array.components), array.values.kind(), false);
    }
    for array in &mesh.cell_data {
        add(format!("cells/{}", array.name), shape(cells, array.components), array.values.kind(), false);
    }
    for array in mesh.field_data.iter().filter(|array| array.components > 0) {
        let shape = shape(array.values.len() / array.components, array.components);
        add(format!("{WHOLE}{}", array.name), shape, array.values.kind(), false);
    }
    for array in &mesh.cell_data {
        add(array.name.clone(), shape(points, array.components), ElementKind::F64, true);
    }
    for (name, components) in DERIVED.into_iter().zip([1, 3]) {
        add(name.into(), shape(points, components), ElementKind::F64, true);
        add(format!("{DERIVED_PREFIX}{name}"), shape(points, components), ElementKind::F64, true);
    }
    for (name, axes) in COORDINATES {
        add(format!("{CENTRES}{name}"), vec![cells, axes], ElementKind::F64, true);
    }
    for array in mesh.cell_data.iter().chain(&mesh.point_data) {
        add(format!("{CENTRES}{}", array.name), shape(cells, array.components), ElementKind::F64, true);
    }
    for array in mesh.point_data.iter().filter(|array| is_derived(&array.name)) {
        add(format!("{STORED}{}", array.name), shape(points, array.components), array.values.kind(), true);
    }
    for array in mesh.cell_data.iter().chain(&mesh.point_data).filter(|array| is_derived(&array.name)) {
        add(format!("{STORED}{}", array.name), shape(points, array.components), ElementKind::F64, true);
        add(format!("{CENTRES}{STORED}{}", array.name), shape(cells, array.components), ElementKind::F64, true);
    }
    for name in ["distance", "derived/distance"] {
        add(format!("{CENTRES}{name}"), vec![cells], ElementKind::F64, true);
    }
    let on_lattice: Vec<Listed> = all.iter().filter_map(|listed| listed.on_lattice(mesh)).collect();
    all.extend(on_lattice);
    all
}

impl Listed {
    /// The same array with the axes of the lattice; `None` where the mesh has no lattice, or the array has another number of values.
    fn on_lattice(&self, mesh: &Mesh) -> Option<Listed> {
        if self.name.starts_with(WHOLE) {
            return None;
        }
        let at_cells = self.name.starts_with(CENTRES) || self.name.starts_with("cells/");
        let extents = extents(mesh, at_cells)?;
        let shape: Vec<usize> = extents.iter().chain(&self.shape[1..]).copied().collect();
        let fits = extents.iter().product::<usize>() == self.shape[0];
        fits.then(|| Listed { name: format!("{LATTICE}{}", self.name), shape, kind: self.kind, hidden: true })
    }
}

/// The shape of an array that needs another file; `None` for other names. `shape_of` tells the shapes of coordinates by their names.
pub(in crate::data) fn shape_with_file(
    name: &str,
    shape_of: impl Fn(&str) -> Option<Vec<usize>>,
) -> Option<Vec<usize>> {
    let (lattice, inner) = name.strip_prefix(LATTICE).map_or(("", name), |inner| (LATTICE, inner));
    let (centres, inner) = inner.strip_prefix(CENTRES).map_or(("", inner), |inner| (CENTRES, inner));
    match inner.split_once('=')? {
        ("distance" | "sdf", _) => {
            let mut shape = shape_of(&format!("{lattice}{centres}points"))?;
            shape.pop();
            Some(shape)
        }
        ("scalar", table) => table.rsplit_once(':').map(|_| vec![1]),
        _ => None,
    }
}

/// The other file that an array is made with.
pub(in crate::data) fn other_file(name: &str) -> Option<&Path> {
    let name = name.strip_prefix(LATTICE).unwrap_or(name);
    match name.strip_prefix(CENTRES).unwrap_or(name).split_once('=')? {
        ("distance" | "sdf", file) => Some(Path::new(file)),
        ("scalar", table) => table.rsplit_once(':').map(|(file, _)| Path::new(file)),
        _ => None,
    }
}

/// Whether this is the name of an array that can be derived from a mesh alone.
fn is_derived(name: &str) -> bool {
    DERIVED.contains(&name)
}

/// A name without [`STORED`], where that stands before a name of [`DERIVED`].
fn without_stored(name: &str) -> Cow<'_, str> {
    match name.split_once(STORED) {
        Some((place, array)) if matches!(place, "" | CENTRES) && is_derived(array) => format!("{place}{array}").into(),
        _ => name.into(),
    }
}

/// Whether an array on points or cells comes from numbers that the file holds, and not from its points and cells alone.
pub(in crate::data) fn is_stored(mesh: &Mesh, name: &str) -> bool {
    let name = without_stored(name.strip_prefix(LATTICE).unwrap_or(name));
    let name = name.strip_prefix(CENTRES).unwrap_or(&name);
    let holds = |arrays: &[DataArray], name: &str| arrays.iter().any(|array| array.name == name);
    holds(&mesh.point_data, name) || holds(&mesh.cell_data, name.strip_prefix("cells/").unwrap_or(name))
}

/// The numbers of an array; `path` is the file of the mesh.
pub(in crate::data) fn values(mesh: &Mesh, path: &Path, name: &str) -> Result<Vec<f64>, Refusal> {
    if let Some(inner) = name.strip_prefix(LATTICE).filter(|_| mesh.shape.dimensions().is_some()) {
        return values(mesh, path, inner);
    }
    let name = &*without_stored(name); // only where the file holds it: see `listed`
    if let Some(array) = mesh.point_data.iter().find(|array| array.name == name) {
        return whole(array);
    }
    if let Some(array) = listed_in(&mesh.cell_data, name, "cells/").or(listed_in(&mesh.field_data, name, WHOLE)) {
        return whole(array);
    }
    let (at_cells, inner) = name.strip_prefix(CENTRES).map_or((false, name), |inner| (true, inner));
    let cells = mesh.shape.cells().map_err(|reason| short(&reason))?;
    let places = || -> Result<Vec<f64>, Refusal> {
        let positions = mesh.shape.positions().map_err(|reason| short(&reason))?;
        if at_cells { centres(&positions, &cells) } else { Ok(positions) }
    };
    if let Some((_, axes)) = COORDINATES.iter().find(|(known, _)| *known == inner) {
        let places = places()?;
        return Ok(if *axes == 3 {
            places
        } else {
            places.chunks_exact(3).flat_map(|place| &place[..*axes]).copied().collect()
        });
    }
    match mesh.cell_data.iter().find(|array| array.name == inner) {
        Some(array) if at_cells => return whole(array),
        Some(array) => return to_points(array, &cells, mesh.point_count()),
        None => {}
    }
    if let Some(array) = mesh.point_data.iter().find(|array| array.name == inner).filter(|_| at_cells) {
        return at_centres(array, &cells);
    }
    let inner = inner.strip_prefix(DERIVED_PREFIX).filter(|inner| is_derived(inner)).unwrap_or(inner);
    match inner.split_once('=') {
        None if inner == "distance" => {
            let positions = mesh.shape.positions().map_err(|reason| short(&reason))?;
            let Boundary { triangles, .. } = boundary_of(mesh, &cells, true)?;
            require(!triangles.is_empty(), || Refusal::new("distance", "a mesh with a boundary", "none"))?;
            let surface = Surface::new(&positions, triangles);
            each_place(&places()?, |place| surface.distance(place))
        }
        None if inner == "normals" && !at_cells => normals(mesh),
        Some(("scalar", table)) => scalar(path, table),
        Some((kind, file)) if matches!(kind, "distance" | "sdf") => outside(Path::new(file), &places()?, kind == "sdf"),
        _ => Err(Refusal::new("", format!("an array `{}`", name.escape_debug()), "none of that name")),
    }
}

/// The numbers of an array at the points, or at the centres of the cells.
pub fn at(mesh: &Mesh, path: &Path, name: &str, at_centres: bool) -> Result<Vec<f64>, Refusal> {
    let name = if at_centres { format!("{CENTRES}{name}") } else { name.to_owned() };
    values(mesh, path, &name)
}

fn listed_in<'a>(arrays: &'a [DataArray], name: &str, prefix: &str) -> Option<&'a DataArray> {
    let name = name.strip_prefix(prefix)?;
    arrays.iter().find(|array| array.name == name)
}

fn whole(array: &DataArray) -> Result<Vec<f64>, Refusal> {
    array.values.to_f64().map_err(|reason| short(&reason))
}

fn each_place(places: &[f64], value: impl Fn([f64; 3]) -> f64) -> Result<Vec<f64>, Refusal> {
    let mut values = files::memory::reserve(places.len() / 3).map_err(|reason| short(&reason))?;
    values.extend(places.chunks_exact(3).map(|place| value([place[0], place[1], place[2]])));
    Ok(values)
}

/// The mean over the points of each cell.
fn at_centres(array: &DataArray, cells: &super::Cells) -> Result<Vec<f64>, Refusal> {
    let width = array.components;
    let mut values = files::memory::reserve(cells.len() * width).map_err(|reason| short(&reason))?;
    for cell in 0..cells.len() {
        let points = cells.points(cell);
        for component in 0..width {
            let sum: f64 = points.iter().map(|&point| array.values.at(point as usize * width + component)).sum();
            values.push(sum / points.len() as f64);
        }
    }
    Ok(values)
}

/// A surface mesh as triangles, with its finite points.
fn triangles(mesh: &Mesh) -> Result<Surface, Refusal> {
    let positions = mesh.shape.positions().map_err(|reason| short(&reason))?;
    require(positions.iter().all(|number| number.is_finite()), || {
        Refusal::new("points", "finite coordinates", "NaN or infinity")
    })?;
    let cells = mesh.shape.cells().map_err(|reason| short(&reason))?;
    let Boundary { triangles, .. } = boundary_of(mesh, &cells, false)?;
    require(!triangles.is_empty(), || Refusal::new("cells", "a surface", "no triangles or polygons"))?;
    Ok(Surface::new(&positions, triangles))
}

/// The lines of a mesh that has no surface.
fn curve(mesh: &Mesh) -> Result<Option<Curve>, Refusal> {
    let positions = mesh.shape.positions().map_err(|reason| short(&reason))?;
    let cells = mesh.shape.cells().map_err(|reason| short(&reason))?;
    Ok(Curve::of_mesh(&positions, &cells))
}

/// Normals at the points of a surface; refused at points that no triangle has.
fn normals(mesh: &Mesh) -> Result<Vec<f64>, Refusal> {
    let volume = mesh.shape.cells().map_err(|reason| short(&reason))?;
    let is_volume = volume.kinds.iter().any(|&kind| super::kinds::dimension(kind) == Some(3));
    require(!is_volume, || {
        Refusal::new("normals", "a surface", "a mesh of volume cells")
            .advise("extract its surface, or derive the distance")
    })?;
    Ok(triangles(mesh)?.normals().into_iter().flatten().collect())
}

/// The distance of places to the surface, or to the curve, of a file; with a sign, to a closed one.
fn outside(file: &Path, places: &[f64], signed: bool) -> Result<Vec<f64>, Refusal> {
    if file.exists() && !super::is_mesh(file) {
        return Curve::of_table(file)?.distances(file, places, signed);
    }
    let mesh = super::read(file).map_err(|error| Refusal::said(error.to_string()).of(error.kind()))?;
    if let Some(curve) = curve(&mesh).map_err(|refusal| refusal.within(file.display()))? {
        return curve.distances(file, places, signed);
    }
    let surface = triangles(&mesh).map_err(|refusal| refusal.within(file.display()))?;
    if !signed {
        return each_place(places, |place| surface.distance(place));
    }
    let open = surface.open_edges();
    require(open == 0, || {
        Refusal::new(file.display().to_string(), "a closed surface", format!("{open} edges without two triangles"))
            .advise("close the surface, or derive distance= instead of sdf=")
    })?;
    let sides = surface.sides();
    each_place(places, |place| sides.signed_distance(place))
}
