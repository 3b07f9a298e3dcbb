//! Recorded exchanges with disks, replayed against the session: it submits the same transfers in the same order, and each command
//! ends as it did.
//!
//! The files in `captures` are the text of Linux's `usbmon` while `trueio usb serve` drove QEMU's UAS disk or a simulated one in the
//! lab (`crates/lab/examples/usb_captures.rs` writes them). A line has the address of the URB, the time in microseconds, `S` (submitted) or
//! `C` (ended), pipe and endpoint, the status, the length, and up to 32 bytes of data. What the host submits is compared; what
//! the device answered, and when, is fed to the session. The recorded program saw an answer some time after its line, so answers are fed
//! when the next line needs them.
//!
//! Limits: the content of the data pipes, and sense data after 16 bytes, are not in a capture; the session does not read the former.
//!
//! Source: Linux `Documentation/usb/usbmon.rst`.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use trueio_uas::iu::COMMAND_BYTES;
use trueio_uas::request::{Action, Data, Kind, Pipe, Request, TransferError};
use trueio_uas::session::{Counts, Limits, Session};

/// A line of a capture about one of the four pipes.
#[derive(Debug, Clone)]
struct Line {
    urb: String,
    now_ns: u64,
    is_submitted: bool,
    pipe: Pipe,
    status: i32,
    bytes: u32,
    data: Vec<u8>,
}

/// What the first line says about the interface: endpoints, streams (0: none), and the limit of a command in seconds.
struct Head {
    endpoints: BTreeMap<String, Pipe>,
    streams: u16,
    limits: Limits,
}

fn head(text: &str) -> Head {
    let words: Vec<&str> = text.lines().next().expect("a first line").split_whitespace().collect();
    let [_, streams, seconds, command, status, data_in, data_out] = words[..] else { panic!("{words:?}") };
    let pipes = [Pipe::Command, Pipe::Status, Pipe::DataIn, Pipe::DataOut];
    let endpoints = [command, status, data_in, data_out].map(str::to_owned).into_iter().zip(pipes).collect();
    // A little less: the recorded session's clock began before the line of the command.
    let limit = std::time::Duration::from_secs(seconds.parse().expect("a number")).mul_f64(0.9);
    Head { endpoints, streams: streams.parse().expect("a number"), limits: Limits::of_commands(limit) }
}

/// Parses a line; `None`: it is about another endpoint (the control pipe).
fn line(text: &str, endpoints: &BTreeMap<String, Pipe>) -> Option<Line> {
    let mut words = text.split_whitespace();
    let (urb, time, kind, place) = (words.next()?, words.next()?, words.next()?, words.next()?);
    // `Bi:2:003:1`: bulk in, bus, device, endpoint.
    let parts: Vec<&str> = place.split(':').collect();
    let pipe = *endpoints.get(&format!("{}{}", parts.first()?, parts.get(3)?))?;
    let (status, bytes) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
    let has_data = words.next() == Some("=");
    let hex: String = if has_data { words.collect() } else { String::new() };
    let data = (0..hex.len() / 2).map(|at| u8::from_str_radix(&hex[at * 2..at * 2 + 2], 16).expect("hexadecimal"));
    let now_ns = time.parse::<u64>().ok()? * 1_000;
    Some(Line { urb: urb.to_owned(), now_ns, is_submitted: kind == "S", pipe, status, bytes, data: data.collect() })
}

/// Returns the command that a unit carries, with the length of the data that was submitted for it or follows later.
fn request(unit: &[u8], data: Option<(Pipe, u32)>) -> Request {
    let cdb: [u8; 16] = unit[16..32].try_into().expect("16 bytes");
    let data = match data {
        None => Data::None,
        Some((Pipe::DataIn, bytes)) => Data::In(bytes),
        Some((_, bytes)) => Data::Out(bytes),
    };
    let kind = match cdb[0] {
        0x28 | 0x88 => Kind::Read,
        0x2a | 0x8a => Kind::Write { is_fua: cdb[1] & 8 != 0 },
        0x35 | 0x91 => Kind::Flush,
        _ => Kind::Repeatable,
    };
    Request { lun: unit[9], cdb, data, kind }
}

/// What a replay gave.
#[derive(Debug, Default, PartialEq, Eq)]
struct Replayed {
    commands: u64,
    failed: u64,
}

