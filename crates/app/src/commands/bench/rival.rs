//! PyTorch in a process of its own, asked for one timed run at a time.

use super::cases::Case;
use anyhow::{Context, Result, anyhow};
use serde::Deserialize;
use serde_json::json;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// The script travels inside the binary, so that an installed `lamo` needs no source tree.
const SCRIPT: &str = include_str!("../../../../../benches/torch_cpu.py");

pub(super) struct Rival {
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

impl Rival {
    /// `None` where there is no python3 with torch.
    pub(super) fn start(threads: usize) -> Result<Option<Rival>> {
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
        let mut rival = Rival { process, requests, answers: BufReader::new(answers), version: String::new() };
        let mut line = String::new();
        if rival.answers.read_line(&mut line).context("reading from python3")? == 0 {
            return Ok(None);
        }
        rival.version = serde_json::from_str::<Hello>(&line).context("the PyTorch script's greeting")?.torch;
        Ok(Some(rival))
    }

    fn ask(&mut self, request: &serde_json::Value) -> Result<String> {
        writeln!(self.requests, "{request}").context("writing to the PyTorch script")?;
        let mut line = String::new();
        let read = self.answers.read_line(&mut line).context("reading from the PyTorch script")?;
        if read == 0 || line.contains("\"error\"") {
            return Err(anyhow!("the PyTorch script failed on {request}: {}", line.trim()));
        }
        Ok(line)
    }

    fn request(&mut self, case: &Case, repeat: usize) -> Result<Timing> {
        let mut request = case.sizes();
        request["case"] = json!(case.name);
        request["repeat"] = json!(repeat);
        serde_json::from_str(&self.ask(&request)?).context("a timing from the PyTorch script")
    }

    /// Runs a case several times and returns the time of the last.
    pub(super) fn seconds(&mut self, case: &Case, repeat: usize) -> Result<f64> {
        self.request(case, repeat)?.seconds.last().copied().context("the PyTorch script timed nothing")
    }

    /// The script's check of a case.
    pub(super) fn check(&mut self, case: &Case) -> Result<f64> {
        Ok(self.request(case, 1)?.check.unwrap_or(f64::NAN))
    }

    pub(super) fn memory(&mut self) -> Result<Memory> {
        serde_json::from_str(&self.ask(&json!({ "memory": true }))?).context("memory from the PyTorch script")
    }
}

impl Drop for Rival {
    fn drop(&mut self) {
        let _ = writeln!(self.requests, "{}", json!({ "quit": true }));
        let _ = self.process.wait();
    }
}
