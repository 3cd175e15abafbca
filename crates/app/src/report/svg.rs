//! Charts as SVG inside a page: colours and letters are the page's, so they follow light and dark.

use super::text::{escape, short};
use std::fmt::Write;

const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 270.0;
/// Around the plot: left, right, top, bottom.
const EDGE: [f64; 4] = [54.0, 14.0, 14.0, 40.0];

/// How numbers become lengths.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scaling {
    /// Evenly.
    Linear,
    /// By their logarithm; what is not above zero is left out.
    Logarithmic,
}

/// What is drawn through the points.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Shape {
    /// A line.
    Line,
    /// A bar from the bottom, as wide as the points are apart.
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
    pub(super) across: &'static str,
    pub(super) scaling: Scaling,
    /// Percent signs on the upright axis.
    pub(super) percent: bool,
    /// Whether whole numbers only make sense across and upright.
    pub(super) counts: [bool; 2],
    pub(super) series: Vec<Series>,
    /// A dashed line across the plot at this x, with its name.
    pub(super) mark: Option<(f64, String)>,
}

impl Chart {
    /// The chart, or nothing where there is nothing to draw.
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
        let across = Axis::linear([left - bars, right + bars], self.counts[0]);
        let [low, high] = ends(&mut points.iter().map(|point| point.1));
        let upright = match self.scaling {
            Scaling::Logarithmic => Axis::logarithmic([low, high]),
            Scaling::Linear => Axis::linear([0f64.min(low), high * 1.04], self.counts[1]),
        };
        let x = |value: f64| EDGE[0] + across.share(value) * (WIDTH - EDGE[0] - EDGE[1]);
        let y = |value: f64| HEIGHT - EDGE[3] - upright.share(value).clamp(0.0, 1.0) * (HEIGHT - EDGE[2] - EDGE[3]);
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
        self.axes(&mut out, (&across, &x), (&upright, &y));
        for (index, series) in self.series.iter().enumerate() {
            let kept = series.points.iter().filter(drawable);
            match series.shape {
                Shape::Line => {
                    let path: Vec<_> = kept.map(|&(at, value)| format!("{:.1},{:.1}", x(at), y(value))).collect();
                    let _ = write!(out, "<polyline class=\"line k{index}\" points=\"{}\"/>", path.join(" "));
                    if let [only] = path.as_slice() {
                        let (cx, cy) = only.split_once(',').unwrap_or_default();
                        let _ = write!(out, "<circle class=\"dot k{index}\" cx=\"{cx}\" cy=\"{cy}\" r=\"3\"/>");
                    }
                }
                Shape::Bars => {
                    let half = step(series) / 2.0;
                    for &(at, value) in kept {
                        let (from, to, top) = (x(at - half) + 0.5, x(at + half) - 0.5, y(value));
                        let (width, height) = ((to - from).max(1.0), HEIGHT - EDGE[3] - top);
                        let _ = write!(
                            out,
                            "<rect class=\"bar k{index}\" x=\"{from:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"/>"
                        );
                    }
                }
            }
        }
        if let Some((at, name)) = &self.mark {
            let (at, top, bottom) = (x(*at), EDGE[2], HEIGHT - EDGE[3]);
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

    fn axes(&self, out: &mut String, across: (&Axis, &dyn Fn(f64) -> f64), upright: (&Axis, &dyn Fn(f64) -> f64)) {
        let bottom = HEIGHT - EDGE[3];
        for value in &upright.0.ticks {
            let at = (upright.1)(*value);
            let label = if self.percent { format!("{} %", short(100.0 * value)) } else { short(*value) };
            let _ = write!(
                out,
                "<line class=\"grid\" x1=\"{}\" x2=\"{}\" y1=\"{at:.1}\" y2=\"{at:.1}\"/>\
                 <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{label}</text>",
                EDGE[0],
                WIDTH - EDGE[1],
                EDGE[0] - 7.0,
                at + 4.0
            );
        }
        for value in &across.0.ticks {
            let at = (across.1)(*value);
            let _ = write!(
                out,
                "<text x=\"{at:.1}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
                bottom + 17.0,
                short(*value)
            );
        }
        let middle = (EDGE[0] + WIDTH - EDGE[1]) / 2.0;
        let _ = write!(
            out,
            "<line class=\"axis\" x1=\"{}\" x2=\"{}\" y1=\"{bottom}\" y2=\"{bottom}\"/>\
             <text class=\"name\" x=\"{middle}\" y=\"{}\" text-anchor=\"middle\">{}</text>",
            EDGE[0],
            WIDTH - EDGE[1],
            HEIGHT - 6.0,
            escape(self.across)
        );
    }
}

/// How far apart the points of a series are.
fn step(series: &Series) -> f64 {
    match series.points.as_slice() {
        [first, second, ..] => (second.0 - first.0).abs(),
        _ => 1.0,
    }
}

/// A range with the round numbers in it.
#[derive(Debug, PartialEq)]
struct Axis {
    least: f64,
    most: f64,
    scaling: Scaling,
    ticks: Vec<f64>,
}

impl Axis {
    /// About five steps of 1, 2 or 5 times a power of ten; of counts whole steps.
    fn linear([least, most]: [f64; 2], counts: bool) -> Axis {
        let (least, most) = if most > least { (least, most) } else { (least - 0.5, least + 0.5) };
        let rough = (most - least) / 5.0;
        let power = 10f64.powf(rough.log10().floor());
        let step = power * [1.0, 2.0, 5.0].into_iter().find(|unit| unit * power >= rough * 0.999).unwrap_or(10.0);
        let step = if counts { step.max(1.0) } else { step };
        let first = (least / step - 1e-9).ceil() as i64;
        let last = (most / step + 1e-9).floor() as i64;
        Axis { least, most, scaling: Scaling::Linear, ticks: (first..=last).map(|k| k as f64 * step).collect() }
    }

