//! Logs and fio's outputs.

pub mod rows;
