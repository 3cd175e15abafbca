//! From the elements of a file to a mesh. The pieces of a file become one mesh.

use super::array::{Storage, title};
use super::lattice::{lattice, points_of};
use super::tree::{self, Element};
use crate::data::mesh::input::{Opened, shortened};
use crate::data::mesh::kinds::POLYHEDRON;
use crate::data::mesh::mesh::{Cells, DataArray, Faces, Mesh, Shape, short};
use crate::data::mesh::numbers::Numbers;
use crate::data::mesh::sorts::{SORTS, surface_kind};
use crate::error::{Refusal, counted, require};
use crate::files::memory;

/// The types of files that hold a mesh.
const KINDS: [&str; 5] = ["UnstructuredGrid", "PolyData", "ImageData", "RectilinearGrid", "StructuredGrid"];

/// Whether a file of this type holds a mesh.
pub(super) fn is_mesh_kind(kind: &str) -> bool {
    KINDS.contains(&kind)
}

/// Reads a file.
pub(in crate::data::mesh) fn read(opened: &Opened) -> Result<Mesh, Refusal> {
    let document = tree::read(opened)?;
    let root = &document.root;
    require(root.name == "VTKFile", || Refusal::new("XML", "the element VTKFile", shortened(&root.name)))?;
    let storage = Storage::of(opened, &document)?;
    let kind = root.attribute("type").unwrap_or_default();
    require(is_mesh_kind(kind), || {
        Refusal::new("type of VTKFile", KINDS.join(", "), format!("`{}`", shortened(kind)))
    })?;
    let grid = root.child(kind).ok_or_else(|| Refusal::new("VTKFile", format!("an element {kind}"), "none"))?;
    let mut mesh = match kind {
        "UnstructuredGrid" | "PolyData" => joined(&storage, grid, kind == "PolyData")?,
        _ => lattice(&storage, grid, kind)?,
    };
    for element in grid.child("FieldData").into_iter().flat_map(|fields| fields.all("DataArray")) {
        mesh.field_data.extend(storage.read(element)?);
    }
    Ok(mesh)
}

/// The bytes of all numbers of a file when they are unpacked, as its headers promise them.
pub(in crate::data::mesh) fn promised(opened: &Opened) -> Result<u64, Refusal> {
    let document = tree::read(opened)?;
    let storage = Storage::of(opened, &document)?;
    let (mut open, mut bytes) = (vec![&document.root], 0_u64);
    while let Some(element) = open.pop() {
        open.extend(&element.children);
        bytes = bytes.saturating_add(match element.name.as_str() {
            "DataArray" => storage.promised(element).map_err(|refusal| refusal.within("DataArray"))?,
            // The points of an image are not in the file.
            "ImageData" | "RectilinearGrid" => points_of(element)?.saturating_mul(size_of::<[f32; 3]>() as u64),
            _ => 0,
        });
    }
    Ok(bytes)
}

/// The arrays of a part of a piece.
pub(super) fn arrays(storage: &Storage, piece: &Element, part: &str, count: usize) -> Result<Vec<DataArray>, Refusal> {
    let elements = piece.children.iter().filter(|child| child.name == part).flat_map(|part| part.all("DataArray"));
    let mut found: Vec<DataArray> = Vec::new();
    for element in elements {
        let array = storage.read_sized(element, count).map_err(|refusal| refusal.within(part))?;
        let Some(mut array) = array else { continue };
        if array.name.is_empty() {
            array.name = format!("unnamed {}", found.len());
        }
        require(found.iter().all(|other| other.name != array.name), || {
            Refusal::new(part, "arrays with different names", format!("{} twice", title(&array.name)))
        })?;
        found.push(array);
    }
    Ok(found)
}

/// Three coordinates of each point.
pub(super) fn points(storage: &Storage, piece: &Element, count: usize) -> Result<Numbers, Refusal> {
    let element = piece.child("Points").and_then(|points| points.child("DataArray"));
    match element {
        None if count == 0 => Ok(Numbers::F32(Vec::new())),
        None => Err(Refusal::new("Points", "an array", "none")),
        Some(element) => {
            let array = storage.read_sized(element, count).map_err(|refusal| refusal.within("Points"))?;
            let array = array.filter(|array| array.components == 3);
            Ok(array
                .ok_or_else(|| Refusal::new("Points", "three numbers per point", "an array of another kind"))?
                .values)
        }
    }
}

