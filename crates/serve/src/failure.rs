//! What a request gets that cannot be answered: a status, one sentence as JSON, and the headers that belong to the status.

use crate::router::Sentence;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use lamo::error::Refusal;
use lamo::{Error, Kind};
use serde_json::json;

/// Characters of a sentence at most: it may quote what a client sent.
const LONGEST: usize = 1000;

/// Why a request is not answered.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    pub(crate) status: StatusCode,
    pub(crate) sentence: String,
}

impl Failure {
    pub(crate) fn new(status: StatusCode, sentence: impl Into<String>) -> Failure {
        let mut sentence = sentence.into();
        if let Some((end, _)) = sentence.char_indices().nth(LONGEST) {
            sentence.truncate(end);
            sentence.push_str(" ...");
        }
        Failure { status, sentence }
    }

    pub(crate) fn bad(sentence: impl Into<String>) -> Failure {
        Failure::new(StatusCode::BAD_REQUEST, sentence)
    }

    pub(crate) fn missing(sentence: impl Into<String>) -> Failure {
        Failure::new(StatusCode::NOT_FOUND, sentence)
    }

    pub(crate) fn too_large(sentence: impl Into<String>) -> Failure {
        Failure::new(StatusCode::PAYLOAD_TOO_LARGE, sentence)
    }

    pub(crate) fn internal(sentence: impl Into<String>) -> Failure {
        Failure::new(StatusCode::INTERNAL_SERVER_ERROR, sentence)
    }

    pub(crate) fn unavailable(sentence: impl Into<String>) -> Failure {
        Failure::new(StatusCode::SERVICE_UNAVAILABLE, sentence)
    }

    /// An error about what the request holds: what it lacks is its own fault.
    pub(crate) fn of_input(error: &Error) -> Failure {
        let status = match error.kind() {
            Kind::BadInput | Kind::Missing | Kind::Conflict => StatusCode::BAD_REQUEST,
            Kind::OutOfSpace => StatusCode::PAYLOAD_TOO_LARGE,
            kind => status(kind),
        };
        Failure::new(status, sentence(error))
    }

    /// An error of the computation.
    pub(crate) fn of(error: &Error) -> Failure {
        Failure::new(status(error.kind()), sentence(error))
    }
}

/// Flags of `lamo predict` that advice names, and what a request has in their place.
const QUERIES: [(&str, &str); 2] = [("--on ", "?on="), ("--derive", "?derive=")];

/// The sentence of an error for a client. Of its advice, alternatives that need a flag of the command line are left out.
fn sentence(error: &Error) -> String {
    let Some(refusal) = error.downcast_ref::<Refusal>() else { return error.to_string() };
    let advice = QUERIES.iter().fold(refusal.advice.clone(), |advice, (flag, query)| advice.replace(flag, query));
    let possible: Vec<&str> = advice.split(", or ").filter(|one| !one.contains("--")).collect();
    let thing = refusal.thing.trim_start_matches("--").to_owned();
    Refusal { thing, advice: possible.join(", or "), ..refusal.clone() }.to_string()
}

fn status(kind: Kind) -> StatusCode {
    match kind {
        Kind::BadInput | Kind::Conflict => StatusCode::BAD_REQUEST,
        Kind::Missing => StatusCode::NOT_FOUND,
        Kind::Device | Kind::Cancelled => StatusCode::SERVICE_UNAVAILABLE,
        Kind::OutOfSpace => StatusCode::INSUFFICIENT_STORAGE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        let mut response = (self.status, axum::Json(json!({ "error": self.sentence }))).into_response();
        response.extensions_mut().insert(Sentence(self.sentence));
        let headers = response.headers_mut();
        match self.status {
            StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            StatusCode::UNAUTHORIZED => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"lamo\""));
            }
            StatusCode::REQUEST_TIMEOUT | StatusCode::PAYLOAD_TOO_LARGE => {
                headers.insert(header::CONNECTION, HeaderValue::from_static("close")); // the rest of the body is not read
            }
            _ => {}
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_client_is_not_advised_to_use_flags_of_the_command_line() {
        for (advice, expected) in [
            ("save the file with these names, or say --input b=FILE:VARIABLE", "; save the file with these names"),
            ("bring it into that shape, or name its axes with --axes u=ptn", "; bring it into that shape"),
            ("train on clouds: import with --grid cloud", ""),
            ("name a table with --scalars, or derive it with --derive", "; derive it with ?derive="),
            (
                "remove points, or take the centres with --on cells",
                "; remove points, or take the centres with ?on=cells",
            ),
            ("use a, or b", "; use a, or b"),
            ("", ""),
        ] {
            let error = Refusal::new("the body", "c", "d").advise(advice).into();
            assert_eq!(Failure::of_input(&error).sentence, format!("the body: expected c, found d{expected}"));
        }
        let error = Refusal::new("--symmetries", "a run", "weights").into();
        assert_eq!(Failure::of(&error).sentence, "symmetries: expected a run, found weights");
    }
}
