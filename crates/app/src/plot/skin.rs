//! Triangles between points: filled where they are flat, shaded from a fixed side where they are a surface in space.
//!
//! Points in space without triangles are discs, darker at the back.
//!
//! x points to the right, y to the back and z upwards; the viewer stands at the azimuth and the elevation of [`VIEW`].

use super::Canvas;
use super::colour::{FAINT, PAPER, Scale};
use super::mesh::{Area, Window, covered, disc, disc_radius, line};
use super::number::number;
use lamo::data::Drawn;
use std::collections::HashMap;

/// Azimuth and elevation of the viewer, in degrees.
pub(crate) const VIEW: [f32; 2] = [-60.0, 25.0];
/// The direction to the light, to the right, upwards and to the viewer; of length 1.
pub(crate) const LIGHT: [f32; 3] = [-0.36, 0.48, 0.8];
/// The darkest share of a colour.
pub(crate) const DARKEST: f32 = 0.55;
/// The share of its colour that the disc at the back shows.
pub(crate) const BACK: f32 = 0.7;
/// The edges of more triangles than these would cover a mesh that is drawn without values.
const MOST_EDGES: usize = 6000;

/// Triangles, and the third dimension of their points.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Skin {
    /// The three points whose values each shows.
    pub(crate) triangles: Vec<[u32; 3]>,
    /// `[triangles · 3]` where their corners are drawn, if these are no points: a cell shows the value at its centre. Empty elsewhere.
    pub(crate) corners: Vec<[f32; 2]>,
    /// `[points]` coordinates in space, or `[triangles · 3]` those of the corners; empty for a flat mesh.
    pub(crate) solid: Vec<[f32; 3]>,
}

/// The part of a mesh that a page has.
#[derive(Debug, PartialEq)]
pub(crate) struct Thinned {
    /// The point whose value each vertex shows.
    pub(crate) points: Vec<usize>,
    /// Where each vertex is: a point, or a corner of [`Skin::corners`].
    pub(crate) places: Vec<usize>,
    /// Triangles by their vertices.
    pub(crate) triangles: Vec<[u32; 3]>,
}

/// To the right, upwards, and to the viewer.
fn turned([x, y, z]: [f32; 3]) -> [f32; 3] {
    let [azimuth, elevation] = VIEW.map(f32::to_radians);
    let ([sin, cos], [up, flat]) = ([azimuth.sin(), azimuth.cos()], [elevation.sin(), elevation.cos()]);
    let along = x * cos + y * sin;
    [y * cos - x * sin, z * flat - along * up, z * up + along * flat]
}

fn cross(one: [f32; 3], other: [f32; 3]) -> [f32; 3] {
    [1, 2, 0].map(|next: usize| {
        let after = (next + 1) % 3;
        one[next] * other[after] - one[after] * other[next]
    })
}

fn minus(one: [f32; 3], other: [f32; 3]) -> [f32; 3] {
    [0, 1, 2].map(|axis| one[axis] - other[axis])
}

/// The share of its colour that a triangle shows, by the angle between it and the light.
fn light([a, b, c]: [[f32; 3]; 3]) -> f32 {
    let normal = cross(minus(b, a), minus(c, a));
    let length = normal.iter().map(|side| side * side).sum::<f32>().sqrt();
    let towards: f32 = normal.iter().zip(LIGHT).map(|(side, light)| side * light).sum();
    if length > 0.0 { DARKEST + (1.0 - DARKEST) * (towards / length).abs() } else { 1.0 }
}

impl Skin {
    /// The triangles of points with two or three coordinates; the points as they are drawn beside them.
    pub(crate) fn of(positions: &[f32], space: usize, drawn: &Drawn) -> (Vec<[f32; 2]>, Skin) {
        let (triangles, has_corners) = (drawn.triangles.clone(), !drawn.corners.is_empty());
        let seen = |positions: &[f32]| -> (Vec<[f32; 2]>, Vec<[f32; 3]>) {
            let points = positions.chunks_exact(space);
            if space < 3 {
                return (points.map(|point| [point[0], point[1]]).collect(), Vec::new());
            }
            let solid: Vec<[f32; 3]> = points.map(|point| [point[0], point[1], point[2]]).collect();
            (solid.iter().map(|&point| turned(point)).map(|[right, up, _]| [right, up]).collect(), solid)
        };
        let (points, solid) = seen(positions);
        match has_corners {
            false => (points, Skin { triangles, corners: Vec::new(), solid }),
            true => {
                let (corners, solid) = seen(&drawn.corners);
                (points, Skin { triangles, corners, solid })
            }
        }
    }

