//! Drives and stacks that come with the package, and those of a user.

use dovetail_ftl::{Overrides, Profile, builtin_profiles};
use dovetail_lab::bench::Stack;
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::errors::{failed, of_profile};

/// The drives, as a JSON list.
#[pyfunction]
pub(crate) fn drives() -> PyResult<String> {
    let all = builtin_profiles().map(drive).collect::<PyResult<Vec<_>>>()?;
    Ok(Value::Array(all).to_string())
}

fn drive(name: &str) -> PyResult<Value> {
    let profile = Profile::load(name).map_err(failed)?;
    let config = profile.resolve(&Overrides::default()).map_err(failed)?;
    let geometry = config.nand.geometry;
    Ok(json!({
        "name": profile.name,
        "about": profile.about,
        "capacity_bytes": config.user_blocks * 4096,
        "page_bytes": config.chip_page_bytes(),
        "channels": geometry.channels,
        "dies_per_channel": geometry.dies_per_channel,
        "map": config.map_name(),
    }))
}

/// The figures of a profile: key, value, source.
#[pyfunction]
pub(crate) fn drive_figures(name: &str) -> PyResult<Vec<(String, String, Option<String>)>> {
    let profile = Profile::load(name).map_err(of_profile)?;
    let figure = |(key, value): (String, String)| {
        let source = profile.sources.get(&key).cloned();
        (key, value, source)
    };
    Ok(profile.figures().into_iter().map(figure).collect())
}

/// The stacks, as a JSON list.
#[pyfunction]
pub(crate) fn stacks() -> PyResult<String> {
    let stack = |name| Stack::load(name).map_err(failed);
    let all = Stack::built_in().map(stack).collect::<PyResult<Vec<_>>>()?;
    serde_json::to_string(&all).map_err(failed)
}

/// An object of JSON as TOML, for a stack, a drive or a sweep that is a dict.
#[pyfunction]
pub(crate) fn toml(json: &str) -> PyResult<String> {
    let value: Value = serde_json::from_str(json).map_err(failed)?;
    ::toml::to_string(&without_nulls(value)).map_err(failed)
}

/// TOML has no null: a key that is not there says the same.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => fields
            .into_iter()
            .filter(|(_, value)| !value.is_null())
            .map(|(name, value)| (name, without_nulls(value)))
            .collect(),
        Value::Array(values) => values.into_iter().map(without_nulls).collect(),
        value => value,
    }
}
