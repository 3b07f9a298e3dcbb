//! Seals blocks so that they can be compared, and compares them (`verify`).
//!
//! Blocks are compared when a job reads them, after every N writes (`verify_backlog`), and at its end. The generator
//! gives the same steps again, so of a job that is compared at its end at most a bit a block is remembered; in zones, the
//! last write to each block is.

mod backlog;
mod last_writes;
mod loops;
mod lost;
mod offline;
mod pass;
mod read_back;
mod saved;
mod written;

use super::iolog::SharedIolog;
use super::logs::SharedLog;
use super::{Admission, Done, Hooks, Stage, SyncDone};
use crate::context::WorkerContext;
use crate::engines::EngineError;
use crate::recorder::{FAILURES_MAX, WorkerReport};
use crate::request::{Request, Step};
use crate::verify::{self, BlockSeal, Difference};
use crate::view::View;
use crate::zones::ZoneMap;
use backlog::Backlog;
use loops::Loops;
use lost::Lost;
use offline::Offline;
use read_back::ReadBacks;
use std::ops::Range;
use std::sync::Arc;
use trueio_model::{BlockPart, BlockSizes, JobPlan, OpKind, OpMix, SyncMode, Verify, VerifyFailure, error_line};
use written::Written;

pub(super) use pass::settle_files;
pub use saved::save_empty_state;

/// What a worker needs to compare blocks, and what it found.
#[derive(Debug)]
pub(crate) struct Verifier<'a> {
    plan: Verify,
    seal: BlockSeal,
    /// What written blocks carry; see [`run_tag`]. 0 when blocks of an earlier run are read.
    run: u64,
    /// Steps after which a job that compares offline ends: as far as the run came that wrote.
    taken_max: Option<u64>,
    /// Of a job that compares offline, and writes to blocks again: which writes are compared.
    offline: Option<Offline>,
    /// Steps before the last sync call that succeeded.
    synced: u64,
    /// A job that reads and writes compares what it reads: it reads whole blocks as they were written.
    compares_among_writes: bool,
    /// The job both reads and writes: a block may be read before it is written.
    is_mixed: bool,
    /// Of a mixed job that compares offline: whether the last admitted I/O is a read of its own, and the I/O of each slot.
    own_reads: Option<(bool, Box<[bool]>)>,
    backlog: Backlog,
    /// The last write to each block of zones, for the pass at the end.
    written: Option<Written>,
    zones: &'a [Arc<ZoneMap>],
    loops: Loops,
    /// What failed writes left.
    lost: Lost,
    reads_back_loops: bool,
    read_backs: Option<Box<ReadBacks>>,
    /// I/Os of a job with backlogs that `number_ios` counts: its own, and what backlogs read and trimmed.
    io_count: u64,
    /// The job's own I/O is over, and all that it wrote is read back.
    is_final_pass: bool,
    iolog: Option<SharedIolog>,
    log: Option<SharedLog>,
    failures: Vec<VerifyFailure>,
    failure_count: u64,
    block_count: u64,
}

