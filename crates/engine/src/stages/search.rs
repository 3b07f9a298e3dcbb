//! Looks for the highest queue depth at which latencies stay within a target (`latency_target`).
//!
//! A depth is tried for a window. Of the I/Os that were issued and completed in it a share must keep the target; the
//! next depth is half way between the highest that is known to keep it and the lowest that is known not to, and the
//! first is the job's own, as in fio. When these two are neighbours, the search is over: the job ends, or goes on and
//! keeps the depth until it is not kept any more.
//!
//! Cannot: know a depth better than a window shows it. A window in which not a single I/O was issued and completed
//! is longer.

use super::{Done, Hooks, Stage};
use crate::clock::Clock;
use crate::context::WorkerContext;
use crate::recorder::WorkerReport;
use crate::view::View;
use trueio_model::{DepthSearch, DepthWindow, LatencyTarget, units};

/// Windows that are kept.
const WINDOWS_MAX: usize = 64;
/// Windows in a row that keep the target before a job that goes on tries a deeper queue again.
const KEPT_BEFORE_DEEPER: u32 = 5;

/// A search, in clock ticks.
#[derive(Debug)]
pub(crate) struct Search {
    plan: LatencyTarget,
    target: u64,
    window: u64,
    depth_max: u32,
    /// The highest depth that is known to keep the target; 0: none.
    kept: u32,
    /// The highest depth that is not known to miss it; 0: not even one I/O at a time keeps it.
    possible: u32,
    depth: u32,
    /// The lowest depth that missed the target, since it was last known to be kept; 0: none.
    missed: u32,
    /// The most that was in flight in the present window, and in the last one that kept the target.
    deepest: u32,
    deepest_kept: u32,
    from: u64,
    /// When the present window is judged.
    pub(crate) end: u64,
    io_count: u64,
    late_count: u64,
    /// Windows that kept the target since the search was over.
    kept_in_a_row: u32,
    is_found: bool,
    window_count: u64,
    windows: Vec<DepthWindow>,
}

