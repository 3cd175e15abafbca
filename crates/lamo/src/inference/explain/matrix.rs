//! The hidden matrix of a mixing, in f64: y_i = Σ_j M_ij x_j + r_i.
//!
//! A scan along an order of the tokens is, with a the step at which token i reads and b the step at which token j is read,
//!
//! M_ij = (C_i·B_j) g_j exp(Σ_{b<k≤a} ℓ_k),  b ≤ a,
//!
//! and 0 elsewhere. Hydra reads one step before its own token. The skip is the diagonal; where it differs between the channels of
//! a head, the matrix has its mean. A learned first state adds r_i = C_i·h₀ exp(Σ_{k≤a} ℓ_k), which no matrix on x holds.
//! Attention is M = softmax(q kᵀ/√c), r = 0.
//!
//! Exponents are differences of sums, so that none is positive and nothing is divided. One row is held at a time: a matrix of
//! thousands of tokens never is in memory as a whole.

use crate::network::probe::{Kernel, Mixing, ShownScan};
use lamo_tensor::reference::Array;
use rayon::prelude::*;

/// One direction of a scan.
struct Scan {
    /// The step of each token.
    step: Vec<usize>,
    /// The token of each step.
    token: Vec<usize>,
    /// Σ_{k≤l} ℓ_k at each step l
    decay: Vec<f64>,
    /// g at each step
    gain: Vec<f64>,
    /// `[steps, states]`
    write: Vec<f64>,
    /// `[steps, states]`
    read: Vec<f64>,
    /// `[channels, states]`
    initial: Option<Vec<f64>>,
    shifted: bool,
}

impl Scan {
    /// Direction `direction` of `head` in `sample`.
    fn of(shown: &ShownScan<Array>, sample: usize, direction: usize, head: usize) -> Scan {
        let [_, tokens, heads, channels] = extents(&shown.signal);
        let [_, _, groups, states] = extents(&shown.write);
        let lane = direction * heads + head;
        let lanes = shown.orders.len() * heads;
        let group = lane * groups / lanes;
        let places: Vec<usize> = shown.orders[direction].iter().map(|place| *place as usize).collect();
        let per_lane = |array: &Array, place: usize| array.values[(sample * tokens + place) * lanes + lane];
        let per_group = |array: &Array| -> Vec<f64> {
            let start = |place: &usize| ((sample * tokens + place) * groups + group) * states;
            places.iter().flat_map(|place| array.values[start(place)..][..states].iter().copied()).collect()
        };
        let token: Vec<usize> = match &shown.tokens {
            Some(at) => places.iter().map(|place| at[*place] as usize).collect(),
            None => places.clone(),
        };
        let mut step = vec![0; tokens];
        token.iter().enumerate().for_each(|(at, token)| step[*token] = at);
        let mut sum = 0.0;
        let decay = places.iter().map(|place| {
            sum += per_lane(&shown.log_decay, *place);
            sum
        });
        let initial = |array: &Array| {
            let size = channels * states;
            array.values[(sample * lanes + lane) * size..][..size].to_vec()
        };
        Scan {
            step,
            token,
            decay: decay.collect(),
            gain: places.iter().map(|place| per_lane(&shown.gain, *place)).collect(),
            write: per_group(&shown.write),
            read: per_group(&shown.read),
            initial: shown.initial.as_ref().map(initial),
            shifted: shown.shifted,
        }
    }

    /// The step whose state token `token` reads; `None` for the first token of a shifted scan.
    fn reads(&self, token: usize) -> Option<usize> {
        let step = self.step[token];
        if self.shifted { step.checked_sub(1) } else { Some(step) }
    }

    fn states(&self) -> usize {
        self.read.len() / self.step.len()
    }

    /// Adds M_ij of all j to a row.
    fn add(&self, token: usize, row: &mut [f64]) {
        let (Some(at), states) = (self.reads(token), self.states()) else { return };
        let read = &self.read[at * states..][..states];
        for step in 0..=at {
            let write = &self.write[step * states..][..states];
            let overlap: f64 = read.iter().zip(write).map(|(c, b)| c * b).sum();
            row[self.token[step]] += overlap * self.gain[step] * (self.decay[at] - self.decay[step]).exp();
        }
    }

    /// Adds r_i `[channels]`.
    fn add_remainder(&self, token: usize, sum: &mut [f64]) {
        let (Some(at), Some(initial), states) = (self.reads(token), &self.initial, self.states()) else { return };
        let (read, factor) = (&self.read[at * states..][..states], self.decay[at].exp());
        for (sum, state) in sum.iter_mut().zip(initial.chunks_exact(states)) {
            *sum += factor * state.iter().zip(read).map(|(h, c)| h * c).sum::<f64>();
        }
    }
}

