//! The page cache and durability.

pub mod rows;
