//! `lamo data check FILE`: lists the arrays of a file and draws them.

use super::check::draw;
use crate::commands::{evenly, say};
use crate::plot::{Column, Sheet};
use anyhow::Result;
use lamo::data::formats::{ArrayFile, ArrayInfo};
use lamo::data::mesh;
use lamo::error::{counted, one_line};
use lamo::task::Moments;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

/// Arrays drawn at most.
const ARRAYS: usize = 6;
/// Samples drawn of an array.
const ROWS: usize = 4;
/// Snapshots drawn of a time series.
const SNAPSHOTS: usize = 3;
/// An array with more values per sample is not drawn.
pub(super) const LARGEST_SAMPLE: usize = 1 << 24;

/// Range, mean and deviation of the finite values, and the number of other values.
struct Summary {
    least: f64,
    most: f64,
    moments: Moments,
    missing: usize,
    infinite: usize,
}

pub(super) fn run(path: &Path, picture: Option<&Path>, json: bool) -> Result<()> {
    let file = ArrayFile::open(path)?;
    let arrays = file.list();
    if arrays.is_empty() {
        file.describe(None)?; // its error says what the file holds instead of real numbers
    }
    let mut summaries = Vec::new();
    for array in &arrays {
        summaries.push(summary(&file, array)?);
    }
    let drawn = if json && picture.is_none() { None } else { sheet(&file, &arrays)? };
    let target = drawn.map(|sheet| draw(&sheet, picture, path)).transpose()?;
    if json {
        let arrays: Vec<_> = arrays.iter().zip(&summaries).map(|(array, summary)| object(array, summary)).collect();
        let picture = target.map(|path| path.display().to_string());
        let report = json!({ "file": path.display().to_string(), "arrays": arrays, "picture": picture });
        return say(&report.to_string());
    }
    let cells = if mesh::is_mesh_name(path) { cells(path)? } else { String::new() };
    say(&format!("{}: {}{cells}", path.display(), counted(arrays.len(), "array")))?;
    let width = arrays.iter().map(|array| one_line(&array.name).chars().count()).max().unwrap_or(0).clamp(18, 48);
    say(&format!(
        "{:width$} {:10} {:22} {:>11} {:>11} {:>11} {:>11} {:>7} {:>5}",
        "array", "type", "shape", "least", "most", "mean", "deviation", "NaN", "inf"
    ))?;
    for (array, summary) in arrays.iter().zip(&summaries) {
        say(&line(array, summary, width))?;
    }
    target.map_or(Ok(()), |target| say(&format!("picture: {}", target.display())))
}

/// How many points and cells of each type a mesh has.
fn cells(path: &Path) -> Result<String> {
    let shape = mesh::read(path)?.shape;
    let mut counts: BTreeMap<u8, usize> = BTreeMap::new();
    for &kind in shape.dimensions().is_none().then(|| shape.cells()).transpose()?.iter().flat_map(|cells| &cells.kinds)
    {
        *counts.entry(kind).or_default() += 1;
    }
    let kinds: Vec<_> = counts.iter().map(|(&kind, count)| format!("{} {count}", mesh::kinds::name(kind))).collect();
    let kinds = match shape.dimensions() {
        Some([x, y, z]) => format!(" of a lattice of {x} x {y} x {z} points"),
        None if kinds.is_empty() => String::new(),
        None => format!(" ({})", kinds.join(", ")),
    };
    let (points, cells) = (counted(shape.point_count(), "point"), counted(shape.cell_count(), "cell"));
    Ok(format!(", {points}, {cells}{kinds}"))
}

fn summary(file: &ArrayFile, array: &ArrayInfo) -> Result<Summary> {
    let (least, most) = (f64::INFINITY, f64::NEG_INFINITY);
    let mut summary = Summary { least, most, moments: Moments::default(), missing: 0, infinite: 0 };
    file.visit(Some(&array.name), |values| {
        let finite = values.iter().copied().filter(|value| value.is_finite());
        summary.least = finite.clone().fold(summary.least, f64::min);
        summary.most = finite.clone().fold(summary.most, f64::max);
        summary.missing += values.iter().filter(|value| value.is_nan()).count();
        summary.infinite += values.iter().filter(|value| value.is_infinite()).count();
        summary.moments = summary.moments.and(Moments::of(finite));
    })?;
    Ok(summary)
}

