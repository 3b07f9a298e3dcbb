//! The protocol as a state machine: commands in, transfers out; ended transfers in, ended commands out.
//!
//! A session has a slot for each command in flight; slot `n` uses tag and stream `n + 1`. The last tag is kept for task
//! management. A slot is free again only when the transport has ended all its transfers, so no buffer is reused while the
//! controller may still write to it.
//!
//! A command whose time is over is recovered in steps, each with a time limit: QUERY TASK (the device may still work on it:
//! prolonged once), ABORT TASK, LOGICAL UNIT RESET, reset of the port. A protocol error, a stalled pipe and an error of the
//! bus lead to the reset of the port at once. Commands that the device lost are sent again if they may be repeated. A command
//! fails if it was the reason of a recovery and [`Limits::give_up_ns`] has passed since it began; commands that were in flight
//! next to it are not charged. A device that answers nothing for that time is given up.
//!
//! A write with FUA that the device refuses is sent without FUA, and a flush follows before it ends; all later ones are, too.
//!
//! A flush fails if the device reported that an acknowledged write was lost: by a deferred error, or by a power-on that this
//! session did not cause, or by a suspend of the machine, in which a disk may lose power.
//!
//! Limits: without streams the device decides whose data is next, so the data pipes are used by one command at a time.
//!
//! Source: T10 UAS revision 4, sections 6 and 7; the order of transfers is that of Linux `drivers/usb/storage/uas.c`.

mod recovery;
mod slot;

use crate::iu::{self, Function, ResponseCode, Unit};
use crate::request::{Action, Data, Failure, Kind, Outcome, Pipe, Request, Transfer, TransferError};
use crate::scsi;
use crate::sense::{Sense, key};
use crate::verdict::{Answer, Verdict, judge, refused, status};
use slot::{Pending, Slot, Stage, Step};
use std::collections::VecDeque;
use std::time::Duration;

/// Time limits, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Of a command; a flush has twice as long, as in Linux (`SD_FLUSH_TIMEOUT`).
    pub command_ns: u64,
    /// Of a task management function, and of cancelled transfers.
    pub management_ns: u64,
    /// Of a device that is busy or becoming ready.
    pub ready_ns: u64,
}

impl Default for Limits {
    /// 30 s as Linux gives a disk, 5 s as `uas` gave a task management function.
    fn default() -> Self {
        Self { command_ns: 30_000_000_000, management_ns: 5_000_000_000, ready_ns: 30_000_000_000 }
    }
}

impl Limits {
    /// The time after which recovery is given up: that of two rounds, each with a command and three functions; 90 s by default.
    pub fn give_up_ns(&self) -> u64 {
        self.management_ns.saturating_mul(3).saturating_add(self.command_ns).saturating_mul(2)
    }

    /// The default limits with another one of a command; no step of recovery takes longer than it.
    pub fn of_commands(limit: Duration) -> Self {
        let default = Self::default();
        let command_ns = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        Self { command_ns, management_ns: default.management_ns.min(command_ns), ..default }
    }
}

/// What was seen, for reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Commands that ended, with any result.
    pub ended: u64,
    /// Commands that were sent again.
    pub repeated: u64,
    /// Commands whose time was over.
    pub timeouts: u64,
    /// ABORT TASK functions.
    pub aborts: u64,
    /// LOGICAL UNIT RESET functions.
    pub unit_resets: u64,
    /// Resets of the port.
    pub port_resets: u64,
    /// Units that broke the protocol.
    pub violations: u64,
    /// Answers TASK SET FULL.
    pub queue_full: u64,
    /// UNIT ATTENTION conditions.
    pub attentions: u64,
    /// Deferred errors.
    pub deferred: u64,
}

/// Which step of recovery is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Recovery {
    None,
    /// A function is under way; `number` is that of the command in `slot`.
    Managing {
        function: Function,
        slot: u16,
        number: u64,
        lun: u8,
    },
    /// The transfers of an unanswered function are being cancelled; this one is next.
    Clearing {
        next: Function,
        slot: u16,
        number: u64,
    },
    /// All transfers are being cancelled before the reset.
    Draining,
    /// The transport resets the port.
    Resetting,
}

