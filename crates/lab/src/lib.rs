//! The lab: virtual machines with real kernels and disks that this computer does not have.
//!
//! A test asks for a [`Machine`] with [`Disk`]s, runs lines of shell and `trueio` inside, and looks
//! at what comes back. See `docs/lab.md` for how to add a case.
//!
//! Cannot do: timing. The processor is emulated; only ratios of a simulated disk's own latency model
//! mean something here.

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
