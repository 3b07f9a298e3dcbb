//! What `trueio fio --client` and `trueio fio --server` say to each other.
//!
//! ```text
//! client                                     server
//! magic, Hello ───────────────────────────►
//!              ◄─────────────────────────── magic, Hello      (or Refused)
//! Jobs ───────────────────────────────────►
//!              ◄─────────────────────────── Planned           (or Refused)
//! Start ──────────────────────────────────►
//!              ◄─────────────────────────── Progress, Interim, Log …
//! Stop ───────────────────────────────────►                   (if the user interrupts)
//!              ◄─────────────────────────── Done
//! ```
//!
//! A message is a line of JSON behind its length ([`frame`]). Both sides must be of one version of the
//! program: a record and a job file mean the same on both only then. It is not fio's protocol, and a peer that
//! speaks fio's is recognised and named.
//!
//! Cannot do: connect, listen, authenticate, encrypt. Whoever reaches a server may run jobs on it; that is kept
//! from strangers by where it listens.

pub mod address;
pub mod frame;
pub mod message;

pub use address::{Address, Family, PORT};
pub use frame::{WireError, read_magic, receive, send, write_magic};
pub use message::{Hello, Jobs, LogPart, PROTOCOL, Planned, Progress, ToClient, ToServer};
