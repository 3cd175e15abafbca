//! `dataset.toml`: everything that is needed to read the arrays, to verify them and to make them again.
//!
//! ```toml
//! format = 1
//! lamo = "0.1.0"
//! problem = "plasticity"        # a problem of the registry, a public benchmark, or the name given to an import
//! generator = 0                 # version of the solver; 0 where the values come from files
//! seed = 0
//! samples = 980
//! times = [0.0, 0.5, 1.0]       # times of the snapshots of time series; or absent: unknown
//! redrawn = 2                   # draws without a solution; or absent: 0
//! at_rest = [0, 1, 23]          # windows of time series with a snapshot to predict that is zero everywhere, which the split leaves out; or absent: none
//! split_sha256 = "5c01…"        # of the split: two runs with the same hash used the same samples
//!
//! [label_errors]                # mean relative L2 against a finer discretisation; or absent: unknown
//! deformation = 0.02
//!
//! [parameters]                  # settings of the solver or the import
//!
//! [grid]                        # line (points), plane (rows, columns) or cloud (points)
//! kind = "plane"
//! rows = 101
//! columns = 31
//!
//! [ragged]                      # samples with different numbers of points; or absent: all have those of the grid
//! points = 31000                # of all samples together; the grid is a cloud of the points of the largest sample
//! file = "offsets.npy"          # [samples + 1], int64: first point of each sample, then the number of all points
//! sha256 = "2c26…"              # arrays of values on points are then [points, snapshots, channels], samples one after the other
//!
//! [triangles]                   # as which the cells of meshes are drawn; or absent: no cells are known
//! count = 62000                 # rows of the file
//! cells = 31000                 # cells of the mesh files, all samples together
//! common = true                 # all samples have the same, stored once; or absent: each has its own
//! file = "triangles.npy"        # [count, 3], int32: points of the sample
//! offsets_file = "triangle-offsets.npy" # int64: first triangle of each sample, then the number of all; with their hashes
//! corners = { file = "triangle-corners.npy", space = 2 } # [count, 3, space], float32: where the points are centres of cells
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
//! shape = [3, 101, 31, 4]       # of one sample: snapshots, points, channels, where it has such axes; see `Field`
//! axes = "tp"                   # t snapshots, p points, x rows, c channels, where the shape would be read otherwise; or absent
//! dtype = "<f4"
//! file = "deformation.npy"      # [samples, ...shape], C order
//! sha256 = "9f86…"
//! normalise = "channels"        # or absent: the values stay as they are
//! common = true                 # the array is [1, ...shape], the same for all samples; or absent: one row per sample
//!
//! [[fields.origin]]             # the arrays that an import read, joined along channels, then along samples
//! source = 0                    # index of its file in [[sources]]
//! array = "output"              # or absent: the array has no name
//! axes = "nxytc"                # a letter each: n samples, t snapshots, x rows, y columns, p points, c channels, 1 unused
//! channel = 2                   # the only channel read; or absent: all channels
//!
//! [[sources]]                   # the files that an import read
//! file = "plas_N987_T20.mat"
//! bytes = 1980000000
//! sha256 = "03ac…"
//! ```

use super::fields::{Normalise, OriginEntry, SourceEntry};
use super::{Error, Ragged, Rule, Triangles, npy};
use crate::error::{Refusal, counted};
use crate::files::{self, atomic};
use crate::task::Field;
use lamo_geometry::Grid;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::Path;

/// The manifest's file name.
pub const MANIFEST: &str = "dataset.toml";
/// Increased whenever older versions of lamo cannot read the folder.
const FORMAT: u32 = 1;
/// Bytes of a manifest at most. A list of a million samples has eight million.
const LARGEST: u64 = 1 << 24;

/// The contents of `dataset.toml`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Version of this format.
    pub format: u32,
    /// Version of lamo that made the data set.
    pub lamo: String,
    /// Name of the problem, of the public benchmark or of the import.
    pub problem: String,
    /// Version of the solver; 0 where the values come from files.
    pub generator: u32,
    /// Seed of the sequence of samples.
    pub seed: u64,
    /// How many samples there are.
    pub samples: usize,
    /// Times of the snapshots of time series; empty where they are unknown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub times: Vec<f64>,
    /// Draws for which the solver found no solution; the next draw of the same random stream replaced each of them.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub redrawn: usize,
    /// SHA-256 of the split, in hexadecimal; empty in data sets of earlier versions.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub split_sha256: String,
    /// Windows of time series in which a snapshot to predict is zero everywhere, in ascending order; the split leaves them out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub at_rest: Vec<usize>,
    /// Measured errors of the labels by field: mean relative L2 against a finer discretisation. Empty where they are unknown.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub label_errors: BTreeMap<String, f64>,
    /// Every parameter of the problem.
    pub parameters: toml::Table,
    /// The grid of every sample; of ragged samples, a cloud of as many points as the largest.
    pub grid: Grid,
    /// How many points each sample has, where their numbers differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ragged: Option<Ragged>,
    /// The triangles as which the cells of meshes are drawn; absent where no cells are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub triangles: Option<Triangles>,
    /// Which samples to train and to test on, unless an experiment chooses another split.
    pub split: Rule,
    /// The fields, one array each.
    pub fields: Vec<FieldEntry>,
    /// The files from which an import read the values; empty where a solver computed them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<SourceEntry>,
}

