//! A disk's counters of requests and bytes.
//!
//! The source is the small file `/sys/block/<disk>/stat`, which every user may read, in about a microsecond. It counts
//! the requests of all processes to the whole disk since boot.
//!
//! The head of NVMe multipath counts nothing before Linux 6.3; the disks of its paths (`nvme0c1n1` of `nvme0n1`) always do, and
//! their sum is used.
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
    let paths = paths_of(system, disk);
    if paths.is_empty() {
        return counters_of(system, disk);
    }
    let mut sum = DeviceCounters { flush_count: Some(0), ..DeviceCounters::default() };
    for path in paths {
        add(&mut sum, &counters_of(system, &path)?);
    }
    Ok(sum)
}

/// Returns the disks of the paths of an NVMe multipath head; none for any other disk.
pub(crate) fn paths_of(system: &System, disk: &str) -> Vec<String> {
    // `nvme0n1`: the subsystem's number and the namespace's. A head has no queues of its own.
    let Some((subsystem, space)) = disk.strip_prefix("nvme").and_then(|rest| rest.split_once('n')) else {
        return Vec::new();
    };
    if subsystem.contains('c') || system.exists(&format!("/sys/block/{disk}/mq")) {
        return Vec::new();
    }
    let (first, last) = (format!("nvme{subsystem}c"), format!("n{space}"));
    let is_path = |name: &String| {
        let controller = name.strip_prefix(&first).and_then(|rest| rest.strip_suffix(&last));
        controller.is_some_and(|number| !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    system.list("/sys/block").into_iter().filter(is_path).collect()
}

fn add(sum: &mut DeviceCounters, other: &DeviceCounters) {
    sum.read_count += other.read_count;
    sum.read_bytes += other.read_bytes;
    sum.write_count += other.write_count;
    sum.write_bytes += other.write_bytes;
    sum.discard_count += other.discard_count;
    sum.discard_bytes += other.discard_bytes;
    sum.flush_count = sum.flush_count.zip(other.flush_count).map(|(sum, other)| sum + other);
    // Of paths that are busy at the same time, the time of both counts.
    sum.busy_ms += other.busy_ms;
    sum.weighted_ms += other.weighted_ms;
    sum.read_merge_count += other.read_merge_count;
    sum.write_merge_count += other.write_merge_count;
    sum.read_ms += other.read_ms;
    sum.write_ms += other.write_ms;
}

fn counters_of(system: &System, disk: &str) -> Result<DeviceCounters, DeviceError> {
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
    fn the_counters_of_a_multipath_head_are_those_of_its_paths() {
        let folder = tempfile::tempdir().expect("a folder");
        let stat = |disk: &str, reads: u64| {
            let directory = folder.path().join("sys/block").join(disk);
            std::fs::create_dir_all(&directory).expect("a directory");
            std::fs::write(directory.join("stat"), format!("{reads} 0 8 1 0 0 0 0 0 1 1 0 0 0 0 2 0")).expect("a file");
            directory
        };
        std::fs::write(folder.path().join("paths"), "").expect("a file");
        for (disk, reads) in [("nvme0n1", 0), ("nvme0c0n1", 5), ("nvme0c12n1", 7), ("nvme0c0n11", 100)] {
            stat(disk, reads);
        }
        let plain = stat("nvme1n1", 3);
        std::fs::create_dir(plain.join("mq")).expect("a directory");
        stat("nvme1c0n1", 100);
        let system = System::recorded(folder.path()).expect("a recorded tree");
        let head = counters(&system, "nvme0n1").expect("two paths");
        assert_eq!((head.read_count, head.read_bytes, head.flush_count), (12, 2 * 4096, Some(4)));
        assert_eq!(counters(&system, "nvme1n1").expect("a disk").read_count, 3, "a disk with queues counts itself");
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
