//! USB Attached SCSI (UAS) in user space: for systems whose kernel has no `uas` driver.
//!
//! | module | what it is |
//! |---|---|
//! | [`iu`] | information units, as bytes |
//! | [`sense`] | sense data, in numbers and sentences |
//! | [`scsi`] | commands of a disk, and the data that they return |
//! | [`session`] | the protocol as a state machine: tags, timeouts, task management, retries. No I/O and no clock |
//! | [`request`] | a command as the session takes it, and how it ends |
//! | [`host`] | runs a session on a [`host::Transport`]: one command, or many in flight |
//! | [`ata`] | ATA commands through a bridge: identity and SMART data |
//! | [`disk`] | the facts of a disk |
//! | `queue` | a queue of I/Os that several threads share, for I/O engines |
//! | `nbd` | the kernel's NBD client of Linux |
//! | `ublk` | the kernel's ublk driver of Linux |
//! | `block` | a served block device, and the process that serves it |
//! | [`serve`] | answers the requests of the kernel's NBD client or ublk driver with commands of a disk |
//! | `usbfs` | the transport of Linux: `/dev/bus/usb`, with streams |
//!
//! The protocol has no I/O, so every state of it is a unit test, and a recorded exchange can be replayed.
//!
//! Limits: one initiator; logical units 0 to 255; no task attribute except SIMPLE; bulk pipes only.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

pub mod ata;
#[cfg(target_os = "linux")]
pub mod block;
pub mod disk;
pub mod host;
pub mod iu;
#[cfg(target_os = "linux")]
pub mod nbd;
#[cfg(target_os = "linux")]
pub mod queue;
pub mod request;
pub mod scsi;
pub mod sense;
pub mod serve;
pub mod session;
#[cfg(target_os = "linux")]
pub mod ublk;
#[cfg(target_os = "linux")]
pub mod usbfs;
mod verdict;
