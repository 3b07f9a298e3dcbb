//! The loop.
//!
//! One thread of a job: takes requests, hands them to the engine, reads the clock, counts.
//!
//! Where time stamps are shared: one reading just before a submission serves all I/Os of that
//! submission, one just after it serves their hand-over, and one after each collection serves all
//! completions of that collection. If completions are already there when the submission returns,
//! the reading after it is theirs too. So a latency contains the time its neighbours in the same
//! batch took to be handed over; how large batches may grow is therefore bound by the latency itself
//! ([`adapted_batch`]), unless the job asks for a size. Cached buffered reads are the one exception, and
//! are told of in the record: [`Sharing`].
//!
//! Nothing here allocates once the loop runs: slots, buffers, histograms and request blocks are
//! made before. Failures take the cold path.

use crate::batch::Sharing;
use crate::buffers::Buffers;
use crate::clock::Clock;
use crate::content::ContentSource;
use crate::engines::{Completion, Engine, EngineError, sync_range};
use crate::log::{IssuedIo, LogBuffer};
use crate::pace::Calendar;
use crate::pattern::Generator;
use crate::priority::PriorityRecorder;
use crate::recorder::{FAILURES_MAX, INTERVAL_NS, Recorder, WorkerReport, slot_of};
use crate::replay::Replay;
use crate::request::{REQUEST_BLOCK, Request};
use crate::sample::Samples;
use crate::seed::worker_seed;
use crate::target::TargetFile;
use locking::Locks;
use read_back::ReadingBack;
use search::Search;
use spans::Spans;
use std::io;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::os::fd::AsRawFd as _;
use std::sync::atomic::Ordering::Relaxed;
use supply::{SOURCE_WAIT_BUSY, SOURCE_WAIT_IDLE, Supply};
use trueio_model::{
    EngineKind, IoFailure, JobPlan, Locking, OpKind, QueueCounts, RangeSync, ThreadUsage, VerifyFailure, error_line,
};
use verifying::Verifier;
use zoned::Zoned;

mod context;
mod events;
mod failing;
mod finish;
mod flow;
mod guard;
mod launch;
mod locking;
mod logging;
mod operations;
mod read_back;
mod remaking;
mod search;
mod spans;
mod start;
mod state;
mod supply;
mod timing;
mod usage;
mod verifying;
mod zoned;

pub use context::{Host, Passed, WorkerContext};
pub use flow::Flow;
pub use launch::run_worker;
pub use operations::operations;
pub use spans::{SpanFigures, SpanJudge};
pub use start::{Gate, Start};
pub use usage::{thread_usage, usage_between, usage_of};

#[derive(Debug, Clone, Copy)]
struct Slot {
    request: Request,
    /// Clock readings: just before and just after the hand-over.
    issued: u64,
    handed: u64,
    /// When it was due (paced jobs).
    due: u64,
    /// Since when a slot was free when it was handed over (paced jobs).
    free_since: u64,
}

