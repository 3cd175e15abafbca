//! Images, rectilinear and structured grids: each piece of a file fills a part of the whole extent.

use super::array::Storage;
use super::read::{append_arrays, arrays, points};
use super::tree::Element;
use crate::data::mesh::mesh::{DataArray, Mesh, Shape, UNTURNED, short};
use crate::data::mesh::numbers::Numbers;
use crate::error::{Refusal, require};
use crate::files::memory;

/// First and last point along each axis.
type Extent = [[i64; 2]; 3];

fn extent(element: &Element, name: &str) -> Result<Extent, Refusal> {
    let ends: Option<[i64; 6]> = element.numbers(name)?;
    let ends = ends.ok_or_else(|| Refusal::new(&element.name, format!("an attribute {name}"), "none"))?;
    require(ends.iter().all(|end| end.unsigned_abs() <= u64::from(u32::MAX)), || {
        Refusal::new(name, "numbers below 2³²", format!("{ends:?}"))
    })?;
    Ok([[ends[0], ends[1]], [ends[2], ends[3]], [ends[4], ends[5]]])
}

/// Points along each axis; refuses more than can be counted.
fn dimensions(extent: Extent) -> Result<[usize; 3], Refusal> {
    let counts = extent.map(|[first, last]| usize::try_from(last - first + 1).unwrap_or(0));
    let product = counts.iter().try_fold(1_usize, |product, &count| product.checked_mul(count));
    require(product.is_some_and(|product| u32::try_from(product).is_ok()), || {
        Refusal::new("extent", "fewer than 2³² points", format!("{counts:?}"))
    })?;
    Ok(counts)
}

/// Points of the whole extent.
pub(super) fn points_of(grid: &Element) -> Result<u64, Refusal> {
    Ok(dimensions(extent(grid, "WholeExtent")?)?.iter().product::<usize>() as u64)
}

/// Points or cells along an axis.
fn along([first, last]: [i64; 2], cells: bool) -> usize {
    let points = usize::try_from(last - first + 1).unwrap_or(0);
    if cells && points > 1 { points - 1 } else { points }
}

/// Points or cells of an extent.
fn size(extent: Extent, cells: bool) -> usize {
    extent.iter().map(|&ends| along(ends, cells)).product()
}

/// Where the points or cells of a piece are in the whole, in the order of the piece.
fn places(whole: Extent, piece: Extent, cells: bool) -> Result<(usize, Vec<usize>), Refusal> {
    let (sizes, own) = (whole.map(|ends| along(ends, cells)), piece.map(|ends| along(ends, cells)));
    let inside = (0..3).all(|axis| piece[axis][0] >= whole[axis][0] && piece[axis][1] <= whole[axis][1]);
    require(inside, || Refusal::new("Extent of Piece", format!("within {whole:?}"), format!("{piece:?}")))?;
    let starts = [0, 1, 2].map(|axis| (piece[axis][0] - whole[axis][0]) as usize);
    let mut places = memory::reserve(own.iter().product()).map_err(|reason| short(&reason))?;
    for layer in 0..own[2] {
        for row in 0..own[1] {
            let first = ((starts[2] + layer) * sizes[1] + starts[1] + row) * sizes[0] + starts[0];
            places.extend(first..first + own[0]);
        }
    }
    Ok((sizes.iter().product(), places))
}

/// An image, a rectilinear or a structured grid.
pub(super) fn lattice(storage: &Storage, grid: &Element, kind: &str) -> Result<Mesh, Refusal> {
    let whole = extent(grid, "WholeExtent")?;
    let counts = dimensions(whole)?;
    let mut pieces = Vec::new();
    for piece in grid.all("Piece") {
        let own = extent(piece, "Extent")?;
        if dimensions(own)?.iter().product::<usize>() > 0 {
            pieces.push((piece, own));
        }
    }
    let shape = match kind {
        "ImageData" => image(grid, whole, counts)?,
        "RectilinearGrid" => Shape::Rectilinear { coordinates: coordinates(storage, &pieces, whole)? },
        _ => {
            let array = |piece: &Element, count| {
                let values = points(storage, piece, count)?;
                Ok(vec![DataArray { name: "Points".into(), components: 3, values }])
            };
            let points = placed(&pieces, whole, false, array)?.pop().map(|array| array.values);
            Shape::Structured { dimensions: counts, points: points.unwrap_or(Numbers::F32(Vec::new())) }
        }
    };
    let mut mesh = Mesh::new(shape);
    mesh.point_data = placed(&pieces, whole, false, |piece, count| arrays(storage, piece, "PointData", count))?;
    mesh.cell_data = placed(&pieces, whole, true, |piece, count| arrays(storage, piece, "CellData", count))?;
    Ok(mesh)
}

