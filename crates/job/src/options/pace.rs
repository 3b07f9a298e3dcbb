//! Rates and pauses.

pub mod rows;
