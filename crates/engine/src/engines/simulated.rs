//! `simulated`: a modelled disk in virtual time.
//!
//! `channels` I/Os are served at the same time, each in `service_ns`; nothing is served during a
//! stall, I/Os take longer from given times on, and named I/Os fail. There is no real I/O and no real time, so that pacing, ramps,
//! deadlines and interrupts can be tested to the nanosecond, in milliseconds.

use super::{Completion, Engine, EngineError, EngineSetup};
use crate::clock::{Clock, VirtualClock};
use crate::request::Request;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use trueio_model::{EngineKind, SimulatedDevice};

/// A modelled disk.
#[derive(Debug)]
pub struct SimulatedEngine {
    device: SimulatedDevice,
    clock: VirtualClock,
    /// When each channel is free again.
    channels: BinaryHeap<Reverse<u64>>,
    /// Earliest first.
    in_flight: BinaryHeap<Reverse<InFlight>>,
    noted: Vec<(u32, u32)>,
    issued: u64,
}

/// An I/O in flight. The order of the fields is the order of completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct InFlight {
    done: u64,
    /// Number of I/Os that were submitted before.
    number: u64,
    slot: u32,
    result: i64,
}

impl SimulatedEngine {
    /// A disk that lives in `clock`'s time.
    pub fn new(_setup: &EngineSetup<'_>, device: &SimulatedDevice, clock: VirtualClock) -> Self {
        Self {
            device: device.clone(),
            clock,
            channels: (0..device.channels.max(1)).map(|_| Reverse(0)).collect(),
            in_flight: BinaryHeap::new(),
            noted: Vec::new(),
            issued: 0,
        }
    }

    /// The service time of an I/O that begins at `begin`.
    fn service_ns(&self, begin: u64) -> u64 {
        let factor = self.device.slowdowns.iter().rev().find(|slowdown| slowdown.0 <= begin).map_or(1.0, |slow| slow.1);
        (self.device.service_ns as f64 * factor) as u64
    }

    /// When an I/O that begins at `begin` is done: service time does not pass during a stall.
    fn served(&self, begin: u64) -> u64 {
        let mut now = begin;
        let mut left = self.service_ns(begin);
        for &(stall, length) in &self.device.stalls {
            if now < stall {
                let before = stall - now;
                if left <= before {
                    break;
                }
                left -= before;
                now = stall + length;
            } else if now < stall + length {
                now = stall + length;
            }
        }
        now + left
    }
}

impl Engine for SimulatedEngine {
    const KIND: EngineKind = EngineKind::Simulated;
    const BLOCKS: bool = false;

    unsafe fn queue(&mut self, slot: u32, request: &Request, _buffer: *mut u8) {
        self.noted.push((slot, request.length));
    }

    fn submit(&mut self) -> Result<(), EngineError> {
        for i in 0..self.noted.len() {
            let (slot, length) = self.noted[i];
            let Reverse(free) = self.channels.pop().expect("at least one channel");
            let done = self.served(free.max(self.clock.now()));
            self.channels.push(Reverse(done));
            let fails = self.device.failing_ios.contains(&self.issued);
            let result = if fails { -i64::from(libc::EIO) } else { i64::from(length) };
            self.in_flight.push(Reverse(InFlight { done, number: self.issued, slot, result }));
            self.issued += 1;
        }
        self.noted.clear();
        Ok(())
    }

    fn reap(&mut self, min: usize, timeout_ns: Option<u64>, out: &mut [Completion]) -> Result<usize, EngineError> {
        let limit = timeout_ns.map_or(u64::MAX, |ns| self.clock.now().saturating_add(ns));
        let mut count = 0;
        while count < out.len()
            && let Some(&Reverse(InFlight { done, slot, result, .. })) = self.in_flight.peek()
        {
            if done > self.clock.now() {
                if count >= min {
                    break;
                }
                if done > limit {
                    self.clock.advance_to(limit);
                    break;
                }
                self.clock.advance_to(done);
            }
            self.in_flight.pop();
            out[count] = Completion { slot, result };
            count += 1;
        }
        Ok(count)
    }

    fn sync_file(&mut self, _file: u16, _data_only: bool) -> i64 {
        let now = self.clock.now();
        self.clock.advance_to(self.served(now));
        0
    }
}
