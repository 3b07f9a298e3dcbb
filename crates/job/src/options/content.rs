//! What is written, and its verification.

pub mod rows;
