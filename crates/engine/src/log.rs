//! A channel for each I/O of a worker, to a reader that writes logs while a job runs.
//!
//! A worker collects I/Os in a chunk, and sends full chunks (and at least one every interval of the series) to a channel
//! of bounded length. The reader writes files, and returns the chunks to be filled again: memory does not grow with the
//! run, and nothing is dropped. If the reader is too slow, the worker waits for it, between two I/Os, and its notes
//! report how long.

use crate::request::Step;
use std::sync::mpsc::{self, Receiver, Sender, SyncSender, TrySendError, sync_channel};
use std::time::Instant;
use trueio_model::{IoPriority, OpKind};

/// I/Os of a chunk: 256 KiB.
const CHUNK: usize = 4096;
/// Largest number of chunks in the channel, of all workers together.
const CHUNKS: usize = 32;

/// One I/O that completed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LoggedIo {
    /// Which operation.
    pub op: OpKind,
    /// When it completed, in nanoseconds since the worker's measured part began.
    pub end_ns: u64,
    /// slat, in nanoseconds; `None` for an engine that blocks.
    pub submission_ns: Option<u64>,
    /// clat, in nanoseconds.
    pub completion_ns: u64,
    /// lat, in nanoseconds: with a rate, from the time at which it was due.
    pub total_ns: u64,
    /// Bytes transferred.
    pub bytes: u64,
    /// Where, in bytes.
    pub offset: u64,
    /// Its priority.
    pub priority: IoPriority,
}

/// One I/O that was issued, or a sync call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IssuedIo {
    /// When, in nanoseconds since the worker began.
    pub at_ns: u64,
    /// The step of the job.
    pub step: Step,
    /// Its slot of the queue; no other I/O in flight has it.
    pub slot: u32,
    /// What happens to it.
    pub event: IoEvent,
    /// The block of its file's region that was drawn for it, where that is shown and it was drawn.
    pub drawn: Option<u64>,
}

/// What happens to an I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IoEvent {
    /// It is issued.
    Issued,
    /// It is complete: logged only where each I/O is shown.
    Complete,
    /// What it read is compared with what was written: logged only where that is shown.
    Compared,
}

/// I/Os of one worker, in the order in which they were submitted.
#[derive(Debug)]
pub struct LogChunk<T = LoggedIo> {
    /// The worker's number, as its [`LogChannel`] has it.
    pub worker: u32,
    /// The I/Os.
    pub ios: Vec<T>,
    back: Sender<Vec<T>>,
}

impl<T> LogChunk<T> {
    /// Gives the room back to the worker.
    pub fn give_back(mut self) {
        self.ios.clear();
        // A worker that has ended needs no room any more.
        let _ = self.back.send(self.ios);
    }
}

/// Where workers put their I/Os.
#[derive(Debug)]
pub struct LogChannel<T = LoggedIo> {
    /// The worker's number among all that log.
    pub worker: u32,
    sender: SyncSender<LogChunk<T>>,
}

impl<T> Clone for LogChannel<T> {
    fn clone(&self) -> Self {
        self.of_worker(self.worker)
    }
}

impl<T> LogChannel<T> {
    /// The same channel for another worker.
    pub fn of_worker(&self, worker: u32) -> Self {
        Self { worker, sender: self.sender.clone() }
    }
}

/// A channel of bounded length: the channel of worker 0, and where chunks come out. It ends when every channel is
/// gone.
pub fn log_channel<T>() -> (LogChannel<T>, Receiver<LogChunk<T>>) {
    let (sender, receiver) = sync_channel(CHUNKS);
    (LogChannel { worker: 0, sender }, receiver)
}

/// A worker's side.
#[derive(Debug)]
pub(crate) struct LogBuffer<T = LoggedIo> {
    channel: LogChannel<T>,
    chunk: Vec<T>,
    back: Sender<Vec<T>>,
    empty: Receiver<Vec<T>>,
    /// How long the worker has waited for the reader, in nanoseconds.
    pub(crate) waited_ns: u64,
}

impl<T> LogBuffer<T> {
    pub(crate) fn new(channel: &LogChannel<T>) -> Self {
        let (back, empty) = mpsc::channel();
        Self { channel: channel.clone(), chunk: Vec::with_capacity(CHUNK), back, empty, waited_ns: 0 }
    }

    pub(crate) fn push(&mut self, io: T) {
        self.chunk.push(io);
        if self.chunk.len() >= CHUNK {
            self.flush();
        }
    }

    /// Sends the chunk so far.
    #[cold]
    pub(crate) fn flush(&mut self) {
        if self.chunk.is_empty() {
            return;
        }
        let room = self.empty.try_recv().unwrap_or_else(|_| Vec::with_capacity(CHUNK));
        let ios = std::mem::replace(&mut self.chunk, room);
        let chunk = LogChunk { worker: self.channel.worker, ios, back: self.back.clone() };
        if let Err(TrySendError::Full(chunk)) = self.channel.sender.try_send(chunk) {
            let since = Instant::now();
            // A reader that is gone has reported why.
            let _ = self.channel.sender.send(chunk);
            self.waited_ns += since.elapsed().as_nanos() as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    use std::time::Duration;

    /// Goal: nothing is lost and no more than the channel's length is held, however slow the reader is.
    #[test]
    fn a_slow_reader_is_waited_for_and_gets_everything_in_order() {
        let (channel, chunks) = log_channel();
        let total = (CHUNKS * 4 * CHUNK + 17) as u64;
        let pushed = Arc::new(AtomicU64::new(0));
        let counter = Arc::clone(&pushed);
        let writer = std::thread::spawn(move || {
            let mut log = LogBuffer::new(&channel.of_worker(3));
            drop(channel);
            let io = |end_ns| LoggedIo {
                op: OpKind::Read,
                end_ns,
                submission_ns: None,
                completion_ns: 1,
                total_ns: 1,
                bytes: 512,
                offset: 0,
                priority: IoPriority::default(),
            };
            for i in 0..total {
                counter.store(i + 1, Relaxed);
                log.push(io(i));
            }
            log.flush();
            log.waited_ns
        });
        // Its chunk is full, and so is the channel: it waits, now or as soon as it has a processor again.
        let full = ((CHUNKS + 1) * CHUNK) as u64;
        while pushed.load(Relaxed) < full {
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_millis(500));
        assert_eq!(pushed.load(Relaxed), full, "no more than the channel's length is held");
        let mut next = 0;
        for chunk in chunks {
            assert_eq!(chunk.worker, 3);
            for io in &chunk.ios {
                assert_eq!(io.end_ns, next);
                next += 1;
            }
            chunk.give_back();
        }
        assert_eq!(next, total);
        assert!(writer.join().expect("the worker ends") > 0, "it waited while no reader read");
    }
}