fn image(grid: &Element, whole: Extent, dimensions: [usize; 3]) -> Result<Shape, Refusal> {
    let first: [f64; 3] = grid.numbers("Origin")?.unwrap_or([0.0; 3]);
    let spacing: [f64; 3] = grid.numbers("Spacing")?.unwrap_or([1.0; 3]);
    let direction = match grid.numbers::<f64, 9>("Direction")? {
        Some(numbers) => [0, 3, 6].map(|row| [numbers[row], numbers[row + 1], numbers[row + 2]]),
        None => UNTURNED,
    };
    let start = [0, 1, 2].map(|axis| whole[axis][0] as f64 * spacing[axis]);
    let turned = |axis: usize| (0..3).map(|other| direction[axis][other] * start[other]).sum::<f64>();
    let origin = [0, 1, 2].map(|axis| if start == [0.0; 3] { first[axis] } else { first[axis] + turned(axis) });
    Ok(Shape::Image { dimensions, origin, spacing, direction })
}

/// Coordinates along each axis, from the pieces that have them.
fn coordinates(storage: &Storage, pieces: &[(&Element, Extent)], whole: Extent) -> Result<[Numbers; 3], Refusal> {
    let mut axes = Vec::new();
    for axis in 0..3 {
        let only = |extent: Extent| [extent[axis], [0, 0], [0, 0]];
        let own: Vec<_> = pieces.iter().map(|&(piece, extent)| (piece, only(extent))).collect();
        let array = |piece: &Element, count| {
            let element = piece.child("Coordinates").and_then(|list| list.all("DataArray").nth(axis));
            let element = element.ok_or_else(|| Refusal::new("Coordinates", "three arrays", format!("{axis}")))?;
            let mut array = storage.read_sized(element, count).map_err(|refusal| refusal.within("Coordinates"))?;
            array.iter_mut().for_each(|array| array.name.clear());
            Ok(array.into_iter().collect())
        };
        let joined = placed(&own, only(whole), false, array)?.pop();
        axes.push(joined.map_or(Numbers::F32(Vec::new()), |array| array.values));
    }
    axes.try_into().map_err(|_| Refusal::new("Coordinates", "three arrays", "fewer"))
}

/// Arrays of all pieces, each number at its place in the whole.
fn placed(
    pieces: &[(&Element, Extent)],
    whole: Extent,
    cells: bool,
    read: impl Fn(&Element, usize) -> Result<Vec<DataArray>, Refusal>,
) -> Result<Vec<DataArray>, Refusal> {
    if let [(piece, own)] = pieces
        && *own == whole
    {
        return read(piece, size(whole, cells));
    }
    let given: usize = pieces.iter().map(|&(_, own)| size(own, cells)).fold(0, usize::saturating_add);
    let mut all: Option<Vec<DataArray>> = None;
    let mut filled: Vec<usize> = Vec::new(); // of each place of the whole, where its numbers are among those read
    let mut before = 0;
    for &(piece, own) in pieces {
        let arrays = read(piece, size(own, cells))?; // refused where the file does not hold that many numbers
        if arrays.is_empty() && all.is_none() {
            return Ok(Vec::new());
        }
        let (total, places) = places(whole, own, cells)?;
        require(total <= given, || {
            Refusal::new("pieces", format!("at least the {total} places of {whole:?}"), given.to_string())
        })?;
        if filled.is_empty() {
            filled = memory::filled(usize::MAX, total).map_err(|reason| short(&reason))?;
        }
        for (number, &place) in places.iter().enumerate() {
            filled[place] = before + number;
        }
        before += places.len();
        match &mut all {
            None => all = Some(arrays),
            Some(all) => append_arrays(all, arrays)?,
        }
    }
    require(!filled.contains(&usize::MAX), || {
        Refusal::new("pieces", format!("all of {whole:?}"), "places without one")
    })?;
    let mut all = all.unwrap_or_default();
    for array in &mut all {
        array.values = array.values.select(array.components, &filled).map_err(|reason| short(&reason))?;
    }
    Ok(all)
}
