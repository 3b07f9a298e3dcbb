//! Writing blocks so that they can be compared, and comparing them.
//!
//! Blocks are compared when a job reads them, after every so many writes (`verify_backlog`), and at its end. The
//! generator gives the same requests again, so nothing is remembered of a job that is compared at its end.

use super::read_back::{Check, ReadingBack};
use super::zoned::Written;
use super::{FAILURES_MAX, Slot, Worker, state};
use crate::clock::Clock;
use crate::engines::{Completion, Engine, EngineError};
use crate::pattern::Generator;
use crate::request::{REQUEST_BLOCK, Request};
use crate::seed::mix64;
use crate::verify::{self, BlockSeal};
use std::collections::{HashSet, VecDeque};
use std::io;
use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::sync_channel;
use trueio_model::{BlockSizes, FileSelection, JobPlan, OpKind, Order, Verify};

/// What a worker needs to compare blocks.
#[derive(Debug)]
pub(super) struct Verifier {
    pub(super) plan: Verify,
    seal: BlockSeal,
    /// What written blocks carry; see [`run_tag`]. 0 when blocks of an earlier run are read.
    run: u64,
    /// Requests after which a job that compares offline ends: as far as the run came that wrote.
    pub(super) issued_max: Option<u64>,
    /// Requests before the last sync call that succeeded.
    synced: u64,
    /// A job that reads and writes compares what it reads: it reads whole blocks as they were written.
    compares_among_writes: bool,
    /// Writes that were not read back yet, with their numbers.
    waiting: VecDeque<(Request, u64)>,
    /// Writes since blocks were last trimmed, with their numbers.
    untrimmed: Vec<(Request, u64)>,
    /// Those of them that are to be trimmed, and were too many for one go.
    to_trim: VecDeque<(Request, u64)>,
    /// The numbers of writes whose blocks were trimmed.
    trimmed: HashSet<u64>,
}

impl Verifier {
    /// # Errors
    /// A sentence, if the state of an earlier run cannot be read.
    pub(super) fn new(job: &JobPlan, worker: u32) -> Result<Option<Self>, String> {
        let Some(plan) = job.verify.clone() else { return Ok(None) };
        let state = if plan.loads_state { Some(state::load(job, worker)?) } else { None };
        let run = match &state {
            Some(state) => state.run()?,
            None if plan.is_offline => 0,
            None => run_tag(),
        };
        let trim_backlog = plan.trim.map_or(0, |trim| trim.backlog);
        Ok(Some(Self {
            seal: BlockSeal::new(plan.clone()),
            run,
            issued_max: state.map(|state| state.compared(plan.synced_only)).transpose()?,
            synced: 0,
            compares_among_writes: matches!(job.pattern.write_sizes, BlockSizes::Fixed(_))
                && job.pattern.read_sizes == job.pattern.write_sizes,
            waiting: VecDeque::with_capacity(plan.backlog as usize),
            untrimmed: Vec::with_capacity(trim_backlog as usize),
            to_trim: VecDeque::new(),
            trimmed: HashSet::new(),
            plan,
        }))
    }

    /// True if blocks are to be read back or trimmed before the job goes on.
    pub(super) fn is_due(&self) -> bool {
        (self.plan.backlog > 0 && self.waiting.len() as u64 >= self.plan.backlog)
            || self.plan.trim.is_some_and(|trim| self.untrimmed.len() as u64 >= trim.backlog)
    }

    /// A sync call succeeded after so many requests, with nothing in flight.
    pub(super) fn note_synced(&mut self, issued: u64) {
        self.synced = issued;
    }

    /// How many of the requests that were issued are compared at the end.
    fn compared(&self, issued: u64) -> u64 {
        if self.plan.synced_only { self.synced.min(issued) } else { issued }
    }

    /// Blocks of a zone that was reset are not read back.
    pub(super) fn forget(&mut self, file: u16, bytes: &Range<u64>) {
        self.waiting.retain(|(request, _)| request.file != file || !bytes.contains(&request.offset));
    }

    /// What is saved of a job that issued so many requests.
    pub(super) fn state(&self, job: &JobPlan, worker: u32, issued: u64) -> state::VerifyState {
        let synced = self.plan.synced_only.then(|| self.compared(issued));
        state::VerifyState::new(job, worker, (issued, synced), self.run)
    }
}

/// A block that was read, on its way to a thread that compares.
struct Item {
    block: Vec<u8>,
    request: Request,
    run: u64,
    sequence: u64,
}

