//! How each method writes and reads its region, with the calls of this system.

use crate::claimed::DirectDisk;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use trueio_direct::{AlignedBuffer, DirectFile, TransferError, write_dsync_at};
use trueio_powercut::cut::{Medium, Method, Readback, Region};
use trueio_powercut::{BLOCK_BYTES, Disk};

const BLOCK: u64 = BLOCK_BYTES as u64;

/// Returns the kernel's error of a transfer.
fn kernel_error(error: TransferError) -> io::Error {
    error
        .raw_os_error()
        .map_or_else(|| io::Error::other(trueio_model::error_line(&error)), io::Error::from_raw_os_error)
}

/// A region past the page cache.
pub(super) struct Direct {
    region: Region,
    file: DirectFile,
    buffer: AlignedBuffer,
}

impl Direct {
    /// `file` is opened with `O_DSYNC` if the method is.
    pub(super) fn new(region: Region, file: DirectFile) -> io::Result<Self> {
        let buffer = AlignedBuffer::new(BLOCK_BYTES, BLOCK_BYTES).map_err(io::Error::other)?;
        Ok(Self { region, file, buffer })
    }
}

impl Medium for Direct {
    fn write(&mut self, position: u64, data: &[u8]) -> io::Result<()> {
        self.buffer.copy_from_slice(data);
        let offset = (self.region.start + position) * BLOCK;
        let written = match self.region.method {
            Method::DirectRwfDsync => write_dsync_at(&self.file, &self.buffer, offset),
            _ => self.file.write_all_at(&self.buffer, offset),
        };
        written.map(drop).map_err(kernel_error)
    }

    fn sync(&mut self) -> io::Result<()> {
        match self.region.method {
            Method::DirectFdatasync => self.file.file().sync_data(),
            _ => Ok(()),
        }
    }
}

/// A region through the page cache.
pub(super) struct Buffered {
    pub(super) region: Region,
    pub(super) file: File,
}

impl Medium for Buffered {
    fn write(&mut self, position: u64, data: &[u8]) -> io::Result<()> {
        self.file.write_all_at(data, (self.region.start + position) * BLOCK)
    }

    fn sync(&mut self) -> io::Result<()> {
        match self.region.method {
            Method::BufferedFsync => self.file.sync_all(),
            _ => self.file.sync_data(),
        }
    }
}

/// Reads a region of a claimed disk past the page cache.
pub(super) struct ReadDisk<'a> {
    pub(super) region: Region,
    pub(super) disk: &'a mut DirectDisk,
}

impl Readback for ReadDisk<'_> {
    fn read(&mut self, position: u64, data: &mut [u8]) -> io::Result<Vec<bool>> {
        self.disk.read(self.region.start + position, data)?;
        Ok(vec![true; data.len() / BLOCK_BYTES])
    }
}

/// A file of its own, to which blocks are appended.
pub(super) struct Append(pub(super) File);

impl Medium for Append {
    fn write(&mut self, _: u64, data: &[u8]) -> io::Result<()> {
        self.0.write_all(data)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync_data()
    }
}

/// A file that has a tail while blocks are written and synced; the tail is cut off before the acknowledgement.
pub(super) struct Truncate {
    pub(super) region: Region,
    pub(super) file: File,
}

impl Medium for Truncate {
    fn write(&mut self, position: u64, data: &[u8]) -> io::Result<()> {
        self.file.write_all_at(data, self.region.position_count * BLOCK)?;
        self.file.write_all_at(data, position * BLOCK)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.file.sync_data()?;
        self.file.set_len(self.region.position_count * BLOCK)
    }
}

/// Names through which an open directory's files are reached, whatever its own name leads to by then.
fn names_in(directory: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", directory.as_raw_fd()))
}

/// A directory with a file for each position.
pub(super) struct Files {
    method: Method,
    directory: File,
    /// Files that were written since the last sync.
    pending: Vec<File>,
}

impl Files {
    pub(super) fn new(method: Method, directory: File) -> Self {
        Self { method, directory, pending: Vec::new() }
    }
}

impl Medium for Files {
    fn write(&mut self, position: u64, data: &[u8]) -> io::Result<()> {
        let folder = names_in(&self.directory);
        let path = folder.join(position.to_string());
        if self.method == Method::Rename {
            let temporary = folder.join(format!("{position}.tmp"));
            // One that a cut left.
            let mut file = match File::create_new(&temporary) {
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    fs::remove_file(&temporary)?;
                    File::create_new(&temporary)?
                }
                created => created?,
            };
            file.write_all(data)?;
            file.sync_all()?;
            return fs::rename(temporary, path);
        }
        match fs::remove_file(&path) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = File::create_new(path)?;
        file.write_all(data)?;
        self.pending.push(file);
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        let pending = std::mem::take(&mut self.pending);
        if matches!(self.method, Method::NewFile | Method::NewFileOnly) {
            pending.iter().try_for_each(File::sync_all)?;
        }
        if matches!(self.method, Method::NewFile | Method::NewFileDirectoryOnly | Method::Rename) {
            self.directory.sync_all()?;
        }
        Ok(())
    }
}

/// Reads a file from its begin on.
pub(super) struct ReadFile(pub(super) Region, pub(super) File);

impl Readback for ReadFile {
    fn read(&mut self, position: u64, data: &mut [u8]) -> io::Result<Vec<bool>> {
        let mut read = 0;
        while read < data.len() {
            match self.1.read_at(&mut data[read..], (self.0.start + position) * BLOCK + read as u64) {
                Ok(0) => break,
                Ok(count) => read += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok((1..=data.len() / BLOCK_BYTES).map(|end| end * BLOCK_BYTES <= read).collect())
    }
}

/// Reads the files of a directory, one for each position.
pub(super) struct ReadFiles(pub(super) File);

impl Readback for ReadFiles {
    fn read(&mut self, position: u64, data: &mut [u8]) -> io::Result<Vec<bool>> {
        let folder = names_in(&self.0);
        (position..)
            .zip(data.chunks_exact_mut(BLOCK_BYTES))
            .map(|(position, block)| read_one(&folder, position, block))
            .collect()
    }
}

/// Reads one file; an empty or shorter one counts as missing.
fn read_one(folder: &Path, position: u64, block: &mut [u8]) -> io::Result<bool> {
    let file = File::options().read(true).custom_flags(libc::O_NOFOLLOW).open(folder.join(position.to_string()));
    match file {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
        Ok(mut file) => match file.read_exact(block) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
            result => result.map(|()| true),
        },
    }
}
