//! Axes of arrays, named by letters: which letters a field may have, and which axes an array has by its shape.

use crate::data::dataset::Role;
use crate::error::counted;
use lamo_geometry::Grid;

/// The axes of a data set in their order: samples, snapshots, rows, columns, layers, points, channels.
pub(super) const ORDER: &str = "ntxyzpc";
/// An axis of length 1 that means nothing: MATLAB writes a row of numbers as `[1, count]`.
pub(super) const UNUSED: char = '1';
/// Channels that an array without samples or without points has at most, unless its axes are given.
pub(super) const MOST_CHANNELS: usize = 16;
/// The letters in words, for errors.
pub(super) const LETTERS: &str =
    "n samples, t snapshots, x rows, y columns, z layers, p points, c channels and 1 for an axis of length 1";

/// The axes `letters`, which have these extents, in words: `samples, 3 rows, 2 columns`.
pub(super) fn words(axes: impl IntoIterator<Item = (char, usize)>) -> String {
    let word = |(letter, extent)| match letter {
        'n' => "samples".to_owned(),
        't' => counted(extent, "snapshot"),
        'x' => counted(extent, "row"),
        'y' => counted(extent, "column"),
        'z' => counted(extent, "layer"),
        'p' => counted(extent, "point"),
        _ => counted(extent, "channel"),
    };
    axes.into_iter().map(word).collect::<Vec<_>>().join(", ")
}

/// The axes as the data set names them: the points of a line are `x` or `p`.
pub(super) fn named(axes: &str, grid: &Grid) -> String {
    match grid {
        Grid::Line { .. } if !axes.contains('p') => axes.replace('x', "p"),
        _ => axes.to_owned(),
    }
}

/// What does not fit: what was expected, and what was found.
pub(super) type Misfit = (String, String);

/// Why a field of this role cannot have the axes `axes`. Each letter occurs once. Positions have all axes of the grid
/// and no snapshots. Inputs and outputs have all axes of the grid, or only the rows of a plane, or none of them. Fields with all
/// axes of the grid may have snapshots, and inputs with none of them: a number for each time, such as the strength of a force.
pub(super) fn refused(axes: &str, role: Role, grid: &Grid) -> Option<Misfit> {
    let misfit = |expected: &str, found: String| Some((expected.to_owned(), found));
    for (index, letter) in axes.char_indices().filter(|(_, letter)| *letter != UNUSED) {
        if !ORDER.contains(letter) {
            return misfit(LETTERS, format!("`{letter}`"));
        }
        if axes[..index].contains(letter) {
            return misfit("each letter once", format!("`{letter}` twice"));
        }
    }
    let has = |letter| axes.contains(letter);
    let (all, only_rows, points) = match grid {
        Grid::Plane { .. } => {
            (has('x') && has('y'), has('x') && !has('y'), "x and y, the rows and columns of the grid")
        }
        Grid::Volume { .. } => {
            (has('x') && has('y') && has('z'), false, "x, y and z, the rows, columns and layers of the grid")
        }
        Grid::Line { .. } => (has('p'), false, "p or x, the points of the line"),
        Grid::Cloud { .. } => (has('p'), false, "p, the points of the cloud"),
    };
    let foreign = match grid {
        Grid::Plane { .. } => "pz",
        Grid::Volume { .. } => "p",
        Grid::Line { .. } | Grid::Cloud { .. } => "xyz",
    };
    if let Some(letter) = axes.chars().find(|letter| foreign.contains(*letter)) {
        return misfit(points, format!("`{letter}`"));
    }
    let none = !axes.contains(['x', 'y', 'z', 'p']);
    match role {
        Role::Position if has('t') => misfit("positions that do not change in time", "`t`".into()),
        Role::Position if !all => misfit(points, format!("`{axes}`")),
        Role::Output if has('t') && !all => misfit(points, format!("snapshots (t) without them, `{axes}`")),
        Role::Input if has('t') && !all && !none => misfit(points, format!("snapshots (t) without them, `{axes}`")),
        Role::Input | Role::Output if !all && !only_rows && !none => misfit(points, format!("`{axes}`")),
        _ => None,
    }
}

