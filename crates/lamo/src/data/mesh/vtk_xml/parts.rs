//! Files of VTK that name other files: parallel files (pvtu, pvtp, ...), files of several blocks (vtm, vtpc) and lists (pvd, and the series
//! of ParaView in JSON). All parts of one time become one mesh, and an array `block` on the cells has the number of the part that a cell is from:
//! its place in the outermost list of several files, empty parts counted, from 0 on.
//!
//! A file that is named twice, by itself or by a file that it names, is refused: so there are no cycles, and memory stays in proportion
//! to what lies on the disk.

use super::read::{append_cells, is_mesh_kind, refuse_ghosts};
use super::tree::{self, Element};
use crate::data::formats::ElementKind;
use crate::data::mesh::input::{Opened, shortened};
use crate::data::mesh::mesh::{Cells, DataArray, Mesh, Shape, short};
use crate::data::mesh::numbers::Numbers;
use crate::data::mesh::read_opened;
use crate::error::{Refusal, require};
use serde_json::Value;
use std::io::Read;
use std::path::PathBuf;

/// Types of files that name blocks or partitions.
const BLOCKS: [&str; 3] = ["vtkMultiBlockDataSet", "vtkPartitionedDataSetCollection", "vtkPartitionedDataSet"];
/// The type of a list of files, with their times.
const LIST: &str = "Collection";
/// Bytes of a series of ParaView at most.
const LONGEST_SERIES: u64 = 1 << 24;
/// The array of the numbers of the parts.
const BLOCK: &str = "block";

/// Whether a file of this type names other files.
fn names_files(kind: &str) -> bool {
    BLOCKS.contains(&kind) || kind == LIST || kind.strip_prefix('P').is_some_and(is_mesh_kind)
}

/// Whether a file begins like a series of ParaView: `{"file-series-version": "1.0", "files": [{"name": "a.vtu", "time": 0}]}`.
fn is_series(start: &[u8]) -> bool {
    let key = b"\"file-series-version\"";
    start.trim_ascii_start().starts_with(b"{") && start.windows(key.len()).any(|bytes| bytes == key)
}

/// The files of a series of ParaView.
fn series(opened: &Opened) -> Result<Vec<Named>, Refusal> {
    let wrong = |found: String| Refusal::new("JSON", "an array `files` of names and times", found);
    require(opened.size <= LONGEST_SERIES, || wrong(format!("a file of {} bytes", opened.size)))?;
    let mut text = String::new();
    opened.whole()?.read_to_string(&mut text).map_err(|reason| wrong(reason.to_string()))?;
    let whole: Value = serde_json::from_str(&text).map_err(|reason| wrong(reason.to_string()))?;
    let files = whole["files"].as_array().filter(|files| !files.is_empty()).ok_or_else(|| wrong("none".into()))?;
    let named = |file: &Value| Some((Some(file["time"].as_f64()?), file["name"].as_str()?.to_owned()));
    files.iter().map(|file| named(file).ok_or_else(|| wrong(shortened(&file.to_string())))).collect()
}

/// Whether a file begins like one that names other files.
pub(in crate::data::mesh) fn sniff(start: &[u8], _size: u64) -> bool {
    let text = String::from_utf8_lossy(start);
    if is_series(start) {
        return true;
    }
    let Some((_, tag)) = text.split_once("<VTKFile") else { return false };
    let tag = tag.split('>').next().unwrap_or_default();
    let kind = tag.split_once("type=").map(|(_, kind)| kind.trim_start_matches(['"', '\'']));
    kind.and_then(|kind| kind.split(['"', '\'']).next()).is_some_and(names_files)
}

/// The mesh of all files that a file names; of a list of several times, that of the first.
pub(in crate::data::mesh) fn read(opened: &Opened) -> Result<Mesh, Refusal> {
    read_time(opened, 0)
}

/// The times of a list of several times, in their order; none of other files.
pub(in crate::data::mesh) fn times(opened: &Opened) -> Result<Vec<f64>, Refusal> {
    let times: Vec<f64> = by_time(named_files(opened)?).into_iter().map(|(time, _)| time).collect();
    Ok(if times.len() > 1 { times } else { Vec::new() })
}

