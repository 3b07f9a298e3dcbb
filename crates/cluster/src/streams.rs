//! What a rank's first I/Os have in common with those of other ranks: the blocks that it reads, and the content that it writes.
//!
//! A rank sends a sample of each: of all fingerprints of its first I/Os the smallest [`KEPT`], so that samples of equal sets are equal,
//! whatever their order, and the share of common ones estimates the share of common blocks (a bottom-k sketch).
//!
//! Cannot see: that two hosts reach one block device over a network, as raw devices; what [`Excerpt`] cannot see.
//!
//! Source: Broder, "On the resemblance and containment of documents", 1997.

use crate::message::Name;
use crate::range::at_most;
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::Path;
use trueio_engine::Excerpt;
use trueio_model::{JobPlan, JobRecord, JobSpec, OpKind, RunRecord, TargetFacts, mix64};

/// Fingerprints that a sample keeps.
pub(crate) const KEPT: usize = 64;
/// I/Os of a job whose fingerprints are taken, and writes among them: of all workers together.
const IOS_MAX: usize = 16_384;
const WRITES_MAX: usize = 1024;
/// Files of a job that are identified.
const FILES_MAX: usize = 1024;

/// A sample of a set: its smallest fingerprints.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub(crate) struct Sketch(BTreeSet<u64>);

impl<'de> Deserialize<'de> for Sketch {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let kept = BTreeSet::deserialize(from)?;
        at_most("the number of sampled I/Os", kept.len() as u64, KEPT as u64).map_err(D::Error::custom)?;
        Ok(Self(kept))
    }
}

impl Sketch {
    fn add(&mut self, fingerprint: u64) {
        if self.0.len() == KEPT && self.0.last().is_some_and(|last| fingerprint >= *last) {
            return;
        }
        self.0.insert(fingerprint);
        if self.0.len() > KEPT {
            self.0.pop_last();
        }
    }

    /// Returns how many fingerprints of the smaller set the other one has, and of how many; where one sample ends, only what is below
    /// counts.
    fn common_with(&self, other: &Self) -> (usize, usize) {
        let end = |sketch: &Self| if sketch.0.len() < KEPT { u64::MAX } else { *sketch.0.last().unwrap_or(&0) };
        let end = end(self).min(end(other));
        let count = |sketch: &Self| sketch.0.range(..=end).count();
        let common = self.0.range(..=end).filter(|fingerprint| other.0.contains(fingerprint)).count();
        (common, count(self).min(count(other)))
    }
}

/// The samples of a job on one rank.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct JobStreams {
    pub(crate) job: Name,
    /// Blocks that are read: the file and the offset.
    pub(crate) reads: Sketch,
    /// Content that is written, and the store that could keep equal content once.
    pub(crate) writes: Sketch,
}

/// Whether a sample is of reads or of writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Reads,
    Writes,
}

/// Two ranks that did the same.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Same {
    pub(crate) ranks: (u32, u32),
    pub(crate) jobs: (String, String),
    /// Of how many sampled I/Os, and how many were the same.
    pub(crate) sampled: usize,
    pub(crate) common: usize,
    /// Ranks that did the same as another one.
    pub(crate) rank_count: usize,
}

/// Share of sampled I/Os from which on two ranks do the same.
const COMMON_SHARE_MIN: f64 = 0.5;
/// Fewer common ones count only if the sets are equal.
const COMMON_MIN: usize = 8;

