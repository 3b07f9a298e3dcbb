//! Evidence of level E3 through the program: requests traced while it runs, and nothing left of it.

use crate::common::*;
use trueio_model::{CheckOutcome, EvidenceLevel, PhaseRecord, RunRecord};

/// A job of a second and a half in each of the ways in which writes are made durable.
const WAYS: [(&str, &[&str]); 3] = [
    ("fdatasync after writes through the page cache", &["--direct", "0", "--fdatasync", "1"]),
    ("fdatasync after direct writes", &["--direct", "1", "--fdatasync", "2"]),
    ("O_DSYNC", &["--direct", "1", "--sync", "dsync", "--ioengine", "psync"]),
];

fn check<'a>(phase: &'a PhaseRecord, name: &str) -> &'a trueio_model::Check {
    phase.checks.iter().find(|check| check.name == name).expect("a finding")
}

/// Runs a job again, at most ten times, until its trace lost no event: other programs on a busy machine fill the kernel's buffers,
/// and a window with a loss rightly proves nothing.
fn without_losses<R>(mut run: impl FnMut() -> R, record: impl Fn(&R) -> &RunRecord) -> R {
    let has_losses = |ran: &R| record(ran).phases[0].trace.as_ref().is_some_and(|trace| trace.lost_event_count > 0);
    let mut ran = run();
    for _ in 1..10 {
        if !has_losses(&ran) {
            break;
        }
        ran = run();
    }
    ran
}

#[test]
fn durable_writes_are_traced_to_the_disk_in_order_and_without_barriers_they_are_contradicted() {
    if lacks("root") || lacks("loop") {
        return;
    }
    for options in ["noatime", "noatime,nobarrier"] {
        let sandbox = Sandbox::new();
        let device = Loop::new(&sandbox, "disk", 128 << 20);
        device.make_ext4();
        let mount = Mount::try_new("ext4", options, &device.device, &sandbox.path("mount")).expect("a mount");
        let directory = mount.path.to_str().expect("UTF-8");
        for (what, flags) in WAYS {
            let job = "--rw randwrite --bs 4k --size 16m --time_based --runtime 1500ms --no-history --directory";
            let mut arguments = vec!["run"];
            arguments.extend(job.split_whitespace());
            arguments.push(directory);
            arguments.extend(flags);
            let (ran, record) = without_losses(|| sandbox.record(&arguments), |(_, record)| record);
            let phase = &record.phases[0];
            let trace = phase.trace.as_ref().expect("a trace");
            assert_eq!(trace.missing, None, "{what}");
            assert_eq!(phase.level, EvidenceLevel::E3, "{what}: {trace:#?}");
            assert!(trace.window_count >= 2, "{what}: {trace:#?}");
            let order = check(phase, "flush_order");
            let is_honest = options == "noatime";
            let outcome = if is_honest { CheckOutcome::Passed } else { CheckOutcome::Contradicted };
            assert_eq!(order.outcome, outcome, "{what}, {options}: {order:?}\n{trace:#?}");
            assert!(trace.transfers.missing_count == 0, "{what}: {trace:#?}");
            if is_honest {
                assert_eq!(check(phase, "foreign_io").outcome, CheckOutcome::Passed, "{what}: {trace:#?}");
            } else {
                assert!(ran.out_joined().contains("no flush was issued and completed in between"), "{}", ran.out);
            }
        }
    }
}

/// Goal: requests are found in a time namespace, whose clock is ahead of the kernel's trace, as in a container that was moved.
/// Method: a job slow enough that a busy machine loses few events.
#[test]
fn a_run_in_a_time_namespace_is_traced_and_not_contradicted() {
    if lacks("root") || lacks("loop") || lacks("tracing") {
        return;
    }
    let ahead = ["--time", "--fork", "--monotonic", "1000"];
    if let Err(reason) = tool("unshare", &[&ahead[..], &["true"]].concat()) {
        return println!("skipped: {reason}");
    }
    let sandbox = Sandbox::new();
    let device = Loop::new(&sandbox, "disk", 64 << 20);
    device.make_ext4();
    let mount = Mount::try_new("ext4", "noatime", &device.device, &sandbox.path("mount")).expect("a mount");
    let job = "run --rw randwrite --bs 64k --direct require --size 8m --time_based --runtime 500ms --rate_iops 500 \
               --no-history --json - --directory";
    let mut arguments: Vec<&str> = job.split_whitespace().collect();
    arguments.push(mount.path.to_str().expect("UTF-8"));
    let plain = sandbox.command(&arguments);
    let mut command = std::process::Command::new("unshare");
    command.args(ahead).arg(plain.get_program()).args(plain.get_args()).current_dir(sandbox.root());
    command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let run = || {
        let ran = Ran::of(command.output().expect("unshare"));
        trueio_report::parse(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:?}"))
    };
    let record = without_losses(run, |record| record);
    let phase = &record.phases[0];
    assert_eq!(phase.level, EvidenceLevel::E3, "{:#?}", phase.trace);
    assert_eq!(check(phase, "traced_requests").outcome, CheckOutcome::Passed, "{:#?}", phase.trace);
}

