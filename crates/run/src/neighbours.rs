//! Looks for I/O of other processes: before a phase, to wait until it ends, and during it, for the display.
//!
//! Reads `/sys/block/<disk>/stat` of the disks under the targets, and before a phase also of the disks below a loop device's file. Before a
//! phase, all I/O that they count belongs to other processes. During a phase, this much belongs to them: if the phase only reads, all writes;
//! if it only writes past the page cache, all reads; if it only reads past the page cache, the reads beyond its own bytes.
//!
//! A trace of the disks' requests shows which program did it. Without a trace, the control group is reported whose count of bytes on these
//! disks (`io.stat`, version 2) grew most. `/proc/PID/io` is not used: it counts all disks, the page cache, and children that have ended.
//!
//! Cannot see: I/O in the same direction as a job that writes; without the right to trace, the program. What is displayed here
//! changes no verdict: `foreign_io` judges the phase.
//!
//! Thresholds: idle is a second with fewer than [`IDLE_REQUEST_COUNT_MAX`] requests and the disks busy for less than 5 % of
//! it. During a phase, 4 MiB or 256 requests of others in a second are announced.
//!
//! Source: Linux `Documentation/block/stat.rst`, `Documentation/admin-guide/cgroup-v2.rst` (`io.stat`).

use std::collections::HashMap;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use trueio_device::{System, counters};
use trueio_evidence::{Direction, DiskUser, DiskUsers};
use trueio_model::{DeviceCounters, JobPlan, LayerKind, TargetFacts, units};

/// Length of a look, and of the idle time that a wait requires.
const LOOK: Duration = Duration::from_secs(1);
/// Requests in a second that an idle disk may have: a journal's commit, a log line.
const IDLE_REQUEST_COUNT_MAX: u64 = 8;
const IDLE_BUSY_SHARE_MAX: f64 = 0.05;
const SEEN_BYTES_MIN: u64 = 4 << 20;
const SEEN_REQUEST_COUNT_MIN: u64 = 256;

/// The disks of targets, and what they counted at the last look.
#[derive(Debug)]
pub(crate) struct Lookout<'a> {
    system: &'a System,
    disks: Vec<String>,
    at: Instant,
    /// One per disk.
    last: Vec<DeviceCounters>,
    /// Finds who uses the disks; `None` until others' I/O was seen once.
    namer: Option<Namer>,
}

/// What finds who uses disks.
#[derive(Debug)]
enum Namer {
    /// A trace of their requests.
    Trace(Box<DiskUsers>),
    /// Bytes that each control group had moved to and from them at the last look.
    Groups(HashMap<String, u64>),
}

/// What the disks of a phase did in the last second.
#[derive(Debug, Clone, PartialEq)]
pub struct Watched {
    /// Bytes per second that the jobs transferred.
    pub own_bytes_per_s: u64,
    /// Bytes per second that the disks read.
    pub read_bytes_per_s: u64,
    /// Bytes per second that the disks wrote.
    pub write_bytes_per_s: u64,
    /// The part of the time in which the disks had a request in flight, from 0 to 1.
    pub busy_share: f64,
    /// I/O of other processes, in words; `None` if none was seen.
    pub others: Option<String>,
}

/// I/O of all disks between two looks.
#[derive(Debug, Clone)]
struct Moved {
    seconds: f64,
    reads: u64,
    read_bytes: u64,
    writes: u64,
    write_bytes: u64,
    busy_share: f64,
    of_disks: Vec<OfDisk>,
}

/// I/O of one disk between two looks.
#[derive(Debug, Clone, Copy)]
struct OfDisk {
    requests: u64,
    read_bytes: u64,
    write_bytes: u64,
}

impl OfDisk {
    fn bytes(self) -> u64 {
        self.read_bytes + self.write_bytes
    }
}

impl<'a> Lookout<'a> {
    /// Watches the disks of targets, and those of a loop device's file, which must be idle before a phase, too.
    pub(crate) fn before(system: &'a System, targets: &[TargetFacts]) -> Self {
        let mut lookout = Self::new(system, targets);
        let layers = targets.iter().flat_map(|target| &target.stack);
        for disk in layers.filter(|layer| layer.kind == LayerKind::Disk) {
            if !lookout.disks.contains(&disk.name) {
                lookout.disks.push(disk.name.clone());
            }
        }
        lookout
    }

