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

/// What is given and what is asked, below each other.
fn task(title: &str, view: &View) -> Option<FieldColumn> {
    let last = last(view)?;
    let at = layout(view, &last.positions);
    let given = match view.given.is_empty() {
        true => FieldPicture {
            title: "given: the mesh".to_owned(),
            layout: at.clone().without_field(),
            values: vec![0.0; at.points()],
            scale: Scale::plain(),
            mark: None,
        },
        false => {
            // A deformation is given its die on the lattice of the block at rest.
            let lattice = if view.output == "displacement" { layout(view, &[]) } else { at.clone() };
            let scale = Scale::of(view.given.iter().copied());
            FieldPicture { title: "given".to_owned(), layout: lattice, values: view.given.clone(), scale, mark: None }
        }
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

/// Truth, predictions and errors of both models: a column, or one for each of a few times.
fn compared(subject: Subject, title: &str, lamo: &View, transolver: &View) -> Vec<FieldColumn> {
    let times: Vec<usize> = match subject {
        Subject::Predictions => (0..lamo.snapshots.len().min(transolver.snapshots.len())).collect(),
        _ => vec![lamo.snapshots.len().saturating_sub(1)],
    };
    let pairs = || times.iter().filter_map(|time| Some((lamo.snapshots.get(*time)?, transolver.snapshots.get(*time)?)));
    // One scale for the errors of both models at all times, and one for truth and predictions.
    let errors = pairs().flat_map(|(one, other)| one.error.iter().chain(&other.error)).copied();
    let errors = Scale::of(errors.chain([0.0]));
    let values = Scale::of(pairs().flat_map(|(one, _)| &one.truth).copied());
    let column = |(one, other): (&Snapshot, &Snapshot)| {
        let at = layout(lamo, &one.positions);
        let picture = |title: String, values: &[f32], scale: Scale| FieldPicture {
            title,
            layout: at.clone(),
            values: values.to_vec(),
            scale,
            mark: None,
        };
        let when = if one.number > 0 { format!(", snapshot {}", one.number) } else { String::new() };
        let mut pictures = vec![picture("truth".to_owned(), &one.truth, values)];
        if subject == Subject::Predictions {
            pictures.push(picture(printed("transolver").to_owned(), &other.prediction, values));
            pictures.push(picture(printed("lamo").to_owned(), &one.prediction, values));
        }
        let error = |view: &View| format!("error of {}: {}", printed(&view.model), percent(view.error));
        pictures.push(picture(error(transolver), &other.error, errors));
        pictures.push(picture(error(lamo), &one.error, errors));
        FieldColumn { title: format!("{title}{when}"), pictures }
    };
    pairs().map(column).collect()
}
