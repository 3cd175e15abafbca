//! One field as a picture. The values of a plane are drawn as `imshow` draws them, row 0 on top. A field with positions is drawn
//! on its mesh or point cloud, x to the right and y upwards. A field on a line is a curve, and a single value is a number.

use super::colour::{FAINT, INK, PAPER, Rgb, Scale};
use super::mesh::{self, Area, Window, draw_cloud, draw_mesh};
use super::number::number;
use super::{Canvas, Skin, font};
use lamo::data::Drawn;
use std::rc::Rc;

/// Pixels of the longer side of a map, approximately. Points of coarse fields become squares of whole pixels.
const MAP: usize = 220;
/// Fields with more points along a side share pixels.
const FINEST: usize = 256;
/// Colours of the background and the axes of a curve.
const GROUND: Rgb = [244, 245, 247];
const AXIS: Rgb = [208, 211, 216];
/// Colours of a curve, and of a second one over it.
const CURVES: [Rgb; 2] = [[0x25, 0x63, 0xa8], [0xc2, 0x54, 0x2d]];
/// Lines of a mesh that are drawn in each direction, approximately.
const LINES: usize = 12;

/// The points at which a map has its values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Layout {
    /// `[rows, columns]` squares, row 0 on top. A single column is a line of evenly spaced points, drawn as a curve.
    Grid([usize; 2]),
    /// A line of points with growing coordinates, drawn as a curve.
    Line(Vec<f32>),
    /// `[rows, columns]` nodes with their positions.
    Mesh([usize; 2], Vec<[f32; 2]>),
    /// The same, drawn as lines without values.
    Wire([usize; 2], Vec<[f32; 2]>),
    /// Points in any order, with their third coordinates, if they have one.
    Cloud(Vec<[f32; 2]>, Vec<f32>),
    /// Points joined by triangles.
    Triangles(Vec<[f32; 2]>, Rc<Skin>),
}

/// The part of the domain that is drawn of maps with these layouts.
pub(crate) fn window(layouts: &[&Layout]) -> Option<Window> {
    let seen = |layout: &&Layout| match layout {
        Layout::Triangles(points, skin) => Some(skin.seen(points).to_vec()),
        other => Some(other.positions()?.to_vec()),
    };
    let positions: Option<Vec<_>> = layouts.iter().map(seen).collect();
    let window = Window::around(&positions?);
    let has_discs = match layouts {
        [Layout::Cloud(..), ..] => true,
        [Layout::Triangles(_, skin), ..] => skin.triangles.is_empty(),
        _ => false,
    };
    Some(if has_discs { window.wider() } else { window })
}

impl Layout {
    /// A cloud of `[points, space]` positions with two or more coordinates.
    pub(crate) fn cloud(positions: &[f32], space: usize) -> Layout {
        let points = positions.chunks_exact(space);
        let depths = points.clone().filter_map(|point| point.get(2).copied()).collect();
        Layout::Cloud(points.map(|point| [point[0], point[1]]).collect(), depths)
    }

    /// Points with two or more coordinates that triangles join, or cells that have them as their centres; points in space, or a
    /// cloud, where there are none.
    pub(crate) fn of_points(positions: &[f32], space: usize, drawn: &Drawn) -> Layout {
        if drawn.is_empty() && space < 3 {
            return Layout::cloud(positions, space);
        }
        let (positions, skin) = Skin::of(positions, space, drawn);
        Layout::Triangles(positions, Rc::new(skin))
    }

    /// Whether the values are drawn as a curve.
    pub(crate) fn is_curve(&self) -> bool {
        matches!(self, Layout::Grid([_, 1]) | Layout::Line(_)) && !self.is_number()
    }

    /// Whether there is a single value.
    pub(crate) fn is_number(&self) -> bool {
        *self == Layout::Grid([1, 1])
    }

    /// Whether it is a surface in space.
    pub(crate) fn is_solid(&self) -> bool {
        matches!(self, Layout::Triangles(_, skin) if skin.is_solid())
    }

    /// Number of points.
    pub(crate) fn points(&self) -> usize {
        match self {
            Layout::Grid([rows, columns]) => rows * columns,
            Layout::Line(positions) => positions.len(),
            Layout::Mesh(_, positions)
            | Layout::Wire(_, positions)
            | Layout::Cloud(positions, _)
            | Layout::Triangles(positions, _) => positions.len(),
        }
    }

