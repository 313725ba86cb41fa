//! A table of figures: a row for each figure, a column for each run. The best figure of a row is
//! marked, among runs that can be compared.

use dovetail_ftl::stats::Percentiles;
use dovetail_lab::results::LatencyResult;

use super::format::{MISSING, bytes, count, duration_ns, escape, significant};
use super::table::{Column, NO_RUNS, scrolling};

/// Predicate that is true for two runs that can be compared.
type Comparable<R> = fn(&R, &R) -> bool;

/// Rule for the best value of a row.
pub(crate) enum Best<R> {
    /// It means nothing.
    Neither,
    /// The least, among runs that can be compared.
    Least(Comparable<R>),
    /// The greatest, among runs that can be compared.
    Most(Comparable<R>),
}

impl<R> Clone for Best<R> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<R> Copy for Best<R> {}

/// A value as shown, and as compared; it is not compared where it does not exist.
pub(crate) struct Cell {
    text: String,
    value: Option<f64>,
}

pub(crate) struct Row<R> {
    name: &'static str,
    best: Best<R>,
    cell: fn(&R) -> Cell,
}

pub(crate) const fn row<R>(name: &'static str, best: Best<R>, cell: fn(&R) -> Cell) -> Row<R> {
    Row { name, best, cell }
}

pub(crate) struct Group<R: 'static> {
    pub(crate) name: &'static str,
    pub(crate) rows: &'static [Row<R>],
}

pub(crate) fn whole(value: u64) -> Cell {
    Cell { text: count(value), value: Some(value as f64) }
}

pub(crate) fn number(value: f64) -> Cell {
    Cell { text: significant(value), value: Some(value).filter(|v| v.is_finite()) }
}

pub(crate) fn optional(value: Option<f64>) -> Cell {
    value.map_or_else(missing, number)
}

/// A rate; 0 means that there was nothing to transfer, not that it was slow.
pub(crate) fn rate(value: f64) -> Cell {
    if value > 0.0 { number(value) } else { missing() }
}

pub(crate) fn time(ns: f64) -> Cell {
    Cell { text: duration_ns(ns), value: Some(ns).filter(|v| v.is_finite()) }
}

pub(crate) fn latency(of: &LatencyResult, figure: impl Fn(&Percentiles) -> u64) -> Cell {
    if of.percentiles.count == 0 { missing() } else { time(figure(&of.percentiles) as f64) }
}

pub(crate) fn size(value: u64) -> Cell {
    Cell { text: bytes(value), value: Some(value as f64) }
}

pub(crate) fn missing() -> Cell {
    Cell { text: MISSING.into(), value: None }
}

/// A table under way.
pub(crate) struct Comparison<'a, R> {
    runs: &'a [R],
    body: String,
    marked: bool,
}

impl<'a, R: Column> Comparison<'a, R> {
    pub(crate) fn of(runs: &'a [R]) -> Self {
        Self { runs, body: String::new(), marked: false }
    }

    /// The rows of a group for which any run has a value.
    pub(crate) fn group(&mut self, group: &Group<R>) {
        let rows: Vec<_> = group
            .rows
            .iter()
            .map(|row| (row.name, row.best, self.runs.iter().map(row.cell).collect()))
            .collect();
        self.rows(group.name, rows);
    }

    /// A row for each of `names`, which come with their titles.
    pub(crate) fn group_of(
        &mut self,
        group: &str,
        names: &[(&str, String)],
        cell: impl Fn(&R, &str) -> Cell,
    ) {
        let cells = |name: &str| self.runs.iter().map(|run| cell(run, name)).collect();
        let rows: Vec<_> = names
            .iter()
            .map(|(name, title)| (title.as_str(), Best::Neither, cells(name)))
            .collect();
        self.rows(group, rows);
    }

    fn rows(&mut self, group: &str, rows: Vec<(&str, Best<R>, Vec<Cell>)>) {
        let is_shown = |cells: &[Cell]| cells.iter().any(|cell| cell.value.is_some());
        let mut shown = rows.iter().filter(|(_, _, cells)| is_shown(cells)).peekable();
        if shown.peek().is_none() {
            return;
        }
        self.heading(group);
        shown.for_each(|(name, best, cells)| self.row(name, *best, cells));
        self.body.push_str("</tbody>\n");
    }

    /// A group of one row of sentences, set off as something that went wrong; nothing where no run
    /// has one.
    pub(crate) fn failures(&mut self, group: &str, row: &str, text: fn(&R) -> Option<&str>) {
        if self.runs.iter().all(|run| text(run).is_none()) {
            return;
        }
        self.heading(group);
        let cell = |run: &R| match text(run) {
            Some(text) => format!("<td class=\"failed\">{}</td>", escape(text)),
            None => format!("<td class=\"none\">{MISSING}</td>"),
        };
        let cells: String = self.runs.iter().map(cell).collect();
        self.body.push_str(&row_html(row, &cells));
        self.body.push_str("</tbody>\n");
    }

