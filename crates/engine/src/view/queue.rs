//! The slots of a worker's queue.

use crate::request::Request;
use std::ops::Range;
use trueio_model::OpKind;

/// An I/O in flight, or the last one that was.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slot {
    pub(crate) request: Request,
    /// Ticks just before and just after the submission.
    pub(crate) issued: u64,
    pub(crate) submitted: u64,
    /// When it was due (paced jobs).
    pub(crate) due: u64,
    /// Since when a slot was free at its submission (paced jobs).
    pub(crate) room_since: u64,
}

/// The slots, and which of them are free.
#[derive(Debug)]
pub(crate) struct Queue {
    slots: Box<[Slot]>,
    /// A stack of the free slots. Above them stand those taken since a slot was last given back, the first one on top.
    free: Box<[u32]>,
    free_count: usize,
    /// Free slots that are not used: the queue is to be less deep than it could be, or runs low before it is refilled.
    pub(crate) reserve: usize,
    /// Since when at least one slot is free and may be used.
    pub(crate) room_since: u64,
    /// The worker stands in the queue of a file lock.
    pub(crate) awaits_lock: bool,
}

impl Queue {
    pub(crate) fn new(depth: usize) -> Self {
        let slot = Slot { request: Request::NONE, issued: 0, submitted: 0, due: 0, room_since: 0 };
        Self {
            slots: vec![slot; depth].into(),
            free: (0..depth as u32).rev().collect(),
            free_count: depth,
            reserve: 0,
            room_since: 0,
            awaits_lock: false,
        }
    }

    /// Returns the number of slots.
    #[inline(always)]
    pub(crate) fn depth(&self) -> usize {
        self.slots.len()
    }

    /// Returns the number of I/Os in flight, those queued for the next submission included.
    #[inline(always)]
    pub(crate) fn in_flight(&self) -> usize {
        self.slots.len() - self.free_count
    }

    #[inline(always)]
    pub(crate) fn free_count(&self) -> usize {
        self.free_count
    }

    /// Returns true if a slot is free and may be used.
    #[inline(always)]
    pub(crate) fn has_room(&self) -> bool {
        self.free_count > self.reserve
    }

    #[inline(always)]
    pub(crate) fn slot(&self, slot: u32) -> &Slot {
        &self.slots[slot as usize]
    }

    #[inline(always)]
    pub(crate) fn slot_mut(&mut self, slot: u32) -> &mut Slot {
        &mut self.slots[slot as usize]
    }

    /// Takes the free slot that became free last.
    #[inline(always)]
    pub(crate) fn take(&mut self) -> u32 {
        self.free_count -= 1;
        self.free[self.free_count]
    }

    /// Returns a slot whose I/O was reaped.
    #[inline(always)]
    pub(crate) fn give_back(&mut self, slot: u32) {
        self.free[self.free_count] = slot;
        self.free_count += 1;
    }

    /// Returns the operations of the `count` I/Os queued for this submission.
    #[inline(always)]
    pub(crate) fn queued_ops(&self, count: usize) -> impl Iterator<Item = OpKind> {
        self.free[self.free_count..self.free_count + count].iter().map(|&slot| self.slots[slot as usize].request.op)
    }

    /// Notes when the submission's `count` I/Os were submitted.
    #[inline(always)]
    pub(crate) fn note_submission(&mut self, count: usize, before: u64, after: u64) {
        for &slot in &self.free[self.free_count..self.free_count + count] {
            let slot = &mut self.slots[slot as usize];
            (slot.issued, slot.submitted) = (before, after);
        }
    }

    /// Returns the free slot that is taken last. While it is free, completions do not change which slot it is.
    pub(crate) fn last_free(&self) -> u32 {
        self.free[0]
    }

    /// Lets [`Self::last_free`] be taken next.
    pub(crate) fn use_last_free_next(&mut self) {
        self.free.swap(0, self.free_count - 1);
    }

    /// Before slots become free at `now`: a queue that was full has room from now on. Whatever was due meanwhile waited
    /// for the device.
    pub(crate) fn note_room(&mut self, now: u64) {
        if !self.has_room() {
            self.room_since = now;
        }
    }

    /// Notes when the I/O that was just queued was due, and since when there was room for it.
    pub(crate) fn note_due(&mut self, slot: u32, due: u64) {
        let slot = &mut self.slots[slot as usize];
        (slot.due, slot.room_since) = (due, self.room_since);
    }

    /// Returns true if the request touches bytes that an I/O in flight touches, and one of them does not just read.
    pub(crate) fn overlaps(&self, request: &Request) -> bool {
        let bytes = request.offset..request.offset + u64::from(request.length);
        self.any_in_flight(request.file, &bytes, |op| request.op != OpKind::Read || op != OpKind::Read)
    }

    /// Returns true if an I/O in flight that is one of these operations touches some bytes of a file.
    pub(crate) fn any_in_flight(&self, file: u16, bytes: &Range<u64>, is_one: impl Fn(OpKind) -> bool) -> bool {
        self.iter_in_flight().any(|slot| {
            let other = &slot.request;
            is_one(other.op)
                && other.file == file
                && other.offset < bytes.end
                && bytes.start < other.offset + u64::from(other.length)
        })
    }

    /// Iterates over the I/Os in flight.
    pub(crate) fn iter_in_flight(&self) -> impl Iterator<Item = &Slot> {
        let free = &self.free[..self.free_count];
        self.slots.iter().zip(0..).filter(|(_, index)| !free.contains(index)).map(|(slot, _)| slot)
    }
}
