//! Figures of fields: several runs on one test sample, with one scale for their errors.

use super::Gathered;
use crate::plot::{Drawing, FieldColumn, FieldPicture, Layout, Scale, field_sheet};
use crate::report::volume_layout;
use crate::text::percent;
use lamo::Error;
use lamo::paper::{Portrait, Snapshot, Subject, View, printed};
use lamo_geometry::Grid;

/// Columns of a figure, as wide as a column of text.
const ACROSS: usize = 3;

/// The drawing; `None` where no run has a view of its sample.
pub(super) fn drawing(subject: Subject, portraits: &[Portrait], gathered: &Gathered) -> Result<Option<Drawing>, Error> {
    let mut columns = Vec::new();
    for portrait in portraits {
        let [lamo, transolver] = &portrait.cells;
        let find = |cell: &lamo::paper::Cell| -> Result<Option<View>, Error> {
            Ok(View::find(&gathered.folders, &cell.resolve()?))
        };
        let (lamo, transolver) = (find(lamo)?, find(transolver)?);
        match (subject, lamo, transolver) {
            (Subject::Task, Some(view), _) | (Subject::Task, None, Some(view)) => {
                columns.extend(task(portrait.title, &view));
            }
            (_, Some(lamo), Some(transolver)) if lamo.sample == transolver.sample => {
                columns.extend(compared(subject, portrait.title, &lamo, &transolver));
            }
            _ => {}
        }
    }
    Ok((!columns.is_empty()).then(|| field_sheet(&columns, ACROSS)))
}

/// The layout of a snapshot's points.
fn layout(view: &View, positions: &[f32]) -> Layout {
    let points = || positions.chunks_exact(2).map(|point| [point[0], point[1]]).collect::<Vec<_>>();
    match view.grid {
        Grid::Plane { rows, columns } if positions.is_empty() => Layout::Grid([rows, columns]),
        Grid::Plane { rows, columns } => Layout::Mesh([rows, columns], points()),
        Grid::Line { points } => Layout::Grid([points, 1]),
        Grid::Volume { .. } => volume_layout(view.grid),
        Grid::Cloud { .. } => Layout::cloud(positions, 2),
    }
}

fn last(view: &View) -> Option<&Snapshot> {
    view.snapshots.last()
}

fn given(title: &str, layout: Layout, values: Vec<f32>) -> FieldPicture {
    let scale = Scale::of(values.iter().copied());
    FieldPicture { title: title.to_owned(), layout, values, scale, mark: None }
}

/// What is given and what is asked, below each other.
fn task(title: &str, view: &View) -> Option<FieldColumn> {
    let last = last(view)?;
    let at = layout(view, &last.positions);
    let given = if view.given.is_empty() {
        FieldPicture {
            title: "given: the mesh".to_owned(),
            layout: at.clone().without_field(),
            values: vec![0.0; at.points()],
            scale: Scale::plain(),
            mark: None,
        }
    } else if let (true, Grid::Plane { columns, .. }) = (view.output == "displacement", view.grid) {
        // The die runs against the rows of the mesh, and is drawn on the block before it deforms.
        let values = view.given.rchunks_exact(columns).flatten().copied().collect();
        let start = view.snapshots.first()?;
        given("given: the die above it", layout(view, &start.positions), values)
    } else {
        given("given", at.clone(), view.given.clone())
    };
    let scale = Scale::of(last.truth.iter().copied());
    let asked = FieldPicture {
        title: format!("asked: {}", view.output),
        layout: at,
        values: last.truth.clone(),
        scale,
        mark: None,
    };
    Some(FieldColumn { title: title.to_owned(), pictures: vec![given, asked] })
}

/// ‖error‖ / ‖truth‖ of what is drawn.
fn error_at(snapshot: &Snapshot) -> f64 {
    let norm = |values: &[f32]| values.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
    norm(&snapshot.error) / norm(&snapshot.truth)
}

