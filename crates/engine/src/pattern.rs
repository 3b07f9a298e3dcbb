//! Which I/O comes next: offsets, sizes, operations, sync calls, and when it is enough.
//!
//! The worker asks for requests sixty-four at a time, so that an option which is switched off costs
//! nothing per I/O: the plain case (one file, one size, nothing between the I/Os) runs through a
//! loop without a decision, everything else through [`Generator::next_request`].
//!
//! The same plan, seed and worker give the same requests on every engine: nothing here depends on
//! time or on how an I/O ended.

mod distribution;
mod free_map;
mod permutation;
mod rounds;
mod steps;

use crate::pace::Calendar;
use crate::replay::Replay;
use crate::request::{REQUEST_BLOCK, Request};
use crate::seed::{mix64, worker_seed};
use distribution::{BlockSampler, FileSampler, below};
use free_map::FreeMap;
use permutation::Permutation;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use rounds::Rounds;
use steps::{Region, Stepper};
use trueio_model::{BlockSizes, Distribution, FileSelection, JobPlan, OpKind, OpMix, Order, Steps};

/// Produces a worker's requests, in order.
#[derive(Debug)]
pub struct Generator {
    rng: Xoshiro256PlusPlus,
    files: Vec<FileCursor>,
    selection: Selection,
    file: usize,
    /// I/Os to a file before the next one is chosen, and how many of them are to come.
    stay: (u32, u32),
    mix: OpMix,
    /// Says what comes next, where reads and writes have rates of their own: the same as the worker's.
    turns: Option<Calendar>,
    /// Nanoseconds since the start, where the next request depends on them.
    now_ns: u64,
    sizes: [Sizes; 3],
    /// All offsets are multiples of it: the greatest common divisor of all sizes.
    unit: u64,
    /// `Some(size)`: the plain case, every I/O of this size on the only file, no sync calls.
    plain_size: Option<u32>,
    /// What is asked for beyond the next block and one drawn anew.
    steps: Option<Steps>,
    /// Each block is trimmed before it is written.
    trims_first: bool,
    /// The write that follows the trim of the same block.
    second: Option<Request>,
    flush: Option<FlushEvery>,
    loop_bytes: u64,
    /// Until this loop ends.
    left_bytes: u64,
    left_loops: u64,
    /// What the last of several loops transfers more, so that the last I/O is a whole one.
    rounding_bytes: u64,
    left_ios: u64,
    is_endless: bool,
    /// Where cached pages are dropped before each further pass.
    passes: Option<Passes>,
    /// What comes after the last whole block of a body that is fetched, the next one last.
    tail: Vec<Request>,
    /// The log that says what comes, instead of all of this.
    replay: Option<Box<Replay>>,
    /// Requests are given one by one, for what was drawn for each is told.
    tells_draws: bool,
}

/// Which file the next request goes to.
#[derive(Debug)]
enum Selection {
    /// Each in turn: their passes end together, or nobody looks at passes.
    InTurn,
    /// Each to its end.
    Sequential,
    /// Any, whatever has passed.
    Random,
    /// By a distribution, whatever has passed.
    Drawn(Box<FileSampler>),
    /// Those whose pass is not over.
    Rounds(Box<Rounds>),
}

/// Pages are dropped, or files made again, where a pass ends and another request follows.
#[derive(Debug, Default)]
struct Passes {
    /// Which files a pass ended of, where only a pass over all of them counts; else empty.
    over: Vec<bool>,
    /// Before the next request: of this file, or of all (`Some(None)`).
    due: Option<Option<u16>>,
    /// A request came since pages were dropped.
    is_begun: bool,
}

impl Passes {
    /// A pass over a file ended, or one over all of them.
    fn end(&mut self, file: Option<u16>) {
        if !self.is_begun {
            return;
        }
        match file {
            Some(file) if !self.over.is_empty() => {
                self.over[usize::from(file)] = true;
                if self.over.iter().all(|is_over| *is_over) {
                    self.due = Some(None);
                }
            }
            file => self.due = Some(file),
        }
    }

    /// True if files are made again, so that all of them are gone over from their beginnings.
    fn begins_anew(&self) -> bool {
        !self.over.is_empty()
    }

    /// What is to be dropped before the next request.
    fn take(&mut self) -> Option<Request> {
        let due = self.due.take();
        self.is_begun &= due.is_none();
        if due.is_some() {
            self.over.fill(false);
        }
        due.map(Request::drop_pages)
    }
}

