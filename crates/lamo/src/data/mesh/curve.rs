//! Curves in the plane, to which points of flat meshes have a distance: the outline of an airfoil as a table of x and y, or the lines
//! of a mesh file.
//!
//! Outlines of airfoils come in two orders. Selig: from the trailing edge over the upper side to the nose, and back below. Lednicer: a
//! row with the numbers of points above and below, then the upper and the lower side, each from the nose on.

use super::kinds;
use super::mesh::{Cells, short};
use crate::data::formats::{self, ArrayFile};
use crate::error::{Failure, Refusal, require};
use crate::files::memory;
use lamo_geometry::Surface;
use std::collections::HashMap;
use std::path::Path;

/// Points of the plane, and the segments between them.
#[derive(Debug, PartialEq)]
pub(super) struct Curve {
    points: Vec<[f64; 2]>,
    segments: Vec<[u32; 2]>,
}

impl Curve {
    /// The closed curve through the rows of a table of two columns.
    pub(super) fn of_table(file: &Path) -> Result<Curve, Refusal> {
        let rows = columns(file).map_err(|error| Refusal::said(error.to_string()).of(error.kind()))?;
        let rows = rows.filter(|rows| rows.len() > 2).ok_or_else(|| {
            let expected = "a mesh file, or an outline: a table of x and y with at least three rows";
            Refusal::new(file.display().to_string(), expected, "a file of other arrays")
        })?;
        require(rows.iter().flatten().all(|number| number.is_finite()), || {
            Refusal::new(file.display().to_string(), "finite coordinates", "NaN or infinity")
        })?;
        let rows = in_the_order_of_selig(rows);
        let count = rows.len() as u32;
        let segments = (0..count).map(|point| [point, (point + 1) % count]).collect();
        Ok(Curve { points: rows, segments })
    }

    /// The lines of a mesh; `None` where it has cells of a surface or a volume, or no lines.
    pub(super) fn of_mesh(positions: &[f64], cells: &Cells) -> Option<Curve> {
        if cells.kinds.iter().any(|&kind| kinds::dimension(kind) >= Some(2)) {
            return None;
        }
        let mut known: HashMap<[u64; 2], u32> = HashMap::new();
        let (mut points, mut segments) = (Vec::new(), Vec::new());
        let mut number = |point: u32| {
            let place = [positions[3 * point as usize], positions[3 * point as usize + 1]];
            let key = place.map(|number| (number + 0.0).to_bits()); // -0 and 0 are one place
            *known.entry(key).or_insert_with(|| {
                points.push(place);
                points.len() as u32 - 1
            })
        };
        for cell in (0..cells.len()).filter(|&cell| kinds::dimension(cells.kinds[cell]) == Some(1)) {
            let points = match cells.kinds[cell] {
                kinds::POLY_LINE => cells.points(cell),
                // The ends come first; a curve of one point has none.
                _ => cells.points(cell).get(..2).unwrap_or_default(),
            };
            segments.extend(points.windows(2).map(|pair| [number(pair[0]), number(pair[1])]));
        }
        segments.retain(|[from, to]| from != to);
        (!segments.is_empty()).then_some(Curve { points, segments })
    }

    /// How many points are not the end of exactly two segments; 0 for closed curves.
    fn open_ends(&self) -> usize {
        let mut uses = vec![0_usize; self.points.len()];
        self.segments.iter().flatten().for_each(|&point| uses[point as usize] += 1);
        uses.into_iter().filter(|&uses| uses % 2 == 1).count()
    }

    /// The distance of each place `[places, 3]` of a flat mesh; with a sign, negative inside closed curves.
    pub(super) fn distances(&self, file: &Path, places: &[f64], signed: bool) -> Result<Vec<f64>, Refusal> {
        let title = || file.display().to_string();
        let flat = places.chunks_exact(3).all(|place| place[2] == places[2]);
        require(flat, || {
            Refusal::new(title(), "a surface, because the mesh has points in space", "a curve in the plane")
        })?;
        let open = if signed { self.open_ends() } else { 0 };
        require(open == 0, || {
            Refusal::new(title(), "a closed curve", format!("{open} open ends"))
                .advise("close the curve, or derive distance= instead of sdf=")
        })?;
        let positions: Vec<f64> = self.points.iter().flat_map(|&[x, y]| [x, y, 0.0]).collect();
        let segments = self.segments.iter().map(|&[from, to]| [from, to, to]).collect();
        let surface = Surface::new(&positions, segments);
        let mut values = memory::reserve(places.len() / 3).map_err(|reason| short(&reason))?;
        values.extend(places.chunks_exact(3).map(|place| {
            let distance = surface.distance([place[0], place[1], 0.0]);
            if signed && self.is_inside([place[0], place[1]]) { -distance } else { distance }
        }));
        Ok(values)
    }

