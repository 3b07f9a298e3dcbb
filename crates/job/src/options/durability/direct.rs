//! Whether I/O is direct, and whether its sizes, offsets and buffers are aligned for that.

use crate::input::{Decisions, JobInput};
use crate::option::{OptionRow, Words};
use crate::options::content::rows::BUFFER_OFFSET;
use crate::options::durability::rows::{ATOMIC, DIRECT, UNCACHED};
use crate::options::engine::rows::HIPRI;
use crate::options::pattern::rows::{BLOCKALIGN, SEQUENTIAL_SKIP, ZONERANGE, ZONESKIP};
use crate::options::shape::Shape;
use crate::options::target::files::JobFile;
use crate::options::target::rows::{OFFSET, SIZE};
use crate::refusal::{Case, Refusal, Rule};
use crate::value::write_bytes;
use crate::values::Values;
use trueio_model::{
    BlockSizes, DirectPolicy, DirectSupport, EngineKind, OpKind, Steps, TargetFacts, TargetKind, UringOptions,
    WriteFlags,
};

/// Plans direct or buffered I/O, before the targets are known.
pub(crate) fn plan_direct(
    values: &JobInput<'_>,
    decisions: &mut Decisions,
    engine: EngineKind,
    flags: WriteFlags,
    uring: UringOptions,
) -> Result<DirectPolicy, Refusal> {
    let wanted = values.get(DIRECT);
    let contradiction = |values: &Values, name: &'static OptionRow, reason: &'static str, case: Case| {
        let rule = Rule::Contradiction { one: values.quote(DIRECT), other: values.quote(name), reason, case };
        values.refuse(DIRECT, rule)
    };
    if !engine.touches_files() {
        decisions.derive(DIRECT, DirectPolicy::Off.word(), format!("{} moves no data", engine.name()));
        return Ok(DirectPolicy::Off);
    }
    if engine == EngineKind::Command {
        decisions.derive(DIRECT, DirectPolicy::Off.word(), "the program opens the file by itself");
        return Ok(DirectPolicy::Off);
    }
    if engine == EngineKind::Mmap {
        if wanted == DirectPolicy::Require {
            let lack = "works in the page cache".into();
            let rule = Rule::EngineLacks { engine, lack, case: Case::DirectMapped };
            return Err(values.refuse(DIRECT, rule));
        }
        if wanted != DirectPolicy::Off {
            decisions.derive(DIRECT, DirectPolicy::Off.word(), "mmap works in the page cache");
        }
        return Ok(DirectPolicy::Off);
    }
    if engine.drives_usb_disks() {
        if wanted == DirectPolicy::Off {
            let lack = "passes no page cache".into();
            return Err(values.refuse(DIRECT, Rule::EngineLacks { engine, lack, case: Case::DirectUsb }));
        }
        if wanted == DirectPolicy::Prefer {
            decisions.derive(DIRECT, DirectPolicy::Require.word(), "commands to a disk pass no page cache");
        }
        return Ok(DirectPolicy::Require);
    }
    let needs_direct = if uring.iopoll || flags.hipri {
        Some(HIPRI.row())
    } else if flags.atomic {
        Some(ATOMIC.row())
    } else {
        None
    };
    if flags.dontcache {
        if let Some(name) = needs_direct {
            let rule = Rule::Contradiction {
                one: values.quote(UNCACHED),
                other: values.quote(name),
                reason: "one goes through the page cache, the other bypasses it",
                case: Case::UncachedPolled,
            };
            return Err(values.refuse(UNCACHED, rule));
        }
        if wanted == DirectPolicy::Require {
            let reason = "RWF_DONTCACHE goes through the page cache";
            return Err(contradiction(values, UNCACHED.row(), reason, Case::LeaveOneOut));
        }
        if wanted == DirectPolicy::Prefer {
            decisions.derive(DIRECT, DirectPolicy::Off.word(), "`uncached` goes through the page cache");
        }
        return Ok(DirectPolicy::Off);
    }
    if let Some(name) = needs_direct {
        if wanted == DirectPolicy::Off {
            return Err(contradiction(values, name, "it works on direct I/O only", Case::DirectOff));
        }
        if wanted == DirectPolicy::Prefer {
            decisions.derive(DIRECT, DirectPolicy::Require.word(), format!("`{}` works on direct I/O only", name.name));
        }
        return Ok(DirectPolicy::Require);
    }
    Ok(wanted)
}

