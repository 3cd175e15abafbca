//! Kinds of files that requests bring and answers hold: by content type, by `?format=`, or by their first bytes.

use crate::failure::Failure;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};

/// A kind of file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    Npy,
    Npz,
    Vtu,
}

/// Each kind with its ending, the content type of answers, other content types that mean it, and its first bytes.
const FORMATS: [(Format, &str, &str, &[&str], &[u8]); 3] = [
    (Format::Npy, "npy", "application/x-npy", &["application/npy"], b"\x93NUMPY"),
    (Format::Npz, "npz", "application/x-npz", &["application/zip", "application/npz"], b"PK"),
    (Format::Vtu, "vtu", "application/vnd.vtk", &["application/x-vtu", "application/xml", "model/vnd.vtu"], b"<"),
];

impl Format {
    fn row(self) -> &'static (Format, &'static str, &'static str, &'static [&'static str], &'static [u8]) {
        match self {
            Format::Npy => &FORMATS[0],
            Format::Npz => &FORMATS[1],
            Format::Vtu => &FORMATS[2],
        }
    }

    pub(super) fn ending(self) -> &'static str {
        self.row().1
    }

    pub(super) fn content_type(self) -> &'static str {
        self.row().2
    }

    fn of_type(content_type: &str) -> Option<Format> {
        let plain = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
        let known =
            |(_, _, own, others, _): &(_, _, &str, &[&str], _)| *own == plain || others.contains(&plain.as_str());
        FORMATS.iter().find(|row| known(row)).map(|row| row.0)
    }

    /// By the name of a format, as in `?format=npz`.
    fn of_ending(ending: &str) -> Result<Format, Failure> {
        FORMATS.iter().find(|row| row.1 == ending).map(|row| row.0).ok_or_else(|| {
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
        let found = headers.get(CONTENT_TYPE).map(|value| value.to_str().unwrap_or_default().to_owned());
        match found.as_deref() {
            None | Some("" | "application/octet-stream") => {
                let known = FORMATS.iter().find(|(.., start)| body.starts_with(start)).map(|row| row.0);
                known.ok_or_else(|| Failure::bad("the body: expected an npy, npz or vtu file, found other bytes"))
            }
            Some(given) => Format::of_type(given).ok_or_else(|| {
                let expected = FORMATS.map(|row| row.2).join(", ");
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
        let expected = FORMATS.map(|row| row.2).join(", ");
        Err(Failure::new(StatusCode::NOT_ACCEPTABLE, format!("Accept: expected one of {expected}, found {accept}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

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
        assert_eq!(known(None, &headers(CONTENT_TYPE, "application/x-www-form-urlencoded"), b"PK"), unsupported);
        assert_eq!(known(Some("csv"), &none, b""), unsupported);
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
