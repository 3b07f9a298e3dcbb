//! Types of a simulated command that SCSI and ATA share: identity, direction, outcome.
//!
//! The sense data is that of SPC-4, fixed format.

use super::medium::Failure;

/// Status GOOD.
pub(super) const GOOD: u8 = 0;
/// Status CHECK CONDITION: the sense data has the reason.
pub(super) const CHECK_CONDITION: u8 = 2;

/// The identity that a disk reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// Eight characters.
    pub vendor: String,
    /// Sixteen characters.
    pub model: String,
    /// The serial number of VPD page 80h; also the USB device's.
    pub serial: String,
    /// Physical sector = logical sector × 2^this.
    pub physical_exponent: u8,
    /// Revolutions per minute; 1 if it does not rotate.
    pub rotation_rate: u16,
}

/// The result of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Outcome {
    pub(super) status: u8,
    pub(super) data: Vec<u8>,
    pub(super) sense: Vec<u8>,
}

/// The direction of a command's data, with the number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    None,
    In(usize),
    Out(usize),
}

impl Outcome {
    pub(super) fn good(data: Vec<u8>) -> Self {
        Self { status: GOOD, data, sense: Vec::new() }
    }

    /// Returns a check condition with fixed-format sense data.
    pub(super) fn check(key: u8, code: u8, qualifier: u8) -> Self {
        let mut sense = vec![0; 18];
        sense[0] = 0x70;
        sense[2] = key;
        sense[7] = 10;
        sense[12] = code;
        sense[13] = qualifier;
        Self { status: CHECK_CONDITION, data: Vec::new(), sense }
    }

    /// Returns ILLEGAL REQUEST, INVALID FIELD IN CDB.
    pub(super) fn invalid_field() -> Self {
        Self::check(5, 0x24, 0)
    }

    /// Returns the check condition of a medium's failure.
    pub(super) fn of_failure(failure: Failure, is_write: bool) -> Self {
        match failure {
            // ILLEGAL REQUEST, LOGICAL BLOCK ADDRESS OUT OF RANGE.
            Failure::OutOfRange => Self::check(5, 0x21, 0),
            // MEDIUM ERROR: WRITE ERROR or UNRECOVERED READ ERROR, at this block.
            Failure::Medium(block) => {
                let mut outcome = Self::check(3, if is_write { 0x0c } else { 0x11 }, 0);
                if let Ok(block) = u32::try_from(block) {
                    outcome.sense[0] |= 0x80;
                    outcome.sense[3..7].copy_from_slice(&block.to_be_bytes());
                }
                outcome
            }
        }
    }
}

/// Returns `text`, padded with spaces or cut to `length` bytes.
pub(super) fn padded(text: &str, length: usize) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize(length, b' ');
    bytes
}
