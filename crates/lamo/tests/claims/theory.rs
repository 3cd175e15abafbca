//! The paper's theory as claims about the code.

use lamo::network::layers::{Decoder, Discretisation, Hydra, Mamba2, Selection, SliceShape, Slices, Ss2d, discretise};
use lamo::network::models;
use lamo::network::{Input, Mode, Parameters};
use lamo::task::Task;
use lamo_geometry::Grid;
use lamo_tensor::reference::{self, Bindings};
use lamo_tensor::{Graph, PARAMETERS, Program, ScanInput, Tensor};

/// Numbers without a pattern, in (−1, 1).
fn wave(count: usize, seed: f64) -> Vec<f64> {
    (0..count)
        .map(|i| f64::from(((1.7 * i as f64 + 3.1 * seed).sin() * (0.61 * i as f64 + seed).cos()) as f32))
        .collect()
}

fn single(values: &[f64]) -> Vec<f32> {
    values.iter().map(|&value| value as f32).collect()
}

/// M_{ts} = C_t (Π_{s<τ≤t} e^{ℓ_τ}) B_s g_s along the direction, zero where s comes after t.
fn kernel_matrix(order: &[usize], log_decay: &[f64], gain: &[f64], write: &[f64], read: &[f64]) -> Vec<Vec<f64>> {
    let (tokens, states) = (order.len(), write.len() / order.len());
    let mut matrix = vec![vec![0.0; tokens]; tokens];
    for (later, &t) in order.iter().enumerate() {
        for (earlier, &s) in order.iter().enumerate().take(later + 1) {
            let decay: f64 = order[earlier + 1..=later].iter().map(|&token| log_decay[token]).sum();
            let overlap: f64 = (0..states).map(|n| read[t * states + n] * write[s * states + n]).sum();
            matrix[t][s] = overlap * decay.exp() * gain[s];
        }
    }
    matrix
}

#[test]
fn the_scan_is_the_product_with_its_kernel_matrix_forwards_and_backwards() {
    let (tokens, channels, states) = (23, 4, 6);
    let values: [(&str, Vec<f64>); 5] = [
        ("x", wave(tokens * channels, 1.0)),
        ("l", wave(tokens, 2.0).iter().map(|v| -v.abs()).collect()),
        ("g", wave(tokens, 3.0).iter().map(|v| 0.1 + v.abs()).collect()),
        ("b", wave(tokens * states, 4.0)),
        ("c", wave(tokens * states, 5.0)),
    ];
    for backwards in [false, true] {
        let order: Vec<usize> = if backwards { (0..tokens).rev().collect() } else { (0..tokens).collect() };
        let graph = Graph::new();
        let scan = ScanInput {
            signal: graph.input("x", [1, tokens, 1, channels]),
            log_decay: graph.input("l", [1, tokens, 1]),
            gain: graph.input("g", [1, tokens, 1]),
            write: graph.input("b", [1, tokens, 1, states]),
            read: graph.input("c", [1, tokens, 1, states]),
            initial: None,
        };
        let (y, _) = scan.scan(&[order.iter().map(|&token| token as u32).collect()]);
        graph.output("y", y);
        let matrix = kernel_matrix(&order, &values[1].1, &values[2].1, &values[3].1, &values[4].1);
        let expected: Vec<f64> = (0..tokens * channels)
            .map(|i| (0..tokens).map(|s| matrix[i / channels][s] * values[0].1[s * channels + i % channels]).sum())
            .collect();
        let bindings: Bindings<'_> = values.iter().map(|(name, values)| (*name, values.clone())).collect();
        let exact = &reference::evaluate(&graph, &bindings, &[y])[0].values;
        let mut program = Program::compile(&graph);
        values.iter().for_each(|(name, values)| program.write(name, &single(values)));
        program.run();
        for ((exact, found), expected) in exact.iter().zip(program.read("y")).zip(&expected) {
            assert!((exact - expected).abs() < 1e-13, "f64: {exact} against {expected}");
            assert!((f64::from(*found) - expected).abs() < 1e-5, "f32: {found} against {expected}");
        }
    }
}

fn selection(directions: usize) -> Selection {
    let discretisation = Discretisation::Euler;
    Selection {
        states: 5,
        expand: 2,
        head_width: 8,
        groups: 1,
        convolution: 3,
        directions,
        scan_heads: 0,
        discretisation,
    }
}

