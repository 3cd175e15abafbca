//! The state-space-dual scan in standard operators (Mamba-2, Section 6): matrix products inside chunks of tokens, and one more
//! product between chunks.
//!
//! With ℓ the logarithm of the decay, and sums over the tokens r of a chunk,
//!
//! y_t = Σ_{s≤t} exp(Σ_{s<r≤t} ℓ_r) (C_t·B_s) g_s x_s + exp(Σ_{r≤t} ℓ_r) C_t h,
//!
//! where h is the state that enters the chunk, the same sum over chunks. Each sum of logarithms is a product of ℓ with ones and
//! zeros: a difference of running sums would lose the digits of short stretches.

use super::builder::Builder;

/// Most tokens of a scan that is one chunk.
const SHORT: usize = 64;

/// Extents of a scan; scan heads are directions × heads.
pub(crate) struct Scan<'a> {
    pub(crate) tokens: usize,
    pub(crate) heads: usize,
    pub(crate) channels: usize,
    pub(crate) groups: usize,
    pub(crate) states: usize,
    pub(crate) directions: usize,
    /// `[directions, tokens]`
    pub(crate) order: &'a [u32],
}

/// Names of the operands: signal, log decay, gain, write, read, and the initial state.
pub(crate) struct Operands<'a> {
    pub(crate) signal: &'a str,
    pub(crate) log_decay: &'a str,
    pub(crate) gain: &'a str,
    pub(crate) write: &'a str,
    pub(crate) read: &'a str,
    pub(crate) initial: Option<&'a str>,
}