#[derive(Debug)]
struct FlushEvery {
    every: u64,
    data_only: bool,
    writes: u64,
    /// The file written last: a sync call is for it.
    file: u16,
    /// For calls on ranges, of each file: where what was written since the last call begins and ends.
    ranges: Option<Box<[(u64, u64)]>>,
}

/// Nothing was written since the last call.
const NO_RANGE: (u64, u64) = (u64::MAX, 0);

impl FlushEvery {
    fn new(plan: &JobPlan) -> Option<Self> {
        let flush = plan.flush;
        let (every, data_only) = match (flush.fsync_every, flush.fdatasync_every, flush.range) {
            (0, 0, None) => return None,
            (0, 0, Some(range)) => (range.every, false),
            (0, every, _) => (every, true),
            (every, _, _) => (every, false),
        };
        let ranges = flush.range.map(|_| vec![NO_RANGE; plan.files.len().max(1)].into());
        Some(Self { every, data_only, writes: 0, file: 0, ranges })
    }

    /// Counts a write.
    fn note(&mut self, file: usize, offset: u64, length: u64) {
        self.writes += 1;
        self.file = file as u16;
        if let Some(range) = self.ranges.as_mut().and_then(|ranges| ranges.get_mut(file)) {
            *range = (range.0.min(offset), range.1.max(offset + length));
        }
    }

    /// The call, if it is due.
    fn take(&mut self) -> Option<Request> {
        if self.writes < self.every {
            return None;
        }
        self.writes = 0;
        let call = Request { op: OpKind::Sync, file: self.file, data_only: self.data_only, ..Request::NONE };
        let range = self.ranges.as_mut().and_then(|ranges| ranges.get_mut(usize::from(call.file)));
        Some(range.map_or(call, |range| {
            let (begin, end) = std::mem::replace(range, NO_RANGE);
            Request::sync_range(call.file, begin, end - begin)
        }))
    }
}

/// Sizes of one operation, ready to be drawn.
#[derive(Debug)]
enum Sizes {
    Fixed(u64),
    Range {
        step: u64,
        count: u64,
    },
    /// Any number of bytes from `min` to `max`.
    Any {
        min: u64,
        max: u64,
    },
    /// (cumulative weight, size); the last weight is the sum.
    Weighted(Vec<(u64, u64)>),
}

impl Sizes {
    fn new(sizes: &BlockSizes, is_unaligned: bool) -> Self {
        match sizes {
            BlockSizes::Range { min_bytes, max_bytes } if is_unaligned => {
                Sizes::Any { min: *min_bytes, max: *max_bytes }
            }
            BlockSizes::Fixed(bytes) => Sizes::Fixed(*bytes),
            BlockSizes::Range { min_bytes, max_bytes } => {
                Sizes::Range { step: *min_bytes, count: max_bytes / min_bytes }
            }
            BlockSizes::Weighted(pairs) => {
                let mut sum = 0;
                Sizes::Weighted(
                    pairs
                        .iter()
                        .map(|&(bytes, weight)| {
                            sum += u64::from(weight);
                            (sum, bytes)
                        })
                        .collect(),
                )
            }
        }
    }

    fn draw(&self, rng: &mut Xoshiro256PlusPlus) -> u64 {
        match self {
            Sizes::Fixed(bytes) => *bytes,
            Sizes::Range { step, count } => step * (1 + below(rng, *count)),
            Sizes::Any { min, max } => min + below(rng, max - min + 1),
            Sizes::Weighted(pairs) => {
                let (sum, last) = pairs[pairs.len() - 1];
                let at = below(rng, sum);
                pairs.iter().find(|p| at < p.0).map_or(last, |p| p.1)
            }
        }
    }

    /// The size that was drawn, or, as in fio, another one until it fits into what is left of a file; what fits if none
    /// was found.
    fn fit(&self, mut size: u64, room: u64, rng: &mut Xoshiro256PlusPlus) -> u64 {
        const TRIES: u32 = 64;
        for _ in 0..TRIES {
            if size <= room {
                return size;
            }
            size = self.draw(rng);
        }
        size.min(room)
    }

    fn mean(&self) -> f64 {
        match self {
            Sizes::Fixed(bytes) => *bytes as f64,
            Sizes::Range { step, count } => *step as f64 * (*count as f64 + 1.0) / 2.0,
            Sizes::Any { min, max } => (*min as f64 + *max as f64) / 2.0,
            Sizes::Weighted(pairs) => {
                let weights = pairs.iter().scan(0, |before, &(sum, bytes)| {
                    let weight = sum - std::mem::replace(before, sum);
                    Some(weight as f64 * bytes as f64)
                });
                weights.sum::<f64>() / pairs[pairs.len() - 1].0 as f64
            }
        }
    }

