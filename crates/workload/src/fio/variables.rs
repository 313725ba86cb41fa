//! `${NAME}` in the values of a job file.

use std::collections::BTreeMap;

/// Values of `${NAME}`. fio takes the environment; here every value is given, so that a run repeats
/// anywhere.
#[derive(Clone, Debug, Default)]
pub struct Variables(BTreeMap<String, String>);

/// Reason why a value cannot be expanded.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Unexpanded {
    /// `${NAME}` with a name that has no value.
    Unknown(String),
    /// `${` without its `}`.
    Unclosed,
    /// `$ncpus` or `$mb_memory`: they would make the run depend on the machine.
    Machine(&'static str),
}

/// The page size of the simulated machine, for `$pagesize`.
const PAGE_BYTES: &str = "4096";

impl Variables {
    /// No variables.
    pub fn new() -> Self {
        Self::default()
    }

    /// Gives `name` a value, in place of the one that it had.
    pub fn set(&mut self, name: impl Into<String>, value: impl Into<String>) {
        self.0.insert(name.into(), value.into());
    }

    /// All names with their values.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }

    pub(super) fn expand(&self, text: &str) -> Result<String, Unexpanded> {
        let mut expanded = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find("${") {
            let (name, after) = rest[at + 2..].split_once('}').ok_or(Unexpanded::Unclosed)?;
            let value = self.0.get(name).ok_or_else(|| Unexpanded::Unknown(name.to_owned()))?;
            expanded.push_str(&rest[..at]);
            expanded.push_str(value);
            rest = after;
        }
        expanded.push_str(rest);
        keywords(expanded)
    }
}

impl<N: Into<String>, V: Into<String>> FromIterator<(N, V)> for Variables {
    fn from_iter<I: IntoIterator<Item = (N, V)>>(pairs: I) -> Self {
        Self(pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect())
    }
}

/// fio's reserved words that stand for a property of the machine.
fn keywords(text: String) -> Result<String, Unexpanded> {
    match ["$ncpus", "$mb_memory"].into_iter().find(|word| text.contains(word)) {
        Some(word) => Err(Unexpanded::Machine(word)),
        None => Ok(text.replace("$pagesize", PAGE_BYTES)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_expand_anywhere_in_a_value() {
        let variables = Variables::from_iter([("SIZE", "64m"), ("N", "3")]);
        assert_eq!(variables.expand("${SIZE}"), Ok("64m".into()));
        assert_eq!(variables.expand("a${N}b${N}"), Ok("a3b3".into()));
        assert_eq!(variables.expand("$pagesize"), Ok("4096".into()));
        assert_eq!(variables.expand("$jobname"), Ok("$jobname".into()));
        assert_eq!(variables.expand("${M}"), Err(Unexpanded::Unknown("M".into())));
        assert_eq!(variables.expand("${M"), Err(Unexpanded::Unclosed));
        assert_eq!(variables.expand("2*$ncpus"), Err(Unexpanded::Machine("$ncpus")));
    }
}
