//! Which elements of a block are advanced how often: stiff ones in short steps, the others in long ones.
//!
//! A cycle has the length of the longest step. Elements of level l are advanced 2^l times in it. All elements next to a
//! node obey the stability limit of this node. Levels belong to groups of [`GROUP`] elements of a row.

use crate::quadrilateral::Run;

/// Consecutive elements of a row with the same level.
pub(crate) const GROUP: usize = 4;
/// The highest level.
const HIGHEST: u32 = 8;
/// Cost of a short step without elements (contact, nodes), in elements.
const OVERHEAD: f64 = 300.0;

/// The length of a cycle and the level of each group.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rates {
    /// The longest stable length of a cycle.
    pub(crate) cycle: f64,
    /// `[rows, groups]`
    levels: Vec<u32>,
    /// Columns of elements.
    columns: usize,
}

impl Rates {
    /// The cheapest cycle for nodes with the `limits` on their steps, `[rows + 1, columns + 1]`.
    pub(crate) fn new([columns, rows]: [usize; 2], limits: &[f64]) -> Self {
        let groups = columns.div_ceil(GROUP);
        let of_nodes = |row: usize, from: usize, to: usize| {
            let line = row * (columns + 1);
            limits[line + from..=line + to].iter().copied().fold(f64::INFINITY, f64::min)
        };
        let of_group = |row: usize, group: usize| {
            let (from, to) = (group * GROUP, ((group + 1) * GROUP).min(columns));
            of_nodes(row, from, to).min(of_nodes(row + 1, from, to))
        };
        let steps: Vec<f64> =
            (0..rows).flat_map(|row| (0..groups).map(move |group| [row, group])).map(|[r, g]| of_group(r, g)).collect();
        let (least, most) = steps.iter().fold((f64::INFINITY, 0.0_f64), |(l, m), &step| (l.min(step), m.max(step)));
        let cost = |cycle: f64| {
            let advanced: f64 = steps.iter().map(|&step| f64::from(1 << level(cycle, step))).sum();
            (advanced * GROUP as f64 + f64::from(1 << level(cycle, least)) * OVERHEAD) / cycle
        };
        let mut best = (cost(least), least);
        let mut cycle = most;
        while cycle > least {
            if level(cycle, least) <= HIGHEST && cost(cycle) < best.0 {
                best = (cost(cycle), cycle);
            }
            cycle *= 0.93;
        }
        Self { cycle: best.1, levels: steps.iter().map(|&step| level(best.1, step)).collect(), columns }
    }

    /// The highest level of a group.
    pub(crate) fn highest(&self) -> u32 {
        self.levels.iter().copied().max().unwrap_or(0)
    }

    /// The shortest step.
    #[cfg(test)]
    pub(crate) fn shortest(&self) -> f64 {
        self.cycle / f64::from(1 << self.highest())
    }

    /// The elements that have the level `level` here and the level `other_level` in `other`.
    pub(crate) fn runs(&self, level: u32, other: &Self, other_level: u32) -> Vec<Run> {
        let (groups, width) = (self.columns.div_ceil(GROUP), self.columns + 1);
        let mut runs: Vec<Run> = Vec::new();
        for (index, (&own, &others)) in self.levels.iter().zip(&other.levels).enumerate() {
            if (own, others) != (level, other_level) {
                continue;
            }
            let (row, first) = (index / groups, index % groups * GROUP);
            let end = (first + GROUP).min(self.columns);
            match runs.last_mut() {
                Some(run) if run.row == row && run.columns.end == first => run.columns.end = end,
                _ => runs.push(Run { row, columns: first..end, nodes: row * width..(row + 2) * width }),
            }
        }
        runs
    }
}

/// The number of halvings after which a cycle is at most `step`.
fn level(cycle: f64, step: f64) -> u32 {
    let mut level = 0;
    while cycle > step * f64::from(1 << level) * (1.0 + 1e-12) && level < 30 {
        level += 1;
    }
    level
}

#[cfg(test)]
mod tests {
    use super::*;

    const COUNTS: [usize; 2] = [10, 3]; // two groups of four and one of two

    /// Limits of 1 at all nodes but these.
    fn limits(changes: &[(usize, f64)]) -> Vec<f64> {
        let mut limits = vec![1.0; (COUNTS[0] + 1) * (COUNTS[1] + 1)];
        changes.iter().for_each(|&(node, limit)| limits[node] = limit);
        limits
    }

    /// The step of each element, from the runs of all levels.
    fn steps(rates: &Rates) -> Vec<f64> {
        let mut steps = vec![0.0; COUNTS[0] * COUNTS[1]];
        for level in 0..=rates.highest() {
            for run in rates.runs(level, rates, level) {
                for column in run.columns {
                    let step = &mut steps[run.row * COUNTS[0] + column];
                    assert_eq!(*step, 0.0, "row {}, column {column} is in two runs", run.row);
                    *step = rates.cycle / f64::from(1 << level);
                }
            }
        }
        steps
    }

    #[test]
    fn equal_limits_give_one_level() {
        let rates = Rates::new(COUNTS, &limits(&[]));
        assert_eq!((rates.cycle, rates.highest(), rates.shortest()), (1.0, 0, 1.0));
        let runs = rates.runs(0, &rates, 0);
        assert_eq!(runs.iter().map(|run| run.columns.clone()).collect::<Vec<_>>(), [0..10, 0..10, 0..10]);
    }

    #[test]
    fn no_element_steps_beyond_the_limits_of_its_nodes() {
        let limits = limits(&[(5, 0.11), (25, 0.4), (43, 0.7), (38, 1.9)]);
        let rates = Rates::new(COUNTS, &limits);
        assert!(rates.highest() >= 3, "highest level {}", rates.highest());
        for (element, step) in steps(&rates).into_iter().enumerate() {
            let first = element + element / COUNTS[0];
            let nodes = [first, first + 1, first + COUNTS[0] + 1, first + COUNTS[0] + 2];
            let limit = nodes.iter().map(|&node| limits[node]).fold(f64::INFINITY, f64::min);
            assert!(step > 0.0 && step <= limit * (1.0 + 1e-9), "element {element}: step {step}, limit {limit}");
        }
    }

    #[test]
    fn elements_that_change_their_level_are_found_once() {
        let [old, new] = [limits(&[(5, 0.1)]), limits(&[(9, 0.1)])].map(|limits| Rates::new(COUNTS, &limits));
        let levels = |rates: &Rates| 0..=rates.highest();
        let count = |runs: Vec<Run>| runs.into_iter().map(|run| run.columns.len()).sum::<usize>();
        let pairs = levels(&old).flat_map(|one| levels(&new).map(move |other| [one, other]));
        let elements: usize = pairs.map(|[one, other]| count(old.runs(one, &new, other))).sum();
        assert_eq!(elements, COUNTS[0] * COUNTS[1]);
    }

    #[test]
    fn limits_too_different_for_the_highest_level_give_short_steps_for_all() {
        let rates = Rates::new(COUNTS, &limits(&[(5, 1e-6)]));
        assert!(rates.highest() <= HIGHEST && rates.shortest() <= 1e-6, "{} {}", rates.highest(), rates.shortest());
    }
}
