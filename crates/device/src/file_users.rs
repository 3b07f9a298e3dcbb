//! Finds the users of a regular file that must not be written: the kernel, and processes that write it.
//!
//! Loop devices, swap and sources of mounts are compared by device and inode. A write lease then detects every other user: it is
//! refused while anything has the file open. If processes explain that, only those that may write the file count; if no process does, the
//! user is the kernel, or a process that this user may not read.
//!
//! Limits: [`trueio_files::Lease`] and [`crate::same_file`] list theirs. While a process has the file open for reading, the lease cannot show
//! other users; a note reports that. Other runs of this program may share a file.

use crate::error::DeviceError;
use crate::holders::{Holder, HolderKind, Holders, add_loops_of_file};
use crate::loops::{Below, Loops};
use crate::mount_tables::MountTables;
use crate::mounts::{self, Mount};
use crate::openers::{FileOpener, who_has_file_open};
use crate::same_file::KnownFile;
use crate::system::System;
use std::fs::File;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;
use trueio_files::{Lease, LeaseKind, Leased};
use trueio_model::FilesystemKind;

/// Number of attempts to get a lease, and the time between them: search tools and other runs open a file only briefly.
const ATTEMPTS: u32 = 6;
const PAUSE: Duration = Duration::from_millis(50);

/// Returns the users of the regular file at `path`: loop devices on it, with their own holders, swap, mounts, and, on the running machine,
/// any other user that has it open.
///
/// # Errors
/// [`DeviceError::Path`] if the path cannot be read.
pub fn who_uses_file(system: &System, path: &Path) -> Result<Holders, DeviceError> {
    let failed = |source| DeviceError::Path { path: path.to_owned(), source };
    let identity = system.identify(path).map_err(failed)?;
    let name = identity.path.display().to_string();
    let tables = MountTables::new(system);
    let file = match system.is_live() {
        true => {
            let known = KnownFile::at(path).map_err(failed)?;
            let mounts = if known.may_be_on_overlay() { mounts::mounts(system)? } else { Vec::new() };
            Below::File(match mounts::mount_of(&mounts, &identity) {
                Some(mount) => known.with_upper(&identity.path, mount, &tables),
                None => known,
            })
        }
        false => Below::Named(identity.path.clone()),
    };
    let loops = Loops::new(system, &tables);
    let mut holders = Holders::default();
    add_loops_of_file(system, (&tables, &loops), (&file, &name), &mut holders);
    swapped(system, (&file, &name), &mut holders);
    if let Below::File(known) = &file
        && holders.found.is_empty()
    {
        let others = Others::find(system, path, known);
        // A user of the file below overlayfs does not prevent a lease on the file above.
        if known.may_be_on_overlay() || !matches!(others, Others::None) {
            mounted_from(system, &tables, (known, &name), &mut holders);
        }
        if known.is_hidden() && !loops.unknown().is_empty() {
            let devices = loops.unknown().join("`, `");
            holders.unseen.push(format!("the files below the loop devices `{devices}` are unknown"));
        }
        others.add_to(&mut holders, &name, loops.has_nameless());
    }
    holders.found.sort();
    holders.found.dedup();
    Ok(holders)
}

/// Adds the swap on the file. Swap whose path leads elsewhere by now is found by the lease.
fn swapped(system: &System, (file, name): (&Below, &str), holders: &mut Holders) {
    let source = "/proc/swaps";
    for line in system.read(source).unwrap_or_default().lines().skip(1) {
        let path = mounts::unescape(line.split_whitespace().next().unwrap_or_default());
        let is_it = match file {
            Below::File(known) => KnownFile::at(Path::new(&path)).is_ok_and(|found| found.is_same(known)),
            Below::Named(name) => name == Path::new(&path),
            Below::Device(_) => false,
        };
        if is_it {
            let holder = Holder { device: name.to_owned(), kind: HolderKind::Swap, source: source.to_owned() };
            holders.found.push(holder);
        }
    }
}

