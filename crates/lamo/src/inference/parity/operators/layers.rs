//! Layers on their own: mixers, patches, slices and embeddings.

use super::super::{
    Arguments, Comparison, DOUBLE, Error, GRADIENT, GRADIENT_OF_PARAMETERS, OUTPUT, ROUNDING, compare_gradients,
    double, output_pullback,
};
use crate::data::state_dict;
use crate::inference::explain::by_matrices;
use crate::network::layers::embedding::{Table, time_embedding, unified_positions};
use crate::network::layers::{
    Decoder, Depatchify, Discretisation, Hydra, Linear, Mamba2, PatchShape, Patchify, Selection, SliceShape, Slices,
    Ss2d,
};
use crate::network::{Parameters, Scope};
use lamo_geometry::Grid;
use lamo_tensor::reference;
use lamo_tensor::{Graph, PARAMETERS, Tensor};

/// The results of a layer by their names in the fixture; the first one is differentiated.
type Results<'g> = Vec<(&'static str, Tensor<'g>)>;

/// Compares the results of a layer for the tensor `input` of the fixture and its parameters `param.*`, and the pullback of
/// `dout` to both.
fn check_layer(
    io: &mut Comparison,
    input: &str,
    layer: impl for<'g> Fn(&Scope<'_, 'g>, Tensor<'g>) -> Result<Results<'g>, state_dict::Error>,
) -> Result<(), Error> {
    let graph = Graph::new();
    let parameters = Parameters::new(&graph);
    let x = io.input(&graph, input)?;
    let results = layer(&parameters.root(), x)?;
    results.iter().for_each(|(key, result)| graph.output(key, *result));
    let wanted = [(GRADIENT_OF_PARAMETERS.to_owned(), graph.parameters()), (format!("grad.{input}"), x)];
    output_pullback((results[0].1, io.input(&graph, "dout")?), &wanted);
    let mut bindings = io.bindings([input, "dout"])?;
    bindings.insert(PARAMETERS, io.parameters("param", &graph.sections())?);
    let program = io.run(&graph, &bindings)?;
    for (key, result) in &results {
        io.compare("output", key, &double(program.read(key)), OUTPUT)?;
        if key.ends_with("_f64") {
            io.compare("double", key, &reference::evaluate(&graph, &bindings, &[*result])[0].values, DOUBLE)?;
        }
    }
    compare_gradients(&program, &wanted, &[], GRADIENT, io)?;
    let matrices = by_matrices(&bindings, |graph, parameters| {
        let x = io.input(graph, input)?;
        Ok::<_, state_dict::Error>(layer(&parameters.root(), x)?[0].1)
    })?;
    let key = results[0].0;
    Ok(matrices.map_or(Ok(()), |found| io.compare("matrices", key, &found, DOUBLE))?)
}

/// A mixer; missing arguments take the defaults of the class.
pub(super) fn mixer(fixture: &Arguments<'_>, io: &mut Comparison) -> Result<(), Error> {
    let kind = fixture.table["kind"].as_str().unwrap_or_default();
    let arguments = Arguments { path: fixture.path, table: &fixture.table["args"] };
    let selection = Selection {
        states: arguments.number("d_state")?,
        expand: arguments.number(if kind == "ss2d" { "ssm_ratio" } else { "expand" })?,
        head_width: arguments.number_or("headdim", 64)?,
        groups: arguments.number_or("ngroups", if kind == "hydra" { 2 } else { 1 })?,
        convolution: arguments.number_or("d_conv", 3)?,
        directions: if kind == "ss2d" { 4 } else { 2 },
        scan_heads: 0,
        discretisation: Discretisation::Euler,
    };
    let width = arguments.number("d_model")?;
    check_layer(io, "in.u", |scope, u| {
        let shape = u.shape();
        let mixed = match (kind, shape.dims()) {
            ("ss2d", &[batch, rows, columns, _]) => {
                let tokens = u.reshape([batch, rows * columns, width]);
                Ss2d::new(scope, 2, width, selection).forward(tokens, [1, rows, columns])
            }
            ("hydra", [_, _, _]) => Hydra::new(scope, width, selection).forward(u),
            ("bimamba2", [_, _, _]) => Mamba2::new(scope, width, selection).forward(u),
            _ => return Err(fixture.malformed(format!("gives a mixer {kind:?} for tokens of shape {shape}"))),
        };
        Ok(vec![("out_f64", mixed.reshape(shape))])
    })
}

