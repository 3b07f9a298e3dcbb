"""Loads a large file into a numpy array by direct I/O, with several reads in flight.

    python examples/load_numpy.py FILE [--dtype float32] [--depth 4] [--chunk-mib 4]

One aligned buffer takes the whole file, and the array is a view of it: nothing is copied, and the page cache is
neither used nor filled. Threads keep several reads in flight, because each read waits with the interpreter released;
a single one leaves a fast disk idle between two requests.

The last bytes of a file whose length is no multiple of a block cannot be read directly where they belong; they go
through `read_unaligned_by_copy_at`, whose name states it.

Cannot do: be faster than the page cache on a file that is in it. `load_numpy_bench.py` shows both.
"""

import argparse
import os
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from trueio import direct


def load(
    path: str | os.PathLike[str],
    dtype: npt.DTypeLike = np.uint8,
    *,
    depth: int = 4,
    chunk_bytes: int = 4 << 20,
    policy: Literal["require", "prefer", "off"] = "prefer",
) -> npt.NDArray[Any]:
    """The contents of `path` as a one-dimensional array, `depth` reads of `chunk_bytes` bytes at a time."""
    kind = np.dtype(dtype)
    with direct.open(path, policy=policy) as file:
        size = os.fstat(file.fileno()).st_size
        if size % kind.itemsize:
            raise ValueError(f"{os.fspath(path)} holds {size} bytes, no multiple of the {kind.itemsize} of {kind}")
        if size == 0:
            return np.empty(0, kind)
        needs = file.alignment.or_assumed()
        block = max(needs.read_offset_bytes or 1, needs.memory_bytes or 1, 4096)
        chunk_bytes = direct.round_up(chunk_bytes, block)
        buffer = direct.AlignedBuffer(size, direct.round_up(block, 4096))
        whole = direct.round_down(size, block)

        def read(offset: int) -> None:
            file.read_exact_at(buffer[offset : min(offset + chunk_bytes, whole)], offset)

        with ThreadPoolExecutor(depth) as threads:
            for _ in threads.map(read, range(0, whole, chunk_bytes)):
                pass
        if whole < size:
            direct.read_unaligned_by_copy_at(file, buffer[whole:size], whole)
    # The array holds the buffer, which lives as long as it.
    return np.frombuffer(buffer, kind)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description="Load a file into a numpy array by direct I/O.")
    parser.add_argument("file")
    parser.add_argument("--dtype", default="uint8")
    parser.add_argument("--depth", type=int, default=4)
    parser.add_argument("--chunk-mib", type=int, default=4)
    options = parser.parse_args()
    begin = time.perf_counter()
    array = load(options.file, options.dtype, depth=options.depth, chunk_bytes=options.chunk_mib << 20)
    seconds = time.perf_counter() - begin
    print(f"{array.size} of {array.dtype}, {array.nbytes / 2**20:.0f} MiB in {seconds:.3f} s")


if __name__ == "__main__":
    main()
