"""The exceptions of `trueio.run`, `trueio.baseline` and `trueio.compare`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ._record import Record


class TrueioError(Exception):
    """The base of all exceptions of this package, except those of `trueio.direct`."""


class ProgramError(TrueioError):
    """The program `trueio` was not found, or does not run on this machine."""


class RefusedError(TrueioError):
    """The request was refused or malformed. Nothing was touched."""

    def __init__(self, message: str, rule: str | None, hint: str | None) -> None:
        super().__init__(message)
        self.rule = rule
        """The identifier of the rule that refuses it (`target_exists`); None if the request is malformed."""
        self.hint = hint
        """The remedy; None if there is none."""


class FailedError(TrueioError):
    """The run failed."""

    def __init__(self, message: str, record: Record | None) -> None:
        super().__init__(message)
        self.record = record
        """What was measured until then; None if there is no record."""


class TimedOutError(TrueioError, TimeoutError):
    """The run took longer than `timeout` and was interrupted."""

    def __init__(self, message: str, record: Record | None) -> None:
        super().__init__(message)
        self.record = record
        """What was measured until then; None if there is no record."""


class CancelledError(TrueioError):
    """The run was interrupted, because its event `cancel` was set."""

    def __init__(self, message: str, record: Record | None) -> None:
        super().__init__(message)
        self.record = record
        """What was measured until then; None if there is no record."""


class ContradictedError(TrueioError):
    """The kernel or the device counted something that contradicts the figure."""

    def __init__(self, message: str, reasons: list[str]) -> None:
        super().__init__(message)
        self.reasons = reasons
        """One sentence for each check that contradicts it."""


class DocumentError(TrueioError, ValueError):
    """A text is not a document of trueio, is damaged, or a newer version wrote it."""
