"""Opening, probing, flushing, locking: the reported results are true."""

import errno
import fcntl
import gc
import io
import os
import pathlib
import stat
import subprocess
import sys
import warnings
from collections.abc import Callable

import pytest
from conftest import evict, loop_device
from trueio import direct

MIB = 1 << 20


def test_probe_returns_the_same_for_a_path_a_file_and_a_descriptor(folder: pathlib.Path) -> None:
    path = folder / "data"
    path.write_bytes(b"x")
    by_path = direct.probe(path)
    assert by_path.support in ("direct", "silently-buffered", "refused", "unknown")
    assert by_path.reason
    with path.open("rb") as file:
        for other in (str(path), os.fsencode(path), file, file.fileno()):
            assert direct.probe(other) == by_path
    with direct.open(path, policy="off") as mine:
        assert direct.probe(mine) == by_path


def test_a_folder_is_probed_before_a_file_exists(folder: pathlib.Path) -> None:
    before = direct.probe_directory(folder)
    assert os.listdir(folder) == []
    (folder / "data").write_bytes(b"x")
    assert direct.probe(folder / "data") == before


def test_require_is_granted_where_the_kernel_enforces_alignment(direct_folder: pathlib.Path) -> None:
    """Goal: "direct" is no mere word. Method: the descriptor has O_DIRECT, and the kernel itself refuses what
    alignment forbids, asked through os.pwrite past our check."""
    with direct.open(direct_folder / "data", "x+") as file:
        assert file.granted == "direct"
        assert file.mode == "x+"
        assert fcntl.fcntl(file.fileno(), fcntl.F_GETFL) & os.O_DIRECT
        unit = file.alignment.write_offset_bytes
        assert unit is not None
        with direct.AlignedBuffer(4 * unit) as buffer:
            file.write_all_at(buffer, 0)
            with pytest.raises(OSError) as caught:
                os.pwrite(file.fileno(), buffer[:unit], 1)
            assert caught.value.errno == errno.EINVAL
        assert direct.residency(file).cached_pages == 0


@pytest.mark.skipif(not os.path.isdir("/dev/shm"), reason="no /dev/shm")
def test_tmpfs_is_refused_under_require_and_named_under_prefer() -> None:
    path = pathlib.Path("/dev/shm") / f"trueio-python-{os.getpid()}"
    try:
        with pytest.raises(direct.SilentlyBufferedError, match="tmpfs") as caught:
            direct.open(path, "x+")
        assert caught.value.errno == errno.ENOTSUP
        assert caught.value.filename == str(path)
        assert not path.exists(), "a file that could not be opened was left behind"
        with direct.open(path, "x+", policy="prefer") as file:
            assert file.granted == "buffered"
            assert "tmpfs" in file.reason
            assert file.alignment.memory_bytes == 1
            file.write_all_at(b"unaligned", 3)
        assert direct.probe(path).support == "silently-buffered"
    finally:
        path.unlink(missing_ok=True)


def test_an_existing_file_is_shortened_by_w_only(folder: pathlib.Path) -> None:
    path = folder / "data"
    path.write_bytes(b"precious")
    with pytest.raises(FileExistsError):
        direct.open(path, "x", policy="off")
    direct.open(path, "r+", policy="off").close()
    direct.open(path, "r+", policy="off", create=True).close()
    assert path.read_bytes() == b"precious"
    direct.open(path, "w", policy="off").close()
    assert path.read_bytes() == b""


def test_modes_are_what_the_descriptor_has(folder: pathlib.Path) -> None:
    for number, (mode, flags) in enumerate(
        [("x", os.O_WRONLY), ("x+", os.O_RDWR), ("r", os.O_RDONLY), ("r+", os.O_RDWR)]
    ):
        path = folder / f"data{number}"
        if mode.startswith("r"):
            path.write_bytes(b"x")
        with direct.open(path, mode, policy="off") as file:  # type: ignore[arg-type]
            assert fcntl.fcntl(file.fileno(), fcntl.F_GETFL) & os.O_ACCMODE == flags


