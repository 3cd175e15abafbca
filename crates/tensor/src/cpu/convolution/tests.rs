//! Claims about convolution, against the sum that defines it, in f64.

use super::*;

/// Uniform in [−1, 1).
pub(super) struct Random(pub(super) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        self.0 >> 33
    }

    pub(super) fn value(&mut self) -> f32 {
        self.next() as f32 / (1u64 << 30) as f32 - 1.0
    }

    pub(super) fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.next() as usize % choices.len()]
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Layout {
    Plain,
    /// Half of a wider buffer.
    Half,
    /// Every other channel.
    Sparse,
    /// All axes backwards.
    Flipped,
    /// Channels first in memory.
    Transposed,
}

pub(super) const LAYOUTS: [Layout; 5] =
    [Layout::Plain, Layout::Half, Layout::Sparse, Layout::Flipped, Layout::Transposed];

/// A view and the memory behind it.
pub(super) struct Array {
    pub(super) memory: Vec<f32>,
    first: usize,
    pub(super) sizes: [usize; 4],
    strides: [isize; 4],
}

impl Array {
    pub(super) fn new(sizes: [usize; 4], layout: Layout, mut fill: impl FnMut() -> f32) -> Self {
        let dense = |last: usize| {
            let [_, b, c, _] = sizes.map(|size| size as isize);
            [b * c * last as isize, c * last as isize, last as isize, 1]
        };
        let [_, b, c, d] = sizes.map(|size| size as isize);
        let (strides, first) = match layout {
            Layout::Plain => (dense(sizes[3]), 0),
            Layout::Half => (dense(2 * sizes[3] + 1), sizes[3]),
            Layout::Sparse => (dense(2 * sizes[3]).map(|stride| if stride == 1 { 2 } else { stride }), 0),
            Layout::Flipped => (dense(sizes[3]).map(|stride| -stride), sizes.iter().product::<usize>() - 1),
            Layout::Transposed => ([d * b * c, c, 1, b * c], 0),
        };
        let strides = if sizes[3] == 1 && matches!(layout, Layout::Sparse) { dense(2) } else { strides };
        let memory = (0..3 * sizes.iter().product::<usize>() + 64).map(|_| fill()).collect();
        Self { memory, first, sizes, strides }
    }

    pub(super) fn source(&self) -> Source<4> {
        Source { pointer: self.memory[self.first..].as_ptr(), strides: self.strides }
    }

    pub(super) fn target(&mut self) -> Target<4> {
        Target { pointer: self.memory.as_mut_ptr().wrapping_add(self.first), strides: self.strides }
    }

    fn position(&self, index: [usize; 4]) -> usize {
        let distance: isize = (0..4).map(|axis| index[axis] as isize * self.strides[axis]).sum();
        (self.first as isize + distance) as usize
    }

    pub(super) fn at(&self, index: [usize; 4]) -> f64 {
        f64::from(self.memory[self.position(index)])
    }

    /// All indices in order.
    pub(super) fn indices(&self) -> impl Iterator<Item = [usize; 4]> + use<> {
        let [a, b, c, d] = self.sizes;
        (0..a * b * c * d).map(move |place| [place / (b * c * d), place / (c * d) % b, place / d % c, place % d])
    }

    pub(super) fn bits(&self) -> Vec<u32> {
        self.indices().map(|index| self.memory[self.position(index)].to_bits()).collect()
    }

    fn dot(&self, other: &Self) -> f64 {
        self.indices().map(|index| self.at(index) * other.at(index)).sum()
    }
}

/// Calls `term` with the indices of y, w and x of every product of the convolution.
pub(super) fn every_product(shape: &ConvolutionShape, mut term: impl FnMut([usize; 4], [usize; 4], [usize; 4])) {
    let [before_row, before_column] = [shape.padding[0][0], shape.padding[1][0]];
    let outputs = Array::new(output_sizes(shape), Layout::Plain, || 0.0);
    for output in outputs.indices() {
        let [batch, row, column, out_channel] = output;
        let group = out_channel / (shape.out_channels / shape.groups);
        for u in 0..shape.kernel[0] {
            for v in 0..shape.kernel[1] {
                let [y, x] = [row * shape.stride[0] + u, column * shape.stride[1] + v];
                let inside = y >= before_row && y - before_row < shape.rows;
                if !inside || x < before_column || x - before_column >= shape.columns {
                    continue;
                }
                for channel in 0..shape.in_channels / shape.groups {
                    let input = [
                        batch,
                        y - before_row,
                        x - before_column,
                        group * (shape.in_channels / shape.groups) + channel,
                    ];
                    term(output, [out_channel, channel, u, v], input);
                }
            }
        }
    }
}

pub(super) fn input_sizes(shape: &ConvolutionShape) -> [usize; 4] {
    [shape.batch, shape.rows, shape.columns, shape.in_channels]
}