    /// A note on the axes; the unit of the positions as in ` (mm)`.
    pub(crate) fn axes(&self, window: Option<&Window>, unit: &str) -> String {
        let range = || window.map_or_else(String::new, |window| window.range(unit));
        match self {
            Layout::Grid([1, 1]) => "a single value".to_owned(),
            Layout::Grid([points, 1]) => format!("points 0 to {} from left to right", points - 1),
            Layout::Grid([rows, columns]) => {
                format!("{rows} rows, {columns} columns, row 0 on top and column 0 at the left, as imshow draws them")
            }
            Layout::Line(positions) => {
                let [first, last] =
                    [positions.first(), positions.last()].map(|end| number(end.copied().unwrap_or(0.0)));
                format!("x {first} to {last}{unit}")
            }
            Layout::Cloud(_, depths) if !depths.is_empty() => format!("{}, viewed along z", range()),
            Layout::Triangles(_, skin) if skin.is_solid() => skin.range(unit),
            Layout::Mesh(..) | Layout::Wire(..) | Layout::Cloud(..) | Layout::Triangles(..) => range(),
        }
    }

    /// The positions, if there are any.
    pub(crate) fn positions(&self) -> Option<&[[f32; 2]]> {
        match self {
            Layout::Grid(_) | Layout::Line(_) => None,
            Layout::Mesh(_, positions)
            | Layout::Wire(_, positions)
            | Layout::Cloud(positions, _)
            | Layout::Triangles(positions, _) => Some(positions),
        }
    }

    /// Where a point lies in a picture of a size; `None` for curves and numbers.
    pub(super) fn place(&self, point: usize, window: Option<&Window>, size: [f64; 2]) -> Option<[f64; 2]> {
        match self {
            Layout::Grid([_, 1]) | Layout::Line(_) => None,
            Layout::Grid([rows, columns]) => {
                let share = |place: usize, extent: usize| (place as f64 + 0.5) / extent as f64;
                Some([size[0] * share(point % columns, *columns), size[1] * share(point / columns, *rows)])
            }
            Layout::Mesh(_, positions)
            | Layout::Wire(_, positions)
            | Layout::Cloud(positions, _)
            | Layout::Triangles(positions, _) => {
                let fine = 100.0;
                let area = Area { corner: [0, 0], size: size.map(|side| (fine * side) as usize) };
                let pixel = window?.pixel(area, *positions.get(point)?);
                Some(pixel.map(|at| f64::from(at) / fine))
            }
        }
    }

    /// The layout for drawing it without a field.
    pub(crate) fn without_field(self) -> Layout {
        match self {
            Layout::Mesh(plane, positions) => Layout::Wire(plane, positions),
            other => other,
        }
    }

    /// `[width, height]` of the map in pixels; maps that share a window have the same size.
    pub(crate) fn size(&self, window: Option<&Window>) -> [usize; 2] {
        match (self, window) {
            (Layout::Grid([1, 1]), _) => [MAP / 3, MAP / 2],
            (Layout::Grid([_, 1]) | Layout::Line(_), _) => [MAP, MAP / 2],
            (Layout::Grid([rows, columns]), _) => {
                let longest = rows.max(columns);
                let map = if *longest <= FINEST { longest * MAP.div_ceil(*longest) } else { MAP };
                [columns, rows].map(|points| (points * map / longest).max(MAP / 8))
            }
            (_, Some(window)) => window.size(MAP),
            (_, None) => [MAP, MAP],
        }
    }

    /// Draws the values into the area. Layouts with positions need a window; without one nothing is drawn.
    pub(crate) fn draw(&self, canvas: &mut Canvas, area: Area, window: Option<&Window>, values: &[f32], scale: &Scale) {
        match (self, window) {
            (Layout::Grid([1, 1]), _) => {
                let (text, [left, top], [_, height]) =
                    (number(values.first().copied().unwrap_or(f32::NAN)), area.corner, area.size);
                canvas.text([left, top + (height - font::HEIGHT) / 2], &text, INK);
            }
            (Layout::Grid([_, 1]) | Layout::Line(_), _) => self.draw_curves(canvas, area, &[values], scale),
            (Layout::Grid(plane), _) => squares(canvas, area, *plane, values, scale),
            (Layout::Mesh(plane, positions), Some(window)) => {
                draw_mesh(canvas, area, window, *plane, positions, values, scale);
            }
            (Layout::Wire(plane, positions), Some(window)) => wire(canvas, area, window, *plane, positions),
            (Layout::Cloud(positions, depths), Some(window)) => {
                draw_cloud(canvas, area, window, (positions, depths), values, scale);
            }
            (Layout::Triangles(positions, skin), Some(window)) => {
                skin.draw(canvas, (area, window), positions, values, scale);
            }
            (_, None) => {}
        }
    }

