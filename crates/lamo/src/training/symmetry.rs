//! Symmetries of a plane: reflections, and also rotations where it is a square.

use lamo_geometry::Grid;

/// For each symmetry, the point that moves to each position; only the identity where the grid is not a plane.
pub(crate) fn sides(grid: Grid) -> Vec<Vec<u32>> {
    let Grid::Plane { rows, columns } = grid else { return vec![(0..grid.points() as u32).collect()] };
    let swaps: &[bool] = if rows == columns { &[false, true] } else { &[false] };
    let mut all = Vec::new();
    for &swap in swaps {
        for mirror in 0..4 {
            let point = |place: usize| {
                let (mut row, mut column) = (place / columns, place % columns);
                if mirror & 1 != 0 {
                    row = rows - 1 - row;
                }
                if mirror & 2 != 0 {
                    column = columns - 1 - column;
                }
                let (row, column) = if swap { (column, row) } else { (row, column) };
                (row * columns + column) as u32
            };
            all.push((0..rows * columns).map(point).collect());
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::sides;
    use lamo_geometry::Grid;

    #[test]
    fn a_square_has_eight_sides_a_rectangle_four_and_one_after_another_is_one_of_them() {
        for (rows, columns, count) in [(3, 3, 8), (2, 3, 4), (4, 4, 8)] {
            let all = sides(Grid::Plane { rows, columns });
            assert_eq!(all.len(), count);
            assert!(all[0].iter().enumerate().all(|(place, &point)| place == point as usize));
            for first in &all {
                let mut sorted = first.clone();
                sorted.sort_unstable();
                assert_eq!(sorted, all[0], "every point is seen once");
                for second in &all {
                    let both: Vec<u32> = second.iter().map(|&place| first[place as usize]).collect();
                    assert!(all.contains(&both));
                }
            }
        }
        assert_eq!(sides(Grid::Cloud { points: 3 }), [[0, 1, 2]]);
    }
}
