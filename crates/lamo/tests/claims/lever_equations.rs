//! The layers of LaMO's settings equal their equations, written with loops over all pairs.

use lamo::network::Parameters;
use lamo::network::layers::{AxialConvolution, Decoder, SliceShape, Slices};
use lamo_geometry::Grid;
use lamo_tensor::reference::{self, Bindings};
use lamo_tensor::{Graph, PARAMETERS, Tensor};
use std::f64::consts::TAU;

/// Numbers without a pattern.
fn numbers(count: usize, phase: f64) -> Vec<f64> {
    (0..count).map(|n| 0.7 * (phase + 12.9898 * n as f64).sin()).collect()
}

/// The value of a tensor in f64, with numbers in all parameters and in the input `x`.
fn evaluated(graph: &Graph, x: &[f64], out: Tensor<'_>) -> Vec<f64> {
    let parameters = numbers(graph.parameters().shape().count(), 1.0);
    let bindings = Bindings::from([(PARAMETERS, parameters), ("x", x.to_vec())]);
    reference::evaluate(graph, &bindings, &[out])[0].values.clone()
}

/// A parameter of the graph by name, as [`evaluated`] fills it.
fn parameter(graph: &Graph, name: &str) -> Vec<f64> {
    let all = numbers(graph.parameters().shape().count(), 1.0);
    let sections = graph.sections();
    let section = sections.iter().find(|section| section.name == name).unwrap_or_else(|| panic!("no parameter {name}"));
    all[section.range()].to_vec()
}

fn close(found: &[f64], expected: &[f64], tolerance: f64, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let largest = expected.iter().fold(0.0, |largest: f64, value| largest.max(value.abs()));
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() <= tolerance * largest, "{what}: {found} instead of {expected}");
    }
}

/// W x of a row of channels.
fn linear(weight: &[f64], x: &[f64]) -> Vec<f64> {
    weight.chunks_exact(x.len()).map(|row| dot(row, x)).collect()
}

fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}

fn softmax(row: &[f64]) -> Vec<f64> {
    let weights: Vec<f64> = row.iter().map(|value| value.exp()).collect();
    let sum: f64 = weights.iter().sum();
    weights.iter().map(|weight| weight / sum).collect()
}

/// F⁻¹(R · F v) along one lane of points, by sums over all frequencies and points.
fn convolved(lane: &[[f64; 2]], weight: &[f64], modes: usize) -> Vec<[f64; 2]> {
    let count = lane.len();
    let angle = |k: usize, n: usize| TAU * (k * n) as f64 / count as f64;
    let mut result = vec![[0.0; 2]; count];
    for k in 0..modes {
        let images = if (2 * k) % count == 0 { 1.0 } else { 2.0 };
        let mut mixed = [[0.0; 2]; 2]; // re and im of each output
        for (n, value) in lane.iter().enumerate() {
            let (re, im) = (angle(k, n).cos(), -angle(k, n).sin());
            for (out, mixed) in mixed.iter_mut().enumerate() {
                for (channel, value) in value.iter().enumerate() {
                    let at = ((channel * 2 + out) * modes + k) * 2;
                    mixed[0] += value * (re * weight[at] - im * weight[at + 1]);
                    mixed[1] += value * (re * weight[at + 1] + im * weight[at]);
                }
            }
        }
        for (n, result) in result.iter_mut().enumerate() {
            for (out, mixed) in mixed.iter().enumerate() {
                let real = mixed[0] * angle(k, n).cos() - mixed[1] * angle(k, n).sin();
                result[out] += images / count as f64 * real;
            }
        }
    }
    result
}

/// The waves are rounded to 24 bits; the sums have some tens of terms.
#[test]
fn a_spectral_half_is_the_sum_of_its_transforms_along_each_axis() {
    for [rows, columns] in [[5, 6], [1, 7]] {
        let graph = Graph::new();
        let declared = Parameters::new(&graph);
        let layer = AxialConvolution::new(&declared.root(), [1, rows, columns], 2, 3);
        let out = layer.forward(graph.input("x", [1, 1, rows, columns, 2]));
        let x = numbers(rows * columns * 2, 0.3);
        let at = |row: usize, column: usize| [0, 1].map(|channel| x[(row * columns + column) * 2 + channel]);
        let mut expected = vec![0.0; x.len()];
        let mut add = |row: usize, column: usize, value: [f64; 2]| {
            (0..2).for_each(|channel| expected[(row * columns + column) * 2 + channel] += value[channel]);
        };
        for row in 0..rows {
            let lane: Vec<_> = (0..columns).map(|column| at(row, column)).collect();
            let result = convolved(&lane, &parameter(&graph, "columns"), 3);
            result.iter().enumerate().for_each(|(column, &value)| add(row, column, value));
        }
        for column in (0..columns).filter(|_| rows > 1) {
            let lane: Vec<_> = (0..rows).map(|row| at(row, column)).collect();
            let result = convolved(&lane, &parameter(&graph, "rows"), 3);
            result.iter().enumerate().for_each(|(row, &value)| add(row, column, value));
        }
        close(&evaluated(&graph, &x, out), &expected, 1e-6, &format!("{rows} × {columns}"));
    }
}

