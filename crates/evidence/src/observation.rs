//! Everything observed of one phase: the counters of disks, process and machine, and what was traced.

use crate::filemap::FileMap;
use crate::limit_course::LimitSpan;
use crate::sample::ContentSample;
use crate::trace::PhaseTrace;
use trueio_model::{DeviceDelta, DisturbedSpan, IoLimit, Residency};

/// The counters observed during a phase.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Observation {
    /// The counters of each disk. A disk whose counters could not be read is missing here and has a note.
    pub devices: Vec<DeviceDelta>,
    /// Cached pages of each file: (path, before, after).
    pub residency: Vec<(String, Option<Residency>, Option<Residency>)>,
    /// True if the time of modification of one of these files changed: somebody wrote to it.
    pub is_modified: bool,
    /// True if other ranks of this run are on this kernel: the counters of disks include their I/O.
    pub has_peers: bool,
    /// Bytes that this process caused to be fetched from storage.
    pub process_read_bytes: Option<u64>,
    /// Which part of each file was stored at the start of the phase.
    pub maps: Vec<FileMap>,
    /// The same at its end.
    pub maps_after: Vec<FileMap>,
    /// The content of a sample of each file's blocks, if requested.
    pub samples: Vec<ContentSample>,
    /// The traced requests; `None` without a baseline, during which tracing is prepared.
    pub traced: Option<PhaseTrace>,
    /// Share of all processors' time that the hypervisor took, from 0 to 1.
    pub steal_share: Option<f64>,
    /// What used the processors; `None` if it was not counted.
    pub processors: Option<ProcessorUse>,
    /// Time for which the kernel's workers, which complete direct writes of filesystems, waited for a processor, all together, in nanoseconds;
    /// `None` without a trace.
    pub kernel_worker_wait_ns: Option<u64>,
    /// Time for which a control group of this process was throttled because its CPU quota was used up, in nanoseconds,
    /// all processors together.
    pub throttled_ns: Option<u64>,
    /// What the control groups that limit a device of the targets transferred to and from it.
    pub limited: Vec<LimitedIo>,
    /// When limits of control groups were set in the measured part, by begin; `None` if they were not read. Set by the caller.
    pub limit_spans: Option<Vec<LimitSpan>>,
    /// Share of the time in which a task of this machine waited for a processor, from 0 to 1.
    pub cpu_pressure_share: Option<f64>,
    /// Share of the time in which everything waited for memory, from 0 to 1.
    pub memory_pressure_share: Option<f64>,
    /// Drift of the latency clock from the kernel's clock, as a share; `None` if latencies use the kernel's
    /// clock. Set by the caller.
    pub clock_drift: Option<f64>,
    /// By how much the kernel's clock ran faster than the hardware's counter (`CLOCK_MONOTONIC_RAW`) from before the
    /// baseline to the end of the phase, as a share; `None` if that was too short.
    pub clock_slew: Option<f64>,
    /// Spans in which the thread that follows the phase could not run; `None` if it was not watched. Set by the caller.
    pub stops: Option<Vec<Stop>>,
    /// How often this process got `SIGCONT` in the measured part. Set by the caller.
    pub continue_count: u32,
    /// The process that traces this one (`gdb`, process 12); looked for only after a stop. Set by the caller.
    pub tracer: Option<String>,
    /// Time for which the machine was suspended, in nanoseconds.
    pub suspended_ns: u64,
    /// By how much the time of day was set, in nanoseconds.
    pub clock_step_ns: i64,
    /// When the phase was disturbed, as far as counters show it. Set by the caller.
    pub disturbances: Vec<DisturbedSpan>,
    /// The temperatures of disks that report one.
    pub heats: Vec<Heat>,
    /// How often processors were throttled for heat.
    pub throttle_count: Option<u64>,
    /// Background work of the system at the start of the phase, one sentence without a full stop each.
    pub background: Vec<String>,
    /// What could not be observed, one sentence each.
    pub notes: Vec<String>,
    /// The transfers of the USB disks that jobs drive in user space. Set by the caller.
    pub usb: Vec<UsbTransfers>,
    /// Time spent on observing during and around the phase, in nanoseconds, without the baseline and without
    /// the wait for the tracing thread after the last counter was read.
    pub cost_ns: u64,
}

/// Time of all processors together in a phase, in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessorUse {
    /// In which they ran anything.
    pub busy_ns: u64,
    /// Of it, interrupts, which complete I/O.
    pub interrupts_ns: u64,
    /// Of it, threads of the kernel, as those of loop devices; 0 if none works for the disks under the files.
    pub kernel_threads_ns: u64,
}

/// The transfers of a USB disk that a job drives in user space, in the measured part.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsbTransfers {
    /// The disk, as the plan names it (`usb:2-1`).
    pub path: String,
    /// Bytes that data transfers from the disk moved, as the host controller counted them.
    pub in_bytes: u64,
    /// Bytes that data transfers to the disk moved.
    pub out_bytes: u64,
    /// Transfers that this program submitted.
    pub transfers: u64,
    /// Transfers to the device that the kernel counted, of all programs; `None` if it does not count them.
    pub kernel_transfers: Option<u64>,
    /// Commands that ended.
    pub commands: u64,
    /// Of these, commands that failed.
    pub failed: u64,
    /// Of these, commands that the disk reported as successful with fewer bytes than asked for.
    pub short: u64,
    /// Commands that were sent again.
    pub repeated: u64,
    /// Commands whose time was over.
    pub timeouts: u64,
    /// Resets of the logical unit and of the port.
    pub resets: u64,
    /// Units of the disk that broke the protocol.
    pub violations: u64,
    /// Answers that the disk's queue is full.
    pub queue_full: u64,
    /// Conditions UNIT ATTENTION.
    pub attentions: u64,
    /// Errors of earlier commands that had been reported as done.
    pub deferred: u64,
    /// The last failure, in a sentence without a full stop.
    pub last_failure: Option<String>,
}

/// A span in which this program could not run, in nanoseconds since the measured part began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stop {
    /// The last sign of life before it.
    pub from_ns: u64,
    /// The first one after it.
    pub until_ns: u64,
    /// The stop was at least this long.
    pub least_ns: u64,
    /// The stop was at most this long.
    pub most_ns: u64,
}

/// The use of a control group's limit during a phase.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LimitedIo {
    /// The limit.
    pub limit: IoLimit,
    /// Bytes, or I/Os, of the limited kind that the group's processes transferred; `None` if the kernel does not count
    /// them, or the limit has no rate.
    pub moved: Option<u64>,
    /// Time for which `io.cost` delayed the group's I/O, in nanoseconds; `None` if the kernel does not count it.
    pub delayed_ns: Option<u64>,
    /// Time in which at least one task of the group waited for I/O, in nanoseconds; `None` if the kernel does not count it.
    pub stalled_ns: Option<u64>,
    /// Length of the observed span, in nanoseconds.
    pub span_ns: u64,
}

/// A disk's temperature around a phase, in thousandths of a degree Celsius.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Heat {
    /// The disk's kernel name.
    pub disk: String,
    /// When the phase began.
    pub before_millidegrees: i64,
    /// When it ended.
    pub after_millidegrees: i64,
    /// The drive's own limit.
    pub limit_millidegrees: Option<i64>,
}
