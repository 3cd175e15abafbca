//! The query of a prediction, such as `?frames=40&symmetries=true`; the names are those of the flags of `lamo predict`.

use crate::failure::Failure;

/// What a query asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) format: Option<String>,
    pub(super) frames: Option<usize>,
    pub(super) symmetries: bool,
    /// Of meshes: `points` or `cells`.
    pub(super) on: Option<String>,
    /// Of meshes: `distance`, `normals`, or both with a comma.
    pub(super) derive: Option<String>,
}

impl Asked {
    pub(super) fn parse(query: Vec<(String, String)>) -> Result<Asked, Failure> {
        let mut asked = Asked::default();
        let mut known: Vec<String> = Vec::new();
        for (key, value) in query {
            if known.contains(&key) {
                return Err(Failure::bad(format!("the query: expected {key} once, found it twice; leave one out")));
            }
            match key.as_str() {
                "format" => asked.format = Some(value),
                "frames" => asked.frames = Some(frames(&value)?),
                "symmetries" => asked.symmetries = truth(&key, &value)?,
                "on" => asked.on = Some(value),
                "derive" => asked.derive = Some(value),
                _ => {
                    let expected = "the query: expected format, frames, symmetries, on or derive";
                    return Err(Failure::bad(format!("{expected}, found `{key}`; leave it out")));
                }
            }
            known.push(key);
        }
        Ok(asked)
    }
}

/// Snapshots to continue a time series by.
pub(crate) fn frames(text: &str) -> Result<usize, Failure> {
    let number = text.parse().ok().filter(|&frames| frames > 0);
    number.ok_or_else(|| Failure::bad(format!("frames: expected a whole number of at least 1, found {text}")))
}

fn truth(key: &str, text: &str) -> Result<bool, Failure> {
    text.parse().map_err(|_| Failure::bad(format!("{key}: expected true or false, found `{text}`")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(pairs: &[(&str, &str)]) -> Result<Asked, String> {
        let pairs = pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
        Asked::parse(pairs).map_err(|failure| failure.sentence)
    }

    #[test]
    fn a_query_has_the_names_of_the_flags_of_predict() {
        let asked = parse(&[("format", "npz"), ("frames", "40"), ("symmetries", "true"), ("on", "cells")]).unwrap();
        let format = Some("npz".to_owned());
        let on = Some("cells".to_owned());
        assert_eq!(asked, Asked { format, frames: Some(40), symmetries: true, on, derive: None });
    }

    #[test]
    fn a_query_that_means_nothing_is_refused_in_one_sentence() {
        for (pairs, told) in [
            (&[("frames", "abc")][..], "frames: expected a whole number of at least 1, found abc"),
            (&[("frames", "0")], "frames: expected a whole number of at least 1, found 0"),
            (&[("frames", "-1")], "frames: expected a whole number of at least 1, found -1"),
            (&[("symmetries", "1")], "symmetries: expected true or false, found `1`"),
            (&[("frames", "1"), ("frames", "2")], "the query: expected frames once, found it twice; leave one out"),
            (
                &[("fromat", "npy")],
                "the query: expected format, frames, symmetries, on or derive, found `fromat`; leave it out",
            ),
        ] {
            assert_eq!(parse(pairs).unwrap_err(), told);
        }
    }
}
