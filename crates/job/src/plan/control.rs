//! What steers a job while it runs.

use super::Planner;
use super::job::note_unused;
use super::values::Values;
use crate::refusal::{Refusal, Rule};
use trueio_model::{Control, LatencyTarget};

pub(super) fn plan_control(planner: &mut Planner, values: &Values) -> Result<Control, Refusal> {
    Ok(Control { latency_target: plan_latency_target(planner, values)? })
}

fn plan_latency_target(planner: &mut Planner, values: &Values) -> Result<Option<LatencyTarget>, Refusal> {
    let Some(target_ns) = values.duration_ns("latency_target") else {
        let names = ["latency_window", "latency_percentile", "latency_run"];
        note_unused(planner, values, &names, "no `latency_target` is given");
        return Ok(None);
    };
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
