//! Aligned memory that JavaScript sees as a `Buffer`, and the parts of it that transfers use.
//!
//! A transfer runs on another thread while JavaScript continues, and JavaScript may drop a buffer or transfer its memory
//! to a worker meanwhile. So memory that was allocated here is owned here, shared by the `Buffer` and by every transfer
//! in it; the last owner frees it. A transfer in other memory uses a copy, because that memory may be moved or freed.
//!
//! Two transfers may read from the same memory (writes to files). A transfer that would fill memory in use is refused.
//! JavaScript itself can still access the memory.
//!
//! Some programs forbid buffers over foreign memory (Electron since version 21, whose V8 has a sandbox). Then none is
//! made here, and `aligned.js` uses an aligned part of memory that V8 allocated.

use crate::failure::Failure;
use crate::huge_pages::{self, HugePages};
use napi::bindgen_prelude::{Env, JsValue, Unknown};
use napi::sys;
use napi_derive::napi;
use std::collections::BTreeMap;
use std::ffi::c_void;
use std::ops::Range;
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use trueio_direct::AlignedBuffer;

/// One allocation.
pub(crate) struct Block {
    /// Never borrowed: only freed. All access goes through `start`.
    _owner: AlignedBuffer,
    start: *mut u8,
    length: usize,
    in_use: Mutex<InUse>,
}

// SAFETY: only the block owns the memory, and `in_use` records which thread fills which part.
unsafe impl Send for Block {}
// SAFETY: as above.
unsafe impl Sync for Block {}

/// The access of a transfer to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// The memory is written to a file.
    Taken,
    /// The memory is filled from a file.
    Filled,
}

/// The parts of a block that transfers use.
#[derive(Default)]
struct InUse {
    /// End and access, by start and a number that makes the key unique: several transfers may read one part.
    parts: BTreeMap<(usize, u64), (usize, Access)>,
    next: u64,
    /// Length of the longest part that was ever in use: a part that contains an address begins at most that far before
    /// it.
    longest: usize,
}

impl InUse {
    /// Returns the bytes of `range` that a transfer with `access` must not use now.
    fn conflict(&self, range: &Range<usize>, access: Access) -> Option<Range<usize>> {
        let first = range.start.saturating_sub(self.longest);
        let near = self.parts.range((first, 0)..(range.end, 0));
        near.map(|((start, _), (end, theirs))| (*start..*end, *theirs))
            .find(|(other, theirs)| other.end > range.start && (access, *theirs) != (Access::Taken, Access::Taken))
            .map(|(other, _)| other.start.max(range.start)..other.end.min(range.end))
    }

    fn insert(&mut self, range: &Range<usize>, access: Access) -> (usize, u64) {
        let key = (range.start, self.next);
        self.next += 1;
        self.longest = self.longest.max(range.len());
        self.parts.insert(key, (range.end, access));
        key
    }
}

/// A block with `Buffer`s in JavaScript.
struct Shared {
    block: Arc<Block>,
    /// Its `Buffer`s that are not collected yet; one more as long as the next one is cut from it.
    users: usize,
}

/// All blocks with `Buffer`s, and where the next one that shares a block comes from.
struct Memory {
    /// By the address of the first byte.
    blocks: BTreeMap<usize, Shared>,
    /// By class: the block from which buffers are cut, by its address, and the address of its first unused byte.
    cuts: [Option<(usize, usize)>; CLASSES.len()],
    huge_pages: HugePages,
}

static MEMORY: Mutex<Memory> =
    Mutex::new(Memory { blocks: BTreeMap::new(), cuts: [None; CLASSES.len()], huge_pages: HugePages::new() });

/// Buffers that share blocks.
struct Class {
    /// Their lengths, in bytes.
    lengths: std::ops::RangeInclusive<usize>,
    /// Length of a block, in bytes. It is freed when the last of its buffers is collected: one that lives long keeps this much.
    block_bytes: usize,
}

