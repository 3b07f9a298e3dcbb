//! Output files of a command, reserved before anything is measured and replaced at once at the end.
//!
//! A run takes hours. What the output's name refers to at the end may differ from what was checked at the start: a
//! link to another file, or a file that another program created meanwhile. Therefore the name is reserved while
//! planning: a missing file is created exclusively, and of an existing file the identity (device and inode) is kept.
//! At the end the content is written to a temporary file in the same directory, flushed, and exchanged with the name.
//! The file that the exchange returns is removed only if it is the reserved one; otherwise both are put back.
//!
//! Cannot see: a file that another program rewrites in place under the same inode.

use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, RenameFlags};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};

/// Device and inode of a file.
type Identity = (u64, u64);

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
    directory: OwnedFd,
    name: OsString,
    identity: Identity,
    /// Keeps the file open: if it is removed, its inode number is not reused for another file.
    _held: OwnedFd,
    mode: Mode,
    is_created: bool,
}

impl ReservedOutput {
    /// Reserves the name `path`. A missing file is created empty; an existing one keeps its content until the write.
    ///
    /// # Errors
    /// The path is a symbolic link to a file, a directory or a block device, or its directory is missing or not
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
    /// The name refers to another file than when it was reserved (the error names the temporary file, which is kept),
    /// or the content could not be written.
    pub fn write(mut self, content: &[u8]) -> io::Result<()> {
        match std::mem::replace(&mut self.kind, Kind::Done) {
            Kind::Stream(mut stream) => stream.write_all(content),
            Kind::Regular(reserved) => reserved.replace(content),
            Kind::Done => Ok(()),
        }
    }

    /// Truncates the reserved file and returns it, for content that other programs read while it is written.
    ///
    /// # Errors
    /// The name refers to another file than when it was reserved.
    pub fn write_in_place(mut self) -> io::Result<File> {
        match std::mem::replace(&mut self.kind, Kind::Done) {
            Kind::Stream(stream) => Ok(stream),
            Kind::Regular(reserved) => reserved.open(),
            Kind::Done => Err(io::ErrorKind::NotFound.into()),
        }
    }
}

impl Drop for ReservedOutput {
    fn drop(&mut self) {
        if let Kind::Regular(reserved) = &self.kind {
            reserved.give_up();
        }
    }
}

/// Opens a pipe, a terminal, `/dev/null` or another stream; returns `None` for a regular file or a directory.
fn open_stream(path: &Path) -> io::Result<Option<File>> {
    let Ok(metadata) = std::fs::metadata(path) else { return Ok(None) };
    let kind = metadata.file_type();
    if kind.is_block_device() {
        return Err(refused("it is a block device"));
    }
    if !(kind.is_fifo() || kind.is_char_device() || kind.is_socket()) {
        return Ok(None);
    }
    // `O_NONBLOCK` fails at once if no process reads the named pipe; later writes block as usual.
    let file =
        rustix::fs::open(path, OFlags::WRONLY | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())
            .map_err(
                |error| if error == Errno::NXIO { refused("it is a pipe that no process reads") } else { error.into() },
            )?;
    let now = File::from(file);
    let opened = now.metadata()?;
    if opened.file_type().is_file() || opened.file_type().is_block_device() {
        return Err(refused("it was replaced while it was opened"));
    }
    rustix::fs::fcntl_setfl(&now, OFlags::empty())?;
    Ok(Some(now))
}

