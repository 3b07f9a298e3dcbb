//! Jobs of the metadata engines: the directory and the number of the files that they create, stat or delete.

use crate::facts::Target;
use crate::input::{Decisions, JobInput};
use crate::option::OptionRow;
use crate::options::engine::rows::NUMJOBS;
use crate::options::limits::rows::{IO_SIZE, LOOPS, NUMBER_IOS, STEADY_STATE, STEADYSTATE, TIME_BASED};
use crate::options::pace::rows::{RATE, RATE_IOPS, RATE_IOPS_MIN, RATE_MIN, THINKTIME};
use crate::options::pattern::rows::{NORANDOMMAP, RANDOM_DISTRIBUTION};
use crate::options::target::files::{JobFile, directory_facts};
use crate::options::target::rows::{
    DIRECTORY, FILE_SERVICE_TYPE, FILENAME, FILESIZE, NAME_ACCOUNTING, NRFILES, NameAccounting, OFFSET, SIZE,
};
use crate::refusal::{Refusal, Rule};
use crate::value::Extent;
use crate::values::Values;
use trueio_model::{
    BlockSizes, CriterionVariable, EngineKind, FilePlan, FileSelection, Guard, Limits, NameCounts, Pace, Prepare,
};

/// The directory of the names. Each worker has one of its own, under this name and a number.
pub(crate) fn plan_names(
    values: &JobInput<'_>,
    decisions: &mut Decisions,
    engine: EngineKind,
) -> Result<JobFile, Refusal> {
    let lacks = |option: &'static OptionRow, lack: &str, hint| {
        Err(values.refuse(option, Rule::EngineLacks { engine, lack: lack.to_owned(), hint }))
    };
    if values.is_set(FILENAME) {
        return lacks(FILENAME.row(), "creates its own files", "set `directory` and `nrfiles`");
    }
    if engine.uses_names_up() {
        let hint = "leave it out, or set more `nrfiles`";
        let repeats = [
            (LOOPS.row(), values.get(LOOPS) > 1),
            (TIME_BASED.row(), values.get(TIME_BASED)),
            (NORANDOMMAP.row(), values.get(NORANDOMMAP)),
            (RANDOM_DISTRIBUTION.row(), values.is_set(RANDOM_DISTRIBUTION)),
            (STEADY_STATE.row(), values.get(STEADY_STATE)),
        ];
        if let Some((option, _)) = repeats.into_iter().find(|(_, is_set)| *is_set) {
            return lacks(option, "uses each name once", hint);
        }
    }
    // Where blocks are counted, sizes set the number of I/Os of a name.
    let unused: &[&'static OptionRow] = match counts_blocks(values) {
        true => &[OFFSET.row()],
        false => &[SIZE.row(), FILESIZE.row(), OFFSET.row(), IO_SIZE.row()],
    };
    decisions.note_unused(values, unused, "the engine counts names (`nrfiles`)");
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
    Ok(JobFile { plan, facts: None })
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
        let lacks = |option: &'static OptionRow, lack: &str, hint| {
            Err(values.refuse(option, Rule::EngineLacks { engine, lack: lack.to_owned(), hint }))
        };
        let block_bytes = match sizes {
            [BlockSizes::Fixed(bytes), rest @ ..] if rest.iter().all(|other| *other == sizes[0]) => (*bytes).max(1),
            _ => return lacks(option, "counts its names in I/Os of one size", "set one `bs`"),
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
            return lacks(IO_SIZE.row(), "uses each name once", "leave it out, or set more `nrfiles`");
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
                return lacks(option, lack, "set a `bs` as large as `filesize`, so that each file is one I/O");
            }
        }
        let variable = values.is_set(STEADYSTATE).then(|| values.get(STEADYSTATE).variable);
        let is_steady_by_names = match variable {
            Some(CriterionVariable::Bytes) => true,
            Some(CriterionVariable::Ios) => counted.counts.ios != counted.counts.names,
            Some(CriterionVariable::Latency) | None => false,
        };
        if is_steady_by_names {
            let hint = "set `steadystate=iops:…`, and a `bs` as large as `filesize`";
            return lacks(STEADYSTATE.row(), "becomes steady by names, not by bytes or several I/Os of each", hint);
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