/// A row of the table, with a first column of `width` letters.
fn line(array: &ArrayInfo, summary: &Summary, width: usize) -> String {
    let name = if array.name.is_empty() { "(unnamed)".into() } else { one_line(&array.name) };
    let (shape, kind) = (format!("{:?}", array.shape), array.kind.to_string());
    let Summary { least, most, moments, missing, infinite } = summary;
    let range = match least <= most {
        true => format!("{least:>11.4e} {most:>11.4e} {} {}", shown(moments.mean()), shown(moments.deviation())),
        false => format!("{:>11} {:>11} {:>11} {:>11}", "-", "-", "-", "-"), // no finite value
    };
    format!("{name:width$} {kind:10} {shape:22} {range} {missing:>7} {infinite:>5}")
}

/// A mean or a deviation; `-` if the values are too large for one.
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

/// Some rows of an array; the absolute values of complex numbers.
fn single(file: &ArrayFile, array: &ArrayInfo, rows: Option<Range<usize>>) -> Result<Vec<f32>> {
    let values = file.read_single(Some(&array.name), None, rows, &mut |_| {})?.values;
    Ok(match array.kind.is_complex() {
        true => values.chunks_exact(2).map(|parts| parts[0].hypot(parts[1])).collect(),
        false => values,
    })
}

/// Draws arrays with one axis as curves and arrays with two axes as maps. Of more axes the first counts samples, the last two
/// are a plane, and those between count snapshots.
fn sheet(file: &ArrayFile, arrays: &[ArrayInfo]) -> Result<Option<Sheet>> {
    let mut columns: Vec<Column> = Vec::new();
    let mut sample_counts = Vec::new();
    let drawable = |array: &&ArrayInfo| {
        let sample = array.shape.iter().skip(usize::from(array.shape.len() > 2 && !array.kind.is_complex()));
        let count = sample.fold(1, |count: usize, &extent| count.saturating_mul(extent));
        (2..=LARGEST_SAMPLE).contains(&count) && array.shape.iter().all(|&extent| extent > 0)
    };
    for array in arrays.iter().filter(drawable).take(ARRAYS) {
        let axes = array.shape.len() - usize::from(array.kind.is_complex());
        let (samples, snapshots, plane) = match array.shape[..axes] {
            [points] => (None, 1, [points, 1]),
            [rows, 1] | [1, rows] => (None, 1, [rows, 1]),
            [rows, columns] => (None, 1, [rows, columns]),
            [samples, ref series @ .., rows, columns] => (Some(samples), series.iter().product(), [rows, columns]),
            [] => continue,
        };
        let mut values = Vec::new();
        match samples {
            None => values.push(single(file, array, None)?),
            Some(samples) => {
                sample_counts.push(samples);
                for row in evenly(samples, ROWS) {
                    values.push(single(file, array, Some(row..row + 1))?);
                }
            }
        }
        let size = plane[0] * plane[1];
        for snapshot in evenly(snapshots, SNAPSHOTS) {
            let name = array.name.replace('_', " ");
            let name = if array.kind.is_complex() { format!("|{name}|") } else { name };
            let title = if snapshots == 1 { name } else { format!("{name} {}/{snapshots}", snapshot + 1) };
            let cells = values.iter().map(|sample| sample[snapshot * size..][..size].to_vec()).collect();
            columns.push(Column { title, field: array.name.clone(), plane, cells, layouts: None, over_time: false });
        }
    }
    let rows = columns.iter().map(|column| column.cells.len()).max();
    sample_counts.dedup();
    let label = |row: usize| match sample_counts[..] {
        [count] => format!("row {}", evenly(count, ROWS)[row]),
        _ => String::new(), // planes only, or arrays with different numbers of samples
    };
    let title = file.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok(rows.map(|rows| Sheet { title, about: None, rows: (0..rows).map(label).collect(), columns }))
}
