//! Sparse matrices of 4 × 4 blocks on the nodes and edges of a mesh, and their incomplete factors without fill, ILU(0).

use crate::dual_mesh::Edge;
use crate::euler::Block;

/// One block per node and per ordered pair of neighbours.
#[derive(Clone, Debug)]
pub struct BlockSparse {
    /// `[nodes + 1]` index of the first block of each row
    starts: Vec<usize>,
    /// Column of each block, ascending within a row.
    columns: Vec<usize>,
    /// `[nodes]` indices of the diagonal blocks
    diagonal: Vec<usize>,
    /// `[edges]` indices of the blocks (first, second) and (second, first)
    pairs: Vec<[usize; 2]>,
    /// Rows of the matrix; columns of its factors, so that one vector instruction adds to all rows of a product.
    blocks: Vec<Block>,
}

impl BlockSparse {
    /// The zero matrix with the pattern of `edges` between `nodes`.
    pub fn new(nodes: usize, edges: &[Edge]) -> Self {
        let mut entries: Vec<[usize; 2]> = (0..nodes).map(|node| [node, node]).collect(); // (row, column)
        entries.extend(edges.iter().flat_map(|edge| [edge.nodes, [edge.nodes[1], edge.nodes[0]]]));
        entries.sort_unstable();
        let find = |entry: [usize; 2]| entries.partition_point(|other| *other < entry);
        Self {
            starts: (0..=nodes).map(|node| find([node, 0])).collect(),
            columns: entries.iter().map(|entry| entry[1]).collect(),
            diagonal: (0..nodes).map(|node| find([node, node])).collect(),
            pairs: edges.iter().map(|edge| [find(edge.nodes), find([edge.nodes[1], edge.nodes[0]])]).collect(),
            blocks: vec![[[0.0; 4]; 4]; entries.len()],
        }
    }

    /// Sets every block to zero.
    pub fn clear(&mut self) {
        self.blocks.fill([[0.0; 4]; 4]);
    }

    /// Adds to the diagonal block of `node`.
    pub fn add_diagonal(&mut self, node: usize, block: &Block) {
        add(&mut self.blocks[self.diagonal[node]], block, 1.0);
    }

    /// Adds the derivatives of the flux through edge `index`, which leaves its first node and enters its second.
    pub fn add_flux(&mut self, index: usize, edge: &Edge, derivatives: &[Block; 2]) {
        let [first, second] = edge.nodes;
        let [upper, lower] = self.pairs[index];
        add(&mut self.blocks[self.diagonal[first]], &derivatives[0], 1.0);
        add(&mut self.blocks[upper], &derivatives[1], 1.0);
        add(&mut self.blocks[lower], &derivatives[0], -1.0);
        add(&mut self.blocks[self.diagonal[second]], &derivatives[1], -1.0);
    }

    /// Replaces the matrix by its factors L U, whose product equals it on the pattern; U stores the inverses of its
    /// diagonal blocks.
    pub fn factor(&mut self) {
        // Index of the block of each column in the current row.
        let mut block_of = vec![usize::MAX; self.diagonal.len()];
        for row in 0..self.diagonal.len() {
            let range = self.starts[row]..self.starts[row + 1];
            for index in range.clone() {
                block_of[self.columns[index]] = index;
            }
            for index in range.start..self.diagonal[row] {
                let column = self.columns[index];
                let factor = product(&self.blocks[index], &self.blocks[self.diagonal[column]]);
                self.blocks[index] = factor;
                for upper in self.diagonal[column] + 1..self.starts[column + 1] {
                    let target = block_of[self.columns[upper]];
                    if target != usize::MAX {
                        let change = product(&factor, &self.blocks[upper]);
                        add(&mut self.blocks[target], &change, -1.0);
                    }
                }
            }
            let pivot = self.diagonal[row];
            self.blocks[pivot] = inverse(&self.blocks[pivot]);
            for index in range {
                block_of[self.columns[index]] = usize::MAX;
            }
        }
        self.blocks.iter_mut().for_each(|block| *block = transposed(block));
    }

    /// U⁻¹ L⁻¹ `values`, in place, after [`BlockSparse::factor`].
    pub fn solve(&self, values: &mut [[f64; 4]]) {
        for row in 0..values.len() {
            let mut sum = values[row];
            for index in self.starts[row]..self.diagonal[row] {
                subtract_columns(&mut sum, &self.blocks[index], &values[self.columns[index]]);
            }
            values[row] = sum;
        }
        for row in (0..values.len()).rev() {
            let mut sum = values[row];
            for index in self.diagonal[row] + 1..self.starts[row + 1] {
                subtract_columns(&mut sum, &self.blocks[index], &values[self.columns[index]]);
            }
            let mut solution = [0.0; 4];
            subtract_columns(&mut solution, &self.blocks[self.diagonal[row]], &sum);
            values[row] = solution.map(|value| -value);
        }
    }
}