    /// Where the points of a curve lie between its left end, 0, and its right end, 1.
    pub(crate) fn shares(&self) -> Vec<f32> {
        let even = |count: usize| (0..count).map(|point| point as f32 / (count.max(2) - 1) as f32).collect();
        match self {
            Layout::Line(positions) => match (positions.first(), positions.last()) {
                (Some(first), Some(last)) if last > first => {
                    positions.iter().map(|position| (position - first) / (last - first)).collect()
                }
                _ => even(positions.len()),
            },
            other => even(other.points()),
        }
    }

    /// Draws curves over each other, the ends of the scale beside them, and a line at zero if zero is between the ends.
    fn draw_curves(&self, canvas: &mut Canvas, area: Area, curves: &[&[f32]], scale: &Scale) {
        let ([left, top], [_, height]) = (area.corner, area.size);
        canvas.fill(area.corner, area.size, GROUND);
        let [least, most] = [scale.least, scale.most].map(number);
        let beside = font::width(&least).max(font::width(&most)) + 8;
        let (left, width) = (left + beside, area.size[0].saturating_sub(beside));
        for (y, end) in [(top, &most), (top + height - font::HEIGHT, &least)] {
            canvas.text([left - 5 - font::width(end), y], end, FAINT);
        }
        let extent = (scale.most - scale.least).max(f32::MIN_POSITIVE);
        let level = |value: f32| (height - 3) as f32 * (1.0 - (value - scale.least) / extent).clamp(0.0, 1.0);
        canvas.fill([left - 1, top], [1, height], AXIS);
        if scale.least < 0.0 && scale.most > 0.0 {
            canvas.fill([left, top + level(0.0) as usize], [width, 1], AXIS);
        }
        let shares = self.shares();
        for (values, colour) in curves.iter().zip(CURVES) {
            let corner = |(share, value): (&f32, &f32)| [share * (width.max(2) - 2) as f32, level(*value)];
            let corners: Vec<[f32; 2]> = shares.iter().zip(*values).map(corner).collect();
            for pair in corners.windows(2).filter(|pair| pair.iter().flatten().all(|side| side.is_finite())) {
                stroke(canvas, [left, top], [pair[0], pair[1]], colour);
            }
        }
    }
}

/// Draws a line two pixels wide between two points relative to a corner.
fn stroke(canvas: &mut Canvas, [left, top]: [usize; 2], [from, to]: [[f32; 2]; 2], colour: Rgb) {
    let length = (to[0] - from[0]).abs().max((to[1] - from[1]).abs()).ceil().max(1.0);
    for step in 0..=length as usize {
        let share = step as f32 / length;
        let [x, y] = [0, 1].map(|axis| from[axis] + share * (to[axis] - from[axis]));
        canvas.fill([left + x as usize, top + y as usize], [2, 2], colour);
    }
}

/// A map with its own colours.
pub(crate) struct Map {
    pub(crate) title: String,
    pub(crate) layout: Layout,
    /// The part of the domain that is drawn, for layouts with positions.
    pub(crate) window: Option<Window>,
    pub(crate) values: Vec<f32>,
    /// A second curve over that of the values: the prediction over the truth.
    pub(crate) over: Option<Vec<f32>>,
    pub(crate) scale: Scale,
    /// Which field of a page it shows, at which of its times, and which of its sets of values: 0 truth, 1 prediction, 2 error.
    pub(crate) source: Option<[usize; 3]>,
}

impl Map {
    pub(crate) fn size(&self) -> [usize; 2] {
        self.layout.size(self.window.as_ref())
    }

    pub(crate) fn draw(&self, canvas: &mut Canvas, corner: [usize; 2]) {
        self.draw_in(canvas, Area { corner, size: self.size() });
    }

