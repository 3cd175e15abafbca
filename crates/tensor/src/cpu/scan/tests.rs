//! The scan against its slow twin: the recurrence in f64, one step at a time, and that recurrence's exact adjoint.

use super::*;

/// SplitMix64, uniform in (−1, 1).
struct Random(u64);

impl Random {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (bits ^ (bits >> 31)) as f64 / (1u64 << 63) as f64 - 1.0
    }

    /// Values a float holds exactly, so that both twins start from the same numbers.
    fn many(&mut self, count: usize, scale: f64, shift: f64) -> Vec<f64> {
        (0..count).map(|_| f64::from((self.next() * scale + shift) as f32)).collect()
    }
}

/// x, ℓ, g, B, C, h₀ or their gradients, contiguous.
#[derive(Clone)]
struct Arrays([Vec<f64>; 6]);

const NAMES: [&str; 6] = ["signal", "log decay", "gain", "write", "read", "initial"];

/// Extents of the six arrays; ranks below four are filled with ones.
fn extents(shape: &ScanShape) -> [[usize; 4]; 6] {
    let ScanShape { batch, tokens, heads, channels, groups, states, directions } = *shape;
    let steps = [batch, tokens, directions * heads, 1];
    let grouped = [batch, tokens, groups, states];
    [[batch, tokens, heads, channels], steps, steps, grouped, grouped, [batch, directions * heads, channels, states]]
}

fn inputs(shape: &ScanShape, random: &mut Random) -> Arrays {
    let sizes = extents(shape).map(|extents| extents.iter().product::<usize>());
    let mut index = 0;
    Arrays(sizes.map(|size| {
        index += 1;
        if index == 2 { random.many(size, 0.3, -0.3) } else { random.many(size, 1.0, 0.0) }
    }))
}

/// Row-major, column-major and their reverses over a grid of `tokens / columns` rows (plain and reversed otherwise).
fn orders(shape: &ScanShape, columns: usize) -> Vec<u32> {
    let tokens = shape.tokens;
    let columns = if tokens.is_multiple_of(columns) { columns } else { 1 };
    let rows = tokens / columns;
    let mut order = Vec::new();
    for direction in 0..shape.directions {
        let mut visits: Vec<u32> = (0..tokens as u32).collect();
        if direction % 2 == 1 {
            visits = (0..tokens).map(|step| (step % rows * columns + step / rows) as u32).collect();
        }
        if direction >= 2 || columns == 1 && direction == 1 {
            visits.reverse();
        }
        order.extend(visits);
    }
    order
}

/// One scan head's step: offsets of x, of ℓ and g, and of B and C.
fn offsets(shape: &ScanShape, batch: usize, scan_head: usize, token: usize) -> [usize; 3] {
    let scan_heads = shape.directions * shape.heads;
    let row = batch * shape.tokens + token;
    let group = scan_head / (scan_heads / shape.groups);
    [
        (row * shape.heads + scan_head % shape.heads) * shape.channels,
        row * scan_heads + scan_head,
        (row * shape.groups + group) * shape.states,
    ]
}

/// The recurrence: y, the final states, and every state before its step (for the adjoint), by scan head.
fn slow_forward(shape: &ScanShape, order: &[u32], inputs: &Arrays) -> (Vec<f64>, Vec<f64>, Vec<Vec<f64>>) {
    let [signal, log_decay, gain, write, read, initial] = &inputs.0;
    let (channels, states, scan_heads) = (shape.channels, shape.states, shape.directions * shape.heads);
    let mut output = vec![0.0; signal.len()];
    let (mut last, mut history) = (Vec::new(), Vec::new());
    for (index, start) in initial.chunks(channels * states).enumerate() {
        let (batch, scan_head) = (index / scan_heads, index % scan_heads);
        let mut state = start.to_vec();
        for token in &order[scan_head / shape.heads * shape.tokens..][..shape.tokens] {
            let [x, step, group] = offsets(shape, batch, scan_head, *token as usize);
            history.push(state.clone());
            for (place, value) in state.iter_mut().enumerate() {
                let (channel, n) = (place / states, place % states);
                *value = log_decay[step].exp() * *value + gain[step] * signal[x + channel] * write[group + n];
                output[x + channel] += *value * read[group + n];
            }
        }
        last.extend(state);
    }
    (output, last, history)
}

