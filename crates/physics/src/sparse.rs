//! Sparse systems assembled from cells. Pattern, ordering and symbolic factor are computed once and serve every sample.
//!
//! Symmetric positive definite matrices store their lower triangle and are factored as LLᵀ; matrices without symmetry
//! are factored as LU with pivoting.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::sparse::linalg::cholesky::{
    CholeskySymbolicParams, LltRef, SymbolicCholesky, SymmetricOrdering, factorize_symbolic_cholesky,
};
use faer::sparse::linalg::lu::{LuSymbolicParams, NumericLu, SymbolicLu, factorize_symbolic_lu};
use faer::sparse::{SparseColMatRef, SymbolicSparseColMat};
use faer::{Conj, MatMut, Par, Side, Spec};

use crate::Error;

/// Stands for the number of an unknown where the value is prescribed.
pub const PRESCRIBED: usize = usize::MAX;

/// Numbers the unknowns of a system in the order of the calls.
#[derive(Debug, Default)]
pub(crate) struct Numbering {
    pub(crate) count: usize,
}

impl Numbering {
    /// The next number, or [`PRESCRIBED`].
    pub(crate) fn next(&mut self, prescribed: bool) -> usize {
        if prescribed {
            return PRESCRIBED;
        }
        self.count += 1;
        self.count - 1
    }
}

/// The matrix pattern, and the target of each entry of each cell matrix.
#[derive(Debug)]
pub struct Assembly<const SIDE: usize> {
    pattern: SymbolicSparseColMat<usize>,
    /// `[cells, SIDE, SIDE]` index of the matrix entry, row by row; [`PRESCRIBED`] for entries that are not stored
    targets: Vec<usize>,
    cells: Vec<[usize; SIDE]>,
}

/// The stored entries of a matrix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// All entries.
    Whole,
    /// The lower triangle of a symmetric matrix.
    Lower,
}

impl<const SIDE: usize> Assembly<SIDE> {
    /// Builds the pattern. `cells` lists the unknowns that each cell couples; each is below `unknowns` or
    /// [`PRESCRIBED`].
    pub fn new(unknowns: usize, cells: Vec<[usize; SIDE]>, part: Part) -> Self {
        let stored = |row: usize, column: usize| {
            row != PRESCRIBED && column != PRESCRIBED && (part == Part::Whole || row >= column)
        };
        let pairs = |cell: &[usize; SIDE]| {
            let cell = *cell;
            (0..SIDE * SIDE).map(move |entry| (cell[entry % SIDE], cell[entry / SIDE])) // (column, row)
        };
        let mut entries: Vec<(usize, usize)> =
            cells.iter().flat_map(pairs).filter(|&(column, row)| stored(row, column)).collect();
        entries.sort_unstable();
        entries.dedup();
        let starts: Vec<usize> =
            (0..=unknowns).map(|column| entries.partition_point(|&(other, _)| other < column)).collect();
        let targets = cells.iter().flat_map(pairs).map(|(column, row)| {
            if !stored(row, column) {
                return PRESCRIBED;
            }
            let rows = &entries[starts[column]..starts[column + 1]];
            starts[column] + rows.partition_point(|&(_, other)| other < row)
        });
        let targets = targets.collect();
        let rows = entries.into_iter().map(|(_, row)| row).collect();
        let pattern = SymbolicSparseColMat::new_checked(unknowns, unknowns, starts, None, rows);
        Self { pattern, targets, cells }
    }

    /// Number of unknowns.
    pub fn unknowns(&self) -> usize {
        self.pattern.ncols()
    }

    /// Sums the matrices (row by row) and the forces that `add_cell` writes for each cell.
    pub fn sum(&self, mut add_cell: impl FnMut(usize, &mut [[f64; SIDE]; SIDE], &mut [f64; SIDE])) -> Summed {
        let mut summed = Summed {
            matrix: vec![0.0; self.pattern.row_idx().len()],
            forces: vec![0.0; self.unknowns()],
            sizes: vec![0.0; self.unknowns()],
        };
        let (mut matrix, mut forces) = ([[0.0; SIDE]; SIDE], [0.0; SIDE]);
        for (index, unknowns) in self.cells.iter().enumerate() {
            matrix.as_flattened_mut().fill(0.0);
            forces.fill(0.0);
            add_cell(index, &mut matrix, &mut forces);
            let targets = &self.targets[index * SIDE * SIDE..][..SIDE * SIDE];
            for (&target, &value) in targets.iter().zip(matrix.as_flattened()) {
                if target != PRESCRIBED {
                    summed.matrix[target] += value;
                }
            }
            for (&unknown, &force) in unknowns.iter().zip(&forces) {
                if unknown != PRESCRIBED {
                    summed.forces[unknown] += force;
                    summed.sizes[unknown] += force.abs();
                }
            }
        }
        summed
    }
}

