//! `lamo data check`: verifies the hashes of a data set, prints its statistics and draws a few samples.

use super::file;
use crate::commands::progress::Meter;
use crate::commands::stop::stop_on_signal;
use crate::commands::{evenly, require_extension, say, write_file};
use crate::failure::InReport;
use crate::plot::{Column, Layout, Layouts, Sheet, cuts, note_on_cuts};
use crate::report::{channels as channel_names, is_deformation, snapshot_name, unit};
use crate::text::percent;
use anyhow::Result;
use clap::Args;
use lamo::data::LabelError;
use lamo::data::dataset::{Dataset, FieldEntry, MANIFEST, Manifest, Role, Statistics, Triangles};
use lamo::error::{Refusal, counted};
use lamo::workflow::{self, Event, Session};
use lamo_geometry::Grid;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Samples drawn, one per row of the picture.
const ROWS: usize = 4;
/// Snapshots drawn of a time series.
const SNAPSHOTS: usize = 3;
/// Source files named at most.
const FILES: usize = 8;

/// `lamo data check`
#[derive(Args)]
pub(crate) struct Check {
    /// Folder of a data set, or an array file.
    path: PathBuf,
    /// PNG file for the picture; PATH-check.png unless given, or in the current folder where that cannot be written.
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,
    /// Solve K samples, evenly chosen, on a finer discretisation, and print how far the stored ones are from them: the error of
    /// the labels.
    #[arg(long, value_name = "K")]
    converge: Option<usize>,
    /// Samples that --converge solves at the same time; one per core unless given.
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Print one JSON object on standard output; draw a picture only if --picture is given.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(options: &Check) -> Result<()> {
    let Check { path, picture, converge, threads, json } = options;
    picture.as_deref().map_or(Ok(()), |path| require_extension(path, "png"))?;
    if path.is_file() && path.file_name() != Some(MANIFEST.as_ref()) {
        return file::run(path, picture.as_deref(), *json);
    }
    if let Some(samples) = converge {
        return solve_finer(path, *samples, *threads, *json);
    }
    let checked = workflow::check(path)?;
    let (dataset, fields) = (&checked.dataset, &checked.fields);
    let drawn = if *json && picture.is_none() { None } else { sheet(dataset)? };
    let drawn = drawn.map(|sheet| draw(&sheet, picture.as_deref(), path)).transpose()?;
    if *json {
        say(&object(dataset, fields, drawn.as_deref())?.to_string())?; // counts values that are not finite
    } else {
        say(&heading(dataset)?)?;
        say(&format!(
            "{:18} {:8} {:15} {:>4} {:>11} {:>11} {:>11} {:>11} {:>5} {:>5}  hash",
            "field", "role", "shape", "unit", "least", "most", "mean", "deviation", "NaN", "inf"
        ))?;
        for (field, statistics) in fields {
            say(&line(field, statistics))?;
        }
        drawn.map_or(Ok(()), |drawn| say(&format!("picture: {}", drawn.display())))?;
    }
    Ok(checked.require_finite().map_err(InReport)?)
}

/// Prints the error of the labels.
fn solve_finer(path: &Path, samples: usize, threads: Option<u16>, json: bool) -> Result<()> {
    let meter = Meter::of_samples("solving finer");
    let listener = |event: Event<'_>| {
        if let (Event::Making { progress, .. }, false) = (event, json) {
            meter.show(progress);
        }
    };
    let cancel = stop_on_signal("the sample")?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = threads.map_or(cores, usize::from);
    let found = workflow::converge(path, samples, &Session { listener: &listener, cancel, threads });
    meter.clear();
    let found = found?;
    if json {
        let field = |error: &LabelError| {
            json!({
                "name": error.quantity,
                "mean": error.mean(),
                "standard_error": error.standard_error(),
                "greatest": error.greatest(),
                "samples": error.samples,
                "snapshots": error.snapshots,
            })
        };
        let fields: Vec<Value> = found.quantities.iter().map(field).collect();
        let object = json!({ "finer": found.discretisation, "samples": found.numbers, "label_errors": fields });
        return say(&object.to_string());
    }
    say(&format!("{}: {}, solved finer: {}", path.display(), counted(samples, "sample"), found.discretisation))?;
    found.quantities.iter().try_for_each(|error| {
        let spread = error.standard_error().map_or_else(String::new, |spread| format!(" ± {}", percent(spread)));
        let (mean, most) = (percent(error.mean()), percent(error.greatest()));
        say(&format!("  {:18} mean relative L2 {mean}{spread}, greatest {most}", error.quantity))?;
        let count = error.snapshots.len();
        let snapshots = [2, 3, 4, 6, 11, count].into_iter().filter(|number| (1..=count).contains(number));
        let shown: Vec<_> = snapshots.map(|n| format!("{n}: {}", percent(error.snapshots[n - 1]))).collect();
        if shown.is_empty() { Ok(()) } else { say(&format!("  {:18} by snapshot {}", "", shown.join(", "))) }
    })
}

