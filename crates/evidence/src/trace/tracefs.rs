//! Access to tracefs, and a separate tracing instance in it.
//!
//! If tracefs is mounted, it is used from there. Otherwise it is mounted detached (`fsopen`, `fsmount`), so
//! that no other process sees it and nothing is left to unmount. An instance has its own buffers, filters and
//! clock and does not disturb other users of tracing.
//!
//! An instance outlives the process that created it. So `free_buffer` is held open with the option
//! `disable_on_free`: when the process ends, in any way, the kernel stops the tracing and frees the buffer.
//! An empty directory stays, and the next run removes it. The kernel refuses to remove an instance with an
//! open file (EBUSY), so an instance in use is never removed.
//!
//! Needs CAP_SYS_ADMIN to mount it, or write permission below its mount point (CAP_DAC_OVERRIDE, because its files are
//! writable for root only).
//!
//! Source: Linux `Documentation/trace/ftrace.rst` (instances, `free_buffer`, `trace_clock`),
//! `kernel/trace/trace.c`; fsopen(2), fsmount(2) (Linux 5.2).

use super::format::{Formats, PageFormat, RequestEvents};
use super::write_back::PageFormats;
use crate::clocks::namespace_offset_ns;
use rustix::fd::OwnedFd;
use rustix::fs::{AtFlags, Mode, OFlags};
use rustix::io::Errno;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Prefix of the names of our instances; the process ID and a number follow.
const PREFIX: &str = "trueio-";
/// Size of a buffer for a page of a ring buffer; `buffer_subbuf_size_kb` is 4 by default.
const PAGE_BYTES_MAX: usize = 64 << 10;

/// An event of an instance.
#[derive(Debug, Clone)]
pub(crate) struct RecordedEvent {
    /// Its path below `events`.
    path: &'static str,
    /// The kernel's filter; empty: everything is kept.
    filter: String,
    /// True if it happens so seldom that it stays switched on between windows, in which the instance records nothing: each switch
    /// of an event interrupts all processors several times, which took 0.3 ms of a processor on a virtual machine.
    is_rare: bool,
}

impl RecordedEvent {
    /// An event that is switched with each window.
    pub(crate) fn frequent(path: &'static str, filter: impl Into<String>) -> Self {
        Self { path, filter: filter.into(), is_rare: false }
    }

    /// An event that stays on between windows.
    pub(crate) fn rare(path: &'static str, filter: impl Into<String>) -> Self {
        Self { path, filter: filter.into(), is_rare: true }
    }

    fn switch(&self, directory: &OwnedFd, is_on: bool) -> Result<(), WriteError> {
        write(directory, &format!("events/{}/enable", self.path), if is_on { "1" } else { "0" })
    }
}

/// The events and the buffer sizes of an instance.
#[derive(Debug, Clone)]
pub(crate) struct Recording {
    pub(crate) events: Vec<RecordedEvent>,
    /// Size of all processors' buffers together, in KiB, and minimum and maximum per processor.
    pub(crate) buffers_kib: usize,
    pub(crate) buffer_kib_min: usize,
    pub(crate) buffer_kib_max: usize,
}

/// The block devices of a recording, in the kernel's numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RecordedDevices {
    /// Disks, whose requests are recorded.
    pub(crate) disks: Vec<u32>,
    /// True if an I/O scheduler may hold requests of one of them back.
    pub(crate) has_scheduler: bool,
    /// Devices that pass I/O on, and partitions that it is passed through; for each hop there is an event.
    pub(crate) passing: Vec<u32>,
    /// True if a disk is reached by paths whose numbers only events show (NVMe multipath).
    pub(crate) has_paths: bool,
}

/// Major number of partitions with high minor numbers and of all NVMe namespaces and paths (`BLOCK_EXT_MAJOR`).
const EXTENDED_MAJOR: u32 = 259;

