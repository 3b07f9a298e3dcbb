//! The pass at a job's end: everything that the worker wrote is read back and compared, here or on threads.

use super::Verifier;
use super::written::Written;
use crate::engines::EngineError;
use crate::pattern::Generator;
use crate::request::{REQUEST_BLOCK, Request, Step};
use crate::view::View;
use std::io;
use std::sync::Mutex;
use std::sync::mpsc::{SyncSender, sync_channel};
use trueio_model::{BlockSizes, FileSelection, JobPlan, OpKind, Order};

/// A block that was read, sent to a thread that compares it.
#[derive(Debug)]
pub(super) struct Item {
    block: Vec<u8>,
    request: Request,
    run: u64,
    sequence: u64,
}

/// For each file, the number of the write that came last to each of its units.
type LastWrites = Vec<Vec<u64>>;

impl Verifier<'_> {
    /// Reads back everything that this worker wrote, in the order it was written, and compares it. No part of the
    /// measured time.
    pub(super) fn verify_written(&mut self, view: &mut View<'_, '_>) -> Result<(), EngineError> {
        if !self.plan.reads_back {
            return Ok(());
        }
        if self.plan.synced_only && self.compared(view.state.steps.taken()) == 0 {
            view.state.outcome.fatal = Some(
                "nothing was synced before the job ended, so nothing could be compared (`verify_policy=fsynced`): let \
                 sync calls come earlier, or say `end_fsync`"
                    .to_owned(),
            );
            return Ok(());
        }
        if !settle_files(view) {
            return Ok(());
        }
        self.begin_reading_back(view);
        self.is_final_pass = true;
        let began = view.clock.now();
        let result = match self.plan.threads as usize {
            0 => self.read_back(None, view),
            threads => self.read_back_for(threads, view),
        };
        let elapsed_ns = view.clock.to_ns(view.clock.now() - began);
        if let Some(read_backs) = &mut self.read_backs {
            read_backs.note_pass(elapsed_ns);
        }
        result
    }

    /// Reads back everything; `threads` threads compare.
    fn read_back_for(&mut self, threads: usize, view: &mut View<'_, '_>) -> Result<(), EngineError> {
        let seal = self.seal.clone();
        let (sender, receiver) = sync_channel::<Item>(2 * threads);
        let (receiver, found) = (Mutex::new(receiver), Mutex::new(Vec::new()));
        let result = std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    loop {
                        let next = receiver.lock().expect("no code panics while it receives").recv();
                        let Ok(mut item) = next else { return };
                        let result = seal.check(&mut item.block, item.run, item.request.offset, item.sequence);
                        if let Err(difference) = result {
                            let mut found = found.lock().expect("no code panics while it adds");
                            found.push((item.sequence, item.request, difference, item.block));
                        }
                    }
                });
            }
            let result = self.read_back(Some(&sender), view);
            // The threads end with the sender.
            drop(sender);
            result
        });
        let mut found = found.into_inner().expect("no code panics while it adds");
        found.sort_by_key(|(sequence, ..)| *sequence);
        for (_, request, difference, block) in found {
            self.note_difference(&request, difference, &block, view);
        }
        result
    }

    /// Sends a block that was read to the threads that compare.
    pub(super) fn compare_on_thread(
        &mut self,
        index: usize,
        request: &Request,
        sequence: u64,
        threads: &SyncSender<Item>,
        view: &mut View<'_, '_>,
    ) {
        if self.backlog.is_trimmed(sequence) {
            return self.compare(index, request, sequence, view);
        }
        self.note_compared(request, index, view);
        let block = view.state.payload.block(index, request.length).to_vec();
        // The threads live until this sender is gone.
        let (run, sequence) = self.expected(sequence);
        let _ = threads.send(Item { block, request: *request, run, sequence });
    }

    /// Reads back every block whose last write is known, in the order they were written.
    fn read_back(&mut self, threads: Option<&SyncSender<Item>>, view: &mut View<'_, '_>) -> Result<(), EngineError> {
        match self.written.take() {
            Some(written) => self.read_back_zones(&written, threads, view)?,
            // What a backlog was compared is done with, unless it was trimmed since.
            None if self.plan.backlog > 0 && self.plan.trim.is_none() => self.read_back_waiting(threads, view)?,
            None => self.read_back_steps(threads, view)?,
        }
        self.reap_all(threads, view)
    }

    /// Reads back one block, without waiting for it; false if the pass ends.
    fn continue_pass(
        &mut self,
        request: &Request,
        sequence: u64,
        threads: Option<&SyncSender<Item>>,
        view: &mut View<'_, '_>,
    ) -> Result<bool, EngineError> {
        if view.state.context.is_stopped() {
            view.state.outcome.was_stopped = true;
            return Ok(false);
        }
        Ok(self.read_later(request, sequence, threads, view)? && !self.has_given_up())
    }

    /// Reads back what a backlog has not come to.
    fn read_back_waiting(
        &mut self,
        threads: Option<&SyncSender<Item>>,
        view: &mut View<'_, '_>,
    ) -> Result<(), EngineError> {
        while let Some((request, sequence)) = self.backlog.next_waiting() {
            if !self.continue_pass(&request, sequence, threads, view)? {
                break;
            }
        }
        Ok(())
    }

    /// Reads back every block that the job's steps wrote.
    fn read_back_steps(
        &mut self,
        threads: Option<&SyncSender<Item>>,
        view: &mut View<'_, '_>,
    ) -> Result<(), EngineError> {
        let context = view.state.context;
        let mut last = last_writes(view)?;
        let mut generator = Generator::new(context.plan, context.worker);
        let mut block = [Step::NONE; REQUEST_BLOCK];
        let (mut left, mut sequence) = (self.compared(view.state.steps.taken()), 0);
        while left > 0 {
            for request in writes_of(&mut generator, &mut block, &mut left) {
                sequence += 1;
                let compares_pieces = self.plan.compares_pieces();
                let is_overwritten = last.as_mut().is_some_and(|last| {
                    let unit = generator.unit_bytes();
                    let mut later = units_of(context.plan, &request, unit, last).iter().map(|&n| n != sequence);
                    // The header of each piece names its own write, which may be a later one.
                    if compares_pieces { later.all(|is_later| is_later) } else { later.any(|is_later| is_later) }
                });
                if is_overwritten || self.is_undefined(sequence) {
                    continue;
                }
                if !self.continue_pass(&request, sequence, threads, view)? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Reads back zone by zone, in the order of writing: in zones the generator does not determine the offsets.
    fn read_back_zones(
        &mut self,
        written: &Written,
        threads: Option<&SyncSender<Item>>,
        view: &mut View<'_, '_>,
    ) -> Result<(), EngineError> {
        let length = view.state.context.plan.pattern.write_sizes.max_bytes() as u32;
        for (file, offset, sequence) in written.blocks() {
            let request = Request { op: OpKind::Read, file, offset, length };
            if !self.continue_pass(&request, sequence, threads, view)? {
                return Ok(());
            }
        }
        Ok(())
    }
}

/// Returns the writes of the generator's next block of steps, of which `left` are looked at.
fn writes_of(
    generator: &mut Generator,
    block: &mut [Step; REQUEST_BLOCK],
    left: &mut u64,
) -> impl Iterator<Item = Request> + use<> {
    let count = generator.refill(block).min(*left as usize);
    assert!(count > 0, "the same plan gives the same steps again");
    *left -= count as u64;
    (*block).into_iter().take(count).filter_map(|step| match step {
        Step::Io(request) if request.op == OpKind::Write => Some(request),
        _ => None,
    })
}

/// Where blocks come again, or are of several sizes: the last write to each unit. A block that was overwritten in part
/// cannot be compared, and one that was overwritten need not be.
fn last_writes(view: &View<'_, '_>) -> Result<Option<LastWrites>, EngineError> {
    let context = view.state.context;
    let plan = context.plan;
    let taken = view.state.steps.taken();
    let mut generator = Generator::new(plan, context.worker);
    let unit = generator.unit_bytes();
    let held: u64 = plan.files.iter().map(|file| file.size_bytes / unit.max(1)).sum();
    let is_drawn = matches!(plan.pattern.order, Order::Random { each_block_once: false, .. })
        || matches!(plan.file_selection, FileSelection::Drawn { .. });
    // With skips, a job may come to the end of a file and begin again before it wrote every block.
    let skips = plan.pattern.steps.skip_bytes != 0;
    let comes_once = matches!(plan.pattern.write_sizes, BlockSizes::Fixed(_)) && !is_drawn && !skips && taken <= held;
    if comes_once || plan.replay.is_some() {
        return Ok(None);
    }
    let mut last: LastWrites = Vec::new();
    for file in &plan.files {
        let mut units: Vec<u64> = Vec::new();
        let count = (file.size_bytes / unit) as usize;
        units.try_reserve_exact(count).map_err(|_| EngineError {
            engine: view.engine.kind(),
            attempted: format!("remembering the last write to each of {count} units of `{}`", file.path),
            source: io::ErrorKind::OutOfMemory.into(),
        })?;
        drop(units);
        // Pages that are zero and are not written to take no memory.
        last.push(vec![0; count]);
    }
    let mut block = [Step::NONE; REQUEST_BLOCK];
    let (mut left, mut sequence) = (taken, 0);
    while left > 0 {
        for request in writes_of(&mut generator, &mut block, &mut left) {
            sequence += 1;
            units_of(plan, &request, unit, &mut last).fill(sequence);
        }
    }
    Ok(Some(last))
}

/// Returns the units that a request touches.
fn units_of<'a>(plan: &JobPlan, request: &Request, unit: u64, of: &'a mut LastWrites) -> &'a mut [u64] {
    let file = usize::from(request.file);
    let first = ((request.offset - plan.files[file].offset_bytes) / unit) as usize;
    &mut of[file][first..first + (u64::from(request.length) / unit) as usize]
}

/// Before blocks are compared: writes all files to the disk and drops them from the page cache, so that the disk is
/// read. Returns false if that failed.
pub(in crate::stages) fn settle_files(view: &mut View<'_, '_>) -> bool {
    for (index, target) in view.state.context.files.iter().enumerate() {
        let step = Step::Sync { file: index as u16, data_only: true };
        let result = view.sync(&step);
        if result != 0 {
            view.note_failure(&step.request(), -result as i32, 0, 0);
            let error = io::Error::from_raw_os_error(-result as i32);
            let sentence = format!("fdatasync of `{}` before its verify pass failed: {error}", target.path);
            view.state.outcome.fatal = Some(sentence);
            return false;
        }
        // Pages that stay (mapped ones, and those of tmpfs) are read from memory; counted, so that the record shows it.
        let _ = trueio_direct::evict(&target.file, 0, 0);
        if let Ok(left) = trueio_direct::residency(&target.file, 0, target.end_bytes)
            && left.cached_pages > 0
        {
            view.state.outcome.notes.push(format!(
                "verify: {} of {} pages of `{}` stayed in the page cache and were compared from there",
                left.cached_pages, left.file_pages, target.path
            ));
        }
    }
    true
}
