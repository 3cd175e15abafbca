//! `POST /v1/models/NAME/predict`: a file of arrays or a mesh in, the prediction as a file out, as `lamo predict` makes it.

use super::arrays::Format;
use super::aside;
use super::query::Asked;
use crate::body::Body;
use crate::catalogue::Served;
use crate::engine::Answer;
use crate::failure::Failure;
use crate::router::{Computed, Server, Timed};
use crate::settings::Limits;
use axum::Extension;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use lamo::Error;
use lamo::data::formats::{self, ArrayFile, Named};
use lamo::data::import::{Making, MeshCases, Recorded};
use lamo::data::mesh::{self, Options};
use lamo::error::Refusal;
use lamo::inference::{PlannedInput, PredictionInput, Source};
use lamo::workflow::predicted_mesh;
use std::io::Write;
use std::sync::Arc;
use tempfile::NamedTempFile;

/// What sentences call the body.
const BODY: &str = "the body";

/// A request that has been read: the samples, and the mesh file that they come from.
struct Given {
    input: PredictionInput,
    mesh: Option<(NamedTempFile, bool)>,
    notes: Vec<String>,
}

pub(super) async fn predict(
    State(server): State<Server>,
    Extension(timed): Extension<Timed>,
    Path(name): Path<String>,
    asked: Result<Query<Vec<(String, String)>>, axum::extract::rejection::QueryRejection>,
    headers: HeaderMap,
    Body(body): Body,
) -> Result<Response, Failure> {
    let served = server.catalogue.find(&name, None)?;
    let Query(asked) = asked.map_err(|rejection| Failure::bad(format!("the query: {}", rejection.body_text())))?;
    let asked = Asked::parse(asked)?;
    let format = Format::of_body(asked.format.as_deref(), &headers, &body)?;
    let (answer, explicit) = Format::of_answer(&headers, format)?;
    if answer == Format::Vtu && format != Format::Vtu {
        let sentence = "a vtu file is the answer to a vtu file only; ask for npy or npz";
        return Err(Failure::new(StatusCode::NOT_ACCEPTABLE, sentence));
    }
    let (model, limits, symmetric) = (Arc::clone(&served), server.settings.limits, asked.symmetries);
    let given = aside(timed, move || read(&model, format, &asked, body.into(), limits)).await?;
    let samples = given.input.samples.clone();
    let found = served.engine.predict(samples, symmetric, timed.deadline).await?;
    let computed = Computed::of(&found);
    let notes = given.notes.clone();
    let bytes = aside(timed, move || write(&served, &given, &found, answer, explicit)).await?;
    let (bytes, answer) = bytes;
    let headers = [(header::CONTENT_TYPE, answer.content_type())];
    Ok(noted((headers, Extension(computed), bytes).into_response(), &notes))
}

/// Header of an answer for what `lamo predict` would note; one for each note.
const NOTE: HeaderName = HeaderName::from_static("lamo-note");

/// An answer with its notes as headers.
pub(crate) fn noted(mut response: Response, notes: &[String]) -> Response {
    for note in notes.iter().filter_map(|note| HeaderValue::from_bytes(note.as_bytes()).ok()) {
        response.headers_mut().append(NOTE, note);
    }
    response
}

/// What `lamo predict` would note about the same input.
pub(crate) fn notes(served: &Served, planned: &PlannedInput) -> Vec<String> {
    planned.notes().into_iter().chain(served.model.operator().note_on_grid(planned.grid)).collect()
}

/// Reads what `lamo predict --input` would read from the same file.
fn read(served: &Served, format: Format, asked: &Asked, body: Vec<u8>, limits: Limits) -> Result<Given, Failure> {
    let task = served.task();
    if format != Format::Vtu {
        let bad = |error: &Error| Failure::of_input(error);
        let file = ArrayFile::in_memory(BODY, body).map_err(|error| bad(&error.into()))?;
        let planned = PredictionInput::plan_file(task, file, asked.frames).map_err(|error| bad(&error))?;
        within(limits, &planned)?;
        let notes = notes(served, &planned);
        return Ok(Given { input: planned.read().map_err(|error| bad(&error))?, mesh: None, notes });
    }
    let mesh = scratch(&body)?;
    let named = |error: &Error| {
        let failure = Failure::of_input(error);
        Failure { sentence: failure.sentence.replace(&mesh.path().display().to_string(), BODY), ..failure }
    };
    let cases = cases(asked)?;
    mesh::require_alone(mesh.path(), limits.body as u64).map_err(|error| named(&error))?;
    let sources = mesh_sources(served, mesh.path(), &cases).map_err(|error| named(&error))?;
    let planned = PredictionInput::plan(task, &sources, asked.frames).map_err(|error| named(&error))?;
    within(limits, &planned)?;
    let notes = notes(served, &planned);
    let input = planned.read().map_err(|error| named(&error))?;
    Ok(Given { input, mesh: Some((mesh, cases.at_centres)), notes })
}

