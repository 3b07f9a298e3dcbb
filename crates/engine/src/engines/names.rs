//! The engines that make, ask for and remove names: `filecreate`, `filestat`, `filedelete` and the same of
//! directories.
//!
//! | engine       | call                                  | before the measured part |
//! |--------------|---------------------------------------|--------------------------|
//! | `filecreate` | `openat` with `O_CREAT|O_EXCL`, `close` | –                      |
//! | `filestat`   | `statx`, `stat` or `lstat`            | the files are made       |
//! | `fileread`   | `openat`, `read`, `close`             | the files are made       |
//! | `filedelete` | `unlinkat`                            | the files are made       |
//! | `dircreate`  | `mkdirat`                             | –                        |
//! | `dirstat`    | `statx`, `stat` or `lstat`            | the directories are made |
//! | `dirdelete`  | `unlinkat` with `AT_REMOVEDIR`        | the directories are made |
//!
//! Each worker has a directory of its own, which must not exist before; it and all names in it are removed when the
//! engine is dropped. An I/O at offset `i` is about name number `i`; it counts as one byte.
//!
//! With a [`NameSet`] the directory is that of several jobs: earlier ones made the names, `filecreate` writes to each
//! file, `fileread` reads it, and crate `run` makes and removes the directory.
//!
//! Cannot see: whether a name reached the disk. `fsync = N` makes the directory durable after every Nth operation; of a
//! [`NameSet`], `end_fsync` calls syncfs(2) on its filesystem.
//!
//! Source: openat(2), statx(2), stat(2), unlinkat(2), mkdirat(2); fio(1).

mod path;

use super::{Completion, Engine, EngineError, negative_errno, sync_descriptor};
use crate::request::Request;
use path::NamePath;
use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags};
use std::fs::File;
use std::io::{self, Read, Write};
use std::marker::PhantomData;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use trueio_model::{EngineKind, FileAccess, JobPlan, NameSet, StatCall, mix64, worker_seed};

/// What an engine does with a name.
pub trait NameCall: std::fmt::Debug {
    /// Which engine it makes.
    const KIND: EngineKind;
    /// The names are directories.
    const IS_DIRECTORY: bool;
    /// The names are there before the measured part.
    const NEEDS_NAMES: bool;
    /// The names are removed.
    const REMOVES: bool;

    /// The call.
    ///
    /// # Errors
    /// The kernel's.
    fn call(directory: &File, name: &str, how: &mut How) -> io::Result<()>;
}

/// What calls need next to the name.
#[derive(Debug, Default)]
pub struct How {
    stat: StatCall,
    /// What is written to a new file, or the place for what is read.
    bytes: Vec<u8>,
    /// What must be read; empty: it is not compared.
    expected: Vec<u8>,
    /// New files are flushed before they are closed.
    syncs_files: bool,
    /// The users that may use new names.
    access: FileAccess,
}

fn create_file(directory: &File, name: &str, how: &mut How) -> io::Result<()> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(directory, name, flags, Mode::from_raw_mode(how.access.mode()))?;
    let mut file = File::from(file);
    if !how.bytes.is_empty() {
        file.write_all(&how.bytes)?;
    }
    if how.syncs_files { file.sync_all() } else { Ok(()) }
}

fn read_file(directory: &File, name: &str, how: &mut How) -> io::Result<()> {
    let file = rustix::fs::openat(directory, name, OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty())?;
    if how.bytes.is_empty() {
        return Ok(());
    }
    // A file that is shorter has no errno.
    let shorter =
        |error: io::Error| error.raw_os_error().map_or(io::Error::from_raw_os_error(libc::ENODATA), |_| error);
    File::from(file).read_exact(&mut how.bytes).map_err(shorter)?;
    match how.expected.is_empty() || how.bytes == how.expected {
        true => Ok(()),
        false => Err(io::Error::from_raw_os_error(libc::EBADMSG)),
    }
}

fn create_directory(directory: &File, name: &str, how: &mut How) -> io::Result<()> {
    Ok(rustix::fs::mkdirat(directory, name, Mode::from_raw_mode(how.access.directory_mode()))?)
}

