//! The page cache and durability.

pub(crate) mod direct;
pub(crate) mod flush;
pub mod rows;

use crate::input::{Decisions, JobInput};
use crate::option::Words;
use crate::options::content::rows::BUFFER_OFFSET;
use crate::options::content::rows::VERIFY_ONLY;
use crate::options::engine::Engine;
use crate::options::engine::choice::check_polling;
use crate::options::pattern::rows::BS_UNALIGNED;
use crate::options::pattern::zones::{InZones, plan_zones};
use crate::options::shape::{Ops, Shape};
use crate::options::target::files::JobFile;
use crate::refusal::{Case, Refusal, Rule};
use crate::value::write_bytes;
use rows::DIRECT;
use trueio_model::{DirectPolicy, EngineKind, Flush, IoLimit, OpKind, SyncMode, ZonePlan};

/// The least alignment of buffers: a page, which every engine and device accepts.
const BUFFER_ALIGNMENT_BYTES_MIN: u32 = 4096;

/// How writes become durable, and what was requested of the page cache.
pub(crate) struct Request {
    pub(crate) direct: DirectPolicy,
    pub(crate) sync: SyncMode,
    pub(crate) flush: Flush,
}

/// Plans sync calls, and what is requested of the page cache before the targets are known.
pub(crate) fn plan(job: &JobInput<'_>, engine: &Engine) -> Result<(Request, Decisions), Refusal> {
    let mut decisions = Decisions::default();
    let direct = direct::plan_direct(job, &mut decisions, engine.kind, engine.flags, engine.uring)?;
    let sync = flush::plan_sync(job, &mut decisions, engine.kind);
    let flush = flush::plan_flush(job, &mut decisions, engine.kind)?;
    Ok((Request { direct, sync, flush }, decisions))
}

/// What the targets permit of what was requested.
pub(crate) struct Granted {
    /// The files, with regions of whole zones.
    pub(crate) files: Vec<JobFile>,
    pub(crate) direct: DirectPolicy,
    pub(crate) zones: Option<ZonePlan>,
    pub(crate) buffer_alignment_bytes: u32,
    pub(crate) buffer_offset_bytes: u32,
}

/// Compares what was requested with what the targets permit.
pub(crate) fn settle(
    job: &JobInput<'_>,
    shape: &Shape,
    engine: &Engine,
    requested: DirectPolicy,
    mut files: Vec<JobFile>,
) -> Result<(Granted, Decisions), Refusal> {
    let mut decisions = Decisions::default();
    let (ops, steps) = (shape.ops, &shape.steps);
    let direct = match (steps.is_unaligned, requested) {
        (true, DirectPolicy::Require) => {
            let rule = Rule::Contradiction {
                one: job.quote(DIRECT),
                other: job.quote(BS_UNALIGNED),
                reason: "direct I/O transfers whole units only",
                case: Case::LeaveOneOut,
            };
            return Err(job.refuse(BS_UNALIGNED, rule));
        }
        (true, DirectPolicy::Prefer) => {
            decisions.derive(
                DIRECT,
                DirectPolicy::Off.word(),
                "preferred, and `bs_unaligned` has sizes that it cannot transfer",
            );
            DirectPolicy::Off
        }
        _ => requested,
    };
    let direct = direct::settle_direct(job, &mut decisions, &files, shape, direct)?;
    let buffer_offset_bytes = job.get(BUFFER_OFFSET);
    let mut direct = direct::settle_buffers(job, &mut decisions, &files, buffer_offset_bytes, direct);
    let in_zones = InZones { engine: engine.kind, ops, sizes: &shape.sizes, steps };
    let zones = plan_zones(job, &mut decisions, &in_zones, &mut files, &mut direct)?;
    let writes = (ops.has(OpKind::Write) && !job.get(VERIFY_ONLY)) || engine.kind == EngineKind::Falloc;
    if engine.flags.atomic && writes {
        direct::check_atomic(job, &files, &shape.sizes[1], shape.sizes_option)?;
    }
    if engine.uring.iopoll || engine.flags.hipri {
        check_polling(job, &files)?;
    }
    let region_bytes = files.iter().map(|file| file.plan.size_bytes).fold(0, u64::saturating_add);
    note_memory(job, &mut decisions, engine.kind, ops, direct, region_bytes);
    note_limits(&mut decisions, &files);
    let buffer_alignment_bytes = buffer_alignment(&files);
    Ok((Granted { files, direct, zones, buffer_alignment_bytes, buffer_offset_bytes }, decisions))
}

fn buffer_alignment(files: &[JobFile]) -> u32 {
    let alignments = files.iter().filter_map(|file| file.facts.as_ref()).flat_map(|facts| {
        let direct = &facts.direct;
        [&direct.memory_alignment_bytes, &direct.read_alignment_bytes, &direct.write_alignment_bytes]
            .map(|fact| fact.value.unwrap_or(1))
    });
    let least = alignments.fold(BUFFER_ALIGNMENT_BYTES_MIN, u32::max).checked_next_power_of_two();
    least.unwrap_or(BUFFER_ALIGNMENT_BYTES_MIN)
}

/// Notes what the control groups of this process limit on the disks under the files.
fn note_limits(decisions: &mut Decisions, files: &[JobFile]) {
    let mut limits: Vec<&IoLimit> = Vec::new();
    let facts = files.iter().filter_map(|file| file.facts.as_ref());
    for limit in facts.flat_map(|facts| facts.io_limits.value.iter().flatten()) {
        if !limits.contains(&limit) {
            limits.push(limit);
            decisions.note(format!("the control group `{}` limits {}", limit.group, limit.describe()));
        }
    }
}

fn note_memory(
    job: &JobInput<'_>,
    decisions: &mut Decisions,
    engine: EngineKind,
    ops: Ops,
    direct: DirectPolicy,
    region_bytes: u64,
) {
    if engine == EngineKind::Libaio && direct == DirectPolicy::Off {
        decisions.note("libaio submits buffered I/O synchronously: the queue will not fill");
    }
    let Some(memory_bytes) = job.machine.memory_bytes else { return };
    if engine.touches_files() && direct == DirectPolicy::Off && ops.has(OpKind::Read) && region_bytes < memory_bytes {
        let (files, memory) = (write_bytes(region_bytes), trueio_model::units::format_bytes(memory_bytes));
        let sentence = format!("reads of {files} can come from the page cache: the machine has {memory} of memory");
        decisions.note(&sentence);
    }
}
