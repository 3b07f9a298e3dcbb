//! fio's iologs: I/O written down line by line, to be replayed.
//!
//! Versions 2 and 3. A log is read as a stream, line by line, so its length is not limited; only the
//! names of its files are kept. [`scan`] summarises a log before the replay, [`Replayer`] returns its I/Os,
//! and both change offsets and times in the same way ([`ReplaySettings`]).
//!
//! Cannot read: version 1 (as fio), binary traces of blktrace, names with blanks.
//!
//! Source: fio's documentation, "Trace file format", and fio 3.33 itself. They differ in two respects, in which this
//! module follows fio itself: the times of version 3 are microseconds; the number of a `wait` of version 2 is milliseconds since
//! the replay began, not microseconds since the last one.

use crate::OpKind;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::fmt;
use std::io::{BufRead, BufReader, Read};

/// The longest line, in bytes: a path and three numbers.
const LINE_BYTES_MAX: u64 = 8192;
/// Files of a log at most: a request names its file in 16 bits.
const FILES_MAX: usize = 1 << 16;
/// The first line of what we write.
pub const IOLOG_HEADER: &str = "fio version 3 iolog";

/// How a log is replayed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReplaySettings {
    /// Each I/O has its own time; otherwise they follow each other as fast as possible.
    pub is_paced: bool,
    /// Percentage of the log's pace: 200 is twice as fast.
    pub time_scale_percent: u64,
    /// All I/O goes to this file.
    pub redirect: Option<String>,
    /// Offsets are rounded down to multiples of it; a power of two.
    pub align_bytes: u64,
    /// Offsets are divided by it before.
    pub offset_divisor: u64,
    /// What is left out.
    pub skips: Vec<OpKind>,
}

impl Default for ReplaySettings {
    fn default() -> Self {
        Self {
            is_paced: true,
            time_scale_percent: 100,
            redirect: None,
            align_bytes: 1,
            offset_divisor: 1,
            skips: Vec::new(),
        }
    }
}

/// A log that a job replays.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ReplayPlan {
    /// Its path; `-`: standard input.
    pub log: String,
    /// How.
    #[serde(flatten)]
    pub settings: ReplaySettings,
    /// The names in the log of the job's files, in their order; one name, that of the redirection, if there is one.
    pub names: Vec<String>,
    /// The operations in it, sync calls too.
    pub ops: Vec<OpKind>,
    /// The longest transfer, in bytes.
    pub length_bytes_max: u64,
}

/// A summary of a log.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IologSummary {
    /// Files with I/O, in the order of their first I/O, and the largest end of their I/Os, in bytes.
    pub files: Vec<(String, u64)>,
    /// Reads, writes, trims, sync calls.
    pub ops: [IologOps; 4],
    /// When the last I/O is due, in nanoseconds.
    pub end_ns: u64,
}

/// A summary of one operation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IologOps {
    /// How often.
    pub count: u64,
    /// Bytes altogether.
    pub bytes: u64,
    /// The longest, in bytes.
    pub length_bytes_max: u64,
    /// All offsets and lengths are multiples of it.
    pub unit_bytes: u64,
}

impl IologSummary {
    /// Returns the summary of one operation.
    pub fn of(&self, op: OpKind) -> &IologOps {
        &self.ops[index(op)]
    }
}

fn index(op: OpKind) -> usize {
    match op {
        OpKind::Read => 0,
        OpKind::Write => 1,
        OpKind::Trim => 2,
        OpKind::Sync => 3,
    }
}

/// One I/O of a log, as it is replayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IologIo {
    /// When it is due, in nanoseconds since the replay began; never earlier than the one before.
    pub due_ns: u64,
    /// What.
    pub op: OpKind,
    /// `fdatasync` instead of `fsync`.
    pub data_only: bool,
    /// Where, in bytes.
    pub offset: u64,
    /// How much, in bytes; 0 for a sync call.
    pub length: u32,
}

/// A log that cannot be replayed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IologError {
    /// The line, from 1.
    pub line: u64,
    /// Why it is invalid.
    pub reason: String,
}

impl fmt::Display for IologError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.reason)
    }
}

impl std::error::Error for IologError {}

/// A parsed line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Add,
    Open,
    Close,
    Io(IologIo),
}

/// A log's lines.
#[derive(Debug)]
struct Lines<R> {
    input: BufReader<R>,
    buffer: Vec<u8>,
    line: u64,
    is_version_3: bool,
    /// The due time of the next I/O, in nanoseconds.
    at_ns: u64,
}

