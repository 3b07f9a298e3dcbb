//! What the control groups of this process allow it, and how long they kept it from running.
//!
//! A process is in one control group of each hierarchy: version 2 has one hierarchy for all controllers, version 1
//! separate ones. A limit of a group holds for all groups below it, so each function here examines the process's own
//! group and all groups above it that are visible. In a container the visible ones end at the container's own.
//!
//! Cannot see: groups above those that are mounted; real-time bandwidth.
//!
//! Source: Linux `Documentation/admin-guide/cgroup-v2.rst` and `cgroup-v1/`, `Documentation/scheduler/sched-bwc.rst`;
//! cgroups(7).

use crate::mounts::{Mount, parse_line};
use crate::system::System;
use std::path::PathBuf;

/// A directory of a control group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Group {
    /// The group's name in its hierarchy (`/jobs/backup`; `/` is the root).
    pub(crate) name: String,
    /// Where its files are.
    pub(crate) path: String,
    pub(crate) is_v2: bool,
}

/// Returns the quota of CPU time, in processors (0.5: half of one processor's time); `None` if there is none.
pub fn cpu_quota(system: &System) -> Option<f64> {
    let quota_of = |group: Group| {
        let read = |file: &str| system.read(&format!("{}/{file}", group.path)).ok();
        let number = |text: &str| text.trim().parse::<f64>().ok();
        let (quota, period) = if group.is_v2 {
            let text = read("cpu.max")?;
            let (quota, period) = text.split_once(' ')?;
            // `max 100000`: no quota.
            (number(quota)?, number(period)?)
        } else {
            (number(&read("cpu.cfs_quota_us")?)?, number(&read("cpu.cfs_period_us")?)?)
        };
        // Version 1 has -1 without a quota.
        (quota > 0.0 && period > 0.0).then_some(quota / period)
    };
    groups(system, "cpu").into_iter().filter_map(quota_of).reduce(f64::min)
}

/// Returns the time for which a control group of this process was throttled because its quota was used up, in
/// nanoseconds, all processors together; that of the group which was throttled longest. `None` if no group counts it.
pub fn throttled_ns(system: &System) -> Option<u64> {
    let throttled_of = |group: Group| {
        let text = system.read(&format!("{}/cpu.stat", group.path)).ok()?;
        let (key, unit_ns) = if group.is_v2 { ("throttled_usec ", 1_000) } else { ("throttled_time ", 1) };
        let value = text.lines().find_map(|line| line.strip_prefix(key)?.trim().parse::<u64>().ok())?;
        Some(value.saturating_mul(unit_ns))
    };
    groups(system, "cpu").into_iter().filter_map(throttled_of).max()
}

/// Returns the memory, page cache included, that the control groups allow this process, in bytes; `None` without a limit.
pub fn memory_limit_bytes(system: &System) -> Option<u64> {
    let limits_of = |group: Group| {
        // Above `memory.high` the kernel reclaims pages at once; version 1 has a huge number without a limit.
        let files: &[&str] = if group.is_v2 { &["memory.max", "memory.high"] } else { &["memory.limit_in_bytes"] };
        let read = |file: &&str| system.read(&format!("{}/{file}", group.path)).ok()?.parse::<u64>().ok();
        files.iter().filter_map(read).min()
    };
    groups(system, "memory").into_iter().filter_map(limits_of).min().filter(|limit| *limit < 1 << 62)
}

/// Returns the number of threads and processes that the control groups of this process allow, and how many exist, of
/// the group that has the fewest left; `None` without a limit.
pub fn thread_limit(system: &System) -> Option<(u64, u64)> {
    let limit_of = |group: Group| {
        let number = |file: &str| system.read(&format!("{}/{file}", group.path)).ok()?.parse::<u64>().ok();
        // `max` is no number: no limit.
        Some((number("pids.max")?, number("pids.current").unwrap_or(0)))
    };
    groups(system, "pids").into_iter().filter_map(limit_of).min_by_key(|(limit, used)| limit.saturating_sub(*used))
}

/// Where the control groups of block I/O are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IoHierarchy {
    /// Its mount point: the directory of the root group.
    pub mount_point: PathBuf,
    /// Version 2, whose groups hold whole processes; those of version 1 hold threads.
    pub is_v2: bool,
}

/// Returns the hierarchy of control groups for block I/O: that of version 1 if it is mounted; `None`: there is none.
pub fn io_hierarchy(system: &System) -> Option<IoHierarchy> {
    let mounts = system.read("/proc/self/mountinfo").unwrap_or_default();
    let mounts = || mounts.lines().filter(|line| line.contains(" - cgroup")).filter_map(parse_line);
    let controls_io = |mount: &Mount| mount.super_options.split(',').any(|option| option == "blkio");
    let of_v1 = mounts().find(|mount| mount.kind.as_str() == "cgroup" && controls_io(mount));
    let found = of_v1.or_else(|| mounts().find(|mount| mount.kind.as_str() == "cgroup2"))?;
    Some(IoHierarchy { is_v2: found.kind.as_str() == "cgroup2", mount_point: found.mount_point })
}

