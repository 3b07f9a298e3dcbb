//! A simulated UAS device, in virtual time: it executes commands on a small medium and makes the faults that a test asks for.

// The tests of the engine use a part of this.
#![allow(dead_code)]

use std::collections::VecDeque;
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use trueio_uas::disk::{Quirks, identify};
use trueio_uas::host::{Ended, Host, Moved, Pipe, TransferError, Transport};
use trueio_uas::request::Transfer;
use trueio_uas::serve::Served;
use trueio_uas::session::Limits;

pub(crate) const BLOCK: usize = 512;

/// A host with 15 commands in flight that has identified the device, and what it serves, changed by `change`. The device's log
/// is empty.
pub(crate) fn identified(device: Device, change: impl FnOnce(&mut Served)) -> (Host<Device>, Served) {
    let has_streams = device.has_streams;
    let mut host = Host::new(device, 15, has_streams, Limits::default());
    let facts = identify(&mut host, 0, Quirks::default()).expect("a disk");
    let mut served = Served::of(&facts, 15, Some(16 << 20), false).expect("enough memory");
    change(&mut served);
    host.transport_mut().log.clear();
    (host, served)
}

/// What happens to a command instead of its execution.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Fault {
    /// It ends with this status and sense data, without data.
    Status(u8, Vec<u8>),
    /// It is executed and ends without a status; the device does not have it any more.
    LostStatus,
    /// The device keeps it and never answers.
    Hang,
    /// The device works on it for this time.
    Slow(u64),
    /// The status has another tag.
    WrongTag,
    /// The device halts a pipe.
    Stall(Pipe),
    /// A transfer on a pipe fails on the bus, as those of a device do that came back from a suspend without its streams.
    Broken(Pipe),
    /// A unit of these bytes instead of the status.
    Bytes(Vec<u8>),
    /// It reports GOOD after half of the data.
    Short,
    /// The device is unplugged.
    Unplug,
    /// The response code for the command's tag.
    Response(u8),
}

#[derive(Debug, Clone)]
struct Task {
    tag: u16,
    lun: u8,
    cdb: [u8; 16],
    /// Its end; `None`: never.
    ready_ns: Option<u64>,
    answer: Option<(u8, Vec<u8>)>,
    is_announced: bool,
    is_short: bool,
}

struct Held {
    transfer: Transfer,
    buffer: *mut u8,
}

pub(crate) struct Device {
    pub(crate) now_ns: u64,
    pub(crate) has_streams: bool,
    /// Bytes of a block.
    pub(crate) block_bytes: usize,
    pub(crate) medium: Vec<u8>,
    /// For the next command with this operation code (`None`: any).
    pub(crate) faults: VecDeque<(Option<u8>, Fault)>,
    /// The response to task management functions; `None`: no answer.
    pub(crate) response: Option<u8>,
    /// The response to LOGICAL UNIT RESET, if it is another.
    pub(crate) unit_reset_response: Option<u8>,
    /// Streams after a reset; 0: as many as before.
    pub(crate) streams_after_reset: u16,
    /// Time for which the machine was suspended.
    pub(crate) suspended_ns: u64,
    /// Receives that time, in eight bytes, while something else has the device.
    pub(crate) wake: Option<UnixStream>,
    /// Whether the device is repaired by a reset of the port.
    pub(crate) reset_helps: bool,
    pub(crate) is_unplugged: bool,
    /// What was sent, in order: operation codes, and 0x100 + function of task management.
    pub(crate) log: Vec<u16>,
    pub(crate) resets: u32,
    /// Length of the log at each reset.
    pub(crate) log_at_resets: Vec<usize>,
    pub(crate) in_flight_max: usize,
    moved: Moved,
    tasks: Vec<Task>,
    held: Vec<Held>,
    ended: VecDeque<Ended>,
    /// Units for the status pipe with their streams.
    units: VecDeque<(u16, Vec<u8>)>,
}

// SAFETY: the pointers belong to the test's own thread, which the device never leaves.
unsafe impl Send for Device {}

impl Device {
    pub(crate) fn new(has_streams: bool) -> Self {
        Self {
            now_ns: 1,
            has_streams,
            block_bytes: BLOCK,
            medium: (0..64 * BLOCK).map(|at| (at / BLOCK) as u8).collect(),
            faults: VecDeque::new(),
            response: Some(0),
            unit_reset_response: None,
            streams_after_reset: 0,
            suspended_ns: 0,
            wake: None,
            reset_helps: true,
            is_unplugged: false,
            log: Vec::new(),
            resets: 0,
            log_at_resets: Vec::new(),
            in_flight_max: 0,
            moved: Moved::default(),
            tasks: Vec::new(),
            held: Vec::new(),
            ended: VecDeque::new(),
            units: VecDeque::new(),
        }
    }

