//! `lamo paper show`: tables as text, figures as numbers, pictures as files, and everything as one page.

use super::figures::{drawing, spent};
use super::table::{Filled, ours_text, published_text};
use super::{Choice, Gathered, facts, insight, page, theory};
use crate::commands::{make_folder, require_extension, say, write_file};
use crate::text::short;
use anyhow::Result;
use clap::Args;
use lamo::Error;
use lamo::error::counted;
use lamo::paper::published::Value;
use lamo::paper::{Artifact, Content, Effort, Entry, Fact, Panel, Results, Spending, View, printed};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// `lamo paper show`
#[derive(Args)]
pub(crate) struct Show {
    /// Tables and figures, as T1 or F2; all unless given.
    artifacts: Vec<String>,
    #[command(flatten)]
    pub(super) grid: Choice,
    /// Write one self-contained page.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write each figure and table as SVG and PNG, light and dark, and the tables also as CSV, into this folder.
    #[arg(long, value_name = "DIR")]
    pictures: Option<PathBuf>,
}

pub(super) fn run(options: &Show) -> Result<()> {
    if let Some(page) = &options.html {
        require_extension(page, "html")?;
    }
    let choice = &options.grid;
    let gathered = choice.gather();
    let effort = choice.effort(&gathered.results)?;
    let artifacts = choice.artifacts(&options.artifacts, effort)?;
    if let Some(folder) = &options.pictures {
        make_folder(folder)?;
        artifacts.iter().try_for_each(|artifact| write_pictures(folder, artifact, &gathered))?;
    }
    if let Some(path) = &options.html {
        write_file(path, page::page(&artifacts, &gathered, effort)?.as_bytes())?;
    }
    if choice.json {
        let shown = artifacts.iter().map(|artifact| json(artifact, &gathered)).collect::<Result<Vec<_>, _>>()?;
        return say(&serde_json::to_string_pretty(&json!({ "grid": effort.name(), "artifacts": shown }))?);
    }
    if options.html.is_none() && options.pictures.is_none() {
        return artifacts.iter().try_for_each(|artifact| show(artifact, &gathered, effort));
    }
    let written =
        [options.html.as_ref().map(|path| ("page", path)), options.pictures.as_ref().map(|path| ("pictures", path))];
    written.into_iter().flatten().try_for_each(|(what, path)| say(&format!("{what}: {}", path.display())))
}

fn show(artifact: &Artifact, gathered: &Gathered, effort: Effort) -> Result<()> {
    say(&format!("{}: {}", artifact.name(), artifact.title))?;
    let results = &gathered.results;
    say(&caption(artifact, results, effort)?)?;
    match &artifact.content {
        Content::Table(table) => say(&Filled::new(table, results)?.text())?,
        Content::Curves(panels) => panels.iter().try_for_each(|panel| show_panel(panel, results))?,
        Content::Bars(all) | Content::Bubbles(all) => all.iter().try_for_each(|one| show_spending(one, gathered))?,
        Content::Matrices(portrait) => say_lines(&insight::words(&portrait.cells, gathered)?)?,
        Content::Similarity(panels) => {
            for panel in panels {
                say(&panel.panel.title)?;
                say_lines(&insight::words(&panel.cells, gathered)?)?;
            }
        }
        Content::Theory => say(&theory::text())?,
        Content::Fields(..) | Content::Orders => {}
        Content::Gap(sentence) => say(sentence)?,
        Content::Facts(_) | Content::Growth(_) => {
            if let Some(words) = facts::words(&artifact.content, gathered)? {
                say(&facts::text(&words))?;
            }
        }
    }
    if let (Some(gap), None) = (gap(&artifact.content), drawing(&artifact.content, gathered)?) {
        say(gap)?;
    } else if matches!(artifact.content, Content::Fields(..) | Content::Matrices(_) | Content::Orders) {
        say("a picture: lamo paper show --html FILE, or --pictures DIR")?;
    }
    artifact.notes.iter().try_for_each(|note| say(&format!("note: {note}")))?;
    say("")
}

fn say_lines(lines: &[String]) -> Result<()> {
    lines.iter().try_for_each(|line| say(line))
}

/// What stands in place of a picture that needs runs.
pub(super) fn gap(content: &Content) -> Option<&'static str> {
    match content {
        Content::Fields(..) => {
            Some("No picture yet: it needs both runs of Table 1 on one of its benchmarks (lamo paper run T1).")
        }
        Content::Matrices(_) => {
            Some("No matrices yet: they need the runs of Table 1 on its benchmark (lamo paper run F9 F10).")
        }
        _ => None,
    }
}

