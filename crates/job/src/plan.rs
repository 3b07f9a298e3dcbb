//! Turns specifications and facts into a plan, or a refusal.
//!
//! [`plan()`] is a pure function: facts about targets come from a [`FactsSource`], facts about the machine
//! from [`Machine`]. The same input gives the same plan, so every rule is tested without a device. The plan
//! decides everything that the run needs, and no option is ignored silently: an impossible one is refused,
//! and one without effect has a sentence in [`Plan::notes`].
//!
//! Files that several jobs share by name are one file: they are created once, before the first phase that
//! uses them, large enough for all, and filled if any of the jobs reads. Their [`trueio_model::FilePlan`]s
//! have the same preparation and removal in each job.
//!
//! Cannot see: what changes after the facts were learnt. The plan has the identity of each existing target, and the run
//! compares it with what it opens.

mod across;
mod idle;
mod job;

pub use crate::options::output::logs::logs_of;
pub use crate::options::pattern::replay::replay_of;
pub use crate::options::process::user::{GivenUser, given_user};
pub use crate::paths::{directory_of, join_path, plain};

use crate::facts::{ENOSPC, FactsSource, Machine};
use crate::input::Ledger;
use crate::options::content::agree_on_contents;
use crate::options::limits::follow::check_follows;
use crate::options::limits::rows::STONEWALL;
use crate::options::pace::control::resolve_waits;
use crate::options::pattern::zones::check_shared;
use crate::options::process::user::check_users;
use crate::options::target::names::agree_on_names;
use crate::options::target::rows::RANKS;
use crate::outputs::{check_outputs, files_of, record_replaced};
use crate::refusal::{Case, Refusal, Rule};
use crate::toml::check_job_name;
use crate::values::Values;
use job::Run;
use std::collections::{BTreeMap, BTreeSet};
use trueio_model::{BlockSizes, Distribution, Grouping, JobPlan, JobSpec, OpKind, OpMix, Order, Plan, Prepare};

/// Plans jobs.
///
/// # Errors
/// The first rule that refuses, in the order of the jobs; nothing was touched.
pub fn plan(specs: &[JobSpec], facts: &dyn FactsSource, machine: &Machine) -> Result<Plan, Refusal> {
    let all = |rule: Rule| Refusal { job: None, origin: None, rule: Box::new(rule) };
    if specs.is_empty() {
        return Err(all(Rule::NoJobs));
    }
    let mut names = BTreeSet::new();
    for spec in specs {
        if let Err(reason) = check_job_name(&spec.name) {
            return Err(all(Rule::JobName { reason }));
        }
        if !names.insert(&spec.name) {
            return Err(all(Rule::JobNameTwice { name: spec.name.clone() }));
        }
    }
    let mut run = Run::new(facts, machine);
    let mut jobs: Vec<JobPlan> = Vec::new();
    let mut phase = 0;
    for (index, spec) in specs.iter().enumerate() {
        let values = Values::resolve(spec)?;
        if values.get(STONEWALL) {
            match index {
                0 => run.note(&spec.name, "`stonewall` has no effect: no job comes before it"),
                _ => phase += 1,
            }
        }
        let rank = machine.rank.unwrap_or(0);
        if values.get(RANKS).is_some_and(|ranks| !ranks.contains(&rank)) {
            run.note(&spec.name, &format!("it does not run here: this is rank {rank}"));
            continue;
        }
        let mut job = job::plan_job(&mut run, values, index, phase)?;
        resolve_waits(&mut run.notes, &jobs, &mut job, spec)?;
        jobs.push(job);
    }
    // Of several ranks, one may wait for the others throughout.
    if jobs.is_empty() && machine.rank.is_none() {
        let reason = "no job runs on rank 0, and this process is alone".to_owned();
        return Err(all(Rule::BadValue { option: "ranks", reason }));
    }
    if let Some(last) = jobs.iter().find(|job| job.scheduling.ends_run) {
        for job in jobs.iter().filter(|job| job.phase > last.phase) {
            let sentence = format!("it does not start: `exit_what = all` of job `{}` ends the run before", last.name);
            run.note(&job.name, &sentence);
        }
    }
    let mut files = files_of(&jobs, machine.command_files.sends_logs);
    files.extend_from_slice(&machine.command_files.files);
    check_outputs(&files, machine.command_files.may_replace, facts).map_err(all)?;
    record_replaced(&mut jobs, machine.command_files.sends_logs, facts);
    agree_on_shared_files(&run.ledger, &mut jobs);
    agree_on_contents(&mut jobs);
    agree_on_names(&mut jobs, specs, machine.rank, facts)?;
    check_follows(&jobs, specs)?;
    check_free_space(&run.ledger, &jobs)?;
    across::check_verify(&mut run, &mut jobs)?;
    check_shared(facts, &jobs)?;
    check_remade(&jobs)?;
    check_directories(&run.ledger, &jobs)?;
    check_users(facts, &jobs, specs)?;
    check_phases(&jobs, machine)?;
    note_polling_threads(&mut run, &jobs);
    let idle_baseline_ns = machine.idle_baseline_ns;
    let identities = run.identities(&jobs);
    Ok(Plan {
        jobs,
        idle_baseline_ns,
        idle_wait_ns: None,
        accepted_checks: Vec::new(),
        limits: None,
        notes: run.notes,
        identities,
    })
}

