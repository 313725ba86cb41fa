//! `cargo xtask book`: the documentation as a book of HTML pages with search, by mdBook.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::files::{copy, read, write};
use crate::run;

/// The version of mdBook that the book is made with.
const MDBOOK: &str = "0.5.4";
/// Folder of the book and its sources.
const PLACE: &str = "target/book";
/// Pages from outside `docs`, as the book has them.
const PROJECT: [(&str, &str); 4] = [
    ("ARCHITECTURE.md", "project/architecture.md"),
    ("CONTRIBUTING.md", "project/contributing.md"),
    ("CHANGELOG.md", "project/changelog.md"),
    ("examples/README.md", "project/examples.md"),
];

/// Writes the book to `target/book/html`.
pub(crate) fn book(_: &[String]) -> Result<(), String> {
    let mdbook = mdbook()?;
    let place = Path::new(PLACE);
    if place.exists() {
        std::fs::remove_dir_all(place).map_err(|error| format!("{PLACE}: {error}"))?;
    }
    copy(Path::new("xtask/book/book.toml"), &place.join("book.toml"))?;
    copy(Path::new("xtask/book/SUMMARY.md"), &place.join("src/SUMMARY.md"))?;
    for page in pages(Path::new("docs"))? {
        let inside = page.strip_prefix("docs").map_err(|error| error.to_string())?.to_owned();
        write(&place.join("src").join(&inside), in_book(&read(&page)?, &inside).as_bytes())?;
    }
    for (from, to) in PROJECT {
        let text = from_project(&read(Path::new(from))?, Path::new(from));
        write(&place.join("src").join(to), text.as_bytes())?;
    }
    run(Command::new(mdbook).args(["build", PLACE]))?;
    println!("{PLACE}/html/index.html");
    Ok(())
}

/// The program; it is built below `target` if it is not installed.
fn mdbook() -> Result<PathBuf, String> {
    let own = PathBuf::from("target/tools/bin/mdbook");
    for program in [PathBuf::from("mdbook"), own.clone()] {
        if Command::new(&program).arg("--version").output().is_ok_and(|o| o.status.success()) {
            return Ok(program);
        }
    }
    run(Command::new("cargo")
        .args(["install", "mdbook", "--version", MDBOOK, "--locked", "--root", "target/tools"])
        .args(["--no-default-features", "--features", "search"]))?;
    Ok(own)
}

/// Markdown files of a folder and those below it.
fn pages(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    let entries = std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
        if path.is_dir() {
            found.extend(pages(&path)?);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
    Ok(found)
}

/// A page of `docs` with its links to pages of the project led into the book.
fn in_book(text: &str, page: &Path) -> String {
    let up = "../".repeat(page.components().count());
    let to_top = "../".repeat(page.components().count() - 1);
    PROJECT.iter().fold(text.to_owned(), |text, (from, to)| {
        text.replace(&format!("]({up}{from}"), &format!("]({to_top}{to}"))
    })
}

/// A page of the project with its links led into the book. What the book does not have stays as
/// text.
fn from_project(text: &str, page: &Path) -> String {
    let up = "../".repeat(page.components().count() - 1);
    let text = PROJECT.iter().fold(text.to_owned(), |text, (from, to)| {
        let name = to.trim_start_matches("project/");
        text.replace(&format!("]({up}{from}"), &format!("]({name}"))
    });
    text.replace(&format!("]({up}docs/"), "](../")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_lead_to_where_the_book_has_the_page() {
        let text = "see [a](../ARCHITECTURE.md#glossary), [b](traces.md)";
        assert_eq!(
            in_book(text, Path::new("crash.md")),
            "see [a](project/architecture.md#glossary), [b](traces.md)"
        );
        assert_eq!(
            in_book("[a](../../CONTRIBUTING.md)", Path::new("tutorials/x.md")),
            "[a](../project/contributing.md)"
        );
        let text = "[a](docs/crash.md), [b](examples/README.md)";
        assert_eq!(
            from_project(text, Path::new("CONTRIBUTING.md")),
            "[a](../crash.md), [b](examples.md)"
        );
        assert_eq!(
            from_project("[a](../docs/x.md)", Path::new("examples/README.md")),
            "[a](../x.md)"
        );
    }

    /// Each page of `docs` stands in the book once.
    #[test]
    fn every_page_stands_in_the_book() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let summary = std::fs::read_to_string(root.join("xtask/book/SUMMARY.md")).unwrap();
        let docs = root.join("docs");
        for page in pages(&docs).unwrap() {
            let name = page.strip_prefix(&docs).unwrap().display().to_string();
            assert_eq!(summary.matches(&format!("]({name})")).count(), 1, "{name}");
        }
        let listed = summary.matches("](").count();
        assert_eq!(listed, pages(&docs).unwrap().len() + PROJECT.len());
    }
}