impl<R: Read> Lines<R> {
    fn new(input: R) -> Result<Self, IologError> {
        let input = BufReader::with_capacity(64 << 10, input);
        let mut lines = Self { input, buffer: Vec::new(), line: 0, is_version_3: false, at_ns: 0 };
        let has_line = lines.read_line()?;
        let header = std::str::from_utf8(&lines.buffer).unwrap_or_default().trim_end();
        match header {
            "fio version 3 iolog" => lines.is_version_3 = true,
            "fio version 2 iolog" => {}
            _ if is_blktrace(&lines.buffer) => {
                return Err(lines.error(
                    "it is a binary trace of blktrace, which is not read here; instead: print it with `blkparse`, and \
                     write its queued requests (`Q`) as lines `MICROSECONDS DEVICE read|write|trim OFFSET LENGTH` below \
                     `fio version 3 iolog`"
                        .to_owned(),
                ));
            }
            _ if !has_line => return Err(lines.error("the log is empty".to_owned())),
            _ => {
                return Err(lines.error(
                    "it does not begin with `fio version 2 iolog` or `fio version 3 iolog`, so it is not an iolog"
                        .to_owned(),
                ));
            }
        }
        Ok(lines)
    }

    fn error(&self, reason: String) -> IologError {
        IologError { line: self.line.max(1), reason }
    }

    /// Reads the next line; false at the end.
    fn read_line(&mut self) -> Result<bool, IologError> {
        self.buffer.clear();
        self.line += 1;
        let read = (&mut self.input).take(LINE_BYTES_MAX).read_until(b'\n', &mut self.buffer);
        match read {
            Ok(0) => Ok(false),
            // The first line may be the beginning of something binary.
            Ok(n) if n as u64 == LINE_BYTES_MAX && self.buffer.last() != Some(&b'\n') && self.line > 1 => {
                Err(self.error(format!("it is longer than {LINE_BYTES_MAX} bytes")))
            }
            Ok(_) => Ok(true),
            Err(error) => Err(self.error(format!("it cannot be read: {error}"))),
        }
    }

    /// Returns the next line about a file: its name, and the action. Handles times, waits and empty lines before
    /// it.
    fn next(&mut self) -> Result<Option<(&str, Action)>, IologError> {
        loop {
            if !self.read_line()? {
                return Ok(None);
            }
            match parse(&self.buffer, self.is_version_3) {
                Ok(Parsed::Nothing) => {}
                Ok(Parsed::Wait { until_ns }) => self.at_ns = self.at_ns.max(until_ns),
                Ok(Parsed::Line { at_ns, name, mut action }) => {
                    // Lines of several processes may not be in order; due times never decrease.
                    self.at_ns = self.at_ns.max(at_ns);
                    if let Action::Io(io) = &mut action {
                        io.due_ns = self.at_ns;
                    }
                    let name = name.start..name.end;
                    let name =
                        std::str::from_utf8(&self.buffer[name]).unwrap_or_else(|_| unreachable!("it was parsed"));
                    return Ok(Some((name, action)));
                }
                Err(reason) => return Err(self.error(reason)),
            }
        }
    }
}

enum Parsed {
    Nothing,
    Wait { until_ns: u64 },
    Line { at_ns: u64, name: std::ops::Range<usize>, action: Action },
}

/// A trace of blktrace begins with the number 0x65617400 and a version in the lowest byte.
fn is_blktrace(begin: &[u8]) -> bool {
    let word = begin.first_chunk::<4>().map(|bytes| u32::from_le_bytes(*bytes));
    word.is_some_and(|word| [word, word.swap_bytes()].iter().any(|word| word & 0xffff_ff00 == 0x6561_7400))
}