    /// The place of a corner of a triangle among the points, or among the corners where there are any.
    fn place(&self, triangle: usize, corner: usize) -> usize {
        if self.corners.is_empty() { self.triangles[triangle][corner] as usize } else { 3 * triangle + corner }
    }

    /// Where the vertices of the triangles are drawn: the corners, or these points.
    pub(crate) fn seen<'a>(&'a self, points: &'a [[f32; 2]]) -> &'a [[f32; 2]] {
        if self.corners.is_empty() { points } else { &self.corners }
    }

    /// Whether it is a surface in space.
    pub(crate) fn is_solid(&self) -> bool {
        !self.solid.is_empty()
    }

    /// The range of the coordinates in space; the unit as in ` (mm)`.
    pub(super) fn range(&self, unit: &str) -> String {
        let ends = |axis: usize| {
            let sides = self.solid.iter().map(|place| place[axis]).filter(|side| side.is_finite());
            let [least, most] =
                sides.fold([f32::INFINITY, f32::NEG_INFINITY], |[least, most], side| [least.min(side), most.max(side)]);
            format!("{} {} to {}", ["x", "y", "z"][axis], number(least), number(most))
        };
        let shaded = if self.triangles.is_empty() { "darker at the back" } else { "shaded" };
        format!("{}{unit}, z upwards, {shaded}", [0, 1, 2].map(ends).join(", "))
    }

    /// Draws the values of the points at their positions.
    pub(super) fn draw(
        &self,
        canvas: &mut Canvas,
        (area, window): (Area, &Window),
        positions: &[[f32; 2]],
        values: &[f32],
        scale: &Scale,
    ) {
        assert_eq!(positions.len(), values.len(), "a value per point");
        if self.is_discs() {
            return self.draw_discs(canvas, (area, window), positions, values, scale);
        }
        let mut nearest = vec![f32::NEG_INFINITY; if self.is_solid() { area.size[0] * area.size[1] } else { 0 }];
        let seen = self.seen(positions);
        for (number, triangle) in self.triangles.iter().enumerate() {
            let points = triangle.map(|point| point as usize);
            let vertices = [0, 1, 2].map(|corner| self.place(number, corner));
            let corners = vertices.map(|vertex| window.pixel(area, seen[vertex]));
            let [depths, shade] = match self.is_solid() {
                true => {
                    let places = vertices.map(|vertex| turned(self.solid[vertex]));
                    [places.map(|[.., depth]| depth), [light(places); 3]]
                }
                false => [[0.0; 3], [1.0; 3]],
            };
            covered(area, corners, |[x, y], shares| {
                let mean = |at: [f32; 3]| shares.iter().zip(at).map(|(share, at)| share * at).sum::<f32>();
                let place = (y - area.corner[1]) * area.size[0] + x - area.corner[0];
                if let Some(front) = nearest.get_mut(place) {
                    let depth = mean(depths);
                    if depth <= *front {
                        return;
                    }
                    *front = depth;
                }
                let value = mean(points.map(|point| values[point]));
                let colour = if scale.is_plain() && !self.is_solid() { PAPER } else { scale.colour(value) };
                canvas.dot(x, y, colour.map(|part| (f32::from(part) * shade[0]).round() as u8));
            });
        }
        if scale.is_plain() && !self.is_solid() {
            self.draw_edges(canvas, area, window, positions);
        }
    }

    /// Whether it is points in space that no triangles join.
    fn is_discs(&self) -> bool {
        self.is_solid() && self.triangles.is_empty()
    }

