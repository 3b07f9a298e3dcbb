//! Opens files and directories by their names, and trusts no object of another user on the way.
//!
//! - [`open_for_output`], [`own_directory`], [`own_file`] and [`changed_by_root_only`] compare owners and modes.
//! - [`read_text`] reads a text that a user names, within bounds; [`read_own`] a file with a default name.
//! - [`Lease`] detects other users of an open file.
//!
//! Only for Linux.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod lease;
mod path;
mod text;

pub use lease::{Lease, LeaseKind, Leased};
pub use path::{
    Opened, PathError, Problem, changed_by_root_only, open_for_output, own_directory, own_file, shared_directory,
};
pub use text::{TextError, TextFile, open_own, read_bytes, read_own, read_text};
