//! Sentences about the parts of the latency: device, I/O scheduler, and everything else.
//!
//! Known for sampled direct transfers, sync calls and durable writes whose requests were traced (level E3).

use crate::summary::name_of_phase;
use crate::verdicts::mark;
use trueio_model::{LatencyParts, OpKind, PartTimes, PhaseRecord, RunRecord, units};

/// Returns one sentence per operation of each phase with a trace; none for contradicted phases.
pub(crate) fn latency_parts(record: &RunRecord) -> Vec<String> {
    let of = |(index, phase): (usize, &PhaseRecord)| -> Vec<String> {
        let name = name_of_phase(record, index);
        phase_parts(phase).into_iter().map(|sentence| format!("{name}: {sentence}")).collect()
    };
    record.phases.iter().enumerate().flat_map(of).collect()
}

/// Returns the sentences of one phase.
pub(crate) fn phase_parts(phase: &PhaseRecord) -> Vec<String> {
    let trace = phase.trace.as_ref().filter(|_| mark(phase).is_shown());
    trace.map_or_else(Vec::new, |trace| trace.latency.iter().map(sentence).collect())
}

fn sentence(parts: &LatencyParts) -> String {
    let all = [("device", parts.device), ("I/O scheduler", parts.scheduler), ("the rest", parts.rest)];
    let share = |part: PartTimes| part.mean_ns as f64 * 100.0 / parts.total.mean_ns.max(1) as f64;
    let means = all.map(|(name, part)| format!("{name} {} ({:.0} %)", time(part.mean_ns), share(part)));
    let tails = all.map(|(name, part)| format!("{name} {}", time(part.p99_ns)));
    let ops = match parts.op {
        OpKind::Read => "reads",
        OpKind::Sync => "sync calls",
        _ => "writes",
    };
    format!(
        "sampled {ops} took {} on average: {}; p99 {}: {} ({} of them)",
        time(parts.total.mean_ns),
        means.join(", "),
        time(parts.total.p99_ns),
        tails.join(", "),
        units::format_count(parts.io_count)
    )
}

fn time(ns: u64) -> String {
    units::format_duration_ns(ns)
}

/// What the rest is, where the sentences stand.
pub(crate) const REST: &str =
    "The rest: system calls, the filesystem, waits for a free request, this program. A p99 is that of the part.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_has_the_share_of_each_part_and_its_tail() {
        let times = |mean_ns, p99_ns| PartTimes { mean_ns, p50_ns: mean_ns, p99_ns };
        let parts = LatencyParts {
            op: OpKind::Read,
            io_count: 12_345,
            total: times(92_000, 300_000),
            scheduler: times(0, 0),
            device: times(78_000, 240_000),
            rest: times(14_000, 40_000),
        };
        assert_eq!(
            sentence(&parts),
            "sampled reads took 92.0 µs on average: device 78.0 µs (85 %), I/O scheduler 0 ns (0 %), the rest 14.0 µs (15 %); p99 300 µs: \
             device 240 µs, I/O scheduler 0 ns, the rest 40.0 µs (12,345 of them)"
        );
    }
}
