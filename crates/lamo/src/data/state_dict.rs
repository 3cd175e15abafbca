//! State dicts on disk: a safetensors file with the parameters of a model under the authors' names.

use super::formats::{self, ElementKind, decode};
use super::storage::Storage;
use crate::error::{Failure, Kind};
use crate::files::{self, atomic, memory};
use crate::network::models::Shapes;
use crate::network::{Layout, Presence};
use lamo_tensor::Section;
use safetensors::tensor::TensorView;
use safetensors::{Dtype, SafeTensorError, SafeTensors};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Why a state dict cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file cannot be opened, read or written.
    #[error("{}: cannot be read or written: {reason}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        reason: std::io::Error,
    },
    /// The file does not hold a state dict.
    #[error("{} {reason}", path.display())]
    Malformed {
        /// Which file.
        path: PathBuf,
        /// The rest of the sentence.
        reason: String,
    },
    /// The tensors do not fit the parameters of the model.
    #[error("{} does not fit the model: {}", path.display(), difference.sentence())]
    Mismatch {
        /// Which file.
        path: PathBuf,
        /// How they differ.
        difference: Difference,
    },
}

impl Error {
    pub(crate) fn file(path: &Path, reason: std::io::Error) -> Error {
        Error::File { path: path.to_owned(), reason }
    }

    pub(crate) fn malformed(path: &Path, reason: impl Into<String>) -> Error {
        Error::Malformed { path: path.to_owned(), reason: reason.into() }
    }
}

