//! A mesh that wraps around a body like the letter C; its two ends meet along the wake.
//!
//! The row index i runs from the outlet along the upper side of the wake, over the upper surface to the nose, and back
//! along the lower side. The column index j runs in a straight line from the body or the wake cut (j = 0) to the outer
//! border.

use std::f64::consts::PI;

use crate::dual_mesh::{Border, DualMesh};
use lamo_geometry::Grid;

/// Numbers of cells along the parts of a C-grid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CGrid {
    /// Cells along each side of the wake.
    pub wake: usize,
    /// Cells around the body; an even number.
    pub surface: usize,
    /// Cells from the body to the outer border.
    pub normal: usize,
}

/// Radius of the outer border around the trailing edge at (1, 0); the outlet lies at the same x.
const RADIUS: f64 = 40.0;
/// Largest ratio of neighbouring steps near the body.
const GROWTH: f64 = 1.02;

impl CGrid {
    /// Number of nodes along i; nodes of the wake cut count twice.
    pub fn rows(&self) -> usize {
        2 * self.wake + self.surface + 1
    }

    /// Number of nodes along j.
    pub fn columns(&self) -> usize {
        self.normal + 1
    }

    /// x of the surface nodes from nose to trailing edge: evenly spaced, with one more node at a quarter of the first
    /// step.
    pub fn surface_x(&self) -> Vec<f64> {
        let cells = self.surface / 2 - 1;
        let uniform = (1..=cells).map(|k| k as f64 / cells as f64);
        [0.0, 0.25 / cells as f64].into_iter().chain(uniform).collect()
    }

    /// x of the surface nodes from nose to trailing edge, (k / cells)^(3/2): denser towards the nose, where the flow turns.
    pub fn graded_surface_x(&self) -> Vec<f64> {
        let cells = self.surface / 2;
        (0..=cells).map(|k| (k as f64 / cells as f64).powf(1.5)).collect()
    }

    /// Coordinates from 0 to 1 along the wake, whose first step is `step`, and from the body outwards.
    pub fn spacing(&self, step: f64) -> Spacing {
        let along = stretched(self.wake, step / (RADIUS - 1.0));
        Spacing { along, outwards: stretched(self.normal, 2.0 / self.surface as f64 / RADIUS) }
    }

    /// `[rows, columns]` nodes around the body. `surface` holds `[surface + 1]` points from the trailing edge over the
    /// upper side to the nose and back.
    pub fn positions(&self, surface: &[[f64; 2]], Spacing { along, outwards }: &Spacing) -> Vec<[f64; 2]> {
        assert_eq!(surface.len(), self.surface + 1, "one point per node of the surface");
        assert_eq!([along.len(), outwards.len()], [self.wake + 1, self.normal + 1], "one coordinate per node");
        let [tail_x, tail_y] = surface[0];
        let wake = |k: usize| {
            let inner = [tail_x * (1.0 - along[k]) + RADIUS * along[k], tail_y * (1.0 - along[k])];
            (inner, 1.0 + (RADIUS - 1.0) * k as f64 / self.wake as f64)
        };
        let upper = (0..=self.wake).rev().map(wake).map(|(inner, x)| (inner, [x, RADIUS]));
        let around = (1..self.surface).map(|k| {
            let angle = PI * (0.5 + k as f64 / self.surface as f64);
            (surface[k], [1.0 + RADIUS * angle.cos(), RADIUS * angle.sin()])
        });
        let lower = (0..=self.wake).map(wake).map(|(inner, x)| (inner, [x, -RADIUS]));
        let line = |(inner, outer): ([f64; 2], [f64; 2])| {
            let blend = move |weight: &f64| [0, 1].map(|axis| inner[axis] * (1.0 - weight) + outer[axis] * weight);
            outwards.iter().map(blend).collect::<Vec<_>>()
        };
        upper.chain(around).chain(lower).flat_map(line).collect()
    }

    /// `[rows, columns]` number of the unknown at each node; both sides of the wake cut share their unknowns.
    pub fn unknowns(&self) -> Vec<usize> {
        let (rows, columns) = (self.rows(), self.columns());
        let mut next = 0;
        let mut unknowns: Vec<usize> = Vec::with_capacity(rows * columns);
        for row in 0..rows {
            for column in 0..columns {
                let opposite = rows - 1 - row;
                let shared = column == 0 && row + self.wake >= rows - 1 && opposite < row;
                unknowns.push(if shared { unknowns[opposite * columns] } else { next });
                next += usize::from(!shared);
            }
        }
        unknowns
    }

