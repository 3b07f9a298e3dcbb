//! Reads the counters before and after a phase.
//!
//! The order matters. [`Watch::baseline`] opens and maps the files, which may take a while, then observes the
//! disks while no job runs. [`Watch::before`] counts the files' cached pages first and the disks' requests
//! last, just before the first measured I/O is issued; [`Watch::after`] counts the disks first. So the
//! counted span contains the measured one, and little else.
//!
//! If permitted, [`Watch::baseline`] also prepares to trace requests, `before` starts tracing and `after`
//! ends it; see [`crate::trace`].
//!
//! Cost: one small read per disk, one `cachestat` per file, two small reads for the process and the
//! processors. [`Observation::cost_ns`] contains it. Files are opened for reading only.

use crate::clocks::Clocks;
use crate::filemap::{FileMap, map_file};
use crate::observation::{Heat, LimitedIo, Observation, ProcessorUse};
use crate::sample::{ContentSample, sample};
use crate::timeline::Timeline;
use crate::trace::{ObservedFile, TraceSession};
use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant, SystemTime};
use trueio_device::{
    CpuTicks, GroupIo, Pressure, System, background_work, counters, cpu_ticks, group_io, kernel_thread_ticks,
    kernel_worker_wait_ns, pressure, process_io, temperature, throttle_count, throttled_ns,
};
use trueio_model::{
    DeviceCounters, DeviceDelta, FilePlan, IoLimit, IoLimitKind, JobPlan, LayerKind, Prepare, Residency, TargetFacts,
};

/// A tick of `/proc/stat`.
const TICK_NS: u64 = 10_000_000;

/// The counters of one phase.
#[derive(Debug)]
pub struct Watch {
    system: System,
    targets: Vec<TargetFacts>,
    disks: Vec<DiskWatch>,
    /// The limits of control groups on the targets' devices, each once.
    limits: Vec<IoLimit>,
    files: Vec<FileWatch>,
    maps: Vec<FileMap>,
    samples: Vec<ContentSample>,
    /// The phase writes through the page cache.
    dirties_pages: bool,
    background: Vec<String>,
    trace: Option<TraceSession>,
    notes: BTreeSet<String>,
    begin: Option<Begin>,
    /// Before the baseline.
    created: Clocks,
    cost: Duration,
}

#[derive(Debug)]
struct DiskWatch {
    name: String,
    baseline: DeviceCounters,
    baseline_ns: u64,
    before: Option<DeviceCounters>,
}

#[derive(Debug)]
struct FileWatch {
    path: String,
    offset_bytes: u64,
    size_bytes: u64,
    file: Option<File>,
    before: Option<Residency>,
    modified: Option<SystemTime>,
}

/// Counters at the start of the phase, except those of disks and files.
#[derive(Debug)]
struct Begin {
    process_read_bytes: Option<u64>,
    ticks: Option<CpuTicks>,
    kernel_ticks: u64,
    /// For which the kernel's workers waited for a processor; `None` without a trace, where nothing needs it.
    worker_wait_ns: Option<u64>,
    pressure: Option<Pressure>,
    throttled_ns: Option<u64>,
    temperatures: Vec<Option<i64>>,
    throttle_count: Option<u64>,
    /// What each limited group has transferred.
    limited: Vec<Option<GroupIo>>,
    clocks: Clocks,
    at: Instant,
}

