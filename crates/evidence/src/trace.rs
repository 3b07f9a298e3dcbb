//! Single requests of the disks, by the tracepoints of the block layer: level E3.
//!
//! Counters say how much; this says which. In short windows ([`window`]) every request of the disks
//! under our files is traced in an instance of our own ([`tracefs`]), and the workers note the I/Os of the
//! same moments. Files' places on the disk ([`place`]) join the two ([`matching`]): each sampled transfer
//! must have its request at its place, each sampled durable write its flush after its data and before
//! its return, and requests elsewhere are others'.
//!
//! Needs root. Cannot see: what happens between windows; what becomes of a request inside the disk.

pub(crate) mod format;
mod matching;
mod place;
pub(crate) mod tracefs;
pub(crate) mod window;

pub use place::{FilePlace, Piece, TracedDisk};

use crate::facts::{PhaseFacts, Way};
use format::Formats;
use matching::JobSamples;
use place::Ground;
use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use tracefs::{Instance, Recording, Tracefs};
use trueio_device::System;
use trueio_model::{SampledIo, TargetFacts, TraceRecord};
use window::{Sampler, Window};

/// Whether requests can be traced here and now: `None` if they can, else why not. Nothing is left.
pub fn why_not_traced() -> Option<String> {
    let tried = Tracefs::open().and_then(|tracefs| {
        tracefs.formats()?;
        Instance::new(tracefs, Recording::of_requests(&[0]))
    });
    tried.err()
}

/// What was traced in a phase.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Traced {
    /// Why nothing was.
    pub missing: Option<String>,
    /// Whose requests were traced.
    pub disks: Vec<TracedDisk>,
    /// Where the files lie on them.
    pub places: Vec<FilePlace>,
    /// Why requests elsewhere may be ours all the same.
    pub inseparable: Option<String>,
    /// CPU time of the thread that traced, in nanoseconds.
    pub thread_cpu_ns: u64,
    /// Oldest first.
    pub(crate) windows: Vec<Window>,
}

impl Traced {
    /// Matches what the workers sampled: for each of the phase's jobs a list for each worker, in the order
    /// of completion.
    pub fn assess(&self, facts: &PhaseFacts<'_>, samples: &[Vec<Vec<SampledIo>>]) -> TraceRecord {
        let jobs = facts.jobs.iter().zip(samples);
        let jobs = jobs.map(|(job, workers)| JobSamples { job, is_direct: facts.way(job) == Way::Direct, workers });
        matching::assess(self, &jobs.collect::<Vec<_>>())
    }
}

/// A file to be looked for on its disk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Watched<'a> {
    pub(crate) path: &'a str,
    pub(crate) file: &'a File,
    pub(crate) offset_bytes: u64,
    pub(crate) size_bytes: u64,
}

/// Traces one phase.
#[derive(Debug)]
pub(crate) struct Trace {
    number: Arc<AtomicU32>,
    ready: Option<(Instance, Formats)>,
    sampler: Option<Sampler>,
    /// An instance that has done its work. Removing it takes tens of milliseconds, so it waits for the end.
    spent: Option<Instance>,
    /// For each of `seen.places` the file's name and its ground.
    grounds: Vec<(String, Ground)>,
    seen: Traced,
    has_told: bool,
}

impl Trace {
    /// Looks for the files' places and prepares an instance; nothing is traced yet.
    pub(crate) fn new(system: &System, targets: &[TargetFacts], files: &[Watched<'_>]) -> Self {
        let mut trace = Self {
            number: Arc::new(AtomicU32::new(0)),
            ready: None,
            sampler: None,
            spent: None,
            grounds: Vec::new(),
            seen: Traced::default(),
            has_told: false,
        };
        if files.is_empty() {
            trace.seen.missing = Some("no file is there to be looked for".to_owned());
            return trace;
        }
        let mut why = None;
        for file in files {
            if let Err(reason) = trace.place(system, targets, file) {
                why.get_or_insert(reason);
            }
        }
        if trace.grounds.is_empty() {
            trace.seen.missing = why;
            return trace;
        }
        trace.seen.inseparable = why;
        let devices: Vec<u32> = trace.seen.disks.iter().map(|disk| disk.device).collect();
        let made = Tracefs::open().and_then(|tracefs| {
            let formats = tracefs.formats()?;
            Ok((Instance::new(tracefs, Recording::of_requests(&devices))?, formats))
        });
        match made {
            Ok(ready) => trace.ready = Some(ready),
            Err(reason) => trace.seen.missing = Some(reason),
        }
        trace
    }

    fn place(&mut self, system: &System, targets: &[TargetFacts], watched: &Watched<'_>) -> Result<(), String> {
        let ground = Ground::of(system, watched.file, targets)?;
        let (before, has_all) = ground.pieces(watched.file, watched.offset_bytes, watched.size_bytes)?;
        if !has_all {
            self.note_unplaced();
        }
        let known = self.seen.disks.iter().position(|disk| *disk == ground.disk);
        let disk = known.unwrap_or_else(|| {
            self.seen.disks.push(ground.disk.clone());
            self.seen.disks.len() - 1
        });
        self.seen.places.push(FilePlace { path: watched.path.to_owned(), disk, before, after: Vec::new() });
        self.grounds.push((watched.path.to_owned(), ground));
        Ok(())
    }

    fn note_unplaced(&mut self) {
        let reason = "a part of our files has no place on the disk that is known";
        self.seen.inseparable.get_or_insert_with(|| reason.to_owned());
    }

    /// The number of the open window, for the workers; `None` if nothing will be traced.
    pub(crate) fn sample_window(&self) -> Option<Arc<AtomicU32>> {
        self.ready.is_some().then(|| Arc::clone(&self.number))
    }

    /// Opens the first window.
    pub(crate) fn begin(&mut self) {
        let Some((instance, formats)) = self.ready.take() else { return };
        match Sampler::begin(instance, formats, Arc::clone(&self.number)) {
            Ok(sampler) => self.sampler = Some(sampler),
            Err(reason) => self.seen.missing = Some(reason),
        }
    }

    /// Closes the last window, looks where the files lie now, and tells. One trace serves one phase: `None`
    /// the next time.
    pub(crate) fn end(&mut self, files: &[Watched<'_>]) -> Option<Traced> {
        if std::mem::replace(&mut self.has_told, true) {
            return None;
        }
        if let Some(sampler) = self.sampler.take() {
            match sampler.end() {
                Ok((windows, thread_cpu_ns, instance)) => {
                    self.seen.windows = windows;
                    self.seen.thread_cpu_ns = thread_cpu_ns;
                    self.spent = Some(instance);
                }
                Err(reason) => self.seen.missing = Some(reason),
            }
        }
        for index in 0..self.grounds.len() {
            let (path, ground) = &self.grounds[index];
            let path = path.clone();
            let Some(file) = files.iter().find(|file| file.path == path) else { continue };
            match ground.pieces(file.file, file.offset_bytes, file.size_bytes) {
                Ok((after, has_all)) => {
                    self.seen.places[index].after = after;
                    if !has_all {
                        self.note_unplaced();
                    }
                }
                Err(reason) => drop(self.seen.inseparable.get_or_insert(reason)),
            }
        }
        Some(std::mem::take(&mut self.seen))
    }
}
