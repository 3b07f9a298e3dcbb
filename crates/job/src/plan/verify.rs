//! What a job verifies, and what cannot be verified.

use super::Planner;
use super::files::JobFile;
use super::job::{Ops, note_unused};
use super::limits::unit_of;
use super::values::Values;
use crate::refusal::{Refusal, Rule};
use crate::value::write_bytes;
use trueio_model::{BlockSizes, Checksum, EngineKind, Limits, OpKind, Order, TrimVerify, Verify};

/// The least block that can be verified: the engine's header must fit (`BLOCK_HEADER_BYTES`).
const HEADER_BYTES: u64 = 48;

const ONCE: &str =
    "let each block come once: no `time_based`, `loops = 1`, `io_size` no more than `size`, the random map";

/// What is known of the job.
pub(super) struct Verified<'a> {
    pub(super) engine: EngineKind,
    pub(super) ops: Ops,
    pub(super) used: &'a [(OpKind, &'a BlockSizes)],
    pub(super) order: &'a Order,
    pub(super) files: &'a [JobFile],
    pub(super) limits: &'a Limits,
    /// Offsets are not plainly the next block, or each once.
    pub(super) has_steps: bool,
    /// Zones are written by their rules: one write at a time in each, the worker knows what each holds, and an I/O
    /// waits for what is in flight at its place.
    pub(super) is_zoned: bool,
    /// Its I/Os are those of a log.
    pub(super) is_replayed: bool,
    /// Some files begin another pass before others have ended theirs.
    pub(super) draws_files: bool,
}

/// Options that mean something beside `verify` only.
const BESIDE: [&str; 18] = [
    "do_verify",
    "verify_only",
    "verify_interval",
    "verify_offset",
    "verify_pattern",
    "verify_pattern_interval",
    "verify_policy",
    "verify_backlog",
    "verify_backlog_batch",
    "verify_async",
    "verify_fatal",
    "verify_dump",
    "verify_state_save",
    "verify_state_load",
    "trim_percentage",
    "trim_verify_zero",
    "trim_backlog",
    "trim_backlog_batch",
];

pub(super) fn plan_verify(
    planner: &mut Planner,
    values: &Values,
    job: &Verified<'_>,
) -> Result<Option<Verify>, Refusal> {
    let Verified { engine, ops, used, order, files, limits, has_steps, is_zoned, is_replayed, draws_files } = *job;
    let word = values.choice("verify");
    let Some(checksum) = Checksum::ALL.into_iter().find(|kind| word == Some(kind.name())) else {
        if values.bool("verify_only") {
            return Err(
                values.refuse("verify_only", incomplete(values, "verify_only", "`verify`: nothing is compared"))
            );
        }
        note_unused(planner, values, &BESIDE, "`verify` is not asked for");
        return Ok(None);
    };
    let verify = plan_details(values, ops, checksum)?;
    let refuse =
        |reason: String, hint: &'static str| Err(values.refuse("verify", Rule::VerifyImpossible { reason, hint }));
    if !engine.touches_files() && checksum != Checksum::Null {
        return refuse(format!("{} keeps no data", engine.name()), "choose an engine that does I/O");
    }
    if ops.has(OpKind::Trim) {
        return refuse("trimmed blocks hold nothing".into(), "leave `verify` out");
    }
    // Blocks may be cut to a unit.
    let unit_bytes = unit_of(used);
    let is_fixed = used.iter().all(|(_, sizes)| **sizes == BlockSizes::Fixed(unit_bytes));
    if !is_fixed && (is_replayed || is_zoned || !ops.has(OpKind::Write)) {
        return refuse(
            "blocks of several sizes are compared by the job alone that writes them, where no log and no zone says how"
                .into(),
            "use one `bs`",
        );
    }
    if checksum.has_header() && unit_bytes < HEADER_BYTES {
        let reason = format!("a block needs {HEADER_BYTES} bytes for its header");
        return refuse(reason, "use larger blocks");
    }
    check_layout(values, &verify, unit_bytes)?;
    if !ops.has(OpKind::Write) {
        let names =
            ["do_verify", "verify_backlog", "verify_async", "verify_state_save", "verify_policy", "trim_percentage"];
        note_unused(planner, values, &names, "the job does not write");
        let (backlog, threads, saves_state, trim, synced_only) = (0, 0, false, None, false);
        return Ok(Some(Verify { backlog, threads, saves_state, trim, synced_only, ..verify }));
    }
    // What must be known of a written block is which write came last. The engine lets no two writes of a block be in flight
    // at once, nor a read beside a write, and its requests can be told again: so that is so if nobody else writes.
    if has_steps {
        let reason = "a block may begin within another one, and what is left of that is not known".into();
        return refuse(reason, "leave out zones, skips, `blockalign` and their like, or `verify`");
    }
    if values.number("numjobs").unwrap_or(1) > 1 {
        return refuse("several workers write to the same blocks".into(), "use `numjobs = 1` or one job a file");
    }
    if values.number("dedupe_percentage").unwrap_or(0) > 0 {
        let reason = "each block carries a header of its own, so none repeats another".into();
        return refuse(reason, "leave `dedupe_percentage` out");
    }
    let held = files.iter().map(|file| file.plan.size_bytes / unit_bytes).fold(0, u64::saturating_add);
    let issued = limits.io_bytes.saturating_mul(limits.loops).div_ceil(unit_bytes);
    let issued = issued.min(limits.io_count.unwrap_or(u64::MAX));
    let is_drawn = matches!(order, Order::Random { each_block_once: false, .. }) && !is_zoned;
    let comes_again = limits.is_time_based || issued > held || is_drawn || draws_files;
    if !is_fixed && comes_again {
        let reason = "a block may be overwritten in part by one of another size";
        let hint = "use one `bs`, or blocks that come once: the random map and one pass";
        for (option, is_asked) in [("verify_backlog", verify.backlog > 0), ("verify_only", verify.is_offline)] {
            if is_asked {
                return Err(values.refuse(option, Rule::VerifyImpossible { reason: reason.into(), hint }));
            }
        }
    }
    if !is_fixed && verify.is_offline && ops.has(OpKind::Read) {
        return refuse("reads and writes differ in size".into(), "use one `bs`");
    }
    if let Some(trim) = verify.trim.filter(|_| comes_again) {
        let reason = format!("a block that was trimmed ({} %) may be written again", trim.percent);
        return refuse(reason, ONCE);
    }
    if verify.synced_only {
        check_synced(values, &verify, files.len(), comes_again)?;
    }
    Ok(Some(verify))
}