    /// Draws points in space as discs, those at the back first.
    fn draw_discs(
        &self,
        canvas: &mut Canvas,
        (area, window): (Area, &Window),
        positions: &[[f32; 2]],
        values: &[f32],
        scale: &Scale,
    ) {
        let depths: Vec<f32> = self.solid.iter().map(|&place| turned(place)[2]).collect();
        let [back, front] = depths
            .iter()
            .fold([f32::INFINITY, f32::NEG_INFINITY], |[back, front], &depth| [back.min(depth), front.max(depth)]);
        let mut order: Vec<usize> = (0..positions.len()).collect();
        order.sort_by(|&one, &other| depths[one].total_cmp(&depths[other]));
        let radius = disc_radius(area, positions.len() / 3); // a body shows less than half of its surface
        for point in order {
            let share = if front > back { (depths[point] - back) / (front - back) } else { 1.0 };
            let light = BACK + (1.0 - BACK) * share;
            let colour = scale.colour(values[point]).map(|part| (f32::from(part) * light).round() as u8);
            disc(canvas, area, window.pixel(area, positions[point]), radius, colour);
        }
    }

    /// Draws the edges of a flat mesh; its outline where it has very many.
    fn draw_edges(&self, canvas: &mut Canvas, area: Area, window: &Window, positions: &[[f32; 2]]) {
        let seen = self.seen(positions);
        let key = |vertex: usize| seen[vertex].map(f32::to_bits); // corners of neighbouring cells are one
        let mut uses: HashMap<[[u32; 2]; 2], (usize, [usize; 2])> = HashMap::new();
        for number in 0..self.triangles.len() {
            let [a, b, c] = [0, 1, 2].map(|corner| self.place(number, corner));
            for [from, to] in [[a, b], [b, c], [c, a]] {
                let mut ends = [from, to].map(key);
                ends.sort_unstable();
                uses.entry(ends).or_insert((0, [from, to])).0 += 1;
            }
        }
        let all = self.shows_edges();
        for (_, edge) in uses.into_values().filter(|(count, _)| all || *count == 1) {
            let ends = edge.map(|vertex| window.pixel(area, seen[vertex]));
            line(area, ends, |[x, y]| canvas.fill([x, y], [1, 1], FAINT));
        }
    }

    /// Whether all edges of a mesh without values are drawn, not its outline alone.
    pub(crate) fn shows_edges(&self) -> bool {
        self.triangles.len() <= MOST_EDGES
    }

    /// The area of all triangles.
    fn area(&self, places: &[[f32; 3]]) -> f64 {
        let area = |number: usize| {
            let [a, b, c] = [0, 1, 2].map(|corner| places[self.place(number, corner)]);
            let normal = cross(minus(b, a), minus(c, a));
            f64::from(normal.iter().map(|side| side * side).sum::<f32>().sqrt()) / 2.0
        };
        (0..self.triangles.len()).map(area).filter(|area| area.is_finite()).sum()
    }