const BATCH: usize = 2;
const POINTS: usize = 7;
const HEADS: usize = 2;
const CHANNELS: usize = 3;
const TOKENS: usize = 4;
const WIDTH: usize = HEADS * CHANNELS;

/// The channels of one head of a row.
fn head(row: &[f64], head: usize) -> &[f64] {
    &row[head * CHANNELS..(head + 1) * CHANNELS]
}

/// W x + b of every point of a sample.
fn projected(graph: &Graph, name: &str, sample: &[f64]) -> Vec<Vec<f64>> {
    let (weight, bias) = (parameter(graph, &format!("{name}.weight")), parameter(graph, &format!("{name}.bias")));
    let shifted = |x: &[f64]| linear(&weight, x).iter().zip(&bias).map(|(value, bias)| value + bias).collect();
    sample.chunks_exact(WIDTH).map(shifted).collect()
}

/// w `[heads][points][tokens]` of the maps inside a scope.
fn memberships(graph: &Graph, scope: &str, sample: &[f64]) -> Vec<Vec<Vec<f64>>> {
    let x = projected(graph, &format!("{scope}in_project_x"), sample);
    let [weight, bias, temperature] = ["in_project_slice.weight", "in_project_slice.bias", "temperature"]
        .map(|name| parameter(graph, &format!("{scope}{name}")));
    let score = |x: &[f64], h: usize| {
        let sorted = linear(&weight, head(x, h));
        softmax(&sorted.iter().zip(&bias).map(|(value, bias)| (value + bias) / temperature[h]).collect::<Vec<_>>())
    };
    (0..HEADS).map(|h| x.iter().map(|x| score(x, h)).collect()).collect()
}

/// Tokens `[tokens · width]`: means of the points, by how much they belong.
fn collected(graph: &Graph, sample: &[f64]) -> Vec<f64> {
    let (weights, values) = (memberships(graph, "", sample), projected(graph, "in_project_fx", sample));
    let mean = |m: usize, h: usize, c: usize| {
        let mass: f64 = weights[h].iter().map(|w| w[m]).sum();
        let sum: f64 = weights[h].iter().zip(&values).map(|(w, value)| w[m] * head(value, h)[c]).sum();
        sum / (mass + 1e-5)
    };
    (0..TOKENS * WIDTH).map(|i| mean(i / WIDTH, i % WIDTH / CHANNELS, i % CHANNELS)).collect()
}

#[test]
fn slices_and_a_decoder_of_its_own_are_their_sums_over_all_pairs() {
    for (decoder, scope) in [(Decoder::Tied, ""), (Decoder::Own, "decoder.")] {
        let graph = Graph::new();
        let declared = Parameters::new(&graph);
        let shape = SliceShape { grid: Grid::Cloud { points: POINTS }, width: WIDTH, heads: HEADS, tokens: TOKENS };
        let slices = Slices::own(&declared.root(), shape, decoder);
        let sliced = slices.encode(graph.input("x", [BATCH, POINTS, WIDTH]));
        let back = sliced.decode(sliced.tokens);
        let x = numbers(BATCH * POINTS * WIDTH, 0.3);
        let (mut tokens, mut points) = (Vec::new(), Vec::new());
        for sample in x.chunks_exact(POINTS * WIDTH) {
            let (own, weights) = (collected(&graph, sample), memberships(&graph, scope, sample));
            let spread = |n: usize, h: usize, c: usize| {
                (0..TOKENS).map(|m| weights[h][n][m] * own[m * WIDTH + h * CHANNELS + c]).sum::<f64>()
            };
            points.extend((0..POINTS * WIDTH).map(|i| spread(i / WIDTH, i % WIDTH / CHANNELS, i % CHANNELS)));
            tokens.extend(own);
        }
        close(&evaluated(&graph, &x, sliced.tokens), &tokens, 1e-12, "tokens");
        close(&evaluated(&graph, &x, back), &points, 1e-12, "points");
    }
}