struct Replay {
    session: Session,
    lines: Vec<Line>,
    has_streams: bool,
    streams: u16,
    actions: VecDeque<(Pipe, u16, u32)>,
    /// Transfers that are pending, by their URB.
    pending: BTreeMap<String, (Pipe, u16)>,
    /// Lines of ended transfers that the session has not got yet.
    arrived: VecDeque<(usize, Pipe, u16)>,
    /// Slots of commands that have not ended.
    busy: BTreeSet<u16>,
    found: Replayed,
}

impl Replay {
    fn new(text: &str) -> Self {
        let Head { endpoints, streams, limits } = head(text);
        let lines: Vec<Line> = text.lines().skip(1).filter_map(|text| line(text, &endpoints)).collect();
        let has_streams = streams > 0;
        let slots = if has_streams { streams } else { 32 };
        let session = Session::new(slots - 1, has_streams, limits);
        let (actions, pending, found) = (VecDeque::new(), BTreeMap::new(), Replayed::default());
        let (arrived, busy) = (VecDeque::new(), BTreeSet::new());
        Self { session, lines, has_streams, streams, actions, pending, arrived, busy, found }
    }

    /// Takes what the session wants to be done.
    fn collect(&mut self, now_ns: u64) {
        while let Some(action) = self.session.next_action() {
            match action {
                Action::Submit(transfer) => self.actions.push_back((transfer.pipe, transfer.slot, transfer.bytes)),
                // A cancelled transfer ends in the capture, too.
                Action::Cancel { .. } => {}
                Action::Reset => {
                    let streams = if self.has_streams { self.streams } else { 0 };
                    self.session.ended_reset(Some(streams), now_ns);
                }
            }
        }
        while let Some(outcome) = self.session.next_outcome() {
            self.busy.remove(&(outcome.user as u16));
            self.found.commands += 1;
            self.found.failed += u64::from(outcome.result.is_err());
        }
    }

    /// Starts the command whose first transfer is line `at`.
    fn start(&mut self, at: usize) {
        let after = &self.lines[at..];
        let is_command = |line: &&Line| line.is_submitted && line.pipe == Pipe::Command;
        let unit = after.iter().find(is_command).expect("a command follows its transfers");
        let tag = &unit.data[2..4];
        // With streams its data was submitted just before; without, after the device has announced it, and before its status.
        let is_data = |line: &&Line| line.is_submitted && matches!(line.pipe, Pipe::DataIn | Pipe::DataOut);
        let data = if self.has_streams {
            after.iter().take_while(|line| !is_command(line)).find(is_data)
        } else {
            // After TASK SET FULL (0x28) it is sent again.
            let is_final = |line: &Line| {
                let is_unit = line.pipe == Pipe::Status && !line.is_submitted && line.data.len() >= 4;
                is_unit && line.data[2..4] == *tag && line.data.get(6) != Some(&0x28)
            };
            let answer = after.iter().position(is_final).expect("it was answered");
            let is_announced = matches!(after[answer].data[0], 6 | 7);
            is_announced.then(|| after[answer..].iter().find(is_data).expect("its data"))
        };
        let request = request(&unit.data, data.map(|line| (line.pipe, line.bytes)));
        // The session takes the first free slot.
        let slot = self.first_free();
        let started = self.session.start(request, slot.into(), after[0].now_ns);
        assert_eq!(started, Ok(slot), "line {at}");
        self.busy.insert(slot);
    }

    fn first_free(&self) -> u16 {
        (0..).find(|slot| !self.busy.contains(slot)).expect("there are fewer slots")
    }

    /// True if line `at` may begin a new command: a unit with the tag of the first free slot follows.
    fn may_begin(&self, at: usize) -> bool {
        let mut submitted = self.lines[at..].iter().filter(|line| line.is_submitted);
        let ends = |line: &&Line| match line.pipe {
            Pipe::Command => true,
            // Without streams it answers an announcement.
            Pipe::DataIn | Pipe::DataOut => !self.has_streams,
            Pipe::Status => false,
        };
        let Some(Line { pipe: Pipe::Command, data, .. }) = submitted.find(ends) else { return false };
        data[0] == 1 && u16::from_be_bytes([data[2], data[3]]) == self.first_free() + 1
    }

