//! Logs that are stored compressed, as fio stores them (`log_store_compressed`), and what `fio --inflate-log` makes of
//! them.
//!
//! A file is zlib streams one after another. What they hold are not lines but fio's samples as its program has them in
//! memory, in the machine's byte order, so they differ from version to version, and nothing in the file says which:
//!
//! | bytes | to 3.36 | from 3.37 on |
//! |---|---|---|
//! | 8 | milliseconds | milliseconds |
//! | 8 | value | value |
//! | 8 | – | second value (`log_window_value=both`) |
//! | 4 | direction, and flags in the highest bits: 31 offset, 30 priority, 29 second value, 28 issue time | the same |
//! | 2 + 2 | priority, and nothing | the same |
//! | 8 | bytes | the same |
//! | 8 | offset, if flagged | the same; then the issue time, if flagged |
//!
//! What is written here is the first layout, which the fio of Debian 12 reads; the second where there are second values or
//! issue times, which no earlier fio has. Both are read: the layout is the one in which all samples of the first stream make sense.
//!
//! Cannot: store histograms. fio stores addresses of its memory instead of them; here they stay text.
//!
//! Source: files of fio 3.33, byte by byte; the second layout: `iolog.h` of later versions, not checked against a
//! file.

use flate2::Compression;
use flate2::bufread::ZlibDecoder;
use flate2::write::ZlibEncoder;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};

const HAS_OFFSET: u32 = 1 << 31;
const HAS_PRIORITY: u32 = 1 << 30;
const HAS_SECOND: u32 = 1 << 29;
const HAS_ISSUE_TIME: u32 = 1 << 28;
/// Where the class begins in a priority; 1 is real time.
const REAL_TIME_SHIFT: u32 = 13;
/// Samples of a stream, in bytes before compression.
const STREAM_BYTES: usize = 64 << 10;

/// What is unpacked at once: a multiple of all lengths of samples (32, 40, 48, 56).
const PIECE_BYTES: u64 = 3360 * 100;

/// One line of a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sample {
    pub(crate) ms: u64,
    pub(crate) value: u64,
    /// The maximum beside the mean.
    pub(crate) second: Option<u64>,
    /// 0 read, 1 write, 2 trim.
    pub(crate) direction: u32,
    pub(crate) bytes: u64,
    pub(crate) offset: Option<u64>,
    pub(crate) priority: Priority,
    /// When it was issued; 0: nobody can say.
    pub(crate) issue_ns: Option<u64>,
}

/// The column of the priority.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Priority {
    /// Whether its class is real time.
    IsRealTime(bool),
    /// The kernel's number.
    Whole(u16),
}

impl Sample {
    /// As a line of text.
    pub(crate) fn line(&self, out: &mut impl Write) -> io::Result<()> {
        write!(out, "{}, {}", self.ms, self.value)?;
        if let Some(second) = self.second {
            write!(out, ", {second}")?;
        }
        write!(out, ", {}, {}", self.direction, self.bytes)?;
        if let Some(offset) = self.offset {
            write!(out, ", {offset}")?;
        }
        match self.priority {
            Priority::IsRealTime(is) => write!(out, ", {}", u8::from(is))?,
            Priority::Whole(value) => write!(out, ", 0x{value:04x}")?,
        }
        match self.issue_ns {
            Some(ns) => writeln!(out, ", {ns}"),
            None => writeln!(out),
        }
    }
}

/// A log that is written compressed.
#[derive(Debug)]
pub(crate) struct Packer {
    file: File,
    samples: Vec<u8>,
}

impl Packer {
    pub(crate) fn new(file: File) -> Self {
        Self { file, samples: Vec::with_capacity(STREAM_BYTES + 64) }
    }

    pub(crate) fn push(&mut self, sample: &Sample) -> io::Result<()> {
        let flag = |is_there: bool, flag: u32| if is_there { flag } else { 0 };
        let (priority, is_whole) = match sample.priority {
            Priority::IsRealTime(is) => (u16::from(is) << REAL_TIME_SHIFT, false),
            Priority::Whole(value) => (value, true),
        };
        let flags = flag(sample.offset.is_some(), HAS_OFFSET)
            | flag(sample.second.is_some(), HAS_SECOND)
            | flag(is_whole, HAS_PRIORITY)
            | flag(sample.issue_ns.is_some(), HAS_ISSUE_TIME);
        let mut word = |bytes: &[u8]| self.samples.extend_from_slice(bytes);
        word(&sample.ms.to_ne_bytes());
        word(&sample.value.to_ne_bytes());
        if sample.second.is_some() || sample.issue_ns.is_some() {
            word(&sample.second.unwrap_or(0).to_ne_bytes());
        }
        word(&(sample.direction | flags).to_ne_bytes());
        word(&u32::from(priority).to_ne_bytes());
        word(&sample.bytes.to_ne_bytes());
        if let Some(offset) = sample.offset {
            word(&offset.to_ne_bytes());
        }
        if let Some(ns) = sample.issue_ns {
            word(&ns.to_ne_bytes());
        }
        if self.samples.len() >= STREAM_BYTES { self.end_stream() } else { Ok(()) }
    }

