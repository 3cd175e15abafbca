//! Tables as text: CSV with commas, semicolons or tabs, and columns apart by spaces.
//!
//! ```text
//! x, mu, u0, u1, u2        names in the first line, or after `#`; without names the table is one array [rows, columns]
//! 0.1, 3, 0.5, 0.4, 0.3    a column is an array [rows]; numbered neighbours are one array, here `u` [rows, 3]
//! ```
//! Numbered columns with a gap are single columns, and columns without a name of their own are called `column 1` and so on.
//! A first line `0,1,2,...` or `1,2,3,...` above numbers with decimals has the names of the columns, as pandas writes them.
//! Lines that begin with `#` or `%` are comments. One line of another length before the numbers is a title, as in the
//! files of airfoils. An empty cell, `NaN` and `NA` are no number (NaN). A table is read into memory as a whole.

use super::array::{ElementKind, Found, Gathering, Layout, Tick, Wanted};
use super::entry::{Entry, Numbers, OpenArray};
use super::error::Error;
use super::source::Opened;
use crate::files::memory;
use std::collections::HashMap;
use std::io;
use std::ops::Range;
use std::rc::Rc;

/// Lines before the numbers at most: a title and the names.
const LINES_BEFORE: usize = 2;
/// A first line that is longer than the start of the file has at least this many cells.
const CELLS_OF_A_LONG_LINE: usize = 16;

/// What stands between two cells; spaces where it is `None`.
pub(in crate::data) type Separator = Option<char>;

/// Whether the first lines are those of a table.
pub(super) fn sniff(start: &[u8], size: u64) -> bool {
    let whole = start.len() as u64 == size;
    let Some(text) = text_of(start, whole) else { return false };
    if text.trim_start().starts_with(['<', '{', '[']) {
        return false;
    }
    let lines = text.rfind('\n').filter(|_| !whole).map_or(text, |end| &text[..end]);
    if lines.len() == text.len() && !whole {
        let count = |separator: &char| text.matches(*separator).count();
        return [',', ';', '\t'].iter().map(count).max() >= Some(CELLS_OF_A_LONG_LINE);
    }
    Head::of(lines).is_some()
}

/// The columns, and the groups of numbered columns.
pub(super) fn open(opened: &Opened) -> Result<Vec<Entry>, Error> {
    let fails = |expected: String, found: String| Error::Table { path: opened.path.clone(), expected, found };
    let too_large = || Error::Memory { path: opened.path.clone(), name: String::new(), expected: 8 * opened.size };
    memory::require(opened.size.saturating_mul(6)).map_err(|_| too_large())?; // the text, and a number per two bytes
    let bytes = opened.bytes(0, opened.size, "the table")?;
    let text = text_of(&bytes, true).ok_or_else(|| {
        let control = bytes.iter().position(|byte| byte.is_ascii_control() && !b"\t\r\n".contains(byte));
        let found = control.map_or("bytes that are not UTF-8".to_owned(), |at| format!("a control byte at {at}"));
        fails("a table of plain text".to_owned(), found)
    })?;
    let head = Head::of(text).ok_or_else(|| {
        fails("a row of numbers after at most a title and the names".to_owned(), "other lines".to_owned())
    })?;
    let table = Rc::new(Table::parse(text, &head).map_err(|[expected, found]| fails(expected, found))?);
    Ok(match &head.names {
        None => table.without_names(),
        Some(names) => table.with_names(names),
    })
}

/// Text without control characters; a letter at the end may be cut unless the text is `whole`.
fn text_of(bytes: &[u8], whole: bool) -> Option<&str> {
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text,
        Err(error) if !whole && error.error_len().is_none() => {
            std::str::from_utf8(&bytes[..error.valid_up_to()]).unwrap_or_default()
        }
        Err(_) => return None,
    };
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let odd = |letter: char| letter.is_control() && !matches!(letter, '\t' | '\r' | '\n');
    (!text.contains(odd)).then_some(text)
}

/// What the first lines say.
struct Head {
    separator: Separator,
    names: Option<Vec<String>>,
    /// Number of lines before the first row, comments included.
    lines: usize,
    columns: usize,
}

