//! Which writes of a job were the last to their units, where blocks come again or are of several sizes.
//!
//! The generator gives the same steps again, so nothing is kept of the steps themselves. A first pass over them keeps the
//! generator's state at the beginning of each span of steps. Then the spans are generated again, the last span
//! first, and each is examined backwards: a write none of whose units was seen before is the last to all of them. A span that
//! is too long to be examined at once is divided. This takes one bit a unit, and 24 bytes for each step of a span: 36 MiB for a
//! TiB in blocks of 4 KiB, of which a table of numbers would take 2 GiB.
//!
//! Blocks are returned span by span, the last span first, and within a span in the order of writing. A job of up to
//! [`SPAN_STEPS_MIN`] steps is one span.

use crate::context::WorkerContext;
use crate::engines::EngineError;
use crate::pattern::Generator;
use crate::request::{REQUEST_BLOCK, Request, Step};
use crate::view::View;
use std::io;
use trueio_model::{FileSelection, JobPlan, OpKind, OpMix, Order};

/// Steps of a span that is examined, at least.
const SPAN_STEPS_MIN: u64 = 1 << 16;
/// Memory of the states that the first pass keeps. A state has some 2 KiB; of many files, or with maps of units, it is large.
const STATES_BYTES: usize = 2 << 20;

/// How many steps are examined at a time, about, and how many states the first pass keeps.
#[derive(Debug, Clone, Copy)]
struct Sizes {
    span_steps: u64,
    states_max: u64,
}

impl Sizes {
    fn of(generator: &Generator) -> Self {
        let state_bytes = generator.state_bytes();
        // Where a state is large, what is examined at a time is as large: shorter spans are divided more often, and
        // each time another state is kept.
        let span_steps = SPAN_STEPS_MIN.max((state_bytes / size_of::<Numbered>()) as u64);
        Self { span_steps, states_max: (STATES_BYTES / state_bytes).max(1) as u64 }
    }
}

/// The state of a generator at the beginning of a span.
#[derive(Debug)]
struct Span {
    generator: Generator,
    /// The number of the last write before it.
    sequence: u64,
    steps: u64,
}

impl Span {
    /// Takes its first `most` steps off, to the end of a block of steps, and returns them as a span.
    fn split_off_front(&mut self, most: u64) -> Span {
        let mut front = Span { generator: self.generator.state(), sequence: self.sequence, steps: 0 };
        let mut block = [Step::NONE; REQUEST_BLOCK];
        while front.steps < most && self.steps > 0 {
            let steps = next_steps(&mut self.generator, &mut block, self.steps);
            self.sequence += steps.iter().filter_map(write).count() as u64;
            front.steps += steps.len() as u64;
            self.steps -= steps.len() as u64;
        }
        front
    }
}

/// The last writes of a job.
#[derive(Debug)]
pub(super) struct LastWrites {
    /// In the order of the steps.
    spans: Vec<Span>,
    /// The steps of `spans`.
    left: u64,
    /// Steps of a span that is examined, about.
    span_steps: u64,
    /// For each file, a bit for each unit that a later write touched.
    seen: Vec<Vec<u64>>,
    /// Where each file's region begins.
    bases: Vec<u64>,
    unit_bytes: u64,
    /// A write is returned if it is the last to any of its units, not only if it is to all of them.
    compares_pieces: bool,
}

impl LastWrites {
    /// Of `taken` steps from `begin` on, the first `compared` of which are compared. The error is `begin`: every write is the last to
    /// its block. `compares_pieces`: the header of each piece names its own write, so a block that was overwritten in part is
    /// compared, too.
    ///
    /// # Errors
    /// There is no memory for the bits.
    pub(super) fn of(
        view: &View<'_, '_>,
        begin: Begin,
        [taken, compared]: [u64; 2],
        compares_pieces: bool,
    ) -> Result<Result<Self, Begin>, EngineError> {
        let plan = view.state.context.plan;
        if comes_once(plan, taken) {
            return Ok(Err(begin));
        }
        let sizes = Sizes::of(&begin.generator);
        let last = Self::new(plan, begin, [taken, compared], sizes, compares_pieces);
        last.map(Ok).map_err(|(units, path)| EngineError {
            engine: view.engine.kind(),
            attempted: format!("remembering which of {units} units of `{path}` were written later"),
            source: io::ErrorKind::OutOfMemory.into(),
        })
    }

