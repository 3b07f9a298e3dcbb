//! What is written.
//!
//! A disk that compresses or deduplicates answers faster to content that lets it. So the default is
//! pseudo-random bytes that nothing compresses, and no two writes are alike: each 4 KiB of a block
//! begins with a stamp made of its offset and the write's number. With `refill_buffers` every byte is
//! new for every write.
//!
//! `buffer_pattern` repeats a few bytes from the beginning of each buffer to its end, and no write changes
//! them.
//!
//! `buffer_compress_percentage` zeroes that part of every `buffer_compress_chunk`; `dedupe_percentage` gives that
//! part of the blocks the same content again. Zero content is not refused, but the
//! evidence names it: many devices never store zeros.
//!
//! The generator is in [`lanes`].

mod lanes;

use lanes::{Lanes, Vectors};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use trueio_model::{Content, ContentKind, mix64};

/// Bytes between two stamps: the smallest block that deduplicating stores compare.
const STAMP_EVERY: usize = 4096;
/// How many different blocks `dedupe_percentage` chooses from, unless `dedupe_working_set_percentage` sets more.
const DUPLICATES: u64 = 16;

/// Random bytes for files that are laid out before a run.
#[derive(Debug)]
pub struct RandomFill(ContentSource);

impl RandomFill {
    /// The bytes that belong to `seed`.
    pub fn new(seed: u64) -> Self {
        let content = Content { refill: true, ..Content::random() };
        Self(ContentSource::new(content, seed, 0))
    }

    /// Fills `out` with the next bytes.
    pub fn fill(&mut self, out: &mut [u8]) {
        self.0.fill_random(out);
    }
}

/// The content of files that are laid out before a run: as the job would write it.
#[derive(Debug)]
pub struct FileFill {
    source: ContentSource,
    block_bytes: u64,
    /// Where the next byte belongs.
    at: u64,
}

impl FileFill {
    /// Content of a job with blocks of `block_bytes`, from the beginning of `at` of a file on. Repeats of `dedupe_percentage` are not made.
    pub fn new(content: &Content, block_bytes: u64, seed: u64, at: u64) -> Self {
        let content = Content { refill: true, duplicate_percent: 0, common: None, ..content.clone() };
        Self { source: ContentSource::new(content, seed, 0), block_bytes: block_bytes.max(1), at }
    }

    /// Fills `out` with the next bytes. Fixed content begins again with each block.
    pub fn fill(&mut self, mut out: &mut [u8]) {
        let content = &self.source.content;
        if content.kind == ContentKind::Random && content.compressible_percent == 0 {
            self.at += out.len() as u64;
            return self.source.fill_random(out);
        }
        while !out.is_empty() {
            let within = self.at % self.block_bytes;
            let length = out.len().min(usize::try_from(self.block_bytes - within).unwrap_or(usize::MAX));
            let (block, rest) = out.split_at_mut(length);
            match self.source.content.kind {
                ContentKind::Pattern => {
                    let pattern = &self.source.content.pattern;
                    let from = pattern.iter().cycle().skip((within % pattern.len().max(1) as u64) as usize);
                    block.iter_mut().zip(from).for_each(|(byte, of_pattern)| *byte = *of_pattern);
                }
                _ => self.source.fill_initial(block),
            }
            self.at += length as u64;
            out = rest;
        }
    }
}

/// Fills write buffers for one worker.
#[derive(Debug)]
pub(crate) struct ContentSource {
    content: Content,
    lanes: Lanes,
    vectors: Vectors,
    rng: Xoshiro256PlusPlus,
    seed: u64,
    /// Blocks of the working set that were written.
    members: u64,
    /// The worker's part of the contents that jobs have in common.
    part: u64,
}

impl ContentSource {
    /// Creates the source of a worker, counted from 0 within its job.
    pub(crate) fn new(content: Content, seed: u64, worker: u32) -> Self {
        Self {
            part: content.common.map_or(0, |common| u64::from(common.first_part) + u64::from(worker)),
            content,
            lanes: Lanes::new(seed),
            vectors: Vectors::widest(),
            rng: Xoshiro256PlusPlus::seed_from_u64(seed ^ 0xd0d0),
            seed,
            members: 0,
        }
    }

