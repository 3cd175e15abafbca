//! `dataset.toml`: everything needed to read the arrays, to trust them and to make them again.
//!
//! ```toml
//! format = 1
//! lamo = "0.1.0"
//! problem = "plasticity"        # a problem of the registry, a public benchmark, or a name of one's own
//! generator = 0                 # version of the solver; 0 where the values come from files
//! seed = 0
//! samples = 980
//! times = [0.0, 0.5, 1.0]       # of the frames of films; where they are known
//! redrawn = 2                   # draws the solver found no solution for; none unless said
//! split_sha256 = "5c01…"        # of the split, so that two runs know they saw the same samples
//!
//! [parameters]                  # of the solver or the import
//!
//! [grid]                        # line (points), plane (rows, columns) or cloud (points)
//! kind = "plane"
//! rows = 101
//! columns = 31
//!
//! [split]                       # see `Rule`
//! kind = "ends"
//! train = 900
//! test = 80
//!
//! [[fields]]
//! name = "deformation"
//! role = "output"               # position, input or output
//! unit = "mm"
//! shape = [3, 101, 31, 4]       # of one sample: frames, points, channels, as far as it has them; see `Field`
//! dtype = "<f4"
//! file = "deformation.npy"      # [samples, ...shape], C order
//! sha256 = "9f86…"
//! normalise = "channels"        # or absent: left as it is
//! common = true                 # or absent: the array is [1, ...shape] and serves every sample
//!
//! [[fields.origin]]             # the arrays an import took the field from, joined along channels, then samples
//! source = 0                    # which of the sources
//! array = "output"              # or absent: the file has no names
//! axes = "nxytc"                # a letter each: n samples, t frames, x rows, y columns, p points, c channels
//! channel = 2                   # or absent: all of them
//!
//! [[sources]]                   # the files an import took the values from
//! file = "plas_N987_T20.mat"
//! bytes = 1980000000
//! sha256 = "03ac…"
//! ```

use super::fields::{Normalise, OriginEntry, SourceEntry};
use super::{Error, Rule, npy};
use crate::files::atomic;
use lamo_geometry::Grid;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The manifest's file name.
pub const MANIFEST: &str = "dataset.toml";
/// Raised whenever older versions of lamo could not read the folder.
const FORMAT: u32 = 1;

/// What `dataset.toml` says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Version of this format.
    pub format: u32,
    /// Version of lamo that made the set.
    pub lamo: String,
    /// Name of the problem in the registry.
    pub problem: String,
    /// Version of the problem's solver.
    pub generator: u32,
    /// Seed of the sequence of samples.
    pub seed: u64,
    /// How many samples there are.
    pub samples: usize,
    /// Of the frames of films; empty where nobody said.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub times: Vec<f64>,
    /// Draws that the solver found no solution for; the next draw of the same random stream took their place.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub redrawn: usize,
    /// Of the split, in hexadecimal; empty in sets of earlier versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub split_sha256: String,
    /// Every parameter of the problem.
    pub parameters: toml::Table,
    /// Where the values sit.
    pub grid: Grid,
    /// Which samples to train and to test on unless someone says otherwise.
    pub split: Rule,
    /// The arrays.
    pub fields: Vec<FieldEntry>,
    /// The files the values come from; none where a solver made them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<SourceEntry>,
}

/// What a field is to an operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Where the points lie.
    Position,
    /// Given.
    Input,
    /// Asked for.
    Output,
}

/// One field and the array that holds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FieldEntry {
    /// Name in whole words.
    pub name: String,
    /// Given or computed.
    pub role: Role,
    /// Unit; `1` for dimensionless equations.
    pub unit: String,
    /// Of one sample.
    pub shape: Vec<usize>,
    /// NumPy's name of the element type.
    pub dtype: String,
    /// File in the folder.
    pub file: String,
    /// Of the file, in hexadecimal; empty while the set is being made.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sha256: String,
    /// What a training run does to the values before a model sees them.
    #[serde(default, skip_serializing_if = "Normalise::is_none")]
    pub normalise: Normalise,
    /// One array for all samples.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub common: bool,
    /// The arrays it was taken from; none where a solver made it, or an earlier version of lamo did not say.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub origin: Vec<OriginEntry>,
}