/// Adds the mounts whose source is the file, as of a file-backed EROFS.
fn mounted_from(system: &System, tables: &MountTables<'_>, (file, name): (&KnownFile, &str), holders: &mut Holders) {
    let without_disk = mounts::kinds_without_disk(system);
    let is_on_disk = |mount: &Mount| !without_disk.iter().any(|kind| FilesystemKind::from(kind.as_str()) == mount.kind);
    for table in tables.all() {
        for mount in table.mounts.iter().filter(|mount| mount.may_have_source() && is_on_disk(mount)) {
            let paths = [table.in_root(Path::new(&mount.source)), PathBuf::from(&mount.source)];
            if paths.iter().any(|path| KnownFile::at(path).is_ok_and(|found| found.is_same(file))) {
                let mount_point = mount.mount_point.display().to_string();
                let kind = HolderKind::Mounted { mount_point, process: table.process };
                holders.found.push(Holder { device: name.to_owned(), kind, source: table.source() });
            }
        }
    }
}

/// Returns true if the kernel refuses a write lease on the regular file at a path. A lease that is granted is given back at once.
fn is_open_elsewhere(path: &Path) -> std::io::Result<bool> {
    // Not blocking: if another program has a lease, the kernel would wait until it is returned.
    let file = match File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path) {
        Ok(file) => file,
        Err(error) if error.raw_os_error() == Some(libc::EWOULDBLOCK) => return Ok(true),
        Err(error) => return Err(error),
    };
    match Lease::take(&file, LeaseKind::Write) {
        Leased::Granted(_) => Ok(false),
        Leased::Refused => Ok(true),
        Leased::Impossible(error) => Err(error),
    }
}

/// What a lease and the open files of processes show.
enum Others {
    /// The file is open nowhere else.
    None,
    /// It is open elsewhere: in these processes; without a process, in the kernel, or in a process that this user may not read.
    Open(Vec<FileOpener>),
    /// The kernel grants no lease: the reason.
    Unknown(std::io::Error),
}

impl Others {
    fn find(system: &System, path: &Path, file: &KnownFile) -> Self {
        let mut openers: Vec<FileOpener> = Vec::new();
        for attempt in 1..=ATTEMPTS {
            match is_open_elsewhere(path) {
                Ok(false) => return Self::None,
                Ok(true) => {}
                Err(error) => return Self::Unknown(error),
            }
            let now = who_has_file_open(system, file.id());
            // Those that were found before, if there are any: others have it open only for a moment.
            let lasting = || now.iter().filter(|opener| openers.contains(opener)).cloned().collect::<Vec<_>>();
            openers = Some(lasting()).filter(|lasting| attempt > 1 && !lasting.is_empty()).unwrap_or(now);
            if openers.iter().any(|opener| opener.is_this_program) {
                break;
            }
            std::thread::sleep(PAUSE);
        }
        Self::Open(openers)
    }

    /// `may_be_loop`: the file of a loop device is unknown, so a reader does not explain why there is no lease.
    fn add_to(self, holders: &mut Holders, name: &str, may_be_loop: bool) {
        let openers = match self {
            Self::None => return,
            Self::Open(openers) => openers,
            Self::Unknown(error) => {
                let sentence =
                    format!("the kernel grants no lease, which would show whether it is open elsewhere ({error})");
                return holders.unseen.push(sentence);
            }
        };
        let explained = openers.iter().any(|opener| opener.may_write || opener.is_this_program || !may_be_loop);
        if !explained && holders.found.is_empty() {
            let source = "fcntl F_SETLEASE: EAGAIN".to_owned();
            holders.found.push(Holder { device: name.to_owned(), kind: HolderKind::Unnamed, source });
        }
        for FileOpener { process, name: program, may_write, is_this_program } in openers {
            match (is_this_program, may_write) {
                (true, _) => {}
                (false, true) => {
                    let kind = HolderKind::OpenForWriting { program, process };
                    holders.found.push(Holder { device: name.to_owned(), kind, source: format!("/proc/{process}/fd") });
                }
                (false, false) => holders.unseen.push(format!(
                    "`{program}` (process {process}) has it open, which hides whether the kernel uses it"
                )),
            }
        }
    }
}
