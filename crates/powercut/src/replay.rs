//! Every legal crash image of a log of writes: the pure part of `trueio powercut replay`.
//!
//! A disk with a volatile cache stores a write by the next flush, or at once if it has FUA. Until then any subset of the writes
//! since the last flush may be stored, each whole or in part by sectors. [`WriteLog`] reads a log, [`WriteLog::points`] lists the
//! moments at which a crash differs, [`choices`] selects what is lost at one of them, [`shrink`] makes a failing loss small.

mod choice;
mod log;
mod shrink;

pub use choice::{Loss, LostPart, choices, draw};
pub use log::{ENTRIES_MAX, Entry, LogError, LogWriter, Point, PointKind, WriteLog};
pub use shrink::shrink;
