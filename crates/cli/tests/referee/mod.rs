//! The check programs that others wrote.

use std::process::Output;

/// The checker of `kind` finds nothing at all.
pub(crate) fn check_clean(image: &str, kind: &str) {
    let output = match kind {
        "f2fs" => run("fsck.f2fs", "f2fs-tools", &["--dry-run", image]),
        _ => run("e2fsck", "e2fsprogs", &["-fn", image]),
    };
    let said = String::from_utf8_lossy(&output.stdout);
    // for fsck.f2fs status 0 is not enough
    let fault = ["[ASSERT]", "[FIX]", "[Fail]"].iter().any(|mark| said.contains(mark));
    assert!(output.status.code() == Some(0) && !fault, "{kind}: {said}");
}

/// Runs a program of a package; a test that needs it fails where it is missing.
pub(crate) fn run(program: &str, package: &str, arguments: &[&str]) -> Output {
    let output = dovetail_testkit::program(program).args(arguments).output();
    output.unwrap_or_else(|error| {
        panic!("{program}: {error}; install it with: apt-get install {package}")
    })
}
