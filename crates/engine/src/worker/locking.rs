//! The worker's side of `lockfile`: a file is locked from just before an I/O on it is issued until it has completed.
//!
//! What one worker has in flight on a file is one use of it: its own I/Os do not wait for each other. As soon as others
//! queue it issues no more, so that its queue runs dry and they have their turn. Nobody waits for a file while it holds
//! another, so nobody waits for ever.

use super::{Wait, Worker};
use crate::clock::Clock;
use crate::engines::Engine;
use crate::file_lock::FileLock;
use crate::request::Request;
use crate::target::TargetFile;
use std::sync::Arc;
use std::time::Duration;
use trueio_model::{Locking, OpKind};

/// How long a worker waits before it looks up.
const LOOK_UP: Duration = Duration::from_millis(20);

/// The locks of a worker's files, and which of them it holds.
#[derive(Debug)]
pub(super) struct Locks {
    locking: Locking,
    files: Box<[Held]>,
    /// The file that it queues for, and its place.
    queued: Option<(u16, u64)>,
}

#[derive(Debug)]
struct Held {
    lock: Arc<FileLock>,
    /// I/Os in flight.
    count: u32,
    /// Whether others may hold it, too.
    is_shared: bool,
}

impl Locks {
    /// `None` if nothing is locked.
    pub(super) fn new(locking: Locking, files: &[TargetFile]) -> Option<Box<Self>> {
        let held = |file: &TargetFile| Some(Held { lock: file.lock.clone()?, count: 0, is_shared: false });
        let files: Option<Box<[Held]>> = files.iter().map(held).collect();
        let files = files.filter(|files| locking != Locking::None && !files.is_empty())?;
        Some(Box::new(Self { locking, files, queued: None }))
    }

    /// True if it stands in a file's queue.
    pub(super) fn is_queued(&self) -> bool {
        self.queued.is_some()
    }

    fn leave_queue(&mut self) {
        if let Some((file, place)) = self.queued.take() {
            self.files[usize::from(file)].lock.leave(place);
        }
    }
}

/// However the worker ends: nobody waits for it any more.
impl Drop for Locks {
    fn drop(&mut self) {
        self.leave_queue();
        self.files.iter().filter(|held| held.count > 0).for_each(|held| held.lock.give_back(held.is_shared));
    }
}

impl<E: Engine, C: Clock> Worker<'_, E, C> {
    /// Locks the request's file, or says what is to be waited for.
    #[cold]
    pub(super) fn lock_file(&mut self, request: &Request, queued: usize) -> Option<Wait> {
        let in_flight = self.in_flight();
        let locks = self.locks.as_mut()?;
        let is_shared = locks.locking == Locking::Readwrite && request.op == OpKind::Read;
        let held = &mut locks.files[usize::from(request.file)];
        if held.count > 0 {
            if held.is_shared && !is_shared || held.lock.is_awaited() {
                return Some(Wait::Everything);
            }
            held.count += 1;
            return None;
        }
        if locks.queued.is_none() {
            if held.lock.try_take(is_shared) {
                (held.count, held.is_shared) = (1, is_shared);
                return None;
            }
            if queued > 0 || in_flight > 0 {
                return Some(Wait::Everything);
            }
        }
        let (_, place) = *locks.queued.get_or_insert_with(|| (request.file, held.lock.queue()));
        let has_it = held.lock.wait(place, is_shared, LOOK_UP);
        if has_it {
            locks.queued = None;
            (held.count, held.is_shared) = (1, is_shared);
        }
        // Whoever waited for others was not slow itself.
        self.free_since = self.clock.now();
        if has_it { None } else { Some(Wait::Lock) }
    }

    /// The request's I/O has completed.
    pub(super) fn unlock_file(&mut self, request: &Request) {
        let Some(locks) = &mut self.locks else { return };
        let held = &mut locks.files[usize::from(request.file)];
        held.count -= 1;
        if held.count == 0 {
            held.lock.give_back(held.is_shared);
        }
    }
}