/// Truth, predictions and errors of both models: a column for each of a few times, or for a steady field the truth and a column
/// for each model.
fn compared(subject: Subject, title: &str, lamo: &View, transolver: &View) -> Vec<FieldColumn> {
    let predictions = subject == Subject::Predictions;
    let times: Vec<usize> = match predictions {
        true => (0..lamo.snapshots.len().min(transolver.snapshots.len())).collect(),
        false => vec![lamo.snapshots.len().saturating_sub(1)],
    };
    let pairs = || times.iter().filter_map(|time| Some((lamo.snapshots.get(*time)?, transolver.snapshots.get(*time)?)));
    // One scale for the errors of both models at all times, and one for truth and predictions.
    let errors = pairs().flat_map(|(one, other)| one.error.iter().chain(&other.error)).copied();
    let errors = Scale::of(errors.chain([0.0]));
    let values = Scale::of(pairs().flat_map(|(one, _)| &one.truth).copied());
    let columns = |(one, other): (&Snapshot, &Snapshot)| {
        let at = layout(lamo, &one.positions);
        let picture = |title: String, values: &[f32], scale: Scale| FieldPicture {
            title,
            layout: at.clone(),
            values: values.to_vec(),
            scale,
            mark: None,
        };
        let truth = picture("truth".to_owned(), &one.truth, values);
        let both = [(transolver, other), (lamo, one)].map(|(view, snapshot)| {
            let name = printed(&view.model);
            let whole = if predictions && snapshot.number > 0 { error_at(snapshot) } else { view.error };
            let error = picture(format!("error of {name}: {}", percent(whole)), &snapshot.error, errors);
            (picture(name.to_owned(), &snapshot.prediction, values), error)
        });
        let [(other, other_error), (own, own_error)] = both;
        let column = |title: &str, pictures: Vec<FieldPicture>| FieldColumn { title: title.to_owned(), pictures };
        match (predictions, one.number) {
            (true, 0) => {
                vec![column(title, vec![truth]), column("", vec![other, other_error]), column("", vec![own, own_error])]
            }
            (true, number) => {
                let pictures = vec![truth, other, own, other_error, own_error];
                vec![column(&format!("{title}, snapshot {number}"), pictures)]
            }
            (false, 0) => vec![column(title, vec![truth, other_error, own_error])],
            (false, number) => {
                vec![column(&format!("{title}, snapshot {number}"), vec![truth, other_error, own_error])]
            }
        }
    };
    pairs().flat_map(columns).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sample on 2 × 1 points whose error grows with the number of the snapshot; number 0 is a steady field.
    fn view(model: &str, numbers: &[usize]) -> View {
        let snapshot = |number: &usize| Snapshot {
            number: *number,
            positions: Vec::new(),
            truth: vec![3.0, 4.0],
            prediction: vec![3.0, 4.0 + *number as f32],
            error: vec![0.0, *number as f32],
        };
        View {
            key: String::new(),
            model: model.to_owned(),
            sample: 7,
            error: 0.125,
            inference_seconds: None,
            grid: Grid::Plane { rows: 2, columns: 1 },
            output: "u".to_owned(),
            given: Vec::new(),
            snapshots: numbers.iter().map(snapshot).collect(),
        }
    }

    /// The titles of columns and of their pictures.
    fn titles(subject: Subject, numbers: &[usize]) -> Vec<(String, Vec<String>)> {
        let columns = compared(subject, "Flow", &view("lamo", numbers), &view("transolver", numbers));
        let title =
            |column: FieldColumn| (column.title, column.pictures.into_iter().map(|picture| picture.title).collect());
        columns.into_iter().map(title).collect()
    }

    #[test]
    fn a_steady_sample_has_a_column_for_each_model_and_a_series_one_for_each_time_with_its_own_errors() {
        let steady = titles(Subject::Predictions, &[0]);
        assert_eq!(steady.iter().map(|(_, pictures)| pictures.len()).collect::<Vec<_>>(), [1, 2, 2]);
        assert_eq!(steady[2].1, ["LaMO", "error of LaMO: 12.50 %"]);
        let series = titles(Subject::Predictions, &[1, 3]);
        assert_eq!(
            series.iter().map(|(title, _)| title.as_str()).collect::<Vec<_>>(),
            ["Flow, snapshot 1", "Flow, snapshot 3"]
        );
        assert_eq!(series[1].1[4], "error of LaMO: 60.00 %");
        let errors = titles(Subject::Errors, &[1, 3]);
        assert_eq!(errors.len(), 1, "the last time");
        assert_eq!(errors[0].1[2], "error of LaMO: 12.50 %", "of the whole sample");
    }
}