    /// Feeds the oldest answer that the session has not got; false: there is none.
    fn feed(&mut self) -> bool {
        let Some((at, pipe, slot)) = self.arrived.pop_front() else { return false };
        self.ended(at, pipe, slot);
        self.collect(self.lines[at].now_ns);
        true
    }

    fn submitted(&mut self, at: usize) {
        let line = self.lines[at].clone();
        self.collect(line.now_ns);
        while self.actions.is_empty() {
            if self.may_begin(at) {
                self.start(at);
                self.collect(line.now_ns);
            } else if self.feed() {
                // It may submit something now.
            } else if self.session.next_deadline_ns() <= line.now_ns {
                self.session.tick(line.now_ns);
                self.collect(line.now_ns);
            } else {
                panic!("line {at}: the session submits nothing: {line:?}");
            }
        }
        let (pipe, slot, bytes) = self.actions.pop_front().unwrap_or_else(|| panic!("{line:?}"));
        assert_eq!((pipe, bytes), (line.pipe, line.bytes), "line {at}: {line:?}");
        if pipe == Pipe::Command {
            let mut unit = [0; COMMAND_BYTES];
            let length = self.session.outgoing(slot, &mut unit);
            assert_eq!(unit[..length], line.data, "line {at}");
        }
        assert_eq!(self.pending.insert(line.urb, (pipe, slot)), None, "line {at}");
    }

    fn ended(&mut self, at: usize, pipe: Pipe, slot: u16) {
        let Line { now_ns, status, bytes, mut data, .. } = self.lines[at].clone();
        let result = match status {
            0 => Ok(bytes),
            -2 | -104 => Err(TransferError::Cancelled),
            -32 => Err(TransferError::Stall),
            -108 => Err(TransferError::Gone),
            code => Err(TransferError::Bus(-code)),
        };
        // The end of a long unit is not in the capture.
        data.resize(if result.is_ok() { bytes as usize } else { 0 }, 0);
        self.session.ended_transfer(pipe, slot, result, &data, now_ns);
    }

    fn run(mut self) -> (Replayed, Counts) {
        for at in 0..self.lines.len() {
            if self.lines[at].is_submitted {
                self.submitted(at);
            } else {
                let Line { urb, pipe, .. } = &self.lines[at];
                let found = self.pending.remove(urb);
                let (known, slot) = found.unwrap_or_else(|| panic!("line {at}: nothing is pending"));
                assert_eq!(known, *pipe, "line {at}");
                self.arrived.push_back((at, known, slot));
            }
        }
        while self.feed() {}
        self.collect(self.lines.last().expect("lines").now_ns);
        assert!(self.session.is_idle() && self.actions.is_empty(), "every command has ended");
        (self.found, self.session.counts())
    }
}

fn replay(text: &str) -> (Replayed, Counts) {
    Replay::new(text).run()
}

#[test]
fn exchanges_with_qemus_disk_and_with_ours_are_repeated_transfer_by_transfer() {
    for (name, text) in [
        ("qemu", include_str!("../captures/qemu.txt")),
        ("streams", include_str!("../captures/streams.txt")),
        ("high-speed", include_str!("../captures/high-speed.txt")),
    ] {
        let (found, counts) = replay(text);
        println!("{name}: {found:?} {counts:?}");
        assert!(found.commands > 10, "{name}: {found:?}");
        assert_eq!((counts.timeouts, counts.violations, counts.port_resets), (0, 0, 0), "{name}");
    }
}

#[test]
fn recorded_faults_lead_to_the_recorded_recovery() {
    for (name, text) in [
        ("streams-faults", include_str!("../captures/streams-faults.txt")),
        ("high-speed-faults", include_str!("../captures/high-speed-faults.txt")),
    ] {
        let (found, counts) = replay(text);
        println!("{name}: {found:?} {counts:?}");
        let Counts { timeouts, violations, port_resets, queue_full, .. } = counts;
        assert_eq!((timeouts, violations, port_resets, queue_full), (1, 1, 2, 1), "{name}");
    }
}

/// Goal: the comparison finds a difference: a command that the session would not send, or not with this tag.
#[test]
#[should_panic(expected = "line")]
fn another_tag_is_a_difference() {
    let text = include_str!("../captures/streams.txt");
    // The unit of the first TEST UNIT READY or INQUIRY: byte 3 is the tag.
    replay(&text.replacen("= 01000001 ", "= 01000002 ", 1));
}
