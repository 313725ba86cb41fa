//! The schema of results that were written before.

use serde_json::Value;

/// The name of the schema in the field `schema`.
pub const SCHEMA: &str = "dovetail-results";
/// The version of the schema. It rises when a field changes its meaning or goes; new fields do not
/// raise it.
pub const SCHEMA_VERSION: u32 = 2;
/// Schemas of version 1.
const OLD_SCHEMAS: [&str; 2] = ["dovetail-bench", "dovetail-replay"];

/// JSON that cannot be read as results. The sentence goes on from the name of what has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaError {
    /// It has another schema, or none.
    #[error("has no results of dovetail")]
    Other,
    /// Its version is an earlier one.
    #[error(
        "was written by an earlier version of dovetail (this one reads results of version {ours}): run it again",
        ours = SCHEMA_VERSION
    )]
    Earlier,
    /// Its version is a later one.
    #[error(
        "was written by a later version of dovetail (results of version {0}, this one reads {ours}): use that one",
        ours = SCHEMA_VERSION
    )]
    Later(u64),
}

/// Looks whether JSON has results of the version that is read here.
///
/// # Errors
/// It has not.
pub fn check_schema(value: &Value) -> Result<(), SchemaError> {
    if OLD_SCHEMAS.iter().any(|old| value["schema"] == *old) {
        return Err(SchemaError::Earlier);
    }
    if value["schema"] != SCHEMA {
        return Err(SchemaError::Other);
    }
    match value["version"].as_u64() {
        Some(version) if version == u64::from(SCHEMA_VERSION) => Ok(()),
        Some(version) if version > u64::from(SCHEMA_VERSION) => Err(SchemaError::Later(version)),
        _ => Err(SchemaError::Earlier),
    }
}
