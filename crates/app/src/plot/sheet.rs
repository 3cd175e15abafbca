//! A sheet of maps: a row per sample, a column per field or snapshot, a colour bar per field.

use super::colour::{FAINT, INK, PAPER, Scale};
use super::map::{Layout, window};
use super::mesh::{Area, Window};
use super::number::number;
use super::{Canvas, font};

pub(super) const MARGIN: usize = 24;
pub(super) const GAP: usize = 16;
const BAR: usize = 12;
/// Pixels from one line of text to the next.
pub(super) const LINE: usize = font::HEIGHT + 6;
/// Height in pixels of a colour bar with its numbers.
pub(super) const BAR_AND_NUMBERS: usize = BAR + LINE;

/// A sheet of maps.
pub(crate) struct Sheet {
    pub(crate) title: String,
    /// What the maps show, in place of a note on their axes.
    pub(crate) about: Option<String>,
    /// Label of each row.
    pub(crate) rows: Vec<String>,
    pub(crate) columns: Vec<Column>,
}

/// A field, or one snapshot of it.
pub(crate) struct Column {
    pub(crate) title: String,
    /// Neighbouring columns of the same field share their colours and their colour bar.
    pub(crate) field: String,
    /// `[rows, columns]` of each map
    pub(crate) plane: [usize; 2],
    /// A map per row of the sheet.
    pub(crate) cells: Vec<Vec<f32>>,
    /// The layouts of the maps, if not a grid of squares.
    pub(crate) layouts: Option<Layouts>,
    /// Whether a map has the snapshots of a number from left to right.
    pub(crate) over_time: bool,
}

/// The layouts of the maps of a column.
#[derive(Clone)]
pub(crate) struct Layouts {
    /// A layout per row of the sheet.
    pub(crate) rows: Vec<Layout>,
    /// The unit of the positions, as in ` (mm)`.
    pub(crate) unit: String,
}

impl Column {
    /// The layout of the map in a row of the sheet.
    fn layout(&self, row: usize) -> Layout {
        self.layouts.as_ref().map_or(Layout::Grid(self.plane), |layouts| layouts.rows[row].clone())
    }
}

/// Columns of one field.
struct Group<'a> {
    columns: &'a [Column],
    /// The part of the domain that all its maps show.
    window: Option<Window>,
    scale: Scale,
}

