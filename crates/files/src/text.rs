//! Reads a text that a user names: a job file, an included file, a record, a log, a token.
//!
//! Such a name may lead to what never ends (`/dev/zero`), never answers (a pipe without a writer, `/proc/kmsg`) or acts when
//! it is opened (a tape, a watchdog). So only regular files and pipes are opened, after their type was read; a pipe is read
//! while a process writes it, and nothing is read beyond a limit.
//!
//! Limits: a filesystem that does not answer, for example of a network or of a FUSE server, is waited for.
//!
//! Source: open(2) `O_PATH`, `O_NONBLOCK`; fifo(7); poll(2).

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags};
use rustix::process::geteuid;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;

/// The longest wait for the next byte of a pipe, in seconds.
const PIPE_WAIT_S: u32 = 60;
/// The kernel's own filesystems: proc, sysfs, debugfs, tracefs. Their files may never end, or answer only once.
const KERNELS: [i64; 4] = [0x9fa0, 0x6265_6572, 0x6462_6720, 0x7472_6163];

/// Why a text is not read.
#[derive(Debug, thiserror::Error)]
pub enum TextError {
    /// The kernel's error.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// A directory.
    #[error("it is a directory")]
    Directory,
    /// A device or a socket, whose content may have no end.
    #[error("it is {0}, and only regular files and pipes are read")]
    Kind(&'static str),
    /// A file of the kernel.
    #[error("it is a file of the kernel (proc, sysfs), whose content may have no end")]
    Kernel,
    /// A pipe without a writer.
    #[error("it is a pipe that no process writes to")]
    NoWriter,
    /// The writer of a pipe wrote nothing for a while.
    #[error("it is a pipe to which nothing was written for {PIPE_WAIT_S} seconds")]
    Silent,
    /// More bytes than the limit.
    #[error("it is longer than {limit_bytes} bytes")]
    TooLong {
        /// The longest text that is read, in bytes.
        limit_bytes: u64,
    },
    /// A file with a default name that is a link or a pipe.
    #[error("it is a link or a pipe, and only a regular file is read under this name")]
    Link,
    /// A file with a default name that another user could have written.
    #[error("it belongs to another user (UID {0}); use a copy of your own")]
    Foreign(u32),
    /// A file that other users may write to, with its mode.
    #[error("other users may write to it (mode {0:04o})")]
    Writable(u32),
    /// Bytes that are no text.
    #[error("it is not text (UTF-8)")]
    NotText,
}

impl From<TextError> for io::Error {
    fn from(error: TextError) -> Self {
        match error {
            TextError::Io(error) => error,
            error => io::Error::new(io::ErrorKind::InvalidInput, error),
        }
    }
}

/// A regular file or a pipe, open for reading at most as many bytes as its limit.
#[derive(Debug)]
pub struct TextFile {
    file: File,
    is_pipe: bool,
    /// A byte of a pipe was read, so it has or had a writer.
    has_begun: bool,
    limit_bytes: u64,
    left_bytes: u64,
}

impl TextFile {
    /// Opens a file that a user names; `-` is standard input, which may be a terminal.
    ///
    /// # Errors
    /// [`TextError`]; a pipe without a writer is found by the first read.
    pub fn open(path: &Path, limit_bytes: u64) -> Result<Self, TextError> {
        let (file, is_pipe) = match path == Path::new("-") {
            // Blocking reads: its mode is shared with the process that passed it.
            true => (File::from(io::stdin().as_fd().try_clone_to_owned()?), false),
            false => open(path)?,
        };
        Ok(Self { file, is_pipe, has_begun: false, limit_bytes, left_bytes: limit_bytes })
    }

    /// Returns the file, for readers that seek; `None`: it is a pipe.
    pub fn seekable(&self) -> Option<&File> {
        (!self.is_pipe && rustix::fs::tell(&self.file).is_ok()).then_some(&self.file)
    }

    /// Reads the rest.
    ///
    /// # Errors
    /// [`TextError`].
    pub fn bytes(mut self) -> Result<Vec<u8>, TextError> {
        // Of a regular file, nothing is read that the limit then refuses.
        let beyond = |file: &File| file.metadata().is_ok_and(|found| found.len() > self.limit_bytes);
        if self.seekable().is_some_and(|file| rustix::fs::tell(file) == Ok(0) && beyond(file)) {
            return Err(TextError::TooLong { limit_bytes: self.limit_bytes });
        }
        let mut bytes = Vec::new();
        match self.read_to_end(&mut bytes) {
            Ok(_) => Ok(bytes),
            Err(error) => Err(text_error(error)),
        }
    }

