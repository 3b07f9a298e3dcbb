//! The existing targets of a plan: opened, compared with the plan and, if they are block devices that are written,
//! claimed when the plan is complete; kept until the run ends.
//!
//! The descriptors are those through which the planner examined the targets, as far as it kept them, so what was
//! examined is what is used. Limits: if there are more files than descriptors, only their identities are kept
//! ([`Held`]); a job with a user of its own opens its files as that user.

use crate::descriptors;
use crate::file_error::{FileError, acting};
use crate::held::{Held, HoldError, Usage};
use crate::usb_disks::{self, UsbDisk};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Arc;
use trueio_direct::{DirectFile, OpenOptions, Policy, SyncMode};
use trueio_model::{FilePlan, JobPlan, Plan, Prepare, error_line};

/// The open files of a run, and its claims of block devices.
///
/// The default holds nothing: then the run opens the targets before its first phase and compares them with the plan.
#[derive(Debug, Default)]
pub struct Targets {
    /// By path: existing targets, and new files from their creation.
    held: BTreeMap<String, Held>,
    /// The claims of the block devices that the run writes, by device number; kept until the run ends.
    ///
    /// All jobs share one claim: each `O_EXCL` open is a holder of its own, so two jobs could not both claim a device,
    /// and a phase could not claim it while the ring of the previous phase is being torn down.
    claims: BTreeMap<u64, Arc<File>>,
    /// USB disks that jobs drive in user space, by their names.
    usb_disks: BTreeMap<String, Arc<UsbDisk>>,
    is_open: bool,
    /// The descriptor limit permits keeping all files open.
    keeps: bool,
}

impl Targets {
    /// Opens the existing targets of all jobs, compares each with the plan, and claims the block devices that are
    /// written. Later calls do nothing. `examined` returns the descriptor through which the planner examined a path,
    /// if it kept one.
    ///
    /// # Errors
    /// The first target that differs from the plan, or cannot be opened or claimed, in one line.
    pub(crate) fn open(&mut self, plan: &Plan, examined: impl Fn(&str) -> Option<File>) -> Result<(), String> {
        if std::mem::replace(&mut self.is_open, true) {
            return Ok(());
        }
        self.keeps = descriptors::provide(&plan.jobs)?;
        self.open_all(plan, examined).map_err(|error| error_line(&error))
    }

    fn open_all(&mut self, plan: &Plan, examined: impl Fn(&str) -> Option<File>) -> Result<(), FileError> {
        let mut written = BTreeSet::new();
        for job in &plan.jobs {
            let is_written = |file: &&FilePlan| job.modifies_files() || file.extends_from.is_some();
            written.extend(job.files.iter().filter(is_written).map(|file| file.path.as_str()));
        }
        for job in plan.jobs.iter().filter(|job| job.engine.drives_usb_disks()) {
            self.open_usb_disks(job)?;
        }
        for job in plan.jobs.iter().filter(|job| !job.engine.drives_usb_disks()) {
            for file in job.files.iter().filter(|file| is_existing(file)) {
                if self.held.contains_key(&file.path) {
                    continue;
                }
                let (is_written, is_extended) = (written.contains(file.path.as_str()), file.extends_from.is_some());
                let usage = Usage { is_written, is_extended, keeps: self.keeps };
                let planned = plan.identities.get(&file.path);
                let name = if job.user.is_none() { examined(&file.path) } else { None };
                let held = acting(job.user, || {
                    Held::existing(&file.path, name, planned, usage).map_err(|error| error.of(&job.name, &file.path))
                })?;
                self.held.insert(file.path.clone(), held);
            }
        }
        let trims = plan.jobs.iter().any(JobPlan::trims);
        for path in written {
            self.claim(path, trims)?;
        }
        Ok(())
    }

    /// Takes the USB disks of a job, which the planner has claimed. Those that the job writes may be written from now on.
    fn open_usb_disks(&mut self, job: &JobPlan) -> Result<(), FileError> {
        for file in &job.files {
            if !self.usb_disks.contains_key(&file.path) {
                let failed = |reason| FileError::UsbDisk { path: file.path.clone(), reason };
                let disk = usb_disks::open(&file.path).map_err(failed)?;
                self.usb_disks.insert(file.path.clone(), disk);
            }
            if job.modifies_files() {
                self.usb_disks[&file.path].permit_writes();
            }
        }
        Ok(())
    }

    /// Returns a USB disk that jobs drive in user space.
    pub(crate) fn usb_disk(&self, name: &str) -> Option<&UsbDisk> {
        self.usb_disks.get(name).map(Arc::as_ref)
    }

