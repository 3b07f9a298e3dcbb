"""The exceptions of `trueio.direct`.

All are subclasses of `OSError`. `errno` is the system's own number; if no system call was made, or it returned none, it is
the number that each class names. `strerror` is a sentence: what was attempted, why it failed and, if a number was wrong,
which is required. `filename` is set if a path was given.

The compiled half makes them by `_make`.
"""

import errno
import os
from typing import Any, Literal


class DirectError(OSError):
    """Any error of `trueio.direct` that Python has no class for."""


class NotAFileError(DirectError):
    """A pipe, a socket, a terminal, /dev/null: nothing that holds data at offsets. `kind` is its kind.

    errno: ESPIPE for pipes and sockets, ENOTBLK for devices that are no disks.
    """

    kind: str


class DirectoryError(NotAFileError, IsADirectoryError):
    """A directory was given where a file or a disk is needed; errno is EISDIR."""


class RefusedError(DirectError):
    """Under policy "require": the system refuses direct I/O. errno: the system's, or EINVAL."""


class SilentlyBufferedError(DirectError):
    """Under policy "require": direct I/O would be accepted, and the page cache used. errno: ENOTSUP."""


class BusyError(DirectError):
    """With `exclusive`: it is mounted, or another program has it locked or open. errno: the system's."""


class MisalignedError(DirectError, ValueError):
    """A transfer that direct I/O on this file does not allow, found before the call; nothing was transferred.

    `part` is the first of "address", "length" and "offset" that is wrong, `value` its value, `needed_bytes` the required
    alignment, `needed_by` the source of the requirement, `write` whether it is a write. errno: EINVAL.
    """

    part: Literal["address", "length", "offset"]
    value: int
    needed_bytes: int
    needed_by: str
    write: bool


class TransferError(DirectError):
    """A transfer was not completed: `done` of `wanted` bytes from `offset` on. errno: the system's.

    If the system returned no error: EIO if it took no byte, EINVAL if a short direct transfer cannot go on from
    where it stopped.
    """

    offset: int
    wanted: int
    done: int


class EndOfFileError(TransferError, EOFError):
    """The file ends within the requested range; `done` bytes were read into the buffer. errno: ENODATA."""


class CopyError(DirectError):
    """A copy was not completed; `done` bytes were copied or skipped as holes. errno: the system's.

    EINVAL if source and destination are the same file or disk, the range ends beyond the source, or the destination is
    a disk that is too small. `filename` is the source, `filename2` the destination.
    """

    done: int


class AtomicLimitError(DirectError, ValueError):
    """An atomic write that the limits forbid: nothing was written. errno: EINVAL."""


class LockHeldError(DirectError, BlockingIOError):
    """Another lock conflicts. errno: the system's (EAGAIN, EACCES)."""


class NotADeviceError(DirectError):
    """This is not a disk; `kind` is its kind. errno: ENOTBLK."""

    kind: str


class UnsupportedError(DirectError):
    """This system or filesystem has no call that keeps the promise; nothing else was done instead.

    errno: ENOTSUP or the system's.
    """


_CLASSES: dict[str, type[OSError]] = {
    kind.__name__: kind
    for kind in (
        # Python selects subclasses such as FileNotFoundError by the number.
        OSError,
        NotAFileError,
        DirectoryError,
        RefusedError,
        SilentlyBufferedError,
        BusyError,
        MisalignedError,
        TransferError,
        EndOfFileError,
        CopyError,
        AtomicLimitError,
        LockHeldError,
        NotADeviceError,
        UnsupportedError,
    )
}


def _make(
    kind: str,
    system: int | None,
    named: str | None,
    message: str,
    path: str | None,
    attributes: dict[str, Any],
) -> OSError:
    """The exception of class `kind`: with the system's number, or the one called `named` in `errno`."""
    # ENODATA is not everywhere (FreeBSD), nor ENOTBLK (Windows).
    number = system if system is not None else getattr(errno, named or "EIO", errno.EIO)
    if system is not None and os.name == "nt":
        # A number of Windows; Python finds the errno that belongs to it.
        error = _CLASSES[kind](0, message, path, system)
    elif path is not None:
        error = _CLASSES[kind](number, message, path)
    else:
        error = _CLASSES[kind](number, message)
    for name, value in attributes.items():
        setattr(error, name, value)
    return error
