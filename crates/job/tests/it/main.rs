//! The integration tests of this crate: one program, one module a file.

mod never_panics;
mod plan;
mod safety_page;
mod schema;
mod zones;
