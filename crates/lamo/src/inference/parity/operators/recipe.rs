//! Parts of the training recipe: losses, the normaliser, the optimiser and schedules.

use super::super::{
    Arguments, Comparison, DOUBLE, DOUBLE_WITH_SINGLE_STAGE, Error, GRADIENT, LOSS, OUTPUT, ROUNDING, STEP,
    compare_gradients, double, output_pullback, single,
};
use crate::data::state_dict;
use crate::error::Refusal;
use crate::task::Normaliser;
use crate::training::loss::{central_difference, relative_l2_mean, relative_l2_sum, relative_l2_with_gradient};
use crate::training::optimiser::AdamW;
use crate::training::schedule::{Pace, Schedule};
use lamo_tensor::reference;
use lamo_tensor::{Graph, PARAMETERS, Tensor};

/// The relative L2 as a sum and as a mean, and the gradient of the sum.
pub(super) fn loss(_: &Arguments<'_>, io: &mut Comparison) -> Result<(), Error> {
    let graph = Graph::new();
    let (x, y) = (io.input(&graph, "x")?, io.input(&graph, "y")?);
    let loss = relative_l2_sum(x, y);
    graph.output("loss_sum", loss);
    graph.output("loss_mean", relative_l2_mean(x, y));
    let wanted = [("grad.x".to_owned(), x)];
    output_pullback((loss, graph.fill(1.0, loss.shape())), &wanted);
    let program = io.run(&graph, &io.bindings(["x", "y"])?)?;
    for key in ["loss_sum", "loss_mean"] {
        io.compare("loss", key, &double(program.read(key)), LOSS)?;
    }
    Ok(compare_gradients(&program, &wanted, &[], GRADIENT, io)?)
}

/// The Darcy loss of an encoded output against an encoded target, both decoded first.
struct DarcyLoss<'g> {
    /// Losses by their names in the fixture.
    losses: [(&'static str, Tensor<'g>); 3],
    /// ∂ along columns and rows of the prediction whose outermost ring is zero.
    slopes: [(&'static str, Tensor<'g>); 2],
}

impl<'g> DarcyLoss<'g> {
    fn new([out, target]: [Tensor<'g>; 2], side: usize, decoded: impl Fn(Tensor<'g>) -> Tensor<'g>) -> Self {
        let [batch, _] = out.dims();
        let [prediction, target] = [out, target].map(|field| decoded(field).reshape([batch, side, side]));
        let loss = relative_l2_with_gradient(prediction, target);
        let l2 = relative_l2_sum(prediction, target);
        let inside = prediction.slice(1, 1, side - 1).slice(2, 1, side - 1).pad(1, 1, 1).pad(2, 1, 1);
        let slope = |axis: usize| central_difference(inside, axis, 1.0 / side as f64);
        DarcyLoss {
            losses: [("loss", loss), ("l2", l2), ("deriv", (loss - l2) * 10.0)],
            slopes: [("pred_grad_x", slope(2)), ("pred_grad_y", slope(1))],
        }
    }
}

/// Compares in float32 with our normaliser, then in double with the statistics and targets of the authors' script.
pub(super) fn darcy_loss(fixture: &Arguments<'_>, io: &mut Comparison) -> Result<(), Error> {
    let side = fixture.number("s")?;
    let solutions = single(&io.tensor("y_train_raw")?.1);
    let normaliser = fitted(fixture, io, &solutions, 1, ["mean", "std"])?;
    let encoded = io.tensor("y_enc")?.1.len().min(solutions.len());
    compare_encoded(io, "y_enc", &normaliser, &solutions[..encoded])?;

    let graph = Graph::new();
    let fields = [io.input(&graph, "out")?, io.input(&graph, "y_enc")?];
    let DarcyLoss { losses, slopes } = DarcyLoss::new(fields, side, |field| normaliser.decoded(field));
    losses.iter().chain(&slopes).for_each(|(key, value)| graph.output(key, *value));
    let (wanted, loss) = ([("grad.out".to_owned(), fields[0])], losses[0].1);
    output_pullback((loss, graph.fill(1.0, loss.shape())), &wanted);
    let program = io.run(&graph, &io.bindings(["out", "y_enc"])?)?;
    for (key, _) in losses {
        io.compare("loss", key, &double(program.read(key)), LOSS)?;
    }
    for (key, _) in slopes {
        io.compare("output", key, &double(program.read(key)), OUTPUT)?;
    }
    compare_gradients(&program, &wanted, &[], GRADIENT, io)?;

    let graph = Graph::new();
    let fields = [io.input(&graph, "out")?, io.input(&graph, "y_enc_f64")?];
    let [mean, deviation] = [io.doubles("mean_f64", 1)?[0], io.doubles("std_f64", 1)?[0]];
    let DarcyLoss { losses, slopes } = DarcyLoss::new(fields, side, |field| field * deviation + mean);
    let gradient = graph.gradient(losses[0].1, &[fields[0]])[0].expect("the loss depends on the output");
    let bindings = io.bindings(["out", "y_enc_f64"])?;
    let exact = |value: Tensor<'_>| reference::evaluate(&graph, &bindings, &[value])[0].values.clone();
    for (key, value) in losses.into_iter().chain(slopes) {
        io.compare("double", &format!("{key}_f64"), &exact(value), DOUBLE)?;
    }
    // The inputs of the network are rounded to float32.
    Ok(io.compare("double", "grad.out_f64", &exact(gradient), DOUBLE_WITH_SINGLE_STAGE)?)
}

