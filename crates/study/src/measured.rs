//! Collects the samples of a row and makes the row of the record from them.

use crate::figures::{Asked, durability, figures, sample};
use crate::journal::Kept;
use crate::order::Target;
use crate::rows::Row;
use crate::study::Study;
use trueio_model::{
    Check, Durability, DurabilityKind, FilePlan, JobPlan, Outcome, PublishedFigure, Statistic, StudyMetric, StudyRow,
    StudySample, SyscallTrace, TargetFacts, Verdict, WriteCache,
};

/// A row while it is measured.
#[derive(Default)]
pub(crate) struct Measured {
    samples: Vec<StudySample>,
    worst: Option<(Verdict, Vec<Check>)>,
    durability: Option<Durability>,
    syscalls: Option<SyscallTrace>,
    /// The files that its samples used, each once: of another mode or round they may have other names.
    files: Vec<FilePlan>,
    /// Why it is not measured any more.
    pub(crate) failure: Option<String>,
}

/// Where and when a sample was taken.
pub(crate) struct Taken {
    pub(crate) place: u32,
    pub(crate) round: u32,
    pub(crate) begin_ns: u64,
}

impl Measured {
    pub(crate) fn take(&mut self, kept: &Kept, job: Option<&JobPlan>, at: &Taken) {
        let phase = &kept.phase;
        let sample = sample(phase, at.place, at.round, at.begin_ns);
        self.samples.push(StudySample { conditions: kept.conditions.clone(), ..sample });
        for file in &kept.files {
            if !self.files.contains(file) {
                self.files.push(file.clone());
            }
        }
        // The missing results of an interrupted phase are no property of its row.
        if matches!(phase.outcome, Outcome::Interrupted { .. }) {
            return;
        }
        if self.worst.as_ref().is_none_or(|(verdict, _)| phase.verdict > *verdict) {
            self.worst = Some((phase.verdict, phase.checks.clone()));
        }
        if phase.syscalls.is_some() {
            self.syscalls.clone_from(&phase.syscalls);
        }
        let Some(job) = job else { return };
        let found = durability(&phase.checks, Asked::of(job), all_write_through(&kept.targets));
        // One sample that shows the contrary outweighs the others; one that shows it outweighs those that saw nothing.
        let weight = |found: &Option<Durability>| match found.as_ref().map(|d| d.is) {
            Some(DurabilityKind::Refuted) => 3,
            Some(DurabilityKind::Shown) => 2,
            Some(_) => 1,
            None => 0,
        };
        if weight(&found) > weight(&self.durability) {
            self.durability = found;
        }
    }

    /// The row of the record, with the figures of which statistics are wanted.
    pub(crate) fn into_row(
        self,
        study: &Study,
        row: &Row,
        job: &JobPlan,
        target: &Target,
        statistics: &[(StudyMetric, Statistic)],
    ) -> StudyRow {
        let figures = figures(&self.samples, statistics);
        let (verdict, checks) = self.worst.map_or((None, Vec::new()), |(v, c)| (Some(v), c));
        let files = if self.files.is_empty() { job.files.clone() } else { self.files };
        let target = printed_name(target, &files);
        let as_published = study.definition.row_format.as_deref();
        StudyRow {
            name: row.name.clone(),
            key: row.key.clone(),
            shape: shape(job),
            as_published: as_published
                .map(|format| crate::row_format::render(format, &study.definition, &row.key, target, &figures)),
            files,
            figures,
            samples: self.samples,
            published: published(study, row),
            verdict,
            checks,
            durability: self.durability,
            syscalls: self.syscalls,
            failure: self.failure,
        }
    }
}

/// How a printed row names the target: `file` for a new file, else the path by which the row's files name it.
fn printed_name<'a>(target: &'a Target, files: &'a [FilePlan]) -> &'a str {
    match (target, files.last()) {
        (Target::NewFile { .. }, _) => "file",
        (Target::Existing { .. }, Some(file)) => &file.path,
        (Target::Existing { path, .. }, None) => path,
    }
}

/// Returns whether every disk under the targets declares that it has no volatile cache.
fn all_write_through(targets: &[TargetFacts]) -> bool {
    let mut disks = targets.iter().flat_map(|target| &target.disks).peekable();
    disks.peek().is_some() && disks.all(|disk| disk.write_cache.value == Some(WriteCache::WriteThrough))
}

fn published(study: &Study, row: &Row) -> Vec<PublishedFigure> {
    let of = study.published.entries.iter().filter(|entry| entry.is_of(&row.key));
    of.map(|entry| PublishedFigure {
        op: entry.op,
        metric: entry.metric,
        statistic: entry.statistic,
        value: entry.value,
        printed: entry.printed.clone(),
        setting: entry.setting.clone(),
        impossible: entry.impossible.as_ref().map(|found| found.sentence.clone()),
    })
    .collect()
}

/// A short description of a job: the options that differ between rows.
fn shape(job: &JobPlan) -> String {
    if let Some(command) = &job.command {
        return command.arguments.join(" ");
    }
    let value = |name: &str| job.values.iter().find(|v| v.name == name).map_or("", |v| &*v.value);
    let mut words = vec![value("rw").to_owned(), value("bs").to_owned(), job.engine.name().to_owned()];
    words.push(format!("depth {}", job.queue.depth));
    match job.direct {
        trueio_model::DirectPolicy::Off => {}
        _ => words.push("direct".to_owned()),
    }
    match job.sync {
        trueio_model::SyncMode::None => {}
        trueio_model::SyncMode::Dsync => words.push("O_DSYNC".to_owned()),
        trueio_model::SyncMode::Sync => words.push("O_SYNC".to_owned()),
    }
    words.join(" ")
}