/// The sums over all cells.
#[derive(Clone, Debug)]
pub struct Summed {
    /// Matrix entries in the order of the pattern.
    pub matrix: Vec<f64>,
    /// Force on each unknown; zero in equilibrium.
    pub forces: Vec<f64>,
    /// Sum of the absolute values of the terms of each force.
    pub sizes: Vec<f64>,
}

impl Summed {
    /// Subtracts an external force from an unknown; a [`PRESCRIBED`] one takes no force.
    pub fn load(&mut self, unknown: usize, force: f64) {
        if unknown != PRESCRIBED {
            self.forces[unknown] -= force;
            self.sizes[unknown] += force.abs();
        }
    }

    /// ‖forces‖ / ‖sizes‖: of the order of round-off in equilibrium, independent of the units.
    pub fn imbalance(&self) -> f64 {
        let (forces, sizes) = (norm(&self.forces), norm(&self.sizes));
        if sizes == 0.0 { forces } else { forces / sizes }
    }
}

/// The symbolic factor of a symmetric positive definite matrix.
#[derive(Debug)]
pub struct Cholesky {
    system: &'static str,
    symbolic: SymbolicCholesky<usize>,
}

impl Cholesky {
    /// Orders the lower triangle of `assembly` by approximate minimum degree and analyses it.
    pub fn new<const SIDE: usize>(system: &'static str, assembly: &Assembly<SIDE>) -> Result<Self, Error> {
        let symbolic = factorize_symbolic_cholesky(
            assembly.pattern.as_ref(),
            Side::Lower,
            SymmetricOrdering::Amd,
            CholeskySymbolicParams::default(),
        );
        Ok(Self { system, symbolic: symbolic.map_err(|error| unfactored(system, &error))? })
    }

    /// Solves in place with the entries `matrix`, which `assembly` has summed.
    pub fn solve<const SIDE: usize>(
        &self,
        assembly: &Assembly<SIDE>,
        matrix: &[f64],
        solution: &mut [f64],
    ) -> Result<(), Error> {
        self.factor(assembly, matrix)?.solve(solution)
    }

    /// The factor of a matrix with the entries `matrix`, which `assembly` has summed; it can solve many systems.
    pub fn factor<const SIDE: usize>(&self, assembly: &Assembly<SIDE>, matrix: &[f64]) -> Result<Factor<'_>, Error> {
        let matrix = SparseColMatRef::new(assembly.pattern.as_ref(), matrix);
        let mut factor = zeros(self.system, self.symbolic.len_val())?;
        let scratch = self.symbolic.factorize_numeric_llt_scratch::<f64>(Par::Seq, Spec::default());
        let refuse = |error: &dyn std::fmt::Debug| unfactored(self.system, error);
        let mut memory = MemBuffer::try_new(scratch).map_err(|error| refuse(&error))?;
        let stack = MemStack::new(&mut memory);
        let (regularisation, options) = (Default::default(), Spec::default());
        self.symbolic
            .factorize_numeric_llt(&mut factor, matrix, Side::Lower, regularisation, Par::Seq, stack, options)
            .map_err(|error| refuse(&error))?;
        Ok(Factor { cholesky: self, values: factor })
    }
}

/// A factored matrix.
#[derive(Debug)]
pub struct Factor<'a> {
    cholesky: &'a Cholesky,
    values: Vec<f64>,
}

impl Factor<'_> {
    /// Solves in place.
    pub fn solve(&self, solution: &mut [f64]) -> Result<(), Error> {
        let Cholesky { system, symbolic } = self.cholesky;
        let scratch = symbolic.solve_in_place_scratch::<f64>(1, Par::Seq);
        let mut memory = MemBuffer::try_new(scratch).map_err(|error| unfactored(system, &error))?;
        let stack = MemStack::new(&mut memory);
        LltRef::new(symbolic, &self.values).solve_in_place_with_conj(Conj::No, column(solution), Par::Seq, stack);
        Ok(())
    }
}

/// The symbolic factor of a matrix without symmetry.
#[derive(Debug)]
pub struct Lu {
    system: &'static str,
    symbolic: SymbolicLu<usize>,
}

impl Lu {
    /// Orders the whole pattern of `assembly` by column approximate minimum degree and analyses it.
    pub fn new<const SIDE: usize>(system: &'static str, assembly: &Assembly<SIDE>) -> Result<Self, Error> {
        let symbolic = factorize_symbolic_lu(assembly.pattern.as_ref(), LuSymbolicParams::default());
        Ok(Self { system, symbolic: symbolic.map_err(|error| unfactored(system, &error))? })
    }

