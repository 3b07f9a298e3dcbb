//! The options of a job, section by section.

pub mod content;
pub mod durability;
pub mod engine;
pub mod limits;
pub mod output;
pub mod pace;
pub mod pattern;
pub mod process;
pub(crate) mod shape;
pub mod target;
