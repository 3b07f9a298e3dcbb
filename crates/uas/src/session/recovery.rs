//! Recovery of a session: task management, reset, and the end of a device that does not answer.

use super::slot::Stage;
use super::{Reason, Recovery, Session};
use crate::iu::{self, Function, ResponseCode};
use crate::request::{Failure, Pipe};
use crate::verdict::Verdict;

/// The pause after the second reset of the port without an answer; it doubles with each further one.
const PAUSE_NS: u64 = 100_000_000;
/// The longest pause.
const PAUSE_NS_MAX: u64 = 5_000_000_000;

impl Session {
    /// Sends a task management function about a command.
    pub(super) fn manage(&mut self, function: Function, slot: usize, now_ns: u64) {
        let management = self.management();
        if !self.slots[management].pending.is_empty() {
            // The transfers of an earlier function are still pending.
            return self.drain(now_ns);
        }
        match function {
            Function::AbortTask => self.counts.aborts += 1,
            Function::LogicalUnitReset => self.counts.unit_resets += 1,
            Function::QueryTask => {}
        }
        let (number, lun) = (self.slots[slot].number, self.slots[slot].request.lun);
        self.reason = Reason::Command(number);
        self.silent_since_ns.get_or_insert(now_ns);
        self.recovery = Recovery::Managing { function, slot: slot as u16, number, lun };
        self.recovery_deadline_ns = now_ns.saturating_add(self.limits.management_ns);
        self.unit = (function, Self::tag_of(slot), lun);
        self.submit_status(management);
        self.submit(management, Pipe::Command, 0, iu::TASK_MANAGEMENT_BYTES as u32);
    }

    fn recovered(&mut self, now_ns: u64) {
        self.reason = Reason::Outside;
        self.recovery = Recovery::None;
        self.recovery_deadline_ns = u64::MAX;
        self.launch_waiting(now_ns);
    }

    /// Handles the response to a function.
    pub(super) fn managed(&mut self, code: ResponseCode, now_ns: u64) {
        let Recovery::Managing { function, slot, number, lun } = self.recovery else { return };
        let index = usize::from(slot);
        // It may have been answered in the meantime.
        let is_same = self.slots[index].number == number && self.slots[index].stage == Stage::Running;
        let is_done = matches!(code, ResponseCode::Complete | ResponseCode::Succeeded);
        match function {
            Function::QueryTask if code == ResponseCode::Succeeded => {
                let slot = &mut self.slots[index];
                if is_same {
                    slot.is_prolonged = true;
                    slot.deadline_ns = now_ns.saturating_add(self.limits.command_ns);
                }
            }
            Function::QueryTask | Function::AbortTask if is_done => {
                if is_same {
                    self.lost(index, true, now_ns);
                }
            }
            Function::LogicalUnitReset if is_done => {
                self.expects_attention = true;
                for index in 0..self.management() {
                    if self.slots[index].stage == Stage::Running && self.slots[index].request.lun == lun {
                        self.lost(index, self.slots[index].number == number, now_ns);
                    }
                }
            }
            Function::QueryTask if is_same => return self.manage(Function::AbortTask, index, now_ns),
            Function::AbortTask if is_same => return self.manage(Function::LogicalUnitReset, index, now_ns),
            Function::QueryTask | Function::AbortTask => {}
            Function::LogicalUnitReset => return self.drain(now_ns),
        }
        self.recovered(now_ns);
    }

    /// A command that the device does not have any more, without an answer. `is_reason`: it was the reason of the recovery.
    fn lost(&mut self, index: usize, is_reason: bool, now_ns: u64) {
        let give_up_ns = self.limits.give_up_ns();
        let slot = &mut self.slots[index];
        slot.silences = slot.silences.saturating_add(u8::from(is_reason));
        let is_over = now_ns.saturating_sub(slot.begun_ns) >= give_up_ns;
        let verdict = slot.after_silence(is_reason, is_over);
        self.abandon(index, verdict, now_ns);
    }