    /// Solves in place with the entries `matrix`, which `assembly` has summed; `numeric` is memory that calls can
    /// share.
    pub fn solve<const SIDE: usize>(
        &self,
        assembly: &Assembly<SIDE>,
        matrix: &[f64],
        solution: &mut [f64],
        numeric: &mut NumericLu<usize, f64>,
    ) -> Result<(), Error> {
        let matrix = SparseColMatRef::new(assembly.pattern.as_ref(), matrix);
        let scratch = self.symbolic.factorize_numeric_lu_scratch::<f64>(Par::Seq, Spec::default());
        let solve_scratch = self.symbolic.solve_in_place_scratch::<f64>(1, Par::Seq);
        let refuse = |error: &dyn std::fmt::Debug| unfactored(self.system, error);
        let mut memory = MemBuffer::try_new(scratch.or(solve_scratch)).map_err(|error| refuse(&error))?;
        let stack = MemStack::new(&mut memory);
        let factored = self.symbolic.factorize_numeric_lu(numeric, matrix, Par::Seq, stack, Spec::default());
        let factored = factored.map_err(|error| refuse(&error))?;
        factored.solve_in_place_with_conj(Conj::No, column(solution), Par::Seq, stack);
        Ok(())
    }
}

/// The values as a matrix of one column.
pub(crate) fn column(values: &mut [f64]) -> MatMut<'_, f64> {
    let length = values.len();
    MatMut::from_column_major_slice_mut(values, length, 1)
}

/// Euclidean norm.
pub(crate) fn norm(values: &[f64]) -> f64 {
    values.iter().map(|value| value * value).sum::<f64>().sqrt()
}

/// The error of a factorisation that failed.
pub(crate) fn unfactored(system: &'static str, error: &dyn std::fmt::Debug) -> Error {
    let found = format!("{error:?}");
    let found = if found.contains("OutOfMemory") { "too little memory for its factors".to_owned() } else { found };
    Error::Factorisation { system, found }
}

/// Zeros for the numbers of a factor, whose size only the pattern tells.
pub(crate) fn zeros(system: &'static str, count: usize) -> Result<Vec<f64>, Error> {
    let mut values = Vec::new();
    let reserved = values.try_reserve_exact(count);
    reserved.map_err(|_| Error::Factorisation {
        system,
        found: format!("{:.1} GB of memory are needed and there are fewer", 8e-9 * count as f64),
    })?;
    values.resize(count, 0.0);
    Ok(values)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A chain of springs, fixed at its first end: symmetric positive definite, and u_k = k under a unit force at its
    /// free end.
    #[test]
    fn a_chain_of_springs_stretches_evenly_by_both_factorisations() {
        const COUNT: usize = 50;
        let cells: Vec<[usize; 2]> = (0..COUNT).map(|k| [if k == 0 { PRESCRIBED } else { k - 1 }, k]).collect();
        let spring = |_: usize, matrix: &mut [[f64; 2]; 2], _: &mut [f64; 2]| *matrix = [[1.0, -1.0], [-1.0, 1.0]];
        for part in [Part::Lower, Part::Whole] {
            let assembly = Assembly::new(COUNT, cells.clone(), part);
            let summed = assembly.sum(spring);
            let mut pull = vec![0.0; COUNT];
            pull[COUNT - 1] = 1.0;
            match part {
                Part::Lower => {
                    Cholesky::new("chain", &assembly).unwrap().solve(&assembly, &summed.matrix, &mut pull).unwrap();
                }
                Part::Whole => {
                    let lu = Lu::new("chain", &assembly).unwrap();
                    lu.solve(&assembly, &summed.matrix, &mut pull, &mut NumericLu::new()).unwrap();
                }
            }
            let worst = pull.iter().zip(1..).map(|(u, k)| (u - f64::from(k)).abs()).fold(0.0, f64::max);
            assert!(worst < 1e-12 * COUNT as f64, "{part:?}: {worst:e}");
        }
    }

    #[test]
    fn an_indefinite_matrix_is_refused_by_cholesky_with_a_typed_error() {
        let assembly = Assembly::new(2, vec![[0, 1]], Part::Lower);
        let summed = assembly.sum(|_, matrix, _| *matrix = [[1.0, 2.0], [2.0, 1.0]]);
        let refused = Cholesky::new("pair", &assembly).unwrap().solve(&assembly, &summed.matrix, &mut [1.0, 1.0]);
        assert!(matches!(refused, Err(Error::Factorisation { system: "pair", .. })), "{refused:?}");
    }
}
