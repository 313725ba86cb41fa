//! A profile's text: laid over the profile that it is based on, and its keys checked at once.

use std::path::Path;

use super::schema::{Keys, TABLES};
use super::{BUILTIN, ProfileError, syntax};

/// Profiles that may stand on each other.
const DEEPEST: usize = 8;
/// Keys that a profile never takes from its base.
const NAMES: [&str; 2] = ["name", "about"];
/// The table that names sources.
const SOURCES: &str = "sources";

/// The text of a profile with all that it takes from those below it.
///
/// # Errors
/// No TOML, a base that is not there, keys that there are not or that are missing.
pub(super) fn complete(text: &str, file: &str) -> Result<String, ProfileError> {
    let own = parse(text, file)?;
    let is_based = own.contains_key("base");
    let names: Vec<_> = NAMES.into_iter().filter(|name| !own.contains_key(*name)).collect();
    let document = with_base(own, file, DEEPEST)?;
    check_keys(&document, &names, text, file)?;
    Ok(if is_based { document.to_string() } else { text.into() })
}

fn parse(text: &str, file: &str) -> Result<toml::Table, ProfileError> {
    text.parse().map_err(|error| syntax(text, file, &error))
}

/// Lays a document over its base, key by key.
fn with_base(mut own: toml::Table, file: &str, depth: usize) -> Result<toml::Table, ProfileError> {
    let Some(base) = own.remove("base") else { return Ok(own) };
    let told = |message: String| ProfileError::Base { file: file.into(), message };
    let Some(name) = base.as_str() else {
        return Err(told(format!("base is {base}, and should be a name or a path in quotes")));
    };
    if depth == 0 {
        return Err(told(format!(
            "{DEEPEST} profiles stand on each other, and base goes on: {name}"
        )));
    }
    let (text, below) = base_text(name, file).map_err(told)?;
    let mut document = with_base(parse(&text, &below)?, &below, depth - 1)?;
    forget_sources(&mut document, &own);
    for (key, value) in own {
        match (document.get_mut(&key), value) {
            (Some(toml::Value::Table(below)), toml::Value::Table(above)) => below.extend(above),
            (_, value) => drop(document.insert(key, value)),
        }
    }
    Ok(document)
}

/// Drops the sources of figures that are others now.
fn forget_sources(below: &mut toml::Table, own: &toml::Table) {
    let Some(sources) = below.get_mut(SOURCES).and_then(toml::Value::as_table_mut) else { return };
    for (table, keys) in own.iter().filter(|(table, _)| *table != SOURCES) {
        for key in keys.as_table().into_iter().flat_map(toml::Table::keys) {
            sources.remove(&format!("{table}.{key}"));
        }
    }
}

/// The text of a base and what errors call it: a profile of the project, or a file beside `file`.
fn base_text(name: &str, file: &str) -> Result<(String, String), String> {
    if let Some((_, text)) = BUILTIN.iter().find(|(builtin, _)| *builtin == name) {
        return Ok(((*text).into(), format!("profiles/{name}.toml")));
    }
    let path = Path::new(file).parent().unwrap_or(Path::new("")).join(name);
    let text = dovetail_time::read_text(&path);
    let text = text.map_err(|error| format!("base is {name}, which is no profile: {error}"))?;
    Ok((text, path.display().to_string()))
}

/// Tells of all keys that there are not, and of all that are missing, in one message.
fn check_keys(
    document: &toml::Table,
    names: &[&str],
    text: &str,
    file: &str,
) -> Result<(), ProfileError> {
    let mut mistakes: Vec<String> = document
        .iter()
        .flat_map(|(key, value)| unknown(key, value))
        .map(|(table, key, allowed)| match (line_of(text, table, &key), table) {
            (Some(line), Some(table)) => format!("line {line}: unknown key {table}.{key}{allowed}"),
            (Some(line), None) => format!("line {line}: unknown {key}{allowed}"),
            (None, table) => format!("unknown key {}.{key}{allowed}", table.unwrap_or("base")),
        })
        .collect();
    mistakes.extend(names.iter().map(|name| format!("{name} is missing")));
    mistakes.extend(missing(document).map(|key| format!("{key} is missing")));
    if mistakes.is_empty() {
        return Ok(());
    }
    Err(ProfileError::Keys { file: file.into(), mistakes: mistakes.join("; ") })
}

type Unknown = (Option<&'static str>, String, String);

/// The keys of a table that it may not have, or the table itself.
fn unknown(key: &str, value: &toml::Value) -> Vec<Unknown> {
    if NAMES.contains(&key) || key == SOURCES {
        return Vec::new();
    }
    let Some(keys) = TABLES.iter().find(|keys| keys.table == key) else {
        let tables: Vec<_> = TABLES.iter().map(|keys| keys.table).collect();
        return vec![(None, key.into(), format!(" (tables are {}, {SOURCES})", tables.join(", ")))];
    };
    let Some(table) = value.as_table() else { return Vec::new() };
    let is_known = |key: &&String| {
        keys.needed.contains(&key.as_str()) || keys.optional.contains(&key.as_str())
    };
    let strange = table.keys().filter(|key| !is_known(key));
    strange.map(|key| (Some(keys.table), key.clone(), nearest(key, keys))).collect()
}

/// A hint at the key that was probably meant, or at all there are.
fn nearest(key: &str, keys: &Keys) -> String {
    let all = || keys.needed.iter().chain(keys.optional);
    let distance = |other: &&&str| common_letters(key, other);
    match all().max_by_key(distance).filter(|best| 2 * common_letters(key, best) > key.len()) {
        Some(best) => format!(" (did you mean {best}?)"),
        None => format!(" (there are {})", all().copied().collect::<Vec<_>>().join(", ")),
    }
}

/// Letters that two words have in common at their beginnings and ends.
fn common_letters(a: &str, b: &str) -> usize {
    let same =
        |pairs: &mut dyn Iterator<Item = (char, char)>| pairs.take_while(|(a, b)| a == b).count();
    let first = same(&mut a.chars().zip(b.chars()));
    let last = same(&mut a.chars().rev().zip(b.chars().rev()));
    (first + last).min(a.len()).min(b.len())
}

/// Keys and tables that a profile cannot do without, and that are not there.
fn missing(document: &toml::Table) -> impl Iterator<Item = String> {
    TABLES.iter().flat_map(move |keys| {
        let table = document.get(keys.table).and_then(toml::Value::as_table);
        let is_there = |key: &str| table.is_some_and(|table| table.contains_key(key));
        let wanted = if table.is_some() || keys.is_needed { keys.needed } else { &[] };
        let absent: Vec<String> = wanted
            .iter()
            .filter(|key| !is_there(key))
            .map(|key| format!("{}.{key}", keys.table))
            .collect();
        absent
    })
}

/// The line on which a key of a table, or a table itself, stands: from 1.
fn line_of(text: &str, table: Option<&str>, key: &str) -> Option<usize> {
    let stands_here = |line: &str| {
        let line = line.trim_start();
        let rest = line.strip_prefix(key).or_else(|| line.strip_prefix('[')?.strip_prefix(key));
        rest.is_some_and(|rest| rest.trim_start().starts_with(['=', ']']))
    };
    let is_header = |line: &str| table.is_some_and(|table| line.trim() == format!("[{table}]"));
    let header = text.lines().position(is_header).map_or(0, |header| header + 1);
    text.lines().skip(header).position(stands_here).map(|line| header + line + 1)
}
