//! From sections of words to specifications of jobs.
//!
//! Each clone of `numjobs` becomes a job of its own, as in fio: it has files and a seed of its own, and its own entry in
//! the results unless `group_reporting` joins them.
//!
//! ```text
//! section ─ sort.rs: a word for each option ─ queue.rs, rules.rs: fio's rules ─ clones.rs: files, seed, offset ─ JobSpec
//! ```

use super::clones::{files, of_clone, unique_name};
use super::lowering::{JobWords, Lowering, preset};
use super::problem::Problems;
use super::queue::{buffer_offset, engine_and_queue};
use super::refusals::Refused;
use super::rules;
use super::shared::shared_backlogs;
use super::sort::sort;
use super::warnings;
use super::{JOBS_MAX, Section, Settings, Surroundings, Word};
use trueio_job::options::content::rows::{
    VERIFY_DUMP, VERIFY_DUMP_DIRECTORY, VERIFY_STATE_FILE, VERIFY_STATE_LOAD, VERIFY_STATE_SAVE,
};
use trueio_job::options::limits::rows::EXITALL;
use trueio_job::options::output::rows::{WRITE_BW_LOG, WRITE_HIST_LOG, WRITE_IOPS_LOG, WRITE_LAT_LOG};
use trueio_job::plan::join_path;
use trueio_model::{FioJob, FioWord, JobSpec, Origin};

/// Largest number of words that all jobs keep together.
const GIVEN_MAX: usize = 500_000;

/// Makes the jobs. `notes` are what fio warns about.
pub(super) fn lower(
    sections: &[Section],
    settings: &Settings,
    around: &dyn Surroundings,
    problems: &mut Problems,
    notes: &mut Vec<String>,
) -> Vec<JobSpec> {
    let mut lowering = Lowering::new(settings, around, notes);
    for section in sections {
        if problems.is_full() || !lower_section(section, &mut lowering, problems) {
            break;
        }
    }
    let Lowering { mut jobs, mut remarks, notes, .. } = lowering;
    remarks.extend(shared_backlogs(&mut jobs));
    let is_on = |job: &JobSpec| EXITALL.value_in(job);
    if jobs.iter().any(is_on) {
        let reason = "`exitall` of one job holds for all, as in fio: the first that ends ends those that run with it";
        for job in jobs.iter_mut().filter(|job| !is_on(job)) {
            job.set(EXITALL.name, "true", Origin::Derived { reason: reason.to_owned() });
        }
    }
    notes.extend(remarks);
    jobs
}

/// What a job waits for before it begins.
enum Wait {
    /// Nothing.
    Nothing,
    /// All jobs before it.
    All,
    /// The jobs of these names.
    Jobs(Vec<String>),
}

/// Makes the clones of one section; false: reading must end.
fn lower_section(section: &Section, lowering: &mut Lowering, problems: &mut Problems) -> bool {
    let Some(mut job) = sort(section, lowering, problems) else { return true };
    let Some(clones) = job.count("numjobs", problems) else { return true };
    if lowering.jobs.len() + clones as usize > JOBS_MAX {
        let message = format!("there are more than {JOBS_MAX} jobs, clones included");
        job.complain_about(Refused::TooMuch, "numjobs", message, None, problems);
        return false;
    }
    engine_and_queue(&mut job, lowering, problems);
    rules::apply(&mut job, lowering, problems);
    buffer_offset(&mut job, lowering, problems);
    if lowering.settings.are_warnings_fatal {
        warnings::refuse(&job, clones, problems);
    }
    let wait = begin(&job, lowering, problems);
    let given = given(section);
    // In fio's order of the clones, which numbers their results and logs.
    for clone in std::iter::once(0).chain((1..clones).rev()) {
        lowering.given = lowering.given.saturating_add(given.len());
        if lowering.given > GIVEN_MAX {
            let message = format!("the jobs have more than {GIVEN_MAX} options together");
            job.complain_about(Refused::TooMuch, "numjobs", message, None, problems);
            return false;
        }
        let Some(mut spec) = lower_clone(&job, clone, clones, lowering, problems) else { return false };
        set_wait(&job, &wait, clone, &mut spec);
        spec.fio = Some(Box::new(FioJob {
            name: clone_name(section, clone).to_owned(),
            clone: clone as u32,
            clones: clones as u32,
            number: lowering.jobs.len() as u32 + 1,
            group: lowering.group,
            is_from_command_line: section.is_from_command_line,
            given: given.clone(),
        }));
        lowering.jobs.push(spec);
    }
    lowering.together.push(section.name.clone());
    true
}

/// Returns fio's name of a clone: `name` of a section names only the first, and the others have the name of the section.
fn clone_name(section: &Section, clone: u64) -> &str {
    if clone == 0 { &section.name } else { &section.title }
}