/// One thread of a job, on one engine and one clock.
#[derive(Debug)]
pub struct Worker<'a, E, C> {
    context: &'a WorkerContext<'a>,
    engine: E,
    clock: C,
    /// Freed by hand, when nothing is in flight any more. If the worker fails or panics before, the
    /// kernel may still write to these buffers after the engine is closed (a closed io_uring ends its
    /// I/Os in the background): the memory is then given up rather than given to somebody else.
    pool: ManuallyDrop<Buffers>,
    generator: Generator,
    content: ContentSource,
    /// Where the bytes come from, if they are fetched.
    supply: Option<Supply>,
    /// The first of the pool's buffers that writes use: slot `i` writes from this one plus `i`.
    write_buffers_from: usize,
    writes_need_data: bool,
    sharing: Sharing,
    /// Paced and verified jobs; all others while I/Os are sampled.
    has_work_per_io: bool,
    samples: Samples<'a>,
    log: Option<LogBuffer>,
    iolog: Option<Box<LogBuffer<IssuedIo>>>,
    /// The last question that was answered with a snapshot.
    answered: u32,
    calendar: Option<Calendar>,
    /// Each I/O has a moment at which it is due.
    is_paced: bool,
    recorder: Recorder,
    slots: Box<[Slot]>,
    free: Box<[u32]>,
    free_count: usize,
    /// The slots queued since the last submission.
    queued: Box<[u32]>,
    completions: Box<[Completion]>,
    block: [Request; REQUEST_BLOCK],
    // Narrower than `free_count`: of two neighbours of one width LLVM makes a single vector addition, and
    // reading back one half of what was stored as a whole stalls (6 ns an I/O on the null engine).
    block_at: u32,
    block_end: u32,
    batch: usize,
    is_batch_adapted: bool,
    single_op: Option<OpKind>,
    write_sequence: u64,
    verifier: Option<Verifier>,
    /// Zones, if the job writes them by their rules.
    zoned: Option<Box<Zoned>>,
    watched: guard::Watched,
    /// The search for a queue depth, if the job has a latency target.
    search: Option<Box<Search>>,
    /// Spans that somebody judges, if the job ends when it is steady.
    spans: Option<Box<Spans<'a>>>,
    /// The locks of its files, if it takes them.
    locks: Option<Box<Locks>>,
    /// Its part in a flow, while it is in it.
    share: Option<flow::Share<'a>>,
    /// Free slots that are not used: the queue is to be less deep than it could be, or runs low before it is refilled.
    reserve: usize,
    /// Requests taken from the generator before this block; see [`Worker::issued`].
    issued_before: u64,
    /// The due time of the request at `block_at`, once the calendar was asked for it.
    pending_due: Option<u64>,
    thought_at: u64,
    /// A pause begins as soon as nothing is in flight.
    is_pausing: bool,
    not_before: u64,
    /// Since when at least one slot is free and may be used.
    free_since: u64,
    started: u64,
    measured_from: u64,
    row_from: u64,
    deadline: u64,
    next_event: u64,
    is_ramping: bool,
    is_done: bool,
    /// The generator has no more: every I/O of the job was issued.
    is_exhausted: bool,
    was_stopped: bool,
    /// When the deadline or the request to stop ended the job; 0 if its limits did.
    ended: u64,
    submit_ns: u64,
    submit_count: u64,
    usage_from: ThreadUsage,
    failures: Vec<IoFailure>,
    fatal: Option<String>,
    notes: Vec<String>,
    verify_failures: Vec<VerifyFailure>,
    verified_block_count: u64,
    verify_failure_count: u64,
    reading_back: Option<Box<ReadingBack>>,
    /// The job's own I/O is over, and all that it wrote is read back.
    is_reading_all_back: bool,
}

