//! What a target is: its filesystem, everything between it and the disks, and the disks.
//!
//! All of it is read from `/proc` and `/sys`, by [`System`], which may be rooted at any folder: the
//! running machine ([`System::live`]) or a recorded copy of another one ([`System::recorded`]). So
//! a device that surprised us becomes a folder under `tests/machines/`, and stays one.
//!
//! Every fact carries its source: the file that says so, or why nobody does. Nothing here writes to
//! a device or to an existing file. In a directory [`target_facts`] makes a file without a name
//! (`O_TMPFILE`) to ask the filesystem about direct I/O, and nothing is written to it.
//!
//! Cannot see: what a hypervisor, a RAID controller or a network server has below the disk that
//! Linux shows; the journal or log device of a filesystem that has one apart; ZFS pools.

mod background;
mod counters;
mod disk;
mod environment;
mod error;
mod heat;
mod holders;
mod identity;
mod mounts;
mod openers;
mod pressure;
mod process;
mod signature;
mod stack;
mod system;
mod target;
pub mod usb;
mod uuid;

pub use background::background_work;
pub use counters::{counters, parse_counters};
pub use disk::disk_facts;
pub use environment::environment;
pub use error::DeviceError;
pub use heat::{Temperature, temperature, throttle_count};
pub use holders::{Holder, HolderKind, Holders, who_holds, who_uses_file};
pub use mounts::{Mount, mounts};
pub use openers::{Opener, Openers, who_has_open};
pub use pressure::{Pressure, pressure};
pub use process::{CpuTicks, ProcessIo, ProcessorTicks, cpu_ticks, process_io, processor_ticks};
pub use signature::{Signature, signatures, signatures_in};
pub use system::System;
pub use target::{target_facts, target_facts_unasked};
