//! Memberships: how points are divided into chunks, and which kernels fit the shared memory; see `membership.cu` and the files
//! `membership_*.cu`.

use super::{Action, Argument, Family, Lowering, constants, is_vector};
use crate::compile::plan::{MembershipGradient, Place};
use crate::ops::membership::MembershipShape;

/// Threads of the kernels on tensor cores.
const THREADS: usize = 128;

/// Extents, rounded up as the kernels do.
struct Sizes {
    slices: usize,
    channels: usize,
    width: usize,
}

impl Sizes {
    fn new(shape: &MembershipShape) -> Sizes {
        let [slices, channels, width] = [shape.slices, shape.channels, shape.width].map(|n| n.next_multiple_of(16));
        Sizes { slices, channels, width }
    }

    /// Blocks per multiprocessor that the registers of a collection allow: two if its sums take all 255 registers of a thread.
    fn collecting_blocks(&self) -> usize {
        if self.slices * self.channels.max(self.width) <= 1024 { 4 } else { 2 }
    }

    /// Floats of keys and offsets.
    fn keys(&self) -> usize {
        self.slices * (self.channels + 1)
    }

    /// Floats of the sums of a block: `columns` and one more per slice.
    fn sums(&self, columns: usize) -> usize {
        self.slices * (columns + 1)
    }

    /// Bytes of shared memory of `membership_spread`.
    fn spread_shared(&self) -> usize {
        4 * (self.keys() + self.width * (self.slices + 8))
    }

    fn collect_shared(&self) -> usize {
        4 * (self.keys() + THREADS / 32 * self.sums(self.width))
    }

    fn gradient_shared(&self, pairs: usize, spreads: bool) -> usize {
        let warp = (16 * (self.slices + 8 + self.channels + 8)).max(self.sums(self.channels));
        let tokens = self.slices * (pairs * self.width + 1);
        let columns = (self.channels + usize::from(spreads) * self.width) * (self.slices + 8);
        4 * (self.keys() + tokens + columns + THREADS / 32 * warp)
    }
}