impl<E: Engine, C: Clock> Worker<'_, E, C> {
    /// Makes a write's buffer, the pool's number `index`, ready.
    #[inline]
    pub(super) fn fill(&mut self, index: usize, request: &Request) {
        self.write_sequence += 1;
        let buffer = &mut self.pool.slice_mut(index)[..request.length as usize];
        self.content.prepare(buffer, request.offset, self.write_sequence);
        if let Some(verifier) = &mut self.verifier {
            verifier.seal.seal(buffer, verifier.run, request.offset, self.write_sequence);
            if verifier.plan.backlog > 0 {
                verifier.waiting.push_back((*request, self.write_sequence));
            }
            if verifier.plan.trim.is_some() {
                verifier.untrimmed.push((*request, self.write_sequence));
            }
            if let Some(zoned) = &mut self.zoned
                && let Err(error) = zoned.remember(request, self.write_sequence)
            {
                self.fatal.get_or_insert(format!("remembering the last write to each block of a zone: {error}"));
                self.is_done = true;
            }
        }
    }

    /// Compares the block that was just read into buffer `index`; `sequence` is the number of the write that is
    /// expected there, 0 if that is not known.
    #[cold]
    pub(super) fn compare(&mut self, index: usize, request: &Request, sequence: u64) {
        let Some(verifier) = &self.verifier else { return };
        let block = &mut self.pool.slice_mut(index)[..request.length as usize];
        // In a mixed job a block may be read before it is written; the pass at the end reads them all.
        let is_mixed = self.single_op.is_none();
        let is_its_own = |block: &[u8]| {
            verifier.compares_among_writes && verifier.seal.was_written_by(block, verifier.run) == Some(true)
        };
        if sequence == 0 && is_mixed && !is_its_own(block) {
            return;
        }
        // A job that only reads compares what any run wrote.
        let run = if sequence == 0 && !verifier.plan.loads_state { 0 } else { verifier.run };
        let is_trimmed = verifier.trimmed.contains(&sequence);
        if is_trimmed && verifier.plan.trim.is_some_and(|trim| !trim.is_zero) {
            return;
        }
        self.verified_block_count += 1;
        self.note_compared(request, index as u32);
        let Some(verifier) = &self.verifier else { return };
        let block = &mut self.pool.slice_mut(index)[..request.length as usize];
        let result = match is_trimmed {
            true => zeros(block),
            false => verifier.seal.check(block, run, request.offset, sequence),
        };
        if let Err(difference) = result {
            let block = block.to_vec();
            self.note_difference(request, difference, &block);
        }
    }

    fn note_difference(&mut self, request: &Request, difference: (String, String), block: &[u8]) {
        self.verify_failure_count += 1;
        let path = self.path(request.file);
        if self.verify_failures.len() < FAILURES_MAX {
            self.verify_failures.push(verify::failure(&path, request, difference));
            if self.verifier.as_ref().is_some_and(|verifier| verifier.plan.dumps) {
                self.notes.push(state::dump(&path, request.offset, block));
            }
        }
        if self.verifier.as_ref().is_some_and(|verifier| verifier.plan.stops_at_first) {
            self.is_done = true;
        }
    }

    /// True if the first difference was to end the job, and came.
    pub(super) fn has_given_up(&self) -> bool {
        self.verify_failure_count > 0 && self.verifier.as_ref().is_some_and(|verifier| verifier.plan.stops_at_first)
    }

    /// One I/O with buffer 0 and nothing else in flight; its result.
    fn do_alone(&mut self, request: &Request) -> Result<i64, EngineError> {
        self.engine.queue(0, request, self.pool.buffer_ptr(0));
        self.engine.submit()?;
        let mut out = [Completion::NONE];
        while self.engine.reap(1, None, &mut out)? == 0 {}
        Ok(out[0].result)
    }

    /// Before anything is read back.
    fn begin_reading_back(&mut self) {
        let depth = self.slots.len();
        self.reading_back.get_or_insert_with(|| Box::new(ReadingBack::new(depth)));
    }

    fn has_failed_to_read_back(&self) -> bool {
        self.reading_back.as_ref().is_some_and(|reading| reading.has_failed())
    }

    /// With nothing in flight: reads back what `verify_backlog` says, and trims what `trim_backlog` says.
    #[cold]
    pub(super) fn settle_backlog(&mut self) -> Result<(), EngineError> {
        let Some(verifier) = &mut self.verifier else { return Ok(()) };
        let plan = &verifier.plan;
        if plan.backlog > 0 && verifier.waiting.len() as u64 >= plan.backlog {
            let batch = if plan.backlog_batch > 0 { plan.backlog_batch as usize } else { usize::MAX };
            let batch = batch.min(verifier.waiting.len());
            self.begin_reading_back();
            let check = &mut |worker: &mut Self, index, request: &Request, sequence| {
                worker.compare(index, request, sequence);
            };
            for _ in 0..batch {
                if self.looks_up_and_is_over() {
                    break;
                }
                let Some((request, sequence)) = self.verifier.as_mut().and_then(|v| v.waiting.pop_front()) else {
                    break;
                };
                if !self.read_later(&request, sequence, check)? {
                    break;
                }
            }
            self.collect_rest(check)?;
            if self.has_failed_to_read_back() {
                self.is_done = true;
            }
            if self.is_done {
                return Ok(());
            }
        }
        self.trim_backlog()
    }

    /// Between two steps of something long that the loop waits for: what has come with time, and whether the job is over.
    fn looks_up_and_is_over(&mut self) -> bool {
        let now = self.clock.now();
        if now >= self.next_event {
            self.handle_events(now);
        }
        self.heed_stop();
        self.is_done
    }

    /// Trims the share of blocks that is to be trimmed, of those written since the last time.
    fn trim_backlog(&mut self) -> Result<(), EngineError> {
        let Some(verifier) = &mut self.verifier else { return Ok(()) };
        let Some(trim) = verifier.plan.trim.filter(|trim| verifier.untrimmed.len() as u64 >= trim.backlog) else {
            return Ok(());
        };
        let seed = self.context.plan.seed;
        let is_chosen = |(_, sequence): &(Request, u64)| mix64(seed ^ sequence) % 100 < u64::from(trim.percent);
        verifier.to_trim.extend(verifier.untrimmed.drain(..).filter(is_chosen));
        let count = if trim.batch > 0 { trim.batch as usize } else { usize::MAX };
        let count = count.min(verifier.to_trim.len());
        let chosen: Vec<(Request, u64)> = verifier.to_trim.drain(..count).collect();
        for (request, sequence) in chosen {
            if self.looks_up_and_is_over() {
                return Ok(());
            }
            let request = Request { op: OpKind::Trim, ..request };
            self.note_issued(&request, 0);
            let before = self.clock.now();
            let done = self.do_alone(&request)?;
            let now = self.clock.now();
            self.note_complete(&request, 0);
            let recorder = self.recorder.op(OpKind::Trim);
            if done != i64::from(request.length) {
                recorder.error_count += 1;
                self.note_failure(&request, (-done).max(0) as i32, done.max(0) as u64, 0);
                self.is_done = true;
                return Ok(());
            }
            let ns = self.clock.to_ns(now - before);
            recorder.io_count += 1;
            recorder.byte_count += u64::from(request.length);
            recorder.interval.record(ns);
            if !E::BLOCKS {
                recorder.set.submission.record(ns);
                recorder.set.completion.record(0);
            }
            // Nothing else is in flight: the slot that it went through is free.
            self.slots[0] = Slot { request, issued: before, handed: now, due: before, free_since: before };
            self.log_one(0, u64::from(request.length), now);
            if let Some(verifier) = &mut self.verifier {
                verifier.trimmed.insert(sequence);
            }
        }
        Ok(())
    }

    /// Where blocks come again, or are of several sizes: the number of the write that came last to each unit of each file.
    /// A block that was overwritten in part cannot be compared, and one that was overwritten need not be.
    fn last_writes(&self) -> Result<Option<Vec<Vec<u64>>>, EngineError> {
        let plan = self.context.plan;
        let mut generator = Generator::new(plan, self.context.worker);
        let unit = generator.unit_bytes();
        let held: u64 = plan.files.iter().map(|file| file.size_bytes / unit.max(1)).sum();
        let is_drawn = matches!(plan.pattern.order, Order::Random { each_block_once: false, .. })
            || matches!(plan.file_selection, FileSelection::Drawn { .. });
        let comes_once = matches!(plan.pattern.write_sizes, BlockSizes::Fixed(_)) && !is_drawn && self.issued() <= held;
        if comes_once || plan.replay.is_some() {
            return Ok(None);
        }
        let mut last: Vec<Vec<u64>> = Vec::new();
        for file in &plan.files {
            let mut units: Vec<u64> = Vec::new();
            let count = (file.size_bytes / unit) as usize;
            units.try_reserve_exact(count).map_err(|_| EngineError {
                engine: E::KIND,
                attempted: format!("remembering the last write to each of {count} units of `{}`", file.path),
                source: io::ErrorKind::OutOfMemory.into(),
            })?;
            drop(units);
            // Pages that are zero and that nobody writes to take no memory.
            last.push(vec![0; count]);
        }
        let mut block = [Request::NONE; REQUEST_BLOCK];
        let (mut left, mut sequence) = (self.issued(), 0);
        while left > 0 {
            let n = generator.refill(&mut block).min(left as usize);
            assert!(n > 0, "the same plan gives the same requests again");
            left -= n as u64;
            for request in block[..n].iter().filter(|r| r.op == OpKind::Write) {
                sequence += 1;
                units_of(plan, request, unit, &mut last).fill(sequence);
            }
        }
        Ok(Some(last))
    }

    /// Before a verify pass: everything goes to the disk and leaves the page cache, so that it is the
    /// disk that is read. Returns false if that failed.
    pub(super) fn settle_files(&mut self) -> bool {
        for (index, target) in self.context.files.iter().enumerate() {
            let result = self.engine.sync_file(index as u16, true);
            if result != 0 {
                let request = Request { op: OpKind::Sync, file: index as u16, data_only: true, ..Request::NONE };
                self.note_failure(&request, -result as i32, 0, 0);
                let error = io::Error::from_raw_os_error(-result as i32);
                self.fatal = Some(format!("fdatasync of `{}` before its verify pass failed: {error}", target.path));
                return false;
            }
            // Pages that stay (mapped ones, and those of tmpfs) are read from memory; counted, so that
            // the record says so.
            let _ = trueio_direct::evict(&target.file, 0, 0);
            if let Ok(left) = trueio_direct::residency(&target.file, 0, target.end_bytes)
                && left.cached_pages > 0
            {
                self.notes.push(format!(
                    "verify: {} of {} pages of `{}` stayed in the page cache and were compared from there",
                    left.cached_pages, left.file_pages, target.path
                ));
            }
        }
        true
    }

    /// Reads back everything this worker wrote, in the order it was written, and compares it, here or on threads.
    /// No part of the measured time.
    pub(super) fn verify_written(&mut self) -> Result<(), EngineError> {
        let Some(verifier) = &self.verifier else { return Ok(()) };
        if !verifier.plan.reads_back {
            return Ok(());
        }
        if verifier.plan.synced_only && verifier.compared(self.issued()) == 0 {
            self.fatal = Some(
                "nothing was synced before the job ended, so nothing could be compared (`verify_policy=fsynced`): let \
                 sync calls come earlier, or say `end_fsync`"
                    .to_owned(),
            );
            return Ok(());
        }
        let (seal, run, threads) = (verifier.seal.clone(), verifier.run, verifier.plan.threads as usize);
        if !self.settle_files() {
            return Ok(());
        }
        self.begin_reading_back();
        self.is_reading_all_back = true;
        let began = self.clock.now();
        let result = match threads {
            0 => self.read_back(&mut |worker, index, request, sequence| worker.compare(index, request, sequence)),
            _ => self.read_back_for(threads, &seal, run),
        };
        let elapsed_ns = self.clock.to_ns(self.clock.now() - began);
        if let Some(reading) = &mut self.reading_back {
            reading.note_pass(elapsed_ns);
        }
        result
    }

    /// The same; so many threads compare.
    fn read_back_for(&mut self, threads: usize, seal: &BlockSeal, run: u64) -> Result<(), EngineError> {
        let (sender, receiver) = sync_channel::<Item>(2 * threads);
        let (receiver, found) = (Mutex::new(receiver), Mutex::new(Vec::new()));
        let result = std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    loop {
                        let next = receiver.lock().expect("nobody panics while receiving").recv();
                        let Ok(mut item) = next else { return };
                        let result = seal.check(&mut item.block, item.run, item.request.offset, item.sequence);
                        if let Err(difference) = result {
                            let mut found = found.lock().expect("nobody panics while adding");
                            found.push((item.sequence, item.request, difference, item.block));
                        }
                    }
                });
            }
            let result = self.read_back(&mut |worker, index, request, sequence| {
                if worker.verifier.as_ref().is_some_and(|verifier| verifier.trimmed.contains(&sequence)) {
                    return worker.compare(index, request, sequence);
                }
                worker.verified_block_count += 1;
                worker.note_compared(request, index as u32);
                let block = worker.pool.slice(index)[..request.length as usize].to_vec();
                // The threads live until this sender is gone.
                let _ = sender.send(Item { block, request: *request, run, sequence });
            });
            drop(sender);
            result
        });
        let mut found = found.into_inner().expect("nobody panics while adding");
        found.sort_by_key(|(sequence, ..)| *sequence);
        for (_, request, difference, block) in found {
            self.note_difference(&request, difference, &block);
        }
        result
    }

    /// Reads back every block whose last write is known, in the order they were written.
    fn read_back(&mut self, check: &mut Check<'_, Self>) -> Result<(), EngineError> {
        // What a backlog was compared is done with, unless it was trimmed since.
        let has_backlog = self.verifier.as_ref().is_some_and(|v| v.plan.backlog > 0 && v.plan.trim.is_none());
        match self.zoned.as_mut().map(|zoned| zoned.take_written()) {
            None if has_backlog => self.read_back_waiting(check)?,
            None => self.read_back_requests(check)?,
            Some(None) => {}
            Some(Some(written)) => self.read_back_zones(&written, check)?,
        }
        self.collect_rest(check)
    }

    /// Reads back what a backlog has not come to, without waiting for the last ones.
    fn read_back_waiting(&mut self, check: &mut Check<'_, Self>) -> Result<(), EngineError> {
        while let Some((request, sequence)) = self.verifier.as_mut().and_then(|verifier| verifier.waiting.pop_front()) {
            if self.context.stop.load(Relaxed) {
                self.was_stopped = true;
                break;
            }
            if !self.read_later(&request, sequence, check)? || self.has_given_up() {
                break;
            }
        }
        Ok(())
    }

    /// Reads back every block, without waiting for the last ones.
    fn read_back_requests(&mut self, check: &mut Check<'_, Self>) -> Result<(), EngineError> {
        let mut last = self.last_writes()?;
        let mut generator = Generator::new(self.context.plan, self.context.worker);
        let mut block = [Request::NONE; REQUEST_BLOCK];
        let compared = self.verifier.as_ref().map_or(0, |verifier| verifier.compared(self.issued()));
        let (mut left, mut sequence) = (compared, 0);
        while left > 0 {
            let n = generator.refill(&mut block).min(left as usize);
            assert!(n > 0, "the same plan gives the same requests again");
            left -= n as u64;
            for request in &block[..n] {
                if request.op != OpKind::Write {
                    continue;
                }
                if self.context.stop.load(Relaxed) {
                    self.was_stopped = true;
                    return Ok(());
                }
                sequence += 1;
                if let Some(last) = &mut last {
                    let unit = generator.unit_bytes();
                    if units_of(self.context.plan, request, unit, last).iter().any(|&n| n != sequence) {
                        continue;
                    }
                }
                let looks_away = self.verifier.as_ref().is_some_and(|verifier| {
                    verifier.trimmed.contains(&sequence) && verifier.plan.trim.is_some_and(|trim| !trim.is_zero)
                });
                if looks_away {
                    continue;
                }
                if !self.read_later(request, sequence, check)? || self.has_given_up() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The same in zones, where the generator does not know the places: zone by zone, in the order of writing.
    fn read_back_zones(&mut self, written: &Written, check: &mut Check<'_, Self>) -> Result<(), EngineError> {
        let length = self.context.plan.pattern.write_sizes.max_bytes() as u32;
        for (file, offset, sequence) in written.blocks() {
            if self.context.stop.load(Relaxed) {
                self.was_stopped = true;
                return Ok(());
            }
            let request = Request { op: OpKind::Read, file, offset, length, data_only: false };
            if !self.read_later(&request, sequence, check)? || self.has_given_up() {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// A trimmed block must hold nothing.
fn zeros(block: &[u8]) -> Result<(), (String, String)> {
    match block.iter().position(|&byte| byte != 0) {
        None => Ok(()),
        Some(at) => {
            let end = block.len().min(at + 16);
            Err(("zeros: the block was trimmed".to_owned(), format!("from byte {at} on {:02x?}", &block[at..end])))
        }
    }
}

/// The units that a request touches, of a list for each file.
fn units_of<'a>(plan: &JobPlan, request: &Request, unit: u64, of: &'a mut [Vec<u64>]) -> &'a mut [u64] {
    let file = usize::from(request.file);
    let first = ((request.offset - plan.files[file].offset_bytes) / unit) as usize;
    &mut of[file][first..first + (u64::from(request.length) / unit) as usize]
}

/// Marks the writes of this worker in this run. Never 0, and never the same twice: with the same seed a
/// run writes the same to the same places, and if the disk lost it all, what an earlier run left there
/// would read back as if it had been written.
fn run_tag() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish() | 1
}