pub(super) fn patchify(fixture: &Arguments<'_>, io: &mut Comparison) -> Result<(), Error> {
    let [side, inputs, width] = fixture.numbers(["p", "cin", "e"])?;
    check_layer(io, "in.x", |scope, image| {
        let image = image.permute(&[0, 2, 3, 1]); // [batch, rows, columns, channels]
        let [batch, rows, columns, channels] = image.dims();
        let image = image.reshape([batch, 1, rows, columns, channels]);
        let shape = PatchShape { axes: 2, patch: [1, side, side] };
        Ok(vec![("out", Patchify::new(scope, shape, inputs, width).forward(image))])
    })
}

pub(super) fn depatchify(fixture: &Arguments<'_>, io: &mut Comparison) -> Result<(), Error> {
    let [side, width, outputs, rows, columns] = fixture.numbers(["p", "e", "cout", "H", "W"])?;
    check_layer(io, "in.x", |scope, tokens| {
        let shape = PatchShape { axes: 2, patch: [1, side, side] };
        let image = Depatchify::new(scope, shape, width, outputs).forward(tokens, [1, rows, columns]);
        let [batch, ..] = tokens.dims::<3>();
        let image = image.reshape([batch, rows, columns, outputs]);
        Ok(vec![("out", image.permute(&[0, 3, 1, 2]))]) // [batch, channels, rows, columns]
    })
}

/// Slices without a mixer between encoder and decoder.
pub(super) fn slices(fixture: &Arguments<'_>, io: &mut Comparison) -> Result<(), Error> {
    let [width, heads, tokens] = fixture.numbers(["dim", "heads", "slices"])?;
    let grid = match fixture.table["HW"].as_array().map(Vec::as_slice) {
        Some([rows, columns]) => {
            let extent = |value: &serde_json::Value| value.as_u64().map_or(0, |extent| extent as usize);
            Grid::Plane { rows: extent(rows), columns: extent(columns) }
        }
        _ => Grid::Cloud { points: fixture.number("N")? },
    };
    let has_tokens = io.tensors.contains_key("slice_token");
    check_layer(io, "in.x", |scope, points| {
        let slices = Slices::own(scope, SliceShape { grid, width, heads, tokens }, Decoder::Tied);
        let out = Linear::new(&scope.enter("to_out.0"), width, width);
        let sliced = slices.encode(points);
        let mut results = vec![("out", out.forward(sliced.decode(sliced.tokens)))];
        if has_tokens {
            let [batch, ..] = points.dims::<3>();
            let by_head = sliced.tokens.reshape([batch, tokens, heads, width / heads]).permute(&[0, 2, 1, 3]);
            results.push(("slice_token", by_head));
        }
        Ok(results)
    })
}

/// Times as sines, positions as distances to a lattice of 3 × 3 points, and the positions that the authors' scripts make.
pub(super) fn embeddings(_: &Arguments<'_>, io: &mut Comparison) -> Result<(), Error> {
    let graph = Graph::new();
    let (time, cloud) = (io.input(&graph, "T")?, io.input(&graph, "x_irregular")?);
    let [_, points, _] = cloud.dims();
    let plane = Grid::Plane { rows: 4, columns: 5 };
    let unused = graph.fill(0.0, [1, plane.points(), 2]); // distances on a plane follow from its extents alone
    let results = [
        ("emb_16", time_embedding(time, 16)),
        ("unified_pos_structured_4x5_ref3", unified_positions(unused, plane, 3, Table::Single)),
        ("unified_pos_irregular_ref3", unified_positions(cloud, Grid::Cloud { points }, 3, Table::Single)),
    ];
    results.iter().for_each(|(key, result)| graph.output(key, *result));
    let program = io.run(&graph, &io.bindings(["T", "x_irregular"])?)?;
    for (key, _) in results {
        io.compare_absolute("output", key, &double(program.read(key)), ROUNDING)?;
    }
    for (key, [s1, s2]) in [("script_pos_s1_4_s2_4", [4, 4]), ("script_pos_s1_5_s2_3", [5, 3])] {
        let grids = [(Grid::Plane { rows: s2, columns: s1 }, false), (Grid::Plane { rows: s1, columns: s2 }, true)];
        for (grid, scrambled) in grids {
            let lattice = grid.lattice(scrambled).unwrap_or_default();
            io.compare_absolute("lattice", key, &double(&lattice), 0.0)?; // to the bit
        }
    }
    Ok(())
}
