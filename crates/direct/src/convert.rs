//! Converts the errors of this crate to [`io::Error`].
//!
//! The kind is that of the system's error, or the nearest one where there is no system error. The original error
//! is the inner one: `error.get_ref()` and `downcast` return it. An [`OpenError`] with an error number of the system becomes
//! that error instead, so that `raw_os_error` returns the number, as for `std::fs::File::open`.

use crate::{
    AtomicError, BufferError, CopyError, DeviceError, LockError, Misaligned, OpenError, ProbeError, TransferError,
};
use std::io::{self, ErrorKind};

macro_rules! into_io {
    ($($error:ident: $kind:expr,)*) => {
        $(impl From<$error> for io::Error {
            fn from(error: $error) -> Self {
                let kind: fn(&$error) -> ErrorKind = $kind;
                io::Error::new(kind(&error), error)
            }
        })*
    };
}

into_io! {
    Misaligned: |_| ErrorKind::InvalidInput,
    BufferError: |error| match error {
        BufferError::OutOfMemory { .. } | BufferError::TooLarge { .. } => ErrorKind::OutOfMemory,
        _ => ErrorKind::InvalidInput,
    },
    ProbeError: |error| match error {
        ProbeError::NotAFile { kind, .. } => kind_of_unfit(kind),
        ProbeError::Io { source, .. } => source.kind(),
    },
    TransferError: transfer_kind,
    AtomicError: |error| match error {
        AtomicError::Transfer(error) => transfer_kind(error),
        AtomicError::Torn { .. } => ErrorKind::WriteZero,
        _ => ErrorKind::InvalidInput,
    },
    LockError: |error| match error {
        LockError::Held(_) => ErrorKind::WouldBlock,
        LockError::Unsupported(_) => ErrorKind::Unsupported,
        LockError::Io(source) => source.kind(),
    },
    DeviceError: |error| match error {
        DeviceError::Io { source, .. } => source.kind(),
        _ => ErrorKind::InvalidInput,
    },
    CopyError: |error| match error {
        CopyError::Exists { .. } => ErrorKind::AlreadyExists,
        CopyError::SameFile { .. } | CopyError::TooShort { .. } => ErrorKind::InvalidInput,
        CopyError::Open(error) => open_kind(error),
        CopyError::Stopped { .. } => ErrorKind::Other,
        CopyError::Io { source, .. } => source.kind(),
    },
}

impl From<OpenError> for io::Error {
    fn from(error: OpenError) -> Self {
        match error.raw_os_error() {
            Some(number) => Self::from_raw_os_error(number),
            None => Self::new(open_kind(&error), error),
        }
    }
}

fn kind_of_unfit(kind: &str) -> ErrorKind {
    if kind == "directory" { ErrorKind::IsADirectory } else { ErrorKind::InvalidInput }
}

fn open_kind(error: &OpenError) -> ErrorKind {
    match error {
        OpenError::NothingAsked { .. } => ErrorKind::InvalidInput,
        OpenError::NotAFile { kind, .. } => kind_of_unfit(kind),
        OpenError::Refused { .. } | OpenError::Buffers { .. } => ErrorKind::Unsupported,
        OpenError::Busy { .. } => ErrorKind::ResourceBusy,
        OpenError::Io { source, .. } => source.kind(),
    }
}

fn transfer_kind(error: &TransferError) -> ErrorKind {
    match error {
        TransferError::Misaligned(_) | TransferError::StoppedMisaligned { .. } | TransferError::Appends { .. } => {
            ErrorKind::InvalidInput
        }
        TransferError::EndOfFile { .. } => ErrorKind::UnexpectedEof,
        TransferError::NothingAccepted { .. } => ErrorKind::WriteZero,
        TransferError::Io { source, .. } | TransferError::PartOfBlock { source, .. } => source.kind(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_of_opening_keeps_its_number() {
        let missing = crate::OpenOptions::new().read(true).open("/no/such/file").unwrap_err();
        let number = missing.raw_os_error();
        assert!(number.is_some());
        assert_eq!(io::Error::from(missing).raw_os_error(), number);
        let nothing = crate::OpenOptions::new().open("/no/such/file").unwrap_err();
        assert!(io::Error::from(nothing).get_ref().is_some_and(|inner| inner.is::<OpenError>()));
    }

    #[test]
    fn a_converted_error_has_its_kind_and_contains_the_original() {
        let error: io::Error = TransferError::EndOfFile { offset: 0, wanted: 2, done: 1 }.into();
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
        assert!(error.get_ref().is_some_and(|inner| inner.is::<TransferError>()));
        let source = io::Error::from(ErrorKind::StorageFull);
        let error: io::Error = TransferError::Io { write: true, offset: 0, wanted: 1, done: 0, source }.into();
        assert_eq!(error.kind(), ErrorKind::StorageFull);
        let missing = crate::probe("/no/such/file").unwrap_err();
        assert_eq!(io::Error::from(missing).kind(), ErrorKind::NotFound);
    }
}