/// What gives the rows of one head.
enum Rows {
    Scans {
        directions: Vec<Scan>,
        /// `[tokens, channels]`
        skip: Vec<f64>,
    },
    Attention {
        /// `[tokens, c]`
        query: Vec<f64>,
        /// `[tokens, c]`
        key: Vec<f64>,
    },
}

/// The hidden matrix of one head in one sample.
pub struct Head {
    tokens: usize,
    channels: usize,
    /// `[tokens, channels]` x
    signal: Vec<f64>,
    rows: Rows,
}

/// Extents of an array with four axes.
fn extents(array: &Array) -> [usize; 4] {
    array.shape.dims().try_into().unwrap_or_else(|_| panic!("a probed array has four axes, found {}", array.shape))
}

/// Batch, tokens, heads and channels of a mixing.
pub fn sizes(kernel: &Kernel<Array>) -> [usize; 4] {
    match kernel {
        Kernel::Scans { scans, .. } => extents(&scans[0].signal),
        Kernel::Attention { value, .. } => {
            let [batch, heads, tokens, channels] = extents(value);
            [batch, tokens, heads, channels]
        }
    }
}

impl Head {
    /// Head `head` of sample `sample`.
    pub fn of(kernel: &Kernel<Array>, sample: usize, head: usize) -> Head {
        let [_, tokens, heads, channels] = sizes(kernel);
        match kernel {
            Kernel::Scans { scans, skip } => {
                let directions = scans.iter().flat_map(|scan| (0..scan.orders.len()).map(move |number| (scan, number)));
                let directions = directions.map(|(scan, number)| Scan::of(scan, sample, number, head));
                let first = &scans[0];
                let mut signal = vec![0.0; tokens * channels];
                for place in 0..tokens {
                    let token = first.tokens.as_ref().map_or(place, |tokens| tokens[place] as usize);
                    let start = ((sample * tokens + place) * heads + head) * channels;
                    signal[token * channels..][..channels].copy_from_slice(&first.signal.values[start..][..channels]);
                }
                let [samples, rows, _, columns] = extents(skip);
                let skipped = |at: usize| {
                    let (token, channel) = (at / channels, at % channels);
                    let row = (sample.min(samples - 1) * rows + token.min(rows - 1)) * heads + head;
                    skip.values[row * columns + channel.min(columns - 1)]
                };
                let skip = (0..tokens * channels).map(skipped).collect();
                Head { tokens, channels, signal, rows: Rows::Scans { directions: directions.collect(), skip } }
            }
            Kernel::Attention { query, key, value } => {
                let own = |array: &Array| {
                    let size = tokens * channels;
                    array.values[(sample * heads + head) * size..][..size].to_vec()
                };
                let rows = Rows::Attention { query: own(query), key: own(key) };
                Head { tokens, channels, signal: own(value), rows }
            }
        }
    }

    /// Number of tokens.
    pub fn tokens(&self) -> usize {
        self.tokens
    }

    /// Number of directions whose matrices are summed; 0 for attention, which has none.
    pub fn directions(&self) -> usize {
        match &self.rows {
            Rows::Scans { directions, .. } => directions.len(),
            Rows::Attention { .. } => 0,
        }
    }

    /// Row i of the whole matrix: all directions and the diagonal.
    pub fn row(&self, token: usize) -> Vec<f64> {
        let mut row = vec![0.0; self.tokens];
        match &self.rows {
            Rows::Scans { directions, skip } => {
                directions.iter().for_each(|scan| scan.add(token, &mut row));
                let own = &skip[token * self.channels..][..self.channels];
                row[token] += own.iter().sum::<f64>() / self.channels as f64;
            }
            Rows::Attention { query, key } => self.attend(query, key, token, &mut row),
        }
        row
    }

    /// Row i of one direction, without the diagonal of the skip.
    pub fn row_along(&self, direction: usize, token: usize) -> Vec<f64> {
        let mut row = vec![0.0; self.tokens];
        match &self.rows {
            Rows::Scans { directions, .. } => directions[direction].add(token, &mut row),
            Rows::Attention { .. } => panic!("attention has no directions"),
        }
        row
    }

