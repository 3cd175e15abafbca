//! The kernel of ONO: its covariance, and the guarded Cholesky factor of the authors' code.

use lamo::network::layers::OrthogonalKernel;
use lamo::network::{Mode, Parameters};
use lamo_tensor::reference::{self, Bindings};
use lamo_tensor::{Graph, MODEL_STATES, Program};
use safetensors::{Dtype, SafeTensors};
use std::path::Path;

/// A tensor of `fixtures/baselines/ono_b`.
fn tensor(key: &str) -> Vec<f64> {
    let path = Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("../../fixtures/baselines/ono_b");
    let bytes = std::fs::read(path.join("io.safetensors")).unwrap();
    let file = SafeTensors::deserialize(&bytes).unwrap();
    let view = file.tensor(&format!("op.psd_cholesky.{key}")).unwrap();
    match view.dtype() {
        Dtype::F32 => view.data().as_chunks().0.iter().map(|bytes| f64::from(f32::from_le_bytes(*bytes))).collect(),
        _ => view.data().as_chunks().0.iter().map(|bytes| f64::from_le_bytes(*bytes)).collect(),
    }
}

fn single(values: &[f64]) -> Vec<f32> {
    values.iter().map(|&value| value as f32).collect()
}

/// Compares matrix by matrix, relative to the largest element of the matrix.
fn close(found: &[f64], expected: &[f64], tolerance: f64, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (matrix, (found, expected)) in found.chunks(16).zip(expected.chunks(16)).enumerate() {
        let largest = expected.iter().fold(0.0, |largest: f64, value| largest.max(value.abs()));
        let worst = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(worst <= tolerance * largest, "{what} of matrix {matrix}: {found:?} instead of {expected:?}");
    }
}

/// Three matrices: a definite one, one with a row of zeros, a slightly indefinite one. The last two need a jitter, which is 1e-6
/// in float32 and 1e-8 in float64, or a power of ten times that. The condition of the second is 30 in float32, where its results
/// have a few roundings; its gradient is a difference of numbers a thousand times as large.
#[test]
fn the_guarded_cholesky_factor_and_its_gradient_are_the_authors() {
    let graph = Graph::new();
    let [matrices, cotangent] = ["A", "dout"].map(|name| graph.input(name, [3, 4, 4]));
    for (jitter, name) in [(1e-6, ""), (1e-8, "_f64")] {
        let inverse = matrices.inverse_cholesky(jitter).transpose();
        let slope = graph.pullback(&[(inverse, cotangent)], &[matrices])[0].unwrap();
        graph.output(&format!("L_inv_T{name}"), inverse);
        graph.output(&format!("grad.A{name}"), slope);
    }
    let inputs = ["A", "dout"].map(|name| (name, tensor(name)));
    let mut program = Program::compile(&graph);
    inputs.iter().for_each(|(name, values)| program.write(name, &single(values)));
    program.run();
    let found = |name: &str| program.read(name).iter().map(|&value| f64::from(value)).collect::<Vec<_>>();
    close(&found("L_inv_T"), &tensor("L_inv_T"), 1e-5, "inverse in float32");
    close(&found("grad.A"), &tensor("grad.A"), 1e-4, "gradient in float32");
    let (exact, _) = reference::run(&graph, &Bindings::from(inputs));
    close(&exact["L_inv_T_f64"].values, &tensor("L_inv_T_f64"), 1e-12, "inverse in float64");
    close(&exact["grad.A_f64"].values, &tensor("grad.A_f64"), 1e-11, "gradient in float64");
}

const BATCH: usize = 3;
const POINTS: usize = 7;
const WIDTH: usize = 4;
const BASIS: usize = 2;

/// Features of the points, `[batch, points, width]`.
fn features(pace: f64) -> Vec<f64> {
    (0..BATCH * POINTS * WIDTH).map(|i| f64::from((pace * (i + i * i % 11) as f64).sin() as f32)).collect()
}

/// proj `[basis, width]`, without a bias.
fn projection() -> Vec<f64> {
    (0..BASIS * WIDTH).map(|i| f64::from((1.1 * i as f32).cos())).collect()
}

/// Mean of s sᵀ over the points of the samples that count.
fn covariance(features: &[f64], weights: [f64; BATCH]) -> Vec<f64> {
    let projection = projection();
    let mut sum = vec![0.0; BASIS * BASIS];
    for (point, channels) in features.chunks(WIDTH).enumerate() {
        let row = |k: usize| channels.iter().zip(&projection[k * WIDTH..]).map(|(a, b)| a * b).sum::<f64>();
        let basis: Vec<f64> = (0..BASIS).map(row).collect();
        for (i, sum) in sum.iter_mut().enumerate() {
            *sum += weights[point / POINTS] * basis[i / BASIS] * basis[i % BASIS];
        }
    }
    let count = weights.iter().sum::<f64>() * POINTS as f64;
    sum.into_iter().map(|value| value / count).collect()
}

#[test]
fn the_running_covariance_begins_with_the_first_batch_and_moves_by_a_tenth() {
    for weights in [[1.0; BATCH], [1.0, 1.0, 0.0]] {
        let graph = Graph::new();
        let parameters = Parameters::new(&graph);
        let kernel = OrthogonalKernel::new(&parameters.root(), WIDTH, BASIS);
        parameters.weigh_samples(graph.input("weights", [BATCH]));
        let shape = [BATCH, POINTS, WIDTH];
        let [field, x] = ["field", "features"].map(|name| graph.input(name, shape));
        graph.output("out", kernel.forward(field, x, Mode::Training));
        parameters.store_states();
        let mut program = Program::compile(&graph);
        parameters.initialise(&mut program, 1);
        program.write_parameter("proj.weight", &single(&projection()));
        program.write_parameter("proj.bias", &[0.0; BASIS]);
        program.write("weights", &single(&weights));
        let mut expected = vec![0.0; BASIS * BASIS];
        for (step, pace) in [0.7, 1.3].into_iter().enumerate() {
            program.write("features", &single(&features(pace)));
            program.run();
            let new = covariance(&features(pace), weights);
            let share = if step == 0 { 1.0 } else { 0.1 };
            expected.iter_mut().zip(new).for_each(|(old, new)| *old += share * (new - *old));
            for (found, expected) in program.read(MODEL_STATES).iter().zip(&expected) {
                assert!((f64::from(*found) - expected).abs() < 2e-6, "step {step}: {found} instead of {expected}");
            }
        }
    }
}

/// ŝ has the covariance 1, so that without its residual the kernel of a constant spectrum is a projection.
#[test]
fn features_become_orthonormal_over_the_batch() {
    let graph = Graph::new();
    let shape = [BATCH, POINTS, WIDTH];
    let basis = graph.input("features", shape).reshape([BATCH * POINTS, WIDTH]);
    let covariance = basis.transpose().matmul(basis) * (1.0 / (BATCH * POINTS) as f64);
    let orthonormal = basis.matmul(covariance.inverse_cholesky(1e-6).transpose());
    let one = orthonormal.transpose().matmul(orthonormal) * (1.0 / (BATCH * POINTS) as f64);
    let found = reference::evaluate(&graph, &Bindings::from([("features", features(0.7))]), &[one]);
    for (i, value) in found[0].values.iter().enumerate() {
        let expected = if i % (WIDTH + 1) == 0 { 1.0 } else { 0.0 };
        assert!((value - expected).abs() < 1e-9, "{value} instead of {expected}");
    }
}
