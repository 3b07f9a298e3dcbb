//! The devices to which Linux gives flags of their own when it drives them with UAS: a copy of the kernel's table.
//!
//! It is for UAS in user space, on kernels without `uas.ko`. The kernel's own decision is replayed with the table of the installed
//! module ([`super::modules`]).
//!
//! Source: Linux 6.17 (6.17-rc3), `drivers/usb/storage/unusual_uas.h`. The rules of `uas-detect.h` for ASMedia, Seagate and
//! HIKSEMI are in [`super::decision`].

use super::modules::TableEntry;
use super::quirks::{
    ALWAYS_SYNC, BROKEN_FUA, IGNORE_RESIDUE, IGNORE_UAS, NO_ATA_1X, NO_REPORT_LUNS, NO_REPORT_OPCODES, NO_SAME,
};

/// The kernel and the file from which the table was copied.
pub(super) const SOURCE: &str = "unusual_uas.h of Linux 6.17, a copy in trueio";

/// Every release.
const ALL: [u16; 2] = [0x0000, 0x9999];

const fn one(vendor: u16, product: u16, releases: [u16; 2], flags: u64) -> TableEntry {
    TableEntry::of_model(vendor, product, releases, flags)
}

/// The table, in the kernel's order.
pub(super) const TABLE: [TableEntry; 24] = [
    one(0x054c, 0x087d, ALL, NO_REPORT_OPCODES),
    one(0x059f, 0x105f, ALL, NO_REPORT_OPCODES | NO_SAME),
    one(0x059f, 0x1061, ALL, NO_REPORT_OPCODES | NO_SAME),
    one(0x0781, 0x55e8, ALL, IGNORE_UAS),
    one(0x090c, 0x2000, ALL, IGNORE_UAS),
    one(0x0984, 0x0301, [0x0128, 0x0128], IGNORE_UAS),
    one(0x0b05, 0x1932, ALL, IGNORE_UAS),
    one(0x0bc2, 0x331a, ALL, NO_REPORT_LUNS),
    one(0x125f, 0xa94a, [0x0160, 0x0160], NO_ATA_1X),
    one(0x13fd, 0x3940, ALL, NO_ATA_1X | IGNORE_RESIDUE),
    one(0x152d, 0x0539, ALL, NO_REPORT_OPCODES),
    one(0x152d, 0x0567, ALL, BROKEN_FUA | NO_REPORT_OPCODES),
    one(0x152d, 0x0578, ALL, BROKEN_FUA),
    one(0x152d, 0x0583, ALL, NO_REPORT_OPCODES),
    one(0x154b, 0xf00b, ALL, NO_ATA_1X),
    one(0x154b, 0xf00d, ALL, NO_ATA_1X),
    one(0x17ef, 0x3899, ALL, IGNORE_UAS),
    one(0x2109, 0x0711, ALL, NO_ATA_1X),
    one(0x2537, 0x1068, ALL, IGNORE_UAS),
    one(0x357d, 0x7788, ALL, NO_REPORT_OPCODES | IGNORE_UAS),
    one(0x4971, 0x1012, ALL, IGNORE_UAS),
    one(0x4971, 0x8017, ALL, NO_REPORT_OPCODES),
    one(0x4971, 0x8024, ALL, ALWAYS_SYNC),
    // From `unusual_devs.h`: the table of `usb-storage` alone bars it, and so the kernel does not use UAS.
    one(0x2109, 0x0715, [0x9999, 0x9999], IGNORE_UAS),
];
