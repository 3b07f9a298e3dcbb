//! The integration tests of this crate: one program, one module a file.

mod cache;
mod cuts;
mod disks;
mod replay;
mod undo;
