//! Processors, priorities and errors.

pub mod rows;
