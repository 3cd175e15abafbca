//! Keys of experiment files: dotted names and merged layers. The error for an unknown key names the nearest known key, or
//! all keys of its table.

use crate::error::Refusal;
use toml::{Table, Value};

/// Keys that need not have a value.
const OPTIONAL: &[&str] = &["data.folder"];

/// Parses a file as a table; an error names the file `name`.
pub(super) fn parse(name: &str, text: &str) -> Result<Table, Refusal> {
    text.parse::<Table>().map_err(|error| {
        let line = error.span().map_or(1, |span| 1 + text[..span.start].matches('\n').count());
        Refusal::said(format!("experiment {name}, line {line}: {}", error.message().replace('\n', ", ")))
    })
}

/// An error message on one line, with plain words in place of Rust's type names.
pub(super) fn plain(message: &str) -> String {
    let words = [("usize", "a whole number"), ("u64", "a whole number"), ("f64", "a number"), ("PathBuf", "a path")];
    let message = message.trim().replace('\n', ", ");
    words
        .iter()
        .fold(message, |text, (kind, word)| text.replace(&format!("expected {kind}"), &format!("expected {word}")))
}

/// `a.b=value` as a table. A value that is not valid TOML becomes a string.
pub(crate) fn change(text: &str) -> Result<Table, Refusal> {
    let malformed = || Refusal::said(format!("--set {text}: expected key=value, for example train.epochs=50"));
    let (key, value) = text.split_once('=').ok_or_else(malformed)?;
    let (key, value) = (key.trim(), value.trim());
    if key.split('.').any(str::is_empty) {
        return Err(malformed());
    }
    let parsed = format!("value = {value}").parse::<Table>().ok().and_then(|mut table| table.remove("value"));
    let digits = value.strip_prefix(['-', '+']).unwrap_or(value);
    if parsed.is_none() && digits.parse::<f64>().is_ok() && digits.chars().all(|digit| digit.is_ascii_digit()) {
        let most = i64::MAX;
        return Err(Refusal::said(format!("{key}: expected a whole number, {most} at most, found {value}")));
    }
    let value = parsed.unwrap_or_else(|| Value::String(value.to_owned()));
    let nested = key.rsplit('.').fold(value, |inner, name| Value::Table(Table::from_iter([(name.to_owned(), inner)])));
    Ok(nested.as_table().cloned().unwrap_or_default())
}

/// Merges `layer` into `table`. Values of `layer` win; with `beneath`, values of `table` win.
pub(crate) fn merge(table: &mut Table, layer: Table, beneath: bool) {
    for (key, value) in layer {
        match (table.get_mut(&key), value) {
            (Some(Value::Table(under)), Value::Table(over)) => merge(under, over, beneath),
            (Some(_), _) if beneath => {}
            (_, value) => {
                table.insert(key, value);
            }
        }
    }
}

/// Removes every key whose value in `common` is equal.
pub(super) fn subtract(table: &mut Table, common: &Table) {
    table.retain(|key, value| match (value, common.get(key)) {
        (Value::Table(inner), Some(Value::Table(common))) => {
            subtract(inner, common);
            !inner.is_empty()
        }
        (value, same) => same != Some(value),
    });
}

/// The text at a path of keys.
pub(super) fn text<'a>(table: &'a Table, path: &[&str]) -> Option<&'a str> {
    let (last, tables) = path.split_last()?;
    let inner = tables.iter().try_fold(table, |table, key| table.get(*key)?.as_table())?;
    inner.get(*last)?.as_str()
}

