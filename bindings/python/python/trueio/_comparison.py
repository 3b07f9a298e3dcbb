"""A comparison: the answers, their basis, and their limits."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, Literal, cast

from ._answer import Answer, answer_in

if TYPE_CHECKING:
    import pandas
    import polars

    from . import _documents

FORMAT = "trueio-comparison"
VERSION = 1

Conclusion = Literal["better", "better_size_unclear", "worse", "worse_size_unclear", "same", "cannot_tell"]
Metric = Literal["bandwidth", "iops", "p50", "p99", "p999", "cpu_per_io"]


class Comparison:
    """Answers to "is B better than A, or is it noise?". `document` is the JSON, as `trueio schema comparison` describes it."""

    def __init__(self, document: _documents.Comparison) -> None:
        self.document = document
        self._answer: Answer | None = None

    @property
    def answer(self) -> Answer:
        """What follows from the comparison, as every output of the program prints it. See `Record.answer`."""
        if self._answer is None:
            self._answer = answer_in(self.document)
        return self._answer

    @classmethod
    def loads(cls, text: str) -> Comparison:
        """Reads a comparison from text. Raises `DocumentError` if it is another text, or a newer version wrote it."""
        from ._record import read_document

        return cls(cast("_documents.Comparison", read_document(text, "comparison", FORMAT, VERSION)))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Comparison:
        """Reads a comparison from a file."""
        with open(path, encoding="utf-8") as file:
            return cls.loads(file.read())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the comparison to a new file."""
        with open(path, "x", encoding="utf-8") as file:
            json.dump(self.document, file)

    @property
    def gates(self) -> list[_documents.GateResult]:
        """The results of `fail_if`: `verdict` is `absent`, `cannot_tell` or `shown`, `sentence` states the reason."""
        return self.document["gates"]

    @property
    def has_failed(self) -> bool:
        """True if a gate shows what it forbids."""
        return any(gate["verdict"] == "shown" for gate in self.gates)

    @property
    def is_undecided(self) -> bool:
        """True if no gate failed, and one is undecided."""
        return not self.has_failed and any(gate["verdict"] == "cannot_tell" for gate in self.gates)

    def conclusion(self, metric: Metric, *, side: int = 1, part: str | None = None) -> Conclusion:
        """Returns the conclusion about a metric of a side, compared with the first side.

        Raises `KeyError` if the comparison has no such answer.
        """
        for a_part in self.document["parts"]:
            if part is None or a_part["name"] == part:
                for answer in a_part["answers"]:
                    if answer["metric"] == metric and answer["side"] == side:
                        return answer["conclusion"]
        raise KeyError(f"the comparison has no answer about {metric!r} of side {side} (part={part!r})")

    def _rows(self) -> list[dict[str, Any]]:
        rows = []
        for part in self.document["parts"]:
            for answer in part["answers"]:
                ratio = answer["ratio"]
                rows.append(
                    {
                        "part": part["name"],
                        "side": part["sides"][answer["side"]]["name"],
                        "metric": answer["metric"],
                        "conclusion": answer["conclusion"],
                        "ratio": ratio and ratio["estimate"],
                        "ratio_low": ratio and ratio["low"],
                        "ratio_high": ratio and ratio["high"],
                        "reason": answer["reason"],
                    }
                )
        return rows

    def to_pandas(self) -> pandas.DataFrame:
        """Returns the answers as a table, one row a metric of each side but the first."""
        import pandas

        return pandas.DataFrame(self._rows()).convert_dtypes()

    def to_polars(self) -> polars.DataFrame:
        """Returns the same as `to_pandas` for polars."""
        import polars

        return polars.DataFrame(self._rows(), infer_schema_length=None)

    def __repr__(self) -> str:
        answers = ", ".join(f"{row['metric']} {row['conclusion']}" for row in self._rows())
        return f"<trueio.Comparison: {answers or 'no answer'}>"

    def _repr_html_(self) -> str:
        from html import escape

        def cell(value: object) -> str:
            return escape("–" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value))

        rows = self._rows()
        head = "".join(f"<th>{escape(name)}</th>" for name in (rows[0] if rows else {}))
        body = "".join(f"<tr>{''.join(f'<td>{cell(value)}</td>' for value in row.values())}</tr>" for row in rows)
        gates = "".join(f"<li>{escape(gate['condition'])}: {escape(gate['sentence'])}</li>" for gate in self.gates)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" + (f"<ul>{gates}</ul>" if gates else "")
