//! Output files of a command, reserved before anything is measured and replaced at once at the end.
//!
//! A run takes hours. What the output's name refers to at the end may differ from what was checked at the start: a
//! link to another file, a file that another program created meanwhile, or the reserved file with new content.
//! Therefore the name is reserved while planning: a missing file is created exclusively, and of an existing file the
//! identity (device and inode), size and times are kept. At the end the content is written to a temporary file in the
//! same directory, flushed, and exchanged with the name. The file that the exchange returns is removed only if it is
//! the reserved one, unchanged, and no program has it open for writing; otherwise both are put back.
//!
//! Nothing is inherited from a file of another user: such a file is refused, and the mode of the new file is that of
//! any new file (`0666 & ~umask`) or that of the replaced file of the same user without set-ID and sticky bits.
//!
//! Limits: a file that is rewritten with the same length within one tick of the kernel's clock (up to 10 ms) after its
//! reservation; a program that opens the file between the last check and its removal (microseconds).

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RenameFlags, Stat};
use rustix::io::Errno;
use rustix::process::{getegid, geteuid};
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use trueio_files::{Lease, LeaseKind, Leased, Problem, open_for_output};

/// Device and inode of a file.
type Identity = (u64, u64);

/// File type of a pipe without a name.
const PIPEFS_MAGIC: i64 = 0x5049_5045;
/// The attribute with the access control list of a file.
const ACL: &str = "system.posix_acl_access";
/// In a directory with this bit only owners rename and remove names.
pub(crate) const STICKY: u32 = 0o1000;

/// A reserved output file. Dropping it without a write removes the file if the reservation created it.
#[derive(Debug)]
pub struct ReservedOutput {
    path: PathBuf,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    /// A pipe, a terminal or another stream: opened when reserved, written directly.
    Stream(File),
    /// A regular file.
    Regular(Reserved),
    /// Already written.
    Done,
}

/// A name in a directory, and the file that the name referred to when it was reserved.
#[derive(Debug)]
struct Reserved {
    place: Place,
    identity: Identity,
    stamp: Stamp,
    /// Keeps the file open: if it is removed, its inode number is not reused for another file. Open for reading if the
    /// reservation created the file.
    held: File,
    /// Mode and group of the replaced file; `None`: the reservation created the file.
    replaced: Option<(Mode, u32)>,
}

/// What changes if a file is written, as fstat(2) returns it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp {
    size_bytes: i64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    fn of(found: &Stat) -> Self {
        Self {
            size_bytes: found.st_size,
            modified: (found.st_mtime, found.st_mtime_nsec),
            changed: (found.st_ctime, found.st_ctime_nsec),
        }
    }

    /// Whether the content is the same. A rename changes the time of the last change on some filesystems.
    fn has_content_of(self, other: Self) -> bool {
        (self.size_bytes, self.modified) == (other.size_bytes, other.modified)
    }
}

impl ReservedOutput {
    /// Reserves the name `path`. A missing file is created empty; an existing one keeps its content until the write.
    ///
    /// # Errors
    /// The path is a symbolic link to a file, a directory or a block device, or leads through a link of another user; the
    /// file belongs to another user, or others may write to it in a shared directory; its directory is missing or not
    /// writable.
    pub fn reserve(path: impl Into<PathBuf>) -> io::Result<Self> {
        let path = path.into();
        if let Some(stream) = open_stream(&path)? {
            return Ok(Self { path, kind: Kind::Stream(stream) });
        }
        let kind = Kind::Regular(Reserved::of(&path)?);
        Ok(Self { path, kind })
    }

    /// Returns the path as given.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Replaces the reserved file by a file with this content, atomically.
    ///
    /// # Errors
    /// The name refers to another file than when it was reserved, or another program wrote to the file or has it open for
    /// writing (the error names the temporary file, which is kept); the content could not be written.
    pub fn write(mut self, content: &[u8]) -> io::Result<()> {
        match std::mem::replace(&mut self.kind, Kind::Done) {
            Kind::Stream(mut stream) => stream.write_all(content),
            Kind::Regular(reserved) => {
                let (file, temporary) = reserved.begin()?;
                let mut output = AsideOutput { file, reserved: Some((reserved, temporary)) };
                output.file.write_all(content)?;
                output.finish()
            }
            Kind::Done => Ok(()),
        }
    }

