//! Words and numbers on the page.

/// Text that HTML takes as it is.
pub(super) fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            _ => escaped.push(letter),
        }
    }
    escaped
}

/// A share as percent, three digits that count.
pub(crate) fn percent(share: f64) -> String {
    format!("{} %", short(100.0 * share))
}

/// Three digits that count, with a power of ten where the point would be far from them.
pub(crate) fn short(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 {
        return "0".into();
    }
    if !value.is_finite() {
        return if value.is_nan() { "not a number".into() } else { "infinite".into() };
    }
    if !(1e-4..1e5).contains(&size) {
        let text = format!("{value:.2e}");
        let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
        let digits = digits.trim_end_matches('0').trim_end_matches('.');
        let raised = power.chars().map(|letter| match letter {
            '-' => '⁻',
            digit => ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'][digit.to_digit(10).unwrap_or(0) as usize],
        });
        let raised: String = raised.collect();
        return if digits == "1" { format!("10{raised}") } else { format!("{digits}·10{raised}") };
    }
    let digits = (2 - size.log10().floor() as i32).max(0) as usize;
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A whole number in groups of three.
pub(crate) fn whole(value: usize) -> String {
    let digits = value.to_string();
    let groups: Vec<&str> = digits.as_bytes().rchunks(3).rev().filter_map(|group| str::from_utf8(group).ok()).collect();
    groups.join(",")
}

/// A time as people say it.
pub(crate) fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 0.9995 => format!("{} ms", short(1e3 * s)),
        s if s < 99.5 => format!("{} s", short(s)),
        s if s < 5400.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

/// Bytes in the unit that leaves few digits.
pub(crate) fn bytes(count: usize) -> String {
    match count as f64 {
        b if b < 1e6 => format!("{} kB", short(b / 1e3)),
        b if b < 1e9 => format!("{} MB", short(b / 1e6)),
        b => format!("{} GB", short(b / 1e9)),
    }
}

/// Bytes as text for a `data:` address (RFC 4648).
pub(super) fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let word = (0..3).fold(0u32, |word, place| word << 8 | u32::from(group.get(place).copied().unwrap_or(0)));
        for place in 0..4 {
            let letter = LETTERS[(word >> (18 - 6 * place) & 63) as usize];
            text.push(if place <= group.len() { char::from(letter) } else { '=' });
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_letters_as_the_standard_says() {
        let words = ["", "f", "fo", "foo", "foob", "fooba", "foobar"].map(|word| base64(word.as_bytes()));
        assert_eq!(words, ["", "Zg==", "Zm8=", "Zm9v", "Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy"]);
        assert_eq!(base64(&[0xfb, 0xff]), "+/8=");
    }

    #[test]
    fn numbers_read_as_people_write_them() {
        let words = [0.0, 0.02731, 3.0, 12_345.0, 0.0005, 1e-6, 2.5e-7, -3e9, f64::INFINITY].map(short);
        assert_eq!(words, ["0", "0.0273", "3", "12345", "0.0005", "10⁻⁶", "2.5·10⁻⁷", "-3·10⁹", "infinite"]);
        assert_eq!([percent(0.0273), percent(0.00391)], ["2.73 %", "0.391 %"]);
        assert_eq!([whole(7), whole(1024), whole(10_061_314)], ["7", "1,024", "10,061,314"]);
        assert_eq!([0.012, 12.3, 600.0, 9000.0].map(duration), ["12 ms", "12.3 s", "10 min", "2.5 h"]);
        assert_eq!([bytes(1500), bytes(25_000_000), bytes(3_200_000_000)], ["1.5 kB", "25 MB", "3.2 GB"]);
    }
}
