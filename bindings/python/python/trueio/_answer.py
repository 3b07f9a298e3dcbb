"""The answer of a record or a comparison: what every output of the program prints of it, as objects.

The program derives it, and the JSON contains it. Nothing here reads checks or computes a figure.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, TypeVar, cast

from ._errors import ProgramError

if TYPE_CHECKING:
    from . import _documents

Word = Literal["confirmed", "unverified", "unsteady", "disturbed", "not the disk", "withheld", "failed"]
"""The word of a figure; the worst is the last."""

WORDS: list[Word] = ["confirmed", "unverified", "unsteady", "disturbed", "not the disk", "withheld", "failed"]

_T = TypeVar("_T")


def _made(kind: type[_T], document: Any, **parts: Any) -> _T:
    """Makes an object of the members of a JSON object that it has; a newer program may have written more."""
    names = {field.name for field in fields(cast("Any", kind))}
    return kind(**{name: value for name, value in {**document, **parts}.items() if name in names})


@dataclass(frozen=True)
class Figure:
    """A figure of a load, or of a side of a comparison."""

    load: str
    name: str
    """`iops`, `bandwidth`, `mean`, `p50`, `p99`, `p99.9`, `max`; of a comparison also `change of iops`."""
    unit: str
    """The unit of `value`, `low` and `high`: `1/s`, `B/s`, `ns`, `ratio`."""
    verdict: Word
    is_shown: bool
    """False if it is withheld; `value` is None then."""
    value: float | None = None
    low: float | None = None
    """The ends of its 95 % interval; None if there is none."""
    high: float | None = None
    sample_count: int = 0
    operation: str | None = None
    cause: str = ""
    """Why it is not confirmed, in a few words."""


@dataclass(frozen=True)
class Objection:
    """A check that doubts or contradicts figures."""

    check: str
    outcome: str
    sentence: str
    brief: str = ""
    expected: str = ""
    found: str = ""
    is_accepted: bool = False


@dataclass(frozen=True)
class PhaseAnswer:
    """What was judged of a phase."""

    phase: str
    verdict: Word
    words: str
    """The word with the finding that determines it: `disturbed: dd wrote 335 MiB`."""
    level: str
    is_shown: bool
    objections: tuple[Objection, ...] = ()


@dataclass(frozen=True)
class Ground:
    """A figure on which a statement rests."""

    load: str
    verdict: Word


@dataclass(frozen=True)
class Statement:
    """A sentence that follows from confirmed figures."""

    kind: str
    sentence: str
    rests_on: tuple[Ground, ...]


@dataclass(frozen=True)
class Finding:
    """Why loads are not confirmed: everything of one cause."""

    cause: str
    verdict: Word
    sentence: str
    next_step: str
    loads: tuple[str, ...]


@dataclass(frozen=True)
class LimitResult:
    """A limit (`fail_if`, `[limits]`) with its outcome: `met`, `missed`, `undecided`."""

    condition: str
    outcome: str
    sentence: str
    load: str = ""
    next_step: str = ""


@dataclass(frozen=True)
class Answer:
    """What follows from a record or a comparison."""

    headline: tuple[str, ...]
    figures: tuple[Figure, ...]
    statements: tuple[Statement, ...]
    next_steps: tuple[str, ...]
    decision: Literal["yes", "no", "cannot_tell"] | None = None
    """Whether the disk is as fast as it should be; only of a baseline."""
    evidence: str = ""
    """How many loads are confirmed, and by what."""
    phases: tuple[PhaseAnswer, ...] = ()
    findings: tuple[Finding, ...] = ()
    limits: tuple[LimitResult, ...] = ()
    doubts: tuple[str, ...] = ()
    """Of a comparison: why figures are not confirmed, or a question is undecided."""

    @property
    def verdict(self) -> Word | None:
        """The worst word of all phases; None if nothing was measured, and of a comparison."""
        return max((phase.verdict for phase in self.phases), key=WORDS.index, default=None)

    def figure(self, name: str, *, load: str | None = None, op: str | None = None) -> Figure:
        """Returns the figure with this name of a load, or of the first load. Raises `KeyError` if there is none."""
        for figure in self.figures:
            if figure.name == name and load in (None, figure.load) and op in (None, figure.operation):
                return figure
        raise KeyError(f"the answer has no figure {name!r} (load={load!r}, op={op!r})")


def answer_of(document: _documents.RunAnswer | _documents.DocumentAnswer) -> Answer:
    """Makes the objects of the JSON of an answer."""
    one = cast("dict[str, Any]", document)
    headline = one["headline"]
    return _made(
        Answer,
        one,
        headline=(headline,) if isinstance(headline, str) else tuple(headline),
        figures=tuple(_made(Figure, figure) for figure in one["figures"]),
        statements=tuple(
            _made(Statement, it, rests_on=tuple(_made(Ground, ground) for ground in it["rests_on"])) for it in one["statements"]
        ),
        next_steps=tuple(one["next_steps"]),
        phases=tuple(
            _made(PhaseAnswer, phase, objections=tuple(_made(Objection, found) for found in phase["objections"]))
            for phase in one.get("phases", [])
        ),
        findings=tuple(
            _made(Finding, finding, loads=tuple(load["load"] for load in finding["loads"])) for finding in one.get("findings", [])
        ),
        limits=tuple(_made(LimitResult, limit) for limit in one.get("limits", [])),
        doubts=tuple(one.get("doubts", [])),
    )


def answer_in(document: Any) -> Answer:
    """Returns the answer of a document; the program derives that of a document of an earlier version."""
    if document.get("answer") is None:
        document = json.loads(reported(document, "--json"))
    return answer_of(document["answer"])


def reported(document: Any, output: str) -> str:
    """Returns what `trueio report` writes of a document: `--html`, `--json`."""
    from ._program import find_program

    with tempfile.TemporaryDirectory(prefix="trueio-report-") as folder:
        source, written = os.path.join(folder, "document.json"), os.path.join(folder, "written")
        with open(source, "x", encoding="utf-8") as file:
            json.dump(document, file)
        ended = subprocess.run([find_program(), "report", source, output, written], capture_output=True, text=True, check=False)
        if ended.returncode != 0:
            raise ProgramError(f"`trueio report {output}` failed: {ended.stderr.strip()}")
        with open(written, encoding="utf-8") as file:
            return file.read()
