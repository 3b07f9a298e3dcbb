//! Whether a file holds what its source sends.

use super::{HttpSource, SourceError};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;
use trueio_model::{SourceAddress, VerifyFailure};

/// Bytes of a difference that are shown.
const SHOWN: usize = 8;

/// What was compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceComparison {
    /// Blocks that were compared.
    pub block_count: u64,
    /// Blocks that differ.
    pub differing_count: u64,
    /// The first few of them: the offset of the first byte that differs, what was sent and what is there.
    pub failures: Vec<VerifyFailure>,
    /// True if it was asked to stop before the end.
    pub was_stopped: bool,
}

/// Fetches the body once more and compares it, in blocks of `block_bytes`, with what `file` holds from `offset`
/// on. Only a descriptor without `O_DIRECT` can be read at any length; whoever has one clears the flag first.
///
/// # Errors
/// The source fails, or the file cannot be read. A file that ends too early is a difference.
pub fn compare_with_source(
    file: &File,
    path: &str,
    offset: u64,
    (address, length): (&SourceAddress, u64),
    block_bytes: usize,
    stop: &AtomicBool,
) -> Result<SourceComparison, SourceError> {
    let mut source = HttpSource::connect(address, length)?;
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
        let there = read_up_to(file, &mut stored[..block], offset + at).map_err(|e| {
            SourceError::io(address, &format!("`{path}`, which was written from it, cannot be read"), e)
        })?;
        found.block_count += 1;
        let differs = sent[..there].iter().zip(&stored[..there]).position(|(a, b)| a != b);
        if let Some(first) = differs.or((there < block).then_some(there)) {
            found.differing_count += 1;
            if found.failures.len() < crate::worker::FAILURES_MAX {
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
