//! Tokens: how alike they are, and where they lie on the points.

use super::matrix::softmax;
use crate::network::probe::Places;
use lamo_geometry::Grid;
use lamo_tensor::reference::Array;

/// Values of the weights of a block that are kept, at most; further heads are left out.
const MOST_WEIGHTS: usize = 1 << 22;

/// The mean cosine between two tokens, 2/(M(M−1)) Σ_{i<j} z_i·z_j/(‖z_i‖‖z_j‖), of tokens `[batch, M, width]` in one sample; `None`
/// for a single token. Σ_{i<j} is found from ‖Σ z_i/‖z_i‖‖². Tokens of zeros have the cosine 0 with all.
pub fn cosine(tokens: &Array, sample: usize) -> Option<f64> {
    let [_, count, width] = tokens.shape.dims().try_into().ok()?;
    let own = &tokens.values[sample * count * width..][..count * width];
    let (mut sum, mut units) = (vec![0.0; width], 0.0);
    for token in own.chunks_exact(width) {
        let norm = token.iter().map(|value| value * value).sum::<f64>().sqrt();
        if norm > 0.0 {
            units += 1.0;
            sum.iter_mut().zip(token).for_each(|(sum, value)| *sum += value / norm);
        }
    }
    let pairs = (count * (count.max(1) - 1)) as f64;
    (count > 1).then(|| (sum.iter().map(|value| value * value).sum::<f64>() - units) / pairs)
}

/// Where the tokens of a block lie.
#[derive(Clone, Debug)]
pub enum Domain {
    /// Soft slices of the points.
    Slices {
        /// Slices of a head.
        slices: usize,
        /// Heads with slices of their own.
        heads: usize,
        /// `[heads, slices]` the share of the points in each slice; a head sums to 1
        mass: Vec<f32>,
        /// exp of the mean entropy of a point's memberships: among how many slices a point is divided.
        spread: f64,
        /// Heads whose weights are kept, the first ones.
        kept: usize,
        /// `[kept, slices, points]`
        weights: Vec<f32>,
    },
    /// Patches of a lattice.
    Patches {
        /// Patches down and across, of a volume also along the layers.
        patches: Vec<usize>,
        /// `[points]` the token of each point
        token: Vec<u32>,
    },
}

impl Domain {
    /// The domain of one sample on a grid.
    pub(super) fn of(places: &Places<Array>, sample: usize, grid: Grid) -> Domain {
        match places {
            Places::Slices { queries, keys, offsets } => sliced([queries, keys, offsets], sample),
            Places::Patches { extents, patch, patches } => {
                let shape = grid.extents().unwrap_or([1, 1, grid.points()]);
                // A point of another grid lies in the patch of the nearest point of the lattice.
                let at = |place: usize, points: usize, extent: usize| match points {
                    1 => 0,
                    _ => (place * (extent - 1) + (points - 1) / 2) / (points - 1),
                };
                let token = |point: usize| {
                    let places = [point / (shape[1] * shape[2]), point / shape[2] % shape[1], point % shape[2]];
                    (0..3).fold(0, |token, axis| {
                        token * patches[axis] + at(places[axis], shape[axis], extents[axis]) / patch[axis]
                    }) as u32
                };
                let shown = if matches!(grid, Grid::Volume { .. }) { &patches[..] } else { &patches[1..] };
                Domain::Patches { patches: shown.to_vec(), token: (0..grid.points()).map(token).collect() }
            }
        }
    }

    /// The token that a point lies in; `None` for soft slices.
    pub fn token_of(&self, point: usize) -> Option<usize> {
        match self {
            Domain::Patches { token, .. } => token.get(point).map(|token| *token as usize),
            Domain::Slices { .. } => None,
        }
    }
}

fn sliced([queries, keys, offsets]: [&Array; 3], sample: usize) -> Domain {
    let [_, points, heads, channels]: [usize; 4] = four(queries);
    let slices = offsets.shape.dims()[1];
    let kept = (MOST_WEIGHTS / (slices * points).max(1)).clamp(1, heads);
    let (mut mass, mut weights, mut entropy) = (Vec::new(), vec![0.0; kept * slices * points], 0.0);
    for head in 0..heads {
        let (key, offset) = (&keys.values[head * slices * channels..], &offsets.values[head * slices..]);
        let mut sums = vec![0.0; slices];
        for point in 0..points {
            let query = &queries.values[((sample * points + point) * heads + head) * channels..][..channels];
            let score = |slice: usize| {
                let own = &key[slice * channels..][..channels];
                offset[slice] + query.iter().zip(own).map(|(q, k)| q * k).sum::<f64>()
            };
            let mut memberships: Vec<f64> = (0..slices).map(score).collect();
            softmax(&mut memberships);
            for (slice, weight) in memberships.iter().enumerate() {
                sums[slice] += weight;
                entropy -= if *weight > 0.0 { weight * weight.ln() } else { 0.0 };
                if head < kept {
                    weights[(head * slices + slice) * points + point] = *weight as f32;
                }
            }
        }
        mass.extend(sums.iter().map(|sum| (sum / points as f64) as f32));
    }
    let spread = (entropy / (heads * points) as f64).exp();
    Domain::Slices { slices, heads, mass, spread, kept, weights }
}

fn four(array: &Array) -> [usize; 4] {
    array.shape.dims().try_into().unwrap_or_else(|_| panic!("memberships have four axes, found {}", array.shape))
}
