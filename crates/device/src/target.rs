//! The facts of a target: its kind, its filesystem and disks, and whether it supports direct I/O.

use crate::error::DeviceError;
use crate::identity::PathIdentity;
use crate::io_limits::io_limits;
use crate::mounts::{Mount, mount_of, mounts};
use crate::stack::Stack;
use crate::system::System;
use crate::uuid::filesystem_uuid;
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::path::Path;
use trueio_direct::{AlignmentSource, Answer, Probe, ProbeError, Support};
use trueio_model::{
    AtomicWriteFacts, DirectFacts, DirectSupport, DiskFacts, Fact, FilesystemFacts, FilesystemKind, LayerKind,
    TargetFacts, TargetKind,
};

/// Returns the facts of the target at `path` and of all layers between it and the disks.
///
/// Links are followed. A path that does not exist yet has no facts; use its directory.
///
/// # Errors
/// [`DeviceError::Path`] if the path cannot be read, [`DeviceError::Kind`] if it stores no data (a pipe),
/// [`DeviceError::Kernel`] without `/proc`. Missing facts are not an error.
pub fn target_facts(system: &System, path: &Path) -> Result<TargetFacts, DeviceError> {
    facts_of(system, path, AskDirectory::Yes)
}

/// Like [`target_facts`], but does not probe a directory for direct I/O: no file is created in it, and nothing is opened
/// for writing.
///
/// # Errors
/// As [`target_facts`].
pub fn target_facts_unasked(system: &System, path: &Path) -> Result<TargetFacts, DeviceError> {
    facts_of(system, path, AskDirectory::No)
}

/// Whether an unnamed file may be created in a directory.
#[derive(Clone, Copy, PartialEq, Eq)]
enum AskDirectory {
    Yes,
    No,
}

fn facts_of(system: &System, path: &Path, ask: AskDirectory) -> Result<TargetFacts, DeviceError> {
    let identity = system.identify(path).map_err(|source| DeviceError::Path { path: path.to_owned(), source })?;
    let Some(kind) = identity.kind else { return Err(DeviceError::Kind { path: path.to_owned() }) };
    let mounts = mounts(system)?;
    let mut stack = Stack::new(system, &mounts);
    let mut filesystem = None;
    match kind {
        TargetKind::BlockDevice => stack.descend_from_device(identity.device),
        TargetKind::CharacterDevice => {}
        TargetKind::Directory | TargetKind::File => {
            filesystem = mount_of(&mounts, &identity).map(|mount| filesystem_facts(system, &identity, mount));
            let layer = if kind == TargetKind::File { LayerKind::File } else { LayerKind::Directory };
            stack.descend_from_path(layer, &identity);
        }
    }
    let Stack { layers, disks, devices, .. } = stack;
    let io_limits = io_limits(system, &mounts, &devices);
    let direct = if kind == TargetKind::Directory && ask == AskDirectory::No {
        not_probed("it was not probed".to_owned(), filesystem.as_ref(), &disks)
    } else {
        direct_facts(system, &identity, kind, filesystem.as_ref(), &disks)
    };
    let size_bytes = size_bytes(system, &identity, kind);
    let path = path.display().to_string();
    Ok(TargetFacts { path, kind, size_bytes, filesystem, stack: layers, disks, direct, io_limits, driven: None })
}

fn size_bytes(system: &System, identity: &PathIdentity, kind: TargetKind) -> Fact<u64> {
    match kind {
        TargetKind::File => Fact::known(identity.size_bytes, "stat"),
        TargetKind::BlockDevice => {
            let (major, minor) = identity.device;
            let sectors: Fact<u64> = system.number(&format!("/sys/dev/block/{major}:{minor}/size"));
            Fact { value: sectors.value.map(|n| n * 512), source: sectors.source }
        }
        TargetKind::Directory => Fact::unknown("a directory has no size of its own"),
        TargetKind::CharacterDevice => Fact::unknown("a character device has no size"),
    }
}

fn filesystem_facts(system: &System, identity: &PathIdentity, mount: &Mount) -> FilesystemFacts {
    let unknown = |why: &str| (Fact::unknown(why), Fact::unknown(why), Fact::unknown(why));
    let (size_bytes, available_bytes, block_bytes) = if !system.is_live() {
        unknown("a recorded machine has no free space")
    } else {
        match rustix::fs::statvfs(&identity.path) {
            Ok(stat) => (
                Fact::known(stat.f_blocks * stat.f_frsize, "statvfs"),
                Fact::known(stat.f_bavail * stat.f_frsize, "statvfs"),
                Fact::known(stat.f_frsize, "statvfs"),
            ),
            Err(error) => unknown(&format!("statvfs: {error}")),
        }
    };
    FilesystemFacts {
        kind: mount.kind.clone(),
        mount_point: mount.mount_point.display().to_string(),
        source: mount.source.clone(),
        options: mount.options(),
        size_bytes,
        available_bytes,
        block_bytes,
        uuid: filesystem_uuid(system, identity, mount),
    }
}