impl Scan<'_> {
    /// Tokens of a chunk. The products inside chunks grow with it and those between chunks shrink: about as many tokens as
    /// there are chunks take the least time.
    fn chunk(&self) -> usize {
        if self.tokens <= SHORT { self.tokens } else { self.tokens.isqrt().next_multiple_of(8).clamp(32, 128) }
    }

    fn chunks(&self) -> usize {
        self.tokens.div_ceil(self.chunk())
    }

    /// Tokens with those that fill the last chunk; they add nothing and decay nothing.
    fn padded(&self) -> usize {
        self.chunks() * self.chunk()
    }

    fn scan_heads(&self) -> usize {
        self.directions * self.heads
    }

    fn group(&self, scan_head: usize) -> usize {
        scan_head * self.groups / self.scan_heads()
    }

    /// Heads of one direction that read the same group, for every direction.
    fn heads_of_group(&self) -> usize {
        let alike = |count: &usize| {
            self.heads.is_multiple_of(*count)
                && (0..self.scan_heads()).all(|head| self.group(head) == self.group(head / count * count))
        };
        (1..=self.heads).rev().find(alike).unwrap_or(1)
    }

    fn token(&self, direction: usize, step: usize) -> usize {
        self.order[direction * self.tokens + step] as usize
    }

    /// `[-1, sets, sharing, chunks, chunk, width]` from `[batch, tokens · rows, width]`: for scan heads in turn, the row of each
    /// token in the order of its direction.
    fn sequences(
        &self,
        builder: &mut Builder,
        value: &str,
        (sets, sharing): (usize, usize),
        (rows, width): (usize, usize),
        row: impl Fn(usize) -> usize,
    ) -> String {
        let each = self.scan_heads() / (sets * sharing); // scan heads that have one sequence
        let flat = builder.reshape(value, &[-1, (self.tokens * rows) as i64, width as i64]);
        let places = (0..sets * sharing).flat_map(|sequence| {
            let head = sequence * each;
            let row = row(head);
            (0..self.tokens).map(move |step| (head, step, row))
        });
        let places: Vec<i64> =
            places.map(|(head, step, row)| (self.token(head / self.heads, step) * rows + row) as i64).collect();
        let gathered = builder.gather(&flat, 1, &places);
        let (sequences, tokens) = ((sets * sharing) as i64, self.tokens as i64);
        let split = builder.reshape(&gathered, &[-1, sequences, tokens, width as i64]);
        let padded = builder.pad(&split, 4, 2, [0, self.padded() - self.tokens]);
        let (chunks, chunk) = (self.chunks() as i64, self.chunk() as i64);
        builder.reshape(&padded, &[-1, sets as i64, sharing as i64, chunks, chunk, width as i64])
    }

    /// Writes the scan: its output `[batch, tokens, heads, channels]`, and its last state `[batch, scan heads, channels, states]`
    /// where it is wanted.
    pub(crate) fn write(&self, builder: &mut Builder, operands: &Operands<'_>, last: bool) -> (String, Option<String>) {
        let (chunk, chunks) = (self.chunk(), self.chunks());
        let sharing = self.heads_of_group();
        let sets = self.scan_heads() / sharing;
        let (heads, all, groups) = (self.heads, self.scan_heads(), self.groups);
        let (channels, states) = (self.channels, self.states);
        let signal = self.sequences(builder, operands.signal, (sets, sharing), (heads, channels), |head| head % heads);
        let log_decay = self.sequences(builder, operands.log_decay, (sets, sharing), (all, 1), |head| head);
        let gain = self.sequences(builder, operands.gain, (sets, sharing), (all, 1), |head| head);
        let write = self.sequences(builder, operands.write, (sets, 1), (groups, states), |head| self.group(head));
        let read = self.sequences(builder, operands.read, (sets, 1), (groups, states), |head| self.group(head));
        let input = builder.op("Mul", &[&signal, &gain], &[]); // [-1, sets, sharing, chunks, chunk, channels]

        // Inside a chunk.
        let until = triangle(builder, [chunk, chunk], |row, column| column <= row);
        let after = triangle(builder, [chunk, chunk], |row, column| column < row);
        let later = builder.op("Mul", &[&log_decay, &after], &[]);
        let sums = builder.op("MatMul", &[&until, &later], &[]);
        let decay = builder.op("Exp", &[&sums], &[]);
        let decay = builder.op("Mul", &[&decay, &until], &[]); // [.., t, s]
        let turned = builder.transpose(&write, &[0, 1, 2, 3, 5, 4]);
        let products = builder.op("MatMul", &[&read, &turned], &[]);
        let mixing = builder.op("Mul", &[&products, &decay], &[]);
        let mut output = builder.op("MatMul", &[&mixing, &input], &[]);
        let mut last_state = None;

        if chunks > 1 || last || operands.initial.is_some() {
            let rows = chunks + usize::from(last);
            let entering =
                self.entering(builder, operands, [&turned, &input, &decay, &log_decay], (rows, sets, sharing));
            let cell = [channels, states].map(|extent| extent as i64);
            let shape = [-1, sets as i64, sharing as i64, rows as i64, cell[1], cell[0]];
            let entering = builder.reshape(&entering, &shape);
            let states = builder.slice(&entering, 3, [0, chunks as i64, 1]);
            let since = builder.op("MatMul", &[&until, &log_decay], &[]);
            let since = builder.op("Exp", &[&since], &[]); // [.., chunk, 1]
            let kept = builder.op("MatMul", &[&read, &states], &[]);
            let kept = builder.op("Mul", &[&kept, &since], &[]);
            output = builder.op("Add", &[&output, &kept], &[]);
            if last {
                let end = builder.slice(&entering, 3, [chunks as i64, rows as i64, 1]);
                let end = builder.reshape(&end, &[-1, all as i64, cell[1], cell[0]]);
                last_state = Some(builder.transpose(&end, &[0, 1, 3, 2]));
            }
        }
        (self.back(builder, &output), last_state)
    }

    /// The states that enter chunks, `[-1, sets, sharing, rows, states · channels]`; row `chunks` is the last state.
    fn entering(
        &self,
        builder: &mut Builder,
        operands: &Operands<'_>,
        [turned, input, decay, log_decay]: [&str; 4],
        (rows, sets, sharing): (usize, usize, usize),
    ) -> String {
        let (chunk, chunks, cell) = (self.chunk(), self.chunks(), (self.states * self.channels) as i64);
        let end = builder.slice(decay, 4, [chunk as i64 - 1, chunk as i64, 1]); // from a token to the end of its chunk
        let end = builder.transpose(&end, &[0, 1, 2, 3, 5, 4]);
        let left = builder.op("Mul", &[input, &end], &[]);
        let own = builder.op("MatMul", &[turned, &left], &[]); // [.., chunks, states, channels]
        let own = builder.reshape(&own, &[-1, sets as i64, sharing as i64, chunks as i64, cell]);
        let total = builder.sum(log_decay, &[4, 5], false);
        let total = builder.reshape(&total, &[-1, sets as i64, sharing as i64, chunks as i64, 1]);
        let before = triangle(builder, [rows, chunks], |row, column| column < row);
        let after = triangle(builder, [chunks, chunks], |row, column| column < row);
        let between = builder.op("Mul", &[&total, &after], &[]);
        let between = builder.op("MatMul", &[&before, &between], &[]);
        let between = builder.op("Exp", &[&between], &[]);
        let between = builder.op("Mul", &[&between, &before], &[]);
        let sum = builder.op("MatMul", &[&between, &own], &[]);
        let Some(initial) = operands.initial else { return sum };
        let initial = builder.transpose(initial, &[0, 1, 3, 2]);
        let initial = builder.reshape(&initial, &[-1, sets as i64, sharing as i64, 1, cell]);
        let since = builder.op("MatMul", &[&before, &total], &[]);
        let since = builder.op("Exp", &[&since], &[]); // [.., rows, 1]
        let kept = builder.op("Mul", &[&initial, &since], &[]);
        builder.op("Add", &[&sum, &kept], &[])
    }

    /// Back to the order of the tokens, summed over the directions.
    fn back(&self, builder: &mut Builder, output: &str) -> String {
        let (all, tokens, padded) = (self.scan_heads(), self.tokens, self.padded());
        let mut step = vec![0; self.directions * tokens];
        for direction in 0..self.directions {
            for place in 0..tokens {
                step[direction * tokens + self.token(direction, place)] = place;
            }
        }
        let mut places = Vec::with_capacity(all * tokens);
        for direction in 0..self.directions {
            for token in 0..tokens {
                for head in 0..self.heads {
                    places.push(((direction * self.heads + head) * padded + step[direction * tokens + token]) as i64);
                }
            }
        }
        let flat = builder.reshape(output, &[-1, (all * padded) as i64, self.channels as i64]);
        let found = builder.gather(&flat, 1, &places);
        let [directions, heads, channels] = [self.directions, self.heads, self.channels].map(|extent| extent as i64);
        let found = builder.reshape(&found, &[-1, directions, tokens as i64, heads, channels]);
        builder.sum(&found, &[1], false)
    }
}

/// Ones where a claim about row and column holds, else zeros.
fn triangle(builder: &mut Builder, [rows, columns]: [usize; 2], claim: impl Fn(usize, usize) -> bool) -> String {
    let values: Vec<f32> =
        (0..rows * columns).map(|place| f32::from(claim(place / columns, place % columns))).collect();
    builder.floats(&values, &[rows, columns], None)
}
