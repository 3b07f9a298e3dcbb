//! Requests from a log instead of a pattern.
//!
//! A thread of its own reads the log ahead, a few thousand lines at most, so that the worker neither reads nor
//! parses between its I/Os, and memory does not grow with the log.
//!
//! Each request is held against the plan again, for a log may change after it was planned: what would go to another
//! file, beyond a region, be longer than the buffers, or perform an operation that the plan does not allow ends the job.
//!
//! Cannot: replay in another order than the log's.

use crate::context::OpenLog;
use crate::request::{REQUEST_BLOCK, Request, Step};
use std::collections::HashMap;
use std::io::Read;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use trueio_model::{IologError, JobPlan, OpKind, ReplayPlan, Replayer};

/// Requests of a chunk: 64 KiB.
const CHUNK: usize = 2048;
/// Chunks that are read ahead.
const CHUNKS: usize = 4;

type Timed = (Step, u64);

/// A log's requests.
#[derive(Debug)]
pub(crate) struct Replay {
    is_paced: bool,
    chunks: Receiver<Result<Vec<Timed>, String>>,
    back: Sender<Vec<Timed>>,
    chunk: Vec<Timed>,
    at: usize,
    /// When the requests of the last block are due, in nanoseconds since the beginning.
    dues: [u64; REQUEST_BLOCK],
    fault: Option<String>,
}

impl Replay {
    /// Opens the log and reads its beginning.
    pub(crate) fn open(plan: &JobPlan, replay: &ReplayPlan, open_log: OpenLog) -> Self {
        let (sender, chunks) = sync_channel(CHUNKS);
        let (back, empty) = channel();
        let checked = Checked::new(plan, replay);
        let (log, settings) = (replay.log.clone(), replay.settings.clone());
        let spawned = std::thread::Builder::new().name("iolog".to_owned()).spawn(move || {
            let replayer = open_log(&log)
                .map_err(|error| format!("`{log}` cannot be opened: {error}"))
                .and_then(|file| Replayer::new(file, settings).map_err(|error| at_line(&log, &error)));
            let result = replayer.and_then(|replayer| read_all(replayer, &log, &checked, &sender, &empty));
            if let Err(reason) = result {
                // A worker that has ended needs no reason.
                let _ = sender.send(Err(reason));
            }
        });
        let fault = spawned.err().map(|error| format!("the log's reader cannot be started: {error}"));
        let is_paced = replay.settings.is_paced;
        let mut replay = Self { is_paced, chunks, back, chunk: Vec::new(), at: 0, dues: [0; REQUEST_BLOCK], fault };
        replay.next_chunk();
        replay
    }

    /// Takes the next chunk; false if there is none.
    fn next_chunk(&mut self) -> bool {
        let mut used = std::mem::take(&mut self.chunk);
        used.clear();
        // The reader may have ended.
        let _ = self.back.send(used);
        self.at = 0;
        match self.chunks.recv() {
            Ok(Ok(chunk)) => self.chunk = chunk,
            Ok(Err(reason)) => self.fault = Some(reason),
            Err(_) => {}
        }
        !self.chunk.is_empty()
    }

    fn next(&mut self) -> Option<Timed> {
        if self.at == self.chunk.len() && (self.fault.is_some() || !self.next_chunk()) {
            return None;
        }
        self.at += 1;
        Some(self.chunk[self.at - 1])
    }

    /// The next requests; returns how many, 0 at the end.
    pub(crate) fn refill(&mut self, out: &mut [Step; REQUEST_BLOCK]) -> usize {
        for (filled, slot) in out.iter_mut().enumerate() {
            let Some((step, due_ns)) = self.next() else { return filled };
            *slot = step;
            self.dues[filled] = due_ns;
        }
        REQUEST_BLOCK
    }

    /// Returns when the request at this index of the last block is due; `None` if it has no time.
    pub(crate) fn due_ns(&self, at: usize) -> Option<u64> {
        self.is_paced.then(|| self.dues[at])
    }

    /// Returns how many requests from this index of the last block (which has `filled`) on were due by `now_ns`.
    pub(crate) fn backlog(&mut self, at: usize, filled: usize, now_ns: u64) -> u64 {
        if !self.is_paced {
            return 0;
        }
        let in_block = self.dues[at..filled].iter().filter(|due| **due < now_ns).count() as u64;
        let mut count = in_block;
        // Times do not go back: the first that was not due ends it.
        while in_block == (filled - at) as u64 && self.next().is_some_and(|(_, due_ns)| due_ns < now_ns) {
            count += 1;
        }
        count
    }

    /// Why there are no more requests, if it is not the log's end.
    pub(crate) fn fault(&mut self) -> Option<String> {
        self.fault.take()
    }
}

fn at_line(log: &str, error: &IologError) -> String {
    format!("`{log}`, {error}")
}

/// What the plan allows.
struct Checked {
    files: HashMap<String, u16>,
    /// Where the region of each file begins and ends.
    regions: Vec<(u64, u64)>,
    ops: Vec<OpKind>,
    length_bytes_max: u64,
}

impl Checked {
    fn new(plan: &JobPlan, replay: &ReplayPlan) -> Self {
        assert!(plan.files.len() <= 1 << 16, "a request names its file in 16 bits");
        Self {
            files: replay.names.iter().cloned().zip(0..=u16::MAX).collect(),
            regions: plan.files.iter().map(|file| (file.offset_bytes, file.offset_bytes + file.size_bytes)).collect(),
            ops: replay.ops.clone(),
            length_bytes_max: replay.length_bytes_max,
        }
    }

    /// The file, if the I/O is one that was planned.
    fn file(&self, name: &str, op: OpKind, offset: u64, length: u32) -> Option<u16> {
        let file = *self.files.get(name)?;
        let (begin, end) = *self.regions.get(usize::from(file))?;
        let moves_data = matches!(op, OpKind::Read | OpKind::Write);
        let is_planned = self.ops.contains(&op)
            && offset >= begin
            && offset.checked_add(u64::from(length)).is_some_and(|last| last <= end)
            && (!moves_data || u64::from(length) <= self.length_bytes_max);
        // Sync calls have no offset.
        (is_planned || op == OpKind::Sync && self.ops.contains(&op)).then_some(file)
    }
}

fn read_all(
    mut replayer: Replayer<Box<dyn Read + Send>>,
    log: &str,
    checked: &Checked,
    sender: &SyncSender<Result<Vec<Timed>, String>>,
    empty: &Receiver<Vec<Timed>>,
) -> Result<(), String> {
    let mut chunk: Vec<Timed> = Vec::with_capacity(CHUNK);
    loop {
        let next = match replayer.next_io().map_err(|error| at_line(log, &error))? {
            None => None,
            Some((name, io)) => {
                let file = checked.file(name, io.op, io.offset, io.length);
                Some((file, io))
            }
        };
        if let Some((file, io)) = next {
            let file = file.ok_or_else(|| {
                format!(
                    "`{log}`, line {}: it was not there when the job was planned: the log has changed",
                    replayer.line()
                )
            })?;
            let step = match io.op {
                OpKind::Sync => Step::Sync { file, data_only: io.data_only },
                op => Step::Io(Request { offset: io.offset, length: io.length, file, op }),
            };
            chunk.push((step, io.due_ns));
        }
        let is_over = next.is_none();
        if chunk.len() == CHUNK || (is_over && !chunk.is_empty()) {
            let room = empty.try_recv().unwrap_or_default();
            if sender.send(Ok(std::mem::replace(&mut chunk, room))).is_err() {
                return Ok(());
            }
        }
        if is_over {
            return Ok(());
        }
    }
}