@pytest.mark.parametrize("mode", ["r", "r+", "w", "w+", "x", "x+"])
def test_a_mode_with_b_is_that_of_open(folder: pathlib.Path, mode: str) -> None:
    """Each spelling that Python's `open` takes, next to `open` itself: the access mode, and what remains of the file."""
    for spelling in {mode, mode + "b", mode.replace("+", "b+")} if "+" in mode else {mode, mode + "b"}:
        found = []
        for opener in (open, direct.open):
            path = folder / f"{opener.__module__}-{spelling}"
            if "x" not in mode:
                path.write_bytes(b"precious")
            options = {"policy": "off"} if opener is direct.open else {"buffering": 0}
            with opener(path, spelling if "b" in spelling or opener is direct.open else spelling + "b", **options) as file:  # type: ignore[arg-type]
                access = fcntl.fcntl(file.fileno(), fcntl.F_GETFL) & os.O_ACCMODE
                if opener is direct.open:
                    assert file.mode == mode
            found.append((access, path.read_bytes()))
        assert found[0] == found[1], spelling
    if "w" in mode:
        with direct.open(folder / "new", mode, policy="prefer") as file:  # type: ignore[arg-type]
            assert file.size() == 0
        assert (folder / "new").exists()


def test_a_file_that_is_not_opened_is_not_emptied(folder: pathlib.Path) -> None:
    path = folder / "data"
    path.write_bytes(b"precious")
    with direct.open(path, "r+", policy="prefer", exclusive=True), pytest.raises(direct.BusyError):
        direct.open(path, "wb", policy="prefer", exclusive=True)
    assert path.read_bytes() == b"precious"


def test_the_length_of_a_file_is_set(folder: pathlib.Path) -> None:
    path = folder / "data"
    with direct.open(path, "x+", policy="prefer") as file:
        file.write_all_at(direct.AlignedBuffer(8192), 0)
        for length in (5000, 3, 10_000, 0):
            file.truncate(length)
            assert file.size() == path.stat().st_size == length
        for wrong, kind in ((-1, ValueError), (2**64, OverflowError), (2**63, OSError), ("1", TypeError)):
            with pytest.raises(kind):
                file.truncate(wrong)  # type: ignore[arg-type]
    with direct.open(path, policy="prefer") as file, pytest.raises(OSError) as caught:
        file.truncate(0)
    assert caught.value.errno == errno.EBADF
    with direct.DirectRawIO(direct.open(path, "r+", policy="prefer")) as stream:
        stream.write(b"123456")
        stream.seek(4)
        assert (stream.truncate(), stream.tell()) == (4, 4)
        assert (stream.truncate(5000), stream.tell()) == (5000, 4)
        with pytest.raises(ValueError):
            stream.truncate(-1)
    assert path.read_bytes() == b"1234" + bytes(4996)
    with (
        direct.DirectRawIO(direct.open(path, policy="prefer")) as stream,
        pytest.raises(io.UnsupportedOperation),
    ):
        stream.truncate(0)


def test_a_disk_has_no_length_to_set(folder: pathlib.Path) -> None:
    with loop_device(folder, 1 << 20, 512) as device:
        with direct.open(device, "r+", policy="prefer") as file:
            file.write_all_at(direct.AlignedBuffer(512), 0)
            with pytest.raises(OSError, match="length of a disk") as caught:
                file.truncate(0)
            assert caught.value.errno == errno.EINVAL
        with direct.open(device, "wb", policy="prefer") as file:
            assert file.size() == 1 << 20


def unclosed(call: Callable[[], object]) -> list[str]:
    """The ResourceWarnings of a call whose result is forgotten."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
        gc.collect()
    return [str(warning.message) for warning in caught if warning.category is ResourceWarning]


def test_an_unclosed_file_is_a_resource_warning(folder: pathlib.Path) -> None:
    path = folder / "data"
    path.write_bytes(b"x")
    shown = f"unclosed file <DirectFile {path!r} mode='r' granted='buffered'>"

    def file() -> direct.DirectFile:
        return direct.open(path, policy="off")

    assert unclosed(file) == [shown]
    assert unclosed(lambda: direct.DirectRawIO(file())) == [shown]
    assert unclosed(lambda: io.BufferedReader(direct.DirectRawIO(file()))) == [shown]
    assert unclosed(lambda: file().close()) == []
    assert unclosed(lambda: direct.DirectRawIO(file()).close()) == []
    assert unclosed(lambda: io.BufferedReader(direct.DirectRawIO(file())).close()) == []
    with file() as outer:
        assert unclosed(lambda: direct.DirectRawIO(outer, close_file=False)) == []
        assert len(unclosed(lambda: direct.from_file(outer))) == 1


def test_an_unclosed_file_is_closed_where_warnings_are_errors(folder: pathlib.Path) -> None:
    """The warning cannot be raised from a finalizer: it is printed, and an exception on its way is kept."""
    script = """
