//! The integration tests of this crate: one program, one module a file.

mod fake;
#[path = "../../../device/tests/it/staged.rs"]
mod staged;
mod switch;
#[path = "../../../device/tests/it/tree.rs"]
mod tree;
