//! Random graphs: random operators on random operands, compared fused, unfused and in f64.

use crate::support::{Random, compare, random, values};
use lamo_tensor::reference::Bindings;
use lamo_tensor::{ConvolutionOptions, Graph, Map, ScanInput, Span, Tensor};
use rand::Rng;

fn pick<T: Copy>(random: &mut Random, from: &[T]) -> T {
    from[random.random_range(0..from.len())]
}

/// A new tensor from the existing ones; the functions do not amplify rounding errors.
fn grow<'g>(pool: &[Tensor<'g>], random: &mut Random) -> Tensor<'g> {
    let x = pick(random, pool);
    let shape = x.shape();
    let dims = shape.dims();
    let axis = random.random_range(0..dims.len());
    match random.random_range(0..21) {
        0 | 1 => x.map(pick(random, &[Map::Sin, Map::Tanh, Map::Sigmoid, Map::Gelu, Map::Silu, Map::Cos])),
        2 | 3 => {
            let peers: Vec<_> = pool.iter().copied().filter(|y| y.shape() == shape).collect();
            let y = pick(random, &peers);
            if random.random() { x + y } else { x.tanh() * y.sin() }
        }
        4 => x * pick(random, &[0.5, -1.25]) + 0.1,
        5 => x.mean(&[axis]).broadcast_to(shape.clone()) - x * 0.5,
        6 => x.mean(&[axis]),
        7 => x.softmax(),
        8 => {
            let mut order: Vec<_> = (0..dims.len()).collect();
            order.rotate_left(axis);
            x.permute(&order)
        }
        9 => x.reshape([shape.count()]),
        10 => x.flip(axis),
        11 => {
            let mut spans: Vec<_> = dims.iter().map(|&extent| Span::all(extent)).collect();
            let length = dims[axis].div_ceil(2);
            spans[axis] = Span {
                start: 0,
                step: if length > 1 { 2.min((dims[axis] as isize - 1) / (length as isize - 1)).max(1) } else { 1 },
                length,
            };
            x.spans(&spans)
        }
        12 => {
            let rest = shape.count() / dims[axis];
            let y = x.swap(0, axis).reshape([dims[axis], rest]);
            y.transpose().matmul(y) * (1.0 / dims[axis] as f64)
        }
        13 => {
            let peers: Vec<_> = pool.iter().copied().filter(|y| y.shape() == shape).collect();
            Tensor::concatenate(&[x, pick(random, &peers) * 0.5, x.sin()], axis)
        }
        14 => x - x.max(&[axis]).detach(),
        15 => {
            let rows: Vec<u32> =
                (0..random.random_range(1..6)).map(|_| random.random_range(0..dims[axis] as u32)).collect();
            x.gather(axis, x.graph().index_table(&rows))
        }
        16 => {
            let rows: Vec<u32> = (0..dims[axis]).map(|_| random.random_range(0..4)).collect();
            x.scatter_add(axis, x.graph().index_table(&rows), 4) * 0.5
        }
        17 => convolved(x, random.random()),
        18 => scanned(x, random.random()),
        19 => x.less(x.graph().fill(0.2718, [1])).select(x * 0.5, x.sin()),
        _ => x.pad(axis, 1, 0),
    }
}

/// The tensor as an image, convolved with a kernel made from itself: depthwise, or dense to two channels.
fn convolved(x: Tensor<'_>, depthwise: bool) -> Tensor<'_> {
    let shape = x.shape();
    let channels = shape.dims()[shape.rank() - 1].min(5);
    let rows = (shape.count() / channels).min(40);
    let image = x.reshape([shape.count()]).slice(0, 0, rows * channels).reshape([1, 1, rows, channels]);
    let (outputs, inputs) = if depthwise { (channels, 1) } else { (2, channels) };
    let kernel = image.mean(&[2]).sin().broadcast_to([outputs, 1, 3, channels]).slice(3, 0, inputs);
    let options = ConvolutionOptions {
        groups: if depthwise { channels } else { 1 },
        padding: [[0, 0], [1, 1]],
        ..ConvolutionOptions::default()
    };
    image.convolve(kernel.permute(&[0, 3, 1, 2]), options) * 0.3
}

/// The tensor as the signal and the steps of a scan, along one direction or both.
fn scanned(x: Tensor<'_>, both: bool) -> Tensor<'_> {
    let shape = x.shape();
    let channels = shape.dims()[shape.rank() - 1].min(6);
    let tokens = (shape.count() / channels).min(30);
    let signal = x.reshape([shape.count()]).slice(0, 0, tokens * channels).reshape([1, tokens, 1, channels]);
    let directions = if both { 2 } else { 1 };
    let gain = signal.mean(&[3]).sigmoid().broadcast_to([1, tokens, 1, directions]).reshape([1, tokens, directions]);
    let input = ScanInput {
        signal,
        log_decay: -gain,
        gain,
        write: signal.sin() * 0.5,
        read: signal.cos() * 0.5,
        initial: None,
    };
    let forwards: Vec<u32> = (0..tokens as u32).collect();
    let backwards: Vec<u32> = (0..tokens as u32).rev().collect();
    input.scan(&[forwards, backwards][..directions]).0
}

/// A graph with outputs, including all gradients, and values for its inputs.
fn random_graph(graph: &Graph, seed: u64) -> Bindings<'static> {
    let mut random = random(seed);
    let dims = [random.random_range(1..5), random.random_range(1..6), pick(&mut random, &[1, 3, 8, 33, 70])];
    let inputs = [graph.input("x", dims), graph.input("y", dims)];
    let mut pool = inputs.to_vec();
    for _ in 0..random.random_range(3..14) {
        let next = grow(&pool, &mut random);
        if next.shape().count() <= 20_000 {
            pool.push(next);
        }
    }
    let last: Vec<_> = pool.iter().rev().take(3).copied().collect();
    let mut loss = graph.fill(0.0, []);
    for (position, tensor) in last.iter().enumerate() {
        graph.output(&format!("tensor {position}"), *tensor);
        loss = loss + tensor.sin().sum_all() * (1.0 / tensor.shape().count() as f64);
    }
    graph.output("loss", loss);
    for (name, gradient) in ["x", "y"].iter().zip(graph.gradient(loss, &inputs)) {
        if let Some(gradient) = gradient {
            graph.output(&format!("gradient {name}"), gradient);
        }
    }
    let count = dims.iter().product();
    Bindings::from([("x", values(count, -1.0, 1.0, &mut random)), ("y", values(count, -1.0, 1.0, &mut random))])
}

/// `LAMO_RANDOM_GRAPHS=20000` tests more graphs than the default.
fn how_many() -> u64 {
    // On a GPU every graph must be compiled first.
    let usual = if std::env::var_os("LAMO_TEST_DEVICE").is_some() { 60 } else { 600 };
    std::env::var("LAMO_RANDOM_GRAPHS").ok().and_then(|count| count.parse().ok()).unwrap_or(usual)
}

#[test]
fn random_graphs_give_the_same_fused_unfused_and_in_double_precision() {
    for seed in 0..how_many() {
        let graph = Graph::new();
        let bindings = random_graph(&graph, seed);
        // Fourteen operators of at most some hundred roundings each.
        compare(&format!("random graph {seed}"), &graph, &bindings, 2000);
    }
}
