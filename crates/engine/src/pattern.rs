//! Which step comes next: offsets, sizes, operations, sync calls, and when the job is over.
//!
//! The worker takes steps sixty-four at a time, so that an option which is switched off costs nothing per I/O: the plain
//! case (one file, one size, nothing between the I/Os) runs through a loop without a decision, everything else through
//! [`Generator::next_step`].
//!
//! The same plan, seed and worker give the same steps on every engine: nothing here depends on time (except where only
//! reads or only writes have a rate) or on how an I/O ended.

mod between;
mod cursor;
mod distribution;
mod free_map;
mod permutation;
mod precondition;
mod repeat;
mod rounds;
mod sizes;
mod steps;

use crate::arrivals::ArrivalSchedule;
use crate::context::{OpenLog, open_file};
use crate::replay::Replay;
use crate::request::{REQUEST_BLOCK, Request, Step};
use between::{FlushEvery, Passes};
use cursor::{FileCursor, OffsetOrder};
use distribution::{BlockSampler, FileSampler, below};
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;
use repeat::Repeat;
use rounds::Rounds;
use sizes::{Sizes, gcd, op_index};
use trueio_model::{FileSelection, JobPlan, Limits, OpKind, OpMix, Order, Steps, mix64, worker_seed};

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
    /// Chooses the next operation if reads and writes have rates of their own: the same as the worker's.
    turns: Option<ArrivalSchedule>,
    /// Nanoseconds since the start, where the next request depends on them.
    now_ns: u64,
    sizes: [Sizes; 3],
    /// All offsets are multiples of it: the greatest common divisor of all sizes.
    unit: u64,
    /// `Some(size)`: the plain case, every I/O of this size on the only file, no sync calls.
    plain_size: Option<u32>,
    /// Rules for offsets other than the next block and a newly drawn one.
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
    /// Of random blocks without a map, where each pass is to be the same.
    repeat: Option<Repeat>,
    /// What comes after the last whole block of a body that is fetched, the next one last.
    tail: Vec<Request>,
    /// The log that is replayed instead of all of this.
    replay: Option<Box<Replay>>,
    /// Requests are returned one by one, because the drawn block of each is reported.
    shows_draws: bool,
}

/// Which file the next request goes to.
#[derive(Debug, Clone)]
enum Selection {
    /// Each in turn: their passes end together, or passes do not matter.
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

impl Selection {
    /// `is_fixed`: all I/Os have one size.
    fn new(plan: &JobPlan, files: &[FileCursor], is_fixed: bool, seed: u64) -> Self {
        let pattern = &plan.pattern;
        // What may come again has no passes.
        let has_passes = !matches!(pattern.order, Order::Random { each_block_once: false, .. });
        let ends_together = is_fixed
            && files.windows(2).all(|pair| pair[0].region_bytes == pair[1].region_bytes)
            && (matches!(pattern.mix, OpMix::Only(_)) || matches!(pattern.order, Order::Random { .. }));
        let most = match plan.files_at_a_time {
            0 => files.len(),
            most => files.len().min(most as usize),
        };
        let in_rounds = files.len() > 1 && (has_passes || most < files.len());
        match &plan.file_selection {
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
        }
    }
}

impl Generator {
    /// The requests of worker `worker` of a job.
    ///
    /// # Panics
    /// If the plan breaks a rule of [`JobPlan::assert_sound`], or a region is shorter than a block.
    pub fn new(plan: &JobPlan, worker: u32) -> Self {
        Self::with_log(plan, worker, open_file)
    }

