//! `POST /v1/models/NAME/solve`: the true pressure of a permeability, by the solver that made the labels of Darcy flow.
//!
//! Labels are solved on `resolution` x `resolution` cells, and the model sees every `stride`-th row and column. A permeability
//! of `resolution` points is solved as it is. One on the grid of the model has a value for every `stride`-th cell only; each
//! other cell takes the value of the nearest of these, so that the model and the solver see the same field at the points of
//! the model. The answer is the pressure at the points of the model.

use super::arrays::Format;
use super::aside;
use crate::body::Body;
use crate::failure::Failure;
use crate::router::{Server, Timed};
use axum::Extension;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use lamo::data::formats::{self, ArrayFile, Named};
use lamo::physics::problems::darcy::{Darcy, ROW};
use lamo::workflow::Model;
use lamo::{Dataset, Error, Grid};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Semaphore;

/// How the labels of a model of Darcy flow were made.
pub(crate) struct Solver {
    /// Settings of the problem, `key=value`.
    settings: Vec<String>,
    /// Cells along each side.
    resolution: usize,
    /// The model sees every so many of them.
    stride: usize,
    /// Points of the model along each side.
    side: usize,
    canonical: bool,
    /// Analysed when first used.
    problem: Mutex<Option<Darcy>>,
    /// One solution at a time: each takes all of a core.
    turn: Arc<Semaphore>,
}

impl Solver {
    /// The solver of a model, or why it has none.
    pub(crate) fn of(model: &Model, dataset: Option<&Dataset>) -> Result<Solver, String> {
        let none = |reason: &str| format!("there is no solver: {reason}");
        let Model::Trained(trained) = model else { return Err(none("the problem of imported weights is not known")) };
        let (data, task) = (&trained.experiment.data, &trained.operator.task);
        let (problem, settings) = match dataset.filter(|dataset| !dataset.is_imported()).map(Dataset::manifest) {
            Some(manifest) => (&manifest.problem, &manifest.parameters), // a data set of the user's own making
            None => (&data.problem, &data.settings),
        };
        if problem != ROW.name {
            return Err(none("only models of Darcy flow whose data a solver of lamo made have one"));
        }
        let (Grid::Plane { rows: side, columns }, [_], [_]) = (task.grid, &task.inputs[..], &task.outputs[..]) else {
            return Err(none("the model does not map a permeability on a plane to a pressure"));
        };
        let whole = |key: &str, default: i64| settings.get(key).and_then(toml::Value::as_integer).unwrap_or(default);
        let (resolution, stride) = (whole("resolution", 421).max(1) as usize, whole("stride", 1).max(1) as usize);
        if side != columns || resolution.div_ceil(stride) != side {
            return Err(none("the grid of the model is not that of its labels"));
        }
        let canonical = settings.get("canonical").and_then(toml::Value::as_bool).unwrap_or(false);
        let settings = settings.iter().map(|(key, value)| format!("{key}={value}")).collect();
        Ok(Solver {
            settings,
            resolution,
            stride,
            side,
            canonical,
            problem: Mutex::new(None),
            turn: Arc::new(Semaphore::new(1)),
        })
    }

    /// `[side, side]` pressure of a permeability `[points, points]`.
    fn solve(&self, points: usize, permeability: &[f64]) -> Result<Vec<f32>, Failure> {
        let cells = self.on_cells(points, permeability);
        let failed = |error: lamo::physics::Error| {
            Failure::new(StatusCode::UNPROCESSABLE_ENTITY, format!("the permeability cannot be solved for: {error}"))
        };
        let mut known = self.problem.lock().unwrap_or_else(PoisonError::into_inner);
        let problem = match known.take() {
            Some(problem) => problem,
            None => Darcy::with(&self.settings).map_err(failed)?,
        };
        let pressure = known.insert(problem).pressure(&cells).map_err(failed)?;
        Ok(pressure.into_iter().map(|value| value as f32).collect())
    }

    /// The permeability of every cell.
    fn on_cells(&self, points: usize, permeability: &[f64]) -> Vec<f64> {
        let Solver { resolution, stride, side, .. } = *self;
        if points == resolution {
            return permeability.to_vec();
        }
        let nearest = |cell: usize| ((cell + stride / 2) / stride).min(side - 1);
        let cell = |cell: usize| permeability[nearest(cell / resolution) * side + nearest(cell % resolution)];
        (0..resolution * resolution).map(cell).collect()
    }

    /// How it solves, in words.
    fn method(&self) -> String {
        let Solver { resolution, stride, canonical, .. } = self;
        let scheme = if *canonical { "five-point scheme of the public files" } else { "finite volumes" };
        format!("{scheme}, {resolution} x {resolution} cells, every {stride}. row and column")
    }

