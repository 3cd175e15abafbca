//! Heat conduction u_t = ∇·(k ∇u) + q on hexahedra of 27 nodes, with −k ∂u/∂n = h u − g on the border.
//!
//! Space: M u' = −A u + F, where A has the conductivity and the exchange h with the surroundings, F the source q and
//! the supplied flux g. Time: TR-BDF2 (Bank et al. 1985), one step of the trapezoidal rule over γ Δt, then BDF2 over
//! the whole step. With γ = 2 − √2 both have the matrix M + (1 − 1/√2) Δt A, which is factored once; the method has
//! order 2 and is L-stable. h = 0 insulates: 1ᵀA = 0, so Σ M u changes by the heat of F alone.

use crate::Error;
use crate::hexahedron::{Lattice, NODES, SIDE_NODES, points, side_points};
use crate::sparse::{Assembly, Cholesky, Part};

/// Largest residual of a linear solve, relative to its right side.
pub const LARGEST_RESIDUAL: f64 = 1e-10;

type CellMatrix = [[f64; NODES]; NODES];

/// The discretised equation.
#[derive(Debug)]
pub struct Conduction {
    lattice: Lattice,
    positions: Vec<[f64; 3]>,
    cells: Vec<[usize; NODES]>,
    /// M of each cell.
    capacity: Vec<CellMatrix>,
    /// A of each cell.
    exchange: Vec<CellMatrix>,
    assembly: Assembly<NODES>,
}

impl Conduction {
    /// `positions` are those of the nodes of `lattice`; `conductivity` gives k at a position, `exchange` is h.
    pub fn new(
        lattice: Lattice,
        positions: Vec<[f64; 3]>,
        conductivity: impl Fn([f64; 3]) -> f64,
        exchange: f64,
    ) -> Result<Self, Error> {
        let cells = lattice.cell_nodes();
        let zero = || vec![[[0.0; NODES]; NODES]; cells.len()];
        let (mut mass, mut coupling) = (zero(), zero());
        for (cell, nodes) in cells.iter().enumerate() {
            for point in points(cell, &nodes.map(|node| positions[node]))? {
                let conductance = point.volume * conductivity(point.position);
                for (a, b) in (0..NODES).flat_map(|a| (0..NODES).map(move |b| (a, b))) {
                    mass[cell][a][b] += point.volume * point.values[a] * point.values[b];
                    let product: f64 = (0..3).map(|axis| point.slopes[a][axis] * point.slopes[b][axis]).sum();
                    coupling[cell][a][b] += conductance * product;
                }
            }
        }
        for side in lattice.border() {
            let cell = cell_of(lattice, side);
            let places = side.map(|node| cells[cell].iter().position(|&other| other == node).unwrap_or(0));
            for point in side_points(&side.map(|node| positions[node])) {
                let rate = exchange * point.area();
                for (a, b) in (0..SIDE_NODES).flat_map(|a| (0..SIDE_NODES).map(move |b| (a, b))) {
                    coupling[cell][places[a]][places[b]] += rate * point.values[a] * point.values[b];
                }
            }
        }
        let assembly = Assembly::new(positions.len(), cells.clone(), Part::Lower);
        Ok(Self { lattice, positions, cells, capacity: mass, exchange: coupling, assembly })
    }

    /// `[nodes]` F: ∫ q N dV + ∫ g N dA.
    pub fn load(
        &self,
        source: impl Fn([f64; 3]) -> f64,
        flux: Option<&dyn Fn([f64; 3], [f64; 3]) -> f64>,
    ) -> Result<Vec<f64>, Error> {
        let mut load = vec![0.0; self.positions.len()];
        for (cell, nodes) in self.cells.iter().enumerate() {
            for point in points(cell, &nodes.map(|node| self.positions[node]))? {
                let heat = point.volume * source(point.position);
                nodes.iter().zip(point.values).for_each(|(&node, value)| load[node] += heat * value);
            }
        }
        let Some(flux) = flux else { return Ok(load) };
        for side in self.lattice.border() {
            for point in side_points(&side.map(|node| self.positions[node])) {
                let area = point.area();
                let heat = area * flux(point.position, point.normal.map(|part| part / area));
                side.iter().zip(point.values).for_each(|(&node, value)| load[node] += heat * value);
            }
        }
        Ok(load)
    }