/// Finds ranks that did the same as another one. Each rank is compared with the one that was first with most of its samples.
pub(crate) fn same_of(ranks: &BTreeMap<u32, &[JobStreams]>, way: Way) -> Option<Same> {
    let sketch_of = |streams: &'_ JobStreams| match way {
        Way::Reads => streams.reads.clone(),
        Way::Writes => streams.writes.clone(),
    };
    let mut first_of: BTreeMap<u64, (u32, usize)> = BTreeMap::new();
    let mut found: Option<Same> = None;
    let mut involved = BTreeSet::new();
    for (rank, jobs) in ranks {
        for streams in *jobs {
            let sketch = sketch_of(streams);
            let mut shared: BTreeMap<(u32, usize), usize> = BTreeMap::new();
            let others = sketch.0.iter().filter_map(|print| first_of.get(print)).filter(|(first, _)| first != rank);
            others.for_each(|place| *shared.entry(*place).or_default() += 1);
            let Some(((first, at), _)) = shared.into_iter().max_by_key(|(_, count)| *count) else { continue };
            let other = &ranks[&first][at];
            let (common, sampled) = sketch.common_with(&sketch_of(other));
            let is_equal = common == sampled && sketch == sketch_of(other);
            if (common < COMMON_MIN && !is_equal) || (common as f64) < sampled as f64 * COMMON_SHARE_MIN {
                continue;
            }
            involved.extend([first, *rank]);
            let jobs = (other.job.to_string(), streams.job.to_string());
            found.get_or_insert(Same { ranks: (first, *rank), jobs, sampled, common, rank_count: 0 });
        }
        for (at, streams) in jobs.iter().enumerate() {
            for print in sketch_of(streams).0 {
                first_of.entry(print).or_insert((*rank, at));
            }
        }
    }
    found.map(|same| Same { rank_count: involved.len(), ..same })
}

/// A file as other ranks know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct FileKey {
    /// What could keep equal content once: the filesystem.
    store: u64,
    file: u64,
}

/// The jobs of a phase, with their files, which are identified while they are there.
#[derive(Debug, Default)]
pub(crate) struct PhaseFiles {
    boot_id: String,
    targets: Vec<TargetFacts>,
    /// The names of jobs on a `shared_file`.
    shared: BTreeSet<String>,
    jobs: Vec<(JobPlan, Vec<Option<FileKey>>)>,
}

fn hash(text: &str) -> u64 {
    text.bytes().fold(text.len() as u64, |state, byte| mix64(state ^ u64::from(byte)))
}

/// Returns true if ranks of other hosts reach the same files: no disk of this host is below.
fn is_of_network(target: &TargetFacts) -> bool {
    let is_local = |kind: &str| matches!(kind, "tmpfs" | "ramfs" | "overlay" | "devtmpfs" | "zfs" | "btrfs");
    target.disks.is_empty() && target.filesystem.as_ref().is_some_and(|found| !is_local(found.kind.as_str()))
}

fn identify(path: &str, target: Option<&TargetFacts>, boot_id: &str) -> Option<FileKey> {
    let found = std::fs::metadata(path).ok()?;
    let is_device = found.file_type().is_block_device() || found.file_type().is_char_device();
    let store = match target.filter(|target| is_of_network(target)).and_then(|target| target.filesystem.as_ref()) {
        Some(of_network) => hash(&format!("{} {}", of_network.kind, of_network.source)),
        None if is_device => hash(&format!("{boot_id} device {}", found.rdev())),
        None => hash(&format!("{boot_id} {}", found.dev())),
    };
    let number = if is_device { 0 } else { found.ino() };
    Some(FileKey { store, file: mix64(store ^ mix64(number)) })
}

impl PhaseFiles {
    /// Returns none yet, of a run on the kernel `boot_id`.
    pub(crate) fn of(record: &RunRecord, boot_id: &str) -> Self {
        let is_shared = |spec: &&JobSpec| spec.options.get("shared_file").is_some_and(|value| value.text == "true");
        Self {
            boot_id: boot_id.to_owned(),
            targets: record.targets.clone(),
            shared: record.spec.iter().filter(is_shared).map(|spec| spec.name.clone()).collect(),
            jobs: Vec::new(),
        }
    }

    /// Adds a job, and identifies its files.
    pub(crate) fn add(&mut self, job: &JobPlan) {
        let is_shared = self.shared.contains(&job.name);
        let key_of = |path: &String| {
            if is_shared {
                let file = hash(&format!("shared {path}"));
                return Some(FileKey { store: file, file });
            }
            let mount = |target: &&TargetFacts| {
                let point = target.filesystem.as_ref().map(|found| found.mount_point.as_str());
                point.filter(|point| Path::new(path).starts_with(point)).map_or(0, str::len)
            };
            identify(path, self.targets.iter().max_by_key(mount), &self.boot_id)
        };
        let keys = job.files.iter().take(FILES_MAX).map(|file| key_of(&file.path)).collect();
        self.jobs.push((job.clone(), keys));
    }

