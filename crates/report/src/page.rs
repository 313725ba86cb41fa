//! The page that all reports share: a template, its style, and its scripts.

use serde::Serialize;

use super::format::escape;

pub(crate) const TEMPLATE: &str = include_str!("../assets/report.html");
/// Style sheet of every report, light.
pub const CSS: &str = include_str!("../assets/report.css");
/// Its colours in the dark.
pub const DARK_CSS: &str = include_str!("../assets/report-dark.css");
/// Start of every report's script: functions that draw charts.
pub const CHARTS_JS: &str = concat!(
    include_str!("../assets/format.js"),
    include_str!("../assets/theme.js"),
    include_str!("../assets/frame.js"),
    include_str!("../assets/axis.js"),
    include_str!("../assets/lines.js"),
    include_str!("../assets/scatter.js"),
    include_str!("../assets/heatmap.js"),
    include_str!("../assets/bars.js"),
    include_str!("../assets/series.js"),
    include_str!("../assets/distribution.js"),
    include_str!("../assets/flash.js"),
    include_str!("../assets/overview.js"),
    include_str!("../assets/svg.js"),
);
/// End of every report's script: it starts the rest.
pub(crate) const START_JS: &str = include_str!("../assets/report.js");
/// The charting library.
pub const LIBRARY_JS: &str = include_str!("../assets/uPlot.iife.min.js");
/// Its style sheet.
pub const LIBRARY_CSS: &str = include_str!("../assets/uPlot.min.css");
/// Its licence, which stands wherever it does.
pub const LIBRARY_LICENSE: &str = include_str!("../assets/uPlot.LICENSE");

/// Names listed in the heading before they are counted instead.
const NAMES_LISTED: usize = 3;

/// Parts of one report's page. All are HTML, but for `charts`, a script that names the charts.
pub(crate) struct Page<'a> {
    pub(crate) title: String,
    pub(crate) heading: &'static str,
    pub(crate) lede: String,
    /// Sentences on the results, plain; none where there is nothing to say.
    pub(crate) sentences: Vec<String>,
    /// Sections below the charts.
    pub(crate) sections: Vec<Section>,
    /// The section that says how all this was made; empty where nobody knows.
    pub(crate) provenance: String,
    /// Meaning of words in the report.
    pub(crate) terms: &'static str,
    pub(crate) charts: &'a str,
}

/// A section under a heading of its own.
#[derive(Clone, Debug)]
pub(crate) struct Section {
    /// Its anchor, plain.
    pub(crate) id: String,
    /// Its heading, plain.
    pub(crate) title: String,
    /// All that stands under it.
    pub(crate) html: String,
}

impl Section {
    /// The two sections of most reports.
    pub(crate) fn summary_and_setup(summary: String, setup: String) -> Vec<Self> {
        [("summary", "Summary", summary), ("setup", "Setup", setup)]
            .map(|(id, title, html)| Self { id: id.into(), title: title.into(), html })
            .into()
    }

    fn html(&self) -> String {
        let (id, title) = (escape(&self.id), escape(&self.title));
        format!(
            "<section id=\"{id}\" aria-labelledby=\"{id}-title\" tabindex=\"-1\">\n<h2 id=\"{id}-title\">{title}</h2>\n{}\n</section>\n",
            self.html
        )
    }
}

impl Page<'_> {
    /// The page with `results` in it, for the charts.
    pub(crate) fn html(&self, results: &impl Serialize) -> String {
        fill(TEMPLATE, |name| match name {
            "title" => self.title.clone(),
            "heading" => self.heading.into(),
            "lede" => self.lede.clone(),
            "sentences" => verdict(&self.sentences),
            "sections" => self.sections.iter().map(Section::html).collect(),
            "provenance" => self.provenance.clone(),
            "terms" => self.terms.into(),
            "data" => json(results),
            "css" => CSS.into(),
            "dark_css" => DARK_CSS.into(),
            "js" => [CHARTS_JS, self.charts, START_JS].concat(),
            "library_js" => LIBRARY_JS.into(),
            "library_css" => LIBRARY_CSS.into(),
            "library_license" => LIBRARY_LICENSE.into(),
            _ => String::new(),
        })
    }
}

/// The sentences as paragraphs.
fn verdict(sentences: &[String]) -> String {
    if sentences.is_empty() {
        return String::new();
    }
    let paragraphs: String =
        sentences.iter().map(|sentence| format!("<p>{}</p>\n", escape(sentence))).collect();
    format!("<section class=\"verdict\" aria-label=\"In short\">\n{paragraphs}</section>")
}

/// Replaces each `{{name}}` in `page`. What is put in is not searched again.
pub fn fill(page: &str, mut value: impl FnMut(&str) -> String) -> String {
    let mut out = String::new();
    let mut rest = page;
    while let Some((before, name, after)) = next_placeholder(rest) {
        out.push_str(before);
        out.push_str(&value(name));
        rest = after;
    }
    out.push_str(rest);
    out
}

fn next_placeholder(page: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = page.split_once("{{")?;
    let (name, after) = rest.split_once("}}")?;
    Some((before, name, after))
}

/// The results as JSON that may stand in a script element: neither `</script` nor `<!--` can
/// appear.
fn json(results: &impl Serialize) -> String {
    // Strings and numbers under fixed names cannot fail to serialize; a page without data still has
    // its tables.
    serde_json::to_string(results).unwrap_or_else(|_| "null".into()).replace('<', "\\u003c")
}

/// So many `what`s.
pub(crate) fn counted(count: usize, what: &str) -> String {
    format!("{} {what}{}", super::format::count(count as u64), if count == 1 { "" } else { "s" })
}

/// The different names of the runs in their order, or how many there are if they are many; escaped.
pub(crate) fn names<R>(runs: &[R], what: &str, name: impl Fn(&R) -> &str) -> String {
    let mut different: Vec<&str> = Vec::new();
    for name in runs.iter().map(&name) {
        if !different.contains(&name) {
            different.push(name);
        }
    }
    match different.len() {
        0 => format!("no {what}s"),
        1..=NAMES_LISTED => different.into_iter().map(escape).collect::<Vec<_>>().join(", "),
        many => counted(many, what),
    }
}
