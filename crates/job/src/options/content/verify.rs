//! Verification: what a job compares, and jobs that cannot be verified.

use crate::input::{Decisions, JobInput};
use crate::option::{OptionRow, Scope};
use crate::options::content::rows::{
    DEDUPE_PERCENTAGE, DO_VERIFY, TRIM_BACKLOG, TRIM_BACKLOG_BATCH, TRIM_PERCENTAGE, TRIM_VERIFY_ZERO, VERIFY,
    VERIFY_ASYNC, VERIFY_BACKLOG, VERIFY_BACKLOG_BATCH, VERIFY_DUMP, VERIFY_DUMP_DIRECTORY, VERIFY_EACH_LOOP,
    VERIFY_FATAL, VERIFY_INTERVAL, VERIFY_OFFSET, VERIFY_ONLY, VERIFY_PATTERN, VERIFY_PATTERN_INTERVAL, VERIFY_POLICY,
    VERIFY_STATE_FILE, VERIFY_STATE_LOAD, VERIFY_STATE_SAVE, VerifyMethod, VerifyPolicy,
};
use crate::options::durability::rows::{END_FDATASYNC, END_FSYNC, FDATASYNC, FSYNC, FSYNC_ON_CLOSE, RWF_DSYNC, SYNC};
use crate::options::engine::rows::NUMJOBS;
use crate::options::limits::ends::unit_of;
use crate::options::shape::Ops;
use crate::options::target::files::JobFile;
use crate::refusal::{Case, Refusal, Rule};
use crate::value::write_bytes;
use crate::values::Values;
use trueio_model::{BlockSizes, Checksum, EngineKind, Limits, OpKind, Order, Steps, SyncMode, TrimVerify, Verify};

/// The smallest block that can be verified: it must contain the engine's header (`BLOCK_HEADER_BYTES`).
const HEADER_BYTES: u64 = 48;

/// The parts of a job that its verification depends on.
pub(crate) struct Verified<'a> {
    pub(crate) engine: EngineKind,
    pub(crate) ops: Ops,
    pub(crate) used: &'a [(OpKind, &'a BlockSizes)],
    pub(crate) order: &'a Order,
    pub(crate) files: &'a [JobFile],
    pub(crate) limits: &'a Limits,
    /// Exceptions to the order of offsets.
    pub(crate) steps: &'a Steps,
    /// Bytes that a sequential job skips after each I/O.
    pub(crate) skip_bytes: i64,
    /// True if zones are written by their rules: each has one write in flight, the worker keeps its content, and an I/O waits
    /// for those in flight at its offset.
    pub(crate) is_zoned: bool,
    /// True if its I/Os are those of a log.
    pub(crate) is_replayed: bool,
    /// True if some files begin another pass before others have ended theirs.
    pub(crate) draws_files: bool,
}

