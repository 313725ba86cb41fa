//! docs/fsck.md lists the kinds of findings as the code has them. `DOVETAIL_BLESS=1` writes the
//! table anew.

#![allow(clippy::unwrap_used, reason = "a test may stop where it fails")]

use std::path::Path;

use dovetail_f2fs::fsck::Finding;

const START: &str = "<!-- kinds: from Finding::KINDS -->\n";
const END: &str = "<!-- end of kinds -->\n";

fn table() -> String {
    let rows = Finding::KINDS.iter().map(|kind| {
        format!("| {} | {} | {} | {} |\n", kind.name, kind.severity, kind.about.trim(), kind.remedy)
    });
    "| kind | severity | what it means | repaired |\n|---|---|---|---|\n".to_string()
        + &rows.collect::<String>()
}

#[test]
fn the_documentation_lists_all_kinds() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/fsck.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = text.split_once(START).unwrap();
    let (found, after) = rest.split_once(END).unwrap();
    if std::env::var_os("DOVETAIL_BLESS").is_some() {
        std::fs::write(&path, [before, START, &table(), END, after].concat()).unwrap();
        return;
    }
    assert_eq!(
        found,
        table(),
        "run: DOVETAIL_BLESS=1 cargo test -p dovetail-f2fs --test all fsck_docs::"
    );
}