    /// Claims a block device that is written, so that it cannot be mounted during the run.
    fn claim(&mut self, path: &str, trims: bool) -> Result<(), FileError> {
        let Some(held) = self.held.get(path) else { return Ok(()) };
        let Some(device) = held.device().filter(|device| !self.claims.contains_key(device)) else { return Ok(()) };
        let entry = held.entry().map_err(|error| error.of("", path))?;
        // Opened for reading only, unless trims need more: udev probes a block device again when a writable descriptor is
        // closed.
        let claim = std::fs::OpenOptions::new()
            .read(true)
            .write(trims)
            .custom_flags(libc::O_EXCL)
            .open(&entry.path)
            .map_err(|source| FileError::Claim { path: path.to_owned(), source })?;
        held.confirm(&claim).map_err(|error| error.of("", path))?;
        self.claims.insert(device, Arc::new(claim));
        Ok(())
    }

    /// Opens a target that the plan writes, for reading and writing past the page cache by a command that does its own I/O. The
    /// target is compared with the plan first; it stays claimed as long as this value lives.
    ///
    /// # Errors
    /// The plan has no such target, the target differs from the plan, or it cannot be opened for direct I/O.
    pub fn open_direct(&self, path: &str, sync: SyncMode) -> Result<DirectFile, FileError> {
        self.open_again(path, DirectFile::file, |entry| {
            let options = OpenOptions::new().read(true).write(true).policy(Policy::Require).sync(sync);
            let failed =
                |source| FileError::Open { job: String::new(), path: path.to_owned(), source: Box::new(source) };
            options.open(entry).map_err(failed)
        })
    }

    /// Opens a target as [`Targets::open_direct`] does, for writing through the page cache.
    ///
    /// # Errors
    /// As [`Targets::open_direct`].
    pub fn open_buffered(&self, path: &str) -> Result<File, FileError> {
        self.open_again(
            path,
            |file| file,
            |entry| {
                let failed = |source| FileError::Hold { job: String::new(), path: path.to_owned(), source };
                File::options().read(true).write(true).open(entry).map_err(failed)
            },
        )
    }

    /// Compares a target with the plan, opens it, and compares what was opened.
    fn open_again<F>(
        &self,
        path: &str,
        opened: fn(&F) -> &File,
        open: impl FnOnce(&Path) -> Result<F, FileError>,
    ) -> Result<F, FileError> {
        let of_plan = |error: HoldError| error.of("", path);
        let missing = || of_plan(HoldError::Changed("it is no target of the plan".to_owned()));
        let held = self.held.get(path).ok_or_else(missing)?;
        held.check(0).map_err(of_plan)?;
        let entry = held.entry().map_err(of_plan)?;
        let file = open(&entry.path)?;
        held.confirm(opened(&file)).map_err(of_plan)?;
        held.writes_begin();
        Ok(file)
    }

    /// Returns the file that is held under a path.
    pub(crate) fn get(&self, path: &str) -> Option<&Held> {
        self.held.get(path)
    }

    /// Returns the claim of a block device.
    pub(crate) fn claim_of(&self, device: u64) -> Option<Arc<File>> {
        self.claims.get(&device).cloned()
    }

    /// Adds a file that the run has just created.
    ///
    /// # Errors
    /// Its identity cannot be read.
    pub(crate) fn add_created(&mut self, file: &FilePlan, created: File) -> Result<(), FileError> {
        let held = Held::created(&file.path, created, !file.remove_after, self.keeps)
            .map_err(|source| FileError::Hold { job: String::new(), path: file.path.clone(), source })?;
        self.held.insert(file.path.clone(), held);
        Ok(())
    }

    /// Returns an existing file that the run extends; opens it if it is not open.
    ///
    /// # Errors
    /// It cannot be opened.
    pub(crate) fn get_or_open(&mut self, file: &FilePlan) -> Result<&Held, FileError> {
        if !self.held.contains_key(&file.path) {
            let usage = Usage { is_written: true, is_extended: true, keeps: self.keeps };
            let held = Held::existing(&file.path, None, None, usage).map_err(|error| error.of("", &file.path))?;
            self.held.insert(file.path.clone(), held);
        }
        Ok(&self.held[&file.path])
    }
}

/// Returns whether the plan expects the file to exist before the run.
fn is_existing(file: &FilePlan) -> bool {
    file.prepare == Prepare::UseExisting || file.extends_from.is_some()
}
