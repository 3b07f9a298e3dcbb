//! Jobs that replay a log: its I/O, its files, and the options that contradict a replay.
//!
//! The whole log is read while planning, as a stream, so that the same rules apply to its files as to those in `filename`:
//! an existing file is written only if `overwrite_existing` names it, none is extended, and none that is in use is written.

use crate::facts::Target;
use crate::input::{Decisions, JobInput};
use crate::option::{OptionRow, Scope};
use crate::options::content::rows::{SOURCE, VERIFY, VerifyMethod};
use crate::options::durability::rows::{ATOMIC, FDATASYNC, FSYNC, SYNC_FILE_RANGE};
use crate::options::engine::rows::{COMMAND, IOENGINE, NUMJOBS};
use crate::options::limits::rows::{STEADY_STATE, STEADYSTATE_DURATION, TIME_BASED};
use crate::options::output::rows::WRITE_IOLOG;
use crate::options::pace::rows::{FLOW, LATENCY_TARGET, RATE, RATE_IOPS, THINKTIME};
use crate::options::pattern::rows::{
    READ_IOLOG, REPLAY_ALIGN, REPLAY_NO_STALL, REPLAY_REDIRECT, REPLAY_SCALE, REPLAY_SKIP, REPLAY_TIME_SCALE, RW,
    ZONEMODE, ZoneMode,
};
use crate::options::shape::Ops;
use crate::options::target::files::{
    GivenSize, JobFile, Named, Use, check_overwrite_names, existing_file, new_file, untouched_file,
};
use crate::options::target::region::OwnSize;
use crate::options::target::rows::{DIRECTORY, FILENAME, FILESIZE, OFFSET, OVERWRITE_SIGNATURE, SIZE};
use crate::paths::{join_path, plain};
use crate::refusal::{Case, Refusal, Rule};
use crate::value::{Value, write_bytes, write_paths};
use crate::values::Values;
use std::collections::BTreeMap;
use trueio_model::{BlockSizes, EngineKind, IologSummary, JobSpec, OpKind, OpMix, ReplayPlan, ReplaySettings};

/// A log that was read.
pub(crate) struct Replayed {
    log: String,
    settings: ReplaySettings,
    summary: IologSummary,
}

/// Reads the log of `read_iolog`; `None` without it.
pub(crate) fn plan_replay(values: &JobInput<'_>, decisions: &mut Decisions) -> Result<Option<Replayed>, Refusal> {
    let Some(log) = values.get(READ_IOLOG).map(str::to_owned) else {
        decisions.note_unused(values, &values.rows_of(Scope::Replay), "no log is replayed");
        return Ok(None);
    };
    // Options that would change the I/O of the log.
    let against = [
        (TIME_BASED.row(), values.get(TIME_BASED)),
        (RATE.row(), values.get(RATE).is_some()),
        (RATE_IOPS.row(), values.get(RATE_IOPS).is_some()),
        (THINKTIME.row(), values.get(THINKTIME).is_some()),
        (FSYNC.row(), values.get(FSYNC) > 0),
        (FDATASYNC.row(), values.get(FDATASYNC) > 0),
        (SYNC_FILE_RANGE.row(), values.is_set(SYNC_FILE_RANGE)),
        (VERIFY.row(), values.get(VERIFY) != VerifyMethod::None),
        (ZONEMODE.row(), values.get(ZONEMODE) != ZoneMode::None),
        (STEADY_STATE.row(), values.get(STEADY_STATE)),
        (STEADYSTATE_DURATION.row(), values.get(STEADYSTATE_DURATION).is_some()),
        (LATENCY_TARGET.row(), values.get(LATENCY_TARGET).is_some()),
        (FLOW.row(), values.get(FLOW).is_some_and(|weight| weight > 0)),
        (COMMAND.row(), values.is_set(COMMAND)),
        (SOURCE.row(), values.is_set(SOURCE)),
        (ATOMIC.row(), values.get(ATOMIC)),
    ];
    if let Some((other, _)) = against.into_iter().find(|(_, is_set)| *is_set) {
        let rule = Rule::Contradiction {
            one: values.quote(READ_IOLOG),
            other: values.quote(other),
            reason: "a log is replayed once, as it was written",
            case: Case::ReplayChanged,
        };
        return Err(values.refuse(other, rule));
    }
    let given = values.rows_of(Scope::ByLog);
    decisions.note_unused(values, &given, "the log sets it (`read_iolog`)");
    for name in given {
        decisions.forget(name, "the log sets it (`read_iolog`)");
    }
    let settings = settings_of(values)?;
    let summary = values.facts.iolog(&log, &settings).and_then(|summary| match summary.files.is_empty() {
        true => Err("it contains no I/O".to_owned()),
        false => Ok(summary),
    });
    let summary =
        summary.map_err(|reason| values.refuse(READ_IOLOG, Rule::IologUnusable { log: log.clone(), reason }))?;
    let names: Vec<String> = summary.files.iter().map(|(name, _)| name.clone()).collect();
    decisions.settle(FILENAME, Value::Paths(names), "the log names them");
    Ok(Some(Replayed { log, settings, summary }))
}

