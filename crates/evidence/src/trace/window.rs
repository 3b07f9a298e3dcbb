//! Time windows in which requests are traced.
//!
//! The first window is open when the measured part begins, the others lie at moments that a seed draws:
//! one in every half second, one in every second after the sixty-fourth, and so on. A window ends after
//! [`ISSUE_COUNT_ENOUGH`] requests or [`LENGTH_MAX`], whichever comes first: a quick disk is traced for a
//! few milliseconds, a slow one long enough for an I/O to begin and end within. Outside of windows the
//! tracepoints are off and cost nothing.
//!
//! Cannot see: what happens between two windows.

use super::format::{Event, Flags, Formats, Kind, What};
use super::tracefs::Instance;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU32, Ordering::Release};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Requests after which a window has seen enough.
const ISSUE_COUNT_ENOUGH: usize = 384;
/// Requests kept of a window; it ends before the first that is not.
const KEPT_MAX: usize = 1024;
/// The longest window.
const LENGTH_MAX: Duration = Duration::from_millis(300);
/// The first look whether a window has seen enough comes after this; each further one after twice as long.
const LOOK_FIRST: Duration = Duration::from_millis(2);
/// In each such span there is one window.
const PERIOD: Duration = Duration::from_millis(500);
/// After so many windows the span doubles, so that what is kept of long runs stays small.
const PERIOD_DOUBLES_EVERY: u32 = 64;

/// One request, from its issue to the driver to its completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) device: u32,
    /// First byte and the byte after the last, from the beginning of the disk.
    pub(crate) begin: u64,
    pub(crate) end: u64,
    pub(crate) flags: Flags,
    /// True if a thread of this process issued it.
    pub(crate) is_own: bool,
    /// Its name, by its place in [`Window::names`].
    pub(crate) name: u16,
    pub(crate) issued_ns: u64,
    /// `u64::MAX` if the window ended before.
    pub(crate) completed_ns: u64,
    pub(crate) has_failed: bool,
}

/// What was traced in one span.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Window {
    /// From 1.
    pub(crate) number: u32,
    /// Between these times every request of the disks is known.
    pub(crate) begin_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) lost_count: u64,
    /// In the order of their issue.
    pub(crate) requests: Vec<Request>,
    pub(crate) names: Vec<String>,
}

/// `CLOCK_MONOTONIC`, in nanoseconds: the clock that the instance uses, too.
pub(crate) fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// CPU time of the calling thread.
pub(crate) fn thread_cpu_ns() -> u64 {
    let spent = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    spent.tv_sec as u64 * 1_000_000_000 + spent.tv_nsec as u64
}

impl Window {
    /// Sorts the events of all processors and joins each issue with its completion.
    pub(crate) fn of(number: u32, span: (u64, u64), mut events: Vec<Event>, own: &OwnThreads) -> Self {
        let mut window = Self { number, begin_ns: span.0, end_ns: span.1, ..Self::default() };
        events.sort_by_key(|event| event.at_ns);
        let mut open: HashMap<(u32, u64, Kind), Vec<usize>> = HashMap::new();
        let mut names: HashMap<[u8; 16], u16> = HashMap::new();
        for event in events {
            // A flush has no place; its answer names the highest sector there is.
            let begin = if event.flags.kind == Kind::Flush { 0 } else { event.sector.saturating_mul(512) };
            let key = |begin| (event.device, begin, event.flags.kind);
            match event.what {
                What::Issue { pid, comm } => {
                    if window.requests.len() >= KEPT_MAX {
                        window.end_ns = window.end_ns.min(event.at_ns);
                        continue;
                    }
                    let name = *names.entry(comm).or_insert_with(|| {
                        window.names.push(name_of(&comm));
                        (window.names.len() - 1) as u16
                    });
                    open.entry(key(begin)).or_default().push(window.requests.len());
                    window.requests.push(Request {
                        device: event.device,
                        begin,
                        end: begin.saturating_add(u64::from(event.sector_count) * 512),
                        flags: event.flags,
                        is_own: own.has(pid, &window.names[usize::from(name)]),
                        name,
                        issued_ns: event.at_ns,
                        completed_ns: u64::MAX,
                        has_failed: false,
                    });
                }
                What::Complete { error } => {
                    let Some(same) = open.remove(&key(begin)) else { continue };
                    let until = begin.saturating_add(u64::from(event.sector_count) * 512);
                    // Which of several requests of the same range (or flushes) was answered cannot be told:
                    // the answer is taken for all of them.
                    let is_whole = same.iter().any(|&index| window.requests[index].end == until);
                    for index in same {
                        let request = &mut window.requests[index];
                        if request.end == until {
                            request.has_failed |= error != 0;
                            request.completed_ns = event.at_ns;
                        } else if is_whole {
                            open.entry(key(begin)).or_default().push(index);
                        } else {
                            // A part was answered; the rest goes on at the next sector.
                            request.has_failed |= error != 0;
                            open.entry(key(until)).or_default().push(index);
                        }
                    }
                }
            }
        }
        window
    }

