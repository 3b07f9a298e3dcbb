//! Reads the witnesses around a phase.
//!
//! The order matters. [`Watch::baseline`] opens and maps the files, which may take a while, then
//! looks at the disks while nothing of ours runs. [`Watch::before`] counts the files' cached pages
//! first and the disks' requests last, just before the first measured I/O is issued;
//! [`Watch::after`] counts the disks first. So the counted span contains the measured one, and
//! little else.
//!
//! Cost: one small read a disk, one `cachestat` a file, two small reads for the process and the
//! processors. [`Observation::cost_ns`] says what it was. Files are opened for reading only.

use crate::filemap::{FileMap, map_file};
use std::collections::BTreeSet;
use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};
use trueio_device::{CpuTicks, System, counters, cpu_ticks, process_io};
use trueio_model::{DeviceCounters, DeviceDelta, FilePlan, Prepare, Residency, TargetFacts};

/// The witnesses of one phase.
#[derive(Debug)]
pub struct Watch {
    system: System,
    disks: Vec<DiskWatch>,
    files: Vec<FileWatch>,
    maps: Vec<FileMap>,
    notes: BTreeSet<String>,
    begin: Option<Begin>,
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
}

/// What was counted when the phase began, apart from disks and files.
#[derive(Debug)]
struct Begin {
    process_read_bytes: Option<u64>,
    ticks: Option<CpuTicks>,
    at: Instant,
}

/// What was seen of a phase.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Observation {
    /// What each disk counted. A disk that could not be read is not in it; a note says so.
    pub devices: Vec<DeviceDelta>,
    /// Cached pages of each file: (path, before, after).
    pub residency: Vec<(String, Option<Residency>, Option<Residency>)>,
    /// Bytes that this process caused to be fetched from storage.
    pub process_read_bytes: Option<u64>,
    /// What of each file was stored when the phase began.
    pub maps: Vec<FileMap>,
    /// Share of all processors' time that the hypervisor took, from 0 to 1.
    pub steal_share: Option<f64>,
    /// What could not be watched, one sentence each.
    pub notes: Vec<String>,
    /// What the watching itself took in and around the phase, in nanoseconds; the baseline is not
    /// in it.
    pub cost_ns: u64,
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
        let mut watched: Vec<FileWatch> = Vec::new();
        for FilePlan { path, prepare, offset_bytes, size_bytes, .. } in files {
            if *prepare == Prepare::Nothing {
                continue;
            }
            let (path, offset_bytes, size_bytes) = (path.clone(), *offset_bytes, *size_bytes);
            if !watched.iter().any(|known| known.path == path && known.offset_bytes == offset_bytes) {
                watched.push(FileWatch { path, offset_bytes, size_bytes, file: None, before: None });
            }
        }
        Self {
            system: system.clone(),
            disks,
            files: watched,
            maps: Vec::new(),
            notes: BTreeSet::new(),
            begin: None,
            cost: Duration::ZERO,
        }
    }

    /// Opens and maps the files, then watches the disks for `length` while nothing of ours runs.
    /// The files should be there and their data flushed, or their writing would be taken for
    /// others' I/O. A length of zero takes no baseline: others' I/O cannot be told from ours then.
    pub fn baseline(&mut self, length: Duration) {
        self.open_files();
        self.map_files();
        if length.is_zero() {
            return;
        }
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

    /// To be called just before the first measured I/O is issued.
    pub fn before(&mut self) {
        let at = Instant::now();
        self.open_files();
        for file in &mut self.files {
            file.before = file.residency();
        }
        let ticks = cpu_ticks(&self.system).ok();
        let process_read_bytes = process_io(&self.system).ok().map(|io| io.read_bytes);
        for index in 0..self.disks.len() {
            self.disks[index].before = self.read(&self.disks[index].name);
        }
        self.cost += at.elapsed();
        self.begin = Some(Begin { process_read_bytes, ticks, at: Instant::now() });
    }

    /// To be called just after the last measured I/O completed.
    ///
    /// # Panics
    /// If [`Watch::before`] was not called since the last time.
    pub fn after(&mut self) -> Observation {
        let at = Instant::now();
        let begin = self.begin.take().expect("`before` is called first");
        let measured_ns = (at - begin.at).as_nanos() as u64;
        let after: Vec<Option<DeviceCounters>> = self.disks.iter().map(|disk| self.read(&disk.name)).collect();
        let process_read_bytes = process_io(&self.system).ok().map(|io| io.read_bytes);
        let ticks = cpu_ticks(&self.system).ok();
        let mut devices = Vec::new();
        for (disk, after) in self.disks.iter_mut().zip(after) {
            let (Some(before), Some(after)) = (disk.before.take(), after) else {
                self.notes.insert(format!("the counters of {} could not be read", disk.name));
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
        let residency = self
            .files
            .iter_mut()
            .map(|file| {
                let after = file.residency();
                (file.path.clone(), file.before.take(), after)
            })
            .collect();
        self.cost += at.elapsed();
        Observation {
            devices,
            residency,
            process_read_bytes: both(begin.process_read_bytes, process_read_bytes).map(|(a, b)| b.saturating_sub(a)),
            maps: self.maps.clone(),
            steal_share: both(begin.ticks, ticks).and_then(|(a, b)| steal_share(a, b)),
            notes: self.notes.iter().cloned().collect(),
            cost_ns: std::mem::take(&mut self.cost).as_nanos() as u64,
        }
    }

    fn read(&self, disk: &str) -> Option<DeviceCounters> {
        counters(&self.system, disk).ok()
    }

    fn open_files(&mut self) {
        for file in self.files.iter_mut().filter(|file| file.file.is_none()) {
            match File::open(Path::new(&file.path)) {
                Ok(opened) => file.file = Some(opened),
                Err(error) => {
                    self.notes.insert(format!("`{}` could not be opened to be watched ({error})", file.path));
                }
            }
        }
    }

    fn map_files(&mut self) {
        self.maps.clear();
        for file in &self.files {
            let Some(opened) = &file.file else { continue };
            match map_file(opened, &file.path, file.offset_bytes, file.size_bytes) {
                Ok(map) => self.maps.push(map),
                Err(error) => {
                    self.notes.insert(format!("`{}` could not be mapped ({error})", file.path));
                }
            }
        }
    }
}

impl FileWatch {
    fn residency(&self) -> Option<Residency> {
        let found = trueio_direct::residency(self.file.as_ref()?, self.offset_bytes, self.size_bytes).ok()?;
        // Pages under write-back are on their way, and not yet written either.
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

fn both<T>(a: Option<T>, b: Option<T>) -> Option<(T, T)> {
    a.zip(b)
}

/// `None` if the span is shorter than a tick.
fn steal_share(before: CpuTicks, after: CpuTicks) -> Option<f64> {
    let total = after.total.saturating_sub(before.total);
    (total > 0).then(|| after.steal.saturating_sub(before.steal) as f64 / total as f64)
}

/// A counter that went backwards (the disk was replaced under its name) counts as nothing.
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
    }
}
