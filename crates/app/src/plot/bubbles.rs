//! Bubbles: time to the right, memory upwards, radius in proportion to parameters, as the paper draws them.

use super::axis::Axis;
use super::drawing::{Anchor, Drawing, Ink};
use crate::text::short;

const PANEL: [f64; 2] = [244.0, 190.0];
/// Margins of the plot: left, right, top, bottom.
const MARGIN: [f64; 4] = [30.0, 12.0, 26.0, 28.0];
const WORDS: f64 = 8.0;
/// Radius in units per million parameters, and the least one that can be seen.
const PER_MILLION: f64 = 1.6;
const LEAST: f64 = 1.6;

/// A model.
#[derive(Clone, Debug)]
pub(crate) struct Bubble {
    pub(crate) name: String,
    pub(crate) ink: Ink,
    /// Seconds per epoch, gigabytes, millions of parameters.
    pub(crate) values: [f64; 3],
}

/// One set of axes.
#[derive(Clone, Debug)]
pub(crate) struct BubblePanel {
    pub(crate) title: String,
    pub(crate) bubbles: Vec<Bubble>,
}

/// Panels in rows of two, with a key of the radii.
pub(crate) fn bubble_panels(panels: &[BubblePanel]) -> Drawing {
    let [width, height] = PANEL;
    let rows = panels.len().div_ceil(2);
    let mut drawing = Drawing::new(2.0 * width, height * rows as f64 + 24.0);
    for (place, panel) in panels.iter().enumerate() {
        drawing.place([width * (place % 2) as f64, height * (place / 2) as f64], panel.draw());
    }
    let y = height * rows as f64 + 12.0;
    for (place, million) in [1.0, 5.0].into_iter().enumerate() {
        let x = MARGIN[0] + 12.0 + 110.0 * place as f64;
        drawing.ring([x, y], radius(million), Ink::Faint, 0.8);
        drawing.word([x + 14.0, y + 3.0], format!("{million} million"), WORDS, Ink::Faint, Anchor::Start);
    }
    drawing
}

fn radius(million: f64) -> f64 {
    (PER_MILLION * million).max(LEAST)
}

impl BubblePanel {
    fn draw(&self) -> Drawing {
        let [width, height] = PANEL;
        let mut drawing = Drawing::new(width, height);
        drawing.heading([MARGIN[0], 11.0], self.title.clone(), WORDS + 1.0, Anchor::Start);
        drawing.word([width - MARGIN[1], 11.0], "GB", WORDS, Ink::Faint, Anchor::End);
        let most = |axis: usize| self.bubbles.iter().map(|bubble| bubble.values[axis]).fold(0.0, f64::max);
        if self.bubbles.is_empty() {
            drawing.word([width / 2.0, height / 2.0], "no values yet", WORDS, Ink::Faint, Anchor::Middle);
            return drawing;
        }
        let axes = [0, 1].map(|axis| Axis::linear([0.0, most(axis) * 1.3], false));
        let bottom = height - MARGIN[3];
        let x = |value: f64| MARGIN[0] + axes[0].share(value) * (width - MARGIN[0] - MARGIN[1]);
        let y = |value: f64| bottom - axes[1].share(value) * (bottom - MARGIN[2]);
        for tick in &axes[1].ticks {
            drawing.line(vec![[MARGIN[0], y(*tick)], [width - MARGIN[1], y(*tick)]], Ink::Grid, 0.5, *tick > 0.0);
            drawing.word([MARGIN[0] - 4.0, y(*tick) + 2.8], short(*tick), WORDS, Ink::Faint, Anchor::End);
        }
        for tick in &axes[0].ticks {
            drawing.word([x(*tick), bottom + 10.5], short(*tick), WORDS, Ink::Faint, Anchor::Middle);
        }
        let middle = (MARGIN[0] + width - MARGIN[1]) / 2.0;
        drawing.word([middle, bottom + 21.0], "seconds per epoch", WORDS, Ink::Text, Anchor::Middle);
        let mut ordered: Vec<&Bubble> = self.bubbles.iter().collect();
        ordered.sort_by(|one, other| other.values[2].total_cmp(&one.values[2])); // large ones behind
        for bubble in &ordered {
            let at = [x(bubble.values[0]), y(bubble.values[1])];
            drawing.disc(at, radius(bubble.values[2]), bubble.ink, 0.45);
            drawing.ring(at, radius(bubble.values[2]), bubble.ink, 0.8);
        }
        self.names(&mut drawing, &x, &y, bottom);
        drawing
    }

    /// Names beside their bubbles, from top to bottom; one that would lie on another moves down, with a line to its bubble.
    fn names(&self, drawing: &mut Drawing, x: &dyn Fn(f64) -> f64, y: &dyn Fn(f64) -> f64, bottom: f64) {
        let mut ordered: Vec<&Bubble> = self.bubbles.iter().collect();
        ordered.sort_by(|one, other| other.values[1].total_cmp(&one.values[1]));
        let mut taken: Vec<[f64; 3]> = Vec::new(); // left, right, level
        for bubble in ordered {
            let (size, wide) = (radius(bubble.values[2]).min(12.0), 4.8 * bubble.name.chars().count() as f64);
            let centre = [x(bubble.values[0]), y(bubble.values[1])];
            let left = (centre[0] + size + 3.0).min(PANEL[0] - wide - 2.0);
            let mut level = centre[1] + 2.8;
            let clashes = |level: f64| {
                taken.iter().any(|[from, to, other]| left < *to && *from < left + wide && (other - level).abs() < 8.5)
            };
            while clashes(level) && level < bottom - 2.0 {
                level += 2.0;
            }
            if level > centre[1] + 5.0 {
                drawing.line(vec![centre, [left - 1.0, level - 2.8]], Ink::Faint, 0.5, false);
            }
            taken.push([left, left + wide, level]);
            drawing.word([left, level], bubble.name.clone(), WORDS, Ink::Text, Anchor::Start);
        }
    }
}
