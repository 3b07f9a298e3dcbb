"""Copies past the page cache: holes, ranges, refusals, and how they are stopped."""

import asyncio
import errno
import os
import pathlib
import signal
import threading
from typing import Any

import pytest
from conftest import lack, loop_device
from trueio import direct
from trueio.direct import aio

PIECE = 1 << 20


def contents(length: int) -> bytes:
    return (bytes(range(251)) * (length // 251 + 1))[:length]


def sparse(path: pathlib.Path) -> bytes:
    """A file of 8 MiB, whose second and last MiB are data."""
    with path.open("wb") as file:
        for piece in (1, 7):
            file.seek(piece * PIECE)
            file.write(contents(PIECE))
        file.flush()
        os.fsync(file.fileno())
        if os.lseek(file.fileno(), 0, os.SEEK_DATA) != PIECE:
            lack("holes", "the filesystem reports none")
    return path.read_bytes()


@pytest.mark.parametrize("policy", ["prefer", "off"])
def test_holes_stay_holes_unless_they_are_to_be_written(folder: pathlib.Path, policy: Any) -> None:
    source, copy, filled = folder / "source", folder / "copy", folder / "filled"
    data = sparse(source)
    copied = direct.copy_file(source, copy, policy=policy)
    assert (copied.data_bytes, copied.hole_bytes) == (2 * PIECE, 6 * PIECE)
    assert copied.flushed is not None and copied.flushed.level == "device"
    assert copy.read_bytes() == data
    assert copy.stat().st_blocks * 512 < 4 * PIECE
    copied = direct.copy_file(source, filled, policy=policy, keep_holes=False, flush=None)
    assert (copied.data_bytes, copied.hole_bytes, copied.flushed) == (8 * PIECE, 0, None)
    assert filled.read_bytes() == data
    assert filled.stat().st_blocks * 512 >= 8 * PIECE


@pytest.mark.parametrize("length", [1, 511, 4096, 4097, 100_003])
@pytest.mark.parametrize("buffer_bytes", [1, 8192, None])
def test_a_copy_has_the_bytes_of_its_source_whatever_its_tail(
    folder: pathlib.Path, length: int, buffer_bytes: int | None
) -> None:
    source, copy = folder / "source", folder / "copy"
    source.write_bytes(contents(length))
    source.chmod(0o640)
    copied = direct.copy_file(str(source), os.fsencode(copy), buffer_bytes=buffer_bytes, flush="data")
    assert copied.data_bytes + copied.hole_bytes == length
    assert copy.read_bytes() == contents(length)
    assert copy.stat().st_mode & 0o777 == 0o640
    start, end = length // 3, length
    copied = direct.copy_file(source, copy, range=(start, end), destination_offset=length, overwrite=True)
    assert copy.read_bytes() == contents(length) + contents(length)[start:]


def test_what_was_granted_is_reported_for_both_sides(direct_folder: pathlib.Path) -> None:
    source, copy = direct_folder / "source", direct_folder / "copy"
    source.write_bytes(contents(8192))
    copied = direct.copy_file(source, copy, policy="require")
    assert (copied.source, copied.destination) == ("direct", "direct")
    assert direct.copy_file(source, copy, policy="off", overwrite=True).destination == "buffered"
    assert repr(copied).startswith("Copied(data_bytes=8192, hole_bytes=0, source='direct', ")


def test_a_refused_copy_changes_nothing_and_has_its_number(folder: pathlib.Path) -> None:
    source, kept, new = folder / "source", folder / "kept", folder / "new"
    source.write_bytes(contents(5000))
    kept.write_bytes(b"kept")
    with pytest.raises(FileExistsError) as exists:
        direct.copy_file(source, kept)
    assert (exists.value.errno, exists.value.filename) == (errno.EEXIST, str(kept))
    os.link(source, folder / "link")
    for same in (source, folder / "link"):
        with pytest.raises(direct.CopyError, match="is the source itself") as one:
            direct.copy_file(source, same, overwrite=True)
        assert (one.value.errno, one.value.filename, one.value.filename2) == (errno.EINVAL, str(source), str(same))
    with pytest.raises(direct.CopyError, match="5001 bytes needed, 5000 available") as short:
        direct.copy_file(source, new, range=(0, 5001))
    assert (short.value.errno, short.value.done) == (errno.EINVAL, 0)
    with pytest.raises(FileNotFoundError) as missing:
        direct.copy_file(folder / "missing", new)
    assert missing.value.filename == str(folder / "missing")
    with pytest.raises(direct.DirectoryError):
        direct.copy_file(folder, new)
    with pytest.raises(MemoryError):
        direct.copy_file(source, new, buffer_bytes=1 << 62)
    assert kept.read_bytes() == b"kept" and source.read_bytes() == contents(5000)
    assert sorted(os.listdir(folder)) == ["kept", "link", "source"]


@pytest.mark.parametrize(
    ("options", "kind", "words"),
    [
        ({"policy": "direct"}, ValueError, "policy must be 'require' or 'prefer' or 'off'"),
        ({"flush": "all"}, ValueError, "level must be"),
        ({"range": (3, 1)}, ValueError, r"must not end before it starts, and is \(3, 1\)"),
        ({"range": (-1, 1)}, ValueError, "start must not be negative"),
        ({"range": [0, 1]}, TypeError, "range must be a tuple"),
        ({"range": (0, 1, 2)}, TypeError, "range must be a tuple"),
        ({"range": (0, 1 << 64)}, OverflowError, "end does not fit"),
        ({"destination_offset": -1}, ValueError, "destination_offset must not be negative"),
        ({"buffer_bytes": 4096.0}, TypeError, "buffer_bytes must be an integer"),
        ({"progress": 3}, TypeError, "progress must be callable or None, not int"),
    ],
)
def test_wrong_options_are_refused_before_anything_is_made(
    folder: pathlib.Path, options: dict[str, Any], kind: type[Exception], words: str
) -> None:
    (folder / "source").write_bytes(b"x")
    with pytest.raises(kind, match=words):
        direct.copy_file(folder / "source", folder / "copy", **options)
    assert os.listdir(folder) == ["source"]


def test_the_number_of_the_system_is_kept(folder: pathlib.Path) -> None:
    """A full filesystem, and a disk that is too small."""
    source = folder / "source"
    source.write_bytes(contents(3 << 20))
    with loop_device(folder, 1 << 20, 512) as device:
        with pytest.raises(direct.CopyError, match="the destination is too small") as small:
            direct.copy_file(source, device, overwrite=True)
        assert small.value.errno == errno.EINVAL
    with pytest.raises(OSError) as full:
        direct.copy_file(source, "/dev/full", overwrite=True)
    assert isinstance(full.value, direct.NotAFileError)
    limited = folder / "limited"
    pid = os.fork()
    if pid == 0:
        # A limit of the process, which is not the tests' own.
        import resource

        code = 1
        try:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
            direct.copy_file(source, limited, buffer_bytes=1 << 18)
        except direct.CopyError as error:
            expected = (errno.EFBIG, 1 << 20, str(source), str(limited))
            code = 0 if (error.errno, error.done, error.filename, error.filename2) == expected else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert not limited.exists()


class Stop(Exception):
    pass


@pytest.mark.parametrize("raised", [Stop(), KeyboardInterrupt(), StopIteration()])
def test_an_exception_of_progress_stops_the_copy_and_removes_what_it_made(
    folder: pathlib.Path, raised: BaseException
) -> None:
    source, copy = folder / "source", folder / "copy"
    source.write_bytes(contents(100_000))
    reports: list[tuple[int, int]] = []

    def progress(done_bytes: int, total_bytes: int) -> None:
        reports.append((done_bytes, total_bytes))
        assert copy.exists()
        raise raised

    with pytest.raises(type(raised)) as caught:
        direct.copy_file(source, copy, buffer_bytes=8192, progress=progress)
    assert caught.value is raised
    assert reports == [(8192, 100_000)]
    assert not copy.exists()
    copy.write_bytes(b"old")
    with pytest.raises(type(raised)):
        direct.copy_file(source, copy, overwrite=True, buffer_bytes=8192, progress=progress)
    assert copy.exists(), "what existed before is not removed"


def test_progress_rises_to_the_total_in_the_thread_of_the_caller(folder: pathlib.Path) -> None:
    source = folder / "source"
    source.write_bytes(contents(1 << 18))
    reports: list[tuple[int, int]] = []
    threads = set()

    def progress(done_bytes: int, total_bytes: int) -> None:
        reports.append((done_bytes, total_bytes))
        threads.add(threading.get_ident())

    direct.copy_file(source, folder / "copy", buffer_bytes=1, progress=progress)
    done = [done for done, _ in reports]
    assert done == sorted(set(done)) and done[0] < 1 << 18 and reports[-1] == (1 << 18, 1 << 18)
    assert {total for _, total in reports} == {1 << 18}
    assert threads == {threading.get_ident()}


def test_a_signal_stops_a_copy_that_nobody_watches(folder: pathlib.Path) -> None:
    """A handler raises. SIGINT itself may be ignored, as in a job that a shell started in the background."""
    source, copy = folder / "source", folder / "copy"
    with source.open("wb") as file:
        # More than is copied until the signal comes, in blocks of one sector, and a bounded loss if it does not.
        file.truncate(1 << 32)

    def stop(*_: object) -> None:
        raise Stop

    def interrupt() -> None:
        while not (copy.exists() and copy.stat().st_size > 0):
            threading.Event().wait(0.001)
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGUSR1)

    previous = signal.signal(signal.SIGUSR1, stop)
    thread = threading.Thread(target=interrupt)
    try:
        thread.start()
        with pytest.raises(Stop):
            direct.copy_file(source, copy, keep_holes=False, buffer_bytes=1)
        thread.join()
    finally:
        signal.signal(signal.SIGUSR1, previous)
    assert not copy.exists()


def test_a_cancelled_copy_of_asyncio_is_stopped(folder: pathlib.Path) -> None:
    source, copy = folder / "source", folder / "copy"
    source.write_bytes(contents(100_000))
    begun, go_on = threading.Event(), threading.Event()

    def progress(done_bytes: int, total_bytes: int) -> None:
        assert done_bytes < total_bytes, "cancelled, it is not told of the end"
        begun.set()
        go_on.wait(60)

    async def use() -> None:
        task = asyncio.create_task(aio.copy_file(source, copy, buffer_bytes=4096, progress=progress))
        while not begun.is_set():
            await asyncio.sleep(0.001)
        task.cancel()
        await asyncio.sleep(0)
        assert not task.done(), "it ends with the copy"
        go_on.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(use())
    assert not copy.exists()


def test_a_copy_of_asyncio_reports_and_raises_as_the_other(folder: pathlib.Path) -> None:
    source, copy = folder / "source", folder / "copy"
    source.write_bytes(contents(10_000))
    reports: list[tuple[int, int]] = []

    def stop(_done_bytes: int, _total_bytes: int) -> None:
        raise StopIteration

    async def use() -> None:
        copied = await aio.copy_file(source, copy, range=(1, 9_999), progress=lambda *report: reports.append(report))
        assert copied.data_bytes == 9_998
        with pytest.raises(FileExistsError):
            await aio.copy_file(source, copy)
        with pytest.raises(RuntimeError, match="StopIteration"):
            await aio.copy_file(source, folder / "other", progress=stop)

    asyncio.run(use())
    assert reports[-1] == (9_998, 9_998)
    assert copy.read_bytes() == contents(10_000)[1:9_999]
    assert not (folder / "other").exists()
