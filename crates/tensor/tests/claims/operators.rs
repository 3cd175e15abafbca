//! Every operator over odd sizes, size 1, broadcasts, strided and flipped views.

use crate::cholesky;
use crate::support::{Case, case};
use lamo_tensor::{ConvolutionOptions, Map, Membership, Precision, Random, ScanInput, Span, Tensor};

/// Roundings of an elementwise function: its error of at most 4 units, the weight, the chain rule.
const MAP: usize = 16;

fn maps() -> Vec<Case> {
    let wide: &[usize] = &[3, 37];
    let mut cases = Vec::new();
    use Map::*;
    for (map, low, high) in [
        (Negate, -3.0, 3.0),
        (Absolute, 0.1, 3.0),
        (Exp, -4.0, 4.0),
        (Log, 0.2, 9.0),
        (Sqrt, 0.2, 9.0),
        (Reciprocal, 0.3, 4.0),
        (Tanh, -4.0, 4.0),
        (Erf, -3.0, 3.0),
        (Sin, -9.0, 9.0),
        (Cos, -9.0, 9.0),
        (Sigmoid, -9.0, 9.0),
        (Softplus, -9.0, 18.0),
        (SoftplusDerivative, -9.0, 9.0),
        (Gelu, -5.0, 5.0),
        (GeluDerivative, -4.0, 4.0),
        (Silu, -9.0, 9.0),
        (SiluDerivative, -9.0, 9.0),
    ] {
        cases.push(case(format!("{map:?}"), &[(wide, low, high)], MAP, move |x| x[0].map(map)));
        cases.push(case(format!("{map:?} of one"), &[(&[1], low, high)], MAP, move |x| x[0].map(map)));
    }
    let shapes: [(&[usize], &[usize]); 6] = [
        (&[4, 5], &[4, 5]),
        (&[4, 5], &[5]),
        (&[4, 1], &[1, 5]),
        (&[2, 3, 70], &[2, 3, 1]),
        (&[2, 3, 70], &[3, 1]),
        (&[1], &[2, 3000]),
    ];
    for (left, right) in shapes {
        let operands = [(left, 0.3, 2.0), (right, 2.1, 4.0)];
        let label = |name: &str| format!("{name} {left:?} {right:?}");
        let sums = MAP + 64;
        cases.push(case(label("add"), &operands, sums, |x| x[0] + x[1]));
        cases.push(case(label("subtract"), &operands, sums, |x| x[0] - x[1]));
        cases.push(case(label("multiply"), &operands, sums, |x| x[0] * x[1]));
        cases.push(case(label("divide"), &operands, sums, |x| x[0] / x[1]));
        cases.push(case(label("maximum"), &operands, sums, |x| (x[0] * 2.0).maximum(x[1])));
        cases.push(case(label("minimum"), &operands, sums, |x| (x[0] * 2.0).minimum(x[1])));
        cases.push(case(label("arctangent"), &operands, sums, |x| (x[0] * 2.0 - x[1]).arctangent(x[0] - 1.0)));
        cases
            .push(case(label("select"), &operands, sums, |x| (x[0] * 2.0).less(x[1]).select(x[0] * x[0], x[1] * x[0])));
    }
    cases.push(case("numbers on both sides", &[(wide, 0.5, 2.0)], MAP, |x| (2.0 - x[0]) * (1.0 / x[0]) / 3.0));
    for dims in [&[1][..], &[7], &[3, 37], &[2, 5, 70], &[2, 3, 4, 5]] {
        cases.push(case(format!("dropout {dims:?}"), &[(dims, 0.5, 2.0)], MAP, |x| {
            let random = Random::of(x[0].graph().constant(&[5.0, 16_777_215.0, 70_000.0, 1.0], [4]));
            x[0].dropout(0.3, &random) * x[0].dropout(0.1, &random).sin()
        }));
    }
    cases.push(case("maximum of a number", &[(wide, -3.0, 3.0)], MAP, |x| {
        let zero = x[0].graph().fill(0.0, [1]);
        zero.maximum(x[0].sin()) + zero.minimum(x[0].cos())
    }));
    cases.push(case("clamp", &[(wide, -3.0, 3.0)], MAP, |x| (x[0] * 2.0).clamp(-1.5, 1.0)));
    cases
}