    /// Of the first `most` steps that a job would take, with their number and that of the writes among them. `None`: every write is the
    /// last to its block, or the steps depend on the time.
    ///
    /// # Errors
    /// A sentence, if there is no memory for the bits.
    pub(super) fn foreseen(
        context: &WorkerContext<'_>,
        most: Option<u64>,
        compares_pieces: bool,
    ) -> Result<Option<(Self, u64, u64)>, String> {
        let (plan, most) = (context.plan, most.unwrap_or(u64::MAX));
        let new = || Generator::with_log(plan, context.worker, context.host.open_log);
        let mut generator = new();
        if plan.limits.is_time_based || plan.replay.is_some() || generator.depends_on_time() {
            return Ok(None);
        }
        let (mut taken, mut writes, mut block) = (0, 0, [Step::NONE; REQUEST_BLOCK]);
        while taken < most {
            let count = generator.refill(&mut block).min(usize::try_from(most - taken).unwrap_or(usize::MAX));
            if count == 0 {
                break;
            }
            taken += count as u64;
            writes += block[..count].iter().filter_map(write).count() as u64;
        }
        if comes_once(plan, taken) {
            return Ok(None);
        }
        let sizes = Sizes::of(&generator);
        let last = Self::new(plan, Begin::of(new()), [taken, taken], sizes, compares_pieces);
        last.map(|last| Some((last, taken, writes))).map_err(|(units, path)| {
            format!("there is no memory to remember which of {units} units of `{path}` were written later")
        })
    }

    /// Of the first `taken` steps from `begin` on; the writes among the first `compared` of them are returned. The error names the
    /// units and the file for which there was no memory.
    fn new(
        plan: &JobPlan,
        begin: Begin,
        [taken, compared]: [u64; 2],
        Sizes { span_steps, states_max }: Sizes,
        compares_pieces: bool,
    ) -> Result<Self, (u64, String)> {
        let Begin { generator, sequence, .. } = begin;
        let unit_bytes = generator.unit_bytes();
        let mut seen = Vec::new();
        for file in &plan.files {
            let units = file.size_bytes / unit_bytes;
            let words = units.div_ceil(64) as usize;
            let mut bits: Vec<u64> = Vec::new();
            bits.try_reserve_exact(words).map_err(|_| (units, file.path.clone()))?;
            drop(bits);
            // Pages that are zero and are not written to take no memory.
            seen.push(vec![0; words]);
        }
        let bases = plan.files.iter().map(|file| file.offset_bytes).collect();
        let mut rest = Span { generator, sequence, steps: taken };
        let mut spans = Vec::new();
        while rest.steps > 0 {
            spans.push(rest.split_off_front(span_steps.max(taken.div_ceil(states_max))));
        }
        let mut last = Self { spans, left: taken, span_steps, seen, bases, unit_bytes, compares_pieces };
        last.forget_beyond(compared);
        Ok(last)
    }

    /// Of what was written after the first `compared` steps, only the units are noted.
    fn forget_beyond(&mut self, compared: u64) {
        while self.left > compared
            && let Some(span) = self.pop()
        {
            let steps = compared.saturating_sub(self.left);
            let kept = Span { generator: span.generator.state(), sequence: span.sequence, steps };
            for (request, _) in writes_in(span, steps).1.into_iter().rev() {
                self.note(&request);
            }
            if steps > 0 {
                self.left += steps;
                self.spans.push(kept);
            }
        }
    }