fn settings_of(values: &Values) -> Result<ReplaySettings, Refusal> {
    let align_bytes = values.get(REPLAY_ALIGN).unwrap_or(1).max(1);
    if !align_bytes.is_power_of_two() {
        let reason = format!("{align_bytes} is not a power of two");
        return Err(values.refuse(REPLAY_ALIGN, Rule::BadValue { option: REPLAY_ALIGN.name, reason }));
    }
    let mut skips = Vec::new();
    for word in values.get(REPLAY_SKIP).unwrap_or_default() {
        skips.push(match word.as_str() {
            "read" => OpKind::Read,
            "write" => OpKind::Write,
            "trim" => OpKind::Trim,
            "sync" => OpKind::Sync,
            _ => {
                let reason = format!("`{word}` is not one of read, write, trim, sync");
                return Err(values.refuse(REPLAY_SKIP, Rule::BadValue { option: REPLAY_SKIP.name, reason }));
            }
        });
    }
    Ok(ReplaySettings {
        is_paced: !values.get(REPLAY_NO_STALL),
        time_scale_percent: values.get(REPLAY_TIME_SCALE),
        redirect: values.get(REPLAY_REDIRECT).map(str::to_owned),
        align_bytes,
        offset_divisor: values.get(REPLAY_SCALE),
        skips,
    })
}

/// Returns the log that a job replays, before the job is planned; `None` if it replays nothing or its options cannot
/// be read, which the plan reports.
pub fn replay_of(spec: &JobSpec) -> Option<(String, ReplaySettings)> {
    spec.options.get(READ_IOLOG.name)?;
    let values = Values::resolve(spec).ok()?;
    let log = values.get(READ_IOLOG).map(str::to_owned)?;
    Some((log, settings_of(&values).ok()?))
}

impl Replayed {
    /// Returns the operations, as the pattern that is nearest to them.
    pub(crate) fn ops(&self, decisions: &mut Decisions) -> Ops {
        let count = |op| self.summary.of(op).count;
        let (reads, writes, trims) = (count(OpKind::Read), count(OpKind::Write), count(OpKind::Trim));
        let mix = match (reads, writes, trims) {
            (0, 0, 1..) => OpMix::Only(OpKind::Trim),
            (0, 1.., _) => OpMix::Only(OpKind::Write),
            (1.., 0, 0) | (0, 0, 0) => OpMix::Only(OpKind::Read),
            _ => {
                let percent = u128::from(reads) * 100 / (u128::from(reads) + u128::from(writes));
                OpMix::ReadWrite { read_percent: percent as u8 }
            }
        };
        decisions.derive(RW, "", "the log sets the operations (`read_iolog`)");
        Ops { mix, is_random: false, replayed: Some([reads > 0, writes > 0, trims > 0]), trims: trims > 0 }
    }

    /// Returns the lengths of reads, writes and trims: up to the longest, in units of which all offsets and lengths are
    /// multiples.
    pub(crate) fn sizes(&self) -> [BlockSizes; 3] {
        [OpKind::Read, OpKind::Write, OpKind::Trim].map(|op| {
            let ops = self.summary.of(op);
            match (ops.unit_bytes, ops.length_bytes_max) {
                (0, _) => BlockSizes::Fixed(1),
                (unit, max) if unit == max => BlockSizes::Fixed(max),
                (min_bytes, max_bytes) => BlockSizes::Range { min_bytes, max_bytes },
            }
        })
    }

    /// Returns the bytes that the log transfers.
    pub(crate) fn bytes(&self) -> u64 {
        self.summary.ops.iter().map(|ops| ops.bytes).fold(0, u64::saturating_add)
    }

    /// Refuses engines that do not transfer to and from files.
    pub(crate) fn check_engine(&self, values: &Values, engine: EngineKind) -> Result<(), Refusal> {
        let is_other = engine.works_on_names() || engine.moves_no_data() || !engine.does_io();
        if !is_other {
            return Ok(());
        }
        let rule = Rule::EngineLacks {
            engine,
            lack: "does no reads, writes and trims of files, as a log requires".into(),
            case: Case::EngineReplays,
        };
        Err(values.refuse(IOENGINE, rule))
    }