const CLASSES: [Class; 2] = [
    // From 128 KiB on memory is fresh and need not be cleared. An allocation for each took a tenth more CPU time than upstream's:
    // glibc cuts aligned memory out of a larger piece, and clears it.
    Class { lengths: 1..=16 << 10, block_bytes: 128 << 10 },
    // A block is a huge page where the system has them. The kernel hands a buffer in one to the device in one piece: a transfer of 1 MiB
    // takes half of the CPU time.
    Class { lengths: 256 << 10..=1 << 20, block_bytes: HUGE_PAGE_BYTES },
];
/// The huge page of x86-64, and of aarch64 with pages of 4 KiB.
const HUGE_PAGE_BYTES: usize = 2 << 20;
/// Largest alignment of a buffer that shares a block, in bytes.
const SHARED_ALIGN_MAX: usize = 4096;

impl Memory {
    /// Allocates zeroed memory for a buffer and returns its address. Of a block that buffers share, each byte is used only once.
    fn allocate(&mut self, length: usize, align: usize) -> Result<*mut u8, Failure> {
        let is_shared = align <= SHARED_ALIGN_MAX && align.is_power_of_two();
        let Some(class) = CLASSES.iter().position(|class| is_shared && class.lengths.contains(&length)) else {
            return Ok(self.add(Block::new(length, align)?));
        };
        if let Some(address) = self.cut(class, length, align) {
            return Ok(address);
        }
        let block_bytes = CLASSES[class].block_bytes;
        let block = Block::new(block_bytes, SHARED_ALIGN_MAX)?;
        if block_bytes >= HUGE_PAGE_BYTES {
            self.occupy(&block);
        }
        let start = self.add(block).addr();
        if let Some((full, _)) = self.cuts[class].replace((start, start)) {
            drop(self.let_go(full));
        }
        let address = self.cut(class, length, align);
        Ok(address.expect("a new block has room for a buffer of its class"))
    }

    /// Takes a huge page for a new block, or small ones while huge pages are slow.
    fn occupy(&mut self, block: &Block) {
        if !self.huge_pages.are_due() {
            return huge_pages::decline(block.start, block.length);
        }
        let begin = Instant::now();
        // SAFETY: the block is longer than a byte, and nothing else knows its address.
        unsafe { block.start.write_volatile(0) };
        self.huge_pages.came_after(begin.elapsed());
    }

    fn add(&mut self, block: Arc<Block>) -> *mut u8 {
        let start = block.start;
        self.blocks.insert(start.addr(), Shared { block, users: 1 });
        start
    }

    /// Cuts a buffer from the block of a class; `None` if that has no room.
    fn cut(&mut self, class: usize, length: usize, align: usize) -> Option<*mut u8> {
        let (start, free) = self.cuts[class]?;
        let shared = self.blocks.get_mut(&start)?;
        let begin = free.next_multiple_of(align);
        let end = begin + length;
        if end > start + shared.block.length {
            return None;
        }
        shared.users += 1;
        self.cuts[class] = Some((start, end));
        // SAFETY: the offset is within the block, checked above.
        Some(unsafe { shared.block.start.add(begin - start) })
    }

    /// Counts a user of the block that contains `address` less; returns the block if that was the last one.
    fn let_go(&mut self, address: usize) -> Option<Arc<Block>> {
        let (&start, shared) = self.blocks.range_mut(..=address).next_back()?;
        shared.users -= 1;
        if shared.users > 0 {
            return None;
        }
        self.blocks.remove(&start).map(|shared| shared.block)
    }
}