    /// Takes the last span, or the last part of it that can be examined at once.
    fn pop(&mut self) -> Option<Span> {
        let mut span = self.spans.pop()?;
        while span.steps > self.span_steps.max(2 * REQUEST_BLOCK as u64) {
            // A quarter remains, so half as many states are kept at a time as with halves, for twice as many steps.
            let front = span.split_off_front(span.steps / 4 * 3);
            if span.steps == 0 {
                span = front;
                break;
            }
            self.spans.push(front);
        }
        self.left -= span.steps;
        Some(span)
    }

    /// Returns the last writes of the next span, with their numbers, in the order of writing; `None`: there are no more.
    pub(super) fn next_span(&mut self) -> Option<Vec<Numbered>> {
        let span = self.pop()?;
        let steps = span.steps;
        let mut writes = writes_in(span, steps).0;
        // The last writes move to the end, in their order.
        let mut first = writes.len();
        for at in (0..writes.len()).rev() {
            if self.note(&writes[at].0) {
                first -= 1;
                writes[first] = writes[at];
            }
        }
        writes.drain(..first);
        Some(writes)
    }

    /// Notes the units of a write; returns true if it is compared: none of them was noted before, or not each of them.
    fn note(&mut self, request: &Request) -> bool {
        let file = usize::from(request.file);
        let first = (request.offset - self.bases[file]) / self.unit_bytes;
        let units = first..first + u64::from(request.length) / self.unit_bytes;
        let bits = &mut self.seen[file];
        let (mut is_any, mut is_each) = (false, true);
        for unit in units {
            let (word, bit) = ((unit / 64) as usize, 1 << (unit % 64));
            let is_last = bits[word] & bit == 0;
            is_any |= is_last;
            is_each &= is_last;
            bits[word] |= bit;
        }
        if self.compares_pieces { is_any } else { is_each }
    }
}

/// Where a job, or one of its loops, begins.
#[derive(Debug)]
pub(super) struct Begin {
    pub(super) generator: Generator,
    /// The number of the last write before it.
    pub(super) sequence: u64,
    /// The steps before it.
    pub(super) steps: u64,
}

impl Begin {
    /// The beginning of a job.
    pub(super) fn of(generator: Generator) -> Self {
        Self { generator, sequence: 0, steps: 0 }
    }
}

/// The writes of some steps, each the last to its block, with their numbers.
#[derive(Debug)]
pub(super) struct Writes {
    source: Source,
    /// Those that were found and not returned.
    found: std::vec::IntoIter<Numbered>,
}

#[derive(Debug)]
enum Source {
    Last(LastWrites),
    /// Every write is the last to its block. Holds where the next steps begin, and how many are left.
    Each(Box<Begin>, u64),
}

impl Writes {
    /// Of `taken` steps from `begin` on, the first `compared` of which are compared.
    ///
    /// # Errors
    /// There is no memory for the bits of [`LastWrites`].
    pub(super) fn of(
        view: &View<'_, '_>,
        begin: Begin,
        [taken, compared]: [u64; 2],
        compares_pieces: bool,
    ) -> Result<Self, EngineError> {
        let source = match LastWrites::of(view, begin, [taken, compared], compares_pieces)? {
            Ok(last) => Source::Last(last),
            Err(begin) => Source::Each(Box::new(begin), compared),
        };
        Ok(Self { source, found: Vec::new().into_iter() })
    }

    /// Returns the next write.
    pub(super) fn next(&mut self) -> Option<Numbered> {
        loop {
            if let Some(next) = self.found.next() {
                return Some(next);
            }
            self.found = match &mut self.source {
                Source::Last(last) => last.next_span()?,
                Source::Each(_, 0) => return None,
                Source::Each(at, left) => {
                    let mut block = [Step::NONE; REQUEST_BLOCK];
                    let steps = next_steps(&mut at.generator, &mut block, *left);
                    *left -= steps.len() as u64;
                    let numbered = |request| {
                        at.sequence += 1;
                        (request, at.sequence)
                    };
                    steps.iter().filter_map(write).map(numbered).collect()
                }
            }
            .into_iter();
        }
    }
}

