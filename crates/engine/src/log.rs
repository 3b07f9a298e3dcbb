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

/// One I/O that completed or failed, as a trace has it. Times are in nanoseconds since the trace began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TracedIo {
    /// Which operation.
    pub op: OpKind,
    /// Which of the job's files.
    pub file: u16,
    /// Bytes transferred; of a failed I/O those that were requested.
    pub length: u32,
    /// The error number, or 0.
    pub error: i32,
    /// Where, in bytes.
    pub offset: u64,
    /// When it completed.
    pub end_ns: u64,
    /// Submission latency; 0 for an engine that blocks.
    pub slat_ns: u64,
    /// Completion latency.
    pub clat_ns: u64,
    /// When it was due; without a schedule, when it was submitted.
    pub intended_ns: u64,
}

/// Where the workers of a run send the I/Os of its trace.
#[derive(Debug, Clone)]
pub struct TraceChannel {
    /// The channel.
    pub channel: LogChannel<TracedIo>,
    /// When the trace began.
    pub began: Instant,
}

impl TraceChannel {
    /// The same channel for another worker.
    pub fn of_worker(&self, worker: u32) -> Self {
        Self { channel: self.channel.of_worker(worker), began: self.began }
    }
}

/// I/Os of a worker that it did not send, because the channel was full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DroppedIos {
    /// How many.
    pub count: u64,
    /// When the first of them completed, as [`TracedIo::end_ns`].
    pub from_ns: u64,
    /// When the last of them completed.
    pub to_ns: u64,
}

/// I/Os of one worker, in the order in which they were submitted.
#[derive(Debug)]
pub struct LogChunk<T = LoggedIo> {
    /// The worker's number, as its [`LogChannel`] has it.
    pub worker: u32,
    /// What is missing before these I/Os; only a trace drops any.
    pub dropped: Option<DroppedIos>,
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
    /// Sends I/Os, and waits while the channel is full.
    pub fn send(&self, ios: Vec<T>) {
        let (back, _) = mpsc::channel();
        // A reader that is gone has reported why.
        let _ = self.sender.send(LogChunk { worker: self.worker, dropped: None, ios, back });
    }

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
    /// What was dropped since the last chunk that was sent.
    dropped: Option<DroppedIos>,
    /// How many I/Os were dropped.
    pub(crate) dropped_count: u64,
    /// How long the worker has waited for the reader, in nanoseconds.
    pub(crate) waited_ns: u64,
}

impl<T> LogBuffer<T> {
    pub(crate) fn new(channel: &LogChannel<T>) -> Self {
        let (back, empty) = mpsc::channel();
        let chunk = Vec::with_capacity(CHUNK);
        Self { channel: channel.clone(), chunk, back, empty, dropped: None, dropped_count: 0, waited_ns: 0 }
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
        if self.chunk.is_empty() && self.dropped.is_none() {
            return;
        }
        if let Err(TrySendError::Full(chunk)) = self.try_send() {
            let since = Instant::now();
            // A reader that is gone has reported why.
            let _ = self.channel.sender.send(chunk);
            self.waited_ns += since.elapsed().as_nanos() as u64;
        }
    }

    /// Sends the chunk so far, unless the channel is full.
    fn try_send(&mut self) -> Result<(), TrySendError<LogChunk<T>>> {
        let room = self.empty.try_recv().unwrap_or_else(|_| Vec::with_capacity(CHUNK));
        let ios = std::mem::replace(&mut self.chunk, room);
        let (worker, dropped) = (self.channel.worker, self.dropped.take());
        self.channel.sender.try_send(LogChunk { worker, dropped, ios, back: self.back.clone() })
    }
}

impl LogBuffer<TracedIo> {
    pub(crate) fn push_or_drop(&mut self, io: TracedIo) {
        self.chunk.push(io);
        if self.chunk.len() >= CHUNK {
            self.flush_or_drop();
        }
    }

