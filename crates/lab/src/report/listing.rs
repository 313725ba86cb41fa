//! A table of texts, a row for each thing, a column for each run. What all runs share stands once.

use super::format::escape;
use super::table::{Column, NO_RUNS, scrolling};

/// A thing, of a run or of a part of one.
pub(super) struct Row<P> {
    name: &'static str,
    text: fn(&P) -> String,
}

pub(super) const fn row<P>(name: &'static str, text: fn(&P) -> String) -> Row<P> {
    Row { name, text }
}

/// A table under way.
pub(super) struct Listing<'a, R> {
    runs: &'a [R],
    body: String,
}

impl<'a, R: Column> Listing<'a, R> {
    pub(super) fn of(runs: &'a [R]) -> Self {
        Self { runs, body: String::new() }
    }

    /// Rows about a `part` of each run.
    pub(super) fn rows<P>(mut self, rows: &[Row<P>], part: fn(&R) -> &P) -> Self {
        for row in rows {
            let texts = self.runs.iter().map(|run| escape(&(row.text)(part(run))));
            self.body.push_str(&row_html(row.name, &texts.collect::<Vec<_>>()));
        }
        self
    }

    /// The table of that title.
    pub(super) fn html(self, title: &str) -> String {
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

    struct Run(&'static str);

    impl Column for Run {
        fn label(&self) -> &str {
            self.0
        }
    }

    #[test]
    fn what_all_runs_share_stands_once() {
        let rows = [row("Name", |_: &Run| "a".into()), row("Label", |run: &Run| run.0.into())];
        let html = Listing::of(&[Run("b"), Run("c")]).rows(&rows, |run| run).html("Setup");
        assert!(html.contains("<td class=\"same\" colspan=\"2\">a</td>"));
        assert!(html.contains("<td>b</td><td>c</td>"));
    }
}
