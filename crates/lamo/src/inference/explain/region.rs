//! Regions of a domain: blocks of rows and columns, of a volume also of layers, parts of a line, or boxes of a cloud.

use lamo_geometry::Grid;

/// Blocks along each axis of a plane, and boxes along each axis of a cloud in the plane.
const BLOCKS: usize = 4;
/// Parts of a line.
const PARTS: usize = 8;
/// Blocks along each axis of a volume, and boxes along each axis of a cloud in space.
const BOXES: usize = 2;

/// The regions of the points of one sample.
#[derive(Clone, Debug, PartialEq)]
pub struct Regions {
    /// Their names, such as `rows 0 to 9, columns 0 to 9`.
    pub names: Vec<String>,
    /// `[points]` the region of each point
    pub of: Vec<usize>,
}

impl Regions {
    /// Regions of a grid; those of a cloud are found from the positions `[points, space]`.
    pub fn new(grid: Grid, positions: &[f32], space: usize) -> Regions {
        match grid {
            Grid::Line { points } => {
                let parts = PARTS.min(points);
                let name = |part: usize| range("points", part, points, parts);
                Regions {
                    names: (0..parts).map(name).collect(),
                    of: (0..points).map(|point| point * parts / points).collect(),
                }
            }
            Grid::Plane { rows, columns } => {
                let [down, across] = [rows, columns].map(|extent| BLOCKS.min(extent));
                let name = |block: usize| {
                    let [row, column] = [block / across, block % across];
                    format!("{}, {}", range("rows", row, rows, down), range("columns", column, columns, across))
                };
                let block =
                    |point: usize| (point / columns * down / rows) * across + point % columns * across / columns;
                Regions { names: (0..down * across).map(name).collect(), of: (0..rows * columns).map(block).collect() }
            }
            Grid::Volume { rows, columns, layers } => {
                let counts = [rows, columns, layers].map(|extent| BOXES.min(extent));
                let [_, across, deep] = counts;
                let name = |block: usize| {
                    let places = [block / (across * deep), block / deep % across, block % deep];
                    let extents = [("rows", rows), ("columns", columns), ("layers", layers)];
                    let names = (0..3).map(|axis| range(extents[axis].0, places[axis], extents[axis].1, counts[axis]));
                    names.collect::<Vec<_>>().join(", ")
                };
                let block = |point: usize| {
                    let places =
                        [point / (columns * layers) * counts[0] / rows, point / layers % columns * across / columns];
                    (places[0] * across + places[1]) * deep + point % layers * deep / layers
                };
                let names = (0..counts.iter().product()).map(name).collect();
                Regions { names, of: (0..grid.points()).map(block).collect() }
            }
            Grid::Cloud { points } => boxes(points, positions, space),
        }
    }

    /// Sums of some values `[points]` by region.
    pub fn sums(&self, values: impl Iterator<Item = f64>) -> Vec<f64> {
        let mut sums = vec![0.0; self.names.len()];
        self.of.iter().zip(values).for_each(|(region, value)| sums[*region] += value);
        sums
    }
}

/// Part `part` of `parts` of an axis, in words.
fn range(axis: &str, part: usize, extent: usize, parts: usize) -> String {
    let first = |part: usize| (part * extent).div_ceil(parts);
    let (from, to) = (first(part), first(part + 1) - 1);
    if from == to { format!("{axis} {from}") } else { format!("{axis} {from} to {to}") }
}

/// Boxes of equal size around a cloud.
fn boxes(points: usize, positions: &[f32], space: usize) -> Regions {
    let along = match space {
        1 => PARTS,
        2 => BLOCKS,
        _ => BOXES,
    };
    let axes = space.min(3);
    let coordinate = |point: usize, axis: usize| positions[point * space + axis];
    let bounds: Vec<[f32; 2]> = (0..axes)
        .map(|axis| {
            let values = (0..points).map(|point| coordinate(point, axis));
            values.fold([f32::INFINITY, f32::NEG_INFINITY], |[least, most], value| [least.min(value), most.max(value)])
        })
        .collect();
    let place = |point: usize, axis: usize| {
        let [least, most] = bounds[axis];
        let share = if most > least { (coordinate(point, axis) - least) / (most - least) } else { 0.0 };
        ((share * along as f32) as usize).min(along - 1)
    };
    let of = (0..points).map(|point| (0..axes).fold(0, |number, axis| number * along + place(point, axis)));
    let name = |number: usize| {
        let part = |axis: usize| {
            let step = number / along.pow((axes - 1 - axis) as u32) % along;
            let [least, most] = bounds[axis];
            let at = |step: usize| least + (most - least) * step as f32 / along as f32;
            format!("{} {:.3} to {:.3}", ["x", "y", "z"][axis], at(step), at(step + 1))
        };
        (0..axes).map(part).collect::<Vec<_>>().join(", ")
    };
    Regions { names: (0..along.pow(axes as u32)).map(name).collect(), of: of.collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_lies_in_the_region_that_its_name_says() {
        let plane = Regions::new(Grid::Plane { rows: 10, columns: 3 }, &[], 2);
        assert_eq!((plane.names.len(), plane.of.len()), (12, 30));
        assert_eq!(plane.names[plane.of[4 * 3 + 2]], "rows 3 to 4, columns 2");
        for (point, region) in plane.of.iter().enumerate() {
            let row = point / 3;
            let words: Vec<&str> = plane.names[*region].split([' ', ',']).collect();
            let (from, to): (usize, usize) = (words[1].parse().unwrap(), words[3].parse().unwrap());
            assert!((from..=to).contains(&row), "row {row} in {}", plane.names[*region]);
        }
        let line = Regions::new(Grid::Line { points: 3 }, &[], 1);
        assert_eq!(line.of, [0, 1, 2]);
        let cloud = Regions::new(Grid::Cloud { points: 3 }, &[0.0, 0.0, 1.0, 1.0, 0.3, 0.9], 2);
        assert_eq!(cloud.of, [0, 15, 7]);
        assert_eq!(cloud.names[7], "x 0.250 to 0.500, y 0.750 to 1.000");
        assert_eq!(cloud.sums([1.0, 2.0, 4.0].into_iter())[15], 2.0);
    }
}
