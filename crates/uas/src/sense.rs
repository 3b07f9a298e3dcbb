//! Sense data: why a command did not end with GOOD, in numbers and in a sentence.
//!
//! Limits: of the additional sense codes, only those that disks and USB bridges send have a sentence; the others are
//! printed as numbers.
//!
//! Source: T10 SPC-4 section 4.5; the list of additional sense codes is T10's `asc-num.txt`.

use std::fmt;

/// Sense data in numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sense {
    /// The sense key, 0 to 15 (SPC-4 4.5).
    pub key: u8,
    /// The additional sense code.
    pub asc: u8,
    /// The additional sense code qualifier.
    pub ascq: u8,
    /// The first block that is concerned, if the device reports one.
    pub block: Option<u64>,
    /// True if the error belongs to an earlier command that had ended with GOOD.
    pub is_deferred: bool,
}

/// Sense keys.
pub mod key {
    /// Nothing to report.
    pub const NO_SENSE: u8 = 0;
    /// The command succeeded with some recovery.
    pub const RECOVERED_ERROR: u8 = 1;
    /// The device cannot be accessed now.
    pub const NOT_READY: u8 = 2;
    /// The medium is defective.
    pub const MEDIUM_ERROR: u8 = 3;
    /// The device is defective.
    pub const HARDWARE_ERROR: u8 = 4;
    /// The command is not supported, or a field of it is wrong.
    pub const ILLEGAL_REQUEST: u8 = 5;
    /// Something changed since the last command; this command was not executed.
    pub const UNIT_ATTENTION: u8 = 6;
    /// The medium is write-protected.
    pub const DATA_PROTECT: u8 = 7;
    /// The device ended the command itself.
    pub const ABORTED_COMMAND: u8 = 0xb;
}

impl Sense {
    /// Parses sense data in the fixed or the descriptor format. `None`: it is too short for its key, or in no known
    /// format.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let code = bytes.first()? & 0x7f;
        let at = |index: usize| bytes.get(index).copied().unwrap_or(0);
        match code {
            0x70 | 0x71 => {
                let key = bytes.get(2)? & 0x0f;
                let is_valid = bytes[0] & 0x80 != 0 && bytes.len() >= 7;
                let block = is_valid.then(|| u64::from(u32::from_be_bytes([bytes[3], bytes[4], bytes[5], bytes[6]])));
                Some(Self { key, asc: at(12), ascq: at(13), block, is_deferred: code == 0x71 })
            }
            0x72 | 0x73 => {
                let key = bytes.get(1)? & 0x0f;
                Some(Self { key, asc: at(2), ascq: at(3), block: information(bytes), is_deferred: code == 0x73 })
            }
            _ => None,
        }
    }

    /// True if both numbers of the additional sense code are these.
    pub fn is(&self, asc: u8, ascq: u8) -> bool {
        (self.asc, self.ascq) == (asc, ascq)
    }
}

/// Returns the value of the information descriptor (type 0), if it is valid.
fn information(bytes: &[u8]) -> Option<u64> {
    let mut rest = bytes.get(8..)?;
    while let [kind, length, body @ ..] = rest {
        let length = usize::from(*length);
        if *kind == 0 && length >= 10 && body.len() >= 10 {
            let number = body.get(2..10)?.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
            return (body[0] & 0x80 != 0).then_some(number);
        }
        rest = body.get(length..)?;
    }
    None
}