/// Parses a line, whose parts are separated by blanks.
fn parse(line: &[u8], is_version_3: bool) -> Result<Parsed, String> {
    let text = std::str::from_utf8(line).map_err(|_| "it is not text".to_owned())?;
    if text.starts_with("fio version ") {
        return Err("another log begins here: fio appends to a log that exists; instead: a file for each".to_owned());
    }
    let mut words = text.split_ascii_whitespace();
    let Some(first) = words.next() else { return Ok(Parsed::Nothing) };
    let (at_ns, name) = match is_version_3 {
        true => {
            let at_ns =
                number(first, "time")?.checked_mul(1_000).ok_or_else(|| format!("the time {first} is too late"))?;
            (at_ns, words.next().ok_or("after the time, a file and an action are missing")?)
        }
        false => (0, first),
    };
    let word = words.next().ok_or_else(|| format!("after `{name}`, an action is missing"))?;
    let rest: Vec<&str> = words.by_ref().take(3).collect();
    let begin = name.as_ptr() as usize - text.as_ptr() as usize;
    let range = begin..begin + name.len();
    let file_action = match word {
        "add" => Some(Action::Add),
        "open" => Some(Action::Open),
        "close" => Some(Action::Close),
        _ => None,
    };
    if let Some(action) = file_action {
        return match rest[..] {
            [] => Ok(Parsed::Line { at_ns, name: range, action }),
            _ => Err(format!("`{word}` takes no numbers")),
        };
    }
    let (op, data_only) = match word {
        "read" => (OpKind::Read, false),
        "write" => (OpKind::Write, false),
        "trim" => (OpKind::Trim, false),
        "sync" => (OpKind::Sync, false),
        "datasync" => (OpKind::Sync, true),
        "wait" if is_version_3 => return Err("version 3 has times, and no `wait`".to_owned()),
        "wait" => (OpKind::Sync, false),
        "sync_file_range" | "syncfs" => return Err(format!("`{word}` is not replayed here; instead: `datasync`")),
        _ => {
            return Err(format!(
                "`{word}` is not one of add, open, close, read, write, trim, sync, datasync{}",
                if is_version_3 { "" } else { ", wait" }
            ));
        }
    };
    let (offset, length) = match rest[..] {
        [offset, length] => (number(offset, "offset")?, number(length, "length")?),
        _ => return Err(format!("`{word}` must be followed by an offset and a length")),
    };
    if word == "wait" {
        let until_ns = offset.checked_mul(1_000_000).ok_or_else(|| format!("the wait {offset} is too long"))?;
        return Ok(Parsed::Wait { until_ns });
    }
    if op == OpKind::Sync {
        let io = IologIo { due_ns: 0, op, data_only, offset: 0, length: 0 };
        return Ok(Parsed::Line { at_ns, name: range, action: Action::Io(io) });
    }
    if length == 0 {
        return Err(format!("a {word} of 0 bytes does nothing"));
    }
    let length32 = u32::try_from(length).ok().filter(|length| *length <= 1 << 31);
    let length = length32.ok_or_else(|| format!("{length} bytes are more than one I/O moves (2 GiB)"))?;
    if offset.checked_add(u64::from(length)).is_none_or(|end| end > i64::MAX as u64) {
        return Err("it ends beyond 2^63 bytes".to_owned());
    }
    Ok(Parsed::Line { at_ns, name: range, action: Action::Io(IologIo { due_ns: 0, op, data_only, offset, length }) })
}

fn number(text: &str, what: &str) -> Result<u64, String> {
    let is_plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_plain).ok_or_else(|| format!("the {what} `{text}` is not a whole number"))
}

/// The I/Os of a log, changed as the settings say.
#[derive(Debug)]
pub struct Replayer<R> {
    lines: Lines<R>,
    settings: ReplaySettings,
}

impl<R: Read> Replayer<R> {
    /// Reads the first line.
    ///
    /// # Errors
    /// It is not a log.
    pub fn new(input: R, settings: ReplaySettings) -> Result<Self, IologError> {
        Ok(Self { lines: Lines::new(input)?, settings })
    }

    /// The line that was read last, from 1.
    pub fn line(&self) -> u64 {
        self.lines.line
    }

    /// The next I/O and the name of its file; `None` at the end.
    ///
    /// # Errors
    /// A line that cannot be read.
    pub fn next_io(&mut self) -> Result<Option<(&str, IologIo)>, IologError> {
        loop {
            let found = match self.lines.next()? {
                None => return Ok(None),
                Some((_, Action::Io(io))) => change(io, &self.settings),
                Some(_) => None,
            };
            if let Some(io) = found {
                return Ok(Some((self.name(), io)));
            }
        }
    }

    /// The name of the file in the line that was read last, or of the redirection.
    fn name(&self) -> &str {
        if let Some(name) = &self.settings.redirect {
            return name;
        }
        let text = std::str::from_utf8(&self.lines.buffer).unwrap_or_default();
        text.split_ascii_whitespace().nth(usize::from(self.lines.is_version_3)).unwrap_or_default()
    }
}

