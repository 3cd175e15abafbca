//! Random numbers by a counter: the same on every path, distributed as they should be, and held by no memory.

use lamo_tensor::reference::{self, Bindings};
use lamo_tensor::{Device, Graph, Options, Precision, Program, RANDOM_WORDS, Random, Shape};

const WORDS: [f32; RANDOM_WORDS] = [8_388_611.0, 3.0, 16_777_215.0, 40_961.0];

/// Two requests of one graph, each read as it is.
fn draw(words: [f32; RANDOM_WORDS], shape: &[usize]) -> [Vec<f32>; 2] {
    let graph = Graph::new();
    let random = Random::new(&graph, "random");
    ["first", "second"].iter().for_each(|name| graph.output(name, random.whole(shape)));
    let mut program = Program::compile(&graph);
    program.write("random", &words);
    program.run();
    ["first", "second"].map(|name| program.read(name).to_vec())
}

#[test]
fn every_path_draws_the_same_numbers() {
    let graph = Graph::new();
    let random = Random::new(&graph, "random");
    assert!(!random.is_used());
    let shapes: [&[usize]; 5] = [&[], &[1], &[5000], &[3, 1, 70], &[2, 9, 33, 4]];
    for shape in shapes {
        graph.output(&format!("{shape:?}"), random.whole(shape));
    }
    assert!(random.is_used());
    let bindings = Bindings::from([("random", WORDS.map(f64::from).to_vec())]);
    let (outputs, _) = reference::run(&graph, &bindings);
    let mut programs = vec![Program::compile(&graph), Program::compile_with(&graph, Options { fuse: false, block: 0 })];
    if let Ok(device) = std::env::var("LAMO_TEST_DEVICE") {
        let device: Device = device.parse().unwrap();
        let precisions = [Precision::F32, Precision::Tf32];
        programs.extend(precisions.map(|precision| Program::compile_on(&graph, device, precision).unwrap()));
    }
    for program in &mut programs {
        program.write("random", &WORDS);
        program.run();
        for (name, expected) in &outputs {
            let found: Vec<f64> = program.read(name).iter().map(|&number| f64::from(number)).collect();
            assert_eq!(found, expected.values, "{name}");
        }
    }
}

/// A mean of n independent numbers lies within five of its own deviations, but once in a million cases. The words are fixed, so
/// that the claim holds always or never.
fn close(found: f64, expected: f64, deviation: f64, count: usize, what: &str) {
    let allowed = 5.0 * deviation / (count as f64).sqrt();
    assert!((found - expected).abs() < allowed, "{what}: {found} instead of {expected} ± {allowed}");
}

#[test]
fn the_numbers_are_uniform_and_neighbours_places_and_words_are_independent() {
    let count = 1 << 18;
    let uniform = |numbers: &[f32]| -> Vec<f64> {
        assert!(numbers.iter().all(|&number| (0.0..16_777_216.0).contains(&number) && number.fract() == 0.0));
        numbers.iter().map(|&number| f64::from(number) / 16_777_216.0 - 0.5).collect()
    };
    let [first, second] = draw(WORDS, &[64, count / 64]).map(|numbers| uniform(&numbers));
    let others: Vec<Vec<f64>> = (0..RANDOM_WORDS)
        .map(|word| {
            let mut words = WORDS;
            words[word] -= 1.0; // the words of two steps may differ by as little as this
            uniform(&draw(words, &[64, count / 64])[0])
        })
        .collect();
    let mean = |values: &mut dyn Iterator<Item = f64>| values.sum::<f64>() / count as f64;
    close(mean(&mut first.iter().copied()), 0.0, (1.0f64 / 12.0).sqrt(), count, "mean");
    close(mean(&mut first.iter().map(|u| u * u)), 1.0 / 12.0, (1.0f64 / 180.0).sqrt(), count, "variance");
    for bit in 0..24 {
        let ones = mean(&mut first.iter().map(|u| ((((u + 0.5) * 16_777_216.0) as u32 >> bit) & 1).into()));
        close(ones, 0.5, 0.5, count, &format!("bit {bit}"));
    }
    let mut pairs: Vec<(String, Vec<f64>)> = others.into_iter().map(|other| ("words".to_owned(), other)).collect();
    pairs.push(("places".to_owned(), second));
    for shift in [1, 2, 64, count / 64] {
        pairs.push((format!("shift {shift}"), first.iter().cycle().skip(shift).take(count).copied().collect()));
    }
    for (what, other) in pairs {
        let product = mean(&mut first.iter().zip(&other).map(|(a, b)| a * b));
        close(product, 0.0, 1.0 / 12.0, count, &format!("correlation of {what}"));
    }
}

