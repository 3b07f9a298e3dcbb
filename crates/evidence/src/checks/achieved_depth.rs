//! Compares the average queue depth with the requested one.
//!
//! - **Reads** the engine's own integral of I/Os in flight, and the limits of the disks: `nr_requests` (with a scheduler, its tags),
//!   `nr_tags` of the driver, `queue_depth` of SCSI.
//! - **Sees** submissions that block, I/Os that complete at once, workers without CPU. If the job reached a limit of the disks, it is
//!   named, and the cause is the set-up.
//! - **Misses** how many of them the disk held.
//! - **Thresholds**: below 80 % of workers × iodepth is suspect; a shortfall above 5 % is reported, because batches leave gaps (28 to
//!   30 of 32 at 85,000 IOPS). Not for blocking engines, rates, think time, sources, `latency_target`, zoned writes, of which a zone
//!   accepts one at a time, or writes into the page cache, of which the kernel decides how many the disk gets.
//! - **By hand**: io_uring at depth 32 on a cached file completes each I/O within its submission; `echo 4 >
//!   /sys/block/DISK/queue/nr_requests`.

use crate::facts::{PhaseFacts, Way, Work, finding, not_applicable};
use crate::room::Room;
use trueio_model::units::three_digits;
use trueio_model::{Cause, Check, CheckOutcome, EngineKind};

pub(crate) const NAME: &str = "achieved_depth";

const SHARE_MIN: f64 = 0.8;

pub(crate) fn check(facts: &PhaseFacts<'_>) -> Check {
    let writes_zones = facts.works().any(|work| work.job.zones.is_some() && work.job.modifies_files());
    let mut worst: Option<Kept<'_>> = None;
    for work in facts.works() {
        let job = work.job;
        // The engine `null` completes everything at once, so there is no queue to keep.
        let holds = job.engine.holds_a_queue() && job.engine != EngineKind::Null;
        let (Some(achieved), true) = (work.record.achieved_depth, holds) else { continue };
        // A zone accepts one write at a time, and readers of zones wait for writers. A job that issues less
        // than the disk could complete (a rate, pauses, a source) fills no queue. A search for a depth lowers
        // it deliberately.
        let waits_for_zones = job.zones.is_some() && writes_zones;
        if waits_for_zones || job.is_paced() || job.think.is_some() || job.source.is_some() || !job.control.is_none() {
            continue;
        }
        // The calls copy to memory, and the queue is empty during the sync call at the end.
        let only_copies =
            work.writes() && !work.reads() && facts.way(job) == Way::Buffered && !work.syncs_every_write();
        if only_copies {
            continue;
        }
        let kept = Kept { work, achieved };
        if worst.as_ref().is_none_or(|worst| kept.share() < worst.share()) {
            worst = Some(kept);
        }
    }
    if let Some(worst) = worst {
        return worst.judge(facts);
    }
    let mut sentence =
        "No job keeps a queue: each worker has one I/O in flight, is paced, writes to memory, or waits for a source or for zones."
            .to_owned();
    // Workers of calls keep as many in flight as there are workers.
    if let Some(room) = facts.works().find_map(|work| limit(facts, work)) {
        sentence += &format!(" {}", room_words(&room));
    }
    not_applicable(NAME, sentence)
}

/// Returns the limit of the disks, if the job is meant to have more I/Os in flight.
fn limit(facts: &PhaseFacts<'_>, work: Work<'_>) -> Option<Room> {
    let room = Room::of(facts, u64::from(work.job.workers)).filter(|_| work.job.engine.touches_files())?;
    (room.requests < work.depth()).then_some(room)
}

/// A job that keeps a queue.
struct Kept<'a> {
    work: Work<'a>,
    /// I/Os in flight on average.
    achieved: f64,
}

impl Kept<'_> {
    fn share(&self) -> f64 {
        self.achieved / self.work.depth() as f64
    }

    fn judge(&self, facts: &PhaseFacts<'_>) -> Check {
        let (name, asked, achieved) = (&self.work.job.name, self.work.depth(), three_digits(self.achieved));
        let report = |outcome, sentence: String| {
            let found = format!("{achieved} in flight on average");
            finding(NAME, outcome, "the engine's own counter", format!("{asked} in flight"), found, sentence)
        };
        let limit = limit(facts, self.work);
        if self.share() < SHARE_MIN {
            let kept = format!("`{name}` kept {achieved} I/Os in flight; its queue depth allows {asked}.");
            let reached = limit.filter(|room| self.achieved >= room.requests as f64 * SHARE_MIN);
            return match reached {
                Some(room) => report(CheckOutcome::Suspect, format!("{kept} {}", room_words(&room)))
                    .with_cause(Cause::Setup)
                    .with_brief(format!(
                        "{achieved} of {asked} in flight: at most {} at {}",
                        room.requests, room.disks
                    )),
                None => report(CheckOutcome::Suspect, kept).with_brief(format!("{achieved} of {asked} in flight")),
            };
        }
        let sentence = match limit {
            Some(room) => format!("The queue was kept at {achieved}. {}", room_words(&room)),
            None if self.share() < 0.95 => {
                let short = (1.0 - self.share()) * 100.0;
                format!(
                    "The average queue depth was {short:.0} % below the requested depth, because I/Os are submitted and \
                     reaped in batches."
                )
            }
            None => "The queue was kept at the requested depth.".to_owned(),
        };
        report(CheckOutcome::Passed, sentence)
    }
}

/// `At most 4 requests are in flight at vda (nr_requests: /sys/block/vda/queue/nr_requests); further I/Os wait before it.`
fn room_words(room: &Room) -> String {
    let Room { requests, disks, what, file } = room;
    format!("At most {requests} requests are in flight at {disks} ({what}: `{file}`); further I/Os wait before it.")
}
