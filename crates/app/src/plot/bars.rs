//! Grouped bars with their numbers. Axes start at zero.

use super::axis::Axis;
use super::drawing::{Anchor, Drawing, Ink};
use crate::text::short;

const PANEL: [f64; 2] = [244.0, 118.0];
/// Margins of the plot: left, right, top, bottom.
const MARGIN: [f64; 4] = [34.0, 6.0, 24.0, 18.0];
const WORDS: f64 = 8.0;

/// The bars of one benchmark: label of the series, colour, whether it is published, value if it is there.
#[derive(Clone, Debug)]
pub(crate) struct BarGroup {
    pub(crate) name: String,
    pub(crate) bars: Vec<(String, Ink, bool, Option<f64>)>,
}

/// One chart.
#[derive(Clone, Debug)]
pub(crate) struct BarPanel {
    pub(crate) title: String,
    pub(crate) unit: String,
    pub(crate) groups: Vec<BarGroup>,
}

/// Charts in rows of two, each with its legend at the foot of its column.
pub(crate) fn bar_panels(panels: &[BarPanel]) -> Drawing {
    let [width, height] = PANEL;
    let rows = panels.len().div_ceil(2);
    let mut drawing = Drawing::new(2.0 * width, height * rows as f64 + 18.0);
    for (place, panel) in panels.iter().enumerate() {
        drawing.place([width * (place % 2) as f64, height * (place / 2) as f64], panel.draw());
    }
    let y = height * rows as f64 + 10.0;
    for (column, panel) in panels.iter().take(2).enumerate() {
        let bars = panel.groups.first().map(|group| group.bars.as_slice()).unwrap_or_default();
        for (place, (label, ink, published, _)) in bars.iter().enumerate() {
            let x = width * column as f64 + MARGIN[0] + place as f64 * (width - MARGIN[0]) / bars.len() as f64;
            bar(&mut drawing, [x, y - 7.0], [9.0, 8.0], *ink, *published);
            drawing.word([x + 13.0, y], label.clone(), WORDS, Ink::Text, Anchor::Start);
        }
    }
    drawing
}

/// A bar: filled, or an outline with a pale filling for published values.
fn bar(drawing: &mut Drawing, [x, y]: [f64; 2], [width, height]: [f64; 2], ink: Ink, published: bool) {
    if !published {
        return drawing.rectangle([x, y], [width, height], ink, 1.0);
    }
    drawing.rectangle([x, y], [width, height], ink, 0.25);
    let corners = vec![[x, y + height], [x, y], [x + width, y], [x + width, y + height]];
    drawing.line(corners, ink, 0.8, false);
}

impl BarPanel {
    fn draw(&self) -> Drawing {
        let [width, height] = PANEL;
        let mut drawing = Drawing::new(width, height);
        drawing.heading([MARGIN[0], 10.0], self.title.clone(), WORDS + 1.0, Anchor::Start);
        drawing.word([width - MARGIN[1], 10.0], self.unit.clone(), WORDS, Ink::Faint, Anchor::End);
        let values = self.groups.iter().flat_map(|group| &group.bars).filter_map(|bar| bar.3);
        let most = values.fold(0.0, f64::max);
        let axis = Axis::linear([0.0, if most > 0.0 { most * 1.12 } else { 1.0 }], false);
        let bottom = height - MARGIN[3];
        let y = |value: f64| bottom - axis.share(value) * (height - MARGIN[2] - MARGIN[3]);
        for tick in &axis.ticks {
            drawing.line(vec![[MARGIN[0], y(*tick)], [width - MARGIN[1], y(*tick)]], Ink::Grid, 0.5, *tick > 0.0);
            drawing.word([MARGIN[0] - 4.0, y(*tick) + 2.8], short(*tick), WORDS, Ink::Faint, Anchor::End);
        }
        let step = (width - MARGIN[0] - MARGIN[1]) / self.groups.len().max(1) as f64;
        for (place, group) in self.groups.iter().enumerate() {
            let left = MARGIN[0] + step * place as f64;
            drawing.word([left + step / 2.0, bottom + 10.0], group.name.clone(), 7.0, Ink::Text, Anchor::Middle);
            let wide = step * 0.86 / group.bars.len().max(1) as f64;
            for (number, (_, ink, published, value)) in group.bars.iter().enumerate() {
                let x = left + step * 0.07 + wide * number as f64;
                let Some(value) = value else {
                    drawing.word([x + wide / 2.0, bottom - 2.0], "–", WORDS, Ink::Faint, Anchor::Middle);
                    continue;
                };
                bar(&mut drawing, [x + 0.8, y(*value)], [wide - 1.6, bottom - y(*value)], *ink, *published);
                drawing.word([x + wide / 2.0, y(*value) - 2.0], short_number(*value), 6.0, Ink::Text, Anchor::Middle);
            }
        }
        drawing
    }
}

/// At most three significant digits: what a bar has room for.
fn short_number(value: f64) -> String {
    match value {
        v if v >= 100.0 => {
            let unit = 10f64.powf(v.log10().floor() - 2.0);
            format!("{:.0}", (v / unit).round() * unit)
        }
        v if v >= 10.0 => format!("{v:.1}").trim_end_matches(".0").to_owned(),
        v if v >= 0.095 => format!("{v:.2}").trim_end_matches('0').trim_end_matches('.').to_owned(),
        v if v > 0.0 => format!("{v:.*}", (1.0 - v.log10().floor()) as usize),
        v => short(v),
    }
}

#[cfg(test)]
mod tests {
    use super::short_number;

    #[test]
    fn a_bar_has_at_most_three_significant_digits() {
        let values = [123_456.0, 1234.0, 999.6, 207.4, 99.96, 15.53, 9.996, 0.125, 0.0123, 0.000_456_7, 0.0];
        let written: Vec<String> = values.map(short_number).into();
        let wanted = ["123000", "1230", "1000", "207", "100", "15.5", "10", "0.12", "0.012", "0.00046", "0"];
        assert_eq!(written, wanted);
        for text in &written {
            let digits = text.replace('.', "");
            assert!(digits.trim_start_matches('0').trim_end_matches('0').len() <= 3, "{text}");
        }
    }
}
