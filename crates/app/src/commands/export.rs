//! `lamo export`: a model as an ONNX file or as a C program.

use super::{say, warn};
use anyhow::Result;
use clap::Args;
use lamo::Grid;
use lamo::error::{Refusal, counted};
use lamo_export::{ExportRequest, ExportedFile, FieldInfo, Origin, Verified, export};
use std::path::PathBuf;

/// `lamo export`
#[derive(Args)]
pub(crate) struct Export {
    /// A run folder, a checkpoint file, a model folder made by lamo import, or the name of a pretrained model.
    run: PathBuf,
    /// ONNX file to write: standard operators of opset 17, any number of samples, and of points in a cloud where the model allows it.
    #[arg(long, value_name = "FILE")]
    onnx: Option<PathBuf>,
    /// C source to write; its header gets the same name with .h. It is C99 and needs nothing but libm.
    #[arg(long, value_name = "FILE")]
    c: Option<PathBuf>,
    /// The grid of the fields, if it is not that of the training: 64x64, 32x32x32, line:128 or cloud:5000. FNO, Transolver,
    /// LaMO and others work on other grids. A cloud with a number is exported for that number of points.
    #[arg(long, value_name = "GRID")]
    grid: Option<String>,
    /// Samples on which what was written is compared with the predictions of lamo before the file gets its name: test samples
    /// where the data are at hand, else numbers with the mean and the deviation of the training samples.
    #[arg(long, value_name = "N", default_value_t = 3)]
    samples: usize,
    /// Print one JSON object on standard output.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(options: &Export) -> Result<()> {
    let request = ExportRequest {
        model: options.run.clone(),
        onnx: options.onnx.clone(),
        c: options.c.clone(),
        grid: options.grid.as_deref().map(grid).transpose()?,
        samples: options.samples,
    };
    let exported = export(&request)?;
    if let Some(note) = &exported.note {
        warn(&format!("warning: {note}"));
    }
    if options.json {
        return say(&serde_json::to_string_pretty(&exported)?);
    }
    for file in &exported.written {
        say(&format!("{}: {} to {}", exported.model, fields(&file.inputs), fields(&file.outputs)))?;
        say(&line(file))?;
    }
    Ok(())
}

/// `positions [points, 2], permeability [points]`
fn fields(fields: &[FieldInfo]) -> String {
    let extent = |extent: &Option<usize>| extent.map_or_else(|| "points".to_owned(), |extent| extent.to_string());
    let field = |field: &FieldInfo| {
        format!("{} [{}]", field.name, field.shape.iter().map(extent).collect::<Vec<_>>().join(", "))
    };
    fields.iter().map(field).collect::<Vec<_>>().join(", ")
}

fn line(file: &ExportedFile) -> String {
    let names: Vec<String> = file.files.iter().map(|path| path.display().to_string()).collect();
    let Verified { samples, origin, relative_l2, points, rolled_out, .. } = file.verified;
    let kind = match origin {
        Origin::Test => "test sample",
        Origin::Drawn => "drawn sample",
    };
    let parts = if file.form == "onnx" { "operator" } else { "loop" };
    let rolled = rolled_out.map(|(steps, error)| format!(", {error:.1e} after {steps} steps")).unwrap_or_default();
    let points = points.map(|[fewest, most]| format!(", {fewest} to {most} points")).unwrap_or_default();
    let size = file.bytes as f64 / 1e6;
    let (names, parts, samples) = (names.join(", "), counted(file.operators, parts), counted(samples, kind));
    format!("{names}: {size:.1} MB, {parts}; differs from lamo by {relative_l2:.1e}{rolled} ({samples}{points})")
}

/// `64x64`, `32x32x32`, `line:128`, `cloud:5000`
fn grid(text: &str) -> Result<Grid, Refusal> {
    let points = |prefix: &str| text.strip_prefix(prefix)?.parse::<usize>().ok().filter(|&points| points > 0);
    let line = points("line:").map(|points| Grid::Line { points });
    let cloud = points("cloud:").map(|points| Grid::Cloud { points });
    let found = line.or(cloud).or_else(|| Grid::parse_lattice(text));
    found.ok_or_else(|| {
        Refusal::new("--grid", "a grid such as 64x64, 32x32x32, line:128 or cloud:5000", format!("`{text}`"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_are_read_and_anything_else_is_refused() {
        assert_eq!(grid("64x32").unwrap(), Grid::Plane { rows: 64, columns: 32 });
        assert_eq!(grid("line:9").unwrap(), Grid::Line { points: 9 });
        assert_eq!(grid("cloud:5").unwrap(), Grid::Cloud { points: 5 });
        for text in ["", "64", "0x3", "line:0", "cloud:x"] {
            assert!(grid(text).unwrap_err().to_string().contains("--grid"), "{text}");
        }
    }
}
