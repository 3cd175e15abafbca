//! Errors over what is varied, as a paper prints them: panels with curves, marks and bands, ours in colour, the published ones grey
//! and dashed.

use super::axis::{Axis, Scaling};
use super::drawing::{Anchor, Drawing, Ink};
use crate::text::short;

/// Size of a panel, and its margins: left, right, top, bottom.
const PANEL: [f64; 2] = [232.0, 176.0];
const MARGIN: [f64; 4] = [30.0, 14.0, 26.0, 28.0];
const WORDS: f64 = 8.0;
/// Entries of a line of the legend, at most.
const LEGEND: usize = 4;
/// A vertical axis whose values span more than this ratio is logarithmic.
const WIDE: f64 = 12.0;

/// The mark at each point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Marker {
    Circle,
    Square,
}

/// Points with a band about each: `[x, y, plus, minus]`.
#[derive(Clone, Debug)]
pub(crate) struct Curve {
    pub(crate) label: String,
    pub(crate) ink: Ink,
    pub(crate) marker: Marker,
    /// Dashed and hollow, for published values.
    pub(crate) hollow: bool,
    pub(crate) points: Vec<[f64; 4]>,
}

/// One set of axes.
#[derive(Clone, Debug)]
pub(crate) struct CurvePanel {
    pub(crate) title: String,
    pub(crate) horizontal: String,
    pub(crate) logarithmic: bool,
    /// Unit of the vertical axis.
    pub(crate) vertical: String,
    /// Whether the vertical axis is linear however far the values spread; else a wide spread makes it logarithmic.
    pub(crate) linear: bool,
    pub(crate) curves: Vec<Curve>,
}

/// Panels in rows of `across`, with one legend below.
pub(crate) fn curve_panels(panels: &[CurvePanel], across: usize) -> Drawing {
    let rows = panels.len().div_ceil(across.max(1));
    let across = across.clamp(1, panels.len().max(1));
    let [width, height] = PANEL;
    let mut entries: Vec<&Curve> = Vec::new();
    for curve in panels.iter().flat_map(|panel| &panel.curves) {
        if !entries.iter().any(|known| known.label == curve.label) {
            entries.push(curve);
        }
    }
    let lines = entries.len().div_ceil(LEGEND).max(1);
    let mut drawing = Drawing::new(width * across as f64, height * rows as f64 + 22.0 + 14.0 * (lines - 1) as f64);
    for (place, panel) in panels.iter().enumerate() {
        let corner = [width * (place % across) as f64, height * (place / across) as f64];
        drawing.place(corner, panel.draw());
    }
    let columns = entries.len().div_ceil(lines).max(1);
    let step = drawing.width / columns as f64;
    for (place, curve) in entries.iter().enumerate() {
        let [x, y] =
            [step * (place % columns) as f64 + 8.0, height * rows as f64 + 12.0 + 14.0 * (place / columns) as f64];
        drawing.line(vec![[x, y], [x + 18.0, y]], curve.ink, 1.2, curve.hollow);
        curve.mark(&mut drawing, [x + 9.0, y]);
        drawing.word([x + 23.0, y + 3.0], curve.label.clone(), WORDS, Ink::Text, Anchor::Start);
    }
    drawing
}

impl Curve {
    fn mark(&self, drawing: &mut Drawing, at: [f64; 2]) {
        let size = 2.6;
        match (self.marker, self.hollow) {
            (Marker::Circle, false) => drawing.disc(at, size, self.ink, 1.0),
            (Marker::Circle, true) => {
                drawing.disc(at, size, Ink::Paper, 1.0);
                drawing.ring(at, size, self.ink, 1.0);
            }
            (Marker::Square, hollow) => {
                let [x, y] = at.map(|side| side - size);
                drawing.rectangle([x, y], [2.0 * size; 2], self.ink, 1.0);
                if hollow {
                    drawing.rectangle([x + 1.0, y + 1.0], [2.0 * size - 2.0; 2], Ink::Paper, 1.0);
                }
            }
        }
    }
}

