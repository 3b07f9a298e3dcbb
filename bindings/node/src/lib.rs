//! The native half of `@trueio/direct-io`: `trueio-direct` through N-API.
//!
//! It is called by the JavaScript beside it and by nobody else: `index.js` and `promises.js` check what
//! users pass, give errors their class, and document everything (`*.d.ts`, `README.md`). What arrives
//! here with a wrong type all the same is refused by napi-rs with an exception, never taken.
//!
//! Every call that may wait runs on libuv's thread pool and ends in a call of `done`: see `work.rs`.
//!
//! Cannot do: hand a JavaScript exception's class to native code, or know whether JavaScript looks into
//! a buffer while a transfer is filling it. The documentation tells users not to.
//!
//! Source: <https://nodejs.org/api/n-api.html>.

// What `#[napi]` exports is public for N-API and for nobody in Rust.
#![allow(unreachable_pub)]
// A failure is made once and ends in an exception; its size costs nothing that anybody would notice.
#![allow(clippy::result_large_err)]

mod drop_in;
mod failure;
mod file;
mod memory;
mod work;
