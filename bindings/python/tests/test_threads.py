"""Many threads at once: the interpreter runs while the system works, and nothing is mixed up."""

import os
import pathlib
import random
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from trueio import direct

BLOCK = 4096


def progress_beside(call: Callable[[], object]) -> bool:
    """Whether another thread of Python came to run in the middle half of one call.

    With the interpreter held it could run before and after, never in the middle.
    """
    stamps: list[int] = []
    stop = threading.Event()

    def tick() -> None:
        while not stop.is_set():
            stamps.append(time.perf_counter_ns())
            time.sleep(0)

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        while not stamps:
            time.sleep(0.001)
        begin = time.perf_counter_ns()
        call()
        end = time.perf_counter_ns()
    finally:
        stop.set()
        thread.join()
    quarter = (end - begin) // 4
    return any(begin + quarter < stamp < end - quarter for stamp in stamps)


def test_the_ruler_sees_a_call_that_holds_the_interpreter() -> None:
    """Without this the next test could pass by any call. (Not where there is no such lock.)"""
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        pytest.skip("this interpreter has no global lock")
    data = bytes(128 << 20)
    # On a busy machine the other thread may run between the first reading of the clock and the call, for most of the time.
    seen = sum(progress_beside(lambda: data.count(b"\1")) for _ in range(9))
    assert seen <= 4, f"the other thread ran in {seen} of 9 calls"


@pytest.mark.parametrize("name", ["read", "write", "read unaligned", "write unaligned", "flush", "acquire", "copy"])
def test_the_interpreter_runs_while_the_system_works(folder: pathlib.Path, name: str) -> None:
    big = bytearray(96 << 20)
    with direct.open(folder / "data", "x+", policy="off") as file, direct.BufferPool(1, BLOCK) as pool:
        file.write_all_at(big, 0)
        taken = pool.acquire()

        def wait() -> None:
            with pytest.raises(TimeoutError):
                pool.acquire(timeout=0.05)

        def flush() -> None:
            file.write_all_at(big, 0)
            file.flush("device")

        calls: dict[str, Callable[[], object]] = {
            "read": lambda: file.read_exact_at(big, 0),
            "write": lambda: file.write_all_at(big, 0),
            "read unaligned": lambda: direct.read_unaligned_by_copy_at(file, big, 0),
            "write unaligned": lambda: direct.write_unaligned_by_read_modify_write_at(file, big, 0),
            "flush": flush,
            "acquire": wait,
            "copy": lambda: direct.copy_file(folder / "data", folder / "copy", policy="off", overwrite=True),
        }
        # A busy machine may not let the other thread run; then again.
        assert any(progress_beside(calls[name]) for _ in range(20))
        taken.release()


def test_threads_share_a_file_and_a_pool_without_mixing_up_blocks(folder: pathlib.Path) -> None:
    """Goal: every block holds what its last writer wrote, every read sees a whole block.
    Method: eight threads write and read blocks of their own, numbered, through buffers of one pool of four."""
    blocks, rounds = 64, 200
    with (
        direct.open(folder / "data", "x+", policy="prefer") as file,
        direct.BufferPool(4, BLOCK) as pool,
        ThreadPoolExecutor(8) as executor,
    ):

        def work(thread: int) -> dict[int, int]:
            chance = random.Random(thread)
            mine: dict[int, int] = {}
            for turn in range(rounds):
                block = chance.randrange(thread, blocks, 8)
                with pool.acquire() as buffer:
                    if block in mine and chance.random() < 0.5:
                        file.read_exact_at(buffer, block * BLOCK)
                        assert bytes(buffer) == mine[block].to_bytes(4, "little") * (BLOCK // 4)
                    else:
                        mine[block] = thread << 16 | turn
                        buffer[:] = mine[block].to_bytes(4, "little") * (BLOCK // 4)
                        file.write_all_at(buffer, block * BLOCK)
            return mine

        for mine in executor.map(work, range(8)):
            for block, mark in mine.items():
                with pool.acquire() as buffer:
                    file.read_exact_at(buffer, block * BLOCK)
                    assert bytes(buffer[:4]) == mark.to_bytes(4, "little")
        assert pool.free_count == 4


def test_closing_under_running_transfers_ends_them_with_closed_file_and_nothing_else(folder: pathlib.Path) -> None:
    """Goal: no transfer ever reaches a descriptor that was closed, and taken by another file.
    Method: while four threads read a file of sevens, it is closed, and files of eights are opened, which get its
    number. No read sees an eight; each thread ends with "closed file"."""
    sevens, eights = folder / "sevens", folder / "eights"
    sevens.write_bytes(b"\7" * BLOCK)
    eights.write_bytes(b"\10" * BLOCK)
    for _ in range(50):
        file = direct.open(sevens, policy="off")
        barrier = threading.Barrier(5)
        ends: list[str] = []

        def read(file: direct.DirectFile = file, barrier: threading.Barrier = barrier, ends: list[str] = ends) -> None:
            buffer = bytearray(BLOCK)
            barrier.wait()
            try:
                while True:
                    file.read_exact_at(buffer, 0)
                    if buffer.count(7) != BLOCK:
                        ends.append("another file's bytes")
                        return
            except ValueError as error:
                ends.append(str(error))

        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        barrier.wait()
        file.close()
        others = [os.open(eights, os.O_RDONLY) for _ in range(8)]
        for thread in threads:
            thread.join()
        for other in others:
            os.close(other)
        assert ends == ["I/O operation on closed file"] * 4


def test_buffers_made_exported_and_closed_by_many_threads_at_once() -> None:
    shared = [direct.AlignedBuffer(BLOCK) for _ in range(4)]

    def work(thread: int) -> int:
        chance = random.Random(thread)
        seen = 0
        for turn in range(2000):
            index = chance.randrange(4)
            buffer = shared[index]
            try:
                if turn % 50 == 49:
                    buffer.close()
                    shared[index] = direct.AlignedBuffer(BLOCK)
                else:
                    with memoryview(buffer) as view:
                        view[turn % BLOCK] = thread
                        seen += view[turn % BLOCK] < 8
            except BufferError:
                pass
            except ValueError as error:
                assert "closed" in str(error)
        return seen

    with ThreadPoolExecutor(8) as executor:
        assert sum(executor.map(work, range(8))) > 0
    for buffer in shared:
        buffer.close()


def test_a_fork_does_not_disturb_the_parent(folder: pathlib.Path) -> None:
    with direct.open(folder / "data", "x+", policy="off") as file:
        file.write_all_at(b"parent", 0)
        child = os.fork()
        if child == 0:
            try:
                file.write_all_at(b"child!", 0)
                file.close()
            finally:
                os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        word = bytearray(6)
        file.read_exact_at(word, 0)
        assert word == b"child!"