/// Why the recovery under way was begun.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reason {
    /// Not because of a command: a suspend, or the caller.
    Outside,
    /// A command with this number.
    Command(u64),
    /// One of those in flight: without streams a broken unit belongs to none.
    Unknown,
}

impl Reason {
    fn is(self, number: u64) -> bool {
        self == Self::Unknown || self == Self::Command(number)
    }
}

/// A session with a device.
#[derive(Debug)]
pub struct Session {
    /// The last slot is that of task management.
    slots: Vec<Slot>,
    /// Without streams: which status buffers are pending.
    status_pool: Vec<bool>,
    has_streams: bool,
    limits: Limits,
    actions: VecDeque<Action>,
    outcomes: VecDeque<Outcome>,
    recovery: Recovery,
    recovery_deadline_ns: u64,
    unit: (Function, u16, u8),
    /// The most commands in flight; less than the depth after TASK SET FULL.
    window: u16,
    good_in_window: u16,
    running: u16,
    waiting: u16,
    /// Transfers that the transport holds.
    pending: u32,
    next_number: u64,
    /// Resets of the port since the last answer.
    resets_in_row: u8,
    /// Start of the first recovery since the last answer.
    silent_since_ns: Option<u64>,
    /// No command is sent before this time.
    paused_until_ns: u64,
    /// The reason of the recovery under way.
    reason: Reason,
    /// The device refuses writes with FUA.
    refuses_fua: bool,
    is_removable: bool,
    dead: Option<Failure>,
    /// Writes acknowledged without FUA, and how many of them the last good flush covered.
    acknowledged: u64,
    flushed: u64,
    doubt: Option<Failure>,
    expects_attention: bool,
    counts: Counts,
}

/// Why a command was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("all slots are taken")]
pub struct Full;

impl Session {
    /// A session with `depth` slots. `has_streams`: the data and status pipes have streams 1 to `depth + 1`.
    pub fn new(depth: u16, has_streams: bool, limits: Limits) -> Self {
        assert!(depth > 0);
        let slots = usize::from(depth) + 1;
        Self {
            slots: vec![Slot::free(); slots],
            status_pool: vec![false; slots],
            has_streams,
            limits,
            // A command has three transfers, each of which may be submitted and cancelled.
            actions: VecDeque::with_capacity(slots * 6),
            outcomes: VecDeque::with_capacity(slots),
            recovery: Recovery::None,
            recovery_deadline_ns: u64::MAX,
            unit: (Function::QueryTask, 0, 0),
            window: depth,
            good_in_window: 0,
            running: 0,
            waiting: 0,
            pending: 0,
            next_number: 0,
            resets_in_row: 0,
            silent_since_ns: None,
            paused_until_ns: 0,
            reason: Reason::Outside,
            refuses_fua: false,
            is_removable: false,
            dead: None,
            acknowledged: 0,
            flushed: 0,
            doubt: None,
            // The first command of a session may report that the device was powered on.
            expects_attention: true,
            counts: Counts::default(),
        }
    }

    /// The number of commands that can be in flight.
    pub fn depth(&self) -> u16 {
        self.management() as u16
    }

    /// What was seen so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Why the session has ended, if it has.
    pub fn ended(&self) -> Option<Failure> {
        self.dead
    }

    /// True if the device refused a write with FUA and then did one without it.
    pub fn refuses_fua(&self) -> bool {
        self.refuses_fua
    }

    /// Sets whether the medium can be removed: after its change, no command is sent again. Otherwise it cannot.
    pub fn set_removable(&mut self, is_removable: bool) {
        self.is_removable = is_removable;
    }

    /// True if no command is in a slot.
    pub fn is_idle(&self) -> bool {
        self.slots[..self.management()].iter().all(|slot| slot.stage == Stage::Free)
    }