/// Seconds per epoch, of inference, and gigabytes.
fn show_spending(one: &Spending, gathered: &Gathered) -> Result<()> {
    let resolved = one.cell.resolve()?;
    let [training, memory, million] = gathered.results.of(&resolved).map(spent).unwrap_or_default();
    let inference = View::find(&gathered.folders, &resolved).and_then(|view| view.inference_seconds);
    let word = |value: Option<f64>| value.map_or("-".to_owned(), short);
    let line = |what: &str, [training, inference, memory, million]: [Option<f64>; 4]| {
        format!(
            "{what:<28} training {:>8} s/epoch, inference {:>8} s, memory {:>8} GB, parameters {:>6} million",
            word(training),
            word(inference),
            word(memory),
            word(million)
        )
    };
    say(&line(&format!("{} {}", one.benchmark, printed(one.model)), [training, inference, memory, million]))?;
    say(&line("  published", [one.training, one.inference, one.memory, one.million]))
}

fn show_panel(panel: &Panel, results: &Results) -> Result<()> {
    say(&panel.title)?;
    for series in &panel.series {
        let ours = |(x, cells): &(f64, Vec<_>)| {
            let entry = Entry { published: None, cells: cells.clone() };
            results.measure(&entry).map(|value| format!("{} {}", short(*x), ours_text(value)))
        };
        let ours = series.ours.iter().map(ours).collect::<Result<Vec<_>, Error>>()?;
        let published = series
            .published
            .iter()
            .map(|(x, value)| format!("{} {}", short(*x), published_text(Some(Value::plain(value.value)))));
        say(&format!("  {:<11} {}", printed(series.model), ours.join(", ")))?;
        say(&format!("    published {}", published.collect::<Vec<_>>().join(", ")))?;
    }
    Ok(())
}

/// Epochs and seeds of ours, what is missing, and how the published values were made. No difference of the two is printed: their
/// schedules differ.
pub(super) fn caption(artifact: &Artifact, results: &Results, effort: Effort) -> Result<String, Error> {
    let (mut there, mut all) = (0, 0);
    let mut epochs: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    let (mut machines, mut seeds): (Vec<String>, Vec<u64>) = (Vec::new(), Vec::new());
    for cell in artifact.cells() {
        let resolved = cell.resolve()?;
        all += 1;
        let Some(receipt) = results.of(&resolved) else { continue };
        there += 1;
        epochs.entry(cell.benchmark).or_default().push(receipt.epoch);
        let machine = receipt.machine.gpu.clone().map(|gpu| format!("{gpu}, {}", receipt.machine.precision));
        let machine = machine.unwrap_or_else(|| "CPU".to_owned());
        if !machines.contains(&machine) {
            machines.push(machine);
        }
        if !seeds.contains(&cell.seed) {
            seeds.push(cell.seed);
        }
    }
    if all == 0 {
        let sentence = match artifact.content {
            Content::Theory => "Computed now, in double precision, by the operators of this library.",
            Content::Facts(_) | Content::Orders => "This needs no training. Published: grey.",
            _ => "Ours: none. Published: grey.",
        };
        return Ok(sentence.to_owned());
    }
    if there == 0 {
        return Ok(format!(
            "Ours: none of {} is there yet (grid {}). Published: grey.",
            counted(all, "cell"),
            effort.name()
        ));
    }
    let range = |list: &Vec<usize>| {
        let (least, most) = (list.iter().min().copied().unwrap_or(0), list.iter().max().copied().unwrap_or(0));
        if least == most { least.to_string() } else { format!("{least} to {most}") }
    };
    let epochs: Vec<String> = epochs.iter().map(|(benchmark, list)| format!("{benchmark} {}", range(list))).collect();
    seeds.sort_unstable();
    let seeds: Vec<String> = seeds.iter().map(u64::to_string).collect();
    let gap = if there < all { format!("; {} of {} are there", there, counted(all, "cell")) } else { String::new() };
    Ok(format!(
        "Ours: grid {}; epochs: {}; seeds: {}; {}{gap}. Published: grey, 500 epochs on an A100.",
        effort.name(),
        epochs.join(", "),
        seeds.join(", "),
        machines.join(" and ")
    ))
}