    fn each(&self) -> Vec<u64> {
        match self {
            Sizes::Fixed(bytes) => vec![*bytes],
            Sizes::Range { step, .. } => vec![*step],
            Sizes::Any { min, .. } => vec![*min],
            Sizes::Weighted(pairs) => pairs.iter().map(|p| p.1).collect(),
        }
    }
}

/// Where the next I/O of a file goes.
#[derive(Debug)]
struct FileCursor {
    offset: u64,
    /// Whole units of the region; a rest smaller than a unit is never touched.
    unit_count: u64,
    /// The whole region, in bytes.
    region_bytes: u64,
    seed: u64,
    /// Passes begun; in a job with steps the bytes of this one.
    pass: u64,
    /// Bytes after which a pass of a job with steps is over.
    pass_bytes: u64,
    place: OffsetOrder,
    stepper: Stepper,
}

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "one a file, made once; a box would cost a jump an I/O")]
enum OffsetOrder {
    /// The next byte of reads, writes and trims, from the region's start.
    Sequential { next: [u64; 3] },
    /// Fixed size, every block once a pass; `left` of them to come (kept where passes are looked at).
    Once { order: Permutation, ahead: [u64; REQUEST_BLOCK], at: usize, filled: usize, left: u64 },
    /// Mixed sizes, every unit once a pass: a map remembers what larger blocks took.
    Cover(FreeMap),
    /// By a distribution, blocks may come again. A pass is over when as much as the region holds was
    /// transferred; `left` bytes are to come.
    Sampled { sampler: BlockSampler, left: u64 },
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn op_index(op: OpKind) -> usize {
    match op {
        OpKind::Read => 0,
        OpKind::Write => 1,
        OpKind::Trim => 2,
        OpKind::Sync => unreachable!("sync calls have no size and no place"),
    }
}

impl Generator {
    /// The requests of worker `worker` of a job.
    ///
    /// # Panics
    /// If the plan breaks its own promises (a region smaller than a block, a size of 0).
    #[expect(clippy::too_many_lines, reason = "until it is split")]
    pub fn new(plan: &JobPlan, worker: u32) -> Self {
        let seed = worker_seed(plan, worker);
        let pattern = &plan.pattern;
        let sizes = [&pattern.read_sizes, &pattern.write_sizes, &pattern.trim_sizes];
        let sizes = sizes.map(|sizes| Sizes::new(sizes, pattern.steps.is_unaligned));
        let steps = Some(pattern.steps).filter(|steps| !steps.places_plainly());
        let trims_first = pattern.steps.trims_first;
        let used: Vec<usize> = match pattern.mix {
            OpMix::Only(op) => vec![op_index(op)],
            OpMix::ReadWrite { .. } => vec![0, 1],
        };
        assert!(plan.files.len() <= 1 << 16, "a request names its file in 16 bits");
        assert!(used.iter().all(|&i| sizes[i].each().iter().all(|&size| size > 0)), "the plan holds sizes above 0");
        let of_writes = pattern.steps.of_writes.map_or(u64::MAX, |writes| writes.align_bytes);
        let size_unit = match pattern.steps.is_unaligned {
            true => 1,
            false => used.iter().flat_map(|&i| sizes[i].each()).fold(0, gcd),
        };
        let unit = match pattern.steps.align_bytes.min(of_writes) {
            0 => used.iter().flat_map(|&i| sizes[i].each()).fold(0, gcd),
            bytes => bytes,
        };
        let all_bytes = plan.limits.io_bytes.checked_mul(plan.limits.loops).filter(|_| plan.limits.loops > 1);
        let rounding_bytes =
            all_bytes.map_or(0, |bytes| bytes.checked_next_multiple_of(size_unit).unwrap_or(bytes) - bytes);
        let fixed = match (&sizes[used[0]], &sizes[used[used.len() - 1]]) {
            (Sizes::Fixed(a), Sizes::Fixed(b)) if a == b => Some(*a),
            _ => None,
        };
        let replay = plan.replay.as_deref().map(|replay| Box::new(Replay::open(plan, replay)));
        let files: Vec<FileCursor> = plan
            .files
            .iter()
            .filter(|_| replay.is_none())
            .enumerate()
            .map(|(i, file)| {
                let seed = mix64(seed ^ (i as u64 + 1));
                let unit_count = file.size_bytes / unit;
                assert!(unit_count > 0, "the plan holds at least one block a file");
                let place = match &pattern.order {
                    Order::Sequential => OffsetOrder::Sequential { next: [0; 3] },
                    Order::Random { distribution: Distribution::Uniform, each_block_once: true } => {
                        first_pass(unit_count, seed, fixed.is_some())
                    }
                    Order::Random { distribution, .. } => OffsetOrder::Sampled {
                        sampler: BlockSampler::new(distribution, unit_count, unit, seed),
                        left: unit_count * unit,
                    },
                };
                let stepper = Stepper::default();
                let is_in_order = matches!((&pattern.order, pattern.mix), (Order::Sequential, OpMix::Only(_)));
                let skipped =
                    pattern.steps.skipping_ios(file.size_bytes, unit).filter(|_| is_in_order && fixed.is_some());
                FileCursor {
                    offset: file.offset_bytes,
                    unit_count,
                    region_bytes: file.size_bytes,
                    seed,
                    pass: 0,
                    pass_bytes: skipped.map_or(file.size_bytes, |ios| ios * unit),
                    place,
                    stepper,
                }
            })
            .collect();
        let flush = FlushEvery::new(plan);
        let turns = Calendar::new(plan, worker).filter(Calendar::says_ops);
        let handling = plan.handling;
        let passes = (handling.invalidates_each_pass || handling.remakes_each_pass).then(|| Passes {
            over: vec![false; if handling.remakes_each_pass { files.len() } else { 0 }],
            ..Passes::default()
        });
        // Of one operation in order, or each block once: there a pass ends where a block of requests does.
        let is_simple = matches!(pattern.mix, OpMix::Only(_))
            && files.iter().all(|file| matches!(file.place, OffsetOrder::Sequential { .. } | OffsetOrder::Once { .. }));
        let is_plain = files.len() == 1
            && flush.is_none()
            && steps.is_none()
            && !trims_first
            && turns.is_none()
            && (passes.is_none() || is_simple);
        // What may come again has no passes.
        let has_passes = !matches!(pattern.order, Order::Random { each_block_once: false, .. });
        let ends_together = fixed.is_some()
            && files.windows(2).all(|pair| pair[0].region_bytes == pair[1].region_bytes)
            && (matches!(pattern.mix, OpMix::Only(_)) || matches!(pattern.order, Order::Random { .. }));
        let most = match plan.files_at_a_time {
            0 => files.len(),
            most => files.len().min(most as usize),
        };
        let in_rounds = files.len() > 1 && (has_passes || most < files.len());
        let selection = match &plan.file_selection {
            FileSelection::Sequential => Selection::Sequential,
            FileSelection::RoundRobin if in_rounds && (most < files.len() || !ends_together) => {
                Selection::Rounds(Box::new(Rounds::new(files.len(), most, false)))
            }
            FileSelection::RoundRobin => Selection::InTurn,
            FileSelection::Random if in_rounds => Selection::Rounds(Box::new(Rounds::new(files.len(), most, true))),
            FileSelection::Random => Selection::Random,
            FileSelection::Drawn { distribution } => {
                Selection::Drawn(Box::new(FileSampler::new(distribution, files.len().max(1), seed)))
            }
        };
        let plain_size = fixed.filter(|_| is_plain).map(|size| size as u32);
        Self {
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
            files,
            selection,
            file: 0,
            stay: (plan.ios_per_file.max(1), 0),
            mix: pattern.mix,
            turns,
            now_ns: 0,
            sizes,
            unit,
            plain_size,
            steps,
            trims_first,
            second: None,
            flush,
            loop_bytes: plan.limits.io_bytes,
            left_bytes: plan.limits.io_bytes,
            left_loops: plan.limits.loops,
            rounding_bytes,
            left_ios: plan.limits.io_count.unwrap_or(u64::MAX),
            is_endless: plan.limits.is_time_based,
            passes,
            tail: tail_of(plan),
            replay,
            tells_draws: false,
        }
    }

