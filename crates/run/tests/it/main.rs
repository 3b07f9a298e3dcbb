//! The integration tests of this crate: one program, one module a file.

mod command;
mod command_record;
#[path = "../../../engine/tests/it/common.rs"]
mod common;
mod exec;
mod source;
mod targets;
mod workers;
