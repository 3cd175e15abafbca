//! PyTorch in a process of its own, which times one run per request.

use super::cases::Case;
use anyhow::{Context, Result, bail};
use serde::Deserialize;
use serde_json::json;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The binary contains the script, so that an installed `lamo` needs no source tree.
const SCRIPT: &str = include_str!("../../../../../benches/torch_cpu.py");

/// The script, running.
pub(super) struct Torch {
    process: Child,
    requests: ChildStdin,
    answers: BufReader<ChildStdout>,
    pub(super) version: String,
}

#[derive(Deserialize)]
struct Hello {
    torch: String,
}

#[derive(Deserialize)]
struct Timing {
    seconds: Vec<f64>,
    check: Option<f64>,
}

#[derive(Deserialize)]
pub(super) struct Memory {
    pub(super) resident_bytes: u64,
    pub(super) peak_bytes: u64,
}

impl Torch {
    /// Starts the script; `None` if there is no python3 with torch.
    pub(super) fn start(threads: usize) -> Result<Option<Torch>> {
        let spawned = Command::new("python3")
            .args(["-u", "-c", SCRIPT, "--threads", &threads.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let Ok(mut process) = spawned else { return Ok(None) };
        let (Some(requests), Some(answers)) = (process.stdin.take(), process.stdout.take()) else {
            return Ok(None);
        };
        let mut torch = Torch { process, requests, answers: BufReader::new(answers), version: String::new() };
        let mut line = String::new();
        if torch.answers.read_line(&mut line).context("python3 cannot be read")? == 0 {
            return Ok(None);
        }
        torch.version =
            serde_json::from_str::<Hello>(&line).context("the first line of the PyTorch script is malformed")?.torch;
        Ok(Some(torch))
    }

    fn ask(&mut self, request: &serde_json::Value) -> Result<String> {
        writeln!(self.requests, "{request}").context("the PyTorch script cannot be written to")?;
        let mut line = String::new();
        let read = self.answers.read_line(&mut line).context("the PyTorch script cannot be read")?;
        if read == 0 || line.contains("\"error\"") {
            bail!("the PyTorch script failed on {request}: {}", line.trim());
        }
        Ok(line)
    }

    fn request(&mut self, case: &Case, repeat: usize) -> Result<Timing> {
        let mut request = case.sizes();
        request["case"] = json!(case.name);
        request["repeat"] = json!(repeat);
        serde_json::from_str(&self.ask(&request)?).context("a timing of the PyTorch script is malformed")
    }

    /// Runs a case several times; the seconds of the last run.
    pub(super) fn seconds(&mut self, case: &Case, repeat: usize) -> Result<f64> {
        self.request(case, repeat)?.seconds.last().copied().context("the PyTorch script returned no time")
    }

    /// The check of a case, as the script computes it.
    pub(super) fn check(&mut self, case: &Case) -> Result<f64> {
        Ok(self.request(case, 1)?.check.unwrap_or(f64::NAN))
    }

    pub(super) fn memory(&mut self) -> Result<Memory> {
        serde_json::from_str(&self.ask(&json!({ "memory": true }))?)
            .context("the memory of the PyTorch script is malformed")
    }
}

impl Drop for Torch {
    fn drop(&mut self) {
        let _ = writeln!(self.requests, "{}", json!({ "quit": true }));
        let _ = self.process.wait();
    }
}