/// The adjoint of [`slow_forward`].
fn slow_backward(shape: &ScanShape, order: &[u32], inputs: &Arrays, output: &[f64], last: &[f64]) -> Arrays {
    let [signal, log_decay, gain, write, read, initial] = &inputs.0;
    let (_, _, history) = slow_forward(shape, order, inputs);
    let mut gradients = Arrays(inputs.0.each_ref().map(|array| vec![0.0; array.len()]));
    let [d_signal, d_log_decay, d_gain, d_write, d_read, d_initial] = &mut gradients.0;
    let (size, states) = (shape.channels * shape.states, shape.states);
    let scan_heads = shape.directions * shape.heads;
    for index in 0..initial.len() / size {
        let (batch, scan_head) = (index / scan_heads, index % scan_heads);
        let mut adjoint = last[index * size..][..size].to_vec();
        let visits = &order[scan_head / shape.heads * shape.tokens..][..shape.tokens];
        for (number, token) in visits.iter().enumerate().rev() {
            let [x, step, group] = offsets(shape, batch, scan_head, *token as usize);
            let decay = log_decay[step].exp();
            let before = &history[index * shape.tokens + number];
            for (place, adjoint) in adjoint.iter_mut().enumerate() {
                let (x, n) = (x + place / states, group + place % states);
                let state = decay * before[place] + gain[step] * signal[x] * write[n];
                d_read[n] += output[x] * state;
                *adjoint += output[x] * read[n];
                d_log_decay[step] += *adjoint * decay * before[place];
                d_gain[step] += *adjoint * signal[x] * write[n];
                d_signal[x] += *adjoint * gain[step] * write[n];
                d_write[n] += *adjoint * gain[step] * signal[x];
                *adjoint *= decay;
            }
        }
        d_initial[index * size..][..size].copy_from_slice(&adjoint);
    }
    gradients
}

/// Memory with gaps between the elements: contiguous, or every axis spread and the first reversed.
struct Memory {
    floats: Vec<f32>,
    origin: usize,
    extents: [usize; 4],
    strides: [isize; 4],
}

impl Memory {
    fn new(extents: [usize; 4], spread: bool) -> Self {
        let padding = usize::from(spread);
        let mut strides = [1 + padding as isize; 4];
        for axis in (0..3).rev() {
            strides[axis] = strides[axis + 1] * (extents[axis + 1] + padding) as isize;
        }
        let size = strides[0] as usize * extents[0];
        let origin = if spread { strides[0] as usize * (extents[0] - 1) } else { 0 };
        if spread {
            strides[0] = -strides[0];
        }
        Self { floats: vec![f32::NAN; size], origin, extents, strides }
    }

    fn holding(values: &[f64], extents: [usize; 4], spread: bool) -> Self {
        let mut memory = Self::new(extents, spread);
        for (index, value) in values.iter().enumerate() {
            let place = memory.place(index);
            memory.floats[place] = *value as f32;
        }
        memory
    }

    fn place(&self, index: usize) -> usize {
        let mut rest = index;
        let mut place = self.origin as isize;
        for axis in (0..4).rev() {
            place += (rest % self.extents[axis]) as isize * self.strides[axis];
            rest /= self.extents[axis];
        }
        place as usize
    }

    fn values(&self) -> Vec<f64> {
        (0..self.extents.iter().product()).map(|index| f64::from(self.floats[self.place(index)])).collect()
    }

    fn source(&self) -> Source<4> {
        Source { pointer: self.floats[self.origin..].as_ptr(), strides: self.strides }
    }

    fn target(&mut self) -> Target<4> {
        Target { pointer: self.floats[self.origin..].as_mut_ptr(), strides: self.strides }
    }
}

fn steps_of(source: Source<4>) -> Source<3> {
    let [batch, token, head, _] = source.strides;
    Source { pointer: source.pointer, strides: [batch, token, head] }
}

fn steps_to(target: Target<4>) -> Target<3> {
    let [batch, token, head, _] = target.strides;
    Target { pointer: target.pointer, strides: [batch, token, head] }
}

/// Settings of a comparison: strides, and whether there is an initial and a final state.
#[derive(Clone, Copy, Debug)]
struct Setting {
    spread: bool,
    initial: bool,
    last: bool,
}

