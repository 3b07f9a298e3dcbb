//! From specifications and facts to a plan, or to a refusal.
//!
//! [`plan()`] is a pure function: what it knows of targets comes through a [`FactsSource`], what it
//! knows of the machine stands in [`Machine`]. The same input gives the same plan, so every rule is
//! tested without a device. Nothing optional is left for the run to guess, and nothing that was
//! asked for is dropped in silence: what cannot be had is refused, and a word without effect gets
//! a sentence in [`Plan::notes`].
//!
//! Files that several jobs share by name are one file: they are created once, before the first
//! phase that uses them, large enough for all and filled if any of the jobs reads. Their
//! [`trueio_model::FilePlan`]s say the same about preparation and removal in each job.
//!
//! Cannot see: what changes after the facts were learnt. Who opens a block device for writing claims
//! it with `O_EXCL`, so that what was mounted since then is found.

mod across;
mod command;
mod control;
mod direct;
mod durability;
mod engine;
mod files;
mod handling;
mod idle;
mod job;
mod limits;
mod names;
mod numa;
mod output;
mod pace;
mod priority;
mod replay;
mod shares;
mod source;
mod steps;
mod tolerance;
mod user;
mod verify;
mod zones;

pub(crate) use files::{directory_of, join_path};
pub(crate) use job::splitmix64;
pub(crate) use output::logs_of;
pub(crate) use replay::replay_of;
pub use user::user_said;

use crate::in_use::InUse;
use crate::options::limits::rows::STONEWALL;
use crate::outputs::{Beside, Identity, check_outputs, files_of};
use crate::refusal::{Refusal, Rule};
use crate::toml::check_job_name;
use crate::values::Values;
use files::Created;
use std::collections::{BTreeMap, BTreeSet};
use trueio_model::{
    EngineKind, Grouping, IologSummary, JobPlan, JobSpec, OpKind, Plan, Prepare, ReplaySettings, SourceAddress,
    TargetFacts, UserPlan,
};

/// No space left on the device, as in errno(3).
const ENOSPC: i32 = 28;
/// The quota is used up, as in errno(3).
const EDQUOT: i32 = 122;

/// What a path names.
#[derive(Debug, Clone, PartialEq)]
pub enum Target {
    /// Something that exists.
    Present(Box<TargetFacts>),
    /// Nothing.
    Missing,
    /// Nobody can say; the reason (`Permission denied (os error 13)`).
    Unreadable(String),
}

/// What a job does with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathUse {
    /// It reads the file.
    Read,
    /// It reads and writes the file.
    Write,
    /// It makes files in the directory.
    MakeFilesIn,
}

impl PathUse {
    /// It in words: may not ….
    pub fn verb(self) -> &'static str {
        match self {
            PathUse::Read => "read",
            PathUse::Write => "write",
            PathUse::MakeFilesIn => "make files in",
        }
    }
}

/// Who knows what a path names. For plans that write no block device, a closure `Fn(&str) -> Target`
/// will do.
pub trait FactsSource {
    /// What `path` names. Asked once for each path of a plan, or for the directory of one that is
    /// missing. A dangling symbolic link is `Unreadable`: creating through it is nobody's wish.
    fn look(&self, path: &str) -> Target;

    /// Who uses the file or block device at `path`, and what is on it. Asked of existing targets
    /// that a job would write and may.
    ///
    /// # Errors
    /// Why it could not be learnt. A block device is then not written.
    fn in_use(&self, path: &str) -> Result<InUse, String> {
        let _ = path;
        Err("nobody looked".to_owned())
    }

    /// The length of the body at an address, in bytes. Asked of a `source` whose job says no `size`.
    ///
    /// # Errors
    /// Why it could not be learnt.
    fn source_length(&self, address: &SourceAddress) -> Result<u64, String> {
        let _ = address;
        Err("nobody asked the server".to_owned())
    }

    /// The machine's nodes of memory with their processors. Asked if a job names any.
    ///
    /// # Errors
    /// Why it could not be learnt.
    fn memory_nodes(&self) -> Result<Vec<(u32, Vec<u32>)>, String> {
        Err("nobody looked".to_owned())
    }

    /// What the replay of a log would do.
    ///
    /// # Errors
    /// Why it could not be learnt, with the line.
    fn iolog(&self, log: &str, settings: &ReplaySettings) -> Result<IologSummary, String> {
        let _ = (log, settings);
        Err("nobody read it".to_owned())
    }

    /// Whom a job acts as that asks for these numbers of a user and a group; `None`: as this process does anyway.
    ///
    /// # Errors
    /// Why this process may not act so.
    fn user(&self, uid: Option<u32>, gid: Option<u32>) -> Result<Option<UserPlan>, String> {
        let _ = (uid, gid);
        Err("nobody asked the system".to_owned())
    }

    /// Whether a user may use a path so. Asked of what jobs use that act as another user.
    ///
    /// # Errors
    /// Why not.
    fn may_use(&self, user: UserPlan, path: &str, usage: PathUse) -> Result<(), String> {
        let _ = (user, path, usage);
        Ok(())
    }

