//! Traces the block requests of one phase: prepares an instance, opens and closes windows, locates files.

use super::attribution::ended;
use super::extents::{FileExtents, FileLocation};
use super::format::Formats;
use super::layers::encode;
use super::loops::OpenLoops;
use super::phase_trace::PhaseTrace;
use super::tracefs::{Instance, RecordedDevices, Recording, Tracefs};
use super::window::{Paths, Sampler, TracedDevices, Window, WindowRequests};
use super::write_back::disks_of;
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Duration;
use trueio_device::System;
use trueio_model::TargetFacts;

/// Returns the reason why requests cannot be traced; `None` if they can. Removes everything that it creates.
pub fn why_not_traced() -> Option<String> {
    let tried = Tracefs::open().and_then(|tracefs| {
        tracefs.formats(false)?;
        let any = RecordedDevices { disks: vec![0], has_scheduler: true, ..RecordedDevices::default() };
        Instance::new(tracefs, Recording::of_requests(&any))
    });
    tried.err()
}

/// An open file and the region of it that a job uses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ObservedFile<'a> {
    pub(crate) path: &'a str,
    pub(crate) file: &'a File,
    pub(crate) offset_bytes: u64,
    pub(crate) size_bytes: u64,
}

/// Returns the threads of other programs in a trace that have ended.
fn ended_in(windows: &[&Window]) -> Vec<i32> {
    let requests = windows.iter().flat_map(|window| window.requests.iter().chain(&window.below));
    let others = requests.filter(|request| !request.is_own && request.process > 0).map(|request| request.process);
    let dirtied = windows.iter().flat_map(|window| &window.pages.dirtied).map(|dirtied| dirtied.process);
    let mut others: Vec<i32> = others.chain(dirtied).collect();
    others.sort_unstable();
    others.dedup();
    others.retain(|number| ended(*number));
    others
}

/// Returns the inode to which the pages of a file or block device belong.
fn inode_of(file: &File) -> Option<u64> {
    let metadata = file.metadata().ok()?;
    let number = metadata.rdev();
    // That of a block device is its number.
    let of_device = || u64::from(encode(rustix::fs::major(number), rustix::fs::minor(number)));
    Some(if metadata.file_type().is_block_device() { of_device() } else { metadata.ino() })
}

/// Returns the disks below each backing device with dirty pages of others.
fn backing_of(system: &System, windows: &[&Window]) -> BTreeMap<String, Vec<u32>> {
    let dirtied = windows.iter().flat_map(|window| &window.pages.dirtied);
    let names: BTreeSet<&String> = dirtied.map(|dirtied| &dirtied.file.backing).collect();
    names.into_iter().map(|name| (name.clone(), disks_of(system, name))).collect()
}

/// The tracing of one phase.
#[derive(Debug)]
pub(crate) struct TraceSession {
    number: Arc<AtomicU32>,
    ready: Option<(Instance, Formats)>,
    sampler: Option<Sampler>,
    /// A finished instance. Removing it takes tens of milliseconds, so it is removed at the end.
    spent: Option<Instance>,
    system: System,
    /// Path and location of each of `seen.files`.
    locations: Vec<(String, FileLocation)>,
    /// The files of loop devices under them.
    loops: OpenLoops,
    seen: PhaseTrace,
    has_ended: bool,
}