    /// Watches the disks of targets.
    pub(crate) fn new(system: &'a System, targets: &[TargetFacts]) -> Self {
        let mut disks: Vec<String> = Vec::new();
        for disk in targets.iter().flat_map(|target| &target.disks) {
            if !disks.contains(&disk.name) {
                disks.push(disk.name.clone());
            }
        }
        let mut lookout = Self { system, disks, at: Instant::now(), last: Vec::new(), namer: None };
        lookout.last = lookout.count();
        lookout
    }

    fn count(&self) -> Vec<DeviceCounters> {
        self.disks.iter().map(|disk| counters(self.system, disk).unwrap_or_default()).collect()
    }

    /// Returns what the disks did since the last look, which is now.
    fn look(&mut self) -> Moved {
        let (now, count) = (Instant::now(), self.count());
        let seconds = (now - self.at).as_secs_f64().max(1e-6);
        let last = std::mem::replace(&mut self.last, count);
        let pairs = || self.last.iter().zip(&last);
        let since = |of: fn(&DeviceCounters) -> u64| pairs().map(|(now, last)| of(now).saturating_sub(of(last))).sum();
        let disks = self.disks.len().max(1) as f64;
        let busy_ms: u64 = since(|c| c.busy_ms);
        let of_disk = |(now, last): (&DeviceCounters, &DeviceCounters)| {
            let of = |value: fn(&DeviceCounters) -> u64| value(now).saturating_sub(value(last));
            OfDisk {
                requests: of(|c| c.read_count + c.write_count),
                read_bytes: of(|c| c.read_bytes),
                write_bytes: of(|c| c.write_bytes),
            }
        };
        self.at = now;
        Moved {
            seconds,
            reads: since(|c| c.read_count),
            read_bytes: since(|c| c.read_bytes),
            writes: since(|c| c.write_count),
            write_bytes: since(|c| c.write_bytes),
            busy_share: busy_ms as f64 / 1e3 / seconds / disks,
            of_disks: pairs().map(of_disk).collect(),
        }
    }

    /// Returns what the disks did since the last look, once a second; `own_bytes` are those of the jobs meanwhile.
    pub(crate) fn watch(&mut self, plans: &[&JobPlan], own_bytes: u64) -> Option<Watched> {
        if self.disks.is_empty() || self.at.elapsed() < LOOK {
            return None;
        }
        let moved = self.look();
        let scale = |count: u64| (count as f64 / moved.seconds) as u64;
        let watched = Watched {
            own_bytes_per_s: scale(own_bytes),
            read_bytes_per_s: scale(moved.read_bytes),
            write_bytes_per_s: scale(moved.write_bytes),
            busy_share: moved.busy_share.min(1.0),
            others: None,
        };
        let (verb, requests, bytes) = match Direction::of(plans) {
            Direction::Reads { is_direct } => {
                let excess = moved.read_bytes.saturating_sub(own_bytes + own_bytes / 4);
                match is_direct && excess > moved.write_bytes {
                    true => ("reads", 0, excess),
                    false => ("writes", moved.writes, moved.write_bytes),
                }
            }
            Direction::Writes => ("reads", moved.reads, moved.read_bytes),
            Direction::Both => return Some(watched),
        };
        if scale(bytes) < SEEN_BYTES_MIN && scale(requests) < SEEN_REQUEST_COUNT_MIN {
            self.namer = None;
            return Some(watched);
        }
        let in_direction = |of: OfDisk| if verb == "reads" { of.read_bytes } else { of.write_bytes };
        let user = self.busiest(&moved);
        let unknown = || DiskUser { who: "another process".to_owned(), disk: self.busiest_disk(&moved, in_direction) };
        let DiskUser { who, disk } = user.unwrap_or_else(unknown);
        // Of several disks, others may have used a part.
        let of_disk = self.of_disk(&moved, &disk).map_or(bytes, in_direction);
        let rate = units::format_bandwidth(bytes.min(of_disk) as f64 / moved.seconds);
        Some(Watched { others: Some(format!("{who} {verb} {rate} on {disk}")), ..watched })
    }