/// Refuses more points than a request may have, of a series at each of its times, and arrays that are larger when they are unpacked
/// than a body may be.
pub(crate) fn within(limits: Limits, planned: &PlannedInput) -> Result<(), Failure> {
    let (most, unpacked) = (limits.points, planned.values().saturating_mul(size_of::<f32>() as u64));
    if unpacked > limits.body as u64 {
        return Err(Failure::too_large(format!(
            "the request: expected arrays of at most {} bytes as float32, unpacked, found {unpacked}; send fewer samples or \
             snapshots, or raise --max-body",
            limits.body
        )));
    }
    let (samples, times, points) = (planned.count, planned.times, planned.grid.points());
    match samples.checked_mul(points).and_then(|points| points.checked_mul(times)) {
        Some(total) if total <= most => Ok(()),
        _ => {
            let times = if times > 1 { format!(" x {times} times") } else { String::new() };
            Err(Failure::too_large(format!(
                "the request: expected at most {most} points, found {samples} x {points}{times}; send fewer samples, or raise --max-points"
            )))
        }
    }
}

/// How the training made its fields, where its data set is on this machine.
fn recorded(served: &Served) -> Recorded {
    let manifest = served.test.as_ref().ok().map(|test| test.dataset().manifest());
    manifest.map(Recorded::of).unwrap_or_default()
}

/// Where the fields of a model are in a mesh, as the data set of the training records it where that is on this machine. A field that was
/// made with another file, such as a wall, is refused: a request has one file, and its own boundary is another surface.
fn mesh_sources(served: &Served, path: &std::path::Path, cases: &MeshCases) -> Result<Vec<Source>, Error> {
    let recorded = recorded(served);
    let task = served.task();
    let fields: Vec<String> = task.given_fields().into_iter().map(|field| field.name).collect();
    for field in &fields {
        if let Some(Making::WithFile(file)) = recorded.making(field) {
            let expected =
                format!("its values beside the mesh, because the training made them with another file, {file}");
            let refusal = Refusal::new(format!("field `{field}`"), expected, "a mesh alone");
            return Err(refusal.advise("send the points and the fields as an npz file").into());
        }
    }
    let arrays = cases.arrays_as_recorded(path, &fields, (task.space, task.grid), &recorded)?;
    let source = |(field, array, axes)| Source { field: Some(field), array, axes: Some(axes) };
    Ok(arrays.into_iter().map(source).collect())
}

/// How the fields of a mesh are found. A file beside the mesh cannot be named: it would be one of the server's.
fn cases(asked: &Asked) -> Result<MeshCases, Failure> {
    let derived: Vec<String> =
        asked.derive.iter().flat_map(|all| all.split(',')).map(|one| one.trim().to_owned()).collect();
    if let Some(other) = derived.iter().find(|one| !["distance", "normals"].contains(&one.as_str())) {
        return Err(Failure::bad(format!("derive: expected distance or normals, found {other}")));
    }
    let at_centres = match asked.on.as_deref() {
        None | Some("points") => false,
        Some("cells") => true,
        Some(other) => return Err(Failure::bad(format!("on: expected points or cells, found {other}"))),
    };
    Ok(MeshCases { derived, at_centres, ..MeshCases::default() })
}

/// The mesh as a file that only this user can read; it is removed when the request ends.
fn scratch(body: &[u8]) -> Result<NamedTempFile, Failure> {
    let written = tempfile::Builder::new().prefix("lamo-").suffix(".vtu").tempfile().and_then(|mut file| {
        file.write_all(body)?;
        Ok(file)
    });
    written.map_err(|reason| {
        let reason = reason.kind(); // without the path, which is the server's
        let sentence = format!(
            "the mesh cannot be stored while it is predicted ({reason}); send its points as an npz file, which needs no disk"
        );
        Failure::new(StatusCode::INSUFFICIENT_STORAGE, sentence)
    })
}

/// The answer as a file.
fn write(
    served: &Served,
    given: &Given,
    found: &Answer,
    format: Format,
    explicit: bool,
) -> Result<(Vec<u8>, Format), Failure> {
    let arrays = fields(served, &given.input, &found.values)?;
    if let (Format::Vtu, Some((file, at_centres))) = (format, &given.mesh) {
        let predicted = predicted_mesh(served.task(), file.path(), &arrays, (*at_centres, &recorded(served)))
            .map_err(|error| Failure::of(&error))?;
        let bytes = mesh::encode("vtu", &predicted, &Options::default());
        return Ok((bytes.map_err(|refusal| Failure::of(&refusal.into()))?, format));
    }
    // One npy file holds one array.
    let format = if format == Format::Npy && arrays.len() > 1 && !explicit { Format::Npz } else { format };
    let name = format!("prediction.{}", format.ending());
    let bytes = formats::encode(name.as_ref(), &arrays);
    let unwritable = |error: formats::Error| Failure::new(StatusCode::NOT_ACCEPTABLE, error.to_string());
    Ok((bytes.map_err(unwritable)?, format))
}

/// The output fields of a prediction.
pub(crate) fn fields(served: &Served, input: &PredictionInput, values: &[f32]) -> Result<Vec<Named>, Failure> {
    input.output_fields(served.task(), values).map_err(|refusal| {
        Failure::new(StatusCode::UNPROCESSABLE_ENTITY, refusal.to_string()) // the inputs are finite, the prediction is not
    })
}
