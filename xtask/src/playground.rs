//! The page with the simulator in it.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{cargo, run};

/// The machine that browsers have.
pub(crate) const TARGET: &str = "wasm32-unknown-unknown";

/// Builds `target/playground/index.html`.
pub(crate) fn playground(extra: &[String]) -> Result<(), String> {
    if let Some(unknown) = extra.first() {
        return Err(format!("{unknown} means nothing here: give no argument"));
    }
    find_target()?;
    let package = ["--package", "dovetail-playground"];
    let library = ["--lib", "--crate-type", "cdylib", "--profile", "playground"];
    cargo(&[&["rustc", "--quiet", "--target", TARGET], &package[..], &library].concat(), &[], &[])?;
    let built = target_folder().join(TARGET).join("playground/dovetail_playground.wasm");
    let page = target_folder().join("playground/index.html");
    let folder = page.parent().unwrap_or(Path::new("."));
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let paths = [built.display().to_string(), page.display().to_string()];
    // the whole workspace: what the program is built of has then the features that the tests need,
    // and is built once
    cargo(&["build", "--quiet", "--workspace", "--example", "page"], &[], &[])?;
    run(Command::new(target_folder().join("debug/examples/page")).args(&paths))?;
    println!("{}", page.display());
    Ok(())
}

fn target_folder() -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from)
}

/// The standard library for WebAssembly, which rustup is asked for if it is not there.
fn find_target() -> Result<(), String> {
    if is_there() {
        return Ok(());
    }
    let added = Command::new("rustup").args(["target", "add", TARGET]).status();
    if added.is_ok_and(|status| status.success()) && is_there() {
        return Ok(());
    }
    Err(format!(
        "Rust's standard library for {TARGET} is missing, and rustup could not add it: install it with your Rust \
         (Debian: libstd-rust-dev-wasm32), or declare it as absent with DOVETAIL_WITHOUT=wasm"
    ))
}

fn is_there() -> bool {
    let asked =
        Command::new("rustc").args(["--print", "target-libdir", "--target", TARGET]).output();
    asked.is_ok_and(|told| {
        let folder = PathBuf::from(String::from_utf8_lossy(&told.stdout).trim());
        std::fs::read_dir(folder).is_ok_and(|mut files| files.next().is_some())
    })
}
