//! Five-point systems Σ_faces c (u − u_neighbour) = s on a plane of unknowns; u = 0 outside the plane.
//!
//! The pattern is the same for all coefficients, so its ordering (nested dissection, George 1973) and its symbolic
//! factor are computed once. The numeric factor is LLᵀ for positive conductances, and pivoted LBLᵀ for conductances of
//! any sign.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::perm::PermRef;
use faer::sparse::linalg::cholesky::{
    CholeskySymbolicParams, LltRef, SymbolicCholesky, SymmetricOrdering, factorize_symbolic_cholesky,
};
use faer::sparse::{SparseColMatRef, SymbolicSparseColMat};
use faer::{Conj, Par, Side, Spec};

use crate::Error;
use crate::sparse::{column, norm, unfactored, zeros};

const SYSTEM: &str = "five-point system";

/// Flux through each face per difference of u across it.
#[derive(Clone, Debug, PartialEq)]
pub struct Conductances {
    /// `[rows + 1, columns]` faces between neighbouring rows; the first and last row of faces are walls
    pub between_rows: Vec<f64>,
    /// `[rows, columns + 1]` faces between neighbouring columns; the first and last column of faces are walls
    pub between_columns: Vec<f64>,
}

impl Conductances {
    /// Conductances of a plane of `rows` × `columns` unknowns, from functions of (row, column). `between_rows` gives
    /// the face before that row, `between_columns` the face before that column.
    pub fn new(
        rows: usize,
        columns: usize,
        between_rows: impl Fn(usize, usize) -> f64,
        between_columns: impl Fn(usize, usize) -> f64,
    ) -> Self {
        let pairs = |first: usize, second: usize| (0..first).flat_map(move |i| (0..second).map(move |j| (i, j)));
        Self {
            between_rows: pairs(rows + 1, columns).map(|(row, column)| between_rows(row, column)).collect(),
            between_columns: pairs(rows, columns + 1).map(|(row, column)| between_columns(row, column)).collect(),
        }
    }
}

/// The pattern of a plane of unknowns and its symbolic factor.
#[derive(Debug)]
pub struct FivePoint {
    rows: usize,
    columns: usize,
    pattern: SymbolicSparseColMat<usize>,
    symbolic: SymbolicCholesky<usize>,
}

impl FivePoint {
    /// Analyses the pattern of `rows` × `columns` unknowns.
    pub fn new(rows: usize, columns: usize) -> Result<Self, Error> {
        let pattern = lower_pattern(rows, columns);
        let mut order = Vec::with_capacity(rows * columns);
        dissect(0..rows, 0..columns, columns, &mut order);
        let mut inverse = vec![0; order.len()];
        for (position, &unknown) in order.iter().enumerate() {
            inverse[unknown] = position;
        }
        let symbolic = factorize_symbolic_cholesky(
            pattern.as_ref(),
            Side::Lower,
            SymmetricOrdering::Custom(PermRef::new_checked(&order, &inverse, order.len())),
            CholeskySymbolicParams::default(),
        )
        .map_err(|error| unfactored(SYSTEM, &error))?;
        Ok(Self { rows, columns, pattern, symbolic })
    }

    /// `[rows, columns]` u for positive conductances and the integrated source `[rows, columns]`.
    pub fn solve_positive(&self, conductances: &Conductances, source: &[f64]) -> Result<Vec<f64>, Error> {
        let values = self.lower_values(conductances);
        let matrix = SparseColMatRef::new(self.pattern.as_ref(), &values);
        let mut factor = zeros(SYSTEM, self.symbolic.len_val())?;
        let scratch = self.symbolic.factorize_numeric_llt_scratch::<f64>(Par::Seq, Spec::default());
        let solve_scratch = self.symbolic.solve_in_place_scratch::<f64>(1, Par::Seq);
        let mut memory = MemBuffer::try_new(scratch.or(solve_scratch)).map_err(|error| unfactored(SYSTEM, &error))?;
        let stack = MemStack::new(&mut memory);
        self.symbolic
            .factorize_numeric_llt(
                &mut factor,
                matrix,
                Side::Lower,
                Default::default(),
                Par::Seq,
                stack,
                Spec::default(),
            )
            .map_err(|error| unfactored(SYSTEM, &error))?;
        let mut solution = source.to_vec();
        LltRef::new(&self.symbolic, &factor).solve_in_place_with_conj(Conj::No, column(&mut solution), Par::Seq, stack);
        self.residual(conductances, source, &solution)?;
        Ok(solution)
    }