    pub(crate) fn with(mut self, operation: impl Into<Option<u8>>, fault: Fault) -> Self {
        self.faults.push_back((operation.into(), fault));
        self
    }

    fn stream_of(&self, tag: u16) -> u16 {
        if self.has_streams { tag } else { 0 }
    }

    fn end(&mut self, at: usize, result: Result<u32, TransferError>) {
        let Transfer { pipe, slot, .. } = self.held.remove(at).transfer;
        let bytes = u64::from(result.unwrap_or(0));
        match pipe {
            Pipe::DataIn => self.moved.in_bytes += bytes,
            Pipe::DataOut => self.moved.out_bytes += bytes,
            Pipe::Command | Pipe::Status => {}
        }
        self.ended.push_back(Ended { pipe, slot, result });
    }

    fn find(&self, pipe: Pipe, stream: u16) -> Option<usize> {
        self.held.iter().position(|held| held.transfer.pipe == pipe && held.transfer.stream == stream)
    }

    fn unplug(&mut self) {
        self.is_unplugged = true;
        while !self.held.is_empty() {
            self.end(0, Err(TransferError::Gone));
        }
    }

    fn receive(&mut self, unit: &[u8]) {
        let tag = u16::from_be_bytes([unit[2], unit[3]]);
        if unit[0] == 5 {
            self.log.push(0x100 + u16::from(unit[4]));
            let is_unit_reset = unit[4] == 8;
            let code = self.unit_reset_response.filter(|_| is_unit_reset).or(self.response);
            let Some(code) = code else { return };
            let task = u16::from_be_bytes([unit[6], unit[7]]);
            // A query that finds the command, and a refused function, leave it.
            if code == 0 {
                let stays = |known: &Task| if is_unit_reset { known.lun != unit[9] } else { known.tag != task };
                self.tasks.retain(stays);
            }
            self.units.push_back((self.stream_of(tag), vec![4, 0, unit[2], unit[3], 0, 0, 0, code]));
            return;
        }
        let cdb: [u8; 16] = unit[16..32].try_into().expect("16 bytes");
        self.log.push(cdb[0].into());
        let mut task = Task {
            tag,
            lun: unit[9],
            cdb,
            ready_ns: Some(self.now_ns),
            answer: None,
            is_announced: false,
            is_short: false,
        };
        let wanted = |(operation, _): &(Option<u8>, Fault)| operation.is_none_or(|operation| operation == cdb[0]);
        let fault = self.faults.iter().position(wanted).and_then(|at| self.faults.remove(at)).map(|(_, fault)| fault);
        match fault {
            None => {}
            Some(Fault::Status(status, sense)) => task.answer = Some((status, sense)),
            Some(Fault::Hang) => task.ready_ns = None,
            Some(Fault::Slow(ns)) => task.ready_ns = Some(self.now_ns + ns),
            Some(Fault::Short) => task.is_short = true,
            Some(Fault::LostStatus) => {
                self.write(&cdb, tag);
                return;
            }
            Some(Fault::WrongTag) => {
                self.units.push_back((self.stream_of(tag), vec![3, 0, 0x7f, 0x7f, 0, 0, 0]));
                return;
            }
            Some(Fault::Bytes(bytes)) => {
                self.units.push_back((self.stream_of(tag), bytes));
                return;
            }
            Some(Fault::Response(code)) => {
                self.units.push_back((self.stream_of(tag), vec![4, 0, unit[2], unit[3], 0, 0, 0, code]));
                return;
            }
            Some(fault @ (Fault::Stall(pipe) | Fault::Broken(pipe))) => {
                let error = if fault == Fault::Stall(pipe) { TransferError::Stall } else { TransferError::Bus(71) };
                let stream = if pipe == Pipe::Command { 0 } else { self.stream_of(tag) };
                if let Some(at) = self.find(pipe, stream) {
                    self.end(at, Err(error));
                }
                return;
            }
            Some(Fault::Unplug) => return self.unplug(),
        }
        self.tasks.push(task);
        self.in_flight_max = self.in_flight_max.max(self.tasks.len());
    }

    /// A disk with blocks of 4096 bytes (4Kn), each filled with its number.
    pub(crate) fn with_blocks_of_4096(mut self) -> Self {
        self.block_bytes = 4096;
        self.medium = (0..64 * 4096).map(|at| (at / 4096) as u8).collect();
        self
    }

    fn range(&self, cdb: &[u8; 16]) -> std::ops::Range<usize> {
        let block = u32::from_be_bytes(cdb[2..6].try_into().expect("4 bytes")) as usize;
        let count = usize::from(u16::from_be_bytes([cdb[7], cdb[8]]));
        block * self.block_bytes..(block + count) * self.block_bytes
    }