    /// Fills with random bytes, whatever the job's content is.
    pub(crate) fn fill_random(&mut self, out: &mut [u8]) {
        self.lanes.fill(out, self.vectors);
    }

    /// What every buffer holds before the first write.
    pub(crate) fn fill_initial(&mut self, out: &mut [u8]) {
        match self.content.kind {
            ContentKind::Zero => out.fill(0),
            ContentKind::Pattern => {
                for (byte, of_pattern) in out.iter_mut().zip(self.content.pattern.iter().cycle()) {
                    *byte = *of_pattern;
                }
            }
            ContentKind::Random => {
                self.fill_random(out);
                self.compress(out);
            }
        }
    }

    /// Makes a buffer ready for write number `sequence` to `offset`.
    #[inline]
    pub(crate) fn prepare(&mut self, out: &mut [u8], offset: u64, sequence: u64) {
        if self.content.kind != ContentKind::Random {
            return;
        }
        if self.content.duplicate_percent > 0 {
            let is_repeat = self.rng.random_range(0..100u8) < self.content.duplicate_percent;
            if let Some(which) = self.member(is_repeat) {
                // One of the contents that are repeated, generated again from its own seed: equal wherever it is written.
                let seed = self.content.common.map_or(self.seed, |common| common.seed);
                let kept = std::mem::replace(&mut self.lanes, Lanes::new(seed ^ mix64(which)));
                self.fill_random(out);
                self.compress(out);
                self.lanes = kept;
                return;
            }
            self.fill_random(out);
            self.compress(out);
        } else if self.content.refill {
            self.fill_random(out);
            self.compress(out);
        }
        let stamp = mix64(offset ^ sequence.rotate_left(40) ^ self.seed);
        for (i, piece) in out.chunks_mut(STAMP_EVERY).enumerate() {
            if let Some(head) = piece.first_chunk_mut::<8>() {
                *head = stamp.wrapping_add(i as u64).to_le_bytes();
            }
        }
    }

    /// Which of the contents that are repeated a write has, if one: of a working set, the first different blocks are
    /// its members, and repeats are drawn from those that were written. Of a set that jobs have in common, each worker writes its
    /// part, and draws from all of it, as in fio.
    fn member(&mut self, is_repeat: bool) -> Option<u64> {
        let count = self.content.duplicate_count;
        if let Some(common) = self.content.common {
            if is_repeat {
                return Some(self.rng.random_range(0..count.max(1)));
            }
            let next = self.members * u64::from(common.parts) + self.part;
            self.members += u64::from(next < count);
            return (next < count).then_some(next);
        }
        if count == 0 {
            return is_repeat.then(|| self.rng.random_range(0..DUPLICATES));
        }
        if is_repeat && self.members > 0 {
            return Some(self.rng.random_range(0..self.members));
        }
        (self.members < count).then(|| {
            self.members += 1;
            self.members - 1
        })
    }