/// Memory of a worker in addition to its buffers: its stack, and the counters of its latencies.
const WORKER_BYTES: u64 = 64 << 10;

/// Gives jobs that share a created file the same plan of it.
fn agree_on_shared_files(ledger: &Ledger, jobs: &mut [JobPlan]) {
    for file in jobs.iter_mut().flat_map(|job| job.files.iter_mut()) {
        if let Some(created) = ledger.created.get(&file.path) {
            file.prepare = created.prepare;
            file.extends_from = created.extends_from;
            file.remove_after = created.remove_after;
        }
    }
}

/// Refuses a directory of one job that is a file of another.
fn check_directories(ledger: &Ledger, jobs: &[JobPlan]) -> Result<(), Refusal> {
    for job in jobs {
        if let Some(path) = job.directories.iter().find_map(|directory| ledger.spellings.get(directory)) {
            let users = jobs.iter().filter(|other| other.files.iter().any(|file| file.path == *path));
            let file_of = users.map(|other| other.name.as_str()).next().unwrap_or_default();
            let reason = format!("job `{file_of}` creates it as a file, but a file of this job is in it");
            let rule = Box::new(Rule::CannotCreateHere { path: path.clone(), reason });
            return Err(Refusal { job: Some(job.name.clone()), origin: None, rule });
        }
    }
    Ok(())
}

/// Refuses files that do not fit, except those that a job fills until the disk is full (`ignore_error`, `fill_device`).
fn check_free_space(ledger: &Ledger, jobs: &[JobPlan]) -> Result<(), Refusal> {
    let may_fill = |path: &str| {
        let is_its = |job: &&JobPlan| job.files.iter().any(|file| file.path == path);
        jobs.iter().filter(is_its).all(|job| job.ignores(OpKind::Write, ENOSPC))
    };
    let mut needed: BTreeMap<&str, (u64, Option<u64>)> = BTreeMap::new();
    for (path, created) in &ledger.created {
        if matches!(created.prepare, Prepare::CreateEmpty | Prepare::CreateSparse) && may_fill(path) {
            continue;
        }
        let entry = needed.entry(&created.mount_point).or_insert((0, created.available_bytes));
        entry.0 = entry.0.saturating_add(created.length_bytes);
    }
    for (mount_point, (needed_bytes, available_bytes)) in needed {
        if let Some(available_bytes) = available_bytes.filter(|available| needed_bytes > *available) {
            let mount_point = mount_point.to_owned();
            let rule = Rule::SizeBeyondFreeSpace { mount_point, needed_bytes, available_bytes };
            return Err(Refusal { job: None, origin: None, rule: Box::new(rule) });
        }
    }
    Ok(())
}

/// Refuses to remove a file while another job uses it (`unlink_each_loop`).
fn check_remade(jobs: &[JobPlan]) -> Result<(), Refusal> {
    for job in jobs.iter().filter(|job| job.handling.remakes_each_pass) {
        let others = || jobs.iter().filter(|other| other.phase == job.phase && other.name != job.name);
        for file in &job.files {
            if let Some(other) = others().find(|other| other.files.iter().any(|theirs| theirs.path == file.path)) {
                let reason = format!("job `{}` uses `{}` at the same time", other.name, file.path);
                let rule = Box::new(Rule::BadValue { option: "unlink_each_loop", reason });
                return Err(Refusal { job: Some(job.name.clone()), origin: None, rule });
            }
        }
    }
    Ok(())
}

/// Notes where the workers of a phase, and the kernel's threads that poll their queues, share processors.
fn note_polling_threads(run: &mut Run<'_>, jobs: &[JobPlan]) {
    let there = run.machine.cpus.len() as u64;
    let mut last = None;
    for polling in jobs.iter().filter(|job| job.uring.sqpoll) {
        // The first of a phase is enough.
        if last.replace(polling.phase) == Some(polling.phase) {
            continue;
        }
        let of_phase = jobs.iter().filter(|job| job.phase == polling.phase);
        let needed: u64 = of_phase.map(|job| u64::from(job.workers) * (1 + u64::from(job.uring.sqpoll))).sum();
        if there > 0 && needed > there {
            let sentence = format!(
                "`sqthread_poll` keeps a thread busy for each worker: {needed} threads share {there} processors, which \
                 lowers the rate"
            );
            run.note(&polling.name, &sentence);
        }
    }
}

