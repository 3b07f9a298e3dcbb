//! One suite for all engines: the same job has the same result with each of them.
//!
//! Every case runs on every engine that works here and for which it is meaningful; if one is left
//! out, the case states why. A bug found in one engine becomes a case for all.
//!
//! Exceptions: `mmap` reports no short transfer, no EOF and no ENOSPC (the process
//! would get SIGBUS, so it refuses a file shorter than its region), has no direct I/O, and fails on a
//! read-only file when it maps it, not when it writes. `null` and `simulated` use no file: they are tested
//! only where counting matters.

mod amounts;
mod content;
mod errors;
mod samples;
mod sync_and_trim;
mod ways;
