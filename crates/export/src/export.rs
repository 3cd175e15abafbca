//! The job: open a model, translate it, verify the translation, write the files.

use crate::c::CModel;
use crate::metadata::{Metadata, metadata, verification};
use crate::onnx::OnnxModel;
use crate::plan::{Extent, Plan};
use crate::refusal::require;
use crate::verify::{Expected, Origin, Runs, Verified};
use lamo::error::{Error, FileError, Kind, Refusal};
use lamo::files::atomic;
use lamo::inference::{Physical, Port};
use lamo::tensor::Graph;
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
    /// The grid of the fields, where it is not that of the training. Without it, an ONNX file of a model of clouds takes any number of
    /// points, if the model can.
    pub grid: Option<Grid>,
    /// Samples to compare with the library's own predictions.
    pub samples: usize,
}

/// A field that a written model takes or makes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FieldInfo {
    /// Its name.
    pub name: String,
    /// Its shape without the axis of the samples; `None` stands for any number of points.
    pub shape: Vec<Option<usize>>,
    /// Its unit.
    pub unit: String,
}

/// A model in one form.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExportedFile {
    /// `onnx` or `c`.
    pub form: &'static str,
    /// Fields in.
    pub inputs: Vec<FieldInfo>,
    /// Fields out.
    pub outputs: Vec<FieldInfo>,
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
    let mut exported = export_operator(operator, request, test.as_ref(), Some((&model, &request.model)))?;
    exported.note = model.note().map(ToOwned::to_owned);
    Ok(exported)
}

/// Exports an operator; `test` are samples to compare predictions of, which are drawn where there are none.
pub fn export_operator(
    operator: &Operator,
    request: &ExportRequest,
    test: Option<&Samples>,
    source: Option<(&Model, &Path)>,
) -> Result<Exported, Error> {
    let grid = request.grid.unwrap_or(operator.task.grid);
    let (mut written, mut files): (Vec<ExportedFile>, Vec<Contents>) = (Vec::new(), Vec::new());
    for (name, path) in [("onnx", &request.onnx), ("c", &request.c)] {
        let Some(path) = path else { continue };
        require_ending(path, name).map_err(|refusal| refusal.within(format!("--{name}")))?;
        let job = Job { operator, path, test, samples: request.samples, source };
        let (file, contents) = match name {
            "onnx" => job.onnx(grid, request.grid.is_none())?,
            _ => job.c(&Plan::of_one(operator, grid)?)?,
        };
        written.push(file);
        files.extend(contents);
    }
    // Nothing is written unless everything can be.
    for (path, bytes) in &files {
        write(path, bytes)?;
    }
    Ok(Exported { model: operator.model.name.clone(), written, note: None })
}

/// A file to write.
type Contents = (PathBuf, Vec<u8>);

/// A file to make of an operator, and what it is compared with.
struct Job<'a> {
    operator: &'a Operator,
    path: &'a Path,
    test: Option<&'a Samples>,
    samples: usize,
    source: Option<(&'a Model, &'a Path)>,
}

