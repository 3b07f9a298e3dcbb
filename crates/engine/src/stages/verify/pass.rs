//! The pass at a job's end: everything that the worker wrote is read back and compared, here or on threads.

use super::Verifier;
use super::last_writes::Writes;
use super::written::Written;
use crate::engines::EngineError;
use crate::request::{Request, Step};
use crate::view::View;
use std::io;
use std::sync::Mutex;
use std::sync::mpsc::{SyncSender, sync_channel};
use trueio_model::OpKind;

/// A block that was read, sent to a thread that compares it.
#[derive(Debug)]
pub(super) struct Item {
    block: Vec<u8>,
    request: Request,
    run: u64,
    sequence: u64,
}

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

    /// Reads back every block that the steps of the job, or of its last loop, wrote.
    fn read_back_steps(
        &mut self,
        threads: Option<&SyncSender<Item>>,
        view: &mut View<'_, '_>,
    ) -> Result<(), EngineError> {
        let begin = self.loops.take_begin(view);
        let counts = [view.state.steps.taken(), self.compared(view.state.steps.taken())];
        let counts = counts.map(|count| count.saturating_sub(begin.steps));
        let mut writes = Writes::of(view, begin, counts, self.plan.compares_pieces())?;
        while let Some((request, sequence)) = writes.next() {
            if !self.is_undefined(sequence) && !self.continue_pass(&request, sequence, threads, view)? {
                return Ok(());
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
