//! The user whose rights a job has (`uid`, `gid`), and the check that this user may use the job's files.
//!
//! All other rules use the rights of this process, so that a user without rights hides no mount and no signature. The check
//! here is additional.
//!
//! Limits: rights may change before the job begins. The run then ends with the same message.

use crate::facts::{FactsSource, PathUse};
use crate::input::{Decisions, JobInput};
use crate::options::process::rows::{GID, UID};
use crate::paths::{directory_of, plain};
use crate::refusal::{Refusal, Rule};
use crate::values::Values;
use trueio_model::{FileAccess, JobPlan, JobSpec, Prepare, UserPlan};

/// Plans the user of the job; `None` if it is the user of this process.
pub(crate) fn plan_user(values: &JobInput<'_>, decisions: &mut Decisions) -> Result<Option<UserPlan>, Refusal> {
    let (uid, gid) = (values.get(UID), values.get(GID));
    if uid.is_none() && gid.is_none() {
        return Ok(None);
    }
    let user = values.facts.user(uid, gid).map_err(|reason| {
        let option = if uid.is_some() { UID.row() } else { GID.row() };
        values.refuse(option, Rule::UserNotPermitted { setting: values.quote(option), reason })
    })?;
    if user.is_none() {
        decisions.note_unused(values, &[UID.row(), GID.row()], "the program is run by that user");
    }
    Ok(user)
}

/// The user and the group that a job sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GivenUser {
    /// `uid`.
    pub uid: Option<u32>,
    /// `gid`.
    pub gid: Option<u32>,
}

/// Returns the user and the group that a job sets, before there is a plan. `None`: it sets neither, or its options cannot
/// be read, which the plan reports.
pub fn given_user(spec: &JobSpec) -> Option<GivenUser> {
    let values = Values::resolve(spec).ok()?;
    let (uid, gid) = (values.get(UID), values.get(GID));
    (uid.is_some() || gid.is_some()).then_some(GivenUser { uid, gid })
}

/// Refuses jobs whose user may not use their files.
pub(crate) fn check_users(facts: &dyn FactsSource, jobs: &[JobPlan], specs: &[JobSpec]) -> Result<(), Refusal> {
    for (job, spec) in jobs.iter().zip(specs) {
        let Some(user) = job.user else { continue };
        let refuse = |path: &str, verb: &'static str, reason: String| {
            let given = spec.options.get(UID.name).or_else(|| spec.options.get(GID.name));
            let rule = Box::new(Rule::UserMayNot { user, path: path.to_owned(), verb, reason });
            Err(Refusal { job: Some(job.name.clone()), origin: given.map(|given| given.origin.clone()), rule })
        };
        for (path, usage) in uses(job) {
            // A file that a job creates is that job's user's; others may at most read it (`new_file_access`).
            let maker = jobs.iter().find(|other| other.files.iter().any(|file| file.path == path && is_made(file)));
            match maker.filter(|maker| maker.name != job.name) {
                Some(maker) if maker.user == job.user => continue,
                Some(maker) if usage == PathUse::Read && maker.handling.new_files != FileAccess::Private => continue,
                Some(maker) => {
                    let reason =
                        format!("job `{}` creates it as another user, with access for that user only", maker.name);
                    return refuse(&path, usage.verb(), reason);
                }
                None => {}
            }
            let mut path = path.as_str();
            if usage == PathUse::MakeFilesIn {
                path = directory_of(path);
                while job.directories.binary_search(&plain(path)).is_ok() {
                    let is_its = |other: &&JobPlan| other.directories.binary_search(&plain(path)).is_ok();
                    match jobs.iter().find(is_its).filter(|maker| maker.user != job.user) {
                        Some(maker) => {
                            let reason = format!(
                                "job `{}` creates it as another user, with access for that user only",
                                maker.name
                            );
                            return refuse(path, usage.verb(), reason);
                        }
                        None => path = directory_of(path),
                    }
                }
            }
            if let Err(reason) = facts.may_use(user, path, usage) {
                return refuse(path, usage.verb(), reason);
            }
        }
    }
    Ok(())
}

fn is_made(file: &trueio_model::FilePlan) -> bool {
    file.extends_from.is_none() && !matches!(file.prepare, Prepare::UseExisting | Prepare::Nothing)
}

/// Returns the paths that a job's user needs, with their use. For the creation of a file, the path is that of the file.
fn uses(job: &JobPlan) -> Vec<(String, PathUse)> {
    let mut uses = Vec::new();
    for file in &job.files {
        let usage = if is_made(file) || job.engine.works_on_names() {
            PathUse::MakeFilesIn
        } else if file.prepare == Prepare::Nothing {
            continue;
        } else if job.modifies_files() {
            PathUse::Write
        } else {
            PathUse::Read
        };
        uses.push((file.path.clone(), usage));
    }
    uses.extend(job.replay.iter().map(|replay| (replay.log.clone(), PathUse::Read)));
    if let Some(verify) = &job.verify {
        let states = || (0..job.workers).map(|worker| job.verify_state_file(worker));
        uses.extend(states().filter(|_| verify.loads_state).map(|path| (path, PathUse::Read)));
        uses.extend(states().filter(|_| verify.saves_state).map(|path| (path, PathUse::MakeFilesIn)));
    }
    uses
}
