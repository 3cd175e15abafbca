//! Reductions across the rows of a loop: each block combines its rows, and a second kernel the blocks, in order.

use super::{Generator, combine, identity};
use crate::compile::plan::Across;
use crate::cuda::kernel::{Argument, Family, Kernel};

impl Generator<'_> {
    /// Whether a reduction is complete only after all blocks.
    pub(super) fn is_partial(&self, across: &Across) -> bool {
        self.chunks > 1 || (self.tiles > 1 && across.whole_rows)
    }

    /// Floats that a block leaves in scratch memory: its sums, or the one of whole rows.
    pub(super) fn left(&self, across: &Across) -> usize {
        if across.whole_rows { 1 } else { self.lanes * self.each }
    }

    /// Floats that all blocks leave for the reductions before this one.
    pub(super) fn left_before(&self, number: usize) -> usize {
        let [outer, _, inner] = self.body.split;
        let unfinished = self.body.across[..number].iter().filter(|across| self.is_partial(across));
        unfinished.map(|across| outer * inner * self.tiles * self.chunks * self.left(across)).sum()
    }

    /// The kernel that adds the partial sums of the blocks: 32 results by 8 slots at a time, or one sum by all threads.
    pub(super) fn sum_chunks(mut self) -> Option<Kernel> {
        let [outer, _, inner] = self.body.split;
        let (lanes, each, tiles, chunks) = (self.lanes, self.each, self.tiles, self.chunks);
        let (groups, partial) = (outer * inner, lanes * each);
        let body = self.body;
        let unfinished: Vec<(usize, &Across)> =
            body.across.iter().enumerate().filter(|(_, across)| self.is_partial(across)).collect();
        if unfinished.is_empty() {
            return None;
        }
        self.argument(Argument::Scratch(0));
        self.line("__shared__ float pile[256];");
        self.line("const int lane = threadIdx.x % 32, slot = threadIdx.x / 32;");
        let mut widest = 0;
        for (turn, (number, across)) in unfinished.iter().enumerate() {
            let pointer = self.argument(Argument::of(&across.to));
            let [to_outer, to_inner, to_column] = [0, 1, 2].map(|axis| across.to.layout.strides[axis]);
            let (start, add) = (identity(across.kind), combine(across.kind, "sum", "other"));
            self.line(&format!("if (blockIdx.y == {turn}) {{"));
            self.line(&format!("float sum = {start};"));
            if across.whole_rows {
                widest = widest.max(groups);
                self.line(&format!("const int group = blockIdx.x; if (group >= {groups}) return;"));
                let (start, each) = (self.left_before(*number), tiles * chunks);
                self.line(&format!("const float* from = scratch + (size_t){start} + (size_t)group * {each};"));
                self.line(&format!("#pragma unroll 4\n  for (int b = threadIdx.x; b < {each}; b += 256) {{ const float other = from[b]; sum = {add}; }}"));
                self.line("pile[threadIdx.x] = sum; __syncthreads();");
                self.line("for (int s = 128; s; s >>= 1) { if (threadIdx.x < s) { const float other = pile[threadIdx.x + s]; sum = pile[threadIdx.x];");
                self.line(&format!("pile[threadIdx.x] = {add}; }} __syncthreads(); }}"));
                self.line(&format!(
                    "if (threadIdx.x == 0) p{pointer}[(size_t)(group / {inner}) * {to_outer}] = pile[0]; }}"
                ));
            } else {
                let items = groups * tiles * partial;
                widest = widest.max(items.div_ceil(32));
                self.line(&format!("const int item = blockIdx.x * 32 + lane; const bool live = item < {items};"));
                self.line(&format!("const int place = live ? item / {partial} : 0, t = item % {partial};"));
                let start = self.left_before(*number);
                self.line(&format!(
                    "const float* from = scratch + (size_t){start} + (size_t)place * {} + t;",
                    chunks * partial
                ));
                self.line(&format!("#pragma unroll 8\n  for (int b = slot; b < {chunks}; b += 8) {{ const float other = from[(size_t)b * {partial}]; sum = {add}; }}"));
                self.line("pile[threadIdx.x] = sum; __syncthreads();");
                self.line("if (slot || !live) return;");
                self.line(&format!(
                    "for (int s = 1; s < 8; s++) {{ const float other = pile[s * 32 + lane]; sum = {add}; }}"
                ));
                self.line(&format!("const int group = place / {tiles}, tile = place % {tiles};"));
                let column = self.column_of("(t / LANES)", "(t % LANES)").replace("LANES", &lanes.to_string());
                self.line(&format!("const int c = tile * {partial} + {column};"));
                self.line(&format!(
                    "if (c < {}) p{pointer}[(size_t)(group / {inner}) * {to_outer} + (size_t)(group % {inner}) * {to_inner} + (size_t)c * {to_column}] = sum; }}",
                    self.columns
                ));
            }
        }
        let parameters: Vec<String> = (0..self.arguments.len())
            .map(|position| if position == 0 { "const float* scratch".into() } else { format!("float* p{position}") })
            .collect();
        let scratch = self.left_before(body.across.len());
        Some(Kernel {
            family: Family::Loop,
            before: String::new(),
            text: format!("({}) {{\n{}}}\n", parameters.join(", "), self.text),
            arguments: self.arguments,
            grid: [u32::try_from(widest).unwrap_or(u32::MAX), unfinished.len() as u32, 1],
            block: 256,
            resident: 1,
            shared: 0,
            scratch,
        })
    }

    /// Adds the accumulators of a block into `pile[t]`, `t = e·lanes + lane`; those of whole rows into `pile[0]`.
    pub(super) fn combine(&mut self, number: usize, across: &Across) {
        let (lanes, each, threads) = (self.lanes, self.each, self.threads);
        let (slots, partial) = (threads / lanes, lanes * each);
        let add = combine(across.kind, "sum", "other");
        if across.whole_rows {
            self.line(&format!("{{ float sum = a{number};"));
            self.line("for (int o = 16; o; o >>= 1) { float other = __shfl_xor_sync(~0u, sum, o);");
            self.line(&format!("sum = {add}; }}"));
            self.line("if (threadIdx.x % 32 == 0) pile[threadIdx.x / 32] = sum;");
            self.line("__syncthreads();");
            self.line(&format!(
                "if (threadIdx.x == 0) for (int w = 1; w < {}; w++) {{ float other = pile[w];",
                threads / 32
            ));
            self.line(&format!("sum = {add}; }}"));
            self.line("if (threadIdx.x == 0) pile[0] = sum; }");
        } else {
            self.line(&format!(
                "#pragma unroll\n  for (int e = 0; e < {each}; e++) pile[slot * {partial} + e * {lanes} + lane] = a{number}[e];"
            ));
            self.line("__syncthreads();");
            self.line(&format!("for (int t = threadIdx.x; t < {partial}; t += {threads}) {{ float sum = pile[t];"));
            self.line(&format!(
                "for (int s = 1; s < {slots}; s++) {{ float other = pile[s * {partial} + t]; sum = {add}; }}"
            ));
            self.line("pile[t] = sum; }");
        }
        self.line("__syncthreads();");
    }

    /// Writes the sums in `pile` to the result.
    pub(super) fn deliver(&mut self, across: &Across) {
        let pointer = self.argument(Argument::of(&across.to));
        let strides = &across.to.layout.strides;
        let (outer, inner, column) = (strides[0], strides[1], strides[2]);
        if across.whole_rows {
            self.line(&format!("if (threadIdx.x == 0) p{pointer}[(size_t)outer * {outer}] = pile[0];"));
            return;
        }
        let (lanes, each, threads) = (self.lanes, self.each, self.threads);
        let partial = lanes * each;
        self.line(&format!("for (int t = threadIdx.x; t < {partial}; t += {threads}) {{"));
        self.line(&format!(
            "const int c = tile * {partial} + {};",
            self.column_of("(t / LANES)", "(t % LANES)").replace("LANES", &lanes.to_string())
        ));
        self.line(&format!(
            "if (c < {}) p{pointer}[(size_t)outer * {outer} + (size_t)inner * {inner} + (size_t)c * {column}] = pile[t]; }}",
            self.columns
        ));
    }
}
