//! One job: from its options to a [`JobPlan`], section by section.

use super::idle;
use crate::facts::{FactsSource, Machine};
use crate::input::{Decisions, JobInput, Ledger, Looked};
use crate::options::durability::direct::alignment_of;
use crate::options::durability::rows::{INVALIDATE, Invalidate, PRE_READ};
use crate::options::engine::rows::NUMJOBS;
use crate::options::process::rows::{CONTINUE_ON_ERROR, ContinueOnError};
use crate::options::process::rows::{STRACE, TRACE_SYSCALLS};
use crate::options::process::tolerance::plan_fill;
use crate::options::shape::Shape;
use crate::options::target::Handled;
use crate::options::target::files::JobFile;
use crate::options::target::names::set_of;
use crate::options::target::streams::increment_bytes;
use crate::options::{content, durability, engine, limits, output, pace, pattern, process, target};
use crate::refusal::Refusal;
use crate::values::Values;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use trueio_model::{
    BlockSizes, DirectPolicy, Handling, JobPlan, OpKind, OutputPlan, Pattern, Prepare, TargetIdentity, UringOptions,
};

/// State that is passed from job to job.
pub(super) struct Run<'a> {
    pub(super) facts: &'a dyn FactsSource,
    pub(super) machine: &'a Machine,
    pub(super) ledger: Ledger,
    pub(super) notes: Vec<String>,
    looked: RefCell<BTreeMap<String, Looked>>,
}

impl<'a> Run<'a> {
    pub(super) fn new(facts: &'a dyn FactsSource, machine: &'a Machine) -> Self {
        let (ledger, notes, looked) = (Ledger::default(), Vec::new(), RefCell::default());
        Self { facts, machine, ledger, notes, looked }
    }

    /// What the existing targets of jobs are, by the paths in their plans.
    pub(super) fn identities(&self, jobs: &[JobPlan]) -> BTreeMap<String, TargetIdentity> {
        let looked = self.looked.borrow();
        let files = jobs.iter().flat_map(|job| &job.files);
        let existing = files.filter(|file| file.prepare == Prepare::UseExisting || file.extends_from.is_some());
        let known = existing.filter_map(|file| Some((file.path.clone(), looked.get(&file.path)?.identity.clone()?)));
        known.collect()
    }

    pub(super) fn note(&mut self, job: &str, sentence: &str) {
        self.notes.push(format!("job `{job}`: {sentence}"));
    }
}

/// A job while it is planned.
struct Planning<'r, 'a> {
    run: &'r mut Run<'a>,
    values: Values,
    index: usize,
    directories: BTreeSet<String>,
}