impl Watch {
    /// Watches the disks under `targets` and the regions of `files`. Nothing is read yet.
    pub fn new<'a>(system: &System, targets: &[TargetFacts], files: impl IntoIterator<Item = &'a FilePlan>) -> Self {
        let mut disks: Vec<DiskWatch> = Vec::new();
        for disk in targets.iter().flat_map(|target| &target.disks) {
            if !disks.iter().any(|known| known.name == disk.name) {
                let name = disk.name.clone();
                disks.push(DiskWatch { name, baseline: DeviceCounters::default(), baseline_ns: 0, before: None });
            }
        }
        let mut limits: Vec<IoLimit> = Vec::new();
        for limit in targets.iter().flat_map(|target| target.io_limits.value.iter().flatten()) {
            if !limits.contains(limit) {
                limits.push(limit.clone());
            }
        }
        let mut watched: Vec<FileWatch> = Vec::new();
        for FilePlan { path, prepare, offset_bytes, size_bytes, .. } in files {
            if *prepare == Prepare::Nothing {
                continue;
            }
            let (path, offset_bytes, size_bytes) = (path.clone(), *offset_bytes, *size_bytes);
            if !watched.iter().any(|known| known.path == path && known.offset_bytes == offset_bytes) {
                watched.push(FileWatch { path, offset_bytes, size_bytes, file: None, before: None, modified: None });
            }
        }
        Self {
            system: system.clone(),
            targets: targets.to_vec(),
            disks,
            limits,
            files: watched,
            maps: Vec::new(),
            samples: Vec::new(),
            dirties_pages: false,
            background: Vec::new(),
            trace: None,
            notes: BTreeSet::new(),
            begin: None,
            created: Clocks::now(),
            cost: Duration::ZERO,
        }
    }

    /// Samples a few blocks of each file with direct I/O. Call it before the baseline, for a phase that
    /// reads.
    pub fn sample_content(&mut self) {
        self.samples =
            self.files.iter().filter_map(|file| sample(&file.path, file.offset_bytes, file.size_bytes)).collect();
    }

    /// Tells that the phase writes through the page cache: the kernel's event of a page that becomes dirty is on only while a window is open
    /// then, and else for the whole phase, because switching it costs more. Call it before the baseline.
    pub fn expect_dirty_pages(&mut self) {
        self.dirties_pages = true;
    }

    /// Opens and maps the files, then reads the disks' counters over `length` while no job runs. The files
    /// must exist and be flushed; otherwise their write-back counts as I/O of other processes. A length of
    /// zero takes no baseline, and the I/O of other processes cannot be separated.
    pub fn baseline(&mut self, length: Duration) {
        self.open_files();
        self.maps = self.map_files();
        // Not earlier, because creating an instance waits for the kernel.
        self.trace = Some(TraceSession::new(&self.system, &self.targets, &watched(&self.files), self.dirties_pages));
        if length.is_zero() {
            return;
        }
        self.background = background_work(&self.system);
        let at = Instant::now();
        let before: Vec<Option<DeviceCounters>> = self.disks.iter().map(|disk| self.read(&disk.name)).collect();
        std::thread::sleep(length);
        let elapsed_ns = at.elapsed().as_nanos() as u64;
        for (index, before) in before.into_iter().enumerate() {
            if let (Some(before), Some(after)) = (before, self.read(&self.disks[index].name)) {
                self.disks[index].baseline = difference(&before, &after);
                self.disks[index].baseline_ns = elapsed_ns;
            }
        }
    }

    /// Returns the counter in which workers find the number of the open trace window, 0 if none is open;
    /// `None` if nothing will be traced.
    pub fn sample_window(&self) -> Option<Arc<AtomicU32>> {
        self.trace.as_ref()?.sample_window()
    }

    /// Reads the counters. Call it just before the first measured I/O is issued. The longer a phase will take, by `length` if that is known,
    /// the rarer are the windows in which its requests are traced.
    pub fn before(&mut self, length: Option<Duration>) {
        let at = Instant::now();
        self.open_files();
        let worker_wait_ns = self.sample_window().and_then(|_| kernel_worker_wait_ns(&self.system));
        if let Some(trace) = &mut self.trace {
            trace.begin(length);
        }
        for file in &mut self.files {
            file.before = file.residency();
            file.modified = file.modified();
        }
        let ticks = cpu_ticks(&self.system).ok();
        let kernel_ticks = self.kernel_ticks();
        let pressure = pressure(&self.system);
        let throttled_ns = throttled_ns(&self.system);
        let throttle_count = throttle_count(&self.system);
        let temperatures = self.temperatures();
        let limited = self.limits.iter().map(|limit| group_io(&self.system, limit)).collect();
        let process_read_bytes = process_io(&self.system).ok().map(|io| io.read_bytes);
        for index in 0..self.disks.len() {
            self.disks[index].before = self.read(&self.disks[index].name);
        }
        self.cost += at.elapsed();
        let (clocks, at) = (Clocks::now(), Instant::now());
        self.begin = Some(Begin {
            process_read_bytes,
            ticks,
            kernel_ticks,
            worker_wait_ns,
            pressure,
            throttled_ns,
            temperatures,
            throttle_count,
            limited,
            clocks,
            at,
        });
    }

    /// Begins to look for times at which a phase of `plans` is disturbed; `threads` are its workers. Call it after
    /// [`Watch::before`].
    pub fn timeline(&self, plans: &[&JobPlan], threads: &[i32]) -> Timeline {
        let disks = self.disks.iter().map(|disk| disk.name.clone()).collect();
        let mut timeline = Timeline::begin(&self.system, disks, &self.targets, plans, threads);
        timeline.requests = self.trace.as_ref().and_then(TraceSession::window_requests);
        timeline
    }

    /// Returns the changes of the disks' counters since [`Watch::before`], in the middle of the measured part. Disks whose
    /// counters cannot be read are left out.
    pub fn devices_so_far(&self) -> Vec<DeviceDelta> {
        let Some(begin) = &self.begin else { return Vec::new() };
        let of_disk = |disk: &DiskWatch| {
            let (before, now) = (disk.before?, self.read(&disk.name)?);
            Some(DeviceDelta {
                disk: disk.name.clone(),
                baseline: disk.baseline,
                baseline_ns: disk.baseline_ns,
                measured: difference(&before, &now),
                measured_ns: begin.at.elapsed().as_nanos() as u64,
            })
        };
        self.disks.iter().filter_map(of_disk).collect()
    }

    /// Reads the counters again and returns the observation. Call it just after the last measured I/O
    /// completed.
    ///
    /// # Panics
    /// If [`Watch::before`] was not called since the last time.
    pub fn after(&mut self) -> Observation {
        let (clocks, at) = (Clocks::now(), Instant::now());
        let begin = self.begin.take().expect("`before` is called first");
        let measured_ns = (at - begin.at).as_nanos() as u64;
        let after: Vec<Option<DeviceCounters>> = self.disks.iter().map(|disk| self.read(&disk.name)).collect();
        let process_read_bytes = process_io(&self.system).ok().map(|io| io.read_bytes);
        let ticks = cpu_ticks(&self.system).ok();
        let kernel_ticks = self.kernel_ticks();
        let worker_wait_ns = begin.worker_wait_ns.and_then(|_| kernel_worker_wait_ns(&self.system));
        let pressure = both(begin.pressure, pressure(&self.system));
        let waited = both(begin.throttled_ns, throttled_ns(&self.system));
        let throttled = both(begin.throttle_count, throttle_count(&self.system));
        let heats = self.heats(&begin.temperatures);
        let limited = self.limited(&begin.limited, measured_ns);
        let mut devices = Vec::new();
        for (disk, after) in self.disks.iter_mut().zip(after) {
            let (Some(before), Some(after)) = (disk.before.take(), after) else {
                self.notes.insert(format!("cannot read the counters of {}", disk.name));
                continue;
            };
            devices.push(DeviceDelta {
                disk: disk.name.clone(),
                baseline: disk.baseline,
                baseline_ns: disk.baseline_ns,
                measured: difference(&before, &after),
                measured_ns,
            });
        }
        let is_modified = self.files.iter().any(|file| file.modified != file.modified());
        let residency = self
            .files
            .iter_mut()
            .map(|file| {
                let after = file.residency();
                (file.path.clone(), file.before.take(), after)
            })
            .collect();
        let maps_after = self.map_files();
        self.cost += at.elapsed();
        // Last, as this waits for a thread.
        let traced = self.trace.as_mut().and_then(|trace| trace.end(&watched(&self.files)));
        Observation {
            devices,
            residency,
            is_modified,
            has_peers: crate::peers::has_peers(),
            process_read_bytes: both(begin.process_read_bytes, process_read_bytes).map(|(a, b)| b.saturating_sub(a)),
            maps: self.maps.clone(),
            maps_after,
            samples: self.samples.clone(),
            traced,
            steal_share: both(begin.ticks, ticks).and_then(|(a, b)| steal_share(a, b)),
            processors: both(begin.ticks, ticks).map(|(a, b)| ProcessorUse {
                busy_ns: b.busy.saturating_sub(a.busy) * TICK_NS,
                interrupts_ns: b.interrupts.saturating_sub(a.interrupts) * TICK_NS,
                kernel_threads_ns: kernel_ticks.saturating_sub(begin.kernel_ticks) * TICK_NS,
            }),
            kernel_worker_wait_ns: both(begin.worker_wait_ns, worker_wait_ns).map(|(a, b)| b.saturating_sub(a)),
            throttled_ns: waited.map(|(a, b)| b.saturating_sub(a)),
            limited,
            limit_spans: None,
            cpu_pressure_share: pressure
                .map(|(a, b)| share_of(b.cpu_some_us.saturating_sub(a.cpu_some_us), measured_ns)),
            memory_pressure_share: pressure
                .and_then(|(a, b)| Some(share_of(b.memory_full_us?.saturating_sub(a.memory_full_us?), measured_ns))),
            clock_drift: None,
            clock_slew: clocks.slew_since(&self.created),
            stops: None,
            continue_count: 0,
            tracer: None,
            suspended_ns: clocks.suspended_since(&begin.clocks),
            clock_step_ns: clocks.stepped_since(&begin.clocks),
            disturbances: Vec::new(),
            usb: Vec::new(),
            heats,
            throttle_count: throttled.map(|(a, b)| b.saturating_sub(a)),
            background: self.background.clone(),
            notes: self.notes.iter().cloned().collect(),
            cost_ns: std::mem::take(&mut self.cost).as_nanos() as u64,
        }
    }

    /// Returns the time of the kernel's threads, if one of them carries I/O of the targets: those of loop devices, dm and md.
    fn kernel_ticks(&self) -> u64 {
        let mut layers = self.targets.iter().flat_map(|target| &target.stack);
        let has_threads = layers.any(|layer| layer.kind == LayerKind::Loop || layer.kind.is_stacked());
        if has_threads { kernel_thread_ticks(&self.system) } else { 0 }
    }

    fn temperatures(&self) -> Vec<Option<i64>> {
        self.disks.iter().map(|disk| Some(temperature(&self.system, &disk.name)?.millidegrees)).collect()
    }

    fn heats(&self, before: &[Option<i64>]) -> Vec<Heat> {
        let disks = self.disks.iter().zip(before);
        disks
            .filter_map(|(disk, before)| {
                let now = temperature(&self.system, &disk.name)?;
                Some(Heat {
                    disk: disk.name.clone(),
                    before_millidegrees: (*before)?,
                    after_millidegrees: now.millidegrees,
                    limit_millidegrees: now.limit_millidegrees,
                })
            })
            .collect()
    }

    /// Returns the use of each limit since `before`.
    fn limited(&self, before: &[Option<GroupIo>], span_ns: u64) -> Vec<LimitedIo> {
        let limits = self.limits.iter().zip(before);
        let used = limits.map(|(limit, before)| {
            let both = both(*before, group_io(&self.system, limit));
            let grown = |of: fn(&GroupIo) -> u64| both.map(|(a, b)| of(&b).saturating_sub(of(&a)));
            let moved = match limit.kind {
                IoLimitKind::ReadBytes => grown(|io| io.read_bytes),
                IoLimitKind::WriteBytes => grown(|io| io.write_bytes),
                IoLimitKind::ReadCount => grown(|io| io.read_count),
                IoLimitKind::WriteCount => grown(|io| io.write_count),
                IoLimitKind::LatencyTarget | IoLimitKind::CostWeight => None,
            };
            let grown_ns = |of: fn(&GroupIo) -> Option<u64>| {
                let (from, to) = both.and_then(|(a, b)| Some((of(&a)?, of(&b)?)))?;
                Some(to.saturating_sub(from).saturating_mul(1_000))
            };
            let (delayed_ns, stalled_ns) = (grown_ns(|io| io.delayed_us), grown_ns(|io| io.stalled_us));
            LimitedIo { limit: limit.clone(), moved, delayed_ns, stalled_ns, span_ns }
        });
        used.collect()
    }

    fn read(&self, disk: &str) -> Option<DeviceCounters> {
        counters(&self.system, disk).ok()
    }

    fn open_files(&mut self) {
        for file in self.files.iter_mut().filter(|file| file.file.is_none()) {
            match File::open(Path::new(&file.path)) {
                Ok(opened) => file.file = Some(opened),
                Err(error) => {
                    self.notes.insert(format!("cannot open `{}` to observe it ({error})", file.path));
                }
            }
        }
    }

    fn map_files(&mut self) -> Vec<FileMap> {
        let mut maps = Vec::new();
        for file in &self.files {
            let Some(opened) = &file.file else { continue };
            match map_file(opened, &file.path, file.offset_bytes, file.size_bytes) {
                Ok(map) => maps.push(map),
                Err(error) => {
                    self.notes.insert(format!("`{}` could not be mapped ({error})", file.path));
                }
            }
        }
        maps
    }
}