    pub(crate) fn length_ns(&self) -> u64 {
        self.end_ns.saturating_sub(self.begin_ns)
    }
}

fn name_of(comm: &[u8; 16]) -> String {
    let end = comm.iter().position(|&byte| byte == 0).unwrap_or(comm.len());
    String::from_utf8_lossy(&comm[..end]).into_owned()
}

/// The threads of this process.
#[derive(Debug, Default)]
pub(crate) struct OwnThreads {
    threads: BTreeSet<i32>,
    names: BTreeSet<String>,
    /// The trace gives the numbers of the first namespace; in another one, names must do.
    has_numbers: bool,
}

/// Whether threads are known to us by the numbers that the kernel's trace gives: those of the first
/// namespace of processes.
pub(crate) fn has_the_kernels_numbers() -> bool {
    /// The number of the first namespace, which never changes.
    const FIRST: u64 = 0xEFFF_FFFC;
    let found = std::fs::metadata("/proc/self/ns/pid");
    found.is_ok_and(|found| std::os::unix::fs::MetadataExt::ino(&found) == FIRST)
}

impl OwnThreads {
    fn look(&mut self) {
        self.has_numbers = has_the_kernels_numbers();
        let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return };
        for task in tasks.flatten() {
            if self.has_numbers {
                self.threads.extend(task.file_name().to_str().and_then(|name| name.parse::<i32>().ok()));
            } else if let Ok(name) = std::fs::read_to_string(task.path().join("comm")) {
                self.names.insert(name.trim_end().to_owned());
            }
        }
    }

    fn has(&self, pid: i32, name: &str) -> bool {
        if self.has_numbers { self.threads.contains(&pid) } else { self.names.contains(name) }
    }
}

