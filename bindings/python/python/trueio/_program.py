"""The program `trueio`: where it is, and how it is run.

The program gets a process group of its own, so a Ctrl-C at a terminal reaches only Python, which interrupts the program once
and waits for it. Then the program leaves what it leaves after any interrupt: a record, and no file.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import sysconfig
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO, Literal, TypedDict

from ._errors import CancelledError, ProgramError

_VARIABLE = "TRUEIO_PROGRAM"

End = Literal["itself", "timeout", "cancel"]


class Answer(TypedDict):
    """How a side compares with the first so far."""

    side: int
    """Its index."""
    metric: str
    conclusion: str
    ratio: float | None
    """Its value over that of the first side; None if there is none yet."""
    low: float | None
    """Lower end of the interval."""
    high: float | None
    """Upper end of the interval."""


class Progress(TypedDict, total=False):
    """An event of a run. `event` is always there; the others are those of the event."""

    event: Literal["preparing", "phase", "round", "progress", "comparison"]
    path: str
    """preparing: the file that is written before it is measured."""
    done_bytes: int
    """preparing: how much of it is written."""
    size_bytes: int
    """preparing: its size."""
    phase: str
    """phase, round, progress: the name of the phase."""
    index: int
    """phase, round, progress: its position, from 0."""
    count: int
    """phase, round, progress: how many phases there are."""
    round: int
    """round: the position of the round before the steady state, from 0; comparison: rounds done."""
    rounds_max: int
    """round, comparison: most rounds."""
    fraction: float
    """progress: the share of the phase that is done, from 0 to 1."""
    bytes_per_s: float
    """progress: since the last event."""
    ios_per_s: float
    """progress: since the last event."""
    latency_ns_p50: int | None
    """progress: recent median latency of the slowest worker; None if there was no I/O."""
    latency_ns_p99: int | None
    """progress: recent 99th percentile."""
    left_ns: int | None
    """progress: estimated time left; None if it is unknown; comparison: time left at most."""
    answers: list[Answer]
    """comparison: the answer of each side but the first so far, for the first metric that decides."""


def find_program() -> str:
    """Returns the path of the program: that of TRUEIO_PROGRAM, the one that was installed with this package, or `trueio` of PATH.

    The one of PATH is the last, because it may have another version.
    """
    chosen = os.environ.get(_VARIABLE)
    if chosen:
        if not os.access(chosen, os.X_OK):
            raise ProgramError(f"`{chosen}`, which {_VARIABLE} names, is not an executable file")
        return chosen
    # Above this file: of an installation with `pip install --target`.
    beside = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bin")
    user = sysconfig.get_path("scripts", sysconfig.get_preferred_scheme("user"))
    for directory in (sysconfig.get_path("scripts"), beside, user):
        path = os.path.join(directory, "trueio")
        if os.access(path, os.X_OK):
            return path
    # Directories that are not absolute depend on where the caller is.
    absolute = [directory for directory in os.environ.get("PATH", "").split(os.pathsep) if os.path.isabs(directory)]
    installed = shutil.which("trueio", path=os.pathsep.join(absolute))
    if installed:
        return installed
    if not sys.platform.startswith("linux"):
        raise ProgramError(f"the program `trueio` runs on Linux only, not on {sys.platform}; `trueio.direct` works here")
    raise ProgramError(
        "the program `trueio` was not installed with this package, which was built from source, and PATH has no `trueio`; install "
        f"a wheel for this machine, or name the program in {_VARIABLE}"
    )


@dataclass
class Ended:
    """A run of the program that has ended."""

    code: int
    stdout: str
    stderr: str
    end: End


def run_program(
    arguments: Sequence[str],
    *,
    stdin: str | None = None,
    timeout: float | None = None,
    on_progress: Callable[[Progress], object] | None = None,
    cancel: threading.Event | None = None,
    cwd: str | os.PathLike[str] | None = None,
) -> Ended:
    """Runs the program to its end. An exception of `on_progress`, and Ctrl-C, interrupt it and are raised after its end."""
    deadline = None if timeout is None else time.monotonic() + timeout
    if cancel is not None and cancel.is_set():
        raise CancelledError("the run was cancelled before it began", None)
    program = find_program()
    with contextlib.ExitStack() as stack:
        events: IO[bytes] | None = None
        passed: tuple[int, ...] = ()
        if on_progress is not None:
            read, write = os.pipe()
            events = stack.enter_context(open(read, "rb", buffering=0))
            passed = (write,)
            arguments = [*arguments, "--progress-fd", str(write)]
        try:
            child = subprocess.Popen(
                [program, *arguments],
                stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                pass_fds=passed,
                cwd=cwd,
                process_group=0,
            )
        except OSError as error:
            raise ProgramError(f"`{program}` cannot be started: {error.strerror}") from error
        finally:
            for descriptor in passed:
                os.close(descriptor)
        stack.enter_context(child)
        # It neither outlives this call, nor is it left without a reader.
        stack.callback(_kill, child)
        output: dict[str, str] = {}
        threads = [_reader(output, name, stream) for name, stream in (("out", child.stdout), ("err", child.stderr))]
        end: End = "itself"
        try:
            if child.stdin is not None:
                with contextlib.suppress(BrokenPipeError), child.stdin:
                    child.stdin.write((stdin or "").encode())
            end = _follow(child, events, on_progress, deadline, cancel)
        finally:
            # After an exception, too: the program leaves its record, and no thread reads a closed pipe.
            if end != "itself" or sys.exc_info()[0] is not None:
                _interrupt(child)
            for thread in threads:
                thread.join()
        return Ended(child.wait(), output["out"], output["err"], end)


def _reader(output: dict[str, str], name: str, stream: IO[bytes] | None) -> threading.Thread:
    assert stream is not None

    def read() -> None:
        output[name] = stream.read().decode(errors="replace")

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    return thread


def _follow(
    child: subprocess.Popen[bytes],
    events: IO[bytes] | None,
    on_progress: Callable[[Progress], object] | None,
    deadline: float | None,
    cancel: threading.Event | None,
) -> End:
    """Passes on events until the program ends, the time is up, or the run is cancelled."""
    rest = b""
    with selectors.DefaultSelector() as selector:
        ended = os.pidfd_open(child.pid) if hasattr(os, "pidfd_open") else -1
        try:
            if ended >= 0:
                selector.register(ended, selectors.EVENT_READ)
            if events is not None:
                selector.register(events, selectors.EVENT_READ)
            while True:
                # Without a descriptor for its end, and for an event of another thread, it looks again after a while.
                wait = 0.05 if cancel is not None or ended < 0 else None
                if deadline is not None:
                    left = max(0.0, deadline - time.monotonic())
                    wait = left if wait is None else min(wait, left)
                ready = [key.fileobj for key, _ in selector.select(wait)]
                if events is not None and events in ready:
                    piece = events.read(65536)
                    if not piece:
                        selector.unregister(events)
                        events = None
                    *lines, rest = (rest + (piece or b"")).split(b"\n")
                    for line in lines:
                        if on_progress is not None:
                            on_progress(json.loads(line))
                elif ended in ready or (ended < 0 and child.poll() is not None):
                    return "itself"
                if cancel is not None and cancel.is_set():
                    return "cancel"
                if deadline is not None and time.monotonic() >= deadline:
                    return "timeout"
        finally:
            if ended >= 0:
                os.close(ended)


def _interrupt(child: subprocess.Popen[bytes]) -> None:
    """Interrupts the program as Ctrl-C does, and waits for its record. A second Ctrl-C ends it at once."""
    if child.poll() is None:
        child.send_signal(signal.SIGINT)
    child.wait()


def _kill(child: subprocess.Popen[bytes]) -> None:
    if child.poll() is None:
        child.kill()
        child.wait()
