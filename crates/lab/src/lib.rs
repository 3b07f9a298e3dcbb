//! The lab: virtual machines with real kernels and disks that this computer does not have.
//!
//! A test creates a [`Machine`] with [`Disk`]s, runs shell commands and `trueio` inside, and checks
//! the output. See `docs/dev/lab.md` for how to add a case.
//!
//! Limit: timing. The processor is emulated; only ratios of a simulated disk's own latency model
//! are meaningful.

pub mod cpio;
mod disk;
mod image;
pub mod kernel;
mod machine;
pub mod packages;
mod programs;
pub mod qmp;
pub mod sim;
mod turn;
pub mod wire;

pub use disk::Disk;
pub use machine::{Machine, Ran, Spec};
pub use programs::Tool;
pub use turn::{end, fresh, lacks, on};