pub(super) fn output_sizes(shape: &ConvolutionShape) -> [usize; 4] {
    [shape.batch, shape.out_rows(), shape.out_columns(), shape.out_channels]
}

pub(super) fn weight_sizes(shape: &ConvolutionShape) -> [usize; 4] {
    [shape.out_channels, shape.in_channels / shape.groups, shape.kernel[0], shape.kernel[1]]
}

/// x, w, dy and the three results.
pub(super) struct Case {
    pub(super) input: Array,
    pub(super) weight: Array,
    pub(super) output_gradient: Array,
    pub(super) output: Array,
    pub(super) input_gradient: Array,
    pub(super) weight_gradient: Array,
}

impl Case {
    /// Random operands, and results that are not yet computed.
    pub(super) fn new(shape: &ConvolutionShape, layouts: [Layout; 6], random: &mut Random) -> Self {
        Self {
            input: Array::new(input_sizes(shape), layouts[0], || random.value()),
            weight: Array::new(weight_sizes(shape), layouts[1], || random.value()),
            output_gradient: Array::new(output_sizes(shape), layouts[2], || random.value()),
            output: Array::new(output_sizes(shape), layouts[3], || f32::NAN),
            input_gradient: Array::new(input_sizes(shape), layouts[4], || f32::NAN),
            weight_gradient: Array::new(weight_sizes(shape), layouts[5], || f32::NAN),
        }
    }