    /// True while a step of recovery is under way.
    pub fn is_recovering(&self) -> bool {
        self.recovery != Recovery::None
    }

    /// True if the transport holds no transfer.
    pub fn is_quiet(&self) -> bool {
        self.pending == 0
    }

    fn management(&self) -> usize {
        self.slots.len() - 1
    }

    fn tag_of(slot: usize) -> u16 {
        slot as u16 + 1
    }

    /// Ends the session because the transport cannot be used any more.
    pub fn fail(&mut self, failure: Failure) {
        self.die(failure);
    }

    /// Reports that another session went before this one and ended without a flush: writes that it acknowledged may be in the
    /// disk's cache. A report of a power-on is a report of their loss then. Before the first command.
    pub fn follow(&mut self) {
        self.acknowledged += 1;
        self.expects_attention = false;
    }

    /// Resets the port, so that the device forgets the commands of another session. No command may be in flight.
    pub fn reset(&mut self, now_ns: u64) {
        assert!(self.is_idle(), "commands are in flight");
        self.drain(now_ns);
    }

    /// Reports that the machine was suspended: the disk may have lost power, and with it what its cache held. Its report of
    /// that may look like the one of a reset by this session. The port is reset, because the interface may have lost its setting.
    pub fn suspended(&mut self, now_ns: u64) {
        if self.acknowledged > self.flushed {
            self.doubt = Some(Failure::CacheLost);
        }
        self.drain(now_ns);
    }

    /// Takes a command and returns its slot. `user` is returned with its outcome.
    ///
    /// # Errors
    /// [`Full`]: every slot has a command.
    pub fn start(&mut self, request: Request, user: u64, now_ns: u64) -> Result<u16, Full> {
        let management = self.management();
        let slot = self.slots[..management].iter().position(|slot| slot.stage == Stage::Free).ok_or(Full)?;
        self.next_number += 1;
        let number = self.next_number;
        let is_plain = self.refuses_fua && request.kind == (Kind::Write { is_fua: true });
        self.slots[slot] = Slot {
            stage: Stage::Waiting { not_before_ns: 0 },
            request,
            user,
            number,
            begun_ns: now_ns,
            step: if is_plain { Step::Plain } else { Step::Own },
            ..Slot::free()
        };
        self.waiting += 1;
        self.launch_waiting(now_ns);
        Ok(slot as u16)
    }

    /// The next thing that the transport has to do.
    pub fn next_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// The next command that has ended.
    pub fn next_outcome(&mut self) -> Option<Outcome> {
        self.outcomes.pop_front()
    }

    /// Writes the unit of a slot's transfer on the command pipe, and returns its length in bytes.
    pub fn outgoing(&self, slot: u16, buffer: &mut [u8; iu::COMMAND_BYTES]) -> usize {
        let index = usize::from(slot);
        if index == self.management() {
            let (function, task, lun) = self.unit;
            let unit = iu::task_management(Self::tag_of(index), function, task, lun);
            buffer[..unit.len()].copy_from_slice(&unit);
            return unit.len();
        }
        let slot = &self.slots[index];
        let cdb = if slot.is_starting { scsi::start_unit() } else { slot.present().cdb };
        *buffer = iu::command(Self::tag_of(index), slot.request.lun, &cdb);
        buffer.len()
    }

    /// The time of the next [`Self::tick`] that has an effect; `u64::MAX`: none.
    pub fn next_deadline_ns(&self) -> u64 {
        let of = |slot: &Slot| match slot.stage {
            Stage::Running if self.recovery == Recovery::None => slot.deadline_ns,
            Stage::Waiting { not_before_ns } if self.recovery == Recovery::None => {
                match not_before_ns.max(self.paused_until_ns) {
                    // It waits for another command to end.
                    0 => u64::MAX,
                    until_ns => until_ns,
                }
            }
            _ => u64::MAX,
        };
        let slots = self.slots[..self.management()].iter().map(of).min().unwrap_or(u64::MAX);
        slots.min(self.recovery_deadline_ns)
    }