/// Compares the policy with what the targets support.
pub(crate) fn settle_direct(
    values: &JobInput<'_>,
    decisions: &mut Decisions,
    files: &[JobFile],
    shape: &Shape,
    policy: DirectPolicy,
) -> Result<DirectPolicy, Refusal> {
    let used = shape.used();
    let mut misaligned = None;
    for file in files {
        let Some(facts) = &file.facts else { continue };
        let path = &file.plan.path;
        let has_no_direct = matches!(facts.direct.support, DirectSupport::SilentlyBuffered | DirectSupport::Refused);
        if policy == DirectPolicy::Require && has_no_direct {
            let rule = Rule::DirectImpossible { path: path.clone(), reason: facts.direct.reason.clone() };
            return Err(values.refuse(DIRECT, rule));
        }
        // The operations of a job share a grid of offsets, so the strictest alignment applies to all. A device is trimmed
        // in whole sectors, also with buffered I/O; a hole may begin anywhere in a file.
        let transfers = used.iter().any(|(op, _)| *op != OpKind::Trim);
        let trims_sectors = shape.ops.trims && facts.kind == TargetKind::BlockDevice;
        let must_align = trims_sectors || (transfers && policy != DirectPolicy::Off);
        let alignments = used.iter().filter_map(|(op, _)| alignment_of(facts, *op));
        let strictest = alignments.filter(|_| must_align).max_by_key(|alignment| alignment.bytes);
        let Some(alignment) = strictest else { continue };
        let sizes = used.iter().flat_map(|(_, sizes)| unit_sizes(sizes));
        let sizes = sizes.map(|bytes| (shape.sizes_option, "a block", bytes));
        let offset = std::iter::once((OFFSET.row(), "the offset", file.plan.offset_bytes));
        let offsets = offsets_of(&shape.steps, file.plan.size_bytes, &used);
        for (option, what, value_bytes) in sizes.chain(offset).chain(offsets) {
            if value_bytes.is_multiple_of(alignment.bytes) {
                continue;
            }
            let (alignment_bytes, source_text) = (alignment.bytes, alignment.source.clone());
            let rule = Rule::Misaligned { what, value_bytes, alignment_bytes, path: path.clone(), source_text };
            if trims_sectors || policy == DirectPolicy::Require {
                return Err(values.refuse(option, rule));
            }
            misaligned.get_or_insert(rule);
        }
    }
    match misaligned {
        None => Ok(policy),
        Some(rule) => {
            decisions.note(format!("direct I/O is preferred, but not possible: {rule}"));
            decisions.derive(
                DIRECT,
                DirectPolicy::Off.word(),
                "preferred, but sizes or offset are not aligned for direct I/O",
            );
            Ok(DirectPolicy::Off)
        }
    }
}

/// Returns the options that set offsets within a region: the option, its description, and bytes.
fn offsets_of(
    steps: &Steps,
    region_bytes: u64,
    used: &[(OpKind, &BlockSizes)],
) -> impl Iterator<Item = (&'static OptionRow, &'static str, u64)> {
    let aligns = [Some(steps.align_bytes), steps.of_writes.map(|writes| writes.align_bytes)];
    let aligns = aligns.map(|bytes| Some((BLOCKALIGN.row(), "`blockalign`", bytes?)));
    let skip = Some((SEQUENTIAL_SKIP.row(), "the skip", steps.skip_bytes.unsigned_abs()));
    // A job that goes backwards begins at the end.
    let is_backwards = steps.skip_bytes < 0;
    let end = is_backwards.then_some((SIZE.row(), "the region, which the job covers from its end,", region_bytes));
    let block_bytes_max = used.iter().map(|(_, sizes)| sizes.max_bytes()).max().unwrap_or(0);
    let zones = steps.zones.map_or([None; 2], |zones| {
        let next = zones.range_bytes.saturating_add(zones.skip_bytes);
        let within = (is_backwards || zones.range_bytes < block_bytes_max).then_some(zones.range_bytes);
        [Some((ZONESKIP.row(), "a zone with the skip after it", next)), within.map(|b| (ZONERANGE.row(), "a zone", b))]
    });
    aligns.into_iter().chain([skip, end]).chain(zones).flatten()
}

/// Compares deliberately misaligned buffers with the requirement of direct I/O. If direct I/O is required, the calls are made
/// and the kernel refuses them, as intended. If it is preferred, the job is buffered.
pub(crate) fn settle_buffers(
    values: &JobInput<'_>,
    decisions: &mut Decisions,
    files: &[JobFile],
    offset_bytes: u32,
    policy: DirectPolicy,
) -> DirectPolicy {
    let facts = files.iter().filter_map(|file| file.facts.as_ref());
    let needed = facts.map(|facts| facts.direct.memory_alignment_bytes.value.unwrap_or(512).max(1));
    let Some(needed) = needed.max().filter(|needed| !offset_bytes.is_multiple_of(*needed)) else { return policy };
    let buffers = format!(
        "{} puts the buffers at addresses that are not multiples of {needed} bytes",
        values.quote(BUFFER_OFFSET)
    );
    match policy {
        DirectPolicy::Off => policy,
        DirectPolicy::Prefer => {
            decisions.note(format!("direct I/O is preferred, but not possible: {buffers}"));
            decisions.derive(
                DIRECT,
                DirectPolicy::Off.word(),
                "preferred, but the buffers are not aligned for direct I/O",
            );
            DirectPolicy::Off
        }
        DirectPolicy::Require => {
            decisions.note(format!("{buffers}, which direct I/O requires: all its calls may fail"));
            policy
        }
    }
}

