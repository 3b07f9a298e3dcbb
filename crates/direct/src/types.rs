//! Options, results and errors that the public functions share with the files of `os/`.

mod disk;
mod durability;
mod files;
mod locks;
mod residency;
mod support;
mod writes;

#[cfg(not(target_os = "macos"))]
pub(crate) use disk::tidy_serial;
pub use disk::{DeviceError, DeviceFacts};
pub use durability::{FlushLevel, Flushed};
pub(crate) use files::settle;
pub use files::{DirectFile, Granted, OpenError, OpenOptions, Policy, SyncMode};
pub use locks::{LockError, LockMode};
pub use residency::Residency;
pub use support::{Answer, Probe, ProbeError, Support};
pub use writes::AtomicWrite;
pub(crate) use writes::Special;
