//! One field as a picture. x runs to the right and y upwards, as in the equations. A field on a line is a curve; a field with
//! positions is drawn on its mesh or point cloud.

use super::colour::{FAINT, PAPER, Rgb, Scale};
use super::mesh::{Area, Window, draw_cloud, draw_mesh};
use super::number::number;
use super::{Canvas, font};

/// Pixels of the longer side of a map, approximately. Points of coarse fields become squares of whole pixels.
const MAP: usize = 220;
/// Fields with more points along a side share pixels.
const FINEST: usize = 256;
/// Colours of the background and the axes of a curve.
const GROUND: Rgb = [244, 245, 247];
const AXIS: Rgb = [208, 211, 216];
/// Lines of a mesh that are drawn in each direction, approximately.
const LINES: usize = 12;

/// The points at which a map has its values.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Layout {
    /// `[rows, columns]` squares; rows run along x. A single column is a line.
    Grid([usize; 2]),
    /// `[rows, columns]` nodes with their positions.
    Mesh([usize; 2], Vec<[f32; 2]>),
    /// The same, drawn as lines without values.
    Wire([usize; 2], Vec<[f32; 2]>),
    /// Points in any order, with their third coordinates, if they have one.
    Cloud(Vec<[f32; 2]>, Vec<f32>),
}

/// The part of the domain that is drawn of maps with these layouts.
pub(crate) fn window(layouts: &[&Layout]) -> Option<Window> {
    let positions: Option<Vec<_>> = layouts.iter().map(|layout| Some(layout.positions()?.to_vec())).collect();
    let window = Window::around(&positions?);
    Some(if matches!(layouts, [Layout::Cloud(..), ..]) { window.wider() } else { window })
}

impl Layout {
    /// A cloud of `[points, space]` positions with two or more coordinates.
    pub(crate) fn cloud(positions: &[f32], space: usize) -> Layout {
        let points = positions.chunks_exact(space);
        let depths = points.clone().filter_map(|point| point.get(2).copied()).collect();
        Layout::Cloud(points.map(|point| [point[0], point[1]]).collect(), depths)
    }

    /// Whether the values are drawn as a curve.
    pub(crate) fn is_curve(&self) -> bool {
        matches!(self, Layout::Grid([_, 1]))
    }

    /// A note on the axes; the unit of the positions as in ` (mm)`.
    pub(crate) fn axes(&self, window: Option<&Window>, unit: &str) -> String {
        let range = || window.map_or_else(String::new, |window| window.range(unit));
        match self {
            Layout::Grid([points, 1]) => format!("points 1 to {points} to the right"),
            Layout::Grid([rows, columns]) => format!("{rows} rows to the right, {columns} columns up"),
            Layout::Cloud(_, depths) if !depths.is_empty() => format!("{}, viewed along z", range()),
            Layout::Mesh(..) | Layout::Wire(..) | Layout::Cloud(..) => range(),
        }
    }

    /// The positions, if there are any.
    pub(crate) fn positions(&self) -> Option<&[[f32; 2]]> {
        match self {
            Layout::Grid(_) => None,
            Layout::Mesh(_, positions) | Layout::Wire(_, positions) | Layout::Cloud(positions, _) => Some(positions),
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
            (Layout::Grid([_, 1]), _) => [MAP, MAP / 2],
            (Layout::Grid([rows, columns]), _) => {
                let longest = rows.max(columns);
                let map = if *longest <= FINEST { longest * MAP.div_ceil(*longest) } else { MAP };
                [rows, columns].map(|points| (points * map / longest).max(MAP / 8))
            }
            (_, Some(window)) => window.size(MAP),
            (_, None) => [MAP, MAP],
        }
    }

    /// Draws the values into the area. Layouts with positions need a window; without one nothing is drawn.
    pub(crate) fn draw(&self, canvas: &mut Canvas, area: Area, window: Option<&Window>, values: &[f32], scale: &Scale) {
        match (self, window) {
            (Layout::Grid([_, 1]), _) => curve(canvas, area, values, scale),
            (Layout::Grid(plane), _) => squares(canvas, area, *plane, values, scale),
            (Layout::Mesh(plane, positions), Some(window)) => {
                draw_mesh(canvas, area, window, *plane, positions, values, scale);
            }
            (Layout::Wire(plane, positions), Some(window)) => wire(canvas, area, window, *plane, positions),
            (Layout::Cloud(positions, depths), Some(window)) => {
                draw_cloud(canvas, area, window, (positions, depths), values, scale);
            }
            (_, None) => {}
        }
    }
}

/// A map with its own colours.
pub(crate) struct Map {
    pub(crate) title: String,
    pub(crate) layout: Layout,
    /// The part of the domain that is drawn, for layouts with positions.
    pub(crate) window: Option<Window>,
    pub(crate) values: Vec<f32>,
    pub(crate) scale: Scale,
}

impl Map {
    pub(crate) fn size(&self) -> [usize; 2] {
        self.layout.size(self.window.as_ref())
    }

    pub(crate) fn draw(&self, canvas: &mut Canvas, corner: [usize; 2]) {
        self.draw_in(canvas, Area { corner, size: self.size() });
    }

