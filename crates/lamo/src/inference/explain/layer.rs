//! What one block does with a sample: its hidden matrices by head and direction, how concentrated they are, and its tokens.
//!
//! For pictures and numbers a matrix is made row-stochastic, p_ij = |M_ij| / Σ_j |M_ij| ; attention is so already. Matrices with
//! more than [`SIDE`] tokens are pooled: tokens that follow each other share a row and a column, with the mean of M and the sum
//! of p. With more than [`ALL_ROWS`] tokens, [`SOME_ROWS`] evenly spaced rows are computed.

use super::matrix::{self, Head};
use super::tokens::{Domain, cosine};
use crate::network::probe::{Kernel, Layer, Mixing};
use lamo_geometry::Grid;
use lamo_tensor::reference::Array;
use rayon::prelude::*;

/// Rows and columns of a pooled matrix, at most.
pub const SIDE: usize = 128;
/// Up to so many tokens, every row is computed.
pub const ALL_ROWS: usize = 2048;
/// Rows that are computed of larger matrices.
const SOME_ROWS: usize = 512;
/// Columns that count as heavy.
const HEAVY: usize = 3;

/// A matrix of tokens, pooled where it is large.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix {
    /// Rows and columns.
    pub side: usize,
    /// `[side, side]`
    pub values: Vec<f32>,
}

/// The hidden matrices of one head.
#[derive(Clone, Debug)]
pub struct HeadMatrices {
    /// M, all directions together.
    pub whole: Matrix,
    /// M of each direction without the skip; empty for attention and for a mixer with one direction.
    pub directions: Vec<Matrix>,
}

/// One block.
#[derive(Clone, Debug)]
pub struct Explained {
    /// `scan` or `attention`.
    pub mixer: &'static str,
    /// M, tokens of the block.
    pub tokens: usize,
    /// Rows that were computed: all tokens, or some of many.
    pub rows: usize,
    /// The heads.
    pub heads: Vec<HeadMatrices>,
    /// Mean over the heads of p.
    pub shares: Matrix,
    /// Mean over heads and rows of −Σ_j p_ij ln p_ij / ln M: 0 where each token sees one token, 1 where it sees all alike.
    pub entropy: f64,
    /// Share of Σ_ij p_ij in the three heaviest columns, mean over the heads.
    pub heaviest: f64,
    /// ‖M x + r − y‖ / ‖y‖: what the matrices leave unexplained of the mixing, which is rounding.
    pub residual: f64,
    /// ‖r‖ / ‖y‖: the share of the learned first state, which no matrix holds.
    pub first_state: f64,
    /// Mean cosine between two tokens before the mixer and after it.
    pub cosine: [Option<f64>; 2],
    /// Where the tokens lie.
    pub domain: Option<Domain>,
    /// `[tokens]` p of the token that the asked point lies in, mean over the heads; empty for soft slices.
    pub attended: Vec<f32>,
}

/// The matrices of one head: those of its mixings, of which the mean is taken.
struct Merged(Vec<Head>);

/// One row of a head: M, M of each direction.
struct Row {
    whole: Vec<f64>,
    directions: Vec<Vec<f64>>,
}

impl Merged {
    fn of(mixings: &[Mixing<Array>], sample: usize, head: usize) -> Merged {
        Merged(mixings.iter().map(|mixing| Head::of(&mixing.kernel, sample, head)).collect())
    }

    fn row(&self, token: usize) -> Row {
        let share = 1.0 / self.0.len() as f64;
        let mut whole = vec![0.0; self.0[0].tokens()];
        let mut directions = Vec::new();
        for head in &self.0 {
            whole.iter_mut().zip(head.row(token)).for_each(|(sum, entry)| *sum += share * entry);
            directions.extend((0..head.directions()).map(|direction| head.row_along(direction, token)));
        }
        Row { whole, directions: if directions.len() > 1 { directions } else { Vec::new() } }
    }
}

/// p of a row of M; all zeros stay zeros.
fn shares(row: &[f64]) -> Vec<f64> {
    let sum: f64 = row.iter().map(|entry| entry.abs()).sum();
    row.iter().map(|entry| if sum > 0.0 { entry.abs() / sum } else { 0.0 }).collect()
}

/// Sums of the rows that share a row of the pooled matrix.
struct Band {
    rows: usize,
    /// `[1 + directions, side]` sums of M
    sums: Vec<Vec<f64>>,
    /// `[side]` sums of p
    shares: Vec<f64>,
    /// `[tokens]` sums of p
    columns: Vec<f64>,
    entropy: f64,
}

/// The rows to compute.
pub(super) fn chosen_rows(tokens: usize) -> Vec<usize> {
    match tokens <= ALL_ROWS {
        true => (0..tokens).collect(),
        false => (0..SOME_ROWS).map(|row| row * (tokens - 1) / (SOME_ROWS - 1)).collect(),
    }
}

