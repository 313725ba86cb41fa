//! The HTML reports: each one file that holds everything it needs.
//!
//! They show the runs of [`Results`](dovetail_lab::results::Results) side by side. The tables are
//! written here and can be read without JavaScript; the charts are drawn in the browser from the
//! results, which the page carries as JSON. The page loads nothing: style sheets, scripts and the
//! charting library (uPlot) stand in it, and its content security policy forbids all requests.
//!
//! Hazards: labels are names of files and may hold anything; every text goes through
//! `format::escape`, and the JSON has no `<`. The output depends on the results alone. Left out:
//! writing the file.
//!
//! A new chart is one entry in `assets/charts.js`; a new row of a table is one entry in `summary`
//! or `setup`. Rows and charts that no run has figures for are left out.
//!
//! ```
//! use dovetail_lab::results::{Results, RunResult};
//!
//! let mut run = RunResult { label: "F2FS <new>".into(), ..RunResult::default() };
//! run.totals.device_waf = Some(1.25);
//! let results = Results::of("random.fio".into(), 1.0, 42, vec![run]);
//!
//! let page = dovetail_report::html(&results);
//! assert!(page.contains("<title>Dovetail bench of random.fio</title>"));
//! assert!(page.contains("1.25"), "a table, to be read without JavaScript");
//! assert!(page.contains("F2FS &lt;new&gt;"), "names are text, never markup");
//! assert!(page.contains("Content-Security-Policy"), "nothing is loaded from elsewhere");
//! ```

mod comparison;
mod figures;
mod format;
mod jobs;
mod listing;
mod page;
pub mod parts;
mod plain;
mod provenance;
mod results;
mod sentences;
mod setup;
mod summary;
mod swept;
mod table;

pub use figures::{Figures, Reproduced, Statement};
pub use format::escape;
pub use plain::{Plain, html as plain_html};
pub use results::html;
pub use sentences::sentences;
pub use swept::{Swept, SweptPoint, SweptRun, html as sweep_html};

#[cfg(test)]
mod tests;
