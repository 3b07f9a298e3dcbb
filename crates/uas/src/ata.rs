//! ATA commands through a bridge (SAT): the identity and the SMART data of the disk behind it.
//!
//! Bridges that hide these commands refuse them with ILLEGAL REQUEST. A command is sent once: its effect on a bridge that
//! does not answer is unknown.
//!
//! Limits: commands that read, by PIO; the raw value of an attribute is vendor specific, and is printed as a number of 48
//! bits (a temperature as its lowest byte).
//!
//! Source: T10 SAT-3 section 12.2 (ATA PASS-THROUGH(16)); ATA8-ACS 7.12 (IDENTIFY DEVICE), 7.52.6 (SMART READ DATA).

use crate::host::{Failure, Host, Transport};
use crate::request::{Data, Kind, Request};
use crate::scsi::Cdb;
use crate::sense::key;

/// Bytes of a sector of these commands.
const SECTOR_BYTES: usize = 512;
const PROTOCOL_PIO_IN: u8 = 4 << 1;
/// The transfer is from the device, in blocks, their number in the count field.
const FLAGS: u8 = 0x0e;

/// An attribute of the SMART data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attribute {
    /// Number of the attribute: 9 is power-on hours.
    pub id: u8,
    /// The normalized value, 1 to 253; it falls with wear.
    pub value: u8,
    /// The worst normalized value.
    pub worst: u8,
    /// The raw value, 48 bits; the vendor defines its unit.
    pub raw: u64,
}

impl Attribute {
    /// Its name, for those that most disks have.
    pub fn name(&self) -> &'static str {
        match self.id {
            1 => "raw read error rate",
            5 => "reallocated sectors",
            9 => "power-on hours",
            10 => "spin retries",
            12 => "power cycles",
            184 => "end-to-end errors",
            187 => "uncorrectable errors",
            188 => "command timeouts",
            190 => "airflow temperature",
            194 => "temperature",
            196 => "reallocation events",
            197 => "pending sectors",
            198 => "offline uncorrectable sectors",
            199 => "interface CRC errors",
            241 => "blocks written",
            242 => "blocks read",
            _ => "vendor specific",
        }
    }

    /// The raw value with its unit, as far as it is known.
    pub fn raw_in_words(&self) -> String {
        match self.id {
            190 | 194 => format!("{} °C", self.raw & 0xff),
            _ => self.raw.to_string(),
        }
    }
}

/// What a disk behind a bridge reports.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ata {
    /// The model.
    pub model: String,
    /// The serial number.
    pub serial: String,
    /// The firmware's version.
    pub firmware: String,
    /// Rotations per minute; 0: not reported, 1: it does not rotate.
    pub rotation_rate: u16,
    /// The attributes; empty if SMART is not supported.
    pub attributes: Vec<Attribute>,
}

fn pass_through(command: u8, feature: u8, lba: u32) -> Cdb {
    let mut cdb = [0; 16];
    (cdb[0], cdb[1], cdb[2]) = (0x85, PROTOCOL_PIO_IN, FLAGS);
    (cdb[4], cdb[6], cdb[14]) = (feature, 1, command);
    let [low, mid, high, _] = lba.to_le_bytes();
    (cdb[8], cdb[10], cdb[12]) = (low, mid, high);
    cdb
}

/// IDENTIFY DEVICE.
pub fn identify_device() -> Cdb {
    pass_through(0xec, 0, 0)
}

/// SMART READ DATA; 4Fh and C2h in the address are the key of the SMART commands.
pub fn smart_read_data() -> Cdb {
    pass_through(0xb0, 0xd0, 0x00c2_4f00)
}

/// Parses IDENTIFY DEVICE; `None`: too short, or not of an ATA disk.
pub fn parse_identity(bytes: &[u8]) -> Option<Ata> {
    let words: Vec<u16> =
        bytes.get(..SECTOR_BYTES)?.as_chunks::<2>().0.iter().map(|pair| u16::from_le_bytes(*pair)).collect();
    // Bit 15 of word 0 is set for ATAPI devices; all ones or all zeros are no answer.
    if words[0] & 0x8000 != 0 || words.iter().all(|word| *word == 0) {
        return None;
    }
    let text = |range: std::ops::Range<usize>| -> String {
        let bytes = words[range].iter().flat_map(|word| word.to_be_bytes());
        let printed = bytes.map(|byte| if (0x20..0x7f).contains(&byte) { char::from(byte) } else { ' ' });
        printed.collect::<String>().trim().to_owned()
    };
    Some(Ata {
        serial: text(10..20),
        firmware: text(23..27),
        model: text(27..47),
        rotation_rate: words[217],
        attributes: Vec::new(),
    })
}

