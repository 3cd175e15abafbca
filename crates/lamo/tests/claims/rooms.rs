//! The rooms of the library keep their order, and the rules that the code states about itself hold.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// The rooms from bottom to top; those of one row may use each other.
const ROOMS: &[&[&str]] = &[
    &["error", "files", "random"],
    &["task"],
    &["network"],
    &["data"],
    &["experiment"],
    &["run"],
    &["training"],
    &["inference"],
    &["workflow"],
    &["paper"],
];

/// The folders inside `data` from bottom to top.
const INSIDE_DATA: &[&[&str]] =
    &[&["formats", "mesh", "storage"], &["state_dict", "samples"], &["dataset"], &["import"], &["make"]];

pub(crate) fn workspace() -> PathBuf {
    Path::new(&std::env::var("CARGO_MANIFEST_DIR").unwrap()).join("../..").canonicalize().unwrap()
}

/// All files below a folder with one of the endings.
fn files(folder: &Path, endings: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
        if entry.is_dir() {
            found.extend(files(&entry, endings));
        } else if entry.extension().is_some_and(|ending| endings.iter().any(|known| ending == *known)) {
            found.push(entry);
        }
    }
    found.sort();
    found
}

/// A source file of the library without comments and tests; lines keep their numbers.
struct Source {
    /// From `src` on.
    name: String,
    /// `["data", "dataset", "folder"]` for `data/dataset/folder.rs`.
    module: Vec<String>,
    lines: Vec<String>,
}

impl Source {
    fn read(root: &Path, path: &Path) -> Source {
        let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
        let mut module: Vec<String> = name.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
        module.pop_if(|last| last == "mod" || last == "lib");
        let text = fs::read_to_string(path).unwrap();
        Source { name, module, lines: without_tests(text.lines().map(without_comment).collect()) }
    }

    fn complaint(&self, line: usize, about: &str) -> String {
        format!("crates/lamo/src/{}:{}: {about}", self.name, line + 1)
    }

    /// Every path that begins with `crate` or `super`, from the root of the library, with its line.
    fn paths(&self) -> Vec<(usize, Vec<String>)> {
        let text = self.lines.join("\n");
        let mut found = Vec::new();
        for start in ["crate::", "super::"] {
            for (place, _) in text.match_indices(start) {
                let before = text[..place].chars().next_back();
                if before.is_some_and(|letter| letter.is_alphanumeric() || letter == '_' || letter == ':') {
                    continue; // the middle of another path
                }
                let line = text[..place].matches('\n').count();
                let mut paths = Vec::new();
                branches(&text[place..], &mut Vec::new(), &mut paths);
                found.extend(paths.into_iter().map(|path| (line, self.resolved(line, &path))));
            }
        }
        found
    }

    /// A path that begins with `crate` or with some `super`, from the root of the library.
    fn resolved(&self, line: usize, path: &[String]) -> Vec<String> {
        if path[0] == "crate" {
            return path[1..].to_vec();
        }
        let ups = path.iter().take_while(|part| *part == "super").count();
        let here: Vec<String> = self.module.iter().chain(&self.inner_modules(line)).cloned().collect();
        here[..here.len().saturating_sub(ups)].iter().chain(&path[ups..]).cloned().collect()
    }

    /// Modules inside the file that a line lies in, by the indentation of their first lines.
    fn inner_modules(&self, line: usize) -> Vec<String> {
        let indentation = |text: &str| text.len() - text.trim_start().len();
        let mut inner: Vec<(usize, String)> = Vec::new();
        for text in &self.lines[..=line] {
            inner.retain(|(depth, _)| *text != format!("{}}}", " ".repeat(*depth)));
            if let Some((_, name)) = text.strip_suffix(" {").and_then(|head| head.split_once("mod "))
                && text.trim_start().trim_start_matches("pub(crate) ").starts_with("mod ")
            {
                inner.push((indentation(text), name.to_owned()));
            }
        }
        inner.into_iter().map(|(_, name)| name).collect()
    }
}

