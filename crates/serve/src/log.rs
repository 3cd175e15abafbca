//! One record for each request, as a line of text or of JSON.

use serde_json::json;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

/// A request that was answered.
#[derive(Clone, Debug)]
pub struct Record {
    /// When it began.
    pub time: SystemTime,
    /// GET, POST, ...
    pub method: String,
    /// The path that was asked for, without the query.
    pub path: String,
    /// Status of the answer.
    pub status: u16,
    /// From its headers to the answer.
    pub elapsed: Duration,
    /// Samples that were computed with it at a time; `None` where nothing was computed.
    pub batch: Option<usize>,
    /// Bytes of its body.
    pub received: u64,
    /// Bytes of the body of the answer.
    pub sent: u64,
    /// What went wrong, where the status says so.
    pub error: Option<String>,
}

impl Record {
    /// `2026-01-01T00:00:00.000Z POST /v2/models/darcy/infer 200 12.3 ms batch 4 28900 B in 28932 B out`
    pub fn text(&self) -> String {
        let time = humantime::format_rfc3339_millis(self.time);
        let batch = self.batch.map_or_else(String::new, |batch| format!(" batch {batch}"));
        let Record { method, path, status, received, sent, .. } = self;
        let error = self.error.as_ref().map_or_else(String::new, |error| format!(": {}", on_one_line(error)));
        format!(
            "{time} {method} {path} {status} {:.1} ms{batch} {received} B in {sent} B out{error}",
            self.milliseconds()
        )
    }

    /// The same as one JSON object.
    pub fn json(&self) -> String {
        let mut line = json!({
            "time": humantime::format_rfc3339_millis(self.time).to_string(),
            "method": self.method,
            "path": self.path,
            "status": self.status,
            "ms": (self.milliseconds() * 1000.0).round() / 1000.0,
            "bytes_in": self.received,
            "bytes_out": self.sent,
        });
        if let Some(batch) = self.batch {
            line["batch"] = json!(batch);
        }
        if let Some(error) = &self.error {
            line["error"] = json!(error);
        }
        line.to_string()
    }

    fn milliseconds(&self) -> f64 {
        self.elapsed.as_secs_f64() * 1e3
    }
}

/// A text without line breaks and other control characters, which may come from a client: each is written as its escape.
fn on_one_line(text: &str) -> String {
    let mut line = String::with_capacity(text.len());
    for letter in text.chars() {
        match is_break(letter) {
            true => line.extend(letter.escape_default()),
            false => line.push(letter),
        }
    }
    line
}

/// Control characters, and the line and paragraph separators of Unicode.
fn is_break(letter: char) -> bool {
    letter.is_control() || ['\u{2028}', '\u{2029}'].contains(&letter)
}

/// Takes records.
#[derive(Clone)]
pub struct Sink(Arc<dyn Fn(&Record) + Send + Sync>);

impl Sink {
    /// Calls a function for each record, from any thread.
    pub fn new(take: impl Fn(&Record) + Send + Sync + 'static) -> Sink {
        Sink(Arc::new(take))
    }

    /// Drops every record.
    pub fn none() -> Sink {
        Sink::new(|_| {})
    }

    /// An answer is not lost because its record cannot be written.
    pub(crate) fn take(&self, record: &Record) {
        let _ = catch_unwind(AssertUnwindSafe(|| (self.0)(record)));
    }
}

impl fmt::Debug for Sink {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Sink")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_one_line_of_text_or_of_json() {
        let record = Record {
            time: SystemTime::UNIX_EPOCH + Duration::from_millis(1500),
            method: "POST".into(),
            path: "/v2/models/a\"b/infer".into(),
            status: 400,
            elapsed: Duration::from_micros(12_345),
            batch: Some(3),
            received: 10,
            sent: 20,
            error: Some("no".into()),
        };
        let text = "1970-01-01T00:00:01.500Z POST /v2/models/a\"b/infer 400 12.3 ms batch 3 10 B in 20 B out: no";
        assert_eq!(record.text(), text);
        let line: serde_json::Value = serde_json::from_str(&record.json()).unwrap();
        assert_eq!((&line["ms"], &line["batch"], &line["error"]), (&json!(12.345), &json!(3), &json!("no")));
        assert!(!record.json().contains('\n'));
        let forged = Record { error: Some("a\n2026-01-01 GET / 200\u{1b}[2J\u{85}\u{2028}ü".into()), ..record };
        assert!(forged.text().ends_with(r": a\n2026-01-01 GET / 200\u{1b}[2J\u{85}\u{2028}ü"), "{}", forged.text());
    }
}
