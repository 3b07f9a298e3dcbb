//! Jobs that replay a log: what it would do, to which files, and what may not be said beside it.
//!
//! The whole log is read while planning, as a stream, so that every file it names goes through the same rules as one
//! that the job names: what exists is written only if it is named for that, nothing grows, what is in use is not
//! touched.

use super::Planner;
use super::files::{JobFile, Use, check_overwrite_names, existing_file, new_file, plain, untouched_file};
use super::job::{Ops, note_unused};
use super::values::Values;
use super::{Target, join_path};
use crate::refusal::{Refusal, Rule};
use crate::value::{Value, write_bytes, write_paths};
use std::collections::BTreeMap;
use trueio_model::{BlockSizes, EngineKind, IologSummary, JobSpec, OpKind, OpMix, ReplayPlan, ReplaySettings};

/// What a log says itself.
const SAID_BY_THE_LOG: &[&str] = &[
    "rw",
    "sequential_skip",
    "random_every",
    "rw_sequencer",
    "bs",
    "bsrange",
    "bssplit",
    "bs_unaligned",
    "blockalign",
    "rwmixread",
    "rwmixwrite",
    "norandommap",
    "random_distribution",
    "percentage_random",
    "filename",
    "nrfiles",
    "openfiles",
    "file_service_type",
    "file_service_ios",
    "size",
    "filesize",
    "io_size",
    "offset",
    "number_ios",
    "loops",
    "file_append",
    "fill_device",
    "unlink_each_loop",
];

/// What would make something else of a log than its replay.
const AGAINST_THE_LOG: &[&str] = &[
    "time_based",
    "rate",
    "rate_iops",
    "thinktime",
    "fsync",
    "fdatasync",
    "sync_file_range",
    "verify",
    "zonemode",
    "steady_state",
    "steadystate_duration",
    "latency_target",
    "flow",
    "command",
    "source",
    "atomic",
];

/// How a log is replayed.
pub(super) const SETTINGS: &[&str] =
    &["replay_no_stall", "replay_time_scale", "replay_redirect", "replay_align", "replay_scale", "replay_skip"];

/// A log that was read.
pub(super) struct Replayed {
    log: String,
    settings: ReplaySettings,
    summary: IologSummary,
}

/// What `read_iolog` asks for; `None` without it.
pub(super) fn plan_replay(planner: &mut Planner, values: &mut Values) -> Result<Option<Replayed>, Refusal> {
    let Some(log) = values.paths("read_iolog").map(<[String]>::concat) else {
        note_unused(planner, values, SETTINGS, "no log is replayed");
        return Ok(None);
    };
    let is_off = |name: &str| match name {
        "time_based" | "atomic" | "steady_state" => !values.bool(name),
        "fsync" | "fdatasync" | "flow" => values.number(name).is_none_or(|every| every == 0),
        "rate" | "rate_iops" => values.rates(name).is_none(),
        "thinktime" | "steadystate_duration" | "latency_target" => values.duration_ns(name).is_none(),
        "verify" | "zonemode" => values.choice(name) == Some("none"),
        _ => !values.is_said(name),
    };
    if let Some(other) = AGAINST_THE_LOG.iter().find(|name| !is_off(name)) {
        let rule = Rule::Contradiction {
            one: values.quote("read_iolog"),
            other: values.quote(other),
            reason: "a log is replayed once, as it was written",
            hint: "leave one of them out",
        };
        return Err(values.refuse(other, rule));
    }
    note_unused(planner, values, SAID_BY_THE_LOG, "the log says it (`read_iolog`)");
    for name in SAID_BY_THE_LOG {
        values.forget(name, "the log says it (`read_iolog`)");
    }
    let settings = settings_of(values)?;
    let summary = planner.facts.iolog(&log, &settings).and_then(|summary| match summary.files.is_empty() {
        true => Err("it asks for no I/O".to_owned()),
        false => Ok(summary),
    });
    let summary =
        summary.map_err(|reason| values.refuse("read_iolog", Rule::IologUnusable { log: log.clone(), reason }))?;
    let names: Vec<String> = summary.files.iter().map(|(name, _)| name.clone()).collect();
    values.settle("filename", Value::Paths(names), "the log names them");
    Ok(Some(Replayed { log, settings, summary }))
}

fn settings_of(values: &Values) -> Result<ReplaySettings, Refusal> {
    let align_bytes = values.number("replay_align").unwrap_or(1).max(1);
    if !align_bytes.is_power_of_two() {
        let reason = format!("{align_bytes} is not a power of two");
        return Err(values.refuse("replay_align", Rule::BadValue { option: "replay_align", reason }));
    }
    let mut skips = Vec::new();
    for word in values.names("replay_skip") {
        skips.push(match word.as_str() {
            "read" => OpKind::Read,
            "write" => OpKind::Write,
            "trim" => OpKind::Trim,
            "sync" => OpKind::Sync,
            _ => {
                let reason = format!("`{word}` is not one of read, write, trim, sync");
                return Err(values.refuse("replay_skip", Rule::BadValue { option: "replay_skip", reason }));
            }
        });
    }
    Ok(ReplaySettings {
        is_paced: !values.bool("replay_no_stall"),
        time_scale_percent: values.number("replay_time_scale").unwrap_or(100),
        redirect: values.paths("replay_redirect").map(<[String]>::concat),
        align_bytes,
        offset_divisor: values.number("replay_scale").unwrap_or(1),
        skips,
    })
}

