"""The calls of `trueio.direct` that wait, for asyncio: each runs in the event loop's thread pool.

    from trueio import direct
    from trueio.direct import aio

    file = await aio.open("data", policy="prefer")
    buffer = direct.AlignedBuffer(1 << 20)
    transfer = await aio.read_at(file, buffer, 0)
    await aio.close(file)

The pool has a few threads (`loop.set_default_executor` changes it); more calls than that wait for each other.

Cancelling: a call that waits for a thread is never made. One that has begun runs to its end first, because the system
uses the buffer until then; `CancelledError` is raised after that. What it did stays done. Only `copy_file` is stopped.
"""

import asyncio
import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, ParamSpec, SupportsIndex, TypeVar

from . import _native
from ._native import Copied, DirectFile, Flushed, Probe, Transfer
from ._types import AnyFile, AnyPath, FlushLevel, Mode, Policy, SyncMode

if TYPE_CHECKING:
    from typing_extensions import Buffer

__all__ = [
    "close",
    "copy_file",
    "flush",
    "from_file",
    "open",
    "preallocate",
    "probe",
    "probe_directory",
    "read_at",
    "read_exact_at",
    "read_unaligned_by_copy_at",
    "read_vectored_at",
    "size",
    "sync_directory",
    "write_all_at",
    "write_unaligned_by_read_modify_write_at",
    "write_vectored_at",
]

_P = ParamSpec("_P")
_T = TypeVar("_T")


async def _run(function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Runs the call in the pool. Cancelled, it waits until the system has let go of the buffers."""
    return await _run_until(threading.Event(), lambda: function(*args, **kwargs))


async def _run_until(cancelled: threading.Event, function: Callable[[], _T]) -> _T:
    """Runs the call in the pool. Cancelled, it sets `cancelled`, and waits until the call has ended."""

    def call() -> _T:
        if cancelled.is_set():
            raise asyncio.CancelledError
        return function()

    future = asyncio.get_running_loop().run_in_executor(None, call)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        cancelled.set()
        while not future.done():
            try:
                await asyncio.wait([future])
            except asyncio.CancelledError:
                continue
        # Looked at, so that asyncio does not report it as forgotten.
        if not future.cancelled():
            future.exception()
        raise


async def open(
    path: AnyPath,
    mode: Mode = "r",
    *,
    create: bool = False,
    policy: Policy = "require",
    sync: SyncMode = "none",
    exclusive: bool = False,
    permissions: SupportsIndex | None = None,
) -> DirectFile:
    """`trueio.direct.open`."""
    return await _run(
        _native.open,
        path,
        mode,
        create=create,
        policy=policy,
        sync=sync,
        exclusive=exclusive,
        permissions=permissions,
    )


async def from_file(file: AnyFile) -> DirectFile:
    """`trueio.direct.from_file`."""
    return await _run(_native.from_file, file)


async def close(file: DirectFile) -> None:
    """`DirectFile.close`."""
    await _run(file.close)


async def read_at(file: DirectFile, buffer: "Buffer", offset: SupportsIndex) -> Transfer:
    """`DirectFile.read_at`."""
    return await _run(file.read_at, buffer, offset)


async def read_exact_at(file: DirectFile, buffer: "Buffer", offset: SupportsIndex) -> Transfer:
    """`DirectFile.read_exact_at`."""
    return await _run(file.read_exact_at, buffer, offset)


async def write_all_at(file: DirectFile, buffer: "Buffer", offset: SupportsIndex) -> Transfer:
    """`DirectFile.write_all_at`."""
    return await _run(file.write_all_at, buffer, offset)


async def read_vectored_at(file: DirectFile, buffers: "Iterable[Buffer]", offset: SupportsIndex) -> Transfer:
    """`DirectFile.read_vectored_at`."""
    return await _run(file.read_vectored_at, list(buffers), offset)


async def write_vectored_at(file: DirectFile, buffers: "Iterable[Buffer]", offset: SupportsIndex) -> Transfer:
    """`DirectFile.write_vectored_at`."""
    return await _run(file.write_vectored_at, list(buffers), offset)


async def read_unaligned_by_copy_at(file: DirectFile, buffer: "Buffer", offset: SupportsIndex) -> Transfer:
    """`trueio.direct.read_unaligned_by_copy_at`."""
    return await _run(_native.read_unaligned_by_copy_at, file, buffer, offset)


async def write_unaligned_by_read_modify_write_at(
    file: DirectFile, data: "Buffer", offset: SupportsIndex
) -> Transfer:
    """`trueio.direct.write_unaligned_by_read_modify_write_at`."""
    return await _run(_native.write_unaligned_by_read_modify_write_at, file, data, offset)


async def copy_file(
    source: AnyPath,
    destination: AnyPath,
    *,
    overwrite: bool = False,
    policy: Policy = "prefer",
    flush: FlushLevel | None = "device",
    buffer_bytes: SupportsIndex | None = None,
    range: tuple[SupportsIndex, SupportsIndex] | None = None,
    destination_offset: SupportsIndex | None = None,
    keep_holes: bool = True,
    progress: Callable[[int, int], object] | None = None,
) -> Copied:
    """`trueio.direct.copy_file`. Cancelling stops it, unless only the flush at the end is left.

    `progress` is called in the pool's thread: `loop.call_soon_threadsafe` brings its numbers to the event loop.
    """
    cancelled = threading.Event()

    def report(done_bytes: int, total_bytes: int) -> None:
        if cancelled.is_set():
            raise asyncio.CancelledError
        if progress is not None:
            try:
                progress(done_bytes, total_bytes)
            except StopIteration as error:
                # A future cannot hold it.
                raise RuntimeError("progress raised StopIteration") from error

    def copy() -> Copied:
        return _native.copy_file(
            source,
            destination,
            overwrite=overwrite,
            policy=policy,
            flush=flush,
            buffer_bytes=buffer_bytes,
            range=range,
            destination_offset=destination_offset,
            keep_holes=keep_holes,
            progress=report,
        )

    return await _run_until(cancelled, copy)


async def flush(file: AnyFile, level: FlushLevel = "device") -> Flushed:
    """`trueio.direct.flush`."""
    return await _run(_native.flush, file, level)


async def size(file: DirectFile) -> int:
    """`DirectFile.size`."""
    return await _run(file.size)


async def preallocate(file: AnyFile, offset: SupportsIndex, length: SupportsIndex) -> None:
    """`trueio.direct.preallocate`."""
    await _run(_native.preallocate, file, offset, length)


async def probe(path_or_file: AnyPath | AnyFile) -> Probe:
    """`trueio.direct.probe`."""
    return await _run(_native.probe, path_or_file)


async def probe_directory(path: AnyPath) -> Probe:
    """`trueio.direct.probe_directory`."""
    return await _run(_native.probe_directory, path)


async def sync_directory(path: AnyPath) -> None:
    """`trueio.direct.sync_directory`."""
    await _run(_native.sync_directory, path)