fn ask(directory: &File, name: &str, how: &mut How) -> io::Result<()> {
    match how.stat {
        StatCall::Statx => {
            rustix::fs::statx(directory, name, AtFlags::SYMLINK_NOFOLLOW, StatxFlags::BASIC_STATS)?;
        }
        StatCall::Stat => {
            rustix::fs::statat(directory, name, AtFlags::empty())?;
        }
        StatCall::Lstat => {
            rustix::fs::statat(directory, name, AtFlags::SYMLINK_NOFOLLOW)?;
        }
    }
    Ok(())
}

fn remove(directory: &File, name: &str, is_directory: bool) -> io::Result<()> {
    let flags = if is_directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
    Ok(rustix::fs::unlinkat(directory, name, flags)?)
}

/// One engine: its kind, whether its names are directories, whether they are there before and whether it removes them, and
/// the call.
macro_rules! name_call {
    ($name:ident, $text:literal, $is_directory:literal, $needs_names:literal, $removes:literal, $call:expr) => {
        #[doc = $text]
        #[derive(Debug)]
        pub struct $name;

        impl NameCall for $name {
            const KIND: EngineKind = EngineKind::$name;
            const IS_DIRECTORY: bool = $is_directory;
            const NEEDS_NAMES: bool = $needs_names;
            const REMOVES: bool = $removes;

            #[inline(always)]
            fn call(directory: &File, name: &str, how: &mut How) -> io::Result<()> {
                $call(directory, name, how)
            }
        }
    };
}

name_call!(Filecreate, "Makes files.", false, false, false, create_file);
name_call!(Filestat, "Asks about files.", false, true, false, ask);
name_call!(Fileread, "Reads files.", false, true, false, read_file);
name_call!(Filedelete, "Removes files.", false, true, true, |directory, name, _: &mut How| remove(
    directory, name, false
));
name_call!(Dircreate, "Makes directories.", true, false, false, create_directory);
name_call!(Dirstat, "Asks about directories.", true, true, false, ask);
name_call!(Dirdelete, "Removes directories.", true, true, true, |directory, name, _: &mut How| remove(
    directory, name, true
));

/// A directory that goes with all that was made in it.
#[derive(Debug)]
struct Names {
    path: PathBuf,
    directory: File,
    count: u64,
    is_directory: bool,
}

impl Drop for Names {
    fn drop(&mut self) {
        // What cannot be removed stays; the run has ended, and the directory's name contains the job's name.
        for index in 0..self.count {
            let _ = remove(&self.directory, Name::of(index).text(), self.is_directory);
        }
        // A directory that got its name meanwhile stays.
        let is_ours = || {
            let (named, open) = (std::fs::symlink_metadata(&self.path)?, self.directory.metadata()?);
            Ok::<bool, io::Error>((named.dev(), named.ino()) == (open.dev(), open.ino()))
        };
        if is_ours().is_ok_and(|is_ours| is_ours) {
            let _ = std::fs::remove_dir(&self.path);
        }
    }
}

/// A name made of its number, without an allocation.
struct Name {
    digits: [u8; 20],
    from: usize,
}

impl Name {
    fn of(index: u64) -> Self {
        let mut name = Self { digits: [0; 20], from: 20 };
        let mut rest = index;
        loop {
            name.from -= 1;
            name.digits[name.from] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                return name;
            }
        }
    }

    fn text(&self) -> &str {
        std::str::from_utf8(&self.digits[self.from..]).expect("digits are ASCII")
    }
}

/// The names of a worker.
#[derive(Debug)]
enum Place {
    /// In a directory of its own.
    Own(Names),
    /// In the directory of several jobs.
    Shared { directory: File, path: Box<NamePath> },
}

impl Place {
    fn directory(&self) -> &File {
        match self {
            Place::Own(names) => &names.directory,
            Place::Shared { directory, .. } => directory,
        }
    }
}

/// Names in a directory.
#[derive(Debug)]
pub struct NamesEngine<N> {
    place: Place,
    offset: u64,
    request: Request,
    result: Option<i64>,
    how: How,
    /// A sync call flushes the whole filesystem.
    syncs_filesystem: bool,
    call: PhantomData<N>,
}