/// Goal: the capability that docs/evidence.md names gives a user level E3, and without it the level is E2 and the reason is
/// reported.
/// Method: user 65534 reads a file of a private disk, in a mount namespace that has tracefs at its usual place; slowly enough
/// that a busy machine loses no event, which would lower the level.
#[test]
fn a_user_with_one_capability_gets_level_e3() {
    if lacks("root") || lacks("loop") || lacks("tracing") {
        return;
    }
    if let Err(reason) = tool("setpriv", &["--version"]) {
        return println!("skipped: {reason}");
    }
    let sandbox = Sandbox::new();
    let device = Loop::new(&sandbox, "disk", 64 << 20);
    device.make_ext4();
    let mount = Mount::try_new("ext4", "noatime", &device.device, &sandbox.path("mount")).expect("a mount");
    for path in [sandbox.root(), &mount.path] {
        std::fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(0o777)).expect("a mode");
    }
    let job = "run --rw randread --bs 4k --ioengine psync --direct require --size 8m --time_based --runtime 500ms --rate_iops 1000 \
               --no-history --json - --directory";
    let mut arguments: Vec<&str> = job.split_whitespace().collect();
    arguments.push(mount.path.to_str().expect("UTF-8"));
    let plain = sandbox.command(&arguments);
    let run = |capabilities: &[&str]| {
        let mut command = std::process::Command::new("unshare");
        // A second mount of it at the same place is refused.
        let script = "{ grep -qs ' /sys/kernel/tracing tracefs ' /proc/mounts || mount -t tracefs none /sys/kernel/tracing; } && exec \
                      setpriv --reuid=65534 --regid=65534 --clear-groups \"$@\"";
        command.args(["--mount", "--propagation", "private", "sh", "-c", script, "sh"]).args(capabilities);
        command.arg(plain.get_program()).args(plain.get_args()).current_dir(sandbox.root());
        command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        let ran = Ran::of(command.output().expect("unshare"));
        if ran.err.contains("Permission denied") && ran.out.is_empty() {
            println!("skipped: an ordinary user cannot reach the program: {}", ran.err);
            return None;
        }
        Some(trueio_report::parse(&ran.out).unwrap_or_else(|error| panic!("{error}: {ran:?}")))
    };
    let Some(record) = run(&["--inh-caps=+dac_override", "--ambient-caps=+dac_override"]) else { return };
    let phase = &record.phases[0];
    assert_eq!(phase.level, EvidenceLevel::E3, "{:#?}", phase.trace);
    assert!(!record.environment.is_root, "it is an ordinary user");
    let Some(record) = run(&[]) else { return };
    assert_eq!(record.phases[0].level, EvidenceLevel::E2);
    let traced = check(&record.phases[0], "traced_requests");
    assert!(traced.sentence.contains("CAP_DAC_OVERRIDE"), "{traced:?}");
}

/// Goal: reads of a loop device that find holes in its file are not confirmed, and the same reads of stored blocks are.
/// Method: the file is stored whole; then half of it is punched.
#[test]
fn reads_of_holes_below_a_loop_device_are_named() {
    if lacks("root") || lacks("loop") || lacks("tracing") {
        return;
    }
    let sandbox = Sandbox::new();
    if has_no_disk(&sandbox) {
        return;
    }
    let image = sandbox.data_file("image", 32 << 20);
    let device = Loop::over(&image, &["--direct-io=on"]);
    let job = "run --rw randread --bs 4k --ioengine psync --direct require --time_based --runtime 700ms --rate_iops 1500 --no-history \
               --filename";
    let arguments: Vec<&str> = job.split_whitespace().chain([device.device.as_str()]).collect();
    let run = || sandbox.record(&arguments).1;
    let finding = || check(&without_losses(run, |record| record).phases[0], "traced_requests").clone();
    let stored = finding();
    assert!(stored.outcome != CheckOutcome::Suspect && !stored.sentence.contains("holes"), "{stored:?}");
    tool("fallocate", &["--punch-hole", "--offset", "0", "--length", "16M", image.to_str().expect("UTF-8")])
        .expect("a filesystem that punches holes");
    let punched = finding();
    assert_eq!(punched.outcome, CheckOutcome::Suspect, "{punched:?}");
    assert!(punched.sentence.contains("read holes, which no disk stores"), "{punched:?}");
    assert_eq!(punched.cause, trueio_model::Cause::Setup);
}
