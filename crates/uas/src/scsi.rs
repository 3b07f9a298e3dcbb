//! Commands of a disk, and the data that they return.
//!
//! Reads and writes use the shortest command that can express them: 10 bytes below 2^32 blocks (2 TiB with blocks of
//! 512 bytes) and 65,536 blocks a command, 12 bytes for more blocks a command, 16 bytes beyond.
//!
//! Limits: no protection information, no bidirectional commands.
//!
//! Source: T10 SPC-4 (INQUIRY, MODE SENSE, REPORT LUNS), SBC-3 (the rest), SAT-3 (ATA PASS-THROUGH).

/// A command descriptor block; shorter commands are padded with zeros.
pub type Cdb = [u8; 16];

/// Longest data of an answer that [`crate::host`] asks for, in bytes.
pub const ANSWER_BYTES: usize = 512;

fn cdb<const N: usize>(bytes: [u8; N]) -> Cdb {
    let mut whole = [0; 16];
    whole[..N].copy_from_slice(&bytes);
    whole
}

/// Returns true if a transfer needs a command of 16 bytes.
fn is_far(block: u64, count: u32) -> bool {
    block + u64::from(count) > 1 << 32
}

/// A read, write or other command on a range: operation codes of 10, 12 and 16 bytes. Without one of 12 bytes (0), a long
/// range takes that of 16.
fn ranged([ten, twelve, sixteen]: [u8; 3], flags: u8, block: u64, count: u32) -> Cdb {
    let mut whole = [0; 16];
    whole[1] = flags;
    if is_far(block, count) || (count > 0xffff && twelve == 0) {
        whole[0] = sixteen;
        whole[2..10].copy_from_slice(&block.to_be_bytes());
        whole[10..14].copy_from_slice(&count.to_be_bytes());
        return whole;
    }
    whole[2..6].copy_from_slice(&(block as u32).to_be_bytes());
    if count > 0xffff {
        whole[0] = twelve;
        whole[6..10].copy_from_slice(&count.to_be_bytes());
    } else {
        whole[0] = ten;
        whole[7..9].copy_from_slice(&(count as u16).to_be_bytes());
    }
    whole
}

/// READ of `count` blocks.
pub fn read(block: u64, count: u32) -> Cdb {
    ranged([0x28, 0xa8, 0x88], 0, block, count)
}

/// Forced unit access, in the second byte of a WRITE.
pub(crate) const FUA: u8 = 8;

/// WRITE of `count` blocks. `is_fua`: the data is on the medium when the command ends.
pub fn write(block: u64, count: u32, is_fua: bool) -> Cdb {
    ranged([0x2a, 0xaa, 0x8a], if is_fua { FUA } else { 0 }, block, count)
}

/// SYNCHRONIZE CACHE of the whole disk.
pub fn synchronize_cache() -> Cdb {
    cdb([0x35])
}

/// WRITE SAME of `count` blocks; `is_unmap`: the blocks are deallocated, if the disk can.
pub fn write_same(block: u64, count: u32, is_unmap: bool) -> Cdb {
    let mut whole = cdb([0x93, if is_unmap { 8 } else { 0 }]);
    whole[2..10].copy_from_slice(&block.to_be_bytes());
    whole[10..14].copy_from_slice(&count.to_be_bytes());
    whole
}

/// Bytes of the parameter list of an UNMAP with one range.
pub const UNMAP_BYTES: usize = 24;

/// UNMAP with one range, and its parameter list.
pub fn unmap(block: u64, count: u32) -> (Cdb, [u8; UNMAP_BYTES]) {
    let mut list = [0; UNMAP_BYTES];
    list[..2].copy_from_slice(&22u16.to_be_bytes());
    list[2..4].copy_from_slice(&16u16.to_be_bytes());
    list[8..16].copy_from_slice(&block.to_be_bytes());
    list[16..20].copy_from_slice(&count.to_be_bytes());
    (cdb([0x42, 0, 0, 0, 0, 0, 0, 0, UNMAP_BYTES as u8, 0]), list)
}