    /// `[rows, columns]` u for conductances of any sign, with one step of iterative refinement.
    pub fn solve_indefinite(&self, conductances: &Conductances, source: &[f64]) -> Result<Vec<f64>, Error> {
        let values = self.lower_values(conductances);
        let matrix = SparseColMatRef::new(self.pattern.as_ref(), &values);
        let unknowns = self.rows * self.columns;
        let mut factor = zeros(SYSTEM, self.symbolic.len_val())?;
        let mut subdiagonal = vec![0.0; unknowns];
        let (mut forward, mut backward) = (vec![0; unknowns], vec![0; unknowns]);
        let scratch = self.symbolic.factorize_numeric_intranode_lblt_scratch::<f64>(Par::Seq, Spec::default());
        let solve_scratch = self.symbolic.solve_in_place_scratch::<f64>(1, Par::Seq);
        let mut memory = MemBuffer::try_new(scratch.or(solve_scratch)).map_err(|error| unfactored(SYSTEM, &error))?;
        let stack = MemStack::new(&mut memory);
        let factored = self.symbolic.factorize_numeric_intranode_lblt(
            &mut factor,
            &mut subdiagonal,
            &mut forward,
            &mut backward,
            matrix,
            Side::Lower,
            Par::Seq,
            stack,
            Spec::default(),
        );
        let mut solution = vec![0.0; unknowns];
        let mut correction = source.to_vec();
        for _pass in 0..2 {
            factored.solve_in_place_with_conj(Conj::No, column(&mut correction), Par::Seq, stack);
            solution.iter_mut().zip(&correction).for_each(|(value, change)| *value += change);
            correction = self.residual(conductances, source, &solution)?;
        }
        Ok(solution)
    }

    /// `source` minus the outflow of `solution`; an error when this is too large to trust the solution.
    fn residual(&self, conductances: &Conductances, source: &[f64], solution: &[f64]) -> Result<Vec<f64>, Error> {
        const LARGEST: f64 = 1e-6; // far above round-off at contrasts up to a million, far below the errors of training
        let outflow = self.apply(conductances, solution);
        let residual: Vec<f64> = source.iter().zip(&outflow).map(|(source, outflow)| source - outflow).collect();
        let (size, allowed) = (norm(&residual), LARGEST * norm(source));
        if size.is_nan() || size > allowed {
            return Err(Error::Residual { system: SYSTEM, expected: LARGEST, found: size / norm(source) });
        }
        Ok(residual)
    }

    /// `[rows, columns]` outflow of each cell: the product of the matrix and `field`, computed without the matrix.
    pub fn apply(&self, conductances: &Conductances, field: &[f64]) -> Vec<f64> {
        let Self { rows, columns, .. } = *self;
        let value = |row: usize, column: usize| {
            let inside = row < rows && column < columns; // the index before 0 wraps around to a huge number
            if inside { field[row * columns + column] } else { 0.0 }
        };
        let mut outflow = Vec::with_capacity(field.len());
        for row in 0..rows {
            for column in 0..columns {
                let [north, south, west, east] = self.faces(conductances, row, column);
                let here = value(row, column);
                outflow.push(
                    north * (here - value(row.wrapping_sub(1), column))
                        + south * (here - value(row + 1, column))
                        + west * (here - value(row, column.wrapping_sub(1)))
                        + east * (here - value(row, column + 1)),
                );
            }
        }
        outflow
    }

    /// Conductances to the previous row, the next row, the previous column and the next column.
    fn faces(&self, conductances: &Conductances, row: usize, column: usize) -> [f64; 4] {
        let across_rows = |row: usize| conductances.between_rows[row * self.columns + column];
        let across_columns = |column: usize| conductances.between_columns[row * (self.columns + 1) + column];
        [across_rows(row), across_rows(row + 1), across_columns(column), across_columns(column + 1)]
    }

    /// Values of the lower triangle in the order of [`lower_pattern`].
    fn lower_values(&self, conductances: &Conductances) -> Vec<f64> {
        let Self { rows, columns, .. } = *self;
        assert_eq!(conductances.between_rows.len(), (rows + 1) * columns, "faces between rows");
        assert_eq!(conductances.between_columns.len(), rows * (columns + 1), "faces between columns");
        let mut values = Vec::with_capacity(3 * rows * columns);
        for row in 0..rows {
            for column in 0..columns {
                let [north, south, west, east] = self.faces(conductances, row, column);
                values.push(north + south + west + east);
                if column + 1 < columns {
                    values.push(-east);
                }
                if row + 1 < rows {
                    values.push(-south);
                }
            }
        }
        values
    }
}

