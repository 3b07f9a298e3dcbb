//! Rounds of a phase's work until it is steady, before it is measured.
//!
//! Each round runs the phase's jobs again for the round's length, with offsets and content of its
//! own (the seed differs), on the files that are open already; nothing is kept of it but its rates
//! and its 99th percentile. When the SNIA rule holds for both over the last window, the rounds end,
//! and what is measured then is a fresh span: the window was chosen because it is flat, so its
//! figures flatter.
//!
//! Cannot do: purge a device first, as the specification wants; that destroys data, and no option
//! requests it. A sequential job begins each round at its first byte again.

use crate::measure::{OpenJob, Witnesses};
use crate::merge::{Merged, merge};
use crate::phase::io_failure;
use crate::setting::Setting;
use crate::{Event, Observer, stopped};
use std::sync::atomic::Ordering::Relaxed;
use trueio_model::{
    Histogram, JobPlan, JobRecord, OpKind, Outcome, SteadyPlan, SteadyRound, SteadyState, SteadyVariable, round_seed,
};
use trueio_stats::{BEYOND_MIN, SteadyRule, independent_beyond, joined_dependence, quantile};

/// The rule; the same for every run, so that "steady" means one thing.
const RULE: SteadyRule = SteadyRule::SNIA;

impl Setting<'_> {
    /// Runs rounds until they are steady, or until there were as many as planned. The outcome is
    /// other than complete if a round failed or was stopped; the rounds until then are returned.
    pub(crate) fn settle(
        &self,
        jobs: &[OpenJob<'_>],
        plan: SteadyPlan,
        observer: &mut dyn Observer,
    ) -> (SteadyState, Outcome) {
        let mut state = SteadyState {
            window_rounds: RULE.window as u32,
            range_percent_max: RULE.range_max * 100.0,
            excursion_percent_max: RULE.excursion_max * 100.0,
            rounds: Vec::new(),
            is_attained: false,
            variables: Vec::new(),
        };
        for number in 0..plan.rounds_max {
            observer.notify(Event::RoundBegins { round: number, rounds_max: plan.rounds_max, so_far: &state });
            let plans: Vec<JobPlan> = jobs.iter().map(|job| round_of(job.plan, plan.round_ns, number)).collect();
            let opened = jobs.iter().zip(&plans);
            let opened: Vec<OpenJob<'_>> = opened
                .map(|(job, plan)| OpenJob { plan, files: job.files.clone(), notes: Vec::new(), open_ns: None })
                .collect();
            let (reports, _) = self.measure(&opened, Witnesses::default(), observer);
            let mut records = Vec::new();
            for (job, reports) in plans.iter().zip(reports) {
                let Merged { mut record, fatal, .. } = merge(job, self.reporting.shown(reports), Vec::new());
                self.explain(&plans, &mut record);
                if let Some(reason) = fatal.or_else(|| io_failure(job, &record)) {
                    let reason = format!("job `{}`, steady-state round {}: {reason}", job.name, number + 1);
                    return (state, Outcome::Failed { reason });
                }
                records.push(record);
            }
            if self.stop.load(Relaxed) {
                return (state, stopped());
            }
            state.rounds.push(round(&records));
            state.variables = variables(&state.rounds);
            if !state.variables.is_empty() && state.variables.iter().all(|variable| variable.is_steady) {
                state.is_attained = true;
                break;
            }
        }
        (state, Outcome::Complete)
    }
}

/// A job as a round of itself: by time only, without a head, with offsets and content of its own.
fn round_of(job: &JobPlan, round_ns: u64, number: u32) -> JobPlan {
    let mut round = job.clone();
    round.limits.runtime_ns = Some(round_ns);
    round.limits.is_time_based = true;
    round.limits.io_count = None;
    round.limits.ramp_ns = 0;
    round.limits.start_delay_ns = 0;
    // What ends or steers the measured part does not end or steer a round.
    round.control = trueio_model::Control::default();
    // The measured part keeps the job's seed, so it repeats none of the rounds.
    round.seed = round_seed(job.seed, number);
    round
}

