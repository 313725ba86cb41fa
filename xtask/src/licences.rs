//! `cargo xtask licences`: packages that the program is made of, and their licences.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use serde_json::Value;

/// Licences under which a program may be handed on with its own; a new one is looked at first.
const KNOWN: [&str; 10] = [
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Zlib",
];

/// Prints the page.
pub(crate) fn licences(_: &[String]) -> Result<(), String> {
    print!("{}", page()?);
    Ok(())
}

/// A text that names each package that is linked, its version and its licence.
///
/// # Errors
/// Cargo fails, or a package has none of the known licences.
pub(crate) fn page() -> Result<String, String> {
    let mut page = String::from(
        "Dovetail is licensed under MIT or Apache-2.0, at your choice (LICENSE-MIT, LICENSE-APACHE).\n\
         The program is made of these packages too; each is from crates.io, and its sources there have the\n\
         full text of its licence. The static program also has the standard library of Rust (MIT OR Apache-2.0)\n\
         and glibc (LGPL-2.1-or-later). Reports have uPlot (MIT).\n\n",
    );
    for ((name, version), licence) in linked()? {
        if !is_known(&licence) {
            return Err(format!(
                "{name} {version} has the licence \"{licence}\": look at it first"
            ));
        }
        page += &format!("{name} {version}: {licence}\n");
    }
    Ok(page)
}

/// Licences of the packages that `dovetail` links, by name and version; ours are left out.
fn linked() -> Result<BTreeMap<(String, String), String>, String> {
    let metadata = metadata()?;
    let linked = reached(&metadata)?;
    let packages = metadata["packages"].as_array().ok_or("cargo metadata names no packages")?;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let others = packages.iter().filter(|package| {
        linked.contains(package["id"].as_str().unwrap_or_default()) && !package["source"].is_null()
    });
    let entry = |package: &Value| {
        ((text(&package["name"]), text(&package["version"])), text(&package["license"]))
    };
    Ok(others.map(entry).collect())
}

fn metadata() -> Result<Value, String> {
    let output = Command::new("cargo")
        .args(["metadata", "--format-version", "1", "--locked", "--filter-platform"])
        .arg("x86_64-unknown-linux-gnu")
        .output()
        .map_err(|error| format!("cargo metadata: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))
}

/// Packages that the command's package needs when it runs or is linked, by id.
fn reached(metadata: &Value) -> Result<BTreeSet<String>, String> {
    let nodes = metadata["resolve"]["nodes"].as_array().ok_or("cargo metadata resolves nothing")?;
    let by_id: BTreeMap<&str, &Value> =
        nodes.iter().filter_map(|node| Some((node["id"].as_str()?, node))).collect();
    let packages = metadata["packages"].as_array().ok_or("cargo metadata names no packages")?;
    let command = packages.iter().find(|package| package["name"] == "dovetail-cli");
    let mut waiting =
        vec![command.and_then(|p| p["id"].as_str()).ok_or("dovetail-cli is not there")?];
    let mut reached = BTreeSet::new();
    while let Some(id) = waiting.pop() {
        if reached.insert(id.to_owned()) {
            waiting.extend(by_id.get(id).into_iter().flat_map(|node| normal(node)));
        }
    }
    Ok(reached)
}

/// Dependencies of a package but those for its tests and its build script.
fn normal(node: &Value) -> impl Iterator<Item = &str> {
    let all = node["deps"].as_array().into_iter().flatten();
    let is_normal = |dep: &&Value| {
        dep["dep_kinds"].as_array().is_some_and(|kinds| kinds.iter().any(|k| k["kind"].is_null()))
    };
    all.filter(is_normal).filter_map(|dep| dep["pkg"].as_str())
}

/// Each part of a sum is known, or has a known alternative. Brackets hold one or the other, as in
/// the packages that there are.
fn is_known(licence: &str) -> bool {
    let text = licence.replace('/', " OR ");
    let of_choices = |text: &str, within: &dyn Fn(&str) -> bool| text.split(" OR ").any(within);
    let is_one = |name: &str| KNOWN.contains(&name.trim());
    let of_sum = |text: &str| {
        text.split(" AND ").all(|part| {
            of_choices(part.trim().trim_start_matches('(').trim_end_matches(')'), &is_one)
        })
    };
    if text.contains('(') {
        return of_sum(&text);
    }
    of_choices(&text, &|choice: &str| choice.split(" AND ").all(is_one))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_and_a_sum_of_licences_are_read() {
        for known in
            ["MIT", "MIT OR GPL-2.0", "Unlicense/MIT", "(MIT OR Apache-2.0) AND Unicode-3.0"]
        {
            assert!(is_known(known), "{known}");
        }
        for unknown in ["", "GPL-2.0", "MIT AND GPL-2.0", "(MIT OR Apache-2.0) AND GPL-3.0"] {
            assert!(!is_known(unknown), "{unknown}");
        }
    }

    #[test]
    fn all_that_is_linked_has_a_known_licence() {
        let page = page().unwrap();
        assert!(page.lines().any(|line| line.starts_with("clap ")), "{page}");
    }
}