/// The lower triangle: for each unknown the diagonal, the neighbour in the next column, the neighbour in the next row.
fn lower_pattern(rows: usize, columns: usize) -> SymbolicSparseColMat<usize> {
    let unknowns = rows * columns;
    let mut starts = Vec::with_capacity(unknowns + 1);
    let mut targets = Vec::with_capacity(3 * unknowns);
    for unknown in 0..unknowns {
        starts.push(targets.len());
        targets.push(unknown);
        if unknown % columns + 1 < columns {
            targets.push(unknown + 1);
        }
        if unknown + columns < unknowns {
            targets.push(unknown + columns);
        }
    }
    starts.push(targets.len());
    SymbolicSparseColMat::new_checked(unknowns, unknowns, starts, None, targets)
}

/// Nested dissection: first the two halves, then the line that separates them.
fn dissect(rows: std::ops::Range<usize>, columns: std::ops::Range<usize>, stride: usize, order: &mut Vec<usize>) {
    const LEAF: usize = 5;
    if rows.len() <= LEAF && columns.len() <= LEAF {
        order.extend(rows.flat_map(|row| columns.clone().map(move |column| row * stride + column)));
    } else if rows.len() >= columns.len() {
        let middle = rows.start + rows.len() / 2;
        dissect(rows.start..middle, columns.clone(), stride, order);
        dissect(middle + 1..rows.end, columns.clone(), stride, order);
        order.extend(columns.map(|column| middle * stride + column));
    } else {
        let middle = columns.start + columns.len() / 2;
        dissect(rows.clone(), columns.start..middle, stride, order);
        dissect(rows.clone(), middle + 1..columns.end, stride, order);
        order.extend(rows.map(|row| row * stride + middle));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Conductances that vary from face to face; `sign` multiplies a few of them.
    fn uneven(rows: usize, columns: usize, sign: f64) -> Conductances {
        let face = |index: usize| {
            let value = 1.0 + (index as f64 * 0.7).sin().abs();
            if index % 17 == 3 { sign * value } else { value }
        };
        Conductances::new(rows, columns, |i, j| face(i * columns + j), |i, j| face(i * (columns + 1) + j + 5))
    }

    #[test]
    fn both_factorisations_invert_the_operator_on_uneven_planes() {
        // Condition numbers are below 1e4 here, so errors are about 1e-12.
        for (rows, columns) in [(1, 1), (1, 9), (7, 3), (23, 31), (60, 60)] {
            let plane = FivePoint::new(rows, columns).unwrap();
            let wanted: Vec<f64> = (0..rows * columns).map(|index| (index as f64 * 0.31).cos()).collect();
            for sign in [1.0, -0.2] {
                let conductances = uneven(rows, columns, sign);
                let source = plane.apply(&conductances, &wanted);
                let mut solutions = vec![plane.solve_indefinite(&conductances, &source).unwrap()];
                if sign > 0.0 {
                    solutions.push(plane.solve_positive(&conductances, &source).unwrap());
                }
                for solution in solutions {
                    let errors: Vec<f64> = solution.iter().zip(&wanted).map(|(a, b)| a - b).collect();
                    let error = norm(&errors) / norm(&wanted);
                    assert!(error < 1e-11, "{rows} x {columns}, sign {sign}: relative error {error:e}");
                }
            }
        }
    }

    #[test]
    fn a_matrix_without_a_cholesky_factor_is_a_typed_error() {
        let plane = FivePoint::new(8, 8).unwrap();
        let mut conductances = uneven(8, 8, 1.0);
        conductances.between_rows.iter_mut().for_each(|face| *face = -*face);
        let error = plane.solve_positive(&conductances, &[1.0; 64]).unwrap_err();
        assert!(matches!(error, Error::Factorisation { .. }), "{error}");
    }

    #[test]
    fn nested_dissection_visits_every_unknown_once() {
        let mut order = Vec::new();
        dissect(0..13, 0..29, 29, &mut order);
        order.sort_unstable();
        assert!(order.into_iter().eq(0..13 * 29));
    }
}
