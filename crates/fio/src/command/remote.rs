//! `trueio fio --server` and `trueio fio --client`: jobs run on a server, results go to the client.
//!
//! ```text
//! client ── job files, variables ──► server (listens; a process for each connection)
//!        ◄─ plan or refusal ────────   session (plans, runs, sends)
//!        ◄─ progress, logs, record ─
//! ```
//!
//! The server plans, because it has the disks: it refuses what a local run refuses, and sends the text to the client.
//! Permission to overwrite data or to run commands comes only from the server's own command line.
//!
//! Each session is a process of its own: evidence counts per process, and a session that crashes does not affect the
//! others. It ends with its client (the connection closes) and with its server (a signal of the kernel).
//!
//! The kernel confines a session to the files that the server's command line names ([`sandbox`]). The server opens these when it starts, and
//! sessions inherit the descriptors ([`permit`]).
//!
//! A client over TCP must have the server's token ([`token`]); only the server's user can connect to its socket in the file
//! system. There is no encryption: `ssh -L` provides it. [`crate::wire`] defines the messages.

mod client;
mod ledger;
mod names;
mod permit;
mod process;
mod sandbox;
mod server;
mod session;
mod stream;

pub(super) use client::command as clients;
pub(super) use process::{LISTEN, SESSION};
pub(super) use server::{listen, serve};
pub(super) use session::command as session;

use crate::wire::{Hello, PROTOCOL};
use std::time::Duration;
use trueio_cluster::range::cut;
use trueio_report::{clean_lines, message};

/// Tokens that servers create have this word in their names.
const OWN_TOKENS: &str = "fio";
/// Time limit of the handshake, up to the last byte of the jobs.
const HANDSHAKE: Duration = Duration::from_secs(30);

/// Of it, that of the magic and the token: a stranger does not take a session from a client for longer.
const ADMISSION: Duration = Duration::from_secs(5);
/// Longest silence of a server while it plans or runs.
const SILENCE: Duration = Duration::from_secs(120);
/// Interval at which a server with nothing else to send reports that it runs.
const ALIVE_EVERY: Duration = Duration::from_secs(10);
/// Longest text of a refusal that is sent or printed, in bytes.
const REFUSAL_BYTES_MAX: usize = 32 << 10;

/// Why a client's job cannot take a pattern from a file: the server's file would reach the client in the record.
const NO_PATTERN_FILE: &str = "a client's job cannot name a file as a pattern; give the bytes: `0x…`, `\"text\"`";

/// Most lines of a refusal that a server prints.
const LINES_MAX: usize = 8;

/// Prints a line about a client on a server's standard error, unless there were too many: a client decides how often it connects, and what
/// a refusal repeats.
fn note(ledger: &ledger::Ledger, text: &str) {
    let now_s = rustix::time::clock_gettime(rustix::time::ClockId::Boottime).tv_sec as u64;
    if let Some(left_out) = ledger.may_print(now_s) {
        if left_out > 0 {
            message!("fio: {left_out} messages about clients were left out before this one");
        }
        let text = clean_lines(text.trim_end());
        let lines: Vec<String> = text.lines().take(LINES_MAX).map(cut).collect();
        message!("{}", lines.join("\n"));
    }
}

/// Returns the first message of this side.
fn hello() -> Hello {
    Hello {
        protocol: PROTOCOL,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        machine: rustix::system::uname().nodename().to_string_lossy().into_owned(),
    }
}