    /// What every offset (from its region's start) and length is a multiple of, in bytes.
    pub(crate) fn unit_bytes(&self) -> u64 {
        self.unit
    }

    /// The mean size of an I/O, or of one of an operation, in bytes.
    pub(crate) fn mean_size_bytes(&self, op: Option<OpKind>) -> f64 {
        match (self.mix, op) {
            (_, Some(op)) | (OpMix::Only(op), None) => self.sizes[op_index(op)].mean(),
            (OpMix::ReadWrite { read_percent }, None) => {
                let reads = f64::from(read_percent) / 100.0;
                self.sizes[0].mean() * reads + self.sizes[1].mean() * (1.0 - reads)
            }
        }
    }

    /// Writes the next requests to `out`; returns how many. 0: the job has done all it should.
    pub fn refill(&mut self, out: &mut [Request; REQUEST_BLOCK]) -> usize {
        if let Some(replay) = &mut self.replay {
            return replay.refill(out);
        }
        let filled = self.refill_blocks(out);
        if filled == 0 && !self.tail.is_empty() { self.refill_tail(out) } else { filled }
    }

    /// True if what comes next depends on when that is asked: requests then come one by one.
    pub(crate) fn asks_time(&self) -> bool {
        self.turns.as_ref().is_some_and(Calendar::asks_time)
    }

