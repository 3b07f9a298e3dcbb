//! Runs a job on libuv's thread pool and calls a JavaScript function when it is done.
//!
//! `done(failure)` or `done(undefined, value)` is called once, on the JavaScript thread, never before
//! the starting call has returned. An exception of `done` becomes an `uncaughtException`, as from any callback of
//! Node. This is N-API's asynchronous work and not a promise, because the drop-in
//! promises that timing; `promises.js` makes promises of it.
//!
//! A job that panics ends in a failure. When the environment is torn down, a job that has begun is
//! waited for, and `done` is not called.
//!
//! Source: <https://nodejs.org/api/n-api.html#simple-asynchronous-operations>.

use crate::failure::Failure;
use napi::bindgen_prelude::{Env, JsValue, ToNapiValue, Unknown};
use napi::{Status, sys};
use napi_derive::napi;
use std::cell::Cell;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::rc::Rc;

/// The state that is passed between the threads. Only one of them has the pointer: `start` passes it to N-API,
/// `execute` borrows it on the pool's thread, and `complete` takes it back.
struct Work<T, J, S> {
    job: Option<J>,
    settle: Option<S>,
    outcome: Option<Result<T, Failure>>,
    done: sys::napi_ref,
    /// A JavaScript value that must outlive the job, and is given to `settle`.
    kept: sys::napi_ref,
    work: sys::napi_async_work,
    cancel: Option<Cancel>,
}

/// Removes a job from the pool's queue, for an `AbortSignal`. Used on the JavaScript thread only.
#[napi]
#[derive(Clone, Default)]
pub struct Cancel {
    /// The work that can be cancelled; null before it is queued and after it has ended.
    work: Rc<Cell<sys::napi_async_work>>,
}

#[napi]
impl Cancel {
    /// Makes one that belongs to no job yet.
    #[napi(constructor)]
    pub fn new() -> Self {
        Self { work: Rc::new(Cell::new(null_mut())) }
    }

    /// Removes the job from the queue: it ends with `ECANCELED`, and nothing was done. Returns `false` if it has begun or
    /// ended.
    #[napi]
    pub fn cancel(&self, env: Env) -> bool {
        let work = self.work.get();
        // SAFETY: the environment is alive, and the work is deleted only after `complete` has set this to null.
        !work.is_null() && unsafe { sys::napi_cancel_async_work(env.raw(), work) } == sys::Status::napi_ok
    }
}

/// Runs `job` on the pool, then `settle` on this thread, and calls `done` with the result.
///
/// `kept` is protected from garbage collection meanwhile, and passed to `settle`.
pub(crate) fn start<T, U, J, S>(env: Env, done: &Unknown, kept: Option<&Unknown>, job: J, settle: S) -> napi::Result<()>
where
    T: Send + 'static,
    U: ToNapiValue,
    J: FnOnce() -> Result<T, Failure> + Send + 'static,
    S: FnOnce(&Env, Option<sys::napi_value>, T) -> Result<U, Failure> + 'static,
{
    start_cancellable(env, done, None, kept, job, settle)
}

/// Like [`start`]; while the job waits for a thread of the pool, `cancel` removes it.
pub(crate) fn start_cancellable<T, U, J, S>(
    env: Env,
    done: &Unknown,
    cancel: Option<&Cancel>,
    kept: Option<&Unknown>,
    job: J,
    settle: S,
) -> napi::Result<()>
where
    T: Send + 'static,
    U: ToNapiValue,
    J: FnOnce() -> Result<T, Failure> + Send + 'static,
    S: FnOnce(&Env, Option<sys::napi_value>, T) -> Result<U, Failure> + 'static,
{
    let raw = env.raw();
    let reference = |value: &Unknown| {
        let mut reference = null_mut();
        // SAFETY: the environment and the value are alive: this is the call that they were handed to.
        check(unsafe { sys::napi_create_reference(raw, value.raw(), 1, &mut reference) })?;
        Ok::<_, napi::Error>(reference)
    };
    let kept = kept.map(reference).transpose()?.unwrap_or(null_mut());
    let work = Box::new(Work::<T, J, S> {
        job: Some(job),
        settle: Some(settle),
        outcome: None,
        done: reference(done)?,
        kept,
        work: null_mut(),
        cancel: cancel.cloned(),
    });
    let work = Box::into_raw(work);
    let mut name = null_mut();
    // SAFETY: the name is a literal of the length given; `work` lives until `complete` frees it; the
    // two functions have the shape that N-API documents. Where nothing was queued, `complete` is never
    // called, and the box is freed here.
    unsafe {
        let text = "trueio-direct";
        let queued = check(sys::napi_create_string_utf8(raw, text.as_ptr().cast(), text.len() as isize, &mut name))
            .and_then(|()| {
                check(sys::napi_create_async_work(
                    raw,
                    null_mut(),
                    name,
                    Some(execute::<T, J, S>),
                    Some(complete::<T, U, J, S>),
                    work.cast(),
                    &raw mut (*work).work,
                ))
            })
            .and_then(|()| check(sys::napi_queue_async_work(raw, (*work).work)));
        match (&queued, &(*work).cancel) {
            (Ok(()), Some(cancel)) => cancel.work.set((*work).work),
            (Ok(()), None) => {}
            (Err(_), _) => release(raw, &Box::from_raw(work)),
        }
        queued
    }
}