impl FieldEntry {
    /// A field still to be written.
    pub(in crate::data) fn new(name: &str, role: Role, unit: &str, shape: Vec<usize>) -> FieldEntry {
        FieldEntry {
            name: name.into(),
            role,
            unit: unit.into(),
            shape,
            dtype: npy::FLOAT.into(),
            file: format!("{}.npy", name.replace(' ', "-")),
            sha256: String::new(),
            normalise: Normalise::None,
            common: false,
            origin: Vec::new(),
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref)] // what serde asks for
fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl Manifest {
    /// The manifest of a set whose values come from files: neither hashes nor sources yet.
    pub(in crate::data) fn imported(
        name: &str,
        parameters: toml::Table,
        grid: Grid,
        split: Rule,
        samples: usize,
        fields: Vec<FieldEntry>,
    ) -> Manifest {
        Manifest {
            format: FORMAT,
            lamo: env!("CARGO_PKG_VERSION").into(),
            problem: name.into(),
            generator: 0,
            seed: 0,
            samples,
            times: Vec::new(),
            redrawn: 0,
            split_sha256: split.split(samples).map(|split| split.hash()).unwrap_or_default(),
            parameters,
            grid,
            split,
            fields,
            sources: Vec::new(),
        }
    }

    /// Reads and checks a manifest; hashes may be missing only in a `recipe`.
    pub(super) fn read(path: &Path, recipe: bool) -> Result<Manifest, Error> {
        let text = std::fs::read_to_string(path).map_err(|reason| Error::reading(path, reason))?;
        let format = text.parse::<toml::Table>().ok().and_then(|table| table.get("format")?.as_integer());
        if let Some(found) = format.filter(|&found| found != i64::from(FORMAT)) {
            return Err(Error::malformed(path, format!("expected format = {FORMAT}, found {found}")));
        }
        let parsed = toml::from_str::<Manifest>(&text);
        let manifest = parsed.map_err(|error| {
            let line = error.span().map_or(1, |span| 1 + text[..span.start].matches('\n').count());
            Error::malformed(path, format!("line {line}: {}", error.message().replace('\n', ", ")))
        })?;
        manifest.check(path, recipe)?;
        Ok(manifest)
    }

    fn check(&self, path: &Path, recipe: bool) -> Result<(), Error> {
        if self.fields.is_empty() || self.samples == 0 {
            return Err(Error::malformed(path, "expected at least one field and one sample, found none"));
        }
        if self.fields.iter().all(|field| field.common) {
            return Err(Error::malformed(path, "expected a field with values for each sample, found common ones only"));
        }
        for field in &self.fields {
            let refuse = |expected: &str, found: &str| {
                let reason = format!("field `{}`: expected {expected}, found `{found}`", field.name);
                Err(Error::malformed(path, reason))
            };
            if field.dtype != npy::FLOAT {
                return refuse("dtype <f4", &field.dtype);
            }
            if field.shape.contains(&0) {
                return refuse("lengths above 0", &format!("{:?}", field.shape));
            }
            if Path::new(&field.file).file_name() != Some(field.file.as_ref()) {
                return refuse("the name of a file in the folder", &field.file);
            }
            if self.fields.iter().filter(|other| other.name == field.name || other.file == field.file).count() > 1 {
                return refuse("a name and a file of its own", &field.file);
            }
            let hash = field.sha256.len() == 64 && field.sha256.bytes().all(|byte| byte.is_ascii_hexdigit());
            if !recipe && !hash {
                return refuse("a SHA-256 of 64 hexadecimal digits", &field.sha256);
            }
        }
        Ok(())
    }

    /// Writes the file; it appears complete or not at all.
    pub(super) fn write(&self, path: &Path) -> Result<(), Error> {
        let text = toml::to_string(self).map_err(|error| Error::malformed(path, error.to_string()))?;
        atomic::replace(path, text.as_bytes()).map_err(|reason| Error::writing(path, reason))
    }
}
