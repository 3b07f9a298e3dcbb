//! A whole block: its pattern, a header for each interval of it, and where the header hides.

use super::{BLOCK_HEADER_BYTES, BlockHeader, Difference, EXPECTED, was_written_by, word};
use std::borrow::Cow;
use trueio_model::{BlockPart, BlockPattern, Verify};

/// Seals blocks before they are written and checks them when they are back.
#[derive(Debug, Clone)]
pub struct BlockSeal {
    verify: Verify,
}

impl BlockSeal {
    /// Returns the seal of a job that verifies so.
    pub fn new(verify: Verify) -> Self {
        Self { verify }
    }

    /// The headers of `block`, which belongs to `offset`, with the piece each stands in.
    fn headers<'b>(
        &self,
        block: &'b mut [u8],
        run: u64,
        offset: u64,
        sequence: u64,
    ) -> impl Iterator<Item = (BlockHeader, &'b mut [u8])> {
        let checksum = self.verify.checksum;
        let step =
            if self.verify.interval_bytes > 0 { self.verify.interval_bytes as usize } else { block.len().max(1) };
        block.chunks_mut(step).scan(offset, move |at, piece| {
            let header = BlockHeader { run, offset: *at, sequence, length: piece.len() as u32, checksum };
            *at += piece.len() as u64;
            Some((header, piece))
        })
    }

    /// Exchanges the header with the data where it is to stand.
    fn hide(&self, piece: &mut [u8]) {
        let at = self.verify.header_offset_bytes as usize;
        if at > 0 {
            let (head, tail) = piece.split_at_mut(at);
            head[..BLOCK_HEADER_BYTES].swap_with_slice(&mut tail[..BLOCK_HEADER_BYTES]);
        }
    }

    /// Makes `block` ready for write number `sequence` to `offset`.
    pub(crate) fn seal(&self, block: &mut [u8], run: u64, offset: u64, sequence: u64) {
        if let Some(pattern) = &self.verify.pattern {
            fill(pattern, self.verify.pattern_interval_bytes, block, offset);
        }
        if self.verify.checksum.has_header() {
            for (header, piece) in self.headers(block, run, offset, sequence) {
                header.seal(piece);
                self.hide(piece);
            }
        }
    }

    /// Compares a block that was read at `offset`. Moves its headers back to their usual offsets, so it is changed.
    ///
    /// # Errors
    /// The first difference.
    pub fn check(&self, block: &mut [u8], run: u64, offset: u64, sequence: u64) -> Result<(), Difference> {
        let checksum = self.verify.checksum;
        if checksum.has_header() {
            for (header, piece) in self.headers(block, run, offset, sequence) {
                self.hide(piece);
                header.compare(piece).map_err(|difference| {
                    let begin = (header.offset - offset) as usize;
                    Difference { piece: begin..begin + piece.len(), ..difference }
                })?;
            }
        }
        let Some(pattern) = self.verify.pattern.as_ref().filter(|_| checksum.compares_pattern()) else { return Ok(()) };
        let step =
            if self.verify.interval_bytes > 0 { self.verify.interval_bytes as usize } else { block.len().max(1) };
        // A header replaced bytes of the pattern.
        let is_header = |at: usize| checksum.has_header() && at % step < BLOCK_HEADER_BYTES;
        let mut first = None;
        // Piece by piece: no second block is needed.
        each_piece(pattern, self.verify.pattern_interval_bytes, block, offset, |at, found, expected| {
            if first.is_none() && found != expected {
                let differs = |i: &usize| found[*i] != expected[*i] && !is_header(at + i);
                first = (0..found.len()).find(differs).map(|i| at + i);
            }
        });
        match first {
            None => Ok(()),
            Some(at) => {
                let mut expected = vec![0; block.len()];
                fill(pattern, self.verify.pattern_interval_bytes, &mut expected, offset);
                let end = block.len().min(at + 16);
                let difference = Difference::of_numbers(
                    BlockPart::Content,
                    [block[at], expected[at]].map(u64::from),
                    format!("the pattern: from byte {at} of the block on {:02x?}", &expected[at..end]),
                    format!("{:02x?}", &block[at..end]),
                );
                Err(Difference { pattern_byte: Some(at as u64), ..difference })
            }
        }
    }

    /// Returns the files that `verify_dump` makes of a block that differs: the offset and the ending in the name of each, and
    /// its content. As in fio, a wrong header makes one of its own.
    pub(crate) fn dumps(
        &self,
        difference: &Difference,
        offset: u64,
        received: &[u8],
    ) -> impl Iterator<Item = (u64, &'static str, Vec<u8>)> {
        let piece = if difference.piece.is_empty() { 0..received.len() } else { difference.piece.clone() };
        let at = offset + piece.start as u64;
        let is_content = difference.part == BlockPart::Content;
        let expected = is_content.then(|| self.expected(received, offset)).flatten();
        let kind = if difference.part.is_header() { "hdr_fail" } else { "received" };
        let received = (at, kind, received[piece.clone()].to_vec());
        std::iter::once(received).chain(expected.map(|block| (at, EXPECTED, block[piece].to_vec())))
    }

    /// Returns what a block should hold whose headers are right, and were moved to the beginning of their intervals; `None` unless its
    /// content is a pattern: other content cannot be made again.
    pub(crate) fn expected(&self, received: &[u8], offset: u64) -> Option<Vec<u8>> {
        let pattern = self.verify.pattern.as_ref()?;
        let mut expected = vec![0; received.len()];
        fill(pattern, self.verify.pattern_interval_bytes, &mut expected, offset);
        if self.verify.checksum.has_header() {
            for (header, piece) in self.headers(&mut expected, 0, offset, 0) {
                let at = (header.offset - offset) as usize;
                let (run, sequence) = (word(received, at + 8), word(received, at + 24));
                BlockHeader { run, sequence, ..header }.seal(piece);
            }
        }
        Some(expected)
    }

    /// True if `block` is known to be written by `run`; `None` if it has no header.
    pub(crate) fn was_written_by(&self, block: &[u8], run: u64) -> Option<bool> {
        let at = self.verify.header_offset_bytes as usize;
        self.verify.checksum.has_header().then(|| was_written_by(&block[at..], run))
    }
}