    pub(super) fn results(&self) -> [(&'static str, &Array); 3] {
        [("output", &self.output), ("input gradient", &self.input_gradient), ("weight gradient", &self.weight_gradient)]
    }
}

fn run(shape: &ConvolutionShape, layouts: [Layout; 6], random: &mut Random) -> Case {
    let mut case = Case::new(shape, layouts, random);
    let scratch = |floats: usize| vec![f32::NAN; floats];
    let (input, weight, dy) = (case.input.source(), case.weight.source(), case.output_gradient.source());
    // SAFETY: the arrays have the sizes of the shape and overlap nothing.
    unsafe {
        forward(shape, input, weight, case.output.target(), &mut scratch(forward_scratch(shape)));
        input_gradient(shape, dy, weight, case.input_gradient.target(), &mut scratch(input_gradient_scratch(shape)));
        weight_gradient(shape, input, dy, case.weight_gradient.target(), &mut scratch(weight_gradient_scratch(shape)));
    }
    case
}

/// The three results as f64 sums, and how far the sum of the same products in f32 and in any order may be from each
/// element: (terms + 2)·ε·Σ|terms|.
pub(super) fn sums(shape: &ConvolutionShape, case: &Case) -> [(Vec<f64>, Vec<f64>); 3] {
    case.results().map(|(name, result)| {
        let plain = Array::new(result.sizes, Layout::Plain, || 0.0);
        let count = result.sizes.iter().product();
        let (mut sum, mut magnitude, mut terms) = (vec![0.0; count], vec![0.0; count], vec![0; count]);
        every_product(shape, |y, w, x| {
            let (index, term) = match name {
                "output" => (y, case.weight.at(w) * case.input.at(x)),
                "input gradient" => (x, case.weight.at(w) * case.output_gradient.at(y)),
                _ => (w, case.input.at(x) * case.output_gradient.at(y)),
            };
            let place = plain.position(index);
            sum[place] += term;
            magnitude[place] += f64::abs(term);
            terms[place] += 1;
        });
        let tolerance = |(magnitude, terms)| (terms + 2) as f64 * f64::from(f32::EPSILON) * magnitude;
        (sum, magnitude.into_iter().zip(terms).map(tolerance).collect())
    })
}

/// Every element within its tolerance of the f64 sum; nothing outside the view written.
pub(super) fn check(shape: &ConvolutionShape, case: &Case, expected: &[Vec<f64>; 3], tolerances: &[Vec<f64>; 3]) {
    for (((name, result), expected), tolerances) in case.results().into_iter().zip(expected).zip(tolerances) {
        for ((index, wanted), tolerance) in result.indices().zip(expected).zip(tolerances) {
            let found = result.at(index);
            assert!((found - wanted).abs() <= *tolerance, "{name}{index:?} is {found}, not {wanted}: {shape:?}");
        }
        let written = result.memory.iter().filter(|value| !value.is_nan()).count();
        assert_eq!(written, expected.len(), "{name} wrote outside its view: {shape:?}");
    }
}

fn check_against_the_sum(shape: &ConvolutionShape, layouts: [Layout; 6], random: &mut Random) {
    let case = run(shape, layouts, random);
    let [output, input, weight] = sums(shape, &case);
    let direct = [output.1, input.1, weight.1];
    let tolerances = if winograd::suits(shape) { winograd::tests::tolerances(shape, &case) } else { direct };
    check(shape, &case, &[output.0, input.0, weight.0], &tolerances);
}

fn random_shape(random: &mut Random) -> ConvolutionShape {
    loop {
        let sizes = [1, 2, 5, 9, 17];
        let (groups, in_channels, out_channels) = match random.next() % 4 {
            0 | 1 => (1, random.pick(&[1, 3, 8, 17, 33]), random.pick(&[1, 3, 16, 17, 33])),
            2 => (2, random.pick(&[2, 6, 34]), random.pick(&[2, 4, 18])),
            _ => {
                let channels = random.pick(&[1, 2, 3, 8, 17, 33, 43]);
                (channels, channels, channels * random.pick(&[1, 1, 1, 2]))
            }
        };
        let shape = ConvolutionShape {
            batch: random.pick(&[1, 2, 3]),
            rows: random.pick(&sizes),
            columns: random.pick(&sizes),
            in_channels,
            out_channels,
            groups,
            kernel: [random.pick(&[1, 2, 3, 4, 5]), random.pick(&[1, 2, 3, 3, 4, 5])],
            stride: [random.pick(&[1, 1, 2, 3]), random.pick(&[1, 1, 2, 3])],
            padding: [0, 1].map(|_| [random.pick(&[0, 1, 2, 6]), random.pick(&[0, 1, 2, 6])]),
        };
        let padded = |axis: usize, length: usize| length + shape.padding[axis][0] + shape.padding[axis][1];
        let fits = padded(0, shape.rows) >= shape.kernel[0] && padded(1, shape.columns) >= shape.kernel[1];
        if fits && shape.batch * shape.rows * shape.columns * in_channels * out_channels / groups < 60_000 {
            return shape;
        }
    }
}

/// Shapes large enough for several panels, units and partial sums.
fn large_shapes() -> [ConvolutionShape; 4] {
    let plane = ConvolutionShape {
        batch: 2,
        rows: 19,
        columns: 23,
        in_channels: 32,
        out_channels: 32,
        groups: 1,
        kernel: [3, 3],
        stride: [1, 1],
        padding: [[1, 1], [1, 1]],
    };
    let depthwise = ConvolutionShape { in_channels: 72, out_channels: 72, groups: 72, ..plane };
    let causal = ConvolutionShape { rows: 1, columns: 300, kernel: [1, 3], padding: [[0, 0], [2, 0]], ..depthwise };
    [plane, ConvolutionShape { in_channels: 8, out_channels: 140, stride: [2, 2], ..plane }, depthwise, causal]
}

#[test]
fn all_three_results_equal_the_sum_that_defines_them() {
    let mut random = Random(1);
    for _ in 0..400 {
        let shape = random_shape(&mut random);
        let layouts = [(); 6].map(|()| random.pick(&[Layout::Plain, Layout::Plain, Layout::Half]));
        check_against_the_sum(&shape, layouts, &mut random);
    }
    for shape in large_shapes() {
        check_against_the_sum(&shape, [Layout::Plain; 6], &mut random);
        check_against_the_sum(&shape, [Layout::Half; 6], &mut random);
    }
}

#[test]
fn sources_and_targets_may_have_any_strides() {
    let mut random = Random(2);
    for _ in 0..300 {
        let shape = random_shape(&mut random);
        let layouts = [(); 6].map(|()| random.pick(&LAYOUTS));
        check_against_the_sum(&shape, layouts, &mut random);
    }
}

#[test]
fn both_gradients_are_adjoint_to_the_convolution() {
    let mut random = Random(3);
    let shapes: Vec<_> = (0..50).map(|_| random_shape(&mut random)).chain(large_shapes()).collect();
    for shape in shapes {
        let case = run(&shape, [Layout::Plain; 6], &mut random);
        let through_output = case.output_gradient.dot(&case.output);
        let through_input = case.input_gradient.dot(&case.input);
        let through_weight = case.weight_gradient.dot(&case.weight);
        let mut magnitude = 0.0;
        every_product(&shape, |y, w, x| {
            magnitude += (case.output_gradient.at(y) * case.weight.at(w) * case.input.at(x)).abs();
        });
        // The rounding errors of different sums are independent, so that their sum is far below the bound.
        let tolerance = 4.0 * f64::from(f32::EPSILON) * magnitude;
        assert!(
            (through_output - through_input).abs() <= tolerance,
            "<dy,y> {through_output} <dx,x> {through_input}: {shape:?}"
        );
        assert!(
            (through_output - through_weight).abs() <= tolerance,
            "<dy,y> {through_output} <dw,w> {through_weight}: {shape:?}"
        );
    }
}

#[test]
fn the_number_of_threads_does_not_change_a_bit() {
    for shape in large_shapes() {
        let results = [1, 2, 16].map(|threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
            let case = pool.install(|| run(&shape, [Layout::Plain; 6], &mut Random(4)));
            [case.output.bits(), case.input_gradient.bits(), case.weight_gradient.bits()]
        });
        assert!(results[0] == results[1] && results[0] == results[2], "{shape:?}");
    }
}
