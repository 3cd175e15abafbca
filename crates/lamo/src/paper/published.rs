//! The numbers that the paper prints, from `published.toml`. A path names one: `main.darcy.lamo` is LaMO's error on Darcy flow in
//! Table 1.

use std::sync::LazyLock;
use toml::{Table, Value as Toml};

const TEXT: &str = include_str!("published.toml");

static TABLE: LazyLock<Table> = LazyLock::new(|| TEXT.parse().expect("published.toml is a table"));

/// A published number with the half widths of its band or deviation; zero where the paper prints none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Value {
    /// The number.
    pub value: f64,
    /// The band above it.
    pub plus: f64,
    /// The band below it.
    pub minus: f64,
}

impl Value {
    /// A number without a band.
    pub fn plain(value: f64) -> Value {
        Value { value, plus: 0.0, minus: 0.0 }
    }
}

/// A place where the paper contradicts itself or the released code.
#[derive(Clone, Debug)]
pub struct Contradiction {
    /// Its name.
    pub id: String,
    /// Where one statement stands.
    pub here: String,
    /// Where the other stands.
    pub there: String,
    /// What differs.
    pub what: String,
}

fn find(path: &str) -> Option<&'static Toml> {
    let mut parts = path.split('.');
    let mut value = TABLE.get(parts.next()?)?;
    for part in parts {
        value = value.get(part)?;
    }
    Some(value)
}

fn float(value: &Toml) -> Option<f64> {
    value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64))
}

/// The number at a path; `None` where the paper prints none.
pub fn number(path: &str) -> Option<f64> {
    find(path).and_then(float)
}

/// The text at a path.
pub fn text(path: &str) -> Option<&'static str> {
    find(path).and_then(Toml::as_str)
}

/// The list of numbers at a path, or an empty list if nothing stands at the path.
pub fn numbers(path: &str) -> Vec<f64> {
    find(path).and_then(Toml::as_array).map(|list| list.iter().filter_map(float).collect()).unwrap_or_default()
}

/// `{ mean, std }` at a path.
pub fn spread(path: &str) -> Option<Value> {
    let [mean, deviation] = ["mean", "std"].map(|key| number(&format!("{path}.{key}")));
    mean.map(|value| Value { value, plus: deviation.unwrap_or(0.0), minus: deviation.unwrap_or(0.0) })
}

/// The curve of a model in a table, with its band, over the axis of that name.
pub fn curve(table: &str, model: &str, axis: &str) -> Vec<(f64, Value)> {
    let own = numbers(&format!("{table}.{model}_{axis}"));
    let axis = if own.is_empty() { numbers(&format!("{table}.{axis}")) } else { own };
    let [plus, minus] = ["plus", "minus"].map(|side| numbers(&format!("{table}.{model}_{side}")));
    let half = |list: &[f64], place: usize| list.get(place).copied().unwrap_or(0.0);
    let values = numbers(&format!("{table}.{model}")).into_iter().enumerate();
    axis.into_iter()
        .zip(values)
        .map(|(x, (place, value))| (x, Value { value, plus: half(&plus, place), minus: half(&minus, place) }))
        .collect()
}

/// Table 2: the error of `tokens` tokens, `states` states and an expansion of `expand` on Darcy flow.
pub fn darcy_ablation(tokens: usize, states: usize, expand: usize) -> Option<f64> {
    let rows = find("ablation.tokens_states_expand")?.as_array()?;
    let is = |row: &Toml, key: &str, wanted: usize| row.get(key).and_then(Toml::as_integer) == Some(wanted as i64);
    let row =
        rows.iter().find(|row| is(row, "tokens", tokens) && is(row, "states", states) && is(row, "expand", expand));
    row?.get("lamo").and_then(float)
}

/// Models of Table 1 by family, under the names of the file.
pub fn family(name: &str) -> Vec<&'static str> {
    let list = find(&format!("names.families.{name}")).and_then(Toml::as_array);
    list.map(|list| list.iter().filter_map(Toml::as_str).collect()).unwrap_or_default()
}

/// Every contradiction.
pub fn contradictions() -> Vec<Contradiction> {
    let word = |row: &Toml, key: &str| row.get(key).and_then(Toml::as_str).unwrap_or_default().to_owned();
    let rows = find("contradiction").and_then(Toml::as_array).map(Vec::as_slice).unwrap_or_default();
    let read = |row: &Toml| Contradiction {
        id: word(row, "id"),
        here: word(row, "here"),
        there: word(row, "there"),
        what: word(row, "what"),
    };
    rows.iter().map(read).collect()
}

/// The numbers that the file lists for its artifacts, and the count that was compared with the paper's source.
pub fn counts() -> (usize, usize) {
    let artifacts = find("artifact").and_then(Toml::as_array).map(Vec::as_slice).unwrap_or_default();
    let listed: i64 = artifacts.iter().filter_map(|row| row.get("numbers")?.as_integer()).sum();
    (listed as usize, number("check.published_values").unwrap_or(0.0) as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_bands_and_missing_cells_are_found() {
        assert_eq!(number("main.darcy.lamo"), Some(0.0039));
        assert_eq!(number("main.elasticity.htnet"), None, "the paper prints a slash");
        let depth = curve("depth.darcy", "transolver", "layers");
        assert_eq!(depth[3], (16.0, Value { value: 0.0057, plus: 0.0002, minus: 0.00025 }));
        assert_eq!(curve("depth.navier_stokes", "lamo", "layers")[0], (2.0, Value::plain(0.1038)));
        assert_eq!(spread("std.pipe.lamo"), Some(Value { value: 0.0038, plus: 0.00023, minus: 0.00023 }));
        assert_eq!(darcy_ablation(484, 64, 1), Some(0.0056));
        assert_eq!(contradictions().len(), 41);
    }
}
