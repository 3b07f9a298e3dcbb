//! Facts that a disk reports.

use std::io;

/// Facts that an open disk reports.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceFacts {
    /// Capacity, in bytes.
    pub size_bytes: u64,
    /// Logical sector: the unit of addresses. Each direct transfer is a multiple of it.
    pub logical_sector_bytes: u32,
    /// Physical sector: smaller writes cause a read first. [`None`] if not reported (some virtual devices report 0).
    /// On FreeBSD this is the stripe size.
    pub physical_sector_bytes: Option<u32>,
    /// Smallest transfer without extra cost (the chunk of a RAID), if reported.
    pub minimum_io_bytes: Option<u32>,
    /// Preferred transfer (the stripe of a RAID), if reported.
    pub optimal_io_bytes: Option<u32>,
    /// Whether the disk is rotational; [`None`] if not reported. Virtual disks often report true wrongly.
    pub is_rotational: Option<bool>,
    /// Serial number without surrounding spaces; [`None`] if not reported.
    pub serial: Option<String>,
    /// Source of the serial number ("SCSI page 0x80", "sysfs"); [`None`] without one.
    pub serial_source: Option<&'static str>,
}

/// Error of [`device_facts`](crate::device_facts).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The file is not a disk.
    #[error("this is a {kind}, not a disk")]
    NotADevice {
        /// Kind of the file ("regular file").
        kind: &'static str,
    },
    /// A call that every disk supports failed.
    #[error("{call} failed on the disk")]
    Io {
        /// The call.
        call: &'static str,
        /// The system's error.
        #[source]
        source: io::Error,
    },
}

impl DeviceError {
    /// Returns the system's error number, if the error is the system's.
    pub fn raw_os_error(&self) -> Option<i32> {
        match self {
            Self::NotADevice { .. } => None,
            Self::Io { source, .. } => source.raw_os_error(),
        }
    }
}

/// Removes the spaces and zero bytes that surround a serial number; [`None`] if nothing is left.
#[cfg(not(target_os = "macos"))]
pub(crate) fn tidy_serial(bytes: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(bytes);
    let text = text.trim_matches(|c: char| c.is_ascii_whitespace() || c == '\0');
    (!text.is_empty()).then(|| text.to_owned())
}

#[cfg(all(test, not(target_os = "macos")))]
mod tests {
    use super::tidy_serial;

    #[test]
    fn a_serial_of_spaces_and_zeros_is_none() {
        assert_eq!(tidy_serial(b"  WD-123 45\0\0 "), Some("WD-123 45".to_owned()));
        assert_eq!(tidy_serial(b" \0  "), None);
        assert_eq!(tidy_serial(b""), None);
        assert_eq!(tidy_serial(b"\xffA"), Some("\u{fffd}A".to_owned()));
    }
}