    /// The same, with a function that opens the log of a job that replays one.
    pub(crate) fn with_log(plan: &JobPlan, worker: u32, open_log: OpenLog) -> Self {
        plan.assert_sound();
        let seed = worker_seed(plan.seed, worker);
        let pattern = &plan.pattern;
        let sizes = [&pattern.read_sizes, &pattern.write_sizes, &pattern.trim_sizes];
        let sizes = sizes.map(|sizes| Sizes::new(sizes, pattern.steps.is_unaligned));
        let steps = Some(pattern.steps).filter(|steps| !steps.leaves_offsets_alone());
        let trims_first = pattern.steps.trims_first;
        let used: Vec<usize> = match pattern.mix {
            OpMix::Only(op) => vec![op_index(op)],
            OpMix::ReadWrite { .. } => vec![0, 1],
        };
        let of_writes = pattern.steps.of_writes.map_or(u64::MAX, |writes| writes.align_bytes);
        let size_unit = match pattern.steps.is_unaligned {
            true => 1,
            false => used.iter().flat_map(|&i| sizes[i].each()).fold(0, gcd),
        };
        let unit = match pattern.steps.align_bytes.min(of_writes) {
            0 => used.iter().flat_map(|&i| sizes[i].each()).fold(0, gcd),
            bytes => bytes,
        };
        let rounding_bytes = rounding_bytes(&plan.limits, size_unit);
        let fixed = match (&sizes[used[0]], &sizes[used[used.len() - 1]]) {
            (Sizes::Fixed(a), Sizes::Fixed(b)) if a == b => Some(*a),
            _ => None,
        };
        let replay = plan.replay.as_deref().map(|replay| Box::new(Replay::open(plan, replay, open_log)));
        let mut files = Vec::with_capacity(if replay.is_none() { plan.files.len() } else { 0 });
        if replay.is_none() {
            let cursor = |(i, file)| {
                let region = plan.region_of(file, worker);
                FileCursor::new(plan, region, mix64(seed ^ (i as u64 + 1)), unit, fixed.is_some())
            };
            files.extend(plan.files.iter().enumerate().map(cursor));
        }
        let flush = FlushEvery::new(plan);
        let turns = ArrivalSchedule::new(plan, worker).filter(ArrivalSchedule::chooses_ops);
        let passes = Passes::new(plan, files.len());
        // Of one operation in order, or each block once: there a pass ends where a block of requests does.
        let is_simple = matches!(pattern.mix, OpMix::Only(_))
            && files.iter().all(|file| matches!(file.order, OffsetOrder::Sequential { .. } | OffsetOrder::Once { .. }));
        let is_plain = files.len() == 1
            && flush.is_none()
            && steps.is_none()
            && !trims_first
            && turns.is_none()
            && (passes.is_none() || is_simple);
        let selection = Selection::new(plan, &files, fixed.is_some(), seed);
        let plain_size = fixed.filter(|_| is_plain).map(|size| size as u32);
        let rng = Xoshiro256PlusPlus::seed_from_u64(seed);
        let draws_again = files.iter().any(|file| matches!(file.order, OffsetOrder::Sampled { .. }));
        let repeat = if draws_again { Repeat::new(plan, &rng) } else { None };
        Self {
            rng,
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
            left_ios: plan.limits.io_count.map_or(u64::MAX, |count| count.saturating_add(plan.skipped_ios)),
            is_endless: plan.limits.is_time_based,
            passes,
            repeat,
            tail: tail_of(plan),
            replay,
            shows_draws: false,
        }
    }

    /// Returns a generator that goes on from here with the same steps. That of a log has none.
    pub(crate) fn state(&self) -> Self {
        Self {
            rng: self.rng.clone(),
            files: self.files.clone(),
            selection: self.selection.clone(),
            file: self.file,
            stay: self.stay,
            mix: self.mix,
            turns: self.turns.clone(),
            now_ns: self.now_ns,
            sizes: self.sizes.clone(),
            unit: self.unit,
            plain_size: self.plain_size,
            steps: self.steps,
            trims_first: self.trims_first,
            second: self.second,
            flush: self.flush.clone(),
            loop_bytes: self.loop_bytes,
            left_bytes: self.left_bytes,
            left_loops: self.left_loops,
            rounding_bytes: self.rounding_bytes,
            left_ios: self.left_ios,
            is_endless: self.is_endless,
            passes: self.passes.clone(),
            repeat: self.repeat.clone(),
            tail: self.tail.clone(),
            replay: None,
            shows_draws: self.shows_draws,
        }
    }

    /// The memory of [`Self::state`], without what does not grow with files or their sizes.
    pub(crate) fn state_bytes(&self) -> usize {
        size_of::<Self>() + self.files.iter().map(FileCursor::bytes).sum::<usize>()
    }

