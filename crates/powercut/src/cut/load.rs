//! Writes all regions at once, one thread each, until one fails or the load is stopped.

use super::log::{RISK_WINDOW_MS, RegionLog};
use super::method::Method;
use super::region::{Order, Region};
use super::stamp::Stamp;
use super::writer::{Medium, Phase, Refused, Step, Writer, phase_at};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Pause of a thread that has nothing to write now.
const PAUSE: Duration = Duration::from_millis(1);
/// Pause between the epochs of a region that is written once only, so that it lasts.
const APPEND_PAUSE: Duration = Duration::from_millis(5);
/// Methods that flush and methods that use FUA write in turn for this time, in ms.
const TURN_MS: u64 = 2_000;
/// Most writes of an epoch.
const EPOCH_MAX: u64 = 64;

/// A region and how it is written.
pub type Part = (Region, Box<dyn Medium + Send>);

/// One region of a load.
struct Shared {
    region: Region,
    log: Mutex<RegionLog>,
    /// Writes beyond this number are not begun.
    limit: AtomicU64,
}

/// A load that runs.
pub struct Load {
    began: Instant,
    stop: Arc<AtomicBool>,
    shared: Vec<Arc<Shared>>,
    threads: Vec<JoinHandle<Option<Refused>>>,
}

/// A load that has ended.
#[derive(Debug)]
pub struct Ended {
    /// Each region with what was acknowledged.
    pub logs: Vec<(Region, RegionLog)>,
    /// The errors, at most one of each region.
    pub errors: Vec<Refused>,
    /// The time of the last acknowledgement after the begin, in ms.
    pub end_ms: u64,
    /// The phase in which it ended.
    pub phase: Phase,
}

impl Ended {
    /// Returns the time before which acknowledged writes of a method were not at risk, in ms: long before the end, or, with FUA, before
    /// the last flush of another method.
    pub fn safe_ms(&self, method: Method) -> u64 {
        safe_ms(&self.logs, self.end_ms, method)
    }
}

/// Returns [`Ended::safe_ms`] of logs whose last acknowledgement was at `end_ms`.
pub fn safe_ms(logs: &[(Region, RegionLog)], end_ms: u64, method: Method) -> u64 {
    let flushes = logs.iter().filter(|(region, _)| region.method.flushes() == Some(true));
    let flushed = flushes.map(|(_, log)| log.last_ms()).max().unwrap_or(0);
    let early = end_ms.saturating_sub(RISK_WINDOW_MS);
    if method.flushes() == Some(false) { early.max(flushed) } else { early }
}

impl Load {
    /// Begins to write. No region is written beyond its `limit` until [`Load::permit`].
    pub fn start(stamp: Stamp, parts: Vec<Part>, limit: impl Fn(&Region) -> u64) -> Self {
        let (began, stop) = (Instant::now(), Arc::new(AtomicBool::new(false)));
        let (mut shared, mut threads) = (Vec::new(), Vec::new());
        let has = |kind| parts.iter().any(|(region, _)| region.method.flushes() == Some(kind));
        let takes_turns = has(true) && has(false);
        for (region, mut medium) in parts {
            let part = Arc::new(Shared { region, log: Mutex::default(), limit: AtomicU64::new(limit(&region)) });
            let (own, stop) = (Arc::clone(&part), Arc::clone(&stop));
            threads.push(std::thread::spawn(move || {
                let refused = write(stamp, &own, medium.as_mut(), began, takes_turns, &stop);
                // The first error ends all: what it means is found out by the caller.
                stop.fetch_or(refused.is_some(), Relaxed);
                refused
            }));
            shared.push(part);
        }
        Self { began, stop, shared, threads }
    }

    /// Returns whether an error has ended the load.
    pub fn has_failed(&self) -> bool {
        self.stop.load(Relaxed)
    }

    /// Returns the time since the begin.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Returns the last acknowledged write of each region.
    pub fn acknowledged(&self) -> Vec<u64> {
        self.shared.iter().map(|part| part.log.lock().expect("no panic").acknowledged()).collect()
    }

    /// Permits the writes of a region up to this one.
    pub fn permit(&self, index: usize, limit: u64) {
        self.shared[index].limit.store(limit, Relaxed);
    }

    /// Stops the load, and waits until each call that runs has returned.
    ///
    /// # Panics
    /// If a thread of the load has.
    pub fn finish(self) -> Ended {
        self.stop.store(true, Relaxed);
        let errors = self.threads.into_iter().filter_map(|thread| thread.join().expect("no panic")).collect();
        let logs: Vec<(Region, RegionLog)> =
            self.shared.iter().map(|part| (part.region, part.log.lock().expect("no panic").clone())).collect();
        let end_ms = logs.iter().map(|(_, log)| log.last_ms()).max().unwrap_or(0);
        Ended { logs, errors, end_ms, phase: phase_at(self.began.elapsed().as_millis() as u64) }
    }
}

/// Returns whether a method writes at this time.
fn is_turn_of(method: Method, now_ms: u64) -> bool {
    method.flushes().is_none_or(|flushes| flushes == (now_ms / TURN_MS).is_multiple_of(2))
}