    /// Says when the next request is asked for, in nanoseconds since the start.
    #[cold]
    pub(crate) fn tell_time(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
    }

    /// The log that is replayed, if one is.
    pub(crate) fn replay(&mut self) -> Option<&mut Replay> {
        self.replay.as_deref_mut()
    }

    /// Gives requests one by one where what was drawn for each can be told only then ([`Self::drawn`]).
    pub(crate) fn tell_draws(&mut self) {
        self.tells_draws = self.steps.is_some();
    }

    /// The block of its file's region that was drawn for the request that was taken last: its number, in units of
    /// [`Self::unit_bytes`]. `None` if its place follows from another one, or from a log.
    pub(crate) fn drawn(&self, request: &Request) -> Option<u64> {
        let file = self.files.get(usize::from(request.file))?;
        if matches!(file.place, OffsetOrder::Sequential { .. }) || request.op == OpKind::Sync {
            return None;
        }
        let op = match request.op {
            // It has the place of the trim before it, which was drawn for it.
            OpKind::Write if self.trims_first => return None,
            OpKind::Trim if self.trims_first => OpKind::Write,
            op => op,
        };
        if self.steps.is_some() && !file.stepper.has_drawn(op) {
            return None;
        }
        Some((request.offset - file.offset) / self.unit)
    }

    fn refill_blocks(&mut self, out: &mut [Request; REQUEST_BLOCK]) -> usize {
        match self.plain_size {
            Some(size) => self.refill_plain(size, out),
            None => {
                let count = if self.tells_draws || self.asks_time() { 1 } else { REQUEST_BLOCK };
                for (filled, slot) in out[..count].iter_mut().enumerate() {
                    match self.next_request() {
                        Some(request) => *slot = request,
                        None => return filled,
                    }
                }
                count
            }
        }
    }

    /// The tail, with the sync calls that are due in it.
    #[cold]
    fn refill_tail(&mut self, out: &mut [Request; REQUEST_BLOCK]) -> usize {
        let mut filled = 0;
        while let Some(request) = self.tail.pop() {
            out[filled] = request;
            filled += 1;
            if let Some(flush) = &mut self.flush {
                flush.note(usize::from(request.file), request.offset, u64::from(request.length));
                if let Some(call) = flush.take() {
                    out[filled] = call;
                    filled += 1;
                }
            }
        }
        filled
    }

    /// How many more I/Os of `size` the limits allow, up to a block of requests.
    fn allowance(&mut self, size: u64) -> usize {
        let mut allowed = self.left_ios.min(REQUEST_BLOCK as u64);
        if !self.is_endless {
            while self.left_bytes < size && self.left_loops > 1 {
                self.left_loops -= 1;
                self.left_bytes = self.left_bytes.saturating_add(self.loop_bytes);
                if self.left_loops == 1 {
                    self.left_bytes = self.left_bytes.saturating_add(self.rounding_bytes);
                }
                if let Some(passes) = &mut self.passes {
                    passes.end(None);
                }
            }
            allowed = allowed.min(self.left_bytes / size);
        }
        allowed as usize
    }

    /// All files are empty: none goes on behind a hole.
    #[cold]
    fn begin_anew(&mut self) {
        self.file = 0;
        let unit = self.unit;
        self.files.iter_mut().for_each(|file| file.begin_anew(unit));
    }

    fn take(&mut self, count: u64, bytes: u64) {
        self.left_ios -= count;
        if !self.is_endless {
            self.left_bytes = self.left_bytes.saturating_sub(bytes);
        }
    }