    /// Control volumes around the unknowns, for `[rows, columns]` positions of the nodes.
    pub fn volumes(&self, positions: &[[f64; 2]]) -> DualMesh {
        let (rows, columns) = (self.rows(), self.columns());
        let unknowns = self.unknowns();
        let count = unknowns.iter().max().map_or(0, |most| most + 1);
        let mut unknown_positions = vec![[0.0; 2]; count];
        let mut on_wall = vec![false; count];
        for (node, &unknown) in unknowns.iter().enumerate() {
            unknown_positions[unknown] = positions[node];
            on_wall[unknown] = node % columns == 0; // a border edge between two nodes with j = 0 is part of the body
        }
        let cells = Grid::Plane { rows, columns }.cells().into_iter();
        let quadrilaterals: Vec<[usize; 4]> = // i runs clockwise, so the reverse order is counter-clockwise
            cells.map(|[a, b, c, d]| [a, d, c, b].map(|node| unknowns[node])).collect();
        let border = |nodes: [usize; 2]| {
            if nodes.iter().all(|&node| on_wall[node]) { Border::Wall } else { Border::FarField }
        };
        DualMesh::new(unknown_positions, &quadrilaterals, border)
    }
}

/// Coordinates of the nodes of a C-grid, from 0 to 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Spacing {
    /// `[wake + 1]` from the trailing edge to the outlet
    pub along: Vec<f64>,
    /// `[normal + 1]` from the body to the outer border
    pub outwards: Vec<f64>,
}

impl Spacing {
    /// The spacing of a grid with twice the cells; every second node stays.
    pub fn halved(&self) -> Self {
        Self { along: halved(&self.along), outwards: halved(&self.outwards) }
    }
}

/// Divides each step in two, so that the halves grow as smoothly as the steps.
fn halved(coordinates: &[f64]) -> Vec<f64> {
    let steps: Vec<f64> = coordinates.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let last = steps.len() - 1;
    let middle = |k: usize| {
        let (before, after) = (k.saturating_sub(1), (k + 1).min(last));
        // Growth from one step to the next; half of it, as a power, from one half to the other.
        let growth = (steps[after] / steps[before]).powf(1.0 / (after - before).max(1) as f64);
        coordinates[k] + steps[k] / (1.0 + growth.sqrt())
    };
    let pairs = (0..=last).flat_map(|k| [coordinates[k], middle(k)]);
    pairs.chain([coordinates[last + 1]]).collect()
}

/// `cells + 1` coordinates from 0 to 1 that start with `step`. The steps grow by one ratio if at most 1.02 is enough.
/// Otherwise they grow by 1.02 over the first three quarters, and then by the ratio that fills the remaining length.
pub fn stretched(cells: usize, step: f64) -> Vec<f64> {
    let ratio = filling_ratio(1.0, step, cells);
    let mut coordinates = vec![0.0];
    let mut append = |count: usize, step: &mut f64, ratio: f64| {
        for _cell in 0..count {
            let last = coordinates[coordinates.len() - 1];
            coordinates.push(last + *step);
            *step *= ratio;
        }
        coordinates[coordinates.len() - 1]
    };
    let mut step = step;
    if ratio <= GROWTH {
        append(cells, &mut step, ratio);
    } else {
        let near = (3 * (cells + 1) / 4).saturating_sub(1);
        let reached = append(near, &mut step, GROWTH);
        let ratio = filling_ratio(1.0 - reached, step, cells - near);
        append(cells - near, &mut step, ratio);
    }
    coordinates[cells] = 1.0;
    coordinates
}

