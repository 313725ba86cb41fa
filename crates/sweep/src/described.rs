//! Stacks and drives that a sweep describes itself, in place of files beside it.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use toml::{Table, Value};

use crate::error::SweepError;

/// Options that may name what is described.
const OPTIONS: [&str; 2] = ["stack", "drive"];
/// Keys of a stack or drive that may name a file.
const FILES: [&str; 3] = ["base", "drive", "kernel"];

/// Stacks and drives by the option that names them, and by their names.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Described(BTreeMap<String, BTreeMap<String, Table>>);

impl Described {
    /// Those of the tables `stacks` and `drives`.
    ///
    /// # Errors
    /// The place and fault of a name that is none.
    pub(crate) fn of(
        stacks: BTreeMap<String, Table>,
        drives: BTreeMap<String, Table>,
    ) -> Result<Self, (String, String)> {
        let mut all = BTreeMap::new();
        for (option, given) in OPTIONS.into_iter().zip([stacks, drives]) {
            let mut tables = BTreeMap::new();
            for (name, mut table) in given {
                let fault = |problem: &str| (format!("{option}s.{name}"), problem.to_owned());
                if !is_name(&name) {
                    return Err(fault(
                        "a name has up to 100 letters, digits, - _ and ., and begins with neither - nor .",
                    ));
                }
                match table.insert("name".into(), name.clone().into()) {
                    Some(other) if other.as_str() != Some(&name) => {
                        return Err(fault("its key \"name\" is another one; leave that out"));
                    }
                    _ => drop(tables.insert(name, table)),
                }
            }
            all.insert(option.into(), tables);
        }
        Ok(Self(all))
    }

    /// Each with the option that may name it.
    pub(crate) fn each(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().flat_map(|(option, tables)| {
            tables.keys().map(move |name| (option.as_str(), name.as_str()))
        })
    }

    /// A stack or drive of that name is described for the option.
    pub(crate) fn has(&self, option: &str, name: &str) -> bool {
        self.0.get(option).is_some_and(|tables| tables.contains_key(name))
    }

    /// Those alone that `is_used` takes, by option and name.
    pub(crate) fn only(&self, is_used: impl Fn(&str, &str) -> bool) -> Self {
        let mut kept = self.clone();
        for (option, tables) in &mut kept.0 {
            tables.retain(|name, _| is_used(option, name));
        }
        kept
    }

    /// An option's value with files in `folder` in place of the names that are described here.
    pub(crate) fn placed(&self, option: &str, value: &str, folder: &Path) -> String {
        let place = |name: &str| match self.has(option, name) {
            true => path(option, name, folder).display().to_string(),
            false => name.to_owned(),
        };
        value.split(',').map(place).collect::<Vec<_>>().join(",")
    }

    /// Writes the files that [`Described::placed`] names.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), SweepError> {
        for (option, tables) in &self.0 {
            for (name, table) in tables {
                let path = path(option, name, folder);
                let written = std::fs::create_dir_all(folder.join(option))
                    .and_then(|()| std::fs::write(&path, table.to_string()));
                written.map_err(|source| SweepError::Io { path, source })?;
            }
        }
        Ok(())
    }

    /// Names of files, or of what comes with the program, that they name in turn.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        let tables = self.0.values().flat_map(BTreeMap::values);
        tables.flat_map(|table| FILES.iter().filter_map(|key| table.get(*key)?.as_str()))
    }

    /// Files that they name in turn, by paths from the root: `at` is the directory of the call.
    pub(crate) fn absolute(&mut self, at: &Path) {
        for table in self.0.values_mut().flat_map(BTreeMap::values_mut) {
            for key in FILES {
                if let Some(Value::String(name)) = table.get_mut(key) {
                    *name = absolute(name, at);
                }
            }
        }
    }
}

fn is_name(name: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || "-_. ".contains(c);
    (1..=100).contains(&name.chars().count())
        && name.chars().all(is_part)
        && !name.starts_with(['-', '.'])
}

/// An option that names stacks or drives, by files too.
pub(crate) fn names_described(option: &str) -> bool {
    OPTIONS.contains(&option)
}

fn path(option: &str, name: &str, folder: &Path) -> std::path::PathBuf {
    folder.join(option).join(format!("{name}.toml"))
}

/// The path from the root of a stack's, a drive's or a kernel's file; what comes with the program has
/// a name without an ending or a folder, which stays.
pub(crate) fn absolute(name: &str, at: &Path) -> String {
    let path = at.join(name);
    let is_path = name.ends_with(".toml") || name.contains('/');
    if is_path && path.is_file() { path.display().to_string() } else { name.to_owned() }
}
