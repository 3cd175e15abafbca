//! Weights on disk: a safetensors state dict under the authors' names, and the model folder around it.
//!
//! A model folder holds `model.toml` (which model, on which task) and `weights.safetensors`. Nothing is written unless
//! all of it can be: files appear under their name by a rename, complete or not at all.

use crate::atomic;
use crate::data::{ElementKind, decode};
use crate::layers::Parameters;
use crate::models::{self, Choice, Refusal, Task};
use lamo_geometry::Grid;
use lamo_tensor::{Graph, Section};
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensorError, SafeTensors};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// File of a model folder that says which model it is.
pub const DESCRIPTION: &str = "model.toml";
/// File of a model folder that holds the parameters.
pub const WEIGHTS: &str = "weights.safetensors";

/// Why weights cannot be read or written: one sentence.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be opened, read or written.
    #[error("{}: {reason}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        reason: std::io::Error,
    },
    /// Not what its name promises.
    #[error("{} {reason}", path.display())]
    Malformed {
        /// Which file.
        path: PathBuf,
        /// The rest of the sentence.
        reason: String,
    },
    /// The tensors are not those of the model.
    #[error("{} does not fit the model: {}", path.display(), difference.sentence())]
    Mismatch {
        /// Which file.
        path: PathBuf,
        /// What differs.
        difference: Difference,
    },
    /// The model cannot be built.
    #[error(transparent)]
    Model(#[from] Refusal),
}

impl Error {
    pub(crate) fn file(path: &Path, reason: std::io::Error) -> Error {
        Error::File { path: path.to_owned(), reason }
    }

    pub(crate) fn malformed(path: &Path, reason: impl Into<String>) -> Error {
        Error::Malformed { path: path.to_owned(), reason: reason.into() }
    }
}

/// How the tensors of a file differ from the parameters of a model.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// Parameters without a tensor.
    pub missing: Vec<String>,
    /// Tensors without a parameter.
    pub extra: Vec<String>,
    /// `(name, shape in the file, shape of the parameter)`
    pub misshapen: Vec<(String, Vec<usize>, Vec<usize>)>,
}

impl Difference {
    fn is_empty(&self) -> bool {
        self.missing.is_empty() && self.extra.is_empty() && self.misshapen.is_empty()
    }

    fn sentence(&self) -> String {
        let shapes = |(name, found, expected): &(String, Vec<usize>, Vec<usize>)| {
            format!("{name} has shape {found:?} instead of {expected:?}")
        };
        let parts = [("it lacks ", self.missing.clone()), ("it has in excess ", self.extra.clone())]
            .into_iter()
            .chain([("", self.misshapen.iter().map(shapes).collect())]);
        let parts: Vec<_> =
            parts.filter(|(_, names)| !names.is_empty()).map(|(verb, names)| verb.to_owned() + &few(&names)).collect();
        parts.join("; ")
    }
}

/// At most six names, and how many more there are.
fn few(names: &[String]) -> String {
    const SHOWN: usize = 6;
    let shown = names[..names.len().min(SHOWN)].join(", ");
    if names.len() > SHOWN { format!("{shown} and {} more", names.len() - SHOWN) } else { shown }
}

/// Reads θ, the parameters end to end: exactly the tensors `sections` names, in their shapes. Float32 comes in bit for
/// bit; other floating-point types are converted.
pub fn read(path: &Path, sections: &[Section]) -> Result<Vec<f32>, Error> {
    Contents::read(path)?.values(sections)
}

/// Metadata: SHA-256 of all values, in the files written here.
const CHECKSUM: &str = "sha256";

/// A weights file in memory, its metadata understood.
pub(crate) struct Contents {
    path: PathBuf,
    bytes: Vec<u8>,
    metadata: HashMap<String, String>,
}

impl Contents {
    /// Reads a file and compares its values with its checksum, where it has one.
    pub(crate) fn read(path: &Path) -> Result<Contents, Error> {
        let bytes = std::fs::read(path).map_err(|reason| Error::file(path, reason))?;
        parse(path, &bytes)?;
        let (length, header) = SafeTensors::read_metadata(&bytes)
            .map_err(|error| Error::malformed(path, format!("is no safetensors file: {error}")))?;
        let metadata = header.metadata().clone().unwrap_or_default();
        if let Some(expected) = metadata.get(CHECKSUM) {
            let found = checksum(&bytes[8 + length..]);
            if found != *expected {
                let reason = format!("is damaged: expected values with SHA-256 {expected}, found {found}");
                return Err(Error::malformed(path, reason));
            }
        }
        Ok(Contents { path: path.to_owned(), bytes, metadata })
    }

