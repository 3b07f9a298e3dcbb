//! The integration tests of this crate: one program, one module a file.

mod access_pattern;
mod definition;
mod file_writers;
mod targets;
mod usb_transport;
mod write_flags;
