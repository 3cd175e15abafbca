//! `lamo data check FILE`: what an array file holds, and what it looks like.

use super::check::{beside, draw};
use crate::commands::{say, spread};
use crate::plot::{Column, Sheet};
use anyhow::Result;
use lamo::data::formats::{self, ArrayInfo};
use lamo::task::Moments;
use serde_json::{Value, json};
use std::path::Path;

/// Arrays drawn, planes drawn of each, frames drawn of a film.
const MOST: [usize; 3] = [6, 4, 3];
/// Values of one row beyond which an array is not drawn.
const LARGEST_ROW: usize = 1 << 24;

/// Range, mean and deviation of the finite values, and how many are not.
struct Summary {
    least: f64,
    most: f64,
    moments: Moments,
    missing: usize,
    infinite: usize,
}

pub(super) fn run(path: &Path, picture: Option<&Path>, json: bool) -> Result<()> {
    let arrays = formats::list(path)?;
    if arrays.is_empty() {
        formats::describe(path, None)?; // says what is there instead of real numbers
    }
    let mut summaries = Vec::new();
    for array in &arrays {
        summaries.push(summary(path, array)?);
    }
    let drawn = if json && picture.is_none() { None } else { sheet(path, &arrays)? };
    let target = picture.map_or_else(|| beside(path), Path::to_owned);
    let target = match &drawn {
        Some(sheet) => Some(draw(sheet, &target)?),
        None => None,
    };
    if json {
        let arrays: Vec<_> = arrays.iter().zip(&summaries).map(|(array, summary)| object(array, summary)).collect();
        return say(&json!({ "file": path.display().to_string(), "arrays": arrays, "picture": target.map(|path| path.display().to_string()) }).to_string());
    }
    say(&format!("{}: {} array{}", path.display(), arrays.len(), if arrays.len() == 1 { "" } else { "s" }))?;
    say(&format!(
        "{:18} {:8} {:22} {:>11} {:>11} {:>11} {:>11} {:>7} {:>5}",
        "array", "type", "shape", "least", "most", "mean", "deviation", "NaN", "inf"
    ))?;
    for (array, summary) in arrays.iter().zip(&summaries) {
        say(&line(array, summary))?;
    }
    target.map_or(Ok(()), |target| say(&format!("picture: {}", target.display())))
}

fn summary(path: &Path, array: &ArrayInfo) -> Result<Summary> {
    let (least, most) = (f64::INFINITY, f64::NEG_INFINITY);
    let mut summary = Summary { least, most, moments: Moments::default(), missing: 0, infinite: 0 };
    formats::visit(path, Some(&array.name), |values| {
        let finite = values.iter().copied().filter(|value| value.is_finite());
        summary.least = finite.clone().fold(summary.least, f64::min);
        summary.most = finite.clone().fold(summary.most, f64::max);
        summary.missing += values.iter().filter(|value| value.is_nan()).count();
        summary.infinite += values.iter().filter(|value| value.is_infinite()).count();
        summary.moments = summary.moments.and(Moments::of(finite));
    })?;
    Ok(summary)
}

fn line(array: &ArrayInfo, summary: &Summary) -> String {
    let name = if array.name.is_empty() { "(unnamed)" } else { &array.name };
    let (shape, kind) = (format!("{:?}", array.shape), array.kind.to_string());
    let Summary { least, most, moments, missing, infinite } = summary;
    let range = match least <= most {
        true => format!("{least:>11.4e} {most:>11.4e} {} {}", shown(moments.mean()), shown(moments.deviation())),
        false => format!("{:>11} {:>11} {:>11} {:>11}", "-", "-", "-", "-"), // no finite value
    };
    format!("{name:18} {kind:8} {shape:22} {range} {missing:>7} {infinite:>5}")
}

/// A mean or a deviation, unless the values are too large to take one of.
fn shown(value: f64) -> String {
    if value.is_finite() { format!("{value:>11.4e}") } else { format!("{:>11}", "-") }
}

fn object(array: &ArrayInfo, summary: &Summary) -> Value {
    let some = summary.least <= summary.most;
    let number = |value: f64| if some { json!(value) } else { Value::Null };
    json!({
        "name": array.name,
        "type": array.kind.to_string(),
        "shape": array.shape,
        "least": number(summary.least),
        "most": number(summary.most),
        "mean": number(summary.moments.mean()),
        "deviation": number(summary.moments.deviation()),
        "missing": summary.missing,
        "infinite": summary.infinite,
    })
}

/// Curves of lines, maps of planes; of more axes the first is taken for samples and the last two for a plane.
fn sheet(path: &Path, arrays: &[ArrayInfo]) -> Result<Option<Sheet>> {
    let mut columns: Vec<Column> = Vec::new();
    let mut extents = Vec::new(); // of the axes taken for samples
    let large = |array: &&ArrayInfo| {
        let count: usize = array.shape.iter().skip(usize::from(array.shape.len() > 2)).product();
        (2..=LARGEST_ROW).contains(&count) && array.shape.iter().all(|&extent| extent > 0)
    };
    for array in arrays.iter().filter(large).take(MOST[0]) {
        let (rows, frames, plane) = match array.shape[..] {
            [points] => (None, 1, [points, 1]),
            [rows, 1] | [1, rows] => (None, 1, [rows, 1]),
            [rows, columns] => (None, 1, [rows, columns]),
            [samples, ref frames @ .., rows, columns] => (Some(samples), frames.iter().product(), [rows, columns]),
            [] => continue,
        };
        let mut samples = Vec::new();
        match rows {
            None => samples.push(formats::read(path, Some(&array.name))?.values.into_f32()),
            Some(rows) => {
                extents.push(rows);
                for row in spread(rows, MOST[1]) {
                    samples.push(formats::read_rows(path, Some(&array.name), row..row + 1)?.values.into_f32());
                }
            }
        }
        let size = plane[0] * plane[1];
        for frame in spread(frames, MOST[2]) {
            let name = array.name.replace('_', " ");
            let title = if frames == 1 { name } else { format!("{name} {}/{frames}", frame + 1) };
            let cells = samples.iter().map(|sample| sample[frame * size..][..size].to_vec()).collect();
            columns.push(Column { title, field: array.name.clone(), plane, cells, positions: None });
        }
    }
    let rows = columns.iter().map(|column| column.cells.len()).max();
    extents.dedup();
    let label = |row: usize| match extents[..] {
        [extent] => format!("row {}", spread(extent, MOST[1])[row]),
        _ => String::new(), // of planes, or of arrays with different rows
    };
    let title = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(rows.map(|rows| Sheet { title, rows: (0..rows).map(label).collect(), columns }))
}
