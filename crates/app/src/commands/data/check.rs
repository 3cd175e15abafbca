//! `lamo data check`: is the data set whole, and does it look right?

use super::file;
use crate::commands::{say, spread};
use crate::plot::{Column, Sheet};
use anyhow::{Context, Result, bail};
use clap::Args;
use lamo::dataset::{Dataset, FieldEntry, MANIFEST, Manifest, RoleEntry, Statistics};
use lamo::field::Field;
use lamo_physics::Grid;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Samples drawn, one per row of the picture.
const ROWS: usize = 4;
/// Frames drawn of a film.
const FRAMES: usize = 3;

/// The field of a body that deforms, and its channels: displacements are drawn where the points are at that time.
const MOVING: &str = "deformation";
const MOVING_CHANNELS: [&str; 4] = ["x", "y", "u_x", "u_y"];

/// `lamo data check`
#[derive(Args)]
pub(crate) struct Check {
    /// Folder of a data set, or an array file.
    path: PathBuf,
    /// PNG file for the picture; PATH-check.png beside it unless given.
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,
    /// Print one JSON object; a picture only where --picture asks for it.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(options: &Check) -> Result<()> {
    let Check { path, picture, json } = options;
    if path.is_file() && path.file_name() != Some(MANIFEST.as_ref()) {
        return file::run(path, picture.as_deref(), *json);
    }
    let dataset = Dataset::open(path)?;
    for field in &dataset.manifest().fields {
        Field::on(dataset.manifest().grid.into(), &field.name, &field.unit, &field.shape)?;
    }
    dataset.verify()?;
    let mut fields = Vec::new();
    for field in &dataset.manifest().fields {
        fields.push((field, dataset.statistics(&field.name)?));
    }
    let target = picture.clone().unwrap_or_else(|| beside(path));
    let drawn = if *json && picture.is_none() { None } else { Some(draw(&sheet(&dataset)?, &target)?) };
    if *json {
        say(&object(&dataset, &fields, drawn.as_deref())?.to_string())?;
    } else {
        say(&heading(&dataset)?)?;
        say(&format!(
            "{:18} {:8} {:15} {:>4} {:>11} {:>11} {:>11} {:>11} {:>5} {:>5}  hash",
            "field", "role", "shape", "unit", "least", "most", "mean", "deviation", "NaN", "inf"
        ))?;
        for (field, statistics) in &fields {
            say(&line(field, statistics))?;
        }
        drawn.map_or(Ok(()), |drawn| say(&format!("picture: {}", drawn.display())))?;
    }
    let odd = fields.iter().filter(|(_, statistics)| statistics.missing + statistics.infinite > 0);
    let odd: Vec<_> =
        odd.map(|(field, found)| format!("{} of `{}`", found.missing + found.infinite, field.name)).collect();
    if !odd.is_empty() {
        let name = path.display();
        bail!(
            "{name}: expected finite values only, found NaN or infinity in {}; make the data set again",
            odd.join(" and ")
        );
    }
    Ok(())
}

/// Writes a picture; its path.
pub(super) fn draw(sheet: &Sheet, path: &Path) -> Result<PathBuf> {
    sheet
        .draw()
        .write(path)
        .with_context(|| format!("{}: the picture cannot be written, choose another --picture", path.display()))?;
    Ok(path.to_owned())
}

/// `NAME-check.png` beside NAME.
pub(super) fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    path.with_file_name(format!("{name}-check.png"))
}

fn object(dataset: &Dataset, fields: &[(&FieldEntry, Statistics)], picture: Option<&Path>) -> Result<Value> {
    let manifest = dataset.manifest();
    let split = dataset.split()?;
    let field = |(field, statistics): &(&FieldEntry, Statistics)| {
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
        "times": manifest.times,
        "split": { "rule": manifest.split, "train": split.train.len(), "test": split.test.len(), "sha256": split.hash() },
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
            let files: Vec<_> = manifest.sources.iter().map(|source| source.file.as_str()).collect();
            format!("imported from {}", files.join(", "))
        }
        false => format!("seed {seed}, generator {generator}"),
    };
    let hash = dataset.split()?.hash();
    let parameters = if parameters.is_empty() { String::new() } else { format!("{}\n", parameters.join(" ")) };
    Ok(format!("{problem}: {samples} samples, {origin}, lamo {lamo}\n{parameters}{split}, hash {hash}"))
}

fn line(field: &FieldEntry, statistics: &Statistics) -> String {
    let role = match field.role {
        RoleEntry::Position => "position",
        RoleEntry::Input => "input",
        RoleEntry::Output => "output",
    };
    let Statistics { least, most, mean, deviation, missing, infinite } = statistics;
    let FieldEntry { name, unit, .. } = field;
    let shape = format!("{:?}", field.shape);
    let range = format!("{least:>11.4e} {most:>11.4e} {mean:>11.4e} {deviation:>11.4e}");
    format!("{name:18} {role:8} {shape:15} {unit:>4} {range} {missing:>5} {infinite:>5}  verified")
}

