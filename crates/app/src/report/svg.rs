//! Charts as SVG inside the page. They take their colours and font from the page, so they follow light and dark mode.

use super::html::escape;
use crate::text::short;
use std::fmt::Write;

const WIDTH: f64 = 480.0;
const HEIGHT: f64 = 270.0;
/// Margins of the plot: left, right, top, bottom.
const MARGIN: [f64; 4] = [54.0, 14.0, 14.0, 40.0];

/// The scaling of an axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Scaling {
    Linear,
    /// Values of zero and below are not drawn.
    Logarithmic,
}

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

/// The range of an axis, with its ticks at round numbers.
#[derive(Debug, PartialEq)]
pub(super) struct Axis {
    least: f64,
    most: f64,
    scaling: Scaling,
    pub(super) ticks: Vec<f64>,
}

impl Axis {
    /// About five steps of 1, 2 or 5 times a power of ten; of at least 1 with `integers`.
    pub(super) fn linear([least, most]: [f64; 2], integers: bool) -> Axis {
        let (least, most) = if most > least { (least, most) } else { (least - 0.5, least + 0.5) };
        let rough = (most - least) / 5.0;
        let power = 10f64.powf(rough.log10().floor());
        let step = power * [1.0, 2.0, 5.0].into_iter().find(|unit| unit * power >= rough * 0.999).unwrap_or(10.0);
        let step = if integers { step.max(1.0) } else { step };
        let first = (least / step - 1e-9).ceil() as i64;
        let last = (most / step + 1e-9).floor() as i64;
        Axis { least, most, scaling: Scaling::Linear, ticks: (first..=last).map(|k| k as f64 * step).collect() }
    }

    /// The ends are 1, 2 or 5 times a power of ten. The ticks are all such numbers, or powers of ten if these are too many.
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

    /// Its lower end.
    pub(super) fn least(&self) -> f64 {
        self.least
    }

    /// Its upper end.
    pub(super) fn most(&self) -> f64 {
        self.most
    }

    /// The position of a value on the axis: 0 at its lower end, 1 at its upper end.
    pub(super) fn share(&self, value: f64) -> f64 {
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
    fn ticks_are_round_numbers_inside_the_range() {
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
