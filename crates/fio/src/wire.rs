//! The protocol between `trueio fio --client` and `trueio fio --server`.
//!
//! ```text
//! client                                     server
//! magic ──────────────────────────────────►
//! token ──────────────────────────────────►                   (over TCP only)
//!              ◄─────────────────────────── magic, Admitted   (over TCP only; or Refused)
//! Hello ──────────────────────────────────►
//!              ◄─────────────────────────── Hello             (after the magic on a Unix socket; or Refused)
//! Jobs ───────────────────────────────────►
//!              ◄─────────────────────────── Planned           (or Refused)
//! Start ──────────────────────────────────►
//!              ◄─────────────────────────── Progress, Interim, Log, Alive …
//! Stop ───────────────────────────────────►                   (if the user interrupts)
//!              ◄─────────────────────────── Done
//! ```
//!
//! A message is JSON preceded by its length ([`frame`]). Both sides must have the same version of the program, because
//! the meaning of records and job files depends on it. The protocol is not fio's; a peer with fio's protocol is detected
//! and reported.
//!
//! Over TCP, the token is the first thing that a server reads after the magic; without the right one it parses nothing else.
//! A Unix socket needs none: the server reads the peer's user from the kernel.
//!
//! Limits: no encryption. The token and everything else can be read on the way, and a program that listens in the server's
//! place learns the token; `ssh -L` prevents both.

pub mod address;
pub mod frame;
pub mod message;

pub use address::{Address, Family, PORT};
pub use frame::{
    FrameError, WireError, read_magic, receive, receive_bytes, receive_within, send, send_bytes, write_magic,
};
pub use message::{Hello, Jobs, LogPart, PROTOCOL, Planned, Progress, ToClient, ToServer};
