//! The kernel's quirk strings: `VID:PID:flags,…`, the format of `usb-storage.quirks=`.
//!
//! The first entry of a device applies, and it *replaces* all flags that have a letter: of the kernel's own table, only
//! the flags without a letter remain. So an entry that changes one flag must repeat the others ([`entry_for`]).
//!
//! Cannot see: flags that a driver sets itself after it has read the entry.
//!
//! Source: Linux `drivers/usb/storage/usb.c`, `usb_stor_adjust_quirks`; `include/linux/usb_usual.h`;
//! `Documentation/admin-guide/kernel-parameters.txt`, `usb-storage.quirks`.

/// The longest quirk string that the module parameter accepts, in bytes.
pub const QUIRKS_BYTES_MAX: usize = 127;

/// The device advertises UAS and must not be driven with it.
pub const IGNORE_UAS: u64 = 0x0080_0000;
/// ATA commands in SCSI ones (SAT, which SMART needs) are not passed through.
pub const NO_ATA_1X: u64 = 0x0200_0000;
/// Forced-unit-access writes are broken. It has no letter, so no entry removes it.
pub const BROKEN_FUA: u64 = 0x0100_0000;
/// Requests are limited to 240 sectors.
pub const MAX_SECTORS_240: u64 = 0x0800_0000;

/// REPORT SUPPORTED OPERATION CODES is not sent.
pub const NO_REPORT_OPCODES: u64 = 0x0400_0000;
/// REPORT LUNS is not sent.
pub const NO_REPORT_LUNS: u64 = 0x1000_0000;
/// A write cache is assumed, and always flushed.
pub const ALWAYS_SYNC: u64 = 0x2000_0000;
/// WRITE SAME is not sent.
pub const NO_SAME: u64 = 0x4000_0000;
/// The residue that the device reports is ignored (BOT only).
pub const IGNORE_RESIDUE: u64 = 0x0000_0020;
/// The disk has one sector less than it reports.
pub const FIX_CAPACITY: u64 = 0x0000_0010;
/// The disk has one sector less than it reports if that number is odd.
pub const CAPACITY_HEURISTICS: u64 = 0x0000_1000;
/// Write protection is not asked for.
pub const NO_WP_DETECT: u64 = 0x0000_0200;
/// Requests are limited to 64 sectors.
pub const MAX_SECTORS_64: u64 = 0x0000_0400;
/// READ CAPACITY(16) is not sent.
pub const NO_READ_CAPACITY_16: u64 = 0x0008_0000;
/// No driver binds to the device.
pub const IGNORE_DEVICE: u64 = 0x0000_0800;

/// A flag that has a letter.
struct Letter {
    letter: char,
    bit: u64,
    meaning: &'static str,
}

/// Every letter, in alphabetical order.
const LETTERS: [Letter; 22] = [
    Letter { letter: 'a', bit: 0x0000_8000, meaning: "reads more than 18 bytes of sense" },
    Letter { letter: 'b', bit: 0x0002_0000, meaning: "reads no more than 18 bytes of sense" },
    Letter { letter: 'c', bit: FIX_CAPACITY, meaning: "the last sector is one less than the device reports" },
    Letter { letter: 'd', bit: 0x0004_0000, meaning: "no READ DISC INFO" },
    Letter { letter: 'e', bit: NO_READ_CAPACITY_16, meaning: "no READ CAPACITY(16)" },
    Letter { letter: 'f', bit: NO_REPORT_OPCODES, meaning: "no REPORT SUPPORTED OPERATION CODES" },
    Letter { letter: 'g', bit: MAX_SECTORS_240, meaning: "at most 240 sectors a request" },
    Letter {
        letter: 'h',
        bit: CAPACITY_HEURISTICS,
        meaning: "the last sector may be one less than the device reports",
    },
    Letter { letter: 'i', bit: IGNORE_DEVICE, meaning: "the device is not driven at all" },
    Letter { letter: 'j', bit: NO_REPORT_LUNS, meaning: "no REPORT LUNS" },
    Letter { letter: 'k', bit: NO_SAME, meaning: "no WRITE SAME" },
    Letter { letter: 'l', bit: 0x0000_0080, meaning: "the medium cannot be locked" },
    Letter { letter: 'm', bit: MAX_SECTORS_64, meaning: "at most 64 sectors a request" },
    Letter { letter: 'n', bit: 0x0010_0000, meaning: "the first READ(10) is repeated" },
    Letter { letter: 'o', bit: 0x0001_0000, meaning: "the reported capacity is correct" },
    Letter { letter: 'p', bit: 0x0020_0000, meaning: "the device has a write cache" },
    Letter { letter: 'r', bit: IGNORE_RESIDUE, meaning: "the residue that the device reports is ignored" },
    Letter { letter: 's', bit: 0x0000_0001, meaning: "one logical unit only" },
    Letter { letter: 't', bit: NO_ATA_1X, meaning: "no ATA pass-through (SMART)" },
    Letter { letter: 'u', bit: IGNORE_UAS, meaning: "UAS is not used" },
    Letter { letter: 'w', bit: NO_WP_DETECT, meaning: "write protection is not asked for" },
    Letter { letter: 'y', bit: ALWAYS_SYNC, meaning: "always flush: the device lies about its cache" },
];

