//! Records every system call of a phase's workers, with the kernel's tracepoints.
//!
//! A separate tracefs instance ([`crate::trace::tracefs`]) records entry and return of every call of the
//! workers' threads, and of no other thread (`set_event_pid`). A thread reads the ring buffers every few
//! milliseconds and counts ([`tally`]). Nothing is sampled, and lost events are counted. The instance belongs
//! to the phase and is removed after it.
//!
//! Cost: while it records, every call of every process on this machine takes the kernel's slow path, and
//! calls of the workers write two events. `cargo xtask bench syscall-trace` measures that, compared with
//! strace.
//!
//! Needs root (CAP_SYS_ADMIN) and the initial PID namespace, whose thread IDs the kernel filters by. Cannot
//! see: kernel work without a call of ours (io_uring's worker and polling threads); data referenced by pointer
//! arguments.
//!
//! Source: Linux `Documentation/trace/events.rst`, `kernel/trace/trace_syscalls.c`.

mod events;
mod files;
mod names;
mod tally;

pub use tally::TracedJob;

use crate::trace::tracefs::{Instance, RecordedEvent, Recording, Tracefs};
use crate::trace::window::{Stop, monotonic_ns, sees_initial_pid_namespace, thread_cpu_ns};
use events::{Event, Formats};
use files::ProcSelf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tally::Tally;
use trueio_model::SyscallTrace;

/// Interval between two reads of the buffers. A buffer of 32 MiB holds about 300,000 calls: at a million
/// calls per second it is full after 300 ms.
const LOOK: Duration = Duration::from_millis(10);
/// When the buffers are read, an event younger than this may be ordered after one that is not yet in another
/// processor's buffer.
const YOUNG_NS: u64 = 2_000_000;

/// Returns the reason why system calls cannot be traced; `None` if they can. Removes everything that it
/// creates.
pub fn why_no_syscall_trace() -> Option<String> {
    prepare().err()
}

/// The prerequisites of a recording.
fn prepare() -> Result<(Tracefs, Formats), String> {
    if !sees_initial_pid_namespace() {
        return Err("this process runs in its own PID namespace, and the kernel's trace uses the thread IDs of the \
                    initial one"
            .to_owned());
    }
    let tracefs = Tracefs::open()?;
    let [enter, exit] = events::EVENTS.map(|event| tracefs.event_format(event));
    let formats = Formats::new(tracefs.page_format()?, &[enter?, exit?])?;
    Ok((tracefs, formats))
}

/// Traces the system calls of one phase's workers.
#[derive(Debug)]
pub struct SyscallWatch {
    ready: Option<(Instance, Formats)>,
    reader: Option<Reader>,
    missing: Option<String>,
}

#[derive(Debug)]
struct Reader {
    stop: Arc<Stop>,
    thread: JoinHandle<Read>,
}

/// The result of the reading thread.
#[derive(Debug)]
struct Read {
    trace: SyscallTrace,
    _instance: Instance,
}

impl SyscallWatch {
    /// Prepares an instance; nothing is recorded yet. Takes tens of milliseconds.
    pub fn new() -> Self {
        let recording = Recording {
            events: events::EVENTS.map(|event| RecordedEvent::frequent(event, "")).to_vec(),
            buffers_kib: 64 << 10,
            buffer_kib_min: 1 << 10,
            buffer_kib_max: 32 << 10,
        };
        let made = prepare().and_then(|(tracefs, formats)| Ok((Instance::new(tracefs, recording)?, formats)));
        let (ready, missing) = match made {
            Ok(ready) => (Some(ready), None),
            Err(reason) => (None, Some(reason)),
        };
        Self { ready, reader: None, missing }
    }

    /// Starts to record the calls of each job's workers, given by their thread IDs. Call it just before their
    /// first measured I/O.
    pub fn begin(&mut self, jobs: &[TracedJob]) {
        let Some((mut instance, formats)) = self.ready.take() else { return };
        let threads: Vec<i32> = jobs.iter().flat_map(|job| job.threads.iter().copied()).collect();
        let tally = Tally::new(jobs, files::all_open(&ProcSelf), ProcSelf);
        let stop = Arc::new(Stop::default());
        let stopped = Arc::clone(&stop);
        let begun = instance.only_threads(&threads).and_then(|()| instance.enable()).and_then(|()| {
            std::thread::Builder::new()
                .name("syscalls".to_owned())
                .stack_size(256 << 10)
                .spawn(move || read_all(instance, &formats, tally, &stopped))
                .map_err(|error| format!("cannot start the tracing thread: {error}"))
        });
        match begun {
            Ok(thread) => self.reader = Some(Reader { stop, thread }),
            Err(reason) => self.missing = Some(reason),
        }
    }

    /// Ends the recording. Call it after the workers' last measured I/O; `measured` is the length of the
    /// measured part.
    pub fn end(mut self, measured: Duration) -> SyscallTrace {
        let span_ns = measured.as_nanos() as u64;
        let missing = |reason: String| SyscallTrace { missing: Some(reason), ..SyscallTrace::default() };
        let Some(Reader { stop, thread }) = self.reader.take() else {
            return missing(self.missing.take().unwrap_or_else(|| "the phase ended before tracing began".to_owned()));
        };
        stop.set();
        match thread.join() {
            Ok(read) => SyscallTrace { span_ns, ..read.trace },
            Err(_) => missing("the tracing thread panicked; this is a bug of trueio".to_owned()),
        }
    }
}

impl Default for SyscallWatch {
    fn default() -> Self {
        Self::new()
    }
}

/// Reads and counts events until `stop` is set.
fn read_all(mut instance: Instance, formats: &Formats, mut tally: Tally<ProcSelf>, stop: &Stop) -> Read {
    let mut events: Vec<Event> = Vec::new();
    loop {
        let is_stopped = stop.wait(LOOK);
        if is_stopped {
            instance.disable();
        }
        // Events before this time are in their buffers now. Of later events, other processors' buffers may
        // have been read too early.
        let until_ns = if is_stopped { u64::MAX } else { monotonic_ns().saturating_sub(YOUNG_NS) };
        instance.drain(|_, page| formats.read_page(page, |event| events.push(event)));
        events.sort_by_key(|event| event.at_ns);
        let old = events.partition_point(|event| event.at_ns < until_ns);
        events.drain(..old).for_each(|event| tally.take(&event));
        if is_stopped {
            let lost_event_count = instance.newly_dropped().iter().sum();
            let trace = SyscallTrace { lost_event_count, thread_cpu_ns: thread_cpu_ns(), ..tally.into_trace() };
            return Read { trace, _instance: instance };
        }
    }
}
