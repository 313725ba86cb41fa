//! Options of drives that `bench` and `replay` share. Several values make a run for each.

use clap::Args;
use clap::builder::PossibleValuesParser;
use dovetail_ftl::{LogScheme, cache, mapping, victim};
use dovetail_time::parse_bytes;

/// Spare flash and what is done with it.
#[derive(Clone, Debug, Args)]
pub(crate) struct Spare {
    /// Spare flash in percent of the capacity, in place of the profile's.
    #[arg(long, value_name = "PERCENT", value_delimiter = ',', value_parser = percent, help_heading = "Drive")]
    pub(crate) op: Vec<f64>,
    /// Victim policy of cleaning, in place of the profile's.
    #[arg(long, value_name = "POLICY", value_delimiter = ',', value_parser = policies(), help_heading = "Drive")]
    pub(crate) gc: Vec<String>,
}

impl Spare {
    /// The values of a run as its label shows them: those of options that have several.
    pub(crate) fn shown(&self, gc: Option<&str>, op: Option<f64>) -> Vec<String> {
        let gc = gc.filter(|_| self.gc.len() > 1).map(String::from);
        let op = op.filter(|_| self.op.len() > 1).map(|op| format!("op {op} %"));
        gc.into_iter().chain(op).collect()
    }
}

fn policies() -> PossibleValuesParser {
    PossibleValuesParser::new(victim::POLICIES.iter().map(|policy| policy.name))
}

pub(crate) fn schemes() -> PossibleValuesParser {
    let in_memory = mapping::SCHEMES.iter().map(|scheme| scheme.name);
    let log_block = LogScheme::ALL.map(LogScheme::name);
    PossibleValuesParser::new(in_memory.chain(["demand"]).chain(log_block))
}

pub(crate) fn caches() -> PossibleValuesParser {
    PossibleValuesParser::new(cache::POLICIES.iter().map(|policy| policy.name).chain(["none"]))
}

pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    parse_bytes(text).map_err(|error| error.to_string())
}

/// The size of a cache.
pub(crate) fn cache_bytes(text: &str) -> Result<u64, String> {
    match bytes(text)? {
        0 => {
            Err("a cache of 0 bytes caches nothing; --cache none keeps the whole map in memory"
                .into())
        }
        bytes => Ok(bytes),
    }
}

pub(crate) fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim().parse::<f64>().ok();
    number
        .filter(|p| (0.1..=1000.0).contains(p))
        .ok_or_else(|| "give a percentage from 0.1 to 1000".into())
}

/// The values of an option, or the profile's own.
pub(crate) fn choices<T: Clone>(given: &[T]) -> Vec<Option<T>> {
    if given.is_empty() { vec![None] } else { given.iter().cloned().map(Some).collect() }
}
