//! Parses the descriptors of a USB device: the binary files `descriptors` and `bos_descriptors` of sysfs.
//!
//! The other files of sysfs show only the alternate setting in use; these contain all of them. The kernel passes the
//! device's bytes on unchecked, so every length is checked here: a descriptor that is shorter than its header, longer
//! than the remaining bytes, or of length 0 is an error with its offset.
//!
//! Cannot see: whether the device behaves as its descriptors claim.
//!
//! Source: USB 2.0 chapter 9.6, USB 3.2 chapter 9.6 (endpoint companion, BOS), USB Attached SCSI
//! 6.1 (pipe usage). How the kernel reads them: Linux `drivers/usb/core/config.c`,
//! `drivers/usb/storage/uas-detect.h`.

use trueio_model::UsbAlternate;

const DEVICE: u8 = 1;
const CONFIGURATION: u8 = 2;
const INTERFACE: u8 = 4;
const ENDPOINT: u8 = 5;
const BOS: u8 = 15;
const DEVICE_CAPABILITY: u8 = 16;
const PIPE_USAGE: u8 = 0x24;
const ENDPOINT_COMPANION: u8 = 0x30;

/// More streams than xHCI has; the kernel also treats greater values as 16.
const STREAMS_LOG2_MAX: u8 = 16;

/// Why descriptors cannot be parsed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DescriptorError {
    /// The bytes end inside a descriptor.
    #[error("the descriptor at byte {at} is {length} bytes long and only {left} are left")]
    Truncated {
        /// Offset of the descriptor, in bytes.
        at: usize,
        /// The length in its header.
        length: usize,
        /// Bytes from the descriptor's offset to the end.
        left: usize,
    },
    /// The descriptor is shorter than its type requires.
    #[error("the descriptor at byte {at} has a length of {length}, too short for its type {kind:#04x}")]
    Short {
        /// Offset of the descriptor, in bytes.
        at: usize,
        /// The length it gives.
        length: usize,
        /// `bDescriptorType`, USB 3.2 table 9-6.
        kind: u8,
    },
    /// A descriptor of another type was expected.
    #[error("a {expected} descriptor was expected at byte {at}, but type {found:#04x} was found")]
    Unexpected {
        /// Offset of the descriptor, in bytes.
        at: usize,
        /// The expected type.
        expected: &'static str,
        /// The `bDescriptorType` that was found.
        found: u8,
    },
}

/// One interface's alternate setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Setting {
    /// Number of the interface.
    pub interface: u8,
    /// Interface class.
    pub class: u8,
    /// The rest.
    pub alternate: UsbAlternate,
    /// The addresses of the endpoints that UAS uses: command, status, data-in, data-out; 0: none. Where several claim a
    /// usage, the last one, as in the kernel.
    pub pipe_addresses: [u8; 4],
}

/// One configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Configuration {
    /// The value that selects it.
    pub value: u8,
    /// `bMaxPower` unconverted: in units of 2 mA, at SuperSpeed of 8 mA.
    pub max_power: u8,
    /// Its settings, in the device's order.
    pub settings: Vec<Setting>,
}

/// A device's descriptors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Descriptors {
    /// The configurations, in the device's order.
    pub configurations: Vec<Configuration>,
}

impl Descriptors {
    /// Returns the alternate settings of a mass-storage interface in the configuration with this value.
    pub fn storage_settings(&self, configuration: Option<u8>, interface: u8) -> Vec<UsbAlternate> {
        self.configuration(configuration)
            .into_iter()
            .flat_map(|found| &found.settings)
            .filter(|setting| setting.interface == interface && setting.class == 8)
            .map(|setting| setting.alternate.clone())
            .collect()
    }

    /// Returns the configuration with this value; the first if the value is unknown.
    pub fn configuration(&self, value: Option<u8>) -> Option<&Configuration> {
        match value {
            Some(value) => self.configurations.iter().find(|found| found.value == value),
            None => self.configurations.first(),
        }
    }
}

/// Iterates over descriptors and checks each length.
struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
    /// Offset of `bytes` in the file, for messages.
    base: usize,
}

