//! One field as a picture: x runs to the right and y upwards, as in the equations; a field on a line is a curve, one
//! with positions is drawn on its own mesh or cloud.

use super::Canvas;
use super::colour::{FAINT, PAPER, Rgb, Scale};
use super::mesh::{Area, Window, draw_cloud, draw_mesh};

/// Pixels of the longer side of a map, about: points of coarse fields become squares of whole pixels.
const MAP: usize = 220;
const FINEST: usize = 256;
/// Behind a curve.
const GROUND: Rgb = [244, 245, 247];

/// Where the values of a map lie.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Place {
    /// `[rows, columns]` squares; rows run along x, a single column is a line.
    Grid([usize; 2]),
    /// `[rows, columns]` nodes, each at its position.
    Mesh([usize; 2], Vec<[f32; 2]>),
    /// The lines between such nodes, without values.
    Wire([usize; 2], Vec<[f32; 2]>),
    /// Points without order.
    Cloud(Vec<[f32; 2]>),
}

impl Place {
    /// Positions, where there are any.
    pub(crate) fn positions(&self) -> Option<&[[f32; 2]]> {
        match self {
            Place::Grid(_) => None,
            Place::Mesh(_, positions) | Place::Wire(_, positions) | Place::Cloud(positions) => Some(positions),
        }
    }

    /// The place itself, for want of a field on it.
    pub(crate) fn bare(self) -> Place {
        match self {
            Place::Mesh(plane, positions) => Place::Wire(plane, positions),
            other => other,
        }
    }

    /// `[width, height]` in pixels of a map of this place; maps that share a window have the same size.
    pub(crate) fn size(&self, window: Option<&Window>) -> [usize; 2] {
        match (self, window) {
            (Place::Grid([_, 1]), _) => [MAP, MAP / 2],
            (Place::Grid([rows, columns]), _) => {
                let longest = rows.max(columns);
                let map = if *longest <= FINEST { longest * MAP.div_ceil(*longest) } else { MAP };
                [rows, columns].map(|points| (points * map / longest).max(MAP / 8))
            }
            (_, Some(window)) => window.size(MAP),
            (_, None) => [MAP, MAP],
        }
    }

    /// Draws the values into the area; without a window positions have no place to go, and nothing is drawn.
    pub(crate) fn draw(&self, canvas: &mut Canvas, area: Area, window: Option<&Window>, values: &[f32], scale: &Scale) {
        match (self, window) {
            (Place::Grid([_, 1]), _) => curve(canvas, area, values, scale),
            (Place::Grid(plane), _) => squares(canvas, area, *plane, values, scale),
            (Place::Mesh(plane, positions), Some(window)) => {
                draw_mesh(canvas, area, window, *plane, positions, values, scale);
            }
            (Place::Wire(plane, positions), Some(window)) => wire(canvas, area, window, *plane, positions),
            (Place::Cloud(positions), Some(window)) => draw_cloud(canvas, area, window, positions, values, scale),
            (_, None) => {}
        }
    }
}

/// A map with its own colours.
pub(crate) struct Map {
    pub(crate) title: String,
    pub(crate) place: Place,
    /// The part of the domain that is shown, for places with positions.
    pub(crate) window: Option<Window>,
    pub(crate) values: Vec<f32>,
    pub(crate) scale: Scale,
}

impl Map {
    pub(crate) fn size(&self) -> [usize; 2] {
        self.place.size(self.window.as_ref())
    }

    pub(crate) fn draw(&self, canvas: &mut Canvas, corner: [usize; 2]) {
        self.draw_in(canvas, Area { corner, size: self.size() });
    }

    /// The map alone, without words; slanted edges are drawn twice as fine.
    pub(crate) fn picture(&self) -> Canvas {
        let fine = if self.place.positions().is_some() { 2 } else { 1 };
        let size = self.size().map(|side| fine * side);
        let mut canvas = Canvas::new(size[0], size[1], PAPER);
        self.draw_in(&mut canvas, Area { corner: [0, 0], size });
        canvas
    }