impl CurvePanel {
    /// The panel; one without points has its title and a sentence.
    fn draw(&self) -> Drawing {
        let [width, height] = PANEL;
        let mut drawing = Drawing::new(width, height);
        drawing.heading([MARGIN[0], 11.0], self.title.clone(), WORDS + 1.0, Anchor::Start);
        let all = || self.curves.iter().flat_map(|curve| &curve.points);
        if all().next().is_none() {
            drawing.word([width / 2.0, height / 2.0], "no values yet", WORDS, Ink::Faint, Anchor::Middle);
            return drawing;
        }
        let fold = |values: &mut dyn Iterator<Item = f64>| {
            values.fold([f64::INFINITY, f64::NEG_INFINITY], |[least, most], value| [least.min(value), most.max(value)])
        };
        let [left, right] = fold(&mut all().map(|point| point[0]));
        let [low, high] = fold(&mut all().flat_map(|point| [point[1] - point[3], point[1] + point[2]]));
        let horizontal = match self.logarithmic {
            true => Axis::between([left / 1.15, right * 1.15], Scaling::Logarithmic),
            false => Axis::between([left - 0.04 * (right - left), right + 0.04 * (right - left)], Scaling::Linear),
        };
        let vertical = match self.linear {
            true => Axis::linear([1.06 * low.min(0.0), 1.06 * high.max(0.0)], false),
            false if low > 0.0 && high / low > WIDE => Axis::logarithmic([low, high]),
            false => Axis::linear([0.0, high * 1.06], false),
        };
        let x = |value: f64| MARGIN[0] + horizontal.share(value) * (width - MARGIN[0] - MARGIN[1]);
        let y =
            |value: f64| height - MARGIN[3] - vertical.share(value).clamp(0.0, 1.0) * (height - MARGIN[2] - MARGIN[3]);
        self.axes(&mut drawing, (&x, &self.ticks()), (&y, &vertical));
        for curve in &self.curves {
            let upper = curve.points.iter().map(|point| [x(point[0]), y(point[1] + point[2])]);
            let lower = curve.points.iter().rev().map(|point| [x(point[0]), y(point[1] - point[3])]);
            if curve.points.iter().any(|point| point[2] + point[3] > 0.0) && curve.points.len() > 1 {
                drawing.polygon(upper.chain(lower).collect(), curve.ink, 0.2);
            }
        }
        let hollow_first = |curve: &&Curve| !curve.hollow;
        let mut ordered: Vec<&Curve> = self.curves.iter().collect();
        ordered.sort_by_key(hollow_first);
        for curve in ordered {
            let points: Vec<[f64; 2]> = curve.points.iter().map(|point| [x(point[0]), y(point[1])]).collect();
            drawing.line(points.clone(), curve.ink, if curve.hollow { 0.9 } else { 1.4 }, curve.hollow);
            points.into_iter().for_each(|point| curve.mark(&mut drawing, point));
        }
        drawing
    }

    /// The name of a value of the horizontal axis; points of a square plane are named by its side.
    fn tick_name(&self, tick: f64) -> String {
        let side = tick.sqrt().round();
        if self.logarithmic && side * side == tick { format!("{side}²") } else { short(tick) }
    }

    /// The values of the horizontal axis that have a point, as far as their words have room.
    fn ticks(&self) -> Vec<f64> {
        let mut ticks: Vec<f64> = self.curves.iter().flat_map(|curve| &curve.points).map(|point| point[0]).collect();
        ticks.sort_by(f64::total_cmp);
        ticks.dedup();
        ticks
    }

    fn axes(
        &self,
        drawing: &mut Drawing,
        (x, ticks): (&dyn Fn(f64) -> f64, &[f64]),
        (y, vertical): (&dyn Fn(f64) -> f64, &Axis),
    ) {
        let [width, height] = PANEL;
        let bottom = height - MARGIN[3];
        for tick in &vertical.ticks {
            let at = y(*tick);
            drawing.line(vec![[MARGIN[0], at], [width - MARGIN[1], at]], Ink::Grid, 0.5, true);
            drawing.word([MARGIN[0] - 4.0, at + 2.8], short(*tick), WORDS, Ink::Faint, Anchor::End);
        }
        drawing.line(vec![[MARGIN[0], MARGIN[2]], [MARGIN[0], bottom]], Ink::Faint, 0.7, false);
        drawing.line(vec![[MARGIN[0], bottom], [width - MARGIN[1], bottom]], Ink::Faint, 0.7, false);
        let mut free = f64::NEG_INFINITY;
        for tick in ticks {
            let (at, word) = (x(*tick), self.tick_name(*tick));
            drawing.line(vec![[at, bottom], [at, bottom + 2.5]], Ink::Faint, 0.7, false);
            let half = 0.3 * WORDS * word.chars().count() as f64;
            if at - half > free {
                drawing.word([at, bottom + 10.5], word, WORDS, Ink::Faint, Anchor::Middle);
                free = at + half + 3.0;
            }
        }
        let middle = (MARGIN[0] + width - MARGIN[1]) / 2.0;
        drawing.word([middle, bottom + 21.0], self.horizontal.clone(), WORDS, Ink::Text, Anchor::Middle);
        drawing.word([width - MARGIN[1], 11.0], self.vertical.clone(), WORDS, Ink::Faint, Anchor::End);
    }
}