    /// The map without its title. Meshes and clouds are drawn at `fine` times the resolution, for smooth edges; a plane has a
    /// pixel per point, unless it has very many.
    pub(crate) fn picture(&self, fine: usize) -> Canvas {
        let size = match &self.layout {
            Layout::Grid([rows, columns]) if *rows.max(columns) <= FINEST => [*columns, *rows],
            Layout::Grid(_) | Layout::Line(_) => self.size(),
            Layout::Mesh(..) | Layout::Wire(..) | Layout::Cloud(..) | Layout::Triangles(..) => {
                self.size().map(|side| fine * side)
            }
        };
        let mut canvas = Canvas::new(size[0], size[1], PAPER);
        self.draw_in(&mut canvas, Area { corner: [0, 0], size });
        canvas
    }

    /// Whether it needs a colour bar. A curve has its numbers beside it, and a mesh without a field has one colour.
    pub(crate) fn has_bar(&self) -> bool {
        !self.scale.is_plain() && !self.layout.is_curve() && !self.layout.is_number()
    }

    fn draw_in(&self, canvas: &mut Canvas, area: Area) {
        match &self.over {
            Some(over) if self.layout.is_curve() => {
                self.layout.draw_curves(canvas, area, &[&self.values, over], &self.scale);
            }
            _ => self.layout.draw(canvas, area, self.window.as_ref(), &self.values, &self.scale),
        }
    }
}

/// The numbers at the ends of the colour bar that maps share; see [`Scale::ends`].
pub(crate) fn ends(maps: &[Map], number: impl Fn(f32) -> String) -> [String; 2] {
    let values = maps.iter().flat_map(|map| map.values.iter().copied());
    maps.first().map_or_else(Default::default, |map| map.scale.ends(values, number))
}

/// The distance in rows and columns between the lines of a mesh that are drawn.
pub(crate) fn strides(plane: [usize; 2]) -> [usize; 2] {
    plane.map(|count| count.div_ceil(LINES).max(1))
}

/// Draws the lines of a mesh; the outermost ones are always drawn.
fn wire(canvas: &mut Canvas, area: Area, window: &Window, [rows, columns]: [usize; 2], positions: &[[f32; 2]]) {
    let chosen = |count: usize, stride: usize| (0..count).filter(move |line| line % stride == 0 || line + 1 == count);
    let [row_stride, column_stride] = strides([rows, columns]);
    let mut line = |from: usize, to: usize| {
        let ends = [from, to].map(|node| window.pixel(area, positions[node]));
        mesh::line(area, ends, |pixel| canvas.fill(pixel, [2, 2], FAINT));
    };
    for row in chosen(rows, row_stride) {
        (1..columns).for_each(|column| line(row * columns + column - 1, row * columns + column));
    }
    for column in chosen(columns, column_stride) {
        (1..rows).for_each(|row| line((row - 1) * columns + column, row * columns + column));
    }
}

/// Draws a square per point.
fn squares(canvas: &mut Canvas, area: Area, [rows, columns]: [usize; 2], values: &[f32], scale: &Scale) {
    let ([left, top], [width, height]) = (area.corner, area.size);
    for y in 0..height {
        for x in 0..width {
            let (down, right) = (cells(y, height, rows), cells(x, width, columns));
            let count = (down.len() * right.len()) as f32;
            let sum: f32 = down.flat_map(|row| right.clone().map(move |column| values[row * columns + column])).sum();
            canvas.dot(left + x, top + y, scale.colour(sum / count));
        }
    }
}

