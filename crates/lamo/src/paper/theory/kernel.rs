//! A scan is the product with a matrix: y = M x, M_ij = C_i (Π_{j<k≤i} Ā_k) B̄_j for j ≤ i and 0 above the diagonal.

use super::{Check, Proposition, distance, wave};
use crate::inference::explain::{by_matrices, evaluated, matrix::Head};
use crate::network::layers::{Attention, Discretisation, Hydra, Mamba2, Selection, Ss2d, TokenMixer};
use crate::network::probe::Kernel;
use crate::network::{Parameters, Scope};
use lamo_tensor::reference::{self, Array, Bindings};
use lamo_tensor::{Graph, PARAMETERS, Tensor};
use std::convert::Infallible;

const WIDTH: usize = 16;
/// 4 × 6 tokens of a plane.
const PLANE: [usize; 2] = [4, 6];
const TOKENS: usize = PLANE[0] * PLANE[1];
/// Two hundred terms of size 1 are summed in each output.
const ROUNDING: f64 = 1e-12;

fn selection(directions: usize) -> Selection {
    Selection {
        states: 5,
        expand: 2,
        head_width: 8,
        groups: 1,
        convolution: 3,
        directions,
        scan_heads: 0,
        discretisation: Discretisation::Euler,
    }
}

const MIXERS: [&str; 4] = ["Mamba-2 in two directions", "Hydra", "SS2D in four directions", "attention"];

fn mix<'g>(name: &str, scope: &Scope<'_, 'g>, tokens: Tensor<'g>) -> Tensor<'g> {
    match name {
        "Hydra" => Hydra::new(scope, WIDTH, selection(2)).forward(tokens),
        "SS2D in four directions" => Ss2d::new(scope, 2, WIDTH, selection(4)).forward(tokens, [1, PLANE[0], PLANE[1]]),
        "attention" => Attention::new(scope, 4, WIDTH / 4).mix(tokens),
        "one direction" => Mamba2::new(scope, WIDTH, selection(1)).forward(tokens),
        _ => Mamba2::new(scope, WIDTH, selection(2)).forward(tokens),
    }
}

fn bindings(graph: &Graph) -> Bindings<'static> {
    let count = graph.sections().iter().map(|section| section.shape.count()).sum();
    let theta = wave(count, 0.71).iter().map(|value| 0.6 * value).collect();
    Bindings::from([("tokens", wave(TOKENS * WIDTH, 1.3)), (PARAMETERS, theta)])
}

fn tokens(graph: &Graph) -> Tensor<'_> {
    graph.input("tokens", [1, TOKENS, WIDTH])
}

/// The distance of a mixer's outputs with its matrices in place of its scans from its own.
fn replaced(name: &str) -> f64 {
    let graph = Graph::new();
    let parameters = Parameters::new(&graph);
    let result = mix(name, &parameters.root(), tokens(&graph));
    let bindings = bindings(&graph);
    let own = &reference::evaluate(&graph, &bindings, &[result])[0].values;
    let found =
        by_matrices(&bindings, |graph, parameters| Ok::<_, Infallible>(mix(name, &parameters.root(), tokens(graph))));
    let found = found.unwrap_or_else(|never| match never {}).unwrap_or_default();
    if found.len() == own.len() { distance(&found, own) } else { f64::INFINITY }
}

/// What a scan in one direction shows.
fn one_direction() -> Kernel<Array> {
    let graph = Graph::new();
    let parameters = Parameters::new(&graph);
    let probe = parameters.probe(false);
    mix("one direction", &parameters.root(), tokens(&graph));
    let mut layers = evaluated(&graph, &bindings(&graph), &probe.layers());
    layers.remove(0).mixings.remove(0).kernel
}

/// The largest entry above the diagonal, over the largest entry.
fn above() -> f64 {
    let head = Head::of(&one_direction(), 0, 0);
    let rows: Vec<Vec<f64>> = (0..TOKENS).map(|token| head.row_along(0, token)).collect();
    let most = |later: bool| {
        let entries = rows.iter().enumerate().flat_map(|(i, row)| row.iter().enumerate().map(move |(j, m)| (i, j, m)));
        entries.filter(|(i, j, _)| !later || j > i).fold(0.0, |most: f64, (_, _, m)| most.max(m.abs()))
    };
    most(true) / most(false)
}

/// The distance from M of the matrix whose decays run over all steps up to the reader, Π_{k≤i} Ā_k.
fn all_decays() -> f64 {
    let kernel = one_direction();
    let Kernel::Scans { scans, .. } = &kernel else { return 0.0 };
    let lanes = scans[0].log_decay.shape.dims()[2];
    let head = Head::of(&kernel, 0, 0);
    let (mut own, mut other) = (Vec::new(), Vec::new());
    for i in 0..TOKENS {
        for (j, entry) in head.row_along(0, i).into_iter().enumerate() {
            let up_to_writer: f64 = (0..=j).map(|k| scans[0].log_decay.values[k * lanes]).sum();
            own.push(entry);
            other.push(entry * up_to_writer.exp());
        }
    }
    distance(&other, &own)
}

pub(super) fn proposition() -> Proposition {
    let mut checks: Vec<Check> = MIXERS
        .iter()
        .map(|name| {
            Check::vanishes(format!("{name}: outputs with matrices in place of scans"), replaced(name), ROUNDING)
        })
        .collect();
    checks.push(Check::vanishes("one direction: largest entry above the diagonal", above(), 0.0));
    checks.push(Check::differs(
        "decays over all steps up to the reader, as in the lemma, against M",
        all_decays(),
        0.1,
    ));
    Proposition {
        title: "A scan is a kernel matrix",
        statement: "y = M x with M_ij = C_i (Π_{j<k≤i} Ā_k) B̄_j for j ≤ i: a kernel between tokens that depends on the data.",
        checks,
    }
}