    /// Reads `[points, points]` or `[1, points, points]` positive numbers.
    fn read(&self, body: Vec<u8>) -> Result<(usize, Vec<f64>), Failure> {
        let bad = |error: formats::Error| Failure::of_input(&Error::from(error));
        let file = ArrayFile::in_memory("the body", body).map_err(bad)?;
        let info = file.describe(None).map_err(bad)?;
        let (side, resolution) = (self.side, self.resolution);
        let points = match info.shape[..] {
            [rows, columns] | [1, rows, columns] if rows == columns && (rows == side || rows == resolution) => rows,
            _ => {
                let expected = format!(
                    "the body: expected a permeability of shape [{side}, {side}] or [{resolution}, {resolution}]"
                );
                return Err(Failure::bad(format!("{expected}, found {:?}", info.shape)));
            }
        };
        let values: Vec<f64> = file.read(None).map_err(bad)?.values.into_f32().into_iter().map(f64::from).collect();
        match values.iter().find(|value| !(value.is_finite() && **value > 0.0)) {
            Some(odd) => {
                Err(Failure::bad(format!("the body: expected a permeability above 0 everywhere, found {odd}")))
            }
            None => Ok((points, values)),
        }
    }
}

/// Runs work beside the threads that serve connections, one at a time. A request that waits for its turn holds no thread, and one
/// whose client leaves or whose time is up leaves the queue.
async fn in_turn<T: Send + 'static>(
    turn: &Arc<Semaphore>,
    timed: Timed,
    work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let waited = tokio::time::timeout_at(timed.deadline.into(), Arc::clone(turn).acquire_owned()).await;
    let Ok(Ok(place)) = waited else { return Err(timed.too_late()) };
    aside(timed, move || {
        let _place = place; // until the work is done, also where the client has left
        work()
    })
    .await
}

pub(super) async fn solve(
    State(server): State<Server>,
    Extension(timed): Extension<Timed>,
    Path(name): Path<String>,
    headers: HeaderMap,
    Body(body): Body,
) -> Result<Response, Failure> {
    let served = server.catalogue.find(&name, None)?;
    let turn = match &served.solver {
        Ok(solver) => Arc::clone(&solver.turn),
        Err(reason) => return Err(Failure::new(StatusCode::NOT_IMPLEMENTED, reason.clone())),
    };
    if Format::of_body(None, &headers, &body)? != Format::Npy {
        let sentence = "Content-Type: expected application/x-npy, one array of the permeability";
        return Err(Failure::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, sentence));
    }
    let (bytes, method) = in_turn(&turn, timed, move || {
        let solver =
            served.solver.as_ref().map_err(|reason| Failure::new(StatusCode::NOT_IMPLEMENTED, reason.clone()))?;
        let (points, permeability) = solver.read(body.into())?;
        let values = solver.solve(points, &permeability)?;
        let pressure = Named { name: "pressure".into(), shape: vec![solver.side; 2], values };
        let bytes = formats::encode("pressure.npy".as_ref(), &[pressure]);
        Ok((bytes.map_err(|error| Failure::of(&error.into()))?, solver.method()))
    })
    .await?;
    let headers = [(header::CONTENT_TYPE.as_str(), Format::Npy.content_type()), ("lamo-solver", method.as_str())];
    Ok((headers, bytes).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn solutions_that_wait_hold_no_thread_that_predictions_need() {
        let runtime = tokio::runtime::Builder::new_multi_thread().max_blocking_threads(2).enable_all().build().unwrap();
        let turn = Arc::new(Semaphore::new(1));
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let long = Timed::new(Duration::from_secs(60));
        let own = Arc::clone(&turn);
        let running = runtime.spawn(async move {
            let work = move || ended.recv().map_err(|_| Failure::internal("the claim ended"));
            in_turn(&own, long, work).await
        });
        while turn.available_permits() > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        let waiting: Vec<_> = (0..4)
            .map(|_| {
                let (own, short) = (Arc::clone(&turn), Timed::new(Duration::from_millis(200)));
                runtime.spawn(async move { in_turn(&own, short, || Ok(())).await })
            })
            .collect();
        let read = runtime.block_on(aside(Timed::new(Duration::from_secs(20)), || Ok("a prediction is read")));
        assert_eq!(read.map_err(|failure| failure.sentence), Ok("a prediction is read"));
        for task in waiting {
            assert_eq!(runtime.block_on(task).unwrap().unwrap_err().status, StatusCode::GATEWAY_TIMEOUT);
        }
        end.send(()).unwrap();
        assert!(runtime.block_on(running).unwrap().is_ok() && turn.available_permits() == 1);
    }
}
