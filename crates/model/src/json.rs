//! Documents as JSON.
//!
//! Reading and writing a document is compiled here, once: a generic function such as [`serde_json::from_str`] is compiled in
//! each crate that calls it for a type, and reading a record was in the program four times (2 MB). Documents that other crates read
//! only as a part of their own (a phase, a plan) are here for their code, which those crates then share.

use crate::{
    CapacityRecord, Comparison, JobSpec, PhaseRecord, Plan, PowercutRecord, RunRecord, StudyRecord, TargetFacts, Trend,
};

/// A document that is read from JSON and written as JSON.
pub trait Document: Sized {
    /// Reads a document. Its version is not converted.
    ///
    /// # Errors
    /// The text is not JSON, or not this document.
    fn from_json(text: &str) -> serde_json::Result<Self>;

    /// Formats the document as JSON on one line.
    ///
    /// # Errors
    /// None of a document of this crate: keys of maps are strings, and numbers are finite.
    fn to_json(&self) -> serde_json::Result<String>;
}

macro_rules! documents {
    ($($document:ident),*) => {
        $(impl Document for $document {
            fn from_json(text: &str) -> serde_json::Result<Self> {
                serde_json::from_str(text)
            }

            fn to_json(&self) -> serde_json::Result<String> {
                serde_json::to_string(self)
            }
        })*
    };
}

documents!(
    CapacityRecord,
    Comparison,
    JobSpec,
    PhaseRecord,
    Plan,
    PowercutRecord,
    RunRecord,
    StudyRecord,
    TargetFacts,
    Trend
);
