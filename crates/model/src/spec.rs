//! What was asked: options by name, each with its origin, before any of it is resolved.

use crate::Origin;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One option's value as it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpecValue {
    /// The value in the option table's canonical text (`"4k"`, `"randread"`, `"true"`). The table's
    /// row has already accepted it.
    pub text: String,
    /// Where it was written.
    pub origin: Origin,
}

/// One job as it was asked for: every option is optional, each carries its origin.
///
/// Keys are the names of the option table in `trueio-job`; that table is the one list of what may
/// stand here, so this document has no fields of its own to fall out of step with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobSpec {
    /// The job's name: the key of its `[job.NAME]` table.
    pub name: String,
    /// Option name to value.
    pub options: BTreeMap<String, SpecValue>,
}

impl JobSpec {
    /// An empty specification: every option at its default.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), options: BTreeMap::new() }
    }

    /// Sets an option, replacing an earlier word on it.
    pub fn set(&mut self, option: &str, text: impl Into<String>, origin: Origin) {
        self.options.insert(option.to_owned(), SpecValue { text: text.into(), origin });
    }
}
