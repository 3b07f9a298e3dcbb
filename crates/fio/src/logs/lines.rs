//! The text of logs: one line a sample.
//!
//! From line to line only the value changes, as a rule: many I/Os end in one millisecond, and have the direction, size and priority of the
//! one before. The text before and behind the value is kept and copied, and a value of up to eight digits takes two multiplications
//! (`cargo xtask gate` counts the instructions of a logged I/O).

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
/// Longest text that is kept: a direction, a size, a priority, and what separates them.
const KEPT_BYTES: usize = 48;
/// Room for lines that are not written to the file yet, in bytes.
const ROOM_BYTES: usize = 32 << 10;

/// Text that stands in many lines.
#[derive(Debug, Clone, Copy)]
struct Kept {
    bytes: [u8; KEPT_BYTES],
    length: usize,
}

impl Kept {
    const EMPTY: Self = Self { bytes: [0; KEPT_BYTES], length: 0 };

    /// Keeps the text that `make` appends to an empty line.
    fn of(make: impl FnOnce(&mut Line<'_>)) -> Self {
        let mut bytes = [0; LINE_BYTES];
        let mut line = Line { bytes: &mut bytes, length: 0 };
        make(&mut line);
        let length = line.length;
        let mut kept = Self { length, ..Self::EMPTY };
        kept.bytes[..length].copy_from_slice(&bytes[..length]);
        kept
    }
}

/// A line in the making.
struct Line<'a> {
    bytes: &'a mut [u8; LINE_BYTES],
    length: usize,
}

impl Line<'_> {
    #[inline(always)]
    fn push(&mut self, text: &[u8]) {
        self.bytes[self.length..][..text.len()].copy_from_slice(text);
        self.length += text.len();
    }

    /// The whole room of the text is copied, in a few vectors: its length is not known in advance, and this is.
    #[inline(always)]
    fn push_kept(&mut self, kept: &Kept) {
        self.bytes[self.length..][..KEPT_BYTES].copy_from_slice(&kept.bytes);
        self.length += kept.length;
    }

    /// Most values have at most eight digits.
    #[inline(always)]
    fn number(&mut self, number: u64) {
        if number < 10_000 {
            self.digits_of(number as u32);
        } else if number < 100_000_000 {
            self.digits_of((number / 10_000) as u32);
            self.push(&four_digits((number % 10_000) as u32));
        } else {
            self.push(itoa::Buffer::new().format(number).as_bytes());
        }
    }

    /// The digits of a number below 10,000, without zeros before it.
    #[inline(always)]
    fn digits_of(&mut self, number: u32) {
        let zeros = usize::from(number < 10) + usize::from(number < 100) + usize::from(number < 1_000);
        let digits = u32::from_le_bytes(four_digits(number)) >> (8 * zeros);
        self.bytes[self.length..][..4].copy_from_slice(&digits.to_le_bytes());
        self.length += 4 - zeros;
    }

    fn next(&mut self, number: u64) {
        self.push(b", ");
        self.number(number);
    }
}

/// Returns the four digits of a number below 10,000: all of them at once, in the four bytes of a word.
#[inline(always)]
fn four_digits(number: u32) -> [u8; 4] {
    let hundreds = number / 100;
    let pairs = hundreds | (number - 100 * hundreds) << 16;
    // x * 103 / 1024 is x / 10, rounded down, for each x below 100.
    let tens = ((pairs * 103) >> 10) & 0x000f_000f;
    (tens | (pairs - 10 * tens) << 8 | 0x3030_3030).to_le_bytes()
}

/// The columns after the value that are often equal in consecutive lines; a second value, an offset and an issue time are not.
type Tail = (u32, u64, Priority);

/// The text before and behind the value, kept from line to line.
#[derive(Debug)]
pub(super) struct Around {
    /// The time in milliseconds whose text is kept.
    ms: Option<u64>,
    head: Kept,
    tail_of: Option<Tail>,
    tail: Kept,
}

impl Default for Around {
    fn default() -> Self {
        Self { ms: None, head: Kept::EMPTY, tail_of: None, tail: Kept::EMPTY }
    }
}

impl Around {
    /// Sets the text to that of a sample.
    #[inline(always)]
    pub(super) fn set(&mut self, sample: &Sample) {
        self.set_head(sample.ms);
        let tail_of = (sample.direction, sample.bytes, sample.priority);
        if self.tail_of != Some(tail_of) {
            self.tail_of = Some(tail_of);
            self.tail = Kept::of(|tail| push_rest(tail, sample));
        }
    }

    #[inline(always)]
    fn set_head(&mut self, ms: u64) {
        if self.ms != Some(ms) {
            self.ms = Some(ms);
            self.head = Kept::of(|head| {
                head.number(ms);
                head.push(b", ");
            });
        }
    }
}

/// Lines that are not written to their file yet.
#[derive(Debug)]
struct Room<W: Write> {
    out: W,
    bytes: Box<[u8]>,
    /// How long the lines are.
    length: usize,
}

impl<W: Write> Room<W> {
    /// Returns where the next line is made; [`Self::length`] grows by its length afterwards.
    #[inline(always)]
    fn line(&mut self) -> io::Result<Line<'_>> {
        if self.bytes.len() - self.length < LINE_BYTES {
            self.empty()?;
        }
        let bytes = self.bytes[self.length..].first_chunk_mut().expect("there is room for a line");
        Ok(Line { bytes, length: 0 })
    }

    fn empty(&mut self) -> io::Result<()> {
        self.out.write_all(&self.bytes[..std::mem::take(&mut self.length)])
    }
}

/// Writes the lines of one file.
#[derive(Debug)]
pub(super) struct Lines<W: Write> {
    room: Room<W>,
    around: Around,
}