    fn refill_plain(&mut self, size: u32, out: &mut [Request; REQUEST_BLOCK]) -> usize {
        let mut count = self.allowance(u64::from(size));
        if count == 0 {
            return 0;
        }
        if let Some(passes) = &mut self.passes {
            let file = &mut self.files[0];
            count = count.min(file.blocks_left(u64::from(size)).unwrap_or(count));
            if count == 0 {
                file.begin_pass();
                passes.end(None);
                count = 1;
            }
            if let Some(dropping) = passes.take() {
                if passes.begins_anew() {
                    self.begin_anew();
                }
                out[0] = dropping;
                return 1;
            }
            passes.is_begun = true;
        }
        let mix = self.mix;
        for slot in &mut out[..count] {
            let op = match mix {
                OpMix::Only(op) => op,
                OpMix::ReadWrite { read_percent } => draw_op(&mut self.rng, read_percent),
            };
            *slot = Request { offset: 0, length: size, file: 0, op, data_only: false };
        }
        let file = &mut self.files[0];
        let (base, unit) = (file.offset, self.unit);
        let filled = match &mut file.place {
            OffsetOrder::Once { order, .. } => {
                let mut blocks = [0; REQUEST_BLOCK];
                let mut filled = order.fill(&mut blocks[..count]);
                if filled == 0 {
                    file.next_pass();
                    let OffsetOrder::Once { order, .. } = &mut file.place else {
                        unreachable!("a pass keeps its kind")
                    };
                    filled = order.fill(&mut blocks[..count]);
                }
                for (slot, block) in out.iter_mut().zip(&blocks[..filled]) {
                    slot.offset = base + block * unit;
                }
                if let (Some(_), OffsetOrder::Once { left, .. }) = (&self.passes, &mut file.place) {
                    *left -= filled as u64;
                }
                filled
            }
            OffsetOrder::Sampled { sampler: BlockSampler::Uniform { count: blocks }, .. } => {
                for slot in &mut out[..count] {
                    slot.offset = base + below(&mut self.rng, *blocks) * unit;
                }
                count
            }
            OffsetOrder::Sampled { sampler, .. } => {
                for slot in &mut out[..count] {
                    slot.offset = base + sampler.sample(&mut self.rng) * unit;
                }
                count
            }
            OffsetOrder::Sequential { next } => {
                let end = file.unit_count * unit;
                for slot in &mut out[..count] {
                    let next = &mut next[op_index(slot.op)];
                    if *next + unit > end {
                        *next = 0;
                    }
                    slot.offset = base + *next;
                    *next += unit;
                }
                count
            }
            OffsetOrder::Cover(_) => unreachable!("one size needs no map"),
        };
        self.take(filled as u64, filled as u64 * u64::from(size));
        filled
    }

