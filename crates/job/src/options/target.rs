//! Files and devices.

pub mod rows;
