//! Rates, pauses, and the minimum rates of a job.

use crate::input::{Decisions, JobInput};
use crate::option::{JobRates, Opt, Rates};
use crate::options::content::rows::VERIFY;
use crate::options::pace::rows::{
    MAX_LATENCY, RATE, RATE_CYCLE, RATE_IOPS, RATE_IOPS_MIN, RATE_MIN, RATE_PROCESS, RATE_SETTLE_TIME, THINKTIME,
    THINKTIME_BLOCKS, THINKTIME_IOTIME, THINKTIME_SPIN,
};
use crate::options::pattern::rows::{RWMIXREAD, RWMIXWRITE};
use crate::refusal::{Case, Refusal, Rule};
use trueio_model::{Guard, OpMix, Pace, Think, Verify};

pub(crate) fn plan_pace(
    values: &JobInput<'_>,
    decisions: &mut Decisions,
    mix: OpMix,
    verify: Option<&Verify>,
) -> Result<Option<Pace>, Refusal> {
    let (bytes, ios) = (values.get(RATE), values.get(RATE_IOPS));
    let arrivals = values.get(RATE_PROCESS);
    let (option, rates) = match (bytes, ios) {
        (Some(_), Some(_)) => {
            let rule = Rule::Contradiction {
                one: values.quote(RATE),
                other: values.quote(RATE_IOPS),
                reason: "a job has one rate",
                case: Case::RateTwice,
            };
            return Err(values.refuse(RATE_IOPS, rule));
        }
        (None, None) => {
            decisions.note_unused(values, &[RATE_PROCESS.row()], "no rate is given");
            return Ok(None);
        }
        (Some(rates), None) => (RATE.row(), rates),
        (None, Some(rates)) => (RATE_IOPS.row(), rates),
    };
    let JobRates { rate, of_writes } = rates.of(mix);
    if rate.max(of_writes.unwrap_or(0.0)) <= 0.0 {
        return Ok(None);
    }
    let is_one_sided = of_writes.is_some_and(|writes| writes <= 0.0 || rate <= 0.0);
    if is_one_sided && verify.is_some() {
        let reason = format!(
            "with {} the clock decides which I/Os are writes, and that cannot be repeated",
            values.quote(option)
        );
        let case = Case::VerifyOneSided;
        return Err(values.refuse(VERIFY, Rule::VerifyImpossible { reason, case }));
    }
    if of_writes.is_some() && !is_one_sided {
        let because = "the rates set the share of reads";
        decisions.note_unused(values, &[RWMIXREAD.row(), RWMIXWRITE.row()], because);
    }
    let (ios_per_s, bytes_per_s) = if option == RATE.row() { (None, Some(rate)) } else { (Some(rate), None) };
    Ok(Some(Pace { ios_per_s, bytes_per_s, of_writes, arrivals }))
}

/// Plans the minimum rates and the maximum latency; a job that violates them fails.
pub(crate) fn plan_guard(values: &JobInput<'_>, decisions: &mut Decisions, mix: OpMix) -> Guard {
    let minimum = |option: Opt<Rates>| values.get(option).map_or(JobRates::default(), |rates| rates.of(mix));
    let whole = |rate: f64| rate.ceil() as u64;
    let (bytes, ios) = (minimum(RATE_MIN), minimum(RATE_IOPS_MIN));
    let guard = Guard {
        bytes_per_s_min: whole(bytes.rate),
        ios_per_s_min: whole(ios.rate),
        of_writes: match (bytes.of_writes, ios.of_writes) {
            (None, None) => None,
            // One number for all is the minimum of reads and of writes.
            (of_bytes, of_ios) => Some((whole(of_bytes.unwrap_or(bytes.rate)), whole(of_ios.unwrap_or(ios.rate)))),
        },
        cycle_ns: values.get(RATE_CYCLE).saturating_mul(1_000_000),
        settle_ns: values.get(RATE_SETTLE_TIME).unwrap_or(0),
        latency_ns_max: values.get(MAX_LATENCY).unwrap_or(0),
    };
    if guard.bytes_per_s_min == 0 && guard.ios_per_s_min == 0 && guard.of_writes.is_none() {
        decisions.note_unused(
            values,
            &[RATE_CYCLE.row(), RATE_SETTLE_TIME.row()],
            "neither `rate_min` nor `rate_iops_min` is given",
        );
    }
    if guard.is_none() { Guard::default() } else { guard }
}

pub(crate) fn plan_think(values: &JobInput<'_>, decisions: &mut Decisions) -> Option<Think> {
    let Some(time_ns) = values.get(THINKTIME) else {
        let names = [THINKTIME_BLOCKS.row(), THINKTIME_SPIN.row(), THINKTIME_IOTIME.row()];
        decisions.note_unused(values, &names, "no `thinktime` is given");
        return None;
    };
    let after_ns = values.get(THINKTIME_IOTIME).unwrap_or(0);
    let every = match values.is_set(THINKTIME_BLOCKS) || after_ns == 0 {
        true => values.get(THINKTIME_BLOCKS),
        false => 0,
    };
    Some(Think { time_ns, every, after_ns, spin_ns: values.get(THINKTIME_SPIN).unwrap_or(0).min(time_ns) })
}