    /// Writes what is there as a stream.
    pub(crate) fn end_stream(&mut self) -> io::Result<()> {
        if self.samples.is_empty() {
            return Ok(());
        }
        let mut encoder = ZlibEncoder::new(&mut self.file, Compression::default());
        encoder.write_all(&self.samples)?;
        encoder.finish()?;
        self.samples.clear();
        Ok(())
    }
}

/// How the samples of a file lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Layout {
    /// There is room for a second value.
    is_wide: bool,
    flags: u32,
}

impl Layout {
    fn bytes(self) -> usize {
        let extra = |flag: u32| if self.flags & flag != 0 { 8 } else { 0 };
        32 + if self.is_wide { 8 } else { 0 } + extra(HAS_OFFSET) + extra(HAS_ISSUE_TIME)
    }

    /// The layout in which all of these samples make sense.
    fn of(samples: &[u8]) -> Option<Self> {
        [false, true].into_iter().find_map(|is_wide| {
            let place = if is_wide { 24 } else { 16 };
            let flags = u32::from_ne_bytes(*samples.get(place..)?.first_chunk()?) & 0xf000_0000;
            let layout = Self { is_wide, flags };
            if !is_wide && flags & (HAS_SECOND | HAS_ISSUE_TIME) != 0 {
                return None;
            }
            let mut before = 0;
            let is_sound = samples.len().is_multiple_of(layout.bytes())
                && samples.chunks_exact(layout.bytes()).all(|sample| {
                    let word = |at: usize| u64::from_ne_bytes(*sample[at..].first_chunk().unwrap_or(&[0; 8]));
                    let tag = word(place);
                    let (ms, direction, rest) = (word(0), tag as u32, (tag >> 48) as u16);
                    // Several threads of fio's may be a little out of order.
                    let is_later = ms.saturating_add(10_000) >= before;
                    before = before.max(ms);
                    let has_no_second = flags & HAS_SECOND != 0 || !is_wide || word(16) == 0;
                    is_later
                        && has_no_second
                        && direction & 0xf000_0000 == flags
                        && direction & 0xffff <= 2
                        && direction & 0x0fff_0000 == 0
                        && rest == 0
                        && word(place + 8) <= 1 << 40
                });
            is_sound.then_some(layout)
        })
    }

    fn line(self, sample: &[u8], out: &mut impl Write) -> io::Result<()> {
        let word = |at: usize| u64::from_ne_bytes(*sample[at..].first_chunk().unwrap_or(&[0; 8]));
        let place = if self.is_wide { 24 } else { 16 };
        let tag = word(place);
        write!(out, "{}, {}", word(0), word(8))?;
        if self.flags & HAS_SECOND != 0 {
            write!(out, ", {}", word(16))?;
        }
        write!(out, ", {}, {}", tag as u32 & !0xf000_0000, word(place + 8))?;
        let mut at = place + 16;
        if self.flags & HAS_OFFSET != 0 {
            write!(out, ", {}", word(at))?;
            at += 8;
        }
        let priority = (tag >> 32) as u16;
        match self.flags & HAS_PRIORITY != 0 {
            true => write!(out, ", 0x{priority:04x}")?,
            false => write!(out, ", {}", u8::from(priority >> REAL_TIME_SHIFT == 1))?,
        }
        if self.flags & HAS_ISSUE_TIME != 0 {
            write!(out, ", {}", word(at))?;
        }
        writeln!(out)
    }
}

/// A compressed log that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum InflateError {
    /// It is not one.
    #[error("it is no compressed log of fio's: {0}")]
    NotALog(String),
    /// What was read could not be passed on.
    #[error("the lines cannot be written")]
    Write(#[source] io::Error),
}

