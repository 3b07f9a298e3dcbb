//! Runs of several ranks that four variables connect.

use crate::common::*;
use std::net::TcpListener;
use std::process::Command;
use trueio_model::{Outcome, RunRecord};

/// A port that was free.
pub(crate) fn free_port() -> u16 {
    TcpListener::bind(("::", 0)).and_then(|listener| listener.local_addr()).expect("a port").port()
}

/// One process of a run of `size` ranks.
pub(crate) fn rank(sandbox: &Sandbox, rank: usize, size: usize, port: u16, arguments: &[&str]) -> Command {
    let mut command = sandbox.command(arguments);
    command
        .env("RANK", rank.to_string())
        .env("WORLD_SIZE", size.to_string())
        .env("MASTER_ADDR", "127.0.0.1")
        .env("MASTER_PORT", port.to_string())
        .env("TRUEIO_TOKEN", "of this test")
        .env("TRUEIO_RANK_TIMEOUT", "120");
    command
}

/// Runs the program as `size` ranks, each with the arguments that `of` returns.
pub(crate) fn run_ranks<'a>(sandbox: &Sandbox, size: usize, of: impl Fn(usize) -> Vec<&'a str>) -> Vec<Ran> {
    let port = free_port();
    let started: Vec<Running> =
        (0..size).map(|number| Running::start(&mut rank(sandbox, number, size, port, &of(number)))).collect();
    started.into_iter().map(|running| running.wait().0).collect()
}

pub(crate) fn record_at(sandbox: &Sandbox, name: &str) -> RunRecord {
    let text = std::fs::read_to_string(sandbox.aside(name)).expect("rank 0 wrote its record");
    serde_json::from_str(&text).expect("a record")
}

/// Asserts what is true of each honest run: the sums are those of the ranks' own records.
pub(crate) fn assert_sums(record: &RunRecord, size: usize) {
    let cluster = record.cluster.as_ref().expect("several ranks");
    assert_eq!((cluster.rank_count as usize, cluster.ranks.len(), cluster.lost.len()), (size, size, 0));
    assert_eq!(record.outcome, Outcome::Complete);
    for (index, phase) in record.phases.iter().enumerate() {
        for job in &phase.jobs {
            for op in &job.ops {
                let own = || {
                    let phases = cluster.ranks.iter().filter_map(|rank| rank.record.phases.get(index));
                    let jobs = phases.flat_map(|own| &own.jobs).filter(|own| own.name == job.name);
                    jobs.flat_map(|own| &own.ops).filter(|own| own.op == op.op)
                };
                assert_eq!(op.io_count, own().map(|own| own.io_count).sum::<u64>());
                assert_eq!(op.byte_count, own().map(|own| own.byte_count).sum::<u64>());
                assert_eq!(op.latency.total.count(), own().map(|own| own.latency.total.count()).sum::<u64>());
                assert_eq!(op.latency.total.sum_ns(), own().map(|own| own.latency.total.sum_ns()).sum::<u128>());
            }
        }
        let across = &cluster.phases[index];
        assert_eq!(across.ranks.len(), size);
        for span in &across.ranks {
            assert!(span.end_ns > span.begin_ns, "{span:?}");
            // No rank begins before the agreed start, in whosever clock.
            assert!(span.begin_ns >= -(span.clock_before.bound_ns as i64), "{span:?}");
        }
        for name in trueio_cluster::CHECKS {
            assert!(phase.checks.iter().any(|check| check.name == name), "{name}");
        }
    }
}