/// Writes a picture where it was asked for, else beside the data; where this folder cannot be written, as with shared data, in the
/// current one. Its path.
pub(super) fn draw(sheet: &Sheet, asked: Option<&Path>, data: &Path) -> Result<PathBuf> {
    let picture = sheet.draw().png(None)?;
    let target = asked.map_or_else(|| picture_path(data), Path::to_owned);
    let Err(refused) = write_file(&target, &picture) else { return Ok(target) };
    let here = target.file_name().map(PathBuf::from).filter(|here| asked.is_none() && *here != target);
    match here.map(|here| write_file(&here, &picture).map(|()| here)) {
        Some(Ok(here)) => Ok(here),
        _ => Err(refused.into()),
    }
}

/// `NAME-check.png` in the folder of NAME.
fn picture_path(path: &Path) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    path.with_file_name(format!("{name}-check.png"))
}

fn object(dataset: &Dataset, fields: &[(FieldEntry, Statistics)], picture: Option<&Path>) -> Result<Value> {
    let manifest = dataset.manifest();
    let split = dataset.split()?;
    let field = |(field, statistics): &(FieldEntry, Statistics)| {
        let some = statistics.least <= statistics.most;
        let number = |value: f64| if some { json!(value) } else { Value::Null };
        json!({
            "name": field.name,
            "role": field.role,
            "unit": field.unit,
            "shape": field.shape,
            "common": field.common,
            "normalise": field.normalise,
            "least": number(statistics.least.into()),
            "most": number(statistics.most.into()),
            "mean": number(statistics.mean),
            "deviation": number(statistics.deviation),
            "missing": statistics.missing,
            "infinite": statistics.infinite,
            "sha256": field.sha256,
        })
    };
    Ok(json!({
        "dataset": dataset.folder(),
        "problem": manifest.problem,
        "samples": manifest.samples,
        "seed": manifest.seed,
        "generator": manifest.generator,
        "lamo": manifest.lamo,
        "parameters": manifest.parameters,
        "grid": manifest.grid,
        "ragged": manifest.ragged.as_ref().map(|ragged| {
            let [least, most] = ragged.range();
            json!({ "points": ragged.points, "least": least, "most": most, "sha256": ragged.sha256 })
        }),
        "cells": manifest.triangles.as_ref().map(|triangles| {
            let Triangles { cells, count, common, sha256, .. } = triangles;
            json!({ "cells": cells, "triangles": count, "common": common, "sha256": sha256 })
        }),
        "times": manifest.times,
        "split": { "rule": manifest.split, "train": split.train.len(), "test": split.test.len(), "sha256": split.hash() },
        "at_rest": manifest.at_rest,
        "sources": manifest.sources,
        "fields": fields.iter().map(field).collect::<Vec<_>>(),
        "verified": true,
        "picture": picture,
    }))
}

fn heading(dataset: &Dataset) -> Result<String> {
    let manifest = dataset.manifest();
    let parameters: Vec<_> = manifest.parameters.iter().map(|(key, value)| format!("{key}={value}")).collect();
    let Manifest { problem, samples, seed, generator, lamo, split, .. } = manifest;
    let origin = match dataset.is_imported() {
        true => {
            let files: Vec<_> = manifest.sources.iter().map(|source| source.file.as_str()).take(FILES).collect();
            let more = manifest.sources.len() - files.len();
            let more = if more > 0 { format!(" and {more} more files") } else { String::new() };
            format!("imported from {}{more}", files.join(", "))
        }
        false => format!("seed {seed}, generator {generator}"),
    };
    let hash = dataset.split()?.hash();
    let parameters = if parameters.is_empty() { String::new() } else { format!("{}\n", parameters.join(" ")) };
    let samples = match manifest.ragged {
        Some(_) => format!("{} on {}", counted(*samples, "sample"), dataset.grid_words()),
        None => counted(*samples, "sample"),
    };
    let cells = manifest.triangles.as_ref().map(|Triangles { cells, count, common, .. }| {
        let stored = if *common { ", the same in all samples" } else { "" };
        format!("{}, drawn as {}{stored}\n", counted(*cells as usize, "cell"), counted(*count, "triangle"))
    });
    let cells = cells.unwrap_or_default();
    let at_rest = dataset.at_rest().map_or_else(String::new, |text| format!("\n{text}"));
    Ok(format!("{problem}: {samples}, {origin}, lamo {lamo}\n{cells}{parameters}{split}, hash {hash}{at_rest}"))
}

