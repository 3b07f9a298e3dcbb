//! Compressed logs in fio's format (`log_store_compressed`), and their text (`fio --inflate-log`).
//!
//! A file is a sequence of zlib streams. They hold fio's samples as they are in its memory, in the machine's byte order.
//! The layout depends on fio's version, which the file does not contain:
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
//! This module writes the first layout, which the fio of Debian 12 reads, and the second for second values and issue
//! times, which earlier versions do not have. It reads both: it takes the layout in which all samples of the first
//! stream are valid.
//!
//! Histograms are not compressed: fio stores addresses of its memory instead of them; here they stay text.
//!
//! Source: files of fio 3.33, byte by byte; the second layout: `iolog.h` of later versions, not checked against a
//! file.

use super::lines::{Lines, Priority, Sample};
use flate2::Compression;
use flate2::bufread::ZlibDecoder;
use flate2::write::ZlibEncoder;
use std::io::{self, BufRead, BufReader, Read, Write};

const HAS_OFFSET: u32 = 1 << 31;
const HAS_PRIORITY: u32 = 1 << 30;
const HAS_SECOND: u32 = 1 << 29;
const HAS_ISSUE_TIME: u32 = 1 << 28;
/// Position of the class in a priority; class 1 is real time.
const REAL_TIME_SHIFT: u32 = 13;
/// Size of a stream before compression, in bytes.
const STREAM_BYTES: usize = 64 << 10;

/// Number of bytes unpacked at once: a multiple of all lengths of samples (32, 40, 48, 56).
const PIECE_BYTES: u64 = 3360 * 100;

/// Writes a compressed log.
#[derive(Debug)]
pub(super) struct Packer<W: Write> {
    file: W,
    samples: Vec<u8>,
}

impl<W: Write> Packer<W> {
    pub(super) fn new(file: W) -> Self {
        Self { file, samples: Vec::with_capacity(STREAM_BYTES + 64) }
    }

    /// Returns the log.
    pub(super) fn file_mut(&mut self) -> &mut W {
        &mut self.file
    }

    pub(super) fn push(&mut self, sample: &Sample) -> io::Result<()> {
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

    /// Writes the buffered samples as a stream.
    pub(super) fn end_stream(&mut self) -> io::Result<()> {
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

/// The layout of a file's samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Layout {
    /// Samples have a field for a second value.
    is_wide: bool,
    flags: u32,
}

impl Layout {
    fn bytes(self) -> usize {
        let extra = |flag: u32| if self.flags & flag != 0 { 8 } else { 0 };
        32 + if self.is_wide { 8 } else { 0 } + extra(HAS_OFFSET) + extra(HAS_ISSUE_TIME)
    }

    /// Returns the layout in which all of these samples are valid.
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
                    // Samples of several threads may be slightly out of order.
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

    fn sample(self, sample: &[u8]) -> Sample {
        let word = |at: usize| u64::from_ne_bytes(*sample[at..].first_chunk().unwrap_or(&[0; 8]));
        let has = |flag| self.flags & flag != 0;
        let place = if self.is_wide { 24 } else { 16 };
        let (tag, offset_at) = (word(place), place + 16);
        let issue_at = if has(HAS_OFFSET) { offset_at + 8 } else { offset_at };
        let priority = (tag >> 32) as u16;
        Sample {
            ms: word(0),
            value: word(8),
            second: has(HAS_SECOND).then(|| word(16)),
            direction: tag as u32 & !0xf000_0000,
            bytes: word(place + 8),
            offset: has(HAS_OFFSET).then(|| word(offset_at)),
            priority: match has(HAS_PRIORITY) {
                true => Priority::Whole(priority),
                false => Priority::IsRealTime(priority >> REAL_TIME_SHIFT == 1),
            },
            issue_ns: has(HAS_ISSUE_TIME).then(|| word(issue_at)),
        }
    }
}

/// A compressed log that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum InflateError {
    /// The file is not a compressed log.
    #[error("not a compressed log of fio: {0}")]
    NotALog(String),
    /// The lines could not be written.
    #[error("the lines cannot be written")]
    Write(#[source] io::Error),
}

/// Writes the lines of a compressed log, as `fio --inflate-log` does. fio does not store histograms in such logs.
///
/// # Errors
/// A file in another format, a damaged or truncated file, or output that cannot be written.
pub fn inflate_log(input: impl Read, out: &mut impl Write) -> Result<(), InflateError> {
    let mut lines = Lines::new(out);
    // Of a damaged log, the lines before the damage are written.
    let result = inflate_to(input, &mut lines);
    lines.flush().map_err(InflateError::Write)?;
    result
}

fn inflate_to(input: impl Read, lines: &mut Lines<impl Write>) -> Result<(), InflateError> {
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
                lines.write(&found.sample(sample)).map_err(InflateError::Write)?;
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
        let mut packer = Packer::new(std::fs::File::create(&path).expect("a file"));
        samples.iter().for_each(|sample| packer.push(sample).expect("written"));
        packer.end_stream().expect("written");
        let (mut there, mut expected) = (Vec::new(), Vec::new());
        inflate_log(std::fs::File::open(&path).expect("it is there"), &mut there).expect("readable");
        std::fs::remove_file(&path).expect("it is there");
        let mut lines = Lines::new(&mut expected);
        samples.iter().for_each(|sample| lines.write(sample).expect("memory"));
        lines.flush().expect("memory");
        drop(lines);
        (String::from_utf8(there).expect("text"), String::from_utf8(expected).expect("text"))
    }

    #[test]
    fn samples_round_trip_in_both_layouts() {
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

    /// fio 3.33 writes empty streams.
    #[test]
    fn empty_streams_and_empty_files_have_no_lines() {
        let empty = [0x78, 0x9c, 0x03, 0, 0, 0, 0, 1];
        for bytes in [&[][..], &empty, &[empty, empty].concat()] {
            let mut out = Vec::new();
            inflate_log(bytes, &mut out).expect("readable");
            assert!(out.is_empty());
        }
    }

    #[test]
    fn other_files_are_refused() {
        for bytes in [&b"0, 1, 0, 4096, 0\n"[..], &[0x78, 0x9c, 0x03]] {
            assert!(inflate_log(bytes, &mut Vec::new()).is_err(), "{bytes:?}");
        }
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(b"some text that is no log and not of any use").expect("memory");
        let bytes = encoder.finish().expect("memory");
        let error = inflate_log(&bytes[..], &mut Vec::new()).expect_err("no log");
        assert!(error.to_string().contains("make no sense"), "{error}");
    }

    /// Goal: no time in a crafted file panics.
    #[test]
    fn impossible_times_are_read_or_refused() {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        for word in [u64::MAX, 7_000, 0, 4096] {
            encoder.write_all(&word.to_ne_bytes()).expect("memory");
        }
        let mut out = Vec::new();
        inflate_log(&encoder.finish().expect("memory")[..], &mut out).expect("its samples make sense");
        assert_eq!(String::from_utf8(out).expect("text"), format!("{}, 7000, 0, 4096, 0\n", u64::MAX));
    }

    /// The layout of fio 3.37 and later has the field of second values, even if it is unused.
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
