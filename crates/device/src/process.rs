//! The kernel's counters of this process and of the processors.
//!
//! `read_bytes` of `/proc/self/io` is good evidence of reads: it counts the bytes that were fetched from a storage
//! device for this process, without page cache hits. `write_bytes` is deliberately not read: it counts pages made dirty,
//! and direct writes *before* they are checked. One thousand misaligned direct writes that all failed with EINVAL
//! increased it by 4,096,000 bytes although the disk was not written (measured on Linux 6.18, ext4, XFS and a raw
//! disk). So it is no evidence of writes.
//!
//! Source: proc_pid_io(5), proc_stat(5).

use crate::error::DeviceError;
use crate::system::System;

/// The bytes that a process read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProcessIo {
    /// Bytes fetched from storage for this process, all threads together.
    pub read_bytes: u64,
}

/// Reads `/proc/self/io`.
///
/// # Errors
/// The kernel was built without `CONFIG_TASK_IO_ACCOUNTING`, or the file cannot be parsed.
pub fn process_io(system: &System) -> Result<ProcessIo, DeviceError> {
    let path = "/proc/self/io";
    let text = system.read(path).map_err(|source| DeviceError::Kernel { path: path.to_owned(), source })?;
    let found = text.lines().find_map(|line| line.strip_prefix("read_bytes:")?.trim().parse().ok());
    match found {
        Some(read_bytes) => Ok(ProcessIo { read_bytes }),
        None => Err(DeviceError::Malformed {
            path: path.to_owned(),
            text,
            reason: "a line `read_bytes: N` was expected".to_owned(),
        }),
    }
}

/// Time of all processors together since boot, in ticks of 1/100 s.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTicks {
    /// Total time, including idle time.
    pub total: u64,
    /// Time for which the hypervisor ran other machines while this one was ready to run.
    pub steal: u64,
    /// Time in which processors ran programs, the kernel or interrupts.
    pub busy: u64,
    /// Of it, time in interrupts (`irq`, `softirq`).
    pub interrupts: u64,
}

/// Reads the first line of `/proc/stat`.
///
/// # Errors
/// The file cannot be read or parsed.
pub fn cpu_ticks(system: &System) -> Result<CpuTicks, DeviceError> {
    let path = "/proc/stat";
    let text = system.read(path).map_err(|source| DeviceError::Kernel { path: path.to_owned(), source })?;
    let line = text.lines().next().unwrap_or_default();
    // cpu user nice system idle iowait irq softirq steal guest guest_nice. User time includes guest time.
    let values: Option<Vec<u64>> =
        line.strip_prefix("cpu ").and_then(|rest| rest.split_whitespace().map(|n| n.parse().ok()).collect());
    match values {
        Some(values) if values.len() >= 8 => Ok(CpuTicks {
            total: values[..8].iter().sum(),
            steal: values[7],
            busy: values[0] + values[1] + values[2] + values[5] + values[6],
            interrupts: values[5] + values[6],
        }),
        _ => Err(DeviceError::Malformed {
            path: path.to_owned(),
            text: line.to_owned(),
            reason: "`cpu` and at least 8 numbers were expected".to_owned(),
        }),
    }
}

/// Returns the time of all threads of the kernel together since boot, in ticks of 1/100 s: some milliseconds on a machine with hundreds of
/// processes.
pub fn kernel_thread_ticks(system: &System) -> u64 {
    /// `PF_KTHREAD` of a task's flags.
    const KERNEL: u64 = 0x0020_0000;
    let ticks = |name: String| -> Option<u64> {
        name.parse::<u32>().ok()?;
        let stat = system.read(&format!("/proc/{name}/stat")).ok()?;
        // The name is in parentheses and may contain any character; flags, utime and stime are the 7th, 12th and 13th value after it.
        let values: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().take(13).collect();
        let value = |index: usize| values.get(index)?.parse::<u64>().ok();
        (value(6)? & KERNEL != 0).then_some(value(11)? + value(12)?)
    };
    system.list("/proc").into_iter().filter_map(ticks).sum()
}

/// Returns the time for which the kernel's workers (`kworker`) waited for a processor since they began, all together, in nanoseconds: they complete
/// direct writes of filesystems. `None` if the kernel does not count it. Some milliseconds on a machine with hundreds of processes.
pub fn kernel_worker_wait_ns(system: &System) -> Option<u64> {
    let wait_ns = |name: String| -> Option<u64> {
        name.parse::<u32>().ok()?;
        system.read(&format!("/proc/{name}/comm")).ok().filter(|name| name.starts_with("kworker/"))?;
        system.read(&format!("/proc/{name}/schedstat")).ok()?.split_whitespace().nth(1)?.parse().ok()
    };
    let waits: Vec<u64> = system.list("/proc").into_iter().filter_map(wait_ns).collect();
    (!waits.is_empty()).then(|| waits.into_iter().sum())
}

/// Time of one processor since boot, in ticks of 1/100 s.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessorTicks {
    /// Number of the processor.
    pub cpu: u32,
    /// Total time.
    pub total: u64,
    /// Idle time, with or without outstanding I/O.
    pub idle: u64,
}

/// Reads the lines of single processors in `/proc/stat`; processors that are offline have none.
///
/// # Errors
/// The file cannot be read, or has no such line.
pub fn processor_ticks(system: &System) -> Result<Vec<ProcessorTicks>, DeviceError> {
    let path = "/proc/stat";
    let text = system.read(path).map_err(|source| DeviceError::Kernel { path: path.to_owned(), source })?;
    let of_line = |line: &str| {
        let (name, rest) = line.strip_prefix("cpu")?.split_once(' ')?;
        let values: Vec<u64> = rest.split_whitespace().map_while(|n| n.parse().ok()).collect();
        let cpu = name.parse().ok().filter(|_| values.len() >= 8)?;
        Some(ProcessorTicks { cpu, total: values[..8].iter().sum(), idle: values[3] + values[4] })
    };
    let all: Vec<ProcessorTicks> = text.lines().filter_map(of_line).collect();
    match all.is_empty() {
        false => Ok(all),
        true => Err(DeviceError::Malformed {
            path: path.to_owned(),
            text: text.lines().next().unwrap_or_default().to_owned(),
            reason: "a line `cpu0` and at least 8 numbers were expected".to_owned(),
        }),
    }
}

/// Returns the process that traces this one, as a debugger does: its name and number. `None` if there is none.
pub fn tracer(system: &System) -> Option<String> {
    let status = system.read("/proc/self/status").ok()?;
    let number = status.lines().find_map(|line| line.strip_prefix("TracerPid:"))?.trim();
    if number == "0" {
        return None;
    }
    let name = system.read(&format!("/proc/{number}/comm")).unwrap_or_else(|_| "name unknown".to_owned());
    Some(format!("`{name}`, process {number}"))
}
