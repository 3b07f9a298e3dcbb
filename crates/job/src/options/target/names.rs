//! Jobs of the metadata engines: the directory and the number of the files that they create, stat or delete.

use crate::facts::FactsSource;
use crate::facts::Target;
use crate::input::{Decisions, JobInput};
use crate::option::OptionRow;
use crate::options::durability::rows::{END_FSYNC, FSYNC};
use crate::options::engine::rows::IOENGINE;
use crate::options::engine::rows::NUMJOBS;
use crate::options::limits::rows::{IO_SIZE, LOOPS, NUMBER_IOS, STEADY_STATE, STEADYSTATE, TIME_BASED};
use crate::options::pace::rows::{RATE, RATE_IOPS, RATE_IOPS_MIN, RATE_MIN, THINKTIME};
use crate::options::pattern::rows::{NORANDOMMAP, RANDOM_DISTRIBUTION};
use crate::options::target::files::{JobFile, directory_facts};
use crate::options::target::rows::{
    DIRECTORY, FILE_SERVICE_TYPE, FILENAME, FILESIZE, NAME_ACCOUNTING, NAME_BRANCH, NAME_BYTES, NAME_DEPTH,
    NAME_DIRECTORY, NAME_FSYNC, NAME_LEAVES, NAME_PRIVATE, NAME_TREE, NAME_VERIFY, NRFILES, NameAccounting, OFFSET,
    OVERWRITE_EXISTING, RANK_PLACE, RANK_SHIFT, RANK_SHIFT_BY, SIZE, UNLINK,
};
use crate::paths::join_path;
use crate::refusal::{Case, Refusal, Rule};
use crate::value::Extent;
use crate::values::Values;
use std::collections::BTreeSet;
use trueio_model::{
    BlockSizes, CriterionVariable, EngineKind, FilePlan, FileSelection, Guard, JobPlan, JobSpec, Limits, NameCounts,
    NameSet, Pace, Prepare, TargetKind,
};

/// The directory of the names. Each worker has one of its own, under this name and a number.
pub(crate) fn plan_names(
    values: &JobInput<'_>,
    decisions: &mut Decisions,
    engine: EngineKind,
) -> Result<JobFile, Refusal> {
    let lacks = |option: &'static OptionRow, lack: &str, case| {
        Err(values.refuse(option, Rule::EngineLacks { engine, lack: lack.to_owned(), case }))
    };
    if values.is_set(FILENAME) {
        return lacks(FILENAME.row(), "creates its own files", Case::NamesFiles);
    }
    if engine.uses_names_up() {
        let case = Case::NamesOnce;
        let repeats = [
            (LOOPS.row(), values.get(LOOPS) > 1),
            (TIME_BASED.row(), values.get(TIME_BASED)),
            (NORANDOMMAP.row(), values.get(NORANDOMMAP)),
            (RANDOM_DISTRIBUTION.row(), values.is_set(RANDOM_DISTRIBUTION)),
            (STEADY_STATE.row(), values.get(STEADY_STATE)),
        ];
        if let Some((option, _)) = repeats.into_iter().find(|(_, is_set)| *is_set) {
            return lacks(option, "uses each name once", case);
        }
    }
    // Where blocks are counted, sizes set the number of I/Os of a name.
    let unused: &[&'static OptionRow] = match counts_blocks(values) {
        true => &[OFFSET.row()],
        false => &[SIZE.row(), FILESIZE.row(), OFFSET.row(), IO_SIZE.row()],
    };
    decisions.note_unused(values, unused, "the engine counts names (`nrfiles`)");
    if let Some(set) = set_of(values) {
        return plan_set(values, decisions, engine, &set);
    }
    let of_sets: [&'static OptionRow; 10] = [
        NAME_FSYNC.row(),
        NAME_VERIFY.row(),
        NAME_DEPTH.row(),
        NAME_BRANCH.row(),
        NAME_LEAVES.row(),
        NAME_PRIVATE.row(),
        NAME_TREE.row(),
        NAME_BYTES.row(),
        RANK_SHIFT.row(),
        RANK_SHIFT_BY.row(),
    ];
    decisions.note_unused(values, &of_sets, "`name_directory` is not set");
    let directory = values.get(DIRECTORY).unwrap_or(".").trim_end_matches('/').to_owned();
    let path = match directory.as_str() {
        "." => format!("trueio-{}-names", values.name_part()),
        directory => format!("{directory}/trueio-{}-names", values.name_part()),
    };
    directory_facts(values, decisions, &path)?;
    for worker in 0..values.get(NUMJOBS) {
        let path = if worker == 0 { path.clone() } else { format!("{path}-{worker}") };
        if values.look(&path) != Target::Missing {
            return Err(values.refuse(DIRECTORY, Rule::GeneratedNameTaken { path }));
        }
    }
    let count = values.get(NRFILES);
    decisions.derive(FILENAME, path.clone(), "a directory of its own, removed at the end");
    decisions.derive(SIZE, count.to_string(), "one for each name");
    let plan = FilePlan {
        path,
        prepare: Prepare::Nothing,
        remove_after: true,
        offset_bytes: 0,
        size_bytes: count,
        extends_from: None,
    };
    Ok(JobFile { plan, facts: None, lacking_bytes: 0 })
}