/// Writes the lines of a compressed log, as `fio --inflate-log` does. Histograms are not readable: fio does not store them.
///
/// # Errors
/// A file that is no such log, damaged or cut, or output that cannot be written.
pub fn inflate_log(input: impl Read, out: &mut impl Write) -> Result<(), InflateError> {
    let mut input = BufReader::with_capacity(64 << 10, input);
    let damaged = |error: io::Error| InflateError::NotALog(error.to_string());
    let mut layout = None;
    let mut samples = Vec::new();
    while !input.fill_buf().map_err(damaged)?.is_empty() {
        let mut stream = ZlibDecoder::new(&mut input);
        loop {
            let read = (&mut stream).take(PIECE_BYTES).read_to_end(&mut samples).map_err(damaged)?;
            if read == 0 {
                break;
            }
            let found = match layout {
                Some(found) => found,
                None => {
                    let senseless = || InflateError::NotALog("its samples make no sense".to_owned());
                    *layout.insert(Layout::of(&samples).ok_or_else(senseless)?)
                }
            };
            if !samples.len().is_multiple_of(found.bytes()) {
                return Err(InflateError::NotALog("it ends within a sample".to_owned()));
            }
            for sample in samples.chunks_exact(found.bytes()) {
                found.line(sample, out).map_err(InflateError::Write)?;
            }
            samples.clear();
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(ms: u64) -> Sample {
        Sample {
            ms,
            value: 55_202 + ms,
            second: None,
            direction: (ms % 3) as u32,
            bytes: 4096,
            offset: None,
            priority: Priority::IsRealTime(ms.is_multiple_of(2)),
            issue_ns: None,
        }
    }

    fn round(samples: &[Sample]) -> (String, String) {
        let path = std::env::temp_dir().join(format!("trueio-packed-{}-{}", std::process::id(), samples.len()));
        let mut packer = Packer::new(File::create(&path).expect("a file"));
        samples.iter().for_each(|sample| packer.push(sample).expect("written"));
        packer.end_stream().expect("written");
        let (mut there, mut expected) = (Vec::new(), Vec::new());
        inflate_log(File::open(&path).expect("it is there"), &mut there).expect("readable");
        std::fs::remove_file(&path).expect("it is there");
        samples.iter().for_each(|sample| sample.line(&mut expected).expect("memory"));
        (String::from_utf8(there).expect("text"), String::from_utf8(expected).expect("text"))
    }

    #[test]
    fn what_is_packed_is_read_back_in_any_layout() {
        for count in [1, 2, 3, 5, 4_000] {
            let plain: Vec<Sample> = (0..count).map(sample).collect();
            let with = |change: fn(&mut Sample)| {
                let mut samples = plain.clone();
                samples.iter_mut().for_each(change);
                samples
            };
            for samples in [
                plain.clone(),
                with(|sample| sample.offset = Some(sample.ms * 4096)),
                with(|sample| sample.second = Some(sample.value + 1)),
                with(|sample| (sample.second, sample.offset) = (Some(sample.value), Some(0))),
                with(|sample| (sample.bytes, sample.direction) = (0, 0)),
                with(|sample| sample.priority = Priority::Whole(0x4001 + sample.ms as u16 % 4)),
                with(|sample| (sample.offset, sample.priority) = (Some(1), Priority::Whole(0))),
                with(|sample| sample.issue_ns = Some(sample.ms * 1_000_000)),
                with(|sample| (sample.issue_ns, sample.offset, sample.second) = (Some(0), Some(7), Some(9))),
            ] {
                let (there, expected) = round(&samples);
                assert_eq!(there, expected);
            }
        }
    }

    /// fio 3.33 leaves streams that hold nothing in its files.
    #[test]
    fn empty_streams_and_empty_files_are_no_lines() {
        let empty = [0x78, 0x9c, 0x03, 0, 0, 0, 0, 1];
        for bytes in [&[][..], &empty, &[empty, empty].concat()] {
            let mut out = Vec::new();
            inflate_log(bytes, &mut out).expect("readable");
            assert!(out.is_empty());
        }
    }

    #[test]
    fn what_is_no_log_is_said_to_be_none() {
        for bytes in [&b"0, 1, 0, 4096, 0\n"[..], &[0x78, 0x9c, 0x03]] {
            assert!(inflate_log(bytes, &mut Vec::new()).is_err(), "{bytes:?}");
        }
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(b"some text that is no log and not of any use").expect("memory");
        let bytes = encoder.finish().expect("memory");
        let error = inflate_log(&bytes[..], &mut Vec::new()).expect_err("no log");
        assert!(error.to_string().contains("make no sense"), "{error}");
    }

    /// Goal: no time in a file that somebody made ends the program.
    #[test]
    fn times_that_cannot_be_are_read_or_refused() {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        for word in [u64::MAX, 7_000, 0, 4096] {
            encoder.write_all(&word.to_ne_bytes()).expect("memory");
        }
        let mut out = Vec::new();
        inflate_log(&encoder.finish().expect("memory")[..], &mut out).expect("its samples make sense");
        assert_eq!(String::from_utf8(out).expect("text"), format!("{}, 7000, 0, 4096, 0\n", u64::MAX));
    }

    /// The layout of fio 3.37 and later without second values has room for them all the same.
    #[test]
    fn the_later_layout_is_read_too() {
        let mut bytes = Vec::new();
        for ms in 0_u64..9 {
            for word in [ms, 7_000 + ms, 0, 1, 4096] {
                bytes.extend_from_slice(&word.to_ne_bytes());
            }
        }
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(&bytes).expect("memory");
        let mut out = Vec::new();
        inflate_log(&encoder.finish().expect("memory")[..], &mut out).expect("readable");
        assert!(out.starts_with(b"0, 7000, 1, 4096, 0\n1, 7001, 1, 4096, 0\n"), "{}", String::from_utf8_lossy(&out));
    }
}