    /// Returns the samples of jobs that ran.
    pub(crate) fn streams(&self, jobs: &[JobRecord]) -> Vec<JobStreams> {
        let pairs =
            jobs.iter().filter_map(|job| Some((job, self.jobs.iter().find(|(plan, _)| plan.name == job.name)?)));
        let found = pairs.map(|(job, (plan, keys))| streams_of(plan, job, keys));
        found.filter(|found| *found != empty(&found.job)).collect()
    }
}

fn empty(job: &Name) -> JobStreams {
    JobStreams { job: job.clone(), ..JobStreams::default() }
}

fn streams_of(plan: &JobPlan, job: &JobRecord, keys: &[Option<FileKey>]) -> JobStreams {
    let mut streams = empty(&Name::cut(&plan.name));
    let workers = plan.workers.max(1);
    // No more than were done.
    let done: u64 = job.ops.iter().filter(|op| op.op != OpKind::Sync).map(|op| op.io_count).sum();
    let io_count = (done.div_ceil(u64::from(workers)) as usize).min((IOS_MAX / workers as usize).max(32));
    let write_count = (WRITES_MAX / workers as usize).max(8);
    for worker in 0..workers {
        let excerpt = Excerpt::of(plan, worker, io_count, write_count);
        let key_of = |file: u16| keys.get(usize::from(file)).copied().flatten();
        for (file, offset) in excerpt.reads {
            if let Some(key) = key_of(file) {
                streams.reads.add(mix64(key.file ^ mix64(offset)));
            }
        }
        for (file, content) in excerpt.writes {
            if let Some(key) = key_of(file) {
                streams.writes.add(mix64(key.store ^ mix64(content)));
            }
        }
    }
    streams
}

/// Returns the samples of a rank that reads blocks of these numbers.
#[cfg(test)]
pub(crate) fn of_reads(blocks: impl Iterator<Item = u64>) -> Vec<JobStreams> {
    let mut one = empty(&Name::cut("a"));
    blocks.for_each(|number| one.reads.add(mix64(number)));
    vec![one]
}

#[cfg(test)]
mod tests {
    use super::of_reads as streams;
    use super::*;

    fn same(ranks: &[Vec<JobStreams>]) -> Option<Same> {
        let ranks = ranks.iter().enumerate().map(|(rank, streams)| (rank as u32, streams.as_slice())).collect();
        same_of(&ranks, Way::Reads)
    }

    /// Goal: ranks that read the same blocks are found in any order of blocks, and if one came further than the other.
    #[test]
    fn equal_blocks_are_found_whatever_their_order_and_number() {
        let all = || streams(0..4096);
        let found = same(&[streams(9000..9100), all(), streams((0..4096).rev())]).expect("ranks 1 and 2");
        assert_eq!((found.ranks, found.sampled, found.common, found.rank_count), ((1, 2), 64, 64, 2));
        assert!(same(&[all(), streams(0..2000)]).is_some_and(|found| found.common == found.sampled));
        assert!(same(&[streams(0..3), streams(0..3)]).is_some(), "all three blocks are the same");
    }

    #[test]
    fn other_blocks_and_a_small_overlap_are_not_the_same() {
        assert_eq!(same(&[streams(0..4096), streams(4096..8192)]), None);
        assert_eq!(same(&[streams(0..4096), streams(3072..7168)]), None, "a quarter");
        assert_eq!(same(&[streams(0..3), streams(2..5)]), None);
        assert_eq!(same(&[streams(0..4096)]), None);
        assert_eq!(same(&[]), None);
    }

    #[test]
    fn a_sample_that_is_longer_than_any_rank_sends_is_refused() {
        let text = |count: u64| serde_json::to_string(&(0..count).collect::<Vec<_>>()).expect("numbers");
        assert!(serde_json::from_str::<Sketch>(&text(64)).is_ok());
        assert!(serde_json::from_str::<Sketch>(&text(65)).is_err());
    }
}
