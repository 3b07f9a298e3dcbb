//! Transfers between one range of a file and several buffers.

use crate::failure::Failure;
use crate::file::{Moved, NativeFile, TransferFacts, claim, copy_back, failed, moved_bytes};
use crate::memory::{Access, Claim};
use crate::work::{self, Cancel};
use napi::bindgen_prelude::{Array, Env, JsValue, Unknown};
use napi::sys;
use napi_derive::napi;
use std::io::{IoSlice, IoSliceMut};
use std::ptr::null_mut;
use trueio_direct::Transfer;

/// The memory for each buffer, and whether it is a copy.
type Claims = Vec<(Claim, bool)>;

#[napi]
impl NativeFile {
    /// Reads into `buffers`, one after another, up to the end of the file, or writes all of them. The array must not change
    /// until the transfer has ended: `promises.js` passes a private one.
    #[napi]
    pub fn transfer_vectored(
        &self,
        env: Env,
        is_write: bool,
        buffers: Array,
        offset: f64,
        done: Unknown,
        cancel: Option<&Cancel>,
    ) -> napi::Result<Option<Failure>> {
        let file = self.open_file()?;
        // What the check in JavaScript lets through: 0 to 2^53 - 1.
        let offset = offset as u64;
        let access = if is_write { Access::Taken } else { Access::Filled };
        let mut claims = Claims::new();
        let mut position = offset;
        for index in 0..buffers.len() {
            let buffer = element(&env, buffers.raw(), index)?;
            match claim(&env, &file, access, true, buffer, position) {
                Ok((memory, is_copied)) => {
                    position += memory.bytes().len() as u64;
                    claims.push((memory, is_copied));
                }
                Err(failure) => return Ok(Some(failure)),
            }
        }
        let job = move || {
            let transfer = if is_write {
                let mut parts: Vec<IoSlice> = claims.iter().map(|(memory, _)| IoSlice::new(memory.bytes())).collect();
                file.write_vectored_at(&mut parts, offset)
            } else {
                let mut parts: Vec<IoSliceMut> =
                    claims.iter_mut().map(|(memory, _)| IoSliceMut::new(memory.bytes_mut())).collect();
                file.read_vectored_at(&mut parts, offset)
            };
            let is_copied = claims.iter().any(|(_, is_copied)| *is_copied);
            let facts =
                |transfer: Transfer| TransferFacts { bytes: transfer.bytes as f64, calls: transfer.calls, is_copied };
            Ok((transfer.map(facts).map_err(|error| failed(&file, error)), claims))
        };
        let settle = move |env: &Env, kept: Option<sys::napi_value>, (moved, claims): (Moved, Claims)| {
            let mut left = if is_write { 0 } else { moved_bytes(&moved) };
            for (index, (memory, is_copied)) in claims.iter().enumerate() {
                let length = left.min(memory.bytes().len());
                if *is_copied && length > 0 {
                    let buffer = element(env, kept.unwrap_or(null_mut()), index as u32);
                    let gone = |_| Failure::own("ERR_TRUEIO_INTERNAL", "internal error: a buffer is missing");
                    copy_back(env, Some(buffer.map_err(gone)?), memory, length)?;
                }
                left -= length;
            }
            moved
        };
        work::start_cancellable(env, &done, cancel, Some(&buffers.to_unknown()), job, settle)?;
        Ok(None)
    }
}

/// Returns the element of `array` with this index.
fn element(env: &Env, array: sys::napi_value, index: u32) -> napi::Result<sys::napi_value> {
    let mut value = null_mut();
    // SAFETY: environment and array are alive; N-API checks what the value is.
    match unsafe { sys::napi_get_element(env.raw(), array, index, &mut value) } {
        sys::Status::napi_ok => Ok(value),
        status => Err(napi::Error::new(status.into(), "the array of buffers cannot be read".to_owned())),
    }
}
