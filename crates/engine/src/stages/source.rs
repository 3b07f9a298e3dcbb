//! Fetches the bytes of writes from a server: into the buffer of the next write, without losing sight of what is in
//! flight, and compares what was written at the end.

use super::verify::settle_files;
use super::{Admission, Hooks, Stage};
use crate::context::WorkerContext;
use crate::engines::EngineError;
use crate::recorder::WorkerReport;
use crate::request::Request;
use crate::source::{BodySource, compare_with_source};
use crate::target::TargetFile;
use crate::view::View;
use std::time::Duration;
use trueio_model::{SourcePlan, VerifyFailure};

/// How long the source is waited for while nothing else is to be done: until the next look at a request to stop.
const WAIT_IDLE: Duration = Duration::from_millis(50);
/// And while I/Os are in flight, whose completions would otherwise be noticed late.
const WAIT_BUSY: Duration = Duration::from_micros(100);

/// The bytes of a job with a source.
#[derive(Debug)]
pub(crate) struct Supply<'a> {
    plan: &'a SourcePlan,
    /// `None` until it is opened.
    source: Option<Box<dyn BodySource>>,
    /// Bytes of the next write that are in its buffer.
    filled: usize,
    /// Ticks spent with the source: waiting for it, and taking what it sent.
    waited: u64,
    /// What is left is too short for direct I/O.
    is_tail: bool,
    block_count: u64,
    failure_count: u64,
    failures: Vec<VerifyFailure>,
}

impl<'a> Supply<'a> {
    pub(crate) fn stage(context: &WorkerContext<'a>) -> Option<Box<dyn Stage + 'a>> {
        let plan = context.plan.source.as_ref()?;
        Some(Box::new(Self {
            plan,
            source: None,
            filled: 0,
            waited: 0,
            is_tail: false,
            block_count: 0,
            failure_count: 0,
            failures: Vec::new(),
        }))
    }

    /// Returns true if the next write begins with what direct I/O cannot write, and nothing is in flight that direct I/O
    /// still writes; the files' flags are changed then.
    fn begin_tail(&mut self, view: &mut View<'_, '_>) -> bool {
        if view.state.queue.in_flight() > 0 {
            return false;
        }
        self.is_tail = true;
        if let Err(error) = write_tail_buffered(view.state.context.files, view.engine.opened_again()) {
            view.state.outcome.fail(error);
            return false;
        }
        let SourcePlan { length_bytes, direct_bytes, .. } = self.plan;
        view.state.outcome.notes.push(format!(
            "source: the last {} of its {length_bytes} bytes went through the page cache, as direct I/O takes whole \
             units only",
            length_bytes - direct_bytes,
        ));
        true
    }

    /// Fetches the body again and compares it with what was written. Not timed.
    fn compare(&mut self, view: &mut View<'_, '_>) {
        let context = view.state.context;
        let plan = context.plan;
        let Some(file) = context.files.first() else { return };
        if !view.state.steps.is_exhausted() {
            let note = "source: what was written was not compared, as the job ended before the body";
            view.state.outcome.notes.push(note.to_owned());
            return;
        }
        // It is read in any length, through the page cache, from which it was dropped just before.
        if !settle_files(view) {
            return;
        }
        if let Err(error) = write_tail_buffered(context.files, view.engine.opened_again()) {
            view.state.outcome.fatal.get_or_insert(error);
            return;
        }
        let offset = plan.files.first().map_or(0, |file| file.offset_bytes);
        let block_bytes = plan.pattern.write_sizes.max_bytes() as usize;
        let length = self.plan.length_bytes;
        let compared = (context.host.open_body)(self.plan).and_then(|mut body| {
            compare_with_source(&file.file, &file.path, offset, &mut *body, length, block_bytes, context.stop)
        });
        match compared {
            Ok(found) => {
                self.block_count = found.block_count;
                self.failure_count = found.differing_count;
                self.failures = found.failures;
                view.state.outcome.was_stopped |= found.was_stopped;
            }
            Err(error) => {
                view.state.outcome.fatal = Some(format!("comparing what was written: {error}"));
            }
        }
    }
}

impl Stage for Supply<'_> {
    fn hooks(&self) -> Hooks {
        Hooks { is_issuing: true, is_completing: false, ..Hooks::default() }
    }