impl<'a, E: Engine, C: Clock> Worker<'a, E, C> {
    /// A worker that is ready to run. The engine was made over `pool`'s region.
    #[expect(clippy::too_many_lines, reason = "until it is split")]
    pub fn new(context: &'a WorkerContext<'a>, engine: E, clock: C, mut pool: Buffers) -> Self {
        let plan = context.plan;
        let depth = plan.queue.depth as usize;
        assert!(depth > 0 && (!E::BLOCKS || depth == 1), "the plan gives blocking engines one slot");
        let mut content = ContentSource::new(plan.content.clone(), worker_seed(plan, context.worker));
        let (ops, single_op) = operations::of(plan);
        // A pool that is twice as large as the queue keeps reads and writes apart.
        let write_buffers_from = pool.count() - depth;
        if ops.contains(&OpKind::Write) {
            (write_buffers_from..pool.count()).for_each(|i| content.fill_initial(pool.slice_mut(i)));
        }
        let is_batch_adapted = plan.queue.submit_batch.is_none();
        let batch = plan.queue.submit_batch.unwrap_or(1).clamp(1, plan.queue.depth) as usize;
        let slot = Slot { request: Request::NONE, issued: 0, handed: 0, due: 0, free_since: 0 };
        let complete_max = match plan.queue.complete_max {
            0 => depth,
            most => (most as usize).min(depth),
        };
        let samples = Samples::new(context.sample_window, &clock);
        let target = plan.control.latency_target;
        let judged = context.judge.zip(plan.control.criterion);
        let spans = judged.map(|(judge, plan)| Box::new(Spans::new(judge, &plan, &clock)));
        let search = target.map(|target| Box::new(Search::new(target, plan.queue.depth, &clock)));
        let mut recorder = Recorder::new(&ops, plan.is_paced());
        recorder.priorities = PriorityRecorder::new(plan);
        let mut generator = Generator::new(plan, context.worker);
        if plan.output.shows_draws {
            generator.tell_draws();
        }
        let made = Verifier::new(plan, context.worker)
            .and_then(|verifier| Ok((verifier, Zoned::new(plan, context.zones, generator.unit_bytes())?)));
        let (verifier, mut zoned, fatal) = match made {
            Ok((verifier, zoned)) => (verifier, zoned, None),
            Err(sentence) => (None, None, Some(sentence)),
        };
        if let Some(zoned) = zoned.as_mut().filter(|_| context.waits_for.is_empty()) {
            zoned.begin();
        }
        Self {
            context,
            engine,
            clock,
            samples,
            log: context.log.as_ref().map(LogBuffer::new),
            iolog: context.iolog.as_ref().map(|door| Box::new(LogBuffer::new(door))),
            answered: 0,
            pool: ManuallyDrop::new(pool),
            generator,
            content,
            supply: None,
            write_buffers_from,
            sharing: Sharing {
                is_possible: E::KIND == EngineKind::IoUring
                    && is_batch_adapted
                    && single_op == Some(OpKind::Read)
                    && context.log.is_none()
                    && plan.priorities.is_empty()
                    && context.files.iter().all(is_buffered),
                usual_ns: 0,
                count: 0,
            },
            // What is fetched is in the buffer before its slot is taken.
            writes_need_data: plan.source.is_none() && (E::KIND.touches_files() || plan.content.refill),
            has_work_per_io: has_work_per_io(plan) || context.log.is_some(),
            calendar: Calendar::new(plan, context.worker),
            is_paced: plan.is_paced(),
            recorder,
            slots: vec![slot; depth].into(),
            free: (0..depth as u32).rev().collect(),
            free_count: depth,
            queued: vec![0; depth].into(),
            completions: vec![Completion::NONE; complete_max].into(),
            block: [Request::NONE; REQUEST_BLOCK],
            block_at: 0,
            block_end: 0,
            batch,
            is_batch_adapted,
            single_op,
            write_sequence: 0,
            verifier,
            zoned,
            watched: guard::Watched::default(),
            search,
            spans,
            locks: Locks::new(plan.handling.locking, context.files),
            share: None,
            reserve: 0,
            issued_before: 0,
            pending_due: None,
            thought_at: 0,
            is_pausing: false,
            not_before: 0,
            free_since: 0,
            started: 0,
            measured_from: 0,
            row_from: 0,
            deadline: u64::MAX,
            next_event: 0,
            is_ramping: false,
            is_done: fatal.is_some(),
            is_exhausted: false,
            was_stopped: false,
            ended: 0,
            submit_ns: 0,
            submit_count: 0,
            usage_from: ThreadUsage::default(),
            failures: Vec::with_capacity(FAILURES_MAX),
            fatal,
            notes: Vec::new(),
            verify_failures: Vec::new(),
            verified_block_count: 0,
            verify_failure_count: 0,
            reading_back: None,
            is_reading_all_back: false,
        }
    }

    /// A job that compares offline reads what it would write, as far as the run came that wrote it.
    #[cold]
    fn read_instead(&mut self) {
        let Some(verifier) = self.verifier.as_ref().filter(|verifier| verifier.plan.is_offline) else { return };
        let left =
            verifier.issued_max.unwrap_or(u64::MAX) - self.issued_before.min(verifier.issued_max.unwrap_or(u64::MAX));
        self.block_end = self.block_end.min(u32::try_from(left).unwrap_or(u32::MAX));
        for request in self.block[..self.block_end as usize].iter_mut().filter(|request| request.op == OpKind::Write) {
            request.op = OpKind::Read;
        }
    }

    /// Jobs whose next I/O needs more than a free slot: bytes that are fetched, or a place in a zone.
    #[cold]
    fn settle_place(&mut self, request: &mut Request, queued: usize) -> Option<Wait> {
        match self.supply {
            Some(_) => self.collect_from_source(request, queued),
            None => self.settle_in_zone(request),
        }
    }

    /// Requests taken from the generator so far: what a verify pass replays.
    fn issued(&self) -> u64 {
        self.issued_before + u64::from(self.block_at)
    }

    #[inline(always)]
    fn in_flight(&self) -> usize {
        self.slots.len() - self.free_count
    }

