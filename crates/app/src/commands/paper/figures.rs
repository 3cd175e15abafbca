//! The drawings of an artifact, for the page and for files.

use super::Gathered;
use crate::plot::{
    BarGroup, BarPanel, Bubble, BubblePanel, Curve, CurvePanel, Drawing, Ink, Marker, bar_panels, bubble_panels,
    curve_panels, scan_orders,
};
use lamo::Error;
use lamo::inference::evaluate::Receipt;
use lamo::network::layers::cross_orders;
use lamo::paper::{Content, Entry, Panel, Results, Series, Spending, View, printed};

/// Side of the grid of tokens in the figure of scans.
const SIDE: usize = 8;

/// The drawing of an artifact, if it has one.
pub(super) fn drawing(content: &Content, gathered: &Gathered) -> Result<Option<Drawing>, Error> {
    Ok(match content {
        Content::Curves(panels) => {
            let panels = panels.iter().map(|panel| filled(panel, &gathered.results)).collect::<Result<Vec<_>, _>>()?;
            Some(curve_panels(&panels, if panels.len() > 4 { 3 } else { 2 }))
        }
        Content::Bars(all) => Some(bars(all, gathered)?),
        Content::Bubbles(all) => Some(bubbles(all, gathered)?),
        Content::Fields(subject, portraits) => super::fields::drawing(*subject, portraits, gathered)?,
        Content::Matrices(portrait) => super::insight::matrices(portrait, gathered)?,
        Content::Similarity(panels) => Some(super::insight::cosines(panels, gathered)?),
        Content::Orders => {
            let names = ["row by row", "column by column", "rows backwards", "columns backwards"];
            let orders: Vec<(&str, Vec<u32>)> = names.into_iter().zip(cross_orders(SIDE, SIDE)).collect();
            Some(scan_orders(&orders, [SIDE, SIDE]))
        }
        Content::Table(_) | Content::Facts(_) | Content::Theory | Content::Growth(_) | Content::Gap(_) => None,
    })
}

fn filled(panel: &Panel, results: &Results) -> Result<CurvePanel, Error> {
    let (vertical, factor) = panel.vertical;
    let mut curves = Vec::new();
    for series in &panel.series {
        let points = ours(series, results, factor)?;
        let name = printed(series.model);
        let (ink, marker) = look(series.model);
        curves.push(Curve { label: name.to_owned(), ink, marker, hollow: false, points });
        let published = series
            .published
            .iter()
            .map(|(x, value)| [*x, factor * value.value, factor * value.plus, factor * value.minus]);
        let label = format!("{name}, published");
        curves.push(Curve { label, ink: Ink::Published, marker, hollow: true, points: published.collect() });
    }
    let (title, horizontal, vertical) = (panel.title.clone(), panel.axis.to_owned(), vertical.to_owned());
    Ok(CurvePanel { title, horizontal, logarithmic: panel.logarithmic, vertical, linear: false, curves })
}

/// Our points that are there, with their deviations.
fn ours(series: &Series, results: &Results, factor: f64) -> Result<Vec<[f64; 4]>, Error> {
    let mut points = Vec::new();
    for (x, cells) in &series.ours {
        let entry = Entry { published: None, cells: cells.clone() };
        if let Some(measured) = results.measure(&entry)? {
            let band = factor * measured.deviation.unwrap_or(0.0);
            points.push([*x, factor * measured.mean, band, band]);
        }
    }
    Ok(points)
}

/// Colour and mark of a model.
pub(super) fn look(model: &str) -> (Ink, Marker) {
    match model {
        "lamo" => (Ink::Orange, Marker::Circle),
        "transolver" => (Ink::Violet, Marker::Square),
        "oformer" => (Ink::Blue, Marker::Square),
        "galerkin" => (Ink::Green, Marker::Square),
        "gnot" => (Ink::Brown, Marker::Square),
        _ => (Ink::Rose, Marker::Square),
    }
}