/// Only what was synced is compared: what came last before the last sync call must be known of each block.
fn check_synced(values: &Values, verify: &Verify, files: usize, comes_again: bool) -> Result<(), Refusal> {
    let number = |name| values.number(name).unwrap_or(0) > 0;
    let flags = ["end_fsync", "end_fdatasync", "fsync_on_close", "rwf_dsync"];
    let syncs = number("fsync") || number("fdatasync") || flags.iter().any(|flag| values.bool(flag));
    if !syncs && values.choice("sync").is_none_or(|sync| sync == "none") {
        let rule = incomplete(values, "verify_policy", "`fsync`, `fdatasync`, `end_fsync` or `sync`: what is synced");
        return Err(values.refuse("verify_policy", rule));
    }
    if let Some((other, _)) = [("verify_backlog", verify.backlog > 0), ("trim_percentage", verify.trim.is_some())]
        .into_iter()
        .find(|(_, is_set)| *is_set)
    {
        let (one, other_quote) = (values.quote("verify_policy"), values.quote(other));
        let reason = "blocks would be looked at before they are synced";
        let hint = "leave one of them out";
        return Err(values.refuse(other, Rule::Contradiction { one, other: other_quote, reason, hint }));
    }
    let refuse = |reason: &str, hint| {
        Err(values.refuse("verify_policy", Rule::VerifyImpossible { reason: reason.into(), hint }))
    };
    if files > 1 {
        return refuse("a sync call is for one file, and the job has several", "use a job for each file");
    }
    if comes_again {
        return refuse("a block that was synced may be written again, and that not be", ONCE);
    }
    Ok(())
}

fn incomplete(values: &Values, option: &'static str, needs: &'static str) -> Rule {
    Rule::Incomplete { option: values.quote(option), needs, hint: "say it too, or leave this out" }
}