impl TraceSession {
    /// Locates the files on their disks and prepares an instance for a phase that writes through the page cache (`dirties_pages`) or
    /// does not. Nothing is traced yet.
    pub(crate) fn new(
        system: &System,
        targets: &[TargetFacts],
        files: &[ObservedFile<'_>],
        dirties_pages: bool,
    ) -> Self {
        let mut trace = Self {
            number: Arc::new(AtomicU32::new(0)),
            ready: None,
            sampler: None,
            spent: None,
            system: system.clone(),
            locations: Vec::new(),
            loops: OpenLoops::default(),
            seen: PhaseTrace::default(),
            has_ended: false,
        };
        if files.is_empty() {
            trace.seen.missing = Some("there is no file to locate on the disk".to_owned());
            return trace;
        }
        let mut why = None;
        for file in files {
            if let Err(reason) = trace.locate(system, targets, file) {
                why.get_or_insert(reason);
            }
        }
        if trace.locations.is_empty() {
            trace.seen.missing = why;
            return trace;
        }
        trace.seen.inseparable = why;
        trace.loops = OpenLoops::below(system, &trace.seen.layers.disks);
        let mut recorded = trace.seen.layers.clone();
        recorded.join(&trace.loops.seen.layers);
        let devices = recorded.recorded();
        let made = Tracefs::open().and_then(|tracefs| {
            let formats = tracefs.formats(!devices.passing.is_empty())?;
            let recording = Recording::of_requests(&devices).with_pages(&formats, dirties_pages);
            Ok((Instance::new(tracefs, recording)?, formats))
        });
        match made {
            Ok(ready) => trace.ready = Some(ready),
            Err(reason) => trace.seen.missing = Some(reason),
        }
        trace
    }

    fn locate(&mut self, system: &System, targets: &[TargetFacts], watched: &ObservedFile<'_>) -> Result<(), String> {
        let location = FileLocation::of(system, watched.file, targets)?;
        let (before, has_all) = location.pieces(watched.file, watched.offset_bytes, watched.size_bytes)?;
        if !has_all {
            self.note_unknown_offsets();
        }
        self.seen.layers.join(&location.layers);
        self.seen.files.push(FileExtents {
            path: watched.path.to_owned(),
            space: location.space.clone(),
            moves_on_write: location.moves_on_write,
            before,
            after: Vec::new(),
        });
        let disks = location.layers.disks.iter().map(|disk| disk.device).collect();
        self.seen.inodes.extend(inode_of(watched.file).map(|inode| (disks, inode)));
        self.locations.push((watched.path.to_owned(), location));
        Ok(())
    }

    fn note_unknown_offsets(&mut self) {
        let reason = "the disk offsets of a part of the measured files are unknown";
        self.seen.inseparable.get_or_insert_with(|| reason.to_owned());
    }

    /// Returns the number of the open window, for the workers; `None` if nothing will be traced.
    pub(crate) fn sample_window(&self) -> Option<Arc<AtomicU32>> {
        self.ready.is_some().then(|| Arc::clone(&self.number))
    }

    /// Opens the first window of a phase that will take `length`, if that is known.
    pub(crate) fn begin(&mut self, length: Option<Duration>) {
        let Some((instance, formats)) = self.ready.take() else { return };
        let (measured, loops) = (&self.seen.layers, &self.loops.seen.layers);
        let below = loops.disks.iter().map(|disk| disk.device).filter(|device| measured.disk(*device).is_none());
        let mut layers = measured.clone();
        layers.join(loops);
        let devices = TracedDevices { paths: Paths::new(&layers), below: below.collect() };
        match Sampler::begin(instance, formats, devices, Arc::clone(&self.number), length) {
            Ok(sampler) => self.sampler = Some(sampler),
            Err(reason) => self.seen.missing = Some(reason),
        }
    }

    /// Returns how further windows are asked for; `None` while nothing is traced.
    pub(crate) fn window_requests(&self) -> Option<WindowRequests> {
        self.sampler.as_ref().map(Sampler::requests)
    }

    /// Closes the last window, locates the files again, and returns the trace. A session serves one phase:
    /// `None` on the second call.
    pub(crate) fn end(&mut self, files: &[ObservedFile<'_>]) -> Option<PhaseTrace> {
        if std::mem::replace(&mut self.has_ended, true) {
            return None;
        }
        if let Some(sampler) = self.sampler.take() {
            match sampler.end() {
                Ok((windows, thread_cpu_ns, instance)) => {
                    (self.seen.windows, self.seen.asked) = (windows.drawn, windows.asked);
                    self.seen.ended = ended_in(&self.seen.all_windows());
                    self.seen.backing = backing_of(&self.system, &self.seen.all_windows());
                    self.seen.thread_cpu_ns = thread_cpu_ns;
                    self.spent = Some(instance);
                }
                Err(reason) => self.seen.missing = Some(reason),
            }
        }
        for index in 0..self.locations.len() {
            let (path, location) = &mut self.locations[index];
            let Some(file) = files.iter().find(|file| file.path == *path) else { continue };
            let refreshed = location.refresh(&self.system, file.file);
            let mapped = refreshed.and_then(|()| location.pieces(file.file, file.offset_bytes, file.size_bytes));
            let seen = &mut self.seen.files[index];
            match mapped {
                Ok((after, has_all)) => {
                    seen.space = location.space.clone();
                    seen.after = after;
                    if seen.moves_on_write && seen.before != seen.after {
                        let reason = "the filesystem writes each block to a new place";
                        self.seen.inseparable.get_or_insert_with(|| reason.to_owned());
                    }
                    if !has_all {
                        self.note_unknown_offsets();
                    }
                }
                Err(reason) => drop(self.seen.inseparable.get_or_insert(reason)),
            }
        }
        self.seen.loops = std::mem::take(&mut self.loops).end(&self.system);
        Some(std::mem::take(&mut self.seen))
    }
}