/// Applies the settings to an I/O; `None`: it is left out.
fn change(io: IologIo, settings: &ReplaySettings) -> Option<IologIo> {
    if settings.skips.contains(&io.op) {
        return None;
    }
    let align = settings.align_bytes.max(1);
    let offset = io.offset / settings.offset_divisor.max(1) / align * align;
    let due = u128::from(io.due_ns) * 100 / u128::from(settings.time_scale_percent.max(1));
    let due_ns = if settings.is_paced { u64::try_from(due).unwrap_or(u64::MAX) } else { 0 };
    Some(IologIo { due_ns, offset, ..io })
}

/// Reads a whole log and returns a summary of its replay. Files must be added and opened before their I/O, as in
/// fio.
///
/// # Errors
/// The first line that is wrong.
pub fn scan<R: Read>(input: R, settings: &ReplaySettings) -> Result<IologSummary, IologError> {
    #[derive(Default)]
    struct Known {
        is_open: bool,
        /// Its index in the summary, if it has I/O.
        index: Option<usize>,
    }
    let mut lines = Lines::new(input)?;
    let mut known: HashMap<String, Known> = HashMap::new();
    let mut summary = IologSummary::default();
    let mut redirected = None;
    loop {
        let Some((name, action)) = lines.next()? else { return Ok(summary) };
        let is_full = known.len() >= FILES_MAX;
        let wrong = match (action, known.get_mut(name)) {
            (Action::Add, None) if is_full => Some(format!("there are more than {FILES_MAX} files")),
            (Action::Add, None) => {
                known.insert(name.to_owned(), Known::default());
                None
            }
            (Action::Add, Some(_)) => None,
            (_, None) => Some(format!("`{name}` was not added: `add` it first")),
            (Action::Open, Some(file)) => {
                file.is_open = true;
                None
            }
            (Action::Close, Some(file)) => {
                file.is_open = false;
                None
            }
            (Action::Io(_), Some(file)) if !file.is_open => Some(format!("`{name}` is not open: `open` it first")),
            (Action::Io(io), Some(file)) => {
                if let Some(io) = change(io, settings) {
                    let known_index = if settings.redirect.is_some() { &mut redirected } else { &mut file.index };
                    let file_index = *known_index.get_or_insert_with(|| {
                        summary.files.push((settings.redirect.as_deref().unwrap_or(name).to_owned(), 0));
                        summary.files.len() - 1
                    });
                    let end = &mut summary.files[file_index].1;
                    *end = (*end).max(io.offset + u64::from(io.length));
                    let ops = &mut summary.ops[index(io.op)];
                    let length = u64::from(io.length);
                    ops.count += 1;
                    ops.bytes = ops.bytes.saturating_add(length);
                    ops.length_bytes_max = ops.length_bytes_max.max(length);
                    ops.unit_bytes = gcd(gcd(ops.unit_bytes, io.offset), length);
                    summary.end_ns = io.due_ns;
                }
                None
            }
        };
        if let Some(reason) = wrong {
            return Err(lines.error(reason));
        }
    }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scanned(text: &str) -> Result<IologSummary, String> {
        scan(text.as_bytes(), &ReplaySettings::default()).map_err(|error| error.to_string())
    }

    fn replayed(text: &str, settings: ReplaySettings) -> Vec<(String, IologIo)> {
        let mut replayer = Replayer::new(text.as_bytes(), settings).expect("a log");
        let mut all = Vec::new();
        while let Some((name, io)) = replayer.next_io().expect("a good line") {
            all.push((name.to_owned(), io));
        }
        all
    }

    const V3: &str = "fio version 3 iolog\n18 /a add\n169 /a open\n172 /a write 0 4096\n190 /a read 45056 512\n\
                      205 /a datasync 28672 0\n206 /b add\n206 /b open\n1951 /b trim 8192 4096\n3194 /a close\n";

    #[test]
    fn version_3_is_read_with_its_times() {
        let summary = scanned(V3).expect("a good log");
        assert_eq!(summary.files, [("/a".to_owned(), 45568), ("/b".to_owned(), 12288)]);
        assert_eq!(summary.end_ns, 1_951_000);
        assert_eq!(summary.of(OpKind::Read).unit_bytes, 512);
        assert_eq!(summary.of(OpKind::Write).bytes, 4096);
        let ios = replayed(V3, ReplaySettings::default());
        let times: Vec<u64> = ios.iter().map(|(_, io)| io.due_ns).collect();
        assert_eq!(times, [172_000, 190_000, 205_000, 1_951_000]);
        assert_eq!((ios[2].1.op, ios[2].1.data_only, ios[2].1.length), (OpKind::Sync, true, 0));
        assert_eq!(ios[3].0, "/b");
    }

    #[test]
    fn the_waits_of_version_2_are_milliseconds_since_the_beginning() {
        let text = "fio version 2 iolog\nf add\nf open\nf read 0 512\nf wait 300 0\nf read 512 512\nf wait 300 0\n\
                    f read 0 512\nf wait 600 9\nf read 0 512\nf close\n";
        let times: Vec<u64> = replayed(text, ReplaySettings::default()).iter().map(|(_, io)| io.due_ns).collect();
        assert_eq!(times, [0, 300_000_000, 300_000_000, 600_000_000]);
    }

    #[test]
    fn offsets_are_divided_and_then_rounded_down_and_times_scaled() {
        let settings =
            ReplaySettings { align_bytes: 4096, offset_divisor: 3, time_scale_percent: 50, ..Default::default() };
        let text = "fio version 3 iolog\n0 f add\n0 f open\n0 f read 5000 3000\n100 f read 100000 10000\n";
        let ios = replayed(text, settings.clone());
        // As fio 3.33: 0 and 32768.
        assert_eq!((ios[0].1.offset, ios[1].1.offset, ios[1].1.length), (0, 32768, 10000));
        assert_eq!(ios[1].1.due_ns, 200_000);
        let settings = ReplaySettings {
            redirect: Some("/dev/x".into()),
            skips: vec![OpKind::Trim, OpKind::Sync],
            is_paced: false,
            ..settings
        };
        let ios = replayed(V3, settings);
        assert_eq!(ios.len(), 2);
        assert!(ios.iter().all(|(name, io)| name == "/dev/x" && io.due_ns == 0));
    }

    #[test]
    fn an_error_is_reported_with_its_line() {
        let begin = "fio version 2 iolog\nf add\nf open\n";
        for (bad, sentence) in [
            ("f read 0", "line 4: `read` must be followed by an offset and a length"),
            ("f read 0 1 2", "line 4: `read` must be followed by an offset and a length"),
            ("f read x 1", "line 4: the offset `x` is not a whole number"),
            ("f read -1 1", "line 4: the offset `-1` is not a whole number"),
            ("f read 0 0", "line 4: a read of 0 bytes does nothing"),
            ("f read 0 3000000000", "line 4: 3000000000 bytes are more than one I/O moves (2 GiB)"),
            ("f read 9223372036854775807 1", "line 4: it ends beyond 2^63 bytes"),
            ("f", "line 4: after `f`, an action is missing"),
            ("f close 3", "line 4: `close` takes no numbers"),
            ("f jump 0 1", "line 4: `jump` is not one of add, open, close, read, write, trim, sync, datasync, wait"),
            ("g read 0 1", "line 4: `g` was not added: `add` it first"),
            ("f close\nf read 0 1", "line 5: `f` is not open: `open` it first"),
            ("f sync_file_range 0 1", "line 4: `sync_file_range` is not replayed here; instead: `datasync`"),
            (
                "fio version 2 iolog",
                "line 4: another log begins here: fio appends to a log that exists; instead: a file for each",
            ),
        ] {
            assert_eq!(scanned(&format!("{begin}{bad}\n")).expect_err(bad), sentence);
        }
        let long = format!("{begin}{} read 0 1\n", "f".repeat(9000));
        assert_eq!(scanned(&long).expect_err("long"), "line 4: it is longer than 8192 bytes");
        assert_eq!(scanned("").expect_err("empty"), "line 1: the log is empty");
        assert!(scanned("1,2,3\n").expect_err("version 1").contains("so it is not an iolog"));
        let v3 = "fio version 3 iolog\n0 f add\n0 f wait 0 0\n";
        assert_eq!(scanned(v3).expect_err("wait"), "line 3: version 3 has times, and no `wait`");
        let binary = scan(&[7, 0x74, 0x61, 0x65, 0, 0, 0][..], &ReplaySettings::default()).expect_err("binary");
        assert!(binary.reason.contains("blkparse"), "{binary}");
    }

    #[test]
    fn time_does_not_go_back() {
        let text = "fio version 3 iolog\n9 f add\n9 f open\n9 f read 0 1\n5 f read 0 1\n";
        let times: Vec<u64> = replayed(text, ReplaySettings::default()).iter().map(|(_, io)| io.due_ns).collect();
        assert_eq!(times, [9000, 9000]);
    }
}
