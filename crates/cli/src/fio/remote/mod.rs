//! `trueio fio --server` and `trueio fio --client`: jobs run where the disks are, results come here.
//!
//! ```text
//! client ── job files, variables ──► server (listens; a process for each connection)
//!        ◄─ plan or refusal ────────   session (plans, runs, sends)
//!        ◄─ progress, logs, record ─
//! ```
//!
//! The server plans, because it has the disks: all that is refused elsewhere is refused there, and the text comes to
//! the client. What permits to destroy or to run commands counts only on the server's own command line.
//!
//! Each session is a process of its own: evidence counts what a process did, and one that dies takes nobody along.
//! It ends with its client (the connection closes) and with its server (a signal of the kernel).
//!
//! No one is asked who they are, and nothing is encrypted: by itself a server listens on the loopback address, a
//! socket of the file system is its user's alone. `trueio_fio::wire` defines the messages.

mod client;
mod server;
mod session;
mod stream;

pub(super) use client::command as clients;
pub(super) use server::{LISTEN, listen, serve};
pub(super) use session::{SESSION, command as session};

use std::time::Duration;
use trueio_fio::wire::{Hello, PROTOCOL};

/// How long the other side may take to say who it is.
const HANDSHAKE: Duration = Duration::from_secs(30);

/// Why a job of a client has no pattern of a file: it would be the server's, and come to the client with the record.
const NO_PATTERN_FILE: &str =
    "a client's job names no file of the server as a pattern; say the bytes: `0x…`, `\"text\"`";

/// Who this is.
fn hello() -> Hello {
    Hello {
        protocol: PROTOCOL,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        machine: rustix::system::uname().nodename().to_string_lossy().into_owned(),
    }
}
