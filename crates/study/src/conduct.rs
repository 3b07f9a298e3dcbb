//! Runs the rows of a study, round by round, and puts theirs beside ours.
//!
//! A mode is one plan, a phase a row, on files that are made once and shared by all rows (the sources did so; where
//! they did not, a mode says `fresh_files`). A round is every row once. In the improved modes each round has another
//! order, so that what drifts does not favour a row; in the faithful ones the order is the source's. Between two rows
//! what was written is flushed, outside any measured time, as the sources' `close` after `fdatasync` did.
//!
//! A row that fails keeps the reason and is not tried again; the others go on. An interrupt ends the study with what
//! was measured until then.

use crate::choose::{chosen_rows, without_lacking};
use crate::conclude;
use crate::definition::{Mode, RowOrder, Study};
use crate::journal::{Journal, Kept, Samples};
use crate::measured::{Measured, Taken};
use crate::rows::{Row, Variables};
use rand_xoshiro::SplitMix64;
use rand_xoshiro::rand_core::{Rng, SeedableRng};
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use trueio_job::table::lay_over;
use trueio_model::{
    JobPlan, JobSpec, Origin, Outcome, Plan, RunRecord, STUDY_FORMAT, STUDY_VERSION, Statistic, StudyMode, StudyRecord,
    StudyRow, StudySource, TargetFacts, error_line,
};
use trueio_run::{BodyServer, Observer, Request, Session};

/// The seed of the body that a study's own server sends: the same in every run.
const BODY_SEED: u64 = 0x5eed;

/// What is to be done.
#[derive(Debug, Clone)]
pub struct Order {
    /// The modes, in order.
    pub modes: Vec<String>,
    /// Whether sizes are made smaller.
    pub is_quick: bool,
    /// Samples a row instead of the modes' own.
    pub samples: Option<u32>,
    /// The seed of orders and offsets.
    pub seed: u64,
    /// What it is done to.
    pub target: Target,
    /// Other targets on which rows may run ([`Surroundings::bring`]): planned with the first, so that what is refused is
    /// refused before anything is touched.
    pub others: Vec<Target>,
    /// Job options of the user's, the last word.
    pub extra: Vec<(String, String)>,
    /// Values of axes to which rows are kept: (axis, value). Several of one axis are each as good as the other.
    pub only: Vec<(String, String)>,
    /// What a study may use as `${NAME}`.
    pub variables: Variables,
    /// Whether the study may start the programs that it names.
    pub may_start_programs: bool,
    /// Whether evidence is collected.
    pub has_evidence: bool,
    /// The command line.
    pub command: Vec<String>,
}

/// What a study is done to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// A file of our own, under a new name, gone afterwards.
    NewFile {
        /// Its path.
        path: String,
    },
    /// A file or a device that is there.
    Existing {
        /// Its path.
        path: String,
        /// Whether it may be written.
        overwrite: bool,
        /// Signatures on it that may be destroyed.
        signatures: Option<String>,
    },
}

impl Target {
    /// As job options.
    fn options(&self) -> Vec<(&'static str, String)> {
        let escaped = |path: &str| path.replace(':', "\\:");
        match self {
            Target::NewFile { path } => vec![("filename", escaped(path))],
            Target::Existing { path, overwrite, signatures } => {
                let mut options = vec![("filename", escaped(path))];
                if *overwrite {
                    options.push(("overwrite_existing", escaped(path)));
                }
                if let Some(signatures) = signatures {
                    options.push(("overwrite_signature", signatures.clone()));
                }
                options
            }
        }
    }
}

/// A study that cannot be run. Nothing was touched.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);

/// What the caller does for a study.
pub trait Surroundings {
    /// Plans jobs, or refuses them. A `command` may start these programs and no other.
    ///
    /// # Errors
    /// The refusal, as text.
    fn plan(&mut self, jobs: &[JobSpec], programs: &[String]) -> Result<Plan, Refused>;

    /// Why a job cannot be run in the way it asks for here (its calls cannot be recorded, its program is not installed); its row is then left out, and
    /// that is said. `None`: nothing speaks against it.
    fn lacks(&mut self, job: &JobSpec) -> Option<String> {
        let _ = job;
        None
    }

    /// Looks whether what a row needs ([`crate::NEEDS`]) is so on `target`. Called before each sample with needs.
    /// `None`: it must be brought about.
    ///
    /// # Errors
    /// Why it cannot be said; the row then fails.
    fn holds(&mut self, needs: &BTreeMap<String, String>, target: &Target) -> Result<Option<Brought>, String> {
        let _ = (needs, target);
        Ok(None)
    }

