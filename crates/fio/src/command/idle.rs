//! `--idle-prof`: how idle the processors were in the measured time.
//!
//! fio keeps every processor busy with threads of idle priority and counts their work; no processor sleeps, which
//! changes latencies. This module reads the kernel's counters before and after the measured time, which changes
//! nothing. Threads of idle priority count as work.
//!
//! Limits: the resolution is a tick of 1/100 s per processor, so a run of a few milliseconds gives a coarse figure, and
//! processors without a tick give none.
//!
//! Source: proc(5), `/proc/stat`; sched_setaffinity(2).

use crate::language::IdleProf;
use crate::outputs::Idleness;
use std::hint::black_box;
use std::time::Instant;
use trueio_device::{ProcessorTicks, System, processor_ticks};

/// Repetitions of a piece of work on a processor; the fastest counts, because other programs use the processor, too.
const PIECES: usize = 100;

/// Idle time of the processors while jobs are measured.
#[derive(Debug)]
pub(super) struct Idle {
    what: IdleProf,
    system: System,
    unit_us: (f64, f64),
    before: Vec<ProcessorTicks>,
    /// Sum of each processor so far.
    sum: Vec<ProcessorTicks>,
}

impl Idle {
    pub(super) fn new(what: IdleProf) -> Self {
        let unit_us = unit_us();
        Self { what, system: System::live(), unit_us, before: Vec::new(), sum: Vec::new() }
    }

    /// The measured time begins, or continues.
    pub(super) fn begin(&mut self) {
        self.before = processor_ticks(&self.system).unwrap_or_default();
    }

    /// The measured time pauses or ends.
    pub(super) fn end(&mut self) {
        self.add(&processor_ticks(&self.system).unwrap_or_default());
    }

    fn add(&mut self, after: &[ProcessorTicks]) {
        for now in after {
            // Leaves out processors that went online or offline meanwhile.
            let Some(before) = self.before.iter().find(|before| before.cpu == now.cpu) else { continue };
            let total = now.total.saturating_sub(before.total);
            // The kernel's iowait counter may decrease.
            let idle = now.idle.saturating_sub(before.idle).min(total);
            match self.sum.iter_mut().find(|sum| sum.cpu == now.cpu) {
                Some(sum) => (sum.total, sum.idle) = (sum.total + total, sum.idle + idle),
                None => self.sum.push(ProcessorTicks { cpu: now.cpu, total, idle }),
            }
        }
    }

    /// Returns the result; `None` if no tick was counted or the counters could not be read.
    pub(super) fn result(self) -> Option<Idleness> {
        let percent = |idle: u64, total: u64| (total > 0).then(|| idle as f64 * 100.0 / total as f64);
        let all = |of: fn(&ProcessorTicks) -> u64| self.sum.iter().map(of).sum::<u64>();
        let mut of_each = Vec::new();
        if self.what == IdleProf::EachProcessor {
            of_each.extend(self.sum.iter().filter_map(|of| Some((of.cpu, percent(of.idle, of.total)?))));
            of_each.sort_by_key(|(cpu, _)| *cpu);
        }
        let percent = percent(all(|of| of.idle), all(|of| of.total))?;
        Some(Idleness { percent, of_each, unit_us: self.unit_us })
    }
}

/// Returns the output of `--idle-prof=calibrate`.
pub(super) fn calibrated() -> String {
    let idleness = Idleness { percent: 0.0, of_each: Vec::new(), unit_us: unit_us() };
    format!("CPU idleness:\n{}", idleness.unit_line())
}

/// Returns how long a piece of work takes on the processors that this program may use: mean and standard deviation, in
/// microseconds.
fn unit_us() -> (f64, f64) {
    // A separate thread moves from processor to processor.
    let pieces = std::thread::spawn(|| {
        let Ok(allowed) = rustix::thread::sched_getaffinity(None) else { return vec![quickest_us()] };
        let mut pieces = Vec::new();
        for cpu in (0..rustix::thread::CpuSet::MAX_CPU).filter(|cpu| allowed.is_set(*cpu)) {
            let mut only = rustix::thread::CpuSet::new();
            only.set(cpu);
            if rustix::thread::sched_setaffinity(None, &only).is_ok() {
                pieces.push(quickest_us());
            }
        }
        pieces
    });
    let pieces = pieces.join().unwrap_or_default();
    let count = pieces.len() as f64;
    let mean = pieces.iter().sum::<f64>() / count.max(1.0);
    let variance = pieces.iter().map(|piece| (piece - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
    (mean, variance.sqrt())
}

fn quickest_us() -> f64 {
    let piece = || {
        let begin = Instant::now();
        let mut number = 1_u64;
        for _ in 0..8192 {
            number = black_box(number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
        }
        begin.elapsed().as_secs_f64() * 1e6
    };
    (0..PIECES).map(|_| piece()).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_counts_processors_that_stayed_online_in_the_measured_parts() {
        let of = |cpu, total, idle| ProcessorTicks { cpu, total, idle };
        let mut idle = Idle {
            what: IdleProf::EachProcessor,
            system: System::live(),
            unit_us: (8.0, 0.5),
            before: Vec::new(),
            sum: Vec::new(),
        };
        // Of two parts; the second processor came between them, the third ran backwards.
        idle.before = vec![of(0, 1_000, 500), of(2, 1_000, 500)];
        idle.add(&[of(0, 1_050, 520), of(1, 70, 70), of(2, 1_050, 499)]);
        idle.before = vec![of(0, 2_000, 800), of(1, 100, 100), of(2, 2_000, 800)];
        idle.add(&[of(0, 2_050, 805), of(1, 150, 150), of(2, 2_050, 850)]);
        assert_eq!(idle.sum, [of(0, 100, 25), of(2, 100, 50), of(1, 50, 50)]);
        let of_each = vec![(0, 25.0), (1, 100.0), (2, 50.0)];
        assert_eq!(idle.result(), Some(Idleness { percent: 50.0, of_each, unit_us: (8.0, 0.5) }));
        // Without a tick the idle time is unknown.
        let short = |ticks: &[(u32, u64, u64)]| {
            let sum = ticks.iter().map(|(cpu, total, idle)| of(*cpu, *total, *idle)).collect();
            let (what, system) = (IdleProf::EachProcessor, System::live());
            Idle { what, system, unit_us: (8.0, 0.5), before: Vec::new(), sum }.result()
        };
        let of_each = vec![(1, 100.0)];
        assert_eq!(short(&[(0, 0, 0), (1, 1, 1)]), Some(Idleness { percent: 100.0, of_each, unit_us: (8.0, 0.5) }));
        assert_eq!(short(&[(0, 0, 0), (1, 0, 0)]), None);
        let (mean, deviation) = unit_us();
        assert!(mean > 0.0 && deviation >= 0.0);
    }
}
