//! The clock, the processors and the temperature of the machine: `latency_floor`, `clock_and_cpu`, heat, pressure.

use crate::support::*;
use trueio_evidence::Heat;
use trueio_model::CheckOutcome::{NotApplicable, NotSeen, Passed, Suspect};
use trueio_model::OpKind;

#[test]
fn half_a_microsecond_is_suspect_for_a_disk_and_not_for_memory() {
    let mut phase = Phase::honest_reads();
    phase.records = vec![record(vec![op(OpKind::Read, 102_400, 400 * MIB, 500)])];
    phase.judge().assert("latency_floor", Suspect, "something else served it");
    phase.targets[0].disks = vec![disk("vda", "zram")];
    phase.judge().assert("latency_floor", NotApplicable, "");
}

#[test]
fn a_coarse_clock_a_busy_worker_and_steal_are_suspect() {
    let mut fast = Phase::honest_reads();
    fast.records = vec![record(vec![op(OpKind::Read, 102_400, 400 * MIB, 200)])];
    fast.judge().assert("clock_and_cpu", Suspect, "The clock's error is 24 ns");
    let mut busy = Phase::honest_reads();
    busy.worker_cpu.system_ns = SECOND_NS * 95 / 100;
    busy.judge().assert("clock_and_cpu", Suspect, "generator_limited");
    // Polling for completions uses the whole core by design.
    busy.jobs[0].write_flags.hipri = true;
    busy.judge().assert("clock_and_cpu", Passed, "");
    // A disk in memory is copied by the processor, which is the device.
    busy.jobs[0].write_flags.hipri = false;
    busy.targets[0].disks = vec![disk("vda", "zram")];
    busy.judge().assert("clock_and_cpu", Passed, "The device is the processor: vda is memory");
    let mut stolen = Phase::honest_reads();
    stolen.observation.steal_share = Some(0.2);
    stolen.judge().assert("clock_and_cpu", Suspect, "took 20 % of the processors' time");
}

#[test]
fn more_workers_than_processors_share_the_available_processors() {
    let mut phase = Phase::honest_reads();
    phase.jobs[0].workers = 16;
    phase.environment.cpu.usable_count = 2;
    phase.worker_cpu.system_ns = SECOND_NS * 19 / 10;
    phase.judge().assert("clock_and_cpu", Suspect, "generator_limited");
}

#[test]
fn a_disk_above_its_limit_and_a_throttled_processor_are_suspect() {
    let mut phase = Phase::honest_reads();
    let heat = |after_millidegrees| {
        vec![Heat {
            disk: "vda".to_owned(),
            before_millidegrees: 40_000,
            after_millidegrees,
            limit_millidegrees: Some(70_000),
        }]
    };
    phase.observation.heats = heat(70_000);
    phase.judge().assert("heat", Suspect, "vda is at or above its own temperature limit");
    phase.observation.heats = heat(69_000);
    phase.observation.throttle_count = Some(0);
    phase.judge().assert("heat", Passed, "All reported temperatures were below");
    phase.observation.throttle_count = Some(2);
    phase.judge().assert("heat", Suspect, "processors throttled");
    phase.observation.heats[0].disk = "sdz".to_owned();
    phase.observation.throttle_count = None;
    phase.judge().assert("heat", NotSeen, "report temperatures");
}

#[test]
fn memory_stalls_and_clock_drift_are_suspect_and_waiting_for_processors_is_reported() {
    let mut phase = Phase::honest_reads();
    phase.observation.cpu_pressure_share = Some(0.6);
    phase.observation.memory_pressure_share = Some(0.01);
    phase.observation.clock_drift = Some(-4e-4);
    let judgement = phase.judge();
    judgement.assert("clock_and_cpu", Passed, "did not use all of their processors");
    assert!(
        judgement.check("clock_and_cpu").found.contains("waiting for a processor 60.0 %"),
        "{}",
        judgement.report()
    );
    phase.observation.memory_pressure_share = Some(0.08);
    phase.judge().assert("clock_and_cpu", Suspect, "Memory was short");
    phase.observation.memory_pressure_share = None;
    phase.observation.clock_drift = Some(0.02);
    phase.judge().assert("clock_and_cpu", Suspect, "drifted +2.00 % from the kernel's clock");
}