    /// Brings about what a row needs, and looks whether it is so then. Called when [`Surroundings::holds`] says that it
    /// is not, when nothing of the target is open.
    ///
    /// # Errors
    /// Why it could not be brought about; the row then fails.
    fn bring(&mut self, needs: &BTreeMap<String, String>, target: &Target) -> Result<Brought, String> {
        let _ = target;
        match needs.keys().next() {
            Some(need) => Err(format!("nobody here can bring about `{need}`")),
            None => Ok(Brought::default()),
        }
    }
}

/// What was brought about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Brought {
    /// The target under its new name, if it changed.
    pub target: Option<Target>,
    /// Sentences for the user.
    pub notes: Vec<String>,
    /// What was needed, and what was found when it was looked at.
    pub conditions: Vec<(String, String)>,
}

/// How a study stands.
#[derive(Debug, Clone, PartialEq)]
pub struct Standing<'a> {
    /// The mode.
    pub mode: &'a str,
    /// The row that is about to be measured.
    pub row: &'a str,
    /// Samples done, of all modes.
    pub done: usize,
    /// Samples in all.
    pub count: usize,
    /// What is left, in nanoseconds, by the samples until now; `None`: not known yet.
    pub left_ns: Option<u64>,
}

/// Sees how a study goes on.
pub trait Watcher: Observer {
    /// Before each sample.
    fn standing(&mut self, standing: &Standing<'_>);
}

/// A mode that is planned.
pub(crate) struct Prepared<'a> {
    name: &'a str,
    mode: &'a Mode,
    pub(crate) rows: Vec<Row>,
    specs: Vec<JobSpec>,
    pub(crate) plan: Plan,
    /// What the plan is made for.
    pub(crate) target: Target,
    samples: u32,
    /// Sentences about rows that are left out.
    left_out: Vec<String>,
}

/// Runs a study.
///
/// # Errors
/// [`Refused`] if a mode cannot be planned. Whatever happens later stands in the record.
pub fn conduct(
    study: &Study,
    order: &Order,
    surroundings: &mut dyn Surroundings,
    mut journal: Option<Journal>,
    earlier: Samples,
    stop: &AtomicBool,
    watcher: &mut dyn Watcher,
) -> Result<StudyRecord, Refused> {
    if !study.definition.programs.is_empty() && !order.may_start_programs {
        return Err(Refused(format!(
            "the study `{}` starts other programs: {}\n\nhint: look at its study.toml; `--allow-exec` lets it",
            study.name,
            study.definition.programs.join(", ")
        )));
    }
    let mut variables = order.variables.clone();
    let server = match study.uses_server() {
        true => Some(
            BodyServer::start(BODY_SEED, 0)
                .map_err(|e| Refused(format!("the study's own server cannot be started: {e}")))?,
        ),
        false => None,
    };
    if let Some(server) = &server {
        variables.insert("server".to_owned(), server.origin());
    }
    let order = &Order { variables, ..order.clone() };
    let mut prepared = Vec::new();
    for name in &order.modes {
        prepared.push(prepare(study, order, name, surroundings)?);
    }
    let count: usize = prepared.iter().map(|mode| mode.rows.len() * mode.samples as usize).sum();
    let mut run = Run {
        study,
        order,
        surroundings,
        journal: journal.as_mut(),
        earlier,
        stop,
        watcher,
        done: 0,
        measured: 0,
        count,
        began: Instant::now(),
        target: order.target.clone(),
        base: None,
        seen: Vec::new(),
    };
    let mut modes = Vec::new();
    let mut outcome = Outcome::Complete;
    for mode in prepared {
        let (mode, ended) = run.mode(mode);
        modes.push(mode);
        if ended != Outcome::Complete {
            outcome = ended;
            break;
        }
    }
    let failed: Vec<&StudyRow> = modes
        .iter()
        .filter(|mode| !study.definition.mode.get(&mode.name).is_some_and(|m| m.expects_failure))
        .flat_map(|mode| &mode.rows)
        .filter(|row| row.failure.is_some())
        .collect();
    if let (Outcome::Complete, Some(first)) = (&outcome, failed.first()) {
        let reason = first.failure.as_deref().unwrap_or_default();
        outcome = Outcome::Failed {
            reason: format!("{} row(s) failed; the first, `{}`: {reason}", failed.len(), first.name),
        };
    }
    let base = run.base.ok_or_else(|| Refused("nothing was run: no mode was named".to_owned()))?;
    Ok(StudyRecord {
        format: STUDY_FORMAT.to_owned(),
        version: STUDY_VERSION,
        id: base.id,
        started_unix_s: base.started_unix_s,
        started_at: base.started_at,
        command: order.command.clone(),
        tool: base.tool,
        study: study.name.clone(),
        title: study.definition.title.clone(),
        question: study.definition.question.clone(),
        source: source(study),
        is_quick: order.is_quick,
        targets: run.seen,
        environment: base.environment,
        ruler: base.ruler,
        shown: study.definition.show.clone(),
        modes,
        outcome,
    })
}

