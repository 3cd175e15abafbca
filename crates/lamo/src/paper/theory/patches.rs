//! Patches are a special case of soft tokens: with memberships of 0 and 1 a token is the mean of its patch, and a point gets its
//! token back. Memberships softmax(s · score) reach 0 and 1 like e^{−s} as the sharpness s = 1/τ grows.

use super::{Check, Proposition, largest, wave};
use crate::network::Parameters;
use crate::network::layers::{Decoder, SliceShape, Slices};
use lamo_geometry::Grid;
use lamo_tensor::reference::{self, Bindings};
use lamo_tensor::{Graph, PARAMETERS};

/// Points and patches.
const PLANE: [usize; 2] = [6, 8];
const PATCH: usize = 2;
const POINTS: usize = PLANE[0] * PLANE[1];
const TOKENS: usize = POINTS / (PATCH * PATCH);
/// What the layer adds to the mass of a slice.
const EPSILON: f64 = 1e-5;

fn patch(point: usize) -> usize {
    point / PLANE[1] / PATCH * (PLANE[1] / PATCH) + point % PLANE[1] / PATCH
}

/// The largest difference of tokens, and of what comes back, from the means of the patches at sharpness `s`.
fn differences(sharpness: f64) -> [f64; 2] {
    // Channel p < TOKENS of a point is 1 in its patch and 0 elsewhere; the others are a field. Slices are compared with the first.
    let (channels, fields) = (2 * TOKENS, wave(POINTS * TOKENS, 1.7));
    let graph = Graph::new();
    let parameters = Parameters::new(&graph);
    let shape = SliceShape { grid: Grid::Cloud { points: POINTS }, width: channels, heads: 1, tokens: TOKENS };
    let slices = Slices::own(&parameters.root(), shape, Decoder::Tied);
    let sliced = slices.encode(graph.input("points", [1, POINTS, channels]));
    let back = sliced.decode(sliced.tokens);
    let value = |place: usize| match (place / channels, place % channels) {
        (point, channel) if channel < TOKENS => f64::from(u8::from(patch(point) == channel)),
        (point, channel) => fields[point * TOKENS + channel - TOKENS],
    };
    let points: Vec<f64> = (0..POINTS * channels).map(value).collect();
    let bindings = Bindings::from([("points", points.clone()), (PARAMETERS, identity(&graph, sharpness))]);
    let found = reference::evaluate(&graph, &bindings, &[sliced.tokens, back]);
    let size = (PATCH * PATCH) as f64;
    let mean = |token: usize, channel: usize| {
        let own = (0..POINTS).filter(|point| patch(*point) == token);
        own.map(|point| points[point * channels + channel]).sum::<f64>() / (size + EPSILON)
    };
    let most = |values: &[f64], token: &dyn Fn(usize) -> usize| {
        let difference =
            |(place, found): (usize, &f64)| (found - mean(token(place / channels), place % channels)).abs();
        largest(values.iter().enumerate().map(difference))
    };
    [most(&found[0].values, &|row| row), most(&found[1].values, &patch)]
}

/// Parameters with which all maps are the identity, slices look at the first channels, and τ = 1/s.
fn identity(graph: &Graph, sharpness: f64) -> Vec<f64> {
    let sections = graph.sections();
    let mut theta = vec![0.0; sections.iter().map(|section| section.shape.count()).sum()];
    for section in &sections {
        let own = &mut theta[section.range()];
        if section.name.ends_with("temperature") {
            own.fill(1.0 / sharpness);
        } else if let [rows, columns] = section.shape.dims() {
            (0..*rows.min(columns)).for_each(|k| own[k * columns + k] = 1.0);
        }
    }
    theta
}

pub(super) fn proposition() -> Proposition {
    let pairs: Vec<(f64, [f64; 2])> = [8.0, 12.0, 16.0, 20.0].map(|s| (s, differences(s))).into();
    let rate = |place: usize| {
        let ((first, one), (last, other)) = (pairs[0], pairs[pairs.len() - 1]);
        -(other[place] / one[place]).ln() / (last - first)
    };
    let [tokens, points] = differences(800.0);
    Proposition {
        title: "Patches are a special case of soft tokens",
        statement: "With memberships of 0 and 1 a token is the mean of its patch and each point gets it back.",
        checks: vec![
            Check::vanishes("tokens against the means of their patches, memberships of 0 and 1", tokens, 1e-14),
            Check::vanishes("points against the token of their patch", points, 1e-14),
            Check::order("rate at which tokens reach the means as memberships sharpen", 1.0, rate(0), 0.02),
            Check::order("rate at which points reach their token", 1.0, rate(1), 0.02),
        ],
    }
}