impl Reserved {
    fn of(path: &Path) -> io::Result<Self> {
        let name = path.file_name().ok_or_else(|| refused("it names no file"))?.to_owned();
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::openat(CWD, parent, flags, Mode::empty())?;
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match rustix::fs::openat(&directory, name.as_os_str(), flags, Mode::from_raw_mode(0o666)) {
            Ok(created) => Self::held(directory, name, created, true),
            Err(Errno::EXIST) => {
                let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let found = rustix::fs::openat(&directory, name.as_os_str(), flags, Mode::empty())?;
                Self::held(directory, name, found, false)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Reserves a name and the open regular file that it refers to.
    fn held(directory: OwnedFd, name: OsString, file: OwnedFd, is_created: bool) -> io::Result<Self> {
        let found = rustix::fs::fstat(&file)?;
        match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile => {}
            FileType::Symlink => return Err(refused("it is a symbolic link; name its target instead")),
            FileType::Directory => return Err(refused("it is a directory")),
            _ => return Err(refused("it is not a regular file")),
        }
        let (identity, mode) = ((found.st_dev, found.st_ino), Mode::from_raw_mode(found.st_mode));
        Ok(Self { directory, name, identity, _held: file, mode, is_created })
    }

    /// Returns the identity of the file that the name refers to now; `None` if the name is missing.
    fn now(&self, name: &OsStr) -> io::Result<Option<Identity>> {
        match rustix::fs::statat(&self.directory, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => Ok(Some((found.st_dev, found.st_ino))),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Removes the empty file that the reservation created, if the name still refers to it.
    fn give_up(&self) {
        let is_empty = || {
            let found = rustix::fs::statat(&self.directory, self.name.as_os_str(), AtFlags::SYMLINK_NOFOLLOW);
            found.is_ok_and(|found| (found.st_dev, found.st_ino) == self.identity && found.st_size == 0)
        };
        if self.is_created && is_empty() {
            let _ = rustix::fs::unlinkat(&self.directory, self.name.as_os_str(), AtFlags::empty());
        }
    }

    fn replace(self, content: &[u8]) -> io::Result<()> {
        let temporary = match self.write_temporary(content) {
            Ok(temporary) => temporary,
            Err(error) => {
                self.give_up();
                return Err(error);
            }
        };
        self.exchange(&temporary)?;
        // Makes the exchange durable. A directory without read permission cannot be flushed.
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        if let Ok(directory) = rustix::fs::openat(&self.directory, ".", flags, Mode::empty()) {
            let _ = rustix::fs::fsync(directory);
        }
        Ok(())
    }

    /// Writes and flushes the content under a new name in the same directory; returns that name.
    fn write_temporary(&self, content: &[u8]) -> io::Result<OsString> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        for attempt in 0..100 {
            let mut name = OsString::from(".");
            // A name has at most 255 bytes.
            name.push(OsStr::from_bytes(&self.name.as_bytes()[..self.name.len().min(200)]));
            name.push(format!(".{}-{attempt}.tmp", std::process::id()));
            let opened = rustix::fs::openat(&self.directory, name.as_os_str(), flags, Mode::from_raw_mode(0o600));
            let mut file = match opened {
                Ok(file) => File::from(file),
                Err(Errno::EXIST) => continue,
                Err(error) => return Err(error.into()),
            };
            let written = file.write_all(content).and_then(|()| Ok(rustix::fs::fchmod(&file, self.mode)?));
            if let Err(error) = written.and_then(|()| file.sync_all()) {
                let _ = rustix::fs::unlinkat(&self.directory, name.as_os_str(), AtFlags::empty());
                return Err(error);
            }
            return Ok(name);
        }
        Err(refused("100 temporary files of earlier runs are next to it"))
    }

    /// Replaces the reserved file by the temporary file; fails if the name refers to another file.
    fn exchange(&self, temporary: &OsStr) -> io::Result<()> {
        let rename = |flags| {
            let name = self.name.as_os_str();
            rustix::fs::renameat_with(&self.directory, temporary, &self.directory, name, flags)
        };
        let kept = |why: &str| {
            let text = format!("{why}; the output is kept in `{}` next to it", temporary.display());
            io::Error::new(io::ErrorKind::AlreadyExists, text)
        };
        let foreign = || kept("another program replaced it after it was reserved");
        match rename(RenameFlags::EXCHANGE) {
            Ok(()) if self.now(temporary)? == Some(self.identity) => {
                rustix::fs::unlinkat(&self.directory, temporary, AtFlags::empty())?;
                Ok(())
            }
            Ok(()) => {
                rename(RenameFlags::EXCHANGE)?;
                Err(foreign())
            }
            // The reserved file was removed, so nothing can be overwritten.
            Err(Errno::NOENT) => rename(RenameFlags::NOREPLACE).map_err(|_| foreign()),
            // The filesystem cannot exchange names.
            Err(Errno::INVAL | Errno::NOSYS) => match self.now(&self.name)? {
                Some(identity) if identity != self.identity => Err(foreign()),
                _ => rename(RenameFlags::empty()).map_err(|error| kept(&io::Error::from(error).to_string())),
            },
            Err(error) => Err(kept(&io::Error::from(error).to_string())),
        }
    }

    /// Opens the reserved file and truncates it.
    fn open(self) -> io::Result<File> {
        let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::openat(&self.directory, self.name.as_os_str(), flags, Mode::empty())?);
        let metadata = file.metadata()?;
        if (metadata.dev(), metadata.ino()) != self.identity {
            return Err(refused("another program replaced it after it was reserved"));
        }
        file.set_len(0)?;
        Ok(file)
    }
}

fn refused(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

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
            assert!(reserved.write_in_place().is_err());
            assert_eq!(fs::read(&thesis).expect("it exists"), b"precious");
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