    fn attend(&self, query: &[f64], key: &[f64], token: usize, row: &mut [f64]) {
        let own = &query[token * self.channels..][..self.channels];
        let scale = 1.0 / (self.channels as f64).sqrt();
        for (score, key) in row.iter_mut().zip(key.chunks_exact(self.channels)) {
            *score = scale * own.iter().zip(key).map(|(q, k)| q * k).sum::<f64>();
        }
        softmax(row);
    }

    /// r_i `[channels]`, what the learned first state adds to the product.
    pub fn remainder(&self, token: usize) -> Vec<f64> {
        let mut sum = vec![0.0; self.channels];
        if let Rows::Scans { directions, .. } = &self.rows {
            directions.iter().for_each(|scan| scan.add_remainder(token, &mut sum));
        }
        sum
    }

    /// y_i `[channels]` by the matrix: Σ_j M_ij x_j + r_i, with the skip of each channel.
    pub fn mixed(&self, token: usize) -> Vec<f64> {
        let (row, mut sum) = (self.row(token), self.remainder(token));
        let diagonal = match &self.rows {
            Rows::Scans { skip, .. } => {
                let own = &skip[token * self.channels..][..self.channels];
                let mean = own.iter().sum::<f64>() / self.channels as f64;
                own.iter().map(|skip| skip - mean).collect()
            }
            Rows::Attention { .. } => vec![0.0; self.channels],
        };
        for (entry, signal) in row.iter().zip(self.signal.chunks_exact(self.channels)) {
            sum.iter_mut().zip(signal).for_each(|(sum, x)| *sum += entry * x);
        }
        let own = &self.signal[token * self.channels..][..self.channels];
        sum.iter_mut().zip(diagonal.iter().zip(own)).for_each(|(sum, (rest, x))| *sum += rest * x);
        sum
    }
}

/// e^{s_j − max s} / Σ, in place.
pub(super) fn softmax(scores: &mut [f64]) {
    let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    scores.iter_mut().for_each(|score| *score = (*score - most).exp());
    let sum: f64 = scores.iter().sum();
    scores.iter_mut().for_each(|score| *score /= sum);
}

/// The result of a mixing by its matrices, in the order of [`Mixing::mixed`].
pub fn product(kernel: &Kernel<Array>) -> Vec<f64> {
    let [batch, tokens, heads, channels] = sizes(kernel);
    let by_head = matches!(kernel, Kernel::Attention { .. });
    let mut mixed = vec![0.0; batch * tokens * heads * channels];
    for (sample, head) in (0..batch).flat_map(|sample| (0..heads).map(move |head| (sample, head))) {
        let matrix = Head::of(kernel, sample, head);
        let rows: Vec<Vec<f64>> = (0..tokens).into_par_iter().map(|token| matrix.mixed(token)).collect();
        for (token, row) in rows.iter().enumerate() {
            let place = match by_head {
                true => (sample * heads + head) * tokens + token,
                false => (sample * tokens + token) * heads + head,
            };
            mixed[place * channels..][..channels].copy_from_slice(row);
        }
    }
    mixed
}

/// What the matrices leave unexplained of some tokens in one sample, ‖Σ_j M_ij x_j + r_i − y_i‖ / ‖y‖, and the share ‖r‖ / ‖y‖ of
/// the learned first state.
pub fn residual(mixing: &Mixing<Array>, sample: usize, chosen: &[usize]) -> [f64; 2] {
    let [_, tokens, heads, channels] = sizes(&mixing.kernel);
    let by_head = matches!(mixing.kernel, Kernel::Attention { .. });
    let mut sums = [0.0; 3];
    for head in 0..heads {
        let matrix = Head::of(&mixing.kernel, sample, head);
        let parts: Vec<[f64; 3]> = chosen
            .par_iter()
            .map(|token| {
                let place = match by_head {
                    true => (sample * heads + head) * tokens + token,
                    false => (sample * tokens + token) * heads + head,
                };
                let y = &mixing.mixed.values[place * channels..][..channels];
                let squares = |values: &mut dyn Iterator<Item = f64>| values.map(|value| value * value).sum::<f64>();
                let found = matrix.mixed(*token);
                [
                    squares(&mut found.iter().zip(y).map(|(found, y)| found - y)),
                    squares(&mut matrix.remainder(*token).into_iter()),
                    squares(&mut y.iter().copied()),
                ]
            })
            .collect();
        parts.iter().for_each(|part| sums.iter_mut().zip(part).for_each(|(sum, part)| *sum += part));
    }
    let ratio = |sum: f64| if sum == 0.0 { 0.0 } else { (sum / sums[2]).sqrt() };
    [ratio(sums[0]), ratio(sums[1])]
}
