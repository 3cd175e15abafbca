//! Data of cells at points: the average over the cells that share a point, or the centres of the cells as points.

use super::mesh::{Cells, DataArray, short};
use super::numbers::Numbers;
use crate::error::Refusal;
use crate::files::memory;

/// `[points, components]`: at each point the mean of its cells, each with the same weight; refused at a point without cells.
pub fn to_points(array: &DataArray, cells: &Cells, points: usize) -> Result<Vec<f64>, Refusal> {
    let width = array.components;
    let mut sums: Vec<f64> = memory::filled(0.0, points * width).map_err(|reason| short(&reason))?;
    let mut counts: Vec<u32> = memory::filled(0, points).map_err(|reason| short(&reason))?;
    for cell in 0..cells.len() {
        for &point in cells.points(cell) {
            counts[point as usize] += 1;
            for component in 0..width {
                sums[point as usize * width + component] += array.values.at(cell * width + component);
            }
        }
    }
    if let Some(point) = counts.iter().position(|&count| count == 0) {
        let refusal = Refusal::new(format!("point {point}"), "a cell, whose value it takes", "no cell with this point");
        return Err(refusal.advise("remove points without cells, or take the centres of the cells with --on cells"));
    }
    for (point, &count) in counts.iter().enumerate() {
        for sum in &mut sums[point * width..][..width] {
            *sum /= f64::from(count);
        }
    }
    Ok(sums)
}

/// `[cells, 3]`: the mean of the points of each cell.
pub fn centres(positions: &[f64], cells: &Cells) -> Result<Vec<f64>, Refusal> {
    let mut centres: Vec<f64> = memory::reserve(3 * cells.len()).map_err(|reason| short(&reason))?;
    for cell in 0..cells.len() {
        let points = cells.points(cell);
        for axis in 0..3 {
            let sum: f64 = points.iter().map(|&point| positions[3 * point as usize + axis]).sum();
            centres.push(sum / points.len() as f64);
        }
    }
    Ok(centres)
}

impl DataArray {
    /// An array of double precision.
    pub fn new(name: impl Into<String>, components: usize, values: Vec<f64>) -> DataArray {
        DataArray { name: name.into(), components, values: Numbers::F64(values) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::mesh::kinds::{QUAD, TRIANGLE};

    #[test]
    fn a_point_gets_the_mean_of_its_cells_and_a_cell_its_centre() {
        let mut cells = Cells::new();
        cells.push(TRIANGLE, [0, 1, 2]);
        cells.push(QUAD, [1, 2, 3, 4]);
        let array = DataArray::new("p", 2, vec![1.0, 10.0, 3.0, 30.0]);
        let found = to_points(&array, &cells, 5).unwrap();
        assert_eq!(found, [1.0, 10.0, 2.0, 20.0, 2.0, 20.0, 3.0, 30.0, 3.0, 30.0]);
        let told = to_points(&array, &cells, 6).unwrap_err().to_string();
        assert!(told.starts_with("point 5: expected a cell, whose value it takes"), "{told}");
        let positions = [0.0, 0.0, 0.0, 3.0, 0.0, 0.0, 0.0, 3.0, 0.0, 5.0, 5.0, 0.0, 8.0, 0.0, 4.0];
        assert_eq!(centres(&positions, &cells).unwrap(), [1.0, 1.0, 0.0, 4.0, 2.0, 1.0]);
    }
}