#[test]
fn factors_have_the_mean_1_and_the_variance_of_their_rate() {
    let count = 1 << 18;
    for rate in [0.01, 0.03, 0.05, 0.1, 0.5, 0.9] {
        let graph = Graph::new();
        let random = Random::new(&graph, "random");
        graph.output("factors", random.factors(rate, [count]));
        let mut program = Program::compile(&graph);
        program.write("random", &WORDS);
        program.run();
        let factors: Vec<f64> = program.read("factors").iter().map(|&factor| f64::from(factor)).collect();
        let kept = 1.0 / (1.0 - rate);
        assert!(factors.iter().all(|&factor| factor == 0.0 || (factor / kept - 1.0).abs() < 1e-6), "rate {rate}");
        let mean = factors.iter().sum::<f64>() / count as f64;
        let variance = factors.iter().map(|factor| (factor - 1.0).powi(2)).sum::<f64>() / count as f64;
        close(mean, 1.0, (rate * kept).sqrt(), count, "mean");
        // (f − 1)² is 1 with the probability p, else p²/(1 − p)²
        let deviation = (1.0 - (rate * kept).powi(2)).abs() * (rate * (1.0 - rate)).sqrt();
        close(variance, rate * kept, deviation.max(1e-3), count, "variance");
    }
}

/// Beyond 2²⁴ elements, the rows are places of their own.
#[test]
fn more_elements_than_a_counter_has_are_drawn_row_by_row() {
    let (rows, columns) = (20, 1 << 20);
    let graph = Graph::new();
    let random = Random::new(&graph, "random");
    graph.output("sums", (random.factors(0.5, [rows, columns]) * 0.5).sum(&[1]));
    let mut program = Program::compile(&graph);
    program.write("random", &WORDS);
    program.run();
    let sums: std::collections::BTreeSet<u32> = program.read("sums").iter().map(|&sum| sum as u32).collect();
    assert_eq!(sums.len(), rows, "no two rows have the same numbers");
    sums.iter().for_each(|&sum| close(f64::from(sum) / columns as f64, 0.5, 0.5, columns, "row"));
}

#[test]
fn the_gradient_has_the_factors_of_the_value_and_a_rate_of_0_changes_nothing() {
    let graph = Graph::new();
    let random = Random::new(&graph, "random");
    let x = graph.input("x", [200, 30]);
    assert!(x.dropout(0.0, &random).is_same(&x) && !random.is_used());
    let y = x.dropout(0.4, &random);
    graph.output("y", y);
    graph.output("slope", graph.gradient(y.sum_all(), &[x])[0].unwrap());
    let mut program = Program::compile(&graph);
    program.write("x", &[1.0; 6000]);
    program.write("random", &WORDS);
    program.run();
    assert_eq!(program.read("y"), program.read("slope"));
    let first = program.read("y").to_vec();
    program.run();
    assert_eq!(program.read("y"), first, "the same words, the same numbers");
    program.write("random", &[1.0; RANDOM_WORDS]);
    program.run();
    assert_ne!(program.read("y"), first, "other words, other numbers");
}

#[test]
fn no_memory_holds_the_numbers() {
    let bytes = |rate: f64| {
        let graph = Graph::new();
        let random = Random::new(&graph, "random");
        let shape = Shape::from([50, 2000]);
        let (x, weight) = (graph.input("x", shape.clone()), graph.parameter("weight", [2000, 8]));
        let y = x.sin().dropout(rate, &random).matmul(weight).tanh();
        graph.output("slopes", graph.gradient(y.sum_all(), &[x])[0].unwrap());
        Program::compile(&graph).bytes()
    };
    let (with, without) = (bytes(0.5), bytes(0.0));
    assert!(with < without + 4 * 50 * 2000 / 2, "{with} bytes with dropout, {without} without");
}