fn views() -> Vec<Case> {
    let a: (&[usize], f64, f64) = (&[3, 4, 5], -2.0, 2.0);
    vec![
        case("reshape", &[a], 4, |x| x[0].reshape([5, 12]) * 2.0),
        case("reshape of a permuted tensor", &[a], 4, |x| x[0].permute(&[2, 0, 1]).reshape([15, 4]) * 2.0),
        case("permute", &[a], 4, |x| x[0].permute(&[2, 0, 1]).exp()),
        case("permute after a map", &[a], 8, |x| x[0].exp().permute(&[1, 2, 0])),
        case("strided slice", &[a], 4, |x| {
            let spans =
                [Span { start: 2, step: -2, length: 2 }, Span::range(1, 3), Span { start: 0, step: 3, length: 2 }];
            x[0].spans(&spans) * 3.0
        }),
        case("flip", &[a], 4, |x| x[0].flip(1) * x[0].flip(2)),
        case("a slice times a sum of the whole", &[a], 8, |x| x[0].slice(2, 1, 4) * x[0].sum(&[2])),
        case("split and join in another order", &[a], 8, |x| {
            let [first, second, third] = x[0].split(2, [2, 2, 1]);
            Tensor::concatenate(&[third, first.exp(), second], 2)
        }),
        case("split with a gap", &[a], 8, |x| x[0].slice(1, 0, 1) * x[0].slice(1, 3, 4)),
        case("overlapping slices", &[a], 8, |x| x[0].slice(1, 0, 3) * x[0].slice(1, 1, 4)),
        case("join with itself", &[a], 8, |x| Tensor::concatenate(&[x[0], x[0] * x[0], x[0]], 0)),
        case("join of joins", &[a], 8, |x| {
            let inner = Tensor::concatenate(&[x[0].sin(), x[0]], 1);
            Tensor::concatenate(&[inner, x[0].cos()], 1)
        }),
        case("pad", &[a], 4, |x| x[0].pad(1, 2, 1).pad(2, 0, 3) * 2.0),
        case("embed backwards with steps", &[(&[2, 3], -1.0, 1.0)], 4, |x| {
            let spans = [Span { start: 3, step: -3, length: 2 }, Span { start: 1, step: 2, length: 3 }];
            x[0].embed(&spans, [4, 7]) * 2.0
        }),
        case("gather with repeats", &[a], 8, |x| x[0].gather(1, x[0].graph().index_table(&[3, 0, 0, 2, 3])).exp()),
        case("gather in another order", &[a], 8, |x| x[0].gather(2, x[0].graph().index_table(&[3, 0, 4, 1, 2])).exp()),
        case("gather of a flipped view", &[a], 8, |x| x[0].flip(2).gather(0, x[0].graph().index_table(&[2, 1]))),
        case("scatter-add", &[a], 8, |x| x[0].scatter_add(1, x[0].graph().index_table(&[4, 1, 4, 0]), 6) * 2.0),
        case("numbers moved about", &[(&[2], -1.0, 1.0)], 8, |x| {
            let number = x[0].graph().fill(3.0, [2, 2]).pad(0, 1, 0).gather(0, x[0].graph().index_table(&[2, 0]));
            number * x[0] + Tensor::concatenate(&[x[0].reshape([1, 2]), x[0].graph().fill(1.0, [1, 2])], 0)
        }),
        case("broadcast to more axes", &[(&[4, 1], -1.0, 1.0)], 64, |x| x[0].broadcast_to([2, 3, 4, 5]).sin()),
    ]
}

