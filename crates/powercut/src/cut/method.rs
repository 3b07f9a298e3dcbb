//! The ways of writing that one cut tests, and what each promises.

use serde::{Deserialize, Serialize};

/// Where a method writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// Blocks of a device or a file.
    Blocks,
    /// Files of a directory: it tests what a filesystem promises.
    Files,
}

/// A way of writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// `O_DIRECT` without any sync.
    Direct,
    /// `O_DIRECT`, then `fdatasync`.
    DirectFdatasync,
    /// `O_DIRECT | O_DSYNC`: a write with FUA, or a write and a flush.
    DirectDsync,
    /// `O_DIRECT` and `RWF_DSYNC`.
    DirectRwfDsync,
    /// Through the page cache, then `fdatasync`.
    BufferedFdatasync,
    /// Through the page cache, then `fsync`.
    BufferedFsync,
    /// Appended to a file, then `fdatasync`: the size is metadata.
    Append,
    /// Written next to a tail that is cut off after the `fdatasync`.
    Truncate,
    /// A new file; `fsync` of the file and of its directory.
    NewFile,
    /// A new file; `fsync` of the file only. ext4 keeps it, POSIX does not promise it.
    NewFileOnly,
    /// A new file; `fsync` of its directory only.
    NewFileDirectoryOnly,
    /// A new file without any sync.
    NewFileUnsynced,
    /// Written to a temporary file, `fsync`, renamed over the old one, `fsync` of the directory.
    Rename,
}

impl Method {
    /// All of them.
    pub const ALL: [Method; 13] = [
        Method::DirectFdatasync,
        Method::DirectDsync,
        Method::DirectRwfDsync,
        Method::BufferedFdatasync,
        Method::BufferedFsync,
        Method::Append,
        Method::Truncate,
        Method::NewFile,
        Method::Rename,
        Method::NewFileOnly,
        Method::NewFileDirectoryOnly,
        Method::NewFileUnsynced,
        Method::Direct,
    ];

    /// Returns the name, as it is typed and printed.
    pub fn name(self) -> &'static str {
        match self {
            Method::Direct => "direct",
            Method::DirectFdatasync => "direct-fdatasync",
            Method::DirectDsync => "direct-dsync",
            Method::DirectRwfDsync => "direct-rwf-dsync",
            Method::BufferedFdatasync => "buffered-fdatasync",
            Method::BufferedFsync => "buffered-fsync",
            Method::Append => "append",
            Method::Truncate => "truncate",
            Method::NewFile => "new-file",
            Method::NewFileOnly => "new-file-only",
            Method::NewFileDirectoryOnly => "new-file-directory-only",
            Method::NewFileUnsynced => "new-file-unsynced",
            Method::Rename => "rename",
        }
    }

    /// Returns the method with this name.
    pub fn named(name: &str) -> Option<Method> {
        Method::ALL.into_iter().find(|method| method.name() == name)
    }

    /// Returns whether POSIX, or the option that the method uses, promises that what returned survives. Others are only counted.
    pub fn is_durable(self) -> bool {
        !matches!(self, Method::Direct | Method::NewFileOnly | Method::NewFileDirectoryOnly | Method::NewFileUnsynced)
    }

    /// Returns whether the method makes the disk flush its cache; `None`: it asks for nothing. A flush also stores what other
    /// methods wrote, and so hides that a disk ignores FUA.
    pub fn flushes(self) -> Option<bool> {
        match self {
            Method::Direct | Method::NewFileUnsynced => None,
            Method::DirectDsync | Method::DirectRwfDsync => Some(false),
            _ => Some(true),
        }
    }

    /// Returns where the method writes.
    pub fn place(self) -> Place {
        match self {
            Method::Direct
            | Method::DirectFdatasync
            | Method::DirectDsync
            | Method::DirectRwfDsync
            | Method::BufferedFdatasync
            | Method::BufferedFsync => Place::Blocks,
            _ => Place::Files,
        }
    }
}