impl Search {
    pub(crate) fn stage<'a>(context: &WorkerContext<'_>, clock: &dyn Clock) -> Option<Box<dyn Stage + 'a>> {
        let plan = context.plan.control.latency_target?;
        Some(Box::new(Self::new(plan, context.plan.queue.depth, clock)))
    }

    fn new(plan: LatencyTarget, depth_max: u32, clock: &dyn Clock) -> Self {
        Self {
            plan,
            target: clock.to_ticks(plan.target_ns),
            window: clock.to_ticks(plan.window_ns).max(1),
            depth_max,
            kept: 0,
            possible: depth_max,
            depth: depth_max,
            missed: 0,
            deepest: 0,
            deepest_kept: 0,
            from: u64::MAX,
            end: u64::MAX,
            io_count: 0,
            late_count: 0,
            kept_in_a_row: 0,
            is_found: false,
            window_count: 0,
            windows: Vec::with_capacity(WINDOWS_MAX),
        }
    }

    /// A window begins at `now`.
    pub(crate) fn begin(&mut self, now: u64) {
        (self.from, self.end) = (now, now.saturating_add(self.window));
        (self.io_count, self.late_count, self.deepest) = (0, 0, 0);
    }

    /// I/Os in flight.
    pub(crate) fn saw(&mut self, in_flight: usize) {
        self.deepest = self.deepest.max(in_flight as u32);
    }

    /// Counts an I/O if the present window is all its own; true if the window is to be judged at once, because a
    /// single late I/O is too many.
    pub(crate) fn count(&mut self, issued: u64, now: u64) -> bool {
        if issued < self.from {
            return false;
        }
        let is_late = now - issued > self.target;
        self.io_count += 1;
        self.late_count += u64::from(is_late);
        if is_late && self.plan.percent >= 100.0 {
            self.end = self.end.min(now);
        }
        self.end <= now
    }

    /// Judges the window that ends at `now` and begins the next; true if the job is over, or why it cannot go on.
    fn judge(&mut self, now: u64) -> Result<bool, String> {
        if self.io_count == 0 {
            self.end = now.saturating_add(self.window);
            return Ok(false);
        }
        let kept_count = self.io_count - self.late_count;
        let is_met = kept_count as f64 * 100.0 >= self.plan.percent * self.io_count as f64;
        if self.windows.len() == WINDOWS_MAX {
            self.windows.remove(0);
        }
        let (depth, io_count, late_count) = (self.depth, self.io_count, self.late_count);
        self.windows.push(DepthWindow { depth, io_count, late_count, is_met });
        self.window_count += 1;
        if !is_met && self.depth == 1 && self.plan.percent >= 100.0 {
            let target = units::format_duration_ns(self.plan.target_ns);
            return Err(format!(
                "an I/O took longer than the `latency_target` of {target} although it was the only one in flight, and \
                 every I/O is to keep it; `latency_percentile` sets how many must"
            ));
        }
        match is_met {
            true => {
                self.deepest_kept = self.deepest;
                // Depths that missed it earlier no longer count.
                if self.missed <= self.depth {
                    self.missed = 0;
                }
            }
            false if self.missed == 0 || self.depth < self.missed => self.missed = self.depth,
            false => {}
        }
        match (self.is_found, is_met) {
            (_, true) => self.kept = self.depth,
            (false, false) => self.possible = self.depth - 1,
            // The device is slower than it was: depths that kept it before no longer count.
            (true, false) => (self.kept, self.possible, self.is_found) = (0, self.depth - 1, false),
        }
        if self.is_found {
            self.kept_in_a_row += 1;
            if self.kept_in_a_row >= KEPT_BEFORE_DEEPER && self.depth < self.depth_max {
                // Step by step: what is known to be kept is not given up for a guess.
                (self.possible, self.is_found) = (self.depth.saturating_mul(2).min(self.depth_max), false);
            }
        }
        if !self.is_found {
            self.kept_in_a_row = 0;
            self.is_found = self.kept > 0 && self.kept >= self.possible;
            self.depth = match self.is_found {
                true => self.kept,
                // Not even one I/O at a time: it is tried again.
                false if self.possible == 0 => {
                    self.possible = 1;
                    1
                }
                false => self.kept + (self.possible - self.kept).div_ceil(2),
            };
        }
        self.begin(now);
        Ok(self.is_found && !self.plan.keeps_running)
    }

    /// What was found, in a sentence.
    pub(crate) fn sentence(&self) -> String {
        let LatencyTarget { target_ns, percent, .. } = self.plan;
        let target = units::format_duration_ns(target_ns);
        let mut what = match (self.is_found, self.kept) {
            (true, kept) if kept == self.depth_max => {
                format!("the queue depth of {kept} that the job asks for keeps it")
            }
            (true, kept) if self.missed == kept + 1 => {
                format!("a queue depth of {kept} keeps it, and {} does not", self.missed)
            }
            (true, kept) => format!("a queue depth of {kept} keeps it, and a deeper queue was not tried again"),
            (false, 0) if self.window_count == 0 => "the job ended before a queue depth was judged".to_owned(),
            (false, 0) => "no queue depth that was tried keeps it".to_owned(),
            (false, kept) => format!("the job ended while it was looked for: {kept} keeps it"),
        };
        if self.kept > 0 && self.deepest_kept < self.kept {
            what += &format!(", although no more than {} were in flight at a time", self.deepest_kept);
        }
        let tried: Vec<String> =
            self.windows.iter().map(|w| format!("{} {}", w.depth, if w.is_met { "yes" } else { "no" })).collect();
        format!(
            "latency_target: {percent} % of the I/Os within {target}: {what} (windows tried: {}); the figures are of all \
             windows together",
            if tried.is_empty() { "none".to_owned() } else { tried.join(", ") }
        )
    }

    /// What was found, as a record has it.
    pub(crate) fn result(&self) -> DepthSearch {
        DepthSearch {
            depth: if self.kept > 0 { self.kept } else { self.depth },
            is_found: self.is_found,
            window_count: self.window_count,
            windows: self.windows.clone(),
        }
    }
}

impl Stage for Search {
    fn hooks(&self) -> Hooks {
        Hooks { is_issuing: false, is_completing: true, is_making_room: true }
    }

    fn measure(&mut self, now: u64, _view: &mut View<'_, '_>) {
        self.begin(now);
    }

    fn making_room(&mut self, _count: usize, _now: u64, view: &mut View<'_, '_>) {
        self.saw(view.state.queue.in_flight());
    }

    fn completed(&mut self, done: &Done, view: &mut View<'_, '_>) {
        if done.is_whole && self.count(view.state.queue.slot(done.slot).issued, done.now) {
            view.state.time.next_event = done.now;
        }
    }

    fn next_event(&self) -> u64 {
        self.end
    }

    fn at_event(&mut self, now: u64, view: &mut View<'_, '_>) {
        if now < self.end {
            return;
        }
        match self.judge(now) {
            Ok(true) => view.state.outcome.end_at(now),
            Ok(false) => {}
            Err(sentence) => {
                view.state.outcome.fatal.get_or_insert(sentence);
                view.state.outcome.end_at(now);
            }
        }
        view.state.queue.reserve = view.state.queue.depth() - self.depth as usize;
    }