fn count(piece: &Element, name: &str) -> Result<usize, Refusal> {
    Ok(piece.number(name)?.unwrap_or(0))
}

/// Refuses a piece with ghost cells, which are those of another piece.
pub(super) fn refuse_ghosts(piece: &Mesh) -> Result<(), Refusal> {
    let Some(marks) = piece.cell_data.iter().find(|array| array.name == "vtkGhostType") else { return Ok(()) };
    let ghosts = (0..marks.values.len()).filter(|&cell| marks.values.at(cell) != 0.0).count();
    require(ghosts == 0, || {
        let found = format!("{} whose vtkGhostType is not 0", counted(ghosts, "cell"));
        Refusal::new("cells", "pieces that do not overlap", found).advise("save it without ghost cells")
    })
}

/// A mesh of cells; pieces follow each other.
fn joined(storage: &Storage, grid: &Element, is_surface: bool) -> Result<Mesh, Refusal> {
    let mut whole: Option<(Numbers, Vec<Cells>, Mesh)> = None;
    for (number, piece) in grid.all("Piece").enumerate() {
        let within = |refusal: Refusal| if number == 0 { refusal } else { refusal.within(format!("piece {number}")) };
        let Some((points, cells, mesh)) = piece_of(storage, piece, is_surface).map_err(within)? else { continue };
        match &mut whole {
            None => whole = Some((points, cells, mesh)),
            Some((all, all_cells, joint)) => {
                let before = all.len() / 3;
                if joint.seams.is_empty() {
                    refuse_ghosts(joint)?; // it is the first piece alone
                }
                refuse_ghosts(&mesh).map_err(within)?;
                joint.seams.push(before as u32);
                all.append(points)
                    .ok_or_else(|| within(Refusal::new("Points", "one type in all pieces", "another")))?;
                for (to, from) in all_cells.iter_mut().zip(cells) {
                    append_cells(to, from, before).map_err(within)?;
                }
                append_arrays(&mut joint.point_data, mesh.point_data).map_err(within)?;
                append_arrays(&mut joint.cell_data, mesh.cell_data).map_err(within)?;
            }
        }
    }
    let Some((points, cells, mut mesh)) = whole else {
        return Ok(Mesh::new(Shape::Unstructured { points: Numbers::F32(Vec::new()), cells: Cells::new() }));
    };
    let mut cells = cells.into_iter();
    let mut all = cells.next().unwrap_or_else(Cells::new);
    for other in cells {
        append_cells(&mut all, other, 0)?;
    }
    mesh.shape = match is_surface {
        true => Shape::Surface { points, cells: all },
        false => Shape::Unstructured { points, cells: all },
    };
    if is_surface && grid.all("Piece").count() > 1 && !mesh.cell_data.is_empty() {
        reorder(grid, &mut mesh)?;
    }
    Ok(mesh)
}

/// Cells of several pieces come by sort, then by piece; their data come by piece, then by sort.
fn reorder(grid: &Element, mesh: &mut Mesh) -> Result<(), Refusal> {
    let mut starts: [Vec<std::ops::Range<usize>>; 4] = Default::default();
    let mut place = 0;
    for piece in grid.all("Piece") {
        for (sort, name) in SORTS.iter().enumerate() {
            let number = count(piece, &format!("NumberOf{name}"))?;
            starts[sort].push(place..place + number);
            place += number;
        }
    }
    let order: Vec<usize> = starts.into_iter().flatten().flatten().collect();
    for array in &mut mesh.cell_data {
        array.values = array.values.select(array.components, &order).map_err(|reason| short(&reason))?;
    }
    Ok(())
}

/// Points, cells by sort, and arrays of one piece; `None` for an empty one.
fn piece_of(
    storage: &Storage,
    piece: &Element,
    is_surface: bool,
) -> Result<Option<(Numbers, Vec<Cells>, Mesh)>, Refusal> {
    let point_count = count(piece, "NumberOfPoints")?;
    let mut cells = Vec::new();
    match is_surface {
        true => {
            for name in SORTS {
                let number = count(piece, &format!("NumberOf{name}"))?;
                let read = sorted_cells(storage, piece.child(name), number, name);
                cells.push(read.map_err(|refusal| refusal.within(name))?);
            }
        }
        false => {
            let number = count(piece, "NumberOfCells")?;
            cells.push(any_cells(storage, piece.child("Cells"), number).map_err(|refusal| refusal.within("Cells"))?);
        }
    }
    let cell_count: usize = cells.iter().map(Cells::len).sum();
    if point_count == 0 && cell_count == 0 {
        return Ok(None);
    }
    let points = points(storage, piece, point_count)?;
    let mut mesh = Mesh::new(Shape::Unstructured { points: Numbers::F32(Vec::new()), cells: Cells::new() });
    mesh.point_data = arrays(storage, piece, "PointData", point_count)?;
    mesh.cell_data = arrays(storage, piece, "CellData", cell_count)?;
    Ok(Some((points, cells, mesh)))
}

