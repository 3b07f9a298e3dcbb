//! A fact about a machine, with the one who says so.

use serde::{Deserialize, Serialize};

/// Something read from the machine, and its witness.
///
/// `value: None` means *not known*, and `source` then says why (`"/sys/block/vda/queue/fua does not
/// exist"`). A fact that is known to be absent is a value of its own type, never `None`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact<T> {
    /// What was found; `None` if it could not be learnt.
    pub value: Option<T>,
    /// Who says so: a file, a system call, or the reason why nobody does.
    pub source: String,
}

impl<T> Fact<T> {
    /// A fact that `source` states.
    pub fn known(value: T, source: impl Into<String>) -> Self {
        Self { value: Some(value), source: source.into() }
    }

    /// A fact of a record that was written before anybody asked for it.
    pub fn not_recorded() -> Self {
        Self::unknown("not recorded by the version that wrote this")
    }

    /// Converts the value and keeps the source.
    pub fn map<U>(self, convert: impl FnOnce(T) -> U) -> Fact<U> {
        Fact { value: self.value.map(convert), source: self.source }
    }

    /// A fact that could not be learnt, and why.
    pub fn unknown(reason: impl Into<String>) -> Self {
        Self { value: None, source: reason.into() }
    }
}
