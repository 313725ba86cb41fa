//! Real drives: the published measurements played on the drive model.

use std::path::Path;
use std::process::Command;

/// The lines between which the table stands.
const MARKS: [&str; 2] = ["<!-- drives -->\n", "<!-- /drives -->\n"];

/// Runs the tests and renews the table in `docs/drives.md`.
pub(crate) fn drives(_: &[String]) -> Result<(), String> {
    let mut command = Command::new(env!("CARGO"));
    command.args(["run", "--release", "-p", "dovetail-papers", "--example", "drives"]);
    command.stderr(std::process::Stdio::inherit());
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{command:?} failed with {}", output.status));
    }
    let table = String::from_utf8_lossy(&output.stdout);
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/drives.md");
    let told = |error: std::io::Error| format!("{}: {error}", page.display());
    let text = std::fs::read_to_string(&page).map_err(told)?;
    let text = between(&text, &table).ok_or("docs/drives.md has no place for the table")?;
    std::fs::write(&page, text).map_err(told)
}

/// The text with `table` between the marks.
fn between(text: &str, table: &str) -> Option<String> {
    let (before, rest) = text.split_once(MARKS[0])?;
    let (_, after) = rest.split_once(MARKS[1])?;
    Some(format!("{before}{}{}\n{}{after}", MARKS[0], table.trim_end(), MARKS[1]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_stands_between_its_marks() {
        let text = "a\n<!-- drives -->\nold\n<!-- /drives -->\nb\n";
        let expected = "a\n<!-- drives -->\nnew\n<!-- /drives -->\nb\n";
        assert_eq!(between(text, "new\n\n").as_deref(), Some(expected));
        assert_eq!(between("a", "new"), None);
    }
}
