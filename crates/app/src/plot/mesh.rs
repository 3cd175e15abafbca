//! Fields on positions: the points of a cloud as discs, the cells of a structured mesh as triangles.
//!
//! Both preserve the aspect ratio of the domain. x runs to the right and y upwards.

use super::Canvas;
use super::colour::{Rgb, Scale};
use super::number::number;

/// A region of the canvas in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Area {
    /// `[x, y]` of the upper left corner
    pub(crate) corner: [usize; 2],
    /// `[width, height]`
    pub(crate) size: [usize; 2],
}

impl Area {
    /// Whether a pixel position lies inside.
    pub(super) fn contains(&self, pixel: [f32; 2]) -> bool {
        (0..2).all(|axis| {
            let first = self.corner[axis] as f32;
            (first..first + self.size[axis] as f32).contains(&pixel[axis])
        })
    }
}

/// The part of the domain that is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Window {
    least: [f32; 2],
    most: [f32; 2],
    /// The extent of all points along each axis, drawn or not.
    extremes: [[f32; 2]; 2],
}

impl Window {
    /// The window around all positions of some maps. If the domain is much wider than the middle half of the points, only the
    /// surroundings of these are drawn.
    pub(crate) fn around(maps: &[Vec<[f32; 2]>]) -> Window {
        const FAR: f32 = 8.0;
        const AROUND: f32 = 0.75;
        let axes = [0, 1].map(|axis| {
            let mut sorted: Vec<f32> =
                maps.iter().flatten().map(|position| position[axis]).filter(|x| x.is_finite()).collect();
            sorted.sort_by(f32::total_cmp);
            let quartile = |k: usize| sorted.get((sorted.len().saturating_sub(1)) * k / 4).copied().unwrap_or(0.0);
            [quartile(0), quartile(1), quartile(3), quartile(4)]
        });
        let middle = axes.map(|[_, first, third, _]| third - first).into_iter().fold(0.0, f32::max);
        let whole = axes.map(|[least, .., most]| most - least).into_iter().fold(0.0, f32::max);
        let ends = axes.map(|[least, first, third, most]| {
            if whole > FAR * middle && middle > 0.0 {
                [least.max(first - AROUND * middle), most.min(third + AROUND * middle)]
            } else {
                [least, most]
            }
        });
        let extremes = axes.map(|[least, .., most]| [least, most]);
        Window { least: ends.map(|[least, _]| least), most: ends.map(|[_, most]| most), extremes }
    }

    /// `[x, y]` of the lower left corner.
    pub(crate) fn least(&self) -> [f32; 2] {
        self.least
    }

    /// `[x, y]` of the upper right corner.
    pub(crate) fn most(&self) -> [f32; 2] {
        self.most
    }

    /// A slightly larger window, in which discs at the edge fit.
    pub(super) fn wider(self) -> Window {
        const MARGIN: f32 = 0.03;
        let by = self.extent().map(|side| MARGIN * side);
        let [least, most] = [(self.least, -1.0), (self.most, 1.0)]
            .map(|(corner, sign)| [corner[0] + sign * by[0], corner[1] + sign * by[1]]);
        Window { least, most, ..self }
    }

    /// Its range, and that of the whole domain if it is a part of it; the unit as in ` (mm)`.
    pub(super) fn range(&self, unit: &str) -> String {
        let within = [0, 1].map(|axis| {
            let [least, most] = self.extremes[axis];
            [self.least[axis].max(least), self.most[axis].min(most)]
        });
        let text = |ends: [[f32; 2]; 2]| {
            let [[left, right], [low, high]] = ends.map(|ends| ends.map(number));
            format!("x {left} to {right}, y {low} to {high}")
        };
        let part = if within == self.extremes { String::new() } else { format!(", part of {}", text(self.extremes)) };
        format!("{}{unit}{part}", text(within))
    }

