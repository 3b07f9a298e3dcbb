//! The buffers of a worker's I/Os, and what its writes carry.

use crate::buffers::Buffers;
use crate::content::ContentSource;
use crate::request::Request;
use std::mem::ManuallyDrop;
use trueio_model::{EngineKind, JobPlan, OpKind, OpMix, worker_seed};

/// Buffers and content.
#[derive(Debug)]
pub(crate) struct Payload {
    /// Freed by hand, when nothing is in flight any more. If the worker fails or panics before, the kernel may still
    /// write to these buffers after the engine is closed (a closed io_uring ends its I/Os in the background): the memory
    /// is then leaked instead of being given to others.
    pool: ManuallyDrop<Buffers>,
    content: ContentSource,
    /// The first of the pool's buffers that writes use: slot `i` writes from this one plus `i`.
    pub(crate) writes_from: usize,
    needs_data: bool,
    /// The number of the last write.
    pub(crate) sequence: u64,
}

impl Payload {
    /// Prepares the buffers of writes, if `writes`. Engines rely on the size of the buffers, so they are compared with the
    /// plan once, in release builds, too. A pool that is twice as large as the queue keeps reads and writes
    /// apart.
    pub(crate) fn new(plan: &JobPlan, worker: u32, engine: EngineKind, mut pool: Buffers, writes: bool) -> Self {
        assert!(pool.count() >= plan.queue.depth as usize, "each slot has a buffer");
        assert!(pool.io_bytes() as u64 >= io_bytes_max(plan), "each buffer holds the plan's longest I/O");
        let mut content = ContentSource::new(plan.content.clone(), worker_seed(plan.seed, worker), worker);
        let writes_from = pool.count() - plan.queue.depth as usize;
        if writes {
            (writes_from..pool.count()).for_each(|i| content.fill_initial(pool.slice_mut(i)));
        }
        Self {
            pool: ManuallyDrop::new(pool),
            content,
            writes_from,
            // Fetched bytes are in the buffer before its slot is taken.
            needs_data: plan.source.is_none() && (engine.touches_files() || plan.content.refill),
            sequence: 0,
        }
    }

    /// Returns the number of the buffer that a request in `slot` uses.
    #[inline(always)]
    pub(crate) fn index(&self, request: &Request, slot: u32) -> usize {
        if request.op == OpKind::Write { slot as usize + self.writes_from } else { slot as usize }
    }

    /// Returns true if writes carry data that has to be made.
    #[inline(always)]
    pub(crate) fn needs_data(&self) -> bool {
        self.needs_data
    }

    /// Makes the data of a write in buffer `index`.
    #[inline]
    pub(crate) fn fill(&mut self, index: usize, request: &Request) {
        self.sequence += 1;
        let buffer = &mut self.pool.slice_mut(index)[..request.length as usize];
        self.content.prepare(buffer, request.offset, self.sequence);
    }

    /// Returns the address of buffer `index`, which holds the data of each I/O of the plan ([`Self::new`]).
    #[inline(always)]
    pub(crate) fn pointer(&self, index: usize, request: &Request) -> *mut u8 {
        debug_assert!(
            !matches!(request.op, OpKind::Read | OpKind::Write) || request.length as usize <= self.pool.io_bytes(),
            "an I/O that is longer than its buffer: {request:?}"
        );
        self.pool.buffer_ptr(index)
    }

    /// Returns the address of the buffer that a request in `slot` uses.
    pub(crate) fn address(&self, request: &Request, slot: u32) -> u64 {
        self.pool.buffer_ptr(self.index(request, slot)) as u64
    }

    /// Returns the first `length` bytes of buffer `index`. No I/O in flight may use it.
    pub(crate) fn block(&mut self, index: usize, length: u32) -> &mut [u8] {
        &mut self.pool.slice_mut(index)[..length as usize]
    }

    /// Frees the buffers. Nothing may be in flight, and the engine must be gone.
    pub(crate) fn free(self) {
        drop(ManuallyDrop::into_inner(self.pool));
    }
}

/// Returns the length of the longest I/O of a plan that moves data, in bytes.
pub(crate) fn io_bytes_max(plan: &JobPlan) -> u64 {
    let pattern = &plan.pattern;
    let of_pattern = match pattern.mix {
        OpMix::Only(OpKind::Read) => pattern.read_sizes.max_bytes(),
        OpMix::Only(OpKind::Write) => pattern.write_sizes.max_bytes(),
        OpMix::Only(OpKind::Trim | OpKind::Sync) => 0,
        OpMix::ReadWrite { .. } => pattern.read_sizes.max_bytes().max(pattern.write_sizes.max_bytes()),
    };
    plan.replay.as_ref().map_or(of_pattern, |replay| replay.length_bytes_max)
}
