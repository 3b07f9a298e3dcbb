"""Every kind of bad input gets a precise exception: never an abort, never a silent fallback."""

import errno
import os
import pathlib
import socket
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from trueio import direct

# Deliberately wrong, so nothing here is checked by types.
ANY: Any = direct

EVERY_NUMBER: list[tuple[str, Callable[[Any], object]]] = [
    ("length", lambda value: direct.AlignedBuffer(value)),
    ("align", lambda value: direct.AlignedBuffer(4096, value)),
    ("count", lambda value: direct.BufferPool(value, 4096)),
    ("size_bytes", lambda value: direct.BufferPool(1, value)),
    ("align", lambda value: direct.BufferPool(1, 4096, value)),
    ("value", lambda value: direct.round_up(value, 1)),
    ("multiple", lambda value: direct.round_down(1, value)),
    ("memory_bytes", lambda value: direct.Alignment(value, 1, 1)),
    ("offset", lambda value: direct.check_transfer(direct.Alignment(1, 1, 1), 0, 0, value, write=False)),
    ("address", lambda value: direct.check_transfer(direct.Alignment(1, 1, 1), value, 0, 0, write=False)),
    ("permissions", lambda value: direct.open("/nowhere", permissions=value)),
]


@pytest.mark.parametrize(("name", "call"), EVERY_NUMBER)
def test_a_number_of_a_wrong_type_or_size_is_named(name: str, call: Callable[[Any], object]) -> None:
    for wrong in ("1", 1.0, b"1", [], object()):
        with pytest.raises(TypeError, match=f"^{name} must be an integer, not {type(wrong).__name__}$"):
            call(wrong)
    for negative in (-1, -(2**80)):
        with pytest.raises(ValueError, match=f"^{name} must not be negative, and is {negative}$"):
            call(negative)
    with pytest.raises(OverflowError, match=f"^{name} does not fit into 64 bits, and is {2**80}$"):
        call(2**80)


def test_an_index_that_raises_or_lies_is_an_error() -> None:
    class Raises:
        def __index__(self) -> int:
            raise RuntimeError("no")

    class Lies:
        def __index__(self) -> Any:
            return "8"

    for wrong in (Raises(), Lies()):
        with pytest.raises((TypeError, RuntimeError)):
            direct.AlignedBuffer(wrong)


def test_absurd_sizes_and_alignments_are_errors_and_never_aborts() -> None:
    for align in (0, 3, 4095, 2**63 + 1):
        with pytest.raises(ValueError, match="not a power of two"):
            direct.AlignedBuffer(4096, align)
        with pytest.raises(ValueError, match="not a power of two"):
            direct.BufferPool(1, 4096, align)
    for length, align in ((2**63, 4096), (2**64 - 1, 1), (4096, 2**63), (4096, 2**62), (2**47, 4096), (4096, 2**47)):
        with pytest.raises(MemoryError):
            direct.AlignedBuffer(length, align)
        with pytest.raises(MemoryError):
            direct.BufferPool(1, length, align)
    with pytest.raises(MemoryError):
        direct.BufferPool(2**40, 2**40)
    for count, size in ((0, 1), (1, 0)):
        with pytest.raises(ValueError, match="zero|at least one"):
            direct.BufferPool(count, size)
    with pytest.raises(ValueError, match="zero|at least one"):
        direct.AlignedBuffer(0)
    for numbers in ((0, 1, 1), (1, 0, 1), (1, 1, 0)):
        with pytest.raises(ValueError, match="above zero"):
            direct.Alignment(*numbers)
    with pytest.raises(ValueError, match="absurd"):
        direct.Alignment(2**32, 1, 1)
    with pytest.raises(ValueError, match="above zero"):
        direct.round_up(1, 0)
    with pytest.raises(OverflowError):
        direct.round_up(2**64 - 1, 4096)


