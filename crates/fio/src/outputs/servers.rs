//! The documents of several servers, for a client's results.

use super::FioOutput;
use super::entry::{Document, Entry};

/// A server and its document.
pub(super) struct Server<'a> {
    pub(super) hostname: &'a str,
    pub(super) port: u16,
    /// `None`: the server sent no record.
    pub(super) document: Option<Document<'a>>,
    /// Why there is no record, or what failed.
    pub(super) problem: Option<&'a str>,
}

/// All servers of a client.
pub(super) struct Clients<'s, 'a> {
    pub(super) options: &'a FioOutput,
    pub(super) servers: &'s [Server<'a>],
    /// The sum of all jobs; `None` if there is only one.
    pub(super) sum: Option<&'s Entry<'a>>,
}
