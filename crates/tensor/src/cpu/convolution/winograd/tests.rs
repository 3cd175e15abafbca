//! Claims about Winograd's filtering, against the f64 sum and against the direct sum in f32.

use super::super::tests::{Array, Case, LAYOUTS, Layout, Random, check, sums};
use super::super::{dense, flip_weight};
use super::transform::{filter, result, source};
use super::*;
use crate::cpu::simd::Fused;

/// All three results by filtering, whatever [`suits`] says.
fn filtered(shape: &ConvolutionShape, mut case: Case) -> Case {
    let (input, weight, dy) = (case.input.source(), case.weight.source(), case.output_gradient.source());
    let turned = dense::by_output(shape, flip_weight(weight, shape.kernel));
    let mut scratch = vec![f32::NAN; partials(shape)];
    // SAFETY: the arrays have the sizes of the shape and overlap nothing.
    unsafe {
        correlate(&Geometry::forward(shape), input, &dense::by_input(shape, weight), case.output.target());
        correlate(&Geometry::backward(shape).flipped(), dy, &turned, case.input_gradient.target());
        weight_gradient(shape, input, dy, case.weight_gradient.target(), &mut scratch);
    }
    case
}

/// All three results by the direct sum.
fn direct(shape: &ConvolutionShape, mut case: Case) -> Case {
    let (input, weight, dy) = (case.input.source(), case.weight.source(), case.output_gradient.source());
    let turned = dense::by_output(shape, flip_weight(weight, shape.kernel));
    let mut scratch = vec![f32::NAN; dense::partials(shape).max(9 * shape.out_channels * shape.in_width())];
    // SAFETY: the arrays have the sizes of the shape and overlap nothing.
    unsafe {
        let kernel = dense::by_input(shape, weight);
        dense::correlate(&Geometry::forward(shape), input, &kernel, case.output.target(), &mut scratch);
        let geometry = Geometry::backward(shape).flipped();
        dense::correlate(&geometry, dy, &turned, case.input_gradient.target(), &mut scratch);
        dense::weight_gradient(shape, input, dy, case.weight_gradient.target(), &mut scratch);
    }
    case
}

/// |L|, where `line` is L.
fn magnitudes<const FROM: usize, const TO: usize>(line: fn([f32; FROM]) -> [f32; TO]) -> [[f64; FROM]; TO] {
    let mut matrix = [[0.0; FROM]; TO];
    for column in 0..FROM {
        let mut unit = [0.0; FROM];
        unit[column] = 1.0;
        for (row, value) in line(unit).into_iter().enumerate() {
            matrix[row][column] = f64::from(value).abs();
        }
    }
    matrix
}

fn transposed<const FROM: usize, const TO: usize>(matrix: [[f64; FROM]; TO]) -> [[f64; TO]; FROM] {
    std::array::from_fn(|row| std::array::from_fn(|column| matrix[column][row]))
}

/// L w Lᵀ.
fn both_axes<const FROM: usize, const TO: usize>(
    matrix: &[[f64; FROM]; TO],
    window: impl Fn(usize, usize) -> f64,
) -> [[f64; TO]; TO] {
    let half: [[f64; FROM]; TO] = std::array::from_fn(|row| {
        std::array::from_fn(|column| (0..FROM).map(|k| matrix[row][k] * window(k, column)).sum())
    });
    std::array::from_fn(|row| std::array::from_fn(|column| (0..FROM).map(|k| matrix[column][k] * half[row][k]).sum()))
}

/// Roundings of a value on its way through all transforms: at most 3 of a source, 4 of a filter with its rounded constant and
/// 4 of a result, along two axes, and one for the result of the test.
const ROUNDINGS: usize = 2 * (3 + 4 + 4) + 1;

/// How far the three results may be from the exact ones: the sum of n products passes n roundings, and each product the
/// [`ROUNDINGS`] of the transforms. Each rounding adds at most ε/2 of the sum of the magnitudes, which is the same
/// filtering with all numbers replaced by their magnitudes. ε in place of ε/2 covers terms of second order.
pub(in super::super) fn tolerances(shape: &ConvolutionShape, case: &Case) -> [Vec<f64>; 3] {
    let padding = [shape.padding[0][0] as isize, shape.padding[1][0] as isize];
    let [inputs, outputs] = [shape.in_width(), shape.out_width()];
    let w = &case.weight;
    let forward = |group, k, n, u, v| w.at([group * outputs + n, k, u, v]);
    let turned = |group, k, n, u, v| w.at([group * outputs + k, n, 2 - u, 2 - v]);
    let (x, dy) = (Image(&case.input, padding.map(|p| -p)), Image(&case.output_gradient, padding.map(|p| p - 2)));
    [
        of_correlation(&x, [shape.groups, inputs, outputs], forward, &case.output),
        of_correlation(&dy, [shape.groups, outputs, inputs], turned, &case.input_gradient),
        of_weight_gradient(shape, &x, &Image(&case.output_gradient, [0; 2])),
    ]
}

