//! Jobs whose number of I/Os follows from that of an earlier one.

use crate::input::JobInput;
use crate::option::OptionRow;
use crate::options::content::rows::{DO_VERIFY, VERIFY};
use crate::options::engine::rows::NUMJOBS;
use crate::options::limits::rows::{
    COMPLETE_IOS_OF, LOOPS, NUMBER_IOS, RAMP_TIME, REPEAT_IOS_OF, STEADY_STATE, TIME_BASED,
};
use crate::options::pattern::rows::READ_IOLOG;
use crate::options::target::rows::{RANK_PLACE, RANK_SHIFT};
use crate::refusal::{Case, Refusal, Rule};
use trueio_model::{Follow, FollowKind, JobPlan, JobSpec, Order};

/// Plans from which job the number of I/Os follows.
pub(crate) fn plan_follow(job: &JobInput<'_>) -> Result<Option<Follow>, Refusal> {
    let (option, names, kind) = match (job.get(REPEAT_IOS_OF), job.get(COMPLETE_IOS_OF)) {
        (None, None) => return Ok(None),
        (Some(names), None) => (REPEAT_IOS_OF, names, FollowKind::Repeat),
        (None, Some(names)) => (COMPLETE_IOS_OF, names, FollowKind::Complete),
        (Some(_), Some(_)) => {
            let rule = Rule::Contradiction {
                one: job.quote(REPEAT_IOS_OF),
                other: job.quote(COMPLETE_IOS_OF),
                reason: "both set the number of I/Os",
                case: Case::LeaveOneOut,
            };
            return Err(job.refuse(COMPLETE_IOS_OF, rule));
        }
    };
    let [name] = names else {
        let reason = "it takes the name of one job".to_owned();
        return Err(job.refuse(option, Rule::BadValue { option: option.name, reason }));
    };
    let completes = kind == FollowKind::Complete;
    let others: [(&'static OptionRow, bool); 8] = [
        (NUMJOBS.row(), job.get(NUMJOBS) > 1),
        (NUMBER_IOS.row(), job.get(NUMBER_IOS) > 0),
        (LOOPS.row(), job.get(LOOPS) > 1),
        (TIME_BASED.row(), job.get(TIME_BASED)),
        (RAMP_TIME.row(), job.get(RAMP_TIME).is_some()),
        (STEADY_STATE.row(), job.get(STEADY_STATE)),
        (READ_IOLOG.row(), job.is_set(READ_IOLOG)),
        // Without a pass of its own, the job only writes blocks that another one compares.
        (VERIFY.row(), completes && job.is_set(VERIFY) && job.get(DO_VERIFY)),
    ];
    let shifts = (RANK_SHIFT.row(), completes && job.get(RANK_SHIFT) > 0);
    if let Some((other, _)) = others.into_iter().chain([shifts]).find(|(_, is_set)| *is_set) {
        let rule = Rule::Contradiction {
            one: job.quote(option),
            other: job.quote(other),
            reason: "the job repeats or completes the I/Os of one worker in their order",
            case: Case::LeaveOneOut,
        };
        return Err(job.refuse(option, rule));
    }
    Ok(Some(Follow { job: name.clone(), kind, rank: job.get(RANK_PLACE) }))
}

/// Refuses jobs that follow one which is not before them, or which does other I/Os. `specs` has the jobs of other ranks,
/// too.
pub(crate) fn check_follows(jobs: &[JobPlan], specs: &[JobSpec]) -> Result<(), Refusal> {
    for job in jobs {
        let Some(follow) = &job.follows else { continue };
        let option = match follow.kind {
            FollowKind::Repeat => REPEAT_IOS_OF.name,
            FollowKind::Complete => COMPLETE_IOS_OF.name,
        };
        let refuse = |reason: String| {
            let rule = Box::new(Rule::BadValue { option, reason });
            Err(Refusal { job: Some(job.name.clone()), origin: None, rule })
        };
        let other = match jobs.iter().find(|other| other.name == follow.job) {
            Some(other) => other,
            None if specs.iter().any(|spec| spec.name == follow.job) => continue,
            None => return refuse(format!("there is no job `{}`", follow.job)),
        };
        if other.phase >= job.phase {
            return refuse(format!("job `{}` is not in an earlier phase (`stonewall`)", other.name));
        }
        let sizes = |job: &JobPlan| job.used_sizes().next().cloned();
        let regions = |job: &JobPlan| job.files.iter().map(|file| file.size_bytes).collect::<Vec<_>>();
        let is_ordered = |job: &JobPlan| job.pattern.order == Order::Sequential;
        let is_alike = sizes(job) == sizes(other)
            && job.used_sizes().count() == 1
            && other.used_sizes().count() == 1
            && regions(job) == regions(other)
            && job.pattern.order == other.pattern.order
            && (is_ordered(job) || job.seed == other.seed)
            && job.pattern.steps == other.pattern.steps
            && other.workers == 1;
        if !is_alike {
            let name = &other.name;
            return refuse(format!(
                "job `{name}` does other I/Os: both need one worker, the same `bs`, `size` and order, and random jobs the \
                 same `randseed`"
            ));
        }
    }
    Ok(())
}
