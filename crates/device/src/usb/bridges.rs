//! Known problems of particular bridges (the chip between USB and the disk), beyond the kernel's own tables.
//!
//! The list quotes public reports and becomes outdated; no decision depends on it. Decisions use the kernel's tables,
//! which are read from the installed modules.
//!
//! Source: Linux `drivers/usb/storage/unusual_uas.h` and `uas-detect.h`; the issues that the notes
//! name.

/// One bridge, or all bridges of a vendor.
struct Bridge {
    vendor: u16,
    /// `None`: all products of the vendor.
    product: Option<u16>,
    note: &'static str,
}

const fn one(vendor: u16, product: u16, note: &'static str) -> Bridge {
    Bridge { vendor, product: Some(product), note }
}

const BRIDGES: [Bridge; 18] = [
    one(0x152d, 0x1561, "JMicron JMS561U: trouble on UAS is reported on Raspberry Pi (raspberrypi/linux 5060)"),
    one(
        0x152d,
        0x0567,
        "JMicron JMS567: the kernel does not use FUA on it; trouble on UAS is reported (home-assistant/operating-system 3220)",
    ),
    one(0x152d, 0x0578, "JMicron JMS578: the kernel does not use FUA on it (raspberrypi/linux 5246)"),
    one(0x152d, 0x0579, "JMicron JMS579: trouble on UAS is reported (getumbrel/umbrel-os 95)"),
    one(
        0x152d,
        0x0583,
        "JMicron JMS583: trouble on UAS is reported on Raspberry Pi (home-assistant/operating-system 4366)",
    ),
    one(
        0x174c,
        0x235c,
        "ASMedia ASM235CM: trouble on UAS is reported (home-assistant/operating-system 5035, istoreos/istoreos 1006)",
    ),
    one(0x125f, 0xa88a, "ADATA SD600Q: trouble on UAS is reported (home-assistant/operating-system 3280)"),
    one(0x7825, 0xa2a4, "the adapter PA023U3: trouble on UAS is reported (getumbrel/umbrel-os 170)"),
    one(0x357d, 0x7788, "JMicron JMS566"),
    one(
        0x174c,
        0x55aa,
        "ASMedia ASM1051, ASM1053 or ASM1153: they share one number, and the kernel tells them apart by power and streams",
    ),
    one(
        0x174c,
        0x5106,
        "ASMedia ASM1051 or ASM1053: they share one number, and the kernel tells them apart by power and streams",
    ),
    one(
        0x174c,
        0x1156,
        "ASMedia ASM1156: a hang with the root filesystem on UAS is reported on Linux 6.12 (raspberrypi/linux 7570)",
    ),
    one(0x0bda, 0x9210, "Realtek RTL9210: the kernel bars one enclosure with it from UAS, the HIKSEMI MD202"),
    one(0x2537, 0x1068, "Norelsys NS1068"),
    one(0x2109, 0x0711, "VIA VL711: SMART (SAT) is not passed through"),
    one(0x2109, 0x0715, "VIA VL817"),
    one(0x0634, 0x5605, "Crucial X9: trouble on UAS is reported (home-assistant/operating-system 4893)"),
    Bridge {
        vendor: 0x0bc2,
        product: None,
        note: "Seagate: the kernel passes SMART (SAT) through to none of its USB disks",
    },
];

/// Returns the problems on UAS that users report of a device, one sentence each.
pub(super) fn notes_of_reports(vendor: u16, product: u16) -> impl Iterator<Item = &'static str> {
    notes(vendor, product).into_iter().filter(|note| note.contains("is reported"))
}

/// Returns the known problems of a device, one sentence each.
pub(super) fn notes(vendor: u16, product: u16) -> Vec<&'static str> {
    BRIDGES
        .iter()
        .filter(|bridge| bridge.vendor == vendor && bridge.product.is_none_or(|one| one == product))
        .map(|bridge| bridge.note)
        .collect()
}