fn reductions() -> Vec<Case> {
    let mut cases = Vec::new();
    // Sums of n numbers are added in lanes and strips, with fewer than log₂ n + n/1024 + 32 roundings.
    for (dims, axes) in [
        (&[5, 7][..], &[1][..]),
        (&[5, 7], &[0]),
        (&[5, 7], &[0, 1]),
        (&[1, 1], &[0]),
        (&[3, 4, 5], &[1]),
        (&[3, 4, 5], &[0, 2]),
        (&[3, 4, 5], &[1, 2]),
        (&[2, 3, 4, 5], &[1, 2]),
        (&[2, 600, 70], &[1]),
        (&[700, 130], &[0]),
        (&[3, 5000], &[1]),
        (&[3, 5000], &[0]),
        (&[40000], &[0]),
        (&[4, 60, 150], &[0]),
        (&[7, 1], &[0]),
        (&[6, 5, 1], &[1]),
    ] {
        let operands = [(dims, -1.0, 1.0)];
        let label = |name: &str| format!("{name} {dims:?} over {axes:?}");
        cases.push(case(label("sum"), &operands, 256, move |x| (x[0] * x[0]).sum(axes)));
        cases.push(case(label("mean"), &operands, 256, move |x| x[0].mean(axes) * x[0]));
        cases.push(case(label("max"), &operands, 16, move |x| x[0].max(axes)));
    }
    cases.push(case("sum of all", &[(&[3, 4], -1.0, 1.0)], 64, |x| x[0].exp().sum_all()));
    cases.push(case("mean and deviation of columns", &[(&[33, 9], -1.0, 1.0)], 256, |x| {
        let centred = x[0] - x[0].mean(&[0]);
        centred / (centred.square().mean(&[0]) + 0.1).sqrt()
    }));
    cases
}

fn rows() -> Vec<Case> {
    let mut cases = Vec::new();
    for dims in [&[4, 7][..], &[1, 1], &[2, 3, 64], &[130, 33], &[2, 2500], &[3, 2048], &[5, 1501], &[2, 8192]] {
        let row: &[usize] = &dims[dims.len() - 1..];
        let label = |name: &str| format!("{name} {dims:?}");
        let x = (dims, -2.0, 2.0);
        cases.push(case(label("softmax"), &[x], 1024, |x| x[0].softmax()));
        cases.push(case(label("lean softmax"), &[x], 1024, |x| x[0].lean_softmax()));
        cases.push(case(label("lean softmax, used twice and turned"), &[x], 1024, |x| {
            let weights = x[0].lean_softmax();
            let last = weights.shape().rank() - 1;
            weights.swap(last - 1, last).sin().swap(last - 1, last) * weights
        }));
        let affine = [x, (row, 0.5, 1.5), (row, -1.0, 1.0)];
        cases.push(case(label("layer norm"), &affine, 1024, |x| x[0].layer_norm(x[1], x[2], 1e-5)));
        cases.push(case(label("rms norm"), &affine[..2], 1024, |x| x[0].rms_norm(x[1], 1e-5)));
        cases.push(case(label("norm, gate, residual"), &affine[..2], 1024, |x| {
            x[0] + (x[0] * 3.0).rms_norm(x[1], 1e-5) * x[0].silu()
        }));
    }
    cases
}

