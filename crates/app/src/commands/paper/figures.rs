//! The drawings of an artifact, for the page and for files.

use crate::plot::{Curve, CurvePanel, Drawing, Ink, Marker, curve_panels};
use lamo::Error;
use lamo::paper::{Content, Entry, Panel, Results, Series, printed};

/// Errors are drawn in thousandths, as in the paper.
const FACTOR: f64 = 1e3;

/// The drawing of an artifact, if it has one.
pub(super) fn drawing(content: &Content, results: &Results) -> Result<Option<Drawing>, Error> {
    Ok(match content {
        Content::Curves(panels) => {
            let panels = panels.iter().map(|panel| filled(panel, results)).collect::<Result<Vec<_>, _>>()?;
            Some(curve_panels(&panels, if panels.len() > 4 { 3 } else { 2 }))
        }
        Content::Table(_) | Content::Gap(_) => None,
    })
}

fn filled(panel: &Panel, results: &Results) -> Result<CurvePanel, Error> {
    let mut curves = Vec::new();
    for series in &panel.series {
        let points = ours(series, results)?;
        let name = printed(series.model);
        let (ink, marker) = look(series.model);
        curves.push(Curve { label: name.to_owned(), ink, marker, hollow: false, points });
        let published = series
            .published
            .iter()
            .map(|(x, value)| [*x, FACTOR * value.value, FACTOR * value.plus, FACTOR * value.minus]);
        let label = format!("{name}, published");
        curves.push(Curve { label, ink: Ink::Published, marker, hollow: true, points: published.collect() });
    }
    let (title, horizontal) = (panel.title.clone(), panel.axis.to_owned());
    let vertical = "error × 10³".to_owned();
    Ok(CurvePanel { title, horizontal, logarithmic: panel.logarithmic, vertical, curves })
}

/// Our points that are there, with their deviations.
fn ours(series: &Series, results: &Results) -> Result<Vec<[f64; 4]>, Error> {
    let mut points = Vec::new();
    for (x, cells) in &series.ours {
        let entry = Entry { published: None, cells: cells.clone() };
        if let Some(measured) = results.measure(&entry)? {
            let band = FACTOR * measured.deviation.unwrap_or(0.0);
            points.push([*x, FACTOR * measured.mean, band, band]);
        }
    }
    Ok(points)
}

/// Colour and mark of a model.
pub(super) fn look(model: &str) -> (Ink, Marker) {
    match model {
        "lamo" => (Ink::Orange, Marker::Circle),
        _ => (Ink::Violet, Marker::Square),
    }
}
