//! The native half of `@trueio/direct-io`: `trueio-direct` through N-API.
//!
//! Only the JavaScript of this package calls it: `index.js` and `promises.js` check the arguments of users, give errors
//! their class, and document everything (`*.d.ts`, `README.md`). napi-rs refuses an argument of a wrong type with an
//! exception.
//!
//! Every call that may wait runs on libuv's thread pool and ends in a call of `done`: see `work.rs`.
//!
//! Limits: native code does not choose the class of an exception, and does not detect that JavaScript reads a buffer
//! while a transfer fills it. The documentation forbids that.
//!
//! Source: <https://nodejs.org/api/n-api.html>.

// Items that `#[napi]` exports are public for N-API and unused in Rust.
#![allow(unreachable_pub)]
// A failure is made once and becomes an exception, so its size does not matter.
#![allow(clippy::result_large_err)]
// In a test build nothing is exported to JavaScript, so most of this is unused.
#![cfg_attr(test, allow(dead_code, unused_imports))]

mod copy;
mod descriptor;
mod drop_in;
mod failure;
mod file;
mod huge_pages;
mod memory;
mod vectored;
mod work;