/// Why an array of this shape does not have these axes: the extent of an axis is not that of the grid, or 0.
pub(super) fn misfit(axes: &str, shape: &[usize], grid: &Grid) -> Option<Misfit> {
    let letters = axes.chars().count();
    if letters != shape.len() {
        let expected = format!("a letter for each of its {} axes", shape.len());
        return Some((expected, format!("{letters} in `{axes}` for shape {shape:?}")));
    }
    axes.chars().zip(shape).enumerate().find_map(|(axis, (letter, &extent))| {
        let (expected, thing) = match (letter, grid) {
            ('x', Grid::Plane { rows, .. } | Grid::Volume { rows, .. }) => (Some(*rows), "rows"),
            ('y', Grid::Plane { columns, .. } | Grid::Volume { columns, .. }) => (Some(*columns), "columns"),
            ('z', Grid::Volume { layers, .. }) => (Some(*layers), "layers"),
            ('p', Grid::Line { points } | Grid::Cloud { points }) => (Some(*points), "points"),
            (UNUSED, _) => (Some(1), "unused values"),
            _ => (None, "values"),
        };
        let fits = expected.map_or(extent > 0, |expected| extent == expected);
        (!fits).then(|| {
            let expected = match expected {
                Some(count) if letter == UNUSED => format!("length {count} along its axis `1`"),
                Some(count) => format!("{count} {thing} along its axis {letter}, as the grid has"),
                None => format!("at least 1 along its axis {letter}"),
            };
            (expected, format!("{extent}, axis {axis} of shape {shape:?}"))
        })
    })
}

/// The axes of an array in the order of the data set; `axes` are the letters that the user gives for them. Axes of length 1
/// that mean nothing come last. The grid may differ from that of the array.
pub(crate) fn order(axes: &str, shape: &[usize], grid: &Grid) -> Result<Vec<usize>, Misfit> {
    let axes = named(axes, grid);
    if let Some(misfit) = refused(&axes, Role::Input, grid) {
        return Err(misfit);
    }
    if axes.chars().count() != shape.len() {
        let expected = format!("a letter for each of its {} axes", shape.len());
        return Err((expected, format!("`{axes}` for shape {shape:?}")));
    }
    let axis_of = |letter| axes.chars().position(|axis| axis == letter);
    let unused = axes.chars().enumerate().filter(|(_, letter)| *letter == UNUSED).map(|(axis, _)| axis);
    if let Some(axis) = unused.clone().find(|&axis| shape[axis] != 1) {
        return Err(("length 1 along its axis `1`".into(), format!("{}, axis {axis} of shape {shape:?}", shape[axis])));
    }
    Ok(ORDER.chars().filter_map(axis_of).chain(unused).collect())
}

/// Whether an array of this shape has these axes on the grid.
fn fits(axes: &str, shape: &[usize], grid: &Grid) -> bool {
    misfit(axes, shape, grid).is_none()
}

/// What is known about a field before its axes are.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Context {
    /// It is one of several arrays side by side, none of which has channels.
    pub(super) side_by_side: bool,
    /// Its numbers are complex: their two parts are its channels.
    pub(super) complex: bool,
    /// Time series are cut into windows.
    pub(super) windows: bool,
    /// It is one of several arrays with samples of their own.
    pub(super) joined: bool,
    /// Number of times that are given.
    pub(super) times: Option<usize>,
    /// Number of samples of the outputs, if it is known.
    pub(super) samples: Option<usize>,
    /// Snapshots of the outputs in the files, and the number of their time series, where these are cut into windows.
    pub(super) snapshots: Option<usize>,
    pub(super) series: Option<usize>,
}

