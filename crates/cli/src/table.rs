//! Results side by side in a terminal: a column for each run, a line for each figure.

use comfy_table::presets::NOTHING;
use comfy_table::{CellAlignment, ContentArrangement, Table};
use dovetail_lab::results::Counts;
use dovetail_time::format_count;
use dovetail_vfs::Figure;

/// Lines of the table.
pub(crate) enum Row<R> {
    /// One line; `show` gives `None` where a run has no such figure.
    One { name: &'static str, show: fn(&R) -> Option<String> },
    /// A line for each figure of the runs' file systems.
    Figures {
        indent: &'static str,
        of: fn(&[R]) -> Vec<&'static Figure>,
        counts: fn(&R) -> &Counts,
    },
    /// Lines that depend on the runs: each its name and the figures of all runs.
    Many(fn(&[R]) -> Vec<Line>),
}

/// A line's name, and its figure of each run; `None` where a run has no such figure.
pub(crate) type Line = (String, Vec<Option<String>>);

pub(crate) const fn row<R>(name: &'static str, show: fn(&R) -> Option<String>) -> Row<R> {
    Row::One { name, show }
}

/// The lines of a table, in groups set apart by an empty one. A line that no run has a figure for
/// is left out.
pub(crate) struct Layout<R: 'static> {
    /// The label of a run.
    pub(crate) label: fn(&R) -> &str,
    /// The groups.
    pub(crate) groups: &'static [&'static [Row<R>]],
}

/// A count, where there is one.
pub(crate) fn some(n: u64) -> Option<String> {
    (n > 0).then(|| format_count(n))
}

impl<R> Layout<R> {
    /// The runs as columns, as many beside each other as fit into `width` (all, if it is not
    /// known).
    pub(crate) fn text(&self, runs: &[R], width: Option<usize>) -> String {
        let mut out = String::new();
        let mut rest = runs;
        while !rest.is_empty() {
            let fits = |count: &usize| {
                let widest =
                    self.columns(&rest[..*count]).lines().map(|line| line.chars().count()).max();
                width.is_none_or(|width| widest.is_none_or(|widest| widest <= width))
            };
            let count = (1..=rest.len()).rev().find(fits).unwrap_or(1);
            if !out.is_empty() {
                out.push('\n');
            }
            out += &self.columns(&rest[..count]);
            rest = &rest[count..];
        }
        out
    }

    /// All lines: each its name and the figures of the runs, `-` where a run has none.
    pub(crate) fn lines(&self, runs: &[R]) -> Vec<Vec<String>> {
        self.groups.iter().flat_map(|group| group.iter()).flat_map(|row| row.lines(runs)).collect()
    }

    fn columns(&self, runs: &[R]) -> String {
        let mut table = Table::new();
        table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        let labels = runs.iter().map(|run| (self.label)(run).to_owned());
        table.set_header(std::iter::once(String::new()).chain(labels));
        for (i, group) in self.groups.iter().enumerate() {
            let rows: Vec<_> = group.iter().flat_map(|row| row.lines(runs)).collect();
            if i > 0 && !rows.is_empty() {
                table.add_row([""]);
            }
            table.add_rows(rows);
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        let trimmed: Vec<_> = table.lines().map(|line| line.trim_end().to_string()).collect();
        trimmed.join("\n") + "\n"
    }
}

impl<R> Row<R> {
    /// The lines that some run has a figure for.
    fn lines(&self, runs: &[R]) -> Vec<Vec<String>> {
        match self {
            Self::One { name, show } => cells(name, runs, show).into_iter().collect(),
            Self::Figures { indent, of, counts } => {
                let count =
                    |run: &R, figure: &Figure| counts(run).get(figure.key).copied().and_then(some);
                let line = |figure: &'static Figure| {
                    cells(&format!("{indent}{}", figure.title), runs, |run| count(run, figure))
                };
                of(runs).into_iter().filter_map(line).collect()
            }
            Self::Many(lines) => lines(runs)
                .into_iter()
                .filter_map(|(name, figures)| shown(&name, figures))
                .collect(),
        }
    }
}

