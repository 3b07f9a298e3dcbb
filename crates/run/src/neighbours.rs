//! Looks for I/O of other processes: before a phase, to wait until they are done, and during it, for the display.
//!
//! Reads `/sys/block/<disk>/stat` of the disks under the targets. Before a phase everything that they count is others' I/O.
//! During a phase that only reads, writes are; in one that only writes past the page cache, reads are; in one that only reads
//! past the page cache, reads beyond its own. The process is the one whose `/proc/PID/io` grew most meanwhile: root sees all
//! processes, others see their own.
//!
//! Cannot see: which child of a process did the I/O, after it has ended; I/O in the same direction as a job that writes; processes of other users, without root. What is announced here
//! changes no verdict: `foreign_io` judges the phase.
//!
//! Thresholds: idle is a second with fewer than [`IDLE_REQUEST_COUNT_MAX`] requests and the disks busy for less than 5 % of
//! it. During a phase, 4 MiB or 256 requests of others in a second are announced.
//!
//! Source: Linux `Documentation/block/stat.rst`, proc_pid_io(5).

use std::collections::HashMap;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};
use trueio_device::{System, counters};
use trueio_evidence::Direction;
use trueio_model::{DeviceCounters, JobPlan, TargetFacts, units};

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
    last: DeviceCounters,
    /// Bytes that each process had moved at the last look; empty until others' I/O was seen once.
    processes: HashMap<i32, u64>,
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

/// I/O between two looks.
#[derive(Debug, Clone, Copy)]
struct Moved {
    seconds: f64,
    reads: u64,
    read_bytes: u64,
    writes: u64,
    write_bytes: u64,
    busy_share: f64,
}

impl<'a> Lookout<'a> {
    pub(crate) fn new(system: &'a System, targets: &[TargetFacts]) -> Self {
        let mut disks: Vec<String> = Vec::new();
        for disk in targets.iter().flat_map(|target| &target.disks) {
            if !disks.contains(&disk.name) {
                disks.push(disk.name.clone());
            }
        }
        let mut lookout =
            Self { system, disks, at: Instant::now(), last: DeviceCounters::default(), processes: HashMap::new() };
        lookout.last = lookout.count();
        lookout
    }

    fn count(&self) -> DeviceCounters {
        let mut sum = DeviceCounters::default();
        for disk in &self.disks {
            let Ok(one) = counters(self.system, disk) else { continue };
            sum.read_count += one.read_count;
            sum.read_bytes += one.read_bytes;
            sum.write_count += one.write_count;
            sum.write_bytes += one.write_bytes;
            sum.busy_ms += one.busy_ms;
        }
        sum
    }

    /// Returns what the disks did since the last look, which is now.
    fn look(&mut self) -> Moved {
        let (now, count) = (Instant::now(), self.count());
        let seconds = (now - self.at).as_secs_f64().max(1e-6);
        let since = |of: fn(&DeviceCounters) -> u64| of(&count).saturating_sub(of(&self.last));
        let disks = self.disks.len().max(1) as f64;
        let moved = Moved {
            seconds,
            reads: since(|c| c.read_count),
            read_bytes: since(|c| c.read_bytes),
            writes: since(|c| c.write_count),
            write_bytes: since(|c| c.write_bytes),
            busy_share: since(|c| c.busy_ms) as f64 / 1e3 / seconds / disks,
        };
        (self.at, self.last) = (now, count);
        moved
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
            self.processes.clear();
            return Some(watched);
        }
        let rate = units::format_bandwidth(bytes as f64 / moved.seconds);
        let who = self.busiest().unwrap_or_else(|| "another process".to_owned());
        let others = Some(format!("{who} {verb} {rate} on {}", self.disks.join(" + ")));
        Some(Watched { others, ..watched })
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
            let who = self.busiest();
            let requests = (moved.reads + moved.writes) as f64 / moved.seconds;
            if requests < IDLE_REQUEST_COUNT_MAX as f64 && moved.busy_share < IDLE_BUSY_SHARE_MAX {
                return Ok(());
            }
            let bytes = units::format_bandwidth((moved.read_bytes + moved.write_bytes) as f64 / moved.seconds);
            let disks = self.disks.join(" + ");
            let who = who.unwrap_or_else(|| "another process".to_owned());
            let words = format!("{who} uses {disks}: {bytes} in {requests:.0} requests/s");
            if begin.elapsed() >= limit {
                return Err(words);
            }
            notify(&words);
        }
        Ok(())
    }

    /// Returns the other process that moved most bytes since the last call: `dd (pid 812)`; `None` at the first call.
    fn busiest(&mut self) -> Option<String> {
        let own = std::process::id() as i32;
        let now: HashMap<i32, u64> =
            processes().filter(|pid| *pid != own).filter_map(|pid| Some((pid, moved_by(pid)?))).collect();
        let last = std::mem::replace(&mut self.processes, now);
        if last.is_empty() {
            return None;
        }
        // A process that began meanwhile moved all of its bytes meanwhile.
        let grown = |(pid, bytes): (&i32, &u64)| (bytes.saturating_sub(last.get(pid).copied().unwrap_or(0)), *pid);
        let (bytes, pid) = self.processes.iter().map(grown).max()?;
        let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
        (bytes > 0).then(|| format!("{} (pid {pid})", name.trim_end()))
    }
}

fn processes() -> impl Iterator<Item = i32> {
    fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Bytes that a process caused to be read from and written to disks.
fn moved_by(pid: i32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/io")).ok()?;
    let value = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse::<u64>().ok());
    Some(value("read_bytes:")? + value("write_bytes:")?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    #[test]
    fn the_busiest_process_is_the_one_that_moved_most_meanwhile() {
        let system = System::live();
        let mut lookout = Lookout::new(&system, &[]);
        assert_eq!(lookout.busiest(), None, "nothing to compare with");
        // This process is excluded; a child that writes is found.
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("x");
        let mut child = std::process::Command::new("sh")
            .args(["-c", "read _; dd if=/dev/zero of=\"$0\" bs=1M count=64 conv=fsync 2>/dev/null; read _"])
            .arg(&path)
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("sh starts");
        let mut stdin = child.stdin.take().expect("a pipe");
        lookout.busiest();
        stdin.write_all(b"\n").expect("it reads");
        while fs::metadata(&path).map_or(0, |facts| facts.len()) < 64 << 20 {
            std::thread::sleep(Duration::from_millis(5));
        }
        // Others may be busier on this machine; some process is.
        assert!(lookout.busiest().is_some_and(|who| who.contains(" (pid ")));
        drop(stdin);
        let _ = child.wait();
    }

    #[test]
    fn a_wait_without_a_disk_ends_at_once_and_a_stop_ends_any() {
        let system = System::live();
        let stop = AtomicBool::new(false);
        assert_eq!(Lookout::new(&system, &[]).wait_until_idle(Duration::ZERO, &stop, |_| {}), Ok(()));
    }
}
