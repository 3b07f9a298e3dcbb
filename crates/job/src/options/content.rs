//! What is written, and its verification.

pub mod rows;
pub(crate) mod source;
pub(crate) mod verify;

use crate::input::{Decisions, JobInput};
use crate::option::Opt;
use crate::options::durability::Granted;
use crate::options::durability::direct::alignment_of;
use crate::options::engine::Engine;
use crate::options::engine::command::plan_command;
use crate::options::limits::Ends;
use crate::options::shape::{Ops, Shape};
use crate::refusal::{Case, Refusal, Rule};
use rows::{
    BUFFER_COMPRESS_CHUNK, BUFFER_COMPRESS_PERCENTAGE, BUFFER_PATTERN, DEDUPE_GLOBAL, DEDUPE_PERCENTAGE,
    DEDUPE_WORKING_SET_PERCENTAGE, REFILL_BUFFERS, ZERO_BUFFERS,
};
use source::Body;
use trueio_model::{
    CommandPlan, CommonContents, Content, ContentKind, FileSelection, JobPlan, OpKind, SourcePlan, Verify,
};
use verify::Verified;

/// Resolves the length of a body that is fetched, which is the job's size.
pub(crate) fn settle(job: &JobInput<'_>, shape: &Shape, engine: &Engine) -> Result<(Option<Body>, Decisions), Refusal> {
    let mut decisions = Decisions::default();
    let body = source::plan_body(job, &mut decisions, engine.kind, shape.ops, &shape.sizes[1], engine.flags)?;
    Ok((body, decisions))
}

/// What is written, and how it is verified.
pub(crate) struct Contents {
    pub(crate) verify: Option<Verify>,
    pub(crate) content: Content,
    pub(crate) source: Option<SourcePlan>,
    pub(crate) command: Option<CommandPlan>,
}

/// Plans what is written and compared.
pub(crate) fn plan(
    job: &JobInput<'_>,
    shape: &Shape,
    engine: &Engine,
    granted: &Granted,
    ends: &Ends,
    body: Option<Body>,
    is_replayed: bool,
) -> Result<(Contents, Decisions), Refusal> {
    let mut decisions = Decisions::default();
    let files = &granted.files;
    let source = body.map(|body| {
        let facts = files.iter().filter_map(|file| file.facts.as_ref());
        let unit_bytes = facts.filter_map(|facts| Some(alignment_of(facts, OpKind::Write)?.bytes)).max();
        body.plan(job, &mut decisions, granted.direct, unit_bytes)
    });
    let command = match engine.is_command {
        true => Some(plan_command(job, &shape.sizes[1], &files[0].plan)?),
        false => None,
    };
    let verified = Verified {
        engine: engine.kind,
        ops: shape.ops,
        used: &shape.used(),
        order: &shape.order,
        files,
        limits: &ends.limits,
        steps: &shape.steps,
        skip_bytes: shape.steps.skip_bytes,
        is_zoned: granted.zones.is_some(),
        is_replayed,
        draws_files: files.len() > 1 && matches!(ends.selection, FileSelection::Drawn { .. }),
    };
    let verify = verify::plan_verify(job, &mut decisions, &verified)?;
    let mut content = plan_content(job, &mut decisions, shape.ops)?;
    match job.get(DEDUPE_WORKING_SET_PERCENTAGE) {
        Some(percent) if percent + u64::from(content.duplicate_percent) > 100 => {
            let rule = Rule::Contradiction {
                one: job.quote(DEDUPE_WORKING_SET_PERCENTAGE),
                other: job.quote(DEDUPE_PERCENTAGE),
                reason: "the set contains different blocks, and together with the repeats they exceed 100 percent",
                case: Case::WorkingSet,
            };
            return Err(job.refuse(DEDUPE_WORKING_SET_PERCENTAGE, rule));
        }
        Some(percent) if content.duplicate_percent > 0 => {
            let region_bytes = files.iter().map(|file| file.plan.size_bytes).fold(0, u64::saturating_add);
            let bytes = u128::from(region_bytes) * u128::from(percent) / 100;
            content.duplicate_count = (bytes / u128::from(shape.sizes[1].min_bytes().max(1))).max(1) as u64;
        }
        _ => decisions.note_unused(job, &[DEDUPE_WORKING_SET_PERCENTAGE.row()], "no block repeats another"),
    }
    match job.get(DEDUPE_GLOBAL) {
        // The other jobs are not known yet: see `agree_on_contents`.
        true if content.duplicate_count > 0 => {
            content.common = Some(CommonContents { parts: 0, first_part: 0, seed: 0 });
        }
        _ => decisions.note_unused(
            job,
            &[DEDUPE_GLOBAL.row()],
            "no block repeats one of a set (`dedupe_working_set_percentage`)",
        ),
    }
    Ok((Contents { verify, content, source, command }, decisions))
}