    /// Replaces the reserved file by an empty file, and returns it for content that other programs read while it is
    /// written. Each write goes to its end. If the name was taken, the content goes to a file next to it.
    ///
    /// # Errors
    /// The kernel's.
    pub fn write_in_place(mut self) -> io::Result<PlacedOutput> {
        let path = self.path.clone();
        let (file, path, problem) = match std::mem::replace(&mut self.kind, Kind::Done) {
            Kind::Stream(file) => return Ok(PlacedOutput { file, path: None, problem: None }),
            Kind::Regular(reserved) => {
                let (file, temporary) = reserved.begin()?;
                // What another program adds is not overwritten.
                rustix::fs::fcntl_setfl(&file, OFlags::APPEND)?;
                match reserved.exchange(&temporary) {
                    Ok(()) => (file, path, None),
                    Err(why) => (file, path.with_file_name(&temporary), Some(kept_in(&why, &temporary))),
                }
            }
            Kind::Done => return Err(io::ErrorKind::NotFound.into()),
        };
        Ok(PlacedOutput { file, path: Some(path), problem })
    }

    /// Creates a file next to the reserved one, for content that is written for long; [`AsideOutput::finish`] gives it the name.
    ///
    /// # Errors
    /// The kernel's.
    pub fn write_aside(mut self) -> io::Result<AsideOutput> {
        match std::mem::replace(&mut self.kind, Kind::Done) {
            Kind::Stream(file) => Ok(AsideOutput { file, reserved: None }),
            Kind::Regular(reserved) => {
                let (file, temporary) = reserved.begin()?;
                Ok(AsideOutput { file, reserved: Some((reserved, temporary)) })
            }
            Kind::Done => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

/// An output that is being written under its own name.
#[derive(Debug)]
pub struct PlacedOutput {
    file: File,
    /// `None`: a pipe, a terminal or another stream.
    path: Option<PathBuf>,
    /// Why the path is another one than that of the output.
    problem: Option<String>,
}

impl PlacedOutput {
    /// Returns the file, for the writer.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Checks at the end of all writes that the name still refers to this file, and that it ends with the last write. `written_bytes` is
    /// all that was written, if that is known.
    ///
    /// # Errors
    /// Another program had taken the name when it was first written, or removed, replaced, wrote or truncated the file; the error names the
    /// file that has the content.
    pub fn confirm(&self, written_bytes: Option<u64>) -> io::Result<()> {
        let Some(path) = &self.path else { return Ok(()) };
        if let Some(problem) = &self.problem {
            return Err(taken(problem.clone()));
        }
        confirm_name(&self.file, path)?;
        let end = rustix::fs::tell(&self.file)?;
        confirm_length(&self.file, path, written_bytes.unwrap_or(end))
    }
}

/// An output that is being written next to its name, which it takes when it is complete.
#[derive(Debug)]
pub struct AsideOutput {
    file: File,
    /// `None`: a pipe, a terminal or another stream.
    reserved: Option<(Reserved, OsString)>,
}

impl AsideOutput {
    /// Returns the file, for the writer.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Gives the file its name.
    ///
    /// # Errors
    /// As [`ReservedOutput::write`].
    pub fn finish(mut self) -> io::Result<()> {
        if self.reserved.is_some() {
            self.file.sync_all()?;
        }
        let Some((reserved, temporary)) = self.reserved.take() else { return Ok(()) };
        reserved.exchange(&temporary).map_err(|why| taken(kept_in(&why, &temporary)))?;
        reserved.place.flush();
        Ok(())
    }
}

impl Drop for AsideOutput {
    fn drop(&mut self) {
        if let Some((reserved, temporary)) = &self.reserved {
            reserved.place.remove(temporary);
            reserved.give_up();
        }
    }
}

/// Checks that a path refers to a file that was written under it. The content of a file without a name is kept under
/// another one.
///
/// # Errors
/// The name is missing or refers to another file; the error names the file that has the content.
pub(crate) fn confirm_name(file: &File, path: &Path) -> io::Result<()> {
    let own = rustix::fs::fstat(file)?;
    let named = rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW);
    if named.is_ok_and(|named| (named.st_dev, named.st_ino) == (own.st_dev, own.st_ino)) {
        return Ok(());
    }
    let opens = format!("/proc/self/fd/{}", file.as_raw_fd());
    let kept = if own.st_nlink > 0 {
        std::fs::read_link(opens)
    } else {
        File::open(opens).and_then(|content| Place::of(path)?.keep(content, path))
    };
    let why = "another program removed or replaced it while it was written";
    Err(match kept {
        Ok(kept) => taken(format!("{why}; the output is kept in `{}`", kept.display())),
        Err(error) => taken(format!("{why}, and the output could not be kept under another name: {error}")),
    })
}

/// Checks that a file which only grows has the length that was written.
///
/// # Errors
/// Another program wrote to it or truncated it.
fn confirm_length(file: &File, path: &Path, written_bytes: u64) -> io::Result<()> {
    let found_bytes = file.metadata()?.len();
    if found_bytes == written_bytes {
        return Ok(());
    }
    Err(taken(format!(
        "another program wrote to it or truncated it while it was written: it has {found_bytes} bytes, and {written_bytes} were \
         written; what is left of both is in `{}`",
        path.display()
    )))
}

/// Opens a pipe, a terminal, `/dev/null` or another stream; returns `None` for a regular file or a directory.
fn open_stream(path: &Path) -> io::Result<Option<File>> {
    let found = match open_for_output(path) {
        Ok(found) => found,
        Err(error) if matches!(error.problem, Problem::Io(_)) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    match FileType::from_raw_mode(found.stat.st_mode) {
        FileType::BlockDevice => return Err(refused("it is a block device")),
        FileType::Fifo => {
            // A pipe without a name, or one that was passed as a descriptor, was chosen by the caller.
            let is_passed = found.is_descriptor || rustix::fs::fstatfs(&found.descriptor)?.f_type == PIPEFS_MAGIC;
            let owner = found.stat.st_uid;
            if !is_passed && owner != 0 && owner != geteuid().as_raw() {
                return Err(refused(&format!("it is a pipe of another user (UID {owner})")));
            }
        }
        FileType::CharacterDevice | FileType::Socket => {}
        _ => return Ok(None),
    }
    // `O_NONBLOCK` fails at once if no process reads the named pipe; later writes block as usual.
    let flags = OFlags::WRONLY | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = rustix::fs::open(found.through_descriptor(), flags, Mode::empty()).map_err(|error| {
        if error == Errno::NXIO { refused("it is a pipe that no process reads") } else { error.into() }
    })?;
    rustix::fs::fcntl_setfl(&file, OFlags::empty())?;
    Ok(Some(file.into()))
}

/// A name in a directory.
#[derive(Debug)]
struct Place {
    directory: OwnedFd,
    /// The directory belongs to root or the effective user, so what its new files inherit is intended.
    is_own_directory: bool,
    is_sticky: bool,
    name: OsString,
}

impl Place {
    fn of(path: &Path) -> io::Result<Self> {
        let name = path.file_name().ok_or_else(|| refused("it names no file"))?.to_owned();
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let directory = open_for_output(parent)?;
        let owner = directory.stat.st_uid;
        Ok(Self {
            is_own_directory: owner == 0 || owner == geteuid().as_raw(),
            is_sticky: directory.stat.st_mode & STICKY != 0,
            directory: directory.descriptor,
            name,
        })
    }

    /// Creates a file with a new name next to this one. `replaced` is that of [`Reserved`].
    fn create_neighbour(&self, replaced: Option<(Mode, u32)>) -> io::Result<(File, OsString)> {
        for attempt in 0..100 {
            let mut name = OsString::from(".");
            // A name has at most 255 bytes.
            name.push(OsStr::from_bytes(&self.name.as_bytes()[..self.name.len().min(200)]));
            name.push(format!(".{}-{attempt}.tmp", std::process::id()));
            match self.create(&name, OFlags::RDWR, replaced) {
                Ok(file) => return Ok((file, name)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
        }
        Err(refused("100 temporary files of earlier runs are next to it"))
    }

    /// Creates a file.
    fn create(&self, name: &OsStr, flags: OFlags, replaced: Option<(Mode, u32)>) -> io::Result<File> {
        let flags = flags | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        // What other users could read before must not be readable meanwhile, either, and without bits of the group no access control list of
        // another user's directory permits anything.
        let is_set_later = replaced.is_some() || !self.is_own_directory;
        let mode = if is_set_later { Mode::RUSR | Mode::WUSR } else { Mode::from_raw_mode(0o666) };
        let file = File::from(rustix::fs::openat(&self.directory, name, flags, mode)?);
        match self.set_mode(&file, replaced) {
            Ok(()) => Ok(file),
            Err(error) => {
                self.remove(name);
                Err(error)
            }
        }
    }

    /// Sets the mode of a new file. In the directory of another user, the access control list and the group that the
    /// directory gives to new files are removed.
    fn set_mode(&self, file: &File, replaced: Option<(Mode, u32)>) -> io::Result<()> {
        if !self.is_own_directory {
            match rustix::fs::fremovexattr(file, ACL) {
                Ok(()) | Err(Errno::NODATA | Errno::OPNOTSUPP) => {}
                Err(error) => return Err(error.into()),
            }
            rustix::fs::fchown(file, None, Some(getegid()))?;
        }
        let group = rustix::fs::fstat(file)?.st_gid;
        let mode = match replaced {
            // The permissions of one group are not given to another.
            Some((mode, of)) if of != group => mode - Mode::RWXG,
            Some((mode, _)) => mode,
            None if self.is_own_directory => return Ok(()),
            None => Mode::from_raw_mode(0o666 & !umask()),
        };
        Ok(rustix::fs::fchmod(file, mode)?)
    }

    /// Copies the content of a file to a new name, and returns its path. `path` is the one of this place.
    fn keep(&self, mut content: File, path: &Path) -> io::Result<PathBuf> {
        let (mut file, name) = self.create_neighbour(None)?;
        io::copy(&mut content, &mut file)?;
        file.sync_all()?;
        Ok(path.with_file_name(name))
    }

    /// Returns type, owner, identity, size and times of the file that a name refers to now; `None` if it is missing.
    fn now(&self, name: &OsStr) -> io::Result<Option<Stat>> {
        match rustix::fs::statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => Ok(Some(found)),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    fn remove(&self, name: &OsStr) {
        let _ = rustix::fs::unlinkat(&self.directory, name, AtFlags::empty());
    }

    /// Makes a new name durable. A directory without read permission cannot be flushed.
    fn flush(&self) {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        if let Ok(directory) = rustix::fs::openat(&self.directory, ".", flags, Mode::empty()) {
            let _ = rustix::fs::fsync(directory);
        }
    }
}

/// Creates a file with a new name next to a path, and returns it with its path.
pub(crate) fn create_next_to(path: &Path) -> io::Result<(File, PathBuf)> {
    let (file, name) = Place::of(path)?.create_neighbour(None)?;
    Ok((file, path.with_file_name(name)))
}

/// Creates a missing file to whose end everything is written, and which inherits nothing of another user's directory. With `is_read` it is open
/// for reading, too.
pub(crate) fn create_growing(path: &Path, is_read: bool) -> io::Result<File> {
    let place = Place::of(path)?;
    let access = if is_read { OFlags::RDWR } else { OFlags::WRONLY };
    place.create(&place.name, access | OFlags::APPEND | OFlags::NONBLOCK | OFlags::NOCTTY, None)
}

/// Returns the bits that new files of this process lack. umask(2) cannot read them without a change.
fn umask() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let text = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    text.and_then(|text| u32::from_str_radix(text.trim(), 8).ok()).unwrap_or(0o077)
}

impl Reserved {
    fn of(path: &Path) -> io::Result<Self> {
        let place = Place::of(path)?;
        match place.create(&place.name, OFlags::RDONLY, None) {
            Ok(created) => {
                let found = rustix::fs::fstat(&created)?;
                Ok(Self::holding(place, created.into(), &found, None))
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Self::existing(place),
            Err(error) => Err(error),
        }
    }

    /// Reserves the name of an existing file.
    fn existing(place: Place) -> io::Result<Self> {
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::openat(&place.directory, place.name.as_os_str(), flags, Mode::empty())?;
        let found = rustix::fs::fstat(&file)?;
        match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile => {}
            FileType::Symlink => return Err(refused("it is a symbolic link; name its target instead")),
            FileType::Directory => return Err(refused("it is a directory")),
            _ => return Err(refused("it is not a regular file")),
        }
        check_owner(found.st_uid, found.st_mode, || place.is_sticky)?;
        let mut mode = Mode::from_raw_mode(found.st_mode) & (Mode::RWXU | Mode::RWXG | Mode::RWXO);
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        if rustix::fs::getxattr(path, ACL, &mut [0; 0]).is_ok() {
            // They are those of the users in the list, which the new file does not have.
            mode -= Mode::RWXG;
        }
        if !place.is_own_directory {
            // The directory's access control list may have given it more than a new file has.
            mode &= Mode::from_raw_mode(0o777 & !umask());
        }
        Ok(Self::holding(place, file, &found, Some((mode, found.st_gid))))
    }

    fn holding(place: Place, file: OwnedFd, found: &Stat, replaced: Option<(Mode, u32)>) -> Self {
        let (identity, stamp) = ((found.st_dev, found.st_ino), Stamp::of(found));
        Self { place, identity, stamp, held: file.into(), replaced }
    }

    fn is_reserved(&self, found: &Stat) -> bool {
        (found.st_dev, found.st_ino) == self.identity
    }

    /// Takes the lease that no writer has; `None`: the reservation did not create the file, and cannot take one.
    fn leased(&self) -> Option<Leased<'_>> {
        self.replaced.is_none().then(|| Lease::take(&self.held, LeaseKind::Read))
    }

    /// Removes the empty file that the reservation created, if the name still refers to it and no program writes it.
    fn give_up(&self) {
        let is_empty = |found: &Stat| self.is_reserved(found) && found.st_size == 0;
        let lease = self.leased();
        if self.replaced.is_some() || matches!(lease, Some(Leased::Refused)) {
            return;
        }
        if self.place.now(&self.place.name).is_ok_and(|found| found.as_ref().is_some_and(is_empty)) {
            self.place.remove(&self.place.name);
        }
    }

    /// Creates a file for the content next to the reserved one.
    fn begin(&self) -> io::Result<(File, OsString)> {
        self.place.create_neighbour(self.replaced).inspect_err(|_| self.give_up())
    }

    /// Replaces the reserved file by the temporary file; fails if the name refers to another file, or somebody wrote the
    /// reserved one. The error is a sentence.
    fn exchange(&self, temporary: &OsStr) -> Result<(), String> {
        let text = |error: Errno| io::Error::from(error).to_string();
        let now = |name: &OsStr| self.place.now(name).map_err(|error| error.to_string());
        let rename = |flags| {
            let (directory, name) = (&self.place.directory, self.place.name.as_os_str());
            rustix::fs::renameat_with(directory, temporary, directory, name, flags)
        };
        let name = self.place.name.display();
        let replaced = || "another program replaced it after it was reserved".to_owned();
        let written = |how: &str| format!("another program {how}, so `{name}` is left as it is");
        let lease = self.leased();
        match now(&self.place.name)? {
            Some(found) if self.is_reserved(&found) && Stamp::of(&found) != self.stamp => {
                return Err(written("wrote to it after it was reserved"));
            }
            Some(found) if self.is_reserved(&found) && matches!(lease, Some(Leased::Refused)) => {
                return Err(written("has it open for writing"));
            }
            _ => {}
        }
        match rename(RenameFlags::EXCHANGE) {
            Ok(()) => {
                let problem = match now(temporary)? {
                    Some(found) if !self.is_reserved(&found) => Some(replaced()),
                    Some(found) if !Stamp::of(&found).has_content_of(self.stamp) => {
                        Some(written("wrote to it after it was reserved"))
                    }
                    Some(_) if lease.as_ref().is_some_and(Leased::is_broken) => {
                        Some(written("has it open for writing"))
                    }
                    Some(_) => None,
                    None => Some(replaced()),
                };
                let Some(problem) = problem else {
                    self.place.remove(temporary);
                    return Ok(());
                };
                rename(RenameFlags::EXCHANGE).map_err(text)?;
                Err(problem)
            }
            // The reserved file was removed, so nothing can be overwritten.
            Err(Errno::NOENT) => rename(RenameFlags::NOREPLACE).map_err(|_| replaced()),
            // The filesystem cannot exchange names.
            Err(Errno::INVAL | Errno::NOSYS) => match now(&self.place.name)? {
                Some(found) if !self.is_reserved(&found) => Err(replaced()),
                _ => rename(RenameFlags::empty()).map_err(text),
            },
            Err(error) => Err(text(error)),
        }
    }
}

/// Refuses a file of another user, or one that other users may write to in a directory where they may create names.
pub(crate) fn check_owner(uid: u32, mode: u32, is_sticky: impl FnOnce() -> bool) -> io::Result<()> {
    let mode = mode & 0o7777;
    if uid != geteuid().as_raw() {
        return Err(refused(&format!(
            "it belongs to another user (UID {uid}), who may change it; remove it, or choose another name"
        )));
    }
    if mode & 0o022 != 0 && is_sticky() {
        return Err(refused(&format!(
            "other users may write to it (mode {mode:04o}) in a directory that users share; remove it, or choose another \
             name"
        )));
    }
    Ok(())
}

/// Returns the sentence about an output whose name was taken.
fn kept_in(why: &str, temporary: &OsStr) -> String {
    format!("{why}; the output is kept in `{}` next to it", temporary.display())
}

pub(crate) fn taken(text: String) -> io::Error {
    io::Error::new(io::ErrorKind::AlreadyExists, text)
}

fn refused(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

impl Drop for ReservedOutput {
    fn drop(&mut self) {
        if let Kind::Regular(reserved) = &self.kind {
            reserved.give_up();
        }
    }
}

#[cfg(test)]
mod owners;

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn names_in(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .expect("the directory")
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_new_output_is_created_when_reserved_and_removed_when_it_is_dropped() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("out.json");
        let reserved = ReservedOutput::reserve(&path).expect("reserved");
        assert_eq!(fs::read(&path).expect("it exists"), b"");
        drop(reserved);
        assert!(names_in(folder.path()).is_empty());
        ReservedOutput::reserve(&path).expect("reserved").write(b"{}").expect("written");
        assert_eq!(names_in(folder.path()), ["out.json"]);
        assert_eq!(fs::read(&path).expect("it exists"), b"{}");
    }

    #[test]
    fn an_existing_output_keeps_its_content_until_the_write_and_its_mode_after_it() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("out.json");
        fs::write(&path, "old").expect("a file");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("a mode");
        let reserved = ReservedOutput::reserve(&path).expect("reserved");
        assert_eq!(fs::read(&path).expect("it exists"), b"old");
        reserved.write(b"new").expect("written");
        assert_eq!(fs::read(&path).expect("it exists"), b"new");
        assert_eq!(fs::metadata(&path).expect("it exists").permissions().mode() & 0o777, 0o640);
        drop(ReservedOutput::reserve(&path).expect("reserved"));
        assert_eq!(fs::read(&path).expect("it exists"), b"new");
        assert_eq!(names_in(folder.path()), ["out.json"]);
    }

    #[test]
    fn a_file_or_link_that_took_the_name_meanwhile_is_left_alone_and_the_output_is_kept_next_to_it() {
        for swap in ["file", "link"] {
            let folder = tempfile::tempdir().expect("a directory");
            let (path, thesis) = (folder.path().join("out.json"), folder.path().join("thesis.txt"));
            fs::write(&thesis, "precious").expect("a file");
            let reserved = ReservedOutput::reserve(&path).expect("reserved");
            fs::remove_file(&path).expect("removed");
            match swap {
                "file" => fs::write(&path, "of another program").expect("a file"),
                _ => symlink("thesis.txt", &path).expect("a link"),
            }
            let before = fs::read(&path).expect("it exists");
            let error = reserved.write(b"{}").expect_err("it was replaced").to_string();
            assert!(error.contains("another program replaced it"), "{error}");
            assert_eq!(fs::read(&path).expect("it exists"), before);
            assert_eq!(fs::read(&thesis).expect("it exists"), b"precious");
            let kept = names_in(folder.path()).into_iter().find(|name| name.ends_with(".tmp")).expect("it is kept");
            assert!(error.contains(&kept), "{error}");
            assert_eq!(fs::read(folder.path().join(kept)).expect("it exists"), b"{}");
            // The same for content that is written in place.
            let reserved = ReservedOutput::reserve(folder.path().join("log")).expect("reserved");
            fs::remove_file(folder.path().join("log")).expect("removed");
            symlink("thesis.txt", folder.path().join("log")).expect("a link");
            let output = reserved.write_in_place().expect("a file next to it");
            (&mut output.file()).write_all(b"rows").expect("written");
            let error = output.confirm(Some(4)).expect_err("it was replaced").to_string();
            assert_eq!(fs::read(&thesis).expect("it exists"), b"precious");
            let kept = error.split('`').nth(1).expect("its name");
            assert_eq!(fs::read(folder.path().join(kept)).expect("it is kept"), b"rows");
        }
    }

    /// Goal: `echo notes > out.json` during a run loses neither the notes nor the output.
    #[test]
    fn a_reserved_file_that_is_filled_meanwhile_is_left_alone_and_the_output_is_kept_next_to_it() {
        for before in [None, Some("old")] {
            let folder = tempfile::tempdir().expect("a directory");
            let path = folder.path().join("out.json");
            before.iter().for_each(|text| fs::write(&path, text).expect("a file"));
            let reserved = ReservedOutput::reserve(&path).expect("reserved");
            fs::write(&path, "notes").expect("a file");
            let error = reserved.write(b"{}").expect_err("it was filled").to_string();
            assert_eq!(fs::read(&path).expect("it exists"), b"notes");
            let kept = names_in(folder.path()).into_iter().find(|name| name.ends_with(".tmp")).expect("it is kept");
            assert_eq!(fs::read(folder.path().join(&kept)).expect("it exists"), b"{}");
            assert_eq!(
                error,
                format!(
                    "another program wrote to it after it was reserved, so `out.json` is left as it is; the output is kept \
                     in `{kept}` next to it"
                )
            );
            // The same before a trace is begun, and if the command ends without an output.
            let path = folder.path().join("trace");
            let reserved = ReservedOutput::reserve(&path).expect("reserved");
            fs::write(&path, "notes").expect("a file");
            let output = reserved.write_in_place().expect("a file next to it");
            assert!(output.confirm(Some(0)).is_err());
            drop(ReservedOutput::reserve(&path).expect("reserved"));
            assert_eq!(fs::read(&path).expect("it exists"), b"notes");
            // The same while a trace is written next to its name.
            fs::remove_file(&path).expect("removed");
            let output =
                ReservedOutput::reserve(&path).and_then(ReservedOutput::write_aside).expect("a file next to it");
            (&mut output.file()).write_all(b"rows").expect("written");
            fs::write(&path, "notes").expect("a file");
            let error = output.finish().expect_err("it was filled").to_string();
            let kept = error.split('`').nth(3).expect("its name");
            assert_eq!(fs::read(folder.path().join(kept)).expect("it is kept"), b"rows", "{error}");
            assert_eq!(fs::read(&path).expect("it exists"), b"notes");
        }
    }

    /// Goal: a shell opened the file (`slow > out.json`), and its program writes after the run.
    #[test]
    fn a_reserved_file_that_a_program_has_open_for_writing_is_left_alone() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("out.json");
        let reserved = ReservedOutput::reserve(&path).expect("reserved");
        let mut slow = fs::File::options().append(true).open(&path).expect("a file");
        let error = reserved.write(b"{}").expect_err("a program has it open").to_string();
        assert!(error.starts_with("another program has it open for writing, so `out.json` is left"), "{error}");
        slow.write_all(b"late").expect("written");
        assert_eq!(fs::read(&path).expect("it exists"), b"late");
        fs::remove_file(&path).expect("removed");
        let reserved = ReservedOutput::reserve(&path).expect("reserved");
        let mut slow = fs::File::options().append(true).open(&path).expect("a file");
        drop(reserved);
        slow.write_all(b"late").expect("written");
        assert_eq!(fs::read(&path).expect("it exists"), b"late");
        // A reader is no reason.
        fs::remove_file(&path).expect("removed");
        let reserved = ReservedOutput::reserve(&path).expect("reserved");
        let _reader = fs::File::open(&path).expect("a file");
        reserved.write(b"{}").expect("written");
    }

    /// Goal: no other name of an existing file sees what an output writes under its own.
    #[test]
    fn an_output_in_place_truncates_no_file_that_has_another_name() {
        let folder = tempfile::tempdir().expect("a directory");
        let (path, other) = (folder.path().join("trace"), folder.path().join("backup"));
        fs::write(&path, "old").expect("a file");
        fs::hard_link(&path, &other).expect("another name");
        let output = ReservedOutput::reserve(&path).expect("reserved").write_in_place().expect("placed");
        (&mut output.file()).write_all(b"new").expect("written");
        output.confirm(Some(3)).expect("it has its name");
        assert_eq!(fs::read(&path).expect("it exists"), b"new");
        assert_eq!(fs::read(&other).expect("it exists"), b"old");
    }

    #[test]
    fn an_output_in_place_whose_name_is_taken_is_reported_and_kept() {
        for how in ["removed", "replaced", "renamed"] {
            let folder = tempfile::tempdir().expect("a directory");
            let path = folder.path().join("trace");
            let output = ReservedOutput::reserve(&path).expect("reserved").write_in_place().expect("placed");
            (&mut output.file()).write_all(b"rows").expect("written");
            match how {
                "renamed" => fs::rename(&path, folder.path().join("moved")).expect("renamed"),
                _ => fs::remove_file(&path).expect("removed"),
            }
            if how == "replaced" {
                fs::write(&path, "notes").expect("a file");
            }
            let error = output.confirm(Some(4)).expect_err(how).to_string();
            let kept = error.split('`').nth(1).unwrap_or_else(|| panic!("{error}"));
            assert_eq!(fs::read(kept).expect("it is kept"), b"rows", "{how}: {error}");
            assert!(how != "replaced" || fs::read(&path).expect("it exists") == b"notes");
        }
    }

    #[test]
    fn a_reserved_file_that_was_removed_is_written_again() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("out.json");
        let reserved = ReservedOutput::reserve(&path).expect("reserved");
        fs::remove_file(&path).expect("removed");
        reserved.write(b"{}").expect("written");
        assert_eq!(names_in(folder.path()), ["out.json"]);
    }

    #[test]
    fn links_directories_and_unread_pipes_are_refused_and_streams_are_written() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = |name: &str| folder.path().join(name);
        fs::write(path("data"), "precious").expect("a file");
        symlink("data", path("link")).expect("a link");
        symlink("nothing", path("dangling")).expect("a link");
        rustix::fs::mknodat(CWD, path("pipe"), FileType::Fifo, Mode::from_raw_mode(0o600), 0).expect("a pipe");
        for name in ["link", "dangling", "pipe", ".", "missing/file"] {
            assert!(ReservedOutput::reserve(path(name)).is_err(), "{name}");
        }
        assert_eq!(fs::read(path("data")).expect("it exists"), b"precious");
        assert_eq!(names_in(folder.path()), ["dangling", "data", "link", "pipe"]);
        ReservedOutput::reserve("/dev/null").expect("a stream").write(b"{}").expect("written");
    }
}