fn without_comment(line: &str) -> String {
    let quotes = |before: &str| before.matches('"').count() - before.matches("\\\"").count();
    let comment = line.match_indices("//").find(|(place, _)| quotes(&line[..*place]).is_multiple_of(2));
    comment.map_or(line, |(place, _)| &line[..place]).to_owned()
}

/// Empties what `#[cfg(test)]` stands before: up to its last line, which in formatted code is a brace as far in as the first.
fn without_tests(mut lines: Vec<String>) -> Vec<String> {
    let mut number = 0;
    while number < lines.len() {
        if lines[number].trim() != "#[cfg(test)]" {
            number += 1;
            continue;
        }
        let end = format!("{}}}", lines[number].split('#').next().unwrap_or_default());
        let first = number;
        while !(lines[number].ends_with(';') && number == first + 1 || lines[number] == end) {
            number += 1;
        }
        lines[first..=number].iter_mut().for_each(String::clear);
    }
    lines
}

/// The paths of a `use` tree, or the one path of an expression, at the start of a text; the rest of the text.
fn branches<'t>(text: &'t str, before: &mut Vec<String>, found: &mut Vec<Vec<String>>) -> &'t str {
    let text = text.trim_start();
    if let Some(mut rest) = text.strip_prefix('{') {
        loop {
            rest = branches(rest, before, found).trim_start();
            rest = rest.strip_prefix(',').unwrap_or(rest).trim_start();
            if let Some(rest) = rest.strip_prefix('}') {
                return rest;
            }
        }
    }
    let end = text.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(text.len());
    let (name, rest) = text.split_at(end);
    before.push(name.to_owned());
    let rest = match rest.strip_prefix("::") {
        Some(rest) if rest.starts_with(|letter: char| letter.is_alphabetic() || letter == '_' || letter == '{') => {
            branches(rest, before, found)
        }
        _ => {
            found.push(before.clone());
            rest.strip_prefix(" as ").map_or(rest, |renamed| renamed.trim_start_matches(char::is_alphanumeric))
        }
    };
    before.pop();
    rest
}

/// The library's code outside tests, file by file.
fn library() -> Vec<Source> {
    let root = workspace().join("crates/lamo/src");
    let only_tests = |path: &PathBuf| path.ends_with("tests.rs") || path.ends_with("files/scratch.rs");
    let found = files(&root, &["rs"]).into_iter().filter(|path| !only_tests(path));
    found.map(|path| Source::read(&root, &path)).collect()
}

/// What the facade or the front of a room shows under names of its own: name → the part it comes from.
fn shown(sources: &[Source], front: &str) -> BTreeMap<String, String> {
    let source = sources.iter().find(|source| source.name == front).unwrap();
    let text = source.lines.join("\n");
    let mut names = BTreeMap::new();
    for (place, _) in text.match_indices("use ") {
        let mut paths = Vec::new();
        branches(&text[place + 4..], &mut Vec::new(), &mut paths);
        for path in paths.into_iter().filter(|path| path.len() > 1) {
            names.insert(path.last().unwrap().clone(), path[0].clone());
        }
    }
    names
}

fn rank(rooms: &[&[&str]], name: &str) -> Option<usize> {
    rooms.iter().position(|row| row.contains(&name))
}

/// Arrows from the part `own` of a file that point upwards.
fn turned(rooms: &[&[&str]], own: &str, path: &[String], shown: &BTreeMap<String, String>) -> Option<String> {
    let first = path.first()?;
    let target = shown.get(first).unwrap_or(first);
    let (from, to) = (rank(rooms, own)?, rank(rooms, target));
    match to {
        Some(to) if to <= from => None,
        Some(_) => Some(format!("{own} uses {target}, which is above it: `{}`", path.join("::"))),
        None => Some(format!("`{}` lies in no room of the list", path.join("::"))),
    }
}

