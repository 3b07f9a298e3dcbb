//! What steers a job while it runs.

use super::Planner;
use super::job::note_unused;
use super::values::Values;
use crate::refusal::{Refusal, Rule};
use crate::value::write_duration;
use trueio_model::{Control, CriterionPlan, FlowPlan, JobPlan, JobSpec, LatencyTarget};

pub(super) fn plan_control(planner: &mut Planner, values: &Values) -> Result<Control, Refusal> {
    Ok(Control {
        latency_target: plan_latency_target(planner, values)?,
        criterion: plan_criterion(planner, values)?,
        flow: plan_flow(planner, values),
        waits_for: values.names("wait_for").to_vec(),
    })
}

/// Holds what a job waits for against the jobs before it: what ends before its phase begins is waited for anyway.
pub(super) fn resolve_waits(
    planner: &mut Planner,
    before: &[JobPlan],
    job: &mut JobPlan,
    spec: &JobSpec,
) -> Result<(), Refusal> {
    let names = std::mem::take(&mut job.control.waits_for);
    for name in names {
        match before.iter().find(|other| other.name == name) {
            None => {
                let origin = spec.options.get("wait_for").map(|said| said.origin.clone());
                let reason = format!("`{name}` is no job before this one");
                let rule = Box::new(Rule::BadValue { option: "wait_for", reason });
                return Err(Refusal { job: Some(job.name.clone()), origin, rule });
            }
            Some(other) if other.phase == job.phase => job.control.waits_for.push(name),
            Some(_) => {
                planner.note(&job.name, &format!("`wait_for = {name}` has no effect: that job has ended by then"))
            }
        }
    }
    Ok(())
}

/// A part in a flow.
fn plan_flow(planner: &mut Planner, values: &Values) -> Option<FlowPlan> {
    let Some(weight) = values.small("flow").filter(|weight| *weight > 0) else {
        note_unused(planner, values, &["flow_id", "flow_sleep"], "no `flow` is given");
        return None;
    };
    let id = values.number("flow_id").unwrap_or(0);
    Some(FlowPlan { id, weight, sleep_ns: values.duration_ns("flow_sleep").unwrap_or(0) })
}

/// fio's rule that ends a job when it is steady.
fn plan_criterion(planner: &mut Planner, values: &Values) -> Result<Option<CriterionPlan>, Refusal> {
    let Some(window_ns) = values.duration_ns("steadystate_duration") else {
        let names = ["steadystate", "steadystate_ramp_time", "steadystate_check_interval"];
        note_unused(planner, values, &names, "no `steadystate_duration` is given");
        return Ok(None);
    };
    let span_ns = values.duration_ns("steadystate_check_interval").unwrap_or(1_000_000_000);
    if window_ns < 2 * span_ns || !window_ns.is_multiple_of(span_ns) {
        let option = "steadystate_duration";
        let interval = write_duration(span_ns);
        let reason =
            format!("it is no whole number, two at least, of spans of {interval} (`steadystate_check_interval`)");
        return Err(values.refuse(option, Rule::BadValue { option, reason }));
    }
    let criterion = values.criterion("steadystate");
    let ramp_ns = values.duration_ns("steadystate_ramp_time").unwrap_or(0);
    Ok(Some(CriterionPlan { criterion, window_ns, span_ns, ramp_ns }))
}

fn plan_latency_target(planner: &mut Planner, values: &Values) -> Result<Option<LatencyTarget>, Refusal> {
    let Some(target_ns) = values.duration_ns("latency_target") else {
        let names = ["latency_window", "latency_percentile", "latency_run"];
        note_unused(planner, values, &names, "no `latency_target` is given");
        return Ok(None);
    };
    let is_said = |name: &str| match name {
        "thinktime" => values.duration_ns(name).is_some_and(|ns| ns > 0),
        "flow" => values.small(name).is_some_and(|weight| weight > 0),
        _ => values.rates(name).is_some(),
    };
    if let Some(other) = ["rate", "rate_iops", "thinktime", "flow"].into_iter().find(|name| is_said(name)) {
        let rule = Rule::Contradiction {
            one: values.quote(other),
            other: values.quote("latency_target"),
            reason: "the search fills the queue to see what it does to latencies, and this keeps it from being filled",
            hint: "leave one of them out",
        };
        return Err(values.refuse(other, rule));
    }
    let Some(window_ns) = values.duration_ns("latency_window") else {
        let rule = Rule::Incomplete {
            option: values.quote("latency_target"),
            needs: "`latency_window`: how long each queue depth is tried",
            hint: "say it, such as `latency_window = \"1s\"`: long enough for some hundred I/Os",
        };
        return Err(values.refuse("latency_target", rule));
    };
    let [percent] = *values.percentiles("latency_percentile") else {
        let option = "latency_percentile";
        let reason = "a target has one percentage".to_owned();
        return Err(values.refuse(option, Rule::BadValue { option, reason }));
    };
    Ok(Some(LatencyTarget { target_ns, window_ns, percent, keeps_running: values.bool("latency_run") }))
}