/// What a receipt says about time and memory: seconds per epoch, gigabytes of a step, millions of parameters. A training that
/// shared its GPU has no time of its own.
pub(super) fn spent(receipt: &Receipt) -> [Option<f64>; 3] {
    let costs = &receipt.costs;
    let epoch = (costs.training_seconds - costs.paused_seconds) / receipt.epoch.max(1) as f64;
    let epoch = Some(epoch).filter(|_| costs.together.is_none());
    [epoch, costs.step_bytes.map(|bytes| bytes as f64 * 1e-9), Some(costs.parameters as f64 * 1e-6)]
}

/// Ours at the left, the published ones at the right: the machines differ, so each has its own axis.
fn bars(all: &[Spending], gathered: &Gathered) -> Result<Drawing, Error> {
    let titles = [("Training", "s per epoch"), ("Inference", "s per test set"), ("Memory", "GB")];
    let panel = |(title, unit): (&str, &str), who: &str| BarPanel {
        title: format!("{title}, {who}"),
        unit: unit.to_owned(),
        groups: Vec::new(),
    };
    let mut panels: Vec<BarPanel> =
        titles.into_iter().flat_map(|row| [panel(row, "ours"), panel(row, "published")]).collect();
    for pair in all.chunks(2) {
        let name = short_name(pair[0].benchmark);
        let mut groups: Vec<BarGroup> =
            panels.iter().map(|_| BarGroup { name: name.to_owned(), bars: Vec::new() }).collect();
        for one in pair {
            let resolved = one.cell.resolve()?;
            let [training, memory, _] = gathered.results.of(&resolved).map(spent).unwrap_or_default();
            let inference = View::find(&gathered.folders, &resolved).and_then(|view| view.inference_seconds);
            let (label, ink) = (printed(one.model).to_owned(), look(one.model).0);
            let rows = [[training, one.training], [inference, one.inference], [memory, one.memory]];
            for (row, [ours, published]) in rows.into_iter().enumerate() {
                groups[2 * row].bars.push((label.clone(), ink, false, ours));
                groups[2 * row + 1].bars.push((format!("{label}, published"), shade(one.model), true, published));
            }
        }
        panels.iter_mut().zip(groups).for_each(|(panel, group)| panel.groups.push(group));
    }
    Ok(bar_panels(&panels))
}

/// The name of a benchmark where there is little room.
fn short_name(benchmark: &str) -> &'static str {
    match benchmark {
        "darcy" => "Darcy",
        "navier-stokes" => "N.–S.",
        "airfoil" => "Airfoil",
        "plasticity" => "Plast.",
        "elasticity" => "Elast.",
        _ => "Pipe",
    }
}

/// Published bars: grey for Transolver, the colour of words for LaMO, so that the two can be told apart.
fn shade(model: &str) -> Ink {
    if model == "lamo" { Ink::Text } else { Ink::Published }
}

fn bubbles(all: &[Spending], gathered: &Gathered) -> Result<Drawing, Error> {
    let mut panels = Vec::new();
    let mut benchmarks: Vec<&str> = all.iter().map(|one| one.benchmark).collect();
    benchmarks.dedup();
    for benchmark in benchmarks {
        let (mut ours, mut published) = (Vec::new(), Vec::new());
        for one in all.iter().filter(|one| one.benchmark == benchmark) {
            let (name, ink) = (printed(one.model).to_owned(), look(one.model).0);
            let found = gathered.results.of(&one.cell.resolve()?).map(spent).unwrap_or_default();
            if let [Some(time), Some(memory), Some(million)] = found {
                ours.push(Bubble { name: name.clone(), ink, values: [time, memory, million] });
            }
            if let (Some(time), Some(memory), Some(million)) = (one.training, one.memory, one.million) {
                published.push(Bubble { name, ink: Ink::Published, values: [time, memory, million] });
            }
        }
        panels.push(BubblePanel { title: format!("{benchmark}, ours"), bubbles: ours });
        panels.push(BubblePanel { title: format!("{benchmark}, published (A100)"), bubbles: published });
    }
    Ok(bubble_panels(&panels))
}
