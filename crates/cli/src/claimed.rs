//! A disk under test: planned and claimed as the target of a job, and read and written past the page cache.

use crate::failure::Failure;
use std::io;
use std::os::unix::fs::MetadataExt;
use trueio_direct::{AlignedBuffer, DirectFile, FlushLevel, SyncMode, TransferError};
use trueio_job::{CommandFiles, FactsSource, Machine, Target};
use trueio_model::{JobSpec, Origin, TargetFacts, TargetKind, error_line};
use trueio_powercut::{BLOCK_BYTES, Disk, DiskIdentity};
use trueio_report::message;
use trueio_run::Targets;
use trueio_run::machine::{MachineFacts, machine};
use trueio_run::planning::{may_run, planned_and_claimed};

/// A target that is claimed until this value is dropped.
pub(crate) struct Claimed {
    pub(crate) path: String,
    pub(crate) facts: TargetFacts,
    pub(crate) identity: DiskIdentity,
    /// The names of its signatures.
    pub(crate) signatures: Vec<String>,
    pub(crate) disk: DirectDisk,
    pub(crate) targets: Targets,
}

impl Claimed {
    /// Plans a job that writes all of the target, with all refusals of one, and claims the target. `signatures` are those
    /// that may be written over, `command` is the command's name.
    ///
    /// # Errors
    /// A rule refuses the job, or the target cannot be claimed.
    pub(crate) fn of(
        command: &str,
        path: &str,
        signatures: Option<&str>,
        command_files: CommandFiles,
    ) -> Result<Self, Failure> {
        let facts = facts_of(path)?;
        let size_bytes = facts.size_bytes.value.unwrap_or(0);
        let mut spec = JobSpec::new(command);
        let escaped = path.replace(':', "\\:");
        let size = (size_bytes / BLOCK_BYTES as u64 * BLOCK_BYTES as u64).to_string();
        let options = [
            ("filename", escaped.as_str()),
            ("overwrite_existing", &escaped),
            ("rw", "write"),
            ("bs", "4k"),
            ("size", &size),
            ("direct", "require"),
            ("ioengine", "psync"),
        ];
        for (option, value) in options.into_iter().chain(signatures.map(|names| ("overwrite_signature", names))) {
            spec.set(option, value, Origin::Preset { name: command.to_owned() });
        }
        let names = signatures_of(path)?;
        let machine = Machine { command_files, ..machine(0) };
        let (plan, targets) = planned_and_claimed(&[spec], &machine, may_run)?;
        plan.notes.iter().for_each(|note| message!("note: {note}"));
        let file = targets.open_direct(path, SyncMode::None).map_err(|e| Failure::refused_by(&e, None))?;
        let inode =
            (facts.kind == TargetKind::File).then(|| file.file().metadata().map(|found| found.ino()).ok()).flatten();
        let identity = identity_of(&facts, size_bytes, inode);
        Ok(Self { path: path.to_owned(), facts, identity, signatures: names, disk: DirectDisk::new(file), targets })
    }
}

/// Returns the facts of an existing target.
pub(crate) fn facts_of(path: &str) -> Result<TargetFacts, Failure> {
    match MachineFacts::without_probing().look(path) {
        Target::Present(facts) if matches!(facts.kind, TargetKind::File | TargetKind::BlockDevice) => Ok(*facts),
        Target::Present(_) => Err(Failure::refused(format!("`{path}` is neither a block device nor a file"))),
        Target::Missing => Err(Failure::refused(format!("`{path}` does not exist\n\nhint: name a block device"))),
        Target::Unreadable(reason) => {
            Err(Failure::refused(format!("`{path}` cannot be examined\n  because: {reason}")))
        }
    }
}

/// Returns the names of the signatures on a device, each once; of a file there are none.
pub(crate) fn signatures_of(path: &str) -> Result<Vec<String>, Failure> {
    if facts_of(path)?.kind == TargetKind::File {
        return Ok(Vec::new());
    }
    let found = MachineFacts::without_probing().in_use(path).map_err(|reason| {
        Failure::refused(format!("the signatures of `{path}` cannot be read\n  because: {reason}"))
    })?;
    let mut names: Vec<String> = found.marks.into_iter().map(|mark| mark.name).collect();
    names.sort();
    names.dedup();
    Ok(names)
}

/// Returns what distinguishes a disk from others. Only a target on one disk has a model and a serial number.
pub(crate) fn identity_of(facts: &TargetFacts, size_bytes: u64, inode: Option<u64>) -> DiskIdentity {
    let disk = match facts.disks.as_slice() {
        [disk] if facts.kind == TargetKind::BlockDevice => Some(disk),
        _ => None,
    };
    let of = |value: Option<&trueio_model::Fact<String>>| value.and_then(|fact| fact.value.clone());
    DiskIdentity {
        size_bytes,
        model: of(disk.map(|disk| &disk.model)),
        serial: of(disk.map(|disk| &disk.serial)),
        wwid: of(disk.map(|disk| &disk.wwid)),
        inode,
    }
}

/// Returns whether two identities are of one disk, as far as both are known.
pub(crate) fn same_disk(one: &DiskIdentity, other: &DiskIdentity) -> bool {
    fn agree<T: PartialEq>(one: &Option<T>, other: &Option<T>) -> bool {
        one.is_none() || other.is_none() || one == other
    }
    one.size_bytes == other.size_bytes
        && agree(&one.model, &other.model)
        && agree(&one.serial, &other.serial)
        && agree(&one.wwid, &other.wwid)
        && one.inode == other.inode
}

/// A disk that is read and written past the page cache, through aligned memory.
pub(crate) struct DirectDisk {
    file: DirectFile,
    buffer: Option<AlignedBuffer>,
}

impl DirectDisk {
    fn new(file: DirectFile) -> Self {
        Self { file, buffer: None }
    }

    /// Returns aligned memory of a length.
    fn buffer(&mut self, length: usize) -> io::Result<AlignedBuffer> {
        match self.buffer.take().filter(|buffer| buffer.len() == length) {
            Some(buffer) => Ok(buffer),
            None => AlignedBuffer::new(length, BLOCK_BYTES).map_err(io::Error::other),
        }
    }
}

fn kernel_error(error: TransferError) -> io::Error {
    error.raw_os_error().map_or_else(|| io::Error::other(error_line(&error)), io::Error::from_raw_os_error)
}

impl Disk for DirectDisk {
    fn read(&mut self, block: u64, data: &mut [u8]) -> io::Result<()> {
        let mut buffer = self.buffer(data.len())?;
        let read = self.file.read_exact_at(&mut buffer, block * BLOCK_BYTES as u64).map_err(kernel_error);
        data.copy_from_slice(&buffer);
        self.buffer = Some(buffer);
        read.map(drop)
    }

    fn write(&mut self, block: u64, data: &[u8]) -> io::Result<()> {
        let mut buffer = self.buffer(data.len())?;
        buffer.copy_from_slice(data);
        let written = self.file.write_all_at(&buffer, block * BLOCK_BYTES as u64).map_err(kernel_error);
        self.buffer = Some(buffer);
        written.map(drop)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush(FlushLevel::Device).map(drop)
    }
}