/// e^{ΔA} is the same in both; the inputs differ by Δ²A/2, so over a fixed time the states differ by O(Δ).
#[test]
fn zero_order_hold_minus_euler_shrinks_at_first_order_in_the_step() {
    let difference = |tokens: usize| {
        let step = 1.0 / tokens as f64;
        let run = |gain: f64| {
            let graph = Graph::new();
            let constant = |value: f64| graph.fill(value, [1, tokens, 1]);
            let time: Vec<f32> = (0..tokens).map(|t| (t as f32 + 0.5) / tokens as f32).collect();
            let signal = graph.constant(&time, [1, tokens, 1, 1]).sin() + 1.0;
            let one = graph.fill(1.0, [1, tokens, 1, 1]);
            let rate = -2.0;
            let scan = ScanInput {
                signal,
                log_decay: constant(step * rate),
                gain: constant(gain),
                write: one,
                read: one,
                initial: None,
            };
            let (_, last) = scan.scan(&[(0..tokens as u32).collect()]);
            reference::evaluate(&graph, &Bindings::new(), &[last])[0].values[0]
        };
        let exact = (-2.0 * step).exp_m1() / -2.0;
        (run(exact) - run(step)).abs()
    };
    for tokens in [32, 64, 128] {
        let order = (difference(tokens) / difference(2 * tokens)).log2();
        assert!((order - 1.0).abs() < 0.1, "observed order {order:.3} at {tokens} tokens");
    }
}

#[test]
fn the_gain_of_the_zero_order_hold_keeps_its_digits_for_any_step() {
    let steps: Vec<f32> = (-30..6).map(|power| 2.0_f32.powi(power) * 1.3).collect();
    let rate = -1.7_f32;
    let graph = Graph::new();
    let step = graph.constant(&steps, [steps.len()]);
    let (log_decay, gain) = discretise(Discretisation::Zoh, step, graph.constant(&[rate], [1]));
    graph.output("log decay", log_decay);
    graph.output("gain", gain);
    graph.output("euler", discretise(Discretisation::Euler, step, graph.constant(&[rate], [1])).1);
    let mut program = Program::compile(&graph);
    program.run();
    for (position, &step) in steps.iter().enumerate() {
        let z = f64::from(step) * f64::from(rate);
        let expected = z.exp_m1() / f64::from(rate);
        let error = f64::from(program.read("gain")[position]) / expected - 1.0;
        // tanh errs by 3 units, and four operations round once each.
        assert!(error.abs() < 8.0 * f64::from(f32::EPSILON), "step {step}: off by {error:.1e}");
        assert!((f64::from(program.read("log decay")[position]) / z - 1.0).abs() < 1e-7);
        assert_eq!(program.read("euler")[position], step);
    }
}

#[test]
fn every_mixer_obeys_the_switch_between_euler_and_zero_order_hold() {
    let run = |mixer: &str, discretisation: Discretisation| {
        let graph = Graph::new();
        let parameters = Parameters::new(&graph);
        let (root, tokens) = (parameters.root(), graph.input("u", [1, 12, 16]));
        let chosen = Selection { discretisation, ..selection(2) };
        graph.output(
            "y",
            match mixer {
                "cross" => Ss2d::new(&root, 2, 16, chosen).forward(tokens, [1, 3, 4]),
                "hydra" => Hydra::new(&root, 16, chosen).forward(tokens),
                _ => Mamba2::new(&root, 16, chosen).forward(tokens),
            },
        );
        let mut program = Program::compile(&graph);
        parameters.initialise(&mut program, 3);
        program.write("u", &single(&wave(12 * 16, 1.0)));
        program.run();
        program.read("y").to_vec()
    };
    for mixer in ["cross", "hydra", "mamba2"] {
        assert_ne!(run(mixer, Discretisation::Euler), run(mixer, Discretisation::Zoh), "{mixer}");
    }
}