/// Returns the process's own group of a controller and all visible ones above it; empty if none is mounted.
pub(crate) fn groups(system: &System, controller: &str) -> Vec<Group> {
    // A machine may have many mounts, and this is read around every phase: only lines that may match are parsed.
    let mounts = system.read("/proc/self/mountinfo").unwrap_or_default();
    let is_candidate =
        |line: &&str| line.contains(" - cgroup2 ") || (line.contains(" - cgroup ") && line.contains(controller));
    let mounts: Vec<Mount> = mounts.lines().filter(is_candidate).filter_map(parse_line).collect();
    groups_among(system, &mounts, controller)
}

/// Like [`groups`], with mounts that are known already.
pub(crate) fn groups_among(system: &System, mounts: &[Mount], controller: &str) -> Vec<Group> {
    let Ok(text) = system.read("/proc/self/cgroup") else { return Vec::new() };
    // `4:cpu,cpuacct:/path` for version 1, `0::/path` for version 2.
    let find = |is_wanted: &dyn Fn(&str, &str) -> bool| {
        text.lines().find_map(|line| {
            let (number, rest) = line.split_once(':')?;
            let (controllers, path) = rest.split_once(':')?;
            is_wanted(number, controllers).then(|| path.to_owned())
        })
    };
    let of_v1 = find(&|_, controllers| controllers.split(',').any(|one| one == controller));
    let (own, is_v2) = match of_v1 {
        Some(own) => (own, false),
        None => match find(&|number, controllers| number == "0" && controllers.is_empty()) {
            Some(own) => (own, true),
            None => return Vec::new(),
        },
    };
    let is_hierarchy = |mount: &&Mount| match is_v2 {
        true => mount.kind.as_str() == "cgroup2",
        false => mount.kind.as_str() == "cgroup" && mount.super_options.split(',').any(|option| option == controller),
    };
    mounts.iter().filter(is_hierarchy).find_map(|mount| below(mount, &own, is_v2)).unwrap_or_default()
}

