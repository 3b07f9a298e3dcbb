//! A fact about a machine, with its source.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A value read from the machine, and its source.
///
/// `value: None` means *unknown*, and `source` then states why (`"/sys/block/vda/queue/fua does not
/// exist"`). A fact that is known to be absent is a value of its own type, never `None`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Fact<T> {
    /// The value; `None` if it is unknown.
    pub value: Option<T>,
    /// The source: a file, a system call, or the reason why the value is unknown.
    pub source: String,
}

impl<T> Fact<T> {
    /// A fact that `source` states.
    pub fn known(value: T, source: impl Into<String>) -> Self {
        Self { value: Some(value), source: source.into() }
    }

    /// A fact that is missing in records of earlier versions.
    pub fn not_recorded() -> Self {
        Self::unknown("not recorded by the version that wrote this")
    }

    /// Converts the value and keeps the source.
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> Fact<U> {
        Fact { value: self.value.map(convert), source: self.source }
    }

    /// An unknown fact, and why it is unknown.
    pub fn unknown(reason: impl Into<String>) -> Self {
        Self { value: None, source: reason.into() }
    }
}
