//! The job: open a model, translate it, verify the translation, write the files.

use crate::c::CModel;
use crate::metadata::{Metadata, metadata, verification};
use crate::onnx::OnnxModel;
use crate::plan::Plan;
use crate::refusal::require;
use crate::verify::{Expected, Origin, Verified};
use lamo::error::{Error, FileError, Kind, Refusal};
use lamo::files::atomic;
use lamo::inference::{Physical, Port};
use lamo::workflow::{Model, TestSet};
use lamo::{Grid, Operator, Samples};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Relative error of a prediction that is rounding.
const TOLERANCE: f64 = 1e-5;
/// Where a model magnifies rounding, what was written may differ by so many times the error of our own f32.
const ROUNDINGS: f64 = 4.0;

/// A model to export.
#[derive(Clone, Debug)]
pub struct ExportRequest {
    /// A run folder, a checkpoint file, a model folder, or the name of a pretrained model.
    pub model: PathBuf,
    /// ONNX file to write.
    pub onnx: Option<PathBuf>,
    /// C source to write; its header gets the same name with `.h`.
    pub c: Option<PathBuf>,
    /// The grid, where it is not that of the training.
    pub grid: Option<Grid>,
    /// Samples to compare with the library's own predictions.
    pub samples: usize,
}

/// A field that a written model takes or makes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FieldInfo {
    /// Its name.
    pub name: String,
    /// Its shape without the axis of the samples.
    pub shape: Vec<usize>,
    /// Its unit.
    pub unit: String,
}

/// A model in one form.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExportedFile {
    /// `onnx` or `c`.
    pub form: &'static str,
    /// The files.
    pub files: Vec<PathBuf>,
    /// Bytes of all of them.
    pub bytes: usize,
    /// Operators of an ONNX file, loops of a C program.
    pub operators: usize,
    /// What the comparison found.
    pub verified: Verified,
}

/// What was written.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Exported {
    /// Name of the model.
    pub model: String,
    /// Fields in.
    pub inputs: Vec<FieldInfo>,
    /// Fields out.
    pub outputs: Vec<FieldInfo>,
    /// The forms that were asked for.
    pub written: Vec<ExportedFile>,
    /// What the user should know about the files of the model.
    pub note: Option<String>,
}

/// Exports a model.
pub fn export(request: &ExportRequest) -> Result<Exported, Error> {
    require(request.onnx.is_some() || request.c.is_some(), || {
        Refusal::new("lamo export", "--onnx FILE or --c FILE", "neither")
    })?;
    require(request.samples > 0, || Refusal::new("--samples", "at least 1", "0"))?;
    let model = Model::open(&request.model)?;
    for file in request.onnx.iter().chain(&request.c) {
        model.protect(file)?;
    }
    let operator = model.operator();
    let grid = request.grid.unwrap_or(operator.task.grid);
    let test = (grid == operator.task.grid).then(|| test_samples(&model, &request.model, request.samples)).flatten();
    let mut exported = export_operator(operator, request, test, Some((&model, &request.model)))?;
    exported.note = model.note().map(ToOwned::to_owned);
    Ok(exported)
}

/// Exports an operator; `test` are samples to compare predictions of, which are drawn where there are none.
pub fn export_operator(
    operator: &Operator,
    request: &ExportRequest,
    test: Option<Samples>,
    source: Option<(&Model, &Path)>,
) -> Result<Exported, Error> {
    let grid = request.grid.unwrap_or(operator.task.grid);
    let (mut written, mut files): (Vec<ExportedFile>, Vec<Contents>) = (Vec::new(), Vec::new());
    let mut fields = [Vec::new(), Vec::new()];
    let form = |name: &str| format!("--{name}");
    for (name, path) in [("onnx", &request.onnx), ("c", &request.c)] {
        let Some(path) = path else { continue };
        require_ending(path, name).map_err(|refusal| refusal.within(form(name)))?;
        let plan = if name == "onnx" { Plan::of_samples(operator, grid)? } else { Plan::of_one(operator, grid)? };
        require(!plan.inputs.is_empty(), || {
            Refusal::about(format!("model {}", operator.model.name), "its prediction does not depend on any input")
        })?;
        let samples = match &test {
            Some(samples) => (samples.clone(), Origin::Test),
            None => (drawn(&plan.physical, request.samples)?, Origin::Drawn),
        };
        let expected = Expected::new(operator, &plan.physical, (&samples.0, samples.1))?;
        let about = metadata(operator, &plan, source);
        let (file, contents) = match name {
            "onnx" => onnx_file(&plan, path, &expected, about)?,
            _ => c_files(&plan, path, &expected, about)?,
        };
        written.push(file);
        files.extend(contents);
        let info = |(port, _): &(Port, usize)| FieldInfo {
            name: port.name.clone(),
            shape: port.shape.clone(),
            unit: port.unit.clone(),
        };
        fields = [plan.inputs.iter().map(info).collect(), plan.outputs.iter().map(info).collect()];
    }
    // Nothing is written unless everything can be.
    for (path, bytes) in &files {
        write(path, bytes)?;
    }
    let [inputs, outputs] = fields;
    Ok(Exported { model: operator.model.name.clone(), inputs, outputs, written, note: None })
}

