"""Direct I/O: open a file past the page cache, know what was granted, keep to its alignment.

That `open` accepts `O_DIRECT` proves nothing: tmpfs, btrfs and ext4 with `data=journal` take the flag and use the
page cache. `probe` asks first, `open` says what was granted and who says so, every transfer is checked before
it is made, and nothing less than what was asked for is done in silence.

    from trueio import direct

    with direct.open("data", "x+", policy="prefer") as file, direct.AlignedBuffer(65536) as buffer:
        print(file.granted, file.reason, file.alignment)
        buffer[:6] = b"record"
        file.write_all_at(buffer, 0)
        file.flush("device")

Buffers are any contiguous objects with the buffer protocol; direct I/O wants aligned ones: `AlignedBuffer`, `BufferPool`.
Offsets and lengths are in bytes. Threads run while the system works, and may share files and pools.

Errors are kinds of `OSError` with `errno`. What Python's own functions would raise (`FileNotFoundError`,
`PermissionError`, `TypeError`, `ValueError` for a closed file) is raised here too.

What each call does on each system stands in the documentation of the Rust library, `crates/direct`.
"""

import contextlib
from collections.abc import Iterator

from ._errors import (
    AtomicLimitError,
    BusyError,
    DirectError,
    DirectoryError,
    EndOfFileError,
    LockHeldError,
    MisalignedError,
    NotADeviceError,
    NotAFileError,
    RefusedError,
    SilentlyBufferedError,
    TransferError,
    UnsupportedError,
)
from ._native import (
    AlignedBuffer,
    Alignment,
    AtomicWrite,
    BufferPool,
    DeviceFacts,
    DirectFile,
    Flushed,
    PooledBuffer,
    Probe,
    Residency,
    Transfer,
    check_transfer,
    device_facts,
    evict,
    flush,
    lock_volume,
    open,
    preallocate,
    probe,
    probe_directory,
    read_unaligned_by_copy_at,
    read_uncached_at,
    residency,
    round_down,
    round_up,
    set_nocache,
    sync_directory,
    try_lock,
    try_lock_range,
    unlock,
    unlock_range,
    unlock_volume,
    write_atomic_at,
    write_dsync_at,
    write_unaligned_by_read_modify_write_at,
    write_uncached_at,
)
from ._types import AnyFile, AnyPath, FlushLevel, LockMode

__all__ = [
    "AlignedBuffer",
    "Alignment",
    "AtomicLimitError",
    "AtomicWrite",
    "BufferPool",
    "BusyError",
    "DeviceFacts",
    "DirectError",
    "DirectFile",
    "DirectoryError",
    "EndOfFileError",
    "Flushed",
    "LockHeldError",
    "MisalignedError",
    "NotADeviceError",
    "NotAFileError",
    "PooledBuffer",
    "Probe",
    "RefusedError",
    "Residency",
    "SilentlyBufferedError",
    "Transfer",
    "TransferError",
    "UnsupportedError",
    "check_transfer",
    "device_facts",
    "evict",
    "flush",
    "lock_volume",
    "locked",
    "open",
    "preallocate",
    "probe",
    "probe_directory",
    "read_unaligned_by_copy_at",
    "read_uncached_at",
    "residency",
    "round_down",
    "round_up",
    "set_nocache",
    "sync_directory",
    "try_lock",
    "try_lock_range",
    "unlock",
    "unlock_range",
    "unlock_volume",
    "write_atomic_at",
    "write_dsync_at",
    "write_unaligned_by_read_modify_write_at",
    "write_uncached_at",
]


@contextlib.contextmanager
def locked(file: AnyFile, mode: LockMode = "exclusive") -> Iterator[None]:
    """Holds the lock of `try_lock` for the length of a `with`. Raises LockHeldError at once if it is held."""
    try_lock(file, mode)
    try:
        yield
    finally:
        unlock(file)
