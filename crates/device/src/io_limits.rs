//! Limits that the control groups of this process put on block devices, and what such a group transferred.
//!
//! Version 1 (`blkio.throttle.*_device`) limits only the processes of the group itself: the limit of a group above has no
//! effect (measured on Linux 6.18: 80 MB/s below a group with 1 MiB/s), so only the process's own group is read.
//! Version 2 (`io.max`, `io.latency`) is hierarchical, so each group up to the root is. A limit on the disk below a loop
//! device's file holds, too: the loop driver submits for the group whose I/O it serves.
//!
//! Cannot see: groups above those that are mounted; limits of a hypervisor or a storage array; targets of `io.latency` of
//! neighbouring groups, which may slow this one; BFQ's weights.
//!
//! Source: Linux `Documentation/admin-guide/cgroup-v2.rst` (IO), `cgroup-v1/blkio-controller.rst`;
//! `block/blk-throttle.c`, `block/blk-iocost.c` (`cost.*` keys of `io.stat`).

use crate::control_group::{Group, groups, groups_among};
use crate::identity::{DeviceNumber, parse_number};
use crate::mounts::Mount;
use crate::numbers::device_number_at;
use crate::system::System;
use trueio_model::{Fact, IoLimit, IoLimitKind};

/// What the processes of a control group transferred to and from one device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct GroupIo {
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub write_bytes: u64,
    /// Reads.
    pub read_count: u64,
    /// Writes.
    pub write_count: u64,
    /// Time for which `io.cost` delayed the group's I/O, in microseconds; `None` if the kernel does not count it.
    pub delayed_us: Option<u64>,
    /// Time in which at least one task of the group waited for I/O (`io.pressure`), in microseconds; `None` if the kernel
    /// does not count it.
    pub stalled_us: Option<u64>,
}

/// Files of version 1.
const THROTTLE_FILES: [(&str, IoLimitKind); 4] = [
    ("read_bps", IoLimitKind::ReadBytes),
    ("write_bps", IoLimitKind::WriteBytes),
    ("read_iops", IoLimitKind::ReadCount),
    ("write_iops", IoLimitKind::WriteCount),
];

/// Keys of `io.max`.
const MAX_KEYS: [(&str, IoLimitKind); 4] = [
    ("rbps=", IoLimitKind::ReadBytes),
    ("wbps=", IoLimitKind::WriteBytes),
    ("riops=", IoLimitKind::ReadCount),
    ("wiops=", IoLimitKind::WriteCount),
];

/// Returns the limits on `devices`; unknown if no control group for I/O is visible.
pub(crate) fn io_limits(system: &System, mounts: &[Mount], devices: &[(String, DeviceNumber)]) -> Fact<Vec<IoLimit>> {
    if devices.is_empty() {
        return Fact::known(Vec::new(), "no block device under the target");
    }
    let groups = groups_among(system, mounts, "blkio");
    let Some(own) = groups.first() else {
        return Fact::unknown("no control group of this process is mounted");
    };
    let found = Found { system, devices };
    let mut limits = found.rates(&groups);
    if own.is_v2 {
        limits.extend(groups.iter().flat_map(|group| found.io_latency(group)));
        limits.extend(found.io_cost(own));
    }
    Fact::known(limits, own.path.clone())
}

/// The files with the rates to which the control groups of this process limit some devices; they can be read again and again.
#[derive(Debug)]
pub struct RateLimits {
    system: System,
    groups: Vec<Group>,
    devices: Vec<(String, DeviceNumber)>,
    /// The names of the groups as the kernel lists them: the process may be moved to others.
    membership: String,
}

impl RateLimits {
    /// Finds the files of this process's groups. `names` are names of devices (`dm-0`); others are left out.
    pub fn of<'a>(system: &System, names: impl IntoIterator<Item = &'a str>) -> Self {
        let number_of = |name: &str| device_number_at(system, &format!("/sys/class/block/{name}"));
        let names = names.into_iter().filter(|name| !name.contains('/'));
        let mut devices: Vec<_> = names.filter_map(|name| Some((name.to_owned(), number_of(name)?))).collect();
        devices.sort();
        devices.dedup();
        let mut limits = Self { system: system.clone(), groups: Vec::new(), devices, membership: String::new() };
        limits.find_groups();
        limits
    }

    /// Finds the process's groups, if it was moved to others.
    fn find_groups(&mut self) {
        let now = self.system.read("/proc/self/cgroup").unwrap_or_default();
        if now != self.membership && !self.devices.is_empty() {
            self.groups = groups(&self.system, "blkio");
            self.membership = now;
        }
    }

    /// Returns the limits of the groups in which the process is now: one small file for each group of version 2, four for version 1.
    pub fn now(&mut self) -> Vec<IoLimit> {
        self.find_groups();
        Found { system: &self.system, devices: &self.devices }.rates(&self.groups)
    }
}