    /// The map without its title. Meshes and clouds are drawn at twice the resolution, for smooth edges.
    pub(crate) fn picture(&self) -> Canvas {
        let fine = if self.layout.positions().is_some() { 2 } else { 1 };
        let size = self.size().map(|side| fine * side);
        let mut canvas = Canvas::new(size[0], size[1], PAPER);
        self.draw_in(&mut canvas, Area { corner: [0, 0], size });
        canvas
    }

    /// Whether it needs a colour bar. A curve has its numbers beside it, and a mesh without a field has one colour.
    pub(crate) fn has_bar(&self) -> bool {
        !self.scale.is_plain() && !self.layout.is_curve()
    }

    fn draw_in(&self, canvas: &mut Canvas, area: Area) {
        self.layout.draw(canvas, area, self.window.as_ref(), &self.values, &self.scale);
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
        let [from, to] = [from, to].map(|node| window.pixel(area, positions[node]));
        let length = (to[0] - from[0]).abs().max((to[1] - from[1]).abs());
        let pixels = if length.is_finite() { (length as usize).min(area.size[0] + area.size[1]) } else { return };
        for pixel in 0..=pixels {
            let share = pixel as f32 / pixels.max(1) as f32;
            let [x, y] = [0, 1].map(|axis| from[axis] + share * (to[axis] - from[axis]));
            if area.contains([x, y]) {
                canvas.fill([x as usize, y as usize], [2, 2], FAINT);
            }
        }
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
            let (right, up) = (cells(x, width, rows), cells(height - 1 - y, height, columns));
            let count = (right.len() * up.len()) as f32;
            let sum: f32 = right.flat_map(|row| up.clone().map(move |column| values[row * columns + column])).sum();
            canvas.dot(left + x, top + y, scale.colour(sum / count));
        }
    }
}

/// The points of a pixel: several if the field is finer than the map, else one.
fn cells(pixel: usize, pixels: usize, points: usize) -> std::ops::Range<usize> {
    let first = pixel * points / pixels;
    first..((pixel + 1) * points / pixels).clamp(first + 1, points.max(first + 1))
}

/// Draws a line through the values, the ends of the scale beside it, and a line at zero if zero is between them.
fn curve(canvas: &mut Canvas, area: Area, values: &[f32], scale: &Scale) {
    let ([left, top], [_, height]) = (area.corner, area.size);
    canvas.fill(area.corner, area.size, GROUND);
    let [least, most] = [scale.least, scale.most].map(number);
    let beside = font::width(&least).max(font::width(&most)) + 8;
    let (left, width) = (left + beside, area.size[0].saturating_sub(beside));
    for (y, end) in [(top, &most), (top + height - font::HEIGHT, &least)] {
        canvas.text([left - 5 - font::width(end), y], end, FAINT);
    }
    let extent = (scale.most - scale.least).max(f32::MIN_POSITIVE);
    let level = |value: f32| ((height - 3) as f32 * (1.0 - (value - scale.least) / extent).clamp(0.0, 1.0)) as usize;
    canvas.fill([left - 1, top], [1, height], AXIS);
    if scale.least < 0.0 && scale.most > 0.0 {
        canvas.fill([left, top + level(0.0)], [width, 1], AXIS);
    }
    let mut previous = None;
    for x in 0..width {
        let position = x as f32 / (width - 1).max(1) as f32 * (values.len() - 1) as f32;
        let (before, after) = (values[position as usize], values[position.ceil() as usize]);
        let value = before + position.fract() * (after - before);
        if !value.is_finite() {
            previous = None;
            continue;
        }
        let (now, last) = (level(value), previous.unwrap_or(level(value)));
        canvas.fill([left + x, top + now.min(last)], [1, now.abs_diff(last) + 2], scale.colour(value));
        previous = Some(now);
    }
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
    fn axes_are_named() {
        assert_eq!(Layout::Grid([31, 7]).axes(None, ""), "31 rows to the right, 7 columns up");
        assert_eq!(Layout::Grid([16, 1]).axes(None, ""), "points 1 to 16 to the right");
        let cloud = Layout::cloud(&[0.0, 1.0, 7.0, 2.0, 3.0, 8.0], 3);
        assert_eq!(cloud.axes(window(&[&cloud]).as_ref(), " (m)"), "x 0 to 2, y 1 to 3 (m), viewed along z");
    }

    #[test]
    fn the_first_row_is_at_the_left_and_the_first_column_at_the_bottom() {
        let values = vec![0.0, 0.25, 0.75, 1.0];
        let scale = Scale::of(values.iter().copied());
        let map = Map { title: String::new(), layout: Layout::Grid([2, 2]), window: None, values, scale };
        let (picture, [width, height]) = (map.picture(), map.size());
        let corners = [(0, height - 1), (0, 0), (width - 1, height - 1), (width - 1, 0)];
        assert_eq!(corners.map(|(x, y)| picture.at(x, y)), [0.0, 0.25, 0.75, 1.0].map(|value| scale.colour(value)));
    }
}