    /// A group of one row of sentences; nothing where no run has one.
    pub(crate) fn notes(&mut self, group: &str, row: &str, notes: fn(&R) -> &[String]) {
        if self.runs.iter().all(|run| notes(run).is_empty()) {
            return;
        }
        self.heading(group);
        let cell = |run: &R| match notes(run) {
            [] => format!("<td class=\"none\">{MISSING}</td>"),
            sentences => format!("<td class=\"note\">{}</td>", escape(&sentences.join(" "))),
        };
        let cells: String = self.runs.iter().map(cell).collect();
        self.body.push_str(&row_html(row, &cells));
        self.body.push_str("</tbody>\n");
    }

    fn heading(&mut self, name: &str) {
        let span = self.runs.len() + 1;
        self.body.push_str(&format!(
            "<tbody>\n<tr><th scope=\"rowgroup\" colspan=\"{span}\"><span>{}</span></th></tr>\n",
            escape(name)
        ));
    }

    fn row(&mut self, name: &str, best: Best<R>, cells: &[Cell]) {
        let best = best_cells(best, self.runs, cells);
        self.marked |= best.contains(&true);
        let columns: String =
            cells.iter().zip(best).map(|(cell, best)| cell_html(cell, best)).collect();
        self.body.push_str(&row_html(name, &columns));
    }

    /// The table of that title, with `note` if anything is marked.
    pub(crate) fn html(self, title: &str, note: &str) -> String {
        if self.runs.is_empty() {
            return NO_RUNS.into();
        }
        let table = scrolling(title, self.runs, &self.body);
        if self.marked { format!("{table}\n<p class=\"note\">{note}</p>") } else { table }
    }
}

fn row_html(name: &str, cells: &str) -> String {
    format!("<tr><th scope=\"row\">{}</th>{cells}</tr>\n", escape(name))
}

fn cell_html(cell: &Cell, best: bool) -> String {
    let text = escape(&cell.text);
    if best {
        format!("<td><span class=\"best\">{text}<span class=\"hidden\"> (best)</span></span></td>")
    } else if cell.value.is_none() {
        format!("<td class=\"none\">{text}</td>")
    } else {
        format!("<td>{text}</td>")
    }
}

/// Marks the cells that show the best value among the runs that they can be compared with.
fn best_cells<R>(best: Best<R>, runs: &[R], cells: &[Cell]) -> Vec<bool> {
    let (comparable, sign) = match best {
        Best::Neither => return vec![false; runs.len()],
        Best::Least(comparable) => (comparable, 1.0),
        Best::Most(comparable) => (comparable, -1.0),
    };
    (0..runs.len()).map(|at| is_best(comparable, sign, at, runs, cells)).collect()
}

/// Is true if `sign` times the value is the least among comparable runs. Ties are shared, but where
/// all show the same, none is best.
fn is_best<R>(comparable: Comparable<R>, sign: f64, at: usize, runs: &[R], cells: &[Cell]) -> bool {
    let peers: Vec<&Cell> = runs
        .iter()
        .zip(cells)
        .filter(|(other, _)| comparable(&runs[at], other))
        .map(|(_, cell)| cell)
        .collect();
    let values = peers.iter().filter_map(|peer| peer.value.map(|value| (sign * value, &peer.text)));
    let winner = values.min_by(|a, b| a.0.total_cmp(&b.0));
    let differ = peers.iter().any(|peer| peer.value.is_some() && peer.text != cells[at].text);
    differ && winner.is_some_and(|(_, text)| *text == cells[at].text)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Its kind, and its value.
    struct Run(char, Option<f64>);

    fn same_kind(a: &Run, b: &Run) -> bool {
        a.0 == b.0
    }

    fn marks(best: Best<Run>, runs: &[Run]) -> Vec<bool> {
        best_cells(best, runs, &runs.iter().map(|run| optional(run.1)).collect::<Vec<_>>())
    }

    #[test]
    fn the_best_of_those_that_can_be_compared_is_marked() {
        let runs = [('a', 2.0), ('a', 1.5), ('b', 3.0), ('b', 4.0), ('c', 1.0)];
        let runs = runs.map(|(kind, value)| Run(kind, Some(value)));
        assert_eq!(marks(Best::Least(same_kind), &runs), [false, true, true, false, false]);
        assert_eq!(marks(Best::Most(same_kind), &runs), [true, false, false, true, false]);
        assert_eq!(marks(Best::Neither, &runs), [false; 5]);
    }

    #[test]
    fn what_looks_the_same_is_not_better() {
        let runs = [1.5001, 1.5002].map(|value| Run('a', Some(value)));
        assert_eq!(marks(Best::Least(same_kind), &runs), [false, false]);
    }

    #[test]
    fn a_missing_value_is_never_best() {
        let runs = [None, Some(2.0), Some(3.0)].map(|value| Run('a', value));
        assert_eq!(marks(Best::Least(same_kind), &runs), [false, true, false]);
    }
}