/// All jobs of a round together. Rates are sums of the jobs' own, over their own time.
fn round(records: &[JobRecord]) -> SteadyRound {
    let mut latency = Histogram::new();
    let (mut ios_per_s, mut bytes_per_s, mut elapsed_ns) = (0.0, 0.0, 0);
    for record in records {
        let seconds = record.elapsed_ns as f64 / 1e9;
        elapsed_ns = elapsed_ns.max(record.elapsed_ns);
        for op in record.ops.iter().filter(|op| op.op != OpKind::Sync && seconds > 0.0) {
            ios_per_s += op.io_count as f64 / seconds;
            bytes_per_s += op.byte_count as f64 / seconds;
            latency.merge(&op.latency.total);
        }
    }
    let ops = records.iter().flat_map(|record| &record.ops).filter(|op| op.op != OpKind::Sync);
    let found = joined_dependence(ops.map(|op| (op.latency.total.count(), op.dependence.as_ref())));
    // A round long enough to show how its I/Os depend on each other has a percentile only if enough independent ones lie
    // beyond it; a shorter one is judged as if all were.
    let is_supported = found
        .and_then(|found| independent_beyond(latency.count(), 0.99, &found))
        .is_none_or(|beyond| beyond >= BEYOND_MIN);
    let latency_ns_p99 = quantile(&latency, 0.99).filter(|_| is_supported).map(|quantile| quantile.value_ns);
    SteadyRound { elapsed_ns, ios_per_s, bytes_per_s, latency_ns_p99 }
}

/// The tracked variables over the last window; empty as long as it is not full.
fn variables(rounds: &[SteadyRound]) -> Vec<SteadyVariable> {
    if rounds.len() < RULE.window {
        return Vec::new();
    }
    let variable = |name: &str, value: &dyn Fn(&SteadyRound) -> f64| {
        let judged = RULE.judge(&rounds.iter().map(value).collect::<Vec<f64>>());
        SteadyVariable {
            name: name.to_owned(),
            range_percent: judged.map(|(fit, _)| fit.range * 100.0),
            excursion_percent: judged.map(|(fit, _)| fit.excursion * 100.0),
            is_steady: judged.is_some_and(|(_, is_steady)| is_steady),
        }
    };
    // A percentile that a round's sample cannot support is no number, and so not steady.
    vec![
        variable("throughput", &|round| round.ios_per_s),
        variable("latency_p99", &|round| round.latency_ns_p99.map_or(f64::NAN, |ns| ns as f64)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(ios: &[f64], p99: &[Option<u64>]) -> Vec<SteadyRound> {
        let round = |(&ios_per_s, &latency_ns_p99): (&f64, &Option<u64>)| SteadyRound {
            elapsed_ns: 1,
            ios_per_s,
            bytes_per_s: ios_per_s * 4096.0,
            latency_ns_p99,
        };
        ios.iter().zip(p99).map(round).collect()
    }

    #[test]
    fn throughput_that_is_steady_with_a_percentile_that_is_not_is_no_steady_state() {
        let p99 = [100, 150, 200, 260, 330].map(Some);
        let found = variables(&rounds(&[50.0; 5], &p99));
        assert_eq!(
            found.iter().map(|v| (v.name.as_str(), v.is_steady)).collect::<Vec<_>>(),
            [("throughput", true), ("latency_p99", false)]
        );
        assert!(found[1].excursion_percent.unwrap() > 100.0, "{found:?}");
    }

    #[test]
    fn a_round_with_too_few_ios_for_its_percentile_is_not_steady() {
        let p99 = [Some(100), Some(100), None, Some(100), Some(100)];
        let found = variables(&rounds(&[50.0; 5], &p99));
        assert!(found[0].is_steady && !found[1].is_steady, "{found:?}");
        assert_eq!(found[1].range_percent, None);
        assert!(variables(&rounds(&[50.0; 4], &[Some(1); 4])).is_empty(), "the window is not full");
    }
}
