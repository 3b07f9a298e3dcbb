//! A failure as a plain object, from which JavaScript makes an error.
//!
//! The system's number is passed unchanged; JavaScript looks its name (`EINVAL`) up in libuv. Where `code` is present,
//! it is the code of the error, also next to a number.

use napi_derive::napi;
use std::error::Error;
use std::io;
use std::path::Path;
use trueio_direct::{
    AtomicError, BufferError, CopyError, DeviceError, LockError, Misaligned, OpenError, ProbeError, TransferError,
    TransferPart,
};

/// A failure. Fields that do not apply are absent.
#[napi(object)]
#[derive(Debug, Clone, Default)]
pub struct Failure {
    /// The error and its causes, joined by colons.
    pub message: String,
    /// The kind of failure, if the system returned no number or one that is less exact.
    pub code: Option<String>,
    /// The system's number, positive.
    pub errno: Option<i32>,
    /// The operation that failed: a system call if it is known.
    pub syscall: Option<String>,
    /// The path of the file.
    pub path: Option<String>,
    /// The misaligned part of a transfer: `address`, `length` or `offset`.
    pub part: Option<String>,
    /// The value of that part. Exact: addresses and offsets are below 2^53.
    pub value: Option<f64>,
    /// The alignment that it requires, in bytes.
    pub needed_bytes: Option<u32>,
    /// Number of bytes transferred before the failure.
    pub done_bytes: Option<f64>,
}

impl Failure {
    /// Makes a failure that is not the system's.
    pub(crate) fn own(code: &str, message: impl Into<String>) -> Self {
        Self { message: message.into(), code: Some(code.into()), ..Self::default() }
    }

