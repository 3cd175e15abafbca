//! A typeface of dots: five columns, seven rows above the line and two below it; each row is five bits, left first.

/// Columns from one letter to the next.
pub(crate) const ADVANCE: usize = 6;
/// Rows of a letter above the line.
pub(crate) const HEIGHT: usize = 7;

/// `[column, row]` of the dots of a letter; a box stands for letters the face lacks.
pub(crate) fn dots(letter: char) -> impl Iterator<Item = [usize; 2]> {
    const BOX: &[u8] = &[31, 17, 17, 17, 17, 17, 31];
    let found = LETTERS.iter().find(|(known, _)| *known == letter.to_ascii_lowercase());
    let rows = found.map_or(if letter == ' ' { &[] } else { BOX }, |(_, rows)| rows);
    let bits = move |row: usize| (0..5).filter(move |column| rows[row] >> (4 - column) & 1 == 1);
    (0..rows.len()).flat_map(move |row| bits(row).map(move |column| [column, row]))
}

#[rustfmt::skip]
const LETTERS: &[(char, &[u8])] = &[
    ('0', &[14, 17, 19, 21, 25, 17, 14]), ('1', &[4, 12, 4, 4, 4, 4, 14]), ('2', &[14, 17, 1, 2, 4, 8, 31]),
    ('3', &[14, 17, 1, 6, 1, 17, 14]), ('4', &[2, 6, 10, 18, 31, 2, 2]), ('5', &[31, 16, 30, 1, 1, 17, 14]),
    ('6', &[6, 8, 16, 30, 17, 17, 14]), ('7', &[31, 1, 2, 4, 8, 8, 8]), ('8', &[14, 17, 17, 14, 17, 17, 14]),
    ('9', &[14, 17, 17, 15, 1, 2, 12]), ('.', &[0, 0, 0, 0, 0, 12, 12]), (',', &[0, 0, 0, 0, 0, 12, 4, 8]),
    ('-', &[0, 0, 0, 31]), ('+', &[0, 4, 4, 31, 4, 4]), ('/', &[1, 1, 2, 4, 8, 16, 16]),
    ('=', &[0, 0, 31, 0, 31]), ('_', &[0, 0, 0, 0, 0, 0, 31]), (':', &[0, 12, 12, 0, 12, 12]),
    ('(', &[2, 4, 8, 8, 8, 4, 2]), (')', &[8, 4, 2, 2, 2, 4, 8]),
    ('a', &[0, 0, 14, 1, 15, 17, 15]), ('b', &[16, 16, 22, 25, 17, 17, 30]), ('c', &[0, 0, 14, 16, 16, 17, 14]),
    ('d', &[1, 1, 13, 19, 17, 17, 15]), ('e', &[0, 0, 14, 17, 31, 16, 14]), ('f', &[6, 9, 8, 28, 8, 8, 8]),
    ('g', &[0, 0, 15, 17, 17, 15, 1, 1, 14]), ('h', &[16, 16, 22, 25, 17, 17, 17]), ('i', &[4, 0, 12, 4, 4, 4, 14]),
    ('j', &[2, 0, 6, 2, 2, 2, 2, 18, 12]), ('k', &[16, 16, 18, 20, 24, 20, 18]), ('l', &[12, 4, 4, 4, 4, 4, 14]),
    ('m', &[0, 0, 26, 21, 21, 21, 21]), ('n', &[0, 0, 22, 25, 17, 17, 17]), ('o', &[0, 0, 14, 17, 17, 17, 14]),
    ('p', &[0, 0, 30, 17, 17, 30, 16, 16, 16]), ('q', &[0, 0, 15, 17, 17, 15, 1, 1, 1]),
    ('r', &[0, 0, 22, 25, 16, 16, 16]), ('s', &[0, 0, 15, 16, 14, 1, 30]), ('t', &[8, 8, 28, 8, 8, 9, 6]),
    ('u', &[0, 0, 17, 17, 17, 19, 13]), ('v', &[0, 0, 17, 17, 17, 10, 4]), ('w', &[0, 0, 17, 21, 21, 21, 10]),
    ('x', &[0, 0, 17, 10, 4, 10, 17]), ('y', &[0, 0, 17, 17, 17, 15, 1, 1, 14]), ('z', &[0, 0, 31, 2, 4, 8, 31]),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_letter_is_its_own_and_fits() {
        for (index, (letter, rows)) in LETTERS.iter().enumerate() {
            assert!(rows.len() <= 9 && rows.iter().all(|&row| row < 32), "{letter}");
            assert!(LETTERS[..index].iter().all(|(_, other)| other != rows), "{letter}");
        }
        assert_eq!(dots(' ').count(), 0);
        assert_eq!(dots('-').count(), 5);
    }
}
