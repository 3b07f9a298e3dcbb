//! When a job begins and ends.

pub mod rows;
