//! How many requests the disks under a phase hold at a time, and what limits it.
//!
//! A disk holds no more requests than the smallest of: the tags of the block layer (`queue/nr_requests`, which are those of the I/O
//! scheduler if there is one), the tags of its driver (`mq/0/nr_tags`: the ring of a virtio disk, the queue of an NVMe disk), and the queue
//! that a SCSI disk accepts (`device/queue_depth`). The first two count for each hardware queue; a worker submits to that of its
//! processor, so `n` workers use at most `n` of them. Further I/Os wait before the disk: in the submission, or in the kernel
//! after it (io_uring's workers, SCSI's queue), where the engine counts them as in flight.
//!
//! Cannot see: tags that other disks of the same host adapter or other programs use, and limits below the disk that Linux shows.
//!
//! Source: Linux `Documentation/ABI/stable/sysfs-block` (`nr_requests`), `block/blk-mq-sysfs.c` (`nr_tags`), `drivers/scsi/scsi_sysfs.c`
//! (`queue_depth`).

use crate::facts::PhaseFacts;
use trueio_model::{DiskFacts, Transport};

/// The number of requests that all disks of a phase hold at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Room {
    /// Requests, of all disks together.
    pub(crate) requests: u64,
    /// The disks.
    pub(crate) disks: String,
    /// What limits the one with the smallest limit: `nr_requests`.
    pub(crate) what: &'static str,
    /// The file that has its number.
    pub(crate) file: String,
}

impl Room {
    /// Returns the room of the disks under the phase for `workers`; `None` if that of a disk is unknown or there is no disk.
    pub(crate) fn of(facts: &PhaseFacts<'_>, workers: u64) -> Option<Self> {
        let rooms: Option<Vec<Self>> = facts.disks().into_iter().map(|disk| Self::of_disk(disk, workers)).collect();
        let rooms = rooms?;
        let requests = rooms.iter().map(|room| room.requests).sum();
        let disks: Vec<&str> = rooms.iter().map(|room| room.disks.as_str()).collect();
        let disks = disks.join(", ");
        let smallest = rooms.into_iter().min_by_key(|room| room.requests)?;
        Some(Self { requests, disks, ..smallest })
    }

    fn of_disk(disk: &DiskFacts, workers: u64) -> Option<Self> {
        let queues = u64::from(disk.limits.hardware_queue_count.value.unwrap_or(1)).min(workers).max(1);
        let has_scheduler = disk.scheduler.value.as_deref().is_some_and(|name| name != "none");
        let is_virtio = disk.transport.value == Some(Transport::Virtio);
        let of = |count: Option<u32>, queues: u64, what, file: &str| {
            let file = format!("/sys/block/{}/{file}", disk.name);
            count.map(|count| Self { requests: u64::from(count) * queues, disks: disk.name.clone(), what, file })
        };
        let scheduler = if has_scheduler { "nr_requests, the tags of its scheduler" } else { "nr_requests" };
        let driver = if is_virtio { "nr_tags, the ring of virtio" } else { "nr_tags of its driver" };
        let limits = [
            of(disk.limits.queue_depth.value, 1, "queue_depth of SCSI", "device/queue_depth"),
            of(disk.limits.tag_count.value, queues, driver, "mq/0/nr_tags"),
            of(disk.request_count.value, queues, scheduler, "queue/nr_requests"),
        ];
        limits.into_iter().flatten().min_by_key(|room| room.requests)
    }
}
