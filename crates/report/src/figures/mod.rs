//! The report of papers' figures: each drawn, with its statements under it.

mod thin;

use dovetail_lab::results::{Provenance, Results};
use serde::Serialize;

use crate::format::escape;
use crate::page::{Page, Section, counted};
use crate::provenance::of_call;
use crate::results::scale;

use thin::Run;

const JS: &str = include_str!("../../assets/figures.js");

const TERMS: &str = "Times are those of the simulated host and drive. A paper's numbers are never an input of what is compared with them; each statement has a rule that says what counts as agreement. WAF, write amplification: of the file system, blocks that it wrote over blocks that the workload wrote; of the drive, bytes programmed over bytes that reached the drive. MB: 10<sup>6</sup> bytes; KiB, MiB, GiB: powers of 1,024 bytes.";

/// Most statements of a figure that are drawn; all are in its table.
const MOST_DRAWN: usize = 60;

/// A statement of a paper beside ours.
#[derive(Clone, Debug, Default)]
pub struct Statement {
    /// Its subject.
    pub what: String,
    /// Result of the paper.
    pub paper: String,
    /// Our result.
    pub ours: String,
    /// Rule that says what counts as agreement; empty where there is none.
    pub rule: String,
    /// `agrees`, `differs` or `shown`.
    pub verdict: &'static str,
    /// Both ends of the paper's value, to be drawn.
    pub paper_span: Option<(f64, f64)>,
    /// Our values in the same unit, with their names; empty where there is nothing to draw.
    pub values: Vec<(String, f64)>,
    /// Unit of all these numbers; may be empty.
    pub unit: String,
}

/// A figure that was run.
#[derive(Clone, Debug)]
pub struct Reproduced<'a> {
    /// Its name on the command line.
    pub name: &'a str,
    /// Its subject.
    pub title: &'a str,
    /// Its place in the paper.
    pub source: &'a str,
    /// Setup in the paper, and what is assumed.
    pub setup: &'a str,
    /// The statements.
    pub statements: Vec<Statement>,
    /// The runs behind them.
    pub results: &'a Results,
}

/// A report under way: what it shows of each figure is taken out of its results at once.
#[derive(Debug, Default)]
pub struct Figures {
    index: String,
    sections: Vec<Section>,
    data: Vec<Data>,
}

/// A figure for its charts.
#[derive(Debug, Serialize)]
struct Data {
    name: String,
    statements: Vec<DrawnStatement>,
    runs: Vec<Run>,
}

#[derive(Debug, Serialize)]
struct DrawnStatement {
    what: String,
    text: String,
    verdict: &'static str,
    paper: Option<(f64, f64)>,
    ours: Vec<(String, f64)>,
    unit: String,
}

#[derive(Serialize)]
struct Embedded<'a> {
    runs: [(); 0],
    figures: &'a [Data],
}

impl Figures {
    /// Adds a figure behind the others.
    pub fn add(&mut self, figure: &Reproduced<'_>) {
        let place = format!("figure-{}", self.data.len());
        self.index.push_str(&index_row(figure));
        self.sections.push(Section {
            id: figure.name.into(),
            title: figure.title.into(),
            html: section(figure, &place),
        });
        self.data.push(data(figure));
    }

    /// The page: one file that needs nothing else. With several figures an index comes first.
    pub fn html(self, provenance: &Provenance) -> String {
        let count = self.data.len();
        let index = Section {
            id: "index".into(),
            title: "Figures".into(),
            html: format!(
                "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Figures\">\n<table class=\"index\">\n<thead><tr><td>Figure</td><th scope=\"col\" class=\"words\">Shows</th><th scope=\"col\">Scale</th><th scope=\"col\">Agree</th><th scope=\"col\">Differ</th><th scope=\"col\">Shown only</th></tr></thead>\n<tbody>\n{}</tbody>\n</table>\n</div>",
                self.index
            ),
        };
        let page = Page {
            title: match &self.data[..] {
                [only] => format!("Dovetail: {}", escape(&only.name)),
                _ => "Dovetail: papers' figures".into(),
            },
            heading: "Papers' figures, run again",
            lede: format!("{}: the paper's numbers beside ours.", counted(count, "figure")),
            sentences: Vec::new(),
            sections: std::iter::once(index).chain(self.sections).collect(),
            provenance: of_call(provenance),
            terms: TERMS,
            charts: JS,
        };
        page.html(&Embedded { runs: [], figures: &self.data })
    }
}

