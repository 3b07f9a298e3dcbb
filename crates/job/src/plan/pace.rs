//! Rates, pauses, and the least that a job must reach.

use super::Planner;
use super::job::note_unused;
use super::values::Values;
use crate::refusal::{Refusal, Rule};
use trueio_model::{Arrivals, Guard, OpMix, Pace, Think, Verify};

pub(super) fn plan_pace(
    planner: &mut Planner,
    values: &Values,
    mix: OpMix,
    verify: Option<&Verify>,
) -> Result<Option<Pace>, Refusal> {
    let (bytes, ios) = (values.rates("rate"), values.rates("rate_iops"));
    let arrivals = match values.choice("rate_process") {
        Some("poisson") => Arrivals::Poisson,
        _ => Arrivals::Linear,
    };
    let (option, rates) = match (bytes, ios) {
        (Some(_), Some(_)) => {
            let rule = Rule::Contradiction {
                one: values.quote("rate"),
                other: values.quote("rate_iops"),
                reason: "a job has one rate",
                hint: "say one of them",
            };
            return Err(values.refuse("rate_iops", rule));
        }
        (None, None) => {
            note_unused(planner, values, &["rate_process"], "no rate is given");
            return Ok(None);
        }
        (Some(rates), None) => ("rate", rates),
        (None, Some(rates)) => ("rate_iops", rates),
    };
    let (rate, of_writes) = rates.of(mix);
    if rate.max(of_writes.unwrap_or(0.0)) <= 0.0 {
        return Ok(None);
    }
    let is_one_sided = of_writes.is_some_and(|writes| writes <= 0.0 || rate <= 0.0);
    if is_one_sided && verify.is_some() {
        let reason = format!(
            "with {} the clock says which I/Os are writes, and that cannot be gone over again",
            values.quote(option)
        );
        let hint = "give reads and writes a rate each, or leave `verify` out";
        return Err(values.refuse("verify", Rule::VerifyImpossible { reason, hint }));
    }
    if of_writes.is_some() && !is_one_sided {
        let because = "the rates say how many of the I/Os are reads";
        note_unused(planner, values, &["rwmixread", "rwmixwrite"], because);
    }
    let (ios_per_s, bytes_per_s) = if option == "rate" { (None, Some(rate)) } else { (Some(rate), None) };
    Ok(Some(Pace { ios_per_s, bytes_per_s, of_writes, arrivals }))
}

/// What ends the job as failed because it is slow.
pub(super) fn plan_guard(planner: &mut Planner, values: &Values, mix: OpMix) -> Guard {
    let rate = |name: &str| {
        let (rate, of_writes) = values.rates(name).map_or((0.0, None), |rates| rates.of(mix));
        (rate.ceil() as u64, of_writes.map(|rate| rate.ceil() as u64))
    };
    let ((bytes, bytes_of_writes), (ios, ios_of_writes)) = (rate("rate_min"), rate("rate_iops_min"));
    let guard = Guard {
        bytes_per_s_min: bytes,
        ios_per_s_min: ios,
        of_writes: match (bytes_of_writes, ios_of_writes) {
            (None, None) => None,
            // Said once for all, it is asked of each.
            (of_bytes, of_ios) => Some((of_bytes.unwrap_or(bytes), of_ios.unwrap_or(ios))),
        },
        cycle_ns: values.number("rate_cycle").unwrap_or(1000).saturating_mul(1_000_000),
        latency_ns_max: values.duration_ns("max_latency").unwrap_or(0),
    };
    if guard.bytes_per_s_min == 0 && guard.ios_per_s_min == 0 && guard.of_writes.is_none() {
        note_unused(planner, values, &["rate_cycle"], "neither `rate_min` nor `rate_iops_min` is given");
    }
    if guard.is_none() { Guard::default() } else { guard }
}

pub(super) fn plan_think(planner: &mut Planner, values: &Values) -> Option<Think> {
    let Some(time_ns) = values.duration_ns("thinktime") else {
        let names = ["thinktime_blocks", "thinktime_spin", "thinktime_iotime"];
        note_unused(planner, values, &names, "no `thinktime` is given");
        return None;
    };
    let after_ns = values.duration_ns("thinktime_iotime").unwrap_or(0);
    let every = match values.is_said("thinktime_blocks") || after_ns == 0 {
        true => values.number("thinktime_blocks").unwrap_or(1),
        false => 0,
    };
    Some(Think { time_ns, every, after_ns, spin_ns: values.duration_ns("thinktime_spin").unwrap_or(0).min(time_ns) })
}