    /// Width and height; neither is zero.
    fn extent(&self) -> [f32; 2] {
        [0, 1].map(|axis| (self.most[axis] - self.least[axis]).max(f32::MIN_POSITIVE))
    }

    /// `[width, height]` of about `side`² pixels with the aspect ratio of the window, which is limited to 8.
    pub(crate) fn size(&self, side: usize) -> [usize; 2] {
        let [width, height] = self.extent();
        let stretch = (width / height).clamp(1.0 / 8.0, 8.0).sqrt();
        [stretch, stretch.recip()].map(|factor| (side as f32 * factor).round() as usize)
    }

    /// Pixel coordinates of a position. Both axes have the same scale, and the window is centred in the area.
    pub(super) fn pixel(&self, area: Area, position: [f32; 2]) -> [f32; 2] {
        let (extent, size) = (self.extent(), area.size.map(|side| side as f32));
        let scale = (size[0] / extent[0]).min(size[1] / extent[1]);
        let centred = [0, 1].map(|axis| scale * (position[axis] - 0.5 * (self.least[axis] + self.most[axis])));
        let corner = area.corner.map(|corner| corner as f32);
        [corner[0] + 0.5 * size[0] + centred[0], corner[1] + 0.5 * size[1] - centred[1]]
    }
}

/// Draws points as discs; the discs of an evenly spaced cloud nearly cover the area. Points of greater depth are in front.
pub(crate) fn draw_cloud(
    canvas: &mut Canvas,
    area: Area,
    window: &Window,
    (positions, depths): (&[[f32; 2]], &[f32]),
    values: &[f32],
    scale: &Scale,
) {
    assert_eq!(positions.len(), values.len(), "a value per point");
    let mut order: Vec<usize> = (0..positions.len()).collect();
    if depths.len() == positions.len() {
        order.sort_by(|&one, &other| depths[one].total_cmp(&depths[other]));
    }
    let radius = disc_radius(area, positions.len());
    for point in order {
        disc(canvas, area, window.pixel(area, positions[point]), radius, scale.colour(values[point]));
    }
}

/// The radius with which the discs of so many evenly spaced points nearly cover an area.
pub(super) fn disc_radius(area: Area, points: usize) -> f32 {
    let pixels = (area.size[0] * area.size[1]) as f32;
    (0.5 * (pixels / points.max(1) as f32).sqrt()).clamp(1.0, 6.0)
}

/// Draws a disc around a pixel position.
pub(super) fn disc(canvas: &mut Canvas, area: Area, [x, y]: [f32; 2], radius: f32, colour: Rgb) {
    for [column, row] in pixels_between(area, [x - radius, y - radius], [x + radius, y + radius]) {
        let distance = (column as f32 + 0.5 - x).hypot(row as f32 + 0.5 - y);
        if distance <= radius {
            canvas.dot(column, row, colour);
        }
    }
}

/// Draws the cells between `rows` × `columns` nodes, each as two triangles with linear interpolation.
pub(crate) fn draw_mesh(
    canvas: &mut Canvas,
    area: Area,
    window: &Window,
    [rows, columns]: [usize; 2],
    positions: &[[f32; 2]],
    values: &[f32],
    scale: &Scale,
) {
    assert_eq!([positions.len(), values.len()], [rows * columns; 2], "a position and a value per node");
    let node = |index: usize| (window.pixel(area, positions[index]), values[index]);
    for row in 1..rows {
        for column in 1..columns {
            let last = row * columns + column;
            let [first, beside, above] = [last - columns - 1, last - columns, last - 1].map(node);
            let last = node(last);
            triangle(canvas, area, [first, beside, last], scale);
            triangle(canvas, area, [first, last, above], scale);
        }
    }
}

/// Colours the pixels of a triangle, linearly between its corners.
fn triangle(canvas: &mut Canvas, area: Area, corners: [([f32; 2], f32); 3], scale: &Scale) {
    covered(area, corners.map(|(place, _)| place), |[x, y], shares| {
        let value = shares.iter().zip(&corners).map(|(share, (_, value))| share * value).sum();
        canvas.dot(x, y, scale.colour(value));
    });
}