/// r with step (1 + r + … + r^(cells − 1)) = length, by bisection.
fn filling_ratio(length: f64, step: f64, cells: usize) -> f64 {
    let excess = |ratio: f64| (0..cells).fold(0.0, |sum, _| sum * ratio + step) - length;
    let (mut low, mut high) = (0.0, 2.0);
    while excess(high) < 0.0 {
        high *= 2.0;
    }
    for _halving in 0..100 {
        let middle = (low + high) / 2.0;
        if excess(middle) < 0.0 { low = middle } else { high = middle }
    }
    (low + high) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    const PUBLIC: CGrid = CGrid { wake: 50, surface: 120, normal: 50 };

    /// A thin ellipse, from the trailing edge over the upper side.
    fn positions(grid: CGrid) -> Vec<[f64; 2]> {
        let angle = |k: usize| 2.0 * PI * k as f64 / grid.surface as f64;
        let surface = (0..=grid.surface).map(|k| [0.5 + 0.5 * angle(k).cos(), 0.1 * angle(k).sin()]);
        grid.positions(&surface.collect::<Vec<_>>(), &grid.spacing(0.02))
    }

    #[test]
    fn the_public_grid_has_11220_unknowns() {
        let unknowns = PUBLIC.unknowns();
        assert_eq!((PUBLIC.rows(), PUBLIC.columns(), unknowns.len()), (221, 51, 221 * 51));
        assert_eq!(unknowns.iter().max(), Some(&11219));
    }

    #[test]
    fn both_sides_of_the_wake_cut_share_their_unknowns_and_positions() {
        let (unknowns, positions) = (PUBLIC.unknowns(), positions(PUBLIC));
        for row in 0..=50 {
            let (upper, lower) = (row * 51, (220 - row) * 51);
            assert_eq!(unknowns[upper], unknowns[lower], "row {row}");
            let gap = (0..2).map(|axis| (positions[upper][axis] - positions[lower][axis]).abs()).fold(0.0, f64::max);
            assert!(gap < 1e-15, "row {row}: gap {gap:e}");
        }
        assert!(unknowns[51 * 51] != unknowns[169 * 51]);
    }

    #[test]
    fn the_volumes_fill_the_domain_outside_the_body() {
        for grid in [PUBLIC, CGrid { wake: 4, surface: 12, normal: 4 }] {
            let mesh = grid.volumes(&positions(grid));
            assert!(mesh.volumes.iter().all(|&volume| volume > 0.0), "{grid:?}");
            let sides = grid.surface as f64;
            // Area of a fan of triangles.
            let polygon = |radii: f64, span: f64| radii * (span / sides).sin() * sides / 2.0;
            let outside = polygon(RADIUS * RADIUS, PI) + 2.0 * RADIUS * (RADIUS - 1.0);
            let area: f64 = mesh.volumes.iter().sum();
            assert!((area + polygon(0.5 * 0.1, 2.0 * PI) - outside).abs() < 1e-9, "{grid:?}: {area} of {outside}");
            let walls = mesh.border.iter().filter(|face| face.border == Border::Wall).count();
            assert_eq!((walls, mesh.border.len()), (2 * grid.surface, 4 * (grid.surface + grid.wake + grid.normal)));
        }
    }

    #[test]
    fn halved_steps_keep_every_second_node_and_grow_as_smoothly() {
        let geometric: Vec<f64> = (0..9).map(|k| (1.2f64.powi(k) - 1.0) / (1.2f64.powi(8) - 1.0)).collect();
        let fine = halved(&geometric);
        assert!(fine.iter().step_by(2).eq(&geometric));
        let steps: Vec<f64> = fine.windows(2).map(|pair| pair[1] - pair[0]).collect();
        for pair in steps.windows(2) {
            assert!((pair[1] / pair[0] - 1.2f64.sqrt()).abs() < 1e-12, "{steps:?}");
        }
    }

    #[test]
    fn steps_start_with_the_given_length_grow_slowly_and_end_at_one() {
        for (cells, step) in [(50, 1.0 / 2400.0), (50, 4e-4), (50, 0.015), (50, 0.03), (4, 0.01), (5, 1e-6)] {
            let coordinates = stretched(cells, step);
            assert_eq!((coordinates.len(), coordinates[0], coordinates[cells]), (cells + 1, 0.0, 1.0));
            assert!((coordinates[1] - step).abs() < 1e-12, "first step {}", coordinates[1]);
            let steps: Vec<f64> = coordinates.windows(2).map(|pair| pair[1] - pair[0]).collect();
            let near = 3 * (cells + 1) / 4 - 1;
            assert!(steps[..near].windows(2).all(|pair| pair[1] / pair[0] < GROWTH + 1e-9), "{cells} from {step}");
            assert!(steps.iter().all(|&step| step > 0.0));
        }
    }
}
