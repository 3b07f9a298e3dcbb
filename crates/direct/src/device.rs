//! Facts that an open disk reports: size, sectors, serial number.
//!
//! Size and logical sector are required, the rest is best effort: loop devices, virtual disks and device-mapper
//! targets have no serial number, and its absence does not affect the other facts.
//!
//! Limits: the disks below a composed device (RAID, device mapper) are not visible.

use crate::types::{DeviceError, DeviceFacts};
use std::fs::File;

/// Returns the facts of the open disk `file`. Read permission is sufficient. On Linux the serial number of a SCSI
/// disk may need more; it is then read from sysfs.
///
/// # Errors
/// [`DeviceError`]: `file` is not a disk, or its size or sector cannot be read.
pub fn device_facts(file: &File) -> Result<DeviceFacts, DeviceError> {
    crate::os::device_facts(file)
}
