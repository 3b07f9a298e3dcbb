//! Chooses the machine for a test case, and skips cases that cannot run.
//!
//! Booting takes longer than most cases, so cases with the same [`Spec`] share a machine. A case
//! restores its state; a case that fails ends the machine, and the next one boots another.

use crate::kernel::Kernel;
use crate::machine::{Machine, QEMU, Spec, packages};
use crate::programs;
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// The running machine.
static SHARED: Mutex<Option<(Spec, Machine)>> = Mutex::new(None);

/// Runs a case on a machine of this kind, which may have run others before; prints why and returns
/// if there cannot be one here.
///
/// # Panics
/// If the case fails, the machine does not come up, or `TRUEIO_REQUIRE` lists `lab` and there
/// cannot be a machine.
pub fn on(spec: &Spec, case: impl FnOnce(&mut Machine)) {
    if lacks(spec.series()) {
        return;
    }
    // A case that failed has ended its machine.
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    let kept = shared.take().filter(|(kept, machine)| kept == spec && machine.is_alive());
    let mut machine = match kept {
        Some((_, machine)) => machine,
        None => boot(spec),
    };
    case(&mut machine);
    *shared = Some((spec.clone(), machine));
}

/// Runs a case on a machine of its own, for changes that cannot be undone. Otherwise like [`on`].
///
/// # Panics
/// As [`on`].
pub fn fresh(spec: &Spec, case: impl FnOnce(&mut Machine)) {
    if lacks(spec.series()) {
        return;
    }
    // There is one machine at a time.
    let mut shared = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    *shared = None;
    let mut machine = boot(spec);
    case(&mut machine);
}

/// Ends the shared machine, and releases the lock.
pub fn end() {
    *SHARED.lock().unwrap_or_else(PoisonError::into_inner) = None;
}

fn boot(spec: &Spec) -> Machine {
    let machine = Machine::boot(spec).unwrap_or_else(|error| panic!("no machine: {error:#}"));
    println!("Linux {} booted in {:.1} s", machine.kernel_release, machine.boot_time.as_secs_f64());
    machine
}

/// True if there can be no machine with a kernel of this series here, after saying why.
///
/// # Panics
/// If `TRUEIO_REQUIRE` lists `lab`.
pub fn lacks(series: &str) -> bool {
    static LACKING: Mutex<BTreeMap<String, Option<String>>> = Mutex::new(BTreeMap::new());
    let mut lacking = LACKING.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(reason) = lacking.entry(series.to_owned()).or_insert_with(|| what_is_missing(series)) else {
        return false;
    };
    let required = std::env::var("TRUEIO_REQUIRE").unwrap_or_default();
    assert!(!required.split([',', ' ']).any(|need| need == "lab"), "TRUEIO_REQUIRE lists `lab`, but {reason}");
    eprintln!("skipped: {reason}");
    true
}

/// What a machine lacks.
fn what_is_missing(series: &str) -> Option<String> {
    let wanted = [
        (QEMU, "qemu-system-x86"),
        ("depmod", "kmod"),
        ("dpkg-deb", "dpkg"),
        ("xz", "xz-utils"),
        ("strip", "binutils"),
    ];
    for (program, package) in wanted {
        if !programs::has_program(program) {
            return Some(format!("there is no {program} (package {package})"));
        }
    }
    Kernel::get(&packages(), series).err().map(|error| format!("there is no kernel {series} of Debian: {error:#}"))
}
