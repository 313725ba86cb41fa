//! Numbers in the text of a result.

/// The number that a text begins with, and the rest.
pub(crate) fn number(text: &str) -> Option<(f64, &str)> {
    let signed = text.strip_prefix('+').unwrap_or(text);
    let digits = signed.strip_prefix('-').unwrap_or(signed);
    let is_part = |at: usize, c: char| {
        let is_group = matches!(c, ',' | '.')
            && digits[at + 1..].starts_with(|next: char| next.is_ascii_digit());
        c.is_ascii_digit() || is_group
    };
    let end =
        digits.char_indices().find(|(at, c)| !is_part(*at, *c)).map_or(digits.len(), |(at, _)| at);
    let rest = &digits[end..];
    let sign = if signed == digits { 1.0 } else { -1.0 };
    // a letter right behind it: "4k", "F2FS", "5a"
    let is_word = rest.starts_with(|c: char| c.is_alphabetic() || c == '/' || c == '^');
    let value = digits[..end].replace(',', "").parse::<f64>().ok()?;
    (digits.starts_with(|c: char| c.is_ascii_digit()) && !is_word).then_some((sign * value, rest))
}

/// The numbers of a text, in order. Digits of a name ("f2fs", "9w1r") are none.
pub(crate) fn numbers(text: &str) -> Vec<f64> {
    let (mut rest, mut found, mut is_inside) = (text, Vec::new(), false);
    while let Some(next) = rest.chars().next() {
        if !is_inside && let Some((value, after)) = number(rest) {
            found.push(value);
            rest = after;
            continue;
        }
        is_inside = next.is_alphanumeric();
        rest = &rest[next.len_utf8()..];
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_of_names_are_no_numbers() {
        for (text, values) in [
            ("f2fs 1.10 to 1.05, rm-ipu -0.5", vec![1.1, 1.05, -0.5]),
            ("9w1r 31.2 % (1,204 of 3,000), 5a", vec![31.2, 1204.0, 3000.0]),
            ("-12 to +3 %", vec![-12.0, 3.0]),
            ("none", vec![]),
        ] {
            assert_eq!(numbers(text), values, "{text}");
        }
    }
}