fn source(study: &Study) -> StudySource {
    let source = &study.definition.source;
    StudySource {
        title: source.title.clone(),
        by: source.by.clone(),
        date: source.date.clone(),
        setting: source.setting.clone(),
        corrections: study.published.corrections.clone(),
        doubts: source.doubts.clone(),
        impossible: study.published.entries.iter().filter_map(|entry| entry.impossible.clone()).collect(),
    }
}

/// The jobs of a mode and their plan.
fn prepare<'a>(
    study: &'a Study,
    order: &Order,
    name: &'a str,
    surroundings: &mut dyn Surroundings,
) -> Result<Prepared<'a>, Refused> {
    let mode = study.definition.mode.get(name).ok_or_else(|| Refused(crate::rows::no_mode(study, name)))?;
    let (chosen, mut left_out) = chosen_rows(study, order, name)?;
    let (rows, lacking) = without_lacking(chosen, surroundings);
    left_out.extend(lacking);
    if rows.is_empty() {
        return Err(Refused(format!(
            "mode `{name}` has no row that can be run here\n  because: {}",
            left_out.join("\n  because: ")
        )));
    }
    let mut specs: Vec<JobSpec> = rows.iter().map(|row| row.job.clone()).collect();
    let programs = &study.definition.programs;
    for other in &order.others {
        plan(&mut specs.clone(), other, programs, surroundings)?;
    }
    let plan = plan(&mut specs, &order.target, programs, surroundings)?;
    let samples = order.samples.unwrap_or_else(|| study.samples(mode, order.is_quick));
    Ok(Prepared { name, mode, rows, specs, plan, target: order.target.clone(), samples, left_out })
}

struct Run<'a> {
    study: &'a Study,
    order: &'a Order,
    surroundings: &'a mut dyn Surroundings,
    journal: Option<&'a mut Journal>,
    earlier: Samples,
    stop: &'a AtomicBool,
    watcher: &'a mut dyn Watcher,
    done: usize,
    /// Samples that were really taken, for the time that is left.
    measured: usize,
    count: usize,
    began: Instant,
    /// What it is done to; under another name once it was moved.
    target: Target,
    /// The first session's record: the machine.
    base: Option<RunRecord>,
    /// The targets that were seen, those of an earlier attempt first.
    seen: Vec<TargetFacts>,
}

