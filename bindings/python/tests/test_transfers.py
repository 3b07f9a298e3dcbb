"""Transfers: exact, checked before the call, honest about where they stopped."""

import errno
import os
import pathlib
import resource
import signal

import pytest
from conftest import evict, lack
from trueio import direct


def test_what_was_written_is_read_back(direct_folder: pathlib.Path) -> None:
    with direct.open(direct_folder / "data", "x+") as file, direct.AlignedBuffer(65536) as buffer:
        buffer[:] = bytes(index % 251 for index in range(65536))
        assert file.write_all_at(buffer, 8192) == file.write_all_at(buffer, 8192)
        with direct.AlignedBuffer(65536) as back:
            done = file.read_exact_at(back, 8192)
            assert (done.bytes, done.calls) == (65536, 1)
            assert bytes(back) == bytes(buffer)
            file.read_exact_at(back[:4096], 0)
            assert bytes(back[:4096]) == bytes(4096), "the hole before it reads as zeros"


def test_a_misaligned_transfer_names_its_number_and_is_never_made(direct_folder: pathlib.Path) -> None:
    path = direct_folder / "data"
    buffer = direct.AlignedBuffer(8192)
    with direct.open(path, "x+") as file:
        unit, memory = file.alignment.write_offset_bytes, file.alignment.memory_bytes
        assert unit is not None and memory is not None and memory > 1
        for part, view, offset, value, needed in (
            ("address", buffer[1 : 1 + unit], 0, buffer.address + 1, memory),
            ("length", buffer[: unit - 1], 0, unit - 1, unit),
            ("offset", buffer[:unit], 1, 1, unit),
            # Several are wrong: the first is named.
            ("address", buffer[1:8], 3, buffer.address + 1, memory),
        ):
            for call in (
                lambda: file.write_all_at(view, offset),
                lambda: file.check(view, offset, write=True),
                lambda: direct.write_dsync_at(file, view, offset),
            ):
                with pytest.raises(direct.MisalignedError) as caught:
                    call()
                error = caught.value
                assert (error.part, error.value, error.needed_bytes, error.write) == (part, value, needed, True)
                assert error.errno == errno.EINVAL
                assert isinstance(error, ValueError) and isinstance(error, OSError)
                assert error.needed_by in str(error) and part in str(error) and str(needed) in str(error)
            with pytest.raises(direct.MisalignedError) as caught:
                file.read_exact_at(view, offset)
            assert (caught.value.part, caught.value.write) == (part, False)
        file.check(buffer, 8192, write=True)
        assert path.stat().st_size == 0


def test_the_end_of_the_file_is_named_with_what_was_read_before_it(folder: pathlib.Path) -> None:
    path = folder / "data"
    path.write_bytes(b"thirteen byte")
    with direct.open(path, policy="off") as file:
        buffer = bytearray(20)
        with pytest.raises(direct.EndOfFileError) as caught:
            file.read_exact_at(buffer, 9)
        error = caught.value
        assert (error.offset, error.wanted, error.done) == (9, 20, 4)
        assert bytes(buffer[:4]) == b"byte"
        assert isinstance(error, EOFError) and isinstance(error, direct.TransferError)
        assert error.errno == errno.ENODATA


def test_a_file_that_ends_between_two_sectors_ends_there(direct_folder: pathlib.Path) -> None:
    path = direct_folder / "data"
    content = bytes(index % 251 for index in range(1000))
    path.write_bytes(content)
    with direct.open(path) as file, direct.AlignedBuffer(4096) as buffer:
        with pytest.raises(direct.EndOfFileError) as caught:
            file.read_exact_at(buffer, 0)
        assert (caught.value.wanted, caught.value.done) == (4096, 1000)
        assert file.read_at(buffer, 0).bytes == 1000
        assert bytes(buffer[:1000]) == content
        assert file.read_at(buffer, 4096).bytes == 0