def test_words_are_checked_and_the_right_ones_named(folder: pathlib.Path) -> None:
    path = folder / "data"
    path.write_bytes(b"x")
    wrong: list[tuple[Callable[[], object], str]] = [
        (lambda: ANY.open(path, "a"), "mode must be"),
        (lambda: ANY.open(path, "rt"), "mode must be"),
        (lambda: ANY.open(path, "b"), "mode must be"),
        (lambda: ANY.open(path, "rbb"), "mode must be"),
        (lambda: ANY.open(path, "w", create=True), "create=True goes with mode 'r\\+', not with 'w'"),
        (lambda: ANY.open(path, policy="never"), "policy must be 'require' or 'prefer' or 'off', not 'never'"),
        (lambda: ANY.open(path, sync="fsync"), "sync must be 'none' or 'dsync' or 'sync', not 'fsync'"),
        (lambda: ANY.flush(0, "disk"), "level must be"),
        (lambda: ANY.try_lock(0, "write"), "mode must be 'shared' or 'exclusive', not 'write'"),
    ]
    for call, sentence in wrong:
        with pytest.raises(ValueError, match=sentence):
            call()
    with pytest.raises(TypeError):
        ANY.open(path, 0)
    with pytest.raises(TypeError):
        ANY.open(path, policy=None)
    with pytest.raises(TypeError):
        ANY.flush(0, 1)
    with pytest.raises(ValueError, match="permissions"):
        direct.open(path, permissions=0o10000)
    assert path.read_bytes() == b"x"


def test_paths_are_what_os_fspath_takes(folder: pathlib.Path) -> None:
    for wrong in (None, 1.5, [], object()):
        with pytest.raises(TypeError):
            ANY.open(wrong)
        with pytest.raises(TypeError):
            ANY.probe(wrong)
    for zero in ("a\0b", b"a\0b"):
        with pytest.raises(ValueError, match="null character"):
            direct.open(zero)
    with pytest.raises(TypeError):
        ANY.open(3)
    with pytest.raises(FileNotFoundError) as caught:
        direct.open("")
    assert caught.value.errno == errno.ENOENT
    with pytest.raises(OSError) as long:
        direct.open("x" * 5000)
    assert long.value.errno == errno.ENAMETOOLONG
    # A name that is not UTF-8.
    name = os.fsencode(folder) + b"/\xff\xfe"
    direct.open(name, "x", policy="off").close()
    assert direct.probe(os.fsdecode(name)) == direct.probe(name)
    for missing in (folder / "nothing", name + b"x"):
        with pytest.raises(FileNotFoundError) as caught:
            direct.probe(missing)
        assert os.fsencode(caught.value.filename) == os.fsencode(missing)


def test_what_holds_no_data_at_offsets_is_refused_by_its_kind(folder: pathlib.Path) -> None:
    pipe = folder / "pipe"
    os.mkfifo(pipe)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(folder / "socket"))
    for path, kind, number in (
        (folder, "directory", errno.EISDIR),
        (pipe, "pipe", errno.ESPIPE),
        (pathlib.Path("/dev/null"), "character device", errno.ENOTBLK),
        (pathlib.Path("/dev/zero"), "character device", errno.ENOTBLK),
    ):
        for policy in ("require", "prefer", "off"):
            with pytest.raises(direct.NotAFileError, match=kind) as caught:
                ANY.open(path, policy=policy)
            assert (caught.value.errno, caught.value.kind) == (number, kind)
            assert caught.value.filename == str(path)
        with pytest.raises(direct.NotAFileError, match=kind) as caught:
            direct.probe(path)
        assert caught.value.errno == number
    with pytest.raises(IsADirectoryError):
        direct.open(folder)
    with pytest.raises(OSError):
        direct.open(folder / "socket", policy="prefer")
    listener.close()
    with pytest.raises(NotADirectoryError):
        direct.probe_directory("/dev/null")
    with pytest.raises(NotADirectoryError):
        direct.sync_directory("/dev/null")


def test_descriptors_that_are_none_and_files_that_are_no_files() -> None:
    reader, writer = os.pipe()
    try:
        with pytest.raises(direct.NotAFileError, match="pipe"):
            direct.probe(reader)
        for call in (
            lambda: direct.residency(reader),
            lambda: direct.evict(reader),
            lambda: direct.preallocate(writer, 0, 4096),
            lambda: direct.flush(writer),
        ):
            with pytest.raises(OSError):
                call()
        with pytest.raises(direct.NotADeviceError) as caught:
            direct.device_facts(reader)
        assert caught.value.kind == "pipe"
    finally:
        os.close(reader)
        os.close(writer)
    for number in (-1, -(2**70), 2**31, 2**70, reader):
        with pytest.raises(OSError) as bad:
            direct.probe(number)
        assert bad.value.errno == errno.EBADF
        with pytest.raises(OSError):
            direct.flush(number)
    for wrong in (None, "path", b"path", 1.5, object()):
        with pytest.raises(TypeError, match="file must be"):
            ANY.flush(wrong)

    class Broken:
        def fileno(self) -> Any:
            return "seven"

    with pytest.raises(OSError):
        ANY.flush(Broken())


