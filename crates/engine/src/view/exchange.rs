//! What the loop and its stages exchange.

use crate::request::Step;

/// Whether the next step may be taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Now.
    Ready,
    /// When nothing is in flight.
    Drain,
    /// Not before this tick.
    Until(u64),
    /// When something outside of the worker has happened; the stage waits for it.
    Outside,
    /// The stage did something that took time: the loop handles events and the request to stop, and tries again.
    Again,
    /// Never: the step is passed over.
    Skip,
}

/// An I/O that completed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Done {
    /// Its slot, which becomes free afterwards.
    pub(crate) slot: u32,
    /// Bytes transferred, or the negative error number.
    pub(crate) result: i64,
    /// It moved all bytes of the request.
    pub(crate) is_whole: bool,
    /// When it was reaped.
    pub(crate) now: u64,
}

impl Done {
    /// Returns the bytes that it moved.
    pub(crate) fn moved(&self) -> u64 {
        self.result.max(0) as u64
    }
}

/// A sync call that returned.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SyncDone {
    pub(crate) step: Step,
    /// Ticks before and after the call.
    pub(crate) before: u64,
    pub(crate) now: u64,
    /// The error number, or 0.
    pub(crate) errno: i32,
    /// What was written before the call is durable, if the call succeeded.
    pub(crate) is_durable: bool,
}
