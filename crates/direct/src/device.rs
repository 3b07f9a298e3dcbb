//! What an open disk says about itself: size, sectors, serial number.
//!
//! Size and logical sector are demanded, the rest is best effort: loop devices, virtual disks and
//! device-mapper targets have no serial, and the absence of one never costs the other facts.
//!
//! Cannot see: what lies below a disk that is put together from others.

use std::fs::File;
use std::io;

/// What an open disk says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeviceFacts {
    /// How much it holds, in bytes.
    pub size_bytes: u64,
    /// The unit of its addresses: no direct transfer is smaller or lies between two of these.
    pub logical_sector_bytes: u32,
    /// The unit in which it writes: smaller writes make it read first. [`None`]: it does not say
    /// (some virtual devices report 0). On FreeBSD this is the stripe size.
    pub physical_sector_bytes: Option<u32>,
    /// The smallest transfer that costs nothing extra (a RAID's chunk), if it says.
    pub minimum_io_bytes: Option<u32>,
    /// The transfer it likes best (a RAID's stripe), if it says.
    pub optimal_io_bytes: Option<u32>,
    /// Whether it turns; [`None`]: it does not say. Virtual disks often say yes wrongly.
    pub is_rotational: Option<bool>,
    /// Its serial number without surrounding spaces; [`None`]: it has none to tell.
    pub serial: Option<String>,
    /// Who told the serial number ("SCSI page 0x80", "sysfs"); [`None`] with it.
    pub serial_source: Option<&'static str>,
}

/// Why nothing is known of a disk.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// This is not a disk.
    #[error("this is a {kind}, not a disk")]
    NotADevice {
        /// What it is ("regular file").
        kind: &'static str,
    },
    /// It did not answer a question that every disk answers.
    #[error("the disk did not answer {call}")]
    Io {
        /// What was asked.
        call: &'static str,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl DeviceError {
    /// The system's error number, if this came from the system.
    pub fn raw_os_error(&self) -> Option<i32> {
        match self {
            Self::NotADevice { .. } => None,
            Self::Io { source, .. } => source.raw_os_error(),
        }
    }
}

/// Asks the open disk `file` about itself. Reading permission is enough; on Linux the serial number
/// of a SCSI disk may need more, and is then taken from sysfs.
///
/// # Errors
/// [`DeviceError`]: not a disk, or it does not tell its size or sector.
pub fn device_facts(file: &File) -> Result<DeviceFacts, DeviceError> {
    crate::os::device_facts(file)
}

/// A serial number without the spaces and zero bytes that surround it; [`None`] if nothing is left.
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