    /// The general case: any number of files, sizes, and sync calls in between.
    fn next_request(&mut self) -> Option<Request> {
        if let Some(second) = self.second.take() {
            return Some(second);
        }
        // Only if another request follows.
        if self.passes.is_some()
            && self.allowance(self.unit) > 0
            && let Some(dropping) = self.passes.as_mut().and_then(Passes::take)
        {
            if self.passes.as_ref().is_some_and(Passes::begins_anew) {
                self.begin_anew();
            }
            return Some(dropping);
        }
        if let Some(call) = self.flush.as_mut().and_then(FlushEvery::take) {
            return Some(call);
        }
        let op = match (self.mix, &self.turns) {
            (OpMix::Only(op), _) => op,
            (OpMix::ReadWrite { read_percent }, Some(turns)) => {
                let drawn = || draw_op(&mut self.rng, read_percent);
                turns.next_op(self.now_ns, drawn, (1..100).contains(&read_percent))
            }
            (OpMix::ReadWrite { read_percent }, None) => draw_op(&mut self.rng, read_percent),
        };
        let sizes = &self.sizes[op_index(op)];
        let is_fixed = matches!(sizes, Sizes::Fixed(_));
        let wanted = sizes.draw(&mut self.rng);
        // Beside steps the unit may be less than a block, and a part of a block is not issued.
        let least = if self.steps.is_some() && is_fixed { wanted } else { self.unit };
        if self.allowance(least) == 0 {
            return None;
        }
        // The last of mixed sizes is as large as the limit still allows.
        let wanted = match self.steps {
            _ if self.is_endless => wanted,
            Some(_) => wanted.min(self.left_bytes),
            None => wanted.min(self.left_bytes / self.unit * self.unit),
        };
        let stays = self.stay.1 > 0;
        self.stay.1 = if stays { self.stay.1 - 1 } else { self.stay.0 - 1 };
        match &mut self.selection {
            _ if stays => {}
            Selection::InTurn | Selection::Sequential => {}
            Selection::Random => self.file = below(&mut self.rng, self.files.len() as u64) as usize,
            Selection::Drawn(files) => self.file = files.sample(&mut self.rng),
            Selection::Rounds(rounds) => self.file = rounds.next(&mut self.rng),
        }
        let unit = self.unit;
        let file_index = self.file;
        let file = &mut self.files[file_index];
        let (offset, length, is_pass_over) = match &self.steps {
            None => file.place_next(op, wanted, &self.sizes[op_index(op)], unit, &mut self.rng),
            Some(steps) => file.step_next(steps, op, wanted, unit, &mut self.rng),
        };
        // What may come again has no passes, unless only so many files are in use.
        if is_pass_over
            && (matches!(self.selection, Selection::Rounds(_)) || !matches!(file.place, OffsetOrder::Sampled { .. }))
        {
            self.stay.1 = 0;
        }
        match &mut self.selection {
            Selection::InTurn if self.stay.1 > 0 => {}
            Selection::InTurn => self.file = (file_index + 1) % self.files.len(),
            Selection::Sequential if is_pass_over => self.file = (file_index + 1) % self.files.len(),
            Selection::Rounds(rounds) if is_pass_over => rounds.leave(),
            Selection::Sequential | Selection::Random | Selection::Drawn(_) | Selection::Rounds(_) => {}
        }
        if let Some(passes) = &mut self.passes {
            passes.is_begun = true;
            if is_pass_over {
                passes.end(Some(file_index as u16));
            }
        }
        self.take(1, length);
        if let Some(turns) = &mut self.turns {
            let _ = turns.next(op, length as u32);
        }
        if let Some(flush) = &mut self.flush
            && op == OpKind::Write
        {
            flush.note(file_index, offset, length);
        }
        let request = Request { offset, length: length as u32, file: file_index as u16, op, data_only: false };
        if self.trims_first {
            self.second = Some(request);
            return Some(Request { op: OpKind::Trim, ..request });
        }
        Some(request)
    }
}

/// What is left of a body behind its last whole block: what direct I/O can still take, and the rest; the
/// next one last.
fn tail_of(plan: &JobPlan) -> Vec<Request> {
    let (Some(source), [file]) = (&plan.source, &plan.files[..]) else { return Vec::new() };
    let block = plan.pattern.write_sizes.max_bytes();
    let blocks_end = source.length_bytes / block * block;
    let direct_end = source.direct_bytes.max(blocks_end);
    let piece = |from: u64, to: u64| Request {
        offset: file.offset_bytes + from,
        length: (to - from) as u32,
        file: 0,
        op: OpKind::Write,
        data_only: false,
    };
    let pieces = [piece(direct_end, source.length_bytes), piece(blocks_end, direct_end)];
    pieces.into_iter().filter(|request| request.length > 0).collect()
}

#[inline(always)]
fn draw_op(rng: &mut Xoshiro256PlusPlus, read_percent: u8) -> OpKind {
    if below(rng, 100) < u64::from(read_percent) { OpKind::Read } else { OpKind::Write }
}

fn first_pass(unit_count: u64, seed: u64, is_fixed: bool) -> OffsetOrder {
    if !is_fixed {
        return OffsetOrder::Cover(FreeMap::new(unit_count));
    }
    let order = Permutation::new(unit_count, mix64(seed ^ mix64(0)));
    OffsetOrder::Once { order, ahead: [0; REQUEST_BLOCK], at: 0, filled: 0, left: unit_count }
}

impl FileCursor {
    /// Offset and length of the next I/O of a job with steps, and whether as much as the region holds was
    /// transferred.
    fn step_next(
        &mut self,
        steps: &Steps,
        op: OpKind,
        wanted: u64,
        unit: u64,
        rng: &mut Xoshiro256PlusPlus,
    ) -> (u64, u64, bool) {
        let region = Region { end: self.region_bytes, unit };
        let (offset, length) = match &mut self.place {
            OffsetOrder::Sampled { sampler, .. } => self.stepper.next(steps, region, (op, wanted), Some(sampler), rng),
            OffsetOrder::Sequential { .. } => self.stepper.next(steps, region, (op, wanted), None, rng),
            OffsetOrder::Once { .. } | OffsetOrder::Cover(_) => unreachable!("the plan keeps no map beside steps"),
        };
        self.pass += length;
        let is_over = self.pass >= self.pass_bytes;
        if is_over {
            self.pass = 0;
        }
        (self.offset + offset, length, is_over)
    }

