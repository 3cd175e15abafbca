//! Inverse Cholesky factors: cases for the claims about every operator, and the guard.

use crate::support::{Case, case};
use lamo_tensor::reference::{self, Bindings};
use lamo_tensor::{Graph, Program};

/// Matrices X Xᵀ/n + 1, whose condition is below 10.
pub(crate) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (matrices, side) in [(1, 1), (3, 2), (2, 5), (1, 17), (2, 64)] {
        let dims: &[usize] = vec![matrices, side, side].leak();
        let name = |what: &str| format!("{what} of {matrices} matrices of {side} rows");
        let roundings = 256 + 16 * side;
        cases.push(case(name("inverse factor"), &[(dims, -1.0, 1.0)], roundings, move |x| {
            let matrix = x[0].matmul(x[0].transpose()) * (1.0 / side as f64);
            let one: Vec<f32> = (0..side * side).map(|i| f32::from(i % (side + 1) == 0)).collect();
            (matrix + x[0].graph().constant(&one, [side, side])).inverse_cholesky(1e-6)
        }));
    }
    cases.push(case("inverse factor of a permuted stack", &[(&[3, 2, 3], -1.0, 1.0)], 512, |x| {
        let matrix = x[0].permute(&[1, 0, 2]).matmul(x[0].permute(&[1, 2, 0])); // [2, 3, 3]
        let one: Vec<f32> = (0..9).map(|i| f32::from(i % 4 == 0)).collect();
        (matrix + x[0].graph().constant(&one, [3, 3])).reshape([1, 2, 3, 3]).inverse_cholesky(1e-6).transpose().tanh()
    }));
    cases
}

/// W of 2 × 2 matrices, by the compiled program and by the reference.
fn inverses(matrices: &[f64], jitter: f64) -> [Vec<f64>; 2] {
    let graph = Graph::new();
    let inverse = graph.input("matrices", [matrices.len() / 4, 2, 2]).inverse_cholesky(jitter);
    graph.output("inverse", inverse);
    let mut program = Program::compile(&graph);
    program.write("matrices", &matrices.iter().map(|&value| value as f32).collect::<Vec<_>>());
    program.run();
    let found = program.read("inverse").iter().map(|&value| f64::from(value)).collect();
    let exact = reference::evaluate(&graph, &Bindings::from([("matrices", matrices.to_vec())]), &[inverse]);
    [found, exact[0].values.clone()]
}

#[test]
fn a_matrix_that_is_not_definite_gets_the_first_jitter_that_makes_it_so() {
    let definite = [4.0, 0.0, 0.0, 0.25];
    let singular = [1.0, 0.0, 0.0, 0.0]; // + 1e-6
    let indefinite = [1.0, 0.0, 0.0, -1.0 / 512.0]; // + 1e-2
    for values in inverses(&[definite, singular, indefinite].concat(), 1e-6) {
        let expected = [
            [0.5, 0.0, 0.0, 2.0],
            [(1.0_f64 + 1e-6).sqrt().recip(), 0.0, 0.0, 1e3],
            [(1.0_f64 + 1e-2).sqrt().recip(), 0.0, 0.0, (1e-2_f64 - 1.0 / 512.0).sqrt().recip()],
        ];
        for (found, expected) in values.iter().zip(expected.as_flattened()) {
            assert!((found - expected).abs() <= 1e-6 * expected.abs(), "{found} instead of {expected}");
        }
    }
}

#[test]
fn a_matrix_that_no_jitter_helps_gives_nan_and_leaves_its_neighbours_alone() {
    let hopeless = [-1e6, 0.0, 0.0, 1.0];
    let broken = [f64::NAN, 0.0, 0.0, 1.0];
    for values in inverses(&[hopeless, broken, [1.0, 0.0, 0.0, 1.0]].concat(), 1e-6) {
        assert!(values[..8].iter().all(|value| value.is_nan()), "{values:?}");
        assert_eq!(values[8..], [1.0, 0.0, 0.0, 1.0]);
    }
}
