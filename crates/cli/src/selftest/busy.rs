//! A neighbour of the worker: busy threads on the processor that the worker is pinned to.
//!
//! The worker has the lowest priority (nice 19) and the busy threads have the priority of this program, so the kernel
//! gives the worker about 1 % of the processor while it is ready to run. Needs no privileges and no disk of its own.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;

/// The number of busy threads.
const COUNT: usize = 2;

/// Busy threads on one processor, until dropped.
pub(super) struct BusyProcessor {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl BusyProcessor {
    /// Starts the threads; they run when this returns.
    pub(super) fn start(cpu: u32) -> std::io::Result<Self> {
        let mut busy = Self { stop: Arc::new(AtomicBool::new(false)), threads: Vec::new() };
        for _ in 0..COUNT {
            let (is_over, pinned) = (Arc::clone(&busy.stop), Arc::new(AtomicBool::new(false)));
            let has_begun = Arc::clone(&pinned);
            let body = move || {
                let mut set = rustix::thread::CpuSet::new();
                set.set(cpu as usize);
                let is_pinned = rustix::thread::sched_setaffinity(None, &set).is_ok();
                has_begun.store(true, Relaxed);
                while is_pinned && !is_over.load(Relaxed) {
                    std::hint::spin_loop();
                }
            };
            busy.threads.push(std::thread::Builder::new().name("busy".to_owned()).spawn(body)?);
            while !pinned.load(Relaxed) {
                std::thread::yield_now();
            }
        }
        Ok(busy)
    }
}

impl Drop for BusyProcessor {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
