//! Aligned memory that JavaScript sees as a `Buffer`, and who is using which part of it.
//!
//! A transfer runs on another thread while JavaScript goes on, and JavaScript may let go of a buffer or
//! transfer its memory to a worker meanwhile. So memory that was allocated here is owned here, shared by
//! the `Buffer` and by every transfer in it; the last to leave frees it. A transfer in memory that
//! somebody else allocated is made in a copy, because nothing keeps that memory in its place.
//!
//! Two transfers may read from one piece of memory (writes to files), but none may fill a piece that
//! another one uses: that is refused. JavaScript itself cannot be kept from looking.
//!
//! Some programs forbid buffers over foreign memory (Electron since version 21, whose V8 has a sandbox);
//! then none is made here, and `aligned.js` finds an aligned place within memory of V8's own.

use crate::failure::Failure;
use napi::bindgen_prelude::{Env, JsValue, Unknown};
use napi::sys;
use napi_derive::napi;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ops::Range;
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use trueio_direct::AlignedBuffer;

/// One allocation.
pub(crate) struct Block {
    /// Never borrowed: only freed. All access goes through `start`.
    _owner: AlignedBuffer,
    start: *mut u8,
    length: usize,
    in_use: Mutex<Vec<(Range<usize>, Access)>>,
}

// SAFETY: the memory is owned by the block alone, and which thread fills which part is kept in `in_use`.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

/// What a transfer does to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// It is written to a file.
    Taken,
    /// It is filled from a file.
    Filled,
}

/// The blocks that JavaScript holds, by the address of their first byte.
static BLOCKS: Mutex<BTreeMap<usize, Arc<Block>>> = Mutex::new(BTreeMap::new());

/// What a panicking thread left is whole: every change is one call.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Block {
    pub(crate) fn new(length: usize, align: usize) -> Result<Arc<Self>, Failure> {
        let mut owner = AlignedBuffer::new(length, align)?;
        let start = owner.as_mut_ptr();
        Ok(Arc::new(Self { _owner: owner, start, length, in_use: Mutex::new(Vec::new()) }))
    }

    /// The part `range`, for a transfer.
    pub(crate) fn claim(self: &Arc<Self>, range: Range<usize>, access: Access) -> Result<Claim, Failure> {
        assert!(range.start <= range.end && range.end <= self.length);
        let mut in_use = locked(&self.in_use);
        let overlaps = |other: &Range<usize>| other.start < range.end && range.start < other.end;
        let conflicts = |(other, theirs): &&(Range<usize>, Access)| {
            overlaps(other) && (access, *theirs) != (Access::Taken, Access::Taken)
        };
        if let Some((other, _)) = in_use.iter().find(conflicts) {
            return Err(Failure::own(
                "ERR_TRUEIO_BUFFER_IN_USE",
                format!(
                    "bytes {} to {} of this memory are in use by a transfer that has not ended",
                    other.start.max(range.start),
                    other.end.min(range.end)
                ),
            ));
        }
        in_use.push((range.clone(), access));
        Ok(Claim { block: Arc::clone(self), range, access })
    }
}

/// A part of a block that a transfer uses; given up on drop.
pub(crate) struct Claim {
    block: Arc<Block>,
    range: Range<usize>,
    access: Access,
}

impl Claim {
    /// The bytes, to be written to a file.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the range lies in the block, whose memory is initialised and lives as long as this
        // claim. No transfer fills it meanwhile. JavaScript may, against the documentation: then
        // the bytes written are any mixture of old and new, as with Node's own `fs.write`.
        unsafe { std::slice::from_raw_parts(self.block.start.add(self.range.start), self.range.len()) }
    }

    /// The bytes, to be filled from a file.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        assert!(self.access == Access::Filled);
        // SAFETY: as above, and no other transfer uses the range at all.
        unsafe { std::slice::from_raw_parts_mut(self.block.start.add(self.range.start), self.range.len()) }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut in_use = locked(&self.block.in_use);
        let own = in_use.iter().position(|(range, access)| *range == self.range && *access == self.access);
        if let Some(index) = own {
            in_use.swap_remove(index);
        }
    }
}

/// Where the bytes of a `Buffer` lie.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) address: *mut u8,
    pub(crate) length: usize,
}

/// Where the bytes of `buffer` lie now. Valid until JavaScript runs again.
pub(crate) fn place_of(env: &Env, buffer: sys::napi_value) -> Result<Place, Failure> {
    let (mut data, mut length, mut is_buffer) = (null_mut(), 0, false);
    // SAFETY: environment and value are alive; N-API checks what the value is.
    let found = unsafe {
        sys::napi_is_buffer(env.raw(), buffer, &mut is_buffer) == sys::Status::napi_ok
            && is_buffer
            && sys::napi_get_buffer_info(env.raw(), buffer, &mut data, &mut length) == sys::Status::napi_ok
    };
    if !found {
        return Err(Failure::own("ERR_INVALID_ARG_TYPE", "a buffer must be a Buffer or a Uint8Array"));
    }
    Ok(Place { address: data.cast(), length })
}

/// The block that `place` lies in, and where in it; [`None`] if the memory is not ours.
pub(crate) fn block_at(place: Place) -> Option<(Arc<Block>, Range<usize>)> {
    let address = place.address.addr();
    let blocks = locked(&BLOCKS);
    let (start, block) = blocks.range(..=address).next_back()?;
    let offset = address - start;
    let end = offset.checked_add(place.length)?;
    (end <= block.length).then(|| (Arc::clone(block), offset..end))
}

/// A zeroed `Buffer` of `size` bytes at a multiple of `alignment`; `null` where this program forbids
/// buffers over foreign memory.
///
/// Throws a failure object if there is no such memory.
#[napi]
pub fn allocate_aligned<'env>(env: &'env Env, size: u32, alignment: u32) -> napi::Result<Option<Unknown<'env>>> {
    let block = match Block::new(size as usize, alignment as usize) {
        Ok(block) => block,
        Err(failure) => return Err(napi::Error::from_reason(failure.message)),
    };
    let (start, length) = (block.start, block.length);
    locked(&BLOCKS).insert(start.addr(), block);
    let mut buffer = null_mut();
    // SAFETY: the memory is `length` bytes long and stays until `let_go` is called, or longer.
    let status = unsafe {
        sys::napi_create_external_buffer(env.raw(), length, start.cast(), Some(let_go), null_mut(), &mut buffer)
    };
    if status == sys::Status::napi_ok {
        // SAFETY: N-API has just made this value.
        return Ok(Some(unsafe { Unknown::from_raw_unchecked(env.raw(), buffer) }));
    }
    locked(&BLOCKS).remove(&start.addr());
    if status == sys::Status::napi_no_external_buffers_allowed {
        return Ok(None);
    }
    Err(napi::Error::from_reason(format!("N-API made no buffer over aligned memory (status {status})")))
}

/// The `Buffer` over the block at `data` is gone.
unsafe extern "C" fn let_go(_env: sys::napi_env, data: *mut c_void, _hint: *mut c_void) {
    // The memory is freed after the lock is.
    let block = locked(&BLOCKS).remove(&data.addr());
    drop(block);
}

/// The address of a buffer's first byte. Exact: addresses lie below 2^53.
#[napi]
pub fn address_of(env: Env, buffer: Unknown) -> napi::Result<f64> {
    match place_of(&env, buffer.raw()) {
        Ok(place) => Ok(place.address.addr() as f64),
        Err(failure) => Err(napi::Error::from_reason(failure.message)),
    }
}