    /// Takes the data of a write that the host offers for this tag. True if it was there.
    fn write(&mut self, cdb: &[u8; 16], tag: u16) -> bool {
        if !matches!(cdb[0], 0x2a | 0x42 | 0x93) {
            return true;
        }
        let Some(at) = self.find(Pipe::DataOut, self.stream_of(tag)) else { return false };
        let bytes = self.held[at].transfer.bytes as usize;
        // SAFETY: the host's buffer is valid while the transfer is held.
        let data = unsafe { std::slice::from_raw_parts(self.held[at].buffer, bytes) };
        if cdb[0] == 0x2a {
            let range = self.range(cdb);
            self.medium[range].copy_from_slice(data);
        }
        self.end(at, Ok(bytes as u32));
        true
    }

    fn answer_data(&self, cdb: &[u8; 16]) -> Vec<u8> {
        let page = |page: u8, body: &[u8]| [&[0, page, 0, body.len() as u8], body].concat();
        match (cdb[0], cdb[1] & 1, cdb[2]) {
            (0x28, ..) => self.medium[self.range(cdb)].to_vec(),
            (0x12, 0, _) => [&[0, 0, 6, 2, 31, 0, 0, 0], &b"TEST    DEVICE          1.0 "[..]].concat(),
            (0x12, _, 0) => page(0, &[0, 0x80, 0xb0]),
            (0x12, _, 0x80) => page(0x80, b"SERIAL"),
            (0x12, _, 0xb0) => page(0xb0, &[0, 0, 0, 0, 0, 0, 8, 0]),
            // Eight logical blocks of 512 bytes are a physical one, or one of 4096.
            (0x9e, ..) => {
                let [high, low] = (self.block_bytes as u16).to_be_bytes();
                let exponent = if self.block_bytes == BLOCK { 3 } else { 0 };
                [&[0, 0, 0, 0, 0, 0, 0, 63, 0, 0, high, low, 0, exponent], &[0; 18][..]].concat()
            }
            (0x25, ..) => [&[0, 0, 0, 63, 0, 0][..], &(self.block_bytes as u16).to_be_bytes()].concat(),
            (0x1a, ..) => vec![23, 0, 0x10, 0, 8, 18, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            (0x85, ..) if cdb[14] == 0xec => self.identity(),
            (0x85, ..) if cdb[14] == 0xb0 => smart(),
            (0xa0, ..) => [&[0, 0, 0, 16, 0, 0, 0, 0], &[0; 9][..], &[1, 0, 0, 0, 0, 0, 0]].concat(),
            _ => Vec::new(),
        }
    }

    fn identity(&self) -> Vec<u8> {
        let mut data = vec![0; 512];
        data[0] = 0x40;
        data[20..28].copy_from_slice(b"TA-ADI 1");
        data[434] = 1;
        data
    }

    /// Goes on with the tasks that can.
    fn work(&mut self) {
        let mut at = 0;
        while at < self.tasks.len() {
            if self.step(at) {
                self.tasks.remove(at);
                at = 0;
            } else {
                at += 1;
            }
        }
        // Units go to the first transfer of their stream.
        let mut left = VecDeque::new();
        while let Some((stream, unit)) = self.units.pop_front() {
            match self.find(Pipe::Status, stream) {
                Some(at) => {
                    let Held { transfer, buffer } = &self.held[at];
                    let bytes = unit.len().min(transfer.bytes as usize);
                    // SAFETY: the host's buffer is valid while the transfer is held.
                    unsafe { std::ptr::copy_nonoverlapping(unit.as_ptr(), *buffer, bytes) };
                    self.end(at, Ok(bytes as u32));
                }
                None => left.push_back((stream, unit)),
            }
        }
        self.units = left;
    }

    /// True if the task is over.
    fn step(&mut self, at: usize) -> bool {
        let task = self.tasks[at].clone();
        let stream = self.stream_of(task.tag);
        if task.ready_ns.is_none_or(|ready| ready > self.now_ns) {
            return false;
        }
        let [high, low] = task.tag.to_be_bytes();
        if let Some((status, sense)) = task.answer {
            let mut unit = vec![3, 0, high, low, 0, 0, status, 0, 0, 0, 0, 0, 0, 0, 0, sense.len() as u8];
            unit.extend(sense);
            self.units.push_back((stream, unit));
            return true;
        }
        let data = self.answer_data(&task.cdb);
        let pipe = if matches!(task.cdb[0], 0x2a | 0x42 | 0x93) {
            Some(Pipe::DataOut)
        } else {
            (!data.is_empty()).then_some(Pipe::DataIn)
        };
        if let (Some(pipe), false) = (pipe, self.has_streams) {
            // One at a time on the pipe.
            if !task.is_announced {
                let is_free = !self.tasks.iter().any(|other| other.is_announced);
                if is_free {
                    self.tasks[at].is_announced = true;
                    self.units.push_back((0, vec![if pipe == Pipe::DataIn { 6 } else { 7 }, 0, high, low]));
                }
                return false;
            }
        }
        if pipe == Some(Pipe::DataIn) {
            let Some(place) = self.find(Pipe::DataIn, stream) else { return false };
            let Held { transfer, buffer } = &self.held[place];
            let bytes = data.len().min(transfer.bytes as usize) / if task.is_short { 2 } else { 1 };
            // SAFETY: the host's buffer is valid while the transfer is held.
            unsafe { std::ptr::copy_nonoverlapping(data.as_ptr(), *buffer, bytes) };
            self.end(place, Ok(bytes as u32));
        } else if !self.write(&task.cdb, task.tag) {
            return false;
        }
        self.units.push_back((stream, vec![3, 0, high, low, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]));
        true
    }
}

impl Transport for Device {
    fn descriptor(&self) -> Option<std::os::fd::BorrowedFd<'_>> {
        None
    }

    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    unsafe fn submit(&mut self, transfer: Transfer, buffer: *mut u8) -> Result<(), TransferError> {
        if self.is_unplugged {
            return Err(TransferError::Gone);
        }
        let known = |held: &Held| (held.transfer.pipe, held.transfer.slot) == (transfer.pipe, transfer.slot);
        assert!(!self.held.iter().any(known), "{transfer:?} is pending already");
        self.held.push(Held { transfer, buffer });
        self.moved.transfers += 1;
        if transfer.pipe == Pipe::Command {
            // SAFETY: the host's buffer is valid while the transfer is held.
            let unit = unsafe { std::slice::from_raw_parts(buffer, transfer.bytes as usize) }.to_vec();
            let is_stalled =
                matches!(self.faults.front(), Some((_, Fault::Stall(Pipe::Command) | Fault::Broken(Pipe::Command))));
            if !is_stalled {
                let at = self.held.len() - 1;
                self.end(at, Ok(transfer.bytes));
            }
            self.receive(&unit);
        }
        self.work();
        Ok(())
    }