    /// Reports the time.
    pub fn tick(&mut self, now_ns: u64) {
        if self.recovery_deadline_ns <= now_ns {
            self.step_is_late(now_ns);
        }
        if self.recovery == Recovery::None && self.dead.is_none() {
            let management = self.management();
            let is_late = |slot: &Slot| slot.stage == Stage::Running && slot.deadline_ns <= now_ns;
            if let Some(slot) = self.slots[..management].iter().position(is_late) {
                self.counts.timeouts += 1;
                let function = if self.slots[slot].is_prolonged { Function::AbortTask } else { Function::QueryTask };
                self.manage(function, slot, now_ns);
            }
        }
        self.launch_waiting(now_ns);
    }

    /// Sends waiting commands, the oldest first, as far as the window allows.
    fn launch_waiting(&mut self, now_ns: u64) {
        if let Some(failure) = self.dead {
            for slot in 0..self.management() {
                if matches!(self.slots[slot].stage, Stage::Waiting { .. }) {
                    self.waiting -= 1;
                    self.end(slot, Err(failure));
                }
            }
        }
        if now_ns < self.paused_until_ns {
            return;
        }
        self.paused_until_ns = 0;
        while self.waiting > 0 && self.running < self.window && self.recovery == Recovery::None {
            let management = self.management();
            let is_due =
                |slot: &&Slot| matches!(slot.stage, Stage::Waiting { not_before_ns } if not_before_ns <= now_ns);
            let due = self.slots[..management].iter().enumerate().filter(|(_, slot)| is_due(slot));
            let Some((slot, _)) = due.min_by_key(|(_, slot)| slot.number) else { return };
            self.launch(slot, now_ns);
        }
    }

    fn launch(&mut self, index: usize, now_ns: u64) {
        let acknowledged = self.acknowledged;
        let slot = &mut self.slots[index];
        slot.stage = Stage::Running;
        slot.transferred = 0;
        slot.answer = None;
        let times = if slot.present().kind == Kind::Flush { 2 } else { 1 };
        slot.deadline_ns = now_ns.saturating_add(self.limits.command_ns.saturating_mul(times));
        slot.acknowledged_before = acknowledged;
        let data = slot.data();
        self.waiting -= 1;
        self.running += 1;
        self.submit_status(index);
        if self.has_streams && data.bytes() > 0 {
            self.submit_data(index);
        }
        self.submit(index, Pipe::Command, 0, iu::COMMAND_BYTES as u32);
    }

    fn submit(&mut self, index: usize, pipe: Pipe, stream: u16, bytes: u32) {
        self.slots[index].pending.add(pipe);
        self.pending += 1;
        self.actions.push_back(Action::Submit(Transfer { pipe, slot: index as u16, stream, bytes }));
    }

    /// A transfer that receives a unit: with streams that of the slot, otherwise any that is free, because the device
    /// sends all units on the one pipe.
    fn submit_status(&mut self, index: usize) {
        if self.has_streams {
            return self.submit(index, Pipe::Status, Self::tag_of(index), iu::STATUS_BYTES as u32);
        }
        let Some(buffer) = self.status_pool.iter().position(|is_pending| !is_pending) else { return };
        self.status_pool[buffer] = true;
        self.pending += 1;
        let transfer = Transfer { pipe: Pipe::Status, slot: buffer as u16, stream: 0, bytes: iu::STATUS_BYTES as u32 };
        self.actions.push_back(Action::Submit(transfer));
    }

    fn submit_data(&mut self, index: usize) {
        let stream = if self.has_streams { Self::tag_of(index) } else { 0 };
        match self.slots[index].data() {
            Data::None => {}
            Data::In(bytes) => self.submit(index, Pipe::DataIn, stream, bytes),
            Data::Out(bytes) => self.submit(index, Pipe::DataOut, stream, bytes),
        }
    }