    /// Sends the chunk so far, or keeps it if the channel is full: it may still have room.
    #[cold]
    pub(crate) fn flush_or_keep(&mut self) {
        if self.chunk.is_empty() {
            return;
        }
        if let Err(TrySendError::Full(chunk)) = self.try_send() {
            let room = std::mem::replace(&mut self.chunk, chunk.ios);
            self.dropped = chunk.dropped;
            // This worker receives it again.
            let _ = self.back.send(room);
        }
    }

    /// Sends the chunk so far, or drops it if the channel is full.
    #[cold]
    pub(crate) fn flush_or_drop(&mut self) {
        if self.chunk.is_empty() {
            return;
        }
        if let Err(TrySendError::Full(chunk)) = self.try_send() {
            let count = chunk.ios.len() as u64;
            let (first, last) =
                (chunk.ios.first().map_or(0, |io| io.end_ns), chunk.ios.last().map_or(0, |io| io.end_ns));
            let before = chunk.dropped.unwrap_or(DroppedIos { count: 0, from_ns: first, to_ns: last });
            self.dropped = Some(DroppedIos { count: before.count + count, to_ns: last, ..before });
            self.dropped_count += count;
            chunk.give_back();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
    use std::time::Duration;

    fn traced(end_ns: u64) -> TracedIo {
        TracedIo {
            op: OpKind::Read,
            file: 0,
            length: 512,
            error: 0,
            offset: 0,
            end_ns,
            slat_ns: 0,
            clat_ns: 1,
            intended_ns: 0,
        }
    }

    /// Goal: a trace whose reader is too slow loses whole chunks, counts them, and names their times; the worker does not
    /// wait, and what comes later is sent.
    #[test]
    fn a_trace_drops_what_its_reader_cannot_take_and_counts_it() {
        let (channel, chunks) = log_channel::<TracedIo>();
        let mut log = LogBuffer::new(&channel.of_worker(3));
        drop(channel);
        // Nothing reads: the channel takes its length, and three chunks more are dropped.
        let kept = (CHUNKS * CHUNK) as u64;
        let dropped = 3 * CHUNK as u64;
        (0..kept + dropped).for_each(|number| log.push_or_drop(traced(number)));
        assert_eq!((log.dropped_count, log.waited_ns), (dropped, 0));
        let first = chunks.recv().expect("the first chunk");
        assert_eq!((first.ios[0].end_ns, first.dropped), (0, None));
        first.give_back();
        log.push_or_drop(traced(kept + dropped));
        log.flush();
        drop(log);
        let all: Vec<_> = chunks.iter().collect();
        let missing = DroppedIos { count: dropped, from_ns: kept, to_ns: kept + dropped - 1 };
        let last = all.last().expect("the last chunk");
        assert_eq!((last.ios.len(), last.ios[0].end_ns, last.dropped), (1, kept + dropped, Some(missing)));
        assert!(all[..all.len() - 1].iter().all(|chunk| chunk.dropped.is_none()));
    }

    /// Goal: the end of an interval drops nothing: a chunk that the channel does not take is filled further.
    #[test]
    fn a_chunk_with_room_is_kept_until_the_channel_takes_it() {
        let (channel, chunks) = log_channel::<TracedIo>();
        let mut log = LogBuffer::new(&channel.of_worker(3));
        (0..CHUNKS).for_each(|_| channel.send(vec![traced(0)]));
        drop(channel);
        for end_ns in [1, 2] {
            log.push_or_drop(traced(end_ns));
            log.flush_or_keep();
        }
        assert_eq!((log.dropped_count, log.chunk.len()), (0, 2));
        chunks.recv().expect("a chunk of the other worker").give_back();
        log.flush_or_keep();
        drop(log);
        let ends = |chunk: LogChunk<TracedIo>| chunk.ios.iter().map(|io| io.end_ns).collect::<Vec<_>>();
        assert_eq!(chunks.iter().last().map(ends), Some(vec![1, 2]));
    }

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
