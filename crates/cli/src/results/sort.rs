//! `--sort`: runs in the order of a figure of the table.

use dovetail_lab::results::RunResult;

use super::rows::column;

/// Units behind numbers of the table, and their sizes.
const UNITS: [(&str, f64); 21] = [
    ("ns", 1e-9),
    ("us", 1e-6),
    ("ms", 1e-3),
    ("s", 1.0),
    ("h", 3600.0),
    ("days", 86_400.0),
    ("years", 365.0 * 86_400.0),
    ("B", 1.0),
    ("KiB", 1024.0),
    ("MiB", 1_048_576.0),
    ("GiB", 1_073_741_824.0),
    ("TiB", 1_099_511_627_776.0),
    ("PiB", 1_125_899_906_842_624.0),
    ("EiB", 1_152_921_504_606_846_976.0),
    ("MB", 1e6),
    ("GB", 1e9),
    ("TB", 1e12),
    ("MB,", 1e6),
    ("GB,", 1e9),
    ("us,", 1e-6),
    ("ms,", 1e-3),
];

/// The first number of a cell in its unit; `None` where there is none.
fn quantity(cell: &str) -> Option<f64> {
    let mut words =
        cell.split_whitespace().skip_while(|word| !word.starts_with(|c: char| c.is_ascii_digit()));
    let number: f64 = words.next()?.replace(',', "").parse().ok()?;
    let unit = words.next().and_then(|unit| UNITS.iter().find(|(name, _)| *name == unit));
    Some(number * unit.map_or(1.0, |(_, size)| *size))
}

/// The runs in ascending order of a figure: a word of a column or of a line of the table. With `-`
/// before it, in descending order. Runs without the figure come last, and runs alike keep their
/// order. `None` if the word is in no line.
pub(super) fn sorted(runs: &[RunResult], by: &str) -> Option<Vec<RunResult>> {
    let (word, sign) = by.strip_prefix('-').map_or((by, 1.0), |word| (word, -1.0));
    let cells = column(runs, word)?;
    let key = |at: usize| quantity(&cells[at]).map_or(f64::INFINITY, |value| sign * value);
    let mut order: Vec<usize> = (0..runs.len()).collect();
    order.sort_by(|a, b| key(*a).total_cmp(&key(*b)));
    Some(order.into_iter().map(|at| runs[at].clone()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_numbers_in_their_units() {
        for (cell, expected) in [
            ("1.04 ms", Some(1.04e-3)),
            ("1.50 us / 1.04 ms / 2.00 ms", Some(1.5e-6)),
            ("constant 2.00 s", Some(2.0)),
            ("13,283 (453 MiB)", Some(13_283.0)),
            ("1.00 KiB", Some(1024.0)),
            ("1.50 us, at most 8.00 ms", Some(1.5e-6)),
            ("1.113", Some(1.113)),
            ("-", None),
            ("yes", None),
        ] {
            let found = quantity(cell);
            let is_same = match (found, expected) {
                (Some(found), Some(expected)) => (found / expected - 1.0_f64).abs() < 1e-12,
                (found, expected) => found == expected,
            };
            assert!(is_same, "{cell}: {found:?}");
        }
    }

    #[test]
    fn runs_stand_in_the_order_of_a_figure() {
        let run = |label: &str, waf: Option<f64>| {
            let mut run = RunResult { label: label.into(), ..RunResult::default() };
            run.totals.device_waf = waf;
            run.totals.drive.erases = 7;
            run
        };
        let runs = [run("a", Some(10.5)), run("b", None), run("c", Some(2.0)), run("d", Some(2.0))];
        let order = |by: &str| -> Option<String> {
            Some(sorted(&runs, by)?.into_iter().map(|run| run.label).collect())
        };
        assert_eq!(order("WAF").as_deref(), Some("cdab"));
        assert_eq!(order("-waf").as_deref(), Some("acdb"));
        assert_eq!(order("drive's write").as_deref(), Some("cdab"), "a line of the large table");
        assert_eq!(order("erases").as_deref(), Some("abcd"));
        assert_eq!(order("speed"), None);
    }
}
