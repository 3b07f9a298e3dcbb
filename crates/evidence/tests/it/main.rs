//! The integration tests of this crate: one program, one module a file.

mod checks;
mod lies;
mod page;
mod support;
mod tool;
mod trace;
mod watch;
