//! Tables of words and of exponents: as text, CSV and HTML, ours above what the paper prints.

use super::Gathered;
use super::figures::spent;
use crate::plot::{Drawing, TableCell, TableRow, table};
use crate::report::escape;
use lamo::Error;
use lamo::paper::{Content, Fact, Facts, Growth};

/// The content of an artifact as a table of words, if it is one.
pub(super) fn words(content: &Content, gathered: &Gathered) -> Result<Option<Facts>, Error> {
    Ok(match content {
        Content::Facts(facts) => Some(facts.clone()),
        Content::Growth(rows) => Some(growth(rows, gathered)?),
        Content::Theory => Some(super::theory::facts()),
        _ => None,
    })
}

fn growth(rows: &[Growth], gathered: &Gathered) -> Result<Facts, Error> {
    let mut shown = Vec::new();
    for row in rows {
        let mut points: Vec<[f64; 3]> = Vec::new();
        for (count, cell) in &row.cells {
            let found = gathered.results.of(&cell.resolve()?).map(spent).unwrap_or_default();
            if let [Some(time), Some(memory), _] = found {
                points.push([*count, time, memory]);
            }
        }
        let exponent = |place: usize| match slope(&points, place) {
            Some(slope) => format!("p = {slope:.2}"),
            None => String::new(),
        };
        let fact = |ours: String, published: &str| Fact { ours, published: published.to_owned() };
        let order = format!("O({})", row.order);
        let facts = [
            fact(String::new(), row.range),
            fact(String::new(), row.kernel),
            fact(exponent(1), &order),
            fact(exponent(2), ""),
        ];
        shown.push((row.label.to_owned(), facts.into()));
    }
    let columns = ["range", "kernel", "time", "memory"].map(str::to_owned).into();
    Ok(Facts { corner: "model", columns, rows: shown })
}

/// Least-squares slope of log value over log points, from at least two sizes.
fn slope(points: &[[f64; 3]], place: usize) -> Option<f64> {
    let pairs: Vec<(f64, f64)> = points.iter().map(|point| (point[0].ln(), point[place].ln())).collect();
    let count = pairs.len() as f64;
    let mean = |part: fn(&(f64, f64)) -> f64| pairs.iter().map(part).sum::<f64>() / count;
    let (x, y) = (mean(|pair| pair.0), mean(|pair| pair.1));
    let above: f64 = pairs.iter().map(|pair| (pair.0 - x) * (pair.1 - y)).sum();
    let below: f64 = pairs.iter().map(|pair| (pair.0 - x).powi(2)).sum();
    (pairs.len() > 1 && below > 0.0).then(|| above / below)
}

/// For the terminal.
pub(super) fn text(facts: &Facts) -> String {
    let mut lines = vec![[vec![facts.corner.to_owned()], facts.columns.clone()].concat()];
    for (label, row) in &facts.rows {
        let line = |part: fn(&Fact) -> &String| row.iter().map(part).cloned().collect::<Vec<_>>();
        lines.push([vec![label.clone()], line(|fact| &fact.ours)].concat());
        lines.push([vec!["  published".to_owned()], line(|fact| &fact.published)].concat());
    }
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..=facts.columns.len()).map(width).collect();
    let line = |line: &Vec<String>| {
        let cells = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    lines.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// One line per fact.
pub(super) fn csv(facts: &Facts) -> String {
    let quoted = |word: &str| format!("\"{}\"", word.replace('"', "\"\""));
    let mut text = "row,column,ours,published\n".to_owned();
    for (label, row) in &facts.rows {
        for (column, fact) in facts.columns.iter().zip(row) {
            let cells = [label.as_str(), column, &fact.ours, &fact.published].map(quoted);
            text += &(cells.join(",") + "\n");
        }
    }
    text
}

/// For print.
pub(super) fn drawing(facts: &Facts) -> Drawing {
    let cell = |fact: &Fact| TableCell { ours: fact.ours.clone(), published: fact.published.clone(), shade: None };
    let row = |(label, row): &(String, Vec<Fact>)| TableRow {
        heading: None,
        label: label.clone(),
        cells: row.iter().map(cell).collect(),
    };
    table(facts.corner, &facts.columns, &facts.rows.iter().map(row).collect::<Vec<_>>())
}

/// For the page.
pub(super) fn html(facts: &Facts) -> String {
    let head: String = facts.columns.iter().map(|name| format!("<th>{}</th>", escape(name))).collect();
    let mut out = format!("<table><thead><tr><th>{}</th>{head}</tr></thead><tbody>", escape(facts.corner));
    for (label, row) in &facts.rows {
        out += &format!("<tr><th>{}</th>", escape(label));
        for fact in row {
            let ours = if fact.ours.is_empty() { String::new() } else { format!("<b>{}</b>", escape(&fact.ours)) };
            out += &format!("<td>{ours}<span>{}</span></td>", escape(&fact.published));
        }
        out += "</tr>";
    }
    out + "</tbody></table>"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exponent_of_a_power_is_found() {
        let points: Vec<[f64; 3]> = [10.0f64, 20.0, 80.0].map(|n| [n, 3.0 * n.powf(1.5), n]).into();
        assert!((slope(&points, 1).unwrap() - 1.5).abs() < 1e-12 && (slope(&points, 2).unwrap() - 1.0).abs() < 1e-12);
        assert_eq!(slope(&points[..1], 1), None, "one size has no slope");
    }
}