impl Recording {
    /// Records requests of these devices. Half a megabyte holds about 3,500 of them, with a scheduler 2,500.
    /// The entry into a scheduler is recorded where there is one, and each hop where a layer passes I/O on: each further
    /// event adds to the cost of a window.
    pub(crate) fn of_requests(devices: &RecordedDevices) -> Self {
        let requests = requests_of(devices);
        let frequent = |event| RecordedEvent::frequent(event, requests.clone());
        let inserts = devices.has_scheduler.then(|| frequent(INSERT));
        let hops =
            (!devices.passing.is_empty()).then(|| RecordedEvent::frequent(REMAP, any_of("old_dev", &devices.passing)));
        let requeues = RecordedEvent::rare(REQUEUE, requests.clone());
        Self {
            events: [frequent(ISSUE), frequent(COMPLETE), requeues].into_iter().chain(inserts).chain(hops).collect(),
            buffers_kib: 16 << 10,
            buffer_kib_min: 64,
            buffer_kib_max: 512,
        }
    }

    /// Records whose dirty pages are written back, too; `dirties_pages`: this program's are among them.
    pub(crate) fn with_pages(mut self, formats: &Formats, dirties_pages: bool) -> Self {
        self.events.extend(formats.pages().into_iter().flat_map(|pages| pages.events(dirties_pages)));
        self
    }

    /// Records only who submits requests to these devices.
    pub(crate) fn of_users(devices: &RecordedDevices) -> Self {
        let inserts = devices.has_scheduler.then_some(INSERT);
        Self {
            events: [ISSUE]
                .into_iter()
                .chain(inserts)
                .map(|event| RecordedEvent::frequent(event, requests_of(devices)))
                .collect(),
            buffers_kib: 16 << 10,
            buffer_kib_min: 64,
            buffer_kib_max: 512,
        }
    }
}

/// Returns the kernel's filter for the requests of devices.
fn requests_of(devices: &RecordedDevices) -> String {
    let mut requests = any_of("dev", &devices.disks);
    if devices.has_paths {
        let (first, next) = (EXTENDED_MAJOR << 20, (EXTENDED_MAJOR + 1) << 20);
        requests += &format!(" || (dev >= {first} && dev < {next})");
    }
    requests
}

fn any_of(field: &str, numbers: &[u32]) -> String {
    numbers.iter().map(|device| format!("{field} == {device}")).collect::<Vec<_>>().join(" || ")
}

/// Events of a block request: entry into the I/O scheduler, issue to the driver, return by a driver without room, completion.
const INSERT: &str = "block/block_rq_insert";
const ISSUE: &str = "block/block_rq_issue";
const REQUEUE: &str = "block/block_rq_requeue";
const COMPLETE: &str = "block/block_rq_complete";
/// A layer, a partition or a multipath disk passes an I/O on to the device below.
const REMAP: &str = "block/block_bio_remap";

/// A failed operation and its reason, in one sentence.
fn failed(what: &str, error: impl std::fmt::Display) -> String {
    format!("{what}: {error}")
}

/// Attempts to remove a busy instance, one millisecond apart.
const REMOVAL_ATTEMPTS: u32 = 200;

/// The root of tracefs.
#[derive(Debug)]
pub(crate) struct Tracefs {
    root: OwnedFd,
}

