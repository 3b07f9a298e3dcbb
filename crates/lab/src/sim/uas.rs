//! USB Attached SCSI: many commands at once, each identified by a tag.
//!
//! At super speed each tag has streams of its own, and the device fills those that the host has
//! offered. At high speed there are no streams: the device sends READ READY or WRITE READY for one
//! command after the other, followed by its data.
//!
//! Source: "USB Attached SCSI Protocol" (UASP) revision 1.0; information units as Linux's
//! `include/linux/usb/uas.h` has them.
//!
//! Each [`UasFault`] of the medium's behaviour meets one command.
//!
//! Cannot do: task attributes, task management other than a query, an abort and a reset, lengths over 16 bytes of
//! command.

use super::command::{Direction, Identity, Outcome};
use super::descriptors::{UAS_COMMAND, UAS_IN, UAS_STATUS};
use super::medium::{Medium, UasFault};
use super::pipes::{Ending, Pipes};
use super::scsi::{direction, execute, takes_time};
use super::timing::Timing;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::{Duration, Instant};

const COMMAND_UNIT: u8 = 1;
const STATUS_UNIT: u8 = 3;
const RESPONSE_UNIT: u8 = 4;
const TASK_MANAGEMENT_UNIT: u8 = 5;
const READ_READY_UNIT: u8 = 6;
const WRITE_READY_UNIT: u8 = 7;

const QUERY_TASK: u8 = 0x80;
const LOGICAL_UNIT_RESET: u8 = 8;
const FUNCTION_COMPLETE: u8 = 0;
const FUNCTION_SUCCEEDED: u8 = 8;
const TASK_SET_FULL: u8 = 0x28;

#[derive(Debug)]
enum Stage {
    /// Bytes that the host has to send.
    DataOut { bytes: usize },
    /// The disk works.
    Working,
    /// The disk has data to send.
    DataIn(Outcome),
}

#[derive(Debug)]
struct Task {
    cdb: [u8; 16],
    out: Vec<u8>,
    stage: Stage,
    /// Its status is not sent.
    loses_status: bool,
    /// It is held when its data is there.
    is_held: bool,
}

/// The transport's state.
#[derive(Debug, Default)]
pub(super) struct Uas {
    has_streams: bool,
    tasks: BTreeMap<u16, Task>,
    /// What the host sent and no task has taken, by stream.
    outs: HashMap<u16, VecDeque<Vec<u8>>>,
    /// Information units for the status pipe, by stream.
    units: VecDeque<(u16, Vec<u8>)>,
    /// Without streams: tags that send, and tags that receive; the first of each was notified.
    senders: VecDeque<u16>,
    receivers: VecDeque<u16>,
    /// Endpoints and streams whose next request ends in a stall.
    stalls: Vec<(u8, u16)>,
    /// The next command is answered with a report of a reset.
    has_attention: bool,
    /// Writes with their data that wait to be carried out. Only a reset drops them.
    held: Vec<Task>,
}

impl Uas {
    pub(super) fn new(has_streams: bool) -> Self {
        Self { has_streams, ..Self::default() }
    }

    /// The stream that a tag uses; without streams all use the one pipe.
    fn stream_of(&self, tag: u16) -> u16 {
        if self.has_streams { tag } else { 0 }
    }

    /// The host sends; returns how its transfer ends.
    pub(super) fn receive(
        &mut self,
        endpoint: u8,
        stream: u16,
        bytes: Vec<u8>,
        medium: &mut Medium,
        timing: &mut Timing,
    ) -> Ending {
        if endpoint == UAS_COMMAND {
            return self.unit(&bytes, medium, timing);
        }
        if medium.behaviour.take_fault(&[UasFault::StallDataOut]).is_some() {
            return Ending::Stalled;
        }
        self.outs.entry(stream).or_default().push_back(bytes);
        self.take_data(medium, timing);
        Ending::Done
    }

    /// Handles a unit of the command pipe. An unknown one is ignored; the host times out and resets.
    fn unit(&mut self, unit: &[u8], medium: &mut Medium, timing: &mut Timing) -> Ending {
        let [kind, _, tag_high, tag_low, rest @ ..] = unit else { return Ending::Done };
        let tag = u16::from_be_bytes([*tag_high, *tag_low]);
        match *kind {
            COMMAND_UNIT => {
                let mut cdb = [0; 16];
                for (to, from) in cdb.iter_mut().zip(rest.iter().skip(12)) {
                    *to = *from;
                }
                return self.command(tag, cdb, medium, timing);
            }
            TASK_MANAGEMENT_UNIT => {
                medium.counts.functions += 1;
                if !medium.hangs() {
                    self.manage(tag, rest);
                }
            }
            _ => {}
        }
        Ending::Done
    }