impl<'a> Verifier<'a> {
    /// # Errors
    /// A sentence, if the state of an earlier run cannot be read.
    pub(crate) fn stage(
        context: &WorkerContext<'a>,
        iolog: Option<SharedIolog>,
        log: Option<SharedLog>,
    ) -> Result<Option<Box<dyn Stage + 'a>>, String> {
        let job = context.plan;
        let Some(plan) = job.verify.clone() else { return Ok(None) };
        let state = if plan.loads_state { Some(saved::load(job, context.worker)?) } else { None };
        let run = match &state {
            Some(state) => state.run(),
            None if plan.is_offline => 0,
            None => run_tag(),
        };
        let block_bytes = job.pattern.write_sizes.max_bytes();
        let taken_max = state.map(|state| state.compared(job, plan.synced_only)).transpose()?;
        let offline = if plan.is_offline { Offline::of(context, taken_max, plan.compares_pieces())? } else { None };
        Ok(Some(Box::new(Self {
            seal: BlockSeal::new(plan.clone()),
            run,
            taken_max,
            offline,
            synced: 0,
            compares_among_writes: matches!(job.pattern.write_sizes, BlockSizes::Fixed(_))
                && job.pattern.read_sizes == job.pattern.write_sizes,
            is_mixed: crate::operations::operations_and_single(job).1.is_none(),
            own_reads: (plan.is_offline && matches!(job.pattern.mix, OpMix::ReadWrite { .. }))
                .then(|| (false, vec![false; job.queue.depth as usize].into())),
            backlog: Backlog::new(&plan),
            // A job that verifies has blocks of one size.
            written: (job.zones.is_some() && plan.reads_back).then(|| Written::new(block_bytes)),
            zones: context.zones,
            loops: Loops::default(),
            lost: Lost::default(),
            reads_back_loops: job.reads_back_each_loop() && !plan.is_offline,
            read_backs: None,
            io_count: 0,
            is_final_pass: false,
            iolog,
            log,
            failures: Vec::new(),
            failure_count: 0,
            block_count: 0,
            plan,
        })))
    }

    /// Returns how many of the steps that were taken are compared at the end.
    fn compared(&self, taken: u64) -> u64 {
        if self.plan.synced_only { self.synced.min(taken) } else { taken }
    }

    /// Returns the state to save of a job that took `taken` steps, `writes` of them writes.
    fn state(&self, job: &JobPlan, worker: u32, taken: u64, writes: u64) -> saved::VerifyState {
        let synced = self.plan.synced_only.then(|| self.compared(taken));
        saved::VerifyState::new(job, worker, (taken, writes, synced), self.run)
    }

    /// Returns true if the block of write `sequence` was trimmed, and its content is undefined since.
    fn is_undefined(&self, sequence: u64) -> bool {
        self.backlog.is_trimmed(sequence) && self.plan.trim.is_some_and(|trim| !trim.is_zero)
    }

    /// Compares the block that was just read into buffer `index`; `sequence` is the number of the write that is
    /// expected there, 0 if that is unknown.
    fn compare(&mut self, index: usize, request: &Request, sequence: u64, view: &mut View<'_, '_>) {
        let block = view.state.payload.block(index, request.length);
        // In a mixed job a block may be read before it is written; the pass at the end reads them all.
        if sequence == 0 && self.is_mixed {
            let is_its_own = self.compares_among_writes
                && !self.plan.is_shared
                && self.seal.was_written_by(block, self.run) == Some(true);
            if !is_its_own {
                return;
            }
        }
        if self.is_undefined(sequence) || self.lost.skips(request) {
            return;
        }
        let (run, expected) = self.expected(sequence);
        self.note_compared(request, index, view);
        let block = view.state.payload.block(index, request.length);
        let result = match self.backlog.is_trimmed(sequence) {
            true => zeros(block),
            false => self.seal.check(block, run, request.offset, expected),
        };
        if let Err(difference) = result {
            let block = block.to_vec();
            self.note_difference(request, difference, &block, view);
        }
    }

    /// Returns the run whose write is expected, 0 for any, and the number of the write, 0 for any.
    fn expected(&self, sequence: u64) -> (u64, u64) {
        match sequence {
            // Any of the workers may have written it last.
            _ if self.plan.is_shared => (0, 0),
            // A job that only reads compares what any run wrote.
            0 if !self.plan.loads_state => (0, 0),
            sequence => (self.run, sequence),
        }
    }

    /// Counts a block that is compared, and shows it if blocks are shown.
    fn note_compared(&mut self, request: &Request, index: usize, view: &View<'_, '_>) {
        self.block_count += 1;
        if let Some(iolog) = &self.iolog {
            iolog.compared(request, index as u32, view);
        }
    }

    #[cold]
    fn note_difference(&mut self, request: &Request, difference: Difference, block: &[u8], view: &mut View<'_, '_>) {
        self.failure_count += 1;
        let path = view.state.context.path(request.file);
        if self.failures.len() < FAILURES_MAX {
            if self.plan.dumps {
                let notes = self
                    .seal
                    .dumps(&difference, request.offset, block)
                    .map(|(at, kind, bytes)| saved::dump(self.plan.dump_directory.as_deref(), &path, at, kind, &bytes));
                view.state.outcome.notes.extend(notes);
            }
            self.failures.push(verify::failure(&path, request, difference));
        }
        if self.plan.stops_at_first {
            view.state.outcome.is_done = true;
        }
    }

    /// Returns true if the first difference was to end the job, and came.
    fn has_given_up(&self) -> bool {
        self.failure_count > 0 && self.plan.stops_at_first
    }
}

