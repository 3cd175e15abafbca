//! Lines that are redrawn in place must fit the terminal: a line that wraps cannot be redrawn.

use std::io::stderr;

/// The width of a terminal that does not say how wide it is.
const USUAL: usize = 80;

/// A part of a line, and what may be left out for it.
pub(crate) struct Part {
    /// 0 for a part that is always there; parts of higher numbers are left out first.
    rank: u8,
    text: String,
}

impl Part {
    /// A part that is always there.
    pub(crate) fn essential() -> Part {
        Part::first(0)
    }

    /// A part that is left out before those of lower ranks.
    pub(crate) fn first(rank: u8) -> Part {
        Part { rank, text: String::new() }
    }

    /// The part with its text; an empty text is no part.
    pub(crate) fn of(self, text: String) -> Part {
        Part { text, ..self }
    }
}

/// Columns of the terminal at standard error; those of the variable `COLUMNS` if it does not know.
pub(crate) fn width() -> usize {
    let terminal = terminal_size::terminal_size_of(stderr()).map(|(width, _)| usize::from(width.0));
    columns(terminal, std::env::var("COLUMNS").ok().as_deref())
}

fn columns(terminal: Option<usize>, variable: Option<&str>) -> usize {
    let variable = variable.and_then(|text| text.trim().parse().ok());
    terminal.or(variable).filter(|&columns| columns > 0).unwrap_or(USUAL)
}

/// The parts with a separator between them. Where they exceed the width, the parts of the highest rank are left out first;
/// if the essential ones exceed it too, the line is cut.
pub(crate) fn fit(parts: &[Part], separator: &str, width: Option<usize>) -> String {
    let line = |rank: u8| {
        let chosen = parts.iter().filter(|part| part.rank <= rank && !part.text.is_empty());
        chosen.map(|part| part.text.as_str()).collect::<Vec<_>>().join(separator)
    };
    let highest = parts.iter().map(|part| part.rank).max().unwrap_or(0);
    let width = width.unwrap_or(usize::MAX);
    let fits = |text: &String| text.chars().count() <= width;
    (0..=highest).rev().map(line).find(fits).unwrap_or_else(|| line(0).chars().take(width).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_terminal_knows_its_width_best_then_the_variable() {
        assert_eq!(columns(Some(132), Some("60")), 132);
        assert_eq!(columns(None, Some(" 60\n")), 60);
        let unknown = [None, Some(""), Some("wide"), Some("-3"), Some("0")].map(|variable| columns(None, variable));
        assert_eq!(unknown, [USUAL; 5]);
        assert_eq!(columns(Some(0), None), USUAL, "a terminal without a size");
    }

    #[test]
    fn parts_of_the_highest_rank_are_left_out_first_and_at_last_the_line_is_cut() {
        let part = |rank, text: &str| Part::first(rank).of(text.into());
        let parts = [part(0, "aaaa"), part(2, "bbbb"), part(1, "cccc"), part(1, ""), part(0, "dddd")];
        let said =
            [None, Some(18), Some(17), Some(13), Some(9), Some(3), Some(0)].map(|width| fit(&parts, ", ", width));
        assert_eq!(
            said,
            ["aaaa, bbbb, cccc, dddd", "aaaa, cccc, dddd", "aaaa, cccc, dddd", "aaaa, dddd", "aaaa, ddd", "aaa", ""]
        );
        assert_eq!(fit(&[], ", ", Some(5)), "");
    }
}
