//! Runs the rows of a study in rounds, and compares the figures with the published ones.
//!
//! A mode is one plan with one phase per row. All rows share files that are created once, as in the sources; a mode with
//! `fresh_files` creates them for each sample. A round is every row once. In the improved modes each round has another
//! order, so that what drifts does not favour a row; in the faithful ones the order is the source's. Between two rows
//! what was written is flushed, outside any measured time, as the sources' `close` after `fdatasync` did.
//!
//! A row that fails keeps the reason and is not tried again; the others go on. An interrupt ends the study with what
//! was measured until then.

use crate::choose::{chosen_rows, without_lacking};
use crate::definition::{Mode, RowOrder};
use crate::journal::{Journal, Kept, Samples};
use crate::measured::{Measured, Taken};
use crate::order::{Brought, Order, Refused, Standing, Surroundings, Target, Watcher};
use crate::rows::Row;
use crate::study::Study;
use crate::{answers, conclude};
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
use trueio_run::{BodyServer, Reporting, Request, Session, Targets};

/// The seed of the body that a study's own server sends: the same in every run.
const BODY_SEED: u64 = 0x5eed;

/// A mode that is planned.
struct Prepared<'a> {
    name: &'a str,
    mode: &'a Mode,
    rows: Vec<Row>,
    specs: Vec<JobSpec>,
    plan: Plan,
    /// The target of the plan.
    target: Target,
    /// [`Run::switches`] when it was made.
    switches: u32,
    samples: u32,
    /// Sentences about rows that are left out.
    left_out: Vec<String>,
}

/// Runs a study.
///
/// # Errors
/// [`Refused`] if a mode cannot be planned. Later errors are in the record.
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
            "the study `{}` starts other programs: {}\n\nhint: read its study.toml; `--allow-exec` permits it",
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
        switches: 0,
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
        power_loss: None,
        answer: None,
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
        asterisk: study.definition.published.asterisk.clone(),
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
    for target in std::iter::once(&order.target).chain(&order.others) {
        let writes = rows.iter().any(|row| !trueio_job::only_reads(&row.job));
        if let (Target::Existing { path, overwrite: false, .. }, true) = (target, writes) {
            return Err(Refused(format!(
                "`{path}` exists and mode `{name}` would overwrite it\n\nhint: its content would be lost; if that is intended, add \
                 `--overwrite {path}`; in a directory the study creates a file of its own"
            )));
        }
    }
    let mut specs: Vec<JobSpec> = rows.iter().map(|row| row.job.clone()).collect();
    let programs = &study.definition.programs;
    for other in &order.others {
        plan(&mut specs.clone(), other, programs, surroundings)?;
    }
    let plan = plan(&mut specs, &order.target, programs, surroundings)?;
    let samples = order.samples.unwrap_or_else(|| study.samples(mode, order.is_quick));
    Ok(Prepared { name, mode, rows, specs, plan, target: order.target.clone(), switches: 0, samples, left_out })
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
    /// The target; it may have another name after a transport switch.
    target: Target,
    /// The number of calls of [`Surroundings::bring`]: each may have made the target a new device to the kernel.
    switches: u32,
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
                self.report_standing(&prepared, index);
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
                        // The files may be partly prepared: the next row prepares them again.
                        self.leave(&mut session);
                        measured[index].failure = Some(reason);
                        continue;
                    }
                    Err(ended) => {
                        outcome = ended;
                        break 'rounds;
                    }
                };
                // An interrupted or failed sample is measured again when the study is resumed.
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
            // All samples come from the journal: the machine's facts are read, and nothing is measured.
            session = Some(self.session(&prepared));
        }
        self.leave(&mut session);
        if resumed > 0 {
            notes.push(format!("{resumed} samples are from an earlier attempt that was interrupted."));
        }
        let order_seed = is_shuffled.then_some(self.order.seed);
        (self.assemble(prepared, measured, notes, order_seed), outcome)
    }

    fn report_standing(&mut self, prepared: &Prepared<'_>, index: usize) {
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
        let phase = session.run_phase(index, |job: &mut JobPlan| job.seed ^= seed, &mut *self.watcher)?;
        session.settle(index)?;
        let files = prepared.plan.jobs.get(index).map(|job| job.files.clone()).unwrap_or_default();
        Ok(Kept { phase, conditions, files, targets: session.record().targets.clone() })
    }

    /// Meets the needs of a row, and plans the mode again where that changed the target: it has another name since the mode
    /// was planned, is another of two, or is a new device to the kernel under its old name. Returns what was found.
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
                    self.switches += 1;
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
        // A plan contains the identity of its target: a disk whose driver was bound again is another one for the
        // kernel.
        if prepared.switches != self.switches || prepared.target != self.target {
            self.leave(session);
            // From the rows: the previous target may have set other options.
            let mut specs: Vec<JobSpec> = prepared.rows.iter().map(|row| row.job.clone()).collect();
            let programs = &self.study.definition.programs;
            prepared.plan = plan(&mut specs, &self.target, programs, self.surroundings).map_err(|refused| refused.0)?;
            prepared.specs = specs;
            prepared.target = self.target.clone();
            prepared.switches = self.switches;
        }
        Ok(brought.conditions)
    }

    fn session(&self, prepared: &Prepared<'_>) -> Session<'a> {
        let request = Request {
            kind: "study".to_owned(),
            command: self.order.command.clone(),
            spec: prepared.specs.clone(),
            plan: prepared.plan.clone(),
            targets: Targets::default(),
            has_evidence: self.order.has_evidence,
            reporting: Reporting {
                interim_every: self.order.interim_every,
                watches_disks: self.order.interim_every.is_some(),
                ..Reporting::default()
            },
        };
        Session::new(request, self.stop)
    }

    /// Closes the session; the first session's record is kept for its facts about the machine.
    fn leave(&mut self, session: &mut Option<Session<'a>>) {
        if let Some(record) = session.take().map(|session| session.finish(Outcome::Complete)) {
            self.remember(&record.targets);
            self.base.get_or_insert(record);
        }
    }

    /// Adds the facts of targets, each target once.
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
            .map(|(index, measured)| {
                let (row, job) = (&prepared.rows[index], &prepared.plan.jobs[index]);
                measured.into_row(self.study, row, job, &prepared.target, &statistics)
            })
            .collect();
        let mut scale = Vec::new();
        if self.order.is_quick {
            scale.extend(self.study.definition.quick.scale.iter().cloned());
        }
        scale.extend(self.order.extra.iter().map(|(option, text)| format!("{option} {text}, set by the user")));
        StudyMode {
            name: prepared.name.to_owned(),
            title: prepared.mode.title.clone(),
            notes,
            scale,
            samples: prepared.samples,
            order_seed,
            contrasts: conclude::contrasts(self.study, prepared.name, &rows),
            answers: [answers::answers(self.study, prepared.name, &rows), conclude::sums(self.study, &rows)].concat(),
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
