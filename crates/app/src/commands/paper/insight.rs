//! Figures 9 to 11: hidden matrices and cosines of tokens, from the insights that runs leave beside their receipts.

use super::Gathered;
use super::figures::look;
use crate::commands::explain::share_scale;
use crate::plot::{Curve, CurvePanel, Drawing, Ink, MatrixPicture, MatrixRow, curve_panels, matrix_sheet};
use crate::text::{percent, short};
use lamo::Error;
use lamo::paper::{Cell, Insight, Portrait, Similarity, printed};
use serde_json::{Value, json};
use std::fmt::Write;

/// Matrices side by side, at least and at most.
const ACROSS: [usize; 2] = [4, 8];

fn find(gathered: &Gathered, cell: &Cell) -> Result<Option<Insight>, Error> {
    Ok(Insight::find(&gathered.folders, &cell.resolve()?))
}

/// The insights of Transolver and LaMO that are there, in the order of the paper.
fn both(gathered: &Gathered, [lamo, transolver]: &[Cell; 2]) -> Result<Vec<Insight>, Error> {
    Ok([find(gathered, transolver)?, find(gathered, lamo)?].into_iter().flatten().collect())
}

/// Transolver above, LaMO below, on one scale; `None` where no run has an insight.
pub(super) fn matrices(portrait: &Portrait, gathered: &Gathered) -> Result<Option<Drawing>, Error> {
    let insights = both(gathered, &portrait.cells)?;
    let layers = insights.iter().flat_map(|insight| &insight.layers);
    let scale = share_scale(layers.map(|layer| (layer.side, layer.shares.as_slice())));
    let row = |insight: &Insight| {
        let picture = |(number, layer): (usize, &lamo::paper::InsightLayer)| MatrixPicture {
            title: format!("{}: {:.2}, {:.0} %", number + 1, layer.entropy, 100.0 * layer.heaviest),
            side: layer.side,
            values: layer.shares.clone(),
        };
        let title = format!("{} – layer: row entropy, three heaviest columns", printed(&insight.model));
        MatrixRow { title, scale, matrices: insight.layers.iter().enumerate().map(picture).collect() }
    };
    let across = insights.iter().map(|insight| insight.layers.len()).max().unwrap_or(0).clamp(ACROSS[0], ACROSS[1]);
    Ok((!insights.is_empty()).then(|| matrix_sheet(&insights.iter().map(row).collect::<Vec<_>>(), across)))
}

/// All matrices, entry by entry.
pub(super) fn csv(portrait: &Portrait, gathered: &Gathered) -> Result<String, Error> {
    let mut text = "model,layer,row,column,share\n".to_owned();
    for insight in both(gathered, &portrait.cells)? {
        for (number, layer) in insight.layers.iter().enumerate() {
            for (place, share) in layer.shares.iter().enumerate() {
                let (row, column) = (place / layer.side, place % layer.side);
                let _ = writeln!(text, "{},{},{row},{column},{share}", insight.model, number + 1);
            }
        }
    }
    Ok(text)
}

/// Numbers of each layer, for the terminal.
pub(super) fn words(cells: &[Cell; 2], gathered: &Gathered) -> Result<Vec<String>, Error> {
    let word = |value: Option<f64>| value.map_or("-".to_owned(), short);
    let mut lines = Vec::new();
    for insight in both(gathered, cells)? {
        for (number, layer) in insight.layers.iter().enumerate() {
            lines.push(format!(
                "  {:<11} layer {}: row entropy {}, three heaviest columns {}, cosine {} (before the mixer {}, before the training {})",
                printed(&insight.model),
                number + 1,
                short(layer.entropy),
                percent(layer.heaviest),
                word(layer.cosine[1]),
                word(layer.cosine[0]),
                word(layer.start[1])
            ));
        }
    }
    Ok(lines)
}

/// The same for scripts.
pub(super) fn json(cells: &[Cell; 2], gathered: &Gathered) -> Result<Value, Error> {
    let insight = |insight: &Insight| {
        let layer = |layer: &lamo::paper::InsightLayer| {
            json!({ "tokens": layer.tokens, "row_entropy": layer.entropy, "three_heaviest_columns": layer.heaviest,
                    "cosine_before": layer.cosine[0], "cosine_after": layer.cosine[1],
                    "cosine_before_training": layer.start[1] })
        };
        json!({ "model": insight.model, "sample": insight.sample, "averaged": insight.averaged, "tested": insight.tested,
                "layers": insight.layers.iter().map(layer).collect::<Vec<_>>() })
    };
    Ok(both(gathered, cells)?.iter().map(insight).collect())
}

/// Cosines over the layers: ours after the mixer, dashed before it, and the published ones.
pub(super) fn cosines(panels: &[Similarity], gathered: &Gathered) -> Result<Drawing, Error> {
    let mut drawn = Vec::new();
    for Similarity { panel, cells } in panels {
        let mut curves = Vec::new();
        for series in &panel.series {
            let (ink, marker) = look(series.model);
            let name = printed(series.model);
            let cell = cells.iter().find(|cell| cell.model == series.model);
            let insight = cell.map(|cell| find(gathered, cell)).transpose()?.flatten();
            let layers = insight.iter().flat_map(|insight| &insight.layers).enumerate();
            let points = |place: usize| {
                let point = layers.clone().filter_map(move |(number, layer)| Some((number, layer.cosine[place]?)));
                point.map(|(number, value)| [number as f64 + 1.0, value, 0.0, 0.0]).collect::<Vec<_>>()
            };
            curves.push(Curve { label: name.to_owned(), ink, marker, hollow: false, points: points(1) });
            curves.push(Curve { label: format!("{name}, before"), ink, marker, hollow: true, points: points(0) });
            let published = series.published.iter().map(|(x, value)| [*x, value.value, 0.0, 0.0]).collect();
            let label = format!("{name}, published");
            curves.push(Curve { label, ink: Ink::Published, marker, hollow: true, points: published });
        }
        drawn.push(CurvePanel {
            title: panel.title.clone(),
            horizontal: panel.axis.to_owned(),
            logarithmic: panel.logarithmic,
            vertical: panel.vertical.0.to_owned(),
            linear: true,
            curves,
        });
    }
    Ok(curve_panels(&drawn, 2))
}
