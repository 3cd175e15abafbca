//! Windows of a time series: a trajectory without samples is cut into samples of `window + horizon` snapshots, the first
//! `window` of which are given and the rest predicted.
//!
//! ```text
//! snapshots   0 1 2 3 4 5 6 7 8 9        window 2, horizon 1, step 1: eight samples of three snapshots
//! train      [0 1 2] [1 2 3] [2 3 4]     they end before the first test sample begins
//! dropped            [3 4 5] [4 5 6]     they share snapshots with both sides
//! test                       [5 6 7] …
//! ```

use crate::data::dataset::Error;
use std::ops::Range;

/// How trajectories are cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Windows {
    /// Snapshots given.
    pub window: usize,
    /// Snapshots to predict.
    pub horizon: usize,
    /// Distance of the first snapshots of two samples.
    pub step: usize,
}

impl Windows {
    /// Refuses windows without snapshots and steps of 0.
    pub(super) fn check(self) -> Result<(), Error> {
        for (what, found) in [("--window", self.window), ("--horizon", self.horizon), ("--stride", self.step)] {
            if found == 0 || found > 1 << 16 {
                let expected = "1 to 65536 snapshots".to_owned();
                return Err(Error::Number { what, expected, found: found.to_string() });
            }
        }
        Ok(())
    }

    /// Snapshots of a sample.
    pub(super) fn length(self) -> usize {
        self.window + self.horizon
    }

    /// Samples of a trajectory with this many snapshots.
    pub(super) fn count(self, snapshots: usize) -> usize {
        snapshots.checked_sub(self.length()).map_or(0, |rest| rest / self.step + 1)
    }

    /// The snapshots of some consecutive samples of one trajectory.
    pub(super) fn snapshots(self, samples: &Range<usize>) -> Range<usize> {
        match samples.is_empty() {
            true => 0..0,
            false => samples.start * self.step..(samples.end - 1) * self.step + self.length(),
        }
    }

    /// How many of the first samples of a trajectory end before sample `first` begins.
    pub(super) fn before(self, first: usize) -> usize {
        self.count(first * self.step).min(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_before_a_border_share_no_snapshot_with_those_behind_it() {
        for (window, horizon, step, snapshots) in
            [(2, 1, 1, 10), (10, 10, 1, 201), (3, 4, 2, 50), (1, 1, 5, 23), (2, 2, 7, 4)]
        {
            let windows = Windows { window, horizon, step };
            let count = windows.count(snapshots);
            assert!(windows.snapshots(&(0..count)).end <= snapshots);
            assert!(windows.snapshots(&(0..count + 1)).end > snapshots, "one more does not fit");
            for first in 0..count {
                let train = windows.before(first);
                let begin = windows.snapshots(&(first..count)).start;
                assert!(windows.snapshots(&(0..train)).end <= begin, "{windows:?} {first}");
                assert!(train == first || windows.snapshots(&(train..train + 1)).end > begin, "{windows:?} {first}");
            }
        }
        assert_eq!(Windows { window: 10, horizon: 10, step: 1 }.count(19), 0);
    }
}