    /// Opens the body; nothing is requested before the start.
    fn prepare(&mut self, view: &mut View<'_, '_>) {
        match (view.state.context.host.open_body)(self.plan) {
            Ok(source) => self.source = Some(source),
            Err(error) => {
                view.state.outcome.fatal = Some(error);
                view.state.outcome.is_done = true;
            }
        }
    }

    /// Collects the bytes of the next write in the buffer of the free slot that is taken last. Completions do not change
    /// which one it is, so a buffer is filled only after the write that had it before has completed, whatever the engine
    /// and the depth. Ready: all bytes are there, and that slot is taken next.
    fn admit(&mut self, request: &mut Request, view: &mut View<'_, '_>) -> Result<Admission, EngineError> {
        let in_body = request.offset - view.state.context.plan.files.first().map_or(0, |file| file.offset_bytes);
        if in_body >= self.plan.direct_bytes && !self.is_tail && !self.begin_tail(view) {
            return Ok(Admission::Drain);
        }
        let Some(source) = &mut self.source else { return Ok(Admission::Drain) };
        let index = view.state.payload.index(request, view.state.queue.last_free());
        let buffer = view.state.payload.block(index, request.length);
        let before = view.clock.now();
        let mut answer = Admission::Ready;
        while self.filled < buffer.len() {
            match source.take(&mut buffer[self.filled..]) {
                Ok(0) => {
                    answer = Admission::Outside;
                    break;
                }
                Ok(n) => self.filled += n,
                Err(error) => {
                    view.state.outcome.fail(error);
                    answer = Admission::Drain;
                    break;
                }
            }
        }
        self.waited += view.clock.now() - before;
        if answer == Admission::Ready {
            self.filled = 0;
            view.state.payload.sequence += 1;
            view.state.queue.use_last_free_next();
        }
        Ok(answer)
    }

    fn wait(&mut self, view: &mut View<'_, '_>) {
        let Some(source) = &mut self.source else { return };
        let limit = if view.state.queue.in_flight() == 0 { WAIT_IDLE } else { WAIT_BUSY };
        let before = view.clock.now();
        source.wait(limit);
        self.waited += view.clock.now() - before;
    }

    fn finish(&mut self, view: &mut View<'_, '_>) {
        if self.plan.is_verified && view.state.payload.sequence > 0 && view.may_verify() {
            self.compare(view);
        }
    }

    fn report(&mut self, report: &mut WorkerReport, view: &mut View<'_, '_>) {
        report.verified_block_count += self.block_count;
        report.verify_failure_count += self.failure_count;
        report.verify_failures.append(&mut self.failures);
        report.source_wait_ns = view.clock.to_ns(self.waited);
        if self.source.is_some() && view.state.queue.depth() > 1 {
            report.engine_notes.push(format!(
                "while the source was waited for, completions were looked for every {} µs: latencies may be that \
                 much too long",
                WAIT_BUSY.as_micros()
            ));
        }
    }
}

/// Lets all further writes go through the page cache: direct I/O cannot write the rest of a body.
fn write_tail_buffered(files: &[TargetFile], opened_again: &[TargetFile]) -> Result<(), String> {
    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
    for target in files.iter().chain(opened_again) {
        let flags = fcntl_getfl(&*target.file);
        let cleared = flags.and_then(|flags| match flags.contains(OFlags::DIRECT) {
            true => fcntl_setfl(&*target.file, flags - OFlags::DIRECT),
            false => Ok(()),
        });
        cleared.map_err(|error| format!("`{}`: clearing O_DIRECT for the body's rest failed: {error}", target.path))?;
    }
    Ok(())
}
