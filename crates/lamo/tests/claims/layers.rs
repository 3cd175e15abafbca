//! Embeddings, patches and slices equal the authors', each alone, at the tolerances the fixtures state.

use crate::fixture::{Fixture, open};
use crate::support::experiment;
use lamo::data::Samples;
use lamo::network::Parameters;
use lamo::network::layers::embedding::{Table, time_embedding, unified_positions};
use lamo::network::layers::{Decoder, Depatchify, Linear, PatchShape, Patchify, SliceShape, Slices};
use lamo_geometry::Grid;
use lamo_tensor::{Graph, Program, Tensor};

/// Allowed error of outputs and gradients, relative to the largest element.
const OUTPUT: f64 = 2e-5;
const GRADIENT: f64 = 3e-4;
/// A gradient that is zero in theory is rounding in practice.
const NOISE: f64 = 1e-7;
/// Numbers up to 2 after a handful of roundings in float32.
const ROUNDING: f64 = 4.0 * f32::EPSILON as f64;

#[test]
fn a_time_becomes_the_authors_cosines_and_sines() {
    let fixture = open("embeddings");
    let graph = Graph::new();
    graph.output("embedding", time_embedding(graph.input("T", [3, 1]), 16));
    let mut program = Program::compile(&graph);
    program.write("T", &fixture.floats("T"));
    program.run();
    fixture.check("emb_16", program.read("embedding"), 0.0, ROUNDING);
}

#[test]
fn unified_positions_are_the_authors_distances_on_planes_and_clouds() {
    let fixture = open("embeddings");
    for (grid, key) in [
        (Grid::Plane { rows: 4, columns: 5 }, "unified_pos_structured_4x5_ref3"),
        (Grid::Cloud { points: 6 }, "unified_pos_irregular_ref3"),
    ] {
        let graph = Graph::new();
        let batch = fixture.dims(key)[0];
        let positions = graph.input("positions", [batch, grid.points(), 2]);
        graph.output("distances", unified_positions(positions, grid, 3, Table::Single));
        let mut program = Program::compile(&graph);
        if let Grid::Cloud { .. } = grid {
            program.write("positions", &fixture.floats("x_irregular")); // planes ignore their positions
        }
        program.run();
        fixture.check(key, program.read("distances"), 0.0, ROUNDING);
    }
}

/// Positions of a data set without any: those of the authors' scripts to the bit. Theirs for Plasticity run along the wrong
/// axis.
#[test]
fn the_lattice_is_that_of_the_authors_scripts_scrambled_or_not() {
    let fixture = open("embeddings");
    for (rows, columns, key, scrambled) in [
        (4, 4, "script_pos_s1_4_s2_4", &[false, true][..]),
        (5, 3, "script_pos_s1_5_s2_3", &[true]),
        (3, 5, "script_pos_s1_5_s2_3", &[false]),
    ] {
        let values: Vec<f32> = (1..=2 * rows * columns).map(|value| value as f32).collect(); // two samples of anything
        let own = Samples::new(Grid::Plane { rows, columns }, 1, values.clone(), 1, values).unwrap();
        let theirs = own.clone().at(2, fixture.floats(key)).unwrap();
        assert_eq!(own.positions == theirs.positions, scrambled.contains(&false), "{key} on {rows} × {columns}");
        for setting in [false, true] {
            let experiment = experiment(&[&format!("data.scrambled={setting}")]);
            let found = !experiment.task(&theirs).unwrap().needs_positions();
            assert_eq!(found, scrambled.contains(&setting), "{key} on {rows} × {columns}, scrambled = {setting}");
        }
    }
}

/// Output and gradients of a layer for the fixture's input, parameters and `dout`; `layer` gives both in the fixture's axes.
fn check<'g>(fixture: &Fixture, graph: &'g Graph, layer: impl FnOnce(&Parameters<'g>, Tensor<'g>) -> Tensor<'g>) {
    let parameters = Parameters::new(graph);
    let [x, cotangent] = ["in.x", "dout"].map(|key| graph.input(key, fixture.dims(key)));
    let y = layer(&parameters, x);
    graph.output("out", y);
    let gradients = graph.pullback(&[(y, cotangent)], &[x, graph.parameters()]);
    for (name, gradient) in ["grad.in.x", "gradient"].iter().zip(gradients) {
        graph.output(name, gradient.expect("the layer depends on its input and parameters"));
    }
    let mut program = Program::compile(graph);
    ["in.x", "dout"].iter().for_each(|key| program.write(key, &fixture.floats(key)));
    let sections = program.sections().to_vec();
    for section in &sections {
        program.write_parameter(&section.name, &fixture.floats(&format!("param.{}", section.name)));
    }
    program.run();
    fixture.check("out", program.read("out"), OUTPUT, 0.0);
    fixture.check("grad.in.x", program.read("grad.in.x"), GRADIENT, NOISE);
    for section in &sections {
        let found = &program.read("gradient")[section.range()];
        fixture.check(&format!("grad.param.{}", section.name), found, GRADIENT, NOISE);
    }
}

const SQUARE: PatchShape = PatchShape { axes: 2, patch: [1, 2, 2] };

#[test]
fn patches_equal_the_authors_both_ways() {
    let graph = Graph::new();
    check(&open("patchify"), &graph, |parameters, image| {
        let image = image.permute(&[0, 2, 3, 1]); // [batch, rows, columns, channels]
        let [batch, rows, columns, channels] = image.dims();
        Patchify::new(&parameters.root(), SQUARE, 3, 10).forward(image.reshape([batch, 1, rows, columns, channels]))
    });
    let graph = Graph::new();
    check(&open("depatchify"), &graph, |parameters, tokens| {
        let [batch, _, _] = tokens.dims();
        let image = Depatchify::new(&parameters.root(), SQUARE, 10, 2).forward(tokens, [1, 8, 12]);
        image.reshape([batch, 8, 12, 2]).permute(&[0, 3, 1, 2])
    });
}

/// With nothing mixed in between. The fixtures have temperatures beyond [0.1, 5], where planes clamp and clouds do not.
#[test]
fn slices_of_planes_and_clouds_equal_the_authors() {
    for (name, grid, heads) in [
        ("slice_deslice_structured", Grid::Plane { rows: 5, columns: 4 }, 3),
        ("slice_deslice_irregular", Grid::Cloud { points: 11 }, 2),
    ] {
        let fixture = open(name);
        let graph = Graph::new();
        check(&fixture, &graph, |parameters, points| {
            let scope = parameters.root();
            let slices = Slices::own(&scope, SliceShape { grid, width: 12, heads, tokens: 5 }, Decoder::Tied);
            let out = Linear::new(&scope.enter("to_out.0"), 12, 12);
            let sliced = slices.encode(points);
            out.forward(sliced.decode(sliced.tokens))
        });
    }
}
