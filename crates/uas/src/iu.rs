//! Information units: what the host sends on the command pipe, and what the device sends on the status pipe.
//!
//! Numbers are big-endian. The tag in bytes 2 and 3 names the command; at SuperSpeed it is also the stream of the
//! command's data and status.
//!
//! Limits: commands of at most 16 bytes (no additional CDB bytes), and logical units below 256.
//!
//! Source: T10 "USB Attached SCSI" (UAS) revision 4, section 6.2; layout as in Linux `include/linux/usb/uas.h`.

const COMMAND: u8 = 0x01;
const SENSE: u8 = 0x03;
const RESPONSE: u8 = 0x04;
const TASK_MANAGEMENT: u8 = 0x05;
const READ_READY: u8 = 0x06;
const WRITE_READY: u8 = 0x07;

/// Bytes of a COMMAND unit.
pub const COMMAND_BYTES: usize = 32;
/// Bytes of a TASK MANAGEMENT unit.
pub const TASK_MANAGEMENT_BYTES: usize = 16;
/// Bytes of a buffer for the status pipe: the head of a SENSE unit and the longest sense data (SPC-4: 252 bytes).
pub const STATUS_BYTES: usize = 16 + 252;

/// Returns a COMMAND unit with the task attribute SIMPLE.
pub fn command(tag: u16, lun: u8, cdb: &[u8; 16]) -> [u8; COMMAND_BYTES] {
    let mut unit = [0; COMMAND_BYTES];
    unit[0] = COMMAND;
    unit[2..4].copy_from_slice(&tag.to_be_bytes());
    // Bytes 8 to 15 are the logical unit; a number below 256 is in byte 9 (SAM-5, peripheral device addressing).
    unit[9] = lun;
    unit[16..].copy_from_slice(cdb);
    unit
}

/// A task management function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Function {
    /// Ends one command without a status.
    AbortTask = 0x01,
    /// Ends all commands of a logical unit.
    LogicalUnitReset = 0x08,
    /// Returns whether the device still has a command.
    QueryTask = 0x80,
}

/// Returns a TASK MANAGEMENT unit. `task` is the tag of the command; a reset of a logical unit ignores it.
pub fn task_management(tag: u16, function: Function, task: u16, lun: u8) -> [u8; TASK_MANAGEMENT_BYTES] {
    let mut unit = [0; TASK_MANAGEMENT_BYTES];
    unit[0] = TASK_MANAGEMENT;
    unit[2..4].copy_from_slice(&tag.to_be_bytes());
    unit[4] = function as u8;
    unit[6..8].copy_from_slice(&task.to_be_bytes());
    unit[9] = lun;
    unit
}

/// A unit from the status pipe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit<'a> {
    /// A command is over.
    Sense {
        /// The tag of its command (T10 UAS).
        tag: u16,
        /// The SCSI status: 0 is GOOD.
        status: u8,
        /// The sense data; empty with GOOD.
        sense: &'a [u8],
    },
    /// A task management function is over, or a unit was refused.
    Response {
        /// The tag of the function, or of the refused unit.
        tag: u16,
        /// The response code.
        code: ResponseCode,
    },
    /// Without streams: the host may receive the command's data.
    ReadReady {
        /// The command's tag.
        tag: u16,
    },
    /// Without streams: the host may send the command's data.
    WriteReady {
        /// The command's tag.
        tag: u16,
    },
}

impl Unit<'_> {
    /// Returns the tag.
    pub fn tag(&self) -> u16 {
        match *self {
            Self::Sense { tag, .. }
            | Self::Response { tag, .. }
            | Self::ReadReady { tag }
            | Self::WriteReady { tag } => tag,
        }
    }
}

/// A response code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ResponseCode {
    /// The function is complete. For QUERY TASK: the device does not have the command.
    Complete,
    /// The device does not understand the unit.
    InvalidUnit,
    /// The device does not support the function.
    NotSupported,
    /// The function failed.
    Failed,
    /// The function succeeded. For QUERY TASK: the device has the command.
    Succeeded,
    /// There is no such logical unit.
    IncorrectLun,
    /// The tag was in use; the device aborted its commands.
    OverlappedTag,
    /// A reserved code.
    Reserved(u8),
}

impl ResponseCode {
    fn of(code: u8) -> Self {
        match code {
            0x00 => Self::Complete,
            0x02 => Self::InvalidUnit,
            0x04 => Self::NotSupported,
            0x05 => Self::Failed,
            0x08 => Self::Succeeded,
            0x09 => Self::IncorrectLun,
            0x0a => Self::OverlappedTag,
            other => Self::Reserved(other),
        }
    }
}

/// Why bytes of the status pipe are no unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// The unit ends before its fields.
    #[error("the unit of type {kind:#04x} is {length} bytes long and needs {least}")]
    Short {
        /// Its type; 0 if not even that was sent.
        kind: u8,
        /// Its length, in bytes.
        length: usize,
        /// The least length of this type, in bytes.
        least: usize,
    },
    /// No unit of the status pipe has this type.
    #[error("the unit has the unknown type {kind:#04x}")]
    Unknown {
        /// Byte 0 of the unit.
        kind: u8,
    },
}

