"""Writes a file or a disk through the page cache and past it, with every kind of flush, and prints the speed of each.

    python benchmark.py [--block-min N] [--block-max N] [--size BYTES] [--rounds N] PATH

The equal of benchmark.js of the npm package @ronomon/direct-io, with the flush levels of `trueio.direct`. PATH is
overwritten from its beginning, or made. A disk is opened exclusively. The file is written once before the first row, the
rows of a block size are in random order, and each is measured `--rounds` times: the median and the range are printed.

Cannot tell: what a disk's own cache hides. `trueio run` looks for that.
"""

import argparse
import random
import statistics
import time
from collections.abc import Callable
from itertools import product

from trueio import direct

# A flush after each write, one after all, or writes that wait by themselves.
FLUSHES = ("none", "data once", "file once", "data each", "file each", "dsync", "sync")
METHODS = tuple(product(("buffered", "direct"), FLUSHES))
EACH = ("data each", "file each", "dsync", "sync")


def open_target(path: str, way: str, flush: str) -> direct.DirectFile:
    """Opens a disk exclusively, and a file or a new one."""
    is_disk = path.startswith("/dev/")
    return direct.open(
        path,
        "r+",
        create=not is_disk,
        policy="prefer" if way == "direct" else "off",
        sync="dsync" if flush == "dsync" else "sync" if flush == "sync" else "none",
        exclusive=is_disk,
    )


def measure(path: str, way: str, flush: str, block: int, memory: direct.AlignedBuffer) -> float:
    """Writes from the beginning, block after block. MiB a second."""
    count = len(memory) // block
    if flush in EACH:
        count = min(count, max(1, block // 32))
    with open_target(path, way, flush) as file, memory[:block] as data:
        begin = time.perf_counter()
        for index in range(count):
            file.write_all_at(data, index * block)
            if flush == "data each":
                file.flush("data")
            elif flush == "file each":
                file.flush("file")
        if flush in ("data once", "file once"):
            file.flush("data" if flush == "data once" else "file")
        seconds = time.perf_counter() - begin
        file.flush("data")
    return count * block / (1 << 20) / seconds


def benchmark(
    path: str, block_min: int, block_max: int, size: int, rounds: int, show: Callable[[str], object] = print
) -> None:
    """Measures all rows."""
    memory = direct.AlignedBuffer(size, 4096)
    memory[:] = b"\xff" * size
    measure(path, "buffered", "file once", block_max, memory)
    with open_target(path, "direct", "none") as file:
        show(f"direct means here: {file.granted} ({file.reason})")
    show(f"{'block':>10} | {'way':8} | {'flush':9} | MiB/s (least to most of {rounds})")
    block = block_min
    while block <= block_max:
        speeds: dict[tuple[str, str], list[float]] = {method: [] for method in METHODS}
        for _ in range(rounds):
            for method in random.sample(METHODS, len(METHODS)):
                speeds[method].append(measure(path, *method, block, memory))
        for (way, flush), found in speeds.items():
            middle = statistics.median(found)
            show(f"{block:>10} | {way:8} | {flush:9} | {middle:8.2f} ({min(found):.2f} to {max(found):.2f})")
        block *= 2


def main() -> None:
    """Reads the arguments."""
    parser = argparse.ArgumentParser(description="The speed of writes through the page cache and past it.")
    parser.add_argument("path")
    parser.add_argument("--block-min", type=int, default=4096)
    parser.add_argument("--block-max", type=int, default=32 << 20)
    parser.add_argument("--size", type=int, default=128 << 20)
    parser.add_argument("--rounds", type=int, default=3)
    wanted = parser.parse_args()
    if not 4096 <= wanted.block_min <= wanted.block_max <= wanted.size or wanted.rounds < 1:
        parser.error("4096 <= --block-min <= --block-max <= --size, and at least one round")
    benchmark(wanted.path, wanted.block_min, wanted.block_max, wanted.size, wanted.rounds)


if __name__ == "__main__":
    main()
