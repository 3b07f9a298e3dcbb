"""Aligned memory and the buffer protocol: usable everywhere, and never freed while it is exported."""

import gc
import mmap
import os
import pathlib
import threading
import time

import numpy as np
import pytest
from trueio import direct


def test_a_buffer_is_zeroed_aligned_and_has_the_requested_length() -> None:
    for length, align in ((1, 1), (100, 64), (4096, 4096), (10_000, 2 << 20)):
        with direct.AlignedBuffer(length, align) as buffer:
            assert buffer.address % align == 0
            assert (len(buffer), buffer.align_bytes) == (length, align)
            assert bytes(buffer) == bytes(length)


def test_it_works_with_preadv_memoryview_and_numpy(direct_folder: pathlib.Path) -> None:
    with direct.open(direct_folder / "data", "x+") as file, direct.AlignedBuffer(16384) as buffer:
        numbers = np.frombuffer(buffer, dtype=np.uint32)
        assert numbers.ctypes.data == buffer.address
        numbers[:] = np.arange(4096)
        assert os.pwritev(file.fileno(), [buffer], 0) == 16384
        view = memoryview(buffer)
        assert (view.format, view.nbytes, view.readonly, view.contiguous) == ("B", 16384, False, True)
        view[:] = bytes(16384)
        assert os.preadv(file.fileno(), [buffer[8192:], buffer[:8192]], 0) == 16384
        assert numbers[2048] == 0 and numbers[0] == 2048
        del numbers, view


def test_numpys_own_memory_is_taken_where_it_is_aligned(direct_folder: pathlib.Path) -> None:
    """Any contiguous buffer will do: mmap is aligned by the system, an array of floats may not be."""
    with direct.open(direct_folder / "data", "x+") as file, mmap.mmap(-1, 8192) as pages:
        pages[:5] = b"hello"
        file.write_all_at(pages, 0)
        array = np.empty(8192 + 4096, dtype=np.uint8)
        start = -array.ctypes.data % 4096
        file.read_exact_at(array[start : start + 8192].view(np.float64), 0)
        assert bytes(array[start : start + 5]) == b"hello"
        with pytest.raises(direct.MisalignedError, match="address"):
            file.read_exact_at(array[start + 1 : start + 1 + 4096], 0)


def test_items_and_slices_are_the_memory_itself() -> None:
    with direct.AlignedBuffer(16, 16) as buffer:
        buffer[:6] = b"record"
        buffer[-1] = 7
        assert (buffer[0], buffer[-1], bytes(buffer[1:3])) == (ord("r"), 7, b"ec")
        with pytest.raises(IndexError):
            buffer[16]
        with pytest.raises(ValueError):
            buffer[:6] = b"short"
        with pytest.raises(ValueError):
            buffer[0] = 256


def test_memory_outlives_its_name_while_an_array_sees_it() -> None:
    buffer = direct.AlignedBuffer(1 << 20)
    buffer[:3] = b"abc"
    array = np.frombuffer(buffer, dtype=np.uint8)
    del buffer
    gc.collect()
    # Memory that was freed would be taken by one of these.
    others = [direct.AlignedBuffer(1 << 20) for _ in range(8)]
    for other in others:
        other[:] = b"\xff" * (1 << 20)
    assert bytes(array[:4]) == b"abc\0"


def test_closing_is_refused_while_anything_sees_the_memory() -> None:
    buffer = direct.AlignedBuffer(4096)
    array = np.frombuffer(buffer, dtype=np.uint8)
    view = memoryview(buffer)
    part = buffer[10:20]
    for left in (3, 2, 1):
        with pytest.raises(BufferError, match=f"{left} memoryviews or arrays"):
            buffer.close()
        assert not buffer.closed
        if left == 3:
            del array
        elif left == 2:
            view.release()
        else:
            part.release()
    buffer.close()
    buffer.close()
    assert buffer.closed
    for call in (
        lambda: len(buffer),
        lambda: memoryview(buffer),
        lambda: buffer[0],
        lambda: buffer.address,
        lambda: np.frombuffer(buffer, dtype=np.uint8),
        lambda: buffer.__enter__(),
    ):
        with pytest.raises(ValueError, match="closed buffer"):
            call()
    assert "closed" in repr(buffer)


def test_leaving_a_with_while_an_array_sees_the_memory_is_an_error_and_keeps_it() -> None:
    with pytest.raises(BufferError), direct.AlignedBuffer(4096) as buffer:
        array = np.frombuffer(buffer, dtype=np.uint8)
    array[0] = 1
    assert buffer[0] == 1


def test_an_exception_that_leaves_a_with_is_not_covered_by_ours() -> None:
    with pytest.raises(KeyError), direct.AlignedBuffer(4096) as buffer:
        view = memoryview(buffer)
        raise KeyError
    with direct.BufferPool(1, 4096) as pool:
        with pytest.raises(KeyError), pool.acquire() as lent:
            other = memoryview(lent)
            raise KeyError
        other.release()
        lent.release()
    view.release()
    assert not buffer.closed


