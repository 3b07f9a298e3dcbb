//! A job that another program does gets a record with evidence, as every job does.

use std::sync::atomic::AtomicBool;
use trueio_device::{System, target_facts};
use trueio_job::{Machine, Target, plan};
use trueio_model::{CheckOutcome, JobSpec, OpKind, Origin, Outcome, RunRecord};
use trueio_run::{Observer, Reporting, Request, Targets, run};

struct Silent;
impl Observer for Silent {}

fn look(path: &str) -> Target {
    let path = std::path::Path::new(path);
    if !path.exists() {
        return Target::Missing;
    }
    target_facts(&System::live(), path)
        .map_or_else(|e| Target::Unreadable(e.to_string()), |f| Target::Present(f.into()))
}

fn record(options: &[(&str, &str)]) -> RunRecord {
    let mut spec = JobSpec::new("dd");
    for (name, value) in options {
        spec.set(name, *value, Origin::Preset { name: "test".into() });
    }
    let machine = Machine { idle_baseline_ns: 50_000_000, programs: vec!["dd".into()], ..Machine::unknown() };
    let plan = plan(&[spec.clone()], &look, &machine).expect("a plan");
    let request = Request {
        kind: "run".into(),
        command: Vec::new(),
        spec: vec![spec],
        plan,
        targets: Targets::default(),
        has_evidence: true,
        reporting: Reporting::default(),
    };
    run(request, &AtomicBool::new(false), &mut Silent)
}

#[test]
fn what_another_program_wrote_is_counted_at_the_disk_and_its_cpu_time_is_the_phases() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let directory = folder.path().to_str().expect("UTF-8");
    let record = record(&[
        ("rw", "write"),
        ("bs", "512k"),
        ("size", "16m"),
        ("directory", directory),
        ("fallocate", "truncate"),
        ("zero_buffers", "true"),
        ("end_fsync", "true"),
        ("command", "dd if=/dev/zero of={file} bs={bs} count={count} conv=notrunc"),
    ]);
    assert_eq!(record.outcome, Outcome::Complete);
    let phase = &record.phases[0];
    let job = &phase.jobs[0];
    let counted = |op| job.ops.iter().find(|record| record.op == op).map(|record| (record.io_count, record.byte_count));
    assert_eq!((counted(OpKind::Write), counted(OpKind::Sync)), (Some((1, 16 << 20)), Some((1, 0))));
    assert!(phase.cpu.total_ns() >= job.threads.user_ns + job.threads.system_ns, "{:?}", phase.cpu);
    for check in &phase.checks {
        println!("{} {:?} {}", check.name, check.outcome, check.sentence);
    }
    let check = |name: &str| phase.checks.iter().find(|check| check.name == name).expect(name);
    // The job sets the content; that another program wrote it is not suspect by itself.
    assert_eq!(check("content").outcome, CheckOutcome::Suspect);
    assert_ne!(check("call_results").outcome, CheckOutcome::Contradicted);
    if phase.devices.iter().any(|device| device.measured.write_bytes > 0) {
        assert_eq!(check("block_layer_bytes").outcome, CheckOutcome::Passed, "{:?}", check("block_layer_bytes"));
        assert_ne!(check("foreign_io").outcome, CheckOutcome::Contradicted);
    }
    let left: Vec<_> = std::fs::read_dir(folder.path()).expect("the folder").collect();
    assert!(left.is_empty(), "{left:?}");
}