    fn draw_in(&self, canvas: &mut Canvas, area: Area) {
        self.place.draw(canvas, area, self.window.as_ref(), &self.values, &self.scale);
    }
}

/// Every so many lines of a mesh, so that some paper is left between them; the outermost ones always.
fn wire(canvas: &mut Canvas, area: Area, window: &Window, [rows, columns]: [usize; 2], positions: &[[f32; 2]]) {
    const LINES: usize = 12;
    let chosen = |count: usize| {
        let stride = count.div_ceil(LINES).max(1);
        (0..count).filter(move |line| line % stride == 0 || line + 1 == count)
    };
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
    for row in chosen(rows) {
        (1..columns).for_each(|column| line(row * columns + column - 1, row * columns + column));
    }
    for column in chosen(columns) {
        (1..rows).for_each(|row| line((row - 1) * columns + column, row * columns + column));
    }
}

fn squares(canvas: &mut Canvas, area: Area, [rows, columns]: [usize; 2], values: &[f32], scale: &Scale) {
    let ([left, top], [width, height]) = (area.corner, area.size);
    for y in 0..height {
        for x in 0..width {
            let (across, up) = (cells(x, width, rows), cells(height - 1 - y, height, columns));
            let count = (across.len() * up.len()) as f32;
            let sum: f32 = across.flat_map(|row| up.clone().map(move |column| values[row * columns + column])).sum();
            canvas.dot(left + x, top + y, scale.colour(sum / count));
        }
    }
}

/// The points that share a pixel: several where the field is finer than the map, else the one it lies in.
fn cells(pixel: usize, pixels: usize, points: usize) -> std::ops::Range<usize> {
    let first = pixel * points / pixels;
    first..((pixel + 1) * points / pixels).clamp(first + 1, points.max(first + 1))
}

fn curve(canvas: &mut Canvas, area: Area, values: &[f32], scale: &Scale) {
    let ([left, top], [width, height]) = (area.corner, area.size);
    canvas.fill([left, top], [width, height], GROUND);
    let extent = (scale.most - scale.least).max(f32::MIN_POSITIVE);
    let level = |value: f32| ((height - 3) as f32 * (1.0 - (value - scale.least) / extent)) as usize;
    let mut before = None;
    for x in 0..width {
        let place = x as f32 / (width - 1).max(1) as f32 * (values.len() - 1) as f32;
        let (before_it, after_it) = (values[place as usize], values[place.ceil() as usize]);
        let value = before_it + place.fract() * (after_it - before_it);
        if !value.is_finite() {
            before = None;
            continue;
        }
        let (now, last) = (level(value), before.unwrap_or(level(value)));
        canvas.fill([left + x, top + now.min(last)], [1, now.abs_diff(last) + 2], scale.colour(value));
        before = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_point_reaches_the_map_and_none_lies_outside() {
        for (pixels, points) in [(220, 421), (220, 85), (220, 220), (27, 31), (5, 1)] {
            let mut seen = vec![false; points];
            (0..pixels).flat_map(|pixel| cells(pixel, pixels, points)).for_each(|point| seen[point] = true);
            assert!(seen.iter().all(|&seen| seen), "{points} points on {pixels} pixels");
        }
    }

    #[test]
    fn the_first_row_is_at_the_left_and_the_first_column_at_the_bottom() {
        let values = vec![0.0, 0.25, 0.75, 1.0];
        let scale = Scale::of(values.iter().copied());
        let map = Map { title: String::new(), place: Place::Grid([2, 2]), window: None, values, scale };
        let (picture, [width, height]) = (map.picture(), map.size());
        let corners = [(0, height - 1), (0, 0), (width - 1, height - 1), (width - 1, 0)];
        assert_eq!(corners.map(|(x, y)| picture.at(x, y)), [0.0, 0.25, 0.75, 1.0].map(|value| scale.colour(value)));
    }
}
