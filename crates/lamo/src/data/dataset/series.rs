//! Windows of time series, as the parameters of a manifest describe them.
//!
//! ```toml
//! [parameters]
//! window = 10                   # snapshots given
//! horizon = 10                  # snapshots to predict
//! step = 1                      # distance of the first snapshots of two windows
//! series = 182                  # windows of each of several series; [182, 82] where they differ; or absent: one series
//! ```

use super::Manifest;
use toml::Value;

/// Key of the number of windows of each series.
const SERIES: &str = "series";

/// Which windows belong to one time series.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Series {
    /// All.
    One,
    /// So many, in each series.
    Equal(usize),
    /// The number of the first window behind each series.
    Ends(Vec<usize>),
}

impl Series {
    /// The series of a window.
    pub(crate) fn of(&self, window: usize) -> usize {
        match self {
            Series::One => 0,
            Series::Equal(count) => window / (*count).max(1),
            Series::Ends(ends) => ends.partition_point(|&end| end <= window),
        }
    }

    /// The parameter that records how many windows each of several series has.
    pub(crate) fn parameter(counts: &[usize]) -> Option<(String, Value)> {
        let (first, rest) = counts.split_first()?;
        let whole = |count: usize| Value::from(count as i64);
        let value = match rest.iter().all(|count| count == first) {
            true => whole(*first),
            false => counts.iter().map(|&count| whole(count)).collect::<Vec<_>>().into(),
        };
        (!rest.is_empty()).then(|| (SERIES.to_owned(), value))
    }
}

impl Manifest {
    /// Whether a parameter only describes the samples: earlier versions of lamo did not record it.
    pub(super) fn is_new_parameter(key: &str) -> bool {
        key == SERIES
    }

    /// How many windows behind a window of a time series share snapshots with it; `None` where the samples are no windows.
    pub(crate) fn window_gap(&self) -> Option<usize> {
        let number = |key: &str| usize::try_from(self.parameters.get(key)?.as_integer()?).ok();
        let (window, horizon, step) = (number("window")?, number("horizon")?, number("step")?);
        Some(window.saturating_add(horizon).saturating_sub(1) / step.max(1))
    }

    /// Which windows belong to one time series; imports of earlier versions of lamo do not tell several series apart.
    pub(crate) fn series(&self) -> Series {
        let whole = |value: &Value| usize::try_from(value.as_integer()?).ok();
        match self.parameters.get(SERIES) {
            Some(Value::Array(counts)) => {
                let ends = counts.iter().filter_map(whole).scan(0usize, |end, count| {
                    *end = end.saturating_add(count);
                    Some(*end)
                });
                Series::Ends(ends.collect())
            }
            value => value.and_then(whole).map_or(Series::One, Series::Equal),
        }
    }
}