/// Names of flags without a letter that matter here.
const UNLETTERED: [(u64, &str); 2] =
    [(BROKEN_FUA, "forced-unit-access writes are not used"), (0x0040_0000, "READ CAPACITY(16) first")];

/// All flags that an entry replaces.
pub fn mask() -> u64 {
    LETTERS.iter().fold(0, |mask, letter| mask | letter.bit)
}

/// Returns the letters of flags, in alphabetical order.
pub fn letters(flags: u64) -> String {
    LETTERS.iter().filter(|letter| flags & letter.bit != 0).map(|letter| letter.letter).collect()
}

/// Returns the flags of letters; unknown letters are skipped, as in the kernel.
pub fn flags(letters: &str) -> u64 {
    letters.chars().fold(0, |flags, c| {
        let c = c.to_ascii_lowercase();
        LETTERS.iter().find(|letter| letter.letter == c).map_or(flags, |letter| flags | letter.bit)
    })
}

/// Returns the meanings of flags, one clause each.
pub fn meanings(flags: u64) -> Vec<&'static str> {
    let lettered = LETTERS.iter().filter(|letter| flags & letter.bit != 0).map(|letter| letter.meaning);
    let others = UNLETTERED.iter().filter(|(bit, _)| flags & bit != 0).map(|(_, meaning)| *meaning);
    lettered.chain(others).collect()
}

/// Returns the letters of the entry that the kernel would use for a device; `None` if there is no entry.
///
/// Parses as the kernel does: numbers are hexadecimal without padding, an invalid entry is skipped up to its comma,
/// unknown letters are skipped.
pub fn entry_letters(quirks: &str, vendor: u16, product: u16) -> Option<String> {
    quirks.split(',').find_map(|entry| {
        let (found, letters) = parse_entry(entry)?;
        (found == (u64::from(vendor), u64::from(product))).then(|| letters.to_owned())
    })
}

fn parse_entry(entry: &str) -> Option<((u64, u64), &str)> {
    let (vendor, rest) = entry.split_once(':')?;
    let (product, letters) = rest.split_once(':')?;
    Some(((hexadecimal(vendor)?, hexadecimal(product)?), letters))
}

/// Parses like `simple_strtoul(…, 16)`: an optional `0x`, then digits only.
fn hexadecimal(text: &str) -> Option<u64> {
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    let is_plain = digits.bytes().all(|b| b.is_ascii_hexdigit());
    // The kernel reads an empty number as 0.
    if digits.is_empty() {
        Some(0)
    } else if is_plain {
        u64::from_str_radix(digits, 16).ok()
    } else {
        None
    }
}

/// Returns the flags in effect: the driver's own, with those that have a letter replaced by the entry's, if there is
/// one.
pub fn applied(built_in: u64, entry: Option<&str>) -> u64 {
    match entry {
        Some(letters) => (built_in & !mask()) | flags(letters),
        None => built_in,
    }
}

/// Returns the entry that only changes whether UAS is used: the flags in effect with `u` added or removed.
pub fn entry_for(vendor: u16, product: u16, in_force: u64, ignore_uas: bool) -> String {
    let wanted = if ignore_uas { in_force | IGNORE_UAS } else { in_force & !IGNORE_UAS };
    format!("{vendor:04x}:{product:04x}:{}", letters(wanted))
}

/// Why a quirk string cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the quirk string would be {length} bytes long, and the kernel accepts {QUIRKS_BYTES_MAX}: `{text}`")]
pub struct TooLong {
    /// Its length, in bytes.
    pub length: usize,
    /// The string.
    pub text: String,
}