impl FileWatch {
    /// Returns when the file was modified; `None` if that is unknown.
    fn modified(&self) -> Option<SystemTime> {
        self.file.as_ref()?.metadata().ok()?.modified().ok()
    }

    fn residency(&self) -> Option<Residency> {
        let found = trueio_direct::residency(self.file.as_ref()?, self.offset_bytes, self.size_bytes).ok()?;
        // Pages under write-back are not written yet.
        let dirty_pages = found.dirty_pages.map(|dirty| dirty + found.writeback_pages.unwrap_or(0));
        Some(Residency {
            cached_pages: found.cached_pages,
            dirty_pages,
            region_pages: found.file_pages,
            page_bytes: found.page_size_bytes,
            source: found.source.to_owned(),
        })
    }
}

/// Returns the files that are open.
fn watched(files: &[FileWatch]) -> Vec<ObservedFile<'_>> {
    files
        .iter()
        .filter_map(|FileWatch { path, offset_bytes, size_bytes, file, .. }| {
            let (offset_bytes, size_bytes) = (*offset_bytes, *size_bytes);
            Some(ObservedFile { path, file: file.as_ref()?, offset_bytes, size_bytes })
        })
        .collect()
}

fn both<T>(a: Option<T>, b: Option<T>) -> Option<(T, T)> {
    a.zip(b)
}