    /// Waits until a pipe has bytes or its writers are gone.
    fn wait(&mut self) -> Result<(), TextError> {
        let mut waiting = [PollFd::new(&self.file, PollFlags::IN)];
        // Without a writer the pipe is never ready, and a read returns 0 bytes.
        let limit = Timespec { tv_sec: i64::from(PIPE_WAIT_S), tv_nsec: 0 };
        match rustix::event::poll(&mut waiting, Some(&limit)) {
            Ok(0) => Err(TextError::Silent),
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(io::Error::from(error).into()),
        }
    }
}

impl Read for TextFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            // One byte beyond the limit shows that the file is longer.
            let most = usize::try_from(self.left_bytes.saturating_add(1)).unwrap_or(usize::MAX).min(buffer.len());
            match self.file.read(&mut buffer[..most]) {
                Ok(0) if self.is_pipe && !self.has_begun => return Err(TextError::NoWriter.into()),
                Ok(count) => {
                    self.has_begun = true;
                    let left = self.left_bytes.checked_sub(count as u64);
                    self.left_bytes = left.ok_or(TextError::TooLong { limit_bytes: self.limit_bytes })?;
                    return Ok(count);
                }
                // A regular file that answers so is one of a driver.
                Err(error) if error.kind() == io::ErrorKind::WouldBlock && self.is_pipe => self.wait()?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }
}

/// Returns the error that was passed through [`Read`].
fn text_error(error: io::Error) -> TextError {
    match error.downcast::<TextError>() {
        Ok(error) => error,
        Err(error) => TextError::Io(error),
    }
}

/// Opens a regular file or a pipe without waiting; true: it is a pipe.
fn open(path: &Path) -> Result<(File, bool), TextError> {
    let found =
        rustix::fs::openat(CWD, path, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).map_err(io::Error::from)?;
    let stat = rustix::fs::fstat(&found).map_err(io::Error::from)?;
    let is_pipe = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile if is_kernels(&found)? => return Err(TextError::Kernel),
        FileType::RegularFile => false,
        FileType::Fifo => true,
        FileType::Directory => return Err(TextError::Directory),
        FileType::BlockDevice => return Err(TextError::Kind("a block device")),
        FileType::CharacterDevice => return Err(TextError::Kind("a character device")),
        FileType::Socket => return Err(TextError::Kind("a socket")),
        _ => return Err(TextError::Kind("of an unknown type")),
    };
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let name = format!("/proc/self/fd/{}", found.as_raw_fd());
    let file = rustix::fs::open(name, flags, Mode::empty()).map_err(io::Error::from)?;
    Ok((file.into(), is_pipe))
}

fn is_kernels(found: &OwnedFd) -> Result<bool, TextError> {
    let system = rustix::fs::fstatfs(found).map_err(io::Error::from)?;
    Ok(KERNELS.contains(&(system.f_type as i64 & 0xffff_ffff)))
}

/// Reads a file that a user names; `-` is standard input.
///
/// # Errors
/// [`TextError`].
pub fn read_bytes(path: &Path, limit_bytes: u64) -> Result<Vec<u8>, TextError> {
    TextFile::open(path, limit_bytes)?.bytes()
}

/// Reads a file with a default name: a regular file of the effective user, opened through no link.
///
/// # Errors
/// [`TextError`].
pub fn read_own(path: &Path, limit_bytes: u64) -> Result<Vec<u8>, TextError> {
    let (file, _) = own(path)?;
    let text = TextFile { file, is_pipe: false, has_begun: false, limit_bytes, left_bytes: limit_bytes };
    text.bytes()
}

/// Opens a file whose content is trusted, for reading: a regular file of the effective user, opened through no link, to which no
/// other user may write.
///
/// # Errors
/// [`TextError`].
pub fn open_own(path: &Path) -> Result<File, TextError> {
    match own(path)? {
        (_, mode) if mode & 0o022 != 0 => Err(TextError::Writable(mode & 0o7777)),
        (file, _) => Ok(file),
    }
}

/// Opens a regular file of the effective user, through no link. Returns its mode, too.
fn own(path: &Path) -> Result<(File, u32), TextError> {
    let (file, is_pipe) = open(path)?;
    let found = rustix::fs::fstat(&file).map_err(io::Error::from)?;
    let named = rustix::fs::statat(CWD, path, AtFlags::SYMLINK_NOFOLLOW).map_err(io::Error::from)?;
    if is_pipe || (named.st_dev, named.st_ino) != (found.st_dev, found.st_ino) {
        return Err(TextError::Link);
    }
    if found.st_uid != geteuid().as_raw() {
        return Err(TextError::Foreign(found.st_uid));
    }
    Ok((file, found.st_mode))
}

