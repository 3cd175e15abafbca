//! Times of snapshots.

use crate::error::Refusal;

/// Refuses times that are not finite, and times that are not later than the ones before.
pub(super) fn require_growing(clock: &[f64]) -> Result<(), Refusal> {
    let refuse = |found: String| Err(Refusal::new("times", "finite times, each later than the one before", found));
    if let Some(time) = clock.iter().find(|time| !time.is_finite()) {
        return refuse(time.to_string());
    }
    clock
        .windows(2)
        .find(|pair| pair[0] >= pair[1])
        .map_or(Ok(()), |pair| refuse(format!("{} after {}", pair[1], pair[0])))
}
