//! The bytes of a job that writes what it fetches (`source`), and a server for studies that download.
//!
//! The engine sees a [`BodySource`] only; connections, HTTP and their errors are in this module.

mod http;
mod server;
#[cfg(test)]
mod tests;

pub use http::source_length;
pub use server::{Body, BodyServer};

use http::HttpBody;
use std::io;
use trueio_engine::BodySource;
use trueio_model::{SourceAddress, SourcePlan};

/// A body could not be fetched.
#[derive(Debug, thiserror::Error)]
#[error("the source `{address}`: {reason}")]
pub struct SourceError {
    address: String,
    /// What went wrong, and what to do where that is not obvious.
    reason: String,
    #[source]
    source: Option<io::Error>,
}

impl SourceError {
    fn new(address: &SourceAddress, reason: impl Into<String>) -> Self {
        Self { address: address.to_string(), reason: reason.into(), source: None }
    }

    fn io(address: &SourceAddress, reason: &str, source: io::Error) -> Self {
        Self { address: address.to_string(), reason: reason.to_owned(), source: Some(source) }
    }
}

/// Opens the body that a job writes. No byte is requested before the first one is taken.
///
/// # Errors
/// A sentence, if no thread can be started.
pub fn open_body(plan: &SourcePlan) -> Result<Box<dyn BodySource>, String> {
    let body = HttpBody::new(&plan.address, plan.length_bytes);
    body.map(|body| Box::new(body) as Box<dyn BodySource>).map_err(|error| format!("starting a thread failed: {error}"))
}
