"""trueio for Python: measure storage, and read what was measured.

    import trueio

    record = trueio.run({"rw": "randread", "bs": "4k", "size": "1g", "runtime": "10s"})
    print(record.answer.headline[0], record.answer.figure("iops").value, record.percentile(99.9, op="read"))

`run`, `baseline` and `compare` start the program `trueio`, which a wheel brings, and return its documents: `Record` and
`Comparison`. `answer` of both has what the program prints, as objects. A figure that the evidence contradicts is not returned without its reason: see `Record.percentile`. Nothing is
written but what the program writes (docs/safety.md), and an existing file or device is never written unless the job names it
in `overwrite_existing`.

Direct I/O for programs of your own is in `trueio.direct`.
"""

from ._answer import Answer, Figure, Finding, PhaseAnswer, Statement
from ._calls import baseline, compare, run
from ._comparison import Comparison
from ._errors import (
    CancelledError,
    ContradictedError,
    DocumentError,
    FailedError,
    ProgramError,
    RefusedError,
    TrueioError,
    TimedOutError,
)
from ._histogram import Histogram
from ._program import Progress, find_program
from ._record import Record

__all__ = [
    "Answer",
    "CancelledError",
    "Comparison",
    "ContradictedError",
    "DocumentError",
    "FailedError",
    "Figure",
    "Finding",
    "Histogram",
    "PhaseAnswer",
    "ProgramError",
    "Progress",
    "Record",
    "RefusedError",
    "Statement",
    "TimedOutError",
    "TrueioError",
    "baseline",
    "compare",
    "find_program",
    "run",
]
