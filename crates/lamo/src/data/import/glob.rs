//! Names of arrays as users write them: `FILE`, `FILE:VARIABLE`, patterns with `*` and `?` for one file, or one array of a file, after
//! another, and `A,B` for arrays side by side.

use super::own::ArrayName;
use crate::data::dataset::Error;
use crate::data::formats;
use std::cmp::Ordering;
use std::collections::HashSet;
use std::path::{Component, Path, PathBuf};

/// The arrays of a text: the outer list is joined along the samples, the inner lists along the channels. `FILE:X,Y` is
/// `FILE:X,FILE:Y`. The files of a pattern are in the order of their names, `run_2` before `run_10`.
pub fn parse_arrays(text: &str) -> Result<Vec<Vec<ArrayName>>, Error> {
    let whole = ArrayName::parse(text); // the name of a file, or of an array, may contain a comma
    let several = whole.variable.as_ref().is_some_and(|variable| variable.contains(','));
    if whole.path.exists() && (!several || formats::describe(&whole.path, whole.variable.as_deref()).is_ok()) {
        return Ok(inside_file(&whole)?.into_iter().map(|name| vec![name]).collect());
    }
    let mut lists: Vec<Vec<ArrayName>> = Vec::new();
    let mut before: Option<ArrayName> = None;
    for part in text.split(',') {
        let mut name = ArrayName::parse(part);
        let plain = name.variable.is_none() && !name.path.exists() && !part.contains(['*', '?', '/', '.']);
        if let Some(before) = before.as_ref().filter(|before| plain && before.variable.is_some()) {
            name = ArrayName { path: before.path.clone(), variable: Some(part.to_owned()) };
        }
        lists.push(expand(&name)?);
        before = Some(name);
    }
    let files = lists.first().map_or(0, Vec::len);
    if let Some(other) = lists.iter().find(|list| list.len() != files) {
        let expected = format!("{files} files for each array side by side");
        return Err(Error::unfit(text.to_owned(), expected, other.len().to_string(), "give as many files for each"));
    }
    Ok((0..files).map(|file| lists.iter().map(|list| list[file].clone()).collect()).collect())
}

/// The arrays of a name, one for each file of a pattern, or for each array of a file that fits a pattern.
pub(crate) fn expand(name: &ArrayName) -> Result<Vec<ArrayName>, Error> {
    let pattern = name.path.to_string_lossy();
    if !pattern.contains(['*', '?']) || name.path.exists() {
        return inside_file(name);
    }
    let files = matching(&name.path);
    if files.is_empty() {
        let advice = "check the pattern, and put it between quotes";
        return Err(Error::unfit(pattern.into_owned(), "files that fit the pattern".into(), "none".into(), advice));
    }
    let mut found = Vec::new();
    for path in files {
        found.extend(inside_file(&ArrayName { path, variable: name.variable.clone() })?);
    }
    Ok(found)
}

/// The arrays of a file whose names fit a pattern such as `*/data`, in the order of their names; the name itself where it is no
/// pattern, or the name of an array.
fn inside_file(name: &ArrayName) -> Result<Vec<ArrayName>, Error> {
    let pattern = name.variable.as_deref().filter(|variable| variable.contains(['*', '?']));
    let Some(pattern) = pattern else { return Ok(vec![name.clone()]) };
    let file = formats::ArrayFile::open(&name.path)?;
    if file.describe(Some(pattern)).is_ok() {
        return Ok(vec![name.clone()]);
    }
    let letters: Vec<char> = pattern.chars().collect();
    let mut names: Vec<String> = file.list().into_iter().map(|info| info.name).collect();
    names.retain(|name| fits(&letters, &name.chars().collect::<Vec<_>>()));
    names.sort_by(|one, other| natural(one, other));
    if names.is_empty() {
        let known: Vec<String> = file.list().into_iter().map(|info| info.name).collect();
        let found = format!("none among {}", formats::listed(&known));
        let expected = "arrays that fit the pattern".into();
        return Err(Error::unfit(name.title(), expected, found, "check the pattern, and put it between quotes"));
    }
    let array = |variable| ArrayName { path: name.path.clone(), variable: Some(variable) };
    Ok(names.into_iter().map(array).collect())
}