    /// Σ M u: the heat in the body.
    pub fn heat(&self, state: &[f64]) -> f64 {
        self.product(state, 1.0, 0.0).iter().sum()
    }

    /// (mass · M + coupling · A) u
    fn product(&self, state: &[f64], mass: f64, coupling: f64) -> Vec<f64> {
        let mut product = vec![0.0; state.len()];
        for ((nodes, capacity), exchange) in self.cells.iter().zip(&self.capacity).zip(&self.exchange) {
            let inside = nodes.map(|node| state[node]);
            for (a, &node) in nodes.iter().enumerate() {
                let row = (0..NODES).map(|b| (mass * capacity[a][b] + coupling * exchange[a][b]) * inside[b]);
                product[node] += row.sum::<f64>();
            }
        }
        product
    }

    /// Advances from `start` by `snapshots` intervals of `steps` steps each; `load` gives F at a time. Returns u at the
    /// end of each interval.
    pub fn advance(
        &self,
        mut state: Vec<f64>,
        [start, interval]: [f64; 2],
        [snapshots, steps]: [usize; 2],
        load: impl Fn(f64) -> Result<Vec<f64>, Error>,
    ) -> Result<Vec<Vec<f64>>, Error> {
        let step = interval / steps as f64;
        let gamma = 2.0 - 2f64.sqrt();
        let implicit = 0.5 * gamma * step; // = (1 − γ) / (2 − γ) · step
        let summed = self.assembly.sum(|cell, matrix, _| {
            for (a, b) in (0..NODES).flat_map(|a| (0..NODES).map(move |b| (a, b))) {
                matrix[a][b] = self.capacity[cell][a][b] + implicit * self.exchange[cell][a][b];
            }
        });
        let symbolic = Cholesky::new("conduction", &self.assembly)?;
        let factor = symbolic.factor(&self.assembly, &summed.matrix)?;
        let solve = |right: Vec<f64>| -> Result<Vec<f64>, Error> {
            let mut solution = right.clone();
            factor.solve(&mut solution)?;
            let back = self.product(&solution, 1.0, implicit);
            let miss: f64 = back.iter().zip(&right).map(|(found, wanted)| (found - wanted).powi(2)).sum();
            let size: f64 = right.iter().map(|value| value * value).sum();
            let residual = if miss == 0.0 { 0.0 } else { (miss / size).sqrt() };
            match residual <= LARGEST_RESIDUAL {
                true => Ok(solution),
                false => Err(Error::Residual { system: "conduction", expected: LARGEST_RESIDUAL, found: residual }),
            }
        };
        let mut series = Vec::new();
        let mut now = load(start)?;
        for number in 0..snapshots * steps {
            let time = start + number as f64 * step;
            let (between, then) = (load(time + gamma * step)?, load(time + step)?);
            let mut right = self.product(&state, 1.0, -implicit);
            (0..right.len()).for_each(|node| right[node] += implicit * (now[node] + between[node]));
            let middle = solve(right)?;
            let (new, old) = (1.0 / (gamma * (2.0 - gamma)), (1.0 - gamma).powi(2) / (gamma * (2.0 - gamma)));
            let past: Vec<f64> = middle.iter().zip(&state).map(|(middle, state)| new * middle - old * state).collect();
            let mut right = self.product(&past, 1.0, 0.0);
            (0..right.len()).for_each(|node| right[node] += implicit * then[node]);
            (state, now) = (solve(right)?, then);
            if (number + 1).is_multiple_of(steps) {
                series.push(state.clone());
            }
        }
        Ok(series)
    }
}

/// The cell that a side on the border belongs to: its middle node lies on the side.
fn cell_of(lattice: Lattice, side: [usize; SIDE_NODES]) -> usize {
    let place = lattice.place(side[4]);
    let [i, j, k] = std::array::from_fn(|axis| (place[axis] / 2).min(lattice.cells[axis] - 1));
    (i * lattice.cells[1] + j) * lattice.cells[2] + k
}
