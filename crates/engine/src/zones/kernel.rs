//! The kernel's calls on the zones of a device.
//!
//! Source: `Documentation/block/` and `include/uapi/linux/blkzoned.h` of the kernel; the numbers of the calls are its
//! interface.

use super::{Kind, NO_ONE, OTHERS, Zone};
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::fd::{AsRawFd, RawFd};

const SECTOR_BYTES: u64 = 512;
/// `_IOWR(0x12, 130, struct blk_zone_report)`.
const BLKREPORTZONE: u64 = 0xc010_1282;
/// `_IOW(0x12, 131, struct blk_zone_range)`.
const BLKRESETZONE: u64 = 0x4010_1283;
/// `_IOW(0x12, 136, struct blk_zone_range)`.
const BLKFINISHZONE: u64 = 0x4010_1288;
/// Zones reported by one call.
const REPORT_COUNT: usize = 1024;
/// Empties a zone.
pub(crate) fn reset_zone(device: RawFd, zone: &Range<u64>) -> io::Result<()> {
    on_range(device, BLKRESETZONE, zone)
}

/// Makes a zone full, wherever its pointer is.
pub(crate) fn finish_zone(device: RawFd, zone: &Range<u64>) -> io::Result<()> {
    on_range(device, BLKFINISHZONE, zone)
}

fn on_range(device: RawFd, call: u64, zone: &Range<u64>) -> io::Result<()> {
    let range = [zone.start / SECTOR_BYTES, (zone.end - zone.start) / SECTOR_BYTES];
    // SAFETY: both calls read two 64-bit words (`struct blk_zone_range`), which live until the call returns.
    match unsafe { libc::ioctl(device, call as _, range.as_ptr()) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// `struct blk_zone`.
#[repr(C)]
#[derive(Clone, Copy)]
struct KernelZone {
    start: u64,
    length: u64,
    pointer: u64,
    kind: u8,
    condition: u8,
    non_sequential: u8,
    reset: u8,
    reserved: [u8; 4],
    capacity: u64,
    reserved_end: [u8; 24],
}

/// `struct blk_zone_report` with room for some zones.
#[repr(C)]
struct Report {
    sector: u64,
    count: u32,
    flags: u32,
    zones: [KernelZone; REPORT_COUNT],
}

/// Asks a device for its zones, from the one at byte `from` on, `most` of them.
pub(super) fn report(device: &File, from: u64, most: usize) -> io::Result<Vec<Zone>> {
    const NONE: KernelZone = KernelZone {
        start: 0,
        length: 0,
        pointer: 0,
        kind: 0,
        condition: 0,
        non_sequential: 0,
        reset: 0,
        reserved: [0; 4],
        capacity: 0,
        reserved_end: [0; 24],
    };
    let mut report = Box::new(Report { sector: 0, count: 0, flags: 0, zones: [NONE; REPORT_COUNT] });
    let mut zones = Vec::new();
    let mut sector = from / SECTOR_BYTES;
    while zones.len() < most {
        report.sector = sector;
        report.count = REPORT_COUNT.min(most - zones.len()) as u32;
        report.flags = 0;
        // SAFETY: the call writes at most `count` zones after the header, and there is room for REPORT_COUNT.
        if unsafe { libc::ioctl(device.as_raw_fd(), BLKREPORTZONE as _, std::ptr::from_mut(&mut *report)) } != 0 {
            let error = io::Error::last_os_error();
            // After the last zone there is none.
            return if zones.is_empty() || error.raw_os_error() != Some(libc::EINVAL) { Err(error) } else { Ok(zones) };
        }
        let found = &report.zones[..(report.count as usize).min(REPORT_COUNT)];
        let Some(last) = found.last() else { return Ok(zones) };
        sector = last.start + last.length;
        // Since Linux 5.9 the kernel sets a flag if it reports capacities.
        let knows_capacity = report.flags & 1 != 0;
        zones.extend(found.iter().map(|zone| zone_of(zone, knows_capacity)));
    }
    Ok(zones)
}

fn zone_of(zone: &KernelZone, knows_capacity: bool) -> Zone {
    // blkzoned.h: BLK_ZONE_TYPE_* and BLK_ZONE_COND_*.
    const CONVENTIONAL: u8 = 1;
    const EMPTY: u8 = 1;
    const FULL: u8 = 14;
    const READ_ONLY: u8 = 13;
    const OFFLINE: u8 = 15;
    const OPEN: std::ops::RangeInclusive<u8> = 2..=4;
    let start = zone.start * SECTOR_BYTES;
    let end = start + zone.length * SECTOR_BYTES;
    let capacity = if knows_capacity && zone.capacity > 0 { zone.capacity } else { zone.length };
    let limit = start + capacity * SECTOR_BYTES;
    let is_open = zone.kind != CONVENTIONAL && OPEN.contains(&zone.condition);
    let (kind, pointer) = match (zone.kind, zone.condition) {
        (_, READ_ONLY | OFFLINE) => (Kind::Unusable, start),
        (CONVENTIONAL, _) => (Kind::Conventional, end),
        (_, EMPTY) => (Kind::Sequential, start),
        (_, FULL) => (Kind::Sequential, limit),
        _ => (Kind::Sequential, (zone.pointer * SECTOR_BYTES).clamp(start, limit)),
    };
    let opener = if is_open { OTHERS } else { NO_ONE };
    Zone { limit, pointer, data: pointer, kind, opener, is_open, ..Zone::empty(start, end) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_structures_have_the_kernels_lengths() {
        assert_eq!((size_of::<KernelZone>(), std::mem::offset_of!(Report, zones)), (64, 16));
    }
}
