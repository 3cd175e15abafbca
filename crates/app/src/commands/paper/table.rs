//! A table of errors: as text for the terminal, as CSV, as HTML with its shades, and for print.

use crate::plot::{Drawing, Ink, TableCell, TableRow, table};
use crate::report::escape;
use crate::text::error;
use lamo::Error;
use lamo::paper::published::Value;
use lamo::paper::{Entry, Measured, Results, Row, Shade, Table};

/// A table with our values.
pub(super) struct Filled<'a> {
    pub(super) table: &'a Table,
    /// `[row][column]`
    pub(super) ours: Vec<Vec<Option<Measured>>>,
}

impl<'a> Filled<'a> {
    pub(super) fn new(table: &'a Table, results: &Results) -> Result<Filled<'a>, Error> {
        let row = |row: &Row| row.entries.iter().map(|entry| results.measure(entry)).collect();
        let ours = table.rows.iter().map(row).collect::<Result<_, _>>()?;
        Ok(Filled { table, ours })
    }

    /// By how much our LaMO is below the best of our other models in each column, in percent; `None` where either is missing.
    fn increments(&self) -> Vec<Option<f64>> {
        let column = |column: usize| {
            let value = |row: usize| self.ours[row][column].map(|measured| measured.mean);
            let lamo = self.table.rows.iter().position(|row| row.label == "LaMO")?;
            let other = |row: &usize| !self.table.rows[*row].label.starts_with("LaMO");
            let second = (0..self.table.rows.len()).filter(other).filter_map(value).fold(f64::INFINITY, f64::min);
            second.is_finite().then_some(100.0 * (second - value(lamo)?) / second)
        };
        (0..self.table.columns.len()).map(column).collect()
    }

    /// For the terminal: our values, and the published ones in the line below.
    pub(super) fn text(&self) -> String {
        let mut lines = vec![[vec![self.table.corner.to_owned()], self.table.columns.clone()].concat()];
        for (row, ours) in self.table.rows.iter().zip(&self.ours) {
            lines.push([vec![row_name(row)], ours.iter().map(|value| ours_text(*value)).collect()].concat());
            let published = row.entries.iter().map(|entry| published_text(entry.published));
            lines.push([vec!["  published".to_owned()], published.collect()].concat());
        }
        if self.table.increment && self.increments().iter().any(Option::is_some) {
            let words = self
                .increments()
                .into_iter()
                .map(|value| value.map_or("-".to_owned(), |value| format!("{value:.1} %")));
            lines.push([vec!["LaMO below the best other of ours".to_owned()], words.collect()].concat());
        }
        let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..=self.table.columns.len()).map(width).collect();
        let line = |line: &Vec<String>| {
            let cells = line.iter().zip(&widths).enumerate().map(|(column, (cell, width))| match column {
                0 => format!("{cell:width$}"),
                _ => format!("{cell:>width$}"),
            });
            cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
        };
        lines.iter().map(line).collect::<Vec<_>>().join("\n")
    }

    /// One line per value: row, column, ours, deviation, runs, epochs, published, its deviation.
    pub(super) fn csv(&self) -> String {
        let mut text = "row,column,ours,deviation,runs,epochs,published,published_deviation\n".to_owned();
        let quoted = |word: &str| format!("\"{}\"", word.replace('"', "\"\""));
        for (row, ours) in self.table.rows.iter().zip(&self.ours) {
            for ((entry, ours), column) in row.entries.iter().zip(ours).zip(&self.table.columns) {
                let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
                let cells = [
                    quoted(&row_name(row)),
                    quoted(column),
                    number(ours.map(|ours| ours.mean)),
                    number(ours.and_then(|ours| ours.deviation)),
                    number(ours.map(|ours| ours.runs as f64)),
                    number(ours.map(|ours| ours.epochs as f64)),
                    number(entry.published.map(|published| published.value)),
                    number(entry.published.map(|published| published.plus).filter(|plus| *plus > 0.0)),
                ];
                text += &(cells.join(",") + "\n");
            }
        }
        text
    }