    /// Waits until the disks have been idle for a second.
    ///
    /// # Errors
    /// What kept them busy, if that took longer than `limit`.
    pub(crate) fn wait_until_idle(
        &mut self,
        limit: Duration,
        stop: &AtomicBool,
        mut notify: impl FnMut(&str),
    ) -> Result<(), String> {
        let begin = Instant::now();
        self.look();
        while !stop.load(Relaxed) && !self.disks.is_empty() {
            // In pieces, so that a signal ends the wait.
            for _ in 0..10 {
                if !stop.load(Relaxed) {
                    std::thread::sleep(LOOK / 10);
                }
            }
            let moved = self.look();
            let user = self.busiest(&moved);
            let requests = (moved.reads + moved.writes) as f64 / moved.seconds;
            if requests < IDLE_REQUEST_COUNT_MAX as f64 && moved.busy_share < IDLE_BUSY_SHARE_MAX {
                return Ok(());
            }
            let words = self.use_words(user, &moved);
            if begin.elapsed() >= limit {
                return Err(words);
            }
            notify(&words);
        }
        Ok(())
    }

    /// `dd (pid 812) uses loop0: 100 MiB/s in 200 requests/s`: the disk that it uses, because a loop device's I/O is also that of the disk below.
    fn use_words(&self, user: Option<DiskUser>, moved: &Moved) -> String {
        let unknown = || DiskUser { who: "another process".to_owned(), disk: self.busiest_disk(moved, OfDisk::bytes) };
        let DiskUser { who, disk } = user.unwrap_or_else(unknown);
        let of_disk = self.of_disk(moved, &disk);
        let (requests, bytes) = of_disk.map_or((0, 0), |of| (of.requests, of.bytes()));
        let bytes = units::format_bandwidth(bytes as f64 / moved.seconds);
        format!("{who} uses {disk}: {bytes} in {:.0} requests/s", requests as f64 / moved.seconds)
    }

    fn of_disk(&self, moved: &Moved, disk: &str) -> Option<OfDisk> {
        let found = self.disks.iter().zip(&moved.of_disks).find(|(name, _)| **name == disk);
        found.map(|(_, of_disk)| *of_disk)
    }

    /// Returns the disk with most of some bytes.
    fn busiest_disk(&self, moved: &Moved, bytes: impl Fn(OfDisk) -> u64) -> String {
        let most = self.disks.iter().zip(&moved.of_disks).max_by_key(|(_, of_disk)| bytes(**of_disk));
        most.map(|(disk, _)| disk.clone()).unwrap_or_default()
    }

    /// Returns who moved most bytes to and from a disk since the last call; `None` at the first call.
    fn busiest(&mut self, moved: &Moved) -> Option<DiskUser> {
        match &mut self.namer {
            None => {
                let trace = DiskUsers::begin(self.system, &self.disks);
                self.namer =
                    Some(trace.map_or_else(|_| Namer::Groups(self.groups()), |trace| Namer::Trace(Box::new(trace))));
                None
            }
            Some(Namer::Trace(trace)) => trace.busiest(),
            Some(Namer::Groups(_)) => {
                let now = self.groups();
                let Some(Namer::Groups(last)) = self.namer.replace(Namer::Groups(now.clone())) else { return None };
                Some(DiskUser { who: busiest_group(&last, &now)?, disk: self.busiest_disk(moved, OfDisk::bytes) })
            }
        }
    }

    /// Returns the bytes that each control group moved to and from the disks; empty without groups of version 2.
    fn groups(&self) -> HashMap<String, u64> {
        const DEPTH_MAX: usize = 16;
        let root = self.system.locate("/sys/fs/cgroup");
        let number = |disk: &String| fs::read_to_string(self.system.locate(&format!("/sys/block/{disk}/dev"))).ok();
        let numbers: Vec<String> = self.disks.iter().filter_map(number).map(|text| text.trim().to_owned()).collect();
        let mut groups = HashMap::new();
        let mut pending = vec![(root.clone(), 0)];
        while let Some((directory, depth)) = pending.pop() {
            if let Ok(text) = fs::read_to_string(directory.join("io.stat"))
                && let Ok(name) = directory.strip_prefix(&root)
                && depth > 0
            {
                groups.insert(format!("/{}", name.display()), bytes_of(&text, &numbers));
            }
            let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
            let below = entries.filter(|entry| depth < DEPTH_MAX && entry.file_type().is_ok_and(|kind| kind.is_dir()));
            pending.extend(below.map(|entry| (entry.path(), depth + 1)));
        }
        groups
    }
}