    /// Plans the files, each up to the end of the log's I/O to it.
    pub(crate) fn files(
        &self,
        values: &JobInput<'_>,
        decisions: &mut Decisions,
        usage: &Use,
    ) -> Result<Vec<JobFile>, Refusal> {
        let directory = values.get(DIRECTORY);
        let mut seen: BTreeMap<String, &String> = BTreeMap::new();
        let mut paths = Vec::new();
        for (name, _) in &self.summary.files {
            if let (Some(_), true) = (&directory, name.starts_with('/')) {
                let rule = Rule::Contradiction {
                    one: values.quote(DIRECTORY),
                    other: values.quote(READ_IOLOG),
                    reason: "the log has a path that begins at the root already",
                    case: Case::ReplayDirectory,
                };
                return Err(values.refuse(DIRECTORY, rule));
            }
            let path = join_path(directory, name);
            if let Some(earlier) = seen.insert(plain(&path), name) {
                let reason = format!("`{earlier}` and `{name}` in it are one file");
                return Err(values.refuse(READ_IOLOG, Rule::IologUnusable { log: self.log.clone(), reason }));
            }
            paths.push(path);
        }
        check_overwrite_names(values, usage, &paths)?;
        let (mut files, mut named) = (Vec::new(), Named::of(values));
        for (path, (_, end_bytes)) in paths.iter().zip(&self.summary.files) {
            // A file that is only synced has no length in the log.
            let end_bytes = (*end_bytes).max(1);
            let size =
                GivenSize { file_count: paths.len() as u64, own: Some(OwnSize::Region(end_bytes)), spread_bytes: 0 };
            decisions.settle(OFFSET, Value::Extent(crate::value::Extent::Bytes(0)), "the log has offsets");
            files.push(match usage.opens_files {
                false => untouched_file(values, usage, path, size)?,
                true => match values.look(path) {
                    Target::Unreadable(reason) => {
                        let rule = Rule::TargetUnreadable { path: path.clone(), reason };
                        return Err(values.refuse(READ_IOLOG, rule));
                    }
                    Target::Present(facts) => existing_file(values, decisions, usage, path, *facts, size, &mut named)?,
                    Target::Missing => new_file(values, decisions, usage, path, size)?,
                },
            });
        }
        if let Some(name) =
            values.get(OVERWRITE_SIGNATURE).unwrap_or_default().iter().find(|name| !named.carried.contains(*name))
        {
            let rule = Rule::SignatureNotThere { name: name.clone(), found: named.carried };
            return Err(values.refuse(OVERWRITE_SIGNATURE, rule));
        }
        let total = files.iter().map(|file| file.plan.size_bytes).fold(0, u64::saturating_add);
        decisions.derive(FILENAME, write_paths(&paths), "the log names them");
        decisions.derive(FILESIZE, "", "up to the end of the log's I/O in each file");
        decisions.derive(SIZE, write_bytes(total), "up to the end of the log's I/O");
        Ok(files)
    }

    /// Converts it to its part of the plan.
    pub(crate) fn into_plan(self) -> Box<ReplayPlan> {
        let length = |op| self.summary.of(op).length_bytes_max;
        Box::new(ReplayPlan {
            length_bytes_max: length(OpKind::Read).max(length(OpKind::Write)),
            names: self.summary.files.iter().map(|(name, _)| name.clone()).collect(),
            ops: [OpKind::Read, OpKind::Write, OpKind::Trim, OpKind::Sync]
                .into_iter()
                .filter(|op| self.summary.of(*op).count > 0)
                .collect(),
            log: self.log,
            settings: self.settings,
        })
    }
}

/// Plans the log of the job's I/O; `None`: no log.
pub(crate) fn plan_iolog(values: &Values, paths: &[&str]) -> Result<Option<String>, Refusal> {
    let Some(path) = values.get(WRITE_IOLOG).map(str::to_owned) else { return Ok(None) };
    let refuse = |option: &'static OptionRow, reason: String| {
        Err(values.refuse(option, Rule::IologUnusable { log: path.clone(), reason }))
    };
    if values.get(NUMJOBS) > 1 {
        return refuse(NUMJOBS.row(), "several workers would mix their lines; use a job and a log for each".to_owned());
    }
    if let Some(name) = paths.iter().find(|name| name.contains(|c: char| c.is_whitespace() || c.is_control())) {
        return refuse(WRITE_IOLOG.row(), format!("`{name}` contains a blank, which separates the words of a line"));
    }
    Ok(Some(path))
}