/// Most directories of a tree: the number of each is part of a path.
const TREE_MAX: u64 = 1 << 24;
/// Most bytes of a file of a metadata engine: they are written by one call.
const FILE_BYTES_MAX: u64 = 64 << 20;

/// Returns the names that a job shares with others, as far as its own options set them.
pub(crate) fn set_of(values: &Values) -> Option<NameSet> {
    values.get(NAME_DIRECTORY)?;
    Some(NameSet {
        owner: values.get(RANK_PLACE).saturating_mul(values.get(NUMJOBS)),
        depth: values.get(NAME_DEPTH),
        branch: values.get(NAME_BRANCH),
        in_leaves: values.get(NAME_LEAVES),
        is_private: values.get(NAME_PRIVATE),
        is_tree: values.get(NAME_TREE),
        file_bytes: values.get(NAME_BYTES).min(FILE_BYTES_MAX) as u32,
        syncs_files: values.get(NAME_FSYNC),
        syncs_filesystem: values.get(END_FSYNC) && values.get(FSYNC) == 0,
        is_compared: values.get(NAME_VERIFY),
        is_new: false,
        is_made_here: false,
        stays: !values.get(UNLINK),
    })
}

/// Returns the path of a directory of names.
fn set_path(directory: Option<&str>, name: &str) -> String {
    let path = if name.starts_with('/') { name.to_owned() } else { join_path(directory, name) };
    path.trim_end_matches('/').to_owned()
}