/// A write and its number.
type Numbered = (Request, u64);

/// Returns the writes among the first `steps` steps of a span, and those among the others.
fn writes_in(mut span: Span, steps: u64) -> (Vec<Numbered>, Vec<Numbered>) {
    let mut block = [Step::NONE; REQUEST_BLOCK];
    // As much for a short job as for a long one.
    let mut writes = Vec::with_capacity(span.steps.max(SPAN_STEPS_MIN) as usize);
    let mut later = Vec::new();
    let mut at = 0;
    while at < span.steps {
        for step in next_steps(&mut span.generator, &mut block, span.steps - at) {
            if let Some(request) = write(step) {
                span.sequence += 1;
                if at < steps { &mut writes } else { &mut later }.push((request, span.sequence));
            }
            at += 1;
        }
    }
    (writes, later)
}

/// Returns true if no unit can have been written twice: the steps take fewer blocks than the files hold, each once.
fn comes_once(plan: &JobPlan, taken: u64) -> bool {
    let pattern = &plan.pattern;
    // Reads take units of a pass, too.
    let of_reads = if matches!(pattern.mix, OpMix::ReadWrite { .. }) { pattern.read_sizes.max_bytes() } else { 0 };
    let most_bytes = pattern.write_sizes.max_bytes().max(of_reads);
    let held: u64 = plan.files.iter().map(|file| file.size_bytes / most_bytes).sum();
    let is_drawn = matches!(pattern.order, Order::Random { each_block_once: false, .. })
        || matches!(plan.file_selection, FileSelection::Drawn { .. });
    // With skips or zones, a job may come to the end of a file and begin again before it wrote every block.
    let is_in_order = pattern.steps.leaves_offsets_alone();
    (!is_drawn && is_in_order && taken <= held) || plan.replay.is_some()
}

/// Returns the generator's next block of steps, `most` of them at most.
fn next_steps<'b>(generator: &mut Generator, block: &'b mut [Step; REQUEST_BLOCK], most: u64) -> &'b [Step] {
    let count = generator.refill(block).min(usize::try_from(most).unwrap_or(usize::MAX));
    assert!(count > 0, "the same plan gives the same steps again");
    &block[..count]
}

