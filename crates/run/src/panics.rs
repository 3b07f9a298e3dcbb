//! Panics, which are bugs of this program: a run that ends by one leaves the record of what is known.
//!
//! A panic of a worker is an outcome of its job. A panic of any other code of a phase ([`crate::Session`]), of an observer, or of what makes
//! an output of a record is turned into an error here.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Returns the text of a panic for a message.
pub fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
    format!("{} (this is a bug of trueio)", text.unwrap_or("a panic"))
}

/// Calls a function that changes nothing which is used after a panic, except to report what was known before.
///
/// # Errors
/// It panicked: the text.
pub fn contained<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| panic_text(panic.as_ref()))
}

#[cfg(test)]
mod tests {
    use crate::{Event, Observer, Reporting, Request, Targets};
    use std::sync::atomic::AtomicBool;
    use std::sync::mpsc::channel;
    use std::time::Duration;
    use trueio_model::{EngineKind, FilePlan, JobPlan, Outcome, Plan, Prepare, RunRecord};

    /// Panics at an event of the second phase.
    struct Panics {
        at: &'static str,
        phase: usize,
    }

    impl Observer for Panics {
        fn notify(&mut self, event: Event<'_>) {
            if let Event::PhaseBegins { index, .. } | Event::BeforePhase { index, .. } = &event {
                self.phase = *index;
            }
            let text = format!("{event:?}");
            assert!(self.phase == 0 || !text.starts_with(self.at), "staged");
        }
    }

    fn job(phase: u32, runtime_ns: u64) -> JobPlan {
        let mut job = JobPlan::plain(EngineKind::Null, 1 << 20);
        (job.name, job.phase) = (format!("job{phase}"), phase);
        (job.limits.runtime_ns, job.limits.is_time_based) = (Some(runtime_ns), true);
        let path = format!("f{phase}");
        let prepare = Prepare::Nothing;
        let (remove_after, offset_bytes, size_bytes, extends_from) = (false, 0, 1 << 20, None);
        job.files.push(FilePlan { path, prepare, remove_after, offset_bytes, size_bytes, extends_from });
        job
    }

    fn run(at: &'static str) -> Box<RunRecord> {
        let plan = Plan {
            // The workers of the second one end only if they are released.
            jobs: vec![job(0, 1_000_000), job(1, 3_600_000_000_000)],
            idle_baseline_ns: 0,
            idle_wait_ns: None,
            accepted_checks: Vec::new(),
            limits: None,
            notes: Vec::new(),
            identities: std::collections::BTreeMap::new(),
        };
        let reporting = Reporting { interim_every: Some(Duration::from_millis(10)), ..Reporting::default() };
        let (kind, command, spec, targets) = ("run".into(), Vec::new(), Vec::new(), Targets::default());
        let request = Request { kind, command, spec, plan, targets, has_evidence: false, reporting };
        let stop: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
        let (ended, record) = channel();
        // Not joined: a run that goes on would keep the test.
        std::thread::spawn(move || {
            let record = crate::run(request, stop, &mut Panics { at, phase: 0 });
            let _ = ended.send(Box::new(record));
        });
        record.recv_timeout(Duration::from_secs(100)).unwrap_or_else(|_| panic!("{at}: the run goes on"))
    }

    #[test]
    fn a_panic_at_any_event_ends_the_run_with_the_record_of_the_phases_before() {
        for at in ["BeforePhase", "PhaseBegins", "WorkersReady", "MeasuringBegins", "Progress", "Interim"] {
            let record = run(at);
            assert_eq!(record.phases.len(), 1, "{at}");
            assert!(record.phases[0].jobs[0].ops[0].io_count > 0, "{at}");
            let Outcome::Failed { reason } = &record.outcome else { panic!("{at}: {:?}", record.outcome) };
            assert!(reason.contains("staged (this is a bug of trueio)"), "{at}: {reason}");
        }
    }
}
