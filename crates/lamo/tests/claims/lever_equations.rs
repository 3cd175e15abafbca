//! The layers of the levers equal their equations, written with loops over all pairs.

use lamo::network::Parameters;
use lamo::network::layers::{AxialConvolution, Decoder, DepthwiseConvolution, Queries, SliceMaps, SliceShape, Slices};
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

#[test]
fn a_positional_convolution_weighs_the_neighbours_of_each_channel() {
    for ([rows, columns], high) in [([4, 5], 3), ([1, 6], 1)] {
        let graph = Graph::new();
        let declared = Parameters::new(&graph);
        let layer = DepthwiseConvolution::new(&declared.root(), [1, rows, columns], 2);
        let out = layer.forward(graph.input("x", [1, 1, rows, columns, 2]));
        let x = numbers(rows * columns * 2, 0.3);
        let (weight, bias) = (parameter(&graph, "weight"), parameter(&graph, "bias"));
        let mut expected = Vec::new();
        for (row, column, channel) in (0..rows * columns * 2).map(|i| (i / 2 / columns, i / 2 % columns, i % 2)) {
            let mut sum = bias[channel];
            for (tap_row, tap_column) in (0..high).flat_map(|u| (0..3).map(move |v| (u, v))) {
                let (from_row, from_column) =
                    ((row + tap_row).wrapping_sub(high / 2), (column + tap_column).wrapping_sub(1));
                if from_row < rows && from_column < columns {
                    sum += weight[(channel * high + tap_row) * 3 + tap_column]
                        * x[(from_row * columns + from_column) * 2 + channel];
                }
            }
            expected.push(sum);
        }
        close(&evaluated(&graph, &x, out), &expected, 1e-12, &format!("{rows} × {columns}"));
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

/// Tokens `[tokens][width]` by the equations of conditioned queries.
fn conditioned(graph: &Graph, sample: &[f64]) -> Vec<Vec<f64>> {
    let (x, values) = (projected(graph, "in_project_x", sample), projected(graph, "in_project_fx", sample));
    let [fixed, asking, gate, temperature] =
        ["latents.fixed", "latents.asking", "latents.gate", "temperature"].map(|name| parameter(graph, name));
    let mut tokens = vec![vec![0.0; WIDTH]; TOKENS];
    for h in 0..HEADS {
        let latent = |all: &[f64], m: usize| all[(h * TOKENS + m) * CHANNELS..][..CHANNELS].to_vec();
        let open = 1.0 / (1.0 + (-gate[h]).exp());
        let query = |m: usize| {
            let scores: Vec<f64> =
                x.iter().map(|x| dot(&latent(&asking, m), head(x, h)) / (CHANNELS as f64).sqrt()).collect();
            let found = |c: usize| softmax(&scores).iter().zip(&x).map(|(a, x)| a * head(x, h)[c]).sum::<f64>();
            (0..CHANNELS).map(|c| latent(&fixed, m)[c] + open * found(c)).collect::<Vec<f64>>()
        };
        let queries: Vec<_> = (0..TOKENS).map(query).collect();
        let weights: Vec<Vec<f64>> = x
            .iter()
            .map(|x| softmax(&queries.iter().map(|q| dot(q, head(x, h)) / temperature[h]).collect::<Vec<_>>()))
            .collect();
        for (m, token) in tokens.iter_mut().enumerate() {
            let mass: f64 = weights.iter().map(|w| w[m]).sum();
            for c in 0..CHANNELS {
                let sum: f64 = weights.iter().zip(&values).map(|(w, value)| w[m] * head(value, h)[c]).sum();
                token[h * CHANNELS + c] = sum / (mass + 1e-5);
            }
        }
    }
    tokens
}

/// Points `[points · width]` by the equations of the attention decoder.
fn attended(graph: &Graph, sample: &[f64], tokens: &[Vec<f64>]) -> Vec<f64> {
    let maps = ["decoder.to_q.weight", "decoder.to_k.weight", "decoder.to_v.weight"].map(|name| parameter(graph, name));
    let keys: Vec<_> = tokens.iter().map(|token| linear(&maps[1], token)).collect();
    let values: Vec<_> = tokens.iter().map(|token| linear(&maps[2], token)).collect();
    let mut points = Vec::new();
    for point in sample.chunks_exact(WIDTH) {
        let query = linear(&maps[0], point);
        for h in 0..HEADS {
            let score = |key: &Vec<f64>| dot(head(&query, h), head(key, h)) / (CHANNELS as f64).sqrt();
            let weights = softmax(&keys.iter().map(score).collect::<Vec<_>>());
            let mixed = |c: usize| weights.iter().zip(&values).map(|(w, value)| w * head(value, h)[c]).sum::<f64>();
            points.extend((0..CHANNELS).map(mixed));
        }
    }
    points
}

#[test]
fn conditioned_queries_and_the_attention_decoder_are_their_sums_over_all_pairs() {
    let graph = Graph::new();
    let declared = Parameters::new(&graph);
    let shape = SliceShape { grid: Grid::Cloud { points: POINTS }, width: WIDTH, heads: HEADS, tokens: TOKENS };
    let maps = SliceMaps { queries: Queries::Conditioned, decoder: Decoder::Attention };
    let slices = Slices::own(&declared.root(), shape, maps);
    let sliced = slices.encode(graph.input("x", [BATCH, POINTS, WIDTH]));
    let back = sliced.decode(sliced.tokens);
    let x = numbers(BATCH * POINTS * WIDTH, 0.3);
    let samples = || x.chunks_exact(POINTS * WIDTH);
    let tokens: Vec<Vec<Vec<f64>>> = samples().map(|sample| conditioned(&graph, sample)).collect();
    close(&evaluated(&graph, &x, sliced.tokens), &tokens.concat().concat(), 1e-12, "tokens");
    let points: Vec<f64> =
        samples().zip(&tokens).flat_map(|(sample, tokens)| attended(&graph, sample, tokens)).collect();
    close(&evaluated(&graph, &x, back), &points, 1e-12, "points");
}
