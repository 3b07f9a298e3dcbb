//! When limits of control groups held while a phase is measured.
//!
//! The facts of a target have the limits from before the run. A limit that is set later, or lifted, or that of a group to which the process is
//! moved, is found by reading the files again: with each sample of the timeline, five times a second, which takes about 30 µs for version 1.
//!
//! Cannot see: a limit that comes and goes between two readings. Begin and end are known to half of the time between them, which is longer where
//! the reading thread waits for a processor; certain is only what lies between two readings that found the limit.

use trueio_device::{RateLimits, System};
use trueio_model::IoLimit;

/// More spans are not kept.
const SPAN_COUNT_MAX: usize = 64;

/// A span of the measured part in which a limit was set, in nanoseconds since that began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitSpan {
    /// The limit.
    pub limit: IoLimit,
    /// When it was set; 0 if it was set before.
    pub from_ns: u64,
    /// When it was lifted, or the last reading.
    pub until_ns: u64,
    /// The end of the first reading that found it: from here on it was set, up to `last_seen_ns`.
    pub first_seen_ns: u64,
    /// The begin of the last reading that found it; before `first_seen_ns` if that was the only one.
    pub last_seen_ns: u64,
}

/// The limits so far.
#[derive(Debug)]
pub(crate) struct LimitCourse {
    files: RateLimits,
    last_ns: u64,
    /// The limits that are set now.
    open: Vec<LimitSpan>,
    closed: Vec<LimitSpan>,
}

impl LimitCourse {
    /// Reads the limits on the devices of these names, just before the measured part.
    pub(crate) fn begin<'a>(system: &System, devices: impl IntoIterator<Item = &'a str>) -> Self {
        let files = RateLimits::of(system, devices);
        let mut course = Self { files, last_ns: 0, open: Vec::new(), closed: Vec::new() };
        course.look(|| 0);
        course
    }

    /// Reads the limits. The clock returns the nanoseconds since the measured part began.
    pub(crate) fn look(&mut self, clock: impl Fn() -> u64) {
        let at_ns = clock();
        let between_ns = self.last_ns.midpoint(at_ns);
        let mut now = self.files.now();
        let seen_ns = clock();
        for mut span in std::mem::take(&mut self.open) {
            match now.iter().position(|limit| *limit == span.limit) {
                Some(index) => {
                    now.swap_remove(index);
                    (span.until_ns, span.last_seen_ns) = (at_ns, at_ns);
                    self.open.push(span);
                }
                None => {
                    span.until_ns = between_ns;
                    self.closed.push(span);
                }
            }
        }
        let new = now.into_iter().map(|limit| LimitSpan {
            limit,
            from_ns: between_ns,
            until_ns: at_ns,
            first_seen_ns: seen_ns,
            last_seen_ns: at_ns,
        });
        self.open.extend(new);
        self.closed.truncate(SPAN_COUNT_MAX);
        self.last_ns = at_ns;
    }

    /// Returns the spans, by begin.
    pub(crate) fn end(self) -> Vec<LimitSpan> {
        let mut all = [self.closed, self.open].concat();
        all.sort_by_key(|span| span.from_ns);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::fs;

    #[test]
    fn a_limit_that_comes_and_goes_is_a_span_and_one_that_stays_is_the_whole_phase() {
        let root = tempfile::tempdir().unwrap();
        let group = root.path().join("sys/fs/cgroup/own");
        let set = |text: &str| fs::write(group.join("io.max"), text).unwrap();
        for (path, text) in [
            ("paths", ""),
            ("proc/self/mountinfo", "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
            ("proc/self/cgroup", "0::/own\n"),
            ("sys/class/block/vda/dev", "254:0\n"),
        ] {
            let place = root.path().join(path);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            fs::write(place, text).unwrap();
        }
        fs::create_dir_all(&group).unwrap();
        // Each reading takes 10 ns.
        let look = |course: &mut LimitCourse, at_ns| {
            let clock = Cell::new(at_ns);
            course.look(|| clock.replace(clock.get() + 10));
        };
        let write = "254:0 rbps=max wbps=4096 riops=max wiops=max\n";
        set(write);
        let mut course = LimitCourse::begin(&System::recorded(root.path()).unwrap(), ["vda"]);
        for (at_ns, text) in [
            (100, write),
            (200, "254:0 rbps=8192 wbps=4096 riops=max wiops=max\n"),
            (300, "254:0 rbps=8192 wbps=4096 riops=max wiops=max\n"),
            (400, write),
        ] {
            set(text);
            look(&mut course, at_ns);
        }
        // The process is moved to a group without a limit, and back.
        let other = root.path().join("sys/fs/cgroup/other");
        fs::create_dir_all(&other).unwrap();
        fs::write(other.join("io.max"), "").unwrap();
        for (at_ns, group) in [(500, "0::/other\n"), (600, "0::/own\n")] {
            fs::write(root.path().join("proc/self/cgroup"), group).unwrap();
            look(&mut course, at_ns);
        }
        let spans: Vec<_> = course
            .end()
            .into_iter()
            .map(|s| (s.limit.value, s.from_ns, s.until_ns, s.first_seen_ns, s.last_seen_ns))
            .collect();
        assert_eq!(spans, [(4096, 0, 450, 0, 400), (8192, 150, 350, 210, 300), (4096, 550, 600, 610, 600)]);
    }
}