    /// What every offset (from its region's start) and length is a multiple of, in bytes.
    pub(crate) fn unit_bytes(&self) -> u64 {
        let used = match self.mix {
            OpMix::Only(op) => op_index(op)..op_index(op) + 1,
            OpMix::ReadWrite { .. } => 0..2,
        };
        // Of blocks that begin at multiples of more than their size, the size counts.
        used.flat_map(|op| self.sizes[op].each()).fold(self.unit, gcd)
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
    pub fn refill(&mut self, out: &mut [Step; REQUEST_BLOCK]) -> usize {
        if let Some(replay) = &mut self.replay {
            return replay.refill(out);
        }
        let filled = self.refill_blocks(out);
        if filled == 0 && !self.tail.is_empty() { self.refill_tail(out) } else { filled }
    }

    /// Returns true if the next request depends on the time at which it is generated: requests then come one by one.
    pub(crate) fn depends_on_time(&self) -> bool {
        self.turns.as_ref().is_some_and(ArrivalSchedule::depends_on_time)
    }

    /// Sets the time for which the next request is generated, in nanoseconds since the start.
    #[cold]
    pub(crate) fn set_time(&mut self, now_ns: u64) {
        self.now_ns = now_ns;
    }

    /// The log that is replayed, if one is.
    pub(crate) fn replay(&mut self) -> Option<&mut Replay> {
        self.replay.as_deref_mut()
    }

    /// Returns requests one by one from now on, so that [`Self::drawn`] can report the block that was drawn for each.
    pub(crate) fn show_draws(&mut self) {
        self.shows_draws = self.steps.is_some();
    }

    /// The block of its file's region that was drawn for the request that was taken last: its number, in units of
    /// [`Self::unit_bytes`]. `None` if its offset follows from another one, or from a log.
    pub(crate) fn drawn(&self, request: &Request) -> Option<u64> {
        let file = self.files.get(usize::from(request.file))?;
        if matches!(file.order, OffsetOrder::Sequential { .. }) || request.op == OpKind::Sync {
            return None;
        }
        let op = match request.op {
            // It has the offset of the trim before it, which was drawn for it.
            OpKind::Write if self.trims_first => return None,
            OpKind::Trim if self.trims_first => OpKind::Write,
            op => op,
        };
        if self.steps.is_some() && !file.stepper.has_drawn(op) {
            return None;
        }
        Some((request.offset - file.offset) / self.unit)
    }

    fn refill_blocks(&mut self, out: &mut [Step; REQUEST_BLOCK]) -> usize {
        match self.plain_size {
            Some(size) => self.refill_plain(size, out),
            None => {
                let count = if self.shows_draws || self.depends_on_time() { 1 } else { REQUEST_BLOCK };
                for (filled, slot) in out[..count].iter_mut().enumerate() {
                    match self.next_step() {
                        Some(step) => *slot = step,
                        None => return filled,
                    }
                    // The generator's state is that of the next loop.
                    if matches!(slot, Step::NextPass { ends_loop: true, .. }) {
                        return filled + 1;
                    }
                }
                count
            }
        }
    }

    /// The tail, with the sync calls that are due in it.
    #[cold]
    fn refill_tail(&mut self, out: &mut [Step; REQUEST_BLOCK]) -> usize {
        let mut filled = 0;
        while let Some(request) = self.tail.pop() {
            out[filled] = Step::Io(request);
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
                    passes.end_loop();
                }
            }
            allowed = allowed.min(self.left_bytes / size);
        }
        allowed as usize
    }

    /// All files are empty: none continues after a hole.
    #[cold]
    fn begin_anew(&mut self) {
        self.file = 0;
        let unit = self.unit;
        self.files.iter_mut().for_each(|file| file.begin_anew(unit));
    }

    fn take(&mut self, count: u64, bytes: u64) {
        self.left_ios -= count;
        if let Some(repeat) = &mut self.repeat {
            repeat.take(bytes);
        }
        if !self.is_endless {
            self.left_bytes = self.left_bytes.saturating_sub(bytes);
        }
    }

