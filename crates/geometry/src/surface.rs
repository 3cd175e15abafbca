//! A surface of triangles: the distance of a point to it, the side on which a point lies, and normals at its points.
//!
//! The nearest point is found with a tree of boxes. The side follows from the normal at the nearest point, which on an edge is
//! the sum of the normals of its two triangles and at a corner the sum of the normals weighted by the angles (Bærentzen
//! and Aanæs 2005); on a closed surface this sign is exact. The twins `distance_by_all` and `winding` look at every triangle.

use std::collections::HashMap;
use std::f64::consts::PI;

type Point = [f64; 3];

fn minus(a: Point, b: Point) -> Point {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

fn plus(a: Point, b: Point) -> Point {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

fn scaled(a: Point, factor: f64) -> Point {
    a.map(|number| number * factor)
}

fn dot(a: Point, b: Point) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn cross(a: Point, b: Point) -> Point {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

fn unit(a: Point) -> Point {
    let length = dot(a, a).sqrt();
    if length > 0.0 { scaled(a, 1.0 / length) } else { a }
}

/// The part of a triangle on which its nearest point lies: a corner, the edge from a corner to the next one, or the inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Corner(usize),
    Edge(usize),
    Inside,
}

/// The nearest point of the segment from `a` to `b`: where between 0 and 1 it lies, and its place.
fn on_segment(point: Point, a: Point, b: Point) -> (f64, Point) {
    let along = minus(b, a);
    let length = dot(along, along);
    let place = if length > 0.0 { (dot(minus(point, a), along) / length).clamp(0.0, 1.0) } else { 0.0 };
    (place, plus(a, scaled(along, place)))
}

/// The nearest point of a triangle, which may be a segment or a point, and the part it lies on.
fn on_triangle(point: Point, corners: [Point; 3]) -> (Point, Part) {
    let [a, b, c] = corners;
    let normal = cross(minus(b, a), minus(c, a));
    let area = dot(normal, normal);
    if area > 0.0 {
        // Weights of the corners of the foot of the perpendicular.
        let weight = |p: Point, q: Point| dot(cross(minus(p, point), minus(q, point)), normal) / area;
        let weights = [weight(b, c), weight(c, a), weight(a, b)];
        if weights.iter().all(|&weight| weight > 0.0) {
            let foot = minus(point, scaled(normal, dot(minus(point, a), normal) / area));
            return (foot, Part::Inside);
        }
    }
    let mut nearest = (f64::INFINITY, a, Part::Corner(0));
    for edge in 0..3 {
        let next = (edge + 1) % 3;
        let (place, foot) = on_segment(point, corners[edge], corners[next]);
        let away = minus(point, foot);
        let part = match place {
            0.0 => Part::Corner(edge),
            1.0 => Part::Corner(next),
            _ => Part::Edge(edge),
        };
        if dot(away, away) < nearest.0 {
            nearest = (dot(away, away), foot, part);
        }
    }
    (nearest.1, nearest.2)
}

/// A box of the tree with what is inside: two more boxes, or a few triangles.
struct Node {
    low: Point,
    high: Point,
    /// Triangles of a leaf by their places in `order`; else the two boxes by their numbers.
    first: usize,
    second: usize,
    is_leaf: bool,
}

/// Triangles of a leaf at most.
const LEAF: usize = 4;

/// A surface of triangles.
pub struct Surface {
    points: Vec<Point>,
    triangles: Vec<[u32; 3]>,
    order: Vec<usize>,
    nodes: Vec<Node>,
}

impl Surface {
    /// A surface from `[points, 3]` finite coordinates and triangles of their numbers; a triangle with two equal corners is a
    /// segment.
    ///
    /// # Panics
    /// If a triangle names a point that does not exist.
    pub fn new(positions: &[f64], triangles: Vec<[u32; 3]>) -> Surface {
        let points: Vec<Point> = positions.chunks_exact(3).map(|place| [place[0], place[1], place[2]]).collect();
        let known = triangles.iter().flatten().all(|&corner| (corner as usize) < points.len());
        assert!(known, "corners of triangles are points of the surface");
        let order = (0..triangles.len()).collect();
        let mut surface = Surface { points, triangles, order, nodes: Vec::new() };
        if !surface.triangles.is_empty() {
            surface.grow(0, surface.triangles.len());
        }
        surface
    }

    /// Whether there are no triangles.
    pub fn is_empty(&self) -> bool {
        self.triangles.is_empty()
    }

    fn corners(&self, triangle: usize) -> [Point; 3] {
        self.triangles[triangle].map(|corner| self.points[corner as usize])
    }

    /// Makes the box of `order[from..to]`, and the boxes inside; its number.
    fn grow(&mut self, from: usize, to: usize) -> usize {
        let (mut low, mut high) = ([f64::INFINITY; 3], [f64::NEG_INFINITY; 3]);
        for place in from..to {
            for corner in self.corners(self.order[place]) {
                for axis in 0..3 {
                    low[axis] = low[axis].min(corner[axis]);
                    high[axis] = high[axis].max(corner[axis]);
                }
            }
        }
        let number = self.nodes.len();
        self.nodes.push(Node { low, high, first: from, second: to, is_leaf: true });
        if to - from <= LEAF {
            return number;
        }
        let size = minus(high, low);
        let axis = (0..3).max_by(|&a, &b| size[a].total_cmp(&size[b])).unwrap_or(0);
        let (points, triangles) = (&self.points, &self.triangles);
        let middle = |triangle: &usize| -> f64 {
            triangles[*triangle].iter().map(|&corner| points[corner as usize][axis]).sum()
        };
        let half = (to - from) / 2;
        self.order[from..to].select_nth_unstable_by(half, |a, b| middle(a).total_cmp(&middle(b)));
        let first = self.grow(from, from + half);
        let second = self.grow(from + half, to);
        self.nodes[number] = Node { low, high, first, second, is_leaf: false };
        number
    }

    /// The nearest triangle: distance squared, its number, its nearest point, and the part this lies on.
    fn nearest(&self, point: Point) -> Option<(f64, usize, Point, Part)> {
        let mut best: Option<(f64, usize, Point, Part)> = None;
        let far = |node: &Node| -> f64 {
            (0..3).map(|axis| (node.low[axis] - point[axis]).max(point[axis] - node.high[axis]).max(0.0).powi(2)).sum()
        };
        let mut open = vec![(0.0, 0)];
        while let Some((away, number)) = open.pop() {
            let Some(node) = self.nodes.get(number) else { break };
            if best.is_some_and(|(least, ..)| away > least) {
                continue;
            }
            if !node.is_leaf {
                let mut inner = [node.first, node.second].map(|number| (far(&self.nodes[number]), number));
                if inner[0].0 < inner[1].0 {
                    inner.swap(0, 1); // the nearer box is looked at first
                }
                open.extend(inner);
                continue;
            }
            for &triangle in &self.order[node.first..node.second] {
                let (foot, part) = on_triangle(point, self.corners(triangle));
                let away = minus(point, foot);
                if best.is_none_or(|(least, ..)| dot(away, away) < least) {
                    best = Some((dot(away, away), triangle, foot, part));
                }
            }
        }
        best
    }

    /// The distance of a point; infinite where there are no triangles.
    pub fn distance(&self, point: [f64; 3]) -> f64 {
        self.nearest(point).map_or(f64::INFINITY, |(squared, ..)| squared.sqrt())
    }

    /// The same, from every triangle.
    pub fn distance_by_all(&self, point: [f64; 3]) -> f64 {
        let squared = (0..self.triangles.len()).map(|triangle| {
            let away = minus(point, on_triangle(point, self.corners(triangle)).0);
            dot(away, away)
        });
        squared.fold(f64::INFINITY, f64::min).sqrt()
    }

    /// How often the surface winds around a point: 1 inside a closed surface whose normals look outside, 0 outside. The sum
    /// of the solid angles of all triangles (Van Oosterom and Strackee 1983), divided by 4π.
    pub fn winding(&self, point: [f64; 3]) -> f64 {
        let angle = |triangle: usize| {
            let [a, b, c] = self.corners(triangle).map(|corner| minus(corner, point));
            let [la, lb, lc] = [a, b, c].map(|side| dot(side, side).sqrt());
            let below = la * lb * lc + dot(a, b) * lc + dot(b, c) * la + dot(c, a) * lb;
            2.0 * dot(a, cross(b, c)).atan2(below)
        };
        (0..self.triangles.len()).map(angle).sum::<f64>() / (4.0 * PI)
    }

    /// How many edges do not join exactly two triangles that turn the same way; 0 for a closed surface.
    pub fn open_edges(&self) -> usize {
        let mut uses: HashMap<[u32; 2], [usize; 2]> = HashMap::new();
        for triangle in &self.triangles {
            for (from, to) in edges(triangle) {
                uses.entry([from.min(to), from.max(to)]).or_default()[usize::from(from < to)] += 1;
            }
        }
        uses.values().filter(|&&uses| uses != [1, 1]).count()
    }

    /// The volume inside a closed surface, negative where its normals look inside: ∑ a · (b × c) / 6 over the triangles (a, b, c).
    pub fn volume(&self) -> f64 {
        let Some(&middle) = self.points.first() else { return 0.0 };
        let part = |triangle: usize| {
            let [a, b, c] = self.corners(triangle).map(|corner| minus(corner, middle));
            dot(a, cross(b, c)) / 6.0
        };
        (0..self.triangles.len()).map(part).sum()
    }

    /// The sides of the surface, for a closed surface whose normals all look outside, or all inside.
    pub fn sides(&self) -> Sides<'_> {
        let face = |triangle: usize| {
            let [a, b, c] = self.corners(triangle);
            unit(cross(minus(b, a), minus(c, a)))
        };
        let faces: Vec<Point> = (0..self.triangles.len()).map(face).collect();
        let mut of_edges: HashMap<[u32; 2], Point> = HashMap::new();
        for (triangle, normal) in self.triangles.iter().zip(&faces) {
            for (from, to) in edges(triangle) {
                let sum = of_edges.entry([from.min(to), from.max(to)]).or_insert([0.0; 3]);
                *sum = plus(*sum, *normal);
            }
        }
        Sides { surface: self, corners: self.normals(), edges: of_edges, faces, turned: self.volume() < 0.0 }
    }

    /// `[points, 3]`: at each point the sum of the normals of its triangles weighted by their angles, of length 1; zero at
    /// points without triangles.
    pub fn normals(&self) -> Vec<[f64; 3]> {
        let mut normals = vec![[0.0; 3]; self.points.len()];
        for triangle in 0..self.triangles.len() {
            let corners = self.corners(triangle);
            let normal = unit(cross(minus(corners[1], corners[0]), minus(corners[2], corners[0])));
            for place in 0..3 {
                let to = |other: usize| unit(minus(corners[(place + other) % 3], corners[place]));
                let angle = dot(to(1), to(2)).clamp(-1.0, 1.0).acos();
                let sum = &mut normals[self.triangles[triangle][place] as usize];
                *sum = plus(*sum, scaled(normal, angle));
            }
        }
        normals.into_iter().map(unit).collect()
    }
}

fn edges(triangle: &[u32; 3]) -> [(u32, u32); 3] {
    [0, 1, 2].map(|place| (triangle[place], triangle[(place + 1) % 3]))
}

/// Normals of triangles, edges and corners, which tell inside from outside.
pub struct Sides<'a> {
    surface: &'a Surface,
    corners: Vec<Point>,
    edges: HashMap<[u32; 2], Point>,
    faces: Vec<Point>,
    /// The normals look inside.
    turned: bool,
}

