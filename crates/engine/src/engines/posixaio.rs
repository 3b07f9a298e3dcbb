//! `posixaio`: a queue on threads.
//!
//! POSIX asynchronous I/O is not the kernel's on Linux: glibc gives each request to a thread that calls `pread` or
//! `pwrite`. So does this engine, with threads of its own, one for each I/O in flight up to [`THREADS_MAX`]. glibc
//! works through the requests of one file one at a time; here they run at the same time, and the engine's note in
//! the record has a note about it.
//!
//! A request costs two changes of thread. That is the engine, not a flaw of the measurement.
//!
//! Source: aio(7), and "glibc's implementation" there.

use super::{
    Completion, Engine, EngineError, EngineSetup, TargetFile, TrimCall, descriptors, negative_errno, sync_descriptor,
    trim,
};
use crate::request::Request;
use std::collections::VecDeque;
use std::os::fd::RawFd;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use trueio_model::{EngineKind, OpKind};

/// The most threads; more I/Os in flight wait for one.
const THREADS_MAX: u32 = 64;
/// Their stacks: they call the kernel and nothing else.
const STACK_BYTES: usize = 64 << 10;

/// A request for a thread.
#[derive(Debug, Clone, Copy)]
struct Task {
    slot: u32,
    request: Request,
    buffer: *mut u8,
}

// SAFETY: the buffer belongs to the slot alone until its completion is reaped (`queue`'s promise), whichever
// thread the call is made on.
unsafe impl Send for Task {}

#[derive(Debug)]
struct TaskQueue {
    waiting: VecDeque<Task>,
    done: VecDeque<Completion>,
    is_closing: bool,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<TaskQueue>,
    has_task: Condvar,
    has_done: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, TaskQueue> {
        self.state.lock().expect("no thread panics while holding the queue")
    }
}

/// A queue on threads.
#[derive(Debug)]
pub struct PosixaioEngine {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    files: Vec<RawFd>,
    noted: Vec<Task>,
    notes: Vec<String>,
    /// Keeps the descriptors open as long as the threads live.
    _open: Vec<TargetFile>,
}

impl Drop for PosixaioEngine {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.is_closing = true;
        state.waiting.clear();
        drop(state);
        self.shared.has_task.notify_all();
        // Running requests end first: no thread writes to a buffer after this.
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

/// Carries out requests until the queue is closed.
fn serve(shared: &Shared, files: &[RawFd], trim_calls: &[TrimCall]) {
    loop {
        let task = {
            let mut state = shared.lock();
            loop {
                if let Some(task) = state.waiting.pop_front() {
                    break task;
                }
                if state.is_closing {
                    return;
                }
                state = shared.has_task.wait(state).expect("no thread panics while holding the queue");
            }
        };
        let Request { offset, length, file, op, .. } = task.request;
        let fd = files[usize::from(file)];
        // SAFETY: `queue`'s caller promises `length` valid bytes at `buffer` until the completion is reaped, and
        // the completion is reported only afterwards.
        let moved = unsafe {
            match op {
                OpKind::Read => libc::pread(fd, task.buffer.cast(), length as usize, offset as i64),
                OpKind::Write => libc::pwrite(fd, task.buffer.cast(), length as usize, offset as i64),
                OpKind::Trim => trim(fd, &trim_calls[usize::from(file)], &task.request) as isize,
                OpKind::Sync => unreachable!("the worker makes sync calls itself"),
            }
        };
        let result = if moved == -1 && op != OpKind::Trim { negative_errno() } else { moved as i64 };
        shared.lock().done.push_back(Completion { slot: task.slot, result });
        shared.has_done.notify_one();
    }
}

impl PosixaioEngine {
    /// Starts the threads.
    ///
    /// # Errors
    /// If one cannot be started.
    pub fn new(setup: &EngineSetup<'_>) -> Result<Self, EngineError> {
        let depth = setup.depth as usize;
        let shared = Arc::new(Shared {
            state: Mutex::new(TaskQueue {
                waiting: VecDeque::with_capacity(depth),
                done: VecDeque::with_capacity(depth),
                is_closing: false,
            }),
            has_task: Condvar::new(),
            has_done: Condvar::new(),
        });
        let count = setup.depth.min(THREADS_MAX);
        let mut engine = Self {
            shared: Arc::clone(&shared),
            threads: Vec::with_capacity(count as usize),
            files: descriptors(setup.files),
            noted: Vec::with_capacity(depth),
            notes: vec![format!("posixaio: {count} threads call pread and pwrite, on one file at the same time")],
            _open: setup.files.to_vec(),
        };
        for index in 0..count {
            let (shared, files) = (Arc::clone(&shared), engine.files.clone());
            let trim_calls: Vec<TrimCall> = setup.files.iter().map(|file| file.trim_call.clone()).collect();
            let builder = std::thread::Builder::new().name(format!("posixaio-{index}")).stack_size(STACK_BYTES);
            let thread = builder.spawn(move || serve(&shared, &files, &trim_calls));
            engine.threads.push(thread.map_err(|source| EngineError {
                engine: Self::KIND,
                attempted: format!("starting thread {} of {count}", index + 1),
                source,
            })?);
        }
        Ok(engine)
    }
}

impl Engine for PosixaioEngine {
    const KIND: EngineKind = EngineKind::Posixaio;
    const BLOCKS: bool = false;

    unsafe fn queue(&mut self, slot: u32, request: &Request, buffer: *mut u8) {
        self.noted.push(Task { slot, request: *request, buffer });
    }

    fn submit(&mut self) -> Result<(), EngineError> {
        let count = self.noted.len();
        self.shared.lock().waiting.extend(self.noted.drain(..));
        if count == 1 {
            self.shared.has_task.notify_one();
        } else {
            self.shared.has_task.notify_all();
        }
        Ok(())
    }

    fn reap(&mut self, min: usize, timeout_ns: Option<u64>, out: &mut [Completion]) -> Result<usize, EngineError> {
        let until = timeout_ns.map(|ns| Instant::now() + Duration::from_nanos(ns));
        let min = min.min(out.len());
        let mut state = self.shared.lock();
        while state.done.len() < min {
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                break;
            }
            // A signal does not end this wait: the worker's request to stop is looked at often enough.
            let wait = left.unwrap_or(Duration::from_millis(100));
            let waited =
                self.shared.has_done.wait_timeout(state, wait).expect("no thread panics while holding the queue");
            state = waited.0;
            if waited.1.timed_out() && until.is_none() {
                break;
            }
        }
        let count = state.done.len().min(out.len());
        for (out, done) in out.iter_mut().zip(state.done.drain(..count)) {
            *out = done;
        }
        Ok(count)
    }

    fn sync_file(&mut self, file: u16, data_only: bool) -> i64 {
        sync_descriptor(self.files[usize::from(file)], data_only)
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }
}