    /// The vertices that triangles use, and the triangles by their places among these. With `thinning` above 1, vertices closer than
    /// that many mean distances become one of them, and triangles that collapse are left out.
    pub(crate) fn thinned(&self, positions: &[[f32; 2]], thinning: usize) -> Thinned {
        if self.is_discs() {
            let chosen: Vec<usize> = (0..positions.len()).step_by(thinning * thinning).collect();
            return Thinned { points: chosen.clone(), places: chosen, triangles: Vec::new() };
        }
        let flat = || self.seen(positions).iter().map(|&[x, y]| [x, y, 0.0]).collect();
        let places: Vec<[f32; 3]> = if self.is_solid() { self.solid.clone() } else { flat() };
        let used = self.triangles.as_flattened().len().div_ceil(6).max(1); // two triangles for each point
        let side = thinning as f64 * (self.area(&places) / used as f64).sqrt();
        let mut boxes: HashMap<[i64; 3], u32> = HashMap::new();
        // A point is one vertex; a corner of a cell is one vertex in all triangles of this cell.
        let mut numbers: HashMap<(u32, [u32; 3]), u32> = HashMap::new();
        let (mut points, mut chosen): (Vec<usize>, Vec<usize>) = (Vec::new(), Vec::new());
        let mut number = |point: u32, vertex: usize| {
            let at = if self.corners.is_empty() { [0; 3] } else { places[vertex].map(f32::to_bits) };
            *numbers.entry((point, at)).or_insert_with(|| {
                let place = places[vertex].map(|at| (f64::from(at) / side.max(f64::MIN_POSITIVE)).floor() as i64);
                let own = if thinning > 1 { boxes.get(&place).copied() } else { None };
                own.unwrap_or_else(|| {
                    points.push(point as usize);
                    chosen.push(vertex);
                    boxes.insert(place, chosen.len() as u32 - 1);
                    chosen.len() as u32 - 1
                })
            })
        };
        let mut triangles: Vec<[u32; 3]> = Vec::with_capacity(self.triangles.len());
        for (triangle, corners) in self.triangles.iter().enumerate() {
            triangles.push([0, 1, 2].map(|corner| number(corners[corner], self.place(triangle, corner))));
        }
        triangles.retain(|[a, b, c]| a != b && b != c && c != a);
        let mut seen = std::collections::HashSet::new();
        triangles.retain(|corners| {
            let mut key = *corners;
            key.sort_unstable();
            thinning == 1 || seen.insert(key)
        });
        Thinned { points, places: chosen, triangles }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AREA: Area = Area { corner: [3, 2], size: [60, 60] };

    /// The corners of a cube of side 2 and its faces; the values of the points are their x.
    fn cube() -> (Vec<[f32; 2]>, Skin, Vec<f32>) {
        let corners: Vec<f32> = (0..8).flat_map(|k| [k & 1, k >> 1 & 1, k >> 2].map(|bit| 2.0 * bit as f32)).collect();
        let faces = [[0, 1, 3, 2], [4, 5, 7, 6], [0, 1, 5, 4], [2, 3, 7, 6], [0, 2, 6, 4], [1, 3, 7, 5]];
        let triangles = faces.iter().flat_map(|&[a, b, c, d]| [[a, b, c], [a, c, d]]).collect();
        let values = corners.chunks(3).map(|corner| corner[0]).collect();
        let (positions, skin) = Skin::of(&corners, 3, &Drawn { triangles, corners: Vec::new() });
        (positions, skin, values)
    }

    #[test]
    fn the_sides_of_a_cube_that_face_the_viewer_are_in_front() {
        let (positions, skin, _) = cube();
        let window = Window::around(std::slice::from_ref(&positions));
        let scale = Scale::of([0.0, 1.0].into_iter());
        // The viewer is in front (low y), at the right (high x) and above: the corner farthest from it is not seen.
        let hidden = skin.solid.iter().map(|&place| turned(place)[2]).enumerate();
        let (hidden, _) = hidden.min_by(|one, other| one.1.total_cmp(&other.1)).unwrap();
        assert_eq!(skin.solid[hidden], [0.0, 2.0, 0.0]);
        let mut values = vec![0.0; 8];
        values[hidden] = 1.0;
        let drawn = |values: &[f32]| {
            let mut canvas = Canvas::new(70, 70, PAPER);
            skin.draw(&mut canvas, (AREA, &window), &positions, values, &scale);
            (0..70 * 70).map(|pixel| canvas.at(pixel % 70, pixel / 70)).collect::<Vec<_>>()
        };
        assert!(drawn(&values) == drawn(&[0.0; 8]), "a hidden corner changes nothing");
        values[7 - hidden] = 1.0;
        assert!(drawn(&values) != drawn(&[0.0; 8]), "the corner in front is seen");
        let shades: std::collections::HashSet<_> = drawn(&[0.0; 8]).into_iter().collect();
        assert_eq!(shades.len(), 4, "three sides in three shades, and the paper");
    }

    #[test]
    fn flat_triangles_fill_exactly_their_area() {
        let corners = [0.0, 0.0, 1.0, 0.0, 1.0, 1.0, 0.0, 1.0];
        let drawn = Drawn { triangles: vec![[0, 1, 2], [0, 2, 3]], corners: Vec::new() };
        let (positions, skin) = Skin::of(&corners, 2, &drawn);
        let (mut canvas, scale) = (Canvas::new(70, 70, PAPER), Scale::of([0.0, 1.0].into_iter()));
        skin.draw(
            &mut canvas,
            (AREA, &Window::around(std::slice::from_ref(&positions))),
            &positions,
            &[0.0; 4],
            &scale,
        );
        for (x, y) in (0..70).flat_map(|x| (0..70).map(move |y| (x, y))) {
            let inside = (3..63).contains(&x) && (2..62).contains(&y);
            assert_eq!(canvas.at(x, y), if inside { scale.colour(0.0) } else { PAPER }, "pixel {x}, {y}");
        }
    }

    #[test]
    fn a_thinned_mesh_covers_the_same_area_with_fewer_points() {
        let side = 40;
        let point = |row: usize, column: usize| (row * side + column) as u32;
        let corners: Vec<f32> =
            (0..side * side).flat_map(|point| [(point % side) as f32, (point / side) as f32]).collect();
        let cells = (1..side).flat_map(|row| (1..side).map(move |column| (row, column)));
        let halves = |(row, column): (usize, usize)| {
            let [a, b, c, d] =
                [(row - 1, column - 1), (row - 1, column), (row, column), (row, column - 1)].map(|(r, c)| point(r, c));
            [[a, b, c], [a, c, d]]
        };
        let drawn = Drawn { triangles: cells.flat_map(halves).collect(), corners: Vec::new() };
        let (positions, skin) = Skin::of(&corners, 2, &drawn);
        let all = skin.thinned(&positions, 1);
        assert_eq!((all.points.len(), all.triangles.len()), (side * side, skin.triangles.len()));
        let few = skin.thinned(&positions, 4);
        assert!(few.points.len() * 8 < all.points.len(), "{} of {}", few.points.len(), all.points.len());
        let places: Vec<[f32; 3]> =
            few.places.iter().map(|&point| [positions[point][0], positions[point][1], 0.0]).collect();
        let kept = Skin { triangles: few.triangles, ..Skin::default() }.area(&places) / 39.0 / 39.0;
        assert!((0.75..=1.0001).contains(&kept), "{kept} of the area");
    }

    #[test]
    fn a_cell_is_filled_with_the_value_at_its_centre() {
        // Two squares side by side, the points at their centres.
        let square = |x: f32| [[x, 0.0, x + 1.0, 0.0, x + 1.0, 1.0], [x, 0.0, x + 1.0, 1.0, x, 1.0]].concat();
        let triangles = vec![[0; 3], [0; 3], [1; 3], [1; 3]];
        let drawn = Drawn { triangles, corners: [square(0.0), square(1.0)].concat() };
        let (positions, skin) = Skin::of(&[0.5, 0.5, 1.5, 0.5], 2, &drawn);
        let window = Window::around(&[skin.seen(&positions).to_vec()]);
        assert_eq!((window.least(), window.most()), ([0.0, 0.0], [2.0, 1.0]));
        let area = Area { corner: [0, 0], size: [60, 30] };
        let (mut canvas, scale) = (Canvas::new(60, 30, PAPER), Scale::of([0.0, 1.0].into_iter()));
        skin.draw(&mut canvas, (area, &window), &positions, &[0.0, 1.0], &scale);
        for (x, y) in (0..60).flat_map(|x| (0..30).map(move |y| (x, y))) {
            assert_eq!(canvas.at(x, y), scale.colour(if x < 30 { 0.0 } else { 1.0 }), "pixel {x}, {y}");
        }
        let page = skin.thinned(&positions, 1);
        assert_eq!((page.points, page.triangles.len()), (vec![0, 0, 0, 0, 1, 1, 1, 1], 4), "four corners of each cell");
    }

    #[test]
    fn points_in_space_are_discs_and_the_front_one_is_seen() {
        // Two points behind each other, seen by the viewer; the one in front is larger in y.
        let towards = [0.0, 0.0, 1.0];
        let [azimuth, elevation] = VIEW.map(f32::to_radians);
        let ahead =
            [azimuth.cos() * elevation.cos(), azimuth.sin() * elevation.cos(), elevation.sin()].map(|side| 2.0 * side);
        let corners = [towards, [0, 1, 2].map(|axis| towards[axis] + ahead[axis]), [3.0, 3.0, 0.0]].concat();
        let (positions, skin) = Skin::of(&corners, 3, &Drawn::default());
        assert!(skin.is_solid() && skin.thinned(&positions, 1).points == [0, 1, 2]);
        let (mut canvas, scale) = (Canvas::new(70, 70, PAPER), Scale::of([0.0, 1.0].into_iter()));
        let window = Window::around(std::slice::from_ref(&positions)).wider();
        skin.draw(&mut canvas, (AREA, &window), &positions, &[0.0, 1.0, 0.0], &scale);
        let [x, y] = window.pixel(AREA, positions[0]).map(|at| at as usize);
        assert_eq!(canvas.at(x, y), scale.colour(1.0), "the point in front hides the one behind it");
    }
}