/// What a neural operator uses a field for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The positions of the points.
    Position,
    /// A function that is given.
    Input,
    /// A function to predict.
    Output,
}

/// One field and the array that holds it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FieldEntry {
    /// Its name.
    pub name: String,
    /// What it is used for.
    pub role: Role,
    /// Unit; `1` for dimensionless equations.
    pub unit: String,
    /// Shape of one sample.
    pub shape: Vec<usize>,
    /// A letter for each of its axes, where the shape alone would be read otherwise: see [`Field::with_axes`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub axes: Option<String>,
    /// NumPy's name of the element type.
    pub dtype: String,
    /// Name of its file in the folder.
    pub file: String,
    /// SHA-256 of the file, in hexadecimal; empty while the data set is being made.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sha256: String,
    /// What a training run does to the values before a model sees them.
    #[serde(default, skip_serializing_if = "Normalise::is_none")]
    pub normalise: Normalise,
    /// Whether all samples share one row of values.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub common: bool,
    /// The arrays from which an import read it; empty where a solver computed it, and in data sets of earlier versions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub origin: Vec<OriginEntry>,
}

impl FieldEntry {
    /// A field whose array has not been written yet.
    pub(in crate::data) fn new(name: &str, role: Role, unit: &str, shape: Vec<usize>) -> FieldEntry {
        FieldEntry {
            name: name.into(),
            role,
            unit: unit.into(),
            shape,
            axes: None,
            dtype: npy::FLOAT.into(),
            file: format!("{}.npy", name.replace(' ', "-")),
            sha256: String::new(),
            normalise: Normalise::None,
            common: false,
            origin: Vec::new(),
        }
    }

    /// Its axes on the grid of the data set.
    pub fn on(&self, grid: Grid) -> Result<Field, Refusal> {
        match &self.axes {
            Some(axes) => Field::with_axes(grid, &self.name, &self.unit, &self.shape, axes),
            None => Field::on(grid, &self.name, &self.unit, &self.shape),
        }
    }
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde passes a reference
fn is_zero(number: &usize) -> bool {
    *number == 0
}

impl Manifest {
    /// The manifest of a data set whose values come from files, before hashes and sources are known.
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
            at_rest: Vec::new(),
            split_sha256: split.split(samples).map(|split| split.hash()).unwrap_or_default(),
            label_errors: BTreeMap::new(),
            parameters,
            grid,
            ragged: None,
            triangles: None,
            split,
            fields,
            sources: Vec::new(),
        }
    }

    /// Reads and checks a manifest; the hashes may be absent only in a `recipe`.
    pub(super) fn read(path: &Path, recipe: bool) -> Result<Manifest, Error> {
        let failed = |reason| Error::reading(path, reason);
        let size = files::open(path).and_then(|file| file.metadata()).map_err(failed)?.len();
        if size > LARGEST {
            return Err(Error::malformed(path, format!("expected at most {LARGEST} bytes, found {size}")));
        }
        let text = files::read_to_string(path).map_err(failed)?;
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
            let (fields, samples) = (counted(self.fields.len(), "field"), counted(self.samples, "sample"));
            let reason = format!("expected at least one field and one sample, found {fields} and {samples}");
            return Err(Error::malformed(path, reason));
        }
        if self.fields.iter().all(|field| field.common) {
            return Err(Error::malformed(
                path,
                "expected a field with values for each sample, found only common fields",
            ));
        }
        self.check_ragged(path)?;
        self.triangles.as_ref().map_or(Ok(()), |triangles| triangles.check(path))?;
        for field in &self.fields {
            let refuse = |expected: &str, found: &str| {
                let reason = format!("field `{}`: expected {expected}, found `{found}`", field.name);
                Err(Error::malformed(path, reason))
            };
            if field.name.contains(char::is_control) {
                return refuse("a name without control characters", &field.name);
            }
            if field.dtype != npy::FLOAT {
                return refuse("dtype <f4", &field.dtype);
            }
            if field.shape.contains(&0) {
                return refuse("lengths above 0", &format!("{:?}", field.shape));
            }
            if let Some(axes) = field.axes.as_ref().filter(|_| field.on(self.grid).is_err()) {
                return refuse(&format!("axes of shape {:?} on the grid", field.shape), axes);
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