fn band(head: &Merged, rows: &[usize], tokens: usize, side: usize) -> Band {
    let mut band =
        Band { rows: rows.len(), sums: Vec::new(), shares: vec![0.0; side], columns: vec![0.0; tokens], entropy: 0.0 };
    for &token in rows {
        let row = head.row(token);
        let p = shares(&row.whole);
        for (column, share) in p.iter().enumerate() {
            band.shares[column * side / tokens] += share;
            band.columns[column] += share;
            band.entropy -= if *share > 0.0 { share * share.ln() } else { 0.0 };
        }
        band.sums.resize(1 + row.directions.len(), vec![0.0; side]);
        for (sums, entries) in band.sums.iter_mut().zip(std::iter::once(&row.whole).chain(&row.directions)) {
            entries.iter().enumerate().for_each(|(column, entry)| sums[column * side / tokens] += entry);
        }
    }
    band
}

/// One head with its numbers: entropy and share of the heaviest columns.
fn head_of(head: &Merged, chosen: &[usize], side: usize) -> (HeadMatrices, Vec<f64>, [f64; 2]) {
    let tokens = head.0[0].tokens();
    let in_band =
        |number: usize| chosen.iter().copied().filter(|row| row * side / tokens == number).collect::<Vec<_>>();
    let bands: Vec<Band> = (0..side).into_par_iter().map(|number| band(head, &in_band(number), tokens, side)).collect();
    let widths: Vec<f64> =
        (0..side).map(|column| (0..tokens).filter(|token| token * side / tokens == column).count() as f64).collect();
    let matrix = |part: usize| {
        let mean = |band: &Band, column: usize| match band.sums.get(part) {
            Some(sums) => (sums[column] / (band.rows as f64 * widths[column])) as f32,
            None => f32::NAN, // no row of this band was computed
        };
        let values = bands.iter().flat_map(|band| (0..side).map(move |column| mean(band, column))).collect();
        Matrix { side, values }
    };
    let parts = bands.iter().map(|band| band.sums.len()).max().unwrap_or(1);
    let pooled = bands.iter().flat_map(|band| band.shares.iter().map(|sum| sum / band.rows.max(1) as f64)).collect();
    let mut columns = vec![0.0; tokens];
    bands.iter().for_each(|band| columns.iter_mut().zip(&band.columns).for_each(|(sum, part)| *sum += part));
    columns.sort_by(|one, other| other.total_cmp(one));
    let mass: f64 = columns.iter().sum();
    let heavy = if mass > 0.0 { columns.iter().take(HEAVY).sum::<f64>() / mass } else { 0.0 };
    let entropy = bands.iter().map(|band| band.entropy).sum::<f64>() / chosen.len() as f64;
    let entropy = if tokens > 1 { entropy / (tokens as f64).ln() } else { 0.0 };
    (HeadMatrices { whole: matrix(0), directions: (1..parts).map(matrix).collect() }, pooled, [entropy, heavy])
}

/// What a block does with one sample, with matrices of at most `most` rows; `None` for a block without mixings. `point` is the
/// point whose token is asked about; without one, the places of the tokens are left out.
pub(super) fn explain(
    layer: &Layer<Array>,
    sample: usize,
    grid: Grid,
    point: Option<usize>,
    most: usize,
) -> Option<Explained> {
    let first = layer.mixings.first()?;
    let [_, tokens, heads, _] = matrix::sizes(&first.kernel);
    let (side, chosen) = (tokens.min(most), chosen_rows(tokens));
    let domain = layer.places.as_ref().filter(|_| point.is_some()).map(|places| Domain::of(places, sample, grid));
    let asked = domain.as_ref().zip(point).and_then(|(domain, point)| domain.token_of(point));
    let (mut all, mut mean, mut numbers) = (Vec::new(), vec![0.0; side * side], [0.0; 2]);
    let mut attended = vec![0.0; if asked.is_some() { tokens } else { 0 }];
    for head in 0..heads {
        let merged = Merged::of(&layer.mixings, sample, head);
        let (matrices, pooled, found) = head_of(&merged, &chosen, side);
        all.push(matrices);
        mean.iter_mut().zip(&pooled).for_each(|(sum, share)| *sum += share / heads as f64);
        numbers.iter_mut().zip(found).for_each(|(sum, value)| *sum += value / heads as f64);
        if let Some(token) = asked {
            let row = shares(&merged.row(token).whole);
            attended.iter_mut().zip(row).for_each(|(sum, share)| *sum += (share / heads as f64) as f32);
        }
    }
    let residuals = layer.mixings.iter().map(|mixing| matrix::residual(mixing, sample, &chosen));
    let [residual, first_state] =
        residuals.fold([0.0; 2], |most: [f64; 2], found| [most[0].max(found[0]), most[1].max(found[1])]);
    Some(Explained {
        mixer: if matches!(first.kernel, Kernel::Attention { .. }) { "attention" } else { "scan" },
        tokens,
        rows: chosen.len(),
        heads: all,
        shares: Matrix { side, values: mean.into_iter().map(|share| share as f32).collect() },
        entropy: numbers[0],
        heaviest: numbers[1],
        residual,
        first_state,
        cosine: match &layer.tokens {
            Some(tokens) => tokens.each_ref().map(|tokens| cosine(tokens, sample)),
            None => [None; 2],
        },
        domain,
        attended,
    })
}
