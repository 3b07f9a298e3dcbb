//! What workers' threads used, and how deep their queues and batches were.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What threads used in the measured part, as the kernel accounts for it (`getrusage`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ThreadUsage {
    /// CPU time in user mode, in nanoseconds.
    pub user_ns: u64,
    /// CPU time in the kernel, in nanoseconds.
    pub system_ns: u64,
    /// Context switches, voluntary and not.
    pub context_switch_count: u64,
    /// Page faults that had to wait for a disk.
    pub major_fault_count: u64,
    /// Page faults that had not.
    pub minor_fault_count: u64,
    /// Sum of the workers' measured times, in nanoseconds.
    pub elapsed_ns: u64,
    /// How long the threads waited for a processor; `None` if the kernel does not count it, and in records of earlier
    /// versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<ProcessorWait>,
}

/// How long threads were ready to run and waited for a processor, as the kernel counts it (`/proc/thread-self/schedstat`,
/// `getrusage`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ProcessorWait {
    /// Time in the run queue, in nanoseconds. It includes the time for which a control group's quota was used up.
    pub wait_ns: u64,
    /// How often a processor was given to a thread.
    pub run_count: u64,
    /// How often a processor was taken from a thread that could have continued.
    pub involuntary_switch_count: u64,
}

impl ProcessorWait {
    /// Adds another thread's.
    pub fn add(&mut self, other: &ProcessorWait) {
        self.wait_ns = self.wait_ns.saturating_add(other.wait_ns);
        self.run_count = self.run_count.saturating_add(other.run_count);
        self.involuntary_switch_count = self.involuntary_switch_count.saturating_add(other.involuntary_switch_count);
    }

    /// Returns what was added since `from`.
    pub fn since(&self, from: &ProcessorWait) -> ProcessorWait {
        ProcessorWait {
            wait_ns: self.wait_ns.saturating_sub(from.wait_ns),
            run_count: self.run_count.saturating_sub(from.run_count),
            involuntary_switch_count: self.involuntary_switch_count.saturating_sub(from.involuntary_switch_count),
        }
    }
}

impl ThreadUsage {
    /// Adds another thread's.
    pub fn add(&mut self, other: &ThreadUsage) {
        self.user_ns = self.user_ns.saturating_add(other.user_ns);
        self.system_ns = self.system_ns.saturating_add(other.system_ns);
        self.context_switch_count = self.context_switch_count.saturating_add(other.context_switch_count);
        self.major_fault_count = self.major_fault_count.saturating_add(other.major_fault_count);
        self.minor_fault_count = self.minor_fault_count.saturating_add(other.minor_fault_count);
        self.elapsed_ns = self.elapsed_ns.saturating_add(other.elapsed_ns);
        if let Some(waiting) = &other.waiting {
            self.waiting.get_or_insert_default().add(waiting);
        }
    }
}

/// How deep a queue was and how large its batches were, in fio's classes. Only engines that hold a queue
/// have it: one that blocks always has one I/O in flight, submitted and reaped alone.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QueueCounts {
    /// I/Os by how many were in flight after their submission, themselves included: 1, 2 to 3,
    /// 4 to 7, 8 to 15, 16 to 31, 32 to 63, 64 and more.
    pub depth: [u64; 7],
    /// Submissions by how many I/Os they carried: none, up to 4, 8, 16, 32, 64, and more.
    pub submit: [u64; 7],
    /// Collections of completions by how many there were, in the same classes.
    pub complete: [u64; 7],
}

impl QueueCounts {
    /// The class of a depth of at least 1.
    #[inline(always)]
    pub const fn depth_class(depth: u64) -> usize {
        let class = 63 - (depth | 1).leading_zeros() as usize;
        if class > 6 { 6 } else { class }
    }

    /// The class of a batch.
    #[inline(always)]
    pub const fn batch_class(count: u64) -> usize {
        if count == 0 {
            return 0;
        }
        // 1 to 4 are class 1; each doubling is one more.
        let class = 63 - ((count - 1) | 3).leading_zeros() as usize;
        if class > 6 { 6 } else { class }
    }

    /// Adds another worker's.
    pub fn add(&mut self, other: &QueueCounts) {
        let pairs =
            [(&mut self.depth, &other.depth), (&mut self.submit, &other.submit), (&mut self.complete, &other.complete)];
        for (mine, theirs) in pairs {
            mine.iter_mut().zip(theirs).for_each(|(mine, theirs)| *mine = mine.saturating_add(*theirs));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depths_and_batches_fall_into_fios_classes() {
        let depths = [1, 2, 3, 4, 7, 8, 15, 16, 31, 32, 63, 64, 4096].map(QueueCounts::depth_class);
        assert_eq!(depths, [0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6]);
        let batches = [0, 1, 4, 5, 8, 9, 16, 17, 32, 33, 64, 65, 4096].map(QueueCounts::batch_class);
        assert_eq!(batches, [0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6]);
    }
}
