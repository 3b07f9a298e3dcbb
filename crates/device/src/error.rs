//! The errors of this crate. A single missing fact is not an error: it is a [`trueio_model::Fact`] without a value, with
//! the reason as its source.

use std::io;
use std::path::PathBuf;

/// Why the facts of a device cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The path cannot be read.
    #[error("`{}` cannot be examined", path.display())]
    Path {
        /// Which one.
        path: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// A pipe, a socket, a terminal …
    #[error("`{}` is neither a directory, a file nor a device that holds data", path.display())]
    Kind {
        /// Which one.
        path: PathBuf,
    },
    /// The path is not a block device.
    #[error("`{}` is not a block device", path.display())]
    NotABlockDevice {
        /// Which one.
        path: PathBuf,
    },
    /// A required file of `/proc` or `/sys` cannot be read.
    #[error("`{path}` cannot be read")]
    Kernel {
        /// Which file.
        path: String,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// A file of `/proc` or `/sys` cannot be parsed.
    #[error("`{path}` contains `{text}`, which cannot be parsed: {reason}")]
    Malformed {
        /// Which file.
        path: String,
        /// Its content.
        text: String,
        /// What was expected.
        reason: String,
    },
}
