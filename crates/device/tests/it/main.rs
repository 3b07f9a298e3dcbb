//! The integration tests of this crate: one program, one module a file.

mod held;
mod machines;
mod staged;
mod tree;
mod usb;
mod usb_rules;
//! Integration tests of the crate.

mod file_users;
