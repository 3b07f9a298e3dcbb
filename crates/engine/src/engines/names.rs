//! The engines that make, ask for and remove names: `filecreate`, `filestat`, `filedelete` and the same of
//! directories.
//!
//! | engine       | call                                  | before the measured part |
//! |--------------|---------------------------------------|--------------------------|
//! | `filecreate` | `openat` with `O_CREAT|O_EXCL`, `close` | –                      |
//! | `filestat`   | `statx`, `stat` or `lstat`            | the files are made       |
//! | `filedelete` | `unlinkat`                            | the files are made       |
//! | `dircreate`  | `mkdirat`                             | –                        |
//! | `dirstat`    | `statx`, `stat` or `lstat`            | the directories are made |
//! | `dirdelete`  | `unlinkat` with `AT_REMOVEDIR`        | the directories are made |
//!
//! Each worker has a directory of its own, which must not exist before; it and all names in it are removed when the
//! engine is dropped. An I/O at offset `i` is about name number `i`; it moves no data, and counts as one byte.
//!
//! Cannot see: whether a name reached the disk. `fsync = N` makes the directory durable after every Nth operation.
//!
//! Source: openat(2), statx(2), stat(2), unlinkat(2), mkdirat(2); fio(1).

use super::{Completion, Engine, EngineError, negative_errno, sync_descriptor};
use crate::request::Request;
use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags};
use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use trueio_model::{EngineKind, JobPlan, StatCall};

/// What an engine does with a name.
pub trait NameCall: std::fmt::Debug {
    /// Which engine it makes.
    const KIND: EngineKind;
    /// The names are directories.
    const IS_DIRECTORY: bool;
    /// The names are there before the measured part.
    const NEEDS_NAMES: bool;

    /// The call.
    ///
    /// # Errors
    /// The kernel's.
    fn call(directory: &File, name: &str, stat: StatCall) -> io::Result<()>;
}

fn create_file(directory: &File, name: &str, _: StatCall) -> io::Result<()> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::CLOEXEC;
    rustix::fs::openat(directory, name, flags, Mode::from_raw_mode(0o600))?;
    Ok(())
}

fn create_directory(directory: &File, name: &str, _: StatCall) -> io::Result<()> {
    Ok(rustix::fs::mkdirat(directory, name, Mode::from_raw_mode(0o700))?)
}

fn ask(directory: &File, name: &str, stat: StatCall) -> io::Result<()> {
    match stat {
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

/// One engine: its kind, whether its names are directories, whether they are there before, and the call.
macro_rules! name_call {
    ($name:ident, $text:literal, $is_directory:literal, $needs_names:literal, $call:expr) => {
        #[doc = $text]
        #[derive(Debug)]
        pub struct $name;

        impl NameCall for $name {
            const KIND: EngineKind = EngineKind::$name;
            const IS_DIRECTORY: bool = $is_directory;
            const NEEDS_NAMES: bool = $needs_names;

            #[inline(always)]
            fn call(directory: &File, name: &str, stat: StatCall) -> io::Result<()> {
                $call(directory, name, stat)
            }
        }
    };
}

name_call!(Filecreate, "Makes files.", false, false, create_file);
name_call!(Filestat, "Asks about files.", false, true, ask);
name_call!(Filedelete, "Removes files.", false, true, |directory, name, _| remove(directory, name, false));
name_call!(Dircreate, "Makes directories.", true, false, create_directory);
name_call!(Dirstat, "Asks about directories.", true, true, ask);
name_call!(Dirdelete, "Removes directories.", true, true, |directory, name, _| remove(directory, name, true));

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

/// Names in a directory.
#[derive(Debug)]
pub struct NamesEngine<N> {
    names: Names,
    offset: u64,
    request: Request,
    result: Option<i64>,
    stat: StatCall,
    call: PhantomData<N>,
}

impl<N: NameCall> NamesEngine<N> {
    /// Makes the worker's directory, and the names in it that must be there before.
    ///
    /// # Errors
    /// If something has the directory's name, or the kernel refuses.
    pub fn new(plan: &JobPlan, worker: u32) -> Result<Self, EngineError> {
        let file = plan.files.first().expect("the plan gives one directory");
        let path = PathBuf::from(if worker == 0 { file.path.clone() } else { format!("{}-{worker}", file.path) });
        let failed = |attempted: &str, source: io::Error| EngineError {
            engine: N::KIND,
            attempted: format!("{attempted} `{}`", path.display()),
            source,
        };
        std::fs::create_dir(&path).map_err(|e| failed("making the directory", e))?;
        let directory = match File::open(&path) {
            Ok(directory) => directory,
            Err(error) => {
                let _ = std::fs::remove_dir(&path);
                return Err(failed("opening the directory", error));
            }
        };
        let names = Names { path: path.clone(), directory, count: file.size_bytes, is_directory: N::IS_DIRECTORY };
        if N::NEEDS_NAMES {
            let make = if N::IS_DIRECTORY { create_directory } else { create_file };
            for index in 0..names.count {
                make(&names.directory, Name::of(index).text(), StatCall::default())
                    .map_err(|e| failed("making names in", e))?;
            }
        }
        Ok(Self {
            names,
            offset: file.offset_bytes,
            request: Request::NONE,
            result: None,
            stat: plan.handling.stat,
            call: PhantomData,
        })
    }
}

impl<N: NameCall> Engine for NamesEngine<N> {
    const KIND: EngineKind = N::KIND;
    const BLOCKS: bool = true;

    unsafe fn queue(&mut self, _slot: u32, request: &Request, _buffer: *mut u8) {
        self.request = *request;
    }

    fn submit(&mut self) -> Result<(), EngineError> {
        let name = Name::of(self.request.offset - self.offset);
        self.result = Some(match N::call(&self.names.directory, name.text(), self.stat) {
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
        sync_descriptor(self.names.directory.as_raw_fd(), data_only)
    }
}
