//! Symmetries of a problem: maps of samples to samples that commute with the solver.
//!
//! If u solves the problem with the inputs a, then g·u solves it with the inputs g·a. A symmetry g moves values from
//! point to point and maps the channels of a field by v′ = ± v + c: a mirror at x = 1/2 takes the point at (1 − x, y),
//! negates u_x, and maps positions by x′ = 1 − x. Each problem declares generators beside its solver; its tests solve
//! transformed problems.

use crate::problems::{Field, Sample};
use lamo_geometry::Grid;

/// What a channel becomes: sign · value of the channel `source` + shift.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Component {
    /// The channel whose value it takes.
    pub source: usize,
    /// 1 or −1
    pub sign: f64,
    /// c, in the unit of the field.
    pub shift: f64,
}

impl Component {
    /// Channel `source` as it is.
    pub const fn kept(source: usize) -> Self {
        Self { source, sign: 1.0, shift: 0.0 }
    }

    /// c − channel `source`.
    pub const fn mirrored(source: usize, shift: f64) -> Self {
        Self { source, sign: -1.0, shift }
    }
}

/// One map of samples to samples.
#[derive(Clone, Debug, PartialEq)]
pub struct Symmetry {
    /// `[points]` the point whose values each point takes.
    pub points: Vec<u32>,
    /// Fields whose channels change, with what each channel becomes.
    pub fields: Vec<(&'static str, Vec<Component>)>,
}

impl Symmetry {
    /// The map that changes nothing.
    pub fn identity(points: usize) -> Self {
        Self { points: (0..points as u32).collect(), fields: Vec::new() }
    }

