//! Files and devices.

pub(crate) mod files;
pub(crate) mod handling;
pub(crate) mod names;
pub(crate) mod region;
pub mod rows;
pub(crate) mod streams;
pub(crate) mod usb;

use crate::input::{Decisions, JobInput};
use crate::option::{OptionRow, Words};
use crate::options::content::rows::{VERIFY, VERIFY_ONLY, VerifyMethod};
use crate::options::durability::rows::{INVALIDATE, Invalidate};
use crate::options::engine::Engine;
use crate::options::engine::choice::check_without_data;
use crate::options::limits::rows::REPEAT_IOS_OF;
use crate::options::pattern::replay::Replayed;
use crate::options::shape::Shape;
use crate::refusal::{Case, Refusal, Rule};
pub use files::FILES_MAX;
use files::{JobFile, Use};
use handling::{Remaking, has_further_cached_passes};
use rows::{
    FALLOCATE, Fallocate, NAME_DIRECTORY, RANK_SHIFT, RANK_SHIFT_BY, SHARED_FILE, SHARED_REGION, SHARED_SEGMENTS,
};
use trueio_model::{Checksum, DirectPolicy, EngineKind, FileSelection, Handling, Limits, OpKind, UringOptions};

/// Plans the files of a job. `fills`: they are written until no space is left.
pub(crate) fn plan(
    job: &JobInput<'_>,
    shape: &Shape,
    engine: &Engine,
    replayed: Option<&Replayed>,
    fills: bool,
) -> Result<(Vec<JobFile>, Decisions), Refusal> {
    let mut decisions = Decisions::default();
    let (ops, kind) = (shape.ops, engine.kind);
    usb::check_usb(job, kind)?;
    if !job.get(SHARED_FILE) {
        let rows: [&'static OptionRow; 2] = [SHARED_REGION.row(), SHARED_SEGMENTS.row()];
        decisions.note_unused(job, &rows, "`shared_file` is not set");
        if !job.is_set(NAME_DIRECTORY) {
            let rows: [&'static OptionRow; 2] = [RANK_SHIFT.row(), RANK_SHIFT_BY.row()];
            decisions.note_unused(job, &rows, "neither `shared_file` nor `name_directory` is set");
        }
    }
    let is_offline = job.get(VERIFY_ONLY);
    let writes = (ops.has(OpKind::Write) && !is_offline) || kind == EngineKind::Falloc;
    let compares = !matches!(job.get(VERIFY), VerifyMethod::None | VerifyMethod::Checksum(Checksum::Null));
    let usage = Use {
        fills,
        writes,
        compares_existing: compares && !writes,
        trims: ops.trims,
        // An earlier job has written what the job reads.
        needs_content: (ops.has(OpKind::Read) && !job.is_set(REPEAT_IOS_OF))
            || is_offline
            || ops.has(OpKind::Trim)
            || shape.steps.trims_first,
        opens_files: kind.opens_files(),
        // `e4defrag` needs blocks to exchange.
        moves_no_data: kind.moves_no_data() && kind != EngineKind::E4defrag,
        block_bytes_max: shape.block_bytes_max(),
        block_bytes_min: shape.used().iter().map(|(_, sizes)| sizes.min_bytes()).min().unwrap_or(0),
        seed: shape.seed,
    };
    streams::check(job, &mut decisions, usage.block_bytes_min)?;
    let allocation = job.get(FALLOCATE);
    let extends = matches!(allocation, Fallocate::None | Fallocate::Keep);
    if extends && kind == EngineKind::Mmap && usage.writes {
        let lack = format!("cannot extend a file, as `fallocate = {}` requires", allocation.word());
        let rule = Rule::EngineLacks { engine: kind, lack, case: Case::EngineExtends };
        return Err(job.refuse(FALLOCATE, rule));
    }
    let files = match replayed {
        Some(replayed) => replayed.files(job, &mut decisions, &usage)?,
        None if kind.works_on_names() => vec![names::plan_names(job, &mut decisions, kind)?],
        None => files::plan_files(job, &mut decisions, &usage)?,
    };
    if kind.drives_usb_disks() {
        usb::check_sync(job, kind, &files)?;
        if ops.trims {
            usb::check_trims(job, &files)?;
        }
    }
    if kind.moves_no_data() {
        check_without_data(job, kind, ops, &files)?;
    }
    Ok((files, decisions))
}

/// What is known when the handling of files is planned.
pub(crate) struct Handled<'a> {
    pub(crate) shape: &'a Shape,
    pub(crate) engine: &'a Engine,
    pub(crate) files: &'a [JobFile],
    pub(crate) direct: DirectPolicy,
    pub(crate) limits: &'a Limits,
    pub(crate) pass_bytes: u64,
    pub(crate) selection: &'a FileSelection,
    pub(crate) is_verified: bool,
}

/// Plans how files are opened, advised, locked and created again between passes; io_uring's options follow from that.
pub(crate) fn plan_handling(
    job: &JobInput<'_>,
    known: &Handled<'_>,
) -> Result<((Handling, UringOptions), Decisions), Refusal> {
    let mut decisions = Decisions::default();
    let Handled { shape, engine, files, direct, limits, pass_bytes, selection, is_verified } = *known;
    let mut handling = handling::plan_handling(job, &mut decisions, engine.kind, shape.ops)?;
    // A file that is drawn goes on to its next pass while others are not done.
    let cached_pass_bytes = match selection {
        FileSelection::Drawn { .. } => files.iter().map(|file| file.plan.size_bytes).min().unwrap_or(0),
        _ => pass_bytes,
    };
    handling.invalidates_each_pass = job.get(INVALIDATE) == Invalidate::EachPass
        && has_further_cached_passes(job, engine.kind, direct, &shape.order, limits, cached_pass_bytes);
    let mut uring = engine.uring;
    let remaking = Remaking {
        engine: engine.kind,
        ops: shape.ops,
        order: &shape.order,
        limits,
        pass_bytes,
        files,
        is_verified,
        uring: &mut uring,
    };
    handling.remakes_each_pass = handling::plan_remaking(job, &mut decisions, remaking)?;
    handling.appends = job.get(rows::FILE_APPEND);
    Ok(((handling, uring), decisions))
}