    /// The present after an I/O that may have been a memory copy.
    #[inline(always)]
    fn now_after(&self) -> u64 {
        if E::NEEDS_ORDERED_CLOCK { self.clock.now_ordered() } else { self.clock.now() }
    }

    /// Waits for the start, does everything, and reports.
    pub fn run(mut self) -> WorkerReport {
        if let Some(source) = &self.context.plan.source {
            // Nothing is requested before the start.
            match (self.context.host.open_body)(source) {
                Ok(source) => self.supply = Some(Supply { source, filled: 0, waited: 0, is_tail: false }),
                Err(error) => {
                    self.fatal = Some(error);
                    self.is_done = true;
                }
            }
        }
        if self.context.plan.limits.start_delay_ns == 0 && self.context.waits_for.is_empty() {
            // All together, before the first of them is on its way.
            self.join_flow();
        }
        self.context.reached();
        let limits = &self.context.plan.limits;
        self.started = self.clock.now();
        if limits.start_delay_ns > 0 {
            let until = self.started + self.clock.to_ticks(limits.start_delay_ns);
            while self.started < until && !self.context.stop.load(Relaxed) {
                let look_up = self.started + self.clock.to_ticks(INTERVAL_NS / 2);
                self.started = self.clock.wait_until(until.min(look_up));
            }
        }
        self.empty_zones();
        self.join_flow();
        if let Some(zoned) = &mut self.zoned {
            zoned.begin();
        }
        self.not_before = self.started;
        self.measured_from = self.started + self.clock.to_ticks(limits.ramp_ns);
        self.is_ramping = limits.ramp_ns > 0;
        if let Some(runtime_ns) = limits.runtime_ns {
            self.deadline = self.measured_from + self.clock.to_ticks(runtime_ns);
        }
        self.row_from = self.measured_from;
        self.usage_from = thread_usage();
        if !self.is_ramping {
            self.look_for_window(self.started);
            self.begin_search(self.started);
            self.begin_spans(self.started);
        }
        self.next_event = if self.is_ramping { self.measured_from } else { self.next_look() };
        let mut last = self.measured_from;
        let result = self.issue_all(&mut last);
        if let Err(error) = result {
            self.fatal.get_or_insert(error_line(&error));
        }
        self.finish(last)
    }