/// Parses a unit of the status pipe. Sense data that is shorter than its length field is returned as far as it was
/// sent.
///
/// # Errors
/// [`UnitError`]: the device does not follow the protocol.
pub fn parse(bytes: &[u8]) -> Result<Unit<'_>, UnitError> {
    let kind = bytes.first().copied().unwrap_or(0);
    let least = match kind {
        READ_READY | WRITE_READY => 4,
        RESPONSE => 8,
        // Linux accepts a unit that ends behind the status, and bridges send such for GOOD.
        SENSE => 7,
        _ if bytes.is_empty() => 1,
        _ => return Err(UnitError::Unknown { kind }),
    };
    if bytes.len() < least {
        return Err(UnitError::Short { kind, length: bytes.len(), least });
    }
    let tag = u16::from_be_bytes([bytes[2], bytes[3]]);
    Ok(match kind {
        READ_READY => Unit::ReadReady { tag },
        WRITE_READY => Unit::WriteReady { tag },
        RESPONSE => Unit::Response { tag, code: ResponseCode::of(bytes[7]) },
        _ => {
            let sense = match bytes.get(14..16) {
                Some(length) => {
                    let length = usize::from(u16::from_be_bytes([length[0], length[1]]));
                    &bytes[16..bytes.len().min(16 + length)]
                }
                None => &[],
            };
            Unit::Sense { tag, status: bytes[6], sense }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_command_unit_has_the_bytes_that_linux_sends() {
        let mut cdb = [0; 16];
        cdb[..10].copy_from_slice(&[0x28, 0, 0, 0, 0, 9, 0, 0, 8, 0]);
        let unit = command(0x0102, 3, &cdb);
        assert_eq!(unit[..16], [1, 0, 1, 2, 0, 0, 0, 0, 0, 3, 0, 0, 0, 0, 0, 0]);
        assert_eq!(unit[16..], cdb);
        let unit = task_management(0x11, Function::AbortTask, 7, 1);
        assert_eq!(unit, [5, 0, 0, 0x11, 1, 0, 0, 7, 0, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(task_management(1, Function::QueryTask, 2, 0)[4], 0x80);
        assert_eq!(task_management(1, Function::LogicalUnitReset, 0, 0)[4], 8);
    }

    /// Units that QEMU's `usb-uas` and the simulated disk sent.
    #[test]
    fn units_of_devices_are_parsed() {
        let good = [3, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(parse(&good), Ok(Unit::Sense { tag: 5, status: 0, sense: &[] }));
        let mut attention = vec![3, 0, 0, 1, 0, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 18];
        attention.extend([0x70, 0, 6, 0, 0, 0, 0, 10, 0, 0, 0, 0, 0x29, 0, 0, 0, 0, 0]);
        let Ok(Unit::Sense { tag: 1, status: 2, sense }) = parse(&attention) else { panic!("{:?}", parse(&attention)) };
        assert_eq!((sense.len(), sense[12]), (18, 0x29));
        assert_eq!(parse(&[6, 0, 1, 0]), Ok(Unit::ReadReady { tag: 256 }));
        assert_eq!(parse(&[7, 0, 0, 9]), Ok(Unit::WriteReady { tag: 9 }));
        let response = parse(&[4, 0, 0, 15, 0, 0, 0, 8]);
        assert_eq!(response, Ok(Unit::Response { tag: 15, code: ResponseCode::Succeeded }));
        assert_eq!(response.map(|unit| unit.tag()), Ok(15));
    }

    #[test]
    fn short_and_unknown_units_are_errors() {
        assert_eq!(parse(&[]), Err(UnitError::Short { kind: 0, length: 0, least: 1 }));
        assert_eq!(parse(&[3, 0, 0, 1, 0, 0]), Err(UnitError::Short { kind: 3, length: 6, least: 7 }));
        assert_eq!(parse(&[4, 0, 0, 1]), Err(UnitError::Short { kind: 4, length: 4, least: 8 }));
        assert_eq!(parse(&[1, 0, 0, 1]), Err(UnitError::Unknown { kind: 1 }));
        // A unit that ends behind the status is accepted.
        assert_eq!(parse(&[3, 0, 0, 1, 0, 0, 8]), Ok(Unit::Sense { tag: 1, status: 8, sense: &[] }));
        for (code, expected) in [
            (2, ResponseCode::InvalidUnit),
            (4, ResponseCode::NotSupported),
            (5, ResponseCode::Failed),
            (9, ResponseCode::IncorrectLun),
            (10, ResponseCode::OverlappedTag),
            (77, ResponseCode::Reserved(77)),
        ] {
            assert_eq!(parse(&[4, 0, 0, 1, 0, 0, 0, code]), Ok(Unit::Response { tag: 1, code: expected }));
        }
    }

    proptest! {
        #[test]
        fn any_bytes_end_in_a_unit_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(Unit::Sense { sense, .. }) = parse(&bytes) {
                prop_assert!(sense.len() <= bytes.len());
            }
        }
    }
}