impl Sides<'_> {
    /// The distance of a point, negative inside.
    pub fn signed_distance(&self, point: [f64; 3]) -> f64 {
        let Some((squared, triangle, foot, part)) = self.surface.nearest(point) else { return f64::INFINITY };
        let corners = self.surface.triangles[triangle];
        let normal = match part {
            Part::Inside => self.faces[triangle],
            Part::Corner(place) => self.corners[corners[place] as usize],
            Part::Edge(place) => {
                let (from, to) = edges(&corners)[place];
                self.edges.get(&[from.min(to), from.max(to)]).copied().unwrap_or_default()
            }
        };
        let distance = squared.sqrt();
        let behind = dot(minus(point, foot), normal);
        if (if self.turned { -behind } else { behind }) < 0.0 { -distance } else { distance }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers between 0 and 1 that look random.
    fn numbers(count: usize, mut state: u64) -> Vec<f64> {
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1_u64 << 53) as f64
        };
        (0..count).map(|_| next()).collect()
    }

    /// A box from 0 to 1, 2 and 3.
    fn cuboid() -> Surface {
        let corner = |number: usize| [number & 1, number >> 1 & 1, number >> 2].map(|side| side as f64);
        let positions = (0..8).flat_map(|number| {
            let [x, y, z] = corner(number);
            [x, 2.0 * y, 3.0 * z]
        });
        let squares = [[0, 2, 3, 1], [4, 5, 7, 6], [0, 1, 5, 4], [2, 6, 7, 3], [0, 4, 6, 2], [1, 3, 7, 5]];
        let halves = squares.iter().flat_map(|&[a, b, c, d]| [[a, b, c], [a, c, d]]);
        Surface::new(&positions.collect::<Vec<_>>(), halves.collect())
    }

    #[test]
    fn the_distance_to_a_box_is_its_formula_outside_and_inside() {
        let cuboid = cuboid();
        let sides = cuboid.sides();
        assert_eq!(cuboid.open_edges(), 0);
        for place in numbers(3 * 400, 1).chunks_exact(3) {
            let point = [3.0 * place[0] - 1.0, 4.0 * place[1] - 1.0, 5.0 * place[2] - 1.0];
            let beyond = [0, 1, 2].map(|axis| (point[axis] - 0.5 * (axis + 1) as f64).abs() - 0.5 * (axis + 1) as f64);
            let outside = beyond.iter().map(|beyond| beyond.max(0.0).powi(2)).sum::<f64>().sqrt();
            let exact = if outside > 0.0 { outside } else { beyond.iter().copied().fold(f64::NEG_INFINITY, f64::max) };
            let found = sides.signed_distance(point);
            assert!((found - exact).abs() < 1e-14 * 8.0, "{point:?}: {found} and {exact}");
            assert_eq!(found.abs(), cuboid.distance(point));
            assert_eq!(cuboid.winding(point) > 0.5, exact < 0.0, "{point:?}");
        }
    }

    #[test]
    fn the_sign_is_that_of_the_inside_whichever_way_the_normals_look() {
        let (outward, mut inward) = (cuboid(), cuboid());
        inward.triangles.iter_mut().for_each(|triangle| triangle.swap(1, 2));
        assert!((outward.volume() - 6.0).abs() < 1e-14 && (inward.volume() + 6.0).abs() < 1e-14);
        let (one, other) = (outward.sides(), inward.sides());
        for place in numbers(3 * 200, 6).chunks_exact(3) {
            let point = [3.0 * place[0] - 1.0, 4.0 * place[1] - 1.0, 5.0 * place[2] - 1.0];
            assert_eq!(other.signed_distance(point), one.signed_distance(point), "{point:?}");
        }
    }

    #[test]
    fn the_tree_finds_the_distance_that_all_triangles_give() {
        let positions = numbers(3 * 200, 2);
        let corner = |number: &f64| (number * 200.0) as u32;
        let mut triangles: Vec<[u32; 3]> = numbers(3 * 500, 3)
            .chunks_exact(3)
            .map(|some| [corner(&some[0]), corner(&some[1]), corner(&some[2])])
            .collect();
        triangles.push([0, 1, 1]); // a segment
        triangles.push([2, 2, 2]); // a point
        let surface = Surface::new(&positions, triangles);
        for place in numbers(3 * 300, 4).chunks_exact(3) {
            let point = [2.0 * place[0] - 0.5, 2.0 * place[1] - 0.5, 2.0 * place[2] - 0.5];
            assert_eq!(surface.distance(point), surface.distance_by_all(point), "{point:?}");
        }
        assert_eq!(Surface::new(&[], Vec::new()).distance([0.0; 3]), f64::INFINITY);
        let segment = Surface::new(&[0.0, 0.0, 0.0, 2.0, 0.0, 0.0], vec![[0, 1, 1]]);
        assert_eq!(segment.distance([1.0, 3.0, 4.0]), 5.0);
        assert_eq!(segment.distance([-3.0, 4.0, 0.0]), 5.0);
    }

    #[test]
    fn signs_near_edges_and_corners_agree_with_the_winding_number() {
        // A tetrahedron with a sharp tip.
        let positions = [[0.0, 0.0, 0.0], [1.0, 0.0, 0.1], [0.0, 1.0, 0.2], [0.1, 0.1, 3.0]];
        let triangles = vec![[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]];
        let surface = Surface::new(positions.as_flattened(), triangles);
        assert_eq!(surface.open_edges(), 0);
        let sides = surface.sides();
        for place in numbers(3 * 500, 5).chunks_exact(3) {
            let point = [1.6 * place[0] - 0.3, 1.6 * place[1] - 0.3, 4.0 * place[2] - 0.5];
            assert_eq!(sides.signed_distance(point) < 0.0, surface.winding(point) > 0.5, "{point:?}");
        }
        assert_eq!(Surface::new(positions.as_flattened(), vec![[0, 2, 1]]).open_edges(), 3);
    }

    #[test]
    fn normals_of_a_box_point_away_from_its_middle() {
        let normals = cuboid().normals();
        for (number, normal) in normals.iter().enumerate() {
            let sign = |bit: usize| if number >> bit & 1 == 1 { 1.0 } else { -1.0 };
            for axis in 0..3 {
                assert!((normal[axis] - sign(axis) / 3.0_f64.sqrt()).abs() < 1e-15 * 4.0, "{number}: {normal:?}");
            }
        }
    }
}
