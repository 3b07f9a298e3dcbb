//! The first I/Os of a worker, generated again: what it reads, and fingerprints of what it writes.
//!
//! Ranks of a run compare them, to find that they read the same blocks or write the same bytes. The generator and the content depend on
//! the plan and the worker only, so nothing has to be kept while the worker measures.
//!
//! Cannot see: I/Os whose offsets depend on time or on a device's zones, those of a log, and content that is fixed on purpose or that
//! a source or verification provides. Of a write, only the first 4 KiB are made, as with a queue of one.

use crate::content::ContentSource;
use crate::engines::name_content;
use crate::pattern::Generator;
use crate::request::{REQUEST_BLOCK, Step};
use trueio_model::{ContentKind, JobPlan, OpKind, mix64, worker_seed};

/// Bytes of a write that are made and fingerprinted: the smallest block that deduplicating stores compare.
const PIECE_BYTES: usize = 4096;

/// Largest number of I/Os that are skipped.
const SKIPPED_MAX: usize = 1 << 20;

/// The first I/Os of a worker.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Excerpt {
    /// The blocks that it reads: the index into the plan's files, and the offset in bytes.
    pub reads: Vec<(u16, u64)>,
    /// The blocks that it writes: the index into the plan's files, and the fingerprint of the content.
    pub writes: Vec<(u16, u64)>,
}

impl Excerpt {
    /// Returns the first `io_count` I/Os of worker `worker`, of which `write_count` writes are fingerprinted.
    pub fn of(plan: &JobPlan, worker: u32, io_count: usize, write_count: usize) -> Self {
        let mut excerpt = Self::default();
        if let Some(set) = &plan.names {
            let bytes = name_content(set.file_bytes, worker_seed(plan.seed, worker));
            if plan.engine.creates_names() && !bytes.is_empty() && io_count > 0 {
                excerpt.writes.push((0, fingerprint(&bytes)));
            }
            return excerpt;
        }
        // I/Os of an earlier job are generated, too, and skipped.
        let skipped = plan.skipped_ios.min(usize::MAX as u64) as usize;
        let is_drawn = skipped <= SKIPPED_MAX && plan.replay.is_none() && plan.zones.is_none();
        if !is_drawn || !plan.engine.touches_files() || plan.files.is_empty() {
            return excerpt;
        }
        let makes_content = plan.content.kind == ContentKind::Random && plan.source.is_none() && plan.verify.is_none();
        let mut content = ContentSource::new(plan.content.clone(), worker_seed(plan.seed, worker), worker);
        let mut buffer = vec![0; PIECE_BYTES];
        content.fill_initial(&mut buffer);
        let mut generator = Generator::new(plan, worker);
        let mut steps = [Step::NONE; REQUEST_BLOCK];
        let (mut seen, mut sequence) = (0, 0);
        while seen < skipped + io_count {
            let filled = generator.refill(&mut steps);
            if filled == 0 {
                break;
            }
            let wanted = (skipped.saturating_sub(seen)).min(filled)..filled.min(skipped + io_count - seen);
            for step in &steps[wanted] {
                let Step::Io(request) = step else { continue };
                match request.op {
                    OpKind::Read => excerpt.reads.push((request.file, request.offset)),
                    OpKind::Write if makes_content && excerpt.writes.len() < write_count => {
                        sequence += 1;
                        let length = (request.length as usize).min(PIECE_BYTES);
                        content.prepare(&mut buffer[..length], request.offset, sequence);
                        excerpt.writes.push((request.file, fingerprint(&buffer[..length])));
                    }
                    _ => {}
                }
            }
            seen += filled;
        }
        excerpt
    }
}

/// Returns a fingerprint: equal bytes have equal ones, and different bytes almost never do.
fn fingerprint(bytes: &[u8]) -> u64 {
    bytes.chunks(8).fold(bytes.len() as u64, |state, chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        mix64(state ^ u64::from_le_bytes(word))
    })
}
