"""Compares three ways of loading a file into a numpy array, cold and warm.

    python examples/load_numpy_bench.py [--mib 512] [--rounds 7] [--directory .] [--depth 4] [--chunk-mib 4]

| way       | what                                                                                     |
|-----------|------------------------------------------------------------------------------------------|
| direct    | `load_numpy.load`: O_DIRECT, several reads in flight, past the page cache                  |
| threads   | the same reads, threads and memory, through the page cache (policy "off")                 |
| readinto  | one thread, `readinto` of a numpy array, through the page cache                           |
| fromfile  | `numpy.fromfile`, through the page cache                                                  |

Cold: the file was flushed and evicted before each run, and `residency` counted no page of it. Warm: every page of it
is in the page cache, counted too. The ways are interleaved, in an order that changes by round, so that drift of the
machine falls on all alike. Each result is compared with the file's contents. Printed are medians, and the ratio of
each median to that of numpy.fromfile.

Cannot see: caches below the page cache (the disk's, the hypervisor's); a virtual disk may serve a "cold" file from its
host's memory. If direct I/O is not granted, it prints that, and compares nothing.
"""

import argparse
import os
import pathlib
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from load_numpy import load

from trueio import direct

Array = npt.NDArray[Any]


def readinto(path: pathlib.Path) -> Array:
    """One thread through the page cache."""
    array = np.empty(path.stat().st_size, np.uint8)
    with path.open("rb", buffering=0) as file:
        done = 0
        while done < array.size:
            done += file.readinto(array.data[done:]) or 0
    return array


def evict(path: pathlib.Path) -> None:
    """Takes the file out of the page cache, and makes sure."""
    with path.open("rb+") as file:
        direct.flush(file, "device")
        # Pages that the kernel holds briefly (its lists of each processor) stay, so this is repeated.
        for _ in range(100):
            direct.evict(file)
            left = direct.residency(file).cached_pages
            if not left:
                return
            time.sleep(0.01)
        sys.exit(f"error: {left} pages of the file stay in the page cache, so nothing cold can be measured here")


def warm(path: pathlib.Path) -> None:
    """Brings the file into the page cache, and makes sure."""
    np.fromfile(path, np.uint8)
    with path.open("rb+") as file:
        there = direct.residency(file)
    if there.cached_pages < there.file_pages:
        sys.exit(f"error: only {there.cached_pages} of {there.file_pages} pages stay in the page cache")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Loading into numpy: direct against buffered.")
    parser.add_argument("--mib", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--directory", default=".")
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--chunk-mib", type=int, default=4)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.directory, prefix="trueio-bench-") as folder:
        path = pathlib.Path(folder) / "data"
        # Random, so that no disk or filesystem can make it smaller.
        wanted = np.random.default_rng(1).integers(0, 256, options.mib << 20, np.uint8)
        wanted.tofile(path)
        with direct.open(path, policy="prefer") as file:
            if file.granted != "direct":
                sys.exit(f"error: no direct I/O in {options.directory}: {file.granted}, {file.reason}")
            print(f"{options.mib} MiB, {options.rounds} rounds, {options.depth} reads of {options.chunk_mib} MiB; {file.alignment}")

        chunk_bytes = options.chunk_mib << 20
        ways: dict[str, Callable[[], Array]] = {
            "direct": lambda: load(path, depth=options.depth, chunk_bytes=chunk_bytes),
            "threads": lambda: load(path, depth=options.depth, chunk_bytes=chunk_bytes, policy="off"),
            "readinto": lambda: readinto(path),
            "fromfile": lambda: np.fromfile(path, np.uint8),
        }
        print(f"{'':6} {'way':9} {'median':>9} {'MiB/s':>7} {'fromfile = 1':>13} {'min':>9} {'max':>9}")
        for state, prepare in (("cold", evict), ("warm", warm)):
            seconds: dict[str, list[float]] = {name: [] for name in ways}
            names = list(ways)
            for _ in range(options.rounds):
                for name in names:
                    prepare(path)
                    begin = time.perf_counter()
                    array = ways[name]()
                    seconds[name].append(time.perf_counter() - begin)
                    if not np.array_equal(array, wanted):
                        sys.exit(f"error: {name} did not load what is in the file")
                    del array
                names = names[1:] + names[:1]
            medians = {name: statistics.median(times) for name, times in seconds.items()}
            for name, times in seconds.items():
                print(
                    f"{state:6} {name:9} {medians[name]:7.3f} s {options.mib / medians[name]:7.0f}"
                    f" {medians[name] / medians['fromfile']:13.2f} {min(times):7.3f} s {max(times):7.3f} s"
                )
    print("every result was equal to the file's contents")


if __name__ == "__main__":
    main()