/// Gives each worker its part of the contents that jobs have in common (`dedupe_global`).
pub(crate) fn agree_on_contents(jobs: &mut [JobPlan]) {
    let has_part = |job: &&JobPlan| job.content.common.is_some();
    let parts = jobs.iter().filter(has_part).map(|job| job.workers).sum();
    let Some(seed) = jobs.iter().find(has_part).map(|job| job.seed) else { return };
    let mut first_part = 0;
    for job in jobs.iter_mut().filter(|job| job.content.common.is_some()) {
        job.content.common = Some(CommonContents { parts, first_part, seed });
        first_part += job.workers;
    }
}

fn plan_content(job: &JobInput<'_>, decisions: &mut Decisions, ops: Ops) -> Result<Content, Refusal> {
    let percent = |option: Opt<u64>| u8::try_from(job.get(option)).expect("a percentage");
    let fixed = if job.get(ZERO_BUFFERS) {
        Some((ZERO_BUFFERS.row(), ContentKind::Zero))
    } else if job.get(BUFFER_PATTERN).is_some() && percent(BUFFER_COMPRESS_PERCENTAGE) == 0 {
        Some((BUFFER_PATTERN.row(), ContentKind::Pattern))
    } else {
        None
    };
    let content = Content {
        kind: fixed.map_or(ContentKind::Random, |fixed| fixed.1),
        pattern: job.get(BUFFER_PATTERN).unwrap_or_default().to_vec(),
        compressible_percent: percent(BUFFER_COMPRESS_PERCENTAGE),
        compressible_bytes: u32::try_from(job.get(BUFFER_COMPRESS_CHUNK)).unwrap_or(u32::MAX),
        duplicate_percent: percent(DEDUPE_PERCENTAGE),
        duplicate_count: 0,
        common: None,
        refill: job.get(REFILL_BUFFERS),
    };
    if content.compressible_percent == 0 {
        decisions.note_unused(
            job,
            &[BUFFER_COMPRESS_CHUNK.row()],
            "no part is compressible (`buffer_compress_percentage`)",
        );
    }
    let Some((fixed, _)) = fixed.filter(|_| ops.has(OpKind::Write)) else { return Ok(content) };
    let others = [
        (BUFFER_PATTERN.row(), fixed != BUFFER_PATTERN.row() && job.get(BUFFER_PATTERN).is_some()),
        (BUFFER_COMPRESS_PERCENTAGE.row(), percent(BUFFER_COMPRESS_PERCENTAGE) > 0),
        (DEDUPE_PERCENTAGE.row(), percent(DEDUPE_PERCENTAGE) > 0),
    ];
    if let Some((other, _)) = others.into_iter().find(|(_, is_set)| *is_set) {
        let rule = Rule::Contradiction {
            one: job.quote(fixed),
            other: job.quote(other),
            reason: "fixed content cannot be combined with other content",
            case: Case::LeaveOneOut,
        };
        return Err(job.refuse(other, rule));
    }
    decisions.note_unused(job, &[REFILL_BUFFERS.row()], "the content is fixed");
    Ok(content)
}