    /// The loop itself. `last` becomes the moment of the last completion.
    #[expect(clippy::too_many_lines, reason = "until it is split")]
    fn issue_all(&mut self, last: &mut u64) -> Result<(), EngineError> {
        let is_replayed = self.context.plan.replay.is_some();
        let is_timed = self.calendar.is_some()
            || self.context.plan.think.is_some()
            || self.share.is_some()
            || self.locks.is_some()
            || is_replayed
            || self.iolog.is_some();
        let has_place = self.supply.is_some() || self.zoned.is_some();
        let trims_first = self.context.plan.pattern.steps.trims_first;
        let is_asked = self.context.plan.queue.serializes_overlap;
        // Where an I/O in zones goes is known only when it has its place.
        let needs_order = (self.verifier.is_some() || trims_first || is_asked) && self.zoned.is_none();
        let is_serial = needs_order && self.slots.len() > 1 && self.modifies();
        let has_backlog = self.verifier.as_ref().is_some_and(|v| v.plan.backlog > 0 || v.plan.trim.is_some());
        let complete_min = (self.context.plan.queue.complete_min.max(1) as usize).min(self.completions.len());
        loop {
            self.heed_stop();
            let mut queued = 0;
            let mut wait = if self.is_done { Wait::Everything } else { Wait::No };
            if !self.is_done {
                while queued < self.batch && self.free_count > self.reserve {
                    if self.block_at == self.block_end {
                        self.issued_before += u64::from(self.block_end);
                        if self.generator.asks_time() {
                            self.generator.tell_time(self.clock.to_ns(self.clock.now().saturating_sub(self.started)));
                        }
                        self.block_end = self.generator.refill(&mut self.block) as u32;
                        self.block_at = 0;
                        if self.verifier.is_some() {
                            self.read_instead();
                        }
                        if self.block_end == 0 {
                            self.is_done = true;
                            self.is_exhausted = true;
                            if let Some(fault) = self.generator.replay().and_then(Replay::fault) {
                                self.fatal.get_or_insert(fault);
                            }
                            wait = Wait::Everything;
                            break;
                        }
                    }
                    let mut request = self.block[self.block_at as usize];
                    if request.op == OpKind::Sync {
                        if queued > 0 || self.in_flight() > 0 {
                            wait = Wait::Everything;
                            break;
                        }
                        if request.drops_pages() {
                            self.block_at += 1;
                            match self.context.plan.handling.remakes_each_pass {
                                true => self.remake_files(),
                                false => self.drop_pages(&request),
                            }
                            if self.is_done {
                                break;
                            }
                            continue;
                        }
                        if is_replayed {
                            let due = self.due(&request);
                            if due > self.clock.now() {
                                wait = Wait::Until(due);
                                break;
                            }
                            self.pending_due = None;
                        }
                        self.block_at += 1;
                        self.note_issued(&request, 0);
                        *last = self.sync_now(&request);
                        self.note_complete(&request, 0);
                        if self.is_done {
                            break;
                        }
                        continue;
                    }
                    if is_serial && self.overlaps_in_flight(&request) {
                        wait = Wait::Everything;
                        break;
                    }
                    if has_backlog && self.verifier.as_ref().is_some_and(Verifier::is_due) {
                        if queued > 0 || self.in_flight() > 0 {
                            wait = Wait::Everything;
                            break;
                        }
                        let settled = self.settle_backlog();
                        *last = self.clock.now();
                        settled?;
                        if self.is_done {
                            break;
                        }
                    }
                    if is_timed {
                        if self.is_pausing {
                            if queued > 0 || self.in_flight() > 0 {
                                wait = Wait::Everything;
                                break;
                            }
                            self.begin_pause(*last);
                        }
                        if let Some(until) = self.held_by_flow() {
                            wait = if until == 0 { Wait::Flow } else { Wait::Until(until) };
                            break;
                        }
                        let due = self.due(&request);
                        // What is due behind the deadline is never issued, however late this is looked at.
                        if due >= self.deadline || due > self.clock.now() {
                            wait = Wait::Until(due);
                            break;
                        }
                        if let Some(for_what) = self.lock_file(&request, queued) {
                            wait = for_what;
                            break;
                        }
                    }
                    if has_place && let Some(for_what) = self.settle_place(&mut request, queued) {
                        wait = for_what;
                        break;
                    }
                    self.block_at += 1;
                    self.free_count -= 1;
                    let slot = self.free[self.free_count];
                    let mut index = slot as usize;
                    if request.op == OpKind::Write {
                        index += self.write_buffers_from;
                        if self.writes_need_data {
                            self.fill(index, &request);
                        }
                    }
                    self.engine.queue(slot, &request, self.pool.buffer_ptr(index));
                    self.slots[slot as usize].request = request;
                    if is_timed {
                        self.note_timing(slot);
                    }
                    self.queued[queued] = slot;
                    queued += 1;
                }
            }
            let mut count = 0;
            let mut now = 0;
            let mut call = Call { queued: 0, ns: 0, is_alone: false };
            if queued > 0 {
                let is_alone = self.in_flight() == queued;
                let before = self.clock.now();
                self.engine.submit()?;
                now = self.now_after();
                let ns = self.note_submission(queued, before, now);
                if self.engine.has_ready() {
                    count = self.engine.reap(0, None, &mut self.completions)?;
                }
                // During the ramp everything is counted at once, because its end counts what is in
                // flight again.
                call = Call { queued: queued as u64, ns, is_alone };
                if E::BLOCKS || self.single_op.is_none() || self.is_ramping || count == 0 {
                    self.count_submission(&call);
                    call.queued = 0;
                }
            }
            if count == 0 {
                let in_flight = self.in_flight();
                let (min, timeout_ns) = match wait {
                    Wait::Everything if in_flight == 0 => {
                        if self.is_done {
                            return Ok(());
                        }
                        continue;
                    }
                    Wait::Everything => (1, None),
                    Wait::Source if in_flight == 0 => {
                        self.wait_for_source(SOURCE_WAIT_IDLE);
                        continue;
                    }
                    Wait::Source => {
                        self.wait_for_source(SOURCE_WAIT_BUSY);
                        // A wait, if of no length: only within a call does io_uring bring completions to its ring.
                        (1, Some(1))
                    }
                    // It has waited already.
                    Wait::Lock => {
                        self.wait_idle(0);
                        continue;
                    }
                    Wait::Flow if in_flight == 0 => {
                        std::thread::yield_now();
                        self.wait_idle(0);
                        continue;
                    }
                    // As for a source: only within a call does io_uring bring completions to its ring.
                    Wait::Flow => (1, Some(1)),
                    Wait::Until(due) => {
                        let left_ns = self.clock.to_ns(due.min(self.deadline).saturating_sub(self.clock.now()));
                        if in_flight == 0 {
                            self.wait_idle(due);
                            continue;
                        }
                        if left_ns > C::POLL_NS { (1, Some(left_ns - C::POLL_NS)) } else { (0, None) }
                    }
                    Wait::No if self.free_count <= self.reserve => (complete_min.min(in_flight), None),
                    Wait::No => {
                        // The queue is not full yet: the next submission. Filling a deep one may take
                        // longer than a row, and end behind the deadline.
                        if now >= self.next_event {
                            self.handle_events(now);
                        }
                        continue;
                    }
                };
                count = self.engine.reap(min, timeout_ns, &mut self.completions)?;
                now = self.clock.now();
            }
            if now >= self.next_event {
                self.handle_events(now);
            }
            self.complete(count, now, &call);
            if count > 0 {
                *last = now;
            }
        }
    }