    pub(crate) fn metadata(&self) -> &HashMap<String, String> {
        &self.metadata
    }

    /// Exactly the tensors `sections` names, end to end.
    pub(crate) fn values(&self, sections: &[Section]) -> Result<Vec<f32>, Error> {
        let path = self.path.as_path();
        let file = parse(path, &self.bytes)?;
        let difference = compare(&file, sections);
        if !difference.is_empty() {
            return Err(Error::Mismatch { path: path.to_owned(), difference });
        }
        let tensors: BTreeMap<_, _> = file.iter().collect();
        let mut parameters = vec![0.0; sections.iter().map(|section| section.shape.count()).sum()];
        for section in sections {
            let values = floats(path, &section.name, &tensors[section.name.as_str()])?;
            parameters[section.range()].copy_from_slice(&values);
        }
        Ok(parameters)
    }
}

fn checksum(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn parse<'a>(path: &Path, bytes: &'a [u8]) -> Result<SafeTensors<'a>, Error> {
    SafeTensors::deserialize(bytes).map_err(|error| {
        let length = bytes.len();
        let reason = match error {
            SafeTensorError::HeaderTooSmall | SafeTensorError::InvalidHeaderLength => {
                format!("is no safetensors file or was cut short: {length} bytes end inside the header")
            }
            SafeTensorError::MetadataIncompleteBuffer => {
                format!("was cut short or damaged: its header promises another length than its {length} bytes")
            }
            other => format!("is no safetensors file: {other}"),
        };
        Error::malformed(path, reason)
    })
}

fn compare(file: &SafeTensors<'_>, sections: &[Section]) -> Difference {
    let tensors: BTreeMap<_, _> = file.iter().collect();
    let expected: BTreeMap<_, _> = sections.iter().map(|section| (section.name.as_str(), &section.shape)).collect();
    let mut difference = Difference::default();
    for section in sections {
        match tensors.get(section.name.as_str()) {
            None => difference.missing.push(section.name.clone()),
            Some(tensor) if tensor.shape() != section.shape.dims() => {
                let (found, expected) = (tensor.shape().to_vec(), section.shape.dims().to_vec());
                difference.misshapen.push((section.name.clone(), found, expected));
            }
            Some(_) => {}
        }
    }
    let unknown = tensors.keys().filter(|name| !expected.contains_key(*name));
    difference.extra.extend(unknown.map(|&name| name.to_owned()));
    difference
}

fn floats(path: &Path, name: &str, tensor: &TensorView<'_>) -> Result<Vec<f32>, Error> {
    if tensor.dtype() == Dtype::F32 {
        return Ok(tensor.data().as_chunks().0.iter().copied().map(f32::from_le_bytes).collect());
    }
    let values = if tensor.dtype() == Dtype::I64 { None } else { doubles(tensor) };
    let values = values.ok_or_else(|| {
        Error::malformed(path, format!("holds {name} as {:?}; parameters are floating-point numbers", tensor.dtype()))
    })?;
    if let Some(value) = values.iter().find(|value| value.is_finite() && !(**value as f32).is_finite()) {
        return Err(Error::malformed(path, format!("holds {value:e} in {name}, too large for float32")));
    }
    Ok(values.iter().map(|&value| value as f32).collect())
}

/// Shape and values of a tensor in double precision.
pub(crate) type Doubles = (Vec<usize>, Vec<f64>);

/// Every tensor of a file by name.
pub(crate) fn read_doubles(path: &Path) -> Result<BTreeMap<String, Doubles>, Error> {
    let bytes = std::fs::read(path).map_err(|reason| Error::file(path, reason))?;
    let file = parse(path, &bytes)?;
    let array = |(name, tensor): (&str, TensorView<'_>)| {
        let values = doubles(&tensor)
            .ok_or_else(|| Error::malformed(path, format!("holds {name} as {:?}, unknown here", tensor.dtype())))?;
        Ok((name.to_owned(), (tensor.shape().to_vec(), values)))
    };
    file.iter().map(array).collect()
}