/// A code with its sentence; `None`: any qualifier.
struct Code(u8, Option<u8>, &'static str);

const CODES: [Code; 47] = [
    Code(0x00, Some(0x1d), "the device passed ATA registers on"),
    Code(0x03, None, "a write fault in the device"),
    Code(0x04, Some(0x00), "the disk is not ready, cause not reported"),
    Code(0x04, Some(0x01), "the disk is becoming ready"),
    Code(0x04, Some(0x02), "the disk is stopped and needs a start command"),
    Code(0x04, Some(0x03), "the disk is not ready: manual intervention is required"),
    Code(0x04, Some(0x04), "the disk is being formatted"),
    Code(0x04, Some(0x07), "the disk is busy with another operation"),
    Code(0x04, Some(0x09), "the disk is testing itself"),
    Code(0x04, Some(0x11), "the disk waits for power (notify, enable spinup)"),
    Code(0x04, None, "the disk is not ready"),
    Code(0x08, None, "the bridge cannot communicate with its disk"),
    Code(0x09, None, "a tracking error"),
    Code(0x0b, Some(0x01), "the disk reports that its temperature is too high"),
    Code(0x0c, Some(0x02), "a write error; reassigning the block failed"),
    Code(0x0c, None, "a write error"),
    Code(0x10, None, "the protection information of a block is wrong"),
    Code(0x11, None, "an unrecovered read error"),
    Code(0x14, None, "a block was not found"),
    Code(0x15, None, "a positioning error"),
    Code(0x17, None, "data was recovered with retries"),
    Code(0x18, None, "data was recovered with error correction"),
    Code(0x1a, None, "the length of a parameter list is wrong"),
    Code(0x20, None, "the command is not supported"),
    Code(0x21, None, "a block address beyond the end of the disk"),
    Code(0x24, None, "a field of the command is not supported"),
    Code(0x25, None, "there is no such logical unit"),
    Code(0x26, None, "a field of the parameter list is not supported"),
    Code(0x27, None, "the disk is write-protected"),
    Code(0x28, None, "the medium may have changed"),
    Code(0x29, Some(0x00), "the device was powered on or reset"),
    Code(0x29, Some(0x01), "the device was powered on"),
    Code(0x29, None, "the device was reset"),
    Code(0x2a, Some(0x09), "the size of the disk has changed"),
    Code(0x2a, None, "parameters of the disk have changed"),
    Code(0x2f, None, "commands were cleared by another initiator"),
    Code(0x31, None, "the format of the medium is corrupted"),
    Code(0x3a, None, "there is no medium"),
    Code(0x3f, Some(0x0e), "the logical units have changed"),
    Code(0x3f, None, "the device's identity or firmware has changed"),
    Code(0x44, None, "an internal failure of the device"),
    Code(0x47, None, "a transmission error (checksum)"),
    Code(0x4b, None, "an error in the data phase"),
    Code(0x4e, None, "overlapped commands were attempted"),
    Code(0x53, None, "the medium could not be loaded, ejected or locked"),
    Code(0x5d, None, "the disk predicts its own failure"),
    Code(0x5e, None, "the disk is in a low-power state"),
];

const KEYS: [&str; 16] = [
    "no sense",
    "recovered error",
    "not ready",
    "medium error",
    "hardware error",
    "illegal request",
    "unit attention",
    "data protect",
    "blank check",
    "vendor specific",
    "copy aborted",
    "aborted command",
    "reserved",
    "volume overflow",
    "miscompare",
    "completed",
];

impl fmt::Display for Sense {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { key, asc, ascq, block, is_deferred } = *self;
        let found = CODES.iter().find(|code| code.0 == asc && code.1.is_none_or(|found| found == ascq));
        match found {
            Some(code) => write!(f, "{}", code.2)?,
            None => write!(f, "an error without a known description")?,
        }
        if let Some(block) = block {
            write!(f, " at block {block}")?;
        }
        if is_deferred {
            write!(f, ", of an earlier command that the disk had reported as done")?;
        }
        write!(f, " ({}, {key:x}/{asc:02x}/{ascq:02x})", KEYS[usize::from(key & 0x0f)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_formats_give_the_same_sense() {
        let fixed = [0xf0, 0, 3, 0, 0, 0, 5, 10, 0, 0, 0, 0, 0x11, 0, 0, 0, 0, 0];
        let descriptor = [0x72, 3, 0x11, 0, 0, 0, 0, 12, 0, 10, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 5];
        assert_eq!(Sense::parse(&fixed), Sense::parse(&descriptor));
        let sense = Sense::parse(&fixed).expect("sense data");
        assert_eq!(sense.to_string(), "an unrecovered read error at block 5 (medium error, 3/11/00)");
        assert!(sense.is(0x11, 0) && !sense.is(0x11, 1));
    }

    #[test]
    fn a_deferred_error_names_the_earlier_command() {
        let deferred = Sense::parse(&[0x71, 0, 4, 0, 0, 0, 0, 6, 0, 0, 0, 0, 3, 0]).expect("sense data");
        assert!(deferred.is_deferred);
        assert_eq!(
            deferred.to_string(),
            "a write fault in the device, of an earlier command that the disk had reported as done (hardware error, \
             4/03/00)"
        );
        assert!(Sense::parse(&[0x73, 4, 3, 0]).is_some_and(|sense| sense.is_deferred));
    }

    #[test]
    fn qualifiers_come_before_the_general_sentence_and_unknown_codes_are_numbers() {
        let said = |asc, ascq| Sense { key: 2, asc, ascq, block: None, is_deferred: false }.to_string();
        assert_eq!(said(4, 1), "the disk is becoming ready (not ready, 2/04/01)");
        assert_eq!(said(4, 0x55), "the disk is not ready (not ready, 2/04/55)");
        assert_eq!(said(0xee, 1), "an error without a known description (not ready, 2/ee/01)");
        for (at, code) in CODES.iter().enumerate() {
            let general = CODES[..at].iter().find(|earlier| earlier.0 == code.0 && earlier.1.is_none());
            assert!(general.is_none(), "{:02x}/{:02x?} is never reached", code.0, code.1);
        }
    }

    #[test]
    fn what_is_no_sense_data_is_none() {
        assert_eq!(Sense::parse(&[]), None);
        assert_eq!(Sense::parse(&[0x70, 0]), None);
        assert_eq!(Sense::parse(&[0x72]), None);
        assert_eq!(Sense::parse(&[0x7f, 0, 5, 0]), None);
        let short = Sense::parse(&[0x70, 0, 5]).expect("the key is there");
        assert_eq!((short.key, short.asc, short.block), (5, 0, None));
    }

    proptest! {
        #[test]
        fn any_bytes_end_in_a_sentence_or_nothing(bytes in proptest::collection::vec(any::<u8>(), 0..260)) {
            if let Some(sense) = Sense::parse(&bytes) {
                prop_assert!(!sense.to_string().is_empty());
            }
        }
    }
}
