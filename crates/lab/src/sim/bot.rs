//! The Bulk-Only Transport: one command at a time, as command wrapper, data, status wrapper.
//!
//! Source: "USB Mass Storage Class, Bulk-Only Transport", revision 1.0.
//!
//! Cannot do: stall an endpoint. A command that fails sends no data and reports that in its status,
//! which the standard allows.

use super::command::{GOOD, Identity, Outcome};
use super::descriptors::BOT_IN;
use super::medium::Medium;
use super::pipes::Pipes;
use super::scsi::{execute, takes_time};
use super::timing::Timing;
use std::time::{Duration, Instant};

/// Where the one command is.
#[derive(Debug, Default)]
enum Stage {
    #[default]
    Idle,
    /// The host has data to send.
    DataOut(Command),
    /// The disk works.
    Working(Command),
    /// The disk has data to send.
    DataIn { command: Command, data: Vec<u8>, sent_bytes: usize, status: u8, ends_with_empty: bool },
    /// The disk has a status to send.
    Status { tag: u32, residue: u32, status: u8 },
    /// The disk does not answer any more, until it is reset.
    Hung,
}

#[derive(Debug, Clone, Default)]
struct Command {
    tag: u32,
    /// How much data the host expects, either way.
    expected_bytes: usize,
    cdb: [u8; 16],
    out: Vec<u8>,
}

/// The transport's state.
#[derive(Debug, Default)]
pub(super) struct Bot {
    stage: Stage,
    /// The sense data of the last command that failed, until the host asks.
    sense: Vec<u8>,
}

impl Bot {
    /// The host sends: a command wrapper, or the data of a command.
    pub(super) fn receive(&mut self, bytes: &[u8], medium: &mut Medium, timing: &mut Timing) {
        match std::mem::take(&mut self.stage) {
            Stage::Idle => self.stage = begin(bytes, medium, timing),
            Stage::DataOut(mut command) => {
                command.out.extend_from_slice(bytes);
                self.stage = if command.out.len() >= command.expected_bytes {
                    work(command, medium, timing)
                } else {
                    Stage::DataOut(command)
                };
            }
            // What it does not expect it ignores; the host times out and resets.
            other => self.stage = other,
        }
    }

    /// The disk's time for the command is over.
    pub(super) fn execute(&mut self, identity: &Identity, medium: &mut Medium) {
        let command = match std::mem::take(&mut self.stage) {
            Stage::Working(command) => command,
            other => {
                self.stage = other;
                return;
            }
        };
        const REQUEST_SENSE: u8 = 0x03;
        let outcome = if command.cdb[0] == REQUEST_SENSE && !self.sense.is_empty() {
            Outcome::good(std::mem::take(&mut self.sense))
        } else {
            execute(identity, medium, &command.cdb, &command.out)
        };
        let Outcome { status, mut data, sense } = outcome;
        if status != GOOD {
            self.sense = sense;
        }
        let status = u8::from(status != GOOD);
        self.stage = if command.expected_bytes > 0 && command.out.is_empty() {
            data.truncate(command.expected_bytes);
            // Fewer bytes than requested, in whole packets: only an empty packet marks the end for the host.
            let ends_with_empty = data.len() < command.expected_bytes;
            Stage::DataIn { command, data, sent_bytes: 0, status, ends_with_empty }
        } else {
            Stage::Status { tag: command.tag, residue: 0, status }
        };
    }

    /// Answers the requests that wait.
    pub(super) fn pump(&mut self, pipes: &mut Pipes) {
        while let Some(wanted) = pipes.wanted(BOT_IN, 0) {
            match &mut self.stage {
                Stage::DataIn { command, data, sent_bytes, status, ends_with_empty } => {
                    let bytes = wanted.min(data.len() - *sent_bytes);
                    let piece = data[*sent_bytes..*sent_bytes + bytes].to_vec();
                    *sent_bytes += bytes;
                    // A request that is not filled is over by itself.
                    if *sent_bytes == data.len() && (!*ends_with_empty || bytes < wanted) {
                        let residue = (command.expected_bytes - data.len()) as u32;
                        self.stage = Stage::Status { tag: command.tag, residue, status: *status };
                    }
                    pipes.give(BOT_IN, 0, piece);
                }
                Stage::Status { tag, residue, status } => {
                    let mut wrapper = b"USBS".to_vec();
                    wrapper.extend(tag.to_le_bytes());
                    wrapper.extend(residue.to_le_bytes());
                    wrapper.push(*status);
                    self.stage = Stage::Idle;
                    pipes.give(BOT_IN, 0, wrapper);
                }
                _ => return,
            }
        }
    }

    /// A reset: the command is forgotten.
    pub(super) fn reset(&mut self) {
        self.stage = Stage::Idle;
    }
}

/// A command wrapper of 31 bytes.
fn begin(bytes: &[u8], medium: &mut Medium, timing: &mut Timing) -> Stage {
    let Ok(wrapper) = <&[u8; 31]>::try_from(bytes) else { return Stage::Hung };
    let [b'U', b'S', b'B', b'C', t0, t1, t2, t3, l0, l1, l2, l3, flags, _lun, _length, rest @ ..] = wrapper else {
        return Stage::Hung;
    };
    let command = Command {
        tag: u32::from_le_bytes([*t0, *t1, *t2, *t3]),
        expected_bytes: u32::from_le_bytes([*l0, *l1, *l2, *l3]) as usize,
        cdb: *rest,
        out: Vec::new(),
    };
    if medium.takes_and_hangs(1) {
        return Stage::Hung;
    }
    let is_in = flags & 0x80 != 0;
    if !is_in && command.expected_bytes > 0 { Stage::DataOut(command) } else { work(command, medium, timing) }
}

fn work(command: Command, medium: &Medium, timing: &mut Timing) -> Stage {
    let behaviour = &medium.behaviour;
    let latency = if takes_time(&command.cdb) { behaviour.latency } else { Duration::ZERO };
    timing.take(0, Instant::now(), latency, behaviour.channels);
    Stage::Working(command)
}