impl Lowering<'_> {
    /// Blocks per multiprocessor that registers and shared memory allow.
    fn resident(&self, by_registers: usize, shared: usize) -> usize {
        by_registers.min(self.shared / (shared + 1024)).max(1)
    }

    /// Constants, and offsets of queries, keys, offsets and of `places` by name.
    fn membership_text(
        &self,
        shape: &MembershipShape,
        chunks: usize,
        [queries, keys, offsets]: &[Place; 3],
        places: &[(&str, &Place)],
    ) -> String {
        let mut text = constants(&[
            ("BATCH", shape.batch),
            ("POINTS", shape.points),
            ("HEADS", shape.heads),
            ("SLICES", shape.slices),
            ("CHANNELS", shape.channels),
            ("WIDTH", shape.width),
            ("CHUNKS", chunks),
            ("PRECISION", usize::from(self.number())),
            ("QUERIES_4", usize::from(is_vector(queries))),
        ]);
        let membership = [("queries", queries), ("keys", keys), ("offsets", offsets)];
        for (name, place) in membership.iter().chain(places) {
            text.push_str(&self.offset(name, place));
        }
        for (name, place) in places {
            let constant = match *name {
                "values" => "VALUES_4",
                "more_values" => "MORE_VALUES_4",
                "result" | "query_gradient" => "RESULT_4",
                "value_gradient" => "VALUE_GRADIENT_4",
                _ => continue,
            };
            text.push_str(&constants(&[(constant, usize::from(is_vector(place)))]));
        }
        text
    }

    /// Sets the last launch to blocks of [`THREADS`] threads, `resident` of them per multiprocessor.
    fn with_few_threads(&mut self, resident: usize) {
        if let Some(Action::Launch(kernel)) = self.actions.last_mut() {
            kernel.block = THREADS as u32;
            kernel.resident = resident as u32;
        }
    }

    pub(super) fn collect(&mut self, shape: &MembershipShape, membership: &[Place; 3], values: &Place, to: &Place) {
        let sizes = Sizes::new(shape);
        let resident = self.resident(sizes.collecting_blocks(), sizes.collect_shared());
        let chunks = chunks(shape, resident);
        let text = self.membership_text(shape, chunks, membership, &[("values", values), ("result", to)]);
        if sizes.collect_shared() > self.shared {
            let inputs = plain(membership, [[values, values]; 2]);
            return self.plain_membership(
                shape,
                &text,
                inputs,
                false,
                None,
                Some((Argument::of(to), Argument::of(to))),
            );
        }
        let blocks = shape.batch * shape.heads * chunks;
        let scratch = blocks * sizes.sums(sizes.width);
        let mut arguments = inputs(membership);
        arguments.extend([("const float*", Argument::of(values)), ("float*", Argument::Scratch(0))]);
        let shared = sizes.collect_shared();
        self.launch(Family::Membership, "membership_collect", &text, blocks, shared, arguments, scratch);
        self.with_few_threads(resident);
        let arguments = vec![("const float*", Argument::Scratch(0)), ("float*", Argument::of(to))];
        let blocks = shape.tokens(true).count().div_ceil(256);
        self.launch(Family::Membership, "sum_collected", &text, blocks, 0, arguments, scratch);
    }

    pub(super) fn spread(&mut self, shape: &MembershipShape, membership: &[Place; 3], tokens: &Place, to: &Place) {
        let sizes = Sizes::new(shape);
        let resident = self.resident(5, sizes.spread_shared());
        let chunks = chunks(shape, resident);
        let text = self.membership_text(shape, chunks, membership, &[("tokens", tokens), ("result", to)]);
        if sizes.spread_shared() > self.shared {
            let inputs = plain(membership, [[tokens, tokens]; 2]);
            return self.plain_membership(shape, &text, inputs, false, Some(Argument::of(to)), None);
        }
        let mut arguments = inputs(membership);
        arguments.extend([("const float*", Argument::of(tokens)), ("float*", Argument::of(to))]);
        let (blocks, shared) = (shape.batch * shape.heads * chunks, sizes.spread_shared());
        self.launch(Family::Membership, "membership_spread", &text, blocks, shared, arguments, 0);
        self.with_few_threads(resident);
    }

    pub(super) fn membership_gradient(&mut self, step: &MembershipGradient) {
        let MembershipGradient { shape, membership, collection, spread, to, values: value_gradient } = step;
        let ([queries, keys, offsets], value_gradient) = (to, value_gradient.as_ref());
        let uses: Vec<&[Place; 2]> = [collection, spread].into_iter().flatten().collect();
        // What a single use lacks is there once more and not read.
        let [values, tokens] = uses[0];
        let [more_values, more_tokens] = uses[uses.len() - 1];
        let places = [
            ("values", values),
            ("tokens", tokens),
            ("more_values", more_values),
            ("more_tokens", more_tokens),
            ("query_gradient", queries),
            ("key_gradient", keys),
            ("offset_gradient", offsets),
            ("value_gradient", value_gradient.unwrap_or(queries)),
        ];
        let sizes = Sizes::new(shape);
        let required = sizes.gradient_shared(uses.len(), value_gradient.is_some());
        let resident = self.resident(2, required); // with three, the registers of a thread spill
        let chunks = chunks(shape, resident);
        let mut text = self.membership_text(shape, chunks, membership, &places);
        let flags = [usize::from(collection.is_some()), uses.len(), usize::from(value_gradient.is_some())];
        text.push_str(&constants(&[("MASS", flags[0]), ("PAIRS", flags[1]), ("SPREADS", flags[2])]));
        if required > self.shared {
            if let Some(to) = value_gradient {
                self.spread(shape, membership, tokens, to);
            }
            let inputs = plain(membership, [[values, tokens], [more_values, more_tokens]]);
            let on_slices = Some((Argument::of(keys), Argument::of(offsets)));
            return self.plain_membership(shape, &text, inputs, true, Some(Argument::of(queries)), on_slices);
        }
        let blocks = shape.batch * shape.heads * chunks;
        let scratch = blocks * sizes.sums(sizes.channels);
        let mut arguments = plain(membership, [[values, tokens], [more_values, more_tokens]]);
        arguments.extend([
            ("float*", Argument::of(queries)),
            ("float*", Argument::of(value_gradient.unwrap_or(queries))),
            ("float*", Argument::Scratch(0)),
        ]);
        self.launch(Family::Membership, "membership_gradient", &text, blocks, required, arguments, scratch);
        self.with_few_threads(resident);
        let arguments = vec![
            ("const float*", Argument::Scratch(0)),
            ("float*", Argument::of(keys)),
            ("float*", Argument::of(offsets)),
        ];
        let blocks = (shape.heads * shape.slices * (shape.channels + 1)).div_ceil(256);
        self.launch(Family::Membership, "sum_membership_gradient", &text, blocks, 0, arguments, scratch);
    }

    /// Kernels without tensor cores for extents that do not fit the shared memory: results on points, on slices, or both.
    fn plain_membership(
        &mut self,
        shape: &MembershipShape,
        text: &str,
        inputs: Vec<(&'static str, Argument)>,
        gradient: bool,
        on_points: Option<Argument>,
        on_slices: Option<(Argument, Argument)>,
    ) {
        let rows = shape.batch * shape.points * shape.heads;
        let (scratch, stats) = (3 * rows, Argument::Scratch(0));
        // The source refers to the offsets of all operands and results, also of those that this launch does not have.
        let mut text = text.to_owned();
        if !gradient {
            text.push_str(&constants(&[("MASS", 0), ("PAIRS", 1)]));
        }
        let fields =
            ["values", "tokens", "more_values", "more_tokens", "result", "query_gradient"].map(|name| (name, 4));
        for (name, rank) in fields.into_iter().chain([("key_gradient", 3), ("offset_gradient", 2)]) {
            if !text.contains(&format!(" {name}(")) {
                text.push_str(&super::offset(name, &vec![0; rank], false));
            }
        }
        let mut arguments = inputs.clone();
        arguments.push(("float*", stats.clone()));
        let name = |kernel: &str| format!("{kernel}<S, {gradient}>");
        let blocks = rows.div_ceil(256);
        self.launch(Family::Membership, &name("membership_stats"), &text, blocks, 0, arguments, scratch);
        let width = if gradient { shape.channels } else { shape.width };
        if let Some(to) = on_points {
            let mut arguments = inputs.clone();
            arguments.extend([("const float*", stats.clone()), ("float*", to)]);
            let blocks = (rows * width).div_ceil(256);
            self.launch(Family::Membership, &name("membership_plain_points"), &text, blocks, 0, arguments, scratch);
        }
        if let Some((to, offsets)) = on_slices {
            let mut arguments = inputs;
            arguments.extend([("const float*", stats), ("float*", to), ("float*", offsets)]);
            let blocks = shape.heads * shape.slices * (width + 1) * if gradient { 1 } else { shape.batch };
            self.launch(Family::Membership, &name("membership_plain_slices"), &text, blocks, 0, arguments, scratch);
        }
    }
}

/// Chunks of points per batch entry and head: about as many blocks as a large GPU runs at once (132 multiprocessors), and enough
/// points for the warps of each block.
fn chunks(shape: &MembershipShape, resident: usize) -> usize {
    (132 * resident / (shape.batch * shape.heads)).clamp(1, shape.points.div_ceil(THREADS / 2))
}

fn inputs(membership: &[Place; 3]) -> Vec<(&'static str, Argument)> {
    membership.iter().map(|place| ("const float*", Argument::of(place))).collect()
}

fn plain(membership: &[Place; 3], pairs: [[&Place; 2]; 2]) -> Vec<(&'static str, Argument)> {
    let mut list = inputs(membership);
    list.extend(pairs.as_flattened().iter().map(|place| ("const float*", Argument::of(place))));
    list
}