fn products() -> Vec<Case> {
    let mut cases = Vec::new();
    for (rows, inner, columns) in
        [(1, 1, 1), (3, 5, 7), (1, 64, 33), (70, 3, 1), (97, 130, 51), (2, 2500, 3), (75, 16, 16), (37, 61, 50)]
    {
        let operands: [(&[usize], f64, f64); 2] =
            [(&[rows, inner][..], -1.0, 1.0), (&[inner, columns][..], -1.0, 1.0)].map(|o| (leak(o.0), o.1, o.2));
        let label = |name: &str| format!("{name} {rows}×{inner}×{columns}");
        let longest = rows.max(inner).max(columns) + 8;
        cases.push(case(label("matmul"), &operands, longest, |x| x[0].matmul(x[1])));
        cases.push(case(label("matmul of maps"), &operands, longest + 8, |x| {
            (x[0].sin().matmul(x[1].exp()) * 0.01).tanh()
        }));
        let turned: [(&[usize], f64, f64); 2] =
            [(&[inner, rows][..], -1.0, 1.0), (&[columns, inner][..], -1.0, 1.0)].map(|o| (leak(o.0), o.1, o.2));
        cases.push(case(label("transposed matmul"), &turned, longest, |x| x[0].transpose().matmul(x[1].transpose())));
    }
    let batched: [(&[usize], f64, f64); 2] = [(&[2, 3, 5, 4], -1.0, 1.0), (&[2, 3, 4, 6], -1.0, 1.0)];
    cases.push(case("batched matmul", &batched, 16, |x| x[0].matmul(x[1])));
    let heads: [(&[usize], f64, f64); 2] = [(&[2, 9, 3, 4], -1.0, 1.0), (&[2, 9, 3, 5], -1.0, 1.0)];
    cases.push(case("matmul per head of strided operands", &heads, 64, |x| {
        x[0].permute(&[0, 2, 3, 1]).matmul(x[1].permute(&[0, 2, 1, 3])).permute(&[0, 2, 1, 3])
    }));
    let windows: [(&[usize], f64, f64); 2] = [(&[7, 16, 3, 48], -1.0, 1.0), (&[7, 3, 16, 16], -1.0, 1.0)];
    cases.push(case("matmul per head of many small matrices", &windows, 128, |x| {
        let [query, key, value] = x[0].permute(&[0, 2, 1, 3]).split(3, [16; 3]);
        query.matmul(key.transpose()).matmul(value).matmul(x[1]).permute(&[0, 2, 1, 3])
    }));
    let shared: [(&[usize], f64, f64); 2] = [(&[2, 3, 5, 4], -1.0, 1.0), (&[4, 6], -1.0, 1.0)];
    cases.push(case("matmul with one right side", &shared, 64, |x| x[0].matmul(x[1])));
    cases.push(case("matmul with a number everywhere", &[(&[3, 4], -1.0, 1.0)], 16, |x| {
        x[0].graph().fill(0.5, [2, 3]).matmul(x[0]).matmul(x[0].graph().fill(2.0, [4, 2]))
    }));
    let flipped: [(&[usize], f64, f64); 2] = [(&[5, 4], -1.0, 1.0), (&[4, 6], -1.0, 1.0)];
    cases.push(case("matmul in f32", &batched, 16, |x| x[0].matmul_in_f32(x[1])));
    cases.push(case("matmul of flipped operands", &flipped, 16, |x| x[0].flip(0).matmul(x[1].flip(1))));
    cases
}

fn leak(dims: &[usize]) -> &'static [usize] {
    dims.to_vec().leak()
}

fn convolutions() -> Vec<Case> {
    let mut cases = Vec::new();
    for (input, weight, groups, stride, padding) in [
        ([2, 5, 7, 3], [4, 3, 3, 3], 1, [1, 1], [[1, 1], [1, 1]]),
        ([1, 6, 5, 4], [6, 2, 3, 2], 2, [2, 1], [[0, 1], [2, 0]]),
        ([2, 9, 8, 20], [20, 1, 3, 3], 20, [1, 1], [[1, 1], [1, 1]]),
        ([2, 1, 11, 6], [6, 1, 1, 3], 6, [1, 1], [[0, 0], [2, 0]]),
        ([2, 1, 11, 8], [8, 1, 1, 3], 8, [1, 1], [[0, 0], [2, 0]]),
        ([2, 6, 7, 8], [8, 1, 3, 3], 8, [1, 1], [[1, 1], [1, 1]]),
        ([2, 43, 2, 36], [36, 1, 33, 1], 36, [1, 1], [[16, 16], [0, 0]]),
        ([1, 20, 1, 5], [5, 1, 11, 1], 5, [1, 1], [[7, 1], [0, 0]]),
        ([1, 4, 4, 2], [3, 2, 1, 1], 1, [3, 2], [[0, 0], [0, 0]]),
        ([1, 1, 1, 1], [1, 1, 3, 3], 1, [1, 1], [[1, 1], [1, 1]]),
    ] {
        let options = ConvolutionOptions { groups, stride, padding };
        let operands: [(&[usize], f64, f64); 2] = [(leak(&input), -1.0, 1.0), (leak(&weight), -1.0, 1.0)];
        // An element of the weight gradient sums over all pixels of all images.
        let roundings = 64 + input[0] * input[1] * input[2];
        let label = format!("convolution {input:?} * {weight:?}");
        cases.push(case(label.clone(), &operands, roundings, move |x| x[0].convolve(x[1], options)));
        cases.push(case(format!("{label} of a flipped map"), &operands, roundings, move |x| {
            x[0].sin().flip(2).convolve(x[1], options).tanh()
        }));
    }
    cases
}

