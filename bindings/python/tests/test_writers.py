"""Parallel writers of one file, compared with a `bytearray`.

Goal: no acknowledged write is lost, whatever others write, stream, copy, reserve, append or truncate in the same blocks at
the same time, in this process and in another one.
Method: in each round, threads change disjoint ranges of bytes at once, most of which share blocks. After it the file must
equal the model. TRUEIO_MODEL_ROUNDS sets the number of rounds, TRUEIO_MODEL_SEED the first random number.
"""

import contextlib
import os
import pathlib
import random
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import pytest
from trueio import direct

BLOCK = 4096
FILE_BYTES = 96 << 10
WRITERS = 5
ROUNDS = int(os.environ.get("TRUEIO_MODEL_ROUNDS", "150"))
SEED = int(os.environ.get("TRUEIO_MODEL_SEED", "24301"))

DEEDS = ["unaligned", "unaligned", "unaligned", "aligned", "vectored", "stream", "stream", "copy", "reserve", "foreign"]

OTHER_PROCESS = """
import os, sys
file = os.open(sys.argv[1], os.O_RDWR)
log = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND)
for line in sys.stdin:
    what, offset, length, mark = line.split()
    data = bytes([int(mark)]) * int(length)
    if what == "append":
        os.write(log, data)
    elif what == "truncate":
        os.ftruncate(file, int(length))
    else:
        os.pwrite(file, data, int(offset))
    print("done", flush=True)
"""

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="Linux only")


class Task(NamedTuple):
    deed: str
    offset: int
    length: int
    mark: int
    is_own: bool

    @property
    def end(self) -> int:
        return self.offset + self.length


def up(value: int) -> int:
    return direct.round_up(value, BLOCK)


def tasks_of(numbers: random.Random, number: int) -> list[Task]:
    position = numbers.randrange(FILE_BYTES)
    tasks = []
    for writer in range(WRITERS):
        deed = numbers.choice(DEEDS)
        length = numbers.choice(
            [
                numbers.randrange(1, 21),
                numbers.randrange(510, 515),
                numbers.randrange(4094, 4099),
                numbers.randrange(1, 3 * BLOCK),
            ]
        )
        offset = position + (numbers.randrange(2 * BLOCK) if numbers.randrange(3) == 0 else numbers.randrange(3))
        if deed in ("aligned", "vectored"):
            offset, length = up(offset), up(length)
        position = offset + length
        mark = (number * WRITERS + writer) % 255 + 1
        tasks.append(Task(deed, offset, length, mark, numbers.randrange(2) == 0))
    return tasks


class OtherProcess:
    """Appends, truncates and writes with plain calls."""

    def __init__(self, path: pathlib.Path) -> None:
        command = [sys.executable, "-I", "-c", OTHER_PROCESS, str(path)]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._lock = threading.Lock()

    def asked(self, what: str, offset: int, length: int, mark: int) -> None:
        assert self._process.stdin is not None and self._process.stdout is not None
        with self._lock:
            self._process.stdin.write(f"{what} {offset} {length} {mark}\n")
            self._process.stdin.flush()
            assert self._process.stdout.readline() == "done\n"

    def end(self) -> None:
        self._process.communicate()


@contextlib.contextmanager
def another_process(path: pathlib.Path) -> Iterator[OtherProcess]:
    other = OtherProcess(path)
    try:
        yield other
    finally:
        other.end()


def carry_out(task: Task, shared: direct.DirectFile, path: pathlib.Path, other: OtherProcess) -> None:
    own = direct.open(path, "r+", policy="prefer") if task.is_own else None
    file = own or shared
    buffer = direct.AlignedBuffer(up(task.length), BLOCK)
    buffer[:] = bytes([task.mark]) * len(buffer)
    data = buffer[: task.length]
    match task.deed:
        case "unaligned":
            direct.write_unaligned_by_read_modify_write_at(file, data, task.offset)
        case "aligned":
            file.write_all_at(data, task.offset)
        case "vectored":
            file.write_vectored_at([data[at : at + BLOCK] for at in range(0, task.length, BLOCK)], task.offset)
        case "stream":
            with direct.DirectRawIO(direct.open(path, "r+", policy="prefer")) as stream:
                stream.seek(task.offset)
                for at in range(0, task.length, 777):
                    stream.write(data[at : at + 777])
        case "copy":
            source = path.with_name(f"source-{task.offset}")
            source.write_bytes(data)
            direct.copy_file(
                source, path, overwrite=True, destination_offset=task.offset, flush=None, buffer_bytes=BLOCK
            )
            source.unlink()
        case "reserve":
            direct.preallocate(file, task.offset, task.length)
        case _:
            other.asked("write", task.offset, task.length, task.mark)
    if own is not None:
        own.close()


@linux_only
def test_rounds_of_parallel_writers_lose_no_acknowledged_write(folder: pathlib.Path) -> None:
    path = folder / "data"
    numbers = random.Random(SEED)
    model = bytearray()

    def grow(length: int, mark: int = 0) -> None:
        model.extend(bytes([mark]) * (length - len(model)))

    with (
        direct.open(path, "x+", policy="prefer") as shared,
        another_process(path) as other,
        ThreadPoolExecutor(WRITERS + 1) as threads,
    ):
        for number in range(ROUNDS):
            tasks = tasks_of(numbers, number)
            end = max(task.end for task in tasks)
            foreign = numbers.choice(["nothing", "append", "truncate"])
            if foreign == "append":
                # Beside a writer that makes the file longer, the place of an appended record is not defined.
                tasks = [task for task in tasks if task.end <= len(model)]
            length = numbers.randrange(1, 2 * BLOCK) if foreign == "append" else end + numbers.randrange(600)
            mark = number % 200 + 1
            calls = [threads.submit(carry_out, task, shared, path, other) for task in tasks]
            if foreign != "nothing":
                calls.append(threads.submit(other.asked, foreign, 0, length, mark))
            for call in calls:
                call.result()
            for task in tasks:
                grow(task.end)
                if task.deed != "reserve":
                    model[task.offset : task.end] = bytes([task.mark]) * task.length
            if foreign == "append":
                grow(len(model) + length, mark)
            elif foreign == "truncate":
                grow(length)
                del model[length:]
            found = path.read_bytes()
            assert found == model, (
                f"seed {SEED}, round {number}, {foreign} {length}: {tasks}; {len(found)} bytes, expected {len(model)}"
            )
            if len(model) > 2 * FILE_BYTES:
                os.truncate(path, 50_001)
                del model[50_001:]


@linux_only
def test_threads_that_write_distant_parts_keep_each_others_bytes(folder: pathlib.Path) -> None:
    offsets = [part << 20 for part in range(8)]
    with ThreadPoolExecutor(len(offsets)) as threads:
        for number in range(30):
            path = folder / f"data-{number}"
            with direct.open(path, "x+", policy="prefer") as file:
                list(
                    threads.map(
                        lambda offset, file=file: direct.write_unaligned_by_read_modify_write_at(file, b"hello", offset),
                        offsets,
                    )
                )
            found = path.read_bytes()
            assert len(found) == offsets[-1] + 5
            assert all(found[offset : offset + 5] == b"hello" for offset in offsets)
            path.unlink()