/// The options beside `verify`, held against each other.
fn plan_details(values: &Values, ops: Ops, checksum: Checksum) -> Result<Verify, Refusal> {
    let contradiction = |one, other, reason| {
        let hint = "leave one of them out";
        Err(values
            .refuse(other, Rule::Contradiction { one: values.quote(one), other: values.quote(other), reason, hint }))
    };
    let percent = u8::try_from(values.number("trim_percentage").unwrap_or(0)).expect("a percentage");
    let trim_backlog = values.number("trim_backlog").unwrap_or(0);
    let trim = TrimVerify {
        percent,
        backlog: trim_backlog,
        batch: values.number("trim_backlog_batch").unwrap_or(0),
        is_zero: values.bool("trim_verify_zero"),
    };
    let verify = Verify {
        interval_bytes: values.number("verify_interval").unwrap_or(0),
        header_offset_bytes: values.number("verify_offset").unwrap_or(0),
        pattern: values.block_pattern("verify_pattern").cloned(),
        pattern_interval_bytes: values.number("verify_pattern_interval").unwrap_or(0),
        backlog: values.number("verify_backlog").unwrap_or(0),
        backlog_batch: values.number("verify_backlog_batch").unwrap_or(0),
        threads: values.small("verify_async").unwrap_or(0),
        reads_back: values.bool("do_verify"),
        is_offline: values.bool("verify_only"),
        stops_at_first: values.bool("verify_fatal"),
        dumps: values.bool("verify_dump"),
        saves_state: values.bool("verify_state_save"),
        loads_state: values.bool("verify_state_load"),
        synced_only: values.choice("verify_policy") == Some("fsynced"),
        trim: Some(trim).filter(|trim| trim.percent > 0),
        ..Verify::new(checksum)
    };
    if checksum.compares_pattern() && verify.pattern.is_none() {
        return Err(values.refuse("verify", incomplete(values, "verify", "`verify_pattern`: what is compared")));
    }
    if verify.pattern_interval_bytes > 0 && verify.pattern.is_none() {
        let rule = incomplete(values, "verify_pattern_interval", "`verify_pattern`: what begins anew");
        return Err(values.refuse("verify_pattern_interval", rule));
    }
    if percent > 0 && trim_backlog == 0 {
        return Err(
            values.refuse("trim_percentage", incomplete(values, "trim_percentage", "`trim_backlog`: when to trim"))
        );
    }
    if trim_backlog == 0 && trim.batch > 0 {
        let rule = incomplete(values, "trim_backlog_batch", "`trim_backlog`: when to trim");
        return Err(values.refuse("trim_backlog_batch", rule));
    }
    if verify.backlog == 0 && verify.backlog_batch > 0 {
        let rule = incomplete(values, "verify_backlog_batch", "`verify_backlog`: when to read back");
        return Err(values.refuse("verify_backlog_batch", rule));
    }
    if verify.loads_state && !verify.is_offline {
        let rule = incomplete(values, "verify_state_load", "`verify_only`: a job that writes makes a state of its own");
        return Err(values.refuse("verify_state_load", rule));
    }
    if verify.is_offline {
        if !ops.has(OpKind::Write) {
            let rule = incomplete(values, "verify_only", "a job that would write, such as the one that wrote");
            return Err(values.refuse("verify_only", rule));
        }
        let beside = [
            ("do_verify", !verify.reads_back),
            ("verify_backlog", verify.backlog > 0),
            ("verify_state_save", verify.saves_state),
            ("trim_percentage", verify.trim.is_some()),
        ];
        if let Some((other, _)) = beside.into_iter().find(|(_, is_set)| *is_set) {
            return contradiction("verify_only", other, "nothing is written");
        }
    }
    Ok(verify)
}

/// Intervals and hidden headers must fit into a block.
fn check_layout(values: &Values, verify: &Verify, block_bytes: u64) -> Result<(), Refusal> {
    let bad = |option: &'static str, reason: String| Err(values.refuse(option, Rule::BadValue { option, reason }));
    let interval = verify.interval_bytes;
    if interval > 0 && (interval < HEADER_BYTES || !block_bytes.is_multiple_of(interval)) {
        let (interval, block) = (write_bytes(interval), write_bytes(block_bytes));
        let reason = format!("{interval} is not a part of {block} without a rest, {HEADER_BYTES} bytes or more");
        return bad("verify_interval", reason);
    }
    let room = if interval > 0 { interval } else { block_bytes };
    let at = verify.header_offset_bytes;
    if at > 0 && (at < HEADER_BYTES || at + HEADER_BYTES > room) {
        let most = room.saturating_sub(HEADER_BYTES);
        return bad("verify_offset", format!("it is 0, or from {HEADER_BYTES} to {most} bytes, where a header fits"));
    }
    Ok(())
}