/// Plans the names of a job that shares them with others.
fn plan_set(
    values: &JobInput<'_>,
    decisions: &mut Decisions,
    engine: EngineKind,
    set: &NameSet,
) -> Result<JobFile, Refusal> {
    let refuse = |option: &'static OptionRow, reason: String| {
        Err(values.refuse(option, Rule::BadValue { option: option.name, reason }))
    };
    let path = set_path(values.get(DIRECTORY), values.get(NAME_DIRECTORY).unwrap_or_default());
    let tree = set.tree_count().filter(|count| *count <= TREE_MAX);
    let (Some(tree), Some((holders, _))) = (tree, set.holders()) else {
        let (depth, branch) = (set.depth, set.branch);
        let reason = format!("{depth} levels of {branch} directories are more than {TREE_MAX} directories");
        return refuse(NAME_DEPTH.row(), reason);
    };
    let of_directories = matches!(engine, EngineKind::Dircreate | EngineKind::Dirstat | EngineKind::Dirdelete);
    if set.is_tree && !of_directories {
        return refuse(NAME_TREE.row(), format!("{} is an engine of files", engine.name()));
    }
    if set.is_tree {
        decisions.note_unused(values, &[NRFILES.row(), NAME_LEAVES.row()], "the names are the directories of the tree");
    }
    if !matches!(engine, EngineKind::Filecreate | EngineKind::Fileread) {
        decisions.note_unused(values, &[NAME_BYTES.row()], "the engine moves no data");
    }
    if values.get(NAME_BYTES) > FILE_BYTES_MAX {
        return refuse(NAME_BYTES.row(), "it is at most 64 MiB".to_owned());
    }
    let count = if set.is_tree { tree } else { values.get(NRFILES) };
    if !set.is_tree && !count.is_multiple_of(holders) {
        let down = (count - count % holders).max(holders);
        let reason = format!(
            "{count} names cannot be spread evenly over {holders} directories (`name_depth`, `name_branch`): {down} can"
        );
        return refuse(NRFILES.row(), reason);
    }
    directory_facts(values, decisions, &path)?;
    match values.look(&path) {
        Target::Unreadable(reason) => {
            return Err(values.refuse(NAME_DIRECTORY, Rule::TargetUnreadable { path, reason }));
        }
        Target::Present(facts) if facts.kind != TargetKind::Directory => {
            return refuse(NAME_DIRECTORY.row(), format!("`{path}` exists and is no directory"));
        }
        Target::Present(_) | Target::Missing => {}
    }
    decisions.derive(FILENAME, path.clone(), "`name_directory`");
    decisions.derive(SIZE, count.to_string(), "one for each name");
    let plan = FilePlan {
        path,
        prepare: Prepare::Nothing,
        remove_after: set.is_new && !set.stays,
        offset_bytes: 0,
        size_bytes: count,
        extends_from: None,
    };
    Ok(JobFile { plan, facts: None, lacking_bytes: 0 })
}

/// Completes the names that jobs share: which directory is new, and whether this process makes it.
///
/// # Errors
/// The jobs do not fit together, the directory exists although it must be new, or is missing.
pub(crate) fn agree_on_names(
    jobs: &mut [JobPlan],
    specs: &[JobSpec],
    rank: Option<u32>,
    facts: &dyn FactsSource,
) -> Result<(), Refusal> {
    let refuse = |job: &JobPlan, option: &'static str, reason: String| {
        Err(Refusal { job: Some(job.name.clone()), origin: None, rule: Box::new(Rule::BadValue { option, reason }) })
    };
    let named = |spec: &JobSpec| {
        let text = |option: &OptionRow| spec.options.get(option.name).map(|value| value.text.as_str());
        Some(set_path(text(DIRECTORY.row()), text(NAME_DIRECTORY.row())?))
    };
    // Of a directory that exists, only jobs that are permitted to remove names.
    let removes = |job: &&JobPlan| job.names.is_some() && job.engine.uses_names_up();
    let jobs_remove: BTreeSet<String> =
        jobs.iter().filter(removes).filter_map(|job| Some(job.files.first()?.path.clone())).collect();
    for index in 0..jobs.len() {
        let job = &jobs[index];
        let Some(set) = &job.names else { continue };
        let path = job.files[0].path.clone();
        if let Some((other, theirs)) = jobs[..index]
            .iter()
            .filter(|other| other.files.first().is_some_and(|file| file.path == path))
            .find_map(|other| Some((other, other.names.as_ref()?)))
        {
            let shape = |set: &NameSet| (set.depth, set.branch, set.is_private);
            let items = |job: &JobPlan, set: &NameSet| (!set.is_tree).then(|| (job.files[0].size_bytes, set.in_leaves));
            let differs = shape(set) != shape(theirs)
                || job.workers != other.workers
                || matches!((items(job, set), items(other, theirs)), (Some(ours), Some(theirs)) if ours != theirs);
            if differs {
                let reason = format!(
                    "job `{}` uses the same names, and needs the same `nrfiles`, `numjobs`, `name_depth`, `name_branch`, \
                     `name_leaves` and `name_private`",
                    other.name
                );
                return refuse(job, NAME_DIRECTORY.name, reason);
            }
        }
        // A job of another rank may create them.
        let creates = |spec: &&JobSpec| IOENGINE.value_in(spec).is_some_and(EngineKind::creates_names);
        let is_new = specs.iter().filter(|spec| named(spec).as_deref() == Some(&path)).any(|spec| creates(&spec));
        let stays = specs.iter().any(|spec| named(spec).as_deref() == Some(&path) && !UNLINK.value_in(spec));
        let is_there = facts.look(&path) != Target::Missing;
        if is_new && is_there {
            let reason = format!("`{path}` exists, and the run would create names in it: it must be new");
            return refuse(job, NAME_DIRECTORY.name, reason);
        }
        if !is_new && !is_there {
            let reason = format!("`{path}` does not exist, and no job creates names in it (`filecreate`, `dircreate`)");
            return refuse(job, NAME_DIRECTORY.name, reason);
        }
        let is_named = |spec: &JobSpec| {
            let named = spec.options.get(OVERWRITE_EXISTING.name).map(|value| value.text.as_str());
            spec.name == job.name && named == Some(path.replace(':', "\\:").as_str())
        };
        if !is_new && job.engine.uses_names_up() && !specs.iter().any(is_named) {
            let reason =
                "the job would remove names that this run did not create; `overwrite_existing` with the directory \
                          permits it"
                    .to_owned();
            return refuse(job, NAME_DIRECTORY.name, reason);
        }
        let job = &mut jobs[index];
        let is_removed = !is_new && jobs_remove.contains(&path);
        job.files[0].remove_after = (is_new || is_removed) && !stays;
        let set = job.names.as_mut().expect("seen above");
        (set.is_new, set.stays) = (is_new, stays);
        set.is_made_here = (is_new || is_removed) && rank.unwrap_or(0) == 0;
    }
    Ok(())
}