def test_a_transfer_holds_its_buffer(folder: pathlib.Path) -> None:
    """Goal: close() cannot free memory that a transfer in another thread fills.
    Method: many large buffered reads beside many attempts to close; each attempt either is refused or comes when
    no read runs, and then the next read raises "closed". A crash would end the program."""
    path = folder / "data"
    path.write_bytes(bytes(2 << 20))
    with direct.open(path, policy="off") as file:
        refused = closed = 0
        for _ in range(10):
            buffer = direct.AlignedBuffer(2 << 20)
            started = threading.Event()

            def read(buffer: direct.AlignedBuffer = buffer, started: threading.Event = started) -> None:
                started.set()
                try:
                    for _ in range(50):
                        file.read_exact_at(buffer, 0)
                except ValueError as error:
                    assert "closed buffer" in str(error)

            thread = threading.Thread(target=read)
            thread.start()
            started.wait()
            while not buffer.closed:
                try:
                    buffer.close()
                    closed += 1
                except BufferError:
                    refused += 1
            thread.join()
        assert closed == 10
        assert refused > 0, "no attempt met a read: the test showed nothing"


def test_memory_is_given_back() -> None:
    def resident() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * mmap.PAGESIZE

    before = resident()
    for _ in range(100):
        buffer = direct.AlignedBuffer(16 << 20)
        buffer[:] = b"\1" * (16 << 20)
        direct.BufferPool(4, 4 << 20).close()
    del buffer
    assert resident() - before < 200 << 20, "1.6 GiB was touched, and kept"


def test_a_pool_lends_each_buffer_once() -> None:
    with direct.BufferPool(4, 1000, 512) as pool:
        assert (len(pool), pool.count, pool.size_bytes, pool.stride_bytes, pool.align_bytes) == (4, 4, 1000, 1024, 512)
        lent = [pool.acquire() for _ in range(4)]
        assert sorted(buffer.index for buffer in lent) == [0, 1, 2, 3]
        assert len({buffer.address for buffer in lent}) == 4
        assert all(buffer.address % 512 == 0 and len(buffer) == 1000 for buffer in lent)
        assert pool.free_count == 0
        for mark, buffer in enumerate(lent):
            buffer[:] = bytes([mark]) * 1000
        assert [buffer[999] for buffer in lent] == [0, 1, 2, 3]
        with pytest.raises(TimeoutError, match="all 4 buffers"):
            pool.acquire(timeout=0)
        lent[2].release()
        with pool.acquire(timeout=0) as again:
            assert again.index == 2
        del lent, buffer
        gc.collect()
        assert pool.free_count == 4


def test_a_lent_buffer_does_not_go_back_while_an_array_sees_it() -> None:
    pool = direct.BufferPool(1, 4096)
    buffer = pool.acquire()
    array = np.frombuffer(buffer, dtype=np.uint8)
    with pytest.raises(BufferError):
        buffer.release()
    with pytest.raises(BufferError, match="1 buffers are lent"):
        pool.close()
    with pytest.raises(TimeoutError):
        pool.acquire(timeout=0.01)
    del array
    buffer.release()
    assert buffer.released
    with pytest.raises(ValueError, match="released buffer"):
        memoryview(buffer)
    pool.close()
    pool.close()
    with pytest.raises(ValueError, match="closed pool"):
        pool.acquire()


def test_a_pool_outlives_its_name_while_a_buffer_is_lent() -> None:
    pool = direct.BufferPool(2, 1 << 20)
    array = np.frombuffer(pool.acquire(), dtype=np.uint8)
    del pool
    gc.collect()
    array[:] = 7
    others = [direct.AlignedBuffer(1 << 20) for _ in range(8)]
    for other in others:
        other[:] = b"\xff" * (1 << 20)
    assert array.min() == array.max() == 7


def test_a_waiting_thread_gets_the_returned_buffer() -> None:
    with direct.BufferPool(1, 4096) as pool:
        first = pool.acquire()
        got: list[int] = []

        def wait() -> None:
            with pool.acquire(timeout=30) as buffer:
                got.append(buffer.index)

        threads = [threading.Thread(target=wait) for _ in range(5)]
        for thread in threads:
            thread.start()
        time.sleep(0.1)
        assert got == [], "lent twice"
        first.release()
        for thread in threads:
            thread.join()
        assert got == [0] * 5


def test_closing_a_pool_wakes_waiting_threads() -> None:
    pool = direct.BufferPool(1, 4096)
    buffer = pool.acquire()
    messages: list[str] = []

    def wait() -> None:
        try:
            pool.acquire(timeout=30)
        except ValueError as error:
            messages.append(str(error))

    # The only buffer goes back and the pool is closed before the waiting thread can take it, or after it
    # took and forgot it: either way it ends.
    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.05)
    buffer.release()
    while not pool.closed:
        try:
            pool.close()
        except BufferError:
            time.sleep(0.001)
    thread.join(timeout=10)
    assert not thread.is_alive()
    assert messages in ([], ["operation on a closed pool"])


def test_a_buffer_is_iterable() -> None:
    buffer = direct.AlignedBuffer(8, 64)
    buffer[:] = b"abcdefgh"
    assert list(buffer) == list(b"abcdefgh") and bytes(iter(buffer)) == b"abcdefgh"
    assert max(buffer) == ord("h") and ord("c") in buffer and 7 not in buffer
    rest = iter(buffer)
    next(rest)
    with pytest.raises(BufferError):
        buffer.close()
    del rest
    buffer.close()
    with pytest.raises(ValueError):
        iter(buffer)
    with direct.BufferPool(1, 16) as pool, pool.acquire() as lent:
        lent[:] = bytes(range(16))
        assert list(lent) == list(range(16))


def test_a_buffer_is_acquired_without_waiting_or_not_at_all() -> None:
    with direct.BufferPool(1, 16) as pool:
        lent = pool.try_acquire()
        assert lent is not None and (pool.free_count, pool.try_acquire()) == (0, None)
        lent.release()
        assert pool.free_count == 1
    with pytest.raises(ValueError, match="closed pool"):
        pool.try_acquire()