fn write_pictures(folder: &Path, artifact: &Artifact, gathered: &Gathered) -> Result<()> {
    let file = |ending: &str| folder.join(format!("{}{ending}", artifact.id));
    let mut drawn = drawing(&artifact.content, gathered)?;
    if let Content::Table(table) = &artifact.content {
        let filled = Filled::new(table, &gathered.results)?;
        write_file(&file(".csv"), filled.csv().as_bytes())?;
        drawn = Some(filled.drawing());
    }
    if let Content::Matrices(portrait) = &artifact.content {
        write_file(&file(".csv"), insight::csv(portrait, gathered)?.as_bytes())?;
    }
    if let Some(words) = facts::words(&artifact.content, gathered)? {
        write_file(&file(".csv"), facts::csv(&words).as_bytes())?;
        drawn = Some(facts::drawing(&words));
    }
    if let Some(drawing) = drawn {
        write_file(&file(".svg"), drawing.svg(artifact.title).as_bytes())?;
        write_file(&file(".png"), &drawing.png(false)?)?;
        write_file(&file("-dark.png"), &drawing.png(true)?)?;
    }
    Ok(())
}

fn json(artifact: &Artifact, gathered: &Gathered) -> Result<serde_json::Value, Error> {
    let results = &gathered.results;
    let value = |entry: &Entry| -> Result<serde_json::Value, Error> {
        let ours = results.measure(entry)?.map(|ours| {
            json!({ "mean": ours.mean, "deviation": ours.deviation, "runs": ours.runs, "asked": ours.asked, "epochs": ours.epochs })
        });
        let published =
            entry.published.map(|value| json!({ "value": value.value, "plus": value.plus, "minus": value.minus }));
        Ok(json!({ "ours": ours, "published": published }))
    };
    let content = match &artifact.content {
        Content::Table(table) => {
            let mut rows = Vec::new();
            for row in &table.rows {
                let entries = row.entries.iter().map(&value).collect::<Result<Vec<_>, _>>()?;
                rows.push(json!({ "group": row.group, "label": row.label, "values": entries }));
            }
            json!({ "columns": table.columns, "rows": rows })
        }
        Content::Curves(panels) => {
            let mut shown = Vec::new();
            for panel in panels {
                for series in &panel.series {
                    let mut points = Vec::new();
                    for (x, cells) in &series.ours {
                        points.push(json!([x, value(&Entry { published: None, cells: cells.clone() })?["ours"]]));
                    }
                    let published: Vec<_> = series.published.iter().map(|(x, value)| json!([x, value.value])).collect();
                    shown.push(
                        json!({ "panel": panel.title, "model": series.model, "ours": points, "published": published }),
                    );
                }
            }
            json!(shown)
        }
        Content::Bars(all) | Content::Bubbles(all) => {
            let mut shown = Vec::new();
            for one in all {
                let resolved = one.cell.resolve()?;
                let [training, memory, million] = results.of(&resolved).map(spent).unwrap_or_default();
                let inference = View::find(&gathered.folders, &resolved).and_then(|view| view.inference_seconds);
                shown.push(json!({
                    "benchmark": one.benchmark, "model": one.model,
                    "ours": { "training": training, "inference": inference, "memory": memory, "million": million },
                    "published": { "training": one.training, "inference": one.inference, "memory": one.memory,
                                   "million": one.million },
                }));
            }
            json!(shown)
        }
        Content::Facts(_) | Content::Growth(_) => {
            let words = facts::words(&artifact.content, gathered)?;
            let row = |(label, row): &(String, Vec<Fact>)| {
                let facts: Vec<_> =
                    row.iter().map(|fact| json!({ "ours": fact.ours, "published": fact.published })).collect();
                json!({ "label": label, "values": facts })
            };
            json!(words.map(
                |words| json!({ "columns": words.columns, "rows": words.rows.iter().map(row).collect::<Vec<_>>() })
            ))
        }
        Content::Fields(..) | Content::Matrices(_) if drawing(&artifact.content, gathered)?.is_none() => {
            json!({ "gap": gap(&artifact.content) })
        }
        Content::Matrices(portrait) => insight::json(&portrait.cells, gathered)?,
        Content::Similarity(panels) => {
            let mut shown = Vec::new();
            for panel in panels {
                let published = panel.panel.series.iter().map(|series| {
                    let points: Vec<_> = series.published.iter().map(|(x, value)| json!([x, value.value])).collect();
                    json!({ "model": series.model, "published": points })
                });
                shown.push(json!({ "panel": panel.panel.title, "published": published.collect::<Vec<_>>(),
                                   "ours": insight::json(&panel.cells, gathered)? }));
            }
            json!(shown)
        }
        Content::Theory => theory::json(),
        Content::Fields(..) | Content::Orders => json!({ "picture": true }),
        Content::Gap(sentence) => json!({ "gap": sentence }),
    };
    Ok(json!({ "id": artifact.id, "title": artifact.title, "notes": artifact.notes, "content": content }))
}
