//! A report without charts of its own: text, tables and pictures that are HTML already.

use super::page::Page;

/// What such a report says. All of it is HTML, to be escaped by whoever makes it ([`escape`](super::escape)).
#[derive(Clone, Debug, Default)]
pub struct Plain {
    /// The title of the window.
    pub title: String,
    /// The headline.
    pub heading: &'static str,
    /// What was done, in a sentence or two.
    pub lede: String,
    /// The first section.
    pub summary: String,
    /// The second one.
    pub setup: String,
    /// What words in the report mean.
    pub terms: &'static str,
}

/// The page: one file that loads nothing, in light and dark.
pub fn html(plain: &Plain) -> String {
    let page = Page {
        title: plain.title.clone(),
        heading: plain.heading,
        lede: plain.lede.clone(),
        summary: plain.summary.clone(),
        setup: plain.setup.clone(),
        terms: plain.terms,
        charts: "const CHARTS = [];\n",
    };
    page.html(&())
}