/// Applies the rules about parallel jobs.
fn check_phases(jobs: &[JobPlan], machine: &Machine) -> Result<(), Refusal> {
    let last = jobs.last().map_or(0, |job| job.phase);
    for phase in 0..=last {
        let of_phase = || jobs.iter().filter(move |job| job.phase == phase);
        let refuse = |job: Option<&JobPlan>, rule: Rule| Refusal {
            job: job.map(|job| job.name.clone()),
            origin: None,
            rule: Box::new(rule),
        };
        let mut wishes = of_phase().map(|job| job.steady_state);
        let first = wishes.next().flatten();
        if wishes.any(|wish| wish != first) {
            let other = of_phase().find(|job| job.steady_state != first);
            let reason = "jobs that run at the same time become steady together, but this one differs from \
                          the first"
                .to_owned();
            return Err(refuse(other, Rule::SteadyState { reason, case: Case::SteadyTogether }));
        }
        // A job without I/O has no steady state.
        let measured = || of_phase().filter(|job| job.is_measured());
        let pairs = measured().zip(measured().skip(1));
        let is_group = |job: &JobPlan| job.output.grouping == Grouping::Group;
        let differs = |(one, other): &(&JobPlan, &JobPlan)| {
            let together = is_group(one) && is_group(other) && !other.output.new_group;
            together && one.control.criterion != other.control.criterion
        };
        if let Some((one, other)) = pairs.into_iter().find(differs) {
            let reason = format!(
                "jobs that are reported as one group are judged together, and `{}`, before it, has another \
                 `steadystate`",
                one.name
            );
            return Err(refuse(Some(other), Rule::SteadyState { reason, case: Case::SteadyGroup }));
        }
        let needed_bytes = of_phase().map(buffer_bytes).fold(0_u64, u64::saturating_add);
        if let Some(memory_bytes) = machine.memory_bytes.filter(|memory| needed_bytes > *memory) {
            return Err(refuse(None, Rule::BuffersBeyondMemory { needed_bytes, memory_bytes }));
        }
        let needed_bytes = of_phase().map(map_bytes).fold(0_u64, u64::saturating_add);
        if let Some(memory_bytes) = machine.memory_bytes.filter(|memory| needed_bytes > *memory) {
            let largest = of_phase().max_by_key(|job| map_bytes(job));
            return Err(refuse(largest, Rule::MapsBeyondMemory { needed_bytes, memory_bytes }));
        }
    }
    Ok(())
}

/// Returns the memory of a job's workers and their buffers.
fn buffer_bytes(job: &JobPlan) -> u64 {
    let block = [&job.pattern.read_sizes, &job.pattern.write_sizes].map(|s| s.max_bytes()).into_iter().max();
    let of_worker = u64::from(job.queue.depth).saturating_mul(block.unwrap_or(0));
    u64::from(job.workers).saturating_mul(of_worker.saturating_add(WORKER_BYTES))
}

/// Returns the memory of the workers, buffers and maps of jobs, in bytes: of the phase that needs most.
pub fn memory_bytes(jobs: &[JobPlan]) -> u64 {
    let mut of_phase: BTreeMap<u32, u64> = BTreeMap::new();
    for job in jobs {
        let sum = of_phase.entry(job.phase).or_default();
        *sum = sum.saturating_add(buffer_bytes(job)).saturating_add(map_bytes(job));
    }
    of_phase.into_values().max().unwrap_or(0)
}

/// Returns the memory of the maps in which a job's workers note the blocks that they have used: a bit for each unit of each
/// file, if blocks of several sizes are placed at random and none comes twice in a pass. The unit is the greatest common
/// divisor of the sizes.
fn map_bytes(job: &JobPlan) -> u64 {
    let pattern = &job.pattern;
    if !matches!(pattern.order, Order::Random { distribution: Distribution::Uniform, each_block_once: true }) {
        return 0;
    }
    let used = match pattern.mix {
        OpMix::Only(OpKind::Write) => vec![&pattern.write_sizes],
        OpMix::Only(OpKind::Trim) => vec![&pattern.trim_sizes],
        OpMix::Only(_) => vec![&pattern.read_sizes],
        OpMix::ReadWrite { .. } => vec![&pattern.read_sizes, &pattern.write_sizes],
    };
    if used.iter().all(|sizes| matches!(sizes, BlockSizes::Fixed(_)) && *sizes == used[0]) {
        return 0;
    }
    let gcd_of = |a: u64, b: u64| {
        let (mut a, mut b) = (a, b);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    let unit_bytes = used.iter().fold(0, |unit, sizes| match sizes {
        BlockSizes::Fixed(bytes) => gcd_of(unit, *bytes),
        BlockSizes::Range { min_bytes, .. } => gcd_of(unit, *min_bytes),
        BlockSizes::Weighted(pairs) => pairs.iter().fold(unit, |unit, (bytes, _)| gcd_of(unit, *bytes)),
    });
    let units = job.files.iter().map(|file| file.size_bytes / unit_bytes.max(1)).fold(0_u64, u64::saturating_add);
    // The levels above the bits take 1/63 more.
    (units / 8).saturating_add(units / 504).saturating_mul(u64::from(job.workers))
}