/// An image and the distance from a tile to its window.
struct Image<'a>(&'a Array, [isize; 2]);

impl Image<'_> {
    /// Magnitudes in the window of the tile whose first pixel is `corner`.
    fn window(&self, [batch, row, column]: [usize; 3], channel: usize) -> impl Fn(usize, usize) -> f64 {
        move |i, j| {
            let [row, column] = [row + i, column + j].map(|place| place as isize);
            let [row, column] = [row + self.1[0], column + self.1[1]];
            let inside = row >= 0 && column >= 0;
            let inside = inside && row < self.0.sizes[1] as isize && column < self.0.sizes[2] as isize;
            if inside { self.0.at([batch, row as usize, column as usize, channel]).abs() } else { 0.0 }
        }
    }
}

/// The first pixels of all tiles.
fn corners([batch, rows, columns, _]: [usize; 4]) -> impl Iterator<Item = [usize; 3]> {
    let steps = move |length: usize| (0..length).step_by(SIDE);
    (0..batch).flat_map(move |b| steps(rows).flat_map(move |i| steps(columns).map(move |j| [b, i, j])))
}

/// a ⊙ b added to the sum.
fn add_products(sum: &mut [[f64; 6]; 6], a: &[[f64; 6]; 6], b: &[[f64; 6]; 6]) {
    for (sum, (a, b)) in sum.as_flattened_mut().iter_mut().zip(a.as_flattened().iter().zip(b.as_flattened())) {
        *sum += a * b;
    }
}

fn of_correlation(
    image: &Image<'_>,
    [groups, reduced, produced]: [usize; 3],
    weight: impl Fn(usize, usize, usize, usize, usize) -> f64,
    target: &Array,
) -> Vec<f64> {
    let (sources, taps) = (magnitudes(source::<Fused>), magnitudes(filter::<Fused>));
    let results = magnitudes(result::<Fused>);
    let mut bounds = Array::new(target.sizes, Layout::Plain, || 0.0).indices().map(|_| 0.0).collect::<Vec<f64>>();
    let [_, rows, columns, channels] = target.sizes;
    for group in 0..groups {
        let filters: Vec<_> = (0..reduced * produced)
            .map(|pair| both_axes(&taps, |u, v| weight(group, pair / produced, pair % produced, u, v).abs()))
            .collect();
        for corner in corners(target.sizes) {
            let values = |k| both_axes(&sources, image.window(corner, group * reduced + k));
            let values: Vec<_> = (0..reduced).map(values).collect();
            for n in 0..produced {
                let mut sum = [[0.0; 6]; 6];
                (0..reduced).for_each(|k| add_products(&mut sum, &filters[k * produced + n], &values[k]));
                let tile = both_axes(&results, |i, j| sum[i][j]);
                let [batch, row, column] = corner;
                for (i, j) in
                    (0..SIDE.min(rows - row)).flat_map(|i| (0..SIDE.min(columns - column)).map(move |j| (i, j)))
                {
                    let place = ((batch * rows + row + i) * columns + column + j) * channels + group * produced + n;
                    bounds[place] = (reduced + ROUNDINGS) as f64 * f64::from(f32::EPSILON) * tile[i][j];
                }
            }
        }
    }
    bounds
}

fn of_weight_gradient(shape: &ConvolutionShape, x: &Image<'_>, dy: &Image<'_>) -> Vec<f64> {
    let (sources, gradients) = (magnitudes(source::<Fused>), transposed(magnitudes(result::<Fused>)));
    let taps = transposed(magnitudes(filter::<Fused>));
    let corners: Vec<_> = corners(dy.0.sizes).collect();
    let of_channel = |channel| corners.iter().map(|&at| both_axes(&sources, x.window(at, channel))).collect();
    let values: Vec<Vec<_>> = (0..shape.in_channels).map(of_channel).collect();
    let mut bounds = Vec::new();
    for output in 0..shape.out_channels {
        let of_tile = |&at: &[usize; 3]| both_axes(&gradients, dy.window(at, output));
        let gradient: Vec<_> = corners.iter().map(of_tile).collect();
        for channel in 0..shape.in_width() {
            let values = &values[output / shape.out_width() * shape.in_width() + channel];
            let mut sum = [[0.0; 6]; 6];
            values.iter().zip(&gradient).for_each(|(value, gradient)| add_products(&mut sum, value, gradient));
            let filter = both_axes(&taps, |i, j| sum[i][j]);
            let scale = (corners.len() + ROUNDINGS) as f64 * f64::from(f32::EPSILON);
            bounds.extend(filter.as_flattened().iter().map(|magnitude| scale * magnitude));
        }
    }
    bounds
}