    /// From one of 1, 2, 5 times a power of ten to another; all of them where there are few, else whole powers.
    fn logarithmic([least, most]: [f64; 2]) -> Axis {
        let powers = (least.log10().floor() as i32 - 1)..=(most.log10().ceil() as i32 + 1);
        let fine: Vec<f64> = powers.flat_map(|power| [1.0, 2.0, 5.0].map(|unit| unit * 10f64.powi(power))).collect();
        let below = fine.iter().copied().filter(|tick| *tick <= least * 1.000_001).fold(f64::MIN_POSITIVE, f64::max);
        let above = fine.iter().copied().filter(|tick| *tick >= most * 0.999_999).fold(f64::MAX, f64::min);
        let inside: Vec<f64> = fine.into_iter().filter(|tick| (below..=above).contains(tick)).collect();
        let decades = (above / below).log10();
        let stride = ((decades / 6.0).ceil() as i32).max(1);
        let whole = |tick: &f64| {
            let power = tick.log10();
            (power - power.round()).abs() < 1e-9 && power.round() as i32 % stride == 0
        };
        let ticks = if decades <= 2.05 { inside } else { inside.into_iter().filter(whole).collect() };
        Axis { least: below, most: above, scaling: Scaling::Logarithmic, ticks }
    }

    /// 0 at the least, 1 at the most.
    fn share(&self, value: f64) -> f64 {
        match self.scaling {
            Scaling::Linear => (value - self.least) / (self.most - self.least),
            Scaling::Logarithmic => (value / self.least).ln() / (self.most / self.least).ln(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        assert_eq!(Axis::linear([0.0, 23.0], false).ticks, [0.0, 5.0, 10.0, 15.0, 20.0]);
        assert_eq!(Axis::linear([3.0, 3.0], false).ticks.len(), 5, "2.6 to 3.4");
        assert_eq!(Axis::linear([1.0, 3.0], true).ticks, [1.0, 2.0, 3.0], "there is no epoch 1.5");
        assert_eq!(Axis::linear([0.0, 1.04], true).ticks, [0.0, 1.0]);
        assert_eq!(Axis::linear([1.0, 1.0], true).ticks, [1.0]);
        let narrow = Axis::logarithmic([0.013, 0.4]);
        assert_eq!((narrow.least, narrow.most), (0.01, 0.5));
        assert_eq!(narrow.ticks.len(), 6, "{:?}", narrow.ticks);
        let wide = Axis::logarithmic([3e-9, 0.9]);
        assert!(wide.ticks.len() <= 7 && wide.ticks.iter().all(|tick| (tick.log10() % 1.0).abs() < 1e-9), "{wide:?}");
        assert_eq!((narrow.share(0.01), narrow.share(0.5)), (0.0, 1.0));
    }

    #[test]
    fn a_chart_leaves_out_what_cannot_be_drawn() {
        let chart = |points: Vec<(f64, f64)>| Chart {
            title: "a < b",
            across: "epoch",
            scaling: Scaling::Logarithmic,
            percent: false,
            counts: [true, false],
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