struct Descriptor<'a> {
    kind: u8,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Walk<'a> {
    fn new(bytes: &'a [u8], base: usize) -> Self {
        Self { bytes, at: 0, base }
    }

    /// Returns the next descriptor; `None` at the end.
    fn next(&mut self) -> Result<Option<Descriptor<'a>>, DescriptorError> {
        let rest = &self.bytes[self.at..];
        let at = self.base + self.at;
        let (length, kind) = match rest {
            [] => return Ok(None),
            [length] => return Err(DescriptorError::Truncated { at, length: usize::from(*length).max(2), left: 1 }),
            [length, kind, ..] => (usize::from(*length), *kind),
        };
        if length < least(kind) {
            return Err(DescriptorError::Short { at, length, kind });
        }
        let Some(bytes) = rest.get(..length) else {
            return Err(DescriptorError::Truncated { at, length, left: rest.len() });
        };
        self.at += length;
        Ok(Some(Descriptor { kind, bytes, at }))
    }
}

/// Returns the minimum length of a descriptor type: the bytes that this parser reads.
fn least(kind: u8) -> usize {
    match kind {
        DEVICE => 18,
        CONFIGURATION | INTERFACE => 9,
        ENDPOINT => 7,
        ENDPOINT_COMPANION => 6,
        BOS => 5,
        DEVICE_CAPABILITY | PIPE_USAGE => 3,
        _ => 2,
    }
}

/// Parses the file `descriptors` of sysfs: the device's descriptor, then each configuration with its interfaces and
/// endpoints.
///
/// # Errors
/// The first invalid length. Descriptors before it are not returned either: a device with one wrong length may have
/// other wrong values.
pub fn parse_descriptors(bytes: &[u8]) -> Result<Descriptors, DescriptorError> {
    let mut walk = Walk::new(bytes, 0);
    match walk.next()? {
        Some(device) if device.kind == DEVICE => {}
        Some(other) => {
            return Err(DescriptorError::Unexpected { at: other.at, expected: "device", found: other.kind });
        }
        None => return Err(DescriptorError::Truncated { at: 0, length: least(DEVICE), left: 0 }),
    }
    let mut configurations = Vec::new();
    while let Some(head) = walk.next()? {
        if head.kind != CONFIGURATION {
            return Err(DescriptorError::Unexpected { at: head.at, expected: "configuration", found: head.kind });
        }
        let total = usize::from(u16::from_le_bytes([head.bytes[2], head.bytes[3]]));
        if total < head.bytes.len() {
            return Err(DescriptorError::Short { at: head.at, length: total, kind: CONFIGURATION });
        }
        let Some(inner) = bytes.get(head.at + head.bytes.len()..head.at + total) else {
            return Err(DescriptorError::Truncated { at: head.at, length: total, left: bytes.len() - head.at });
        };
        let settings = settings(inner, head.at + head.bytes.len())?;
        configurations.push(Configuration { value: head.bytes[5], max_power: head.bytes[8], settings });
        walk.at = head.at + total;
    }
    Ok(Descriptors { configurations })
}

fn settings(bytes: &[u8], base: usize) -> Result<Vec<Setting>, DescriptorError> {
    let mut walk = Walk::new(bytes, base);
    let mut settings: Vec<Setting> = Vec::new();
    let mut endpoint = Endpoint::default();
    while let Some(found) = walk.next()? {
        match found.kind {
            INTERFACE => {
                endpoint = Endpoint::default();
                let b = found.bytes;
                let alternate =
                    UsbAlternate { number: b[3], subclass: b[6], protocol: b[7], pipes: Vec::new(), stream_count: 0 };
                settings.push(Setting { interface: b[2], class: b[5], alternate, pipe_addresses: [0; 4] });
            }
            ENDPOINT => endpoint = Endpoint { address: found.bytes[2], is_open: true, ..Endpoint::default() },
            ENDPOINT_COMPANION if endpoint.is_open => endpoint.streams_log2 = found.bytes[3] & 0x1f,
            // The kernel reads only the first pipe usage of an endpoint, and uses the last endpoint of each usage.
            PIPE_USAGE if endpoint.is_open && !endpoint.has_usage => {
                endpoint.has_usage = true;
                let Some(setting) = settings.last_mut() else { continue };
                let pipe = found.bytes[2];
                if (1..=4).contains(&pipe) {
                    setting.pipe_addresses[usize::from(pipe) - 1] = endpoint.address;
                    if let Err(place) = setting.alternate.pipes.binary_search(&pipe) {
                        setting.alternate.pipes.insert(place, pipe);
                    }
                    if pipe == 2 {
                        let log2 = endpoint.streams_log2.min(STREAMS_LOG2_MAX);
                        setting.alternate.stream_count = if log2 == 0 { 0 } else { 1 << log2 };
                    }
                }
            }
            _ => {}
        }
    }
    Ok(settings)
}

