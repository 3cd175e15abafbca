//! The paper's propositions, run numerically: the order that is stated beside the one that is observed.

mod hold;
mod integral;
mod kernel;
mod patches;

/// How an observed number relates to the stated one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Relation {
    /// An order: it lies within a distance of the stated one.
    Order {
        /// The distance.
        within: f64,
    },
    /// A difference that is stated to vanish: it is rounding.
    AtMost,
    /// A difference between two formulas of the paper that exclude each other: it is not rounding.
    AtLeast,
}

/// One number of a proposition.
#[derive(Clone, Debug)]
pub struct Check {
    /// What was measured.
    pub what: String,
    /// The stated number.
    pub stated: f64,
    /// The measured number.
    pub observed: f64,
    /// How the two must relate.
    pub relation: Relation,
}

impl Check {
    /// Whether the observation agrees with the statement.
    pub fn holds(&self) -> bool {
        match self.relation {
            Relation::Order { within } => (self.observed - self.stated).abs() <= within,
            Relation::AtMost => self.observed <= self.stated,
            Relation::AtLeast => self.observed >= self.stated,
        }
    }

    fn order(what: impl Into<String>, stated: f64, observed: f64, within: f64) -> Check {
        Check { what: what.into(), stated, observed, relation: Relation::Order { within } }
    }

    fn vanishes(what: impl Into<String>, observed: f64, rounding: f64) -> Check {
        Check { what: what.into(), stated: rounding, observed, relation: Relation::AtMost }
    }

    fn differs(what: impl Into<String>, observed: f64, least: f64) -> Check {
        Check { what: what.into(), stated: least, observed, relation: Relation::AtLeast }
    }
}

/// A proposition with its numbers.
#[derive(Clone, Debug)]
pub struct Proposition {
    /// Its name.
    pub title: &'static str,
    /// What it says.
    pub statement: &'static str,
    /// What was measured.
    pub checks: Vec<Check>,
}

/// All propositions, computed now; it takes about a second.
pub fn propositions() -> Vec<Proposition> {
    vec![hold::proposition(), kernel::proposition(), integral::proposition(), patches::proposition()]
}

/// The order p of errors that shrink like hᵖ: the least-squares slope of ln error over ln h.
fn order(errors: &[(f64, f64)]) -> f64 {
    let count = errors.len() as f64;
    let mean = |part: fn(&(f64, f64)) -> f64| errors.iter().map(part).sum::<f64>() / count;
    let (x, y) = (mean(|pair| pair.0.ln()), mean(|pair| pair.1.ln()));
    let above: f64 = errors.iter().map(|(h, error)| (h.ln() - x) * (error.ln() - y)).sum();
    let below: f64 = errors.iter().map(|(h, _)| (h.ln() - x).powi(2)).sum();
    above / below
}

/// max|one − other| / max|other|
fn distance(one: &[f64], other: &[f64]) -> f64 {
    largest(one.iter().zip(other).map(|(one, other)| one - other)) / largest(other.iter().copied())
}

/// The largest absolute value; infinite where something is not a number.
fn largest(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(0.0, |most: f64, value| if value.is_nan() { f64::INFINITY } else { most.max(value.abs()) })
}

/// Numbers without a pattern, in (−1, 1).
fn wave(count: usize, pace: f64) -> Vec<f64> {
    (0..count).map(|i| (pace * i as f64 + (0.37 * i as f64).sin()).sin()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_proposition_holds() {
        for proposition in propositions() {
            assert!(!proposition.checks.is_empty(), "{}", proposition.title);
            for check in &proposition.checks {
                assert!(check.holds(), "{}: {check:?}", proposition.title);
            }
        }
    }

    #[test]
    fn a_wrong_order_and_a_difference_that_stays_do_not_hold() {
        let halves = |power: i32| (4..9).map(|k| (0.5f64.powi(k), 0.5f64.powi(k * power))).collect::<Vec<_>>();
        assert!((order(&halves(2)) - 2.0).abs() < 1e-12);
        assert!(!Check::order("", 1.0, order(&halves(2)), 0.1).holds());
        assert!(!Check::vanishes("", 1e-9, 1e-12).holds());
        assert!(!Check::differs("", 1e-9, 1e-2).holds());
    }
}