fn memberships() -> Vec<Case> {
    let mut cases = Vec::new();
    for (batch, points, heads, slices, channels, width) in [
        (2, 5, 2, 3, 2, 3),
        (1, 1, 1, 1, 1, 1),
        (1, 300, 2, 64, 16, 16),
        (2, 37, 3, 20, 12, 7),
        (1, 70, 1, 130, 40, 33),
    ] {
        let membership: [(&[usize], f64, f64); 3] = [
            (leak(&[batch, points, heads, channels]), -1.0, 1.0),
            (leak(&[heads, slices, channels]), -1.0, 1.0),
            (leak(&[heads, slices]), -1.0, 1.0),
        ];
        let with = |moved: &[usize]| [&membership[..], &[(leak(moved), -1.0, 1.0)]].concat();
        let name = |what: &str| format!("{what} of {points} points and {slices} slices");
        let roundings = 256 + 2 * points;
        cases.push(case(name("collection"), &with(&[batch, points, heads, width]), roundings, move |x| {
            Membership { queries: x[0], keys: x[1], offsets: x[2] }.collect(x[3])
        }));
        cases.push(case(name("spread"), &with(&[batch, heads, slices, width]), roundings, move |x| {
            Membership { queries: x[0], keys: x[1], offsets: x[2] }.spread(x[3])
        }));
    }
    // Queries and values are two halves of one array, tokens are permuted, and the results are joined.
    let operands: [(&[usize], f64, f64); 3] =
        [(&[2, 33, 4, 16], -1.0, 1.0), (&[4, 18, 8], -1.0, 1.0), (&[4, 18], -1.0, 1.0)];
    cases.push(case("memberships of views", &operands, 512, |x| {
        let membership = Membership { queries: x[0].slice(3, 0, 8), keys: x[1], offsets: x[2] };
        let collected = membership.collect(x[0].slice(3, 8, 16));
        let tokens = collected.slice(3, 0, 8) / (collected.slice(3, 8, 9) + 1e-5);
        let mixed = tokens.permute(&[0, 2, 1, 3]).tanh().permute(&[0, 2, 1, 3]);
        Tensor::concatenate(&[membership.spread(mixed), x[0]], 3)
    }));
    // Two collections of one width, of which the second needs what was spread before, and one of another width.
    cases.push(case("one membership used several times", &operands, 512, |x| {
        let membership = Membership { queries: x[0].slice(3, 0, 8), keys: x[1], offsets: x[2] };
        let first = membership.collect(x[0].slice(3, 8, 16)).slice(3, 0, 8);
        let again = membership.collect(membership.spread(first.tanh()).sin()).slice(3, 0, 8);
        let narrow = membership.collect(x[0].slice(3, 3, 5));
        Tensor::concatenate(&[membership.spread(again), membership.spread(narrow)], 3)
    }));
    cases
}