    /// For the page.
    pub(super) fn html(&self) -> String {
        let head: String = self.table.columns.iter().map(|name| format!("<th>{}</th>", escape(name))).collect();
        let mut out = format!("<table><thead><tr><th>{}</th>{head}</tr></thead><tbody>", escape(self.table.corner));
        let mut group = "";
        for (number, row) in self.table.rows.iter().enumerate() {
            if row.group != group {
                group = row.group;
                let across = self.table.columns.len() + 1;
                out += &format!("<tr class=\"group\"><th colspan=\"{across}\">{}</th></tr>", escape(group));
            }
            out += &format!("<tr><th>{}</th>", escape(&row.label));
            for (column, entry) in row.entries.iter().enumerate() {
                let shade = self.shade(number, column);
                let ours = self.ours[number][column];
                let value = match (ours, entry.cells.is_empty()) {
                    (Some(_), _) => format!("<b>{}</b>", escape(&ours_text(ours))),
                    (None, false) => "<i>missing</i>".to_owned(),
                    (None, true) => "<i>–</i>".to_owned(),
                };
                let published = entry.published.map_or_else(String::new, |_| published_text(entry.published));
                out += &format!("<td{shade}>{value}<span>{}</span></td>", escape(&published));
            }
            out += "</tr>";
        }
        if self.table.increment {
            let words = self
                .increments()
                .into_iter()
                .map(|value| value.map_or("–".to_owned(), |value| format!("{value:.1} %")));
            let cells: String = words.map(|word| format!("<td><b>{word}</b></td>")).collect();
            out += &format!("<tr class=\"group\"><th>LaMO below the best other of ours</th>{cells}</tr>");
        }
        out + "</tbody></table>"
    }

    /// For print.
    pub(super) fn drawing(&self) -> Drawing {
        let mut group = "";
        let mut rows = Vec::new();
        for (number, row) in self.table.rows.iter().enumerate() {
            let heading = (row.group != group).then(|| row.group.to_owned());
            group = row.group;
            let cell = |(column, entry): (usize, &Entry)| TableCell {
                ours: ours_text(self.ours[number][column]),
                published: entry.published.map_or_else(String::new, |_| published_text(entry.published)),
                shade: self.shading(number, column),
            };
            let cells = row.entries.iter().enumerate().map(cell).collect();
            rows.push(TableRow { heading, label: row.label.clone(), cells });
        }
        if self.table.increment && self.increments().iter().any(Option::is_some) {
            let word = |value: Option<f64>| value.map_or("–".to_owned(), |value| format!("{value:.1} %"));
            let cell = |value| TableCell { ours: word(value), ..TableCell::default() };
            let (heading, label) = (Some(String::new()), "LaMO below the best other of ours".to_owned());
            rows.push(TableRow { heading, label, cells: self.increments().into_iter().map(cell).collect() });
        }
        table(self.table.corner, &self.table.columns, &rows)
    }

    /// The class or style of a shaded cell on the page.
    fn shade(&self, row: usize, column: usize) -> String {
        match self.shading(row, column) {
            None => String::new(),
            Some((Ink::Orange, _)) => " class=\"rank1\"".to_owned(),
            Some((Ink::Blue, _)) => " class=\"rank2\"".to_owned(),
            Some((Ink::Violet, _)) => " class=\"rank3\"".to_owned(),
            Some((_, opacity)) => format!(" style=\"background:rgb(240 180 0/{opacity:.2})\""),
        }
    }

    /// The colour behind a cell, by our values alone.
    fn shading(&self, row: usize, column: usize) -> Option<(Ink, f64)> {
        let own = self.ours[row][column]?.mean;
        match self.table.shade {
            Shade::None => None,
            Shade::BestThree => {
                let better = self.ours.iter().filter_map(|row| row[column]).filter(|other| other.mean < own).count();
                [(Ink::Orange, 0.45), (Ink::Blue, 0.3), (Ink::Violet, 0.25)].get(better).copied()
            }
            Shade::Darker => {
                let all = || self.ours.iter().flatten().flatten().map(|ours| ours.mean);
                let (least, most) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
                let share = if most > least { (most - own) / (most - least) } else { 0.5 };
                Some((Ink::Yellow, 0.06 + 0.5 * share))
            }
        }
    }
}

fn row_name(row: &Row) -> String {
    if row.group.starts_with("expansion") { format!("{}, {}", row.group, row.label) } else { row.label.clone() }
}

/// Our value: four digits, and the deviation with the same decimals where there are several runs.
pub(super) fn ours_text(value: Option<Measured>) -> String {
    match value {
        None => "-".to_owned(),
        Some(Measured { mean, deviation: Some(deviation), .. }) => {
            let mean = error(mean);
            let decimals = mean.split('.').nth(1).map_or(0, str::len);
            format!("{mean} ± {deviation:.decimals$}")
        }
        Some(Measured { mean, .. }) => error(mean),
    }
}

/// The published value with the digits of the paper.
pub(super) fn published_text(value: Option<Value>) -> String {
    match value {
        None => "-".to_owned(),
        Some(Value { value, plus, .. }) if plus > 0.0 => format!("{} ± {}", digits(value), digits(plus)),
        Some(Value { value, .. }) => digits(value),
    }
}

/// A number of the paper: at least four decimals, and no more than it has.
fn digits(value: f64) -> String {
    let text = format!("{value:.6}");
    let text = text.trim_end_matches('0');
    let decimals = text.split('.').nth(1).map_or(0, str::len).max(4);
    format!("{value:.decimals$}")
}