/// The lines with cells, numbered from 0.
fn rows(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().map(|(number, line)| (number, line.trim()));
    lines.filter(|(_, line)| !line.is_empty() && !is_comment(line))
}

pub(in crate::data) fn is_comment(line: &str) -> bool {
    line.starts_with(['#', '%'])
}

impl Head {
    /// The head of a table; `None` where no row of numbers follows.
    fn of(text: &str) -> Option<Head> {
        let first: Vec<(usize, &str)> = rows(text).take(LINES_BEFORE + 2).collect();
        for (place, (line, row)) in first.iter().enumerate().take(LINES_BEFORE + 1) {
            let separator = separator_of(row);
            let found = cells(row, separator);
            let numbers = found.iter().filter(|cell| is_number(cell, separator)).count();
            let all = numbers == found.len();
            // A cell may hold text where cells are clearly apart and a line of names stands above.
            let above = place.checked_sub(1).map(|above| cells(first[above].1, separator));
            if let Some(above) =
                above.as_ref().filter(|above| is_header(above, separator) && above.len() != found.len())
            {
                // The rows are refused for their number of cells.
                return Some(Head { separator, columns: above.len(), names: Some(above.clone()), lines: *line });
            }
            let named = above.filter(|above| above.len() == found.len());
            let names_above = named.as_ref().is_some_and(|above| !above.iter().any(|cell| is_number(cell, separator)));
            let mixed = separator.is_some() && numbers > 0 && names_above;
            if !all && !mixed {
                continue;
            }
            let below = first.get(place + 1).map(|(_, row)| cells(row, separator));
            if let Some(below) = below.filter(|below| counts(&found) && is_row(below, found.len(), separator)) {
                return Some(Head { separator, columns: below.len(), names: Some(found), lines: first[place + 1].0 });
            }
            let names = named.filter(|_| names_above).or_else(|| commented(text, *line, separator, found.len()));
            return Some(Head { separator, names, lines: *line, columns: found.len() });
        }
        None
    }
}

/// Whether cells between separators are names: several, none of them a number.
fn is_header(cells: &[String], separator: Separator) -> bool {
    let name = |cell: &String| !cell.is_empty() && !cell.contains(char::is_whitespace) && !is_number(cell, separator);
    separator.is_some() && cells.len() > 1 && cells.iter().all(name)
}

/// Whether cells count the columns: 0, 1, 2, ... or 1, 2, 3, ... without decimals, three of them at least.
fn counts(cells: &[String]) -> bool {
    let from = |start: usize| cells.iter().enumerate().all(|(place, cell)| *cell == (start + place).to_string());
    cells.len() > 2 && (from(0) || from(1))
}

/// Whether cells are a row of so many numbers, one of which is no plain integer: under a count, a row of integers may be one of a
/// table of integers.
fn is_row(cells: &[String], columns: usize, separator: Separator) -> bool {
    let integer = |cell: &String| cell.parse::<i64>().is_ok();
    let numbers = cells.iter().all(|cell| number(cell, separator).is_some());
    cells.len() == columns && numbers && !cells.iter().all(integer)
}

/// Names in the comment above the first row, as `numpy.savetxt` writes them.
fn commented(text: &str, line: usize, separator: Separator, columns: usize) -> Option<Vec<String>> {
    let above = text.lines().nth(line.checked_sub(1)?)?.trim();
    let names = cells(above.strip_prefix(['#', '%'])?.trim(), separator);
    (names.len() == columns && !names.iter().any(|cell| is_number(cell, separator))).then_some(names)
}

/// What stands between the cells of a line.
pub(in crate::data) fn separator_of(line: &str) -> Separator {
    let separators = [Some(';'), Some('\t'), Some(','), None];
    separators.into_iter().find(|&separator| cells(line, separator).len() > 1).flatten()
}