/// Ignores poisoning: every change is one call, so a panic leaves a consistent state.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Block {
    pub(crate) fn new(length: usize, align: usize) -> Result<Arc<Self>, Failure> {
        let mut owner = AlignedBuffer::new(length, align)?;
        let start = owner.as_mut_ptr();
        Ok(Arc::new(Self { _owner: owner, start, length, in_use: Mutex::default() }))
    }

    /// Claims the part `range` for a transfer.
    pub(crate) fn claim(self: &Arc<Self>, range: Range<usize>, access: Access) -> Result<Claim, Failure> {
        assert!(range.start <= range.end && range.end <= self.length);
        let mut in_use = locked(&self.in_use);
        // A part of no bytes conflicts with none.
        if let Some(both) = in_use.conflict(&range, access).filter(|_| !range.is_empty()) {
            return Err(Failure::own(
                "ERR_TRUEIO_BUFFER_IN_USE",
                format!(
                    "bytes {} to {} of this memory are in use by a transfer that has not ended",
                    both.start, both.end
                ),
            ));
        }
        let key = in_use.insert(&range, access);
        Ok(Claim { block: Arc::clone(self), range, access, key })
    }
}

/// A part of a block that a transfer uses; released on drop.
pub(crate) struct Claim {
    block: Arc<Block>,
    range: Range<usize>,
    access: Access,
    key: (usize, u64),
}

impl Claim {
    /// Returns the bytes, to be written to a file.
    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the range lies in the block, whose memory is initialised and lives as long as this
        // claim. No transfer fills it meanwhile. JavaScript may, against the documentation: then
        // the bytes written are any mixture of old and new, as with Node's own `fs.write`.
        unsafe { std::slice::from_raw_parts(self.block.start.add(self.range.start), self.range.len()) }
    }

    /// Returns the bytes, to be filled from a file.
    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        assert!(self.access == Access::Filled);
        // SAFETY: as above, and no other transfer uses the range at all.
        unsafe { std::slice::from_raw_parts_mut(self.block.start.add(self.range.start), self.range.len()) }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        locked(&self.block.in_use).parts.remove(&self.key);
    }
}

/// The memory of a `Buffer`: address and length of its bytes.
#[derive(Clone, Copy)]
pub(crate) struct MemoryRange {
    pub(crate) address: *mut u8,
    pub(crate) length: usize,
}

/// Returns the memory of `buffer`. It is valid until JavaScript runs again.
pub(crate) fn range_of(env: &Env, buffer: sys::napi_value) -> Result<MemoryRange, Failure> {
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
    Ok(MemoryRange { address: data.cast(), length })
}

/// Returns the block that contains `memory`, and the range within it; [`None`] if the memory was not allocated here.
pub(crate) fn block_at(memory: MemoryRange) -> Option<(Arc<Block>, Range<usize>)> {
    let address = memory.address.addr();
    let all = locked(&MEMORY);
    let (start, Shared { block, .. }) = all.blocks.range(..=address).next_back()?;
    let offset = address - start;
    let end = offset.checked_add(memory.length)?;
    (end <= block.length).then(|| (Arc::clone(block), offset..end))
}

/// Allocates a zeroed `Buffer` of `size` bytes at a multiple of `alignment`; returns `null` if this program forbids
/// buffers over foreign memory.
///
/// Throws a failure object if the allocation fails.
#[napi]
pub fn allocate_aligned<'env>(env: &'env Env, size: u32, alignment: u32) -> napi::Result<Option<Unknown<'env>>> {
    let length = size as usize;
    let start = match locked(&MEMORY).allocate(length, alignment as usize) {
        Ok(start) => start,
        Err(failure) => return Err(napi::Error::from_reason(failure.message)),
    };
    let mut buffer = null_mut();
    let kept = kept_with(length, alignment as usize);
    let hint = std::ptr::without_provenance_mut(kept);
    // SAFETY: the memory is `length` bytes long and stays until `let_go` is called, or longer.
    let status =
        unsafe { sys::napi_create_external_buffer(env.raw(), length, start.cast(), Some(let_go), hint, &mut buffer) };
    if status == sys::Status::napi_ok {
        report(env.raw(), kept as i64);
        // SAFETY: N-API has just made this value.
        return Ok(Some(unsafe { Unknown::from_raw_unchecked(env.raw(), buffer) }));
    }
    drop(locked(&MEMORY).let_go(start.addr()));
    if status == sys::Status::napi_no_external_buffers_allowed {
        return Ok(None);
    }
    Err(napi::Error::from_reason(format!("N-API made no buffer over aligned memory (status {status})")))
}