impl<'a> Group<'a> {
    fn of(columns: &'a [Column]) -> Group<'a> {
        let layouts: Option<Vec<_>> = columns.iter().map(|column| Some(&column.layouts.as_ref()?.rows)).collect();
        let window = layouts.and_then(|layouts| window(&layouts.into_iter().flatten().collect::<Vec<_>>()));
        let values = columns.iter().flat_map(|column| column.cells.iter().flatten().copied());
        Group { columns, window, scale: Scale::of(values) }
    }

    /// `[width, height]` in pixels of each map of a column.
    fn size(&self, column: &Column) -> [usize; 2] {
        column.layout(0).size(self.window.as_ref())
    }

    /// Width in pixels of a column with its title.
    fn width(&self, column: &Column) -> usize {
        self.size(column)[0].max(font::width(&column.title))
    }

    fn height(&self) -> usize {
        self.columns.iter().map(|column| self.size(column)[1]).max().unwrap_or(0)
    }

    fn axes(&self) -> String {
        let unit = self.columns[0].layouts.as_ref().map_or("", |layouts| &layouts.unit);
        let axes = self.columns[0].layout(0).axes(self.window.as_ref(), unit);
        if self.columns[0].over_time { axes.replacen("points", "snapshots", 1) } else { axes }
    }

    /// Draws the maps from `[x, top]` on and the colour bar below them; the x at which the next group starts.
    fn draw(&self, canvas: &mut Canvas, [left, top]: [usize; 2], row_height: usize, bottom: usize) -> usize {
        let mut x = left;
        for column in self.columns {
            canvas.text([x, top - LINE], &column.title, INK);
            for (row, values) in column.cells.iter().enumerate() {
                let area = Area { corner: [x, top + row * row_height], size: self.size(column) };
                column.layout(row).draw(canvas, area, self.window.as_ref(), values, &self.scale);
            }
            x += self.width(column) + GAP;
        }
        if !self.columns[0].layout(0).is_curve() && !self.columns[0].layout(0).is_number() {
            let ends = self.scale.ends(std::iter::empty(), number);
            bar(canvas, [left, bottom], x - GAP - left, &self.scale, ends);
        }
        x
    }
}

impl Sheet {
    pub(crate) fn draw(&self) -> Canvas {
        let same_field = |first: &Column, second: &Column| first.field == second.field;
        let groups: Vec<Group<'_>> = self.columns.chunk_by(same_field).map(Group::of).collect();
        let notes = self.about.clone().map_or_else(|| notes(&groups), |about| vec![about]);
        let labels = self.rows.iter().map(|label| font::width(label)).max().unwrap_or(0);
        let row_height = groups.iter().map(Group::height).max().unwrap_or(0) + GAP;
        let (left, top) = (MARGIN + labels + GAP, MARGIN + (2 + notes.len()) * LINE + GAP);
        let bottom = top + self.rows.len() * row_height;
        let widths = groups.iter().flat_map(|group| group.columns.iter().map(|column| group.width(column) + GAP));
        let lines = notes.iter().chain([&self.title]).map(|line| font::width(line)).max().unwrap_or(0);
        let full = (left + widths.sum::<usize>() - GAP).max(MARGIN + lines) + MARGIN;
        let mut canvas = Canvas::new(full, bottom + BAR_AND_NUMBERS + MARGIN, PAPER);
        canvas.text([MARGIN, MARGIN], &self.title, INK);
        for (line, note) in notes.iter().enumerate() {
            canvas.text([MARGIN, MARGIN + (line + 1) * LINE], note, FAINT);
        }
        for (row, label) in self.rows.iter().enumerate() {
            let middle = top + row * row_height + (row_height - GAP) / 2 - font::HEIGHT / 2;
            canvas.text([MARGIN, middle], label, FAINT);
        }
        groups.iter().fold(left, |x, group| group.draw(&mut canvas, [x, top], row_height, bottom));
        canvas
    }
}

/// What the axes of the maps are; with the names of the fields if these have different axes.
fn notes(groups: &[Group<'_>]) -> Vec<String> {
    let alike: Vec<_> = groups.chunk_by(|one, other| one.axes() == other.axes()).collect();
    let note = |groups: &&[Group<'_>]| {
        let names: Vec<_> = groups.iter().map(|group| group.columns[0].field.as_str()).collect();
        let names = match names[..] {
            [first, _, _, .., last] => format!("{first} to {last}"),
            _ => names.join(", "),
        };
        let axes = groups[0].axes();
        if alike.len() == 1 || names.is_empty() { axes } else { format!("{names}: {axes}") }
    };
    alike.iter().map(note).collect()
}

/// A colour bar with the numbers at its ends.
pub(super) fn bar(
    canvas: &mut Canvas,
    [left, top]: [usize; 2],
    length: usize,
    scale: &Scale,
    [least, most]: [String; 2],
) {
    let extent = scale.most - scale.least;
    for x in 0..length {
        let value = scale.least + extent * x as f32 / (length - 1).max(1) as f32;
        canvas.fill([left + x, top], [1, BAR], scale.colour(value));
    }
    let line = top + BAR + 4;
    canvas.text([left, line], &least, FAINT);
    if least != most {
        canvas.text([(left + length).saturating_sub(font::width(&most)), line], &most, FAINT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLANE: &str = "2 rows, 2 columns, row 0 on top and column 0 at the left, as imshow draws them";

    #[test]
    fn notes_name_the_fields_if_their_axes_differ() {
        let column = |field: &str, plane| Column {
            title: field.into(),
            field: field.into(),
            plane,
            cells: vec![vec![0.0; 4]],
            layouts: None,
            over_time: false,
        };
        let note = |columns: &[Column]| notes(&columns.chunks(1).map(Group::of).collect::<Vec<_>>());
        let driven = Column { over_time: true, ..column("force", [7, 1]) };
        assert_eq!(note(&[driven]), ["snapshots 0 to 6 from left to right"]);
        let [line, plane, other] =
            [("die", [4, 1]), ("u", [2, 2]), ("v", [2, 2])].map(|(name, plane)| column(name, plane));
        assert_eq!(
            note(&[line, plane, other]),
            ["die: points 0 to 3 from left to right".to_owned(), format!("u, v: {PLANE}")]
        );
        assert_eq!(note(&[column("u", [2, 2])]), [PLANE]);
    }
}
