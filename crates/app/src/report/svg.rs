//! Charts as SVG inside the page. They take their colours and font from the page, so they follow light and dark mode.

use super::html::escape;
use crate::plot::{Axis, Scaling};
use crate::text::short;
use std::fmt::Write;

const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 270.0;
/// Margins of the plot: left, right, top, bottom.
const MARGIN: [f64; 4] = [54.0, 14.0, 14.0, 40.0];

/// How the points of a series are drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Shape {
    Line,
    /// A bar from the axis to each point, as wide as the distance between points.
    Bars,
}

/// Points of one colour.
pub(super) struct Series {
    pub(super) name: &'static str,
    pub(super) shape: Shape,
    pub(super) points: Vec<(f64, f64)>,
}

/// A chart with its axes.
pub(super) struct Chart {
    pub(super) title: &'static str,
    /// Name of the horizontal axis.
    pub(super) horizontal: &'static str,
    pub(super) scaling: Scaling,
    /// Whether the vertical axis is in percent.
    pub(super) percent: bool,
    /// Whether the horizontal and the vertical axis have whole numbers only.
    pub(super) integers: [bool; 2],
    pub(super) series: Vec<Series>,
    /// A dashed vertical line at this x, with its name.
    pub(super) mark: Option<(f64, String)>,
}

impl Chart {
    /// The chart; empty if there is nothing to draw.
    pub(super) fn draw(&self) -> String {
        let drawable =
            |(x, y): &&(f64, f64)| x.is_finite() && y.is_finite() && (self.scaling == Scaling::Linear || *y > 0.0);
        let points: Vec<(f64, f64)> =
            self.series.iter().flat_map(|s| s.points.iter().filter(drawable)).copied().collect();
        if points.is_empty() {
            return String::new();
        }
        let ends = |values: &mut dyn Iterator<Item = f64>| {
            values.fold([f64::INFINITY, f64::NEG_INFINITY], |[least, most], value| [least.min(value), most.max(value)])
        };
        let bars =
            self.series.iter().find(|series| series.shape == Shape::Bars).map_or(0.0, |series| step(series) / 2.0);
        let [left, right] = ends(&mut points.iter().map(|point| point.0));
        let horizontal = Axis::linear([left - bars, right + bars], self.integers[0]);
        let [low, high] = ends(&mut points.iter().map(|point| point.1));
        let vertical = match self.scaling {
            Scaling::Logarithmic => Axis::logarithmic([low, high]),
            Scaling::Linear => Axis::linear([0f64.min(low), high * 1.04], self.integers[1]),
        };
        let x = |value: f64| MARGIN[0] + horizontal.share(value) * (WIDTH - MARGIN[0] - MARGIN[1]);
        let y =
            |value: f64| HEIGHT - MARGIN[3] - vertical.share(value).clamp(0.0, 1.0) * (HEIGHT - MARGIN[2] - MARGIN[3]);
        let mut out = format!("<figure class=\"chart\"><figcaption>{}", escape(self.title));
        if self.series.len() > 1 {
            let key =
                |(index, series): (usize, &Series)| format!("<span class=\"key k{index}\">{}</span>", series.name);
            out += &self.series.iter().enumerate().map(key).collect::<String>();
        }
        let _ = write!(
            out,
            "</figcaption><svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-label=\"{}\">",
            escape(self.title)
        );
        self.axes(&mut out, (&horizontal, &x), (&vertical, &y));
        for (index, series) in self.series.iter().enumerate() {
            let drawn = series.points.iter().filter(drawable);
            match series.shape {
                Shape::Line => {
                    let path: Vec<_> = drawn.map(|&(at, value)| format!("{:.1},{:.1}", x(at), y(value))).collect();
                    let _ = write!(out, "<polyline class=\"line k{index}\" points=\"{}\"/>", path.join(" "));
                    if let [only] = path.as_slice() {
                        let (cx, cy) = only.split_once(',').unwrap_or_default();
                        let _ = write!(out, "<circle class=\"dot k{index}\" cx=\"{cx}\" cy=\"{cy}\" r=\"3\"/>");
                    }
                }
                Shape::Bars => {
                    let half = step(series) / 2.0;
                    for &(at, value) in drawn {
                        let (from, to, top) = (x(at - half) + 0.5, x(at + half) - 0.5, y(value));
                        let (width, height) = ((to - from).max(1.0), HEIGHT - MARGIN[3] - top);
                        let _ = write!(
                            out,
                            "<rect class=\"bar k{index}\" x=\"{from:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
                        );
                    }
                }
            }
        }
        if let Some((at, name)) = &self.mark {
            let (at, top, bottom) = (x(*at), MARGIN[2], HEIGHT - MARGIN[3]);
            let (anchor, gap) = if at > 0.65 * WIDTH { ("end", -6.0) } else { ("start", 6.0) };
            let _ = write!(
                out,
                "<line class=\"mark\" x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{top}\" y2=\"{bottom}\"/>\
                 <text class=\"note\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>",
                at + gap,
                top + 10.0,
                escape(name)
            );
        }
        out + "</svg></figure>"
    }

    /// Draws the axes; each comes with the function from a value to a coordinate.
    fn axes(&self, out: &mut String, horizontal: (&Axis, &dyn Fn(f64) -> f64), vertical: (&Axis, &dyn Fn(f64) -> f64)) {
        let bottom = HEIGHT - MARGIN[3];
        for value in &vertical.0.ticks {
            let at = (vertical.1)(*value);
            let label = if self.percent { format!("{} %", short(100.0 * value)) } else { short(*value) };
            let _ = write!(
                out,
                "<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
                 <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
                MARGIN[0],
                WIDTH - MARGIN[1],
                MARGIN[0] - 7.0,
                at + 4.0
            );
        }
        for value in &horizontal.0.ticks {
            let at = (horizontal.1)(*value);
            let _ = write!(
                out,
                "<text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                bottom + 17.0,
                short(*value)
            );
        }
        let middle = (MARGIN[0] + WIDTH - MARGIN[1]) / 2.0;
        let _ = write!(
            out,
            "<line class=\"axis\" x1=\"{}\" x2=\"{}\" y1=\"{bottom}\" y2=\"{bottom}\"/>\
             <text class=\"name\" x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            MARGIN[0],
            WIDTH - MARGIN[1],
            HEIGHT - 6.0,
            escape(self.horizontal)
        );
    }
}

/// The distance between the points of a series.
fn step(series: &Series) -> f64 {
    match series.points.as_slice() {
        [first, second, ..] => (second.0 - first.0).abs(),
        _ => 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chart_omits_points_that_cannot_be_drawn() {
        let chart = |points: Vec<(f64, f64)>| Chart {
            title: "a < b",
            horizontal: "epoch",
            scaling: Scaling::Logarithmic,
            percent: false,
            integers: [true, false],
            series: vec![Series { name: "train", shape: Shape::Line, points }],
            mark: None,
        };
        let drawn = chart(vec![(1.0, 0.1), (2.0, f64::NAN), (3.0, 0.0), (4.0, 0.01)]).draw();
        assert!(drawn.contains("a &lt; b") && !drawn.contains("NaN") && !drawn.contains("inf"), "{drawn}");
        let line = drawn.split("points=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap();
        assert_eq!(line.split(' ').count(), 2);
        assert_eq!(chart(vec![(1.0, 0.0)]).draw(), "");
    }
}