fn scans() -> Vec<Case> {
    let mut cases = Vec::new();
    for (batch, tokens, heads, channels, groups, states, directions, initial) in [
        (2, 7, 2, 3, 1, 4, 1, true),
        (1, 6, 2, 2, 2, 3, 2, false),
        (1, 6, 1, 4, 4, 2, 4, true),
        (1, 1, 1, 1, 1, 1, 1, false),
        (2, 19, 2, 5, 2, 1, 1, false),
    ] {
        let scan_heads = directions * heads;
        let mut operands: Vec<(&[usize], f64, f64)> = vec![
            (leak(&[batch, tokens, heads, channels]), -1.0, 1.0),
            (leak(&[batch, tokens, scan_heads]), -1.5, -0.01),
            (leak(&[batch, tokens, scan_heads]), 0.1, 1.0),
            (leak(&[batch, tokens, groups, states]), -1.0, 1.0),
            (leak(&[batch, tokens, groups, states]), -1.0, 1.0),
        ];
        if initial {
            operands.push((leak(&[batch, scan_heads, channels, states]), -1.0, 1.0));
        }
        let forward: Vec<u32> = (0..tokens as u32).collect();
        let across: Vec<u32> = forward.iter().map(|&t| if tokens == 6 { t % 2 * 3 + t / 2 } else { t }).collect();
        let reversed = |order: &[u32]| order.iter().rev().copied().collect::<Vec<_>>();
        let all = [forward.clone(), reversed(&across), reversed(&forward), across.clone()];
        let orders: Vec<Vec<u32>> = all[..directions].to_vec();
        let name = format!("scan of {tokens} tokens in {directions} directions");
        cases.push(case(name, &operands, 512, move |x| {
            let input = ScanInput {
                signal: x[0],
                log_decay: x[1],
                gain: x[2],
                write: x[3],
                read: x[4],
                initial: x.get(5).copied(),
            };
            let (output, state) = input.scan(&orders);
            if tokens == 19 {
                return state.tanh(); // the output is computed and not read
            }
            if orders.len() == 2 { output } else { output.sum_all() * 0.3 + output.tanh() + state.sum_all() * 0.1 }
        }));
    }
    cases
}

/// Sizes that have special kernels on tensor cores.
fn large() -> Vec<Case> {
    let mut cases = Vec::new();
    for (batch, tokens, heads, groups, states, directions) in
        [(1, 233, 4, 4, 64, 4), (2, 130, 8, 4, 64, 4), (1, 200, 3, 2, 32, 2), (2, 64, 4, 1, 48, 1)]
    {
        let scan_heads = directions * heads;
        let operands: [(&[usize], f64, f64); 5] = [
            (leak(&[batch, tokens, heads, 32]), -1.0, 1.0),
            (leak(&[batch, tokens, scan_heads]), -0.7, -0.001),
            (leak(&[batch, tokens, scan_heads]), 0.1, 1.0),
            (leak(&[batch, tokens, groups, states]), -1.0, 1.0),
            (leak(&[batch, tokens, groups, states]), -1.0, 1.0),
        ];
        let forwards: Vec<u32> = (0..tokens as u32).collect();
        let backwards: Vec<u32> = (0..tokens as u32).rev().collect();
        let mixed: Vec<u32> = (0..tokens).map(|l| (l * 7 % tokens) as u32).collect();
        let mixed = if tokens % 7 == 0 { forwards.clone() } else { mixed };
        let orders = [forwards, backwards, mixed.clone(), mixed.into_iter().rev().collect()];
        let name = format!("scan of {batch} × {tokens} tokens, {heads} heads, {states} states");
        cases.push(case(name, &operands, 512, move |x| {
            let [signal, log_decay, gain, write, read] = [x[0], x[1], x[2], x[3], x[4]];
            ScanInput { signal, log_decay, gain, write, read, initial: None }.scan(&orders[..directions]).0
        }));
    }
    for (batch, rows, columns, inputs, outputs) in [(2, 13, 17, 64, 128), (1, 12, 27, 128, 256), (1, 9, 40, 36, 60)] {
        let operands: [(&[usize], f64, f64); 2] =
            [(leak(&[batch, rows, columns, inputs]), -1.0, 1.0), (leak(&[outputs, inputs, 3, 3]), -1.0, 1.0)];
        let around = ConvolutionOptions { padding: [[1, 1]; 2], ..ConvolutionOptions::default() };
        let name = format!("convolution of {inputs} to {outputs} channels on {rows} × {columns}");
        cases.push(case(name, &operands, 512, move |x| x[0].convolve(x[1], around)));
    }
    let operands: [(&[usize], f64, f64); 2] = [(&[2, 11, 10, 32], -1.0, 1.0), (&[32, 1, 3, 3], -1.0, 1.0)];
    let apart = ConvolutionOptions { groups: 32, padding: [[1, 1]; 2], ..ConvolutionOptions::default() };
    cases.push(case("convolution of each channel by itself", &operands, 512, move |x| x[0].convolve(x[1], apart)));
    // So many rows that a product is a convolution with one tap; the second has a last tile that is not full.
    for (rows, inner, columns) in [(65_536, 32, 64), (65_601, 36, 20)] {
        let operands: [(&[usize], f64, f64); 2] =
            [(leak(&[rows, inner]), -1.0, 1.0), (leak(&[inner, columns]), -1.0, 1.0)];
        let name = format!("tanh of a matmul {rows}×{inner}×{columns}");
        cases.push(case(name, &operands, 512, |x| (x[0].matmul(x[1]) * 0.1).tanh()));
    }
    // The second has too many slices for the shared memory of a block.
    for (points, heads, slices, channels) in [(401, 8, 64, 16), (20, 2, 700, 80), (130, 2, 32, 32), (40, 1, 64, 48)] {
        let operands: [(&[usize], f64, f64); 4] = [
            (leak(&[2, points, heads, channels]), -1.0, 1.0),
            (leak(&[heads, slices, channels]), -1.0, 1.0),
            (leak(&[heads, slices]), -1.0, 1.0),
            (leak(&[2, points, heads, channels]), -1.0, 1.0),
        ];
        cases.push(case(format!("membership of {points} points in {slices} slices"), &operands, 512, move |x| {
            let membership = Membership { queries: x[0], keys: x[1], offsets: x[2] };
            membership.spread(membership.collect(x[3]).slice(3, 0, channels))
        }));
    }
    cases
}

