//! Which operations a job performs, where and of what size.

pub mod rows;