impl Stage for Verifier<'_> {
    fn hooks(&self) -> Hooks {
        Hooks {
            is_issuing: self.backlog.is_kept() || self.own_reads.is_some() || self.reads_back_loops,
            is_completing: true,
            ..Hooks::default()
        }
    }

    fn measure(&mut self, _now: u64, _view: &mut View<'_, '_>) {
        if let Some(read_backs) = &mut self.read_backs {
            read_backs.forget_counts();
        }
    }

    /// A job that compares offline reads what it would write, as far as the run came that wrote it, and each block once.
    fn refilled(&mut self, steps: &mut [Step], taken: u64) -> Option<usize> {
        if !self.plan.is_offline {
            return Some(steps.len());
        }
        let count = match &mut self.offline {
            Some(offline) => offline.keep_last(steps)?,
            None => {
                let left = self.taken_max.map_or(u64::MAX, |most| most - taken.min(most));
                Some(steps.len().min(usize::try_from(left).unwrap_or(usize::MAX))).filter(|count| *count > 0)?
            }
        };
        if self.own_reads.is_some() {
            return Some(count);
        }
        for step in &mut steps[..count] {
            if let Step::Io(request) = step
                && request.op == OpKind::Write
            {
                request.op = OpKind::Read;
            }
        }
        Some(count)
    }

    fn admit(&mut self, request: &mut Request, view: &mut View<'_, '_>) -> Result<Admission, EngineError> {
        if let Some((is_own, _)) = &mut self.own_reads {
            *is_own = request.op == OpKind::Read;
            request.op = OpKind::Read;
        }
        if self.loops.is_reading() {
            // (Nothing is in flight: the step between two loops waited for that.)
            return self.read_back_loop(view).map(|()| Admission::Again);
        }
        if !self.backlog.is_due() {
            // As in fio, all I/Os count, and writes that are still to be trimmed come first.
            let most = view.state.context.plan.limits.io_count.unwrap_or(u64::MAX);
            if self.backlog.is_kept() && self.io_count >= most && !self.backlog.is_to_trim() {
                view.state.outcome.is_done = true;
                view.state.steps.exhaust();
                return Ok(Admission::Drain);
            }
            return Ok(Admission::Ready);
        }
        if view.state.queue.in_flight() > 0 {
            return Ok(Admission::Drain);
        }
        let settled = self.settle_backlog(view);
        view.state.time.last = view.clock.now();
        settled.map(|()| Admission::Again)
    }

    fn issued(&mut self, slot: u32, _view: &mut View<'_, '_>) {
        self.io_count += 1;
        if let Some((is_own, own)) = &mut self.own_reads {
            own[slot as usize] = *is_own;
        }
    }

    fn filled(&mut self, buffer: usize, request: &Request, view: &mut View<'_, '_>) {
        let sequence = view.state.payload.sequence;
        let block = view.state.payload.block(buffer, request.length);
        self.seal.seal(block, self.run, request.offset, sequence);
        self.backlog.note_write(request, sequence);
        if let Some(written) = &mut self.written {
            let map = &self.zones[usize::from(request.file)];
            if let Err(error) = written.remember(map, request.file, request.offset, sequence) {
                let sentence = format!("remembering the last write to each block of a zone: {error}");
                view.state.outcome.fail(sentence);
            }
        }
    }

    fn completed(&mut self, done: &Done, view: &mut View<'_, '_>) {
        let request = view.state.queue.slot(done.slot).request;
        if request.op == OpKind::Write {
            self.lost.note(&request, done.is_whole);
        }
        // What the job reads itself may be a block that it never writes.
        let is_own = self.own_reads.as_ref().is_some_and(|(_, own)| own[done.slot as usize]);
        if done.is_whole && request.op == OpKind::Read && !is_own {
            self.compare(done.slot as usize, &request, 0, view);
        }
    }

    fn synced(&mut self, call: &SyncDone, view: &mut View<'_, '_>) {
        if call.is_durable {
            self.synced = view.state.steps.taken();
        }
    }

    fn next_pass(&mut self, _file: Option<u16>, ends_loop: bool, view: &mut View<'_, '_>) {
        if ends_loop
            && self.reads_back_loops
            && let Err(error) = self.end_loop(view)
        {
            view.state.outcome.fail(error_line(&error));
        }
    }

    fn emptied(&mut self, file: u16, bytes: &Range<u64>) {
        self.backlog.forget(file, bytes);
        if let Some(written) = &mut self.written {
            written.forget(file, self.zones[usize::from(file)].number_at(bytes.start));
        }
    }

    fn complete_rest(&mut self, view: &mut View<'_, '_>) {
        if let Err(error) = self.trim_last_backlog(view) {
            view.state.outcome.fatal = Some(error_line(&error));
        }
    }

    fn finish(&mut self, view: &mut View<'_, '_>) {
        self.loops.end();
        let context = view.state.context;
        let plan = context.plan;
        if (plan.sync != SyncMode::None || plan.write_flags.dsync) && view.state.queue.in_flight() == 0 {
            // Each write was durable when it completed, and all have completed.
            self.synced = view.state.steps.taken();
        }
        if self.plan.saves_state {
            let state = self.state(plan, context.worker, view.state.steps.taken(), view.state.payload.sequence);
            match state.save(&plan.verify_state_file(context.worker), |path| (context.host.create_file)(plan, path)) {
                Ok(note) => view.state.outcome.notes.push(note),
                Err(reason) => drop(view.state.outcome.fatal.get_or_insert(reason)),
            }
        }
        if view.state.payload.sequence > 0
            && view.may_verify()
            && !self.has_given_up()
            && let Err(error) = self.verify_written(view)
        {
            view.state.outcome.fatal = Some(error_line(&error));
        }
        view.state.outcome.notes.extend(self.lost.note_skipped());
    }

    fn report(&mut self, report: &mut WorkerReport, view: &mut View<'_, '_>) {
        report.verified_block_count += self.block_count;
        report.verify_failure_count += self.failure_count;
        report.verify_failures.append(&mut self.failures);
        report.read_back = self.read_backs.take().and_then(|read| read.into_counts(!view.blocks));
    }
}

