//! A Ctrl-C that loses nothing.

use anyhow::{Context, Result};
use lamo::workflow::Cancel;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// A second signal so soon after the first is the same request: `timeout` sends one to the process and one to its group.
const SAME: Duration = Duration::from_secs(1);

/// Cancelled by the first Ctrl-C or polite kill, on which the job finishes `what`; the second one ends the process.
pub(crate) fn stop_on_request(what: &'static str) -> Result<Cancel> {
    let cancel = Cancel::new();
    let (handle, mut first) = (cancel.clone(), None::<Instant>);
    ctrlc::set_handler(move || match first {
        Some(first) if first.elapsed() < SAME => {}
        Some(_) => std::process::exit(1),
        None => {
            first = Some(Instant::now());
            handle.cancel();
            if std::io::stderr().is_terminal() {
                let _ = writeln!(std::io::stderr(), "\nfinishing {what}; press Ctrl-C again to stop at once");
            }
        }
    })
    .context("listening for Ctrl-C")?;
    Ok(cancel)
}