/// The files that fit a pattern, in the order of their names.
fn matching(pattern: &Path) -> Vec<PathBuf> {
    let mut found = vec![PathBuf::new()];
    for component in pattern.components() {
        let text = component.as_os_str().to_string_lossy();
        found = match component {
            Component::Normal(_) if text.contains(['*', '?']) => {
                found.iter().flat_map(|folder| inside(folder, &text)).collect()
            }
            _ => found.into_iter().map(|folder| folder.join(component)).collect(),
        };
    }
    found.retain(|path| path.is_file());
    found.sort_by(|one, other| natural(&one.to_string_lossy(), &other.to_string_lossy()));
    found
}

/// What a folder holds that fits a pattern; hidden files only where the pattern says so.
fn inside(folder: &Path, pattern: &str) -> Vec<PathBuf> {
    let here = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let entries = std::fs::read_dir(here).into_iter().flatten().flatten().map(|entry| entry.file_name());
    let pattern: Vec<char> = pattern.chars().collect();
    let fitting = entries.filter(|name| {
        let name: Vec<char> = name.to_string_lossy().chars().collect();
        fits(&pattern, &name) && (name.first() != Some(&'.') || pattern.first() == Some(&'.'))
    });
    fitting.map(|name| folder.join(name)).collect()
}

/// Whether a name fits a pattern of letters, `?` for any letter and `*` for any letters.
fn fits(pattern: &[char], name: &[char]) -> bool {
    let (mut at, mut place) = (0, 0); // in the pattern, in the name
    let mut star: Option<(usize, usize)> = None; // after the last star, and the place it has come to
    while place < name.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at + 1, place));
                at += 1;
            }
            Some(letter) if *letter == '?' || *letter == name[place] => (at, place) = (at + 1, place + 1),
            _ => match star {
                Some((after, come)) => {
                    star = Some((after, come + 1));
                    (at, place) = (after, come + 1);
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|letter| *letter == '*')
}

/// The order of names in which numbers count as numbers.
fn natural(one: &str, other: &str) -> Ordering {
    let (mut one, mut other) = (one, other);
    loop {
        let [a, b] = [one, other].map(|text| text.find(|letter: char| letter.is_ascii_digit()).unwrap_or(text.len()));
        let texts = one[..a].cmp(&other[..b]);
        if texts.is_ne() || one.len() == a && other.len() == b {
            return texts;
        }
        (one, other) = (&one[a..], &other[b..]);
        let [a, b] = [one, other].map(|text| text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len()));
        let [left, right] = [one[..a].trim_start_matches('0'), other[..b].trim_start_matches('0')];
        let numbers = left.len().cmp(&right.len()).then(left.cmp(right)).then(a.cmp(&b));
        if numbers.is_ne() {
            return numbers;
        }
        (one, other) = (&one[a..], &other[b..]);
    }
}

/// The first array of several lists that belongs to another by its order and not by its name, and that other one. A list with one
/// array is not compared. Names hold folders, files and arrays of files: `case_*/u.npy` and `runs.h5:*/u` differ elsewhere than in the
/// file.
pub(crate) fn strangers(lists: impl IntoIterator<Item = Vec<String>>) -> Option<[String; 2]> {
    let mut first: Option<(Vec<String>, Vec<String>)> = None;
    for names in lists.into_iter().filter(|names| names.len() > 1) {
        let Some(cases) = differing(&names) else { continue };
        let Some((others, expected)) = &first else {
            first = Some((names, cases));
            continue;
        };
        if expected.len() == cases.len()
            && let Some(place) = misplaced(expected, &cases)
        {
            return Some([names[place].clone(), others[place].clone()]);
        }
    }
    None
}

/// The first case of a list that is not the one at its place in another list.
fn misplaced(expected: &[String], found: &[String]) -> Option<usize> {
    let numbers = |cases: &[String]| cases.iter().map(|case| case.parse::<u64>().ok()).collect::<Option<Vec<_>>>();
    match (numbers(expected), numbers(found)) {
        (Some(expected), Some(found)) => {
            // Numbers from 0 on and numbers from 1 on belong together.
            let counted = [expected[0], found[0]].iter().max() <= Some(&1);
            let start = |numbers: &[u64]| if counted { numbers[0] } else { 0 };
            let (one, other) = (start(&expected), start(&found));
            (0..found.len()).find(|&place| expected[place].wrapping_sub(one) != found[place].wrapping_sub(other))
        }
        // Cases of other names belong together by their order where both lists have no name in common.
        _ => {
            let names: HashSet<&String> = expected.iter().collect();
            let related = found.iter().any(|case| names.contains(case));
            (0..found.len()).find(|&place| related && expected[place] != found[place])
        }
    }
}