impl<'a> Run<'a> {
    fn mode(&mut self, mut prepared: Prepared<'_>) -> (StudyMode, Outcome) {
        let mode_began = Instant::now();
        let mut measured: Vec<Measured> = prepared.rows.iter().map(|_| Measured::default()).collect();
        let mut notes = [&prepared.left_out[..], &prepared.mode.notes[..]].concat();
        let is_shuffled = prepared.mode.order == RowOrder::Shuffled;
        let mut random = SplitMix64::seed_from_u64(self.order.seed ^ hash(prepared.name.as_bytes()));
        let mut session: Option<Session<'a>> = None;
        let mut place = 0;
        let mut resumed = 0u32;
        let mut outcome = Outcome::Complete;
        'rounds: for round in 0..prepared.samples {
            let mut sequence: Vec<usize> = (0..prepared.rows.len()).collect();
            if is_shuffled {
                shuffle(&mut sequence, &mut random);
                together(&mut sequence, &prepared.rows);
            }
            for index in sequence {
                let seed = random.next_u64();
                let begin_ns = mode_began.elapsed().as_nanos() as u64;
                self.tell(&prepared, index);
                self.done += 1;
                if measured[index].failure.is_some() {
                    continue;
                }
                let key = (prepared.name.to_owned(), prepared.rows[index].name.clone(), round);
                let found = self.earlier.remove(&key);
                let is_new = found.is_none();
                resumed += u32::from(!is_new);
                let kept = match found {
                    Some(kept) => Ok(kept),
                    None => {
                        let seed = if is_shuffled { seed } else { 0 };
                        self.measure(&mut prepared, index, seed, &mut session, &mut notes)
                    }
                };
                let kept = match kept {
                    Ok(kept) => kept,
                    Err(Outcome::Failed { reason }) => {
                        // What it was prepared on may be half made: the next row begins anew.
                        self.leave(&mut session);
                        measured[index].failure = Some(reason);
                        continue;
                    }
                    Err(ended) => {
                        outcome = ended;
                        break 'rounds;
                    }
                };
                // One that was interrupted or failed is measured again by who goes on.
                if let (true, Some(journal)) =
                    (is_new && kept.phase.outcome == Outcome::Complete, self.journal.as_mut())
                    && let Err(error) = journal.add(prepared.name, &prepared.rows[index].name, round, &kept)
                {
                    outcome = Outcome::Failed { reason: error_line(&error) };
                    break 'rounds;
                }
                self.remember(&kept.targets);
                let at = Taken { place, round, begin_ns };
                measured[index].take(&kept, prepared.plan.jobs.get(index), &at);
                place += 1;
                match kept.phase.outcome {
                    Outcome::Complete => {}
                    Outcome::Failed { reason } => measured[index].failure = Some(reason),
                    interrupted @ Outcome::Interrupted { .. } => {
                        outcome = interrupted;
                        break 'rounds;
                    }
                }
            }
        }
        if session.is_none() && self.base.is_none() {
            // Every sample was there: the machine is looked at, nothing is measured.
            session = Some(self.session(&prepared));
        }
        self.leave(&mut session);
        if resumed > 0 {
            notes.push(format!("{resumed} samples are from an earlier attempt that was interrupted."));
        }
        let order_seed = is_shuffled.then_some(self.order.seed);
        (self.assemble(prepared, measured, notes, order_seed), outcome)
    }

    fn tell(&mut self, prepared: &Prepared<'_>, index: usize) {
        let left = self.count - self.done;
        let per_sample = (self.measured > 0).then(|| self.began.elapsed().as_nanos() as u64 / self.measured as u64);
        self.watcher.standing(&Standing {
            mode: prepared.name,
            row: &prepared.rows[index].name,
            done: self.done,
            count: self.count,
            left_ns: per_sample.map(|ns| ns * left as u64),
        });
    }

    /// One sample of a row.
    fn measure(
        &mut self,
        prepared: &mut Prepared<'_>,
        index: usize,
        seed: u64,
        session: &mut Option<Session<'a>>,
        notes: &mut Vec<String>,
    ) -> Result<Kept, Outcome> {
        self.measured += 1;
        let conditions = self.see_to(prepared, index, session, notes).map_err(|reason| Outcome::Failed { reason })?;
        if prepared.mode.fresh_files {
            self.leave(session);
        }
        let session = session.get_or_insert_with(|| self.session(prepared));
        session.accept(&prepared.rows[index].accepts);
        let phase = session.run_phase(index, |job: &mut JobPlan| job.seed ^= seed, &mut Inner(&mut *self.watcher))?;
        session.settle(index)?;
        let files = prepared.plan.jobs.get(index).map(|job| job.files.clone()).unwrap_or_default();
        Ok(Kept { phase, conditions, files, targets: session.record().targets.clone() })
    }

    /// Sees to it that what a row needs is so, and that the plan is made for where that is: the target may have another
    /// name since the mode was planned, or be another of two. What was found.
    fn see_to(
        &mut self,
        prepared: &mut Prepared<'_>,
        index: usize,
        session: &mut Option<Session<'a>>,
        notes: &mut Vec<String>,
    ) -> Result<Vec<(String, String)>, String> {
        let needs = &prepared.rows[index].needs;
        let mut brought = Brought::default();
        if !needs.is_empty() {
            brought = match self.surroundings.holds(needs, &self.target)? {
                Some(brought) => brought,
                None => {
                    self.leave(session);
                    self.surroundings.bring(needs, &self.target)?
                }
            };
        }
        for note in brought.notes {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        if let Some(target) = brought.target {
            self.target = target;
        }
        if prepared.target != self.target {
            self.leave(session);
            let mut specs = prepared.specs.clone();
            let programs = &self.study.definition.programs;
            prepared.plan = plan(&mut specs, &self.target, programs, self.surroundings).map_err(|refused| refused.0)?;
            prepared.specs = specs;
            prepared.target = self.target.clone();
        }
        Ok(brought.conditions)
    }

    fn session(&self, prepared: &Prepared<'_>) -> Session<'a> {
        let request = Request {
            kind: "study".to_owned(),
            command: self.order.command.clone(),
            spec: prepared.specs.clone(),
            plan: prepared.plan.clone(),
            has_evidence: self.order.has_evidence,
        };
        Session::new(request, self.stop)
    }

    /// Closes everything of the target; the first session's record is kept for what it says of the machine.
    fn leave(&mut self, session: &mut Option<Session<'a>>) {
        if let Some(record) = session.take().map(|session| session.finish(Outcome::Complete)) {
            self.remember(&record.targets);
            self.base.get_or_insert(record);
        }
    }

    /// Keeps what was seen of targets, each once.
    fn remember(&mut self, targets: &[TargetFacts]) {
        for target in targets {
            if !self.seen.iter().any(|known| known.disks == target.disks && known.kind == target.kind) {
                self.seen.push(target.clone());
            }
        }
    }

    fn assemble(
        &self,
        prepared: Prepared<'_>,
        measured: Vec<Measured>,
        notes: Vec<String>,
        order_seed: Option<u64>,
    ) -> StudyMode {
        let statistics: Vec<(trueio_model::StudyMetric, Statistic)> =
            self.study.definition.published.figure.iter().map(|figure| (figure.metric, figure.statistic)).collect();
        let rows: Vec<StudyRow> = measured
            .into_iter()
            .enumerate()
            .map(|(index, measured)| measured.into_row(self.study, &prepared, index, &statistics))
            .collect();
        let mut scale = Vec::new();
        if self.order.is_quick {
            scale.extend(self.study.definition.quick.scale.iter().cloned());
        }
        scale.extend(self.order.extra.iter().map(|(option, text)| format!("{option} {text}, as the user said")));
        StudyMode {
            name: prepared.name.to_owned(),
            title: prepared.mode.title.clone(),
            notes,
            scale,
            samples: prepared.samples,
            order_seed,
            contrasts: conclude::contrasts(self.study, prepared.name, &rows),
            answers: [conclude::answers(self.study, prepared.name, &rows), conclude::sums(self.study, &rows)].concat(),
            rows,
        }
    }
}

/// Lays the target over the jobs and plans them.
fn plan(
    specs: &mut [JobSpec],
    target: &Target,
    programs: &[String],
    surroundings: &mut dyn Surroundings,
) -> Result<Plan, Refused> {
    let chosen = match target {
        Target::NewFile { .. } => Origin::Derived { reason: "a file of the study's own".to_owned() },
        Target::Existing { .. } => Origin::Flag { flag: "TARGET".to_owned() },
    };
    let apart = Origin::Derived { reason: "each row of a study is a phase of its own".to_owned() };
    let options = target.options();
    for (index, spec) in specs.iter_mut().enumerate() {
        if matches!(target, Target::Existing { .. }) {
            // It speaks of files that are made.
            spec.options.remove("fallocate");
        }
        let options = options.iter().map(|(name, text)| (*name, text.as_str()));
        lay_over(spec, options, &chosen).map_err(Refused)?;
        spec.set("stonewall", if index > 0 { "true" } else { "false" }, apart.clone());
    }
    surroundings.plan(specs, programs)
}

/// The study's own watcher as that of a phase.
struct Inner<'a>(&'a mut dyn Watcher);

impl Observer for Inner<'_> {
    fn preparing(&mut self, path: &str, done_bytes: u64, size_bytes: u64) {
        self.0.preparing(path, done_bytes, size_bytes);
    }

    fn progress(&mut self, tick: &trueio_run::Tick) {
        self.0.progress(tick);
    }
}

fn shuffle(sequence: &mut [usize], random: &mut SplitMix64) {
    for last in (1..sequence.len()).rev() {
        // A remainder of 64 bits by so few: the bias is below 1 in 10^15.
        sequence.swap(last, (random.next_u64() % (last as u64 + 1)) as usize);
    }
}

/// Rows with the same needs follow each other, in the order in which the first of each came: what is needed is then
/// brought about once a round. Which need comes first is left to the shuffling, round by round.
fn together(sequence: &mut [usize], rows: &[Row]) {
    let mut seen: Vec<&BTreeMap<String, String>> = Vec::new();
    for &index in sequence.iter() {
        if !seen.contains(&&rows[index].needs) {
            seen.push(&rows[index].needs);
        }
    }
    sequence.sort_by_key(|&index| seen.iter().position(|needs| **needs == rows[index].needs));
}

/// FNV-1a: so that modes of one seed have orders of their own.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3))
}
