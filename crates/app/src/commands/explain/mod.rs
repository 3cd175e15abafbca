//! `lamo explain`: hidden matrices, tokens, errors and influences of one test sample, as a page and as arrays.

mod drawings;
mod files;
mod page;

pub(crate) use drawings::share_scale;

use super::evaluate::{refuse_occupied, with_meter};
use super::{make_folder, say, start_threads, write_file};
use crate::text::{percent, short};
use anyhow::Result;
use clap::Args;
use lamo::error::counted;
use lamo::inference::explain::{ALL_ROWS, Explained, SIDE};
use lamo::task::Spread;
use lamo::workflow::{self, ExplainRequest, ExplainedSample};
use lamo_tensor::Device;
use std::path::{Path, PathBuf};

/// The page.
pub(crate) const PAGE: &str = "explain.html";
/// The numbers.
const NUMBERS: &str = "explain.json";

/// `lamo explain`
#[derive(Args)]
pub(crate) struct Explain {
    /// Run folder, checkpoint file, name of a pretrained model, or a model folder made by lamo import, which needs --data.
    model: PathBuf,
    /// Which of the test samples, counted from 0.
    #[arg(long, value_name = "K", default_value_t = 0)]
    sample: usize,
    /// Ask about the output at this point, counted from 0; the point with the largest error unless given.
    #[arg(long, value_name = "P")]
    point: Option<usize>,
    /// Ask about this output channel, counted from 0.
    #[arg(long, value_name = "C", default_value_t = 0)]
    channel: usize,
    /// Use the test samples of this data set instead of the run's own.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Folder for the page and the arrays. The default is explain inside a run folder, and ./explain for other models.
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Where to compute: cpu, cuda, cuda:1.
    #[arg(long, value_name = "D", default_value = "cpu")]
    device: Device,
    /// Number of threads; one per core unless given.
    #[arg(long, value_name = "T", value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
    /// Print the numbers as JSON on standard output.
    #[arg(long)]
    pub(crate) json: bool,
}

pub(crate) fn run(options: &Explain) -> Result<()> {
    let threads = start_threads(options.threads)?;
    let inside = options.model.join(lamo::run::EXPERIMENT).is_file();
    let usual = if inside { options.model.join("explain") } else { PathBuf::from("explain") };
    let folder = options.out.clone().unwrap_or(usual);
    refuse_occupied(&folder)?;
    let request = ExplainRequest {
        model: options.model.clone(),
        data: options.data.clone(),
        sample: options.sample,
        point: options.point,
        channel: options.channel,
        device: options.device,
    };
    let explained = with_meter(options.json, threads, |session| Ok(workflow::explain(&request, session)?))?;
    let numbers = write(&explained, options.sample, &folder)?;
    if options.json {
        return say(numbers.trim_end());
    }
    say(&summary(&explained, options.sample))?;
    say(&format!("page: {}", folder.join(PAGE).display()))
}

/// Writes the page, the numbers and the arrays; the numbers as JSON.
pub(crate) fn write(explained: &ExplainedSample, sample: usize, folder: &Path) -> Result<String> {
    make_folder(folder)?;
    let arrays = files::write_arrays(folder, explained)?;
    let numbers = serde_json::to_string_pretty(&files::numbers(explained, sample, &arrays))? + "\n";
    write_file(&folder.join(NUMBERS), numbers.as_bytes())?;
    write_file(&folder.join(PAGE), page::page(explained, sample, &arrays).as_bytes())?;
    Ok(numbers)
}

/// What is explained, in one sentence.
fn subject(explained: &ExplainedSample, sample: usize) -> String {
    let ExplainedSample { trained, problem, number, .. } = explained;
    let model = &trained.operator.model.name;
    format!("{model} on {problem}, test sample {sample} (number {number} of the data set)")
}

/// The time that is explained; empty for a steady problem.
fn moment(explained: &ExplainedSample) -> String {
    let time = &explained.trained.operator.task.time;
    match (time.is_input(), time.mode().is_roll_out()) {
        (true, _) => format!("at time {} of {}, the last", explained.time + 1, explained.samples.times),
        (_, true) => "in the first step of the roll-out".to_owned(),
        _ => String::new(),
    }
}

/// Why there are no matrices, or how large ones are shown.
fn remark(layers: &[Explained]) -> Option<String> {
    let Some(most) = layers.iter().map(|layer| layer.tokens).max() else {
        return Some(
            "This model does not mix tokens, so it has no hidden matrices; errors and influences are shown.".to_owned(),
        );
    };
    let rows = if most > ALL_ROWS {
        format!(", and {} evenly spaced rows are computed", layers[0].rows)
    } else {
        String::new()
    };
    (most > SIDE).then(|| {
        format!("Matrices of {most} tokens are pooled to {SIDE} × {SIDE}: neighbouring tokens share a row and a column{rows}.")
    })
}

/// The result as a person reads it on a terminal.
fn summary(explained: &ExplainedSample, sample: usize) -> String {
    let explanation = &explained.explanation;
    let mut lines = vec![subject(explained, sample)];
    lines.push(format!("error      {}", percent(explained.evaluation.relative_l2)));
    lines.extend(
        Some(moment(explained)).filter(|moment| !moment.is_empty()).map(|moment| format!("time       {moment}")),
    );
    lines.extend(remark(&explanation.layers).map(|remark| format!("note       {remark}")));
    for (number, layer) in explanation.layers.iter().enumerate() {
        let word = |value: Option<f64>| value.map_or("-".to_owned(), short);
        lines.push(format!(
            "layer {:<4} {} of {} and {}: row entropy {}, three heaviest columns {}, cosine of tokens {} before and {} after, matrices \
             off by {}",
            number + 1,
            layer.mixer,
            counted(layer.tokens, "token"),
            counted(layer.heads.len(), "head"),
            short(layer.entropy),
            percent(layer.heaviest),
            word(layer.cosine[0]),
            word(layer.cosine[1]),
            short(layer.residual)
        ));
    }
    // A number of the whole sample is wrong everywhere alike.
    let numbers = explained.trained.operator.task.outputs.iter().all(|output| output.spread == Spread::Sample);
    let worst = explained.regions.iter().max_by(|one, other| one.share.total_cmp(&other.share));
    if let Some(worst) = worst.filter(|_| !numbers) {
        lines.push(format!("error      {} of it in the region {}", percent(worst.share), worst.name));
    }
    let influence = &explanation.influence;
    if let Some(region) = explained.regions.iter().max_by(|one, other| one.influence.total_cmp(&other.influence)) {
        lines.push(format!(
            "influence  on the output at point {}: {} from the region {}",
            influence.point,
            percent(region.influence),
            region.name
        ));
    }
    lines.join("\n")
}