/// Returns true if a name is counted as the blocks of its file (`name_accounting = blocks`).
pub(crate) fn counts_blocks(values: &Values) -> bool {
    values.get(NAME_ACCOUNTING) == NameAccounting::Blocks
}

/// How a job counts the blocks of its names (`name_accounting = blocks`).
///
/// As in fio, each name is a file of some size, and the job covers the files in I/Os of one size. The first I/O to a
/// file does the work of the engine, and its latency is kept; the others do nothing. All are counted, with their bytes.
pub(crate) struct CountedNames {
    counts: NameCounts,
    /// I/Os of a pass over all names.
    pass_ios: u64,
    /// Names of such a pass.
    pass_names: u64,
    /// True if each file is used to its end before the next.
    in_sequence: bool,
}

impl CountedNames {
    /// Counts the names of a job whose operations have these sizes, which `option` sets.
    pub(crate) fn of(
        values: &Values,
        engine: EngineKind,
        sizes: &[&BlockSizes],
        option: &'static OptionRow,
    ) -> Result<Self, Refusal> {
        let lacks = |option: &'static OptionRow, lack: &str, case| {
            Err(values.refuse(option, Rule::EngineLacks { engine, lack: lack.to_owned(), case }))
        };
        let block_bytes = match sizes {
            [BlockSizes::Fixed(bytes), rest @ ..] if rest.iter().all(|other| *other == sizes[0]) => (*bytes).max(1),
            _ => return lacks(option, "counts its names in I/Os of one size", Case::NamesSized),
        };
        let pass_names = values.get(NRFILES).max(1);
        let bytes_of = |extent| match extent {
            Some(Extent::Bytes(bytes)) if bytes > 0 => Some(bytes),
            _ => None,
        };
        let filesize = values.get(FILESIZE).filter(|(low, _)| *low > 0);
        // Of sizes that are drawn, the mean. Without any, as fio does where it can, one I/O for each name.
        let (low, high) = filesize
            .or_else(|| bytes_of(values.get(SIZE)).map(|bytes| (bytes / pass_names, bytes / pass_names)))
            .unwrap_or((block_bytes, block_bytes));
        if low < block_bytes {
            let path = format!("each file of job {}", values.job);
            return Err(values.refuse(option, Rule::BlockBeyondSize { path, block_bytes, region_bytes: low }));
        }
        let of_all = |bytes: u64| pass_names.saturating_mul(bytes / block_bytes);
        let pass_ios = if low == high { of_all(low) } else { of_all(low).midpoint(of_all(high)) };
        let total_bytes = pass_ios.saturating_mul(block_bytes);
        let wanted = match values.get(IO_SIZE) {
            Some(Extent::Percent(percent)) => Some((u128::from(total_bytes) * u128::from(percent) / 100) as u64),
            _ => bytes_of(values.get(IO_SIZE))
                .or_else(|| bytes_of(values.get(SIZE)).filter(|bytes| filesize.is_some() && *bytes < total_bytes)),
        };
        let mut ios = wanted.map_or(pass_ios, |bytes| bytes.div_ceil(block_bytes).max(1));
        if ios > pass_ios && engine.uses_names_up() {
            return lacks(IO_SIZE.row(), "uses each name once", Case::NamesOnce);
        }
        if let Some(most) = Some(values.get(NUMBER_IOS)).filter(|most| *most > 0) {
            ios = ios.min(most);
        }
        if values.get(TIME_BASED) {
            ios = pass_ios;
        }
        let in_sequence = *values.get(FILE_SERVICE_TYPE) == FileSelection::Sequential;
        let mut counted =
            Self { counts: NameCounts { names: pass_names, ios, block_bytes }, pass_ios, pass_names, in_sequence };
        counted.counts.names = counted.names_of(ios);
        if counted.counts.ios != counted.counts.names {
            let paces = [
                (RATE.row(), values.get(RATE).is_some()),
                (RATE_IOPS.row(), values.get(RATE_IOPS).is_some()),
                (RATE_MIN.row(), values.get(RATE_MIN).is_some()),
                (RATE_IOPS_MIN.row(), values.get(RATE_IOPS_MIN).is_some()),
                (THINKTIME.row(), values.get(THINKTIME).is_some()),
            ];
            if let Some((option, _)) = paces.into_iter().find(|(_, is_set)| *is_set) {
                let lack = "would count I/Os of which most do nothing: each file is several I/Os here";
                return lacks(option, lack, Case::NamesPaced);
            }
        }
        let variable = values.is_set(STEADYSTATE).then(|| values.get(STEADYSTATE).variable);
        let is_steady_by_names = match variable {
            Some(CriterionVariable::Bytes) => true,
            Some(CriterionVariable::Ios) => counted.counts.ios != counted.counts.names,
            Some(CriterionVariable::Latency) | None => false,
        };
        if is_steady_by_names {
            let lack = "becomes steady by names, not by bytes or several I/Os of each";
            return lacks(STEADYSTATE.row(), lack, Case::NamesSteady);
        }
        Ok(counted)
    }

    /// Returns the number of names touched by `ios` I/Os: to each file in turn, or to one after another.
    fn names_of(&self, ios: u64) -> u64 {
        let (passes, rest) = (ios / self.pass_ios, ios % self.pass_ios);
        let of_rest = match self.in_sequence {
            true => (u128::from(rest) * u128::from(self.pass_names)).div_ceil(u128::from(self.pass_ios)) as u64,
            false => rest.min(self.pass_names),
        };
        passes.saturating_mul(self.pass_names).saturating_add(of_rest)
    }

    /// Returns the counts that outputs use.
    pub(crate) fn counts(&self) -> NameCounts {
        self.counts
    }

    /// What ends the job, in names.
    pub(crate) fn limit(&self, limits: &mut Limits) {
        limits.io_bytes = self.counts.names;
        // In fio it holds for each pass, and those of a job that has no other end are endless.
        limits.io_count = limits.io_count.filter(|_| limits.is_time_based).map(|ios| self.names_of(ios));
    }

    /// Rates in bytes, of names that are one I/O each and one byte.
    pub(crate) fn slow(&self, pace: &mut Option<Pace>, guard: &mut Guard) {
        let block_bytes = self.counts.block_bytes;
        if let Some(pace) = pace
            && let Some(rate) = &mut pace.bytes_per_s
        {
            *rate /= block_bytes as f64;
            pace.of_writes = pace.of_writes.map(|rate| rate / block_bytes as f64);
        }
        guard.bytes_per_s_min = guard.bytes_per_s_min.div_ceil(block_bytes);
        guard.of_writes = guard.of_writes.map(|(bytes, ios)| (bytes.div_ceil(block_bytes), ios));
    }
}