/// Which inputs each output of a mixer depends on: a `tokens × tokens` table from gradients.
fn influence<'g>(
    graph: &'g Graph,
    mix: impl Fn(&Parameters<'g>, Tensor<'g>) -> Tensor<'g>,
    tokens: usize,
) -> Vec<Vec<bool>> {
    let width = 16;
    let parameters = Parameters::new(graph);
    let input = graph.input("u", [1, tokens, width]);
    let y = mix(&parameters, input);
    for token in 0..tokens {
        let at_token = y.slice(1, token, token + 1).square().sum_all();
        graph.output(&token.to_string(), graph.gradient(at_token, &[input])[0].unwrap());
    }
    let mut program = Program::compile(graph);
    parameters.initialise(&mut program, 1);
    program.write("u", &single(&wave(tokens * width, 2.0)));
    program.run();
    let depends = |row: &[f32]| row.iter().any(|&slope| slope != 0.0);
    (0..tokens).map(|token| program.read(&token.to_string()).chunks(width).map(depends).collect()).collect()
}

#[test]
fn a_token_ignores_later_tokens_in_the_unidirectional_mixer_and_sees_all_tokens_in_bidirectional_mixers() {
    let tokens = 12;
    let graph = Graph::new();
    let causal = influence(&graph, |p, u| Mamba2::new(&p.root(), 16, selection(1)).forward(u), tokens);
    for (token, row) in causal.iter().enumerate() {
        for (other, &seen) in row.iter().enumerate() {
            assert_eq!(seen, other <= token, "unidirectional: token {token} and token {other}");
        }
    }
    let graphs = [Graph::new(), Graph::new(), Graph::new(), Graph::new(), Graph::new()];
    let others = [
        ("mamba2", influence(&graphs[0], |p, u| Mamba2::new(&p.root(), 16, selection(2)).forward(u), tokens)),
        ("hydra", influence(&graphs[1], |p, u| Hydra::new(&p.root(), 16, selection(2)).forward(u), tokens)),
        (
            "cross in two",
            influence(&graphs[2], |p, u| Ss2d::new(&p.root(), 2, 16, selection(2)).forward(u, [1, 3, 4]), tokens),
        ),
        (
            "cross in four",
            influence(&graphs[3], |p, u| Ss2d::new(&p.root(), 2, 16, selection(4)).forward(u, [1, 3, 4]), tokens),
        ),
        (
            "cross along a line",
            influence(&graphs[4], |p, u| Ss2d::new(&p.root(), 1, 16, selection(2)).forward(u, [1, 1, 12]), tokens),
        ),
    ];
    for (name, table) in others {
        assert!(table.iter().flatten().all(|&seen| seen), "{name}: every token sees every token");
    }
}

/// With memberships of 0 and 1 the slices are patches: a token is the mean of its patch, and a point gets its token.
#[test]
fn slices_with_one_hot_weights_are_patches() {
    let (rows, columns, side) = (4, 6, 2);
    let (points, tokens) = (rows * columns, rows * columns / (side * side));
    let width = tokens;
    let shape = SliceShape { grid: Grid::Cloud { points }, width, heads: 1, tokens };
    let graph = Graph::new();
    let parameters = Parameters::new(&graph);
    let slices = Slices::own(&parameters.root(), shape, Decoder::Tied);
    let features = graph.input("features", [1, points, width]);
    let sliced = slices.encode(features);
    graph.output("tokens", sliced.tokens);
    graph.output("points", sliced.decode(sliced.tokens));
    let mut program = Program::compile(&graph);
    let patch = |point: usize| point / columns / side * (columns / side) + point % columns / side;
    // Feature p of a point is large where the point lies in patch p; the slice maps are the identity.
    let identity: Vec<f32> = (0..width * width).map(|i| if i / width == i % width { 1.0 } else { 0.0 }).collect();
    let inputs: Vec<f32> = (0..points * width)
        .map(|i| wave(points * width, 1.0)[i] as f32 + if patch(i / width) == i % width { 200.0 } else { 0.0 })
        .collect();
    for name in ["in_project_x", "in_project_fx", "in_project_slice"] {
        program.write_parameter(&format!("{name}.weight"), &identity);
    }
    program.write_parameter("temperature", &[0.5]);
    program.write("features", &inputs);
    program.run();
    let size = (side * side) as f32;
    for token in 0..tokens {
        for channel in 0..width {
            let members = (0..points).filter(|&point| patch(point) == token);
            let sum: f32 = members.map(|point| inputs[point * width + channel]).sum();
            let expected = sum / (size + 1e-5);
            let found = program.read("tokens")[token * width + channel];
            assert!((found - expected).abs() <= 1e-4, "token {token}, channel {channel}: {found} against {expected}");
        }
    }
    for point in 0..points {
        for channel in 0..width {
            let (found, own) = (point * width + channel, patch(point) * width + channel);
            assert_eq!(program.read("points")[found], program.read("tokens")[own], "point {point}");
        }
    }
}

