//! Which functions of some fields are drawn: all where they are few, else one of each field before a second one of any.

use super::names::{channels, is_deformation};
use lamo::task::Field;

/// Functions that are drawn, unless there are more fields than these.
const DRAWN: usize = 3;
/// Fields that are drawn.
const FIELDS: usize = 6;

/// A function of the points that a field gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum View {
    /// One of its channels.
    Channel(usize),
    /// The length of the vector of its channels.
    Length,
}

/// What is drawn of fields.
#[derive(Debug, PartialEq)]
pub(super) struct Chosen {
    /// Of each field.
    pub(super) views: Vec<Vec<View>>,
    /// Channels that are drawn, by themselves or in a length, and all channels.
    pub(super) counts: [usize; 2],
}

/// What is drawn of fields with these names and numbers of channels. A vector of two or three channels is drawn by its length where
/// there are more channels than can be drawn.
fn chosen(fields: &[(&str, usize)]) -> Chosen {
    let all: usize = fields.iter().map(|(_, width)| width).sum();
    if all <= DRAWN {
        let views = fields.iter().map(|(_, width)| (0..*width).map(View::Channel).collect()).collect();
        return Chosen { views, counts: [all, all] };
    }
    let first = |&(name, width): &(&str, usize)| match width {
        2 | 3 if !is_deformation(name, width) => View::Length,
        _ => View::Channel(0),
    };
    let mut views: Vec<Vec<View>> = fields.iter().map(|field| vec![first(field)]).collect();
    views.iter_mut().skip(FIELDS).for_each(Vec::clear);
    let mut left = DRAWN.saturating_sub(fields.len());
    for (views, (_, width)) in views.iter_mut().zip(fields).filter(|(views, _)| **views == [View::Channel(0)]) {
        let more = left.min(width - 1);
        views.extend((1..=more).map(View::Channel));
        left -= more;
    }
    let drawn = |(views, (_, width)): (&Vec<View>, &(&str, usize))| match &views[..] {
        [View::Length] => *width,
        views => views.len(),
    };
    let counts = [views.iter().zip(fields).map(drawn).sum(), all];
    Chosen { views, counts }
}

/// What is drawn of fields.
pub(super) fn choose<'a>(fields: impl Iterator<Item = &'a Field>) -> Chosen {
    let widths: Vec<(&str, usize)> = fields.map(|field| (field.name.as_str(), field.width())).collect();
    chosen(&widths)
}

/// All channels of a field.
pub(super) fn all_of(field: &Field) -> Vec<View> {
    (0..field.width()).map(View::Channel).collect()
}

/// The name of a function of a field.
pub(super) fn name_of(field: &Field, view: View) -> String {
    match view {
        View::Channel(channel) => channels(&field.name, field.width()).swap_remove(channel),
        View::Length => format!("|{}|", field.name.replace('_', " ")),
    }
}

/// The length of the vectors with these components.
pub(super) fn length_of(components: impl Iterator<Item = Vec<f32>>) -> Vec<f32> {
    let mut squares: Vec<f32> = Vec::new();
    for values in components {
        squares.resize(values.len(), 0.0);
        squares.iter_mut().zip(values).for_each(|(sum, value)| *sum += value * value);
    }
    squares.into_iter().map(f32::sqrt).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_is_drawn_before_a_second_function_of_any() {
        let views = |fields: &[(&str, usize)]| chosen(fields).views;
        let channel = View::Channel;
        assert_eq!(views(&[("u", 2), ("p", 1)]), [vec![channel(0), channel(1)], vec![channel(0)]], "all fit");
        let beam = chosen(&[("displacement", 3), ("stress", 1)]);
        assert_eq!(beam.views, [[View::Length], [channel(0)]]);
        assert_eq!(beam.counts, [4, 4], "a length stands for its channels");
        let flow = chosen(&[("flow", 4)]);
        assert_eq!((flow.views, flow.counts), (vec![vec![channel(0), channel(1), channel(2)]], [3, 4]));
        let mixed = chosen(&[("species", 5), ("temperature", 1)]);
        assert_eq!((mixed.views, mixed.counts), (vec![vec![channel(0), channel(1)], vec![channel(0)]], [3, 6]));
        let many = chosen(&[("a", 1); 9]);
        assert_eq!(many.views.iter().flatten().count(), FIELDS);
        assert_eq!(many.counts, [6, 9]);
    }
}
