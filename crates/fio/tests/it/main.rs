//! The integration tests of this crate: one program, one module a file.

mod any_record;
mod cases;
mod comparison;
#[path = "../../../report/tests/it/fixture.rs"]
mod fixture;
mod frames;
mod history;
mod language;
mod never_panics;
mod outputs;
mod regions;
mod remote;
mod results;
