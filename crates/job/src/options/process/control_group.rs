//! The control group that the workers join.

use crate::input::{Decisions, JobInput};
use crate::options::process::rows::{CGROUP, CGROUP_NODELETE, CGROUP_WEIGHT};
use crate::refusal::{Refusal, Rule};
use trueio_model::ControlGroupPlan;

/// Plans the control group; `None` if the job names none.
pub(crate) fn plan_control_group(
    values: &JobInput<'_>,
    decisions: &mut Decisions,
) -> Result<Option<ControlGroupPlan>, Refusal> {
    let Some(name) = values.get(CGROUP) else {
        let rows = [CGROUP_WEIGHT.row(), CGROUP_NODELETE.row()];
        decisions.note_unused(values, &rows, "no control group is named (`cgroup`)");
        return Ok(None);
    };
    let name = name.trim_matches('/');
    if name.split('/').any(|part| ["", ".", ".."].contains(&part)) {
        let reason =
            format!("`{name}` is no path below the hierarchy of control groups; write `NAME` or `PARENT/NAME`");
        return Err(values.refuse(CGROUP, Rule::BadValue { option: CGROUP.name, reason }));
    }
    Ok(Some(ControlGroupPlan {
        name: name.to_owned(),
        weight: values.get(CGROUP_WEIGHT),
        is_kept: values.get(CGROUP_NODELETE),
    }))
}
