"""`run`, `baseline` and `compare`: the program's commands as functions."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from ._comparison import Comparison
from ._errors import CancelledError, FailedError, RefusedError, TimedOutError
from ._program import Ended, Progress, run_program
from ._record import Record
from ._toml import job_file

AnyPath = str | os.PathLike[str]
Job = AnyPath | Mapping[str, Any]
OnProgress = Callable[[Progress], object]


def run(
    job: Job,
    *,
    timeout: float | None = None,
    on_progress: OnProgress | None = None,
    cancel: threading.Event | None = None,
    cwd: AnyPath | None = None,
    history: bool = False,
    evidence: bool = True,
    accept: Sequence[str] = (),
) -> Record:
    """Runs a job and returns its record.

    `job` is the path of a job file, or a mapping: the options of one job (`{"rw": "randread", "bs": "4k", "size": "1g"}`), or
    the tables of a job file (`{"defaults": {…}, "job": {"a": {…}, "b": {…}}}`). `trueio-job(5)` lists the options.

    `timeout` interrupts the run after this number of seconds, and `cancel` when it is set by another thread; what was measured is in
    the exception. `on_progress` is called a few times a second, in this thread. `cwd` is the directory of relative paths.
    With `history` the record is stored as the command stores it. `accept` names checks whose findings are accepted.

    A run whose figures are withheld is returned: `answer` has the reason, and its percentiles raise `ContradictedError`.

    Raises `RefusedError`, `FailedError`, `TimedOutError`, `CancelledError`, `ProgramError`.
    """
    arguments = ["run", "--json", "-"]
    stdin = None
    if isinstance(job, Mapping):
        arguments.append("/dev/stdin")
        stdin = job_file(job)
    else:
        arguments.append(_path(job))
    arguments += _record_arguments(history, evidence, accept)
    ended = run_program(arguments, stdin=stdin, timeout=timeout, on_progress=on_progress, cancel=cancel, cwd=cwd)
    return _record(ended, timeout)


def baseline(
    target: AnyPath = ".",
    *,
    extent: Literal["usual", "quick", "thorough"] = "usual",
    timeout: float | None = None,
    on_progress: OnProgress | None = None,
    cancel: threading.Event | None = None,
    history: bool = False,
    evidence: bool = True,
    accept: Sequence[str] = (),
) -> Record:
    """Measures a complete picture of a disk and returns its record: about a minute, `quick` 10 seconds.

    `target` is a directory, a file or a block device; a file or device is only read. The other arguments are those of `run`.
    """
    arguments = ["baseline", _path(target), "--json", "-"]
    if extent != "usual":
        arguments.append(f"--{extent}")
    arguments += _record_arguments(history, evidence, accept)
    return _record(run_program(arguments, timeout=timeout, on_progress=on_progress, cancel=cancel), timeout)


def compare(
    *sides: AnyPath | Record,
    live: bool = False,
    vary: Mapping[str, Sequence[object]] | None = None,
    budget: str | None = None,
    margin: str | None = None,
    fail_if: Sequence[str] = (),
    timeout: float | None = None,
    on_progress: OnProgress | None = None,
    cancel: threading.Event | None = None,
    cwd: AnyPath | None = None,
    evidence: bool = True,
    accept_differences: Sequence[str] = (),
) -> Comparison:
    """Returns whether B is better than A, or whether the difference is noise.

    `sides` are job files that run now, interleaved (`live=True`, or `vary={"iodepth": [1, 4]}` of one job), or earlier runs:
    records of `run`, JSON files, IDs of the history. `fail_if` are gates (`"p99 > +5%"`), whose results are in
    `Comparison.gates`. `budget` (`"60s"`), `margin` (`"5%"`) and the others are options of `trueio compare`.
    `on_progress` is called after each round of jobs that run now, with the answers so far.

    Raises `RefusedError`, `FailedError`, `TimedOutError`, `CancelledError`, `ProgramError`.
    """
    import tempfile

    arguments = ["compare", "--json", "-"]
    if live:
        arguments.append("--live")
    for name, values in (vary or {}).items():
        arguments += ["--vary", f"{name}={','.join(str(value) for value in values)}"]
    for name, value in (("budget", budget), ("margin", margin)):
        if value is not None:
            arguments += [f"--{name}", value]
    for condition in fail_if:
        arguments += ["--fail-if", condition]
    if accept_differences:
        arguments += ["--accept-difference", ",".join(accept_differences)]
    if not evidence:
        arguments.append("--no-evidence")
    with tempfile.TemporaryDirectory(prefix="trueio-compare-") as folder:
        for index, side in enumerate(sides):
            if isinstance(side, Record):
                path = os.path.join(folder, f"{index}.json")
                side.save(path)
                arguments.append(path)
            else:
                arguments.append(_path(side))
        ended = run_program(arguments, timeout=timeout, on_progress=on_progress, cancel=cancel, cwd=cwd)
    if ended.code == 2:
        raise _refused(ended.stderr)
    _raise_ended_early(ended, timeout, None)
    if not ended.stdout.strip():
        raise FailedError(_message(ended), None)
    return Comparison.loads(ended.stdout)


def _record_arguments(history: bool, evidence: bool, accept: Sequence[str]) -> list[str]:
    arguments = []
    if not history:
        arguments.append("--no-history")
    if not evidence:
        arguments.append("--no-evidence")
    for check in accept:
        arguments += ["--accept", check]
    return arguments


def _record(ended: Ended, timeout: float | None) -> Record:
    if ended.code == 2:
        raise _refused(ended.stderr)
    record = Record.loads(ended.stdout) if ended.stdout.strip() else None
    _raise_ended_early(ended, timeout, record)
    if record is None or record.outcome != "complete":
        raise FailedError(_message(ended) if record is None else record.reason or "the run was interrupted", record)
    return record


def _raise_ended_early(ended: Ended, timeout: float | None, record: Record | None) -> None:
    if ended.end == "timeout":
        raise TimedOutError(f"the run took longer than {timeout} s and was interrupted", record)
    if ended.end == "cancel":
        raise CancelledError("the run was cancelled", record)


def _refused(stderr: str) -> RefusedError:
    """Reads a refusal: its lines `  rule: NAME` and `hint: …` are for programs, too."""
    text = stderr.strip()
    rule = next((line.removeprefix("  rule: ") for line in text.splitlines() if line.startswith("  rule: ")), None)
    message, _, hint = text.partition("\n\nhint: ")
    return RefusedError(message.removeprefix("error: "), rule, hint or None)


def _message(ended: Ended) -> str:
    text = ended.stderr.strip().removeprefix("error: ")
    if ended.code < 0:
        return f"the program was ended by signal {-ended.code}" + (f": {text}" if text else "")
    return text or f"the program ended with status {ended.code} and without a result"


def _path(path: AnyPath) -> str:
    text = os.fspath(path)
    # A name that begins with a hyphen is not an option.
    return f"./{text}" if text.startswith("-") else text
