//! The native half of the Python package `trueio.direct`.
//!
//! It wraps `trueio-direct` and adds no rule of its own: every decision about alignment, policy and
//! durability is made there. What is made here is the border: arguments of any type and size become
//! what the library takes or an exception, buffers are lent without copies, and the interpreter is
//! released around every call of the system.
//!
//! | file         | question                                                          |
//! |--------------|-------------------------------------------------------------------|
//! | `argument`   | what did the caller pass?                                         |
//! | `buffer`     | who owns aligned memory, and who may see it?                      |
//! | `call`       | the functions of the module                                       |
//! | `error`      | which exception is that?                                          |
//! | `fact`       | what does an answer look like?                                    |
//! | `file`       | what is open?                                                     |
//!
//! Threads: every class is frozen, and what changes stands behind a lock that is held for a few
//! instructions and never while Python is called or the system waits. So the module declares that it
//! needs no global interpreter lock.
//!
//! Cannot do: keep a Python program from changing a buffer while a transfer uses it. As with
//! `os.preadv`, such a transfer moves bytes of one moment or the other.

mod argument;
mod buffer;
mod call;
mod descriptor;
mod error;
mod fact;
mod file;

/// Direct I/O past the page cache: the compiled half of `trueio.direct`, which says what there is.
#[pyo3::pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use crate::buffer::{AlignedBuffer, BufferPool, PooledBuffer};
    #[pymodule_export]
    use crate::call::{
        check_transfer, device_facts, evict, flush, lock_volume, preallocate, probe, probe_directory,
        read_unaligned_by_copy_at, read_uncached_at, residency, round_down, round_up, set_nocache, sync_directory,
        try_lock, try_lock_range, unlock, unlock_range, unlock_volume, write_atomic_at, write_dsync_at,
        write_unaligned_by_read_modify_write_at, write_uncached_at,
    };
    #[pymodule_export]
    use crate::fact::{Alignment, AtomicWrite, DeviceFacts, Flushed, Probe, Residency, Transfer};
    #[pymodule_export]
    use crate::file::{DirectFile, open};
}
