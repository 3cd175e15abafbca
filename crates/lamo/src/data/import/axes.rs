//! Axes of arrays, named by letters: which letters a field may have, and which axes an array has by its shape.

use crate::data::dataset::Role;
use lamo_geometry::Grid;

/// The axes of a data set in their order: samples, snapshots, rows, columns, points, channels.
pub(super) const ORDER: &str = "ntxypc";

/// The axes `letters`, which have these extents, in words: `samples, 3 rows, 2 columns`.
pub(super) fn words(axes: impl IntoIterator<Item = (char, usize)>) -> String {
    let word = |(letter, extent)| match letter {
        'n' => "samples".to_owned(),
        't' => format!("{extent} snapshots"),
        'x' => format!("{extent} rows"),
        'y' => format!("{extent} columns"),
        'p' => format!("{extent} points"),
        _ => format!("{extent} channels"),
    };
    axes.into_iter().map(word).collect::<Vec<_>>().join(", ")
}

/// Whether a field of this role may have the axes `axes`. Each letter occurs once. Positions have all axes of the grid
/// and no snapshots. Inputs and outputs have samples, and all axes of the grid, or only the rows of a plane, or none of
/// them; only fields with all axes of the grid may have snapshots.
pub(super) fn allowed(axes: &str, role: Role, grid: &Grid) -> bool {
    let once = |(index, letter): (usize, char)| ORDER.contains(letter) && !axes[..index].contains(letter);
    let has = |letter| axes.contains(letter);
    let (all, only_rows) = match grid {
        Grid::Plane { .. } => (has('x') && has('y') && !has('p'), has('x') && !has('y') && !has('p')),
        Grid::Line { .. } | Grid::Cloud { .. } => (has('p') && !has('x') && !has('y'), false),
    };
    let none = !has('x') && !has('y') && !has('p');
    axes.char_indices().all(once)
        && match role {
            Role::Position => all && !has('t'),
            Role::Input | Role::Output => has('n') && (all || !has('t') && (only_rows || none)),
        }
}

/// Whether an array of this shape has the rows, columns and points of the grid along these axes, and is not empty.
pub(super) fn fits(axes: &str, shape: &[usize], grid: &Grid) -> bool {
    axes.chars().zip(shape).all(|(letter, &extent)| match (letter, grid) {
        ('x', Grid::Plane { rows, .. }) => extent == *rows,
        ('y', Grid::Plane { columns, .. }) => extent == *columns,
        ('p', Grid::Line { points } | Grid::Cloud { points }) => extent == *points,
        ('x' | 'y' | 'p', _) => false,
        _ => extent > 0,
    })
}

/// The axes that an array may have, the most likely first.
pub(super) fn candidates(role: Role, side_by_side: bool, grid: &Grid) -> Vec<String> {
    let (points, line, plane) = match grid {
        Grid::Plane { .. } => ("xy", false, true),
        Grid::Line { .. } => ("p", true, false),
        Grid::Cloud { .. } => ("p", false, false),
    };
    let over_points = |patterns: &[&str]| patterns.iter().map(|pattern| pattern.replace('*', points)).collect();
    let mut found: Vec<String> = match (role, side_by_side) {
        (Role::Position, true) => return over_points(&["n*", "*"]),
        (Role::Position, false) if line => return over_points(&["n*c", "*c", "n*", "*"]),
        (Role::Position, false) => return over_points(&["n*c", "*c"]),
        (_, true) => over_points(&["n*", "nt*"]),
        (_, false) => over_points(&["n*", "n*c", "nt*", "nt*c"]),
    };
    if plane {
        found.push("nx".into());
    }
    found.extend(["n".into(), "nc".into()]);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_are_found_by_the_shape() {
        let plane = Grid::Plane { rows: 5, columns: 3 };
        let cloud = Grid::Cloud { points: 7 };
        let found = |role, side, grid, shape: &[usize]| {
            let fit = |axes: &String| axes.len() == shape.len() && fits(axes, shape, grid);
            candidates(role, side, grid).into_iter().find(fit)
        };
        use Role::{Input, Output, Position};
        for (role, side, grid, shape, axes) in [
            (Output, false, &plane, &[9, 5, 3][..], "nxy"),
            (Output, false, &plane, &[9, 20, 5, 3], "ntxy"),
            (Output, false, &plane, &[9, 5, 3, 4], "nxyc"),
            (Output, false, &plane, &[9, 20, 5, 3, 4], "ntxyc"),
            (Input, false, &plane, &[9, 5], "nx"),
            (Input, false, &plane, &[9], "n"),
            (Input, false, &plane, &[9, 2], "nc"),
            (Position, false, &plane, &[5, 3, 2], "xyc"),
            (Position, true, &plane, &[9, 5, 3], "nxy"),
            (Position, false, &cloud, &[9, 7, 2], "npc"),
            (Position, false, &cloud, &[7, 2], "pc"),
            (Output, true, &cloud, &[9, 7], "np"),
        ] {
            assert_eq!(found(role, side, grid, shape).as_deref(), Some(axes), "{shape:?}");
        }
        assert_eq!(found(Output, false, &plane, &[9, 3, 5]), None);
        for (axes, role, grid, expected) in [
            ("xytn", Output, &plane, true),
            ("xn", Input, &plane, true),
            ("n", Input, &plane, true),
            ("xyt", Output, &plane, false),
            ("yn", Input, &plane, false),
            ("nxyz", Output, &plane, false),
            ("nxx", Output, &plane, false),
            ("np", Output, &plane, false),
            ("pcn", Position, &cloud, true),
            ("pc", Position, &cloud, true),
            ("cn", Position, &cloud, false),
            ("tpc", Position, &cloud, false),
        ] {
            assert_eq!(allowed(axes, role, grid), expected, "{axes}");
        }
    }
}
