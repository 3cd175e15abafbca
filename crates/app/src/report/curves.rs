//! Fields on a line as SVG: the truth, the prediction over it, and axes. The colours are those of the page.

use super::html::escape;
use crate::commands::evenly;
use crate::plot::Axis;
use crate::plot::{Layout, Map};
use crate::text::short;
use std::fmt::Write;

const WIDTH: f64 = 280.0;
const HEIGHT: f64 = 170.0;
/// Margins of the plot: left, right, top, bottom.
const MARGIN: [f64; 4] = [46.0, 10.0, 10.0, 22.0];
/// Points of a curve that are drawn.
const POINTS: usize = 512;

/// The curves of a map.
pub(super) fn curves(map: &Map) -> String {
    let [left, right, top, bottom] = MARGIN;
    let (width, height) = (WIDTH - left - right, HEIGHT - top - bottom);
    let vertical = Axis::linear([f64::from(map.scale.least), f64::from(map.scale.most)], false);
    let x = |share: f64| left + share * width;
    let y = |value: f64| top + (1.0 - vertical.share(value).clamp(0.0, 1.0)) * height;
    // The script finds the plot and its range here.
    let plot = [left / WIDTH, top / HEIGHT, width / WIDTH, height / HEIGHT].map(|share| format!("{share:.5}"));
    let mut out = format!(
        "<svg class=\"curves\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\" data-plot=\"{}\" \
         data-range=\"{} {}\">",
        escape(&map.title),
        plot.join(" "),
        vertical.least(),
        vertical.most(),
    );
    for tick in &vertical.ticks {
        let at = y(*tick);
        let _ = write!(
            out,
            "<line class=\"grid\" x1=\"{left}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
             <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            WIDTH - right,
            left - 6.0,
            at + 4.0,
            short(*tick)
        );
    }
    let (first, last) = match &map.layout {
        Layout::Line(positions) => {
            let end = |end: Option<&f32>| short(f64::from(end.copied().unwrap_or(0.0)));
            (end(positions.first()), end(positions.last()))
        }
        other => ("0".to_owned(), (other.points().max(1) - 1).to_string()),
    };
    let base = HEIGHT - bottom;
    let _ = write!(
        out,
        "<line class=\"axis\" x1=\"{left}\" x2=\"{}\" y1=\"{base}\" y2=\"{base}\"/>\
         <text x=\"{left}\" y=\"{}\">{first}</text><text x=\"{}\" y=\"{}\" text-anchor=\"end\">{last}</text>",
        WIDTH - right,
        HEIGHT - 6.0,
        WIDTH - right,
        HEIGHT - 6.0
    );
    let shares = map.layout.shares();
    for (index, values) in [Some(&map.values), map.over.as_ref()].into_iter().flatten().enumerate() {
        let corner = |point: usize| {
            let value = f64::from(*values.get(point)?);
            value.is_finite().then(|| format!("{:.1},{:.1}", x(f64::from(shares[point])), y(value)))
        };
        let corners: Vec<String> = evenly(shares.len(), POINTS).into_iter().filter_map(corner).collect();
        let _ = write!(out, "<polyline class=\"line k{index}\" points=\"{}\"/>", corners.join(" "));
    }
    out + "</svg>"
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plot::Scale;

    #[test]
    fn truth_and_prediction_are_two_lines_in_one_plot() {
        let (values, over) = (vec![0.0, 1.0, f32::NAN, 3.0], vec![0.0, 2.0, 3.0, 4.0]);
        let scale = Scale::of(values.iter().chain(&over).copied());
        let map = Map {
            title: "u < v".into(),
            layout: Layout::Grid([4, 1]),
            window: None,
            values,
            over: Some(over),
            scale,
            source: None,
        };
        let drawn = curves(&map);
        let points: Vec<_> =
            drawn.split("points=\"").skip(1).map(|rest| rest.split('"').next().unwrap().split(' ').count()).collect();
        assert_eq!(points, [3, 4], "a value that is not a number is left out");
        assert!(drawn.contains("u &lt; v") && !drawn.contains("NaN"), "{drawn}");
        assert!(
            drawn.contains("270.0,10.0"),
            "the greatest value of the last point is in the upper right corner: {drawn}"
        );
    }
}
