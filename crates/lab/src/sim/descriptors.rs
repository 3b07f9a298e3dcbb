//! The descriptors of a simulated USB disk.
//!
//! A bridge offers the Bulk-Only Transport (BOT), USB Attached SCSI (UAS), or both as alternate
//! settings 0 and 1 of one interface, as real ones do.
//!
//! Source: USB 3.2 chapter 9; "USB Attached SCSI Protocol", pipe usage descriptors.

/// The transports that a disk offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offers {
    /// Bulk-only.
    Bot,
    /// UAS alone, as setting 0.
    Uas,
    /// Bulk-only as setting 0, UAS as setting 1.
    Both,
}

/// How fast the link is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speed {
    /// USB 2: 480 Mbit/s.
    High,
    /// USB 3: 5 Gbit/s, with streams.
    Super,
}

/// A USB device's own description.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsbIdentity {
    /// `idVendor`.
    pub vendor_id: u16,
    /// `idProduct`.
    pub product_id: u16,
    /// `bcdDevice`.
    pub device_version: u16,
    /// String 1.
    pub manufacturer: String,
    /// String 2.
    pub product: String,
    /// String 3; the disk's serial number if it is the same.
    pub serial: String,
    /// `bMaxPower` unconverted: in units of 2 mA at high speed, 8 mA at super speed.
    pub max_power: u8,
    /// The transports.
    pub offers: Offers,
    /// The link.
    pub speed: Speed,
    /// UAS offers 2^this streams at super speed.
    pub streams_log2: u8,
    /// False: the UAS pipes lack the pipe usage descriptors, which Linux refuses.
    pub has_pipe_usages: bool,
    /// Sent instead of the configuration from the fields above: for hostile devices.
    pub configuration: Option<Vec<u8>>,
}

/// A bulk endpoint's address.
pub(super) const BOT_IN: u8 = 0x81;
pub(super) const BOT_OUT: u8 = 0x02;
pub(super) const UAS_COMMAND: u8 = 0x04;
pub(super) const UAS_STATUS: u8 = 0x83;
pub(super) const UAS_IN: u8 = 0x81;
pub(super) const UAS_OUT: u8 = 0x02;

const BULK: u8 = 2;

impl UsbIdentity {
    /// The alternate setting that is UAS.
    pub(super) fn uas_setting(&self) -> Option<u8> {
        match self.offers {
            Offers::Bot => None,
            Offers::Uas => Some(0),
            Offers::Both => Some(1),
        }
    }

    /// How many alternate settings there are.
    pub(super) fn settings(&self) -> u8 {
        if self.offers == Offers::Both { 2 } else { 1 }
    }

    /// True if UAS uses streams.
    pub(super) fn has_streams(&self) -> bool {
        self.speed == Speed::Super
    }