    /// Blocks of a size until the pass over the region ends; `None` if they are not counted.
    fn blocks_left(&self, size: u64) -> Option<usize> {
        let left = match &self.place {
            OffsetOrder::Sequential { next } => {
                (self.unit_count * size).saturating_sub(next.iter().copied().max()?) / size
            }
            OffsetOrder::Once { left, .. } => *left,
            OffsetOrder::Cover(_) | OffsetOrder::Sampled { .. } => return None,
        };
        Some(usize::try_from(left).unwrap_or(usize::MAX))
    }

    /// Begins the next pass of a region whose blocks were counted.
    fn begin_pass(&mut self) {
        match &mut self.place {
            OffsetOrder::Sequential { next } => *next = [0; 3],
            _ => self.next_pass(),
        }
    }

    /// Leaves the pass that it is in, if it has begun.
    fn begin_anew(&mut self, unit: u64) {
        self.stepper = Stepper::default();
        match &mut self.place {
            OffsetOrder::Sequential { next } => *next = [0; 3],
            OffsetOrder::Once { left, .. } if *left < self.unit_count => self.next_pass(),
            OffsetOrder::Cover(map) if map.left() < self.unit_count => self.next_pass(),
            OffsetOrder::Once { .. } | OffsetOrder::Cover(_) => return,
            OffsetOrder::Sampled { left, .. } => *left = self.unit_count * unit,
        }
        self.pass = match self.place {
            OffsetOrder::Once { .. } | OffsetOrder::Cover(_) => self.pass,
            // The bytes of a pass with steps.
            OffsetOrder::Sequential { .. } | OffsetOrder::Sampled { .. } => 0,
        };
    }

    /// Begins the next pass, in another order.
    fn next_pass(&mut self) {
        self.pass += 1;
        match &mut self.place {
            OffsetOrder::Once { order, at, filled, left, .. } => {
                *order = Permutation::new(self.unit_count, mix64(self.seed ^ mix64(self.pass)));
                (*at, *filled, *left) = (0, 0, self.unit_count);
            }
            OffsetOrder::Cover(map) => map.clear(),
            OffsetOrder::Sequential { .. } | OffsetOrder::Sampled { .. } => {
                unreachable!("their passes need no preparation")
            }
        }
    }

    /// Offset and length of the next I/O, and whether it was the last one of a pass. `wanted` is the
    /// length that was drawn of `sizes`; near the end of the region mixed ones are drawn again until one fits.
    fn place_next(
        &mut self,
        op: OpKind,
        wanted: u64,
        sizes: &Sizes,
        unit: u64,
        rng: &mut Xoshiro256PlusPlus,
    ) -> (u64, u64, bool) {
        let is_fixed = matches!(sizes, Sizes::Fixed(_));
        let end = self.unit_count * unit;
        let wanted = wanted.min(end);
        match &mut self.place {
            OffsetOrder::Sequential { next } => {
                let next = &mut next[op_index(op)];
                if *next == end || (is_fixed && *next + wanted > end) {
                    *next = 0;
                }
                let offset = *next;
                let length = if is_fixed { wanted } else { sizes.fit(wanted, end - offset, rng) };
                *next += length;
                (self.offset + offset, length, *next == end || (is_fixed && *next + wanted > end))
            }
            OffsetOrder::Sampled { sampler, left } => {
                let block = sampler.sample(rng);
                let (block, wanted) = match is_fixed {
                    true => (block.min((end - wanted) / unit), wanted),
                    false => (block, sizes.fit(wanted, end - block * unit, rng)),
                };
                *left = left.saturating_sub(wanted);
                let is_over = *left == 0;
                if is_over {
                    *left = end;
                }
                (self.offset + block * unit, wanted, is_over)
            }
            OffsetOrder::Once { left: 0, .. } => {
                self.next_pass();
                self.place_next(op, wanted, sizes, unit, rng)
            }
            OffsetOrder::Once { order, ahead, at, filled, left } => {
                if *at == *filled {
                    *filled = order.fill(ahead);
                    *at = 0;
                    assert!(*filled > 0, "a block is left, so the order has not ended");
                }
                let block = ahead[*at];
                *at += 1;
                *left -= 1;
                (self.offset + block * unit, unit, *left == 0)
            }
            OffsetOrder::Cover(map) => {
                if map.left() == 0 {
                    map.clear();
                }
                let first = map.next_free(below(rng, self.unit_count)).expect("a unit is left");
                // As large as was drawn, or as the hole between earlier blocks allows.
                let wanted = if is_fixed { wanted } else { sizes.fit(wanted, end - first * unit, rng) };
                let units = map.take_run(first, wanted / unit);
                (self.offset + first * unit, units * unit, map.left() == 0)
            }
        }
    }
}

#[cfg(test)]
mod tests;
