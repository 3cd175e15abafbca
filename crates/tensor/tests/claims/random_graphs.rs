//! Graphs nobody wrote: random operators on random operands, compared fused, unfused and in f64.

use crate::support::{Random, compare, random, values};
use lamo_tensor::reference::Bindings;
use lamo_tensor::{Graph, Map, Span, Tensor};
use rand::Rng;

fn pick<T: Copy>(random: &mut Random, from: &[T]) -> T {
    from[random.random_range(0..from.len())]
}

/// One more tensor from those there are; all functions are tame, so that rounding stays rounding.
fn grow<'g>(pool: &[Tensor<'g>], random: &mut Random) -> Tensor<'g> {
    let x = pick(random, pool);
    let shape = x.shape();
    let dims = shape.dims();
    let axis = random.random_range(0..dims.len());
    match random.random_range(0..16) {
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
        _ => x.pad(axis, 1, 0),
    }
}

/// A graph with its outputs, all gradients among them, and values for its inputs.
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

#[test]
fn random_graphs_give_the_same_fused_unfused_and_in_double_precision() {
    for seed in 0..600 {
        let graph = Graph::new();
        let bindings = random_graph(&graph, seed);
        // Fourteen operators of at most some hundred roundings each.
        compare(&format!("random graph {seed}"), &graph, &bindings, 2000);
    }
}
