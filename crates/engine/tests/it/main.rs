//! The integration tests of this crate: one program, one module a file.

mod common;
mod conformance;
mod control;
#[path = "../../../uas/tests/it/device.rs"]
mod device;
mod lies;
mod locks;
mod options;
mod replay;
mod stalls;
mod uas;
mod verify;
mod virtual_time;
mod zones;