/// Statements of each verdict: `agrees`, `differs`, `shown`.
fn counts(figure: &Reproduced<'_>) -> [usize; 3] {
    ["agrees", "differs", "shown"]
        .map(|verdict| figure.statements.iter().filter(|it| it.verdict == verdict).count())
}

fn index_row(figure: &Reproduced<'_>) -> String {
    let [agrees, differs, shown] = counts(figure);
    let name = escape(figure.name);
    format!(
        "<tr><th scope=\"row\"><a href=\"#{name}\">{name}</a></th><td class=\"words\">{}</td><td>{}</td><td>{agrees}</td><td>{differs}</td><td>{shown}</td></tr>\n",
        escape(figure.title),
        scale(figure.results.scale)
    )
}

fn section(figure: &Reproduced<'_>, place: &str) -> String {
    format!(
        "<p class=\"about\">{}, {}. {}</p>\n<details><summary>Setup</summary><p class=\"about\">{}</p></details>\n<div class=\"grid\" id=\"{place}\"></div>\n{}",
        escape(figure.name),
        scale(figure.results.scale),
        escape(figure.source),
        escape(figure.setup),
        table(&figure.statements)
    )
}

fn table(statements: &[Statement]) -> String {
    let row = |it: &Statement| {
        format!(
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td><td><span class=\"verdict-of {}\">{}</span></td></tr>\n",
            escape(&it.what),
            escape(&it.paper),
            escape(&it.ours),
            escape(&it.rule),
            it.verdict,
            if it.verdict == "differs" { "DIFFERS" } else { it.verdict }
        )
    };
    let rows: String = statements.iter().map(row).collect();
    format!(
        "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Statements\">\n<table class=\"sentences\">\n<thead><tr><td>Statement</td><th scope=\"col\">Paper</th><th scope=\"col\">Ours</th><th scope=\"col\">Agreement is</th><th scope=\"col\"></th></tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n</div>"
    )
}

fn data(figure: &Reproduced<'_>) -> Data {
    let drawn = |it: &Statement| DrawnStatement {
        what: it.what.clone(),
        text: it.ours.clone(),
        verdict: it.verdict,
        paper: it.paper_span,
        ours: it.values.clone(),
        unit: it.unit.clone(),
    };
    let statements = figure.statements.iter().filter(|it| !it.values.is_empty());
    Data {
        name: figure.name.into(),
        statements: statements.take(MOST_DRAWN).map(drawn).collect(),
        runs: thin::runs(&figure.results.runs),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NASTY: &str = "</script><b>\"'&";

    fn page(names: &[&str]) -> String {
        let results = Results::of("job".into(), 0.25, 1, Vec::new());
        let mut figures = Figures::default();
        for name in names {
            figures.add(&Reproduced {
                name,
                title: NASTY,
                source: NASTY,
                setup: NASTY,
                statements: vec![Statement {
                    what: NASTY.into(),
                    verdict: "differs",
                    paper_span: Some((1.0, 2.0)),
                    values: vec![(NASTY.into(), 3.0)],
                    ..Statement::default()
                }],
                results: &results,
            });
        }
        figures.html(&Provenance::default())
    }

    #[test]
    fn each_figure_has_a_line_of_the_index_and_a_section() {
        let html = page(&["one", "two"]);
        for name in ["one", "two"] {
            assert!(html.contains(&format!("<a href=\"#{name}\">{name}</a>")), "{name}");
            assert!(html.contains(&format!("<section id=\"{name}\"")), "{name}");
        }
        assert!(html.contains("DIFFERS") && html.contains("scale 1/4"));
        assert!(!html.contains("</script><b>") && !html.contains("{{"));
    }
}