impl Planning<'_, '_> {
    /// Plans a section, and applies its decisions before the next one is planned.
    fn section<T>(
        &mut self,
        plan: impl FnOnce(&JobInput<'_>) -> Result<(T, Decisions), Refusal>,
    ) -> Result<T, Refusal> {
        let Run { facts, machine, ledger, notes, looked } = self.run;
        let input = JobInput { values: &self.values, index: self.index, machine, facts: *facts, ledger, notes, looked };
        let (part, decisions) = plan(&input)?;
        decisions.apply(&mut self.values, ledger, notes, &mut self.directories);
        Ok(part)
    }
}

/// The parts of a job's plan, section by section.
struct Parts {
    shape: Shape,
    engine: engine::Engine,
    request: durability::Request,
    granted: durability::Granted,
    ends: limits::Ends,
    contents: content::Contents,
    handling: Handling,
    uring: UringOptions,
    speed: pace::Speed,
    workers: process::Workers,
    output: OutputPlan,
    replayed: Option<pattern::replay::Replayed>,
}

/// Plans a job: each section in turn, from the options and the parts before it.
pub(super) fn plan_job(run: &mut Run<'_>, values: Values, index: usize, phase: u32) -> Result<JobPlan, Refusal> {
    let mut job = Planning { run, values, index, directories: BTreeSet::new() };
    let replayed = job.section(pattern::settle)?;
    let log = replayed.as_ref();
    let mut shape = job.section(|job| pattern::plan(job, log))?;
    let engine = job.section(|job| engine::plan(job, &shape, log))?;
    if engine.kind.works_on_names() {
        // A file name has no size; files are counted.
        shape.sizes = [const { BlockSizes::Fixed(1) }; 3];
    }
    let request = job.section(|job| durability::plan(job, &engine))?;
    let body = job.section(|job| content::settle(job, &shape, &engine))?;
    let fills = plan_fill(&job.values, engine.kind, shape.ops)?;
    let files = job.section(|job| target::plan(job, &shape, &engine, log, fills))?;
    let granted = job.section(|job| durability::settle(job, &shape, &engine, request.direct, files))?;
    let files = &granted.files;
    let ends_otherwise = granted.zones.is_some() || body.is_some();
    let ends = job.section(|job| limits::plan(job, &shape, &engine, log, files, ends_otherwise))?;
    let contents = job.section(|job| content::plan(job, &shape, &engine, &granted, &ends, body, log.is_some()))?;
    let verify = contents.verify.as_ref();
    let known = Handled {
        shape: &shape,
        engine: &engine,
        files,
        direct: granted.direct,
        limits: &ends.limits,
        pass_bytes: ends.pass_bytes,
        selection: &ends.selection,
        is_verified: verify.is_some(),
    };
    let (handling, uring) = job.section(|job| target::plan_handling(job, &known))?;
    let speed = job.section(|job| pace::plan(job, &shape, &engine, files, verify))?;
    let workers = job.section(|job| process::plan(job, &shape, &engine, granted.direct, fills))?;
    let output = job.section(|job| output::plan(job, &engine, files))?;
    job.section(|job| idle::note_idle(job, engine.kind))?;
    let Planning { values, directories, .. } = job;
    let parts =
        Parts { shape, engine, request, granted, ends, contents, handling, uring, speed, workers, output, replayed };
    let mut plan = assemble(parts, values, directories, phase);
    idle::strip(&mut plan);
    plan.assert_sound();
    Ok(plan)
}

/// Returns the alignment that direct I/O requires of offsets and lengths on every file, in bytes; 1: none.
///
/// Files with different alignments have the greatest common divisor in common: offsets are multiples of their own
/// file's alignment only.
fn offset_alignment(shape: &Shape, granted: &durability::Granted) -> u32 {
    let used = shape.used();
    let transfers = used.iter().any(|(op, _)| *op != OpKind::Trim);
    if granted.direct == DirectPolicy::Off || !transfers {
        return 1;
    }
    let of_file = |file: &JobFile| {
        let facts = file.facts.as_ref()?;
        used.iter().filter_map(|(op, _)| Some(alignment_of(facts, *op)?.bytes)).max()
    };
    let common = granted.files.iter().filter_map(of_file).reduce(gcd);
    common.and_then(|bytes| u32::try_from(bytes).ok()).unwrap_or(1)
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Combines the parts.
fn assemble(parts: Parts, values: Values, directories: BTreeSet<String>, phase: u32) -> JobPlan {
    let Parts { shape, engine, request, granted, ends, contents, handling, uring, speed, workers, output, replayed } =
        parts;
    let offset_alignment_bytes = offset_alignment(&shape, &granted);
    let [read_sizes, write_sizes, trim_sizes] = shape.sizes;
    JobPlan {
        name: values.job.clone(),
        phase,
        engine: engine.kind,
        workers: values.get(NUMJOBS),
        offset_increment_bytes: if values.get(NUMJOBS) > 1 { increment_bytes(&values) } else { 0 },
        files: granted.files.into_iter().map(|file| file.plan).collect(),
        directories: directories.into_iter().collect(),
        file_selection: ends.selection,
        ios_per_file: ends.ios_per_file,
        files_at_a_time: ends.files_at_a_time,
        pattern: Pattern {
            mix: shape.ops.mix,
            order: shape.order,
            read_sizes,
            write_sizes,
            trim_sizes,
            steps: shape.steps,
        },
        zones: granted.zones,
        queue: engine.queue,
        limits: ends.limits,
        follows: ends.follows,
        skipped_ios: 0,
        names: if engine.kind.works_on_names() { set_of(&values) } else { None },
        steady_state: speed.steady_state,
        direct: granted.direct,
        sync: request.sync,
        write_flags: engine.flags,
        flush: request.flush,
        pace: speed.pace,
        think: speed.think,
        content: contents.content,
        source: contents.source,
        replay: replayed.map(pattern::replay::Replayed::into_plan),
        command: contents.command,
        exec: engine.exec,
        cpu_load: engine.cpu_load,
        guard: speed.guard,
        control: speed.control,
        verify: contents.verify,
        uring,
        simulated: engine.simulated,
        cpus: workers.cpus,
        nice: workers.nice,
        scheduling: workers.scheduling,
        memory_policy: workers.memory_policy,
        user: workers.user,
        control_group: workers.control_group,
        priorities: workers.priorities,
        handling,
        invalidate: values.get(INVALIDATE) != Invalidate::Off,
        pre_read: values.get(PRE_READ),
        seed: shape.seed,
        buffer_alignment_bytes: granted.buffer_alignment_bytes,
        offset_alignment_bytes,
        buffer_offset_bytes: granted.buffer_offset_bytes,
        continue_on_error: matches!(values.get(CONTINUE_ON_ERROR), ContinueOnError::All | ContinueOnError::Io),
        tolerance: workers.tolerance,
        trace_syscalls: values.get(TRACE_SYSCALLS),
        strace: values.get(STRACE),
        output,
        values: values.into_plan_values(),
    }
}
