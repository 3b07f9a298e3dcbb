//! The page cache and stable storage: direct I/O, flags of writes, and sync calls.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whether the page cache is bypassed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DirectPolicy {
    /// Direct I/O is required: refused on a filesystem that would buffer silently.
    Require,
    /// Direct I/O if supported; the record contains what was granted.
    Prefer,
    /// Through the page cache.
    Off,
}

/// Open flags that make each write durable before it returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SyncMode {
    /// None.
    None,
    /// `O_DSYNC`: the data, and what is needed to read it back.
    Dsync,
    /// `O_SYNC`: the data and all of the file's metadata.
    Sync,
}

/// RWF flags of each single I/O (`pvsync2`, `libaio`, `io_uring`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WriteFlags {
    /// `RWF_DSYNC` on writes.
    pub dsync: bool,
    /// `RWF_DONTCACHE`: buffered, and the pages are dropped afterwards. Linux 6.14.
    pub dontcache: bool,
    /// `RWF_ATOMIC` on writes: all or nothing across a power cut. Linux 6.11.
    pub atomic: bool,
    /// `RWF_HIPRI`: poll for the completion.
    pub hipri: bool,
    /// Percentage of I/Os with it, drawn at random (`pvsync2`); `None`: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hipri_percent: Option<u8>,
    /// `RWF_NOWAIT`: an I/O that would have to wait fails with EAGAIN.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub nowait: bool,
}

/// Sync calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Flush {
    /// Number of writes after which `fsync` follows; 0: never.
    pub fsync_every: u64,
    /// Number of writes after which `fdatasync` follows; 0: never.
    pub fdatasync_every: u64,
    /// `fsync` once at the end, inside the measured time.
    pub end_fsync: bool,
    /// `fdatasync` once at the end, inside the measured time.
    #[serde(default)]
    pub end_fdatasync: bool,
    /// `fsync` of each file before it is closed, inside the measured time.
    #[serde(default)]
    pub fsync_on_close: bool,
    /// `sync_file_range` between the writes, which makes nothing durable.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<RangeSync>,
}

/// `sync_file_range(2)` on the bytes written since the last call: starts writing out pages, or waits for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RangeSync {
    /// Number of writes after which it is called.
    pub every: u64,
    /// Waits for pages that are already being written out.
    pub waits_before: bool,
    /// Starts to write out dirty pages.
    pub writes: bool,
    /// Waits until they are written out.
    pub waits_after: bool,
}

impl RangeSync {
    /// Its parts by fio's names, with the kernel's numbers.
    pub const PARTS: [(&'static str, u32); 3] = [("wait_before", 1), ("write", 2), ("wait_after", 4)];

    /// The flags of the call.
    pub fn flags(self) -> u32 {
        let parts = [self.waits_before, self.writes, self.waits_after];
        Self::PARTS.iter().zip(parts).filter(|(_, is_set)| *is_set).map(|((_, flag), _)| flag).sum()
    }
}

impl std::fmt::Display for RangeSync {
    /// Returns the option's text: `wait_before,write:8`.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let flags = self.flags();
        let parts: Vec<&str> =
            Self::PARTS.iter().filter(|(_, flag)| flags & flag != 0).map(|(name, _)| *name).collect();
        write!(f, "{}:{}", parts.join(","), self.every)
    }
}

impl Flush {
    /// True if calls between the writes are counted as sync calls, durable or not.
    pub fn is_between(&self) -> bool {
        self.fsync_every > 0 || self.fdatasync_every > 0 || self.range.is_some()
    }

    /// True if a sync call ends the job.
    pub fn is_at_end(&self) -> bool {
        self.end_fsync || self.end_fdatasync || self.fsync_on_close
    }

    /// The names of the sync calls that end the job, in their order.
    pub fn at_end(&self) -> impl Iterator<Item = &'static str> {
        let calls = [(self.end_fdatasync, "fdatasync"), (self.end_fsync || self.fsync_on_close, "fsync")];
        calls.into_iter().filter(|call| call.0).map(|call| call.1)
    }
}