/// The letters in which each of several names differs from the rest; `None` where names are equal.
fn differing(names: &[String]) -> Option<Vec<String>> {
    let first = names.first()?;
    let same = |one: &str, other: &str| one.chars().zip(other.chars()).take_while(|(one, other)| one == other).count();
    let count = |name: &String| name.chars().count();
    let before = names.iter().map(|name| same(first, name)).min()?;
    let backwards: Vec<String> = names.iter().map(|name| name.chars().rev().collect()).collect();
    let behind = backwards.iter().map(|name| same(&backwards[0], name)).min()?;
    let letters: Vec<char> = first.chars().collect();
    // A number that all names begin with or end with belongs to the number in which they differ.
    let before = (0..=before).rev().find(|&end| end == 0 || !letters[end - 1].is_ascii_digit())?;
    let behind = (0..=behind.min(letters.len())).rev();
    let behind = behind.into_iter().find(|&length| length == 0 || !letters[letters.len() - length].is_ascii_digit())?;
    let middle = |name: &String| -> Option<String> {
        let length = count(name).checked_sub(before + behind)?;
        Some(name.chars().skip(before).take(length).collect())
    };
    let found = names.iter().map(middle).collect::<Option<Vec<String>>>()?;
    found.windows(2).all(|pair| pair[0] != pair[1]).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_fits_any_letters_and_names_count_their_numbers() {
        let fit =
            |pattern: &str, name: &str| fits(&pattern.chars().collect::<Vec<_>>(), &name.chars().collect::<Vec<_>>());
        assert!(fit("run_*.npy", "run_12.npy") && fit("*", "a") && fit("a*b*c", "aXbYbZc") && fit("r?n", "run"));
        assert!(!fit("run_*.npy", "run_12.npz") && !fit("a*b*c", "aXc") && !fit("r?n", "rn") && !fit("", "a"));
        let mut names = ["run_10", "run_2", "run_1b", "run_1", "run_02", "a"];
        names.sort_by(|one, other| natural(one, other));
        assert_eq!(names, ["a", "run_1", "run_1b", "run_2", "run_02", "run_10"]);
    }

    fn texts(names: &[&str]) -> Vec<String> {
        names.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_case_of_a_name_is_found_with_all_its_digits() {
        let found = |names: &[&str]| differing(&texts(names));
        assert_eq!(found(&["case_10.npy", "case_11.npy"]), Some(texts(&["10", "11"])));
        assert_eq!(found(&["u_01_v2.npy", "u_11_v2.npy"]), Some(texts(&["01", "11"])));
        assert_eq!(found(&["a9.npy", "a10.npy", "a11.npy"]), Some(texts(&["9", "10", "11"])));
        assert_eq!(found(&["runs/case_3/u.npy", "runs/case_12/u.npy"]), Some(texts(&["3", "12"])));
        assert_eq!(found(&["u.npy", "u.npy"]), None);
    }

    #[test]
    fn arrays_of_other_cases_are_strangers_wherever_their_names_differ() {
        let apart = |one: &[&str], other: &[&str]| strangers([texts(one), texts(other)]).is_some();
        let [case_a, case_u] = ["a", "u"].map(|field| move |case: &str| format!("runs/{case}/{field}.npy"));
        let folders =
            |of: &dyn Fn(&str) -> String, cases: &[&str]| cases.iter().map(|case| of(case)).collect::<Vec<_>>();
        let together = [folders(&case_a, &["c1", "c2", "c3"]), folders(&case_u, &["c1", "c2", "c3"])];
        assert_eq!(strangers(together), None);
        assert!(strangers([folders(&case_a, &["c1", "c2", "c4"]), folders(&case_u, &["c1", "c3", "c4"])]).is_some());
        assert!(apart(&["x.h5:1/a", "x.h5:2/a"], &["x.h5:2/u", "x.h5:3/u"]));
        assert!(apart(&["a_circle", "a_square"], &["u_square", "u_triangle"]));
        assert!(apart(&["in/body", "in/tail", "in/wing"], &["out/body", "out/fin", "out/wing"]));
        assert!(!apart(&["a_left", "a_right"], &["u_inner", "u_outer"]), "nothing says which belong together");
        assert!(!apart(&["a_1", "a_0"], &["u_1", "u_0"]), "in any order");
        assert!(!apart(&["a_0", "a_1", "a_2"], &["u_1", "u_2", "u_3"]), "counted from 0 and from 1");
        assert!(
            apart(&["a_1", "a_2", "a_3"], &["u_2", "u_3", "u_4"]),
            "the first output and the last input are missing"
        );
    }
}