/// A file to write.
type Contents = (PathBuf, Vec<u8>);

fn onnx_file(
    plan: &Plan,
    path: &Path,
    expected: &Expected<'_>,
    mut about: Metadata,
) -> Result<(ExportedFile, Vec<Contents>), Error> {
    let model = OnnxModel::of(plan)?;
    let verified = checked(expected, expected.compare(&model.read_back(&model.bytes(&about)?)?)?, "ONNX file")?;
    about.extend(verification(&verified));
    let (bytes, files, operators) = (model.bytes(&about)?, vec![path.to_owned()], model.operators());
    let file = ExportedFile { form: "onnx", files, bytes: bytes.len(), operators, verified };
    Ok((file, vec![(path.to_owned(), bytes)]))
}

fn c_files(
    plan: &Plan,
    path: &Path,
    expected: &Expected<'_>,
    mut about: Metadata,
) -> Result<(ExportedFile, Vec<Contents>), Error> {
    let model = CModel::of(plan)?;
    let verified = checked(expected, expected.compare(&model)?, "C program")?;
    about.extend(verification(&verified));
    let header = path.with_extension("h");
    let name = header.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let [source, declared] = model.text(&name, &about);
    let (files, bytes) = (vec![path.to_owned(), header.clone()], source.len() + declared.len());
    let file = ExportedFile { form: "c", files, bytes, operators: model.loops(), verified };
    Ok((file, vec![(header, declared.into_bytes()), (path.to_owned(), source.into_bytes())]))
}

/// Refuses what differs by more than rounding.
fn checked(expected: &Expected<'_>, mut verified: Verified, what: &str) -> Result<Verified, Error> {
    if verified.relative_l2 <= TOLERANCE {
        return Ok(verified);
    }
    let rounding = expected.rounding()?;
    verified.rounding = Some(rounding);
    require(verified.relative_l2 <= ROUNDINGS * rounding, || {
        let expected = format!(
            "the predictions of lamo within {TOLERANCE:.0e}, or {ROUNDINGS} times its own rounding {rounding:.1e}"
        );
        Refusal::new(format!("the {what}"), expected, format!("{:.1e}", verified.relative_l2))
            .advise("nothing was written; please report this model")
            .of(Kind::Failed)
    })?;
    Ok(verified)
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    atomic::replace(path, bytes).map_err(|reason| FileError { path: path.to_owned(), action: "written", reason }.into())
}

fn require_ending(path: &Path, ending: &str) -> Result<(), Refusal> {
    require(path.extension().is_some_and(|found| found == ending), || {
        Refusal::new(path.display().to_string(), format!("a file that ends with .{ending}"), "another ending")
    })
}

/// Some test samples, where the data are at hand and all samples have the same size.
fn test_samples(model: &Model, path: &Path, count: usize) -> Option<Samples> {
    let samples = TestSet::open(model, path).and_then(|set| set.samples()).ok()?;
    let fits = !samples.is_ragged() && samples.grid == model.operator().task.grid && samples.count > 0;
    fits.then(|| samples.first(count))
}

fn drawn(physical: &Physical, count: usize) -> Result<Samples, Refusal> {
    physical.samples(&(0..count as u64).map(|seed| physical.drawn(seed)).collect::<Vec<_>>())
}