/// The cells of a line, without spaces and quotes around them.
pub(in crate::data) fn cells(line: &str, separator: Separator) -> Vec<String> {
    let Some(separator) = separator else { return line.split_whitespace().map(str::to_owned).collect() };
    let (mut cells, mut quoted) = (vec![String::new()], false);
    for letter in line.chars() {
        match letter {
            '"' => quoted = !quoted,
            letter if letter == separator && !quoted => cells.push(String::new()),
            letter => cells.last_mut().into_iter().for_each(|cell| cell.push(letter)),
        }
    }
    cells.iter().map(|cell| cell.trim().to_owned()).collect()
}

/// The number in a cell: NaN where it is empty or says so, `None` where it is text.
pub(in crate::data) fn number(cell: &str, separator: Separator) -> Option<f64> {
    if matches!(cell.to_ascii_lowercase().as_str(), "" | "nan" | "na" | "n/a" | "null") {
        return Some(f64::NAN);
    }
    let decimal_comma = separator == Some(';') && cell.contains(',');
    let plain = if decimal_comma { cell.replace(',', ".") } else { cell.to_owned() };
    plain.parse().or_else(|_| plain.replace(['d', 'D'], "e").parse()).ok() // Fortran writes 1.0D-3
}

fn is_number(cell: &str, separator: Separator) -> bool {
    number(cell, separator).is_some_and(|number| !number.is_nan())
}

/// A table in memory.
struct Table {
    columns: usize,
    /// `[rows, columns]`
    values: Vec<f64>,
    /// A cell of each column that is text.
    texts: Vec<Option<String>>,
}

impl Table {
    /// Reads all rows; refuses one of another length: what was expected and what was found.
    fn parse(text: &str, head: &Head) -> Result<Table, [String; 2]> {
        let Head { separator, lines, columns, .. } = *head;
        let mut table = Table { columns, values: Vec::new(), texts: vec![None; columns] };
        let mut decimals: [Option<String>; 2] = [None, None]; // a cell with a comma, and one with a point
        for (line, row) in rows(text).filter(|(line, _)| *line >= lines) {
            let found = cells(row, separator);
            if found.len() != columns {
                let expected = match line == lines && head.names.is_some() {
                    true => format!("{columns} cells in each row, as in the line of names"),
                    false => format!("{columns} cells in each row, as in line {}", lines + 1),
                };
                return Err([expected, format!("{} in line {}", found.len(), line + 1)]);
            }
            for (cell, text) in found.iter().zip(&mut table.texts) {
                let value = number(cell, separator);
                for (mark, seen) in [',', '.'].into_iter().zip(&mut decimals) {
                    if seen.is_none() && value.is_some() && cell.contains(mark) {
                        *seen = Some(format!("`{cell}` in line {}", line + 1));
                    }
                }
                if value.is_none() && text.is_none() {
                    *text = Some(format!("text in line {}: `{cell}`", line + 1));
                }
                table.values.push(value.unwrap_or(f64::NAN));
            }
            if let [Some(comma), Some(point)] = &decimals {
                return Err(["decimal points, or decimal commas".to_owned(), format!("{comma} and {point}")]);
            }
        }
        Ok(table)
    }

    /// The array of some columns; one column alone has no axis for them if it is `flat`.
    fn entry(self: &Rc<Table>, name: String, columns: Range<usize>, flat: bool) -> Entry {
        let text = self.texts[columns.clone()].iter().flatten().next();
        let rows = self.values.len() / self.columns;
        let shape = if flat { vec![rows] } else { vec![rows, columns.len()] };
        let kind = ElementKind::F64;
        let layout = Layout { shape, kind, stored: kind, big_endian: false, column_major: false, pairs: false };
        let holds = text.map_or(Ok(layout), |text| Err(text.clone()));
        Entry::new(name, holds, Columns { table: Rc::clone(self), columns })
    }

    /// The whole table without a name, and hidden columns by number, from 1 on.
    fn without_names(self: &Rc<Table>) -> Vec<Entry> {
        let whole = self.entry(String::new(), 0..self.columns, self.columns == 1);
        let column = |column: usize| self.entry((column + 1).to_string(), column..column + 1, true).hide();
        [whole].into_iter().chain((0..self.columns).map(column)).collect()
    }

