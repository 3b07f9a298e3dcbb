//! What steers a job while it runs.

use crate::input::{Decisions, JobInput};
use crate::options::limits::rows::{
    STEADYSTATE, STEADYSTATE_CHECK_INTERVAL, STEADYSTATE_DURATION, STEADYSTATE_RAMP_TIME, WAIT_FOR,
};
use crate::options::pace::rows::{
    FLOW, FLOW_ID, FLOW_SLEEP, FLOW_WATERMARK, LATENCY_PERCENTILE, LATENCY_RUN, LATENCY_TARGET, LATENCY_WINDOW, RATE,
    RATE_IOPS, THINKTIME,
};
use crate::refusal::{Case, Refusal, Rule};
use crate::value::write_duration;
use trueio_model::{Control, CriterionPlan, FlowPlan, JobPlan, JobSpec, LatencyTarget};

pub(crate) fn plan_control(values: &JobInput<'_>, decisions: &mut Decisions) -> Result<Control, Refusal> {
    Ok(Control {
        latency_target: plan_latency_target(values, decisions)?,
        criterion: plan_criterion(values, decisions)?,
        flow: plan_flow(values, decisions),
        waits_for: values.get(WAIT_FOR).unwrap_or_default().to_vec(),
    })
}

/// Resolves the jobs that a job waits for. Jobs of earlier phases have ended before it begins, and are noted.
pub(crate) fn resolve_waits(
    notes: &mut Vec<String>,
    before: &[JobPlan],
    job: &mut JobPlan,
    spec: &JobSpec,
) -> Result<(), Refusal> {
    let names = std::mem::take(&mut job.control.waits_for);
    for name in names {
        match before.iter().find(|other| other.name == name) {
            None => {
                let origin = spec.options.get(WAIT_FOR.name).map(|given| given.origin.clone());
                let reason = format!("`{name}` is not a job before this one");
                let rule = Box::new(Rule::BadValue { option: WAIT_FOR.name, reason });
                return Err(Refusal { job: Some(job.name.clone()), origin, rule });
            }
            Some(other) if other.phase == job.phase => job.control.waits_for.push(name),
            Some(_) => {
                notes.push(format!("job `{}`: `wait_for = {name}` has no effect: that job has ended by then", job.name))
            }
        }
    }
    Ok(())
}

/// Plans the share of a flow.
fn plan_flow(values: &JobInput<'_>, decisions: &mut Decisions) -> Option<FlowPlan> {
    let Some(weight) = values.get(FLOW).filter(|weight| *weight > 0) else {
        decisions.note_unused(values, &[FLOW_ID.row(), FLOW_SLEEP.row(), FLOW_WATERMARK.row()], "no `flow` is given");
        return None;
    };
    Some(FlowPlan {
        id: values.get(FLOW_ID).unwrap_or(0),
        weight,
        sleep_ns: values.get(FLOW_SLEEP).unwrap_or(0),
        watermark: values.get(FLOW_WATERMARK),
    })
}

/// fio's rule that ends a job when it is steady.
fn plan_criterion(values: &JobInput<'_>, decisions: &mut Decisions) -> Result<Option<CriterionPlan>, Refusal> {
    let Some(window_ns) = values.get(STEADYSTATE_DURATION) else {
        let names = [STEADYSTATE.row(), STEADYSTATE_RAMP_TIME.row(), STEADYSTATE_CHECK_INTERVAL.row()];
        decisions.note_unused(values, &names, "no `steadystate_duration` is given");
        return Ok(None);
    };
    let span_ns = values.get(STEADYSTATE_CHECK_INTERVAL).unwrap_or(1_000_000_000);
    if window_ns < 2 * span_ns || !window_ns.is_multiple_of(span_ns) {
        let option = STEADYSTATE_DURATION.row();
        let interval = write_duration(span_ns);
        let reason =
            format!("it is not a whole number, two or more, of intervals of {interval} (`steadystate_check_interval`)");
        return Err(values.refuse(option, Rule::BadValue { option: option.name, reason }));
    }
    let criterion = values.get(STEADYSTATE);
    let ramp_ns = values.get(STEADYSTATE_RAMP_TIME).unwrap_or(0);
    Ok(Some(CriterionPlan { criterion, window_ns, span_ns, ramp_ns }))
}

fn plan_latency_target(values: &JobInput<'_>, decisions: &mut Decisions) -> Result<Option<LatencyTarget>, Refusal> {
    let Some(target_ns) = values.get(LATENCY_TARGET) else {
        let names = [LATENCY_WINDOW.row(), LATENCY_PERCENTILE.row(), LATENCY_RUN.row()];
        decisions.note_unused(values, &names, "no `latency_target` is given");
        return Ok(None);
    };
    let against = [
        (RATE.row(), values.get(RATE).is_some()),
        (RATE_IOPS.row(), values.get(RATE_IOPS).is_some()),
        (THINKTIME.row(), values.get(THINKTIME).is_some()),
        (FLOW.row(), values.get(FLOW).is_some_and(|weight| weight > 0)),
    ];
    if let Some((other, _)) = against.into_iter().find(|(_, is_set)| *is_set) {
        let rule = Rule::Contradiction {
            one: values.quote(other),
            other: values.quote(LATENCY_TARGET),
            reason: "the search varies the queue depth to measure its effect on latency, and this keeps the queue from filling",
            case: Case::TargetPaced,
        };
        return Err(values.refuse(other, rule));
    }
    let Some(window_ns) = values.get(LATENCY_WINDOW) else {
        let rule = Rule::Incomplete {
            option: values.quote(LATENCY_TARGET),
            needs: "`latency_window`: the time for each queue depth",
            case: Case::TargetWindow,
        };
        return Err(values.refuse(LATENCY_TARGET, rule));
    };
    let [percent] = *values.get(LATENCY_PERCENTILE) else {
        let option = LATENCY_PERCENTILE.row();
        let reason = "a target has one percentage".to_owned();
        return Err(values.refuse(option, Rule::BadValue { option: option.name, reason }));
    };
    Ok(Some(LatencyTarget { target_ns, window_ns, percent, keeps_running: values.get(LATENCY_RUN) }))
}