/// Returns the string with `entry` as the first of its device; entries of other devices are unchanged.
///
/// # Errors
/// The string would be longer than the kernel accepts. No other entry is dropped to make room.
pub fn with_entry(quirks: &str, vendor: u16, product: u16, entry: &str) -> Result<String, TooLong> {
    let others = without_entry(quirks, vendor, product);
    let text = if others.is_empty() { entry.to_owned() } else { format!("{entry},{others}") };
    if text.len() > QUIRKS_BYTES_MAX { Err(TooLong { length: text.len(), text }) } else { Ok(text) }
}

/// Returns the string without the entries of a device.
pub fn without_entry(quirks: &str, vendor: u16, product: u16) -> String {
    let is_other =
        |entry: &&str| parse_entry(entry).is_none_or(|(found, _)| found != (u64::from(vendor), u64::from(product)));
    quirks.split(',').filter(|entry| !entry.is_empty()).filter(is_other).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_entry_of_a_device_wins_and_zeros_do_not_matter() {
        let quirks = "152d:578:u,0bc2:ab24:t,152d:0578:f";
        assert_eq!(entry_letters(quirks, 0x152d, 0x0578).as_deref(), Some("u"));
        assert_eq!(entry_letters(quirks, 0x0bc2, 0xab24).as_deref(), Some("t"));
        assert_eq!(entry_letters(quirks, 0x1209, 0x0001), None);
        assert_eq!(entry_letters("", 0, 1), None);
        assert_eq!(entry_letters("rubbish,152D:0578:", 0x152d, 0x0578).as_deref(), Some(""));
    }

    #[test]
    fn an_entry_replaces_every_flag_that_has_a_letter_and_no_other() {
        let built_in = NO_ATA_1X | BROKEN_FUA;
        assert_eq!(applied(built_in, None), built_in);
        assert_eq!(applied(built_in, Some("u")), IGNORE_UAS | BROKEN_FUA, "the `t` is lost");
        assert_eq!(applied(IGNORE_UAS, Some("")), 0, "an entry without flags forces UAS");
    }

    #[test]
    fn the_entry_we_write_keeps_the_flags_that_were_in_force() {
        let in_force = NO_ATA_1X | BROKEN_FUA | MAX_SECTORS_240;
        let entry = entry_for(0x0bc2, 0xab24, in_force, true);
        assert_eq!(entry, "0bc2:ab24:gtu");
        let letters = entry_letters(&entry, 0x0bc2, 0xab24).expect("our own entry");
        assert_eq!(applied(in_force, Some(&letters)), in_force | IGNORE_UAS);
        let back = entry_for(0x0bc2, 0xab24, in_force | IGNORE_UAS, false);
        assert_eq!(back, "0bc2:ab24:gt");
    }

    #[test]
    fn letters_and_flags_are_the_same_in_both_directions() {
        let all: String = LETTERS.iter().map(|letter| letter.letter).collect();
        assert_eq!(letters(flags(&all)), all);
        assert_eq!(letters(flags("UT")), "tu", "the kernel ignores case");
        assert_eq!(flags("vxz"), 0, "unknown letters");
        assert_eq!(mask().count_ones() as usize, LETTERS.len(), "no bit twice");
    }

    #[test]
    fn a_string_of_127_bytes_is_written_and_one_of_128_is_not() {
        let entry = "1209:0001:u";
        // Nine entries of 11 bytes with commas: 107 bytes; the tenth has 8 or 9 letters.
        let nine: Vec<String> = (0..9).map(|n| format!("152d:{n:04x}:f")).collect();
        let fits = format!("{},0bc2:ab24", nine[..9].join(","));
        assert_eq!(fits.len(), 117);
        let text = with_entry(&fits[..115], 0x1209, 1, entry).expect("it fits");
        assert_eq!(text.len(), 127);
        let error = with_entry(&fits[..116], 0x1209, 1, entry).expect_err("one too many");
        assert_eq!(error.length, 128);
    }

    #[test]
    fn the_entries_of_others_stay_in_their_order() {
        let quirks = "0bc2:ab24:t,1209:1:f,152d:0578:u";
        let text = with_entry(quirks, 0x1209, 1, "1209:0001:fu").expect("it fits");
        assert_eq!(text, "1209:0001:fu,0bc2:ab24:t,152d:0578:u");
        assert_eq!(without_entry(&text, 0x1209, 1), "0bc2:ab24:t,152d:0578:u");
        assert_eq!(without_entry("1209:0001:u", 0x1209, 1), "");
    }
}
