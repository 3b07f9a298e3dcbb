//! Compares the figures of a phase with what the kernel and the disks counted during it.
//!
//! [`Watch`] reads counters before and after a phase: a few small files, in less than a millisecond. As root
//! it also traces single requests in short windows of the phase (`trace/`) and matches them with the I/Os
//! that the workers sampled in the same windows. [`SyscallWatch`] records every system call of the workers.
//! [`judge`] passes the observation to the checks, one file each under `checks/`, and combines their findings
//! into a verdict: contradicted if any check contradicts, else suspect if any check doubts, else supported.
//! The level states which kinds of evidence were used.
//!
//! Checks are pure functions of [`PhaseFacts`] without a clock or a file, so a record can be judged again,
//! and a test can stage each false result from numbers alone.
//!
//! Cannot see: what happens below the disk that Linux shows (a hypervisor's or a drive's cache); without
//! root, forced-unit-access writes and which process a disk's request belongs to. The outcome of a check that
//! could not observe anything is `not_seen`, with the reason in its sentence; it does not affect the verdict.
//! `docs/checks.md` describes every check.

#![cfg_attr(not(test), deny(clippy::print_stdout, clippy::print_stderr))]

mod checks;
mod clocks;
mod explain;
mod facts;
mod filemap;
mod judge;
mod limit_course;
mod observation;
mod peers;
mod room;
mod sample;
mod syscalls;
mod timeline;
mod trace;
mod watch;

pub use explain::{describe_failure, explain_failure};
pub use facts::{PhaseFacts, target_of};
pub use filemap::{FileMap, map_file};
pub use judge::{CHECKS, judge};
pub use limit_course::LimitSpan;
pub use observation::{Heat, LimitedIo, Observation, ProcessorUse, Stop, UsbTransfers};
pub use peers::{Process, set_peers};
pub use sample::ContentSample;
pub use syscalls::{SyscallWatch, TracedJob, why_no_syscall_trace};
pub use timeline::{Course, Direction, Timeline};
pub use trace::{
    AddressSpace, ChunkMap, DiskUser, DiskUsers, FileExtents, Layers, LoopFile, Loops, MappedExtent, PassingDevice,
    PhaseTrace, TracedDisk, why_not_traced,
};
pub use watch::Watch;