    /// Reports that a transfer has ended: `bytes` were transferred, or why not. `unit` is what a transfer on the status pipe
    /// received.
    pub fn ended_transfer(
        &mut self,
        pipe: Pipe,
        slot: u16,
        result: Result<u32, TransferError>,
        unit: &[u8],
        now_ns: u64,
    ) {
        let index = usize::from(slot);
        let was_pending = if pipe == Pipe::Status && !self.has_streams {
            std::mem::take(&mut self.status_pool[index])
        } else {
            self.slots[index].pending.remove(pipe)
        };
        assert!(was_pending, "the transport ended a transfer that it did not have: {pipe:?} {slot}");
        self.pending -= 1;
        let about = (self.has_streams || pipe != Pipe::Status).then_some(index);
        match result {
            Ok(bytes) if matches!(pipe, Pipe::DataIn | Pipe::DataOut) => self.slots[index].transferred += bytes,
            Ok(_) if pipe == Pipe::Status => self.receive(index, unit, now_ns),
            Ok(_) | Err(TransferError::Cancelled) => {}
            Err(TransferError::Gone) => self.die(Failure::Gone),
            Err(TransferError::Stall | TransferError::Bus(_)) => self.broken(about, now_ns),
        }
        if index < self.management() {
            self.settle(index, now_ns);
        } else {
            self.cleared(now_ns);
        }
        if self.recovery == Recovery::Draining && self.pending == 0 {
            self.recovery = Recovery::Resetting;
            self.recovery_deadline_ns = u64::MAX;
            self.actions.push_back(Action::Reset);
        }
    }

    fn violation(&mut self, index: Option<usize>, now_ns: u64) {
        self.counts.violations += 1;
        self.broken(index, now_ns);
    }

    /// Resets the port because of the command in a slot; `None`: because of one of those in flight.
    fn broken(&mut self, index: Option<usize>, now_ns: u64) {
        if self.reason == Reason::Outside && self.recovery == Recovery::None {
            self.reason = index.map_or(Reason::Unknown, |index| Reason::Command(self.slots[index].number));
        }
        self.drain(now_ns);
    }

    /// Handles a unit from the status pipe.
    fn receive(&mut self, buffer: usize, bytes: &[u8], now_ns: u64) {
        let about = self.has_streams.then_some(buffer);
        let Ok(unit) = iu::parse(bytes) else { return self.violation(about, now_ns) };
        let index = usize::from(unit.tag()).wrapping_sub(1);
        // With streams a unit belongs to the command whose stream it came on.
        if index > self.management() || (self.has_streams && index != buffer) {
            return self.violation(about, now_ns);
        }
        let is_running = self.slots[index].stage == Stage::Running && self.slots[index].answer.is_none();
        match unit {
            Unit::Response { code, .. } if index == self.management() => self.managed(code, now_ns),
            Unit::Response { code: ResponseCode::OverlappedTag, .. } => {
                // The device aborted the commands of this tag; which others is not defined.
                self.counts.violations += 1;
                if self.recovery == Recovery::None {
                    self.manage(Function::LogicalUnitReset, index, now_ns);
                }
            }
            Unit::Response { code, .. } if is_running => {
                let slot = &mut self.slots[index];
                let verdict = refused(code, &slot.present(), slot.tries);
                slot.tries.answers += 1;
                self.abandon(index, verdict, now_ns);
            }
            Unit::Sense { status, sense, .. } if is_running => {
                self.answered(index, status, sense);
                self.settle(index, now_ns);
            }
            Unit::ReadReady { .. } | Unit::WriteReady { .. } if !self.has_streams && is_running => {
                let is_in = matches!(unit, Unit::ReadReady { .. });
                let fits = match self.slots[index].data() {
                    Data::In(_) => is_in,
                    Data::Out(_) => !is_in,
                    Data::None => false,
                };
                if !fits || self.slots[index].pending.has(Pipe::DataIn) {
                    return self.violation(Some(index), now_ns);
                }
                // The status is still to come.
                self.submit_status(index);
                self.submit_data(index);
            }
            // An answer to a command that was given up meanwhile.
            _ if matches!(self.slots[index].stage, Stage::Ending(_)) || self.recovery != Recovery::None => {}
            _ => self.violation(Some(index), now_ns),
        }
    }

