"""Opening, probing, flushing, locking: the reported results are true."""

import errno
import fcntl
import os
import pathlib
import stat
import sys

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


def test_an_existing_file_is_never_replaced_or_shortened(folder: pathlib.Path) -> None:
    path = folder / "data"
    path.write_bytes(b"precious")
    with pytest.raises(FileExistsError):
        direct.open(path, "x", policy="off")
    with pytest.raises(ValueError, match="'w'.*truncated"):
        direct.open(path, "w", policy="off")  # type: ignore[arg-type]
    direct.open(path, "r+", policy="off").close()
    assert path.read_bytes() == b"precious"


def test_modes_are_what_the_descriptor_has(folder: pathlib.Path) -> None:
    for number, (mode, flags) in enumerate(
        [("x", os.O_WRONLY), ("x+", os.O_RDWR), ("r", os.O_RDONLY), ("r+", os.O_RDWR)]
    ):
        path = folder / f"data{number}"
        if mode.startswith("r"):
            path.write_bytes(b"x")
        with direct.open(path, mode, policy="off") as file:  # type: ignore[arg-type]
            assert fcntl.fcntl(file.fileno(), fcntl.F_GETFL) & os.O_ACCMODE == flags


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