/// Checks that a trimmed block holds nothing.
fn zeros(block: &[u8]) -> Result<(), Difference> {
    match block.iter().position(|&byte| byte != 0) {
        None => Ok(()),
        Some(at) => {
            let end = block.len().min(at + 16);
            let expected = "zeros: the block was trimmed".to_owned();
            let found = format!("from byte {at} on {:02x?}", &block[at..end]);
            Err(Difference { part: BlockPart::Trimmed, ..Difference::new(expected, found) })
        }
    }
}

/// Returns a mark for the writes of this worker in this run. Never 0, and never the same twice: with the same seed a
/// run writes the same to the same offsets, and if the disk lost it all, what an earlier run left there would read back
/// as if it had been written.
fn run_tag() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish() | 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::choose_clock;
    use crate::recorder::Progress;
    use crate::start::Start;
    use std::sync::atomic::AtomicBool;
    use trueio_model::{Checksum, EngineKind, ZonePlan};

    #[test]
    fn only_blocks_of_zones_that_are_read_back_at_the_end_are_remembered() {
        let mut plan = JobPlan::plain(EngineKind::Null, 1 << 20);
        for (zones, reads_back, remembers) in [
            (None, true, false),
            (Some(ZonePlan::emulated(1 << 16, 1 << 16)), false, false),
            (None, false, false),
            (Some(ZonePlan::emulated(1 << 16, 1 << 16)), true, true),
        ] {
            plan.zones = zones;
            plan.verify = Some(Verify { reads_back, ..Verify::new(Checksum::Crc32c) });
            let (stop, start, progress) = (AtomicBool::new(false), Start::new(), Progress::default());
            let context = WorkerContext::new(&plan, &[], &stop, &start, &progress, choose_clock());
            let stage = Verifier::stage(&context, None, None).expect("no state is read").expect("it verifies");
            assert_eq!(format!("{stage:?}").contains("written: Some"), remembers, "{reads_back} {:?}", plan.zones);
        }
    }
}
