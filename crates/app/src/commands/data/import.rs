//! `lamo data import`: public benchmark files, or arrays of one's own, become a data set.

use super::make::report;
use crate::commands::progress::Meter;
use crate::commands::say;
use crate::commands::stop::stop_on_request;
use anyhow::{Result, bail};
use clap::Args;
use lamo::data::dataset::{Normalise, Role, Rule};
use lamo::data::formats;
use lamo::data::import::catalogue::CATALOGUE;
use lamo::data::import::{ArrayName, Own, OwnField};
use lamo::workflow::{self, Event, Session};
use lamo_geometry::Grid;
use std::fmt::Write as _;
use std::path::PathBuf;

/// `lamo data import`
#[derive(Args)]
pub(crate) struct Import {
    /// Files of a benchmark, or folders that hold them at any depth.
    #[arg(value_name = "FILE|DIR", requires = "benchmark")]
    files: Vec<PathBuf>,
    /// Which benchmark; the long help lists their files.
    #[arg(long = "as", value_name = "BENCHMARK", requires = "files", conflicts_with_all = ["positions", "input", "output"])]
    benchmark: Option<String>,
    /// Keep every sample of the benchmark's files, not only those of the official split.
    #[arg(long, requires = "benchmark")]
    all: bool,
    /// Where the points lie: [samples, points, 2], or [points, 2] for all samples (1 to 3 coordinates); X,Y joins two arrays.
    #[arg(long, value_name = "ARRAY")]
    positions: Vec<String>,
    /// A given field; the same name again adds samples, A,B joins two arrays as its channels.
    #[arg(long, value_name = "NAME=ARRAY")]
    input: Vec<String>,
    /// A field to be learned; the same name again adds samples, A,B joins two arrays as its channels.
    #[arg(long, value_name = "NAME=ARRAY", required_unless_present = "benchmark")]
    output: Vec<String>,
    /// Times of the frames of films.
    #[arg(long, value_name = "ARRAY", conflicts_with = "benchmark")]
    time: Option<String>,
    /// ROWSxCOLUMNS, line:POINTS or cloud:POINTS; `line` and `cloud` alone count the positions.
    #[arg(long, required_unless_present = "benchmark", conflicts_with = "benchmark")]
    grid: Option<String>,
    /// Axes of a field's arrays, a letter each: n samples, t frames, x rows, y columns, p points, c channels.
    #[arg(long, value_name = "NAME=LETTERS", conflicts_with = "benchmark")]
    axes: Vec<String>,
    /// Keep every K-th row and column of the grid.
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..), conflicts_with = "benchmark")]
    stride: u16,
    /// Samples to train on: the first ones; 0 for a set that is only to be judged by.
    #[arg(long, value_name = "N", conflicts_with = "benchmark")]
    train: Option<usize>,
    /// Samples to test on: the last ones.
    #[arg(long, value_name = "N", conflicts_with = "benchmark")]
    test: Option<usize>,
    /// Draw both at random with this seed instead.
    #[arg(long, value_name = "S", requires = "train", requires = "test", value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    seed: Option<u64>,
    /// Unit of a field.
    #[arg(long, value_name = "NAME=UNIT", conflicts_with = "benchmark")]
    unit: Vec<String>,
    /// A field that training leaves as it is; other inputs and outputs are normalised.
    #[arg(long, value_name = "NAME", conflicts_with = "benchmark")]
    raw: Vec<String>,
    /// Name of the problem; that of the folder unless given.
    #[arg(long, conflicts_with = "benchmark")]
    name: Option<String>,
    /// Folder to make; meanwhile the samples are in DIR.partial.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

/// The public files, for the long help.
pub(crate) fn public_files() -> String {
    let mut text = "Public files, known by name in any folder and format:".to_owned();
    for row in CATALOGUE {
        let _ = write!(text, "\n  {:14} {}", row.name, row.files().join(", "));
    }
    text
}

pub(crate) fn run(options: &Import) -> Result<()> {
    let (title, import) = match &options.benchmark {
        Some(name) => (name.clone(), workflow::import_public(name, &options.files, options.all)?),
        None => {
            let own = options.own()?;
            (own.name.clone(), workflow::import_own(&own)?)
        }
    };
    if options.benchmark.is_some() && !options.all {
        say(&format!(
            "{title}: the {} samples of the official split; --all keeps the rest",
            import.manifest().samples
        ))?;
    }
    let meter = Meter::of_bytes(&title);
    let listener = |event: Event<'_>| {
        if let Event::Importing(transfer) = event {
            meter.show(transfer);
        }
    };
    let cancel = stop_on_request("what is being written")?;
    let outcome = workflow::import(&import, &options.out, &Session { listener: &listener, cancel, threads: 1 });
    let time = meter.clear();
    report(outcome?, "imported", &time, &options.out)
}