/// `sum` += `factor` · `block`
fn add(sum: &mut Block, block: &Block, factor: f64) {
    for (row, other) in sum.iter_mut().zip(block) {
        row.iter_mut().zip(other).for_each(|(value, other)| *value += factor * other);
    }
}

fn product(left: &Block, right: &Block) -> Block {
    left.map(|row| [0, 1, 2, 3].map(|column| (0..4).map(|k| row[k] * right[k][column]).sum()))
}

fn transposed(block: &Block) -> Block {
    [0, 1, 2, 3].map(|column| [0, 1, 2, 3].map(|row| block[row][column]))
}

/// `sum` −= the block of these columns · `vector`
#[inline(always)]
fn subtract_columns(sum: &mut [f64; 4], columns: &Block, vector: &[f64; 4]) {
    let products = |k: usize| columns[k].map(|value| value * vector[k]);
    let [first, second, third, fourth] = [0, 1, 2, 3].map(products);
    for (row, value) in sum.iter_mut().enumerate() {
        *value -= first[row] + second[row] + third[row] + fourth[row];
    }
}

/// Gauss-Jordan elimination with row exchange; the inverse of a singular block has infinite or NaN entries.
fn inverse(block: &Block) -> Block {
    let mut left = *block;
    let mut right = [[0.0; 4]; 4];
    for (k, row) in right.iter_mut().enumerate() {
        row[k] = 1.0;
    }
    for k in 0..4 {
        let largest = (k..4).fold(k, |best, row| if left[row][k].abs() > left[best][k].abs() { row } else { best });
        left.swap(k, largest);
        right.swap(k, largest);
        let scale = 1.0 / left[k][k];
        let (pivot_left, pivot_right) = (left[k].map(|value| value * scale), right[k].map(|value| value * scale));
        (left[k], right[k]) = (pivot_left, pivot_right);
        for row in (0..4).filter(|&row| row != k) {
            let factor = left[row][k];
            for column in 0..4 {
                left[row][column] -= factor * pivot_left[column];
                right[row][column] -= factor * pivot_right[column];
            }
        }
    }
    right
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A chain has no fill, so its incomplete factors are exact.
    #[test]
    fn chains_are_solved_exactly() {
        let nodes = 9;
        let edges: Vec<Edge> = (1..nodes).map(|node| Edge { nodes: [node - 1, node], normal: [1.0, 0.0] }).collect();
        let mut matrix = BlockSparse::new(nodes, &edges);
        let entry = |index: usize, row: usize, column: usize| ((7 * index + 4 * row + column) as f64).sin();
        let block = |index: usize| [0, 1, 2, 3].map(|row| [0, 1, 2, 3].map(|column| entry(index, row, column)));
        for (index, edge) in edges.iter().enumerate() {
            matrix.add_flux(index, edge, &[block(2 * index), block(2 * index + 1)]);
        }
        for node in 0..nodes {
            let mut diagonal = [[0.0; 4]; 4];
            // Large entries off the diagonal, so the inversion must exchange rows.
            (0..4).for_each(|k| diagonal[k][3 - k] = 9.0);
            matrix.add_diagonal(node, &diagonal);
        }
        let wanted: Vec<[f64; 4]> = (0..nodes).map(|node| [0, 1, 2, 3].map(|k| entry(node, k, 2))).collect();
        let mut values: Vec<[f64; 4]> = vec![[0.0; 4]; nodes];
        for (row, value) in values.iter_mut().enumerate() {
            for index in matrix.starts[row]..matrix.starts[row + 1] {
                let minus = wanted[matrix.columns[index]].map(|value| -value);
                subtract_columns(value, &transposed(&matrix.blocks[index]), &minus);
            }
        }
        matrix.factor();
        matrix.solve(&mut values);
        let error =
            values.iter().flatten().zip(wanted.iter().flatten()).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(error < 1e-13, "{error:e}");
    }

    #[test]
    fn a_flux_leaves_one_volume_and_enters_its_neighbour() {
        let edge = Edge { nodes: [0, 1], normal: [1.0, 0.0] };
        let mut matrix = BlockSparse::new(2, &[edge]);
        matrix.add_flux(0, &edge, &[[[1.0; 4]; 4], [[2.0; 4]; 4]]);
        let corners = matrix.blocks.iter().map(|block| block[3][1]).collect::<Vec<_>>();
        assert_eq!(corners, [1.0, 2.0, -1.0, -2.0]);
        matrix.clear();
        assert!(matrix.blocks.iter().flatten().flatten().all(|&value| value == 0.0));
    }
}