def test_buffers_that_are_none(folder: pathlib.Path) -> None:
    with direct.open(folder / "data", "x+", policy="off") as file:
        file.write_all_at(bytes(64), 0)
        for wrong, sentence in (
            (None, "writable bytes-like object, not NoneType"),
            ("text", "not str"),
            (5, "not int"),
            (b"bytes", "not a read-only bytes"),
            (memoryview(b"bytes"), "not a read-only memoryview"),
            (np.zeros((4, 4))[:, 1], "not a non-contiguous ndarray"),
            (memoryview(bytearray(8))[::2], "not a non-contiguous memoryview"),
            (np.array([object()]), "not object pointers in a ndarray"),
        ):
            for call in (
                lambda: ANY.read_unaligned_by_copy_at(file, wrong, 0),
                lambda: ANY.read_uncached_at(file, wrong, 0),
                lambda: file.read_exact_at(wrong, 0),  # type: ignore[arg-type]
            ):
                with pytest.raises(TypeError, match=sentence):
                    call()
        locked = np.zeros(8)
        locked.flags.writeable = False
        with pytest.raises(TypeError, match="read-only ndarray"):
            file.read_exact_at(locked, 0)
        released = memoryview(bytearray(8))
        released.release()
        with pytest.raises(ValueError, match="released"):
            file.read_exact_at(released, 0)
        for wrong in (None, "text", 5, np.zeros((4, 4))[:, 1]):
            with pytest.raises(TypeError, match="contiguous bytes-like object"):
                file.write_all_at(wrong, 0)  # type: ignore[arg-type]
        assert file.read_exact_at(bytearray(), 0).bytes == 0
        assert file.write_all_at(b"", 0).bytes == 0


def test_offsets_beyond_the_largest_are_errors(folder: pathlib.Path) -> None:
    with direct.open(folder / "data", "x+", policy="off") as file:
        file.write_all_at(b"data", 0)
        for offset in (2**63 - 1, 2**63, 2**64 - 1):
            for call in (
                lambda: file.read_exact_at(bytearray(4), offset),
                lambda: file.write_all_at(b"data", offset),
                lambda: direct.read_unaligned_by_copy_at(file, bytearray(4), offset),
                lambda: direct.write_unaligned_by_read_modify_write_at(file, b"data", offset),
                lambda: direct.preallocate(file, offset, 4),
                lambda: direct.try_lock_range(file, "exclusive", offset, 4),
            ):
                with pytest.raises(OSError) as caught:
                    call()
                assert caught.value.errno in (errno.EINVAL, errno.EFBIG, errno.EOVERFLOW)
        with pytest.raises(OSError, match="reservation of zero bytes"):
            direct.preallocate(file, 0, 0)
        assert os.fstat(file.fileno()).st_size == 4


def test_what_this_system_lacks_is_unsupported_and_not_replaced(folder: pathlib.Path) -> None:
    with direct.open(folder / "data", "x+", policy="off") as file:
        calls: list[Callable[[], object]] = [
            lambda: direct.set_nocache(file, True),
            lambda: direct.lock_volume(file),
            lambda: direct.unlock_volume(file),
        ]
        for call in calls:
            with pytest.raises(direct.UnsupportedError) as caught:
                call()
            assert caught.value.errno == errno.ENOTSUP


def test_timeouts_that_are_none() -> None:
    with direct.BufferPool(1, 4096) as pool:
        for wrong in (-1.0, float("nan"), float("inf"), 1e300):
            with pytest.raises(ValueError, match="timeout"):
                pool.acquire(timeout=wrong)
        with pytest.raises(TypeError):
            ANY.BufferPool.acquire(pool, timeout="1")


def test_classes_that_only_answers_have_cannot_be_made() -> None:
    for name in ("DirectFile", "PooledBuffer", "Probe", "Transfer", "AtomicWrite", "Residency", "DeviceFacts", "Flushed"):
        with pytest.raises(TypeError):
            getattr(direct, name)()
