//! Figures of the file systems of some runs, in the order of the registry: the rows of tables, and
//! the names of charts.

use dovetail_vfs::{Figure, Figures};

use super::filesystems::figures_by_file_system;
use crate::results::RunResult;

/// Figures of blocks written, each once.
pub fn written_figures(runs: &[RunResult]) -> Vec<&'static Figure> {
    each_once(runs, |figures| figures.written)
}

/// Figures of events, each once.
pub fn event_figures(runs: &[RunResult]) -> Vec<&'static Figure> {
    each_once(runs, |figures| figures.events)
}

fn each_once(runs: &[RunResult], of: fn(Figures) -> &'static [Figure]) -> Vec<&'static Figure> {
    let mut all: Vec<&'static Figure> = Vec::new();
    let is_run = |name: &str| runs.iter().any(|run| run.stack.filesystem == name);
    for (_, figures) in figures_by_file_system().filter(|(name, _)| is_run(name)) {
        for figure in of(figures) {
            if !all.iter().any(|known| known.key == figure.key) {
                all.push(figure);
            }
        }
    }
    all
}
