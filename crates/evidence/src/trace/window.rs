//! Time windows in which requests are traced.
//!
//! The first window opens when the measured part begins. The others open at random times drawn from a seed, one in every period: half
//! a second, or longer for a phase of a known length ([`period_for`]), and twice as long after the sixty-fourth, and so on. A window ends after
//! [`ISSUE_COUNT_ENOUGH`] requests or [`LENGTH_MAX`], whichever comes first: a fast disk is traced for a few
//! milliseconds, a slow one long enough for an I/O to begin and end within a window. Outside of windows the
//! tracepoints of requests are off and cost nothing.
//!
//! A window may also be asked for, when counters show that others use the disks ([`WindowRequests`]). Such a window names programs; nothing is
//! scaled by it and workers sample nothing in it, since it was not drawn.
//!
//! Cannot see: requests between two windows.

use super::format::{Event, Flags, Formats, Kind, Recorded, Submitter, What};
use super::layers::Layers;
use super::tracefs::Instance;
use super::write_back::{PageEvent, PageWindow};
use crate::peers::threads_of_peers;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Acquire, Ordering::Release};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use trueio_model::nth_mix64;

/// Number of requests after which a window may end.
const ISSUE_COUNT_ENOUGH: usize = 384;
/// Number of requests to disks below loop devices, which other programs use, too, after which a window may end.
const BELOW_COUNT_ENOUGH: usize = KEPT_MAX;
/// Maximum number of requests kept of a window; it ends before the first that is not kept.
const KEPT_MAX: usize = 1024;
/// The longest window.
const LENGTH_MAX: Duration = Duration::from_millis(300);
/// Delay before the first check whether a window has enough requests; each further delay is twice as long.
const LOOK_FIRST: Duration = Duration::from_millis(2);
/// The shortest and the longest span that contains one window, until it doubles. Two seconds, because a window costs some milliseconds of a
/// processor where tracepoints are slow to switch.
const PERIOD_MIN: Duration = Duration::from_millis(500);
const PERIOD_MAX: Duration = Duration::from_secs(2);
/// Number of windows of a phase of known length between those two limits.
const WINDOWS_PER_PHASE: u32 = 8;
/// Number of windows after which the span doubles, so that little is kept of long runs.
const PERIOD_DOUBLES_EVERY: u32 = 64;
/// Maximum number of windows that are asked for, for the same reason.
const ASKED_COUNT_MAX: u32 = 64;

/// One request, from its issue to the driver to its completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Request {
    pub(crate) device: u32,
    /// First byte and the byte after the last, as disk offsets.
    pub(crate) begin: u64,
    pub(crate) end: u64,
    pub(crate) flags: Flags,
    /// True if a thread of this process submitted it.
    pub(crate) is_own: bool,
    /// True if another rank of this run did, on this machine.
    pub(crate) is_rank: bool,
    /// True if a thread of the kernel did, for another one.
    pub(crate) is_kernel: bool,
    /// The thread that put it into the scheduler, or issued it where there is none; 0 if its number is of another PID namespace.
    pub(crate) process: i32,
    /// Index of its name in [`Window::names`], or in [`Window::below_names`].
    pub(crate) name: u16,
    /// When it entered the I/O scheduler; when it was first issued, if there is none.
    pub(crate) queued_ns: u64,
    /// When it was first passed to the driver.
    pub(crate) issued_ns: u64,
    /// When it was last passed to the driver: later than the first time if the driver had no room.
    pub(crate) dispatched_ns: u64,
    /// True while the driver has returned it.
    pub(crate) is_requeued: bool,
    /// `u64::MAX` if the window ended before it completed.
    pub(crate) completed_ns: u64,
    pub(crate) has_failed: bool,
}

/// A hop of an I/O: a device that has no queue passes it on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Remap {
    pub(crate) at_ns: u64,
    pub(crate) kind: Kind,
    /// The thread that passed it on.
    pub(crate) process: i32,
    /// The device above, and the first byte there.
    pub(crate) from_device: u32,
    pub(crate) from_begin: u64,
    pub(crate) length: u64,
    /// The device below, and the first byte there.
    pub(crate) device: u32,
    pub(crate) begin: u64,
}