/// The axes that an array of this shape has, the most likely ones.
pub(super) fn guess(role: Role, shape: &[usize], grid: &Grid, context: Context) -> Option<String> {
    let extent =
        |axes: &str, letter| axes.chars().zip(shape).find(|(axis, _)| *axis == letter).map(|(_, found)| *found);
    let mut found = candidates(role, grid, context);
    found.retain(|axes| fits(axes, shape, grid) && !(context.complex && axes.contains('c')));
    // Of one sample without a name for its axes, many channels are rather snapshots.
    found.sort_by_key(|axes| !axes.contains('n') && extent(axes, 'c').is_some_and(|channels| channels > MOST_CHANNELS));
    let better = |axes: &String| match (role, context.times, context.samples) {
        (Role::Output, Some(times), _) => extent(axes, 't') == Some(times),
        (Role::Input, _, Some(samples)) => extent(axes, 'n') == Some(samples),
        (Role::Input, ..) if context.snapshots.is_some() => match extent(axes, 't') {
            None => axes.contains(['y', 'p']) && extent(axes, 'n').is_some() && extent(axes, 'n') == context.series,
            snapshots => snapshots == context.snapshots,
        },
        _ => false,
    };
    let common = |axes: &String| role == Role::Input && context.samples.is_some() && !axes.contains(['n', 't']);
    let best = found.iter().find(|axes| better(axes)).or_else(|| found.iter().find(|axes| common(axes)));
    let best = best.or(found.first()).cloned();
    let is_over_points = best.as_ref().is_some_and(|axes| axes.contains(['y', 'p']));
    let series = || {
        // Each of several series has its own numbers, in the array or in a file of its own.
        let moving = |axes: &str| {
            let each = context.joined || extent(axes, 'n').or(Some(1)) == context.series;
            fits(axes, shape, grid) && extent(axes, 't') == context.snapshots && each
        };
        ["t", "nt", "tc", "ntc"].into_iter().find(|axes| moving(axes)).map(str::to_owned)
    };
    let may_move = role == Role::Input && context.snapshots.is_some() && !context.complex && !is_over_points;
    may_move.then(series).flatten().or(best)
}

/// The axes that an array may have, the most likely first.
fn candidates(role: Role, grid: &Grid, context: Context) -> Vec<String> {
    let (points, line, plane) = match grid {
        Grid::Plane { .. } => ("xy", false, true),
        Grid::Volume { .. } => ("xyz", false, false),
        Grid::Line { .. } => ("p", true, false),
        Grid::Cloud { .. } => ("p", false, false),
    };
    let Context { side_by_side, windows, joined, .. } = context;
    let patterns: &[&str] = match (role, side_by_side) {
        (Role::Position, true) => &["1*", "n*", "*"],
        (Role::Position, false) if line => &["n*c", "*c", "1*", "n*", "*"],
        (Role::Position, false) => &["n*c", "*c"],
        (_, true) if windows => &["t*", "*t", "nt*", "*", "n*"],
        (_, true) => &["n*", "nt*", "t*", "*t", "*"],
        // As many channels as the last axis of the grid has points are rarer than that many snapshots.
        (_, false) if windows => &["t*", "*t", "nt*", "t*c", "*tc", "nt*c", "*", "*c", "n*", "n*c"],
        (_, false) => &["n*", "nt*", "n*c", "nt*c"],
    };
    let one_sample: &[&str] =
        if windows || side_by_side || role == Role::Position { &[] } else { &["*", "*c", "t*", "*t", "t*c", "*tc"] };
    let few: &[&str] = match role {
        Role::Position => &[],
        _ if plane => &["nx", "n", "nc"],
        _ => &["n", "nc"],
    };
    // A file for each sample has no axis of samples. An input by itself may be one number for each sample.
    let rest = if role == Role::Input && !joined { [few, one_sample] } else { [one_sample, few] };
    patterns.iter().chain(rest.concat().iter()).map(|pattern| pattern.replace('*', points)).collect()
}