    fn cancel(&mut self, pipe: Pipe, slot: u16) {
        let found = self.held.iter().position(|held| (held.transfer.pipe, held.transfer.slot) == (pipe, slot));
        if let Some(at) = found {
            self.end(at, Err(TransferError::Cancelled));
        }
    }

    fn reset(&mut self) -> Option<u16> {
        assert!(self.held.is_empty() && self.ended.is_empty(), "transfers are pending at a reset");
        self.resets += 1;
        self.log_at_resets.push(self.log.len());
        self.tasks.clear();
        self.units.clear();
        if self.reset_helps {
            self.response = self.response.or(Some(0));
        }
        let streams = if self.streams_after_reset > 0 { self.streams_after_reset } else { 16 };
        (!self.is_unplugged).then_some(if self.has_streams { streams } else { 0 })
    }

    fn reap(&mut self, wait_ns: u64) -> Result<Option<Ended>, TransferError> {
        self.work();
        if let Some(ended) = self.ended.pop_front() {
            return Ok(Some(ended));
        }
        if self.is_unplugged {
            return Err(TransferError::Gone);
        }
        if wait_ns == 0 {
            // Who polls sees time pass.
            self.now_ns += 1_000;
            self.work();
            return Ok(self.ended.pop_front());
        }
        // Virtual time: up to the end of the wait, or of the next task.
        let next = self.tasks.iter().filter_map(|task| task.ready_ns).filter(|ready| *ready > self.now_ns).min();
        let until = self.now_ns.saturating_add(wait_ns).min(next.unwrap_or(u64::MAX));
        assert_ne!(until, u64::MAX, "the session would wait for ever: {:x?}", self.log);
        self.now_ns = until;
        self.work();
        Ok(self.ended.pop_front())
    }

    fn suspended_ns(&self) -> u64 {
        self.suspended_ns
    }

    fn wake_descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.wake.as_ref().map(AsFd::as_fd)
    }

    fn clear_wake(&mut self) {
        let mut bytes = [0; 8];
        self.wake.as_mut().expect("it was readable").read_exact(&mut bytes).expect("eight bytes");
        self.suspended_ns = u64::from_ne_bytes(bytes);
    }

    fn moved(&self) -> Moved {
        self.moved
    }
}

/// 33 °C, and a checksum.
fn smart() -> Vec<u8> {
    let mut data = vec![0; 512];
    (data[2], data[5], data[6], data[7]) = (194, 67, 50, 33);
    data[511] = data.iter().fold(0u8, |sum, byte| sum.wrapping_sub(*byte));
    data
}
