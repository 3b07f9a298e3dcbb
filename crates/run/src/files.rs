//! The files under test: created, filled, opened and removed.
//!
//! A file that the user did not name is written only if this module created it, with `O_EXCL`, or if it appeared after planning with
//! the planned length and owner, as when two runs create a file that they share. A file that is to be removed is unlinked as
//! soon as it is open. Existing targets are open already ([`Targets`]); each job opens them through that descriptor.

use crate::Observer;
use crate::file_error::{FileError, acting};
use crate::fill::{Filling, Space, await_appeared, check_growth, create, extend, fill_error, make_directory, renew};
use crate::held::{Held, HoldError};
use crate::sharing::Sharing;
use crate::targets::Targets;
use crate::usb_disks::UsbDisk;
use std::cell::{Cell, OnceCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use trueio_direct::{DirectFile, Granted, OpenOptions, Policy};
use trueio_engine::{FileLock, TargetFile, TrimCall, ZoneMap};
use trueio_model::{DirectPolicy, FilePlan, JobPlan, Locking, Plan, Prepare, SyncMode, UserPlan};

/// Reads a zone limit of a device, for example `max_open_zones`; 0 if there is none. A partition has no `queue`
/// directory of its own, so the one of its disk is read.
fn zone_limit(sys: &Path, device: u64, name: &str) -> u32 {
    let of = sys.join(format!("dev/block/{}:{}", libc::major(device), libc::minor(device)));
    let queues = [of.join("queue"), of.join("../queue")];
    let text = queues.iter().find_map(|queue| std::fs::read_to_string(queue.join(name)).ok());
    text.and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

/// The prepared files of a run.
#[derive(Debug, Default)]
pub(crate) struct Prepared {
    /// By path.
    files: BTreeMap<String, Ready>,
    /// The files that are held open: existing targets since planning, new files from their creation.
    targets: Targets,
    /// The created directories.
    directories: BTreeSet<String>,
    /// The write pointers of the zones, shared by all jobs and kept until the run ends. The key is what a path refers
    /// to, because a device may have several paths.
    zones: BTreeMap<Named, Arc<ZoneMap>>,
}

/// What a path refers to: a device by its number, a file by its filesystem and inode, anything else by the path itself.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Named {
    Device(u64),
    File(u64, u64),
    Nothing(String),
}

#[derive(Debug)]
struct Ready {
    /// The last phase for which the file was prepared.
    phase: u32,
    /// A sentence about a file whose space is not as planned.
    note: Option<String>,
    /// True if this process created the file.
    is_created: bool,
    /// Time of the call that created the file, until a job's opening counts it.
    create_ns: Cell<u64>,
    /// The lock that all jobs with `lockfile` share.
    lock: OnceCell<Arc<FileLock>>,
}

/// The files that a job opened.
#[derive(Debug)]
pub(crate) struct OpenedFiles {
    /// In the order of the plan, without those that need no preparation.
    pub(crate) targets: Vec<TargetFile>,
    /// At most one sentence of each kind: why direct I/O was not granted, and why space was not allocated as planned.
    pub(crate) notes: Vec<String>,
    /// Time of the calls that opened the files, and created those that this job is the first to open; `None`: it has none.
    pub(crate) open_ns: Option<u64>,
}

impl Prepared {
    /// Uses these targets, which are open or will be when the run begins.
    pub(crate) fn of(targets: Targets) -> Self {
        Self { targets, ..Self::default() }
    }

    /// Opens the targets of the plan, unless they are open.
    ///
    /// # Errors
    /// The first target that differs from the plan, or cannot be opened or claimed, in one line.
    pub(crate) fn begin(&mut self, plan: &Plan) -> Result<(), String> {
        self.targets.open(plan, |_| None)
    }

    /// Compares the held files of a job with their recorded identities, before a phase.
    pub(crate) fn check(&self, job: &JobPlan) -> Result<(), FileError> {
        for file in job.files.iter().filter(|file| file.prepare != Prepare::Nothing) {
            let Some(held) = self.targets.get(&file.path) else { continue };
            let end_bytes = file.offset_bytes + file.size_bytes;
            acting(job.user, || held.check(end_bytes).map_err(|error| error.of(&job.name, &file.path)))?;
        }
        Ok(())
    }

    /// Returns the path at which evidence opens a file: the planned path, or the descriptor of an unlinked file.
    pub(crate) fn evidence_path(&self, path: &str) -> PathBuf {
        let held = self.targets.get(path).filter(|held| held.is_anonymous());
        held.and_then(Held::descriptor).unwrap_or_else(|| PathBuf::from(path))
    }

    /// Returns the path at which a file is read or flushed: the held descriptor, or the planned path without one.
    pub(crate) fn held_path(&self, path: &str) -> PathBuf {
        self.targets.get(path).and_then(Held::descriptor).unwrap_or_else(|| PathBuf::from(path))
    }

    /// Returns whether the file is unlinked.
    pub(crate) fn is_anonymous(&self, path: &str) -> bool {
        self.targets.get(path).is_some_and(Held::is_anonymous)
    }

    /// Returns a USB disk that jobs drive in user space.
    pub(crate) fn usb_disk(&self, name: &str) -> Option<&UsbDisk> {
        self.targets.usb_disk(name)
    }

    /// Creates the directories of a job's new files, as the job's user. A directory that exists is created once.
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

    /// Prepares a file; it is created or extended as `user`. Later calls for the same path only check that no other
    /// program extended it.
    pub(crate) fn prepare(
        &mut self,
        file: &FilePlan,
        user: Option<UserPlan>,
        sharing: Sharing,
        filling: &Filling,
        stop: &AtomicBool,
        observer: &mut dyn Observer,
    ) -> Result<(), FileError> {
        if let Some(ready) = self.files.get_mut(&file.path) {
            if sharing.phase > ready.phase {
                ready.phase = sharing.phase;
                if let Some(held) = self.targets.get(&file.path) {
                    acting(user, || check_growth(file, held, sharing))?;
                    if sharing.is_renewed && ready.is_created {
                        acting(user, || renew(file, held, sharing.end_bytes))?;
                    }
                }
            }
            return Ok(());
        }
        let (mut is_created, mut create_ns) = (false, 0);
        let space = match file.prepare {
            Prepare::UseExisting | Prepare::Nothing => Space::AsPlanned,
            _ if let Some(there) = file.extends_from => {
                let held = self.targets.get_or_open(file)?;
                acting(user, || extend(file, held, there, sharing, filling, stop, observer))?
            }
            Prepare::CreateFilled
            | Prepare::CreateAllocated
            | Prepare::CreateReserved
            | Prepare::CreateSparse
            | Prepare::CreateEmpty => match acting(user, || create(file, sharing, filling, stop, observer)) {
                Ok(created) => {
                    self.targets.add_created(file, created.file)?;
                    (is_created, create_ns) = (true, created.create_ns);
                    created.space
                }
                Err(error) if error.has_appeared() && sharing.may_appear => {
                    let targets = &mut self.targets;
                    acting(user, || await_appeared(file, targets.get_or_open(file)?, sharing.end_bytes, stop))?;
                    Space::AsPlanned
                }
                Err(error) => return Err(error),
            },
        };
        let note = space.note(&file.path);
        let ready =
            Ready { phase: sharing.phase, note, is_created, create_ns: Cell::new(create_ns), lock: OnceCell::new() };
        self.files.insert(file.path.clone(), ready);
        Ok(())
    }

    /// Holds the files that a job created again (`unlink_each_loop`) instead of the first ones. If a descriptor cannot
    /// be duplicated, later jobs use the first file, which is empty.
    pub(crate) fn remade(&self, job: &JobPlan, files: &[TargetFile]) {
        for (file, target) in job.files.iter().zip(files) {
            if let (Some(held), Ok(made)) = (self.targets.get(&file.path), target.file.try_clone()) {
                held.replace(made);
            }
        }
    }

    /// Reads the zones of a job's zoned devices. Other targets get emulated zones that cover the regions of all jobs
    /// of the run, under whichever path a job uses them.
    pub(crate) fn learn_zones(&mut self, job: &JobPlan, jobs: &[JobPlan]) -> Result<(), FileError> {
        let Some(plan) = &job.zones else { return Ok(()) };
        let mut ends = BTreeMap::new();
        if job.files.iter().any(|file| !self.zones.contains_key(&self.named(file))) {
            // Only jobs whose zones the plan has counted.
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
                    let learnt = File::open(self.held_path(&file.path))
                        .and_then(|device| ZoneMap::of_device(&device, open_max, active_max));
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

    /// Returns the zones of a job's files; empty if the job does not follow zone rules.
    pub(crate) fn zones(&self, job: &JobPlan) -> Vec<Arc<ZoneMap>> {
        let files = job.files.iter().filter(|_| job.zones.is_some());
        files.filter_map(|file| self.zones.get(&self.named(file)).cloned()).collect()
    }

    fn named(&self, file: &FilePlan) -> Named {
        if file.prepare == Prepare::Nothing {
            return Named::Nothing(file.path.clone());
        }
        match std::fs::metadata(self.held_path(&file.path)) {
            Ok(metadata) if metadata.file_type().is_block_device() => Named::Device(metadata.rdev()),
            Ok(metadata) => Named::File(metadata.dev(), metadata.ino()),
            Err(_) => Named::Nothing(file.path.clone()),
        }
    }

    /// Flushes the files that a job writes.
    pub(crate) fn flush(&self, job: &JobPlan) -> Result<(), FileError> {
        if !job.modifies_files() {
            return Ok(());
        }
        for file in job.files.iter().filter(|file| file.prepare != Prepare::Nothing) {
            if let Some(disk) = self.usb_disk(&file.path) {
                let end_bytes = file.offset_bytes + file.size_bytes;
                disk.flush().map_err(|source| fill_error(file, "flushing it between phases", 0, end_bytes, source))?;
                continue;
            }
            acting(job.user, || {
                File::open(self.held_path(&file.path)).and_then(|opened| opened.sync_data()).map_err(|source| {
                    fill_error(file, "flushing it between phases", 0, file.offset_bytes + file.size_bytes, source)
                })
            })?;
        }
        Ok(())
    }

    /// Opens a job's files with the access and the direct I/O policy that the job sets, as the job's user.
    pub(crate) fn open(&self, job: &JobPlan) -> Result<OpenedFiles, FileError> {
        acting(job.user, || self.open_all(job))
    }

    fn open_all(&self, job: &JobPlan) -> Result<OpenedFiles, FileError> {
        let mut notes = Vec::new();
        let mut targets = Vec::new();
        let mut open_ns = None;
        for file in job.files.iter().filter(|file| file.prepare != Prepare::Nothing) {
            let lock = match job.handling.locking {
                Locking::None => None,
                _ => self.files.get(&file.path).map(|ready| ready.lock.get_or_init(Arc::default).clone()),
            };
            if let Some(disk) = self.usb_disk(&file.path) {
                targets.push(TargetFile { lock, ..disk.target(file.offset_bytes + file.size_bytes) });
                continue;
            }
            let began = Instant::now();
            let opened = self.open_one(job, file)?;
            let create_ns = self.files.get(&file.path).map_or(0, |ready| ready.create_ns.take());
            *open_ns.get_or_insert(0) += began.elapsed().as_nanos() as u64 + create_ns;
            if job.direct == DirectPolicy::Prefer && !matches!(opened.granted(), Granted::Direct | Granted::Unconfirmed)
            {
                notes.push(format!("`{}`: {}", file.path, opened.reason()));
            }
            let opened = opened.into_file();
            let has_own_zones = job.zones.is_some_and(|zones| !zones.is_emulated);
            let device = opened.metadata().ok().filter(|m| m.file_type().is_block_device()).map(|m| m.rdev());
            let trim_call = match device {
                Some(_) if has_own_zones => TrimCall::ResetZone,
                Some(number) => TrimCall::Discard(self.targets.claim_of(number)),
                None => TrimCall::PunchHole,
            };
            let advised = trueio_engine::advise(&opened, job.handling.advice, file.offset_bytes, file.size_bytes);
            advised.map_err(|source| FileError::Advise { path: file.path.clone(), source })?;
            trueio_engine::hint_writes(&opened, job.handling.write_hint)
                .map_err(|source| FileError::WriteHint { path: file.path.clone(), source })?;
            targets.push(TargetFile {
                file: Arc::new(opened),
                path: file.path.clone(),
                trim_call,
                end_bytes: file.offset_bytes + file.size_bytes,
                lock,
                disk: None,
            });
        }
        // Otherwise the same sentence would repeat for every file.
        notes.truncate(1);
        notes.extend(job.files.iter().find_map(|file| self.files.get(&file.path)?.note.clone()));
        Ok(OpenedFiles { targets, notes, open_ns })
    }

    fn open_one(&self, job: &JobPlan, file: &FilePlan) -> Result<DirectFile, FileError> {
        let writes = job.modifies_files();
        let held = self.targets.get(&file.path);
        let changed = |error: HoldError| error.of(&job.name, &file.path);
        let entry = held.map(Held::entry).transpose().map_err(changed)?;
        let path = entry.as_ref().map_or(Path::new(&file.path), |entry| &entry.path);
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
        let opened =
            OpenOptions::new().read(true).write(writes).policy(policy).sync(sync).open(path).map_err(|source| {
                FileError::Open { job: job.name.clone(), path: file.path.clone(), source: Box::new(source) }
            })?;
        if let Some(held) = held {
            held.confirm(opened.file()).map_err(changed)?;
            if writes {
                held.writes_begin();
            }
        }
        Ok(opened)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credentials::Acting;
    use trueio_model::FileAccess;

    struct NoObserver;
    impl Observer for NoObserver {}

    fn random() -> Filling {
        Filling::of(&trueio_model::JobPlan::plain(trueio_model::EngineKind::Psync, 1 << 20))
    }

    fn file(path: &str, prepare: Prepare) -> FilePlan {
        FilePlan {
            path: path.to_owned(),
            prepare,
            remove_after: false,
            offset_bytes: 0,
            size_bytes: 4096,
            extends_from: None,
        }
    }

    /// A file of 4 KiB that one job of one phase uses.
    fn alone() -> Sharing {
        Sharing {
            phase: 0,
            end_bytes: 4096,
            earlier_end_bytes: 0,
            begin_bytes_max: 0,
            phase_begin_bytes_max: 0,
            access: FileAccess::Private,
            may_appear: true,
            appends: false,
            is_renewed: false,
        }
    }

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

    /// Goal: a job that appends does not overwrite data that another program added after planning.
    #[test]
    fn a_file_that_grew_after_planning_is_not_appended_to() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("f").to_str().expect("UTF-8").to_owned();
        let plan =
            |offset_bytes| FilePlan { offset_bytes, extends_from: Some(1000), ..file(&path, Prepare::CreateSparse) };
        let sharing = |begin_bytes_max| Sharing {
            end_bytes: begin_bytes_max + 4096,
            begin_bytes_max,
            phase_begin_bytes_max: begin_bytes_max,
            ..alone()
        };
        let stop = AtomicBool::new(false);
        let prepare_of = |offset_bytes, begin_bytes_max| {
            Prepared::default().prepare(
                &plan(offset_bytes),
                None,
                sharing(begin_bytes_max),
                &random(),
                &stop,
                &mut NoObserver,
            )
        };
        let prepare = |offset_bytes| prepare_of(offset_bytes, offset_bytes);
        std::fs::write(&path, [7; 1001]).expect("a file");
        let error = prepare(1000).expect_err("it grew");
        assert!(std::error::Error::source(&error).is_some_and(|why| why.to_string().contains("longer")), "{error}");
        assert_eq!(std::fs::read(&path).expect("a file"), [7; 1001]);
        // A later job would append to it.
        prepare_of(0, 1000).expect_err("it grew");
        assert_eq!(std::fs::read(&path).expect("a file"), [7; 1001]);
        // A job that overwrites existing content is permitted to.
        prepare(0).expect("it is extended");
        std::fs::write(&path, [7; 1000]).expect("a file");
        prepare(1000).expect("it is as long as it was");
        assert_eq!(std::fs::metadata(&path).expect("a file").len(), 5096);
    }

    /// Goal: if the job's user loses access after planning, the error names the user and the path, and root's rights
    /// are not used instead.
    #[test]
    fn the_error_for_a_file_that_a_jobs_user_cannot_open_names_the_user() {
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
        let file = |prepare| file(&path, prepare);
        let stop = AtomicBool::new(false);
        let mut prepared = Prepared::default();
        let sharing = alone();
        let made =
            prepared.prepare(&file(Prepare::CreateSparse), Some(user), sharing, &random(), &stop, &mut NoObserver);
        let line = trueio_model::error_line(&made.expect_err("the directory is root's"));
        assert!(line.starts_with(&format!("acting as user 65534 (group 65533): `{path}` cannot be created")), "{line}");
        std::fs::write(&path, [7; 4096]).expect("a file");
        let job = |user| JobPlan {
            files: vec![file(Prepare::UseExisting)],
            user,
            ..JobPlan::plain(trueio_model::EngineKind::Psync, 4096)
        };
        let line = trueio_model::error_line(&prepared.open(&job(Some(user))).expect_err("the directory is root's"));
        assert!(
            line.starts_with(&format!("acting as user 65534 (group 65533): job `job` cannot open `{path}`")),
            "{line}"
        );
        assert!(line.contains("Permission denied"), "{line}");
        prepared.open(&job(None)).expect("it is root's");
    }

    /// Goal: of two runs that create one file at the same time, the second uses it as soon as it has the planned length, and neither
    /// truncates nor refills it; a file of another length or with a second name is refused, and kept.
    #[test]
    fn a_file_that_another_run_creates_after_planning_is_used_with_the_planned_length_only() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("f").to_str().expect("UTF-8").to_owned();
        let prepare_of = |prepare, may_appear| {
            let sharing = Sharing { may_appear, ..alone() };
            let stop = AtomicBool::new(false);
            Prepared::default().prepare(&file(&path, prepare), None, sharing, &random(), &stop, &mut NoObserver)
        };
        for prepare in [Prepare::CreateFilled, Prepare::CreateAllocated, Prepare::CreateSparse, Prepare::CreateEmpty] {
            std::fs::write(&path, [7; 4096]).expect("a file");
            prepare_of(prepare, true)
                .unwrap_or_else(|error| panic!("{prepare:?}: {}", trueio_model::error_line(&error)));
            assert_eq!(std::fs::read(&path).expect("a file"), [7; 4096], "{prepare:?}");
            let line = trueio_model::error_line(&prepare_of(prepare, false).expect_err("a job removes it"));
            assert!(line.contains("File exists"), "{line}");
        }
        for length in [100, 5000] {
            std::fs::write(&path, vec![7; length]).expect("a file");
            let line = trueio_model::error_line(&prepare_of(Prepare::CreateFilled, true).expect_err("another length"));
            assert!(line.contains(&format!("it has {length} bytes")), "{line}");
            assert_eq!(std::fs::read(&path).expect("a file"), vec![7; length]);
        }
        // The other run is about to write it: it has its length only later.
        std::fs::write(&path, [7; 100]).expect("a file");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(std::time::Duration::from_millis(10));
                std::fs::write(&path, [8; 4096]).expect("a file");
            });
            prepare_of(Prepare::CreateFilled, true).expect("it gets its length");
        });
        let other = directory.path().join("other");
        std::fs::hard_link(&path, &other).expect("a link");
        let line = trueio_model::error_line(&prepare_of(Prepare::CreateFilled, true).expect_err("two names"));
        assert!(line.contains("no file of this user with one name"), "{line}");
        std::fs::remove_file(&path).expect("a file");
        std::os::unix::fs::symlink(&other, &path).expect("a link");
        prepare_of(Prepare::CreateFilled, true).expect_err("a link");
        assert_eq!(std::fs::read(&other).expect("a file"), [8; 4096]);
    }

    /// Goal: of two runs that create one file, the second may find it empty while planning. It uses the file with the planned length,
    /// without writing to it; a job that appends, and a file of another length, are refused.
    #[test]
    fn a_file_that_was_empty_is_used_with_the_length_that_another_run_gave_it() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("f").to_str().expect("UTF-8").to_owned();
        let prepare_of = |prepare, sharing, is_stopped| {
            let plan = FilePlan { extends_from: Some(0), ..file(&path, prepare) };
            let stop = AtomicBool::new(is_stopped);
            Prepared::default().prepare(&plan, None, sharing, &random(), &stop, &mut NoObserver)
        };
        let with_length = [Prepare::CreateFilled, Prepare::CreateAllocated, Prepare::CreateSparse];
        for prepare in with_length.into_iter().chain([Prepare::CreateEmpty]) {
            std::fs::write(&path, [7; 4096]).expect("a file");
            prepare_of(prepare, alone(), false).expect("it has its length");
            assert_eq!(std::fs::read(&path).expect("a file"), [7; 4096], "{prepare:?}");
            for refused in [Sharing { appends: true, ..alone() }, Sharing { may_appear: false, ..alone() }] {
                let line = trueio_model::error_line(&prepare_of(prepare, refused, false).expect_err("it grew"));
                assert!(line.contains("it became longer after the run was planned"), "{line}");
                assert_eq!(std::fs::read(&path).expect("a file"), [7; 4096], "{prepare:?}");
            }
        }
        for (prepare, length) in
            [(Prepare::CreateFilled, 100), (Prepare::CreateFilled, 5000), (Prepare::CreateEmpty, 5000)]
        {
            std::fs::write(&path, vec![7; length]).expect("a file");
            let line = trueio_model::error_line(&prepare_of(prepare, alone(), false).expect_err("another length"));
            assert!(line.contains(&format!("it has {length} bytes")), "{line}");
            assert_eq!(std::fs::read(&path).expect("a file"), vec![7; length]);
        }
        // While another run fills it, it is not extended. The wait ends with the run, or after some time without growth.
        for prepare in with_length {
            let other = File::create(&path).expect("a file");
            trueio_direct::try_lock(&other, trueio_direct::LockMode::Exclusive).expect("no other run has it");
            let error = prepare_of(prepare, alone(), true).expect_err("stopped");
            assert!(matches!(error, FileError::Stopped), "{error}");
            assert_eq!(other.metadata().expect("a file").len(), 0, "{prepare:?}");
        }
        prepare_of(Prepare::CreateFilled, alone(), false).expect("the other run is stuck");
        assert_eq!(std::fs::metadata(&path).expect("a file").len(), 4096);
    }

    /// Goal: the same for a file that the run does not extend beforehand, and that another program extends during an
    /// earlier phase.
    #[test]
    fn a_file_that_another_program_extends_between_two_phases_is_not_appended_to() {
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
        // Two jobs overwrite, and two append. The last two share a phase; the one that overwrites is prepared first.
        let jobs = [job(0, 0), job(1, 1000), job(2, 0), job(2, 2000)];
        let stop = AtomicBool::new(false);
        let mut prepared = Prepared::default();
        let mut prepare = |phase: usize| {
            let sharing = Sharing::of(&jobs, &path, phase as u32);
            prepared.prepare(&jobs[phase].files[0], None, sharing, &random(), &stop, &mut NoObserver)
        };
        std::fs::write(&path, [7; 1000]).expect("a file");
        prepare(0).expect("it is as long as it was");
        prepare(1).expect("it still is");
        std::fs::write(&path, [7; 2000]).expect("a file");
        prepare(1).expect("the same phase again: its own appended bytes are there");
        std::fs::write(&path, [7; 2001]).expect("a file");
        let error = prepare(2).expect_err("another program added a byte");
        assert!(std::error::Error::source(&error).is_some_and(|why| why.to_string().contains("extended")), "{error}");
        assert_eq!(std::fs::read(&path).expect("a file"), [7; 2001]);
    }
}
