//! From mesh files to mesh files: the prediction on the original points and cells, with the error where the truth is known.

use super::{Model, PredictRequest, Predicted, predict_to};
use crate::data::formats::{self, Named};
use crate::data::import::{FieldArray, Making, MeshCases, Recorded, array_of_field, field_name};
use crate::data::mesh::{self, DataArray, Mesh, Numbers, Options};
use crate::error::{Error, Refusal, require};
use crate::inference::{SampleFile, Source};
use crate::task::{Field, Spread, Task};
use crate::workflow::TestSet;
use std::borrow::Cow;
use std::path::Path;

/// Predicts for mesh files. `cases` says where inputs come from that the files do not hold. An output file that is a mesh
/// has what the input file had, and of each output `NAME_predicted`, and `NAME_error` where the file holds the truth.
pub fn predict_meshes(request: &PredictRequest, cases: &MeshCases) -> Result<Predicted, Error> {
    let to_mesh = mesh::is_mesh_name(&request.output);
    let several = request.output.file_name().is_some_and(|name| name.to_string_lossy().contains('*'));
    let (named, files): (Vec<&Source>, Vec<&Source>) =
        request.inputs.iter().partition(|source| source.field.is_some() || source.array.variable.is_some());
    require(!to_mesh || several || files.len() < 2, || {
        let found = format!("one name for {} files", files.len());
        Refusal::new("--output", "a file for each mesh, such as 'out/*.vtu'", found)
    })?;
    let model = Model::open(&request.model)?;
    let recorded = TestSet::open(&model, &request.model).map(|set| Recorded::of(set.dataset().manifest()));
    let recorded = recorded.unwrap_or_default(); // without the data of the run, names decide
    let mut inputs = Vec::new();
    for path in files.iter().map(|source| &source.array.path) {
        let own = named.iter().filter(|source| source.array.path == *path);
        let fields =
            own.filter_map(|source| Some([source.field.as_deref()?, source.array.variable.as_deref()?].join("=")));
        let cases = MeshCases { inputs: cases.inputs.iter().cloned().chain(fields).collect(), ..cases.clone() };
        inputs.extend(mesh_sources(&model.operator().task, path, &cases, &recorded)?);
    }
    let whole = |source: &&&Source| source.field.is_some() && source.array.variable.is_some();
    let of_file = |source: &&&Source| files.iter().any(|file| file.array.path == source.array.path);
    if let Some(other) = named.iter().find(|source| !whole(source) || !of_file(source)) {
        let expected = "mesh files, and FIELD=FILE:ARRAY for arrays of these files";
        return Err(Refusal::new("--input", expected, other.array.title()).into());
    }
    let (request, task) = (PredictRequest { inputs, ..request.clone() }, &model.operator().task);
    predict_to(&request, &|file, input, arrays| match to_mesh {
        true => write_mesh(task, file, input, arrays, (cases.at_centres, &recorded)),
        false => Ok(formats::write(file, arrays)?),
    })
}

/// Where the fields that a model is given are in a mesh file; `recorded` says how those of the training were made.
pub fn mesh_sources(task: &Task, path: &Path, cases: &MeshCases, recorded: &Recorded) -> Result<Vec<Source>, Error> {
    let fields: Vec<String> = task.given_fields().into_iter().map(|field| field.name).collect();
    let arrays = cases.arrays_as_recorded(path, &fields, (task.space, task.grid), recorded)?;
    let source = |(field, array, axes): FieldArray| Source { field: Some(field), array, axes: Some(axes) };
    Ok(arrays.into_iter().map(source).collect())
}

fn write_mesh(
    task: &Task,
    file: &Path,
    input: &SampleFile,
    arrays: &[Named],
    places: (bool, &Recorded),
) -> Result<(), Error> {
    mesh::write(file, &predicted_mesh(task, &input.path, arrays, places)?, &Options::default())
}

