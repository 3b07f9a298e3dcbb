//! The steps that a worker takes next, and how many it has taken.

use crate::context::WorkerContext;
use crate::pattern::Generator;
use crate::replay::Replay;
use crate::request::{REQUEST_BLOCK, Request, Step};

/// A block of steps from the generator.
#[derive(Debug)]
pub(crate) struct StepQueue {
    generator: Generator,
    block: [Step; REQUEST_BLOCK],
    // Narrower than the counters of the queue: of two neighbours of one width LLVM makes a single vector addition, and
    // reading back one half of what was stored as a whole stalls (6 ns an I/O on the null engine).
    at: u32,
    end: u32,
    /// Steps taken before this block.
    taken_before: u64,
    /// The generator has no more: every step of the job was taken.
    is_exhausted: bool,
}

impl StepQueue {
    pub(crate) fn new(context: &WorkerContext<'_>) -> Self {
        let mut generator = Generator::with_log(context.plan, context.worker, context.host.open_log);
        if context.plan.output.shows_draws {
            generator.show_draws();
        }
        let block = [Step::NONE; REQUEST_BLOCK];
        let mut steps = Self { generator, block, at: 0, end: 0, taken_before: 0, is_exhausted: false };
        steps.skip(context.plan.skipped_ios);
        steps
    }

    /// Takes this many I/Os without doing them: an earlier job of the same pattern did.
    fn skip(&mut self, mut count: u64) {
        while count > 0 {
            if let Some(step) = self.peek() {
                count -= u64::from(matches!(step, Step::Io(_)));
                self.advance();
            } else if !self.refill(|| 0, |steps, _| Some(steps.len())) {
                return;
            }
        }
    }

    /// Returns the next step without taking it; `None` if the block is used up.
    #[inline(always)]
    pub(crate) fn peek(&self) -> Option<&Step> {
        if self.at == self.end { None } else { Some(&self.block[self.at as usize]) }
    }

    /// Takes the step that [`Self::peek`] returns.
    #[inline(always)]
    pub(crate) fn advance(&mut self) {
        self.at += 1;
    }

    /// Returns how many steps were taken: what a verify pass replays.
    pub(crate) fn taken(&self) -> u64 {
        self.taken_before + u64::from(self.at)
    }

    /// Takes the next block from the generator; `elapsed_ns` returns the nanoseconds since the start, and `refilled` changes
    /// the block and returns how many of its steps are used, `None` to end the job. False if the job has no more steps.
    pub(crate) fn refill(
        &mut self,
        elapsed_ns: impl Fn() -> u64,
        mut refilled: impl FnMut(&mut [Step], u64) -> Option<usize>,
    ) -> bool {
        self.taken_before += u64::from(self.end);
        self.at = 0;
        loop {
            if self.generator.depends_on_time() {
                self.generator.set_time(elapsed_ns());
            }
            let count = self.generator.refill(&mut self.block);
            let used = if count > 0 { refilled(&mut self.block[..count], self.taken_before) } else { None };
            // Of a block without a step that is used, the next one follows.
            if used != Some(0) {
                self.end = used.unwrap_or(0) as u32;
                self.is_exhausted = used.is_none();
                return !self.is_exhausted;
            }
        }
    }

    /// Returns true if every step of the job was taken.
    pub(crate) fn is_exhausted(&self) -> bool {
        self.is_exhausted
    }

    /// The job has done all that it was to do, whatever steps are left.
    pub(crate) fn exhaust(&mut self) {
        self.is_exhausted = true;
    }

    pub(crate) fn generator(&self) -> &Generator {
        &self.generator
    }

    /// Returns what every offset (from its region's start) and length is a multiple of, in bytes.
    pub(crate) fn unit_bytes(&self) -> u64 {
        self.generator.unit_bytes()
    }

    /// Returns the block of the file's region that was drawn for the step that was taken last, if it was drawn.
    pub(crate) fn drawn(&self) -> Option<u64> {
        match self.block[self.at as usize - 1] {
            Step::Io(request) => self.generator.drawn(&request),
            _ => None,
        }
    }