/// Reads the limits on some devices.
struct Found<'a> {
    system: &'a System,
    devices: &'a [(String, DeviceNumber)],
}

impl Found<'_> {
    /// Returns (device, its number, the rest of the line) of each line of `path` that names one of the devices.
    fn lines(&self, path: &str) -> Vec<(String, DeviceNumber, String)> {
        let text = self.system.read(path).unwrap_or_default();
        let of_line = |line: &str| {
            let (number, rest) = line.split_once(' ')?;
            let number = parse_number(number)?;
            let (name, _) = self.devices.iter().find(|(_, known)| *known == number)?;
            Some((name.clone(), number, rest.to_owned()))
        };
        text.lines().filter_map(of_line).collect()
    }

    /// Returns the limits of the process's groups, of which the first is its own, that have a rate.
    fn rates(&self, groups: &[Group]) -> Vec<IoLimit> {
        match groups.first() {
            Some(own) if own.is_v2 => groups.iter().flat_map(|group| self.io_max(group)).collect(),
            Some(own) => THROTTLE_FILES.iter().flat_map(|(file, kind)| self.throttle(own, file, *kind)).collect(),
            None => Vec::new(),
        }
    }

    /// `254:0 1048576`.
    fn throttle(&self, group: &Group, file: &str, kind: IoLimitKind) -> Vec<IoLimit> {
        let source = format!("{}/blkio.throttle.{file}_device", group.path);
        let limit = |(device, device_number, rest): (String, DeviceNumber, String)| {
            let value = rest.trim().parse().ok()?;
            Some(IoLimit { group: group.name.clone(), device, device_number, kind, value, source: source.clone() })
        };
        self.lines(&source).into_iter().filter_map(limit).collect()
    }

    /// `254:0 rbps=1048576 wbps=max riops=max wiops=max`.
    fn io_max(&self, group: &Group) -> Vec<IoLimit> {
        let source = format!("{}/io.max", group.path);
        let mut limits = Vec::new();
        for (device, device_number, rest) in self.lines(&source) {
            for word in rest.split_whitespace() {
                let of_key = |(key, kind): &(&str, IoLimitKind)| Some((*kind, word.strip_prefix(key)?.parse().ok()?));
                let Some((kind, value)) = MAX_KEYS.iter().find_map(of_key) else { continue };
                let (group, device, source) = (group.name.clone(), device.clone(), source.clone());
                limits.push(IoLimit { group, device, device_number, kind, value, source });
            }
        }
        limits
    }

    /// `254:0 target=10000`, in microseconds.
    fn io_latency(&self, group: &Group) -> Vec<IoLimit> {
        let source = format!("{}/io.latency", group.path);
        let limit = |(device, device_number, rest): (String, DeviceNumber, String)| {
            let us: u64 = rest.split_whitespace().find_map(|word| word.strip_prefix("target=")?.parse().ok())?;
            let (kind, value) = (IoLimitKind::LatencyTarget, us.saturating_mul(1_000));
            Some(IoLimit { group: group.name.clone(), device, device_number, kind, value, source: source.clone() })
        };
        self.lines(&source).into_iter().filter_map(limit).collect()
    }

    /// `io.stat` has the key `cost.usage` only while `io.cost` controls the device. `io.weight`: `default 100`, and a line
    /// for each device with a weight of its own.
    fn io_cost(&self, group: &Group) -> Vec<IoLimit> {
        let stat = self.lines(&format!("{}/io.stat", group.path));
        let controlled: Vec<_> = stat.into_iter().filter(|(_, _, rest)| rest.contains("cost.usage=")).collect();
        if controlled.is_empty() {
            return Vec::new();
        }
        let source = format!("{}/io.weight", group.path);
        let weights = self.lines(&source);
        let text = self.system.read(&source).unwrap_or_default();
        let default = text.lines().find_map(|line| line.strip_prefix("default ")?.trim().parse().ok()).unwrap_or(100);
        let limit = |(device, device_number, _): (String, DeviceNumber, String)| {
            let own = weights.iter().find(|(_, number, _)| *number == device_number);
            let value = own.and_then(|(_, _, rest)| rest.trim().parse().ok()).unwrap_or(default);
            let (group, kind, source) = (group.name.clone(), IoLimitKind::CostWeight, source.clone());
            IoLimit { group, device, device_number, kind, value, source }
        };
        controlled.into_iter().map(limit).collect()
    }
}