fn write(
    stamp: Stamp,
    part: &Shared,
    medium: &mut dyn Medium,
    began: Instant,
    takes_turns: bool,
    stop: &AtomicBool,
) -> Option<Refused> {
    let mut writer = Writer::new(stamp, part.region);
    let mut now_ms = || began.elapsed().as_millis() as u64;
    while !stop.load(Relaxed) {
        let waits = part.log.lock().expect("no panic").issued() + EPOCH_MAX > part.limit.load(Relaxed);
        if waits || (takes_turns && !is_turn_of(part.region.method, now_ms())) {
            std::thread::sleep(PAUSE);
            continue;
        }
        let phase = match (part.region.order, phase_at(now_ms())) {
            (Order::Append, Phase::Burst | Phase::AfterBurst) => Phase::Steady,
            (_, phase) => phase,
        };
        match writer.step(medium, phase, &part.log, &mut now_ms) {
            Ok(Step::Written(_)) if part.region.order == Order::Append => std::thread::sleep(APPEND_PAUSE),
            Ok(Step::Written(_)) => {}
            Ok(Step::Idle | Step::Full) => std::thread::sleep(PAUSE),
            Err(refused) => return Some(refused),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cut::lay_out;
    use std::io;

    /// Fails its nth sync, and counts the calls after it.
    struct Failing {
        syncs_left: u64,
        calls_after: Arc<AtomicU64>,
    }

    impl Medium for Failing {
        fn write(&mut self, _: u64, _: &[u8]) -> io::Result<()> {
            self.calls_after.fetch_add(u64::from(self.syncs_left == 0), Relaxed);
            Ok(())
        }

        fn sync(&mut self) -> io::Result<()> {
            self.calls_after.fetch_add(u64::from(self.syncs_left == 0), Relaxed);
            self.syncs_left = self.syncs_left.saturating_sub(1);
            if self.syncs_left == 0 { Err(io::Error::from_raw_os_error(5)) } else { Ok(()) }
        }
    }

    /// Goal: an error of a sync ends all regions, is not repeated, and what it covers is not acknowledged.
    #[test]
    fn the_first_error_of_a_sync_ends_the_load() {
        let regions = lay_out(&[Method::DirectFdatasync, Method::BufferedFsync], 4096, 64).expect("room");
        let calls_after = Arc::new(AtomicU64::new(0));
        let medium = |syncs_left| -> Box<dyn Medium + Send> {
            Box::new(Failing { syncs_left, calls_after: Arc::clone(&calls_after) })
        };
        let load =
            Load::start(Stamp { run: 1 }, vec![(regions[0], medium(7)), (regions[1], medium(u64::MAX))], |_| u64::MAX);
        while !load.has_failed() {
            std::thread::yield_now();
        }
        let ended = load.finish();
        assert_eq!((ended.errors.len(), ended.errors[0].call), (1, "the sync"));
        let log = &ended.logs[0].1;
        assert_eq!((log.epochs(), log.acknowledged() < log.issued(), calls_after.load(Relaxed)), (6, true, 0));
    }

    /// Goal: a flush of one method does not hide that FUA is ignored: both kinds write in turn, and what was flushed since is not at
    /// risk.
    #[test]
    fn methods_that_flush_and_methods_with_fua_take_turns() {
        let turn = |method: Method, ms| is_turn_of(method, ms);
        for (ms, flushes) in [(0, true), (1_999, true), (2_000, false), (3_999, false), (4_000, true)] {
            assert_eq!((turn(Method::BufferedFsync, ms), turn(Method::DirectDsync, ms)), (flushes, !flushes), "{ms}");
            assert!(turn(Method::Direct, ms));
        }
        let regions = lay_out(&[Method::DirectFdatasync, Method::DirectDsync], 4096, 64).expect("room");
        let log = |times: &[u64]| {
            let mut log = RegionLog::default();
            for ms in times {
                log.issue(log.issued() + 10);
                log.acknowledge(*ms);
            }
            log
        };
        let logs = vec![(regions[0], log(&[20_000, 31_000])), (regions[1], log(&[30_000, 32_000]))];
        let ended = Ended { logs, errors: Vec::new(), end_ms: 32_000, phase: Phase::Steady };
        assert_eq!(
            [Method::DirectFdatasync, Method::DirectDsync].map(|method| ended.safe_ms(method)),
            [22_000, 31_000]
        );
        let safe = |index: usize| ended.logs[index].1.safe_through(ended.safe_ms(ended.logs[index].0.method));
        assert_eq!([safe(0), safe(1)], [10, 10]);
    }

    /// Goal: a load does not run ahead of what it is permitted.
    #[test]
    fn a_load_waits_at_its_limit() {
        let region = lay_out(&[Method::DirectFdatasync], 4096, 64).expect("room")[0];
        let medium = Failing { syncs_left: u64::MAX, calls_after: Arc::default() };
        let load = Load::start(Stamp { run: 1 }, vec![(region, Box::new(medium))], |_| 1000);
        while load.acknowledged()[0] + EPOCH_MAX <= 1000 {
            std::thread::yield_now();
        }
        assert!(load.acknowledged()[0] <= 1000);
        load.permit(0, 2000);
        while load.acknowledged()[0] + EPOCH_MAX <= 2000 {
            std::thread::yield_now();
        }
        let ended = load.finish();
        assert!(ended.errors.is_empty() && ended.logs[0].1.issued() <= 2000);
    }
}