/// Our normaliser of values `[…, channels]`, compared with the authors' mean and deviation: they sum in float32, which
/// costs a few roundings of the largest value.
pub(super) fn fitted(
    fixture: &Arguments<'_>,
    io: &mut Comparison,
    values: &[f32],
    channels: usize,
    [mean, deviation]: [&str; 2],
) -> Result<Normaliser, Error> {
    let refused = |refusal: Refusal| Error::Model { path: fixture.path.to_owned(), refusal };
    let normaliser = Normaliser::fit(values, channels).map_err(refused)?;
    compare_normaliser(io, &normaliser, values, [mean, deviation])?;
    Ok(normaliser)
}

pub(super) fn compare_normaliser(
    io: &mut Comparison,
    normaliser: &Normaliser,
    values: &[f32],
    [mean, deviation]: [&str; 2],
) -> Result<(), state_dict::Error> {
    let allowed = ROUNDING * largest(values);
    io.compare_absolute("normaliser", mean, &double(&normaliser.mean), allowed)?;
    io.compare_absolute("normaliser", deviation, &double(&normaliser.deviation), allowed)
}

/// Encoding divides the roundings of the largest value by the smallest deviation.
pub(super) fn compare_encoded(
    io: &mut Comparison,
    key: &str,
    normaliser: &Normaliser,
    values: &[f32],
) -> Result<Vec<f32>, state_dict::Error> {
    let mut encoded = values.to_vec();
    normaliser.encode(&mut encoded);
    let smallest = normaliser.deviation.iter().fold(f32::INFINITY, |smallest, value| smallest.min(*value));
    io.compare_absolute("normaliser", key, &double(&encoded), ROUNDING * largest(values) / f64::from(smallest))?;
    Ok(encoded)
}

fn largest(values: &[f32]) -> f64 {
    f64::from(values.iter().fold(0.0, |largest: f32, value| largest.max(value.abs())))
}

/// The normaliser of two channels and of one, there and back.
pub(super) fn normaliser(fixture: &Arguments<'_>, io: &mut Comparison) -> Result<(), Error> {
    for (channels, [values, mean, deviation, encoded, decoded]) in
        [(2, ["x3", "mean3", "std3", "enc3", "dec3"]), (1, ["x2", "mean2", "std2", "enc2", "dec2"])]
    {
        let values = single(&io.tensor(values)?.1);
        let normaliser = fitted(fixture, io, &values, channels, [mean, deviation])?;
        let mut back = compare_encoded(io, encoded, &normaliser, &values)?;
        normaliser.decode(&mut back);
        if io.tensors.contains_key(decoded) {
            io.compare_absolute("normaliser", decoded, &double(&back), ROUNDING * largest(&values))?;
        }
    }
    Ok(())
}

/// Training steps with the fixture's gradients: the loss ⟨θ, g⟩ has exactly these.
pub(super) fn optimiser(fixture: &Arguments<'_>, io: &mut Comparison) -> Result<(), Error> {
    let [beta2, epsilon, weight_decay] = fixture.reals(["beta2", "eps", "wd"])?;
    let adamw = AdamW { beta2, epsilon, weight_decay, clip: fixture.table["clip"].as_f64(), coupled: false };
    let graph = Graph::new();
    let parameter = |name: &str| {
        let dims = &io.tensor(&format!("p0.{name}"))?.0;
        Ok::<_, state_dict::Error>(graph.parameter(name, dims))
    };
    let (a, _, b) = (parameter("a")?, parameter("never")?, parameter("b")?);
    let gradients = [graph.input("ga", a.shape()), graph.input("gb", b.shape())];
    adamw.minimise(&graph, (a * gradients[0]).sum_all() + (b * gradients[1]).sum_all());
    let mut program = io.compile(&graph)?;
    program.write(PARAMETERS, &single(&io.parameters("p0", &graph.sections())?));
    for (step, (rate, beta1)) in io.tensor("lr")?.1.clone().into_iter().zip(io.tensor("beta1")?.1.clone()).enumerate() {
        adamw.pace(&mut program, step, Pace { rate, beta1 })?;
        for (name, tensor) in ["a", "b"].iter().zip(gradients) {
            let values = single(io.doubles(&format!("g{}.{name}", step + 1), tensor.shape().count())?);
            program.write(&format!("g{name}"), &values);
        }
        program.run();
        for section in graph.sections() {
            let found = double(program.read_parameter(&section.name));
            io.compare("parameters", &format!("p{}.{}", step + 1, section.name), &found, STEP)?;
        }
    }
    Ok(())
}

/// Rate and β₁ of the steps listed.
pub(super) fn schedule(fixture: &Arguments<'_>, io: &mut Comparison) -> Result<(), Error> {
    let (steps, [peak]) = (fixture.number("total_steps")?, fixture.reals(["max_lr"])?);
    let schedule = match fixture.table["kind"].as_str() {
        Some("onecycle") => Schedule::OneCycle { peak, steps },
        Some("cosine") => Schedule::Cosine { peak, steps },
        _ => return Err(fixture.malformed(format!("gives a schedule of kind {}", fixture.table["kind"])).into()),
    };
    let paces: Vec<Pace> = io.tensor("step")?.1.iter().map(|&step| schedule.at(step as usize)).collect();
    let (rates, inertias): (Vec<_>, Vec<_>) = paces.iter().map(|pace| (pace.rate, pace.beta1)).unzip();
    io.compare("schedule", "lr", &rates, DOUBLE)?;
    Ok(io.compare("schedule", "beta1", &inertias, DOUBLE)?)
}