/// A few samples from first to last; of a film a few frames from first to last; where there are positions, on them.
fn sheet(dataset: &Dataset) -> Result<Sheet> {
    let samples = spread(dataset.samples(), ROWS);
    let (places, drawn): (Vec<_>, Vec<_>) =
        dataset.manifest().fields.iter().partition(|field| field.role == RoleEntry::Position);
    let places = places.first().filter(|field| field.shape.last() == Some(&2)); // on a line there is nothing to bend
    let places = places.map(|field| positions(dataset, field, &samples)).transpose()?;
    let grid = Grid::from(dataset.manifest().grid).shape();
    let mut columns = Vec::new();
    for field in drawn {
        let (films, points, channels) = axes(&field.shape, &grid);
        let frames: usize = films.iter().product();
        let plane = [points.first(), points.get(1)].map(|side| side.copied().unwrap_or(1));
        let values = dataset.gather(&field.name, &samples)?;
        let size = plane[0] * plane[1];
        let moves = field.name == MOVING && channels == MOVING_CHANNELS.len();
        let first = if moves { 2 } else { 0 }; // x and y are where the others are drawn
        let shown = spread(frames, FRAMES);
        for (channel, &frame) in (first..channels).flat_map(|channel| shown.iter().map(move |frame| (channel, frame))) {
            let part = |sample: usize, channel: usize| {
                let start = (sample * frames + frame) * size * channels + channel;
                values[start..].iter().copied().step_by(channels).take(size)
            };
            let deformed = |sample| part(sample, 0).zip(part(sample, 1)).map(|(x, y)| [x, y]).collect();
            let name = match channels {
                _ if moves => MOVING_CHANNELS[channel].to_owned(),
                1 => field.name.replace('_', " "),
                _ => format!("{} {}", field.name.replace('_', " "), channel + 1),
            };
            columns.push(Column {
                title: if frames == 1 { name.clone() } else { format!("{name} {}/{frames}", frame + 1) },
                field: name,
                plane,
                cells: (0..samples.len()).map(|sample| part(sample, channel).collect()).collect(),
                positions: if moves {
                    Some((0..samples.len()).map(deformed).collect())
                } else {
                    places.clone().filter(|_| points == grid)
                },
            });
        }
    }
    let title = match dataset.is_imported() {
        true => format!("{}  imported", dataset.manifest().problem),
        false => format!("{}  seed {}", dataset.manifest().problem, dataset.manifest().seed),
    };
    Ok(Sheet { title, rows: samples.iter().map(|sample| format!("sample {sample}")).collect(), columns })
}

/// The axes of frames, those of points, and the number of values at each point.
fn axes<'a>(shape: &'a [usize], grid: &[usize]) -> (&'a [usize], &'a [usize], usize) {
    let (shape, channels) = match shape.split_last() {
        Some((&channels, rest)) if rest.ends_with(grid) && !shape.ends_with(grid) => (rest, channels),
        _ => (shape, 1),
    };
    let points = if shape.ends_with(grid) { grid.len() } else { shape.len().min(2) };
    let (films, points) = shape.split_at(shape.len() - points);
    (films, points, channels)
}

/// `[samples, points]` x and y
fn positions(dataset: &Dataset, field: &FieldEntry, samples: &[usize]) -> Result<Vec<Vec<[f32; 2]>>> {
    let values = dataset.gather(&field.name, samples)?;
    let points: usize = field.shape.iter().product::<usize>() / 2;
    if field.shape.last() != Some(&2) || points != Grid::from(dataset.manifest().grid).points() {
        let (name, shape) = (&field.name, &field.shape);
        bail!("positions `{name}`: expected x and y for each point of the grid, found shape {shape:?}");
    }
    Ok(values.as_chunks::<2>().0.chunks(points).map(<[_]>::to_vec).collect())
}

#[cfg(test)]
mod tests {
    use super::axes;

    #[test]
    fn channels_are_told_from_frames() {
        let grid = [101, 31];
        assert_eq!(axes(&[20, 101, 31, 4], &grid), (&[20][..], &grid[..], 4));
        assert_eq!(axes(&[20, 101, 31], &grid), (&[20][..], &grid[..], 1));
        assert_eq!(axes(&[101, 31, 1], &grid), (&[][..], &grid[..], 1));
        assert_eq!(axes(&[101], &grid), (&[][..], &[101][..], 1));
        assert_eq!(axes(&[7, 5, 3], &grid), (&[7][..], &[5, 3][..], 1));
    }
}