#[derive(Default)]
struct Endpoint {
    address: u8,
    is_open: bool,
    has_usage: bool,
    streams_log2: u8,
}

/// Parses `bos_descriptors`; returns whether the device supports SuperSpeed.
///
/// # Errors
/// As [`parse_descriptors`].
///
/// # Source
/// USB 3.2, 9.6.2: capability 3 is SuperSpeed USB, 0x0a SuperSpeedPlus.
pub fn parse_can_superspeed(bytes: &[u8]) -> Result<bool, DescriptorError> {
    let mut walk = Walk::new(bytes, 0);
    match walk.next()? {
        Some(head) if head.kind == BOS => {}
        Some(other) => {
            return Err(DescriptorError::Unexpected { at: other.at, expected: "BOS", found: other.kind });
        }
        None => return Err(DescriptorError::Truncated { at: 0, length: least(BOS), left: 0 }),
    }
    let mut can = false;
    while let Some(found) = walk.next()? {
        can |= found.kind == DEVICE_CAPABILITY && matches!(found.bytes[2], 3 | 0x0a);
    }
    Ok(can)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const DEVICE_BYTES: [u8; 18] = [18, 1, 0, 3, 0, 0, 0, 9, 0x09, 0x12, 1, 0, 0, 1, 1, 2, 3, 1];

    /// A disk that offers both transports, at SuperSpeed with 32 streams: the reference of the simulated disk.
    fn dual() -> Vec<u8> {
        let mut inner = vec![9, 4, 0, 0, 2, 8, 6, 0x50, 0];
        for address in [0x81, 0x02] {
            inner.extend([7, 5, address, 2, 0, 4, 0, 6, 0x30, 15, 0, 0, 0]);
        }
        inner.extend([9, 4, 0, 1, 4, 8, 6, 0x62, 0]);
        for (address, pipe, streams) in [(4, 1, 0), (0x83, 2, 5), (0x81, 3, 5), (2, 4, 5)] {
            inner.extend([7, 5, address, 2, 0, 4, 0, 6, 0x30, 15, streams, 0, 0, 4, 0x24, pipe, 0]);
        }
        configured(&inner)
    }

    fn configured(inner: &[u8]) -> Vec<u8> {
        let total = u16::try_from(inner.len() + 9).expect("a small configuration").to_le_bytes();
        let mut bytes = DEVICE_BYTES.to_vec();
        bytes.extend([9, 2, total[0], total[1], 1, 1, 0, 0xc0, 18]);
        bytes.extend(inner);
        bytes
    }

    #[test]
    fn both_alternate_settings_are_seen_with_their_pipes_and_streams() {
        let found = parse_descriptors(&dual()).expect("well formed");
        let settings = found.storage_settings(Some(1), 0);
        assert_eq!(settings.len(), 2);
        assert!(settings[0].is_bot() && !settings[0].is_uas());
        assert!(settings[1].is_uas());
        assert_eq!((settings[1].number, settings[1].stream_count), (1, 32));
        let addresses: Vec<[u8; 4]> = found.configurations[0].settings.iter().map(|s| s.pipe_addresses).collect();
        assert_eq!(addresses, [[0; 4], [4, 0x83, 0x81, 2]]);
        assert_eq!(found.configuration(Some(1)).map(|c| c.max_power), Some(18));
        assert_eq!(found.storage_settings(Some(2), 0), [], "no such configuration");
        assert_eq!(found.storage_settings(Some(1), 1), [], "no such interface");
    }

    #[test]
    fn uas_without_all_four_pipes_is_no_uas() {
        let mut inner = vec![9, 4, 0, 0, 4, 8, 6, 0x62, 0];
        for pipe in [1, 2, 3, 3] {
            inner.extend([7, 5, 0x81, 2, 0, 2, 0, 4, 0x24, pipe, 0]);
        }
        let found = parse_descriptors(&configured(&inner)).expect("well formed");
        let setting = &found.storage_settings(None, 0)[0];
        assert_eq!(setting.pipes, [1, 2, 3]);
        assert!(setting.claims_uas() && !setting.is_uas());
    }

    #[test]
    fn only_the_first_pipe_usage_of_an_endpoint_counts() {
        let mut inner = vec![9, 4, 0, 0, 1, 8, 6, 0x62, 0, 7, 5, 0x81, 2, 0, 2, 0];
        for pipe in 1..=4 {
            inner.extend([4, 0x24, pipe, 0]);
        }
        let found = parse_descriptors(&configured(&inner)).expect("well formed");
        assert_eq!(found.storage_settings(None, 0)[0].pipes, [1]);
    }

    #[test]
    fn a_length_that_does_not_move_on_is_refused() {
        let mut inner = vec![9, 4, 0, 0, 0, 8, 6, 0x50, 0];
        inner.extend([0, 0x24, 1, 0]);
        let error = parse_descriptors(&configured(&inner)).expect_err("it would loop");
        assert_eq!(error, DescriptorError::Short { at: 36, length: 0, kind: 0x24 });
        assert_eq!(
            parse_descriptors(&configured(&[1, 7])),
            Err(DescriptorError::Short { at: 27, length: 1, kind: 7 }),
            "not even its header"
        );
    }

    #[test]
    fn a_length_beyond_the_end_is_refused_wherever_it_stands() {
        let whole = dual();
        for length in 0..whole.len() {
            let result = parse_descriptors(&whole[..length]);
            // The device's own descriptor alone is well formed and offers nothing.
            assert_eq!(result.is_ok(), length == 18, "{length}: {result:?}");
        }
        let mut absurd = whole.clone();
        (absurd[20], absurd[21]) = (0xff, 0xff);
        let left = whole.len() - 18;
        assert_eq!(parse_descriptors(&absurd), Err(DescriptorError::Truncated { at: 18, length: 0xffff, left }));
        (absurd[20], absurd[21]) = (8, 0);
        assert_eq!(parse_descriptors(&absurd), Err(DescriptorError::Short { at: 18, length: 8, kind: 2 }));
    }

    #[test]
    fn superspeed_is_read_from_the_capabilities() {
        let usb2 = [5, 15, 12, 0, 1, 7, 16, 2, 2, 0, 0, 0];
        let usb3 = [5, 15, 22, 0, 2, 7, 16, 2, 0, 0, 0, 0, 10, 16, 3, 0, 14, 0, 3, 10, 255, 7];
        assert_eq!(parse_can_superspeed(&usb2), Ok(false));
        assert_eq!(parse_can_superspeed(&usb3), Ok(true));
        assert!(parse_can_superspeed(&usb3[..usb3.len() - 1]).is_err());
        assert!(parse_can_superspeed(&[]).is_err());
        assert!(parse_can_superspeed(&dual()).is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_end_in_settings_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let _ = parse_descriptors(&bytes);
            let _ = parse_can_superspeed(&bytes);
        }

        #[test]
        fn any_change_of_a_real_device_ends_in_settings_or_an_error(
            changes in proptest::collection::vec((0usize..139, any::<u8>()), 1..6),
            length in 0usize..140,
        ) {
            let mut bytes = dual();
            for (at, value) in changes {
                let last = bytes.len() - 1;
                bytes[at.min(last)] = value;
            }
            bytes.truncate(length);
            if let Ok(found) = parse_descriptors(&bytes) {
                // The result never exceeds what the bytes can contain.
                let count: usize = found.configurations.iter().map(|c| c.settings.len()).sum();
                prop_assert!(count <= bytes.len() / 9);
            }
        }
    }
}
