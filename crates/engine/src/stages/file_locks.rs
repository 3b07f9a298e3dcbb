//! Locks a file from just before an I/O on it is issued until that has completed (`lockfile`).
//!
//! All I/Os that one worker has in flight on a file are one use of it: they do not wait for each other. As soon as other
//! workers queue, it issues no more, so that its queue drains and the others have their turn. No worker waits for a
//! file while it holds another, so none waits forever.

use super::{Admission, Done, Hooks, Stage};
use crate::context::WorkerContext;
use crate::engines::EngineError;
use crate::file_lock::FileLock;
use crate::request::Request;
use crate::view::View;
use std::sync::Arc;
use std::time::Duration;
use trueio_model::{Locking, OpKind};

/// How long a worker waits for a lock before it looks at the clock and at the request to stop.
const LOOK_UP: Duration = Duration::from_millis(20);

/// The locks of a worker's files, and which of them it holds.
#[derive(Debug)]
pub(crate) struct FileLocks {
    locking: Locking,
    files: Box<[Held]>,
    /// The file that it queues for, and its position in that queue.
    queued: Option<(u16, u64)>,
    /// The next I/O has its lock, and waits for a later stage.
    is_admitted: bool,
}

#[derive(Debug)]
struct Held {
    lock: Arc<FileLock>,
    /// I/Os in flight.
    count: u32,
    /// Whether others may hold it, too.
    is_shared: bool,
}

impl FileLocks {
    pub(crate) fn stage<'a>(context: &WorkerContext<'_>) -> Option<Box<dyn Stage + 'a>> {
        let locking = context.plan.handling.locking;
        let files =
            context.files.iter().map(|file| Some(Held { lock: file.lock.clone()?, count: 0, is_shared: false }));
        let files: Option<Box<[Held]>> = files.collect();
        let files = files.filter(|files| locking != Locking::None && !files.is_empty())?;
        Some(Box::new(Self { locking, files, queued: None, is_admitted: false }))
    }

    /// Locks the request's file, or returns what has to be waited for.
    fn lock(&mut self, request: &Request, view: &mut View<'_, '_>) -> Admission {
        let is_shared = self.locking == Locking::Readwrite && request.op == OpKind::Read;
        let held = &mut self.files[usize::from(request.file)];
        if held.count > 0 {
            if held.is_shared && !is_shared || held.lock.is_awaited() {
                return Admission::Drain;
            }
            held.count += 1;
            return Admission::Ready;
        }
        if self.queued.is_none() {
            if held.lock.try_take(is_shared) {
                (held.count, held.is_shared) = (1, is_shared);
                return Admission::Ready;
            }
            if view.state.queue.in_flight() > 0 {
                return Admission::Drain;
            }
        }
        let (_, position) = *self.queued.get_or_insert_with(|| (request.file, held.lock.queue()));
        let has_lock = held.lock.wait(position, is_shared, LOOK_UP);
        if has_lock {
            self.queued = None;
            (held.count, held.is_shared) = (1, is_shared);
        }
        view.state.queue.awaits_lock = !has_lock;
        // Time spent waiting for other workers is not lateness of this one.
        view.state.queue.room_since = view.clock.now();
        if has_lock { Admission::Ready } else { Admission::Again }
    }

    /// Gives back all locks and the position in a queue.
    fn release(&mut self) {
        if let Some((file, position)) = self.queued.take() {
            self.files[usize::from(file)].lock.leave(position);
        }
        for held in self.files.iter_mut().filter(|held| held.count > 0) {
            held.count = 0;
            held.lock.give_back(held.is_shared);
        }
    }
}

/// In whatever way the worker ends, no other waits for it.
impl Drop for FileLocks {
    fn drop(&mut self) {
        self.release();
    }
}

impl Stage for FileLocks {
    fn hooks(&self) -> Hooks {
        Hooks { is_issuing: true, is_completing: true, ..Hooks::default() }
    }

    fn admit(&mut self, request: &mut Request, view: &mut View<'_, '_>) -> Result<Admission, EngineError> {
        if !self.is_admitted {
            let answer = self.lock(request, view);
            self.is_admitted = answer == Admission::Ready;
            return Ok(answer);
        }
        Ok(Admission::Ready)
    }

    fn issued(&mut self, _slot: u32, _view: &mut View<'_, '_>) {
        self.is_admitted = false;
    }

    fn completed(&mut self, done: &Done, view: &mut View<'_, '_>) {
        let file = view.state.queue.slot(done.slot).request.file;
        let held = &mut self.files[usize::from(file)];
        held.count -= 1;
        if held.count == 0 {
            held.lock.give_back(held.is_shared);
        }
    }

    fn leave(&mut self, _view: &mut View<'_, '_>) {
        self.release();
    }
}