/// The requests traced in one window.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Window {
    /// Number of the window, from 1; 0 if it was asked for.
    pub(crate) number: u32,
    /// True if it was not drawn, but asked for.
    pub(crate) is_asked: bool,
    /// Between these times every request of the disks is known.
    pub(crate) begin_ns: u64,
    pub(crate) end_ns: u64,
    pub(crate) lost_count: u64,
    /// How often a driver without room returned a request.
    pub(crate) requeue_count: u64,
    /// In the order of the first issue.
    pub(crate) requests: Vec<Request>,
    pub(crate) names: Vec<String>,
    /// In the order of time.
    pub(crate) remaps: Vec<Remap>,
    /// Requests of disks below loop devices, in the order of the first issue.
    pub(crate) below: Vec<Request>,
    /// Their names.
    pub(crate) below_names: Vec<String>,
    /// Until this time all of them are known.
    pub(crate) below_until_ns: u64,
    /// Dirty pages of other programs, and files that the kernel wrote back.
    pub(crate) pages: PageWindow,
}

/// Returns `CLOCK_MONOTONIC`, in nanoseconds: the instance uses the same clock.
pub(crate) fn monotonic_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Returns the CPU time of the calling thread.
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
        // Requests in the scheduler that were not issued yet.
        let mut queued: HashMap<(u32, u64, Kind), (u64, Submitter)> = HashMap::new();
        let mut names: HashMap<[u8; 16], u16> = HashMap::new();
        for event in events {
            // A flush has no position; its completion has the highest possible sector.
            let begin = if event.flags.kind == Kind::Flush { 0 } else { event.sector.saturating_mul(512) };
            let key = |begin| (event.device, begin, event.flags.kind);
            let end = begin.saturating_add(u64::from(event.sector_count) * 512);
            match event.what {
                What::Insert(by) => drop(queued.insert(key(begin), (event.at_ns, by))),
                What::Remap { pid, from_device, from_sector } => window.remaps.push(Remap {
                    at_ns: event.at_ns,
                    kind: event.flags.kind,
                    process: pid,
                    from_device,
                    from_begin: from_sector.saturating_mul(512),
                    length: end - begin,
                    device: event.device,
                    begin,
                }),
                What::Requeue => {
                    let requests = &mut window.requests;
                    let same = open.get(&key(begin)).into_iter().flatten();
                    let found = same.copied().find(|&index| requests[index].end == end && !requests[index].is_requeued);
                    if let Some(index) = found {
                        requests[index].is_requeued = true;
                        window.requeue_count += 1;
                    }
                }
                What::Issue(by) => {
                    let inserted = queued.remove(&key(begin));
                    // The scheduler may dispatch requests of one thread in another one.
                    let Submitter { pid, comm } = inserted.map_or(by, |(_, by)| by);
                    let same = open.get(&key(begin)).into_iter().flatten();
                    let again = same
                        .copied()
                        .find(|&index| window.requests[index].end == end && window.requests[index].is_requeued);
                    // The same request, which the driver had returned.
                    if let Some(index) = again {
                        window.requests[index].is_requeued = false;
                        window.requests[index].dispatched_ns = event.at_ns;
                        continue;
                    }
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
                        end,
                        flags: event.flags,
                        is_own: own.has(pid, &window.names[usize::from(name)]),
                        is_rank: false,
                        is_kernel: false,
                        process: if own.has_numbers { pid } else { 0 },
                        name,
                        queued_ns: inserted.map_or(event.at_ns, |(at_ns, _)| at_ns),
                        issued_ns: event.at_ns,
                        dispatched_ns: event.at_ns,
                        is_requeued: false,
                        completed_ns: u64::MAX,
                        has_failed: false,
                    });
                }
                What::Complete { error } => {
                    let Some(same) = open.remove(&key(begin)) else { continue };
                    let until = end;
                    // If several requests of the same range (or several flushes) are in flight, it is unknown
                    // which one completed: the completion counts for all of them.
                    let is_whole = same.iter().any(|&index| window.requests[index].end == until);
                    for index in same {
                        let request = &mut window.requests[index];
                        if request.end == until {
                            request.has_failed |= error != 0;
                            request.completed_ns = event.at_ns;
                        } else if is_whole {
                            open.entry(key(begin)).or_default().push(index);
                        } else {
                            // A part completed; the rest continues at the next sector.
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

/// The devices of a trace.
#[derive(Debug, Clone, Default)]
pub(crate) struct TracedDevices {
    pub(crate) paths: Paths,
    /// The disks below loop devices, without those of the measured files.
    pub(crate) below: Vec<u32>,
}

impl TracedDevices {
    /// Returns true for a request to a disk below a loop device.
    fn is_below(&self, event: &Event) -> bool {
        !matches!(event.what, What::Remap { .. }) && self.below.contains(&event.device)
    }
}

/// The paths of NVMe multipath disks. Requests carry the number of a path, and the sectors of the disk.
#[derive(Debug, Clone, Default)]
pub(crate) struct Paths {
    /// Disks that are reached by paths, and all disks.
    heads: Vec<u32>,
    disks: Vec<u32>,
    /// Each known path, with its disk.
    known: HashMap<u32, u32>,
}

impl Paths {
    pub(crate) fn new(layers: &Layers) -> Self {
        let heads = layers.disks.iter().filter(|disk| disk.has_paths).map(|disk| disk.device).collect();
        Self { heads, disks: layers.disks.iter().map(|disk| disk.device).collect(), known: HashMap::new() }
    }

    /// Learns paths from hops, gives requests to paths the number of their disk, and removes those hops and requests to disks
    /// that are not traced.
    fn join(&mut self, events: &mut Vec<Event>) {
        if self.heads.is_empty() {
            return;
        }
        for event in events.iter() {
            if let What::Remap { from_device, .. } = event.what
                && self.heads.contains(&from_device)
            {
                self.known.insert(event.device, from_device);
            }
        }
        events.retain_mut(|event| match event.what {
            What::Remap { from_device, .. } => !self.heads.contains(&from_device),
            _ => {
                event.device = self.known.get(&event.device).copied().unwrap_or(event.device);
                self.disks.contains(&event.device)
            }
        });
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
    /// The trace contains thread IDs of the initial PID namespace; in another one, names are compared.
    has_numbers: bool,
    /// Those of other ranks of this run, also those that have ended.
    of_peers: BTreeSet<i32>,
}

/// Returns true if this process sees the thread IDs of the kernel's trace, which are those of the initial PID
/// namespace.
pub(crate) fn sees_initial_pid_namespace() -> bool {
    /// Inode number of the initial PID namespace, which never changes.
    const FIRST: u64 = 0xEFFF_FFFC;
    let found = std::fs::metadata("/proc/self/ns/pid");
    found.is_ok_and(|found| std::os::unix::fs::MetadataExt::ino(&found) == FIRST)
}

impl OwnThreads {
    pub(crate) fn look(&mut self) {
        self.has_numbers = sees_initial_pid_namespace();
        self.of_peers.extend(threads_of_peers());
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

    /// Joins events of dirty pages, with the names of other threads. None in another PID namespace: the trace has numbers, and `/proc` others.
    pub(crate) fn pages(&self, events: Vec<PageEvent>) -> PageWindow {
        if !self.has_numbers {
            return PageWindow::default();
        }
        let threads: BTreeSet<i32> = events.iter().map(|event| event.thread).collect();
        let of_thread = |number: i32| (number, Thread::of(number, &self.of_peers));
        let threads: HashMap<i32, Thread> = threads.into_iter().map(of_thread).collect();
        let is_other = |number: &i32| {
            let thread = threads[number];
            !thread.is_kernel && !thread.is_rank && !self.threads.contains(number)
        };
        let process_of = |number: i32| {
            let process = threads[&number].process.filter(|process| *process != number)?;
            Some((process, thread_name(process)?))
        };
        let is_kernel = |number: i32| threads[&number].is_kernel;
        PageWindow::of(events, thread_name, process_of, |number| is_other(&number), is_kernel)
    }

    /// Adds to the requests of other threads what `/proc` has of them, while most of them still run: whether they are threads of the kernel,
    /// or other ranks of this run. A worker of io_uring is named after the thread for which it works, and a thread after its process.
    pub(crate) fn describe(&self, window: &mut Window) {
        if !self.has_numbers {
            return;
        }
        let mut known: HashMap<i32, Thread> = HashMap::new();
        let mut processes: HashMap<i32, Option<u16>> = HashMap::new();
        for request in window.requests.iter_mut().filter(|request| !request.is_own) {
            let name = usize::from(request.name);
            let for_thread = window.names[name].strip_prefix("iou-wrk-").and_then(|number| number.parse::<i32>().ok());
            if let Some(thread) = for_thread {
                request.process = thread;
                if let Some(of_thread) = thread_name(thread) {
                    window.names[name] = of_thread;
                }
            }
            let thread = known.entry(request.process).or_insert_with(|| Thread::of(request.process, &self.of_peers));
            (request.is_kernel, request.is_rank) = (thread.is_kernel, thread.is_rank);
            request.is_own |= self.threads.contains(&request.process);
            let Some(process) = thread.process.filter(|process| *process != request.process) else { continue };
            let name = *processes.entry(process).or_insert_with(|| {
                window.names.push(thread_name(process)?);
                u16::try_from(window.names.len() - 1).ok()
            });
            if let (Some(name), false) = (name, request.is_own) {
                (request.process, request.name) = (process, name);
            }
        }
    }
}

/// A thread of another process.
#[derive(Debug, Clone, Copy, Default)]
struct Thread {
    is_kernel: bool,
    is_rank: bool,
    /// Number of its process; `None`: it has ended.
    process: Option<i32>,
}

impl Thread {
    fn of(number: i32, of_peers: &BTreeSet<i32>) -> Self {
        /// `PF_KTHREAD` of the task's flags.
        const KERNEL: u64 = 0x0020_0000;
        let stat = std::fs::read_to_string(format!("/proc/{number}/stat")).unwrap_or_default();
        // The name is in parentheses and may contain any character; the flags are the seventh value after it.
        let flags = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().nth(6)?.parse::<u64>().ok());
        let status = std::fs::read_to_string(format!("/proc/{number}/status")).unwrap_or_default();
        let process = status.lines().find_map(|line| line.strip_prefix("Tgid:")?.trim().parse().ok());
        Self { is_kernel: flags.is_some_and(|flags| flags & KERNEL != 0), is_rank: of_peers.contains(&number), process }
    }
}

fn thread_name(number: i32) -> Option<String> {
    Some(std::fs::read_to_string(format!("/proc/{number}/comm")).ok()?.trim_end().to_owned())
}

/// Returns the span that contains one window of a phase that will take `length`; `None`: that is not known.
///
/// It is the same for the whole phase, so that what the windows saw is scaled to the phase by their length alone.
fn period_for(length: Option<Duration>) -> Duration {
    length.map_or(PERIOD_MIN, |length| (length / WINDOWS_PER_PHASE).clamp(PERIOD_MIN, PERIOD_MAX))
}

/// Returns when the window after `number` begins, since the first.
fn begin_of(number: u32, seed: u64, shortest: Duration) -> Duration {
    let doubled = number / PERIOD_DOUBLES_EVERY;
    let period = shortest * 2u32.pow(doubled.min(20));
    let mut begin = Duration::ZERO;
    for earlier in 0..doubled {
        begin += shortest * 2u32.pow(earlier.min(20)) * PERIOD_DOUBLES_EVERY;
    }
    begin += period * (number % PERIOD_DOUBLES_EVERY);
    let share = (nth_mix64(seed, u64::from(number)) >> 11) as f64 / (1u64 << 53) as f64;
    begin + (period - LENGTH_MAX.min(period)).mul_f64(share)
}

/// A handle of the thread that opens and closes windows.
#[derive(Debug)]
pub(crate) struct Sampler {
    thread: JoinHandle<(Windows, u64, Instance)>,
    requests: WindowRequests,
}

/// The windows of a phase.
#[derive(Debug, Default)]
pub(crate) struct Windows {
    /// Those that were drawn, oldest first.
    pub(crate) drawn: Vec<Window>,
    /// Those that were asked for, oldest first.
    pub(crate) asked: Vec<Window>,
}

/// A signal that ends the wait of another thread.
#[derive(Debug, Default)]
pub(crate) struct Stop {
    signals: Mutex<Signals>,
    changed: Condvar,
}

#[derive(Debug, Clone, Copy, Default)]
struct Signals {
    is_set: bool,
    is_asked: bool,
}

/// Why a wait for the next window ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Woken {
    Stopped,
    /// A window was asked for.
    Asked,
    /// The next window is due.
    Due,
}

impl Stop {
    /// Ends every wait, including later ones.
    pub(crate) fn set(&self) {
        self.signals.lock().expect("no holder panics").is_set = true;
        self.changed.notify_all();
    }

    /// Waits for `length`; returns true if it was stopped.
    pub(crate) fn wait(&self, length: Duration) -> bool {
        let signals = self.signals.lock().expect("no holder panics");
        let waited = self.changed.wait_timeout_while(signals, length, |signals| !signals.is_set);
        waited.expect("no holder panics").0.is_set
    }

    /// Asks for a window now, once.
    fn ask(&self) {
        self.signals.lock().expect("no holder panics").is_asked = true;
        self.changed.notify_all();
    }

    /// Waits until a window is due, in `length`, or asked for.
    fn wait_for_window(&self, length: Duration) -> Woken {
        let signals = self.signals.lock().expect("no holder panics");
        let is_waiting = |signals: &mut Signals| !signals.is_set && !signals.is_asked;
        let mut signals = self.changed.wait_timeout_while(signals, length, is_waiting).expect("no holder panics").0;
        let is_asked = std::mem::take(&mut signals.is_asked);
        match signals.is_set {
            true => Woken::Stopped,
            false if is_asked => Woken::Asked,
            false => Woken::Due,
        }
    }
}

/// Asks for windows besides those that are due, when something else shows that other programs use the disks.
#[derive(Debug, Clone)]
pub(crate) struct WindowRequests {
    stop: Arc<Stop>,
    /// When the last window began, as [`monotonic_ns`].
    begun_ns: Arc<AtomicU64>,
    left: u32,
}

impl WindowRequests {
    /// Asks for a window now, unless one began within [`PERIOD_MIN`], or [`ASKED_COUNT_MAX`] were asked for.
    pub(crate) fn ask(&mut self) {
        let since_ns = monotonic_ns().saturating_sub(self.begun_ns.load(Acquire));
        if self.left > 0 && since_ns >= PERIOD_MIN.as_nanos() as u64 {
            self.left -= 1;
            self.stop.ask();
        }
    }
}

impl Sampler {
    /// Opens the first window of a phase that will take `length`, if that is known, and returns. `number` is set to its number, and to 0
    /// while none is open.
    ///
    /// # Errors
    /// Tracing could not be started, or the thread could not be created.
    pub(crate) fn begin(
        mut instance: Instance,
        formats: Formats,
        devices: TracedDevices,
        number: Arc<AtomicU32>,
        length: Option<Duration>,
    ) -> Result<Self, String> {
        let seed = u64::from(std::process::id()) ^ monotonic_ns();
        instance.enable()?;
        let begin_ns = monotonic_ns();
        number.store(1, Release);
        let requests = WindowRequests { stop: Arc::default(), begun_ns: Arc::default(), left: ASKED_COUNT_MAX };
        let (stop, begun_ns) = (Arc::clone(&requests.stop), Arc::clone(&requests.begun_ns));
        let mut tracer = Tracer { instance, formats, number, stop, begun_ns, own: OwnThreads::default(), devices };
        let body = move || {
            let windows = tracer.windows(begin_ns, seed, period_for(length));
            (windows, thread_cpu_ns(), tracer.instance)
        };
        let thread = std::thread::Builder::new().name("trace".to_owned()).stack_size(256 << 10).spawn(body);
        Ok(Self { thread: thread.map_err(|error| format!("cannot start the tracing thread: {error}"))?, requests })
    }

    /// Returns how windows are asked for.
    pub(crate) fn requests(&self) -> WindowRequests {
        self.requests.clone()
    }

    /// Closes the last window; returns all windows, the thread's CPU time in nanoseconds, and the instance.
    pub(crate) fn end(self) -> Result<(Windows, u64, Instance), String> {
        self.requests.stop.set();
        self.thread.join().map_err(|_| "the tracing thread panicked; this is a bug of trueio".to_owned())
    }
}

struct Tracer {
    instance: Instance,
    formats: Formats,
    number: Arc<AtomicU32>,
    stop: Arc<Stop>,
    begun_ns: Arc<AtomicU64>,
    own: OwnThreads,
    devices: TracedDevices,
}

impl Tracer {
    fn windows(&mut self, mut begin_ns: u64, seed: u64, period: Duration) -> Windows {
        let began = Instant::now();
        let mut windows = Windows::default();
        // The workers of a short phase may be gone at the end of the first window.
        self.own.look();
        for number in 1.. {
            let (window, mut is_stopped) = self.window(number, begin_ns);
            windows.drawn.push(window);
            let due = begin_of(number, seed, period);
            while !is_stopped {
                match self.stop.wait_for_window(due.saturating_sub(began.elapsed())) {
                    Woken::Due => break,
                    Woken::Stopped => is_stopped = true,
                    Woken::Asked => match self.instance.enable() {
                        Ok(()) => {
                            let (window, was_stopped) = self.window(0, monotonic_ns());
                            windows.asked.push(Window { is_asked: true, ..window });
                            is_stopped = was_stopped;
                        }
                        Err(_) => is_stopped = true,
                    },
                }
            }
            if is_stopped || self.instance.enable().is_err() {
                break;
            }
            begin_ns = monotonic_ns();
            self.number.store(number + 1, Release);
        }
        windows
    }

    /// Follows an open window to its end and closes it; its number is 0 if it was asked for. Returns true if the thread must stop.
    fn window(&mut self, number: u32, begin_ns: u64) -> (Window, bool) {
        let began = Instant::now();
        self.begun_ns.store(begin_ns, Release);
        let (mut events, mut pages) = (Vec::new(), Vec::new());
        let mut complete = CompleteSpan::new(self.instance.room());
        let mut look = LOOK_FIRST;
        let is_stopped = loop {
            let is_stopped = self.stop.wait(look.min(LENGTH_MAX.saturating_sub(began.elapsed())));
            look *= 2;
            if is_stopped || began.elapsed() >= LENGTH_MAX {
                break is_stopped;
            }
            self.read(&mut events, &mut pages, &mut complete);
            let issues = || events.iter().filter(|event| matches!(event.what, What::Issue(_)));
            let below_count = issues().filter(|event| self.devices.is_below(event)).count();
            let has_enough = issues().count() - below_count >= ISSUE_COUNT_ENOUGH || below_count >= BELOW_COUNT_ENOUGH;
            if complete.lost_count > 0 || has_enough {
                break false;
            }
        };
        self.number.store(0, Release);
        let end_ns = monotonic_ns();
        self.instance.disable();
        self.read(&mut events, &mut pages, &mut complete);
        self.own.look();
        self.devices.paths.join(&mut events);
        let span = (begin_ns, end_ns.min(complete.until_ns));
        let (below, events) = events.into_iter().partition(|event| self.devices.is_below(event));
        let mut window = Window::of(number, span, events, &self.own);
        self.own.describe(&mut window);
        let mut below = Window::of(number, span, below, &self.own);
        self.own.describe(&mut below);
        (window.below, window.below_names, window.below_until_ns) = (below.requests, below.names, below.end_ns);
        window.lost_count = complete.lost_count;
        window.pages = self.own.pages(pages);
        (window, is_stopped)
    }

    /// Reads the buffers, and then checks whether events were lost.
    fn read(&mut self, events: &mut Vec<Event>, pages: &mut Vec<PageEvent>, complete: &mut CompleteSpan) {
        let formats = &self.formats;
        self.instance.drain(|cpu, page| {
            formats.read_page(page, |event| {
                complete.saw(cpu, event.at_ns());
                match event {
                    Recorded::Request(event) => events.push(event),
                    Recorded::Page(event) => pages.push(event),
                }
            });
        });
        complete.lost(&self.instance.newly_dropped());
    }
}

/// Returns the time until which every event is known.
///
/// An event is lost if its processor's buffer is full. Events that come after the buffer was read again are
/// kept, so a gap may be anywhere after the first events that certainly fitted.
#[derive(Debug)]
struct CompleteSpan {
    room: usize,
    until_ns: u64,
    lost_count: u64,
    /// For each processor: the number of events since its buffer was last read without loss, and the time of
    /// the last one that certainly fitted.
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

    /// Returns the number of events lost on each processor since the last call.
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

    fn by(name: &str) -> Submitter {
        let mut comm = [0; 16];
        comm[..name.len()].copy_from_slice(name.as_bytes());
        Submitter { pid: name.len() as i32, comm }
    }

    fn insert(name: &str) -> What {
        What::Insert(by(name))
    }

    /// Goal: a request belongs to the thread that submitted it, though another one dispatched it to the driver.
    #[test]
    fn a_request_that_another_thread_dispatched_is_that_of_its_submitter() {
        let events = vec![event(5, 0, 8, "R", insert("writer")), event(10, 0, 8, "R", issue())];
        let window = Window::of(1, (0, 100), events, &OwnThreads { has_numbers: true, ..OwnThreads::default() });
        assert_eq!((window.names.as_slice(), window.requests[0].process), (["writer".to_owned()].as_slice(), 6));
    }

    /// Goal: threads of the kernel are told from programs by their flags, not by their names.
    #[test]
    fn threads_of_the_kernel_are_known_by_their_flags() {
        if sees_initial_pid_namespace() {
            assert!(Thread::of(2, &BTreeSet::new()).is_kernel, "kthreadd");
        }
        assert!(!Thread::of(std::process::id() as i32, &BTreeSet::new()).is_kernel);
    }

    /// Goal: what a thread of a program does is named after the program, requests and dirty pages. Method: a thread of this program with a name
    /// of its own, described as one of others.
    #[test]
    fn a_thread_is_named_after_its_process() {
        let of_others = OwnThreads { has_numbers: true, ..OwnThreads::default() };
        let (own, name) = (std::process::id() as i32, thread_name(std::process::id() as i32).expect("a name"));
        let thread = std::thread::Builder::new().name("job-0".to_owned());
        let described = thread.spawn(move || {
            let number = rustix::thread::gettid().as_raw_nonzero().get();
            let by = Submitter { pid: number, ..by("job-0") };
            let events = vec![event(10, 0, 8, "R", What::Issue(by)), event(20, 0, 8, "R", DONE)];
            let mut window = Window::of(1, (0, 100), events, &of_others);
            of_others.describe(&mut window);
            let file = crate::trace::write_back::PageFile { backing: "254:0".to_owned(), inode: 7 };
            let what = crate::trace::write_back::PageWhat::Dirtied(file);
            (window, of_others.pages(vec![PageEvent { at_ns: 1, thread: number, what }]))
        });
        let (window, pages) = described.expect("a thread").join().expect("it ends");
        let request = &window.requests[0];
        assert_eq!((request.process, &window.names[usize::from(request.name)]), (own, &name));
        assert_eq!((pages.dirtied[0].process, &pages.dirtied[0].name), (own, &name));
    }

    fn issue() -> What {
        let mut comm = [0; 16];
        comm[..3].copy_from_slice(b"dd\0");
        What::Issue(Submitter { pid: 1, comm })
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

    /// Goal: a request that the driver returned counts once, and its device time begins with its last issue.
    /// Method: of two requests of the same range, one is returned and inserted again, as a full virtio ring does.
    #[test]
    fn a_requeued_request_is_one_request_and_its_device_time_begins_with_the_last_issue() {
        let events = vec![
            event(5, 0, 8, "R", insert("dd")),
            event(10, 0, 8, "R", issue()),
            event(20, 0, 8, "R", What::Requeue),
            event(25, 0, 8, "R", insert("dd")),
            event(40, 0, 8, "R", issue()),
            event(60, 0, 8, "R", DONE),
            event(70, 0, 8, "R", issue()),
            event(80, 0, 8, "R", DONE),
        ];
        let window = Window::of(1, (0, 100), events, &OwnThreads::default());
        let seen: Vec<_> = window
            .requests
            .iter()
            .map(|r| (r.queued_ns, r.issued_ns, r.dispatched_ns, r.completed_ns, r.is_requeued))
            .collect();
        assert_eq!(seen, [(5, 10, 40, 60, false), (70, 70, 70, 80, false)]);
        assert_eq!(window.requeue_count, 1);
    }

    #[test]
    fn two_requests_of_one_range_in_flight_are_two_requests_if_none_was_returned() {
        let events = vec![event(10, 0, 8, "R", issue()), event(11, 0, 8, "R", issue()), event(20, 0, 8, "R", DONE)];
        let window = Window::of(1, (0, 100), events, &OwnThreads::default());
        assert_eq!((window.requests.len(), window.requeue_count), (2, 0));
    }

    /// Goal: requests to the paths of a multipath disk are the disk's. Method: two paths, used in turn, and another NVMe disk.
    #[test]
    fn requests_to_the_paths_of_a_disk_are_those_of_the_disk() {
        const HEAD: u32 = 2;
        let hop = |at_ns, path| Event {
            device: path,
            ..event(at_ns, 8, 8, "R", What::Remap { pid: 1, from_device: HEAD, from_sector: 8 })
        };
        let on = |device, event| Event { device, ..event };
        let mut events = vec![
            on(5, event(1, 8, 8, "R", issue())),
            hop(10, 20),
            on(20, event(11, 8, 8, "R", issue())),
            on(20, event(20, 8, 8, "R", DONE)),
            hop(30, 21),
            on(21, event(31, 8, 8, "R", issue())),
            on(21, event(40, 8, 8, "R", DONE)),
        ];
        let mut paths = Paths { heads: vec![HEAD], disks: vec![HEAD], known: HashMap::new() };
        paths.join(&mut events);
        let window = Window::of(1, (0, 100), events, &OwnThreads::default());
        let seen: Vec<_> = window.requests.iter().map(|r| (r.device, r.issued_ns, r.completed_ns)).collect();
        assert_eq!(seen, [(HEAD, 11, 20), (HEAD, 31, 40)]);
        assert_eq!(window.remaps, []);
    }

    #[test]
    fn a_request_completed_in_parts_ends_with_its_last_part() {
        let events = vec![event(10, 0, 16, "R", issue()), event(20, 0, 8, "R", DONE), event(30, 8, 8, "R", DONE)];
        let window = Window::of(1, (0, 100), events, &OwnThreads::default());
        assert_eq!(window.requests.len(), 1);
        assert_eq!(window.requests[0].completed_ns, 30);
    }

    #[test]
    fn a_window_with_too_many_requests_ends_before_the_first_that_is_not_kept() {
        let events = (0..KEPT_MAX as u64 + 10).map(|i| event(i, i * 8, 8, "R", issue())).collect();
        let window = Window::of(1, (0, 5_000), events, &OwnThreads::default());
        assert_eq!((window.requests.len(), window.end_ns), (KEPT_MAX, KEPT_MAX as u64));
    }

    #[test]
    fn after_a_loss_only_events_that_certainly_fitted_are_known() {
        let mut complete = CompleteSpan::new(2);
        [10, 20, 30].into_iter().for_each(|at_ns| complete.saw(0, at_ns));
        complete.saw(1, 15);
        complete.lost(&[0, 0]);
        assert_eq!((complete.until_ns, complete.lost_count), (u64::MAX, 0));
        // The buffer was read, became full at some time after 50, and accepted events again after the next
        // read.
        [40, 50, 90].into_iter().for_each(|at_ns| complete.saw(0, at_ns));
        complete.saw(1, 95);
        complete.lost(&[7, 0]);
        assert_eq!((complete.until_ns, complete.lost_count), (50, 7));
        complete.lost(&[0, 0, 1]);
        assert_eq!((complete.until_ns, complete.lost_count), (0, 8));
    }

    /// Goal: short phases have the windows that they had, and in long ones tracing takes no more of the time than its bar allows.
    #[test]
    fn a_phase_of_known_length_has_a_window_in_each_eighth_of_it() {
        let seconds = Duration::from_secs_f64;
        for (length, period) in [
            (None, 0.5),
            (Some(1.0), 0.5),
            (Some(4.0), 0.5),
            (Some(10.0), 1.25),
            (Some(30.0), 2.0),
            (Some(3600.0), 2.0),
        ] {
            assert_eq!(period_for(length.map(seconds)), seconds(period), "{length:?}");
        }
    }

    /// Goal: a window is asked for half a second after the last one at the earliest, and not for ever; the wait for the next window ends with a request
    /// and takes it, and with the end of the phase whatever was asked.
    #[test]
    fn windows_that_are_asked_for_keep_a_distance_and_are_bounded() {
        let mut requests = WindowRequests { stop: Arc::default(), begun_ns: Arc::default(), left: 1 };
        let stop = Arc::clone(&requests.stop);
        requests.begun_ns.store(monotonic_ns() + 3_600_000_000_000, Release);
        requests.ask();
        assert_eq!(stop.wait_for_window(Duration::ZERO), Woken::Due, "the last window has just begun");
        requests.begun_ns.store(0, Release);
        requests.ask();
        assert_eq!(stop.wait_for_window(Duration::from_secs(3600)), Woken::Asked);
        assert_eq!(stop.wait_for_window(Duration::ZERO), Woken::Due, "it was taken");
        requests.ask();
        assert_eq!(stop.wait_for_window(Duration::ZERO), Woken::Due, "none is left");
        stop.ask();
        stop.set();
        assert_eq!(stop.wait_for_window(Duration::from_secs(3600)), Woken::Stopped);
        assert!(stop.wait(Duration::from_secs(3600)), "later waits end, too");
    }

    #[test]
    fn windows_do_not_overlap_and_become_rarer_in_long_runs() {
        for (seed, period) in [0, 1, 99].into_iter().flat_map(|seed| [(seed, PERIOD_MIN), (seed, PERIOD_MAX)]) {
            let begins: Vec<Duration> = (1..700).map(|number| begin_of(number, seed, period)).collect();
            for pair in begins.windows(2) {
                assert!(pair[1] >= pair[0] + LENGTH_MAX, "{pair:?}");
            }
            assert!(begins[0] >= period, "the second window does not follow the first at once");
            assert!(begins[600] > Duration::from_secs(3600), "{:?}", begins[600]);
        }
    }
}
