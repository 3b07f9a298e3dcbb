//! Copies of files: off the JavaScript thread, with reports to it.
//!
//! Each copy has a thread of its own, because one may take minutes, in which a thread of libuv's pool would be missing for all other
//! calls of the program; `promises.js` bounds their number. The thread calls a JavaScript function through a thread-safe
//! function of N-API: after the first block, then at most ten times a second, and when all bytes are copied. It waits for the
//! answer to the last report only, so that a stop is still possible then and a busy JavaScript thread does not slow the copy down.
//!
//! When the environment is torn down, a cleanup hook stops the copy and waits for its thread: its code may be unloaded next. At the exit of
//! the process `promises.js` stops it first.
//!
//! Source: <https://nodejs.org/api/n-api.html#asynchronous-thread-safe-function-calls>.

use crate::failure::Failure;
use crate::file::{FlushFacts, flush_level, granted_word, policy_of};
use crate::work;
use napi::bindgen_prelude::{Env, JsValue, Unknown};
use napi::{Status, sys};
use napi_derive::napi;
use std::ffi::c_void;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use trueio_direct::{CopyOptions, CopyProgress};

/// The shortest time between two reports, but for the last.
const INTERVAL: Duration = Duration::from_millis(100);

/// Options for copying a file. JavaScript has checked them.
#[napi(object)]
pub struct CopyRequest {
    /// Writes a destination that exists.
    pub overwrite: bool,
    /// `require`, `prefer` or `off`.
    pub policy: String,
    /// The level of the flush; absent: no flush.
    pub flush: Option<String>,
    /// The size of a block; absent: the default.
    pub buffer_bytes: Option<f64>,
    /// Start and end of the source's part; absent: all of it.
    pub range: Option<Vec<f64>>,
    /// Where the copy begins.
    pub destination_offset: Option<f64>,
    /// Skips holes.
    pub keep_holes: bool,
}

/// A completed copy.
#[napi(object)]
pub struct CopiedFacts {
    /// Bytes that were read and written.
    pub data_bytes: f64,
    /// Of these, bytes that were in the page cache, and were read from there.
    pub cached_bytes: f64,
    /// Bytes of holes that were not read.
    pub hole_bytes: f64,
    /// How the source was read.
    pub source: String,
    /// How the destination was written.
    pub destination: String,
    /// The result of the flush; absent without one.
    pub flushed: Option<FlushFacts>,
}

/// What is known of a copy on both threads.
#[derive(Default)]
struct State {
    is_stopped: bool,
    /// A report that JavaScript has not answered.
    pending: Option<(u64, u64)>,
}

#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    answered: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stop(&self) {
        self.lock().is_stopped = true;
        self.answered.notify_all();
    }

    /// Waits until JavaScript has answered or the copy is stopped.
    fn settled<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let is_open = |state: &mut State| state.pending.is_some() && !state.is_stopped;
        self.answered.wait_while(state, is_open).unwrap_or_else(PoisonError::into_inner)
    }
}

/// Stops a copy that has begun.
#[napi]
#[derive(Default)]
pub struct CopyStop {
    shared: Arc<Shared>,
}

#[napi]
impl CopyStop {
    /// Makes one for one copy.
    #[napi(constructor)]
    pub fn new() -> Self {
        Self::default()
    }

    /// Stops the copy after the block that is being copied: it ends with `ECANCELED`. Too late for one that is being flushed.
    #[napi]
    pub fn stop(&self) {
        self.shared.stop();
    }
}

/// The copying thread's end of the reports: releases the thread-safe function when it is dropped.
struct Reports {
    function: sys::napi_threadsafe_function,
    shared: Arc<Shared>,
    /// When the last report was made.
    last: Option<Instant>,
}

// SAFETY: a thread-safe function may be called and released on any thread; the rest is `Send`.
unsafe impl Send for Reports {}

impl Drop for Reports {
    fn drop(&mut self) {
        if !self.function.is_null() {
            let mode = sys::ThreadsafeFunctionReleaseMode::release;
            // SAFETY: `new` acquired it once, and this releases it once.
            unsafe { sys::napi_release_threadsafe_function(self.function, mode) };
        }
    }
}

impl Reports {
    fn new(env: Env, report: &Unknown, shared: Arc<Shared>) -> napi::Result<Self> {
        let raw = env.raw();
        let (mut name, mut function, text) = (null_mut(), null_mut(), "trueio-direct copy");
        let context = Arc::into_raw(Arc::clone(&shared)).cast_mut().cast::<c_void>();
        // SAFETY: environment and function are alive: this is the call that they were handed to. The name is a literal
        // of the length given. `free` takes back the context, or the lines below if there is no function.
        let made = unsafe {
            work::check(sys::napi_create_string_utf8(raw, text.as_ptr().cast(), text.len() as isize, &mut name))
                .and_then(|()| {
                    work::check(sys::napi_create_threadsafe_function(
                        raw,
                        report.raw(),
                        null_mut(),
                        name,
                        0,
                        1,
                        context,
                        Some(free),
                        context,
                        Some(call),
                        &mut function,
                    ))
                })
        };
        if let Err(error) = made {
            // SAFETY: from `into_raw` above, and no other owner exists.
            drop(unsafe { Arc::from_raw(context.cast::<Shared>()) });
            return Err(error);
        }
        Ok(Self { function, shared, last: None })
    }