/// Runs if `LAMO_TEST_KERNELS` is set; needs NVIDIA's compiler.
#[cfg(feature = "cuda")]
#[test]
fn kernels_compile_without_a_gpu() {
    if std::env::var_os("LAMO_TEST_KERNELS").is_none() {
        return;
    }
    for case in [rows(), products(), convolutions()].into_iter().flatten() {
        assert!(case.compile_kernels(Precision::Tf32) > 0);
    }
    for case in large() {
        for precision in [Precision::F32, Precision::Tf32, Precision::Bf16] {
            assert!(case.compile_kernels(precision) > 0);
        }
    }
}

/// An operand is rounded by at most 2⁻¹¹ or 2⁻⁸ of itself. A product has two operands, and the gradient of a decay is the
/// difference of two sums of products.
#[test]
fn rounded_operands_on_a_gpu_change_results_by_at_most_four_roundings() {
    let Ok(device) = std::env::var("LAMO_TEST_DEVICE") else { return };
    let device = device.parse().unwrap();
    for (seed, case) in large().into_iter().enumerate() {
        let shares = [(Precision::F32, 1e-5), (Precision::Tf32, 4.0 / 2048.0), (Precision::Bf16, 4.0 / 256.0)];
        case.is_near_reference(seed as u64, device, &shares);
    }
}

fn all() -> Vec<Case> {
    [maps(), views(), reductions(), rows(), products(), cholesky::cases(), convolutions(), memberships(), scans()]
        .into_iter()
        .flatten()
        .collect()
}

#[test]
fn every_operator_and_its_gradient_on_the_cpu_equal_the_reference() {
    for (seed, case) in all().into_iter().enumerate() {
        if !cfg!(miri) || case.elements() <= 150 {
            case.equals_reference(seed as u64); // Miri is thousands of times slower than the machine
        }
    }
}

#[test]
fn every_gradient_rule_equals_finite_differences() {
    for (seed, case) in all().into_iter().enumerate() {
        if case.elements() <= 400 {
            case.gradient_equals_differences(seed as u64);
        }
    }
}

#[test]
fn no_gradient_flows_through_a_detached_value() {
    let graph = lamo_tensor::Graph::new();
    let x = graph.input("x", [2]);
    let gradient = graph.gradient((x * x.detach()).sum_all(), &[x])[0].expect("the other factor carries it");
    let bindings = lamo_tensor::reference::Bindings::from([("x", vec![3.0, 5.0])]);
    assert_eq!(lamo_tensor::reference::evaluate(&graph, &bindings, &[gradient])[0].values, [3.0, 5.0]);
    assert!(graph.gradient(x.detach().sum_all(), &[x])[0].is_none());
}
