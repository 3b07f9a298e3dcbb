//! The I/O engine and its queue.

pub mod rows;
