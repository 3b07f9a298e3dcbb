//! The files under test: made, filled, opened, and gone afterwards.
//!
//! Only files that this module creates are ever written without being named by the user, and it
//! creates them with `O_EXCL`. A file that is to be removed is unlinked as soon as it is open.

use crate::Observer;
use crate::credentials::Acting;
use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use trueio_direct::{AlignedBuffer, DirectFile, Granted, OpenOptions, Policy};
use trueio_engine::{FileLock, RandomFill, TargetFile, TrimCall, ZoneMap};
use trueio_model::{DirectPolicy, FilePlan, JobPlan, Locking, Prepare, SyncMode, UserPlan};

/// Bytes written at once when a file is filled.
const FILL_BYTES: usize = 4 << 20;

/// A file could not be made ready.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// Creating it failed.
    #[error("`{path}` cannot be created")]
    Create {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: Box<trueio_direct::OpenError>,
    },
    /// Making a directory failed.
    #[error("the directory `{path}` cannot be made")]
    Directory {
        /// The directory.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Unlinking our own new file failed.
    #[error("`{path}`, which was just created, cannot be unlinked")]
    Unlink {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Filling or allocating it failed.
    #[error("`{path}`: {attempted} failed at byte {offset} of {size_bytes}")]
    Fill {
        /// The file.
        path: String,
        /// What was attempted.
        attempted: &'static str,
        /// How far it had come, in bytes.
        offset: u64,
        /// How far it should have come, in bytes.
        size_bytes: u64,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Reading it into the page cache failed.
    #[error("`{path}` cannot be read into the page cache, as `pre_read` asks")]
    PreRead {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// Opening it for a job failed.
    #[error("job `{job}` cannot open `{path}`")]
    Open {
        /// The job.
        job: String,
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: Box<trueio_direct::OpenError>,
    },
    /// The kernel does not take the advice on how it will be used.
    #[error("`{path}`: the kernel does not take the advice that `fadvise_hint` asks for")]
    Advise {
        /// The file.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A block device that is to be written cannot be claimed.
    #[error("`{path}` cannot be claimed for writing (O_EXCL)")]
    Claim {
        /// The device.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// The zones of a device cannot be learnt.
    #[error("`{path}`: the device does not say its zones")]
    Zones {
        /// The device.
        path: String,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It is another user's doing, for whom it failed.
    #[error("acting as {user}")]
    As {
        /// The user.
        user: UserPlan,
        /// What failed.
        #[source]
        source: Box<FileError>,
    },
    /// The system does not let this process act as a job's user.
    #[error("this process cannot act as {user}")]
    User {
        /// The user.
        user: UserPlan,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// A log cannot be made.
    #[error(transparent)]
    Log(#[from] crate::logs::LogError),
    /// The run was asked to stop meanwhile.
    #[error("stopped while files were being prepared")]
    Stopped,
}

/// Does something as a job's user, if it has one of its own.
pub(crate) fn acting<T>(user: Option<UserPlan>, act: impl FnOnce() -> Result<T, FileError>) -> Result<T, FileError> {
    let Some(user) = user else { return act() };
    let _acting = Acting::begin(Some(user)).map_err(|source| FileError::User { user, source })?;
    act().map_err(|error| match error {
        FileError::Stopped => FileError::Stopped,
        error => FileError::As { user, source: Box::new(error) },
    })
}

/// What a device says of its open zones, `name` being the limit; 0: none. A partition has no queue of its own.
fn zone_limit(sys: &Path, device: u64, name: &str) -> u32 {
    let of = sys.join(format!("dev/block/{}:{}", libc::major(device), libc::minor(device)));
    let queues = [of.join("queue"), of.join("../queue")];
    let text = queues.iter().find_map(|queue| std::fs::read_to_string(queue.join(name)).ok());
    text.and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

/// The files of a run that are ready, by path.
#[derive(Debug, Default)]
pub(crate) struct Prepared {
    files: BTreeMap<String, Ready>,
    /// Directories that were made for them.
    directories: BTreeSet<String>,
    /// Block devices that are written, by their numbers, claimed from the first phase that writes them to the end of
    /// the run. One claim for all jobs: each O_EXCL open is a holder of its own, so two jobs would
    /// shut each other out, and a ring that is still being torn down would shut out the next phase.
    claims: BTreeMap<u64, File>,
    /// Write pointers, from the first phase that needs them to the end of the run: all jobs share them. By what the
    /// path names, as one device may have several.
    zones: BTreeMap<Named, Arc<ZoneMap>>,
}

/// What a path names: a device by its number, a file by its filesystem and number, and what is not opened by its path.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Named {
    Device(u64),
    File(u64, u64),
    Nothing(String),
}

/// What the jobs of a run do with one file together, as a phase of it sees that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sharing {
    /// The phase.
    pub(crate) phase: u32,
    /// The furthest end of all their regions, in bytes: the file is made as long.
    pub(crate) end_bytes: u64,
    /// The same of jobs before this phase: as long they may have made it.
    pub(crate) earlier_end_bytes: u64,
    /// The furthest beginning of all their regions, in bytes.
    pub(crate) begin_bytes_max: u64,
    /// The same of this phase's jobs.
    pub(crate) phase_begin_bytes_max: u64,
}

impl Sharing {
    /// What `jobs` do with the file at `path`, as phase `phase` sees it.
    pub(crate) fn of(jobs: &[JobPlan], path: &str, phase: u32) -> Self {
        let mut sharing =
            Self { phase, end_bytes: 0, earlier_end_bytes: 0, begin_bytes_max: 0, phase_begin_bytes_max: 0 };
        for job in jobs {
            for file in job.files.iter().filter(|file| file.path == path) {
                let end = file.offset_bytes + file.size_bytes;
                sharing.end_bytes = sharing.end_bytes.max(end);
                sharing.begin_bytes_max = sharing.begin_bytes_max.max(file.offset_bytes);
                if job.phase == phase {
                    sharing.phase_begin_bytes_max = sharing.phase_begin_bytes_max.max(file.offset_bytes);
                }
                if job.phase < phase {
                    sharing.earlier_end_bytes = sharing.earlier_end_bytes.max(end);
                }
            }
        }
        sharing
    }
}

#[derive(Debug)]
struct Ready {
    /// Keeps a file without a name alive; `None` for files that keep theirs.
    anonymous: Option<RefCell<File>>,
    /// The last phase for which it was made ready.
    phase: u32,
    /// The lock of all jobs that lock it.
    lock: OnceCell<Arc<FileLock>>,
}

impl Prepared {
    /// The path through which a file is opened: its own, or the descriptor of one without a name.
    pub(crate) fn door(&self, path: &str) -> PathBuf {
        match self.files.get(path).and_then(|ready| ready.anonymous.as_ref()) {
            Some(file) => PathBuf::from(format!("/proc/self/fd/{}", file.borrow().as_raw_fd())),
            None => PathBuf::from(path),
        }
    }

    /// True if the file has no name.
    pub(crate) fn is_anonymous(&self, path: &str) -> bool {
        self.files.get(path).is_some_and(|ready| ready.anonymous.is_some())
    }

    /// Claims the block devices that a job writes, so that nobody mounts them meanwhile.
    pub(crate) fn claim(&mut self, job: &JobPlan) -> Result<(), FileError> {
        for file in job.files.iter().filter(|file| job.modifies_files() && file.prepare != Prepare::Nothing) {
            let metadata = std::fs::metadata(&file.path).ok().filter(|m| m.file_type().is_block_device());
            let Some(device) = metadata.map(|metadata| metadata.rdev()) else { continue };
            if self.claims.contains_key(&device) {
                continue;
            }
            // Read-only: closing a descriptor that could write makes udev look at the device again.
            let claim = std::fs::OpenOptions::new()
                .read(true)
                .custom_flags(libc::O_EXCL)
                .open(&file.path)
                .map_err(|source| FileError::Claim { path: file.path.clone(), source })?;
            self.claims.insert(device, claim);
        }
        Ok(())
    }

    /// Makes the directories of a job's new files, once, for its user.
    pub(crate) fn make_directories(&mut self, job: &JobPlan) -> Result<(), FileError> {
        if job.directories.iter().all(|path| self.directories.contains(path)) {
            return Ok(());
        }
        acting(job.user, || {
            for path in &job.directories {
                if !self.directories.contains(path) {
                    make_directory(path).map_err(|source| FileError::Directory { path: path.clone(), source })?;
                    self.directories.insert(path.clone());
                }
            }
            Ok(())
        })
    }

    /// Makes a file ready, once: later calls for the same path only look whether somebody else made it longer. A new
    /// file is that user's who makes it.
    pub(crate) fn prepare(
        &mut self,
        file: &FilePlan,
        user: Option<UserPlan>,
        sharing: Sharing,
        seed: u64,
        stop: &AtomicBool,
        observer: &mut dyn Observer,
    ) -> Result<(), FileError> {
        let end_bytes = sharing.end_bytes;
        if let Some(ready) = self.files.get_mut(&file.path) {
            if sharing.phase > ready.phase {
                ready.phase = sharing.phase;
                acting(user, || check_growth(file, sharing))?;
            }
            return Ok(());
        }
        let anonymous = match file.prepare {
            Prepare::UseExisting | Prepare::Nothing => None,
            _ if let Some(there) = file.extends_from => {
                acting(user, || extend(file, there, sharing, seed, stop, observer))?;
                None
            }
            Prepare::CreateFilled
            | Prepare::CreateAllocated
            | Prepare::CreateReserved
            | Prepare::CreateSparse
            | Prepare::CreateEmpty => {
                let created = acting(user, || create(file, end_bytes, seed, stop, observer))?;
                file.remove_after.then_some(created)
            }
        };
        let (anonymous, phase) = (anonymous.map(RefCell::new), sharing.phase);
        self.files.insert(file.path.clone(), Ready { anonymous, phase, lock: OnceCell::new() });
        Ok(())
    }

    /// Holds the files without a name that a job made again (`unlink_each_loop`), instead of the first ones. If one
    /// cannot be held, later jobs find the first, which is empty.
    pub(crate) fn remade(&self, job: &JobPlan, files: &[TargetFile]) {
        for (file, target) in job.files.iter().zip(files) {
            let ready = self.files.get(&file.path).and_then(|ready| ready.anonymous.as_ref());
            if let (Some(held), Ok(made)) = (ready, target.file.try_clone()) {
                held.replace(made);
            }
        }
    }

    /// Learns the zones of a job's files, or makes them: as many as any job of the run uses, by whatever name.
    pub(crate) fn learn_zones(&mut self, job: &JobPlan, jobs: &[JobPlan]) -> Result<(), FileError> {
        let Some(plan) = &job.zones else { return Ok(()) };
        let mut ends = BTreeMap::new();
        if job.files.iter().any(|file| !self.zones.contains_key(&self.named(file))) {
            // Of those alone whose zones the plan has counted.
            for file in jobs.iter().filter(|job| job.zones.is_some()).flat_map(|job| &job.files) {
                let end = ends.entry(self.named(file)).or_insert(0);
                *end = (file.offset_bytes + file.size_bytes).max(*end);
            }
        }
        for file in &job.files {
            let named = self.named(file);
            if self.zones.contains_key(&named) {
                continue;
            }
            let map = match named {
                Named::Device(number) if !plan.is_emulated => {
                    let limit = |name| zone_limit(Path::new("/sys"), number, name);
                    let (open_max, active_max) = (limit("max_open_zones"), limit("max_active_zones"));
                    let learnt =
                        File::open(&file.path).and_then(|device| ZoneMap::of_device(&device, open_max, active_max));
                    learnt.map_err(|source| FileError::Zones { path: file.path.clone(), source })?
                }
                _ => {
                    let end = ends.get(&named).copied().unwrap_or(file.offset_bytes + file.size_bytes);
                    ZoneMap::emulated(plan.zone_bytes, plan.capacity_bytes, end)
                }
            };
            self.zones.insert(named, Arc::new(map));
        }
        Ok(())
    }

    /// The zones of a job's files; none if it does not write by their rules.
    pub(crate) fn zones(&self, job: &JobPlan) -> Vec<Arc<ZoneMap>> {
        let files = job.files.iter().filter(|_| job.zones.is_some());
        files.filter_map(|file| self.zones.get(&self.named(file)).cloned()).collect()
    }

    fn named(&self, file: &FilePlan) -> Named {
        if file.prepare == Prepare::Nothing {
            return Named::Nothing(file.path.clone());
        }
        match std::fs::metadata(self.door(&file.path)) {
            Ok(metadata) if metadata.file_type().is_block_device() => Named::Device(metadata.rdev()),
            Ok(metadata) => Named::File(metadata.dev(), metadata.ino()),
            Err(_) => Named::Nothing(file.path.clone()),
        }
    }

    /// Flushes what was written to a job's files.
    pub(crate) fn flush(&self, job: &JobPlan) -> Result<(), FileError> {
        if !job.modifies_files() {
            return Ok(());
        }
        for file in job.files.iter().filter(|file| file.prepare != Prepare::Nothing) {
            acting(job.user, || {
                File::open(self.door(&file.path)).and_then(|opened| opened.sync_data()).map_err(|source| {
                    fill_error(file, "flushing it between phases", 0, file.offset_bytes + file.size_bytes, source)
                })
            })?;
        }
        Ok(())
    }

    /// Opens a job's files as it wants them, by its user's rights; says for each what direct I/O was granted, and why.
    pub(crate) fn open(&self, job: &JobPlan) -> Result<(Vec<TargetFile>, Vec<String>), FileError> {
        acting(job.user, || self.open_all(job))
    }

    fn open_all(&self, job: &JobPlan) -> Result<(Vec<TargetFile>, Vec<String>), FileError> {
        let mut notes = Vec::new();
        let mut targets = Vec::new();
        for file in job.files.iter().filter(|file| file.prepare != Prepare::Nothing) {
            let opened = self.open_one(job, file)?;
            if job.direct == DirectPolicy::Prefer && !matches!(opened.granted(), Granted::Direct | Granted::Unconfirmed)
            {
                notes.push(format!("`{}`: {}", file.path, opened.reason()));
            }
            let opened = opened.into_file();
            let has_own_zones = job.zones.is_some_and(|zones| !zones.is_emulated);
            let trim_call = match opened.metadata().is_ok_and(|m| m.file_type().is_block_device()) {
                true if has_own_zones => TrimCall::ResetZone,
                true => TrimCall::Discard,
                false => TrimCall::PunchHole,
            };
            let advised = trueio_engine::advise(&opened, job.handling.advice, file.offset_bytes, file.size_bytes);
            advised.map_err(|source| FileError::Advise { path: file.path.clone(), source })?;
            targets.push(TargetFile {
                file: Arc::new(opened),
                path: file.path.clone(),
                trim_call,
                end_bytes: file.offset_bytes + file.size_bytes,
                lock: match job.handling.locking {
                    Locking::None => None,
                    _ => self.files.get(&file.path).map(|ready| ready.lock.get_or_init(Arc::default).clone()),
                },
            });
        }
        // Sentences that only differ in the file's name would repeat with every file.
        notes.truncate(1);
        Ok((targets, notes))
    }

    fn open_one(&self, job: &JobPlan, file: &FilePlan) -> Result<DirectFile, FileError> {
        let path = self.door(&file.path);
        let writes = job.modifies_files();
        let policy = match job.direct {
            DirectPolicy::Require => Policy::Require,
            DirectPolicy::Prefer => Policy::Prefer,
            DirectPolicy::Off => Policy::Off,
        };
        let sync = match job.sync {
            SyncMode::None => trueio_direct::SyncMode::None,
            SyncMode::Dsync => trueio_direct::SyncMode::Dsync,
            SyncMode::Sync => trueio_direct::SyncMode::Sync,
        };
        OpenOptions::new().read(true).write(writes).policy(policy).sync(sync).open(&path).map_err(|source| {
            FileError::Open { job: job.name.clone(), path: file.path.clone(), source: Box::new(source) }
        })
    }
}

/// Makes a directory for this user alone. Another run of the same user may have been quicker; what somebody else put
/// there meanwhile, or a link, is not what the plan looked at.
fn make_directory(path: &str) -> io::Result<()> {
    match std::fs::DirBuilder::new().mode(0o700).create(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let found = std::fs::symlink_metadata(path)?;
            let is_ours = found.uid() == rustix::process::geteuid().as_raw();
            match found.is_dir() && is_ours {
                true => Ok(()),
                false => Err(io::Error::other("somebody else has made something of that name meanwhile")),
            }
        }
        made => made,
    }
}

/// Creates a file that must not exist yet, and fills or allocates it.
fn create(
    file: &FilePlan,
    end_bytes: u64,
    seed: u64,
    stop: &AtomicBool,
    observer: &mut dyn Observer,
) -> Result<File, FileError> {
    let path = Path::new(&file.path);
    let created = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .policy(Policy::Prefer)
        .mode(0o600)
        .open(path)
        .map_err(|source| FileError::Create { path: file.path.clone(), source: Box::new(source) })?;
    if file.remove_after {
        std::fs::remove_file(path).map_err(|source| FileError::Unlink { path: file.path.clone(), source })?;
    }
    let result = match file.prepare {
        Prepare::CreateFilled => fill(&created, file, end_bytes, seed, stop, observer),
        Prepare::CreateAllocated => trueio_direct::preallocate(created.file(), 0, end_bytes)
            .map_err(|source| fill_error(file, "allocating space", 0, end_bytes, source)),
        Prepare::CreateReserved => reserve(created.file(), 0, end_bytes)
            .map_err(|source| fill_error(file, "allocating space behind its end", 0, end_bytes, source)),
        Prepare::CreateSparse => created
            .file()
            .set_len(end_bytes)
            .map_err(|source| fill_error(file, "giving it its length", 0, end_bytes, source)),
        _ => Ok(()),
    };
    match result {
        Ok(()) => Ok(created.into_file()),
        Err(error) => {
            if !file.remove_after {
                // Half a file under its final name would be mistaken for a whole one. It is ours:
                // it was created a moment ago with O_EXCL.
                let _ = std::fs::remove_file(path);
            }
            Err(error)
        }
    }
}

/// What a job of a later phase would append must not be written over what somebody else did meanwhile. A file that was
/// made as long as all jobs need it is appended to behind that.
fn check_growth(file: &FilePlan, sharing: Sharing) -> Result<(), FileError> {
    let Some(there) = file.extends_from.filter(|there| sharing.phase_begin_bytes_max >= *there) else { return Ok(()) };
    if !matches!(file.prepare, Prepare::CreateEmpty | Prepare::CreateReserved) {
        return Ok(());
    }
    let failed = |source| fill_error(file, "appending to it", file.offset_bytes, sharing.end_bytes, source);
    let length = std::fs::metadata(&file.path).map_err(failed)?.len();
    if length > sharing.earlier_end_bytes.max(there) {
        return Err(failed(std::io::Error::other(format!("somebody else made it longer meanwhile: {length} bytes"))));
    }
    Ok(())
}

/// Makes a file longer that exists with at least `there` bytes: they stay, and whatever goes wrong, the file is as long
/// as it was.
fn extend(
    file: &FilePlan,
    there: u64,
    sharing: Sharing,
    seed: u64,
    stop: &AtomicBool,
    observer: &mut dyn Observer,
) -> Result<(), FileError> {
    let end_bytes = sharing.end_bytes;
    let failed = |attempted, source: std::io::Error| fill_error(file, attempted, there, end_bytes, source);
    // Through the page cache: what is there may end anywhere.
    let opened = OpenOptions::new().read(true).write(true).policy(Policy::Off).open(Path::new(&file.path));
    let opened = opened.map_err(|source| fill_error(file, "opening it to make it longer", there, end_bytes, source))?;
    let length = opened.file().metadata().map_err(|source| failed("asking for its length", source))?.len();
    if length < there {
        let source = std::io::Error::other(format!("it has become shorter since it was looked at: {length} bytes"));
        return Err(failed("making it longer", source));
    }
    if length > there && sharing.begin_bytes_max >= there {
        // What one of the jobs would append would be written over what somebody else did.
        let source = std::io::Error::other(format!("it has become longer since it was looked at: {length} bytes"));
        return Err(failed("appending to it", source));
    }
    if length >= end_bytes {
        return Ok(());
    }
    let result = match file.prepare {
        Prepare::CreateFilled => fill_from(&opened, file, length, end_bytes, (seed, 1), stop, observer),
        Prepare::CreateAllocated => trueio_direct::preallocate(opened.file(), length, end_bytes - length)
            .map_err(|source| failed("allocating space", source)),
        Prepare::CreateReserved => reserve(opened.file(), length, end_bytes - length)
            .map_err(|source| failed("allocating space behind its end", source)),
        Prepare::CreateSparse => {
            opened.file().set_len(end_bytes).map_err(|source| failed("giving it its length", source))
        }
        _ => Ok(()),
    };
    if result.is_err() {
        // What was added a moment ago is ours.
        let _ = opened.file().set_len(length);
    }
    result
}

/// Allocates space and leaves the file's length as it is. What cannot do that says so: nothing is written instead.
fn reserve(file: &File, offset: u64, length: u64) -> io::Result<()> {
    Ok(rustix::fs::fallocate(file, rustix::fs::FallocateFlags::KEEP_SIZE, offset, length)?)
}

fn fill_error(
    file: &FilePlan,
    attempted: &'static str,
    offset: u64,
    size_bytes: u64,
    source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> FileError {
    FileError::Fill { path: file.path.clone(), attempted, offset, size_bytes, source: source.into() }
}

/// Really writes the file, with random content, and flushes it.
fn fill(
    created: &DirectFile,
    file: &FilePlan,
    end_bytes: u64,
    seed: u64,
    stop: &AtomicBool,
    observer: &mut dyn Observer,
) -> Result<(), FileError> {
    let alignment = created.alignment().write_offset_bytes.unwrap_or(4096).max(512);
    fill_from(created, file, 0, end_bytes, (seed, alignment), stop, observer)
}

/// The same from an offset on, in pieces that are multiples of `alignment`.
fn fill_from(
    created: &DirectFile,
    file: &FilePlan,
    from: u64,
    end_bytes: u64,
    (seed, alignment): (u64, u32),
    stop: &AtomicBool,
    observer: &mut dyn Observer,
) -> Result<(), FileError> {
    let memory = created.alignment().memory_bytes.unwrap_or(4096).max(512);
    let mut buffer = AlignedBuffer::new(FILL_BYTES, memory as usize)
        .map_err(|source| fill_error(file, "allocating a buffer", 0, end_bytes, source))?;
    let mut content = RandomFill::new(seed ^ 0xf111);
    let mut offset = from;
    while offset < end_bytes {
        if stop.load(Relaxed) {
            return Err(FileError::Stopped);
        }
        // The last piece is rounded up to the alignment, so the file may end a little later.
        let length = (end_bytes - offset).min(FILL_BYTES as u64).next_multiple_of(u64::from(alignment)) as usize;
        let piece = &mut buffer[..length.min(FILL_BYTES)];
        content.fill(piece);
        created
            .write_all_at(piece, offset)
            .map_err(|source| fill_error(file, "writing it before the run", offset, end_bytes, source))?;
        offset += piece.len() as u64;
        observer.preparing(&file.path, offset.min(end_bytes), end_bytes);
    }
    created
        .file()
        .sync_all()
        .map_err(|source| fill_error(file, "flushing it before the run", offset, end_bytes, source))
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Nobody;
    impl Observer for Nobody {}

    #[test]
    fn a_partition_has_the_limits_of_its_disk() {
        let directory = tempfile::tempdir().expect("a directory");
        let sys = directory.path();
        let (disk, partition) = (libc::makedev(8, 0), libc::makedev(8, 1));
        std::fs::create_dir_all(sys.join("devices/block/sda/sda1")).expect("directories");
        std::fs::create_dir_all(sys.join("devices/block/sda/queue")).expect("directories");
        std::fs::create_dir_all(sys.join("dev/block")).expect("directories");
        std::os::unix::fs::symlink("../../devices/block/sda", sys.join("dev/block/8:0")).expect("a link");
        std::os::unix::fs::symlink("../../devices/block/sda/sda1", sys.join("dev/block/8:1")).expect("a link");
        assert_eq!(zone_limit(sys, partition, "max_open_zones"), 0);
        std::fs::write(sys.join("devices/block/sda/queue/max_open_zones"), "14\n").expect("a file");
        assert_eq!([disk, partition].map(|device| zone_limit(sys, device, "max_open_zones")), [14, 14]);
        assert_eq!(zone_limit(sys, partition, "max_active_zones"), 0);
    }

    /// Goal: what a job would append is not written over what somebody added after the plan was made.
    #[test]
    fn a_file_that_grew_since_it_was_looked_at_is_not_appended_to() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("f").to_str().expect("UTF-8").to_owned();
        let plan = |offset_bytes| FilePlan {
            path: path.clone(),
            prepare: Prepare::CreateSparse,
            remove_after: false,
            offset_bytes,
            size_bytes: 4096,
            extends_from: Some(1000),
        };
        let sharing = |begin_bytes_max| Sharing {
            phase: 0,
            end_bytes: begin_bytes_max + 4096,
            earlier_end_bytes: 0,
            begin_bytes_max,
            phase_begin_bytes_max: begin_bytes_max,
        };
        let stop = AtomicBool::new(false);
        let prepare_of = |offset_bytes, begin_bytes_max| {
            Prepared::default().prepare(&plan(offset_bytes), None, sharing(begin_bytes_max), 1, &stop, &mut Nobody)
        };
        let prepare = |offset_bytes| prepare_of(offset_bytes, offset_bytes);
        std::fs::write(&path, [7; 1001]).expect("a file");
        let error = prepare(1000).expect_err("it grew");
        assert!(std::error::Error::source(&error).is_some_and(|why| why.to_string().contains("longer")), "{error}");
        assert_eq!(std::fs::read(&path).expect("a file"), [7; 1001]);
        // Another job, later, would append to it.
        prepare_of(0, 1000).expect_err("it grew");
        assert_eq!(std::fs::read(&path).expect("a file"), [7; 1001]);
        // A job that writes over what is there has its leave to.
        prepare(0).expect("it is extended");
        std::fs::write(&path, [7; 1000]).expect("a file");
        prepare(1000).expect("it is as long as it was");
        assert_eq!(std::fs::metadata(&path).expect("a file").len(), 5096);
    }

    /// Goal: a right that is lost after the plan was made ends the run with the user and the path, and only that user's
    /// rights were used.
    #[test]
    fn what_a_jobs_user_may_not_open_is_told_with_the_user() {
        let user = UserPlan { uid: 65_534, gid: 65_533 };
        if let Err(error) = Acting::begin(Some(user)) {
            let required = std::env::var("TRUEIO_REQUIRE").unwrap_or_default();
            assert!(!required.split([',', ' ']).any(|need| need == "root"), "TRUEIO_REQUIRE lists `root`, but {error}");
            eprintln!("skipped: other users need root: {error}");
            return;
        }
        let directory = tempfile::tempdir().expect("a directory");
        let closed = std::os::unix::fs::PermissionsExt::from_mode(0o700);
        std::fs::set_permissions(directory.path(), closed).expect("it is ours");
        let path = directory.path().join("f").to_str().expect("UTF-8").to_owned();
        let file = |prepare| FilePlan {
            path: path.clone(),
            prepare,
            remove_after: false,
            offset_bytes: 0,
            size_bytes: 4096,
            extends_from: None,
        };
        let stop = AtomicBool::new(false);
        let mut prepared = Prepared::default();
        let sharing =
            Sharing { phase: 0, end_bytes: 4096, earlier_end_bytes: 0, begin_bytes_max: 0, phase_begin_bytes_max: 0 };
        let made = prepared.prepare(&file(Prepare::CreateSparse), Some(user), sharing, 1, &stop, &mut Nobody);
        let told = trueio_model::error_line(&made.expect_err("the directory is root's"));
        assert!(told.starts_with(&format!("acting as user 65534 (group 65533): `{path}` cannot be created")), "{told}");
        std::fs::write(&path, [7; 4096]).expect("a file");
        let job = |user| JobPlan {
            files: vec![file(Prepare::UseExisting)],
            user,
            ..JobPlan::plain(trueio_model::EngineKind::Psync, 4096)
        };
        let told = trueio_model::error_line(&prepared.open(&job(Some(user))).expect_err("the directory is root's"));
        assert!(
            told.starts_with(&format!("acting as user 65534 (group 65533): job `job` cannot open `{path}`")),
            "{told}"
        );
        assert!(told.contains("Permission denied"), "{told}");
        prepared.open(&job(None)).expect("it is root's");
    }

    /// Goal: the same of a file that is not made longer beforehand, and grows while an earlier phase runs.
    #[test]
    fn a_file_that_somebody_else_made_longer_between_two_phases_is_not_appended_to() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("f").to_str().expect("UTF-8").to_owned();
        let job = |phase, offset_bytes| JobPlan {
            phase,
            files: vec![FilePlan {
                path: path.clone(),
                prepare: Prepare::CreateEmpty,
                remove_after: false,
                offset_bytes,
                size_bytes: 1000,
                extends_from: Some(1000),
            }],
            ..JobPlan::plain(trueio_model::EngineKind::Psync, 1000)
        };
        // Two write over what is there, and two append; the last one beside another, which is prepared first.
        let jobs = [job(0, 0), job(1, 1000), job(2, 0), job(2, 2000)];
        let stop = AtomicBool::new(false);
        let mut prepared = Prepared::default();
        let mut prepare = |phase: usize| {
            let sharing = Sharing::of(&jobs, &path, phase as u32);
            prepared.prepare(&jobs[phase].files[0], None, sharing, 1, &stop, &mut Nobody)
        };
        std::fs::write(&path, [7; 1000]).expect("a file");
        prepare(0).expect("it is as long as it was");
        prepare(1).expect("it still is");
        std::fs::write(&path, [7; 2000]).expect("a file");
        prepare(1).expect("the same phase again: what it appended is there");
        std::fs::write(&path, [7; 2001]).expect("a file");
        let error = prepare(2).expect_err("a byte is somebody else's");
        assert!(std::error::Error::source(&error).is_some_and(|why| why.to_string().contains("meanwhile")), "{error}");
        assert_eq!(std::fs::read(&path).expect("a file"), [7; 2001]);
    }
}
