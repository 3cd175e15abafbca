//! Kinds of files that requests bring and answers hold: by content type, by `?format=`, or by their first bytes.

use crate::body::content_type;
use crate::failure::Failure;
use axum::http::header::ACCEPT;
use axum::http::{HeaderMap, StatusCode};

/// A kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Npy,
    Npz,
    Vtu,
}

/// What is known of a kind.
struct Known {
    format: Format,
    ending: &'static str,
    /// Of answers, and of bodies.
    content_type: &'static str,
    /// Other content types of bodies.
    others: &'static [&'static str],
    /// First bytes.
    start: &'static [u8],
}

const FORMATS: [Known; 3] = [
    Known {
        format: Format::Npy,
        ending: "npy",
        content_type: "application/x-npy",
        others: &["application/npy"],
        start: b"\x93NUMPY",
    },
    Known {
        format: Format::Npz,
        ending: "npz",
        content_type: "application/x-npz",
        others: &["application/zip", "application/npz"],
        start: b"PK",
    },
    Known {
        format: Format::Vtu,
        ending: "vtu",
        content_type: "application/vnd.vtk",
        others: &["application/x-vtu", "application/xml", "model/vnd.vtu"],
        start: b"<",
    },
];

/// The content types in a sentence.
fn content_types() -> String {
    FORMATS.map(|known| known.content_type).join(", ")
}

impl Format {
    fn known(self) -> &'static Known {
        match self {
            Format::Npy => &FORMATS[0],
            Format::Npz => &FORMATS[1],
            Format::Vtu => &FORMATS[2],
        }
    }

    pub(super) fn ending(self) -> &'static str {
        self.known().ending
    }

    pub(super) fn content_type(self) -> &'static str {
        self.known().content_type
    }

    fn of_type(content_type: &str) -> Option<Format> {
        let plain = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let means = |known: &&Known| known.content_type == plain || known.others.contains(&plain.as_str());
        FORMATS.iter().find(means).map(|known| known.format)
    }

    /// By the name of a format, as in `?format=npz`.
    fn of_ending(ending: &str) -> Result<Format, Failure> {
        FORMATS.iter().find(|known| known.ending == ending).map(|known| known.format).ok_or_else(|| {
            Failure::new(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                format!("format: expected npy, npz or vtu, found {ending}"),
            )
        })
    }

    /// What a body is: `?format=`, its content type, or its first bytes where neither says it.
    pub(super) fn of_body(asked: Option<&str>, headers: &HeaderMap, body: &[u8]) -> Result<Format, Failure> {
        if let Some(ending) = asked {
            return Format::of_ending(ending);
        }
        match content_type(headers) {
            None => {
                let known = FORMATS.iter().find(|known| body.starts_with(known.start)).map(|known| known.format);
                known.ok_or_else(|| Failure::bad("the body: expected an npy, npz or vtu file, found other bytes"))
            }
            Some(given) => Format::of_type(&given).ok_or_else(|| {
                let expected = content_types();
                Failure::new(
                    StatusCode::UNSUPPORTED_MEDIA_TYPE,
                    format!("Content-Type: expected {expected}, or ?format= with npy, npz or vtu; found {given}"),
                )
            }),
        }
    }

    /// What the answer shall be: the first known type of Accept, or the kind of the body.
    pub(super) fn of_answer(headers: &HeaderMap, body: Format) -> Result<(Format, bool), Failure> {
        let accept = headers.get(ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or("*/*");
        for part in accept.split(',') {
            let plain = part.split(';').next().unwrap_or_default().trim();
            if matches!(plain, "*/*" | "application/*" | "" | "application/octet-stream") {
                return Ok((body, false));
            }
            if let Some(format) = Format::of_type(plain) {
                return Ok((format, true));
            }
        }
        let expected = content_types();
        Err(Failure::new(StatusCode::NOT_ACCEPTABLE, format!("Accept: expected one of {expected}, found {accept}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;
    use axum::http::header::CONTENT_TYPE;

    fn headers(name: axum::http::HeaderName, value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_static(value))])
    }

    #[test]
    fn a_body_is_known_by_its_format_its_type_or_its_first_bytes() {
        let known =
            |asked, headers: &HeaderMap, body: &[u8]| Format::of_body(asked, headers, body).map_err(|f| f.status);
        let none = HeaderMap::new();
        assert_eq!(known(Some("npz"), &headers(CONTENT_TYPE, "application/x-npy"), b""), Ok(Format::Npz));
        assert_eq!(known(None, &headers(CONTENT_TYPE, "Application/X-NPY; a=b"), b""), Ok(Format::Npy));
        assert_eq!(known(None, &none, b"PK\x03\x04"), Ok(Format::Npz));
        assert_eq!(known(None, &none, b"what"), Err(StatusCode::BAD_REQUEST));
        let unsupported = Err(StatusCode::UNSUPPORTED_MEDIA_TYPE);
        assert_eq!(known(None, &headers(CONTENT_TYPE, "image/png"), b"PK"), unsupported);
        assert_eq!(known(Some("csv"), &none, b""), unsupported);
    }

    #[test]
    fn what_tools_say_of_any_file_says_nothing_about_the_body() {
        for said in ["application/x-www-form-urlencoded", "Application/Octet-Stream; charset=binary", ""] {
            let headers = headers(CONTENT_TYPE, said);
            let known = |body: &[u8]| Format::of_body(None, &headers, body).map_err(|failure| failure.status);
            assert_eq!(known(b"PK\x03\x04"), Ok(Format::Npz), "{said}");
            assert_eq!(known(b"\x93NUMPY"), Ok(Format::Npy), "{said}");
            assert_eq!(known(b"a=1&b=2"), Err(StatusCode::BAD_REQUEST), "{said}");
        }
    }

    #[test]
    fn an_answer_is_of_the_kind_of_the_body_unless_another_is_asked_for() {
        let answer = |accept| Format::of_answer(&headers(ACCEPT, accept), Format::Npy).map_err(|f| f.status);
        assert_eq!(answer("*/*"), Ok((Format::Npy, false)));
        assert_eq!(answer("text/html, application/x-npz;q=0.5"), Ok((Format::Npz, true)));
        assert_eq!(answer("text/html, */*;q=0.1"), Ok((Format::Npy, false)));
        assert_eq!(answer("text/html"), Err(StatusCode::NOT_ACCEPTABLE));
    }
}