    fn answered(&mut self, index: usize, code: u8, sense: &[u8]) {
        let sense = Sense::parse(sense);
        (self.resets_in_row, self.silent_since_ns) = (0, None);
        if code == status::GOOD {
            self.widen();
            // A device reports a reset with the first command on its medium.
            self.expects_attention &= matches!(self.slots[index].request.kind, Kind::Repeatable | Kind::Once);
        } else if self.slots[index].pending.has(Pipe::DataIn) {
            // Data will not come.
            self.cancel_data(index);
        }
        if let Some(sense) = sense.filter(|_| code == status::CHECK_CONDITION) {
            self.note(&sense);
        }
        self.slots[index].answer = Some(Answer { status: code, sense });
    }

    /// Keeps what sense data means for writes that were acknowledged earlier.
    fn note(&mut self, sense: &Sense) {
        if sense.is_deferred {
            self.counts.deferred += 1;
            self.doubt = Some(Failure::Sense(*sense));
        }
        if sense.key == key::UNIT_ATTENTION {
            self.counts.attentions += 1;
            // 29/01: powered on. 29/00 may be a reset, which keeps the cache if this session caused it.
            let is_own = std::mem::take(&mut self.expects_attention) && sense.is(0x29, 0);
            let has_lost_power = sense.is(0x29, 1) || (sense.is(0x29, 0) && !is_own);
            if has_lost_power && self.acknowledged > self.flushed {
                self.doubt = Some(Failure::CacheLost);
            }
        }
    }

    /// Opens the window again after a number of successes.
    fn widen(&mut self) {
        const GOODS: u16 = 64;
        if self.window < self.depth() {
            self.good_in_window += 1;
            if self.good_in_window >= GOODS {
                self.good_in_window = 0;
                self.window += 1;
            }
        }
    }

    fn cancel(&mut self, index: usize, pipe: Pipe) {
        self.actions.push_back(Action::Cancel { pipe, slot: index as u16 });
    }

    fn cancel_data(&mut self, index: usize) {
        let pipe = match self.slots[index].request.data {
            Data::None => return,
            Data::In(_) => Pipe::DataIn,
            Data::Out(_) => Pipe::DataOut,
        };
        if self.slots[index].pending.has(pipe) {
            self.cancel(index, pipe);
        }
    }

    fn cancel_all_of(&mut self, index: usize) {
        self.cancel_data(index);
        for pipe in [Pipe::Command, Pipe::Status] {
            if self.slots[index].pending.has(pipe) {
                self.cancel(index, pipe);
            }
        }
    }

    /// Decides what follows for a command and cancels its transfers.
    fn abandon(&mut self, index: usize, verdict: Verdict, now_ns: u64) {
        self.slots[index].stage = Stage::Ending(verdict);
        self.cancel_all_of(index);
        self.settle(index, now_ns);
    }

    /// Concludes a command whose transfers have all ended.
    fn settle(&mut self, index: usize, now_ns: u64) {
        let slot = &mut self.slots[index];
        if !slot.pending.is_empty() {
            return;
        }
        let verdict = match slot.stage {
            Stage::Ending(verdict) => verdict,
            Stage::Running => {
                let Some(answer) = slot.answer else { return };
                let is_cut = slot.transferred < slot.data().bytes() && answer.status == status::GOOD;
                if is_cut && matches!(self.recovery, Recovery::Draining | Recovery::Resetting) {
                    // Its data was cancelled before the reset; it is sent again after it.
                    return;
                }
                if slot.is_starting {
                    // Whatever it answered: the command itself shows whether the disk is ready.
                    slot.is_starting = false;
                    Verdict::Again { delay_ns: 0 }
                } else {
                    slot.tries.is_late = now_ns.saturating_sub(slot.begun_ns) > self.limits.ready_ns;
                    slot.tries.is_removable = self.is_removable;
                    let verdict = judge(&answer, &slot.present(), slot.transferred, slot.tries);
                    let verdict = self.without_fua(index, verdict);
                    let slot = &mut self.slots[index];
                    let is_busy = matches!(answer.status, status::BUSY | status::TASK_SET_FULL);
                    let is_starting = matches!(verdict, Verdict::Again { delay_ns } if delay_ns > 0);
                    if !is_busy && !is_starting {
                        slot.tries.answers += 1;
                    }
                    verdict
                }
            }
            Stage::Free | Stage::Waiting { .. } => return,
        };
        self.running -= 1;
        self.conclude(index, verdict, now_ns);
        self.launch_waiting(now_ns);
    }