impl Tracefs {
    /// # Errors
    /// A sentence with the reason why tracefs is not available, and a remedy.
    pub(crate) fn open() -> Result<Self, String> {
        const MAGIC: u64 = 0x7472_6163;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        for path in ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"] {
            if rustix::fs::statfs(path).is_ok_and(|found| found.f_type as u64 == MAGIC)
                && let Ok(root) = rustix::fs::open(path, flags, Mode::empty())
                && rustix::fs::accessat(&root, "instances", rustix::fs::Access::WRITE_OK, AtFlags::EACCESS).is_ok()
            {
                return Ok(Self { root });
            }
        }
        match mount_nowhere() {
            Ok(root) => Ok(Self { root }),
            Err(Errno::PERM | Errno::ACCESS) => {
                Err("the kernel allows tracing only to root (CAP_SYS_ADMIN), and where tracefs is \
                                                     mounted to programs with CAP_DAC_OVERRIDE (docs/evidence.md)"
                    .to_owned())
            }
            Err(Errno::NODEV) => Err("this kernel was built without tracefs".to_owned()),
            Err(Errno::NOSYS) => {
                Err("tracefs is not mounted (`mount -t tracefs none /sys/kernel/tracing`), and this kernel cannot \
                     mount it detached (Linux 5.2 can)"
                    .to_owned())
            }
            Err(error) => Err(failed("cannot mount tracefs", error)),
        }
    }

    fn read(&self, path: &str) -> Result<String, String> {
        read_text(&self.root, path)
    }

    /// Returns the format of a ring buffer's pages on this kernel.
    pub(crate) fn page_format(&self) -> Result<PageFormat, String> {
        // The kernel's trace knows no namespaces of time, in which containers may run.
        Ok(PageFormat::parse(&self.read("events/header_page")?)?.ahead_by(namespace_offset_ns()))
    }

    /// Returns the format file of an event.
    pub(crate) fn event_format(&self, event: &str) -> Result<String, String> {
        self.read(&format!("events/{event}/format"))
    }

    /// Returns the formats of block requests, and of hops between devices where they are recorded.
    pub(crate) fn formats(&self, has_hops: bool) -> Result<Formats, String> {
        let text = |event: &str| self.event_format(event);
        let remap = has_hops.then(|| text(REMAP)).transpose()?;
        let texts = RequestEvents {
            issue: &text(ISSUE)?,
            complete: &text(COMPLETE)?,
            insert: &text(INSERT)?,
            requeue: &text(REQUEUE)?,
            remap: remap.as_deref(),
        };
        // A kernel without one of them is traced without the programs behind write-back.
        let pages = PageFormats::new(text).ok();
        Ok(Formats::new(self.page_format()?, &texts)?.with_pages(pages))
    }

    /// Removes instances whose process is gone.
    fn remove_stale(&self) {
        for name in names(&self.root, "instances") {
            let Some(pid) = name.strip_prefix(PREFIX).and_then(|rest| rest.split('-').next()) else { continue };
            let is_alive = pid
                .parse()
                .ok()
                .and_then(rustix::process::Pid::from_raw)
                .is_none_or(|pid| !matches!(rustix::process::test_kill_process(pid), Err(Errno::SRCH)));
            // A process of another namespace may have a number that is free here; its instance is busy and
            // stays.
            if !is_alive {
                let _ = rustix::fs::unlinkat(&self.root, format!("instances/{name}"), AtFlags::REMOVEDIR);
            }
        }
    }
}

/// A detached mount of tracefs.
fn mount_nowhere() -> Result<OwnedFd, Errno> {
    use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC)?;
    fsconfig_create(&context)?;
    fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, MountAttrFlags::MOUNT_ATTR_NOEXEC)
}

