//! A report without charts of its own: text, tables and pictures that are HTML already.

use super::page::{Page, Section};

/// Content of such a report. All of it is HTML, to be escaped by its maker
/// ([`escape`](super::escape)).
#[derive(Clone, Debug, Default)]
pub struct Plain {
    /// The title of the window.
    pub title: String,
    /// The headline.
    pub heading: &'static str,
    /// Introduction of a sentence or two: the work that was done.
    pub lede: String,
    /// The first section.
    pub summary: String,
    /// The second one.
    pub setup: String,
    /// Meaning of words in the report.
    pub terms: &'static str,
}

/// The page: one file that loads nothing, in light and dark.
pub fn html(plain: &Plain) -> String {
    let page = Page {
        title: plain.title.clone(),
        heading: plain.heading,
        lede: plain.lede.clone(),
        sentences: Vec::new(),
        sections: Section::summary_and_setup(plain.summary.clone(), plain.setup.clone()),
        provenance: String::new(),
        terms: plain.terms,
        charts: "const CHARTS = [];\n",
    };
    page.html(&())
}
