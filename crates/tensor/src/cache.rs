//! The folder for files that can be made again: compiled kernels and generated data sets.

use std::ffi::OsString;
use std::path::PathBuf;

/// `LAMO_CACHE`, or else `lamo` in the user's folder for caches; `None` where no variable names one. The folder for temporary
/// files is no place for a cache: other users can write there.
///
/// The user's folder for caches is `XDG_CACHE_HOME`, or else `HOME/.cache`, or else `LOCALAPPDATA`.
pub fn cache_folder() -> Option<PathBuf> {
    folder(|name| std::env::var_os(name))
}

fn folder(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let path = |name: &str| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    path("LAMO_CACHE")
        .or_else(|| Some(path("XDG_CACHE_HOME")?.join("lamo")))
        .or_else(|| Some(path("HOME")?.join(".cache").join("lamo")))
        .or_else(|| Some(path("LOCALAPPDATA")?.join("lamo")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_variable_that_is_set_and_not_empty_names_the_folder() {
        let with = |set: &[(&str, &str)]| {
            folder(|name| set.iter().find(|(known, _)| *known == name).map(|(_, value)| OsString::from(value)))
        };
        let all = [("LOCALAPPDATA", "/l"), ("HOME", "/h"), ("XDG_CACHE_HOME", "/x"), ("LAMO_CACHE", "/c")];
        for (count, expected) in [(4, "/c"), (3, "/x/lamo"), (2, "/h/.cache/lamo"), (1, "/l/lamo")] {
            assert_eq!(with(&all[..count]), Some(PathBuf::from(expected)));
        }
        assert_eq!(with(&[("LAMO_CACHE", ""), ("HOME", "/h")]), Some(PathBuf::from("/h/.cache/lamo")));
        assert_eq!(with(&[]), None);
    }
}
