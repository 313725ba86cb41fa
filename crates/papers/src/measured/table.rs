//! The table of real drives in the docs.

use std::fmt::Write;

use super::Row;

/// The rows as a table, and what they come to.
pub fn markdown(rows: &[Row]) -> String {
    let mut text = summary(rows);
    text += "\n| device, profile | test | published | ours | off by | limit | |\n|---|---|---|---|---|---|---|\n";
    for row in rows {
        let remark = match (row.is_calibrated, row.off_by().abs() <= row.limit) {
            (true, _) => "calibrated",
            (false, true) => "",
            (false, false) => "**beyond**",
        };
        let _ = writeln!(
            text,
            "| {}, `{}` | {} | {} {} | {} | {:+.0} % | {:.0} % | {remark} |",
            row.device,
            row.profile,
            row.what,
            digits(row.published),
            row.unit,
            digits(row.ours),
            row.off_by(),
            row.limit,
        );
    }
    text
}

/// Mean and worst error of the rows that are a check.
fn summary(rows: &[Row]) -> String {
    let checks: Vec<f64> =
        rows.iter().filter(|row| !row.is_calibrated).map(|row| row.off_by().abs()).collect();
    let calibrated = rows.len() - checks.len();
    let mean = checks.iter().sum::<f64>() / checks.len().max(1) as f64;
    let worst = checks.iter().copied().fold(0.0, f64::max);
    let beyond = rows.iter().filter(|row| !row.is_calibrated && row.off_by().abs() > row.limit);
    format!(
        "{} figures are a check, {calibrated} more were used to make profiles. Mean error of the check: {mean:.1} %; \
         worst: {worst:.0} %; beyond their limit: {}.\n",
        checks.len(),
        beyond.count()
    )
}

/// Three digits that count, at least.
fn digits(value: f64) -> String {
    match value.abs() {
        large if large >= 100.0 => format!("{value:.0}"),
        middle if middle >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}
