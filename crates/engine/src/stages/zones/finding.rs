//! What a job finds to read or to trim in zones: in the requested zone, in others, in its other files.
//!
//! If there is nothing, it waits as long as a worker that writes is there, and ends when none is.

use super::{Admission, Found, Zoned, end_job, plan_path};
use crate::request::Request;
use crate::view::View;
use trueio_model::OpKind;

/// How long a job that finds nothing waits before it looks again, in nanoseconds.
const LOOK_AGAIN_NS: u64 = 1_000_000;

impl Zoned {
    /// Reads of the request's file, or of the next that holds something.
    pub(super) fn place_read(&mut self, request: &mut Request, view: &mut View<'_, '_>) -> Found {
        let asked = request.file;
        for file in self.files_from(asked) {
            request.file = file;
            match self.place_read_in_file(request, view) {
                Found::Nothing => {}
                // The only one that was at its end is tried again, after those that hold something.
                Found::Over if !self.has_found => {}
                found => return found,
            }
        }
        request.file = asked;
        if self.is_mixed {
            // Nothing was written yet: the job begins with that.
            request.op = OpKind::Write;
            return self.place_write(request, view);
        }
        // Whatever is written while it waits is read in a pass of its own.
        self.files.iter_mut().filter(|_| !self.has_found).for_each(|file| file.cursors[0].pass = 0);
        Found::Nothing
    }

    fn place_read_in_file(&mut self, request: &mut Request, view: &View<'_, '_>) -> Found {
        let length = u64::from(request.length);
        let file = &mut self.files[usize::from(request.file)];
        if self.is_random {
            let zone = file.map.number_at(request.offset).clamp(file.zones.start, file.zones.end - 1);
            let Some(range) = file.map.next_readable(zone, &file.zones, length, &file.view) else {
                return Found::Nothing;
            };
            let places = (range.end - range.start - length) / self.unit + 1;
            let at = request.offset % self.plan.zone_bytes / self.unit % places;
            let placed = Request { offset: range.start + at * self.unit, ..*request };
            if self.is_ordered && view.state.queue.overlaps(&placed) {
                return Found::Wait(Admission::Drain);
            }
            *request = placed;
            return Found::Placed;
        }
        for _ in 0..=file.zones.len() {
            let cursor = &mut file.cursors[0];
            if cursor.pass >= self.passes_max {
                return Found::Over;
            }
            let range = file.map.readable(cursor.zone, &file.view);
            let at = if cursor.is_entered { cursor.at } else { range.start };
            if at + length <= range.end {
                let placed = Request { offset: at, ..*request };
                if self.is_ordered && view.state.queue.overlaps(&placed) {
                    return Found::Wait(Admission::Drain);
                }
                *request = placed;
                (cursor.at, cursor.is_entered) = (at + length, true);
                return Found::Placed;
            }
            cursor.advance(&file.zones, self.plan.skip_zones);
        }
        Found::Nothing
    }

    /// Trims a zone of the request's file, or of the next that has one to trim.
    pub(super) fn place_trim(&mut self, request: &mut Request) -> Found {
        let asked = request.file;
        for file in self.files_from(asked) {
            request.file = file;
            match self.place_trim_in_file(request) {
                Found::Nothing => {}
                found => return found,
            }
        }
        request.file = asked;
        Found::Nothing
    }

    /// Nothing could be read or trimmed: waits if a worker that may write was there before the zones were read.
    pub(super) fn wait_or_end(&mut self, request: &Request, has_writers: bool, view: &mut View<'_, '_>) -> Admission {
        let path = plan_path(view, request.file);
        let outcome = &mut view.state.outcome;
        if has_writers {
            if !std::mem::replace(&mut self.has_waited, true) {
                outcome.notes.push(format!("at times no zone of `{path}` held data to {}: the job waited", request.op));
            }
            return Admission::Until(view.clock.now() + view.clock.to_ticks(LOOK_AGAIN_NS));
        }
        let source = self.files[usize::from(request.file)].map.source();
        let may_read_anywhere = request.op == OpKind::Read && !self.plan.reads_beyond;
        let or_anywhere = if may_read_anywhere { ", or read anywhere with `read_beyond_wp`" } else { "" };
        if !self.has_found {
            outcome.fail(format!(
                "no zone of `{path}` holds data to {}, as far as the write pointers tell ({source}); write it first, in \
                 a job before with `stonewall`{or_anywhere}",
                request.op,
            ));
        } else if request.op == OpKind::Trim {
            outcome.notes.push(format!("the job ended when no zone of `{path}` held data to trim any more"));
        } else {
            outcome.fail(format!(
                "no zone of `{path}` holds data to read any more ({source}), and no job writes: other jobs reset or \
                 trimmed what there was"
            ));
        }
        end_job(view)
    }

    fn place_trim_in_file(&mut self, request: &mut Request) -> Found {
        let file = &mut self.files[usize::from(request.file)];
        let mut taken = Ok(None);
        if self.is_random {
            let zone = file.map.number_at(request.offset).clamp(file.zones.start, file.zones.end - 1);
            taken = file.map.take(self.member, zone, &file.zones, false);
        } else {
            for _ in 0..=file.zones.len() {
                let cursor = &mut file.cursors[2];
                if cursor.pass >= self.passes_max {
                    return if self.has_found { Found::Over } else { Found::Nothing };
                }
                taken = file.map.take(self.member, cursor.zone, &(cursor.zone..cursor.zone + 1), true);
                if taken.is_ok() {
                    cursor.advance(&file.zones, self.plan.skip_zones);
                }
                // Zones without a pointer are not trimmed.
                if !matches!(taken, Ok(None)) {
                    break;
                }
            }
        }
        let number = match taken {
            Ok(Some(number)) => number,
            Ok(None) => return Found::Nothing,
            Err(by_oneself) => return Found::Wait(if by_oneself { Admission::Drain } else { Admission::Outside }),
        };
        let bounds = file.map.bounds(number);
        request.offset = bounds.start;
        request.length = (bounds.end - bounds.start) as u32;
        Found::Placed
    }
}