impl Import {
    fn own(&self) -> Result<Own> {
        let mut fields: Vec<OwnField> = Vec::new();
        for text in &self.positions {
            add(&mut fields, "positions", Role::Position, text);
        }
        for (role, texts) in [(Role::Input, &self.input), (Role::Output, &self.output)] {
            for text in texts {
                let (name, arrays) =
                    pair(text, "--input and --output", "NAME=ARRAY, such as a=perm.npy or u=flow.mat:sol")?;
                add(&mut fields, name, role, arrays);
            }
        }
        for text in &self.axes {
            let (name, axes) = pair(text, "--axes", "NAME=LETTERS, such as u=xytn")?;
            named(&mut fields, name, "--axes")?.axes = Some(axes.into());
        }
        for text in &self.unit {
            let (name, unit) = pair(text, "--unit", "NAME=UNIT, such as u=m/s")?;
            named(&mut fields, name, "--unit")?.unit = unit.into();
        }
        for name in &self.raw {
            named(&mut fields, name, "--raw")?.normalise = Normalise::None;
        }
        let folder = self.out.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = self.name.clone().or(folder).unwrap_or_else(|| "own".into());
        let grid = self.grid(&fields)?;
        let times = self.time.as_deref().map(ArrayName::parse);
        let mut own = Own { name, grid, stride: self.stride.into(), fields, times, split: None };
        own.split = self.split(&own)?;
        Ok(own)
    }

    fn grid(&self, fields: &[OwnField]) -> Result<Grid> {
        let text = self.grid.as_deref().unwrap_or_default();
        let number = |text: &str| text.parse::<usize>().ok().filter(|&count| count > 0);
        let plane = text.split_once('x').and_then(|(rows, columns)| Some((number(rows)?, number(columns)?)));
        if let Some((rows, columns)) = plane {
            return Ok(Grid::Plane { rows, columns });
        }
        let (kind, count) = text.split_once(':').map_or((text, None), |(kind, count)| (kind, Some(count)));
        let points = match count {
            Some(count) => number(count),
            None if matches!(kind, "line" | "cloud") => Some(counted(fields)?),
            None => None,
        };
        match (kind, points) {
            ("line", Some(points)) => Ok(Grid::Line { points }),
            ("cloud", Some(points)) => Ok(Grid::Cloud { points }),
            _ => bail!("--grid: expected ROWSxCOLUMNS, line:POINTS or cloud:POINTS, found `{text}`; such as 64x64"),
        }
    }

    /// Both numbers given, or one and the rest; none for the library's own choice.
    fn split(&self, own: &Own) -> Result<Option<Rule>> {
        Ok(match (self.train, self.test, self.seed) {
            (Some(train), Some(test), Some(seed)) => Some(Rule::Random { train, test, seed }),
            (Some(train), Some(test), None) => Some(Rule::Ends { train, test }),
            (None, None, _) => None,
            (train, test, _) => {
                let samples = own.import()?.manifest().samples;
                let rest = |given: Option<usize>| samples.saturating_sub(given.unwrap_or(0));
                Some(Rule::Ends { train: train.unwrap_or(rest(test)), test: test.unwrap_or(rest(train)) })
            }
        })
    }
}

fn pair<'a>(text: &'a str, flag: &str, form: &str) -> Result<(&'a str, &'a str)> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() && !value.is_empty() => Ok((name, value)),
        _ => bail!("{flag}: expected {form}, found `{text}`"),
    }
}

/// A new field, or more samples of one that is there.
fn add(fields: &mut Vec<OwnField>, name: &str, role: Role, arrays: &str) {
    let whole = ArrayName::parse(arrays); // a file may have a comma in its name
    let arrays =
        if whole.path.exists() { vec![whole] } else { arrays.split(',').map(ArrayName::parse).collect::<Vec<_>>() };
    if let Some(field) = fields.iter_mut().find(|field| field.name == name && field.role == role) {
        return field.arrays.push(arrays);
    }
    let normalise = if role == Role::Position { Normalise::None } else { Normalise::Channels };
    fields.push(OwnField { name: name.into(), role, unit: "1".into(), normalise, axes: None, arrays: vec![arrays] });
}

fn named<'a>(fields: &'a mut [OwnField], name: &str, flag: &str) -> Result<&'a mut OwnField> {
    let known: Vec<_> = fields.iter().map(|field| field.name.clone()).collect();
    match fields.iter_mut().find(|field| field.name == name) {
        Some(field) => Ok(field),
        None => bail!("{flag}: expected one of {}, found `{name}`", known.join(", ")),
    }
}

/// Points by the array of positions: its axis p, or the last but that of x and y.
fn counted(fields: &[OwnField]) -> Result<usize> {
    let Some(field) = fields.iter().find(|field| field.role == Role::Position) else {
        bail!("--grid: expected line:POINTS or cloud:POINTS where there are no --positions to count, found no number");
    };
    let arrays = &field.arrays[0];
    let shape = formats::describe(&arrays[0].path, arrays[0].variable.as_deref())?.shape;
    let by_letter = field.axes.as_deref().and_then(|axes| axes.find('p'));
    let place = by_letter.or_else(|| shape.len().checked_sub(if arrays.len() > 1 { 1 } else { 2 })).unwrap_or(0);
    Ok(shape.get(place).copied().unwrap_or(1))
}