/// The mesh of the files of one time, by the number of the time.
pub(in crate::data::mesh) fn read_time(opened: &Opened, number: usize) -> Result<Mesh, Refusal> {
    Ok(numbered(opened, number)?.0)
}

/// The same, and whether its array `block` numbers its parts here; an array of this name may also lie in the files.
fn numbered(opened: &Opened, number: usize) -> Result<(Mesh, bool), Refusal> {
    let names = by_time(named_files(opened)?).into_iter().nth(number).map(|(_, names)| names).unwrap_or_default();
    let mut parts: Vec<(i32, Mesh)> = Vec::new();
    for (place, name) in names.iter().enumerate().filter(|(_, name)| !name.is_empty()) {
        let within = |refusal: Refusal| refusal.within(shortened(name));
        let part = opened.beside(name).map_err(within)?;
        let is_list = sniff(&part.start().map_err(within)?, part.size);
        let (mut mesh, inner) = match is_list {
            true => numbered(&part, 0).and_then(|found| found.0.check().map(|()| found)).map_err(within)?,
            false => (read_opened(&part).map_err(within)?, false),
        };
        if names.len() == 1 {
            return Ok((mesh, inner));
        }
        if inner {
            mesh.cell_data.retain(|array| array.name != BLOCK); // the number in this list stands in its place
        }
        if mesh.point_count() > 0 {
            parts.push((place as i32, mesh));
        }
    }
    let counts = parts.iter().map(|(place, mesh)| vec![*place; mesh.cell_count()]);
    let numbers: Vec<i32> = counts.flatten().collect();
    let mut meshes: Vec<Mesh> = parts.into_iter().map(|(_, mesh)| mesh).collect();
    let mut joint = match meshes.len() {
        0 | 1 => meshes.pop().unwrap_or_else(empty),
        _ => join(meshes)?,
    };
    let own = joint.cell_data.iter().all(|array| array.name != BLOCK);
    if own {
        joint.cell_data.push(DataArray { name: BLOCK.into(), components: 1, values: Numbers::I32(numbers) });
    }
    Ok((joint, own))
}

/// All files that a file names, and those that these name.
pub(in crate::data::mesh) fn files(opened: &Opened) -> Result<Vec<PathBuf>, Refusal> {
    let mut found = Vec::new();
    for (_, name) in named_files(opened)?.into_iter().filter(|(_, name)| !name.is_empty()) {
        let part = opened.beside(&name)?;
        found.push(part.path.clone());
        if sniff(&part.start()?, part.size) {
            found.extend(files(&part)?);
        }
    }
    Ok(found)
}

fn empty() -> Mesh {
    Mesh::new(Shape::Unstructured { points: Numbers::F32(Vec::new()), cells: Cells::new() })
}

/// A file and its time, where it has one; an empty block has no name.
type Named = (Option<f64>, String);

/// The names in a file, in its order.
fn named_files(opened: &Opened) -> Result<Vec<Named>, Refusal> {
    if is_series(&opened.start()?) {
        return series(opened);
    }
    let document = tree::read(opened)?;
    let root = &document.root;
    require(root.name == "VTKFile", || Refusal::new("XML", "the element VTKFile", shortened(&root.name)))?;
    let kind = root.attribute("type").unwrap_or_default();
    let whole = root.child(kind).ok_or_else(|| Refusal::new("VTKFile", format!("an element {kind}"), "none"))?;
    let ghosts = whole.attribute("GhostLevel").map(str::trim);
    require(matches!(ghosts, None | Some("0")), || {
        let found = format!("GhostLevel {}", shortened(ghosts.unwrap_or_default()));
        Refusal::new(kind, "pieces that do not overlap", found).advise("save it without ghost cells")
    })?;
    let mut names = Vec::new();
    collect(whole, &mut names)?;
    require(names.iter().any(|(_, name)| !name.is_empty()), || Refusal::new(kind, "names of files", "none"))?;
    Ok(names)
}

