//! Contact of a rigid die with the top of a block: points inside the die are moved to its surface along its normal.
//!
//! With nodes alone, a sharp die sinks in between them, so points on the edges between the nodes are checked, too. Most points
//! are far below the die: a table of lower bounds of its height sorts them out.

use std::ops::Range;

use crate::die::Die;
use crate::explicit::Motion;
use crate::hermite::Floor;

/// Parts into which contact points divide an edge.
const PARTS: usize = 4;

/// A die above a line of nodes.
pub(crate) struct Contact<'a> {
    die: &'a Die,
    /// First node of each edge; the next node is the second one.
    edges: Range<usize>,
    /// Greatest |second derivative| of the profile between its ends.
    bend: f64,
    floor: Floor,
}

impl<'a> Contact<'a> {
    /// The die above the edges between the nodes `first`, ..., `last`.
    pub(crate) fn new(die: &'a Die, first: usize, last: usize) -> Self {
        Self { die, edges: first..last, bend: die.profile.bend(), floor: die.profile.floor() }
    }

    /// Moves nodes and points of edges to the surface of the die if they would be inside.
    pub(crate) fn push_out(&self, motion: &mut Motion<'_>) {
        self.push_nodes(motion);
        // The deepest point is pushed first, so neither end of the block is preferred.
        let mut inside: Vec<(f64, [usize; 2], f64)> = Vec::new();
        let mut start = motion.next_position(self.edges.start);
        for node in self.edges.clone() {
            let end = motion.next_position(node + 1);
            if self.can_touch(start, end, motion.time) {
                for part in 1..PARTS {
                    let (nodes, share) = ([node, node + 1], part as f64 / PARTS as f64);
                    if let Some([x, y]) = self.way_out(motion, nodes, share) {
                        inside.push((x.hypot(y), nodes, share));
                    }
                }
            }
            start = end;
        }
        if !inside.is_empty() {
            inside.sort_by(|(one, ..), (other, ..)| other.total_cmp(one));
            inside.into_iter().for_each(|(_, nodes, share)| self.push_point(motion, nodes, share));
            self.push_nodes(motion);
        }
    }

    /// Whether the die is higher than `distance` above a point by its lower bounds alone.
    fn is_clear(&self, [x, y]: [f64; 2], time: f64, distance: f64) -> bool {
        self.floor.below(x) - self.die.speed * time - y > distance
    }

    /// Whether an edge between two points can be inside the die. Between the ends of the profile the gap is at least the
    /// smaller one of the points, less |second derivative| Δx² / 8.
    fn can_touch(&self, start: [f64; 2], end: [f64; 2], time: f64) -> bool {
        let width = end[0] - start[0];
        if !(self.die.profile.spans(start[0]) && self.die.profile.spans(end[0])) {
            return true;
        }
        let bound = 0.125 * self.bend * width * width;
        let clear = self.is_clear(start, time, bound) && self.is_clear(end, time, bound);
        !clear && self.die.gap(start, time).min(self.die.gap(end, time)) <= bound
    }

    fn push_nodes(&self, motion: &mut Motion<'_>) {
        for node in self.edges.start..=self.edges.end {
            if self.is_clear(motion.next_position(node), motion.time, 0.0) {
                continue;
            }
            match node == self.edges.end {
                false => self.push_point(motion, [node, node + 1], 0.0),
                true => self.push_point(motion, [node - 1, node], 1.0),
            }
        }
    }

    /// The distance from a point of an edge to the surface of the die, along its normal; `None` for a point outside.
    fn way_out(&self, motion: &Motion<'_>, nodes: [usize; 2], share: f64) -> Option<[f64; 2]> {
        let point = motion.next_point(nodes, share);
        let surface = self.die.projection(point, motion.time)?;
        Some([surface[0] - point[0], surface[1] - point[1]])
    }

    /// Moves a point of an edge to the surface of the die if it would be inside.
    fn push_point(&self, motion: &mut Motion<'_>, nodes: [usize; 2], share: f64) {
        if let Some(distance) = self.way_out(motion, nodes, share) {
            motion.push_point(nodes, share, distance, [0.0, -self.die.speed]);
        }
    }
}