/// Microseconds as a share of a span of nanoseconds.
fn share_of(us: u64, span_ns: u64) -> f64 {
    us as f64 * 1e3 / span_ns.max(1) as f64
}

/// `None` if the span is shorter than a tick.
fn steal_share(before: CpuTicks, after: CpuTicks) -> Option<f64> {
    let total = after.total.saturating_sub(before.total);
    (total > 0).then(|| after.steal.saturating_sub(before.steal) as f64 / total as f64)
}

/// Returns `after - before`. A counter that went backwards (another disk took the name) counts as zero.
fn difference(before: &DeviceCounters, after: &DeviceCounters) -> DeviceCounters {
    DeviceCounters {
        read_count: after.read_count.saturating_sub(before.read_count),
        read_bytes: after.read_bytes.saturating_sub(before.read_bytes),
        write_count: after.write_count.saturating_sub(before.write_count),
        write_bytes: after.write_bytes.saturating_sub(before.write_bytes),
        discard_count: after.discard_count.saturating_sub(before.discard_count),
        discard_bytes: after.discard_bytes.saturating_sub(before.discard_bytes),
        flush_count: both(before.flush_count, after.flush_count).map(|(a, b)| b.saturating_sub(a)),
        busy_ms: after.busy_ms.saturating_sub(before.busy_ms),
        weighted_ms: after.weighted_ms.saturating_sub(before.weighted_ms),
        read_merge_count: after.read_merge_count.saturating_sub(before.read_merge_count),
        write_merge_count: after.write_merge_count.saturating_sub(before.write_merge_count),
        read_ms: after.read_ms.saturating_sub(before.read_ms),
        write_ms: after.write_ms.saturating_sub(before.write_ms),
    }
}
