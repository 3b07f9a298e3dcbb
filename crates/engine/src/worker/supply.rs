//! What a worker does whose bytes are fetched: it collects them in the buffer of the next write, waits for them
//! without losing sight of what is in flight, and compares what it wrote at the end.

use super::{Wait, Worker};
use crate::clock::Clock;
use crate::engines::Engine;
use crate::request::Request;
use crate::source::{BodySource, compare_with_source};
use crate::target::TargetFile;
use std::time::Duration;

/// How long the source is waited for while nothing else is to be done: until the next look at a request to stop.
pub(super) const SOURCE_WAIT_IDLE: Duration = Duration::from_millis(50);
/// And while I/Os are in flight, whose completions would otherwise be noticed late.
pub(super) const SOURCE_WAIT_BUSY: Duration = Duration::from_micros(100);

/// The bytes of a job with a source, on their way.
#[derive(Debug)]
pub(super) struct Supply {
    pub(super) source: Box<dyn BodySource>,
    /// Bytes of the next write that are in its buffer.
    pub(super) filled: usize,
    /// Ticks spent with the source: waiting for it, and taking what it sent.
    pub(super) waited: u64,
    /// What is left is too short for direct I/O.
    pub(super) is_tail: bool,
}

impl<E: Engine, C: Clock> Worker<'_, E, C> {
    /// Jobs with a source: collects the bytes of the next write. `None`: they are all there, in the buffer of the
    /// slot that is taken next.
    ///
    /// They are collected in the buffer of the free slot at the beginning of the list. Nobody takes it meanwhile:
    /// completions add slots at the list's end. So a buffer is filled only after the write that had it before
    /// has completed, whatever the engine and the depth.
    #[cold]
    pub(super) fn collect_from_source(&mut self, request: &Request, queued: usize) -> Option<Wait> {
        let plan = self.context.plan.source.as_ref()?;
        let supply = self.supply.as_mut()?;
        let in_body = request.offset - self.context.plan.files.first().map_or(0, |file| file.offset_bytes);
        if in_body >= plan.direct_bytes && !supply.is_tail {
            if queued > 0 || self.free_count < self.slots.len() {
                return Some(Wait::Everything);
            }
            supply.is_tail = true;
            if let Err(error) = write_tail_buffered(self.context.files, self.engine.opened_again()) {
                self.fatal.get_or_insert(error);
                self.is_done = true;
                return Some(Wait::Everything);
            }
            self.notes.push(format!(
                "source: the last {} of its {} bytes went through the page cache, as direct I/O takes whole units only",
                plan.length_bytes - plan.direct_bytes,
                plan.length_bytes
            ));
        }
        let index = self.write_buffers_from + self.free[0] as usize;
        let buffer = &mut self.pool.slice_mut(index)[..request.length as usize];
        let before = self.clock.now();
        while supply.filled < buffer.len() {
            match supply.source.take(&mut buffer[supply.filled..]) {
                Ok(0) => {
                    supply.waited += self.clock.now() - before;
                    return Some(Wait::Source);
                }
                Ok(n) => supply.filled += n,
                Err(error) => {
                    supply.waited += self.clock.now() - before;
                    self.fatal.get_or_insert(error);
                    self.is_done = true;
                    return Some(Wait::Everything);
                }
            }
        }
        supply.waited += self.clock.now() - before;
        supply.filled = 0;
        self.write_sequence += 1;
        self.free.swap(0, self.free_count - 1);
        None
    }

    /// Waits until the source has sent something, or `limit` has passed.
    #[cold]
    pub(super) fn wait_for_source(&mut self, limit: Duration) {
        let Some(supply) = &mut self.supply else { return };
        let before = self.clock.now();
        supply.source.wait(limit);
        let now = self.clock.now();
        supply.waited += now - before;
        if now >= self.next_event {
            self.handle_events(now);
        }
    }

    /// Fetches the body again and compares it with what was written. Not timed.
    pub(super) fn verify_against_source(&mut self) {
        let plan = self.context.plan;
        let (Some(source), Some(file)) = (&plan.source, self.context.files.first()) else { return };
        if !self.is_exhausted {
            self.notes.push("source: what was written was not compared, as the job ended before the body".to_owned());
            return;
        }
        // It is read in any length, through the page cache, from which it was dropped just before.
        if !self.settle_files() {
            return;
        }
        if let Err(error) = write_tail_buffered(self.context.files, self.engine.opened_again()) {
            self.fatal.get_or_insert(error);
            return;
        }
        let offset = plan.files.first().map_or(0, |file| file.offset_bytes);
        let block_bytes = plan.pattern.write_sizes.max_bytes() as usize;
        let length = source.length_bytes;
        let compared = (self.context.host.open_body)(source).and_then(|mut body| {
            compare_with_source(&file.file, &file.path, offset, &mut *body, length, block_bytes, self.context.stop)
        });
        match compared {
            Ok(found) => {
                self.verified_block_count += found.block_count;
                self.verify_failure_count += found.differing_count;
                self.verify_failures.extend(found.failures);
                self.was_stopped |= found.was_stopped;
            }
            Err(error) => self.fatal = Some(format!("comparing what was written: {error}")),
        }
    }
}

/// From here on what is written goes through the page cache: direct I/O has no use for a rest.
fn write_tail_buffered(files: &[TargetFile], opened_again: &[TargetFile]) -> Result<(), String> {
    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
    for target in files.iter().chain(opened_again) {
        let flags = fcntl_getfl(&*target.file);
        let cleared = flags.and_then(|flags| match flags.contains(OFlags::DIRECT) {
            true => fcntl_setfl(&*target.file, flags - OFlags::DIRECT),
            false => Ok(()),
        });
        cleared.map_err(|error| format!("`{}`: clearing O_DIRECT for the body's rest failed: {error}", target.path))?;
    }
    Ok(())
}