/// Returns what the control group of `limit` transferred to and from the limited device so far; `None` if the kernel does
/// not count it.
pub fn group_io(system: &System, limit: &IoLimit) -> Option<GroupIo> {
    let (directory, file) = limit.source.rsplit_once('/')?;
    let (major, minor) = limit.device_number;
    let prefix = format!("{major}:{minor} ");
    if file.starts_with("blkio.") {
        // `254:0 Read 4096`, a line for each kind.
        let of = |file: &str, kind: &str| {
            let text = system.read(&format!("{directory}/blkio.throttle.{file}")).ok()?;
            let of_line = |line: &str| line.strip_prefix(&prefix)?.strip_prefix(kind)?.trim().parse().ok();
            // A group without I/O on the device has no lines.
            Some(text.lines().find_map(of_line).unwrap_or(0))
        };
        let (bytes, count) = ("io_service_bytes", "io_serviced");
        return Some(GroupIo {
            read_bytes: of(bytes, "Read ")?,
            write_bytes: of(bytes, "Write ")?,
            read_count: of(count, "Read ")?,
            write_count: of(count, "Write ")?,
            ..GroupIo::default()
        });
    }
    let stalled_us = system.read(&format!("{directory}/io.pressure")).ok().and_then(|text| {
        let some = text.lines().find_map(|line| line.strip_prefix("some "))?;
        some.split_whitespace().find_map(|word| word.strip_prefix("total=")?.parse().ok())
    });
    // `254:0 rbytes=4096 wbytes=0 rios=1 wios=0 dbytes=0 dios=0 cost.usage=8`.
    let text = system.read(&format!("{directory}/io.stat")).ok()?;
    let Some(line) = text.lines().find_map(|line| line.strip_prefix(&prefix)) else {
        return Some(GroupIo { stalled_us, ..GroupIo::default() });
    };
    let of = |key: &str| line.split_whitespace().find_map(|word| word.strip_prefix(key)?.parse().ok());
    // Only with the kernel's switch for debugging.
    let delays: Vec<u64> = ["cost.wait=", "cost.indelay="].into_iter().filter_map(of).collect();
    Some(GroupIo {
        read_bytes: of("rbytes=")?,
        write_bytes: of("wbytes=")?,
        read_count: of("rios=")?,
        write_count: of("wios=")?,
        delayed_us: (!delays.is_empty()).then(|| delays.iter().sum()),
        stalled_us,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mounts::mounts;
    use std::fs;
    use tempfile::TempDir;

    /// A machine of these files.
    fn machine(files: &[(&str, &str)]) -> (TempDir, System) {
        let folder = TempDir::new().expect("a temporary folder");
        for (path, text) in [&[("/paths", "")], files].concat() {
            let place = folder.path().join(path.trim_start_matches('/'));
            fs::create_dir_all(place.parent().expect("below the folder")).expect("a folder");
            fs::write(place, text).expect("a file");
        }
        let system = System::recorded(folder.path()).expect("a recorded machine");
        (folder, system)
    }

    fn limits_of(system: &System, devices: &[(&str, DeviceNumber)]) -> Vec<IoLimit> {
        let devices: Vec<(String, DeviceNumber)> =
            devices.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect();
        io_limits(system, &mounts(system).expect("a mount table"), &devices).value.expect("known limits")
    }

    fn described(limits: &[IoLimit]) -> Vec<String> {
        limits.iter().map(|limit| format!("{} {}", limit.group, limit.describe())).collect()
    }

    const V1: &str = "38 31 0:35 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n\
                      41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
    const V2: &str = "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n";
    const VDA: DeviceNumber = (254, 0);

    #[test]
    fn version_1_limits_the_groups_own_processes_on_their_devices_only() {
        let (_folder, system) = machine(&[
            ("/proc/self/mountinfo", V1),
            ("/proc/self/cgroup", "7:blkio:/jobs/own\n0::/elsewhere\n"),
            ("/sys/fs/cgroup/blkio/jobs/blkio.throttle.read_bps_device", "254:0 4096\n"),
            ("/sys/fs/cgroup/blkio/jobs/own/blkio.throttle.read_bps_device", "7:0 1048576\n8:0 5\n254:0 2097152\n"),
            ("/sys/fs/cgroup/blkio/jobs/own/blkio.throttle.write_iops_device", "254:0 100\n"),
            (
                "/sys/fs/cgroup/blkio/jobs/own/blkio.throttle.io_service_bytes",
                "254:0 Read 8192\n254:0 Write 4096\n254:0 Sync 12288\n254:0 Total 12288\n7:0 Read 1\nTotal 12289\n",
            ),
            ("/sys/fs/cgroup/blkio/jobs/own/blkio.throttle.io_serviced", "254:0 Read 2\n254:0 Write 1\nTotal 3\n"),
        ]);
        let limits = limits_of(&system, &[("loop0", (7, 0)), ("vda", VDA)]);
        assert_eq!(
            described(&limits),
            [
                "/jobs/own reads of loop0 to 1.00 MiB/s",
                "/jobs/own reads of vda to 2.00 MiB/s",
                "/jobs/own writes to vda to 100 per second"
            ]
        );
        let moved = group_io(&system, &limits[1]).expect("it is counted");
        let expected =
            GroupIo { read_bytes: 8192, write_bytes: 4096, read_count: 2, write_count: 1, ..GroupIo::default() };
        assert_eq!(moved, expected);
        let of_loop = group_io(&system, &limits[0]).expect("it is counted");
        assert_eq!((of_loop.read_bytes, of_loop.read_count), (1, 0), "a device without I/O has no line");
        assert_eq!(limits_of(&system, &[("sdb", (8, 16))]), [], "limits of other disks do not matter");
    }

    #[test]
    fn a_limit_that_is_set_and_lifted_is_read_as_it_is() {
        let file = "/sys/fs/cgroup/blkio/own/blkio.throttle.read_bps_device";
        let (folder, system) = machine(&[
            ("/proc/self/mountinfo", V1),
            ("/proc/self/cgroup", "7:blkio:/own\n"),
            ("/sys/class/block/vda/dev", "254:0\n"),
            (file, ""),
        ]);
        let mut files = RateLimits::of(&system, ["/data/file", "vda"]);
        assert_eq!(files.now(), []);
        let set = |text: &str| fs::write(folder.path().join(&file[1..]), text).expect("a file");
        set("254:0 4096\n7:0 1\n");
        assert_eq!(described(&files.now()), ["/own reads of vda to 4.00 KiB/s"]);
        set("");
        assert_eq!(files.now(), []);
    }

    #[test]
    fn version_2_limits_hold_for_all_groups_below() {
        let (_folder, system) = machine(&[
            ("/proc/self/mountinfo", V2),
            ("/proc/self/cgroup", "0::/jobs/own\n"),
            ("/sys/fs/cgroup/jobs/io.max", "254:0 rbps=max wbps=1048576 riops=max wiops=50\n"),
            ("/sys/fs/cgroup/jobs/own/io.max", "8:0 rbps=1 wbps=max riops=max wiops=max\n"),
            ("/sys/fs/cgroup/jobs/own/io.latency", "254:0 target=10000\n"),
            ("/sys/fs/cgroup/jobs/own/io.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=77\nfull total=7\n"),
            ("/sys/fs/cgroup/jobs/own/io.weight", "default 100\n254:0 25\n"),
            (
                "/sys/fs/cgroup/jobs/own/io.stat",
                "254:0 rbytes=4096 wbytes=8192 rios=1 wios=2 dbytes=0 dios=0 cost.usage=9 cost.wait=40 cost.indebt=7 \
                 cost.indelay=2\n",
            ),
        ]);
        let limits = limits_of(&system, &[("vda", VDA)]);
        assert_eq!(
            described(&limits),
            [
                "/jobs writes to vda to 1.00 MiB/s",
                "/jobs writes to vda to 50 per second",
                "/jobs/own others on vda if its own I/Os take more than 10.0 ms (io.latency)",
                "/jobs/own its use of vda to weight 25 (io.cost)"
            ]
        );
        let moved = group_io(&system, &limits[2]).expect("it is counted");
        let delays = GroupIo { delayed_us: Some(42), stalled_us: Some(77), ..GroupIo::default() };
        let expected = GroupIo { read_bytes: 4096, write_bytes: 8192, read_count: 1, write_count: 2, ..delays };
        assert_eq!(moved, expected);
        assert_eq!(group_io(&system, &limits[0]), None, "the group above has no io.stat here");
    }

    #[test]
    fn without_control_groups_limits_are_unknown_and_without_devices_there_are_none() {
        let (_folder, system) = machine(&[("/proc/self/mountinfo", ""), ("/proc/self/cgroup", "0::/\n")]);
        let found = io_limits(&system, &[], &[("vda".to_owned(), VDA)]);
        assert_eq!(found.value, None);
        assert_eq!(io_limits(&system, &[], &[]).value, Some(Vec::new()));
    }
}