    /// The endpoints of a setting.
    pub(super) fn endpoints(&self, is_uas: bool) -> &'static [u8] {
        if is_uas { &[UAS_COMMAND, UAS_STATUS, UAS_IN, UAS_OUT] } else { &[BOT_IN, BOT_OUT] }
    }

    /// Streams of an endpoint; zero: none.
    pub(super) fn streams(&self, is_uas: bool, endpoint: u8) -> u32 {
        let has = is_uas && self.has_streams() && endpoint != UAS_COMMAND;
        if has { 1 << self.streams_log2 } else { 0 }
    }

    /// The longest packet of a bulk endpoint, in bytes.
    pub(super) fn packet_bytes(&self) -> u16 {
        if self.speed == Speed::Super { 1024 } else { 512 }
    }

    /// The device descriptor.
    pub(super) fn device(&self) -> Vec<u8> {
        // Super speed writes the size of control packets as a power of two: 2^9.
        let (version, control_bytes) = if self.speed == Speed::Super { (0x0300u16, 9) } else { (0x0210, 64) };
        let mut bytes = vec![18, 1];
        bytes.extend(version.to_le_bytes());
        bytes.extend([0, 0, 0, control_bytes]);
        for number in [self.vendor_id, self.product_id, self.device_version] {
            bytes.extend(number.to_le_bytes());
        }
        bytes.extend([1, 2, 3, 1]);
        bytes
    }

    /// The configuration with its interface, in all settings.
    pub(super) fn configuration(&self) -> Vec<u8> {
        if let Some(bytes) = &self.configuration {
            return bytes.clone();
        }
        let mut body = Vec::new();
        if self.offers != Offers::Uas {
            // Mass storage, SCSI, bulk-only.
            body.extend([9, 4, 0, 0, 2, 8, 6, 0x50, 0]);
            body.extend(self.endpoint(BOT_IN, None));
            body.extend(self.endpoint(BOT_OUT, None));
        }
        if let Some(setting) = self.uas_setting() {
            body.extend([9, 4, 0, setting, 4, 8, 6, 0x62, 0]);
            for (usage, endpoint) in (1..).zip([UAS_COMMAND, UAS_STATUS, UAS_IN, UAS_OUT]) {
                body.extend(self.endpoint(endpoint, Some(usage)));
            }
        }
        let length = u16::try_from(9 + body.len()).expect("a short configuration").to_le_bytes();
        // One interface, configuration 1, self-powered.
        [&[9, 2, length[0], length[1], 1, 1, 0, 0xc0, self.max_power], &body[..]].concat()
    }

    /// An endpoint, its super speed companion, and what UAS uses it for.
    fn endpoint(&self, address: u8, usage: Option<u8>) -> Vec<u8> {
        let packet = self.packet_bytes().to_le_bytes();
        let mut bytes = vec![7, 5, address, BULK, packet[0], packet[1], 0];
        if self.speed == Speed::Super {
            let streams = if self.streams(usage.is_some(), address) > 0 { self.streams_log2 } else { 0 };
            bytes.extend([6, 0x30, 15, streams, 0, 0]);
        }
        if let Some(usage) = usage.filter(|_| self.has_pipe_usages) {
            bytes.extend([4, 0x24, usage, 0]);
        }
        bytes
    }

    /// A string descriptor; `None`: there is none of this number.
    pub(super) fn string(&self, number: u8) -> Option<Vec<u8>> {
        let text = match number {
            // US English.
            0 => return Some(vec![4, 3, 9, 4]),
            1 => &self.manufacturer,
            2 => &self.product,
            3 => &self.serial,
            _ => return None,
        };
        let units: Vec<u8> = text.encode_utf16().take(126).flat_map(u16::to_le_bytes).collect();
        Some([&[2 + units.len() as u8, 3], &units[..]].concat())
    }

    /// The binary object store: a USB 2 extension and the super speed capability.
    pub(super) fn object_store() -> Vec<u8> {
        vec![5, 15, 22, 0, 2, 7, 16, 2, 0, 0, 0, 0, 10, 16, 3, 0, 0x0e, 0, 3, 10, 0xff, 7]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes that a kernel had in `descriptors` of such a disk.
    #[test]
    fn a_disk_with_both_transports_has_the_configuration_that_linux_understands() {
        let identity = UsbIdentity::default();
        let expected = "09027900010100c000 0904000002080650 00 0705810200040 0 06300f000000 0705020200040 0 06300f000000 \
            0904000104080662 00 0705040200040 0 06300f000000 04240100 0705830200040 0 06300f050000 04240200 \
            0705810200040 0 06300f050000 04240300 0705020200040 0 06300f050000 04240400";
        let hex: String = identity.configuration().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, expected.replace(' ', ""));
        assert_eq!(identity.configuration().len(), 0x79);
    }

    #[test]
    fn lengths_are_true_for_every_kind_of_disk() {
        for offers in [Offers::Bot, Offers::Uas, Offers::Both] {
            for speed in [Speed::High, Speed::Super] {
                for has_pipe_usages in [false, true] {
                    let identity = UsbIdentity { offers, speed, has_pipe_usages, ..UsbIdentity::default() };
                    let bytes = identity.configuration();
                    assert_eq!(usize::from(u16::from_le_bytes([bytes[2], bytes[3]])), bytes.len());
                    let mut at = 0;
                    while at < bytes.len() {
                        at += usize::from(bytes[at]);
                    }
                    assert_eq!(at, bytes.len(), "{identity:?}");
                }
            }
        }
        assert_eq!(UsbIdentity::object_store()[2] as usize, UsbIdentity::object_store().len());
    }
}