/// TEST UNIT READY.
pub fn test_unit_ready() -> Cdb {
    cdb([0x00])
}

/// START STOP UNIT: starts the disk.
pub fn start_unit() -> Cdb {
    cdb([0x1b, 0, 0, 0, 1])
}

/// INQUIRY: the standard data, or a page of vital product data.
pub fn inquiry(page: Option<u8>, length: u16) -> Cdb {
    let [high, low] = length.to_be_bytes();
    cdb([0x12, u8::from(page.is_some()), page.unwrap_or(0), high, low, 0])
}

/// MODE SENSE(6) of the caching page, without block descriptors.
pub fn mode_sense_caching() -> Cdb {
    cdb([0x1a, 8, 8, 0, 192, 0])
}

/// READ CAPACITY(10).
pub fn read_capacity_10() -> Cdb {
    cdb([0x25])
}

/// READ CAPACITY(16).
pub fn read_capacity_16() -> Cdb {
    cdb([0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0])
}

/// REPORT LUNS.
pub fn report_luns() -> Cdb {
    cdb([0xa0, 0, 0, 0, 0, 0, 0, 0, (ANSWER_BYTES >> 8) as u8, (ANSWER_BYTES & 0xff) as u8, 0, 0])
}

/// The standard INQUIRY data.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inquiry {
    /// The peripheral device type: 0 is a disk.
    pub device_type: u8,
    /// True if the medium can be removed.
    pub is_removable: bool,
    /// The vendor, without trailing spaces.
    pub vendor: String,
    /// The product, without trailing spaces.
    pub product: String,
    /// The revision, without trailing spaces.
    pub revision: String,
}

fn text(bytes: &[u8]) -> String {
    let is_printed = |byte: &u8| (0x20..0x7f).contains(byte);
    bytes
        .iter()
        .map(|byte| if is_printed(byte) { char::from(*byte) } else { ' ' })
        .collect::<String>()
        .trim()
        .to_owned()
}

/// Parses standard INQUIRY data; `None`: fewer than 36 bytes.
pub fn parse_inquiry(bytes: &[u8]) -> Option<Inquiry> {
    let bytes = bytes.get(..36)?;
    Some(Inquiry {
        device_type: bytes[0] & 0x1f,
        is_removable: bytes[1] & 0x80 != 0,
        vendor: text(&bytes[8..16]),
        product: text(&bytes[16..32]),
        revision: text(&bytes[32..36]),
    })
}

/// Returns the body of a page of vital product data; `None`: another page, or no page at all. A body that is shorter than
/// its length field is returned as far as it was sent.
pub fn page_body(bytes: &[u8], page: u8) -> Option<&[u8]> {
    let [_, found, high, low, body @ ..] = bytes else { return None };
    let length = usize::from(u16::from_be_bytes([*high, *low]));
    (*found == page).then(|| &body[..body.len().min(length)])
}

/// Returns the serial number in the body of page 0x80.
pub fn parse_serial(body: &[u8]) -> String {
    text(body)
}

/// The size of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capacity {
    /// Number of blocks.
    pub block_count: u64,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// Bytes of a physical sector: `block_bytes` unless the disk reports more.
    pub physical_bytes: u32,
    /// True if the disk can deallocate blocks (LBPME).
    pub can_unmap: bool,
    /// True if a deallocated block reads as zeros (LBPRZ).
    pub unmapped_is_zero: bool,
}

impl Capacity {
    /// The size, in bytes.
    pub fn size_bytes(&self) -> u64 {
        self.block_count.saturating_mul(u64::from(self.block_bytes))
    }

    fn checked(self) -> Option<Self> {
        let is_size = self.block_bytes.is_power_of_two() && (256..=65_536).contains(&self.block_bytes);
        (is_size && self.block_count > 0).then_some(self)
    }
}

