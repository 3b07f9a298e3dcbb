//! Why a question about a device has no answer at all. A single fact that is missing is not an
//! error: it is a [`trueio_model::Fact`] without a value, with the reason as its source.

use std::io;
use std::path::PathBuf;

/// Why a question about a device has no answer.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// The path could not be looked at.
    #[error("`{}` cannot be looked at", path.display())]
    Path {
        /// Which one.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A pipe, a socket, a terminal …
    #[error("`{}` is neither a directory, a file nor a device that holds data", path.display())]
    Kind {
        /// Which one.
        path: PathBuf,
    },
    /// The path is no block device.
    #[error("`{}` is not a block device", path.display())]
    NotABlockDevice {
        /// Which one.
        path: PathBuf,
    },
    /// A file of `/proc` or `/sys` that everything else rests on could not be read.
    #[error("`{path}` cannot be read")]
    Kernel {
        /// Which file.
        path: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// A file of `/proc` or `/sys` was read and not understood.
    #[error("`{path}` holds `{text}`, which is not understood: {reason}")]
    Malformed {
        /// Which file.
        path: String,
        /// What stands in it.
        text: String,
        /// What was expected.
        reason: String,
    },
}
