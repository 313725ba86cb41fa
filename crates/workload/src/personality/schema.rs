//! A personality as it stands in its file. Values may be `$parameter`, so they are read as TOML and
//! resolved later.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Value;

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) name: String,
    pub(super) about: String,
    pub(super) source: String,
    #[serde(default)]
    pub(super) parameters: BTreeMap<String, Value>,
    pub(super) runtime: Option<Value>,
    pub(super) operations: Option<Value>,
    pub(super) eventrate: Option<Value>,
    #[serde(default)]
    pub(super) fileset: Vec<Fileset>,
    #[serde(default)]
    pub(super) process: Vec<Process>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Fileset {
    pub(super) name: String,
    #[serde(default)]
    pub(super) path: String,
    pub(super) entries: Option<Value>,
    pub(super) size: Option<Value>,
    pub(super) filesizegamma: Option<Value>,
    pub(super) dirwidth: Option<Value>,
    pub(super) dirgamma: Option<Value>,
    pub(super) prealloc: Option<Value>,
    pub(super) readonly: Option<Value>,
    pub(super) cached: Option<Value>,
    pub(super) reuse: Option<Value>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Process {
    pub(super) name: String,
    pub(super) instances: Option<Value>,
    #[serde(default)]
    pub(super) thread: Vec<Thread>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Thread {
    pub(super) name: String,
    pub(super) instances: Option<Value>,
    #[serde(default)]
    pub(super) flowops: Vec<Flowop>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Flowop {
    pub(super) flowop: String,
    pub(super) name: String,
    pub(super) filesetname: Option<String>,
    pub(super) fd: Option<Value>,
    pub(super) srcfd: Option<Value>,
    pub(super) iosize: Option<Value>,
    pub(super) workingset: Option<Value>,
    pub(super) random: Option<Value>,
    pub(super) directio: Option<Value>,
    pub(super) dsync: Option<Value>,
    pub(super) opennext: Option<Value>,
    pub(super) iters: Option<Value>,
    pub(super) value: Option<Value>,
    pub(super) highwater: Option<Value>,
    pub(super) target: Option<String>,
    pub(super) blocking: Option<Value>,
}