/// Parses the answer to READ CAPACITY(10). `None`: too short, or a size that no disk has. 2^32 blocks mean that the disk is
/// larger: READ CAPACITY(16) returns its size.
pub fn parse_capacity_10(bytes: &[u8]) -> Option<Capacity> {
    let last = u32::from_be_bytes(bytes.get(..4)?.try_into().ok()?);
    let block_bytes = u32::from_be_bytes(bytes.get(4..8)?.try_into().ok()?);
    let block_count = u64::from(last) + 1;
    let capacity =
        Capacity { block_count, block_bytes, physical_bytes: block_bytes, can_unmap: false, unmapped_is_zero: false };
    capacity.checked()
}

/// Parses the answer to READ CAPACITY(16). `None`: too short, or a size that no disk has.
pub fn parse_capacity_16(bytes: &[u8]) -> Option<Capacity> {
    let last = u64::from_be_bytes(bytes.get(..8)?.try_into().ok()?);
    let block_bytes = u32::from_be_bytes(bytes.get(8..12)?.try_into().ok()?);
    let exponent = u32::from(bytes.get(13).copied().unwrap_or(0) & 0x0f);
    let provisioning = bytes.get(14).copied().unwrap_or(0);
    let capacity = Capacity {
        block_count: last.checked_add(1)?,
        block_bytes,
        physical_bytes: block_bytes.checked_shl(exponent).filter(|bytes| *bytes <= 1 << 20).unwrap_or(block_bytes),
        can_unmap: provisioning & 0x80 != 0,
        unmapped_is_zero: provisioning & 0x40 != 0,
    };
    capacity.checked()
}

/// What the caching mode page and the header before it report.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Caching {
    /// The disk has a volatile write cache that is enabled.
    pub has_write_cache: bool,
    /// The disk supports forced unit access.
    pub has_fua: bool,
    /// The disk is write-protected.
    pub is_write_protected: bool,
}

/// Parses the answer to [`mode_sense_caching`]; `None`: the page is not in it.
pub fn parse_caching(bytes: &[u8]) -> Option<Caching> {
    let [length, _, parameter, descriptors, ..] = *bytes else { return None };
    let end = bytes.len().min(usize::from(length) + 1);
    let page = bytes.get(4 + usize::from(descriptors)..end)?;
    let [code, _, flags, ..] = *page else { return None };
    (code & 0x3f == 8).then_some(Caching {
        has_write_cache: flags & 4 != 0,
        has_fua: parameter & 0x10 != 0,
        is_write_protected: parameter & 0x80 != 0,
    })
}

/// The limits of page 0xb0, in blocks; 0: not reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct BlockLimits {
    /// Longest transfer.
    pub transfer_blocks_max: u32,
    /// Longest range of an UNMAP.
    pub unmap_blocks_max: u32,
    /// Most ranges of an UNMAP.
    pub unmap_ranges_max: u32,
    /// Longest WRITE SAME.
    pub write_same_blocks_max: u64,
}

/// Parses the body of page 0xb0. A field that was not sent is 0.
pub fn parse_block_limits(body: &[u8]) -> BlockLimits {
    let number = |range: std::ops::Range<usize>| {
        body.get(range).map_or(0, |bytes| bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    };
    BlockLimits {
        transfer_blocks_max: number(4..8) as u32,
        unmap_blocks_max: number(16..20) as u32,
        unmap_ranges_max: number(20..24) as u32,
        write_same_blocks_max: number(32..40),
    }
}

/// The deallocating commands that page 0xb2 reports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Provisioning {
    /// UNMAP (LBPU).
    pub has_unmap: bool,
    /// WRITE SAME(16) with the UNMAP bit (LBPWS).
    pub has_write_same_unmap: bool,
}

/// Parses the body of page 0xb2.
pub fn parse_provisioning(body: &[u8]) -> Provisioning {
    let flags = body.get(1).copied().unwrap_or(0);
    Provisioning { has_unmap: flags & 0x80 != 0, has_write_same_unmap: flags & 0x40 != 0 }
}

