//! The facts of a target: its filesystem, the layers between it and the disks, and the disks.
//!
//! All facts are read from `/proc` and `/sys` by [`System`]: of the running machine ([`System::live`]) or of a recorded
//! copy of another one ([`System::recorded`]). So a device with unexpected facts becomes a test directory under
//! `tests/machines/`.
//!
//! Every fact has its source: the file that contains it, or the reason why it is unknown. Nothing here writes to
//! a device or to an existing file. In a directory, [`target_facts`] creates an unnamed file
//! (`O_TMPFILE`) to probe the filesystem for direct I/O, and nothing is written to it.
//!
//! Cannot see: the storage of a hypervisor, a RAID controller or a network server below the disk that Linux shows; a
//! separate journal or log device of a filesystem; ZFS pools.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod background;
mod control_group;
mod counters;
mod device_link;
mod disk;
mod environment;
mod error;
mod file_users;
mod heat;
mod holders;
mod identity;
mod io_limits;
mod link;
mod loops;
mod mount_tables;
mod mounts;
mod numbers;
mod openers;
mod partitions;
mod pressure;
mod process;
mod same_file;
mod signature;
mod stack;
mod system;
mod target;
mod target_identity;
pub mod usb;
mod uuid;

pub use background::background_work;
pub use control_group::{IoHierarchy, cpu_quota, io_hierarchy, memory_limit_bytes, thread_limit, throttled_ns};
pub use counters::{counters, parse_counters};
pub use device_link::device_of_link;
pub use disk::disk_facts;
pub use environment::environment;
pub use error::DeviceError;
pub use file_users::who_uses_file;
pub use heat::{Temperature, temperature, throttle_count};
pub use holders::{Holder, HolderKind, Holders, who_holds};
pub use io_limits::{GroupIo, RateLimits, group_io};
pub use loops::LoopStatus;
pub use mounts::{Mount, mounts};
pub use openers::{Opener, Openers, who_has_open, who_writes};
pub use pressure::{Pressure, pressure};
pub use process::{
    CpuTicks, ProcessIo, ProcessorTicks, cpu_ticks, kernel_thread_ticks, kernel_worker_wait_ns, process_io,
    processor_ticks, tracer,
};
pub use same_file::FileId;
pub use signature::{Signature, signatures, signatures_in, signatures_of, signatures_through};
pub use system::System;
pub use target::{target_facts, target_facts_unasked};
pub use target_identity::{
    Links, identity_of, identity_of_name, open_name, open_target, path_of_descriptor, signatures_in_words,
    target_identity,
};