fn read_text(directory: &OwnedFd, path: &str) -> Result<String, String> {
    // In large pieces: some of these files return their text in the first read only, whatever its size.
    let read = || -> io::Result<String> {
        let file = rustix::fs::openat(directory, path, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
        let (mut text, mut piece) = (Vec::new(), vec![0; 16 << 10]);
        loop {
            match rustix::io::read(&file, &mut *piece)? {
                0 => return String::from_utf8(text).map_err(io::Error::other),
                length => text.extend_from_slice(&piece[..length]),
            }
        }
    };
    read().map_err(|error| failed(&format!("cannot read `{path}` of tracefs"), error))
}

fn names(directory: &OwnedFd, path: &str) -> Vec<String> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let Ok(directory) = rustix::fs::openat(directory, path, flags, Mode::empty()) else { return Vec::new() };
    let Ok(entries) = rustix::fs::Dir::new(directory) else { return Vec::new() };
    entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// An instance of this process, removed on drop.
#[derive(Debug)]
pub(crate) struct Instance {
    tracefs: Tracefs,
    name: String,
    /// Its open files; closed before it is removed.
    open: Option<Open>,
    page: Vec<u8>,
    recording: Recording,
    buffer_kib: usize,
}

#[derive(Debug)]
struct Open {
    directory: OwnedFd,
    /// Never read: while it is open the buffer is kept, and other processes cannot remove the instance.
    _free_buffer: OwnedFd,
    processors: Vec<ProcessorBuffer>,
}

/// The ring buffer of one processor.
#[derive(Debug)]
struct ProcessorBuffer {
    /// The number of the processor in the kernel.
    number: u32,
    pipe: OwnedFd,
    /// Events that were lost until the last look.
    dropped: u64,
}

/// Returns the numbers of the processors in the names of a directory's entries (`cpu10`), in rising order: the kernel lists a
/// directory of tracefs in any order.
fn processor_numbers(names: &[String]) -> Vec<u32> {
    let mut numbers: Vec<u32> = names.iter().filter_map(|name| name.strip_prefix("cpu")?.parse().ok()).collect();
    numbers.sort_unstable();
    numbers
}

impl Instance {
    /// Creates an instance that is not enabled yet. Removes those of dead processes.
    ///
    /// # Errors
    /// It could not be created; nothing of it is left.
    pub(crate) fn new(tracefs: Tracefs, recording: Recording) -> Result<Self, String> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        tracefs.remove_stale();
        let pid = std::process::id();
        let mut attempts = 0;
        let name = loop {
            let name = format!("{PREFIX}{pid}-{}", COUNT.fetch_add(1, Relaxed));
            match rustix::fs::mkdirat(&tracefs.root, format!("instances/{name}"), Mode::RWXU) {
                Ok(()) => break name,
                // Left by a process that had the same ID before.
                Err(Errno::EXIST) if attempts < 16 => attempts += 1,
                Err(error) => return Err(failed("cannot create a tracing instance", error)),
            }
        };
        let mut instance = Self { tracefs, name, open: None, page: vec![0; PAGE_BYTES_MAX], recording, buffer_kib: 0 };
        instance.prepare()?;
        Ok(instance)
    }

    fn prepare(&mut self) -> Result<(), String> {
        let events = &self.recording.events;
        let path = format!("instances/{}", self.name);
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::openat(&self.tracefs.root, path, flags, Mode::empty())
            .map_err(|error| failed("cannot open the tracing instance", error))?;
        let cpus = processor_numbers(&names(&directory, "per_cpu"));
        let kib = (self.recording.buffers_kib / cpus.len().max(1))
            .clamp(self.recording.buffer_kib_min, self.recording.buffer_kib_max);
        self.buffer_kib = kib;
        write(&directory, "tracing_on", "0")?;
        write(&directory, "trace_clock", "mono")?;
        write(&directory, "buffer_size_kb", &kib.to_string())?;
        // A full buffer drops the newest events, so the beginning of a window is complete.
        write(&directory, "options/overwrite", "0")?;
        write(&directory, "options/disable_on_free", "1")?;
        // Otherwise the kernel notes names of threads for this instance while one of its events is on, in tracepoints at each change of
        // threads and each wake-up. The recorded events have the names that are needed. Where it cannot be switched off, it costs little.
        let _ = write(&directory, "trace_options", "norecord-cmd");
        let free_buffer =
            rustix::fs::openat(&directory, "free_buffer", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())
                .map_err(|error| failed("cannot open `free_buffer` of the tracing instance", error))?;
        for RecordedEvent { path, filter, .. } in events.iter().filter(|event| !event.filter.is_empty()) {
            write(&directory, &format!("events/{path}/filter"), filter)?;
        }
        events.iter().filter(|event| event.is_rare).try_for_each(|event| event.switch(&directory, true))?;
        let mut processors = Vec::new();
        for number in cpus {
            let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
            let path = format!("per_cpu/cpu{number}/trace_pipe_raw");
            let pipe = rustix::fs::openat(&directory, path, flags, Mode::empty())
                .map_err(|error| failed("cannot open `trace_pipe_raw`", error))?;
            processors.push(ProcessorBuffer { number, pipe, dropped: 0 });
        }
        self.open = Some(Open { directory, _free_buffer: free_buffer, processors });
        Ok(())
    }

    fn opened(&mut self) -> &mut Open {
        self.open.as_mut().expect("an instance is open from `new` to `drop`")
    }

    /// Restricts recording to these threads, given by their IDs in the initial PID namespace. Events of other
    /// threads then cost almost nothing.
    pub(crate) fn only_threads(&mut self, threads: &[i32]) -> Result<(), String> {
        let numbers: Vec<String> = threads.iter().map(i32::to_string).collect();
        Ok(write(&self.opened().directory, "set_event_pid", &numbers.join(" "))?)
    }

    /// Starts tracing. Takes 0.2 ms, or tens of milliseconds directly after tracing was stopped.
    pub(crate) fn enable(&mut self) -> Result<(), String> {
        let Self { open: Some(open), recording, .. } = self else {
            unreachable!("an instance is open from `new` to `drop`")
        };
        write(&open.directory, "tracing_on", "1")?;
        let mut frequent = recording.events.iter().filter(|event| !event.is_rare);
        Ok(frequent.try_for_each(|event| event.switch(&open.directory, true))?)
    }

    /// Stops tracing. Recorded events can still be read.
    pub(crate) fn disable(&mut self) {
        let Self { open: Some(open), recording, .. } = self else { return };
        let _ = write(&open.directory, "tracing_on", "0");
        for event in recording.events.iter().filter(|event| !event.is_rare) {
            let _ = event.switch(&open.directory, false);
        }
    }

    /// Calls `page` for each page in the buffers, with the index of its processor, and empties them.
    pub(crate) fn drain(&mut self, mut page: impl FnMut(usize, &[u8])) {
        let Self { open: Some(open), page: buffer, buffer_kib, .. } = self else { return };
        for (index, processor) in open.processors.iter().enumerate() {
            // The buffer is bounded, and so is what can be read while more is written.
            for _ in 0..*buffer_kib {
                match rustix::io::read(&processor.pipe, &mut *buffer) {
                    Ok(length) if length > 0 => page(index, &buffer[..length]),
                    _ => break,
                }
            }
        }
    }

    /// Returns how many events of one processor certainly fit after its buffer was read: half of it, at 96
    /// bytes per event (80 with its header, on Linux 6.18).
    pub(crate) fn room(&self) -> usize {
        self.buffer_kib * 1024 / 2 / 96
    }

    /// Returns the number of dropped events since the last call, for each processor, in the order of [`Self::drain`].
    pub(crate) fn newly_dropped(&mut self) -> Vec<u64> {
        let Open { directory, processors, .. } = self.opened();
        let mut newly = |processor: &mut ProcessorBuffer| {
            let path = format!("per_cpu/cpu{}/stats", processor.number);
            let stats = read_text(directory, &path).unwrap_or_default();
            let counted = super::format::dropped_events(&stats).unwrap_or(processor.dropped);
            let before = std::mem::replace(&mut processor.dropped, counted);
            counted.saturating_sub(before)
        };
        processors.iter_mut().map(&mut newly).collect()
    }
}

