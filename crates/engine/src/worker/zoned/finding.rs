//! What a job finds to read or to trim in zones: in the zone that was asked for, in others, in its other files.
//!
//! If there is nothing, it waits as long as a worker that writes is there, and ends when none is.

use super::{Found, Zoned};
use crate::clock::Clock;
use crate::engines::Engine;
use crate::request::Request;
use crate::worker::{Wait, Worker};
use trueio_model::OpKind;

/// How long a job that finds nothing waits before it looks again, in nanoseconds.
const LOOK_AGAIN_NS: u64 = 1_000_000;

impl<E: Engine, C: Clock> Worker<'_, E, C> {
    /// Reads of the request's file, or of the next that holds something.
    pub(super) fn place_read(&mut self, zoned: &mut Zoned, request: &mut Request) -> Found {
        let asked = request.file;
        for file in zoned.files_from(asked) {
            request.file = file;
            match self.place_read_in_file(zoned, request) {
                Found::Nothing => {}
                // The only one that was at its end is asked for again, after those that hold something.
                Found::Over if !zoned.has_found => {}
                found => return found,
            }
        }
        request.file = asked;
        if zoned.is_mixed {
            // Nothing was written yet: the job begins with that.
            request.op = OpKind::Write;
            return self.place_write(zoned, request);
        }
        // Whatever is written while it waits is read in a pass of its own.
        zoned.files.iter_mut().filter(|_| !zoned.has_found).for_each(|file| file.cursors[0].pass = 0);
        Found::Nothing
    }

    fn place_read_in_file(&mut self, zoned: &mut Zoned, request: &mut Request) -> Found {
        let length = u64::from(request.length);
        let file = &mut zoned.files[usize::from(request.file)];
        if zoned.is_random {
            let zone = file.map.number_at(request.offset).clamp(file.zones.start, file.zones.end - 1);
            let Some(range) = file.map.next_readable(zone, &file.zones, length, &file.view) else {
                return Found::Nothing;
            };
            let places = (range.end - range.start - length) / zoned.unit + 1;
            let at = request.offset % zoned.plan.zone_bytes / zoned.unit % places;
            let placed = Request { offset: range.start + at * zoned.unit, ..*request };
            if zoned.is_ordered && self.overlaps_in_flight(&placed) {
                return Found::Wait(Wait::Everything);
            }
            *request = placed;
            return Found::Placed;
        }
        for _ in 0..=file.zones.len() {
            let cursor = &mut file.cursors[0];
            if cursor.pass >= zoned.passes_max {
                return Found::Over;
            }
            let range = file.map.readable(cursor.zone, &file.view);
            let at = if cursor.is_entered { cursor.at } else { range.start };
            if at + length <= range.end {
                let placed = Request { offset: at, ..*request };
                if zoned.is_ordered && self.overlaps_in_flight(&placed) {
                    return Found::Wait(Wait::Everything);
                }
                *request = placed;
                (cursor.at, cursor.is_entered) = (at + length, true);
                return Found::Placed;
            }
            cursor.advance(&file.zones, zoned.plan.skip_zones);
        }
        Found::Nothing
    }

    /// Trims a zone of the request's file, or of the next that has one to trim.
    pub(super) fn place_trim(&mut self, zoned: &mut Zoned, request: &mut Request) -> Found {
        let asked = request.file;
        for file in zoned.files_from(asked) {
            request.file = file;
            match place_trim_in_file(zoned, request) {
                Found::Nothing => {}
                found => return found,
            }
        }
        request.file = asked;
        Found::Nothing
    }

    /// Nothing could be read or trimmed: waits if somebody who may write was there before it was looked.
    pub(super) fn wait_or_end(&mut self, zoned: &mut Zoned, request: &Request, has_writers: bool) -> Wait {
        let path = self.plan_path(request.file);
        if has_writers {
            if !std::mem::replace(&mut zoned.has_waited, true) {
                self.notes.push(format!("at times no zone of `{path}` held data to {}: the job waited", request.op));
            }
            return Wait::Until(self.clock.now() + self.clock.to_ticks(LOOK_AGAIN_NS));
        }
        let source = zoned.files[usize::from(request.file)].map.source();
        if !zoned.has_found {
            self.fatal.get_or_insert(format!(
                "no zone of `{path}` holds data to {}, as far as the write pointers tell ({source}); write it first, in \
                 a job before with `stonewall`, or read anywhere with `read_beyond_wp`",
                request.op,
            ));
        } else if request.op == OpKind::Trim {
            self.notes.push(format!("the job ended when no zone of `{path}` held data to trim any more"));
        } else {
            self.fatal.get_or_insert(format!(
                "no zone of `{path}` holds data to read any more ({source}), and nobody writes: other jobs reset or \
                 trimmed what there was"
            ));
        }
        self.end_in_zones();
        Wait::Everything
    }
}

fn place_trim_in_file(zoned: &mut Zoned, request: &mut Request) -> Found {
    let file = &mut zoned.files[usize::from(request.file)];
    let mut taken = Ok(None);
    if zoned.is_random {
        let zone = file.map.number_at(request.offset).clamp(file.zones.start, file.zones.end - 1);
        taken = file.map.take(zoned.member, zone, &file.zones, false);
    } else {
        for _ in 0..=file.zones.len() {
            let cursor = &mut file.cursors[2];
            if cursor.pass >= zoned.passes_max {
                return if zoned.has_found { Found::Over } else { Found::Nothing };
            }
            taken = file.map.take(zoned.member, cursor.zone, &(cursor.zone..cursor.zone + 1), true);
            if taken.is_ok() {
                cursor.advance(&file.zones, zoned.plan.skip_zones);
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
        Err(by_oneself) => return Found::Wait(if by_oneself { Wait::Everything } else { Wait::Flow }),
    };
    let bounds = file.map.bounds(number);
    request.offset = bounds.start;
    request.length = (bounds.end - bounds.start) as u32;
    Found::Placed
}