/// Returns the groups from `own` up to the mounted one; `None` if `own` is not below the mounted part.
fn below(mount: &Mount, own: &str, is_v2: bool) -> Option<Vec<Group>> {
    let root = mount.root.trim_end_matches('/');
    // Outside of the process's cgroup namespace, paths begin with `/..`.
    let inside = own.strip_prefix(root).filter(|rest| rest.is_empty() || rest.starts_with('/'))?.trim_end_matches('/');
    if inside.split('/').any(|part| part == "..") {
        return None;
    }
    let mut path = format!("{}{inside}", mount.mount_point.to_string_lossy().trim_end_matches('/'));
    let top = path.len() - inside.len();
    let mut groups = Vec::new();
    loop {
        let name = format!("{root}{}", &path[top..]);
        let name = if name.is_empty() { "/".to_owned() } else { name };
        groups.push(Group { name, path: path.clone(), is_v2 });
        if path.len() <= top {
            return Some(groups);
        }
        path.truncate(path.rfind('/').unwrap_or(top).max(top));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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

    const V1: &str = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
                      32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct\n\
                      38 31 0:35 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n\
                      41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
    const V2: &str = "31 23 0:28 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate\n";

    #[test]
    fn a_quota_of_version_1_is_that_of_the_narrowest_group_above_the_process() {
        let (_folder, system) = machine(&[
            ("/proc/self/mountinfo", V1),
            ("/proc/self/cgroup", "7:blkio:/\n1:cpu,cpuacct:/jobs/own\n0::/elsewhere\n"),
            ("/sys/fs/cgroup/cpu/cpu.stat", "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n"),
            ("/sys/fs/cgroup/cpu/jobs/cpu.cfs_quota_us", "50000\n"),
            ("/sys/fs/cgroup/cpu/jobs/cpu.cfs_period_us", "100000\n"),
            ("/sys/fs/cgroup/cpu/jobs/cpu.stat", "nr_periods 21\nnr_throttled 21\nthrottled_time 1939131314\n"),
            ("/sys/fs/cgroup/cpu/jobs/own/cpu.cfs_quota_us", "-1\n"),
            ("/sys/fs/cgroup/cpu/jobs/own/cpu.cfs_period_us", "100000\n"),
        ]);
        assert_eq!(cpu_quota(&system), Some(0.5));
        assert_eq!(throttled_ns(&system), Some(1_939_131_314));
    }

    #[test]
    fn a_quota_of_version_2_counts_microseconds() {
        let (_folder, system) = machine(&[
            ("/proc/self/mountinfo", V2),
            ("/proc/self/cgroup", "0::/user.slice\n"),
            ("/sys/fs/cgroup/user.slice/cpu.max", "max 100000\n"),
            ("/sys/fs/cgroup/user.slice/cpu.stat", "usage_usec 5\nthrottled_usec 12\n"),
        ]);
        assert_eq!((cpu_quota(&system), throttled_ns(&system)), (None, Some(12_000)));
        fs::write(system.locate("/sys/fs/cgroup/user.slice/cpu.max"), "150000 100000\n").expect("a file");
        assert_eq!(cpu_quota(&system), Some(1.5));
    }

    #[test]
    fn the_hierarchy_of_block_io_is_that_of_version_1_where_both_are_mounted() {
        let found = |text: &str| {
            let (_folder, system) = machine(&[("/proc/self/mountinfo", text)]);
            io_hierarchy(&system)
        };
        let hierarchy = |mount_point: &str, is_v2| Some(IoHierarchy { mount_point: mount_point.into(), is_v2 });
        assert_eq!(found(V1), hierarchy("/sys/fs/cgroup/blkio", false));
        assert_eq!(found(V2), hierarchy("/sys/fs/cgroup", true));
        assert_eq!(found("31 23 0:28 / /sys rw - tmpfs tmpfs rw\n"), None);
    }

    #[test]
    fn a_container_sees_its_own_groups_only() {
        let mount = "31 23 0:28 /docker/0f /sys/fs/cgroup rw - cgroup2 cgroup rw\n";
        let (_folder, system) = machine(&[
            ("/proc/self/mountinfo", mount),
            ("/proc/self/cgroup", "0::/docker/0f/inner\n"),
            ("/sys/fs/cgroup/cpu.max", "20000 100000\n"),
        ]);
        assert_eq!(cpu_quota(&system), Some(0.2));
        fs::write(system.locate("/proc/self/cgroup"), "0::/../other\n").expect("a file");
        assert_eq!(cpu_quota(&system), None, "a group outside of the mounted part");
    }

    #[test]
    fn the_limit_of_threads_is_that_of_the_group_with_the_fewest_left() {
        let (_folder, system) = machine(&[
            ("/proc/self/mountinfo", V2),
            ("/proc/self/cgroup", "0::/jobs/own\n"),
            ("/sys/fs/cgroup/jobs/own/pids.max", "max\n"),
            ("/sys/fs/cgroup/jobs/own/pids.current", "2\n"),
        ]);
        assert_eq!(thread_limit(&system), None);
        for (file, text) in [("jobs/pids.max", "500\n"), ("jobs/pids.current", "480\n"), ("jobs/own/pids.max", "100\n")]
        {
            fs::write(system.locate(&format!("/sys/fs/cgroup/{file}")), text).expect("a file");
        }
        assert_eq!(thread_limit(&system), Some((500, 480)), "20 are left there, and 98 in its own group");
    }

    #[test]
    fn the_narrowest_memory_limit_of_all_groups_counts() {
        let v1 = "33 31 0:30 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n";
        let (_folder, system) = machine(&[
            ("/proc/self/mountinfo", v1),
            ("/proc/self/cgroup", "4:memory:/jobs/own\n"),
            ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("/sys/fs/cgroup/memory/jobs/memory.limit_in_bytes", "1073741824\n"),
            ("/sys/fs/cgroup/memory/jobs/own/memory.limit_in_bytes", "9223372036854771712\n"),
        ]);
        assert_eq!(memory_limit_bytes(&system), Some(1 << 30));
        fs::write(system.locate("/sys/fs/cgroup/memory/jobs/memory.limit_in_bytes"), "9223372036854771712")
            .expect("a file");
        assert_eq!(memory_limit_bytes(&system), None, "no limit is a huge number");
        let (_folder, system) = machine(&[
            ("/proc/self/mountinfo", V2),
            ("/proc/self/cgroup", "0::/jobs/own\n"),
            ("/sys/fs/cgroup/jobs/memory.max", "max\n"),
            ("/sys/fs/cgroup/jobs/memory.high", "536870912\n"),
            ("/sys/fs/cgroup/jobs/own/memory.max", "805306368\n"),
        ]);
        assert_eq!(memory_limit_bytes(&system), Some(512 << 20));
    }

    #[test]
    fn without_control_groups_there_is_no_quota() {
        let (_folder, system) = machine(&[]);
        assert_eq!((cpu_quota(&system), throttled_ns(&system)), (None, None));
        assert_eq!(memory_limit_bytes(&system), None);
    }
}