    /// Which file a path leads to. Asked where two names of one file matter: of outputs, and of files that are
    /// verified.
    fn identity(&self, path: &str) -> Identity {
        Identity::Name(files::plain(path))
    }

    /// Why nothing may or can be written to a path beside what is measured; `None`: it is a regular file that may be
    /// replaced, or nothing yet. A document is written for whoever typed its name: links are followed, and a pipe or a
    /// terminal will do.
    fn obstacle(&self, path: &str, is_document: bool) -> Option<String> {
        let _ = (path, is_document);
        None
    }
}

impl<F: Fn(&str) -> Target> FactsSource for F {
    fn look(&self, path: &str) -> Target {
        self(path)
    }
}

/// What the planner must know of the machine.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// Memory, in bytes; `None`: not known, and rules about it do not apply.
    pub memory_bytes: Option<u64>,
    /// Numbers of the processors that this process may use; empty: not known, and rules about them
    /// do not apply.
    pub cpus: Vec<u32>,
    /// Which engines work.
    pub engines: EngineAvailability,
    /// A number that differs from run to run, for `randrepeat = false`.
    pub entropy: u64,
    /// Whether this process may give I/Os the class real time; `None`: not known, and no rule.
    pub may_be_real_time: Option<bool>,
    /// How long disks are watched idle before each phase, in nanoseconds; handed on to the plan.
    pub idle_baseline_ns: u64,
    /// The programs that a `command` may start, as the command names them. A study fills it; otherwise nobody.
    pub programs: Vec<String>,
    /// What the command reads and writes beside the jobs.
    pub beside: Beside,
}

impl Machine {
    /// A machine of which nothing is known but that every engine works, so that no rule about it applies.
    pub fn unknown() -> Self {
        Self {
            memory_bytes: None,
            cpus: Vec::new(),
            engines: EngineAvailability::all(),
            entropy: 1,
            may_be_real_time: None,
            idle_baseline_ns: 0,
            programs: Vec::new(),
            beside: Beside::default(),
        }
    }
}

/// Which engines work here, and why the others do not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineAvailability {
    /// One entry an engine. An engine without an entry works.
    pub engines: Vec<EngineState>,
}

/// One engine on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineState {
    /// Which.
    pub engine: EngineKind,
    /// Why it does not work here; `None`: it works.
    pub unavailable: Option<String>,
    /// Whether it can trim.
    pub can_trim: bool,
}

impl EngineState {
    /// An engine that works and trims; those without an operation for it make the plain call.
    pub fn works(engine: EngineKind) -> Self {
        Self { engine, unavailable: None, can_trim: true }
    }

    /// An engine that does not work here.
    pub fn fails(engine: EngineKind, reason: impl Into<String>) -> Self {
        Self { unavailable: Some(reason.into()), ..Self::works(engine) }
    }
}

impl EngineAvailability {
    /// Every engine works.
    pub fn all() -> Self {
        Self { engines: Vec::new() }
    }

    /// What is known of one engine.
    pub fn of(&self, engine: EngineKind) -> EngineState {
        self.engines.iter().find(|state| state.engine == engine).cloned().unwrap_or_else(|| EngineState::works(engine))
    }
}

/// Plans jobs.
///
/// # Errors
/// The first rule that says no, in the order of the jobs; nothing was touched.
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
    let mut planner = Planner {
        facts,
        machine,
        notes: Vec::new(),
        looked: BTreeMap::new(),
        created: BTreeMap::new(),
        directories: BTreeSet::new(),
        spellings: BTreeMap::new(),
    };
    let mut jobs: Vec<JobPlan> = Vec::new();
    let mut phase = 0;
    for (index, spec) in specs.iter().enumerate() {
        let mut values = Values::resolve(spec)?;
        if values.get(STONEWALL) {
            match index {
                0 => planner.note(&spec.name, "`stonewall` has no effect: no job comes before it"),
                _ => phase += 1,
            }
        }
        let mut job = job::plan_job(&mut planner, &mut values, index, phase)?;
        control::resolve_waits(&mut planner, &jobs, &mut job, spec)?;
        jobs.push(job);
    }
    if let Some(last) = jobs.iter().find(|job| job.scheduling.ends_run) {
        for job in jobs.iter().filter(|job| job.phase > last.phase) {
            let sentence = format!("it does not begin: `exit_what = all` of job `{}` ends the run before", last.name);
            planner.note(&job.name, &sentence);
        }
    }
    let mut files = files_of(&jobs, machine.beside.sends_logs);
    files.extend_from_slice(&machine.beside.files);
    check_outputs(&files, facts).map_err(all)?;
    planner.agree_on_shared_files(&mut jobs);
    planner.check_free_space(&jobs)?;
    across::check_verify(&mut planner, &jobs)?;
    zones::check_shared(&planner, &jobs)?;
    check_remade(&jobs)?;
    planner.check_directories(&jobs)?;
    user::check_users(facts, &jobs, specs)?;
    check_phases(&jobs, machine)?;
    let idle_baseline_ns = machine.idle_baseline_ns;
    Ok(Plan { jobs, idle_baseline_ns, accepted_checks: Vec::new(), notes: planner.notes })
}