    /// Whether a ray from a place to the right crosses an odd number of segments.
    fn is_inside(&self, [x, y]: [f64; 2]) -> bool {
        let crossed = self.segments.iter().filter(|segment| {
            let [[ax, ay], [bx, by]] = segment.map(|point| self.points[point as usize]);
            (ay > y) != (by > y) && x < ax + (y - ay) / (by - ay) * (bx - ax)
        });
        crossed.count() % 2 == 1
    }
}

/// The rows of a table of two columns; a title of two words may have been taken for their names. `None` for other files.
fn columns(file: &Path) -> Result<Option<Vec<[f64; 2]>>, formats::Error> {
    let opened = ArrayFile::open(file)?;
    let numbers = |name: &str| Ok::<_, formats::Error>(opened.read(Some(name))?.values.into_f64());
    Ok(match &opened.list()[..] {
        [whole] if matches!(whole.shape[..], [_, 2]) => {
            Some(numbers(&whole.name)?.chunks_exact(2).map(|row| [row[0], row[1]]).collect())
        }
        [x, y] if x.shape.len() == 1 && x.shape == y.shape => {
            Some(numbers(&x.name)?.into_iter().zip(numbers(&y.name)?).map(|(x, y)| [x, y]).collect())
        }
        _ => None,
    })
}

/// The rows of an outline one after another along the curve.
fn in_the_order_of_selig(rows: Vec<[f64; 2]>) -> Vec<[f64; 2]> {
    let is_count = |number: f64| number >= 2.0 && number.fract() == 0.0;
    let [above, below] = rows[0];
    let counted = is_count(above) && is_count(below) && above + below == (rows.len() - 1) as f64;
    let mut outline: Vec<[f64; 2]> = match counted {
        true => {
            let (upper, lower) = rows[1..].split_at(above as usize);
            upper.iter().rev().chain(lower).copied().collect()
        }
        false => rows,
    };
    outline.dedup(); // the nose belongs to both sides
    if outline.len() > 1 && outline.first() == outline.last() {
        outline.pop();
    }
    outline
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A diamond with corners at distance 1, in both orders.
    #[test]
    fn both_orders_of_an_outline_are_one_curve_with_one_signed_distance() {
        let folder = std::env::temp_dir().join(format!("lamo-curve-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let selig = "DIAMOND AIRFOIL\n 1.0 0.0\n 0.0 1.0\n -1.0 0.0\n 0.0 -1.0\n 1.0 0.0\n";
        let lednicer = "A DIAMOND OF MINE\n 3. 3.\n\n -1.0 0.0\n 0.0 1.0\n 1.0 0.0\n\n -1.0 0.0\n 0.0 -1.0\n 1.0 0.0\n";
        for (name, text) in [("selig.dat", selig), ("lednicer.dat", lednicer)] {
            let file = folder.join(name);
            std::fs::write(&file, text).unwrap();
            let curve = Curve::of_table(&file).unwrap();
            assert_eq!(curve.points, [[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]], "{name}");
            let found = curve.distances(&file, &[0.0, 0.0, 5.0, 2.0, 0.0, 5.0, 0.5, 0.5, 5.0], true).unwrap();
            let expected = [-(0.5_f64.sqrt()), 1.0, 0.0];
            assert!(
                found.iter().zip(expected).all(|(found, exact)| (found - exact).abs() < 1e-15),
                "{name}: {found:?}"
            );
            let told = curve.distances(&file, &[0.0, 0.0, 0.0, 0.0, 0.0, 1.0], true).unwrap_err().to_string();
            assert!(told.contains("expected a surface, because the mesh has points in space"), "{told}");
        }
        std::fs::write(folder.join("three.dat"), "1 2 3\n4 5 6\n7 8 9\n").unwrap();
        assert!(
            Curve::of_table(&folder.join("three.dat"))
                .unwrap_err()
                .to_string()
                .contains("expected a mesh file, or an outline")
        );
        std::fs::remove_dir_all(&folder).unwrap();
    }
}