/// Sums what a group's `io.stat` counts for devices, given by their numbers (`254:0`).
fn bytes_of(text: &str, numbers: &[String]) -> u64 {
    let of_line = |line: &str| -> u64 {
        let Some((number, rest)) = line.split_once(' ') else { return 0 };
        let value = |key: &str| rest.split(' ').find_map(|word| word.strip_prefix(key)?.parse::<u64>().ok());
        let is_ours = numbers.iter().any(|known| known == number);
        if is_ours { value("rbytes=").unwrap_or(0) + value("wbytes=").unwrap_or(0) } else { 0 }
    };
    text.lines().map(of_line).sum()
}

/// Returns the group whose bytes grew most, in words. A group's bytes are also those of the groups above it, so the deepest counts.
fn busiest_group(last: &HashMap<String, u64>, now: &HashMap<String, u64>) -> Option<String> {
    let grown = now.iter().map(|(group, bytes)| (bytes.saturating_sub(last.get(group).copied().unwrap_or(0)), group));
    let (bytes, group) = grown.max_by_key(|(bytes, group)| (*bytes, group.matches('/').count()))?;
    (bytes > 0).then(|| format!("control group `{group}`"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::{Path, PathBuf};

    fn busiest(lookout: &mut Lookout<'_>) -> Option<DiskUser> {
        let moved = lookout.look();
        lookout.busiest(&moved)
    }

    /// Goal: a program is named as it was when it did the I/O, and one that did none on these disks is not.
    /// Method: a shell runs `dd`, waits for it, and becomes `sleep`. `/proc/PID/io` counts the bytes of `dd` for `sleep`.
    #[test]
    fn a_program_that_ended_is_named_and_the_one_that_it_left_behind_is_not() {
        let system = System::live();
        let folder = tempfile::tempdir_in(".").expect("a folder");
        let facts = trueio_device::target_facts(&system, folder.path()).expect("facts");
        let mut lookout = Lookout::new(&system, &[facts]);
        assert_eq!(busiest(&mut lookout), None, "nothing to compare with");
        if !matches!(lookout.namer, Some(Namer::Trace(_))) {
            return println!("skipped: requests cannot be traced here");
        }
        let script = "dd if=/dev/zero of=\"$0\" bs=1M count=64 oflag=direct 2>/dev/null; exec sleep 60";
        let mut child = std::process::Command::new("sh");
        let mut child = child.args(["-c", script]).arg(folder.path().join("x")).spawn().expect("sh starts");
        let comm = format!("/proc/{}/comm", child.id());
        while fs::read_to_string(&comm).is_ok_and(|name| name.trim() != "sleep") {
            std::thread::sleep(Duration::from_millis(5));
        }
        let user = busiest(&mut lookout);
        let _ = child.kill();
        let _ = child.wait();
        let who = user.expect("somebody wrote 64 MiB").who;
        assert!(!who.starts_with("sleep") && !who.starts_with("sh "), "{who}");
        // Others may be busier on this machine.
        if who.starts_with("dd ") {
            assert!(who.ends_with(", which has ended)"), "{who}");
        }
    }

    /// Goal: write-back is reported with the program that wrote the pages, by the name that it had then, even if it has ended and a thread of
    /// the kernel submits the requests. Method: on a private disk, a shell runs `dd` through the page cache, syncs, and becomes `sleep`; then a
    /// shell that writes a file itself becomes `sleep`.
    #[test]
    fn write_back_is_named_by_the_program_that_wrote_and_not_by_what_it_became() {
        let system = System::live();
        let mount = match trueio_testkit::on_loop("ext4", 128 << 20, 512, "noatime") {
            Ok(mount) => mount,
            Err(why) => return trueio_testkit::skip("loop", &why),
        };
        let facts = trueio_device::target_facts(&system, &mount.path).expect("facts");
        let mut lookout = Lookout::new(&system, &[facts]);
        assert_eq!(busiest(&mut lookout), None, "nothing to compare with");
        if !matches!(lookout.namer, Some(Namer::Trace(_))) {
            return println!("skipped: requests cannot be traced here");
        }
        let write = "dd if=/dev/zero of=\"$0\" bs=1M count=32 2>/dev/null";
        let itself = "text=$(printf %4096s); for i in $(seq 2048); do echo \"$text\"; done > \"$0\"";
        let ends = [(write, "dd (thread ", ", which has ended)"), (itself, "sh (pid ", ")")];
        for (number, (writes, begin, end)) in ends.into_iter().enumerate() {
            let script = format!("{writes}; sync -f \"$0\"; exec sleep 60");
            let file = mount.path.join(number.to_string());
            let mut child = std::process::Command::new("sh");
            let mut child = child.args(["-c", &script]).arg(file).spawn().expect("sh starts");
            let comm = format!("/proc/{}/comm", child.id());
            while fs::read_to_string(&comm).is_ok_and(|name| name.trim() != "sleep") {
                std::thread::sleep(Duration::from_millis(5));
            }
            let who = busiest(&mut lookout).expect("somebody wrote").who;
            let _ = child.kill();
            let _ = child.wait();
            let begin = format!("write-back of dirty pages, by {begin}");
            assert!(who.starts_with(&begin) && who.ends_with(end) && !who.contains("sleep"), "{who}");
        }
        assert!(
            busiest(&mut lookout).is_none_or(|user| !user.who.contains(" by ")),
            "what was written back is forgotten"
        );
    }

    /// Goal: who uses a loop device is named with that device and its bytes, not the kernel's thread that passes them on to the disk below, and who
    /// uses the disk below with that one. Method: a program writes past the page cache, once to each.
    #[test]
    fn a_user_of_a_loop_device_is_named_and_not_the_thread_that_passes_its_io_on() {
        let system = System::live();
        // Its driver passes each request on at once, and not through the page cache.
        let device = match trueio_testkit::Loop::create(64 << 20, &["--direct-io=on"]) {
            Ok(device) => device,
            Err(why) => return trueio_testkit::skip("loop", &why),
        };
        let facts = [trueio_device::target_facts(&system, Path::new(&device.device)).expect("facts")];
        let mut lookout = Lookout::before(&system, &facts);
        assert_eq!(busiest(&mut lookout), None, "nothing to compare with");
        if !matches!(lookout.namer, Some(Namer::Trace(_))) {
            return println!("skipped: requests cannot be traced here");
        }
        let below = tempfile::tempdir_in(".").expect("a folder");
        // By a name of its own, since other tests run `dd` as well.
        let writer = below.path().join("loop-user");
        let found = std::process::Command::new("sh").args(["-c", "command -v dd"]).output().expect("sh starts");
        let dd = String::from_utf8_lossy(&found.stdout).trim().to_owned();
        std::os::unix::fs::symlink(dd, &writer).expect("a link");
        let disks = lookout.disks.clone();
        for (path, disk) in [PathBuf::from(&device.device), below.path().join("x")].into_iter().zip(&disks) {
            let output = format!("of={}", path.display());
            let mut seen = Vec::new();
            // Others may be busier on this machine for a while.
            let words = (0..20).find_map(|_| {
                let arguments = ["if=/dev/zero", &output, "bs=1M", "count=64", "oflag=direct"];
                let written = std::process::Command::new(&writer).args(arguments).output().expect("dd starts");
                assert!(written.status.success(), "{written:?}");
                let moved = lookout.look();
                let user = lookout.busiest(&moved).expect("somebody wrote 64 MiB");
                let is_found = user.who.starts_with("loop-user (thread ") && user.disk == *disk;
                seen.push(user.clone());
                is_found.then(|| lookout.use_words(Some(user), &moved))
            });
            let words = words.unwrap_or_else(|| panic!("{disk}: {seen:?}"));
            assert!(words.contains(&format!(" uses {disk}: ")) && !words.contains(" + "), "{words}");
        }
    }

    /// Goal: of several disks, the one that others use is named, with what it did in that direction. Method: recorded counters of two disks; the job
    /// reads one, and somebody writes 64 MiB to the other and 1 MiB to the first.
    #[test]
    fn of_several_disks_the_one_that_others_use_is_named() {
        let root = tempfile::tempdir().expect("a folder");
        let stat = |disk: &str, read: u64, written: u64| {
            let folder = root.path().join("sys/block").join(disk);
            fs::create_dir_all(&folder).expect("a folder");
            let (read, written) = (read / 512, written / 512);
            fs::write(folder.join("stat"), format!("{read} 0 {read} 0 {written} 0 {written} 0 0 0 0\n"))
                .expect("a file");
        };
        fs::write(root.path().join("paths"), "").expect("a file");
        let counted = |reads: u64, writes: u64| {
            stat("vda", reads, writes / 64);
            stat("vdb", 0, writes);
        };
        counted(0, 0);
        let system = System::recorded(root.path()).expect("a recorded machine");
        let disks = ["vda", "vdb"].map(str::to_owned).to_vec();
        let at = Instant::now().checked_sub(2 * LOOK).expect("a machine that has run for some seconds");
        let mut lookout = Lookout { system: &system, disks, at, last: Vec::new(), namer: None };
        lookout.last = lookout.count();
        counted(512 << 20, 64 << 20);
        let job = JobPlan::plain(trueio_model::EngineKind::Psync, 1 << 30);
        let others = lookout.watch(&[&job], 512 << 20).expect("a look").others.expect("others");
        let rate = others.strip_prefix("another process writes ").and_then(|rest| rest.strip_suffix("MiB/s on vdb"));
        let rate: f64 = rate.unwrap_or_else(|| panic!("{others}")).trim().parse().expect("a number");
        // In two seconds or more, on a busy machine.
        assert!(rate > 1.0 && rate <= 32.0, "{others}");
    }

    #[test]
    fn the_deepest_control_group_with_most_bytes_on_the_disks_is_named() {
        let text = "7:0 rbytes=9 wbytes=9\n254:0 rbytes=4096 wbytes=8192 rios=1 wios=2 dbytes=0 dios=0\n";
        assert_eq!(bytes_of(text, &["254:0".to_owned()]), 12_288);
        let groups = |all: &[(&str, u64)]| all.iter().map(|(name, bytes)| ((*name).to_owned(), *bytes)).collect();
        let last = groups(&[("/a", 100), ("/b", 5_000)]);
        let now = groups(&[("/a", 900), ("/a/c", 800), ("/b", 5_000)]);
        assert_eq!(busiest_group(&last, &now).as_deref(), Some("control group `/a/c`"));
        assert_eq!(busiest_group(&now, &now), None);
    }

    #[test]
    fn the_disk_below_a_loop_device_is_watched_before_a_phase_only() {
        let system = System::live();
        let mount = match trueio_testkit::on_loop("ext4", 64 << 20, 512, "noatime") {
            Ok(mount) => mount,
            Err(why) => return trueio_testkit::skip("loop", &why),
        };
        let facts = trueio_device::target_facts(&system, &mount.path).expect("facts");
        let disks = facts.stack.iter().filter(|layer| layer.kind == LayerKind::Disk).count();
        let facts = [facts];
        let (during, before) = (Lookout::new(&system, &facts).disks, Lookout::before(&system, &facts).disks);
        assert!(during.len() == 1 && during[0].starts_with("loop"), "{during:?}");
        assert_eq!((&before[..1], before.len()), (&during[..], 1 + disks), "{before:?}");
    }

    #[test]
    fn a_wait_without_a_disk_ends_at_once_and_a_stop_ends_any() {
        let system = System::live();
        let stop = AtomicBool::new(false);
        assert_eq!(Lookout::new(&system, &[]).wait_until_idle(Duration::ZERO, &stop, |_| {}), Ok(()));
    }
}
