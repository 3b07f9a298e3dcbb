//! The verdict of a whole phase: correct phases of each kind, engines without a device, accepted findings.

use crate::support::*;
use trueio_evidence::{CHECKS, Observation};
use trueio_model::CheckOutcome::{Contradicted, NotApplicable, Passed, Suspect};
use trueio_model::{Cause, DirectPolicy, EngineKind, EvidenceLevel, OpKind, OpMix, Verdict};

#[test]
fn correct_phases_are_supported_with_every_source_and_no_flag() {
    for (name, phase) in
        [("reads", Phase::honest_reads()), ("writes", Phase::honest_writes()), ("log", Phase::honest_log())]
    {
        let judgement = phase.judge();
        assert_eq!(judgement.objections(), [], "{name}:\n{}", judgement.report());
        assert_eq!((judgement.verdict, judgement.level), (Verdict::Supported, EvidenceLevel::E2), "{name}");
    }
}

#[test]
fn every_check_returns_one_finding_with_its_name_and_a_whole_sentence() {
    for phase in [Phase::honest_reads(), Phase::honest_writes(), Phase::honest_log()] {
        let judgement = phase.judge();
        let names: Vec<&str> = judgement.checks.iter().map(|check| check.name.as_str()).collect();
        let expected: Vec<&str> = CHECKS.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, expected);
        for check in &judgement.checks {
            assert!(check.sentence.ends_with('.'), "{check:?}");
            assert!(!check.sentence.contains(".."), "{check:?}");
        }
    }
}

#[test]
fn every_check_has_a_usual_cause() {
    for (name, _) in CHECKS {
        assert!(Cause::usual_of(name).is_some(), "{name}");
    }
}

/// Goal: a container without `/sys` is not green. Method: an honest phase whose disks are unknown.
#[test]
fn a_phase_of_which_no_counter_could_be_read_is_unverified() {
    for mut phase in [Phase::honest_reads(), Phase::honest_writes(), Phase::honest_log()] {
        assert_eq!(phase.judge().verdict, Verdict::Supported);
        phase.targets[0].disks.clear();
        phase.observation.devices.clear();
        let judgement = phase.judge();
        assert_eq!(judgement.objections(), [], "{}", judgement.report());
        assert_eq!((judgement.verdict, judgement.level), (Verdict::Unverified, EvidenceLevel::E0));
    }
}

#[test]
fn engines_without_a_device_are_unverified() {
    for engine in [EngineKind::Null, EngineKind::Simulated] {
        let mut phase = Phase::honest_reads();
        phase.jobs[0].engine = engine;
        phase.observation = Observation::default();
        phase.worker_cpu.user_ns = SECOND_NS;
        let judgement = phase.judge();
        assert_eq!((judgement.verdict, judgement.level), (Verdict::Unverified, EvidenceLevel::E0), "{engine:?}");
        judgement.assert("call_results", Passed, "No device was involved");
        judgement.assert("block_layer_bytes", NotApplicable, engine.name());
    }
}

#[test]
fn with_a_buffered_and_a_direct_job_the_direct_bytes_are_the_minimum() {
    let mut phase = Phase::honest_reads();
    let mut other = Phase::honest_writes();
    other.jobs[0].direct = DirectPolicy::Off;
    phase.jobs.append(&mut other.jobs);
    phase.records.append(&mut other.records);
    phase.observation.devices = vec![delta(counted(400 * MIB, 0, 0))];
    phase.judge().assert("block_layer_bytes", Suspect, "stayed in the page cache");
    phase.observation.devices = vec![delta(counted(0, 400 * MIB, 0))];
    phase.judge().assert("block_layer_bytes", Contradicted, "read with direct I/O");
}

#[test]
fn a_mix_of_reads_and_writes_is_judged_by_its_worse_direction() {
    let mut phase = Phase::honest_reads();
    phase.jobs[0].pattern.mix = OpMix::ReadWrite { read_percent: 70 };
    phase.records =
        vec![record(vec![op(OpKind::Read, 71_680, 280 * MIB, 90_000), op(OpKind::Write, 30_720, 120 * MIB, 90_000)])];
    phase.observation.process_read_bytes = Some(280 * MIB);
    phase.observation.devices = vec![delta(counted(280 * MIB, 120 * MIB, 0))];
    let judgement = phase.judge();
    assert_eq!(judgement.objections(), [], "{}", judgement.report());
    assert_eq!(judgement.check("block_layer_bytes").expected, "280 MiB read, 120 MiB written in 102,400 I/Os");
    phase.observation.devices = vec![delta(counted(280 * MIB, 0, 0))];
    phase.judge().assert("block_layer_bytes", Contradicted, "written with direct I/O, but the disk counted 0 B");
}

/// Goal: a run over two disks judges each phase by its own disks. Method: the same phase with a second target
/// on tmpfs, a second disk that is busy, and a file next to the one with a known target.
#[test]
fn a_phase_is_judged_by_the_disks_under_its_own_files() {
    let mut phase = Phase::honest_reads();
    let mut other = target();
    other.path = "/other".to_owned();
    other.filesystem.as_mut().expect("a filesystem").mount_point = "/other".to_owned();
    other.stack = vec![layer("filesystem", "tmpfs on /other", 0)];
    other.disks = vec![disk("vdb", "zram")];
    phase.targets.insert(0, other);
    let mut busy = delta(counted(900 * MIB, 900 * MIB, 5));
    "vdb".clone_into(&mut busy.disk);
    busy.baseline = counted(100 * MIB, 100 * MIB, 5);
    phase.observation.devices.push(busy);
    phase.targets[1].path = "/data/another".to_owned();
    let judgement = phase.judge();
    assert_eq!(judgement.objections(), [], "{}", judgement.report());
    assert_eq!(judgement.check("block_layer_bytes").source, "/sys/block/vda/stat");
}

#[test]
fn an_accepted_contradiction_makes_the_phase_suspect_and_another_one_does_not() {
    let mut phase = Phase::honest_reads();
    phase.observation.devices = vec![delta(counted(0, 0, 0))];
    phase.observation.process_read_bytes = Some(400 * MIB);
    assert_eq!(phase.judge().verdict, Verdict::Contradicted);
    phase.accepted_checks = vec!["block_layer_bytes".to_owned()];
    let judgement = phase.judge();
    assert_eq!(judgement.verdict, Verdict::Suspect, "{}", judgement.report());
    let check = judgement.check("block_layer_bytes");
    assert!(check.is_accepted && check.outcome == Contradicted, "the finding itself stays");
    phase.accepted_checks = vec!["holes".to_owned()];
    assert_eq!(phase.judge().verdict, Verdict::Contradicted);
}