/// Makes one clone; `None`: reading must end.
fn lower_clone(
    job: &JobWords,
    clone: u64,
    clones: u64,
    lowering: &mut Lowering,
    problems: &mut Problems,
) -> Option<JobSpec> {
    let mut spec = job.spec.clone();
    spec.name = unique_name(&job.section.name, (clones > 1).then_some(clone), &mut lowering.names);
    if !files(job, clone, &mut spec, lowering, problems) {
        return None;
    }
    of_clone(job, clone, lowering.jobs.len() as u64, &mut spec, problems);
    logs_of_clone(job, clone, &mut spec);
    verify_files(job, clone, lowering, &mut spec);
    Some(spec)
}

/// Names the logs of a further clone that have no name of their own: by the section, not by its `name`, as in fio.
fn logs_of_clone(job: &JobWords, clone: u64, spec: &mut JobSpec) {
    for log in [&WRITE_BW_LOG, &WRITE_LAT_LOG, &WRITE_IOPS_LOG, &WRITE_HIST_LOG] {
        let is_unnamed = job.all_words(log.name).last().is_some_and(|word| word.text().is_empty());
        if let Some(set) = spec.options.get_mut(log.name).filter(|_| clone > 0 && is_unnamed) {
            clone_name(job.section, clone).clone_into(&mut set.text);
        }
    }
}

/// Names the files of the job's verification as fio does: its verify state by the job's name and its number in the run, and
/// both that and its dumps in `--aux-path`.
fn verify_files(job: &JobWords, clone: u64, lowering: &Lowering, spec: &mut JobSpec) {
    if let Some(directory) = lowering.settings.aux_path.as_deref().filter(|_| VERIFY_DUMP.value_in(spec)) {
        spec.set(VERIFY_DUMP_DIRECTORY.name, directory, preset());
    }
    if !VERIFY_STATE_SAVE.value_in(spec) && !VERIFY_STATE_LOAD.value_in(spec) {
        return;
    }
    let name = clone_name(job.section, clone).replace('/', ".");
    let file = format!("local-{name}-{}-verify.state", lowering.jobs.len());
    spec.set(VERIFY_STATE_FILE.name, join_path(lowering.settings.aux_path.as_deref(), &file), preset());
}

/// Begins a new group and phase if the job sets them, and returns what it waits for.
fn begin(job: &JobWords, lowering: &mut Lowering, problems: &mut Problems) -> Wait {
    let has_jobs_before = !lowering.jobs.is_empty();
    let is_wall = job.is_on("stonewall") || job.section.waits;
    lowering.group += u32::from(has_jobs_before && (is_wall || job.is_on("new_group")));
    let wait = match waits_for(job, lowering, problems) {
        _ if has_jobs_before && is_wall => Wait::All,
        Wait::All if !has_jobs_before => Wait::Nothing,
        wait => wait,
    };
    if let Wait::All = wait {
        lowering.before.extend(lowering.together.drain(..));
        lowering.phase_from = lowering.jobs.len();
    }
    wait
}

/// Reads `wait_for`: a job that runs alone before this one begins a new phase.
fn waits_for(job: &JobWords, lowering: &Lowering, problems: &mut Problems) -> Wait {
    let Some(word) = job.word("wait_for") else { return Wait::Nothing };
    let name = word.text();
    if !lowering.together.is_empty() && lowering.together.iter().all(|other| other == name) {
        return Wait::All;
    }
    if lowering.together.iter().any(|other| other == name) {
        // Only jobs of this phase: those of earlier phases have ended.
        let of_name = |spec: &&JobSpec| spec.fio.as_ref().is_some_and(|fio| fio.name == name);
        let jobs = lowering.jobs[lowering.phase_from..].iter().filter(of_name);
        return Wait::Jobs(jobs.map(|spec| spec.name.clone()).collect());
    }
    if !lowering.before.contains(name) {
        let message = format!("`wait_for={name}` names no job before this one");
        job.complain_about(Refused::WaitFor, "wait_for", message, Refused::WaitFor.hint(), problems);
    }
    Wait::Nothing
}

/// Sets what a clone waits for.
fn set_wait(job: &JobWords, wait: &Wait, clone: u64, spec: &mut JobSpec) {
    match wait {
        Wait::All if clone == 0 => {
            let origin = job.word("stonewall").or(job.word("wait_for")).map_or_else(
                || Origin::Derived { reason: "a further job file waits for the one before it".to_owned() },
                Word::origin,
            );
            spec.set("stonewall", "true", origin);
        }
        Wait::Jobs(names) if !names.is_empty() => {
            if let Some(word) = job.word("wait_for") {
                spec.set("wait_for", names.join(","), word.origin());
            }
        }
        _ => {}
    }
}

/// Returns the words as typed, for the record.
fn given(section: &Section) -> Vec<FioWord> {
    let globals = section.globals.iter().map(|word| word.given(true));
    globals.chain(section.words.iter().map(|word| word.given(false))).collect()
}