/// The pixels whose centres lie inside a triangle or on its edge, each with the shares of the corners in it.
pub(super) fn covered(area: Area, [a, b, c]: [[f32; 2]; 3], mut each: impl FnMut([usize; 2], [f32; 3])) {
    let twice = |p: [f32; 2], q: [f32; 2], r: [f32; 2]| (q[0] - p[0]) * (r[1] - p[1]) - (q[1] - p[1]) * (r[0] - p[0]);
    let whole = twice(a, b, c);
    if whole == 0.0 || !whole.is_finite() {
        return;
    }
    const EDGE: f32 = -1e-3; // neighbours overlap slightly, so that rounding leaves no gap
    let ends = |axis: usize, pick: fn(f32, f32) -> f32| pick(pick(a[axis], b[axis]), c[axis]);
    let (least, most) = ([ends(0, f32::min), ends(1, f32::min)], [ends(0, f32::max), ends(1, f32::max)]);
    for [x, y] in pixels_between(area, least, most) {
        let centre = [x as f32 + 0.5, y as f32 + 0.5];
        let shares = [twice(centre, b, c), twice(a, centre, c), twice(a, b, centre)].map(|part| part / whole);
        if shares.iter().all(|&share| share >= EDGE) {
            each([x, y], shares);
        }
    }
}

/// The pixels of `area` along a line.
pub(super) fn line(area: Area, [from, to]: [[f32; 2]; 2], mut each: impl FnMut([usize; 2])) {
    let length = (to[0] - from[0]).abs().max((to[1] - from[1]).abs());
    let pixels = if length.is_finite() { (length as usize).min(area.size[0] + area.size[1]) } else { return };
    for pixel in 0..=pixels {
        let share = pixel as f32 / pixels.max(1) as f32;
        let [x, y] = [0, 1].map(|axis| from[axis] + share * (to[axis] - from[axis]));
        if area.contains([x, y]) {
            each([x as usize, y as usize]);
        }
    }
}

/// The pixels of `area` inside the box from `least` to `most`.
fn pixels_between(area: Area, least: [f32; 2], most: [f32; 2]) -> impl Iterator<Item = [usize; 2]> {
    let side = |axis: usize| {
        let (first, end) = (area.corner[axis], area.corner[axis] + area.size[axis]);
        let inside = |pixel: f32| (pixel.max(0.0) as usize).clamp(first, end);
        inside(least[axis].floor())..inside(most[axis].ceil())
    };
    let columns = side(0);
    side(1).flat_map(move |row| columns.clone().map(move |column| [column, row]))
}

#[cfg(test)]
mod tests {
    use super::super::colour::PAPER;
    use super::*;

    const AREA: Area = Area { corner: [5, 7], size: [60, 30] };

    /// Draws on a canvas that is larger than the area; the colour of each pixel.
    fn drawn(draw: impl FnOnce(&mut Canvas, &Scale)) -> impl Fn(usize, usize) -> [u8; 3] {
        let mut canvas = Canvas::new(80, 50, PAPER);
        draw(&mut canvas, &Scale::of([0.0, 1.0].into_iter()));
        move |x, y| canvas.at(x, y)
    }

    #[test]
    fn a_sheared_mesh_fills_exactly_its_cells() {
        let positions = [[0.0, 0.0], [0.0, 1.0], [0.7, 0.0], [1.3, 1.0], [2.0, 0.0], [2.0, 1.0]];
        let window = Window::around(&[positions.to_vec()]);
        assert_eq!(window.size(30), [42, 21]);
        let at = drawn(|canvas, scale| draw_mesh(canvas, AREA, &window, [3, 2], &positions, &[0.0; 6], scale));
        let least = Scale::of([0.0, 1.0].into_iter()).colour(0.0);
        for (x, y) in (0..80).flat_map(|x| (0..50).map(move |y| (x, y))) {
            let inside = (5..65).contains(&x) && (7..37).contains(&y);
            assert_eq!(at(x, y), if inside { least } else { PAPER }, "pixel {x}, {y}");
        }
    }