    /// Groups and columns by name; a column of a group is hidden.
    fn with_names(self: &Rc<Table>, names: &[String]) -> Vec<Entry> {
        let alike = count(names.iter().map(String::as_str));
        let of_stem = count(names.iter().filter_map(|name| numbered(name)).map(|(stem, _)| stem));
        let named = |column: usize| match names[column].as_str() {
            name if !name.is_empty() && alike[name] == 1 => name.to_owned(),
            _ => format!("column {}", column + 1),
        };
        let (mut entries, mut column) = (Vec::new(), 0);
        while column < names.len() {
            let (group, end) = group(names, column);
            let whole = of_stem.get(group.as_str()) == Some(&(end - column));
            let grouped = end > column + 1 && whole && !names.contains(&group);
            if grouped {
                entries.push(self.entry(group, column..end, false));
            }
            let singles = (column..end).map(|column| self.entry(named(column), column..column + 1, true));
            entries.extend(singles.map(|entry| if grouped { entry.hide() } else { entry }));
            column = end;
        }
        entries
    }
}

/// How often each word occurs.
fn count<'a>(words: impl Iterator<Item = &'a str>) -> HashMap<&'a str, usize> {
    let mut counts = HashMap::new();
    words.for_each(|word| *counts.entry(word).or_default() += 1);
    counts
}

/// The columns from `first` on whose names are one stem and consecutive numbers: the stem, and the column after them.
fn group(names: &[String], first: usize) -> (String, usize) {
    let Some((stem, start)) = numbered(&names[first]) else { return (String::new(), first + 1) };
    let follows = |(place, name): &(usize, &String)| {
        numbered(name).is_some_and(|(other, number)| other == stem && Some(number) == start.checked_add(*place))
    };
    let count = names[first..].iter().enumerate().take_while(follows).count();
    (stem.to_owned(), first + count)
}

/// The stem and the number of a name: `u_12` and `u[12]` are 12 of `u`.
fn numbered(name: &str) -> Option<(&str, usize)> {
    let name = name.trim_end_matches([']', ')']);
    let stem = name.trim_end_matches(|letter: char| letter.is_ascii_digit());
    let number = name[stem.len()..].parse().ok()?;
    Some((stem.trim_end_matches(['_', '-', '.', ' ', '[', '(']), number))
}

/// Some columns of a table.
struct Columns {
    table: Rc<Table>,
    columns: Range<usize>,
}

impl Numbers for Columns {
    /// The shape was counted.
    fn check(&self, _array: &OpenArray) -> Result<(), Error> {
        Ok(())
    }

    fn read(&self, array: &OpenArray, wanted: &Wanted, tick: Tick) -> Result<Found, Error> {
        let gathering = Gathering { layout: array.layout, wanted, tick };
        let rows = array.layout.shape[0];
        let (rows, columns) = match wanted.order.first() {
            Some(1) => (0..rows, wanted.rows.clone()),
            _ => (wanted.rows.clone(), 0..self.columns.len()),
        };
        let each = |take: &mut dyn FnMut(&[f64])| -> io::Result<()> {
            rows.into_iter().for_each(|row| take(&self.row(row)[columns.clone()]));
            Ok(())
        };
        let found = if wanted.single { gathering.run_narrow(each) } else { gathering.run::<f64, _>(each) };
        found.map_err(|_| array.too_large(wanted))
    }

    fn visit(&self, array: &OpenArray, take: &mut dyn FnMut(&[f64])) -> Result<(), Error> {
        (0..array.layout.shape[0]).for_each(|row| take(self.row(row)));
        Ok(())
    }
}