fn line(field: &FieldEntry, statistics: &Statistics) -> String {
    let role = match field.role {
        Role::Position => "position",
        Role::Input => "input",
        Role::Output => "output",
    };
    let Statistics { least, most, mean, deviation, missing, infinite } = statistics;
    let FieldEntry { name, unit, .. } = field;
    let shape = format!("{:?}", field.shape);
    let range = format!("{least:>11.4e} {most:>11.4e} {mean:>11.4e} {deviation:>11.4e}");
    format!("{name:18} {role:8} {shape:15} {unit:>4} {range} {missing:>5} {infinite:>5}  verified")
}

/// Draws a few samples, and a few snapshots of each time series. Fields are drawn on the positions of their points, if the
/// data set has positions. Fields with very many values are not drawn; `None` where no field is.
fn sheet(dataset: &Dataset) -> Result<Option<Sheet>> {
    let manifest = dataset.manifest();
    let samples = evenly(dataset.samples(), ROWS);
    let grid = manifest.grid.shape();
    let small = |field: &&FieldEntry| field.shape.iter().product::<usize>() <= file::LARGEST_SAMPLE;
    let fields = manifest.fields.iter().filter(small);
    let (positions, drawn): (Vec<_>, Vec<_>) = fields.partition(|field| field.role == Role::Position);
    let is_volume = grid.len() == 3; // is drawn as cuts
    let at_points =
        |field: &&&FieldEntry| !is_volume && field.shape.len() == grid.len() + 1 && field.shape.last() > Some(&1);
    let layouts = positions.iter().find(at_points).map(|field| read_layouts(dataset, field, &samples)).transpose()?;
    let mut columns = Vec::new();
    // Points of different numbers are drawn at their positions only.
    let drawn = drawn.into_iter().filter(|field| layouts.is_some() || !manifest.is_ragged_field(field));
    for field in drawn {
        columns.extend(field_columns(dataset, field, &samples, layouts.as_ref())?);
    }
    let title = match dataset.is_imported() {
        true => format!("{}  imported", manifest.problem),
        false => format!("{}  seed {}", manifest.problem, manifest.seed),
    };
    let about = match manifest.grid {
        Grid::Volume { rows, columns, layers } => Some(note_on_cuts([rows, columns, layers])),
        _ => None,
    };
    let rows = samples.iter().map(|sample| format!("sample {sample}")).collect();
    let sheet = Sheet { title, about, rows, columns };
    Ok(Some(sheet).filter(|sheet| !sheet.columns.is_empty()))
}