/// Parses SMART READ DATA; `None`: too short, or its checksum is wrong.
pub fn parse_smart(bytes: &[u8]) -> Option<Vec<Attribute>> {
    let bytes = bytes.get(..SECTOR_BYTES)?;
    if bytes.iter().fold(0u8, |sum, byte| sum.wrapping_add(*byte)) != 0 {
        return None;
    }
    let entries = bytes[2..362].as_chunks::<12>().0.iter().filter(|entry| entry[0] != 0);
    let raw = |entry: &[u8; 12]| entry[5..11].iter().rev().fold(0, |raw, byte| raw << 8 | u64::from(*byte));
    Some(entries.map(|entry| Attribute { id: entry[0], value: entry[3], worst: entry[4], raw: raw(entry) }).collect())
}

fn ask<T: Transport>(host: &mut Host<T>, lun: u8, cdb: Cdb) -> Result<Option<Vec<u8>>, Failure> {
    let mut data = vec![0; SECTOR_BYTES];
    let request = Request { lun, cdb, data: Data::In(SECTOR_BYTES as u32), kind: Kind::Once };
    match host.execute(request, &mut data) {
        Ok(bytes) => {
            data.truncate(bytes as usize);
            Ok(Some(data))
        }
        Err(Failure::Sense(sense)) if sense.key == key::ILLEGAL_REQUEST => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Reads the identity and the attributes of the disk behind a bridge; `None`: the bridge does not pass ATA commands on, or
/// the disk is not an ATA disk.
///
/// # Errors
/// A command failed otherwise.
pub fn read<T: Transport>(host: &mut Host<T>, lun: u8) -> Result<Option<Ata>, Failure> {
    let Some(identity) = ask(host, lun, identify_device())?.and_then(|data| parse_identity(&data)) else {
        return Ok(None);
    };
    let attributes = ask(host, lun, smart_read_data())?.and_then(|data| parse_smart(&data)).unwrap_or_default();
    Ok(Some(Ata { attributes, ..identity }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn smart(entries: &[(u8, u64)]) -> Vec<u8> {
        let mut data = vec![1, 0];
        for (id, raw) in entries {
            data.extend([*id, 0x32, 0, 100, 99]);
            data.extend(&raw.to_le_bytes()[..6]);
            data.push(0);
        }
        data.resize(512, 0);
        data[511] = data.iter().fold(0u8, |sum, byte| sum.wrapping_sub(*byte));
        data
    }

    #[test]
    fn the_commands_have_the_bytes_that_smartctl_sends() {
        assert_eq!(identify_device(), [0x85, 8, 0x0e, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0xec, 0]);
        assert_eq!(smart_read_data(), [0x85, 8, 0x0e, 0, 0xd0, 0, 1, 0, 0, 0, 0x4f, 0, 0xc2, 0, 0xb0, 0]);
    }

    #[test]
    fn attributes_are_read_and_a_wrong_checksum_is_not_believed() {
        let mut data = smart(&[(9, 1234), (194, 0x0021_0010_0021), (242, 0xffff_ffff_ffff)]);
        let found = parse_smart(&data).expect("the checksum is right");
        assert_eq!(found[0], Attribute { id: 9, value: 100, worst: 99, raw: 1234 });
        assert_eq!((found[1].name(), found[1].raw_in_words().as_str()), ("temperature", "33 °C"));
        assert_eq!((found.len(), found[2].raw), (3, 0xffff_ffff_ffff));
        data[7] ^= 1;
        assert_eq!(parse_smart(&data), None);
        assert_eq!(parse_smart(&data[..511]), None);
    }

    #[test]
    fn names_are_read_with_their_bytes_swapped() {
        let mut data = vec![0; 512];
        data[0] = 0x40;
        data[20..40].copy_from_slice(b"ESIRLA 0             ".get(..20).expect("20 bytes"));
        data[434..436].copy_from_slice(&7200u16.to_le_bytes());
        let found = parse_identity(&data).expect("an identity");
        assert_eq!((found.serial.as_str(), found.rotation_rate), ("SERIAL0", 7200));
        data[1] = 0x80;
        assert_eq!(parse_identity(&data), None, "an ATAPI device");
        assert_eq!(parse_identity(&[0; 512]), None);
        assert_eq!(parse_identity(&[0; 100]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_end_in_facts_or_nothing(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let _ = parse_identity(&bytes);
            let _ = parse_smart(&bytes);
        }
    }
}
