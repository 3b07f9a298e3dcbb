"""Compares `aio.read_at` with `loop.run_in_executor`: `python scripts/bench.py [--rounds N] [--calls N]`, or `cargo xtask bench python`.

Both read 4 KiB of a cached file in the default thread pool. The sides alternate, A B A B; the table shows the medians of the
time per call, and the median and range of the ratios of the rounds, of elapsed time and of CPU time of the process. Ends with
status 1 if a median of CPU time is above the bar.

The CPU time decides, because elapsed time on a busy machine is that of other programs, too.
"""

import argparse
import asyncio
import os
import pathlib
import statistics
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable

from trueio import direct
from trueio.direct import aio

BAR = 1.3
AT_ONCE = 32

Side = Callable[[int], Awaitable[None]]


async def cost(side: Side, calls: int) -> tuple[float, float]:
    """Elapsed and CPU time per call, in microseconds."""
    elapsed, cpu = time.perf_counter(), time.process_time()
    await side(calls)
    return (time.perf_counter() - elapsed) / calls * 1e6, (time.process_time() - cpu) / calls * 1e6


async def measure(path: pathlib.Path, rounds: int, calls: int) -> bool:
    buffer, loop = direct.AlignedBuffer(4096), asyncio.get_running_loop()
    async with aio.open(path, policy="off") as file:

        async def ours(count: int) -> None:
            for _ in range(count):
                await aio.read_at(file, buffer, 0)

        async def theirs(count: int) -> None:
            for _ in range(count):
                await loop.run_in_executor(None, file.read_at, buffer, 0)

        async def ours_at_once(count: int) -> None:
            for _ in range(count // AT_ONCE):
                await asyncio.gather(*(aio.read_at(file, buffer, 0) for _ in range(AT_ONCE)))

        async def theirs_at_once(count: int) -> None:
            for _ in range(count // AT_ONCE):
                await asyncio.gather(*(loop.run_in_executor(None, file.read_at, buffer, 0) for _ in range(AT_ONCE)))

        print("| reads of 4 KiB | run_in_executor µs | aio µs | elapsed ratio (range) | CPU ratio (range) | |\n|---|---|---|---|---|---|")
        passed = True
        for name, one, other in (("one at a time", theirs, ours), (f"{AT_ONCE} at once", theirs_at_once, ours_at_once)):
            turns = []
            for number in range(rounds + 1):
                if number % 2:
                    first, second = await cost(one, calls), await cost(other, calls)
                else:
                    second, first = await cost(other, calls), await cost(one, calls)
                turns.append((first, second))
            # The first round starts the pool's threads.
            del turns[0]
            ratios = [sorted(second[kind] / first[kind] for first, second in turns) for kind in (0, 1)]
            medians = [statistics.median(values) for values in ratios]
            shown = [f"{median:.2f} ({values[0]:.2f} to {values[-1]:.2f})" for median, values in zip(medians, ratios, strict=True)]
            times = [statistics.median(turn[side][0] for turn in turns) for side in (0, 1)]
            passed = passed and medians[1] <= BAR
            verdict = "ok" if medians[1] <= BAR else f"above {BAR}"
            print(f"| {name} | {times[0]:.1f} | {times[1]:.1f} | {shown[0]} | {shown[1]} | {verdict} |")
        return passed


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--rounds", type=int, default=13)
    parser.add_argument("--calls", type=int, default=2048, help="per round and side, a multiple of 32")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "data"
        path.write_bytes(bytes(4096))
        load = f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"
        print(f"Python {sys.version.split()[0]}, {options.rounds} rounds of {options.calls} calls, load average {load}.\n")
        return 0 if asyncio.run(measure(path, options.rounds, options.calls)) else 1


if __name__ == "__main__":
    raise SystemExit(main())