def test_unaligned_helpers_do_what_plain_calls_would(direct_folder: pathlib.Path) -> None:
    path = direct_folder / "data"
    with direct.open(path, "x+") as file:
        direct.write_unaligned_by_read_modify_write_at(file, b"record", 5000)
        assert path.stat().st_size == 5006
        word = bytearray(4)
        direct.read_unaligned_by_copy_at(file, word, 5002)
        assert word == b"cord"
        with pytest.raises(direct.EndOfFileError) as caught:
            direct.read_unaligned_by_copy_at(file, bytearray(10), 5003)
        assert caught.value.done == 3


def test_the_systems_errno_comes_through_with_what_was_done(folder: pathlib.Path) -> None:
    """A file may grow to one mebibyte (RLIMIT_FSIZE), and a write goes beyond it."""
    old = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        with direct.open(folder / "data", "x", policy="off") as file:
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, old[1]))
            with pytest.raises(direct.TransferError) as caught:
                file.write_all_at(bytes(4096), (1 << 20) - 1024)
            error = caught.value
            assert (error.errno, error.wanted, error.done) == (errno.EFBIG, 4096, 1024)
            assert os.strerror(errno.EFBIG) in str(error)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, old)
        signal.signal(signal.SIGXFSZ, ignored)


def test_a_file_open_for_reading_is_not_written(folder: pathlib.Path) -> None:
    (folder / "data").write_bytes(b"data")
    with direct.open(folder / "data", policy="off") as file:
        with pytest.raises(direct.TransferError) as caught:
            file.write_all_at(b"x", 0)
        assert caught.value.errno == errno.EBADF
    assert (folder / "data").read_bytes() == b"data"


def test_an_atomic_write_keeps_to_its_limits(xfs_folder: pathlib.Path) -> None:
    with direct.open(xfs_folder / "data", "x+") as file:
        probe = direct.probe(file)
        assert (probe.atomic_write is None) == (probe.atomic_write_answer != "yes")
        limits = probe.atomic_write
        if limits is None:
            lack("atomic", f"atomic writes here: {probe.atomic_write_answer}")
            return
        with direct.AlignedBuffer(limits.min_bytes) as buffer:
            direct.write_atomic_at(file, limits, buffer, 0)
            limits.check(limits.max_bytes, 0)
            for length, offset, sentence in (
                (limits.min_bytes, 512, "not a multiple of its length"),
                (limits.min_bytes + 1, 0, "not a power of two"),
                (2 * limits.max_bytes, 0, "is not between"),
            ):
                with pytest.raises(direct.AtomicLimitError, match=sentence) as caught:
                    limits.check(length, offset)
                assert isinstance(caught.value, ValueError) and caught.value.errno == errno.EINVAL
            with pytest.raises(direct.AtomicLimitError, match="not a multiple of its length"):
                direct.write_atomic_at(file, limits, buffer, 512)
            assert os.fstat(file.fileno()).st_size == limits.min_bytes


def test_uncached_transfers_leave_nothing_in_the_cache(folder: pathlib.Path) -> None:
    with direct.open(folder / "data", "x+", policy="off") as file:
        if direct.probe(file).uncached_buffered != "yes":
            lack("dontcache", "no RWF_DONTCACHE here")
        direct.write_uncached_at(file, bytes(range(256)) * 256, 0)
        file.flush("data")
        assert evict(file).cached_pages == 0
        back = bytearray(65536)
        direct.read_uncached_at(file, back, 0)
        assert bytes(back) == bytes(range(256)) * 256
        assert direct.residency(file).cached_pages == 0


def test_a_durable_write_leaves_no_dirty_page(folder: pathlib.Path) -> None:
    with direct.open(folder / "data", "x+", policy="off") as file:
        file.write_all_at(bytes(8192), 0)
        before = direct.residency(file).dirty_pages
        if before is None:
            lack("cachestat", "dirty pages are not counted here")
        direct.write_dsync_at(file, bytes(8192), 0)
        assert (before, direct.residency(file).dirty_pages) == (2, 0)