/// Returns the write of a step, if it is one.
pub(super) fn write(step: &Step) -> Option<Request> {
    match step {
        Step::Io(request) if request.op == OpKind::Write => Some(*request),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::alloc::{GlobalAlloc, Layout, System};
    use std::cell::Cell;
    use std::collections::BTreeMap;
    use trueio_model::{BlockSizes, Distribution, EngineKind, FilePlan, Prepare};

    /// The system's allocator; it counts the bytes that each thread holds.
    struct Counting;

    #[global_allocator]
    static ALLOCATOR: Counting = Counting;

    thread_local! {
        /// What the thread holds, and the most it held. A thread that frees what another allocated may hold less than nothing.
        static HELD: Cell<[isize; 2]> = const { Cell::new([0; 2]) };
    }

    fn hold(bytes: isize) {
        // A thread that ends frees memory after its variables are gone.
        let _ = HELD.try_with(|held| {
            let [now, most] = held.get();
            held.set([now + bytes, most.max(now + bytes)]);
        });
    }

    // SAFETY: every call is passed unchanged to the system's allocator, which fulfils the contract.
    unsafe impl GlobalAlloc for Counting {
        unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
            hold(layout.size() as isize);
            // SAFETY: the caller fulfils the same contract.
            unsafe { System.alloc(layout) }
        }
        unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
            hold(layout.size() as isize);
            // SAFETY: the caller fulfils the same contract.
            unsafe { System.alloc_zeroed(layout) }
        }
        unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
            hold(size as isize - layout.size() as isize);
            // SAFETY: the caller fulfils the same contract.
            unsafe { System.realloc(pointer, layout, size) }
        }
        unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
            hold(-(layout.size() as isize));
            // SAFETY: the caller fulfils the same contract.
            unsafe { System.dealloc(pointer, layout) }
        }
    }

    /// A job that writes to a region of `size_bytes` of one file.
    fn plan(size_bytes: u64, change: &dyn Fn(&mut JobPlan)) -> JobPlan {
        let mut plan = JobPlan::plain(EngineKind::Null, size_bytes);
        plan.pattern.mix = OpMix::Only(OpKind::Write);
        plan.limits.is_time_based = true;
        plan.files = vec![FilePlan {
            path: "a".to_owned(),
            prepare: Prepare::Nothing,
            remove_after: false,
            offset_bytes: 1 << 20,
            size_bytes,
            extends_from: None,
        }];
        change(&mut plan);
        plan
    }

    fn random(each_block_once: bool) -> Order {
        Order::Random { distribution: Distribution::Uniform, each_block_once }
    }

    /// Returns the writes among `compared` steps that are compared, found with a table of all units.
    fn by_table(plan: &JobPlan, [taken, compared]: [u64; 2], compares_pieces: bool) -> Vec<Numbered> {
        let mut generator = Generator::new(plan, 0);
        let unit = generator.unit_bytes();
        let units = |request: &Request| {
            let first = request.offset / unit;
            (0..u64::from(request.length) / unit).map(|at| (request.file, first + at)).collect::<Vec<_>>()
        };
        let (mut last, mut writes, mut block) = (BTreeMap::new(), Vec::new(), [Step::NONE; REQUEST_BLOCK]);
        let (mut at, mut sequence) = (0, 0);
        while at < taken {
            for step in next_steps(&mut generator, &mut block, taken - at) {
                if let Some(request) = write(step) {
                    sequence += 1;
                    last.extend(units(&request).into_iter().map(|unit| (unit, sequence)));
                    if at < compared {
                        writes.push((request, sequence));
                    }
                }
                at += 1;
            }
        }
        writes.retain(|(request, sequence)| {
            let (units, is_last) = (units(request), |unit: &(u16, u64)| last[unit] == *sequence);
            if compares_pieces { units.iter().any(is_last) } else { units.iter().all(is_last) }
        });
        writes
    }

    /// Goal: one bit a unit finds the same writes as a table of numbers does.
    /// Method: blocks of one size drawn again, of several sizes, aligned, mixed with reads, in passes, to several files; in spans of 64
    /// steps that the first pass keeps, and in such that are parts of longer ones; all steps compared, and a part of them.
    #[test]
    fn a_bit_a_unit_finds_the_last_writes() {
        let of = |change: &dyn Fn(&mut JobPlan)| plan(1 << 20, change);
        let sizes = BlockSizes::Range { min_bytes: 4096, max_bytes: 16384 };
        let plans = [
            of(&|plan| plan.pattern.order = random(false)),
            of(&|plan| (plan.pattern.order, plan.pattern.write_sizes) = (random(false), sizes.clone())),
            of(&|plan| (plan.pattern.order, plan.pattern.write_sizes) = (random(true), sizes.clone())),
            // Blocks that begin at multiples of twice their size.
            of(&|plan| (plan.pattern.order, plan.pattern.steps.align_bytes) = (random(false), 8192)),
            of(&|plan| {
                (plan.pattern.order, plan.pattern.mix) = (random(false), OpMix::ReadWrite { read_percent: 40 });
            }),
            of(&|_| {}),
            of(&|plan| {
                let other = FilePlan { path: "b".to_owned(), size_bytes: 1 << 19, ..plan.files[0].clone() };
                plan.files.push(other);
            }),
        ];
        for (index, plan) in plans.iter().enumerate() {
            for steps in [[1, 1], [700, 700], [5_000, 5_000], [5_000, 4_990], [5_000, 1_234], [5_000, 0]] {
                for (states_max, pieces) in [(1_000, false), (1_000, true), (3, false), (1, true)] {
                    let generator = Generator::new(plan, 0);
                    let sizes = Sizes { span_steps: 64, states_max };
                    let mut last =
                        LastWrites::new(plan, Begin::of(generator), steps, sizes, pieces).expect("there is memory");
                    let mut found = Vec::new();
                    while let Some(span) = last.next_span() {
                        assert!(span.is_sorted_by_key(|(_, sequence)| *sequence));
                        found.splice(0..0, span);
                    }
                    let expected = by_table(plan, steps, pieces);
                    assert_eq!(found, expected, "plan {index}, steps {steps:?}, {states_max} states, pieces {pieces}");
                }
            }
        }
    }

    /// Goal: less than one byte a block; of a job with a large state (500 files, or a map of units), a few states more.
    /// Method: the most memory that finding the last writes among three million holds, the generator's own included, by a
    /// counting allocator. A state a span would take 18 MiB with a map.
    #[test]
    #[cfg_attr(miri, ignore = "ten million steps")]
    fn finding_the_last_writes_takes_less_than_a_byte_a_block() {
        const BLOCKS: u64 = 3 << 20;
        let drawn = plan(4096 * BLOCKS, &|plan| plan.pattern.order = random(false));
        let files = plan(4096 * BLOCKS, &|plan| {
            plan.pattern.order = random(true);
            let count = 500;
            let size_bytes = 4096 * (BLOCKS / count);
            let of = |number| FilePlan { path: format!("{number}"), size_bytes, ..plan.files[0].clone() };
            plan.files = (0..count).map(of).collect();
        });
        let mapped = plan(4096 * BLOCKS, &|plan| {
            plan.pattern.order = random(true);
            plan.pattern.write_sizes = BlockSizes::Range { min_bytes: 4096, max_bytes: 16384 };
        });
        for (name, plan, bytes_max) in
            [("drawn", drawn, BLOCKS), ("files", files, 3 * BLOCKS), ("mapped", mapped, 2 * BLOCKS)]
        {
            HELD.with(|held| held.set([0; 2]));
            let generator = Generator::new(&plan, 0);
            let sizes = Sizes::of(&generator);
            let mut last =
                LastWrites::new(&plan, Begin::of(generator), [BLOCKS; 2], sizes, false).expect("there is memory");
            let mut found = 0;
            while let Some(span) = last.next_span() {
                found += span.len() as u64;
            }
            let most = HELD.with(Cell::get)[1];
            println!("{name}: {most} bytes for {BLOCKS} writes, {found} of them the last to their blocks");
            assert!(found > BLOCKS / 8, "{name}: {found}");
            assert!(most < bytes_max as isize, "{name}: {most} bytes");
        }
    }

    #[test]
    fn a_job_that_writes_no_unit_twice_needs_nothing_remembered() {
        let blocks = 256;
        let once = |change: &dyn Fn(&mut JobPlan), taken| comes_once(&plan(blocks * 4096, change), taken);
        assert!(once(&|_| {}, blocks));
        assert!(!once(&|_| {}, blocks + 1));
        assert!(!once(&|plan| plan.pattern.order = random(false), 1));
        let sizes = || BlockSizes::Range { min_bytes: 4096, max_bytes: 16384 };
        assert!(once(&|plan| plan.pattern.write_sizes = sizes(), blocks / 4));
        assert!(!once(&|plan| plan.pattern.write_sizes = sizes(), blocks / 4 + 1));
        // Larger blocks that are read take units of the same pass.
        let reads = |plan: &mut JobPlan| {
            plan.pattern.mix = OpMix::ReadWrite { read_percent: 50 };
            plan.pattern.read_sizes = BlockSizes::Fixed(8192);
        };
        assert!(once(&reads, blocks / 2));
        assert!(!once(&reads, blocks / 2 + 1));
    }
}