    /// Ends the job if that is asked for.
    #[inline(always)]
    fn heed_stop(&mut self) {
        if self.context.stop.load(Relaxed) && !self.is_done {
            self.is_done = true;
            self.was_stopped = true;
            self.ended = self.clock.now();
        }
    }

    /// Counts the completions collected at `now`.
    ///
    /// Neighbours that were handed over together have the same latency and are counted in one go.
    #[inline(always)]
    fn complete(&mut self, count: usize, now: u64, call: &Call) {
        if self.has_work_per_io {
            self.note_room(count, now);
        }
        if !E::BLOCKS {
            self.recorder.queue.complete[QueueCounts::batch_class(count as u64)] += 1;
        }
        let mut counted = 0;
        let mut run = Run { op: OpKind::Read, issued: 0, handed: 0, io_count: 0, byte_count: 0 };
        for i in 0..count {
            let completion = self.completions[i];
            let slot = &self.slots[completion.slot as usize];
            let (request, issued) = (&slot.request, slot.issued);
            if completion.result == i64::from(request.length) {
                if issued != run.issued || request.op != run.op {
                    let next = Run { op: request.op, issued, handed: slot.handed, io_count: 0, byte_count: 0 };
                    counted += self.count_run(&std::mem::replace(&mut run, next), now, call);
                }
                run.io_count += 1;
                run.byte_count += u64::from(self.slots[completion.slot as usize].request.length);
                if self.has_work_per_io {
                    self.after_one(completion.slot, now);
                }
            } else {
                self.failed(completion, now);
            }
            self.free[self.free_count] = completion.slot;
            self.free_count += 1;
        }
        counted += self.count_run(&run, now, call);
        if counted < call.queued {
            self.count_submission(&Call { queued: call.queued - counted, ..*call });
        }
    }

    /// Before `count` slots become free at `now`: since when there is room, and whether it may be used.
    #[cold]
    fn note_room(&mut self, count: usize, now: u64) {
        let low = self.context.plan.queue.low as usize;
        if let Some(search) = &mut self.search {
            search.saw(self.slots.len() - self.free_count);
        }
        if self.free_count <= self.reserve {
            // The queue was full until now: whatever was due meanwhile waited for the device.
            self.free_since = now;
            if low > 0 {
                self.reserve = self.slots.len() - 1 - low;
            }
        }
        if low > 0 && self.free_count + count > self.reserve {
            self.reserve = 0;
        }
    }

    /// Counts neighbours; returns how many of them it counted as complete when their call returned,
    /// submission included.
    #[inline(always)]
    fn count_run(&mut self, run: &Run, now: u64, call: &Call) -> u64 {
        if run.io_count == 0 {
            return 0;
        }
        let recorder = self.recorder.op(run.op);
        recorder.io_count += run.io_count;
        recorder.byte_count += run.byte_count;
        if !E::BLOCKS && call.queued > 0 && run.handed == now {
            // One latency stands for all three: the hand-over was all of it.
            let mut ns = call.ns;
            if run.io_count > 1 && run.io_count == call.queued && call.is_alone {
                ns = self.sharing.part_of(ns, run.io_count);
            }
            recorder.inline.record_many(ns, run.io_count);
            return run.io_count;
        }
        recorder.interval.record_many(self.clock.to_ns(now.wrapping_sub(run.issued)), run.io_count);
        if !E::BLOCKS {
            let ns = self.clock.to_ns(now.wrapping_sub(run.handed));
            recorder.set.completion.record_many(ns, run.io_count);
        }
        0
    }

