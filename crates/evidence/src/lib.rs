//! What the kernel and the disks counted while a phase ran, and what that says of its figures.
//!
//! [`Watch`] reads counters before and after a phase; a handful of small files, under a millisecond. As
//! root it also traces single requests in short windows of the phase (`trace/`), and the I/Os that the
//! workers sampled in the same windows are matched with them.
//! Asked to, it records every system call of the workers, too ([`SyscallWatch`]).
//! [`judge`] hands what it saw to the checks, each in a file of its own under `checks/`, and joins
//! their findings to a verdict: contradicted if any check contradicts, else suspect if any doubts,
//! else supported. The level says how far the evidence reaches.
//!
//! Checks are pure functions of [`PhaseFacts`]: no clock, no file, so a record can be judged again,
//! and each lie can be staged in a test from numbers alone.
//!
//! Cannot see: what happens below the disk that Linux shows (a hypervisor's or a drive's cache);
//! without root, forced-unit-access writes as such and who of several processes a disk's request
//! belonged to. Where a check could not see, its outcome is `not_seen` and its sentence says why; that counts neither
//! for nor against. `docs/evidence.md` describes every check.

mod checks;
mod explain;
mod facts;
mod filemap;
mod judge;
mod sample;
mod syscalls;
mod trace;
mod watch;

pub use explain::{describe_failure, explain_failure};
pub use facts::{PhaseFacts, target_of};
pub use filemap::{FileMap, map_file};
pub use judge::{CHECKS, judge};
pub use sample::ContentSample;
pub use syscalls::{SyscallWatch, why_no_syscall_trace};
pub use trace::{FilePlace, Piece, Traced, TracedDisk, why_not_traced};
pub use watch::{Heat, Observation, Watch};