/// The value of a dotted key as a change writes it: a text without its quotes.
pub(super) fn bare(table: &Table, key: &str) -> Option<String> {
    let mut path = key.split('.');
    let first = table.get(path.next()?)?;
    let value = path.try_fold(first, |value, name| value.as_table()?.get(name))?;
    Some(value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}

/// Whether there is a value at a path of keys.
pub(super) fn has(table: &Table, path: &[&str]) -> bool {
    let Some((last, tables)) = path.split_last() else { return false };
    let inner = tables.iter().try_fold(table, |table, key| table.get(*key)?.as_table());
    inner.is_some_and(|inner| inner.contains_key(*last))
}

/// The whole number at a path of keys.
pub(super) fn whole(table: &Table, path: &[&str]) -> Option<i64> {
    let (last, tables) = path.split_last()?;
    let inner = tables.iter().try_fold(table, |table, key| table.get(*key)?.as_table())?;
    inner.get(*last)?.as_integer()
}

/// All dotted keys whose value is not a table, or is an empty table.
pub(super) fn flatten(table: &Table) -> Vec<String> {
    let mut keys = Vec::new();
    for (key, value) in table {
        match value {
            Value::Table(inner) if !inner.is_empty() => {
                keys.extend(flatten(inner).into_iter().map(|rest| format!("{key}.{rest}")));
            }
            _ => keys.push(key.clone()),
        }
    }
    keys
}

/// True when a dotted key holds a table or is absent.
fn is_table(table: &Table, key: &str) -> bool {
    match key.split_once('.') {
        Some((first, rest)) => table.get(first).and_then(Value::as_table).is_none_or(|inner| is_table(inner, rest)),
        None => table.get(key).is_none_or(Value::is_table),
    }
}

/// Refuses the first key of `layer` that is not `known`, or that has a value where a table of keys belongs.
pub(super) fn check(source: &str, layer: &Table, known: &[String]) -> Result<(), Refusal> {
    for key in flatten(layer) {
        let within = known.iter().filter_map(|known| known.strip_prefix(&format!("{key}."))).collect::<Vec<_>>();
        if !within.is_empty() && !is_table(layer, &key) {
            let within = within.join(", ");
            return Err(Refusal::said(format!(
                "{source}: {key} is a table, expected a value for one of its keys: {within}"
            )));
        }
        // A table that is empty in the defaults, such as the settings of an unknown problem, takes any key.
        let open = |known: &str| key.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
        let table = || known.iter().any(|known| known.starts_with(&format!("{key}.")));
        if known.iter().any(|known| open(known)) || OPTIONAL.contains(&key.as_str()) || table() {
            continue;
        }
        let known: Vec<&str> = known.iter().map(String::as_str).chain(OPTIONAL.iter().copied()).collect();
        let near =
            || meant(&key, &known).map_or_else(|| siblings(&key, &known), |near| format!("did you mean {near}?"));
        let preset = ["quick", "best"].into_iter().find(|preset| key.split('.').next() == Some(preset));
        let hint = preset.map_or_else(near, |preset| {
            format!("presets are shipped with a benchmark: lamo train BENCHMARK --preset {preset} --print-config prints a file to change")
        });
        return Err(Refusal::said(format!("{source}: unknown key {key}; {hint}")));
    }
    Ok(())
}

/// The candidate nearest to a word, if it is near.
pub(super) fn nearest<'a>(word: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    known
        .map(|known| (edits(word, known), known))
        .min()
        .filter(|(edits, known)| is_near(*edits, word, known))
        .map(|(_, known)| known)
}

/// True when the number of edits is small enough for a typing error.
fn is_near(edits: usize, word: &str, known: &str) -> bool {
    edits <= 1 + word.len() / 4 && edits < word.len().min(known.len())
}

/// Table and last name of a dotted key.
fn parted(key: &str) -> (&str, &str) {
    key.rsplit_once('.').unwrap_or(("", key))
}

/// The known key that was likely meant. A near name in the same table comes first. Then come a near name where the table
/// is misspelt or left out, and the exact name in another table.
fn meant<'a>(key: &str, known: &[&'a str]) -> Option<&'a str> {
    let (table, name) = parted(key);
    let costs = known.iter().filter_map(|known| {
        let (place, other) = parted(known);
        let (far, off) = (edits(table, place), edits(name, other));
        let same = far == 0 || is_near(far, table, place);
        let slip = off == 0 || is_near(off, name, other);
        let likely = slip && (same || table.is_empty() || off == 0);
        likely.then_some((far > 0, off + if table.is_empty() { 0 } else { far }, *known))
    });
    costs.min().map(|(_, _, known)| known)
}

/// Lists the keys of the innermost existing table around an unknown key.
fn siblings(key: &str, known: &[&str]) -> String {
    let mut table = parted(key).0;
    let prefix = |table: &str| if table.is_empty() { String::new() } else { format!("{table}.") };
    while !table.is_empty() && !known.iter().any(|known| known.starts_with(&prefix(table))) {
        table = parted(table).0;
    }
    let within = known.iter().filter_map(|known| known.strip_prefix(&prefix(table)));
    let mut names: Vec<&str> = within.filter_map(|rest| rest.split('.').next()).collect();
    names.sort_unstable();
    names.dedup();
    let owner = if table.is_empty() { "an experiment" } else { table };
    format!("{owner} has {}", names.join(", "))
}

/// Levenshtein's distance: letters to insert, remove or replace.
fn edits(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, letter) in from.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, other) in to.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_reads_numbers_words_and_lists() {
        let value = |text: &str| change(text).unwrap()["a"].as_table().unwrap()["b"].clone();
        assert_eq!(value("a.b=3"), Value::Integer(3));
        assert_eq!(value("a.b = 1e-3"), Value::Float(1e-3));
        assert_eq!(value("a.b=relative-l2"), Value::String("relative-l2".into()));
        assert_eq!(value("a.b=[1, 2]"), Value::Array(vec![Value::Integer(1), Value::Integer(2)]));
        assert!(change("a.b").unwrap_err().to_string().contains("expected key=value"));
        assert!(change("a..b=1").is_err() && change("=1").is_err());
    }

    #[test]
    fn letters_are_counted() {
        for (from, to, expected) in [("", "abc", 3), ("epoch", "epochs", 1), ("rate", "rate", 0), ("width", "wdith", 2)]
        {
            assert_eq!((edits(from, to), edits(to, from)), (expected, expected), "{from} {to}");
        }
    }
}
