//! Numbers in pictures, in the letters that the font has.

/// Three significant digits; very large and very small numbers get an exponent.
pub(crate) fn number(value: f32) -> String {
    let size = value.abs();
    if value == 0.0 {
        return "0".into();
    }
    if !(1e-3..1e4).contains(&size) {
        return format!("{value:.2e}");
    }
    let digits = (2 - size.log10().floor() as i32).max(0) as usize;
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_significant_digits() {
        let written: Vec<_> = [0.0, 12.0, -3.216, 0.012345, 1234.0, 1.5e-7, 9.999].map(number).into();
        assert_eq!(written, ["0", "12", "-3.22", "0.0123", "1234", "1.50e-7", "10"]);
    }
}
