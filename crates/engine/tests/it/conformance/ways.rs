//! The engines in each way they are used, and which of them a case is meaningful for.

use crate::common::{Header, Job, header, skip};
use std::path::Path;
use trueio_engine::availability;
use trueio_model::{EngineKind, SimulatedDevice};

/// An engine in one of the ways it is used.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Way {
    pub(crate) name: &'static str,
    pub(crate) kind: EngineKind,
    pub(crate) is_registered: bool,
    pub(crate) depth: u32,
    /// In pieces, and every third by the kernel's own threads (io_uring).
    pub(crate) is_asked: bool,
}

const fn way(name: &'static str, kind: EngineKind, is_registered: bool, depth: u32) -> Way {
    Way { name, kind, is_registered, depth, is_asked: false }
}

const WAYS: [Way; 15] = [
    way("psync", EngineKind::Psync, false, 1),
    way("sync", EngineKind::Sync, false, 1),
    way("vsync", EngineKind::Vsync, false, 1),
    way("pvsync", EngineKind::Pvsync, false, 1),
    way("pvsync2", EngineKind::Pvsync2, false, 1),
    way("splice", EngineKind::Splice, false, 1),
    way("posixaio", EngineKind::Posixaio, false, 4),
    way("libaio", EngineKind::Libaio, false, 4),
    way("io_uring, registered", EngineKind::IoUring, true, 4),
    way("io_uring, not registered", EngineKind::IoUring, false, 4),
    Way { is_asked: true, ..way("io_uring, in pieces, some asynchronous", EngineKind::IoUring, false, 4) },
    way("mmap", EngineKind::Mmap, false, 1),
    way("null, one at a time", EngineKind::Null, false, 1),
    way("null", EngineKind::Null, false, 4),
    way("simulated", EngineKind::Simulated, false, 4),
];

impl Way {
    pub(crate) fn job(&self) -> Job {
        let mut job = Job::new(self.kind).depth(self.depth);
        job.plan.uring.registered_buffers = self.is_registered;
        job.plan.uring.registered_files = self.is_registered;
        (job.plan.uring.vectored, job.plan.uring.async_every) = (self.is_asked, if self.is_asked { 3 } else { 0 });
        if self.kind == EngineKind::Simulated {
            job.plan.simulated = Some(SimulatedDevice {
                service_ns: 10_000,
                channels: 2,
                stalls: Vec::new(),
                slowdowns: Vec::new(),
                failing_ios: Vec::new(),
            });
        }
        job
    }
}

/// Every engine variant that works on this machine.
pub(crate) fn all() -> impl Iterator<Item = Way> {
    let works = availability();
    WAYS.into_iter().filter(move |way| {
        let found = works.iter().find(|a| a.engine == way.kind).expect("every engine is probed");
        if !found.works {
            skip(way.kind.name(), &found.reason);
        }
        found.works
    })
}

/// Those that do real I/O.
pub(crate) fn on_files() -> impl Iterator<Item = Way> {
    all().filter(|way| way.kind.touches_files())
}

/// Those that make a system call for each I/O, which may fail.
pub(crate) fn by_calls() -> impl Iterator<Item = Way> {
    on_files().filter(|way| way.kind != EngineKind::Mmap)
}

/// Those that keep several real I/Os in flight.
pub(crate) fn with_queue() -> impl Iterator<Item = Way> {
    on_files().filter(|way| way.kind.holds_a_queue())
}

/// The header of each 4 KiB block of a file.
pub(crate) fn headers(path: &Path) -> Vec<Option<Header>> {
    let content = std::fs::read(path).unwrap();
    (0..content.len()).step_by(4096).map(|at| header(&content, at)).collect()
}
