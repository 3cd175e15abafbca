//! A table with numbers for each case: the first column has the names of the files, with or without ending. Cells and numbers are those
//! of the CSV format: commas, semicolons (with decimal commas or points), tabs or spaces. Lines that begin with `#` or `%` are comments;
//! the last of those at the top has the names of the columns where no other line has them.

use super::input::shortened;
use crate::data::formats::csv::{self, Separator};
use crate::error::{Kind, Refusal, require};
use crate::files;
use std::path::Path;

/// Whether no cell of a line behind the first is a number, as in a line of names.
fn are_names(line: &str) -> bool {
    let separator = csv::separator_of(line);
    csv::cells(line, separator).iter().skip(1).all(|cell| csv::number(cell, separator).is_none_or(f64::is_nan))
}

struct Scalars {
    separator: Separator,
    /// The heads of all columns.
    names: Vec<String>,
    rows: Vec<Vec<String>>,
}

impl Scalars {
    fn read(file: &Path) -> Result<Scalars, Refusal> {
        let text = files::read_to_string(file).map_err(|reason| match reason.kind() {
            std::io::ErrorKind::InvalidData => {
                Refusal::new("", "text in UTF-8", "bytes of another encoding").advise("save it as \"CSV UTF-8\"")
            }
            _ => Refusal::said(format!("cannot be read: {reason}")).of(Kind::of_io(&reason)),
        })?;
        let lines = text.trim_start_matches('\u{feff}').lines().map(str::trim).enumerate();
        let lines: Vec<(usize, &str)> = lines.filter(|(_, line)| !line.is_empty()).collect();
        let top = lines.iter().take_while(|(_, line)| csv::is_comment(line)).count();
        let mut rest = lines[top..].iter().filter(|(_, line)| !csv::is_comment(line)).peekable();
        let above = top.checked_sub(1).map(|last| lines[last].1.trim_start_matches(['#', '%']).trim());
        let named = rest.next_if(|(_, line)| above.is_none() || are_names(line));
        let head = named.map(|(_, line)| *line).or(above).unwrap_or_default();
        let separator = csv::separator_of(head);
        let mut names = csv::cells(head, separator);
        let last = names.iter().rposition(|name| !name.is_empty()).map_or(0, |last| last + 1);
        names.truncate(last);
        require(names.len() > 1, || {
            let expected = "a column with the names of the files, then columns of numbers";
            Refusal::new("", expected, format!("one column `{}`", shortened(head)))
        })?;
        let mut rows = Vec::new();
        for &(number, line) in rest {
            let row = csv::cells(line, separator);
            // More cells than names are often decimal commas between commas, and each number would be two.
            require(row.len() <= names.len() || row[names.len()..].iter().all(String::is_empty), || {
                let expected = format!("{} cells, as its first line names", names.len());
                Refusal::new(format!("line {}", number + 1), expected, row.len().to_string())
                    .advise("separate cells by semicolons where numbers have decimal commas")
            })?;
            rows.push(row);
        }
        let table = Scalars { separator, names, rows };
        table.check_decimals()?;
        Ok(table)
    }

    /// Refuses decimal commas beside decimal points: one of them would be read as the other.
    fn check_decimals(&self) -> Result<(), Refusal> {
        let numbers = || self.rows.iter().flat_map(|row| row.iter().skip(1)).filter(|cell| self.number(cell).is_some());
        let with = |mark: char| numbers().find(|cell| cell.contains(mark));
        match (with(','), with('.')) {
            (Some(comma), Some(point)) => {
                let expected = "decimal points, or decimal commas";
                Err(Refusal::new("", expected, format!("`{comma}` and `{point}`")))
            }
            _ => Ok(()),
        }
    }

    fn number(&self, cell: &str) -> Option<f64> {
        csv::number(cell, self.separator).filter(|number| number.is_finite())
    }

    /// The number of the case `path` in a column.
    fn of_case(&self, path: &Path, column: &str) -> Result<f64, Refusal> {
        let place = self.names.iter().skip(1).position(|name| name == column).map(|place| place + 1);
        let place =
            place.ok_or_else(|| Refusal::new("", format!("a column `{column}`"), self.names[1..].join(", ")))?;
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let own: Vec<&Vec<String>> = self.rows.iter().filter(|row| row[0] == name || row[0] == stem).collect();
        let [row] = &own[..] else {
            return Err(Refusal::new("", format!("one row for `{name}`"), format!("{} rows", own.len())));
        };
        let word = row.get(place).map_or("", String::as_str);
        self.number(word)
            .ok_or_else(|| Refusal::new(format!("`{column}` of `{name}`"), "a number", format!("`{word}`")))
    }
}

/// The number of one case in a table `FILE:COLUMN`.
pub(super) fn scalar(path: &Path, table: &str) -> Result<Vec<f64>, Refusal> {
    let (file, column) = table.rsplit_once(':').unwrap_or((table, ""));
    let found = Scalars::read(Path::new(file)).and_then(|scalars| scalars.of_case(path, column));
    found.map(|number| vec![number]).map_err(|refusal| refusal.within(file))
}

/// The columns of a table of scalars after the first.
pub(in crate::data) fn scalar_names(file: &Path) -> Result<Vec<String>, Refusal> {
    let scalars = Scalars::read(file).map_err(|refusal| refusal.within(file.display()))?;
    Ok(scalars.names.into_iter().skip(1).collect())
}
