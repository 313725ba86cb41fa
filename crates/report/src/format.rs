//! Numbers and texts as they stand in the tables.

/// Sign in place of a figure that does not exist.
pub(crate) const MISSING: &str = "–";

/// `text` with the characters that mean something in HTML replaced, for content and for quoted
/// attributes.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// `text` with its first letter in upper case.
pub(crate) fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
}

/// A whole number with thousands separators.
pub(crate) fn count(value: u64) -> String {
    group(&value.to_string())
}

fn group(digits: &str) -> String {
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A number of at least 0 with about three significant digits and thousands separators; two below 0.1,
/// where more are no help.
pub(crate) fn significant(value: f64) -> String {
    if !value.is_finite() {
        return MISSING.into();
    }
    let decimals = match value {
        0.0 => 0,
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        v if v >= 0.9995 => 2,
        v if v >= 0.01 => 3,
        v if v >= 0.001 => 4,
        v if v >= 0.0001 => 5,
        _ => 6,
    };
    let text = format!("{value:.decimals$}");
    match text.split_once('.') {
        Some((whole, fraction)) => format!("{}.{fraction}", group(whole)),
        None => group(&text),
    }
}

/// Nanoseconds in the unit that suits their size.
pub(crate) fn duration_ns(ns: f64) -> String {
    let (size, unit) = match ns {
        ns if ns >= 172_800e9 => (86_400e9, "days"),
        ns if ns >= 7200e9 => (3600e9, "h"),
        ns if ns >= 600e9 => (60e9, "min"),
        ns if ns >= 1e9 => (1e9, "s"),
        ns if ns >= 1e6 => (1e6, "ms"),
        ns if ns >= 1e3 => (1e3, "µs"),
        _ => (1.0, "ns"),
    };
    format!("{} {unit}", significant(ns / size))
}

/// Bytes in the largest binary unit not above them.
pub(crate) fn bytes(value: u64) -> String {
    const UNITS: [&str; 7] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let power = value.checked_ilog2().unwrap_or(0) / 10;
    let scaled = value as f64 / 1024_f64.powi(power as i32);
    let number = if power == 0 { count(value) } else { significant(scaled) };
    format!("{number} {}", UNITS[power as usize])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_numbers_have_thousands_separators() {
        assert_eq!(
            ["0", "999", "1,000", "12,345,678"].map(String::from),
            [0, 999, 1000, 12_345_678].map(count)
        );
    }

    #[test]
    fn three_digits_are_kept() {
        let shown = [0.0, 0.123_45, 1.2345, 9.996, 12.345, 99.96, 1234.5].map(significant);
        assert_eq!(shown, ["0", "0.123", "1.23", "10.0", "12.3", "100", "1,234"]);
        let small = [0.036_99, 0.003_699, 0.000_369_9].map(significant);
        assert_eq!(small, ["0.037", "0.0037", "0.00037"]);
        assert_eq!(significant(f64::NAN), MISSING);
    }

    #[test]
    fn durations_choose_their_unit() {
        let shown = [850.0, 12_345.0, 1.5e6, 61.0e9, 1800.0e9, 43_200.0e9].map(duration_ns);
        assert_eq!(shown, ["850 ns", "12.3 µs", "1.50 ms", "61.0 s", "30.0 min", "12.0 h"]);
    }

    #[test]
    fn bytes_choose_their_unit() {
        let shown = [0, 1023, 1024, 3 << 30, u64::MAX].map(bytes);
        assert_eq!(shown, ["0 B", "1,023 B", "1.00 KiB", "3.00 GiB", "16.0 EiB"]);
    }

    #[test]
    fn markup_is_escaped() {
        assert_eq!(escape("<a b=\"c\">&'"), "&lt;a b=&quot;c&quot;&gt;&amp;&#39;");
    }
}
