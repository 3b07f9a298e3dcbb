//! The temperature of disks, and the thermal throttling of processors.
//!
//! Disks that report a temperature have a `hwmon` directory under their device (NVMe since Linux 5.5, SATA with the
//! module `drivetemp`). The limits come from the drive: above `temp1_max` most drives slow down. Virtual disks and most
//! USB disks report no temperature.
//!
//! Source: Linux `Documentation/hwmon/sysfs-interface.rst`, `Documentation/hwmon/drivetemp.rst`;
//! `thermal_throttle` of x86: `arch/x86/kernel/cpu/mce/therm_throt.c`.

use crate::system::System;

/// A disk's temperature.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Temperature {
    /// The file that it was read from.
    pub source: String,
    /// In thousandths of a degree Celsius.
    pub millidegrees: i64,
    /// The limit that the drive reports; `None` if it reports none.
    pub limit_millidegrees: Option<i64>,
}

/// Returns the temperature of a disk by its kernel name; `None` if it reports none.
pub fn temperature(system: &System, disk: &str) -> Option<Temperature> {
    let device = format!("/sys/block/{disk}/device");
    let nested = format!("{device}/hwmon");
    let folders = [device, nested].into_iter().flat_map(|parent| {
        let names = system.list(&parent).into_iter().filter(|name| name.starts_with("hwmon") && name != "hwmon");
        names.map(move |name| format!("{parent}/{name}")).collect::<Vec<_>>()
    });
    for folder in folders {
        let number = |file: &str| system.number::<i64>(&format!("{folder}/{file}")).value;
        if let Some(millidegrees) = number("temp1_input") {
            // A drive without a limit reports zero or an implausible value.
            let limit_millidegrees = number("temp1_max").filter(|limit| (1_000..=150_000).contains(limit));
            return Some(Temperature { source: format!("{folder}/temp1_input"), millidegrees, limit_millidegrees });
        }
    }
    None
}

/// Returns how often processors were throttled for heat since boot, as a sum; `None` if the kernel does not count it
/// (virtual machines, other architectures).
pub fn throttle_count(system: &System) -> Option<u64> {
    let processors = system.list("/sys/devices/system/cpu").into_iter().filter(|name| {
        name.strip_prefix("cpu").is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    });
    let counts: Vec<u64> = processors
        .filter_map(|name| {
            system.number(&format!("/sys/devices/system/cpu/{name}/thermal_throttle/core_throttle_count")).value
        })
        .collect();
    (!counts.is_empty()).then(|| counts.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, System) {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("paths"), "").unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let system = System::recorded(root.path()).unwrap();
        (root, system)
    }

    #[test]
    fn a_drive_tells_its_temperature_beside_itself_or_one_folder_below() {
        let (_root, system) = machine(&[
            ("sys/block/nvme0n1/device/hwmon3/temp1_input", "81850\n"),
            ("sys/block/nvme0n1/device/hwmon3/temp1_max", "79850\n"),
            ("sys/block/sda/device/hwmon/hwmon1/temp1_input", "35000\n"),
            ("sys/block/sda/device/hwmon/hwmon1/temp1_max", "0\n"),
            ("sys/block/vda/device/vendor", "0x1af4\n"),
        ]);
        let nvme = temperature(&system, "nvme0n1").unwrap();
        assert_eq!((nvme.millidegrees, nvme.limit_millidegrees), (81_850, Some(79_850)));
        let sata = temperature(&system, "sda").unwrap();
        assert_eq!((sata.millidegrees, sata.limit_millidegrees), (35_000, None), "zero is not a limit");
        assert_eq!(temperature(&system, "vda"), None);
    }

    #[test]
    fn throttling_is_summed_over_processors_and_unknown_without_counters() {
        let (_root, system) = machine(&[
            ("sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "3\n"),
            ("sys/devices/system/cpu/cpu11/thermal_throttle/core_throttle_count", "4\n"),
            ("sys/devices/system/cpu/cpufreq/thermal_throttle/core_throttle_count", "100\n"),
        ]);
        assert_eq!(throttle_count(&system), Some(7));
        let (_root, system) = machine(&[("sys/devices/system/cpu/cpu0/online", "1\n")]);
        assert_eq!(throttle_count(&system), None);
    }
}