impl Drop for Instance {
    fn drop(&mut self) {
        self.disable();
        if let Some(open) = self.open.take() {
            for event in self.recording.events.iter().filter(|event| event.is_rare) {
                let _ = event.switch(&open.directory, false);
            }
        }
        let path = format!("instances/{}", self.name);
        // A process that was started meanwhile has copies of open descriptors until its exec closes them,
        // which may be after the call that started it has returned. An instance that stays for that reason is
        // removed by the next run (`remove_stale`).
        for _ in 0..REMOVAL_ATTEMPTS {
            match rustix::fs::unlinkat(&self.tracefs.root, &path, AtFlags::REMOVEDIR) {
                Err(Errno::BUSY) => std::thread::sleep(std::time::Duration::from_millis(1)),
                _ => break,
            }
        }
    }
}

/// A file of a tracing instance that could not be written.
#[derive(Debug)]
struct WriteError {
    /// Below the instance.
    path: String,
    text: String,
    source: Errno,
}

impl std::fmt::Display for WriteError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "cannot write `{}` to `{}` of a tracing instance", self.text, self.path)
    }
}

impl std::error::Error for WriteError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// The reason why nothing is traced, as records keep it.
impl From<WriteError> for String {
    fn from(error: WriteError) -> Self {
        failed(&error.to_string(), error.source)
    }
}

fn write(directory: &OwnedFd, path: &str, text: &str) -> Result<(), WriteError> {
    let write = || -> Result<(), Errno> {
        let file = rustix::fs::openat(directory, path, OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty())?;
        rustix::io::write(&file, text.as_bytes()).map(|_| ())
    };
    write().map_err(|source| WriteError { path: path.to_owned(), text: text.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a loss is booked on the processor whose buffer was full. Method: the names as the kernel lists them, in any order.
    #[test]
    fn buffers_are_those_of_the_processors_by_number() {
        let listed = ["cpu1", "cpu10", "cpu0", "cpu2", "cpumask", "stats"].map(str::to_owned);
        assert_eq!(processor_numbers(&listed), [0, 1, 2, 10]);
        assert_eq!(processor_numbers(&["cpu3".to_owned(), "cpu1".to_owned()]), [1, 3], "some are offline");
    }
}