fn doubles(tensor: &TensorView<'_>) -> Option<Vec<f64>> {
    let kind = match tensor.dtype() {
        Dtype::F64 => ElementKind::F64,
        Dtype::F32 => ElementKind::F32,
        Dtype::F16 => ElementKind::F16,
        Dtype::BF16 => ElementKind::Bf16,
        Dtype::I64 => ElementKind::I64,
        _ => return None,
    };
    let mut values = Vec::new();
    decode(kind, false, tensor.data(), &mut values);
    Some(values)
}

/// Writes θ as float32 tensors in the order of `sections`, which must fill it without gaps; what stood at `path` before
/// is replaced at once.
pub fn write(
    path: &Path,
    sections: &[Section],
    parameters: &[f32],
    metadata: &BTreeMap<String, String>,
) -> Result<(), Error> {
    let mut ranges: Vec<_> = sections.iter().map(Section::range).collect();
    ranges.sort_by_key(|range| range.start);
    let end = ranges.iter().try_fold(0, |end, range| (range.start == end).then_some(range.end));
    if end != Some(parameters.len()) {
        let expected: usize = ranges.iter().map(Range::len).sum();
        let found = parameters.len();
        let reason = format!("cannot be written: expected {expected} values for tensors end to end, found {found}");
        return Err(Error::malformed(path, reason + "; give each tensor its own values"));
    }
    let tensors = sections.iter().map(|section| (section.name.as_str(), section.shape.dims(), section.range()));
    let bytes = serialise(tensors, parameters, metadata);
    atomic::replace(path, &bytes).map_err(|reason| Error::file(path, reason))
}

/// Name, shape and place among the values of each tensor. The `safetensors` crate sorts tensors by name; a state dict
/// keeps the order in which a model declares them.
pub(crate) fn serialise<'a>(
    tensors: impl Iterator<Item = (&'a str, &'a [usize], Range<usize>)>,
    values: &[f32],
    metadata: &BTreeMap<String, String>,
) -> Vec<u8> {
    let values: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let mut entries = Vec::new();
    if !metadata.is_empty() {
        let mut metadata = metadata.clone();
        metadata.insert(CHECKSUM.to_owned(), checksum(&values));
        entries.push(format!("\"__metadata__\":{}", serde_json::json!(metadata)));
    }
    for (name, shape, range) in tensors {
        let (name, shape) = (serde_json::json!(name), serde_json::json!(shape));
        let (start, end) = (4 * range.start, 4 * range.end);
        entries.push(format!("{name}:{{\"dtype\":\"F32\",\"shape\":{shape},\"data_offsets\":[{start},{end}]}}"));
    }
    let mut header = format!("{{{}}}", entries.join(","));
    header.push_str(&" ".repeat(header.len().next_multiple_of(8) - header.len())); // the data begin aligned
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header.into_bytes());
    bytes.extend(values);
    bytes
}

/// `model.toml`: which model, and what it maps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    /// The model and its settings.
    pub model: Choice,
    /// What it maps.
    pub task: Domain,
}

/// A [`Task`] without its batch size, which is no property of a model.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Domain {
    /// Coordinates of a point.
    pub space: usize,
    /// Input functions, beside the positions.
    #[serde(default)]
    pub functions: usize,
    /// Output functions.
    pub outputs: usize,
    /// Whether a time comes with each sample.
    #[serde(default)]
    pub time: bool,
    /// Where the points are.
    #[serde(with = "GridTable")]
    pub grid: Grid,
}

/// How a grid is written: `kind = "plane"` with `rows` and `columns`, `"line"` or `"cloud"` with `points`.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Grid", tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
enum GridTable {
    Line { points: usize },
    Plane { rows: usize, columns: usize },
    Cloud { points: usize },
}

impl Domain {
    /// The task for batches of this size.
    pub fn task(&self, batch: usize) -> Task {
        let Domain { space, functions, outputs, time, grid } = *self;
        Task { batch, grid, space, functions, outputs, time }
    }
}

