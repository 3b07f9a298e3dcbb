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
from collections.abc import Callable, Coroutine, Generator, Iterable
from contextvars import Context
from functools import partial
from typing import Any, Generic, ParamSpec, SupportsIndex, TypeVar

from . import _native
from ._native import Copied, DirectFile, Flushed, Probe, Transfer
from ._types import AnyBuffer, AnyFile, AnyPath, FlushLevel, Mode, Policy, SyncMode

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
    "truncate",
    "write_all_at",
    "write_unaligned_by_read_modify_write_at",
    "write_vectored_at",
]

_P = ParamSpec("_P")
_T = TypeVar("_T")


class _Call(Generic[_T]):
    """A call in the pool, to be awaited once, by a task. Cancelling the task does not end the wait: see above.

    It is a future-like object (`asyncio.isfuture`): the task waits for the future of `run_in_executor`, and `cancel` is
    refused, so the task raises `CancelledError` when the call has ended. `asyncio.shield` does the same with a second future
    and one more pass of the event loop.
    """

    __slots__ = ("_asyncio_future_blocking", "_function", "_future", "is_cancelled")

    def __init__(self, function: Callable[[], _T]) -> None:
        self._asyncio_future_blocking = False
        self._function = function
        self.is_cancelled = False

    def _run(self) -> _T:
        if self.is_cancelled:
            raise asyncio.CancelledError
        return self._function()

    def __await__(self) -> Generator[Any, Any, _T]:
        self._future = asyncio.get_running_loop().run_in_executor(None, self._run)
        self._asyncio_future_blocking = True
        yield self
        return self._future.result()

    def get_loop(self) -> asyncio.AbstractEventLoop:
        return self._future.get_loop()

    def add_done_callback(self, callback: Callable[[Any], object], *, context: Context | None = None) -> None:
        self._future.add_done_callback(callback, context=context)

    def cancel(self, msg: object = None) -> bool:
        """Returns false: the task is cancelled when the call has ended."""
        self.is_cancelled = True
        return False


async def _run(function: Callable[_P, _T], *args: _P.args, **kwargs: _P.kwargs) -> _T:
    """Runs the call in the pool."""
    return await _Call(partial(function, *args, **kwargs))


class _Opening(Coroutine[Any, Any, DirectFile]):
    """A coroutine of a file that `async with` waits for, too, and closes at the end."""

    __slots__ = ("_coroutine", "_file")

    def __init__(self, coroutine: Coroutine[Any, Any, DirectFile]) -> None:
        self._coroutine = coroutine

    def send(self, value: Any, /) -> Any:
        return self._coroutine.send(value)

    def throw(self, *error: Any) -> Any:
        return self._coroutine.throw(*error)

    def close(self) -> None:
        self._coroutine.close()

    def __await__(self) -> Generator[Any, Any, DirectFile]:
        return self._coroutine.__await__()

    async def __aenter__(self) -> DirectFile:
        self._file = await self._coroutine
        return self._file

    async def __aexit__(self, *error: object) -> None:
        await close(self._file)


async def _entered(file: DirectFile) -> DirectFile:
    """Enters `async with` on an open file."""
    return file.__enter__()


def open(
    path: AnyPath,
    mode: Mode = "r",
    *,
    create: bool = False,
    policy: Policy = "require",
    sync: SyncMode = "none",
    exclusive: bool = False,
    permissions: SupportsIndex | None = None,
) -> _Opening:
    """`trueio.direct.open`: `await` it, or use it in `async with`, which closes the file."""
    opened = _run(
        _native.open,
        path,
        mode,
        create=create,
        policy=policy,
        sync=sync,
        exclusive=exclusive,
        permissions=permissions,
    )
    return _Opening(opened)


def from_file(file: AnyFile) -> _Opening:
    """`trueio.direct.from_file`: `await` it, or use it in `async with`, which closes the file."""
    return _Opening(_run(_native.from_file, file))


async def close(file: DirectFile) -> None:
    """`DirectFile.close`."""
    await _run(file.close)


async def read_at(file: DirectFile, buffer: AnyBuffer, offset: SupportsIndex) -> Transfer:
    """`DirectFile.read_at`."""
    return await _Call(partial(file.read_at, buffer, offset))


async def read_exact_at(file: DirectFile, buffer: AnyBuffer, offset: SupportsIndex) -> Transfer:
    """`DirectFile.read_exact_at`."""
    return await _Call(partial(file.read_exact_at, buffer, offset))


async def write_all_at(file: DirectFile, buffer: AnyBuffer, offset: SupportsIndex) -> Transfer:
    """`DirectFile.write_all_at`."""
    return await _Call(partial(file.write_all_at, buffer, offset))


async def read_vectored_at(file: DirectFile, buffers: Iterable[AnyBuffer], offset: SupportsIndex) -> Transfer:
    """`DirectFile.read_vectored_at`."""
    return await _Call(partial(file.read_vectored_at, list(buffers), offset))


async def write_vectored_at(file: DirectFile, buffers: Iterable[AnyBuffer], offset: SupportsIndex) -> Transfer:
    """`DirectFile.write_vectored_at`."""
    return await _Call(partial(file.write_vectored_at, list(buffers), offset))


async def read_unaligned_by_copy_at(file: DirectFile, buffer: AnyBuffer, offset: SupportsIndex) -> Transfer:
    """`trueio.direct.read_unaligned_by_copy_at`."""
    return await _Call(partial(_native.read_unaligned_by_copy_at, file, buffer, offset))


async def write_unaligned_by_read_modify_write_at(
    file: DirectFile, data: AnyBuffer, offset: SupportsIndex
) -> Transfer:
    """`trueio.direct.write_unaligned_by_read_modify_write_at`."""
    return await _Call(partial(_native.write_unaligned_by_read_modify_write_at, file, data, offset))


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

    def report(done_bytes: int, total_bytes: int) -> None:
        if call.is_cancelled:
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

    call = _Call(copy)
    return await call


async def flush(file: AnyFile, level: FlushLevel = "device") -> Flushed:
    """`trueio.direct.flush`."""
    return await _run(_native.flush, file, level)


async def size(file: DirectFile) -> int:
    """`DirectFile.size`."""
    return await _run(file.size)


async def truncate(file: DirectFile, length: SupportsIndex) -> None:
    """`DirectFile.truncate`."""
    await _run(file.truncate, length)


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
