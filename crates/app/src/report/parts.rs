//! What is drawn of the points of a sample: all of them, or three cuts through a volume.

use crate::plot::{Cut, Layout, cuts};
use lamo::data::{Drawn, Samples};
use lamo::task::{Positions, Spread, Task};
use lamo_geometry::Grid;
use std::rc::Rc;

/// What is drawn of the points: all of them, or one cut through a volume.
pub(super) struct Part {
    /// The name of a cut, as in `, row 16`.
    pub(super) name: String,
    pub(super) layout: Rc<Layout>,
    /// Down and across in a cut.
    pub(super) axes: Option<[&'static str; 2]>,
    /// The points of a cut.
    pub(super) points: Option<Vec<usize>>,
}

impl Part {
    /// The parts of a sample that are drawn: the cuts of a volume, all points of other grids.
    pub(super) fn of(task: &Task, samples: &Samples, index: usize, drawn: &Drawn) -> Vec<Part> {
        let Some(extents) = volume(samples.grid) else {
            let layout = Rc::new(layout_of(task, samples, index, drawn));
            return vec![Part { name: String::new(), layout, axes: None, points: None }];
        };
        let part = |cut: Cut| {
            let (name, layout) = (format!(", {}", cut.name), Rc::new(Layout::Grid(cut.plane)));
            Part { name, layout, axes: Some(cut.axes), points: Some(cut.points) }
        };
        cuts(extents).into_iter().map(part).collect()
    }
}

/// Rows, columns and layers of a volume.
pub(super) fn volume(grid: Grid) -> Option<[usize; 3]> {
    grid.extents().filter(|_| matches!(grid, Grid::Volume { .. }))
}

/// The layout of the points of a sample, with the triangles as which it is drawn where cells are known.
pub(crate) fn layout_of(task: &Task, samples: &Samples, index: usize, drawn: &Drawn) -> Layout {
    let Samples { grid, space, .. } = *samples;
    let (positions, points) = (samples.positions_of(index), samples.points_of(index));
    let is_given = task.positions == Positions::Given;
    match grid {
        Grid::Plane { rows, columns } if !is_given || space < 2 => Layout::Grid([rows, columns]),
        Grid::Plane { rows, columns } => {
            let positions = positions.chunks_exact(space).map(|point| [point[0], point[1]]).collect();
            Layout::Mesh([rows, columns], positions)
        }
        Grid::Volume { .. } if !is_given || space < 3 => volume_layout(grid),
        Grid::Volume { .. } => Layout::cloud(positions, space),
        Grid::Cloud { .. } if space > 1 => Layout::of_points(positions, space, drawn),
        Grid::Line { .. } | Grid::Cloud { .. } if points < 2 || !is_given || space != 1 => Layout::Grid([points, 1]),
        Grid::Line { .. } | Grid::Cloud { .. } => {
            let mut sorted = positions.to_vec();
            sorted.sort_by(f32::total_cmp);
            Layout::Line(sorted)
        }
    }
}

/// The points of a volume as a cloud.
pub(crate) fn volume_layout(grid: Grid) -> Layout {
    Layout::cloud(&grid.lattice(false).unwrap_or_default(), 3)
}

/// The parts that a field has: one where it has no values of its own at the points.
pub(super) fn of_spread(parts: &[Part], spread: Spread) -> &[Part] {
    if spread == Spread::Points { parts } else { &parts[..1] }
}

/// Where a field is drawn, in its title.
pub(super) fn place(spread: Spread, part: &Part) -> &str {
    match spread {
        Spread::Points => &part.name,
        Spread::Rows => " along the rows",
        Spread::Sample => "",
    }
}
