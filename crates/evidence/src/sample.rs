//! Samples a file or device before it is read, to find regions that contain only zeros.
//!
//! A thin-provisioned volume, a trimmed SSD or a fresh image returns zeros for blocks that were never
//! written, without accessing a medium, and a block device has no extent map that shows it. A few blocks are
//! read with direct I/O before the phase and examined.
//!
//! Cannot see: why a block is zero. Zeros that were really written look the same. Without direct I/O nothing
//! is read, because reading would fill the page cache that another check examines.

use std::path::Path;
use std::time::{Duration, Instant};
use trueio_direct::{AlignedBuffer, OpenOptions, Policy};

/// Number of blocks that are read.
const BLOCK_COUNT: u64 = 32;
/// Bytes per block.
const BLOCK_BYTES: u64 = 4096;
/// Time limit of a sample: a slow disk must not delay the phase.
const TIME_MAX: Duration = Duration::from_millis(200);

/// The content of a sample of a region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContentSample {
    /// Path of the file.
    pub path: String,
    /// The blocks of 4 KiB that were read: where each begins in the file, in bytes, and whether it contains only zeros.
    pub blocks: Vec<(u64, bool)>,
}

/// Reads a sample of a region; returns `None` if it cannot be read with direct I/O or is smaller than a
/// block. The blocks are spread over the region, never at equal distances.
pub(crate) fn sample(path: &str, offset_bytes: u64, size_bytes: u64) -> Option<ContentSample> {
    let first = offset_bytes.next_multiple_of(BLOCK_BYTES);
    let blocks = (offset_bytes + size_bytes).checked_sub(first)? / BLOCK_BYTES;
    let file = OpenOptions::new().read(true).policy(Policy::Require).open(Path::new(path)).ok()?;
    let mut buffer = AlignedBuffer::new(BLOCK_BYTES as usize, BLOCK_BYTES as usize).ok()?;
    let begin = Instant::now();
    let mut found = Vec::new();
    for index in 0..BLOCK_COUNT.min(blocks) {
        if begin.elapsed() > TIME_MAX {
            break;
        }
        // Multiples of the golden ratio fill an interval evenly and without a period.
        let place = (index as f64 * 0.618_033_988_749_895).fract();
        let block = ((place * blocks as f64) as u64).min(blocks - 1);
        // The phase itself reports a failed read, with its explanation.
        let at = first + block * BLOCK_BYTES;
        file.read_exact_at(&mut buffer, at).ok()?;
        found.push((at, buffer.iter().all(|byte| *byte == 0)));
    }
    (!found.is_empty()).then(|| ContentSample { path: path.to_owned(), blocks: found })
}