#[test]
fn permuting_the_points_of_a_cloud_permutes_the_output() {
    let points = 40;
    let task = Task::plain(Grid::Cloud { points }, 2, 1, 2);
    let settings = "latent = \"slices\"\nencoder = \"shared\"\nmixer = \"hydra\"\ndirections = 2\nwidth = 32\ndepth = 2\n\
                    mlp_ratio = 1\nslice_heads = 4\ntokens = 6\nhead_width = 16\ngroups = 2\nstates = 8";
    let graph = Graph::new();
    let parameters = Parameters::new(&graph);
    let model = models::find("lamo").unwrap().build(&parameters, &task, &settings.parse().unwrap()).unwrap();
    graph.output("out", model.forward(&Input::declare(&graph, &task, 1), Mode::Inference));
    let mut program = Program::compile(&graph);
    let larger: Vec<f32> = parameters.draw(4).iter().map(|value| value * 5.0).collect(); // far from a constant output
    program.write(PARAMETERS, &larger);
    let (positions, functions) = (wave(points * 2, 1.0), wave(points, 2.0));
    let order: Vec<usize> = (0..points).map(|i| (i * 17 + 5) % points).collect();
    let mut run = |order: &[usize]| {
        let moved: Vec<f64> = order.iter().flat_map(|&p| [positions[2 * p], positions[2 * p + 1]]).collect();
        program.write("positions", &single(&moved));
        program.write("functions", &order.iter().map(|&p| functions[p] as f32).collect::<Vec<_>>());
        program.run();
        program.read("out").to_vec()
    };
    let plain = run(&(0..points).collect::<Vec<_>>());
    let permuted = run(&order);
    let largest = plain.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
    for (position, &point) in order.iter().enumerate() {
        for output in 0..2 {
            let (found, expected) = (permuted[2 * position + output], plain[2 * point + output]);
            // Sums over points are taken in another order: rounding, amplified by two blocks.
            assert!((found - expected).abs() <= 1e-4 * largest, "point {point}: {found} against {expected}");
        }
    }
    let spread = plain.iter().map(|value| (value - plain[0]).abs()).fold(0.0_f32, f32::max);
    assert!(spread > 1e-2 * largest, "an output that is the same everywhere proves nothing");
}

/// Alike parameters in all directions and a convolution over one token leave the arrangement alone to tell rows from columns.
#[test]
fn a_mixer_in_four_directions_treats_rows_and_columns_of_its_square_of_tokens_alike() {
    let (side, width) = (3, 16);
    let transposed = |values: &[f32]| -> Vec<f32> {
        let token = |number: usize| (number % side) * side + number / side;
        (0..side * side).flat_map(|number| values[token(number) * width..][..width].to_vec()).collect()
    };
    let run = |mixer: &str, directions: usize, values: &[f32]| {
        let (graph, chosen) = (Graph::new(), Selection { convolution: 1, ..selection(directions) });
        let parameters = Parameters::new(&graph);
        let tokens = graph.input("u", [1, side * side, width]);
        let mixed = match mixer {
            "hydra" => Hydra::new(&parameters.root(), width, chosen).forward(tokens),
            _ => Mamba2::new(&parameters.root(), width, chosen).forward(tokens),
        };
        graph.output("y", mixed);
        let mut program = Program::compile(&graph);
        let count = program.read(PARAMETERS).len();
        program.write(PARAMETERS, &vec![0.1; count]);
        program.write("u", values);
        program.run();
        program.read("y").to_vec()
    };
    let values = single(&wave(side * side * width, 1.0));
    for mixer in ["hydra", "mamba2"] {
        let distance = |directions: usize| {
            let (plain, turned) = (run(mixer, directions, &values), run(mixer, directions, &transposed(&values)));
            let size = plain.iter().fold(0.0, |size: f32, value| size.max(value.abs()));
            let pairs = transposed(&plain).into_iter().zip(turned);
            pairs.fold(0.0, |most: f32, (one, other)| most.max((one - other).abs())) / size
        };
        assert!(distance(4) < 1e-5, "{mixer} in four directions: {:e}", distance(4));
        assert!(distance(2) > 1e-3, "{mixer} in two directions follows the rows alone: {:e}", distance(2));
    }
}