pub(super) fn append_arrays(to: &mut [DataArray], mut from: Vec<DataArray>) -> Result<(), Refusal> {
    for array in to {
        let found = from.iter().position(|other| other.name == array.name && other.components == array.components);
        let other = found.map(|place| from.swap_remove(place));
        let joined = other.and_then(|other| array.values.append(other.values));
        joined.ok_or_else(|| Refusal::new(title(&array.name), "the same kind in every piece", "another or none"))?;
    }
    Ok(())
}

/// Adds cells whose points are numbered from `before` on.
pub(super) fn append_cells(to: &mut Cells, from: Cells, before: usize) -> Result<(), Refusal> {
    let shift = |point: u32| u32::try_from(point as usize + before).ok();
    let too_many = || Refusal::new("points", "fewer than 2³²", "more");
    let start = to.connectivity.len();
    if let Some(added) = &from.faces {
        let mut faces = to.faces.take().unwrap_or_else(|| Faces { offsets: vec![0; to.len() + 1], stream: Vec::new() });
        let first = faces.stream.len();
        faces.offsets.extend(added.offsets.iter().skip(1).map(|offset| first + offset));
        for cell in 0..from.len() {
            let parts = from.faces(cell);
            if parts.is_empty() {
                continue;
            }
            faces.stream.push(parts.len() as u32);
            for part in parts {
                faces.stream.push(part.len() as u32);
                for &point in part {
                    faces.stream.push(shift(point).ok_or_else(too_many)?);
                }
            }
        }
        to.faces = Some(faces);
    } else if let Some(faces) = &mut to.faces {
        let end = faces.stream.len();
        faces.offsets.extend(std::iter::repeat_n(end, from.len()));
    }
    to.kinds.extend(from.kinds);
    to.offsets.extend(from.offsets.iter().skip(1).map(|offset| start + offset));
    for point in from.connectivity {
        to.connectivity.push(shift(point).ok_or_else(too_many)?);
    }
    Ok(())
}

/// The array with this name.
fn named<'a>(element: &'a Element, name: &str) -> Option<&'a Element> {
    element.all("DataArray").find(|array| array.attribute("Name") == Some(name))
}

/// Whole numbers of an array.
fn counts(storage: &Storage, element: &Element, name: &str) -> Result<Vec<u64>, Refusal> {
    let array = named(element, name).ok_or_else(|| Refusal::new("", format!("an array `{name}`"), "none"))?;
    let array = storage.read(array)?.ok_or_else(|| Refusal::new(title(name), "numbers", "text"))?;
    array.values.to_counts().ok_or_else(|| Refusal::new(title(name), "whole numbers from 0 on", "another number"))
}

/// Points of cells as they are kept.
fn point_numbers(counts: &[u64], name: &str) -> Result<Vec<u32>, Refusal> {
    let mut points = memory::reserve(counts.len()).map_err(|reason| short(&reason))?;
    for &count in counts {
        let point = u32::try_from(count);
        points.push(point.map_err(|_| Refusal::new(title(name), "numbers of points", count.to_string()))?);
    }
    Ok(points)
}

/// Connectivity and offsets of `number` cells.
fn lists(storage: &Storage, element: &Element, number: usize) -> Result<(Vec<usize>, Vec<u32>), Refusal> {
    let connectivity = point_numbers(&counts(storage, element, "connectivity")?, "connectivity")?;
    let ends = counts(storage, element, "offsets")?;
    require(ends.len() == number, || Refusal::new("offsets", number.to_string(), ends.len().to_string()))?;
    let mut offsets = memory::reserve(number + 1).map_err(|reason| short(&reason))?;
    offsets.push(0);
    offsets.extend(ends.iter().map(|&end| end as usize));
    let rising = offsets.is_sorted() && offsets.last() == Some(&connectivity.len());
    require(rising, || {
        let (expected, last) = (format!("rising to {}", connectivity.len()), offsets.last().copied().unwrap_or(0));
        Refusal::new("offsets", expected, format!("a last one of {last}, or falling ones"))
    })?;
    Ok((offsets, connectivity))
}