/// Parses the answer to REPORT LUNS: the numbers below 256 in peripheral device addressing, in the device's order.
pub fn parse_luns(bytes: &[u8]) -> Vec<u8> {
    let Some(head) = bytes.get(..4) else { return Vec::new() };
    let length = u32::from_be_bytes([head[0], head[1], head[2], head[3]]) as usize;
    let list = bytes.get(8..).unwrap_or_default();
    let list = &list[..list.len().min(length)];
    let is_plain = |lun: &&[u8]| lun[0] == 0 && lun[2..].iter().all(|byte| *byte == 0);
    list.as_chunks::<8>().0.iter().map(|lun| &lun[..]).filter(is_plain).map(|lun| lun[1]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_transfer_uses_the_shortest_command_that_can_express_it() {
        let near = read(9, 8);
        assert_eq!(near[..10], [0x28, 0, 0, 0, 0, 9, 0, 0, 8, 0]);
        assert_eq!(read(0xffff_fff0, 0x10)[0], 0x28, "the last blocks below 2^32");
        assert_eq!(read(0xffff_fff0, 0x11)[0], 0x88, "one block beyond");
        let long = write(1, 0x1_0000, true);
        assert_eq!(long[..12], [0xaa, 8, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0]);
        let far = write(0x1_0000_0000, 1, false);
        assert_eq!(far[..14], [0x8a, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert_eq!(write_same(5, 7, true)[..14], [0x93, 8, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 7]);
        let (command, list) = unmap(3, 4);
        assert_eq!((command[0], command[8]), (0x42, 24));
        assert_eq!(list, [0, 22, 0, 16, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 0]);
    }

    #[test]
    fn capacities_beyond_2_tib_and_both_kinds_of_4_kib_sectors_are_read() {
        let small = parse_capacity_10(&[0, 0, 3, 231, 0, 0, 2, 0]).expect("a capacity");
        assert_eq!((small.block_count, small.size_bytes()), (1000, 512_000));
        assert_eq!(parse_capacity_10(&[0xff, 0xff, 0xff, 0xff, 0, 0, 2, 0]).map(|c| c.block_count), Some(1 << 32));
        let mut bytes = vec![0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 2, 0, 0, 3, 0xc0, 0];
        bytes.resize(32, 0);
        let large = parse_capacity_16(&bytes).expect("a capacity");
        assert_eq!((large.block_count, large.block_bytes, large.physical_bytes), ((8 << 32) + 1, 512, 4096));
        assert!(large.can_unmap && large.unmapped_is_zero);
        bytes[8..12].copy_from_slice(&4096u32.to_be_bytes());
        bytes[13] = 0;
        assert_eq!(parse_capacity_16(&bytes).map(|c| (c.block_bytes, c.physical_bytes)), Some((4096, 4096)));
    }

    #[test]
    fn sizes_that_no_disk_has_are_refused() {
        assert_eq!(parse_capacity_10(&[0, 0, 0, 1, 0, 0, 0, 0]), None, "no block size");
        assert_eq!(parse_capacity_10(&[0, 0, 0, 1, 0, 0, 2, 8]), None, "520 bytes");
        assert_eq!(parse_capacity_10(&[0, 0, 0, 1]), None);
        assert_eq!(parse_capacity_16(&[0xff; 12]), None, "2^64 blocks");
    }

    #[test]
    fn the_cache_is_read_behind_block_descriptors_too() {
        let plain = [23, 0, 0x10, 0, 8, 18, 4];
        let expected = Caching { has_write_cache: true, has_fua: true, is_write_protected: false };
        assert_eq!(parse_caching(&plain), Some(expected));
        let mut described = vec![31, 0, 0x80, 8];
        described.extend([0; 8]);
        described.extend([0x88, 18, 0]);
        let expected = Caching { has_write_cache: false, has_fua: false, is_write_protected: true };
        assert_eq!(parse_caching(&described), Some(expected));
        assert_eq!(parse_caching(&[23, 0, 0, 0, 7, 10, 4]), None, "another page");
        assert_eq!(parse_caching(&[5, 0, 0, 200, 8, 18, 4]), None, "descriptors beyond the end");
        assert_eq!(parse_caching(&[3, 0, 0]), None);
    }

    #[test]
    fn pages_are_read_as_far_as_they_were_sent() {
        let page = [0, 0x80, 0, 4, b'A', b'B', b' ', 0];
        assert_eq!(page_body(&page, 0x80).map(parse_serial).as_deref(), Some("AB"));
        assert_eq!(page_body(&page, 0x83), None);
        assert_eq!(page_body(&page[..5], 0x80), Some(&b"A"[..]));
        let mut limits = vec![0; 60];
        limits[4..8].copy_from_slice(&2048u32.to_be_bytes());
        limits[16..20].copy_from_slice(&4096u32.to_be_bytes());
        limits[20..24].copy_from_slice(&1u32.to_be_bytes());
        limits[32..40].copy_from_slice(&65_535u64.to_be_bytes());
        let all = BlockLimits {
            transfer_blocks_max: 2048,
            unmap_blocks_max: 4096,
            unmap_ranges_max: 1,
            write_same_blocks_max: 65_535,
        };
        assert_eq!(parse_block_limits(&limits), all);
        assert_eq!(
            parse_block_limits(&limits[..12]),
            BlockLimits { transfer_blocks_max: 2048, ..BlockLimits::default() }
        );
        assert_eq!(parse_provisioning(&[0, 0xc0]), Provisioning { has_unmap: true, has_write_same_unmap: true });
        assert_eq!(parse_provisioning(&[]), Provisioning::default());
    }

    #[test]
    fn identities_and_logical_units_are_read() {
        let mut inquiry = vec![0, 0x80, 6, 2, 31, 0, 0, 0];
        inquiry.extend(b"QEMU    QEMU HARDDISK   2.5+");
        let found = parse_inquiry(&inquiry).expect("36 bytes");
        assert_eq!(
            (found.vendor.as_str(), found.product.as_str(), found.revision.as_str()),
            ("QEMU", "QEMU HARDDISK", "2.5+")
        );
        assert!(found.is_removable);
        assert_eq!(parse_inquiry(&inquiry[..35]), None);
        let mut luns = vec![0, 0, 0, 24, 0, 0, 0, 0];
        for lun in [0u8, 2] {
            luns.extend([0, lun, 0, 0, 0, 0, 0, 0]);
        }
        luns.extend([0xc1, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(parse_luns(&luns), [0, 2], "a well-known logical unit is none");
        assert_eq!(parse_luns(&luns[..20]), [0]);
        assert_eq!(parse_luns(&[]), []);
    }

    proptest! {
        #[test]
        fn any_answer_ends_in_facts_or_nothing(bytes in proptest::collection::vec(any::<u8>(), 0..80), page: u8) {
            let _ = parse_inquiry(&bytes);
            let _ = parse_caching(&bytes);
            let _ = parse_luns(&bytes);
            if let Some(capacity) = parse_capacity_16(&bytes).or_else(|| parse_capacity_10(&bytes)) {
                prop_assert!(capacity.block_count > 0 && capacity.physical_bytes >= capacity.block_bytes);
            }
            if let Some(body) = page_body(&bytes, page) {
                let _ = (parse_block_limits(body), parse_provisioning(body), parse_serial(body));
            }
        }

        #[test]
        fn every_range_is_in_its_command(block in 0u64..1 << 60, count in 1u32..1 << 20, is_fua: bool) {
            for command in [read(block, count), write(block, count, is_fua)] {
                let number = |range: std::ops::Range<usize>| {
                    command[range].iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte))
                };
                let found = match command[0] >> 5 {
                    1 => (number(2..6), number(7..9)),
                    5 => (number(2..6), number(6..10)),
                    _ => (number(2..10), number(10..14)),
                };
                prop_assert_eq!(found, (block, u64::from(count)));
            }
        }
    }
}