fn collect(element: &Element, names: &mut Vec<Named>) -> Result<(), Refusal> {
    let name = element.attribute("file").or(element.attribute("Source").filter(|_| element.name == "Piece"));
    if let Some(name) = name.filter(|name| !name.is_empty()) {
        let time = element.attribute("timestep").map(str::trim).filter(|time| !time.is_empty());
        let number = time.map(|time| {
            let number = time.parse::<f64>().ok().filter(|number| number.is_finite());
            number.ok_or_else(|| Refusal::new("timestep", "a number", shortened(time)))
        });
        names.push((number.transpose()?, name.to_owned()));
    }
    if name.is_none_or(str::is_empty) && element.name == "DataSet" {
        names.push((None, String::new()));
    }
    element.children.iter().try_for_each(|child| collect(child, names))
}

/// The names of each time, in the order of the times. A file without a time is one of the first time.
fn by_time(names: Vec<Named>) -> Vec<(f64, Vec<String>)> {
    let mut times: Vec<f64> = names.iter().filter_map(|(time, _)| *time).collect();
    times.sort_by(f64::total_cmp);
    times.dedup();
    let mut found: Vec<(f64, Vec<String>)> = times.into_iter().map(|time| (time, Vec::new())).collect();
    if found.is_empty() {
        found.push((0.0, Vec::new()));
    }
    for (time, name) in names {
        let place = time.and_then(|time| found.iter().position(|(other, _)| *other == time));
        found[place.unwrap_or(0)].1.push(name);
    }
    found
}

/// Several meshes as one. Arrays that a part lacks are left out.
fn join(parts: Vec<Mesh>) -> Result<Mesh, Refusal> {
    let (mut points, mut cells, mut seams) = (None, Cells::new(), Vec::new());
    let mut joint: Option<Mesh> = None;
    for mut part in parts {
        let before = points.as_ref().map_or(0, |points: &Numbers| points.len() / 3);
        refuse_ghosts(&part)?;
        seams.extend(std::iter::once(0).chain(std::mem::take(&mut part.seams)).map(|first| first + before as u32));
        let own = part.shape.cells().map_err(|reason| short(&reason))?.into_owned();
        append_cells(&mut cells, own, before)?;
        let places = match part.shape {
            Shape::Unstructured { points, .. } | Shape::Surface { points, .. } | Shape::Structured { points, .. } => {
                points
            }
            lattice => Numbers::F64(lattice.positions().map_err(|reason| short(&reason))?),
        };
        points = Some(match points {
            None => places,
            Some(points) => appended(points, places)?,
        });
        part.shape = empty().shape;
        joint = Some(match joint {
            None => part,
            Some(joint) => Mesh {
                point_data: shared(joint.point_data, part.point_data)?,
                cell_data: shared(joint.cell_data, part.cell_data)?,
                ..joint
            },
        });
    }
    let mut joint = joint.unwrap_or_else(empty);
    joint.shape = Shape::Unstructured { points: points.unwrap_or(Numbers::F32(Vec::new())), cells };
    joint.seams = seams.split_off(seams.len().min(1)); // the first piece begins at no seam
    Ok(joint)
}

/// The arrays that two parts have, one after the other.
fn shared(one: Vec<DataArray>, mut other: Vec<DataArray>) -> Result<Vec<DataArray>, Refusal> {
    let mut found = Vec::new();
    for array in one {
        let place = other.iter().position(|next| next.name == array.name && next.components == array.components);
        if let Some(place) = place {
            let values = appended(array.values, other.swap_remove(place).values)?;
            found.push(DataArray { values, ..array });
        }
    }
    Ok(found)
}

/// Numbers of one type, or as doubles where the types differ.
fn appended(mut one: Numbers, other: Numbers) -> Result<Numbers, Refusal> {
    let wide = |numbers: &Numbers| match numbers.kind() {
        ElementKind::F64 => Ok(numbers.clone()),
        _ => numbers.to_f64().map(Numbers::F64).map_err(|reason| short(&reason)),
    };
    let other = if one.kind() == other.kind() {
        other
    } else {
        one = wide(&one)?;
        wide(&other)?
    };
    one.append(other).ok_or_else(|| short(&std::io::ErrorKind::OutOfMemory.into()))?;
    Ok(one)
}
