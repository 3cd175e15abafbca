//! Numbers, times and sizes as text, for the console and for the report.

/// `a`, `a and b`, `a, b and c`
pub(crate) fn together(words: &[String]) -> String {
    match words.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
        _ => words.concat(),
    }
}

/// A fraction as a percentage with the digits of [`error`].
pub(crate) fn percent(fraction: f64) -> String {
    format!("{} %", error(100.0 * fraction))
}

/// A relative error with four significant digits. Zeros at the end stay, so that columns line up.
pub(crate) fn error(value: f64) -> String {
    significant(value, 4)
}

/// Three significant digits, without zeros at the end.
pub(crate) fn short(value: f64) -> String {
    let text = significant(value, 3);
    let (number, power) = text.split_once('·').map_or((text.as_str(), None), |(number, power)| (number, Some(power)));
    let number = if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { number };
    match power {
        Some(power) if number == "1" => power.to_owned(),
        Some(power) => format!("{number}·{power}"),
        None => number.to_owned(),
    }
}

/// A number with so many significant digits; very large and very small ones get a power of ten.
fn significant(value: f64, digits: usize) -> String {
    if value == 0.0 {
        return "0".into();
    }
    if !value.is_finite() {
        return if value.is_nan() { "not a number".into() } else { "infinite".into() };
    }
    let text = format!("{value:.*e}", digits - 1);
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
    format!("{value:.*}", (digits as i32 - 1 - exponent).max(0) as usize)
}

/// A whole number with a comma between groups of three digits.
pub(crate) fn whole(value: usize) -> String {
    let digits = value.to_string();
    let groups: Vec<&str> = digits.as_bytes().rchunks(3).rev().filter_map(|group| str::from_utf8(group).ok()).collect();
    groups.join(",")
}

/// A duration in the two units that fit it: `12 ms`, `12.3 s`, `8 min 45 s`, `2 h 30 min`.
pub(crate) fn duration(seconds: f64) -> String {
    let two = |large: u64, unit: &str, small: u64, rest: &str| match small {
        0 => format!("{large} {unit}"),
        _ => format!("{large} {unit} {small} {rest}"),
    };
    match seconds {
        0.0 => "0 s".to_owned(),
        s if s < 0.9995 => format!("{} ms", short(1e3 * s)),
        s if s < 59.95 => format!("{} s", short(s)),
        s if s < 3599.5 => two(s.round() as u64 / 60, "min", s.round() as u64 % 60, "s"),
        s => two((s / 60.0).round() as u64 / 60, "h", (s / 60.0).round() as u64 % 60, "min"),
    }
}

/// A number of bytes in kB, MB or GB, or `unknown`.
pub(crate) fn memory(bytes: Option<usize>) -> String {
    match bytes.map(|bytes| bytes as f64) {
        None => "unknown".to_owned(),
        Some(b) if b < 1e6 => format!("{} kB", short(b / 1e3)),
        Some(b) if b < 1e9 => format!("{} MB", short(b / 1e6)),
        Some(b) => format!("{} GB", short(b / 1e9)),
    }
}

/// Reads a number of bytes: `8GB`, `500 MB`, `1e9`.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let letters = text.trim_end().trim_end_matches(|letter: char| letter.is_ascii_alphabetic()).len();
    let (number, unit) = text.trim_end().split_at(letters);
    let units = ["", "B", "KB", "MB", "GB", "TB"];
    let place = units.iter().position(|known| known.eq_ignore_ascii_case(unit));
    let factor = place.map(|place| 1000_f64.powi(place.saturating_sub(1) as i32));
    let number = number.trim().parse::<f64>().ok().filter(|number| number.is_finite() && *number > 0.0);
    match (number, factor) {
        (Some(number), Some(factor)) => Ok((number * factor) as u64),
        _ => Err(format!("expected bytes such as 8GB or 500MB, found `{text}`")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_together_with_commas_and_one_and() {
        let words = |count: usize| together(&["a", "b", "c"].map(str::to_owned)[..count]);
        assert_eq!([0, 1, 2, 3].map(words), ["", "a", "a and b", "a, b and c"]);
    }

    #[test]
    fn bytes_have_units_of_thousands() {
        let cases =
            [("8GB", 8_000_000_000), ("500 MB", 500_000_000), ("1.5kB", 1500), ("64", 64), ("2e9", 2_000_000_000)];
        cases.into_iter().for_each(|(text, expected)| assert_eq!(bytes(text), Ok(expected), "{text}"));
        for text in ["", "GB", "-1GB", "8 GiB", "nan", "0"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }

    #[test]
    fn errors_have_four_significant_digits() {
        assert_eq!([0.46, 0.00368, 0.00375, 0.99996].map(error), ["0.4600", "0.003680", "0.003750", "1.000"]);
        assert_eq!([0.46, 0.00368, 7.47, 1.0].map(percent), ["46.00 %", "0.3680 %", "747.0 %", "100.0 %"]);
        assert_eq!([0.0, 2e-8, f64::NAN].map(percent), ["0 %", "2.000·10⁻⁶ %", "not a number %"]);
    }

    #[test]
    fn short_numbers_drop_zeros_at_the_end() {
        let words = [0.0, 0.02731, 3.0, 12_345.0, 0.0005, 1e-6, 2.5e-7, -3e9, f64::INFINITY].map(short);
        assert_eq!(words, ["0", "0.0273", "3", "12345", "0.0005", "10⁻⁶", "2.5·10⁻⁷", "-3·10⁹", "infinite"]);
        assert_eq!([1.0, 12_500.0, 9.999].map(short), ["1", "12500", "10"]);
        assert_eq!([whole(7), whole(1024), whole(10_061_314)], ["7", "1,024", "10,061,314"]);
    }

    #[test]
    fn durations_and_sizes_have_the_unit_that_fits_them() {
        assert_eq!([0.0, 0.012, 12.34, 59.97, 605.2].map(duration), ["0 s", "12 ms", "12.3 s", "1 min", "10 min 5 s"]);
        assert_eq!([3599.6, 9000.0, 36_000.0].map(duration), ["1 h", "2 h 30 min", "10 h"]);
        let sizes = [Some(1500), Some(25_000_000), Some(3_200_000_000), None].map(memory);
        assert_eq!(sizes, ["1.5 kB", "25 MB", "3.2 GB", "unknown"]);
    }
}