    /// Replaces a write with FUA that the device refuses: by one without FUA, and a flush after it.
    fn without_fua(&mut self, index: usize, verdict: Verdict) -> Verdict {
        // A range beyond the end of the disk is refused with and without FUA.
        let is_refusal = |sense: &Sense| sense.key == key::ILLEGAL_REQUEST && sense.asc != 0x21;
        let slot = &mut self.slots[index];
        let is_fua = slot.request.kind == (Kind::Write { is_fua: true });
        match (slot.step, verdict) {
            (Step::Own, Verdict::Done(Err(Failure::Sense(sense)))) if is_fua && is_refusal(&sense) => {
                slot.step = Step::Plain;
                Verdict::Again { delay_ns: 0 }
            }
            (Step::Plain, Verdict::Done(Ok(_))) => {
                self.refuses_fua = true;
                // It is in the disk's cache, like any write without FUA.
                self.acknowledged += 1;
                slot.step = Step::Flush;
                Verdict::Again { delay_ns: 0 }
            }
            (Step::Flush, Verdict::Done(Ok(_))) => {
                self.flushed = self.flushed.max(slot.acknowledged_before);
                // The next flush reports it as well: other writes may be lost, too.
                Verdict::Done(self.doubt.map_or(Ok(slot.request.data.bytes()), Err))
            }
            _ => verdict,
        }
    }

    fn conclude(&mut self, index: usize, verdict: Verdict, now_ns: u64) {
        if let Verdict::Done(result) = verdict {
            let result = self.booked(index, result);
            return self.end(index, result);
        }
        self.counts.repeated += 1;
        let mut not_before_ns = 0;
        match verdict {
            Verdict::Again { delay_ns } if delay_ns > 0 => not_before_ns = now_ns + delay_ns,
            Verdict::Start => self.slots[index].is_starting = true,
            Verdict::Fewer => {
                self.counts.queue_full += 1;
                self.window = self.running.max(1);
                self.good_in_window = 0;
                if self.running == 0 {
                    not_before_ns = now_ns + 10_000_000;
                }
            }
            Verdict::Again { .. } | Verdict::Done(_) => {}
        }
        self.slots[index].stage = Stage::Waiting { not_before_ns };
        self.waiting += 1;
    }

    /// Keeps account of acknowledged and flushed writes; turns the success of a flush into the loss that it would hide.
    fn booked(&mut self, index: usize, result: Result<u32, Failure>) -> Result<u32, Failure> {
        let slot = &self.slots[index];
        match (slot.request.kind, result) {
            (Kind::Write { is_fua: false }, Ok(_)) => self.acknowledged += 1,
            (Kind::Flush, Ok(_)) => {
                if let Some(failure) = self.doubt.take() {
                    return Err(failure);
                }
                self.flushed = self.flushed.max(slot.acknowledged_before);
            }
            _ => {}
        }
        result
    }

    fn end(&mut self, index: usize, result: Result<u32, Failure>) {
        self.counts.ended += 1;
        let slot = &mut self.slots[index];
        slot.stage = Stage::Free;
        slot.pending = Pending::default();
        self.outcomes.push_back(Outcome { user: slot.user, result });
    }
}
