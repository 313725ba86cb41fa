//! The result of a point: a line of JSON.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A finished point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// The point's number.
    pub point: u32,
    /// Single figures of each of its runs, by their name; empty if it failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<Map<String, Value>>,
    /// Reason for the failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}