#[test]
fn every_room_uses_only_rooms_below_it() {
    let sources = library();
    let facade = shown(&sources, "lib.rs");
    let data = shown(&sources, "data/mod.rs");
    let mut wrong = Vec::new();
    let mut seen = 0;
    for source in sources.iter().filter(|source| !source.module.is_empty()) {
        assert!(rank(ROOMS, &source.module[0]).is_some(), "{} lies in no room of the list", source.name);
        for (line, path) in source.paths() {
            seen += 1;
            let about = turned(ROOMS, &source.module[0], &path, &facade).or_else(|| {
                let inside = source.module.len() > 1 && source.module[0] == "data" && path.first()? == "data";
                if inside { turned(INSIDE_DATA, &source.module[1], &path[1..], &data) } else { None }
            });
            wrong.extend(about.map(|about| source.complaint(line, &about)));
        }
    }
    assert!(seen > 300, "{seen} paths are too few to be all of them");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn an_arrow_that_turns_round_is_found_however_it_is_written() {
    let sources = library();
    let facade = shown(&sources, "lib.rs");
    for (text, own, expected) in [
        ("use crate::data::Samples;", "task", 1),
        ("use crate::{error::Error, run::{self, Run}, data};", "task", 3),
        ("use crate::Samples;", "task", 1), // through the facade
        ("let samples: super::super::data::Samples = read();", "task", 1),
        ("use crate::error::{\n    Error,\n    require,\n};", "task", 0),
        ("use super::field::Field;\nuse crate::Error;", "task", 0),
        ("// use crate::data::Samples;\n#[cfg(test)]\nmod tests {\n    use crate::data::Samples;\n}", "task", 0),
        ("use crate::data::Samples;\nuse crate::task::Task;", "workflow", 0),
    ] {
        let lines = without_tests(text.lines().map(without_comment).collect());
        let source = Source { name: "x.rs".into(), module: vec![own.into(), "x".into()], lines };
        let wrong = source.paths().into_iter().filter_map(|(_, path)| turned(ROOMS, own, &path, &facade)).count();
        assert_eq!(wrong, expected, "{text}");
    }
}

#[test]
fn the_crates_below_depend_on_nothing_that_they_must_not_know() {
    let dependencies = |name: &str| -> BTreeMap<String, bool> {
        let path = workspace().join("crates").join(name).join("Cargo.toml");
        let manifest: toml::Table = fs::read_to_string(&path).unwrap().parse().unwrap();
        let targets = manifest.get("target").and_then(toml::Value::as_table).into_iter().flatten();
        let tables = targets.filter_map(|(_, table)| table.as_table()).chain([&manifest]);
        let tables = tables.flat_map(|table| ["dependencies", "build-dependencies"].map(|kind| table.get(kind)));
        let rows = tables.flatten().filter_map(toml::Value::as_table).flatten();
        let optional = |row: &toml::Value| row.get("optional").and_then(toml::Value::as_bool) == Some(true);
        rows.map(|(name, row)| (name.clone(), optional(row))).collect()
    };
    let geometry = dependencies("geometry");
    assert!(geometry.iter().all(|(name, optional)| name == "serde" && *optional), "geometry depends on {geometry:?}");
    for (name, forbidden) in
        [("physics", &["lamo-tensor", "lamo"][..]), ("tensor", &["lamo-geometry", "lamo-physics", "lamo"])]
    {
        let found = dependencies(name);
        assert!(!found.is_empty(), "{name} depends on something");
        for other in forbidden {
            assert!(!found.contains_key(*other), "{name} depends on {other}");
        }
    }
}

/// Whether the place after a variant, behind its fields, is that of a pattern.
fn is_pattern(before: &str, after: &str) -> bool {
    let mut depth = 0;
    let braces = after.trim_start().starts_with('{');
    let end = after.char_indices().find(|(_, letter)| match letter {
        '{' => {
            depth += 1;
            false
        }
        '}' => {
            depth -= 1;
            depth == 0
        }
        _ => false,
    });
    let rest = if braces { end.map_or("", |(place, _)| &after[place + 1..]) } else { after };
    let rest = rest.trim_start();
    let statement = before.rsplit(';').next().unwrap_or_default();
    let since = |word: &str| statement.rfind(word).map(|place| &statement[place..]);
    let bound = since("let ").is_some_and(|since| !since.contains('='));
    let asked = since("matches!(").is_some_and(|since| since.matches('(').count() > since.matches(')').count());
    let beside = ["==", "!=", "|"].iter().any(|sign| statement.trim_end().ends_with(sign));
    ["=>", "|", "if ", "=="].iter().any(|sign| rest.starts_with(sign)) || bound || asked || beside
}

#[test]
fn only_the_file_about_time_tells_the_kinds_of_time_apart() {
    let variants =
        ["Steady", "RollOut", "ByTime"].map(|variant| ["Time", "TimeMode"].map(|kind| format!("{kind}::{variant}")));
    let (mut wrong, mut built) = (Vec::new(), 0);
    for source in library() {
        let text = source.lines.join("\n");
        for variant in variants.as_flattened() {
            for (place, _) in text.match_indices(variant.as_str()) {
                let (before, after) = (&text[..place], &text[place + variant.len()..]);
                if before.ends_with(|letter: char| letter.is_alphanumeric()) {
                    continue; // another type whose name ends so
                }
                if !is_pattern(before, after) {
                    built += 1;
                } else if source.name != "task/time.rs" {
                    let line = before.matches('\n').count();
                    wrong.push(source.complaint(line, &format!("matches on {variant}; ask a method of Time instead")));
                }
            }
        }
    }
    assert!(built > 5, "{built} places that make a time are too few to be all of them");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_a_pattern_is_told_from_what_is_made() {
    for (before, after) in [
        ("match time {\n    ", " => 1,"),
        ("match time {\n    ", " { past, .. } | Time::Steady => 1,"),
        ("let ", " { past, .. } = self else { return };"),
        ("if let ", " { .. } = time {"),
        ("matches!(time, ", " { .. })"),
        ("mode == ", " {"),
        ("matches!(\n    time,\n    Time::Steady | ", " { .. }\n)"),
    ] {
        assert!(is_pattern(before, after), "{before}Time::RollOut{after}");
    }
    for (before, after) in [
        ("        Course::Steady => ", ","),
        ("        Course::Times { count } if clock.len() == count => ", " { count, clock },"),
        ("    let time = ", " { past, snapshots, clock };"),
        ("Task { time: ", " { count, clock: Vec::new() }, ..self }"),
    ] {
        assert!(!is_pattern(before, after), "{before}Time::RollOut{after}");
    }
}

#[test]
fn no_source_file_is_longer_than_600_lines() {
    let crates = fs::read_dir(workspace().join("crates")).unwrap().map(|entry| entry.unwrap().path().join("src"));
    let mut long = Vec::new();
    for path in crates.filter(|path| path.is_dir()).flat_map(|path| files(&path, &["rs", "cu"])) {
        let lines = fs::read_to_string(&path).unwrap().lines().count();
        if lines > 600 {
            long.push(format!("{}: {lines} lines", path.strip_prefix(workspace()).unwrap().display()));
        }
    }
    assert!(long.is_empty(), "{}", long.join("\n"));
}

/// Parity compares on the CPU or says itself which device it is on; first values are written before a program has run.
const MAY_PANIC: &[&str] = &["inference/parity/", "network/parameters.rs"];

#[test]
fn the_library_runs_programs_by_the_calls_that_return_device_errors() {
    // `run` with a step is that of the training's own program, which returns a result.
    let calls =
        ["program.run()", "program.write(", "program.read(", ".write_parameter(", ".read_parameter(", ".write_index("];
    let mut wrong = Vec::new();
    for source in library().into_iter().filter(|source| !MAY_PANIC.iter().any(|name| source.name.starts_with(name))) {
        for (number, line) in source.lines.iter().enumerate() {
            let call = calls.iter().find(|call| line.contains(*call));
            wrong.extend(call.map(|call| source.complaint(number, &format!("{call} panics where the device fails"))));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
