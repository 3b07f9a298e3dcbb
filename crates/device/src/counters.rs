//! A disk's counters of requests and bytes.
//!
//! The source is the small file `/sys/block/<disk>/stat`, which every user may read, in about a microsecond. It counts
//! the requests of all processes to the whole disk since boot.
//!
//! Limits: the file does not show which process sent a request; it does not distinguish writes with forced unit access
//! (FUA) from others; before Linux 5.5 it does not count flushes; it counts nothing if `queue/iostats` is 0.
//!
//! Source: Linux `Documentation/block/stat.rst`: 11 values; 15 with discards (4.18); 17 with
//! flushes (5.5).

use crate::error::DeviceError;
use crate::system::System;
use trueio_model::DeviceCounters;

/// A sector in the kernel's counters, in bytes, independent of the disk's sector size.
pub(crate) const COUNTER_SECTOR_BYTES: u64 = 512;

/// Reads the counters of a whole disk, by its kernel name (`nvme0n1`).
///
/// # Errors
/// The disk does not exist, or its file cannot be parsed.
pub fn counters(system: &System, disk: &str) -> Result<DeviceCounters, DeviceError> {
    let path = format!("/sys/block/{disk}/stat");
    match system.read(&path) {
        Ok(text) => parse_counters(&text).ok_or_else(|| DeviceError::Malformed {
            path,
            text,
            reason: "at least 11 numbers were expected".to_owned(),
        }),
        Err(source) => Err(DeviceError::Kernel { path, source }),
    }
}

/// Parses the text of `/sys/block/<disk>/stat`; `None` if it is invalid.
pub fn parse_counters(text: &str) -> Option<DeviceCounters> {
    let values = text.split_whitespace().map(str::parse).collect::<Result<Vec<u64>, _>>().ok()?;
    if values.len() < 11 {
        return None;
    }
    // Counted from 0: reads are 0 to 3 (requests, merges, sectors, milliseconds), writes 4 to 7,
    // then 8 in flight, 9 busy, 10 weighted, discards 11 to 14, flushes 15 and 16.
    let at = |index: usize| values.get(index).copied();
    Some(DeviceCounters {
        read_count: values[0],
        read_bytes: values[2] * COUNTER_SECTOR_BYTES,
        write_count: values[4],
        write_bytes: values[6] * COUNTER_SECTOR_BYTES,
        discard_count: at(11).unwrap_or(0),
        discard_bytes: at(13).unwrap_or(0) * COUNTER_SECTOR_BYTES,
        flush_count: at(15),
        busy_ms: values[9],
        weighted_ms: values[10],
        read_merge_count: values[1],
        write_merge_count: values[5],
        read_ms: values[3],
        write_ms: values[7],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seventeen_values_are_read_each_in_its_place() {
        let text = "   58122    23546  4518738    13161     9995    19929  3799608     4904        0     6604    \
                    18306     3735       57   519512      210      898       30\n";
        let expected = DeviceCounters {
            read_count: 58_122,
            read_bytes: 4_518_738 * 512,
            write_count: 9_995,
            write_bytes: 3_799_608 * 512,
            discard_count: 3_735,
            discard_bytes: 519_512 * 512,
            flush_count: Some(898),
            busy_ms: 6_604,
            weighted_ms: 18_306,
            read_merge_count: 23_546,
            write_merge_count: 19_929,
            read_ms: 13_161,
            write_ms: 4_904,
        };
        assert_eq!(parse_counters(text), Some(expected));
    }

    #[test]
    fn an_older_kernel_gives_fewer_values_and_flushes_are_then_unknown() {
        let eleven = parse_counters("1 2 3 4 5 6 7 8 9 10 11").expect("eleven values are a kernel before 4.18");
        assert_eq!((eleven.flush_count, eleven.discard_count, eleven.weighted_ms), (None, 0, 11));
        let fifteen = parse_counters("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15").expect("fifteen are one before 5.5");
        assert_eq!((fifteen.flush_count, fifteen.discard_count), (None, 12));
        assert_eq!(parse_counters("1 2 3"), None);
        assert_eq!(parse_counters("a b c d e f g h i j k"), None);
    }
}