/// Fills a block that belongs to `offset` with its pattern.
fn fill(pattern: &BlockPattern, interval_bytes: u64, block: &mut [u8], offset: u64) {
    each_piece(pattern, interval_bytes, block, offset, |_, piece, expected| piece.copy_from_slice(expected));
}

/// Goes through the pieces of a block that belongs to `offset`: where in it each begins, the piece, and what the
/// pattern describes it. The pattern begins again every `interval_bytes`, with that offset stored in it; 0: it begins
/// once.
fn each_piece(
    pattern: &BlockPattern,
    interval_bytes: u64,
    block: &mut [u8],
    offset: u64,
    mut with: impl FnMut(usize, &mut [u8], &[u8]),
) {
    let mut bytes = Cow::Borrowed(&pattern.bytes[..]);
    let interval = if interval_bytes > 0 { interval_bytes as usize } else { block.len().max(1) };
    let length = bytes.len().max(1);
    for (stretch, begin) in block.chunks_mut(interval).zip((0..).step_by(interval)) {
        for at in &pattern.offset_places {
            let at = *at as usize;
            bytes.to_mut()[at..at + 8].copy_from_slice(&(offset + begin as u64).to_le_bytes());
        }
        for (piece, at) in stretch.chunks_mut(length).zip((begin..).step_by(length)) {
            let expected = &bytes[..piece.len()];
            with(at, piece, expected);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use trueio_model::Checksum;

    fn seal(checksum: Checksum, change: impl FnOnce(&mut Verify)) -> BlockSeal {
        let mut verify = Verify::new(checksum);
        change(&mut verify);
        BlockSeal::new(verify)
    }

    fn block() -> Vec<u8> {
        (0..8192u32).map(|i| (i * 7) as u8).collect()
    }

    #[test]
    fn a_flipped_byte_is_found_in_every_interval_wherever_the_header_hides() {
        for hidden in [0, 64, 1000 - 48] {
            let seal = seal(Checksum::Crc32c, |v| (v.interval_bytes, v.header_offset_bytes) = (1024, hidden));
            let mut sealed = block();
            seal.seal(&mut sealed, 3, 1 << 20, 5);
            assert_eq!(seal.check(&mut sealed.clone(), 3, 1 << 20, 5), Ok(()));
            assert_eq!(seal.was_written_by(&sealed, 3), Some(true));
            for at in (500..8192).step_by(1024) {
                let mut rotten = sealed.clone();
                rotten[at] ^= 1;
                assert!(seal.check(&mut rotten, 3, 1 << 20, 5).is_err(), "byte {at}, header at {hidden}");
            }
            assert!(seal.check(&mut sealed.clone(), 3, 0, 5).unwrap_err().found.contains("wrong place"));
        }
    }

    #[test]
    fn a_pattern_is_compared_whole_and_carries_the_offset_of_its_block() {
        let pattern = BlockPattern { bytes: vec![0xaa, 0, 0, 0, 0, 0, 0, 0, 0, 0xbb], offset_places: vec![1] };
        for (kind, hidden) in [(Checksum::Pattern, 0), (Checksum::PatternHdr, 0), (Checksum::PatternHdr, 512)] {
            let seal = seal(kind, |v| (v.pattern, v.header_offset_bytes) = (Some(pattern.clone()), hidden));
            let mut sealed = block();
            seal.seal(&mut sealed, 3, 0x1234_5678, 5);
            assert_eq!(sealed[2000..2010], [0xaa, 0x78, 0x56, 0x34, 0x12, 0, 0, 0, 0, 0xbb], "{kind:?}");
            assert_eq!(seal.check(&mut sealed.clone(), 3, 0x1234_5678, 5), Ok(()), "{kind:?}");
            let mut rotten = sealed.clone();
            rotten[8191] ^= 1;
            let Difference { expected, found, .. } = seal.check(&mut rotten, 3, 0x1234_5678, 5).unwrap_err();
            assert!(expected.contains("from byte 8191") && found.starts_with('['), "{expected}: {found}");
            assert!(seal.check(&mut sealed.clone(), 3, 0, 5).is_err(), "another place");
        }
    }

    /// Goal: with an interval the pattern begins again, each time with its offset, also if the interval
    /// is no part of the block, and headers do not move it.
    #[test]
    fn a_pattern_with_an_interval_begins_again_and_contains_the_offset_of_each_beginning() {
        let pattern = BlockPattern { bytes: vec![0xaa, 0, 0, 0, 0, 0, 0, 0, 0, 0xbb], offset_places: vec![1] };
        for interval in [512, 1000, 8192] {
            for (kind, headers) in [(Checksum::Pattern, 0), (Checksum::PatternHdr, 0), (Checksum::PatternHdr, 2048)] {
                let seal = seal(kind, |v| {
                    v.pattern = Some(pattern.clone());
                    (v.pattern_interval_bytes, v.interval_bytes) = (interval, headers);
                });
                let mut sealed = block();
                seal.seal(&mut sealed, 3, 1 << 20, 5);
                for begin in (0..8192_u64).step_by(interval as usize) {
                    // A later time in each stretch: headers stand elsewhere.
                    let at = begin as usize + 200;
                    if at + 10 > sealed.len() {
                        continue;
                    }
                    let offset = ((1_u64 << 20) + begin).to_le_bytes();
                    assert_eq!(sealed[at], 0xaa, "{kind:?}, {interval}");
                    assert_eq!(sealed[at + 1..at + 9], offset, "{kind:?}, {interval}");
                }
                assert_eq!(seal.check(&mut sealed.clone(), 3, 1 << 20, 5), Ok(()), "{kind:?}, {interval}");
                // What another interval would have written.
                let other = BlockSeal::new(Verify { pattern_interval_bytes: 4096, ..seal.verify.clone() });
                let Difference { expected, .. } = other.check(&mut sealed.clone(), 3, 1 << 20, 5).unwrap_err();
                assert!(expected.contains("the pattern"), "{expected}");
            }
        }
    }
}