/// A column for each channel of a field and each of a few snapshots. A deformation is drawn on its own deformed positions.
fn field_columns(
    dataset: &Dataset,
    field: &FieldEntry,
    samples: &[usize],
    layouts: Option<&Layouts>,
) -> Result<Vec<Column>> {
    let grid = dataset.manifest().grid.shape();
    let (series, points, channels) = axes(&field.shape, &grid);
    let snapshots: usize = series.iter().product();
    let plane = [points.first(), points.get(1)].map(|side| side.copied().unwrap_or(1));
    let read = |sample: &usize| dataset.gather(&field.name, std::slice::from_ref(sample));
    let values: Vec<Vec<f32>> = samples.iter().map(read).collect::<Result<_, _>>()?;
    let (names, unit) = (channel_names(&field.name, channels), unit(&field.unit));
    let deforms = is_deformation(&field.name, channels) && points.len() < 3;
    let first = if deforms { 2 } else { 0 }; // channels 0 and 1 are the positions
    let chosen = evenly(snapshots, SNAPSHOTS);
    let mut columns = Vec::new();
    for (channel, snapshot) in (first..channels).flat_map(|channel| chosen.iter().map(move |&chosen| (channel, chosen)))
    {
        let part = |sample: usize, channel: usize| {
            let size = values[sample].len() / snapshots; // a sample may have its own number of points
            values[sample][snapshot * size..][..size].iter().copied().skip(channel).step_by(channels)
        };
        let deformed = |sample| {
            let positions: Vec<f32> = part(sample, 0).zip(part(sample, 1)).flat_map(|(x, y)| [x, y]).collect();
            layout(plane, &positions, 2)
        };
        let when = match snapshots {
            1 => String::new(),
            _ => format!(", {}", snapshot_name(snapshot, snapshots, &dataset.manifest().times)),
        };
        if let [rows, columns_of_row, layers] = *points {
            for cut in cuts([rows, columns_of_row, layers]) {
                let cell = |sample| {
                    let values: Vec<f32> = part(sample, channel).collect();
                    cut.points.iter().map(|&point| values[point]).collect()
                };
                columns.push(Column {
                    title: format!("{}, {}{when}{unit}", names[channel], cut.name),
                    field: names[channel].clone(),
                    plane: cut.plane,
                    cells: (0..samples.len()).map(cell).collect(),
                    layouts: None,
                    over_time: false,
                });
            }
            continue;
        }
        columns.push(Column {
            title: format!("{}{when}{unit}", names[channel]),
            field: names[channel].clone(),
            plane,
            cells: (0..samples.len()).map(|sample| part(sample, channel).collect()).collect(),
            layouts: if deforms {
                Some(Layouts { rows: (0..samples.len()).map(deformed).collect(), unit: unit.clone() })
            } else {
                layouts.cloned().filter(|_| points == grid)
            },
            over_time: field.axes.as_deref() == Some("t"),
        });
    }
    Ok(columns)
}

/// The axes of time, the axes of the points, and the number of channels.
fn axes<'a>(shape: &'a [usize], grid: &[usize]) -> (&'a [usize], &'a [usize], usize) {
    let (shape, channels) = match shape.split_last() {
        Some((&channels, rest)) if rest.ends_with(grid) && !shape.ends_with(grid) => (rest, channels),
        _ => (shape, 1),
    };
    let points = if shape.ends_with(grid) { grid.len() } else { shape.len().min(2) };
    let (series, points) = shape.split_at(shape.len() - points);
    (series, points, channels)
}

/// The positions of the points of each sample.
fn read_layouts(dataset: &Dataset, field: &FieldEntry, samples: &[usize]) -> Result<Layouts> {
    let grid = dataset.manifest().grid.shape();
    let space = field.shape.last().copied().unwrap_or(0);
    if field.shape[..field.shape.len() - 1] != grid {
        let (thing, expected) = (format!("positions `{}`", field.name), format!("shape {grid:?} and coordinates"));
        return Err(Refusal::new(thing, expected, format!("{:?}", field.shape)).into());
    }
    let plane = [grid[0], grid.get(1).copied().unwrap_or(1)];
    let row = |sample: &usize| {
        let positions = dataset.gather(&field.name, std::slice::from_ref(sample))?;
        let drawn = dataset.drawn(*sample)?;
        Ok(match drawn.is_empty() {
            true if space < 3 || plane[1] > 1 => layout(plane, &positions, space),
            _ => Layout::of_points(&positions, space, &drawn),
        })
    };
    let rows = samples.iter().map(row).collect::<Result<_>>()?;
    Ok(Layouts { rows, unit: unit(&field.unit) })
}

/// `[points, space]` positions as a mesh, or as a cloud if the grid has one column only.
fn layout(plane: [usize; 2], positions: &[f32], space: usize) -> Layout {
    match (plane, Layout::cloud(positions, space)) {
        ([_, 1], cloud) => cloud,
        (plane, Layout::Cloud(positions, _)) => Layout::Mesh(plane, positions),
        (_, other) => other,
    }
}

#[cfg(test)]
mod tests {
    use super::axes;

    #[test]
    fn channels_and_snapshots_are_told_apart_by_the_grid() {
        let grid = [101, 31];
        assert_eq!(axes(&[20, 101, 31, 4], &grid), (&[20][..], &grid[..], 4));
        assert_eq!(axes(&[20, 101, 31], &grid), (&[20][..], &grid[..], 1));
        assert_eq!(axes(&[101, 31, 1], &grid), (&[][..], &grid[..], 1));
        assert_eq!(axes(&[101], &grid), (&[][..], &[101][..], 1));
        assert_eq!(axes(&[7, 5, 3], &grid), (&[7][..], &[5, 3][..], 1));
    }
}
