//! What a job verifies, and what cannot be verified.

use super::Planner;
use super::files::JobFile;
use super::job::{Ops, note_unused};
use super::values::Values;
use crate::refusal::{Refusal, Rule};
use crate::value::write_bytes;
use trueio_model::{BlockSizes, Checksum, Distribution, EngineKind, Limits, OpKind, Order, TrimVerify, Verify};

/// The least block that can be verified: the engine's header must fit (`BLOCK_HEADER_BYTES`).
const HEADER_BYTES: u64 = 48;

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
    let Verified { engine, ops, used, order, files, limits, has_steps, is_zoned, draws_files } = *job;
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
    // A block is compared whole, so its size must be known: a later write of another size would cut
    // an earlier block, and a block that no longer fits at the end begins again at the start.
    let BlockSizes::Fixed(block_bytes) = *used[0].1 else {
        return refuse("blocks of several sizes overlap".into(), "use one `bs`");
    };
    if used.iter().any(|(_, sizes)| **sizes != BlockSizes::Fixed(block_bytes)) {
        return refuse("reads and writes differ in size".into(), "use one `bs`");
    }
    if checksum.has_header() && block_bytes < HEADER_BYTES {
        let reason = format!("a block needs {HEADER_BYTES} bytes for its header");
        return refuse(reason, "use larger blocks");
    }
    check_layout(values, &verify, block_bytes)?;
    if !ops.has(OpKind::Write) {
        let names =
            ["do_verify", "verify_backlog", "verify_async", "verify_state_save", "verify_policy", "trim_percentage"];
        note_unused(planner, values, &names, "the job does not write");
        let (backlog, threads, saves_state, trim, synced_only) = (0, 0, false, None, false);
        return Ok(Some(Verify { backlog, threads, saves_state, trim, synced_only, ..verify }));
    }
    // What must be known of a written block is which write came last. That is so if nobody else
    // writes and no two writes of a block are in flight at once.
    if has_steps {
        let reason = "a block may come twice, and it is not known which write came last".into();
        return refuse(reason, "leave out zones, skips, `blockalign` and their like, or `verify`");
    }
    if draws_files {
        let said = values.quote("file_service_type");
        let reason = format!("with {said} some files are written again before others are written once");
        return refuse(reason, "use `file_service_type = \"random\"`, or leave `verify` out");
    }
    if let Order::Random { each_block_once: false, .. } = order
        && !is_zoned
    {
        let name = match values.distribution("random_distribution") {
            Distribution::Uniform => "norandommap",
            _ => "random_distribution",
        };
        let reason =
            format!("with {} a block comes twice, and it is not known which write came last", values.quote(name));
        return refuse(reason, "use `random_distribution = \"random\"` with the map, or leave `verify` out");
    }
    if values.number("numjobs").unwrap_or(1) > 1 {
        return refuse("several workers write to the same blocks".into(), "use `numjobs = 1` or one job a file");
    }
    if values.number("dedupe_percentage").unwrap_or(0) > 0 {
        let reason = "each block carries a header of its own, so none repeats another".into();
        return refuse(reason, "leave `dedupe_percentage` out");
    }
    let depth = values.number("iodepth").unwrap_or(1);
    let blocks: u64 = files.iter().map(|file| file.plan.size_bytes / block_bytes).fold(0, u64::saturating_add);
    let issued = limits.io_bytes.saturating_mul(limits.loops).div_ceil(block_bytes);
    let issued = issued.min(limits.io_count.unwrap_or(u64::MAX));
    let has_passes = limits.is_time_based || issued > blocks;
    // At the seam of two passes a block may be the last of one and among the first of the next; in
    // order too, if one I/O is stuck while the others go round.
    if depth > 1 && has_passes && !is_zoned {
        return refuse(
            "from one pass to the next, two writes of a block may be in flight at once".into(),
            "use `iodepth = 1`, or one pass: no `time_based`, `loops = 1`, `io_size` no more than `size`",
        );
    }
    if ops.has(OpKind::Read) && !ops.is_random && depth > 1 && !is_zoned {
        let reason = "a block may be read while it is written".into();
        return refuse(reason, "use `iodepth = 1` or `rw = \"randrw\"`");
    }
    if let Some(trim) = verify.trim.filter(|_| has_passes) {
        let reason = format!("a block that was trimmed ({} %) may be written again in the next pass", trim.percent);
        return refuse(reason, "use one pass: no `time_based`, `loops = 1`, `io_size` no more than `size`");
    }
    if verify.synced_only {
        check_synced(values, &verify, files.len(), has_passes)?;
    }
    Ok(Some(verify))
}

/// Only what was synced is compared: what came last before the last sync call must be known of each block.
fn check_synced(values: &Values, verify: &Verify, files: usize, has_passes: bool) -> Result<(), Refusal> {
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
    if has_passes {
        let reason = "a block of a pass that was synced may be written again in the next, which was not";
        return refuse(reason, "use one pass: no `time_based`, `loops = 1`, `io_size` no more than `size`");
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
