//! Fields of a data set as values on the points of a grid, and back.
//!
//! The shape of one sample is `[snapshots?, ...grid, channels?]`; on a plane `[rows]` is repeated along the columns, and
//! `[]`, `[channels]` or, where its axes are named, `[snapshots]` is repeated at all points.

use super::task::{MOST_CHANNELS, within};
use crate::error::{Refusal, require};
use lamo_geometry::Grid;
use serde::{Deserialize, Serialize};

/// What one value of a field belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Spread {
    /// A point.
    Points,
    /// A row of a plane.
    Rows,
    /// The whole sample.
    Sample,
}

/// A field as it is used: name, unit and axes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Field {
    /// Name in the data set.
    pub name: String,
    /// Unit; `1` for dimensionless equations.
    pub unit: String,
    /// What one value belongs to.
    pub spread: Spread,
    /// Length of the time axis before the points, where there is one.
    #[serde(rename = "frames", default, skip_serializing_if = "Option::is_none")]
    pub snapshots: Option<usize>,
    /// Length of the axis behind the points, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channels: Option<usize>,
    /// True when the field is never normalised, even if the experiment normalises its fields.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub raw: bool,
}

impl Field {
    /// One value per point.
    pub fn plain(name: &str, channels: usize) -> Field {
        let channels = (channels != 1).then_some(channels);
        Field { name: name.into(), unit: "1".into(), spread: Spread::Points, snapshots: None, channels, raw: false }
    }

    /// Reads the axes of a field off its shape.
    pub fn on(grid: Grid, name: &str, unit: &str, shape: &[usize]) -> Result<Field, Refusal> {
        let inner = grid.shape();
        let axes = |spread, snapshots, channels| {
            Ok(Field { name: name.into(), unit: unit.into(), spread, snapshots, channels, raw: false })
        };
        match shape {
            _ if shape == inner => axes(Spread::Points, None, None),
            [first @ .., last] if first == inner => axes(Spread::Points, None, Some(*last)),
            [first, last @ ..] if last == inner => axes(Spread::Points, Some(*first), None),
            [first, middle @ .., last] if middle == inner => axes(Spread::Points, Some(*first), Some(*last)),
            [rows] if inner.len() == 2 && *rows == inner[0] => axes(Spread::Rows, None, None),
            [flat] if inner.len() > 1 && *flat == grid.points() => {
                let expected = format!("the shape {inner:?} of the grid");
                Err(Refusal::new(format!("field `{name}`"), expected, format!("{shape:?}")).advise("reshape it"))
            }
            [] => axes(Spread::Sample, None, None),
            [count] => axes(Spread::Sample, None, Some(*count)),
            _ => {
                let inner = inner.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
                let expected = format!("the shape [frames?, {inner}, channels?] of the grid");
                Err(Refusal::new(format!("field `{name}`"), expected, format!("{shape:?}")))
            }
        }
    }

    /// The same where a shape alone would be read otherwise: `axes` has a letter for each, t snapshots, p the points, x the rows of a
    /// plane, c channels.
    pub fn with_axes(grid: Grid, name: &str, unit: &str, shape: &[usize], axes: &str) -> Result<Field, Refusal> {
        let refuse = || {
            let found = format!("`{axes}` for shape {shape:?}");
            Refusal::new(format!("field `{name}`"), "axes p, pc, tp, tpc, x, xc, c, t or tc, as the shape has", found)
        };
        let points = if axes.contains('x') { Spread::Rows } else { Spread::Points };
        let spread = if axes.contains(['p', 'x']) { points } else { Spread::Sample };
        let known = ["p", "pc", "tp", "tpc", "x", "xc", "", "c", "t", "tc"].contains(&axes);
        require(known && (spread != Spread::Rows || grid.plane().is_some()), refuse)?;
        let snapshots = shape.first().copied().filter(|_| axes.contains('t'));
        let channels = shape.last().copied().filter(|_| axes.contains('c'));
        let field = Field { name: name.into(), unit: unit.into(), spread, snapshots, channels, raw: false };
        require(field.shape(grid) == shape, refuse)?;
        Ok(field)
    }