import os, sys
from trueio import direct
before = len(os.listdir("/proc/self/fd"))
def fail():
    file = direct.open(sys.argv[1], policy="off")
    raise KeyError("kept")
try:
    fail()
except KeyError as error:
    assert error.args == ("kept",)
    del error
assert len(os.listdir("/proc/self/fd")) == before
"""
    path = folder / "data"
    path.write_bytes(b"x")
    words = [sys.executable, "-W", "error", "-c", script, str(path)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "ResourceWarning: unclosed file <DirectFile" in done.stderr


def test_sync_modes_reach_the_kernel(folder: pathlib.Path) -> None:
    for mode, flags in (("none", 0), ("dsync", os.O_DSYNC), ("sync", os.O_SYNC)):
        with direct.open(folder / mode, "x", policy="off", sync=mode) as file:  # type: ignore[arg-type]
            assert fcntl.fcntl(file.fileno(), fcntl.F_GETFL) & (os.O_DSYNC | os.O_SYNC) == flags


def test_permissions_of_a_new_file(folder: pathlib.Path) -> None:
    old = os.umask(0)
    try:
        direct.open(folder / "default", "x", policy="off").close()
        direct.open(folder / "own", "x", policy="off", permissions=0o640).close()
    finally:
        os.umask(old)
    assert stat.S_IMODE((folder / "default").stat().st_mode) == 0o600
    assert stat.S_IMODE((folder / "own").stat().st_mode) == 0o640


def test_exclusive_excludes_a_second_exclusive_opener(folder: pathlib.Path) -> None:
    path = folder / "data"
    with direct.open(path, "x", policy="off", exclusive=True):
        with pytest.raises(direct.BusyError) as caught:
            direct.open(path, policy="off", exclusive=True)
        assert caught.value.errno in (errno.EAGAIN, errno.EBUSY)
        assert caught.value.filename == str(path)
    direct.open(path, policy="off", exclusive=True).close()


def test_a_closed_file_raises_like_pythons_own(folder: pathlib.Path) -> None:
    file = direct.open(folder / "data", "x+", policy="off")
    descriptor = file.fileno()
    file.close()
    file.close()
    assert file.closed
    with pytest.raises(OSError):
        os.fstat(descriptor)
    for call in (
        lambda: file.read_exact_at(bytearray(1), 0),
        lambda: file.write_all_at(b"x", 0),
        lambda: file.check(b"x", 0, write=True),
        lambda: file.flush(),
        lambda: file.fileno(),
        lambda: file.__enter__(),
        lambda: direct.probe(file),
        lambda: direct.flush(file),
        lambda: direct.residency(file),
        lambda: direct.evict(file),
        lambda: direct.preallocate(file, 0, 1),
        lambda: direct.try_lock(file, "shared"),
        lambda: direct.unlock(file),
        lambda: direct.try_lock_range(file, "shared", 0, 1),
        lambda: direct.unlock_range(file, 0, 1),
        lambda: direct.device_facts(file),
        lambda: direct.set_nocache(file, True),
        lambda: direct.read_unaligned_by_copy_at(file, bytearray(1), 0),
        lambda: direct.write_unaligned_by_read_modify_write_at(file, b"x", 0),
        lambda: direct.write_dsync_at(file, b"x", 0),
        lambda: direct.write_uncached_at(file, b"x", 0),
        lambda: direct.read_uncached_at(file, bytearray(1), 0),
    ):
        with pytest.raises(ValueError, match="^I/O operation on closed file$"):
            call()


def test_forgetting_a_file_closes_it(folder: pathlib.Path) -> None:
    file = direct.open(folder / "data", "x", policy="off")
    descriptor = file.fileno()
    del file
    with pytest.raises(OSError):
        os.fstat(descriptor)


def test_every_flush_level_is_reached_or_exceeded(folder: pathlib.Path) -> None:
    order = ["barrier", "data", "file", "device"]
    with direct.open(folder / "data", "x", policy="off") as file:
        file.write_all_at(b"data", 0)
        for level in order:
            for flushed in (file.flush(level), direct.flush(file, level)):  # type: ignore[arg-type]
                assert order.index(flushed.level) >= order.index(level)
                assert flushed.call
        assert file.flush("device").device_cache_flushed
    direct.sync_directory(folder)


def test_preallocation_lengthens_and_changes_nothing_that_exists(folder: pathlib.Path) -> None:
    path = folder / "data"
    path.write_bytes(b"data")
    with direct.open(path, "r+", policy="off") as file:
        direct.preallocate(file, 0, MIB)
    assert path.stat().st_size == MIB
    assert path.stat().st_blocks * 512 >= MIB
    assert path.read_bytes().startswith(b"data\0\0")


def test_a_directory_has_no_pages(folder: pathlib.Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        for call in (direct.residency, direct.evict):
            with pytest.raises(IsADirectoryError):
                call(descriptor)
    finally:
        os.close(descriptor)


def test_residency_and_evict_see_the_page_cache(folder: pathlib.Path) -> None:
    path = folder / "data"
    path.write_bytes(bytes(MIB))
    with path.open("rb+") as file:
        direct.flush(file, "data")
        cold = evict(file)
        assert (cold.cached_pages, cold.file_pages * cold.page_size_bytes) == (0, MIB)
        file.read()
        assert direct.residency(file).cached_pages == cold.file_pages
        half = direct.residency(file, 0, MIB // 2)
        assert half.file_pages == cold.file_pages // 2


def test_locks_keep_out_other_open_files(folder: pathlib.Path) -> None:
    path = folder / "data"
    path.write_bytes(b"data")
    with direct.open(path, "r+", policy="off") as mine, path.open("rb+") as other:
        with direct.locked(mine):
            with pytest.raises(direct.LockHeldError) as caught:
                direct.try_lock(other, "shared")
            assert isinstance(caught.value, BlockingIOError)
            assert caught.value.errno == errno.EAGAIN
        direct.try_lock(other, "exclusive")
        with pytest.raises(direct.LockHeldError), direct.locked(mine, "shared"):
            pytest.fail("the body ran without the lock")
        direct.unlock(other)
        direct.try_lock_range(mine, "exclusive", 0, 10)
        with pytest.raises(direct.LockHeldError):
            direct.try_lock_range(other, "exclusive", 5, 10)
        direct.try_lock_range(other, "exclusive", 10, 10)
        direct.unlock_range(mine, 0, 10)
        direct.try_lock_range(other, "exclusive", 5, 10)


@pytest.mark.skipif(sys.platform != "linux", reason="loop devices are of Linux")
@pytest.mark.parametrize("sector", [512, 4096])
def test_a_disk_reports_its_facts_without_a_serial(folder: pathlib.Path, sector: int) -> None:
    with loop_device(folder, 16 * MIB, sector) as device:
        with direct.open(device, "r+", exclusive=True) as disk:
            facts = direct.device_facts(disk)
            assert (facts.size_bytes, facts.logical_sector_bytes) == (16 * MIB, sector)
            assert (facts.serial, facts.serial_source) == (None, None)
            assert disk.alignment.write_offset_bytes == sector
            with pytest.raises(direct.BusyError) as caught:
                direct.open(device, exclusive=True)
            assert caught.value.errno == errno.EBUSY
            direct.write_unaligned_by_read_modify_write_at(disk, b"hello", sector - 2)
            word = bytearray(5)
            direct.read_unaligned_by_copy_at(disk, word, sector - 2)
            assert word == b"hello"
        assert direct.probe(device).filesystem == "the block device"


@pytest.mark.skipif(sys.platform == "win32", reason="Unix only")
def test_a_write_at_an_offset_of_a_file_that_is_open_to_append_is_refused(folder: pathlib.Path) -> None:
    path = folder / "log"
    path.write_bytes(bytes(8192))
    descriptor = os.open(path, os.O_RDWR | os.O_APPEND)
    data = b"x" * 4096
    with direct.from_file(descriptor) as file:
        for write in (
            lambda: file.write_all_at(data, 0),
            lambda: file.write_vectored_at([data], 0),
            lambda: direct.write_unaligned_by_read_modify_write_at(file, b"x", 3),
            lambda: direct.write_uncached_at(descriptor, data, 0),
            lambda: direct.DirectRawIO(file, close_file=False).write(b"x"),
        ):
            with pytest.raises(direct.TransferError, match="open to append") as raised:
                write()
            assert raised.value.errno == errno.EINVAL
        assert file.read_at(bytearray(4096), 0).bytes == 4096
    os.close(descriptor)
    assert path.read_bytes() == bytes(8192)
