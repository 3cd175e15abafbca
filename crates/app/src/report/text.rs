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

/// A share as percent, as exact as an [`error`].
pub(crate) fn percent(share: f64) -> String {
    format!("{} %", error(100.0 * share))
}

/// A relative error: four digits that count, zeros at the end too, so that near results stay apart and columns even.
pub(crate) fn error(value: f64) -> String {
    digits(value, 4)
}

/// Three digits that count, without zeros at the end.
pub(crate) fn short(value: f64) -> String {
    let text = digits(value, 3);
    let (number, power) = text.split_once('·').map_or((text.as_str(), None), |(number, power)| (number, Some(power)));
    let number = if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number };
    match power {
        Some(power) if number == "1" => power.to_owned(),
        Some(power) => format!("{number}·{power}"),
        None => number.to_owned(),
    }
}

/// So many digits that count, with a power of ten where the point would be far from them.
fn digits(value: f64, count: usize) -> String {
    if value == 0.0 {
        return "0".into();
    }
    if !value.is_finite() {
        return if value.is_nan() { "not a number".into() } else { "infinite".into() };
    }
    let text = format!("{value:.*e}", count - 1);
    let (number, power) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = power.parse().unwrap_or(0);
    if !(-4..5).contains(&exponent) {
        let raised = power.chars().map(|letter| match letter {
            '-' => '⁻',
            digit => ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'][digit.to_digit(10).unwrap_or(0) as usize],
        });
        let raised: String = raised.collect();
        return format!("{number}·10{raised}");
    }
    format!("{value:.*}", (count as i32 - 1 - exponent).max(0) as usize)
}

/// A number of things: `1 sample`, `1,200 samples`.
pub(crate) fn count(value: usize, thing: &str) -> String {
    format!("{} {thing}{}", whole(value), if value == 1 { "" } else { "s" })
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
fn bytes(count: usize) -> String {
    match count as f64 {
        b if b < 1e6 => format!("{} kB", short(b / 1e3)),
        b if b < 1e9 => format!("{} MB", short(b / 1e6)),
        b => format!("{} GB", short(b / 1e9)),
    }
}

/// Memory that was held, where it was noted.
pub(crate) fn held(bytes_held: Option<usize>) -> String {
    bytes_held.map_or_else(|| "unknown".to_owned(), bytes)
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
    fn errors_keep_four_digits_so_that_near_results_stay_apart() {
        assert_eq!([0.46, 0.00368, 0.00375, 0.99996].map(error), ["0.4600", "0.003680", "0.003750", "1.000"]);
        assert_eq!([0.46, 0.00368, 7.47, 1.0].map(percent), ["46.00 %", "0.3680 %", "747.0 %", "100.0 %"]);
        assert_eq!([0.0, 2e-8, f64::NAN].map(percent), ["0 %", "2.000·10⁻⁶ %", "not a number %"]);
    }

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
        assert_eq!([1.0, 12_500.0, 9.999].map(short), ["1", "12500", "10"]);
        assert_eq!(
            [count(1, "sample"), count(0, "epoch"), count(1200, "point")],
            ["1 sample", "0 epochs", "1,200 points"]
        );
        assert_eq!([whole(7), whole(1024), whole(10_061_314)], ["7", "1,024", "10,061,314"]);
        assert_eq!([0.012, 12.3, 600.0, 9000.0].map(duration), ["12 ms", "12.3 s", "10 min", "2.5 h"]);
        assert_eq!([bytes(1500), bytes(25_000_000), bytes(3_200_000_000)], ["1.5 kB", "25 MB", "3.2 GB"]);
    }
}
