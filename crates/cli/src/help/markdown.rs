//! Markdown as a terminal shows it: paragraphs at its width, links as their words, tables as tables.

use comfy_table::presets::NOTHING;
use comfy_table::{ContentArrangement, Table};

use crate::table::wrap;

/// A page at a width.
pub(super) fn render(text: &str, width: usize) -> String {
    let mut out = String::new();
    let mut lines = text.lines().filter(|line| !line.starts_with("<!--")).peekable();
    while let Some(line) = lines.next() {
        if line.starts_with("```") {
            lines.by_ref().take_while(|line| !line.starts_with("```")).for_each(|line| {
                out += &format!("    {line}\n");
            });
        } else if line.starts_with('|') {
            let mut rows = vec![line];
            while let Some(row) = lines.next_if(|line| line.starts_with('|')) {
                rows.push(row);
            }
            out += &table(&rows, width);
        } else if line.starts_with('#') {
            out += &format!("{}\n", plain(line.trim_start_matches('#').trim()).to_uppercase());
        } else if line.starts_with("    ") || line.trim().is_empty() {
            out += &format!("{line}\n");
        } else {
            let mut paragraph = line.to_string();
            while let Some(more) = lines.next_if(|line| goes_on(line)) {
                paragraph += &format!(" {}", more.trim());
            }
            out += &wrapped(&plain(&paragraph), width);
        }
    }
    out
}

/// The line belongs to the paragraph before it.
fn goes_on(line: &str) -> bool {
    let begins = ["- ", "* ", "#", "|", "```", "<!--", "> "];
    let is_numbered = line.split_once(". ").is_some_and(|(n, _)| n.parse::<u32>().is_ok());
    !line.trim().is_empty() && !begins.iter().any(|mark| line.starts_with(mark)) && !is_numbered
}

/// Text without marks of emphasis and the targets of links.
fn plain(text: &str) -> String {
    let (mut out, mut rest) = (String::new(), text);
    while let Some((before, words, after)) = link(rest) {
        out += before;
        out += words;
        rest = after;
    }
    out += rest;
    out.replace("**", "")
}

/// The first `[words](target)`: what stands before it, its words, and what comes after.
fn link(text: &str) -> Option<(&str, &str, &str)> {
    let middle = text.find("](")?;
    let start = text[..middle].rfind('[')?;
    let end = middle + text[middle..].find(')')?;
    Some((&text[..start], &text[start + 1..middle], &text[end + 1..]))
}

/// A paragraph in lines of at most `width` characters; those of a list's item stand behind its mark.
fn wrapped(text: &str, width: usize) -> String {
    wrap(text, width, if text.starts_with("- ") { "  " } else { "" })
}

fn table(rows: &[&str], width: usize) -> String {
    let mut table = Table::new();
    table.load_style(NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(u16::try_from(width).unwrap_or(u16::MAX));
    let cells = |row: &str| {
        let row = row.trim().trim_start_matches('|').trim_end_matches('|').replace("\\|", "\u{1}");
        row.split('|').map(|cell| plain(cell.trim()).replace('\u{1}', "|")).collect::<Vec<_>>()
    };
    let is_rule = |row: &&&str| row.chars().all(|c| "|-: ".contains(c));
    for row in rows.iter().filter(|row| !is_rule(row)) {
        table.add_row(cells(row));
    }
    let lines: Vec<_> = table.lines().map(|line| line.trim_end().to_string()).collect();
    lines.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_fits_its_width_and_loses_its_marks() {
        let page = "# A page\n\nOne **bold** word and [a link](x.md#y) in a long\nparagraph of words.\n\n\
                    - an item that goes on\n  and on\n- another\n\n| key | meaning |\n|---|---|\n| `a` | of [b](c.md) |\n\n\
                    ```console\n$ run   it\n```\n";
        assert_eq!(
            render(page, 24),
            "A PAGE\n\nOne bold word and a link\nin a long paragraph of\nwords.\n\n\
             - an item that goes on\n  and on\n- another\n\n key  meaning\n `a`  of b\n\n    $ run   it\n"
        );
    }
}
