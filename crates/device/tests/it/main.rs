//! The integration tests of this crate: one program, one module a file.

mod file_users;
mod held;
mod machines;
mod staged;
mod tree;
mod usb;
mod usb_rules;