/// When the window after `number` begins, since the first.
fn begin_of(number: u32, seed: u64) -> Duration {
    let doubled = number / PERIOD_DOUBLES_EVERY;
    let period = PERIOD * 2u32.pow(doubled.min(20));
    let mut begin = Duration::ZERO;
    for earlier in 0..doubled {
        begin += PERIOD * 2u32.pow(earlier.min(20)) * PERIOD_DOUBLES_EVERY;
    }
    begin += period * (number % PERIOD_DOUBLES_EVERY);
    // splitmix64: any good mixture does.
    let mut mixed = seed.wrapping_add(u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    let share = ((mixed ^ (mixed >> 31)) >> 11) as f64 / (1u64 << 53) as f64;
    begin + (period - LENGTH_MAX.min(period)).mul_f64(share)
}

/// Handle of the thread that opens and closes windows.
#[derive(Debug)]
pub(crate) struct Sampler {
    thread: JoinHandle<(Vec<Window>, u64, Instance)>,
    stop: Arc<Stop>,
}

/// A signal that ends the wait of another thread.
#[derive(Debug, Default)]
pub(crate) struct Stop {
    is_set: Mutex<bool>,
    changed: Condvar,
}

impl Stop {
    /// Ends every wait, those to come as well.
    pub(crate) fn set(&self) {
        *self.is_set.lock().expect("nobody panics while holding it") = true;
        self.changed.notify_all();
    }

    /// Waits for `length`; true if it was stopped.
    pub(crate) fn wait(&self, length: Duration) -> bool {
        let is_set = self.is_set.lock().expect("nobody panics while holding it");
        let waited = self.changed.wait_timeout_while(is_set, length, |is_set| !*is_set);
        *waited.expect("nobody panics while holding it").0
    }
}

impl Sampler {
    /// Opens the first window and returns. `number` becomes its number, and 0 whenever none is open.
    ///
    /// # Errors
    /// The tracing could not be begun, or no thread be made.
    pub(crate) fn begin(mut instance: Instance, formats: Formats, number: Arc<AtomicU32>) -> Result<Self, String> {
        let seed = u64::from(std::process::id()) ^ monotonic_ns();
        instance.enable()?;
        let begin_ns = monotonic_ns();
        number.store(1, Release);
        let stop = Arc::new(Stop::default());
        let mut tracer = Tracer { instance, formats, number, stop: Arc::clone(&stop), own: OwnThreads::default() };
        let body = move || {
            let windows = tracer.windows(begin_ns, seed);
            (windows, thread_cpu_ns(), tracer.instance)
        };
        let thread = std::thread::Builder::new().name("trace".to_owned()).stack_size(256 << 10).spawn(body);
        Ok(Self { thread: thread.map_err(|error| format!("cannot start the tracing thread: {error}"))?, stop })
    }

    /// Closes the last window; all of them, the thread's CPU time in nanoseconds, and the instance.
    pub(crate) fn end(self) -> Result<(Vec<Window>, u64, Instance), String> {
        self.stop.set();
        self.thread.join().map_err(|_| "the tracing thread panicked; this is a bug of trueio".to_owned())
    }
}

struct Tracer {
    instance: Instance,
    formats: Formats,
    number: Arc<AtomicU32>,
    stop: Arc<Stop>,
    own: OwnThreads,
}

impl Tracer {
    fn windows(&mut self, mut begin_ns: u64, seed: u64) -> Vec<Window> {
        let began = Instant::now();
        let mut windows = Vec::new();
        for number in 1.. {
            let (window, is_stopped) = self.window(number, begin_ns);
            windows.push(window);
            if is_stopped || self.stop.wait(begin_of(number, seed).saturating_sub(began.elapsed())) {
                break;
            }
            if self.instance.enable().is_err() {
                break;
            }
            begin_ns = monotonic_ns();
            self.number.store(number + 1, Release);
        }
        windows
    }

    /// Follows an open window to its end, and closes it. True if everything is to end.
    fn window(&mut self, number: u32, begin_ns: u64) -> (Window, bool) {
        let began = Instant::now();
        let mut events = Vec::new();
        let mut complete = CompleteSpan::new(self.instance.room());
        let mut look = LOOK_FIRST;
        let is_stopped = loop {
            let is_stopped = self.stop.wait(look.min(LENGTH_MAX.saturating_sub(began.elapsed())));
            look *= 2;
            if is_stopped || began.elapsed() >= LENGTH_MAX {
                break is_stopped;
            }
            self.read(&mut events, &mut complete);
            let has_enough = events.iter().filter(|event| matches!(event.what, What::Issue { .. })).count();
            if complete.lost_count > 0 || has_enough >= ISSUE_COUNT_ENOUGH {
                break false;
            }
        };
        self.number.store(0, Release);
        let end_ns = monotonic_ns();
        self.instance.disable();
        self.read(&mut events, &mut complete);
        self.own.look();
        let mut window = Window::of(number, (begin_ns, end_ns.min(complete.until_ns)), events, &self.own);
        window.lost_count = complete.lost_count;
        (window, is_stopped)
    }

    /// Takes what is in the buffers, and then asks whether any of it was lost.
    fn read(&mut self, events: &mut Vec<Event>, complete: &mut CompleteSpan) {
        let formats = &self.formats;
        self.instance.drain(|cpu, page| {
            formats.read_page(page, |event| {
                complete.saw(cpu, event.at_ns);
                events.push(event);
            });
        });
        complete.lost(&self.instance.newly_dropped());
    }
}

/// Until when every event is known.
///
/// An event is lost when its processor's buffer is full; those that come after it was emptied again are
/// kept, so a gap may lie anywhere behind the first events that surely found room.
#[derive(Debug)]
struct CompleteSpan {
    room: usize,
    until_ns: u64,
    lost_count: u64,
    /// For each processor: events since its buffer was empty and none was lost, and the time of the last
    /// that surely found room.
    cpus: Vec<(usize, u64)>,
}

impl CompleteSpan {
    fn new(room: usize) -> Self {
        Self { room, until_ns: u64::MAX, lost_count: 0, cpus: Vec::new() }
    }

    fn saw(&mut self, cpu: usize, at_ns: u64) {
        if self.cpus.len() <= cpu {
            self.cpus.resize(cpu + 1, (0, 0));
        }
        let (count, last_ns) = &mut self.cpus[cpu];
        *count += 1;
        if *count <= self.room {
            *last_ns = at_ns;
        }
    }

    /// What each processor lost since the last time.
    fn lost(&mut self, counts: &[u64]) {
        for (cpu, count) in counts.iter().enumerate() {
            let seen = self.cpus.get(cpu).copied();
            if *count > 0 {
                self.lost_count += count;
                self.until_ns = self.until_ns.min(seen.map_or(0, |seen| seen.1));
            } else if let Some(seen) = self.cpus.get_mut(cpu) {
                seen.0 = 0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(at_ns: u64, sector: u64, sector_count: u32, rwbs: &str, what: What) -> Event {
        Event { at_ns, device: 7 << 20, sector, sector_count, flags: Flags::parse(rwbs.as_bytes()), what }
    }

    fn issue() -> What {
        let mut comm = [0; 16];
        comm[..3].copy_from_slice(b"dd\0");
        What::Issue { pid: 1, comm }
    }

    const DONE: What = What::Complete { error: 0 };

    #[test]
    fn issues_and_completions_of_several_processors_are_joined_in_the_order_of_time() {
        let events = vec![
            event(40, 8, 8, "WS", DONE),
            event(95, 24, 8, "R", DONE),
            event(70, u64::MAX, 0, "FF", DONE),
            event(10, 8, 8, "WS", issue()),
            event(50, 0, 0, "FF", issue()),
            event(90, 16, 8, "R", issue()),
            event(91, 24, 16, "R", issue()),
            event(92, 24, 8, "R", issue()),
        ];
        let window = Window::of(1, (0, 100), events, &OwnThreads::default());
        let seen: Vec<_> =
            window.requests.iter().map(|r| (r.flags.kind, r.begin, r.end, r.issued_ns, r.completed_ns)).collect();
        let never = u64::MAX;
        let expected = [
            (Kind::Write, 4096, 8192, 10, 40),
            (Kind::Flush, 0, 0, 50, 70),
            (Kind::Read, 8192, 12288, 90, never),
            (Kind::Read, 12288, 20480, 91, never),
            (Kind::Read, 12288, 16384, 92, 95),
        ];
        assert_eq!(seen, expected);
        assert_eq!(window.names, ["dd"]);
    }

    #[test]
    fn a_request_answered_in_parts_is_complete_with_its_last_part() {
        let events = vec![event(10, 0, 16, "R", issue()), event(20, 0, 8, "R", DONE), event(30, 8, 8, "R", DONE)];
        let window = Window::of(1, (0, 100), events, &OwnThreads::default());
        assert_eq!(window.requests.len(), 1);
        assert_eq!(window.requests[0].completed_ns, 30);
    }

    #[test]
    fn a_window_that_saw_more_than_it_keeps_ends_before_the_first_that_it_does_not_keep() {
        let events = (0..KEPT_MAX as u64 + 10).map(|i| event(i, i * 8, 8, "R", issue())).collect();
        let window = Window::of(1, (0, 5_000), events, &OwnThreads::default());
        assert_eq!((window.requests.len(), window.end_ns), (KEPT_MAX, KEPT_MAX as u64));
    }

    #[test]
    fn after_a_loss_only_what_surely_found_room_before_it_is_known() {
        let mut complete = CompleteSpan::new(2);
        [10, 20, 30].into_iter().for_each(|at_ns| complete.saw(0, at_ns));
        complete.saw(1, 15);
        complete.lost(&[0, 0]);
        assert_eq!((complete.until_ns, complete.lost_count), (u64::MAX, 0));
        // The buffer was emptied, filled up at some moment after 50, and took events again when it was read.
        [40, 50, 90].into_iter().for_each(|at_ns| complete.saw(0, at_ns));
        complete.saw(1, 95);
        complete.lost(&[7, 0]);
        assert_eq!((complete.until_ns, complete.lost_count), (50, 7));
        complete.lost(&[0, 0, 1]);
        assert_eq!((complete.until_ns, complete.lost_count), (0, 8));
    }

    #[test]
    fn windows_do_not_overlap_and_grow_rarer_with_the_length_of_the_run() {
        for seed in [0, 1, 99] {
            let begins: Vec<Duration> = (1..700).map(|number| begin_of(number, seed)).collect();
            for pair in begins.windows(2) {
                assert!(pair[1] >= pair[0] + LENGTH_MAX, "{pair:?}");
            }
            assert!(begins[0] >= PERIOD, "the second window does not follow the first at once");
            assert!(begins[600] > Duration::from_secs(3600), "{:?}", begins[600]);
        }
    }
}