    fn refill_plain(&mut self, size: u32, out: &mut [Step; REQUEST_BLOCK]) -> usize {
        let mut count = self.allowance(u64::from(size));
        if count == 0 {
            return 0;
        }
        if let Some(repeat) = &mut self.repeat {
            count = count.min(repeat.left(u64::from(size), &mut self.rng));
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
            passes.begin();
        }
        let mix = self.mix;
        let mut ops = [OpKind::Read; REQUEST_BLOCK];
        match mix {
            OpMix::Only(op) => ops[..count].fill(op),
            OpMix::ReadWrite { read_percent } => {
                ops[..count].iter_mut().for_each(|op| *op = draw_op(&mut self.rng, read_percent));
            }
        }
        let io = |op: &OpKind, offset| Step::Io(Request { offset, length: size, file: 0, op: *op });
        let file = &mut self.files[0];
        let (base, unit) = (file.offset, self.unit);
        let filled = match &mut file.order {
            OffsetOrder::Once { order, .. } => {
                let mut blocks = [0; REQUEST_BLOCK];
                let mut filled = order.fill(&mut blocks[..count]);
                if filled == 0 {
                    file.next_pass();
                    let OffsetOrder::Once { order, .. } = &mut file.order else {
                        unreachable!("a pass keeps its kind")
                    };
                    filled = order.fill(&mut blocks[..count]);
                }
                for ((slot, op), block) in out.iter_mut().zip(&ops).zip(&blocks[..filled]) {
                    *slot = io(op, base + block * unit);
                }
                if let (Some(_), OffsetOrder::Once { left, .. }) = (&self.passes, &mut file.order) {
                    *left -= filled as u64;
                }
                filled
            }
            OffsetOrder::Sampled { sampler: BlockSampler::Uniform { count: blocks }, .. } => {
                for (slot, op) in out[..count].iter_mut().zip(&ops) {
                    *slot = io(op, base + below(&mut self.rng, *blocks) * unit);
                }
                count
            }
            OffsetOrder::Sampled { sampler, .. } => {
                for (slot, op) in out[..count].iter_mut().zip(&ops) {
                    *slot = io(op, base + sampler.sample(&mut self.rng) * unit);
                }
                count
            }
            OffsetOrder::Sequential { next } => {
                let end = file.unit_count * unit;
                for (slot, op) in out[..count].iter_mut().zip(&ops) {
                    let next = &mut next[op_index(*op)];
                    if *next + unit > end {
                        *next = 0;
                    }
                    *slot = io(op, base + *next);
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
    fn next_step(&mut self) -> Option<Step> {
        if let Some(second) = self.second.take() {
            return Some(Step::Io(second));
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
        if let Some(repeat) = &mut self.repeat {
            repeat.left(self.unit, &mut self.rng);
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
        // With steps the unit may be smaller than a block, and a part of a block is not issued.
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
        // What may come again has no passes, unless the number of files in use is limited.
        if is_pass_over
            && (matches!(self.selection, Selection::Rounds(_)) || !matches!(file.order, OffsetOrder::Sampled { .. }))
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
            passes.begin();
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
        let request = Request { offset, length: length as u32, file: file_index as u16, op };
        if self.trims_first {
            self.second = Some(request);
            return Some(Step::Io(Request { op: OpKind::Trim, ..request }));
        }
        Some(Step::Io(request))
    }
}

/// Returns what the last of several loops transfers more, so that the last I/O is a whole one.
fn rounding_bytes(limits: &Limits, unit: u64) -> u64 {
    let all_bytes = limits.io_bytes.checked_mul(limits.loops).filter(|_| limits.loops > 1);
    all_bytes.map_or(0, |bytes| bytes.checked_next_multiple_of(unit).unwrap_or(bytes) - bytes)
}

/// What is left of a body after its last whole block: what direct I/O can still take, and the rest; the
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
    };
    let pieces = [piece(direct_end, source.length_bytes), piece(blocks_end, direct_end)];
    pieces.into_iter().filter(|request| request.length > 0).collect()
}

#[inline(always)]
fn draw_op(rng: &mut Xoshiro256PlusPlus, read_percent: u8) -> OpKind {
    if below(rng, 100) < u64::from(read_percent) { OpKind::Read } else { OpKind::Write }
}

#[cfg(test)]
mod tests;