    /// Makes a failure from `error` with its causes, and the operation.
    fn of(error: &(dyn Error + 'static), errno: Option<i32>, syscall: &str) -> Self {
        let mut message = error.to_string();
        let mut cause = error.source();
        while let Some(error) = cause {
            message += &format!(": {error}");
            cause = error.source();
        }
        Self { message, errno, syscall: Some(syscall.into()), ..Self::default() }
    }

    /// Makes a failure from the system's error during `attempt` ("reserving space") by `syscall`.
    pub(crate) fn of_io(attempt: &str, error: &io::Error, syscall: &str) -> Self {
        let mut failure = Self::of(error, error.raw_os_error(), syscall);
        failure.message = format!("{attempt} failed: {}", failure.message);
        failure.with_code_of(error)
    }

    fn with_path(mut self, path: &Path) -> Self {
        self.path = Some(path.to_string_lossy().into_owned());
        self
    }

    /// Returns the code of an error that the standard library or the crate made without a system call.
    fn with_code_of(mut self, error: &io::Error) -> Self {
        if self.errno.is_none() {
            let code = match error.kind() {
                io::ErrorKind::Unsupported => "ENOTSUP",
                io::ErrorKind::NotADirectory => "ENOTDIR",
                io::ErrorKind::InvalidInput => "EINVAL",
                io::ErrorKind::StorageFull => "ENOSPC",
                io::ErrorKind::OutOfMemory => "ENOMEM",
                _ => "ERR_TRUEIO_IO",
            };
            self.code = Some(code.into());
        }
        self
    }

    fn with_code(mut self, code: &str) -> Self {
        if self.errno.is_none() {
            self.code = Some(code.into());
        }
        self
    }

    /// Returns the failure of opening something that has no data at offsets. A directory is EISDIR, as for Node's own calls.
    fn with_kind(mut self, kind: &str) -> Self {
        let is_directory = kind == "directory";
        self.code = Some(if is_directory { "EISDIR" } else { "ERR_TRUEIO_NOT_A_FILE" }.into());
        #[cfg(unix)]
        if is_directory {
            self.errno = Some(libc::EISDIR);
        }
        self
    }
}

impl From<&Misaligned> for Failure {
    fn from(misaligned: &Misaligned) -> Self {
        let part = match misaligned.part {
            TransferPart::Address => "address",
            TransferPart::Length => "length",
            TransferPart::Offset => "offset",
        };
        Self {
            part: Some(part.into()),
            value: Some(misaligned.value as f64),
            needed_bytes: Some(misaligned.needed_bytes),
            ..Self::own("ERR_TRUEIO_MISALIGNED", misaligned.to_string())
        }
    }
}

impl From<OpenError> for Failure {
    fn from(error: OpenError) -> Self {
        let failure = Self::of(&error, error.raw_os_error(), "open").with_path(error.path());
        match &error {
            OpenError::NothingAsked { .. } => failure.with_code("ERR_INVALID_ARG_VALUE"),
            OpenError::NotAFile { kind, .. } => failure.with_kind(kind),
            OpenError::Refused { .. } => Self { code: Some("ERR_TRUEIO_DIRECT_REFUSED".into()), ..failure },
            OpenError::Buffers { .. } => failure.with_code("ERR_TRUEIO_WOULD_BUFFER"),
            OpenError::Busy { source, .. } | OpenError::Io { source, .. } => failure.with_code_of(source),
            _ => failure.with_code("ERR_TRUEIO_IO"),
        }
    }
}

impl From<ProbeError> for Failure {
    fn from(error: ProbeError) -> Self {
        let failure = Self::of(&error, error.raw_os_error(), "open");
        let (failure, path) = match &error {
            ProbeError::NotAFile { path, kind } => (failure.with_kind(kind), path),
            ProbeError::Io { path, source } => (failure.with_code_of(source), path),
            _ => return failure.with_code("ERR_TRUEIO_IO"),
        };
        match path {
            Some(path) => failure.with_path(path),
            None => failure,
        }
    }
}

impl From<TransferError> for Failure {
    fn from(error: TransferError) -> Self {
        let syscall = match &error {
            TransferError::EndOfFile { .. } | TransferError::Io { write: false, .. } => "read",
            _ => "write",
        };
        let mut failure = Self::of(&error, error.raw_os_error(), syscall);
        failure.done_bytes = Some(error.done() as f64);
        match &error {
            TransferError::Misaligned(misaligned) => Self::from(misaligned),
            TransferError::EndOfFile { .. } => failure.with_code("ERR_TRUEIO_END_OF_FILE"),
            TransferError::Appends { .. } => failure.with_code("EINVAL"),
            TransferError::NothingAccepted { .. } => failure.with_code("ERR_TRUEIO_NOTHING_ACCEPTED"),
            TransferError::StoppedMisaligned { .. } => failure.with_code("ERR_TRUEIO_STOPPED_MISALIGNED"),
            TransferError::Io { source, .. } | TransferError::PartOfBlock { source, .. } => {
                failure.with_code_of(source)
            }
            _ => failure.with_code("ERR_TRUEIO_IO"),
        }
    }
}

impl From<AtomicError> for Failure {
    fn from(error: AtomicError) -> Self {
        match error {
            AtomicError::Transfer(error) => error.into(),
            AtomicError::Torn { done, .. } => Self {
                done_bytes: Some(done as f64),
                syscall: Some("write".into()),
                ..Self::own("ERR_TRUEIO_TORN", error.to_string())
            },
            error => Self::own("ERR_TRUEIO_NOT_ATOMIC", error.to_string()),
        }
    }
}

impl From<CopyError> for Failure {
    fn from(error: CopyError) -> Self {
        let failure = Self::of(&error, error.raw_os_error(), "copyfile");
        match error {
            CopyError::Open(error) => error.into(),
            CopyError::Exists { .. } => failure.with_code("EEXIST"),
            CopyError::Stopped { done } => Self { done_bytes: Some(done as f64), ..failure.with_code("ECANCELED") },
            CopyError::Io { done, source, .. } => {
                Self { done_bytes: Some(done as f64), ..failure.with_code_of(&source) }
            }
            // The file is the same, or one of the two is too short.
            _ => failure.with_code("EINVAL"),
        }
    }
}

impl From<BufferError> for Failure {
    fn from(error: BufferError) -> Self {
        let code = match &error {
            BufferError::OutOfMemory { .. } | BufferError::TooLarge { .. } => "ENOMEM",
            _ => "ERR_OUT_OF_RANGE",
        };
        Self::own(code, error.to_string())
    }
}

impl From<DeviceError> for Failure {
    fn from(error: DeviceError) -> Self {
        match &error {
            DeviceError::Io { source, .. } => Self::of(&error, error.raw_os_error(), "ioctl").with_code_of(source),
            _ => Self::own("ENOTBLK", error.to_string()),
        }
    }
}

impl From<LockError> for Failure {
    fn from(error: LockError) -> Self {
        let failure = Self::of(&error, error.raw_os_error(), "flock");
        match &error {
            LockError::Unsupported(_) => failure.with_code("ENOTSUP"),
            LockError::Held(source) | LockError::Io(source) => failure.with_code_of(source),
            _ => failure.with_code("ERR_TRUEIO_IO"),
        }
    }
}