fn plane(batch: usize, [rows, columns]: [usize; 2], [in_channels, out_channels]: [usize; 2]) -> ConvolutionShape {
    let padding = [[1, 1], [1, 1]];
    ConvolutionShape {
        batch,
        rows,
        columns,
        in_channels,
        out_channels,
        groups: 1,
        kernel: [3, 3],
        stride: [1, 1],
        padding,
    }
}

fn random_shape(random: &mut Random) -> ConvolutionShape {
    loop {
        let lengths = [0, 1].map(|_| random.pick(&[1, 2, 3, 4, 5, 7, 8, 9, 13]));
        let groups = random.pick(&[1, 1, 1, 2, 3]);
        let channels = [0, 1].map(|_| groups * random.pick(&[1, 2, 3, 16, 17, 33, 70, 130]));
        let padding = [0, 1].map(|_| [0, 1].map(|_| random.pick(&[0, 1, 1, 2, 5])));
        let shape = ConvolutionShape { groups, padding, ..plane(random.pick(&[1, 2, 3]), lengths, channels) };
        let fits = (0..2).all(|axis| lengths[axis] + padding[axis][0] + padding[axis][1] >= 3);
        if fits && shape.batch * lengths[0] * lengths[1] * channels[0] * channels[1] / groups < 100_000 {
            return shape;
        }
    }
}

#[test]
fn all_three_results_equal_the_sum_that_defines_them_for_any_shape_and_strides() {
    let mut random = Random(11);
    for turn in 0..300 {
        let shape = random_shape(&mut random);
        let layouts = [(); 6].map(|()| if turn % 2 == 0 { Layout::Plain } else { random.pick(&LAYOUTS) });
        let case = filtered(&shape, Case::new(&shape, layouts, &mut random));
        let expected = sums(&shape, &case).map(|(sum, _)| sum);
        check(&shape, &case, &expected, &tolerances(&shape, &case));
    }
}

/// Root of the mean square of found − expected.
fn error(found: &Array, expected: &[f64]) -> f64 {
    let squares = found.indices().zip(expected).map(|(index, expected)| (found.at(index) - expected).powi(2));
    (squares.sum::<f64>() / expected.len() as f64).sqrt()
}

#[test]
fn the_error_is_at_most_four_times_that_of_the_direct_sum() {
    for channels in [16, 64, 192] {
        let shape = plane(2, [16, 15], [channels, 32]);
        let case = || {
            let mut case = Case::new(&shape, [Layout::Plain; 6], &mut Random(12));
            case.input.memory.iter_mut().for_each(|value| *value = value.max(0.0)); // as after max(0, x)
            case
        };
        let (filtered, direct) = (filtered(&shape, case()), direct(&shape, case()));
        let expected = sums(&shape, &direct);
        for (((name, filtered), (_, direct)), (expected, _)) in
            filtered.results().into_iter().zip(direct.results()).zip(expected)
        {
            let ratio = error(filtered, &expected) / error(direct, &expected);
            assert!(ratio <= 4.0, "{name} of {channels} channels: {ratio} times the error of the direct sum");
        }
    }
}

#[test]
fn a_sample_has_the_same_bits_alone_and_in_a_batch() {
    for (lengths, channels) in [([4, 4], [16, 16]), ([9, 14], [72, 140]), ([25, 28], [130, 40])] {
        let shape = plane(3, lengths, channels);
        let together = filtered(&shape, Case::new(&shape, [Layout::Plain; 6], &mut Random(13)));
        for sample in 0..3 {
            let single = plane(1, lengths, channels);
            assert_eq!(suits(&shape), suits(&single), "{shape:?}");
            let mut case = Case::new(&single, [Layout::Plain; 6], &mut Random(13));
            let operands = [(&mut case.input, &together.input), (&mut case.output_gradient, &together.output_gradient)];
            for (single, together) in operands {
                let length = single.sizes.iter().product::<usize>();
                single.memory[..length].copy_from_slice(&together.memory[sample * length..][..length]);
            }
            case.weight.memory.clone_from(&together.weight.memory);
            let alone = filtered(&single, case);
            for ((name, alone), (_, together)) in alone.results().into_iter().zip(together.results()).take(2) {
                let length = alone.bits().len();
                assert!(
                    alone.bits() == together.bits()[sample * length..][..length],
                    "{name} of sample {sample}: {shape:?}"
                );
            }
        }
    }
}

#[test]
fn the_number_of_threads_does_not_change_a_bit() {
    for shape in [plane(3, [37, 41], [72, 140]), ConvolutionShape { groups: 2, ..plane(2, [12, 12], [300, 34]) }] {
        let results = [1, 2, 16].map(|threads| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a pool");
            let case = || filtered(&shape, Case::new(&shape, [Layout::Plain; 6], &mut Random(14)));
            pool.install(case).results().map(|(_, result)| result.bits())
        });
        assert!(results[0] == results[1] && results[0] == results[2], "{shape:?}");
    }
}