    /// A map of a plane: `source` gives the row and column whose values a row and column take.
    pub fn of_plane(
        [rows, columns]: [usize; 2],
        source: impl Fn(usize, usize) -> [usize; 2],
        fields: Vec<(&'static str, Vec<Component>)>,
    ) -> Self {
        let point = |place: usize| {
            let [row, column] = source(place / columns, place % columns);
            (row * columns + column) as u32
        };
        Self { points: (0..rows * columns).map(point).collect(), fields }
    }

    /// What the channels of a field become; `None` where they stay.
    pub fn components(&self, field: &str) -> Option<&[Component]> {
        self.fields.iter().find(|(name, _)| *name == field).map(|(_, components)| components.as_slice())
    }

    /// This map after another one: s ↦ self · (first · s).
    pub fn after(&self, first: &Self) -> Self {
        let points = self.points.iter().map(|&place| first.points[place as usize]).collect();
        let mut fields = first.fields.clone();
        for (name, components) in &self.fields {
            let Some((_, inner)) = fields.iter_mut().find(|(known, _)| known == name) else {
                fields.push((name, components.clone()));
                continue;
            };
            *inner = components.iter().map(|outer| composed(outer, &inner[outer.source])).collect();
        }
        fields.retain(|(_, components)| (0..).zip(components).any(|(k, change)| *change != Component::kept(k)));
        fields.sort_by_key(|(name, _)| *name);
        Self { points, fields }
    }

    /// The map that undoes this one.
    pub fn inverse(&self) -> Self {
        let mut points = vec![0; self.points.len()];
        self.points.iter().zip(0..).for_each(|(&source, place)| points[source as usize] = place);
        let undo = |components: &[Component]| {
            let mut undone = vec![Component::kept(0); components.len()];
            for (place, &Component { source, sign, shift }) in components.iter().enumerate() {
                undone[source] = Component { source: place, sign, shift: 0.0 - sign * shift };
            }
            undone
        };
        Self { points, fields: self.fields.iter().map(|(name, components)| (*name, undo(components))).collect() }
    }

    /// The transformed sample. A profile `[rows]` moves with the first column of the plane.
    pub fn apply(&self, grid: Grid, sample: &Sample) -> Sample {
        let fields = sample.fields.iter().map(|field| self.apply_to(grid, field)).collect();
        Sample { fields, draws: sample.draws }
    }

    fn apply_to(&self, grid: Grid, field: &Field) -> Field {
        let inner = grid.shape();
        let profile = field.shape.len() == 1 && inner.len() == 2;
        let columns = inner.last().copied().unwrap_or(1);
        let sources: Vec<usize> = match profile {
            true => self.points.iter().step_by(columns).map(|&point| point as usize / columns).collect(),
            false => self.points.iter().map(|&point| point as usize).collect(),
        };
        let components = self.components(field.name);
        // A series has its snapshots before the points, a vector its channels behind them.
        let channels = components.map_or_else(|| channels(&inner, field, profile), <[Component]>::len);
        let mut values = Vec::with_capacity(field.values.len());
        for snapshot in field.values.chunks_exact(sources.len() * channels) {
            for &source in &sources {
                let point = &snapshot[source * channels..(source + 1) * channels];
                match components {
                    Some(components) => values.extend(components.iter().map(|c| c.sign * point[c.source] + c.shift)),
                    None => values.extend_from_slice(point),
                }
            }
        }
        Field { name: field.name, shape: field.shape.clone(), values }
    }
}

fn composed(outer: &Component, inner: &Component) -> Component {
    let shift = outer.sign * inner.shift + outer.shift + 0.0; // no −0
    Component { source: inner.source, sign: outer.sign * inner.sign, shift }
}

/// Length of the axis behind the points.
fn channels(grid: &[usize], field: &Field, profile: bool) -> usize {
    let length = if profile { 1 } else { grid.len() };
    let behind = |first: usize| &field.shape[first + length..];
    match field.shape.starts_with(grid) {
        _ if profile => 1,
        true => behind(0).iter().product(),
        false => behind(1).iter().product(),
    }
}

/// The whole group that `generators` make, the identity first; panics above `MOST` elements, where some generator is no
/// symmetry of a finite grid.
pub fn group(points: usize, generators: &[Symmetry]) -> Vec<Symmetry> {
    const MOST: usize = 1 << 14;
    let mut elements = vec![Symmetry::identity(points)];
    let mut next = 0;
    while next < elements.len() {
        for generator in generators {
            let element = generator.after(&elements[next]);
            if !elements.contains(&element) {
                elements.push(element);
            }
        }
        assert!(elements.len() <= MOST, "more than {MOST} symmetries of {points} points");
        next += 1;
    }
    elements
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_element_has_its_inverse_in_the_group_and_products_stay_inside() {
        let turn = Symmetry::of_plane(
            [3, 3],
            |row, column| [column, 2 - row],
            vec![("vector", vec![Component::kept(1), Component::mirrored(0, 0.0)])],
        );
        let mirror = Symmetry::of_plane(
            [3, 3],
            |row, column| [2 - row, column],
            vec![("vector", vec![Component::mirrored(0, 0.0), Component::kept(1)])],
        );
        let all = group(9, &[turn, mirror]);
        assert_eq!(all.len(), 8);
        for first in &all {
            assert_eq!(first.inverse().after(first), all[0]);
            assert_eq!(first.after(&first.inverse()), all[0]);
            assert!(all.iter().all(|second| all.contains(&second.after(first))));
        }
    }

    #[test]
    fn values_move_from_point_to_point_and_channels_change_sign_place_and_origin() {
        let grid = Grid::Plane { rows: 2, columns: 2 };
        let field =
            |name, shape: &[usize], values: &[f64]| Field { name, shape: shape.to_vec(), values: values.to_vec() };
        let mirror = Symmetry::of_plane(
            [2, 2],
            |row, column| [1 - row, column],
            vec![("positions", vec![Component::mirrored(0, 1.0), Component::kept(1)])],
        );
        let fields = vec![
            field("positions", &[2, 2, 2], &[0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 1.0, 1.0]),
            field("series", &[2, 2, 2], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]),
            field("profile", &[2], &[1.0, 2.0]),
        ];
        let sample = Sample { fields, draws: 1 };
        let moved = mirror.apply(grid, &sample);
        assert_eq!(moved.fields[0], sample.fields[0], "the mirrored lattice is the lattice");
        assert_eq!(moved.fields[2].values, [2.0, 1.0]);
        assert_eq!(mirror.inverse().apply(grid, &moved), sample);
        let twice = mirror.after(&mirror).apply(grid, &sample);
        assert_eq!(twice, sample);
    }
}