impl Failure for Error {
    fn kind(&self) -> Kind {
        match self {
            Error::File { reason, .. } => Kind::of_io(reason),
            Error::Malformed { .. } | Error::Mismatch { .. } => Kind::BadInput,
        }
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
        let parts = [("it lacks ", self.missing.clone()), ("it has unexpected tensors ", self.extra.clone())]
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

/// Reads θ, the parameters one after another. The file must have exactly the tensors of `sections`, in their shapes.
/// Float32 is read bit for bit; other floating-point types are converted.
pub fn read(path: &Path, sections: &[Section]) -> Result<Vec<f32>, Error> {
    Contents::read(path)?.values(sections)
}

/// Key of the metadata under which [`write()`] stores the seal: the SHA-256 of the whole file, in which the seal itself
/// counts as 64 zeros.
const SEAL: &str = "sha256_of_file";
/// Key under which lamo 0.1 stored the SHA-256 of the values alone.
const CHECKSUM: &str = "sha256";
/// Hexadecimal digits of a SHA-256.
const DIGITS: usize = 64;

/// A safetensors file in memory, with its metadata.
pub(crate) struct Contents {
    path: PathBuf,
    bytes: Vec<u8>,
    metadata: HashMap<String, String>,
}

impl Contents {
    /// Reads a file; compares it with its seal or checksum, where it has one.
    pub(crate) fn read(path: &Path) -> Result<Contents, Error> {
        Contents::of(path, files::read(path).map_err(|reason| Error::file(path, reason))?)
    }

    /// A file whose bytes are in memory; `path` is for errors.
    pub(crate) fn of(path: &Path, bytes: Vec<u8>) -> Result<Contents, Error> {
        parse(path, &bytes)?;
        let (length, header) = SafeTensors::read_metadata(&bytes)
            .map_err(|error| Error::malformed(path, format!("is not a safetensors file: {error}")))?;
        let metadata = header.metadata().clone().unwrap_or_default();
        let compare = |what: &str, expected: &str, found: String| {
            let reason = || format!("is damaged: expected {what} with SHA-256 {expected}, found {found}");
            if found == expected { Ok(()) } else { Err(Error::malformed(path, reason())) }
        };
        if let Some(expected) = metadata.get(SEAL) {
            let place = place_of_seal(&bytes[..8 + length]);
            let found = place.map_or_else(|| "none where it belongs".to_owned(), |place| seal(&bytes, place));
            compare("a file", expected, found)?;
        }
        if let Some(expected) = metadata.get(CHECKSUM) {
            compare("values", expected, checksum(&[&bytes[8 + length..]]))?;
        }
        Ok(Contents { path: path.to_owned(), bytes, metadata })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn metadata(&self) -> &HashMap<String, String> {
        &self.metadata
    }

    /// Names and shapes of all tensors.
    pub(crate) fn shapes(&self) -> Result<Shapes, Error> {
        let file = parse(&self.path, &self.bytes)?;
        Ok(Shapes::new(file.iter().map(|(name, tensor)| (name.to_owned(), tensor.shape().to_vec()))))
    }

    /// As many numbers as the file could hold at most, of 16 bits each.
    pub(crate) fn numbers(&self) -> usize {
        self.bytes.len() / size_of::<u16>()
    }

    /// Whether a checksum covers the whole file, its metadata included.
    pub(crate) fn is_sealed(&self) -> bool {
        self.metadata.contains_key(SEAL)
    }

    /// The values of `sections`, one after another; the file must have exactly their tensors.
    pub(crate) fn values(&self, sections: &[Section]) -> Result<Vec<f32>, Error> {
        self.values_of(sections, &[])
    }

    /// [`Contents::values`] of a file that may have other tensors of the given names.
    fn values_of(&self, sections: &[Section], others: &[&str]) -> Result<Vec<f32>, Error> {
        let path = self.path.as_path();
        let file = parse(path, &self.bytes)?;
        let mut difference = compare(&file, sections);
        difference.extra.retain(|name| !others.contains(&name.as_str()));
        if !difference.is_empty() {
            return Err(Error::Mismatch { path: path.to_owned(), difference });
        }
        let tensors: BTreeMap<_, _> = file.iter().collect();
        let count = sections.iter().map(|section| section.shape.count()).sum();
        let mut parameters = memory::filled(0.0, count).map_err(|reason| Error::file(path, reason))?;
        for section in sections {
            let values = floats(path, &section.name, &tensors[section.name.as_str()])?;
            parameters[section.range()].copy_from_slice(&values);
        }
        Ok(parameters)
    }

    /// The parameters of a model and its states. An optional state that the file lacks keeps its first value, and a table
    /// that is computed here always does.
    pub(crate) fn model(&self, layout: &Layout) -> Result<(Vec<f32>, Vec<f32>), Error> {
        let file = parse(&self.path, &self.bytes)?;
        let read = |section: &Section, presence: &Presence| match presence {
            Presence::Required => true,
            Presence::Optional => file.tensor(&section.name).is_ok(),
            Presence::Computed => false,
        };
        let states = layout.states.sections.iter().zip(&layout.presence);
        let (wanted, others): (Vec<_>, Vec<_>) = states.partition(|(section, presence)| read(section, presence));
        let wanted: Vec<Section> = wanted.into_iter().map(|(section, _)| section.clone()).collect();
        let others: Vec<&str> = others.into_iter().map(|(section, _)| section.name.as_str()).collect();
        let mut start: usize = layout.sections.iter().map(|section| section.shape.count()).sum();
        let mut sections = layout.sections.clone();
        for section in &wanted {
            sections.push(Section { start, ..section.clone() });
            start += section.shape.count();
        }
        let mut parameters = self.values_of(&sections, &others)?;
        let mut states = layout.states.values.clone();
        for (section, found) in wanted.iter().zip(&sections[layout.sections.len()..]) {
            states[section.range()].copy_from_slice(&parameters[found.range()]);
        }
        parameters.truncate(parameters.len() - wanted.iter().map(|section| section.shape.count()).sum::<usize>());
        Ok((parameters, states))
    }
}

/// SHA-256 of some bytes, as hexadecimal digits.
pub(crate) fn checksum(parts: &[&[u8]]) -> String {
    let mut digest = Sha256::new();
    parts.iter().for_each(|part| digest.update(part));
    digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Where the digits of the seal stand. Quotes inside a JSON text are escaped, so only a key can match.
fn place_of_seal(header: &[u8]) -> Option<Range<usize>> {
    let key = format!("\"{SEAL}\":\"");
    let start = header.windows(key.len()).position(|window| window == key.as_bytes())? + key.len();
    (header.len() >= start + DIGITS).then_some(start..start + DIGITS)
}

/// The SHA-256 of a file whose seal stands at `place`.
fn seal(bytes: &[u8], place: Range<usize>) -> String {
    checksum(&[&bytes[..place.start], &[b'0'; DIGITS], &bytes[place.end..]])
}

fn parse<'a>(path: &Path, bytes: &'a [u8]) -> Result<SafeTensors<'a>, Error> {
    SafeTensors::deserialize(bytes).map_err(|error| {
        let length = bytes.len();
        let reason = match error {
            SafeTensorError::HeaderTooSmall | SafeTensorError::InvalidHeaderLength => {
                format!("is not a safetensors file or was cut short: {length} bytes end inside the header")
            }
            SafeTensorError::MetadataIncompleteBuffer => {
                format!("was cut short or damaged: its {length} bytes are not the length that its header promises")
            }
            other => format!("is not a safetensors file: {other}"),
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
    // A counter is the only tensor of whole numbers that a model has.
    let values = if tensor.dtype() == Dtype::I64 && !tensor.shape().is_empty() { None } else { doubles(tensor) };
    let values = values.ok_or_else(|| {
        Error::malformed(path, format!("holds {name} as {:?}, expected F64, F32, F16 or BF16", tensor.dtype()))
    })?;
    if let Some(value) = values.iter().find(|value| value.is_finite() && !(**value as f32).is_finite()) {
        return Err(Error::malformed(path, format!("holds {value:e} in {name}, too large for float32")));
    }
    Ok(values.iter().map(|&value| value as f32).collect())
}

/// Shape and values of a tensor in double precision.
pub(crate) type Doubles = (Vec<usize>, Vec<f64>);

/// Every tensor of a file, by name.
pub(crate) fn read_doubles(path: &Path) -> Result<BTreeMap<String, Doubles>, Error> {
    let bytes = files::read(path).map_err(|reason| Error::file(path, reason))?;
    let file = parse(path, &bytes)?;
    let array = |(name, tensor): (&str, TensorView<'_>)| {
        let unknown = || format!("holds {name} as {:?}, expected F64, F32, F16, BF16 or I64", tensor.dtype());
        let values = doubles(&tensor).ok_or_else(|| Error::malformed(path, unknown()))?;
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

/// Writes θ as float32 tensors in the order of `sections`, which must cover it without gaps. A file with metadata is
/// sealed with its SHA-256. A file at `path` is replaced atomically.
pub fn write(
    path: &Path,
    sections: &[Section],
    parameters: &[f32],
    metadata: &BTreeMap<String, String>,
) -> Result<(), Error> {
    write_parts(path, sections, &[parameters], metadata)
}

/// [`write()`] for values that lie in several parts, one after the other.
pub(crate) fn write_parts(
    path: &Path,
    sections: &[Section],
    parts: &[&[f32]],
    metadata: &BTreeMap<String, String>,
) -> Result<(), Error> {
    let count: usize = parts.iter().map(|part| part.len()).sum();
    let mut ranges: Vec<_> = sections.iter().map(Section::range).collect();
    ranges.sort_by_key(|range| range.start);
    let end = ranges.iter().try_fold(0, |end, range| (range.start == end).then_some(range.end));
    if end != Some(count) {
        let expected: usize = ranges.iter().map(Range::len).sum();
        let reason = format!("cannot be written: expected {expected} values for tensors end to end, found {count}");
        return Err(Error::malformed(path, reason + "; give each tensor its own values"));
    }
    let tensors = sections.iter().map(|section| (section.name.as_str(), section.shape.dims(), section.range()));
    let mut metadata = metadata.clone();
    if !metadata.is_empty() {
        metadata.insert(SEAL.to_owned(), "0".repeat(DIGITS)); // a plain state dict stays as the authors' code writes it
    }
    let serialised = formats::safetensors::serialise(tensors, parts, &metadata);
    let bytes = serialised.map_err(|reason| Error::file(path, reason))?;
    let sealed = if metadata.is_empty() { bytes } else { stamped(bytes) };
    atomic::replace(path, &sealed).map_err(|reason| Error::file(path, reason))
}

/// Puts the digits of the seal in their place.
fn stamped(mut bytes: Vec<u8>) -> Vec<u8> {
    if let Some(place) = place_of_seal(&bytes) {
        let digits = seal(&bytes, place.clone());
        bytes[place].copy_from_slice(digits.as_bytes());
    }
    bytes
}

/// Tensors with their values, stored alike; the sections are counted from the first value and in order.
pub(crate) type Group<'a> = (&'a [Section], &'a [f32], Storage);

/// The bytes of a sealed file whose groups of tensors are stored in different ways; `path` is for errors.
pub(crate) fn stored(path: &Path, groups: &[Group<'_>], metadata: &BTreeMap<String, String>) -> Result<Vec<u8>, Error> {
    let (mut numbers, mut tensors) = (Vec::new(), Vec::new());
    for (sections, values, storage) in groups {
        for section in *sections {
            let start = numbers.len();
            storage.append(&values[section.range()], &mut numbers).map_err(|value| {
                let (name, storage) = (&section.name, storage.name());
                Error::malformed(
                    path,
                    format!("cannot be written: {value} in {name} is too large for {storage}; use bf16"),
                )
            })?;
            tensors.push((section.name.as_str(), section.shape.dims(), storage.element(), start..numbers.len()));
        }
    }
    let mut metadata = metadata.clone();
    metadata.insert(SEAL.to_owned(), "0".repeat(DIGITS));
    let begun = formats::safetensors::begin(tensors.into_iter(), numbers.len(), &metadata);
    let mut bytes = begun.map_err(|reason| Error::file(path, reason))?;
    bytes.extend(numbers);
    Ok(stamped(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::files::scratch::Folder;
    use crate::network::Initial;

    #[test]
    fn values_that_do_not_fill_their_tensors_are_refused() {
        let folder = Folder::new("weights");
        let path = folder.at("weights.safetensors");
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
    }

    /// A parameter, and a state of each presence.
    fn declared() -> (Layout, Vec<&'static str>) {
        let graph = lamo_tensor::Graph::new();
        let parameters = crate::network::Parameters::new(&graph);
        let scope = parameters.root();
        scope.parameter("weight", [2], Initial::Constant(0.0));
        scope.state("mean", [2], Initial::Constant(7.0));
        scope.optional_state("count", [], Initial::Constant(8.0));
        scope.table("index", [2], vec![5.0, 6.0]);
        (Layout::declared(&graph, &parameters), vec!["weight", "mean", "count", "index"])
    }

    #[test]
    fn a_required_state_must_be_there_an_optional_one_may_and_a_table_is_not_read() {
        let folder = Folder::new("states");
        let path = folder.at("weights.safetensors");
        let (layout, names) = declared();
        let read = |kept: &[&str]| {
            let mut sections = Vec::new();
            let mut start = 0;
            for name in kept {
                let shape: lamo_tensor::Shape = if *name == "count" { [].into() } else { [2].into() };
                sections.push(Section { name: (*name).to_owned(), start, shape });
                start = sections.last().unwrap().range().end;
            }
            let values: Vec<f32> = (1..=start).map(|value| value as f32).collect();
            write(&path, &sections, &values, &BTreeMap::new()).unwrap();
            Contents::read(&path).unwrap().model(&layout).map_err(|error| error.to_string())
        };
        assert_eq!(read(&names), Ok((vec![1.0, 2.0], vec![3.0, 4.0, 5.0, 5.0, 6.0])));
        assert_eq!(read(&["weight", "mean"]), Ok((vec![1.0, 2.0], vec![3.0, 4.0, 8.0, 5.0, 6.0])));
        let told = read(&["weight", "count"]).unwrap_err();
        assert!(told.ends_with("it lacks mean"), "{told}");
        let told = read(&["weight", "mean", "other"]).unwrap_err();
        assert!(told.ends_with("it has unexpected tensors other"), "{told}");
    }
}