    fn command(&mut self, tag: u16, cdb: [u8; 16], medium: &mut Medium, timing: &mut Timing) -> Ending {
        if medium.takes_and_hangs(self.tasks.len() as u64 + 1) {
            return Ending::Done;
        }
        let direction = direction(&cdb, medium.block_bytes());
        if std::mem::take(&mut self.has_attention) {
            // UNIT ATTENTION: power on, reset, or bus device reset.
            self.refuse(tag, &Outcome::check(6, 0x29, 0));
            return Ending::Done;
        }
        let faults: &[UasFault] = match direction {
            _ if !takes_time(&cdb) => &[],
            Direction::In(_) => &UasFault::OF_READS,
            _ => &UasFault::OF_WRITES,
        };
        let fault = medium.behaviour.take_fault(faults);
        let (loses_status, is_held) = (fault == Some(UasFault::LoseStatus), fault == Some(UasFault::HoldWrite));
        if let Some(fault) = fault.filter(|_| !loses_status && !is_held) {
            return self.misbehave(fault, tag);
        }
        let stage = match direction {
            Direction::Out(bytes) if bytes > 0 => Stage::DataOut { bytes },
            _ => Stage::Working,
        };
        if matches!(stage, Stage::Working) {
            work(tag, &cdb, medium, timing);
        } else if !self.has_streams {
            self.senders.push_back(tag);
            if self.senders.len() == 1 {
                self.ready(WRITE_READY_UNIT, tag);
            }
        }
        self.tasks.insert(tag, Task { cdb, out: Vec::new(), stage, loses_status, is_held });
        self.take_data(medium, timing);
        Ending::Done
    }

    /// Answers a command with an error, without carrying it out.
    fn refuse(&mut self, tag: u16, outcome: &Outcome) {
        if self.has_streams {
            // The data that the host has sent already.
            self.outs.remove(&tag);
        }
        self.finish(tag, outcome);
    }

    /// Meets a command with a fault instead of carrying it out; returns how the transfer of the command ends.
    fn misbehave(&mut self, fault: UasFault, tag: u16) -> Ending {
        let stream = self.stream_of(tag);
        match fault {
            UasFault::StallCommand => return Ending::Stalled,
            UasFault::StallStatus => self.stalls.push((UAS_STATUS, stream)),
            UasFault::StallDataIn => {
                if !self.has_streams {
                    // The host wants data only after this.
                    self.ready(READ_READY_UNIT, tag);
                }
                self.stalls.push((UAS_IN, stream));
            }
            UasFault::WrongTag => self.units.push_back((stream, vec![STATUS_UNIT, 0, 0x7f, 0x7f, 0, 0, 0])),
            UasFault::DeferredError => {
                // HARDWARE ERROR, PERIPHERAL DEVICE WRITE FAULT, of an earlier command.
                let mut outcome = Outcome::check(4, 3, 0);
                outcome.sense[0] = 0x71;
                self.refuse(tag, &outcome);
            }
            UasFault::TaskSetFull => {
                self.refuse(tag, &Outcome { status: TASK_SET_FULL, data: Vec::new(), sense: Vec::new() });
            }
            UasFault::ResetItself => {
                self.reset();
                self.has_attention = true;
            }
            UasFault::StallDataOut | UasFault::LoseStatus | UasFault::HoldWrite => {
                unreachable!("handled by the callers")
            }
        }
        Ending::Done
    }

    /// Carries out a task management function. `rest` follows the tag: function, reserved byte, tag of the task.
    fn manage(&mut self, tag: u16, rest: &[u8]) {
        let [function, _, high, low, ..] = rest else { return };
        let task = u16::from_be_bytes([*high, *low]);
        let code = match *function {
            QUERY_TASK if self.tasks.contains_key(&task) => FUNCTION_SUCCEEDED,
            QUERY_TASK => FUNCTION_COMPLETE,
            LOGICAL_UNIT_RESET => {
                self.tasks.clear();
                self.held.clear();
                FUNCTION_COMPLETE
            }
            // ABORT TASK.
            _ => {
                self.tasks.remove(&task);
                FUNCTION_COMPLETE
            }
        };
        // Additional information three bytes, then the response code.
        let mut response = vec![RESPONSE_UNIT, 0];
        response.extend(tag.to_be_bytes());
        response.extend([0, 0, 0, code]);
        self.units.push_back((self.stream_of(tag), response));
    }

    fn ready(&mut self, kind: u8, tag: u16) {
        let tag = tag.to_be_bytes();
        self.units.push_back((0, vec![kind, 0, tag[0], tag[1]]));
    }

    /// Gives what the host sent to the tasks that wait for it.
    fn take_data(&mut self, medium: &Medium, timing: &mut Timing) {
        let waiting: Vec<u16> = if self.has_streams {
            self.outs.keys().copied().collect()
        } else {
            self.senders.front().copied().into_iter().collect()
        };
        for tag in waiting {
            let stream = self.stream_of(tag);
            let Some(Task { cdb, out, stage, is_held, .. }) = self.tasks.get_mut(&tag) else { continue };
            let Stage::DataOut { bytes } = *stage else { continue };
            let Some(queue) = self.outs.get_mut(&stream) else { continue };
            while out.len() < bytes {
                let Some(piece) = queue.pop_front() else { break };
                out.extend(piece);
            }
            let is_complete = out.len() >= bytes;
            if queue.is_empty() {
                self.outs.remove(&stream);
            }
            if is_complete {
                *stage = Stage::Working;
                if *is_held {
                    self.held.extend(self.tasks.remove(&tag));
                } else {
                    work(tag, cdb, medium, timing);
                }
                if !self.has_streams {
                    self.senders.pop_front();
                    if let Some(next) = self.senders.front().copied() {
                        self.ready(WRITE_READY_UNIT, next);
                    }
                }
            }
        }
    }