/// y, final state, and the six gradients by the fast path.
fn fast(shape: &ScanShape, order: &[u32], arrays: &Arrays, seeds: [&[f64]; 2], setting: Setting) -> [Vec<f64>; 8] {
    let Setting { spread, initial, last } = setting;
    let sizes = extents(shape);
    let mut held = Vec::new();
    for (array, extents) in arrays.0.iter().zip(sizes) {
        held.push(Memory::holding(array, extents, spread));
    }
    let mut found: Vec<Memory> = sizes.iter().map(|extents| Memory::new(*extents, spread)).collect();
    let (mut output, mut state) = (Memory::new(sizes[0], spread), Memory::new(sizes[5], spread));
    let scan_inputs = ScanInputs {
        signal: held[0].source(),
        log_decay: steps_of(held[1].source()),
        gain: steps_of(held[2].source()),
        write: held[3].source(),
        read: held[4].source(),
        initial: initial.then(|| held[5].source()),
    };
    let gradients = ScanGradients {
        signal: found[0].target(),
        log_decay: steps_to(found[1].target()),
        gain: steps_to(found[2].target()),
        write: found[3].target(),
        read: found[4].target(),
        initial: initial.then(|| found[5].target()),
    };
    let output_gradient = Memory::holding(seeds[0], sizes[0], spread);
    let final_gradient = Memory::holding(seeds[1], sizes[5], spread);
    let mut scratch = vec![f32::NAN; forward_scratch(shape).max(backward_scratch(shape))];
    // SAFETY: every view was made with the extents of the shape, in memory of its own.
    unsafe {
        forward(shape, order, &scan_inputs, output.target(), last.then(|| state.target()), &mut scratch);
        scratch.fill(f32::NAN);
        let final_gradient = last.then(|| final_gradient.source());
        backward(shape, order, &scan_inputs, output_gradient.source(), final_gradient, &gradients, &mut scratch);
    }
    let mut found = found.iter().map(Memory::values);
    let mut next = || found.next().unwrap_or_default();
    [output.values(), state.values(), next(), next(), next(), next(), next(), next()]
}

/// Largest difference over largest value.
fn deviation(found: &[f64], wanted: &[f64]) -> f64 {
    let largest = wanted.iter().fold(1e-30, |most: f64, value| most.max(value.abs()));
    let mut worst = 0.0;
    for (found, wanted) in found.iter().zip(wanted) {
        let difference = (found - wanted).abs();
        worst = if difference <= worst { worst } else { difference }; // NaN if any difference is NaN
    }
    worst / largest
}

fn check(shape: &ScanShape, order: &[u32], mut arrays: Arrays, setting: Setting, random: &mut Random) {
    if !setting.initial {
        arrays.0[5].fill(0.0);
    }
    let output_gradient = random.many(arrays.0[0].len(), 1.0, 0.0);
    let mut final_gradient = random.many(arrays.0[5].len(), 1.0, 0.0);
    if !setting.last {
        final_gradient.fill(0.0);
    }
    let (output, state, _) = slow_forward(shape, order, &arrays);
    let gradients = slow_backward(shape, order, &arrays, &output_gradient, &final_gradient);
    let found = fast(shape, order, &arrays, [&output_gradient, &final_gradient], setting);
    let claim = |name: &str, found: &[f64], wanted: &[f64]| {
        let deviation = deviation(found, wanted);
        assert!(deviation < 1e-5, "{name} of {shape:?}, {setting:?}: off by {deviation:.1e}");
    };
    claim("output", &found[0], &output);
    if setting.last {
        claim("final state", &found[1], &state);
    }
    for (index, name) in NAMES.iter().enumerate() {
        if index < 5 || setting.initial {
            claim(name, &found[2 + index], &gradients.0[index]);
        }
    }
}

/// `[batch, tokens, heads, channels, groups, states, directions]`
fn shape(sizes: [usize; 7]) -> ScanShape {
    let [batch, tokens, heads, channels, groups, states, directions] = sizes;
    ScanShape { batch, tokens, heads, channels, groups, states, directions }
}

const SHAPES: [[usize; 7]; 18] = [
    [1, 1, 1, 1, 1, 1, 1],
    [2, 1, 2, 3, 1, 5, 2],
    [1, 7, 4, 8, 2, 3, 1],
    [2, 16, 1, 32, 1, 16, 1],
    [1, 17, 2, 3, 4, 64, 4],
    [3, 37, 3, 1, 1, 5, 2],
    [1, 130, 4, 8, 4, 16, 4],
    [2, 37, 4, 32, 4, 64, 4],
    [1, 16, 2, 64, 2, 64, 1],
    [1, 130, 1, 3, 1, 1, 4],
    [9, 7, 2, 8, 2, 3, 2],
    [8, 17, 6, 17, 3, 33, 2],
    [1, 37, 3, 8, 2, 5, 2],
    [1, 40, 16, 3, 4, 5, 4],
    [2, 20, 16, 8, 4, 3, 4],
    [1, 64, 4, 64, 2, 64, 1],
    [12, 33, 5, 33, 1, 17, 1],
    [1, 37, 1, 48, 4, 40, 4],
];

#[test]
fn value_and_gradients_equal_the_recurrence_for_every_shape() {
    let mut random = Random(1);
    for (index, sizes) in SHAPES.into_iter().enumerate() {
        let shape = shape(sizes);
        for spread in [false, true] {
            let setting = Setting { spread, initial: (index % 2 == 0) != spread, last: (index / 2 % 2 == 0) != spread };
            let arrays = inputs(&shape, &mut random);
            check(&shape, &orders(&shape, 5), arrays, setting, &mut random);
        }
    }
}

