//! The arrays of an explanation as .npy files, and its numbers as JSON.

use anyhow::Result;
use lamo::data::formats::{self, Named};
use lamo::inference::explain::{Domain, Explained, Matrix};
use lamo::workflow::ExplainedSample;
use serde_json::{Value, json};
use std::path::Path;

/// An array file: its name, its shape, what it holds.
pub(super) struct ArrayFile {
    pub(super) name: String,
    pub(super) shape: Vec<usize>,
    pub(super) holds: String,
}

struct Writer<'a> {
    folder: &'a Path,
    files: Vec<ArrayFile>,
}

impl Writer<'_> {
    fn write(&mut self, name: &str, shape: Vec<usize>, values: Vec<f32>, holds: impl Into<String>) -> Result<()> {
        let file = format!("{name}.npy");
        let array = Named { name: name.to_owned(), shape: shape.clone(), values };
        formats::write(&self.folder.join(&file), &[array])?;
        self.files.push(ArrayFile { name: file, shape, holds: holds.into() });
        Ok(())
    }
}

fn joined<'a>(matrices: impl Iterator<Item = &'a Matrix>) -> Vec<f32> {
    matrices.flat_map(|matrix| &matrix.values).copied().collect()
}

/// Writes all arrays; their files.
pub(super) fn write_arrays(folder: &Path, explained: &ExplainedSample) -> Result<Vec<ArrayFile>> {
    let mut writer = Writer { folder, files: Vec::new() };
    for (number, layer) in explained.explanation.layers.iter().enumerate() {
        write_layer(&mut writer, number + 1, layer)?;
    }
    let (points, outputs) = (explained.samples.grid.points(), explained.samples.outputs);
    let influence = &explained.explanation.influence;
    let derivative = format!("derivative of the asked output with respect to the {}, physical units", influence.of);
    writer.write("influence", vec![points, influence.channels], influence.derivative.clone(), derivative)?;
    let strength = "length of the derivative over the channels, each in deviations of the training samples";
    writer.write("influence-strength", vec![points], influence.strength.clone(), strength)?;
    let truth = explained.samples.targets[explained.time * points * outputs..][..points * outputs].to_vec();
    writer.write("truth", vec![points, outputs], truth, "truth at the explained time")?;
    let prediction = explained.explanation.prediction.clone();
    writer.write("prediction", vec![points, outputs], prediction, "prediction at the explained time")?;
    let regions = explained.region_of.iter().map(|region| *region as f32).collect();
    writer.write("regions", vec![points], regions, "number of the region of each point")?;
    if let Some(spectrum) = &explained.evaluation.spectrum {
        let rings = spectrum.error.iter().chain(&spectrum.truth).map(|energy| *energy as f32).collect();
        let holds = "squares of error and truth by waves per side, over the square of the truth";
        writer.write("spectrum", vec![2, spectrum.error.len()], rings, holds)?;
    }
    Ok(writer.files)
}

fn write_layer(writer: &mut Writer<'_>, number: usize, layer: &Explained) -> Result<()> {
    let (heads, side) = (layer.heads.len(), layer.shares.side);
    let pooled = if side < layer.tokens { format!(", pooled from {} tokens", layer.tokens) } else { String::new() };
    let whole = joined(layer.heads.iter().map(|head| &head.whole));
    let name = format!("layer-{number}-matrices");
    writer.write(&name, vec![heads, side, side], whole, format!("hidden matrix of each head, signed{pooled}"))?;
    let directions = layer.heads.first().map_or(0, |head| head.directions.len());
    if directions > 0 {
        let values = joined(layer.heads.iter().flat_map(|head| &head.directions));
        let holds = format!("the same for each direction of the scan, without the skip{pooled}");
        writer.write(&format!("layer-{number}-directions"), vec![heads, directions, side, side], values, holds)?;
    }
    let shares = layer.shares.values.clone();
    let holds = format!("mean over the heads of |M| over its row sums{pooled}");
    writer.write(&format!("layer-{number}-shares"), vec![side, side], shares, holds)?;
    match &layer.domain {
        Some(Domain::Slices { slices, heads, kept, weights, .. }) => {
            let points = weights.len() / (kept * slices);
            let some = if kept < heads { format!(" of the first {kept} of {heads} heads") } else { String::new() };
            let holds = format!("weight of each point in each slice{some}");
            writer.write(&format!("layer-{number}-slices"), vec![*kept, *slices, points], weights.clone(), holds)?;
        }
        Some(Domain::Patches { token, patches }) if number == 1 => {
            let values: Vec<f32> = token.iter().map(|token| *token as f32).collect();
            let patches: Vec<String> = patches.iter().map(ToString::to_string).collect();
            let holds = format!("token of each point, of {} patches", patches.join(" × "));
            writer.write("patches", vec![values.len()], values, holds)?;
        }
        _ => {}
    }
    if !layer.attended.is_empty() {
        let holds = "share of each token in the row of the asked point's token, mean over the heads";
        writer.write(&format!("layer-{number}-attended"), vec![layer.attended.len()], layer.attended.clone(), holds)?;
    }
    Ok(())
}

/// All numbers of an explanation.
pub(super) fn numbers(explained: &ExplainedSample, sample: usize, arrays: &[ArrayFile]) -> Value {
    let ExplainedSample { trained, evaluation, regions, explanation, .. } = explained;
    let layer = |layer: &Explained| {
        let domain = layer.domain.as_ref().map(|domain| match domain {
            Domain::Slices { slices, heads, mass, spread, .. } => {
                json!({ "kind": "slices", "slices": slices, "heads": heads, "mass": mass, "slices_per_point": spread })
            }
            Domain::Patches { patches, .. } => json!({ "kind": "patches", "patches": patches }),
        });
        json!({
            "mixer": layer.mixer, "tokens": layer.tokens, "heads": layer.heads.len(), "rows": layer.rows,
            "row_entropy": layer.entropy, "three_heaviest_columns": layer.heaviest, "residual": layer.residual,
            "first_state": layer.first_state, "cosine_before": layer.cosine[0], "cosine_after": layer.cosine[1],
            "tokens_lie_in": domain,
        })
    };
    let influence = &explanation.influence;
    let bands = evaluation.spectrum.as_ref().map(|spectrum| {
        spectrum.bands().map(|band| {
            json!({ "band": band.name, "first_wave": band.waves.start, "waves": band.waves.len(), "error": band.error,
                                            "relative": band.relative, "share": band.share })
        })
    });
    json!({
        "model": trained.operator.model.name, "problem": explained.problem, "sample": sample, "number": explained.number,
        "time": explained.time, "grid": trained.operator.task.grid.shape(), "relative_l2": evaluation.relative_l2,
        "layers": explanation.layers.iter().map(layer).collect::<Vec<_>>(),
        "bands": bands, "border": evaluation.border,
        "regions": regions.iter().map(|region| json!({ "name": region.name, "points": region.points, "error": region.error,
            "share_of_error": region.share, "share_of_influence": region.influence })).collect::<Vec<_>>(),
        "influence": { "of": influence.of, "point": influence.point, "channel": influence.channel },
        "arrays": arrays.iter().map(|file| json!({ "file": file.name, "shape": file.shape, "holds": file.holds })).collect::<Vec<_>>(),
    })
}