/// Returns the bytes that a buffer may keep in memory after its own are collected: a block of huge pages is freed with the last of its buffers.
/// The collector counts the buffer itself. With this on top, the peak of a program that drops its buffers is at most that of one allocation
/// for each (`cargo xtask bench node`).
fn kept_with(length: usize, align: usize) -> usize {
    let [_, huge] = &CLASSES;
    match align <= SHARED_ALIGN_MAX && huge.lengths.contains(&length) {
        true if length > huge.block_bytes / 4 => length,
        true => length / 2,
        false => 0,
    }
}

/// Adds `bytes` to the memory outside of V8's heap that lets the collector run; a negative number takes them away.
fn report(env: sys::napi_env, bytes: i64) {
    let mut total = 0;
    if bytes != 0 {
        // SAFETY: the environment is alive: this is called from one of its calls. A failure makes the collector run later.
        unsafe { sys::napi_adjust_external_memory(env, bytes, &mut total) };
    }
}

/// Called when the `Buffer` whose first byte is at `data` is collected; `hint` is what was reported with it.
unsafe extern "C" fn let_go(env: sys::napi_env, data: *mut c_void, hint: *mut c_void) {
    report(env, -(hint.addr() as i64));
    // The memory is freed after the lock is; a transfer that still uses it frees it at its end.
    let block = locked(&MEMORY).let_go(data.addr());
    drop(block);
}

/// Returns the address of a buffer's first byte. Exact: addresses are below 2^53.
#[napi]
pub fn address_of(env: Env, buffer: Unknown) -> napi::Result<f64> {
    match range_of(&env, buffer.raw()) {
        Ok(memory) => Ok(memory.address.addr() as f64),
        Err(failure) => Err(napi::Error::from_reason(failure.message)),
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;
    use std::time::Duration;

    /// The flags of the mapping of `address`; empty if there is none.
    fn flags(address: usize) -> String {
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let contains = |line: &&str| {
            let range = line.split(' ').next().and_then(|range| range.split_once('-'));
            let number = |text: &str| usize::from_str_radix(text, 16).ok();
            range.is_some_and(|(start, end)| {
                number(start).is_some_and(|start| start <= address) && number(end).is_some_and(|end| address < end)
            })
        };
        let mut lines = maps.lines().skip_while(|line| !contains(line));
        lines.find_map(|line| line.strip_prefix("VmFlags:")).unwrap_or_default().to_owned()
    }

    #[test]
    fn buffers_of_a_pause_share_blocks_of_small_pages_that_are_unmapped() {
        let mut memory = Memory { blocks: BTreeMap::new(), cuts: [None; CLASSES.len()], huge_pages: HugePages::new() };
        memory.huge_pages.came_after(Duration::from_secs(1));
        let buffers = [(); 2].map(|()| memory.allocate(1 << 20, 4096).unwrap().addr());
        assert_eq!(buffers[1], buffers[0] + (1 << 20), "one block");
        let (&start, shared) = memory.blocks.first_key_value().unwrap();
        assert_eq!((start, shared.block.length), (buffers[0], HUGE_PAGE_BYTES));
        assert!(flags(start).contains(" nh"), "{}", flags(start));
        // The next buffer begins a block; so the first one has no user but its buffers.
        memory.allocate(1 << 20, 4096).unwrap();
        buffers.into_iter().for_each(|address| drop(memory.let_go(address)));
        assert_eq!(flags(start), "", "still mapped");
    }
}
