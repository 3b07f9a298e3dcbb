//! The integration tests of this crate: one program, one module a file.

mod answer;
mod any_record;
mod comparison;
mod fixture;
mod limits;
mod outputs;
mod page;
mod questions;
mod same;
mod screen;
mod standing;
mod study;
mod verdicts;
