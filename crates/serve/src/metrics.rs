//! What the server counts, in the text format of OpenMetrics.

use prometheus_client::encoding::{EncodeLabelSet, text::encode};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::{Family, MetricConstructor};
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};
use std::time::Duration;

/// Content type of the text.
pub(crate) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Methods that are counted by their name (RFC 9110 and 5789); HTTP allows any word.
const METHODS: [&str; 9] = ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH"];

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Asked {
    method: String,
    route: String,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Route {
    route: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct OfModel {
    model: String,
    version: String,
}

/// Buckets of times: 1 ms to 65 s, each twice the one before.
#[derive(Clone)]
struct Times;

impl MetricConstructor<Histogram> for Times {
    fn new_metric(&self) -> Histogram {
        Histogram::new(exponential_buckets(1e-3, 2.0, 17))
    }
}

/// Buckets of batches: 1 to 1024 samples.
#[derive(Clone)]
struct Batches;

impl MetricConstructor<Histogram> for Batches {
    fn new_metric(&self) -> Histogram {
        Histogram::new(exponential_buckets(1.0, 2.0, 11))
    }
}

/// Everything that is counted.
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<Asked, Counter>,
    seconds: Family<Route, Histogram, Times>,
    in_work: Gauge,
    memory: Gauge,
    queue: Family<OfModel, Gauge>,
    batches: Family<OfModel, Histogram, Batches>,
    computing: Family<OfModel, Histogram, Times>,
    predictions: Family<OfModel, Counter>,
    points: Family<OfModel, Counter>,
    failures: Family<OfModel, Counter>,
}

impl Metrics {
    pub(crate) fn new() -> Metrics {
        let mut metrics = Metrics {
            registry: Registry::with_prefix("lamo"),
            requests: Family::default(),
            seconds: Family::new_with_constructor(Times),
            in_work: Gauge::default(),
            memory: Gauge::default(),
            queue: Family::default(),
            batches: Family::new_with_constructor(Batches),
            computing: Family::new_with_constructor(Times),
            predictions: Family::default(),
            points: Family::default(),
            failures: Family::default(),
        };
        metrics.register();
        metrics
    }

    fn register(&mut self) {
        let all = &mut self.registry;
        all.register("requests", "Requests by route and status", self.requests.clone());
        let about = "Time from the headers of a request to its answer";
        all.register_with_unit("request", about, Unit::Seconds, self.seconds.clone());
        all.register("requests_in_work", "Requests that are read, wait or are computed", self.in_work.clone());
        let about = "Memory of the server that is in use";
        all.register_with_unit("resident_memory", about, Unit::Bytes, self.memory.clone());
        all.register("queue_depth", "Requests that wait for their model", self.queue.clone());
        all.register("batch_samples", "Samples that were computed at a time", self.batches.clone());
        let about = "Time that a batch was computed";
        all.register_with_unit("compute", about, Unit::Seconds, self.computing.clone());
        all.register("predictions", "Samples that were predicted", self.predictions.clone());
        all.register("points", "Points that were predicted", self.points.clone());
        all.register("failed_computations", "Computations that ended in a failure", self.failures.clone());
    }

    /// A request was answered; `route` is its pattern, and unknown methods are one, so that there are few counters.
    pub(crate) fn answered(&self, method: &str, route: &str, status: u16, elapsed: Duration) {
        let method = if METHODS.contains(&method) { method } else { "other" };
        let (method, route) = (method.to_owned(), route.to_owned());
        self.seconds.get_or_create(&Route { route: route.clone() }).observe(elapsed.as_secs_f64());
        self.requests.get_or_create(&Asked { method, route, status }).inc();
    }

    /// Requests in work now.
    pub(crate) fn in_work(&self, count: usize) {
        self.in_work.set(count as i64);
    }

    /// The counters of one model.
    pub(crate) fn of_model(&self, model: &str, version: &str) -> ModelMetrics {
        let labels = OfModel { model: model.to_owned(), version: version.to_owned() };
        ModelMetrics {
            queue: self.queue.get_or_create_owned(&labels),
            batches: self.batches.get_or_create_owned(&labels),
            computing: self.computing.get_or_create_owned(&labels),
            predictions: self.predictions.get_or_create_owned(&labels),
            points: self.points.get_or_create_owned(&labels),
            failures: self.failures.get_or_create_owned(&labels),
        }
    }

    /// All of it as text.
    pub(crate) fn text(&self) -> Result<String, std::fmt::Error> {
        self.memory.set(resident_memory().unwrap_or(0) as i64);
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}

/// The counters of one model.
#[derive(Clone)]
pub(crate) struct ModelMetrics {
    queue: Gauge,
    batches: Histogram,
    computing: Histogram,
    predictions: Counter,
    points: Counter,
    failures: Counter,
}

impl ModelMetrics {
    pub(crate) fn waiting(&self, count: usize) {
        self.queue.set(count as i64);
    }

    pub(crate) fn computed(&self, samples: usize, points: usize, elapsed: Duration) {
        self.batches.observe(samples as f64);
        self.computing.observe(elapsed.as_secs_f64());
        self.predictions.inc_by(samples as u64);
        self.points.inc_by(points as u64);
    }

    pub(crate) fn failed(&self) {
        self.failures.inc();
    }
}

/// Bytes of memory that this process has in use, where the system tells.
pub fn resident_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn methods_that_http_does_not_know_are_one_counter() {
        let metrics = Metrics::new();
        for number in 0..100 {
            metrics.answered(&format!("BREW{number}"), "other", 405, Duration::ZERO);
        }
        metrics.answered("GET", "other", 404, Duration::ZERO);
        let text = metrics.text().unwrap();
        assert_eq!(text.lines().filter(|line| line.starts_with("lamo_requests_total")).count(), 2, "{text}");
        assert!(text.contains("lamo_requests_total{method=\"other\",route=\"other\",status=\"405\"} 100"), "{text}");
    }
}