/// The alignment that direct I/O requires of an operation's offset and length.
pub(crate) struct IoAlignment {
    pub(crate) bytes: u64,
    /// Where it was read.
    source: String,
}

/// Returns the alignment of an operation on a target; `None` if it is unknown.
pub(crate) fn alignment_of(facts: &TargetFacts, op: OpKind) -> Option<IoAlignment> {
    let fact = match op {
        OpKind::Read => &facts.direct.read_alignment_bytes,
        _ => &facts.direct.write_alignment_bytes,
    };
    if let Some(bytes) = fact.value {
        return Some(IoAlignment { bytes: u64::from(bytes.max(1)), source: fact.source.clone() });
    }
    let sectors = facts.disks.iter().map(|disk| &disk.logical_sector_bytes);
    let of_sector =
        |bytes: u32, source: &String| IoAlignment { bytes: u64::from(bytes.max(1)), source: source.clone() };
    sectors.filter_map(|sector| Some(of_sector(sector.value?, &sector.source))).max_by_key(|alignment| alignment.bytes)
}

/// Returns every size of an operation, or the unit of its sizes.
pub(crate) fn unit_sizes(sizes: &BlockSizes) -> Vec<u64> {
    match sizes {
        BlockSizes::Fixed(bytes) => vec![*bytes],
        BlockSizes::Range { min_bytes, .. } => vec![*min_bytes],
        BlockSizes::Weighted(pairs) => pairs.iter().map(|pair| pair.0).collect(),
    }
}

/// Compares atomic writes with the limits of the targets. Where these are unknown, the kernel decides at the first write.
///
/// Source: statx(2) `STATX_WRITE_ATOMIC`; pwritev2(2) `RWF_ATOMIC`: a power of two, within the limits,
/// at a multiple of its length.
pub(crate) fn check_atomic(
    values: &Values,
    files: &[JobFile],
    sizes: &BlockSizes,
    sizes_option: &'static OptionRow,
) -> Result<(), Refusal> {
    for file in files {
        let Some(facts) = &file.facts else { continue };
        let path = &file.plan.path;
        let refuse = |option: &'static OptionRow, reason: String| {
            Err(values.refuse(option, Rule::AtomicImpossible { path: path.clone(), reason }))
        };
        // statx reports nothing for a block device without atomic writes, but its queue does.
        let limit = |disk: &trueio_model::DiskFacts| disk.limits.atomic_write_max_bytes.value;
        let is_bare = facts.kind == TargetKind::BlockDevice && !facts.disks.is_empty();
        if is_bare && facts.disks.iter().all(|disk| limit(disk) == Some(0)) {
            let source = &facts.disks[0].limits.atomic_write_max_bytes.source;
            return refuse(ATOMIC.row(), format!("the disk supports none ({source} is 0)"));
        }
        let atomic = &facts.direct.atomic_write;
        let Some(limits) = atomic.value else { continue };
        if limits.max_bytes == 0 {
            return refuse(ATOMIC.row(), format!("it supports none ({})", atomic.source));
        }
        let BlockSizes::Fixed(bytes) = *sizes else {
            let reason = "blocks of several sizes are not at multiples of their own length".to_owned();
            return refuse(sizes_option, reason);
        };
        if !bytes.is_power_of_two() {
            return refuse(sizes_option, format!("{} is not a power of two", write_bytes(bytes)));
        }
        let (least, most) = (u64::from(limits.min_bytes), u64::from(limits.max_bytes));
        if !(least..=most).contains(&bytes) {
            let (bytes, least, most) = (write_bytes(bytes), write_bytes(least), write_bytes(most));
            return refuse(sizes_option, format!("{bytes} is not within {least} to {most} ({})", atomic.source));
        }
        if !file.plan.offset_bytes.is_multiple_of(bytes) {
            let (offset, bytes) = (write_bytes(file.plan.offset_bytes), write_bytes(bytes));
            return refuse(OFFSET.row(), format!("the offset of {offset} is not a multiple of a block of {bytes}"));
        }
    }
    Ok(())
}
