//! A table of texts, a row for each thing, a column for each run. What all runs share stands once.

use super::format::{MISSING, escape};
use super::table::{Column, NO_RUNS, scrolling};

/// A thing; `None` where a run has none.
pub(crate) struct Row<R> {
    name: &'static str,
    text: fn(&R) -> Option<String>,
}

pub(crate) const fn row<R>(name: &'static str, text: fn(&R) -> Option<String>) -> Row<R> {
    Row { name, text }
}

/// A table under way.
pub(crate) struct Listing<'a, R> {
    runs: &'a [R],
    body: String,
}

impl<'a, R: Column> Listing<'a, R> {
    pub(crate) fn of(runs: &'a [R]) -> Self {
        Self { runs, body: String::new() }
    }

    /// The rows that any run has a text for.
    pub(crate) fn rows(mut self, rows: &[Row<R>]) -> Self {
        for row in rows {
            let texts: Vec<_> = self.runs.iter().map(row.text).collect();
            if texts.iter().any(Option::is_some) {
                let shown = texts.iter().map(|text| text.as_deref().map_or(MISSING.into(), escape));
                self.body.push_str(&row_html(row.name, &shown.collect::<Vec<_>>()));
            }
        }
        self
    }

    /// The table of that title.
    pub(crate) fn html(self, title: &str) -> String {
        if self.runs.is_empty() {
            return NO_RUNS.into();
        }
        scrolling(title, self.runs, &format!("<tbody>\n{}</tbody>\n", self.body))
    }
}

fn row_html(name: &str, texts: &[String]) -> String {
    let same = texts.len() > 1 && texts.windows(2).all(|pair| pair[0] == pair[1]);
    let cells = if same {
        format!("<td class=\"same\" colspan=\"{}\">{}</td>", texts.len(), texts[0])
    } else {
        texts.iter().map(|text| format!("<td>{text}</td>")).collect()
    };
    format!("<tr><th scope=\"row\">{name}</th>{cells}</tr>\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Named(&'static str);

    impl Column for Named {
        fn label(&self) -> &str {
            self.0
        }
    }

    #[test]
    fn what_all_runs_share_stands_once() {
        let rows = [
            row("Name", |_: &Named| Some("a".into())),
            row("Label", |run: &Named| Some(run.0.into())),
        ];
        let html = Listing::of(&[Named("b"), Named("c")]).rows(&rows).html("Setup");
        assert!(html.contains("<td class=\"same\" colspan=\"2\">a</td>"));
        assert!(html.contains("<td>b</td><td>c</td>"));
    }
}