/// The name of a line and its figures; `None` when no run has one.
fn cells<R>(name: &str, runs: &[R], show: impl Fn(&R) -> Option<String>) -> Option<Vec<String>> {
    shown(name, runs.iter().map(show).collect())
}

fn shown(name: &str, figures: Vec<Option<String>>) -> Option<Vec<String>> {
    figures.iter().any(Option::is_some).then(|| {
        let shown = figures.into_iter().map(|figure| figure.unwrap_or_else(|| "-".into()));
        std::iter::once(name.to_string()).chain(shown).collect()
    })
}

/// Four significant digits, or all of a whole number.
pub(crate) fn digits(value: f64) -> String {
    match value.abs() {
        v if v >= 1000.0 => format_count(value.round() as u64),
        v if v >= 100.0 => format!("{value:.1}"),
        v if v >= 10.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// Columns of the terminal, or of `COLUMNS`; `None` where nobody tells.
pub(crate) fn terminal_width() -> Option<usize> {
    let given = || std::env::var("COLUMNS").ok()?.parse().ok();
    Table::new().width().map(usize::from).or_else(given)
}

/// Columns of a list: those of the terminal; otherwise each entry is one line.
pub(crate) fn list_width() -> usize {
    terminal_width().map_or(usize::MAX, |width| width.clamp(60, 200))
}

/// A paragraph in lines that fit a terminal; otherwise it is one line.
pub(crate) fn paragraph(text: &str, width: Option<usize>) -> String {
    width.map_or_else(|| format!("{text}\n"), |width| wrap(text, width, ""))
}

/// A paragraph in lines of at most `width`: the first is indented as the text is, the others by
/// `indent`. No word is broken.
pub(crate) fn wrap(text: &str, width: usize, indent: &str) -> String {
    let first = &text[..text.len() - text.trim_start().len()];
    let words: Vec<&str> = text.split_whitespace().collect();
    let options = textwrap::Options::new(width)
        .initial_indent(first)
        .subsequent_indent(indent)
        .word_splitter(textwrap::WordSplitter::NoHyphenation)
        .break_words(false);
    textwrap::fill(&words.join(" "), options) + "\n"
}

/// A table of words within a width: no word is broken, the last column gets what is left. Words
/// longer than that go beyond it.
pub(crate) fn of_words(header: &[&str], rows: &[Vec<String>], width: usize) -> String {
    let header: Vec<String> = header.iter().map(ToString::to_string).collect();
    let all: Vec<&[String]> =
        std::iter::once(&header[..]).chain(rows.iter().map(|row| &row[..])).collect();
    let columns = header.len().saturating_sub(1);
    let widest = |at: usize| all.iter().map(|row| row[at].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(widest).collect();
    let indent = widths.iter().map(|width| width + 2).sum::<usize>();
    let mut out = String::new();
    for row in all {
        let mut line: String =
            row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}  ")).collect();
        for word in row[columns].split_whitespace() {
            let len = line.chars().count();
            if len > indent && len + 1 + word.chars().count() > width {
                out += &format!("{}\n", line.trim_end());
                line = " ".repeat(indent);
            } else if len > indent {
                line.push(' ');
            }
            line += word;
        }
        out += &format!("{}\n", line.trim_end());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_whole_at_any_width() {
        let row = |name: &str, about: &str| vec![name.to_string(), about.to_string()];
        let rows = [row("evo970-250g", "a drive of 2018 for what consumers do"), row("b", "x")];
        assert_eq!(
            of_words(&["name", "what it is"], &rows, 37),
            "name         what it is\nevo970-250g  a drive of 2018 for what\n             consumers do\nb            x\n"
        );
        for width in 1..80 {
            let text = of_words(&["name", "what it is"], &rows, width);
            let words: Vec<&str> = text.split_whitespace().collect();
            assert_eq!(words.concat(), "namewhatitisevo970-250gadriveof2018forwhatconsumersdobx");
        }
    }
}
