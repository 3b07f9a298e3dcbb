//! The integration tests of this crate: one program, one module a file.

mod device;
mod faults;
mod never_hangs;
mod queue;
mod replay;
mod serve;
#[path = "../../../../fuzz/shared/uas_chaos.rs"]
mod uas_chaos;