pub(crate) fn check(status: sys::napi_status) -> napi::Result<()> {
    match Status::from(status) {
        Status::Ok => Ok(()),
        status => Err(napi::Error::new(status, "N-API refused to start the work".to_owned())),
    }
}

/// Runs the job. Called on the pool's thread.
unsafe extern "C" fn execute<T, J, S>(_env: sys::napi_env, data: *mut c_void)
where
    J: FnOnce() -> Result<T, Failure>,
{
    // SAFETY: `data` is the `Work` of `start`, and between queueing and completion only this thread has it.
    let work = unsafe { &mut *data.cast::<Work<T, J, S>>() };
    if let Some(job) = work.job.take() {
        // A panic must not unwind into libuv.
        let outcome = catch_unwind(AssertUnwindSafe(job));
        work.outcome = Some(
            outcome.unwrap_or_else(|_| Err(Failure::own("ERR_TRUEIO_INTERNAL", "internal error: a job panicked"))),
        );
    }
}

/// Settles the job. Called on the JavaScript thread, within a handle scope that Node has opened.
unsafe extern "C" fn complete<T, U, J, S>(env: sys::napi_env, status: sys::napi_status, data: *mut c_void)
where
    U: ToNapiValue,
    S: FnOnce(&Env, Option<sys::napi_value>, T) -> Result<U, Failure>,
{
    // SAFETY: `data` is the `Work` of `start`; the pool is done with it, and N-API calls this once.
    let mut work = unsafe { Box::from_raw(data.cast::<Work<T, J, S>>()) };
    if let Some(cancel) = &work.cancel {
        cancel.work.set(null_mut());
    }
    let outcome = match work.outcome.take() {
        Some(outcome) if status == sys::Status::napi_ok => outcome,
        _ => Err(Failure::own("ECANCELED", "async work was cancelled")),
    };
    // SAFETY: environment and references are alive; the references are freed below, after their last use.
    let (done, kept) = unsafe { (value_of(env, work.done), value_of(env, work.kept)) };
    let environment = Env::from_raw(env);
    let settle = work.settle.take();
    let outcome = catch_unwind(AssertUnwindSafe(|| match (outcome, settle) {
        (Ok(value), Some(settle)) => settle(&environment, kept, value),
        (Err(failure), _) => Err(failure),
        (Ok(_), None) => Err(Failure::own("ERR_TRUEIO_INTERNAL", "internal error: a job was settled twice")),
    }))
    .unwrap_or_else(|_| Err(Failure::own("ERR_TRUEIO_INTERNAL", "internal error: a settlement panicked")));
    // SAFETY: N-API calls on the JavaScript thread with a live environment, within a handle scope.
    unsafe {
        call_done(env, done, outcome);
        release(env, &work);
    }
}

/// Calls `done` with the value or the failure of a job.
///
/// # Safety
/// On the JavaScript thread with a live environment and function, within a handle scope.
pub(crate) unsafe fn call_done<U: ToNapiValue>(
    env: sys::napi_env,
    done: Option<sys::napi_value>,
    outcome: Result<U, Failure>,
) {
    // SAFETY: the caller's. A value that cannot be converted or called (the environment is being torn down) is ignored; Node handles
    // exceptions of `done`.
    unsafe {
        let mut arguments = [null_mut(); 2];
        let converted = match outcome {
            Ok(value) => {
                sys::napi_get_undefined(env, &mut arguments[0]);
                U::to_napi_value(env, value).map(|value| {
                    arguments[1] = value;
                    2
                })
            }
            Err(failure) => Failure::to_napi_value(env, failure).map(|value| {
                arguments[0] = value;
                1
            }),
        };
        let mut global = null_mut();
        sys::napi_get_global(env, &mut global);
        if let (Some(done), Ok(count)) = (done, converted) {
            sys::napi_call_function(env, global, done, count, arguments.as_ptr(), null_mut());
        }
    }
}

/// Returns the value of a reference; [`None`] if there is none.
unsafe fn value_of(env: sys::napi_env, reference: sys::napi_ref) -> Option<sys::napi_value> {
    let mut value = null_mut();
    // SAFETY: the caller's: environment and reference are alive, if the reference is not null.
    let found = !reference.is_null()
        && unsafe { sys::napi_get_reference_value(env, reference, &mut value) } == sys::Status::napi_ok;
    (found && !value.is_null()).then_some(value)
}

/// Frees the objects of N-API.
unsafe fn release<T, J, S>(env: sys::napi_env, work: &Work<T, J, S>) {
    // SAFETY: the caller's: each of these was made by N-API for this environment and is freed once.
    unsafe {
        for reference in [work.done, work.kept] {
            if !reference.is_null() {
                sys::napi_delete_reference(env, reference);
            }
        }
        if !work.work.is_null() {
            sys::napi_delete_async_work(env, work.work);
        }
    }
}