impl Columns {
    fn row(&self, row: usize) -> &[f64] {
        &self.table.values[row * self.table.columns..][self.columns.clone()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_table(text: &str) -> bool {
        sniff(text.as_bytes(), text.len() as u64)
    }

    #[test]
    fn tables_are_told_apart_from_other_texts() {
        for table in [
            "x,u\n0,1\n",
            "x;u\n0,5;1\n",
            "1 2 3\n4 5 6",
            "NACA 2412 by someone\n 1.0 0.0\n 0.9 0.1\n",
            "# x u\n1 2\n",
            "name,u\nfirst,2\n",
            "7\n",
            "\u{feff}x\tu\r\n1\t2\r\n",
        ] {
            assert!(is_table(table), "{table:?}");
        }
        for other in [
            "",
            "\n\n",
            "version https://git-lfs.github.com/spec/v1\noid sha256:1\nsize 12\n",
            "<html>\n1,2\n</html>",
            "{\"a\": 1, \"b\": 2}",
            "format = 1\nlamo = \"0.1.0\"\n",
            "damaged",
            "one two\nthree 4\n",
            "x,u\n",
            "1,2\0\n",
        ] {
            assert!(!is_table(other), "{other:?}");
        }
    }

    #[test]
    fn a_first_line_that_counts_the_columns_above_decimals_is_a_header() {
        let head = |text: &str| Head::of(text).map(|head| (head.names.is_some(), head.lines)).unwrap();
        assert_eq!(head("0,1,2\n0.5,0.25,1.0\n"), (true, 1));
        assert_eq!(head("1;2;3;4\n0,5;1;2;3\n"), (true, 1));
        assert_eq!(head("0,1,2\n0.0,1.0,nan\n"), (true, 1));
        assert_eq!(head("1,2,3\n4,5,6\n"), (false, 0), "a table of integers");
        assert_eq!(head("0.0,1.0,2.0\n0.5,0.25,1.0\n"), (false, 0), "numbers with decimals");
        assert_eq!(head("0,1\n0.5,0.25\n"), (false, 0), "two columns");
        assert_eq!(head("0,1,3\n0.5,0.25,1.0\n"), (false, 0));
        assert_eq!(head("0,1,2\n"), (false, 0));
    }

    #[test]
    fn a_line_of_names_says_how_many_cells_a_row_has() {
        let columns = |text: &str| Head::of(text).map(|head| (head.names.is_some(), head.columns)).unwrap();
        assert_eq!(columns("a,b\n0,01,0,003\n0,15,1,103\n"), (true, 2), "decimal commas between commas");
        assert_eq!(columns("a,b,c\n1,2\n3,4\n"), (true, 3));
        assert_eq!(columns("by A. Author, 2020\n1,2,3\n4,5,6\n"), (false, 3), "a remark is no line of names");
        assert_eq!(columns("NACA 0012\n1.0 0.0 0.5\n"), (false, 3), "nor are words without separators");
    }

    #[test]
    fn numbered_columns_are_a_group() {
        let names = |text: &str| text.split(',').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(group(&names("u_0,u_1,u_2,v"), 0), ("u".into(), 3));
        assert_eq!(group(&names("mu,u1,u2"), 1), ("u".into(), 3));
        assert_eq!(group(&names("u[3],u[4]"), 0), ("u".into(), 2));
        assert_eq!(group(&names("u0,u2"), 0), ("u".into(), 1));
        assert_eq!(group(&names("0,1,2"), 0), (String::new(), 3));
        assert_eq!(group(&names("mu,u1"), 0).1, 1);
        assert_eq!(group(&names("u18446744073709551615,u0"), 0).1, 1);
    }
    #[test]
    fn columns_with_a_gap_or_of_one_name_are_single_ones() {
        let listed = |header: &str| -> Vec<String> {
            let names: Vec<String> = header.split(',').map(str::to_owned).collect();
            let text = format!("{header}\n{}\n", vec!["0.5"; names.len()].join(","));
            let table = Table::parse(&text, &Head::of(&text).unwrap()).unwrap();
            let entries = Rc::new(table).with_names(&names);
            entries.iter().filter(|entry| !entry.hidden).map(|entry| entry.name.clone()).collect()
        };
        assert_eq!(listed("mu,u0,u1,u2"), ["mu", "u"]);
        assert_eq!(listed("u0,u1,u3"), ["u0", "u1", "u3"]);
        assert_eq!(listed("u0,u1,mu,u5,u6"), ["u0", "u1", "mu", "u5", "u6"]);
        assert_eq!(listed("a,a,y"), ["column 1", "column 2", "y"]);
        assert_eq!(listed("a,,y"), ["a", "column 2", "y"]);
    }
}