    /// The present step took too long: the next one.
    pub(super) fn step_is_late(&mut self, now_ns: u64) {
        match self.recovery {
            Recovery::None | Recovery::Resetting => self.recovery_deadline_ns = u64::MAX,
            Recovery::Managing { function, slot, number, .. } => {
                let next = match function {
                    Function::QueryTask => Function::AbortTask,
                    Function::AbortTask => Function::LogicalUnitReset,
                    Function::LogicalUnitReset => return self.drain(now_ns),
                };
                self.recovery = Recovery::Clearing { next, slot, number };
                self.recovery_deadline_ns = now_ns.saturating_add(self.limits.management_ns);
                let management = self.management();
                self.cancel_all_of(management);
                self.cleared(now_ns);
            }
            Recovery::Clearing { .. } => self.drain(now_ns),
            Recovery::Draining => self.die(Failure::NoAnswer),
        }
    }

    /// Goes on with the next function when the transfers of an unanswered one have ended.
    pub(super) fn cleared(&mut self, now_ns: u64) {
        let Recovery::Clearing { next, slot, number } = self.recovery else { return };
        if !self.slots[self.management()].pending.is_empty() {
            return;
        }
        let index = usize::from(slot);
        if self.slots[index].number == number && self.slots[index].stage == Stage::Running {
            self.manage(next, index, now_ns);
        } else {
            self.recovered(now_ns);
        }
    }

    /// Cancels every transfer; the reset follows when all have ended.
    pub(super) fn drain(&mut self, now_ns: u64) {
        if self.dead.is_some() || matches!(self.recovery, Recovery::Draining | Recovery::Resetting) {
            return;
        }
        self.recovery = Recovery::Draining;
        self.recovery_deadline_ns = now_ns.saturating_add(self.limits.management_ns);
        self.silent_since_ns.get_or_insert(now_ns);
        self.cancel_everything();
        if self.pending == 0 {
            self.recovery = Recovery::Resetting;
            self.recovery_deadline_ns = u64::MAX;
            self.actions.push_back(crate::request::Action::Reset);
        }
    }

    fn cancel_everything(&mut self) {
        for index in 0..self.slots.len() {
            self.cancel_all_of(index);
        }
        for buffer in 0..self.status_pool.len() {
            if self.status_pool[buffer] {
                self.cancel(buffer, Pipe::Status);
            }
        }
    }

    /// Reports the end of a reset of the port. `streams`: the number of streams afterwards, or 0 if the interface has none;
    /// `None`: the device is gone.
    pub fn ended_reset(&mut self, streams: Option<u16>, now_ns: u64) {
        assert_eq!(self.recovery, Recovery::Resetting);
        self.counts.port_resets += 1;
        self.resets_in_row = self.resets_in_row.saturating_add(1);
        if self.resets_in_row > 1 {
            let pause_ns =
                PAUSE_NS.checked_shl(u32::from(self.resets_in_row) - 2).unwrap_or(u64::MAX).min(PAUSE_NS_MAX);
            self.paused_until_ns = now_ns.saturating_add(pause_ns);
        }
        let is_over =
            self.silent_since_ns.is_some_and(|since| now_ns.saturating_sub(since) >= self.limits.give_up_ns());
        let reason = std::mem::replace(&mut self.reason, Reason::Outside);
        self.expects_attention = true;
        self.recovery = Recovery::None;
        let needed = if self.has_streams { self.slots.len() as u16 } else { 0 };
        match streams {
            None => self.die(Failure::Gone),
            Some(streams) if streams < needed || is_over => self.die(Failure::NoAnswer),
            Some(_) => {
                for index in 0..self.management() {
                    if self.slots[index].stage == Stage::Running {
                        self.lost(index, reason.is(self.slots[index].number), now_ns);
                    }
                }
            }
        }
        self.launch_waiting(now_ns);
    }

    /// Ends the session: every command fails.
    pub(super) fn die(&mut self, failure: Failure) {
        if self.dead.is_some() {
            return;
        }
        self.dead = Some(failure);
        self.recovery = Recovery::None;
        self.recovery_deadline_ns = u64::MAX;
        self.cancel_everything();
        for index in 0..self.management() {
            if matches!(self.slots[index].stage, Stage::Running | Stage::Ending(_)) {
                self.abandon(index, Verdict::Done(Err(failure)), 0);
            }
        }
        self.launch_waiting(0);
    }
}