    /// Refuses extents of 0, extents that no field has, and rows where there are none.
    pub(crate) fn check(&self, grid: Grid) -> Result<(), Refusal> {
        let about = |refusal: Refusal| refusal.within(format!("field `{}`", self.name));
        for (axis, extent) in [("frames", self.snapshots), ("channels", self.channels)] {
            extent.map_or(Ok(()), |extent| within(axis, extent, MOST_CHANNELS)).map_err(about)?;
        }
        require(self.spread != Spread::Rows || grid.plane().is_some(), || {
            about(Refusal::new("spread", "points or sample unless the grid is a plane", "rows"))
        })
    }

    /// Values at one point and time.
    pub fn width(&self) -> usize {
        self.channels.unwrap_or(1)
    }

    /// Snapshots; 1 where there is no time axis.
    pub fn length(&self) -> usize {
        self.snapshots.unwrap_or(1)
    }

    /// Number of functions of the point: one for every channel of every snapshot.
    pub fn functions(&self) -> usize {
        self.width() * self.length()
    }

    /// The shape of one sample.
    pub fn shape(&self, grid: Grid) -> Vec<usize> {
        let inner = match self.spread {
            Spread::Points => grid.shape(),
            Spread::Rows => vec![grid.shape()[0]],
            Spread::Sample => Vec::new(),
        };
        self.snapshots.into_iter().chain(inner).chain(self.channels).collect()
    }

    /// Index of the value of a snapshot, point and channel inside one sample.
    fn place(&self, grid: Grid, [snapshot, point, channel]: [usize; 3]) -> usize {
        let (inner, index) = match self.spread {
            Spread::Points => (grid.points(), point),
            Spread::Rows => (grid.shape()[0], point * grid.shape()[0] / grid.points()),
            Spread::Sample => (1, 0),
        };
        (snapshot * inner + index) * self.width() + channel
    }
}

/// Fields and their values, `[count, ...shape]` each.
pub(crate) type Valued<'a> = (&'a [Field], &'a [Vec<f32>]);

/// Fields as functions of the point, time series with one function per snapshot: `[count, points, functions]` and the
/// number of functions.
pub(crate) fn functions((fields, values): Valued<'_>, grid: Grid) -> (Vec<f32>, usize) {
    let points = grid.points();
    let parts: Vec<(Vec<f32>, usize)> = fields
        .iter()
        .zip(values)
        .map(|(field, values)| {
            let (snapshots, width) = (field.length(), field.width());
            let series = gather(std::slice::from_ref(field), std::slice::from_ref(values), grid, [0, snapshots]);
            (stack(&series, [snapshots, points, width]), snapshots * width)
        })
        .collect();
    let total: usize = parts.iter().map(|(_, width)| width).sum();
    if let [(values, _)] = parts.as_slice() {
        return (values.clone(), total);
    }
    let rows = parts.first().map_or(0, |(values, width)| values.len() / width);
    let row = |row: usize| {
        parts.iter().flat_map(move |(values, width)| values[row * width..(row + 1) * width].iter().copied())
    };
    ((0..rows).flat_map(row).collect(), total)
}

/// `[count, ...]` values of several fields, side by side as `[count, snapshots, points, Σ channels]`: the snapshots `from`
/// to `to` of each.
pub(crate) fn gather(fields: &[Field], values: &[Vec<f32>], grid: Grid, [from, to]: [usize; 2]) -> Vec<f32> {
    let mut gathered = Vec::new();
    let sizes: Vec<usize> = fields.iter().map(|field| field.shape(grid).iter().product()).collect();
    let count = values.first().map_or(0, |first| first.len() / sizes[0]);
    for sample in 0..count {
        for snapshot in from..to {
            for point in 0..grid.points() {
                for ((field, values), size) in fields.iter().zip(values).zip(&sizes) {
                    let place = sample * size + field.place(grid, [snapshot, point, 0]);
                    gathered.extend_from_slice(&values[place..place + field.width()]);
                }
            }
        }
    }
    gathered
}

/// `[count, snapshots, points, channels]` → `[count, points, snapshots · channels]`: a time series as functions of the point.
pub(crate) fn stack(values: &[f32], [snapshots, points, channels]: [usize; 3]) -> Vec<f32> {
    if snapshots == 1 {
        return values.to_vec();
    }
    let mut stacked = Vec::with_capacity(values.len());
    for sample in values.chunks_exact(snapshots * points * channels) {
        for point in 0..points {
            for snapshot in 0..snapshots {
                let place = (snapshot * points + point) * channels;
                stacked.extend_from_slice(&sample[place..place + channels]);
            }
        }
    }
    stacked
}

