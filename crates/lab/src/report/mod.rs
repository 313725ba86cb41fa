//! The HTML reports: each one file that holds everything it needs.
//!
//! They show the runs of [`Results`](crate::results::Results) or
//! [`BenchResults`](crate::bench::results::BenchResults) side by side. The tables are written here and can be read
//! without JavaScript; the charts are drawn in the browser from the results, which the page carries as JSON. The page
//! loads nothing: style sheets, scripts and the charting library (uPlot) stand in it, and its content security policy
//! forbids all requests.
//!
//! Hazards: labels are names of files and may hold anything; every text goes through `format::escape`, and the
//! JSON has no `<`. The output depends on the results alone. Left out: writing the file.
//!
//! A new chart is one entry in `assets/replay.js` or `assets/bench.js`; a new row of a table is one entry in the
//! `summary` or `setup` of either report.

mod bench;
mod comparison;
mod drive;
mod format;
mod listing;
mod map_on_flash;
mod page;
mod plain;
mod replay;
mod table;

pub use bench::html as bench_html;
pub use format::escape;
pub use plain::{Plain, html as plain_html};
pub use replay::html;

#[cfg(test)]
mod tests;
