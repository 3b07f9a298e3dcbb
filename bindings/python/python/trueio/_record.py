"""The record of a run: what was measured, with everything needed to judge it later and elsewhere."""

from __future__ import annotations

import json
import os
from functools import reduce
from typing import TYPE_CHECKING, Any, Literal, cast

from ._answer import Answer, Word, answer_in, reported
from ._errors import ContradictedError, DocumentError
from ._histogram import Histogram

if TYPE_CHECKING:
    import pandas
    import polars

    from . import _documents

FORMAT = "trueio-record"
VERSION = 3

Op = Literal["read", "write", "trim", "sync"]
Latency = Literal["total", "submission", "completion", "from_intended"]


def read_document(text: str, kind: str, format_name: str, version: int) -> Any:
    """Reads a document of this format, up to this version."""
    try:
        document = json.loads(text)
    except ValueError as error:
        raise DocumentError(f"this is not JSON: {error}") from error
    if not isinstance(document, dict) or document.get("format") != format_name:
        raise DocumentError(f"this JSON is not a {kind} of trueio")
    found = document.get("version")
    if not isinstance(found, int) or found < 1:
        raise DocumentError(f"this {kind} has no valid version: `version` is {found!r}")
    if found > version:
        raise DocumentError(
            f"this {kind} has version {found}; this package reads up to version {version} (a newer trueio reads it)"
        )
    return document