/// The points of a pixel: several if the field is finer than the map, else one.
fn cells(pixel: usize, pixels: usize, points: usize) -> std::ops::Range<usize> {
    let first = pixel * points / pixels;
    first..((pixel + 1) * points / pixels).clamp(first + 1, points.max(first + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_is_drawn() {
        for (pixels, points) in [(220, 421), (220, 85), (220, 220), (27, 31), (5, 1)] {
            let mut seen = vec![false; points];
            (0..pixels).flat_map(|pixel| cells(pixel, pixels, points)).for_each(|point| seen[point] = true);
            assert!(seen.iter().all(|&seen| seen), "{points} points on {pixels} pixels");
        }
    }

    #[test]
    fn a_curve_is_drawn_inside_its_area_with_its_range() {
        let (values, scale) = (vec![-9.0, 0.0, f32::NAN, 9.0], Scale::of([0.0, 1.0].into_iter()));
        let mut canvas = Canvas::new(260, 150, PAPER);
        let area = Area { corner: [20, 20], size: [220, 110] };
        Layout::Grid([4, 1]).draw(&mut canvas, area, None, &values, &scale);
        let pixels = || (0..260).flat_map(|x| (0..150).map(move |y| (x, y)));
        let outside = |x: usize, y: usize| !(20..240).contains(&x) || !(20..130).contains(&y);
        assert!(pixels().filter(|&(x, y)| outside(x, y)).all(|(x, y)| canvas.at(x, y) == PAPER));
        assert!(pixels().any(|(x, y)| x < 28 && !outside(x, y) && canvas.at(x, y) != GROUND), "numbers at the left");
    }

    #[test]
    fn a_second_curve_is_drawn_over_the_first_at_the_positions_of_the_points() {
        let layout = Layout::Line(vec![0.0, 9.0, 10.0]);
        let scale = Scale::of([0.0, 1.0].into_iter());
        let map = Map {
            title: String::new(),
            layout,
            window: None,
            values: vec![0.0, 0.0, 0.0],
            over: Some(vec![1.0, 1.0, 0.0]),
            scale,
            source: None,
        };
        let (picture, [width, height]) = (map.picture(1), map.size());
        let drawn = |colour: Rgb| {
            let pixels = (0..width).flat_map(|x| (0..height).map(move |y| [x, y]));
            pixels.filter(|&[x, y]| picture.at(x, y) == colour).collect::<Vec<_>>()
        };
        let [truth, over] = CURVES.map(drawn);
        assert!(truth.iter().all(|[_, y]| *y > height - 6), "the first one lies at the bottom");
        let falls = over.iter().filter(|[_, y]| (20..height - 20).contains(y)).map(|[x, _]| *x).min().unwrap();
        assert!(falls > width * 8 / 10, "the second one falls between 9 and 10: {falls} of {width}");
        assert_eq!(map.layout.axes(None, " (m)"), "x 0 to 10 (m)");
    }

    #[test]
    fn a_single_value_is_written_as_a_number() {
        let layout = Layout::Grid([1, 1]);
        let mut canvas = Canvas::new(220, 110, PAPER);
        let area = Area { corner: [0, 0], size: layout.size(None) };
        layout.draw(&mut canvas, area, None, &[12.5], &Scale::of([12.5].into_iter()));
        let mut wanted = Canvas::new(220, 110, PAPER);
        wanted.text([0, (110 - font::HEIGHT) / 2], "12.5", INK);
        assert!((0..220).all(|x| (0..110).all(|y| canvas.at(x, y) == wanted.at(x, y))));
        assert!(layout.is_number() && !layout.is_curve());
    }

    #[test]
    fn axes_are_named() {
        let rows = "31 rows, 7 columns, row 0 on top and column 0 at the left, as imshow draws them";
        assert_eq!(Layout::Grid([31, 7]).axes(None, ""), rows);
        assert_eq!(Layout::Grid([16, 1]).axes(None, ""), "points 0 to 15 from left to right");
        let cloud = Layout::cloud(&[0.0, 1.0, 7.0, 2.0, 3.0, 8.0], 3);
        assert_eq!(cloud.axes(window(&[&cloud]).as_ref(), " (m)"), "x 0 to 2, y 1 to 3 (m), viewed along z");
    }

    #[test]
    fn the_first_row_is_on_top_and_the_first_column_at_the_left() {
        let values = vec![0.0, 0.2, 0.4, 0.6, 0.8, 1.0];
        let scale = Scale::of(values.iter().copied());
        let layout = Layout::Grid([2, 3]);
        let map = Map { title: String::new(), layout, window: None, values, over: None, scale, source: None };
        let picture = map.picture(1);
        let corners = [(0, 0), (2, 0), (0, 1), (2, 1)].map(|(x, y)| picture.at(x, y));
        assert_eq!(corners, [0.0, 0.4, 0.6, 1.0].map(|value| scale.colour(value)));
        let [width, height] = map.size();
        assert!(width > height, "three columns are wider than two rows are high: {width} x {height}");
    }
}
