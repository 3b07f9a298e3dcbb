//! Loops that steer a job while it runs, exact on a modelled disk.

mod common;

use common::{Job, MS, S, assert_clean, assert_consistent, op};
use trueio_model::{DepthSearch, LatencyTarget, OpKind};

fn target(mut job: Job, target_ns: u64, percent: f64, keeps_running: bool) -> Job {
    job.plan.control.latency_target = Some(LatencyTarget { target_ns, window_ns: 100 * MS, percent, keeps_running });
    job
}

fn depths(search: &DepthSearch) -> Vec<u32> {
    search.windows.iter().map(|window| window.depth).collect()
}

/// Goal: the highest queue depth that keeps a latency is found, and the job ends with it.
/// Method: four channels of 1 ms. Sixteen in flight take 4 ms each, eight 2 ms, nine a mean of 2.25 ms: of them a fifth
/// or more take 3 ms.
#[test]
fn the_highest_depth_that_keeps_the_target_is_found_and_ends_the_job() {
    let report = target(Job::simulated(MS, 4).depth(16).time(60 * S), 2 * MS, 95.0, false).run();
    assert_clean(&report, "search");
    assert_consistent(&report, "search");
    let search = report.depth_search.as_ref().expect("it has a target");
    assert_eq!((search.depth, search.is_found), (8, true), "{search:?}");
    assert_eq!(depths(search), [16, 8, 12, 10, 9], "{search:?}");
    // Five windows, and what was in flight at the end of the last.
    assert!((500 * MS..504 * MS).contains(&report.elapsed_ns), "{}", report.elapsed_ns);
    assert!(!report.was_stopped);
    let max = op(&report, OpKind::Read).latency.total.max_ns();
    assert_eq!(max, Some(4 * MS), "nothing of the search is hidden");
}

#[test]
fn a_depth_that_keeps_the_target_at_once_ends_the_job_after_one_window() {
    let report = target(Job::simulated(MS, 4).depth(4).time(60 * S), 2 * MS, 100.0, false).run();
    let search = report.depth_search.as_ref().expect("it has a target");
    assert_eq!((search.depth, search.is_found, depths(search)), (4, true, vec![4]));
    assert_eq!(report.elapsed_ns, 100 * MS);
}

/// Goal: with `latency_run` the depth follows the device, and the job runs to its own end.
/// Method: after one second the device takes three times as long.
#[test]
fn a_job_that_keeps_running_lowers_its_depth_when_the_device_slows_down() {
    let mut job = target(Job::simulated(MS, 4).depth(16).time(3 * S), 3 * MS, 90.0, true);
    job.device().slowdowns = vec![(S, 3.0)];
    let report = job.run();
    assert_clean(&report, "slower");
    let search = report.depth_search.as_ref().expect("it has a target");
    assert!(report.elapsed_ns >= 3 * S, "{}", report.elapsed_ns);
    assert!(depths(search)[..8].contains(&12), "{search:?}");
    assert_eq!(search.depth, 4, "{search:?}");
}

#[test]
fn a_target_that_one_io_at_a_time_misses_lets_the_job_run_to_its_own_end() {
    let report = target(Job::simulated(5 * MS, 1).depth(8).time(S), MS, 99.0, false).run();
    assert_clean(&report, "missed");
    let search = report.depth_search.as_ref().expect("it has a target");
    assert_eq!((search.depth, search.is_found), (1, false));
    assert_eq!(depths(search)[..5], [8, 4, 2, 1, 1]);
    assert!(report.elapsed_ns >= S);
}

#[test]
fn a_target_for_every_io_that_one_at_a_time_misses_ends_the_job_as_failed() {
    let report = target(Job::simulated(5 * MS, 1).depth(8).time(S), MS, 100.0, false).run();
    let sentence = report.fatal.expect("it cannot be kept");
    assert!(sentence.contains("`latency_target` of 1.00 ms"), "{sentence}");
    // A window ends with its first late I/O: 8 in flight, 4, 2, and one behind what is left of the last.
    assert!(report.elapsed_ns < 150 * MS, "{}", report.elapsed_ns);
}

#[test]
fn the_search_begins_behind_the_ramp() {
    let mut job = target(Job::simulated(MS, 4).depth(16).time(60 * S), 2 * MS, 95.0, false);
    job.plan.limits.ramp_ns = 250 * MS;
    let report = job.run();
    let search = report.depth_search.as_ref().expect("it has a target");
    assert_eq!((search.depth, depths(search)[0]), (8, 16), "{search:?}");
    assert!((500 * MS..504 * MS).contains(&report.elapsed_ns), "{}", report.elapsed_ns);
}

#[test]
fn io_over_a_target_is_still_counted_once_in_every_figure() {
    let report = target(Job::simulated(MS, 4).depth(16).mixed(50).time(S), 2 * MS, 95.0, true).run();
    assert_clean(&report, "mixed");
    assert_consistent(&report, "mixed");
}
