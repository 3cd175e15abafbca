//! `lamo data export`: the public files of a benchmark from a data set.

use crate::commands::progress::Meter;
use crate::commands::say;
use crate::commands::stop::stop_on_signal;
use anyhow::Result;
use clap::Args;
use lamo::workflow::{self, Event, ExportRequest, Session};
use std::path::PathBuf;

/// `lamo data export`
#[derive(Args)]
pub(crate) struct Export {
    /// Folder of the data set.
    dataset: PathBuf,
    /// The benchmark whose files are written; the problem of the data set unless given.
    #[arg(long = "as", value_name = "BENCHMARK")]
    benchmark: Option<String>,
    /// Folder for the files.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

pub(crate) fn run(options: &Export) -> Result<()> {
    let Export { dataset, benchmark, out } = options;
    let meter = Meter::of_bytes("export");
    let listener = |event: Event<'_>| {
        if let Event::Exporting(transfer) = event {
            meter.show(transfer);
        }
    };
    let cancel = stop_on_signal("nothing: no file is kept")?;
    let request = ExportRequest { dataset: dataset.clone(), benchmark: benchmark.clone(), out: out.clone() };
    let written = workflow::export(&request, &Session { listener: &listener, cancel, threads: 1 });
    meter.clear();
    written?.iter().try_for_each(|path| say(&path.display().to_string()))
}
