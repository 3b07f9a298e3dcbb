//! Programs that run next to jobs end together with their child processes.

use crate::common::{Job, MS, folder};
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use trueio_engine::WorkerReport;
use trueio_model::{EngineKind, ExecPlan};

/// A job that runs a script; `PIDFILE` in it is the file to which a child writes its process ID.
fn shell(script: &str, pidfile: &Path) -> Job {
    let script = script.replace("PIDFILE", &pidfile.display().to_string());
    let arguments = vec!["/bin/sh".to_owned(), "-c".to_owned(), script];
    Job { runner: trueio_run::run_worker, ..Job::new(EngineKind::Exec) }
        .with(|plan| plan.exec = Some(ExecPlan { arguments, grace_ns: 100 * MS, output: None }))
}

/// The number that a child wrote, once it has.
fn child(pidfile: &Path) -> Option<u32> {
    let text = std::fs::read_to_string(pidfile).ok()?;
    text.strip_suffix('\n')?.parse().ok()
}

fn is_running(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

/// Runs a job, and asks it to end when its child is there.
fn run_and_stop(job: &Job, pidfile: &Path) -> WorkerReport {
    std::thread::scope(|scope| {
        let worker = scope.spawn(|| job.run());
        while child(pidfile).is_none() && !worker.is_finished() {
            std::thread::sleep(Duration::from_millis(10));
        }
        job.stop.store(true, Relaxed);
        worker.join().expect("the worker does not panic")
    })
}

/// Goal: no process of a program continues after its job, even if the program ends first and a child ignores signals.
/// Method: a shell that ends with SIGTERM at once, and a child of it that does not.
#[test]
fn a_child_process_ends_with_the_job_even_if_its_program_ended_first() {
    let folder = folder();
    let pidfile = folder.path().join("child");
    let script = "sh -c 'trap \"\" TERM; echo $$ > PIDFILE; while :; do sleep 0.05; done' & wait";
    let report = run_and_stop(&shell(script, &pidfile), &pidfile);
    let pid = child(&pidfile).expect("the child wrote its process ID");
    assert!(!is_running(pid), "{report:?}");
    assert_eq!((report.was_stopped, &report.fatal), (true, &None));
    assert!(report.engine_notes.concat().contains("by signal 15"), "{:?}", report.engine_notes);
}

#[test]
fn processes_that_a_program_left_running_are_ended_and_noted() {
    let folder = folder();
    let pidfile = folder.path().join("child");
    // The shell waits until its child is there.
    let script = "sh -c 'echo $$ > PIDFILE; exec sleep 1000' & while ! test -s PIDFILE; do sleep 0.01; done";
    let report = shell(script, &pidfile).run();
    assert!(!is_running(child(&pidfile).expect("the child wrote its process ID")));
    assert_eq!((report.was_stopped, &report.fatal), (false, &None));
    let notes = report.engine_notes.concat();
    assert!(notes.contains("ended by itself with 0") && notes.contains("had left running was ended"), "{notes}");
    let alone = shell("true", &pidfile).run().engine_notes.concat();
    assert!(!alone.contains("left running"), "{alone}");
}

#[test]
fn a_run_that_was_ended_before_starts_no_program() {
    let folder = folder();
    let pidfile = folder.path().join("child");
    let job = shell("echo $$ > PIDFILE", &pidfile);
    job.stop.store(true, Relaxed);
    assert!(job.run().was_stopped);
    assert!(!pidfile.exists());
}