impl<N: NameCall> NamesEngine<N> {
    /// Makes the worker's directory, and the names in it that must be there before; of a set of several jobs, opens the
    /// directory.
    ///
    /// # Errors
    /// If something has the directory's name, or the kernel refuses.
    pub fn new(plan: &JobPlan, worker: u32) -> Result<Self, EngineError> {
        let file = plan.files.first().expect("the plan gives one directory");
        let mut how = How { stat: plan.handling.stat, ..How::default() };
        let mut syncs_filesystem = false;
        let place = match &plan.names {
            Some(set) => {
                how.bytes = content(set.file_bytes, worker_seed(plan.seed, worker));
                if set.is_compared {
                    how.expected.clone_from(&how.bytes);
                }
                (how.syncs_files, how.access) = (set.syncs_files, plan.handling.new_files);
                syncs_filesystem = set.syncs_filesystem;
                Self::shared(&file.path, set, worker, file.size_bytes)?
            }
            None => Self::own(&file.path, worker, file.size_bytes)?,
        };
        Ok(Self {
            place,
            offset: file.offset_bytes,
            request: Request::NONE,
            result: None,
            how,
            syncs_filesystem,
            call: PhantomData,
        })
    }

    fn failed(attempted: &str, path: &Path, source: io::Error) -> EngineError {
        EngineError { engine: N::KIND, attempted: format!("{attempted} `{}`", path.display()), source }
    }

    fn shared(path: &str, set: &NameSet, worker: u32, count: u64) -> Result<Place, EngineError> {
        let path = Path::new(path);
        let directory = File::open(path).map_err(|error| Self::failed("opening the directory", path, error))?;
        Ok(Place::Shared { directory, path: Box::new(NamePath::new(set, worker, count, N::IS_DIRECTORY)) })
    }

    fn own(path: &str, worker: u32, count: u64) -> Result<Place, EngineError> {
        let path = PathBuf::from(if worker == 0 { path.to_owned() } else { format!("{path}-{worker}") });
        std::fs::create_dir(&path).map_err(|e| Self::failed("making the directory", &path, e))?;
        let directory = match File::open(&path) {
            Ok(directory) => directory,
            Err(error) => {
                let _ = std::fs::remove_dir(&path);
                return Err(Self::failed("opening the directory", &path, error));
            }
        };
        let names = Names { path: path.clone(), directory, count, is_directory: N::IS_DIRECTORY };
        if N::NEEDS_NAMES {
            let make = if N::IS_DIRECTORY { create_directory } else { create_file };
            for index in 0..names.count {
                make(&names.directory, Name::of(index).text(), &mut How::default())
                    .map_err(|e| Self::failed("making names in", &path, e))?;
            }
        }
        Ok(Place::Own(names))
    }
}

/// Returns the content of a worker's files: bytes that no layer can leave out.
pub(crate) fn content(count: u32, seed: u64) -> Vec<u8> {
    let words = (0..u64::from(count).div_ceil(8)).flat_map(|index| mix64(seed ^ mix64(index)).to_le_bytes());
    words.take(count as usize).collect()
}

impl<N: NameCall> Engine for NamesEngine<N> {
    const KIND: EngineKind = N::KIND;
    const BLOCKS: bool = true;

    unsafe fn queue(&mut self, _slot: u32, request: &Request, _buffer: *mut u8) {
        self.request = *request;
    }

    fn submit(&mut self) -> Result<(), EngineError> {
        let index = self.request.offset - self.offset;
        let result = match &mut self.place {
            Place::Own(names) => N::call(&names.directory, Name::of(index).text(), &mut self.how),
            Place::Shared { directory, path } => N::call(directory, path.of(index, N::REMOVES), &mut self.how),
        };
        self.result = Some(match result {
            Ok(()) => i64::from(self.request.length),
            Err(error) => error.raw_os_error().map_or_else(negative_errno, |errno| -i64::from(errno)),
        });
        Ok(())
    }

    fn reap(&mut self, _min: usize, _timeout_ns: Option<u64>, out: &mut [Completion]) -> Result<usize, EngineError> {
        match self.result.take() {
            Some(result) => {
                out[0] = Completion { slot: 0, result };
                Ok(1)
            }
            None => Ok(0),
        }
    }

    fn has_ready(&mut self) -> bool {
        self.result.is_some()
    }

    fn sync_file(&mut self, _file: u16, data_only: bool) -> i64 {
        if self.syncs_filesystem && !data_only {
            return match rustix::fs::syncfs(self.place.directory()) {
                Ok(()) => 0,
                Err(errno) => -i64::from(errno.raw_os_error()),
            };
        }
        sync_descriptor(self.place.directory().as_raw_fd(), data_only)
    }
}
