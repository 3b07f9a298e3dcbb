"""Direct I/O: open a file past the page cache, know what was granted, keep to its alignment.

That `open` accepts `O_DIRECT` proves nothing: tmpfs, btrfs and ext4 with `data=journal` accept the flag and use the
page cache. `probe` reports the support in advance, `open` reports what was granted and from which source that is known,
every transfer is checked before it is made, and nothing falls back silently to less than requested.

    from trueio import direct

    with direct.open("data", "x+", policy="prefer") as file, direct.AlignedBuffer(65536) as buffer:
        print(file.granted, file.reason, file.alignment)
        buffer[:6] = b"record"
        file.write_all_at(buffer, 0)
        file.flush("device")

Buffers are any contiguous objects with the buffer protocol; direct I/O requires aligned ones: `AlignedBuffer`, `BufferPool`.
Offsets and lengths are in bytes. Other threads run during system calls, and may share files and pools.

Errors are subclasses of `OSError` with `errno`. Errors for which Python has an exception (`FileNotFoundError`,
`PermissionError`, `TypeError`, `ValueError` for a closed file) raise that one.

The documentation of the Rust library, `crates/direct`, describes what each call does on each system.
"""

import contextlib
from collections.abc import Iterator

from ._errors import (
    AtomicLimitError,
    BusyError,
    CopyError,
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
    Copied,
    DeviceFacts,
    DirectFile,
    Flushed,
    PooledBuffer,
    Probe,
    Residency,
    Transfer,
    check_transfer,
    copy_file,
    device_facts,
    evict,
    flush,
    from_file,
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
from ._raw import DirectRawIO
from ._types import AnyFile, AnyPath, FlushLevel, LockMode

__all__ = [
    "AlignedBuffer",
    "Alignment",
    "AtomicLimitError",
    "AtomicWrite",
    "BufferPool",
    "BusyError",
    "Copied",
    "CopyError",
    "DeviceFacts",
    "DirectError",
    "DirectFile",
    "DirectRawIO",
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
    "copy_file",
    "device_facts",
    "evict",
    "flush",
    "from_file",
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