pub(crate) fn plan_verify(
    values: &JobInput<'_>,
    decisions: &mut Decisions,
    job: &Verified<'_>,
) -> Result<Option<Verify>, Refusal> {
    let Verified { engine, ops, used, order, files, limits, steps, skip_bytes, is_zoned, is_replayed, draws_files } =
        *job;
    let VerifyMethod::Checksum(checksum) = values.get(VERIFY) else {
        if values.get(VERIFY_ONLY) {
            return Err(
                values.refuse(VERIFY_ONLY, incomplete(values, VERIFY_ONLY.row(), "`verify`: nothing is compared"))
            );
        }
        decisions.note_unused(values, &values.rows_of(Scope::Verify), "`verify` is not set");
        return Ok(None);
    };
    let verify = plan_details(values, ops, checksum)?;
    let refuse = |reason: String, case: Case| Err(values.refuse(VERIFY, Rule::VerifyImpossible { reason, case }));
    if !engine.touches_files() && checksum != Checksum::Null {
        return refuse(format!("{} keeps no data", engine.name()), Case::VerifyEngine);
    }
    if ops.has(OpKind::Trim) {
        return refuse("trimmed blocks contain no data".into(), Case::VerifyTrims);
    }
    // The last block of a region may be shortened to a multiple of this unit.
    let unit_bytes = unit_of(used);
    let is_fixed = used.iter().all(|(_, sizes)| **sizes == BlockSizes::Fixed(unit_bytes));
    let compares_pieces = verify.compares_pieces();
    let is_alone = !ops.has(OpKind::Write) && !compares_pieces;
    if !is_fixed && (is_replayed || is_zoned || is_alone) {
        return refuse(
            "blocks of several sizes are compared only by the job that writes them, without a log or zones".into(),
            Case::VerifySizesRead,
        );
    }
    if checksum.has_header() && unit_bytes < HEADER_BYTES {
        let reason = format!("a block needs {HEADER_BYTES} bytes for its header");
        return refuse(reason, Case::VerifySmall);
    }
    check_layout(values, &verify, unit_bytes)?;
    if !ops.has(OpKind::Write) {
        let names = [
            DO_VERIFY.row(),
            VERIFY_BACKLOG.row(),
            VERIFY_EACH_LOOP.row(),
            VERIFY_ASYNC.row(),
            VERIFY_STATE_SAVE.row(),
            VERIFY_POLICY.row(),
            TRIM_PERCENTAGE.row(),
        ];
        decisions.note_unused(values, &names, "the job does not write");
        let (backlog, threads, saves_state, trim, synced_only) = (0, 0, false, None, false);
        return Ok(Some(Verify { backlog, threads, saves_state, trim, synced_only, ..verify }));
    }
    // The last write of each block must be known. The engine keeps at most one write of a block in flight, and no read
    // during it, and its requests are repeatable; so it is known unless another worker writes the block.
    // With skips of whole blocks, a block begins where another one does.
    let are_whole = |bytes: u64| bytes.is_multiple_of(unit_bytes);
    let is_whole_from_end = skip_bytes >= 0 || files.iter().all(|file| are_whole(file.plan.size_bytes));
    let skips_whole = is_fixed && are_whole(skip_bytes.unsigned_abs()) && is_whole_from_end;
    if !keeps_blocks(steps, unit_bytes, is_fixed) || (skip_bytes != 0 && !skips_whole) {
        let case = Case::VerifyOverlap;
        return refuse("a block may begin within another one, whose content is then unknown".into(), case);
    }
    if values.get(NUMJOBS) > 1 {
        return refuse("several workers write to the same blocks".into(), Case::VerifyWorkers);
    }
    if values.get(DEDUPE_PERCENTAGE) > 0 && checksum != Checksum::Null {
        let reason = "each block has its own header, so none repeats another".into();
        return refuse(reason, Case::VerifyDedupe);
    }
    let held = files.iter().map(|file| file.plan.size_bytes / unit_bytes).fold(0, u64::saturating_add);
    let issued = limits.io_bytes.saturating_mul(limits.loops).div_ceil(unit_bytes);
    let issued = issued.min(limits.io_count.unwrap_or(u64::MAX));
    let is_drawn = matches!(order, Order::Random { each_block_once: false, .. }) && !is_zoned;
    let comes_again = limits.is_time_based || issued > held || is_drawn || draws_files || !steps.leaves_offsets_alone();
    if !is_fixed && !compares_pieces && comes_again {
        let reason = "a block may be overwritten in part by one of another size";
        let case = Case::VerifyPartial;
        for (option, is_set) in [(VERIFY_BACKLOG.row(), verify.backlog > 0), (VERIFY_ONLY.row(), verify.is_offline)] {
            if is_set {
                return Err(values.refuse(option, Rule::VerifyImpossible { reason: reason.into(), case }));
            }
        }
    }
    if !is_fixed && !compares_pieces && verify.is_offline && ops.has(OpKind::Read) {
        return refuse("reads and writes differ in size".into(), Case::VerifyMixedSizes);
    }
    if let Some(trim) = verify.trim.filter(|_| comes_again) {
        let reason = format!("a block that was trimmed ({} %) may be written again", trim.percent);
        return refuse(reason, Case::VerifyAgain);
    }
    if verify.synced_only {
        check_synced(values, &verify, files.len(), comes_again)?;
    }
    Ok(Some(verify))
}