    /// What paced and verified jobs do with each completion, and others with those that are sampled.
    #[cold]
    fn after_one(&mut self, index: u32, now: u64) {
        let slot = self.slots[index as usize];
        self.unlock_file(&slot.request);
        self.note_complete(&slot.request, index);
        if self.samples.is_open() {
            self.samples.offer(&slot.request, slot.issued, now, &self.clock);
        }
        self.log_one(index, u64::from(slot.request.length), now);
        if self.recorder.priorities.is_some() {
            self.record_priority(index, slot.handed, now);
        }
        if let Some(search) = &mut self.search
            && search.count(slot.issued, now)
        {
            self.next_event = now;
        }
        if self.is_paced {
            self.record_paced(&slot, now);
        }
        if self.zoned.is_some() {
            self.leave_zone(&slot.request);
        }
        if slot.request.op == OpKind::Read && self.context.plan.verify.is_some() {
            self.compare(index as usize, &slot.request, 0);
        }
    }

    /// Notes when the queued I/Os were handed over; how long that took, in nanoseconds.
    #[inline(always)]
    fn note_submission(&mut self, queued: usize, before: u64, after: u64) -> u64 {
        for &slot in &self.queued[..queued] {
            let slot = &mut self.slots[slot as usize];
            slot.issued = before;
            slot.handed = after;
        }
        let ns = self.clock.to_ns(after - before);
        if !E::BLOCKS {
            self.submit_ns += ns;
            self.submit_count += queued as u64;
            let depth = QueueCounts::depth_class(self.in_flight() as u64);
            self.recorder.queue.depth[depth] += queued as u64;
            self.recorder.queue.submit[QueueCounts::batch_class(queued as u64)] += 1;
        }
        ns
    }

    /// Counts the hand-over of I/Os that were not complete when it returned.
    #[inline(always)]
    fn count_submission(&mut self, call: &Call) {
        if E::BLOCKS {
            return;
        }
        match self.single_op {
            Some(op) => self.recorder.op(op).set.submission.record_many(call.ns, call.queued),
            None => {
                for &slot in &self.queued[..call.queued as usize] {
                    let op = self.slots[slot as usize].request.op;
                    self.recorder.op(op).set.submission.record(call.ns);
                }
            }
        }
    }

    /// True if the job writes or trims.
    fn modifies(&self) -> bool {
        [OpKind::Write, OpKind::Trim].iter().any(|op| self.recorder.ops[slot_of(*op)].is_some())
    }

    /// Verified jobs, and those with `serialize_overlap`: true if the request touches what an I/O in flight touches,
    /// and one of them does not just read. Which of two writes to one block is carried out last, and what a read
    /// beside a write sees, nobody promises: the later request waits. (Where each block comes once a pass, it happens
    /// where one pass over the region ends and the next begins.)
    #[cold]
    fn overlaps_in_flight(&self, request: &Request) -> bool {
        let bytes = request.offset..request.offset + u64::from(request.length);
        self.any_in_flight(request.file, &bytes, |op| request.op != OpKind::Read || op != OpKind::Read)
    }

    /// True if an I/O in flight that is one of these operations touches some bytes of a file.
    fn any_in_flight(&self, file: u16, bytes: &Range<u64>, is_one: impl Fn(OpKind) -> bool) -> bool {
        let is_free = |slot: u32| self.free[..self.free_count].contains(&slot);
        self.slots.iter().zip(0..).any(|(slot, index)| {
            let other = &slot.request;
            is_one(other.op)
                && other.file == file
                && other.offset < bytes.end
                && bytes.start < other.offset + u64::from(other.length)
                && !is_free(index)
        })
    }