/// Reads a text that a user names; `-` is standard input.
///
/// # Errors
/// [`TextError`].
pub fn read_text(path: &Path, limit_bytes: u64) -> Result<String, TextError> {
    String::from_utf8(read_bytes(path, limit_bytes)?).map_err(|_| TextError::NotText)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::time::Instant;

    /// More than any test of this file writes.
    const LIMIT: u64 = 1 << 20;

    #[track_caller]
    fn refused(path: &Path) -> String {
        let begin = Instant::now();
        let error = read_text(path, LIMIT).expect_err("a refusal").to_string();
        assert!(begin.elapsed().as_secs() < 30, "at once: {error}");
        error
    }

    #[test]
    fn what_never_ends_or_never_answers_is_refused_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let pipe = folder.path().join("pipe");
        rustix::fs::mknodat(CWD, &pipe, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a pipe");
        let _socket = std::os::unix::net::UnixListener::bind(folder.path().join("socket")).expect("a socket");
        std::fs::write(folder.path().join("binary"), [0xff, 0xfe]).expect("a file");
        let long = File::create(folder.path().join("long")).expect("a file");
        long.set_len(LIMIT + 1).expect("a sparse file");
        for (path, words) in [
            ("/dev/zero", "it is a character device"),
            ("/dev/full", "it is a character device"),
            ("/proc/kmsg", "it is a file of the kernel"),
            ("/proc/self/environ", "it is a file of the kernel"),
            ("pipe", "it is a pipe that no process writes to"),
            ("socket", "it is a socket"),
            ("binary", "it is not text (UTF-8)"),
            ("long", "it is longer than 1048576 bytes"),
            ("missing", "No such file or directory"),
            (".", "it is a directory"),
        ] {
            let error = refused(&folder.path().join(path));
            assert!(error.starts_with(words), "{path}: {error}");
        }
    }

    /// Goal: a sparse file takes no memory before it is refused: 5 GiB took 2 GiB.
    #[test]
    fn a_file_beyond_the_limit_is_refused_before_it_is_read() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("sparse");
        File::create(&path).and_then(|file| file.set_len(1 << 40)).expect("a sparse file");
        let begin = Instant::now();
        let error = read_bytes(&path, (1 << 40) - 1).expect_err("a refusal");
        assert!(matches!(error, TextError::TooLong { .. }) && begin.elapsed().as_secs() < 10, "{error}");
    }

    #[test]
    fn a_file_with_a_default_name_is_read_only_from_its_user_and_through_no_link() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("own"), "text").expect("a file");
        std::os::unix::fs::symlink("own", path("link")).expect("a link");
        assert_eq!(read_own(&path("own"), LIMIT).expect("it is ours"), b"text");
        assert!(matches!(read_own(&path("link"), LIMIT), Err(TextError::Link)));
        assert!(open_own(&path("own")).is_ok());
        assert!(matches!(open_own(&path("link")), Err(TextError::Link)));
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o666);
        std::fs::set_permissions(path("own"), mode).expect("it is ours");
        assert!(matches!(open_own(&path("own")), Err(TextError::Writable(0o666))));
        if trueio_testkit::lacks("root") {
            return;
        }
        std::os::unix::fs::chown(path("own"), Some(trueio_testkit::NOBODY), None).expect("root may");
        assert!(matches!(read_own(&path("own"), LIMIT), Err(TextError::Foreign(trueio_testkit::NOBODY))));
    }

    #[test]
    fn files_and_pipes_that_end_are_read() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("file"), "text").expect("a file");
        std::fs::write(folder.path().join("empty"), "").expect("a file");
        assert_eq!(read_text(&folder.path().join("file"), 4).expect("as long as the limit"), "text");
        assert!(matches!(read_text(&folder.path().join("file"), 3), Err(TextError::TooLong { limit_bytes: 3 })));
        assert_eq!(read_text(&folder.path().join("empty"), 0).expect("an empty file"), "");
        // As a shell passes `<(…)`: the writer writes slowly, in parts.
        let (reader, mut writer) = io::pipe().expect("a pipe");
        let path = format!("/dev/fd/{}", reader.as_raw_fd());
        std::thread::scope(|scope| {
            let text = scope.spawn(|| read_text(Path::new(&path), LIMIT));
            for part in ["one ", "two"] {
                std::thread::yield_now();
                writer.write_all(part.as_bytes()).expect("written");
            }
            drop(writer);
            assert_eq!(text.join().expect("it ends").expect("a text"), "one two");
        });
        // A pipe without an end.
        let (reader, mut writer) = io::pipe().expect("a pipe");
        let path = format!("/dev/fd/{}", reader.as_raw_fd());
        std::thread::scope(|scope| {
            scope.spawn(move || while writer.write_all(&[b'y'; 4096]).is_ok() {});
            assert!(matches!(read_text(Path::new(&path), LIMIT), Err(TextError::TooLong { .. })));
            drop(reader);
        });
    }
}