impl<W: Write> Lines<W> {
    pub(super) fn new(out: W) -> Self {
        Self { room: Room { out, bytes: vec![0; ROOM_BYTES].into(), length: 0 }, around: Around::default() }
    }

    /// Writes a sample as a line, at the latest when [`Self::flush`] is called.
    pub(super) fn write(&mut self, sample: &Sample) -> io::Result<()> {
        if sample.second.is_none() && sample.offset.is_none() && sample.issue_ns.is_none() {
            self.around.set(sample);
            return write_between(&mut self.room, &self.around, sample.value);
        }
        self.around.set_head(sample.ms);
        let mut line = self.room.line()?;
        line.push_kept(&self.around.head);
        line.number(sample.value);
        push_rest(&mut line, sample);
        let length = line.length;
        self.room.length += length;
        Ok(())
    }

    /// Writes a line of a value and the text around it.
    #[inline(always)]
    pub(super) fn write_value(&mut self, around: &Around, value: u64) -> io::Result<()> {
        write_between(&mut self.room, around, value)
    }

    /// Writes a line of another form, without its end.
    pub(super) fn write_other(&mut self, line: std::fmt::Arguments<'_>) -> io::Result<()> {
        self.room.empty()?;
        writeln!(self.room.out, "{line}")
    }

    /// Returns what the lines are written to.
    pub(super) fn out_mut(&mut self) -> &mut W {
        &mut self.room.out
    }

    /// Writes what is not written yet.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        self.room.empty()?;
        self.room.out.flush()
    }
}

/// What was not written when a writer ends, because another log failed, is written as far as it can be.
impl<W: Write> Drop for Room<W> {
    fn drop(&mut self) {
        let _ = self.empty();
    }
}

#[inline(always)]
fn write_between<W: Write>(room: &mut Room<W>, around: &Around, value: u64) -> io::Result<()> {
    let mut line = room.line()?;
    line.push_kept(&around.head);
    line.number(value);
    line.push_kept(&around.tail);
    let length = line.length;
    room.length += length;
    Ok(())
}

/// Appends what follows the value, to the end of the line.
fn push_rest(line: &mut Line<'_>, sample: &Sample) {
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
        let mut lines = Lines::new(&mut line);
        lines.write(&longest).expect("memory");
        lines.flush().expect("memory");
        drop(lines);
        let (most, narrow) = (u64::MAX, u32::MAX);
        let expected = format!("{most}, {most}, {most}, {narrow}, {most}, {most}, 0xffff, {most}\n");
        assert_eq!(String::from_utf8_lossy(&line), expected);
        assert!(line.len() <= LINE_BYTES);
    }

    /// Goal: kept text is never that of another line. Method: every combination of what may change, in an order in which each part changes
    /// and stays, compared with a line that is formatted as a whole.
    #[test]
    fn what_is_kept_of_a_line_is_of_the_line_before() {
        let (mut written, mut expected) = (Vec::new(), String::new());
        let mut lines = Lines::new(&mut written);
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
            lines.write(&sample).expect("memory");
            let Sample { ms, value, direction, bytes, .. } = sample;
            let offset = sample.offset.map_or_else(String::new, |offset| format!(", {offset}"));
            let priority = match sample.priority {
                Priority::IsRealTime(is) => u8::from(is).to_string(),
                Priority::Whole(value) => format!("0x{value:04x}"),
            };
            let issued = sample.issue_ns.map_or_else(String::new, |ns| format!(", {ns}"));
            expected += &format!("{ms}, {value}, {direction}, {bytes}{offset}, {priority}{issued}\n");
        }
        lines.flush().expect("memory");
        drop(lines);
        assert_eq!(String::from_utf8(written).expect("text"), expected);
    }

    /// Goal: lines are written although the writer ended without being flushed.
    #[test]
    fn a_writer_that_is_dropped_writes_its_lines() {
        let sample = Sample {
            ms: 1,
            value: 2,
            second: None,
            direction: 0,
            bytes: 512,
            offset: None,
            priority: Priority::IsRealTime(false),
            issue_ns: None,
        };
        let mut written = Vec::new();
        let mut lines = Lines::new(&mut written);
        lines.write(&sample).expect("memory");
        drop(lines);
        assert_eq!(written, b"1, 2, 0, 512, 0\n");
    }

    /// Goal: digits are those of the standard library, at every length, and the longest kept text has room.
    #[test]
    fn numbers_have_the_digits_of_the_standard_library() {
        let powers = (0..20).flat_map(|power| [10_u64.pow(power) - 1, 10_u64.pow(power), 10_u64.pow(power) + 1]);
        for number in (0..100_000).chain(powers).chain((0..10_000).map(|number| number * 10_007)).chain([u64::MAX]) {
            let mut bytes = [0; LINE_BYTES];
            let mut line = Line { bytes: &mut bytes, length: 0 };
            line.number(number);
            let length = line.length;
            assert_eq!(String::from_utf8_lossy(&bytes[..length]), number.to_string());
        }
        let longest = Sample {
            ms: u64::MAX,
            value: 1,
            second: None,
            direction: u32::MAX,
            bytes: u64::MAX,
            offset: None,
            priority: Priority::Whole(u16::MAX),
            issue_ns: None,
        };
        let mut written = Vec::new();
        let mut lines = Lines::new(&mut written);
        // Also where a line ends at the end of the room.
        (0..2_000).for_each(|_| lines.write(&longest).expect("memory"));
        lines.flush().expect("memory");
        drop(lines);
        let line = format!("{}, 1, {}, {}, 0xffff\n", u64::MAX, u32::MAX, u64::MAX);
        assert_eq!(String::from_utf8(written).expect("text"), line.repeat(2_000));
    }
}