    /// The disk's time for a command is over.
    pub(super) fn execute(&mut self, tag: u16, identity: &Identity, medium: &mut Medium) {
        if medium.behaviour.carries_out_held {
            for task in self.held.drain(..) {
                execute(identity, medium, &task.cdb, &task.out);
            }
        }
        // It may have been aborted, and its tag reused for another one.
        let Some(task) = self.tasks.get_mut(&tag).filter(|task| matches!(task.stage, Stage::Working)) else { return };
        let outcome = execute(identity, medium, &task.cdb, &std::mem::take(&mut task.out));
        let has_data = matches!(direction(&task.cdb, medium.block_bytes()), Direction::In(_));
        if !has_data || outcome.data.is_empty() {
            self.finish(tag, &outcome);
            return;
        }
        task.stage = Stage::DataIn(outcome);
        if !self.has_streams {
            self.receivers.push_back(tag);
            if self.receivers.len() == 1 {
                self.ready(READ_READY_UNIT, tag);
            }
        }
    }

    /// The task's status.
    fn finish(&mut self, tag: u16, outcome: &Outcome) {
        if self.tasks.remove(&tag).is_some_and(|task| task.loses_status) {
            return;
        }
        let mut unit = vec![STATUS_UNIT, 0];
        unit.extend(tag.to_be_bytes());
        // Status qualifier two bytes, status, seven reserved, length of the sense data.
        unit.extend([0, 0, outcome.status, 0, 0, 0, 0, 0, 0, 0]);
        unit.extend((outcome.sense.len() as u16).to_be_bytes());
        unit.extend(&outcome.sense);
        self.units.push_back((self.stream_of(tag), unit));
    }

    /// Answers the requests that wait.
    pub(super) fn pump(&mut self, pipes: &mut Pipes) {
        while self.send_data(pipes) | self.send_units(pipes) {}
        self.stalls.retain(|(endpoint, stream)| !pipes.stall(*endpoint, *stream));
    }

    fn send_data(&mut self, pipes: &mut Pipes) -> bool {
        let mut has_sent = false;
        let senders: Vec<u16> = if self.has_streams {
            let has_data = |task: &Task| matches!(task.stage, Stage::DataIn(_));
            self.tasks.iter().filter(|(_, task)| has_data(task)).map(|(tag, _)| *tag).collect()
        } else {
            self.receivers.front().copied().into_iter().collect()
        };
        for tag in senders {
            let stream = self.stream_of(tag);
            let Some(wanted) = pipes.wanted(UAS_IN, stream) else { continue };
            let Some(Task { stage: Stage::DataIn(outcome), .. }) = self.tasks.get_mut(&tag) else {
                // Aborted while it waited.
                self.receivers.retain(|receiver| *receiver != tag);
                continue;
            };
            let bytes = wanted.min(outcome.data.len());
            let piece: Vec<u8> = outcome.data.drain(..bytes).collect();
            pipes.give(UAS_IN, stream, piece);
            has_sent = true;
            if outcome.data.is_empty() {
                let outcome = outcome.clone();
                self.finish(tag, &outcome);
                if !self.has_streams {
                    self.receivers.pop_front();
                    if let Some(next) = self.receivers.front().copied() {
                        self.ready(READ_READY_UNIT, next);
                    }
                }
            }
        }
        has_sent
    }

    /// Sends units that are wanted, those of one stream in order.
    fn send_units(&mut self, pipes: &mut Pipes) -> bool {
        let before = self.units.len();
        let mut kept = VecDeque::new();
        for (stream, unit) in std::mem::take(&mut self.units) {
            let is_first = !kept.iter().any(|(other, _)| *other == stream);
            if is_first && pipes.wanted(UAS_STATUS, stream).is_some() {
                pipes.give(UAS_STATUS, stream, unit);
            } else {
                kept.push_back((stream, unit));
            }
        }
        self.units = kept;
        self.units.len() < before
    }

    /// Another alternate setting: drops what is under way, except for what is held.
    pub(super) fn forget(&mut self) {
        *self = Self { held: std::mem::take(&mut self.held), ..Self::new(self.has_streams) };
    }

    /// A reset: drops everything.
    pub(super) fn reset(&mut self) {
        *self = Self::new(self.has_streams);
    }
}

fn work(tag: u16, cdb: &[u8; 16], medium: &Medium, timing: &mut Timing) {
    let latency = if takes_time(cdb) { medium.behaviour.latency } else { Duration::ZERO };
    timing.take(tag.into(), Instant::now(), latency, medium.behaviour.channels);
}
