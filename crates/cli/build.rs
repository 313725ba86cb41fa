//! Tells the program the commit that it is built from, for `--version`.

use std::process::Command;

fn git(arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim().to_owned())
}

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // grows with each commit and each change of branch
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
    let commit = git(&["rev-parse", "--short=12", "HEAD"]).unwrap_or_default();
    let version = std::env::var("CARGO_PKG_VERSION").unwrap_or_default();
    let of = if commit.is_empty() { String::new() } else { format!(" ({commit})") };
    println!("cargo::rustc-env=DOVETAIL_VERSION={version}{of}");
    println!("cargo::rustc-env=DOVETAIL_COMMIT={commit}");
}
