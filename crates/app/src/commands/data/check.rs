//! `lamo data check`: is the data set whole, and does it look right?

use crate::commands::{say, spread};
use crate::plot::{Column, Sheet};
use anyhow::{Context, Result, bail};
use clap::Args;
use lamo::dataset::{Dataset, FieldEntry, RoleEntry, Rule, Statistics};
use lamo_physics::Grid;
use std::path::PathBuf;

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
    /// Folder of the data set.
    dataset: PathBuf,
    /// PNG file for the picture; DIR-check.png beside the folder unless given.
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,
}

pub(crate) fn run(options: &Check) -> Result<()> {
    let dataset = Dataset::open(&options.dataset)?;
    dataset.verify()?;
    say(&heading(&dataset))?;
    say(&format!(
        "{:18} {:8} {:15} {:>4} {:>11} {:>11} {:>11} {:>11} {:>5} {:>5}  hash",
        "field", "role", "shape", "unit", "least", "most", "mean", "deviation", "NaN", "inf"
    ))?;
    let mut odd = Vec::new();
    for field in &dataset.manifest().fields {
        let statistics = dataset.statistics(&field.name)?;
        say(&line(field, &statistics))?;
        if statistics.missing + statistics.infinite > 0 {
            odd.push(format!("{} of `{}`", statistics.missing + statistics.infinite, field.name));
        }
    }
    let path = options.picture.clone().unwrap_or_else(|| beside(&options.dataset));
    let image = sheet(&dataset)?.draw();
    image
        .write(&path)
        .with_context(|| format!("{}: the picture cannot be written, choose another --picture", path.display()))?;
    say(&format!("picture: {}", path.display()))?;
    if !odd.is_empty() {
        let name = options.dataset.display();
        bail!(
            "{name}: expected finite values only, found NaN or infinity in {}; make the data set again",
            odd.join(" and ")
        );
    }
    Ok(())
}

fn beside(folder: &std::path::Path) -> PathBuf {
    let name = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    folder.with_file_name(format!("{name}-check.png"))
}

fn heading(dataset: &Dataset) -> String {
    let manifest = dataset.manifest();
    let split = match &manifest.split {
        Rule::Ends { train, test } => format!("first {train} to train, last {test} to test"),
        Rule::Random { train, test, seed } => format!("{train} to train and {test} to test, drawn with seed {seed}"),
        Rule::Indices { train, test } => format!("{} to train and {} to test, listed", train.len(), test.len()),
    };
    let parameters: Vec<_> = manifest.parameters.iter().map(|(key, value)| format!("{key}={value}")).collect();
    format!(
        "{}: {} samples, seed {}, generator {}, lamo {}\n{}\n{split}",
        manifest.problem,
        manifest.samples,
        manifest.seed,
        manifest.generator,
        manifest.lamo,
        parameters.join(" ")
    )
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
    let places = places.first().map(|field| positions(dataset, field, &samples)).transpose()?;
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
    let title = format!("{}  seed {}", dataset.manifest().problem, dataset.manifest().seed);
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