/// What is carried from job to job.
struct Planner<'a> {
    facts: &'a dyn FactsSource,
    machine: &'a Machine,
    notes: Vec<String>,
    /// Paths already looked up: a plan is made of one look at each.
    looked: BTreeMap<String, Target>,
    /// Files that the run will create, by path.
    created: BTreeMap<String, Created>,
    /// Directories that are made for the files of the job that is being planned, in plain form.
    directories: BTreeSet<String>,
    /// How the path of each of them was spelled first, by the path in its plain form.
    spellings: BTreeMap<String, String>,
}

impl Planner<'_> {
    fn look(&mut self, path: &str) -> Target {
        if let Some(target) = self.looked.get(path) {
            return target.clone();
        }
        let target = self.facts.look(path);
        self.looked.insert(path.to_owned(), target.clone());
        target
    }

    fn note(&mut self, job: &str, sentence: &str) {
        self.notes.push(format!("job `{job}`: {sentence}"));
    }

    /// Makes the jobs that share a created file say the same about it.
    fn agree_on_shared_files(&self, jobs: &mut [JobPlan]) {
        for file in jobs.iter_mut().flat_map(|job| job.files.iter_mut()) {
            if let Some(created) = self.created.get(&file.path) {
                file.prepare = created.prepare;
                file.extends_from = created.extends_from;
                file.remove_after = created.remove_after;
            }
        }
    }

    /// What one job makes as a directory is no file of another.
    fn check_directories(&self, jobs: &[JobPlan]) -> Result<(), Refusal> {
        for job in jobs {
            if let Some(path) = job.directories.iter().find_map(|directory| self.spellings.get(directory)) {
                let users = jobs.iter().filter(|other| other.files.iter().any(|file| file.path == *path));
                let file_of = users.map(|other| other.name.as_str()).next().unwrap_or_default();
                let reason = format!("job `{file_of}` makes it as a file, and a file of this job lies in it");
                let rule = Box::new(Rule::CannotCreateHere { path: path.clone(), reason });
                return Err(Refusal { job: Some(job.name.clone()), origin: None, rule });
            }
        }
        Ok(())
    }

    /// What is to be created must fit, but for what a job fills until it is full and says so (`ignore_error`, `fill_device`).
    fn check_free_space(&self, jobs: &[JobPlan]) -> Result<(), Refusal> {
        let may_fill = |path: &str| {
            let is_its = |job: &&JobPlan| job.files.iter().any(|file| file.path == path);
            jobs.iter().filter(is_its).all(|job| job.ignores(OpKind::Write, ENOSPC))
        };
        let mut needed: BTreeMap<&str, (u64, Option<u64>)> = BTreeMap::new();
        for (path, created) in &self.created {
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
}

/// No file is removed while another job uses it (`unlink_each_loop`).
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

/// Rules about all the jobs that run at the same time.
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
            let reason =
                "jobs that run at the same time become steady together, and this one says something else than \
                          the first"
                    .to_owned();
            let hint = "say the same in all of them (`[defaults]`), or let one wait for the other: `stonewall = true`";
            return Err(refuse(other, Rule::SteadyState { reason, hint }));
        }
        // Nobody asks whether a job without I/O is steady.
        let measured = || of_phase().filter(|job| job.is_measured());
        let pairs = measured().zip(measured().skip(1));
        let is_group = |job: &JobPlan| job.output.grouping == Grouping::Group;
        let differs = |(one, other): &(&JobPlan, &JobPlan)| {
            let together = is_group(one) && is_group(other) && !other.output.new_group;
            together && one.control.criterion != other.control.criterion
        };
        if let Some((one, other)) = pairs.into_iter().find(differs) {
            let reason = format!(
                "jobs that are reported as one group are judged together, and `{}`, before it, says something else of \
                 `steadystate`",
                one.name
            );
            let hint = "say the same in both, or leave out `group_reporting`";
            return Err(refuse(Some(other), Rule::SteadyState { reason, hint }));
        }
        if let Some(polling) = of_phase().find(|job| job.uring.sqpoll) {
            let needed: u64 = of_phase().map(|job| u64::from(job.workers) * (1 + u64::from(job.uring.sqpoll))).sum();
            let there = machine.cpus.len() as u64;
            if there > 0 && needed > there {
                return Err(refuse(Some(polling), Rule::TooFewProcessors { needed, there }));
            }
        }
        let buffers = |job: &JobPlan| {
            let block = [&job.pattern.read_sizes, &job.pattern.write_sizes].map(|s| s.max_bytes()).into_iter().max();
            let count = u64::from(job.workers).saturating_mul(u64::from(job.queue.depth));
            count.saturating_mul(block.unwrap_or(0))
        };
        let needed_bytes = of_phase().map(buffers).fold(0_u64, u64::saturating_add);
        if let Some(memory_bytes) = machine.memory_bytes.filter(|memory| needed_bytes > *memory) {
            return Err(refuse(None, Rule::BuffersBeyondMemory { needed_bytes, memory_bytes }));
        }
    }
    Ok(())
}