    /// Before a further pass: the cached pages of a file, or of all, are dropped, with nothing in flight. Dirty pages
    /// stay (the kernel begins to write them); a failure only leaves pages where they are, and the evidence sees that.
    #[cold]
    fn drop_pages(&mut self, request: &Request) {
        let all = self.context.files.iter().zip(&self.context.plan.files).zip(0_u16..);
        for ((target, plan), _) in all.filter(|(_, index)| request.data_only || *index == request.file) {
            let _ = trueio_direct::evict(&target.file, plan.offset_bytes, plan.size_bytes);
        }
        self.free_since = self.clock.now();
    }

    /// All requests so far are durable, as far as a successful call says so.
    fn note_synced(&mut self) {
        let issued = self.issued();
        if let Some(verifier) = &mut self.verifier {
            verifier.note_synced(issued);
        }
    }

    /// `sync_file_range`, where there are files.
    fn write_out(&self, request: &Request, bytes: u64) -> i64 {
        let flags = self.context.plan.flush.range.map_or(0, RangeSync::flags);
        match self.context.files.get(usize::from(request.file)) {
            Some(target) if E::KIND.touches_files() => {
                sync_range(target.file.as_raw_fd(), request.offset, bytes, flags)
            }
            _ => 0,
        }
    }

    /// A sync call, with nothing in flight. Returns the moment it was done.
    #[cold]
    fn sync_now(&mut self, request: &Request) -> u64 {
        let range_bytes = request.range_bytes();
        let before = self.clock.now();
        let result = match range_bytes {
            None => self.engine.sync_file(request.file, request.data_only),
            Some(bytes) => self.write_out(request, bytes),
        };
        let now = self.clock.now();
        self.free_since = now;
        if now >= self.next_event {
            self.handle_events(now);
        }
        if result == 0 {
            let recorder = self.recorder.op(OpKind::Sync);
            recorder.io_count += 1;
            recorder.interval.record(self.clock.to_ns(now - before));
            // A range that was written out is durable or not, nobody says.
            if range_bytes.is_none() {
                self.samples.offer(request, before, now, &self.clock);
                self.note_synced();
            }
        } else {
            // Whatever was written before is lost or not, nobody knows: never retried, always fatal.
            self.recorder.op(OpKind::Sync).error_count += 1;
            self.note_failure(request, -result as i32, 0, 0);
            let what = match range_bytes {
                Some(_) => "sync_file_range",
                None if request.data_only => "fdatasync",
                None => "fsync",
            };
            let path = self.path(request.file);
            let error = io::Error::from_raw_os_error(-result as i32);
            self.fatal.get_or_insert(format!(
                "{what} of `{path}` failed: {error}; after a failed sync no earlier write is known to be safe"
            ));
            self.is_done = true;
        }
        now
    }
}

/// True if each completion is looked at, whether I/Os are sampled or logged or not.
fn has_work_per_io(plan: &JobPlan) -> bool {
    plan.is_paced()
        || plan.verify.is_some()
        || plan.zones.is_some()
        || plan.control.latency_target.is_some()
        || plan.queue.low > 0
        || !plan.priorities.is_empty()
        || plan.output.shows_ios
        || plan.handling.locking != Locking::None
}

/// One hand-over whose I/Os are not counted as submitted yet.
#[derive(Debug)]
struct Call {
    /// How many I/Os it carried; 0: they are counted already.
    queued: u64,
    /// How long it took, in nanoseconds.
    ns: u64,
    /// Nothing else was in flight.
    is_alone: bool,
}

/// Neighbouring completions that were handed over together.
#[derive(Debug)]
struct Run {
    op: OpKind,
    issued: u64,
    handed: u64,
    io_count: u64,
    byte_count: u64,
}

/// Why the loop has to wait before it can go on.
#[derive(Debug, Clone, Copy)]
enum Wait {
    /// It has not.
    No,
    /// The source has not sent the next write's bytes.
    Source,
    /// Others of the flow are behind.
    Flow,
    /// Others hold the file's lock; nothing is in flight.
    Lock,
    /// Nothing more is issued until all is reaped.
    Everything,
    /// The next request is not due before this tick.
    Until(u64),
}

/// True if a file was opened without O_DIRECT.
fn is_buffered(target: &TargetFile) -> bool {
    rustix::fs::fcntl_getfl(&*target.file).is_ok_and(|flags| !flags.contains(rustix::fs::OFlags::DIRECT))
}