/// A few axes in another order that an array of this shape may have.
pub(super) fn suggestions(shape: &[usize], role: Role, grid: &Grid) -> Vec<String> {
    let points = match grid {
        Grid::Plane { .. } => "xy",
        Grid::Volume { .. } => "xyz",
        Grid::Line { .. } | Grid::Cloud { .. } => "p",
    };
    let sets = ["n*", "n*c", "nt*", "nt*c", "t*", "t*c", "*c", "*"].map(|set| set.replace('*', points));
    let mut found = Vec::new();
    for set in sets.iter().filter(|set| set.len() == shape.len()) {
        permute(&mut String::new(), set, &mut |axes| {
            if refused(axes, role, grid).is_none() && fits(axes, shape, grid) {
                found.push(axes.to_owned());
            }
        });
    }
    found.truncate(3);
    found
}

/// Calls `take` with every order of the letters.
fn permute(begun: &mut String, letters: &str, take: &mut dyn FnMut(&str)) {
    if begun.len() == letters.len() {
        return take(begun);
    }
    for letter in letters.chars() {
        if !begun.contains(letter) {
            begun.push(letter);
            permute(begun, letters, take);
            begun.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Role::{Input, Output, Position};

    const PLANE: Grid = Grid::Plane { rows: 5, columns: 3 };
    const VOLUME: Grid = Grid::Volume { rows: 5, columns: 3, layers: 4 };
    const CLOUD: Grid = Grid::Cloud { points: 7 };
    const LINE: Grid = Grid::Line { points: 16 };

    #[test]
    fn axes_are_found_by_the_shape() {
        let plain = Context::default();
        let side = Context { side_by_side: true, ..plain };
        let cut = Context { windows: true, ..plain };
        let joined = Context { joined: true, ..plain };
        let [driven, alone] = [9, 1].map(|series| Context { snapshots: Some(201), series: Some(series), ..cut });
        for (role, context, grid, shape, axes) in [
            (Output, plain, PLANE, &[9, 5, 3][..], "nxy"),
            (Output, plain, PLANE, &[9, 20, 5, 3], "ntxy"),
            (Output, plain, PLANE, &[9, 5, 3, 4], "nxyc"),
            (Output, plain, PLANE, &[9, 20, 5, 3, 4], "ntxyc"),
            (Output, plain, VOLUME, &[9, 5, 3, 4], "nxyz"),
            (Output, plain, VOLUME, &[9, 5, 3, 4, 2], "nxyzc"),
            (Output, plain, VOLUME, &[9, 20, 5, 3, 4, 2], "ntxyzc"),
            (Position, plain, VOLUME, &[5, 3, 4, 3], "xyzc"),
            (Input, plain, VOLUME, &[9, 2], "nc"),
            (Output, joined, VOLUME, &[5, 3, 4], "xyz"),
            (Input, plain, PLANE, &[9, 5], "nx"),
            (Input, plain, PLANE, &[9], "n"),
            (Input, plain, PLANE, &[9, 2], "nc"),
            (Input, plain, PLANE, &[5, 3], "nc"),
            (Input, Context { samples: Some(9), ..plain }, PLANE, &[5, 3], "xy"),
            (Input, Context { samples: Some(4), ..plain }, PLANE, &[9, 5, 3], "nxy"), // refused: 9 samples are not 4
            (Position, plain, PLANE, &[5, 3, 2], "xyc"),
            (Position, side, PLANE, &[9, 5, 3], "nxy"),
            (Position, plain, CLOUD, &[9, 7, 2], "npc"),
            (Position, plain, CLOUD, &[7, 2], "pc"),
            (Position, plain, LINE, &[1, 16], "1p"),
            (Position, side, CLOUD, &[1, 7], "1p"),
            (Output, side, CLOUD, &[9, 7], "np"),
            (Output, plain, LINE, &[16, 201], "pt"),
            (Output, plain, LINE, &[9, 17, 16], "ntp"),
            (Output, cut, LINE, &[201, 16], "tp"),
            (Output, cut, PLANE, &[20, 5, 3, 2], "txyc"),
            (Output, Context { times: Some(9), ..plain }, LINE, &[9, 16], "tp"),
            (Output, joined, PLANE, &[5, 3], "xy"),
            (Input, joined, CLOUD, &[7, 3], "pc"),
            (Output, joined, CLOUD, &[7, 201], "pt"),
            (Input, alone, LINE, &[201], "t"),
            (Input, alone, LINE, &[201, 2], "tc"),
            (Input, driven, LINE, &[9, 201], "nt"),
            (Input, Context { joined: true, ..driven }, LINE, &[201], "t"),
            (Input, driven, LINE, &[9], "n"),
            (Input, driven, LINE, &[16], "p"),
            (Input, Context { series: Some(16), ..driven }, LINE, &[16], "p"), // a field of all series, rather
            (Input, driven, LINE, &[9, 201, 2], "ntc"),
            (Input, driven, LINE, &[9, 2], "nc"),
            (Input, driven, LINE, &[201, 16], "tp"),
            (Input, Context { snapshots: Some(16), ..cut }, LINE, &[9, 16], "tp"), // refused: 9 snapshots are not 16
            (Input, driven, LINE, &[9, 16], "np"),
            (Output, cut, PLANE, &[9, 5, 5, 3], "ntxy"),
            (Output, cut, LINE, &[9, 16, 16], "ntp"),
            (Output, plain, LINE, &[9, 16, 16], "ntp"),
            (Output, plain, LINE, &[9, 16, 2], "npc"),
        ] {
            assert_eq!(guess(role, shape, &grid, context).as_deref(), Some(axes), "{role:?} {shape:?}");
        }
        assert_eq!(guess(Output, &[9, 3, 5], &PLANE, plain), None);
        assert_eq!(suggestions(&[9, 3, 5], Output, &PLANE), ["nyx", "tyx", "cyx"]);
        assert_eq!(suggestions(&[9, 3, 4], Output, &PLANE), Vec::<String>::new());
    }

    #[test]
    fn axes_that_a_field_cannot_have_are_refused_with_their_cause() {
        for (axes, role, grid, expected) in [
            ("xytn", Output, PLANE, None),
            ("xyt", Output, PLANE, None),
            ("xn", Input, PLANE, None),
            ("n", Input, PLANE, None),
            ("xy", Input, PLANE, None),
            ("pcn", Position, CLOUD, None),
            ("pc", Position, CLOUD, None),
            ("1p", Position, CLOUD, None),
            ("11np", Output, CLOUD, None),
            ("yn", Input, PLANE, Some("`yn`")),
            ("nxyz", Output, PLANE, Some("`z`")),
            ("zyxn", Output, VOLUME, None),
            ("nxy", Output, VOLUME, Some("`nxy`")),
            ("nx", Input, VOLUME, Some("`nx`")),
            ("np", Output, VOLUME, Some("`p`")),
            ("ntxy", Output, VOLUME, Some("snapshots (t) without them, `ntxy`")),
            ("nxx", Output, PLANE, Some("`x` twice")),
            ("np", Output, PLANE, Some("`p`")),
            ("nx", Output, CLOUD, Some("`x`")),
            ("cn", Position, CLOUD, Some("`cn`")),
            ("tpc", Position, CLOUD, Some("`t`")),
            ("nt", Output, CLOUD, Some("snapshots (t) without them, `nt`")),
            ("nt", Input, CLOUD, None),
            ("ct", Input, PLANE, None),
            ("ntx", Input, PLANE, Some("snapshots (t) without them, `ntx`")),
        ] {
            assert_eq!(refused(axes, role, &grid).map(|(_, found)| found).as_deref(), expected, "{axes}");
        }
        assert_eq!(named("ntx", &LINE), "ntp");
        assert_eq!(named("ntx", &PLANE), "ntx");
        let told = |axes: &str, shape: &[usize]| misfit(axes, shape, &LINE);
        assert_eq!(told("pt", &[16, 9]), None);
        assert_eq!(told("tp", &[16, 9]).unwrap().1, "9, axis 1 of shape [16, 9]");
        assert_eq!(told("ntp", &[16, 9]).unwrap().1, "3 in `ntp` for shape [16, 9]");
        assert_eq!(told("np", &[0, 16]).unwrap().0, "at least 1 along its axis n");
        assert_eq!(told("1p", &[2, 16]).unwrap().0, "length 1 along its axis `1`");
    }
}
