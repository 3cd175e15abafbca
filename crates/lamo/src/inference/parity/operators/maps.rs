//! Functions of single values and norms of rows, with their gradients.

use super::super::{Arguments, Comparison, Error, GRADIENT, OUTPUT, compare_gradients, double, output_pullback};
use lamo_tensor::{Graph, Map, Tensor};

/// Added to the variance in all norms of the authors.
const EPSILON: f64 = 1e-5;

/// Names of the arguments and results of one function in the fixture.
struct Function<'a> {
    /// Name of the result.
    result: String,
    /// Names of the arguments.
    arguments: &'a [String],
    /// Names of the gradients, one for each argument.
    gradients: &'a [String],
    /// Name of the cotangent; `None` stands for all ones.
    dout: Option<String>,
}

impl Function<'_> {
    fn check<const COUNT: usize>(
        &self,
        io: &mut Comparison,
        function: impl for<'g> Fn([Tensor<'g>; COUNT]) -> Tensor<'g>,
    ) -> Result<(), Error> {
        let graph = Graph::new();
        let mut inputs = Vec::new();
        for key in self.arguments {
            inputs.push(io.input(&graph, key)?);
        }
        let y = function(std::array::from_fn(|number| inputs[number]));
        graph.output("y", y);
        let cotangent = match &self.dout {
            Some(key) => io.input(&graph, key)?,
            None => graph.fill(1.0, y.shape()),
        };
        let wanted: Vec<_> = self.gradients.iter().cloned().zip(inputs).collect();
        output_pullback((y, cotangent), &wanted);
        let keys = self.arguments.iter().chain(&self.dout).map(String::as_str);
        let program = io.run(&graph, &io.bindings(keys)?)?;
        io.compare("output", &self.result, &double(program.read("y")), OUTPUT)?;
        Ok(compare_gradients(&program, &wanted, &[], GRADIENT, io)?)
    }
}

/// GELU, SiLU and softplus; then both norms, also of rows that hardly vary.
pub(super) fn elementwise(_: &Arguments<'_>, io: &mut Comparison) -> Result<(), Error> {
    for (name, map) in [("gelu", Map::Gelu), ("silu", Map::Silu), ("softplus", Map::Softplus)] {
        let function = Function {
            result: name.to_owned(),
            arguments: &["x".to_owned()],
            gradients: &[format!("grad.{name}")],
            dout: None,
        };
        function.check(io, |[x]| x.map(map))?;
    }
    for kind in ["unit", "tiny_var"] {
        let layer = |name: &str| format!("ln_{kind}.{name}");
        let rms = |name: &str| format!("rms_{kind}.{name}");
        let function = Function {
            result: layer("y"),
            arguments: &["x", "weight", "bias"].map(layer),
            gradients: &["grad.x", "grad.weight", "grad.bias"].map(layer),
            dout: Some(layer("dout")),
        };
        function.check(io, |[x, weight, bias]| x.layer_norm(weight, bias, EPSILON))?;
        let function = Function {
            result: rms("y"),
            arguments: &[layer("x"), rms("z")],
            gradients: &["grad.x", "grad.z"].map(rms),
            dout: Some(layer("dout")),
        };
        function.check(io, |[x, z]| {
            let [_, width] = x.dims();
            x.rms_norm(x.graph().fill(1.0, [width]), EPSILON) * z.silu()
        })?;
    }
    Ok(())
}

/// RMS norm and gate in both orders: Hydra normalises first, Mamba-2 last; over all channels and over groups of 8.
pub(super) fn gated_norm(_: &Arguments<'_>, io: &mut Comparison) -> Result<(), Error> {
    for (variant, norm_first, group) in
        [("nbg1_g24", true, 24), ("nbg1_g8", true, 8), ("nbg0_g24", false, 24), ("nbg0_g8", false, 8)]
    {
        let function = Function {
            result: format!("{variant}.y"),
            arguments: &["x", "z", "weight"].map(str::to_owned),
            gradients: &["x", "z", "weight"].map(|name| format!("{variant}.grad.{name}")),
            dout: Some("dout".to_owned()),
        };
        function.check(io, |[x, z, weight]| {
            let ([batch, tokens, width], gate) = (x.dims(), z.silu());
            let groups = width / group;
            let gated = if norm_first { x } else { x * gate };
            let normed =
                gated.reshape([batch, tokens, groups, group]).rms_norm(weight.reshape([groups, group]), EPSILON);
            let normed = normed.reshape([batch, tokens, width]);
            if norm_first { normed * gate } else { normed }
        })?;
    }
    Ok(())
}