fn any_cells(storage: &Storage, element: Option<&Element>, number: usize) -> Result<Cells, Refusal> {
    let Some(element) = element.filter(|_| number > 0) else { return Ok(Cells::new()) };
    let (offsets, connectivity) = lists(storage, element, number)?;
    let kinds = counts(storage, element, "types")?;
    require(kinds.len() == number, || Refusal::new("types", number.to_string(), kinds.len().to_string()))?;
    let kinds: Option<Vec<u8>> = kinds.iter().map(|&kind| u8::try_from(kind).ok()).collect();
    let kinds = kinds.ok_or_else(|| Refusal::new("types", "numbers below 256", "a larger one"))?;
    let faces = match kinds.contains(&POLYHEDRON) {
        false => None,
        true if named(element, "face_connectivity").is_some() => Some(new_faces(storage, element, &kinds)?),
        true => Some(old_faces(storage, element, number)?),
    };
    Ok(Cells { kinds, offsets, connectivity, faces })
}

/// Faces as one stream, with the end of each cell in it, or -1.
fn old_faces(storage: &Storage, element: &Element, number: usize) -> Result<Faces, Refusal> {
    let stream = point_numbers(&counts(storage, element, "faces")?, "faces")?;
    let ends = named(element, "faceoffsets").ok_or_else(|| Refusal::new("", "an array `faceoffsets`", "none"))?;
    let ends = storage.read_sized(ends, number)?.ok_or_else(|| Refusal::new("faceoffsets", "numbers", "text"))?.values;
    let mut offsets = memory::reserve(number + 1).map_err(|reason| short(&reason))?;
    offsets.push(0);
    let mut last = 0;
    for cell in 0..number {
        let end = ends.at(cell);
        last = if end < 0.0 { last } else { end as usize };
        offsets.push(last);
    }
    Ok(Faces { offsets, stream })
}

/// Faces as cells of their own: points of faces, and faces of polyhedra.
fn new_faces(storage: &Storage, element: &Element, kinds: &[u8]) -> Result<Faces, Refusal> {
    let points = point_numbers(&counts(storage, element, "face_connectivity")?, "face_connectivity")?;
    let face_ends = counts(storage, element, "face_offsets")?;
    let members = counts(storage, element, "polyhedron_to_faces")?;
    let cell_ends = counts(storage, element, "polyhedron_offsets")?;
    let wrong = |what: &str| Refusal::new(title(what), "places that rise within their list", "others");
    require(cell_ends.len() == kinds.len(), || wrong("polyhedron_offsets"))?;
    let mut faces = Faces { offsets: vec![0], stream: Vec::new() };
    let mut first = 0;
    for &end in &cell_ends {
        let own = members.get(first..end as usize).ok_or_else(|| wrong("polyhedron_offsets"))?;
        if !own.is_empty() {
            faces.stream.push(own.len() as u32);
        }
        for &face in own {
            let face = face as usize;
            let to = face_ends.get(face).copied().ok_or_else(|| wrong("polyhedron_to_faces"))? as usize;
            let from = if face == 0 { 0 } else { face_ends[face - 1] as usize };
            let corners = points.get(from..to).ok_or_else(|| wrong("face_offsets"))?;
            // A face may be named again and again; memory stays in proportion to what the file holds.
            require(faces.stream.len() + corners.len() <= 16 * (points.len() + members.len()) + 64, || {
                Refusal::new(
                    title("polyhedron_to_faces"),
                    "faces that one or two cells share",
                    "the same face many times",
                )
            })?;
            faces.stream.push(corners.len() as u32);
            faces.stream.extend_from_slice(corners);
        }
        faces.offsets.push(faces.stream.len());
        first = end as usize;
    }
    Ok(faces)
}

/// Cells of one sort of a surface file; their types follow from their lengths.
fn sorted_cells(storage: &Storage, element: Option<&Element>, number: usize, sort: &str) -> Result<Cells, Refusal> {
    let Some(element) = element.filter(|_| number > 0) else { return Ok(Cells::new()) };
    let (offsets, connectivity) = lists(storage, element, number)?;
    let kinds = offsets.windows(2).map(|ends| surface_kind(sort, ends[1] - ends[0])).collect();
    Ok(Cells { kinds, offsets, connectivity, faces: None })
}