    fn report(&mut self, report: &mut WorkerReport, _view: &mut View<'_, '_>) {
        report.engine_notes.push(self.sentence());
        report.depth_search = Some(self.result());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::VirtualClock;

    /// Windows of 100 ticks of a device that keeps the target up to a depth.
    fn search(
        depth_max: u32,
        keeps_running: bool,
        kept_up_to: impl Fn(u64) -> u32,
        windows: u64,
    ) -> (Search, Vec<u32>) {
        let plan = LatencyTarget { target_ns: 10, window_ns: 100, percent: 90.0, keeps_running };
        let mut search = Search::new(plan, depth_max, &VirtualClock::default());
        search.begin(0);
        let mut depths = Vec::new();
        for window in 0..windows {
            depths.push(search.depth);
            search.saw(search.depth as usize);
            let late = search.depth > kept_up_to(window);
            // One in five is late where the target is missed, one in ten where it is kept.
            for i in 0..10 {
                let took = if i == 0 || late && i == 1 { 11 } else { 10 };
                search.count(window * 100, window * 100 + took);
            }
            // I/Os issued before the window do not count.
            if let Some(before) = (window * 100).checked_sub(1) {
                search.count(before, before + 99);
            }
            if search.judge((window + 1) * 100).expect("a share is enough") {
                break;
            }
        }
        (search, depths)
    }

    #[test]
    fn the_highest_depth_that_keeps_the_target_is_found_whatever_it_is() {
        for depth_max in [1, 2, 3, 7, 32, 100] {
            for kept in 1..=depth_max {
                let (search, depths) = search(depth_max, false, |_| kept, 20);
                let result = search.result();
                assert_eq!((result.depth, result.is_found), (kept, true), "{depths:?}");
                assert_eq!(depths[0], depth_max, "the first window has the job's own depth, as in fio");
                assert!(depths.len() as u32 <= 2 + depth_max.ilog2(), "{depths:?}");
            }
        }
        let (search, depths) = search(32, false, |_| 11, 20);
        assert_eq!(depths, [32, 16, 8, 12, 10, 11]);
        assert_eq!(
            search.windows.iter().map(|w| w.is_met).collect::<Vec<_>>(),
            [false, false, true, false, true, true]
        );
    }

    /// Goal: only a depth that was tried is reported to miss the target.
    /// Method: 3 keeps it and 4 does not; then the device is faster, and the climb ends at 6 before a deeper queue is tried.
    #[test]
    fn a_depth_that_was_not_tried_is_not_reported_to_miss_the_target() {
        let (slow, _) = search(16, true, |_| 3, 9);
        assert!(slow.sentence().contains("a queue depth of 3 keeps it, and 4 does not"), "{}", slow.sentence());
        let (fast, depths) = search(16, true, |window| if window < 10 { 3 } else { 16 }, 12);
        assert!(depths.ends_with(&[5, 6]), "{depths:?}");
        assert!(fast.is_found && !fast.sentence().contains("does not"), "{}", fast.sentence());
        assert!(fast.sentence().contains("a queue depth of 6 keeps it, and a deeper"), "{}", fast.sentence());
    }

    #[test]
    fn one_io_at_a_time_that_is_too_slow_is_not_found_and_tried_again() {
        let (slow, depths) = search(8, false, |_| 0, 9);
        assert_eq!(depths, [8, 4, 2, 1, 1, 1, 1, 1, 1]);
        assert_eq!((slow.result().depth, slow.result().is_found), (1, false));
        let (later, depths) = search(8, false, |window| if window < 6 { 0 } else { 1 }, 20);
        assert_eq!((depths.len(), later.result().depth, later.result().is_found), (7, 1, true));
    }

    #[test]
    fn a_job_that_keeps_running_follows_a_device_that_becomes_slower_and_faster() {
        let (search, depths) = search(16, true, |window| [9, 3, 16, 16, 16][(window / 20) as usize], 100);
        assert_eq!(depths[4..10], [9; 6], "{depths:?}");
        assert!(depths[25..40].contains(&3) && depths[25..40].iter().all(|depth| *depth <= 6), "{depths:?}");
        assert_eq!(search.result().depth, 16, "{depths:?}");
        assert_eq!(search.result().window_count, 100);
    }

    #[test]
    fn where_every_io_must_keep_the_target_one_that_does_not_ends_its_window_and_at_depth_one_the_job() {
        let plan = LatencyTarget { target_ns: 10, window_ns: 100, percent: 100.0, keeps_running: false };
        let mut search = Search::new(plan, 2, &VirtualClock::default());
        search.begin(0);
        assert!(!search.count(0, 10));
        assert!(search.count(0, 11));
        assert_eq!((search.judge(11), search.depth, search.end), (Ok(false), 1, 111));
        assert!(search.count(11, 30));
        let sentence = search.judge(30).unwrap_err();
        assert!(sentence.contains("10 ns") && sentence.contains("latency_percentile"), "{sentence}");
    }

    #[test]
    fn windows_without_an_io_judge_nothing_and_the_last_ones_are_kept() {
        let plan = LatencyTarget { target_ns: 10, window_ns: 100, percent: 100.0, keeps_running: true };
        let mut search = Search::new(plan, 4, &VirtualClock::default());
        search.begin(0);
        assert_eq!(search.judge(100), Ok(false));
        assert_eq!((search.result().window_count, search.end, search.depth), (0, 200, 4));
        for window in 0..100 {
            search.count(search.from, search.from);
            assert_eq!(search.judge(search.end), Ok(false));
            assert_eq!(search.result().window_count, window + 1);
        }
        assert_eq!(search.result().windows.len(), WINDOWS_MAX);
    }
}