#[test]
fn extreme_decays_stay_finite_and_accurate() {
    let mut random = Random(2);
    let shape = shape([2, 50, 2, 8, 1, 16, 2]);
    let choices = [0.0, -1e-6f32, -200.0, -1e4, -0.7, -80.0];
    for mixture in [&choices[..], &choices[..1], &choices[1..2], &choices[2..3], &choices[3..4], &choices[5..]] {
        let mut arrays = inputs(&shape, &mut random);
        for log_decay in &mut arrays.0[1] {
            let choice = (random.next().abs() * mixture.len() as f64) as usize;
            *log_decay = f64::from(mixture[choice.min(mixture.len() - 1)]);
        }
        let setting = Setting { spread: false, initial: true, last: true };
        check(&shape, &orders(&shape, 5), arrays, setting, &mut random);
    }
}

#[test]
fn bits_do_not_depend_on_the_number_of_threads() {
    let mut random = Random(3);
    for sizes in [[2, 50, 4, 8, 4, 16, 4], [1, 33, 16, 3, 4, 5, 4], [1, 64, 4, 8, 1, 8, 1]] {
        let shape = shape(sizes);
        let arrays = inputs(&shape, &mut random);
        let output_gradient = random.many(arrays.0[0].len(), 1.0, 0.0);
        let final_gradient = random.many(arrays.0[5].len(), 1.0, 0.0);
        let order = orders(&shape, 5);
        let setting = Setting { spread: false, initial: true, last: true };
        let mut results = [1, 2, 16].map(|threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
            pool.install(|| fast(&shape, &order, &arrays, [&output_gradient, &final_gradient], setting))
        });
        let alone = std::mem::take(&mut results[0]);
        for result in &results[1..] {
            let equal = |(a, b): (&f64, &f64)| a.to_bits() == b.to_bits();
            assert!(alone.iter().flatten().zip(result.iter().flatten()).all(equal), "{shape:?} depends on threads");
        }
    }
}

#[test]
fn an_initial_state_may_be_shared_by_the_batch() {
    let mut random = Random(4);
    let shape = shape([3, 20, 2, 5, 1, 7, 2]);
    let mut arrays = inputs(&shape, &mut random);
    let one = arrays.0[5].len() / 3;
    arrays.0[5].copy_within(..one, one);
    arrays.0[5].copy_within(..one, 2 * one);
    let order = orders(&shape, 5);
    let sizes = extents(&shape);
    let held: Vec<Memory> =
        arrays.0.iter().zip(sizes).map(|(array, extents)| Memory::holding(array, extents, false)).collect();
    let mut initial = held[5].source();
    initial.strides[0] = 0;
    let inputs = ScanInputs {
        signal: held[0].source(),
        log_decay: steps_of(held[1].source()),
        gain: steps_of(held[2].source()),
        write: held[3].source(),
        read: held[4].source(),
        initial: Some(initial),
    };
    let mut output = Memory::new(sizes[0], false);
    let mut scratch = vec![0.0; forward_scratch(&shape)];
    // SAFETY: every view was made with the extents of the shape, in memory of its own.
    unsafe { forward(&shape, &order, &inputs, output.target(), None, &mut scratch) };
    let (wanted, ..) = slow_forward(&shape, &order, &arrays);
    assert!(deviation(&output.values(), &wanted) < 1e-5);
}

#[test]
fn the_slow_adjoint_is_the_derivative_of_the_recurrence() {
    let mut random = Random(5);
    let shape = shape([1, 6, 2, 2, 2, 3, 2]);
    let order = orders(&shape, 3);
    let arrays = inputs(&shape, &mut random);
    let output_gradient = random.many(arrays.0[0].len(), 1.0, 0.0);
    let final_gradient = random.many(arrays.0[5].len(), 1.0, 0.0);
    let loss = |arrays: &Arrays| {
        let (output, last, _) = slow_forward(&shape, &order, arrays);
        let pairs = output.iter().zip(&output_gradient).chain(last.iter().zip(&final_gradient));
        pairs.map(|(value, weight)| value * weight).sum::<f64>()
    };
    let gradients = slow_backward(&shape, &order, &arrays, &output_gradient, &final_gradient);
    let step = 1e-5; // truncation step² ≈ 1e-10, rounding 1e-16 / step = 1e-11
    for (which, name) in NAMES.iter().enumerate() {
        for index in 0..arrays.0[which].len() {
            let shifted = |shift: f64| {
                let mut arrays = arrays.clone();
                arrays.0[which][index] += shift;
                loss(&arrays)
            };
            let slope = (shifted(step) - shifted(-step)) / (2.0 * step);
            let found = gradients.0[which][index];
            assert!((slope - found).abs() < 1e-8 * (1.0 + slope.abs()), "{name} {index}: {found} for {slope}");
        }
    }
}