    #[test]
    fn the_first_row_of_a_mesh_is_at_the_left() {
        let positions = [[0.0, 0.0], [0.0, 1.0], [2.0, 0.0], [2.0, 1.0]];
        let window = Window::around(&[positions.to_vec()]);
        let values = [0.0, 0.0, 1.0, 1.0];
        let at = drawn(|canvas, scale| draw_mesh(canvas, AREA, &window, [2, 2], &positions, &values, scale));
        let scale = Scale::of([0.0, 1.0].into_iter());
        for x in [5, 20, 64] {
            let wanted = scale.colour((x as f32 + 0.5 - 5.0) / 60.0);
            assert!(at(x, 20).iter().zip(wanted).all(|(found, wanted)| found.abs_diff(wanted) <= 1), "column {x}");
        }
    }

    #[test]
    fn a_cloud_preserves_positions_and_aspect_ratio() {
        let positions = [[0.0, 0.0], [4.0, 0.0], [4.0, 1.0]];
        let window = Window::around(&[positions.to_vec()]);
        let at = drawn(|canvas, scale| draw_cloud(canvas, AREA, &window, (&positions, &[]), &[0.0, 0.5, 1.0], scale));
        let scale = Scale::of([0.0, 1.0].into_iter());
        // Fifteen pixels per unit: the box of 60 × 15 lies in the middle of the area's 30 rows.
        assert_eq!([at(6, 29), at(63, 29), at(63, 14)], [0.0, 0.5, 1.0].map(|value| scale.colour(value)));
        assert_eq!([at(6, 14), at(35, 22)], [PAPER; 2]);
    }

    #[test]
    fn the_nearest_of_two_points_is_in_front() {
        let positions = [[0.0, 0.0], [2.0, 1.0], [2.0, 1.0]];
        let window = Window::around(&[positions.to_vec()]).wider();
        let (depths, values) = ([0.0, 5.0, -5.0], [0.0, 0.5, 1.0]);
        let at = drawn(|canvas, scale| draw_cloud(canvas, AREA, &window, (&positions, &depths), &values, scale));
        let [x, y] = window.pixel(AREA, [2.0, 1.0]).map(|pixel| pixel as usize);
        assert_eq!(at(x, y), Scale::of([0.0, 1.0].into_iter()).colour(0.5));
        assert_eq!(window.range(""), "x 0 to 2, y 0 to 1");
    }

    #[test]
    fn a_distant_border_is_not_drawn_and_positions_may_be_nan() {
        let near = (0..100).map(|k| [0.01 * k as f32, 0.001 * k as f32]);
        let positions: Vec<[f32; 2]> = near.chain([[-40.0, 0.0], [40.0, 40.0], [f32::NAN, 0.0]]).collect();
        let window = Window::around(&[positions.to_vec()]);
        assert!(window.most[0] < 2.0 && window.least[0] > -1.0, "{window:?}");
        assert!(window.range(" (m)").ends_with(" (m), part of x -40 to 40, y 0 to 40"), "{}", window.range(" (m)"));
        let values = vec![0.5; positions.len()];
        let at = drawn(|canvas, scale| {
            draw_cloud(canvas, AREA, &window, (&positions, &[]), &values, scale);
            draw_mesh(canvas, AREA, &window, [1, positions.len()], &positions, &values, scale);
            draw_cloud(canvas, AREA, &Window::around(&[]), (&[], &[]), &[], scale);
        });
        assert_eq!([at(0, 0), at(79, 49)], [PAPER; 2]);
        assert_eq!(Window::around(&[vec![[1.0, 1.0]]]).size(30), [30, 30]);
    }
}
