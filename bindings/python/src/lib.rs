//! The native half of the Python package `trueio.direct`.
//!
//! Wraps `trueio-direct`, which makes every decision about alignment, policy and durability. This crate converts
//! arguments of any type and size, or raises an exception, lends buffers without copies, and releases the interpreter
//! lock around every system call.
//!
//! | file         | purpose                                                           |
//! |--------------|-------------------------------------------------------------------|
//! | `argument`   | converts the caller's arguments                                   |
//! | `buffer`     | aligned memory, and its exports through the buffer protocol       |
//! | `call`       | the functions of the module                                       |
//! | `copy`       | copies a file and reports how far it is                           |
//! | `error`      | the exception for each error                                      |
//! | `fact`       | the classes of results                                            |
//! | `file`       | open files and their transfers                                    |
//!
//! Threads: every class is frozen, and mutable state is protected by a lock that is held for a few instructions and
//! never during a call to Python or to the system. So the module declares that it needs no global interpreter lock.
//!
//! Limit: a Python program can change a buffer while a transfer uses it. As with `os.preadv`, such a transfer may contain
//! old and new bytes.

mod argument;
mod buffer;
mod call;
mod copy;
mod descriptor;
mod error;
mod fact;
mod file;

/// Direct I/O past the page cache: the compiled half of `trueio.direct`, which documents it.
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
    use crate::copy::copy_file;
    #[pymodule_export]
    use crate::fact::{Alignment, AtomicWrite, Copied, DeviceFacts, Flushed, Probe, Residency, Transfer};
    #[pymodule_export]
    use crate::file::{DirectFile, from_file, open};
}
