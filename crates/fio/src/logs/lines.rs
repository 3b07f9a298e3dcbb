//! The text of logs: one line a sample.
//!
//! From line to line only the value changes, as a rule: many I/Os end in one millisecond, and have the direction, size and priority of the
//! one before. The text before and behind the value is kept and copied; formatting every number again took four times as long, and the
//! formatter of the standard library ten times as long as that.

use std::io::{self, Write};

/// One line of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sample {
    pub(super) ms: u64,
    pub(super) value: u64,
    /// The maximum, next to the mean.
    pub(super) second: Option<u64>,
    /// 0 read, 1 write, 2 trim.
    pub(super) direction: u32,
    pub(super) bytes: u64,
    pub(super) offset: Option<u64>,
    pub(super) priority: Priority,
    /// Time of submission; 0: unknown.
    pub(super) issue_ns: Option<u64>,
}

/// The column of the priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Priority {
    /// Whether its class is real time.
    IsRealTime(bool),
    /// The kernel's number.
    Whole(u16),
}

/// Longest line in bytes: six numbers of 20 digits, a direction of 10, a priority of 6, and what separates them.
const LINE_BYTES: usize = 160;

/// Text in the making.
#[derive(Debug, Clone, Copy)]
struct Text {
    bytes: [u8; LINE_BYTES],
    length: usize,
}

impl Text {
    const EMPTY: Self = Self { bytes: [0; LINE_BYTES], length: 0 };

    fn push(&mut self, text: &[u8]) {
        self.bytes[self.length..][..text.len()].copy_from_slice(text);
        self.length += text.len();
    }

    fn number(&mut self, number: u64) {
        self.push(itoa::Buffer::new().format(number).as_bytes());
    }

    fn next(&mut self, number: u64) {
        self.push(b", ");
        self.number(number);
    }

    fn text(&self) -> &[u8] {
        &self.bytes[..self.length]
    }
}

/// What is behind the value, if there is neither a second value nor an offset or issue time, which are others in each line.
type Tail = (u32, u64, Priority);

/// Writes the lines of one file.
#[derive(Debug)]
pub(super) struct Lines {
    /// The time in milliseconds whose text is kept.
    ms: Option<u64>,
    head: Text,
    tail_of: Option<Tail>,
    tail: Text,
}

impl Default for Lines {
    fn default() -> Self {
        Self { ms: None, head: Text::EMPTY, tail_of: None, tail: Text::EMPTY }
    }
}

impl Lines {
    /// Writes a sample as a line.
    pub(super) fn write(&mut self, sample: &Sample, out: &mut impl Write) -> io::Result<()> {
        if self.ms != Some(sample.ms) {
            self.ms = Some(sample.ms);
            self.head = Text::EMPTY;
            self.head.number(sample.ms);
            self.head.push(b", ");
        }
        let mut line = Text::EMPTY;
        line.push(self.head.text());
        line.number(sample.value);
        if sample.second.is_some() || sample.offset.is_some() || sample.issue_ns.is_some() {
            push_rest(&mut line, sample);
        } else {
            let tail_of = (sample.direction, sample.bytes, sample.priority);
            if self.tail_of != Some(tail_of) {
                self.tail_of = Some(tail_of);
                self.tail = Text::EMPTY;
                push_rest(&mut self.tail, sample);
            }
            line.push(self.tail.text());
        }
        out.write_all(line.text())
    }
}

/// Appends what follows the value, to the end of the line.
fn push_rest(line: &mut Text, sample: &Sample) {
    if let Some(second) = sample.second {
        line.next(second);
    }
    line.next(u64::from(sample.direction));
    line.next(sample.bytes);
    if let Some(offset) = sample.offset {
        line.next(offset);
    }
    match sample.priority {
        Priority::IsRealTime(is) => line.next(u64::from(is)),
        Priority::Whole(value) => line.push(format!(", 0x{value:04x}").as_bytes()),
    }
    if let Some(ns) = sample.issue_ns {
        line.next(ns);
    }
    line.push(b"\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_line_fits() {
        let longest = Sample {
            ms: u64::MAX,
            value: u64::MAX,
            second: Some(u64::MAX),
            direction: u32::MAX,
            bytes: u64::MAX,
            offset: Some(u64::MAX),
            priority: Priority::Whole(u16::MAX),
            issue_ns: Some(u64::MAX),
        };
        let mut line = Vec::new();
        Lines::default().write(&longest, &mut line).expect("memory");
        let (most, narrow) = (u64::MAX, u32::MAX);
        let expected = format!("{most}, {most}, {most}, {narrow}, {most}, {most}, 0xffff, {most}\n");
        assert_eq!(String::from_utf8_lossy(&line), expected);
        assert!(line.len() <= LINE_BYTES);
    }

    /// Goal: kept text is never that of another line. Method: every combination of what may change, in an order in which each part changes
    /// and stays, compared with a line that is formatted as a whole.
    #[test]
    fn what_is_kept_of_a_line_is_of_the_line_before() {
        let mut lines = Lines::default();
        let (mut written, mut expected) = (Vec::new(), String::new());
        for number in 0..4_096_u64 {
            let bit = |bit: u64| number >> bit & 1;
            let sample = Sample {
                ms: bit(0) * 7 + bit(11),
                value: number,
                second: None,
                direction: bit(1) as u32 + bit(10) as u32,
                bytes: 512 << bit(2),
                offset: (bit(3) & bit(4) == 1).then_some(number * 4096),
                priority: match bit(5) {
                    0 => Priority::IsRealTime(bit(6) == 1),
                    _ => Priority::Whole((bit(7) << 13 | bit(8)) as u16),
                },
                issue_ns: (bit(3) & bit(9) == 1).then_some(number),
            };
            lines.write(&sample, &mut written).expect("memory");
            let Sample { ms, value, direction, bytes, .. } = sample;
            let offset = sample.offset.map_or_else(String::new, |offset| format!(", {offset}"));
            let priority = match sample.priority {
                Priority::IsRealTime(is) => u8::from(is).to_string(),
                Priority::Whole(value) => format!("0x{value:04x}"),
            };
            let issued = sample.issue_ns.map_or_else(String::new, |ns| format!(", {ns}"));
            expected += &format!("{ms}, {value}, {direction}, {bytes}{offset}, {priority}{issued}\n");
        }
        assert_eq!(String::from_utf8(written).expect("text"), expected);
    }
}
