//! The state of one command in flight.

use crate::request::{Data, Failure, Kind, Pipe, Request};
use crate::verdict::{Answer, Tries, Verdict};

/// Where a command is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// There is none.
    Free,
    /// It is sent as soon as possible, but not before this time.
    Waiting { not_before_ns: u64 },
    /// The device has it.
    Running,
    /// What follows is decided; its transfers are being cancelled.
    Ending(Verdict),
}

/// Transfers of a slot that the transport holds, one bit each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Pending(u8);

fn bit(pipe: Pipe) -> u8 {
    match pipe {
        Pipe::Command => 1,
        Pipe::Status => 2,
        Pipe::DataIn | Pipe::DataOut => 4,
    }
}

impl Pending {
    pub(super) fn add(&mut self, pipe: Pipe) {
        self.0 |= bit(pipe);
    }

    /// Returns whether it was pending.
    pub(super) fn remove(&mut self, pipe: Pipe) -> bool {
        let was = self.has(pipe);
        self.0 &= !bit(pipe);
        was
    }

    pub(super) fn has(self, pipe: Pipe) -> bool {
        self.0 & bit(pipe) != 0
    }

    pub(super) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// Which command is sent for a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// The request's own.
    Own,
    /// A write with FUA as one without, because the device refuses FUA. A flush follows.
    Plain,
    /// That flush.
    Flush,
}

/// A slot.
#[derive(Debug, Clone, Copy)]
pub(super) struct Slot {
    pub(super) stage: Stage,
    pub(super) request: Request,
    pub(super) user: u64,
    pub(super) pending: Pending,
    /// Bytes of data that were transferred.
    pub(super) transferred: u32,
    pub(super) answer: Option<Answer>,
    pub(super) tries: Tries,
    /// Times that the device was silent about it, and it was the reason of the recovery.
    pub(super) silences: u8,
    /// START STOP UNIT is sent in its place.
    pub(super) is_starting: bool,
    /// Which command is sent.
    pub(super) step: Step,
    /// Its time limit was prolonged once, because the device reported that it works on it.
    pub(super) is_prolonged: bool,
    pub(super) deadline_ns: u64,
    pub(super) begun_ns: u64,
    /// Order of arrival, and the flush's view of acknowledged writes.
    pub(super) number: u64,
    pub(super) acknowledged_before: u64,
}

impl Slot {
    pub(super) fn free() -> Self {
        Self {
            stage: Stage::Free,
            request: Request::flush(0),
            user: 0,
            pending: Pending::default(),
            transferred: 0,
            answer: None,
            tries: Tries::default(),
            silences: 0,
            is_starting: false,
            step: Step::Own,
            is_prolonged: false,
            deadline_ns: u64::MAX,
            begun_ns: 0,
            number: 0,
            acknowledged_before: 0,
        }
    }

    /// Returns the command that is sent now, without START STOP UNIT.
    pub(super) fn present(&self) -> Request {
        match self.step {
            Step::Own => self.request,
            Step::Plain => self.request.without_fua(),
            Step::Flush => Request::flush(self.request.lun),
        }
    }

    /// Returns the length of the data of the command that is sent now.
    pub(super) fn data(&self) -> Data {
        if self.is_starting { Data::None } else { self.present().data }
    }

    /// Returns what follows when the device does not have the command any more and gave no answer. `is_reason`: the command
    /// was the reason of the recovery; others are not charged for it.
    pub(super) fn after_silence(&self, is_reason: bool, is_over: bool) -> Verdict {
        // Commands that ask for facts: another one, or an assumption, takes their place.
        const SILENCES_MAX: u8 = 2;
        let is_question = self.request.kind == Kind::Repeatable && self.silences >= SILENCES_MAX;
        if !self.request.may_repeat() {
            Verdict::Done(Err(Failure::Interrupted))
        } else if is_reason && (is_over || is_question) {
            Verdict::Done(Err(Failure::NoAnswer))
        } else {
            Verdict::Again { delay_ns: 0 }
        }
    }
}
