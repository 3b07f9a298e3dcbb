//! After the last I/O: sync calls at the end, verification, and the report.

use super::Worker;
use super::supply::SOURCE_WAIT_BUSY;
use super::usage::{thread_usage, usage_between};
use crate::batch::ADAPTED_BATCH_MAX;
use crate::clock::Clock;
use crate::engines::Engine;
use crate::recorder::WorkerReport;
use crate::request::Request;
use std::mem::ManuallyDrop;
use trueio_model::{OpKind, SyncMode, error_line};

impl<E: Engine, C: Clock> Worker<'_, E, C> {
    #[expect(clippy::too_many_lines, reason = "until it is split")]
    pub(super) fn finish(mut self, mut last: u64) -> WorkerReport {
        let plan = self.context.plan;
        // A job that had nothing in flight at its end was measured until then all the same.
        last = last.max(self.ended);
        let flush = plan.flush;
        for (is_asked_for, data_only) in [(flush.end_fdatasync, true), (flush.end_fsync || flush.fsync_on_close, false)]
        {
            for file in 0..self.context.files.len().max(1) {
                if is_asked_for && self.fatal.is_none() {
                    let request = Request { op: OpKind::Sync, file: file as u16, data_only, ..Request::NONE };
                    last = self.sync_now(&request);
                }
            }
        }
        if !self.is_ramping && last >= self.row_from {
            let end_ns = self.clock.to_ns(last - self.measured_from);
            let span_ns = self.clock.to_ns(last - self.row_from);
            self.keep_guard(end_ns);
            self.recorder.end_interval(end_ns, span_ns, self.context.progress);
        }
        if self.is_ramping {
            self.recorder.reset();
            if self.fatal.is_none() && !self.was_stopped {
                self.fatal = Some("the job ended within its ramp: nothing was measured".to_owned());
            }
        }
        self.context.end_others(self.fatal.is_some() || self.has_failures());
        if let Some(zoned) = &mut self.zoned {
            zoned.leave();
        }
        // Nobody judges or waits for what comes now.
        (self.spans, self.share, self.locks) = (None, None, None);
        let usage = thread_usage();
        self.flush_logs();
        self.give_last(last);
        self.context.finished(self.fatal.is_some() || self.has_failures());
        let backlog_count = match &mut self.calendar {
            // What comes after the job's last I/O was never due.
            Some(calendar) if !self.is_exhausted => {
                let until = last.min(self.deadline);
                let taken = u64::from(self.pending_due.is_some_and(|due| due < until));
                let until_ns = self.clock.to_ns(until.saturating_sub(self.started));
                taken + calendar.backlog(until_ns, |op| self.generator.mean_size_bytes(op))
            }
            None if self.is_paced && !self.is_exhausted => {
                let until = last.min(self.deadline);
                let until_ns = self.clock.to_ns(until.saturating_sub(self.started));
                let (at, filled) = (self.block_at as usize, self.block_end as usize);
                self.generator.replay().map_or(0, |replay| replay.backlog(at, filled, until_ns))
            }
            _ => 0,
        };
        let wrote = self.write_sequence > 0;
        if (plan.sync != SyncMode::None || plan.write_flags.dsync) && self.in_flight() == 0 {
            // Each write was durable when it ended, and all have ended.
            self.note_synced();
        }
        if let Some(verifier) = self.verifier.as_ref().filter(|verifier| wrote && verifier.plan.saves_state) {
            let state = verifier.state(plan, self.context.worker, self.issued());
            self.notes.push(state.save(&plan.verify_state_file(self.context.worker), self.context.host.create_file));
        }
        let can_verify = self.fatal.is_none() && !self.has_failures() && !self.was_stopped;
        if wrote
            && can_verify
            && !self.has_given_up()
            && let Err(error) = self.verify_written()
        {
            self.fatal = Some(error_line(&error));
        }
        if wrote && can_verify && plan.source.as_ref().is_some_and(|source| source.is_verified) {
            self.verify_against_source();
        }
        let has_lost_ios = self.in_flight() > 0;
        let elapsed_ns = if self.is_ramping { 0 } else { self.clock.to_ns(last.saturating_sub(self.measured_from)) };
        let mut engine_notes = self.engine.notes();
        engine_notes.append(&mut self.notes);
        // What was compared.
        self.flush_logs();
        let waited_ns =
            self.log.take().map_or(0, |log| log.waited_ns) + self.iolog.take().map_or(0, |log| log.waited_ns);
        if waited_ns > 0 {
            engine_notes.push(format!(
                "logs were written more slowly than I/O was done: the worker waited {} ms for them, between I/Os",
                waited_ns.div_ceil(1_000_000)
            ));
        }
        if self.sharing.count > 0 {
            engine_notes.push(format!(
                "reads that were complete when io_uring_enter returned (page cache) were handed over up to \
                 {ADAPTED_BATCH_MAX} at a time, each counted with its part of the call, or with all of a call that took \
                 more than twice the usual, so one of up to nine times the usual may hide among them; iodepth_batch = 1 times each alone"
            ));
        }
        if self.supply.is_some() && self.slots.len() > 1 {
            engine_notes.push(format!(
                "while the source was waited for, completions were looked for every {} µs: latencies may be that \
                 much too long",
                SOURCE_WAIT_BUSY.as_micros()
            ));
        }
        engine_notes.extend(self.search.as_ref().map(|search| search.sentence()));
        let source_wait_ns = self.supply.as_ref().map_or(0, |supply| self.clock.to_ns(supply.waited));
        let queue = (!E::BLOCKS).then_some(self.recorder.queue);
        let (ops, series, pacing_lateness) = self.recorder.finish(!E::BLOCKS);
        // The engine goes first: it may hold registrations of the pool's memory.
        drop(self.engine);
        if !has_lost_ios {
            ManuallyDrop::into_inner(self.pool);
        }
        WorkerReport {
            ops,
            series,
            elapsed_ns,
            pacing_lateness,
            backlog_count,
            threads: usage_between(&self.usage_from, &usage, elapsed_ns),
            queue,
            failures: self.failures,
            verify_failures: self.verify_failures,
            verified_block_count: self.verified_block_count,
            verify_failure_count: self.verify_failure_count,
            read_back: self.reading_back.and_then(|reading| reading.into_counts(!E::BLOCKS)),
            samples: self.samples.into_kept(),
            source_wait_ns,
            depth_search: self.search.map(|search| search.result()),
            criterion: None,
            zones: self.zoned.map(|zoned| zoned.record()),
            engine_notes,
            fatal: self.fatal,
            was_stopped: self.was_stopped,
        }
    }
}