/// Returns true if each block begins where another one begins, or ends: then it is overwritten whole, or not at all. Skips are left
/// out.
fn keeps_blocks(steps: &Steps, block_bytes: u64, is_fixed: bool) -> bool {
    let is_whole = |bytes: u64| bytes.is_multiple_of(block_bytes);
    let zones_keep = steps.zones.is_none_or(|zones| {
        let distance = zones.range_bytes.saturating_add(zones.skip_bytes);
        zones.range_bytes >= block_bytes && distance.is_multiple_of(block_bytes)
    });
    let others = Steps { skip_bytes: 0, trims_first: false, ..*steps };
    others.is_none()
        || (is_fixed
            && zones_keep
            && !steps.is_unaligned
            && is_whole(steps.align_bytes)
            && steps.of_writes.is_none_or(|writes| is_whole(writes.align_bytes)))
}

/// Refuses jobs of which it is unknown what the last sync call made durable: of each block, the last write before it.
fn check_synced(values: &Values, verify: &Verify, files: usize, comes_again: bool) -> Result<(), Refusal> {
    let flags = [END_FSYNC, END_FDATASYNC, FSYNC_ON_CLOSE, RWF_DSYNC];
    let syncs = values.get(FSYNC) > 0 || values.get(FDATASYNC) > 0 || flags.into_iter().any(|flag| values.get(flag));
    if !syncs && values.get(SYNC) == SyncMode::None {
        let rule = incomplete(values, VERIFY_POLICY.row(), "`fsync`, `fdatasync`, `end_fsync` or `sync`");
        return Err(values.refuse(VERIFY_POLICY, rule));
    }
    if let Some((other, _)) =
        [(VERIFY_BACKLOG.row(), verify.backlog > 0), (TRIM_PERCENTAGE.row(), verify.trim.is_some())]
            .into_iter()
            .find(|(_, is_set)| *is_set)
    {
        let (one, other_quote) = (values.quote(VERIFY_POLICY), values.quote(other));
        let reason = "blocks would be compared before they are synced";
        let case = Case::SyncedBefore;
        return Err(values.refuse(other, Rule::Contradiction { one, other: other_quote, reason, case }));
    }
    let refuse =
        |reason: &str, case| Err(values.refuse(VERIFY_POLICY, Rule::VerifyImpossible { reason: reason.into(), case }));
    if files > 1 {
        return refuse("a sync call is for one file, and the job has several", Case::SyncedFiles);
    }
    if comes_again {
        return refuse("a block that was synced may be written again without a sync call", Case::SyncedOnce);
    }
    Ok(())
}

fn incomplete(values: &Values, option: &'static OptionRow, needs: &'static str) -> Rule {
    Rule::Incomplete { option: values.quote(option), needs, case: Case::VerifyAlone }
}