    /// Reports, if it is time. Waits for the answer to the last report.
    fn report(&mut self, progress: CopyProgress) -> ControlFlow<()> {
        let CopyProgress { done_bytes, total_bytes, .. } = progress;
        let is_last = done_bytes == total_bytes;
        let mut state = self.shared.lock();
        if is_last {
            state = self.shared.settled(state);
        }
        if state.is_stopped {
            return ControlFlow::Break(());
        }
        let is_early = state.pending.is_some() || self.last.is_some_and(|last| last.elapsed() < INTERVAL);
        if is_early && !is_last {
            return ControlFlow::Continue(());
        }
        state.pending = Some((done_bytes, total_bytes));
        drop(state);
        self.last = Some(Instant::now());
        // SAFETY: the function is alive until `drop`.
        let called = unsafe {
            let mode = sys::ThreadsafeFunctionCallMode::nonblocking;
            sys::napi_call_threadsafe_function(self.function, null_mut(), mode)
        };
        if Status::from(called) != Status::Ok {
            // The environment is being torn down; an answer of "closing" has released the function.
            if Status::from(called) == Status::Closing {
                self.function = null_mut();
            }
            return ControlFlow::Break(());
        }
        if is_last && self.shared.settled(self.shared.lock()).is_stopped {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

/// Frees the context of a thread-safe function.
unsafe extern "C" fn free(_env: sys::napi_env, context: *mut c_void, _hint: *mut c_void) {
    // SAFETY: from `into_raw` in `new`; N-API calls this once, after the last report.
    drop(unsafe { Arc::from_raw(context.cast::<Shared>()) });
}

/// Calls JavaScript with the pending report, and keeps its answer. Called on the JavaScript thread.
unsafe extern "C" fn call(env: sys::napi_env, function: sys::napi_value, context: *mut c_void, _data: *mut c_void) {
    // SAFETY: `free` has not been called.
    let shared = unsafe { &*context.cast::<Shared>() };
    let pending = shared.lock().pending;
    // SAFETY: with an environment, N-API has opened a handle scope and the function is alive.
    let goes_on = pending.is_some_and(|report| unsafe { ask(env, function, report) });
    let mut state = shared.lock();
    state.pending = None;
    state.is_stopped |= !goes_on;
    drop(state);
    shared.answered.notify_all();
}

/// Whether JavaScript answers `true`; not if it cannot be called any more.
unsafe fn ask(env: sys::napi_env, function: sys::napi_value, (done, total): (u64, u64)) -> bool {
    if env.is_null() || function.is_null() {
        return false;
    }
    let (mut arguments, mut receiver, mut answer, mut goes_on) = ([null_mut(); 2], null_mut(), null_mut(), false);
    // SAFETY: the caller's: environment and function are alive.
    let statuses = unsafe {
        [
            sys::napi_create_double(env, done as f64, &mut arguments[0]),
            sys::napi_create_double(env, total as f64, &mut arguments[1]),
            sys::napi_get_undefined(env, &mut receiver),
            sys::napi_call_function(env, receiver, function, 2, arguments.as_ptr(), &mut answer),
        ]
    };
    statuses.iter().all(|status| *status == sys::Status::napi_ok)
        // SAFETY: as above; the call has returned a value.
        && unsafe { sys::napi_get_value_bool(env, answer, &mut goes_on) } == sys::Status::napi_ok
        && goes_on
}

/// A thread that copies. Freed on the JavaScript thread by [`finish`], or by [`stop_and_join`] at the end of the environment.
struct Running {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

impl Running {
    /// Waits for the thread, which has nothing to do but to end.
    fn join(self) {
        if let Some(thread) = self.thread {
            // A panic is caught in the thread.
            let _ = thread.join();
        }
    }
}

type Outcome = Result<CopiedFacts, Failure>;

/// The copying thread's end of `done`.
struct Done(sys::napi_threadsafe_function);

// SAFETY: a thread-safe function may be called and released on any thread.
unsafe impl Send for Done {}

impl Done {
    fn call(self, outcome: Outcome) {
        let data = Box::into_raw(Box::new(outcome)).cast::<c_void>();
        // SAFETY: `start` acquired the function once for this thread, which releases it once; on success `finish` takes the outcome, exactly once.
        unsafe {
            let mode = sys::ThreadsafeFunctionCallMode::nonblocking;
            let called = sys::napi_call_threadsafe_function(self.0, data, mode);
            if called != sys::Status::napi_ok {
                drop(Box::from_raw(data.cast::<Outcome>()));
            }
            // An answer of "closing" has released it.
            if Status::from(called) != Status::Closing {
                sys::napi_release_threadsafe_function(self.0, sys::ThreadsafeFunctionReleaseMode::release);
            }
        }
    }
}

/// Gives JavaScript the outcome of a copy. Called on the JavaScript thread; without an environment if that ends.
unsafe extern "C" fn finish(env: sys::napi_env, done: sys::napi_value, context: *mut c_void, data: *mut c_void) {
    // SAFETY: from `into_raw` in `Done::call`, and N-API calls this once for it.
    let outcome = unsafe { Box::from_raw(data.cast::<Outcome>()) };
    if env.is_null() {
        // `stop_and_join` has freed the context.
        return;
    }
    // SAFETY: the environment is alive, so its hooks have not run: the context is alive, and belongs to this call once the hook is removed.
    unsafe {
        sys::napi_remove_env_cleanup_hook(env, Some(stop_and_join), context);
        Box::from_raw(context.cast::<Running>()).join();
        work::call_done(env, Some(done), *outcome);
    }
}

/// Stops the copy and waits for its thread, when the environment ends.
unsafe extern "C" fn stop_and_join(context: *mut c_void) {
    // SAFETY: `finish` removes this hook before it frees the context.
    let running = unsafe { Box::from_raw(context.cast::<Running>()) };
    running.shared.stop();
    running.join();
}

/// Runs `job` on a thread of its own, and calls `done` with the result.
fn start(
    env: Env,
    done: &Unknown,
    shared: Arc<Shared>,
    job: impl FnOnce() -> Outcome + Send + 'static,
) -> napi::Result<Option<Failure>> {
    let raw = env.raw();
    let context = Box::into_raw(Box::new(Running { shared, thread: None }));
    let (mut name, mut function, text) = (null_mut(), null_mut(), "trueio-direct copy");
    // SAFETY: environment and function are alive: this is the call that they were handed to. The name is a literal of the length given.
    // The context lives until `finish` or `stop_and_join` frees it, or the lines below if there is no thread.
    let made = unsafe {
        work::check(sys::napi_create_string_utf8(raw, text.as_ptr().cast(), text.len() as isize, &mut name)).and_then(
            |()| {
                work::check(sys::napi_create_threadsafe_function(
                    raw,
                    done.raw(),
                    null_mut(),
                    name,
                    0,
                    1,
                    null_mut(),
                    None,
                    context.cast(),
                    Some(finish),
                    &mut function,
                ))
            },
        )
    };
    if let Err(error) = made {
        // SAFETY: from `into_raw` above, and no other owner exists.
        drop(unsafe { Box::from_raw(context) });
        return Err(error);
    }
    let end = Done(function);
    let thread = std::thread::Builder::new().name("trueio-copy".into()).spawn(move || {
        let outcome = catch_unwind(AssertUnwindSafe(job));
        end.call(
            outcome.unwrap_or_else(|_| Err(Failure::own("ERR_TRUEIO_INTERNAL", "internal error: a copy panicked"))),
        );
    });
    match thread {
        Ok(thread) => {
            // SAFETY: only this thread has the context: `finish` runs on it after this call, as the hook does.
            unsafe {
                (*context).thread = Some(thread);
                work::check(sys::napi_add_env_cleanup_hook(raw, Some(stop_and_join), context.cast()))?;
            }
            Ok(None)
        }
        Err(error) => {
            // SAFETY: no thread has the function or the context.
            unsafe {
                sys::napi_release_threadsafe_function(function, sys::ThreadsafeFunctionReleaseMode::release);
                drop(Box::from_raw(context));
            }
            Ok(Some(Failure::of_io("starting a thread for the copy", &error, "copyfile")))
        }
    }
}

/// Copies a file. `report` is called with the bytes that are done and their total, and answers whether the copy goes on.
#[napi]
#[allow(clippy::too_many_arguments, reason = "JavaScript's half of this package is the only caller")]
pub fn copy_file(
    env: Env,
    source: String,
    destination: String,
    request: CopyRequest,
    report: Unknown,
    stop: &CopyStop,
    done: Unknown,
) -> napi::Result<Option<Failure>> {
    let mut options = CopyOptions::new()
        .overwrite(request.overwrite)
        .policy(policy_of(&request.policy)?)
        .flush(request.flush.as_deref().map(flush_level).transpose()?)
        .keep_holes(request.keep_holes);
    if let Some(bytes) = request.buffer_bytes {
        options = options.buffer_bytes(bytes as usize);
    }
    if let Some([start, end]) = request.range.as_deref() {
        options = options.range(*start as u64..*end as u64);
    }
    if let Some(offset) = request.destination_offset {
        options = options.destination_offset(offset as u64);
    }
    let mut reports = Reports::new(env, &report, Arc::clone(&stop.shared))?;
    let job = move || {
        let copied = trueio_direct::copy_file(source, destination, &options, |progress| reports.report(progress))?;
        Ok(CopiedFacts {
            data_bytes: copied.data_bytes as f64,
            cached_bytes: copied.cached_bytes as f64,
            hole_bytes: copied.hole_bytes as f64,
            source: granted_word(copied.source).into(),
            destination: granted_word(copied.destination).into(),
            flushed: copied.flushed.map(FlushFacts::from),
        })
    };
    start(env, &done, Arc::clone(&stop.shared), job)
}
