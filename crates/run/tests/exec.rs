//! Programs that run beside the jobs end with all that they started.

#[path = "../../engine/tests/common/mod.rs"]
mod common;

use common::{Job, MS, folder};
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use trueio_engine::WorkerReport;
use trueio_model::{EngineKind, ExecPlan};

/// A job that runs a script, in which `PLACE` is where a child of it writes its number.
fn shell(script: &str, place: &Path) -> Job {
    let script = script.replace("PLACE", &place.display().to_string());
    let arguments = vec!["/bin/sh".to_owned(), "-c".to_owned(), script];
    Job { runner: trueio_run::run_worker, ..Job::new(EngineKind::Exec) }
        .with(|plan| plan.exec = Some(ExecPlan { arguments, grace_ns: 100 * MS, output: None }))
}

/// The number that a child wrote, once it has.
fn child(place: &Path) -> Option<u32> {
    let text = std::fs::read_to_string(place).ok()?;
    text.strip_suffix('\n')?.parse().ok()
}

fn is_running(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

/// Runs a job, and asks it to end when its child is there.
fn run_and_stop(job: &Job, place: &Path) -> WorkerReport {
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| job.run());
        while child(place).is_none() && !worker.is_finished() {
            std::thread::sleep(Duration::from_millis(10));
        }
        job.stop.store(true, Relaxed);
        worker.join().expect("the worker does not panic")
    })
}

/// Goal: nothing of a program goes on after its job, whoever of it ended first and whatever it does with signals.
/// Method: a shell that ends with SIGTERM at once, and a child of it that does not.
#[test]
fn what_a_program_started_ends_with_it_although_the_program_ended_first() {
    let folder = folder();
    let place = folder.path().join("child");
    let script = "sh -c 'trap \"\" TERM; echo $$ > PLACE; while :; do sleep 0.05; done' & wait";
    let report = run_and_stop(&shell(script, &place), &place);
    let pid = child(&place).expect("it was there");
    assert!(!is_running(pid), "{report:?}");
    assert_eq!((report.was_stopped, &report.fatal), (true, &None));
    assert!(report.engine_notes.concat().contains("by signal 15"), "{:?}", report.engine_notes);
}

#[test]
fn what_a_program_left_behind_when_it_ended_well_is_ended_and_told() {
    let folder = folder();
    let place = folder.path().join("child");
    // The shell waits until its child is there.
    let script = "sh -c 'echo $$ > PLACE; exec sleep 1000' & while ! test -s PLACE; do sleep 0.01; done";
    let report = shell(script, &place).run();
    assert!(!is_running(child(&place).expect("it was there")));
    assert_eq!((report.was_stopped, &report.fatal), (false, &None));
    let notes = report.engine_notes.concat();
    assert!(notes.contains("ended by itself with 0") && notes.contains("left behind was ended"), "{notes}");
    let alone = shell("true", &place).run().engine_notes.concat();
    assert!(!alone.contains("left behind"), "{alone}");
}

#[test]
fn a_run_that_was_ended_before_starts_no_program() {
    let folder = folder();
    let place = folder.path().join("child");
    let job = shell("echo $$ > PLACE", &place);
    job.stop.store(true, Relaxed);
    assert!(job.run().was_stopped);
    assert!(!place.exists());
}