impl Description {
    /// Reads a `model.toml`; unknown keys are refused.
    pub fn read(path: &Path) -> Result<Description, Error> {
        let text = std::fs::read_to_string(path).map_err(|reason| Error::file(path, reason))?;
        let description: Description = toml::from_str(&text).map_err(|error| {
            let line = error.span().map(|span| text[..span.start].lines().count().max(1));
            let place = line.map_or(String::new(), |line| format!(", line {line}"));
            let message = error.message().trim().replace('\n', ", ");
            Error::malformed(path, format!("is no description of a model{place}: {message}"))
        })?;
        let Domain { space, outputs, grid, .. } = description.task;
        if space == 0 || outputs == 0 || grid.points() == 0 {
            return Err(Error::malformed(path, "describes a task without points, coordinates or outputs"));
        }
        Ok(description)
    }

    /// The model's parameters, by building it.
    pub fn sections(&self) -> Result<Vec<Section>, Refusal> {
        let graph = Graph::new();
        models::find(&self.model.name)?.build(&Parameters::new(&graph), &self.task.task(1), &self.model.settings)?;
        Ok(graph.sections())
    }
}

/// A model with its parameters, as a model folder holds it.
#[derive(Clone, Debug, PartialEq)]
pub struct Stored {
    /// Which model.
    pub description: Description,
    /// Names and shapes of its parameters.
    pub sections: Vec<Section>,
    /// θ, all parameters end to end.
    pub parameters: Vec<f32>,
}

impl Stored {
    /// A described model with the parameters of a weights file. Every setting is written down, so that a default that
    /// changes later changes no model.
    pub fn import(mut description: Description, weights: &Path) -> Result<Stored, Error> {
        let sections = description.sections()?;
        let defaults = models::find(&description.model.name)?.defaults();
        for (key, value) in defaults {
            description.model.settings.entry(key).or_insert(value);
        }
        let parameters = read(weights, &sections)?;
        let broken = |section: &&Section| parameters[section.range()].iter().any(|value| !value.is_finite());
        if let Some(section) = sections.iter().find(broken) {
            let reason = format!("holds NaN or infinity in {}, expected finite numbers; export it anew", section.name);
            return Err(Error::malformed(weights, reason));
        }
        Ok(Stored { description, sections, parameters })
    }

    /// Whether a folder is a model folder.
    pub fn is_at(folder: &Path) -> bool {
        folder.join(DESCRIPTION).is_file()
    }

    /// Reads a model folder.
    pub fn read(folder: &Path) -> Result<Stored, Error> {
        Stored::import(Description::read(&folder.join(DESCRIPTION))?, &folder.join(WEIGHTS))
    }

    /// Writes a model folder, which must not exist or be empty.
    pub fn write(&self, folder: &Path) -> Result<(), Error> {
        let occupied = std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_some());
        if occupied || folder.is_file() {
            return Err(Error::malformed(folder, "exists already"));
        }
        let partial = atomic::partial(folder).ok_or_else(|| Error::malformed(folder, "names no folder to write"))?;
        let told = |reason| Error::file(folder, reason);
        std::fs::create_dir(&partial).map_err(told)?;
        let written = self.fill(&partial).and_then(|()| std::fs::rename(&partial, folder).map_err(told));
        if written.is_err() {
            let _ = std::fs::remove_dir_all(&partial); // best effort: the first error is the one to tell
        }
        written
    }

    fn fill(&self, folder: &Path) -> Result<(), Error> {
        write(&folder.join(WEIGHTS), &self.sections, &self.parameters, &BTreeMap::new())?;
        let path = folder.join(DESCRIPTION);
        let text = toml::to_string(&self.description).map_err(|error| Error::malformed(&path, error.to_string()))?;
        atomic::fill(&path, text.as_bytes()).map_err(|reason| Error::file(&path, reason))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_do_not_fill_their_tensors_are_refused() {
        let path = std::env::temp_dir().join(format!("lamo-weights-{}.safetensors", std::process::id()));
        let written = |places: [usize; 2], values: usize| {
            let section = |name: &str, start| Section { name: name.into(), shape: [2].into(), start };
            let sections = [section("a", places[0]), section("b", places[1])];
            write(&path, &sections, &vec![0.0; values], &BTreeMap::new()).map_err(|error| error.to_string())
        };
        for (places, values) in [([0, 2], 3), ([0, 2], 5), ([0, 1], 4), ([1, 3], 5)] {
            let told = written(places, values).unwrap_err();
            let expected = format!("expected 4 values for tensors end to end, found {values}");
            assert!(told.contains(&expected) && !path.exists(), "{told}");
        }
        written([2, 0], 4).unwrap(); // in any order
        std::fs::remove_file(&path).unwrap();
    }
}
