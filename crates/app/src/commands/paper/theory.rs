//! The propositions: observed orders beside stated ones.

use crate::text::short;
use lamo::paper::theory::{Check, Proposition, Relation, propositions};
use lamo::paper::{Fact, Facts};
use serde_json::{Value, json};

/// The stated number in words.
fn stated(check: &Check) -> String {
    match check.relation {
        Relation::Order { .. } => short(check.stated),
        Relation::AtMost if check.stated == 0.0 => "0".to_owned(),
        Relation::AtMost => format!("0 (at most {:e})", check.stated),
        Relation::AtLeast => "not 0".to_owned(),
    }
}

/// The observed number: orders with three decimals.
fn observed(check: &Check) -> String {
    match check.relation {
        Relation::Order { .. } => format!("{:.3}", check.observed),
        _ if check.observed == 0.0 => "0".to_owned(),
        Relation::AtMost => format!("{:.1e}", check.observed),
        Relation::AtLeast => short(check.observed),
    }
}

fn verdict(check: &Check) -> &'static str {
    if check.holds() { "holds" } else { "does not hold" }
}

/// For the terminal.
pub(super) fn text() -> String {
    let mut lines = Vec::new();
    for Proposition { title, statement, checks } in propositions() {
        lines.push(format!("{title}: {statement}"));
        let width = checks.iter().map(|check| check.what.chars().count()).max().unwrap_or(0);
        for check in &checks {
            let (observed, stated, verdict) = (observed(check), stated(check), verdict(check));
            lines.push(format!("  {:<width$}  observed {observed:>8}, stated {stated}: {verdict}", check.what));
        }
    }
    lines.join("\n")
}

/// As a table.
pub(super) fn facts() -> Facts {
    let mut rows = Vec::new();
    for Proposition { title, checks, .. } in propositions() {
        rows.push((title.to_owned(), vec![Fact::default(), Fact::default()]));
        for check in checks {
            let numbers = Fact { ours: observed(&check), published: stated(&check) };
            let verdict = Fact { ours: verdict(&check).to_owned(), published: String::new() };
            rows.push((format!("  {}", check.what), vec![numbers, verdict]));
        }
    }
    Facts { corner: "proposition", columns: vec!["observed, stated".to_owned(), String::new()], rows }
}

/// For scripts.
pub(super) fn json() -> Value {
    let check = |check: &Check| json!({ "what": check.what, "observed": check.observed, "stated": check.stated, "holds": check.holds() });
    let proposition = |proposition: &Proposition| {
        json!({ "title": proposition.title, "statement": proposition.statement,
                "checks": proposition.checks.iter().map(check).collect::<Vec<_>>() })
    };
    propositions().iter().map(proposition).collect()
}