/// Plans the options next to `verify`, and refuses those that contradict each other.
fn plan_details(values: &Values, ops: Ops, checksum: Checksum) -> Result<Verify, Refusal> {
    let contradiction = |one, other, reason| {
        let case = Case::VerifyOnlyWith;
        Err(values
            .refuse(other, Rule::Contradiction { one: values.quote(one), other: values.quote(other), reason, case }))
    };
    let percent = u8::try_from(values.get(TRIM_PERCENTAGE)).expect("a percentage");
    let trim_backlog = values.get(TRIM_BACKLOG);
    let trim = TrimVerify {
        percent,
        backlog: trim_backlog,
        batch: values.get(TRIM_BACKLOG_BATCH),
        is_zero: values.get(TRIM_VERIFY_ZERO),
    };
    let verify = Verify {
        interval_bytes: values.get(VERIFY_INTERVAL).unwrap_or(0),
        header_offset_bytes: values.get(VERIFY_OFFSET),
        pattern: values.get(VERIFY_PATTERN).cloned(),
        pattern_interval_bytes: values.get(VERIFY_PATTERN_INTERVAL).unwrap_or(0),
        backlog: values.get(VERIFY_BACKLOG),
        backlog_batch: values.get(VERIFY_BACKLOG_BATCH),
        threads: values.get(VERIFY_ASYNC),
        reads_back: values.get(DO_VERIFY),
        each_loop: values.get(VERIFY_EACH_LOOP),
        is_offline: values.get(VERIFY_ONLY),
        stops_at_first: values.get(VERIFY_FATAL),
        dumps: values.get(VERIFY_DUMP),
        dump_directory: values.get(VERIFY_DUMP_DIRECTORY).map(str::to_owned),
        saves_state: values.get(VERIFY_STATE_SAVE),
        loads_state: values.get(VERIFY_STATE_LOAD),
        synced_only: values.get(VERIFY_POLICY) == VerifyPolicy::Fsynced,
        trim: Some(trim).filter(|trim| trim.percent > 0),
        state_file: values.get(VERIFY_STATE_FILE).map(str::to_owned),
        ..Verify::new(checksum)
    };
    if checksum.compares_pattern() && verify.pattern.is_none() {
        return Err(values.refuse(VERIFY, incomplete(values, VERIFY.row(), "`verify_pattern`: the expected content")));
    }
    if verify.pattern_interval_bytes > 0 && verify.pattern.is_none() {
        let rule = incomplete(values, VERIFY_PATTERN_INTERVAL.row(), "`verify_pattern`: the content to repeat");
        return Err(values.refuse(VERIFY_PATTERN_INTERVAL, rule));
    }
    if percent > 0 && trim_backlog == 0 {
        return Err(
            values.refuse(TRIM_PERCENTAGE, incomplete(values, TRIM_PERCENTAGE.row(), "`trim_backlog`: when to trim"))
        );
    }
    if trim_backlog == 0 && trim.batch > 0 {
        let rule = incomplete(values, TRIM_BACKLOG_BATCH.row(), "`trim_backlog`: when to trim");
        return Err(values.refuse(TRIM_BACKLOG_BATCH, rule));
    }
    if verify.backlog == 0 && verify.backlog_batch > 0 {
        let rule = incomplete(values, VERIFY_BACKLOG_BATCH.row(), "`verify_backlog`: when to read back");
        return Err(values.refuse(VERIFY_BACKLOG_BATCH, rule));
    }
    if verify.loads_state && !verify.is_offline {
        let rule =
            incomplete(values, VERIFY_STATE_LOAD.row(), "`verify_only`: a job that writes does not use a saved state");
        return Err(values.refuse(VERIFY_STATE_LOAD, rule));
    }
    if verify.is_offline {
        if !ops.has(OpKind::Write) {
            let rule =
                incomplete(values, VERIFY_ONLY.row(), "a job that writes, the same as the one that wrote the data");
            return Err(values.refuse(VERIFY_ONLY, rule));
        }
        let others = [
            (DO_VERIFY.row(), !verify.reads_back),
            (VERIFY_BACKLOG.row(), verify.backlog > 0),
            (VERIFY_STATE_SAVE.row(), verify.saves_state),
            (TRIM_PERCENTAGE.row(), verify.trim.is_some()),
        ];
        if let Some((other, _)) = others.into_iter().find(|(_, is_set)| *is_set) {
            return contradiction(VERIFY_ONLY.row(), other, "nothing is written");
        }
    }
    Ok(verify)
}

/// Refuses intervals and header positions that do not fit into a block.
fn check_layout(values: &Values, verify: &Verify, block_bytes: u64) -> Result<(), Refusal> {
    let bad = |option: &'static OptionRow, reason: String| {
        Err(values.refuse(option, Rule::BadValue { option: option.name, reason }))
    };
    let interval = verify.interval_bytes;
    if interval > 0 && (interval < HEADER_BYTES || !block_bytes.is_multiple_of(interval)) {
        let (interval, block) = (write_bytes(interval), write_bytes(block_bytes));
        let reason = format!("{interval} does not divide {block}, or is less than {HEADER_BYTES} bytes");
        return bad(VERIFY_INTERVAL.row(), reason);
    }
    let room = if interval > 0 { interval } else { block_bytes };
    let at = verify.header_offset_bytes;
    if at > 0 && (at < HEADER_BYTES || at + HEADER_BYTES > room) {
        let most = room.saturating_sub(HEADER_BYTES);
        return bad(
            VERIFY_OFFSET.row(),
            format!("it is 0, or from {HEADER_BYTES} to {most} bytes, where a header fits"),
        );
    }
    Ok(())
}
