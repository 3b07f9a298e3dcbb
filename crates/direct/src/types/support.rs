//! Results of a probe: what a file offers, and from which source that is known.

use super::writes::AtomicWrite;
use crate::alignment::Alignment;
use std::io;
use std::path::{Path, PathBuf};

/// Whether a file supports direct I/O.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Support {
    /// The filesystem or the block device reports direct I/O.
    Direct,
    /// The flag is accepted, and transfers use the page cache, or that must be expected.
    SilentlyBuffered {
        /// Reason and source, as a sentence without a full stop.
        reason: String,
    },
    /// The flag is refused.
    Refused {
        /// Reason and source, as a sentence without a full stop.
        reason: String,
    },
    /// The flag is accepted, and its effect is unknown.
    Unknown {
        /// The sources without an answer, as a sentence without a full stop.
        reason: String,
    },
}

impl Support {
    /// Returns the name that the bindings use: "direct", "silently-buffered", "refused" or "unknown".
    pub fn name(&self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::SilentlyBuffered { .. } => "silently-buffered",
            Self::Refused { .. } => "refused",
            Self::Unknown { .. } => "unknown",
        }
    }

    /// Returns whether the filesystem or the block device reports direct I/O.
    pub fn is_direct(&self) -> bool {
        matches!(self, Self::Direct)
    }

    /// Returns the reason for any other answer than [`Self::Direct`], as a sentence without a full stop.
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Direct => None,
            Self::SilentlyBuffered { reason } | Self::Refused { reason } | Self::Unknown { reason } => Some(reason),
        }
    }
}

/// Yes, no or unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Answer {
    /// A source reports yes.
    Yes,
    /// A source reports no.
    No,
    /// No source answers.
    Unknown,
}

/// What a file offers. A probe writes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Probe {
    /// Whether reads and writes are direct. Where they differ, this is the answer for writes, the weaker one.
    pub support: Support,
    /// The source of `support`, as a sentence without a full stop.
    pub reason: String,
    /// Alignment of direct reads and writes. Where the page cache is used, none is required.
    pub alignment: Alignment,
    /// Whether reads are direct in a file that is opened only for reading.
    pub read_support: Support,
    /// Alignment of those reads.
    pub read_alignment: Alignment,
    /// Limits of atomic writes; [`None`] unless `atomic_write_answer` is [`Answer::Yes`].
    pub atomic_write: Option<AtomicWrite>,
    /// Whether atomic writes are available: limits of zero mean no, missing limits unknown.
    pub atomic_write_answer: Answer,
    /// Whether buffered I/O that leaves nothing in the cache is available (`RWF_DONTCACHE`, Linux
    /// 6.14). Unknown if the file is not open for reading.
    pub uncached_buffered: Answer,
    /// Name of the filesystem ("ext4"); "the block device" for one.
    pub filesystem: String,
}

/// Error of a probe.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// A directory, a pipe, a socket, a terminal …: it has no data at offsets.
    #[error("{} is a {kind}, and only regular files and disks can be probed", subject(path))]
    NotAFile {
        /// The path; [`None`] for an open file.
        path: Option<PathBuf>,
        /// Kind of the file ("directory").
        kind: &'static str,
    },
    /// Opening or probing it failed.
    #[error("{} cannot be probed", subject(path))]
    Io {
        /// The path; [`None`] for an open file.
        path: Option<PathBuf>,
        /// The system's error.
        #[source]
        source: io::Error,
    },
}

fn subject(path: &Option<PathBuf>) -> String {
    path.as_ref().map_or_else(|| "the open file".to_owned(), |path| format!("`{}`", path.display()))
}

impl ProbeError {
    pub(crate) fn with_path(self, path: &Path) -> Self {
        let path = Some(path.to_owned());
        match self {
            Self::NotAFile { kind, .. } => Self::NotAFile { path, kind },
            Self::Io { source, .. } => Self::Io { path, source },
        }
    }

    /// Returns the system's error number, if the error is the system's; on Unix, that of a directory is `EISDIR`.
    pub fn raw_os_error(&self) -> Option<i32> {
        match self {
            Self::NotAFile { kind, .. } => crate::os::number_of_kind(kind),
            Self::Io { source, .. } => source.raw_os_error(),
        }
    }
}
