//! A system that has no file of its own yet: every answer is "not supported".

use crate::cache::Residency;
use crate::device::{DeviceError, DeviceFacts};
use crate::flush::{FlushLevel, Flushed};
use crate::lock::{LockError, LockMode};
use crate::open::{DirectFile, OpenError, OpenOptions};
use crate::probe::{Probe, ProbeError};
use std::fs::File;
use std::io;
use std::path::Path;

const SENTENCE: &str = "trueio-direct has no support for this system yet";

fn unported() -> io::Error {
    io::Error::new(io::ErrorKind::Unsupported, SENTENCE)
}

pub(crate) fn open(path: &Path, _options: &OpenOptions) -> Result<DirectFile, OpenError> {
    Err(OpenError::Io { path: path.to_owned(), source: unported() })
}

pub(crate) fn probe(_path: &Path) -> Result<Probe, ProbeError> {
    Err(ProbeError::Io { path: None, source: unported() })
}

pub(crate) fn probe_file(_file: &File) -> Result<Probe, ProbeError> {
    Err(ProbeError::Io { path: None, source: unported() })
}

pub(crate) fn read_at(_file: &File, _buffer: &mut [u8], _offset: u64) -> io::Result<usize> {
    Err(unported())
}

pub(crate) fn write_at(_file: &File, _buffer: &[u8], _offset: u64) -> io::Result<usize> {
    Err(unported())
}

pub(crate) fn flush(_file: &File, _level: FlushLevel) -> io::Result<Flushed> {
    Err(unported())
}

pub(crate) fn sync_directory(_path: &Path) -> io::Result<()> {
    Err(unported())
}

pub(crate) fn preallocate(_file: &File, _offset: u64, _len: u64) -> io::Result<()> {
    Err(unported())
}

pub(crate) fn residency(_file: &File, _offset: u64, _len: u64) -> io::Result<Residency> {
    Err(unported())
}

pub(crate) fn evict(_file: &File, _offset: u64, _len: u64) -> io::Result<()> {
    Err(unported())
}

pub(crate) fn device_facts(_file: &File) -> Result<DeviceFacts, DeviceError> {
    Err(DeviceError::Io { call: "anything", source: unported() })
}

pub(crate) fn try_lock(_file: &File, _mode: LockMode) -> Result<(), LockError> {
    Err(LockError::Unsupported(SENTENCE))
}

pub(crate) fn unlock(_file: &File) -> Result<(), LockError> {
    Err(LockError::Unsupported(SENTENCE))
}

pub(crate) fn lock_range(_file: &File, _mode: Option<LockMode>, _offset: u64, _len: u64) -> Result<(), LockError> {
    Err(LockError::Unsupported(SENTENCE))
}

pub(crate) fn lock_volume(_file: &File, _lock: bool) -> Result<(), LockError> {
    Err(LockError::Unsupported(SENTENCE))
}
