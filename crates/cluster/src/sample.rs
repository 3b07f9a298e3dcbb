//! The results of a phase so far, as a live view draws them: small enough to be sent twice a second.
//!
//! A rank sends one at each interval of its results so far, and only if it was asked for these (`--live`): what is sent while
//! ranks measure takes time of the network and of rank 0.

use crate::figures::{self, BYTES_MAX, COUNT_MAX, DURATION_NS_MAX, finite};
use crate::range::{OutOfRange, at_most};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::BTreeSet;
use trueio_model::{Histogram, JobRecord, RunRecord};

/// The results of a phase so far.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Sample {
    /// Measured time.
    pub elapsed_ns: u64,
    /// Those of each job.
    pub jobs: Vec<JobSample>,
}

/// The results of a job so far.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct JobSample {
    /// The job.
    pub name: String,
    /// Its I/Os.
    pub ios: u64,
    /// Bytes that they transferred.
    pub bytes: u64,
    /// Their total latencies, in nanoseconds.
    pub latency: Histogram,
    /// I/Os in flight on average; `None` if it is not measured.
    pub depth: Option<f64>,
    /// I/Os that may be in flight.
    pub depth_max: u64,
    /// The part of the time that the workers waited for a processor.
    pub waited_share: Option<f64>,
}

/// A sample of another rank.
#[derive(Debug, Clone, PartialEq)]
pub struct RankSample {
    /// Number of the rank, from 0.
    pub rank: u32,
    /// Its host.
    pub host: String,
    /// Its results so far.
    pub sample: Sample,
}

impl<'de> Deserialize<'de> for Sample {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        struct Sent {
            elapsed_ns: u64,
            jobs: Vec<JobSample>,
        }
        let Sent { elapsed_ns, jobs } = Sent::deserialize(from)?;
        let sample = Self { elapsed_ns, jobs };
        sample.check().map(|()| sample).map_err(D::Error::custom)
    }
}

impl Sample {
    /// Checks the figures of another rank: a view adds and subtracts them.
    fn check(&self) -> Result<(), OutOfRange> {
        at_most("the time of a sample in nanoseconds", self.elapsed_ns, DURATION_NS_MAX)?;
        let names: BTreeSet<&str> = self.jobs.iter().map(|job| job.name.as_str()).collect();
        at_most("the number of results of one job", self.jobs.len().saturating_sub(names.len()) as u64 + 1, 1)?;
        for job in &self.jobs {
            at_most("a number of I/Os", job.ios, COUNT_MAX)?;
            figures::check_latencies(&job.latency)?;
            at_most("a number of bytes", job.bytes, BYTES_MAX)?;
            at_most("a number of latencies", job.latency.count(), job.ios)?;
            at_most("a queue depth", job.depth_max, COUNT_MAX)?;
            finite("a queue depth", job.depth.unwrap_or(0.0))?;
            finite("a share of time", job.waited_share.unwrap_or(0.0))?;
        }
        Ok(())
    }

    /// Returns the results so far of the phase that a record ends with; empty without a phase.
    pub fn of(record: &RunRecord) -> Self {
        let Some(phase) = record.phases.last() else { return Self::default() };
        let of_job = |job: &JobRecord| {
            let plan = record.plan.jobs.iter().find(|plan| plan.name == job.name);
            let mut sample = JobSample {
                name: job.name.clone(),
                depth: job.achieved_depth,
                depth_max: plan.map_or(0, |plan| u64::from(plan.workers) * u64::from(plan.queue.depth)),
                ..JobSample::default()
            };
            for op in &job.ops {
                sample.ios += op.io_count;
                sample.bytes += op.byte_count;
                sample.latency.merge(&op.latency.total);
            }
            let threads = &job.threads;
            sample.waited_share = threads
                .waiting
                .filter(|_| threads.elapsed_ns > 0)
                .map(|waiting| waiting.wait_ns as f64 / threads.elapsed_ns as f64);
            sample
        };
        Self { elapsed_ns: phase.elapsed_ns, jobs: phase.jobs.iter().map(of_job).collect() }
    }
}