class Record:
    """One run, whole. `document` is the JSON, as `trueio schema record` describes it."""

    def __init__(self, document: _documents.RunRecord) -> None:
        self.document = document
        self._answer: Answer | None = None

    @classmethod
    def loads(cls, text: str) -> Record:
        """Reads a record from text. Raises `DocumentError` if it is another text, or a newer version wrote it."""
        return cls(cast("_documents.RunRecord", read_document(text, "record", FORMAT, VERSION)))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Record:
        """Reads a record from a file."""
        with open(path, encoding="utf-8") as file:
            return cls.loads(file.read())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the record to a new file, for `trueio report` and `trueio compare`."""
        with open(path, "x", encoding="utf-8") as file:
            json.dump(self.document, file)

    @property
    def id(self) -> str:
        """32 hexadecimal digits."""
        return self.document["id"]

    @property
    def outcome(self) -> str:
        """How the run ended: `complete`, `interrupted` or `failed`."""
        return self.document["outcome"]["how"]

    @property
    def reason(self) -> str | None:
        """Why the run failed; None if it did not."""
        return cast("dict[str, str]", self.document["outcome"]).get("reason")

    @property
    def answer(self) -> Answer:
        """What follows from the record, as every output of the program prints it: headline, figures, statements, findings, next steps.

        The JSON of a run has it. That of an earlier version has none; the program derives it then.
        """
        if self._answer is None:
            self._answer = answer_in(self.document)
        return self._answer

    @property
    def verdict(self) -> Word | None:
        """The worst word of all phases, from `confirmed` to `failed`; None if nothing was measured."""
        return self.answer.verdict

    @property
    def reasons(self) -> list[str]:
        """One sentence for each check that doubts or contradicts figures, with the phase's name."""
        return [f"{phase.phase}: {found.sentence}" for phase in self.answer.phases for found in phase.objections]

    def _ops(self, op: str | None, job: str | None, phase: str | None) -> list[tuple[Any, Any, Any]]:
        found = [
            (a_phase, a_job, an_op)
            for a_phase in self.document["phases"]
            for a_job in a_phase["jobs"]
            for an_op in a_job["ops"]
            if (op is None or an_op["op"] == op)
            and (job is None or a_job["name"] == job)
            and (phase is None or a_phase["name"] == phase)
        ]
        if not found:
            jobs = [a_job for a_phase in self.document["phases"] for a_job in a_phase["jobs"]]
            known = ", ".join(f"{a_job['name']} {an_op['op']}" for a_job in jobs for an_op in a_job["ops"])
            raise KeyError(f"the record has no such figures (op={op!r}, job={job!r}, phase={phase!r}); it has {known or 'none'}")
        return found

    def histogram(
        self, *, op: Op | None = None, job: str | None = None, phase: str | None = None, latency: Latency = "total"
    ) -> Histogram:
        """Returns the latencies of all I/Os that are selected, as one histogram.

        It has no verdict: see `percentile`. Raises `KeyError` if the record has no such operation.
        """
        return reduce(Histogram.merged, (Histogram(found["latency"][latency]) for _, _, found in self._ops(op, job, phase)))

    def percentile(
        self,
        percent: float,
        *,
        op: Op | None = None,
        job: str | None = None,
        phase: str | None = None,
        latency: Latency = "total",
        allow_contradicted: bool = False,
    ) -> int | None:
        """Returns a percentile of the latency in nanoseconds (99.9: the latency that 99.9 % of the I/Os do not exceed).

        It is computed from the histogram of all I/Os. None if there are too few I/Os for it: p99.9 needs 3,688.

        Raises `ContradictedError` with the reasons if the figures are withheld, unless `allow_contradicted` is set;
        `KeyError` if the record has no such operation.
        """
        if not allow_contradicted:
            selected = {a_phase["name"] for a_phase, _, _ in self._ops(op, job, phase)}
            for judged in self.answer.phases:
                if judged.phase in selected and not judged.is_shown:
                    contradicting = [found for found in judged.objections if found.outcome == "contradicted" and not found.is_accepted]
                    reasons = [f"{found.check}: {found.sentence}" for found in contradicting]
                    raise ContradictedError(f"the evidence contradicts the figures of `{judged.phase}`: {' '.join(reasons)}", reasons)
        return self.histogram(op=op, job=job, phase=phase, latency=latency).percentile(percent)

    def _rows(self) -> list[dict[str, Any]]:
        rows = []
        for phase, judged in zip(self.document["phases"], self.answer.phases):
            for job in phase["jobs"]:
                seconds = job["elapsed_ns"] / 1e9
                for op in job["ops"]:
                    latency = Histogram(op["latency"]["total"])
                    row: dict[str, Any] = {
                        "record": self.id,
                        "started_at": self.document["started_at"],
                        "phase": phase["name"],
                        "job": job["name"],
                        "op": op["op"],
                        "verdict": judged.verdict,
                        "is_shown": judged.is_shown,
                        "level": judged.level,
                        "io_count": op["io_count"],
                        "byte_count": op["byte_count"],
                        "error_count": op["error_count"],
                        "elapsed_ns": job["elapsed_ns"],
                        "ios_per_s": op["io_count"] / seconds if seconds else None,
                        "bytes_per_s": op["byte_count"] / seconds if seconds else None,
                        "latency_ns_mean": latency.mean_ns,
                        "latency_ns_min": latency.min_ns,
                    }
                    for percent, name in ((50, "p50"), (99, "p99"), (99.9, "p99_9"), (99.99, "p99_99")):
                        row[f"latency_ns_{name}"] = latency.percentile(percent)
                    row["latency_ns_max"] = latency.max_ns
                    rows.append(row)
        return rows

    def _series(self) -> list[dict[str, Any]]:
        return [
            {
                "record": self.id,
                "phase": phase["name"],
                "job": job["name"],
                "verdict": judged.verdict,
                "is_shown": judged.is_shown,
                **row,
            }
            for phase, judged in zip(self.document["phases"], self.answer.phases)
            for job in phase["jobs"]
            for row in job["series"]
        ]

    def to_pandas(self, table: Literal["figures", "series"] = "figures") -> pandas.DataFrame:
        """Returns a table: `figures` has one row an operation of each job; `series` one row an interval, oldest first.

        Each row has the word of its phase (`verdict`), and whether outputs show its figures (`is_shown`). Latencies are in nanoseconds, NA where the sample does not support a percentile.
        """
        try:
            import pandas
        except ImportError as error:
            raise ImportError("`to_pandas` needs pandas, which is not installed: pip install pandas") from error
        return pandas.DataFrame(self._table(table)).convert_dtypes()

    def to_polars(self, table: Literal["figures", "series"] = "figures") -> polars.DataFrame:
        """Returns the same as `to_pandas` for polars."""
        try:
            import polars
        except ImportError as error:
            raise ImportError("`to_polars` needs polars, which is not installed: pip install polars") from error
        return polars.DataFrame(self._table(table), infer_schema_length=None)

    def _table(self, table: str) -> list[dict[str, Any]]:
        if table not in ("figures", "series"):
            raise ValueError(f"a record has the tables `figures` and `series`, not `{table}`")
        return self._rows() if table == "figures" else self._series()

    def page(self) -> str:
        """Returns the self-contained page with plots, as `trueio report --html` writes it."""
        return reported(self.document, "--html")

    def __repr__(self) -> str:
        figures = len(self._rows())
        return f"<trueio.Record {self.id[:8]} {self.document['kind']}: {self.outcome}, {self.verdict}, {figures} figures>"

    def _repr_html_(self) -> str:
        from ._notebook import record_html

        return record_html(self)