/// `[count, points, snapshots · channels]` → `[count, snapshots, points, channels]`: the inverse of [`stack`].
pub(crate) fn unstack(values: &[f32], [snapshots, points, channels]: [usize; 3]) -> Vec<f32> {
    if snapshots == 1 {
        return values.to_vec();
    }
    let mut series = Vec::with_capacity(values.len());
    for sample in values.chunks_exact(snapshots * points * channels) {
        for snapshot in 0..snapshots {
            for point in 0..points {
                let place = (point * snapshots + snapshot) * channels;
                series.extend_from_slice(&sample[place..place + channels]);
            }
        }
    }
    series
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLANE: Grid = Grid::Plane { rows: 2, columns: 3 };

    #[test]
    fn the_axes_of_a_field_are_read_off_its_shape_and_give_it_back() {
        for (shape, spread, snapshots, channels) in [
            (vec![2, 3], Spread::Points, None, None),
            (vec![2, 3, 4], Spread::Points, None, Some(4)),
            (vec![7, 2, 3], Spread::Points, Some(7), None),
            (vec![7, 2, 3, 4], Spread::Points, Some(7), Some(4)),
            (vec![2], Spread::Rows, None, None),
            (vec![], Spread::Sample, None, None),
            (vec![5], Spread::Sample, None, Some(5)),
        ] {
            let field = Field::on(PLANE, "f", "1", &shape).unwrap();
            assert_eq!((field.spread, field.snapshots, field.channels), (spread, snapshots, channels), "{shape:?}");
            assert_eq!(field.shape(PLANE), shape);
        }
        let square = Grid::Plane { rows: 4, columns: 4 };
        let field = Field::with_axes(square, "f", "1", &[4, 4, 4], "tp").unwrap();
        assert_eq!((field.snapshots, field.channels, field.shape(square)), (Some(4), None, vec![4, 4, 4]));
        let field = Field::with_axes(square, "f", "1", &[4], "c").unwrap();
        assert_eq!((field.spread, field.channels), (Spread::Sample, Some(4)));
        let field = Field::with_axes(square, "f", "1", &[4, 2], "tc").unwrap();
        assert_eq!((field.spread, field.snapshots, field.shape(square)), (Spread::Sample, Some(4), vec![4, 2]));
        for (shape, axes) in
            [(&[4, 4, 4][..], "pt"), (&[4, 4, 4], "tpc"), (&[4, 4, 4], "t"), (&[4], "q"), (&[4, 4], "pp")]
        {
            let refusal = Field::with_axes(square, "f", "1", shape, axes).unwrap_err().to_string();
            assert!(refusal.contains(&format!("found `{axes}` for shape {shape:?}")), "{refusal}");
        }
        let refusal = Field::on(PLANE, "f", "1", &[3, 2]).unwrap_err().to_string();
        assert_eq!(refusal, "field `f`: expected the shape [frames?, 2, 3, channels?] of the grid, found [3, 2]");
    }

    #[test]
    fn fields_stand_side_by_side_at_every_point() {
        let axes = |shape: &[usize]| Field::on(PLANE, "f", "1", shape).unwrap();
        let fields = [axes(&[2, 3]), axes(&[2]), axes(&[2, 3, 2]), axes(&[])];
        let values =
            [vec![0., 1., 2., 3., 4., 5.], vec![10., 20.], (0..12).map(|i| 100. + i as f32).collect(), vec![7.]];
        let gathered = gather(&fields, &values, PLANE, [0, 1]);
        assert_eq!(gathered[..5], [0., 10., 100., 101., 7.]);
        assert_eq!(gathered[3 * 5..4 * 5], [3., 20., 106., 107., 7.]);
    }

    #[test]
    fn a_time_series_is_stacked_and_unstacked() {
        let series: Vec<f32> = (0..2 * 3 * 4 * 2).map(|i| i as f32).collect();
        let stacked = stack(&series, [3, 4, 2]);
        assert_eq!(stacked[..6], [0., 1., 8., 9., 16., 17.]);
        assert_eq!(unstack(&stacked, [3, 4, 2]), series);
    }
}
