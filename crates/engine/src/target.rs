//! The open files that a job reads and writes.

use crate::file_lock::FileLock;
use std::fs::File;
use std::sync::Arc;
use trueio_uas::queue::Disk;

/// An open file under test.
#[derive(Debug, Clone)]
pub struct TargetFile {
    /// The file, opened as the job's plan sets it.
    pub file: Arc<File>,
    /// Its path, for messages.
    pub path: String,
    /// What a trim of it is.
    pub trim_call: TrimCall,
    /// First byte after the region under test: what `mmap` has to map.
    pub end_bytes: u64,
    /// Its lock, if the job locks its files.
    pub lock: Option<Arc<FileLock>>,
    /// The disk, if the engine drives one (`uas`); `file` is then its usbfs node, which is not used.
    pub disk: Option<Arc<dyn Disk>>,
}

/// What a trim of a file is.
#[derive(Debug, Clone)]
pub enum TrimCall {
    /// `fallocate` punches a hole.
    PunchHole,
    /// `BLKDISCARD` of a block device, through the descriptor that claims it (`O_EXCL`), if one does. Through another one
    /// the kernel refuses a range with dirty cached pages (EBUSY).
    Discard(Option<Arc<File>>),
    /// `BLKRESETZONE` of a block device with zones that are written in order.
    ResetZone,
}