/// Probes direct I/O. In a directory, an unnamed temporary file is probed: new files inherit the directory's flags
/// (`chattr +j`, `+C`), which decide.
fn direct_facts(
    system: &System,
    identity: &PathIdentity,
    kind: TargetKind,
    filesystem: Option<&FilesystemFacts>,
    disks: &[DiskFacts],
) -> DirectFacts {
    if !system.is_live() {
        return not_probed("a recorded machine cannot be probed".to_owned(), filesystem, disks);
    }
    let probe = match kind {
        TargetKind::CharacterDevice => return not_probed("a character device".to_owned(), filesystem, disks),
        TargetKind::File | TargetKind::BlockDevice => trueio_direct::probe(&identity.path),
        TargetKind::Directory => match nameless_file(&identity.path) {
            Ok(file) => trueio_direct::probe_file(&file),
            Err(error) => {
                let why = format!("no file could be created in this directory to probe it ({error})");
                return not_probed(why, filesystem, disks);
            }
        },
    };
    match probe {
        Ok(probe) => from_probe(&probe),
        Err(ProbeError::Io { source, .. }) => not_probed(format!("probing failed ({source})"), filesystem, disks),
        Err(error) => not_probed(error.to_string(), filesystem, disks),
    }
}

fn nameless_file(directory: &Path) -> rustix::io::Result<File> {
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    rustix::fs::open(directory, flags, Mode::RUSR | Mode::WUSR).map(File::from)
}

fn from_probe(probe: &Probe) -> DirectFacts {
    let alignment = &probe.alignment;
    let number = |value: Option<u32>| Fact { value, source: alignment.source.to_string() };
    let support = match &probe.support {
        Support::Direct => DirectSupport::Direct,
        Support::SilentlyBuffered { .. } => DirectSupport::SilentlyBuffered,
        Support::Refused { .. } => DirectSupport::Refused,
        _ => DirectSupport::Unknown,
    };
    DirectFacts {
        support,
        reason: probe.reason.clone(),
        memory_alignment_bytes: number(alignment.memory_bytes),
        write_alignment_bytes: number(alignment.write_offset_bytes),
        read_alignment_bytes: number(alignment.read_offset_bytes),
        atomic_write: match (probe.atomic_write_answer, probe.atomic_write) {
            (_, Some(limits)) => {
                let facts = AtomicWriteFacts { min_bytes: limits.min_bytes, max_bytes: limits.max_bytes };
                Fact::known(facts, ATOMIC_SOURCE)
            }
            (Answer::No, None) => Fact::known(AtomicWriteFacts { min_bytes: 0, max_bytes: 0 }, ATOMIC_SOURCE),
            (_, None) => Fact::unknown(format!("{ATOMIC_SOURCE} does not report it")),
        },
    }
}

/// Linux 6.11.
const ATOMIC_SOURCE: &str = "statx(2) STATX_WRITE_ATOMIC";

/// Returns the facts without a probe: filesystems that keep their files in memory have no direct I/O; for others, the
/// required alignment is the largest logical sector of the disks.
fn not_probed(why: String, filesystem: Option<&FilesystemFacts>, disks: &[DiskFacts]) -> DirectFacts {
    let in_memory = filesystem.is_some_and(|f| matches!(f.kind, FilesystemKind::Tmpfs | FilesystemKind::Ramfs));
    if in_memory {
        let number = || Fact::known(1, AlignmentSource::NotNeeded.to_string());
        return DirectFacts {
            support: DirectSupport::SilentlyBuffered,
            reason: "the filesystem keeps its files in memory".to_owned(),
            memory_alignment_bytes: number(),
            write_alignment_bytes: number(),
            read_alignment_bytes: number(),
            atomic_write: Fact::known(AtomicWriteFacts { min_bytes: 0, max_bytes: 0 }, "a filesystem in memory"),
        };
    }
    let sector = disks.iter().filter_map(|disk| disk.logical_sector_bytes.value).max();
    let number = || match sector {
        Some(bytes) => Fact::known(bytes, AlignmentSource::SectorSize.to_string()),
        None => Fact::unknown(why.clone()),
    };
    DirectFacts {
        support: DirectSupport::Unknown,
        reason: why.clone(),
        memory_alignment_bytes: number(),
        write_alignment_bytes: number(),
        read_alignment_bytes: number(),
        atomic_write: Fact::unknown(why.clone()),
    }
}