/// What a job of fio's replays, for who must know before there is a plan; `None` if it replays nothing or its words
/// cannot be read, which the plan says.
pub(crate) fn replay_of(spec: &JobSpec) -> Option<(String, ReplaySettings)> {
    spec.options.get("read_iolog")?;
    let values = Values::resolve(spec).ok()?;
    let log = values.paths("read_iolog").map(<[String]>::concat)?;
    Some((log, settings_of(&values).ok()?))
}

impl Replayed {
    /// The operations, and the nearest thing to them that a pattern could say.
    pub(super) fn ops(&self, values: &mut Values) -> Ops {
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
        values.derive("rw", "", "the log says what is done (`read_iolog`)");
        Ops { mix, is_random: false, replayed: Some([reads > 0, writes > 0, trims > 0]), trims: trims > 0 }
    }

    /// The lengths of reads, writes and trims: up to the longest, in steps of what offsets and lengths are all
    /// multiples of.
    pub(super) fn sizes(&self) -> [BlockSizes; 3] {
        [OpKind::Read, OpKind::Write, OpKind::Trim].map(|op| {
            let ops = self.summary.of(op);
            match (ops.unit_bytes, ops.length_bytes_max) {
                (0, _) => BlockSizes::Fixed(1),
                (unit, max) if unit == max => BlockSizes::Fixed(max),
                (min_bytes, max_bytes) => BlockSizes::Range { min_bytes, max_bytes },
            }
        })
    }

    /// Bytes that are transferred, and the length of the log.
    pub(super) fn bytes(&self) -> u64 {
        self.summary.ops.iter().map(|ops| ops.bytes).fold(0, u64::saturating_add)
    }

    /// Refuses engines that do not transfer to and from files.
    pub(super) fn check_engine(&self, values: &Values, engine: EngineKind) -> Result<(), Refusal> {
        let is_other = engine.works_on_names() || engine.moves_no_data() || !engine.does_io();
        if !is_other {
            return Ok(());
        }
        let rule = Rule::EngineLacks {
            engine,
            lack: "does not do what a log holds: reads, writes and trims of files".into(),
            hint: "choose another engine",
        };
        Err(values.refuse("ioengine", rule))
    }

    /// The files, each as far as the log's I/O goes.
    pub(super) fn files(
        &self,
        planner: &mut Planner,
        values: &mut Values,
        usage: &Use,
    ) -> Result<Vec<JobFile>, Refusal> {
        let directory = values.paths("directory").map(|paths| paths[0].clone());
        let mut seen: BTreeMap<String, &String> = BTreeMap::new();
        let mut paths = Vec::new();
        for (name, _) in &self.summary.files {
            if let (Some(_), true) = (&directory, name.starts_with('/')) {
                let rule = Rule::Contradiction {
                    one: values.quote("directory"),
                    other: values.quote("read_iolog"),
                    reason: "the log has a path that begins at the root already",
                    hint: "leave `directory` out",
                };
                return Err(values.refuse("directory", rule));
            }
            let path = join_path(directory.as_deref(), name);
            if let Some(earlier) = seen.insert(plain(&path), name) {
                let reason = format!("`{earlier}` and `{name}` in it are one file");
                return Err(values.refuse("read_iolog", Rule::IologUnusable { log: self.log.clone(), reason }));
            }
            paths.push(path);
        }
        check_overwrite_names(planner, values, usage, &paths)?;
        let (mut files, mut carried) = (Vec::new(), Vec::new());
        for (path, (_, end_bytes)) in paths.iter().zip(&self.summary.files) {
            // A file that is only synced has no length in the log.
            let end_bytes = (*end_bytes).max(1);
            let sizes = (paths.len(), Some(end_bytes));
            values.settle("offset", Value::Extent(crate::value::Extent::Bytes(0)), "the log has offsets");
            files.push(match usage.opens_files {
                false => untouched_file(values, path, sizes)?,
                true => match planner.look(path) {
                    Target::Unreadable(reason) => {
                        let rule = Rule::TargetUnreadable { path: path.clone(), reason };
                        return Err(values.refuse("read_iolog", rule));
                    }
                    Target::Present(facts) => existing_file(planner, values, usage, path, *facts, sizes, &mut carried)?,
                    Target::Missing => new_file(planner, values, usage, path, sizes)?,
                },
            });
        }
        if let Some(name) = values.names("overwrite_signature").iter().find(|name| !carried.contains(*name)) {
            let rule = Rule::SignatureNotThere { name: name.clone(), found: carried };
            return Err(values.refuse("overwrite_signature", rule));
        }
        let total = files.iter().map(|file| file.plan.size_bytes).fold(0, u64::saturating_add);
        values.derive("filename", write_paths(&paths), "the log names them");
        values.derive("filesize", "", "as far as the log goes in each");
        values.derive("size", write_bytes(total), "as far as the log goes");
        Ok(files)
    }

    /// For the run.
    pub(super) fn into_plan(self) -> Box<ReplayPlan> {
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

/// Where what is issued is written down; `None`: nowhere.
pub(super) fn plan_iolog(values: &Values, paths: &[&str]) -> Result<Option<String>, Refusal> {
    let Some(path) = values.paths("write_iolog").map(<[String]>::concat) else { return Ok(None) };
    let refuse =
        |option: &str, reason: String| Err(values.refuse(option, Rule::IologUnusable { log: path.clone(), reason }));
    if values.number("numjobs").unwrap_or(1) > 1 {
        return refuse("numjobs", "several workers would mix their lines; give each a job and a log".to_owned());
    }
    if let Some(name) = paths.iter().find(|name| name.contains(|c: char| c.is_whitespace() || c.is_control())) {
        return refuse("write_iolog", format!("`{name}` has a blank in it, which its lines cannot tell"));
    }
    Ok(Some(path))
}