    /// Fills the compressible part of every piece with the pattern, or with zeros if there is none.
    fn compress(&self, out: &mut [u8]) {
        if self.content.compressible_percent > 0 {
            let piece_length = match self.content.compressible_bytes {
                0 => out.len().max(1),
                bytes => bytes as usize,
            };
            for piece in out.chunks_mut(piece_length) {
                let kept = piece.len() * (100 - usize::from(self.content.compressible_percent)) / 100;
                match &self.content.pattern[..] {
                    [] => piece[kept..].fill(0),
                    pattern => piece[kept..].iter_mut().zip(pattern.iter().cycle()).for_each(|(to, from)| *to = *from),
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;
    use trueio_model::CommonContents;

    fn source(kind: ContentKind, compressible_percent: u8, duplicate_percent: u8, refill: bool) -> ContentSource {
        let pattern = if kind == ContentKind::Pattern { vec![0x58, 0x59, 0x5a] } else { Vec::new() };
        let compressible_bytes = Content::compressible_bytes();
        let content = Content {
            kind,
            pattern,
            compressible_percent,
            compressible_bytes,
            duplicate_percent,
            duplicate_count: 0,
            common: None,
            refill,
        };
        ContentSource::new(content, 1, 0)
    }

    fn blocks(source: &mut ContentSource, count: u64) -> Vec<Vec<u8>> {
        let mut buffer = vec![0; 4096];
        source.fill_initial(&mut buffer);
        (0..count)
            .map(|i| {
                source.prepare(&mut buffer, i * 4096, i);
                buffer.clone()
            })
            .collect()
    }

    #[test]
    fn no_two_blocks_are_alike_with_or_without_refill() {
        for refill in [false, true] {
            let all: HashSet<_> = blocks(&mut source(ContentKind::Random, 0, 0, refill), 500).into_iter().collect();
            assert_eq!(all.len(), 500);
        }
    }

    #[test]
    fn random_bytes_are_evenly_used() {
        let mut source = source(ContentKind::Random, 0, 0, true);
        let mut a = vec![0; 1 << 20];
        source.fill_random(&mut a);
        let mut counts = [0u64; 256];
        a.iter().for_each(|&x| counts[usize::from(x)] += 1);
        let chi: f64 = counts.iter().map(|&n| (n as f64 - 4096.0).powi(2) / 4096.0).sum();
        // 255 degrees of freedom: above 361 once in 10^5.
        assert!(chi < 361.0, "chi-square {chi}");
        assert_eq!(a.chunks(64).collect::<HashSet<_>>().len(), (1 << 20) / 64);
    }

    #[test]
    fn compressible_content_has_that_share_of_zeros() {
        let block = &blocks(&mut source(ContentKind::Random, 70, 0, true), 1)[0];
        let zeros = block.iter().filter(|&&b| b == 0).count() as f64 / 4096.0;
        assert!((zeros - 0.70).abs() < 0.02, "{zeros}");
    }

    /// Goal: where the zeros lie is what a disk that compresses in larger pieces sees.
    #[test]
    fn the_zeros_lie_at_the_end_of_each_piece() {
        for (bytes, pieces) in [(512, 8), (1024, 4), (0, 1), (3000, 2)] {
            let mut source = source(ContentKind::Random, 50, 0, true);
            source.content.compressible_bytes = bytes;
            let block = &blocks(&mut source, 1)[0];
            let is_zero: Vec<bool> = block.chunks(4).map(|four| four.iter().all(|&byte| byte == 0)).collect();
            let runs = is_zero.windows(2).filter(|pair| !pair[0] && pair[1]).count();
            assert_eq!(runs, pieces, "{bytes}");
        }
    }

    #[test]
    fn the_compressible_part_holds_the_pattern_from_its_first_byte() {
        let mut source = source(ContentKind::Random, 50, 0, true);
        source.content.pattern = vec![0xde, 0xad, 0x01];
        let block = &blocks(&mut source, 1)[0];
        for piece in block.chunks(512) {
            let pattern = [0xde, 0xad, 0x01].into_iter().cycle();
            assert!(piece[256..].iter().copied().eq(pattern.take(256)), "{piece:02x?}");
            assert!(piece[..256].iter().collect::<HashSet<_>>().len() > 100, "{piece:02x?}");
        }
    }

    #[test]
    fn duplicates_come_in_about_the_share_asked_for() {
        let all = blocks(&mut source(ContentKind::Random, 0, 60, true), 2000);
        let unique = all.iter().collect::<HashSet<_>>().len() as u64;
        // 40 % of 2000 are fresh, and the others are at most 16 different ones.
        assert!((740..=860).contains(&unique), "{unique} different blocks");
    }

    /// Goal: the share of repeats holds from the beginning, and they are of the first different blocks.
    #[test]
    fn repeats_of_a_working_set_are_its_members_and_have_the_share_asked_for() {
        let mut source = source(ContentKind::Random, 0, 60, true);
        source.content.duplicate_count = 100;
        let all = blocks(&mut source, 2000);
        let (mut known, mut repeated) = (Vec::new(), HashSet::new());
        for block in &all {
            match known.iter().position(|earlier| earlier == block) {
                Some(index) => drop(repeated.insert(index)),
                None => known.push(block.clone()),
            }
        }
        // 40 % of 2000 differ; four deviations are 88.
        assert!((712..=888).contains(&known.len()), "{} different blocks", known.len());
        assert!(repeated.iter().all(|index| *index < 100), "repeats of blocks outside the set");
        assert!(repeated.len() > 90, "{} of the members were repeated", repeated.len());
    }

    /// Goal: workers of several jobs repeat each other's blocks, and the different ones are written once.
    /// Method: two workers with seeds of their own. Of a common set of 100 each writes 50 first; what both have written is in the
    /// set, and without the set nothing would be.
    #[test]
    fn workers_with_common_contents_repeat_blocks_of_each_other() {
        let different = |worker: u32, is_common: bool| {
            let mut source = source(ContentKind::Random, 0, 60, true);
            source.content.duplicate_count = 100;
            source.content.common = is_common.then_some(CommonContents { parts: 2, first_part: 0, seed: 9 });
            let mut source = ContentSource::new(source.content, u64::from(worker) + 1, worker);
            let all = blocks(&mut source, 2000);
            let different: HashSet<_> = all.iter().cloned().collect();
            // 40 % of 2000 are not drawn from the set, 50 of these are its members; four deviations are 88.
            assert!((712..=988).contains(&different.len()), "{}", different.len());
            different
        };
        let [one, other] = [0, 1].map(|worker| different(worker, true));
        let shared = one.intersection(&other).count();
        assert!((90..=100).contains(&shared), "{shared} blocks in both");
        let [one, other] = [0, 1].map(|worker| different(worker, false));
        assert_eq!(one.intersection(&other).count(), 0);
    }

    #[test]
    fn files_are_filled_as_the_job_would_write_them() {
        let content = |kind, compressible_percent| Content {
            kind,
            compressible_percent,
            pattern: if kind == ContentKind::Pattern { b"abc".to_vec() } else { Vec::new() },
            ..Content::random()
        };
        let filled = |content: &Content| {
            let (mut fill, mut bytes) = (FileFill::new(content, 1000, 7, 0), vec![1; 8192]);
            bytes.chunks_mut(1500).for_each(|piece| fill.fill(piece));
            bytes
        };
        assert_eq!(filled(&content(ContentKind::Zero, 0)), vec![0; 8192]);
        let pattern = filled(&content(ContentKind::Pattern, 0));
        assert!((0..8192).all(|at| pattern[at] == b"abc"[at % 1000 % 3]), "it begins again with each block");
        let zeros = |bytes: &[u8]| bytes.iter().filter(|byte| **byte == 0).count();
        assert!(zeros(&filled(&content(ContentKind::Random, 0))) < 100);
        assert!((3000..5200).contains(&zeros(&filled(&content(ContentKind::Random, 50)))));
        let mut later = FileFill::new(&content(ContentKind::Pattern, 0), 1000, 7, 500);
        let mut bytes = [0; 2];
        later.fill(&mut bytes);
        assert_eq!(bytes, *b"ca", "byte 500 of the block");
    }

    #[test]
    fn zero_content_is_zero() {
        assert!(blocks(&mut source(ContentKind::Zero, 0, 0, true), 3).iter().all(|b| b.iter().all(|&x| x == 0)));
    }

    #[test]
    fn a_pattern_is_repeated_to_the_end_and_the_same_in_every_write() {
        for block in blocks(&mut source(ContentKind::Pattern, 0, 0, true), 3) {
            assert!(block.chunks(3).all(|piece| piece == &b"XYZ"[..piece.len()]));
        }
    }
}
