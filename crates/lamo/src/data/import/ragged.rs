//! Clouds of different sizes: a file for each sample, each with its own number of points.

use super::column::{Column, Part, Piece};
use super::field::Shared;
use super::own::{Own, OwnField};
use super::sources::Sources;
use crate::data::dataset::{Error, Role};
use crate::data::formats;
use crate::error::counted;
use lamo_geometry::Grid;

/// The points of each file of positions, each of which holds one sample; empty where the positions are in one file, or where a
/// file holds several samples.
pub fn points_of_files(fields: &[OwnField]) -> Result<Vec<usize>, Error> {
    let Some(field) = fields.iter().find(|field| field.role == Role::Position) else { return Ok(Vec::new()) };
    if field.arrays.len() < 2 {
        return Ok(Vec::new());
    }
    let mut sizes = Vec::with_capacity(field.arrays.len());
    for arrays in &field.arrays {
        let Some(first) = arrays.first() else { return Ok(Vec::new()) };
        let shape = formats::describe(&first.path, first.variable.as_deref())?.shape;
        let by_letter = field.axes.as_deref().map(|axes| (axes.find('p'), axes.contains('n')));
        // Coordinates side by side, or points with their coordinates.
        let axis = match (by_letter, &shape[..], arrays.len()) {
            (Some((Some(axis), false)), ..) => axis,
            (None, [_], 2..) | (None, [_, 1..=3], 1) => 0,
            _ => return Ok(Vec::new()),
        };
        sizes.push(shape.get(axis).copied().unwrap_or(0));
    }
    Ok(sizes)
}

impl Own {
    /// Refuses what samples of different sizes do not have.
    pub(super) fn check_ragged(&self) -> Result<(), Error> {
        if self.ragged.is_empty() {
            return Ok(());
        }
        let most = self.ragged.iter().copied().max().unwrap_or(0);
        if self.grid != (Grid::Cloud { points: most }) {
            let expected = format!("a cloud of the {most} points of the largest sample");
            return Err(Error::unfit("--grid".into(), expected, format!("a {}", self.grid), "say --grid cloud"));
        }
        match self.ragged.iter().position(|&points| points == 0) {
            Some(sample) => {
                let found = format!("none in sample {sample}");
                Err(Error::unfit("positions".into(), "at least one point".into(), found, "leave the file out"))
            }
            None => Ok(()),
        }
    }
}

impl OwnField {
    /// Whether it has values on the points of samples of these sizes: a file for each of them, with an axis of its points.
    pub(super) fn is_ragged(&self, sizes: &[usize], sources: &mut Sources) -> Result<bool, Error> {
        if sizes.is_empty() || self.arrays.len() < 2 {
            return Ok(false);
        }
        if let Some(axes) = &self.axes {
            return Ok(axes.contains('p'));
        }
        for (arrays, points) in self.arrays.iter().zip(sizes) {
            for name in arrays {
                let shape = sources.file(&name.path)?.describe(name.variable.as_deref())?.shape;
                if !shape.contains(points) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }

    /// Its arrays, one part for each sample, checked against the points of the sample and against each other.
    pub(super) fn ragged_column(
        &self,
        sizes: &[usize],
        shared: &Shared,
        sources: &mut Sources,
    ) -> Result<Column, Error> {
        if self.arrays.len() != sizes.len() {
            let expected = format!("{}, one for each sample", counted(sizes.len(), "file"));
            let advice = "give as many files as files of positions";
            return Err(Error::unfit(self.title(), expected, self.arrays.len().to_string(), advice));
        }
        let mut column = Column::ragged();
        for (arrays, &points) in self.arrays.iter().zip(sizes) {
            let shared = Shared { grid: Grid::Cloud { points }, ..*shared };
            let part = self.part(arrays, column.pieces().next(), &shared, sources)?;
            if let Some(first) = column.parts.first() {
                check_alike(first, &part)?;
            }
            column.parts.push(part);
        }
        Ok(column)
    }
}

/// Refuses a sample whose arrays differ from those of the first sample in more than their points.
fn check_alike(first: &Part, part: &Part) -> Result<(), Error> {
    let [expected, found] = [first, part].map(|part| {
        let axes = part.pieces().iter().map(Piece::words_without_points);
        axes.collect::<Vec<_>>().join(" and ")
    });
    if expected == found {
        return Ok(());
    }
    let title = part.pieces().first().map(Piece::title).unwrap_or_default();
    let named = |words: String| if words.is_empty() { "one value".to_owned() } else { words };
    let expected = format!("{} at each point, as the first sample has", named(expected));
    Err(Error::unfit(title, expected, named(found), "give arrays that differ only in their points"))
}
