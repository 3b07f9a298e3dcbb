//! `--crctest` and `--cpuclock-test`: the speed of the checksums of `verify`, and whether the clock agrees between processors.
//!
//! Lines and exit codes are fio's; figures are those of this program's own checksums and clock. fio's list has three
//! checksums that `verify` does not take (murmur3, jhash, fnv); they are not here.
//!
//! Limits: on a busy machine a checksum is as slow as its share of the processor.
//!
//! Source: what fio 3.33 prints; sched_setaffinity(2).

use std::fmt::Write;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::{Duration, Instant};
use trueio_engine::{AnyClock, Clock, RandomFill, checksum, choose_clock};
use trueio_model::Checksum;

/// Bytes of a piece.
const PIECE: usize = 128 << 10;
/// Most pieces of a checksum, as in fio.
const PIECES_MAX: u32 = 2048;
/// How long a checksum is measured.
const SPAN: Duration = Duration::from_millis(100);

/// The checksums in fio's order.
const CHECKSUMS: [Checksum; 14] = [
    Checksum::Md5,
    Checksum::Crc64,
    Checksum::Crc32,
    Checksum::Crc32c,
    Checksum::Crc16,
    Checksum::Crc7,
    Checksum::Sha1,
    Checksum::Sha256,
    Checksum::Sha512,
    Checksum::Xxhash,
    Checksum::Sha3_224,
    Checksum::Sha3_256,
    Checksum::Sha3_384,
    Checksum::Sha3_512,
];

/// Returns the lines of `--crctest`, and whether fio's status is success: it is not for a list.
pub(super) fn checksums(names: Option<&str>) -> (String, bool) {
    let list = || CHECKSUMS.iter().map(|kind| format!("{}\n", kind.name())).collect::<String>();
    let wanted: Vec<Checksum> = match names {
        None => CHECKSUMS.to_vec(),
        Some("help" | "list") => return (list(), false),
        Some(names) => {
            let is_named = |kind: &Checksum| names.split(',').any(|name| name.trim() == kind.name());
            CHECKSUMS.into_iter().filter(is_named).collect()
        }
    };
    if wanted.is_empty() {
        return (format!("unknown checksum `{}`; known are:\n{}", names.unwrap_or(""), list()), false);
    }
    let mut piece = vec![0; PIECE];
    RandomFill::new(0x8989).fill(&mut piece);
    let mut text = String::new();
    for kind in wanted {
        // Once before: pages and tables are touched, and the processor is awake.
        std::hint::black_box(checksum(kind, &piece));
        let (begin, mut pieces) = (Instant::now(), 0);
        while pieces == 0 || (pieces < PIECES_MAX && begin.elapsed() < SPAN) {
            std::hint::black_box(checksum(kind, &piece));
            pieces += 1;
        }
        let mib = f64::from(pieces) * PIECE as f64 / f64::from(1 << 20);
        let tabs = if kind.name().len() >= 7 { "\t" } else { "\t\t" };
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{}:{tabs}{:8.2} MiB/sec", kind.name(), mib / begin.elapsed().as_secs_f64());
    }
    (text, true)
}

/// Readings of each processor.
const READINGS: usize = 100_000;

/// A reading of the clock: its number among all processors, and its ticks.
type Reading = (u32, u64);

/// Returns the lines of `--cpuclock-test`, and whether the clock never went backwards from one processor to another.
pub(super) fn clock() -> (String, bool) {
    let clock = choose_clock();
    let is_counter = matches!(clock, AnyClock::Tsc(_));
    let cpus = allowed_cpus();
    let mut text = format!("cs: reliable_tsc: {}\n", if is_counter { "yes" } else { "no" });
    let _ = writeln!(text, "cs: Testing {} CPUs", cpus.len());
    let (number, barrier) = (AtomicU32::new(0), Barrier::new(cpus.len()));
    let all: Vec<Vec<Reading>> = std::thread::scope(|scope| {
        let threads: Vec<_> =
            cpus.iter().map(|cpu| scope.spawn(|| readings(*cpu, &clock, &number, &barrier))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap_or_default()).collect()
    });
    for (cpu, readings) in cpus.iter().zip(&all) {
        let (first, last) = (readings.first().map_or(0, |of| of.1), readings.last().map_or(0, |of| of.1));
        let _ = writeln!(text, "cs: cpu{cpu:3}: {} clocks seen, first {first}", last.saturating_sub(first));
    }
    let backwards = backwards(all.concat());
    let is_whole = all.iter().all(|readings| readings.len() == READINGS);
    let _ = match backwards {
        0 if is_whole => writeln!(text, "cs: Pass!"),
        0 => writeln!(text, "cs: Failed: a processor could not be used"),
        count => writeln!(text, "cs: Failed: {count}"),
    };
    (text, backwards == 0 && is_whole)
}

/// Returns the processors that this program may use.
fn allowed_cpus() -> Vec<usize> {
    let Ok(allowed) = rustix::thread::sched_getaffinity(None) else { return vec![0] };
    (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)).collect()
}

/// Reads the clock on a processor; empty if the processor cannot be used.
fn readings(cpu: usize, clock: &AnyClock, number: &AtomicU32, barrier: &Barrier) -> Vec<Reading> {
    let mut only = rustix::thread::CpuSet::new();
    only.set(cpu);
    let is_there = rustix::thread::sched_setaffinity(None, &only).is_ok();
    let mut readings = Vec::with_capacity(READINGS);
    barrier.wait();
    while is_there && readings.len() < READINGS {
        // A reading counts if no other processor read meanwhile, so that numbers and readings have one order.
        let before = number.load(SeqCst);
        let ticks = match clock {
            AnyClock::Tsc(clock) => clock.now_ordered(),
            AnyClock::Monotonic(clock) => clock.now_ordered(),
        };
        if number.compare_exchange(before, before + 1, SeqCst, SeqCst).is_ok() {
            readings.push((before, ticks));
        }
    }
    readings
}

/// Returns how often a later reading is less than the one before it.
fn backwards(mut readings: Vec<Reading>) -> usize {
    readings.sort_unstable();
    readings.windows(2).filter(|pair| pair[1].1 < pair[0].1).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Goal: a clock of one processor that is behind the others' is found, and one that agrees is not.
    #[test]
    fn a_clock_that_runs_backwards_between_processors_is_counted() {
        let (one, other) = ([(0, 10), (2, 30), (4, 50)], [(1, 20), (3, 40), (5, 60)]);
        assert_eq!(backwards([one, other].concat()), 0);
        let behind = other.map(|(number, ticks)| (number, ticks - 15));
        assert_eq!(backwards([one, behind].concat()), 3);
    }

    #[test]
    fn unknown_checksums_and_a_list_have_fios_status() {
        let (text, is_success) = checksums(Some("list"));
        assert!(text.lines().count() == CHECKSUMS.len() && !is_success, "{text}");
        let (text, is_success) = checksums(Some("sum"));
        assert!(text.starts_with("unknown checksum `sum`") && !is_success, "{text}");
        let (text, is_success) = checksums(Some("crc32c,xxhash"));
        let names: Vec<&str> = text.lines().filter_map(|line| line.split(':').next()).collect();
        assert!(names == ["crc32c", "xxhash"] && is_success, "{text}");
    }
}