    /// Returns when the next step of a log is due, in nanoseconds since the start; `None` if it has no time.
    pub(crate) fn replay_due_ns(&mut self) -> Option<u64> {
        let at = self.at as usize;
        self.generator.replay().and_then(|replay| replay.due_ns(at))
    }

    /// Returns how many steps of a log were due by `until_ns` and were not taken.
    pub(crate) fn replay_backlog(&mut self, until_ns: u64) -> u64 {
        let (at, end) = (self.at as usize, self.end as usize);
        self.generator.replay().map_or(0, |replay| replay.backlog(at, end, until_ns))
    }

    /// Returns why a log has no more steps, if it is not the log's end.
    pub(crate) fn fault(&mut self) -> Option<String> {
        self.generator.replay().and_then(Replay::fault)
    }

    /// Asserts what planner and engine share about each I/O: it has a length, is aligned as planned, and stays
    /// within its file's region. [`trueio_model::JobPlan::assert_sound`] asserts the rest once a worker.
    #[inline(always)]
    pub(crate) fn assert_planned(context: &WorkerContext<'_>, request: &Request) {
        debug_assert!(request.length > 0, "an I/O of no bytes: {request:?}");
        debug_assert!(
            context.plan.files.get(usize::from(request.file)).is_none_or(|file| {
                request.offset >= file.offset_bytes
                    && request.offset + u64::from(request.length) <= file.offset_bytes + file.size_bytes
            }),
            "an I/O outside of its file's region: {request:?}"
        );
        debug_assert!(
            !context.plan.keeps_alignment() || is_aligned(request, u64::from(context.plan.offset_alignment_bytes)),
            "an I/O that is not aligned to {} bytes: {request:?}",
            context.plan.offset_alignment_bytes
        );
    }
}

/// Returns true if offset and length are multiples of `bytes`.
fn is_aligned(request: &Request, bytes: u64) -> bool {
    request.offset.is_multiple_of(bytes) && u64::from(request.length).is_multiple_of(bytes)
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::*;
    use crate::clock::choose_clock;
    use crate::recorder::Progress;
    use crate::start::Start;
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::atomic::AtomicBool;
    use trueio_model::{EngineKind, FilePlan, JobPlan, OpKind, Prepare};

    /// Asserts `request` for a job on bytes 4,096 to 12,288 of a file with sectors of 512 bytes; returns the panic's
    /// message.
    fn panic_of(request: Request) -> Option<String> {
        let mut plan = JobPlan::plain(EngineKind::Null, 8192);
        plan.offset_alignment_bytes = 512;
        plan.files.push(FilePlan {
            path: "f".to_owned(),
            prepare: Prepare::Nothing,
            remove_after: false,
            offset_bytes: 4096,
            size_bytes: 8192,
            extends_from: None,
        });
        let (stop, start, progress) = (AtomicBool::new(false), Start::new(), Progress::default());
        let context = WorkerContext::new(&plan, &[], &stop, &start, &progress, choose_clock());
        let result = catch_unwind(AssertUnwindSafe(|| StepQueue::assert_planned(&context, &request)));
        result.err().map(|panic| *panic.downcast::<String>().expect("a formatted message"))
    }

    #[test]
    fn an_io_of_no_bytes_outside_its_region_or_not_aligned_panics() {
        let io = |offset, length| Request { offset, length, file: 0, op: OpKind::Read };
        assert_eq!(panic_of(io(4096, 8192)), None);
        for (request, message) in [
            (io(4096, 0), "an I/O of no bytes"),
            (io(0, 4096), "an I/O outside of its file's region"),
            (io(8192, 4608), "an I/O outside of its file's region"),
            (io(4100, 512), "an I/O that is not aligned to 512 bytes"),
            (io(4096, 100), "an I/O that is not aligned to 512 bytes"),
        ] {
            let panic = panic_of(request).expect("it panics");
            assert!(panic.starts_with(message), "{panic}");
        }
    }
}
