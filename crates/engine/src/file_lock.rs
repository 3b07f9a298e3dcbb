//! Locks between the workers of a run that do I/O on one file (`lockfile`).
//!
//! First come, first served: a worker that has to wait queues, and none overtakes the queue. Other programs know
//! nothing of these locks.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// A file's lock.
#[derive(Debug, Default)]
pub struct FileLock {
    state: Mutex<LockState>,
    changed: Condvar,
    /// Number of workers in the queue; may be read without locking the state.
    waiting: AtomicUsize,
}

#[derive(Debug, Default)]
struct LockState {
    /// The number of workers that hold it together.
    sharers: u32,
    /// One worker holds it exclusively.
    is_taken: bool,
    /// The tickets of the queue.
    queue: VecDeque<u64>,
    next: u64,
}

impl FileLock {
    fn state(&self) -> MutexGuard<'_, LockState> {
        // A panic leaves no partial change behind, so a poisoned lock is usable.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns true if a worker queues.
    pub(crate) fn is_awaited(&self) -> bool {
        self.waiting.load(Relaxed) > 0
    }

    /// Takes it, alone or with others, if it is free and no worker queues.
    pub(crate) fn try_take(&self, is_shared: bool) -> bool {
        let mut state = self.state();
        state.queue.is_empty() && state.take(is_shared)
    }

    /// Queues for the lock; returns the ticket.
    pub(crate) fn queue(&self) -> u64 {
        let mut state = self.state();
        let ticket = state.next;
        state.next += 1;
        state.queue.push_back(ticket);
        self.waiting.store(state.queue.len(), Relaxed);
        ticket
    }

    /// Takes the lock as soon as it is free and the ticket is the first in the queue; returns false after the time
    /// limit.
    pub(crate) fn wait(&self, ticket: u64, is_shared: bool, limit: Duration) -> bool {
        let can_take = |state: &mut LockState| state.queue.front() == Some(&ticket) && state.take(is_shared);
        let state = self.state();
        let waited = self.changed.wait_timeout_while(state, limit, |state| !can_take(state));
        let (mut state, result) = waited.unwrap_or_else(PoisonError::into_inner);
        if result.timed_out() {
            return false;
        }
        state.queue.pop_front();
        self.waiting.store(state.queue.len(), Relaxed);
        // The next worker in the queue may share the lock.
        self.changed.notify_all();
        true
    }

    /// Leaves the queue.
    pub(crate) fn leave(&self, ticket: u64) {
        let mut state = self.state();
        state.queue.retain(|other| *other != ticket);
        self.waiting.store(state.queue.len(), Relaxed);
        self.changed.notify_all();
    }

    /// Gives it back.
    pub(crate) fn give_back(&self, is_shared: bool) {
        let mut state = self.state();
        match is_shared {
            true => state.sharers -= 1,
            false => state.is_taken = false,
        }
        if !state.queue.is_empty() {
            self.changed.notify_all();
        }
    }
}

impl LockState {
    fn take(&mut self, is_shared: bool) -> bool {
        if self.is_taken || !is_shared && self.sharers > 0 {
            return false;
        }
        match is_shared {
            true => self.sharers += 1,
            false => self.is_taken = true,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT_ONCE: Duration = Duration::ZERO;

    #[test]
    fn readers_share_a_writer_is_alone_and_no_worker_overtakes_the_queue() {
        let lock = FileLock::default();
        assert!(lock.try_take(true) && lock.try_take(true) && !lock.try_take(false));
        let writer = lock.queue();
        assert!(!lock.try_take(true), "a writer queues");
        let reader = lock.queue();
        assert!(lock.is_awaited() && !lock.wait(writer, false, AT_ONCE) && !lock.wait(reader, true, AT_ONCE));
        lock.give_back(true);
        assert!(!lock.wait(writer, false, AT_ONCE), "one reader is left");
        lock.give_back(true);
        assert!(!lock.wait(reader, true, AT_ONCE) && lock.wait(writer, false, AT_ONCE));
        assert!(!lock.wait(reader, true, AT_ONCE));
        lock.give_back(false);
        let late = lock.queue();
        assert!(!lock.wait(late, false, AT_ONCE) && lock.wait(reader, true, AT_ONCE));
        lock.leave(late);
        assert!(!lock.is_awaited() && lock.try_take(true));
    }
}