impl Job<'_> {
    /// Clouds with any number of points, where the model allows it and `any` is true.
    fn onnx(&self, grid: Grid, any: bool) -> Result<(ExportedFile, Vec<Contents>), Error> {
        let clouds = |any: bool| {
            let plan = any.then(|| Plan::of_clouds(self.operator, grid)).and_then(Result::ok)?;
            Some((OnnxModel::of(&plan).ok()?, plan))
        };
        let (model, plan) = match clouds(any && matches!(grid, Grid::Cloud { .. })) {
            Some(found) => found,
            None => {
                let plan = Plan::of_samples(self.operator, grid)?;
                (OnnxModel::of(&plan)?, plan)
            }
        };
        let mut about = self.metadata(&plan)?;
        let verified = self.verified(&plan, &model.read_back(&model.bytes(&about)?)?, "ONNX file")?;
        about.extend(verification(&verified));
        let (bytes, files, operators) = (model.bytes(&about)?, vec![self.path.to_owned()], model.operators());
        let [inputs, outputs] = fields(&plan);
        let file = ExportedFile { form: "onnx", inputs, outputs, files, bytes: bytes.len(), operators, verified };
        Ok((file, vec![(self.path.to_owned(), bytes)]))
    }

    fn c(&self, plan: &Plan) -> Result<(ExportedFile, Vec<Contents>), Error> {
        let (model, mut about) = (CModel::of(plan)?, self.metadata(plan)?);
        let verified = self.verified(plan, &model, "C program")?;
        about.extend(verification(&verified));
        let (path, header) = (self.path.to_owned(), self.path.with_extension("h"));
        let name = header.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let [source, declared] = model.text(&name, &about);
        let (files, bytes) = (vec![path.clone(), header.clone()], source.len() + declared.len());
        let [inputs, outputs] = fields(plan);
        let file = ExportedFile { form: "c", inputs, outputs, files, bytes, operators: model.loops(), verified };
        Ok((file, vec![(header, declared.into_bytes()), (path, source.into_bytes())]))
    }

    fn metadata(&self, plan: &Plan) -> Result<Metadata, Refusal> {
        require(!plan.inputs.is_empty(), || {
            Refusal::about(format!("model {}", self.operator.model.name), "its prediction does not depend on any input")
        })?;
        Ok(metadata(self.operator, plan, self.source))
    }

    /// Compares what was made with the library's own predictions.
    fn verified(&self, plan: &Plan, made: &dyn Runs, what: &str) -> Result<Verified, Error> {
        let mut total: Option<Verified> = None;
        for (samples, origin) in self.compared(plan)? {
            let physical = self.operator.physical(&Graph::new(), samples.grid, 1)?;
            let expected = Expected::new(self.operator, &physical, (&samples, origin))?;
            let mut found = checked(&expected, expected.compare(made)?, what)?;
            found.points = plan.has_any_points().then_some([samples.grid.points(); 2]);
            total = Some(total.map_or(found, |total| total.and(found)));
        }
        total.ok_or_else(|| Refusal::said("there are no samples to compare").into())
    }

    /// Sets of samples to compare, each with one number of points; two numbers at least where any is allowed.
    fn compared(&self, plan: &Plan) -> Result<Vec<(Samples, Origin)>, Error> {
        let grid = plan.physical.task.grid;
        let mut sets = match self.test {
            Some(test) if !test.is_ragged() && test.grid == grid => vec![(test.clone(), Origin::Test)],
            Some(test) if test.is_ragged() && plan.has_any_points() => {
                let alone = |sample: usize| Samples { offsets: Vec::new(), ..test.chosen(&[sample]) };
                (0..test.count).map(|sample| (alone(sample), Origin::Test)).collect()
            }
            _ => vec![(drawn(&plan.physical, self.samples)?, Origin::Drawn)],
        };
        if plan.has_any_points() {
            let fewer = Grid::Cloud { points: grid.points() * 2 / 3 + 1 };
            let physical = self.operator.physical(&Graph::new(), fewer, 1)?;
            sets.push((drawn(&physical, 1)?, Origin::Drawn));
        }
        Ok(sets)
    }
}

/// The fields that a plan takes and makes.
fn fields(plan: &Plan) -> [Vec<FieldInfo>; 2] {
    let extent = |extent: &Extent| match *extent {
        Extent::Fixed(extent) => Some(extent),
        _ => None,
    };
    let info = |(port, place): &(Port, usize)| FieldInfo {
        name: port.name.clone(),
        shape: plan.nodes[*place].dims.iter().skip(1).map(extent).collect(),
        unit: port.unit.clone(),
    };
    [&plan.inputs, &plan.outputs].map(|ports| ports.iter().map(info).collect())
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

/// Some test samples, where the data are at hand.
fn test_samples(model: &Model, path: &Path, count: usize) -> Option<Samples> {
    let samples = TestSet::open(model, path).and_then(|set| set.samples()).ok()?;
    (samples.count > 0).then(|| samples.first(count))
}

fn drawn(physical: &Physical, count: usize) -> Result<Samples, Refusal> {
    physical.samples(&(0..count as u64).map(|seed| physical.drawn(seed)).collect::<Vec<_>>())
}