/// The mesh of a file with the predictions of a model for its one sample, and their errors where the file holds the truth. A list of
/// several times holds what came before the prediction, so the prediction is on its points and cells alone. `at_centres` says whether
/// the predictions are at the centres of cells, `recorded` from which arrays the outputs of the training came.
pub fn predicted_mesh(
    task: &Task,
    path: &Path,
    arrays: &[Named],
    (at_centres, recorded): (bool, &Recorded),
) -> Result<Mesh, Error> {
    let mut mesh = mesh::read(path)?;
    if !mesh::times(path)?.is_empty() {
        mesh = Mesh::new(mesh.shape);
    }
    let fields = task.predicted_fields();
    for array in arrays {
        // Shapes alone do not tell: a plane may have as many snapshots as rows.
        let field = fields.iter().find(|field| field.name == array.name && field.spread == Spread::Points);
        let Some(field) = field else {
            let (name, values) = (format!("{}_predicted", array.name), Numbers::F32(array.values.clone()));
            mesh.field_data.push(DataArray { name, components: 1, values });
            continue;
        };
        let array = in_the_order_of_points(array, field, &mesh, at_centres);
        let truth = match recorded.making(&field.name) {
            Some(Making::Stored(name)) => Some(name.clone()),
            _ => array_of_field(&mesh, &field.name).map(|truth| truth.name.clone()),
        };
        add(&mut mesh, path, (&array, field, truth), at_centres)?;
    }
    Ok(mesh)
}

/// An array on a lattice, `[snapshots?, ...axes, channels?]`, as one on its points, `[snapshots?, points, channels?]`; others as
/// they are.
fn in_the_order_of_points<'a>(array: &'a Named, field: &Field, mesh: &Mesh, at_centres: bool) -> Cow<'a, Named> {
    let extents = mesh::named::extents(mesh, at_centres).filter(|extents| extents.len() > 1);
    let Some(extents) = extents else { return Cow::Borrowed(array) };
    let axes = match extents[..] {
        [layers, columns, rows] => vec![rows, columns, layers],
        _ => extents.clone(), // a plane has the order of the file
    };
    let first = usize::from(field.snapshots.is_some());
    if array.shape.get(first..first + axes.len()) != Some(&axes[..]) {
        return Cow::Borrowed(array);
    }
    let channels: usize = array.shape[first + axes.len()..].iter().product();
    let points: usize = axes.iter().product();
    let mut shape = array.shape.clone();
    shape.splice(first..first + axes.len(), [points]);
    let mut values = array.values.clone();
    if let [rows, columns, layers] = axes[..] {
        for (new, old) in values.chunks_mut(points * channels).zip(array.values.chunks(points * channels)) {
            for point in 0..points {
                let (row, column, layer) = (point % rows, point / rows % columns, point / rows / columns);
                let from = ((row * columns + column) * layers + layer) * channels;
                new[point * channels..][..channels].copy_from_slice(&old[from..][..channels]);
            }
        }
    }
    Cow::Owned(Named { name: array.name.clone(), shape, values })
}

/// Adds the prediction of a field, `[snapshots?, points, channels?]`, and its error where the mesh has the array `truth`. The new arrays
/// have the name of that array where it differs from the field's in capitals alone.
fn add(
    mesh: &mut Mesh,
    path: &Path,
    (array, field, truth): (&Named, &Field, Option<String>),
    at_centres: bool,
) -> Result<(), Error> {
    let count = if at_centres { mesh.cell_count() } else { mesh.point_count() };
    let series = usize::from(field.snapshots.is_some());
    let (snapshots, components) = (if series > 0 { array.shape[0] } else { 1 }, field.width());
    require(array.shape.get(series) == Some(&count), || {
        Refusal::new(path.display().to_string(), format!("predictions at {count} places"), format!("{:?}", array.shape))
    })?;
    let alike = truth.clone().filter(|truth| snapshots == 1 && field_name(truth) == array.name);
    let name = alike.unwrap_or_else(|| array.name.clone());
    let is_held = |truth: &String| {
        let mut places = [&mesh.point_data, &mesh.cell_data].into_iter().flatten();
        places.any(|held| held.name == *truth && held.components == components)
    };
    let held = truth.filter(|truth| snapshots == 1 && is_held(truth));
    let truth = held.and_then(|name| mesh::named::at(mesh, path, &name, at_centres).ok()); // its own array stays
    let mut added = Vec::new();
    for (snapshot, values) in array.values.chunks(count * components).enumerate() {
        let name = if snapshots == 1 { format!("{name}_predicted") } else { format!("{name}_predicted_{snapshot}") };
        added.push(DataArray { name, components, values: Numbers::F32(values.to_vec()) });
    }
    if let Some(truth) = truth.filter(|truth| truth.len() == array.values.len()) {
        let error = array.values.iter().zip(truth).map(|(value, truth)| (f64::from(*value) - truth) as f32).collect();
        added.push(DataArray { name: format!("{name}_error"), components, values: Numbers::F32(error) });
    }
    let arrays = if at_centres { &mut mesh.cell_data } else { &mut mesh.point_data };
    for new in added {
        arrays.retain(|other| other.name != new.name); // a file that was predicted before
        arrays.push(new);
    }
    Ok(())
}
