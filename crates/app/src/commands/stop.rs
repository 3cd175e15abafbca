//! Ctrl-C and SIGTERM: the job saves its work and stops.

use anyhow::{Context, Result};
use lamo::workflow::Cancel;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// A second signal this soon after the first is the same request: `timeout` signals the process and then its group.
const SAME_REQUEST: Duration = Duration::from_secs(1);

/// The first signal cancels the job, which then finishes `what`; a second one ends the process at once.
pub(crate) fn stop_on_signal(what: &'static str) -> Result<Cancel> {
    let cancel = Cancel::new();
    let (handle, mut first) = (cancel.clone(), None::<Instant>);
    ctrlc::set_handler(move || match first {
        Some(first) if first.elapsed() < SAME_REQUEST => {}
        Some(_) => std::process::exit(1),
        None => {
            first = Some(Instant::now());
            handle.cancel();
            if std::io::stderr().is_terminal() {
                let _ = writeln!(std::io::stderr(), "\nfinishing {what}; press Ctrl-C again to stop at once");
            }
        }
    })
    .context("the handler of Ctrl-C cannot be set")?;
    Ok(cancel)
}
