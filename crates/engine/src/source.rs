//! Bytes that a job fetches instead of generating them.
//!
//! The engine takes bytes that have arrived and never waits inside an I/O; how they are fetched, and from where, is
//! outside this crate ([`BodySource`]).

use crate::recorder::FAILURES_MAX;
use std::fmt::Debug;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use trueio_model::{BlockPart, VerifyFailure};

/// Bytes of a difference that are shown.
const SHOWN: usize = 8;

/// A body of a known length, fetched in order.
pub trait BodySource: Debug {
    /// Copies the next bytes of the body into `out` and returns how many: as many as have arrived, 0 if none have.
    ///
    /// # Errors
    /// A sentence: the body cannot be fetched, is not the planned one, or ends too early.
    fn take(&mut self, out: &mut [u8]) -> Result<usize, String>;

    /// Waits until bytes have arrived or `limit` has passed.
    fn wait(&mut self, limit: Duration);
}

/// Result of a comparison of a file with the body that was written to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceComparison {
    /// Blocks that were compared.
    pub block_count: u64,
    /// Blocks that differ.
    pub differing_count: u64,
    /// The first few of them: the offset of the first byte that differs, what was sent and what is there.
    pub failures: Vec<VerifyFailure>,
    /// True if the comparison was stopped before its end.
    pub was_stopped: bool,
}

/// Compares `length` bytes of a body, in blocks of `block_bytes`, with what `file` holds from `offset` on. A descriptor
/// with `O_DIRECT` cannot be read at any length; the caller clears the flag first.
///
/// # Errors
/// A sentence: the source fails, or the file cannot be read. A file that ends too early is a difference.
pub fn compare_with_source(
    file: &File,
    path: &str,
    offset: u64,
    source: &mut dyn BodySource,
    length: u64,
    block_bytes: usize,
    stop: &AtomicBool,
) -> Result<SourceComparison, String> {
    let mut found = SourceComparison { block_count: 0, differing_count: 0, failures: Vec::new(), was_stopped: false };
    let (mut sent, mut stored) = (vec![0; block_bytes], vec![0; block_bytes]);
    let mut at = 0;
    while at < length {
        let block = block_bytes.min(usize::try_from(length - at).unwrap_or(usize::MAX));
        let mut filled = 0;
        while filled < block {
            if stop.load(Relaxed) {
                found.was_stopped = true;
                return Ok(found);
            }
            match source.take(&mut sent[filled..block])? {
                0 => source.wait(Duration::from_millis(50)),
                n => filled += n,
            }
        }
        let there = read_up_to(file, &mut stored[..block], offset + at)
            .map_err(|error| format!("`{path}` cannot be read: {error}"))?;
        found.block_count += 1;
        let differs = sent[..there].iter().zip(&stored[..there]).position(|(a, b)| a != b);
        if let Some(first) = differs.or((there < block).then_some(there)) {
            found.differing_count += 1;
            if found.failures.len() < FAILURES_MAX {
                let end = (first + SHOWN).min(block);
                found.failures.push(VerifyFailure {
                    path: path.to_owned(),
                    offset: offset + at + first as u64,
                    length: block as u64,
                    expected: format!("{:02x?} from the source", &sent[first..end]),
                    found: match first < there {
                        true => format!("{:02x?}", &stored[first..end.min(there)]),
                        false => "the end of the file".to_owned(),
                    },
                    part: BlockPart::Content,
                    numbers: None,
                    pattern_byte: None,
                });
            }
        }
        at += block as u64;
    }
    Ok(found)
}

/// Reads until the buffer is full or the file ends.
fn read_up_to(file: &File, out: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < out.len() {
        match file.read_at(&mut out[filled..], offset + filled as u64) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}
